"""Warnings and errors of skfair that a caller may want to catch by name.

Convergence trouble is reported with scikit-learn's own ``ConvergenceWarning``.
"""

__all__ = [
    "MissingGroupsWarning",
    "SmallGroupWarning",
    "NoFeasibleModelWarning",
    "PositiveClassWarning",
    "SolverError",
]


class MissingGroupsWarning(UserWarning):
    """An estimator was fitted without sensitive features, so nothing is constrained.

    Examples
    --------
    >>> from skfair.exceptions import MissingGroupsWarning
    >>> issubclass(MissingGroupsWarning, UserWarning)
    True
    """


class SmallGroupWarning(UserWarning):
    """A group has so few rows that its rates are mostly noise.

    Examples
    --------
    >>> from skfair.exceptions import SmallGroupWarning
    >>> issubclass(SmallGroupWarning, UserWarning)
    True
    """


class NoFeasibleModelWarning(UserWarning):
    """No candidate of a model search met the fairness limits.

    Examples
    --------
    >>> from skfair.exceptions import NoFeasibleModelWarning
    >>> issubclass(NoFeasibleModelWarning, UserWarning)
    True
    """


class PositiveClassWarning(UserWarning):
    """A constraint depends on which class is the positive one, and nothing says which it is.

    Examples
    --------
    >>> from skfair.exceptions import PositiveClassWarning
    >>> issubclass(PositiveClassWarning, UserWarning)
    True
    """


class SolverError(RuntimeError):
    """A solver broke down numerically and has nothing useful to return.

    Examples
    --------
    >>> from skfair.exceptions import SolverError
    >>> issubclass(SolverError, RuntimeError)
    True
    """
