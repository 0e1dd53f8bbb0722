"""How the means of several cells vary together, if units have rows in more than one of them.

One CV is judged under two names, or one patient is seen before and after a treatment: what is
special about the unit is then in both means, and cancels in their difference. The *influence* of a
unit on the mean m of a cell is what its rows there add to it: the sum of w (x - m) over these rows,
divided by the weight of the cell. A mean is about its expectation plus the influences of
independent units. So the covariance of two means is the sum, over all units, of the product of
their two influences, and the covariance of a mean with itself is its cluster-robust variance.

:attr:`UnitSums.shared` makes a :class:`SharedUnits` of the sums that a
:class:`skfair.groups.rates.CellMeans` keeps, and monitors make one of sums over earlier batches.
Tests, reports, audits and monitors ask it for the correlations of the means that they compare. The
variances of the means stay those of their effective sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.row_units import UnitParts


@dataclass(frozen=True, eq=False)
class SharedUnits:
    """Sums over units of products by pair of cells, sparse or dense matrices (n_cells, n_cells)."""

    covariances: Any  # products of the influences of the unit on the two means
    overlaps: Any  # products of the shares of the unit in the weights of the two cells

    def correlations(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the correlation of the means of each pair of cells.

        A positive covariance is made smaller by half a unit, as Newcombe (1998) does for pairs: if
        few units differ, or none does, it is not known that none will. With n units of one row in
        either cell, that is 1 / (2 n^2). The correlation is 0 if a mean has no variance.
        """
        covariances, overlaps = _entries(self.covariances, first, second), self.overlaps.diagonal()
        # A cell overlaps itself by 1 over the number of its units.
        half = 0.5 * overlaps[first] * overlaps[second]
        lessened = np.where(covariances > 0, np.maximum(covariances - half, 0.0), covariances)
        variances = self.covariances.diagonal()
        product = np.sqrt(np.maximum(variances[first] * variances[second], 0.0))
        found = np.where(product > 0, lessened / np.where(product > 0, product, 1.0), 0.0)
        return np.asarray(np.clip(np.where(first == second, 1.0, found), -1.0, 1.0))

    def overlap(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return 1 over the number of shared units of each pair of cells; 0 if there are none.

        It is that number if every unit has one row in both cells. In general it is the sum, over
        units, of the product of their shares in the weights of the two cells.
        """
        return _entries(self.overlaps, first, second)


@dataclass(frozen=True, eq=False)
class UnitSums:
    """What each unit adds to the cells that it lies in; some unit lies in several."""

    parts: UnitParts  # the rows of a unit in a cell are a part
    sums: FloatArray  # (2, n_parts): the sums of the weights, and of the weighted values
    n_cells: int

    @cached_property
    def shared(self) -> SharedUnits:
        """How the means of the cells vary together."""
        cells = self.parts.cells
        weight, total = (np.bincount(cells, own, self.n_cells) for own in self.sums)
        inverse = np.divide(1.0, weight, out=np.zeros(self.n_cells), where=weight > 0)
        shares, values = self.sums * inverse[cells]
        influences = values - (total * inverse)[cells] * shares
        pair = (unit_products(self.parts, own[None], self.n_cells) for own in (influences, shares))
        return SharedUnits(*pair)

    def only(self, is_kept: BoolArray) -> UnitSums:
        """Leave out the cells that are not kept."""
        kept = is_kept[self.parts.cells]
        return UnitSums(self.parts.only(is_kept), self.sums[:, kept], int(is_kept.sum()))


def unit_products(parts: UnitParts, sums: FloatArray, n_cells: int) -> Any:
    """Return the sums, over units, of the products of any two numbers that they add to cells.

    ``sums`` is (n_numbers, n_parts), and the result is a sparse matrix with a row and a column for
    each number of each cell: the first cell first.
    """
    n_numbers, n_units = len(sums), int(parts.units.max(initial=-1)) + 1
    columns = np.arange(n_numbers)[:, None] + n_numbers * parts.cells
    places = np.tile(parts.units, n_numbers), columns.ravel()
    each = sums / np.sqrt(parts.n_equal)  # a product is divided by the number of units
    by_unit: Any = sparse.csr_array((each.ravel(), places), (n_units, n_numbers * n_cells))
    return (by_unit.T @ by_unit).tocsr()


def _entries(matrix: Any, first: IntArray, second: IntArray) -> FloatArray:
    """Return the entries of a sparse matrix at some places, as an array of their shape."""
    found = matrix[first.ravel(), second.ravel()]
    # Some versions of scipy return a sparse array.
    found = found.toarray() if hasattr(found, "toarray") else found
    return np.asarray(found, np.float64).reshape(first.shape)
