"""Stochastic IDCA: its naive twin, unbiased batches, what each option does, networks."""

from functools import cache, partial

import numpy as np
import pytest
from scipy.stats import norm

from skfair.classification import PartialParityClassifier
from skfair.constraints.partial import IntervalConstraint, Surrogate
from skfair.metrics import partial_statistical_parity_gap
from skfair.models import MLPScore
from skfair.papers import IDCAStochastic
from skfair.papers.idca.idca_stochastic import _ConvexBatch, standing_in, strata_of
from skfair.papers.idca.parts import DCProblem
from skfair.problems.erm.batches import CellSampler
from tests.naive.dc import TinyParity
from tests.papers.idca.test_dc_solvers import (
    ALPHA,
    HIGH,
    LOW,
    SHARES,
    convex_problem,
    people,
    problem_of,
    start_of,
    violations,
)
from tests.seeds import generator

WIDTH = 0.5


def uneven():
    """Groups of 50 and 100 people."""
    X, y, codes = people(150, 3)
    return X, y, np.minimum(codes, 1)


def twin_of(who):
    X, y, codes = who
    Z = np.c_[(X - X.mean(0)) / X.std(0), np.ones(len(y))]
    room = 0.1 * (HIGH - LOW)
    percentiles = LOW + SHARES * (HIGH - LOW)
    return TinyParity(Z, y, codes, percentiles, room, WIDTH, np.append(ALPHA / X.var(0), 0.0))


@pytest.mark.parametrize("mu", [0.0, 0.4])
@pytest.mark.parametrize("given", [{}, {"objective_weight": 2.0, "damping": 9.0}])
def test_the_iterates_are_those_of_the_naive_twin(mu, given):
    who = uneven()
    problem, twin = problem_of(surrogate=Surrogate("ramp", WIDTH), who=who), twin_of(who)
    solver = IDCAStochastic(n_inner=25, n_batch=14, mu=mu, eps=1.0, **given)
    V, alpha = given.get("objective_weight", 5.0), given.get("damping", 25.0)
    start = start_of(problem) + 0.2 * generator(4).normal(size=problem.n_parameters)
    centres = []
    found = solver.solve(problem, start, max_iter=2, random_state=3, callback=centres.append)

    draw = partial(standing_in, CellSampler(who[2], np.ones(who[2].size), 2))
    rng = np.random.RandomState(3)
    w, queues = start, [0.0] * len(twin.sides)
    for n_done in range(2):
        batches = [twin.of_rows(*draw(rng, 14)) for _ in range(25)]
        iterates, all_queues = twin.primal_dual(w, batches, V, alpha, queues, mu)
        w, queues = np.mean(iterates[:-1], axis=0), all_queues[-1]
        np.testing.assert_allclose(centres[n_done], w, atol=1e-10)
    assert max(queues) > 0
    means = np.mean(all_queues[:-1], axis=0) / V
    n = problem.n_constraints
    np.testing.assert_allclose(found.multipliers, means[:n] - means[n:], atol=1e-10)


def test_batches_estimate_the_problem_without_bias():
    problem = problem_of(who=uneven())
    theta = start_of(problem) + 0.5 * generator(0).normal(size=problem.n_parameters)
    draw = partial(standing_in, CellSampler(strata_of(problem), np.ones(150), 2))
    rng = np.random.RandomState(0)
    exact, found = problem.parts(theta), []
    for _ in range(800):
        rows, factors = draw(rng, 20)
        assert np.bincount(uneven()[2][rows]).tolist() == [10, 10]
        assert factors.sum() == pytest.approx(150)
        parts = problem.on_rows(rows, factors).parts(theta)
        found.append([parts[0].objective, *(c for part in parts for c in part.constraints)])
    expected = [exact[0].objective, *(c for part in exact for c in part.constraints)]
    noise = np.std(found, axis=0) / np.sqrt(800)
    bound = norm.isf(1e-9) * noise + 1e-12
    assert np.all(np.abs(np.mean(found, axis=0) - expected) <= bound)


def test_all_rows_once_are_the_problem():
    problem = problem_of(who=uneven())
    theta = start_of(problem) + 0.1
    rows = generator(1).permutation(150)
    at, same = problem.evaluate(theta), problem.on_rows(rows, np.ones(150)).evaluate(theta)
    assert same.objective == pytest.approx(at.objective, abs=1e-13)
    np.testing.assert_allclose(same.constraints, at.constraints, atol=1e-13)
    nu = np.linspace(-1, 1, problem.n_constraints)
    np.testing.assert_allclose(same.gradient(nu), at.gradient(nu), atol=1e-13)


@pytest.mark.parametrize("model", ["linear", "network"])
@pytest.mark.parametrize("kind", ["smoothstep", "sigmoid"])
def test_the_functions_on_a_batch_have_their_derivatives(model, kind):
    problem = problem_of(who=uneven(), surrogate=Surrogate(kind, 0.6))
    if model == "network":
        net = MLPScore(uneven()[0], (4,))
        problem = DCProblem(net, problem.objective, problem.moments, 0.1)
    rng = generator(2)
    center = problem.start(rng.normal(size=problem.model.n_parameters))
    theta = center + 0.3 * rng.normal(size=center.size)
    lam = rng.uniform(size=violations(problem, center).size)

    def at(point):
        return _ConvexBatch(problem, center, point, 0.3)

    values = at(theta).predicted(theta)
    if model == "linear":  # they lie above the constraints, and touch them at the centre
        assert np.min(values - violations(problem, theta)) >= 0.15 * np.sum((theta - center) ** 2)
    np.testing.assert_allclose(
        at(center).predicted(center), violations(problem, center), atol=1e-12
    )
    step, h = rng.normal(size=theta.size), 1e-6
    ends = [at(theta + s * h * step).predicted(theta + s * h * step) for s in (1, -1)]
    slopes = (at(theta).predicted(theta + h * step) - values) / h
    np.testing.assert_allclose(slopes, (ends[0] - ends[1]) / (2 * h), atol=1e-4)
    objectives = [
        problem.evaluate(theta + s * h * step).objective
        + 0.15 * np.sum((theta + s * h * step - center) ** 2)
        for s in (1, -1)
    ]
    expected = 0.7 * (objectives[0] - objectives[1]) / (2 * h) + lam @ slopes
    assert at(theta).gradient(0.7, lam) @ step == pytest.approx(expected, abs=1e-4)


@cache
def ends(**options):
    problem = convex_problem()
    solver = IDCAStochastic(**{"n_inner": 100, **options})
    result = solver.solve(problem, start_of(problem), max_iter=4, random_state=0)
    at = problem.evaluate(result.theta)
    return at.objective, problem.violation(at), result


@pytest.mark.slow
def test_options_do_what_they_say():
    _, violation, usual = ends()
    assert ends(restart=True)[1] > 1.5 * violation  # prices are learned anew each time
    best, worst = (ends(eps=eps)[2].history for eps in (0.0, 1.0))
    np.testing.assert_array_equal(best["objective"], worst["objective"])  # the same course
    second = slice(3, None)
    assert ends(eps=0.0)[1] == pytest.approx(best["max_violation"][second].min())
    assert ends(eps=1.0)[0] == pytest.approx(best["objective"][second].min())
    start = start_of(convex_problem())
    assert IDCAStochastic(n_outer=3).solve(convex_problem(), start).n_iter == 3
    assert usual.status == "max_iter"


class Network:
    """A network of our own as a user's model."""

    n_parameters = MLPScore(np.eye(3), (8,)).n_parameters

    def start(self, rng):
        return MLPScore(np.eye(3), (8,)).start(rng)

    def forward(self, theta, X):
        model = MLPScore(X, (8,))
        model.use_units(model.units._replace(mean=np.zeros(3), scale=np.ones(3)))
        scores, tape = model.forward(theta)
        return scores, (model, tape)

    def pullback(self, tape, slopes):
        return tape[0].pullback(tape[1], slopes)


@pytest.mark.slow
def test_a_network_through_the_estimator():
    X, y, codes = people(600)
    gaps, accuracies = [], []
    for bound in (0.05, 10.0):
        model = PartialParityClassifier(
            (LOW, HIGH),
            IntervalConstraint(surrogate="ramp"),
            max_disparity=min(bound, 1.0),
            model=Network(),
            solver=IDCAStochastic(n_inner=100, n_outer=5),
            enforce="surrogate",
            random_state=0,
        ).fit(X, y, sensitive_features=codes)
        scores = model.decision_function(X)
        gaps.append(
            partial_statistical_parity_gap(
                y, scores, sensitive_features=codes, interval=(LOW, HIGH)
            )
        )
        accuracies.append(model.score(X, y))
    assert gaps[0] < 0.6 * gaps[1]
    assert accuracies[0] > 0.5
