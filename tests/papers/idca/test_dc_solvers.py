"""IDCA, its baselines and the convex functions they use: promises of the paper, SLSQP, twins."""

from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from skfair.constraints.partial import Surrogate
from skfair.losses import make_loss
from skfair.models.linear import LinearScore
from skfair.papers.idca.base import OBJECTIVE, Linearised, StepLengths, switching_step
from skfair.papers.idca.dc_penalty import DCPenalty
from skfair.papers.idca.dc_ssg import DCSSG
from skfair.papers.idca.idca import IDCA
from skfair.papers.idca.parts import DCProblem
from skfair.partial_parity.objectives import MeanLoss
from tests.naive.dc import TinyPairs, TinyParity
from tests.partial_parity.ranked_moments import ranked_moments
from tests.seeds import generator
from tests.small_problems import optimum

pytestmark = pytest.mark.slow
LOW, HIGH = 0.1, 0.5
SHARES = np.array([0.15, 0.5, 0.85])
ALPHA = 0.02


def people(n=120, n_groups=2, seed=0):
    rng = generator(seed)
    codes = np.arange(n) % n_groups
    X = rng.normal(size=(n, 3))
    X[:, 1] += 1.5 * codes
    y = np.where(X[:, 0] + 1.5 * X[:, 1] + rng.logistic(size=n) > 1.1, 1.0, -1.0)
    return X, y, codes.astype(np.int64)


def problem_of(
    constraint="statistical_parity",
    form=None,
    tolerance=0.1,
    surrogate=None,
    n_groups=2,
    alpha=ALPHA,
    who=None,
):
    X, y, codes = people(n_groups=n_groups) if who is None else who
    rows = codes, y, None, (LOW, HIGH), surrogate or Surrogate("ramp", 0.5), SHARES
    bound = [*ranked_moments(constraint, *rows), *ranked_moments(constraint, *rows, True)]
    one = bound[0] if form is None else next(b for b in bound if b.form == form)
    loss = MeanLoss(make_loss("log_loss", "classification"), y, np.full(len(y), 1 / len(y)))
    return DCProblem(LinearScore(X), loss, [one], tolerance, alpha=alpha)


def start_of(problem):
    """The paper's w = 0, or constant scores far below the threshold where it is infeasible."""
    zero = np.zeros(problem.model.n_parameters)
    start = problem.start(zero)
    if violations(problem, start).max() > 1e-12:
        start = problem.start(zero - np.eye(zero.size)[-1])
    return start


def violations(problem, theta):
    """One-sided constraints by themselves: finite upper sides, then finite lower sides."""
    c = problem.evaluate(theta).constraints
    up, low = np.isfinite(problem.upper), np.isfinite(problem.lower)
    return np.concatenate([(c - problem.upper)[up], (problem.lower - c)[low]])


CONSTRAINT_NAMES = [
    ("statistical_parity", None),
    ("demographic_parity", "shares"),
    ("equalized_odds", "shares"),
    ("demographic_parity", "pairs"),
    ("equalized_odds", "pairs"),
]
each_constraint = pytest.mark.parametrize(("constraint", "form"), CONSTRAINT_NAMES)
each_solver = pytest.mark.parametrize("name", ["idca", "dc_ssg", "dc_penalty"])
SURROGATES = [Surrogate("ramp", 0.5), Surrogate("smoothstep", 0.6), Surrogate("sigmoid", 0.3)]
each_surrogate = pytest.mark.parametrize("surrogate", SURROGATES, ids=lambda s: s.kind)


# ---------------------------------------------------------------- the convex functions of (31)


@each_constraint
@each_surrogate
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_the_linearised_functions_lie_above_and_touch(constraint, form, surrogate, mu):
    problem, rng = problem_of(constraint, form, surrogate=surrogate), generator(1)
    w = start_of(problem) + rng.normal(size=problem.n_parameters)
    convex = Linearised(problem, problem.parts(w), mu)
    assert convex.n == violations(problem, w).size > 0
    np.testing.assert_allclose(convex.center.constraints, violations(problem, w), atol=1e-12)
    assert convex.center.objective == pytest.approx(problem.evaluate(w).objective, abs=1e-12)
    gaps = []
    for length in (0.01, 0.3, 3.0, 3.0, 3.0):
        v = w + length * rng.normal(size=w.size)
        at = convex.evaluate(v)
        pull = 0.5 * mu * np.sum((v - w) ** 2)
        gaps.append(at.constraints - violations(problem, v) - pull)
        assert gaps[-1].min() >= -1e-12
        assert at.objective == pytest.approx(problem.evaluate(v).objective + pull, abs=1e-12)
    assert np.max(gaps) > 0.01  # they are not the functions themselves


@each_constraint
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_subgradients_support_the_linearised_functions(constraint, form, mu):
    problem, rng = problem_of(constraint, form), generator(2)
    w = start_of(problem) + rng.normal(size=problem.n_parameters)
    convex = Linearised(problem, problem.parts(w), mu)
    at = convex.evaluate(w + 0.5 * rng.normal(size=w.size))
    for _ in range(5):
        there = convex.evaluate(at.theta + rng.normal(size=w.size))
        away = there.theta - at.theta
        strong = 0.5 * mu * (away @ away)
        values, others = [at.objective, *at.constraints], [there.objective, *there.constraints]
        for row in range(-1, convex.n):
            assert OBJECTIVE == -1
            rise = convex.gradient(at, row) @ away + strong
            assert others[row + 1] >= values[row + 1] + rise - 1e-12


# ---------------------------------------------------------------- Algorithm 2


def check_steps(problem, w, eps, expected):
    """Algorithm 2 goes where it is expected to, by steps of both kinds."""
    convex = Linearised(problem, problem.parts(w))
    at, lengths = convex.center, StepLengths(convex.n)
    for theta in expected[1:]:
        row, length, against = switching_step(at.constraints, partial(convex.gradient, at), eps)
        lengths.add(row, length)
        at = convex.evaluate(at.theta - length * against)
        np.testing.assert_allclose(at.theta, theta, atol=1e-9)
    assert lengths.of_objective > 0
    assert lengths.of_rows.max() > 0
    return convex


def test_algorithm_2_takes_the_steps_of_its_naive_twin():
    width, eps, n_steps = 0.5, 1e-2, 30
    problem = problem_of(tolerance=0.1, surrogate=Surrogate("ramp", width))
    X, y, codes = people()
    Z = np.c_[(X - X.mean(0)) / X.std(0), np.ones(len(y))]
    diagonal = np.append(ALPHA / X.var(0), 0.0)
    percentiles = LOW + SHARES * (HIGH - LOW)
    twin = TinyParity(Z, y, codes, percentiles, 0.1 * (HIGH - LOW), width, diagonal)
    w = start_of(problem) + 0.1 * generator(4).normal(size=problem.n_parameters)
    expected = twin.algorithm2(w, eps, n_steps)
    convex = check_steps(problem, w, eps, expected)
    # What comes out is the best of the iterates.
    found = IDCA(n_inner=n_steps, eps=eps).solve(problem, w, max_iter=1).theta
    at_all = [convex.evaluate(theta) for theta in expected]
    kept = [p.objective for p in at_all if p.excess <= eps]
    assert convex.evaluate(found).objective == pytest.approx(min(kept), abs=1e-9)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_idca_solves_the_printed_problem_of_rates(n_groups):
    """(21) in the form of Example D.5, step by step, and eps is in ranks."""
    width, eps, kappa = 0.5, 1e-2, 0.1
    X, y, codes = people(n_groups=n_groups)
    Z = np.c_[(X - X.mean(0)) / X.std(0), np.ones(len(y))]
    diagonal = np.append(ALPHA / X.var(0), 0.0)
    twin = TinyPairs(Z, y, codes, (LOW, HIGH), kappa, width, diagonal)
    who = X, y, codes
    problem = problem_of("demographic_parity", "pairs", kappa, Surrogate("ramp", width), who=who)
    assert problem.n_parameters == Z.shape[1]  # there is no centre
    w = start_of(problem) + 0.1 * generator(1).normal(size=problem.n_parameters)
    assert violations(problem, w).max() == pytest.approx(twin.violation(w), abs=1e-12)
    expected = twin.algorithm2(w, eps, 40)
    check_steps(problem, w, eps, expected)


@cache
def convex_problem():
    """A ramp so wide that all rates are linear: a convex problem whose constraints press."""
    return problem_of(surrogate=Surrogate("ramp", 6.0), tolerance=0.02)


@cache
def scipy_optimum():
    problem = convex_problem()
    solved = optimum(problem, start_of(problem))
    return solved.x, solved.fun


@pytest.mark.parametrize("eps", [0.01, 0.003])
def test_algorithm_2_solves_a_convex_problem_within_eps(eps):
    problem, (theta, least) = convex_problem(), scipy_optimum()
    free = minimize(lambda t: problem.evaluate(t).objective, theta, tol=1e-10).fun
    assert least > free + 0.01  # the constraints press
    found = IDCA(n_inner=2000, eps=eps).solve(problem, start_of(problem), max_iter=1).theta
    assert violations(problem, found).max() <= eps
    assert problem.evaluate(found).objective <= least + eps


@pytest.mark.parametrize("seed", range(5))
def test_algorithm_2_repairs_an_infeasible_start(seed):
    problem, rng = problem_of(), generator(seed)
    bad = start_of(problem) + 0.1 * rng.normal(size=problem.n_parameters)
    bad[1] += 0.4  # the groups differ in this column
    assert violations(problem, bad).max() > 0.05
    result = IDCA(eps=1e-3).solve(problem, bad, max_iter=10)
    assert violations(problem, result.theta).max() <= 1e-3


# ---------------------------------------------------------------- Algorithm 1


@each_constraint
@each_surrogate
def test_idca_never_rises_and_stays_within_eps(constraint, form, surrogate):
    problem = problem_of(constraint, form, surrogate=surrogate)
    solver, start = IDCA(n_inner=30, eps=4e-3), start_of(problem)
    iterates = [start]
    result = solver.solve(problem, start, max_iter=8, callback=iterates.append)
    objectives = [problem.evaluate(theta).objective for theta in iterates]
    assert np.diff(objectives).max() <= 1e-12
    assert objectives[-1] < objectives[0] - 1e-3
    assert max(violations(problem, theta).max() for theta in iterates) <= solver.eps + 1e-12
    np.testing.assert_allclose(result.history["objective"], objectives, atol=1e-12)
    expected = [max(0.0, violations(problem, theta).max()) for theta in iterates]
    np.testing.assert_allclose(result.history["max_violation"], expected, atol=1e-12)
    np.testing.assert_array_equal(result.theta, iterates[-1])


def test_idca_stops_where_it_rests():
    problem, (theta, _) = convex_problem(), scipy_optimum()
    # From the optimum no single step lowers the objective within so small a tolerance.
    result = IDCA(n_inner=1, eps=1e-7).solve(problem, theta, max_iter=50)
    assert result.status == "converged"
    assert result.n_iter < 50
    longer = IDCA(n_inner=20).solve(problem, start_of(problem), tol=1e3, max_iter=50)
    assert (longer.status, longer.n_iter) == ("converged", 1)


def test_idca_says_where_it_cannot_keep_the_constraints():
    problem = problem_of()
    # All scores are far from all thresholds, where the steps of the ramp are flat.
    stuck = start_of(problem)
    stuck[problem.model.n_parameters :] = 50.0
    result = IDCA().solve(problem, stuck, max_iter=5)
    assert violations(problem, result.theta).max() > 0.05
    assert (result.status, result.n_iter) == ("infeasible", 1)


# ---------------------------------------------------------------- all three


SOLVERS = {
    "idca": (IDCA(n_inner=80, eps=4e-3), 24),
    "dc_ssg": (DCSSG(eps=4e-3), 1200),
    "dc_penalty": (DCPenalty(lam=0.24, step=5e-3), 2500),
}


@cache
def solved(name, constraint="statistical_parity", form=None, kind="ramp"):
    problem = problem_of(constraint, form, surrogate=Surrogate(kind, 0.5))
    solver, n_steps = SOLVERS[name]
    if name == "dc_penalty" and form == "shares":
        solver = replace(solver, lam=0.6 * solver.lam)
    return problem, solver.solve(problem, start_of(problem), max_iter=n_steps)


@each_solver
@pytest.mark.parametrize(
    ("constraint", "form"), [("statistical_parity", None), ("demographic_parity", "shares")]
)
def test_multipliers_balance_the_objective(name, constraint, form):
    problem, result = solved(name, constraint, form)
    at = problem.evaluate(result.theta)
    alone = np.linalg.norm(at.gradient())
    assert alone > 0.02  # constraints press
    left = 0.6 if name == "dc_penalty" else 0.4  # fixed steps go on turning around the end
    assert np.linalg.norm(at.gradient(result.multipliers)) < left * alone
    # Each presses against its own side.
    c, nu = at.constraints, result.multipliers
    presses = np.abs(nu) > 0.05 * np.abs(nu).max()
    side = np.where(nu > 0, problem.upper - c, c - problem.lower)
    assert np.abs(side[presses]).max() < 0.02


# ---------------------------------------------------------------- the baselines


def side(problem, row, theta):
    return violations(problem, theta)[row]


def steps_of(solver, problem, start, n_steps=40):
    iterates = [start]
    solver.solve(problem, start, max_iter=n_steps, callback=iterates.append)
    return iterates


@pytest.mark.parametrize("solver", [DCSSG(eps=0.02), DCSSG(schedule="diminishing", c=0.3)])
def test_algorithm_3_takes_the_printed_steps(solver):
    problem = problem_of(surrogate=Surrogate("smoothstep", 0.6))
    iterates, kinds = steps_of(solver, problem, start_of(problem)), set()
    for t, (v, following) in enumerate(pairwise(iterates)):
        eps = 0.02 if solver.schedule == "static" else 0.3 / (t + 1)
        f = violations(problem, v)
        aim, function = eps, lambda x: problem.evaluate(x).objective
        if f.max() > eps:
            aim, function = f.max(), partial(side, problem, np.argmax(f))
        gradient = approx_fprime(v, function, 1e-7)
        np.testing.assert_allclose(following, v - aim / (gradient @ gradient) * gradient, atol=2e-4)
        kinds.add(f.max() > eps)
    assert kinds == {True, False}


@pytest.mark.parametrize("schedule", ["static", "diminishing"])
def test_algorithm_3_returns_the_best_iterate_within_the_last_tolerance(schedule):
    problem, n_steps = problem_of(), 500
    solver = DCSSG(eps=2e-3, schedule=schedule, c=0.5)
    last = 2e-3 if schedule == "static" else 0.5 / n_steps
    iterates = steps_of(solver, problem, start_of(problem), n_steps)
    kept = [
        problem.evaluate(theta).objective
        for theta in iterates
        if violations(problem, theta).max() <= last
    ]
    found = solver.solve(problem, start_of(problem), max_iter=n_steps).theta
    assert violations(problem, found).max() <= last
    assert problem.evaluate(found).objective == min(kept)


@pytest.mark.parametrize(
    ("constraint", "form", "target", "unit"),
    [  # (114): distances in ranks from the percentiles; (119): in shares from a centre
        ("statistical_parity", None, np.repeat(LOW + SHARES * (HIGH - LOW), 2), 2 / (HIGH - LOW)),
        ("demographic_parity", "shares", 0.0, 2.0),
    ],
)
def test_the_penalty_method_descends_on_what_is_printed(constraint, form, target, unit):
    problem = problem_of(constraint, form, 0.0, Surrogate("smoothstep", 0.6))

    def penalised(theta):
        at = problem.evaluate(theta)
        return at.objective + 0.14 * unit * np.abs(at.constraints - target).max()

    start = start_of(problem) + 0.1
    solver = DCPenalty(lam=0.14, step=0.01)
    iterates = steps_of(solver, problem, start, 10)
    for v, following in pairwise(iterates):
        gradient = approx_fprime(v, penalised, 1e-8)
        np.testing.assert_allclose(following, v - 0.01 * gradient, atol=1e-7)
    assert penalised(iterates[-1]) < penalised(start)

    many = steps_of(solver, problem, start, 300)
    ends = {}
    for output in ("last", "best"):
        solver.output = output
        ends[output] = solver.solve(problem, start, max_iter=300).theta
    np.testing.assert_array_equal(ends["last"], many[-1])
    assert penalised(ends["best"]) == pytest.approx(min(map(penalised, many)), abs=1e-12)


def test_the_penalty_method_stops_where_nothing_pulls():
    problem = problem_of()
    free = DCProblem(problem.model, problem.objective, [], 0.1, alpha=ALPHA)
    result = DCPenalty(step=1.0).solve(free, np.zeros(free.n_parameters), tol=1e-4)
    assert result.status == "converged"
    assert np.linalg.norm(free.evaluate(result.theta).gradient()) <= 1e-4
