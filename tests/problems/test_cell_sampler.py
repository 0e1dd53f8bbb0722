"""Rows of cells, as IDCA draws them: equally many of each stratum, all as likely as others."""

import numpy as np
import pytest

from skfair.problems.cell_sampler import CellSampler

STRATA = np.array([2, 0, 0, 1, 0, 2, 0, 2, 0, 0])
DRAW = CellSampler(STRATA, np.ones(STRATA.size), 3)


@pytest.mark.parametrize(("n_rows", "n_each"), [(1, 1), (3, 1), (12, 4), (14, 4)])
def test_each_stratum_has_as_many_rows(n_rows, n_each):
    rows, factors = DRAW.standing_in(np.random.RandomState(0), n_rows)
    np.testing.assert_array_equal(np.bincount(STRATA[rows]), n_each)
    sizes = np.bincount(STRATA)
    np.testing.assert_allclose(factors, sizes[STRATA[rows]] / n_each)


def test_sums_are_unbiased():
    values, rng = np.arange(10.0) ** 2, np.random.RandomState(0)
    draws = (DRAW.standing_in(rng, 9) for _ in range(4000))
    sums = [factors @ values[rows] for rows, factors in draws]
    assert np.mean(sums) == pytest.approx(values.sum(), abs=5 * np.std(sums) / np.sqrt(4000))


def test_the_same_seed_draws_the_same_rows():
    first, second = (DRAW(np.random.RandomState(3), 3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
