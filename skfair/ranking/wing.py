"""Rankings as a wing: ``skfair.ranking``, its estimator in ONNX, metrics, a generator, a display.

:mod:`skfair.utils.wings` finds this file.
"""

from __future__ import annotations

from typing import Any

_METRICS = ("pair_error_gap", "exposure_gap", "rank_gap", "ndcg")
NAMES = {
    "skfair": {"ranking": ""},  # "": the name is this package
    "skfair.ranking": {"FairRanker": "fair_ranker"},
    "skfair.metrics": dict.fromkeys(_METRICS, "metrics"),
    "skfair.datasets": {"make_ranking_queries": "generator"},
    "skfair.inspection": {"RankingGapDisplay": "display"},
}


def onnx() -> dict[type, Any]:
    """Return the estimators that can be converted to ONNX, with their converters."""
    from skfair.ranking.fair_ranker import FairRanker
    from skfair.utils.onnx_kinds import Kind, one_number

    return {FairRanker: Kind(one_number, ("scores",))}
