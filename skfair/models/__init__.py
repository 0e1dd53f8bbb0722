"""Score models: they compute scores from parameters, and gradients from derivatives by scores."""

from skfair.models.base import ScoreModel as ScoreModel
from skfair.models.checks import check_score_model
from skfair.models.linear import LinearScore as LinearScore
from skfair.models.mlp import MLPScore as MLPScore
from skfair.models.mlp import mlp_scores as mlp_scores
from skfair.models.plug_in import ScoreFunction
from skfair.models.torch_score import TorchScore

# The public names, for models of users. Estimators make the other models from ``model=``.
__all__ = ["ScoreFunction", "TorchScore", "check_score_model"]
