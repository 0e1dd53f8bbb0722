"""What all solvers share: the shape of their result and the check of what they need."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from skfair.utils.registry import Registry
from skfair.utils.text import listed

Status = Literal["converged", "max_iter", "stopped", "infeasible"]

# Numbers of solvers that may be 0: they switch a part off. The others divide, or are sizes.
MAY_BE_ZERO = {
    "beta",
    "eps_last",
    "epsilon",
    "extrapolation",
    "joint_below",
    "max_level",
    "mixing",
    "mu",
    "proximal",
    "record_from",
    "shrink_from",
    "tolerance",
    "weight",
}

# Upper ends, which may be absent.
MAY_BE_INFINITE = {"max_multiplier", "rho_max", "u_max"}

# Shares and probabilities.
AT_MOST_ONE = {"alpha_hat", "mixing", "p0", "shrink", "tracking"}

SOLVERS: Registry[Any] = Registry("solver", "skfair.solvers.erm")


class SolverResult(NamedTuple):
    """What every solver returns.

    Attributes
    ----------
    theta : ndarray
        The parameters found.
    multipliers : ndarray
        One multiplier per constraint, in the order of the problem.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter", "stopped", "infeasible"}
        Why the solver ended; ``stopped`` means that a callback asked for it.
    history : dict of ndarray
        Columns of equal length, see :class:`skfair.utils.history.History`.
    """

    theta: NDArray[Any]
    multipliers: NDArray[np.float64]
    n_iter: int
    status: Status
    history: dict[str, NDArray[Any]]


def check_needs(solver: Any, problem: Any) -> None:
    """Raise a ``TypeError`` that names solver, problem and what the problem lacks.

    Parameters
    ----------
    solver : object
        Lists in ``needs`` what not every problem has.
    problem : object
        What is to be solved.

    Examples
    --------
    >>> from skfair.solvers import check_needs
    >>> class Newton:
    ...     needs = ("hessian",)
    >>> class Smooth:
    ...     offers = frozenset()
    >>> check_needs(Newton(), Smooth())
    Traceback (most recent call last):
        ...
    TypeError: Newton cannot solve a Smooth: the problem has no 'hessian'...
    """
    if isinstance(solver, type):
        raise TypeError(
            f"solver is the class {solver.__name__}. Pass an object, {solver.__name__}(), or the "
            "name of a solver."
        )
    check_parameters(solver)
    missing = [name for name in solver.needs if name not in problem.offers]
    if missing:
        raise TypeError(
            f"{type(solver).__name__} cannot solve a {type(problem).__name__}: the problem has no "
            f"{listed(missing)}. Choose another solver, or solver='auto'."
        )


def check_parameters(solver: Any) -> None:
    """Raise a ``ValueError`` that names the parameter of a solver whose value cannot be used.

    The kinds are those of the annotations: numbers are not negative, NaN is none, and an option of
    a ``Literal`` is one of those listed. Objects that are no dataclasses look after themselves.
    """
    if not is_dataclass(solver):
        return
    kinds = get_type_hints(type(solver))
    for field in fields(solver):
        value, kind = getattr(solver, field.name), kinds[field.name]
        options = get_args(kind)
        if value is None and type(None) in options:
            continue
        kind = next((option for option in options if option in (int, float)), kind)
        said = f"{type(solver).__name__}({field.name}={value!r})"
        if kind in (int, float):
            wanted: Any = Integral if kind is int else Real
            is_number = isinstance(value, wanted) and not isinstance(value, bool)
            low_end = "at least 0" if field.name in MAY_BE_ZERO else "above 0"
            if not is_number or not (value > 0 or (value == 0 and low_end == "at least 0")):
                what = "an integer" if kind is int else "a number"
                raise ValueError(f"{said}: {field.name} must be {what} {low_end}.")
            if value == np.inf and field.name not in MAY_BE_INFINITE:
                raise ValueError(f"{said}: {field.name} must be finite.")
            if field.name in AT_MOST_ONE and value > 1:
                raise ValueError(f"{said}: {field.name} must be at most 1.")
        elif options and value not in options:
            raise ValueError(f"{said}: {field.name} must be one of {listed(options)}.")
