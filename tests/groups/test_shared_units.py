"""Units with rows in several groups: how rates vary together, against other ways to compute it."""

import numpy as np
import pytest
from scipy import stats

from skfair.groups.compared_rates import pairs_of
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.shared_units import SharedUnits
from skfair.metrics import disparity_test, disparity_upper_bound, group_report
from tests.seeds import generator


def pairs(rng, n, first, second, both):
    """Decisions on n units under two names: chances of either alone, and of both."""
    chances = [first - both, second - both, both, 1 - first - second + both]
    kind = rng.choice(4, n, p=chances)
    decisions = np.concatenate([np.isin(kind, (0, 2)), np.isin(kind, (1, 2))]).astype(int)
    return decisions, np.repeat(["a", "b"], n), np.tile(np.arange(n), 2)


def several(n_units=60, seed=0):
    """True and predicted labels, three groups, units with any number of rows in each, weights."""
    rng = generator(seed)
    units = rng.integers(0, n_units, 5 * n_units)
    groups, weights = rng.choice(["a", "b", "c"], units.size), rng.choice([0.5, 1, 2], units.size)
    own = rng.random(n_units)[units]
    true, predicted = (rng.random((2, units.size)) < own).astype(int)
    return true, predicted, groups, units, weights


def shared(true, predicted, groups, units, weights=None, rate="selection_rate"):
    means = (
        MeasuredRows.of_labels(true, predicted, groups, None, weights, units=units)
        .table()
        .means(rate)
    )
    return means, means.shared


def test_pairs_have_the_variance_of_pairs():
    """With b and c pairs that differ it is (b + c - (b - c)^2 / n) / n^2, as in McNemar's test."""
    decisions, groups, units = pairs(generator(), 250, 0.5, 0.44, 0.42)
    first, second = decisions.reshape(2, -1)
    b, c, n = (first > second).sum(), (second > first).sum(), first.size
    means, found = shared(decisions, decisions, groups, units)
    joint = found.covariances.toarray()
    assert joint[0, 0] + joint[1, 1] - 2 * joint[0, 1] == pytest.approx(
        (b + c - (b - c) ** 2 / n) / n**2
    )
    one, other = np.array([0]), np.array([1])
    assert found.overlap(one, other) == pytest.approx(1 / n)
    lessened = (np.cov(first, second, bias=True)[0, 1] - 0.5 / n) / n
    errors = np.sqrt(means.means * (1 - means.means) / n)
    assert means.n_effective.tolist() == [n, n]
    assert found.correlations(one, other) == pytest.approx(lessened / errors.prod())


@pytest.mark.parametrize("rate", ["selection_rate", "true_positive_rate"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_covariances_are_those_of_influences(rate, is_weighted):
    true, predicted, groups, units, weights = several()
    _, found = shared(true, predicted, groups, units, weights if is_weighted else None, rate)
    counted = true == 1 if rate == "true_positive_rate" else np.ones(true.size, bool)
    weights = weights * counted if is_weighted else counted.astype(float)
    influences, shares = np.zeros((2, units.max() + 1, 3))
    for k, group in enumerate("abc"):
        own = np.where(groups == group, weights, 0.0)
        for row in np.flatnonzero(own):
            mean = np.average(predicted, weights=own)
            influences[units[row], k] += own[row] * (predicted[row] - mean) / own.sum()
            shares[units[row], k] += own[row] / own.sum()
    np.testing.assert_allclose(found.covariances.toarray(), influences.T @ influences, atol=1e-15)
    np.testing.assert_allclose(found.overlaps.toarray(), shares.T @ shares, atol=1e-15)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_error_of_a_difference_is_that_of_resampled_units(is_weighted):
    true, predicted, groups, units, weights = several(300)
    weights = weights if is_weighted else np.ones(units.size)
    _, found = shared(true, predicted, groups, units, weights if is_weighted else None)
    joint = found.covariances.toarray()
    hits, rows = np.zeros((2, 3, 300))
    for k, group in enumerate("abc"):
        own = np.where(groups == group, weights, 0.0)
        hits[k], rows[k] = (np.bincount(units, by, 300) for by in (own * predicted, own))

    def difference(drawn, axis=-1):
        return hits[0][drawn].sum(axis) / rows[0][drawn].sum(axis) - (
            hits[1][drawn].sum(axis) / rows[1][drawn].sum(axis)
        )

    resampled = stats.bootstrap(
        (np.arange(300),), difference, n_resamples=2000, vectorized=True, rng=generator("resamples")
    )
    error = np.sqrt(joint[0, 0] + joint[1, 1] - 2 * joint[0, 1])
    # 2,000 resamples know their spread within 1.6%
    assert error == pytest.approx(resampled.standard_error, rel=0.12)
    apart = np.sqrt(joint[0, 0] + joint[1, 1])
    assert error < 0.9 * apart


def test_groups_without_a_common_unit_are_independent():
    true, predicted, groups, units, _ = several()
    of_groups = 3 * units + np.unique(groups, return_inverse=True)[1]
    _, found = shared(true, predicted, groups, of_groups)
    assert found is None


def test_rows_of_people_who_may_be_in_either_group_are_not_shared():
    """Probabilities of groups put each row into every group, with one decision."""
    from skfair import GroupProbabilities

    rng = generator()
    known = GroupProbabilities(rng.dirichlet([1, 1], 200), ["a", "b"])
    decisions, units = rng.integers(0, 2, 200), np.arange(200) // 2
    rows = MeasuredRows.of_labels(decisions, decisions, known, units=units)
    assert rows.table().means("selection_rate").shared is None


@pytest.mark.parametrize("kind", ["difference", "ratio", "overall", "mean"])
def test_neither_the_order_of_rows_nor_the_names_of_units_matter(kind):
    _, predicted, groups, units, weights = several()
    order = generator(kind).permutation(units.size)
    names = np.array([f"unit {1000 - unit}" for unit in units])
    how = {"sample_weight": weights} if kind != "mean" else {}
    found = []
    for rows, of_units in ((slice(None), units), (order, names)):
        options = {name: own[rows] for name, own in how.items()}
        if kind == "overall":
            options["reference"] = "overall"
        metric = "mean_score_difference" if kind == "mean" else "demographic_parity"
        options["comparison"] = "ratio" if kind == "ratio" else "difference"
        scores = predicted + 0.5 if kind == "mean" else predicted
        found.append(
            disparity_upper_bound(
                metric,
                None,
                scores[rows],
                sensitive_features=groups[rows],
                units=of_units[rows],
                **options,
            )
        )
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_copies_of_every_row_add_nothing():
    decisions, groups, units = pairs(generator(), 120, 0.5, 0.45, 0.42)
    bounds = [
        disparity_upper_bound(
            "demographic_parity",
            None,
            np.repeat(decisions, k),
            sensitive_features=np.repeat(groups, k),
            units=np.repeat(units, k),
        )
        for k in (1, 4)
    ]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-6)


@pytest.mark.parametrize("n", [100, 1000])
def test_pairs_that_are_all_alike_show_a_limit_of_three_over_n(n):
    decisions, groups, units = pairs(generator(n), n, 0.5, 0.5, 0.5)
    how = {"sensitive_features": groups}
    bound = disparity_upper_bound("demographic_parity", None, decisions, units=units, **how)
    # P(no pair differs) = 5% if a share of 1 - 0.05^(1 / n) of them does
    exact = 1 - 0.05 ** (1 / n)
    assert exact < bound < 1.5 * exact
    assert bound < 0.5 * disparity_upper_bound("demographic_parity", None, decisions, **how)


def test_opposed_pairs_show_less_than_independent_rows():
    """The decision on one name is the opposite of that on the other."""
    first = np.tile([0, 1], 200)
    decisions, groups = np.concatenate([first, 1 - first]), np.repeat(["a", "b"], 400)
    units, how = np.tile(np.arange(400), 2), {"sensitive_features": groups, "method": "melded"}
    apart, together = (
        disparity_upper_bound("demographic_parity", None, decisions, units=own, **how)
        for own in (None, units)
    )
    assert 1.3 < together / apart < 1.5  # the root of 2, as the variance is twice as large


def newcombe(first, second):
    """Newcombe's interval of a difference of paired shares (1998, method 10), from a table."""
    n = first.size
    e, f, g = (first & second).sum(), (first & ~second).sum(), (~first & second).sum()
    h, z = n - e - f - g, stats.norm.ppf(0.975)

    def ends(hits):
        centre, half = hits + z**2 / 2, z * np.sqrt(hits * (n - hits) / n + z**2 / 4)
        return (centre - half) / (n + z**2), (centre + half) / (n + z**2)

    phi = e * h - f * g
    phi = max(phi - n / 2, 0) if phi > 0 else phi
    phi = phi / np.sqrt(float((e + f) * (g + h) * (e + g) * (f + h)))
    p, q = (e + f) / n, (e + g) / n
    (p_low, p_high), (q_low, q_high) = ends(e + f), ends(e + g)
    below = (p - p_low) ** 2 - 2 * phi * (p - p_low) * (q_high - q) + (q_high - q) ** 2
    above = (p_high - p) ** 2 - 2 * phi * (p_high - p) * (q - q_low) + (q - q_low) ** 2
    return p - q - np.sqrt(below), p - q + np.sqrt(above)


@pytest.mark.parametrize("both", [0.28, 0.12, 0.02])
def test_a_report_has_the_interval_of_the_test_for_pairs(both):
    """At its ends the test of each side has the level; it is nearly the interval of Newcombe."""
    decisions, groups, units = pairs(generator(both), 300, 0.3, 0.4, both)
    report = group_report(None, decisions, sensitive_features=groups, units=units, reference="b")
    ends = [f"selection_rate_difference_{end}" for end in ("low", "high")]
    low, high = report.loc["a", ends].astype(float)
    means, _ = shared(decisions, decisions, groups, units)
    groups_of = MeasuredRows.of_labels(decisions, decisions, groups, units=units).table().groups
    pair = pairs_of(means, groups_of, "selection_rate", "b")
    assert pair.overlap > 0
    assert pair.at_least("melded", False, high) == pytest.approx(0.025, abs=1e-6)
    assert pair.reversed().at_least("melded", False, -low) == pytest.approx(0.025, abs=1e-6)
    first, second = decisions.reshape(2, -1).astype(bool)
    wanted = newcombe(first, second)
    np.testing.assert_allclose([low, high], wanted, atol=0.1 * (wanted[1] - wanted[0]))


def test_the_difference_of_paired_means_is_tested_as_pairs_are():
    rng = generator()
    own, n = rng.normal(size=200), 200
    scores = np.concatenate([own, own + rng.normal(0.1, 0.2, n)])
    groups, units = np.repeat(["a", "b"], n), np.tile(np.arange(n), 2)
    how = {"sensitive_features": groups, "max_disparity": 0.2}
    found = disparity_test("mean_score_difference", None, scores, units=units, **how)
    first, second = scores.reshape(2, -1)
    paired = stats.ttest_rel(second - 0.2, first, alternative="less").pvalue
    apart = disparity_test("mean_score_difference", None, scores, **how)
    # The bound of Gaffke adds one pair that is as far apart as any was.
    assert paired * (1 - 1e-9) <= found.p_value < 1e-3 < apart.p_value


def test_pairs_of_equal_scores_do_not_show_every_limit():
    scores, n = generator().random(100), 100
    bound = disparity_upper_bound(
        "mean_score_difference",
        None,
        np.tile(scores, 2),
        sensitive_features=np.repeat(["a", "b"], n),
        units=np.tile(np.arange(n), 2),
    )
    assert 2.5 / n < bound / np.ptp(scores) < 4 / n


def test_a_group_against_the_rest_is_tested_with_what_they_share():
    """With two groups the rest is the other one, and its share is one half."""
    decisions, groups, units = pairs(generator(), 200, 0.5, 0.45, 0.42)
    how = {"sensitive_features": groups, "units": units}
    to_other = disparity_test("demographic_parity", None, decisions, max_disparity=0.1, **how)
    to_all = disparity_test(
        "demographic_parity", None, decisions, max_disparity=0.05, reference="overall", **how
    )
    np.testing.assert_allclose(to_all.pairs["p_value"], to_other.p_value, rtol=1e-9)


def test_the_rest_is_known_as_well_as_if_it_were_one_group():
    """The peers of a group share units as well, so their rates are not independent."""
    rng = generator()
    own = (rng.random(300) < 0.4).astype(int)
    noise = rng.random((3, 300)) < 0.1
    decisions, units = (own ^ noise).ravel().astype(int), np.tile(np.arange(300), 3)
    groups = np.repeat(["a", "b", "c"], 300)
    how = {"units": units, "max_disparity": 0.05, "reference": "overall"}
    found = disparity_test("demographic_parity", None, decisions, sensitive_features=groups, **how)
    merged = np.where(groups == "a", "a", "rest")
    one = disparity_test("demographic_parity", None, decisions, sensitive_features=merged, **how)
    p, q = (t.pairs.set_index("first").loc["a", "p_value"] for t in (found, one))
    # As one group, the two rows of a unit in the rest count by their clusters, with Student's t.
    assert stats.norm.ppf(p) == pytest.approx(stats.norm.ppf(q), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "both", "n_pairs", "most"),
    [
        *[(0.46, 0.4, 0.38, 250, 0.96), (0.5, 0.5, 0.45, 250, 0.96), (0.4, 0.3, 0.3, 250, 0.96)],
        *[(0.5, 0.5, 0.05, 250, 0.96), (0.1, 0.06, 0.05, 4000, 0.96)],
        (0.1, 0.06, 0.05, 250, 0.99),  # only 15 pairs differ, and an exact interval covers more
    ],
)
def test_intervals_of_pairs_cover_and_tests_keep_their_size(first, second, both, n_pairs, most):
    rng, covered, passed, n_draws = generator((first, both)), 0, 0, 2000
    limit = max(abs(first - second), 0.02)
    at_limit = second + limit if first != second else first + 0.02
    for _ in range(n_draws):
        decisions, groups, units = pairs(rng, n_pairs, first, second, both)
        how = {"sensitive_features": groups, "units": units}
        row = group_report(None, decisions, reference="b", **how).loc["a"]
        low, high = (row[f"selection_rate_difference_{end}"] for end in ("low", "high"))
        covered += low <= first - second <= high
        decisions, groups, units = pairs(rng, n_pairs, at_limit, second, min(both, second))
        how = {"sensitive_features": groups, "units": units}
        found = disparity_test("demographic_parity", None, decisions, max_disparity=limit, **how)
        passed += found.is_within
    fewest, most = stats.binom.ppf([1e-6, 1 - 1e-6], n_draws, [0.94, most])
    assert fewest <= covered <= most
    assert passed <= stats.binom.ppf(1 - 1e-6, n_draws, 0.05)


def test_dense_and_sparse_sums_are_read_alike():
    _, found = shared(*several()[:4])
    dense = SharedUnits(found.covariances.toarray(), found.overlaps.toarray())
    first, second = np.meshgrid(np.arange(3), np.arange(3), indexing="ij")
    for one, other in (
        (found.correlations(first, second), dense.correlations(first, second)),
        (found.overlap(first, second), dense.overlap(first, second)),
    ):
        np.testing.assert_array_equal(one, other)
