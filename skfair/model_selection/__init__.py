"""Choose a model under a fairness limit; split data by class and group."""

from skfair.model_selection.path import FairnessPath, fairness_path
from skfair.model_selection.search import best_within
from skfair.model_selection.splits import StratifiedSensitiveKFold, StratifiedSensitiveShuffleSplit

__all__ = [
    "best_within",
    "fairness_path",
    "FairnessPath",
    "StratifiedSensitiveKFold",
    "StratifiedSensitiveShuffleSplit",
]
