"""Rankings, for the tests that go over all families (:mod:`tests.families`)."""

from functools import partial

import numpy as np

from skfair.losses import LogLoss
from skfair.ranking import FairRanker

CONTRACTS_OF_RANKINGS = {"FairRanker": partial(FairRanker, query_share=1.0)}
SOLVER_TESTS = {"FairRanker": "test_disparities_of_queries_are_those_of_all_pairs"}
SUMMARIES = [(FairRanker(0.2), {"pair_error_gap": 0.2})]
ALIGNED = {"ranker": FairRanker(1.0)}
THREADS = {"ranker": (FairRanker(random_state=0), 600)}
ON_ONE_THREAD = [(FairRanker(loss=LogLoss()), LogLoss, "parts")]
OF_ONE_GROUP = {"lists": (FairRanker(), {"query_id": np.arange(200) // 10})}
ONNX_SCORES = {"``FairRanker``": FairRanker(max_disparity=0.5, random_state=0)}


def distribution(name=None, **options):
    """Draw gaps of queries: the wing with displays may be missing, so it is imported here."""
    from skfair.inspection import RankingGapDisplay

    return RankingGapDisplay(gaps=[0.1, 0.3], name=name).plot(**options)


CONTINUED = {"ranking": (distribution, "line_")}
