"""Linear scores of rows in partitions of Dask collections, and the choice of the linear model.

Estimators call :func:`linear_score`, which returns a model of the right class. This is the only
model that knows where rows are. Each operation of :class:`skfair.models.linear.LinearScore` is run
on every partition, and the results are joined (scores) or added up (sums over the rows). Arguments
and results are arrays of the process that fits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skfair._typing import FloatArray, IntArray, Rows
from skfair.models.linear import LinearScore
from skfair.models.units import Units, column_origin, column_sums
from skfair.utils.partitioned_rows import PartitionedRows


def linear_score(
    X: Rows | PartitionedRows,
    **options: Any,  # arguments of :class:`skfair.models.linear.LinearScore`
) -> LinearScore:
    """Return linear scores of rows in memory or in partitions.

    Partitions that are small enough are collected, and become rows in memory.
    """
    if not isinstance(X, PartitionedRows):
        return LinearScore(X, **options)
    if not X.is_small:
        return PartitionedLinearScore(X, **options)
    return LinearScore(X.taken(np.arange(len(X))), **options)


class PartitionedLinearScore(LinearScore):
    """Linear scores of rows in partitions."""

    X: PartitionedRows
    # The model is never wide, because Newton steps by products would visit all partitions for each
    # product. It does not count as sparse, even if partitions are, so that the methods of the base
    # class call ``product``, which visits the partitions.
    is_sparse = is_wide = False

    def __init__(
        self,
        X: PartitionedRows,
        *,
        fit_intercept: bool = True,
        sample_weight: FloatArray | None = None,
        units: Units | None = None,
    ) -> None:
        self.X, self.fit_intercept = X, fit_intercept
        self.n_samples, self.n_features = X.shape
        self.n_parameters = self.n_features + int(fit_intercept)
        self.units = _units(X, sample_weight, fit_intercept) if units is None else units

    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the scores of all or some rows, and the tape.

        The tape is None for all rows, else the model of the chosen rows, which are collected.
        """
        if rows is None:
            return super().forward(theta)
        few = self._model(self.X.taken(rows))
        return few.forward(theta)[0], few

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``."""
        return tape.pullback(None, slopes) if tape else self._total("pullback", None, slopes)

    def pullbacks(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return one gradient for each line of slopes."""
        return tape.pullbacks(None, slopes) if tape else self._total("pullbacks", None, slopes)

    def pullback_cells(self, cells: IntArray, slopes: FloatArray, n_cells: int) -> FloatArray:
        """Return one gradient per cell, (n_cells, n_parameters), in one pass over the rows."""
        cells = cells.astype(np.min_scalar_type(n_cells))  # fewer bytes to send
        return self._total("pullback_cells", cells, slopes, n_cells=n_cells)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return Z' diag(weights) Z for standardised rows Z, weights of either sign."""
        return self._total("gram", weights)

    def on_rows(self, rows: IntArray) -> LinearScore:
        """Return the model of some rows, in ascending order, in the same coordinates."""
        few = linear_score(self.X.subset(rows), fit_intercept=self.fit_intercept, units=self.units)
        if isinstance(few, PartitionedLinearScore):
            return few
        return few.on_rows(np.arange(rows.size))

    def _model(self, X: Rows) -> LinearScore:
        """Return the model of rows in memory, in the same coordinates."""
        return LinearScore(X, fit_intercept=self.fit_intercept, units=self.units)

    def _total(self, method: str, *columns: Any, **options: Any) -> FloatArray:
        """Return the sum over partitions of what a method returns for the model of each.

        ``columns`` have one entry per row, and each partition gets its own entries.
        """
        own = {"fit_intercept": self.fit_intercept, "units": self.units}
        return np.asarray(self.X.total(_ask, *columns, method=method, own=own, **options))


def _ask(X: Rows, *columns: Any, method: str, own: dict[str, Any], **options: Any) -> Any:
    """Call a method of the model of one partition; ``own`` are the arguments of the model."""
    return getattr(LinearScore(X, **own), method)(*columns, **options)


def _units(X: PartitionedRows, sample_weight: FloatArray | None, centered: bool) -> Units:
    """Return the means and deviations of the columns, in one pass over the partitions.

    Distances are measured from a row of positive weight, so that a column that is constant in the
    rows of positive weight has exactly the deviation 0.
    """
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    origin = column_origin(X.taken(np.flatnonzero(weights)[:1]))
    first, second = X.total(column_sums, weights / weights.sum(), origin=origin)
    return Units.of_sums(origin, first, second, centered=centered)
