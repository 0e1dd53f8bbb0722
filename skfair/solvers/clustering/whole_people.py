"""Integer programmes that help where moving one person at a time gets stuck.

Close to exact proportion every single move breaks one rule to mend another. The counts alone are a
small integer programme, clusters times cells, whatever the number of points; once it is solved,
points move from clusters with too many of a cell to clusters with too few, the cheapest first.

In small clusters whole people cost noticeably more than the lower bound, and the cheapest of them
take several moves at once. Few points are undecided, though: at optimal prices all others would pay
more in another cluster than there is to gain. Those few are a small integer programme, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from skfair._typing import FloatArray
from skfair.problems.clustering.cost_table import CostTable, Moves
from skfair.problems.clustering.representation import GroupedRows, Rules
from skfair.utils.factorize import IntArray

# Seconds that the integer programme may take, and how many counts it may have.
_TIME_LIMIT = 1.0
_MAX_COUNTS = 2000
# By how much a rule may be missed when whole people cannot meet it.
_LESS_THAN_ONE = 0.999
# How many entries the lists of cheapest moves may have in all, and how many per list.
_LIST_BUDGET, _LONGEST_LIST = 1 << 20, 256
# Undecided moves, and nodes of the search over them, at most: about a second in the worst case.
_MAX_MOVES, _MAX_NODES = 200, 50
# Only problems of so few rows times clusters have few undecided moves.
_SMALL = 20_000
# What may be gained, as a share of the cost, from which on some of too many moves are tried.
_WORTH = 5e-3
# The search ends when no more than this share of the cost can be gained.
_CLOSE = 5e-5


def nearest_feasible_counts(problem: GroupedRows, counts: FloatArray) -> IntArray | None:
    """Return whole counts that meet every rule, with as few points moved as possible, if found.

    Where the rules are far from met and whole people cannot meet them, counts that miss each by
    less than one person will do. Weighted points have no whole counts, and very many counts would
    take too long: None.
    """
    if counts.size > _MAX_COUNTS or not problem.has_whole_people:
        return None
    found = _nearest_counts(problem, counts, allowance=0.0)
    if found is None and problem.rules.violation_beyond(counts, problem.person) > 0:
        found = _nearest_counts(problem, counts, allowance=_LESS_THAN_ONE)
    return found


def _nearest_counts(problem: GroupedRows, counts: FloatArray, allowance: float) -> IntArray | None:
    """Solve the integer programme on the counts, rules missed by at most the allowance."""
    n_clusters, n_cells = counts.shape
    size = counts.size
    matrix, slack = problem.rules
    slack = slack + allowance
    # Unknowns: the counts, then how far each is from the present one.
    each_rule = sparse.kron(sparse.eye_array(n_clusters), matrix)
    totals = sparse.hstack([sparse.eye_array(n_cells)] * n_clusters)
    eye, blank = sparse.eye_array(size), sparse.csr_array
    constraints = [
        LinearConstraint(
            sparse.hstack([each_rule, blank((each_rule.shape[0], size))]), -slack.ravel(), np.inf
        ),
        LinearConstraint(
            sparse.hstack([totals, blank((n_cells, size))]), counts.sum(axis=0), counts.sum(axis=0)
        ),
        LinearConstraint(sparse.hstack([eye, eye]), counts.ravel(), np.inf),
        LinearConstraint(sparse.hstack([eye, -eye]), -np.inf, counts.ravel()),
    ]
    found = milp(
        np.append(np.zeros(size), np.ones(size)),
        integrality=np.append(np.ones(size), np.zeros(size)),
        bounds=Bounds(0, np.inf),
        constraints=constraints,
        options={"time_limit": _TIME_LIMIT, "mip_rel_gap": 0.2},
    )
    if found.x is None:
        return None
    whole = np.rint(found.x[:size]).reshape(counts.shape)
    if Rules(matrix, slack).violation(whole).sum() > 1e-9 or np.any(
        whole.sum(axis=0) != counts.sum(axis=0)
    ):
        return None
    return whole.astype(np.int64)


def move_to_counts(
    problem: GroupedRows, distances: CostTable, labels: Any, target: IntArray
) -> None:
    """Move points, in place, until each cluster has the wanted number of each cell.

    The cheapest move from a cluster with too many of a cell to one with too few comes first.
    """
    n_lists = problem.n_clusters**2 * problem.n_cells
    while (excess := np.rint(problem.counts(labels)).astype(np.int64) - target).any():
        n_kept = int(np.clip(_LIST_BUDGET // n_lists, 1, min(excess.max(), _LONGEST_LIST)))
        moves = distances.cheapest_moves(labels, n_kept)
        for giver, taker, cell, row in _cheapest_first(moves, excess):
            if moves.labels[row] == giver and excess[giver, cell] > 0 > excess[taker, cell]:
                moves.labels[row] = taker
                excess[giver, cell] -= 1
                excess[taker, cell] += 1
        moves.apply(labels)


def _cheapest_first(moves: Moves, excess: IntArray) -> list[list[int]]:
    """List wanted moves (cluster, target, cell, row) by cost, as far as the lists reach.

    A list that was cut off says nothing of costs beyond its last entry, so that moves of its cell
    that cost more have to wait for new lists.
    """
    is_wanted = (excess > 0)[:, None, :] & (excess < 0)[None, :, :]
    is_cut = is_wanted & (moves.size == moves.row.shape[3])
    last = np.where(is_cut, moves.cost[..., -1], np.inf).min(axis=(0, 1))  # (n_cells,)
    found = np.nonzero(is_wanted[..., None] & moves.is_listed)
    cost = moves.cost[found]
    near = np.flatnonzero(cost <= last[found[2]])
    near = near[np.argsort(cost[near], kind="stable")]
    giver, taker, cell, _ = found
    table = np.stack([giver, taker, cell, moves.row[found]])[:, near]
    wanted: list[list[int]] = table.T.tolist()
    return wanted


def settle_undecided(
    problem: GroupedRows,
    distances: CostTable,
    labels: Any,
    price: FloatArray,
    cost: float,
    lower_bound: float,
) -> None:
    """Lower the cost of a small problem in place, by several moves at once that break no rule.

    A point that would pay more above its cheapest cluster than ``cost - lower_bound`` (means over
    the points, at the prices that the bound is for) is in that cluster in every cheaper assignment.
    If few enough moves are left, the best of their combinations is the cheapest assignment of all;
    if more are left and there is much to gain, those nearest to a tie are tried.
    """
    n_clusters, n_cells = problem.n_clusters, problem.n_cells
    total = cost * problem.total_weight
    gap = total - lower_bound * problem.total_weight
    if problem.n_samples * n_clusters > _SMALL or gap <= _CLOSE * total:
        return
    n_kept = int(np.clip(_LIST_BUDGET // (n_clusters**2 * n_cells), 1, _MAX_MOVES + 1))
    moves = distances.cheapest_moves(labels, n_kept)
    listed = np.nonzero(moves.is_listed)
    giver, taker, cell, _ = listed
    weight = moves.weights[moves.row[listed]]
    change = weight * moves.cost[listed]
    above = change + weight * (price[cell, taker] - price[cell, giver])
    nearest = np.argsort(above, kind="stable")  # whatever the order of the points
    n_open = int(np.searchsorted(above[nearest], gap, side="right"))
    if not n_open or (n_open > _MAX_MOVES and gap <= _WORTH * total):
        return
    chosen = nearest[: min(n_open, _MAX_MOVES)]
    giver, taker, cell = giver[chosen], taker[chosen], cell[chosen]
    row, weight, change = moves.row[listed][chosen], weight[chosen], change[chosen]
    is_made = _best_combination(problem, labels, row, giver, taker, cell, weight, change, total)
    moves.labels[row[is_made]] = taker[is_made]
    moves.apply(labels)


def _best_combination(
    problem: GroupedRows,
    labels: Any,
    row: IntArray,
    giver: IntArray,
    taker: IntArray,
    cell: IntArray,
    weight: FloatArray,
    change: FloatArray,
    total: float,
) -> NDArray[np.bool_]:
    """Return which of the moves to make so that the cost falls most and every rule still holds."""
    size, number = change.size, np.arange(change.size)
    matrix, slack = problem.rules
    counts = problem.counts(labels)
    # Weight that each move takes from and brings to each count.
    place = np.concatenate([giver, taker]) * problem.n_cells + np.tile(cell, 2)
    flow = sparse.csr_array(
        (np.concatenate([-weight, weight]), (place, np.tile(number, 2))), (counts.size, size)
    )
    effect = sparse.kron(sparse.eye_array(problem.n_clusters), matrix, format="csr") @ flow
    room = np.maximum(counts @ matrix.T + slack, 0.0).ravel()
    is_touched = np.diff(effect.indptr) > 0
    _, first, who = np.unique(row, return_index=True, return_inverse=True)
    once = sparse.csr_array((np.ones(size), (first[who], number)), (size, size))
    # The last unknown is 1 and costs what is paid now: the tolerance is a share of the cost.
    found = milp(
        np.append(change, total) / total,
        integrality=np.append(np.ones(size), 0.0),
        bounds=Bounds(np.append(np.zeros(size), 1.0), 1.0),
        constraints=[
            LinearConstraint(_with_blank(effect[is_touched]), -room[is_touched], np.inf),
            LinearConstraint(_with_blank(once[np.unique(first)]), -np.inf, 1.0),
        ],
        options={"node_limit": _MAX_NODES, "mip_rel_gap": _CLOSE},
    )
    none = np.zeros(size, np.bool_)
    if found.x is None:
        return none
    is_made = np.asarray(found.x[:size] > 0.5)
    after = counts + np.reshape(flow @ is_made, counts.shape)
    keeps = problem.rules.violation(after).sum() <= 1e-9
    return is_made if keeps and change[is_made].sum() < 0 else none


def _with_blank(rows: Any) -> Any:
    """Add a column without entries."""
    return sparse.hstack([rows, sparse.csr_array((rows.shape[0], 1))])
