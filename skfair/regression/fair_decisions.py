"""Post-processing for any regressor: the model stays, and maps move its predictions.

``fit`` fits the regressor on folds, and :func:`skfair.enforcement.regression_steps.find_steps`
finds the maps of its out-of-fold predictions. If the limit binds and predictions may not use the
group, models of the groups are fitted first. :func:`_attributes` makes the fitted attributes, with
a :class:`Mover` that applies the maps to new rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, Estimator, FloatArray, IntArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.constraints.base import Constraint, limit_for, make_constraints
from skfair.constraints.losses import LossParity
from skfair.constraints.scores import Kolmogorov, MeanResidualParity
from skfair.enforcement.regression_steps import NUMBER_MAPS, Moved, NumberTask, Step, find_steps
from skfair.estimators.explained import (
    LargerErrors,
    changes_of_numbers,
    is_less_explained,
    larger_errors,
    warn_if_less_explained,
)
from skfair.estimators.group_probabilities import GroupModels, fit_groups
from skfair.estimators.seen_rows import check_unseen
from skfair.estimators.wrapped_estimator import (
    FitsOnFolds,
    numbers_of,
    read_for_wrapped,
    values_unseen,
)
from skfair.estimators.wrapped_scores import (
    FOLDS,
    as_rows,
    groups_of_new_rows,
    kept_folds,
    known_folds,
    make_splits,
    mean_over,
)
from skfair.exceptions import ExplainedVarianceWarning
from skfair.groups.attributes import check_aligned
from skfair.groups.limits import limits_of_attributes, loosest
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.read import read_features
from skfair.utils.docs import documented
from skfair.utils.routing import refuse_misspelt
from skfair.utils.text import listed
from skfair.utils.threads import one_thread_if_few
from skfair.utils.validation import (
    ask_of_unit,
    check_limit,
    check_number,
    check_numbers,
    check_weights,
)
from skfair.utils.warn import warn_user

# A warning is given if the range of the predictions is less than this part of the range without
# limits.
NEARLY_CONSTANT = 0.01


@documented
class FairDecisionRegressor(
    FitsOnFolds, RegressorMixin, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    r"""Post-process any regressor so that its predictions satisfy a fairness constraint.

    The regressor is fitted on folds, and its out-of-fold predictions are then changed by one
    monotone map per group. The regressor itself does not change. Use
    :class:`ConstrainedERMRegressor` to train a linear model or a network under constraints instead.

    The prediction is

    .. math:: \hat y(x) = \sum_g P(g | x) \, T_g(h(x))

    where h is the regressor and :math:`T_g` the map of group g. The probability P is 0 or 1 if the
    group is known, and estimated from the other columns if it may not be used. With
    ``constraint="wasserstein"``, the maps move the distribution of each group towards the
    Wasserstein barycentre of the groups, as far as the limit requires.

    Parameters
    ----------
    estimator : regressor, default=None
        The regressor. If None, a ``LinearRegression()`` is used.
    constraint : str or Constraint, default="wasserstein"
        The fairness constraint, which limits a difference between any two groups.

        - "wasserstein" and "kolmogorov" limit a distance between the distributions of the
          predictions.
        - "mean_score_parity" limits the difference of mean predictions.
        - "mean_residual_parity" limits the difference of mean residuals.
        - "loss_parity" limits the difference of mean squared errors.

        Pass an object from :mod:`skfair.constraints` or :mod:`skfair.constraints.scores` for more
        options, such as a limit of its own.
    max_disparity : float or dict, default=None
        The limit on the disparity. For "kolmogorov" it is a fraction, for "loss_parity" its unit is
        the square of the unit of y, and otherwise it is the unit of y. A dict sets one limit for
        each attribute, which may be None for an attribute without a limit. Several attributes
        require ``Sensitive(intersectional=False)``. If None, it is 0.05. It must be left out if the
        constraint has a limit of its own.
    group_aware : bool, default=False
        If True, predictions use the group, so ``predict`` needs it; this may be disparate treatment
        under the law. If False, the group is estimated from the other columns.
    group_estimator : classifier, default=None
        Classifier that estimates the group if predictions may not use it. It gets the columns as
        the transformers of ``estimator`` return them. If None, a logistic regression is used if
        ``estimator`` is linear or the columns are sparse, otherwise gradient boosting. A
        ``FrozenEstimator`` must not have seen the rows, as with ``cv="prefit"``.
    cv : int, splitter, iterable or "prefit", default=5
        Folds on which the regressor is fitted.

        - int: The number of folds. The rows of each group are sorted by y and assigned to the folds
          in turn, so their order in the data does not matter.
        - splitter or iterable: The splits are used as they are. The training part and the test part
          of a split must have no rows in common. Splitters of :mod:`skfair.model_selection` receive
          the groups.
        - "prefit": ``estimator`` is already fitted. The rows that are passed to ``fit`` must be new
          to it. If they seem to be its training rows, a ``SeenRowsWarning`` is given. A
          ``FrozenEstimator`` is treated in the same way, also inside a pipeline or another
          estimator.
    unseen : {"error", "overall"}, default="error"
        Treatment of rows at prediction whose group is missing (None, NaN or NA) or did not occur in
        ``fit``. If "error", an error is raised. If "overall", the maps of all groups are averaged.
    n_jobs : int, default=None
        Number of fits that run in parallel. If None, the fits are made one after another.

    Attributes
    ----------
    estimators_ : list of regressors
        Regressors that predict new rows, and whose predictions are averaged: those of the folds, or
        a single one.
    group_estimators_ : list of lists of classifiers
        Models of the group for each attribute, one per fold or a single one. The list is empty if
        the group does not have to be estimated.
    steps_ : list of Step
        Maps of the predictions in the order in which they are applied. Each step holds an attribute
        and the maps of its groups.
    train_predictions_ : ndarray of shape (n_samples,)
        Out-of-fold predictions on the training rows, for which the limits hold.
    train_disparity_ : float
        Disparity of ``train_predictions_``. With several attributes, it is the largest disparity.
    train_disparities_ : ndarray of shape (n_attributes,)
        Disparity of ``train_predictions_`` for each attribute with
        ``Sensitive(intersectional=False)``. Otherwise there is a single value, which compares the
        intersections of the attributes.
    changes_ : dict of str to Change
        Changes of the predictions on the training rows that are caused by the limits. The keys are
        "mean prediction", "mean squared error" and "R2", the part of the variance that predictions
        explain. Each object has these attributes.

        - ``before`` and ``without_limits``: The value of the regressor itself without limits.
        - ``after``: The value within the limits.
        - ``by_group``: The same values for each group.
        - ``rows_up`` and ``rows_down``: The numbers of rows whose prediction, or error, is higher
          and lower than without limits. They are None for R2.

        R2 is NaN if all targets are equal.
    price_of_fairness_ : float
        Increase of the mean squared error on the training rows that is caused by the limits. It is
        negative if the maps improve the predictions.
    status_ : str
        How the fit ended. The limits are checked for ``train_predictions_``.
    is_group_aware_ : bool
        True if ``predict`` needs the group.

    See Also
    --------
    ConstrainedERMRegressor : Linear or neural regressor that is trained under constraints, also on
        the largest error of a group.
    skfair.classification.FairDecisionClassifier : The same method for classification.

    Notes
    -----
    The limits hold exactly for ``train_predictions_``. On new data the disparity may lie above or
    below the limit by about one standard error. Each step of the maps costs O(n log n), and one
    step is enough for a single known attribute. If many predictions are tied, as with shallow
    trees, a limit on "kolmogorov" may merge values, at worst into one for all rows.

    Limits may take away most of what a regressor explains, above all if predictions do not use the
    group. If R2 of ``train_predictions_`` falls by more than a third, ``fit`` gives an
    :class:`~skfair.exceptions.ExplainedVarianceWarning`. A limit on differences of errors
    ("loss_parity") is satisfied by larger errors of the group with small ones, which ``summary_``
    says.

    For equal means, group-blind predictions around a linear regression are about as good as those
    of :class:`ConstrainedERMRegressor`, and group-aware predictions are better. At a fifth of the
    difference of means without limits, R2 of crimes in communities on new rows is 0.39
    (group-blind) and 0.47 (group-aware), 0.37 by training, and 0.63 without limits. Around boosted
    trees, group-blind predictions are worse than those of training if the data are linear
    (``benchmarks/equal_means.py``).

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.metrics import wasserstein_gap
    >>> from skfair.regression import FairDecisionRegressor
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None]
    >>> y = X @ [1.0, 0.5, 0.0] + rng.normal(size=600)
    >>> for limit in (10.0, 0.1):
    ...     model = FairDecisionRegressor(max_disparity=limit, group_aware=True)
    ...     model = model.fit(X, y, sensitive_features=sex)
    ...     predictions = model.predict(X, sensitive_features=sex)
    ...     gap = wasserstein_gap(y, predictions, sensitive_features=sex)
    ...     print(f"limit {limit}: distance of the distributions {gap:.2f}")
    limit 10.0: distance of the distributions 1.45
    limit 0.1: distance of the distributions 0.10
    """

    __metadata_request__fit = {"units": True}
    __metadata_request__predict = {"sensitive_features": True}
    __metadata_request__score = {"sensitive_features": True}

    _default = LinearRegression
    _endings = ("converged", "infeasible")
    _learns_without_group = True
    _mover: Mover
    steps_: list[Step]

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "constraint": [str, Constraint],
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict, None],
        "group_aware": ["boolean"],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "unseen": [StrOptions({"error", "overall"})],
        "ensemble": ["boolean"],
        "n_jobs": [Integral, None],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        constraint: str | Constraint = "wasserstein",
        max_disparity: Any = None,
        *,
        group_aware: bool = False,
        group_estimator: Estimator | None = None,
        cv: Any = FOLDS,
        ensemble: bool = True,
        unseen: Literal["error", "overall"] = "error",
        sensitive: SensitiveLike = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.group_aware = group_aware
        self.group_estimator = group_estimator
        self.cv = cv
        self.ensemble = ensemble
        self.unseen = unseen
        self.sensitive = sensitive
        self.n_jobs = n_jobs

    @fit_method
    @one_thread_if_few
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        units: ColumnLike | None = None,
        **fit_params: Any,
    ) -> FairDecisionRegressor:
        """Fit the regressor on folds, and find the maps of its predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training samples, in any form that the regressor accepts.
        y : array-like of shape (n_samples,)
            The target values.
        **fit_params : dict
            Further arguments of ``estimator.fit``, such as ``reg__sample_weight`` for a pipeline.
            Arguments with one value per row are split into the folds. With metadata routing
            enabled, these are the arguments that ``estimator`` has requested.
        """
        inner = self._inner()
        constraint, limit = _checked(self.constraint, self.max_disparity, inner)
        refuse_misspelt(self, inner, fit_params)
        self.cv = kept_folds(self.cv)
        others: dict[str, Any] = {"sensitive_features": sensitive_features}
        X, data = read_for_wrapped(self, X, y, units, sample_weight=sample_weight, **others)
        self._keep(data.reading)
        targets, weights = check_numbers(data.y, "y"), data.groups.rate_weight(data.sample_weight)
        data.groups.check_nonempty(sample_weight=weights)
        folds = known_folds(self.cv, X, data.y, data.groups, units)
        kinds = data.groups.cells().codes
        splits = cache(partial(make_splits, folds, data, kinds, is_numeric=True))
        check_unseen(self, data)
        params = self._row_params(data.sample_weight, fit_params, others)
        found = values_unseen(self, inner, numbers_of, data.X, targets, params, splits)
        limits = limits_of_attributes(limit, data.groups)
        largest = loosest(limit)
        if not isinstance(constraint, Kolmogorov):
            degree = 2 if isinstance(constraint, LossParity) else 1
            if not data.groups.is_vacuous:
                ask_of_unit(largest, float(np.std(targets)) ** degree)
        elif largest < np.inf:  # a fraction
            check_limit(largest, f"max_disparity={largest:g}")
        # The last field, P(group | row), is None as long as the groups themselves are used.
        task = NumberTask(constraint, limits, targets, data.groups, weights, None)
        free, group_models = task.moved([], found.values), None
        if free.excess > 0 and not self.group_aware:
            # fit_groups estimates pairs of group and class. Here all rows have the same class.
            classes, chances = np.zeros(targets.size, np.int64), np.ones((targets.size, 1))
            group_models, joint, _ = fit_groups(
                self, found.models, data, classes, chances, splits()
            )
            task = task._replace(chances=by_attribute(joint, data.groups.offsets))
        moved = find_steps(free, task)
        attributes = _attributes(data, found.serving, group_models, moved, free, task)
        larger = None
        if isinstance(constraint, LossParity | MeanResidualParity) and moved.excess <= 0:
            larger = larger_errors(attributes["changes_"])
        attributes["_kept_by"] = "" if larger is None else str(larger)
        self._store(attributes | {"is_group_aware_": bool(self.group_aware)})
        self._warn(moved, free, limit, larger)
        return self

    def _warn(self, moved: Moved, free: Moved, limit: Any, larger: LargerErrors | None) -> None:
        """Warn if the limit is missed, or if predictions say little under it.

        ``free`` are the predictions without limits.
        """
        if moved.excess > 0:
            remedy = (
                "The other columns say too little of the group: set a larger limit, or let "
                "predictions use it (group_aware=True)."
            )
            if self.group_aware:
                remedy = (
                    "Monotone maps move whole rows, and tied rows together; of losses they only "
                    "raise the smaller ones. Set a larger limit."
                )
            warn_user(
                f"FairDecisionRegressor found no maps that satisfy max_disparity={limit}: the "
                f"disparity ({self.constraint}) of the training rows is "
                f"{self.train_disparity_:.3g}. {remedy}",
                ConvergenceWarning,
            )
        elif np.ptp(moved.values) < NEARLY_CONSTANT * np.ptp(free.values):
            warn_user(
                f"The predictions that satisfy max_disparity={limit} are nearly constant: if the "
                "model does not use the group, groups can have equal predictions only if all rows "
                "have. Set a larger limit, or let predictions use the group (group_aware=True).",
                ExplainedVarianceWarning if is_less_explained(self.changes_) else UserWarning,
            )
        else:
            others = (
                [] if self.group_aware else ["let predictions use the group (group_aware=True)"]
            )
            trained = "ConstrainedERMRegressor(constraint='bounded_group_loss', max_disparity={})"
            warn_if_less_explained(self.changes_, larger, others=others, of_largest=trained)

    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> FloatArray:
        """Predict the target of each sample under the limits.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The predictions of the regressor after the maps of the groups.
        """
        check_is_fitted(self)
        codes = groups_of_new_rows(self, X, sensitive_features)
        rows = read_features(self, as_rows(X), skip_check_array=True)
        values = mean_over(self.estimators_, lambda model: numbers_of(model, rows))
        return self._mover.moved(self.steps_, rows, values, codes)

    def score(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> float:
        """Return the coefficient of determination of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The test samples.
        y : array-like of shape (n_samples,)
            The true target values.

        Returns
        -------
        score : float
            The R2 score, which is 1 for perfect predictions and 0 for a model that always predicts
            the mean.
        """
        groups = {"sensitive_features": sensitive_features}
        check_aligned(X=X, sample_weight=sample_weight, **groups)
        predicted = self.predict(X, **groups)
        weights = check_weights(sample_weight, predicted.size)
        return float(r2_score(y, predicted, sample_weight=weights))


@dataclass(frozen=True, eq=False)
class Mover:
    """Moves the predictions of new rows by the maps of their known or estimated groups."""

    offsets: IntArray  # first group of each attribute, then the number of groups
    marginals: FloatArray  # (n_groups,): share of each group in its attribute
    group_models: GroupModels | None  # None if groups are known, or there are no maps

    def moved(
        self, steps: list[Step], rows: Any, values: FloatArray, codes: IntArray | None
    ) -> FloatArray:
        """Return the values moved by steps, (n_samples,).

        ``codes`` are the groups (n_attributes, n_samples), -1 for groups that ``fit`` has not seen.
        They are None if groups are estimated from ``rows``, or if there is a single group. Rows of
        unseen groups are moved by the mean of the maps, weighted by ``marginals``.
        """
        if not steps:
            return values
        if self.group_models is not None:
            joint = self.group_models.joint(rows, np.ones((values.size, 1)))
            return _moved(steps, values, by_attribute(joint, self.offsets))
        if codes is None:  # a single group
            codes = np.zeros((1, values.size), np.int64)
        is_seen = (codes >= 0).all(axis=0)  # whether the group is known in all attributes
        seen, unseen = np.flatnonzero(is_seen), np.flatnonzero(~is_seen)
        values = values.copy()
        values[seen] = _moved(steps, values[seen], codes[:, seen] - self.offsets[:-1, None])
        shares = np.split(self.marginals, self.offsets[1:-1])
        average = [np.tile(shares_of_attribute, (unseen.size, 1)) for shares_of_attribute in shares]
        values[unseen] = _moved(steps, values[unseen], average)
        return values


def _moved(steps: list[Step], values: FloatArray, groups: Any) -> FloatArray:
    """Apply steps in their order. ``groups`` holds codes or probabilities by attribute."""
    for step in steps:
        values = step(values, groups[step.attribute])
    return values


def by_attribute(joint: FloatArray, offsets: IntArray) -> list[FloatArray]:
    """Return P(group | row) for each attribute, given P(group and class | row) for one class."""
    parts = np.split(joint[..., 0], offsets[1:-1], axis=1)
    return [np.ascontiguousarray(part) for part in parts]


def _checked(asked: str | Constraint, max_disparity: Any, inner: Any) -> tuple[Constraint, Any]:
    """Return the constraint as an object, and its limit."""
    (constraint,) = make_constraints(asked, "predictions")
    if type(constraint) not in NUMBER_MAPS or constraint.reference != "pairwise":
        raise ValueError(
            f"FairDecisionRegressor cannot limit constraint={constraint!r}. It takes "
            f"{listed([known.__name__ for known in NUMBER_MAPS])}, with reference='pairwise'."
        )
    if is_classifier(inner):
        raise TypeError(
            f"The estimator {type(inner).__name__} is a classifier. Pass a regressor, or use "
            "FairDecisionClassifier."
        )
    limit = limit_for(constraint, max_disparity)
    if constraint.own_limit is None:
        return constraint, limit
    check_number(constraint.own_limit, "max_disparity of the constraint", 0)
    return constraint, constraint.own_limit


def _attributes(
    data: TrainingData,
    models: list[Any],
    group_models: GroupModels | None,
    moved: Moved,
    free: Moved,
    task: NumberTask,
) -> dict[str, Any]:
    """Return the fitted attributes; ``free`` are the predictions without limits."""
    offsets, masses = data.groups.offsets, data.groups.sums(task.weights)
    rows, ends = (data.groups, data.sample_weight, task.targets), (free.values, moved.values)
    totals = np.repeat(np.add.reduceat(masses, offsets[:-1]), np.diff(offsets))
    name, attributes = type(task.constraint).__name__, data.groups.levels.attributes
    names = [f"{name} of {a}" for a in attributes] if len(moved.gaps) > 1 else [name]
    limits = zip(names, moved.gaps.tolist(), task.limits, strict=True)
    mover, values = Mover(offsets, masses / totals, group_models), moved.values
    if data.groups.has_group is not None and group_models is None:
        values = mover.moved(moved.steps, data.X, free.values, data.groups.codes_if_known)
    return {
        "_mover": mover,
        "estimators_": models,
        "group_estimators_": [] if group_models is None else group_models.models,
        "steps_": moved.steps,
        "train_predictions_": values,
        "train_disparities_": moved.gaps,
        "train_disparity_": float(moved.gaps.max(initial=0.0)),
        "_limits": {name: {"": gap, "limit": x} for name, gap, x in limits if x is not None},
        "changes_": changes_of_numbers(*rows, ends, data.first_rows),
        "price_of_fairness_": moved.error - free.error,
        "status_": "converged" if moved.excess <= 0 else "infeasible",
    }
