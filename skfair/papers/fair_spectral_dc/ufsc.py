"""UFSC, "unified fair spectral clustering" (Zhang and Wang, 2024): a reconstruction for graphs.

The graph is learned together with an embedding and with labels. Over weights W' on the edges of the
given graph, U with orthonormal columns that satisfy ``F'U = 0``, rotations R and labels Q (0 or 1),

    minimise  2 <w, distance> - alpha sum over i of log degree_i + beta |w|^2
              + mu Tr(U' L U) + gamma |Q - U R|^2,

in turn: w by an accelerated dual gradient method (FDPG), U by generalised power steps, R as the
closest rotation, Q as the largest entry of each row. L is the Laplacian of W', F marks the members
of each group minus the group's share.

The authors learn from signals on the nodes. A given graph has no signals, so the terms with signals
are dropped, and the distance of an edge is 1 minus its weight over the largest weight. Pairs
without an edge stay without one, so that memory is proportional to the number of edges. The
constants come from the authors' script. U is updated by power steps, not by their search along
curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, eigsh, splu
from sklearn.cluster import KMeans
from sklearn.utils import gen_batches

from skfair._typing import FloatArray, IntArray
from skfair.cluster.spectral.eigen.arpack import later_draws
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver, Pairs, Step
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.solvers.parameters import Count, Positive
from skfair.utils.pieces import NUMBERS

# Learned weights below this are no edges.
_NO_WEIGHT = 1e-4
# FDPG ends when the weights move by less than this share, or after this many steps.
_FDPG_TOL, _FDPG_STEPS = 1e-4, 1000
# Power steps on U in a round.
_POWER_STEPS = 10
# _SHIFT times the largest degree is added to the diagonal of the Laplacian, which is singular,
# before it is inverted. If more than the share _DENSE of its entries is not zero, the matrix is
# inverted as a dense one.
_SHIFT, _DENSE = 1e-6, 0.1


@EIGEN_SOLVERS.register("ufsc")
@dataclass
class UFSC(EigenSolver):
    """Alternating updates of a graph, an embedding and labels, a reconstruction of UFSC.

    It enforces ``F'U = 0`` for unweighted groups. The other solvers weight rows by their degrees,
    so the embedding violates their constraint unless all degrees are the same.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the logarithms of the degrees. With larger values, the degrees are larger.
    beta : float, default=3.0
        Penalty on the squared weights of the edges. With larger values, the graph has more edges
        with smaller weights.
    mu : float, default=0.5
        Weight of the smoothness of the embedding on the graph.
    gamma : float, default=0.01
        Weight of the distance between the embedding and the labels.
    tol : float, default=1e-3
        Tolerance of the stopping test, which is the relative change of the weights in a round.
    max_iter : int, default=40
        Maximum number of rounds.

    See Also
    --------
    FFSC : Coordinate descent on labels.
    DCADMM : ADMM for a difference of convex functions.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.papers import UFSC
    >>> FairSpectralClustering(3, solver=UFSC(gamma=0.1)).solver.gamma
    0.1
    """

    alpha: Positive = 1.0
    beta: Positive = 3.0
    mu: Positive = 0.5
    gamma: Positive = 0.01
    tol: Positive = 1e-3
    max_iter: Count = 40

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        graph = _Edges(problem)
        F = graph.basis
        w, dual = self._learn(graph, graph.distances, None)
        U = _smallest(graph.laplacian(w), F, n_vectors, rng)
        one_hot = np.eye(n_vectors)
        Q = one_hot[KMeans(n_vectors, n_init=10, random_state=rng).fit(U).labels_]
        R = _rotation(Q, U)
        for _ in range(self.max_iter):
            z = graph.distances + self.mu / 2 * graph.squared_lengths(U)
            last, (w, dual) = w, self._learn(graph, z, dual)
            U = self._power_steps(graph.laplacian(w), F, U, Q @ R.T)
            R = _rotation(Q, U)
            labels = np.argmax(U @ R, axis=1)
            Q = one_hot[labels]
            moved = float(np.linalg.norm(w - last) / np.linalg.norm(last))
            pairs = partial(_pairs, problem, graph, U, labels)
            H = graph.embedded(U)
            trace = float(np.sum(H * problem.multiply(H)))
            yield Step(pairs, {"moved": moved, "trace": trace}, moved < self.tol, H)

    def _learn(
        self, graph: _Edges, z: FloatArray, dual: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Minimise ``2 z'w - alpha sum(log(degrees(w))) + beta |w|^2`` over w >= 0, by FDPG.

        ``dual`` (n_rows,) is where the last search ended; if None, it starts from 0. Returns w and
        the new dual.
        """
        steepness = float(graph.n_edges.max()) / self.beta
        last = ahead = np.zeros(graph.n_edges.size) if dual is None else dual
        momentum, w = 1.0, np.zeros(z.size)
        for _ in range(_FDPG_STEPS):
            before = w
            w = np.maximum(0.0, (ahead[graph.first] + ahead[graph.second] - 2 * z) / 2 / self.beta)
            degrees = graph.sums(w)
            x = degrees - steepness * ahead
            v = (x + np.sqrt(x * x + 4 * self.alpha * steepness)) / 2
            new = ahead - (degrees - v) / steepness
            next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / next_momentum * (new - last)
            last, momentum = new, next_momentum
            if np.linalg.norm(w - before) < _FDPG_TOL * np.linalg.norm(before):
                break
        if w.max(initial=0.0) < _NO_WEIGHT:
            raise ValueError(
                f"UFSC(alpha={self.alpha:g}, beta={self.beta:g}) gives no edge a weight. Pass a "
                "larger alpha."
            )
        return np.where(w < _NO_WEIGHT, 0.0, w), last

    def _power_steps(
        self, L: sparse.csr_array, F: FloatArray, U: FloatArray, target: FloatArray
    ) -> FloatArray:
        """Lower ``mu Tr(U' L U) - 2 gamma Tr(target' U)`` over orthonormal U with ``F'U = 0``."""
        bound = 2 * L.diagonal().max()  # an upper bound of the eigenvalues of L
        for _ in range(_POWER_STEPS):
            ahead = self.mu * (bound * U - L @ U) + self.gamma * target
            ahead -= F @ (F.T @ ahead)
            left, _, right = np.linalg.svd(ahead, full_matrices=False)
            U = left @ right
        return U


class _Edges:
    """The edges of a graph, each once, and the group constraint on the rows that have edges."""

    def __init__(self, problem: GroupCut) -> None:
        self.rows = np.flatnonzero(problem.scale > 0)
        self.n_samples = problem.n_samples
        matrix = problem.weights.matrix
        W = sparse.csr_array(problem.weights.dense() if matrix is None else matrix)
        upper = sparse.triu(W[self.rows][:, self.rows], k=1).tocoo()
        exists = upper.data > 0
        self.first, self.second = (np.asarray(ends)[exists] for ends in upper.coords)
        weights = upper.data[exists].astype(np.float64)
        self.distances = 1 - weights / weights.max()
        self.n_edges = self.sums(np.ones(weights.size))
        centred = problem.centred_groups()[self.rows]
        left, lengths, _ = np.linalg.svd(centred, full_matrices=False)
        self.basis = left[:, lengths > 1e-9 * max(lengths.max(initial=0.0), 1.0)]

    def sums(self, w: FloatArray) -> FloatArray:
        """Return the sum of w over the edges of each row."""
        n = self.rows.size
        total = np.bincount(self.first, w, n) + np.bincount(self.second, w, n)
        return np.asarray(total, dtype=np.float64)

    def squared_lengths(self, U: FloatArray) -> FloatArray:
        """Return the squared distance of the rows of U that each edge joins."""
        lengths = np.empty(self.first.size)
        # Blocks of edges save memory: all edges at once would need n_vectors times the graph's.
        for part in gen_batches(lengths.size, NUMBERS):
            lengths[part] = np.sum((U[self.first[part]] - U[self.second[part]]) ** 2, axis=1)
        return lengths

    def laplacian(self, w: FloatArray) -> sparse.csr_array:
        """Return degrees minus weights."""
        n = self.rows.size
        W = sparse.coo_array((w, (self.first, self.second)), shape=(n, n)).tocsr()
        return sparse.csr_array(sparse.diags_array(self.sums(w)) - W - W.T)

    def embedded(self, U: FloatArray) -> FloatArray:
        """Return U with zeros for rows without edges."""
        H = np.zeros((self.n_samples, U.shape[1]))
        H[self.rows] = U
        return H


def _smallest(
    L: sparse.csr_array, F: FloatArray, n_vectors: int, rng: np.random.RandomState
) -> FloatArray:
    """Return the eigenvectors U of L with the smallest eigenvalues in the subspace ``F'U = 0``."""
    n = L.shape[0]
    shifted = L + _SHIFT * L.diagonal().max() * sparse.eye_array(n)
    solve: Callable[[FloatArray], FloatArray]
    if L.nnz > _DENSE * n * n:
        solve = partial(cho_solve, cho_factor(shifted.toarray()))
    else:
        solve = splu(shifted.tocsc()).solve
    solved = solve(F)
    inner = np.linalg.inv(F.T @ solved)

    def inverse(columns: FloatArray) -> FloatArray:
        # The inverse of the shifted L, inside the null space of F'.
        solution = solve(columns)
        return np.asarray(solution - solved @ (inner @ (F.T @ solution)))

    operator = LinearOperator((n, n), matvec=inverse, dtype=np.float64)
    start = rng.standard_normal(n)
    return np.asarray(eigsh(operator, n_vectors, which="LA", v0=start, **later_draws(rng))[1])


def _rotation(Q: FloatArray, U: FloatArray) -> FloatArray:
    """Return the rotation R for which U R is closest to Q."""
    left, _, right = np.linalg.svd(Q.T @ U)
    return np.asarray(right.T @ left.T)


def _pairs(problem: GroupCut, graph: _Edges, U: FloatArray, labels: IntArray) -> Pairs:
    """Return U rotated to the eigenvectors of ``U' M U``, with labels for all rows.

    Rows without edges get the label 0.
    """
    H = graph.embedded(U)
    values, rotation = np.linalg.eigh(H.T @ problem.multiply(H))
    whole = np.zeros(problem.n_samples, np.int64)
    whole[graph.rows] = labels
    return Pairs(values[::-1], H @ rotation[:, ::-1], labels=whole)
