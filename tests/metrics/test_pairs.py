"""Noise floors and sample sizes of pairs: one unit with a row in each group."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    noise_floor,
    sample_size,
)
from tests.groups.test_shared_units import pairs
from tests.seeds import generator


def test_groups_are_swapped_within_pairs():
    """With few pairs that differ, the noise is that of as many coins, not of all rows."""
    n, n_differ = 200, 6
    first = np.arange(n) % 2
    second = np.where(np.arange(n) < n_differ, 1 - first, first)
    decisions, groups = np.concatenate([first, second]), np.repeat(["a", "b"], n)
    order = generator("order").permutation(2 * n)
    floor = noise_floor(
        demographic_parity_difference,
        None,
        decisions[order],
        sensitive_features=groups[order],
        units=np.tile(np.arange(n), 2)[order],
        n_permutations=1000,
        random_state=0,
    )
    of_coins = np.array([abs(sum(signs)) / n for signs in product((-1, 1), repeat=n_differ)])
    for value in np.unique(of_coins):
        share, chance = (np.isclose(own, value).mean() for own in (floor.values, of_coins))
        low, high = binom.ppf([1e-7, 1 - 1e-7], 1000, chance) / 1000
        assert low <= share <= high
    assert np.isclose(floor.values[:, None], np.unique(of_coins)).any(axis=1).all()


def test_pairs_are_swapped_within_strata_and_classes():
    """A unit has a pair in each stratum, and groups are only swapped within it."""
    n = 50
    units, strata = np.tile(np.arange(n), 4), np.repeat(["x", "y"], 2 * n)
    groups = np.tile(np.repeat(["a", "b"], n), 2)
    seen = []

    def listen(y_true, y_score, *, sensitive_features, **_):
        seen.append(np.asarray(sensitive_features))
        return 0.0

    options = {"control_features": strata, "units": units, "n_permutations": 5}
    noise_floor(listen, None, np.zeros(4 * n), sensitive_features=groups, **options)
    for own in seen:
        for stratum in ("x", "y"):
            first, second = own[strata == stratum].reshape(2, n)
            assert (first != second).all()
            assert {*first} == {"a", "b"}


def test_more_alike_pairs_are_fewer():
    sizes = [int(sample_size(0.05, pair_correlation=rho)[0]) for rho in (0.0, 0.5, 0.9, 0.98)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == int(sample_size(0.05)[0])
    # The variance of a difference of pairs is 1 - rho times as large, and the test is careful.
    assert 0.5 < sizes[1] / sizes[0] < 0.6


def test_alike_rows_of_a_pair_are_one_row():
    one = sample_size(0.05, pair_correlation=0.8)
    alike = sample_size(0.05, pair_correlation=0.8, rows_per_unit=5)
    np.testing.assert_allclose(alike, one, atol=1)
    # Five prompts for each CV and name, which the model does not answer in the same way
    fewer = sample_size(0.05, pair_correlation=0.8, rows_per_unit=5, correlation=0.9)
    assert fewer[0] < one[0]


@pytest.mark.parametrize(
    ("limit", "first", "second", "rho", "comparison"),
    [
        (0.05, 0.5, 0.5, 0.9, "difference"),
        (0.1, 0.5, 0.45, 0.5, "difference"),
        (0.2, 0.3, 0.3, 0.8, "ratio"),
        pytest.param(0.02, 0.5, 0.5, 0.98, "difference", marks=pytest.mark.slow),
        pytest.param(0.03, 0.05, 0.05, 0.5, "difference", marks=pytest.mark.slow),
    ],
)
def test_as_many_pairs_show_the_limit(limit, first, second, rho, comparison):
    rates, how = (first, second), {"comparison": comparison}
    n, n_draws = int(sample_size(limit, rates=rates, pair_correlation=rho, **how)[0]), 200
    both = first * second + rho * np.sqrt(first * (1 - first) * second * (1 - second))
    rng, shown = generator((limit, rho)), 0
    for _ in range(n_draws):
        decisions, groups, units = pairs(rng, n, first, second, both)
        who = {"sensitive_features": groups, "units": units}
        found = disparity_test(
            "demographic_parity", None, decisions, max_disparity=limit, **who, **how
        )
        shown += found.is_within
    fewest, most = binom.ppf([1e-6, 1 - 1e-6], n_draws, [0.78, 0.92])
    assert fewest <= shown <= most


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pair_correlation": 1.5}, "pair_correlation must be"),
        ({"pair_correlation": 0.5, "shares": (0.3, 0.7)}, "of the same size, got shares="),
        (
            {"pair_correlation": 0.9, "rows_per_unit": 4, "correlation": 0.2},
            "it is at most 0.4",
        ),
    ],
)
def test_pairs_that_there_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        sample_size(0.05, **options)
