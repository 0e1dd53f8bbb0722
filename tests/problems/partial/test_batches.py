"""Rows of cells, as IDCA draws them: equally many of each stratum, all as likely as others."""

import numpy as np
import pytest

from skfair.problems.erm.batches import CellSampler

STRATA = np.array([2, 0, 0, 1, 0, 2, 0, 2, 0, 0])
DRAW = CellSampler(STRATA, np.ones(STRATA.size), 3)


@pytest.mark.parametrize("n_each", [1, 4])
def test_each_stratum_has_as_many_rows(n_each):
    rows = DRAW(np.random.RandomState(0), n_each)
    np.testing.assert_array_equal(np.bincount(STRATA[rows]), n_each)
    np.testing.assert_array_equal(DRAW.sizes, np.bincount(STRATA))


def test_sums_are_unbiased():
    values, rng = np.arange(10.0) ** 2, np.random.RandomState(0)
    factors = np.repeat(DRAW.sizes / 3, 3)
    sums = [factors @ values[DRAW(rng, 3)] for _ in range(4000)]
    assert np.mean(sums) == pytest.approx(values.sum(), abs=5 * np.std(sums) / np.sqrt(4000))


def test_the_same_seed_draws_the_same_rows():
    first, second = (DRAW(np.random.RandomState(3), 3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
