"""Rows that belong together: sums over units, and how many rows they are worth."""

import numpy as np
import pytest
from scipy import special, stats

from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.rates import CellMeans, Moments, effective_size
from skfair.groups.row_units import read_units
from skfair.metrics import disparity_test, disparity_upper_bound
from tests.messages import messages
from tests.seeds import generator

RATES = ("selection_rate", "true_positive_rate", "positive_predictive_value", "accuracy")


def rows(seed=0, n=400, n_units=60):
    rng = generator(seed)
    units = rng.integers(0, n_units, n)
    weights = rng.choice([0.5, 1.0, 3.0], n)
    groups = np.where(units % 3 == 0, "f", "m")
    groups[:20] = "f"  # some units lie in both
    true, predicted = rng.integers(0, 2, (2, n))
    return true, predicted, groups, weights, units


def lazy(column):
    return pytest.importorskip("dask.array").from_array(np.array(column), chunks=2)


def naive_size(hits, counted, weights, units):
    """What the rows of a rate are worth, unit by unit."""
    own = weights * counted
    total, mean = own.sum(), (own * hits).sum() / own.sum()
    of_unit = [(own[units == u].sum(), (own * hits)[units == u].sum()) for u in np.unique(units)]
    sizes, sums = np.array([pair for pair in of_unit if pair[0] > 0]).T
    kish = total**2 / (sizes**2).sum()
    residuals = sums - mean * sizes
    robust = mean * (1 - mean) * total**2 / (residuals**2).sum()
    hit_units = sums.sum() ** 2 / (sums**2).sum()
    miss_units = (sizes - sums).sum() ** 2 / ((sizes - sums) ** 2).sum()
    freedom = min(kish, 2 * min(hit_units, miss_units)) - 1
    shrunk = (stats.norm.ppf(0.975) / special.stdtrit(freedom, 0.975)) ** 2
    of_units = max(robust * shrunk * (kish - 1) / kish, min(robust, kish))
    square = own**2
    by_rows = mean * (1 - mean) * total**2 / (square * (hits - mean) ** 2).sum()
    return min(of_units, total**2 / square.sum(), by_rows)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("rate", RATES)
def test_a_rate_is_worth_what_its_units_are(rate, is_weighted):
    true, predicted, groups, weights, units = rows()
    weights = weights if is_weighted else None
    table = MeasuredRows.of_labels(true, predicted, groups, None, weights, units=units).table()
    found = table.means(rate).n_effective
    hits = {"accuracy": true == predicted, "positive_predictive_value": true == 1}
    counted = {"true_positive_rate": true == 1, "positive_predictive_value": predicted == 1}
    for cell, name in enumerate(("f", "m")):
        inside = groups == name
        own = np.ones(true.size) if weights is None else weights
        counts = counted.get(rate, np.ones(true.size, bool))[inside]
        hit = hits.get(rate, predicted == 1)[inside]
        wanted = naive_size(hit, counts, own[inside], units[inside])
        assert found[cell] == pytest.approx(wanted, rel=1e-12)


def test_units_of_one_row_each_change_nothing():
    true, predicted, groups, weights, _ = rows()
    each = generator(1).permutation(true.size)
    assert read_units(each, true.size) is None
    for own in (None, weights):
        plain = MeasuredRows.of_labels(true, predicted, groups, None, own).table()
        alone = MeasuredRows.of_labels(true, predicted, groups, None, own, units=each).table()
        np.testing.assert_array_equal(plain.counts, alone.counts)


def test_repeating_every_row_adds_nothing_if_units_say_so():
    """Ten copies of everybody are as many people as before."""
    _, predicted, groups, _, _ = rows(n=300)
    person, k = np.arange(300), 10
    once = disparity_upper_bound(
        "demographic_parity", None, predicted, sensitive_features=groups, method="melded"
    )
    repeated = disparity_upper_bound(
        "demographic_parity",
        None,
        np.repeat(predicted, k),
        sensitive_features=np.repeat(groups, k),
        units=np.repeat(person, k),
        method="melded",
    )
    assert repeated == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize(
    "metric",
    [
        *("statistical_parity_gap", "mean_score_difference"),
        *("group_auc_gap", "intra_group_pairwise_gap"),
    ],
)
def test_copies_of_scores_add_nothing_either(metric):
    # Both groups have the same scores but for a shift, which is less than the limit.
    groups, true = np.arange(200) % 2, np.arange(200) // 2 % 2
    scores = np.repeat(generator(3).normal(size=100), 2) + 0.1 * groups
    k, options = 5, {"max_disparity": 0.3}
    once = disparity_test(metric, true, scores, sensitive_features=groups, **options)
    y, s, g, person = (np.repeat(column, k) for column in (true, scores, groups, np.arange(200)))
    plain = disparity_test(metric, y, s, sensitive_features=g, **options)
    by_person = disparity_test(metric, y, s, sensitive_features=g, units=person, **options)
    assert by_person.statistic == pytest.approx(once.statistic, abs=1e-12)
    assert by_person.p_value == pytest.approx(once.p_value, rel=2e-2)
    assert plain.p_value < 0.9 * by_person.p_value


def test_the_order_of_rows_and_the_names_of_units_change_nothing():
    true, predicted, groups, _, units = rows()
    order = generator(2).permutation(true.size)
    options = {"max_disparity": 0.2}
    one = disparity_test(
        "equal_opportunity", true, predicted, sensitive_features=groups, units=units, **options
    )
    other = disparity_test(
        "equal_opportunity",
        true[order],
        predicted[order],
        sensitive_features=groups[order],
        units=[f"person {100 - u}" for u in units[order]],
        **options,
    )
    assert one.p_value == pytest.approx(other.p_value, rel=1e-12)


def test_merged_cells_are_on_the_safe_side():
    """A unit that lies in several cells is worth no more after they are added up than at once."""
    _, predicted, _, _, units = rows()
    together, cells = read_units(units, predicted.size), np.arange(predicted.size) % 3
    hits = predicted == 1
    parts = CellMeans.of_rows(hits, None, cells, 3, units=together)
    whole = CellMeans.of_rows(hits, None, np.zeros_like(cells), 1, units=together)
    merged = parts.merged(np.zeros(3, np.int64), 1)
    np.testing.assert_array_equal(merged.sums[:2], whole.sums[:2])
    assert (merged.sums[2, [0, 2]] >= whole.sums[2, [0, 2]]).all()
    assert merged.n_effective[0] <= whole.n_effective[0]
    within = CellMeans.of_rows(hits, None, units % 3, 3, units=together)  # each unit in one cell
    merged = within.merged(np.zeros(3, np.int64), 1)
    np.testing.assert_allclose(merged.sums, whole.sums)


def test_a_rate_that_nobody_varies_counts_people():
    rows, nothing = Moments(np.array([30.0]), *np.zeros((2, 1))), np.zeros((2, 1))
    assert effective_size(rows, rows, Moments(np.array([90.0]), *nothing)) == 10


def judged(units, columns=(0, 1, 0, 1)):
    given = {"sensitive_features": columns, "max_disparity": 0.1, "units": units}
    disparity_test("demographic_parity", None, columns, **given)


test_bad_units_are_named = messages(
    (ValueError, "units has 1 missing", lambda: judged([1, None, 2, 2])),
    (ValueError, "units has 3 rows", lambda: judged([1, 2, 3])),
    (TypeError, "is a name", lambda: judged("person")),
    (TypeError, "compute", lambda: judged([0, 0, 1, 1], lazy([0, 1, 0, 1]))),
)


def test_people_who_repeat_mislead_no_more_than_others():
    """At a disparity that equals the limit few samples pass; row by row many do."""
    rng, passed, n_samples = generator(0), np.zeros(2, int), 120
    person = np.repeat(np.arange(150), 100)
    for _ in range(n_samples):
        selected = (rng.random(150) < 0.3 + 0.1 * (np.arange(150) % 2))[person]
        options = {"sensitive_features": person % 2, "max_disparity": 0.1}
        for k, units in enumerate((None, person)):
            found = disparity_test("demographic_parity", None, selected, units=units, **options)
            passed[k] += found.is_within
    most = stats.binom.isf(1e-7, n_samples, 0.05)
    assert passed[1] <= most < passed[0]
