"""Slow twins of the repair of scores: bands and cuts by counting, row by row."""

import itertools

import numpy as np

from tests import naive

# Shares that are equal in exact arithmetic may differ by rounding, all others by far more.
SLACK = 1e-9


def share_above(scores, codes, weights, bounds, g, theta):
    """F_g(theta): share of the intervals of group g that its rows above theta own."""
    return naive.interval_share(naive.ccdf(scores, codes, g, weights, theta), bounds[g])


def owned_shares(scores, codes, weights, bounds):
    """[a, b] for each row: the share above its score, and the share at or above it."""
    out = np.empty((len(scores), 2))
    for i, (score, g) in enumerate(zip(scores, codes, strict=True)):
        just_below = np.nextafter(score, -np.inf)
        out[i] = [
            share_above(scores, codes, weights, bounds, g, theta) for theta in (score, just_below)
        ]
    return out


def change_points(scores, codes, weights, bounds):
    """Scores at which a share changes, and 0, descending."""
    owned = owned_shares(scores, codes, weights, bounds)
    return np.unique(np.append(scores[owned[:, 1] > owned[:, 0]], 0.0))[::-1]


def middle(scores, codes, weights, bounds, theta):
    """H(theta): between the largest and the smallest share above theta."""
    shares = [share_above(scores, codes, weights, bounds, g, theta) for g in range(len(bounds))]
    return (max(shares) + min(shares)) / 2


def bands(scores, codes, weights, bounds, tolerance):
    """Lowest and highest score that each row may have; its threshold is 0.

    A row that owns too much for any place goes to the middle of where H passes the middle of its
    share, on its side of 0.
    """
    points = change_points(scores, codes, weights, bounds)
    levels = [middle(scores, codes, weights, bounds, theta) for theta in points]
    out = np.empty((len(scores), 2))
    for i, (a, b) in enumerate(owned_shares(scores, codes, weights, bounds)):
        out[i] = _reach(points, levels, a + tolerance / 2, b - tolerance / 2)
        if out[i, 0] > out[i, 1]:
            low, high = _reach(points, levels, (a + b) / 2, (a + b) / 2)
            low, high = (max(low, 0.0), high) if scores[i] > 0 else (low, min(high, 0.0))
            out[i] = (low + high) / 2
    return out


def _reach(points, levels, at_most, at_least):
    """Lowest score from which on H is at most a value, and highest below which it is at least one.

    H falls in steps, is 1 below all points and 0 from the highest on: ends are points or infinite.
    """
    at_most, at_least = at_most + SLACK, at_least - SLACK
    low = min(p for p, h in zip(points, levels, strict=True) if h <= at_most)
    high = min(p for p, h in zip(points, levels, strict=True) if h < max(at_least, SLACK))
    return (-np.inf if at_most >= 1 else low, np.inf if at_least <= 0 else high)


def levels_of_cut(scores, codes, targets, weights, bounds, g, cut, kinds):
    """Shares of the interval of group g above a cut, ranks counted within each kind of rows."""
    out = []
    for kind in kinds:
        rows = codes == g
        if kind != "ends":
            rows &= (targets > 0) == (kind == "positive")
        out.append(share_above(scores[rows], codes[rows], weights[rows], bounds, g, cut))
    return out


def gain_of_cut(scores, codes, targets, weights, g, cut):
    """Weight of the positive minus that of the negative rows above a cut, of all weight."""
    above = (codes == g) & (scores > cut)
    return np.sum((weights * targets)[above]) / weights.sum()


def best_gain(scores, codes, targets, weights, bounds, kinds, tolerance):
    """Largest gain over all cuts, one per group, whose levels are within the tolerance."""
    options = []
    for g in range(len(bounds)):
        options.append(
            [
                (
                    levels_of_cut(scores, codes, targets, weights, bounds, g, cut, kinds),
                    gain_of_cut(scores, codes, targets, weights, g, cut),
                )
                for cut in naive.thresholds(scores[codes == g])
            ]
        )
    best = -np.inf
    for chosen in itertools.product(*options):
        levels = np.array([level for level, _ in chosen])
        if np.ptp(levels, axis=0).max() <= tolerance + SLACK:
            best = max(best, sum(gain for _, gain in chosen))
    return best
