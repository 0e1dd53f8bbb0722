"""Labels with their counts and costs, and the ways to improve them.

A :class:`Placement` starts from the cheapest clusters at some prices (``at_prices``), where whole
rows violate the constraints by little. ``place`` and ``assign`` in ``by_prices.py`` then call, in
this order,

- ``repair``, which moves single rows, the cheapest per unit of repair first,
- ``move_to`` if single moves get stuck, with whole counts that satisfy the constraints, or
  ``search`` if rows have different weights,
- ``repair_sizes`` if constraints are still violated, for the bounds on sizes alone,
- ``improve``, which lowers the cost by single moves and swaps that violate no constraint,
- ``settle``, for small problems, which lowers it by several moves at once.

All of them change ``labels``, ``counts`` and ``violation`` in place. A *move* takes a row from one
cluster, the giver, to another one, the taker. A *cell* is the rows of the same groups.
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

# Both are in units of mean weight times mean cost. A move has to lower the cost by more than
# _LEAST_GAIN, and a round of moves by more than _WORTH_A_ROUND per row to be followed by another.
_LEAST_GAIN, _WORTH_A_ROUND = 1e-12, 1e-9
# How often the lists of moves are renewed before a repair, or an improvement, is given up.
_MAX_REPAIRS, _MAX_IMPROVEMENTS = 60, 3
# How many entries a list of moves to wanted counts may have.
_LONGEST_LIST = 256
# Searches for cheaper labels end if no more than this share of the cost can be gained.
_CLOSE = 5e-5


class Placement:
    """Labels of rows with their counts, violation and cost."""

    def __init__(
        self,
        problem: GroupedRows,  # the rows and the constraints
        table: CostTable,  # what the rows pay in each cluster
        labels: NDArray[Any],  # cluster of each row; changed in place
        # (n_clusters, n_cells): counts of the labels; if None, they are counted
        counts: FloatArray | None = None,
        # (n_clusters, n_constraints): dual variables for which ``lower_bound`` was computed; if
        # None, all are 0
        multipliers: FloatArray | None = None,
        # No labels within the constraints have a lower mean cost
        lower_bound: float = 0.0,
    ) -> None:
        self.problem, self.table, self.labels = problem, table, labels
        self.multipliers = problem.no_multipliers() if multipliers is None else multipliers
        self.counts = problem.counts(labels) if counts is None else counts
        self.lower_bound = lower_bound
        # Sum of the violations over clusters and constraints, in weight
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
        """The mean cost of the rows in their clusters."""
        return self.table.cost(self.labels)

    @property
    def is_feasible(self) -> bool:
        return self.violation <= self.problem.rounding

    def repair(self) -> None:
        """Move rows until the constraints hold, or single moves do not help.

        Short lists of moves near a tie are tried first, then lists of the moves of all rows.
        """
        for listed in (self.table.near_moves, self.table.cheapest_moves):
            for _ in range(_MAX_REPAIRS):
                if self.is_feasible:
                    return
                n_steps, _ = self._moved(listed)
                self.violation = self.problem.violation(self.counts)
                if not n_steps:
                    break

    def repair_sizes(self) -> None:
        """Move rows until the bounds on sizes hold, even if this violates other constraints."""
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
        """Move rows until each cluster has ``target[k, cell]`` of them, the cheapest moves first.

        All rows must have the same weight. Rows move from clusters with too many rows of a cell to
        clusters with too few. Lists of moves may be too short for all of them, so they are renewed
        until nothing is left to move.
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
        """Look for labels within the constraints, for few rows of different weights.

        It returns at once if no constraint is violated by a whole row, because labels that satisfy
        all constraints exactly hardly ever exist then. ``is_short`` limits the search to few linear
        programmes.
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

        The ``gap`` between cost and lower bound is the most that can be gained. At the prices of
        the bound, a move that costs more than the gap is part of no cheaper labels. So only moves
        that cost less are combined. If there are at most ``most`` of them, the best combination is
        the cheapest of all. If there are more, the moves nearest to a tie are tried, unless little
        can be gained.
        """
        problem = self.problem
        gap = (self.cost - self.lower_bound) * problem.total_weight
        total = (self.cost - self.table.surplus) * problem.total_weight
        if problem.n_samples * problem.n_clusters > SMALL or gap <= _CLOSE * total:
            return
        # Few combinations of heavy rows satisfy the constraints, so the search needs more moves.
        most = MAX_MOVES * (1 if problem.row_weight else 2)
        moves = self.table.cheapest_moves(self.labels, self.table.list_length(most + 1))
        listed = np.nonzero(moves.is_listed)
        giver, taker, cell, _ = listed
        row = moves.row[listed]
        weight = problem.weights[row]
        change = weight * moves.cost[listed]
        price = problem.constraints.prices(self.multipliers)
        above = change + weight * (price[cell, taker] - price[cell, giver])
        nearest = np.argsort(above, kind="stable")
        n_open = int(np.searchsorted(above[nearest], gap, side="right"))
        if not n_open or (n_open > most and gap <= WORTH * total):
            return
        chosen = nearest[: min(n_open, most)]
        self._take_moves(np.stack([row, giver, taker, cell])[:, chosen], change[chosen], False)

    def _take_moves(self, places: IntArray, change: FloatArray, is_short: bool) -> None:
        """Make the combination of moves with the lowest cost that satisfies the constraints.

        ``places`` (4, n_moves) are the row, giver, taker and cell of each move, and ``change`` is
        what it adds to the cost. If the current labels violate the constraints, the first
        combination that satisfies them is made.
        """
        problem, row, taker = self.problem, places[0], places[2]
        cost, takes_any = self.cost, not self.is_feasible
        best = None if takes_any else self

        def enough() -> float:
            """Return the cost that moves may add at most if they are to beat the best labels."""
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
                if takes_any:
                    break
        if best is not None:
            self.labels[:] = best.labels
            self.counts = problem.counts(self.labels)
            self.violation = problem.violation(self.counts)

    def _moved(
        self, listed: Callable[[Any], Moves], least_gain: float | None = None
    ) -> tuple[int, float]:
        """Run the kernel once on lists of moves; return its steps and what they add to the cost.

        If ``least_gain`` is None, the moves repair constraints. Otherwise they lower the cost, each
        by more than it. ``listed(labels)`` makes the lists. Labels and counts change in place, the
        violation is left to the caller.
        """
        from skfair.cluster.assignment._kernels.moves import move_points

        problem, moves = self.problem, listed(self.labels)
        values = self.counts @ problem.constraints.matrix.T + problem.constraints.slack
        shape = moves.size.shape
        scratch = (  # see ``move_points``
            np.zeros(shape, np.int64),  # first
            np.zeros((2, *shape)),  # heads
            np.full(shape[:2], np.inf),  # least
            np.zeros(shape[:2], np.int64),  # place
            np.ones(shape[0], np.bool_),  # is_changed
            np.full((2, 2, *shape[1:]), np.nan),  # learnt: NaN for nothing
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
    """Return moves (giver, taker, cell, row) that reduce the excess, in order of cost.

    ``excess`` (n_clusters, n_cells) is the number of rows that a cluster has too many, and negative
    if it has too few. For each giver, taker and cell, ``moves`` lists only the cheapest rows. If
    such a list is full, moves that it does not show may be cheaper than moves in other lists. So
    moves of the same cell that cost more than its last entry are left out here, until new lists are
    made.
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
