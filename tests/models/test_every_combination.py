"""Gradients of the Lagrangian for every constraint, loss and score model."""

from functools import partial

import numpy as np
import pytest

from skfair.models import LinearScore, MLPScore
from skfair.problems.erm.in_memory import ConstrainedERM
from tests.registries import LOSSES
from tests.small_problems import build, central, constraints_for, lagrangian, people

MODELS = {
    "no intercept": partial(LinearScore, fit_intercept=False),
    "network": partial(MLPScore, hidden_layer_sizes=(4, 3)),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("loss", "constraint"), [(a, b) for a in LOSSES for b in constraints_for(a)]
)
def test_gradient_of_the_lagrangian(model, loss, constraint):
    who = people(3, n=60, n_levels=(3,))
    like = build(who, [constraint], 0.1, loss=loss)
    problem = ConstrainedERM(
        MODELS[model](who.X), like.loss, like.targets, like.constraints, alpha=0.3
    )
    rng = np.random.RandomState(0)
    theta = problem.start(rng) + 0.3 * rng.normal(size=problem.n_parameters)
    multipliers = rng.normal(size=problem.n_constraints)

    for batch in (None, problem.draw(rng, 16, 8)):
        found = problem.evaluate(theta, batch).gradient(multipliers)
        expected = central(lagrangian(problem, multipliers, batch), theta)
        assert found == pytest.approx(expected, abs=1e-7)
