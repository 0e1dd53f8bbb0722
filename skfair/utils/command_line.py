"""The parts of a command of ``python -m skfair``; wings and ``__main__.py`` make them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

# The arguments of a command. The outer key is the title above them in the help ("" for argparse's
# own title), and the inner key is the name of the argument. The value is the text of the help, and
# the keywords of ``add_argument``.
Options: TypeAlias = dict[str, dict[str, tuple[str, dict[str, Any]]]]


class Command(NamedTuple):
    """A command: the texts of its help, its function, and its arguments."""

    text: str  # what it does, in a few words
    examples: str  # command lines, the first of which begins the help
    run: Callable[[argparse.Namespace], int]  # returns the exit code
    options: Options
