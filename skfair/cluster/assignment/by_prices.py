"""The cheapest assignment to fixed centres under constraints: dual multipliers become prices.

For fixed centres the cheapest assignment under linear constraints on clusters' counts is a linear
programme whose dual has one multiplier per cluster and constraint:

    max over lam >= 0 of  sum_i w_i min_k (D_ik + price[cell_i, k]) - lam . slack,
    price[s, k] = - sum_r lam[k, r] constraints[r, s]

so a row pays its distance plus a price that depends on its cell and the cluster only. The minimum
is smoothed (soft minimum) and the dual maximised by Newton's method. One evaluation is one pass
over the rows, O(n K), which the problem makes wherever its rows are; of many rows in memory, over
those near a tie (``near_ties.py``). The few rows near a tie are then moved so
that whole rows meet the constraints, and the cost is lowered. The value of the dual at the
multipliers is a lower bound on the cost of every feasible assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.cost_table import CostedRows, CostTable, SoftCounts
from skfair.cluster.assignment.counts import GroupedRows
from skfair.cluster.assignment.placement import Placement
from skfair.cluster.assignment.whole_rows import nearest_feasible_counts
from skfair.utils.threads import one_blas_thread

# Temperatures of the soft minimum, in units of the mean distance to the nearest centre.
TEMPERATURES = (3e-2, 3e-3)
# Problems of more rows than this first find their prices on a sample of this many.
LARGE, SAMPLE = 20_000, 10_000
# Steps on the dual, at most, where rounds follow or prices are those of a neighbour. With
# ten in the rounds of k-means, rows of small groups cost .1% more (125 fits).
STEPS = 20
# The temperature where a sample stands for many more rows: some of these are near a tie even then.
_COLD = 3e-4
# A search ends where no constraint is missed by more than this, as a share of all weight and of the
# mean count of a cell in a cluster, in temperatures: of 2,000 counts each is a small share of all.
_SLIGHT, _OF_MEAN = 1 / 30, 6.0
# It also ends after this number of steps in a row that lower the dual by less than this share of
# its value, in temperatures. 108 fits of 600 to 3,000 rows make .74 of the evaluations, at costs
# .002 (+- .006) % higher; with 3 steps .86, at costs .016 (+- .007) % lower, in .1 more time.
_MOST_SLOW, _SLOW = 2, 3e-3
# The reach of the first step. From 1 on, the first steps of 160 counts fail and the search ends.
_REACH = 0.03
# Equations of more multipliers than this are solved by conjugate gradients, up to this number of
# products or share of the slope. Directly, 15 multipliers take .04 ms instead of .6, 200 .8 instead
# of 1.3, and 1,000 take 110 ms instead of 3.
MANY = 200
_MOST_PRODUCTS, _PRECISE = 30, 1e-2
# Multipliers beyond this, in units of that mean distance, rise without end: no labels are within
# the limits, and at a lower temperature rounding would decide.
_ENDLESS = 1_000.0


@one_blas_thread
def assign(
    problem: CostedRows,
    target: NDArray[Any],
    *,
    max_iter: int = 60,
    search_counts: bool = True,
    exact: bool = False,
) -> Placement:
    """Find a cheapest assignment to fixed (scaled) centres, or at given costs, under constraints.

    With ``search_counts`` a search for whole counts helps where single moves get stuck, with
    ``exact`` one on the undecided rows of small problems. If a problem is large, a sample finds
    the prices first.
    """
    multipliers = problem.no_multipliers()
    temperatures: tuple[float, ...] = TEMPERATURES
    if problem.n_samples > LARGE:  # prices of a sample are close
        rows, part = problem.sampled(SAMPLE, np.random.RandomState(0))
        nearby = problem.target_of(rows, target)
        multipliers = maximise_dual(
            part, part.distances(nearby), multipliers, temperatures, max_iter
        )
        temperatures, max_iter = temperatures[-1:], 4
    options: Any = {"search_counts": search_counts, "is_short": False}
    placed = place(problem, target, multipliers, temperatures, max_iter, **options)
    if exact and placed.is_feasible:
        placed.settle()
    return placed


@one_blas_thread
def place(
    problem: CostedRows,
    target: NDArray[Any],
    multipliers: FloatArray,
    temperatures: tuple[float, ...] = TEMPERATURES,
    max_iter: int = 60,
    search_counts: bool = True,
    part: CostedRows | None = None,
    is_short: bool = True,  # whether searches are short, for rounds follow
) -> Placement:
    """Improve given prices and place whole rows at them, within the constraints wherever possible.

    See ``at_best_prices`` for ``part``.
    """
    placed = at_best_prices(problem, target, multipliers, temperatures, max_iter, part)
    placed.repair()
    if search_counts and not placed.is_feasible:
        wanted = nearest_feasible_counts(problem, placed.counts)
        if wanted is not None:
            placed.move_to(wanted)
        elif not problem.row_weight:
            placed.search(is_short)
    if not placed.is_feasible:
        placed.repair_sizes()
    placed.improve()
    return placed


def at_best_prices(
    problem: CostedRows,
    target: NDArray[Any],
    multipliers: FloatArray,
    temperatures: tuple[float, ...],
    max_iter: int,
    part: CostedRows | None = None,
) -> Placement:
    """Improve the prices, and give each row its cheapest cluster at them.

    With a sample of the rows, ``part``, the steps look at that instead of all rows.
    """
    table = problem.distances(target)
    if part is None or not multipliers.size:
        multipliers = maximise_dual(problem, table, multipliers, temperatures, max_iter)
    else:
        multipliers = _corrected(problem, table, part, target, multipliers, max_iter)
    return Placement.at_prices(problem, table, multipliers)


def _corrected(
    problem: CostedRows,
    table: CostTable,
    part: CostedRows,
    target: NDArray[Any],
    multipliers: FloatArray,
    max_iter: int,
) -> FloatArray:
    """Improve the multipliers on a sample whose counts are corrected by those of all rows.

    What a sample counts wrongly hardly depends on the prices, so one pass over all rows is enough.
    """
    few = part.distances(target)
    temperature = _COLD * few.mean_nearest()
    if temperature <= 0:
        return multipliers
    price = problem.constraints.prices(multipliers)
    missed = table.soft_counts(price, temperature)[1] * (part.total_weight / problem.total_weight)
    missed -= few.soft_counts(price, temperature)[1]
    return maximise_dual(part, few, multipliers, (_COLD,), max_iter, missed)


def maximise_dual(
    problem: GroupedRows,
    table: CostTable,
    multipliers: FloatArray,
    temperatures: tuple[float, ...] = TEMPERATURES,
    max_iter: int = 60,
    missed: FloatArray | None = None,
) -> FloatArray:
    """Improve the multipliers on the smoothed dual, one temperature after the other.

    ``missed`` (n_clusters, n_cells) is added to all counts.
    """
    if not multipliers.size:
        return multipliers
    unit = table.mean_nearest()
    if unit <= 0:
        return multipliers
    lam = multipliers / unit
    for temperature in temperatures:
        if lam.max() > _ENDLESS:
            break
        dual = partial(_negative_dual, problem, table, unit, missed, temperature)
        lam = _lowered(dual, lam, problem.constraints.matrix, temperature, max_iter)
    return lam * unit


def _negative_dual(
    problem: GroupedRows,
    table: CostTable,
    unit: float,
    missed: FloatArray | None,
    temperature: float,
    lam: FloatArray,
) -> SoftCounts:
    """Return the negative of the smoothed dual, its slope, and the curvature of its counts.

    Prices are in units of ``unit``, and sums over rows are divided by the total weight.
    """
    constraints, total = problem.constraints, problem.total_weight
    price = constraints.prices(lam * unit)
    value, counts, curvature = table.soft_counts(price, temperature * unit)
    if missed is not None:
        value += float((price.T * missed).sum())
        counts = counts + missed
    slope = (counts @ constraints.matrix.T + constraints.slack) / total
    value = float((lam * constraints.slack).sum()) - value / unit
    return value / total, slope, curvature / (temperature * total)


def _lowered(
    dual: Callable[[FloatArray], SoftCounts],
    lam: FloatArray,
    matrix: FloatArray,
    temperature: float,
    max_iter: int,
) -> FloatArray:
    """Lower a dual by Newton steps in the multipliers that are above 0 or would rise.

    Where the dual is straight, damping limits a step to the length ``reach``; multipliers that end
    below 0 become 0. The reach of the next step depends on how well slope and curvature predicted
    what this one gained.
    """
    (value, slope, curvature), reach, n_slow = dual(lam), _REACH, 0
    slight = temperature * min(_SLIGHT, _OF_MEAN / (lam.shape[0] * matrix.shape[1]))
    for _ in range(max_iter):
        cluster, constraint = free = np.nonzero((lam > 0) | (slope < 0))
        pull, own = slope[free], matrix[constraint]
        steepest = np.abs(pull).max(initial=0.0)
        if steepest <= slight or n_slow == _MOST_SLOW:
            break
        second = _second_derivatives(own, cluster, curvature)
        change = np.maximum(lam[free] + _step(second, pull, steepest / reach), 0.0) - lam[free]
        other = lam.copy()
        other[free] += change
        reached = dual(other)
        gained, predicted = reached[0] - value, change @ (pull + second @ change / 2)
        share = gained / predicted if predicted < 0 else 0.0
        reach = min(reach * (3.0 if share > 0.6 else 0.3 if share < 0.2 else 1.0), 30.0)
        n_slow = n_slow + 1 if -gained < _SLOW * temperature * abs(value) else 0
        if gained < 0:
            lam, (value, slope, curvature) = other, reached
    return lam


def _second_derivatives(own: FloatArray, cluster: IntArray, curvature: FloatArray) -> Any:
    """Return the second derivatives by some multipliers, as an array or by their products.

    ``own`` (n_free, n_cells) are their constraints.
    """
    n_cells, n_clusters, _ = curvature.shape
    if cluster.size <= MANY:
        placed = own[:, :, None] * np.eye(n_clusters)[cluster][:, None]
        curved = own[:, :, None] * curvature.transpose(1, 0, 2)[cluster]
        return curved.reshape(cluster.size, -1) @ placed.reshape(cluster.size, -1).T
    which, cell = np.nonzero(own)
    place = which, cell * n_clusters + cluster[which]
    prices = sparse.csr_array((own[which, cell], place), (cluster.size, n_cells * n_clusters))
    by_price = prices.T  # to transpose takes longer than a product

    def product(change: FloatArray) -> FloatArray:
        moved = (by_price @ change).reshape(n_cells, n_clusters, 1)
        return np.asarray(prices @ (curvature @ moved).ravel())

    return LinearOperator((cluster.size, cluster.size), product, dtype=np.float64)


def _step(second: Any, slope: FloatArray, damping: float) -> FloatArray:
    """Return the step to where the slope would be 0 if the second derivatives were damped."""
    if isinstance(second, np.ndarray):
        return np.asarray(np.linalg.solve(second + damping * np.eye(slope.size), -slope))
    damped = LinearOperator(second.shape, lambda v: second @ v + damping * v, dtype=np.float64)
    return np.asarray(cg(damped, -slope, rtol=_PRECISE, maxiter=_MOST_PRODUCTS)[0])
