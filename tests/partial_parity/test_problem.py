"""Problems with constraints within intervals: derivatives, residuals, cost, a solver on them."""

import tracemalloc

import numpy as np
import pytest
from scipy.optimize import minimize

from skfair.constraints.partial import Surrogate
from skfair.losses import make_loss
from skfair.models.linear import LinearScore
from skfair.partial_parity.grouped_scores import GroupedLinearScore
from skfair.partial_parity.objectives import MeanLoss
from skfair.partial_parity.problem import PartialParityProblem
from skfair.solvers import ALLBFGS
from tests.naive import partial as naive
from tests.naive.soft import finite_differences
from tests.partial_parity.ranked_moments import ranked_moments
from tests.seeds import generator

SMOOTH = Surrogate("smoothstep", 0.6)
MODELS = {
    "linear": lambda X, codes: LinearScore(X),
    "grouped": lambda X, codes: GroupedLinearScore(X, codes, [True, *[False] * codes.max()]),
}
each_model = pytest.mark.parametrize("model", MODELS)


def people(seed=0, n=80, d=3, n_groups=3):
    rng = generator(seed)
    codes = rng.permutation(np.arange(n) % n_groups)
    X = rng.normal(size=(n, d)) + 0.7 * codes[:, None]
    y = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, codes


def build(
    who, constraints, *, model="linear", surrogate=SMOOTH, tolerance=0.1, alpha=0.05, **options
):
    """A problem; of constraints with several forms the last one, that of the paper."""
    X, y, codes = who
    options = {"interval": (0.05, 0.4), "percentiles": [0.2, 0.7], **options}
    rows = codes, y, None, options["interval"], surrogate, options["percentiles"]
    return PartialParityProblem(
        MODELS[model](X, codes),
        MeanLoss(make_loss("log_loss", "classification"), y, np.full(y.size, 1 / y.size)),
        [ranked_moments(constraint, *rows)[-1] for constraint in constraints],
        tolerance,
        alpha=alpha,
    )


def random_point(problem, seed=1):
    rng = generator(seed)
    theta = problem.start(0.5 * rng.normal(size=problem.model.n_parameters))
    return theta + 0.1 * rng.normal(size=theta.size), rng.normal(size=problem.n_constraints)


STACKS = [
    [],
    ["statistical_parity"],
    ["statistical_parity", "equal_opportunity"],
    ["equalized_odds", "statistical_parity", "demographic_parity"],
]
each_stack = pytest.mark.parametrize("constraints", STACKS, ids="+".join)


# Values and derivatives


@each_stack
@each_model
@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("surrogate", [SMOOTH, Surrogate("ramp", 0.5, 0.2)], ids=str)
def test_gradient(constraints, model, alpha, surrogate):
    problem = build(people(), constraints, model=model, alpha=alpha, surrogate=surrogate)
    theta, multipliers = random_point(problem)
    for scale in (1.0, -2.5):

        def lagrangian(point, scale=scale):
            at = problem.evaluate(point)
            return scale * at.objective + multipliers @ at.constraints

        at = problem.evaluate(theta)
        found = at.gradient(multipliers, objective=scale)
        assert found == pytest.approx(finite_differences(lagrangian, theta), abs=2e-7)
    alone = at.gradient()
    assert alone == pytest.approx(at.gradient(0 * multipliers), abs=0)


def test_stacked_constraints_are_the_single_ones():
    who, constraints = people(), STACKS[3]
    stack = build(who, constraints)
    theta, _ = random_point(stack)
    d, values, bounds = stack.model.n_parameters, [], []
    aux = np.split(theta[d:], [2, 4])  # two centres, two thresholds, one centre
    for constraint, own in zip(constraints, aux, strict=True):
        single = build(who, [constraint])
        values.extend(single.evaluate(np.concatenate([theta[:d], own])).constraints)
        bounds.extend(zip(single.lower, single.upper, strict=True))
    assert stack.evaluate(theta).constraints == pytest.approx(values, abs=1e-14)
    assert np.array_equal(np.column_stack([stack.lower, stack.upper]), bounds)


# Bounds and residuals


@pytest.mark.parametrize("shift", [-0.5, 0.5])
def test_residuals_by_hand(shift):
    """Too high thresholds miss lower bounds, too low ones upper bounds."""
    problem = build(people(), STACKS[2], tolerance=0.02)
    theta, multipliers = random_point(problem)
    theta[problem.model.n_parameters :] += shift
    multipliers[::3] = 0
    at = problem.evaluate(theta)
    violation, products = 0.0, [0.0]
    for c, low, high, lam in zip(
        at.constraints, problem.lower, problem.upper, multipliers, strict=True
    ):
        violation = max(violation, low - c, c - high)
        bound = high if lam > 0 else low
        if lam:
            products.append(abs(lam) * (abs(bound - c) if np.isfinite(bound) else 1.0))
    assert violation > 0.01
    residual = problem.kkt_residual(at, multipliers)
    assert problem.violation(at) == residual["feasibility"] == pytest.approx(violation)
    assert residual["complementarity"] == pytest.approx(max(products))
    assert residual["stationarity"] == pytest.approx(np.abs(at.gradient(multipliers)).max())


def test_multipliers_of_missing_bounds_are_not_complementary():
    """A share that nothing limits from above must not have an offset."""
    problem = build(people(), STACKS[1], tolerance=2.0)
    assert np.isinf(problem.upper).all()
    at = problem.evaluate(random_point(problem)[0])
    free, paid = np.zeros(6), np.full(6, 0.5)
    assert problem.violation(at) == 0
    assert problem.kkt_residual(at, free)["complementarity"] == 0
    assert problem.kkt_residual(at, paid)["complementarity"] == 0.5


# Cost


@each_model
def test_memory_does_not_grow_with_the_percentiles(model):
    """No array of rows times percentiles, by far."""
    n, n_percentiles = 20_000, 20
    problem = build(
        people(n=n),
        STACKS[1],
        model=model,
        percentiles=(np.arange(n_percentiles) + 0.5) / n_percentiles,
    )
    theta, multipliers = random_point(problem)
    problem.evaluate(theta).gradient(multipliers)  # compiles
    tracemalloc.start()
    try:
        problem.evaluate(theta).gradient(multipliers)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n_percentiles * n * 8 / 2


# A solver


def naive_problem(who, problem, surrogate):
    """The problem in raw weights and thresholds (coef, intercept, thetas), for scipy."""
    X, y, codes = who

    def objective(x):
        coef, scores = x[: X.shape[1]], X @ x[: X.shape[1]] + x[X.shape[1]]
        return np.mean(np.logaddexp(0, -y * scores)) + problem.alpha / 2 * coef @ coef

    def room(x):
        scores, thetas = X @ x[: X.shape[1]] + x[X.shape[1]], x[X.shape[1] + 1 :]
        steps = naive.step(scores - thetas[:, None], surrogate.kind, surrogate.width)
        rates = np.stack([steps[:, codes == g].mean(axis=1) for g in range(2)], axis=1).ravel()
        both = np.concatenate([rates - problem.lower, problem.upper - rates])
        return both[np.isfinite(both)]

    return objective, room


@pytest.mark.parametrize(
    "surrogate",
    [
        Surrogate("smoothstep", 4.0),
        pytest.param(Surrogate("sigmoid", 0.3), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_reaches_the_best_of_slsqp(surrogate):
    """The same starts for both; the problem is not convex, and SLSQP may end in a worse point.

    A narrow smooth step is flat where scores are far apart, and both may end there.
    """
    gaps = np.array([_gap_to_slsqp(surrogate, seed) for seed in range(8)])
    assert gaps.max() <= 1e-5
    assert np.count_nonzero(gaps >= -1e-5) >= 6


def _gap_to_slsqp(surrogate, seed):
    X, _, codes = people(seed, n=60, d=2, n_groups=2)
    X[:, 0] += 2.0 * codes  # what counts most differs between the groups: the constraint binds
    y = np.where(X[:, 0] - X[:, 1] + generator(seed).normal(size=60) > 1, 1.0, -1.0)
    who = X, y, codes
    problem = build(who, STACKS[1], surrogate=surrogate, tolerance=0.05)
    objective, room = naive_problem(who, problem, surrogate)
    theirs, ours = [], []
    for k in range(3):
        theta = problem.start(k * 0.7 * generator(k).normal(size=3))
        coef, intercept = problem.model.raw(problem.model_part(theta))
        found = minimize(
            objective,
            np.concatenate([coef, [intercept], theta[3:]]),
            method="SLSQP",
            constraints={"type": "ineq", "fun": room},
            options={"maxiter": 300, "ftol": 1e-12},
        )
        if found.success and room(found.x).min() >= -1e-7:
            theirs.append(found.fun)
        result = ALLBFGS().solve(problem, theta, tol=1e-6)
        at = problem.evaluate(result.theta)
        if max(problem.kkt_residual(at, result.multipliers).values()) <= 1e-5:
            ours.append(at.objective)
    assert np.abs(result.multipliers).max() > 1e-3
    return min(ours) - min(theirs)
