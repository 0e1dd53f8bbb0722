"""The contract of the affinities, checked over the registry."""

from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Annotated

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import kneighbors_graph, sort_graph_by_row_values
from sklearn.utils._param_validation import Interval

from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral.affinities.base import AFFINITIES, Affinity
from skfair.cluster.spectral.affinities.choice import affinity_kind, make_affinity
from skfair.cluster.spectral.affinities.kernels import Kernel
from skfair.cluster.spectral.weights import DenseWeights
from skfair.solvers.parameters import check_parameters
from tests.seeds import generator


def inverse_distance(a, b):
    return 1 / (1 + np.abs(a - b).sum())


CHOICES = [*AFFINITIES, "laplacian", "cosine", inverse_distance]
every_choice = pytest.mark.parametrize("choice", CHOICES, ids=lambda c: getattr(c, "__name__", c))


def rows(n=90):
    """Three blobs in the positive quadrant."""
    rng = generator(0)
    return rng.random((n, 3)) + 2.0 * np.eye(3)[np.arange(n) % 3]


def input_for(affinity, X):
    """X, or a graph of its rows for an affinity that reads graphs."""
    if not affinity.is_pairwise:
        return X
    graph = kneighbors_graph(X, 15, mode="distance")
    both = sparse.csr_array(graph.maximum(graph.T))
    return sort_graph_by_row_values(both, warn_when_not_sorted=False)


def build(affinity, X, *, dtype="float64", seed=0):
    return replace(affinity, dtype=dtype).build(X, rng=np.random.RandomState(seed))


def check(affinity):
    """What a graph, an eigen-solver and a prediction ask of an affinity."""
    X = input_for(affinity, rows())
    weights = build(affinity, X)
    W = weights.dense()
    assert W.shape == (90, 90)
    np.testing.assert_allclose(W, W.T, atol=1e-12)
    assert W.min() >= -1e-12
    np.testing.assert_allclose(weights.degrees, W.sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(weights.diagonal(), W.diagonal(), atol=1e-10)
    columns = generator(1).normal(size=(90, 4))
    np.testing.assert_allclose(weights.times(columns), W @ columns, atol=1e-10)
    assert not weights.is_psd or np.linalg.eigvalsh(W).min() > -1e-8
    assert (weights.new_rows is not None) == affinity.weighs_new_rows
    if weights.new_rows is not None:  # the rows of the fit as new ones, all and one by one
        links = np.asarray(weights.new_rows(X) @ weights.gather(columns))
        np.testing.assert_allclose(links, W @ columns, atol=1e-6)
        alone = np.asarray(weights.new_rows(X[7:8]) @ weights.gather(columns))
        np.testing.assert_allclose(alone, links[7:8], atol=1e-10)
    again = build(affinity, X)
    np.testing.assert_array_equal(again.dense(), W)
    narrow = build(affinity, X, dtype="float32")
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow.dense(), W, atol=1e-3)


@every_choice
def test_affinity_keeps_the_contract(choice):
    check(make_affinity(choice, {}))


@every_choice
def test_sparse_rows_are_read_or_refused(choice):
    affinity = make_affinity(choice, {})
    X = input_for(affinity, rows())
    if callable(choice):  # a function of two dense rows
        return
    if affinity.reads_sparse:
        W = build(affinity, X).dense()
        other = build(affinity, sparse.csr_array(X)).dense()
        np.testing.assert_allclose(other, W, atol=1e-10)
    else:
        with pytest.raises(TypeError, match="affinity.* needs a dense X"):
            build(affinity, sparse.csr_array(X))


@every_choice
def test_parameters_out_of_range_are_refused(choice):
    affinity = make_affinity(choice, {})
    free = {"n_jobs", "coef0", "kernel", "dtype"}  # any number, or looked at later
    for field in {f.name for f in fields(affinity)} - free:
        for value in (-1, np.nan):
            with pytest.raises(ValueError, match=f"{type(affinity).__name__}.*{field} must be"):
                check_parameters(replace(affinity, **{field: value}))


@pytest.mark.filterwarnings("ignore:The graph of the rows is not connected:UserWarning")
@pytest.mark.parametrize("name", list(AFFINITIES))
def test_a_name_is_short_for_an_object(name):
    """The estimator fills the fields that have the names of its parameters."""
    kind = affinity_kind(name)
    parameters = {"gamma": 0.7, "n_neighbors": 6, "n_jobs": 1}
    shared = {field.name for field in fields(kind)} & set(parameters)
    unlinked = {"n_neighbors": None} if name in ("nystroem", "precomputed") else {}
    affinity = kind(**{field: parameters[field] for field in shared} | unlinked)
    X, groups = input_for(affinity, rows()), np.arange(90) // 3 % 2
    by_name, by_object = (
        FairSpectralClustering(3, affinity=choice, random_state=0, **settings).fit(
            X, sensitive_features=groups
        )
        for choice, settings in ((name, parameters), (affinity, {}))
    )
    np.testing.assert_array_equal(by_name.labels_, by_object.labels_)
    np.testing.assert_array_equal(by_name.embedding_, by_object.embedding_)
    assert hasattr(by_object, "predict") == kind.weighs_new_rows


def test_other_names_are_kernels_of_scikit_learn():
    assert affinity_kind("chi2") is Kernel
    X = rows()
    weights = build(make_affinity("polynomial", {"degree": 2, "coef0": 0.5, "gamma": 0.1}), X)
    expected = pairwise_kernels(X, metric="polynomial", degree=2, coef0=0.5, gamma=0.1)
    np.testing.assert_allclose(weights.dense(), expected)
    with pytest.raises(ValueError, match="no affinity 'nope'.*'landmark'"):
        make_affinity("nope", {})


@dataclass(frozen=True)
class Chain(Affinity):
    """A new affinity: links of a row to those that follow it."""

    weighs_new_rows = False
    n_links: Annotated[int, Interval(Integral, 1, None, closed="left")] = 2

    def weigh(self, X, *, dtype, rng):
        steps = np.abs(np.subtract.outer(np.arange(len(X)), np.arange(len(X))))
        return DenseWeights((steps <= self.n_links).astype(dtype))


@dataclass(frozen=True)
class OneWay(Affinity):
    """A bad affinity: its weights are not symmetric."""

    reads_sparse = weighs_new_rows = False

    def weigh(self, X, *, dtype, rng):
        return DenseWeights(np.triu(np.ones((len(X), len(X)), dtype)))


@dataclass(frozen=True)
class Forgetful(Affinity):
    """A bad affinity: it says that it knows new rows, and does not."""

    def weigh(self, X, *, dtype, rng):
        return DenseWeights(np.ones((len(X), len(X)), dtype))


def test_a_new_affinity_is_one_class():
    AFFINITIES.register("chain")(Chain)
    try:
        check(make_affinity("chain", {}))
        model = FairSpectralClustering(2, affinity="chain", random_state=0)
        model.fit(rows(), sensitive_features=np.arange(90) % 2)
        assert model.relative_balance_ >= 0.8
        assert not hasattr(model, "predict")
    finally:
        del AFFINITIES["chain"]


@pytest.mark.parametrize(
    ("affinity", "error", "said"),
    [(OneWay(), ValueError, "not symmetric"), (Forgetful(), AssertionError, None)],
)
def test_a_bad_affinity_is_refused(affinity, error, said):
    with pytest.raises(error, match=said):
        check(affinity)
