"""Rankers of documents whose pair errors have a limit in each query."""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.ranking.fair_ranker import FairRanker as FairRanker
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [*names_of_wings(__name__)]
