"""Rankers of documents whose pair errors have a limit in each query."""

from skfair.ranking.fair_ranker import FairRanker

__all__ = ["FairRanker"]
