"""The package under a user's type checker: wrong calls are refused, results have types."""

import os
from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api", reason="mypy comes with the lint extra")

ROOT = Path(__file__).parents[1]
CALLS = sorted(ROOT.glob("tests/**/typed_calls.py"))


def checked(folder, *paths):
    """Return what mypy says of files of a user, who has no settings for them."""
    options = [
        *("--config-file=", "--strict", "--explicit-package-bases"),
        *("--ignore-missing-imports", "--follow-imports=silent"),
    ]
    is_kept = os.access(ROOT, os.W_OK)  # 15 s without it, 1 s with it
    cache = (ROOT if is_kept else folder) / ".mypy_cache" / "calls"
    said, problem, _ = api.run([*options, f"--cache-dir={cache}", *map(str, paths)])
    assert not problem
    return said.splitlines()


@pytest.mark.slow
def test_right_calls_pass_and_wrong_ones_are_refused(tmp_path):
    planted = tmp_path / "user.py"
    planted.write_text('from skfair.cluster import FairKMeans\nFairKMeans(n_init="all")\n')
    refused, count = checked(tmp_path, *CALLS, planted)
    assert "user.py:2: error: " in refused  # in the folder of the run that filled the cache
    assert refused.endswith("[arg-type]")
    assert count.endswith(f"in 1 file (checked {len(CALLS) + 1} source files)")
