"""A classifier around any scorer, whose mapped scores satisfy a limit on intervals of ranks."""

from __future__ import annotations

from functools import cache, partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils._param_validation import HasMethods, Interval, InvalidParameterError, StrOptions
from sklearn.utils.validation import has_fit_parameter

from skfair._typing import ColumnLike, ColumnsLike, Estimator, FloatArray, IntervalLike, MatrixLike
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.constraints.base import Constraint
from skfair.constraints.partial import read_constraint
from skfair.enforcement.partial.promise import Promise, promise_of_fit
from skfair.estimators import partial_prediction as prediction
from skfair.estimators import wrapped_scores
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.certified.judges import certified_interval
from skfair.estimators.partial_prediction import PartialPrediction
from skfair.estimators.wrapped_estimator import (
    WrapsEstimator,
    read_for_wrapped,
    read_parts,
    values_unseen,
)
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Limit
from skfair.groups.named_columns import column_positions, take_columns
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.utils.dask_collections import is_lazy, meta_of
from skfair.utils.docs import documented
from skfair.utils.threads import one_thread_if_few


@documented
class PartialParityCalibrator(
    PartialPrediction, WrapsEstimator, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    """Scores of any classifier, mapped so that groups are alike within an interval of ranks.

    Use it for a shortlist made by a model that you keep. Each group gets a monotone map of its
    scores inside the interval and, if the constraint asks for it, a threshold of its own; the order
    of rows within a group stays. Predictions need the group; a model that does without it is
    ``PartialParityClassifier(group_aware=False)``. On the training rows the disparity is at most
    ``effective_disparity_`` if ``is_within_limit_`` is True. New rows may miss it in either
    direction.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier with ``decision_function`` or ``predict_proba``; None for
        ``LogisticRegression()``.
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Ranks from the top, as shares: the best 30% of each group. A list is a union.
    constraint : str or Constraint, default="statistical_parity"
        "statistical_parity", "group_auc", "demographic_parity", "equal_opportunity",
        "false_positive_parity", "equalized_odds" or an object, as in
        :class:`PartialParityClassifier`.
    max_disparity : float or dict, default=0.05
        The limit; a dict has it by the name of the attribute.
    scale : {"conditional", "ccdf"}, default="conditional"
        Whether disparities are shares of the interval, or of whole groups.
    cv : int, splitter, iterable, "prefit" or None, default=5
        The folds: maps are learned on scores of rows that a model has not seen, and the mean of
        these models predicts. A number of folds deals the rows of each group and class by a hash,
        so their order does not matter. "prefit" takes a fitted ``estimator`` as it is: pass rows it
        has not seen. None learns maps on the rows of the one fit, which limits little where these
        are fitted closely (forests, boosted trees).
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where scores come from; probabilities become log-odds.
    n_jobs : int, default=None
        Fits of ``cv`` that run at once.

    Attributes
    ----------
    estimators_ : list of estimators
        The models of the folds, whose scores are averaged.
    classes_ : ndarray of shape (2,)
        The classes; the second is the positive one.
    is_group_aware_ : bool
        True.
    thresholds_, rates_ : ndarray of shape (n_groups,)
        Threshold of each group, and its share of positive decisions on the training rows.
    calibration_ : GroupMaps
        The maps: ``before`` and ``after`` are the knots of each group.
    train_disparity_ : float
        Disparity on the training rows, of scores by models that have not seen them if there are
        folds.
    effective_disparity_ : float
        The limit that was used: larger than that asked for where few rows or ties leave no choice.
    changes_ : dict of str to Change
        By "selection rate", what the limits change on the training rows: ``before`` is the share of
        selected rows by the same model without the limits, ``after`` the share with them,
        ``by_group`` has both for each group, and ``rows_up`` and ``rows_down`` are the numbers of
        rows that are newly selected and no longer selected.
    is_within_limit_ : bool
        Whether ``train_disparity_`` is at most ``effective_disparity_``. This says nothing about
        the population, which ``confidence`` does.
    status_ : str
        "converged", or "infeasible" if ties leave more than the limit; with ``confidence``
        "certified" or "no_solution".

    See Also
    --------
    PartialParityClassifier : Fits a linear model and repairs it in one.
    skfair.metrics.partial_statistical_parity_gap : The disparity that is limited by default.

    Notes
    -----
    Beyond the fits of the estimator, one sort of the scores. Dask collections are accepted with
    ``cv="prefit"``, or if ``estimator`` reads them itself with ``cv=None``: scores are computed
    where the rows are, and maps are learned on all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from skfair.classification import PartialParityCalibrator
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> trees = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    >>> model = PartialParityCalibrator(trees, (0.1, 0.4), max_disparity=0.2)
    >>> model = model.fit(X, y, sensitive_features=sex)
    >>> model.status_, model.predict(X[:5], sensitive_features=sex[:5]).shape
    ('converged', (5,))
    """

    _takes_partitions = True
    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "interval": "no_validation",  # Intervals says more
        "constraint": [str, Constraint],  # classes_to_map says more
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict],
        "scale": [StrOptions({"conditional", "ccdf"})],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "response_method": [StrOptions(set(wrapped_scores.RESPONSES))],
        "n_jobs": [Integral, None],
        **PartialPrediction._confidence_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        interval: IntervalLike = (0.0, 0.3),
        constraint: str | Constraint = "statistical_parity",
        max_disparity: Limit = 0.05,
        *,
        scale: Literal["conditional", "ccdf"] = "conditional",
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        cv: Any = 5,
        response_method: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.interval = interval
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.scale = scale
        self.sensitive = sensitive
        self.confidence = confidence
        self.cv = cv
        self.response_method = response_method
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
    ) -> PartialParityCalibrator:
        """Fit the estimator on folds, and learn the maps.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, in whatever form the estimator takes.
        y : array-like of shape (n_samples,)
            Two classes; the last one in order is the positive one. Pass ``y == label`` to choose.
        **fit_params : dict
            What ``estimator.fit`` takes besides; columns are cut to the folds. With metadata
            routing, what it has requested.

        Returns
        -------
        self : PartialParityCalibrator
            The fitted calibrator.
        """
        self.cv = wrapped_scores.kept_folds(self.cv)
        metadata: Any = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        limits = self.constraint, self.interval, self.scale, self.max_disparity
        is_parted = is_lazy(X, y, groups, *metadata.values())
        if is_parted:
            self._check_fits_on_partitions(groups)
        table, (X, data) = X, read_for_wrapped(self, X, y, groups, **metadata)
        self._keep(data.reading)
        classes = classes_to_map(data.y, data.groups, self.constraint, self.interval)
        if self.confidence is not None and not data.groups.is_vacuous:
            wrapped_scores.refuse_folds_of_rows(
                self.cv, None, "confidence= divides the rows at random"
            )
            metadata |= fit_params | ({"groups": groups} if self._has_folds else {})
            return prediction.store(self, certified_interval(self, data, X, metadata, 0))
        of_folds = groups if self._has_folds else None
        folds = wrapped_scores.known_folds(self.cv, X, data.y, data.groups, of_folds)
        counted = data.groups.rate_weight(data.sample_weight)
        promise = promise_of_fit(*limits, data.groups, data.y, classes, counted)
        its_X, its_y, weights = data.X, data.y, data.sample_weight  # of the estimator inside
        asked = self._sensitive
        if is_parted:
            its_X = _columns_of(table, data.reading["_model_positions"])
            its_y, weights = y, sample_weight  # type: ignore[assignment]
        if asked.columns is not None and not asked.keep:
            sensitive_features = (
                _columns_of(table, column_positions(meta_of(table), asked.columns))
                if is_parted
                else take_columns(X, asked.columns)
            )
        row_params = self._params_inside(weights, sensitive_features, fit_params)
        models, scores = self._fit_models(its_X, its_y, data, classes, folds, row_params)
        return prediction.store(self, report(promise, scores, models, classes))

    def _fit_models(
        self,
        X: Any,  # as a model is fitted to it
        y: Any,
        data: TrainingData,
        classes: NDArray[Any],
        folds: Any,
        row_params: dict[str, Any],
    ) -> tuple[list[Any], FloatArray]:
        """Return models of the folds, or the only one, and the scores of the training rows."""
        read = partial(
            wrapped_scores.scores_of, response_method=self.response_method, pos_label=classes[1]
        )
        if folds is None:
            model = self._inner()
            if self._is_prefit:
                wrapped_scores.check_fitted(model)
            else:
                model = wrapped_scores.fitted(model, X, y, row_params)
            return [model], read_parts(partial(read, model), data.X)
        kinds = data.groups.cells((data.y == classes[1]).astype(np.int64), 2).codes
        splits = cache(partial(wrapped_scores.make_splits, folds, data, kinds))
        if not self._is_prefit:
            wrapped_scores.fewest_to_fit(data.y, splits())
        return values_unseen(self, self._inner(), read, data.X, data.y, row_params, splits)

    def _params_inside(
        self, sample_weight: Any, sensitive_features: Any, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the fit of the estimator takes; without routing that may be the groups."""
        others = {"sensitive_features": sensitive_features}
        takes_groups = has_fit_parameter(self._inner(), "sensitive_features")
        is_routed = get_config()["enable_metadata_routing"]
        if sensitive_features is not None and takes_groups and not (is_routed or self._is_prefit):
            fit_params = others | fit_params
        return self._row_params(sample_weight, fit_params, others)


def classes_to_map(
    y: NDArray[Any], groups: GroupEncoding, constraint: str | Constraint, interval: IntervalLike
) -> NDArray[Any]:
    """Return the two classes; raise if maps of the scores cannot satisfy the constraint."""
    if not read_constraint(constraint).metric:
        raise InvalidParameterError(
            f"constraint={constraint!r} cannot be satisfied by maps of the scores: it looks at no "
            "interval. Use 'statistical_parity', 'group_auc' or a constraint on rates, or "
            "PartialParityClassifier."
        )
    if groups.n_attributes > 1:
        raise ValueError(
            "Maps belong to groups that do not overlap, but Sensitive(crossed=False) keeps "
            f"{groups.n_attributes} attributes apart. Use crossed=True."
        )
    return prediction.classes_of(y, groups, constraint, interval)


def report(
    promise: Promise, scores: FloatArray, models: list[Any], classes: NDArray[Any]
) -> dict[str, Any]:
    """Choose the maps of scores, and return the fitted attributes."""
    attributes = prediction.settled(promise, scores, scores, is_strict=True, is_repaired=True)
    return {
        **attributes,
        "estimators_": models,
        "classes_": classes,
        "is_group_aware_": True,
        "status_": "converged" if attributes["is_within_limit_"] else "infeasible",
    }


def _columns_of(X: Any, positions: Any) -> Any:
    if positions is None:
        return X
    positions = np.asarray(positions).tolist()
    return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions]
