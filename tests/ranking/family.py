"""Rankings, for the tests that go over all families (:mod:`tests.families`)."""

from functools import partial

import numpy as np

from skfair.datasets import make_ranking_queries
from skfair.losses import LogLoss
from skfair.ranking import FairRanker
from tests.seeds import seed_of

CONTRACTS_OF_RANKINGS = {"FairRanker": partial(FairRanker, query_share=1.0)}
SOLVER_TESTS = {"FairRanker": "test_disparities_of_queries_are_those_of_all_pairs"}
SOME = {"n_documents": 30, "n_features": 6, "n_informative": 5, "bias": 2}
QUERIES = dict(
    zip(
        ("X", "y", "query_id", "sensitive_features"),
        make_ranking_queries(600, **SOME, random_state=seed_of(0)),
        strict=True,
    )
)
ENDINGS = {
    FairRanker: {
        "converged": (FairRanker(0.9, random_state=0), QUERIES),
        "max_iter": (FairRanker(0.5, query_share=None, max_iter=1, random_state=0), QUERIES),
        "infeasible": (FairRanker(0.02, random_state=0), QUERIES),
    }
}
SUMMARIES = [(FairRanker(0.2), {"pair_error_gap": 0.2})]
ALIGNED = {"ranker": FairRanker(1.0)}
THREADS = {"ranker": (FairRanker(random_state=0), 600)}
ON_ONE_THREAD = [(FairRanker(loss=LogLoss()), LogLoss, "parts")]
OF_ONE_GROUP = {"lists": (FairRanker(), {"query_id": np.arange(200) // 10})}
ONNX_SCORES = {"``FairRanker``": FairRanker(max_disparity=0.5, random_state=0)}


def distribution(name=None, limit=None, **options):
    """Draw gaps of queries: the wing with displays may be missing, so it is imported here."""
    from skfair.inspection import RankingGapDisplay

    return RankingGapDisplay(gaps=[0.3, 0.1, 0.05], limit=limit, name=name).plot(**options)


DRAWN = {"ranking": partial(distribution, limit=0.15)}
CONTINUED = {"ranking": (distribution, "line_")}
