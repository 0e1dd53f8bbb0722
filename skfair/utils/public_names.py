"""Where public names of skfair are, for errors about names that are looked for elsewhere.

The lists ``__all__`` are read from the source, because an error must not import all packages.
"""

from __future__ import annotations

import ast
import sys
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from skfair.utils.text import did_you_mean
from skfair.utils.wings import names_of_wings

_ROOT = Path(__file__).parents[1]
# How similar a name of another package must be to be suggested. At 0.6, which did_you_mean takes
# for the short list of one package, one of 300 names is similar to nearly every word.
_SIMILAR = 0.8


@cache
def homes() -> dict[str, str]:
    """Return the package of each public name. A sub-package is a name of "skfair".

    Examples
    --------
    >>> from skfair.utils.public_names import homes
    >>> homes()["audit"], homes()["cluster"]
    ('skfair.report', 'skfair')
    """
    found: dict[str, str] = {}
    own = _listed("skfair", _ROOT / "__init__.py")
    for package in (*own, "papers"):  # papers may be missing, so it is not in __all__
        for file in (_ROOT / package / "__init__.py", _ROOT / f"{package}.py"):
            if file.exists():
                found |= dict.fromkeys(_listed(f"skfair.{package}", file), f"skfair.{package}")
    return found | dict.fromkeys(own, "skfair")


def _listed(package: str, file: Path) -> list[str]:
    """Return the texts in the list ``__all__`` of a file, and the names that wings add to it."""
    for line in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            texts = (part for part in ast.walk(line.value) if isinstance(part, ast.Constant))
            return [*(str(text.value) for text in texts), *names_of_wings(package)]
    return []


def where_it_is(name: str, package: str) -> str:
    """Return a sentence on a name that a package lacks: its home, or the most similar name.

    The sentence has a space before it, and is empty if no public name is similar.
    """
    known = homes()
    if name in known and known[name] != package:
        return f" It is in {known[name]}: from {known[name]} import {name}."
    own = vars(sys.modules[package]).get("__all__", ()) if package in sys.modules else ()
    if hint := did_you_mean(name, own):
        return hint
    others = {public.lower(): public for public in known}
    near = get_close_matches(name.lower(), others, 1, _SIMILAR)
    return f" Did you mean {known[others[near[0]]]}.{others[near[0]]}?" if near else ""
