import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score

from skfair.model_selection import StratifiedSensitiveKFold, StratifiedSensitiveShuffleSplit
from tests.seeds import generator


def random_case(seed):
    rng = generator(seed)
    n = int(rng.integers(20, 120))
    groups = rng.choice(list("abc"), n, p=[0.7, 0.25, 0.05])
    return np.zeros((n, 1)), rng.integers(0, 2, n), groups, rng


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**31), n_splits=st.integers(2, 8), shuffle=st.booleans())
def test_folds_partition_and_spread_every_cell(seed, n_splits, shuffle):
    X, y, groups, _ = random_case(seed)
    splitter = StratifiedSensitiveKFold(
        n_splits, shuffle=shuffle, random_state=0 if shuffle else None
    )
    folds = list(splitter.split(X, y, sensitive_features=groups))
    assert splitter.get_n_splits() == len(folds) == n_splits
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(y.size))
    sizes = [test.size for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(y.size))
        for g in set(groups):
            for c in (0, 1):
                cell = (groups == g) & (y == c)
                exact = cell.sum() / n_splits
                assert np.floor(exact) <= cell[test].sum() <= np.ceil(exact)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**31))
def test_shuffle_split_keeps_every_share(seed):
    X, y, groups, rng = random_case(seed)
    test_size = float(rng.uniform(0.1, 0.5))
    train_size = [None, float(rng.uniform(0.1, 0.4))][seed % 2]
    splitter = StratifiedSensitiveShuffleSplit(
        4, test_size=test_size, train_size=train_size, random_state=seed % 1000
    )
    splits = list(splitter.split(X, y, sensitive_features=groups))
    assert len(splits) == splitter.get_n_splits() == 4
    n_test = max(1, round(test_size * y.size))
    n_train = y.size - n_test if train_size is None else max(1, round(train_size * y.size))
    for train, test in splits:
        assert test.size == n_test
        assert train.size == n_train
        assert len({*train, *test}) == n_test + n_train
        for g in set(groups):
            for c in (0, 1):
                cell = (groups == g) & (y == c)
                # One for the test part, at most one more for the part of the rest.
                assert abs(cell[test].sum() - cell.sum() * n_test / y.size) < 1
                assert abs(cell[train].sum() - cell.sum() * n_train / y.size) < 2
    again = list(splitter.split(X, y, sensitive_features=groups))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(splits, again, strict=True))


def test_every_row_is_tested_sometimes():
    X, y, groups, _ = random_case(3)
    splitter = StratifiedSensitiveShuffleSplit(200, test_size=0.2, random_state=0)
    times = np.zeros(y.size)
    for _, test in splitter.split(X, y, sensitive_features=groups):
        times[test] += 1
    # Each row is in the test part with probability 1/5: 40 times, standard deviation below 6.
    assert times.min() > 10
    assert times.max() < 80


def test_without_classes_and_with_numbers_as_target():
    X, _, groups, rng = random_case(1)
    for y in (None, rng.normal(size=len(groups))):
        for _, test in StratifiedSensitiveKFold(3).split(X, y, sensitive_features=groups):
            for g in set(groups):
                assert abs((groups[test] == g).sum() - (groups == g).sum() / 3) < 1


def test_strings_and_several_attributes():
    X, y, groups, rng = random_case(2)
    frame = pd.DataFrame({"g": groups, "h": rng.choice(["x", "y"], y.size)})
    labels = np.array(["no", "yes"])[y]
    crossed = (frame["g"] + frame["h"]).to_numpy()
    one = StratifiedSensitiveKFold(3).split(X, labels, sensitive_features=frame)
    other = StratifiedSensitiveKFold(3).split(X, y, sensitive_features=crossed)
    for (_, a), (_, b) in zip(one, other, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "splitter",
    [
        StratifiedSensitiveKFold(4, shuffle=True, random_state=0),
        StratifiedSensitiveShuffleSplit(4, test_size=0.25, random_state=0),
    ],
)
def test_in_cross_validation(splitter):
    rng = generator(0)
    n = 120
    groups = rng.choice(["f", "m"], n)
    X, y = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    with config_context(enable_metadata_routing=True):
        routed = cross_val_score(
            LogisticRegression(), X, y, cv=splitter, params={"sensitive_features": groups}
        )
        GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=splitter).fit(
            X, y, sensitive_features=groups
        )
    table = np.column_stack((X, groups == "m"))
    by_column = clone(splitter, safe=False)
    by_column.sensitive = [2]
    from_columns = cross_val_score(LogisticRegression(), table, y, cv=by_column)
    assert routed.shape == from_columns.shape == (4,)
    expected = [test for _, test in splitter.split(X, y, sensitive_features=groups)]
    found = [test for _, test in by_column.split(table, y)]
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert "random_state=0" in repr(splitter)
