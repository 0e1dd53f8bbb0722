"""Signatures that people read, in ``help``, in notebooks and on the reference pages.

A class with the attribute ``__signature__ = ReadableSignature()`` shows the arguments of its
``__init__``, also if it has a ``__new__`` (``NamedArguments``), from which Sphinx would take them.
Types are shown without quotation marks and without ranges, which the docstrings have in words.
"""

from __future__ import annotations

import ast
import sys
from inspect import Parameter, Signature, signature
from typing import Any, cast


class ReadableSignature:
    """The signature of the class that has it as its attribute ``__signature__``.

    Examples
    --------
    >>> import inspect
    >>> from skfair.solvers import Arpack
    >>> print(inspect.signature(Arpack))
    (max_iter: int = 300)
    """

    def __get__(self, instance: object, owner: type) -> Signature:
        if instance is not None:  # instances are not called
            raise AttributeError("__signature__")
        init: Any = owner.__init__  # type: ignore[misc]
        if init is object.__init__:
            return Signature()
        _, *own = signature(init).parameters.values()
        return Signature([_readable(parameter, owner) for parameter in own])


class _Words(str):
    """An annotation as text. Its ``repr``, which ``help`` prints, is made when it is needed."""

    owner: type

    def __repr__(self) -> str:
        modules = (sys.modules.get(kind.__module__) for kind in reversed(self.owner.__mro__))
        names = {name: value for module in modules for name, value in vars(module).items()}
        return ast.unparse(_WithoutRanges(names).visit(ast.parse(self, mode="eval")))


class _WithoutRanges(ast.NodeTransformer):
    """Replaces ``Annotated[float, ...]``, and names of such types, by ``float``."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the name of an annotated type."""
        known: Any = self.names.get(node.id)
        is_annotated = hasattr(known, "__metadata__")
        return ast.Name(known.__origin__.__name__) if is_annotated else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Take the type out of ``Annotated``."""
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            return cast(ast.expr, self.visit(node.slice.elts[0]))
        self.generic_visit(node)
        return node


def _readable(parameter: Parameter, owner: type) -> Parameter:
    if not isinstance(parameter.annotation, str):
        return parameter
    words = _Words(parameter.annotation)
    words.owner = owner
    return parameter.replace(annotation=words)
