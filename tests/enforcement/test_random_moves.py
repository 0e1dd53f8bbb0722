"""Random moves: what they find, and what they never give away."""

import numpy as np
import pytest

from skfair.enforcement.rounds import random_moves


def wander(missed, start, seed=0, most=2000):
    """Move in the plane; return the end and all places that were looked at."""
    rng, seen = np.random.RandomState(seed), []

    def move(place, length):
        seen.append(place + length * rng.standard_normal(2))
        return seen[-1]

    end = random_moves(np.asarray(start, float), missed, move, most=most, longest=0.5)
    return end, seen


def steps_to_a_small_square(place):
    """Whole steps to a square of side .02, as rates of few people would count them."""
    return float(np.ceil(np.maximum(np.abs(place - 0.3) - 0.01, 0).max() * 20))


@pytest.mark.parametrize("seed", range(5))
def test_a_small_region_is_found_though_nothing_has_a_slope(seed):
    end, seen = wander(steps_to_a_small_square, [-1, 2], seed)
    assert steps_to_a_small_square(end) == 0
    np.testing.assert_array_equal(end, seen[-1])  # the first place that misses nothing is the end


@pytest.mark.parametrize("seed", range(5))
def test_no_more_is_missed_than_at_the_start_or_than_anywhere_seen(seed):
    def missed(place):
        return 1 + round(float(np.sin(5 * place[0]) + np.cos(7 * place[1])), 1)

    end, seen = wander(missed, [0, 0], seed, most=300)
    assert len(seen) == 300
    assert missed(end) == min(missed(place) for place in [np.zeros(2), *seen])


def test_nothing_moves_where_nothing_is_missed_or_no_move_is_left():
    for missed, most in ((lambda place: 0.0, 100), (lambda place: 1.0, 0)):
        end, seen = wander(missed, [3, 4], most=most)
        assert not seen
        np.testing.assert_array_equal(end, [3, 4])
