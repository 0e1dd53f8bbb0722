"""Metrics of a clustering: how evenly the groups are represented.

Every representation metric is a function of one small table per sensitive attribute, the (weighted)
number of rows by group and cluster; it is counted in one pass. *Balance* is equation (3) of
fair_spectral_dc and section 3.1 of safairkm, the Kullback-Leibler fairness error is equation (7) of
safairkm.

Conventions that hold throughout: labels are names, not numbers (-1, the noise of DBSCAN, is a
cluster like any other); a row of weight 0 counts as absent, and so do a group and a cluster that
have no other rows. Attributes that are kept apart (``intersectional=False``) are measured one by
one; then minima and maxima are taken over all of them, means are averaged over them, and the
Kullback-Leibler error, a sum, is summed over them.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import rel_entr
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)

from skfair._typing import ColumnLike, ColumnsLike, FloatArray
from skfair.groups.compared_groups import Agg
from skfair.groups.encoding import encode_groups
from skfair.groups.weighted_rows import accepts_dask
from skfair.utils.docs import documenter
from skfair.utils.validation import check_clusters, check_weights

_CONSTRAINTS: dict[str, list[Any]] = {
    "intersectional": ["boolean"],
    "relative": ["boolean"],
    "agg": [StrOptions({"worst", "mean"})],
    "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
}

_documented = documenter(
    {
        "labels": """labels : array-like of shape (n_samples,)
    Cluster of each row; any labels.""",
        "sensitive_features": """\
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
    Group of each row, or one column per sensitive attribute.""",
        "sample_weight": """sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows, at least 0.""",
    }
)


@accepts_dask("labels")
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

    with :math:`n_{gk}` the number (or total weight) of the rows of group g in cluster k. It is 1
    when all groups of the sample are equally large in the cluster, 0 when one of them is missing.

    Parameters
    ----------
    intersectional : bool, default=True
        Whether several attributes are crossed into one. If False, the balance of a cluster is the
        smallest one over the attributes.
    n_clusters : int, default=None
        If given, labels must lie in ``range(n_clusters)`` and clusters without rows are counted
        too, with balance 0. If None, only the clusters that occur are counted.
    relative : bool, default=False
        Whether to divide by the balance of the whole sample (of each attribute). A cluster that
        mixes the groups as the sample does then has 1; a cluster with more even groups than the
        sample has more.

    Returns
    -------
    balances : ndarray of shape (n_clusters,)
        Balance of each cluster, in the sorted order of the labels. With a single group in the
        sample every cluster that is not empty has balance 1.

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


@accepts_dask("labels")
@_documented
def balance_score(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    agg: Agg = "worst",
    relative: bool = False,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    n_clusters: int | None = None,
) -> float:
    r"""Compute the minimum or the mean balance of the clusters.

    .. math:: \min_k b_k \quad \text{or} \quad \frac{1}{K} \sum_k b_k,
        \qquad b_k = \min_{g, g'} \frac{n_{gk}}{n_{g'k}},

    with :math:`n_{gk}` the number (or total weight) of the rows of group g in cluster k.

    Parameters
    ----------
    agg : {"worst", "mean"}, default="worst"
        Whether the worst cluster counts, or the average over the clusters (the "average balance" of
        the literature on spectral clustering), where a small cluster weighs as much as a large one.
    relative : bool, default=False
        Whether to divide by the balance of the whole sample (of each attribute). The minimum is
        then at most 1 whatever the clustering, and 0.8 is the 80% rule; the mean can exceed 1.
    intersectional : bool, default=True
        Whether several attributes are crossed into one. If False, the minimum is taken over the
        attributes too, and the mean averages over the attributes too.
    n_clusters : int, default=None
        If given, labels must lie in ``range(n_clusters)`` and clusters without rows count with
        balance 0. If None, only the clusters that occur are counted.

    Returns
    -------
    balance : float
        Between 0 and 1 unless ``relative``; larger is fairer. 1 if the sample has a single group.

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


@accepts_dask("labels")
@_documented
def share_deviation(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    agg: Agg = "worst",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
) -> float:
    r"""Compute how far the shares of the groups in the clusters are from those in the sample.

    .. math:: \max_{k, g} |p_{gk} - r_g| \quad \text{or} \quad
        \frac{1}{K G} \sum_{k, g} |p_{gk} - r_g|,

    with :math:`p_{gk}` the share of group g in cluster k and :math:`r_g` its share in the sample.

    Parameters
    ----------
    agg : {"worst", "mean"}, default="worst"
        Whether the worst pair of cluster and group counts, or the average over the pairs.
    intersectional : bool, default=True
        Whether several attributes are crossed into one. If False, the maximum is taken over the
        attributes too; the mean is the average of the means of the attributes.

    Returns
    -------
    deviation : float
        Between 0 and 1, smaller is fairer.

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


@accepts_dask("labels")
@_documented
def share_ratio(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
) -> float:
    r"""Compute the worst ratio between a group's share in a cluster and in the sample.

    .. math:: \min_{k, g} \min\left(\frac{p_{gk}}{r_g}, \frac{r_g}{p_{gk}}\right),

    with :math:`p_{gk}` the share of group g in cluster k and :math:`r_g` its share in the sample.
    A value of 0.8 is the 80% rule for every group: none is represented in a cluster less than 0.8
    times, or more than 1 / 0.8 times, as strongly as in the sample. It is the balance of Bera et
    al. (2019).

    Parameters
    ----------
    intersectional : bool, default=True
        Whether several attributes are crossed into one. If False, the minimum is taken over the
        groups of all attributes.

    Returns
    -------
    ratio : float
        Between 0 and 1, larger is fairer. 0 if a cluster lacks a group.

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
    # r > 0, so the larger of the two never is 0 and no division needs a guard.
    return float(min((np.minimum(p, r) / np.maximum(p, r)).min() for p, r in shares))


@accepts_dask("labels")
@_documented
def kl_fairness_error(
    labels: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
) -> float:
    r"""Compute the Kullback-Leibler fairness error of the variational method.

    .. math:: \sum_k D_{KL}(U \| P_k) = \sum_k \sum_g r_g \log \frac{r_g}{p_{gk}},

    with :math:`p_{gk}` the share of group g in cluster k and :math:`r_g` its share in the sample.

    Parameters
    ----------
    intersectional : bool, default=True
        Whether several attributes are crossed into one. If False, the errors of the attributes are
        added.

    Returns
    -------
    error : float
        At least 0, in nats; smaller is fairer. It is 0 when every cluster mixes the groups as the
        sample does, and infinite when a cluster lacks a group.

    See Also
    --------
    share_deviation : A measure of the same shares that is always finite.

    Notes
    -----
    O(n + groups * clusters). The error is a sum over the clusters, not a mean, so values for
    different numbers of clusters do not compare. A cluster without rows is not counted.

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
    return max(0.0, float(error))  # equal shares may add up to -1e-17


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
    """Check the arguments and count the rows by group and cluster, one table per attribute.

    Groups without weight are left out; clusters without weight too unless ``n_clusters`` is given.
    The other parameters are only checked.
    """
    options = {"intersectional": intersectional, "n_clusters": n_clusters, **parameters}
    validate_parameter_constraints(_CONSTRAINTS, options, caller_name=function)
    codes, n_levels = check_clusters(labels, n_clusters)
    groups = encode_groups(
        sensitive_features, n_samples=codes.size, intersectional=intersectional, like=labels
    )
    table = groups.cross_counts(codes, n_levels, check_weights(sample_weight, codes.size))
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
