"""How much memory a fit takes beside its rows."""

import tracemalloc

from skfair.classification import ConstrainedERMClassifier
from tests.seeds import generator


def test_a_fit_holds_no_second_copy_of_the_rows():
    rng = generator(0)
    X, groups = rng.normal(size=(50_000, 100)), rng.integers(3, size=50_000)
    X[:, 0] += groups / 3
    y = X[:, :5].sum(axis=1) + rng.logistic(size=50_000) > 0
    model = ConstrainedERMClassifier(max_disparity=0.05, max_iter=30)
    model.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])  # loads kernels
    tracemalloc.start()
    try:
        model.fit(X, y, sensitive_features=groups)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.train_disparity_ <= 0.05 + 1e-12
    assert peak < 0.9 * X.nbytes
