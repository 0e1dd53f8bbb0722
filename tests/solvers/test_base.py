"""The driver of all solvers: what it records, when it ends a run, and what it returns."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from skfair.exceptions import SolverError
from skfair.solvers.base import Answer, IterativeSolver, Step, check_needs


def at(x):
    return SimpleNamespace(theta=np.array([x]), objective=x, constraints=np.array([x]))


class Line:
    """Minimise x subject to x >= 1; its KKT residual is the distance from the solution."""

    n_constraints, n_parameters, offers = 1, 1, frozenset()
    lower, upper = np.array([1.0]), np.array([np.inf])

    def evaluate(self, theta):
        return at(theta[0])

    def violation(self, at):
        return max(0.0, 1.0 - at.objective)

    def kkt_residual(self, at, multipliers):
        return {"all": abs(at.objective - 1.0) + abs(multipliers[0] + 1.0)}


@dataclass
class Walk(IterativeSolver):
    """Goes through given points."""

    points: tuple = (3.0, 2.0, 1.5, 1.25)
    ends: dict = field(default_factory=dict)
    answer: object = None
    told: list = field(default_factory=list)

    default_max_iter = 100

    def steps(self, problem, run):
        self.told.append(tuple(run))
        for k, x in enumerate(self.points):
            columns = {"share": k / 2} if k else {}
            yield Step(at(x), np.array([-x]), k, self.ends.get(k), columns, self.answer)


def walk(max_iter=None, callback=None, **options):
    return Walk(**options).solve(Line(), np.zeros(1), max_iter=max_iter, callback=callback)


@pytest.mark.parametrize(("x", "status"), [(1.0, "converged"), (1.1, "max_iter")])
def test_another_answer_is_judged_by_its_residual(x, status):
    result = walk(answer=lambda: Answer(at(x), np.array([-1.0])))
    assert (result.theta, result.multipliers, result.status) == (x, -1.0, status)
    assert result.history["objective"][-1] == 1.25  # that of the step
    stopped = walk(answer=lambda: Answer(at(x), np.array([-1.0])), callback=lambda theta: True)
    assert (stopped.theta, stopped.status) == (x, "stopped")


def test_what_a_solver_is_told():
    solver, start, given = Walk(), np.zeros(1), np.ones(1)
    solver.solve(Line(), start)
    solver.solve(Line(), start, given, tol=0.5, max_iter=2, random_state=3)
    (_, none, tol, max_iter, _), (mine, lam, *asked, rng) = solver.told
    assert (none, tol, max_iter, asked) == (None, 1e-4, 100, [0.5, 2])
    assert rng.randint(1000) == np.random.RandomState(3).randint(1000)
    mine += 1
    lam += 1
    assert (start, given) == (0, 1)  # copies were handed out


def test_without_steps_the_start_is_the_result():
    result = walk(points=())
    assert (result.theta, result.multipliers, result.n_iter) == (0, 0, 0)


def test_what_is_no_solver_is_refused():
    with pytest.raises(TypeError, match="SimpleNamespace is no solver. Derive it from"):
        check_needs(SimpleNamespace(solve=None), Line())
    with pytest.raises(TypeError, match="class Walk. Pass an object"):
        check_needs(Walk, Line())


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ((2.0, 3.0), 2.0),  # worse, and feasible as the start was
        ((2.0, np.nan), 2.0),
        ((2.0, 1.5), 1.5),  # better
        ((2.0, 0.5), 0.5),  # better, and infeasible: callers judge that
        ((0.5, 3.0), 3.0),  # worse, but feasible where the start was not
    ],
)
def test_a_feasible_start_is_not_given_away(points, expected):
    found = Walk(points=points, ends={1: "converged"}).solve(Line(), np.array(points[:1]))
    assert found.theta == expected
    assert found.status == ("converged" if expected == points[1] else "max_iter")


def test_a_start_of_nan_is_an_error():
    """A loss or a score model of one's own that returned NaN was "fitted", as converged."""
    with pytest.raises(SolverError, match="NaN at the start"):
        Walk(points=(np.nan, 2.0), ends={1: "converged"}).solve(Line(), np.array([np.nan]))
