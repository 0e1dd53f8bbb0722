"""The rows whose cheapest cluster is in doubt, and sums over all other rows.

Prices differ little from one step of the search to the next. A row that is cheaper in one cluster
than in every other by more than prices can change stays there, and pays what it paid plus the
change of one price. So one pass over all rows finds those near a tie. Sums at other prices then
take the costs of these few, and are the same numbers up to rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.cost_table import CostTable, GivenCosts, Moves, SoftCounts
from skfair.cluster.assignment.counts import GroupedRows

# How far above the cheapest cluster another still has a share of a row, and how far prices may move
# from those that rows were told apart by, in temperatures.
_NEAR, _ROOM = 30.0, 250.0
# Tables of more rows than this tell them apart. Fits of 1 to 2 million rows take 1.2 to 1.4 times
# as long without, those of 30 to 100 thousand as long.
_MANY = 20_000


class NearTies:
    """The rows of a table that are near a tie at some prices, and sums over the others."""

    def __init__(self, table: CostTable, price: FloatArray, temperature: float) -> None:
        rows, self.price = table.rows, price
        self._reach = (_NEAR + _ROOM) * temperature
        # ``number`` (n_near,): which rows these are, rising
        self.labels, self.number, costs, self._counts, self._paid = table.told_apart(
            price, self._reach
        )
        self._few = GivenCosts(GroupedRows.subset(rows, self.number), costs)

    def cover(self, price: FloatArray, temperature: float) -> bool:
        """Return whether all other rows are still far from a tie at other prices."""
        change = price - self.price
        widest = float((change.max(axis=1) - change.min(axis=1)).max())
        return widest + _NEAR * temperature <= self._reach

    def soft_counts(self, price: FloatArray, temperature: float) -> SoftCounts:
        """Return the sum of soft minima of cost plus price, the soft counts and their curvature."""
        value, counts, curvature = self._few.soft_counts(price, temperature)
        return *self._with_others(price, value, counts), curvature

    def assigned(self, price: FloatArray) -> tuple[NDArray[np.int32], FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        labels, self.labels = self.labels, np.zeros(0, np.int32)  # whoever asked may change them
        labels[self.number], counts, value = self._few.assigned(price)
        value, counts = self._with_others(price, value, counts)
        return labels, counts, value

    def list_moves(self, labels: IntArray, moves: Moves) -> None:
        self._few.list_moves(labels[self.number], moves)
        moves.row[moves.is_listed] = self.number[moves.row[moves.is_listed]]

    def _with_others(
        self, price: FloatArray, value: float, counts: FloatArray
    ) -> tuple[float, FloatArray]:
        """Add what the other rows pay, and their counts."""
        value += self._paid + float((self._counts.T * price).sum())
        return value, counts + self._counts


class LargeTable(CostTable):
    """A table that tells its rows apart if there are many of them."""

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
        """List the cheapest moves of rows near a tie, or of all if they are not told apart."""
        if self._near is None:
            return super().near_moves(labels)
        moves = Moves(self.rows, self.short_length())
        self._near.list_moves(labels, moves)
        return moves
