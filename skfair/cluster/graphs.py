"""Graphs of other libraries, read as matrices of weights."""

from __future__ import annotations

import sys
from typing import Any

from scipy import sparse


def adjacency(X: Any, *, is_pairwise: bool) -> Any:
    """Return the weights of the edges of a networkx or igraph graph; anything else as it is.

    Rows are in the order of the nodes, and edges without an attribute "weight" count 1. The
    libraries are not imported: whose graph this is must have been imported already.

    Examples
    --------
    >>> from skfair.cluster.graphs import adjacency
    >>> adjacency([[0, 1], [1, 0]], is_pairwise=True)
    [[0, 1], [1, 0]]
    """
    networkx, igraph = sys.modules.get("networkx"), sys.modules.get("igraph")
    if networkx is not None and isinstance(X, networkx.Graph):
        weights = networkx.to_scipy_sparse_array(X, dtype=float, format="csr")
        is_directed = X.is_directed()
    elif igraph is not None and isinstance(X, igraph.Graph):
        of_edges = "weight" if X.is_weighted() else None
        weights = sparse.csr_array(X.get_adjacency_sparse(of_edges), dtype=float)
        is_directed = X.is_directed()
    else:
        return X
    if not is_pairwise:
        raise ValueError("X is a graph, not rows with features. Use affinity='precomputed'.")
    if is_directed:
        raise ValueError(
            "X is a directed graph; the weights between rows must be symmetric. Pass "
            "X.to_undirected() (networkx) or X.as_undirected() (igraph)."
        )
    return weights
