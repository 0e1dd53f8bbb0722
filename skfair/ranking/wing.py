"""Rankings as a wing: the public package ``skfair.ranking``, and its estimator in ONNX.

:mod:`skfair.utils.wings` finds this file.
"""

from __future__ import annotations

from typing import Any

NAMES = {"skfair": {"ranking": ""}}  # "": the name is this package


def onnx() -> dict[type, Any]:
    """Return the estimators that can be converted to ONNX, with their converters."""
    from skfair.ranking.fair_ranker import FairRanker
    from skfair.utils.onnx_kinds import Kind, one_number

    return {FairRanker: Kind(one_number, ("scores",))}
