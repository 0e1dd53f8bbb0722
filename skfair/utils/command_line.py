"""What a command of ``python -m skfair`` is made of."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

# The arguments by the title above them in the help, "" for that of argparse: what the help says of
# each, and how argparse reads it.
Options: TypeAlias = dict[str, dict[str, tuple[str, dict[str, Any]]]]


class Command(NamedTuple):
    """What the help says of a command, what runs it, and its arguments."""

    text: str
    examples: str
    run: Callable[[argparse.Namespace], int]
    options: Options
