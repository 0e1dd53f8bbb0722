"""Queries with documents to rank, where one group of documents was favoured in the past.

``make_ranking_queries`` draws rows like web search data: many features, graded relevance, a query
for each row. Some features determine how relevant a document is. A further one, its quality score,
determines the group of the document. The grades of one group are raised by ``bias``. So a ranker
that learns from these grades orders pairs of documents of different groups wrongly more often in
one direction than in the other.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from skfair._typing import Seed
from skfair.datasets._packing import checks


class RankedSample(NamedTuple):
    """Documents, their grades, their queries and their groups."""

    data: Any
    target: Any
    query_id: Any
    sensitive_features: Any


@checks(
    {
        "n_samples": [Interval(Integral, 1, None, closed="left")],
        "n_documents": [Interval(Integral, 2, None, closed="left")],
        "n_features": [Interval(Integral, 2, None, closed="left")],
        "n_informative": [Interval(Integral, 1, None, closed="left")],
        "n_levels": [Interval(Integral, 2, 30, closed="both")],
        "bias": [Interval(Real, 0, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    },
)
def make_ranking_queries(
    n_samples: int = 20_000,
    *,
    n_documents: int = 100,
    n_features: int = 136,
    n_informative: int = 20,
    n_levels: int = 5,
    bias: float = 1.5,
    noise: float = 1.0,
    random_state: Seed = None,
) -> RankedSample:
    r"""Generate queries with documents whose relevance grades favour one group.

    The merit of a document is a linear function of its informative features, of variance 1. Its
    grade counts how many of ``n_levels - 1`` thresholds lie below

    .. math:: \text{merit} + \text{bias} \cdot [\text{group is "high"}]
              + \text{noise} \cdot \text{standard normal}.

    A document is in the group "high" if its quality score, the last feature, is above the median of
    all documents; the quality score is independent of the merit.

    Parameters
    ----------
    n_samples : int, default=20000
        Number of documents, a multiple of ``n_documents``.
    n_documents : int, default=100
        Number of documents of each query, at least 2.
    n_features : int, default=136
        Number of columns, at least 2. The default is the number of columns of the MSLR-WEB10K data.
    n_informative : int, default=20
        Number of columns on which the merit depends, at most ``n_features - 1``. These are the
        first columns.
    n_levels : int, default=5
        Number of grades. Half of the documents have the grade 0, and each further grade has half of
        the remaining documents, except for the highest one, which has all that remain.
    bias : float, default=1.5
        Number that is added to the merit of the group "high" before documents are graded. Use 0 for
        no bias.
    noise : float, default=1.0
        Standard deviation of the part of the grades that the features do not explain.
    random_state : int, RandomState instance or None, default=None
        Seed of the random numbers. The same integer gives the same documents for every bias.

    Returns
    -------
    data : ndarray of shape (n_samples, n_features)
        The features. The features of each query are shifted by a random vector.
    target : ndarray of shape (n_samples,)
        The grades, which are integers from 0.
    query_id : ndarray of shape (n_samples,)
        The query of each row, an integer from 0. The rows of a query are adjacent.
    sensitive_features : ndarray of shape (n_samples,)
        The group of each document, "high" or "low".

    See Also
    --------
    skfair.ranking.FairRanker : Ranker with a fairness limit for each query.

    Examples
    --------
    >>> from skfair.datasets import make_ranking_queries
    >>> X, y, query_id, groups = make_ranking_queries(
    ...     1000, n_documents=50, n_features=10, n_informative=5, random_state=0
    ... )
    >>> X.shape, query_id[[0, -1]].tolist()
    ((1000, 10), [0, 19])
    >>> [round(float(y[groups == name].mean()), 1) for name in ("high", "low")]
    [1.5, 0.4]
    """
    if n_informative >= n_features:
        raise ValueError(
            f"n_informative={n_informative} leaves no column for the quality score. Pass at most "
            f"n_features - 1 = {n_features - 1}."
        )
    if n_samples % n_documents:
        raise ValueError(
            f"n_samples={n_samples} documents are no whole number of queries of "
            f"n_documents={n_documents} each. Pass a multiple of it."
        )
    rng = check_random_state(random_state)
    n_rows, n_informative = int(n_samples), int(n_informative)  # True passes the check as 1
    n_queries = n_rows // int(n_documents)
    query_id = np.repeat(np.arange(n_queries), n_documents)
    own = rng.normal(size=(n_rows, n_features))
    weights = rng.normal(size=n_informative)
    luck = rng.normal(size=n_rows)
    # Documents of one query are similar, so a query shifts the features. The quality score (the
    # last column) is not shifted, because most queries would then have documents of one group only.
    shifts = 0.5 * rng.normal(size=(n_queries, n_features))
    shifts[:, -1] = 0
    is_high = own[:, -1] > np.median(own[:, -1])
    merit = own[:, :n_informative] @ weights / np.sqrt(weights @ weights)
    graded = merit + bias * is_high + noise * luck
    # Half of all documents have grade 0, a quarter grade 1, and so on.
    thresholds = np.quantile(graded, 1 - 0.5 ** np.arange(1, n_levels))
    y = np.searchsorted(thresholds, graded).astype(np.int64)
    groups = np.where(is_high, "high", "low")
    return RankedSample(own + shifts[query_id], y, query_id, groups)
