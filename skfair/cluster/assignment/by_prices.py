"""The cheapest assignment of rows to fixed centres under constraints, found by prices.

The rows of one *cell* belong to the same groups, so constraints do not tell them apart
(``counts.py``). Every cluster k has to satisfy ``matrix @ counts[k] >= -slack[k]``, with
``counts[k]`` the weight of its rows by cell. For fixed costs D_ik of row i in cluster k this is a
linear programme, whose dual has one multiplier lam[k, r] for each cluster and constraint r:

    max over lam >= 0 of  sum_i w_i min_k (D_ik + price[cell_i, k]) - lam . slack,
    price[s, k] = - sum_r lam[k, r] matrix[r, s]

So a row pays its distance plus a price that depends on its cell and the cluster only. Multipliers
(one per cluster and constraint) and prices (one per cell and cluster) are thus two forms of the
same thing, and ``Constraints.prices`` turns the former into the latter. The minimum
over k is smoothed: at a temperature T > 0 it is ``-T log sum_k exp(-(D_ik + price) / T)``. One
evaluation of the dual is one pass over the rows, O(n K), which the table of costs makes (only over
rows near a tie, if there are many: ``near_ties.py``). The dual without smoothing is a lower bound
on the cost of every feasible assignment.

Each function adds a step to the one before:

- :func:`maximise_dual` finds multipliers, from given ones. ``dual_newton.py`` has its steps.
- :func:`at_best_prices` then gives each row its cheapest cluster. The first rounds of k-means need
  no more.
- :func:`place` then moves the few rows near a tie until whole rows meet the constraints, and lowers
  the cost. Later rounds call it with the prices of the round before, as streams do.
- :func:`assign` starts with all prices 0. If there are many rows, it finds prices on a sample
  first.
  :class:`FairAssignment`, batches of k-means and the rounding of spectral clustering call it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.cluster.assignment.cost_table import CostedRows, CostTable, SoftCounts
from skfair.cluster.assignment.counts import GroupedRows
from skfair.cluster.assignment.dual_newton import lowered
from skfair.cluster.assignment.placement import Placement
from skfair.cluster.assignment.whole_rows import nearest_feasible_counts
from skfair.utils.threads import one_blas_thread

# Temperatures are in units of the mean distance to the nearest centre. A search without good prices
# to start from uses both in turn. With good prices, callers pass a single temperature.
TEMPERATURES = (3e-2, 3e-3)
# Problems of more rows than LARGE first find their prices on a sample of SAMPLE rows.
LARGE, SAMPLE = 20_000, 10_000
# Steps over all rows of a large problem, from the prices of its sample, which are close.
_STEPS_AFTER_SAMPLE = 4
# The temperature of steps on a sample of many more rows (``part``). It may be low, because among
# that many rows some are near a tie even at a low temperature.
_COLD = 3e-4
# If no labels satisfy the limits, multipliers rise without end. The search ends once one is above
# this, in units of the mean distance to the nearest centre, because at a lower temperature
# rounding errors would determine the result.
_ENDLESS = 1_000.0


@one_blas_thread
def assign(
    problem: CostedRows,
    target: NDArray[Any],  # what ``problem.distances`` takes: scaled centres, or costs
    *,
    max_iter: int = 60,  # steps at each temperature, at most
    search_counts: bool = True,  # see ``place``
    exact: bool = False,  # whether ``Placement.settle`` follows, for small problems
) -> Placement:
    """Find a cheapest assignment to fixed centres, or at given costs, under the constraints.

    For a large problem, the multipliers are found on a sample, with all temperatures and at most
    ``max_iter`` steps at each. All rows then get only a few steps at the last temperature.
    """
    multipliers = problem.no_multipliers()
    temperatures: tuple[float, ...] = TEMPERATURES
    n_steps = max_iter
    if problem.n_samples > LARGE:
        rows, part = problem.sampled(SAMPLE, np.random.RandomState(0))
        nearby = problem.target_of(rows, target)
        multipliers = maximise_dual(
            part, part.distances(nearby), multipliers, temperatures, max_iter
        )
        temperatures, n_steps = TEMPERATURES[-1:], _STEPS_AFTER_SAMPLE
    options: Any = {"search_counts": search_counts, "is_short": False}
    placed = place(problem, target, multipliers, temperatures, n_steps, **options)
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
    # Whether to search for whole counts (for labels if weights differ) if moves of single rows
    # do not satisfy the constraints
    search_counts: bool = True,
    part: CostedRows | None = None,
    # Whether that search for labels may be short, because further rounds follow
    is_short: bool = True,
) -> Placement:
    """Improve given prices and place whole rows at them, within the constraints if possible.

    ``temperatures``, ``max_iter`` and ``part`` are those of ``at_best_prices``.
    """
    placed = at_best_prices(problem, target, multipliers, temperatures, max_iter, part)
    placed.repair()
    if search_counts and not placed.is_feasible:
        wanted = nearest_feasible_counts(problem, placed.counts)
        if wanted is not None:
            placed.move_to(wanted)
        elif not problem.row_weight:  # rows of different weights have no whole counts
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

    With ``part``, a sample of the rows, the steps use only the sample. Their temperature is
    ``_COLD``, and ``temperatures`` is ignored.
    """
    table = problem.distances(target)
    if part is None or not multipliers.size:
        multipliers = maximise_dual(problem, table, multipliers, temperatures, max_iter)
    else:
        multipliers = _improved_on_sample(problem, table, part, target, multipliers, max_iter)
    return Placement.at_prices(problem, table, multipliers)


def _improved_on_sample(
    problem: CostedRows,
    table: CostTable,
    part: CostedRows,
    target: NDArray[Any],
    multipliers: FloatArray,
    max_iter: int,
) -> FloatArray:
    """Improve the multipliers on a sample whose counts are corrected by those of all rows.

    The error of the counts of a sample hardly depends on the prices. So it is measured once, at the
    given prices, by one pass over all rows, and added to the counts of the sample at every step.
    """
    few = part.distances(target)
    temperature = _COLD * few.mean_nearest()
    if temperature <= 0:  # all rows of the sample lie on centres
        return multipliers
    price = problem.constraints.prices(multipliers)
    share = part.total_weight / problem.total_weight
    correction = table.soft_counts(price, temperature)[1] * share
    correction -= few.soft_counts(price, temperature)[1]
    return maximise_dual(part, few, multipliers, (_COLD,), max_iter, correction)


def maximise_dual(
    problem: GroupedRows,
    table: CostTable,
    multipliers: FloatArray,
    temperatures: tuple[float, ...] = TEMPERATURES,
    max_iter: int = 60,  # steps at each temperature, at most
    # (n_clusters, n_cells): added to the counts at any price, if the table holds a sample
    correction: FloatArray | None = None,
) -> FloatArray:
    """Improve the multipliers on the smoothed dual, one temperature after the other.

    They are returned unchanged if there are no constraints, or if every row costs 0 in its cheapest
    cluster, because the mean of these costs is the unit of prices.
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
        dual = partial(_negative_dual, problem, table, unit, correction, temperature)
        lam = lowered(dual, lam, problem.constraints.matrix, temperature, max_iter)
    return lam * unit


def _negative_dual(
    problem: GroupedRows,
    table: CostTable,
    unit: float,
    correction: FloatArray | None,
    temperature: float,
    lam: FloatArray,
) -> SoftCounts:
    """Return minus the smoothed dual, its slope by lam, and the curvature of its counts.

    ``lam`` and ``temperature`` are in units of ``unit``, the mean cost of the cheapest clusters.
    The value is in this unit, too, and sums over rows are divided by the total weight.
    """
    constraints, total = problem.constraints, problem.total_weight
    price = constraints.prices(lam * unit)
    value, counts, curvature = table.soft_counts(price, temperature * unit)
    if correction is not None:
        value += float((price.T * correction).sum())
        counts = counts + correction
    slope = (counts @ constraints.matrix.T + constraints.slack) / total
    value = float((lam * constraints.slack).sum()) - value / unit
    return value / total, slope, curvature / (temperature * total)
