"""The package as a whole: what it exports, and what importing it does not load."""

import subprocess
import sys

from skfair import datasets


def test_every_exported_name_exists_and_has_an_example():
    for name in datasets.__all__:
        assert ">>>" in getattr(datasets, name).__doc__


def test_import_is_light():
    # Compared with scikit-learn alone, which may load pandas by itself.
    code = (
        "import sys, sklearn.datasets; before = set(sys.modules); import skfair.datasets; "
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new & {'numba', 'matplotlib', 'pandas', 'pyarrow'}))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
