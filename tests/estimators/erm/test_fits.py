"""Fits of very many rows, and what a callback stops."""

import numpy as np
import pytest

from skfair.classification import ConstrainedERMClassifier
from skfair.estimators.erm import bind
from skfair.losses import SmoothErrors
from skfair.models import units
from skfair.solvers import ALNewton
from tests.classification.test_constrained_erm import people
from tests.small_problems import loans


def test_a_callback_may_stop_the_refinement():
    X, y, sex = loans(1)
    refined = []

    class Stopped(ALNewton):
        def solve(self, problem, theta0, multipliers0=None, **params):
            if isinstance(problem.loss, SmoothErrors):
                refined.append(problem)
                params["callback"] = lambda theta: True
            return super().solve(problem, theta0, multipliers0, **params)

    model = ConstrainedERMClassifier(solver=Stopped()).fit(X, y, sensitive_features=sex)
    plain = ConstrainedERMClassifier(enforce="strict_loss").fit(X, y, sensitive_features=sex)
    assert len(refined) <= 1 < model.n_solves_  # there is none where the limits hold as they are
    assert model.train_disparity_ <= 0.05
    assert model.score(X, y) >= plain.score(X, y)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("is_mostly_zero", [False, True])
@pytest.mark.parametrize("is_long", [False, True])
def test_very_many_numbers_are_refused_like_few(wrong, is_mostly_zero, is_long, monkeypatch):
    X, y, groups = people()
    X *= (X > 1.5) | (not is_mostly_zero)
    X[17, 2] = wrong

    def refusal(**params):
        with pytest.raises(ValueError, match="X") as error:
            ConstrainedERMClassifier(**params).fit(X, y, sensitive_features=groups)
        return str(error.value)

    expected = refusal()
    monkeypatch.setattr(bind, "MANY_ROWS", 100)
    monkeypatch.setattr(units, "MANY_ROWS", 100 if is_long else 10_000)
    assert refusal() == expected
    assert refusal(min_rate="as before") == expected
    assert ("overflow" in expected) == np.isfinite(wrong)
