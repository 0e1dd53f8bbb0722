"""Minimising over numbers >= 0, against scipy, and its kernels against matrices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import fmin_l_bfgs_b, nnls

from skfair._kernels import above_zero as kernels
from skfair.solvers.above_zero import _between, minimised_above_zero
from tests.python_kernels import compiled_and_python


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


kernel = compiled_and_python(kernels)


def inverse_of(steps, bends):
    """Return the inverse second derivatives of BFGS as a matrix, from steps in their order."""
    newest = steps[-1] @ bends[-1] / (bends[-1] @ bends[-1])
    inverse, unit = newest * np.eye(steps.shape[1]), np.eye(steps.shape[1])
    for step, bend in zip(steps, bends, strict=True):
        across = unit - np.outer(bend, step) / (step @ bend)
        inverse = across.T @ inverse @ across + np.outer(step, step) / (step @ bend)
    return inverse


@pytest.mark.parametrize("n_learnt", [0, 1, 3, 5])
def test_direction_is_that_of_bfgs_among_the_free(kernel, n_learnt):
    rng = np.random.default_rng(n_learnt)
    n, n_kept = 6, 3
    bent = np.cov(rng.normal(size=(n, 20)))
    path = rng.normal(size=(n_learnt, n))
    memory = np.zeros((n_kept, n)), np.zeros((n_kept, n)), np.zeros(n_kept)
    n_entered = 0
    for step in path:
        given = np.zeros(n), step, np.zeros(n), bent @ step
        n_entered = kernel("learn_step")(*given, 1e-10, *memory, n_entered)
    assert n_entered == n_learnt
    x, slope = np.array([0.0, 0.0, 0.5, 1.0, 2.0, 0.1]), np.array([1.0, -2.0, 0.3, -0.4, 0, 3])
    direction = np.empty(n)
    steepest = kernel("lead_down")(x, slope, *memory, n_entered, direction)
    assert steepest == 2.0  # of the last number no more than 0.1 is left
    is_free = np.array([False, True, True, True, True, True])
    kept = path[-n_kept:]
    inverse = inverse_of(kept, kept @ bent) if n_learnt else np.eye(n)
    assert_allclose(direction, np.where(is_free, inverse @ np.where(is_free, slope, 0), 0))


def test_steps_end_at_zero(kernel):
    x, direction = np.array([1.0, 0.2, 0.0]), np.array([-1.0, 1.0, 0.0])
    slope, new_slope, after = np.array([-2.0, 3.0, 1.0]), np.array([0.5, -1.0, 1.0]), np.empty(3)
    promised = kernel("step_above_zero")(x, direction, 0.5, slope, after)
    assert_allclose(after, [1.5, 0.0, 0.0])
    assert promised == pytest.approx(slope @ (after - x))
    going = kernel("slope_along")(x, after, new_slope)
    assert going == pytest.approx(new_slope @ (after - x))


def test_rounding_is_not_learnt(kernel):
    memory = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(2)
    at, after, slope = np.zeros(3), np.array([1.0, 0, 0]), np.ones(3)
    for bend in ([1e-12, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]):
        assert kernel("learn_step")(at, after, slope, slope + bend, 1e-10, *memory, 0) == 0
    assert not memory[0].any()
    assert (
        kernel("learn_step")(at, after, slope, slope + np.array([2.0, 1, 0]), 1e-10, *memory, 0)
        == 1
    )
    assert memory[2][0] == 0.5


@pytest.mark.parametrize("far", [2.0, 50.0])
def test_between_two_lengths_the_lowest_of_a_cubic_is_tried(far):
    def cubic(t):
        return t**3 - 3 * t, 3 * t**2 - 3  # lowest at 1

    found = _between((0.0, *cubic(0.0)), (far, *cubic(far)))
    assert found == pytest.approx(max(1.0, 0.1 * far))
    assert 0 < _between((0.0, 1.0, -1.0), (2.0, np.inf, np.nan)) < 2
