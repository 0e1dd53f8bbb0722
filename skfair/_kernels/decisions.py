"""Decisions at offsets: soft ones for the dual, and where a line search passes each row."""

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
        weight, largest, second, first = weights[i], 0.0, -np.inf, -1
        for c in range(n_others):
            # Selections instead of branches, which the processor cannot foresee.
            lead = leads[i, c]
            is_more = lead > largest
            second = largest if is_more else max(second, lead)
            first = c if is_more else first
            largest = lead if is_more else largest
        # Most rows are far from a tie: what is beyond rounding needs no exponential.
        if second <= largest - _CERTAIN * temperature:
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
    """Return the weight of a row in each constraint."""

    weights: np.ndarray  # (n,)
    values: np.ndarray  # (n, n_classes): utility of each decision
    classes: np.ndarray  # (n,): the true class
    cells: np.ndarray  # (n_constraints, n): its cell in each constraint
    steps: np.ndarray  # (n_constraints, n): change of the mean of that cell if the row is selected
    # (n_constraints,): the decision that selects a row; -1 if that is its true class
    selecting: np.ndarray


@njit(cache=True)
def exchanged(counted, rows, label, others, before, gains, cells, steps, base):
    """Find what changes if rows are decided for a class, or for another one.

    Writes gains (n,), cells and steps (n_constraints, n) for the class in place of ``others``, adds
    to ``base`` (n_constraints, n_cells) the change of means if ``before`` makes way for ``others``.
    Returns the change of utility for that.
    """
    weights, values, classes, of_rows, sizes, selecting = counted
    utility = 0.0
    for j in range(rows.size):
        i, other, now = rows[j], others[j], before[j]
        gains[j] = weights[i] * (values[i, label] - values[i, other])
        utility += weights[i] * (values[i, other] - values[i, now])
        for k in range(selecting.size):
            chosen = selecting[k] if selecting[k] >= 0 else classes[i]
            size, cell = sizes[k, i], of_rows[k, i]
            of_other = size if other == chosen else 0.0
            cells[k, j] = cell
            steps[k, j] = (size if label == chosen else 0.0) - of_other
            base[k, cell] += of_other - (size if now == chosen else 0.0)
    return utility


@njit(cache=True)
def passing_points(margins, rows, direction, label, others, points):
    """Find how far the offset of a class may rise before a row is no longer decided for it.

    Writes for each of ``rows`` the best other class, and the lead over it per unit of offset.
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
