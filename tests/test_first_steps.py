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
)
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.constraints.cells import Parts
from skfair.constraints.rates import RateParity
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    disparity_upper_bound,
    equal_opportunity_difference,
    fairness_report,
    get_scorer,
    group_report,
    largest_group_loss,
    sample_size,
)
from skfair.model_selection import fairness_path
from skfair.regression import FairDecisionRegressor
from tests.families import rows_of_families
from tests.messages import messages
from tests.seeds import generator

RNG = generator(0)
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


THREE = np.where(FRAME["a"] > 0.5, "late", np.where(FRAME["b"] > 0, "mid", "early"))
OF_SEX = {"sensitive_features": SEX}
RENAMED = ColumnTransformer([("sex", "passthrough", ["sex"]), ("rest", "passthrough", ["a"])])
RENAMED.set_output(transform="pandas")


def fit(kind, X=FRAME, y=Y, groups=SEX, **options):
    """Return a call that fits."""
    return lambda: kind(**options).fit(X, y, sensitive_features=groups)


def of(function, *columns, **options):
    """Return a call with groups."""
    return lambda: function(*columns, **OF_SEX | options)


ERM, DECISIONS = ConstrainedERMClassifier, FairDecisionClassifier
DATA = [
    (ValueError, "Pass X first", (Y, FRAME)),
    (ValueError, r"y.argmax\(axis=1\)", (FRAME, np.eye(2)[Y])),
    (ValueError, "Drop the rows whose target is missing", (FRAME, Y.where(Y > 0))),
    (ValueError, "Add rows of another class", (FRAME, np.ones(N))),
    (TypeError, "DictVectorizer", ([{"a": 1.0}] * N, Y)),
]
OTHERS = rows_of_families("KINDS")
MISSPELT = [
    (ERM, "constraint", "equalised_odds", "equalized_odds"),
    (ERM, "constraint", "demographic_parity_difference", "demographic_parity"),
    (ERM, "solver", "al_newtn", "al_newton"),
    (ERM, "loss", "logloss", "log_loss"),
    (DECISIONS, "constraint", "equal_oportunity", "equal_opportunity"),
    *rows_of_families("MISSPELT"),
]
test_wrong_calls_say_what_to_do = messages(
    *(
        (error, words, fit(kind, *columns))
        for kind in (ERM, DECISIONS)
        for error, words, columns in DATA
    ),
    (ValueError, "FairDecisionClassifier limits the disparity of each", fit(ERM, y=THREE)),
    (TypeError, "'sensitive_features'", lambda: DECISIONS().fit(FRAME, Y, sensitive_feature=SEX)),
    (TypeError, "In skfair, use certificate=", lambda: DECISIONS(confidence=0.95)),
    (ValueError, "takes columns of X: set sensitive=", fit(DECISIONS, groups=SEX[:9])),
    (ValueError, r"set sensitive=\['sex'\] of the", fit(ERM, WITH_SEX, groups=["sex"])),
    (TypeError, "its name to the estimator, sensitive=", fit(ERM, WITH_SEX, groups="sex")),
    (
        ValueError,
        "no column 'sex'. Did you mean 'sex__sex'",
        lambda: make_pipeline(RENAMED, ERM(sensitive="sex")).fit(WITH_SEX, Y),
    ),
    # A metric has no X.
    (
        ValueError,
        "has 1 rows but the other data have 800",
        of(demographic_parity_difference, None, Y, sensitive_features=["sex"]),
    ),
    *(
        (ValueError, f"Did you mean '{meant}'", fit(kind, **{name: wrong}))
        for kind, name, wrong, meant in MISSPELT
    ),
    (
        ValueError,
        "mean 'equalized_odds'",
        of(disparity_test, "equalised_odds", Y, Y, max_disparity=1),
    ),
    (ValueError, "Did you mean 'hinge'", of(largest_group_loss, Y, Y, loss="hing")),
    (ValueError, "Did you mean 'neg_group_auc_gap'", lambda: get_scorer("group_auc_gap")),
    (TypeError, "mean 'ties'", lambda: get_scorer("neg_group_auc_gap", tie="geq")),
    (TypeError, "no argument 'attribute'", lambda: get_scorer("neg_group_auc_gap", attribute="a")),
    (
        ValueError,
        "are both a limit",
        of(disparity_test, "demographic_parity", None, Y, min_ratio=0.8, max_disparity=0.1),
    ),
    (ValueError, "min_ratio must be", lambda: sample_size(min_ratio=80)),
    (ValueError, "There is no limit", sample_size),
)


@pytest.mark.filterwarnings("ignore::skfair.exceptions.MissingGroupsWarning")
@pytest.mark.parametrize("kind", [ERM, DECISIONS, *OTHERS])
def test_people_that_are_sensitive_attributes_are_told_where_they_go(kind):
    with pytest.raises((TypeError, ValueError), match="passed as sensitive_features="):
        kind().fit(FRAME, Y, groups=SEX)


@pytest.mark.parametrize("kind", [FairDecisionClassifier, *rows_of_families("TRAINED")])
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


def test_a_splitter_by_people_gets_them_by_routing():
    model = FairDecisionClassifier(cv=GroupKFold(4))
    model.fit(FRAME, Y, sensitive_features=SEX, units=PERSON)
    with config_context(enable_metadata_routing=True):
        piped = make_pipeline(model)
        piped.fit(FRAME, Y, sensitive_features=SEX, units=PERSON)
        params = {"groups": PERSON, "units": PERSON, "sensitive_features": SEX}
        scores = cross_validate(model, FRAME, Y, cv=GroupKFold(2), params=params)["test_score"]
    assert np.isfinite(scores).all()
    assert np.array_equal(piped[-1].train_predictions_, model.train_predictions_)


def test_reports_stay_reports():
    report = fairness_report(Y, Y, sensitive_features=SEX)
    for changed in (report.copy(), report.round(2), copy.deepcopy(report)):
        assert type(changed) is type(report)
        assert str(changed.compact())
    table = group_report(Y, Y, sensitive_features=SEX)
    assert type(table[["accuracy", "n"]]) is type(table)


def test_a_smallest_ratio_is_tested_as_the_limit_of_a_constraint_is():
    given = {"sensitive_features": SEX}
    asked = disparity_test("demographic_parity", None, Y, min_ratio=0.6, **given)
    old = {"comparison": "ratio", "max_disparity": 0.4}
    for same in (
        disparity_test("demographic_parity", None, Y, **old, **given),
        disparity_test(DemographicParity(min_ratio=0.6), None, Y, **given),
    ):
        assert (asked.p_value, asked.max_disparity) == (same.p_value, same.max_disparity)
    bound = disparity_upper_bound("demographic_parity", None, Y, comparison="ratio", **given)
    assert asked.is_within == (bound <= 0.4)
    assert np.array_equal(sample_size(min_ratio=0.8), sample_size(1 - 0.8, comparison="ratio"))


def test_selection_rates_need_no_true_labels():
    report = group_report(None, Y, sensitive_features=SEX)
    for group in ("f", "m"):
        assert report.loc[group, "selection_rate"] == pytest.approx(Y[group == SEX].mean())


def test_certificates_say_what_is_shown_of_each_attribute():
    model = FairDecisionClassifier(
        max_disparity={"sex": 0.3, "age": 0.25},
        sensitive=Sensitive(intersectional=False),
        certificate=0.9,
        random_state=0,
    ).fit(FRAME, Y, sensitive_features=PEOPLE)
    shown, p_values = model.certified_disparities_, model.p_values_
    assert list(shown) == list(p_values) == list(model.train_disparities_)
    assert list(shown) == ["DemographicParity of sex", "DemographicParity of age"]
    # What is shown of both together is a little less than what is shown of each alone.
    assert model.certified_disparity_ >= max(shown.values()) - 1e-5
    assert model.p_value_ == pytest.approx(min(sum(p_values.values()), 1.0), abs=1e-5)
    for name, limit in model.max_disparity.items():
        reached = model.train_disparities_[f"DemographicParity of {name}"]
        # What is shown is above what was measured, and within the limit if p is small enough.
        assert shown[f"DemographicParity of {name}"] > reached
        is_shown = shown[f"DemographicParity of {name}"] <= limit
        assert is_shown == (p_values[f"DemographicParity of {name}"] <= 0.1)
    alone = FairDecisionClassifier(max_disparity=0.3, certificate=0.9, random_state=0)
    alone.fit(FRAME, Y, sensitive_features=SEX)
    assert alone.certified_disparities_ == {"DemographicParity": alone.certified_disparity_}
    alone.set_params(certificate=None).fit(FRAME, Y, sensitive_features=SEX)
    assert not hasattr(alone, "certified_disparities_")
    assert not hasattr(alone, "p_values_")


@pytest.mark.parametrize(
    ("options", "is_there"),
    [
        ({}, True),
        ({"solver": "alm"}, True),
        ({"solver": "al_newton"}, False),
        ({"certificate": 0.9}, False),
        ({"constraint": ConditionalOn("demographic_parity")}, False),
    ],
)
def test_partial_fit_is_there_if_it_works(options, is_there):
    model = ConstrainedERMClassifier(random_state=0, **options)
    assert hasattr(model, "partial_fit") == is_there
    if is_there:
        model.partial_fit(FRAME, Y, sensitive_features=SEX)
        assert model.predict(FRAME).shape == (N,)


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


class OfThePositive:
    """The rows of the positive class, as the page for developers says how to write it."""

    def parts(self, rows):
        return Parts((rows.targets <= 0).astype(int), (" among the positive",))


class AmongThePositive(RateParity):
    """Selection rates among some of the rows."""

    subset = OfThePositive()


def test_rows_that_count_may_be_told_by_an_object_of_ones_own():
    own, known = (
        FairDecisionClassifier(constraint=constraint, max_disparity=0.02, cv=3)
        .fit(FRAME, Y, sensitive_features=SEX)
        .train_predictions_
        for constraint in (AmongThePositive(), "equal_opportunity")
    )
    assert np.array_equal(own, known)
    assert equal_opportunity_difference(Y, own, sensitive_features=SEX) <= 0.02 + 1e-9


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


def test_weights_reach_the_last_step_of_a_pipeline_as_the_warning_says():
    # Without a limit: what one does to rates may be warned of, too.
    plain = FairDecisionClassifier(
        make_pipeline(StandardScaler(), LogisticRegression()), max_disparity=1
    )
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


@pytest.mark.parametrize("kind", [ERM, DECISIONS, *OTHERS])
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


def test_the_auc_of_groups_is_one_step_from_each_shorter_form():
    score = 1 / (1 + np.exp(-FRAME["a"]))
    asked = {"metrics": {"auc": roc_auc_score}, "n_bootstrap": 5, **OF_SEX}
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
    display = pytest.importorskip("skfair.inspection").GroupCalibrationDisplay
    model = LogisticRegression().fit(FRAME, THREE)
    k = 1
    label, proba = model.classes_.tolist()[k], model.predict_proba(FRAME)
    said = re.escape(f"y == {label!r} and the scores predict_proba(X)[:, {k}]")
    with pytest.raises(ValueError, match=said):
        display.from_estimator(model, FRAME, THREE, pos_label=label, **OF_SEX)
    with pytest.raises(ValueError, match="pass the column of one of them"):
        display.from_predictions(THREE, proba, pos_label=label, **OF_SEX)
    drawn = display.from_predictions(label == THREE, proba[:, k], **OF_SEX)
    assert drawn.group_names == ["f", "m"]


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
