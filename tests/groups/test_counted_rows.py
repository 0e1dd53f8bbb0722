"""Metrics of long arrays of integers are those of the rows, and need little memory."""

import tracemalloc

import numpy as np
import pytest

from skfair import metrics
from skfair.groups import counted_rows

LABEL_METRICS = [
    metrics.demographic_parity_difference,
    metrics.equalized_odds_ratio,
    metrics.accuracy_parity_difference,
    metrics.largest_false_positive_rate,
    metrics.sufficiency_gap,
]


def columns(n, dtype, rng, low=0):
    return (rng.integers(2, size=n) + low).astype(dtype)


def counted(groups, weights=None, **labels):
    return counted_rows.counted(labels, (groups, None, weights, True))


@pytest.fixture
def short(monkeypatch):
    """Let few rows be counted."""
    monkeypatch.setattr(counted_rows, "MANY", 50)


@pytest.mark.parametrize("metric", LABEL_METRICS)
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64])
def test_counted_rows_give_the_same_number(metric, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    n = 3000
    y, predicted = columns(n, dtype, rng), columns(n, dtype, rng)
    groups = (rng.integers(4, size=n) - 2).astype(np.int8)
    expected = metric(y, predicted, sensitive_features=groups)
    monkeypatch.setattr(counted_rows, "MANY", 50)
    _, encoding, counts = counted(groups, y_true=y, y_pred=predicted)
    assert counts.sum() == n
    assert encoding.counts.tolist() == np.bincount(groups + 2).tolist()
    assert metric(y, predicted, sensitive_features=groups) == expected


def test_clusters_are_counted(short):
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(5, size=(2, 500))
    plain = metrics.balance_score(labels.tolist(), sensitive_features=groups.tolist())
    assert metrics.balance_score(labels, sensitive_features=groups) == plain


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_the_ends_of_a_type_are_counted(dtype, short):
    ends = np.iinfo(dtype)
    for low in (ends.min, ends.max - 1):
        column = np.array([low, low + 1] * 100, dtype)
        labels, _, counts = counted(column[::-1], y_pred=column)
        assert labels["y_pred"].tolist() == [low, low + 1]
        assert counts.tolist() == [100, 100]


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint64])
def test_numbers_that_come_late_are_counted(dtype, short):
    """The first rows say which numbers are likely; others may lie above or below these."""
    low = 0 if dtype is np.uint64 else -3
    column = np.repeat(np.array([4, 5, 9, 4 + low], dtype), [2000, 500, 300, 200])
    groups = (np.arange(3000) % 3).astype(dtype)
    for given in (column, np.asfortranarray(np.stack([column, groups]))[0]):
        given.flags.writeable = False
        labels, encoding, counts = counted(groups, y_pred=given)
        for value, group, count in zip(labels["y_pred"], encoding.codes[0], counts, strict=True):
            assert count == np.sum((column == value) & (groups == group))
        assert counts.sum() == 3000


def test_what_is_no_small_integer_is_left_to_others(short):
    few = np.zeros(200, np.int64)
    wide = np.where(np.arange(200) == 150, 10**6, 0)  # seen late
    for other in (wide, few[:100], few.astype(float), few.astype(str), few.tolist(), None):
        assert counted(few, y_pred=other) is None
    assert counted(few, np.ones(200), y_pred=few) is None


def test_errors_are_those_of_rows(short):
    y = np.arange(300) % 3
    with pytest.raises(ValueError, match="which class is the positive one"):
        metrics.equalized_odds_difference(y, y, sensitive_features=y)
    y %= 2
    with pytest.raises(ValueError, match="300"):
        metrics.equalized_odds_difference(y, y, sensitive_features=y[:200])


def test_a_metric_of_many_labels_needs_little_memory():
    rng = np.random.default_rng(0)
    y, predicted, groups = rng.integers(2, size=(3, 1 << 21))
    metrics.equalized_odds_difference(y, predicted, sensitive_features=groups)  # compiles
    tracemalloc.start()
    metrics.equalized_odds_difference(y, predicted, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.2 * 3 * y.nbytes
