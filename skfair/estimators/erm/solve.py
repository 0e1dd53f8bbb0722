"""The solve step of the constrained estimators: in ``fit``, and in ``partial_fit``.

``fit`` calls :func:`solve` on the problem of ``bind.py``. :func:`choose_solver` and
:func:`solve_freely` (the model without limits) are its parts, which ``bind.py``, ``report.py`` and
certificates call, too. The classifier has ``partial_fit`` if :func:`takes_parts` allows it. It
calls :func:`advance`, which keeps the state of the solver in a :class:`Stream`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import Callback, FloatArray, Seed
from skfair.constraints.base import make_constraints
from skfair.enforcement.erm.strict import solve_strictly
from skfair.enforcement.erm.true_limits import StrictResult
from skfair.enforcement.rounds import SolveOptions
from skfair.enforcement.strict_evaluation import Verdict
from skfair.estimators.erm.settings import Settings, SolverChoice
from skfair.estimators.erm.task import Task
from skfair.estimators.limits import is_budget, nearest_rate, rate_missed, widened
from skfair.models.units import Units
from skfair.problems.erm.problem import ConstrainedERM
from skfair.solvers.base import SOLVERS, Solver, check_needs
from skfair.solvers.erm.stochastic import StochasticSolver, TrainingState

# With more parameters than this, solver="auto" avoids the matrix of their second derivatives.
NEWTON_FEATURES = 1000
# The solver makes at least this many steps on a part of a stream.
PART_STEPS = 100

StreamSolver = StochasticSolver[Any]


def choose_solver(solver: SolverChoice, problem: ConstrainedERM | None = None) -> Solver:
    """Return the solver that the user chose, or for "auto" the one that suits the problem best.

    Raises if the chosen solver cannot solve the problem. Without a problem, as for a stream, "auto"
    is a solver that takes rows in parts.
    """
    if isinstance(solver, str) and solver == "auto":
        if problem is None or "hessian" not in problem.offers:
            return SOLVERS["alm"]()
        is_small = problem.model.n_parameters <= NEWTON_FEATURES
        return SOLVERS["al_newton" if is_small or "products" in problem.offers else "al_lbfgs"]()
    chosen = SOLVERS[solver]() if isinstance(solver, str) else solver
    if problem is not None:
        check_needs(chosen, problem)
    return chosen


def solve_freely(
    problem: ConstrainedERM, settings: Settings, near: FloatArray | None = None
) -> FloatArray:
    """Return the parameters that solve a problem without constraints.

    ``near`` are parameters that strict enforcement found: a solution to the tolerance of the user,
    or the solution for a sample of the rows.
    """
    rng = check_random_state(settings.random_state)
    solver, start = choose_solver(settings.solver, problem), problem.start(rng)
    if near is not None:
        if solver.is_stochastic:  # it makes all its steps, wherever it begins
            return near
        start = near
    params: dict[str, Any] = {"tol": settings.tol, "max_iter": settings.max_iter}
    return solver.solve(problem, start, **params, random_state=rng).theta


def solve(problem: ConstrainedERM, settings: Settings, callback: Callback) -> StrictResult:
    """Return the solution of the problem, as ``enforce=`` asks for it.

    "surrogate" is one run of the solver on smooth constraints. Otherwise strict enforcement runs it
    several times, until the true disparities are within the limits. If they cannot be because of a
    budget (``selection_rate``), the solution that misses the budget least is returned.
    """
    rng = check_random_state(settings.random_state)
    solver = choose_solver(settings.solver, problem)
    options: SolveOptions = {"tol": settings.tol, "random_state": rng, "callback": callback}
    if settings.max_iter is not None:
        options["max_iter"] = settings.max_iter
    start = problem.model.start(rng)
    if settings.enforce == "surrogate":
        result = solver.solve(problem, problem.centered(start), **options)
        return StrictResult(problem, result, Verdict())

    def best_within(problem: ConstrainedERM) -> StrictResult:
        return solve_strictly(
            problem,
            solver,
            start,
            is_classifier=settings.is_classifier,
            may_refine=settings.enforce == "strict",
            **options,
        )

    # The next two functions are the arguments of nearest_rate.
    def missed(solved: StrictResult) -> float:
        means = problem.decide(problem.scores(solved.result.theta) + solved.shift).means
        pairs = zip(problem.constraints, means, strict=True)
        reached = [bound.disparity_of_means(own) for bound, own in pairs]
        return rate_missed(problem.constraints, reached)

    def with_room(room: float) -> StrictResult:
        constraints = [widened(constraint, room) for constraint in problem.constraints]
        return best_within(problem.constrained(constraints))

    solved = best_within(problem)
    is_done = solved.verdict.is_feasible or solved.result.status == "stopped"
    if is_done or not any(map(is_budget, problem.constraints)):
        return solved
    return nearest_rate(solved, with_room, missed)


def takes_parts(estimator: Any) -> bool:
    """Return True if rows may come in parts, else raise AttributeError with the reason.

    It is the condition of ``available_if`` for ``partial_fit``.
    """
    if estimator.certificate is not None:
        raise AttributeError(
            "certificate= is for fit, which sees all rows; partial_fit certifies nothing. Set "
            "certificate=None, and test with skfair.metrics.disparity_test on rows kept apart."
        )
    try:
        constraints = make_constraints(estimator.constraint, "classification")
        solver = choose_solver(estimator.solver)
    except (TypeError, ValueError):
        return True  # parameters are not valid, and partial_fit itself raises a better error
    if any(constraint.within_strata for constraint in constraints):
        raise AttributeError(
            "A constraint within strata needs control_features in fit; partial_fit has none. Use "
            f"fit, or constraint={estimator.constraint!r} without ConditionalOn."
        )
    if not solver.can_advance:
        raise AttributeError(
            f"partial_fit needs a stochastic solver, got solver={estimator.solver!r}. Use 'auto' "
            "or 'alm'."
        )
    return True


@dataclass(frozen=True)
class Stream:
    """The state of training between the parts of a stream."""

    training: TrainingState
    units: Units  # units of the columns, from the first part
    rng: np.random.RandomState
    weight: float = 0.0  # total weight of all rows so far, in the mean loss


def advance(
    problem: ConstrainedERM,  # the problem of the next part
    stream: Stream | None,  # None before the first part, which begins where the last fit ended
    task: Task,  # the task of the next part
    fitted: Mapping[str, Any],  # attributes of the last fit, if there was one
) -> Stream:
    """Make steps on a part, and return the new stream.

    The old one is copied first, so that it is unchanged if something fails.
    """
    solver = cast(StreamSolver, choose_solver(task.settings.solver))
    check_needs(solver, problem)
    seed = task.settings.random_state
    stream = _begin(problem, solver, seed, fitted) if stream is None else deepcopy(stream)
    problem.model.use_units(stream.units)
    n_steps = max(PART_STEPS, problem.model.n_samples // solver.n_loss)  # about a pass or more
    solver.advance(problem, stream.training, n_steps, stream.rng)
    return replace(stream, weight=stream.weight + task.total_weight)


def _begin(
    problem: ConstrainedERM, solver: StreamSolver, seed: Seed, fitted: Mapping[str, Any]
) -> Stream:
    """Return a stream before its first part, which begins at the model of the last fit, if any."""
    rng = check_random_state(seed)
    start, multipliers = problem.start(rng), None
    if "_last_model" in fitted:
        n_before, last = fitted["_last_model"]
        if n_before != problem.model.n_parameters:
            raise ValueError(
                f"The last fit had {n_before} parameters and the columns of X make "
                f"{problem.model.n_parameters}, so it cannot be continued. Pass the same "
                "columns, or use a new estimator."
            )
        # The last model was stored with weights for unscaled columns. The parameters of a problem
        # are for columns standardised on its own rows, so they are converted.
        start = problem.centered(problem.model.standardised(*last))
        if fitted["multipliers_"].size == problem.n_constraints:  # other groups make other numbers
            multipliers = fitted["multipliers_"]
    return Stream(solver.begin(problem, start, multipliers), problem.model.units, deepcopy(rng))
