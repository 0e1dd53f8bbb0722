"""Ranges of values that stand beside the fields of a dataclass."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Annotated, Any, ClassVar, Protocol, get_args, get_origin, get_type_hints

from sklearn.utils._param_validation import validate_parameter_constraints


class HasFields(Protocol):
    """An object of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def check_fields(settings: HasFields) -> None:
    """Raise an ``InvalidParameterError`` that names a field whose value cannot be used.

    A field ``n: Annotated[int, Interval(Integral, 1, None, closed="left")]`` takes what
    scikit-learn's validation takes there, and None where its type allows it.
    """
    hints = get_type_hints(type(settings), include_extras=True)
    ranges = {}
    for field in fields(settings):
        if get_origin(hints[field.name]) is Annotated:
            kind, *allowed = get_args(hints[field.name])
            ranges[field.name] = [*allowed, None] if type(None) in get_args(kind) else allowed
    values = {name: getattr(settings, name) for name in ranges}
    validate_parameter_constraints(ranges, values, caller_name=type(settings).__name__)
