"""Minimising over numbers >= 0, against scipy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import fmin_l_bfgs_b, nnls

from skfair.solvers.clustering.above_zero import minimised_above_zero


def least_squares(seed, shape=(60, 25)):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=shape), rng.normal(size=shape[0])

    def function(x):
        left = A @ x - b
        return float(left @ left) / 2, A.T @ left

    return A, b, function


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_above_zero(seed):
    A, b, function = least_squares(seed)
    given = {"max_iter": 500, "least_gain": 0.0, "tol": 1e-9}
    start = np.random.default_rng(seed).random(25)
    found = minimised_above_zero(function, start, **given)
    expected = nnls(A, b)[0]
    assert 0 < np.count_nonzero(expected) < 25
    assert_allclose(found, expected, atol=1e-6)
    assert found.min() == 0.0
    assert_allclose(found > 0, expected > 0)


@pytest.mark.parametrize("max_iter", [15, 60])
def test_few_steps_get_about_as_far_as_scipy(max_iter):
    reached = []
    for seed in range(8):
        _, _, function = least_squares(seed, (400, 300))
        start = np.zeros(300)
        found = minimised_above_zero(function, start, max_iter=max_iter, least_gain=0.0, tol=0.0)
        theirs = fmin_l_bfgs_b(function, start, bounds=[(0, None)] * 300, maxiter=max_iter)[1]
        reached.append((function(start)[0] - function(found)[0]) / (function(start)[0] - theirs))
    assert np.mean(reached) > 0.98


def test_options_end_it():
    _, _, function = least_squares(0)
    calls = []

    def counted(x):
        calls.append(function(x)[0])
        return function(x)

    start = np.ones(25)
    numbers = []
    for given in ({"max_iter": 3}, {"least_gain": 0.1}, {"tol": 1.0}, {}):
        calls.clear()
        minimised_above_zero(
            counted, start, **{"max_iter": 300, "least_gain": 0.0, "tol": 1e-9} | given
        )
        numbers.append(len(calls))
    assert max(numbers[:3]) < numbers[3]
    assert_allclose(start, 1.0)


def test_where_nothing_is_to_be_gained_it_stays():
    found = minimised_above_zero(
        lambda x: (float(x.sum()), np.ones(3)), np.zeros(3), max_iter=9, least_gain=0.0, tol=1e-9
    )
    assert_allclose(found, 0.0)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_unit_of_the_numbers_does_not_matter(scale):
    """The first step is a guess: lengths far from it are found."""
    A, b, function = least_squares(3)

    def scaled(x):
        value, slope = function(x / scale)
        return value, slope / scale

    given = {"max_iter": 300, "least_gain": 0.0, "tol": 0.0}
    found = minimised_above_zero(scaled, np.zeros(25), **given)
    assert_allclose(found / scale, nnls(A, b)[0], atol=1e-5)
