"""The random graphs: fair truth, requested edge probabilities, symmetry, seeds."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binomtest
from sklearn import config_context

from skfair.cluster.spectral import generator as module
from skfair.datasets import make_fair_sbm
from tests.messages import messages
from tests.older import needs_sparse_interface
from tests.seeds import seed_of

SMALL = {"n_samples": 240, "n_clusters": 4, "n_groups": 3}


def cell_counts(labels, groups):
    table = np.zeros((labels.max() + 1, groups.max() + 1), dtype=int)
    np.add.at(table, (labels, groups), 1)
    return table


def test_sbm_truth_is_perfectly_fair():
    _, labels, groups = make_fair_sbm(**SMALL, random_state=seed_of())
    assert labels.dtype == groups.dtype == np.int64
    table = cell_counts(labels, groups)
    assert table.shape == (4, 3)
    assert (table.min(axis=1) / table.max(axis=1) == 1).all()


@pytest.mark.parametrize("n", range(12, 25))
def test_sbm_deals_left_over_nodes_to_one_cluster_after_another(n):
    _, labels, groups = make_fair_sbm(n, n_clusters=4, n_groups=3, random_state=seed_of())
    table = cell_counts(labels, groups)
    assert table.sum() == n
    spread = table.max(axis=1) - table.min(axis=1)
    assert spread.max() <= 1
    assert (spread > 0).sum() <= 1
    assert np.ptp(table.sum(axis=0)) <= 1


@pytest.mark.parametrize("scale", [None, 0.5])
def test_sbm_edge_probabilities_of_the_four_kinds_of_pairs(scale):
    n, factors = 900, np.array([1.4, 0.6, 0.8, 0.1])
    adjacency, labels, groups = make_fair_sbm(
        n, n_clusters=3, n_groups=2, probabilities=factors, scale=scale, random_state=seed_of()
    )
    expected = factors * (scale or (np.log(n) / n) ** 0.1)
    i, j = np.triu_indices(n, k=1)
    same_cluster, same_group = labels[i] == labels[j], groups[i] == groups[j]
    edge = adjacency.toarray()[i, j]
    kinds = [
        same_cluster & same_group,
        ~same_cluster & same_group,
        same_cluster & ~same_group,
        ~same_cluster & ~same_group,
    ]
    for kind, p in zip(kinds, expected, strict=True):
        assert binomtest(edge[kind].sum().astype(int), kind.sum(), p).pvalue > 1e-7


def test_sbm_default_probabilities_are_cut_at_one_in_small_graphs():
    adjacency, labels, groups = make_fair_sbm(60, n_clusters=2, n_groups=2, random_state=seed_of())
    inside = (labels[:, None] == labels) & (groups[:, None] == groups)
    np.fill_diagonal(inside, False)
    assert (adjacency.toarray()[inside] == 1).all()


def test_sbm_shuffle():
    _, labels, groups = make_fair_sbm(**SMALL, shuffle=False, random_state=seed_of())
    assert (np.diff(labels * 3 + groups) >= 0).all()
    _, labels, _ = make_fair_sbm(**SMALL, random_state=seed_of())
    assert (np.diff(labels) < 0).any()


def test_sbm_of_one_node():
    adjacency, labels, groups = make_fair_sbm(1, n_clusters=1, n_groups=1)
    assert adjacency.shape == (1, 1)
    assert adjacency.nnz == 0
    assert labels.tolist() == groups.tolist() == [0]


@pytest.mark.parametrize("block", [1, 700, 100_000])
def test_dense_and_sparse_and_both_types_are_one_graph(monkeypatch, block):
    monkeypatch.setattr(module, "NUMBERS", block)
    given = {"n_clusters": 4, "random_state": seed_of()}
    results = [
        make_fair_sbm(200, sparse_output=sparse, dtype=dtype, **given)[0]
        for sparse in (True, False)
        for dtype in (np.float64, np.float32)
    ]
    assert [r.dtype for r in results] == [np.float64, np.float32] * 2
    assert [sp.issparse(r) for r in results] == [True, True, False, False]
    reference = results[2]
    for result in results:
        dense = result.toarray() if sp.issparse(result) else result
        np.testing.assert_array_equal(dense, reference)
    np.testing.assert_array_equal(reference, reference.T)
    assert not reference.diagonal().any()
    assert np.unique(reference).tolist() == [0, 1]


@needs_sparse_interface
def test_sparse_interface_of_scikit_learn_is_followed():
    for interface, kind in (("spmatrix", sp.csr_matrix), ("sparray", sp.csr_array)):
        with config_context(sparse_interface=interface):
            adjacency, *_ = make_fair_sbm(**SMALL, random_state=seed_of())
        assert isinstance(adjacency, kind)


def test_ten_thousand_nodes_are_affordable():
    # Ten thousand nodes, sparse on purpose: the draw is what costs, 5e7 random numbers.
    given = {"scale": 0.01, "dtype": np.float32, "random_state": seed_of()}
    adjacency, labels, _ = make_fair_sbm(10_000, **given)
    assert adjacency.shape == (10_000, 10_000)
    assert adjacency.dtype == np.float32
    assert np.bincount(labels).tolist() == [200] * 50


def graph(n=240, **options):
    return make_fair_sbm(n, n_clusters=4, n_groups=3, **options)


def factors(*given):
    return graph(probabilities=given)


FACTORS = "Pass four non-negative numbers"
test_wrong_arguments_are_named = messages(
    (ValueError, "'scale' parameter of make_fair_sbm", lambda: graph(scale=0.0)),
    (ValueError, "'n_groups' parameter", lambda: make_fair_sbm(400, n_groups=0)),
    (ValueError, "'dtype' parameter of make_fair_sbm", lambda: graph(dtype=int)),
    (ValueError, FACTORS, lambda: factors(1, 2, 3)),
    (ValueError, FACTORS, lambda: factors(1, 0.5, 0.5, -0.1)),
    (ValueError, FACTORS, lambda: factors(1, np.nan, 0, 0)),
    (ValueError, FACTORS, lambda: factors([1, 1], [0, 0])),
    (ValueError, r"times scale=1\.0 is 1\.5, which is above 1", lambda: graph(scale=1.0)),
    (ValueError, "n_samples=11 is too small: .* at least 12 nodes", lambda: graph(11)),
)
