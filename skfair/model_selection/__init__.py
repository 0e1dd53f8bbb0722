"""Choose a model under a fairness limit; split data by class and group."""

from typing import TYPE_CHECKING

from skfair.estimators.kept_models import keeping_models
from skfair.model_selection.path import FairnessPath as FairnessPath
from skfair.model_selection.path import fairness_path
from skfair.model_selection.search import best_within
from skfair.model_selection.splits import StratifiedSensitiveKFold, StratifiedSensitiveShuffleSplit
from skfair.utils.other_names import other_names

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)

__all__ = [
    "best_within",
    "fairness_path",
    "keeping_models",
    "StratifiedSensitiveKFold",
    "StratifiedSensitiveShuffleSplit",
]
