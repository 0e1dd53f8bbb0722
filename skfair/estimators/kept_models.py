"""Models of folds that several fits share: the fits of a path differ by their limit alone.

Inside :func:`keeping_models` the same models are fitted to the same rows once, and asked about the
same rows once. All results are those of separate fits to the last bit, because what is kept is
found again by a hash of all that went into it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any, ParamSpec, TypeVar

import joblib

from skfair._typing import FloatArray, MatrixLike

P = ParamSpec("P")
Fitted = TypeVar("Fitted", bound=tuple[list[Any], FloatArray])

_kept: ContextVar[dict[str, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def keeping_models() -> Iterator[None]:
    """Keep the models that are fitted inside, until the end of the outermost of these blocks."""
    before = _kept.set({} if (kept := _kept.get()) is None else kept)
    try:
        yield
    finally:
        _kept.reset(before)


def fitted_once(fit: Callable[P, Fitted]) -> Callable[P, Fitted]:
    """Decorate a function that returns models and what they say of rows."""

    @functools.wraps(fit)
    def found(*args: P.args, **kwargs: P.kwargs) -> Fitted:
        kept = _kept.get()
        if kept is None:
            return fit(*args, **kwargs)
        key = joblib.hash((args, kwargs))
        if key not in kept:
            kept[key] = fit(*args, **kwargs)
        return tuple(map(copy, kept[key]))  # type: ignore[return-value]  # a caller may change them

    return found


def read_once(
    read: Callable[[Sequence[Any], MatrixLike, Any], FloatArray],
) -> Callable[[Sequence[Any], MatrixLike, Any], FloatArray]:
    """Decorate a function of fitted models and rows: models that are kept are known again."""

    @functools.wraps(read)
    def found(models: Sequence[Any], X: MatrixLike, classes: Any) -> FloatArray:
        kept = _kept.get()
        if kept is None:
            return read(models, X, classes)
        # Models that are held here keep their place in memory, which is their name.
        key = f"{[id(model) for model in models]} {joblib.hash((X, classes))}"
        if key not in kept:
            kept[key] = [*models], read(models, X, classes)
        return copy(kept[key][1])

    return found
