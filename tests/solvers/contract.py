"""The contract of every solver, as checks that know no solver: registries add a subject each.

A :class:`Subject` is a solver with small problems that it can solve, an independent answer to each,
and a way to run it. The checks raise ``AssertionError``; ``test_contract.py`` runs them on whatever
the registries hold, and on planted solvers that break a promise. Another registry (of other
problems, of clusterings) joins with a function that makes its subjects.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Answer(NamedTuple):
    """What a solver found, or what another method says is right.

    ``residual`` is the distance of point and multipliers from the conditions of an optimum; None
    where the solver claims no multipliers.
    """

    point: np.ndarray
    objective: float
    violation: float
    residual: float | None = None


class Case(NamedTuple):
    """A problem with its solution, a start, and a point that keeps the constraints."""

    problem: Any
    solution: Answer
    at_start: Answer
    feasible: Answer

    @property
    def start(self):
        return self.at_start.point


class Run(NamedTuple):
    """What a run returned, and the answer that this amounts to."""

    result: Any
    answer: Answer


@dataclass
class Subject:
    """A solver under test.

    ``run(case, start, seed=, max_iter=, callback=)`` returns a :class:`Run`; ``max_iter=None`` is
    enough for ``tolerance``, which bounds objective, violation and residual. ``few`` is a number of
    steps for checks that need no answer.
    """

    name: str
    run: Callable[..., Run]
    case: Callable[[str], Case]
    tolerance: float
    columns: set = field(default_factory=lambda: {"objective", "max_violation", "seconds"})
    statuses: set = field(default_factory=lambda: {"converged", "max_iter", "infeasible"})
    few: int = 20


def check_answer(subject, case):
    """It finds the optimum, which is not where it starts."""
    tolerance, exact = subject.tolerance, case.solution
    found = subject.run(case, case.start).answer
    assert abs(case.at_start.objective - exact.objective) > tolerance
    assert abs(found.objective - exact.objective) <= tolerance
    assert found.violation <= case.solution.violation + tolerance


def check_multipliers(subject, case):
    """Where it claims multipliers, they fulfil the first-order conditions with their signs."""
    residual = subject.run(case, case.start).answer.residual
    assert residual is None or residual <= 10 * subject.tolerance


def check_seed(subject, case):
    """The same seed gives the same bits; the start is left alone."""
    before = case.start.copy()
    few = {"seed": 5, "max_iter": subject.few}
    one, two = (subject.run(case, case.start, **few).answer for _ in range(2))
    assert np.array_equal(one.point, two.point)
    assert one.objective == two.objective
    assert one.residual == two.residual
    assert np.array_equal(case.start, before)


def check_callback(subject, case):
    """A callback ends the run at once, and sees what is returned."""
    seen = []

    def stop(theta):
        seen.append(theta.copy())
        return True

    run = subject.run(case, case.start, max_iter=subject.few, callback=stop)
    assert run.result.status == "stopped"
    assert len(seen) == 1
    assert run.result.n_iter <= subject.run(case, case.start, max_iter=subject.few).result.n_iter
    go_on = subject.run(case, case.start, max_iter=3, callback=lambda theta: None)
    assert go_on.result.status != "stopped"


def check_one_iteration(subject, case):
    """One iteration is possible, and counted as such."""
    run = subject.run(case, case.start, max_iter=1)
    assert run.result.n_iter <= 1
    assert np.isfinite(run.answer.point).all()
    assert np.isfinite(run.answer.objective)
    assert run.result.status in subject.statuses


def check_shape(subject, case):
    """The result has the shape that estimators rely on."""
    run = subject.run(case, case.start, max_iter=subject.few)
    result = run.result
    assert run.answer.point.shape == case.solution.point.shape
    assert result.status in subject.statuses
    assert isinstance(result.n_iter, int)
    assert result.n_iter <= subject.few
    assert set(result.history) >= subject.columns
    assert len({column.shape for column in result.history.values()}) == 1
    assert np.isfinite(result.history["objective"]).all()
    assert (np.diff(result.history["seconds"]) >= 0).all()
    for column in ("objective", "max_violation"):
        name = column.removeprefix("max_")
        # A start that satisfies the constraints is returned if no step was better.
        known = np.append(result.history[column], getattr(case.at_start, name))
        assert np.abs(known - getattr(run.answer, name)).min() <= 1e-12


def check_feasible_start(subject, case):
    """From a start that keeps the constraints it gets no worse, in objective and violation."""
    assert case.feasible.violation <= 1e-9
    found = subject.run(case, case.feasible.point).answer
    assert found.objective <= case.feasible.objective + subject.tolerance
    assert found.violation <= case.solution.violation + subject.tolerance


CHECKS = [value for name, value in list(globals().items()) if name.startswith("check_")]
