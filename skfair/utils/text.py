"""Phrases that repeat in messages: counts and short lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

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
