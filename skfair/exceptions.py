"""Warnings and errors of skfair that a caller may want to catch by name.

If a solver does not converge, scikit-learn's ``ConvergenceWarning`` is given.
"""

__all__ = [
    "MissingGroupsWarning",
    "SmallGroupWarning",
    "NoFeasibleModelWarning",
    "PositiveClassWarning",
    "SelectionRateWarning",
    "ExplainedVarianceWarning",
    "LooseLimitWarning",
    "RepeatedRowsWarning",
    "SeenRowsWarning",
    "GroupColumnWarning",
    "SolverError",
]


class MissingGroupsWarning(UserWarning):
    """Warning used when an estimator is fitted without sensitive features.

    Without sensitive features, there are no groups to compare, so constraints that compare groups
    have no effect. Limits that need no groups, such as bounded rates and ``selection_rate``, are
    still imposed.

    See Also
    --------
    skfair.Sensitive : Names the columns with the groups.

    Examples
    --------
    >>> from skfair.exceptions import MissingGroupsWarning
    >>> MissingGroupsWarning.__base__.__name__
    'UserWarning'
    """


class SmallGroupWarning(UserWarning):
    """Warning used when a group has so few rows that its rates are mostly noise.

    See Also
    --------
    skfair.metrics.sample_size : Number of people that a limit needs.

    Examples
    --------
    >>> from skfair.exceptions import SmallGroupWarning
    >>> SmallGroupWarning.__base__.__name__
    'UserWarning'
    """


class NoFeasibleModelWarning(UserWarning):
    """Warning used when no candidate of a model search satisfies the fairness limits.

    See Also
    --------
    skfair.model_selection.best_within : Selects a candidate within limits.

    Examples
    --------
    >>> from skfair.exceptions import NoFeasibleModelWarning
    >>> NoFeasibleModelWarning.__base__.__name__
    'UserWarning'
    """


class PositiveClassWarning(UserWarning):
    """Warning used when a constraint needs a positive class and the labels do not show which it is.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : Takes ``pos_label``.

    Examples
    --------
    >>> from skfair.exceptions import PositiveClassWarning
    >>> PositiveClassWarning.__base__.__name__
    'UserWarning'
    """


class SelectionRateWarning(UserWarning):
    """Warning used when limits change the overall selection rate by much.

    The limits are then satisfied by selecting many more, or many fewer, rows than without them.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : Takes ``selection_rate``.

    Examples
    --------
    >>> from skfair.exceptions import SelectionRateWarning
    >>> SelectionRateWarning.__base__.__name__
    'UserWarning'
    """


class ExplainedVarianceWarning(UserWarning):
    """Warning used when limits take away much of the variance that a regressor explains.

    It is given if R2 on the training rows falls by more than a third, in comparison with the same
    model without limits.

    See Also
    --------
    skfair.regression.FairDecisionRegressor : Warns of it.

    Examples
    --------
    >>> from skfair.exceptions import ExplainedVarianceWarning
    >>> ExplainedVarianceWarning.__base__.__name__
    'UserWarning'
    """


class LooseLimitWarning(UserWarning):
    """Warning used when a limit on a difference is so large that a ratio may be meant.

    The four-fifths rule limits the ratio of two selection rates. As a limit on their difference,
    0.8 allows nearly everything.

    See Also
    --------
    skfair.constraints.DemographicParity : Takes ``min_ratio``.

    Examples
    --------
    >>> from skfair.exceptions import LooseLimitWarning
    >>> LooseLimitWarning.__base__.__name__
    'UserWarning'
    """


class RepeatedRowsWarning(UserWarning):
    """Warning used when people seem to occur in several rows and no units or groups are given.

    See Also
    --------
    skfair.Certificate : A certificate for people or for rows.

    Examples
    --------
    >>> from skfair.exceptions import RepeatedRowsWarning
    >>> RepeatedRowsWarning.__base__.__name__
    'UserWarning'
    """


class SeenRowsWarning(UserWarning):
    """Warning used when a model that is passed fitted seems to have been fitted to the same rows.

    The model may be inside another estimator, such as a pipeline or a calibrator. Limits that are
    set on rows that a model has seen do not hold for new people.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : Takes fitted models.

    Examples
    --------
    >>> from skfair.exceptions import SeenRowsWarning
    >>> SeenRowsWarning.__base__.__name__
    'UserWarning'
    """


class GroupColumnWarning(UserWarning):
    """Warning used when a column of X tells the groups of a model that does not use them.

    See Also
    --------
    skfair.Sensitive : Keeps columns out of the model.

    Examples
    --------
    >>> from skfair.exceptions import GroupColumnWarning
    >>> GroupColumnWarning.__base__.__name__
    'UserWarning'
    """


class SolverError(RuntimeError):
    """Error raised when a solver breaks down numerically and has no useful result.

    See Also
    --------
    skfair.models.check_score_model : Finds errors of a score model.

    Examples
    --------
    >>> from skfair.exceptions import SolverError
    >>> SolverError.__base__.__name__
    'RuntimeError'
    """
