"""What all solvers share: the shape of their result and the check of what they need."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair.utils.registry import Registry
from skfair.utils.text import listed

Status = Literal["converged", "max_iter", "stopped", "infeasible"]

SOLVERS: Registry[Any] = Registry("solver", "skfair.solvers")


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
    """Raise a ``TypeError`` that names solver, problem and the methods that the problem lacks.

    Parameters
    ----------
    solver : object
        Lists in ``needs`` the methods that it calls.
    problem : object
        What is to be solved.

    Examples
    --------
    >>> from skfair.solvers import check_needs
    >>> class Newton:
    ...     needs = ("value", "hessian")
    >>> class Smooth:
    ...     def value(self): ...
    >>> check_needs(Newton(), Smooth())
    Traceback (most recent call last):
        ...
    TypeError: Newton cannot solve a Smooth: the problem has no 'hessian'...
    """
    missing = [name for name in solver.needs if not hasattr(problem, name)]
    if missing:
        raise TypeError(
            f"{type(solver).__name__} cannot solve a {type(problem).__name__}: the problem has no "
            f"{listed(missing)}. Choose another solver, or solver='auto'."
        )
