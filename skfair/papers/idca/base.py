r"""Functions and the switching step that the DC solvers of partial_fairness_idca share.

The paper's problem (27) has one-sided constraints, each a difference of convex functions,

.. math:: \min f_0 \quad \text{subject to} \quad f_i = f_i^+ - f_i^- \le 0.

With c = plus - minus the two sides of l <= c <= u are c - u = (plus - u) - minus and l - c = (minus
+ l) - plus. So an upper bound has "plus" as its convex part and a lower bound has "minus". Sides
with infinite bounds are left out. :class:`Linearised` has the convex functions g_i >= f_i of (31),
which touch the f_i at one point. Algorithm 2 (``idca.py``) makes :func:`switching_step` on the g_i,
and Algorithm 3 (``dc_ssg.py``) makes it on the f_i themselves.

f_i -> functions of (27), g_i -> convex functions of (31), w -> centre of the linearisation, v ->
point of evaluation, eps -> tolerance on the constraints, lam -> lambda >= 0 of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import FloatArray
from skfair.enforcement.rounds import SolveOptions
from skfair.enforcement.strict_evaluation import Verdict
from skfair.papers.idca.parts import DCProblem
from skfair.papers.one_sided import OneSided
from skfair.partial_parity.problem import PartialEvaluation, PartialParityProblem
from skfair.partial_parity.promise import Promise
from skfair.partial_parity.strict_rounds import IntervalSolver, PartialResult, stated
from skfair.partial_parity.surrogates import make_surrogate
from skfair.problems.protocol import Problem
from skfair.solvers.base import IterativeSolver, check_needs


class DCSolver(IntervalSolver, IterativeSolver[DCProblem]):
    """Base of the algorithms of the paper. As in the paper, they run once from constant scores."""

    default_tol: ClassVar[float] = 0.0
    needs: ClassVar[tuple[Any, ...]] = ("parts",)
    form: str = "centers"  # how constraints on rates are written, see :class:`IDCA`

    @property
    def default_max_iter(self) -> int:  # type: ignore[override]
        """Default of ``max_iter``: ``n_outer`` convex problems, or 10,000 steps without them."""
        return getattr(self, "n_outer", 10_000)

    def fit_within(
        self, promise: Promise, free: PartialParityProblem, options: SolveOptions, *, printed: bool
    ) -> PartialResult:
        constraint, name = promise.constraint, type(self).__name__
        if constraint.ranks_whole_groups:
            raise ValueError(
                f"{name} is for differences of convex functions, which no constraint with "
                "rank_within='group' is. Use solver='al_lbfgs', or 'repair' if the model is "
                "group-aware."
            )
        surrogate = make_surrogate(constraint.surrogate)
        unlimited = DCProblem(free.model, free.objective, [], free.tolerance, alpha=free.alpha)
        how: Any = {"printed": printed or self.form == "pairs", "last": True}
        (problem,) = stated(self._asked(promise), unlimited, surrogate, **how)
        check_needs(self, problem)
        start = problem.start(free.model.start(check_random_state(options["random_state"])))
        result = self.solve(problem, start, **options)
        return PartialResult(problem, result, Verdict(), is_precise=False)

    def _asked(self, promise: Promise) -> Promise:
        return promise


# Numbers of rows from 0 on are one-sided constraints. This number is the objective.
OBJECTIVE = -1

# The convex parts of a problem at a point, plus and minus.
Parts = tuple[PartialEvaluation, PartialEvaluation]


@dataclass(eq=False)
class Point:
    """Values of the objective and of the one-sided constraints at a point."""

    theta: FloatArray
    objective: float
    constraints: FloatArray  # (n,), satisfied if <= 0
    parts: Parts  # the convex parts at this point, for gradients

    @property
    def excess(self) -> float:
        """The largest constraint; -inf if there is none."""
        return float(self.constraints.max(initial=-np.inf))


class Linearised:
    r"""The convex functions of (31): each minus part is replaced by its tangent at w, (32).

    .. math:: g_i(v) = f_i^+(v) - f_i^-(w) - s_i^T (v - w) + \tfrac{\mu}{2} |v - w|^2

    Assumption 6.3A asks for strongly convex parts, so mu/2 |.|^2 is added to both. The last term
    is what remains of it after the tangent is taken. At w, the point ``center``, the g_i equal the
    f_i.

    Notes
    -----
    Making it costs one pull-back per constraint, evaluating one pass through the model and
    O(n_constraints n_parameters), a subgradient one pull-back.
    """

    def __init__(
        self,
        problem: DCProblem,  # the problem
        parts: Parts,  # convex parts of the problem at w, plus and minus
        mu: float = 0.0,  # strong convexity of the functions
    ) -> None:
        self._problem, self._mu = problem, mu
        self._rows = OneSided(problem)
        self.n = self._rows.n
        plus, minus = parts
        value, slope = problem.objective_minus(plus)
        # Values and gradients at w of the minus parts f_i^-, with the objective first.
        self._values = np.append(value, self._rows.sides(minus.constraints, plus.constraints))
        slopes = (self._row_slope(row, minus, plus) for row in range(self.n))
        self._slopes = np.stack([slope, *slopes])
        self._w = plus.theta
        self.center = self._point(parts)

    def evaluate(self, theta: FloatArray) -> Point:
        """Return the values at theta, by one pass through the model."""
        return self._point(self._problem.parts(theta))

    def gradient(self, at: Point, row: int) -> FloatArray:
        """Return a subgradient of a constraint or of the objective, by one backward pass."""
        plus, minus = at.parts
        of_plus = plus.gradient() if row == OBJECTIVE else self._row_slope(row, plus, minus)
        return np.asarray(of_plus - self._slopes[1 + row] + self._mu * (at.theta - self._w))

    def _point(self, parts: Parts) -> Point:
        plus, minus = parts
        theta, away = plus.theta, plus.theta - self._w
        rows = self._rows.sides(plus.constraints, minus.constraints) - self._rows.bounds
        values = np.append(plus.objective, rows)
        values -= self._values + self._slopes @ away
        values += 0.5 * self._mu * float(away @ away)
        return Point(theta, float(values[0]), values[1:], parts)

    def _row_slope(
        self, row: int, of_upper: PartialEvaluation, of_lower: PartialEvaluation
    ) -> FloatArray:
        """Return the gradient of one row of G, by one backward pass.

        A row of an upper bound takes its part from ``of_upper``, a row of a lower bound from
        ``of_lower``.
        """
        # The unit has one entry that is not 0: 1 for an upper bound, and -1 for a lower one.
        unit = self._rows.unit(row)
        return (of_upper if unit.sum() > 0 else of_lower).gradient(np.abs(unit), objective=0.0)


class StepLengths:
    """Total length of the steps along each subgradient, from which multipliers are estimated.

    The steps add up to -(T_0 g_0 + sum T_i g_i), where T_i is the total length along g_i. If the
    iterate no longer moves, this sum is 0, so the T_i / T_0 are multipliers for the subgradients
    averaged over the steps.
    """

    def __init__(self, n: int) -> None:
        self.of_objective, self.of_rows = 0.0, np.zeros(n)

    def add(self, row: int, length: float) -> None:
        """Add the length of one step."""
        if row == OBJECTIVE:
            self.of_objective += length
        else:
            self.of_rows[row] += length

    def multipliers(self, problem: Problem) -> FloatArray:
        """Return the signed multipliers; zeros if no step was for the objective."""
        if not self.of_objective:
            return np.zeros(problem.n_constraints)
        return OneSided(problem).signed(self.of_rows / self.of_objective)


def switching_step(
    constraints: FloatArray,  # (n,): their values
    gradient: Callable[[int], FloatArray],  # a subgradient of a row, or of ``OBJECTIVE``
    eps: float,
) -> tuple[int, float, FloatArray] | None:
    """Return (row, factor, subgradient) of a step of Algorithms 2 and 3.

    The step is minus factor times subgradient. If all constraints are at most ``eps``, it lowers
    the objective and has the length eps / |gradient|. Otherwise it lowers the worst constraint, as
    far as its tangent becomes 0. The result is None if the subgradient is zero.
    """
    row, aim = OBJECTIVE, eps
    excess = float(constraints.max(initial=-np.inf))
    if excess > eps:
        row, aim = int(np.argmax(constraints)), excess
    against = gradient(row)
    squared = float(against @ against)
    return (row, aim / squared, against) if squared else None
