"""Mixtures of thresholds: the best there are, by an independent programme; draws known on rows."""

import numpy as np
import pytest
from scipy.optimize import linprog

from skfair.constraints import (
    BoundedFalseNegativeRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
)
from skfair.enforcement.decisions.mixtures import Mixture, Mixtures
from skfair.enforcement.strict_evaluation import StrictEvaluation
from skfair.estimators.decisions.bind import LabelledRows, class_constraints
from skfair.estimators.limits import SelectionFloor
from skfair.groups.encoding import encode_groups
from tests.seeds import generator


def people(n, seed, n_groups=2):
    """Return classes, groups, and probabilities that are better for the first group."""
    rng = generator(seed)
    groups, truth = rng.integers(0, n_groups, n), rng.normal(size=n)
    y = (truth + 0.3 * groups + 0.3 * rng.normal(size=n) > 0).astype(np.int64)
    scores = truth + rng.normal(size=n) * (0.3 + groups)
    return y, groups, 1 / (1 + np.exp(-scores))


def strict_of(constraints, limit, y, groups, weights=None):
    rows = LabelledRows(encode_groups(groups), y, np.array([0, 1]), weights, None)
    bound = class_constraints(constraints, rows, limit)
    return StrictEvaluation.of(bound, y, rows.weights, np.eye(2))


def best_of_all(limit, y, groups, chances, weights):
    """Return the worth of the best mixture under equalized odds: a programme over all cuts."""
    blocks, worth, owners = [], [], []
    for g in np.unique(groups):
        own = groups == g
        for t in [-1.0, *np.unique(chances[own])]:
            p = chances[own] > t
            worth.append(weights[own] @ (p == y[own]))
            blocks.append(
                [np.average(p[y[own] == k], weights=weights[own][y[own] == k]) for k in (0, 1)]
            )
            owners.append(g)
    rates, owners = np.array(blocks), np.array(owners)
    names = np.unique(owners)
    left = [
        rates[:, k] * ((owners == a).astype(float) - (owners == b))
        for k in (0, 1)
        for a in names
        for b in names
        if a != b
    ]
    sums = [(owners == g).astype(float) for g in names]
    found = linprog(-np.array(worth), left, np.full(len(left), limit), sums, np.ones(names.size))
    return -found.fun


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("limit", [0.0, 0.02, 0.1])
def test_the_best_mixture_is_that_of_a_programme_over_all_thresholds(limit, n_groups):
    y, groups, chances = people(400, n_groups, n_groups)
    weights = generator(1).uniform(0.5, 2.0, 400)
    strict = strict_of([EqualizedOdds()], limit, y, groups, weights)
    values = np.column_stack([1 - chances, chances])
    found = Mixtures(strict, groups, values).best()
    wanted = best_of_all(limit, y, groups, chances, weights / weights.sum())
    assert found.utility == pytest.approx(wanted, abs=1e-7)


def test_shares_of_draws_are_those_of_the_mixture():
    """What is expected of a mixture is what many draws give."""
    y, groups, chances = people(400, 5)
    strict = strict_of([EqualizedOdds()], 0.01, y, groups)
    values = np.column_stack([1 - chances, chances])
    found = Mixtures(strict, groups, values).best()
    assert found.mixture.is_needed
    rng = generator(0)
    utilities, effects, bounds = [], [], strict.rates.bounds

    def values_of(means):
        return np.concatenate([b.row_values(m) for b, m in zip(bounds, means, strict=True)])

    for _ in range(2000):
        drawn = found.mixture.values(values, groups, rng.random(400))
        predicted = (drawn[:, 1] > 0).astype(np.int64)
        utilities.append(strict.utility_of(predicted))
        effects.append(values_of(strict.rates.means(predicted)))
    assert np.mean(utilities) == pytest.approx(found.utility, abs=2e-3)
    gained = np.mean(effects, axis=0) - values_of(strict.rates.starts)
    assert gained == pytest.approx(found.effects, abs=5e-3)


def test_higher_scores_are_never_worse_with_the_same_draw():
    y, groups, chances = people(400, 5)
    values = np.column_stack([1 - chances, chances])
    mixture = Mixtures(strict_of([EqualizedOdds()], 0.01, y, groups), groups, values).best().mixture
    for draw in (0.0, 0.3, 0.9):
        drawn = mixture.values(values, groups, np.full(400, draw))[:, 1]
        for g in (0, 1):
            own = np.flatnonzero(groups == g)[np.argsort(chances[groups == g])]
            assert np.all(np.diff((drawn[own] > 0).astype(int)) >= 0)


def test_which_rows_a_draw_decides_is_found_by_trying_all_draws():
    mixture = Mixture((np.array([0.4, 0.0, -0.2]),), (np.array([0.2, 0.5, 0.3]),), 0.0)
    scores = np.linspace(-0.9, 0.9, 37)
    values, groups = np.column_stack([0 * scores, scores]), np.zeros(37, np.int64)
    for cut in (-0.5, 0.0, 0.25):
        draws = np.linspace(0, 1, 400, endpoint=False)
        found = [mixture.values(values, groups, np.full(37, d))[:, 1] > cut for d in draws]
        differs = np.ptp(np.array(found).astype(int), axis=0) > 0
        assert np.array_equal(mixture.decides(values, groups, np.array([cut])), differs)


def test_a_rate_that_is_limited_twice_is_one_and_needs_no_mixture():
    """Parity limits selection, a floor limits it from below; equalized odds limits two rates."""
    y, groups, _ = people(400, 3)
    floor = BoundedFalseNegativeRate(0.4)
    for constraints, is_suited in (
        ([DemographicParity()], False),
        ([DemographicParity(), SelectionFloor()], False),
        ([EqualOpportunity(), floor], False),
        ([EqualizedOdds()], True),
        ([DemographicParity(), floor], True),
    ):
        assert Mixtures.suit(strict_of(constraints, 0.05, y, groups), groups) is is_suited
