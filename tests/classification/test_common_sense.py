"""Returned models are never worse than models that a sensible person would try first."""

import time
import warnings

import numpy as np
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from numpy.testing import assert_allclose
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.exceptions import MissingGroupsWarning
from skfair.metrics import equalized_odds_difference
from tests.seeds import generator

RULES = ["demographic_parity", "equal_opportunity", "false_positive_parity", "equalized_odds"]


def people(n, seed, shift, share=0.7):
    """Rows of which many are positive if the shift is small; the groups differ."""
    rng = generator(seed)
    groups = rng.choice(["a", "b"], n, p=[share, 1 - share])
    X = rng.normal(size=(n, 2)) + 0.7 * (groups == "a")[:, None]
    merit = X.sum(axis=1) + 2 * rng.normal(size=n)
    y = (merit > shift).astype(int)
    for group in "ab":  # each group has both classes, without which a rate is undefined
        own = np.flatnonzero(groups == group)
        y[own[merit[own].argmax()]], y[own[merit[own].argmin()]] = 1, 0
    return X, y, groups


def accuracy_within(model, X, y, groups):
    """Accuracy on the training rows, which must satisfy the limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # decisions may be constant; a limit of 0 takes them so
        model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "converged"
    assert model.train_disparity_ <= model.max_disparity + 1e-9
    is_erm = isinstance(model, ConstrainedERMClassifier)
    return np.mean((model.predict(X) if is_erm else model.train_predictions_) == y)


@pytest.mark.parametrize("limit", [0.0, 0.001, 0.03])
@pytest.mark.parametrize("kind", ["aware", "mixed", "blind", "erm"])
def test_nothing_is_worth_less_than_the_same_decision_for_everybody(kind, limit):
    """Either class may be rare; a constant satisfies every limit on differences."""
    cases = list(enumerate((rule, shift) for rule in RULES for shift in (-2, 3)))
    for seed, (rule, shift) in cases if kind == "aware" else cases[1::3]:
        X, y, groups = people(2000 if shift < 0 else 150, seed, shift)
        if kind == "erm":
            model = ConstrainedERMClassifier(rule, limit, random_state=0)
        else:
            aware = {"aware": True, "blind": False}.get(kind, kind)
            model = FairDecisionClassifier(
                LogisticRegression(), rule, limit, group_aware=aware, random_state=0
            )
        found = accuracy_within(model, X, y, groups)
        assert found >= max(y.mean(), 1 - y.mean()) - 1e-12, (rule, shift)


def test_training_with_limits_that_do_not_bind_is_not_worth_less_than_a_constant():
    """A rare class and weak columns: the loss alone often leads to less than nobody selected."""
    for seed in range(40):
        X, y, groups = people(150, seed, 3)
        model = ConstrainedERMClassifier("false_positive_parity", 0.3)
        found = accuracy_within(model, X, y, groups)
        assert found >= max(y.mean(), 1 - y.mean()) - 1e-12
        # The threshold alone is moved, and what that changes is reported.
        with pytest.warns(MissingGroupsWarning):
            free = ConstrainedERMClassifier().fit(X, y)
        if np.mean(free.predict(X) == y) < found:
            assert_allclose(model.coef_ / free.coef_, (model.coef_ / free.coef_).mean(), rtol=1e-4)
            assert model.changes_["selection rate"].before == pytest.approx(free.predict(X).mean())


@pytest.mark.parametrize("is_swapped", [False, True])
def test_exact_odds_are_as_accurate_as_the_randomised_ones_of_a_peer(is_swapped):
    """At a limit of 0.001: rates of whole people are equal at 0 and 1 only, in expectation always.

    In the mean of the draws it is at most one standard error behind.
    """
    gains = []
    for seed in range(3):
        X, y, groups = people(4000, seed, 1)
        y = 1 - y if is_swapped else y
        inner = LogisticRegression().fit(X, y)
        peer = ThresholdOptimizer(
            estimator=inner,
            constraints="equalized_odds",
            prefit=True,
            predict_method="predict_proba",
        ).fit(X, y, sensitive_features=groups)
        chances = peer._pmf_predict(X, sensitive_features=groups)
        model = FairDecisionClassifier(
            FrozenEstimator(inner), "equalized_odds", 0.001, group_aware="mixed", cv="prefit"
        )
        gains.append(accuracy_within(model, X, y, groups) - chances[np.arange(y.size), y].mean())
        disparity = equalized_odds_difference(
            y, model.train_predictions_, sensitive_features=groups
        )
        assert disparity <= 0.001 + 1e-9
    assert np.mean(gains) >= -np.sqrt(0.25 / 4000)


@pytest.mark.filterwarnings("ignore:A hash of the row chooses between two thresholds")
@pytest.mark.parametrize("group_aware", [True, "mixed"])
def test_weights_have_no_unit(group_aware):
    rng = generator(0)
    for seed in range(4):
        X, y, groups = people(300, seed, 0)
        weights = rng.integers(1, 4, y.size)
        decisions = [
            FairDecisionClassifier(
                FrozenEstimator(LogisticRegression().fit(X, y)),
                "equalized_odds",
                0.05,
                group_aware=group_aware,
                cv="prefit",
                random_state=0,
            )
            .fit(X, y, weights * unit, sensitive_features=groups)
            .train_predictions_
            for unit in (1, 3, 1000, 0.37)
        ]
        assert all(np.array_equal(decisions[0], other) for other in decisions[1:])


@pytest.mark.slow
def test_requests_that_contradict_each_other_end_soon():
    """Whether limits can be satisfied does not depend on the objective: one search tells it."""
    X, y, groups = people(46, 0, -2, share=0.5)
    seconds = {}
    for objective in ("accuracy", "mcc"):
        given = {"group_aware": True, "selection_rate": 0.4, "objective": objective}
        model = FairDecisionClassifier(None, "bounded_selection_rate", 0.3, **given)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, sensitive_features=groups)
        assert model.status_ == "infeasible"
        seconds[objective] = time.process_time() - start
    assert seconds["mcc"] < 5 * seconds["accuracy"]
