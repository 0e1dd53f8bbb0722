"""How much memory a fit takes beside its rows."""

import tracemalloc

import numpy as np

from skfair.classification import ConstrainedERMClassifier


def test_a_fit_holds_no_second_copy_of_the_rows():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(100_000, 50)), rng.integers(3, size=100_000)
    X[:, 0] += groups / 3
    y = X[:, :5].sum(axis=1) + rng.logistic(size=100_000) > 0
    model = ConstrainedERMClassifier(max_disparity=0.05, max_iter=30)
    model.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])  # loads kernels
    tracemalloc.start()
    try:
        model.fit(X, y, sensitive_features=groups)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.train_disparity_ <= 0.05
    assert peak < 0.9 * X.nbytes
