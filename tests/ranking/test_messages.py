"""What is said of wrong queries, grades and options, and of queries in another order."""

import functools

import dask.array as da

from skfair.datasets import make_ranking_queries
from skfair.metrics import ndcg, pair_error_gap
from skfair.ranking import FairRanker
from tests.groups.test_alignment import OTHER_ORDER, QUERY, SCORE, SEX, X, Y, mixed
from tests.messages import messages, of_calls

GROUPS = ["f", "m"]
QUERIES = f"^query_id and the data have the {OTHER_ORDER}"


@functools.cache
def fitted():
    return FairRanker(1.0).fit(X, Y, QUERY, sensitive_features=SEX)


test_queries_in_another_order = messages(
    (ValueError, QUERIES, lambda: ndcg(Y, SCORE, query_id=mixed(QUERY))),
    (ValueError, QUERIES, lambda: fitted().rank(X, mixed(QUERY))),
    (ValueError, QUERIES, lambda: fitted().score(X, Y, mixed(QUERY))),
)


def pair_errors(**changes):
    given = {"query_id": [0, 0], "sensitive_features": GROUPS} | changes
    pair_error_gap([1, 0], [0.1, 0.2], **given)


def gain(grades=(1, 0), **options):
    ndcg(grades, [0.1, 0.2], query_id=[0, 0], **options)


test_metrics_say_what_is_wrong = messages(
    *of_calls(
        pair_errors,
        ("agg must be 'mean', 'median', 'worst', a quantile", {"agg": "max"}),
        ("quantile from 0 to 1", {"agg": 1.5}),
        ("quantile from 0 to 1", {"agg": True}),
        ("query_id has 1 rows but the other arguments have 2", {"query_id": [0]}),
        ("query_id has 1 missing value", {"query_id": [0, None]}),
        ("query_id is None", {"query_id": None}),
        ("undefined in each of the 1 queries", {}),
    ),
    *of_calls(
        gain,
        ("negative grade, -1", {"grades": [1, -1]}),
        ("k must be an integer", {"k": 0}),
    ),
    *of_calls(gain, ("Dask", {"grades": da.zeros(2)}), error=TypeError),
)


def queries(n, **options):
    return make_ranking_queries(n, n_features=5, **options)


test_the_generator_says_what_is_wrong = messages(
    (ValueError, "at most n_features - 1 = 4", lambda: queries(6, n_documents=3, n_informative=5)),
    (ValueError, "no whole number of queries", lambda: make_ranking_queries(50, n_documents=20)),
)
