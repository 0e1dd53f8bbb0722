"""Scores in bins against all scores: what is counted, and which scores end a bin."""

import numpy as np
import pytest

from skfair.groups.score_bins import joined_sketches, sketch_of
from tests.seeds import generator


@pytest.mark.parametrize("in_parts", [False, True])
def test_quantiles_of_many_scores_part_the_weight_evenly(in_parts):
    """Some scores are shared by many rows."""
    rng, n_rows, n = generator(0), 2000, 40
    scores = np.where(rng.random(n_rows) < 0.3, rng.integers(0, 3, n_rows) / 2, rng.random(n_rows))
    weights = rng.uniform(0.1, 2, n_rows)
    if in_parts:
        parts = [slice(k, None, 3) for k in range(3)]
        sketches = [sketch_of(scores[p], weights[p], 400, 400) for p in parts]
        ends, masses = joined_sketches(sketches, n)
    else:
        ends, masses = sketch_of(scores, weights, 50, n)
    assert (np.diff(ends) > 0).all()
    assert ends.size <= n + 2 * 3
    assert ends[-1] == scores.max()
    total = weights.sum()
    assert masses.sum() == pytest.approx(total)
    number = np.searchsorted(ends, scores)
    inside = np.bincount(number, weights, ends.size)
    if not in_parts:
        assert masses == pytest.approx(inside)
    # A score of many rows is alone in its bin; no other bin is heavy.
    spread = [np.ptp(scores[number == k]) if (number == k).any() else 0 for k in range(ends.size)]
    assert max(inside[np.array(spread) > 0]) <= 1.5 * total / n
    for value in (0.0, 0.5, 1.0):
        assert set(scores[number == np.searchsorted(ends, value)]) == {value}
