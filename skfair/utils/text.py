"""Phrases that repeat: counts and short lists in messages, shared paragraphs of docstrings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., object])

# How many items an error message lists before it says "and 7 more".
_MAX_LISTED = 5


def listed(items: Iterable[Any]) -> str:
    """List a few items and say how many were left out."""
    items = [item if isinstance(item, str) and "'" in item else repr(item) for item in items]
    rest = len(items) - _MAX_LISTED
    shown = ", ".join(items[:_MAX_LISTED])
    return f"{shown} and {rest} more" if rest > 0 else shown


def plural(n: int, noun: str) -> str:
    """Return ``"1 row"`` or ``"2 rows"``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def filler(paragraphs: dict[str, str]) -> Callable[[_Function], _Function]:
    """Make a decorator that replaces ``%(name)s`` in a docstring by the paragraph of that name."""

    def fill(function: _Function) -> _Function:
        if function.__doc__ is not None:  # python -OO strips docstrings
            # From Python 3.13 on docstrings come without their indentation, before with it.
            function.__doc__ = cleandoc(function.__doc__) % paragraphs
        return function

    return fill
