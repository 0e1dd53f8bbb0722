"""Linear scores X w + b of dense or CSR rows, in standardised coordinates.

The parameters that solvers see belong to columns of mean 0 and variance 1, so that the scale of a
column makes no difference. X itself is neither copied nor centred: with column means m and
deviations s the scores are X (v / s) + (b - m'(v / s)). The penalty is on the true weights w = v /
s.

Dense rows that are mostly zero (one-hot codes) are kept as CSR, which is much cheaper.
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

# Operations on each entry of X that a Newton step takes with products: two passes for each of about
# 50 conjugate gradients, which wait for memory 10 to 20 times as long as a dense product does.
PRODUCTS_PER_STEP = 2000
# Columns whose mean is less than this many deviations from 0 lose little in single precision.
NEAR = 100.0
# Parts of the rows of which threads make matrices.
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
        # (n_samples,): weights of the rows in means and deviations of the columns
        sample_weight: FloatArray | None = None,
        # Means and deviations, of rows that these are a part of; by default those of the
        # rows
        units: Units | None = None,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.n_samples, self.n_features = X.shape
        self.n_parameters = self.n_features + int(fit_intercept)
        if units is None:
            X = compact_rows(X)
            # Without an intercept nothing would take up the shift.
            units = Units.of_columns(X, sample_weight, centered=fit_intercept)
        self.units = units
        if X.dtype == np.float32 and not self.units.fit_single_precision:
            X = X.astype(np.float64)
        self.X = X
        self.is_sparse = sparse.issparse(X)

    @cached_property
    def _transposed(self) -> Any:
        """The columns of a CSR matrix as rows: pull-backs become gathers instead of scatters."""
        return self.X.T.tocsr()

    @property
    def is_wide(self) -> bool:
        """Whether solving with products is less work than a Gram matrix and its factors."""
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
        """Return the scores of all or some rows, and those rows as a tape."""
        coef, intercept = self.raw(theta)
        if self.is_sparse and rows is not None:  # read where they lie: a copy costs more
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
        """Return one gradient for each line of slopes: dense rows are read once for all."""
        if self.is_sparse:
            return super().pullbacks(tape, slopes)
        sums = row_sums(self.X if tape is None else tape, slopes)
        return self.standardised_sums(sums, slopes.sum(axis=1))

    def on_rows(self, rows: IntArray) -> LinearScore:
        """Return the model of some rows, copied, in the same coordinates.

        The copy has single precision where that loses little.
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
        """Return Z' diag(weights) Z for standardised rows Z, weights of either sign.

        O(nnz per row) squared per row for CSR; for dense rows one BLAS rank update per block.
        """
        p = self.n_parameters
        out = np.zeros((p, p))
        (self._sparse_gram if self.is_sparse else self._dense_gram)(weights, out)
        return out

    def rounding(self, theta: FloatArray) -> float:
        """Return how far two computations of the same score may be apart."""
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
        """Turn X'd and 1'd into the derivative by the standardised parameters."""
        gradient = np.empty((*np.shape(totals), self.n_parameters))
        of_weights = gradient[..., : self.n_features]
        np.subtract(sums, np.multiply.outer(totals, self.mean), out=of_weights)
        of_weights /= self.scale
        if self.fit_intercept:
            gradient[..., -1] = totals
        return gradient

    def _sparse_gram(self, weights: FloatArray, out: FloatArray) -> None:
        from skfair._kernels.linear import sparse_gram

        X, d = self.X, self.n_features
        raw = np.zeros((d, d))
        sparse_gram(X.data, X.indices, X.indptr, weights, raw)
        raw += np.triu(raw, 1).T
        first = np.asarray(product(self._transposed, weights), dtype=np.float64)
        total = weights.sum()
        outer = np.outer(self.mean, first - 0.5 * total * self.mean)
        out[:d, :d] = (raw - (outer + outer.T)) / np.outer(self.scale, self.scale)
        if self.fit_intercept:
            out[:d, d] = out[d, :d] = (first - total * self.mean) / self.scale
            out[d, d] = total

    def _dense_gram(self, weights: FloatArray, out: FloatArray) -> None:
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
                total += above.T @ above  # recognised as symmetric rank updates
                total -= below.T @ below
            return total

        # Parts are few, since each makes a matrix of its own.
        for part in over_blocks(of_part, n, max(BLOCK_ROWS, -(-n // _PARTS))):
            out += part
