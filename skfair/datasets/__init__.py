"""Data sets for fair clustering and classification.

``make_*`` draws data whose fairness is known by construction, ``fetch_*`` downloads the usual
public tables from OpenML, and ``load_local`` reads a folder of parquet files. Only a call of
``fetch_*`` uses the network. Generators for one family only are in its folder.
"""

from typing import TYPE_CHECKING

from skfair.datasets.fetchers import (
    fetch_acs_income,
    fetch_adult,
    fetch_bank,
    fetch_communities_crime,
    fetch_compas,
    fetch_german_credit,
)
from skfair.datasets.generators_loans import make_loans
from skfair.datasets.generators_scores import make_group_scores
from skfair.datasets.local import load_local
from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.cluster.kmeans.generator import make_grouped_blobs as make_grouped_blobs
    from skfair.cluster.spectral.generator import make_fair_sbm as make_fair_sbm
    from skfair.ranking.generator import make_ranking_queries as make_ranking_queries
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [
    "make_loans",
    "make_group_scores",
    "fetch_adult",
    "fetch_bank",
    "fetch_compas",
    "fetch_german_credit",
    "fetch_communities_crime",
    "fetch_acs_income",
    "load_local",
    *names_of_wings(__name__),
]
