"""Whole rows where moving one at a time gets stuck: branches of small linear programmes.

Close to exact proportion every single move breaks one rule to mend another. The counts alone are a
small programme, clusters times cells, whatever the number of rows; once whole counts are found,
rows move from clusters with too many of a cell to clusters with too few, the cheapest first.

In small clusters whole rows cost noticeably more than the lower bound, and the cheapest of them
take several moves at once. Few rows are undecided, though: at optimal prices all others would pay
more in another cluster than there is to gain. The moves of those few are a small programme, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.problems.clustering.branching import Relaxed, Search
from skfair.problems.clustering.counts import GroupedRows, Rules
from skfair.utils.rounding import SUM_ROUNDING

# How many counts a programme may have: of twice as many one takes a second. And how many rows of
# different weights times clusters.
MAX_COUNTS, MAX_PLACES = 500, 2000
# By how much a rule may be missed when whole rows cannot meet it.
_LESS_THAN_ONE = 0.999
# Undecided moves of rows of one weight (twice as many of others), at most.
MAX_MOVES = 200
# Linear programmes at most, for counts and for moves, 1 to 7 ms each. Against integer programmes
# without a limit, 198 batches of 60 to 200 rows cost 0.01% more in the mean and at most 0.7%; with
# half as many for moves at most 2.4%, with twice as many the mean is the same.
_MAX_PROGRAMMES, _MAX_FOR_MOVES = 100, 200
# Fewer of them for more than 2000 rules in all clusters, each of which takes longer.
_RULES_TIMES_PROGRAMMES = 200_000
# Only problems of so few rows times clusters have few undecided moves.
SMALL = 20_000
# What may be gained, as a share of the cost, from which on some of too many moves are tried.
WORTH = 5e-3
# Share of the number of moved rows that need not be gained.
_NEARLY_NEAREST = 0.2
# How many exchanges of counts mend a rounded answer, of how many values of rules each.
_MAX_EXCHANGES, _MAX_VALUES = 200, 1_000_000
# Steps that keep the ratio of two groups are looked for up to so many rows of one of them.
_LONGEST_STEP = 400


def nearest_feasible_counts(problem: GroupedRows, counts: FloatArray) -> IntArray | None:
    """Return whole counts that meet every rule, with few rows moved, if any are found.

    Where the rules are far from met and whole rows cannot meet them, counts that miss each by less
    than one row will do. Rows of different weights have no whole counts, and very many counts would
    take too long: None.
    """
    unit = problem.row_weight
    if counts.size > MAX_COUNTS or not unit:
        return None
    rules = problem.rules._replace(slack=problem.rules.slack / unit)
    for allowance in (0.0, _LESS_THAN_ONE):
        loosened = rules._replace(slack=rules.slack + allowance)
        nearest = _NearestCounts(loosened, np.rint(counts / unit)).nearest()
        if nearest is not None or not problem.rules.violation_beyond(
            counts, problem.largest_weight
        ):
            return nearest
    return None


class _NearestCounts:
    """The search for whole counts within rules, few rows away from the present ones."""

    def __init__(self, rules: Rules, counts: FloatArray) -> None:
        self._counts = counts
        totals = counts.sum(axis=0)
        self._blocks = _blocks(rules, totals)  # (n_blocks, n_cells): what moves as a whole
        self._totals = (totals / np.where(self._blocks > 0, self._blocks, np.inf)).max(axis=1)
        matrix = rules.matrix @ self._blocks.T
        matrix[np.abs(matrix) < SUM_ROUNDING] = 0.0
        self._rules = rules._replace(matrix=matrix)
        self._steps = _steps(matrix, self._totals)
        self._best: FloatArray | None = None
        self._distance = np.inf

    def nearest(self) -> IntArray | None:
        """Return the nearest counts that were found, if any."""
        most = 1 + _RULES_TIMES_PROGRAMMES // (1 + self._rules.slack.size)
        search = Search(self._attempt, np.inf, _NEARLY_NEAREST, min(most, _MAX_PROGRAMMES))
        search.run(self._programme())
        return None if self._best is None else self._best.astype(np.int64)

    def _programme(self) -> Relaxed:
        """Return the programme on numbers of blocks, then how far counts are from the present."""
        n_clusters, n_blocks = len(self._counts), len(self._blocks)
        clusters, size, far = sparse.eye_array(n_clusters), n_clusters * n_blocks, self._counts.size
        each_rule = sparse.kron(clusters, self._rules.matrix)
        totals = sparse.hstack([sparse.eye_array(n_blocks)] * n_clusters)
        cells, eye = sparse.kron(clusters, self._blocks.T), sparse.eye_array(far)
        left: Any = [
            [-each_rule, None],
            [totals, None],
            [-totals, None],
            [-cells, -eye],
            [cells, -eye],
        ]
        present = self._counts.ravel()
        return Relaxed(
            np.append(np.zeros(size), np.ones(far)),
            sparse.block_array(left, format="csr"),
            np.concatenate(
                [self._rules.slack.ravel(), self._totals, -self._totals, -present, present]
            ),
            np.full(size + far, np.inf),
            sparse.eye_array(size, size + far, format="csr"),
            np.ones(size),
        )

    def _attempt(self, unknowns: FloatArray) -> float:
        """Round numbers and exchange blocks until the rules hold; return the least distance."""
        shape = len(self._counts), len(self._blocks)
        numbers = unknowns[: shape[0] * shape[1]].reshape(shape)
        whole = _with_rules(self._rules, _rounded(numbers, self._totals), self._steps)
        if whole is not None:
            counts = whole @ self._blocks
            distance = float(np.abs(counts - self._counts).sum())
            if distance < self._distance:
                self._best, self._distance = counts, distance
        return self._distance


def _blocks(rules: Rules, totals: FloatArray) -> FloatArray:
    """Return the least counts in which cells are whole; one of them each, if the rules leave room.

    Two cells whose ratio is that of the totals in every cluster, for a rule leaves no room for any
    other, move in blocks of this ratio.
    """
    room = rules.matrix @ totals + rules.slack.sum(axis=0)
    is_pair = (rules.matrix != 0).sum(axis=1) == 2
    leader = np.arange(totals.size)
    for rule in rules.matrix[is_pair & (np.abs(room) < SUM_ROUNDING * totals.sum())]:
        first, second = leader[np.flatnonzero(rule)]
        leader[leader == second] = first
    blocks = np.zeros((totals.size, totals.size))
    for which in np.unique(leader):
        members = leader == which
        unit = np.gcd.reduce(totals[members].astype(np.int64)) if members.sum() > 1 else 0
        blocks[which, members] = totals[members] / unit if unit else 1.0
    return blocks[blocks.any(axis=1)]


def _rounded(counts: FloatArray, totals: FloatArray) -> FloatArray:
    """Round counts so that each cell keeps its total: the largest fractions are rounded up."""
    whole = np.floor(counts + SUM_ROUNDING)
    missing = np.rint(totals - whole.sum(axis=0))
    rank = np.argsort(np.argsort(whole - counts, axis=0, kind="stable"), axis=0)
    return np.asarray(whole + (rank < missing))


def _steps(rules: FloatArray, totals: FloatArray) -> FloatArray:
    """Return what a cluster may get of each cell in exchange with another one, a line for each.

    A row; a row for one of another cell; and of two cells that a rule compares as many rows as come
    closest to the ratio that it asks for: near exact proportion, only such steps break no rule.
    """
    n_cells, near = totals.size, [*np.eye(totals.size)]
    near += [row - other for row in np.eye(n_cells) for other in np.eye(n_cells)]
    for rule in rules:
        which = np.flatnonzero(rule)
        if which.size == 2 and rule[which].prod() < 0:
            for counts in _close_ratios(-rule[which[1]] / rule[which[0]], totals[which]):
                near.append(np.zeros(n_cells))
                near[-1][which] = counts
    steps = np.unique(np.concatenate([near, np.negative(near)]), axis=0)
    return np.asarray(steps[steps.any(axis=1)])


def _close_ratios(ratio: float, most: FloatArray) -> set[tuple[int, int]]:
    """Return the fractions of small numbers that are closest to a ratio."""
    longest = int(min(most[1], _LONGEST_STEP))
    fractions = {Fraction(ratio).limit_denominator(below) for below in range(1, longest + 1)}
    return {
        fraction.as_integer_ratio() for fraction in fractions if 0 < fraction.numerator <= most[0]
    }


def _with_rules(rules: Rules, counts: FloatArray, steps: FloatArray) -> FloatArray | None:
    """Exchange rows between clusters until the rules hold, or no exchange helps: None."""
    n_clusters = len(counts)
    if n_clusters * len(steps) * len(rules.matrix) > _MAX_VALUES:
        steps = steps[np.abs(steps).sum(axis=1) == 1]
    if n_clusters * len(steps) * len(rules.matrix) > _MAX_VALUES:
        return counts if _missed(rules, counts).sum() == 0 else None
    back = (steps[:, None] == -steps).all(axis=2).argmax(axis=1)
    for _ in range(_MAX_EXCHANGES):
        missed = _missed(rules, counts)
        if not missed.any():
            return counts
        after = np.stack([counts + step for step in steps])  # (n_steps, n_clusters, n_cells)
        change = np.where((after >= 0).all(axis=2), _missed(rules, after) - missed, np.inf)
        both = change[:, :, None] + change[back][:, None]
        both[:, np.arange(n_clusters), np.arange(n_clusters)] = np.inf
        step, taker, giver = np.unravel_index(both.argmin(), both.shape)
        if both[step, taker, giver] > -SUM_ROUNDING:
            return None
        counts[taker] += steps[step]
        counts[giver] -= steps[step]
    return None


def _missed(rules: Rules, counts: FloatArray) -> FloatArray:
    """Return what each cluster falls short of its rules; rounding is no miss."""
    values = counts @ rules.matrix.T + rules.slack
    return np.asarray(np.where(values < -SUM_ROUNDING, -values, 0.0).sum(axis=-1))


def search_moves(
    problem: GroupedRows,  # the rows and the rules
    counts: FloatArray,  # (n_clusters, n_cells): before the moves
    places: IntArray,  # (4, n_moves): row, its cluster, the target and the cell of each move
    # (n_moves,): weight that each move carries, and what it adds to the cost
    weight: FloatArray,
    change: FloatArray,
    # The cost before the moves, that of the best labels so far, and what need not be gained of it
    total: float,
    least: float,
    gap: float,
    # Makes labels with these moves, mends them, and returns the least cost so far
    attempt: Callable[[BoolArray], float],
) -> None:
    """Show combinations of moves to ``attempt`` that cost less and nearly meet the rules."""
    total = total or 1.0  # where rows cost nothing anywhere
    row, giver, taker, cell = places
    rules, unit = problem.rules, problem.mean_weight
    size, number = change.size, np.arange(change.size)
    n_clusters, n_cells = counts.shape
    # Weight that each move takes from and brings to each count.
    ends, each = np.concatenate([giver, taker]), np.tile(number, 2)
    sign = np.repeat([-1.0, 1.0], size)
    place = ends * n_cells + np.tile(cell, 2)
    flow = sparse.csr_array((sign * np.tile(weight, 2), (place, each)), (counts.size, size))
    effect = sparse.kron(sparse.eye_array(n_clusters), rules.matrix, format="csr") @ flow
    room = (counts @ rules.matrix.T + rules.slack).ravel()
    room[np.abs(room) <= problem.rounding] = 0.0
    is_touched = np.diff(effect.indptr) > 0
    rows, who = np.unique(row, return_inverse=True)
    once = sparse.csr_array((np.ones(size), (who, number)), (rows.size, size))
    # Rows of a cell and a weight are alike: their number in each cluster has to be whole.
    ends_of_kinds = np.stack([ends, np.tile(cell, 2), np.tile(weight, 2)])
    kinds, kind = np.unique(ends_of_kinds, axis=1, return_inverse=True)
    sums = sparse.csr_array((sign, (kind.ravel(), each)), (kinds.shape[1], size))
    programme = Relaxed(
        change / total,
        sparse.vstack([-effect[is_touched] / unit, once], format="csr"),
        np.append(room[is_touched] / unit, np.ones(rows.size)),
        np.ones(size),
        sums,
        kinds[2] / unit,
        offset=1.0,
    )

    def attempt_both(shares: FloatArray) -> float:
        return min(attempt(made) / total for made in _whole_moves(shares, who))

    Search(attempt_both, least / total, gap, _MAX_FOR_MOVES).run(programme)


def _whole_moves(shares: FloatArray, who: IntArray) -> Iterator[BoolArray]:
    """Yield moves that are made as a whole, and the largest part of each row if others are, too."""
    whole = shares > 1 - 1e-6
    yield whole
    last = np.append(np.diff(who[order := np.lexsort((shares, who))]) > 0, True)
    largest = np.zeros_like(whole)
    largest[order[last]] = True
    largest &= shares > 1 - np.bincount(who, shares)[who]
    if not np.array_equal(largest, whole):
        yield largest
