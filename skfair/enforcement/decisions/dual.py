r"""Offsets that satisfy constraints in expectation: the dual problem of the best soft decisions.

:class:`~skfair.enforcement.decisions.offsets.OffsetSearch` calls :func:`solve_dual` at falling
temperatures T and gets multipliers. A *soft* decision gives row i to class c with the probability
softmax((V - Phi L)_i / T)_c, for expected utilities V, shares Phi and offsets L (``shares.py``).
The constraints are the lines l <= C vec(M) - Z r <= u of ``rows.py``, where M are the weights of
the rows by feature and decision, and r are free centres between 0 and 1. With offsets
L = C' lambda, the dual function

.. math:: \sum_i w_i \, T \log \sum_c \exp((V - \Phi L)_{ic} / T)
          + u' \lambda^+ - l' \lambda^- + T \, 1' \log(1 + \exp(Z' \lambda / T))

is minimised over multipliers :math:`\lambda = \lambda^+ - \lambda^-`, both parts at least 0, by
L-BFGS-B of SciPy. The last term is the soft maximum of the choice r = 0 or r = 1. One evaluation is
a pass over the rows. Newton's method for known groups took as long in 117 searches between several
groups or classes, at the same accuracy. With clusters, which have few multipliers, it takes two
thirds of the time (:mod:`skfair.cluster.assignment.by_prices`).
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

# If groups are known, at least this many iterations are allowed. They are not if groups are
# estimated, because shares are then less exact, and offsets that follow tight limits closely lose
# accuracy.
_FEWEST_STEPS = 60
# The largest multiplier. If limits contradict each other, multipliers grow without a bound. Utility
# is at most 1, so beside larger multipliers all other terms would be lost by rounding.
_LARGEST = 1e4
# The search ends if a step gains less than the share _LEAST_GAIN of the value, or if all slopes
# that could lead further are below _SMALL_SLOPE.
_LEAST_GAIN, _SMALL_SLOPE = 1e-9, 1e-6


@dataclass(frozen=True, eq=False)
class SoftRows:
    """Rows of data as the dual sees them."""

    values: FloatArray  # (n_samples, n_classes): expected utility of each decision
    shares: Shares  # (n_samples, n_features)
    weights: FloatArray  # (n_samples,)

    @cached_property
    def _leads(self) -> FloatArray:
        """Utility of each other class minus that of the first."""
        return np.ascontiguousarray(self.values[:, 1:] - self.values[:, :1])

    @cached_property
    def totals(self) -> FloatArray:
        """Expected weight of each feature."""
        return np.asarray(self.shares.T @ self.weights)

    def soft_table(self, offsets: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return the first term of the dual function, and the table M of the soft decisions.

        ``offsets`` and the table have the shape (n_features, n_classes). The kernel ``soften``
        replaces the leads of the other classes over the first by weights of soft decisions.
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

        ``strata`` (n_samples,) are numbers of strata. Half of the rows are drawn in proportion to
        the sizes of strata. The other half is divided equally among strata, so that small ones have
        enough rows.
        """
        counts = np.bincount(strata)
        wanted = 0.5 * size * (counts / strata.size + 1 / np.count_nonzero(counts))
        # ``order`` becomes the rows stratum by stratum, in random order within each. ``place`` is
        # the place of each of these rows in its stratum.
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
    temperature: float,  # a larger one makes decisions softer
    max_iter: int,
) -> FloatArray:
    """Return the multipliers (n_rows,): positive at an upper bound, negative at a lower one."""
    # The unknowns are lambda+ for finite upper bounds, then lambda- for finite lower ones. Lines
    # are scaled to a largest effect of 1, which makes multipliers comparable. If no rows are
    # expected to have the features of a line, its effects are 0 and only the centre is left.
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
        """Return the dual function and its gradient; ``pulls`` are Z' lambda / T."""
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
