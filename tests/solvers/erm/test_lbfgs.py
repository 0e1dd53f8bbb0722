"""L-BFGS against scipy's, and what it remembers from run to run."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from skfair._kernels import descent
from skfair.solvers.erm.lbfgs import LBFGS, Point
from tests.python_kernels import as_python
from tests.seeds import generator


class Counted:
    """A function that counts its evaluations."""

    def __init__(self, value, gradient):
        self.value, self.gradient, self.n_calls = value, gradient, 0

    def __call__(self, x):
        self.n_calls += 1
        with np.errstate(all="ignore"):
            return Point(x, float(self.value(x)), self.gradient(x), None)


def quadratic(n=30, largest=1e4, seed=0):
    """A function of curvatures from 1 to ``largest``, and where it is least."""
    rng = generator(seed)
    turned, _ = np.linalg.qr(rng.normal(size=(n, n)))
    matrix = turned @ np.diag(np.geomspace(1, largest, n)) @ turned.T
    least = rng.normal(size=n)
    return Counted(
        lambda x: 0.5 * (x - least) @ matrix @ (x - least), lambda x: matrix @ (x - least)
    ), least


def run(function, x, tol=1e-8, max_iter=1000, memory=10):
    return LBFGS(memory).minimize(function, function(x), tol, max_iter)


@pytest.mark.parametrize("kind", ["compiled", "python"])
@pytest.mark.parametrize("memory", [1, 9, 50])
def test_a_direction_is_that_of_the_updated_matrix(memory, kind, monkeypatch):
    """Of the inverse curvature, dense, after one update of BFGS for each of the last pairs."""
    if kind == "python":
        monkeypatch.setattr(descent, "bend", as_python(descent.bend))
    rng = generator(memory)
    root = rng.normal(size=(6, 6))
    curvature, lbfgs, pairs = root @ root.T + np.eye(6), LBFGS(memory), []
    for _ in range(21):
        step, gradient = rng.normal(size=(2, 6))
        change = curvature @ step
        lbfgs._remember(step, change, step @ change)
        pairs = [*pairs, (step, change)][-memory:]
        inverse = np.eye(6) * (step @ change) / (change @ change)
        for s, c in pairs:
            off = np.eye(6) - np.outer(s, c) / (s @ c)
            inverse = off @ inverse @ off.T + np.outer(s, s) / (s @ c)
        assert lbfgs._direction(gradient) == pytest.approx(-inverse @ gradient, rel=1e-9, abs=1e-9)
    lbfgs.forget()
    assert lbfgs._direction(gradient) == pytest.approx(-gradient / np.abs(gradient).sum())


@pytest.mark.parametrize("n", [2, 10])
def test_rosenbrock_as_scipy_and_in_about_as_many_evaluations(n):
    function = Counted(rosen, rosen_der)
    start = np.tile([-1.2, 1.0], n // 2)
    at, _ = run(function, start)
    theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"gtol": 1e-8})
    assert at.value == pytest.approx(theirs.fun, abs=1e-10)
    assert function.n_calls <= 1.5 * theirs.nfev


def test_values_that_are_not_finite_are_stepped_back_from():
    barrier = Counted(lambda x: x[0] - np.log(x[0]), lambda x: np.array([1 - 1 / x[0]]))
    at, _ = run(barrier, np.array([1e-3]))
    assert at.x == pytest.approx([1.0])
    overflow = Counted(lambda x: np.exp(x[0]) - x[0], lambda x: np.array([np.exp(x[0]) - 1]))
    at, _ = run(overflow, np.array([-800.0]))
    assert at.x == pytest.approx([0.0], abs=1e-7)


def test_ends_where_rounding_forbids_more():
    function, _ = quadratic(largest=1e6)
    value = function.value
    function.value = lambda x: value(x) + 1e9  # whose last place is 1e-7
    at, n_iter = run(function, np.zeros(30), tol=0.0, max_iter=100_000)
    assert n_iter < 10_000
    assert value(at.x) <= 1e-3


def test_slopes_tell_the_way_where_rounding_hides_the_descent():
    function, _ = quadratic(largest=100.0)
    value = function.value
    function.value = lambda x: value(x) + 1 + 5e-14 * np.sin(1e9 * x.sum())  # as sums over rows are
    at, n_iter = run(function, np.zeros(30), tol=1e-11)
    assert at.steepness <= 1e-11
    assert n_iter < 200
