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
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES

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
    """Rows whose strata lack no group, class or prediction; the last value is a generator."""
    rng = np.random.default_rng(seed)
    every = np.array(np.meshgrid([0, 1], [0, 1], list("ab"), list("xyz"))).reshape(4, -1).T
    rows = np.concatenate([every, every[rng.integers(0, len(every), n)]])
    rng.shuffle(rows)
    y, p = rows[:, 0].astype(int), rows[:, 1].astype(int)
    score = np.round(rng.normal(size=len(rows)) + p + 0.5 * (rows[:, 2] == "a"), 1)
    return y, p, score, rows[:, 2], rows[:, 3], rng


def arguments(name, y, p, score):
    wanted = inspect.signature(METRICS[name]).parameters
    rows = {"y_true": y, "y_pred": p, "y_score": score}
    return {key: values for key, values in rows.items() if key in wanted}


def options(name):
    wanted = inspect.signature(METRICS[name]).parameters
    return {"interval": (0.0, 0.7)} if "interval" in wanted else {}


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
        y, p, score, sex, job, rng = case(seed)
        w = rng.uniform(0.5, 2, y.size) if is_weighted else None

        def measured(rows, y=y, p=p, score=score, sex=sex, w=w, **extra):
            given = {key: values[rows] for key, values in arguments(name, y, p, score).items()}
            weights = None if w is None else w[rows]
            return METRICS[name](
                **given,
                sensitive_features=sex[rows],
                sample_weight=weights,
                **options(name),
                **extra,
            )

        expected = worst(name, [measured(job == stratum) for stratum in "xyz"])
        found = measured(np.ones(y.size, bool), control_features=job)
        assert found == pytest.approx(expected, abs=1e-12)


@each_metric
def test_means_and_overall_are_those_of_the_strata(name):
    y, p, score, sex, job, _ = case(5)
    wanted = inspect.signature(METRICS[name]).parameters
    for extra in ({"agg": "mean"}, {"reference": "overall"}):
        if not extra.keys() <= wanted.keys():
            continue
        values = []
        for stratum in "xyz":
            rows = job == stratum
            given = {key: one[rows] for key, one in arguments(name, y, p, score).items()}
            values.append(
                METRICS[name](**given, sensitive_features=sex[rows], **options(name), **extra)
            )
        # Each stratum has as many pairs, so the mean of all is the mean of the means.
        expected = np.mean(values) if "agg" in extra else worst(name, values)
        found = METRICS[name](
            **arguments(name, y, p, score),
            sensitive_features=sex,
            control_features=job,
            **options(name),
            **extra,
        )
        assert found == pytest.approx(expected, abs=1e-12)


@each_metric
def test_a_stratum_with_one_group_compares_nothing(name):
    y, p, score, sex, job, rng = case(1)
    alone = (job == "z") & (sex == "b")
    job = np.where((job == "z") & ~alone, "y", job)  # in z there is only b ...
    y, p = np.where(alone, 0, y), np.where(alone, 0, p)  # ... without positives
    given = {
        "sensitive_features": sex,
        "control_features": job,
        "sample_weight": rng.uniform(0.5, 2, y.size),
        **options(name),
    }
    if name in LARGEST:
        return  # a cap holds for every group, whether or not there is another one
    metric = METRICS[name]
    found = metric(**arguments(name, y, p, score), **given)
    kept = ~alone
    for key in ("sensitive_features", "control_features", "sample_weight"):
        given[key] = given[key][kept]
    rest = {key: values[kept] for key, values in arguments(name, y, p, score).items()}
    assert found == pytest.approx(metric(**rest, **given), abs=1e-12)
    assert np.isfinite(found)


@each_metric
def test_rows_without_weight_are_not_there(name):
    y, p, score, sex, job, _ = case(2)
    weights = np.where((job == "z") & (sex == "b"), 0.0, 1.0)
    given = {"sensitive_features": sex, "control_features": job, **options(name)}
    found = METRICS[name](**arguments(name, y, p, score), sample_weight=weights, **given)
    kept = weights > 0
    given |= {"sensitive_features": sex[kept], "control_features": job[kept]}
    rest = {key: values[kept] for key, values in arguments(name, y, p, score).items()}
    assert found == pytest.approx(METRICS[name](**rest, **given), abs=1e-12)


@each_metric
def test_several_attributes_and_several_control_features(name):
    y, p, score, sex, job, rng = case(3, n=2000)
    frame = pd.DataFrame({"sex": sex, "race": rng.choice(list("uv"), y.size)})
    control = pd.DataFrame({"job": job, "grade": rng.integers(1, 3, y.size)})
    joined = control["job"] + control["grade"].astype(str)
    metric, rows = METRICS[name], arguments(name, y, p, score)
    for is_crossed in (True, False):
        given = {"sensitive_features": frame, "intersectional": is_crossed, **options(name)}
        found = metric(**rows, control_features=control, **given)
        assert found == pytest.approx(metric(**rows, control_features=joined, **given), abs=1e-12)
        assert found == metric(**rows, control_features=dict(control), **given)
    apart = [
        metric(**rows, sensitive_features=frame[c], control_features=control, **options(name))
        for c in frame
    ]
    assert found == pytest.approx(worst(name, apart), abs=1e-12)


@each_metric
def test_one_stratum_is_no_stratum(name):
    y, p, score, sex, _, _ = case(4)
    given = {"sensitive_features": sex, **options(name), **arguments(name, y, p, score)}
    assert METRICS[name](**given, control_features=["all"] * y.size) == METRICS[name](**given)


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
        y, p, _, sex, job, rng = case(seed)
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
    _, _, score, sex, job, _ = case(6)
    interval = {"a": (0, 0.5), "b": (0.2, 0.9)}
    metric = skfair.metrics.partial_statistical_parity_gap
    expected = max(
        metric(None, score[job == s], sensitive_features=sex[job == s], interval=interval)
        for s in "xyz"
    )
    found = metric(None, score, sensitive_features=sex, control_features=job, interval=interval)
    assert found == pytest.approx(expected, abs=1e-12)


@each_metric
def test_no_stratum_with_two_groups(name):
    y, p, score, sex, _, _ = case(0)
    given = {**arguments(name, y, p, score), "sensitive_features": sex, "control_features": sex}
    if name in LARGEST:
        without = {**given, "control_features": None}
        assert METRICS[name](**given) == METRICS[name](**without)
        return
    with pytest.raises(ValueError, match="No stratum of control_features has rows of two groups"):
        METRICS[name](**given, **options(name))


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
    rng = np.random.default_rng(0)
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
    rng = np.random.default_rng(0)
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
