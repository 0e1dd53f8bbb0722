"""A fairness constraint on given rows: cells, moments, a matrix that compares them, bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.cells import Quotients
from skfair.constraints.comparisons import Comparison
from skfair.constraints.moments import Moment
from skfair.utils.rounding import ROUNDING

Interval = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class BoundConstraint:
    """A constraint on given rows: all that problems and solvers see of it."""

    name: str  # name of the constraint
    moment: Moment  # what is averaged
    # (n_samples,): the cell of each row; 0 for rows that count nowhere, whose weight is 0
    cells: IntArray
    # (n_samples,): weight of a row in the mean of its cell; they add up to 1 in each cell
    row_weights: FloatArray
    rates: sparse.csr_array  # (n_rates, n_cells): turns cell means into the rates of groups
    # (n_rates, n_cells): turns cell means into the rate that each group's rate may be
    # compared with
    overall: sparse.csr_array
    # Rates and overall rates that are quotients; ``rates`` and ``overall`` are then linear
    # approximations for solvers, and whatever is reported is exact
    quotients: tuple[Quotients, Quotients] | None
    rate_names: tuple[str, ...]  # name of the group (and class) of each rate
    rate_groups: IntArray  # (n_rates,): number of the group of each rate; -1 for all rows
    # (n_rates,): number of the set that each rate belongs to; those of one set, an attribute
    # within a class or stratum, are compared with each other
    compared_sets: IntArray
    comparison: Comparison  # how rates become one number
    max_disparity: float  # the bound on it
    is_fairness: bool = True  # False for floors and budgets: limits, but on no disparity

    # What the comparison makes of the limit, see :class:`skfair.constraints.comparisons.Rows`:
    # combinations of rates, (n_constraints, n_rates), that are kept between bounds
    of_rates: sparse.csr_array = field(init=False)
    of_overall: sparse.csr_array = field(init=False)
    # (n_constraints,): the centre that a combination is measured from, -1 for none; the bounds
    centers: IntArray = field(init=False)
    lower: FloatArray = field(init=False)
    upper: FloatArray = field(init=False)
    n_centers: int = field(init=False)  # the centres are parameters of the problem
    row_names: tuple[str, ...] = field(init=False)  # what each combination compares

    def __post_init__(self) -> None:
        rows = self.comparison.rows(self.compared_sets, self.rate_names, self.max_disparity)
        vars(self).update(rows._asdict(), n_centers=int(rows.centers.max(initial=-1)) + 1)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.rates.shape[1])

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """Shape (n_constraints, n_cells): what is kept between ``lower`` and ``upper``."""
        matrix = sparse.csr_array(self.of_rates @ self.rates + self.of_overall @ self.overall)
        matrix.sort_indices()  # products add up in the order of the cells
        return matrix

    def means(self, values: FloatArray) -> FloatArray:
        """Average a value per row over each cell."""
        weighted = self.row_weights * values
        return np.bincount(self.cells, weighted, self.n_cells).astype(np.float64)

    def strict_sums(self, scores: FloatArray, rows: slice) -> FloatArray:
        """Return what some rows, with their scores, add to the strict means of the cells."""
        values = self.moment.on_rows(rows).strict(scores)
        sums = np.bincount(self.cells[rows], self.row_weights[rows] * values, self.n_cells)
        return sums.astype(np.float64, copy=False)  # bincount of no rows counts integers

    def rates_between(self, low: FloatArray, high: FloatArray) -> tuple[Interval, Interval]:
        """Return bounds of rates and of overall rates, given bounds of the cell means."""
        if self.quotients is not None:
            rates, overall = self.quotients
            return rates.between(low, high), overall.between(low, high)
        return (self.rates @ low, self.rates @ high), (self.overall @ low, self.overall @ high)

    def row_values(self, means: FloatArray) -> FloatArray:
        """Return the exact values of the constraint rows: of quotients, not the linear ones."""
        if self.quotients is None:
            return np.asarray(self.matrix @ means)
        (rates, _), (overall, _) = self.rates_between(means, means)
        return np.asarray(self.of_rates @ rates + self.of_overall @ overall)

    def differences_of_means(self, means: FloatArray) -> FloatArray:
        """Return each group's rate minus the overall one; of bounded rates the rate."""
        (rates, _), (overall, _) = self.rates_between(means, means)
        return np.asarray(self.comparison.by_group(rates, overall))

    def disparity(self, scores: FloatArray) -> float:
        """Return the strict disparity, the number that ``max_disparity`` limits."""
        return self.disparity_of_means(self.means(self.moment.strict(scores)))

    def disparity_of_means(self, means: FloatArray) -> float:
        """Return the disparity that cell means amount to.

        A disparity that exceeds the limit by rounding only is the limit: of 160/200 - 150/200,
        floating-point numbers make more than 0.05.
        """
        disparity, limit = float(self.least_disparity(means, means)), self.max_disparity
        return limit if limit < disparity <= limit + ROUNDING else disparity

    def least_disparity(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the least disparity of cell means between bounds of shape (n_cells, ...)."""
        return self.comparison.least(*self.rates_between(low, high), self.compared_sets)

    def restricted(self, which: IntArray, limit: float, name: str) -> BoundConstraint:
        """Return the constraint on some of its rates only, with a limit of their own."""
        quotients = self.quotients
        if quotients is not None:
            rates, overall = (Quotients(q.sums[which], q.totals[which]) for q in quotients)
            quotients = rates, overall
        return replace(
            self,
            name=name,
            rates=sparse.csr_array(self.rates[which]),
            overall=sparse.csr_array(self.overall[which]),
            quotients=quotients,
            rate_names=tuple(self.rate_names[r] for r in which),
            rate_groups=self.rate_groups[which],
            compared_sets=np.unique(self.compared_sets[which], return_inverse=True)[1],
            max_disparity=limit,
        )

    def on_rows(
        self, rows: IntArray, weights: FloatArray | None = None, **others: Any
    ) -> BoundConstraint:
        """Return the constraint on a sample of the rows: rates are made of the same cells.

        The rows may have other weights, and the constraint other fields.
        """
        cells, weights = self.cells[rows], self.row_weights[rows] if weights is None else weights
        of_cells = np.bincount(cells, weights, self.n_cells)
        weights = weights / np.where(of_cells > 0, of_cells, 1.0)[cells]
        moment = self.moment.on_rows(rows)
        return replace(self, moment=moment, cells=cells, row_weights=weights, **others)

    def refitted(self, rows: IntArray, sample_weight: FloatArray | float = 1.0) -> BoundConstraint:
        """Return the constraint as if it had been bound to some of the rows alone.

        Rates are averages of cell means, and groups that have none of the rows are left out. The
        weights are those that were given: nothing is left of other rows, not even their rounding.
        """
        assert self.quotients is None
        weights = np.bincount(self.cells[rows], self.row_weights[rows], self.n_cells)
        of_cells = weights.astype(np.float64, copy=False)  # bincount of no rows counts integers
        rates, overall = (_averaging(m, of_cells) for m in (self.rates, self.overall))
        weights_of_rows = np.where(self.row_weights > 0, sample_weight, 0.0)[rows]
        part = self.on_rows(rows, weights_of_rows, rates=rates, overall=overall)
        if np.array_equal(rates.data, self.rates.data) and not self.comparison.against_overall:
            # Each rate is the mean of one cell, so that nothing is new in what compares them.
            vars(part)["matrix"] = self.matrix
            return part
        has_rows = np.diff(rates.indptr) > 0
        if has_rows.all():
            return part
        return part.restricted(np.flatnonzero(has_rows), self.max_disparity, self.name)

    def scaled(self, factor: float) -> BoundConstraint:
        """Return the constraint with its bound multiplied, for targets in other units."""
        return replace(self, max_disparity=self.max_disparity * factor)


def _averaging(rates: sparse.csr_array, of_cells: FloatArray) -> sparse.csr_array:
    """Return rates as averages of the shares that are left of the cells; of nothing they are 0."""
    rates = rates.copy()
    rates.data = rates.data * of_cells[rates.indices]
    rates.eliminate_zeros()
    total = np.asarray(rates.sum(axis=1)).ravel()
    rates.data /= np.repeat(total, np.diff(rates.indptr))
    return rates
