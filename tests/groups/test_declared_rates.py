"""Rates from their entries: scikit-learn's values, variances, and every client that follows."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import f1_score, fbeta_score, precision_score, recall_score

from skfair.groups.declared_rates import RATES, hits_and_rows, rate_named, rates_of
from skfair.groups.estimates import Estimate
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.table import GroupTable
from skfair.metrics import (
    disparity_test,
    disparity_upper_bound,
    group_report,
    make_group_metric,
)
from skfair.metrics.labels import CRITERIA, LABEL_METRICS
from skfair.metrics.own_metrics import rate_of_metric
from tests.seeds import generator

DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor
audit = pytest.importorskip("skfair.report").audit

F_SCORES = [f1_score, *(partial(fbeta_score, beta=beta) for beta in (0.5, 1 / 3, 2, 7.25))]
TABLES = np.vstack([np.eye(4), generator().integers(0, 3, (400, 4))]).reshape(-1, 2, 2)
TABLES = TABLES[TABLES.any(axis=(1, 2))]
TRUE, PREDICTED = np.repeat([0, 1], 2), np.tile([0, 1], 2)


@pytest.mark.parametrize("metric", [*F_SCORES, precision_score, recall_score])
def test_a_declared_rate_is_the_metric_of_scikit_learn(metric):
    name = rate_of_metric(metric)
    expected = [
        metric(TRUE, PREDICTED, sample_weight=table.ravel(), zero_division=np.nan)
        for table in TABLES
    ]
    assert rates_of(TABLES, name) == pytest.approx(expected, nan_ok=True, abs=1e-12)
    assert np.isnan(expected).any()


@pytest.mark.parametrize(
    "metric",
    [
        partial(f1_score, average="macro"),
        partial(f1_score, zero_division=0.0),  # has a value where the rate has none
        partial(fbeta_score, beta=0),
        fbeta_score,  # has no value without beta
        lambda y_true, y_pred: 1.0,
    ],
)
def test_other_metrics_are_none(metric):
    assert rate_of_metric(metric) == ""


@pytest.mark.parametrize("name", RATES)
def test_what_follows_from_the_entries(name):
    """By counting: the class of the denominator, and rates that one decision makes useless."""
    rate, values = RATES[name], rates_of(TABLES, name)
    for column, axis in (("y_true", 1), ("y_pred", 0)):
        is_whole_class = {0.0, rate.below.sum() * 1.0} == set(2.0 * rate.below.max(axis=axis))
        assert (rate.given == column) == is_whole_class
    for decision in (0, 1):
        same = TABLES[:, :, 1 - decision].sum(axis=1) == 0
        known = values[same & np.isfinite(values)]
        if rate.needs_both_decisions:
            assert np.unique(known).size <= 1
        elif name != "selection_rate":  # is 0 or 1 as well, and truly equal
            assert np.unique(known).size != 1
    assert rate.is_share == (np.nanmax(values) <= 1)
    assert rate.says.endswith(".")
    assert rate.does_not_say.endswith(".")


@pytest.mark.parametrize("beta", [0.5, 1, 2])
@pytest.mark.parametrize("weights", ["equal", "drawn"])
def test_the_variance_of_an_f_score_is_the_one_of_many_samples(beta, weights):
    rng, name, n, n_samples = generator(), f"f{beta:g}_score", 400, 1500
    values, said = np.empty(n_samples), np.empty(n_samples)
    for i in range(n_samples):
        outcomes = rng.choice(4, n, p=[0.5, 0.1, 0.1, 0.3])
        own = None if weights == "equal" else rng.uniform(0.2, 2, n)
        rows = MeasuredRows.of_labels(outcomes // 2, outcomes % 2, ["all"] * n, None, own)
        means = rows.table().means(name)
        values[i] = means.means[0]
        said[i] = values[i] * (1 - values[i]) / means.n_effective[0]
    # The variance of 1,500 values has an error of 3.7%, and the linearised one is no more exact.
    assert said.mean() == pytest.approx(values.var(), rel=0.2)


def people(n=900, key=0):
    rng = generator(key)
    sex, y = rng.choice(["f", "m"], n), rng.integers(0, 2, n)
    right = rng.random(n) < np.where(sex == "f", 0.8, 0.7)
    return y, np.where(right, y, 1 - y), sex


@pytest.mark.parametrize("metric", [*F_SCORES, precision_score])
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("has_units", [False, True])
def test_report_test_bound_and_audit_say_one_thing(metric, is_weighted, has_units):
    """They all read the declared rate, and none resamples."""
    y, p, sex = people()
    own, who = make_group_metric(metric), {"sensitive_features": sex}
    if is_weighted:
        who["sample_weight"] = generator(1).uniform(0.5, 2, y.size)
    if has_units:
        who["units"] = np.arange(y.size) // 3
    rows = MeasuredRows.of_labels(y, p, **who)
    estimate = Estimate.of(rows.table(), "difference", (rate_of_metric(metric),))
    plain = {name: own for name, own in who.items() if name != "units"}
    assert estimate.value == pytest.approx(own(y, p, **plain))
    [gap] = audit(y, p, metrics=[own], **who).gaps.to_dict("records")
    assert gap["value"] == pytest.approx(estimate.value)
    assert (gap["value_low"], gap["value_high"]) == pytest.approx(estimate.interval(0.95))
    bound = disparity_upper_bound(own, y, p, **who)
    assert bound == pytest.approx(estimate.upper_bound(0.95), abs=1e-6)
    for limit in (0.98 * bound, 1.02 * bound):
        assert disparity_test(own, y, p, max_disparity=limit, **who).is_within == (limit > bound)
    report = group_report(y, p, metrics={"own": metric}, **who)
    means = rows.table().means(rate_of_metric(metric))
    assert np.array([report["own_low"][:2], report["own_high"][:2]]) == pytest.approx(
        np.array(means.interval(0.95))
    )


@pytest.mark.parametrize("method", ["wilson", "bootstrap", None])
def test_reports_give_declared_rates_the_intervals_that_were_asked_for(method):
    """Wilson's need no resamples, and with the bootstrap they are about as wide."""
    y, p, sex = people()
    metric = {"own": precision_score}
    report = group_report(y, p, sensitive_features=sex, metrics=metric, method=method)
    assert ("own_low" in report) == (method is not None)
    if method is None:
        return
    rate = report["positive_predictive_value_high"] - report["positive_predictive_value_low"]
    own = report["own_high"] - report["own_low"]
    if method == "wilson":
        assert own.to_numpy() == pytest.approx(rate.to_numpy())
        none = group_report(y, p, sensitive_features=sex, metrics=metric, n_bootstrap=0)
        assert none["own_low"].to_numpy() == pytest.approx(report["own_low"].to_numpy())
    else:
        assert own.to_numpy() == pytest.approx(rate.to_numpy(), rel=0.35)


def test_f_scores_are_compared_as_ratios_and_by_their_largest_value():
    y, p, sex = people()
    of = [f1_score(y[sex == one], p[sex == one]) for one in "fm"]
    given = {"sensitive_features": sex, "max_disparity": 0.9}
    ratio = disparity_test(
        make_group_metric(f1_score, compare="ratio"), y, p, sensitive_features=sex, min_ratio=0.1
    )
    assert ratio.statistic == pytest.approx(1 - min(of) / max(of))
    largest = disparity_test(make_group_metric(f1_score, compare="largest"), y, p, **given)
    assert largest.statistic == pytest.approx(max(of))


@pytest.mark.parametrize("labels", [("no", "yes"), ("yes", "no"), (1, 2), (True, False)])
def test_either_label_may_be_positive(labels):
    y, p, sex = people()
    names = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    own = make_group_metric(partial(f1_score, pos_label=labels[1]))
    by_codes = disparity_upper_bound(make_group_metric(f1_score), y, p, sensitive_features=sex)
    bound = disparity_upper_bound(own, names[y], names[p], sensitive_features=sex)
    assert bound == pytest.approx(by_codes)
    plain = make_group_metric(f1_score)
    if labels != (True, False):
        given = {"sensitive_features": sex, "pos_label": labels[1]}
        assert disparity_upper_bound(plain, names[y], names[p], **given) == bound


WATCHED = [
    name.removesuffix("_difference")
    for name, spec in LABEL_METRICS.items()
    if spec.kind == "difference" and spec.rates != ("error_ratio",)
]


@pytest.mark.parametrize(
    "constraint", [*WATCHED, *map(make_group_metric, [*F_SCORES, precision_score, recall_score])]
)
def test_a_monitor_watches_every_share_of_rows_and_every_f_score(constraint):
    y, p, sex = people()
    monitor = DisparityMonitor(constraint, max_disparity=0.9)
    for part in np.array_split(np.arange(y.size), 3):
        monitor.update(y[part], p[part], sensitive_features=sex[part])
    again = DisparityMonitor.from_json(monitor.to_json())
    table = MeasuredRows.of_labels(y, p, sex).table()
    for rate, values in again.rates_.items():
        expected = rates_of(table.weights, rate)
        assert [values[one] for one in "fm"] == pytest.approx(expected.tolist())
    assert not monitor.alarm_


def test_every_criterion_has_words_and_every_rate_its_entries():
    for name in CRITERIA:
        assert any(f"{name}_{kind}" in LABEL_METRICS for kind in ("difference", "gap"))
    above, below = hits_and_rows(np.ones((2, 2)), "f2_score")
    assert (above, below) == (1.0, pytest.approx(2.0))
    with pytest.raises(KeyError):
        rate_named("f_score")


def test_parts_of_rows_add_up_in_merged_cells():
    """An F score of larger groups follows from the sums of smaller ones."""
    y, p, sex = people()
    age = generator(2).choice(["old", "young"], y.size)
    found = audit(
        y, p, sensitive_features={"sex": sex, "age": age}, metrics=[make_group_metric(f1_score)]
    )
    shown = found.rates.query("measure == 'f1_score'")
    for column in (sex, age):
        for group in np.unique(column):
            [value] = shown.query("group == @group")["value"]
            assert value == pytest.approx(f1_score(y[column == group], p[column == group]))
    assert isinstance(MeasuredRows.of_labels(y, p, sex).table(), GroupTable)
