"""Random graphs for fair spectral clustering.

``make_fair_sbm`` is the modified stochastic block model (m-SBM) on which the fair spectral
clustering papers measure themselves: groups connect as strongly as clusters do, so plain
spectral clustering finds the groups, while the true clusters are perfectly balanced.
``make_random_laplacian`` is RandLaplace, a graph without structure, for timing.

The one idea: an undirected graph is a strictly upper triangular matrix and its mirror image.
Both generators draw that triangle a few hundred rows at a time (no loop over rows, no n x n
array of random numbers), so 10 000 nodes take about a second.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options

from skfair.datasets._packing import GroupedSample, Sample, checks
from skfair.utils.older import align_sparse
from skfair.utils.pieces import NUMBERS
from skfair.utils.validation import check_numbers

_OUTPUT_PARAMS = {
    "sparse_output": ["boolean"],
    "dtype": [Options(type, {np.float32, np.float64})],
    "random_state": ["random_state"],
}


@checks(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "probabilities": ["array-like"],
        "scale": [None, Interval(Real, 0, None, closed="neither")],
        "shuffle": ["boolean"],
        **_OUTPUT_PARAMS,
    },
)
def make_fair_sbm(
    n_samples: int = 5000,
    *,
    n_clusters: int = 50,
    n_groups: int = 5,
    probabilities: Sequence[float] = (1.5, 0.6, 0.8, 0.1),
    scale: float | None = None,
    shuffle: bool = True,
    sparse_output: bool = True,
    dtype: type = np.float64,
    random_state: int | np.random.RandomState | None = None,
) -> Sample:
    r"""Draw a modified stochastic block model whose true clusters are perfectly balanced.

    Every node has a cluster and a group, and each cluster holds the groups in equal
    proportion. Two nodes are joined, independently of all others, with probability

    .. math::

        s \cdot \begin{cases}
            a & \text{same cluster, same group} \\
            b & \text{other cluster, same group} \\
            c & \text{same cluster, other group} \\
            d & \text{other cluster, other group}
        \end{cases}
        \qquad s = \left(\frac{\log n}{n}\right)^{1/10}.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of nodes, at least ``n_clusters * n_groups``.
    n_clusters : int, default=50
        Number of clusters.
    n_groups : int, default=5
        Number of groups.
    probabilities : sequence of 4 floats, default=(1.5, 0.6, 0.8, 0.1)
        The factors (a, b, c, d), none negative. Raising b hides the clusters behind the
        groups; raising c makes them easier to find.
    scale : float or None, default=None
        The factor s. None takes :math:`(\log n / n)^{1/10}` and cuts products above 1 to 1
        (with the default factors this happens below 330 nodes). ``scale=1.0`` makes
        ``probabilities`` plain probabilities; with any number given here, a product above 1
        is an error.
    shuffle : bool, default=True
        Number the nodes in random order; otherwise they are sorted by cluster, then group.
    sparse_output : bool, default=True
        Return a CSR matrix; False returns a dense array.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the entries; float32 needs a third less memory as CSR, half as a dense array.
    random_state : int, RandomState instance or None, default=None
        Seed. The same integer gives the same graph, sparse or dense.

    Returns
    -------
    data : CSR matrix or ndarray of shape (n_samples, n_samples)
        The adjacency matrix: symmetric, 0 or 1, with an empty diagonal. Whether CSR is a scipy
        sparse matrix or a sparse array follows scikit-learn's ``sparse_interface`` configuration.
    target : ndarray of shape (n_samples,)
        The true cluster of each node, from 0.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each node, from 0.

    See Also
    --------
    make_grouped_blobs : Points whose cheapest clusters are the groups.

    Notes
    -----
    Groups have the same size in every cluster when ``n_samples`` is a multiple of
    ``n_clusters * n_groups``. Otherwise the nodes left over are dealt out one by one to the
    groups of the first cluster, then of the second, and so on: at most one cluster ends up
    with groups that differ, by one node.

    The paper gives the exponent 1/10 but not a, b, c, d. With the default factors the groups
    dominate the leading eigenvectors and the clusters can be recovered from about 5000 nodes.
    Time is O(n^2). Memory peaks at three times a sparse result, or 60 MB above a dense one.

    References
    ----------
    Kleindessner, M., Samadi, S., Awasthi, P. and Morgenstern, J. "Guarantees for spectral
    clustering with fairness constraints", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets import make_fair_sbm
    >>> adjacency, labels, groups = make_fair_sbm(
    ...     120, n_clusters=3, n_groups=2, random_state=0
    ... )
    >>> adjacency.shape
    (120, 120)
    >>> np.bincount(groups[labels == 1]).tolist()
    [20, 20]
    """
    edge_probability = _edge_probabilities(probabilities, scale, n_samples)
    n_cells = n_clusters * n_groups
    if n_samples < n_cells:
        raise ValueError(
            f"n_samples={n_samples} is too small: n_clusters={n_clusters} times "
            f"n_groups={n_groups} needs at least {n_cells} nodes, one per cluster and group. "
            "Raise n_samples or ask for fewer clusters or groups."
        )
    rng = check_random_state(random_state)
    # Cells in the order (cluster 0, group 0), (cluster 0, group 1), ...; the first `extra` cells
    # get one node more, which is the rule of the Notes.
    size, extra = divmod(n_samples, n_cells)
    cell = np.repeat(np.arange(n_cells), size + (np.arange(n_cells) < extra))
    if shuffle:
        cell = rng.permutation(cell)
    labels, groups = np.divmod(cell, n_groups)

    def is_edge(uniform: npt.NDArray[np.float64], rows: slice) -> npt.NDArray[np.bool_]:
        columns = slice(rows.start, None)
        other_cluster = labels[rows, None] != labels[None, columns]
        other_group = groups[rows, None] != groups[None, columns]
        # 0: both the same, 1: same group, 2: same cluster, 3: neither, the order of a, b, c, d.
        kind = other_cluster.view(np.int8) + 2 * other_group.view(np.int8)
        return np.asarray(uniform < edge_probability[kind])

    adjacency = _symmetric(n_samples, is_edge, rng, sparse_output, dtype)
    return Sample(adjacency, labels, groups)


@checks(
    {
        "n_samples": [Interval(Integral, 2, None, closed="left")],
        "density": [Interval(Real, 0, 1, closed="right")],
        "group_probability": [Interval(Real, 0, 1, closed="neither")],
        **_OUTPUT_PARAMS,
    },
)
def make_random_laplacian(
    n_samples: int = 5000,
    *,
    density: float = 1.0,
    group_probability: float = 0.3,
    sparse_output: bool = False,
    dtype: type = np.float64,
    random_state: int | np.random.RandomState | None = None,
) -> GroupedSample:
    """Draw a graph with random weights and no structure, with two random groups.

    Every pair of nodes is joined with probability ``density``, with a weight uniform on
    (0, 1]; every node is in group 1 with probability ``group_probability``. There are no
    clusters to find: the graph serves to time the solvers of fair spectral clustering, which
    work on its Laplacian.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of nodes, at least 2.
    density : float, default=1.0
        Share of the pairs that are joined, above 0 and at most 1.
    group_probability : float, default=0.3
        Probability of group 1, between 0 and 1. In a very small sample a group may be empty.
    sparse_output : bool, default=False
        Return a CSR matrix instead of a dense array; sensible for a low density.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the weights; float32 halves the memory of the dense array.
    random_state : int, RandomState instance or None, default=None
        Seed. The same integer gives the same graph, sparse or dense.

    Returns
    -------
    data : ndarray or CSR matrix of shape (n_samples, n_samples)
        The adjacency matrix: symmetric weights with an empty diagonal.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each node, 0 or 1.

    See Also
    --------
    make_fair_sbm : A graph with fair clusters to find.

    Notes
    -----
    This is the RandLaplace set. The paper says: a random symmetric adjacency matrix, and two
    groups drawn with probability 0.3. It names neither the law of the weights nor a density;
    uniform weights on a complete graph are our choice.

    Examples
    --------
    >>> from skfair.datasets.generators_graph import make_random_laplacian
    >>> adjacency, groups = make_random_laplacian(50, random_state=0)
    >>> adjacency.shape
    (50, 50)
    >>> float(abs(adjacency - adjacency.T).max())
    0.0
    """
    rng = check_random_state(random_state)
    groups = (rng.random_sample(n_samples) < group_probability).astype(np.int64)

    def weights(uniform: npt.NDArray[np.float64], rows: slice) -> npt.NDArray[np.float64]:
        # Given that it is below the density, u / density is again uniform: one draw decides
        # both whether the edge is there and what it weighs.
        return np.maximum(1 - uniform / density, 0)

    adjacency = _symmetric(n_samples, weights, rng, sparse_output, dtype)
    return GroupedSample(adjacency, groups)


def _edge_probabilities(
    factors: Sequence[float], scale: float | None, n_samples: int
) -> npt.NDArray[np.float64]:
    """Return the four edge probabilities a, b, c, d after scaling, each in [0, 1]."""
    array = check_numbers(factors, "probabilities")
    if array.shape != (4,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"probabilities={factors!r} is not usable. Pass four non-negative numbers "
            "(a, b, c, d): same cluster and group, same group only, same cluster only, neither."
        )
    if scale is None:
        # log(1) = 0: a single node has no edges anyway.
        return np.asarray(np.minimum(array * (math.log(n_samples) / n_samples) ** 0.1, 1.0))
    scaled = array * scale
    if (scaled > 1).any():
        raise ValueError(
            f"probabilities={factors!r} times scale={scale} is {scaled.max():.4g}, which is "
            "above 1 and no probability. Lower one of them, or pass scale=None."
        )
    return scaled


def _symmetric(
    n: int,
    entries: Callable[[npt.NDArray[np.float64], slice], npt.NDArray[Any]],
    rng: np.random.RandomState,
    sparse_output: bool,
    dtype: type,
) -> Any:
    """Build a symmetric matrix with empty diagonal from uniform numbers, block by block."""
    blocks = _upper_blocks(n, entries, rng)
    if not sparse_output:
        dense: npt.NDArray[Any] = np.zeros((n, n), dtype=dtype)
        for rows, values in blocks:
            dense[rows, rows.start :] = values
            # `values` is zero on and below the diagonal, so adding its mirror image is safe.
            dense[rows.start :, rows] += values.T.astype(dtype)
        return dense
    row_parts: list[npt.NDArray[np.int32]] = []
    column_parts: list[npt.NDArray[np.int32]] = []
    value_parts: list[npt.NDArray[Any]] = []
    for rows, values in blocks:
        i, j = np.nonzero(values)
        row_parts.append((i + rows.start).astype(np.int32))
        column_parts.append((j + rows.start).astype(np.int32))
        value_parts.append(values[i, j].astype(dtype))
    coordinates = (np.concatenate(row_parts), np.concatenate(column_parts))
    upper = sp.csr_array((np.concatenate(value_parts), coordinates), shape=(n, n))
    return align_sparse((upper + upper.T).tocsr())


def _upper_blocks(
    n: int,
    entries: Callable[[npt.NDArray[np.float64], slice], npt.NDArray[Any]],
    rng: np.random.RandomState,
) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    """Yield row slices with their entries right of the diagonal (columns from rows.start)."""
    start = 0
    while start < n:
        stop = min(n, start + max(1, NUMBERS // (n - start)))
        rows = slice(start, stop)
        values = entries(rng.random_sample((stop - start, n - start)), rows)
        yield rows, np.triu(values, k=1)
        start = stop
