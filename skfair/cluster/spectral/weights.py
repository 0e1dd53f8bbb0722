"""Weights between rows, W, in the three forms that spectral clustering uses.

They are a dense matrix, a sparse matrix, or a factor Z of ``W = Z Z'`` whose product is never
computed (Nystroem and landmark approximations). Affinities make them (``affinities/``).
Eigen-solvers and cuts ask for products with blocks of few columns and for degrees, and need not
know the form. ``matrix``, ``factor``, ``entries()`` and ``new_rows`` are None in forms that do not
have them.

``gather`` and ``new_rows`` belong together: ``new_rows(X) @ gather(columns)`` are the weights
between new rows and the rows of the fit, times columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from skfair._typing import FloatArray, IntArray, Rows
from skfair.utils.pieces import ROWS
from skfair.utils.threads import over_blocks

# A function from rows of X to their weights with the rows of the fit, or to rows of the factor.
NewRows: TypeAlias = Callable[[Rows], Rows]

# Columns of a dense matrix that one thread multiplies at a time.
_COLUMNS = 1024


class Entries(NamedTuple):
    """Single weights for a kernel: a matrix in CSR form, or a dense one. The other is empty."""

    indptr: NDArray[np.integer[Any]]
    indices: NDArray[np.integer[Any]]
    data: NDArray[np.floating[Any]]
    dense: NDArray[np.floating[Any]]


class Weights(ABC):
    """Symmetric weights between rows, at least 0."""

    n_samples: int
    dtype: np.dtype[Any]
    # Sums of the weights of each row, in double precision.
    degrees: FloatArray
    # Number of multiplications in the product of W with one column.
    n_entries: int
    # The weights, (n_samples, n_samples); None if they do not exist one by one.
    matrix: Rows | None = None
    # Returns for new rows of X the left factor of ``new_rows(X) @ gather(columns)``; None if new
    # rows have no weights.
    new_rows: NewRows | None = None
    # Whether the weights are known to be positive semidefinite.
    is_psd: bool = False

    @property
    def factor(self) -> FactoredWeights | None:
        """These weights if they are given by a factor, or None."""
        return None

    @abstractmethod
    def times(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return W times a block of columns."""

    def links(
        self,
        labels: IntArray,
        n_clusters: int,
        # Other labels, and their links. Dense weights only add the differences
        near: tuple[IntArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Return the weights between each row and each cluster, (n_samples, n_clusters)."""
        members = np.zeros((self.n_samples, n_clusters), self.dtype)
        members[np.arange(self.n_samples), labels] = 1
        return self.times(members).astype(np.float64)

    @abstractmethod
    def diagonal(self) -> FloatArray:
        """Return the weights of the rows with themselves."""

    def dense(self) -> FloatArray:
        """Return W as a matrix in double precision."""
        return self.times(np.eye(self.n_samples, dtype=self.dtype)).astype(np.float64)

    def entries(self) -> Entries | None:
        """Return single weights, or None if there are none."""
        return None

    def gather(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the right factor of ``new_rows(X) @ gather(columns)``, see the module."""
        return columns

    def n_components(self) -> int:
        """Count the connected parts that have an edge; 1 if a form cannot count them."""
        return 1


class DenseWeights(Weights):
    """A symmetric matrix of weights, (n, n); ``is_psd`` if it is known to be semidefinite."""

    def __init__(
        self,
        matrix: NDArray[Any],
        degrees: FloatArray | None = None,  # sums of the matrix by row, if they are known
        *,
        is_psd: bool = False,
        new_rows: NewRows | None = None,
    ) -> None:
        # The transpose of a matrix in Fortran order is the same matrix in C order, by symmetry.
        self.matrix: NDArray[Any] = matrix if matrix.flags.c_contiguous else matrix.T
        self.n_samples, self.dtype = matrix.shape[0], matrix.dtype
        self.n_entries = matrix.size
        self.is_psd = is_psd
        self.new_rows = new_rows
        if degrees is None:  # summed in blocks, because numpy would convert the whole matrix
            rows = self.matrix
            sums = over_blocks(lambda i, j: rows[i:j].sum(axis=1, dtype=np.float64), len(rows), 256)
            degrees = np.concatenate(sums)
        self.degrees = degrees

    def n_components(self) -> int:
        """Count the connected parts that have an edge: rows are read until all are reached."""
        waiting, n_parts = self.degrees > 0, 0
        while waiting.any():
            n_parts += 1
            front = np.flatnonzero(waiting)[:1]
            waiting[front] = False
            while front.size and waiting.any():
                front = np.flatnonzero(waiting & (self.matrix[front] > 0).any(axis=0))
                waiting[front] = False
        return n_parts

    def times(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return W times a block of columns."""
        # W is symmetric, so ``columns.T @ W`` is the transpose of the product. In this order the
        # BLAS library packs the few rows once for many columns of W.
        rows = np.ascontiguousarray(columns.T)
        out: NDArray[Any] = np.empty(rows.shape, np.result_type(self.dtype, columns.dtype))
        over_blocks(
            lambda i, j: np.matmul(rows, self.matrix[:, i:j], out=out[:, i:j]),
            self.n_samples,
            _COLUMNS,
        )
        return out.T

    def links(
        self,
        labels: IntArray,
        n_clusters: int,
        near: tuple[IntArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Return the weights between each row and each cluster.

        If less than half of the rows have another label than ``near``, its links are corrected.
        """
        if near is not None:
            others, known = near
            moved = np.flatnonzero(labels != others)
            if 2 * moved.size < self.n_samples:
                links = known.T.copy()
                self._add_links(moved, others, -1, links)
                self._add_links(moved, labels, 1, links)
                return links.T
        links = np.zeros((n_clusters, self.n_samples))
        self._add_links(np.arange(self.n_samples), labels, 1, links)
        return links.T

    def _add_links(self, rows: IntArray, labels: IntArray, sign: int, links: FloatArray) -> None:
        """Add the weights of some rows to ``links[k]``, (n_samples,), of their clusters k.

        ``sign`` is 1 to add and -1 to subtract.
        """
        from skfair.cluster.spectral._kernels.products import add_row_sums

        rows = rows[np.argsort(labels[rows], kind="stable")]
        starts = np.searchsorted(labels[rows], np.arange(len(links) + 1))
        matrix, n = self.matrix, self.n_samples
        over_blocks(lambda i, j: add_row_sums(matrix, rows, starts, sign, i, j, links), n, _COLUMNS)

    def diagonal(self) -> FloatArray:
        return self.matrix.diagonal().astype(np.float64)

    def dense(self) -> FloatArray:
        """Return W as a matrix in double precision."""
        return np.asarray(self.matrix, np.float64)

    def entries(self) -> Entries:
        nothing = np.zeros(0, np.int64)
        return Entries(nothing, nothing, np.zeros(0, self.dtype), self.matrix)


class SparseWeights(Weights):
    """A symmetric sparse matrix of weights in CSR form, (n, n)."""

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix: sparse.csr_array = matrix
        self.n_samples, self.dtype = matrix.shape[0], np.dtype(matrix.dtype)
        self.n_entries = int(matrix.nnz)
        # ``matrix.sum`` would add float32 numbers in float32.
        self.degrees = np.asarray(matrix @ np.ones(matrix.shape[1])).ravel()

    def times(self, columns: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.matrix @ np.ascontiguousarray(columns))

    def diagonal(self) -> FloatArray:
        return np.asarray(self.matrix.diagonal(), dtype=np.float64)

    def dense(self) -> FloatArray:
        """Return W as a matrix in double precision."""
        return np.asarray(self.matrix.toarray(), np.float64)

    def entries(self) -> Entries:
        """Return the parts of the CSR form."""
        W = self.matrix
        return Entries(W.indptr, W.indices, W.data, np.zeros((0, 0), self.dtype))

    def n_components(self) -> int:
        """Count the connected parts that have an edge."""
        n_all: Any = connected_components(self.matrix, directed=False, return_labels=False)
        return int(n_all) - int(np.count_nonzero(self.degrees <= 0))


class FactoredWeights(Weights):
    """Weights ``W = Z Z'`` given by their factor Z, (n, m), dense or sparse."""

    is_psd = True

    def __init__(
        self,
        # ``read(rows)`` returns a slice of the rows of Z. It is called again for every pass, so
        # that a large dense factor can be recomputed instead of kept
        read: Callable[[slice], Rows],
        # Shape of Z
        n_samples: int,
        rank: int,
        dtype: DTypeLike,  # type of Z
        *,
        new_rows: NewRows | None = None,  # turns new rows of X into rows of Z
    ) -> None:
        self._read = read
        self.n_samples, self.rank, self.dtype = n_samples, rank, np.dtype(dtype)
        self.n_entries = 2 * n_samples * rank
        self.new_rows = new_rows
        total = sum(
            (np.asarray(z.T @ np.ones(z.shape[0])).ravel() for _, z in self.blocks()),
            start=np.zeros(rank),
        )
        degrees = np.concatenate([np.asarray(z @ total).ravel() for _, z in self.blocks()])
        # Entries of Z may be negative, so terms of a degree may cancel and leave rounding errors.
        noise = np.finfo(self.dtype).eps * degrees.max(initial=0.0)
        self.degrees = np.where(degrees > noise, degrees, 0.0)

    @property
    def factor(self) -> FactoredWeights:
        return self

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """Yield slices of the rows with their rows of Z."""
        for start in range(0, self.n_samples, ROWS):
            rows = slice(start, min(start + ROWS, self.n_samples))
            yield rows, self._read(rows)

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
        return self.spread(self.gather(columns))

    def diagonal(self) -> FloatArray:
        """Return the weights of the rows with themselves."""
        parts = []
        for _, z in self.blocks():
            squared = z.power(2) if sparse.issparse(z) else z * z
            parts.append(np.asarray(squared.sum(axis=1, dtype=np.float64)).ravel())
        return np.concatenate(parts)
