"""Docstrings in which a paragraph that many objects share is written once.

A docstring describes the parameters that are its own. ``@documented`` adds the others of the
signature, in its order: from a base class that describes them, or from the paragraphs of a
vocabulary. ``help`` and the reference pages then show complete sections.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

_Thing = TypeVar("_Thing", bound=Callable[..., Any])

PARAGRAPHS = {
    "X": """X : array-like or sparse matrix of shape (n_samples, n_features)
    The rows.""",
    "y": """y : object
    Not used; exists for compatibility.""",
    "sample_weight": """sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows.""",
    "sensitive_features": """\
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
    The group of each row.""",
    "control_features": """\
control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
    Allowed attributes, such as the department, for rules that hold within each of their
    levels; several columns are crossed.""",
    "intersectional": """intersectional : bool, default=True
    Whether several attributes are crossed, or limited one by one (their groups overlap).""",
    "sensitive_columns": """sensitive_columns : str, int or list of them, default=None
    Columns of X that hold the attributes, for work without metadata routing.""",
    "random_state": """random_state : int, RandomState instance or None, default=None
    Seed.""",
}


def documenter(shared: Mapping[str, str] = PARAGRAPHS) -> Callable[[_Thing], _Thing]:
    """Make a decorator that completes the docstring of a function, or of a class and its methods.

    ``shared`` holds the paragraph of each parameter. Its key may also be the name of a section,
    such as "Returns", that is added where there is none.

    Examples
    --------
    >>> from skfair.utils.docs import documenter
    >>> @documenter({"x": "x : float"})
    ... def square(x):
    ...     '''Return x squared.'''
    >>> square.__doc__.splitlines()[-1]
    'x : float'
    """

    def document(thing: _Thing) -> _Thing:
        if not inspect.isclass(thing):
            _complete(thing, shared)
            return thing
        bases = thing.__mro__[:0:-1]
        for name, member in vars(thing).items():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and not name.startswith("_"):
                inherited = [vars(base)[name] for base in bases if name in vars(base)]
                _complete(function, shared, inherited)
        _complete(thing, shared, bases)
        return thing

    return document


def _complete(thing: Any, shared: Mapping[str, str], bases: Iterable[Any] = ()) -> None:
    """Add what the docstring of a function or class does not say itself."""
    if not thing.__doc__:  # python -OO strips docstrings
        return
    known = dict(shared)
    for base in bases:
        known |= _paragraphs(_sections(base.__doc__ or "").get("Parameters", ""))
    sections = _sections(thing.__doc__)
    own = _paragraphs(sections.get("Parameters", ""))
    names = inspect.signature(thing).parameters
    listed = dict.fromkeys(own.get(name) or known.get(name) for name in names)
    head = {"": sections[""], "Parameters": "\n".join(filter(None, listed))}
    added = {name: shared[name] for name in ("Returns", "Raises") if name in shared}
    thing.__doc__ = "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{body}" if name else body
        for name, body in (
            head | added | {k: v for k, v in sections.items() if k not in head}
        ).items()
        if body
    )


def _sections(doc: str) -> dict[str, str]:
    """Split a numpydoc docstring into its sections; the first has no name."""
    # From Python 3.13 on docstrings come without their indentation, before with it.
    parts = re.split(r"^(\S.*)\n-{3,}\n", inspect.cleandoc(doc), flags=re.M)
    bodies = (body.strip("\n") for body in parts[::2])
    return dict(zip(["", *parts[1::2]], bodies, strict=True))


def _paragraphs(section: str) -> dict[str, str]:
    """Split a section into paragraphs by the names of what they describe."""
    found = {}
    for paragraph in re.split(r"\n(?=\S)", section):
        for name in paragraph.split("\n")[0].split(" :")[0].split(", "):
            found[name.lstrip("*")] = paragraph
    return found


documented = documenter()
