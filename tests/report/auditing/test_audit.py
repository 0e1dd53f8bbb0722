"""Audits: every number against plain pandas, scikit-learn or the metrics of the package."""

import json
from functools import partial

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score

from skfair import metrics
from skfair.report import Audit, audit
from skfair.report.results.sentences import number
from tests.report.schema import breaches
from tests.seeds import generator

FEW = partial(audit, n_simulations=50)


def people(n=1500):
    rng = generator(0)
    frame = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.choice(["old", "young", "middle"], n)}
    )
    score = 1 / (1 + np.exp(-rng.normal(size=n) - 0.8 * (frame["sex"] == "m").to_numpy()))
    y = (rng.random(n) < score).astype(int)
    return frame, y, (score > 0.5).astype(int), score


def rate_of(table, view, group, measure):
    row = table[(table["view"] == view) & (table["group"] == group) & (table["measure"] == measure)]
    return row["value"].item()


def gap_of(found, view, metric, model="now", is_conditional=False):
    gaps = found.gaps
    row = gaps[
        (gaps["view"] == view)
        & (gaps["metric"] == metric)
        & (gaps["model"] == model)
        & (gaps["is_conditional"] == is_conditional)
    ]
    assert len(row) == 1
    return row.iloc[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_are_plain_counting(weighted):
    A, y, p, score = people()
    w = generator(1).uniform(0.2, 3, y.size) if weighted else np.ones(y.size)
    found = FEW(y, p, y_score=score, sensitive_features=A, sample_weight=w if weighted else None)
    is_group = ((A["sex"] == "f") & (A["age"] == "old")).to_numpy()
    expected = {
        "base_rate": (y == 1, is_group),
        "selection_rate": (p == 1, is_group),
        "true_positive_rate": (p == 1, is_group & (y == 1)),
        "false_positive_rate": (p == 1, is_group & (y == 0)),
        "false_negative_rate": (p == 0, is_group & (y == 1)),
        "positive_predictive_value": (y == 1, is_group & (p == 1)),
        "false_omission_rate": (y == 1, is_group & (p == 0)),
        "accuracy": (p == y, is_group),
        "mean_score": (score, is_group),
    }
    for measure, (values, counted) in expected.items():
        mean = np.average(values[counted], weights=w[counted])
        value = rate_of(found.rates, "sex x age", "sex=f, age=old", measure)
        assert value == pytest.approx(mean, abs=1e-12), measure
    row = found.rates[(found.rates["view"] == "sex") & (found.rates["group"] == "m")]
    assert (row["n"] == (A["sex"] == "m").sum()).all()
    auc = rate_of(found.rates, "sex", "f", "auc")
    women = (A["sex"] == "f").to_numpy()
    exact = roc_auc_score(y[women], score[women], sample_weight=w[women])
    assert auc == pytest.approx(exact, abs=0.002)


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_of_rates_are_those_of_the_report(weighted):
    A, y, p, _ = people()
    w = np.where(p == 1, 3.0, 1.0) if weighted else None  # weights that know the decision
    report = metrics.group_report(y, p, sensitive_features=A[["age"]], sample_weight=w)
    found = FEW(y, p, sensitive_features=A, sample_weight=w).rates
    for measure in ("selection_rate", "true_positive_rate", "positive_predictive_value"):
        rows = found[(found["view"] == "age") & (found["measure"] == measure)].set_index("group")
        for end in ("low", "high"):
            expected = report.loc[rows.index, f"{measure}_{end}"]
            np.testing.assert_allclose(rows[f"value_{end}"], expected, atol=1e-12)


@pytest.mark.parametrize("task", ["binary", "classes", "numbers"])
def test_an_audit_of_dask_collections_is_that_of_their_rows(task):
    A, y, p, score = people()
    frame = A.assign(y=y, p=p, score=score, w=1.0 + 2 * p, region=np.arange(y.size) % 3)
    if task == "classes":
        frame["p"] = np.where(score > 0.8, 2, p)
    elif task == "numbers":
        frame[["y", "p"]] += 0.25
    frame.iloc[:9, 0], options = None, {"unknown": [None], "preset": None}

    def audited(rows):
        scores = rows["score"] if task == "binary" else None
        groups = {"sensitive_features": rows[["sex", "age"]], "control_features": rows["region"]}
        return FEW(
            rows["y"], rows["p"], y_score=scores, **groups, sample_weight=rows["w"], **options
        )

    whole, in_blocks = audited(frame), audited(dd.from_pandas(frame, npartitions=4))
    for name in ("rates", "gaps", "calibration"):
        pd.testing.assert_frame_equal(getattr(in_blocks, name), getattr(whole, name), rtol=1e-9)


@pytest.mark.parametrize("within", [None, "region"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gaps_are_those_of_the_metrics(within, weighted):
    A, y, p, score = people(3000)  # each class of each stratum has many
    rng = generator(3)
    w = rng.uniform(0.5, 2, y.size) if weighted else None
    region = pd.Series(rng.integers(3, size=y.size), name="region") if within else None
    names = [
        "demographic_parity_difference",
        "demographic_parity_ratio",
        "equalized_odds_difference",
        "equalized_odds_ratio",
        "predictive_parity_difference",
        "accuracy_parity_ratio",
        "separation_gap",
        "sufficiency_gap",
        "mean_score_difference",
    ]
    rows = {
        "sensitive_features": A,
        "control_features": region,
        "sample_weight": w,
        "before": 1 - p,
    }
    found = FEW(y, p, y_score=score, metrics=names, **rows)
    for view, columns in (("sex", ["sex"]), ("sex x age", ["sex", "age"])):
        for name in names:
            metric = getattr(metrics, name)
            given = {"sensitive_features": A[columns], "sample_weight": w}
            predicted = score if name == "mean_score_difference" else p
            value = metric(y, predicted, **given)
            assert gap_of(found, view, name)["value"] == pytest.approx(value, abs=1e-12)
            if within:
                value = metric(y, predicted, control_features=region, **given)
                own = gap_of(found, view, name, is_conditional=True)["value"]
                assert own == pytest.approx(value, abs=1e-12)
            if name != "mean_score_difference":
                value = metric(y, 1 - p, **given)
                own = gap_of(found, view, name, model="before")["value"]
                assert own == pytest.approx(value, abs=1e-12)
    assert found.value("demographic_parity_difference") == max(
        gap_of(found, view, "demographic_parity_difference")["value"]
        for view in ("sex", "age", "sex x age")
    )
    assert found.value("demographic_parity_ratio", "sex") == pytest.approx(
        metrics.demographic_parity_ratio(y, p, sensitive_features=A["sex"], sample_weight=w)
    )


def test_intervals_hold_the_value_and_cover_the_truth():
    """Of 50 samples the interval of the worst of three pairs misses the truth rarely."""
    rates, missed, missed_ratio = np.array([0.3, 0.4, 0.45]), 0, 0
    for seed in range(50):
        g, uniform = generator(seed).random((2, 900))
        g = (3 * g).astype(int)
        p = (uniform < rates[g]).astype(int)
        names = ["demographic_parity_difference", "demographic_parity_ratio"]
        found = audit(
            None, p, sensitive_features=g, metrics=names, n_simulations=200, random_state=seed
        )
        difference, ratio = (gap_of(found, "sensitive_feature", name) for name in names)
        assert difference["value_low"] <= difference["value"] <= difference["value_high"]
        assert ratio["value_low"] <= ratio["value"] <= ratio["value_high"]
        missed += not difference["value_low"] <= 0.15 <= difference["value_high"]
        missed_ratio += not ratio["value_low"] <= 2 / 3 <= ratio["value_high"]
    assert max(missed, missed_ratio) <= stats.binom.isf(1e-7, 50, 0.05)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_interval_of_two_groups_is_that_of_the_textbook(weighted):
    """That of the audit is Newcombe's, with half a row more: of many rows hardly another one."""
    group, rng = np.repeat([0, 1], [10_000, 30_000]), generator(0)
    p = (rng.random(40_000) < np.where(group, 0.6, 0.2)).astype(int)
    w = rng.uniform(0.5, 2, 40_000) if weighted else np.ones(40_000)
    name = "demographic_parity_difference"
    found = audit(
        None, p, sensitive_features=group, metrics=[name], n_simulations=100,
        sample_weight=w if weighted else None,
    )  # fmt: skip
    gap, variance = gap_of(found, "sensitive_feature", name), 0
    for g in (0, 1):
        own = w[group == g]
        rate = np.average(p[group == g], weights=own)
        variance += rate * (1 - rate) * (own**2).sum() / own.sum() ** 2
    margin = norm.ppf(0.975) * np.sqrt(variance)
    assert gap["value_low"] == pytest.approx(gap["value"] - margin, abs=0.03 * margin)
    assert gap["value_high"] == pytest.approx(gap["value"] + margin, abs=0.03 * margin)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_group_of_one_row_has_an_uncertain_mean(weighted):
    """Nothing is known of its spread, which was taken to be 0: intervals hardly ever held 0."""
    rng = generator(0)
    y, pred = rng.normal(size=(2, 101))
    weights = np.where(np.arange(101) % 2, 1.0, 3.0) if weighted else None
    groups, n_apart = np.array(["one"] + ["other"] * 100), 0
    for _ in range(25):
        y[0], pred[0] = rng.normal(size=2)  # of the same population as the others
        found = audit(
            y, pred, sensitive_features=groups, task="numbers", sample_weight=weights,
            n_simulations=60, min_group_size=1, suppress_below=1,
        )  # fmt: skip
        gaps = found.gaps.set_index("metric")
        n_apart += gaps.loc["mean_residual_difference", "value_low"] > 0
    assert n_apart <= stats.binom.isf(1e-7, 25, 0.06)


def test_noise_is_what_shuffled_groups_show():
    A, y, p, _ = people(800)
    metric, groups = metrics.demographic_parity_difference, {"sensitive_features": A[["age"]]}
    found = audit(y, p, metrics=[metric], n_simulations=2000, **groups)
    floor = metrics.noise_floor(metric, y, p, n_permutations=1000, random_state=0, **groups)
    row = gap_of(found, "age", "demographic_parity_difference")
    assert row["noise_mean"] == pytest.approx(floor.mean, rel=0.15)
    assert row["noise_upper"] == pytest.approx(floor.upper, rel=0.2)


def test_a_metric_may_be_a_function_of_the_package():
    A, y, p, _ = people(300)
    names = ["equal_opportunity_difference", "accuracy_parity_ratio"]
    pair = [
        FEW(y, p, sensitive_features=A, metrics=asked).gaps
        for asked in (names, [getattr(metrics, name) for name in names])
    ]
    pd.testing.assert_frame_equal(*pair)


def test_a_group_without_positives_is_named():
    y = np.array([0] * 40 + [0, 1] * 40)
    p = np.array([0, 1] * 60)
    g = ["a"] * 40 + ["b"] * 40 + ["c"] * 40
    row = gap_of(FEW(y, p, sensitive_features={"g": g}), "g", "equal_opportunity_difference")
    assert row["left_out"] == "a"
    assert {row["first_group"], row["second_group"]} == {"b", "c"}


def test_one_group_has_nothing_to_compare_with():
    y = np.arange(100) % 2
    found = audit(y, y, sensitive_features=np.full(100, "a"))
    assert "groups are not compared" in str(found)
    check = found.check("demographic_parity_difference > 0.1")
    assert check.outcome == "inconclusive"
    assert "no two of them have people to compare" in check.sentence


@pytest.mark.parametrize("groups", [["a"] * 50 + ["b"] * 10, ["a", "b", "c"] * 20])
def test_gaps_keep_their_columns_where_no_groups_are_compared(groups):
    y = np.arange(60) % 2
    found = FEW(y, y, sensitive_features=groups)
    compared = FEW(y, y, sensitive_features=["a", "b"] * 30).gaps
    for one in (found, Audit.from_dict(found.to_dict())):
        assert list(one.gaps) == list(compared)
        assert not one.gaps["is_beyond_chance"].any()
        assert not len(one.gaps[one.gaps["is_beyond_chance"]])
        assert np.isnan(one.gaps["value"].max())


def test_numbers_without_true_ones_have_no_residuals():
    group, predicted = np.arange(200) % 2, np.linspace(0, 9, 200) ** 1.5
    found = FEW(None, predicted, sensitive_features=group, task="numbers")
    assert found.gaps["metric"].tolist() == ["mean_score_difference"]


@pytest.mark.filterwarnings("ignore:.* scores are above threshold", "ignore:None of the .* rows")
@pytest.mark.parametrize("score_range", [(0.0, 1.0), (-3.0, 5.0), (20.0, 21.0)])
def test_calibration_has_bins_of_each_group_and_intervals_of_means_are_students(score_range):
    rng = generator(0)
    score = rng.uniform(*score_range, 500)
    group = rng.choice(["a", "b", "c"], 500, p=[0.5, 0.4, 0.1])
    found = FEW(score > 0.5, y_score=score, threshold=0.3, sensitive_features=group)
    rates = found.rates[found.rates["measure"] == "mean_score"].set_index("group")
    for name, rows in found.calibration.groupby("group"):
        own = score[group == name]
        edges = [*rows["score_low"], rows["score_high"].iloc[-1]]
        assert rows["n"].tolist() == np.histogram(own, edges)[0].tolist()
        assert rows["n"].min() >= max(10, own.size / 10)
        assert len(rows) >= min(7, own.size // 12)
        (row,) = rates.loc[[name]].reset_index().itertuples()
        ends = stats.t.interval(0.95, own.size - 1, own.mean(), stats.sem(own))
        assert rates.loc[row.group, ["value_low", "value_high"]].tolist() == pytest.approx(ends)


def test_scores_and_a_threshold_need_no_outcomes():
    A, _, _, score = people(300)
    found = FEW(None, y_score=score, threshold=0.5, sensitive_features=A)
    same = FEW(None, (score > 0.5).astype(int), sensitive_features=A)
    name = "demographic_parity_difference"
    assert gap_of(found, "sex", name)["value"] == gap_of(same, "sex", name)["value"]


def test_calibration_is_plain_averaging():
    A, y, p, score = people()
    table = FEW(y, p, y_score=score, sensitive_features=A).calibration
    women = table[(table["view"] == "sex") & (table["group"] == "f")]
    is_woman = (A["sex"] == "f").to_numpy()
    assert women["n"].sum() == is_woman.sum()
    means = np.average(women[["mean_score", "mean_target"]], weights=women["n"], axis=0)
    np.testing.assert_allclose(means, [score[is_woman].mean(), y[is_woman].mean()])
    assert (table["mean_target_low"] <= table["mean_target"] + 1e-12).all()


def test_a_score_of_weight_0_does_not_change_how_scores_are_counted():
    frame, y, pred, score = people()
    weight = np.ones(len(y))
    found = FEW(y, pred, y_score=score, sensitive_features=frame, sample_weight=weight)
    score, weight = np.append(score, 1e200), np.append(weight, 0.0)
    frame = pd.concat([frame, frame[:1]], ignore_index=True)
    more = FEW(
        np.append(y, 1),
        np.append(pred, 1),
        y_score=score,
        sensitive_features=frame,
        sample_weight=weight,
    )
    pd.testing.assert_frame_equal(more.calibration, found.calibration)
    of_scores = [
        one.rates[one.rates["measure"].isin(["auc", "calibration_error"])].drop(columns="n")
        for one in (more, found)
    ]
    pd.testing.assert_frame_equal(*of_scores)


def test_before_and_after():
    A, y, p, score = people()
    then = (score > 0.35).astype(int)
    found = FEW(y, p, sensitive_features=A, before=then)
    change = rate_of(found.rates, "", "all", "accuracy_change")
    assert change == pytest.approx((p == y).mean() - (then == y).mean())
    women = (A["sex"] == "f").to_numpy()
    down = rate_of(found.rates, "sex", "f", "moved_down")
    assert down == pytest.approx(((then == 1) & (p == 0))[women].mean())
    assert rate_of(found.rates, "sex", "f", "moved_up") == 0


def test_levelling_down_is_named():
    before, g = np.r_[np.arange(200) < 40, np.arange(200) < 100], np.repeat(["f", "m"], 200)
    for lower, higher in ((40, 50), (80, 100)):
        now = np.r_[np.arange(200) < lower, np.arange(200) < higher].astype(int)
        said = repr(FEW(None, now, sensitive_features={"sex": g}, before=before.astype(int)))
        assert ("levelling down" in said) == (higher < 100)


def test_numbers():
    A, _, _, score = people()
    rng = generator(5)
    y = 3 * score + rng.normal(size=score.size)
    predicted = 2.5 * score + 0.1
    found = FEW(y, predicted, sensitive_features=A, before=np.full(y.size, 1.5))
    assert found.task == "numbers"
    means = (pd.Series(y - predicted)).groupby(A["sex"]).mean()
    assert rate_of(found.rates, "sex", "f", "mean_residual") == pytest.approx(means["f"])
    gap = gap_of(found, "sex", "mean_residual_difference")["value"]
    assert gap == pytest.approx(abs(means["f"] - means["m"]))
    change = rate_of(found.rates, "", "all", "error_change")
    assert change == pytest.approx(np.abs(y - predicted).mean() - np.abs(y - 1.5).mean())
    assert len(found.calibration)
    assert set(found.subgroups["measure"]) == {"mean_residual", "mean_absolute_error"}


def test_classes():
    A, _, _, score = people()
    y = np.array(["cat", "dog", "eel"])[np.digitize(score, [0.4, 0.7])]
    p = np.array(["cat", "dog", "eel"])[np.digitize(score + 0.05, [0.4, 0.7])]
    found = FEW(y, p, sensitive_features=A)
    assert found.task == "classes"
    for label in ("cat", "eel"):
        value = metrics.equal_opportunity_difference(y == label, p == label, sensitive_features=A)
        own = gap_of(found, "sex x age", f"equal_opportunity_difference[{label}]")["value"]
        assert own == pytest.approx(value)
    value = metrics.accuracy_parity_difference(y, p, sensitive_features=A["age"])
    assert gap_of(found, "age", "accuracy_parity_difference")["value"] == pytest.approx(value)
    assert "eel" in found.to_html()


def test_from_estimator():
    A, y, _, score = people()
    X = np.column_stack([score, generator(1).normal(size=y.size)])
    model = LogisticRegression().fit(X, y)
    own = Audit.from_estimator(model, X, y, sensitive_features=A, n_simulations=50)
    given = {"sensitive_features": A, "about": {"model": "LogisticRegression"}}
    same = FEW(y, model.predict(X), y_score=model.predict_proba(X)[:, 1], **given)
    assert own.to_dict() == same.to_dict()
    legal = Audit.from_estimator(model, X, y, sensitive_features=A["sex"], preset="ugesp")
    rates = pd.Series(model.predict(X)).groupby(A["sex"].to_numpy()).mean()
    assert legal.impact.set_index("group")["rate"].to_dict() == pytest.approx(rates.to_dict())
    numbers = LinearRegression().fit(X, y)
    found = Audit.from_estimator(numbers, X, y, sensitive_features=A, before=numbers)
    assert found.task == "numbers"
    assert rate_of(found.rates, "", "all", "error_change") == 0


@pytest.mark.parametrize("task", ["binary", "classes", "numbers"])
def test_json_round_trip(task):
    A, y, p, score = people(300)
    y_true, y_pred, y_score = {
        "binary": (y, p, score),
        "classes": (np.digitize(score, [0.3, 0.6]), np.digitize(score, [0.4, 0.6]), None),
        "numbers": (score, score**2, None),
    }[task]
    again = partial(FEW, y_true, y_pred, y_score=y_score, sensitive_features=A)
    found = again()
    assert again().to_json() == found.to_json()
    plain = json.loads(found.to_json())
    assert breaches(plain, Audit.schema()) == []
    again = Audit.from_dict(plain)
    assert again.to_dict() == found.to_dict()
    assert again.to_html() == found.to_html()
    assert breaches({**plain, "n_rows": "many"}, Audit.schema())


def test_one_class_each_may_be_another_one():
    A, y, _, _ = people(100)
    found = FEW(np.zeros_like(y), np.ones_like(y), sensitive_features=A)
    assert rate_of(found.rates, "", "all", "accuracy") == 0
    assert number(-2.6e-16) == number(0.0) == "0.000"  # what rounding leaves of a zero
    assert number(4e-5) == "4e-05"
