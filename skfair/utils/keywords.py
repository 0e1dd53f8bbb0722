"""Errors about arguments that a class or a function does not have, with a better name.

:func:`refuse_unknown` raises them: for ``__init__`` in the base class :class:`NamedArguments`, for
``fit`` in ``base.py``. :func:`groups_by_name` is for metrics, whose error is about arguments that
were passed without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ClassVar, Self, TypeVar, cast

from skfair.utils.other_names import name_in_skfair
from skfair.utils.signatures import ReadableSignature
from skfair.utils.text import did_you_mean, listed_in

Function = TypeVar("Function", bound=Callable[..., Any])


def refuse_unknown(
    owner: str,  # the owner of the arguments, such as "FairKMeans" or "FairKMeans.fit"
    passed: Iterable[str],
    parameters: Mapping[str, Parameter],
    # For some unknown names, the sentence with which the error ends instead of a guess
    remedies: Mapping[str, str] | None = None,
) -> None:
    """Raise for the first of ``passed`` that is no parameter, unless ``**kwargs`` exists."""
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in passed:
        if name not in parameters:
            known = [own for own in parameters if own != "self"]
            hint = f" {remedies[name]}" if remedies and name in remedies else ""
            hint = hint or name_in_skfair(name) or did_you_mean(name, known)
            hint = hint or f" Its arguments are {listed_in(known)}."
            raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}.{hint}")


class NamedArguments:
    """The base of classes whose errors about unknown arguments suggest a better name."""

    # The ``remedies`` of refuse_unknown, for names that belong to another object. Those of base
    # classes hold as well.
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    __signature__ = ReadableSignature()  # of __init__, where others look at __new__

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Check the names of the arguments before ``__init__`` gets them."""
        if kwargs:
            remedies: dict[str, str] = {}
            for kind in reversed(cls.__mro__):
                remedies |= vars(kind).get("_elsewhere", {})
            refuse_unknown(cls.__name__, kwargs, signature(cls.__init__).parameters, remedies)
        return super().__new__(cls)


# The ``remedies`` of refuse_unknown for ``fit``: names that users of other libraries try.
OF_GROUPS = {
    "groups": "Sensitive attributes are passed as sensitive_features=, and the person of each row "
    "as units=.",
    "group": "Sensitive attributes are passed as sensitive_features=, and FairRanker takes the "
    "query of each row as query_id=.",
    "qid": "FairRanker takes the query of each row as query_id=.",
    **dict.fromkeys(
        ("sensitive", "protected", "A"),
        "Sensitive attributes are passed as sensitive_features=.",
    ),
}


def groups_by_name(metric: Function) -> Function:
    """Decorate a metric: passing the groups without a name raises an error with the remedy.

    Audits, and methods that read labels and groups, are decorated in the same way.
    """
    parameters = signature(metric).parameters
    n_positional = sum(own.kind is not Parameter.KEYWORD_ONLY for own in parameters.values())
    n_self = int("self" in parameters)
    name = metric.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(metric)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if len(args) > n_positional:
            raise TypeError(
                f"{name} takes {n_positional - n_self} arguments without a name, got "
                f"{len(args) - n_self}. Pass the groups as sensitive_features=..., and further "
                "arguments by name, too."
            )
        return metric(*args, **kwargs)

    return cast(Function, checked)
