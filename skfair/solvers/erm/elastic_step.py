r"""The minimum of a small quadratic model under many inequalities that may be violated a little.

:func:`elastic_step` solves, for a positive definite H,

.. math:: \min_{d, t} \; g'd + \tfrac12 d'Hd + \tfrac{K}{2} t^2
   \quad \text{subject to} \quad A d + t \ge b, \quad |d_i| \le r

where t is the amount by which the inequalities may be violated. It costs K t^2 / 2, so a solution
always exists. :mod:`skfair.enforcement.erm.rate_steps` and
``skfair/estimators/certified/linear_folds.py`` call it for each step of their own methods.

With B'HB = I (from a Cholesky factor), d = B (z - B'g) and s = sqrt(K) t, it is the point (z, s) of
a polyhedron that is nearest to the origin. Lawson and Hanson find such a point by non-negative
least squares, with one unknown for each inequality.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from skfair._typing import FloatArray

# The default of K. Inequalities whose multipliers add up to p are violated by p / K.
ELASTIC = 1e6
_MOST_STEPS = 100  # largest number of steps of the method for each inequality


class ElasticStep(NamedTuple):
    """The minimum of the model."""

    d: FloatArray  # (n_parameters,)
    multipliers: FloatArray  # (n_constraints,): not negative
    missed: float  # t


def elastic_step(
    hessian: FloatArray,  # (n_parameters, n_parameters): positive definite
    gradient: FloatArray,
    constraints: FloatArray,  # A: (n_constraints, n_parameters)
    least: FloatArray,  # b
    radius: float = np.inf,  # r
    elastic: float = ELASTIC,  # K; inf if all inequalities can be satisfied
    back: FloatArray | None = None,  # inverse_factor(hessian); if None, it is computed
) -> ElasticStep:
    """Return the minimum of the model and the multipliers of its inequalities."""
    p = gradient.size
    # Inequalities that all steps in the box satisfy are left out.
    near, box = np.arange(least.size), np.empty((0, p))
    if radius < np.inf:
        near = np.flatnonzero(least > -radius * np.abs(constraints).sum(axis=1))
        box = np.vstack([np.eye(p), -np.eye(p)])
    back = inverse_factor(hessian) if back is None else back
    middle = -(back.T @ gradient)
    stretch = np.append(np.full(near.size, elastic**-0.5), np.zeros(len(box)))
    sides = np.vstack([constraints[near], box]) @ back  # (n_sides, p)
    ends = np.append(least[near], np.full(len(box), -radius)) - sides @ middle
    columns = np.vstack([sides.T, stretch, ends])
    aim = np.append(np.zeros(p + 1), 1.0)
    weights, _ = nnls(columns, aim, maxiter=_MOST_STEPS * ends.size)
    # The residual of this fit has the direction of the nearest point, as Lawson and Hanson show.
    left = aim - columns @ weights
    point = -left[:-1] / left[-1]
    multipliers = np.bincount(near, weights[: near.size] / left[-1], least.size).astype(float)
    d = back @ (point[:-1] + middle)
    return ElasticStep(np.clip(d, -radius, radius), multipliers, float(point[-1] * elastic**-0.5))


def inverse_factor(hessian: FloatArray) -> FloatArray:
    """Return the matrix B for which B'HB is the identity."""
    lower = cholesky(hessian, lower=True)
    return np.asarray(solve_triangular(lower, np.eye(len(lower)), lower=True).T)
