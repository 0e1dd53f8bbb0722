"""Points in CSR format to be clustered, without reading their zeros.

``kmeans/rows.py`` makes this problem of sparse rows. Solvers use it like points in memory
(``assignment/points.py``). Methods that would store the zeros are replaced here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd, row_norms

from skfair._typing import FloatArray
from skfair.cluster.assignment.points import (
    Distances,
    RepresentationProblem,
    Units,
)

# Plain k-means, for the starting centres, sees dense rows if they have at most this many numbers.
# Otherwise it sees the rows projected on their main directions.
_MAX_DENSE = 1 << 22
# Number of main directions for each cluster, and the smallest number in total.
_DIRECTIONS, _FEWEST_DIRECTIONS = 2, 40
# A spread below this share of the root mean square length of the rows is rounding.
_LEAST_SPREAD = 1e-6


class SparsePoints(RepresentationProblem):
    """Points in CSR format, with the same scaled coordinates as points in memory.

    Rows minus their mean would have no zeros. So the mean is subtracted from products and sums
    instead, ``(x - mean)'c = x'c - mean'c``. A pass costs O(n_clusters nnz), and the memory is that
    of the rows, a mean and the centres. Products have rounding errors in proportion to the squared
    length of the rows, as in scikit-learn.
    """

    X: Any  # csr_array or csr_matrix

    def _measured(self) -> Units:
        """Return mean and spread, computed in units of the largest number against overflow."""
        unit = float(np.abs(self.X.data).max(initial=0.0)) or 1.0
        masses, mean, squares = self.masses, np.zeros(self.X.shape[1]), 0.0
        for start in range(0, self.X.shape[0], self.step):
            rows = slice(start, start + self.step)
            part = self.X[rows].astype(np.float64) / unit
            mean += masses[rows] @ part
            squares += float(masses[rows] @ row_norms(part, squared=True))
        spread = np.sqrt(max(squares - float(mean @ mean), _LEAST_SPREAD**2 * squares))
        return Units(mean * unit, float(spread) * unit or 1.0)

    def lengths(self, rows: slice) -> FloatArray:
        """Return the squared lengths of scaled rows."""
        part = self.X[rows].astype(np.float64) / self.units.scale
        mean = self.units.mean / self.units.scale
        squares = row_norms(part, squared=True) - 2 * (part @ mean) + mean @ mean
        return np.asarray(np.maximum(squares, 0.0))

    def scaled(self, rows: Any) -> FloatArray:
        """Return scaled rows as a dense array; they should be few."""
        return self.units.inwards(self.X[rows].toarray())

    def start_points(self, rng: np.random.RandomState) -> FloatArray:
        """Return the points for the first plain k-means.

        They are dense rows. If these would have more than _MAX_DENSE numbers, the points are the
        rows projected on their main directions.
        """
        n, d = self.X.shape
        if n * d <= _MAX_DENSE:
            return self.scaled(slice(None))
        n_kept = min(max(_DIRECTIONS * self.n_clusters, _FEWEST_DIRECTIONS), min(n, d))
        masses = self.masses
        weighted = sparse.diags_array(np.sqrt(masses / masses.max())) @ self.X
        directions = randomized_svd(weighted, n_kept, random_state=rng)[2]
        return np.asarray(self.X @ directions.T / self.units.scale, dtype=np.float64)

    def distances(self, target: NDArray[Any]) -> SparseDistances:
        """Return the squared distances to centres (in scaled units)."""
        return SparseDistances(self, target)

    def sums(self, labels: Any) -> tuple[FloatArray, FloatArray, float]:
        """Return sum (scaled) and weight of each cluster, and the sum of squared norms."""
        n = self.X.shape[0]
        members = sparse.csr_array((self.weights, (labels, np.arange(n))), (self.n_clusters, n))
        mass = np.asarray(np.bincount(labels, self.weights, self.n_clusters), np.float64)
        sums = (members @ self.X).toarray() / self.units.scale
        sums -= np.outer(mass, self.units.mean / self.units.scale)
        return sums, mass, float(self.weights @ self.norms)


class SparseDistances(Distances):
    """Squared distances of sparse rows to given centres."""

    rows: SparsePoints

    def __init__(self, problem: SparsePoints, centers: NDArray[Any]) -> None:
        super().__init__(problem, centers)
        directions: FloatArray = np.ascontiguousarray(-2 * centers.T / problem.units.scale)
        self._minus_two, self._of_mean = directions, problem.units.mean @ directions

    def _write_products(self, rows: slice, out: NDArray[Any]) -> NDArray[Any]:
        out[:] = self.rows.X[rows] @ self._minus_two - self._of_mean
        return self.rows.norms[rows]
