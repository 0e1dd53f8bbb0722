"""The random graphs: fair truth, requested edge probabilities, symmetry, seeds."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context

from skfair.datasets import generators_graph, make_fair_sbm
from tests.older import needs_sparse_interface

SMALL = {"n_samples": 240, "n_clusters": 4, "n_groups": 3}


def assert_is_undirected(adjacency, n):
    dense = adjacency.toarray() if sp.issparse(adjacency) else adjacency
    assert dense.shape == (n, n)
    np.testing.assert_array_equal(dense, dense.T)
    assert not dense.diagonal().any()


def cell_counts(labels, groups):
    table = np.zeros((labels.max() + 1, groups.max() + 1), dtype=int)
    np.add.at(table, (labels, groups), 1)
    return table


@pytest.mark.parametrize("sparse_output", [True, False])
def test_sbm_is_an_undirected_graph_without_loops(sparse_output):
    adjacency, labels, groups = make_fair_sbm(**SMALL, sparse_output=sparse_output, random_state=0)
    assert sp.issparse(adjacency) is sparse_output
    assert_is_undirected(adjacency, 240)
    values = adjacency.data if sparse_output else np.unique(adjacency)
    assert set(values) <= {0.0, 1.0}
    assert labels.shape == groups.shape == (240,)
    assert labels.dtype == groups.dtype == np.int64


def test_sbm_truth_is_perfectly_fair():
    _, labels, groups = make_fair_sbm(**SMALL, random_state=0)
    table = cell_counts(labels, groups)
    assert table.shape == (4, 3)
    assert (table.min(axis=1) / table.max(axis=1) == 1).all()


@pytest.mark.parametrize("n", range(12, 25))
def test_sbm_deals_left_over_nodes_to_one_cluster_after_another(n):
    _, labels, groups = make_fair_sbm(n, n_clusters=4, n_groups=3, random_state=0)
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
        n, n_clusters=3, n_groups=2, probabilities=factors, scale=scale, random_state=0
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
        assert abs(edge[kind].mean() - p) < 4 * np.sqrt(p * (1 - p) / kind.sum())


def test_sbm_default_probabilities_are_cut_at_one_in_small_graphs():
    adjacency, labels, groups = make_fair_sbm(60, n_clusters=2, n_groups=2, random_state=0)
    inside = (labels[:, None] == labels) & (groups[:, None] == groups)
    np.fill_diagonal(inside, False)
    assert (adjacency.toarray()[inside] == 1).all()


def test_sbm_shuffle():
    _, labels, groups = make_fair_sbm(**SMALL, shuffle=False, random_state=0)
    assert (np.diff(labels * 3 + groups) >= 0).all()
    _, labels, _ = make_fair_sbm(**SMALL, random_state=0)
    assert (np.diff(labels) < 0).any()


def test_sbm_of_one_node():
    adjacency, labels, groups = make_fair_sbm(1, n_clusters=1, n_groups=1)
    assert adjacency.shape == (1, 1)
    assert adjacency.nnz == 0
    assert labels.tolist() == groups.tolist() == [0]


@pytest.mark.parametrize("block", [1, 700, 100_000])
def test_dense_and_sparse_and_both_types_are_one_graph(monkeypatch, block):
    monkeypatch.setattr(generators_graph, "NUMBERS", block)
    results = [
        make_fair_sbm(200, n_clusters=4, sparse_output=sparse, dtype=dtype, random_state=1)[0]
        for sparse in (True, False)
        for dtype in (np.float64, np.float32)
    ]
    assert [r.dtype for r in results] == [np.float64, np.float32] * 2
    reference = results[2]
    for result in results:
        dense = result.toarray() if sp.issparse(result) else result
        assert_is_undirected(result, 200)
        np.testing.assert_array_equal(dense, reference)


@needs_sparse_interface
def test_sparse_interface_of_scikit_learn_is_followed():
    for interface, kind in (("spmatrix", sp.csr_matrix), ("sparray", sp.csr_array)):
        with config_context(sparse_interface=interface):
            adjacency, *_ = make_fair_sbm(**SMALL, random_state=0)
        assert isinstance(adjacency, kind)


@pytest.mark.parametrize(
    "factors", [(1, 2, 3), (1, 0.5, 0.5, -0.1), (1, np.nan, 0, 0), [[1, 1], [0, 0]]]
)
def test_sbm_refuses_what_are_no_four_factors(factors):
    with pytest.raises(ValueError, match="Pass four non-negative numbers"):
        make_fair_sbm(**SMALL, probabilities=factors)


def test_sbm_refuses_explicit_probabilities_above_one():
    with pytest.raises(ValueError, match=r"times scale=1\.0 is 1\.5, which is above 1"):
        make_fair_sbm(**SMALL, scale=1.0)


def test_sbm_refuses_more_cells_than_nodes():
    with pytest.raises(ValueError, match=r"n_samples=11 is too small: .* at least 12 nodes"):
        make_fair_sbm(11, n_clusters=4, n_groups=3)


def test_ten_thousand_nodes_are_affordable():
    # Ten thousand nodes, sparse on purpose: the draw is what costs, 5e7 random numbers.
    adjacency, labels, _ = make_fair_sbm(10_000, scale=0.01, dtype=np.float32, random_state=0)
    assert adjacency.shape == (10_000, 10_000)
    assert adjacency.dtype == np.float32
    assert np.bincount(labels).tolist() == [200] * 50
