"""The best threshold of each group, exactly: two classes, groups that are known and do not overlap.

If the rates of all groups lie within a limit of each other, they lie in a window of that length.
For a given window the best threshold of a group is the most accurate one whose rate is inside: a
maximum over a range of its sorted rows. A sparse table answers that at once, so all windows are
tried. Two rates at once (equalized odds) are a grid of windows, made finer twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.decisions.judge import Judge
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.range_maxima import RangeMaxima
from skfair.enforcement.thresholds import Cut, threshold_at
from skfair.utils.threads import for_groups

# A window is this much shorter than its limit: rates are sums with rounding.
_ROUNDING = 1e-10
# Windows that are tried for one rate, and along each side of a grid for two.
_N_WINDOWS, _N_SIDE, _N_ZOOMS = 20_000, 200, 3
# With fewer pairs of rates than this, all windows that begin at one are tried instead.
_MOST_EXACT = 250_000


class Curve(NamedTuple):
    """Rates of a group as its threshold falls, and the limit of the rule that compares them.

    Attributes
    ----------
    block : int
        Number of the rates that are compared with each other; -1 for a cap, which compares none.
    rising : ndarray of shape (n_cuts,)
        The rate, or minus the rate if it falls.
    limit : float
        Length of the window, or the cap.
    is_falling : bool
        Whether minus the rate is given.
    """

    block: int
    rising: FloatArray
    limit: float
    is_falling: bool


@dataclass(frozen=True, eq=False)
class GroupCurves:
    """What each threshold of a group gives.

    Attributes
    ----------
    scores : ndarray
        Scores of the rows of the group, from the highest down.
    n_above : ndarray of shape (n_cuts,)
        Rows above each possible threshold.
    worth : RangeMaxima of n_cuts values
        What the group gains, and the best cut of a range.
    curves : tuple of Curve
        Its rates.
    """

    scores: FloatArray
    n_above: IntArray
    worth: RangeMaxima
    curves: tuple[Curve, ...]

    def extent(self) -> tuple[int, int]:
        """Return the first and last cut that the caps allow."""
        first, last = 0, self.n_above.size - 1
        for curve in self.curves:
            if curve.block >= 0:
                continue
            if curve.is_falling:
                low = -curve.limit + _ROUNDING
                first = max(first, int(np.searchsorted(curve.rising, low)))
            else:
                high = curve.limit - _ROUNDING
                last = min(last, int(np.searchsorted(curve.rising, high, side="right")) - 1)
        return first, last

    def choose(self, starts: dict[int, FloatArray]) -> tuple[IntArray, FloatArray]:
        """Return the best cut within each window, and its worth; minus infinity if there is none.

        ``starts`` has the lower ends of the windows by block.
        """
        first, last = self.extent()
        n = next(iter(starts.values())).size
        low, high = np.full(n, first), np.full(n, last + 1)
        for curve in self.curves:
            if curve.block >= 0:
                start = starts[curve.block]
                end = start + max(curve.limit - _ROUNDING, 0.0)
                slack = 1e-13 if curve.limit < _ROUNDING else 0.0
                low = np.maximum(low, np.searchsorted(curve.rising, start - slack))
                inside = np.searchsorted(curve.rising, end + slack, side="right")
                high = np.minimum(high, inside)
        return self.worth(low, high)


def window_prices(
    judge: Judge, features: Features, groups: IntArray, values: FloatArray
) -> FloatArray | None:
    """Return the prices of the best windows, or None if windows are not the answer.

    Rules that no window describes are left to the caller, who judges the decisions.
    """
    scores = values[:, 1] - values[:, 0]
    described = [k for k, bound in enumerate(judge.bounds) if is_described(bound)]
    blocks = sum(
        int(judge.bounds[k].blocks.max()) + 1
        for k in described
        if judge.bounds[k].comparison.is_window
    )
    if not 1 <= blocks <= 2 or any(judge.bounds[k].quotients is not None for k in described):
        return None
    curves = for_groups(
        lambda g: _curves_of(judge, described, g, np.flatnonzero(groups == g), scores),
        range(features.n_groups),
        scores.size,
    )
    if any(one is None for one in curves):
        return None
    known = [one for one in curves if one is not None]
    cuts = _best_cuts(known)
    if cuts is None:
        return None
    prices = np.zeros((features.size, 2))
    for g, (one, cut) in enumerate(zip(known, cuts, strict=True)):
        found = Cut(int(one.n_above[cut]), 0.0, True, 0.0)
        shift = threshold_at(found, one.scores, one.scores, 0.0).shift
        prices[g * features.n_kinds : (g + 1) * features.n_kinds, 1] = -shift
    return prices


def is_described(bound: BoundConstraint) -> bool:
    """Whether windows describe a rule: differences of rates, or caps on the rates of groups."""
    is_cap = bound.comparison.is_cap and bool((bound.rate_groups >= 0).all())
    return bound.comparison.is_window or is_cap


def _curves_of(
    judge: Judge, described: Sequence[int], group: int, rows: IntArray, scores: FloatArray
) -> GroupCurves | None:
    """Return the curves of a group; None if one of its rates neither rises nor falls."""
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    ordered = scores[rows]
    is_cut = np.ones(rows.size + 1, dtype=bool)
    is_cut[1:-1] = ordered[:-1] - ordered[1:] > 1e-12
    n_above = np.flatnonzero(is_cut)
    gains = judge.weights[rows] * (judge.values[rows, 1] - judge.values[rows, 0])
    curves, n_blocks = [], 0
    for k in described:
        bound = judge.bounds[k]
        is_window = bound.comparison.is_window
        for r in np.flatnonzero(bound.rate_groups == group):
            shares = bound.rates[[r]].toarray().ravel()
            effects = shares[judge.cells[k][rows]] * judge.steps[k][rows]
            if effects.min(initial=0.0) < 0 < effects.max(initial=0.0):
                return None
            is_falling = bool(effects.min(initial=0.0) < 0)
            start = float(shares @ judge.starts[k])
            curve = (start + np.concatenate([[0.0], np.cumsum(effects)]))[n_above]
            block = n_blocks + int(bound.blocks[r]) if is_window else -1
            rising = -curve if is_falling else curve
            curves.append(Curve(block, rising, bound.max_disparity, is_falling))
        n_blocks += int(bound.blocks.max()) + 1 if is_window else 0
    worth = np.concatenate([[0.0], np.cumsum(gains)])[n_above]
    return GroupCurves(ordered, n_above, RangeMaxima(worth), tuple(curves))


def _best_cuts(curves: Sequence[GroupCurves]) -> list[int] | None:
    """Return the best cut of each group, all in one window; None if there is no window for all."""
    union: dict[int, list[FloatArray]] = {}
    for one in curves:
        for curve in one.curves:
            if curve.block >= 0:
                union.setdefault(curve.block, []).append(curve.rising)
    points = {block: np.unique(np.concatenate(rates)) for block, rates in union.items()}
    if len(points) == 1:
        [(block, starts)] = points.items()
        if starts.size > _N_WINDOWS:
            starts = starts[np.linspace(0, starts.size - 1, _N_WINDOWS).astype(np.int64)]
        return _best_of(curves, {block: starts})[0]
    (left, first), (right, second) = points.items()
    if first.size * second.size <= _MOST_EXACT:
        return _best_of(curves, _grid(left, first, right, second))[0]
    found, extents = None, [(first[0], first[-1]), (second[0], second[-1])]
    for _ in range(_N_ZOOMS):
        sides = [np.linspace(low, high, _N_SIDE) for low, high in extents]
        cuts, window = _best_of(curves, _grid(left, sides[0], right, sides[1]))
        if cuts is None:
            break
        found, steps = cuts, [side[1] - side[0] for side in sides]
        extents = [(w - step, w + step) for w, step in zip(window, steps, strict=True)]
    return found


def _grid(left: int, first: FloatArray, right: int, second: FloatArray) -> dict[int, FloatArray]:
    """Return every pair of lower ends."""
    pairs = np.meshgrid(first, second, indexing="ij")
    return {left: pairs[0].ravel(), right: pairs[1].ravel()}


def _best_of(
    curves: Sequence[GroupCurves], starts: dict[int, FloatArray]
) -> tuple[list[int] | None, list[float]]:
    """Return the cuts of the best window, and where it starts."""
    chosen = [one.choose(starts) for one in curves]
    total = np.sum([worth for _, worth in chosen], axis=0)
    best = int(np.argmax(total))
    if not np.isfinite(total[best]):
        return None, []
    return [int(cut[best]) for cut, _ in chosen], [float(s[best]) for s in starts.values()]
