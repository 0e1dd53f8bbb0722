"""The parameter ``model=``: "linear", the layers of a network, or a user's score model.

Estimators check it by ``LINEAR_OR_LAYERS`` and ``SCORE_FUNCTION``, as far as they accept it, and
read it by :func:`read_model`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from sklearn.utils._param_validation import HasMethods, StrOptions

from skfair.models.plug_in import ScoreFunction
from skfair.utils.validation import check_layers

ModelChoice: TypeAlias = Literal["linear"] | tuple[int, ...] | list[int] | ScoreFunction

# Entries for ``_parameter_constraints`` of estimators.
LINEAR_OR_LAYERS: list[Any] = [StrOptions({"linear"}), tuple, list]
SCORE_FUNCTION: Any = HasMethods(["start", "forward", "pullback"])


class ChosenModel(NamedTuple):
    """How scores are computed: by layers, by a function, or linearly if it has neither."""

    layers: tuple[int, ...] = ()  # number of units of each hidden layer
    function: ScoreFunction | None = None  # a user's score model

    @property
    def is_linear(self) -> bool:
        """Whether scores are linear."""
        return not self.layers and self.function is None


def read_model(model: ModelChoice) -> ChosenModel:
    """Return the model that a value of ``model=`` stands for; an empty list of layers is linear."""
    if isinstance(model, tuple | list):
        return ChosenModel(check_layers(model, "The layers in model="))
    return ChosenModel() if isinstance(model, str) else ChosenModel(function=model)
