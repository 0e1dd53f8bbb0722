"""Scores of pairs: those of a model on rows that are differences, or one by one."""

import numpy as np
import pytest

from skfair.models import LinearScore, MLPScore
from skfair.ranking.pair_score import PairScore
from tests.naive.soft import finite_differences


@pytest.fixture
def rows():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(30, 4)) * [1, 10, 0.1, 1] + 5
    first, second = rng.randint(0, 30, (2, 80))
    return X, first, second


MODELS = {
    "linear": lambda X: LinearScore(X, fit_intercept=False),
    "intercept": LinearScore,
    "network": lambda X: MLPScore(X, (4, 3)),
}
each = pytest.mark.parametrize("model", MODELS)


@each
def test_scores_are_differences_for_all_and_for_some_pairs(rows, model):
    X, first, second = rows
    inner = MODELS[model](X)
    pairs = PairScore(inner, first, second)
    theta = pairs.start(np.random.RandomState(1)) + 0.3
    of_rows, _ = inner.forward(theta)
    assert pairs.n_samples == 80
    assert pairs.forward(theta)[0] == pytest.approx(of_rows[first] - of_rows[second])
    some = np.array([3, 3, 79, 0])
    found, _ = pairs.forward(theta, some)
    assert found == pytest.approx((of_rows[first] - of_rows[second])[some])


@each
@pytest.mark.parametrize("batch", [None, [0, 5, 5, 41]])
def test_pullback_equals_finite_differences(rows, model, batch):
    X, first, second = rows
    pairs = PairScore(MODELS[model](X), first, second)
    chosen = None if batch is None else np.array(batch)
    rng = np.random.RandomState(2)
    theta = pairs.start(rng) + 0.1 * rng.normal(size=pairs.n_parameters)
    scores, tape = pairs.forward(theta, chosen)
    slopes = rng.normal(size=scores.size)
    expected = finite_differences(lambda point: slopes @ pairs.forward(point, chosen)[0], theta)
    assert pairs.pullback(tape, slopes) == pytest.approx(expected, abs=1e-4)
