"""The least value of a quadratic model under linear constraints: against general solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize

from skfair.solvers.erm.elastic_step import elastic_step
from tests.seeds import generator


def model(seed, n_constraints, p=4):
    rng = generator(seed)
    root = rng.normal(size=(p, p))
    return root @ root.T + 0.1 * np.eye(p), rng.normal(size=p), rng.normal(size=(n_constraints, p))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.1, 1.0, 100.0])
def test_the_least_value_is_that_of_slsqp_and_multipliers_balance_it(seed, radius):
    H, g, A = model(seed, 12)
    inside = generator(seed + 100).uniform(-0.05, 0.05, 4)
    b = A @ inside - np.abs(generator(seed + 200).normal(size=12)) * 0.1
    found = elastic_step(H, g, A, b, radius)
    other = minimize(
        lambda d: g @ d + 0.5 * d @ H @ d,
        inside,
        jac=lambda d: g + H @ d,
        bounds=[(-radius, radius)] * 4,
        constraints={"type": "ineq", "fun": lambda d: A @ d - b, "jac": lambda d: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert_allclose(found.d, other.x, atol=2e-4)
    assert (A @ found.d - b).min() >= -1e-4
    assert np.abs(found.d).max() <= radius
    assert found.multipliers.min() >= 0
    assert_allclose(found.multipliers * (A @ found.d + found.missed - b), 0, atol=1e-6)
    is_free = np.abs(found.d) < radius - 1e-9
    assert_allclose((g + H @ found.d - A.T @ found.multipliers)[is_free], 0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_constraints_that_exclude_each_other_are_missed_by_the_least(seed):
    H, g, A = model(seed, 9)
    A, b = np.vstack([A, -A]), np.full(18, 0.2)
    found = elastic_step(H, g, A, b, 0.5)
    least = linprog(
        [0, 0, 0, 0, 1],
        A_ub=-np.column_stack([A, np.ones(18)]),
        b_ub=-b,
        bounds=[(-0.5, 0.5)] * 4 + [(0, None)],
    )
    assert found.missed == pytest.approx(least.fun, abs=1e-4)
    assert (b - A @ found.d).max() == pytest.approx(least.fun, abs=1e-4)


def test_constraints_out_of_reach_change_nothing():
    H, g, A = model(7, 5)
    b = A @ np.zeros(4) - 0.05
    far = elastic_step(H, g, np.vstack([A, A]), np.append(b, np.full(5, -np.inf)), 0.3)
    alone = elastic_step(H, g, A, b, 0.3)
    assert_allclose(far.d, alone.d, atol=1e-12)
    assert_allclose(far.multipliers, np.append(alone.multipliers, np.zeros(5)), atol=1e-12)
