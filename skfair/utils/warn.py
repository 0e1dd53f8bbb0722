"""Warnings that point at the line of the user, through any number of layers.

:func:`warn_user` gives all warnings of the package. Inside ``with unwanted(...)`` it gives no
warnings of some kinds. ``with hidden(...)`` hides warnings of other packages.
"""

from __future__ import annotations

import contextvars
import os
import re
import sys
import threading
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar, cast

# Frames in the folders of these packages do not belong to the user. The packages are not imported
# here. If one of them is in the stack, it is loaded already. Kernels, which also warn, load in a
# third of the time without scikit-learn.
_PACKAGES = ("skfair", "sklearn", "joblib")

# Code of functions decorated by `entrance`. Their caller is the user, even if frames further inside
# are outside of these folders.
_ENTRANCES: set[CodeType] = set()

# The kinds of warnings that :func:`warn_user` does not give, in this thread.
_unwanted: contextvars.ContextVar[tuple[type[Warning], ...]] = contextvars.ContextVar(
    "unwanted", default=()
)
# For each filter of `hidden`, the number of threads that need it now, and the lists of filters into
# which it was put. The lock guards both.
_hiding: Counter[tuple[Any, ...]] = Counter()
_lists: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)
_LOCK = threading.Lock()

Function = TypeVar("Function", bound=Callable[..., object])


def entrance(function: Function) -> Function:
    """Decorate a wrapper around code that may be outside of this package: its caller is the user.

    An estimator outside this package has a ``fit`` that calls functions here. Warnings must point
    at the line that calls this ``fit``, not at a line inside it.
    """
    _ENTRANCES.add(cast(FunctionType, function).__code__)
    return function


def warn_user(
    message: str,  # what is wrong, what was received, what to do
    category: type[Warning] = UserWarning,  # the kind of warning
) -> None:
    """Warn as if from the innermost line outside this package and scikit-learn."""
    if is_unwanted(category):
        return
    stack = _stack(sys._getframe(1))
    inside = next((k for k, code in enumerate(stack) if code in _ENTRANCES), 0)
    # A folder ends with a separator. Otherwise a script skfair_demo.py next to it would count too.
    loaded = (sys.modules[name] for name in _PACKAGES if name in sys.modules)
    folders = tuple(str(Path(str(module.__file__)).parent) + os.sep for module in loaded)
    outside = (k for k in range(inside, len(stack)) if not stack[k].co_filename.startswith(folders))
    warnings.warn(message, category, stacklevel=next(outside, len(stack) - 1) + 2)


def is_unwanted(category: type[Warning]) -> bool:
    """Whether this thread is inside ``unwanted`` of this kind, so that checks can be left out."""
    return issubclass(category, _unwanted.get())


@contextmanager
def unwanted(*categories: type[Warning]) -> Iterator[None]:
    """Give no warnings of this package of these kinds, in this thread only.

    Examples
    --------
    >>> from skfair.utils.warn import unwanted, warn_user
    >>> with unwanted(UserWarning):
    ...     warn_user("Nobody needs to know.")
    """
    token = _unwanted.set((*_unwanted.get(), *categories))
    try:
        yield
    finally:
        _unwanted.reset(token)


@contextmanager
def hidden(message: str, category: type[Warning]) -> Iterator[None]:
    """Hide warnings of other packages that begin with a message, in any number of threads.

    Filters belong to the whole process. If ``warnings.catch_warnings`` of two threads overlap, the
    filters of one thread remain at the end. Here the first thread adds the filter and the last one
    removes it, also from lists of filters that other code has saved in between.

    Examples
    --------
    >>> import warnings
    >>> from skfair.utils.warn import hidden
    >>> with hidden("Number of", UserWarning):
    ...     warnings.warn("Number of distinct clusters (1) found")
    """
    entry = ("ignore", re.compile(message, re.IGNORECASE), category, None, 0)
    with _LOCK:
        # A filter that existed before belongs to the user and must stay.
        is_ours = bool(_hiding[entry]) or entry not in warnings.filters
        if is_ours:
            _hiding[entry] += 1
            warnings.filterwarnings("ignore", message, category)
            _lists[entry].append(warnings.filters)
    try:
        yield
    finally:
        with _LOCK:
            _hiding[entry] -= is_ours
            if is_ours and not _hiding[entry]:
                for filters in (*_lists.pop(entry), warnings.filters):
                    if entry in filters:
                        filters.remove(entry)


def _stack(frame: FrameType | None) -> list[CodeType]:
    """Return the code of a frame, of its caller, and so on, without frames of the import system.

    ``warnings.warn`` does not count these frames in its ``stacklevel``, either.
    """
    codes = []
    while frame is not None:
        name = frame.f_code.co_filename
        if not ("importlib" in name and "_bootstrap" in name):
            codes.append(frame.f_code)
        frame = frame.f_back
    return codes
