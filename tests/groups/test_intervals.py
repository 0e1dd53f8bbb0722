"""Ranks and shares of percentile intervals are inverses of each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfair.groups.encoding import encode_groups
from skfair.groups.intervals import Intervals
from tests import naive
from tests.seeds import generator

LEVELS = encode_groups(list("abc")).levels
few = settings(deadline=None, max_examples=60)
by_seed = given(seed=st.integers(0, 2**31))


def random_pairs(rng):
    """One to four pieces, often on round numbers, often touching 0, 1 or each other."""
    n_ends = 2 * rng.integers(1, 5)
    ends = np.sort(rng.choice(21, n_ends, replace=False)) / 20
    if rng.random() < 0.5:
        ends = np.sort(rng.random(n_ends))
    if rng.random() < 0.3:
        ends[0] = 0
    if rng.random() < 0.3:
        ends[-1] = 1
    if n_ends > 2 and rng.random() < 0.3:
        ends[2] = ends[1]
    return ends.reshape(-1, 2)


def shares_to_try(rng, pairs):
    """Random ones, 0 and 1, and those where a piece ends, as a sum of lengths would give them."""
    ends = np.cumsum(pairs[:, 1] - pairs[:, 0])
    return np.concatenate([rng.random(5), [0, 1], ends / ends[-1]])


def both_ranks(pairs, shares):
    intervals = Intervals(pairs, LEVELS)
    return intervals.lowest_rank(shares, 0), intervals.highest_rank(shares, 0)


@few
@by_seed
def test_ranks_are_where_the_share_begins_and_ends(seed):
    rng = generator(seed)
    pairs = random_pairs(rng)
    intervals, shares = Intervals(pairs, LEVELS), shares_to_try(rng, pairs)
    low, high = both_ranks(pairs, shares)
    assert (low >= 0).all()
    assert (low <= high + 1e-15).all()
    assert (high <= 1).all()
    for ranks in (low, high):
        assert intervals.share(ranks, 0) == pytest.approx(shares, abs=1e-12)
    # Just outside, the share is another one.
    below, above = intervals.share(low - 1e-9, 0), intervals.share(high + 1e-9, 0)
    assert (below[low > 0] < shares[low > 0] - 1e-10).all()
    assert (above[high < 1] > shares[high < 1] + 1e-10).all()


@few
@by_seed
def test_shares_by_counting(seed):
    rng = generator(seed)
    given = {name: random_pairs(rng) for name in "cab"}
    intervals, ranks = Intervals(given, LEVELS), rng.random(20)
    for g, name in enumerate("abc"):
        expected = [naive.interval_share(rank, given[name]) for rank in ranks]
        assert intervals.share(ranks, g) == pytest.approx(expected)
        inside = [any(low <= rank < high for low, high in given[name]) for rank in ranks]
        assert intervals.contains(ranks, g).tolist() == inside
        assert intervals.lengths[g] == pytest.approx(sum(high - low for low, high in given[name]))


@few
@by_seed
def test_widened_covers_what_is_near_any_interval_of_any_group(seed):
    rng = generator(seed)
    intervals = Intervals({name: random_pairs(rng) for name in "abc"}, LEVELS)
    margin = rng.choice([0.0, 0.03, 0.2])
    wide = intervals.widened(margin)
    ranks = rng.random(300)
    pairs = np.concatenate(intervals.bounds)
    near = ((ranks[:, None] >= pairs[:, 0] - margin) & (ranks[:, None] < pairs[:, 1] + margin)).any(
        axis=1
    )
    for g in range(3):
        assert np.array_equal(wide.contains(ranks, g), near)
        assert wide.lengths[g] == pytest.approx(np.diff(wide.bounds[g]).sum())
        assert wide.bounds[g].min() >= 0
        assert wide.bounds[g].max() <= 1
        assert (wide.bounds[g][1:, 0] > wide.bounds[g][:-1, 1]).all()
