import copy
import pickle
import re
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import skfair.metrics
from skfair.metrics import fairness_report, group_report
from skfair.metrics.labels import LABEL_METRICS
from skfair.metrics.reports import Report
from tests import naive
from tests.metrics.test_labels import random_case
from tests.seeds import generator

audit = pytest.importorskip("skfair.report").audit

NUMBER = re.compile(r"\d+\.\d+")


def case(n=300, seed=0):
    rng = generator(seed)
    groups = rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2])
    scores = rng.normal(size=n) + 0.5 * (groups == "a")
    y = (scores + rng.normal(size=n) > 0).astype(int)
    return y, (scores > 0.2).astype(int), scores, groups, rng


def test_group_report_equals_naive_rates():
    y, p, groups, rng = random_case(0)
    w = rng.uniform(0.1, 3, y.size)
    s = rng.normal(size=y.size)
    for weights in (None, w):
        used = np.ones(y.size) if weights is None else weights
        table = naive.rates(y, p, groups, used)
        report = group_report(y, p, sensitive_features=groups, y_score=s, sample_weight=weights)
        for g in set(groups):
            here = groups == g
            assert report.loc[g, "n"] == here.sum()
            for name, column in (("base_rate", y), ("mean_score", s)):
                mean = np.average(column[here], weights=used[here])
                assert report.loc[g, name] == pytest.approx(mean)
            for rate in table.keys() & set(report.columns):
                assert report.loc[g, rate] == pytest.approx(table[rate][g])
        whole = naive.rates(y, p, ["x"] * y.size, used)
        assert report.index[-1] == "overall"
        assert report.loc["overall", "accuracy"] == pytest.approx(whole["accuracy"]["x"])
        assert report.loc["overall", "mean_score"] == pytest.approx(np.average(s, weights=used))


def test_wilson_intervals_equal_scipy():
    y, p, _, groups, _ = case()
    report = group_report(y, p, sensitive_features=groups, confidence=0.9)
    for g in "abc":
        here = groups == g
        for rate, hit, rows in (
            ("selection_rate", p[here].sum(), here.sum()),
            ("true_positive_rate", (p & y)[here].sum(), y[here].sum()),
        ):
            test = stats.binomtest(int(hit), int(rows))
            expected = test.proportion_ci(0.9, method="wilson")
            assert report.loc[g, f"{rate}_low"] == pytest.approx(expected.low)
            assert report.loc[g, f"{rate}_high"] == pytest.approx(expected.high)


def test_equal_weights_do_not_narrow_the_intervals():
    y, p, _, groups, _ = case()
    y, p, groups = (np.repeat(column, 2) for column in (y, p, groups))
    plain = group_report(y, p, sensitive_features=groups)
    weighted = group_report(y, p, sensitive_features=groups, sample_weight=np.full(y.size, 7.0))
    columns = plain.columns.drop("n")
    assert np.allclose(plain[columns], weighted[columns])
    uneven = np.where(np.arange(y.size) % 2, 1.0, 9.0)
    wider = group_report(y, p, sensitive_features=groups, sample_weight=uneven)
    width = wider["accuracy_high"] - wider["accuracy_low"]
    assert (width > plain["accuracy_high"] - plain["accuracy_low"]).all()


def test_bootstrap_intervals_agree_with_wilson():
    y, p, _, groups, _ = case(n=12_000)
    shared = {"sensitive_features": groups}
    wilson = group_report(y, p, **shared)
    bootstrap = group_report(y, p, **shared, method="bootstrap", n_bootstrap=2000, random_state=0)
    for rate in ("selection_rate", "true_positive_rate", "accuracy"):
        for end in ("low", "high"):
            column = f"{rate}_{end}"
            assert np.allclose(wilson[column], bootstrap[column], atol=0.01)
    again = group_report(y, p, **shared, method="bootstrap", n_bootstrap=2000, random_state=0)
    assert again.equals(bootstrap)


def test_undefined_rates_are_nan_and_printed_as_dashes():
    y, groups = [1, 0, 0, 0], list("aabb")
    report = group_report(y, y, sensitive_features=groups)
    assert np.isnan(report.loc["b", "true_positive_rate"])
    assert np.isnan(report.loc["b", "true_positive_rate_low"])
    assert report.compact().loc["b", "true_positive_rate"] == "-"
    resampled = group_report(y, y, sensitive_features=groups, method="bootstrap")
    assert np.isnan(resampled.loc["b", "true_positive_rate_low"])
    gaps = fairness_report(y, y, sensitive_features=groups, n_bootstrap=5, random_state=0)
    assert gaps.loc["equal_opportunity_difference"].isna().all()
    assert gaps.loc["demographic_parity_difference", "value"] == 0.5


def test_reports_print_compactly_and_are_data_frames():
    y, p, s, groups, _ = case()
    report = group_report(y, p, sensitive_features=groups, y_score=s)
    text = repr(report)
    assert "selection_rate_low" not in text
    value, low, high = report.loc[
        "a", ["selection_rate", "selection_rate_low", "selection_rate_high"]
    ]
    assert f"{value:.3f} [{low:.3f}, {high:.3f}]" in text
    assert report.to_html().startswith("<table")
    assert report._repr_html_() == report.to_html()
    assert isinstance(report, pd.DataFrame)
    assert isinstance(pickle.loads(pickle.dumps(report)), Report)
    assert report.compact(digits=1).loc["a", "selection_rate"].startswith(f"{value:.1f} [")


def test_fairness_report_lists_every_metric():
    y, p, s, groups, _ = case()
    report = fairness_report(y, p, sensitive_features=groups, y_score=s, random_state=0)
    for name in LABEL_METRICS:
        metric = getattr(skfair.metrics, name)
        assert report.loc[name, "value"] == metric(y, p, sensitive_features=groups)
    for name in report.index.difference(list(LABEL_METRICS)):
        metric = getattr(skfair.metrics, name)
        assert report.loc[name, "value"] == metric(y, s, sensitive_features=groups)
    assert len(report) == len(LABEL_METRICS) + 5
    assert (report["standard_error"] > 0).all()
    assert (report["value_low"] <= report["value_high"]).all()
    assert "wasserstein_gap" in repr(report)


def test_standard_error_of_a_difference_equals_the_formula():
    rng = generator(0)
    groups = np.repeat(["a", "b"], [4000, 1000])
    p = (rng.random(5000) < np.where(groups == "a", 0.6, 0.3)).astype(int)
    report = fairness_report(
        None, p, sensitive_features=groups, y_score=p + 0.0, n_bootstrap=600, random_state=0
    )
    rates = [p[groups == g].mean() for g in "ab"]
    expected = np.sqrt(rates[0] * (1 - rates[0]) / 4000 + rates[1] * (1 - rates[1]) / 1000)
    # 600 resamples: the error of a standard error is 3 %.
    name = "demographic_parity_difference"
    assert report.loc[name, "standard_error"] == pytest.approx(expected, rel=0.17)
    # The Kolmogorov-Smirnov distance of 0/1 scores is the difference of selection rates.
    row = report.loc["statistical_parity_gap"]
    assert row["value"] == pytest.approx(abs(rates[0] - rates[1]))
    assert row["standard_error"] == pytest.approx(expected, rel=0.17)
    assert row["value_low"] < row["value"] < row["value_high"]


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ((40, 200), (0.01, 0.1)),
        pytest.param((60, 300), (0.02, 0.04), marks=pytest.mark.slow),
    ],
)
def test_intervals_of_ratios_hold_where_a_group_has_hardly_any_success(sizes, rates):
    """Resamples of a group without one had none either: a third of the intervals held."""
    rng, n_draws, n_held = generator(4), 80, 0
    for _ in range(n_draws):
        y = np.concatenate([rng.random(n) < r for n, r in zip(sizes, rates, strict=True)])
        options = {"n_bootstrap": 100, "random_state": rng.integers(10**6)}
        groups = np.repeat(["a", "b"], sizes)
        report = fairness_report(None, y.astype(int), sensitive_features=groups, **options)
        low, high = report.loc["demographic_parity_ratio", ["value_low", "value_high"]]
        n_held += low <= rates[0] / rates[1] <= high
    assert n_held >= n_draws - stats.binom.isf(1e-7, n_draws, 0.05)


def test_what_no_row_shows_has_no_interval():
    y, p, groups = np.tile([0, 1], 20), np.zeros(40, int), np.repeat(["a", "b"], 20)
    p[20:] = 1
    table = group_report(y, p, sensitive_features=groups, method="bootstrap", random_state=0)
    ends = table.loc["a", ["positive_predictive_value_low", "positive_predictive_value_high"]]
    assert ends.isna().all()
    report = fairness_report(y, p, sensitive_features=groups, random_state=0)
    assert report.loc["predictive_parity_difference"].isna().all()


def test_fairness_report_with_parts_missing():
    y, p, s, groups, rng = case()
    only_labels = fairness_report(y, p, sensitive_features=groups, n_bootstrap=0)
    assert list(only_labels.columns) == ["value"]
    only_scores = fairness_report(y, None, sensitive_features=groups, y_score=s, n_bootstrap=2)
    assert "intra_group_pairwise_gap" in only_scores.index
    for truth in (y, None):
        values = fairness_report(truth, None, sensitive_features=groups, y_score=s, n_bootstrap=0)
        assert list(values.columns) == ["value"]
        assert values["value"].equals(only_scores["value"][values.index])
    no_truth = fairness_report(None, p, sensitive_features=groups, y_score=s, n_bootstrap=2)
    assert "equalized_odds_difference" not in no_truth.index
    assert "inter_group_pairwise_gap" not in no_truth.index
    assert "demographic_parity_ratio" in no_truth.index
    weights = rng.uniform(0.5, 2, y.size)
    weighted = fairness_report(
        y, p, sensitive_features=groups, y_score=s, sample_weight=weights, n_bootstrap=20
    )
    assert weighted.loc["wasserstein_gap", "value"] == skfair.metrics.wasserstein_gap(
        None, s, sensitive_features=groups, sample_weight=weights
    )
    assert (weighted["standard_error"] > 0).all()


@pytest.mark.parametrize("method", ["wilson", "bootstrap"])
def test_group_report_by_stratum_is_that_of_each_stratum(method):
    y, p, s, groups, rng = case(1500)
    job, w = rng.choice(["x", "y"], y.size), rng.uniform(0.5, 2, y.size)
    shared = {"method": method, "n_bootstrap": 2000, "random_state": 0}
    rows = {"sensitive_features": groups, "y_score": s, "sample_weight": w}
    report = group_report(y, p, control_features=job, **rows, **shared)
    assert report.index.names == ["stratum", "group"]
    assert [key for key, _ in report.index] == ["x"] * 4 + ["y"] * 4
    for stratum in "xy":
        own = job == stratum
        given = {name: column[own] for name, column in rows.items()}
        alone = group_report(y[own], p[own], **given, **shared)
        found = report.loc[stratum]
        assert list(found.index) == list(alone.index) == ["a", "b", "c", "overall"]
        assert list(found.columns) == list(alone.columns)
        is_drawn = alone.columns.str.endswith(("_low", "_high")) & (method == "bootstrap")
        assert np.allclose(found.loc[:, ~is_drawn], alone.loc[:, ~is_drawn], rtol=1e-12)
        # Ends of 2000 draws have an error of 0.015 widths of the interval.
        low, high = (alone.columns[alone.columns.str.endswith(end)] for end in ("_low", "_high"))
        width = alone[high].to_numpy() - alone[low].to_numpy()
        for ends in (low, high) if method == "bootstrap" else ():
            assert (np.abs(found[ends].to_numpy() - alone[ends]) <= 0.15 * width).all(axis=None)
    assert "0." in repr(report)


def test_group_report_by_stratum_with_overlapping_attributes():
    y, p, _, groups, rng = case()
    frame = pd.DataFrame({"g": groups, "h": rng.choice(["u", "v"], y.size)})
    job = rng.choice(["x", "y"], y.size)
    report = group_report(
        y, p, sensitive_features=frame, control_features=job, intersectional=False
    )
    names = ["g=a", "g=b", "g=c", "h=u", "h=v", "overall"]
    assert list(report.index) == [(stratum, name) for stratum in "xy" for name in names]
    assert report.loc[("x", "overall"), "n"] == (job == "x").sum()
    assert report.loc[("y", "h=u"), "selection_rate"] == pytest.approx(
        p[(job == "y") & (frame["h"] == "u")].mean()
    )


def test_fairness_report_within_strata():
    y, p, s, groups, rng = case(n=1000)
    job = rng.choice(["x", "y"], y.size)
    given = {"sensitive_features": groups, "control_features": job}
    report = fairness_report(y, p, y_score=s, n_bootstrap=100, random_state=0, **given)
    for name in report.index:
        second = p if name in LABEL_METRICS else s
        assert report.loc[name, "value"] == getattr(skfair.metrics, name)(y, second, **given)
    assert (report["standard_error"] > 0).all()
    # Cells are resampled by themselves: with one group per stratum the formula is known.
    shares = {"x": 0.3, "y": 0.6}
    q = (rng.random(y.size) < np.vectorize(shares.get)(job)).astype(int)
    sex = np.where(rng.random(y.size) < 0.5, "f", "m")
    given = {"sensitive_features": sex, "control_features": np.where(job == "x", job, sex)}
    one = fairness_report(None, q, n_bootstrap=800, random_state=0, **given)
    x = job == "x"
    rates = {g: q[x & (sex == g)].mean() for g in "fm"}
    variance = sum(r * (1 - r) / (x & (sex == g)).sum() for g, r in rates.items())
    mean, deviation = rates["f"] - rates["m"], np.sqrt(variance)
    draws = np.abs(rng.normal(mean, deviation, 100_000))
    error = one.loc["demographic_parity_difference", "standard_error"]
    assert error == pytest.approx(draws.std(), rel=0.15)


def test_errors_of_scores_are_known_although_a_resample_lacks_a_rare_group():
    rng = generator(0)
    n, y = 80, np.tile([0, 1], 40)
    groups = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": np.repeat(["a", "b"], 40)})
    groups.loc[[0, 1, 2], "age"] = "rare"
    scores = rng.random(n)
    given = {"sensitive_features": groups, "intersectional": False}
    report = fairness_report(y, None, y_score=scores, random_state=0, **given)
    assert np.isfinite(report[["value", "standard_error"]].to_numpy()).all()
    value = skfair.metrics.wasserstein_gap(None, scores, **given)
    assert report.loc["wasserstein_gap", "value"] == pytest.approx(value)


def test_rows_of_weight_0_do_not_change_the_errors():
    rng = generator(1)
    n, extra = 60, 200
    y, pred = rng.integers(0, 2, (2, n + extra))
    scores, group = rng.random(n + extra), rng.choice(["f", "m", "x"], n + extra)
    weight = np.append(rng.random(n) + 0.1, np.zeros(extra))
    rows = {"y_score": scores, "sensitive_features": group, "sample_weight": weight}
    whole, few = (
        fairness_report(
            *(y[:k], pred[:k]), **{name: column[:k] for name, column in rows.items()},
            n_bootstrap=50, random_state=0,
        )
        for k in (n + extra, n)
    )  # fmt: skip
    pd.testing.assert_frame_equal(pd.DataFrame(whole), pd.DataFrame(few))


def test_resamples_of_scores_are_not_all_held_at_once():
    rng = generator(0)
    s, groups = rng.random(20_000), rng.choice(["f", "m"], 20_000)
    peaks = []
    for n_bootstrap in (5, 5, 60):
        tracemalloc.start()
        fairness_report(None, None, sensitive_features=groups, y_score=s, n_bootstrap=n_bootstrap)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 20 * s.nbytes


def test_reports_survive_copies_rounding_and_selections():
    y, p, _, groups, _ = case()
    report = group_report(y, p, sensitive_features=groups)
    gaps = fairness_report(y, p, sensitive_features=groups, n_bootstrap=20, random_state=0)
    for full in (report, gaps):
        for changed in (full.copy(), copy.deepcopy(full), full.head(2), full.T.T):
            assert isinstance(changed, Report)
            shown = full.compact().loc[changed.index]
            pd.testing.assert_frame_equal(changed.compact(), shown)
        # Rounding may show half a thousandth as the other thousandth.
        texts = full.round(12).compact().to_csv(), full.compact().to_csv()
        shown, numbers = zip(
            *((NUMBER.split(one), NUMBER.findall(one)) for one in texts), strict=True
        )
        assert shown[0] == shown[1]
        assert [*map(float, numbers[0])] == pytest.approx([*map(float, numbers[1])], abs=1.001e-3)
    columns = ["n", "selection_rate", "selection_rate_low", "selection_rate_high"]
    assert report[columns].compact().columns.tolist() == ["n", "selection_rate"]
    assert "[" in repr(report[columns])
    assert "[" not in repr(report[columns[:2]])
    assert type(report.compact()) is pd.DataFrame


def test_whatever_is_computed_from_a_report_can_be_shown():
    y, p, _, groups, rng = case()
    strata = rng.choice(["u", "v"], y.size)
    report = group_report(y, p, sensitive_features=groups, control_features=strata)
    computed = (
        report.T,
        report.isna(),
        report.unstack(),
        report.reset_index(),
        report.describe(),
        report.set_axis(range(report.shape[1]), axis=1),
        pd.concat([report[["n", "n"]], report], axis=1),
        report.iloc[:0],
        report.convert_dtypes(),
    )
    for table in computed:
        assert repr(table)
        assert table._repr_html_()


@pytest.mark.parametrize("method", ["wilson", "bootstrap", None])
def test_group_report_of_selection_rates_needs_no_true_labels(method):
    y, p, scores, groups, rng = case()
    options = {
        "sensitive_features": groups,
        "control_features": rng.choice(["u", "v"], y.size),
        "sample_weight": rng.uniform(1, 2, y.size),
        "y_score": scores,
        "method": method,
        "random_state": 0,
    }
    full = group_report(y, p, **options)
    found = group_report(None, p, **options)
    same = ["n", "selection_rate", "mean_score"]
    assert [name for name in found if not name.endswith(("_low", "_high"))] == same
    pd.testing.assert_frame_equal(found[same], full[same])
    if method == "wilson":
        pd.testing.assert_frame_equal(found, full[found.columns])


def crossed(n, rng, *, is_additive=True):
    """People of six groups, four of them small, and decisions with known rates."""
    people = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.choice(list("abc"), n, p=[0.9, 0.05, 0.05])}
    )
    logits = -1 + 0.8 * (people["sex"] == "m") - people["age"].map({"a": 0, "b": 0.5, "c": -1})
    logits += 0.0 if is_additive else 2.0 * ((people["sex"] == "f") & (people["age"] == "b"))
    rates = 1 / (1 + np.exp(-logits.to_numpy()))
    names = "sex=" + people["sex"] + ", age=" + people["age"]
    return people, rates, dict(zip(names, rates, strict=True))


@pytest.mark.parametrize(
    ("is_additive", "n_draws", "factor", "covered"),
    [(True, 100, 0.85, 0.88), pytest.param(False, 100, 1.2, 0.8, marks=pytest.mark.slow)],
)
def test_pooled_estimates_are_nearer_and_their_intervals_cover(
    is_additive, n_draws, factor, covered
):
    """The errors are 0.54 and 0.84 times as large, the intervals cover 0.97 and 0.94.

    The six groups of a draw count as one: shares of 100 draws are that far from these by chance.
    """
    rng, errors, is_inside = generator(0), {"raw": [], "pooled": []}, []
    for _ in range(n_draws):
        people, rates, true = crossed(400, rng, is_additive=is_additive)
        selected = (rng.random(400) < rates).astype(int)
        for estimate, found in errors.items():
            report = group_report(None, selected, sensitive_features=people, estimate=estimate)
            of_groups = report.drop("overall")
            wanted = of_groups.index.map(true).to_numpy(float)
            found.append(np.square(of_groups["selection_rate"] - wanted).mean())
        ends = of_groups["selection_rate_low"], of_groups["selection_rate_high"]
        is_inside.append((ends[0] <= wanted) & (wanted <= ends[1]))
    assert np.mean(errors["pooled"]) < factor * np.mean(errors["raw"])
    assert np.mean(is_inside) > covered


def test_a_group_unlike_its_levels_is_not_hidden_by_pooling():
    """One of 24 groups is two logits apart; the intervals of many others are too narrow for it."""
    rng, is_inside = generator(0), []
    for _ in range(80):
        codes = rng.integers(0, [2, 3, 4], (1000, 3))
        odd = rng.integers(0, [2, 3, 4])
        is_odd = (codes == odd).all(axis=1)
        logits = (rng.normal(0, 0.5, (3, 4))[np.arange(3), codes]).sum(axis=1) - 0.5
        rates = 1 / (1 + np.exp(-logits - 2 * rng.choice([-1, 1]) * is_odd))
        people = pd.DataFrame(codes, columns=["a", "b", "c"])
        selected = (rng.random(1000) < rates).astype(int)
        report = group_report(None, selected, sensitive_features=people, estimate="pooled")
        own = report.loc["a={}, b={}, c={}".format(*odd)]
        is_inside.append(
            own["selection_rate_low"] <= rates[is_odd][0] <= own["selection_rate_high"]
        )
    assert np.mean(is_inside) > 0.7


def test_pooled_estimates_of_many_people_are_what_was_counted():
    people, rates, _ = crossed(200_000, generator(1), is_additive=False)
    selected = (generator(2).random(rates.size) < rates).astype(int)
    raw, pooled = (
        group_report(selected, selected, sensitive_features=people, estimate=estimate)
        for estimate in ("raw", "pooled")
    )
    assert np.abs(raw["selection_rate"] - pooled["selection_rate"]).max() < 0.004
    assert pooled.loc["overall"].equals(raw.loc["overall"])
    width = [
        report["selection_rate_high"] - report["selection_rate_low"] for report in (raw, pooled)
    ]
    assert width[1].to_numpy() == pytest.approx(width[0].to_numpy(), rel=0.1)


def test_pooled_estimates_read_weights_strata_and_partitions():
    import dask.dataframe as dd

    rng = generator(3)
    people, rates, _ = crossed(900, rng)
    frame = people.assign(p=(rng.random(900) < rates).astype(int), job=rng.choice(["x", "y"], 900))
    given = {"control_features": frame["job"], "estimate": "pooled", "method": "wilson"}
    report = group_report(None, frame["p"], sensitive_features=people, **given)
    same = {"sample_weight": np.full(900, 2.5)}
    weighted = group_report(None, frame["p"], sensitive_features=people, **given, **same)
    pd.testing.assert_frame_equal(report, weighted)
    lazy = dd.from_pandas(frame, npartitions=3)
    given["control_features"] = lazy["job"]
    lazily = group_report(None, lazy["p"], sensitive_features=lazy[["sex", "age"]], **given)
    pd.testing.assert_frame_equal(report, lazily)


def test_pooled_estimates_are_marked_and_empty_ones_stay_unknown():
    people, rates, _ = crossed(3000, generator(4))
    p = (rates > 0.4).astype(int)
    y = ((people["sex"] == "m") | (people["age"] == "a")).astype(int)
    report = group_report(
        y, p, sensitive_features=people, estimate="pooled", reference={"sex": "m", "age": "a"}
    )
    text = report[["n", "selection_rate", "true_positive_rate"]].compact()
    assert text["selection_rate"].drop("overall").str.startswith("~").all()
    assert not text.loc["overall"].str.contains("~").any()
    assert text.loc["sex=f, age=b", "true_positive_rate"] == "-"
    assert "~" in report.to_html()
    assert report.compact()["selection_rate_difference"].str.startswith("~").sum() == 5


def test_scores_without_outcomes_are_sent_to_what_reads_them():
    """ "Pass rates=False" was followed by "needs y_true": the audit was named by neither."""
    rng = generator(12)
    scores, groups = rng.random(200), np.resize(["f", "m"], 200)
    for options in ({}, {"rates": False}):
        with pytest.raises(ValueError, match=r"skfair\.report\.audit"):
            group_report(None, scores, sensitive_features=groups, **options)
    assert "mean prediction" in str(audit(None, scores, sensitive_features=groups))
