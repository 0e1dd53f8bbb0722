r"""Rates of decisions inside the interval: problems (21), (50) and (56) of partial_fairness_idca.

By Lemma 5.2 the rate of positive decisions among the rows of group k inside its interval is the
share of the interval that the rank F_k of the threshold covers. In place of all pairs of groups, as
in the paper, every group is compared with one centre l, a parameter:

.. math:: 0 \le \mathrm{share}_k(F_k) - l \le \kappa, \qquad
   F_k = \frac{1}{n_k} \sum_i \sigma(z^k_i - \hat\theta)

over all rows of a group, its positives, or each class by itself with a centre of its own. With the
convex parts of the step, F = F+ - F-, and an interval [a, b],

.. math:: \mathrm{clip}(F, a, b) - b = \max(F^+, a + F^-) - \max(F^+, b + F^-)

is a difference of convex functions, (84) with its missing 1 / n_k.

*Ranks in the whole group* (Definitions A.2 and A.3). There a row has the mass m_i that its rank
among all rows of its group, of either class, has inside the interval, and

.. math:: c_k = \sum_{i \in k, y_i = c} m_i \, \sigma(z^k_i - \hat\theta) \Big/
   \sum_{i \in k, y_i = c} m_i

The masses follow the ranking; slopes take them as constant. Where rows of two classes change
places at an end of the interval the value jumps, so this is no difference of convex functions.

*As printed*: all pairs of groups, in ranks, with the parts of Example D.5, which keep the terms
F+ that cancel in (84),

.. math:: f^+ = F_k^+ + \max(a + F_k^-, F_k^+) + F_j^+ + \max(b + F_j^-, F_j^+), \quad
   f^- = F_j^+ + \max(a + F_j^-, F_j^+) + F_k^+ + \max(b + F_k^-, F_k^+)

and :math:`|f^+ - f^-| \le \kappa (b - a)` for both orders of a pair. A tolerance of a solver is in
ranks there. Where intervals differ between groups, ranks are in units of the shortest one.

The share does not feel ranks outside the interval, so descent cannot leave a wrong side. Three
other forms have no such flat parts, and each is sufficient: ranks themselves within the bound of
each other (one interval for all), all ranks below the interval or hardly in it, all ranks above it
or hardly in it. With ranks in the whole group the last two say that nobody inside the interval, or
everybody, is decided positively. Shares compared with a centre come last.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, Self

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.cells import TrainingRows
from skfair.constraints.partial.base import RankedMoment, Values
from skfair.constraints.partial.surrogates import Part, Surrogate

Form = Literal["ranks", "below", "above", "shares", "masses", "pairs"]
# Values of all cells, and their slopes by the rate of each step.
OfCells = tuple[FloatArray, tuple[FloatArray, ...]]


class RateMoment(RankedMoment):
    """Shares (or ranks) of every cell at the decision threshold; a cell is a group in a class."""

    metrics = (
        "partial_demographic_parity_gap",
        "partial_equal_opportunity_gap",
        "partial_equalized_odds_gap",
    )
    is_share = limits_decisions = True

    def __init__(
        self,
        rows: TrainingRows,
        surrogate: Surrogate,
        classes: tuple[int, ...] = (),
        form: Form = "shares",
        leeway: float = 1.0,  # factor on tolerances
    ) -> None:
        super().__init__(rows, surrogate)
        n_groups, n_parts = self.n_groups, max(1, len(classes))
        n_cells, shortest = n_groups * n_parts, float(self.intervals.lengths.min())
        self._form, self._leeway, self._n_cells = form, leeway, n_cells
        self._groups = np.tile(np.arange(n_groups), n_parts)  # of each cell
        suffixes, cells = [""], self.codes
        if classes:
            suffixes = [f", y={'+' if c else '-'}" for c in classes]
            place = np.full(2, n_parts)
            place[list(classes)] = np.arange(n_parts)
            part = place[rows.classes]
            # Rows of a class that does not count are put into a cell of their own, without weight.
            cells = np.where(part == n_parts, n_cells, self.codes + n_groups * part)
        self._cells = np.ascontiguousarray(cells, dtype=np.int64)
        shares = self.shares(self._cells, n_cells + 1)
        self._shares = np.where(self._cells == n_cells, 0.0, shares)
        names = [name + suffix for suffix in suffixes for name in self.group_names]
        # The cells that a row is about, and those that are subtracted where pairs are compared.
        self._terms: tuple[IntArray, ...] = (np.arange(n_cells),)
        # A row is a distance from a centre, the disparity a difference of two shares.
        self.penalty_unit = 2.0 if form in ("shares", "masses") else 2 / shortest
        self.n_aux = n_parts if form in ("shares", "masses", "ranks") else 0
        self._unit = 1.0  # what all of an interval amounts to
        if form == "pairs":
            self._unit, self.penalty_unit = shortest, 1 / shortest
            starts = range(0, n_cells, n_groups)
            pairs = [(s + i, s + j) for s in starts for i, j in combinations(range(n_groups), 2)]
            self._terms = tuple(np.array(pairs, dtype=np.intp).reshape(len(pairs), 2).T)
            names = [f"{names[i]} - {names[j]}" for i, j in pairs]
        self.row_names = tuple(names)

    @classmethod
    def forms(
        cls,
        rows: TrainingRows,
        surrogate: Surrogate,
        classes: tuple[int, ...] = (),
        ranks_whole_groups: bool = False,
        printed: bool = False,
    ) -> list[Self]:
        """Bind it to rows, in all forms but the printed one, or in that of (21), (50) or (56)."""
        assert rows.intervals is not None
        if printed and not ranks_whole_groups:
            return [cls(rows, surrogate, classes, "pairs")]
        sides: list[Form] = ["below", "above"]
        if ranks_whole_groups:
            outside = [cls(rows, surrogate, (), side, leeway=0.0) for side in sides]
            return [*outside, cls(rows, surrogate, classes, "masses")]
        pairs = rows.intervals.bounds
        is_same = all(np.array_equal(pair, pairs[0]) for pair in pairs)
        forms: list[Form] = ["ranks"] if is_same else []
        forms += [*sides, "shares"]
        return [cls(rows, surrogate, classes, form) for form in forms]

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of shares, or of ranks."""
        intervals, groups, tolerance = self.intervals, self._groups, tolerance * self._leeway
        none = np.full(self._n_cells, np.inf)
        if self._form == "below":
            return -none, np.array([intervals.highest_rank(tolerance, g).item() for g in groups])
        if self._form == "above":
            return np.array([intervals.lowest_rank(1 - tolerance, g).item() for g in groups]), none
        high = np.full(self.n_constraints, tolerance * self._unit)
        if self._form == "ranks":
            high = tolerance * intervals.lengths[groups]
        return -high if self._form == "pairs" else np.zeros(high.size), high

    def start(self, scores: FloatArray, tolerance: float) -> FloatArray:
        """Return the lowest value of each class."""
        values = self.evaluate(scores, np.zeros(self.n_aux)).values
        by_class = values[: self.n_aux * self.n_groups].reshape(self.n_aux, self.n_groups)
        return np.asarray(by_class.min(axis=1))

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return shares or ranks minus their centre, or differences of them, O(n).

        With ranks in the whole group it is O(n log n).
        """
        shares = self._shares
        if self._form == "masses":
            if part != "whole":
                raise ValueError(
                    "A constraint with ranks in the whole group (rank_within='group') is not "
                    "convex. Use solver='al_lbfgs' or solver='repair'."
                )
            shares = self._masses(scores)
        has_parts = part != "whole" and self._form in ("shares", "pairs")
        steps: tuple[Part, ...] = ("plus", "minus") if has_parts else (part,)
        rows = scores, self._cells, shares, np.zeros(1), self._n_cells + 1
        rates = [self.surrogate.rates(*rows, step)[0, :-1] for step in steps]
        terms = list(zip(self._terms, self._of_cells(part, rates), strict=False))
        values = np.sum([of_cells[cells] for cells, (of_cells, _) in terms], axis=0)
        if part != "minus" and self.n_aux:
            values = values - np.repeat(aux, self.n_groups)
        return Values(values, (scores, shares, part, steps, terms))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by scores and centres, O(n)."""
        scores, shares, part, steps, terms = at.tape
        total, rows = np.zeros(scores.size), (scores, self._cells, shares, np.zeros(1))
        for k, step in enumerate(steps):
            pull = np.zeros((1, self._n_cells + 1))
            for cells, (_, slopes) in terms:
                pull[0, :-1] += slopes[k] * np.bincount(cells, multipliers, self._n_cells)
            total += self.surrogate.slopes(*rows, pull, step)[0]
        of_aux = np.zeros(self.n_aux)
        if part != "minus" and self.n_aux:
            of_aux -= multipliers.reshape(self.n_aux, self.n_groups).sum(axis=1)
        return total, of_aux

    def _of_cells(self, part: Part, rates: list[FloatArray]) -> list[OfCells]:
        """Return the functions of the cells that the terms of a row add up."""
        if len(rates) == 2:
            ends = [self._larger(rates[0], rates[1], end) for end in (0, 1)]
            if self._form == "pairs":
                return ends if part == "plus" else ends[::-1]
            value, slopes = ends[part == "minus"]
            return [(value + (part == "plus"), slopes)]
        value, slope = rates[0], np.ones(self._n_cells)
        if self._form in ("shares", "pairs"):
            cells, lengths = list(zip(value, self._groups, strict=True)), self.intervals.lengths
            inside = np.array([float(self.intervals.contains(rate, g)) for rate, g in cells])
            value = self._unit * np.array([self.intervals.share(rate, g) for rate, g in cells])
            slope = self._unit * inside / lengths[self._groups]
        return [(value, (slope,)), (-value, (-slope,))]

    def _larger(self, plus: FloatArray, minus: FloatArray, end: int) -> OfCells:
        """Return max(F+, a + F-), a the lower or upper ends; as printed, F+ is added to it."""
        value, by_plus, n_pieces = np.zeros((3, self._n_cells))
        for cell, g in enumerate(self._groups):
            ends = self.intervals.bounds[g][:, end]
            value[cell] = np.maximum(minus[cell] + ends, plus[cell]).sum()
            by_plus[cell] = (plus[cell] >= minus[cell] + ends).sum()
            n_pieces[cell] = ends.size
        by_minus = n_pieces - by_plus
        if self._form == "pairs":
            value, by_plus = value + n_pieces * plus, by_plus + n_pieces
        factor = self._unit / self.intervals.lengths[self._groups]
        return factor * value, (factor * by_plus, factor * by_minus)

    def _masses(self, scores: FloatArray) -> FloatArray:
        """Return the weight of each row in the rate of its cell: its ranks inside the interval."""
        masses = np.empty(scores.size)
        for ranked, interval in zip(self.ranked_groups(scores), self.intervals.bounds, strict=True):
            low, high, _ = ranked.masses(interval)
            masses[ranked.rows] = high - low
        masses[self._cells == self._n_cells] = 0.0
        inside = np.bincount(self._cells, masses, self._n_cells + 1)
        # A cell without rows inside has no rate: 0 here, and the metric refuses it.
        return np.asarray(masses / np.where(inside > 0, inside, 1.0)[self._cells])
