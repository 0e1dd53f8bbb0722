"""Sparse points against the same points as dense rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans

from skfair.cluster import FairKMeans
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.sparse_points import SparsePoints
from skfair.groups.encoding import encode_groups
from tests.seeds import generator


def rows(n=200, d=7, seed=0, dtype=np.float64, scale=1.0):
    rng = generator(seed)
    X = np.where(rng.random((n, d)) < 0.3, rng.normal(2, 1, (n, d)), 0.0) * scale
    return X.astype(dtype), (X[:, 0] + rng.normal(size=n) * scale > scale).astype(int)


def texts(n=3000, d=3000, n_topics=4, seed=0):
    """Word counts of made texts, a few of many words each."""
    rng = generator(seed)
    topic = rng.integers(0, n_topics, n)
    words = np.minimum(rng.geometric(0.01, (n, 30)) + topic[:, None] * (d // n_topics), d) - 1
    numbers = np.repeat(np.arange(n, dtype=np.int32), 30), words.ravel().astype(np.int32)
    X = sparse.csr_array((np.ones(n * 30), numbers), (n, d))
    return X, (rng.random(n) < np.where(topic % 2, 0.3, 0.6)).astype(int)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float64, scale) for scale in (1.0, 1e-150, 1e150)]
    + [(np.float32, scale) for scale in (1.0, 1e-15, 1e15)],
)
def test_distances_sums_and_units_are_those_of_dense_rows(dtype, scale):
    X, sex = rows(dtype=dtype, scale=scale)
    rng = generator(1)
    weights, labels = rng.uniform(0, 3, len(X)), rng.integers(0, 4, len(X))
    weights[:20] = 0
    arguments = encode_groups(sex), Constraints.none(2), 5, weights
    dense = RepresentationProblem(X, *arguments)
    thin = SparsePoints(sparse.csr_array(X), *arguments)
    assert thin.units.mean == pytest.approx(dense.units.mean, rel=1e-6)
    assert thin.units.scale == pytest.approx(dense.units.scale, rel=1e-6)
    assert thin.scaled(slice(3, 9)) == pytest.approx(dense.scaled(slice(3, 9)), abs=1e-5)
    assert thin.norms == pytest.approx(dense.norms, abs=1e-5)
    centers = rng.normal(size=(5, X.shape[1]))
    for some in (slice(0, 200), slice(10, 30)):
        expected = dense.distances(centers).costs(some)
        assert thin.distances(centers).costs(some) == pytest.approx(expected, abs=1e-4)
    for mine, theirs in zip(thin.sums(labels), dense.sums(labels), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-5)
    part = np.array([3, 77, 150, 151, 152])
    few, many = thin.subset(part).distances(centers), thin.distances(centers)
    assert few.costs(slice(0, 5)) == pytest.approx(many.costs(slice(0, 200))[part])


@pytest.mark.filterwarnings("ignore:One of 2 clusters holds")  # equal rows have no second cluster
def test_equal_rows_have_no_spread_to_divide_by():
    X = sparse.csr_array(np.tile([0.0, 3.0, 0.0, 1e5], (80, 1)))
    model = FairKMeans(2, random_state=0).fit(X, sensitive_features=np.arange(80) % 2)
    assert model.inertia_ <= 1e-4  # of squared lengths that sum to 4e11
    assert model.cluster_centers_ == pytest.approx(np.tile([0.0, 3.0, 0.0, 1e5], (2, 1)))
    empty = FairKMeans(2, random_state=0).fit(X * 0, sensitive_features=np.arange(80) % 2)
    assert empty.inertia_ == 0


def test_a_model_reads_dense_and_sparse_rows_alike():
    X, sex = rows(400)
    thin = sparse.csr_array(X)
    for fitted_on in (X, thin):
        model = FairKMeans(4, random_state=0).fit(fitted_on, sensitive_features=sex)
        asked = {"sensitive_features": sex}
        assert np.array_equal(model.predict(thin, **asked), model.predict(X, **asked))
        assert model.transform(thin) == pytest.approx(model.transform(X))
        assert model.score(thin) == pytest.approx(model.score(X))
        assert np.array_equal(
            model.assign(thin[:60], sensitive_features=sex[:60]),
            model.assign(X[:60], sensitive_features=sex[:60]),
        )
        found = model.partial_fit(thin[:100], sensitive_features=sex[:100]).cluster_centers_
        again = FairKMeans(4, random_state=0).fit(fitted_on, sensitive_features=sex)
        again.partial_fit(X[:100], sensitive_features=sex[:100])
        assert found == pytest.approx(again.cluster_centers_)


def test_wide_rows_are_clustered_as_cheaply_as_by_kmeans():
    """The starts see the main directions only; limits are kept on all rows."""
    X, sex = texts()
    model = FairKMeans(4, random_state=0).fit(X, sensitive_features=sex)
    of_sample = min(np.mean(sex), 1 - np.mean(sex)) / max(np.mean(sex), 1 - np.mean(sex))
    assert model.balance_ >= 0.8 * of_sample
    free, plain = (
        np.median([clusterer.set_params(random_state=s).fit(X, **asked).inertia_ for s in range(3)])
        for clusterer, asked in (
            (FairKMeans(4, min_balance=0.0), {"sensitive_features": sex}),
            (KMeans(4, n_init=3), {}),
        )
    )
    assert free <= 1.002 * plain
    assert free <= model.inertia_ <= 1.05 * free
    assert model.cluster_centers_.shape == (4, X.shape[1])
