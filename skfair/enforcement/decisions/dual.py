r"""Prices that keep rules in expectation: the dual of the best soft decisions.

With expected worth V, shares Phi and rows C, ``lower <= C m - Z r <= upper`` for free centres r in
[0, 1], the prices ``L = C' lam`` minimise

.. math:: \sum_i w_i \, T \log \sum_c \exp((V - \Phi L)_{ic} / T)
          + u' \lambda^+ - l' \lambda^- + T \sum \log(1 + \exp(Z' \lambda / T))

over multipliers :math:`\lambda = \lambda^+ - \lambda^-`, both at least 0. One evaluation is a pass
over the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from skfair._typing import FloatArray
from skfair.enforcement.decisions.rows import LinearRows
from skfair.enforcement.decisions.shares import Shares, margins


class SoftRows(NamedTuple):
    """Rows of data as the dual sees them: expected worth, shares and weights."""

    values: FloatArray
    shares: Shares
    weights: FloatArray

    def sample(self, size: int, rng: np.random.RandomState) -> SoftRows:
        """Return a random sample of the rows."""
        chosen = np.sort(rng.choice(self.weights.size, size, replace=False))
        weights = self.weights[chosen]
        return SoftRows(self.values[chosen], self.shares[chosen], weights / weights.sum())


def solve_dual(
    data: SoftRows,
    rows: LinearRows,
    start: FloatArray,
    temperature: float,
    max_iter: int,
) -> FloatArray:
    """Return the multipliers.

    Parameters
    ----------
    data : SoftRows
        The rows of data.
    rows : LinearRows
        What is bounded.
    start : ndarray of shape (n_rows,)
        Multipliers to start from.
    temperature : float
        The softer the decisions, the larger.
    max_iter : int
        Most iterations of L-BFGS-B.

    Returns
    -------
    multipliers : ndarray of shape (n_rows,)
        Positive at an upper bound, negative at a lower one.
    """
    from skfair._kernels.decisions import soft_decisions

    # Multipliers in units of prices: the largest effect of each row is 1.
    scale = np.maximum(abs(rows.matrix).max(axis=1).toarray().ravel(), 1e-12)
    above, below = (np.flatnonzero(np.isfinite(b)) for b in (rows.upper, rows.lower))
    costs = np.concatenate([rows.upper[above] / scale[above], -rows.lower[below] / scale[below]])
    transposed = rows.matrix.T.tocsr()
    shape = (data.shares.shape[1], data.values.shape[1])

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        multipliers = _signed(point, above, below, scale)
        prices = (transposed @ multipliers).reshape(shape)
        soft = margins(data.values, data.shares, prices)
        value = soft_decisions(soft, data.weights, temperature) + costs @ point
        slope = -(rows.matrix @ np.asarray(data.shares.T @ soft).ravel())
        if rows.centers.shape[1]:
            pulls = rows.centers.T @ multipliers
            value += temperature * np.logaddexp(0.0, pulls / temperature).sum()
            slope += rows.centers @ expit(pulls / temperature)
        slope /= scale
        return value, costs + np.concatenate([slope[above], -slope[below]])

    scaled = start * scale
    point = np.concatenate([np.maximum(scaled[above], 0), np.maximum(-scaled[below], 0)])
    found = minimize(
        evaluate,
        point,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * point.size,
        options={"maxiter": max_iter, "ftol": 1e-9, "gtol": 1e-6},
    )
    return _signed(found.x, above, below, scale)


def _signed(
    point: FloatArray, above: np.ndarray, below: np.ndarray, scale: FloatArray
) -> FloatArray:
    multipliers = np.zeros(scale.size)
    multipliers[above] += point[: above.size]
    multipliers[below] -= point[above.size :]
    return np.asarray(multipliers / scale)


def soft_values(
    data: SoftRows, rows: LinearRows, prices: FloatArray, temperature: float
) -> FloatArray:
    """Return the expected values of the rows at given prices."""
    from skfair._kernels.decisions import soft_decisions

    soft = margins(data.values, data.shares, prices)
    soft_decisions(soft, data.weights, temperature)
    return np.asarray(rows.matrix @ np.asarray(data.shares.T @ soft).ravel())
