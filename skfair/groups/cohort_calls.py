"""Calls with a cohort in place of columns: the decorators that let functions take one.

With :func:`takes_cohort` a function makes a cohort of its arguments in its first line
(``cohort_of(**locals())``), or is given one. What follows is the same, so both calls have equal
results, and the tables of a cohort are kept. A function that keeps no tables is decorated with
:func:`spreads_cohort`, and is called with the columns of the cohort.

With ``data=`` columns are named, as in seaborn: ``audit(data=table, y_pred="approved", ...)`` makes
the cohort by :meth:`Cohort.from_table`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from skfair.groups.cohort import COLUMNS, Cohort, columns_for, kinds_of
from skfair.groups.cohort_rows import refuse_kinds
from skfair.utils.keywords import OF_GROUPS, groups_by_name, refuse_unknown
from skfair.utils.text import listed

# Without these a function would say something else, so it must take them or raise.
_CHANGE_VALUES = ("control_features", "sample_weight")

P = ParamSpec("P")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class SaidOnce(Protocol[P, Result_co]):
    """A function that takes a cohort in place of its columns, or the columns themselves."""

    __name__: str

    @overload
    def __call__(self, people: Cohort, /, *questions: Any, **options: Any) -> Result_co: ...

    @overload
    def __call__(self, *names: Any, data: Any, **names_and_options: Any) -> Result_co: ...

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result_co: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Measure the rows."""


def takes_cohort(function: Callable[P, Result]) -> SaidOnce[P, Result]:
    """Decorate a function of columns: it also takes a :class:`Cohort` in their place.

    The cohort stands before or after a metric that is asked for, in place of the first column. The
    function makes a cohort of its arguments by :func:`cohort_of` and reads all columns from there.
    """
    return cast(SaidOnce[P, Result], _taking(function, lambda people, first: {first: people}))


def spreads_cohort(function: Callable[P, Result]) -> SaidOnce[P, Result]:
    """Decorate a function in the same way, which is then called with the columns of the cohort."""
    parameters = signature(function).parameters

    def columns_of(people: Cohort, _: str) -> dict[str, Any]:
        refuse_kinds(people)
        return columns_for(people, parameters)

    return cast(SaidOnce[P, Result], _taking(function, columns_of))


Method = TypeVar("Method", bound=Callable[..., Any])


def method_takes_cohort(function: Method) -> Method:
    """Decorate a method as ``takes_cohort`` does a function."""
    return cast(Method, takes_cohort(function))


def refuse_ignored(name: str, people: Cohort, parameters: Mapping[str, Any]) -> None:
    """Raise if a cohort has strata or weights that a function has no parameter for."""
    kinds = kinds_of(people)
    for column in _CHANGE_VALUES:
        if kinds is not None and column == "sample_weight" and kinds.table.sample_weight is None:
            continue  # they say how many rows a kind stands for
        if getattr(people, column) is not None and column not in parameters:
            raise TypeError(
                f"{name}() knows no {column}, which the cohort has, so its value would be another "
                "one. Make a cohort without it."
            )


def _with_cohort(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], first: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call with ``data=``, with a cohort of the columns that it names."""
    data, where = kwargs.pop("data"), kwargs.pop("where", None)
    for other in (data, *args, *kwargs.values()):
        if isinstance(other, Cohort):
            raise TypeError(
                f"{function.__name__}() got a cohort and data=. Pass one of them: a cohort has its "
                "columns already."
            )
    refuse_unknown(function.__name__, kwargs, signature(function).parameters, OF_GROUPS)
    parameters = list(signature(function).parameters)
    n_self = int("self" in parameters[:1])
    positional = dict(zip(parameters[n_self:], args[n_self:], strict=False))
    twice = [name for name in positional if name in kwargs]
    if twice:
        raise TypeError(f"{function.__name__}() got {listed(twice)} twice.")
    if len(args) > len(parameters):
        raise TypeError(f"{function.__name__}() got {len(args) - n_self} arguments without a name.")
    given = {**positional, **kwargs}
    named = {name: given.pop(name) for name in (*COLUMNS, "pos_label") if name in given}
    named.setdefault("sensitive_features", [])
    given[first] = Cohort.from_table(data, where=where, **named)
    return args[:n_self], given


def _taking(
    function: Callable[..., Any],
    columns_of: Callable[[Cohort, str], dict[str, Any]],  # by the name of the first column
) -> Callable[..., Any]:
    by_columns, name = groups_by_name(function), function.__name__
    parameters = signature(function).parameters
    first = next((own for own in parameters if own in COLUMNS), "")
    at_most = list(parameters).index(first)  # positional arguments beside the cohort
    required = [
        own for own in COLUMNS if own in parameters and parameters[own].default is Parameter.empty
    ]

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("data") is not None:
            args, kwargs = _with_cohort(function, args, kwargs, first)
        places = [i for i, value in enumerate(args) if isinstance(value, Cohort)]
        names = [key for key, value in kwargs.items() if isinstance(value, Cohort)]
        if not places and not names:
            return by_columns(*args, **kwargs)
        people = args[places[0]] if places else kwargs.pop(names[0])
        refuse_unknown(name, kwargs, parameters, OF_GROUPS)
        others = tuple(value for value in args if value is not people)
        if len(others) > at_most:
            raise TypeError(
                f"{name}() got a cohort and, without a name, a {type(others[-1]).__name__}. The "
                "cohort has all columns, so pass options by name."
            )
        for column in (*COLUMNS, "pos_label"):
            if column in kwargs:
                raise TypeError(
                    f"{name}() got {column}= beside a cohort. Make the cohort with {column}=."
                )
        if "params" not in parameters:  # noise_floor passes them on to its metric
            refuse_ignored(name, people, parameters)
        return function(*others, **dict.fromkeys(required) | columns_of(people, first) | kwargs)

    return called
