"""Metrics of scores that rank the documents of queries: errors on pairs, exposure, nDCG.

Every metric computes one number per query, and then the mean, the median, a quantile or the worst
of these numbers. Queries whose number is undefined (with one group only, for instance) are left
out.
Each public metric (``pair_error_gap``, ``exposure_gap``, ``rank_gap``, ``ndcg``) reads its rows by
``ranked_rows``, computes one number per query (``pair_error_gaps``, ``exposure_gaps``,
``rank_gaps``), and reduces them by ``_aggregated``. Rankers and ``RankingGapDisplay`` call the
functions for one number per query as well.

Attention is defined as in the discounted cumulative gain: the document in place r, from 1, gets 1 /
log2(1 + r), and tied documents share what their places get. Places after the first ``k`` get 0.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.groups.attributes import check_aligned
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_calls import spreads_cohort
from skfair.groups.cohort_rows import value_rows
from skfair.groups.encoding import GroupEncoding, one_group
from skfair.utils.dask_collections import is_lazy
from skfair.utils.docs import described, documenter
from skfair.utils.pieces import NUMBERS
from skfair.utils.validation import check_labels, check_number, check_scores, is_strict

Aggregate = Literal["mean", "median", "worst"] | float | None
ZeroDivision = Literal["raise"] | float

_AGGREGATES: dict[str, Callable[[FloatArray], Any]] = {
    "mean": np.mean,
    "median": np.median,
    "worst": np.max,
}


class RankedRows(NamedTuple):
    """Checked documents (rows) of queries.

    The rows of query q are ``order[starts[q]:starts[q + 1]]``.
    """

    y_true: FloatArray
    y_score: FloatArray
    groups: GroupEncoding
    order: IntArray
    query_of_position: IntArray  # the number of the query at each place of ``order``
    starts: IntArray  # (n_queries + 1,)
    query_names: list[Any]

    def queries(self) -> list[IntArray]:
        """Return the row numbers of each query."""
        return np.split(self.order, self.starts[1:-1])


def ranked_rows(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    query_id: ColumnLike,
    sensitive_features: ColumnsLike | GroupEncoding | None,
    intersectional: bool = True,
    *,
    like: object = None,  # y_true, if the metric uses nothing but its index
) -> RankedRows:
    """Check scores, grades, queries and groups together.

    If ``y_true`` is None, all grades are 0. If ``sensitive_features`` is None, there is one group.
    """
    if is_lazy(y_true, y_score, query_id, sensitive_features):
        raise TypeError(
            "Metrics of rankings need all documents of a query at once and do not read Dask "
            "collections. Pass them with .compute()."
        )
    first = check_aligned(
        y_score=y_score, y_true=like if y_true is None else y_true, query_id=query_id
    )
    scores = check_scores(y_score)
    n = scores.size
    grades = np.zeros(n) if y_true is None else check_scores(y_true, "y_true", n)
    codes, names = check_labels(query_id, "query_id", n)
    groups = one_group(n)
    if sensitive_features is not None:
        people = cohort_of(y_score=first, sensitive_features=sensitive_features)
        rows = value_rows(people, lambda _: scores, ["y_score"], intersectional, each_row=True)
        groups = rows.groups.cells
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(names)))])
    order = np.argsort(codes, kind="stable")
    return RankedRows(grades, scores, groups, order, codes[order], starts, names)


@spreads_cohort
def pair_error_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    query_id: ColumnLike,
    sensitive_features: ColumnsLike,
    intersectional: bool = True,
    agg: Aggregate = "mean",
    zero_division: ZeroDivision = "raise",
) -> Any:  # float, or a dict if agg is None
    r"""Compute the difference of pair error rates between groups of documents (0 is parity).

    A pair consists of a better and a worse document of one query, according to ``y_true``. It is an
    error if the worse document has the larger score, and half an error if the scores are tied. For
    each query, the gap is

    .. math:: |P(s_i < s_j \mid y_i > y_j, i \in a, j \in b)
              - P(s_i < s_j \mid y_i > y_j, i \in b, j \in a)|

    for the worst pair of groups a, b.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Grades of relevance, which are numbers that are larger for better documents.
    y_score : array-like of shape (n_samples,)
        Scores of the documents. Documents are ranked by decreasing score.
    query_id : array-like of shape (n_samples,)
        The query of each row. The rows of a query need not be adjacent.
    sensitive_features : array-like, (n_samples,) or (n_samples, n_attributes)
        The group of each document. Each column is one sensitive attribute.
    intersectional : bool, default=True
        If True, groups are the intersections of all attributes. If False, groups are compared
        within each attribute, and the comparisons of all attributes are pooled.
    agg : {"mean", "median", "worst"}, float or None, default="mean"
        How the values of the queries are combined into one number. A float between 0 and 1 is a
        quantile. If None, they are not combined.
    zero_division : {"raise"} or numpy.nan, default="raise"
        Behaviour if no query has the documents that are compared. "raise" raises a ``ValueError``,
        and ``numpy.nan`` returns NaN. If only some queries lack such documents, these queries are
        left out.

    Returns
    -------
    gap : float or dict
        The gap, where 0 is parity. With a single group there is nothing to compare, so the gap is
        undefined. With ``agg=None``, a dict holds the gap of each query by its name, and NaN if it
        is undefined.

    See Also
    --------
    exposure_gap : Compares the attention that groups receive.
    skfair.ranking.FairRanker : Limits it.

    Notes
    -----
    O(sum of the squared sizes of the queries).

    Examples
    --------
    >>> from skfair.metrics import pair_error_gap
    >>> y_true, y_score = [1, 0, 1, 0], [0.3, 0.1, 0.4, 0.35]
    >>> query_id, sex = [0, 0, 0, 0], ["f", "f", "m", "m"]
    >>> pair_error_gap(y_true, y_score, query_id=query_id, sensitive_features=sex)
    1.0
    """
    rows = ranked_rows(y_true, y_score, query_id, sensitive_features, intersectional)
    return _aggregated(rows, pair_error_gaps(rows), agg, zero_division)


@spreads_cohort
@documenter(described(pair_error_gap))
def exposure_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    query_id: ColumnLike,
    sensitive_features: ColumnsLike,
    intersectional: bool = True,
    k: int | None = None,
    agg: Aggregate = "mean",
    zero_division: ZeroDivision = "raise",
) -> Any:  # float, or a dict if agg is None
    r"""Compute the difference of mean exposure between groups of documents (0 is parity).

    The exposure of a document is the attention that its place in the ranking gets, :math:`v = 1 /
    \log_2(1 + r)` for place r. For each query, the gap is :math:`\frac{1}{n_a} \sum_{i \in a} v_i -
    \frac{1}{n_b} \sum_{i \in b} v_i` for the worst pair of groups a, b.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Not used. It is accepted so that all metrics have the same signature.
    k : int, default=None
        Number of top places that count. If None, all places are counted.

    Returns
    -------
    gap : float or dict
        The gap, where 0 is parity. With a single group there is nothing to compare, so the gap is
        undefined. With ``agg=None``, a dict holds the gap of each query by its name, and NaN if it
        is undefined.

    See Also
    --------
    rank_gap : Compares attention with shares of documents.
    pair_error_gap : Compares errors on pairs of documents.

    Examples
    --------
    >>> from skfair.metrics import exposure_gap
    >>> exposure_gap(
    ...     None, [2.0, 1.0], query_id=[0, 0], sensitive_features=["f", "m"]
    ... )  # 1 - 1 / log2(3)
    0.369...
    """
    rows = ranked_rows(None, y_score, query_id, sensitive_features, intersectional, like=y_true)
    return _aggregated(rows, exposure_gaps(rows, k), agg, zero_division)


@spreads_cohort
@documenter(described(exposure_gap))
def rank_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    query_id: ColumnLike,
    sensitive_features: ColumnsLike,
    intersectional: bool = True,
    k: int | None = None,
    agg: Aggregate = "mean",
    zero_division: ZeroDivision = "raise",
) -> Any:  # float, or a dict if agg is None
    r"""Compute how far shares of attention are from shares of documents (0 is parity).

    This is attention-weighted rank fairness: a group that makes up 30% of the documents of a query
    should get 30% of the attention. The gap of a query is :math:`\max_g |\sum_{i \in g} v_i /
    \sum_i v_i - n_g / n|`, where the document in place r gets the attention :math:`v = 1 / \log_2(1
    + r)`.

    Returns
    -------
    gap : float or dict
        The gap, where 0 is parity. With a single group there is nothing to compare, so the gap is
        undefined. With ``agg=None``, a dict holds the gap of each query by its name, and NaN if it
        is undefined.

    See Also
    --------
    exposure_gap : Compares the mean exposure of groups.
    pair_error_gap : Compares errors on pairs of documents.

    Examples
    --------
    >>> from skfair.metrics import rank_gap
    >>> round(rank_gap(None, [2.0, 1.0], query_id=[0, 0], sensitive_features=["f", "m"]), 3)
    0.113
    """
    rows = ranked_rows(None, y_score, query_id, sensitive_features, intersectional, like=y_true)
    return _aggregated(rows, rank_gaps(rows, k), agg, zero_division)


@spreads_cohort
@documenter(described(exposure_gap))
def ndcg(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    query_id: ColumnLike,
    sensitive_features: ColumnsLike | None = None,
    k: int | None = None,
    zero_division: ZeroDivision = "raise",
) -> float:
    """Compute the mean NDCG over queries.

    The value of each query is computed as by :func:`sklearn.metrics.ndcg_score`. It is 1 if every
    query is ranked perfectly.

    Queries with a single document, or without a document of positive grade, are left out.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Grades of relevance, which must be at least 0.
    sensitive_features : object
        Not used. It is accepted so that all metrics of rankings have the same signature.

    Returns
    -------
    ndcg : float
        The mean over queries, between 0 and 1 (larger is better).

    See Also
    --------
    exposure_gap : Compares the attention that groups receive.
    skfair.ranking.FairRanker : Ranks within a limit.

    Examples
    --------
    >>> from skfair.metrics import ndcg
    >>> ndcg([2, 1, 0, 1, 0], [0.9, 0.5, 0.1, 0.3, 0.2], query_id=[0, 0, 0, 1, 1])
    1.0
    """
    rows = ranked_rows(y_true, y_score, query_id, None)
    if rows.y_true.min() < 0:
        raise ValueError(
            f"y_true has a negative grade, {rows.y_true.min():g}. Grades are gains: subtract the "
            "smallest one."
        )
    gains, best = (
        np.add.reduceat((rows.y_true * _attention(rows, by, k))[rows.order], rows.starts[:-1])
        for by in (rows.y_score, rows.y_true)
    )
    is_defined = (best > 0) & (np.diff(rows.starts) > 1)
    values = np.where(is_defined, gains / np.where(is_defined, best, 1.0), np.nan)
    return float(_aggregated(rows, values, "mean", zero_division))


def pair_error_gaps(rows: RankedRows) -> FloatArray:
    """Return for each query the largest difference of pair errors, or NaN if it is undefined.

    For two groups, the error rate of pairs whose better document is in the first one is compared
    with that of pairs whose better document is in the second one.
    """
    rates = pair_error_rates(rows)
    first, second = _pairs_of_groups(rows.groups)
    return _worst(rates[:, first, second] - rates[:, second, first])


def pair_error_rates(rows: RankedRows) -> FloatArray:
    """Return error rates, (n_queries, n_groups, n_groups), by group of better and worse document.

    The rate is the share of pairs with different grades in which the worse document has the higher
    score, ties counted half. It is NaN if a query has no such pair. All pairs of a query are
    compared in matrices of about ``NUMBERS`` entries.
    """
    n_groups, n_queries = rows.groups.n_groups, rows.starts.size - 1
    # ``member`` is 1 for the groups of each row, which has one group of each attribute.
    member = np.zeros((rows.order.size, n_groups))
    for codes in rows.groups.codes:
        member[np.arange(codes.size), codes] = 1
    wrong, counted = np.zeros((2, n_queries, n_groups, n_groups))
    for own, wrong_of_query, counted_of_query in zip(rows.queries(), wrong, counted, strict=True):
        grades, scores, members = rows.y_true[own], rows.y_score[own], member[own]
        size = max(1, NUMBERS // own.size)
        for part in (slice(start, start + size) for start in range(0, own.size, size)):
            is_better = (grades[part, None] > grades).astype(np.float64)
            below = (scores[part, None] < scores) + 0.5 * (scores[part, None] == scores)
            counted_of_query += members[part].T @ (is_better @ members)
            wrong_of_query += members[part].T @ ((is_better * below) @ members)
    return np.divide(wrong, counted, out=np.full_like(wrong, np.nan), where=counted > 0)


def _pairs_of_groups(groups: GroupEncoding) -> tuple[IntArray, IntArray]:
    """Return all pairs of groups of the same attribute."""
    attribute = groups.attribute_of_group
    first, second = np.nonzero(np.triu(attribute[:, None] == attribute, k=1))
    return first, second


def exposure_gaps(rows: RankedRows, k: int | None = None) -> FloatArray:
    """Return for each query the largest difference of mean attention; NaN with one group only."""
    first, second = _pairs_of_groups(rows.groups)
    total, counted = _attention_by_group(rows, k)
    means = total / np.where(counted > 0, counted, np.nan)
    return _worst(means[:, first] - means[:, second])


def _worst(differences: FloatArray) -> FloatArray:
    """Return the largest absolute difference of each query; NaN if all of them are undefined."""
    worst: FloatArray = np.fmax.reduce(np.abs(differences), axis=1, initial=np.nan)
    return worst


def rank_gaps(rows: RankedRows, k: int | None = None) -> FloatArray:
    """Return for each query how far a group's share of attention is from its share of documents.

    It is the largest distance over all groups, and NaN if the query has one group only.
    """
    total, counted = _attention_by_group(rows, k)
    whole = total.sum(axis=1, keepdims=True) / rows.groups.n_attributes  # each counts every row
    gaps = np.abs(total / whole - counted / np.diff(rows.starts)[:, None]).max(axis=1)
    has_several = np.count_nonzero(counted, axis=1) > rows.groups.n_attributes
    return np.where(has_several, gaps, np.nan)


def _attention_by_group(rows: RankedRows, k: int | None) -> tuple[FloatArray, FloatArray]:
    """Return attention and number of documents by query and group, (n_queries, n_groups)."""
    attention = _attention(rows, rows.y_score, k)[rows.order]
    shape = rows.starts.size - 1, rows.groups.n_groups
    total, counted = np.zeros(shape), np.zeros(shape)
    for codes in rows.groups.codes:
        cells = rows.query_of_position * shape[1] + codes[rows.order]
        total += np.bincount(cells, attention, total.size).reshape(shape)
        counted += np.bincount(cells, minlength=total.size).reshape(shape)
    return total, counted


def _attention(rows: RankedRows, scores: FloatArray, k: int | None) -> FloatArray:
    """Return the attention of each row, ranked within its query by ``scores``. O(n log n).

    Tied documents get the mean of the attention at their places. If ``k`` is None, all places have
    attention.
    """
    if k is not None:
        check_number(k, "k", low=1, kind=Integral)
    queries = rows.query_of_position
    ranked = rows.order[np.lexsort((-scores[rows.order], queries))]
    place = np.arange(queries.size) - rows.starts[queries]
    at_place = 1 / np.log2(2 + place)
    if k is not None:
        at_place[place >= k] = 0
    # A block of ties begins at the first place of a query and wherever the score changes.
    in_order, is_new = scores[ranked], place == 0
    is_new[1:] |= in_order[1:] != in_order[:-1]
    starts = np.flatnonzero(is_new)
    sizes = np.diff(starts, append=queries.size)
    attention = np.empty(queries.size)
    attention[ranked] = np.repeat(np.add.reduceat(at_place, starts) / sizes, sizes)
    return attention


def _aggregated(
    rows: RankedRows, values: FloatArray, agg: Aggregate, zero_division: ZeroDivision
) -> Any:
    """Reduce the values of queries to one number, without undefined values (NaN).

    If ``agg`` is None, all are returned in a dict by query. If all values are undefined, an error
    is raised, or NaN is returned if ``zero_division`` is NaN.
    """
    strict = is_strict(zero_division)
    if agg is None:
        return dict(zip(rows.query_names, values.tolist(), strict=True))
    reduce = _AGGREGATES.get(agg) if isinstance(agg, str) else None
    if reduce is None:
        is_share = isinstance(agg, Real) and not isinstance(agg, bool)
        if not is_share or not 0 <= float(agg) <= 1:
            raise ValueError(
                "agg must be 'mean', 'median', 'worst', a quantile from 0 to 1, or None for the "
                f"values of all queries, got {agg!r}."
            )
    known = values[~np.isnan(values)]
    if known.size:
        return float(np.quantile(known, float(agg)) if reduce is None else reduce(known))
    if strict:
        raise ValueError(
            f"The value is undefined in each of the {values.size} queries: none has the pairs of "
            "documents that it compares. Pass queries with documents of several grades (and "
            "groups), or zero_division=numpy.nan."
        )
    return float("nan")
