"""The best point of a run, and a weighted mean of its points."""

import numpy as np
import pytest

from skfair.papers.one_sided import Average, Best
from skfair.problems.base import TwoSidedProblem
from tests.seeds import generator
from tests.solvers.test_base import at


def test_the_best_has_the_lowest_objective_within_the_tolerance():
    points = [(5.0, 0.0), (1.0, 0.5), (3.0, 0.09), (4.0, 0.0)]
    for tolerance, expected in ((0.1, 3.0), (0.0, 4.0), (0.5, 1.0)):
        best = Best(tolerance)
        for x, violation in points:
            best.offer(at(x), violation)
        assert best.at.objective == expected
    none_within = Best(0.1)
    for x, violation in ((1.0, 0.5), (2.0, 0.3), (0.0, 0.4)):
        none_within.offer(at(x), violation)
    assert none_within.at.objective == 2.0


def test_what_is_no_number_is_never_the_best():
    class Plain(TwoSidedProblem):
        lower, upper = np.array([-np.inf]), np.array([0.0])

    best, problem = Best(0.1), Plain()
    assert np.isnan(problem.violation(at(np.nan)))
    for x in (3.0, np.nan, 2.0, np.nan):
        best.offer(at(x), problem.violation(at(x)))
    assert best.at.objective == 2.0


def test_an_average_weighs():
    rng = generator(0)
    points, multipliers, weights = rng.normal(size=(5, 2)), rng.normal(size=(5, 3)), rng.random(5)
    average = Average()
    for one in zip(points, multipliers, weights, strict=True):
        average.add(*one)
    assert average.weight == pytest.approx(weights.sum())
    assert average.theta == pytest.approx(np.average(points, axis=0, weights=weights))
    assert average.multipliers == pytest.approx(np.average(multipliers, axis=0, weights=weights))
