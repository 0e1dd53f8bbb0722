r"""Offsets that keep constraints in expectation: the dual of the best soft decisions.

With expected utility V, shares Phi and rows C, ``lower <= C m - Z r <= upper`` for centres r
between 0 and 1, the offsets ``L = C' lam`` minimise

.. math:: \sum_i w_i \, T \log \sum_c \exp((V - \Phi L)_{ic} / T)
          + u' \lambda^+ - l' \lambda^- + T \, 1' \log(1 + \exp(Z' \lambda / T))

over multipliers :math:`\lambda = \lambda^+ - \lambda^-`, both at least 0, by L-BFGS-B of SciPy. A
centre is a choice, too, of 0 or 1. One evaluation is a pass over the rows. Newton's method for
known groups took as long in 117 searches between several groups or classes, at the same accuracy.
With clusters, which have few multipliers, it takes two thirds of the time
(:mod:`skfair.cluster.assignment.by_prices`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, minimize
from scipy.special import expit

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.rows import LinearRows
from skfair.enforcement.decisions.shares import Shares
from skfair.utils.rounding import ROUNDING

# Fewest iterations for known groups. Estimated ones are less exact, and offsets that follow tight
# limits on them closely lose more accuracy than offsets that are not found quite.
_FEWEST_STEPS = 60
# Limits that contradict each other have multipliers without end; in units of utility, which is at
# most 1, larger ones only round the others away.
_LARGEST = 1e4
# A step that gains less than this share of the value is the last, and one after which all slopes
# that lead further are this small.
_LEAST_GAIN, _SMALL_SLOPE = 1e-9, 1e-6


@dataclass(frozen=True, eq=False)
class SoftRows:
    """Rows of data as the dual sees them: expected utility, shares and weights."""

    values: FloatArray
    shares: Shares
    weights: FloatArray

    @cached_property
    def _leads(self) -> FloatArray:
        """Utility of each other class minus that of the first."""
        return np.ascontiguousarray(self.values[:, 1:] - self.values[:, :1])

    @cached_property
    def totals(self) -> FloatArray:
        return np.asarray(self.shares.T @ self.weights)

    def soft_table(self, offsets: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return the weighted sum of soft maxima, and how much of each feature goes to each class.

        Offsets and table have the shape (n_features, n_classes).
        """
        from skfair._kernels.decisions import soften

        first = offsets[:, 0]
        relative = np.ascontiguousarray(offsets[:, 1:] - first[:, None])
        leads = self._leads - self.shares @ relative
        total = soften(leads, self.weights, temperature)
        table = np.asarray(self.shares.T @ leads)
        total += float(self.weights @ self.values[:, 0] - self.totals @ first)
        return total, np.column_stack([self.totals - table.sum(axis=1), table])

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
    rows: LinearRows,  # what is limited
    start: FloatArray,  # (n_rows,): multipliers to start from
    temperature: float,  # the softer the decisions, the larger
    max_iter: int,
) -> FloatArray:
    """Return the multipliers (n_rows,): positive at an upper bound, negative at a lower one."""
    # Multipliers at upper bounds, then those at lower ones. They are in units of offsets: the
    # largest effect of each row is 1. A rate of a cell that is expected to be empty depends on its
    # centre only.
    both = sparse.hstack([rows.matrix, -rows.centers], format="csr")
    scale = np.maximum(abs(both).max(axis=1).toarray().ravel(), ROUNDING)
    above, below = (np.flatnonzero(np.isfinite(b)) for b in (rows.upper, rows.lower))
    which, signs = np.concatenate([above, below]), np.repeat([1.0, -1.0], [above.size, below.size])
    units = signs / scale[which]
    costs = np.concatenate([rows.upper[above], rows.lower[below]]) * units
    effects = sparse.csr_array(sparse.diags_array(units) @ both[which])
    on_offsets = effects.T.tocsr()
    shape = data.shares.shape[1], data.values.shape[1]

    def dual(point: FloatArray) -> tuple[float, FloatArray]:
        charged, pulls = np.split(on_offsets @ point, [shape[0] * shape[1]])
        value, table = data.soft_table(charged.reshape(shape), temperature)
        pulls /= -temperature
        value += temperature * float(np.logaddexp(0.0, pulls).sum()) + float(costs @ point)
        return value, costs - effects @ np.append(table, expit(pulls))

    most = max_iter if isinstance(data.shares, np.ndarray) else max(max_iter, _FEWEST_STEPS)
    first = np.maximum((start * scale)[which] * signs, 0.0)
    options: Any = {"maxiter": most, "ftol": _LEAST_GAIN, "gtol": _SMALL_SLOPE}
    bounds = Bounds(0.0, np.inf)
    solution = minimize(dual, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    point = np.minimum(solution.x, _LARGEST)
    multipliers = np.zeros(scale.size)
    np.add.at(multipliers, which, point * units)
    return multipliers
