"""What score models need from a data matrix: products, and means and scales of its columns.

- :func:`compact_rows` stores X as CSR if it is mostly zero.
- :func:`product` and :func:`row_sums` multiply X by vectors in double precision, whatever the type
  of X.
- :class:`Units` holds the means and scales by which models standardise columns without changing X.
  They are made of sums (:func:`column_sums`) of distances from some row (:func:`column_origin`). If
  the rows are in partitions, each partition computes its own sums, which are added up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skfair._typing import FloatArray, Rows
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.pieces import ROWS
from skfair.utils.threads import over_blocks

# Number of rows in a block, in passes that copy each block.
BLOCK_ROWS = 4096
# From this many rows on, a kernel computes the sums of columns without copying blocks. Other files
# use it as the size from which data count as large.
MANY_ROWS = 1 << 17
# If the standard deviation of a column is smaller, its squares lose their digits or become 0.
_SMALLEST = 1e-152
# Dense data are kept as CSR if at most this share of the entries is nonzero.
SPARSE_SHARE = 0.2


def compact_rows(X: Rows) -> Any:
    """Return dense rows that are mostly zero as CSR, and CSR rows with sorted column numbers."""
    if isinstance(X, np.ndarray):
        return sparse.csr_array(X) if _is_mostly_zero(X) else X
    return X if X.has_sorted_indices else X.sorted_indices()


def _is_mostly_zero(X: NDArray[Any]) -> bool:
    """Whether a dense matrix is cheaper as CSR.

    Most dense data are recognised by a sample of about 256 rows, without a pass over all.
    """
    step = max(1, X.shape[0] // 256)
    if np.count_nonzero(X[::step]) > 2 * SPARSE_SHARE * X[::step].size:
        return False
    return bool(np.count_nonzero(X) <= SPARSE_SHARE * X.size)


def product(X: Rows | PartitionedRows, vector: FloatArray) -> FloatArray:
    """Return X times a vector, computed in double precision.

    Rows of single precision are not converted as a whole: kernels convert entry by entry. Sums of
    single precision are too coarse to find where gradients vanish, and to tell apart the scores of
    millions of rows.
    """
    if isinstance(X, PartitionedRows):
        return np.asarray(X.joined(product, vector=vector))
    if isinstance(X, np.ndarray):
        # The transpose of rows, as pull-backs pass it, has contiguous columns: its product is a sum
        # of the rows.
        return row_sums(X.T, vector) if X.flags.f_contiguous else _row_scores(X, vector)
    if X.dtype == np.float64:
        return np.asarray(X @ vector)
    from skfair._kernels.linear import sparse_scores

    out = np.zeros(X.shape[0])
    sparse_scores(X.data, X.indices, X.indptr, vector, out)
    return out


def _row_scores(X: NDArray[Any], coef: FloatArray) -> FloatArray:
    """Return each row of a dense matrix times a vector."""
    out = np.empty(X.shape[0])

    def of_block(start: int, stop: int) -> None:
        if X.dtype == np.float64:
            np.dot(X[start:stop], coef, out=out[start:stop])
        else:
            from skfair._kernels.linear import dense_row_scores

            dense_row_scores(np.ascontiguousarray(X[start:stop]), coef, out[start:stop])

    over_blocks(of_block, X.shape[0], ROWS)
    return out


def row_sums(X: NDArray[Any], slopes: FloatArray) -> FloatArray:
    """Return the sum of the rows of a dense matrix, each times its slope.

    ``slopes`` are (n_rows,), or (n_lines, n_rows) for one sum for each line.
    """

    def of_block(start: int, stop: int) -> FloatArray:
        if X.dtype == np.float64:
            return np.asarray(np.dot(slopes[..., start:stop], X[start:stop]))
        from skfair._kernels.linear import dense_row_sums

        out = np.zeros(shape)
        for own, total in zip(np.atleast_2d(slopes), np.atleast_2d(out), strict=True):
            dense_row_sums(X[start:stop], own[start:stop], total)
        return out

    shape = (*slopes.shape[:-1], X.shape[1])
    parts = over_blocks(of_block, X.shape[0], ROWS)
    return np.asarray(sum(parts, start=np.zeros(shape)))


class Units(NamedTuple):
    """The origin and the scale that standardise the columns."""

    mean: FloatArray  # (n_features,): subtracted from each column
    scale: FloatArray  # (n_features,): each column is divided by it
    is_empty: NDArray[np.bool_]  # (n_features,): whether a column is then 0 everywhere

    @classmethod
    def of_columns(
        cls, X: Rows, sample_weight: FloatArray | None = None, *, centered: bool = True
    ) -> Units:
        """Return the weighted means and standard deviations of a dense or CSR matrix, O(n d).

        The scale of a constant column is 1. If not ``centered``, the mean is 0 and the scale the
        root mean square. Sums are taken in float64 of differences from a row of the data, so that a
        constant column has exactly the deviation 0, however many rows there are.
        """
        X, sample_weight = _counted(X, sample_weight)
        n = X.shape[0]
        even = np.full(n, 1 / n)
        weights = even if sample_weight is None else sample_weight / sample_weight.sum()
        origin = column_origin(X)
        return cls.of_sums(origin, *column_sums(X, weights, origin), centered=centered)

    @classmethod
    def of_sums(
        cls, origin: FloatArray, first: FloatArray, second: FloatArray, *, centered: bool = True
    ) -> Units:
        """Return the units, given the sums of :func:`column_sums` over all rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            variance = np.maximum(second - first**2, 0.0)
            # If a column hardly varies and the origin is far from its values, all that is left of
            # the variance is rounding.
            variance[variance <= 1e-14 * first**2] = 0.0
            mean = origin + first
            scale = np.sqrt(variance if centered else variance + mean**2)
        overflowing = np.flatnonzero(~np.isfinite(scale))
        if overflowing.size:
            raise ValueError(
                "X has columns whose squares overflow, the first of them is column "
                f"{overflowing[0]}. Divide X by its largest value, for example with "
                "sklearn.preprocessing.MaxAbsScaler."
            )
        vanishing = np.flatnonzero((scale > 0) & (scale < _SMALLEST))
        if vanishing.size:
            raise ValueError(
                f"X has columns whose squares vanish, the first of them is column {vanishing[0]}, "
                f"which varies by {scale[vanishing[0]]:g}. Divide X by its largest value, for "
                "example with sklearn.preprocessing.MaxAbsScaler."
            )
        middle = mean if centered else np.zeros_like(mean)
        return cls(middle, np.where(scale > 0, scale, 1.0), scale == 0)

    @classmethod
    def of_ranges(
        cls, X: Rows, sample_weight: FloatArray | None = None, *, centered: bool = True
    ) -> Units:
        """Return units as :meth:`of_columns`, but with the range as scale of columns of two values.

        If not ``centered``, the scale of these columns is their largest absolute value. O(n d).
        """
        X, sample_weight = _counted(X, sample_weight)
        ends = X.min(axis=0), X.max(axis=0)
        low, high = (
            np.asarray(end if isinstance(X, np.ndarray) else end.toarray().ravel(), np.float64)
            for end in ends
        )
        units = cls.of_columns(X, sample_weight)
        with np.errstate(over="ignore"):
            # A variance is at most (high - mean) (mean - low), and equal to it only if all values
            # are low or high (the inequality of Bhatia and Davis).
            has_two_values = units.scale**2 >= 0.999 * (high - units.mean) * (units.mean - low)
        spread = high - low
        if not centered:
            units = cls.of_columns(X, sample_weight, centered=False)
            spread = np.maximum(np.abs(low), np.abs(high))
        has_two_values &= ~units.is_empty
        return units._replace(scale=np.where(has_two_values, spread, units.scale))

    @property
    def fit_single_precision(self) -> bool:
        """Whether rows of float32 can be centred and scaled without overflow or underflow."""
        return bool(self.scale.min(initial=1.0) > 1e-15 and self.scale.max(initial=1.0) < 1e15)


def _counted(X: Rows, sample_weight: FloatArray | None) -> tuple[Rows, FloatArray | None]:
    """Return the rows of positive weight with their weights.

    Rows of weight 0 do not count: a column that varies only in these rows is a constant column.
    """
    if sample_weight is None or sample_weight.all():
        return X, sample_weight
    rows = np.flatnonzero(sample_weight)
    return X[rows], sample_weight[rows]


def column_origin(X: Rows) -> FloatArray:
    """Return some value of each column: 0 for CSR columns with zeros that are not stored."""
    if isinstance(X, np.ndarray):
        return np.asarray(X[0], dtype=np.float64)
    origin = np.zeros(X.shape[1])
    origin[X.indices] = X.data  # one of the stored values of each column, whichever it is
    origin[np.bincount(X.indices, minlength=X.shape[1]) < X.shape[0]] = 0.0
    return origin


def column_sums(X: Rows, weights: FloatArray, origin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weighted sums over the rows of x - origin and of (x - origin)**2, for each column.

    Sums of parts of the rows may be added up. The weights of all rows add up to 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if isinstance(X, np.ndarray):
            return _dense_sums(X, weights, origin)
        return _sparse_sums(X, weights, origin)


def _dense_sums(
    X: NDArray[Any], weights: FloatArray, origin: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return :func:`column_sums` of dense rows, block by block."""
    is_long = X.shape[0] >= MANY_ROWS
    if is_long:
        from skfair._kernels.linear import dense_column_sums

    def of_block(start: int, stop: int) -> FloatArray:
        """Return both sums of a block, (2, n_features).

        Distances are first taken from a row of the block, so that columns that are constant in the
        block lose no digits, and then moved by ``far`` to the common origin.
        """
        rows, own = X[start:stop], weights[start:stop]
        near = np.asarray(rows[np.argmax(own > 0)], dtype=np.float64)
        if is_long:
            sums = np.zeros((2, X.shape[1]))
            dense_column_sums(rows, own, near, sums[0], sums[1])
        else:
            apart = rows - near
            first = np.dot(own, apart)
            sums = np.stack([first, np.dot(own, np.square(apart, out=apart))])
        far, weight = near - origin, own.sum()
        sums[1] += far * (2 * sums[0] + weight * far)
        sums[0] += weight * far
        return sums

    parts = over_blocks(of_block, X.shape[0], ROWS if is_long else BLOCK_ROWS)
    sums = sum(parts, start=np.zeros((2, X.shape[1])))
    return sums[0], sums[1]


def _sparse_sums(X: Any, weights: FloatArray, origin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return :func:`column_sums` of CSR rows: stored values, plus the zeros that are not stored."""
    d = X.shape[1]
    entry_weights = np.repeat(weights, np.diff(X.indptr))
    unstored = weights.sum() - np.bincount(X.indices, entry_weights, minlength=d)
    # If a column stores an entry for every row, its unstored zeros have the weight 0. Rounding
    # would leave a tiny weight, and a constant column would seem to vary.
    unstored[np.bincount(X.indices, minlength=d) >= X.shape[0]] = 0.0
    apart = X.data - origin[X.indices]
    first, second = (
        np.bincount(X.indices, entry_weights * apart**power, minlength=d)
        + unstored * (-origin) ** power
        for power in (1, 2)
    )
    return first, second
