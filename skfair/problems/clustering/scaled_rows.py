"""Rows of X in units of their own, chunk by chunk: what the soft clustering solvers work on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from skfair._typing import FloatArray

# Numbers handled at a time: 0.5 MB, which stays in the cache of one core.
_CHUNK = 1 << 16
_LARGEST = np.finfo(np.float64).max


def row_masses(weights: FloatArray | None, n_samples: int) -> FloatArray:
    """Return the weights of the rows divided by their sum, at any scale of the weights."""
    masses = np.ones(n_samples) if weights is None else weights / weights.max()
    return np.asarray(masses / masses.sum())


class ScaledRows:
    """The rows of X in units of their own: mean 0 and total variance 1, whatever the scale of X.

    X itself is never copied: chunks of rows are converted when they are asked for. It is first
    divided by a power of two near its largest value, which costs no digits and keeps squares within
    the range of floats.
    """

    def __init__(self, X: NDArray[Any], masses: FloatArray) -> None:
        self.X = X
        chunks = list(gen_batches(len(X), max(1, _CHUNK // X.shape[1])))
        largest = 0.0
        for rows in chunks:
            counted = X[rows][masses[rows] > 0]
            largest = max(largest, float(np.abs(counted).max(initial=0.0)))
        self.unit = 2.0 ** (np.frexp(largest)[1] - 1) if largest > 0 else 1.0
        self.mean = np.zeros(X.shape[1])
        self.spread = 1.0
        self.mean = np.sum([masses[rows] @ self.block(rows) for rows in chunks], axis=0)
        variance = 0.0
        for rows in chunks:
            block = self.block(rows)
            variance += float(masses[rows] @ np.einsum("ij,ij->i", block, block))
        self.spread = float(np.sqrt(variance)) if variance > 0 else 1.0

    def block(self, rows: Any) -> FloatArray:
        """Return rows of X in the own units; a row of weight 0 may lie far out, within limits."""
        return np.clip(self.inwards(self.X[rows]), -1e100, 1e100)

    def inwards(self, points: NDArray[Any]) -> FloatArray:
        """Turn points in units of X into own units."""
        with np.errstate(over="ignore"):
            own: FloatArray = points.astype(np.float64)
            own /= self.unit
            own -= self.mean
            own /= self.spread
        return own

    def outwards(self, points: FloatArray) -> FloatArray:
        """Turn points in own units into units of X."""
        return np.asarray((points * self.spread + self.mean) * self.unit)

    def squared_outwards(self, values: FloatArray) -> FloatArray:
        """Turn squared distances into squared units of X, cut off at the range of floats."""
        with np.errstate(over="ignore", under="ignore"):
            return np.clip(values * self.spread**2 * self.unit * self.unit, -_LARGEST, _LARGEST)


def squared_distances(block: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the squared distances of rows to centres, both in own units."""
    distances = block @ (-2 * centers.T)
    distances += np.einsum("ij,ij->i", block, block)[:, None]
    distances += np.einsum("ij,ij->i", centers, centers)
    return np.maximum(distances, 0.0, out=distances)
