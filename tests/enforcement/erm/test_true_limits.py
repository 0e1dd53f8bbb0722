"""The three cases of true limits: how solutions are read, compared and led inside."""

import numpy as np
import pytest

from skfair.enforcement.erm.true_limits import OnMeans, OnRates, OnRatesAndMeans, true_limits
from skfair.estimators.erm.bind import active_constraints, bind
from skfair.estimators.erm.task import TargetScale, Task
from skfair.groups.encoding import encode_groups
from skfair.groups.training_data import TrainingData
from skfair.losses import LogLoss
from skfair.solvers.base import SolverResult
from tests.estimators.erm.test_bind import SETTINGS
from tests.seeds import generator

RATES, MEANS, BOTH = ["demographic_parity"], ["loss_parity"], ["demographic_parity", "loss_parity"]


def limits_of(constraints, n=300):
    """Return the limits of a fit, parameters of some scores, those scores, and the groups."""
    rng = generator(0)
    X, targets, groups = rng.normal(size=(n, 3)), rng.choice([-1.0, 1.0], n), np.arange(n) % 3
    data = TrainingData(X, targets, None, encode_groups(groups))
    active = active_constraints(constraints, "classification", data, 0.1) if constraints else []
    task = Task(targets, LogLoss(), None, (-1, 1), TargetScale(), SETTINGS)
    problem = bind(data, task, active)
    theta = problem.centered(rng.normal(size=problem.model.n_parameters))
    return true_limits(problem, is_classifier=True), theta, problem.scores(theta), groups


@pytest.mark.parametrize(
    ("constraints", "kind"),
    [(RATES, OnRates), (MEANS, OnMeans), (BOTH, OnRatesAndMeans), ([], OnRates)],
)
def test_what_limits_are_on_decides_the_case(constraints, kind):
    assert type(limits_of(constraints)[0]) is kind
    if not constraints:
        assert type(true_limits(limits_of([])[0].problem, is_classifier=False)) is OnMeans


@pytest.mark.parametrize("constraints", [RATES, MEANS, BOTH])
def test_merit_and_excess_are_those_of_plain_counting(constraints):
    limits, theta, scores, groups = limits_of(constraints)
    solution = SolverResult(theta, np.zeros(limits.problem.n_constraints), 1, "converged", {})
    found, targets = limits.measured(limits.problem, solution), limits.problem.targets
    positive = scores + found.shift > 0
    losses = np.logaddexp(0, -targets * scores)
    if constraints == MEANS:
        at = limits.problem.relaxed().evaluate(limits.problem.model_part(theta))
        assert found.verdict.merit == -at.objective
        assert limits.merit(theta) == -at.objective
    else:
        assert found.verdict.merit == pytest.approx(np.mean(positive == (targets > 0)))
        assert limits.merit(theta) == pytest.approx(np.mean((scores > 0) == (targets > 0)))
    gaps = [
        np.ptp([values[groups == k].mean() for k in range(3)])
        for values, name in ((positive, "demographic_parity"), (losses, "loss_parity"))
        if name in constraints
    ]
    excess = max(gaps) - 0.1
    assert max(found.verdict.excess, 0.0) == pytest.approx(max(excess, 0.0), abs=1e-9)
    assert found.verdict.is_feasible == (excess <= 1e-9)
    assert constraints == RATES or found.shift == 0.0


def test_solutions_that_miss_a_limit_are_led_inside_unless_a_threshold_does_so():
    missed = np.array([0.2, 0.0, 1e-5])
    of_rates, of_means, of_both = (
        limits_of(constraints)[0].further_inside(missed, 3) for constraints in (RATES, MEANS, BOTH)
    )
    assert not of_rates.any()
    assert of_means.tolist() == missed.tolist()
    assert of_both == pytest.approx([2 * 0.1, 0.0, 2 * 1e-3])
