"""A table of costs that visits only rows near a tie, if there are many rows.

:class:`LargeTable` is the base of ``Distances`` in ``points.py``. The search for prices
(``maximise_dual``) asks it for sums at one price after the other, and these differ little. A row
that is cheaper in one cluster than in every other by more than the prices change stays in that
cluster. So one pass over all rows finds the rows *near a tie*, and :class:`NearTies` keeps their
costs, and the counts and the cost of all others. Sums at new prices then only visit the rows near a
tie, and are the same up to rounding. Once ``cover`` says that prices have moved too far, all rows
are visited again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.cost_table import CostTable, GivenCosts, Moves, SoftCounts
from skfair.cluster.assignment.counts import GroupedRows

# Both are multiples of the temperature. A cluster that is _NEAR or more above the cheapest one has
# no share of a row in soft counts (less than 1e-13), as in the kernel ``soft_assign``. Prices may
# differ by _ROOM from the prices of the last pass over all rows before a new pass is needed.
_NEAR, _ROOM = 30.0, 250.0
# Tables of more rows than this use the rows near a tie. Without them, fits of 1 to 2 million rows
# take 1.2 to 1.4 times as long, and fits of 30 to 100 thousand rows as long as with them.
_MANY = 20_000


class NearTies:
    """The rows of a table that are near a tie at some prices, and sums over the others.

    ``price`` (n_cells, n_clusters) and the temperature are those of the pass over all rows.
    """

    def __init__(self, table: CostTable, price: FloatArray, temperature: float) -> None:
        rows, self.price = table.rows, price
        self._reach = (_NEAR + _ROOM) * temperature
        # ``number`` (n_near,) are the rows near a tie, in rising order. ``labels`` (n_samples,),
        # ``_counts`` and ``_paid`` (sum of costs) are for all other rows.
        self.labels, self.number, costs, self._counts, self._paid = table.told_apart(
            price, self._reach
        )
        self._few = GivenCosts(GroupedRows.subset(rows, self.number), costs)

    def cover(self, price: FloatArray, temperature: float) -> bool:
        """Return whether all other rows still have their one cluster at other prices.

        At a temperature of 0 only the cheapest cluster has to be the same.
        """
        change = price - self.price
        widest = float((change.max(axis=1) - change.min(axis=1)).max())
        return widest + _NEAR * temperature <= self._reach

    def soft_counts(self, price: FloatArray, temperature: float) -> SoftCounts:
        """Return the sum of soft minima of cost plus price, the soft counts and their curvature."""
        value, counts, curvature = self._few.soft_counts(price, temperature)
        return *self._with_others(price, value, counts), curvature

    def assigned(self, price: FloatArray) -> tuple[NDArray[np.int32], FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        # The caller may change the labels, so they can be used once. Empty labels show that they
        # are gone.
        labels, self.labels = self.labels, np.zeros(0, np.int32)
        labels[self.number], counts, value = self._few.assigned(price)
        value, counts = self._with_others(price, value, counts)
        return labels, counts, value

    def list_moves(self, labels: IntArray, moves: Moves) -> None:
        """Enter moves of the rows near a tie into lists, under their numbers among all rows."""
        self._few.list_moves(labels[self.number], moves)
        moves.row[moves.is_listed] = self.number[moves.row[moves.is_listed]]

    def _with_others(
        self, price: FloatArray, value: float, counts: FloatArray
    ) -> tuple[float, FloatArray]:
        """Add what the other rows pay, and their counts."""
        value += self._paid + float((self._counts.T * price).sum())
        return value, counts + self._counts


class LargeTable(CostTable):
    """A table that uses the rows near a tie if it has more than ``_MANY`` rows."""

    # From the last search for prices; None before ``soft_counts`` is called, and for few rows
    _near: NearTies | None = None

    def soft_counts(self, price: FloatArray, temperature: float) -> SoftCounts:
        """Return the sum of soft minima of cost plus price, the soft counts and their curvature."""
        if self.rows.cells.size <= max(_MANY, self.step):
            return super().soft_counts(price, temperature)
        if self._near is None or not self._near.cover(price, temperature):
            self._near = NearTies(self, price, temperature)
        return self._near.soft_counts(price, temperature)

    def assigned(self, price: FloatArray) -> tuple[NDArray[np.int32], FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        near = self._near
        if near is None or not near.labels.size or not near.cover(price, 0.0):
            return super().assigned(price)
        return near.assigned(price)

    def near_moves(self, labels: IntArray) -> Moves:
        """List the cheapest moves of rows near a tie, or of all rows before any search."""
        if self._near is None:
            return super().near_moves(labels)
        moves = Moves(self.rows, self.short_length())
        self._near.list_moves(labels, moves)
        return moves
