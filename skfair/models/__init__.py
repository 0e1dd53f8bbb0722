"""Score models: parameters to scores, and the pull-back from scores to parameters."""

from skfair.models.base import ScoreModel
from skfair.models.checks import check_score_model
from skfair.models.linear import LinearScore
from skfair.models.mlp import MLPScore, mlp_scores
from skfair.models.pairs import PairScore
from skfair.models.plug_in import ScoreFunction
from skfair.models.torch_score import TorchScore

__all__ = [
    "LinearScore",
    "MLPScore",
    "PairScore",
    "ScoreFunction",
    "ScoreModel",
    "TorchScore",
    "check_score_model",
    "mlp_scores",
]
