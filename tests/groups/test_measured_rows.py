"""One entrance for the rows of metrics: every kind of rows, and parts of them."""

import numpy as np
import pytest

from skfair import GroupProbabilities
from skfair.groups.measured_rows import MeasuredRows
from skfair.metrics import (
    balance_score,
    equalized_odds_difference,
    group_report,
    loss_parity_difference,
)
from tests.seeds import generator

RATES = ("selection_rate", "true_positive_rate")
KINDS = ("plain", "apart", "strata", "probabilities")


def people(key, n=400):
    """Return labels, predictions, groups, strata, weights, and units of one to five rows."""
    rng = generator(key)
    y_true, y_pred = rng.integers(0, 2, (2, n))
    groups = np.c_[rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n)]
    units = np.repeat(np.arange(n), rng.integers(1, 6, n))[:n]
    return y_true, y_pred, groups, rng.choice(["x", "y"], n), rng.uniform(0.1, 3, n), units


def cohort_of(kind, is_weighted, has_units):
    y_true, y_pred, groups, strata, weights, units = people(f"{kind} {is_weighted}")
    if kind == "probabilities":
        share = generator(kind).uniform(size=y_true.size)
        groups = GroupProbabilities(np.c_[share, 1 - share], names=["f", "m"])
    who = groups, strata if kind == "strata" else None, weights if is_weighted else None
    return MeasuredRows.of_labels(
        y_true, y_pred, *who, kind != "apart", units=units if has_units else None
    )


def lazy(column, chunks=70):
    return pytest.importorskip("dask.array").from_array(np.asarray(column), chunks=chunks)


@pytest.mark.parametrize("has_units", [False, True])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_parts_add_up_to_that_of_the_whole(kind, is_weighted, has_units):
    rows = cohort_of(kind, is_weighted, has_units)
    whole = rows.table()
    owners = np.arange(rows.values.size) if rows.units is None else rows.units.codes
    part = generator(f"parts {kind}").integers(3, size=owners.max() + 1)[owners]  # of whole units
    tables = [rows.take(np.flatnonzero(part == k)).table() for k in range(3)]
    for name, sums in whole.sums.items():
        added = sum(table.sums[name] for table in tables)
        np.testing.assert_allclose(added, sums, rtol=1e-12, atol=1e-12)
    n_people = sum(table.people for table in tables)  # each is rounded to nine digits
    np.testing.assert_allclose(n_people, whole.people, atol=1e-8)
    added = (tables[0] + tables[1] + tables[2]).compared(["group"], whole.within)
    for asked in (("difference", RATES), ("total", RATES, "overall")):
        assert added.compare(*asked) == pytest.approx(whole.compare(*asked), rel=1e-12)
    for rate in RATES:
        sizes = added.means(rate).n_effective
        assert np.sort(sizes) == pytest.approx(np.sort(whole.means(rate).n_effective), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_all_rows_in_another_order_are_the_same_rows(kind):
    rows = cohort_of(kind, True, True)
    taken = rows.take(generator(kind).permutation(rows.values.size))
    np.testing.assert_array_equal(taken.groups.cells.counts, rows.groups.cells.counts)
    assert taken.groups.cells.names == rows.groups.cells.names
    for rate in RATES:
        expected = rows.table().means(rate).n_effective
        assert taken.table().means(rate).n_effective == pytest.approx(expected, rel=1e-10)


def test_cells_without_a_row_stay():
    rows = MeasuredRows.of_labels([0, 1, 1], [1, 1, 0], ["f", "m", "m"])
    only = rows.take([0])
    assert only.groups.cells.counts.tolist() == [1, 0]
    assert only.table().weights.sum(axis=(1, 2)).tolist() == [1, 0]
    assert only.columns["y_true"] == [0]


def test_what_labels_count_as():
    y_true, y_pred, sex = ["a", "b", "c", "a"], ["a", "c", "c", "b"], ["f", "f", "m", "m"]
    of_classes = MeasuredRows.of_labels(y_true, y_pred, sex, counted="correct")
    assert of_classes.values.tolist() == [3, 2, 3, 2]
    of_numbers = MeasuredRows.of_labels([0.5, 2.0], [0.5, 7.0], ["f", "m"], counted="equal")
    assert of_numbers.values.tolist() == [3, 2]
    with pytest.raises(ValueError, match=r"y_true has numbers such as 0\.5, not labels"):
        MeasuredRows.of_labels([0.5, 2.0], [1.5, 7.0], ["f", "m"], counted="correct")
    with pytest.raises(ValueError, match="none in common"):
        MeasuredRows.of_labels([3, 2], [1, 7], ["f", "m"], counted="correct")
    classes = MeasuredRows.of_labels([0, 0, 1, 1], [0, 1, 0, 1], sex)
    assert classes.values.tolist() == [0, 1, 2, 3]
    alone = MeasuredRows.of_labels(None, [0, 1, 0, 1], sex, counted="predictions")
    assert alone.values.tolist() == [0, 1, 0, 1]
    assert (
        MeasuredRows.of_labels(
            y_true, y_pred, sex, counted="predictions", pos_label="a"
        ).values.max()
        == 1
    )
    with pytest.raises(ValueError, match="needs y_true, got None"):
        MeasuredRows.of_labels(None, [0, 1, 0, 1], sex)


def test_scores_are_the_values():
    scores, sex = [0.5, -1.0, 2.0], ["f", "m", "m"]
    rows = MeasuredRows.of_scores(scores, [0, 1, 1], sex, units=["u", "u", "v"])
    assert rows.values.tolist() == scores
    assert rows.positive(None).tolist() == [0, 1, 1]
    assert rows.units.codes.tolist() == [0, 0, 1]
    assert rows.with_scores([1, 2, 3]).values.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="decision has"):
        MeasuredRows.of_scores([0.5, np.nan, 2.0], None, sex, name="decision")
    with pytest.raises(ValueError, match="y_score has 2 rows"):
        rows.with_scores([1, 2])
    with pytest.raises(ValueError, match="'f'"):  # a group without weight has no distribution
        MeasuredRows.of_scores(scores, None, sex, None, [0, 1, 1])


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("has_strata", [False, True])
def test_dask_is_memory(is_weighted, has_strata):
    y_true, y_pred, groups, strata, weights, _ = people(0)
    who = groups[:, 0], strata if has_strata else None, weights if is_weighted else None
    few = [None if own is None else lazy(own) for own in who]
    whole = MeasuredRows.of_labels(y_true, y_pred, *who)
    summed = MeasuredRows.of_labels(lazy(y_true), lazy(y_pred), *few)
    assert summed.values.size < whole.values.size
    assert summed.counts.sum() == whole.values.size
    tables = summed.table(), whole.table()
    assert all(table.counts_each_once is not is_weighted for table in tables)
    np.testing.assert_array_equal(summed.groups.cells.counts, whole.groups.cells.counts)
    expected = whole.table()
    for name, sums in expected.sums.items():
        np.testing.assert_allclose(summed.table().sums[name], sums, rtol=1e-12)
    scores = generator(1).normal(size=y_true.size).round(1)
    of_scores = MeasuredRows.of_scores(lazy(scores), None, *few)
    in_memory = MeasuredRows.of_scores(scores, None, *who)
    for rows in (of_scores, in_memory):
        weight = np.ones(rows.values.size) if rows.weights is None else rows.weights
        sums = rows.groups.cells.sums(weight * rows.values)
        of_memory = in_memory.groups.cells.sums(
            scores if in_memory.weights is None else scores * in_memory.weights
        )
        np.testing.assert_allclose(sums, of_memory, rtol=1e-9, atol=1e-9)
    with pytest.raises(TypeError, match="units="):
        MeasuredRows.of_labels(lazy(y_true), lazy(y_pred), *few, units=np.arange(y_true.size))


def test_each_row_is_one_that_was_passed():
    y_true, _, groups, _, _, _ = people(0)
    scores, sex = generator(1).normal(size=y_true.size), groups[:, 0]
    rows = MeasuredRows.of_scores(lazy(scores), y_true, lazy(sex), each_row=True)
    np.testing.assert_array_equal(rows.values, scores)
    assert rows.counts is None
    share = generator(2).uniform(0.1, 0.9, y_true.size)
    unsure = GroupProbabilities(np.c_[share, 1 - share])
    with pytest.raises(TypeError, match="each row must have one group"):
        MeasuredRows.of_scores(scores, y_true, unsure, each_row=True)
    spread = MeasuredRows.of_scores(scores, y_true, unsure)
    assert spread.values.size == 2 * scores.size


def test_long_arrays_of_few_labels_are_counted():
    rng = generator()
    y_true, y_pred, groups = rng.integers(0, 2, (3, 1 << 15))
    rows = MeasuredRows.of_labels(y_true, y_pred, groups)
    assert rows.values.size <= 8
    assert rows.counts.sum() == y_true.size
    assert rows.table().counts_each_once
    every = MeasuredRows.of_labels(y_true, y_pred, groups, is_counted=False)
    assert every.values.size == y_true.size
    np.testing.assert_array_equal(rows.table().weights, every.table().weights)


def test_columns_that_are_only_checked_must_be_of_the_same_rows():
    pd = pytest.importorskip("pandas")
    sex = pd.Series(["f", "m", "m"], index=[7, 8, 9])
    weights = pd.Series([1.0, 2.0, 3.0], index=[9, 8, 7])
    for read in (MeasuredRows.of_labels, MeasuredRows.of_scores):
        with pytest.raises(ValueError, match="index labels in a different order"):
            read([0, 1, 1], [1, 0, 1], sex, None, weights)
    scores = pd.Series([0.5, 1.0, 2.0], index=[9, 8, 7])
    with pytest.raises(ValueError, match="index labels in a different order"):
        MeasuredRows.of_labels([0, 1, 1], [1, 0, 1], sex, y_score=scores)


def test_weights_of_clusters_must_be_of_the_same_rows():
    pd = pytest.importorskip("pandas")
    labels, weights = (pd.Series([0, 1, 1], index=own) for own in ([7, 8, 9], [9, 8, 7]))
    with pytest.raises(ValueError, match="index labels in a different order"):
        balance_score(labels, sensitive_features=["f", "m", "m"], sample_weight=weights)
    report = {"y_score": weights, "sensitive_features": ["f", "m", "m"]}
    with pytest.raises(ValueError, match="index labels in a different order"):
        group_report(labels, labels, **report)


@pytest.mark.parametrize("wrap", [np.asarray, lazy], ids=["memory", "dask"])
def test_a_column_that_is_missing_is_named(wrap):
    labels, sex = wrap([0, 1, 1, 0]), wrap(["f", "f", "m", "m"])
    with pytest.raises(ValueError, match="y_true"):
        loss_parity_difference(None, wrap([0.5, 1, 2, 3]), sensitive_features=sex)
    with pytest.raises(ValueError, match="y_pred"):
        equalized_odds_difference(labels, None, sensitive_features=sex)
    with pytest.raises(ValueError, match="y_score"):
        loss_parity_difference(labels, None, sensitive_features=sex)


def test_metrics_of_ones_own_read_the_rows_of_each_possible_group():
    y_true, y_pred, _, _, weights, _ = people(0)
    share = generator().uniform(0.1, 0.9, y_true.size)
    groups = GroupProbabilities(np.c_[share, 1 - share], names=["f", "m"])

    def accuracy(true, predicted, sample_weight):
        return np.average(true == predicted, weights=sample_weight)

    report = group_report(
        y_true,
        y_pred,
        sensitive_features=groups,
        sample_weight=weights,
        metrics={"own": accuracy},
        method=None,
    )
    assert report["own"].to_numpy() == pytest.approx(report["accuracy"].to_numpy(), rel=1e-12)


def test_in_one_keeps_strata():
    sex, strata = ["f", "m", "f", "m"], ["x", "x", "y", "y"]
    rows = MeasuredRows.of_labels([1, 0, 1, 0], [1, 1, 0, 0], sex, strata)
    one = rows.in_one()
    assert one.groups.cells.names == ("all (stratum x)", "all (stratum y)")
    np.testing.assert_array_equal(one.table().weights[0], rows.table().weights[:2].sum(axis=0))
    assert MeasuredRows.of_labels([1, 0], [1, 1], ["f", "m"]).in_one().groups.cells.names == (
        "all",
    )
