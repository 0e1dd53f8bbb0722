"""Control features: every metric within strata is the worst of the strata, measured one by one."""

import inspect
from functools import partial

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

import skfair.metrics
from skfair.metrics import get_scorer_names
from tests.metrics.test_every_metric import measured
from tests.registries import LABEL_METRICS, LARGEST_RATES
from tests.seeds import generator

METRICS = {
    name: metric
    for name in skfair.metrics.__all__
    if inspect.isfunction(metric := getattr(skfair.metrics, name))
    and "control_features" in inspect.signature(metric).parameters
    and not name.endswith("_report")
    and name not in ("noise_floor", "disparity_test", "disparity_upper_bound")
}
LARGEST = {*LARGEST_RATES, "largest_group_loss"}
each_metric = pytest.mark.parametrize("name", METRICS)


def case(seed, n=240):
    """Rows whose strata lack no group, class or prediction, and a generator."""
    rng = generator(seed)
    levels = {"y": [0, 1], "p": [0, 1], "g": list("ab"), "job": list("xyz")}
    every = pd.MultiIndex.from_product(levels.values(), names=levels).to_frame(index=False)
    more = every.sample(n, replace=True, random_state=rng)
    rows = pd.concat([every, more]).sample(frac=1, random_state=rng, ignore_index=True)
    rows["s"] = np.round(rng.normal(size=len(rows)) + rows["p"] + 0.5 * (rows["g"] == "a"), 1)
    return rows, rng


def close(value):
    return pytest.approx(value, abs=1e-12)


def worst(name, values):
    return min(values) if name.endswith("_ratio") else max(values)


def test_every_metric_of_labels_scores_and_losses_takes_control_features():
    names = [name.removeprefix("neg_") for name in get_scorer_names()]
    of_clusters = {"balance_score", "share_ratio", "share_deviation", "kl_fairness_error"}
    of_rankings = {"pair_error_gap", "exposure_gap", "rank_gap", "ndcg"}
    assert set(METRICS) == set(names) - of_clusters - of_rankings - {"accuracy"}


@each_metric
@pytest.mark.parametrize("is_weighted", [False, True])
def test_worst_stratum(name, is_weighted):
    for seed in range(3):
        rows, rng = case(seed)
        rows["w"] = rng.uniform(0.5, 2, len(rows))

        def value(own, **extra):
            return measured(name, own, sample_weight=own["w"] if is_weighted else None, **extra)

        expected = worst(name, [value(own) for _, own in rows.groupby("job")])
        assert value(rows, control_features=rows["job"]) == close(expected)


@each_metric
def test_means_and_overall_are_those_of_the_strata(name):
    rows, _ = case(5)
    for extra in ({"agg": "mean"}, {"reference": "overall"}):
        if not extra.keys() <= inspect.signature(METRICS[name]).parameters.keys():
            continue
        values = [measured(name, own, **extra) for _, own in rows.groupby("job")]
        # Each stratum has as many pairs, so the mean of all is the mean of the means.
        expected = np.mean(values) if "agg" in extra else worst(name, values)
        assert measured(name, rows, control_features=rows["job"], **extra) == close(expected)


@each_metric
def test_a_stratum_with_one_group_compares_nothing(name):
    if name in LARGEST:
        return  # a cap holds for every group, whether or not there is another one
    rows, rng = case(1)
    alone = (rows["job"] == "z") & (rows["g"] == "b")
    rows.loc[(rows["job"] == "z") & ~alone, "job"] = "y"  # in z there is only b ...
    rows.loc[alone, ["y", "p"]] = 0  # ... without positives
    rows["w"] = rng.uniform(0.5, 2, len(rows))
    found, rest = (
        measured(name, own, control_features=own["job"], sample_weight=own["w"])
        for own in (rows, rows[~alone])
    )
    assert found == close(rest)
    assert np.isfinite(found)


@each_metric
def test_rows_without_weight_are_not_there(name):
    rows, _ = case(2)
    weights = np.where((rows["job"] == "z") & (rows["g"] == "b"), 0.0, 1.0)
    found = measured(name, rows, control_features=rows["job"], sample_weight=weights)
    kept = rows[weights > 0]
    assert found == close(measured(name, kept, control_features=kept["job"]))


@each_metric
def test_several_attributes_and_several_control_features(name):
    rows, rng = case(3, n=2000)
    frame = pd.DataFrame({"sex": rows["g"], "race": rng.choice(list("uv"), len(rows))})
    control = pd.DataFrame({"job": rows["job"], "grade": rng.integers(1, 3, len(rows))})
    joined = control["job"] + control["grade"].astype(str)
    for is_crossed in (True, False):
        value = partial(measured, name, rows, sensitive_features=frame, intersectional=is_crossed)
        found = value(control_features=control)
        assert found == close(value(control_features=joined))
        assert found == value(control_features=dict(control))
    apart = [
        measured(name, rows, sensitive_features=frame[c], control_features=control) for c in frame
    ]
    assert found == close(worst(name, apart))


@each_metric
def test_one_stratum_is_no_stratum(name):
    rows, _ = case(4)
    assert measured(name, rows, control_features=["all"] * len(rows)) == measured(name, rows)


@pytest.mark.parametrize("has_strata", [False, True])
def test_equals_fairlearn(has_strata):
    """fairlearn gives a value for each level of the control features; ours is the worst of them."""
    rates = {
        "demographic_parity": ["selection_rate"],
        "equal_opportunity": ["true_positive_rate"],
        "false_positive_parity": ["false_positive_rate"],
        "false_negative_parity": ["false_negative_rate"],
        "equalized_odds": ["true_positive_rate", "false_positive_rate"],
        "accuracy_parity": ["accuracy"],
    }
    functions = {
        "selection_rate": fairlearn.selection_rate,
        "true_positive_rate": fairlearn.true_positive_rate,
        "false_positive_rate": fairlearn.false_positive_rate,
        "false_negative_rate": fairlearn.false_negative_rate,
        "accuracy": accuracy_score,
    }
    for seed in range(5):
        rows, rng = case(seed)
        y, p, sex, job = (rows[name] for name in ("y", "p", "g", "job"))
        weights = rng.uniform(0.1, 3, y.size)
        given = {"sensitive_features": sex, "control_features": job if has_strata else None}
        frame = fairlearn.MetricFrame(
            metrics=functions,
            y_true=y,
            y_pred=p,
            sample_params={name: {"sample_weight": weights} for name in functions},
            **given,
        )
        for criterion, names in rates.items():
            for reference, method in (("pairwise", "between_groups"), ("overall", "to_overall")):
                shared = {"sample_weight": weights, "reference": reference, **given}
                ours = METRICS[f"{criterion}_difference"](y, p, **shared)
                theirs = frame.difference(method=method)[names].to_numpy().max()
                assert ours == pytest.approx(theirs, abs=1e-12)
                ours = METRICS[f"{criterion}_ratio"](y, p, **shared)
                theirs = frame.ratio(method=method)[names].to_numpy().min()
                assert ours == pytest.approx(theirs, abs=1e-12)
        for name in ("selection_rate", "false_positive_rate", "false_negative_rate"):
            largest = partial(METRICS[f"largest_{name}"], y, p, **given)
            expected = frame.group_max()[name].max()
            assert largest(sample_weight=weights) == pytest.approx(expected, abs=1e-12)
            if not has_strata:
                with pytest.raises(ValueError, match="Group 'a' has no row"):
                    largest(sample_weight=weights * (sex == "b"))


def test_intervals_of_groups_hold_in_every_stratum():
    rows, _ = case(6)
    interval = {"a": (0, 0.5), "b": (0.2, 0.9)}
    value = partial(measured, "partial_statistical_parity_gap", interval=interval)
    expected = max(value(own) for _, own in rows.groupby("job"))
    assert value(rows, control_features=rows["job"]) == close(expected)


@each_metric
def test_no_stratum_with_two_groups(name):
    rows, _ = case(0)
    if name in LARGEST:
        assert measured(name, rows, control_features=rows["g"]) == measured(name, rows)
        return
    with pytest.raises(ValueError, match="No stratum of control_features has rows of two groups"):
        measured(name, rows, control_features=rows["g"])


def test_an_undefined_rate_names_group_and_stratum():
    y, p, sex, job = [1, 0, 0, 0], [1, 0, 1, 0], list("fmfm"), list("xxyy")
    metric = skfair.metrics.equal_opportunity_difference
    given = {"sensitive_features": sex, "control_features": job}
    with pytest.raises(ValueError, match=r"Group 'm \(stratum x\)' has no row of the positive"):
        metric(y, p, **given)
    assert np.isnan(metric(y, p, **given, zero_division=np.nan))


@pytest.mark.parametrize(
    ("control", "error", "message"),
    [
        (list("xyx"), ValueError, "control_features has 3 rows but the other data have 4"),
        (["x", None, "x", "y"], ValueError, "Control attribute 'control_feature' has 1 missing"),
        ({"job": ["x", None, "x", "y"]}, ValueError, "Control attribute 'job' has 1 missing"),
        ("job", TypeError, "control_features must be array-like"),
        (pd.Series(list("xyxy"), index=[3, 2, 1, 0]), ValueError, "control_features and the data"),
    ],
)
def test_bad_control_features(control, error, message):
    y = pd.Series([0, 1, 0, 1])
    with pytest.raises(error, match=message):
        skfair.metrics.equalized_odds_difference(
            y, y, sensitive_features=list("ffmm"), control_features=control
        )


def test_treatment_equality_needs_false_positives():
    y, p = np.array([1, 0, 1, 0]), np.array([0, 1, 0, 0])
    with pytest.raises(ValueError, match="'m' has no row that is a false positive"):
        skfair.metrics.treatment_equality_ratio(y, p, sensitive_features=list("ffmm"))


def test_every_difference_has_a_ratio_and_scorers():
    for name in LABEL_METRICS:
        if name.endswith("_difference"):
            sibling = name.replace("_difference", "_ratio")
            assert LABEL_METRICS[sibling].rates == LABEL_METRICS[name].rates
            assert {f"neg_{name}", sibling} <= set(skfair.metrics.get_scorer_names())


def test_the_noise_floor_deals_groups_out_within_strata():
    """Groups that are alike within strata show no more than noise, however the strata differ."""
    rng = generator(0)
    job = np.repeat(["x", "y"], 400)
    sex = np.where(rng.random(800) < np.where(job == "x", 0.8, 0.2), "f", "m")
    p = (rng.random(800) < np.where(job == "x", 0.2, 0.7)).astype(int)
    metric = skfair.metrics.demographic_parity_difference
    given = {"sensitive_features": sex, "control_features": job}
    floor = skfair.metrics.noise_floor(metric, None, p, n_permutations=200, random_state=0, **given)
    assert metric(None, p, **given) < floor.upper < 0.2
    # Dealing out over all rows would change the sizes of the groups within strata.
    sizes, y = [], 1 - p

    def smallest(y_true, y_pred, *, sensitive_features, control_features):
        assert np.array_equal(y_true, y)
        assert np.array_equal(y_pred, p)
        sizes.append([np.sum((sensitive_features == "f") & (job == s)) for s in "xy"])
        return 0.0

    skfair.metrics.noise_floor(smallest, y, p, n_permutations=5, **given)
    assert sizes == [[np.sum((sex == "f") & (job == s)) for s in "xy"]] * 5


@pytest.mark.parametrize(
    "name", [*(one for one in METRICS if "partial" not in one), "pair_error_gap", "exposure_gap"]
)
def test_groups_in_the_order_of_neither_labels_nor_predictions_are_refused(name):
    rng = generator(0)
    metric, index = getattr(skfair.metrics, name), rng.permutation(60)
    y, pred = (pd.Series(rng.integers(0, 2, 60), index=index) for _ in range(2))
    groups = pd.Series(np.tile(["f", "m"], 30), index=index)
    more = {"query_id": np.repeat([0, 1], 30)} if name in ("pair_error_gap", "exposure_gap") else {}
    assert metric(y, pred, sensitive_features=groups, **more) >= 0
    shuffled = groups.sample(frac=1, random_state=0)
    for true, predicted in [(y, pred.to_numpy()), (y.to_numpy(), pred), (y, pred)]:
        with pytest.raises(ValueError, match="different order"):
            metric(true, predicted, sensitive_features=shuffled, **more)
    if not more:
        with pytest.raises(ValueError, match="different order"):
            metric(y, pred.loc[shuffled.index], sensitive_features=groups)
        with pytest.raises(ValueError, match="predictions and the data .* different order"):
            metric(y, pred.loc[shuffled.index], sensitive_features=groups.to_numpy())
        weights = pd.Series(1.0, shuffled.index)
        with pytest.raises(ValueError, match="sample_weight and the data .* different order"):
            metric(y, pred, sensitive_features=groups.to_numpy(), sample_weight=weights)
