r"""The base of all solvers: the driver, their result, the registry, the check of their needs.

Estimators call :func:`check_needs`, then :meth:`Solver.solve`, the driver. A solver is a subclass
of :class:`IterativeSolver` that writes down its steps, and the driver does the rest::

    @SOLVERS.register("descent")
    @dataclass
    class Descent(IterativeSolver[Problem]):
        rate: Positive = 0.1

        def steps(self, problem, run):
            at = problem.evaluate(run.start)
            for n_iter in count():
                gradient = at.gradient()
                is_flat = np.abs(gradient).max() <= run.tol
                yield Step(at, np.zeros(problem.n_constraints), n_iter,
                           status="converged" if is_flat else None)
                at = problem.evaluate(at.theta - self.rate * gradient)

The driver records each step in the history, calls the callback, and ends the run when a step says
so, when the callback asks for it, or after ``max_iter`` iterations. If the start satisfies the
constraints, and the end has a larger objective without satisfying them better, the driver returns
the start. A solver never sees groups, rows or models, and never prints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import Callback, FloatArray, Seed
from skfair.exceptions import SolverError
from skfair.problems.protocol import Evaluation, Offer, Problem
from skfair.solvers.parameters import check_parameters
from skfair.utils.endings import Status
from skfair.utils.history import History
from skfair.utils.registry import PAPERS, Registry
from skfair.utils.signatures import ReadableSignature
from skfair.utils.text import listed

P = TypeVar("P", bound=Problem)


class SolverResult(NamedTuple):
    """The result of every solver.

    Attributes
    ----------
    theta : ndarray
        The parameters found.
    multipliers : ndarray
        One multiplier per constraint, in the order of the problem.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter", "stopped", "infeasible"}
        Why the solver ended; ``stopped`` means that a callback asked for it.
    history : dict of ndarray
        Columns of equal length, see :class:`skfair.utils.history.History`.
    """

    theta: FloatArray
    multipliers: FloatArray
    n_iter: int
    status: Status
    history: dict[str, FloatArray]


class Answer(NamedTuple):
    """A point and its multipliers that a solver returns in place of its last iteration."""

    at: Evaluation
    multipliers: FloatArray


@dataclass(frozen=True)
class Step:
    """Where a solver has got to.

    Parameters
    ----------
    at : Evaluation
        The problem at the point of this iteration. The history records its values, and the callback
        gets the point.
    multipliers : ndarray of shape (n_constraints,)
        Signed multipliers.
    n_iter : int
        Iterations so far: 0 for the start.
    status : str, default=None
        Why the run ends here. If None, it goes on.
    columns : mapping
        Further columns of the history, such as step sizes.
    answer : callable, default=None
        Function without arguments that is called if the run ends here, whose :class:`Answer` is the
        result. If None, ``at`` and ``multipliers`` are the result. If the run ends by ``max_iter``,
        it counts as converged if the KKT residual of the answer is at most ``tol``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from skfair.solvers.base import Step
    >>> at = SimpleNamespace(theta=[0.5], objective=0.25, constraints=[])
    >>> Step(at, multipliers=[], n_iter=3).status is None
    True
    """

    at: Evaluation
    multipliers: FloatArray
    n_iter: int
    status: Status | None = None
    columns: Mapping[str, float] = field(default_factory=dict)
    answer: Callable[[], Answer] | None = None


class Run(NamedTuple):
    """The arguments of a run that :meth:`IterativeSolver.steps` gets from the driver."""

    start: FloatArray  # the initial parameters: a copy, which may be changed
    # The initial multipliers, a copy as well; None if the caller knows none
    multipliers: FloatArray | None
    tol: float  # the largest KKT residual at which to stop
    max_iter: int  # the driver counts iterations; only methods whose steps depend on it read this
    rng: np.random.RandomState  # draws rows in stochastic solvers


class Solver(ABC):
    """Interface of the solvers of constrained risk minimisation.

    Attributes
    ----------
    needs : tuple of str
        Names of the methods that the problem must offer, see
        :data:`skfair.problems.protocol.Offer`.
    is_stochastic : bool
        True if the solver draws random batches. Strict enforcement then makes fewer rounds.
    is_precise : bool
        True if the solver reaches a KKT residual of 1e-9 at a low cost. Strict enforcement of
        linear models then requires it, so that the model depends neither on the solver nor on the
        order of the rows.
    can_advance : bool
        True if the training can be continued on other rows, as in ``partial_fit``.
    default_tol : float
        Tolerance if :meth:`solve` is called without ``tol``.
    default_max_iter : int
        Maximum number of iterations if :meth:`solve` is called without ``max_iter``.

    Examples
    --------
    >>> from skfair.solvers.base import SOLVERS
    >>> [name for name in SOLVERS if SOLVERS[name].is_precise]
    ['al_lbfgs', 'al_newton']
    """

    __signature__ = ReadableSignature()
    needs: ClassVar[tuple[Offer, ...]] = ()
    is_stochastic: ClassVar[bool] = False
    is_precise: ClassVar[bool] = False
    can_advance: ClassVar[bool] = False
    default_tol: ClassVar[float] = 1e-4
    default_max_iter: ClassVar[int] = 5000

    # Declared here for :meth:`solve`, and described in :class:`IterativeSolver`.
    steps: Callable[[Any, Run], Iterator[Step]]

    def solve(
        self,
        problem: Problem,
        theta0: FloatArray,
        multipliers0: FloatArray | None = None,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: Seed = None,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Solve a problem.

        Parameters
        ----------
        problem : Problem
            The problem to solve. It must offer everything that is listed in ``needs``.
        theta0 : ndarray of shape (n_parameters,)
            Initial parameters.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Initial multipliers, for solvers that use them.
        tol : float, default=None
            KKT residual at which the solver stops. If None, ``default_tol`` is used.
        max_iter : int, default=None
            Maximum number of iterations. If None, ``default_max_iter`` is used.
        random_state : int, RandomState instance or None, default=None
            Seed of the random number generator that draws rows in stochastic solvers.
        callback : callable, default=None
            Function that is called as ``callback(theta)`` after each step. The solver stops if it
            returns True.

        Returns
        -------
        result : SolverResult
            The parameters, the signed multipliers and the history.
        """
        tol = self.default_tol if tol is None else tol
        max_iter = self.default_max_iter if max_iter is None else max_iter
        begin = np.array(theta0, dtype=np.float64)
        start = begin.copy()
        lam0 = None if multipliers0 is None else np.array(multipliers0, dtype=np.float64)
        history, step = History(), None
        status: Status = "max_iter"
        # Solvers evaluate the start first, and problems remember their last evaluation. So the
        # evaluation here, just before the steps, costs no extra pass over the rows. Only two
        # numbers of it are kept, because an evaluation holds arrays as long as the rows.
        first = problem.evaluate(begin)
        before, first_objective = problem.violation(first), first.objective
        del first
        if np.isnan(before) or np.isnan(first_objective):
            raise SolverError(
                "The objective or a constraint is NaN at the start. Look for NaN in what a loss, a "
                "constraint or a score model of your own returns (skfair.models.check_score_model)."
            )
        run = Run(start, lam0, tol, max_iter, check_random_state(random_state))
        for step in self.steps(problem, run):
            violation = problem.violation(step.at)
            columns = {"objective": step.at.objective, "max_violation": violation, **step.columns}
            history.record(iteration=step.n_iter, **columns)
            if step.n_iter and callback is not None and callback(step.at.theta):
                status = "stopped"
                break
            if step.status is not None:
                status = step.status
                break
            if step.n_iter >= max_iter:
                break
        if step is None:  # the solver yielded nothing
            zeros = np.zeros(problem.n_constraints)
            return SolverResult(begin, zeros if lam0 is None else lam0, 0, status, {})
        at, multipliers = step.at, step.multipliers
        if step.answer is not None:
            at, multipliers = step.answer()
            if status == "max_iter" and residual(problem, at, multipliers) <= tol:
                status = "converged"
        # If the start satisfies the constraints and the end has a larger objective (or NaN) without
        # violating them less, the start is returned.
        margin = tol * max(1.0, abs(first_objective))
        is_lower = at.objective <= first_objective + margin  # false for nan
        if before <= tol and not is_lower and not problem.violation(at) < before:
            at = problem.evaluate(begin)
            multipliers = np.zeros(problem.n_constraints) if lam0 is None else lam0
            # The start is not a converged solution.
            status = "max_iter" if status == "converged" else status
        return SolverResult(at.theta, multipliers, step.n_iter, status, history.as_dict())


class IterativeSolver(Solver, Generic[P]):
    """Base of solvers, generic in the type of problem that their steps are for.

    The docstring of the module shows an example of a subclass.

    Examples
    --------
    >>> from skfair.solvers.base import SOLVERS, IterativeSolver
    >>> all(issubclass(SOLVERS[name], IterativeSolver) for name in SOLVERS)
    True
    """

    @abstractmethod
    def steps(self, problem: P, run: Run) -> Iterator[Step]:
        """Yield the iterations of the method.

        :meth:`solve` asks for iterations until one has a status, or until ``max_iter`` is reached.
        A method that cannot continue returns, and its last iteration is the result.

        Parameters
        ----------
        problem : Problem
            The problem to solve.
        run : Run
            The starting point, the tolerance and the maximum number of iterations.

        Yields
        ------
        step : Step
            The starting point, if it should be in the history, and the point after each iteration.
        """


def residual(problem: Problem, at: Evaluation, multipliers: FloatArray) -> float:
    """Return the largest of the parts of the KKT residual, which solvers compare with ``tol``."""
    return max(problem.kkt_residual(at, multipliers).values())


# The solvers of constrained risk minimisation by name.
SOLVERS: Registry[type[Solver]] = Registry("solver", "skfair.solvers.erm", PAPERS)


def check_needs(solver: Solver, problem: Problem) -> None:
    """Raise a ``TypeError`` if the problem lacks a method that the solver needs.

    A class, or an object that is no solver, is rejected in the same way. The parameters of the
    solver are checked, too.

    Parameters
    ----------
    solver : Solver
        The solver, which lists its requirements in ``needs``.
    problem : Problem
        The problem to solve.

    Examples
    --------
    >>> from skfair.solvers import ALNewton
    >>> from skfair.solvers.base import check_needs
    >>> class Smooth:
    ...     offers = frozenset()
    >>> check_needs(ALNewton(), Smooth())
    Traceback (most recent call last):
        ...
    TypeError: ALNewton cannot solve a Smooth: the problem has no 'hessian'...
    """
    if isinstance(solver, type):
        raise TypeError(
            f"solver is the class {solver.__name__}. Pass an object, {solver.__name__}(), or the "
            "name of a solver."
        )
    if not isinstance(solver, Solver):
        raise TypeError(
            f"{type(solver).__name__} is no solver. Derive it from "
            "skfair.solvers.base.IterativeSolver, or pass the name of a solver."
        )
    check_parameters(solver)
    missing = [name for name in solver.needs if name not in problem.offers]
    if missing:
        raise TypeError(
            f"{type(solver).__name__} cannot solve a {type(problem).__name__}: the problem has no "
            f"{listed(missing)}. Choose another solver, or solver='auto'."
        )
