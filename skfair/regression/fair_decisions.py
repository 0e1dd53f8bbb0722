"""Any regressor, fair predictions: the model stays, and its predictions are moved by maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.utils._metadata_requests import UNUSED
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, Estimator, FloatArray, IntArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.constraints.base import Constraint, make_constraints
from skfair.enforcement.numbers.steps import NUMBER_MAPS, Moved, NumberTask, Step, find_steps
from skfair.estimators.inner_models import InnerModels, number_splits, numbers_of, read_for_inner
from skfair.estimators.inner_scores import (
    FOLDS,
    Split,
    as_rows,
    groups_of_new_rows,
    keep_folds,
    known_folds,
    mean_over,
)
from skfair.groups.attributes import check_aligned
from skfair.groups.limits import limits_of_attributes
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.read import read_features
from skfair.utils.docs import documented
from skfair.utils.routing import refuse_misspelt
from skfair.utils.text import listed
from skfair.utils.threads import one_thread_if_few
from skfair.utils.validation import check_number, check_numbers, check_weights
from skfair.utils.warn import warn_user

# Predictions with a smaller share of the range of those without limits are warned of.
NEARLY_CONSTANT = 0.01


@documented
class FairDecisionRegressor(
    InnerModels, RegressorMixin, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    r"""Any regressor with predictions that keep a fairness limit on the training rows.

    The regressor is fitted as it is, on folds, so that every training row has a prediction from a
    model that has not seen it. Then these are moved by one monotone map for each group:

    .. math:: \hat y(x) = \sum_g P(g | x) \, T_g(h(x))

    where the probabilities are 0 and 1 if groups are known. For the whole distribution the maps
    lead to the barycentre of the groups, all the way or as far as the limit asks for.

    Parameters
    ----------
    estimator : regressor, default=None
        The regressor; None stands for ``LinearRegression()``.
    constraint : str or Constraint, default="wasserstein"
        What is limited, between any two groups: "wasserstein" and "kolmogorov" the distance of
        the distributions of predictions, "mean_score_parity" the difference of mean predictions,
        "mean_residual_parity" of mean residuals, "loss_parity" of mean squared errors; or such an
        object, of :mod:`skfair.constraints` or :mod:`skfair.constraints.scores`.
    max_disparity : float or dict, default=0.05
        The limit: for "kolmogorov" a share, for "loss_parity" in units of y squared, else in those
        of y. A dict has one for each attribute, None for no limit; several need
        ``Sensitive(crossed=False)``.
    group_aware : bool, default=False
        Whether predictions may use the group of a row. Otherwise it is estimated from the other
        columns, and no group is needed to predict.
    group_estimator : classifier, default=None
        Estimates the group if it may not be used. None for a small model of the columns as the
        transformers of ``estimator`` return them: logistic regression if ``estimator`` is linear
        or the columns are sparse, else gradient boosting.
    cv : int, splitter, iterable or "prefit", default=5
        The folds; splitters of :mod:`skfair.model_selection` get the groups. "prefit" takes a
        fitted ``estimator`` as it is: pass rows it has not seen.
    unseen : {"error", "overall"}, default="error"
        What is done with a group at prediction that was not there in fit: an error, or the mean
        of the maps of all groups.
    n_jobs : int, default=None
        Folds that are fitted at the same time.

    Attributes
    ----------
    estimators_ : list of regressors
        The models of the folds; their predictions are averaged.
    group_estimators_ : list of lists of classifiers
        For each attribute the models of groups, if these are estimated and limits bind.
    steps_ : list of Step
        The maps of the groups, and the attribute that each belongs to, in their order.
    train_predictions_ : ndarray of shape (n_samples,)
        Predictions of the training rows, by models that have not seen them: what limits hold for.
    train_disparity_ : float
        Disparity of these, the largest of all attributes.
    train_disparities_ : ndarray of shape (n_attributes,)
        Disparity of each attribute.
    price_of_fairness_ : float
        Mean squared error that is given up on the training rows; below 0 if the maps make
        predictions better.
    status_ : str
        "converged", or "infeasible" if a limit is missed.
    is_group_aware_ : bool
        Whether predictions need the group.

    See Also
    --------
    ConstrainedERMRegressor : A linear model or network that is trained under the limit.
    skfair.classification.FairDecisionClassifier : The same for decisions.

    Notes
    -----
    Limits hold for the training rows; unseen rows may miss them in either direction by about one
    standard error. The maps cost O(n log n) for each of their steps, and one step is enough for one
    known attribute.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.metrics import wasserstein_gap
    >>> from skfair.regression import FairDecisionRegressor
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None]
    >>> y = X @ [1.0, 0.5, 0.0] + rng.normal(size=600)
    >>> model = FairDecisionRegressor(max_disparity=0.1, group_aware=True)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> gap = wasserstein_gap(y, model.predict(X, sensitive_features=sex), sensitive_features=sex)
    >>> bool(model.train_disparity_ <= 0.1), round(gap, 1)
    (True, 0.1)
    """

    __metadata_request__fit = {"groups": UNUSED}  # they are of cv
    __metadata_request__predict = {"sensitive_features": True}
    __metadata_request__score = {"sensitive_features": True}

    _default = LinearRegression

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "constraint": [str, Constraint],
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict],
        "group_aware": ["boolean"],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "unseen": [StrOptions({"error", "overall"})],
        "n_jobs": [Integral, None],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        constraint: str | Constraint = "wasserstein",
        max_disparity: Any = 0.05,
        *,
        group_aware: bool = False,
        group_estimator: Estimator | None = None,
        cv: Any = FOLDS,
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
        groups: ColumnLike | None = None,
        **fit_params: Any,
    ) -> FairDecisionRegressor:
        """Fit the regressor on folds, and find the maps of its predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, in whatever form the regressor takes.
        y : array-like of shape (n_samples,)
            The numbers to predict.
        groups : array-like of shape (n_samples,)
            What rows belong to, such as people, for a ``cv`` like ``GroupKFold`` that keeps rows of
            the same one in one fold. They are not compared.
        **fit_params : dict
            What ``estimator.fit`` takes besides, such as ``reg__sample_weight`` of a pipeline;
            columns are cut to the folds. With metadata routing, what it has requested.
        """
        constraint, limit = self._checked_constraint()
        if is_classifier(self._inner()):
            raise TypeError(
                f"The estimator {type(self._inner()).__name__} is a classifier. Pass a regressor, "
                "or use FairDecisionClassifier."
            )
        refuse_misspelt(self, self._inner(), fit_params)
        keep_folds(self)
        others: dict[str, Any] = {"sensitive_features": sensitive_features}
        metadata = others | {"sample_weight": sample_weight}
        X, data = read_for_inner(self, X, y, groups, y_numeric=True, **metadata)
        targets = check_numbers(data.y, "y")
        data.groups.check_nonempty(sample_weight=data.sample_weight)
        folds = known_folds(self.cv, X, data.y, data.groups, groups)
        folds = FOLDS if isinstance(folds, str) else folds
        places = data.groups.places(targets, data.sample_weight)
        cells = replace(data.groups, codes=places[data.groups.codes]).cells().codes
        splits = cache(lambda: number_splits(folds, data.X, targets, cells))
        params = self._row_params(data.sample_weight, fit_params, others)
        values = self._values_unseen(numbers_of, data.X, targets, params, splits)
        limits = limits_of_attributes(limit, data.groups)
        task = NumberTask(constraint, limits, targets, data.groups, data.sample_weight, None)
        free = task.moved([], values)
        task = task._replace(chances=self._chances(data, splits, free.excess > 0))
        self._store(find_steps(free, task), free, data, limit)
        return self

    def _checked_constraint(self) -> tuple[Constraint, Any]:
        """Return the constraint as an object, and its limit."""
        (constraint,) = make_constraints(self.constraint, "predictions")
        if type(constraint) not in NUMBER_MAPS or constraint.reference != "pairwise":
            raise ValueError(
                f"FairDecisionRegressor cannot limit constraint={constraint!r}. It takes "
                f"{listed([known.__name__ for known in NUMBER_MAPS])}, with reference='pairwise'."
            )
        if constraint.own_limit is None:
            return constraint, self.max_disparity
        check_number(constraint.own_limit, "max_disparity of the constraint", 0)
        return constraint, constraint.own_limit

    def _chances(
        self, data: TrainingData, splits: Callable[[], list[Split]], is_needed: bool
    ) -> list[FloatArray] | None:
        """Fit models of the groups if a limit binds and groups may not be used."""
        self.is_group_aware_ = bool(self.group_aware)
        self.group_estimators_, self._group_models = [], None
        if self.is_group_aware_ or not is_needed:
            return None
        one_class = np.zeros(data.groups.n_samples, np.int64)
        models = self._fit_groups(data, one_class, splits())
        return self._by_attribute(models.joint_of_rows(np.ones((one_class.size, 1))))

    def _store(self, moved: Moved, free: Moved, data: TrainingData, limit: Any) -> None:
        """Store the maps and what they make of the training rows; warn if a limit is missed."""
        offsets, masses = data.groups.offsets, data.groups.sums(data.sample_weight)
        totals = np.repeat(np.add.reduceat(masses, offsets[:-1]), np.diff(offsets))
        self._marginals = masses / totals
        self.steps_, self.train_predictions_ = moved.steps, moved.values
        self.train_disparities_ = moved.gaps
        self.train_disparity_ = float(moved.gaps.max(initial=0.0))
        self.price_of_fairness_ = moved.error - free.error
        self.status_ = "converged" if moved.excess <= 0 else "infeasible"
        if self.status_ == "infeasible":
            remedy = (
                "The other columns say too little of the group: set a larger limit, or let "
                "predictions use it (group_aware=True)."
            )
            if self.is_group_aware_:
                remedy = (
                    "Monotone maps move whole rows, and tied rows together; of losses they only "
                    "raise the smaller ones. Set a larger limit."
                )
            warn_user(
                f"FairDecisionRegressor found no maps that keep max_disparity={limit}: the "
                f"disparity ({self.constraint}) of the training rows is "
                f"{self.train_disparity_:.3g}. {remedy}",
                ConvergenceWarning,
            )
        elif np.ptp(moved.values) < NEARLY_CONSTANT * np.ptp(free.values):
            warn_user(
                f"The predictions that keep max_disparity={limit} are nearly constant: without "
                "the group, groups are alike only if all rows are. Set a larger limit, or let "
                "predictions use the group (group_aware=True)."
            )

    def _by_attribute(self, joint: FloatArray) -> list[FloatArray]:
        """Return the probabilities of the groups of each attribute."""
        parts = np.split(joint[..., 0], self._group_levels.offsets[1:-1], axis=1)
        return [np.ascontiguousarray(part) for part in parts]

    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> FloatArray:
        """Predict the numbers of rows.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if groups are used and X does not hold them.

        Returns
        -------
        predictions : ndarray of shape (n_samples,)
            The predictions of the regressor, moved by the maps.
        """
        check_is_fitted(self)
        codes = groups_of_new_rows(self, X, sensitive_features, are_used=bool(self.steps_))
        rows = read_features(self, as_rows(X), skip_check_array=True)
        values = mean_over(self.estimators_, lambda model: numbers_of(model, rows))
        if not self.steps_:
            return values
        if self._group_models is not None:
            joint = self._group_models.joint(rows, np.ones((values.size, 1)))
            return _moved(self.steps_, values, self._by_attribute(joint))
        if codes is None:  # a single group
            codes = np.zeros((1, values.size), np.int64)
        return self._moved_by_known(values, codes)

    def _moved_by_known(self, values: FloatArray, codes: IntArray) -> FloatArray:
        """Move rows by their groups; those of unseen ones by the mean of the maps."""
        offsets = self._group_levels.offsets
        is_seen = (codes >= 0).all(axis=0)  # in all attributes
        seen, unseen = np.flatnonzero(is_seen), np.flatnonzero(~is_seen)
        groups = [
            codes_of_attribute[seen] - start
            for codes_of_attribute, start in zip(codes, offsets[:-1], strict=True)
        ]
        values = values.copy()
        values[seen] = _moved(self.steps_, values[seen], groups)
        shares = np.split(self._marginals, offsets[1:-1])
        average = [np.tile(shares_of_attribute, (unseen.size, 1)) for shares_of_attribute in shares]
        values[unseen] = _moved(self.steps_, values[unseen], average)
        return values

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
            The rows.
        y : array-like of shape (n_samples,)
            Their true numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if groups are used and X does not hold them.

        Returns
        -------
        score : float
            1 for predictions without error, 0 for those of the mean.
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        predicted = self.predict(X, sensitive_features=sensitive_features)
        weights = check_weights(sample_weight, predicted.size)
        return float(r2_score(y, predicted, sample_weight=weights))


def _moved(steps: list[Step], values: FloatArray, groups: Any) -> FloatArray:
    """Apply steps in their order, by the groups of the attribute of each."""
    for step in steps:
        values = step(values, groups[step.attribute])
    return values
