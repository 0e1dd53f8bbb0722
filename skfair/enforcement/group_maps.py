"""Monotone maps of the scores or predictions of groups: what fits return and predictions apply.

:mod:`skfair.enforcement.regression_maps` and the repairs of ``skfair/partial_parity`` make them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.utils.threads import for_groups


@dataclass
class GroupMaps:
    """One monotone map per group: linear between its knots, and of slope 1 beyond them.

    Order and ties are not left to rounding. Scores between two knots are mapped to values between
    those of the knots, to the last bit. If both knots are only shifted by the threshold of the
    group, the scores between them are shifted by the same single subtraction.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.enforcement.group_maps import GroupMaps
    >>> maps = GroupMaps(np.array([1.0]), [np.array([1.0, 2.0])], [np.array([0.0, 0.5])])
    >>> maps(np.array([0.5, 1.5, 4.0]), np.array([0, 0, 0]))
    array([-0.5 ,  0.25,  2.5 ])
    """

    thresholds: FloatArray  # (n_groups,): the score that a pure shift would move to 0
    # For each group its knots: rising scores, and the values that these are mapped to
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
    """Map the scores z of one group by its knots: x is mapped to y."""
    above = np.searchsorted(x, z)  # the first knot that is not below the score
    right = np.minimum(above, x.size - 1)
    left = np.maximum(np.where(x[right] == z, above, above - 1), 0)
    is_shifted = y == x - threshold  # knots that the threshold alone moves
    width = x[right] - x[left]
    part = np.where(width > 0, (z - x[left]) / np.where(width > 0, width, 1.0), 0.0)
    inside = np.clip(y[left] + part * (y[right] - y[left]), y[left], y[right])
    beyond = z - np.clip(z, x[0], x[-1])  # distance from the nearest end; 0 between the knots
    return np.where(is_shifted[left] & is_shifted[right], z - threshold, inside + beyond)
