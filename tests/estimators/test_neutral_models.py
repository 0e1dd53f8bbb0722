"""Groups are estimated by models that know nothing of the settings of the user's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skfair.classification import FairDecisionClassifier
from skfair.exceptions import SeenRowsWarning
from skfair.metrics import demographic_parity_difference
from skfair.preprocessing import Reweighing
from skfair.regression import FairDecisionRegressor
from skfair.utils.warn import unwanted
from tests.families import rows_of_families
from tests.seeds import generator

RNG = generator(0)
N = 360
SEX = RNG.choice(["f", "m"], N)
X = RNG.normal(size=(N, 3)) + (SEX == "m")[:, None] * [1, 0, 0]
Y = (X[:, 0] + X[:, 1] + RNG.normal(size=N) > 0.8).astype(int)
# The true shares of the pairs of group and class
SHARES = [np.mean((s == SEX) & (c == Y)) for s in "fm" for c in (0, 1)]
TABLE = pd.DataFrame(X, columns=list("abc"))
TABLE["job"] = pd.Categorical(RNG.choice(["late payments", "other"], N))
TABLE["town"] = np.where(RNG.random(N) < 0.1, None, np.where(X[:, 0] > 0, "york", "bath"))
TEXTS = [" ".join(f"{word}{int(x + 9)}" for word, x in zip("abc", row, strict=True)) for row in X]
CUBE = X[:, :, None]
DICTS = [dict(zip("abc", row, strict=True)) for row in X.tolist()]


def flat(cube):
    return cube[:, :, 0]


class TwoClasses(ClassifierMixin, BaseEstimator):
    """Takes two classes and a parameter of fit, and reads texts, as boosters of others do."""

    def fit(self, X, y, cat_features, sample_weight=None):
        self.classes_ = np.unique(y)
        assert self.classes_.size == 2
        self.encoder_ = OrdinalEncoder().fit(X[cat_features])
        self.inner_ = LogisticRegression().fit(X[["a", "b", "c"]], y, sample_weight)
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X[["a", "b", "c"]])


class ByTarget(TransformerMixin, BaseEstimator):
    """Encodes columns by the classes, of which there must be two."""

    n_fits = 0

    def fit(self, X, y):
        assert set(y) == {0, 1}
        ByTarget.n_fits += 1
        self.slopes_ = [np.cov(column, y)[0, 1] for column in X.T]
        return self

    def transform(self, X):
        return X * self.slopes_


def tuned(**params):
    return GridSearchCV(
        make_pipeline(ByTarget(), LogisticRegression()),
        {"logisticregression__C": [1e-4, 1.0]},
        cv=2,
        **params,
    )


# Classifiers, their rows and parameters of fit, and the model of groups that goes with them
LINEAR, BOOSTED = "LogisticRegression", "HistGradientBoostingClassifier"
CASES = {
    "weights of classes": (LogisticRegression(class_weight={0: 1, 1: 9}), X, LINEAR),
    "monotonic": (HistGradientBoostingClassifier(max_iter=5, monotonic_cst=[1, 0, 0]), X, BOOSTED),
    "own score": (LogisticRegressionCV(Cs=[0.1], cv=2, scoring="roc_auc"), X, LINEAR),
    "search": (tuned(scoring="roc_auc"), X, LINEAR),
    "support vectors": (SVC(), X, BOOSTED),
    "linear support vectors": (LinearSVC(class_weight={0: 1, 1: 9}), X, LINEAR),
    "neighbours": (KNeighborsClassifier(15), X, BOOSTED),
    "two classes": (TwoClasses(), TABLE, BOOSTED),
    "texts": (make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS, LINEAR),
    "sparse": (make_pipeline(TfidfVectorizer(), SVC()), TEXTS, LINEAR),
    "dicts": (make_pipeline(DictVectorizer(), LogisticRegression()), DICTS, LINEAR),
    "cube": (make_pipeline(FunctionTransformer(flat), SVC()), CUBE, BOOSTED),
    "threshold": (TunedThresholdClassifierCV(LogisticRegression(), cv=2, thresholds=3), X, LINEAR),
    "frozen": (
        CalibratedClassifierCV(FrozenEstimator(tuned().fit(X, Y)), cv=2).fit(X, Y),
        X,
        LINEAR,
    ),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of LogisticRegressionCV
@pytest.mark.parametrize("name", CASES)
def test_settings_and_rows_of_any_classifier_leave_the_groups_alone(name):
    inner, rows, kind = CASES[name]
    ByTarget.n_fits = 0
    given = {"cat_features": ["job", "town"]} if name == "two classes" else {}
    cv = "prefit" if name == "frozen" else 3
    model = FairDecisionClassifier(inner, max_disparity=0.02, cv=cv, random_state=0)
    with unwanted(SeenRowsWarning):  # the check of a fitted model fits copies of it
        model.fit(rows, Y, sensitive_features=SEX, **given)
    found = demographic_parity_difference(Y, model.train_predictions_, sensitive_features=SEX)
    assert found <= 0.02 + 1e-9
    for one in model.group_estimators_[0]:
        last = one[-1] if isinstance(one, Pipeline) else one  # without transformers
        assert type(last).__name__ == kind
        assert np.abs(one.predict_proba(rows).mean(axis=0) - SHARES).max() < 0.05
    part = rows[:2]
    assert np.array_equal(model.predict(part), model.predict(rows)[:2])
    # Transformers are fitted by the classifiers alone: of a search twice for each of two
    # candidates, and once more.
    assert ByTarget.n_fits == (15 if name == "search" else 0)


def test_what_was_not_there_in_the_fit_is_read():
    model = FairDecisionClassifier(TwoClasses(), max_disparity=0.02, cv=3)
    model.fit(TABLE, Y, sensitive_features=SEX, cat_features=["job"])
    assert model.offsets_.any()
    assert model.predict(TABLE.assign(town="paris", job=None)).shape == (N,)


class Cubes(LogisticRegression):
    """Reads arrays of three dimensions."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X.reshape(len(X), -1), y, sample_weight)

    def decision_function(self, X):
        return super().decision_function(X.reshape(len(X), -1))


def test_rows_that_are_no_table_are_read_by_another_model_of_groups():
    model = FairDecisionClassifier(Cubes(), max_disparity=0.02, group_estimator=Cubes())
    model.fit(CUBE, Y, sensitive_features=SEX)
    assert model.train_disparity_ <= 0.02


@pytest.mark.parametrize("rows", [DICTS, CUBE])
@pytest.mark.parametrize(
    "outer",
    [
        FairDecisionClassifier(max_disparity=0.02, group_aware=True),
        FairDecisionRegressor(max_disparity=0.1, group_aware=True),
        *(kind() for kind in rows_of_families("CALIBRATORS")),
    ],
)
def test_rows_are_what_the_estimator_inside_takes(outer, rows):
    step = DictVectorizer() if rows is DICTS else FunctionTransformer(flat)
    last = Ridge() if is_regressor(outer) else LogisticRegression()
    outer = clone(outer).set_params(estimator=make_pipeline(step, last))
    outer.fit(rows, Y, sensitive_features=SEX)
    few, of_all = (outer.predict(rows[:n], sensitive_features=SEX[:n]) for n in (9, N))
    assert np.allclose(few, of_all[:9])
    weighed = Reweighing(Cubes()).fit(CUBE, Y, sensitive_features=SEX)
    assert weighed.predict(CUBE[:9]).shape == (9,)


def test_few_rows_are_calibrated_on_as_many_folds_as_they_allow():
    half, given = np.tile([0, 1], 5), {"sensitive_features": np.arange(10) // 2 % 2}
    model = FairDecisionClassifier(LinearSVC(), max_disparity=1.0, cv=2)
    with pytest.warns(UserWarning, match="fewer than 30 rows"):
        model.fit(X[:10], half, **given)
    assert model.train_predictions_.size == 10


def made_people(seed, n_groups):
    """Rows, classes, groups and the fold of each row."""
    r = generator(seed)
    groups, rows = r.integers(0, n_groups, 300), r.normal(size=(300, 3))
    rows[:, 0] += 0.7 * (groups == 0) - 0.5 * (groups == 3)
    y = (rows[:, 0] - rows[:, 1] + r.logistic(size=300) > 0).astype(int)
    return r, rows, y, groups, np.arange(300) % 3


def folds_of(fold):
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_neither_names_nor_the_order_of_rows_count(seed):
    """Three namings differed by 5 points of accuracy."""
    r, rows, y, groups, fold = made_people(seed, 4)
    order = r.permutation(300)
    boosted = HistGradientBoostingClassifier(max_iter=5)
    inner = make_pipeline(StandardScaler(), LogisticRegression()) if seed % 2 else boosted
    worth, offsets = [], []
    for names, which in (("abcd", slice(None)), ("dbca", slice(None)), ("abcd", order)):
        cv = folds_of(fold[which])
        model = FairDecisionClassifier(inner, "equalized_odds", 0.05, cv=cv, random_state=0)
        given = np.array(list(names))[groups][which]
        model.fit(rows[which], y[which], sensitive_features=given)
        worth.append(model.train_objective_)
        offsets.append(model.offsets_[[model.groups_.tolist().index(name) for name in names]])
    assert worth[0] == pytest.approx(worth[1]) == pytest.approx(worth[2])
    assert np.allclose(offsets[0], offsets[1])
    assert offsets[0].any()


@pytest.mark.parametrize("seed", range(3))
def test_whole_weights_count_like_copies_where_groups_are_estimated(seed):
    """Four of ten small fits of a linear model differed by a point or more."""
    r, rows, y, groups, fold = made_people(seed, 3)
    weights = r.integers(1, 4, 300)
    copies, fits = np.repeat(np.arange(300), weights), []
    for at, weight in ((np.arange(300), weights.astype(float)), (copies, None)):
        cv = folds_of(fold[at])
        model = FairDecisionClassifier(
            LogisticRegression(), "false_positive_parity", 0.03, cv=cv, random_state=0
        )
        fits.append(model.fit(rows[at], y[at], weight, sensitive_features=groups[at]))
    weighted, copied = fits
    assert weighted.train_objective_ == pytest.approx(copied.train_objective_)
    assert np.array_equal(weighted.train_predictions_[copies], copied.train_predictions_)
    assert weighted.offsets_.any()
