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

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.one_sided import OneSided
from skfair.utils.registry import Registry

# The solvers of the paper by name. Those in SOLVERS need no convex parts.
DC_SOLVERS: Registry[Any] = Registry("solver", "skfair.solvers.dc")

# The row that stands for the objective.
OBJECTIVE = -1


@dataclass(eq=False)
class Point:
    """Objective and one-sided constraints somewhere."""

    theta: FloatArray
    objective: float
    constraints: FloatArray  # (n,), kept where <= 0
    tape: Any

    @property
    def excess(self) -> float:
        """The largest constraint; -inf if there is none."""
        return float(self.constraints.max(initial=-np.inf))

    @property
    def violation(self) -> float:
        """By how much the worst constraint is missed."""
        return max(0.0, self.excess)


class Functions(Protocol):
    """An objective and n one-sided constraints."""

    n: int

    def evaluate(self, theta: FloatArray) -> Point:
        """Return their values."""

    def gradient(self, at: Point, row: int) -> FloatArray:
        """Return a subgradient of one of them."""


class Direct:
    """The functions f_i of (27).

    Parameters
    ----------
    problem : PartialParityProblem
        Has ``evaluate`` and ``gradient``.
    """

    def __init__(self, problem: Any) -> None:
        self._problem, self._rows = problem, OneSided(problem)
        self.n = self._rows.n

    def evaluate(self, theta: FloatArray) -> Point:
        """Return the values at theta: one pass through the model."""
        at = self._problem.evaluate(theta)
        return Point(theta, at.objective, self._rows.values(at), at)

    def gradient(self, at: Point, row: int) -> FloatArray:
        """Return a subgradient of a constraint or of the objective: one pull-back."""
        if row == OBJECTIVE:
            return np.asarray(at.tape.gradient())
        return np.asarray(at.tape.gradient(self._rows.unit(row), objective=0.0))


class Parts:
    """Both convex parts at a point, from one pass through the model."""

    def __init__(self, problem: Any, theta: FloatArray) -> None:
        self.plus = plus = problem.evaluate(theta, "plus")
        of_rules = [
            rule.evaluate(plus.scores, problem.aux_of(theta, k), "minus")
            for k, rule in enumerate(problem.rules)
        ]
        values = np.concatenate([np.empty(0), *(one.values for one in of_rules)])
        # Its objective is that of ``plus`` and never asked for.
        self.minus = replace(plus, part="minus", constraints=values, of_rules=of_rules)


class Linearised:
    r"""The convex functions of (31): each minus part is replaced by its tangent at w, (32).

    .. math:: g_i(v) = f_i^+(v) - f_i^-(w) - s_i^T (v - w) + \tfrac{\mu}{2} |v - w|^2

    The last term is what is left of mu/2 |.|^2 in both parts, which Assumption 6.3A asks for.

    Parameters
    ----------
    problem : PartialParityProblem
        The problem.
    parts : Parts
        Its parts at w.
    mu : float, default=0.0
        Strong convexity of the functions.

    Attributes
    ----------
    n : int
        Number of constraints.
    center : Point
        The values at w, where they are those of the problem.

    Notes
    -----
    Making it costs one pull-back per constraint, evaluating one pass through the model and
    O(n_constraints n_parameters), a subgradient one pull-back.
    """

    def __init__(self, problem: Any, parts: Parts, mu: float = 0.0) -> None:
        self._problem, self._mu = problem, mu
        self._uppers = np.flatnonzero(np.isfinite(problem.upper))
        self._lowers = np.flatnonzero(np.isfinite(problem.lower))
        sides = [(self._uppers, True), (self._lowers, False)]
        self._sides = [(int(j), is_upper) for rows, is_upper in sides for j in rows]
        self.n = len(self._sides)
        plus, minus = parts.plus, parts.minus
        value, slopes = problem.objective.evaluate(plus.scores, "minus")
        # Values and gradients of the f_i^- at w, the objective first.
        self._values = np.concatenate(
            [[value], minus.constraints[self._uppers], plus.constraints[self._lowers]]
        )
        self._slopes = np.zeros((1 + self.n, plus.theta.size))
        if slopes.any():
            pulled = problem.model.pullback(plus.tape, slopes)
            self._slopes[0, : pulled.size] = pulled
        for row, (j, is_upper) in enumerate(self._sides):
            self._slopes[1 + row] = self._constraint_slope(minus if is_upper else plus, j)
        self._w = plus.theta
        self.center = self._point(parts)

    def evaluate(self, theta: FloatArray) -> Point:
        """Return the values at theta: one pass through the model."""
        return self._point(Parts(self._problem, theta))

    def gradient(self, at: Point, row: int) -> FloatArray:
        """Return a subgradient of a constraint or of the objective: one pull-back."""
        if row == OBJECTIVE:
            of_plus = at.tape.plus.gradient()
        else:
            j, is_upper = self._sides[row]
            of_plus = self._constraint_slope(at.tape.plus if is_upper else at.tape.minus, j)
        return np.asarray(of_plus - self._slopes[1 + row] + self._mu * (at.theta - self._w))

    def _point(self, parts: Parts) -> Point:
        theta, (up, low) = parts.plus.theta, (self._uppers, self._lowers)
        away = theta - self._w
        values = np.concatenate(
            [
                [parts.plus.objective],
                parts.plus.constraints[up] - self._problem.upper[up],
                parts.minus.constraints[low] + self._problem.lower[low],
            ]
        )
        values -= self._values + self._slopes @ away
        values += 0.5 * self._mu * float(away @ away)
        return Point(theta, float(values[0]), values[1:], parts)

    def _constraint_slope(self, at: Any, j: int) -> FloatArray:
        unit = np.zeros(self._problem.n_constraints)
        unit[j] = 1.0
        return np.asarray(at.gradient(unit, objective=0.0))


class StepLengths:
    """How far steps went along each subgradient, which tells the multipliers.

    Steps add up to -(T_0 g_0 + sum T_i g_i), T_i the total of the lengths along g_i. Where they
    lead nowhere any more, the T_i / T_0 are multipliers: of subgradients averaged over the steps.

    Parameters
    ----------
    n : int
        Number of constraints.
    """

    def __init__(self, n: int) -> None:
        self.of_objective, self.of_rows = 0.0, np.zeros(n)

    def add(self, row: int, length: float) -> None:
        """Count one step."""
        if row == OBJECTIVE:
            self.of_objective += length
        else:
            self.of_rows[row] += length

    def multipliers(self, problem: Any) -> FloatArray:
        """Return the estimate, signed; zeros if no step served the objective."""
        if not self.of_objective:
            return np.zeros(problem.n_constraints)
        return OneSided(problem).signed(self.of_rows / self.of_objective)


class Best:
    """The point of lowest objective within a tolerance, or of least violation if there is none.

    Parameters
    ----------
    tolerance : float
        The violation allowed.
    """

    def __init__(self, tolerance: float, point: Point) -> None:
        self._tolerance = tolerance
        self._rank = (np.inf, np.inf)
        self.point = point
        self.offer(point)

    def offer(self, point: Point) -> None:
        """Keep the point if it is better."""
        rank = (max(0.0, point.excess - self._tolerance), point.objective)
        if rank < self._rank:
            self._rank, self.point = rank, point


def switching_step(
    functions: Functions, at: Point, eps: float, lengths: StepLengths
) -> Point | None:
    """Make one step of Algorithms 2 and 3; None where the subgradient is zero.

    Within the tolerance the step is against the objective, by eps / |gradient|; otherwise against
    the worst constraint, to where its tangent is 0.
    """
    row, aim = OBJECTIVE, eps
    if at.excess > eps:
        row, aim = int(np.argmax(at.constraints)), at.excess
    gradient = functions.gradient(at, row)
    squared = float(gradient @ gradient)
    if not squared:
        return None
    lengths.add(row, aim / squared)
    return functions.evaluate(at.theta - aim / squared * gradient)
