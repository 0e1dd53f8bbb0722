"""What is said of queries in another order than the rows."""

import functools

from skfair.ranking import FairRanker
from tests.groups.test_alignment import QUERIES, QUERY, SEX, X, Y, mixed
from tests.messages import messages


@functools.cache
def fitted():
    return FairRanker(1.0).fit(X, Y, QUERY, sensitive_features=SEX)


test_queries_in_another_order = messages(
    (ValueError, QUERIES, lambda: fitted().rank(X, mixed(QUERY))),
    (ValueError, QUERIES, lambda: fitted().score(X, Y, mixed(QUERY))),
)
