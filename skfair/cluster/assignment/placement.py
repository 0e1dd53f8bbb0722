"""Labels with their counts and costs, and the ways to improve them.

A placement starts from the cheapest clusters at some prices. Whole rows then have to meet the
constraints: ``repair`` moves those near a tie, one by one, and ``move_to`` helps where single
moves get stuck, or ``search`` for rows of different weights. ``improve`` and ``settle`` lower the
cost by moves that break no constraint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.cluster.assignment.cost_table import CostTable, Moves
from skfair.cluster.assignment.counts import GroupedRows
from skfair.cluster.assignment.whole_rows import (
    MAX_MOVES,
    MAX_PLACES,
    SMALL,
    WORTH,
    search_moves,
)

# What a row has to gain to move, and the mean row for another round, in units of weight and cost.
_LEAST_GAIN, _WORTH_A_ROUND = 1e-12, 1e-9
# How often the lists of moves are renewed before a repair, or an improvement, is given up.
_MAX_REPAIRS, _MAX_IMPROVEMENTS = 60, 3
# How many entries a list of moves to wanted counts may have.
_LONGEST_LIST = 256
# Nothing is searched when no more than this share of the cost can be gained.
_CLOSE = 5e-5


class Placement:
    """Labels of rows with their counts, violation and cost."""

    def __init__(
        self,
        problem: GroupedRows,  # the rows and the constraints
        table: CostTable,  # what the rows pay in each cluster
        labels: NDArray[Any],  # cluster of each row; changed in place
        counts: FloatArray | None = None,  # (n_clusters, n_cells): their counts, if they are known
        # (n_clusters, n_constraints): dual variables whose prices the lower bound is for; None
        # for 0
        multipliers: FloatArray | None = None,
        lower_bound: float = 0.0,  # mean cost of the cheapest labels, or less
    ) -> None:
        self.problem, self.table, self.labels = problem, table, labels
        self.multipliers = problem.no_multipliers() if multipliers is None else multipliers
        self.counts = problem.counts(labels) if counts is None else counts
        self.lower_bound = lower_bound
        # What the constraints are missed by, summed over clusters
        self.violation = problem.violation(self.counts)

    @classmethod
    def at_prices(
        cls, problem: GroupedRows, table: CostTable, multipliers: FloatArray
    ) -> Placement:
        """Give each row its cheapest cluster; the value of the dual is the lower bound."""
        labels, counts, value = table.assigned(problem.constraints.prices(multipliers))
        value -= float((multipliers * problem.constraints.slack).sum())
        return cls(problem, table, labels, counts, multipliers, value / problem.total_weight)

    @property
    def cost(self) -> float:
        """The mean of what the rows pay in their clusters."""
        return self.table.cost(self.labels)

    @property
    def is_feasible(self) -> bool:
        return self.violation <= self.problem.rounding

    def repair(self) -> None:
        """Move rows until the constraints hold, or single moves do not help."""
        for listed in (self.table.near_moves, self.table.cheapest_moves):
            for _ in range(_MAX_REPAIRS):
                if self.is_feasible:
                    return
                n_steps, _ = self._moved(listed)
                self.violation = self.problem.violation(self.counts)
                if not n_steps:
                    break

    def repair_sizes(self) -> None:
        """Move rows until the bounds on sizes hold, whatever that does to other constraints."""
        Placement(self.problem.with_sizes_only(), self.table, self.labels, self.counts).repair()
        self.violation = self.problem.violation(self.counts)

    def improve(self) -> None:
        """Lower the cost, by moves that break no constraint and by swaps within a cell."""
        unit = self.problem.mean_weight * self.table.unit
        for _ in range(_MAX_IMPROVEMENTS):
            _, change = self._moved(self.table.near_moves, _LEAST_GAIN * unit)
            if change >= -_WORTH_A_ROUND * unit * self.problem.n_samples:
                break

    def move_to(self, target: IntArray) -> None:
        """Move rows of one weight until each cluster has the wanted number of each cell.

        The cheapest move from a cluster with too many of a cell to one with too few comes first.
        """
        counts, unit, labels = self.counts, self.problem.row_weight, self.labels
        while (excess := np.rint(counts / unit).astype(np.int64) - target).any():
            longest = min(excess.max(), _LONGEST_LIST)
            moves = self.table.cheapest_moves(labels, self.table.list_length(longest))
            for giver, taker, cell, row in _cheapest_first(moves, excess):
                if labels[row] == giver and excess[giver, cell] > 0 > excess[taker, cell]:
                    labels[row] = taker
                    excess[giver, cell] -= 1
                    excess[taker, cell] += 1
            counts = self.problem.counts(labels)
        self.counts = counts
        self.violation = self.problem.violation(counts)

    def search(self, is_short: bool) -> None:
        """Look for any labels of few rows of different weights that meet the constraints.

        Constraints that are missed by less than a row are hardly ever met by any.
        """
        problem = self.problem
        n_unknowns = problem.n_samples * problem.n_clusters
        is_missed = problem.constraints.violation_beyond(self.counts, problem.largest_weight) > 0
        if not (is_missed and n_unknowns <= MAX_PLACES):
            return
        costs = self.table.costs(slice(0, problem.n_samples))
        is_other = self.labels[:, None] != np.arange(problem.n_clusters)
        row, taker = np.nonzero(is_other & (problem.weights[:, None] > 0))
        giver = np.asarray(self.labels[row], np.int64)
        change = problem.weights[row] * (costs[row, taker] - costs[row, giver])
        places = np.stack([row, giver, taker, problem.cells[row]])
        self._take_moves(places, change, is_short)

    def settle(self) -> None:
        """Lower the cost of a small problem, by several moves at once that break no constraint.

        A row that would pay more above its cheapest cluster than the cost exceeds the lower bound
        (at the prices that the bound is for) is in that cluster in all cheaper labels. If few
        enough moves are left, the best of their combinations is the cheapest of all; if more are
        left and there is much to gain, those nearest to a tie are tried.
        """
        problem = self.problem
        gap = (self.cost - self.lower_bound) * problem.total_weight
        total = (self.cost - self.table.surplus) * problem.total_weight
        if problem.n_samples * problem.n_clusters > SMALL or gap <= _CLOSE * total:
            return
        # Heavy rows fit together in few ways, which take more moves to find.
        most = MAX_MOVES * (1 if problem.row_weight else 2)
        moves = self.table.cheapest_moves(self.labels, self.table.list_length(most + 1))
        listed = np.nonzero(moves.is_listed)
        giver, taker, cell, _ = listed
        row = moves.row[listed]
        weight = problem.weights[row]
        change = weight * moves.cost[listed]
        price = problem.constraints.prices(self.multipliers)
        above = change + weight * (price[cell, taker] - price[cell, giver])
        nearest = np.argsort(above, kind="stable")  # whatever the order of the rows
        n_open = int(np.searchsorted(above[nearest], gap, side="right"))
        if not n_open or (n_open > most and gap <= WORTH * total):
            return
        chosen = nearest[: min(n_open, most)]
        self._take_moves(np.stack([row, giver, taker, cell])[:, chosen], change[chosen], False)

    def _take_moves(self, places: IntArray, change: FloatArray, is_short: bool) -> None:
        """Take the cheapest labels within the constraints that combinations of moves lead to."""
        problem, row, taker = self.problem, places[0], places[2]
        best, cost, is_any = self if self.is_feasible else None, self.cost, not self.is_feasible

        def enough() -> float:
            if best is None:
                return np.inf
            return (best.cost * (1 - _CLOSE) - cost) * problem.total_weight

        counts, weight = problem.counts(self.labels), problem.weights[row]
        for made in search_moves(problem, counts, places, weight, change, enough, is_short):
            labels = self.labels.copy()
            labels[row[made]] = taker[made]
            other = Placement(problem, self.table, labels)
            other.repair()
            if other.is_feasible:
                other.improve()
                if best is None or other.cost < best.cost:
                    best = other
                if is_any:
                    break
        if best is not None:
            self.labels[:] = best.labels
            self.counts = problem.counts(self.labels)
            self.violation = problem.violation(self.counts)

    def _moved(
        self, listed: Callable[[Any], Moves], least_gain: float | None = None
    ) -> tuple[int, float]:
        """Repair by listed moves, or improve with a least gain; return the steps and their cost."""
        from skfair.cluster.assignment._kernels.moves import move_points

        problem, moves = self.problem, listed(self.labels)
        values = self.counts @ problem.constraints.matrix.T + problem.constraints.slack
        shape = moves.size.shape
        scratch = (
            np.zeros(shape, np.int64),
            np.zeros((2, *shape)),
            np.full(shape[:2], np.inf),
            np.zeros(shape[:2], np.int64),
            np.ones(shape[0], np.bool_),
            np.full((2, 2, *shape[1:]), np.nan),
        )
        answer = move_points(
            least_gain is None,
            problem.constraint_entries,
            values,
            self.labels,
            problem.weights,
            self.counts,
            (moves.row, moves.cost, moves.size),
            scratch,
            problem.n_samples,
            problem.rounding,
            np.inf if least_gain is None else -least_gain,
        )
        return int(answer[0]), float(answer[1])


def _cheapest_first(moves: Moves, excess: IntArray) -> list[list[int]]:
    """List wanted moves (cluster, target, cell, row) by cost, as far as the lists reach.

    A list that was cut off says nothing of costs beyond its last entry, so that moves of its cell
    that cost more have to wait for new lists.
    """
    is_wanted: BoolArray = (excess > 0)[:, None, :] & (excess < 0)[None, :, :]
    is_cut = is_wanted & (moves.size == moves.row.shape[3])
    last = np.where(is_cut, moves.cost[..., -1], np.inf).min(axis=(0, 1))  # (n_cells,)
    listed = np.nonzero(is_wanted[..., None] & moves.is_listed)
    cost = moves.cost[listed]
    near = np.flatnonzero(cost <= last[listed[2]])
    near = near[np.argsort(cost[near], kind="stable")]
    giver, taker, cell, _ = listed
    table = np.stack([giver, taker, cell, moves.row[listed]])[:, near]
    wanted: list[list[int]] = table.T.tolist()
    return wanted
