"""Metrics of long arrays of integers and texts are those of the rows, and need little memory."""

import tracemalloc

import numpy as np
import pytest

from skfair import metrics
from skfair.groups import counted_arrays
from tests.seeds import generator

LABEL_METRICS = [
    metrics.demographic_parity_difference,
    metrics.equalized_odds_ratio,
    metrics.accuracy_parity_difference,
    metrics.largest_false_positive_rate,
    metrics.sufficiency_gap,
]
DTYPES = [bool, np.int8, np.uint8, np.int64, np.uint64]


def counted(monkeypatch, metric, *labels, **options):
    """Return what a metric says of few rows, and whether they were counted."""
    n_counted = []
    count = counted_arrays._count
    with monkeypatch.context() as patch:
        patch.setattr(counted_arrays, "MANY", 50)
        patch.setattr(counted_arrays, "_count", lambda *of: n_counted.append(1) or count(*of))
        return metric(*labels, **options), bool(n_counted)


@pytest.mark.parametrize("metric", LABEL_METRICS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_counted_rows_give_the_same_number(metric, dtype, monkeypatch):
    rng = generator(0)
    y, predicted = rng.integers(2, size=(2, 3000)).astype(dtype)
    groups = (rng.integers(4, size=3000) - 2).astype(np.int8)
    expected = metric(y, predicted, sensitive_features=groups)
    assert counted(monkeypatch, metric, y, predicted, sensitive_features=groups) == (expected, True)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_the_ends_of_a_type_and_numbers_that_come_late_are_counted(dtype, monkeypatch):
    ends = np.iinfo(dtype)
    low = np.array([ends.min, ends.min + 1], dtype)
    high = np.array([ends.max - 1, ends.max], dtype)
    late = np.array([4, 9, 5, 0], dtype)
    for levels, sizes in ((low, [9, 90]), (high, [9, 90]), (late, [2000, 5, 40, 3])):
        labels = np.repeat(levels, sizes)
        groups = (np.arange(labels.size) % 3).astype(dtype)
        expected = metrics.balance_score(labels.tolist(), sensitive_features=groups.tolist())
        for column in (labels, np.asfortranarray(np.stack([labels, groups]))[0]):
            column.flags.writeable = False
            found = counted(monkeypatch, metrics.balance_score, column, sensitive_features=groups)
            assert found == (expected, True)


def test_what_is_no_small_integer_is_left_to_others(monkeypatch):
    few = np.arange(200) % 2
    wide = np.where(np.arange(200) == 150, 10**6, few)
    for other in (wide, few.astype(float), few.astype(object), few.tolist()):
        expected = metrics.balance_score(list(other), sensitive_features=few)
        found = counted(monkeypatch, metrics.balance_score, other, sensitive_features=few)
        assert found[0] == expected
        assert found[1] == (other is wide)
    weights = {"sample_weight": np.arange(200.0), "sensitive_features": few}
    assert counted(monkeypatch, metrics.balance_score, wide, **weights)[1] is False
    y = np.arange(300) % 3
    with pytest.raises(ValueError, match="which class is positive"):
        counted(monkeypatch, metrics.equalized_odds_difference, y, y, sensitive_features=y)
    with pytest.raises(ValueError, match="200"):
        counted(monkeypatch, metrics.balance_score, few[:100], sensitive_features=few)


@pytest.mark.filterwarnings("ignore:.*stand for missing values")
@pytest.mark.parametrize("kind", ["U", "S"])
def test_texts_are_counted(kind, monkeypatch):
    rng = generator(1)
    y, predicted = rng.choice(["no", "yes"], (2, 3000)).astype(kind)
    groups = rng.choice(["a", "bb", "émile"[kind == "S" :], ""], 3000).astype(kind)
    options = {"sensitive_features": groups, "pos_label": y[y.argmax()]}
    for metric in LABEL_METRICS[1:4]:
        of_lists = {**options, "sensitive_features": groups.tolist()}
        expected = metric(y.tolist(), predicted.tolist(), **of_lists)
        assert counted(monkeypatch, metric, y, predicted, **options) == (expected, True)


@pytest.mark.parametrize("given", ["y_true", "none"])
def test_a_report_of_counted_rows_is_that_of_the_rows(given, monkeypatch):
    y, predicted = generator(2).integers(2, size=(2, 600))
    groups = np.arange(600) % 7 % 3
    y = y if given == "y_true" else None
    for report in (metrics.group_report, metrics.fairness_report):
        options = {"sensitive_features": groups, "n_bootstrap": 20, "random_state": 0}
        found, is_counted = counted(monkeypatch, report, y, predicted, **options)
        assert is_counted
        assert found.equals(report(y, predicted, **options))


def test_metrics_of_ones_own_get_the_rows(monkeypatch):
    y, predicted = generator(2).integers(2, size=(2, 600))
    options = {"sensitive_features": y, "metrics": {"size": lambda y_true, _: len(y_true)}}
    found, is_counted = counted(monkeypatch, metrics.group_report, y, predicted, **options)
    assert not is_counted
    assert found["size"].tolist() == [*np.bincount(y), y.size]


@pytest.mark.parametrize("metric", LABEL_METRICS[:2])
def test_a_metric_of_many_labels_needs_little_memory(metric):
    y, predicted, groups = generator(0).integers(2, size=(3, 1 << 21))
    metric(y, predicted, sensitive_features=groups)  # compiles
    tracemalloc.start()
    metric(y, predicted, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.2 * 3 * y.nbytes
