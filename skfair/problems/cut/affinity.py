"""Weights between rows, W, in the three forms that spectral clustering meets.

A dense matrix, a sparse one, or a factor Z of ``W = Z Z'`` that is never multiplied out (Nystroem
and landmark approximations). Who uses them needs only products with narrow blocks of columns;
``is_fast_when_narrow`` says whether many such products cost no more than a few wide ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from skfair._typing import FloatArray

Block = tuple[slice, Any]

# Up to this many columns our own product of a dense matrix is faster on one thread.
_NARROW = 24
# Rows of a factor that are handled at a time.
_ROWS = 1 << 14


def _library_threads() -> int:
    """Return the number of threads that the linear algebra library may use."""
    from threadpoolctl import threadpool_info

    threads = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(threads, default=1)


def is_sparse(values: Any) -> bool:
    """Whether values are a sparse matrix or array."""
    return bool(sparse.issparse(values))


class DenseAffinity:
    """A symmetric matrix of weights, (n, n); ``is_psd`` if it is known to be semidefinite."""

    def __init__(self, weights: NDArray[Any], *, is_psd: bool = False) -> None:
        # Symmetric: the transpose of a Fortran-ordered matrix is the same in C order.
        self.weights = weights if weights.flags.c_contiguous else weights.T
        self.is_psd = is_psd
        # On several threads the product of the linear algebra library is faster.
        self.is_fast_when_narrow = weights.dtype == np.float32 and _library_threads() == 1
        # Summed block by block in float64: numpy would convert the whole matrix.
        self.degrees = np.concatenate(
            [
                weights[i : i + 256].sum(axis=1, dtype=np.float64)
                for i in range(0, weights.shape[0], 256)
            ]
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.weights.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the weights."""
        return self.weights.dtype

    @property
    def n_entries(self) -> int:
        """Number of multiplications of a product with one column."""
        return int(self.weights.size)

    def times(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return W times a block of columns."""
        n, b = columns.shape
        is_narrow = 4 <= b <= _NARROW and columns.dtype == self.dtype
        if not (self.is_fast_when_narrow and is_narrow):
            return self.weights @ columns
        from skfair._kernels.products import add_narrow_product

        rows = np.ascontiguousarray(columns.T)
        if b % 4:
            rows = np.concatenate([rows, np.zeros((-b % 4, n), rows.dtype)])
        whole = n - n % 8
        out = rows[:, whole:] @ self.weights[whole:]
        add_narrow_product(self.weights[:whole], rows, out)
        return out[:b].T

    def diagonal(self) -> FloatArray:
        """Return the weights of the rows with themselves."""
        return self.weights.diagonal().astype(np.float64)

    def n_components(self) -> int:
        """Return 1: a dense matrix is not searched for components."""
        return 1


class SparseAffinity:
    """A symmetric sparse matrix of weights in CSR form, (n, n)."""

    is_psd = False
    is_fast_when_narrow = True

    def __init__(self, weights: Any) -> None:
        self.weights = weights
        # Not sum(): scipy adds float32 up in float32.
        self.degrees = np.asarray(weights @ np.ones(weights.shape[1])).ravel()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.weights.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the weights."""
        return np.dtype(self.weights.dtype)

    @property
    def n_entries(self) -> int:
        """Number of multiplications of a product with one column."""
        return int(self.weights.nnz)

    def times(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return W times a block of columns."""
        return np.asarray(self.weights @ np.ascontiguousarray(columns))

    def diagonal(self) -> FloatArray:
        """Return the weights of the rows with themselves."""
        return np.asarray(self.weights.diagonal(), dtype=np.float64)

    def n_components(self) -> int:
        """Count the connected components that have an edge."""
        n_all: Any = connected_components(self.weights, directed=False, return_labels=False)
        return int(n_all) - int(np.count_nonzero(self.degrees <= 0))


class FactoredAffinity:
    """Weights ``W = Z Z'`` given by their factor Z, (n, m), dense or sparse.

    Parameters
    ----------
    blocks : callable
        ``blocks(rows)`` returns these rows of Z; it is called again for every pass, so that a large
        dense factor can be recomputed instead of kept.
    n_samples, rank : int
        Shape of Z.
    dtype : dtype
        Type of Z.
    """

    is_psd = True
    is_fast_when_narrow = False

    def __init__(
        self, blocks: Callable[[slice], Any], n_samples: int, rank: int, dtype: Any
    ) -> None:
        self._blocks = blocks
        self.n_samples = n_samples
        self.rank = rank
        self.dtype = np.dtype(dtype)
        total = sum(
            (np.asarray(z.T @ np.ones(z.shape[0])).ravel() for _, z in self.blocks()),
            start=np.zeros(rank),
        )
        degrees = np.concatenate([np.asarray(z @ total).ravel() for _, z in self.blocks()])
        # What is left of a degree by cancellation is noise, and may be negative.
        noise = np.finfo(self.dtype).eps * degrees.max(initial=0.0)
        self.degrees = np.where(degrees > noise, degrees, 0.0)

    @property
    def n_entries(self) -> int:
        """Number of multiplications of a product with one column."""
        return 2 * self.n_samples * self.rank

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, these rows of Z)."""
        for start in range(0, self.n_samples, _ROWS):
            rows = slice(start, min(start + _ROWS, self.n_samples))
            yield rows, self._blocks(rows)

    def gather(self, columns: NDArray[Any]) -> FloatArray:
        """Return ``Z'`` times a block of columns."""
        total = np.zeros((self.rank, columns.shape[1]))
        for rows, z in self.blocks():
            total += z.T @ columns[rows]
        return total

    def spread(self, coefficients: NDArray[Any]) -> NDArray[Any]:
        """Return Z times coefficients, (n, columns)."""
        out = np.empty((self.n_samples, coefficients.shape[1]), self.dtype)
        for rows, z in self.blocks():
            out[rows] = z @ coefficients.astype(self.dtype, copy=False)
        return out

    def times(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return W times a block of columns."""
        return self.spread(self.gather(columns))

    def diagonal(self) -> FloatArray:
        """Return the weights of the rows with themselves."""
        parts = []
        for _, z in self.blocks():
            squared = z.power(2) if is_sparse(z) else z * z
            parts.append(np.asarray(squared.sum(axis=1, dtype=np.float64)).ravel())
        return np.concatenate(parts)

    def n_components(self) -> int:
        """Return 1: a factor is not searched for components."""
        return 1


Affinity: TypeAlias = DenseAffinity | SparseAffinity | FactoredAffinity
