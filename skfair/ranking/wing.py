"""Rankings as a wing: a public package, and what becomes of its estimator in ONNX."""

from __future__ import annotations

from typing import Any

NAMES = {"skfair": {"ranking": ""}}


def onnx() -> dict[type, Any]:
    """Return the estimators that can be converted to ONNX, and how."""
    from skfair.ranking.fair_ranker import FairRanker
    from skfair.utils.onnx_kinds import Kind, one_number

    return {FairRanker: Kind(one_number, ("scores",))}
