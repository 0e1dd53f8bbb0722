"""The relaxed normalised cut under group fairness, as a problem for eigen-solvers.

``FairSpectralClustering.fit`` makes a :class:`GroupCut` of the weights between rows and their
groups. Eigen-solvers (``eigen/``) ask it for products, projections and random starts, and
``embedding.py`` for the polished result. With weights W, degrees D, ``M = D^-1/2 W D^-1/2`` and k
columns of H, the relaxation is

    max over H of  Tr(H' M H)   with   H'H = I   and   F'H = 0,

where ``F = D^-1/2 (G - 1 z')``, G marks the members of each group and z are the groups' shares
(fair_spectral_dc, problem (5)). A clustering that keeps all groups in proportion satisfies it. Let
Q be an orthonormal basis of the columns of F, and ``P = I - Q Q'`` the projection on the null space
of F'. The solution then is the leading eigenvectors of ``P M P``, and ``k - Tr(H' M H)`` is the
relaxed cost of the cut.

Rows without edges are not part of a cut. Their rows of M, F and H are zero, as if their degree
were infinite, and the groups' shares are computed without them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.cluster.spectral.weights import Weights
from skfair.groups.encoding import GroupEncoding

# Columns of F may depend on each other. Combinations of columns that are shorter than this share of
# the longest count as zero.
RANK_TOL = 1e-6
# How often ``unconstrained`` multiplies the hidden directions with M.
_N_PRODUCTS = 3
# Rows of a smaller degree count as rows without edges, because sums of 1 / degree would overflow.
_NO_DEGREE = 1e8 * np.finfo(np.float64).tiny


class GroupCut:
    """Normalised weights and the group constraint."""

    def __init__(
        self,
        weights: Weights,  # the weights between the rows
        groups: GroupEncoding,  # the groups of the rows; with one group there is no constraint
    ) -> None:
        self.weights = weights
        degrees = weights.degrees
        has_edges = degrees > _NO_DEGREE
        # (n_samples,): ``D^-1/2``; 0 for rows without edges
        self.scale = np.where(has_edges, 1 / np.sqrt(np.where(has_edges, degrees, 1.0)), 0.0)
        self.n_connected = int(np.count_nonzero(has_edges))  # number of rows with edges
        cells = groups.cells()
        self.cells = cells.codes  # (n_samples,): the cell (atom of the group algebra) of each row
        self._owners: FloatArray = cells.membership.toarray().T  # (n_cells, n_groups)
        # (n_cells, n_constraints): row i of Q is ``scale[i] * projector[cells[i]]``
        self.projector = self._projector(self._centred(has_edges))
        basis = self.projector[self.cells] * self.scale[:, None]
        # (n_samples, n_constraints): Q, in the precision of the weights
        self.basis = np.asfortranarray(basis, dtype=weights.dtype)
        self._column = self.scale.astype(weights.dtype)[:, None]
        self.n_products = 0  # number of columns with which M was multiplied so far

    def _centred(self, has_edges: NDArray[np.bool_]) -> FloatArray:
        """Return the rows of ``G - 1 z'`` by cell, with z the shares among rows with edges."""
        sizes = np.bincount(self.cells[has_edges], minlength=self._owners.shape[0])
        centred: FloatArray = self._owners - sizes @ self._owners / max(1, sizes.sum())
        return centred

    def centred_groups(self) -> FloatArray:
        """Return ``G - 1 z'``, (n_samples, n_groups); zero for rows without edges."""
        has_edges = self.scale > 0
        return self._centred(has_edges)[self.cells] * has_edges[:, None]

    def _projector(self, centred: FloatArray) -> FloatArray:
        """Return Q by cell and without its factor D^-1/2, see ``projector``.

        All rows of a cell (the rows of the same groups) have the same row in ``G - 1 z'``. So it is
        enough to decompose a matrix with one row per cell, times the root of the sum of 1 / degree
        over the cell. Columns that depend on others drop out, such as the last group of an
        attribute.
        """
        mass = np.bincount(self.cells, weights=self.scale**2, minlength=centred.shape[0])
        roots = np.sqrt(mass)[:, None]
        left, lengths, _ = np.linalg.svd(roots * centred, full_matrices=False)
        kept = lengths > RANK_TOL * max(lengths.max(initial=0.0), np.finfo(float).tiny)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(roots > 0, left[:, kept] / roots, 0.0)

    @property
    def n_samples(self) -> int:
        return self.weights.n_samples

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type in which products are computed."""
        return self.weights.dtype

    @property
    def n_free(self) -> int:
        """Dimension of the space in which H may be: rows with edges minus constraints."""
        return self.n_connected - int(self.basis.shape[1])

    def multiply(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return M times a block of columns."""
        self.n_products += columns.shape[1]
        product = self.weights.times(columns * self._column)
        product *= self._column
        return product

    def project(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Project columns in place on those that satisfy the constraint, and return them."""
        if self.basis.shape[1]:
            columns -= self.basis @ (self.basis.T @ columns)
        return columns

    def apply(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return ``P M`` times columns that satisfy the constraint."""
        return self.project(self.multiply(columns))

    def unconstrained(self, vectors: NDArray[Any], n_vectors: int) -> FloatArray:
        """Return approximate leading eigenvectors of M alone, without the group constraint.

        ``vectors`` are the leading eigenvectors under the constraint. The result is the best
        approximation in the span of ``vectors``, Q, M Q, M^2 Q and so on. Q are the directions that
        the constraint removes.
        """
        directions = [vectors, self.basis]
        for _ in range(_N_PRODUCTS):
            directions.append(self.multiply(directions[-1]))
        V = np.linalg.qr(np.concatenate(directions, axis=1).astype(np.float64))[0]
        rotation = np.linalg.eigh(V.T @ self.multiply(V.astype(self.dtype)))[1]
        return np.asarray(V @ rotation[:, ::-1][:, :n_vectors])

    def random(self, n_columns: int, rng: np.random.RandomState) -> NDArray[Any]:
        """Return random columns that satisfy the constraint, for the start of a solver."""
        columns = rng.standard_normal((self.n_samples, n_columns)).astype(self.dtype)
        columns *= self._column > 0
        return self.project(columns)

    def polished(self, vectors: NDArray[Any]) -> FloatArray:
        """Return vectors close to the given ones that satisfy F'H = 0 and H'H = I in float64.

        The part that violates F'H = 0 is projected out. Then ``H (H'H)^-1/2`` is the orthonormal
        basis of the same space that is closest to H, so eigenvectors stay eigenvectors. Both steps
        are repeated once against rounding.
        """
        H = vectors.astype(np.float64)
        exact = self.projector[self.cells] * self.scale[:, None]
        for _ in range(2):
            H -= exact @ (exact.T @ H)
            values, rotation = np.linalg.eigh(H.T @ H)
            H = H @ ((rotation / np.sqrt(values)) @ rotation.T)
        return H

    def residuals(self, H: FloatArray) -> tuple[float, float]:
        """Return how far H is from both constraints: ``|Q'H|`` and ``|H'H - I|`` (Frobenius)."""
        exact = self.projector[self.cells] * self.scale[:, None]
        return (
            float(np.linalg.norm(exact.T @ H)),
            float(np.linalg.norm(H.T @ H - np.eye(H.shape[1]))),
        )
