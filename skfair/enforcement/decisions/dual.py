r"""Prices that keep rules in expectation: the dual of the best soft decisions.

With expected worth V, shares Phi and rows C, ``lower <= C m - Z r <= upper`` for free centres r in
[0, 1], the prices ``L = C' lam`` minimise

.. math:: \sum_i w_i \, T \log \sum_c \exp((V - \Phi L)_{ic} / T)
          + u' \lambda^+ - l' \lambda^- + T \sum \log(1 + \exp(Z' \lambda / T))

over multipliers :math:`\lambda = \lambda^+ - \lambda^-`, both at least 0. One evaluation is a pass
over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.rows import LinearRows
from skfair.enforcement.decisions.shares import Shares


@dataclass(frozen=True, eq=False)
class SoftRows:
    """Rows of data as the dual sees them: expected worth, shares and weights."""

    values: FloatArray
    shares: Shares
    weights: FloatArray

    @cached_property
    def _leads(self) -> FloatArray:
        """What each other class is worth more than the first."""
        return np.ascontiguousarray(self.values[:, 1:] - self.values[:, :1])

    @cached_property
    def _totals(self) -> FloatArray:
        """Total share of each feature."""
        return np.asarray(self.shares.T @ self.weights)

    def soft_table(self, prices: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return the weighted sum of soft maxima, and how much of each feature goes to each class.

        Prices and table have the shape (n_features, n_classes).
        """
        from skfair._kernels.decisions import soft_table_dense, soft_table_sparse

        shares, first = self.shares, prices[:, 0]
        relative = np.ascontiguousarray((prices[:, 1:] - first[:, None]).T)
        table, rest = np.empty(relative.shape), (relative, self.weights, temperature)
        if isinstance(shares, np.ndarray):
            total = soft_table_dense(self._leads, shares, *rest, table)
        else:
            parts = shares.indptr, shares.indices, shares.data
            total = soft_table_sparse(self._leads, *parts, *rest, table)
        total += float(self.weights @ self.values[:, 0] - self._totals @ first)
        return total, np.column_stack([self._totals - table.sum(axis=0), table.T])

    def sample(
        self, size: int, strata: IntArray, rng: np.random.RandomState
    ) -> tuple[SoftRows, IntArray]:
        """Return about ``size`` random rows and their strata; each stratum keeps its weight.

        Small strata get more than their part: half of the rows are shared out equally.
        """
        counts = np.bincount(strata)
        wanted = 0.5 * size * (counts / strata.size + 1 / np.count_nonzero(counts))
        order = rng.permutation(strata.size)
        order = order[np.argsort(strata[order], kind="stable")]
        place = np.arange(strata.size) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = np.sort(order[place < np.repeat(np.ceil(wanted), counts)])
        own = strata[chosen]
        total = np.bincount(strata, self.weights, counts.size)
        taken = np.bincount(own, self.weights[chosen], counts.size)
        factor = total / np.where(taken > 0, taken, 1.0)
        weights = self.weights[chosen] * factor[own]
        return SoftRows(self.values[chosen], self.shares[chosen], weights / weights.sum()), own


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
    # Multipliers in units of prices: the largest effect of each row is 1.
    scale = np.maximum(abs(rows.matrix).max(axis=1).toarray().ravel(), 1e-12)
    above, below = (np.flatnonzero(np.isfinite(b)) for b in (rows.upper, rows.lower))
    costs = np.concatenate([rows.upper[above] / scale[above], -rows.lower[below] / scale[below]])
    transposed, pulled = rows.matrix.T.tocsr(), rows.centers.T.tocsr()
    shape = (data.shares.shape[1], data.values.shape[1])

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        multipliers = _signed(point, above, below, scale)
        prices = (transposed @ multipliers).reshape(shape)
        value, table = data.soft_table(prices, temperature)
        value += float(costs @ point)
        slope = -(rows.matrix @ table.ravel())
        if rows.centers.shape[1]:
            pulls = pulled @ multipliers
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
    _, table = data.soft_table(prices, temperature)
    return np.asarray(rows.matrix @ table.ravel())
