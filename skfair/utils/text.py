"""Texts that many messages need: counts, short lists, and suggestions for misspelt names.

Further functions are about characters: :func:`visible` makes text safe to print in a terminal,
:func:`check_text` raises for text that cannot be encoded, and :func:`spelled_alike` and
:func:`abbreviated` find levels that are probably the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from math import ceil, floor, log10
from typing import Any, cast

# An error message lists at most this many items, and then says "and 7 more".
_MAX_LISTED = 5


def listed(items: Iterable[Any]) -> str:
    """List the ``repr`` of the first items, and say how many were left out."""
    return listed_in([visible(i) if isinstance(i, str) and "'" in i else repr(i) for i in items])


def listed_in(items: list[str]) -> str:
    """List the first texts without quotation marks, and say how many were left out."""
    rest = len(items) - _MAX_LISTED
    return ", ".join(items[:_MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def plural(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n:,} {noun}s"


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return ``" Did you mean 'x'?"`` for the most similar known name, "" if none is similar."""
    own = {str(name).lower(): name for name in known}
    # A ColumnTransformer puts "passthrough__" before the names of columns.
    names = {text.rpartition("__")[2]: name for text, name in own.items()} | own
    near = get_close_matches(str(name).lower(), names, 1)
    return f" Did you mean {names[near[0]]!r}?" if near else ""


def settings_repr(settings: Any) -> str:
    """Return the ``repr`` of a dataclass: its first field, and others that are not the default.

    The first field that may be passed without a name is shown without it, and left out if None.
    """
    first = next((field.name for field in fields(settings) if not field.kw_only), None)
    shown: list[str] = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name == first:
            shown[:0] = [] if value is None else [repr(value)]
        elif value != field.default:
            shown.append(f"{field.name}={value!r}")
    return f"{type(settings).__name__}({', '.join(shown)})"


def visible(text: str) -> str:
    """Return text with control characters as escapes, because a terminal would execute them."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def check_text(values: Iterable[Any], what: str) -> None:
    """Raise if a text has half of a surrogate pair, which cannot be encoded or shown."""
    for value in values:
        try:
            if isinstance(value, str) and not value.isascii():
                value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{what} {value!a} is no valid text: {error.object[error.start]!a} is half of a "
                "character. Read the data with the encoding in which they were written."
            ) from error


def rounded_up(value: float) -> str:
    """Return a positive number with two digits, which is not smaller."""
    unit = 10.0 ** (floor(log10(value)) - 1)
    return f"{ceil(value / unit - 1e-9) * unit:.2g}"


def spelled_alike(levels: Iterable[object]) -> list[list[object]]:
    """Return the levels that differ only in case, in spaces around them, or in type, in lists.

    "01", "1" and 1.0 are the same number.
    """
    alike: dict[str, list[object]] = {}
    for level in levels:
        is_whole = isinstance(level, float) and level.is_integer()
        text = str(int(cast(float, level)) if is_whole else level).strip().casefold()
        number = re.fullmatch(r"0*(\d+)(\.0*)?", text)
        alike.setdefault(number[1] if number else text, []).append(level)
    return [spellings for spellings in alike.values() if len(spellings) > 1]


def abbreviated(levels: Iterable[object]) -> list[list[object]]:
    """Return pairs of a word and its first letter, such as "male" and "M", if there are several.

    A single pair may be chance: a grade "A" and a level "absent".
    """
    texts = {str(level).strip().casefold(): level for level in levels if isinstance(level, str)}
    words = [text for text in texts if len(text) > 2]
    pairs: list[list[object]] = []
    for letter in (text for text in texts if len(text) == 1 and text.isalpha()):
        meant = [word for word in words if word.startswith(letter)]
        if len(meant) == 1:
            pairs.append([texts[letter], texts[meant[0]]])
    return pairs if len(pairs) > 1 else []
