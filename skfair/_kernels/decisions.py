"""Decisions at prices: soft ones for the dual, and where a line search passes each row."""

import math
from typing import NamedTuple

import numpy as np

from skfair._kernels.declaring import njit

# exp(-_CERTAIN) is nothing beside 1.
_CERTAIN = 38.0


@njit(cache=True)
def soften(leads, weights, temperature):
    """Return the weighted sum of soft maxima of 0 and leads, which become weights of decisions.

    The soft maximum is T log sum exp(lead / T) for the temperature T.
    """
    total, n_others = 0.0, leads.shape[1]
    for i in range(leads.shape[0]):
        weight, largest, first = weights[i], 0.0, -1
        for c in range(n_others):
            # Selections instead of branches, which the processor cannot foresee.
            is_more = leads[i, c] > largest
            largest = leads[i, c] if is_more else largest
            first = c if is_more else first
        # Most rows are far from a tie: what is beyond rounding needs no exponential.
        least = largest - _CERTAIN * temperature
        n_near = int(least < 0.0)
        for c in range(n_others):
            n_near += leads[i, c] > least
        if n_near == 1:
            for c in range(n_others):
                leads[i, c] = weight if c == first else 0.0
            total += weight * largest
            continue
        mass = math.exp(-largest / temperature)
        for c in range(n_others):
            leads[i, c] = math.exp((leads[i, c] - largest) / temperature)
            mass += leads[i, c]
        for c in range(n_others):
            leads[i, c] *= weight / mass
        total += weight * (largest + temperature * math.log(mass))
    return total


class Counted(NamedTuple):
    """What a row counts for, in each rule."""

    weights: np.ndarray  # (n,)
    values: np.ndarray  # (n, n_classes): what each decision is worth
    classes: np.ndarray  # (n,): the true class
    cells: np.ndarray  # (n_rules, n): its cell in each rule
    steps: np.ndarray  # (n_rules, n): change of the mean of that cell if the row is selected
    # (n_rules,): the decision that selects a row; -1 if that is its true class
    selecting: np.ndarray


@njit(cache=True)
def exchanged(counted, rows, label, others, before, gains, cells, steps, base):
    """Find what changes if rows are decided for a class, or for another one.

    Writes gains (n,), cells and steps (n_rules, n) for the class in place of ``others``, and adds
    to ``base`` (n_rules, n_cells) the change of means if ``before`` makes way for ``others``.
    Returns the change of worth for that.
    """
    worth = 0.0
    for j in range(rows.size):
        i, other, now = rows[j], others[j], before[j]
        weight = counted.weights[i]
        gains[j] = weight * (counted.values[i, label] - counted.values[i, other])
        worth += weight * (counted.values[i, other] - counted.values[i, now])
        for k in range(counted.cells.shape[0]):
            chosen = counted.selecting[k] if counted.selecting[k] >= 0 else counted.classes[i]
            step, cell = counted.steps[k, i], counted.cells[k, i]
            cells[k, j] = cell
            steps[k, j] = step * (int(label == chosen) - int(other == chosen))
            base[k, cell] += step * (int(other == chosen) - int(now == chosen))
    return worth


@njit(cache=True)
def passing_points(margins, rows, direction, label, others, points):
    """Find how far the price of a class may rise before a row is no longer decided for it.

    Writes for each of ``rows`` the best other class, and the lead over it per unit of price.
    """
    n_classes = margins.shape[1]
    for j in range(rows.size):
        i = rows[j]
        best = 1 if label == 0 else 0
        lead = margins[i, best]
        for c in range(best + 1, n_classes):
            # Selections instead of branches, which the processor cannot foresee.
            is_more = (c != label) & (margins[i, c] > lead)
            best = c if is_more else best
            lead = margins[i, c] if is_more else lead
        others[j] = best
        points[j] = (margins[i, label] - lead) / direction[j]
