"""Names of other libraries, and their counterparts in skfair, from ``other_names.toml``.

Errors about unknown names end with the sentence of :func:`name_in_skfair`. The page "From another
library" of the documentation prints the same table. Names that earlier versions of skfair had stand
in it as well, and names of parts of skfair that may be missing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Container
from functools import cache
from types import FrameType
from typing import Any


@cache
def _read() -> dict[str, Any]:
    import tomllib  # here, because only few who import the package need the table
    from importlib.resources import files

    text = (files("skfair.utils") / "other_names.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def tables() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each library."""
    return {library: rows for library, rows in _read().items() if library != "parts"}


def parts() -> list[str]:
    """Return the names that skfair lacks if a part of it is not installed."""
    return list(_read()["parts"])


def name_in_skfair(name: str, arguments: Container[str] | None = None) -> str:
    """Return a sentence on a name of another library, with a space before it, or nothing.

    ``arguments`` are those of the function if the name is an argument that it does not have. A row
    that is about an argument is used only if its counterpart is one of them, and rows about modules
    are not used. If ``arguments`` is None, the name is an attribute or a module, and rows about
    arguments are not used.

    Examples
    --------
    >>> from skfair.utils.other_names import name_in_skfair
    >>> print(name_in_skfair("GridSearch").strip())
    GridSearch is a name of fairlearn. In skfair, use skfair.model_selection.fairness_path
    (a grid of limits instead of multipliers).
    >>> name_in_skfair("difference_bound", ["alpha"])
    ''
    """
    for library, rows in tables().items():
        for row in rows:
            applies = "argument" not in row or row["argument"] in (arguments or ())
            applies &= arguments is None or "is_module" not in row
            if applies and name in row["names"]:
                instead, difference = _plain(row["here"]), _plain(row.get("difference", ""))
                said = f"In skfair, use {instead}" if instead else "Nothing in skfair does the same"
                added = f" ({difference})" if difference else ""
                return f" {name} is a name of {library}. {said}{added}."
    return ""


def _plain(text: str) -> str:
    """Return reStructuredText without its marks for code and references."""
    text = re.sub(r"``(.*?)``", r"\1", text)
    return re.sub(r"`(?:[^`<]* <|~)?([\w.]+)>?`", r"\1", text)


class MissingAttribute(AttributeError):
    """An error about an attribute that an object lacks, with the word of skfair for its name.

    The table is read when the error is printed, because ``hasattr`` asks for many attributes.
    """

    def __str__(self) -> str:
        said, name = super().__str__(), self.name or "_"
        hint = "" if name.startswith("_") else name_in_skfair(name)
        return f"{said}.{hint}" if hint else said


def no_attribute(owner: object, name: str) -> Any:
    """Raise for an attribute that an object lacks: the end of a ``__getattr__``."""
    if hasattr(type(owner), name):
        return object.__getattribute__(owner, name)  # raises the error of a property
    said = f"{type(owner).__name__!r} object has no attribute {name!r}"
    raise MissingAttribute(said, name=name, obj=owner)


def missing_attribute(module: str, name: str, caller: FrameType, more: str = "") -> Exception:
    """Return the error about a name that a module does not have, perhaps with one sentence more.

    It is an AttributeError, except in ``from module import name``, because there Python replaces an
    AttributeError by an error without our sentence.
    """
    from opcode import opmap

    hint = "" if name.startswith("_") else more or _hint(name, module)
    if hint and caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {module!r}.{hint}", name=name)
    said = f"module {module!r} has no attribute {name!r}{'.' * bool(hint)}{hint}"
    # With its name, Python does not end the error with a guess of its own.
    return AttributeError(said, name=name)


def _hint(name: str, module: str) -> str:
    """Return the place of a name of skfair, its word for one of other libraries, or a guess."""
    from skfair.utils.public_names import homes, where_it_is

    is_missing = name in parts() and name not in homes()
    said = name_in_skfair(name)
    if is_missing:
        return f"{said} It is of a part of skfair that is not installed."
    return said or where_it_is(name, module)


class ModulesOfOthers:
    """Explains modules of other libraries in ``sys.meta_path``: ``import skfair.reductions``.

    It stands at the end, so that it is asked only about modules that nobody finds.
    """

    def find_spec(self, module: str, path: Any = None, target: Any = None) -> None:
        """Raise with the sentence on a name of another library, or find nothing."""
        package, _, name = module.rpartition(".")
        if package == "skfair" and (hint := name_in_skfair(name)):
            raise ModuleNotFoundError(f"No module named {module!r}.{hint}", name=module)


def explain_modules_of_others() -> None:
    """Let errors about modules of other libraries say where their names are in skfair."""
    if not any(type(finder).__name__ == "ModulesOfOthers" for finder in sys.meta_path):
        sys.meta_path.append(ModulesOfOthers())


def other_names(module: str) -> Callable[[str], Any]:
    """Return ``__getattr__`` for a module, whose errors explain names of other libraries."""

    def get(name: str) -> Any:
        raise missing_attribute(module, name, sys._getframe(1))

    return get
