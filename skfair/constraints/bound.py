"""A fairness rule on given rows: cells, moments, the matrix that compares them, and bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.moments import Moment

Comparison = Literal["pairwise", "overall", "bounded"]


@dataclass(frozen=True, eq=False)
class BoundConstraint:
    """A rule on given rows: all that problems and solvers see of it.

    Attributes
    ----------
    name : str
        Name of the rule.
    moment : Moment
        What is averaged.
    cells : ndarray of shape (n_samples,)
        The cell of each row; 0 for rows that count nowhere, whose weight is 0.
    row_weights : ndarray of shape (n_samples,)
        Weight of a row in the mean of its cell; they add up to 1 in each cell.
    rates : sparse array of shape (n_rates, n_cells)
        Turns cell means into the rates of groups.
    overall : sparse array of shape (n_rates, n_cells)
        Turns cell means into the rate that each group's rate is compared with under "overall".
    rate_names : tuple of str
        Name of the group (and class) of each rate.
    blocks : ndarray of shape (n_rates,)
        Rates of one block, an attribute within a class, are compared with each other.
    comparison : {"pairwise", "overall", "bounded"}
        Largest minus smallest rate; largest distance to the overall rate; largest rate.
    max_disparity : float
        The bound on it.
    """

    name: str
    moment: Moment
    cells: IntArray
    row_weights: FloatArray
    rates: sparse.csr_array
    overall: sparse.csr_array
    rate_names: tuple[str, ...]
    blocks: IntArray
    comparison: Comparison
    max_disparity: float

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.rates.shape[1])

    @cached_property
    def _block_sizes(self) -> IntArray:
        return np.bincount(self.blocks)

    @cached_property
    def _centered_blocks(self) -> IntArray:
        """Blocks of more than two rates under pairwise comparison: they need a centre."""
        if self.comparison != "pairwise":
            return np.empty(0, np.int64)
        return np.flatnonzero(self._block_sizes > 2)

    @property
    def n_centers(self) -> int:
        """Number of centres, which are parameters of the problem."""
        return self._centered_blocks.size

    @cached_property
    def _compared(self) -> tuple[sparse.csr_array, IntArray, FloatArray]:
        """Matrix of the constraint rows, the centre of each (-1 for none), half-widths."""
        if self.comparison == "bounded":
            n_rates = len(self.rate_names)
            return self.rates, np.full(n_rates, -1), np.full(n_rates, self.max_disparity)
        if self.comparison == "overall":
            keep = np.flatnonzero(self._block_sizes[self.blocks] > 1)
            matrix = sparse.csr_array((self.rates - self.overall)[keep])
            return matrix, np.full(keep.size, -1), np.full(keep.size, self.max_disparity)
        first = np.flatnonzero(np.diff(self.blocks, prepend=-1))
        pairs = first[self._block_sizes == 2]
        members = np.flatnonzero(self._block_sizes[self.blocks] > 2)
        position = np.full(self._block_sizes.size, -1)
        position[self._centered_blocks] = np.arange(self.n_centers)
        matrix = sparse.vstack(
            [self.rates[pairs + 1] - self.rates[pairs], self.rates[members]], format="csr"
        )
        centers = np.concatenate([np.full(pairs.size, -1), position[self.blocks[members]]])
        widths = np.where(centers < 0, 1.0, 0.5) * self.max_disparity
        return sparse.csr_array(matrix), centers, widths

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """What each constraint row compares."""
        names = np.array(self.rate_names, dtype=object)
        if self.comparison == "bounded":
            return tuple(names)
        if self.comparison == "overall":
            kept = names[self._block_sizes[self.blocks] > 1]
            return tuple(f"{name} - overall" for name in kept)
        first = np.flatnonzero(np.diff(self.blocks, prepend=-1))
        pairs = first[self._block_sizes == 2]
        members = names[self._block_sizes[self.blocks] > 2]
        return (
            *(f"{names[p + 1]} - {names[p]}" for p in pairs),
            *(f"{name} - middle" for name in members),
        )

    @property
    def matrix(self) -> sparse.csr_array:
        """Shape (n_constraints, n_cells): what is kept between ``lower`` and ``upper``."""
        return self._compared[0]

    @property
    def centers(self) -> IntArray:
        """The centre that each constraint row is measured from; -1 for none."""
        return self._compared[1]

    @property
    def lower(self) -> FloatArray:
        """Lower bounds of the constraint rows."""
        if self.comparison == "bounded":
            return np.full(self.upper.size, -np.inf)
        return -self.upper

    @property
    def upper(self) -> FloatArray:
        """Upper bounds of the constraint rows."""
        return self._compared[2]

    def means(self, values: FloatArray) -> FloatArray:
        """Average a value per row over each cell."""
        weighted = self.row_weights * values
        return np.bincount(self.cells, weighted, self.n_cells).astype(np.float64)

    def differences(self, scores: FloatArray) -> FloatArray:
        """Return each group's strict rate minus the overall one; under "bounded" the rate."""
        return self.differences_of_means(self.means(self.moment.strict(scores)))

    def differences_of_means(self, means: FloatArray) -> FloatArray:
        """Return the differences that cell means amount to."""
        reference = 0.0 if self.comparison == "bounded" else self.overall @ means
        return np.asarray(self.rates @ means - reference)

    def disparity(self, scores: FloatArray) -> float:
        """Return the strict disparity, the number that ``max_disparity`` bounds."""
        return self.disparity_of_means(self.means(self.moment.strict(scores)))

    def disparity_of_means(self, means: FloatArray) -> float:
        """Return the disparity that cell means amount to."""
        rates = self.rates @ means
        if not rates.size:
            return 0.0
        if self.comparison == "bounded":
            return float(rates.max())
        if self.comparison == "overall":
            return float(np.abs(rates - self.overall @ means).max())
        first = np.flatnonzero(np.diff(self.blocks, prepend=-1))
        spread = np.maximum.reduceat(rates, first) - np.minimum.reduceat(rates, first)
        return float(spread.max())

    def scaled(self, factor: float) -> BoundConstraint:
        """Return the rule with its bound multiplied, for targets in other units."""
        return replace(self, max_disparity=self.max_disparity * factor)
