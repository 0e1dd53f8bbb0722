"""Similarities between rows of X: the weights of spectral clustering, and those of new rows.

Each class is called with rows and returns their part of a matrix: weights to the rows of the fit
for a kernel, rows of the factor Z of ``W = Z Z'`` for an approximation. The same call builds the
affinity at fit and extends it to new rows at prediction.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels

# Rows of a kernel matrix that are computed at a time.
_ROWS = 64
# Up to this many columns of X, computing a weight again is cheaper than mirroring it.
_NARROW = 16
# Landmarks are the centres of a short k-means on this many rows per landmark.
_ROWS_PER_LANDMARK, _LANDMARK_ROUNDS = 20, 5
# Directions of the landmarks' kernel that are shorter than this share of the longest are noise.
_RANK_TOL = 1e-7


class RbfKernel:
    """``exp(-gamma |x - y|^2)`` between rows and the rows of the fit."""

    def __init__(self, X: NDArray[Any], gamma: float, dtype: Any) -> None:
        # Far from the origin float32 would have no digits left for small distances.
        self._mean = X.mean(axis=0, dtype=np.float64)
        self._unit = np.sqrt(gamma)
        self._dtype = np.dtype(dtype)
        self._columns = np.ascontiguousarray(self._scaled(X).T)

    def _scaled(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray((X - self._mean) * self._unit, dtype=self._dtype)

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the weights of rows to the rows of the fit."""
        return self._weights(self._scaled(X), is_mirrored=False)

    def matrix(self) -> NDArray[Any]:
        """Return the weights among the rows of the fit."""
        rows = np.ascontiguousarray(self._columns.T)
        return self._weights(rows, is_mirrored=rows.shape[1] > _NARROW)

    def _weights(self, scaled: NDArray[Any], is_mirrored: bool) -> NDArray[Any]:
        """Compute all weights, or those right of the diagonal and mirror them."""
        from skfair._kernels.affinity import minus_squared_distances

        n = scaled.shape[0]
        out = np.empty((n, self._columns.shape[1]), self._dtype)
        for start in range(0, n, _ROWS):
            stop = min(start + _ROWS, n)
            first = start if is_mirrored else 0
            part = out[start:stop]
            minus_squared_distances(scaled[start:stop], self._columns, first, part)
            np.exp(part[:, first:], out=part[:, first:])
            if is_mirrored:
                out[stop:, start:stop] = part[:, stop:].T
        return out


class PairwiseKernel:
    """Any kernel of ``sklearn.metrics.pairwise``, or a callable."""

    def __init__(self, X: Any, metric: Any, params: dict[str, Any], dtype: Any) -> None:
        self._X, self._metric, self._params, self._dtype = X, metric, params, np.dtype(dtype)

    def __call__(self, X: Any) -> NDArray[Any]:
        """Return the weights of rows to the rows of the fit."""
        weights = pairwise_kernels(
            X, self._X, metric=self._metric, filter_params=True, **self._params
        )
        return np.asarray(weights).astype(self._dtype, copy=False)

    def matrix(self) -> NDArray[Any]:
        """Return the weights among the rows of the fit."""
        weights = pairwise_kernels(self._X, metric=self._metric, filter_params=True, **self._params)
        return np.asarray(weights).astype(self._dtype, copy=False)


class NystroemFactor:
    """Rows of the Nystroem factor of an rbf kernel, ``K(x, L) K(L, L)^-1/2``, landmarks L."""

    def __init__(self, landmarks: NDArray[Any], gamma: float, dtype: Any) -> None:
        self._kernel = RbfKernel(landmarks, gamma, dtype)
        inner = RbfKernel(landmarks, gamma, np.float64)(landmarks)
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        kept = values > _RANK_TOL * values[-1]
        self._whitening = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)

    @property
    def rank(self) -> int:
        """Number of columns of the factor."""
        return int(self._whitening.shape[1])

    def __call__(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return rows of the factor."""
        return self._kernel(X) @ self._whitening


class LandmarkFactor:
    """Rows of a sparse factor: each row spreads a unit of weight over its nearest landmarks.

    With z the weights and ``mass`` their sums per landmark, ``W = z diag(1 / mass) z'`` has
    degrees 1 and is never formed.
    """

    def __init__(
        self, landmarks: NDArray[Any], n_nearest: int, gamma: float | None, dtype: Any
    ) -> None:
        self._mean = landmarks.mean(axis=0, dtype=np.float64)
        self._dtype = np.dtype(dtype)
        self._columns = np.ascontiguousarray(self._centred(landmarks).T)
        self._n_nearest = min(n_nearest, landmarks.shape[0])
        self._gamma = gamma
        self._roots: NDArray[Any] | None = None

    def _centred(self, X: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(X - self._mean, dtype=self._dtype)

    @property
    def rank(self) -> int:
        """Number of columns of the factor."""
        return int(self._columns.shape[1])

    def fit(self, X: NDArray[Any]) -> sparse.csr_array:
        """Set width and masses by the rows of the fit, and return their part of the factor."""
        index, squared = self._nearest(X)
        if self._gamma is None:
            mean = float(squared.mean(dtype=np.float64))
            self._gamma = 1 / mean if mean > 0 else 1.0
        weights = self._weights(index, squared)
        mass = np.bincount(weights.indices, weights=weights.data, minlength=self.rank)
        self._roots = np.where(mass > 0, 1 / np.sqrt(np.where(mass > 0, mass, 1.0)), 0.0).astype(
            self._dtype
        )
        weights.data *= self._roots[weights.indices]
        return weights

    def __call__(self, X: NDArray[Any]) -> sparse.csr_array:
        """Return rows of the factor."""
        assert self._roots is not None
        weights = self._weights(*self._nearest(X))
        weights.data *= self._roots[weights.indices]
        return weights

    def _nearest(self, X: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return positions and squared distances of the nearest landmarks of each row."""
        from skfair._kernels.affinity import largest_columns, minus_squared_distances

        shape = (X.shape[0], self._n_nearest)
        index, value = np.empty(shape, np.int32), np.empty(shape, self._dtype)
        part = np.empty((_ROWS, self.rank), self._dtype)
        for start in range(0, X.shape[0], _ROWS):
            rows = self._centred(X[start : start + _ROWS])
            block = part[: rows.shape[0]]
            minus_squared_distances(rows, self._columns, 0, block)
            largest_columns(block, index[start : start + _ROWS], value[start : start + _ROWS])
        return index, -value

    def _weights(self, index: NDArray[np.int32], squared: NDArray[Any]) -> sparse.csr_array:
        """Turn distances into weights that sum to one in each row."""
        # Relative to the nearest one, so that a far row does not lose all its weights.
        weights = np.exp(-self._gamma * (squared - squared[:, :1]))  # type: ignore[operator]
        weights /= weights.sum(axis=1, keepdims=True)
        n, r = index.shape
        starts = np.arange(0, n * r + 1, r)
        flat = weights.astype(self._dtype, copy=False).ravel()
        return sparse.csr_array((flat, index.ravel(), starts), shape=(n, self.rank))


def choose_landmarks(X: NDArray[Any], n_landmarks: int, rng: np.random.RandomState) -> NDArray[Any]:
    """Return the centres of a short k-means on a sample of the rows."""
    n = X.shape[0]
    sample = X
    if n > _ROWS_PER_LANDMARK * n_landmarks:
        sample = X[np.sort(rng.permutation(n)[: _ROWS_PER_LANDMARK * n_landmarks])]
    if sample.shape[0] <= n_landmarks:
        return np.unique(sample, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # duplicates: fewer centres
        model = KMeans(
            n_landmarks, init="random", n_init=1, max_iter=_LANDMARK_ROUNDS, random_state=rng
        )
        return np.unique(model.fit(sample).cluster_centers_, axis=0)


Similarity = Callable[[Any], Any]
