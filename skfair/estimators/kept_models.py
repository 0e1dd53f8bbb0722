"""A cache of the models of folds, for fits that differ by their limit alone.

A function that makes many such fits (a path over limits, for example) puts them into ``with
keeping_models():``. In this block the functions of :mod:`skfair.estimators.wrapped_scores` that
:func:`fitted_once` and :func:`read_once` decorate do nothing twice. Outside of a block the
decorators have no effect. The key is a hash of all arguments, so the results equal those of
separate fits to the last bit, if models that draw random numbers have a seed. Without a seed, fits
that differ by their limit have the same draws. Arguments that pickle cannot read, such as a lambda
in a pipeline, have no hash. Then nothing is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from pickle import PicklingError
from typing import Any, ParamSpec, TypeVar

import joblib

from skfair._typing import FloatArray, MatrixLike

P = ParamSpec("P")
Fitted = TypeVar("Fitted", bound=tuple[list[Any], FloatArray])

# The key of the ids of all models that are kept.
_IDS = "ids"
# The kept results by the hash of the arguments; None outside of keeping_models.
_kept: ContextVar[dict[str, Any] | None] = ContextVar("kept", default=None)


@contextmanager
def keeping_models() -> Iterator[None]:
    """Keep the models of folds and groups that are fitted inside, for fits that need them again.

    Fits that differ by their limit alone have most of their work in common: the models that
    decisions are made from. Inside of this block they are fitted once. The results are those of
    separate fits. The models are dropped at the end of the block, or of the outermost one if blocks
    are nested. :func:`~skfair.model_selection.fairness_path` needs no such block, because it keeps
    models by itself.

    Yields
    ------
    None
        The block runs, and then models are dropped.

    See Also
    --------
    fairness_path : Keeps the models of its own fits.
    best_within : Selects a candidate of a search within limits.

    Notes
    -----
    A search with several processes (``n_jobs``) fits in other processes, which this block does not
    reach. Models without a ``random_state`` have the same draws under all limits.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skfair.classification import FairDecisionClassifier
    >>> from skfair.datasets import make_loans
    >>> from skfair.model_selection import keeping_models
    >>> loans = make_loans(600, random_state=0)
    >>> X, sex = loans.data[["income", "age"]].fillna(0), loans.sensitive_features[["sex"]]
    >>> model = FairDecisionClassifier(
    ...     LogisticRegression(max_iter=1000), sensitive=["sex"], random_state=0
    ... )
    >>> search = GridSearchCV(model, {"max_disparity": [0.2, 0.1]}, cv=3)
    >>> with keeping_models():
    ...     search = search.fit(X.join(sex), loans.target)
    >>> len(search.cv_results_["mean_test_score"])
    2
    """
    before = _kept.set({_IDS: set()} if (kept := _kept.get()) is None else kept)
    try:
        yield
    finally:
        _kept.reset(before)


def fitted_once(fit: Callable[P, Fitted]) -> Callable[P, Fitted]:
    """Decorate a function that returns fitted models and their values for rows."""

    @functools.wraps(fit)
    def found(*args: P.args, **kwargs: P.kwargs) -> Fitted:
        kept = _kept.get()
        if kept is None:
            return fit(*args, **kwargs)
        key = _hash_of(_with_ids(args, kept), kwargs)
        if key is None:
            return fit(*args, **kwargs)
        if key not in kept:
            kept[key] = fit(*args, **kwargs)
            kept[_IDS] |= set(map(id, kept[key][0]))
        return tuple(map(copy, kept[key]))  # type: ignore[return-value]  # a caller may change them

    return found


def _with_ids(values: Any, kept: dict[str, Any]) -> Any:
    """Return the values, with each kept model replaced by its id.

    The values are then hashed, and whole models would take most of the time.
    """
    if isinstance(values, list | tuple):
        return [_with_ids(value, kept) for value in values]
    return id(values) if id(values) in kept[_IDS] else values


def _hash_of(*values: Any) -> str | None:
    """Return a hash of all values, or None if pickle cannot read one of them."""
    try:
        return str(joblib.hash(values))
    except (PicklingError, AttributeError, TypeError):  # pickle raises any of these three
        return None


def read_once(
    read: Callable[[Sequence[Any], MatrixLike, Any], FloatArray],
) -> Callable[[Sequence[Any], MatrixLike, Any], FloatArray]:
    """Decorate a function that reads fitted models on rows."""

    @functools.wraps(read)
    def found(models: Sequence[Any], X: MatrixLike, classes: Any) -> FloatArray:
        kept = _kept.get()
        if kept is None:
            return read(models, X, classes)
        # Models are identified by their id, which is faster than a hash. They are kept with the
        # values, so that no other model can get the same id.
        of_rows = _hash_of(X, classes)
        if of_rows is None:
            return read(models, X, classes)
        key = f"{[id(model) for model in models]} {of_rows}"
        if key not in kept:
            kept[key] = [*models], read(models, X, classes)
        return copy(kept[key][1])

    return found
