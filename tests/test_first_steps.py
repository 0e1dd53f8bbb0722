"""First steps of new users: each case once went wrong, silently or late, for one of them."""

import copy
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.constraints.cells import Parts
from skfair.constraints.rates import RateParity
from skfair.inspection import GroupCalibrationDisplay
from skfair.metrics import (
    demographic_parity_difference,
    demographic_parity_ratio,
    disparity_test,
    disparity_upper_bound,
    fairness_report,
    get_scorer,
    group_report,
    largest_group_loss,
    sample_size,
)
from skfair.model_selection import fairness_path
from skfair.monitoring import DisparityMonitor
from skfair.regression import FairDecisionRegressor
from skfair.report import audit
from tests.public import public_objects

RNG = np.random.default_rng(0)
N = 800
FRAME = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc"))
PEOPLE = pd.DataFrame(
    {"sex": RNG.choice(["f", "m"], N), "age": RNG.choice(["old", "young"], N, p=[0.4, 0.6])}
)
SEX = PEOPLE["sex"]
FRAME["a"] += SEX == "m"
Y = (FRAME["a"] + FRAME["b"] + RNG.normal(size=N) > 0.5).astype(int)
PERSON = np.arange(N) // 2
WITH_SEX = FRAME.assign(sex=(SEX == "m").astype(int))


@pytest.mark.parametrize("kind", [FairDecisionClassifier, PartialParityClassifier])
def test_a_named_column_never_makes_decisions_depend_on_the_group(kind):
    model = kind(sensitive="sex", max_disparity=0.2).fit(WITH_SEX, Y)
    assert not model.is_group_aware_
    swapped = WITH_SEX.assign(sex=1 - WITH_SEX["sex"])
    assert np.array_equal(model.predict(WITH_SEX), model.predict(swapped))


def test_folds_that_are_a_generator_survive_copies_files_and_a_second_fit():
    folds = GroupKFold(4).split(FRAME, Y, groups=PERSON)
    model = FairDecisionClassifier(cv=folds).fit(FRAME, Y, sensitive_features=SEX)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model, clone(model)):
        other.fit(FRAME, Y, sensitive_features=SEX)
        assert np.array_equal(other.train_predictions_, model.train_predictions_)


def test_a_splitter_by_people_gets_them_from_fit_and_by_routing():
    by_list = FairDecisionClassifier(cv=list(GroupKFold(4).split(FRAME, Y, groups=PERSON)))
    by_list.fit(FRAME, Y, sensitive_features=SEX)
    model = FairDecisionClassifier(cv=GroupKFold(4))
    model.fit(FRAME, Y, sensitive_features=SEX, groups=PERSON)
    assert np.array_equal(model.train_predictions_, by_list.train_predictions_)
    with config_context(enable_metadata_routing=True):
        piped = make_pipeline(model)
        piped.fit(FRAME, Y, sensitive_features=SEX, groups=PERSON)
        params = {"groups": PERSON, "sensitive_features": SEX}
        scores = cross_validate(model, FRAME, Y, cv=GroupKFold(2), params=params)["test_score"]
    assert np.isfinite(scores).all()
    assert np.array_equal(piped[-1].train_predictions_, by_list.train_predictions_)


def test_wrong_names_and_numbers_of_groups_say_what_to_do():
    with pytest.raises(TypeError, match="'sensitive_feature'.*Did you mean 'sensitive_features'"):
        FairDecisionClassifier().fit(FRAME, Y, sensitive_feature=SEX)
    with pytest.raises(ValueError, match="takes columns of X: set sensitive="):
        FairDecisionClassifier().fit(FRAME, Y, sensitive_features=SEX[:9])


def test_scorers_refuse_wrong_arguments_when_they_are_made():
    with pytest.raises(TypeError, match="'intervall'. Did you mean 'interval'"):
        get_scorer("neg_partial_ccdf_gap", intervall=(0, 0.3))
    with pytest.raises(TypeError, match="no argument 'attribute'"):
        get_scorer("neg_demographic_parity_difference", attribute="sex")


def test_reports_stay_reports():
    report = fairness_report(Y, Y, sensitive_features=SEX)
    for changed in (report.copy(), report.round(2), copy.deepcopy(report)):
        assert type(changed) is type(report)
        assert str(changed.compact())
    table = group_report(Y, Y, sensitive_features=SEX)
    assert type(table[["accuracy", "n"]]) is type(table)


def test_the_four_fifths_rule_is_said_as_people_say_it():
    constraint = DemographicParity(min_ratio=0.8)
    model = FairDecisionClassifier(constraint=constraint, cv=3).fit(
        FRAME, Y, sensitive_features=SEX
    )
    decided = model.train_predictions_
    assert demographic_parity_ratio(Y, decided, sensitive_features=SEX) >= 0.8
    free = FairDecisionClassifier(max_disparity=1.0, cv=3).fit(FRAME, Y, sensitive_features=SEX)
    assert demographic_parity_ratio(Y, free.train_predictions_, sensitive_features=SEX) < 0.8


def test_a_smallest_ratio_is_tested_as_the_limit_of_a_constraint_is():
    given = {"sensitive_features": SEX}
    asked = disparity_test("demographic_parity", None, Y, min_ratio=0.4, **given)
    old = {"comparison": "ratio", "max_disparity": 0.6}
    for same in (
        disparity_test("demographic_parity", None, Y, **old, **given),
        disparity_test(DemographicParity(min_ratio=0.4), None, Y, **given),
    ):
        assert (asked.p_value, asked.max_disparity) == (same.p_value, same.max_disparity)
    bound = disparity_upper_bound("demographic_parity", None, Y, comparison="ratio", **given)
    assert asked.is_within == (bound <= 0.6)
    assert np.array_equal(sample_size(min_ratio=0.8), sample_size(1 - 0.8, comparison="ratio"))
    with pytest.raises(ValueError, match="are both a limit"):
        disparity_test("demographic_parity", None, Y, min_ratio=0.8, max_disparity=0.1, **given)
    with pytest.raises(ValueError, match="min_ratio must be"):
        sample_size(min_ratio=80)
    with pytest.raises(ValueError, match="There is no limit"):
        sample_size()


def test_selection_rates_need_no_true_labels():
    report = group_report(None, Y, sensitive_features=SEX)
    for group in ("f", "m"):
        assert report.loc[group, "selection_rate"] == pytest.approx(Y[group == SEX].mean())


def test_certificates_say_what_is_shown_of_each_attribute():
    model = FairDecisionClassifier(
        max_disparity={"sex": 0.3, "age": 0.25},
        sensitive=Sensitive(crossed=False),
        confidence=0.9,
        random_state=0,
    ).fit(FRAME, Y, sensitive_features=PEOPLE)
    shown, p_values = model.certified_disparities_, model.p_values_
    assert list(shown) == list(p_values) == list(model.train_disparities_)
    assert list(shown) == ["DemographicParity of sex", "DemographicParity of age"]
    assert max(shown.values()) == model.certified_disparity_
    assert max(p_values.values()) == model.p_value_
    for name, limit in model.max_disparity.items():
        reached = model.train_disparities_[f"DemographicParity of {name}"]
        # What is shown is above what was measured, and within the limit if p is small enough.
        assert shown[f"DemographicParity of {name}"] > reached
        is_shown = shown[f"DemographicParity of {name}"] <= limit
        assert is_shown == (p_values[f"DemographicParity of {name}"] <= 0.1)
    alone = FairDecisionClassifier(max_disparity=0.3, confidence=0.9, random_state=0)
    alone.fit(FRAME, Y, sensitive_features=SEX)
    assert alone.certified_disparities_ == {"DemographicParity": alone.certified_disparity_}
    alone.set_params(confidence=None).fit(FRAME, Y, sensitive_features=SEX)
    assert not hasattr(alone, "certified_disparities_")
    assert not hasattr(alone, "p_values_")


def test_gauges_of_a_monitor_are_disparities_of_their_attribute():
    monitor = DisparityMonitor("demographic_parity", {"sex": 0.05, "age": 0.5})
    for _ in range(12):
        monitor.update(None, Y, PEOPLE)
    gauges = dict(
        re.findall(r'skfair_disparity\{.*attribute="(\w+)"\} (\S+)', monitor.to_prometheus())
    )
    for name in ("sex", "age"):
        by_hand = demographic_parity_difference(None, Y, sensitive_features=PEOPLE[name])
        assert float(gauges[name]) == pytest.approx(by_hand, abs=1e-9)


def test_nothing_is_deprecated_before_a_release():
    for name, thing in public_objects():
        assert "deprecated" not in (getattr(thing, "__doc__", "") or ""), name


@pytest.mark.parametrize(
    ("options", "is_there"),
    [
        ({}, True),
        ({"solver": "alm"}, True),
        ({"solver": "al_newton"}, False),
        ({"confidence": 0.9}, False),
        ({"constraint": ConditionalOn("demographic_parity")}, False),
    ],
)
def test_partial_fit_is_there_if_it_works(options, is_there):
    model = ConstrainedERMClassifier(random_state=0, **options)
    assert hasattr(model, "partial_fit") == is_there
    if is_there:
        model.partial_fit(FRAME, Y, sensitive_features=SEX)
        assert model.predict(FRAME).shape == (N,)


def test_names_of_columns_go_to_the_estimator():
    with pytest.raises(ValueError, match=r"set sensitive=\['sex'\] of the estimator"):
        ConstrainedERMClassifier().fit(WITH_SEX, Y, sensitive_features=["sex"])
    with pytest.raises(TypeError, match="give its name to the estimator, sensitive="):
        ConstrainedERMClassifier().fit(WITH_SEX, Y, sensitive_features="sex")


def test_paths_take_pipelines():
    inner = ConstrainedERMClassifier()
    piped = make_pipeline(StandardScaler(), inner)
    given = {"sensitive_features": SEX, "max_disparities": [0.2, 0.05]}
    path = fairness_path(piped, FRAME, Y, **given)
    assert [model[-1].max_disparity for model in path.estimators] == [0.2, 0.05]
    scaled = StandardScaler().fit_transform(FRAME)
    direct = fairness_path(inner, scaled, Y, **given)
    assert path.train_disparities == pytest.approx(direct.train_disparities)
    assert path.train_scores == pytest.approx(direct.train_scores)
    tested = {"X_test": FRAME, "y_test": Y, "sensitive_features_test": SEX}
    path = fairness_path(piped, FRAME, Y, **given, **tested)
    assert path.test_disparities == pytest.approx(path.train_disparities)
    with config_context(enable_metadata_routing=True):
        routed = fairness_path(piped, FRAME, Y, **given)
    assert routed.train_disparities == pytest.approx(direct.train_disparities)


def test_probabilities_have_logarithms():
    model = FairDecisionClassifier(cv=3).fit(FRAME, Y, sensitive_features=SEX)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(FRAME)), model.predict_proba(FRAME))


@pytest.mark.parametrize(
    ("fit", "meant"),
    [
        (lambda: ConstrainedERMClassifier("equalised_odds"), "equalized_odds"),
        (lambda: ConstrainedERMClassifier("demographic_parity_difference"), "demographic_parity"),
        (lambda: ConstrainedERMClassifier(solver="al_newtn"), "al_newton"),
        (lambda: ConstrainedERMClassifier(loss="logloss"), "log_loss"),
        (lambda: FairDecisionClassifier(constraint="equal_oportunity"), "equal_opportunity"),
        (lambda: PartialParityClassifier(constraint="equal_oportunity"), "equal_opportunity"),
        (lambda: PartialParityCalibrator(constraint="equal_oportunity"), "equal_opportunity"),
        (lambda: FairKMeans(solver="pricess"), "prices"),
        (lambda: FairSpectralClustering(solver="lanczo"), "lanczos"),
        (lambda: FairSpectralClustering(affinity="nearest_neighbors_graph"), "nearest_neighbors"),
        (lambda: PartialParityClassifier(solver="al_newtn"), "al_newton"),
    ],
)
def test_misspelt_names_are_guessed(fit, meant):
    with pytest.raises(ValueError, match=f"Did you mean '{meant}'"):
        fit().fit(FRAME, Y, sensitive_features=SEX)


class OfTheOld:
    """Rows whose third column is above 0, as the page for developers says how to write it."""

    def parts(self, rows):
        counts = np.where(rows.groups.codes[0] >= 0, (FRAME["c"] <= 0).astype(int), 1)
        return Parts(counts, (" among some",))


class AmongSome(RateParity):
    """Selection rates among some of the rows."""

    given = OfTheOld()


def test_rows_that_count_may_be_split_by_an_object_of_ones_own():
    model = FairDecisionClassifier(constraint=AmongSome(), max_disparity=0.02, cv=3)
    model.fit(FRAME, Y, sensitive_features=SEX)
    decided, some = model.train_predictions_[FRAME["c"] > 0], SEX[FRAME["c"] > 0]
    assert abs(decided[some == "f"].mean() - decided[some == "m"].mean()) <= 0.02 + 1e-9


def test_misspelt_names_are_guessed_where_nothing_is_fitted():
    with pytest.raises(ValueError, match="Did you mean 'equalized_odds'"):
        DisparityMonitor("equalised_odds")
    with pytest.raises(ValueError, match="Did you mean 'neg_demographic_parity_difference'"):
        get_scorer("neg_demographic_parity")
    with pytest.raises(ValueError, match="Did you mean 'equalized_odds'"):
        disparity_test("equalised_odds", Y, Y, sensitive_features=SEX, max_disparity=0.1)
    with pytest.raises(ValueError, match="Did you mean 'hinge'"):
        largest_group_loss(Y, Y, sensitive_features=SEX, loss="hing")


def test_metrics_do_not_speak_of_an_X_that_there_is_not():
    for given in (SEX[:-1], ["sex"]):
        with pytest.raises(ValueError, match=rf"has {len(given)} rows but the other data have 800"):
            demographic_parity_difference(None, Y, sensitive_features=given)


def test_the_summary_says_which_decisions_limits_hold_for():
    words = " ".join(FairDecisionClassifier.__doc__.split())
    assert "``predict(X_train)`` may differ, because its models have seen these rows" in words


@pytest.mark.parametrize("classes", [2, 3])
def test_models_that_need_groups_are_scored_by_accuracy_with_routing(classes):
    y = Y if classes == 2 else Y + (FRAME["c"] > 0.5)
    model = FairDecisionClassifier(LogisticRegression(), max_disparity=0.3, group_aware=True, cv=3)
    model.fit(FRAME, y, sensitive_features=SEX)
    found = get_scorer("accuracy")(model, FRAME, y, sensitive_features=SEX)
    assert found == pytest.approx(model.score(FRAME, y, sensitive_features=SEX))
    worst = get_scorer("neg_demographic_parity_difference", worst_class=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = worst(model, FRAME, y, sensitive_features=SEX)
    decided = model.predict(FRAME, sensitive_features=SEX)
    by_hand = [
        abs((decided == label)[SEX == "f"].mean() - (decided == label)[SEX == "m"].mean())
        for label in model.classes_
    ]
    assert value == pytest.approx(-max(by_hand))


@pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]])
@pytest.mark.parametrize("kind", [FairDecisionClassifier, ConstrainedERMClassifier])
def test_the_target_among_groups_or_columns_is_said(kind, labels):
    y = np.array(labels)[Y]
    for groups in (y, list(y), pd.Series(y)):
        with pytest.warns(UserWarning, match="sensitive_features are the same as the target y"):
            kind(max_disparity=1).fit(FRAME, y, sensitive_features=groups)
    inner = make_pipeline(ColumnTransformer([("a", "passthrough", ["a"])]), LogisticRegression())
    model = kind(max_disparity=1)
    if kind is FairDecisionClassifier:
        model.set_params(estimator=inner)
    leaky = FRAME.assign(paid=y if kind is FairDecisionClassifier else y == labels[1])
    if labels == [0, 1] or kind is FairDecisionClassifier:
        with pytest.warns(
            UserWarning, match="The column paid of X tells the target y exactly. Drop it."
        ):
            model.fit(leaky, y, sensitive_features=SEX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(FRAME.assign(paid=np.roll(Y, 1)), y, sensitive_features=SEX)


def test_a_column_that_a_transformer_has_renamed_is_found():
    columns = ColumnTransformer([("sex", "passthrough", ["sex"]), ("rest", "passthrough", ["a"])])
    model = ConstrainedERMClassifier(sensitive="sex")
    with pytest.raises(ValueError, match="no column 'sex'. Did you mean 'sex__sex'"):
        make_pipeline(columns.set_output(transform="pandas"), model).fit(WITH_SEX, Y)


def test_weights_reach_the_last_step_of_a_pipeline_as_the_warning_says():
    plain = FairDecisionClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    weights, given = np.where(Y, 3.0, 1.0), {"sensitive_features": SEX}
    with pytest.warns(UserWarning, match="pass logisticregression__sample_weight= too"):
        ignored = clone(plain).fit(FRAME, Y, sample_weight=weights, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given["logisticregression__sample_weight"] = weights
        used = clone(plain).fit(FRAME, Y, sample_weight=weights, **given)
    assert used.predict_proba(FRAME)[:, 1].mean() > ignored.predict_proba(FRAME)[:, 1].mean() + 0.1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_whose_squares_overflow_are_named(dtype):
    X = (FRAME.to_numpy() * np.finfo(dtype).max ** 0.8).astype(dtype)
    for rows in (X, pd.DataFrame(X)):
        with pytest.raises(ValueError, match="inf") as caught:
            FairDecisionRegressor(Ridge()).fit(
                rows, FRAME["a"] + FRAME["b"], sensitive_features=SEX
            )
        assert "whose squares overflow" in " ".join(caught.value.__notes__)
    with pytest.raises(ValueError, match="NaN") as caught:
        FairDecisionRegressor(Ridge()).fit(FRAME * np.nan, Y, sensitive_features=SEX)
    assert not getattr(caught.value, "__notes__", [])


THREE = np.where(FRAME["a"] > 0.5, "late", np.where(FRAME["b"] > 0, "mid", "early"))
MISSING = Y.astype(float).where(np.arange(N) > 0)
OF_SEX = {"sensitive_features": SEX}


@pytest.mark.parametrize("kind", [FairDecisionClassifier, ConstrainedERMClassifier])
@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ((Y, FRAME), "Pass X first"),
        ((FRAME, np.eye(2)[Y]), r"y.argmax\(axis=1\)"),
        ((FRAME, MISSING), "Drop the rows whose target is missing"),
        ((FRAME, np.ones(N)), "Add rows of another class"),
        (([{"a": 1.0}] * N, Y), "DictVectorizer"),
    ],
    ids=["swapped", "one-hot", "missing", "one class", "dicts"],
)
def test_errors_about_the_data_of_a_fit_say_what_to_do(kind, columns, remedy):
    with pytest.raises((TypeError, ValueError)) as caught:
        kind().fit(*columns, **OF_SEX)
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(remedy, said)


@pytest.mark.filterwarnings("ignore::skfair.exceptions.MissingGroupsWarning")
@pytest.mark.parametrize("kind", [FairDecisionClassifier, ConstrainedERMClassifier, FairKMeans])
def test_people_that_are_sensitive_attributes_are_told_where_they_go(kind):
    with pytest.raises((TypeError, ValueError), match="passed as sensitive_features="):
        kind().fit(FRAME, Y, groups=SEX)


@pytest.mark.parametrize("kind", [FairDecisionClassifier, ConstrainedERMClassifier, FairKMeans])
def test_attributes_before_the_fit_ask_for_it(kind):
    model = kind()
    for name in ("status_", "train_disparity_", "labels_"):
        assert not hasattr(model, name)
        with pytest.raises(NotFittedError, match=f"so it has no {name}. Call fit first"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        model.no_such_name  # noqa: B018
    fitted = model.fit(FRAME, Y, **OF_SEX)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name_'"):
        fitted.no_such_name_  # noqa: B018


def test_several_classes_are_sent_to_the_estimator_that_takes_them():
    with pytest.raises(ValueError, match="FairDecisionClassifier limits the disparity of each"):
        ConstrainedERMClassifier().fit(FRAME, THREE, **OF_SEX)
    FairDecisionClassifier(max_disparity=1, cv=2).fit(FRAME, THREE, **OF_SEX)


def test_thresholds_of_groups_are_passed_as_decisions():
    score = 1 / (1 + np.exp(-FRAME["a"]))
    with pytest.raises(ValueError, match="pass the decisions by these as y_pred"):
        audit(Y, y_score=score, threshold={"f": 0.4, "m": 0.5}, **OF_SEX)


def test_the_auc_of_groups_is_one_step_from_each_shorter_form():
    score = 1 / (1 + np.exp(-FRAME["a"]))
    asked = {"metrics": {"auc": roc_auc_score}, "random_state": 0, **OF_SEX}
    form = re.escape("group_report(y_true, y_score > 0.5, y_score=y_score, metrics=")
    for columns in (
        {"y_pred": score},
        {"y_score": score},
        {"y_pred": score > 0.5},
        {"y_pred": score, "rates": False},
    ):
        with pytest.raises(ValueError, match=form):
            group_report(Y, **columns, **asked)
    report = group_report(Y, score > 0.5, y_score=score, **asked)
    for sex in ("f", "m"):
        own = sex == SEX
        assert report.loc[sex, "auc"] == roc_auc_score(Y[own], score[own])


def test_the_calibration_of_one_of_several_classes_works_as_the_error_says():
    pytest.importorskip("matplotlib")
    model = LogisticRegression().fit(FRAME, THREE)
    k = 1
    label, proba = model.classes_.tolist()[k], model.predict_proba(FRAME)
    said = re.escape(f"y == {label!r} and the scores predict_proba(X)[:, {k}]")
    with pytest.raises(ValueError, match=said):
        GroupCalibrationDisplay.from_estimator(model, FRAME, THREE, pos_label=label, **OF_SEX)
    with pytest.raises(ValueError, match="pass the column of one of them"):
        GroupCalibrationDisplay.from_predictions(THREE, proba, pos_label=label, **OF_SEX)
    display = GroupCalibrationDisplay.from_predictions(label == THREE, proba[:, k], **OF_SEX)
    assert display.group_names == ["f", "m"]


@pytest.mark.parametrize("kind", [FairDecisionClassifier, FairDecisionRegressor])
@pytest.mark.parametrize("attributes", [["sex"], ["sex", "age"]])
def test_people_without_a_group_are_predicted_as_those_of_a_new_one(kind, attributes):
    known = PEOPLE[attributes]
    model = kind(group_aware=True, cv=3).fit(FRAME, Y, sensitive_features=known)
    first = slice(0, 60)
    new = known[first].astype(object)
    for value in (None, np.nan, pd.NA, "x"):
        new.iloc[0, 0] = value
        with pytest.raises(ValueError, match=rf"{kind.__name__}\(unseen='overall'\) treats"):
            model.set_params(unseen="error").predict(FRAME[first], sensitive_features=new)
        model.set_params(unseen="overall")
        seen = model.predict(FRAME[first], sensitive_features=known[first])
        predicted = model.predict(FRAME[first], sensitive_features=new)
        if value is None:
            expected = predicted
        assert np.array_equal(predicted, expected)
        assert np.array_equal(predicted[1:], seen[1:])
