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
            hint = name_in_skfair(name, known)
            if not hint and remedies and name in remedies:
                hint = f" {remedies[name]}"
            hint = hint or did_you_mean(name, known)
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


# The ``remedies`` of refuse_unknown for ``fit`` and metrics: names of users of other libraries.
OF_GROUPS = {
    "groups": "Sensitive attributes are passed as sensitive_features=, and the person of each row "
    "as units=.",
    "qid": "FairRanker takes the query of each row as query_id=.",
    **dict.fromkeys(
        ("group", "sensitive", "protected", "A"),
        "Sensitive attributes are passed as sensitive_features=.",
    ),
}

# The same for estimators that train a model of their own.
OF_TRAINING = dict.fromkeys(
    ("estimator", "base_estimator"),
    "It trains a model of its own. To limit the decisions of a model, use FairDecisionClassifier "
    "or FairDecisionRegressor.",
)

# The same for methods that predict.
OF_PREDICTIONS = {
    "random_state": "Predictions draw no random numbers. Leave it out.",
    "sensitive_features": "Its predictions do not use the group. Leave it out.",
}


def named_arguments(function: Function) -> Function:
    """Decorate a function: its error about an unknown argument suggests a better name."""
    parameters = signature(function).parameters

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        refuse_unknown(function.__name__, kwargs, parameters)
        return function(*args, **kwargs)

    return cast(Function, checked)


def groups_by_name(metric: Function) -> Function:
    """Decorate a metric: errors about absent groups, or some without a name, have a remedy.

    Audits, and methods that read labels and groups, are decorated in the same way.
    """
    parameters = signature(metric).parameters
    n_positional = sum(own.kind is not Parameter.KEYWORD_ONLY for own in parameters.values())
    n_self = int("self" in parameters)
    groups = parameters.get("sensitive_features")
    needs_groups = groups is not None and groups.default is Parameter.empty
    owner = metric.__qualname__.removesuffix(".__init__").rpartition("<locals>.")[2]
    name = owner.rpartition(".")[2]

    @wraps(metric)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if len(args) > n_positional:
            raise TypeError(
                f"{name} takes {n_positional - n_self} arguments without a name, got "
                f"{len(args) - n_self}. Pass the groups as sensitive_features=..., and further "
                "arguments by name, too."
            )
        refuse_unknown(owner, kwargs, parameters, OF_GROUPS)
        if needs_groups and "sensitive_features" not in kwargs:
            raise TypeError(
                f"{name}() missing 1 required keyword-only argument: 'sensitive_features'. Pass "
                "the group of each row, such as sensitive_features=df['sex']."
            )
        return metric(*args, **kwargs)

    return cast(Function, checked)
