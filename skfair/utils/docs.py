"""Docstrings in which a paragraph that many objects share is written once.

A docstring only describes parameters that no other object has. ``@documented`` adds the others of
the signature, in its order. It takes them from a base class that describes them, from the
paragraphs of a vocabulary, or from another method of the class. A class also inherits the
descriptions of fitted attributes from its bases. The entry of ``status_`` lists the endings of a
class (``_endings``, see :mod:`skfair.utils.endings`). So ``help`` and the reference pages show
complete sections.

:func:`documenter` makes the decorator from a vocabulary. ``documented`` at the end of the file is
the decorator for estimators. Its vocabulary ``PARAGRAPHS`` is read from two functions that exist
only for their docstrings.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from skfair.utils.endings import listing

_Thing = TypeVar("_Thing", bound=Callable[..., Any])

# Methods that read new rows. For these the paragraph "new.X" replaces "X".
_OF_NEW_ROWS = {"decision_function", "predict", "predict_proba", "predict_log_proba", "score"}


def documenter(shared: Mapping[str, str]) -> Callable[[_Thing], _Thing]:
    """Make a decorator that completes the docstring of a function, or of a class and its methods.

    ``shared`` holds the paragraph of each parameter. A key may also be the name of a section, such
    as "Returns", which is added to functions without it. "fit.Returns" is for functions called fit,
    and ``{owner}`` is replaced by the class. "Attributes" belong to all classes. "new.X" describes
    X of methods that predict and score, which read new rows.

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
        if inspect.isclass(thing):
            _complete_class(thing, shared)
        else:
            _complete(thing, shared, _ends_of(thing, shared))
        return thing

    return document


def _complete_class(cls: type, shared: Mapping[str, str]) -> None:
    """Complete the docstrings of a class and of its public methods."""
    bases = cls.__mro__[:0:-1]
    # Class methods and methods with ``available_if`` are wrapped, so the function inside is taken.
    members = {
        name: getattr(member, "__func__", getattr(member, "fn", member))
        for name, member in vars(cls).items()
    }
    methods = {
        name: member
        for name, member in members.items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    siblings = _all_described([cls, *reversed(methods.values())]) | {**shared}
    new = {name[4:]: text for name, text in shared.items() if name.startswith("new.")}
    for name, method in methods.items():
        inherited = [vars(base)[name] for base in bases if name in vars(base)]
        of_rows = new if name in _OF_NEW_ROWS else {}
        known = siblings | of_rows | _all_described(inherited)
        _complete(method, known, _ends_of(method, shared))
    own, of_bases = described(cls, "Attributes"), _all_described(bases, "Attributes")
    if endings := getattr(cls, "_endings", ()):
        status = own.get("status_", "status_ : str\n    How the fit ended.")
        own["status_"] = f"{status}\n\n{listing(endings)}"
    fitted = {name: text for name, text in of_bases.items() if name.endswith("_")}
    fitted = _by_name(shared.get("Attributes", "")) | fitted
    attributes = "\n".join(dict.fromkeys([*own.values(), *(fitted | own).values()]))
    _complete(cls, {**shared} | _all_described(bases), {"Attributes": attributes})


def _ends_of(function: Any, shared: Mapping[str, str]) -> dict[str, str]:
    """Return the shared sections at the end of a docstring, for this function's name or for all."""
    name, owner = function.__name__, function.__qualname__.split(".")[0]
    ends = {end: shared.get(f"{name}.{end}", shared.get(end)) for end in ("Returns", "Raises")}
    return {end: body.replace("{owner}", owner) for end, body in ends.items() if body}


def _complete(thing: Any, known: Mapping[str, str], ends: Mapping[str, str]) -> None:
    """Complete a docstring: parameters from ``known``, sections from ``ends``.

    The docstring's own paragraphs and sections are kept.
    """
    if not thing.__doc__:  # python -OO strips docstrings
        return
    sections, own = _sections(thing.__doc__), described(thing)
    names = inspect.signature(thing).parameters
    listed = dict.fromkeys(own.get(name) or known.get(name) for name in names)
    complete = {"": sections.pop(""), "Parameters": "\n".join(filter(None, listed)), **ends}
    for section in ("Parameters", "Attributes"):
        sections.pop(section, None)
    thing.__doc__ = "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{body}" if name else body
        for name, body in (complete | sections).items()
        if body
    )


def _sections(doc: str) -> dict[str, str]:
    """Split a numpydoc docstring into its sections; the first has no name."""
    # Before Python 3.13 docstrings have the indentation of the source, since then they do not.
    parts = re.split(r"^(\S.*)\n-{3,}\n", inspect.cleandoc(doc), flags=re.M)
    bodies = (body.strip("\n") for body in parts[::2])
    return dict(zip(["", *parts[1::2]], bodies, strict=True))


def described(thing: Any, section: str = "Parameters") -> dict[str, str]:
    """Return the paragraph of each parameter, or attribute, that a docstring describes.

    ``documenter(described(function))`` completes other docstrings by the paragraphs of a function.
    """
    return _by_name(_sections(thing.__doc__ or "").get(section, ""))


def _by_name(body: str) -> dict[str, str]:
    """Return the paragraphs of a section by the names that they describe."""
    paragraphs = {}
    for paragraph in filter(None, re.split(r"\n(?=\S)", body)):
        for name in paragraph.split("\n")[0].split(" :")[0].split(", "):
            paragraphs[name.lstrip("*")] = paragraph.rstrip()
    return paragraphs


def _all_described(things: Iterable[Any], section: str = "Parameters") -> dict[str, str]:
    """Return the paragraphs of several docstrings by name; for equal names the last one is used."""
    return {name: text for thing in things for name, text in described(thing, section).items()}


def _parameters() -> None:
    """Parameters of estimators and functions.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The input samples.
    y : object
        Not used, present for API consistency by convention.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples. If None, all samples have the same weight.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        Sensitive attributes, which define the group of each sample, for example its sex. An array
        with several columns has one attribute per column.
    control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        Attributes that may explain differences between groups, such as the department. Constraints
        then hold within each of their levels. The levels of several columns are crossed.
    units : array-like of shape (n_samples,), default=None
        Identifier of the person that each row belongs to, if a person may have several rows, such
        as visits. All rows of a person are kept in the same fold, and a certificate counts people
        instead of rows. If None, each row is treated as a different person. A fit that uses neither
        folds nor ``certificate`` raises an error if ``units`` is passed, because it would have no
        effect.
    intersectional : bool, default=True
        If True, the groups are the intersections of all attributes. If False, groups are compared
        within each attribute separately, and the comparisons are pooled.
    sensitive : str, int, list of them or Sensitive, default=None
        Names or positions of the columns of X that hold the sensitive attributes. The model does
        not use these columns as features. In a pipeline, positions refer to the columns that this
        step receives. Pass a :class:`~skfair.Sensitive` for more options. If None, the attributes
        are passed to ``fit`` as ``sensitive_features``.
    certificate : float or Certificate, default=None
        Confidence level at which the limits are certified for the population, for example 0.95.
        Pass a :class:`~skfair.Certificate` for more options. If None, the limits hold on the
        training rows only. The disparity in the population then exceeds them in about half of the
        fits.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator. Pass an int for reproducible results.
    """


def _of_new_rows() -> None:
    """Parameters of methods that predict.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        Sensitive attributes of the samples. They are needed if predictions use the group and X
        does not contain it.
    control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        Control features of the samples. They are needed if constraints hold within their levels
        and X does not contain them.
    """


PARAGRAPHS = {
    **described(_parameters),
    **{f"new.{name}": text for name, text in described(_of_new_rows).items()},
    "fit.Returns": "self : {owner}\n    The fitted estimator.",
    "partial_fit.Returns": "self : {owner}\n    The fitted estimator.",
}
documented = documenter(PARAGRAPHS)
