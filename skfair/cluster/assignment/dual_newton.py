"""Newton's method for the smoothed dual of an assignment under constraints.

:func:`lowered` is the search that ``maximise_dual`` of ``by_prices.py`` runs at one temperature. It
minimises the negative of the dual, a convex function of multipliers lam >= 0, (n_clusters,
n_constraints), one for each cluster k and constraint r. The function comes as a callable that
returns ``(value, slope, curvature)``:

- ``slope[k, r]`` is the derivative by lam[k, r]. It equals the left side plus the slack of
  constraint r in cluster k, as a share of all weight, so it is negative if the constraint is
  violated.
- ``curvature[s]`` (n_clusters, n_clusters) holds, for cell s, minus the derivatives of the counts
  of the clusters by the prices of the clusters. The second derivative by lam[k, r] and lam[j, q] is

      sum over cells s of  matrix[r, s] curvature[s, k, j] matrix[q, s],

  where ``matrix`` (n_constraints, n_cells) holds the coefficients of the constraints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.cost_table import SoftCounts

# The search ends once every slope that matters is below ``temperature * _SLIGHT``, a share of all
# weight, and below ``temperature * _OF_MEAN`` in units of the mean count of a cell in a cluster.
# The second rule is for many counts: each of 2,000 is a small share of all weight.
_SLIGHT, _OF_MEAN = 1 / 30, 6.0
# It also ends after _MOST_SLOW steps in a row that each lower the value by less than ``temperature
# * _SLOW`` times the value. With this rule, 108 fits of 600 to 3,000 rows make 0.74 of the
# evaluations, at costs 0.002 (+- 0.006) % higher. With 3 steps they make 0.86 of the evaluations,
# at costs 0.016 (+- 0.007) % lower, in 0.1 more time.
_MOST_SLOW, _SLOW = 2, 3e-3
# The largest length of the first step (see ``reach`` below). From 1 on, the first steps of a
# problem with 160 counts fail and the search ends.
_REACH = 0.03
# Newton's equations in more multipliers than MANY are solved by conjugate gradients, which end
# after _MOST_PRODUCTS products or at a residual of _PRECISE times the slope. A direct solution
# takes 0.04 ms instead of 0.6 ms for 15 multipliers, 0.8 instead of 1.3 for 200, and 110 instead of
# 3 for 1,000.
MANY = 200
_MOST_PRODUCTS, _PRECISE = 30, 1e-2


def lowered(
    dual: Callable[[FloatArray], SoftCounts],
    lam: FloatArray,
    matrix: FloatArray,
    temperature: float,
    max_iter: int,
) -> FloatArray:
    """Return multipliers of a lower value, after at most ``max_iter`` Newton steps.

    A step changes the *free* multipliers only: those above 0, and those at 0 whose constraint is
    violated, so that they would rise. Multipliers that would become negative are set to 0.

    The second derivatives may be 0, so ``steepest / reach`` is added to their diagonal, where
    ``steepest`` is the largest slope. No multiplier then moves by more than about ``reach``. After
    each step, ``reach`` grows if the value fell by more than 0.6 of what slope and second
    derivatives predicted, and shrinks below 0.2. A step that does not lower the value is not taken.
    """
    (value, slope, curvature), reach, n_slow = dual(lam), _REACH, 0
    slight = temperature * min(_SLIGHT, _OF_MEAN / (lam.shape[0] * matrix.shape[1]))
    for _ in range(max_iter):
        cluster, constraint = free = np.nonzero((lam > 0) | (slope < 0))
        slope_of_free, coefficients = slope[free], matrix[constraint]
        steepest = np.abs(slope_of_free).max(initial=0.0)
        if steepest <= slight or n_slow == _MOST_SLOW:
            break
        second = _second_derivatives(coefficients, cluster, curvature)
        step = _step(second, slope_of_free, steepest / reach)
        change = np.maximum(lam[free] + step, 0.0) - lam[free]
        other = lam.copy()
        other[free] += change
        reached = dual(other)
        gained = reached[0] - value  # negative if the value falls, like ``predicted``
        predicted = change @ (slope_of_free + second @ change / 2)
        share = gained / predicted if predicted < 0 else 0.0
        reach = min(reach * (3.0 if share > 0.6 else 0.3 if share < 0.2 else 1.0), 30.0)
        n_slow = n_slow + 1 if -gained < _SLOW * temperature * abs(value) else 0
        if gained < 0:
            lam, (value, slope, curvature) = other, reached
    return lam


def _second_derivatives(coefficients: FloatArray, cluster: IntArray, curvature: FloatArray) -> Any:
    """Return the matrix of second derivatives by the free multipliers, see the module.

    It is an array for up to ``MANY`` multipliers, and otherwise an operator that only multiplies.
    ``coefficients`` (n_free, n_cells) belong to the constraints of the free multipliers, and
    ``cluster`` (n_free,) are their clusters.
    """
    n_cells, n_clusters, _ = curvature.shape
    if cluster.size <= MANY:
        placed = coefficients[:, :, None] * np.eye(n_clusters)[cluster][:, None]
        curved = coefficients[:, :, None] * curvature.transpose(1, 0, 2)[cluster]
        return curved.reshape(cluster.size, -1) @ placed.reshape(cluster.size, -1).T
    which, cell = np.nonzero(coefficients)
    place = which, cell * n_clusters + cluster[which]
    shape = cluster.size, n_cells * n_clusters
    prices = sparse.csr_array((coefficients[which, cell], place), shape)
    by_price = prices.T  # made once, because to transpose takes longer than a product

    def product(change: FloatArray) -> FloatArray:
        moved = (by_price @ change).reshape(n_cells, n_clusters, 1)
        return np.asarray(prices @ (curvature @ moved).ravel())

    return LinearOperator((cluster.size, cluster.size), product, dtype=np.float64)


def _step(second: Any, slope: FloatArray, damping: float) -> FloatArray:
    """Return the x that solves ``(second + damping I) x = -slope``."""
    if isinstance(second, np.ndarray):
        return np.asarray(np.linalg.solve(second + damping * np.eye(slope.size), -slope))
    damped = LinearOperator(second.shape, lambda v: second @ v + damping * v, dtype=np.float64)
    return np.asarray(cg(damped, -slope, rtol=_PRECISE, maxiter=_MOST_PRODUCTS)[0])
