r"""Prices that keep constraints in expectation: the dual of the best soft decisions.

With expected worth V, shares Phi and rows C, ``lower <= C m - Z r <= upper`` for free centres r,
the prices ``L = C' lam`` minimise

.. math:: \sum_i w_i \, T \log \sum_c \exp((V - \Phi L)_{ic} / T)
          + u' \lambda^+ - l' \lambda^- + \tfrac12 1' Z' \lambda + \|Z' \lambda\|^2 / (2 \kappa)

over multipliers :math:`\lambda = \lambda^+ - \lambda^-`, both at least 0. The centres are then
``1/2 + Z' lam / kappa``; for small kappa that is nearly as good as free ones. One evaluation is a
pass over the rows. For known groups it gives the curvature, too, and steps are those of Newton's
method. For estimated groups, and for very many prices, steps are those of L-BFGS, and the last
two terms make way for ``T sum log(1 + exp(Z' lam / T))``: centres between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.rows import LinearRows
from skfair.enforcement.decisions.shares import Shares
from skfair.solvers.above_zero import minimised_above_zero
from skfair.utils.rounding import ROUNDING

# How much centres are drawn to 1/2, per squared distance.
_KAPPA = 0.004
# With more prices curvatures and linear programmes cost more than they save.
MOST_PRICES = 500
# Fewest iterations of L-BFGS for known groups. Estimated ones are less exact, and prices that
# follow tight limits on them closely lose more accuracy than prices that are not found quite.
_LBFGS = 60
# Limits that contradict each other have multipliers without end; in units of worth, which is at
# most 1, larger ones only round the others away.
_LARGEST = 1e4
# Newton's method ends at smaller slopes (and its ridge is no smaller), begins with this ridge, and
# moves multipliers by at most this much.
_FLAT, _RIDGE, _LARGEST_STEP = 1e-6, 1e-2, 0.5


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
    def _last_effects(self) -> list[_Effects]:
        return []

    def effects(self, rows: LinearRows) -> _Effects:
        """Return what multipliers do; the last ones serve again where only bounds have moved."""
        for last in self._last_effects:  # one at most
            if last.serve(rows):
                return last
        self._last_effects[:] = [effects := _Effects.of(self, rows)]
        return effects

    @cached_property
    def totals(self) -> FloatArray:
        """Total share of each feature."""
        return np.asarray(self.shares.T @ self.weights)

    def soft_table(
        self, prices: FloatArray, temperature: float, curvature: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return the weighted sum of soft maxima, and how much of each feature goes to each class.

        Prices and table have the shape (n_features, n_classes). Of sparse shares, second
        derivatives for prices of classes after the first, by class and then feature, are written
        to ``curvature``, unless that is None or empty.
        """
        from skfair._kernels.decisions import soft_table_sparse, soften

        shares, first = self.shares, prices[:, 0]
        relative = np.ascontiguousarray((prices[:, 1:] - first[:, None]).T)
        if isinstance(shares, np.ndarray):
            leads = self._leads - shares @ relative.T
            total = soften(leads, self.weights, temperature)
            table = leads.T @ shares
        else:
            table = np.empty(relative.shape)
            curvature = np.empty((0, 0, 0, 0)) if curvature is None else curvature
            parts = shares.indptr, shares.indices, shares.data
            rest = relative, self.weights, temperature, table, curvature
            total = soft_table_sparse(self._leads, *parts, *rest)
        total += float(self.weights @ self.values[:, 0] - self.totals @ first)
        return total, np.column_stack([self.totals - table.sum(axis=0), table.T])

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


class _Evaluated(NamedTuple):
    """The dual at a point: value, slope and curvature, which is empty if it does not pay."""

    value: float
    slope: FloatArray
    curvature: FloatArray


class _Effects(NamedTuple):
    """What multipliers at upper and at lower bounds do, whatever these are: one after the other.

    They are in units of prices: the largest effect of each row is 1.
    """

    rows: LinearRows  # what was limited
    scale: FloatArray  # (n_rows,)
    which: IntArray  # (n_multipliers,): the row of each
    signs: FloatArray
    units: FloatArray
    on_table: sparse.csr_array  # (n_multipliers, n_prices)
    on_prices: sparse.csr_array  # the same, transposed
    pulled: FloatArray  # (n_multipliers, n_centers)
    # Effects on prices relative to those of the first class, by class and then feature; None where
    # there is no curvature
    relative: sparse.csr_array | None

    @classmethod
    def of(cls, data: SoftRows, rows: LinearRows) -> _Effects:
        """Read the effects off the rows."""
        # A rate of a cell that is expected to be empty depends on its centre only.
        both = abs(sparse.hstack([rows.matrix, rows.centers], format="csr"))
        scale = np.maximum(both.max(axis=1).toarray().ravel(), ROUNDING)
        above, below = (np.flatnonzero(np.isfinite(b)) for b in (rows.upper, rows.lower))
        which = np.concatenate([above, below])
        signs = np.repeat([1.0, -1.0], [above.size, below.size])
        units = signs / scale[which]
        on_table = sparse.csr_array(sparse.diags_array(units) @ rows.matrix[which])
        pulled = (sparse.diags_array(units) @ rows.centers[which]).toarray()
        n_features, n_classes = data.shares.shape[1], data.values.shape[1]
        relative = None
        is_known = not isinstance(data.shares, np.ndarray)
        if is_known and n_features * (n_classes - 1) <= MOST_PRICES:
            both = on_table.toarray().reshape(-1, n_features, n_classes).transpose(0, 2, 1)
            differences = (both[:, 1:] - both[:, :1]).reshape(which.size, -1)
            relative = sparse.csr_array(differences)
        return cls(rows, scale, which, signs, units, on_table, on_table.T.tocsr(), pulled, relative)

    def serve(self, rows: LinearRows) -> bool:
        """Whether these are the effects of rows, which differ in bounds only."""
        own = self.rows
        is_alike = own.matrix is rows.matrix and own.centers is rows.centers
        pairs = (own.upper, rows.upper), (own.lower, rows.lower)
        return is_alike and all(
            np.array_equal(np.isfinite(mine), np.isfinite(other)) for mine, other in pairs
        )


class _Dual:
    """The dual as a function of multipliers at upper and at lower bounds, one after the other."""

    def __init__(self, data: SoftRows, rows: LinearRows, temperature: float) -> None:
        self.data, self.temperature, self.effects = data, temperature, data.effects(rows)
        above, below = (b[np.isfinite(b)] for b in (rows.upper, rows.lower))
        self.costs = np.concatenate([above, below]) * self.effects.units
        self.shape = (data.shares.shape[1], data.values.shape[1])
        self.is_curved = self.effects.relative is not None

    def point(self, multipliers: FloatArray) -> FloatArray:
        """Return the point of multipliers."""
        own = self.effects
        return np.asarray(np.maximum((multipliers * own.scale)[own.which] * own.signs, 0.0))

    def multipliers(self, point: FloatArray) -> FloatArray:
        """Return the multipliers of a point."""
        multipliers = np.zeros(self.effects.scale.size)
        np.add.at(multipliers, self.effects.which, point * self.effects.units)
        return np.asarray(multipliers)

    def evaluate(self, point: FloatArray) -> _Evaluated:
        """Return the dual at a point."""
        (n_features, n_classes), effects = self.shape, self.effects
        sides = (n_classes - 1, n_features) if self.is_curved else (0, 0)
        curvature = np.empty((*sides, *sides))
        prices = (effects.on_prices @ point).reshape(self.shape)
        value, table = self.data.soft_table(prices, self.temperature, curvature)
        pulls = effects.pulled.T @ point
        value += float(self.costs @ point)
        slope = self.costs - effects.on_table @ table.ravel()
        if effects.relative is None:
            value += self.temperature * np.logaddexp(0.0, pulls / self.temperature).sum()
            slope = slope + effects.pulled @ expit(pulls / self.temperature)
            return _Evaluated(value, slope, curvature)
        value += 0.5 * float(pulls.sum() + pulls @ pulls / _KAPPA)
        slope = slope + effects.pulled @ (0.5 + pulls / _KAPPA)
        size = effects.relative.shape[1]
        own = effects.relative @ (effects.relative @ curvature.reshape(size, size)).T
        return _Evaluated(value, slope, own + effects.pulled @ effects.pulled.T / _KAPPA)


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
        What is limited.
    start : ndarray of shape (n_rows,)
        Multipliers to start from.
    temperature : float
        The softer the decisions, the larger.
    max_iter : int
        Most steps.

    Returns
    -------
    multipliers : ndarray of shape (n_rows,)
        Positive at an upper bound, negative at a lower one.
    """
    dual = _Dual(data, rows, temperature)
    point = dual.point(start)
    if dual.is_curved:
        return dual.multipliers(_newton(dual, point, max_iter))

    def slope_at(trial_point: FloatArray) -> tuple[float, FloatArray]:
        trial = dual.evaluate(trial_point)
        return trial.value, trial.slope

    is_dense = isinstance(data.shares, np.ndarray)
    most = max_iter if is_dense else max(max_iter, _LBFGS)
    minimiser = minimised_above_zero(slope_at, point, most)
    return dual.multipliers(np.minimum(minimiser, _LARGEST))


def _newton(dual: _Dual, point: FloatArray, max_iter: int) -> FloatArray:
    """Return where the dual is least over points that are at least 0.

    A ridge keeps steps short where the last one was too long: there the curvature changes.
    """
    ridge, now = _RIDGE, dual.evaluate(point)
    for _ in range(max_iter):
        slope = now.slope[(point > 0) | (now.slope < 0)]
        if abs(slope).max(initial=0.0) < _FLAT:
            break
        step = _step(now, point, ridge)
        step *= min(1.0, _LARGEST_STEP / max(abs(step).max(), ROUNDING))
        other = np.maximum(point + step, 0.0)
        trial = dual.evaluate(other)
        expected = -float(now.slope @ step + 0.5 * step @ now.curvature @ step)
        gain = now.value - trial.value
        if gain < max(0.1 * expected, 0.0):
            ridge *= 10.0
        elif gain > 0.5 * expected:
            ridge = max(ridge / 10.0, _FLAT)
        if gain > 0:
            point, now = other, trial
    return point


def _step(now: _Evaluated, point: FloatArray, ridge: float) -> FloatArray:
    """Return the step to where the quadratic at a point is least, about, and no point below 0."""
    curvature = now.curvature + ridge * np.eye(point.size)
    is_free = (point > 0) | (now.slope < 0)
    step = np.where(is_free, 0.0, -point)
    while is_free.any():
        rest = now.slope[is_free] + curvature[np.ix_(is_free, ~is_free)] @ step[~is_free]
        step[is_free] = -np.linalg.solve(curvature[np.ix_(is_free, is_free)], rest)
        is_out = is_free & (point + step < 0)
        if not is_out.any():
            break
        step[is_out] = -point[is_out]
        is_free &= ~is_out
    return step


def soft_values(
    data: SoftRows, rows: LinearRows, prices: FloatArray, temperature: float
) -> FloatArray:
    """Return the expected values of the rows at given prices."""
    _, table = data.soft_table(prices, temperature)
    return np.asarray(rows.matrix @ table.ravel())
