"""Linear scores of dense or CSR rows, in standardised coordinates.

The parameters that solvers see are weights v and an intercept b for the standardised columns
Z = (X - m) / s, with column means m and deviations s. So the scale of a column makes no difference
to a solver. X itself is neither copied nor centred, because the scores Z v + b are

    X w + (b - m'w),   w = v / s

The penalty is on w, the weights of the columns as they are (*raw* weights). In the same way,
derivatives by v follow from sums over the rows of X (:meth:`LinearScore.standardised_sums`).

Dense rows that are mostly zero (one-hot codes) are kept as CSR, which is much cheaper.
:mod:`skfair.models.partitioned` makes these models, and one for rows in Dask collections.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray, Rows
from skfair.models.base import ScoreModel
from skfair.models.units import BLOCK_ROWS, Units, compact_rows, product, row_sums
from skfair.utils.threads import over_blocks

# Cost of a Newton step by products, per entry of X, in operations of a dense matrix product. About
# 50 conjugate gradient steps take two passes each, and a pass waits for memory 10 to 20 times as
# long as a dense product does.
PRODUCTS_PER_STEP = 2000
# A copy of some rows (:meth:`LinearScore.on_rows`) may be in single precision if all column means
# are less than this many deviations from 0, because standardised values then lose few digits.
NEAR = 100.0
# For sums with a matrix as result, the rows are divided into at most this many parts. Each part
# needs memory for a matrix of its own, and the matrices of all parts are added up.
_PARTS = 24


class LinearScore(ScoreModel):
    """Linear scores of fixed rows."""

    pulls_back_cells: ClassVar[bool] = True
    has_curvature: ClassVar[bool] = True

    def __init__(
        self,
        X: Rows,  # (n_samples, n_features): the rows, float32 or float64
        *,
        fit_intercept: bool = True,  # whether the last parameter is an intercept
        # (n_samples,): weights of the rows in means and deviations of the columns. Not used if
        # units are given
        sample_weight: FloatArray | None = None,
        # Means and deviations to standardise by, if the rows are a part of larger data. X is then
        # kept as it is. If None, the means and deviations of X are used
        units: Units | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = X.shape
        self.n_parameters = self.n_features + int(fit_intercept)
        if units is None:
            X = compact_rows(X)
            # Centring shifts all scores, which only an intercept can make up for.
            units = Units.of_columns(X, sample_weight, centered=fit_intercept)
        self.units = units
        if X.dtype == np.float32 and not self.units.fit_single_precision:
            X = X.astype(np.float64)
        self.X = X
        self.is_sparse = sparse.issparse(X)

    @cached_property
    def _transposed(self) -> Any:
        """The transpose of a CSR matrix, as CSR: pull-backs then read along its rows."""
        return self.X.T.tocsr()

    @property
    def is_wide(self) -> bool:
        """Whether Newton steps by products with X are less work than those by a Gram matrix.

        The matrix takes about (entries per row)^2 operations per row, and its factors p^3.
        """
        p, n_entries = self.n_parameters, self.X.nnz if self.is_sparse else self.X.size
        return bool(PRODUCTS_PER_STEP * n_entries < n_entries**2 / self.n_samples + p**3)

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return zeros."""
        return np.zeros(self.n_parameters)

    def raw(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return weights and intercept for the columns as they are."""
        coef = theta[: self.n_features] / self.scale
        intercept = float(theta[-1]) if self.fit_intercept else 0.0
        return coef, intercept - float(self.mean @ coef)

    def standardised(self, coef: FloatArray, intercept: float) -> FloatArray:
        """Return the parameters of given weights and intercept: the inverse of :meth:`raw`."""
        theta = np.asarray(coef, dtype=np.float64) * self.scale
        if not self.fit_intercept:
            return theta
        return np.append(theta, intercept + self.mean @ coef)

    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the scores of all or some rows, and the tape.

        The tape says which rows these are: None for all, the copied rows of a dense X, or the row
        numbers of a CSR one.
        """
        coef, intercept = self.raw(theta)
        if self.is_sparse and rows is not None:  # the kernel reads them in X, without a copy
            from skfair._kernels.linear import sparse_row_scores

            scores = np.empty(rows.size)
            X = self.X
            sparse_row_scores(X.data, X.indices, X.indptr, rows, coef, scores)
            return scores + intercept, rows
        tape = None if rows is None else self.X[rows]
        return product(self.X if tape is None else tape, coef) + intercept, tape

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``."""
        if not self.is_sparse:
            sums = product((self.X if tape is None else tape).T, slopes)
        elif tape is None:
            sums = product(self._transposed, slopes)
        else:
            from skfair._kernels.linear import sparse_row_sums

            sums = np.zeros(self.n_features)
            X = self.X
            sparse_row_sums(X.data, X.indices, X.indptr, tape, slopes, sums)
        return self.standardised_sums(sums, slopes.sum())

    def pullbacks(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return one gradient for each line of slopes, (n_lines, n_rows), in one pass if dense."""
        if self.is_sparse:
            return super().pullbacks(tape, slopes)
        sums = row_sums(self.X if tape is None else tape, slopes)
        return self.standardised_sums(sums, slopes.sum(axis=1))

    def on_rows(self, rows: IntArray) -> LinearScore:
        """Return the model of a copy of some rows, whose parameters mean the same.

        The copy is in single precision if that loses little.
        """
        is_near = np.abs(self.mean).max(initial=0.0) < NEAR * self.scale.min()
        dtype = np.float32 if is_near and self.units.fit_single_precision else self.X.dtype
        X = self.X[rows].astype(dtype, copy=False)
        return LinearScore(X, fit_intercept=self.fit_intercept, units=self.units)

    def pullback_cells(self, cells: IntArray, slopes: FloatArray, n_cells: int) -> FloatArray:
        """Return one gradient per cell, (n_cells, n_parameters), in one pass over the rows."""
        from skfair._kernels.linear import dense_cell_sums, sparse_cell_sums

        sums, cells = np.zeros((n_cells, self.n_features)), cells.astype(np.int64, copy=False)
        if self.is_sparse:
            X = self.X
            sparse_cell_sums(X.data, X.indices, X.indptr, cells, slopes, sums)
        else:

            def of_part(start: int, stop: int) -> FloatArray:
                part, own = slice(start, stop), np.zeros_like(sums)
                dense_cell_sums(self.X[part], cells[part], slopes[part], own)
                return own

            for own in over_blocks(
                of_part, self.n_samples, max(BLOCK_ROWS, -(-self.n_samples // _PARTS))
            ):
                sums += own
        totals = np.bincount(cells, weights=slopes, minlength=n_cells)
        return self.standardised_sums(sums, totals)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return Z' diag(weights) Z for standardised rows Z.

        Z has a column of ones if there is an intercept. Weights may be negative. Each row costs the
        square of its number of stored entries.
        """
        p = self.n_parameters
        out = np.zeros((p, p))
        (self._sparse_gram if self.is_sparse else self._dense_gram)(weights, out)
        return out

    def rounding(self, theta: FloatArray) -> float:
        """Return how far two computations of the same score may be apart.

        It is 32 times the rounding unit of the sum of the absolute terms of a score, for a row that
        is 4 deviations from the mean in every column.
        """
        coef, intercept = self.raw(theta)
        size = np.abs(coef) @ (np.abs(self.mean) + 4 * self.scale) + abs(intercept)
        return 32 * float(np.finfo(np.float64).eps * (1 + size))

    def penalty_parts(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared norm of the weights, and its gradient."""
        gradient = np.zeros(self.n_parameters)
        v = theta[: self.n_features]
        with np.errstate(over="ignore"):  # an infinite penalty is an answer: the step is too long
            gradient[: self.n_features] = v / self.scale**2
            return 0.5 * float(v @ gradient[: self.n_features]), gradient

    def penalty_curvature(self) -> FloatArray:
        """Return the diagonal second derivative of the penalty."""
        curvature = np.zeros(self.n_parameters)
        curvature[: self.n_features] = 1 / self.scale**2
        return curvature

    def standardised_sums(self, sums: FloatArray, totals: Any) -> FloatArray:
        """Return the derivative by the standardised parameters, given sums over raw rows.

        With the slopes d, ``sums`` are X'd and ``totals`` are 1'd; both may have further axes in
        front. Then Z'd = (X'd - (1'd) m) / s.
        """
        gradient = np.empty((*np.shape(totals), self.n_parameters))
        of_weights = gradient[..., : self.n_features]
        np.subtract(sums, np.multiply.outer(totals, self.mean), out=of_weights)
        of_weights /= self.scale
        if self.fit_intercept:
            gradient[..., -1] = totals
        return gradient

    def _sparse_gram(self, weights: FloatArray, out: FloatArray) -> None:
        """Write the Gram matrix of CSR rows to ``out``.

        With W = diag(weights), f = X'W 1 and t = 1'W 1, the block of the columns is
        (X'W X - m f' - f m' + t m m') / (s s').
        """
        from skfair._kernels.linear import sparse_gram

        X, d = self.X, self.n_features
        raw = np.zeros((d, d))
        sparse_gram(X.data, X.indices, X.indptr, weights, raw)
        raw += np.triu(raw, 1).T
        first = np.asarray(product(self._transposed, weights), dtype=np.float64)
        total = weights.sum()
        # Added to its transpose, ``outer`` is m f' + f m' - t m m'.
        outer = np.outer(self.mean, first - 0.5 * total * self.mean)
        out[:d, :d] = (raw - (outer + outer.T)) / np.outer(self.scale, self.scale)
        if self.fit_intercept:
            out[:d, d] = out[d, :d] = (first - total * self.mean) / self.scale
            out[d, d] = total

    def _dense_gram(self, weights: FloatArray, out: FloatArray) -> None:
        """Add the Gram matrix of dense rows to ``out``, which holds zeros.

        A kernel writes sqrt(|weight|) times the standardised rows of a block to a buffer. Rows of
        positive weight come first and rows of negative weight last. The Gram matrix of the last is
        subtracted from the Gram matrix of the first.
        """
        from skfair._kernels.linear import signed_rows

        X, n = self.X, self.n_samples
        mean, inverse = self.mean.astype(X.dtype), (1 / self.scale).astype(X.dtype)

        def of_part(start: int, stop: int) -> FloatArray:
            total = np.zeros_like(out)
            buffer = np.empty((min(BLOCK_ROWS, stop - start), out.shape[0]), X.dtype)
            for first in range(start, stop, BLOCK_ROWS):
                block = slice(first, min(first + BLOCK_ROWS, stop))
                rows = buffer[: block.stop - first]
                front, back = signed_rows(X[block], mean, inverse, weights[block], rows)
                above, below = rows[:front], rows[back:]
                total += np.dot(above.T, above)  # numpy calls BLAS's symmetric update for A.T A
                total -= np.dot(below.T, below)
            return total

        for part in over_blocks(of_part, n, max(BLOCK_ROWS, -(-n // _PARTS))):
            out += part
