"""Pre-processing: weights of the training rows before a model is fitted."""

from skfair.preprocessing.reweighing import Reweighing

__all__ = ["Reweighing"]
