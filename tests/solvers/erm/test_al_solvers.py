"""Augmented Lagrangian solvers against scipy, closed forms and sensitivities."""

from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.problems.protocol import Problem, TwiceDifferentiable
from skfair.solvers import ALLBFGS, ALNewton
from skfair.solvers.base import check_needs
from tests.naive import erm as naive
from tests.seeds import generator
from tests.small_problems import build, make_constraint, names_of, optimum, people, raw, twin

each_solver = pytest.mark.parametrize("make", [ALNewton, ALLBFGS])

# constraints, reference, loss, levels of the attributes
CASES = [
    (["demographic_parity"], "pairwise", "log_loss", (2,)),
    (["demographic_parity"], "pairwise", "log_loss", (4,)),
    (["demographic_parity"], "overall", "squared_hinge", (4,)),
    (["equalized_odds"], "pairwise", "log_loss", (4,)),
    (["equalized_odds"], "overall", "hinge", (2,)),
    (["equal_opportunity"], "pairwise", "hinge", (3, 2)),
    (["false_positive_parity"], "pairwise", "squared_hinge", (4,)),
    (["accuracy_parity"], "pairwise", "log_loss", (4,)),
    (["loss_parity"], "pairwise", "log_loss", (4,)),
    (["loss_parity"], "overall", "squared_error", (4,)),
    (["class_loss_parity"], "overall", "log_loss", (2,)),
    (["bounded_group_loss"], "pairwise", "log_loss", (4,)),
    (["bounded_group_loss"], "pairwise", "absolute_error", (4,)),
    (["mean_score_parity"], "pairwise", "squared_error", (3, 2)),
    (["mean_score_parity"], "overall", "absolute_error", (4,)),
    (["demographic_parity", "equal_opportunity"], "pairwise", "log_loss", (3, 2)),
]
NAMES = [f"{'+'.join(c[0])}-{c[1]}-{c[2]}-{len(c[3])}x{c[3][0]}" for c in CASES]
each_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


def twin_of_case(case, bound):
    constraints, reference, loss, levels = case
    return twin(people(11, n_levels=levels), constraints, bound, loss=loss, reference=reference)


@cache
def limit_of(name):
    """A limit that binds, and that some model keeps.

    Equal scores have no disparity. Losses are not lowered by that: halfway to the least worst one.
    """
    case = CASES[NAMES.index(name)]
    unlimited = [twin_of_case(([constraint], *case[1:]), 0.0).unlimited() for constraint in case[0]]
    risks = [twin_of_case(([constraint], *case[1:]), 0.0) for constraint in case[0]]
    has = min(risk.excess(x).max() for risk, x in zip(risks, unlimited, strict=True))
    if case[0] == ["bounded_group_loss"]:
        return 0.5 * (has + risks[0].least_excess())
    return 0.4 * has


def build_case(case, times=1.0, **options):
    """The problem of a case, under a limit that is ``times`` the usual one."""
    constraints, reference, loss, levels = case
    bound = times * limit_of(NAMES[CASES.index(case)])
    made = [make_constraint(name, reference) for name in constraints]
    return build(people(11, n_levels=levels), made, bound, loss=loss, **options)


@cache
def scipy_solutions(name):
    """What SLSQP finds for the naive twin of a case, from several starts; and the twin."""
    risk = twin_of_case(CASES[NAMES.index(name)], limit_of(name))
    free = risk.unlimited()
    starts = [np.zeros(free.size), free, *(free + generator(name).normal(size=(4, free.size)))]
    return risk.optima(starts), risk


def start(problem):
    return problem.start(np.random.RandomState(0))


def solve(make, problem, tol=1e-8, **options):
    result = make().solve(problem, start(problem), tol=tol, **options)
    return result, problem.evaluate(result.theta)


def pulls(problem, multipliers):
    """What the multipliers weigh each row with, by constraint: the same however it is written."""
    ends = np.cumsum([constraint.upper.size for constraint in problem.constraints])[:-1]
    return [
        constraint.row_weights * (constraint.matrix.T @ part)[constraint.cells]
        for constraint, part in zip(problem.constraints, np.split(multipliers, ends), strict=True)
    ]


@each_case
@each_solver
def test_reaches_an_optimum_of_slsqp(make, case):
    """The reference has no centres, no standardised columns and one constraint per comparison."""
    problem = build_case(case)
    optima, risk = scipy_solutions(NAMES[CASES.index(case)])
    result, at = solve(make, problem)
    if result.status == "max_iter":  # where the problem is not convex, not every start arrives
        near = start(problem) + 0.5 * generator().normal(size=start(problem).shape)
        result = make().solve(problem, near, tol=1e-8)
        at = problem.evaluate(result.theta)
    assert result.status == "converged"
    assert max(problem.kkt_residual(at, result.multipliers).values()) <= 1e-8
    x = raw(problem, result.theta)
    assert risk.excess(x).max() == pytest.approx(0, abs=1e-7)
    # Of several local optima it may reach any.
    expected = min(optima, key=lambda found: abs(found.fun - at.objective))
    assert at.objective == pytest.approx(expected.fun, abs=1e-6)
    # Who pays, and how much: the multipliers balance the gradient of the twin.
    mine = pulls(problem, result.multipliers)
    slopes = sum(
        pull * naive.derivative(partial(risk.values, what), risk.rows @ x)
        for pull, (what, _, _) in zip(mine, risk.constraints, strict=True)
    )
    assert risk.gradient(x) + risk.rows.T @ slopes == pytest.approx(np.zeros(x.size), abs=1e-6)
    if "multipliers" in expected:  # not of scipy before 1.16
        scale = expected.multipliers.max()
        assert scale > 1e-3
        for pull, theirs in zip(mine, risk.pull(expected.multipliers), strict=True):
            assert pull * pull.size == pytest.approx(theirs * pull.size, abs=3e-3 * scale)


@each_solver
def test_equal_means_of_least_squares_have_a_closed_form(make):
    """Bound 0: a linear system in weights, intercept and multipliers."""
    who = people(11, n_levels=(3,))
    problem = build(who, "mean_score_parity", 0.0, loss="squared_error", alpha=0.0)
    result, _ = solve(make, problem)
    rows = np.column_stack([who.X, np.ones(80)])
    means = [rows[who.columns[0] == level].mean(axis=0) for level in "abc"]
    A = np.array([means[1] - means[0], means[2] - means[0]])
    system = np.block([[rows.T @ rows / 80, A.T], [A, np.zeros((2, 2))]])
    expected = np.linalg.solve(system, np.append(rows.T @ who.signs / 80, np.zeros(2)))
    assert raw(problem, result.theta) == pytest.approx(expected[:4], abs=1e-6)
    # Rows of the problem are the three means: the pairs' multipliers, and what they add up to.
    lam = np.array([-expected[4:].sum(), *expected[4:]])
    assert result.multipliers == pytest.approx(lam, abs=1e-5)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equal_opportunity"])
@each_solver
def test_converged_means_a_kkt_residual_of_tol(make, constraint):
    """Complementarity too, where multipliers are large: rates of flat sigmoids hardly differ."""
    who = people(n_levels=(4,))
    problem = build(who, make_constraint(constraint, "overall"), loss="squared_hinge")
    problem = problem.bounded(temperature=0.1)
    limit = 0.4 * np.abs(problem.evaluate(optimum(problem.relaxed()).x).constraints)
    problem = problem.bounded(np.full(limit.size, -limit.max()), np.full(limit.size, limit.max()))
    result, at = solve(make, problem, tol=1e-6)
    assert result.status == "converged"
    assert np.abs(result.multipliers).max() > 2
    assert max(problem.kkt_residual(at, result.multipliers).values()) <= 1e-6


# Where it starts, and what does not matter


@pytest.mark.parametrize("case", [CASES[i] for i in (1, 2, 4, 8, 11, 14)], ids=str)
@each_solver
def test_a_warm_start_ends_at_once(make, case):
    problem = build_case(case)
    first, _ = solve(make, problem)
    if "loss_parity" in case[0] and not first.theta[:-1].any():
        assert first.status == "max_iter"
        return  # all losses are equal at the start, and the way from there ended at a larger loss
    again = make().solve(problem, first.theta, first.multipliers, tol=1e-6)
    assert again.status == "converged"
    assert again.n_iter <= 3  # L-BFGS of older versions of scipy takes one more
    assert again.theta == pytest.approx(first.theta, abs=1e-5)


@each_solver
def test_the_start_does_not_matter_and_is_left_alone(make):
    """Equal mean scores are a convex problem: there is one solution."""
    problem = build_case(CASES[13])
    first, _ = solve(make, problem)
    for seed in range(3):
        rng = generator(seed)
        theta0, lam0 = rng.normal(size=problem.n_parameters), rng.normal(size=problem.n_constraints)
        before = theta0.copy(), lam0.copy()
        other = make().solve(problem, theta0, lam0, tol=1e-8)
        assert other.theta == pytest.approx(first.theta, abs=1e-5)
        assert other.multipliers == pytest.approx(first.multipliers, abs=1e-4)
        assert (theta0 == before[0]).all()
        assert (lam0 == before[1]).all()


# Awkward data


@each_solver
def test_a_bound_that_nobody_can_keep(make):
    """The worst group cannot lose as little: numbers come back, and are not called a solution."""
    least = twin_of_case(CASES[11], 0.0).least_excess()
    problem = build(people(11, n_levels=(4,)), "bounded_group_loss", 0.6 * least)
    result, at = solve(make, problem, max_iter=150)
    assert result.status != "converged"
    assert problem.violation(at) >= 0.4 * least - 1e-6
    assert np.isfinite(result.theta).all()
    assert np.isfinite(result.multipliers).all()


# The contract of solvers


@each_solver
def test_solvers_call_only_what_they_say_they_need(make):
    """A problem that has nothing else is solved all the same."""
    problem = build_case(CASES[1])

    class Only:
        def __getattr__(self, name):
            type_ = TwiceDifferentiable if "hessian" in make.needs else Problem
            assert name in names_of(type_)
            return getattr(problem, name)

    result = make().solve(Only(), start(problem), tol=1e-6)
    assert (result.theta == make().solve(problem, start(problem), tol=1e-6).theta).all()


def test_a_problem_without_second_derivatives_is_refused_by_name():
    class Curveless(ConstrainedERM):
        pass

    linear = build_case(CASES[0])
    problem = Curveless(linear.model, linear.loss, linear.targets, linear.constraints)
    with pytest.raises(TypeError, match="ALNewton cannot solve a Curveless.*'hessian'") as error:
        check_needs(ALNewton(), problem)
    assert "gradient" not in str(error.value)
    check_needs(ALLBFGS(), problem)
    check_needs(ALNewton(), linear)


def test_newton_gives_up_on_bounds_that_cannot_be_kept():
    """They drive parameters to infinity, where no number of steps brings the bounds nearer."""
    problem = build_case(CASES[0])
    problem.lower = np.full(problem.n_constraints, 1.5)  # rates differ by at most 1
    problem.upper = np.full(problem.n_constraints, 2.0)
    found = ALNewton().solve(problem, start(problem), max_iter=1000)
    assert found.status == "max_iter"
    assert found.n_iter < 200
    assert problem.violation(problem.evaluate(found.theta)) > 0.4


def test_newton_squares_the_error_where_only_the_constraint_keeps_a_minimum():
    """-30 x^2 + y^2 / 2 + exp(x + y) with x + x^2 / 10 = 1: the penalty of 10 is not enough."""
    x = 5 * (np.sqrt(1.4) - 1)
    y = brentq(lambda y: y + np.exp(x + y), -2, 0)  # where the derivative by y is 0
    price = (60 * x - np.exp(x + y)) / (1 + x / 5)
    near = np.array([x, y]) + 5e-4, np.array([price + 0.01])
    found = ALNewton().solve(Bowl(), *near, tol=1e-11)
    assert found.status == "converged"
    assert found.n_iter <= 3
    assert found.theta == pytest.approx([x, y], abs=1e-11)
    assert found.multipliers == pytest.approx([price], abs=1e-9)


class Bowl:
    """Curves down along x, and its constraint holds x fast."""

    n_constraints, n_rows, lower, upper = 1, 1, np.ones(1), np.ones(1)
    offers = frozenset({"hessian"})

    def evaluate(self, theta):
        x, y = theta

        def jacobian(which):
            return np.array([[1 + x / 5, 0.0]])[which]

        return SimpleNamespace(
            theta=theta,
            objective=-30 * x**2 + y**2 / 2 + np.exp(x + y),
            constraints=theta[:1] + x**2 / 10,
            gradient=lambda nu: np.array([-60 * x, y]) + np.exp(x + y) + nu @ jacobian([0]),
            jacobian=jacobian,
            hessian=lambda nu: np.diag([-60 + nu[0] / 5, 1.0]) + np.exp(x + y),
        )

    def violation(self, at):
        return float(np.abs(at.constraints - 1).max())

    def sampled(self):
        return None


# A sample of the rows shows the way


@pytest.mark.parametrize("constraints", ["demographic_parity", "mean_score_parity", []], ids=str)
def test_a_sample_saves_steps_and_changes_nothing_else(constraints, monkeypatch):
    loss = "squared_error" if constraints == "mean_score_parity" else "log_loss"
    problem = build(people(12, n=40_000, d=6), constraints, 0.02, loss=loss)
    full, at = solve(ALNewton, problem, tol=1e-9)
    monkeypatch.setattr(LinearConstrainedERM, "sampled", lambda self: None)
    alone, expected = solve(ALNewton, problem, tol=1e-9)
    assert full.status == alone.status == "converged"
    assert at.objective == pytest.approx(expected.objective, rel=1e-8)
    assert full.theta == pytest.approx(alone.theta, abs=1e-6)
    assert full.multipliers == pytest.approx(alone.multipliers, abs=1e-6)
    assert full.n_iter < alone.n_iter or loss == "squared_error"  # one step is enough there


def test_no_sample_is_drawn_near_a_solution(monkeypatch):
    who = people(12, n=40_000, d=6)
    free, ruled = build(who, []), build(who, "demographic_parity", 0.02)
    near, known = solve(ALNewton, free)[0], solve(ALNewton, ruled)[0]
    seen = []
    monkeypatch.setattr(ALNewton, "solve", watched(ALNewton.solve, seen))
    ALNewton().solve(free, near.theta)
    ALNewton().solve(ruled, start(ruled), known.multipliers)  # who knows them is near
    assert seen == [free, ruled]
    ALNewton().solve(free, start(free))
    assert len(seen) == 4


def watched(solve_, seen):
    def watching(self, problem, *arguments, **options):
        seen.append(problem)
        return solve_(self, problem, *arguments, **options)

    return watching


@pytest.mark.parametrize("largest", [0.02, 0.2, 5.0])
@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[11]], ids=["pairs", "odds", "bounded"])
def test_a_largest_multiplier_charges_what_is_missed_at_that_rate(case, largest):
    """scipy solves it with a slack for each constraint, whose price the multiplier is."""
    problem = build_case(case, times=0.2)
    result, at = solve(lambda: ALLBFGS(max_multiplier=largest), problem)
    n, m = problem.n_parameters, problem.n_constraints

    def room(x):
        values = problem.evaluate(x[:n]).constraints
        both = [problem.upper + x[n:] - values, values - problem.lower + x[n:]]
        return np.concatenate([side[np.isfinite(side)] for side in both])

    found = [
        minimize(
            lambda x: problem.evaluate(x[:n]).objective + largest * x[n:].sum(),
            np.append(start(problem) + shift, np.ones(m)),
            method="SLSQP",
            bounds=[(None, None)] * n + [(0, None)] * m,
            constraints={"type": "ineq", "fun": room},
            options={"ftol": 1e-12, "maxiter": 1000},
        )
        for shift in (0.0, *generator().normal(size=(2, n)))
    ]
    expected = [one.fun for one in found if one.success]
    missed = np.maximum(
        0, np.maximum(at.constraints - problem.upper, problem.lower - at.constraints)
    )
    assert np.abs(result.multipliers).max() <= largest
    paid = at.objective + largest * missed.sum()
    assert paid == pytest.approx(min(expected, key=lambda one: abs(one - paid)), abs=1e-6)
    assert result.status == "converged"
