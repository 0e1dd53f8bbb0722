"""Slow twins of learning within percentile intervals.

Steps from their formulas, soft rates by loops, the design matrix of the group-aware model.
"""

import numpy as np
from scipy.special import expit

from tests import naive

SLOPE_AT_0 = {"ramp": 0.5, "smoothstep": 0.75, "sigmoid": 0.25}


def step(x, kind, width, rounding=0.0):
    """A step at distances x; the rounded ramp is the mean of the ramp over +- rounding * width."""
    x = np.asarray(x, dtype=float) / width
    if kind == "sigmoid":
        return expit(x)
    t = np.clip((x + 1) / 2, 0, 1)
    if kind == "smoothstep":
        return t**2 * (3 - 2 * t)
    if not rounding:
        return t
    ends = [_integral_of_ramp(x + sign * rounding) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2 * rounding)


def _integral_of_ramp(x):
    return np.where(x <= -1, 0.0, np.where(x >= 1, x, (x + 1) ** 2 / 4))


def part_of_step(x, part, kind, width, rounding=0.0):
    """Left of 0 the step itself is convex; right of it the tangent at 0 is."""
    x = np.asarray(x, dtype=float)
    whole = step(x, kind, width, rounding)
    plus = np.where(x <= 0, whole, 0.5 + SLOPE_AT_0[kind] * x / width)
    return {"whole": whole, "plus": plus, "minus": plus - whole}[part]


def soft_rates(scores, codes, n_groups, weights, thresholds, of_step):
    """Weighted mean of the step in each group (columns) at each threshold (rows)."""
    rates = np.zeros((len(thresholds), n_groups))
    totals = np.zeros(n_groups)
    for score, g, weight in zip(scores, codes, weights, strict=True):
        totals[g] += weight
        for p, threshold in enumerate(thresholds):
            rates[p, g] += weight * of_step(score - threshold)
    return rates / totals


def shares(ranks, bounds):
    """Share of the intervals of each group that its rank covers, by Lemma 5.2."""
    return np.array([naive.interval_share(r, b) for r, b in zip(ranks, bounds, strict=True)])


def grouped_design(X, codes, has_own_weights, weights=None):
    """Columns: standardised X, 1, one indicator per group, and X times the indicators asked for."""
    X = np.asarray(X, dtype=np.longdouble)
    mean = np.average(X, axis=0, weights=weights)
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    Z = (X - mean) / np.where(scale > 0, scale, 1)
    return grouped_columns(Z, codes, has_own_weights)


def grouped_columns(Z, codes, has_own_weights):
    belongs = np.equal.outer(codes, np.arange(len(has_own_weights))).astype(Z.dtype)
    own = [Z * belongs[:, [g]] for g in np.flatnonzero(has_own_weights)]
    return np.column_stack([Z, np.ones(len(Z)), belongs, *own]).astype(float)
