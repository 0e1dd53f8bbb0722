"""The cost of a clustering of a graph, which ``skfair.metrics`` offers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, gen_batches

from skfair._typing import ColumnLike, FloatArray, IntArray
from skfair.metrics.clusters import canonical
from skfair.utils.dask_collections import is_lazy
from skfair.utils.pieces import NUMBERS
from skfair.utils.validation import check_clusters


def normalized_cut(affinity: Any, labels: ColumnLike) -> float:
    r"""Compute the normalised cut of a clustering of a graph.

    For each cluster, the weight of the edges that leave it is divided by the sum of the degrees of
    its nodes. The cut is the sum over the clusters:

    .. math:: \sum_k \frac{\sum_{i \in C_k, j \notin C_k} w_{ij}}{\sum_{i \in C_k} d_i},
        \qquad d_i = \sum_j w_{ij}

    Parameters
    ----------
    affinity : {array-like, sparse matrix} of shape (n_samples, n_samples)
        Symmetric matrix of the weights of the edges, which must be at least 0. The diagonal counts
        in the degrees, as it does in the normalised Laplacian.
    labels : array-like of shape (n_samples,)
        Cluster of each node. Any labels are accepted.

    Returns
    -------
    cut : float
        The cut, between 0 and the number of clusters (smaller is better).

    See Also
    --------
    kmeans_cost : The cost of k-means.
    price_of_fairness : Compares the cut with that of an unconstrained clustering.

    Notes
    -----
    O(n^2), or O(nnz) for a sparse matrix. A dense matrix is read in blocks of rows. A cluster
    without edges (isolated nodes only) contributes 0, because no edge of it is cut. This is the
    limit for vanishing weights on the diagonal, and it agrees with the normalised Laplacian of
    SciPy.

    Examples
    --------
    >>> from skfair.metrics import normalized_cut
    >>> path = [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]]
    >>> round(normalized_cut(path, [0, 0, 1, 1]), 3)
    0.667
    """
    if is_lazy(affinity, labels):
        raise TypeError(
            "normalized_cut needs the affinities of all pairs of rows and does not read Dask "
            "collections. Pass the affinities of a sample, after compute()."
        )
    affinity = check_array(affinity, accept_sparse="csr", dtype="numeric", input_name="affinity")
    if affinity.dtype.kind not in "biuf":
        raise ValueError(f"affinity must hold numbers, got the dtype {affinity.dtype}.")
    n_nodes, n_columns = affinity.shape
    if n_nodes != n_columns:
        raise ValueError(
            f"affinity must be a square matrix of the weights between rows, got shape "
            f"{affinity.shape}. To measure clusters of data X, pass a graph of them, for example "
            "sklearn.metrics.pairwise.rbf_kernel(X)."
        )
    codes, n_clusters = check_clusters(labels, None, n_nodes)
    if sparse.issparse(affinity):
        affinity = canonical(affinity)
    lowest = float(affinity.min())
    if lowest < 0:
        raise ValueError(
            f"affinity has negative weights (smallest: {lowest:g}). Pass similarities, at least 0; "
            "distances d turn into similarities with exp(-d), for example."
        )
    measure = _sparse_cut if sparse.issparse(affinity) else _dense_cut
    cut, degree, asymmetry = measure(affinity, codes)
    if asymmetry > _symmetry_tolerance(affinity):
        raise ValueError(
            f"affinity is not symmetric: an entry and its mirror image differ by {asymmetry:g}. "
            "Pass (affinity + affinity.T) / 2, for example for a graph of nearest neighbours."
        )
    cuts = np.bincount(codes, weights=cut, minlength=n_clusters)
    volumes = np.bincount(codes, weights=degree, minlength=n_clusters)
    return float((cuts / np.where(volumes > 0, volumes, 1.0)).sum())


def _dense_cut(affinity: NDArray[Any], codes: IntArray) -> tuple[FloatArray, FloatArray, float]:
    """Return the cut weight and the degree of each node, and the largest asymmetry.

    The degree is the weight of all edges of a node, and the cut weight the weight of its edges to
    other clusters. The asymmetry is the largest difference of an entry and its mirror image.
    """
    n_nodes = len(affinity)
    cut, degree = np.empty(n_nodes), np.empty(n_nodes)
    asymmetry = 0.0
    for rows in gen_batches(n_nodes, max(1, NUMBERS // n_nodes)):
        block = affinity[rows].astype(np.float64)  # a copy, multiplied in place below
        degree[rows] = block.sum(axis=1)
        asymmetry = max(asymmetry, float(np.abs(block - affinity[:, rows].T).max()))
        block *= codes[rows, None] != codes
        cut[rows] = block.sum(axis=1)
    return cut, degree, asymmetry


def _sparse_cut(affinity: Any, codes: IntArray) -> tuple[FloatArray, FloatArray, float]:
    """Do the same as ``_dense_cut`` for a CSR matrix."""
    if affinity.dtype.kind != "f":
        affinity = affinity.astype(np.float64)  # differences of unsigned integers wrap around
    n_nodes = affinity.shape[0]
    asymmetry = float(abs(affinity - affinity.T).max())
    rows = np.repeat(np.arange(n_nodes), np.diff(affinity.indptr))
    outside = affinity.data * (codes[rows] != codes[affinity.indices])
    cut, degree = (
        np.bincount(rows, weights=values, minlength=n_nodes).astype(np.float64)
        for values in (outside, affinity.data)
    )
    return cut, degree, asymmetry


def _symmetry_tolerance(affinity: Any) -> float:
    """Return the largest asymmetry that is taken for rounding error.

    It is a share of the largest weight: 100 rounding errors of the matrix's own dtype, and 1e-10 at
    least.
    """
    precision = np.finfo(affinity.dtype).eps if affinity.dtype.kind == "f" else 0.0
    return float(max(1e-10, 100 * precision)) * float(affinity.max())
