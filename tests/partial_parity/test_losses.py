"""Losses of PartialParityClassifier: losses of pairs by name, their interval, objects."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skfair.classification import PairLoss, PartialParityClassifier
from skfair.metrics import get_scorer, partial_statistical_parity_gap
from skfair.partial_parity.objectives import Objective
from tests import naive
from tests.naive import row_pairs
from tests.seeds import generator

INTERVAL = (0.1, 0.5)
NAMES = {
    "auc": "squared_hinge",
    "auc_hinge": "hinge",
    "auc_quadratic": "quadratic",
    "auc_logistic": "logistic",
}


def rows(seed=0, n=300):
    rng = generator(seed)
    group = rng.choice(["a", "b"], n)
    X = rng.normal(size=(n, 4)) + 0.7 * (group == "b")[:, None]
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=n) > 1).astype(int)
    return X, y, group


X, Y, GROUP = rows()
SIGNS = np.where(Y > 0, 1.0, -1.0)


def fit(loss, max_disparity=0.1, **options):
    options = {"interval": INTERVAL, **options}
    model = PartialParityClassifier(max_disparity=max_disparity, loss=loss, **options)
    return model.fit(X, Y, sensitive_features=GROUP)


@cache
def exact_fit(name):
    return fit(name, 1.0, tol=1e-6)


def value(kind, scores, interval=(0.0, 1.0)):
    """The mean loss over all pairs, by loops."""
    return row_pairs.pairwise_loss(
        scores, SIGNS, np.ones(Y.size), [interval], row_pairs.LOSSES[kind]
    )


def penalised(model, kind, interval=(0.0, 1.0)):
    """What was minimised: the mean loss of the pairs and the penalty of 1 / n on the weights."""
    w = model.coef_[0]
    return value(kind, X @ w + model.intercept_[0], interval) + 0.5 / Y.size * w @ w


@pytest.mark.parametrize("name", NAMES)
def test_each_name_minimises_its_own_loss(name):
    """Without the constraint on, no other name does better by its loss."""
    models = {other: exact_fit(other) for other in NAMES}
    own = penalised(models[name], NAMES[name])
    for other in NAMES:
        assert own <= penalised(models[other], NAMES[name]) + 2e-4
    others = [one.coef_ for other, one in models.items() if other != name]
    assert min(np.abs(models[name].coef_ - one).max() for one in others) > 1e-3


@pytest.mark.parametrize(
    ("name", "auc_interval"),
    [*((name, None) for name in NAMES), ("auc", (0.0, 0.3)), ("partial_auc", (0.0, 0.3))],
)
def test_the_constraint_is_kept_whatever_is_minimised(name, auc_interval):
    pairs = (
        None if auc_interval is None else PairLoss(NAMES.get(name, "squared_hinge"), auc_interval)
    )
    model = fit(pairs or name)
    scores = model.decision_function(X)
    gap = partial_statistical_parity_gap(Y, scores, sensitive_features=GROUP, interval=INTERVAL)
    assert gap <= 0.1 + 1e-9
    assert model.is_within_limit_


@pytest.mark.parametrize("name", NAMES)
def test_the_interval_of_pairs_is_what_is_minimised(name):
    """Its own interval, not that of the constraint: the loss there is smaller than without."""
    top = (0.0, 0.2)
    inside, everywhere = fit(PairLoss(NAMES[name], top), 1.0), fit(name, 1.0)
    assert penalised(inside, NAMES[name], top) <= penalised(everywhere, NAMES[name], top) + 1e-9
    assert np.abs(inside.coef_ - everywhere.coef_).max() > 1e-3
    reached = inside.objective_
    assert reached == pytest.approx(penalised(inside, NAMES[name], top), abs=5e-6)


def test_partial_auc_looks_at_the_interval_of_the_constraint_unless_told_otherwise():
    default, named = fit("partial_auc", 1.0), fit(PairLoss(interval=INTERVAL), 1.0)
    other = fit(PairLoss(interval=(0.6, 0.9)), 1.0)
    assert (default.coef_ == named.coef_).all()
    assert np.abs(default.coef_ - other.coef_).max() > 1e-3


def test_a_part_of_the_auc_is_larger_where_it_is_learned():
    """AUC among the best 20 % of the negatives."""

    def partial_auc(model):
        scores = model.decision_function(X)
        negatives = scores[Y == 0]
        masses = naive.overlap_masses(negatives, np.ones(negatives.size), [(0.0, 0.2)])
        return np.heaviside(scores[Y == 1][:, None] - negatives, 0.5).mean(axis=0) @ masses

    inside = fit(PairLoss("logistic", (0.0, 0.2)))
    assert partial_auc(inside) >= partial_auc(fit("log_loss")) - 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_objects_do_what_names_do(name):
    few = {"max_iter": 20}  # the same steps, whether they have arrived or not
    by_name, by_object = fit(name, **few), fit(PairLoss(NAMES[name]), **few)
    assert (by_name.coef_ == by_object.coef_).all()
    inside = fit(PairLoss(NAMES[name], interval=(0.0, 0.3)), **few)
    assert (inside.coef_ != by_object.coef_).any()


class LogLoss(Objective):
    """The mean log loss, as a user would write it."""

    def evaluate(self, scores, targets, weights):
        margins = targets * scores
        slopes = -weights * targets * expit(-margins)
        return float(weights @ np.logaddexp(0, -margins)), slopes


def test_an_objective_of_ones_own():
    own, known = fit(LogLoss(), 1.0, tol=1e-8), fit("log_loss", 1.0, tol=1e-8)
    assert own.coef_ == pytest.approx(known.coef_, abs=1e-5)
    assert not hasattr(own, "predict_proba")
    limited = fit(LogLoss(), 0.1)
    assert limited.train_disparity_ <= 0.1 + 1e-9
    assert clone(limited).fit(X, Y, sensitive_features=GROUP).coef_ == pytest.approx(limited.coef_)


def test_grid_search_over_names():
    search = GridSearchCV(
        PartialParityClassifier(INTERVAL, max_disparity=0.3, sensitive=[4]),
        {"loss": ["log_loss", "auc", PairLoss("logistic", (0.0, 0.3))]},
        scoring={
            "auc": "roc_auc",
            "gap": get_scorer("neg_statistical_parity_gap", sensitive=[4]),
        },
        refit="auc",
        cv=2,
    )
    with_group = np.column_stack([X, GROUP == "b"])
    search.fit(with_group, Y)
    assert len(search.cv_results_["params"]) == 3
    assert np.isfinite(search.cv_results_["mean_test_auc"]).all()
