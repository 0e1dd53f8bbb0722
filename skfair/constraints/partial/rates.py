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
or hardly in it. Comparisons with a centre come last.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.constraints.partial.base import (
    PARTIAL_RULES,
    BoundPartialRule,
    PartialRows,
    PartialRule,
    Values,
)
from skfair.constraints.partial.row_pairs import RankedRows
from skfair.constraints.partial.surrogates import Part, Surrogate

Form = Literal["ranks", "below", "above", "shares", "masses", "pairs"]

SIDES: tuple[Form, ...] = ("below", "above")
PLUS_MINUS: tuple[Part, ...] = ("plus", "minus")

# What measures a constraint by the number of its classes.
_METRICS = (
    "partial_demographic_parity_gap",
    "partial_equal_opportunity_gap",
    "partial_equalized_odds_gap",
)


class _BoundRates(BoundPartialRule):
    """Shares (or ranks) of every cell at the decision threshold; a cell is a group in a class."""

    def __init__(
        self, rows: PartialRows, surrogate: Surrogate, form: Form, classes: tuple[int, ...]
    ) -> None:
        n_groups = rows.n_groups
        self._form = form
        # A row is a distance from a centre, the disparity a difference of two shares.
        shortest = float(rows.intervals.lengths.min())
        self.penalty_unit = 2.0 if form in ("shares", "masses") else 2 / shortest
        self._has_centers = form not in ("below", "above")
        self._n_groups = n_groups
        self._intervals = rows.intervals
        self._thetas = np.array([rows.threshold])
        if classes:
            place = np.full(2, -1)
            place[list(classes)] = np.arange(len(classes))
            of_class = place[(rows.targets > 0).astype(np.intp)]
            # Rows of a class that does not count are put into a cell of their own, without weight.
            self.n_aux = len(classes)
            cells = np.where(of_class < 0, n_groups * self.n_aux, rows.codes + n_groups * of_class)
            names = [f"{name}, y={'+' if c else '-'}" for c in classes for name in rows.group_names]
        else:
            self.n_aux, cells, names = 1, rows.codes, list(rows.group_names)
        self._n_cells = n_groups * self.n_aux
        shares = rows.shares(cells, self._n_cells + 1)
        self._shares = np.where(cells == self._n_cells, 0.0, shares)
        self._cells = np.ascontiguousarray(cells, dtype=np.int64)
        self._groups = np.tile(np.arange(n_groups), self.n_aux)
        self._center = np.repeat(np.arange(self.n_aux), n_groups)
        self.surrogate = surrogate
        self.row_names = tuple(names)

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of shares, or of ranks."""
        m, intervals, groups = self._n_cells, self._intervals, self._groups
        none = np.full(m, np.inf)
        if self._form in ("shares", "masses"):
            return np.zeros(m), np.full(m, tolerance)
        if self._form == "ranks":
            return np.zeros(m), tolerance * intervals.lengths[groups]
        if self._form == "below":
            return -none, np.array([intervals.highest_rank(tolerance, g).item() for g in groups])
        return np.array([intervals.lowest_rank(1 - tolerance, g).item() for g in groups]), none

    def start(self, scores: FloatArray, tolerance: float) -> FloatArray:
        """Return the lowest value of each class."""
        if not self._has_centers:
            return np.zeros(self.n_aux)
        values = self.evaluate(scores, np.zeros(self.n_aux)).values
        return np.asarray(values.reshape(self.n_aux, self._n_groups).min(axis=1))

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return shares or ranks minus their centre, O(n)."""
        linear = self._form != "shares"
        center = aux[self._center] if self._has_centers else 0.0
        shares = self._shares_at(scores)
        if linear or part == "whole":
            rates = self._rates(scores, shares, part)
            values, along = rates, np.ones(self._n_cells)
            if not linear:
                values, along = self._share(rates)
            tape = (scores, shares, part, (part,), (along,))
            return Values(values - (center if part != "minus" else 0.0), tape)
        plus, minus = (self._rates(scores, shares, sign) for sign in PLUS_MINUS)
        value, of_plus, of_minus = np.zeros((3, self._n_cells))
        for cell, g in enumerate(self._groups):
            for low, high in self._intervals.bounds[g]:
                end = low if part == "plus" else high
                takes_plus = plus[cell] >= end + minus[cell]
                value[cell] += plus[cell] if takes_plus else end + minus[cell]
                of_plus[cell] += takes_plus
                of_minus[cell] += not takes_plus
        lengths = self._intervals.lengths[self._groups]
        value, of_plus, of_minus = value / lengths, of_plus / lengths, of_minus / lengths
        if part == "plus":
            tops = np.array([self._intervals.bounds[g][:, 1].sum() for g in self._groups])
            bottoms = np.array([self._intervals.bounds[g][:, 0].sum() for g in self._groups])
            value = value + (tops - bottoms) / lengths - center
        return Values(value, (scores, shares, part, PLUS_MINUS, (of_plus, of_minus)))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by scores and centres, O(n)."""
        scores, shares, part, parts, factors = at.tape
        total, rows = np.zeros(scores.size), (scores, self._cells, shares)
        for sign, factor in zip(parts, factors, strict=True):
            pull = np.append(multipliers * factor, 0.0)[None, :]
            total += self.surrogate.slopes(*rows, self._thetas, pull, sign)[0]
        of_aux = np.zeros(self.n_aux)
        if self._has_centers and part != "minus":
            of_aux -= np.bincount(self._center, multipliers, self.n_aux)
        return total, of_aux

    def _share(self, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the shares of ranks, and their slopes."""
        share, slope = np.empty(self._n_cells), np.zeros(self._n_cells)
        for cell, g in enumerate(self._groups):
            share[cell] = self._intervals.share(rates[cell], g)
            inside = self._intervals.contains(rates[cell], g)
            slope[cell] = float(inside) / self._intervals.lengths[g]
        return share, slope

    def _shares_at(self, scores: FloatArray) -> FloatArray:
        """Return the weight of each row in the rate of its cell."""
        return self._shares

    def _rates(self, scores: FloatArray, shares: FloatArray, part: Part) -> FloatArray:
        rows = scores, self._cells, shares
        rates = self.surrogate.rates(*rows, self._thetas, self._n_cells + 1, part)
        return rates[0, : self._n_cells]


class _BoundPairs(_BoundRates):
    """Problem (21) as printed: pairs of groups in ranks, with the convex parts of Example D.5."""

    def __init__(self, rows: PartialRows, surrogate: Surrogate, classes: tuple[int, ...]) -> None:
        super().__init__(rows, surrogate, "pairs", classes)
        self.n_aux, self._has_centers = 0, False
        names, n = self.row_names, self._n_groups
        starts = range(0, len(names), n)  # of the cells of each class
        pairs = [(s + i, s + j) for s in starts for i, j in combinations(range(n), 2)]
        self._pairs = np.array(pairs, dtype=np.intp).reshape(len(pairs), 2).T
        self.row_names = tuple(f"{names[i]} - {names[j]}" for i, j in pairs)
        lengths = rows.intervals.lengths
        self._unit = float(lengths.min())
        self._factors = (self._unit / lengths)[self._groups]
        self.penalty_unit = 1 / self._unit

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return the bounds of differences in ranks."""
        high = np.full(self.n_constraints, tolerance * self._unit)
        return -high, high

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return the differences in ranks, or the parts of Example D.5, O(n)."""
        (i, j), shares = self._pairs, self._shares
        if part == "whole":
            covered, along = self._share(self._rates(scores, shares, part))
            covered, along = self._unit * covered, np.diag(self._unit * along)
            tape = (scores, shares, part, (part,), (along[i] - along[j],))
            return Values(covered[i] - covered[j], tape)
        rates = [self._rates(scores, shares, sign) for sign in PLUS_MINUS]
        first, second = (i, j) if part == "plus" else (j, i)
        lows, low_slopes = self._larger(*rates, end=0)
        highs, high_slopes = self._larger(*rates, end=1)
        slopes = tuple(
            np.diag(low)[first] + np.diag(high)[second]
            for low, high in zip(low_slopes, high_slopes, strict=True)
        )
        return Values(lows[first] + highs[second], (scores, shares, part, PLUS_MINUS, slopes))

    def _larger(
        self, plus: FloatArray, minus: FloatArray, *, end: int
    ) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
        """Return F+ + max(F- + a, F+) of all cells, with the slopes by F+ and F-.

        ``a`` is the lower end of the intervals, or the upper one.
        """
        values, by_plus = np.zeros((2, self._n_cells))
        n_parts = np.zeros(self._n_cells)
        for cell, g in enumerate(self._groups):
            ends = self._intervals.bounds[g][:, end]
            values[cell] = np.maximum(minus[cell] + ends, plus[cell]).sum() + ends.size * plus[cell]
            by_plus[cell] = (plus[cell] >= minus[cell] + ends).sum()
            n_parts[cell] = ends.size
        factors = self._factors
        slopes = factors * (n_parts + by_plus), factors * (n_parts - by_plus)
        return factors * values, slopes

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by scores, O(n)."""
        *rest, slopes = at.tape
        of_cells = tuple(multipliers @ of_rows for of_rows in slopes)
        return super().pull(Values(at.values, (*rest, of_cells)), np.ones(self._n_cells))


class _BoundRatesInGroup(_BoundRates):
    """Rates by class of the rows whose rank in the whole group is inside the interval."""

    def __init__(self, rows: PartialRows, surrogate: Surrogate, classes: tuple[int, ...]) -> None:
        super().__init__(rows, surrogate, "masses", classes)
        weights = np.ones(rows.codes.size) if rows.sample_weight is None else rows.sample_weight
        members = [np.flatnonzero(rows.codes == g) for g in range(rows.n_groups)]
        self._members = [(own, weights[own]) for own in members]

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return rates minus their centre, O(n log n)."""
        if part != "whole":
            raise ValueError(
                "A constraint with ranks in the whole group (rank_within='group') is not convex. "
                "Use solver='al_lbfgs' or solver='repair'."
            )
        return super().evaluate(scores, aux, part)

    def _shares_at(self, scores: FloatArray) -> FloatArray:
        masses = np.empty(scores.size)
        for (own, weights), interval in zip(self._members, self._intervals.bounds, strict=True):
            ranked = RankedRows(own, scores, weights)
            low, high, _ = ranked.masses(interval)
            masses[ranked.rows] = high - low
        masses[self._cells == self._n_cells] = 0.0
        inside = np.bincount(self._cells, masses, self._n_cells + 1)
        # A cell without rows inside has no rate: 0 here, and the metric refuses it.
        return np.asarray(masses / np.where(inside > 0, inside, 1.0)[self._cells])


class _BoundOutside(_BoundRates):
    """Nobody inside the interval is decided positively (or everybody): all rates are the same."""

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds of ranks."""
        return super().bounds(0.0)


class RateRule(PartialRule):
    """A constraint on rates of decisions; subclasses say which classes count."""

    is_share = limits_decisions = is_repairable = True

    def __init_subclass__(cls) -> None:
        if "metric" not in cls.__dict__:
            cls.metric = _METRICS[len(cls.classes)]

    def as_printed(self, rows: PartialRows, surrogate: Surrogate) -> BoundPartialRule:
        """Bind the constraint to rows in the form of (21), (50) or (56)."""
        if self.ranks_whole_groups:
            return super().as_printed(rows, surrogate)
        return _BoundPairs(rows, surrogate, self.classes)

    def prepare(self, rows: PartialRows, surrogate: Surrogate) -> list[BoundPartialRule]:
        """Bind it to rows, in all its forms but the printed one; the centres come last."""
        if self.ranks_whole_groups:
            outside = [_BoundOutside(rows, surrogate, form, ()) for form in SIDES]
            return [*outside, _BoundRatesInGroup(rows, surrogate, self.classes)]
        pairs = rows.intervals.bounds
        forms: list[Form] = ["below", "above", "shares"]
        if all(np.array_equal(pair, pairs[0]) for pair in pairs):
            forms.insert(0, "ranks")
        return [_BoundRates(rows, surrogate, form, self.classes) for form in forms]


@PARTIAL_RULES.register("demographic_parity")
class DemographicParity(RateRule):
    """Inside the interval decisions are positive at the same rate, Definition 4.3, (21)."""


@PARTIAL_RULES.register("equal_opportunity")
class EqualOpportunity(RateRule):
    """The same within the positives, who are ranked among themselves, (50)."""

    by_class = True
    classes = (1,)


@PARTIAL_RULES.register("equalized_odds")
class EqualizedOdds(RateRule):
    """The same within each class, which is ranked by itself, (56)."""

    by_class = True
    classes = (0, 1)
