"""Rankers of the documents of queries, under a limit for each query."""

from skfair.ranking.fair_ranker import FairRanker

__all__ = ["FairRanker"]
