"""Reports, noise floors and sample sizes count people where their rows repeat."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import accuracy_score

from skfair import GroupProbabilities
from skfair.metrics import (
    demographic_parity_difference,
    disparity_bounds,
    disparity_test,
    fairness_report,
    group_report,
    noise_floor,
    sample_size,
    statistical_parity_gap,
)
from tests.seeds import generator


def people(n=240, k=1, seed=0):
    """Everybody's rows: true and predicted labels, group, score and person."""
    rng = generator(seed)
    groups = np.where(rng.random(n) < 0.4, "f", "m")
    true, predicted = rng.integers(0, 2, (2, n))
    once = true, predicted, groups, rng.normal(size=n), np.arange(n)
    return tuple(np.repeat(column, k) for column in once)


def visits(n=400, n_units=70, seed=1):
    """Rows of people who have several, in more than one age band."""
    rng = generator(seed)
    bands, weights = rng.choice(["young", "old"], n), rng.choice([0.5, 1.0, 3.0], n)
    true, predicted = rng.integers(0, 2, (2, n))
    return true, predicted, bands, weights, rng.integers(0, n_units, n)


def widths(report, name="selection_rate"):
    return (report[f"{name}_high"] - report[f"{name}_low"]).to_numpy()


def test_repeating_everybody_leaves_the_intervals_of_rates():
    true, predicted, groups, _, _ = people()
    once = group_report(true, predicted, sensitive_features=groups, reference="m")
    true, predicted, groups, _, person = people(k=5)
    repeated = group_report(true, predicted, sensitive_features=groups, reference="m", units=person)
    assert (repeated["n"] == 5 * once["n"]).all()
    assert (repeated["n_units"] == once["n"]).all()
    columns = list(once.columns.drop("n"))
    np.testing.assert_allclose(repeated[columns], once[columns], atol=1e-12)


def test_the_whole_sample_counts_a_unit_of_several_groups_once():
    true, predicted, bands, weights, units = visits()
    strata = np.arange(true.size) % 2
    for own in (None, weights):
        options = {"sample_weight": own, "units": units, "control_features": strata}
        report = group_report(true, predicted, sensitive_features=bands, **options)
        whole = group_report(true, predicted, sensitive_features=np.zeros(true.size), **options)
        found = report.xs("overall", level="group")
        np.testing.assert_allclose(found, whole.xs("overall", level="group"), atol=1e-12)
        assert found["n_units"].tolist() == [np.unique(units[strata == s]).size for s in (0, 1)]


@pytest.mark.parametrize("is_weighted", [False, True])
def test_resampled_tables_know_no_order_of_rows_and_no_names(is_weighted):
    true, predicted, bands, weights, units = visits()
    own = weights if is_weighted else np.ones(true.size)
    order = generator(2).permutation(true.size)
    names = np.array([f"person {100 - u}" for u in units])
    reports = [
        group_report(
            true[rows],
            predicted[rows],
            sensitive_features=bands[rows],
            sample_weight=own[rows] if is_weighted else None,
            method="bootstrap",
            units=together[rows],
            random_state=0,
        )
        for rows, together in ((np.arange(true.size), units), (order, names))
    ]
    np.testing.assert_allclose(*reports, rtol=1e-6)


def spread_of_bounds(columns, units):
    true, predicted, groups, _, _ = columns
    chances = np.where(groups == "f", 0.9, 0.1)
    known = GroupProbabilities({"f": chances, "m": 1 - chances})
    found = disparity_bounds(
        "demographic_parity",
        true,
        predicted,
        sensitive_features=known,
        units=units,
        random_state=0,
    )
    return (found["lower"] - found["lower_low"]).to_numpy()


def bootstrap(columns, units, name="selection_rate"):
    true, predicted, groups, _, _ = columns
    report = group_report(
        true,
        predicted,
        sensitive_features=groups,
        method="bootstrap",
        metrics={"hits": accuracy_score},
        n_bootstrap=150,
        random_state=0,
        units=units,
    )
    return widths(report, name)


def errors(columns, units):
    true, predicted, groups, scores, _ = columns
    report = fairness_report(
        true,
        predicted,
        y_score=scores,
        sensitive_features=groups,
        reference="m",
        n_bootstrap=150,
        random_state=0,
        units=units,
    )
    names = ["demographic_parity_difference", "intra_group_pairwise_gap", "wasserstein_gap"]
    return report.loc[names, "standard_error"].to_numpy()


@pytest.mark.parametrize(
    "measure",
    [bootstrap, lambda *rows: bootstrap(*rows, "hits"), errors, spread_of_bounds],
    ids=["rates", "own metrics", "gaps", "bounds"],
)
def test_resampled_people_vary_as_people_do(measure):
    """Sixteen copies of everybody seem to be four times as exact, but for units.

    Widths and errors of 150 resamples have an error of a tenth.
    """
    once, repeated = measure(people(), None), people(k=16)
    by_person, by_row = (measure(repeated, units) for units in (repeated[-1], None))
    assert ((once / 2 < by_person) & (by_person < 2 * once)).all()
    assert (by_row < 0.5 * by_person).all()


def test_pooled_estimates_count_people():
    sex, age = generator(4).choice(["a", "b"], (2, 240))
    predicted, both = people()[1], pd.DataFrame({"sex": sex, "age": age})
    how = {"estimate": "pooled"}
    once = group_report(None, predicted, sensitive_features=both, **how)
    many = both.loc[both.index.repeat(6)].reset_index(drop=True)
    repeated = np.repeat(predicted, 6)
    found = group_report(
        None, repeated, sensitive_features=many, units=np.repeat(np.arange(240), 6), **how
    )
    np.testing.assert_allclose(found[once.columns[1:]], once[once.columns[1:]], atol=1e-9)


def dealt(groups, units, scores=None, n=10, **options):
    """List the groups that a noise floor deals out."""
    seen = []

    def listen(y_true, y_score, *, sensitive_features, **_):
        seen.append(np.asarray(sensitive_features))
        return 0.0

    scores = np.zeros(groups.size) if scores is None else scores
    noise_floor(
        listen,
        None,
        scores,
        sensitive_features=groups,
        units=units,
        n_permutations=n,
        random_state=0,
        **options,
    )
    return seen


def test_the_rows_of_a_unit_are_dealt_out_together():
    rng = generator(5)
    units = rng.permutation(np.repeat(np.arange(30), 4))
    groups = np.where(units < 10, "f", "m")
    seen = dealt(groups, units)
    for own in seen:
        of_units = [set(own[units == u]) for u in range(30)]
        assert all(len(groups_of_unit) == 1 for groups_of_unit in of_units)
        assert sum(groups_of_unit == {"f"} for groups_of_unit in of_units) == 10
    assert any((own != groups).any() for own in seen)


def test_a_unit_with_more_rows_repeats_the_groups_that_it_gets():
    units, groups = np.array([0, 0, 0, 0, 0, 1, 1]), np.array(list("aaaaabc"))
    for own in dealt(groups, units):
        parts = ["".join(sorted(own[units == unit])) for unit in (0, 1)]
        assert parts in (["aaaaa", "bc"], ["bbbcc", "aa"], ["bbccc", "aa"])


def test_units_are_dealt_out_within_strata():
    units, strata = np.arange(60) // 3, np.arange(60) % 3
    groups = np.where(strata == 0, "f", "m")  # each unit has rows of all strata
    for own in dealt(groups, units, control_features=strata):
        np.testing.assert_array_equal(own, groups)


@pytest.mark.parametrize("metric", [demographic_parity_difference, statistical_parity_gap])
def test_the_noise_of_people_is_seen(metric):
    """Sixteen and twelve of thirty people are near, but not if each is fifty people."""
    groups, person = np.repeat(["f", "m"], 30 * 50), np.arange(60 * 50) // 50
    selected = (person % 30 < np.where(groups == "f", 16, 12)).astype(int)
    scores = person % 30 + np.where(groups == "f", 4.5, 0)
    values = selected if metric is demographic_parity_difference else scores
    measured = metric(None, values, sensitive_features=groups)
    by_row, by_person = (
        noise_floor(
            metric, None, values, sensitive_features=groups, units=units, n_permutations=200
        ).upper
        for units in (None, person)
    )
    assert by_row < measured < by_person


def test_sample_sizes_of_people_with_several_rows():
    options = {"rates": 0.3, "shares": (0.3, 0.7)}
    one = sample_size(0.1, **options)
    alike = sample_size(0.1, rows_per_unit=8, **options)
    partly = sample_size(0.1, rows_per_unit=8, correlation=0.2, **options)
    independent = sample_size(0.1, rows_per_unit=8, correlation=0.0, **options)
    np.testing.assert_array_equal(alike, one)
    np.testing.assert_array_equal(partly, np.ceil(one * (1 + 7 * 0.2) / 8))
    np.testing.assert_array_equal(independent, np.ceil(one / 8))


def test_so_many_people_as_are_said_show_the_limit():
    k, rho, rate, shown = 6, 0.3, 0.4, 0
    sizes = sample_size(0.15, rates=rate, rows_per_unit=k, correlation=rho)
    person = np.repeat(np.arange(sizes.sum()), k)
    groups, scale = np.repeat(["a", "b"], k * sizes), (1 - rho) / rho
    for seed in range(100):
        rng = generator(seed)
        chances = rng.beta(rate * scale, (1 - rate) * scale, sizes.sum())
        predicted = rng.random(person.size) < chances[person]
        shown += disparity_test(
            "demographic_parity",
            None,
            predicted,
            sensitive_features=groups,
            max_disparity=0.15,
            units=person,
        ).is_within
    # At a power of 0.8; if rows were people it would be half of it.
    assert binom.ppf(1e-7, 100, 0.8) <= shown <= binom.isf(1e-7, 100, 0.8)


def test_pictures_pass_units_on():
    pytest.importorskip("matplotlib")
    inspection = pytest.importorskip("skfair.inspection")
    true, predicted, groups, scores, person = people(k=6)
    report = group_report(true, predicted, sensitive_features=groups, units=person)
    rates = inspection.GroupRatesDisplay.from_predictions(
        true, predicted, sensitive_features=groups, units=person, rates="selection_rate"
    )
    np.testing.assert_allclose(rates.low.ravel(), report["selection_rate_low"][:-1])
    chances = 1 / (1 + np.exp(-scores))
    by_row, by_person = (
        inspection.GroupCalibrationDisplay.from_predictions(
            true, chances, sensitive_features=groups, units=units
        )
        for units in (None, person)
    )
    for i in range(2):
        np.testing.assert_allclose(by_row.shares[i], by_person.shares[i])
        assert (by_row.high[i] - by_row.low[i] < by_person.high[i] - by_person.low[i]).all()


def test_units_of_dask_collections_are_dealt_out_together():
    da = pytest.importorskip("dask.array")
    _, predicted, groups, _, person = people(n=40, k=3)
    lazy = [da.from_array(column, chunks=50) for column in (predicted, groups)]
    floors = [
        noise_floor(
            demographic_parity_difference,
            None,
            labels,
            sensitive_features=own,
            units=person,
            random_state=0,
            n_permutations=5,
        )
        for labels, own in (lazy, (predicted, groups))
    ]
    np.testing.assert_allclose(floors[0].values, floors[1].values)
