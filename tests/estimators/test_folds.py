"""Folds that are cut here: of each class and group alike, whatever the order of the rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn import config_context, ensemble
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfair.classification import FairDecisionClassifier
from skfair.estimators import wrapped_scores
from skfair.estimators.wrapped_scores import make_splits
from skfair.groups.encoding import encode_groups
from skfair.groups.row_units import read_units
from skfair.groups.training_data import TrainingData
from skfair.regression import FairDecisionRegressor
from tests.families import rows_of_families
from tests.seeds import generator, seed_of


class Seen:
    """Remembers the rows that it was fitted on: the last column is their number."""

    def fit(self, X, y, **options):
        self.rows_ = np.asarray(X)[:, -1].astype(int)
        return super().fit(np.asarray(X)[:, :1], y, **options)

    def predict(self, X):
        return super().predict(np.asarray(X)[:, :1])


class SeenClassifier(Seen, LogisticRegression):
    def predict_proba(self, X):
        return super().predict_proba(np.asarray(X)[:, :1])

    def decision_function(self, X):
        return LogisticRegression.decision_function(self, np.asarray(X)[:, :1])


class SeenRegressor(Seen, LinearRegression):
    pass


def rows(n=200, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    x = rng.normal(size=n) + 0.6 * (sex == "m")
    y = (x + 0.5 * rng.logistic(size=n) > 0.8).astype(int)
    return np.column_stack([x, rng.normal(size=n), np.arange(n)]), y, sex


def held_out(model, n):
    """Return the fold of each row: the model that has not seen it."""
    lacks = [~np.isin(np.arange(n), inner.rows_) for inner in model.estimators_]
    assert_array_equal(np.sum(lacks, axis=0), 1)
    return np.argmax(lacks, axis=0)


DECISIONS = FairDecisionClassifier(SeenClassifier(), max_disparity=0.3, random_state=0)
CALIBRATED = [
    kind(SeenClassifier(), (0.0, 0.5), max_disparity=0.5)
    for kind in rows_of_families("CALIBRATORS")
]
NUMBERS = FairDecisionRegressor(SeenRegressor(), max_disparity=1.0, group_aware=True)
MODELS = {type(model).__name__: model for model in (DECISIONS, *CALIBRATED, NUMBERS)}


@pytest.mark.filterwarnings("ignore")  # small groups
@settings(max_examples=5, deadline=None)
@given(sizes=st.lists(st.integers(6, 30), min_size=4, max_size=4), seed=st.integers(0, 999))
def test_every_class_and_group_is_spread_evenly(sizes, seed):
    cell = generator(seed).permutation(np.repeat(np.arange(4), sizes))
    X = np.column_stack([generator(seed).normal(size=cell.size), np.arange(cell.size)])
    y, sex = cell // 2, np.array(["f", "m"])[cell % 2]
    for model in (DECISIONS, *CALIBRATED):
        fold = held_out(model.fit(X, y, sensitive_features=sex), cell.size)
        for codes in (cell, y, np.zeros_like(y)):
            counts = np.array([np.bincount(codes[fold == k], minlength=4) for k in range(5)])
            assert np.ptp(counts, axis=0).max() <= 1


ENCODED = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["job"]), (StandardScaler(), ["income"])
)
LINEAR = make_pipeline(ENCODED, LogisticRegression())
TREE = make_pipeline(ENCODED, DecisionTreeClassifier(max_depth=3, random_state=seed_of(0)))
FITS = {
    "aware": FairDecisionClassifier(LINEAR, group_aware=True, random_state=0),
    "blind": FairDecisionClassifier(LINEAR),
    "trees": FairDecisionClassifier(TREE, group_aware=True),
    "certified": FairDecisionClassifier(
        LINEAR, "demographic_parity", 0.5, certificate=0.8, group_aware=True
    ),
    **{
        kind.__name__: kind(LINEAR, (0.1, 0.5), max_disparity=0.2)
        for kind in rows_of_families("CALIBRATORS")
    },
    "numbers": FairDecisionRegressor(
        make_pipeline(ENCODED, LinearRegression()), max_disparity=0.2, group_aware=True
    ),
}


@pytest.mark.parametrize("model", FITS.values(), ids=FITS)
@pytest.mark.filterwarnings("ignore")
def test_the_order_in_which_rows_are_stored_changes_nothing(model):
    """Of a sorted table, models of folds extrapolated: 20 of 61 certificates were wrong.

    The table has texts, missing values, copies of rows, and copies of other weights and classes.
    """
    (x, z, _), y, sex = (part.T for part in rows(300))
    frame = pd.DataFrame({"income": x, "job": np.where(z > 0, "u", "v")})
    frame.loc[z > 1.2, "job"], frame.loc[:30, "income"] = None, 0.5
    rng, groups = generator(1), pd.Series(sex)
    weights = pd.Series(rng.integers(1, 3, y.size))

    def predicted(order):
        own = {"sensitive_features": groups[order], "sample_weight": weights[order]}
        fitted = model.fit(frame.loc[order], y[order], **own)
        score = getattr(fitted, "decision_function", fitted.predict)
        return score(frame, **({"sensitive_features": groups} if fitted.is_group_aware_ else {}))

    expected = predicted(np.arange(y.size))
    for order in (np.lexsort((x, sex, y)), rng.permutation(y.size)):
        np.testing.assert_allclose(predicted(order), expected, atol=1e-6)


def test_a_seed_gives_the_same_folds_and_another_seed_other_ones():
    X, y, sex = rows()
    folds = [
        held_out(DECISIONS.set_params(random_state=seed).fit(X, y, sensitive_features=sex), y.size)
        for seed in (None, 0, 0, 1, None)
    ]
    assert_array_equal(folds[1], folds[2])
    assert_array_equal(folds[0], folds[4])  # without a seed always the same
    assert np.mean(folds[0] != folds[1]) > 0.5 < np.mean(folds[1] != folds[3])


def test_folds_of_the_user_are_taken_as_they_are():
    X, y, sex = rows()
    for model in MODELS.values():
        fold = held_out(clone(model).set_params(cv=KFold(4)).fit(X, y, sensitive_features=sex), 200)
        assert_array_equal(fold, np.repeat(np.arange(4), 50))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_fold_that_is_scored_by_a_model_of_its_own_rows_is_refused(model):
    X, y, sex = rows()
    given = {"sensitive_features": sex}
    folds = list(StratifiedKFold(5, shuffle=True).split(X, y))
    overlapping = [*folds[:4], (np.append(folds[4][0], folds[4][1][:3]), folds[4][1])]
    message = "3 of the 40 test rows of fold 4.*Pass pairs .*StratifiedKFold.*, or cv=5"
    for cv in (overlapping, iter(overlapping)):
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(cv=cv).fit(X, y, **given)
    # What the message tells to pass is accepted, and so are models that have seen fewer rows.
    halves = [(np.arange(100), np.arange(100, 200)), (np.arange(120, 200), np.arange(100))]
    for cv in (folds, 5, halves):
        clone(model).set_params(cv=cv).fit(X, y, **given)


@pytest.mark.filterwarnings("ignore")  # a certificate may not be found
def test_folds_may_be_masks():
    X, y, sex = rows()
    number = np.arange(y.size) % 5
    masks = [(number != k, number == k) for k in range(5)]
    for model in (*MODELS.values(), clone(DECISIONS).set_params(certificate=0.8)):
        fitted = clone(model).set_params(cv=masks).fit(X, y, sensitive_features=sex)
        assert_array_equal(held_out(fitted, y.size), number)


# --- rows that belong together ------------------------------------------------------------------


PERSON = generator(5).integers(0, 40, 200)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("cv", [None, 3, GroupKFold(4)])
def test_groups_stay_in_one_fold_whatever_cv_is(model, cv):
    X, y, sex = rows()
    model = clone(model) if cv is None else clone(model).set_params(cv=cv)
    fold = held_out(model.fit(X, y, sensitive_features=sex, units=PERSON), y.size)
    assert len({*zip(PERSON, fold, strict=True)}) == np.unique(PERSON).size
    assert np.unique(fold).size == {None: 5, 3: 3}.get(cv, 4)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_names_and_order_of_people_change_nothing(model):
    X, y, sex = rows()
    fold = held_out(clone(model).fit(X, y, sensitive_features=sex, units=PERSON), y.size)
    names = generator(1).permutation(40).astype(str)[PERSON]
    order = generator(2).permutation(y.size)
    # The last column, the number of the row, is a value like others.
    other = clone(model).fit(X[order], y[order], sensitive_features=sex[order], units=names[order])
    assert_array_equal(held_out(other, y.size), fold)


@given(seed=st.integers(0, 99), n_people=st.integers(12, 90), n_folds=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_people_are_dealt_whole_and_each_kind_of_them_evenly(seed, n_people, n_folds):
    rng = generator(seed)
    person = np.append(np.arange(n_people), rng.integers(0, n_people, 3 * n_people))
    kind = rng.integers(0, 3, n_people)[person]
    X, y = rng.normal(size=(person.size, 2)), kind % 2
    groups = encode_groups((kind // 2).astype(str))
    data = TrainingData(X, y, None, groups, units=read_units(person, person.size))
    fold = np.empty(person.size, int)
    for k, (train, test) in enumerate(make_splits(n_folds, data, kind)):
        assert np.intersect1d(person[train], person[test]).size == 0
        fold[test] = k
    of_person = fold[
        np.argsort(person, kind="stable")[np.searchsorted(np.sort(person), range(n_people))]
    ]
    for one in range(3):
        counts = np.bincount(of_person[kind[:n_people] == one], minlength=n_folds)
        assert np.ptp(counts) <= 1


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_units_are_routed_by_default(model):
    X, y, sex = rows()
    passed = {"sensitive_features": sex, "units": PERSON}
    with config_context(enable_metadata_routing=True):
        piped = make_pipeline(FunctionTransformer(), clone(model)).fit(X, y, **passed)
        search = GridSearchCV(clone(model), {"max_disparity": [0.5, 1.0]}, cv=GroupKFold(3))
        search.set_params(scoring=lambda *_: 0.0).fit(X, y, groups=PERSON, **passed)
        for fitted in (piped[-1], search.best_estimator_):
            fold = held_out(fitted, y.size)
            assert len({*zip(PERSON, fold, strict=True)}) == np.unique(PERSON).size


@pytest.mark.parametrize("base", [type(model) for model in MODELS.values()], ids=MODELS)
def test_a_subclass_may_leave_groups_out(base):
    class Own(base):
        def fit(self, X, y, *, sensitive_features=None):
            return super().fit(X, y, sensitive_features=sensitive_features)

    X, y, sex = rows()
    with config_context(enable_metadata_routing=True):
        assert Own().set_fit_request(sensitive_features=True).get_metadata_routing()
        make_pipeline(Own(max_disparity=0.5)).fit(X[:, :2], y, sensitive_features=sex)


@pytest.mark.parametrize("name", wrapped_scores._LIKELIEST)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_last_first", [False, True])
def test_a_model_that_predicts_the_likeliest_class_is_not_asked_twice(
    name, n_classes, is_last_first, monkeypatch
):
    rng = generator(0)
    # Rows of few values, so that classes are equally likely in many.
    X, y = rng.integers(0, 3, (400, 2)).astype(float), rng.integers(0, n_classes, 400)
    made = {"HistGradientBoostingClassifier": {"max_iter": 3}}.get(name, {"n_estimators": 4})
    kind = getattr(ensemble, name)
    for model in (kind(**made, random_state=0), make_pipeline(StandardScaler(), kind(**made))):
        model.fit(X, y)
        predicted = model.predict(X)
        classes = np.arange(n_classes)[:: -1 if is_last_first else 1]
        with monkeypatch.context() as patched:
            patched.setattr(kind, "predict", None)
            read = wrapped_scores.own_and_chances_of(model, X, classes, is_calibrated=False)
        assert np.array_equal(classes[read[:, 0].astype(int)], predicted)


def test_a_subclass_with_decisions_of_its_own_is_asked():
    class Strict(ensemble.RandomForestClassifier):
        def predict(self, X):
            return self.classes_[(self.predict_proba(X)[:, 1] > 0.8).astype(int)]

    rng = generator(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    model = Strict(5, random_state=0).fit(X, y)
    read = wrapped_scores.own_and_chances_of(model, X, np.arange(2), is_calibrated=False)
    assert np.array_equal(read[:, 0], model.predict(X))
