import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skfair.report.moments import Moments, added, binomials


@pytest.mark.parametrize("n_draws", [3, 4000])  # each by itself, and by a table
def test_counts_follow_the_binomial_distribution(n_draws):
    sizes, shares = np.repeat([12.0, 40, 7], 4000 // n_draws), 0.3
    rng = np.random.RandomState(5)
    counts = binomials(rng, n_draws, sizes, np.full(sizes.size, shares))
    assert counts.shape == (n_draws, sizes.size)
    for size in (12, 40, 7):
        drawn = counts[:, sizes == size].ravel()
        expected = stats.binom.pmf(np.arange(size + 1), size, shares) * drawn.size
        frequent = expected > 5
        seen = np.bincount(drawn.astype(int), minlength=size + 1)
        seen, expected = (
            np.append(one[frequent], one[~frequent].sum()) for one in (seen, expected)
        )
        assert stats.chisquare(seen, expected).pvalue > 1e-3
    # Draws of one cell and of another are independent.
    assert abs(np.corrcoef(counts[:, 0], counts[:, -1])[0, 1]) < 4 / np.sqrt(n_draws)


def test_counts_of_cells_without_rows_and_of_certain_outcomes():
    sizes = np.array([0.0, 5, 5, 5, 3_000_000, 3_000_000])
    shares = np.array([0.5, 0, 1, 0, 1, 0])
    counts = binomials(np.random.RandomState(0), 50, sizes, shares)
    assert_array_equal(counts, np.tile([0, 0, 5, 0, 3_000_000, 0], (50, 1)))


@pytest.mark.parametrize("middle", [0.0, 1e7, -1e9])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_numbers_far_from_0_keep_their_digits_in_blocks_too(middle, is_weighted):
    rng = np.random.default_rng(0)
    values, codes = np.round(rng.normal(size=900), 2), rng.integers(0, 3, 900)
    weights = rng.uniform(0.5, 2, 900) if is_weighted else None
    blocks = [np.arange(0, 0), np.arange(300), np.arange(300, 900)]
    parts = [
        Moments.of_rows(
            middle + values[rows], None, codes[rows], 3, weights[rows] if is_weighted else None
        )
        for rows in blocks
    ]
    found = added(parts).merged(np.tile(np.arange(3), 3), 3)
    for group in range(3):
        own = codes == group
        mean = np.average(values[own], weights=weights[own] if is_weighted else None)
        spread = np.average(
            (values[own] - mean) ** 2, weights=weights[own] if is_weighted else None
        )
        w = weights[own] if is_weighted else np.ones(own.sum())
        n = w.sum() ** 2 / (w**2).sum()
        assert found.n_effective[group] == pytest.approx(n)
        assert found.means[group] - middle == pytest.approx(mean, abs=1e-15 * max(abs(middle), 1))
        assert_allclose(found.variances[group], spread * n / (n - 1), rtol=1e-6)
