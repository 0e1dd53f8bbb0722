"""Control features: every metric within strata is the worst of the strata, measured one by one."""

import inspect
from functools import partial

import fairlearn.metrics as fairlearn
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import accuracy_score

import skfair.metrics
from skfair.metrics import get_scorer_names
from tests.messages import messages
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
    rows["chance"] = expit(rows["s"])
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
    rows, rng = case(0)
    rows["w"] = rng.uniform(0.5, 2, len(rows))

    def value(own, **extra):
        return measured(name, own, sample_weight=own["w"] if is_weighted else None, **extra)

    expected = worst(name, [value(own) for _, own in rows.groupby("job")])
    assert value(rows, control_features=rows["job"]) == close(expected)
    assert value(rows, control_features=["all"] * len(rows)) == value(rows)


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
    rows, rng = case(1)
    by_group = {"control_features": rows["g"]}
    if name in LARGEST:  # a cap holds for every group, whether or not there is another one
        assert measured(name, rows, **by_group) == measured(name, rows)
        return
    with pytest.raises(ValueError, match="No stratum of control_features has rows of two groups"):
        measured(name, rows, **by_group)
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
    names = ("selection_rate", "true_positive_rate", "false_positive_rate", "false_negative_rate")
    functions = {name: getattr(fairlearn, name) for name in names} | {"accuracy": accuracy_score}
    rows, rng = case(0)
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
            assert ours == close(frame.difference(method=method)[names].to_numpy().max())
            ours = METRICS[f"{criterion}_ratio"](y, p, **shared)
            assert ours == close(frame.ratio(method=method)[names].to_numpy().min())
    for name in ("selection_rate", "false_positive_rate", "false_negative_rate"):
        largest = partial(METRICS[f"largest_{name}"], y, p, **given)
        assert largest(sample_weight=weights) == close(frame.group_max()[name].max())
        if not has_strata:
            with pytest.raises(ValueError, match="Group 'a' has no row"):
                largest(sample_weight=weights * (sex == "b"))


def test_intervals_of_groups_hold_in_every_stratum():
    rows, _ = case(6)
    interval = {"a": (0, 0.5), "b": (0.2, 0.9)}
    value = partial(measured, "partial_statistical_parity_gap", interval=interval)
    expected = max(value(own) for _, own in rows.groupby("job"))
    assert value(rows, control_features=rows["job"]) == close(expected)


def bad(control, y=(0, 1, 0, 1)):
    given = {"sensitive_features": list("ffmm"), "control_features": control}
    skfair.metrics.equalized_odds_difference(pd.Series(y), pd.Series(y), **given)


def without_false_positives():
    given = {"sensitive_features": list("ffmm")}
    skfair.metrics.treatment_equality_ratio([1, 0, 1, 0], [0, 1, 0, 0], **given)


test_bad_control_features = messages(
    (ValueError, "control_features has 3 rows but the other data have 4", lambda: bad(list("xyx"))),
    (ValueError, "'control_feature' has 1 missing", lambda: bad(["x", None, "x", "y"])),
    (ValueError, "'job' has 1 missing", lambda: bad({"job": ["x", None, "x", "y"]})),
    (TypeError, "control_features must be array-like", lambda: bad("job")),
    (
        *(ValueError, "control_features and the data"),
        lambda: bad(pd.Series(list("xyxy"), index=[3, 2, 1, 0])),
    ),
    (ValueError, "'m' has no row that is a false positive", without_false_positives),
)


def test_an_undefined_rate_names_group_and_stratum():
    y, p, sex, job = [1, 0, 0, 0], [1, 0, 1, 0], list("fmfm"), list("xxyy")
    metric = skfair.metrics.equal_opportunity_difference
    given = {"sensitive_features": sex, "control_features": job}
    with pytest.raises(ValueError, match=r"Group 'm \(stratum x\)' has no row of the positive"):
        metric(y, p, **given)
    assert np.isnan(metric(y, p, **given, zero_division=np.nan))


def test_every_difference_has_a_ratio_and_scorers():
    for name in LABEL_METRICS:
        if name.endswith("_difference"):
            sibling = name.replace("_difference", "_ratio")
            assert LABEL_METRICS[sibling].rates == LABEL_METRICS[name].rates
            assert {f"neg_{name}", sibling} <= set(skfair.metrics.get_scorer_names())


def test_the_noise_floor_deals_groups_out_within_strata():
    """Groups that are alike within strata show no more than noise, however the strata differ."""
    job = np.repeat(["x", "y"], 400)
    sex = np.repeat(["f", "m", "f", "m"], [320, 80, 80, 320])
    p = np.r_[np.arange(400) % 5 == 0, np.arange(400) % 10 < 7].astype(int)
    metric = skfair.metrics.demographic_parity_difference
    given = {"sensitive_features": sex, "control_features": job}
    assert metric(None, p, **given) == close(0)
    assert metric(None, p, sensitive_features=sex) == close(0.3)
    floor = skfair.metrics.noise_floor(metric, None, p, n_permutations=200, **given)
    assert 0 < floor.upper < 0.2
    # Dealing out over all rows would change the sizes of the groups within strata.
    sizes, y = [], 1 - p

    def smallest(y_true, y_pred, *, sensitive_features, control_features):
        assert np.array_equal(y_true, y)
        assert np.array_equal(y_pred, p)
        sizes.append([np.sum((sensitive_features == "f") & (job == s)) for s in "xy"])
        return 0.0

    skfair.metrics.noise_floor(smallest, y, p, n_permutations=5, **given)
    assert sizes == [[np.sum((sex == "f") & (job == s)) for s in "xy"]] * 5
