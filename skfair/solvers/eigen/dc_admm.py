"""ADMM with a dual difference-of-convex step, Algorithm 1 of fair_spectral_dc: a reproduction.

It is here to be studied, not to be used. It does not solve the problem of the other eigen-solvers:
it maximises ``|M H|`` instead of ``Tr(H' M H)`` and asks for ``F'MH = 0`` instead of ``F'H = 0``,
and where the groups dominate the spectrum its T = 10 iterations reach neither. ``constraint`` in
the history is the distance from the true constraint, and the status says whether it is small.

Choices where the paper is silent. (1) V starts from N(0, 1) and is carried over from one ADMM
iteration to the next. (2) M is ``D^-1/2 W D^-1/2`` plus 1.01 times the identity, "1 + omega" of
Remark 2.3, unless the weights are known to be positive semidefinite. (3) alpha stops at 0.95: rule
(16) doubles it nearly every time, but the dual (14) needs alpha < 1. (4) Rule (16) reads both
residuals after the step. Rows without edges stay zero.

Glossary: H, Y, V, P, M, alpha -> as in the paper; R, S of (16) -> ``primal``, ``dual``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skfair._typing import FloatArray
from skfair.problems.cut.group_cut import GroupCut
from skfair.solvers.base import Status
from skfair.solvers.eigen.base import EIGEN_SOLVERS, Callback, EigenResult
from skfair.utils.history import History

Product = Callable[[FloatArray], FloatArray]

# The T of Algorithm 1 in the experiments (appendix B).
_MAX_ITER = 10
# 1 + omega: what makes the weights of a graph positive definite (Remark 2.3).
_GRAPH_SHIFT = 1.01
# Proposition 3.2 needs alpha < 1.
_LARGEST_ALPHA = 0.95
# Results that are further from the group constraint, |Q'H|, are called infeasible.
_FEASIBLE = 1e-2
# Below this ratio of lengths the Gram matrix has lost the digits of the shortest.
_WELL_CONDITIONED = 1e-4


@EIGEN_SOLVERS.register("dc_admm")
def solve_dc_admm(
    problem: GroupCut,
    n_vectors: int,
    *,
    max_iter: int | None = None,
    rng: np.random.RandomState,
    callback: Callback | None = None,
    shift: float | None = None,
    alpha: float = 0.005,  # appendix B, as all that follow
    tau: float = 2.0,
    mu: float = 10.0,
    gtol: float = 1e-3,
    ftol: float = 1e-4,
    **_unused: Any,
) -> EigenResult:
    """Run ``max_iter`` (default 10) iterations of Algorithm 1.

    ``values`` are those of ``H' D^-1/2 W D^-1/2 H``, without the shift. An iteration costs one
    product with ``n_vectors`` columns and two per evaluation of the dual (5 to 10 of them).
    """
    if shift is None:
        shift = 0.0 if problem.affinity.is_psd else _GRAPH_SHIFT

    def times(columns: FloatArray) -> FloatArray:
        product = problem.multiply(columns.astype(problem.dtype, copy=False))
        return product.astype(np.float64, copy=False) + shift * columns

    shape = (problem.n_samples, n_vectors)
    V = rng.standard_normal(shape) * (problem.scale > 0)[:, None]
    Y, P = np.zeros(shape), np.zeros(shape)
    history = History()
    is_stopped = False
    for _ in range(_MAX_ITER if max_iter is None else max_iter):
        solved = minimize(
            _dual,
            V.ravel(),
            args=(times, Y, P, alpha),
            jac=True,
            method="L-BFGS-B",
            options={"gtol": gtol, "ftol": ftol},
        )
        V = solved.x.reshape(shape)
        H = _polar(times(V))[0]  # second eq. (15)
        MH = times(H)
        # P stays in the span of F, so that its part is zero up to rounding; kept as printed.
        last, Y = Y, problem.project((MH + P / alpha).astype(problem.dtype)).astype(np.float64)
        P += alpha * (MH - Y)  # eq. (13)
        primal = float(np.linalg.norm(MH - Y))
        dual = float(alpha * np.linalg.norm(Y - last))
        constraint = problem.residuals(H)[0]
        trace = float(np.sum(H * MH)) - shift * n_vectors
        history.record(trace=trace, primal=primal, dual=dual, alpha=alpha, constraint=constraint)
        if callback is not None and callback(H):
            is_stopped = True
            break
        if primal > mu * dual:  # eq. (16)
            alpha = min(tau * alpha, _LARGEST_ALPHA)
        elif dual > mu * primal:
            alpha /= tau
    values, rotation = np.linalg.eigh(H.T @ MH)
    status: Status = "converged" if constraint <= _FEASIBLE else "infeasible"
    return EigenResult(
        H @ rotation[:, ::-1],
        values[::-1] - shift,
        len(history),
        "stopped" if is_stopped else status,
        history.as_dict(),
    )


def _dual(
    v: FloatArray, times: Product, Y: FloatArray, P: FloatArray, alpha: float
) -> tuple[float, NDArray[Any]]:
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
