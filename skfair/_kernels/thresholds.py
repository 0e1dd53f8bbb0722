"""Scan every threshold on sorted scores for the most accurate one that keeps all rules.

As the threshold falls, one row after another is predicted positive. Each flip changes the rates of
the groups that own the row's cell; where a threshold may lie, the rules are checked.
"""

import numpy as np
from numba import njit

# Sums of shares that differ by less are the same number, added up in another order.
ROUNDING = 1e-12


@njit(cache=True)
def _largest_disparity(rates, first, comparison):
    """Return the disparity of one rule: spread within blocks, distance from 0, or largest rate."""
    worst = 0.0
    if comparison == 0:  # pairwise: blocks start at ``first``
        for b in range(first.size - 1):
            low, high = rates[first[b]], rates[first[b]]
            for r in range(first[b] + 1, first[b + 1]):
                low, high = min(low, rates[r]), max(high, rates[r])
            worst = max(worst, high - low)
    else:
        for r in range(rates.size):
            worst = max(worst, abs(rates[r]))
    return worst


@njit(cache=True)
def scan_thresholds(
    order,
    can_cut,
    gains,
    cells,
    steps,
    indptr,
    owners,
    shares,
    starts,
    first,
    first_starts,
    comparisons,
    bounds,
    rates,
    accuracy,
    out,
):
    """Find the best threshold; ``order`` lists rows by falling score.

    ``can_cut[p - 1]``: whether a threshold may lie below the p-th row of the order. ``gains``:
    change of accuracy when a row turns positive. Rule k has ``cells[k]``, ``steps[k]`` (change of
    its cell mean), owners of cell c in ``owners[indptr[k, c] : indptr[k, c + 1]]`` with ``shares``,
    rates ``rates[starts[k] : starts[k + 1]]`` (changed here), and blocks from
    ``first[first_starts[k] : first_starts[k + 1]]``. Writes to ``out``: rows predicted positive
    (-1 if no threshold keeps the rules), accuracy and largest excess over the bounds there; then
    rows and excess of the threshold of least excess. Of thresholds whose accuracy or excess differs
    by rounding only, the highest is taken.
    """
    n, n_rules = order.size, starts.size - 1
    out[0], out[1], out[2], out[3], out[4] = -1.0, -1.0, np.inf, -1.0, np.inf
    for p in range(n + 1):
        if p > 0:
            i = order[p - 1]
            accuracy += gains[i]
            for k in range(n_rules):
                step = steps[k, i]
                if step != 0.0:
                    c = cells[k, i]
                    for a in range(indptr[k, c], indptr[k, c + 1]):
                        rates[starts[k] + owners[a]] += step * shares[a]
        if 0 < p < n and not can_cut[p - 1]:
            continue
        if accuracy <= out[1] + ROUNDING and out[4] <= 0.0:
            continue  # cannot improve on what was found
        excess = -np.inf
        for k in range(n_rules):
            disparity = _largest_disparity(
                rates[starts[k] : starts[k + 1]],
                first[first_starts[k] : first_starts[k + 1]],
                comparisons[k],
            )
            excess = max(excess, disparity - bounds[k])
        if excess < out[4] - ROUNDING:
            out[3], out[4] = p, excess
        if excess <= 0.0 and accuracy > out[1] + ROUNDING:
            out[0], out[1], out[2] = p, accuracy, excess
