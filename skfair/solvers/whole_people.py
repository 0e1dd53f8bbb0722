"""Counts of whole people that meet the rules, when single moves cannot find them.

Close to exact proportion, moving one point at a time gets stuck: every single move breaks one rule
to mend another. The counts alone are a small integer programme, clusters times cells, whatever the
number of points; once it is solved, points move from clusters with too many of a cell to clusters
with too few, the cheapest first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from skfair.problems.cost_table import CostTable, Moves
from skfair.problems.representation import GroupedRows, Rules
from skfair.utils.factorize import IntArray

FloatArray = NDArray[np.float64]

# Seconds that the integer programme may take, and how many counts it may have.
_TIME_LIMIT = 1.0
_MAX_COUNTS = 2000
# By how much a rule may be missed when whole people cannot meet it.
_LESS_THAN_ONE = 0.999
# How many entries the lists of cheapest moves may have in all, and how many per list.
_LIST_BUDGET, _LONGEST_LIST = 1 << 20, 256


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
