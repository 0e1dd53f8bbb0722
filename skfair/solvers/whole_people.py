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

from skfair.problems.representation import CostTable, GroupedRows, Rules
from skfair.utils.factorize import IntArray

FloatArray = NDArray[np.float64]

# Seconds that the integer programme may take, and how many counts it may have.
_TIME_LIMIT = 1.0
_MAX_COUNTS = 2000
# By how much a rule may be missed when whole people cannot meet it.
_LESS_THAN_ONE = 0.999


def nearest_feasible_counts(problem: GroupedRows, counts: FloatArray) -> IntArray | None:
    """Return whole counts that meet every rule, with as few points moved as possible, if found.

    Where the rules are far from met and whole people cannot meet them, counts that miss each by
    less than one person will do. Weighted points have no whole counts, and very many counts would
    take too long: None.
    """
    if counts.size > _MAX_COUNTS or np.any(problem.weights != 1):
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
    problem: GroupedRows, distances: CostTable, labels: IntArray, target: IntArray
) -> None:
    """Move points, in place, until each cluster has the wanted number of each cell."""
    D = np.concatenate([block for _, block in distances.blocks()])
    for s in range(problem.n_cells):
        members = np.flatnonzero(problem.cells == s)
        excess = np.bincount(labels[members], minlength=problem.n_clusters) - target[:, s]
        for row, taker in _cheapest_first(D, labels, members, excess):
            if excess[labels[row]] > 0 and excess[taker] < 0:
                excess[labels[row]] -= 1
                excess[taker] += 1
                labels[row] = taker


def _cheapest_first(
    D: NDArray[Any], labels: IntArray, members: IntArray, excess: IntArray
) -> list[tuple[int, int]]:
    """List (row, cluster that lacks some) by cost, as many rows per cluster as have to leave it."""
    takers = np.flatnonzero(excess < 0)
    rows, goals, costs = [], [], []
    for giver in np.flatnonzero(excess > 0):
        own = members[labels[members] == giver]
        cost = D[np.ix_(own, takers)] - D[own, giver][:, None]
        n = min(int(excess[giver]), own.size - 1)
        cheapest = np.argpartition(cost, n, axis=0)[: n + 1]
        rows.append(own[cheapest].ravel())
        goals.append(np.tile(takers, n + 1))
        costs.append(np.take_along_axis(cost, cheapest, axis=0).ravel())
    if not rows:
        return []
    order = np.argsort(np.concatenate(costs), kind="stable")
    row, goal = np.concatenate(rows)[order], np.concatenate(goals)[order]
    return list(zip(row.tolist(), goal.tolist(), strict=True))
