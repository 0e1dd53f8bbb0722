"""Small products use one thread, and what was set before comes back."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skfair.classification import ConstrainedERMClassifier, PartialParityClassifier
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.losses import LogLoss
from skfair.ranking import FairRanker
from skfair.solvers.clustering import assignment
from skfair.utils.threads import one_blas_thread


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("the linear algebra library has one thread")
        yield


def test_one_thread_inside_and_as_many_as_before_outside(two_threads):
    assert one_blas_thread(threads)() == {1}
    assert threads() == {2}
    with pytest.raises(ZeroDivisionError):
        one_blas_thread(lambda: 1 / 0)()
    assert threads() == {2}


@pytest.mark.parametrize("kind", [FairKMeans, ParetoFairKMeans])
def test_clustering_is_done_on_one_thread(kind, two_threads, monkeypatch):
    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(200, 2)), rng.choice(["f", "m"], 200)
    seen, original = [], assignment.maximise_dual

    def watched(*args, **kwargs):
        seen.append(threads())
        return original(*args, **kwargs)

    monkeypatch.setattr(assignment, "maximise_dual", watched)
    kind(3, random_state=0).fit(X, sensitive_features=sex)
    assert seen
    assert all(found == {1} for found in seen)
    assert threads() == {2}


@pytest.mark.parametrize(
    "model", [ConstrainedERMClassifier(), PartialParityClassifier(max_disparity=0.3), FairRanker()]
)
def test_limits_are_enforced_on_one_thread(model, two_threads):
    seen = []

    class Watched(LogLoss):
        def parts(self, *args, **kwargs):
            seen.append(threads())
            return super().parts(*args, **kwargs)

    rng = np.random.default_rng(0)
    X, sex = rng.normal(size=(300, 2)), rng.choice(["f", "m"], 300)
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    model.set_params(loss=Watched()).fit(X, y, sensitive_features=sex)
    assert seen
    assert all(found == {1} for found in seen)
    assert threads() == {2}
