"""Kernels: a dense matrix of weights, computed from the rows of X.

The Gaussian kernel has code of its own, :class:`RbfKernel`, which ``landmarks.py`` uses, too. All
others are those of scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Annotated, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils._param_validation import Interval

from skfair._typing import Rows
from skfair.cluster.spectral.affinities.base import Affinity, KernelFunction
from skfair.cluster.spectral.affinities.checks import check_dense, check_memory
from skfair.cluster.spectral.weights import DenseWeights
from skfair.utils.pieces import MATRIX_ROWS
from skfair.utils.threads import over_blocks


@dataclass(frozen=True, repr=False)
class Kernel(Affinity):
    """Kernel of :mod:`sklearn.metrics.pairwise`, or a function of two rows.

    A function receives only the two rows. Parameters that a kernel does not have are ignored. The
    Gaussian kernel "rbf", ``exp(-gamma |x - y|^2)``, is computed in the precision ``dtype`` and
    takes the least memory.

    Parameters
    ----------
    kernel : str or callable
        The name of the kernel, or a function.
    gamma : float, default=None
        Coefficient of the kernel, where a larger value gives a narrower kernel. If None, it is 1 /
        n_features.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the weights and of their products.

    See Also
    --------
    NeighborGraph : Weighs only the nearest neighbours.
    Landmark : Approximates weights by a few rows.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.cluster.affinities import Kernel
    >>> FairSpectralClustering(3, affinity=Kernel("polynomial", degree=2)).affinity
    Kernel('polynomial', degree=2)
    """

    kernel: str | KernelFunction
    gamma: Annotated[float, Interval(Real, 0, None, closed="left")] | None = None
    degree: Annotated[float, Interval(Real, 0, None, closed="left")] = 3
    coef0: float = 1

    def weigh(self, X: Rows, *, dtype: DTypeLike, rng: np.random.RandomState) -> DenseWeights:
        """Return the weights between the rows of X."""
        if isinstance(self.kernel, str) and self.kernel == "rbf" and not sparse.issparse(X):
            check_memory(X.shape[0], np.dtype(dtype).itemsize)
            kernel = RbfKernel(X, 1 / X.shape[1] if self.gamma is None else self.gamma, dtype)
            return DenseWeights(kernel.matrix(), is_psd=True, new_rows=kernel)
        # scikit-learn computes kernels in the precision of X, which is then converted.
        check_memory(X.shape[0], np.dtype(X.dtype).itemsize + np.dtype(dtype).itemsize)
        checked = check_dense(self.between(X, dtype=dtype), dtype)
        return DenseWeights(*checked, new_rows=partial(self.between, fitted=X, dtype=dtype))

    def between(
        self, X: Rows, fitted: Rows | None = None, *, dtype: DTypeLike
    ) -> NDArray[np.floating[Any]]:
        """Return the weights between rows of X and the ``fitted`` rows; if None, among X."""
        params: dict[str, float] = {}
        if not callable(self.kernel):
            params.update(degree=self.degree, coef0=self.coef0)
            if self.gamma is not None:
                params["gamma"] = self.gamma
        weights = pairwise_kernels(X, fitted, metric=self.kernel, filter_params=True, **params)
        return np.asarray(weights).astype(dtype, copy=False)


def dense(X: Rows) -> NDArray[Any]:
    """Return rows as a dense array. New rows may be sparse even if those of the fit were not."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


class RbfKernel:
    """``exp(-gamma |x - y|^2)`` between rows and the rows of the fit."""

    def __init__(self, X: Rows, gamma: float, dtype: DTypeLike) -> None:
        # The mean is subtracted, because float32 far from 0 has no digits for small distances.
        self._mean = X.mean(axis=0, dtype=np.float64)
        self._unit = np.sqrt(gamma)
        self._dtype = np.dtype(dtype)
        self._columns = np.ascontiguousarray(self._scaled(X).T)

    def _scaled(self, X: Rows) -> NDArray[Any]:
        return np.ascontiguousarray((dense(X) - self._mean) * self._unit, dtype=self._dtype)

    def __call__(self, X: Rows) -> NDArray[Any]:
        """Return the weights of rows to the rows of the fit."""
        return self._weights(self._scaled(X), is_mirrored=False)

    def matrix(self) -> NDArray[Any]:
        """Return the weights among the rows of the fit."""
        return self._weights(np.ascontiguousarray(self._columns.T), is_mirrored=True)

    def _weights(self, scaled: NDArray[Any], is_mirrored: bool) -> NDArray[Any]:
        """Compute all weights; if ``is_mirrored``, compute half of them and mirror these."""
        from skfair.cluster.spectral._kernels.affinity import minus_squared_distances

        n = scaled.shape[0]
        out = np.empty((n, self._columns.shape[1]), self._dtype)

        def of_block(start: int, stop: int) -> None:
            first = start if is_mirrored else 0
            part = out[start:stop]
            minus_squared_distances(scaled[start:stop], self._columns, first, part)
            np.exp(part[:, first:], out=part[:, first:])
            if is_mirrored:
                out[stop:, start:stop] = part[:, stop:].T

        over_blocks(of_block, n, MATRIX_ROWS)
        return out
