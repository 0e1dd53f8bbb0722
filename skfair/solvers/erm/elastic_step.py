r"""The least value of a small quadratic model under many linear inequalities, roughly.

.. math:: \min_{d, t} \; g'd + \tfrac12 d'Hd + \tfrac{K}{2} t^2
   \quad \text{subject to} \quad A d + t \ge b, \quad |d_i| \le r

In the coordinates of a Cholesky factor this is the point next to the origin in a polyhedron, which
Lawson and Hanson find by non-negative least squares with one variable for each constraint.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from skfair._typing import FloatArray

# What it costs to miss all constraints by t is this times t^2 / 2: with a multiplier of p one is
# missed by p / K.
ELASTIC = 1e6
_MOST_STEPS = 100  # of the method, for each constraint


class ElasticStep(NamedTuple):
    """Where the model is least."""

    d: FloatArray  # (n_parameters,)
    multipliers: FloatArray  # (n_constraints,): not negative
    missed: float  # t


def elastic_step(
    hessian: FloatArray,  # (n_parameters, n_parameters): positive definite
    gradient: FloatArray,
    constraints: FloatArray,  # A: (n_constraints, n_parameters)
    least: FloatArray,  # b
    radius: float = np.inf,  # r
    elastic: float = ELASTIC,  # K; infinite where all constraints can be kept
    back: FloatArray | None = None,  # the inverse factor of the Hessian, if it is known
) -> ElasticStep:
    """Minimise the model."""
    p = gradient.size
    # Constraints that no step in the box comes near say nothing.
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
    left = aim - columns @ weights
    point = -left[:-1] / left[-1]
    multipliers = np.bincount(near, weights[: near.size] / left[-1], least.size).astype(float)
    d = back @ (point[:-1] + middle)
    return ElasticStep(np.clip(d, -radius, radius), multipliers, float(point[-1] * elastic**-0.5))


def inverse_factor(hessian: FloatArray) -> FloatArray:
    """Return the matrix B for which B'HB is the identity."""
    lower = cholesky(hessian, lower=True)
    return np.asarray(solve_triangular(lower, np.eye(len(lower)), lower=True).T)
