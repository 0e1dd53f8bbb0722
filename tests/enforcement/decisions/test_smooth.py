"""Smooth decisions: their cost is counted on the rows, and its gradients are exact."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from skfair.constraints import AccuracyParity, DemographicParity, EqualizedOdds
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.smooth import SmoothRows
from tests.enforcement.decisions.test_decisions import small
from tests.seeds import generator

CONSTRAINTS = {
    "one rate": DemographicParity(),
    "to the overall rate": DemographicParity(reference="overall"),
    "ratio": DemographicParity(comparison="ratio"),
    "two rates": EqualizedOdds(),
    "right decisions": AccuracyParity(),
}


def smooth_of(constraint, limit=0.1, n=200):
    strict, _, _, chances, shares = small(constraint, limit, n=n)
    return strict, SmoothRows(strict, chances, shares.toarray())


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_the_cost_of_cold_decisions_is_counted(constraint):
    """Minus their utility, and the squared excess of each line over its bounds."""
    strict, smooth = smooth_of(constraint, limit=0.02)
    offsets = 0.3 * generator(1).normal(size=smooth.shares.shape[1])
    centers = np.full(smooth.n_centers, 0.4)
    selected = (smooth.leads - smooth.shares @ offsets > 0).astype(int)
    missed = 0.0
    for bound, means in zip(strict.rates.bounds, strict.rates.means(selected), strict=True):
        for line, value in enumerate(bound.row_values(means)):
            value -= 0.4 * (bound.centers[line] >= 0)
            missed += max(value - bound.upper[line], bound.lower[line] - value, 0.0) ** 2
    cost, _ = smooth.cost(np.concatenate([offsets, centers]), 1e-9, 10.0, 0.0)
    nobody = strict.utility_of(np.zeros_like(selected))
    assert cost == pytest.approx(nobody - strict.utility_of(selected) + 5 * missed)


@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_gradients_are_differences(constraint, margin):
    _, smooth = smooth_of(constraint, limit=0.02)
    point = 0.2 * generator(2).normal(size=smooth.shares.shape[1] + smooth.n_centers)
    _, gradient = smooth.cost(point, 0.1, 100.0, margin)
    differences = approx_fprime(point, lambda at: smooth.cost(at, 0.1, 100.0, margin)[0], 1e-7)
    assert gradient == pytest.approx(differences, abs=1e-4)


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_decisions_near_the_soft_ones_satisfy_the_limits_and_are_preferred(constraint):
    strict, features, _, chances, shares = small(constraint, 0.1, n=600)
    rng = np.random.RandomState(0)
    search = OffsetSearch(strict, features, strict.rates.classes, chances, shares, rng)
    near = search.near_soft()
    if search.free.verdict.is_feasible:
        assert near is search
        return
    found, soft = near.search(), search.soft().predicted
    assert strict(found.predicted).is_feasible
    assert near.is_near_soft(found)
    plain = search.search().predicted
    value = [
        near.strict.utility_of(labels) for labels in (found.predicted, plain, search.free.predicted)
    ]
    changed = [np.mean(labels != soft) for labels in (found.predicted, plain)]
    assert value[0] >= value[1] - 0.02 or changed[0] <= changed[1]
