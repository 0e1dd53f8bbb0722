"""A fairness constraint on given rows: cells, moments, a matrix that compares them, bounds.

:func:`skfair.constraints.base.bind` makes a :class:`BoundConstraint` of a constraint and the rows
of a fit. Everything below knows constraints only in this form. What is computed, in this order:

- moments of rows, averaged over each *cell*, the rows that are in the same groups and, if it
  matters, of the same class (:meth:`BoundConstraint.means`),
- rates of groups, which are averages of cell means, or quotients of two averages
  (:meth:`BoundConstraint.rates_between`),
- for solvers, the linear combinations of rates that are kept between ``lower`` and ``upper``
  (``matrix`` and :meth:`BoundConstraint.row_values`); for reports and strict enforcement, the
  disparity that the limit bounds (:meth:`BoundConstraint.disparity`).

:meth:`BoundConstraint.restricted`, :meth:`~BoundConstraint.on_rows`,
:meth:`~BoundConstraint.refitted` and :meth:`~BoundConstraint.scaled` return the constraint on other
rates, rows or limits.
"""

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
from skfair.losses import MANY_SCORES
from skfair.utils.rounding import ROUNDING

Interval = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class BoundConstraint:
    """A constraint on given rows: all that problems and solvers see of it."""

    name: str
    moment: Moment  # what is averaged
    # (n_samples,): the cell of each row. Rows that count in no rate have cell 0 and weight 0
    cells: IntArray
    # (n_samples,): weight of a row in the mean of its cell; they add up to 1 in each cell
    row_weights: FloatArray
    rates: sparse.csr_array  # (n_rates, n_cells): turns cell means into the rates of groups
    # (n_rates, n_cells): turns cell means into the overall rate that belongs to each rate, which is
    # the rate of all rows of the same class or stratum
    overall: sparse.csr_array
    # The exact rates and overall rates if they are quotients, else None. ``rates`` and ``overall``
    # are then linear approximations for solvers, and reports use the exact ones
    quotients: tuple[Quotients, Quotients] | None
    rate_names: tuple[str, ...]  # name of the group (and class) of each rate
    rate_groups: IntArray  # (n_rates,): number of the group of each rate; -1 for all rows
    # (n_rates,): number of the set that each rate belongs to, rising from 0. The rates of one set,
    # the groups of an attribute within a class or stratum, are compared with each other
    compared_sets: IntArray
    comparison: Comparison  # how rates become one number
    max_disparity: float  # the limit on that number
    is_fairness: bool = True  # False for floors and budgets, which limit no disparity

    # The comparison turns the limit into ``n_constraints`` combinations of rates that are kept
    # between bounds, see :class:`skfair.constraints.comparisons.Rows`. These are the factors of the
    # rates and of the overall rates, (n_constraints, n_rates)
    of_rates: sparse.csr_array = field(init=False)
    of_overall: sparse.csr_array = field(init=False)
    # (n_constraints,): the centre that a combination is measured from, -1 if it has none
    centers: IntArray = field(init=False)
    # (n_constraints,): the bounds
    lower: FloatArray = field(init=False)
    upper: FloatArray = field(init=False)
    n_centers: int = field(init=False)  # each centre is one more parameter of the problem
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
        """Shape (n_constraints, n_cells): its product with cell means is kept between the bounds.

        Centres are not in it: the problem subtracts them.
        """
        matrix = sparse.csr_array(self.of_rates @ self.rates + self.of_overall @ self.overall)
        matrix.sort_indices()  # then products add up the cells in a fixed order
        return matrix

    def means(self, values: FloatArray) -> FloatArray:
        """Return the mean of ``values``, one per row, in each cell."""
        return sums_by_cell(self.cells, self.row_weights, values, self.n_cells)

    def strict_sums(self, scores: FloatArray, rows: slice) -> FloatArray:
        """Return what some rows add to the strict means of the cells, given their scores.

        Strict means count decisions or exact losses. If the rows are divided into blocks, the
        results for all blocks add up to the means.
        """
        values = self.moment.on_rows(rows).strict(scores)
        return sums_by_cell(self.cells[rows], self.row_weights[rows], values, self.n_cells)

    def rates_between(self, low: FloatArray, high: FloatArray) -> tuple[Interval, Interval]:
        """Return bounds of rates and of overall rates, given bounds of the cell means."""
        if self.quotients is not None:
            rates, overall = self.quotients
            return rates.between(low, high), overall.between(low, high)
        return (self.rates @ low, self.rates @ high), (self.overall @ low, self.overall @ high)

    def row_values(self, means: FloatArray) -> FloatArray:
        """Return the combinations that the bounds are for, (n_constraints,), without centres.

        If rates are quotients, these are the exact ones and not their linear approximations.
        """
        if self.quotients is None:
            return np.asarray(self.matrix @ means)
        (rates, _), (overall, _) = self.rates_between(means, means)
        return np.asarray(self.of_rates @ rates + self.of_overall @ overall)

    def differences_of_means(self, means: FloatArray) -> FloatArray:
        """Return each group's rate minus the overall one, or the rate itself if it is capped."""
        (rates, _), (overall, _) = self.rates_between(means, means)
        return np.asarray(self.comparison.by_group(rates, overall))

    def disparity(self, scores: FloatArray) -> float:
        """Return the strict disparity, the number that ``max_disparity`` limits."""
        return self.disparity_of_means(self.means(self.moment.strict(scores)))

    def disparity_of_means(self, means: FloatArray) -> float:
        """Return the disparity, given cell means.

        If it exceeds the limit by rounding only, the limit is returned: in floating-point numbers,
        160/200 - 150/200 is more than 0.05.
        """
        disparity, limit = float(self.least_disparity(means, means)), self.max_disparity
        return limit if limit < disparity <= limit + ROUNDING else disparity

    def least_disparity(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the least disparity that cell means between two bounds can have.

        The bounds have the shape (n_cells, ...). The result has this shape without the first axis.
        """
        return self.comparison.least(*self.rates_between(low, high), self.compared_sets)

    def restricted(self, which: IntArray, limit: float, name: str) -> BoundConstraint:
        """Return the constraint on the rates ``which``, under another limit and name."""
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

        ``weights`` replace the weights of the chosen rows. They are scaled so that they add up to 1
        in each cell. ``others`` are fields of the result that differ from this constraint.
        """
        cells, weights = self.cells[rows], self.row_weights[rows] if weights is None else weights
        of_cells = np.bincount(cells, weights, self.n_cells)
        weights = weights / np.where(of_cells > 0, of_cells, 1.0)[cells]
        moment = self.moment.on_rows(rows)
        return replace(self, moment=moment, cells=cells, row_weights=weights, **others)

    def refitted(self, rows: IntArray, sample_weight: FloatArray | float = 1.0) -> BoundConstraint:
        """Return the constraint as if it had been bound to some of the rows alone.

        Folds use this. In contrast to :meth:`on_rows`, the weights of the cells in each rate are
        those that the chosen rows give them, and groups without any of the rows are left out.
        ``sample_weight`` is the one that the constraint was bound with. It is read again because
        ``row_weights`` are already rounded quotients.
        """
        assert self.quotients is None  # quotients have no matrix of averages
        weights = np.bincount(self.cells[rows], self.row_weights[rows], self.n_cells)
        left = weights.astype(np.float64, copy=False)  # bincount of no rows counts integers
        rates, overall = (_averaging(m, left) for m in (self.rates, self.overall))
        weights_of_rows = np.where(self.row_weights > 0, sample_weight, 0.0)[rows]
        part = self.on_rows(rows, weights_of_rows, rates=rates, overall=overall)
        if np.array_equal(rates.data, self.rates.data) and not self.comparison.against_overall:
            # Each rate is the mean of one cell, so the matrix does not change.
            vars(part)["matrix"] = self.matrix
            return part
        has_rows = np.diff(rates.indptr) > 0
        if has_rows.all():
            return part
        return part.restricted(np.flatnonzero(has_rows), self.max_disparity, self.name)

    def scaled(self, factor: float) -> BoundConstraint:
        """Return the constraint with its limit multiplied by a factor.

        The factor is the change of units, if targets are rescaled, or the share of the limit that
        strict enforcement aims at.
        """
        return replace(self, max_disparity=self.max_disparity * factor)


def sums_by_cell(
    cells: IntArray, weights: FloatArray, values: FloatArray, n_cells: int
) -> FloatArray:
    """Return the weighted sum of the values in each cell, (n_cells,).

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.constraints.bound import sums_by_cell
    >>> sums_by_cell(np.array([1, 0, 1]), np.array([0.5, 1.0, 0.5]), np.array([1.0, 2, 3]), 2)
    array([2., 2.])
    """
    if cells.size < MANY_SCORES:
        sums = np.bincount(cells, weights * values, n_cells)
        return sums.astype(np.float64, copy=False)  # bincount of no rows counts integers
    from skfair._kernels import row_parts

    four = np.zeros((4, n_cells))
    row_parts.cell_sums(cells, weights, np.asarray(values, dtype=np.float64), four)
    return np.asarray(four.sum(axis=0))


def _averaging(
    rates: sparse.csr_array,  # (n_rates, n_cells): weights of cells, which add up to 1 in each row
    left: FloatArray,  # (n_cells,): share of each cell's weight that its remaining rows have
) -> sparse.csr_array:
    """Return the weights of cells in each rate if only a share of each cell is left.

    The weights of a rate are divided by their sum, so that they add up to 1 again. A rate that has
    no cell left becomes a row of zeros.
    """
    rates = rates.copy()
    rates.data = rates.data * left[rates.indices]
    rates.eliminate_zeros()
    total = np.asarray(rates.sum(axis=1)).ravel()
    rates.data /= np.repeat(total, np.diff(rates.indptr))
    return rates
