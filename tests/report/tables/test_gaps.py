import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from skfair.report.tables.gaps import binomials
from tests.seeds import seed_of


@pytest.mark.parametrize("n_draws", [3, 4000])  # each by itself, and by a table
def test_counts_follow_the_binomial_distribution(n_draws):
    sizes, shares = np.repeat([12.0, 40, 7], 4000 // n_draws), 0.3
    rng = np.random.RandomState(seed_of(0))
    counts = binomials(rng, n_draws, sizes, np.full(sizes.size, shares))
    assert counts.shape == (n_draws, sizes.size)
    for size in (12, 40, 7):
        drawn = counts[:, sizes == size].ravel()
        expected = stats.binom.pmf(np.arange(size + 1), size, shares) * drawn.size
        frequent = expected > 20
        seen = np.bincount(drawn.astype(int), minlength=size + 1)
        seen, expected = (
            np.append(one[frequent], one[~frequent].sum()) for one in (seen, expected)
        )
        assert stats.chisquare(seen, expected).pvalue > 1e-7
    # Draws of one cell and of another are independent.
    if n_draws > 3:
        assert abs(np.corrcoef(counts[:, 0], counts[:, -1])[0, 1]) < 6 / np.sqrt(n_draws)


def test_counts_of_cells_without_rows_and_of_certain_outcomes():
    sizes = np.array([0.0, 5, 5, 5, 3_000_000, 3_000_000])
    shares = np.array([0.5, 0, 1, 0, 1, 0])
    counts = binomials(np.random.RandomState(0), 50, sizes, shares)
    assert_array_equal(counts, np.tile([0, 0, 5, 0, 3_000_000, 0], (50, 1)))
