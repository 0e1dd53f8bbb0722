"""ADMM with a dual difference-of-convex step, Algorithm 1 of fair_spectral_dc: a reproduction.

It is here to be studied, not to be used. It does not solve the problem of the other eigen-solvers:
it maximises ``|M H|`` instead of ``Tr(H' M H)`` and requires ``F'MH = 0`` instead of ``F'H = 0``.
If the groups dominate the spectrum, its T = 10 iterations satisfy neither. ``constraint`` in the
history is the distance from the true constraint, and the status says whether it is small.

Choices where the paper is silent. (1) V starts from N(0, 1) and is carried over from one ADMM
iteration to the next. (2) M is ``D^-1/2 W D^-1/2`` plus 1.01 times the identity, "1 + omega" of
Remark 2.3, unless the weights are known to be positive semidefinite. (3) alpha stops at 0.95:
update (16) doubles it nearly always, but the dual (14) needs alpha < 1. (4) Update (16) reads both
residuals after the step. Rows without edges stay zero.

Glossary: H, Y, V, P, M, alpha -> as in the paper; R, S of (16) -> ``primal``, ``dual``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Annotated

import numpy as np
from scipy.optimize import minimize
from sklearn.utils._param_validation import Interval

from skfair._typing import FloatArray
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver, Pairs, Step
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.solvers.parameters import Count, NonNegative, Positive

Product = Callable[[FloatArray], FloatArray]

# The multiple of the identity that makes the weights of a graph positive definite: 1 + omega in
# Remark 2.3.
_GRAPH_SHIFT = 1.01
# Proposition 3.2 needs alpha < 1.
_LARGEST_ALPHA = 0.95
# Below this ratio of the shortest to the longest length the Gram matrix, which holds their squares,
# has lost the digits of the shortest, so a singular value decomposition is computed.
_WELL_CONDITIONED = 1e-4


@EIGEN_SOLVERS.register("dc_admm")
@dataclass
class DCADMM(EigenSolver):
    """Algorithm 1 of fair_spectral_dc, with the defaults of its appendix B.

    An iteration costs one product with as many columns as vectors, and two products for each of the
    5 to 10 evaluations of the dual.

    Parameters
    ----------
    max_iter : int, default=10
        Number of iterations, T. There is no other stopping test.
    shift : float, default=None
        Number that is added to the diagonal of M. If None, it is 1.01, or 0 for weights that are
        known to be positive semidefinite. Eigenvalues are reported without it.
    alpha : float, default=0.005
        Initial penalty, which must be below 1.
    tau : float, default=2.0
        Factor by which the penalty is changed, which must be above 1.
    mu : float, default=10.0
        Ratio of the residuals from which the penalty is changed.
    gtol : float, default=1e-3
        Tolerance on the gradient for the L-BFGS method that maximises the dual.
    ftol : float, default=1e-4
        Tolerance on the value for the L-BFGS method that maximises the dual.

    See Also
    --------
    skfair.solvers.Lanczos : The default for large graphs.
    UFSC : Alternating updates of graph, embedding and labels.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.papers import DCADMM
    >>> FairSpectralClustering(3, solver=DCADMM(max_iter=20)).solver.alpha
    0.005
    """

    max_iter: Count = 10
    shift: NonNegative | None = None
    alpha: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.005
    tau: Annotated[float, Interval(Real, 1, None, closed="neither")] = 2.0
    mu: Positive = 10.0
    gtol: Positive = 1e-3
    ftol: Positive = 1e-4

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        shift = self.shift
        if shift is None:
            shift = 0.0 if problem.weights.is_psd else _GRAPH_SHIFT
        times = partial(_shifted_product, problem, shift)
        shape = (problem.n_samples, n_vectors)
        V = rng.standard_normal(shape) * (problem.scale > 0)[:, None]
        Y, P = np.zeros(shape), np.zeros(shape)
        alpha = self.alpha
        for n_iter in range(1, self.max_iter + 1):
            solved = minimize(
                _dual,
                V.ravel(),
                args=(times, Y, P, alpha),
                jac=True,
                method="L-BFGS-B",
                options={"gtol": self.gtol, "ftol": self.ftol},
            )
            V = solved.x.reshape(shape)
            H = _polar(times(V))[0]  # second eq. (15)
            MH = times(H)
            # P stays in the span of F, so ``project`` removes it and adding it changes nothing. It
            # is written because the paper prints it.
            last, Y = Y, problem.project((MH + P / alpha).astype(problem.dtype)).astype(np.float64)
            P += alpha * (MH - Y)  # eq. (13)
            columns = {
                "trace": float(np.sum(H * MH)) - shift * n_vectors,
                "primal": float(np.linalg.norm(MH - Y)),
                "dual": float(alpha * np.linalg.norm(Y - last)),
                "alpha": alpha,
                "constraint": problem.residuals(H)[0],
            }
            yield Step(partial(_pairs, H, MH, shift), columns, n_iter == self.max_iter, H)
            alpha = self._next_alpha(alpha, columns["primal"], columns["dual"])

    def _next_alpha(self, alpha: float, primal: float, dual: float) -> float:
        """Return the next alpha, which balances the two residuals, eq. (16)."""
        if primal > self.mu * dual:
            return min(self.tau * alpha, _LARGEST_ALPHA)
        return alpha / self.tau if dual > self.mu * primal else alpha


def _shifted_product(problem: GroupCut, shift: float, columns: FloatArray) -> FloatArray:
    product = problem.multiply(columns.astype(problem.dtype, copy=False))
    return product.astype(np.float64, copy=False) + shift * columns


def _pairs(H: FloatArray, MH: FloatArray, shift: float) -> Pairs:
    """Return H rotated to the eigenvectors of ``H' M H``, with the eigenvalues of M.

    ``MH`` holds the product with M plus ``shift`` times the identity.
    """
    values, rotation = np.linalg.eigh(H.T @ MH)
    return Pairs(values[::-1] - shift, H @ rotation[:, ::-1])


def _dual(
    v: FloatArray, times: Product, Y: FloatArray, P: FloatArray, alpha: float
) -> tuple[float, FloatArray]:
    """Return the dual objective (14) at V, and its gradient (Proposition 3.3).

    With ``A = (V + P - alpha Y) / (1 - alpha)``, the conjugate of phi is
    ``(1 - alpha) |A|^2 / 2 + alpha |Y|^2 / 2`` and has the gradient A.
    """
    V = v.reshape(Y.shape)
    A = (V + P - alpha * Y) / (1 - alpha)
    polar, nuclear_norm = _polar(times(V))
    value = (1 - alpha) / 2 * np.sum(A * A) + alpha / 2 * np.sum(Y * Y) - nuclear_norm
    return float(value), (A - times(polar)).ravel()


def _polar(U: FloatArray) -> tuple[FloatArray, float]:
    """Return the closest matrix with orthonormal columns, ``U (U'U)^-1/2``, and ``|U|_*``."""
    squares, rotation = np.linalg.eigh(U.T @ U)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    if lengths[0] <= _WELL_CONDITIONED * lengths[-1]:  # the paper assumes that M has full rank
        left, lengths, right = np.linalg.svd(U, full_matrices=False)
        return left @ right, float(lengths.sum())
    return U @ ((rotation / lengths) @ rotation.T), float(lengths.sum())
