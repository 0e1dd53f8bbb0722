"""The bridge from a solver's iterations to scikit-learn's callbacks.

A solver knows only a function ``callback(state) -> bool`` that it calls after each iteration and
that may ask it to stop. :func:`report_iterations` makes that function out of an estimator's
callback context, so ``ProgressBar`` and ``ScoringMonitor`` follow every solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Callback = Callable[[Any], bool]


@contextmanager
def report_iterations(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    max_iter: int | None,
    attributes: Callable[[Any], dict[str, Any]],
) -> Iterator[Callback]:
    """Open the fit task of an estimator and yield the callback for its solver.

    Parameters
    ----------
    estimator : estimator with ``CallbackSupportMixin``
        The estimator being fitted; its ``fit`` must be decorated with
        :func:`skfair.utils.fitting.fit_method`.
    X, y : array-like
        The training data as the user passed them: what a monitor scores on.
    max_iter : int or None
        The largest number of iterations, or None if it is not known.
    attributes : callable
        Turns a solver's state into the fitted attributes that ``predict`` needs. It is called only
        if a callback wants a fitted estimator.

    Yields
    ------
    callback : callable
        ``callback(state) -> stop``; call it once after each iteration.
    """
    context = estimator._init_callback_context(max_subtasks=max_iter)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    open_task: Any = None
    n_begun = 0

    def begin() -> None:
        nonlocal open_task, n_begun
        if max_iter is None or n_begun < max_iter:
            open_task = context.subcontext(task_name="iteration")
            open_task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
            n_begun += 1

    def callback(state: Any) -> bool:
        nonlocal open_task
        if open_task is None:
            return False
        stop = open_task.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, reconstruction_attributes=lambda: attributes(state)
        )
        open_task = None
        if not stop:
            begin()
        return bool(stop)

    if not getattr(estimator, "_skl_callbacks", None):
        yield lambda state: False
    else:
        begin()
        yield callback
        if open_task is not None:  # begun for an iteration that the solver did not need
            open_task.call_on_fit_task_end(estimator=estimator)
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)
