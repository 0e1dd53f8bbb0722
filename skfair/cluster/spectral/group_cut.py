"""The relaxed normalised cut under group fairness, as a problem for eigen-solvers.

With weights W, degrees D and ``M = D^-1/2 W D^-1/2``, the relaxation is

    max over H of  Tr(H' M H)   with   H'H = I   and   F'H = 0,

where ``F = D^-1/2 (G - 1 z')``, G marks the members of each group and z are the groups' shares
(fair_spectral_dc, problem (5)): a clustering that keeps all groups in proportion satisfies it. With
the projection P on the null space of F' this asks for the leading eigenvectors of ``P M P``. ``k -
Tr(H' M H)`` is the relaxed cost of a cut.

Rows without edges have no place in a cut: they get the degree infinity, so their rows of M, F and H
are zero, and shares are counted without them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.cluster.spectral.weights import Weights
from skfair.groups.encoding import GroupEncoding

# Directions of the constraints that are shorter than this share of the longest are dependent.
RANK_TOL = 1e-6
# Powers of M that show what the constraint hides.
_N_PRODUCTS = 3
# The inverse of a smaller degree would overflow in sums.
_NO_DEGREE = 1e8 * np.finfo(np.float64).tiny


class GroupCut:
    """Normalised weights and the group constraint."""

    def __init__(
        self,
        weights: Weights,  # the weights between the rows
        groups: GroupEncoding,  # the groups of the rows; one group is no constraint
    ) -> None:
        self.weights = weights
        degrees = weights.degrees
        has_edges = degrees > _NO_DEGREE
        # (n_samples,): ``D^-1/2``; 0 for rows without edges
        self.scale = np.where(has_edges, 1 / np.sqrt(np.where(has_edges, degrees, 1.0)), 0.0)
        self.n_connected = int(np.count_nonzero(has_edges))
        cells = groups.cells()
        self.cells = cells.codes  # (n_samples,): the cell (atom of the group algebra) of each row
        self._owners: FloatArray = cells.membership.toarray().T  # (n_cells, n_groups)
        # (n_cells, n_constraints): ``basis`` is ``scale * projector[cells]`` for rows with edges
        self.projector = self._projector(self._centred(has_edges))
        basis = self.projector[self.cells] * self.scale[:, None]
        # (n_samples, n_constraints): orthonormal columns that span F
        self.basis = np.asfortranarray(basis, dtype=weights.dtype)
        self._column = self.scale.astype(weights.dtype)[:, None]
        self.n_products = 0  # number of columns that M was multiplied with

    def _centred(self, has_edges: NDArray[np.bool_]) -> FloatArray:
        """Return, per cell, which groups it is in minus the groups' shares of rows with edges."""
        sizes = np.bincount(self.cells[has_edges], minlength=self._owners.shape[0])
        centred: FloatArray = self._owners - sizes @ self._owners / max(1, sizes.sum())
        return centred

    def centred_groups(self) -> FloatArray:
        """Return ``G - 1 z'``, (n_samples, n_groups); zero for rows without edges."""
        has_edges = self.scale > 0
        return self._centred(has_edges)[self.cells] * has_edges[:, None]

    def _projector(self, centred: FloatArray) -> FloatArray:
        """Find the combinations of the centred group columns that make an orthonormal basis.

        ``F'F`` is a sum over cells, so all that follows is small; dependent columns (the last group
        of an attribute, attributes that determine each other) drop out.
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
        """Remove, in place, what violates the constraint."""
        if self.basis.shape[1]:
            columns -= self.basis @ (self.basis.T @ columns)
        return columns

    def apply(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return ``P M`` times columns that satisfy the constraint."""
        return self.project(self.multiply(columns))

    def unconstrained(self, vectors: NDArray[Any], n_vectors: int) -> FloatArray:
        """Return about the leading eigenvectors of M, from those under the group constraint.

        They are the best in the span of the vectors, of what the constraint removes, and of a few
        products of that with M.
        """
        directions = [vectors, self.basis]
        for _ in range(_N_PRODUCTS):
            directions.append(self.multiply(directions[-1]))
        V = np.linalg.qr(np.concatenate(directions, axis=1).astype(np.float64))[0]
        rotation = np.linalg.eigh(V.T @ self.multiply(V.astype(self.dtype)))[1]
        return np.asarray(V @ rotation[:, ::-1][:, :n_vectors])

    def random(self, n_columns: int, rng: np.random.RandomState) -> NDArray[Any]:
        columns = rng.standard_normal((self.n_samples, n_columns)).astype(self.dtype)
        columns *= self._column > 0
        return self.project(columns)

    def polished(self, vectors: NDArray[Any]) -> FloatArray:
        """Return vectors that satisfy both constraints to double precision, close to the given.

        Their basis of the same space is the closest orthonormal one, so eigenvectors stay
        eigenvectors.
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
