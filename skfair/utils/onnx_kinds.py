"""What a converter to ONNX is made of (:mod:`skfair.export`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator


class Kind(NamedTuple):
    """The function of a converter, the names of its outputs, and the source of its inputs."""

    convert: Callable[[Any, list[Any], Any], tuple[Any, ...]]
    outputs: tuple[str, ...]
    models: Callable[[Any], list[Any]] = lambda model: []  # none: it reads the columns of X


def refuse_groups(
    model: BaseEstimator,
    uses_groups: bool,
    hint: str = "Fit it with group_aware=False",
) -> None:
    if uses_groups:
        raise ValueError(
            f"This {type(model).__name__} asks for the groups of new rows, and graphs have no "
            f"input for them. {hint}."
        )
