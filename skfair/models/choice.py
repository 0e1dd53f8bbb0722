"""The parameter ``model=``: linear scores, the layers of a network, or a score model."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from sklearn.utils._param_validation import HasMethods, StrOptions

from skfair.models.plug_in import ScoreFunction
from skfair.utils.validation import check_layers

ModelChoice: TypeAlias = Literal["linear"] | tuple[int, ...] | list[int] | ScoreFunction

# The ranges by which estimators check their parameter.
LINEAR_OR_LAYERS: list[Any] = [StrOptions({"linear"}), tuple, list]
SCORE_FUNCTION: Any = HasMethods(["start", "forward", "pullback"])


class ChosenModel(NamedTuple):
    """How scores are made of columns; linearly, if it has neither layers nor a function."""

    layers: tuple[int, ...] = ()
    function: ScoreFunction | None = None

    @property
    def is_linear(self) -> bool:
        """Whether scores are linear."""
        return not self.layers and self.function is None


def read_model(model: ModelChoice) -> ChosenModel:
    """Return what a choice stands for."""
    if isinstance(model, tuple | list):
        return ChosenModel(check_layers(model, "The layers in model="))
    return ChosenModel() if isinstance(model, str) else ChosenModel(function=model)
