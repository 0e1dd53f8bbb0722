"""Two searches for whole rows that moves of single rows do not find.

``place`` in ``by_prices.py`` calls :func:`nearest_feasible_counts`. Close to exact proportion every
move of a row that repairs one constraint violates another one. The counts alone form a small linear
programme with clusters times cells variables (a cell is the rows of the same groups), for any
number of rows. Once whole counts are found, ``Placement.move_to`` moves rows to match them.

``settle`` and ``search`` of a ``Placement`` call :func:`search_moves`. In small clusters whole rows
cost noticeably more than the lower bound, and cheaper labels take several moves at once. Only few
rows can move, though, because at optimal prices all others would pay more in another cluster than
could be gained. So the choice of moves is a small programme, too.

Both solve linear programmes by branch and bound (:func:`_answers`). Only sums of variables over
rows of a cell have to be whole. The rest is a transport problem, whose cheapest solutions are
whole. A search ends after a number of programmes and not after a time, so that equal problems have
equal solutions on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from heapq import heappop, heappush
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.cluster.assignment.counts import Constraints, GroupedRows
from skfair.utils.rounding import SUM_ROUNDING

# Counts are searched for up to MAX_COUNTS clusters times cells. With twice as many, one programme
# takes a second. Labels of rows of different weights are searched for up to MAX_PLACES rows times
# clusters.
MAX_COUNTS, MAX_PLACES = 500, 2000
# A constraint may be violated by less than this many rows if whole rows cannot satisfy it.
_LESS_THAN_ONE = 0.999
# ``settle`` combines at most this many moves, and twice as many if rows have different weights.
MAX_MOVES = 200
# A search solves at most this many linear programmes, of 1 to 7 ms each. Compared with integer
# programmes, 8 assignments of 80 weighted rows cost at most 0.07% more. With half as many
# programmes they cost 1.3% more, and with 60 that follow one branch to its end 22%. Fits of k-means
# to 60 weighted rows take 0.05 to 0.13 s.
MOST_PROGRAMMES = 200
# The largest number if further rounds follow and any labels within the limits suffice
# (``is_short``). In 170 fits of 30 to 80 rows of very uneven weights, 14 searches found labels
# after at most 13 programmes and one after 37. Fits that find no labels take 0.3 s, and 0.5 s with
# twice as many programmes.
FEW_PROGRAMMES = 25
# A sum that is farther than this from a whole number is a fraction.
_FRACTION = 1e-6
# ``settle`` is for problems of at most this many rows times clusters. In larger problems too many
# rows can move.
SMALL = 20_000
# If more than MAX_MOVES moves are possible, ``settle`` tries some of them only if more than this
# share of the cost can be gained.
WORTH = 5e-3
# ``_among_all`` lists at most _MAX_LISTED counts of a cluster, and compares at most _MAX_CHOICES
# choices of the next cluster. 60 rows in four groups have 15^4 counts. Fits with a balance of 0.95
# then take 0.1 s instead of 1 to 4 s of linear programmes, which find no more. Five groups of 40
# rows are too many already.
_MAX_LISTED, _MAX_CHOICES = 100_000, 1_000_000
# At most _MAX_EXCHANGES exchanges mend rounded counts. Each compares clusters times steps times
# constraints, at most _MAX_VALUES.
_MAX_EXCHANGES, _MAX_VALUES = 200, 1_000_000
# Exchanges that keep the ratio of two groups have up to this many rows of one group.
_LONGEST_STEP = 400


def nearest_feasible_counts(problem: GroupedRows, counts: FloatArray) -> IntArray | None:
    """Return whole counts that meet every constraint, close to the given ones.

    They are numbers of rows, (n_clusters, n_cells). If there are none and the given counts violate
    a constraint by a whole row or more, counts are searched that violate each constraint by less
    than one row, except for bounds on sizes. Returns None if nothing is found, if there are too
    many counts to search, or if rows have different weights, because there are no whole counts
    then.
    """
    unit = problem.row_weight
    if counts.size > MAX_COUNTS or not unit:
        return None
    constraints = problem.constraints._replace(slack=problem.constraints.slack / unit)
    for allowance in (0.0, _LESS_THAN_ONE):
        slack = constraints.slack.copy()
        slack[:, : constraints.n_proportions] += allowance
        loosened = constraints._replace(slack=slack)
        nearest = _NearestCounts(loosened, np.rint(counts / unit)).nearest()
        if nearest is not None or not problem.constraints.violation_beyond(
            counts, problem.largest_weight
        ):
            return nearest
    return None


class _NearestCounts:
    """The search for whole counts within constraints that differ little from the given ones.

    The unknowns are ``numbers`` (n_clusters, n_blocks) of *blocks*. A block is the smallest set of
    rows that can move as a whole, mostly one row of a cell (see ``_blocks``). The counts of the
    cells are ``numbers @ blocks``.
    """

    def __init__(self, constraints: Constraints, counts: FloatArray) -> None:
        self._counts = counts  # (n_clusters, n_cells): the given whole counts
        totals = counts.sum(axis=0)
        self._blocks = _blocks(constraints, totals)  # (n_blocks, n_cells)
        # (n_blocks,): number of blocks of each kind
        self._totals = (totals / np.where(self._blocks > 0, self._blocks, np.inf)).max(axis=1)
        matrix = constraints.matrix @ self._blocks.T
        matrix[np.abs(matrix) < SUM_ROUNDING] = 0.0
        self._constraints = constraints._replace(matrix=matrix)

    def nearest(self) -> IntArray | None:
        """Return near counts, or None if none are found.

        If each cluster has few counts to choose from, all of them are compared. Otherwise the
        solutions of linear programmes are rounded, and clusters exchange rows until the constraints
        hold.
        """
        is_known, numbers = self._among_all()
        if is_known:
            return None if numbers is None else (numbers @ self._blocks).astype(np.int64)
        steps = _steps(self._constraints.matrix, self._totals)
        for numbers in self._relaxed():
            whole = _with_constraints(self._constraints, _rounded(numbers, self._totals), steps)
            if whole is not None:
                return np.asarray((whole @ self._blocks).astype(np.int64))
        return None

    def _among_all(self) -> tuple[bool, FloatArray | None]:
        """Return whether all choices could be compared, and the nearest (None if there is none).

        This is dynamic programming over the clusters. The state after clusters 0 to k - 1 is the
        number of blocks of each kind that they left, a position in the list of all possible
        numbers. ``least[k]`` holds, by position, the fewest rows that these clusters have to
        change. Cluster k takes numbers from what is left. They must satisfy its constraints, and
        what remains must satisfy the sum of the constraints of all later clusters.
        """
        shape = self._totals.astype(np.int64) + 1
        if shape.prod(dtype=float) > _MAX_LISTED:
            return False, None
        listed = np.indices(shape).reshape(shape.size, -1).T.astype(float)
        values, slack = listed @ self._constraints.matrix.T, self._constraints.slack
        far_away = np.full(len(listed), np.inf)
        least = [np.append(far_away[1:], 0.0)]  # at first everything is left: the last position
        choices = []
        for k, present in enumerate(self._counts):
            own = np.flatnonzero((values + slack[k] >= -SUM_ROUNDING).all(axis=1))
            left = np.flatnonzero(least[-1] < np.inf)
            if own.size * left.size > _MAX_CHOICES:
                return False, None
            far = np.abs(listed[own] @ self._blocks - present).sum(axis=1)
            choices.append((own, far))
            can_follow = (values + slack[k + 1 :].sum(axis=0) >= -SUM_ROUNDING).all(axis=1)
            rest = left[:, None] - own
            is_open = (listed[left][:, None] >= listed[own]).all(axis=2) & can_follow[rest]
            total = np.where(is_open, least[-1][left][:, None] + far, np.inf)
            least.append(far_away.copy())
            np.minimum.at(least[-1], rest, total)
        # The choices are read backwards, from the position where nothing is left.
        place, numbers = 0, np.zeros((len(choices), shape.size))
        for k in reversed(range(len(choices) if least[-1][0] < np.inf else 0)):
            own, far = choices[k]
            is_open = (listed[own] + listed[place] < shape).all(axis=1)
            own, far = own[is_open], far[is_open]
            chosen = own[(least[k][place + own] + far).argmin()]
            numbers[k], place = listed[chosen], place + chosen
        return True, numbers if least[-1][0] < np.inf else None

    def _relaxed(self) -> Iterator[FloatArray]:
        """Yield numbers of blocks (n_clusters, n_blocks), of which some may be fractions.

        The programme has these numbers x >= 0 and a distance e >= |x @ blocks - present| for each
        count. It minimises the sum of e subject to the constraints and to the totals of the blocks.
        """
        n_clusters, n_blocks = len(self._counts), len(self._blocks)
        clusters, size, far = sparse.eye_array(n_clusters), n_clusters * n_blocks, self._counts.size
        each_constraint = sparse.kron(clusters, self._constraints.matrix)
        totals = sparse.hstack([sparse.eye_array(n_blocks)] * n_clusters)
        cells, eye = sparse.kron(clusters, self._blocks.T), sparse.eye_array(far)
        left: Any = [
            [-each_constraint, None],
            [totals, None],
            [-totals, None],
            [-cells, -eye],
            [cells, -eye],
        ]
        present = self._counts.ravel()
        answers = _answers(
            np.append(np.zeros(size), np.ones(far)),
            sparse.block_array(left, format="csr"),
            np.concatenate(
                [self._constraints.slack.ravel(), self._totals, -self._totals, -present, present]
            ),
            np.inf,
            sparse.eye_array(size, size + far, format="csr"),
            np.ones(size),
        )
        return (numbers[:size].reshape(n_clusters, n_blocks) for numbers in answers)


class _Solved(NamedTuple):
    """A linear programme that has been solved. Tuples are sorted by their cost."""

    cost: float
    # Number of the programme. It is unique, so comparisons of tuples never reach the arrays
    number: int
    numbers: FloatArray  # the solution
    surplus: FloatArray  # reduced costs: how much the cost rises if a number is raised by 1
    left: Any  # ``left @ numbers <= right``, with the branches that led here
    right: FloatArray
    most: FloatArray  # the upper bound of each number


def _answers(
    cost: FloatArray,
    left: Any,
    right: FloatArray,
    most: float,
    sums: Any,
    importance: FloatArray,
    # Programmes that cost at least this are dropped. The value may fall as the caller finds answers
    enough: Callable[[], float] = lambda: np.inf,
    is_short: bool = False,
) -> Iterator[FloatArray]:
    """Yield solutions of ``min cost @ x`` over 0 <= x <= most with ``left @ x <= right``.

    This is branch and bound: ``sums @ x`` has to be whole. Every programme that is solved yields
    its solution, whole or not, since the caller can round it. Two branches follow, from the sum
    with the largest distance from a whole number times ``importance``: this sum rounded down is its
    upper bound in one branch, and rounded up its lower bound in the other. The cheaper branch is
    followed until it ends, then the cheapest of those that were left.
    """
    numbered, most_programmes = count(), FEW_PROGRAMMES if is_short else MOST_PROGRAMMES

    def solved(left: Any, right: FloatArray, most: FloatArray) -> _Solved | None:
        if (number := next(numbered)) >= most_programmes:
            return None
        ends: Any = np.stack([np.zeros_like(most), most], axis=1)
        # For such a small programme, presolving takes as long as solving.
        answer: Any = linprog(cost, left, right, bounds=ends, options={"presolve": False})
        if answer.status != 0 or answer.fun >= enough():
            return None
        return _Solved(answer.fun, number, answer.x, answer.lower.marginals, left, right, most)

    waiting, branches = list[_Solved](), [solved(left, right, np.full(cost.size, most))]
    while True:
        cheaper = sorted(filter(None, branches))
        yield from (branch.numbers for branch in cheaper)
        for branch in cheaper[1:]:
            heappush(waiting, branch)
        if not cheaper and not waiting:
            return
        at = cheaper[0] if cheaper else heappop(waiting)
        totals = sums @ at.numbers
        distance = np.abs(totals - np.rint(totals))
        distance[distance < _FRACTION] = 0.0
        which, branches = int((distance * importance).argmax()), []
        if distance[which] > 0 and at.cost < enough():
            # If the reduced cost of a number is more than can be gained, the number stays 0.
            most_here = np.where(at.surplus > enough() - at.cost, 0.0, at.most)
            for sign, limit in ((1.0, np.floor(totals[which])), (-1.0, -np.ceil(totals[which]))):
                both = sparse.vstack([at.left, sign * sums[[which]]], format="csr")
                branches.append(solved(both, np.append(at.right, limit), most_here))


def _blocks(constraints: Constraints, totals: FloatArray) -> FloatArray:
    """Return the smallest sets of rows that can move as a whole, (n_blocks, n_cells).

    Mostly a block is one row of a cell. If a constraint on two cells has no room, every cluster
    must hold the two cells in the ratio of their totals. A block then has rows of both, in the
    smallest whole numbers with this ratio.
    """
    room = constraints.matrix @ totals + constraints.slack.sum(axis=0)
    signs = np.sign(constraints.matrix)
    is_pair = (np.abs(signs).sum(axis=1) == 2) & (signs.sum(axis=1) == 0)
    leader = np.arange(totals.size)
    for constraint in constraints.matrix[is_pair & (np.abs(room) < SUM_ROUNDING * totals.sum())]:
        first, second = leader[np.flatnonzero(constraint)]
        leader[leader == second] = first
    blocks = np.zeros((totals.size, totals.size))
    for which in np.unique(leader):
        members = leader == which
        unit = np.gcd.reduce(totals[members].astype(np.int64)) if members.sum() > 1 else 0
        blocks[which, members] = totals[members] / unit if unit else 1.0
    return blocks[blocks.any(axis=1)]


def _rounded(counts: FloatArray, totals: FloatArray) -> FloatArray:
    """Round numbers so that columns keep their totals: the largest fractions are rounded up."""
    whole = np.floor(counts + SUM_ROUNDING)
    missing = np.rint(totals - whole.sum(axis=0))
    rank = np.argsort(np.argsort(whole - counts, axis=0, kind="stable"), axis=0)
    return np.asarray(whole + (rank < missing))


def _steps(constraints: FloatArray, totals: FloatArray) -> FloatArray:
    """Return exchanges between two clusters, (n_steps, n_cells): the rows that one of them gets.

    There are three kinds: one row, one row in return for a row of another cell, and rows of two
    cells that a constraint compares, in numbers close to the required ratio. Near exact proportion
    only the last kind violates no constraint. Every step is listed in both directions.
    """
    n_cells, near = totals.size, [*np.eye(totals.size)]
    near += [row - other for row in np.eye(n_cells) for other in np.eye(n_cells)]
    for constraint in constraints:
        which = np.flatnonzero(constraint)
        if which.size == 2 and constraint[which].prod() < 0:
            for counts in _close_ratios(
                -constraint[which[1]] / constraint[which[0]], totals[which]
            ):
                near.append(np.zeros(n_cells))
                near[-1][which] = counts
    steps = np.unique(np.concatenate([near, np.negative(near)]), axis=0)
    return np.asarray(steps[steps.any(axis=1)])


def _close_ratios(ratio: float, most: FloatArray) -> set[tuple[int, int]]:
    """Return pairs of whole numbers (m, n) up to ``most`` whose fraction is close to a ratio."""
    below, fractions = int(min(most[1], _LONGEST_STEP)), list[Fraction]()
    # The closest fraction for one limit on the denominator is the closest one for all smaller
    # limits, too, down to its own denominator. So the next limit is just below that.
    while below > 0:
        fractions.append(Fraction(ratio).limit_denominator(below))
        below = fractions[-1].denominator - 1
    return {
        fraction.as_integer_ratio() for fraction in fractions if 0 < fraction.numerator <= most[0]
    }


def _with_constraints(
    constraints: Constraints, counts: FloatArray, steps: FloatArray
) -> FloatArray | None:
    """Exchange rows between clusters until the constraints hold; None if no exchange helps.

    Each exchange is the best of all ``steps`` between all pairs of clusters. If there are too many
    steps to compare, only those of one row are used. If these are too many, nothing is exchanged.
    """
    n_clusters = len(counts)
    if n_clusters * len(steps) * len(constraints.matrix) > _MAX_VALUES:
        steps = steps[np.abs(steps).sum(axis=1) == 1]
    if n_clusters * len(steps) * len(constraints.matrix) > _MAX_VALUES:
        return counts if _missed(constraints, counts).sum() == 0 else None
    # For each step the number of the opposite step, which the other cluster makes.
    back = (steps[:, None] == -steps).all(axis=2).argmax(axis=1)
    for _ in range(_MAX_EXCHANGES):
        missed = _missed(constraints, counts)
        if not missed.any():
            return counts
        after = np.stack([counts + step for step in steps])  # (n_steps, n_clusters, n_cells)
        change = np.where((after >= 0).all(axis=2), _missed(constraints, after) - missed, np.inf)
        both = change[:, :, None] + change[back][:, None]
        both[:, np.arange(n_clusters), np.arange(n_clusters)] = np.inf
        step, taker, giver = np.unravel_index(both.argmin(), both.shape)
        if both[step, taker, giver] > -SUM_ROUNDING:
            return None
        counts[taker] += steps[step]
        counts[giver] -= steps[step]
    return None


def _missed(constraints: Constraints, counts: FloatArray) -> FloatArray:
    """Return the sum of the violations in each cluster, without those by rounding."""
    values = counts @ constraints.matrix.T + constraints.slack
    return np.asarray(np.where(values < -SUM_ROUNDING, -values, 0.0).sum(axis=-1))


def search_moves(
    problem: GroupedRows,
    counts: FloatArray,  # (n_clusters, n_cells): before the moves
    places: IntArray,  # (4, n_moves): row, its cluster, the target and the cell of each move
    # (n_moves,): weight that each move carries, and what it adds to the cost
    weight: FloatArray,
    change: FloatArray,
    enough: Callable[[], float],  # moves that add at least this to the cost are dropped
    is_short: bool,  # whether the search ends after FEW_PROGRAMMES
) -> Iterator[BoolArray]:
    """Yield which of the moves to make, (n_moves,), so that the cost is low.

    The programme has a share of 0 to 1 for each move, and at most 1 in total for each row. After
    rounding, the constraints may be violated a little, so the caller repairs them.
    """
    row, giver, taker, cell = places
    constraints, unit = problem.constraints, problem.mean_weight
    size, number = change.size, np.arange(change.size)
    # flow[count, move] is the weight that a move brings to a count, negative if it takes it away.
    place = np.concatenate([giver, taker]) * counts.shape[1] + np.tile(cell, 2)
    carried = np.concatenate([-weight, weight])
    flow = sparse.csr_array((carried, (place, np.tile(number, 2))), (counts.size, size))
    effect = sparse.kron(sparse.eye_array(len(counts)), constraints.matrix, format="csr") @ flow
    room = (counts @ constraints.matrix.T + constraints.slack).ravel()
    room[np.abs(room) <= problem.rounding] = 0.0
    is_touched = np.diff(effect.indptr) > 0
    rows, who = np.unique(row, return_inverse=True)
    once = sparse.csr_array((np.ones(size), (who, number)), (rows.size, size))
    # Rows of a cell and a weight are interchangeable. How many of them join and leave each cluster
    # has to be whole.
    alike = np.stack([np.concatenate([giver, taker]), np.tile(cell, 2), np.abs(carried)])
    kinds, kind = np.unique(alike, axis=1, return_inverse=True)
    sums = sparse.csr_array(
        (np.sign(carried), (kind.ravel(), np.tile(number, 2))), (kinds.shape[1], size)
    )
    scale = np.abs(change).max() or 1.0  # all changes may be 0
    answers = _answers(
        change / scale,
        sparse.vstack([-effect[is_touched] / unit, once], format="csr"),
        np.append(room[is_touched] / unit, np.ones(rows.size)),
        1.0,
        sums,
        kinds[2] / unit,
        lambda: enough() / scale,
        is_short,
    )
    return chain.from_iterable(_whole_moves(shares, who) for shares in answers)


def _whole_moves(shares: FloatArray, who: IntArray) -> Iterator[BoolArray]:
    """Yield two ways to round the shares of moves; ``who`` is the row of each move.

    The first only makes moves with a share of 1. The second, if it is not the same, gives each row
    the move with its largest share, if that is more than the share in which the row stays.
    """
    whole = shares > 1 - 1e-6
    yield whole
    last = np.append(np.diff(who[order := np.lexsort((shares, who))]) > 0, True)
    largest = np.zeros_like(whole)
    largest[order[last]] = True
    largest &= shares > 1 - np.bincount(who, shares)[who]
    if not np.array_equal(largest, whole):
        yield largest
