r"""What the DC solvers of partial_fairness_idca share: their functions, and the switching step.

The paper's problem (27) has one-sided constraints, each a difference of convex functions,

.. math:: \min f_0 \quad \text{subject to} \quad f_i = f_i^+ - f_i^- \le 0.

With c = plus - minus the two sides of l <= c <= u are c - u = (plus - u) - minus and
l - c = (minus + l) - plus; sides with infinite bounds are left out. :class:`Direct` offers the f_i
as they are, :class:`Linearised` the convex g_i >= f_i of (31), which touch the f_i at one point.
Algorithms 2 and 3 make the same step, :func:`switching_step`, on the ones or the others.

f_i -> functions of (27), g_i -> convex functions of (31), w -> centre of the linearisation, v ->
where they are evaluated, eps -> tolerance on the constraints, lam -> lambda >= 0 of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from skfair._typing import FloatArray
from skfair.papers.one_sided import OneSided
from skfair.problems.partial.problem import PartialEvaluation, PartialParityProblem
from skfair.problems.protocol import Problem
from skfair.solvers.base import IterativeSolver


class DCSolver(IterativeSolver[PartialParityProblem]):
    """Base of the algorithms of the paper, which are run as there: once, from constant scores.

    Their multipliers are estimates, and the next round of a strict loop would begin where the
    constraints are violated, which they are not made for.
    """

    default_tol: ClassVar[float] = 0.0
    default_max_iter: ClassVar[int] = 10_000
    has_multipliers: ClassVar[bool] = False
    can_continue: ClassVar[bool] = False


# The row that stands for the objective.
OBJECTIVE = -1

# The convex parts of a problem at a point, plus and minus.
Parts = tuple[PartialEvaluation, PartialEvaluation]


T = TypeVar("T")


@dataclass(eq=False)
class Point(Generic[T]):
    """Objective and one-sided constraints somewhere."""

    theta: FloatArray
    objective: float
    constraints: FloatArray  # (n,), kept where <= 0
    tape: T  # what gradients are made of

    @property
    def excess(self) -> float:
        """The largest constraint; -inf if there is none."""
        return float(self.constraints.max(initial=-np.inf))

    @property
    def violation(self) -> float:
        """By how much the worst constraint is missed."""
        return max(self.excess, 0.0)  # nan stays nan


class Functions(Protocol[T]):
    """An objective and n one-sided constraints."""

    n: int

    def evaluate(self, theta: FloatArray) -> Point[T]:
        """Return their values."""

    def gradient(self, at: Point[T], row: int) -> FloatArray:
        """Return a subgradient of one of them."""


class Direct:
    """The functions f_i of (27)."""

    def __init__(self, problem: PartialParityProblem) -> None:
        self._problem, self._rows = problem, OneSided(problem)
        self.n = self._rows.n

    def evaluate(self, theta: FloatArray) -> Point[PartialEvaluation]:
        """Return the values at theta: one pass through the model."""
        at = self._problem.evaluate(theta)
        return Point[PartialEvaluation](theta, at.objective, self._rows.values(at), at)

    def gradient(self, at: Point[PartialEvaluation], row: int) -> FloatArray:
        """Return a subgradient of a constraint or of the objective: one pull-back."""
        if row == OBJECTIVE:
            return at.tape.gradient()
        return at.tape.gradient(self._rows.unit(row), objective=0.0)


class Linearised:
    r"""The convex functions of (31): each minus part is replaced by its tangent at w, (32).

    .. math:: g_i(v) = f_i^+(v) - f_i^-(w) - s_i^T (v - w) + \tfrac{\mu}{2} |v - w|^2

    The last term is what is left of mu/2 |.|^2 in both parts, which Assumption 6.3A asks for. At w
    the values, ``center``, are those of the problem.

    Notes
    -----
    Making it costs one pull-back per constraint, evaluating one pass through the model and
    O(n_constraints n_parameters), a subgradient one pull-back.
    """

    def __init__(
        self,
        problem: PartialParityProblem,  # the problem
        parts: Parts,  # its convex parts at w, plus and minus
        mu: float = 0.0,  # strong convexity of the functions
    ) -> None:
        self._problem, self._mu = problem, mu
        self._uppers = np.flatnonzero(np.isfinite(problem.upper))
        self._lowers = np.flatnonzero(np.isfinite(problem.lower))
        sides = [(self._uppers, True), (self._lowers, False)]
        self._sides = [(int(j), is_upper) for rows, is_upper in sides for j in rows]
        self.n = len(self._sides)
        plus, minus = parts
        value, slope = problem.objective_minus(plus)
        # Values and gradients of the f_i^- at w, the objective first.
        self._values = np.concatenate(
            [[value], minus.constraints[self._uppers], plus.constraints[self._lowers]]
        )
        self._slopes = np.stack(
            [slope, *(_row_slope(minus if upper else plus, j) for j, upper in self._sides)]
        )
        self._w = plus.theta
        self.center = self._point(parts)

    def evaluate(self, theta: FloatArray) -> Point[Parts]:
        """Return the values at theta: one pass through the model."""
        return self._point(self._problem.parts(theta))

    def gradient(self, at: Point[Parts], row: int) -> FloatArray:
        """Return a subgradient of a constraint or of the objective: one pull-back."""
        plus, minus = at.tape
        if row == OBJECTIVE:
            of_plus = plus.gradient()
        else:
            j, is_upper = self._sides[row]
            of_plus = _row_slope(plus if is_upper else minus, j)
        return np.asarray(of_plus - self._slopes[1 + row] + self._mu * (at.theta - self._w))

    def _point(self, parts: Parts) -> Point[Parts]:
        plus, minus = parts
        theta, (up, low) = plus.theta, (self._uppers, self._lowers)
        away = theta - self._w
        values = np.concatenate(
            [
                [plus.objective],
                plus.constraints[up] - self._problem.upper[up],
                minus.constraints[low] + self._problem.lower[low],
            ]
        )
        values -= self._values + self._slopes @ away
        values += 0.5 * self._mu * float(away @ away)
        return Point(theta, float(values[0]), values[1:], parts)


def _row_slope(at: PartialEvaluation, row: int) -> FloatArray:
    """Return the gradient of one constraint: one pull-back."""
    unit = np.zeros(at.constraints.size)
    unit[row] = 1.0
    return at.gradient(unit, objective=0.0)


class StepLengths:
    """How far steps went along each subgradient, which tells the multipliers.

    Steps add up to -(T_0 g_0 + sum T_i g_i), T_i the total of the lengths along g_i. Where they
    lead nowhere any more, the T_i / T_0 are multipliers: of subgradients averaged over the steps.
    """

    def __init__(self, n: int) -> None:
        self.of_objective, self.of_rows = 0.0, np.zeros(n)

    def add(self, row: int, length: float) -> None:
        """Count one step."""
        if row == OBJECTIVE:
            self.of_objective += length
        else:
            self.of_rows[row] += length

    def multipliers(self, problem: Problem) -> FloatArray:
        """Return the estimate, signed; zeros if no step served the objective."""
        if not self.of_objective:
            return np.zeros(problem.n_constraints)
        return OneSided(problem).signed(self.of_rows / self.of_objective)


class SwitchingStep(NamedTuple):
    """A step of Algorithms 2 and 3."""

    row: int  # the constraint that it serves, or ``OBJECTIVE``
    gradient: FloatArray  # (n_parameters,): what it goes against
    length: float  # how far

    def take(self, functions: Functions[T], at: Point[T], lengths: StepLengths) -> Point[T]:
        """Return where it leads, and count it."""
        lengths.add(self.row, self.length)
        return functions.evaluate(at.theta - self.length * self.gradient)


def switching_step(functions: Functions[T], at: Point[T], eps: float) -> SwitchingStep | None:
    """Return the step of Algorithms 2 and 3; None where the subgradient is zero.

    Within the tolerance the step is against the objective, by eps / |gradient|; otherwise against
    the worst constraint, to where its tangent is 0.
    """
    row, aim = OBJECTIVE, eps
    if at.excess > eps:
        row, aim = int(np.argmax(at.constraints)), at.excess
    gradient = functions.gradient(at, row)
    squared = float(gradient @ gradient)
    return SwitchingStep(row, gradient, aim / squared) if squared else None
