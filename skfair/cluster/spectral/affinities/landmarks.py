"""Approximations of a matrix of weights by landmarks, ``W = Z Z'``, for large samples.

Landmarks are a few points L that represent the rows. :class:`LandmarkFactor` links each row to its
nearest ones, and Z is sparse. :class:`NystroemFactor` approximates the Gaussian kernel, and Z is
dense. Both also turn new rows into rows of Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval

from skfair._typing import Rows
from skfair.cluster.spectral.affinities.base import AFFINITIES, Affinity
from skfair.cluster.spectral.affinities.kernels import RbfKernel, dense
from skfair.cluster.spectral.weights import FactoredWeights
from skfair.utils.pieces import MATRIX_ROWS
from skfair.utils.warn import hidden

# Landmarks are the centres of k-means on this many rows per landmark, after this many rounds.
_ROWS_PER_LANDMARK, _LANDMARK_ROUNDS = 20, 5
# Eigenvalues of the kernel between landmarks below this share of the largest are rounding errors.
_RANK_TOL = 1e-7
# A dense factor above this size in bytes is recomputed block by block instead of kept.
_MAX_KEPT = 2**28


@AFFINITIES.register("nystroem")
@AFFINITIES.register("landmark")
@dataclass(frozen=True, repr=False)
class Landmark(Affinity):
    """Weights that are approximated by landmarks, for large samples.

    Rows are linked through their nearest landmarks, or the Gaussian kernel between all rows is
    approximated by that between rows and landmarks (Nystroem).

    Parameters
    ----------
    n_landmarks : int, default=500
        Number of landmarks. If there are fewer rows, all rows are landmarks.
    n_neighbors : int or None, default=10
        Number of landmarks that each row is linked to. If None, the kernel is approximated.
    gamma : float, default=None
        Coefficient of the kernel, where a larger value gives a narrower kernel. If None, it is 1
        over the mean squared distance to the landmarks used, or 1 / n_features if the kernel is
        approximated.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the weights and of their products.

    See Also
    --------
    Kernel : Weighs all pairs of rows.
    NeighborGraph : Weighs only the nearest neighbours.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.cluster.affinities import Landmark
    >>> FairSpectralClustering(3, affinity=Landmark(100)).affinity
    Landmark(100)
    """

    reads_sparse = False

    n_landmarks: Annotated[int, Interval(Integral, 1, None, closed="left")] = 500
    n_neighbors: Annotated[int, Interval(Integral, 1, None, closed="left")] | None = 10
    gamma: Annotated[float, Interval(Real, 0, None, closed="left")] | None = None

    def weigh(self, X: Rows, *, dtype: DTypeLike, rng: np.random.RandomState) -> FactoredWeights:
        """Return the factor of the weights between the rows of X."""
        n, landmarks = X.shape[0], choose_landmarks(X, self.n_landmarks, rng)
        if self.n_neighbors is not None:
            linked = LandmarkFactor(landmarks, self.n_neighbors, self.gamma, dtype)
            Z = linked.fit(X)
            return FactoredWeights(Z.__getitem__, n, linked.rank, dtype, new_rows=linked)
        factor = NystroemFactor(
            landmarks, 1 / X.shape[1] if self.gamma is None else self.gamma, dtype
        )
        if n * factor.rank * np.dtype(dtype).itemsize <= _MAX_KEPT:
            kept = factor(X)
            return FactoredWeights(kept.__getitem__, n, factor.rank, dtype, new_rows=factor)
        return FactoredWeights(lambda rows: factor(X[rows]), n, factor.rank, dtype, new_rows=factor)


class NystroemFactor:
    """Rows of the Nystroem factor of the Gaussian kernel K, ``K(x, L) K(L, L)^-1/2``."""

    def __init__(self, landmarks: NDArray[Any], gamma: float, dtype: DTypeLike) -> None:
        self._kernel = RbfKernel(landmarks, gamma, dtype)
        inner = RbfKernel(landmarks, gamma, np.float64)(landmarks)
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        kept = values > _RANK_TOL * values[-1]
        self._whitening = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)

    @property
    def rank(self) -> int:
        return int(self._whitening.shape[1])

    def __call__(self, X: Rows) -> NDArray[Any]:
        """Return rows of the factor."""
        rows: NDArray[Any] = self._kernel(X) @ self._whitening
        return rows


class LandmarkFactor:
    """Rows of a sparse factor: each row spreads a weight of 1 over its nearest landmarks.

    Let z (n, n_landmarks) be these weights and ``mass`` their sums by landmark. Then Z is
    ``z diag(mass)^-1/2``, and all degrees of ``W = z diag(1 / mass) z'`` are 1. ``fit`` must be
    called before the object is called for new rows.
    """

    def __init__(
        self, landmarks: NDArray[Any], n_nearest: int, gamma: float | None, dtype: DTypeLike
    ) -> None:
        self._mean = landmarks.mean(axis=0, dtype=np.float64)
        self._dtype = np.dtype(dtype)
        self._columns = np.ascontiguousarray(self._centred(landmarks).T)
        self._n_nearest = min(n_nearest, landmarks.shape[0])
        self._gamma = gamma
        self._roots: NDArray[Any] | None = None

    def _centred(self, X: Rows) -> NDArray[Any]:
        return np.ascontiguousarray(dense(X) - self._mean, dtype=self._dtype)

    @property
    def rank(self) -> int:
        return int(self._columns.shape[1])

    def fit(self, X: Rows) -> sparse.csr_array:
        """Set gamma (if it is None) and the masses from the rows of the fit; return their Z."""
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

    def __call__(self, X: Rows) -> sparse.csr_array:
        """Return rows of the factor."""
        assert self._roots is not None
        weights = self._weights(*self._nearest(X))
        weights.data *= self._roots[weights.indices]
        return weights

    def _nearest(self, X: Rows) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """Return positions and squared distances of the nearest landmarks of each row."""
        from skfair.cluster.spectral._kernels.affinity import (
            largest_columns,
            minus_squared_distances,
        )

        shape = (X.shape[0], self._n_nearest)
        index, value = np.empty(shape, np.int32), np.empty(shape, self._dtype)
        part = np.empty((MATRIX_ROWS, self.rank), self._dtype)
        for own in gen_batches(X.shape[0], MATRIX_ROWS):
            rows = self._centred(X[own])
            block = part[: rows.shape[0]]
            minus_squared_distances(rows, self._columns, 0, block)
            largest_columns(block, index[own], value[own])
        return index, -value

    def _weights(self, index: NDArray[np.int32], squared: NDArray[Any]) -> sparse.csr_array:
        """Turn squared distances into Gaussian weights that sum to one in each row."""
        # The distance to the nearest landmark is subtracted, because otherwise all weights of a row
        # far from all landmarks would be 0.
        weights = np.exp(-self._gamma * (squared - squared[:, :1]))  # type: ignore[operator]
        weights /= weights.sum(axis=1, keepdims=True)
        n, r = index.shape
        starts = np.arange(0, n * r + 1, r)
        flat = weights.astype(self._dtype, copy=False).ravel()
        return sparse.csr_array((flat, index.ravel(), starts), shape=(n, self.rank))


def choose_landmarks(X: Rows, n_landmarks: int, rng: np.random.RandomState) -> NDArray[Any]:
    """Return at most ``n_landmarks`` points: the centres of a short k-means on some of the rows.

    If there are at most that many rows, the landmarks are the distinct rows.
    """
    n = X.shape[0]
    X = sample = np.asarray(X)
    if n > _ROWS_PER_LANDMARK * n_landmarks:
        sample = X[np.sort(rng.permutation(n)[: _ROWS_PER_LANDMARK * n_landmarks])]
    if sample.shape[0] <= n_landmarks:
        return np.unique(sample, axis=0)
    # If rows are duplicates, there are fewer distinct centres, and scikit-learn warns.
    with hidden("Number of distinct clusters", ConvergenceWarning):
        model = KMeans(
            n_landmarks, init="random", n_init=1, max_iter=_LANDMARK_ROUNDS, random_state=rng
        )
        return np.unique(model.fit(sample).cluster_centers_, axis=0)
