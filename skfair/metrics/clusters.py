"""Metrics of a clustering: how evenly the groups are represented, and what it costs.

Every representation metric (``cluster_balances``, ``balance_score``, ``share_deviation``,
``share_ratio`` and ``kl_fairness_error``) is a function of one small table per sensitive attribute,
the (weighted) number of rows by group and cluster, which ``_tables`` counts in one pass. *Balance*
is equation (3) of fair_spectral_dc and section 3.1 of safairkm. The Kullback-Leibler fairness error
is equation (7) of safairkm.

The costs know no groups: ``kmeans_cost`` (``_cost_of_rows``, for sparse rows ``_sparse_cost``)
reads data, and ``price_of_fairness`` compares two costs. The cost of a graph, ``normalized_cut``,
is in ``skfair/cluster/spectral/metrics.py``.

These metrics measure k-means, spectral clustering, and ``FairAssignment`` of the core around any
clusterer of scikit-learn. So they belong to no wing, and they are here, where the core offers them.

Conventions that hold throughout: labels are names, not numbers (-1, the noise of DBSCAN, is a
cluster like any other). A row of weight 0 counts as absent, and so do a group and a cluster that
have no other rows. Attributes that are kept apart (``intersectional=False``) are measured one by
one. Then minima and maxima are taken over all of them, means are averaged over them, and the
Kullback-Leibler error, a sum, is summed over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import rel_entr
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, MatrixLike, Rows
from skfair.groups.compared_groups import Agg
from skfair.groups.measured_rows import Columns, MeasuredRows
from skfair.metrics.docs import PARAGRAPHS
from skfair.utils.dask_collections import align, is_lazy
from skfair.utils.docs import described, documenter
from skfair.utils.pieces import NUMBERS
from skfair.utils.validation import check_clusters, check_labels, check_weights

_CONSTRAINTS: dict[str, list[Any]] = {
    "intersectional": ["boolean"],
    "relative": ["boolean"],
    "agg": [StrOptions({"worst", "mean"})],
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
}


def _parameters() -> None:
    """Parameters of metrics of clusters.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Cluster of each row. Any labels are accepted.
    """


_documented = documenter(PARAGRAPHS | described(_parameters))


@_documented
def cluster_balances(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    n_clusters: int | None = None,
    relative: bool = False,
) -> FloatArray:
    r"""Compute the balance of each cluster.

    The balance of a cluster is the size of its smallest group over the size of its largest one:

    .. math:: b_k = \min_{g, g'} \frac{n_{gk}}{n_{g'k}} \in [0, 1],

    with :math:`n_{gk}` the number (or total weight) of the rows of group g in cluster k. It is 1 if
    all groups of the sample are equally large in the cluster, and 0 if one of them is missing.

    Parameters
    ----------
    intersectional : bool, default=True
        If True, several attributes are crossed into one. If False, the balance of a cluster is the
        smallest balance over the attributes.
    n_clusters : int, default=None
        Number of clusters. If given, labels must lie in ``range(n_clusters)``, and clusters without
        rows are counted with balance 0. If None, only the clusters that occur are counted.
    relative : bool, default=False
        Whether to divide by the balance of the whole sample (of each attribute). A cluster that
        mixes the groups as the sample does then has the value 1, and a cluster whose groups are
        more even than in the sample has a value above 1.

    Returns
    -------
    balances : ndarray of shape (n_clusters,)
        Balance of each cluster, in the sorted order of the labels. If the sample has a single
        group, every cluster that is not empty has balance 1.

    See Also
    --------
    balance_score : The minimum or the mean of the balances.
    share_deviation : Differences between the shares in a cluster and in the sample.

    Notes
    -----
    O(n + groups * clusters).

    Examples
    --------
    >>> from skfair.metrics import cluster_balances
    >>> sex = ["f", "m", "m", "f", "m"]
    >>> cluster_balances([0, 0, 0, 1, 1], sensitive_features=sex)
    array([0.5, 1. ])
    >>> cluster_balances([0, 0, 0, 1, 1], sensitive_features=sex, n_clusters=3)
    array([0.5, 1. , 0. ])
    """
    groups = (sensitive_features, sample_weight, intersectional)
    tables = _tables("cluster_balances", labels, *groups, n_clusters=n_clusters, relative=relative)
    return np.asarray(np.min([_balances(table, relative) for table in tables], axis=0))


@_documented
def balance_score(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    relative: bool = False,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
    n_clusters: int | None = None,
) -> float:
    r"""Compute the minimum or the mean balance of the clusters.

    The balance of a cluster is the size of its smallest group over the size of its largest one. The
    score summarises the balances of all K clusters:

    .. math:: \min_k b_k \quad \text{or} \quad \frac{1}{K} \sum_k b_k,
        \qquad b_k = \min_{g, g'} \frac{n_{gk}}{n_{g'k}},

    with :math:`n_{gk}` the number (or total weight) of the rows of group g in cluster k.

    Parameters
    ----------
    relative : bool, default=False
        Whether to divide by the balance of the whole sample (of each attribute). The minimum is
        then at most 1 for every clustering, and 0.8 corresponds to the 80% rule. The mean can
        exceed 1.
    intersectional : bool, default=True
        If True, several attributes are crossed into one. If False, the minimum or the mean is also
        taken over the attributes.
    agg : {"worst", "mean"}, default="worst"
        Whether to return the balance of the worst cluster or the mean over the clusters. The mean
        is the "average balance" of the literature on spectral clustering. A small cluster then has
        the same weight as a large one.
    n_clusters : int, default=None
        Number of clusters. If given, labels must lie in ``range(n_clusters)``, and clusters without
        rows are counted with balance 0. If None, only the clusters that occur are counted.

    Returns
    -------
    balance : float
        The minimum or mean balance. It lies between 0 and 1 unless ``relative`` is True, and larger
        is fairer. If the sample has a single group, every cluster that is not empty counts as 1.

    See Also
    --------
    cluster_balances : The balance of each cluster.
    share_ratio : The 80% rule for each group instead of the ratio of two groups.

    Notes
    -----
    O(n + groups * clusters). No clustering has a minimum balance above that of the whole sample.

    Examples
    --------
    >>> from skfair.metrics import balance_score
    >>> sex = ["f", "m", "m", "f", "m"]
    >>> balance_score([0, 0, 0, 1, 1], sensitive_features=sex)
    0.5
    >>> balance_score([0, 0, 0, 1, 1], sensitive_features=sex, agg="mean")
    0.75
    """
    groups = (sensitive_features, sample_weight, intersectional)
    tables = _tables(
        "balance_score", labels, *groups, n_clusters=n_clusters, relative=relative, agg=agg
    )
    reduce: Callable[[Any], Any] = np.min if agg == "worst" else np.mean
    return float(reduce([reduce(_balances(table, relative)) for table in tables]))


@_documented
def share_deviation(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Compute how far the shares of the groups in the clusters are from the shares in the sample.

    The deviation is the largest or the mean absolute difference over all clusters and groups:

    .. math:: \max_{k, g} |p_{gk} - r_g| \quad \text{or} \quad
        \frac{1}{K G} \sum_{k, g} |p_{gk} - r_g|,

    with :math:`p_{gk}` the share of group g in cluster k and :math:`r_g` its share in the sample.

    Parameters
    ----------
    intersectional : bool, default=True
        If True, several attributes are crossed into one. If False, the maximum is also taken over
        the attributes, and the mean is the average of the means of the attributes.
    agg : {"worst", "mean"}, default="worst"
        Whether to return the value of the worst pair of cluster and group or the mean over all
        pairs.

    Returns
    -------
    deviation : float
        The deviation, between 0 and 1 (smaller is fairer).

    See Also
    --------
    share_ratio : The same shares compared by their ratio.

    Notes
    -----
    O(n + groups * clusters). A cluster without rows has no shares and is not counted.

    Examples
    --------
    >>> from skfair.metrics import share_deviation
    >>> sex = ["f", "f", "m", "m"]
    >>> share_deviation(["a", "a", "a", "b"], sensitive_features=sex)
    0.5
    """
    tables = _tables(
        "share_deviation", labels, sensitive_features, sample_weight, intersectional, agg=agg
    )
    reduce: Callable[[Any], Any] = np.max if agg == "worst" else np.mean
    gaps = [np.abs(inside - overall) for inside, overall in map(_shares, tables)]
    return float(reduce([reduce(gap) for gap in gaps]))


@_documented
def share_ratio(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
) -> float:
    r"""Compute the worst ratio between a group's share in a cluster and in the sample.

    The ratio is taken as a value of at most 1, so groups that are too rare and groups that are too
    frequent in a cluster both lower it:

    .. math:: \min_{k, g} \min\left(\frac{p_{gk}}{r_g}, \frac{r_g}{p_{gk}}\right),

    with :math:`p_{gk}` the share of group g in cluster k and :math:`r_g` its share in the sample. A
    value of 0.8 corresponds to the 80% rule for every group: no group's share in a cluster is less
    than 0.8 times, or more than 1 / 0.8 times, its share in the sample. The metric is called
    balance by Bera et al. (2019).

    Parameters
    ----------
    intersectional : bool, default=True
        If True, several attributes are crossed into one. If False, the minimum is taken over the
        groups of all attributes.

    Returns
    -------
    ratio : float
        The ratio, between 0 and 1 (larger is fairer). It is 0 if a group is missing in a cluster.

    See Also
    --------
    balance_score : Compares the groups of a cluster with each other.
    share_deviation : The same shares compared by their difference.

    Notes
    -----
    O(n + groups * clusters). A cluster without rows has no shares and is not counted.

    Examples
    --------
    >>> from skfair.metrics import share_ratio
    >>> sex = ["f", "m", "f", "m", "m", "m"]
    >>> round(share_ratio([0, 0, 1, 1, 1, 1], sensitive_features=sex), 3)
    0.667
    """
    tables = _tables("share_ratio", labels, sensitive_features, sample_weight, intersectional)
    shares = map(_shares, tables)
    # The shares r in the sample are above 0, because _tables leaves out groups without weight. So
    # the larger of p and r is never 0.
    return float(min((np.minimum(p, r) / np.maximum(p, r)).min() for p, r in shares))


@_documented
def kl_fairness_error(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
) -> float:
    r"""Compute the Kullback-Leibler fairness error of a clustering.

    The error adds up, over the clusters, the Kullback-Leibler divergence between the shares of the
    groups in the sample and their shares in the cluster. Variational fair clustering penalises it.

    .. math:: \sum_k D_{KL}(U \| P_k) = \sum_k \sum_g r_g \log \frac{r_g}{p_{gk}},

    with :math:`p_{gk}` the share of group g in cluster k and :math:`r_g` its share in the sample.

    Parameters
    ----------
    intersectional : bool, default=True
        If True, several attributes are crossed into one. If False, the errors of the attributes are
        added.

    Returns
    -------
    error : float
        The error in nats, at least 0 (smaller is fairer). It is 0 if every cluster mixes the groups
        as the sample does, and infinite if a group is missing in a cluster.

    See Also
    --------
    share_deviation : A measure of the same shares that is always finite.

    Notes
    -----
    O(n + groups * clusters). The error is a sum over the clusters, not a mean, so values for
    different numbers of clusters are not comparable. A cluster without rows is not counted.

    Examples
    --------
    >>> from skfair.metrics import kl_fairness_error
    >>> sex = ["f", "m", "f", "m", "m", "m"]
    >>> round(kl_fairness_error([0, 0, 1, 1, 1, 1], sensitive_features=sex), 3)
    0.074
    >>> kl_fairness_error([0, 1, 0, 1, 1, 1], sensitive_features=sex)
    inf
    """
    tables = _tables("kl_fairness_error", labels, sensitive_features, sample_weight, intersectional)
    error = sum(rel_entr(overall, inside).sum() for inside, overall in map(_shares, tables))
    return max(0.0, float(error))  # rounding may make the sum about -1e-17


def _tables(
    function: str,
    labels: ColumnLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None,
    intersectional: bool,
    *,
    n_clusters: int | None = None,
    **parameters: Any,
) -> list[FloatArray]:
    """Check the arguments and count the rows: one table (n_groups, n_clusters) per attribute.

    Groups without weight are left out, and so are clusters without weight unless ``n_clusters`` is
    given. ``function`` is the caller's name for error messages, and ``parameters`` are other
    arguments of the caller, which are only checked.
    """
    options = {"intersectional": intersectional, "n_clusters": n_clusters, **parameters}
    validate_parameter_constraints(_CONSTRAINTS, options, caller_name=function)
    n_levels = 0

    def clusters_of(own: Columns) -> IntArray:
        nonlocal n_levels
        codes, n_levels = check_clusters(own["labels"], n_clusters)
        return codes

    rows = MeasuredRows.read(
        clusters_of,
        {"labels": labels},
        sensitive_features,
        sample_weight=sample_weight,
        intersectional=intersectional,
        labels=("labels",),
    )
    groups = rows.groups.cells
    table = groups.cross_counts(rows.values, n_levels, rows.weights)
    if n_clusters is None:
        table = table[:, table.any(axis=0)]
    parts = np.split(table, groups.offsets[1:-1])
    return [part[part.any(axis=1)] for part in parts]


def _balances(table: FloatArray, relative: bool) -> FloatArray:
    """Divide the smallest by the largest group of each cluster; 0 for an empty cluster."""
    smallest, largest = table.min(axis=0), table.max(axis=0)
    balances = smallest / np.where(largest > 0, largest, 1.0)
    if relative:
        overall = table.sum(axis=1)  # every group of the table has weight
        balances /= overall.min() / overall.max()
    return np.asarray(balances)


def _shares(table: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of the groups in each cluster and, as a column, in the sample."""
    overall = table.sum(axis=1, keepdims=True)
    return table / table.sum(axis=0), overall / overall.sum()


def kmeans_cost(
    X: MatrixLike,
    labels: ColumnLike,
    *,
    centers: MatrixLike | None = None,
    sample_weight: ColumnLike | None = None,
    mean: bool = False,
) -> float:
    r"""Compute the k-means cost of a clustering.

    The cost is the (weighted) sum of squared distances of the rows to the centres of their
    clusters:

    .. math:: \sum_i w_i \|x_i - c_{l_i}\|^2

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The data. Arrays of float32 and float64 are read without a copy.
    labels : array-like of shape (n_samples,)
        Cluster of each row. Any labels are accepted, unless ``centers`` is given.
    centers : array-like of shape (n_clusters, n_features), default=None
        The centres. If given, labels must be row numbers of ``centers``. If None, the weighted
        means of the clusters are used, which gives the smallest cost that these labels can have.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, at least 0.
    mean : bool, default=False
        Whether to divide by the number of rows (or by the total weight).

    Returns
    -------
    cost : float
        The cost, at least 0 (smaller is better).

    See Also
    --------
    price_of_fairness : Compares the cost with that of an unconstrained clustering.
    normalized_cut : The cost of spectral clustering.

    Notes
    -----
    O(n d) time, O(nnz + K d) for sparse X. Distances are summed in float64, directly and not as a
    difference of large sums, so no digits are lost for data far from the origin. Besides the
    centres (for sparse X, a few tables of their size), only a chunk of X is held in float64. Dask
    collections are read in one pass.

    Examples
    --------
    >>> from skfair.metrics import kmeans_cost
    >>> X = [[0.0], [2.0], [5.0]]
    >>> kmeans_cost(X, ["a", "a", "b"])
    2.0
    >>> kmeans_cost(X, [0, 0, 1], centers=[[0.0], [5.0]])
    4.0
    """
    validate_parameter_constraints({"mean": ["boolean"]}, {"mean": mean}, "kmeans_cost")
    if is_lazy(X, labels, sample_weight):
        rows = align(X=X, labels=labels, sample_weight=sample_weight)
        of_blocks = rows.collect(_cost_of_block, centers)
    else:
        of_blocks = [_cost_of_rows(X, labels, sample_weight, centers)]
    of_blocks = [block for block in of_blocks if block.levels]
    if not of_blocks:
        raise ValueError("labels is empty.")
    masses = np.concatenate([block.masses for block in of_blocks])
    if not masses.any():
        raise ValueError("sample_weight is zero for every row.")
    total = sum(block.cost for block in of_blocks)
    if centers is None and len(of_blocks) > 1:
        # Each block measured its rows from its own means c_b. From the mean c of all blocks, the
        # cost of a cluster is higher by the sum over its blocks of mass_b * |c_b - c|^2.
        names = [name for block in of_blocks for name in block.levels]
        codes, levels = check_labels(names, "labels")
        parts = np.concatenate([block.centers for block in of_blocks])
        gaps = parts - _centers(parts, codes, masses, len(levels))[codes]
        total += float(np.einsum("ij,ij->i", gaps, gaps) @ masses)
    return float(total / masses.sum()) if mean else float(total)


def price_of_fairness(cost: float, reference_cost: float) -> float:
    r"""Compute the relative increase in cost of a fair clustering over an unconstrained one.

    The price is the cost that the fairness constraint adds, as a fraction of the unconstrained
    cost:

    .. math:: \frac{\text{cost}}{\text{reference cost}} - 1

    Parameters
    ----------
    cost : float
        Cost of the fair clustering, at least 0.
    reference_cost : float
        Cost of the clustering without constraints, above 0, measured by the same function.

    Returns
    -------
    price : float
        The relative increase: 0.05 means that the fair clustering costs 5% more. The value is
        negative if the fair clustering is cheaper, which shows that the reference is not optimal.

    See Also
    --------
    kmeans_cost : The cost of k-means.
    normalized_cut : The cost of spectral clustering.

    Examples
    --------
    >>> from skfair.metrics import price_of_fairness
    >>> price_of_fairness(3.0, 2.0)
    0.5
    """
    validate_parameter_constraints(
        {
            "cost": [Interval(Real, 0, None, closed="left")],
            "reference_cost": [Interval(Real, 0, None, closed="neither")],
        },
        {"cost": cost, "reference_cost": reference_cost},
        "price_of_fairness",
    )
    return float(cost) / float(reference_cost) - 1.0


class _Clusters(NamedTuple):
    """The clusters of a block of rows, and their cost."""

    levels: list[Any]  # the names of the clusters; empty for a block without rows
    masses: FloatArray  # (n_levels,): the weight of each cluster
    centers: FloatArray  # (n_levels, n_features)
    cost: float  # the sum over all rows of the block


def _cost_of_block(block: dict[str, Any], centers: MatrixLike | None) -> _Clusters:
    """Return the clusters of one block of Dask collections, which may have no rows."""
    if not len(block["labels"]):
        return _Clusters([], np.empty(0), np.empty((0, 0)), 0.0)
    weights = block.get("sample_weight")
    return _cost_of_rows(block["X"], block["labels"], weights, centers, are_all=False)


def _cost_of_rows(
    X: MatrixLike,
    labels: ColumnLike,
    sample_weight: ColumnLike | None,
    given_centers: MatrixLike | None,
    *,
    are_all: bool = True,  # False for a block, all of whose weights may be 0
) -> _Clusters:
    """Sum the weighted squared distances of rows to the centres of their clusters.

    If ``given_centers`` is None, the centres are the means of these rows.
    """
    rows: Rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    n_samples, n_features = rows.shape
    centers: FloatArray | None = None
    if given_centers is None:
        codes, levels = check_labels(labels, "labels", n_samples)
    else:
        centers = check_array(given_centers, dtype=np.float64, input_name="centers")
        if centers.shape[1] != n_features:
            raise ValueError(
                f"centers has {centers.shape[1]} features but X has {n_features}. Pass one row per "
                "cluster and one column per feature of X."
            )
        codes, n_clusters = check_clusters(labels, len(centers), n_samples)
        levels = list(range(n_clusters))
    weights = check_weights(sample_weight, n_samples, are_all=are_all)
    weights = np.ones(n_samples) if weights is None else weights
    if not isinstance(rows, np.ndarray):
        rows = canonical(rows)
    if centers is None:
        centers = _centers(rows, codes, weights, len(levels))
    masses = np.bincount(codes, weights, len(levels)).astype(np.float64)
    if not isinstance(rows, np.ndarray):
        cost = _sparse_cost(rows, codes, weights, centers)
        return _Clusters(levels, masses, centers, cost)
    cost = 0.0
    for part in _chunks(rows, len(levels)):
        gaps = rows[part] - centers[codes[part]]  # float64 even if X is float32
        cost += float(np.einsum("ij,ij->i", gaps, gaps) @ weights[part])
    return _Clusters(levels, masses, centers, cost)


def _chunks(X: Any, n_clusters: int) -> Iterator[slice]:
    """Yield slices of the rows, of about ``NUMBERS`` entries each, or stored entries if sparse.

    Every chunk updates a table with all coordinates of the centres. So a chunk has at least as many
    entries as this table, which keeps the updates O(n d), or O(nnz), in total.
    """
    n_samples, n_features = X.shape
    n_entries = max(NUMBERS, n_clusters * n_features)
    size = max(1, n_entries * n_samples // max(X.size, n_samples))
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


def _entries(
    X: Any, codes: IntArray, weights: FloatArray, n_clusters: int
) -> Iterator[tuple[IntArray, NDArray[Any], FloatArray]]:
    """Yield the stored entries of CSR rows in chunks: their cell, value and weight.

    The cell of an entry is its coordinate of a centre, numbered cluster * n_features + column. Its
    weight is that of its row.
    """
    for part in _chunks(X, n_clusters):
        ends = X.indptr[part.start : part.stop + 1]
        lengths, stored = np.diff(ends), slice(ends[0], ends[-1])
        cells = np.repeat(codes[part], lengths) * X.shape[1] + X.indices[stored]
        yield cells, X.data[stored], np.repeat(weights[part], lengths)


def _centers(X: Any, codes: IntArray, weights: FloatArray, n_clusters: int) -> FloatArray:
    """Return the weighted means of the rows of each cluster; 0 for a cluster without weight."""
    sums = np.zeros((n_clusters, X.shape[1]))
    if sparse.issparse(X):
        for cells, values, weight in _entries(X, codes, weights, n_clusters):
            sums += np.bincount(cells, weight * values, sums.size).reshape(sums.shape)
    else:
        for rows in _chunks(X, n_clusters):
            block = X[rows].astype(np.float64, copy=False)
            # Column i of this (n_clusters, n_rows) matrix has the weight of row i at its cluster.
            shape, pointers = (n_clusters, len(block)), np.arange(len(block) + 1)
            sums += sparse.csc_array((weights[rows], codes[rows], pointers), shape=shape) @ block
    masses = np.bincount(codes, weights=weights, minlength=n_clusters)
    return np.asarray(sums / np.where(masses > 0, masses, 1.0)[:, None])


def canonical(matrix: Any) -> Any:
    """Return a CSR matrix without repeated entries; if it has some, a copy is changed."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _sparse_cost(X: Any, codes: IntArray, weights: FloatArray, centers: FloatArray) -> float:
    """Sum the weighted squared distances of CSR rows to the centres.

    Each stored entry contributes w (x - c)^2. The zeros of column j in cluster k contribute their
    weight times c_kj^2, and their weight is that of the cluster minus that of its stored entries.
    Both terms are sums of positive numbers, so no digits cancel.
    """
    cost, flat = 0.0, centers.ravel()
    # The weight and the number of the stored entries in each cell (a coordinate of a centre, as in
    # _entries)
    stored, n_stored = np.zeros((2, flat.size))
    for cells, values, weight in _entries(X, codes, weights, len(centers)):
        gaps = values - flat[cells]
        cost += float((gaps * gaps) @ weight)
        stored += np.bincount(cells, weight, flat.size)
        n_stored += np.bincount(cells, weight > 0, flat.size)
    masses, n_members = (
        np.repeat(np.bincount(codes, of_rows, len(centers)), X.shape[1])
        for of_rows in (weights, weights > 0)
    )
    # If a cell has no zeros, masses - stored is only rounding error, which a large c^2 would turn
    # into a cost.
    zeros = np.where(n_stored == n_members, 0.0, np.maximum(masses - stored, 0.0))
    return cost + float(zeros @ flat**2)
