"""Search for decisions under objectives that are not linear in the decisions, such as F1.

``DecisionSearch`` in ``skfair/estimators/decisions/solve.py`` calls :func:`best_ratio` or
:func:`best_of_levels` with a search that maximises a *linear* utility. Both call it a few times
with different utilities, and return the best :class:`Solution`.

- A ratio N(d) / D(d) of linear functions of the decisions d has the maximum r if the maximum of
  N(d) - r D(d) is 0 (Dinkelbach 1967). So each search takes as r the ratio that the last search
  reached, until it grows no more.
- Other objectives have no such rule. Their linear utilities are given by a *level*: the probability
  above which a row would be selected without constraints. Several levels are tried.

Before, the caller finds the best level without constraints by :func:`best_level`. The search over
levels begins there, and the search of a ratio begins with the ratio of the decisions at this level.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.search import Solution
from skfair.utils.rounding import ROUNDING

# The search of a ratio ends if it grows by less than _SETTLED, or after _MOST_RATIOS linear
# searches. It usually takes four.
_SETTLED, _MOST_RATIOS = 1e-7, 12
# The first level and _N_BESIDE levels on each side of it are tried, which are _APART from each
# other in log-odds. Then the distance is halved, and the two levels at this distance from the best
# one are tried. This is done _N_BESIDE times.
_APART, _N_BESIDE = 0.6, 3
# Number of levels that best_level tries, at most.
_MOST_CUTS = 400


def shares_of(class_shares: FloatArray, weights: FloatArray, predicted: IntArray) -> FloatArray:
    """Return the weight of the rows of each true class that get each decision, as a table.

    Its shape is (n_classes, n_classes): true class, decision. ``class_shares`` (n_samples,
    n_classes) says to which part a row counts as each true class.
    """
    n = class_shares.shape[1]
    parts = weights[:, None] * class_shares
    return np.array([np.bincount(predicted, part, n) for part in parts.T])


def best_level(
    rank: Callable[[FloatArray], float],  # objective of a table as shares_of returns it
    scores: FloatArray,  # (n_samples,): probability of the positive class
    is_positive: FloatArray,  # (n_samples,): 1 or 0
    weights: FloatArray,  # (n_samples,)
    recall: float | None = None,  # smallest recall that is accepted; None if any is
) -> float:
    """Return the level of largest objective, if all rows above it are selected."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    # ``ends`` are the numbers of rows above each level. ``right[k]`` and ``wrong[k]`` are the
    # weights of the positives and of the negatives among the first k rows.
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
        Function that returns the decisions of largest utility. The merit of its result is the
        ratio.
    utility : callable
        Function that returns the linear utility N - r D for a number r.
    start : float
        The number r to begin with.

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
    """Return the decisions with the largest objective of those found at some levels.

    The parameters are those of :func:`best_ratio`, except that ``utility`` gets a level, and that
    ``start`` is the level around which the others lie.
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
            # If one search finds nothing within the limits, another utility will not help.
            if not best.verdict.is_feasible:
                return best
        apart /= 2
        places = middle + np.array([-apart, apart])
    assert best is not None
    return best
