"""The calibrator around all kinds of scorers; what it promises is measured by skfair.metrics."""

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import kstwobign
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.svm import LinearSVC

from skfair import Sensitive
from skfair.classification import ConstrainedERMClassifier, PartialParityCalibrator
from skfair.metrics import (
    partial_ccdf_gap,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)
from tests.partial_parity.test_classifier import CONSTRAINT_NAMES
from tests.seeds import generator

INTERVAL = (0.1, 0.4)
EXACT = 1e-9
each_constraint = pytest.mark.parametrize("constraint", CONSTRAINT_NAMES)
SCORERS = [
    LogisticRegression(),
    HistGradientBoostingClassifier(max_iter=8, random_state=0),
    RandomForestClassifier(8, max_depth=3, random_state=0),  # predict_proba only, with ties
]


class FirstColumn(ClassifierMixin, BaseEstimator):
    """The score is the first column; takes no weights."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X, dtype=object)[:, 0].astype(float)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def sample(seed=0, n=400, shift=1.0, cut=0.5):
    """Group m scores higher; the first column is a good score already."""
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3)) + shift * np.outer(sex == "m", [1, 0, 0])
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > cut).astype(int)
    return X, y, sex


def measure(constraint, scale, scores, y, sex, interval=INTERVAL, weights=None):
    """The disparity that is promised, by the public metrics; decisions at 0."""
    given = {"sensitive_features": sex, "interval": interval, "sample_weight": weights}
    length = interval[1] - interval[0] if scale == "ccdf" else 1.0
    if constraint == "statistical_parity":
        metric = partial_ccdf_gap if scale == "ccdf" else partial_statistical_parity_gap
        return metric(None, scores, **given)
    if constraint == "group_auc":
        return partial_group_auc_gap(None, scores, **given)
    if constraint == "demographic_parity":
        return length * partial_demographic_parity_gap(None, scores, **given)
    metric = {
        "equal_opportunity": partial_equal_opportunity_gap,
        "equalized_odds": partial_equalized_odds_gap,
    }[constraint]
    return length * metric(y, scores, **given, rank_within="class")


# --- certificate --------------------------------------------------------------------------------


@each_constraint
@pytest.mark.parametrize("scale", ["conditional", "ccdf"])
@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: type(scorer).__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")  # ties may leave no choice
def test_the_certificate_is_what_the_metric_says(scorer, scale, constraint):
    X, y, sex = sample()
    model = PartialParityCalibrator(scorer, INTERVAL, constraint, 0.1, scale=scale, cv=None)
    if constraint == "group_auc" and scale == "ccdf":  # no share, so it has no other unit
        with pytest.raises(ValueError, match="ccdf"):
            model.fit(X, y, sensitive_features=sex)
        return
    model.fit(X, y, sensitive_features=sex)
    scores = model.decision_function(X, sensitive_features=sex)
    assert model.train_disparity_ == pytest.approx(
        measure(constraint, scale, scores, y, sex), abs=1e-12
    )
    assert model.train_disparity_ <= model.effective_disparity_ + EXACT
    assert model.is_within_limit_
    assert model.effective_disparity_ == 0.1 or not isinstance(scorer, LogisticRegression)
    predicted = model.predict(X, sensitive_features=sex)
    assert np.array_equal(predicted, model.classes_[(scores > 0).astype(int)])
    for name, rate in zip(model.groups_, model.rates_, strict=True):
        assert rate == pytest.approx(np.mean(predicted[sex == name[-1]]))


@each_constraint
def test_the_constraint_is_active(constraint):
    """Without repair these scores are unfair, so the tests here can fail."""
    X, y, sex = sample(cut=1.0)  # which one group reaches seldom
    raw = LogisticRegression().fit(X, y).decision_function(X)
    if constraint != "equal_opportunity":
        assert measure(constraint, "conditional", raw, y, sex) > 0.1
    model = PartialParityCalibrator(None, INTERVAL, constraint, 0.1, cv=None)
    model.fit(X, y, sensitive_features=sex)
    assert isinstance(model.estimators_[0], LogisticRegression)
    mapped = model.decision_function(X, sensitive_features=sex)
    for name in "fm":  # the order within a group stays
        order = np.argsort(raw[sex == name])
        assert np.all(np.diff(mapped[sex == name][order]) >= 0)


@pytest.mark.parametrize("constraint", ["statistical_parity", "group_auc"])
@pytest.mark.parametrize("limit", [0.05, 0.1, 0.2])
def test_the_limit_is_used_up_where_it_binds(constraint, limit):
    """No part of it is kept back, which would be another limit than was asked for."""
    X, y, sex = sample(n=2000)
    interval = (0.0, 0.4)  # the decision threshold of one group lies outside
    model = PartialParityCalibrator(None, interval, constraint, limit).fit(
        X, y, sensitive_features=sex
    )
    scores = cross_val_predict(LogisticRegression(), X, y, method="decision_function")
    assert measure(constraint, "conditional", scores, y, sex, interval) > limit + 0.01
    # A row is 1 / 400 of the interval of its group.
    assert limit - 0.01 <= model.train_disparity_ <= limit + EXACT


def test_scores_that_are_fair_stay():
    X, y, sex = sample(shift=0.0)
    model = PartialParityCalibrator(FirstColumn(), INTERVAL, max_disparity=0.5, cv=None)
    model.fit(X, y, sensitive_features=sex)
    assert np.array_equal(model.decision_function(X, sensitive_features=sex), X[:, 0])


@pytest.mark.parametrize("constraint", CONSTRAINT_NAMES[:2])
def test_a_calibrator_around_a_calibrator_changes_nothing(constraint):
    X, y, sex = sample()
    frame = pd.DataFrame({"score": X[:, 0] - 1, "sex": sex})
    inner = PartialParityCalibrator(FirstColumn(), INTERVAL, constraint, sensitive="sex")
    inner.fit(frame, y)
    outer = PartialParityCalibrator(
        FrozenEstimator(inner), INTERVAL, constraint, sensitive=Sensitive("sex", keep=True)
    )
    outer.fit(frame, y)
    once, twice = inner.decision_function(frame), outer.decision_function(frame)
    assert not np.array_equal(once, frame["score"])
    assert np.array_equal(once, twice)


# --- scorers of all kinds -----------------------------------------------------------------------


def test_a_fitted_estimator_is_not_fitted_again():
    X, y, sex = sample()
    scorer = LogisticRegression().fit(X[:100], y[:100])
    before, new = scorer.coef_.copy(), {"sensitive_features": sex[100:]}
    frozen = PartialParityCalibrator(FrozenEstimator(scorer), INTERVAL)
    prefit = PartialParityCalibrator(scorer, INTERVAL, cv="prefit")
    for model in (frozen, prefit):
        model.fit(X[100:], y[100:], **new)
    scores = [model.decision_function(X, sensitive_features=sex) for model in (frozen, prefit)]
    assert prefit.estimators_ == [scorer]
    assert np.array_equal(scorer.coef_, before)
    assert np.array_equal(*scores)
    with pytest.raises(NotFittedError, match="LogisticRegression is not fitted"):
        clone(prefit).fit(X, y, sensitive_features=sex)


def test_the_estimator_gets_the_groups_from_columns_as_well():
    X, y, sex = sample()
    frame = pd.DataFrame(X, columns=list("abc")).assign(sex=sex)
    scorer = ConstrainedERMClassifier("demographic_parity", max_disparity=0.05)
    model = PartialParityCalibrator(scorer, INTERVAL, cv=None, sensitive="sex").fit(frame, y)
    alone = clone(scorer).fit(X, y, sensitive_features=sex)
    assert np.array_equal(model.estimators_[0].coef_, alone.coef_)


def test_probabilities_are_the_scores_read_as_log_odds():
    X, y, sex = sample()
    model = PartialParityCalibrator(None, INTERVAL).fit(X, y, sensitive_features=sex)
    probabilities = model.predict_proba(X, sensitive_features=sex)
    scores = model.decision_function(X, sensitive_features=sex)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert probabilities[:, 1] == pytest.approx(expit(scores))
    logarithms = model.predict_log_proba(X, sensitive_features=sex)
    assert logarithms == pytest.approx(np.log(probabilities))
    from_probabilities = clone(model).set_params(response_method="predict_proba")
    from_probabilities.fit(X, y, sensitive_features=sex)
    # Log-odds of the probabilities are the scores again.
    assert from_probabilities.decision_function(X, sensitive_features=sex) == pytest.approx(
        scores, abs=1e-9
    )


def test_a_scorer_without_probabilities_gives_none():
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(PartialParityCalibrator(LinearSVC()), name)
        assert hasattr(PartialParityCalibrator(RandomForestClassifier()), name)


# --- cross-fitting ------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", ["statistical_parity", "equalized_odds"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_maps_are_learned_on_scores_of_other_folds(constraint, n_jobs):
    X, y, sex = sample()
    scorer, codes = LogisticRegression(), (sex == "m").astype(int)
    folds = list(StratifiedKFold(3).split(X, y))
    model = PartialParityCalibrator(scorer, INTERVAL, constraint, 0.1, cv=folds, n_jobs=n_jobs)
    with joblib.parallel_config(backend="threading"):
        model.fit(X, y, sensitive_features=sex)
    held_out = cross_val_predict(scorer, X, y, cv=folds, method="decision_function")
    mapped = model.calibration_(held_out, codes)
    expected = measure(constraint, "conditional", mapped, y, sex)
    assert model.train_disparity_ == pytest.approx(expected, abs=1e-12)
    assert model.is_within_limit_
    assert model.status_ == "converged"
    mean = np.mean([one.decision_function(X) for one in model.estimators_], axis=0)
    scores = model.decision_function(X, sensitive_features=sex)
    assert np.array_equal(scores, model.calibration_(mean, codes))


class ScaledByRows(FirstColumn):
    """Scores have another scale for each number of rows."""

    def fit(self, X, y):
        self.scale_ = (1000 / len(y)) ** 4
        return super().fit(X, y)

    def decision_function(self, X):
        return self.scale_ * X[:, 0]


BOOSTING = HistGradientBoostingClassifier(learning_rate=0.3, random_state=0)


@pytest.mark.parametrize(("scorer", "n"), [(ScaledByRows(), 4000), (BOOSTING, 10_400)])
def test_what_predicts_has_scores_like_those_that_maps_are_learned_on(scorer, n):
    """Boosting stops early above 10,000 rows: all rows do so here, and the folds do not."""
    X, y, sex = sample(n=n)
    new, _, other = sample(1, 40_000)
    model = PartialParityCalibrator(scorer, (0.0, 0.4), max_disparity=0.1)
    model.fit(X, y, sensitive_features=sex)
    mapped = model.decision_function(new, sensitive_features=other)
    gap = measure("statistical_parity", "conditional", mapped, None, other, (0.0, 0.4))
    # Distances of distribution functions (Kolmogorov): of either sample from the population.
    chance = kstwobign.isf(1e-7) * np.sqrt(2 / (0.2 * n) + 2 / (0.2 * 40_000))
    assert gap <= 0.1 + chance


# --- ties ---------------------------------------------------------------------------------------


def tied(seed, n=200):
    """Scores of few levels, in one column."""
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    y = (rng.random(n) < 0.4).astype(int)
    scores = rng.normal(size=n) + 1.6 * y - 0.8 + 0.5 * (sex == "m")
    return np.round(scores * rng.choice([1, 2, 3]))[:, None] / 2 - 0.25, y, sex


@each_constraint
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ties_across_the_ends_of_the_interval(constraint):
    for seed in range(15):
        X, y, sex = tied(seed)
        model = PartialParityCalibrator(FirstColumn(), INTERVAL, constraint)
        model.fit(X, y, sensitive_features=sex)
        scores = model.decision_function(X, sensitive_features=sex)
        gap = measure(constraint, "conditional", scores, y, sex)
        assert gap == pytest.approx(model.train_disparity_, abs=1e-12)
        assert gap <= model.effective_disparity_ + EXACT
        for name in "fm":
            order = np.argsort(X[sex == name, 0])
            steps, moves = np.diff(X[sex == name, 0][order]), np.diff(scores[sex == name][order])
            assert np.all(moves >= 0)
            assert np.all(moves[steps == 0] == 0)


@pytest.mark.parametrize("constraint", ["statistical_parity", "group_auc"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_ties_never_make_things_worse(constraint):
    for seed in range(20):
        X, y, sex = tied(seed)
        before = measure(constraint, "conditional", X[:, 0], y, sex)
        model = PartialParityCalibrator(FirstColumn(), INTERVAL, constraint, 0.1)
        model.fit(X, y, sensitive_features=sex)
        assert model.train_disparity_ <= max(before, 0.1) + EXACT


def test_ties_that_raise_the_bound_are_told():
    X, y, sex = tied(0)
    model = PartialParityCalibrator(FirstColumn(), INTERVAL)
    with pytest.warns(UserWarning, match=r"^Because of ties, the"):
        model.fit(X, y, sensitive_features=sex)
    assert model.effective_disparity_ > 0.05  # the limit by default


# --- weights ------------------------------------------------------------------------------------


def test_an_estimator_that_takes_no_weights_is_named():
    X, y, sex = sample()
    model = PartialParityCalibrator(FirstColumn(), INTERVAL, "demographic_parity")
    weights = generator(0).random(len(y)) + 0.5
    with pytest.warns(UserWarning, match="FirstColumn takes no sample_weight"):
        model.fit(X, y, weights, sensitive_features=sex)
    scores = model.decision_function(X, sensitive_features=sex)
    gap = measure("demographic_parity", "conditional", scores, y, sex, weights=weights)
    assert gap <= 0.05 + EXACT
