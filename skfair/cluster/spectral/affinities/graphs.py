"""Graphs: weights of edges between rows, mostly sparse, found here or given by the user.

They have no weights for new rows, so a fit with them cannot predict.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Annotated

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from sklearn.utils._param_validation import Interval

from skfair._typing import Rows
from skfair.cluster.spectral.affinities.base import AFFINITIES, Affinity
from skfair.cluster.spectral.affinities.checks import check_dense, check_sparse, check_square
from skfair.cluster.spectral.weights import DenseWeights, SparseWeights

# A sparse matrix with more than this share of entries is multiplied faster as a dense one, if that
# takes at most _MAX_DENSIFIED bytes. As sparse ones, matrices of 1,500 and 3,000 rows take 1.1
# times as long with 7% of the entries, 1.5 times with 13% and 2.3 times with 39%.
_DENSE_ENOUGH, _MAX_DENSIFIED = 0.03, 2**30


@AFFINITIES.register("nearest_neighbors")
@dataclass(frozen=True, repr=False)
class NeighborGraph(Affinity):
    """Graph that links each row to its nearest rows.

    A link that exists in only one direction has half the weight.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of neighbours of each row, including the row itself.
    n_jobs : int, default=None
        Number of parallel jobs of the search for neighbours.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the weights and of their products.

    See Also
    --------
    Kernel : Weighs all pairs of rows.
    Landmark : Approximates weights by a few rows.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.cluster.affinities import NeighborGraph
    >>> FairSpectralClustering(3, affinity=NeighborGraph(20)).affinity
    NeighborGraph(20)
    """

    weighs_new_rows = False

    n_neighbors: Annotated[int, Interval(Integral, 1, None, closed="left")] = 10
    n_jobs: int | None = None

    def weigh(self, X: Rows, *, dtype: DTypeLike, rng: np.random.RandomState) -> SparseWeights:
        graph = kneighbors_graph(X, self.n_neighbors, include_self=True, n_jobs=self.n_jobs)
        return _symmetrised(graph, dtype)


def _symmetrised(graph: sparse.csr_matrix, dtype: DTypeLike) -> SparseWeights:
    """Return the mean of a graph of neighbours and its transpose, as scikit-learn does."""
    edges = sparse.csr_array(graph)
    mean = sparse.csr_array(0.5 * (edges + edges.T))
    return SparseWeights(sparse.csr_array(mean.astype(dtype)))


@AFFINITIES.register("precomputed")
@AFFINITIES.register("precomputed_nearest_neighbors")
@dataclass(frozen=True, repr=False)
class Precomputed(Affinity):
    """Precomputed matrix of weights, dense or sparse, or of distances, which is passed as X.

    Parameters
    ----------
    n_neighbors : int, default=None
        If given, X must be a sparse graph of distances, and each row is linked to this number of
        its neighbours, as by :class:`NeighborGraph`. If None, X is the matrix of weights.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the weights and of their products.

    See Also
    --------
    NeighborGraph : Computes the weights of neighbours.
    Kernel : Computes the weights of all pairs.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.cluster.affinities import Precomputed
    >>> FairSpectralClustering(3, affinity=Precomputed(dtype="float64")).affinity
    Precomputed(dtype='float64')
    """

    is_pairwise = True
    weighs_new_rows = False

    n_neighbors: Annotated[int, Interval(Integral, 1, None, closed="left")] | None = None

    def weigh(
        self, X: Rows, *, dtype: DTypeLike, rng: np.random.RandomState
    ) -> DenseWeights | SparseWeights:
        """Check the weights and bring them into the form that is multiplied fastest."""
        if self.n_neighbors is not None:
            check_square(X, "precomputed_nearest_neighbors")
            search = NearestNeighbors(n_neighbors=self.n_neighbors, metric="precomputed").fit(X)
            return _symmetrised(search.kneighbors_graph(X, mode="connectivity"), dtype)
        check_square(X, "precomputed")
        n, dtype = X.shape[0], np.dtype(dtype)
        if not sparse.issparse(X):
            return DenseWeights(*check_dense(X, dtype))
        weights = sparse.csr_array(X)
        if not weights.has_canonical_format:
            weights = weights.copy()
            weights.sum_duplicates()
        check_sparse(weights, dtype)
        weights = weights.astype(dtype)
        if weights.nnz > _DENSE_ENOUGH * n * n and n * n * dtype.itemsize <= _MAX_DENSIFIED:
            return DenseWeights(weights.toarray())
        return SparseWeights(weights)
