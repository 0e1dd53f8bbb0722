"""Ranges of the parameters of solvers: written beside each field, checked in one place.

:func:`skfair.solvers.base.check_needs` and others call :func:`check_parameters` before a run. It
does for solvers what scikit-learn does for estimators with ``_parameter_constraints``. A solver is
a dataclass, and the annotation of a field says what it may be::

    rho: Positive = 10.0
    gamma0: Annotated[float, Interval(Real, 0, 1, closed="right")] = 0.7
    output: Literal["last", "average"] = "last"

A plain ``float`` or ``int`` may be any number that is not NaN. Other types are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, partial
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skfair.utils.text import listed

Positive = Annotated[float, Interval(Real, 0, None, closed="neither")]
PositiveOrInf = Annotated[float, Interval(Real, 0, None, closed="right")]
NonNegative = Annotated[float, Interval(Real, 0, None, closed="left")]
Share = Annotated[float, Interval(Real, 0, 1, closed="right")]  # above 0 and at most 1
ShareOrZero = Annotated[float, Interval(Real, 0, 1, closed="both")]
Count = Annotated[int, Interval(Integral, 1, None, closed="left")]
CountOrZero = Annotated[int, Interval(Integral, 0, None, closed="left")]

_ANY_NUMBER = {
    float: Interval(Real, None, None, closed="both"),
    int: Interval(Integral, None, None, closed="neither"),
}
# Returns the types of the fields of a class. Annotations are text that has to be evaluated, so the
# result is kept.
field_types: Callable[[type], dict[str, Any]] = cache(partial(get_type_hints, include_extras=True))


def check_parameters(solver: object) -> None:
    """Raise a ``ValueError`` that names the first parameter of a solver with an invalid value.

    A solver that is no dataclass is not checked.
    """
    if not is_dataclass(solver):
        return
    hints = field_types(type(solver))
    for field in fields(solver):
        value = vars(solver)[field.name]
        fault = _fault(value, hints[field.name])
        if fault:
            described = f"{type(solver).__name__}({field.name}={value!r})"
            raise ValueError(f"{described}: {field.name} must be {fault}.")


def _fault(value: Any, kind: Any) -> str | None:
    """Return a text that says what a value must be; None if the type ``kind`` allows the value."""
    options = get_args(kind)
    if NoneType in options:  # ``kind | None``
        if value is None:
            return None
        (kind,) = (option for option in options if option is not NoneType)
        options = get_args(kind)
    ranges = [option for option in options if isinstance(option, Interval)]
    ranges += [_ANY_NUMBER[kind]] if kind in _ANY_NUMBER else []
    for interval in ranges:
        if isinstance(value, bool) or not interval.is_satisfied_by(value):
            return _words(value, interval)
    named = [option.options for option in options if isinstance(option, StrOptions)]
    choices = [choice for options_ in named for choice in options_]
    if options and all(isinstance(option, str) for option in options):  # a Literal
        choices = list(options)
    if choices and value not in choices:
        return f"one of {listed(sorted(choices))}"
    return None


def _words(value: Any, interval: Interval) -> str:
    """Return the range that an interval allows, in words; "finite" if the value is infinite."""
    if isinstance(value, Real) and abs(value) == np.inf and np.inf not in interval:
        return "finite"
    ends = []
    if interval.left is not None:
        is_open = interval.closed in ("right", "neither")
        # Counts are described as in scikit-learn's messages: "above 0", not "at least 1".
        is_count = interval.type is Integral and interval.left == 1
        low = interval.left - 1 if is_count else interval.left
        ends.append(f"above {low}" if is_open or is_count else f"at least {low}")
    if interval.right is not None:
        is_open = interval.closed in ("left", "neither")
        ends.append(f"{'below' if is_open else 'at most'} {interval.right}")
    what = "an integer" if interval.type is Integral else "a number"
    return " ".join([what, *[" and ".join(ends)] * bool(ends)])
