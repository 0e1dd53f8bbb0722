"""Augmented Lagrangian solvers against scipy, closed forms and sensitivities."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.problems.protocol import Problem, TwiceDifferentiable
from skfair.solvers import ALLBFGS, ALNewton
from skfair.solvers.base import check_needs
from tests.small_problems import build, make_constraint, names_of, people, raw, twin

each_solver = pytest.mark.parametrize("make", [ALNewton, ALLBFGS])

# constraints, reference, loss, levels of the attributes, bound
CASES = [
    (["demographic_parity"], "pairwise", "log_loss", (2,), 0.03),
    (["demographic_parity"], "pairwise", "log_loss", (4,), 0.05),
    (["demographic_parity"], "overall", "squared_hinge", (4,), 0.03),
    (["equalized_odds"], "pairwise", "log_loss", (4,), 0.05),
    (["equalized_odds"], "overall", "hinge", (2,), 0.03),
    (["equal_opportunity"], "pairwise", "hinge", (3, 2), 0.03),
    (["false_positive_parity"], "pairwise", "squared_hinge", (4,), 0.03),
    (["accuracy_parity"], "pairwise", "log_loss", (4,), 0.02),
    (["loss_parity"], "pairwise", "log_loss", (4,), 0.02),
    (["loss_parity"], "overall", "squared_error", (4,), 0.05),
    (["class_loss_parity"], "overall", "log_loss", (2,), 0.02),
    (["bounded_group_loss"], "pairwise", "log_loss", (4,), 0.45),
    (["bounded_group_loss"], "pairwise", "absolute_error", (4,), 0.65),
    (["mean_score_parity"], "pairwise", "squared_error", (3, 2), 0.05),
    (["mean_score_parity"], "overall", "absolute_error", (4,), 0.05),
    (["demographic_parity", "equal_opportunity"], "pairwise", "log_loss", (3, 2), 0.04),
]
NAMES = [f"{'+'.join(c[0])}-{c[1]}-{c[2]}-{len(c[3])}x{c[3][0]}" for c in CASES]
each_case = pytest.mark.parametrize("case", CASES, ids=NAMES)


def build_case(case, **options):
    constraints, reference, loss, levels, bound = case
    who = people(11, n_levels=levels)
    made = [make_constraint(name, reference) for name in constraints]
    return who, build(who, made, bound, loss=loss, **options)


@cache
def scipy_solution(name):
    """What SLSQP finds for the naive twin of a case, and the twin."""
    risk = twin_of_case(CASES[NAMES.index(name)])
    return risk.slsqp(), risk


def twin_of_case(case):
    constraints, reference, loss, levels, bound = case
    return twin(people(11, n_levels=levels), constraints, bound, loss=loss, reference=reference)


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
def test_reaches_the_optimum_of_slsqp(make, case):
    """The reference has no centres, no standardised columns and one constraint per comparison."""
    _, problem = build_case(case)
    expected, risk = scipy_solution(NAMES[CASES.index(case)])
    result, at = solve(make, problem, tol=1e-6)
    assert result.status == "converged"
    assert at.objective == pytest.approx(expected.fun, abs=1e-6)
    assert max(problem.kkt_residual(at, result.multipliers).values()) <= 1e-6
    assert risk.excess(raw(problem, result.theta)).max() <= 3e-6
    # Who pays, and how much, is also the same: sign and size of the multipliers.
    assert np.abs(result.multipliers).max() > 0.01
    if "multipliers" not in expected:  # of scipy before 1.16
        return
    scale = expected.multipliers.max()
    for mine, theirs in zip(
        pulls(problem, result.multipliers), risk.pull(expected.multipliers), strict=True
    ):
        assert mine * mine.size == pytest.approx(theirs * mine.size, abs=3e-3 * scale)


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


@pytest.mark.parametrize(
    ("seed", "levels", "constraint", "loss"),
    [
        (0, (4,), "demographic_parity", "squared_hinge"),
        (1, (3, 2), "loss_parity", "squared_hinge"),
        (0, (4,), "equal_opportunity", "squared_hinge"),
    ],
)
@each_solver
def test_converged_means_a_kkt_residual_of_tol(make, seed, levels, constraint, loss):
    """Complementarity too, where multipliers are large."""
    problem = build(
        people(seed, n_levels=levels), make_constraint(constraint, "overall"), 0.03, loss=loss
    )
    result, at = solve(make, problem, tol=1e-6)
    assert result.status == "converged"
    assert np.abs(result.multipliers).max() > 2
    assert max(problem.kkt_residual(at, result.multipliers).values()) <= 1e-6


# Where it starts, and what does not matter


@pytest.mark.parametrize("case", [CASES[i] for i in (1, 2, 4, 8, 11, 14)], ids=str)
@each_solver
def test_a_warm_start_ends_at_once(make, case):
    _, problem = build_case(case)
    first, _ = solve(make, problem)
    again = make().solve(problem, first.theta, first.multipliers, tol=1e-6)
    assert again.status == "converged"
    assert again.n_iter <= 3  # L-BFGS of older versions of scipy takes one more
    assert again.theta == pytest.approx(first.theta, abs=1e-5)


@each_solver
def test_the_start_does_not_matter_and_is_left_alone(make):
    """Equal mean scores are a convex problem: there is one solution."""
    _, problem = build_case(CASES[13])
    first, _ = solve(make, problem)
    for seed in range(3):
        rng = np.random.default_rng(seed)
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
    _, problem = build_case((["bounded_group_loss"], "pairwise", "log_loss", (4,), 0.3))
    result, at = solve(make, problem, max_iter=150)
    assert result.status != "converged"
    assert problem.violation(at) > 0.1
    assert np.isfinite(result.theta).all()
    assert np.isfinite(result.multipliers).all()


# The contract of solvers


@each_solver
def test_solvers_call_only_what_they_say_they_need(make):
    """A problem that has nothing else is solved all the same."""
    _, problem = build_case(CASES[1])

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

    _, linear = build_case(CASES[0])
    problem = Curveless(linear.model, linear.loss, linear.targets, linear.constraints)
    with pytest.raises(TypeError, match="ALNewton cannot solve a Curveless.*'hessian'") as error:
        check_needs(ALNewton(), problem)
    assert "gradient" not in str(error.value)
    check_needs(ALLBFGS(), problem)
    check_needs(ALNewton(), linear)


def test_newton_gives_up_on_bounds_that_cannot_be_kept():
    """They drive parameters to infinity, where no number of steps brings the bounds nearer."""
    _, problem = build_case(CASES[0])
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
    _, problem = build_case((*case[:4], 0.2 * case[4]))  # no model keeps all of these bounds
    result, at = solve(lambda: ALLBFGS(max_multiplier=largest), problem)
    n, m = problem.n_parameters, problem.n_constraints

    def room(x):
        values = problem.evaluate(x[:n]).constraints
        both = [problem.upper + x[n:] - values, values - problem.lower + x[n:]]
        return np.concatenate([side[np.isfinite(side)] for side in both])

    expected = minimize(
        lambda x: problem.evaluate(x[:n]).objective + largest * x[n:].sum(),
        np.append(start(problem), np.ones(m)),
        method="SLSQP",
        bounds=[(None, None)] * n + [(0, None)] * m,
        constraints={"type": "ineq", "fun": room},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    missed = np.maximum(
        0, np.maximum(at.constraints - problem.upper, problem.lower - at.constraints)
    )
    assert np.abs(result.multipliers).max() <= largest
    assert at.objective + largest * missed.sum() == pytest.approx(expected.fun, abs=1e-6)
    assert result.status == "converged"
