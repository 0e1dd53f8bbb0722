"""Warnings that point at the line of the user, however many layers lie in between."""

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

# Frames in the folders of these packages are not the user's. None is imported here: what calls us
# is loaded, and kernels, which warn too, load in a third of the time without scikit-learn.
_PACKAGES = ("skfair", "sklearn", "joblib")

# Code of functions whose caller is the user, even where what they call is not in these folders.
_ENTRANCES: set[CodeType] = set()

# The kinds of warnings that :func:`warn_user` does not give, in this thread.
_unwanted: contextvars.ContextVar[tuple[type[Warning], ...]] = contextvars.ContextVar(
    "unwanted", default=()
)
# How many threads hide warnings of other packages by each filter, and the lists that it was put
# into; the lock guards both.
_hiding: Counter[tuple[Any, ...]] = Counter()
_lists: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)
_LOCK = threading.Lock()

Function = TypeVar("Function", bound=Callable[..., object])


def entrance(function: Function) -> Function:
    """Decorate a wrapper around code that may be somebody else's: its caller is the user.

    An estimator outside this package has a ``fit`` of its own, which calls the one here. Warnings
    must point at the line that calls that ``fit``, not at a line of it.
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
    # A folder ends with a separator: a script of the user's may lie beside it and begin like it.
    loaded = (sys.modules[name] for name in _PACKAGES if name in sys.modules)
    folders = tuple(str(Path(str(module.__file__)).parent) + os.sep for module in loaded)
    outside = (k for k in range(inside, len(stack)) if not stack[k].co_filename.startswith(folders))
    warnings.warn(message, category, stacklevel=next(outside, len(stack) - 1) + 2)


def is_unwanted(category: type[Warning]) -> bool:
    """Whether warnings of this package and of a kind are not given here."""
    return issubclass(category, _unwanted.get())


@contextmanager
def unwanted(*categories: type[Warning]) -> Iterator[None]:
    """Give no warnings of this package and of some kinds: what other threads do is warned of.

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

    Filters belong to the whole process. Where ``warnings.catch_warnings`` overlaps in two threads,
    the filters of one stay behind; here the last thread takes away what the first has added, also
    from a list that code of others has set aside meanwhile.

    Examples
    --------
    >>> import warnings
    >>> from skfair.utils.warn import hidden
    >>> with hidden("Number of", UserWarning):
    ...     warnings.warn("Number of distinct clusters (1) found")
    """
    entry = ("ignore", re.compile(message, re.IGNORECASE), category, None, 0)
    with _LOCK:
        is_ours = bool(_hiding[entry]) or entry not in warnings.filters  # or else the user's
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
    """Return the code of a frame, of its caller, and so on, without those of an import.

    ``warnings.warn`` does not count these either.
    """
    codes = []
    while frame is not None:
        name = frame.f_code.co_filename
        if not ("importlib" in name and "_bootstrap" in name):
            codes.append(frame.f_code)
        frame = frame.f_back
    return codes
