"""Slow twins of the constraints and losses of pairs of rows: every pair by itself."""

import numpy as np

from tests import naive
from tests.naive.partial import step  # noqa: F401


def pair_mean(scores_a, masses_a, scores_b, masses_b, function):
    return sum(
        m * k * function(s - t)
        for s, m in zip(scores_a, masses_a, strict=True)
        for t, k in zip(scores_b, masses_b, strict=True)
    )


def group_auc(scores, codes, weights, intervals, function):
    """Left side of (49) minus 1/2 for every pair k < l; ``intervals`` maps a group to a list."""
    groups = sorted(set(codes))
    masses = {
        g: naive.overlap_masses(scores[codes == g], weights[codes == g], intervals[g])
        for g in groups
    }
    return [
        pair_mean(scores[codes == a], masses[a], scores[codes == b], masses[b], function) - 0.5
        for i, a in enumerate(groups)
        for b in groups[i + 1 :]
    ]


def quadratic_mean(scores, weights, above, below):
    """Weighted mean of (103) over pairs of two sets of rows, given as masks."""
    total = won = 0.0
    for i in np.flatnonzero(above):
        for j in np.flatnonzero(below):
            total += weights[i] * weights[j]
            won += weights[i] * weights[j] * 0.5 * (1 + scores[i] - scores[j]) ** 2
    return won / total


LOSSES = {
    "squared_hinge": lambda x: max(1 - x, 0.0) ** 2,
    "quadratic": lambda x: 0.5 * (1 - x) ** 2,
    "hinge": lambda x: max(1 - x, 0.0),
    "logistic": lambda x: np.logaddexp(0.0, -x),
}
EXACT = 1e-12  # the logistic one is a spline in the package
ERRORS = {"logistic": 2e-6}


def pairwise_loss(scores, targets, weights, intervals, loss):
    """(81), or (83) by overlap masses."""
    positive = targets > 0
    plain = weights[positive] / weights[positive].sum()
    masses = naive.overlap_masses(scores[~positive], weights[~positive], intervals)
    return pair_mean(scores[positive], plain, scores[~positive], masses, loss)
