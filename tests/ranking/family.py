"""Rankings, for the tests that go over all families (:mod:`tests.families`)."""

from functools import partial

from skfair.losses import LogLoss
from skfair.ranking import FairRanker

CONTRACTS_OF_RANKINGS = {"FairRanker": partial(FairRanker, query_share=1.0)}
SOLVER_TESTS = {"FairRanker": "test_disparities_of_queries_are_those_of_all_pairs"}
SUMMARIES = [(FairRanker(0.2), {"pair_error_gap": 0.2})]
ALIGNED = {"ranker": FairRanker(1.0)}
THREADS = {"ranker": (FairRanker(random_state=0), 600)}
ON_ONE_THREAD = [(FairRanker(loss=LogLoss()), LogLoss, "parts")]
ONNX_SCORES = {"``FairRanker``": FairRanker(max_disparity=0.5, random_state=0)}
