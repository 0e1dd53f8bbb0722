"""Integer programmes that help where moving one row at a time gets stuck.

Close to exact proportion every single move breaks one rule to mend another. The counts alone are a
small integer programme, clusters times cells, whatever the number of rows; once it is solved, rows
move from clusters with too many of a cell to clusters with too few, the cheapest first.

In small clusters whole rows cost noticeably more than the lower bound, and the cheapest of them
take several moves at once. Few rows are undecided, though: at optimal prices all others would pay
more in another cluster than there is to gain. Those few are a small integer programme, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.problems.clustering.counts import GroupedRows, Rules
from skfair.utils.quiet import without_highs_lines

# Seconds that the integer programme may take, and how many counts it may have, or rows of
# different weights times clusters.
_TIME_LIMIT = 1.0
MAX_COUNTS = 2000
# By how much a rule may be missed when whole rows cannot meet it.
_LESS_THAN_ONE = 0.999
# Undecided moves of rows of one weight (twice as many of others), and nodes of the search over
# them, at most: about a second in the worst case.
MAX_MOVES, _MAX_NODES = 200, 10
# Only problems of so few rows times clusters have few undecided moves.
SMALL = 20_000
# What may be gained, as a share of the cost, from which on some of too many moves are tried.
WORTH = 5e-3


def nearest_feasible_counts(problem: GroupedRows, counts: FloatArray) -> IntArray | None:
    """Return whole counts that meet every rule, with as few rows moved as possible, if any.

    Where the rules are far from met and whole rows cannot meet them, counts that miss each by less
    than one row will do. Rows of different weights have no whole counts, and very many counts would
    take too long: None.
    """
    unit = problem.row_weight
    if counts.size > MAX_COUNTS or not unit:
        return None
    rules = problem.rules._replace(slack=problem.rules.slack / unit)
    for allowance in (0.0, _LESS_THAN_ONE):
        nearest = _nearest_counts(rules, np.rint(counts / unit), allowance)
        if nearest is not None or not problem.rules.violation_beyond(
            counts, problem.largest_weight
        ):
            return nearest
    return None


def _nearest_counts(rules: Rules, counts: FloatArray, allowance: float) -> IntArray | None:
    """Solve the integer programme on the counts, rules missed by at most the allowance."""
    n_clusters, n_cells = counts.shape
    size = counts.size
    rules = rules._replace(slack=rules.slack + allowance)
    # Unknowns: the counts, then how far each is from the present one.
    each_rule = sparse.kron(sparse.eye_array(n_clusters), rules.matrix)
    totals = sparse.hstack([sparse.eye_array(n_cells)] * n_clusters)
    eye, blank = sparse.eye_array(size), sparse.csr_array
    constraints = [
        LinearConstraint(
            sparse.hstack([each_rule, blank((each_rule.shape[0], size))]),
            -rules.slack.ravel(),
            np.inf,
        ),
        LinearConstraint(
            sparse.hstack([totals, blank((n_cells, size))]), counts.sum(axis=0), counts.sum(axis=0)
        ),
        LinearConstraint(sparse.hstack([eye, eye]), counts.ravel(), np.inf),
        LinearConstraint(sparse.hstack([eye, -eye]), -np.inf, counts.ravel()),
    ]
    with without_highs_lines():
        solution = milp(
            np.append(np.zeros(size), np.ones(size)),
            integrality=np.append(np.ones(size), np.zeros(size)),
            bounds=Bounds(0, np.inf),
            constraints=constraints,
            options={"time_limit": _TIME_LIMIT, "mip_rel_gap": 0.2},
        )
    if solution.x is None:
        return None
    whole = np.rint(solution.x[:size]).reshape(counts.shape)
    if rules.violation(whole).sum() > 1e-9 or np.any(whole.sum(axis=0) != counts.sum(axis=0)):
        return None
    return whole.astype(np.int64)


def rows_within_rules(
    problem: GroupedRows,
    costs: NDArray[Any],  # (n_samples, n_clusters): what each row pays per unit of weight
) -> IntArray | None:
    """Return cheap labels of few rows of different weights that meet every rule, if any are found.

    Heavy rows fit together in few ways, which single moves do not find.
    """
    n, n_clusters = costs.shape
    above = costs - costs.min(axis=1, keepdims=True)
    pays = (problem.weights[:, None] * above).ravel()
    # Unknowns: whether each row is in each cluster.
    shares = problem.weights / problem.mean_weight
    of_rows = sparse.coo_array(problem.rules.matrix[:, problem.cells] * shares)  # (n_rules, n)
    eye = np.eye(n_clusters)
    each_rule = sparse.vstack([sparse.kron(of_rows, eye[[k]]) for k in range(n_clusters)])
    once = sparse.kron(sparse.eye_array(n), np.ones((1, n_clusters)))
    with without_highs_lines():
        solution = milp(
            pays / (pays.mean() or 1.0),
            integrality=np.ones(pays.size),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(
                    each_rule, -problem.rules.slack.ravel() / problem.mean_weight, np.inf
                ),
                LinearConstraint(once, 1, 1),
            ],
            options={"time_limit": _TIME_LIMIT, "mip_rel_gap": 0.01},
        )
    if solution.x is None:
        return None
    labels = solution.x.reshape(n, n_clusters).argmax(axis=1)
    labels = np.where(problem.weights > 0, labels, costs.argmin(axis=1))
    is_found = problem.violation(problem.counts(labels)) <= problem.rounding
    return labels if is_found else None


def best_combination(
    problem: GroupedRows,  # the rows and the rules
    counts: FloatArray,  # (n_clusters, n_cells): before the moves
    places: IntArray,  # (4, n_moves): row, its cluster, the target and the cell of each move
    # (n_moves,): weight that each move carries, and what it adds to the cost
    weight: FloatArray,
    change: FloatArray,
    # The cost before, and the share of it that need not be gained
    total: float,
    close: float,
) -> BoolArray:
    """Return which moves to make so that the cost falls most and every rule still holds."""
    row, giver, taker, cell = places
    rules, unit = problem.rules, problem.mean_weight
    size, number = change.size, np.arange(change.size)
    n_clusters, n_cells = counts.shape
    # Weight that each move takes from and brings to each count.
    place = np.concatenate([giver, taker]) * n_cells + np.tile(cell, 2)
    flow = sparse.csr_array(
        (np.concatenate([-weight, weight]), (place, np.tile(number, 2))), (counts.size, size)
    )
    effect = sparse.kron(sparse.eye_array(n_clusters), rules.matrix, format="csr") @ flow
    room = np.maximum(counts @ rules.matrix.T + rules.slack, 0.0).ravel()
    is_touched = np.diff(effect.indptr) > 0
    _, first, who = np.unique(row, return_index=True, return_inverse=True)
    once = sparse.csr_array((np.ones(size), (first[who], number)), (size, size))
    # The last unknown is 1 and costs what is paid now: the tolerance is a share of the cost.
    with without_highs_lines():
        solution = milp(
            np.append(change, total) / total,
            integrality=np.append(np.ones(size), 0.0),
            bounds=Bounds(np.append(np.zeros(size), 1.0), 1.0),
            constraints=[
                LinearConstraint(
                    _with_blank(effect[is_touched] / unit), -room[is_touched] / unit, np.inf
                ),
                LinearConstraint(_with_blank(once[np.unique(first)]), -np.inf, 1.0),
            ],
            options={"node_limit": _MAX_NODES, "mip_rel_gap": close},
        )
    none = np.zeros(size, np.bool_)
    if solution.x is None:
        return none
    is_made = np.asarray(solution.x[:size] > 0.5)
    after = counts + np.reshape(flow @ is_made, counts.shape)
    keeps = problem.violation(after) <= problem.rounding
    return is_made if keeps and change[is_made].sum() < 0 else none


def _with_blank(rows: Any) -> Any:
    """Add a column without entries."""
    return sparse.hstack([rows, sparse.csr_array((rows.shape[0], 1))])
