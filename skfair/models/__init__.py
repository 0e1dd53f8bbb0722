"""Score models: parameters to scores, and the pull-back from scores to parameters."""

from skfair.models.base import ScoreModel
from skfair.models.linear import LinearScore
from skfair.models.mlp import MLPScore, mlp_scores
from skfair.models.pairs import PairScore

__all__ = ["LinearScore", "MLPScore", "PairScore", "ScoreModel", "mlp_scores"]
