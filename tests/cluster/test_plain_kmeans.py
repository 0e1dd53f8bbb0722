"""Where clusterings start: rows that are spread."""

import numpy as np
import pytest
from sklearn.cluster import kmeans_plusplus

from skfair.cluster.plain_kmeans import spread_rows
from tests.seeds import generator


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_spread_as_in_scikit_learn(weighted):
    rng = generator(0)
    X, weights = rng.normal(size=(300, 3)), np.ones(300)
    if weighted:
        weights = rng.random(300) * (rng.random(300) < 0.5)
    for seed in range(10):
        with np.errstate(invalid="ignore"):  # some BLAS set the flag for finite numbers by chance
            drawn = spread_rows(X, weights, 7, np.random.RandomState(seed))
            theirs = kmeans_plusplus(X, 7, sample_weight=weights, random_state=seed)[1]
        assert drawn.tolist() == theirs.tolist()
    same = np.zeros((5, 2))
    assert set(spread_rows(same, np.ones(5), 3, np.random.RandomState(0))) <= set(range(5))
