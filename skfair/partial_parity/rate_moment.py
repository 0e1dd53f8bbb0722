r"""Rates of decisions inside the interval: problems (21), (50) and (56) of partial_fairness_idca.

This is the moment of constraints on decisions, such as "demographic_parity". By Lemma 5.2 the rate
of positive decisions among the rows of group k inside its interval is the share of the interval
that lies below the rank F_k of the decision threshold (0). The paper compares all pairs of groups.
Here every group is compared with one centre l, an auxiliary parameter. kappa is the tolerance:

.. math:: 0 \le \mathrm{share}_k(F_k) - l \le \kappa, \qquad
   F_k = \frac{1}{n_k} \sum_i \sigma(z^k_i)

with the scores z of the n_k rows of a *cell*. A cell is all rows of a group, its positives, or each
of its classes. Each class has a centre of its own. sigma is a smooth step.

While F_k is outside the interval, the share does not change with F_k, so descent cannot leave this
flat part. The other forms have no flat parts, and each is sufficient for the limit. A fit tries
them one after the other:

==========  ======================================================================================
form        constraint of each cell
==========  ======================================================================================
"ranks"     0 <= F_k - l <= kappa times the length of the interval; only if it is one for all groups
"below"     F_k is below the interval, or covers at most the share kappa of it
"above"     F_k is above the interval, or leaves at most the share kappa of it
"shares"    the formula above; it comes last
"masses"    in place of "shares" with ranks in the whole group, see below
"pairs"     as printed in the paper, see below; the only form if that is asked for
==========  ======================================================================================

*Ranks in the whole group* (Definitions A.2 and A.3, form "masses"). Here ranks are taken among all
rows of the group, of either class. A row has the mass m_i of its rank inside the interval, and the
rate of class c is

.. math:: c_k = \sum_{i \in k, y_i = c} m_i \, \sigma(z^k_i) \Big/
   \sum_{i \in k, y_i = c} m_i

The masses depend on the ranking, but slopes take them as constant. If rows of two classes change
places at an end of the interval, the value jumps. The forms "below" and "above" then have no
tolerance: nobody or everybody inside the interval gets a positive decision.

*As printed* (form "pairs"). Differences between all pairs of groups are at most :math:`\kappa (b -
a)` for an interval [a, b]. So they are in ranks, and so is the tolerance of a solver. If intervals
differ between groups, the length of the shortest one is used.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal, Self

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.partial_parity.ranked_moment import IntervalRows, RankedMoment, Values
from skfair.partial_parity.surrogates import Surrogate

Form = Literal["ranks", "below", "above", "shares", "masses", "pairs"]


class RateMoment(RankedMoment):
    """Shares (or ranks) of every cell at the decision threshold, in one of the forms above.

    A cell is a group, or a class within a group. Cells are numbered class by class.
    """

    metrics = (
        "partial_demographic_parity_gap",
        "partial_equal_opportunity_gap",
        "partial_equalized_odds_gap",
    )
    is_share = limits_decisions = True

    def __init__(
        self,
        rows: IntervalRows,
        surrogate: Surrogate,
        classes: tuple[int, ...] = (),
        form: Form = "shares",
        leeway: float = 1.0,  # factor on tolerances: 1, or 0 for no tolerance
    ) -> None:
        super().__init__(rows, surrogate)
        n_groups, n_parts = self.n_groups, max(1, len(classes))
        n_cells, shortest = n_groups * n_parts, float(self.intervals.lengths.min())
        self.form, self._leeway, self.n_cells = form, leeway, n_cells
        self.groups = np.tile(np.arange(n_groups), n_parts)  # the group of each cell
        suffixes, cells = [""], self.codes
        if classes:
            suffixes = [f", y={'+' if c else '-'}" for c in classes]
            # place[c] is the number of class c among ``classes``, or n_parts if it is not there.
            place = np.full(2, n_parts)
            place[list(classes)] = np.arange(n_parts)
            part = place[rows.classes]
            # Rows of other classes are put into an additional cell, whose rate is not used.
            cells = np.where(part == n_parts, n_cells, self.codes + n_groups * part)
        self.cells = np.ascontiguousarray(cells, dtype=np.int64)
        shares = self.shares(self.cells, n_cells + 1)
        self.row_shares = np.where(self.cells == n_cells, 0.0, shares)
        names = [name + suffix for suffix in suffixes for name in self.group_names]
        # The cell of each constraint row; for "pairs" also the cells that are subtracted.
        self.terms: tuple[IntArray, ...] = (np.arange(n_cells),)
        self.n_aux = n_parts if form in ("shares", "masses", "ranks") else 0
        self.unit = 1.0  # factor from shares of an interval to values; not 1 if these are ranks
        if form == "pairs":
            self.unit = shortest
            starts = range(0, n_cells, n_groups)
            pairs = [(s + i, s + j) for s in starts for i, j in combinations(range(n_groups), 2)]
            self.terms = tuple(np.array(pairs, dtype=np.intp).reshape(len(pairs), 2).T)
            names = [f"{names[i]} - {names[j]}" for i, j in pairs]
        self.row_names = tuple(names)

    @classmethod
    def forms(
        cls,
        rows: IntervalRows,
        surrogate: Surrogate,
        classes: tuple[int, ...] = (),
        ranks_whole_groups: bool = False,
        printed: bool = False,
    ) -> list[Self]:
        """Bind it to rows in all forms that fit, or if ``printed`` as in (21), (50) or (56)."""
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
        """Return bounds of the values of the form, (n_constraints,) each."""
        intervals, groups, tolerance = self.intervals, self.groups, tolerance * self._leeway
        none = np.full(self.n_cells, np.inf)
        if self.form == "below":
            return -none, np.array([intervals.highest_rank(tolerance, g).item() for g in groups])
        if self.form == "above":
            return np.array([intervals.lowest_rank(1 - tolerance, g).item() for g in groups]), none
        high = np.full(self.n_constraints, tolerance * self.unit)
        if self.form == "ranks":
            high = tolerance * intervals.lengths[groups]
        return -high if self.form == "pairs" else np.zeros(high.size), high

    def start(self, scores: FloatArray, tolerance: float) -> FloatArray:
        """Return the first centres, which are the lowest value of each class."""
        values = self.evaluate(scores, np.zeros(self.n_aux)).values
        by_class = values[: self.n_aux * self.n_groups].reshape(self.n_aux, self.n_groups)
        return np.asarray(by_class.min(axis=1))

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        """Return the values of the form, O(n); O(n log n) for "masses", which sorts the rows."""
        shares = self._shares_at(scores)
        rows = scores, self.cells, shares, np.zeros(1)
        value, slope = self._of_cells(self.surrogate.rates(*rows, self.n_cells + 1)[0, :-1])
        values = value[self.terms[0]]
        if self.form == "pairs":
            values = values - value[self.terms[1]]
        return Values(self.centred(values, aux), (scores, shares, slope))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by scores and centres, O(n)."""
        scores, shares, slope = at.tape
        rows = scores, self.cells, shares, np.zeros(1)
        pull = np.zeros((1, self.n_cells + 1))
        for cells, sign in zip(self.terms, (1, -1), strict=False):
            pull[0, :-1] += sign * slope * np.bincount(cells, multipliers, self.n_cells)
        return self.surrogate.slopes(*rows, pull)[0], self.slopes_of_centres(multipliers)

    def centred(self, values: FloatArray, aux: FloatArray) -> FloatArray:
        """Return values minus the centres of their classes, if there are any."""
        return values - np.repeat(aux, self.n_groups) if self.n_aux else values

    def slopes_of_centres(self, multipliers: FloatArray) -> FloatArray:
        """Return the slopes of the sum of multipliers times values by the centres."""
        of_centres = np.zeros(self.n_aux)
        if self.n_aux:
            of_centres -= multipliers.reshape(self.n_aux, self.n_groups).sum(axis=1)
        return of_centres

    def _of_cells(self, rates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the share of the interval below the rank F of each cell, and its slope by F.

        Forms that limit ranks or masses get ``rates`` unchanged, with a slope of 1.
        """
        if self.form not in ("shares", "pairs"):
            return rates, np.ones(self.n_cells)
        cells, lengths = list(zip(rates, self.groups, strict=True)), self.intervals.lengths
        inside = np.array([float(self.intervals.contains(rate, g)) for rate, g in cells])
        value = self.unit * np.array([self.intervals.share(rate, g) for rate, g in cells])
        return value, self.unit * inside / lengths[self.groups]

    def _shares_at(self, scores: FloatArray) -> FloatArray:
        """Return the weight of each row in the rate of its cell.

        It depends on the scores only in the form "masses".
        """
        if self.form != "masses":
            return self.row_shares
        masses = np.empty(scores.size)
        for ranked, interval in zip(self.ranked_groups(scores), self.intervals.bounds, strict=True):
            low, high, _ = ranked.masses(interval)
            masses[ranked.rows] = high - low
        masses[self.cells == self.n_cells] = 0.0
        inside = np.bincount(self.cells, masses, self.n_cells + 1)
        # A cell without rows inside has no rate. It is 0 here, and the metric raises an error.
        return np.asarray(masses / np.where(inside > 0, inside, 1.0)[self.cells])
