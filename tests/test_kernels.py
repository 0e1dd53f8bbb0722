"""Each compiled kernel, and its plain Python source, against a naive twin."""

import numpy as np
import pytest

from skfair._kernels import sorted_pairs as kernels
from skfair.metrics.scores import SortedScores
from tests import naive
from tests.python_kernels import compiled_and_python
from tests.seeds import generator

kernel = compiled_and_python(kernels)


@pytest.fixture(params=range(4))
def rows(request):
    """Sorted scores of three groups (one of them tiny), half of the time with ties."""
    rng = generator(request.param)
    codes = np.concatenate(([0, 1, 2], rng.integers(0, 2, 25)))
    scores = rng.normal(size=codes.size)
    scores = scores.round() if request.param % 2 else scores
    weights = rng.uniform(0.1, 2, codes.size)
    pairs = np.array([(0, 1), (1, 0), (0, 2), (2, 2)]).T
    return scores, codes, weights, SortedScores(scores, codes, 3, weights), *pairs


def test_counting_sort(kernel):
    codes = np.array([2, 0, 1, 0, 2, 2])
    order = np.empty(6, np.int64)
    kernel("counting_sort")(codes, np.array([0, 2, 3, 6]), order)
    assert order.tolist() == np.argsort(codes, kind="stable").tolist()


def levels(scores, codes, weights, t):
    return [naive.ccdf(scores, codes, g, weights, t) for g in range(3)]


def test_largest_gaps(kernel, rows):
    scores, codes, weights, s, first, second = rows
    out = np.empty(first.size)
    kernel("largest_gaps")(s.scores, s.rank, s.starts, first, second, out)
    for p, (a, b) in enumerate(zip(first, second, strict=True)):
        table = [levels(scores, codes, weights, t) for t in naive.thresholds(scores)]
        assert out[p] == pytest.approx(max(abs(row[a] - row[b]) for row in table), abs=1e-12)


def test_largest_gaps_inside(kernel, rows):
    scores, codes, weights, s, first, second = rows
    low, high = 0.2, 0.6
    inside = (s.rank >= low) & (s.rank < high)
    top = np.array([False, True, False])
    out = np.empty(first.size)
    kernel("largest_gaps_inside")(s.scores, s.rank, inside, top, s.starts, first, second, out)
    for p, (a, b) in enumerate(zip(first, second, strict=True)):
        largest = 0.0
        for t in naive.thresholds(scores):
            row = levels(scores, codes, weights, t)
            touches = any(low <= row[g] < high or (row[g] == 0 and top[g]) for g in (a, b))
            largest = max(largest, abs(row[a] - row[b])) if touches else largest
        assert out[p] == pytest.approx(largest, abs=1e-12)


def test_areas_between(kernel, rows):
    scores, codes, weights, s, first, second = rows
    out = np.empty(first.size)
    kernel("areas_between")(s.scores, s.rank, s.starts, first, second, out)
    for p, (a, b) in enumerate(zip(first, second, strict=True)):
        if a == b:
            assert out[p] == 0
            continue
        here = (codes == a) | (codes == b)
        expected = naive.wasserstein(scores[here], codes[here], weights[here])
        assert out[p] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("tie_value", [0.5, 1.0])
def test_win_rates(kernel, rows, tie_value):
    scores, codes, weights, s, first, second = rows
    out = np.empty(first.size)
    kernel("win_rates")(s.scores, s.mass, s.starts, first, second, tie_value, out)
    for p, (a, b) in enumerate(zip(first, second, strict=True)):
        expected = naive.win_rate(
            scores[codes == a],
            weights[codes == a],
            scores[codes == b],
            weights[codes == b],
            tie_value,
        )
        assert out[p] == pytest.approx(expected, abs=1e-12)
