r"""The DC program (27) of partial_fairness_idca: functions and their convex parts, f = f+ - f-.

*Steps.* Every smoothed step is convex below 0 and concave above. So one split holds for all of
them,

.. math:: \sigma = \sigma^+ - \sigma^-, \quad
   \sigma^+(x) = \sigma(x) \text{ for } x \le 0, \; \sigma(0) + \sigma'(0) x \text{ for } x > 0

and both parts are convex. For the ramp these are the parts of Example D.3 of partial_fairness_idca.
For the sigmoid they are tighter than the quadratic split of Example D.4 there.

*Rates.* With the parts of the step, F = F+ - F-, and an interval [a, b],

.. math:: \mathrm{clip}(F, a, b) - b = \max(F^+, a + F^-) - \max(F^+, b + F^-)

is a difference of convex functions, (84) with its missing 1 / n_k. As printed, for pairs of groups
in ranks, the parts follow Example D.5 and keep the terms F+ that cancel in (84),

.. math:: f^+ = F_k^+ + \max(a + F_k^-, F_k^+) + F_j^+ + \max(b + F_j^-, F_j^+), \quad
   f^- = F_j^+ + \max(a + F_j^-, F_j^+) + F_k^+ + \max(b + F_k^-, F_k^+)

and :math:`|f^+ - f^-| \le \kappa (b - a)` for both orders of a pair. Rates with ranks in the whole
group jump, so they are no differences of convex functions.

*Pairs of rows.* Let a_i and b_i be the masses of row i above the lower and the upper end of the
interval, m = b - a, and u_i its full mass, 0 <= a <= b <= u. With the split of the step itself,

.. math:: c^+ &= \sum_{ij} (a_i a_j + b_i (u_j - a_j)) \sigma_{ij} + u_i u_j \sigma^-_{ij}
          - \tfrac12 \\
            c^- &= \sum_{ij} (a_i b_j + b_i (u_j - b_j)) \sigma_{ij} + u_i u_j \sigma^-_{ij}

are convex and differ by the sum over pairs of :mod:`skfair.partial_parity.group_auc`. This is
Example D.7 with two changes: terms that are the same in both parts are left out, and sigma- of the
step replaces the quadratic (also for steps with corners). They are convex for this reason. The
masses of the best ranks maximise the sum over all choices of masses between 0 and u with the same
total, because the step rises. So the part is a maximum of functions, one for each choice. In each
of them the coefficient C of sigma lies between 0 and u_i u_j, and C sigma + u_i u_j sigma- equals
C sigma+ + (u_i u_j - C) sigma-, which is convex.

*Losses of pairs.* A loss that falls with z_i - z_j rises with z_j, so its sums over the best ranks
are maxima of convex functions, which are the convex parts of Example D.2. The quadratic loss rises
again beyond 1. There the example fails, because the sum over the *other* rows is the maximum, so
the falling and the rising half of the loss are split separately.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.papers.idca.quadratic import QuadraticMoment
from skfair.partial_parity.group_auc import GroupAUCMoment, step_spline
from skfair.partial_parity.objectives import BoundObjective, Prepared
from skfair.partial_parity.pair_losses import PairwiseLoss
from skfair.partial_parity.problem import PartialEvaluation, PartialParityProblem, joined
from skfair.partial_parity.ranked_moment import RankedMoment, Values
from skfair.partial_parity.rate_moment import RateMoment
from skfair.partial_parity.row_pairs import PairTerm, Spline
from skfair.partial_parity.statistical_parity import StatisticalParityMoment
from skfair.partial_parity.surrogates import Surrogate

Part = Literal["plus", "minus"]
PARTS: tuple[Part, ...] = ("plus", "minus")
# Values of all cells (a cell is a group, or a class within a group), and their slopes by the rates.
OfCells = tuple[FloatArray, tuple[FloatArray, ...]]


@dataclass(frozen=True)
class ConvexStep(Surrogate):
    """One of the convex parts of a step.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.papers.idca.parts import ConvexStep
    >>> x = np.array([-1.0, 0.0, 0.25, 1.0])
    >>> ConvexStep("ramp", 0.5, part="plus")(x), ConvexStep("ramp", 0.5, part="minus")(x)
    (array([0.  , 0.5 , 0.75, 1.5 ]), array([0. , 0. , 0. , 0.5]))
    """

    part: Part = "plus"

    @property
    def codes(self) -> tuple[int, float, float, int]:
        """The numbers by which kernels know the step. The last one is 1 for plus, 2 for minus."""
        kind, width, rounding, _ = super().codes
        return kind, width, rounding, 1 if self.part == "plus" else 2

    def _kernels(self) -> tuple[Callable[..., None], Callable[..., None], tuple[Any, ...]]:
        from skfair.partial_parity._kernels import soft_steps

        if self.kind == "ramp" and not self.rounding:  # such a part is two lines with a corner
            how = 0.5 / float(self.width), 0.5 if self.part == "plus" else -0.5, np.inf, False
            return soft_steps.plain_rates, soft_steps.plain_slopes, how
        return soft_steps.soft_rates, soft_steps.soft_slopes, self.codes


class MomentPart:
    """A mixin with which a moment computes a convex part of its functions.

    :meth:`of` makes such a moment from a plain one, and shares the plain one's arrays.
    """

    part: Part

    @classmethod
    def of(cls, moment: RankedMoment, part: Part) -> Self:
        """Return a part of a moment."""
        made = cls.__new__(cls)
        vars(made).update(vars(moment), part=part)
        return made


class RatePart(MomentPart, RateMoment):
    """A part of shares of intervals, (84), or of their differences, Example D.5."""

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        steps = [ConvexStep(**vars(self.surrogate), part=part) for part in PARTS]
        rows = scores, self.cells, self.row_shares, np.zeros(1)
        plus, minus = (step.rates(*rows, self.n_cells + 1)[0, :-1] for step in steps)
        ends = [self._larger(plus, minus, end) for end in (0, 1)]
        ends = ends if self.part == "plus" else ends[::-1]
        terms = list(zip(self.terms, ends, strict=False))
        values = np.sum([of_cells[cells] for cells, (of_cells, _) in terms], axis=0)
        if self.part == "plus":
            values = self.centred(values + (self.form == "shares"), aux)
        return Values(values, (scores, steps, terms))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores, steps, terms = at.tape
        total = np.zeros(scores.size)
        for k, step in enumerate(steps):
            pull = np.zeros((1, self.n_cells + 1))
            for cells, (_, slopes) in terms:
                pull[0, :-1] += slopes[k] * np.bincount(cells, multipliers, self.n_cells)
            total += step.slopes(scores, self.cells, self.row_shares, np.zeros(1), pull)[0]
        if self.part == "minus":
            return total, np.zeros(self.n_aux)
        return total, self.slopes_of_centres(multipliers)

    def _larger(self, plus: FloatArray, minus: FloatArray, end: int) -> OfCells:
        """Return max(F+, a + F-) for the lower or upper ends a, and its slopes.

        In the printed form, "pairs", F+ is added.
        """
        value, by_plus, n_pieces = np.zeros((3, self.n_cells))
        for cell, g in enumerate(self.groups):
            ends = self.intervals.bounds[g][:, end]
            value[cell] = np.maximum(minus[cell] + ends, plus[cell]).sum()
            by_plus[cell] = (plus[cell] >= minus[cell] + ends).sum()
            n_pieces[cell] = ends.size
        by_minus = n_pieces - by_plus
        if self.form == "pairs":
            value, by_plus = value + n_pieces * plus, by_plus + n_pieces
        factor = self.unit / self.intervals.lengths[self.groups]
        return factor * value, (factor * by_plus, factor * by_minus)


class GroupAUCPart(MomentPart, GroupAUCMoment):
    """A part of sums over pairs of rows, Example D.7."""

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        tape, ranked = [], self.ranked_groups(scores)
        step, minus = step_spline(self.surrogate), _minus_spline(self.surrogate)
        rows = zip(ranked, self.intervals.bounds, strict=True)
        masses = [of_group.masses(pairs) for of_group, pairs in rows]
        for k, other in self.pairs:
            (a, b, u), (low, high, full) = masses[k], masses[other]
            end = low if self.part == "plus" else high
            masses_of_both = (a, end, step), (b, full - end, step), (u, full, minus)
            tape.append([PairTerm(ranked[k], m, ranked[other], o, f) for m, o, f in masses_of_both])
        values = np.array([sum(term.value() for term in terms) for terms in tape])
        return Values(values - 0.5 * (self.part == "plus"), (scores.size, tape))


class QuadraticPart(MomentPart, QuadraticMoment):
    """The minus part of functions that are convex already, which is 0."""

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        return Values(np.zeros(self.n_constraints), scores.size)

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(at.tape), np.zeros(0)


def _minus_spline(surrogate: Surrogate) -> Spline:
    """Return sigma- of a step as a spline."""
    _, w, r, _ = surrogate.codes
    if surrogate.kind == "smoothstep":
        return Spline.of({0: (0, 0, 0, 0.25 / w**3), w: (0.25, 0.75 / w)})
    slope = 0.5 / w
    if r == 0:
        return Spline.of({w: (0, slope)})
    return Spline.of({w - r: (0, 0, 0.25 * slope / r), w + r: (slope * r, slope)})


def part_of_moment(moment: RankedMoment, part: Part) -> RankedMoment:
    """Return a convex part of a constraint on rows."""
    if isinstance(moment, StatisticalParityMoment):
        return moment.with_surrogate(ConvexStep(**vars(moment.surrogate), part=part))
    if isinstance(moment, RateMoment) and moment.form in ("shares", "pairs"):
        return RatePart.of(moment, part)
    if isinstance(moment, GroupAUCMoment):
        return GroupAUCPart.of(moment, part)
    if isinstance(moment, QuadraticMoment):
        return moment if part == "plus" else QuadraticPart.of(moment, part)
    raise TypeError(
        f"{type(moment).__name__} is no constraint whose convex parts are known. Choose "
        "solver='al_lbfgs'."
    )


class ObjectivePart:
    """A convex part of an objective."""

    def __init__(self, objective: BoundObjective, part: Part) -> None:
        self.objective, self.part = objective, part

    def evaluate(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores."""
        whole = self.objective
        if isinstance(whole, PairwiseLoss):
            positives, negatives = whole.ranked(scores)
            low, high, full = negatives.masses(whole.intervals)
            masses = (high, full - low) if self.part == "plus" else (low, full - high)
            return whole.total(positives, negatives, *masses)
        if not isinstance(whole, Prepared):  # then it is convex, and its minus part is 0
            return whole.evaluate(scores) if self.part == "plus" else (0.0, np.zeros(scores.size))
        minus, by_minus = whole.of_user.minus(scores, whole.targets, whole.weights)
        if self.part == "minus":
            return minus, np.asarray(by_minus)
        value, slopes = whole.evaluate(scores)
        return float(value + minus), np.asarray(slopes + by_minus)


class DCProblem(PartialParityProblem):
    """The same problem, whose functions are differences of convex ones for linear scores."""

    @property
    def offers(self) -> frozenset[Any]:  # type: ignore[override]
        """The methods that other solvers may call, and the convex parts."""
        return super().offers | {"parts"}

    def parts(self, theta: FloatArray) -> tuple[PartialEvaluation, PartialEvaluation]:
        """Evaluate the convex parts, plus and minus, in one pass through the model.

        The objective of the minus part is not valid. :meth:`objective_minus` computes it.
        """
        plus, minus = self._part("plus"), self._part("minus")
        at = plus.evaluate(theta)
        of_moments = minus.evaluate_moments(at.scores, theta)
        constraints = joined(of_moments)
        return at, replace(at, problem=minus, constraints=constraints, of_moments=of_moments)

    def objective_minus(self, at: PartialEvaluation) -> tuple[float, FloatArray]:
        """Return value and gradient of the objective's minus part, by a backward pass if not 0."""
        value, slopes = ObjectivePart(self.objective, "minus").evaluate(at.scores)
        gradient = np.zeros(self.n_parameters)
        if slopes.any():
            gradient[: self.model.n_parameters] = self.model.pullback(at.tape, slopes)
        return value, gradient

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return the scores of the rows, by one pass through the model."""
        return self.model.forward(self.model_part(theta), self._rows)[0]

    def _part(self, part: Part) -> PartialParityProblem:
        """Return the problem in which every function is replaced by its convex part."""
        other = copy(self)
        other.objective = cast(Any, ObjectivePart(self.objective, part))
        other.moments = [part_of_moment(moment, part) for moment in self.moments]
        return other
