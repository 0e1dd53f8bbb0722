"""Points and centres against plain numpy."""

import numpy as np
import pytest

from skfair.groups.encoding import encode_groups
from skfair.problems.clustering.counts import balance_rules
from skfair.problems.clustering.points import RepresentationProblem, largest


def test_farthest_points_are_those_that_pay_most():
    rng = np.random.default_rng(0)
    X, weights, labels = rng.normal(size=(40, 3)), rng.uniform(0.5, 2, 40), rng.integers(0, 4, 40)
    groups = encode_groups(np.arange(40) % 2)
    rules = balance_rules(groups, np.array([0.5]))
    problem = RepresentationProblem(X, groups, rules, 4, weights)
    scaled = problem.scaled(np.arange(40))
    centers = rng.normal(size=(4, 3))
    paid = problem.weights * ((scaled - centers[labels]) ** 2).sum(axis=1)
    cost, points = problem.farthest_points(labels, centers, 5)
    order = np.argsort(-paid)[:5]
    assert cost == pytest.approx(paid[order])
    assert points == pytest.approx(scaled[order])


@pytest.mark.parametrize("n_wanted", [1, 3, 8, 9])
def test_largest_values_come_in_falling_order(n_wanted):
    values = np.array([2.0, 5.0, 1.0, 5.0, 3.0, 2.0, 0.0, 3.0])
    expected = sorted(range(8), key=lambda i: -values[i])[:n_wanted]
    assert values[largest(values, n_wanted)].tolist() == values[expected].tolist()
    if n_wanted >= 8:  # of equal ones the first comes first
        assert largest(values, n_wanted).tolist() == expected
