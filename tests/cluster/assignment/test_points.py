"""Points and centres against plain numpy."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skfair.cluster.assignment.counts import balance_constraints
from skfair.cluster.assignment.points import RepresentationProblem, Spread, units_of
from skfair.groups.encoding import encode_groups
from tests.seeds import generator


def test_farthest_points_are_those_that_pay_most():
    rng = generator(0)
    X, weights, labels = rng.normal(size=(40, 3)), rng.uniform(0.5, 2, 40), rng.integers(0, 4, 40)
    groups = encode_groups(np.arange(40) % 2)
    constraints = balance_constraints(groups, np.array([0.5]))
    problem = RepresentationProblem(X, groups, constraints, 4, weights)
    scaled = problem.scaled(np.arange(40))
    centers = rng.normal(size=(4, 3))
    paid = ((scaled - centers[labels]) ** 2).sum(axis=1)  # a copy pays like the row
    cost, points = problem.farthest_points(labels, centers, 5)
    order = np.argsort(-paid)[:5]
    assert cost == pytest.approx(paid[order])
    assert points == pytest.approx(scaled[order])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 1e5, "tiny"])
def test_rows_in_own_units(dtype, spread):
    """At any scale; a spread of almost nothing may stay below one."""
    rng = generator(0)
    times = float(np.finfo(dtype).tiny) / 8 if spread == "tiny" else spread
    X = (rng.normal(size=(50, 3)) * times).astype(dtype)
    groups = encode_groups(np.arange(50) % 2)
    problem = RepresentationProblem(X, groups, balance_constraints(groups, np.array([0.5])), 2)
    scaled = problem.scaled(slice(None))
    assert scaled.dtype == dtype
    assert np.isfinite(scaled).all()
    if spread == "tiny":
        assert 0 < np.abs(scaled).max() < 1
    else:
        assert_allclose(scaled, problem.units.inwards(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("times", [1e-200, 1.0, 1e200])
def test_units_do_not_depend_on_the_order_of_sums(times):
    """Rounding would grow in the search for prices, and fits on blocks differ from others."""
    rng = generator(0)
    X, weights = rng.normal([0, 5, -2], 1.0, (999, 3)) * times, rng.random(999)
    found = []
    for ends in ([0, 999], [0, 7, 500, 999], [0, 333, 998, 999]):
        parts = [Spread.of(X[i:j], weights[i:j]) for i, j in pairwise(ends)]
        found.append(units_of(parts))
    for one in found[1:]:
        assert one.scale == found[0].scale
        assert_array_equal(one.mean, found[0].mean)
    # A mean near 0 has fewer digits than the numbers that it is of.
    mean = np.average(X / times, axis=0, weights=weights)
    assert_allclose(found[0].mean / times, mean, atol=1e-11)


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1e38), (np.float64, 1e300)])
@pytest.mark.parametrize("n", [50, 500_000])
def test_rows_without_weight_cost_nothing_wherever_they_are(dtype, most, n):
    X, groups = generator(0).normal(size=(n, 3)).astype(dtype), encode_groups([0] * n)
    X[-1], weights, constraints = most, np.ones(n), balance_constraints(groups, np.array([0.5]))
    weights[-1] = 0.0
    problem = RepresentationProblem(X, groups, constraints, 2, weights)
    assert problem.means(np.zeros(n, np.int64))[2] == pytest.approx(1.0, rel=1e-5)
