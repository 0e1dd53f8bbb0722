"""Steps of ``FairSpectralClustering.fit`` from X to a checked embedding, in the order of its calls.

:func:`adjacency` and :func:`by_node` read graphs of networkx and igraph, :func:`graph_checks`
returns options for the check of X, :func:`check_room` checks the problem before it is solved,
:func:`embed` runs the eigen-solver, and :func:`embedding_attributes` reports.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import ColumnNames, FloatArray
from skfair.cluster.spectral.affinities.base import Affinity
from skfair.cluster.spectral.eigen.base import KEPT, Callback, EigenResult, EigenSolver
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.utils.endings import ENDINGS
from skfair.utils.warn import warn_user


def graph_checks(affinity: Affinity, X: Any, sensitive: ColumnNames | None) -> dict[str, Any]:
    """Return the options of ``read_rows`` for X: rows, or the weights between them."""
    if sensitive is not None and affinity.is_pairwise:
        raise ValueError(
            "A matrix of weights between rows has no columns that could hold "
            f"sensitive={sensitive!r}. Pass sensitive_features to fit."
        )
    return {
        "accept_sparse": ["csr", "csc", "coo"],
        "dtype": [np.float64, np.float32],
        "order": "C",
        "ensure_min_samples": 2,
        # ``check_dense`` finds NaN and infinity in a dense matrix of weights when it adds them up.
        "ensure_all_finite": not (affinity.is_pairwise and isinstance(X, np.ndarray)),
    }


def check_room(problem: GroupCut, graph: Any, n_vectors: int) -> None:
    """Raise if the embedding has more dimensions than the constraints leave.

    Warn of rows without edges, and of a sparse ``graph`` in several parts. ``graph`` are the
    weights, or None if these do not exist one by one.
    """
    is_sparse = bool(sparse.issparse(graph))
    if is_sparse and connected_components(graph)[0] > 1:
        warn_user(
            "The graph of the rows is not connected, so its parts may become clusters whatever the "
            "limits are. Use more neighbours, or another affinity."
        )
    n_alone = problem.n_samples - problem.n_connected
    if n_alone:
        warn_user(
            f"{n_alone} of {problem.n_samples} rows have no edges (degree 0), so the embedding has "
            "no place for them. Connect them, for example with more neighbours, or drop them."
        )
    if n_vectors > problem.n_free:
        raise ValueError(
            f"An embedding of {n_vectors} dimensions is not possible: {problem.n_connected} rows "
            f"with edges minus {problem.basis.shape[1]} group constraints leave {problem.n_free}. "
            "Ask for fewer clusters, or merge groups."
        )


def embed(
    problem: GroupCut,
    n_vectors: int,
    solver: EigenSolver,
    rng: np.random.RandomState,
    callback: Callback,
) -> tuple[FloatArray, EigenResult]:
    """Run the solver; return its vectors (n_samples, n_vectors) in float64, and its result.

    Rounding errors in the constraints are removed. If a solver violates the group constraint by
    more than that, there is a warning, and the vectors are not changed.
    """
    result = solver.solve(problem, n_vectors, rng=rng, callback=callback)
    if result.status == "max_iter":
        warn_user(
            f"{ENDINGS['max_iter']} {solver!r} made {result.n_iter} iterations, and the embedding "
            "is rough. Increase max_iter or tol of the solver.",
            ConvergenceWarning,
        )
    H: NDArray[np.float64] = np.asarray(result.vectors, dtype=np.float64)
    if result.residual > KEPT:
        warn_user(
            f"{solver!r} misses the group constraint: |Q'H| is {result.residual:.2g}, "
            f"{np.sqrt(n_vectors):.2g} at most. Use solver='lanczos', which keeps it.",
            ConvergenceWarning,
        )
    else:
        H = problem.polished(H)
    return H, result


def embedding_attributes(
    problem: GroupCut, vectors: FloatArray, result: EigenResult, dtype: str
) -> dict[str, Any]:
    """Return the fitted attributes about the embedding and the run of the solver."""
    fairness, orthogonality = problem.residuals(vectors)
    return {
        "embedding_": (vectors * problem.scale[:, None]).astype(dtype),
        "fairness_residual_": fairness,
        "orthogonality_residual_": orthogonality,
        "eigenvalues_": result.values,
        "spectral_cost_": float(result.values.size - result.values.sum()),
        "n_iter_": result.n_iter,
        "n_products_": problem.n_products,
        "history_": result.history,
        "status_": result.status,
    }


def adjacency(X: Any, *, is_pairwise: bool) -> tuple[Any, list[Any] | None]:
    """Return the weights of the edges of a networkx or igraph graph, and the names of its nodes.

    Rows are in the order of the nodes, and edges without an attribute "weight" count 1. Anything
    that is not such a graph is returned unchanged, without names. The libraries are not imported
    here, because a user with a graph has imported its library.

    Examples
    --------
    >>> from skfair.cluster.spectral.embedding import adjacency
    >>> adjacency([[0, 1], [1, 0]], is_pairwise=True)
    ([[0, 1], [1, 0]], None)
    """
    networkx, igraph = sys.modules.get("networkx"), sys.modules.get("igraph")
    if networkx is not None and isinstance(X, networkx.Graph):
        weights = networkx.to_scipy_sparse_array(X, dtype=float, format="csr")
        nodes, is_directed = list(X), X.is_directed()
    elif igraph is not None and isinstance(X, igraph.Graph):
        of_edges = "weight" if X.is_weighted() else None
        weights = sparse.csr_array(X.get_adjacency_sparse(of_edges), dtype=float)
        has_names, is_directed = "name" in X.vs.attributes(), X.is_directed()
        nodes = list(X.vs["name"] if has_names else range(X.vcount()))
    else:
        return X, None
    if not is_pairwise:
        raise ValueError("X is a graph, not rows with features. Use affinity='precomputed'.")
    if is_directed:
        raise ValueError(
            "X is a directed graph; the weights between rows must be symmetric. Pass "
            "X.to_undirected() (networkx) or X.as_undirected() (igraph)."
        )
    return weights, nodes


def by_node(groups: Any, nodes: list[Any] | None) -> Any:
    """Return groups with names of nodes in the order of the nodes; raise if names do not match.

    Groups without names, such as arrays and columns that just count their rows, stay as they are.
    """
    import pandas as pd

    if nodes is not None and isinstance(groups, Mapping):
        if not groups.keys() & set(nodes):
            return {name: by_node(column, nodes) for name, column in groups.items()}
        groups = pd.Series(groups)
    if nodes is None or not hasattr(groups, "iloc"):
        return groups
    place = {name: k for k, name in enumerate(groups.index)}
    n_lacking = sum(node not in place for node in nodes)
    if n_lacking == len(nodes) and list(place) == list(range(len(groups))):
        return groups
    if n_lacking or len(place) < len(groups):
        raise ValueError(
            f"The labels of sensitive_features are not the names of the {len(nodes)} nodes: "
            f"{n_lacking} of these have no label, and {len(groups) - len(place)} labels are "
            "repeated. Pass one value for each node, or drop the labels with .to_numpy() if the "
            "values are in the order of the nodes."
        )
    return groups.iloc[[place[node] for node in nodes]]
