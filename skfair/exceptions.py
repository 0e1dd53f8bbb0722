"""Warnings and errors of skfair that a caller may want to catch by name.

Convergence trouble is reported with scikit-learn's own ``ConvergenceWarning``.
"""

__all__ = [
    "MissingGroupsWarning",
    "SmallGroupWarning",
    "NoFeasibleModelWarning",
    "PositiveClassWarning",
    "SelectionRateWarning",
    "RepeatedRowsWarning",
    "SolverError",
]


class MissingGroupsWarning(UserWarning):
    """An estimator was fitted without sensitive features, so nothing is constrained.

    Examples
    --------
    >>> from skfair.exceptions import MissingGroupsWarning
    >>> MissingGroupsWarning.__base__.__name__
    'UserWarning'
    """


class SmallGroupWarning(UserWarning):
    """A group has so few rows that its rates are mostly noise.

    Examples
    --------
    >>> from skfair.exceptions import SmallGroupWarning
    >>> SmallGroupWarning.__base__.__name__
    'UserWarning'
    """


class NoFeasibleModelWarning(UserWarning):
    """No candidate of a model search met the fairness limits.

    Examples
    --------
    >>> from skfair.exceptions import NoFeasibleModelWarning
    >>> NoFeasibleModelWarning.__base__.__name__
    'UserWarning'
    """


class PositiveClassWarning(UserWarning):
    """A constraint depends on which class is the positive one, and nothing says which it is.

    Examples
    --------
    >>> from skfair.exceptions import PositiveClassWarning
    >>> PositiveClassWarning.__base__.__name__
    'UserWarning'
    """


class SelectionRateWarning(UserWarning):
    """Limits are satisfied by selecting many more, or many fewer, than without them.

    Examples
    --------
    >>> from skfair.exceptions import SelectionRateWarning
    >>> SelectionRateWarning.__base__.__name__
    'UserWarning'
    """


class RepeatedRowsWarning(UserWarning):
    """Rows look as if people repeat, and nothing says which rows belong together.

    Examples
    --------
    >>> from skfair.exceptions import RepeatedRowsWarning
    >>> RepeatedRowsWarning.__base__.__name__
    'UserWarning'
    """


class SolverError(RuntimeError):
    """A solver broke down numerically and has nothing useful to return.

    Examples
    --------
    >>> from skfair.exceptions import SolverError
    >>> SolverError.__base__.__name__
    'RuntimeError'
    """
