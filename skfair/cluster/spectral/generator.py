"""Random graphs for fair spectral clustering.

``make_fair_sbm`` is the modified stochastic block model (m-SBM), the benchmark of papers on fair
spectral clustering. Groups connect as strongly as clusters do, so plain spectral clustering finds
the groups, whereas the true clusters are perfectly balanced.

An undirected graph is a strictly upper triangular matrix and its mirror image. ``_symmetric`` draws
that triangle in strips of several rows, without a loop over single rows or an n x n array of random
numbers, so 10 000 nodes take about a second.
"""

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.datasets._packing import Sample, checks
from skfair.utils.older import align_sparse
from skfair.utils.pieces import NUMBERS
from skfair.utils.validation import check_numbers


@checks(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_groups": [Interval(Integral, 1, None, closed="left")],
        "probabilities": ["array-like"],
        "scale": [None, Interval(Real, 0, None, closed="neither")],
        "shuffle": ["boolean"],
        "sparse_output": ["boolean"],
        "dtype": [Options(type, {np.float32, np.float64})],
        "random_state": ["random_state"],
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
        The factors (a, b, c, d), which must not be negative. A larger b hides the clusters behind
        the groups, and a larger c makes the clusters easier to find.
    scale : float or None, default=None
        The factor s. If None, it is :math:`(\log n / n)^{1/10}`, and products above 1 are set to 1,
        which happens below 336 nodes with the default factors. With ``scale=1.0``,
        ``probabilities`` are used without scaling. If a number is given, products above 1 raise an
        error.
    shuffle : bool, default=True
        If True, the nodes are in random order. If False, they are sorted by cluster and then by
        group.
    sparse_output : bool, default=True
        If True, return a CSR matrix. If False, return a dense array.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the entries. Compared with float64, float32 needs a third less memory for a CSR
        matrix and half the memory for a dense array.
    random_state : int, RandomState instance or None, default=None
        Seed. The same integer gives the same graph, sparse or dense.

    Returns
    -------
    data : CSR matrix or ndarray of shape (n_samples, n_samples)
        The adjacency matrix, which is symmetric, has entries 0 and 1, and has an empty diagonal.
        The configuration ``sparse_interface`` of scikit-learn determines whether CSR is a SciPy
        sparse matrix or a sparse array.
    target : ndarray of shape (n_samples,)
        The true cluster of each node, an integer from 0.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each node, an integer from 0.

    See Also
    --------
    make_grouped_blobs : Generate points whose cheapest clusters are the groups.

    Notes
    -----
    Groups have the same size in every cluster if ``n_samples`` is a multiple of ``n_clusters *
    n_groups``. Otherwise, the remaining nodes are assigned one by one to the groups of the first
    cluster, then of the second, and so on. At most one cluster then has groups of different sizes,
    which differ by one node.

    The paper states the exponent 1/10, but not a, b, c and d. With the default factors, the groups
    dominate the leading eigenvectors, and the clusters can be recovered from about 5000 nodes. The
    time is O(n^2). Peak memory is three times the size of a sparse result, or 60 MB more than a
    dense one.

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
    # A cell is a group within a cluster. Cells are in the order (cluster 0, group 0), (cluster 0,
    # group 1), ... The first `extra` cells get one more node, which is the rule of the Notes.
    size, extra = divmod(n_samples, n_cells)
    cell = np.repeat(np.arange(n_cells), size + (np.arange(n_cells) < extra))
    if shuffle:
        cell = rng.permutation(cell)
    labels, groups = np.divmod(cell, n_groups)

    def is_edge(uniform: FloatArray, rows: slice) -> BoolArray:
        """Return which entries of a strip are edges; its columns begin with its first row."""
        columns = slice(rows.start, None)
        other_cluster = labels[rows, None] != labels[None, columns]
        other_group = groups[rows, None] != groups[None, columns]
        # ``kind`` is the place in (a, b, c, d). 0: same cluster and group, 1: same group only, 2:
        # same cluster only, 3: neither.
        kind = other_cluster.view(np.int8) + 2 * other_group.view(np.int8)
        return np.asarray(uniform < edge_probability[kind])

    adjacency = _symmetric(is_edge, n_samples, rng, sparse_output, dtype)
    return Sample(adjacency, labels, groups)


def _edge_probabilities(
    factors: Sequence[float], scale: float | None, n_samples: int
) -> FloatArray:
    """Return the four edge probabilities a, b, c, d after scaling, each in [0, 1]."""
    array = check_numbers(factors, "probabilities")
    if array.shape != (4,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"probabilities={factors!r} is not usable. Pass four non-negative numbers "
            "(a, b, c, d): same cluster and group, same group only, same cluster only, neither."
        )
    if scale is None:
        # With a single node log(n) is 0, and so are the probabilities. It has no edges anyway.
        return np.asarray(np.minimum(array * (math.log(n_samples) / n_samples) ** 0.1, 1.0))
    scaled = array * scale
    if (scaled > 1).any():
        raise ValueError(
            f"probabilities={factors!r} times scale={scale} is {scaled.max():.4g}, which is "
            "above 1 and no probability. Lower one of them, or pass scale=None."
        )
    return scaled


def _symmetric(
    is_edge: Callable[[FloatArray, slice], BoolArray],
    n: int,
    rng: np.random.RandomState,
    sparse_output: bool,
    dtype: type,
) -> Any:
    """Return a symmetric 0/1 matrix with empty diagonal, drawn in strips of several rows.

    ``is_edge(uniform, rows)`` returns whether the entries ``[rows, rows.start:]`` are edges, given
    random numbers from 0 to 1 of that shape.
    """
    dense: NDArray[Any] | None = None if sparse_output else np.zeros((n, n), dtype)
    ends: list[IntArray] = []  # the two ends of each edge, strip by strip
    start = 0
    while start < n:
        # A strip has about NUMBERS entries, which fit into the cache of a core.
        rows = slice(start, min(n, start + max(1, NUMBERS // (n - start))))
        # With k=1, triu keeps only the entries to the right of the diagonal.
        edges = np.triu(is_edge(rng.random_sample((rows.stop - start, n - start)), rows), k=1)
        if dense is not None:
            dense[rows, start:] = edges
            # The entries on and below the diagonal are still 0, so the mirror image can be added.
            dense[start:, rows] += edges.T.astype(dtype)
        else:
            ends.append((np.argwhere(edges) + start).astype(np.int32))
        start = rows.stop
    if dense is not None:
        return dense
    i, j = np.concatenate(ends).T
    upper = sp.csr_array((np.ones(i.size, dtype), (i, j)), shape=(n, n))
    return align_sparse((upper + upper.T).tocsr())
