"""A classifier around any scorer, whose mapped scores satisfy a limit on intervals of ranks.

``fit`` reads the rows, binds the limit to them as a
:class:`~skfair.partial_parity.promise.Promise`, and fits the classifier on folds, or takes the
fitted one. :func:`report` then lets :func:`skfair.partial_parity.prediction.settled` choose the
maps of its out-of-fold scores. With ``certificate=`` this estimator itself is refitted under rising
limits (:func:`skfair.partial_parity.certificate.certified_interval`).
"""

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
from skfair.estimators import wrapped_scores
from skfair.estimators.certificate import Certificate
from skfair.estimators.seen_rows import check_unseen
from skfair.estimators.wrapped_estimator import (
    FitsOnFolds,
    read_for_wrapped,
    read_parts,
    values_unseen,
)
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Limit
from skfair.groups.named_columns import column_positions, take_columns
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.partial_parity import prediction
from skfair.partial_parity.certificate import certified_interval
from skfair.partial_parity.interval_constraint import read_constraint
from skfair.partial_parity.prediction import PartialPrediction
from skfair.partial_parity.promise import Promise, promise_of_fit
from skfair.utils.dask_collections import is_lazy, meta_of
from skfair.utils.docs import documented
from skfair.utils.routing import refuse_misspelt
from skfair.utils.threads import one_thread_if_few


@documented
class PartialParityCalibrator(
    PartialPrediction, FitsOnFolds, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    """Post-process the scores of any classifier to limit a disparity within an interval of ranks.

    A typical use is a shortlist, such as the best 30% of each group, made by a model that you want
    to keep. The scores of each group are changed by a monotone map inside the interval, so the
    order of the rows within a group stays the same. If the constraint requires it, each group also
    has its own threshold. Predictions need the group. Use
    ``PartialParityClassifier(group_aware=False)`` for a model that does not need it.

    On the training rows, the disparity is at most ``effective_disparity_`` if ``is_within_limit_``
    is True. On new data the disparity may lie above or below this value.

    Parameters
    ----------
    estimator : estimator, default=None
        The classifier, which must have ``decision_function`` or ``predict_proba``. If None, a
        ``LogisticRegression()`` is used.
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Interval of ranks within each group, as fractions counted from the top. The default is the
        best 30% of each group. A list is the union of its intervals. A dict sets the interval of
        each group.
    constraint : str or Constraint, default="statistical_parity"
        The fairness constraint, which is "statistical_parity", "group_auc", "demographic_parity",
        "equal_opportunity", "false_positive_parity", "equalized_odds" or an object.
        :class:`PartialParityClassifier` describes them.
    max_disparity : float or dict, default=None
        The limit on the disparity. A dict holds the limit under the name of the attribute. If None,
        it is 0.05. It must be left out if the constraint has a limit of its own.
    scale : {"conditional", "ccdf"}, default="conditional"
        Unit of the disparity. If "conditional", it is a fraction of the rows in the interval. If
        "ccdf", it is a fraction of all rows of a group.
    cv : int, splitter, iterable, "prefit" or None, default=5
        Folds on which the classifier is fitted. The maps are learned on the out-of-fold scores.

        - int: The number of folds. A hash of the row determines its fold within each group and
          class, so the order of the rows does not matter.
        - splitter or iterable: The splits are used as they are. The training part and the test part
          of a split must have no rows in common.
        - "prefit": ``estimator`` is already fitted. The rows that are passed to ``fit`` must be new
          to it. If they seem to be its training rows, a ``SeenRowsWarning`` is given, and with
          ``certificate`` an error is raised. A ``FrozenEstimator`` is treated in the same way, also
          inside a pipeline, a calibrator or another estimator.
        - None: The classifier is fitted once on all rows, and the maps are learned on the same
          rows. Do not use this for models that fit the training rows closely, such as forests and
          boosted trees, because their disparity on new data is then hardly limited.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Method of the classifier that provides the scores. If "auto", ``decision_function`` is used
        if it exists, otherwise ``predict_proba``. Probabilities are converted to log-odds.
    n_jobs : int, default=None
        Number of fits that run in parallel. If None, the fits are made one after another.

    Attributes
    ----------
    estimators_ : list of estimators
        Classifiers that predict new rows, and whose scores are averaged: those of the folds, or a
        single one.
    classes_ : ndarray of shape (2,)
        The class labels. The second one is the positive class.
    is_group_aware_ : bool
        Always True, because predictions need the group.
    thresholds_ : ndarray of shape (n_groups,)
        Threshold of each group on the scores of the classifier.
    rates_ : ndarray of shape (n_groups,)
        Selection rate of each group on the training rows.
    calibration_ : GroupMaps
        Maps of the scores. The map of a group is piecewise linear, and its attributes ``before``
        and ``after`` hold the scores at the knots before and after the map.
    train_predictions_ : ndarray of shape (n_samples,)
        Predictions of the training rows, by out-of-fold scores if there are folds.
    train_disparity_ : float
        Disparity on the training rows. It is measured on out-of-fold scores if there are folds.
    effective_disparity_ : float
        The limit that was used. It is larger than ``max_disparity`` if few rows or ties make a
        smaller disparity impossible.
    changes_ : dict of str to Change
        Changes of the decisions on the training rows that are caused by the limits. The key
        "selection rate" holds an object with the attributes ``before`` (the selection rate of the
        same model without limits), ``after`` (the rate with limits), ``by_group`` (the same rates
        for each group), ``rows_up`` (the number of rows that are newly selected) and ``rows_down``
        (the number of rows that are no longer selected).
    is_within_limit_ : bool
        True if ``train_disparity_`` is at most ``effective_disparity_``. This refers to the
        training rows. Use ``certificate`` for a limit that holds for the population.
    status_ : str
        How the fit ended. If ties make the limit impossible, the limit meant here is
        ``effective_disparity_``, which only rounding errors can exceed.

    See Also
    --------
    PartialParityClassifier : Linear classifier that is trained under the same constraints.
    skfair.metrics.partial_statistical_parity_gap : The disparity that is limited by default.

    Notes
    -----
    The maps require one sort of the scores in addition to the fits of the classifier. Dask
    collections are accepted with ``cv="prefit"``. They are also accepted with ``cv=None`` if
    ``estimator`` itself reads them. The scores are then computed in the partitions, and the maps
    are learned on all scores.

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
    >>> for limit in (1.0, 0.2):
    ...     model = PartialParityCalibrator(trees, (0.1, 0.4), max_disparity=limit)
    ...     model = model.fit(X, y, sensitive_features=sex)
    ...     print(f"disparity within the interval: {model.train_disparity_:.2f}")
    disparity within the interval: 0.83
    disparity within the interval: 0.19
    """

    _endings = ("converged", "infeasible", "certified", "no_solution")
    _takes_partitions = True
    _names_group_columns = False  # no warning about columns like groups: predictions use groups
    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "interval": "no_validation",  # Intervals checks it
        "constraint": [str, Constraint],  # classes_to_map checks the rest
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict, None],
        "scale": [StrOptions({"conditional", "ccdf"})],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "ensemble": ["boolean"],
        "response_method": [StrOptions(set(wrapped_scores.RESPONSES))],
        "n_jobs": [Integral, None],
        **PartialPrediction._certificate_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        interval: IntervalLike = (0.0, 0.3),
        constraint: str | Constraint = "statistical_parity",
        max_disparity: Limit | None = None,
        *,
        scale: Literal["conditional", "ccdf"] = "conditional",
        sensitive: SensitiveLike = None,
        certificate: float | Certificate | None = None,
        cv: Any = 5,
        ensemble: bool = True,
        response_method: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.interval = interval
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.scale = scale
        self.sensitive = sensitive
        self.certificate = certificate
        self.cv = cv
        self.ensemble = ensemble
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
        units: ColumnLike | None = None,
        **fit_params: Any,
    ) -> PartialParityCalibrator:
        """Fit the estimator on folds, and learn the maps.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training samples, in any form that the classifier accepts.
        y : array-like of shape (n_samples,)
            Labels of two classes. The last class in sorted order is the positive one. Pass
            ``y == label`` to choose another.
        **fit_params : dict
            Further arguments of ``estimator.fit``. Arguments with one value per row are split into
            the folds. With metadata routing enabled, these are the arguments that ``estimator`` has
            requested.

        Returns
        -------
        self : PartialParityCalibrator
            The fitted calibrator.
        """
        refuse_misspelt(self, self._inner(), fit_params)
        self.cv = wrapped_scores.kept_folds(self.cv)
        metadata: Any = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        limits = self.constraint, self.interval, self.scale, self.max_disparity
        is_parted = is_lazy(X, y, units, *metadata.values())
        if is_parted:
            self._check_fits_on_partitions(units)
        # There are three forms of the rows. ``table`` is X as it was passed. X becomes the same
        # table in a form that can be indexed. ``data.X`` lacks the group columns that ``sensitive``
        # keeps out of the model. For Dask collections X becomes ``data.X``, which has partitions.
        table, (X, data) = X, read_for_wrapped(self, X, y, units, **metadata)
        self._keep(data.reading)
        classes = classes_to_map(data.y, data.groups, self.constraint, self.interval)
        check_unseen(self, data)
        if self.certificate is not None and not data.groups.is_vacuous:
            wrapped_scores.refuse_folds_of_rows(
                self.cv, None, "certificate= divides the rows at random"
            )
            # The refits have no certificate. Such a fit reads units only to keep them whole in its
            # folds, and raises if it gets units without folds.
            metadata |= fit_params | ({"units": units} if self._has_folds else {})
            return prediction.store(self, certified_interval(self, data, X, metadata, seed=0))
        of_folds = units if self._has_folds else None
        folds = wrapped_scores.known_folds(self.cv, X, data.y, data.groups, of_folds)
        counted = data.groups.rate_weight(data.sample_weight)
        promise = promise_of_fit(*limits, data.groups, data.y, classes, counted)
        # The estimator inside is fitted to these. Dask collections are passed on to it unchanged.
        its_X, its_y, weights = data.X, data.y, data.sample_weight
        asked = self._sensitive
        if is_parted:
            its_X = _columns_of(table, data.reading["_model_positions"])
            its_y, weights = y, sample_weight  # type: ignore[assignment]
        # The group columns that ``sensitive`` names were removed from the rows of the estimator
        # inside. If its own fit takes groups, it gets these columns as sensitive_features.
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
        X: Any,  # rows for the estimator inside; Dask collections as they were passed
        y: Any,
        data: TrainingData,
        classes: NDArray[Any],
        folds: Any,  # result of known_folds; None for one model of all rows
        row_params: dict[str, Any],
    ) -> tuple[list[Any], FloatArray]:
        """Return the models and the scores of the training rows, out-of-fold if there are folds."""
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
            # This call is made for its error, if the model of a fold would see no row of a class.
            wrapped_scores.fewest_to_fit(data.y, splits())
        found = values_unseen(self, self._inner(), read, data.X, data.y, row_params, splits)
        return found.serving, found.values

    def _params_inside(
        self, sample_weight: Any, sensitive_features: Any, fit_params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the arguments of the fit of the estimator inside.

        It gets the groups if its ``fit`` takes them, or, with metadata routing, if it requests
        them.
        """
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
            "Maps belong to groups that do not overlap, but Sensitive(intersectional=False) keeps "
            f"{groups.n_attributes} attributes apart. Use intersectional=True."
        )
    return prediction.classes_of(y, groups, constraint, interval)


def report(
    promise: Promise, scores: FloatArray, models: list[Any], classes: NDArray[Any]
) -> dict[str, Any]:
    """Choose the maps of scores, and return the fitted attributes."""
    # Only the maps depend on the limit, so the scores before the maps are also those without it.
    attributes = prediction.settled(promise, scores, free=scores, is_strict=True, is_repaired=True)
    maps, final = attributes["calibration_"], scores
    if maps is not None:
        codes, counts = promise.groups.codes_if_known[0], attributes["_counts"]
        final = prediction.averaged(lambda codes: maps(scores, codes), codes, counts)
    return {
        **attributes,
        "train_predictions_": classes[(final > 0).astype(np.int64)],
        "estimators_": models,
        "classes_": classes,
        "is_group_aware_": True,
        "status_": "converged" if attributes["is_within_limit_"] else "infeasible",
    }


def _columns_of(X: Any, positions: Any) -> Any:
    """Return some columns of a Dask collection, all if None."""
    if positions is None:
        return X
    positions = np.asarray(positions).tolist()
    return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions]
