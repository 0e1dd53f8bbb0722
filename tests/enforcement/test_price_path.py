"""Paths of prices: from few decisions without disparity to free ones."""

import numpy as np
import pytest

from skfair.enforcement.decisions.shares import known_shares
from skfair.enforcement.price_path import GAPS, SHARES, PathRows, full_step, price_path
from tests.enforcement.test_certify import rates_of


def rows(n=4000, n_groups=2, ratio=False, limit=0.05):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, n_groups, n)
    y = (rng.normal(size=n) + 0.5 * groups > 0.6).astype(int)
    chance = 0.35 * y + 0.08 * groups + 0.3 * rng.random(n) + 0.02
    chances = np.column_stack([1 - chance, chance])
    shares = known_shares(groups[None], n_groups, None, 1, chances)
    rates = rates_of(groups, limit, ratio=ratio)
    everyone = np.arange(n_groups * 2)
    gains = chances[:, 1] - chances[:, 0]
    return PathRows(rates, gains, shares, y, 2, everyone, True), groups


def decided(path, given):
    return given.gains[:, None] - np.asarray(given.shares @ path.T) > 0


def gaps(selected, groups):
    rate = [selected[groups == g].mean(axis=0) for g in range(groups.max() + 1)]
    return np.ptp(rate, axis=0)


@pytest.mark.parametrize("n_groups", [2, 4])
def test_a_path_selects_more_and_more_then_lets_gaps_grow(n_groups):
    given, groups = rows(n_groups=n_groups)
    path = price_path(given)
    selected = decided(path, given)
    first = full_step(given.rates)
    share = selected.mean(axis=0)
    assert path.shape[0] == len(SHARES) + 5 * (len(GAPS) - 1) + 1
    assert share[:first] == pytest.approx(np.array(SHARES) * share[first], abs=0.02)
    found = gaps(selected, groups)
    assert found[: first + 1].max() < 0.03
    assert found[-1] == pytest.approx(1.1 * 0.05, abs=0.03)
    assert found[-1] > found[first]


def test_a_path_ends_with_free_decisions_if_these_keep_the_limit():
    given, _ = rows(limit=0.9)
    assert not price_path(given)[-1].any()


def test_ratios_have_no_steps_that_select_few():
    given, _ = rows(ratio=True, limit=0.2)
    assert full_step(given.rates) == 0
    path = price_path(given)
    assert path.shape[0] == 5 * (len(GAPS) - 1) + 1
