import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skfair.metrics.fronts import hypervolume, nondominated
from tests import naive
from tests.seeds import generator

# Few different values, so that ties and duplicates are common.
coarse = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)
common = settings(deadline=None, max_examples=50)


def split(points):
    array = np.array(points, dtype=float).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@common
@given(coarse)
def test_nondominated_equals_naive_twin(points):
    mask = nondominated(*split(points))
    assert mask.dtype == bool
    assert_array_equal(mask, np.array(naive.nondominated(*split(points)), dtype=bool))


@common
@given(coarse, st.integers(1, 7), st.integers(-1, 5))
def test_hypervolume_equals_naive_twin(points, ref_cost, ref_balance):
    value = hypervolume(*split(points), ref_cost=ref_cost, ref_balance=ref_balance)
    assert value == pytest.approx(naive.hypervolume(*split(points), ref_cost, ref_balance))


@common
@given(coarse, st.integers(3, 7), st.integers(-1, 2), st.integers(-1, 2), st.integers(3, 7))
def test_normalised_hypervolume_equals_naive_twin(
    points, ref_cost, ref_balance, ideal_cost, ideal_balance
):
    box = {
        "ref_cost": ref_cost,
        "ref_balance": ref_balance,
        "ideal_cost": ideal_cost,
        "ideal_balance": ideal_balance,
    }
    value = hypervolume(*split(points), **box)
    assert value == pytest.approx(naive.hypervolume(*split(points), **box))
    assert 0 <= value <= 1


def test_hypervolume_closed_form():
    corners = {"ref_cost": 3.0, "ideal_cost": 1.0, "ideal_balance": 0.5}
    assert hypervolume([], [], ref_cost=1.0) == 0
    assert hypervolume([1.0], [0.5], **corners) == 1
    assert hypervolume([-7.0], [9.0], **corners) == 1  # better than the ideal: clipped
    assert hypervolume([2.0], [0.25], **corners) == 0.25
    assert hypervolume([3.0, 9.0, 1.0], [0.5, 0.5, 0.0], **corners) == 0  # on or beyond the edge
    # A staircase that follows the diagonal of the unit square: 1/2 - 1/(2 m).
    steps = np.arange(1, 100) / 100
    assert hypervolume(steps, steps, ref_cost=1.0) == pytest.approx(0.495)


def test_normalised_hypervolume_never_exceeds_one():
    rng = generator(0)
    for _ in range(200):
        low, high = np.sort(rng.random((2, 2)), axis=0)
        costs = np.append(low[0] + (high[0] - low[0]) * rng.random(5), low[0])
        value = hypervolume(
            costs,
            np.full(6, 2.0),
            ref_cost=high[0],
            ref_balance=low[1],
            ideal_cost=low[0],
            ideal_balance=high[1],
        )
        assert 1 - 1e-12 <= value <= 1


def test_lists_and_integers():
    assert_array_equal(nondominated([3, 1, 2], [3, 1, 0]), [True, True, False])
