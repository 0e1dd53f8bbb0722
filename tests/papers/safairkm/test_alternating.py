"""Alternating gradient descent: where it ends, how fast, and what it refuses."""

import numpy as np
import pytest

from skfair.papers import alternating_gradient
from tests.naive import soft as naive_soft
from tests.seeds import generator

N_REPEATS, DIM = 30, 10


def spd(rng, lowest, highest):
    basis = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    return (basis * np.linspace(lowest, highest, DIM)) @ basis.T


class Quadratics:
    """Two strongly convex quadratics; the minimiser of every weighted sum has a closed form."""

    def __init__(self, noise=0.5, highest=5 / 3):
        rng = generator(0)
        self.A, self.B = spd(rng, 1, 1.5), spd(rng, 1, highest)
        self.a, self.b = rng.normal(size=(2, DIM))
        self.noise = noise

    def grad_a(self, x, rng):
        return (x - self.a) @ self.A + self.noise * rng.normal(size=x.shape)

    def grad_b(self, x, rng):
        return (x - self.b) @ self.B + self.noise * rng.normal(size=x.shape)

    def hessian(self, lam):
        return lam * self.A + (1 - lam) * self.B

    def minimiser(self, lam):
        pulled = lam * self.A @ self.a + (1 - lam) * self.B @ self.b
        return np.linalg.solve(self.hessian(lam), pulled)

    def gap(self, x, lam):
        """Mean over the rows of x of S(x) - S*, exact for quadratics."""
        error = x - self.minimiser(lam)
        return 0.5 * np.einsum("ri,ij,rj->r", error, self.hessian(lam), error).mean()


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (1, 3), (4, 1)])
def test_rate_and_weight(n_a, n_b):
    """Theorem 5.1: the gap falls like 1/T, towards the minimiser with weight n_a / (n_a + n_b)."""
    problem = Quadratics()
    lam = n_a / (n_a + n_b)
    marks = np.unique(np.geomspace(30, 1500, 15).astype(int))
    gaps, seen = [], [0]

    def watch(x):
        seen[0] += 1
        if seen[0] in marks:
            gaps.append(problem.gap(x, lam))

    result = alternating_gradient(
        problem.grad_a,
        problem.grad_b,
        np.tile(problem.a + 2, (N_REPEATS, 1)),  # independent repetitions, one per row
        n_a=n_a,
        n_b=n_b,
        strong_convexity=1.0,
        lipschitz=5 / 3,
        max_iter=1500,
        random_state=0,
        callback=watch,
    )
    slope = np.polyfit(np.log(marks), np.log(gaps), 1)[0]
    assert -1.25 <= slope <= -0.85  # the benchmark, with more repetitions: [-1.15, -0.9]
    grid = np.linspace(0, 1, 2001)
    mean = result.theta.mean(axis=0)
    nearest = grid[np.argmin([np.sum((problem.minimiser(g) - mean) ** 2) for g in grid])]
    assert nearest == pytest.approx(lam, abs=0.005)


def test_equals_the_algorithm_line_by_line():
    problem = Quadratics()
    options = {"n_a": 2, "n_b": 3, "random_state": 7, "max_iter": 20}
    result = alternating_gradient(
        problem.grad_a, problem.grad_b, np.zeros(DIM), strong_convexity=0.5, **options
    )
    lengths = [2 / (0.5 * (t + 1) * 5) for t in range(20)]
    expected = naive_soft.alternate(
        problem.grad_a, problem.grad_b, np.zeros(DIM), 2, 3, lengths, np.random.RandomState(7)
    )
    assert np.allclose(result.theta, expected, rtol=1e-12, atol=1e-12)
    assert result.n_iter == 20
    assert result.status == "max_iter"
    assert result.multipliers.size == 0
    assert np.allclose(result.history["step"], lengths)
    assert len(result.history["gradient_norm"]) == len(result.history["seconds"]) == 20


@pytest.mark.parametrize(("n_a", "n_b", "end"), [(3, 0, "a"), (0, 2, "b")])
def test_one_objective_alone(n_a, n_b, end):
    problem = Quadratics(noise=0)
    result = alternating_gradient(
        problem.grad_a, problem.grad_b, np.zeros(DIM), n_a=n_a, n_b=n_b, step=0.3, tol=1e-10
    )
    assert result.status == "converged"
    assert result.n_iter < 1000
    assert np.allclose(result.theta, getattr(problem, end), atol=1e-8)


def test_the_cap_keeps_badly_conditioned_problems_near():
    problem = Quadratics(noise=0, highest=200)
    farthest = {}
    for cap in (None, 200.0):
        norms = []
        alternating_gradient(
            problem.grad_a,
            problem.grad_b,
            np.ones(DIM),
            n_a=1,
            n_b=1,
            strong_convexity=1.0,
            lipschitz=cap,
            max_iter=50,
            callback=lambda x, norms=norms: norms.append(np.linalg.norm(x)),
        )
        farthest[cap] = max(norms)
    assert farthest[200.0] < 10
    assert farthest[None] > 1e6


@pytest.mark.parametrize("step", [0.01, lambda t: 0.01])
def test_steps_by_number_and_by_function(step):
    result = alternating_gradient(
        lambda x, rng: x, lambda x, rng: x, [1.0], n_a=1, n_b=1, step=step, max_iter=3
    )
    assert result.theta[0] == pytest.approx(0.99**6)
    capped = alternating_gradient(
        lambda x, rng: x,
        lambda x, rng: x,
        [1.0],
        n_a=1,
        n_b=1,
        step=step,
        lipschitz=100.0,
        max_iter=3,
    )
    assert capped.history["step"].tolist() == [0.005] * 3


def test_average_weighs_the_iterates_by_their_number():
    seen = []
    result = alternating_gradient(
        lambda x, rng: np.ones(1),
        lambda x, rng: np.ones(1),
        [0.0],
        n_a=1,
        n_b=0,
        step=1.0,
        max_iter=4,
        average=True,
        callback=lambda x: seen.append(x[0]),
    )
    assert result.theta[0] == pytest.approx(np.average(seen, weights=[1, 2, 3, 4]))


def test_the_callback_sees_separate_iterates_and_can_stop():
    seen = []

    def callback(x):
        seen.append(x)
        return len(seen) == 5

    x0 = np.ones(2)
    result = alternating_gradient(
        lambda x, rng: x, lambda x, rng: x, x0, n_a=1, n_b=1, step=0.1, callback=callback
    )
    assert result.status == "stopped"
    assert result.n_iter == 5
    assert len({x[0] for x in seen}) == 5
    assert x0.tolist() == [1, 1]
