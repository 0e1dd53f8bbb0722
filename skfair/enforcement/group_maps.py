"""Monotone maps of the scores or predictions of groups, as the fits that make them keep them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.utils.threads import for_groups


@dataclass
class GroupMaps:
    """One monotone map per group: straight between its knots and parallel beyond them.

    Scores that only move with the threshold of their group do so in one subtraction, and rows
    between two knots stay between them, to the last bit: order and ties are not left to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.enforcement.group_maps import GroupMaps
    >>> maps = GroupMaps(np.array([1.0]), [np.array([1.0, 2.0])], [np.array([0.0, 0.5])])
    >>> maps(np.array([0.5, 1.5, 4.0]), np.array([0, 0, 0]))
    array([-0.5 ,  0.25,  2.5 ])
    """

    thresholds: FloatArray  # (n_groups,): what is moved to 0
    # For each group its knots: rising scores, and what they become
    before: list[FloatArray]
    after: list[FloatArray]

    def __call__(self, scores: FloatArray, codes: IntArray) -> FloatArray:
        """Return the mapped scores of rows whose groups are given, O(n log n_knots)."""
        out = np.empty(scores.size)

        def of_group(g: int) -> None:
            rows = np.flatnonzero(codes == g)
            knots = self.before[g], self.after[g]
            out[rows] = _mapped(scores[rows], *knots, self.thresholds[g])

        for_groups(of_group, range(len(self.before)), scores.size)
        return out


def _mapped(z: FloatArray, x: FloatArray, y: FloatArray, threshold: float) -> FloatArray:
    """Apply one map with the knots (x, y)."""
    above = np.searchsorted(x, z)  # the first knot that is not below
    right = np.minimum(above, x.size - 1)
    left = np.maximum(np.where(x[right] == z, above, above - 1), 0)
    moves_along = y == x - threshold
    width = x[right] - x[left]
    part = np.where(width > 0, (z - x[left]) / np.where(width > 0, width, 1.0), 0.0)
    inside = np.clip(y[left] + part * (y[right] - y[left]), y[left], y[right])
    beyond = z - np.clip(z, x[0], x[-1])
    return np.where(moves_along[left] & moves_along[right], z - threshold, inside + beyond)
