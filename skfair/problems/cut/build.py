"""From X and the parameters of :class:`FairSpectralClustering` to an affinity between rows."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import KERNEL_PARAMS
from sklearn.neighbors import NearestNeighbors, kneighbors_graph

from skfair.problems.cut.affinity import (
    Affinity,
    DenseAffinity,
    FactoredAffinity,
    SparseAffinity,
    is_sparse,
)
from skfair.problems.cut.similarity import (
    LandmarkFactor,
    NystroemFactor,
    PairwiseKernel,
    RbfKernel,
    Similarity,
    choose_landmarks,
)

GRAPHS = {"nearest_neighbors", "precomputed", "precomputed_nearest_neighbors"}
PRECOMPUTED = {"precomputed", "precomputed_nearest_neighbors"}
FACTORED = {"nystroem", "landmark"}
AFFINITIES = GRAPHS | FACTORED | set(KERNEL_PARAMS)

# A sparse matrix that is denser than this is multiplied faster as a dense one, if it is not huge.
_DENSE_ENOUGH, _MAX_DENSIFIED = 0.03, 2**30
# A dense Nystroem factor above this size is recomputed block by block instead of kept.
_MAX_KEPT_FACTOR = 2**28
# Weights and their mirror images may differ by this, relative to the largest weight.
_ASYMMETRY = 1e-5


class Built(NamedTuple):
    """An affinity, and what gives the weights of new rows (None for graphs)."""

    affinity: Affinity
    similarity: Similarity | None


def build_affinity(
    X: Any,
    *,
    affinity: Any,
    gamma: float | None,
    degree: float,
    coef0: float,
    kernel_params: dict[str, Any] | None,
    n_neighbors: int,
    n_landmarks: int,
    dtype: str,
    n_jobs: int | None,
    rng: np.random.RandomState,
) -> Built:
    """Build the affinity that the parameters ask for; see :class:`FairSpectralClustering`."""
    n = X.shape[0]
    if affinity in FACTORED:
        return _factored(X, affinity, gamma, n_neighbors, n_landmarks, np.dtype(dtype), rng)
    if affinity == "precomputed":
        return Built(_precomputed(X, np.dtype(dtype)), None)
    if affinity == "nearest_neighbors":
        graph = kneighbors_graph(X, n_neighbors=n_neighbors, include_self=True, n_jobs=n_jobs)
        return Built(SparseAffinity(_symmetrised(graph, dtype)), None)
    if affinity == "precomputed_nearest_neighbors":
        _check_square(X, affinity)
        search = NearestNeighbors(n_neighbors=n_neighbors, n_jobs=n_jobs, metric="precomputed")
        graph = search.fit(X).kneighbors_graph(X, mode="connectivity")
        return Built(SparseAffinity(_symmetrised(graph, dtype)), None)
    if affinity == "rbf" and not is_sparse(X):
        check_memory(n, n * n * np.dtype(dtype).itemsize)
        similarity = RbfKernel(X, 1 / X.shape[1] if gamma is None else gamma, dtype)
        return Built(DenseAffinity(similarity.matrix(), is_psd=True), similarity)
    # scikit-learn computes kernels in the precision of X, which is then converted.
    check_memory(n, n * n * (np.dtype(X.dtype).itemsize + np.dtype(dtype).itemsize))
    params = dict(kernel_params or {})
    if not callable(affinity):
        params.update(gamma=gamma, degree=degree, coef0=coef0)
    kernel = PairwiseKernel(X, affinity, params, dtype)
    return Built(DenseAffinity(_checked_weights(kernel.matrix())), kernel)


def check_memory(n: int, n_bytes: int) -> None:
    """Raise before an n x n array is allocated that this machine cannot hold."""
    limit = _memory_limit()
    if limit is not None and n_bytes > limit:
        raise MemoryError(
            f"A dense affinity of {n} x {n} needs {n_bytes:.3g} bytes, and this machine has "
            f"{limit:.3g}. Use affinity='landmark' or 'nystroem', which never form it, or "
            "'nearest_neighbors', which is sparse."
        )


def _memory_limit() -> int | None:
    """Bytes of memory of the machine or of the container, whichever is less; None if unknown."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits, default=None)


def _factored(
    X: Any,
    affinity: str,
    gamma: float | None,
    n_neighbors: int,
    n_landmarks: int,
    dtype: np.dtype[Any],
    rng: np.random.RandomState,
) -> Built:
    """Build a landmark or a Nystroem factor."""
    if is_sparse(X):
        raise TypeError(
            f"affinity={affinity!r} needs a dense X, got a sparse matrix. Use X.toarray(), reduce "
            "it with TruncatedSVD, or choose affinity='nearest_neighbors'."
        )
    landmarks = choose_landmarks(X, n_landmarks, rng)
    n = X.shape[0]
    if affinity == "landmark":
        sparse_factor = LandmarkFactor(landmarks, n_neighbors, gamma, dtype)
        Z = sparse_factor.fit(X)
        return Built(
            FactoredAffinity(lambda rows: Z[rows], n, sparse_factor.rank, dtype), sparse_factor
        )
    factor = NystroemFactor(landmarks, 1 / X.shape[1] if gamma is None else gamma, dtype)
    if n * factor.rank * dtype.itemsize <= _MAX_KEPT_FACTOR:
        whole = factor(X)
        return Built(FactoredAffinity(lambda rows: whole[rows], n, factor.rank, dtype), factor)
    return Built(FactoredAffinity(lambda rows: factor(X[rows]), n, factor.rank, dtype), factor)


def _symmetrised(graph: Any, dtype: Any) -> sparse.csr_array:
    """Return the mean of a graph of neighbours and its mirror image, as scikit-learn does."""
    graph = sparse.csr_array(graph)
    return sparse.csr_array(0.5 * (graph + graph.T)).astype(dtype)


def _check_square(X: Any, affinity: str) -> None:
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"affinity={affinity!r} needs a square matrix of the weights between rows, got shape "
            f"{X.shape}. Pass such a matrix, or another affinity for data of rows and columns."
        )


def _precomputed(X: Any, dtype: np.dtype[Any]) -> Affinity:
    """Check given weights and bring them into the form that is multiplied fastest."""
    _check_square(X, "precomputed")
    if not is_sparse(X):
        return DenseAffinity(_checked_weights(X).astype(dtype, copy=False))
    weights = sparse.csr_array(X)
    if not weights.has_canonical_format:
        weights = weights.copy()
        weights.sum_duplicates()
    if weights.nnz and weights.data.min() < 0:
        raise _negative(float(weights.data.min()))
    difference = abs(weights - weights.T)
    _check_symmetry(float(difference.max()) if difference.nnz else 0.0, _largest(weights.data))
    n = X.shape[0]
    if weights.nnz > _DENSE_ENOUGH * n * n and n * n * dtype.itemsize <= _MAX_DENSIFIED:
        return DenseAffinity(weights.astype(dtype).toarray())
    return SparseAffinity(weights.astype(dtype))


def _checked_weights(weights: NDArray[Any]) -> NDArray[Any]:
    """Check a dense matrix in blocks: no second matrix of its size is needed."""
    lowest, asymmetry = 0.0, 0.0
    for start in range(0, weights.shape[0], 512):
        rows = weights[start : start + 512]
        if not np.isfinite(rows).all():
            raise ValueError("The affinity has entries that are NaN or infinite.")
        lowest = min(lowest, float(rows.min()))
        difference = np.abs(rows[:, start:] - weights[start:, start : start + 512].T)
        asymmetry = max(asymmetry, float(difference.max()))
    if lowest < 0:
        raise _negative(lowest)
    _check_symmetry(asymmetry, float(weights.max()))
    return weights


def _largest(values: NDArray[Any]) -> float:
    return float(values.max()) if values.size else 0.0


def _negative(lowest: float) -> ValueError:
    return ValueError(
        f"The affinity has negative weights (smallest: {lowest:g}). Weights are similarities, at "
        "least 0; distances d turn into similarities with exp(-gamma * d ** 2), for example."
    )


def _check_symmetry(asymmetry: float, largest: float) -> None:
    if asymmetry > _ASYMMETRY * largest:
        raise ValueError(
            f"The affinity is not symmetric: an entry and its mirror image differ by {asymmetry:g}."
            " Pass (W + W.T) / 2."
        )
