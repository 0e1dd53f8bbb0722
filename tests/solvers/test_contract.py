"""Every solver of the core keeps what all solvers promise, and planted bad ones do not."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest

from skfair.solvers import ALNewton
from skfair.solvers.base import IterativeSolver, Step
from tests.public import names_in
from tests.registries import SOLVERS
from tests.seeds import generator
from tests.small_problems import build, optimum, people, twin
from tests.solvers import contract
from tests.solvers.contract import Answer, Case, Run, Subject

# How near solvers come on these problems, by what they say of themselves.
PRECISE, FIRST_ORDER, STOCHASTIC = 1e-6, 2e-3, 0.02
STEPS = 600
STOCHASTIC_STEPS = 600
WHO = people(n=200)


# Problems: all are convex, so there is one answer. Bounds are on both sides, or on one.


def two_sided():
    return build(WHO, "mean_score_parity", 0.05, loss="squared_error", alpha=0.1)


def upper_only():
    """A small group, for which another column counts, may lose less than it would."""
    X, is_small = generator().normal(size=(200, 3)), np.arange(200) % 4 == 0
    signs = np.where(np.where(is_small, X[:, 1], X[:, 0]) > 0, 1.0, -1.0)
    who = WHO._replace(X=X, signs=signs, columns=[np.where(is_small, "small", "large")])
    risk = twin(who, ["bounded_group_loss"], 0.0, alpha=0.1)
    limit = 0.5 * (risk.excess(risk.unlimited()).max() + risk.least_excess())
    return build(who, "bounded_group_loss", limit, alpha=0.1)


def lower_only():
    problem = two_sided()
    here = problem.evaluate(optimum(problem.relaxed()).x).constraints
    return problem.bounded(lower=here + 0.05, upper=np.full(here.size, np.inf))


def no_constraints():
    return two_sided().relaxed()


PROBLEMS = {made.__name__: made for made in (two_sided, upper_only, lower_only, no_constraints)}


# Subjects: what the registries hold


def answer_of(problem, theta, multipliers=None):
    at, residual = problem.evaluate(theta), None
    if multipliers is not None:
        residual = max(problem.kkt_residual(at, multipliers).values())
    return Answer(at.theta, at.objective, problem.violation(at), residual)


@cache
def risk_case(name, is_ruled):
    """A problem, its solution by SLSQP (without the constraints for solvers that ignore them)."""
    problem = PROBLEMS[name]()
    aim = problem if is_ruled else problem.relaxed()
    inside = aim.bounded(aim.lower + 0.01, aim.upper - 0.01)
    exact, start, feasible = optimum(aim).x, problem.start(None), optimum(inside).x
    return Case(
        problem,
        answer_of(problem, exact),
        answer_of(problem, start),
        answer_of(aim, feasible),
    )


def risk_subject(name, kind, *, is_ruled=True, claims=True):
    """A solver of constrained risk minimisation; some ignore the constraints or have no dual."""
    known = {}
    solver, enough = kind(), STOCHASTIC_STEPS if kind.is_stochastic else STEPS

    def run(case, start, **options):
        if options:
            return run_once(case, start, **options)
        key = id(case), start.tobytes()
        if key not in known:  # two checks look at the same long run
            known[key] = run_once(case, start)
        return known[key]

    def run_once(case, start, *, seed=0, max_iter=None, callback=None):
        result = solver.solve(
            case.problem,
            start,
            tol=1e-7 if kind.is_precise else 1e-4,
            max_iter=enough if max_iter is None else max_iter,
            random_state=seed,
            callback=callback,
        )
        claimed = result.multipliers if claims else None
        assert result.multipliers.shape == (case.problem.n_constraints,)
        return Run(result, answer_of(case.problem, result.theta, claimed))

    tolerance = PRECISE if kind.is_precise else STOCHASTIC if kind.is_stochastic else FIRST_ORDER
    return Subject(name, run, partial(risk_case, is_ruled=is_ruled), tolerance)


NAMES = names_in(SOLVERS, of_papers=False)
SUBJECTS = [pytest.param(risk_subject(name, SOLVERS[name]), id=name) for name in NAMES]
each_check = pytest.mark.parametrize("check", contract.CHECKS, ids=lambda check: check.__name__)
each_case = pytest.mark.parametrize("case", PROBLEMS)


@each_check
@each_case
@pytest.mark.parametrize("subject", SUBJECTS)
def test_solvers_keep_the_contract(subject, case, check):
    check(subject, subject.case(case))


# Solvers that break it


@dataclass
class Lazy(IterativeSolver):
    """Returns its start."""

    def steps(self, problem, run):
        yield Step(problem.evaluate(run.start), np.zeros(problem.n_constraints), 0, "converged")


class Reversed(ALNewton):
    """Has the signs of its multipliers wrong."""

    def solve(self, *arguments, **options):
        result = super().solve(*arguments, **options)
        return result._replace(multipliers=-result.multipliers)


class Moody(ALNewton):
    """Starts elsewhere in each run."""

    rng = generator(0)

    def solve(self, problem, theta0, *arguments, **options):
        elsewhere = theta0 + self.rng.normal(size=theta0.size)
        return super().solve(problem, elsewhere, *arguments, **options)


class Deaf(ALNewton):
    """Does not listen to callbacks."""

    def solve(self, *arguments, callback=None, **options):
        return super().solve(*arguments, **options)


class Endless(ALNewton):
    """Makes as many iterations as it likes."""

    def solve(self, *arguments, max_iter=None, **options):
        return super().solve(*arguments, **options)


class Reckless(ALNewton):
    """Gives up the constraints for the objective."""

    def solve(self, problem, *arguments, **options):
        wide = problem.bounded(problem.lower - 0.1, problem.upper + 0.1)
        return super().solve(wide, *arguments, **options)


class Silent(ALNewton):
    """Tells nothing of its way."""

    def solve(self, *arguments, **options):
        return super().solve(*arguments, **options)._replace(history={})


PLANTED = {
    Lazy: "check_answer",
    Reversed: "check_multipliers",
    Moody: "check_seed",
    Deaf: "check_callback",
    Endless: "check_one_iteration",
    Reckless: "check_feasible_start",
    Silent: "check_shape",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_solvers_are_refused(kind):
    subject = risk_subject(kind.__name__, kind)
    with pytest.raises((AssertionError, KeyError)):
        getattr(contract, PLANTED[kind])(subject, subject.case("two_sided"))


def test_every_check_refuses_somebody():
    assert {check.__name__ for check in contract.CHECKS} == set(PLANTED.values())
