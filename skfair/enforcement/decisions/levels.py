"""Search for decisions under objectives that are not linear in the decisions.

A ratio of linear forms is largest where the numerator minus its value times the denominator is
(Dinkelbach 1967), so a few searches with linear utility find it. Anything else is tried at levels:
probabilities above which rows would be selected without constraints.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.search import Solution
from skfair.utils.rounding import ROUNDING

# Ratios end when they grow by less, or after this many searches; 4 are usual.
_SETTLED, _MOST_RATIOS = 1e-7, 12
# Levels are tried so far apart (in log-odds), this many on each side of the best one without
# constraints; then, as often, two beside the best one at half the distance.
_APART, _N_BESIDE = 0.6, 3
# Cutoffs that are tried without constraints.
_MOST_CUTS = 400


def shares_of(class_shares: FloatArray, weights: FloatArray, predicted: IntArray) -> FloatArray:
    """Return the shares of the rows (true class, decision).

    ``class_shares`` (n_samples, n_classes) says in which shares a row counts for each true class.
    """
    n = class_shares.shape[1]
    parts = weights[:, None] * class_shares
    return np.array([np.bincount(predicted, part, n) for part in parts.T])


def best_level(
    rank: Callable[[FloatArray], float],
    scores: FloatArray,  # probability of the positive class
    is_positive: FloatArray,  # 1 or 0, of each row
    weights: FloatArray,
    recall: float | None = None,  # the smallest one
) -> float:
    """Return the probability above which rows are best selected without constraints."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1, [scores.size]])
    right = np.append(0.0, np.cumsum((weights * is_positive)[order]))
    wrong = np.append(0.0, np.cumsum((weights * (1 - is_positive))[order]))
    if recall is not None:
        ends = ends[right[ends] >= recall * right[-1] - ROUNDING]
    if ends.size > _MOST_CUTS:
        ends = ends[np.unique(np.linspace(0, ends.size - 1, _MOST_CUTS).astype(np.int64))]
    ranks = [
        rank(np.array([[wrong[-1] - wrong[k], wrong[k]], [right[-1] - right[k], right[k]]]))
        for k in ends
    ]
    best = int(ends[int(np.argmax(ranks))])
    padded = np.concatenate([[1.0], ordered, [0.0]])
    return float(0.5 * (padded[best] + padded[best + 1]))


def best_ratio(
    search: Callable[[FloatArray], Solution], utility: Callable[[float], FloatArray], start: float
) -> Solution:
    """Return the decisions with the largest ratio.

    Parameters
    ----------
    search : callable
        Searches the decisions of most utility; the merit of what it returns is the ratio.
    utility : callable
        Utility of decisions if the ratio is to be above a number.
    start : float
        The number to begin with.

    Returns
    -------
    best : Solution
        The best decisions.
    """
    best: Solution | None = None
    level = start
    for k in range(_MOST_RATIOS):
        solution = search(utility(level))
        ratio = solution.verdict.merit
        best = solution if best is None or solution.verdict.is_better_than(best.verdict) else best
        if not np.isfinite(ratio) or (k > 0 and ratio <= level + _SETTLED):
            break
        level = ratio
    assert best is not None
    return best


def best_of_levels(
    search: Callable[[FloatArray], Solution], utility: Callable[[float], FloatArray], start: float
) -> Solution:
    """Return the decisions with the largest objective of those at some levels, around a first one.

    The parameters are those of :func:`best_ratio`.
    """
    best: Solution | None = None
    middle = float(logit(np.clip(start, 1e-3, 1 - 1e-3)))
    steps = sorted(range(-_N_BESIDE, _N_BESIDE + 1), key=abs)
    places, apart = middle + _APART * np.array(steps), _APART
    for _ in range(1 + _N_BESIDE):
        for place in places.tolist():
            solution = search(utility(float(expit(place))))
            if best is None or solution.verdict.is_better_than(best.verdict):
                best, middle = solution, place
            # The utility does not change whether any decisions are within the limits.
            if not best.verdict.is_feasible:
                return best
        apart /= 2
        places = middle + np.array([-apart, apart])
    assert best is not None
    return best
