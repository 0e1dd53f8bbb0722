"""The public cohort: equal answers, said once, tables kept, and what it refuses."""

import inspect
import pickle
import re
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

import skfair
from skfair import metrics
from skfair.classification import ConstrainedERMClassifier
from skfair.groups.cohort import Cohort
from skfair.groups.estimates import Estimate
from skfair.groups.measured_rows import MeasuredRows
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    disparity_upper_bound,
    fairness_report,
    group_report,
    make_group_metric,
    noise_floor,
    outcome_bounds,
)
from tests.seeds import generator

inspection = pytest.importorskip("skfair.inspection")
CCDFCurveDisplay = inspection.CCDFCurveDisplay
GroupCalibrationDisplay = inspection.GroupCalibrationDisplay
GroupRatesDisplay = inspection.GroupRatesDisplay
GroupScoreDisplay = inspection.GroupScoreDisplay
DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor
audit = pytest.importorskip("skfair.report").audit

N = 600


def rows(key=0):
    """The columns of a cohort, as a dict of its arguments."""
    rng = generator(key)
    y, score = rng.integers(0, 2, N), rng.random(N)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], N), "race": rng.choice(list("abc"), N)})
    return {
        "y_true": y,
        "y_pred": (score + 0.2 * y > 0.6).astype(int),
        "y_score": score,
        "sensitive_features": table,
        "control_features": rng.choice(["north", "south"], N),
        "sample_weight": rng.uniform(0.5, 2, N),
        "units": np.arange(N) // 2,
    }


def has_columns(function):
    parameters = inspect.signature(function).parameters
    return {"y_true", "sensitive_features"} <= parameters.keys() and (
        parameters.keys() & {"y_pred", "y_score"}
    )


METRICS = [
    name
    for name in metrics.__all__
    if has_columns(getattr(metrics, name)) and "metric" not in name.split("_")
]
NEEDS = {"interval": (0.1, 0.5), "threshold": 0.5, "query_id": np.arange(N) % 20}


def without(given, *names):
    return {name: own for name, own in given.items() if name not in names}


def called(name, cohort, given):
    """Call a metric by a cohort, or by columns if it is None."""
    function = getattr(metrics, name)
    parameters = inspect.signature(function).parameters
    options = {own: value for own, value in NEEDS.items() if own in parameters}
    if "zero_division" in parameters:
        options["zero_division"] = np.nan
    if name in ("disparity_test", "disparity_upper_bound", "noise_floor", "outcome_bounds"):
        options = {"metric": "equalized_odds"} | options
    if cohort is not None:
        return function(cohort, **options)
    columns = {own: value for own, value in given.items() if own in parameters}
    return function(**columns, **options)


PLAIN = [
    name for name in METRICS if "metric" not in inspect.signature(getattr(metrics, name)).parameters
]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("facts", ["plain", "strata", "weights", "all"])
def test_a_cohort_has_the_value_of_its_columns(name, facts):
    left = {
        "plain": ["control_features", "sample_weight", "units"],
        "strata": ["sample_weight", "units"],
        "weights": ["control_features", "units"],
        "all": [],
    }[facts]
    given = without(rows(), *left)
    people = Cohort(**given)
    parameters = inspect.signature(getattr(metrics, name)).parameters
    unknown = [own for own in ("control_features", "sample_weight") if own in given]
    unknown = [own for own in unknown if own not in parameters]
    if unknown:
        with pytest.raises(TypeError, match=f"knows no {unknown[0]}, which the cohort has"):
            called(name, people, given)
        return
    found, expected = called(name, people, given), called(name, None, given)
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
    else:
        assert found == pytest.approx(expected, abs=0, rel=0, nan_ok=True)


def test_most_metrics_are_among_them():
    assert len(PLAIN) >= 40
    assert {"fairness_report", "group_report", "group_auc_gap"} < set(PLAIN)


@pytest.mark.parametrize("metric", ["equalized_odds", "demographic_parity", "group_auc_gap"])
def test_tests_and_bounds_of_both_orders(metric):
    given = without(rows(), "sample_weight", "control_features", "units")
    people = Cohort(**given)
    columns = without(given, "y_score")
    if metric == "group_auc_gap":
        columns["y_pred"] = given["y_score"]
    expected = disparity_test(metric, **columns, max_disparity=0.3)
    for found in (
        disparity_test(people, metric, max_disparity=0.3),
        disparity_test(metric, people, max_disparity=0.3),
        disparity_test(people, metric=metric, max_disparity=0.3),
    ):
        assert found[:6] == expected[:6]
        pd.testing.assert_frame_equal(found.pairs, expected.pairs)
    assert disparity_upper_bound(people, metric) == disparity_upper_bound(metric, **columns)


def test_audits_monitors_floors_and_bounds():
    given = rows()
    people = Cohort(**given, before=1 - given["y_pred"])
    found = audit(people, n_simulations=50)
    expected = audit(**given, before=1 - given["y_pred"], n_simulations=50)
    assert found.to_json() == expected.to_json()
    known = without(given, "sample_weight", "control_features", "y_score")
    monitors = [DisparityMonitor("equalized_odds", max_disparity=0.3) for _ in range(2)]
    monitors[0].update(Cohort(**known), batch=1)
    monitors[1].update(**known, batch=1)
    assert monitors[0].to_json() == monitors[1].to_json()
    for metric, second in (
        (metrics.equalized_odds_difference, "y_pred"),
        (metrics.statistical_parity_gap, "y_score"),
    ):
        columns = {"y_true": given["y_true"], "y_score": given[second]}
        columns |= {own: given[own] for own in ("sensitive_features", "units")}
        seen = noise_floor(Cohort(**without(given, "sample_weight", "control_features")), metric)
        assert np.array_equal(seen.values, noise_floor(metric, **columns).values)
    missing = known | {"y_true": np.where(known["y_pred"] == 1, known["y_true"], np.nan)}
    pd.testing.assert_frame_equal(
        outcome_bounds(Cohort(**missing), "equal_opportunity"),
        outcome_bounds("equal_opportunity", **missing),
    )


@pytest.mark.parametrize(
    "display", [GroupRatesDisplay, GroupCalibrationDisplay, CCDFCurveDisplay, GroupScoreDisplay]
)
def test_displays_draw_a_cohort(display):
    pytest.importorskip("matplotlib").use("Agg")
    given = without(rows(), "sample_weight", "control_features")
    people = Cohort(**given)
    parameters = inspect.signature(display.from_predictions).parameters
    columns = {own: value for own, value in given.items() if own in parameters}
    found, expected = display.from_cohort(people), display.from_predictions(**columns)
    assert found.group_names == expected.group_names
    drawn = [[line.get_xydata().tolist() for line in one.ax_.lines] for one in (found, expected)]
    assert drawn[0] == drawn[1]
    with pytest.raises(TypeError, match="knows no control_features"):
        display.from_cohort(Cohort(**rows()))


def test_own_metrics_take_a_cohort():
    given = without(rows(), "units", "control_features")
    people, columns = Cohort(**given), without(given, "y_score")
    f1, auc = make_group_metric(f1_score), make_group_metric(roc_auc_score)
    assert f1(people) == f1(**columns)
    scores = without(given, "y_pred")
    assert auc(people) == auc(**scores)
    assert f1(people, reference="overall") == f1(**columns, reference="overall")


def test_tables_are_read_once(monkeypatch):
    read, calls = MeasuredRows.of_labels.__func__, []

    def counted(cls, *args, **options):
        calls.append(options["counted"])
        return read(cls, *args, **options)

    monkeypatch.setattr(MeasuredRows, "of_labels", classmethod(counted))
    people = Cohort(**without(rows(), "y_score"))
    for _ in range(3):
        metrics.equalized_odds_difference(people)
        metrics.equal_opportunity_ratio(people)
        metrics.demographic_parity_difference(people)
    assert sorted(calls) == ["classes", "predictions"]
    people.difference("true_positive_rate")
    people.ratio("f1_score")
    disparity_test(people, "equalized_odds", max_disparity=0.2)
    assert sorted(calls) == ["classes", "classes", "predictions"]  # with squares and units
    metrics.equalized_odds_difference(people, intersectional=False)
    assert len(calls) == 4


RATES = [
    ("demographic_parity", ["selection_rate"]),
    ("equalized_odds", ["true_positive_rate", "false_positive_rate"]),
    ("accuracy_parity", ["accuracy"]),
]


@pytest.mark.parametrize(("criterion", "rates"), RATES)
@pytest.mark.parametrize("reference", ["pairwise", {"sex": "m", "race": "a"}])
def test_estimates_are_those_of_metrics_and_tests(criterion, rates, reference):
    people = Cohort(**without(rows(), "control_features", "y_score"))
    gap = people.difference(*rates, reference=reference)
    assert isinstance(gap, skfair.Estimate)
    metric = getattr(metrics, f"{criterion}_difference")
    assert gap.value == pytest.approx(metric(people, reference=reference), abs=1e-12)
    found = disparity_test(people, criterion, reference=reference, max_disparity=0.3)
    assert gap.p_value(0.3) == pytest.approx(found.p_value, abs=1e-12)
    low, high = gap.interval()
    report = fairness_report(people, reference=reference).loc[f"{criterion}_difference"]
    assert (low, high) == pytest.approx((report["value_low"], report["value_high"]))
    ratio = people.ratio(*rates)
    expected = getattr(metrics, f"{criterion}_ratio")(people)
    assert ratio.value == pytest.approx(expected, abs=1e-12)
    few = (
        people.difference(*rates, reference=reference, intersectional=False)
        if (reference == "pairwise")
        else gap
    )
    assert len(few.frame()) <= len(gap.frame())


def test_the_sentence_about_the_overall_rate_adds_up():
    """A group is tested against the rest, but compared with all rows."""
    people = Cohort(**without(rows(), "control_features", "y_score", "units"))
    gap = people.difference("selection_rate", reference="overall")
    text = repr(gap)
    first, second = (float(own) for own in re.findall(r"([\d.]+)% \(", text))
    assert "(overall)" in text
    assert abs(first - second) == pytest.approx(100 * gap.value, abs=0.11)
    expected = metrics.demographic_parity_difference(people, reference="overall")
    assert gap.value == pytest.approx(expected)
    with pytest.raises(ValueError, match="Ratios to the overall rate have no test"):
        people.ratio("selection_rate", reference="overall")


def test_draws_are_the_resampled_values_of_the_metric():
    people = Cohort(**without(rows(), "control_features", "y_score", "units"))
    gap = people.difference("selection_rate")
    drawn = gap.draws(400, random_state=3)
    assert drawn.shape == (400,)
    assert np.array_equal(drawn, gap.draws(400, random_state=3))
    report = fairness_report(people, n_bootstrap=400)
    error = report.loc["demographic_parity_difference", "standard_error"]
    assert drawn.std() == pytest.approx(error, rel=0.25)
    with pytest.raises(TypeError, match="needs a table"):
        Estimate(gap.means, gap.rates, gap.groups, "difference").draws(5)


def test_the_sentence_says_the_numbers():
    sex, invited = ["f", "m"] * 500, [1, 1, 1, 0] * 250
    people = Cohort(y_pred=invited, sensitive_features={"sex": sex})
    assert repr(people) == "Cohort(1,000 rows; sex: f 500, m 500; has y_pred)"
    text = repr(people.difference("selection_rate"))
    assert text.startswith("selection rate: 100.0% (f) against 50.0% (m): a difference of 50.0 p")
    assert text.endswith("], p < .001")
    low, high = people.ratio("selection_rate").interval()
    assert f"a ratio of 0.500 [{low:.3f}, {high:.3f}]" in repr(people.ratio("selection_rate"))
    one = Cohort(y_pred=invited, sensitive_features=["all"] * 1000)
    assert repr(one.difference("selection_rate")) == "nothing to compare"
    given = rows()
    assert "of 300 units" in repr(Cohort(**given))
    many = Cohort(y_pred=np.zeros(60), sensitive_features=np.arange(60) % 10)
    assert "5 more groups" in repr(many)
    nobody = Cohort([1, 1, 0, 0], [1, 0, 1, 0], sensitive_features=list("aabb"))
    assert "undefined" in repr(nobody.difference("true_positive_rate"))


@pytest.mark.parametrize("reference", ["pairwise", "m"])
@pytest.mark.parametrize("apart", [0.0, 0.06, 0.2])
def test_the_printed_p_value_agrees_with_the_interval(reference, apart):
    """Parity is inside the interval of 95% unless p is below .05."""
    rng = generator(f"{apart} {reference}")
    for _ in range(25):
        sex = rng.choice(["f", "m"], 500)
        p = rng.random(500) < 0.4 + apart * (sex == "f")
        gap = Cohort(y_pred=p, sensitive_features=sex).difference(
            "selection_rate", reference=reference
        )
        low, high = gap.interval()
        p_value = gap._p_of_none()
        if abs(p_value - 0.05) > 1e-4:
            assert (low <= 1e-9 and high >= 0) == (p_value > 0.05)


def test_where_picks_people():
    given = without(rows(), "control_features")
    region = generator(5).choice(["north", "south"], N)
    people = Cohort(**given, control_features={"region": region})
    table = given["sensitive_features"]
    kept = (table["sex"] == "f") & table["race"].isin(["a", "b"]) & (region == "north")
    few = people.where(sex="f", race=["a", "b"], region="north")
    assert len(few) == kept.sum()
    assert np.array_equal(few.y_true, given["y_true"][kept])
    assert np.array_equal(few.units, given["units"][kept])
    expected = demographic_parity_difference(
        None, given["y_pred"][kept], sensitive_features=table[kept],
        sample_weight=given["sample_weight"][kept], control_features=region[kept],
        zero_division=np.nan,
    )  # fmt: skip
    assert demographic_parity_difference(few, zero_division=np.nan) == expected
    with pytest.raises(ValueError, match="no attribute 'sx'. Did you mean 'sex'"):
        people.where(sx="f")
    with pytest.raises(ValueError, match="No row has sex='F'"):
        people.where(sex="F")
    plain = Cohort(y_pred=given["y_pred"], sensitive_features=table["sex"].to_numpy())
    with pytest.raises(ValueError, match="columns have no names"):
        plain.where(sex="f")


def test_rates_are_the_report_of_groups():
    people = Cohort(**without(rows(), "control_features"))
    pd.testing.assert_frame_equal(people.rates(method=None), group_report(people, method=None))
    assert people.rates(metrics={"f1": f1_score})["f1"].notna().all()


@pytest.mark.parametrize("aware", [False, True])
def test_from_estimator_asks_the_model(aware):
    rng = generator(aware)
    X, sex = rng.normal(size=(N, 3)), rng.choice(["f", "m"], N)
    y = np.where(X[:, 0] + rng.normal(size=N) > 0, "yes", "no")
    model = LogisticRegression()
    if aware:
        model = ConstrainedERMClassifier("demographic_parity", 0.1)
        model.fit(X, y, sensitive_features=sex)
    else:
        model.fit(X, y)
    people = skfair.Cohort.from_estimator(model, X, y, sensitive_features=sex)
    assert people.pos_label == "yes"
    predicted = model.predict(X)
    assert np.array_equal(people.y_pred, predicted)
    expected = demographic_parity_difference(
        None, predicted, sensitive_features=sex, pos_label="yes"
    )
    assert demographic_parity_difference(people) == expected
    assert metrics.group_auc_gap(people) >= 0
    numbers = LinearRegression().fit(X, X[:, 0])
    of_numbers = Cohort.from_estimator(numbers, X, X[:, 0], sensitive_features=sex)
    assert of_numbers.y_score is None
    assert "mean_residual" in set(audit(of_numbers).rates["measure"])


WRONG = [
    (ValueError, "no labels and no scores", {"y_true": None, "y_pred": None}),
    (ValueError, "needs sensitive_features", {"sensitive_features": None}),
    (ValueError, "different numbers of rows: y_true 3", {"y_true": [0, 1, 1]}),
]


@pytest.mark.parametrize(("error", "message", "changed"), WRONG)
def test_wrong_columns_are_refused_when_a_cohort_is_made(error, message, changed):
    given = without(rows(), "y_score", "control_features", "sample_weight", "units")
    with pytest.raises(error, match=message):
        Cohort(**given | changed)


def test_a_cohort_may_be_named():
    people = Cohort(**without(rows(), "control_features", "units"))
    expected = demographic_parity_difference(people)
    assert demographic_parity_difference(y_true=people) == expected
    assert repr(audit(y_true=people, n_simulations=20)) == repr(audit(people, n_simulations=20))


def test_the_positive_class_of_a_metric_goes_with_a_cohort():
    given = without(rows(), "control_features", "units", "y_score")
    words = {name: np.where(given[name] == 1, "yes", "no") for name in ("y_true", "y_pred")}
    own = make_group_metric(partial(f1_score, pos_label="yes"))
    bound = disparity_upper_bound(Cohort(**given | words), own)
    assert bound == disparity_upper_bound(make_group_metric(f1_score), **given)


def test_a_cohort_does_not_change():
    """Its tables are kept, so another column would have the old answers."""
    people = Cohort(**rows())
    for name in ("y_pred", "sensitive_features", "other"):
        with pytest.raises(AttributeError, match="does not change"):
            setattr(people, name, None)
    again = pickle.loads(pickle.dumps(people))
    assert metrics.equalized_odds_difference(again) == metrics.equalized_odds_difference(people)


def test_reordered_columns_are_refused():
    given = rows()
    table = given["sensitive_features"]
    y = pd.Series(given["y_true"])[::-1]
    with pytest.raises(ValueError, match="index"):
        Cohort(y, given["y_pred"], sensitive_features=table)


def test_what_is_said_twice_or_without_a_name_is_refused():
    given = without(rows(), "control_features", "sample_weight", "units")
    people = Cohort(**given)
    with pytest.raises(TypeError, match=r"got sensitive_features= beside a cohort"):
        demographic_parity_difference(people, sensitive_features=given["sensitive_features"])
    with pytest.raises(TypeError, match=r"got pos_label= beside a cohort"):
        demographic_parity_difference(people, pos_label=1)
    with pytest.raises(TypeError, match="without a name"):
        demographic_parity_difference(people, given["y_pred"])
    with pytest.raises(TypeError, match="without a name"):
        demographic_parity_difference(given["y_true"], people)
    with pytest.raises(ValueError, match="no rate 'selection'. Did you mean 'selection_rate'"):
        people.difference("selection")
    with pytest.raises(ValueError, match="by its rates.*is about equalized odds"):
        people.difference("equalized_odds")
    with pytest.raises(ValueError, match="method must be"):
        people.difference("selection_rate", method="exactly")
    with pytest.raises(TypeError, match="Cohort takes 2 arguments without a name"):
        Cohort(given["y_true"], given["y_pred"], given["sensitive_features"])
    with pytest.raises(ValueError, match="no interval"):
        people.difference("error_ratio")
    labels_only = Cohort(**without(given, "y_score"))
    with pytest.raises(ValueError, match="y_score is None"):
        metrics.group_auc_gap(labels_only)
    with pytest.raises(ValueError, match="needs y_true"):
        metrics.equal_opportunity_difference(Cohort(**without(given, "y_true")))


@pytest.mark.parametrize("container", ["pandas", "polars", "lists"])
def test_columns_of_any_kind(container):
    given = without(rows(), "y_score", "control_features", "sample_weight", "units")
    table = given["sensitive_features"]
    convert = {
        "pandas": lambda v: pd.Series(v),
        "polars": lambda v: pl.Series(v),
        "lists": lambda v: np.asarray(v).tolist(),
    }[container]
    tables = {"pandas": table, "polars": pl.from_pandas(table), "lists": table.to_dict("list")}
    own = {"y_true": convert(given["y_true"]), "y_pred": convert(given["y_pred"])}
    people = Cohort(**own, sensitive_features=tables[container])
    assert len(people) == N
    assert metrics.equalized_odds_difference(people) == metrics.equalized_odds_difference(**given)
    assert len(people.where(sex="f")) == (table["sex"] == "f").sum()


def test_dask_collections_are_read_where_they_are():
    dask = pytest.importorskip("dask.array")
    given = without(rows(), "y_score", "control_features", "sample_weight", "units")
    sex = given["sensitive_features"]["sex"].to_numpy().astype(str)
    lazy = {name: dask.from_array(given[name], 200) for name in ("y_true", "y_pred")}
    people = Cohort(**lazy, sensitive_features=dask.from_array(sex, 200))
    in_memory = Cohort(given["y_true"], given["y_pred"], sensitive_features=sex)
    assert "Dask" in repr(people)
    found, expected = (one.difference("selection_rate") for one in (people, in_memory))
    assert found.value == pytest.approx(expected.value)
    assert found.interval() == pytest.approx(expected.interval())
    with pytest.raises(TypeError, match=r"compute\(\)"):
        people.where(sex="f")


def test_functions_keep_their_names_signatures_and_pickles():
    for function in (demographic_parity_difference, disparity_test, audit, fairness_report):
        assert pickle.loads(pickle.dumps(function)) is function
        assert "sensitive_features" in inspect.signature(function).parameters
    assert "def metric(" in inspect.getsource(demographic_parity_difference)
    assert clone(DisparityMonitor()) if hasattr(DisparityMonitor, "get_params") else True
