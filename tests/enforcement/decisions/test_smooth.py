"""Smooth decisions: their lines are the counted ones, and their gradients are exact."""

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
    return strict, SmoothRows.of(strict, chances, shares.toarray())


@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_lines_of_cold_decisions_are_counted(constraint):
    strict, smooth = smooth_of(constraint)
    rng = generator(1)
    offsets = 0.3 * rng.normal(size=smooth.shares.shape[1])
    selected = (smooth.leads - smooth.shares @ offsets > 0).astype(int)
    counted = [
        bound.row_values(means)
        for bound, means in zip(strict.rates.bounds, strict.rates.means(selected), strict=True)
    ]
    values = smooth.fixed + smooth.effects @ selected
    assert values == pytest.approx(np.concatenate(counted), abs=1e-12)
    cost, _ = smooth.cost(
        np.concatenate([offsets, np.zeros(smooth.centers.shape[1])]), 1e-9, 0.0, 0.0
    )
    nobody = strict.utility_of(np.zeros_like(selected))
    assert -cost == pytest.approx(strict.utility_of(selected) - nobody)


@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_gradients_are_differences(constraint, margin):
    _, smooth = smooth_of(constraint, limit=0.02)
    point = 0.2 * generator(2).normal(size=smooth.shares.shape[1] + smooth.centers.shape[1])
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
