"""The package as a whole: what it exports, and what importing it does not load."""

import inspect
import subprocess
import sys

import pandas as pd
import pytest
from scipy import sparse

from skfair import datasets
from tests.seeds import seed_of

MAKERS = [name for name in datasets.__all__ if name.startswith("make_")]


@pytest.mark.parametrize("name", MAKERS)
def test_makers_take_n_samples_first_and_return_a_named_tuple(name):
    make = getattr(datasets, name)
    first, *others = inspect.signature(make).parameters.values()
    assert first.name == "n_samples"
    assert all(one.kind is one.KEYWORD_ONLY for one in others)
    sample = make(500, random_state=seed_of())
    assert sample._fields[-1] == "sensitive_features"
    assert {"data", "target"} & set(sample._fields)
    assert [part.shape[0] for part in sample] == [500] * len(sample)
    assert sample.sensitive_features is sample[-1]


@pytest.mark.parametrize("name", MAKERS)
def test_a_seed_is_one_sample_and_another_seed_another(name):
    first, again, other = (
        [
            pd.DataFrame(part.toarray() if sparse.issparse(part) else part)
            for part in getattr(datasets, name)(500, random_state=seed_of(key))
        ]
        for key in (0, 0, 1)
    )
    assert all(one.equals(same) for one, same in zip(first, again, strict=True))
    assert not first[0].equals(other[0])
    is_sorted = name == "make_grouped_blobs"  # by group
    assert is_sorted or not first[-1].equals(other[-1])


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
