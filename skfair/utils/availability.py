"""Methods that an estimator has only under a condition, such as ``predict_proba``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.utils import metaestimators

Method = TypeVar("Method", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
    """Return scikit-learn's decorator of the same name, which keeps the type of the method."""
    return cast(Callable[[Method], Method], metaestimators.available_if(check))
