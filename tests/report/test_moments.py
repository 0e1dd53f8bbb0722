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


def test_no_cells_have_no_draws():
    nothing = np.zeros(0)
    assert binomials(np.random.RandomState(0), 5, nothing, nothing).shape == (5, 0)


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


@pytest.mark.parametrize("is_weighted", [False, True])
def test_shares_are_of_the_rows_that_count(is_weighted):
    rng = np.random.default_rng(0)
    hits, counted, codes = rng.random(300) < 0.3, rng.random(300) < 0.6, rng.integers(0, 3, 300)
    weights = rng.uniform(0.5, 2, 300) if is_weighted else None
    found = Moments.of_rows(hits, counted, codes, 4, weights)  # the last cell has no rows
    for group in range(3):
        own = counted & (codes == group)
        w = weights[own] if is_weighted else np.ones(own.sum())
        share, n = np.average(hits[own], weights=w), w.sum() ** 2 / (w**2).sum()
        assert found.means[group] == pytest.approx(share)
        assert found.smoothed_means[group] == pytest.approx((share * n + 1) / (n + 2))
        assert found.variances[group] == pytest.approx(share * (1 - share))
    assert np.isnan(found.smoothed_means[3])


def test_intervals_of_means_are_students():
    rng = np.random.default_rng(1)
    values, codes = rng.normal(size=60), rng.integers(0, 3, 60)
    low, high = Moments.of_rows(values, None, codes, 3, None).interval(0.9)
    for group in range(3):
        own = values[codes == group]
        expected = stats.t.interval(0.9, own.size - 1, own.mean(), stats.sem(own))
        assert (low[group], high[group]) == pytest.approx(expected)


@pytest.mark.parametrize("is_share", [False, True])
def test_weights_are_in_the_spread_of_draws(is_share):
    rng = np.random.default_rng(2)
    values, w = rng.random(500), rng.uniform(1, 9, 500)
    values = values < 0.3 if is_share else values
    moments = Moments.of_rows(
        values, np.ones(500, bool) if is_share else None, 0 * w.astype(int), 1, w
    )
    mean, variance = moments.means, moments.variances
    draws = moments.drawn(np.random.RandomState(0), 4000, mean, variance)
    error = np.sqrt(variance[0] * (w**2).sum()) / w.sum()
    assert draws.mean() == pytest.approx(mean[0], abs=4 * error / np.sqrt(4000))
    assert draws.std() == pytest.approx(error, rel=0.06)
