"""The rows of a problem for ``swap.py`` (Algorithm 2) and ``swap_front.py`` (Algorithm 3).

:class:`SwapSample` holds the data in the form that the kernels take, ``data``, and makes the arrays
that they write: ``state``, ``scratch`` and, by :func:`new_log`, logs of moves
(``papers/_kernels/swap_rows.py`` and ``swaps.py`` define these tuples). :class:`BestLabels` chooses
what a descent returns. The rest checks arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import IntArray

# A swap exchanges two rows, and each is the best of several candidates. This is the largest number
# of candidates. It starts small, doubles with each pass of a descent (``_n_candidates`` in
# ``swap.py``), and rises by one every few iterations of a front.
MAX_CANDIDATES = 64
# The cost is the total sum of squares minus the part that the centres explain. If the cost is below
# this share of the total, the difference has lost digits, so the cost is computed from the rows.
CANCELLATION = 1e-6
# The target is the cluster that exchanges rows with the cluster of the lowest balance. "global"
# takes the cluster with the largest ratio of the two groups, "local" the one with the closest
# centre (``pick_target`` in ``papers/_kernels/swaps.py``). Kernels know them by these codes.
TARGETS = {"global": 0, "local": 1}


class SwapSample:
    """The rows of a problem, and sums that no swap changes.

    ``data`` is (X, center, scale, codes), ``total`` is the sum of the squares of shifted and scaled
    rows, ``sizes`` has the number of rows of each group, and ``shape`` is (n_clusters, n_groups,
    n_features).
    """

    def __init__(self, X: NDArray[Any], codes: IntArray, n_clusters: int, n_groups: int) -> None:
        from skfair.papers._kernels import swap_rows

        n_features = X.shape[1]
        self.sizes = np.bincount(codes, minlength=n_groups)
        self.shape = (n_clusters, n_groups, n_features)
        # Sums of squares are taken about the mean, because far from 0 they would lose digits.
        center = X.mean(axis=0, dtype=np.float64)
        spread = swap_rows.spread(X, center)
        # A power of 2 keeps squares of very large or small numbers finite and rounds nothing.
        self._exponent = max(-1000, min(1000, -math.frexp(spread)[1]))
        scale = math.ldexp(1.0, self._exponent)
        # Small codes halve the memory traffic of a move. min_scalar_type of a negative number gives
        # the smallest signed type, as the kernels expect.
        self.data = (X, center, scale, codes.astype(np.min_scalar_type(-n_groups)))
        self.total = swap_rows.sum_of_squares(X, center, scale)

    def state(self, labels: NDArray[Any]) -> Any:
        """Return (labels, counts, sums) with empty counts and sums, which kernels fill."""
        n_clusters, n_groups, n_features = self.shape
        counts = np.empty((n_clusters, n_groups), np.int64)
        return labels, counts, np.empty((n_clusters, n_features))

    def scratch(self, batch_size: int) -> Any:
        """Return ``work``, the scratch space of the kernels for up to ``batch_size`` rows."""
        n_clusters, _, n_features = self.shape
        return (
            np.empty((n_features, batch_size)),
            np.empty(batch_size),
            np.empty(batch_size),
            np.empty(batch_size, np.int64),
            np.empty(n_features),
            np.empty(n_clusters),
        )

    def cost(self, state: Any) -> float:
        """Return the mean squared distance to the centres in the units of X, in full precision."""
        from skfair.papers._kernels import swap_rows, swaps

        cost = swaps.mean_cost(state, self.total)
        if cost * state[0].size < CANCELLATION * self.total:
            cost = swap_rows.direct_cost(self.data, state)
        return float(self.unscaled(cost))

    def unscaled(self, cost: Any) -> Any:
        """Return costs in the units of X."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(cost, -2 * self._exponent)


class BestLabels:
    """The labels to return: the best ones if the balance has a limit, the last ones otherwise."""

    labels: NDArray[Any]

    def __init__(self, min_balance: float | None) -> None:
        self._min_balance = min_balance
        self.is_feasible = min_balance is None
        self._key: tuple[float, float] | None = None

    def offer(self, cost: float, balance: float, labels: NDArray[Any]) -> None:
        """Keep a copy of the labels if they are the best so far, or if there is no limit."""
        if self._min_balance is not None:
            # Below the limit, the balance decides; above it, only the cost.
            key = (min(balance, self._min_balance), -cost)
            if self._key is not None and key <= self._key:
                return
            self._key = key
            self.is_feasible = balance >= self._min_balance
        self.labels = labels.copy()


def new_log(shape: tuple[int, ...]) -> Any:
    """Return empty arrays for the rows, old labels and new labels of moves."""
    return np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.int32)


def check_pairs(pairs: Sequence[tuple[int, int]]) -> None:
    """Raise if a pair (rows per k-means step, swaps) has a negative number or is (0, 0)."""
    if not len(pairs) or any(min(pair) < 0 or max(pair) == 0 for pair in pairs):
        raise ValueError(
            "The numbers of rows per k-means step and of swaps must be at least 0 and not both 0, "
            f"got {[tuple(pair) for pair in pairs]}."
        )


def checked_labels(labels: Any, n_samples: int, n_clusters: int) -> NDArray[Any]:
    """Return a copy of labels, of shape (..., n_samples), in the smallest signed integers."""
    array = np.asarray(labels)
    if array.dtype.kind not in "iu" or array.shape[-1:] != (n_samples,) or not array.size:
        raise ValueError(
            f"Labels must be integers, one for each of the {n_samples} rows of X, got "
            f"{array.dtype} of shape {array.shape}."
        )
    if array.min() < 0 or array.max() >= n_clusters:
        raise ValueError(
            f"Labels must be numbers from 0 to {n_clusters - 1}, one per row of X, got values from "
            f"{array.min()} to {array.max()}."
        )
    return array.astype(np.min_scalar_type(-n_clusters))
