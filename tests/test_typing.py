"""What a user's type checker makes of the package: wrong calls are refused, results have types."""

from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api", reason="mypy comes with the lint extra")

CALLS = Path(__file__).with_name("typed_calls.py")


def checked(path):
    """Return what mypy says of a file of a user, who has no settings for it."""
    options = ["--config-file=", "--strict", "--ignore-missing-imports", "--follow-imports=silent"]
    cache = CALLS.parents[1] / ".mypy_cache" / "calls"  # 15 s without it, 1 s with it
    said, problem, _ = api.run([*options, f"--cache-dir={cache}", str(path)])
    assert not problem
    return said


@pytest.mark.slow
def test_right_calls_pass_and_wrong_ones_are_refused(tmp_path):
    assert "Success" in checked(CALLS)
    planted = tmp_path / "user.py"
    planted.write_text("from skfair.cluster import FairKMeans\nFairKMeans(swap_target=3)\n")
    assert "[arg-type]" in checked(planted)
