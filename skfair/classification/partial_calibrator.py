"""Fair scores within a percentile interval for any scorer: repair as a meta-estimator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)
from sklearn.utils.validation import _check_y, has_fit_parameter

from skfair._typing import (
    ColumnLike,
    ColumnsLike,
    Estimator,
    FloatArray,
    IntArray,
    IntervalLike,
    MatrixLike,
)
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.blocks.partitions import align, by_block, is_lazy, known_sizes, meta_of, without_rows
from skfair.constraints.partial import PARTIAL_RULES
from skfair.estimators.certified.certificate import Certificate
from skfair.estimators.certified.judges import NOT_LAZY, certified_interval
from skfair.estimators.inner_scores import (
    RESPONSES,
    as_rows,
    cross_fitted_scores,
    fitted,
    keep_folds,
    known_folds,
    refuse_folds_of_rows,
    scores_of,
)
from skfair.estimators.partial.prediction import PartialPrediction
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Limit
from skfair.groups.named_columns import column_positions, take_columns
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.weighted_rows import LazyRows
from skfair.utils.availability import available_if
from skfair.utils.docs import documented
from skfair.utils.text import did_you_mean
from skfair.utils.threads import one_thread_if_few
from skfair.utils.warn import warn_user


def _has_probabilities(calibrator: PartialParityCalibrator) -> bool:
    inner = getattr(calibrator, "estimator_", None) or calibrator._inner()
    if not hasattr(inner, "predict_proba"):
        raise AttributeError(f"{type(inner).__name__} has no predict_proba.")
    return True


@documented
class PartialParityCalibrator(
    PartialPrediction, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    """Scores of any classifier, mapped so that groups are alike within a percentile interval.

    Each group gets a threshold of its own if the constraint asks for it, the most accurate ones
    that it allows, and a monotone map of its scores inside the interval. The order of rows within a
    group stays. Predictions need the group; a model that does without it is
    ``PartialParityClassifier(group_aware=False)``.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier with ``decision_function`` or ``predict_proba``, a pipeline for instance; None
        for ``LogisticRegression()``. One that is fitted already is passed as
        ``sklearn.frozen.FrozenEstimator(estimator)``.
    interval : pair, list of pairs, or dict of these per group, default=(0.0, 0.3)
        Percentile interval, ranks counted from the top: the best 30% of each group. A list is a
        union.
    constraint : str, default="statistical_parity"
        "statistical_parity", "group_auc", "demographic_parity", "equal_opportunity" or
        "equalized_odds", as in :class:`PartialParityClassifier`.
    max_disparity : float or dict, default=0.05
        The limit; a dict has it by the name of the attribute.
    scale : {"conditional", "ccdf"}, default="conditional"
        Whether disparities are shares of the interval, or shares of the whole groups.
    cv : int, cross-validation generator or None, default=5
        Where the scores come from that maps are learned on: from estimators fitted on other rows
        (cross-fitting), while the estimator that predicts is fitted on all rows. None: from that
        estimator, on the rows it was fitted on, which saves time with few parameters, and makes
        the limit hold for its own training scores. Estimators that fit their training data closely
        (forests, boosted trees) give other scores to new rows, and maps that were learned on the
        training scores do not keep the limit there. A ``FrozenEstimator`` is never fitted, so its
        own scores are used. Splitters of :mod:`skfair.model_selection` get the groups.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where scores come from; probabilities become log-odds.
    n_jobs : int, default=None
        Fits of ``cv`` that run at once.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : ndarray of shape (2,)
        The classes; the second is the positive one.
    is_group_aware_ : bool
        True.
    thresholds_ : ndarray of shape (n_groups,)
        Decision threshold of each group on the scores of the estimator.
    calibration_ : GroupMaps
        The maps: ``before`` and ``after`` are the knots of each group.
    rates_ : ndarray of shape (n_groups,)
        Share of positive decisions in each group of the training data.
    train_disparity_ : float
        The disparity on the training data, of cross-fitted scores if there is ``cv``.
    effective_disparity_ : float
        The limit that was used: ``max_disparity``, or more where the numbers of rows, or ties,
        leave no choice.
    certified_ : bool
        Whether ``train_disparity_`` is at most ``effective_disparity_``. This was checked on the
        training rows and says nothing about the population; for that see ``status_`` with
        ``confidence``, and ``disparity_upper_bound``.
    status_ : str
        With ``confidence``: "certified", or "no_solution" if nothing could be shown to keep the
        limit; "converged" if there is a single group, and nothing to show.

    See Also
    --------
    PartialParityClassifier : Fits a linear model and repairs it in one.
    skfair.metrics.partial_statistical_parity_gap : The disparity that is limited by default.

    Notes
    -----
    Beyond the estimator's own fit, one sort of the scores: O(n log n + n n_groups). Weights of rows
    count in ranks, and are passed to the estimator if it takes them.

    Dask collections are accepted if ``estimator`` is fitted already, as a ``FrozenEstimator``, or
    reads them itself with ``cv=None``. Many scores are put into bins there
    (:mod:`skfair.groups.weighted_rows`). Thresholds lie between bins, so rates of decisions are
    exact; elsewhere the share of a group above a score is known up to the largest share of a bin,
    by which the limit is made smaller for the bins and ``train_disparity_`` larger than what they
    show: it never understates the disparity of all rows.

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
    >>> model.certified_, model.predict(X[:5], sensitive_features=sex[:5]).shape
    (True, (5,))
    """

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "interval": "no_validation",  # Intervals says more
        "constraint": [str],  # _check_rule says more
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict],
        "scale": [StrOptions({"conditional", "ccdf"})],
        "cv": ["cv_object"],
        "response_method": [StrOptions(set(RESPONSES))],
        "n_jobs": [Integral, None],
        **PartialPrediction._confidence_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self,
        estimator: Estimator | None = None,
        interval: IntervalLike = (0.0, 0.3),
        constraint: str = "statistical_parity",
        max_disparity: Limit = 0.05,
        *,
        scale: Literal["conditional", "ccdf"] = "conditional",
        cv: Any = 5,
        response_method: str = "auto",
        sensitive: SensitiveLike = None,
        confidence: float | Certificate | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.interval = interval
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.scale = scale
        self.cv = cv
        self.response_method = response_method
        self.sensitive = sensitive
        self.confidence = confidence
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
    ) -> PartialParityCalibrator:
        """Fit the estimator and learn the maps.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows, in whatever form the estimator takes.
        y : array-like of shape (n_samples,)
            Two classes; the last one in order is the positive one. Pass ``y == label`` to choose.
        groups : array-like of shape (n_samples,)
            What rows belong to, such as people, for a ``cv`` like ``GroupKFold`` that keeps rows of
            the same one in one fold. They are not compared.

        Returns
        -------
        self : PartialParityCalibrator
            The fitted calibrator.
        """
        keep_folds(self)
        self._check_rule()
        self._forget("status_")
        if is_lazy(X, y, sample_weight, sensitive_features, groups):
            if self.confidence is not None:
                raise ValueError(NOT_LAZY)
            refuse_folds_of_rows(None, groups, "Dask collections are not cut into folds")
            return self._fit_lazily(X, y, sample_weight, sensitive_features)
        check_aligned(X=X, y=y, groups=groups)
        X, y = indexable(as_rows(X), _check_y(y, estimator=self))
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
        }
        data = self._read(X, y, skip_check_array=True, **metadata)
        self._read_targets(data.y, data.groups)
        folds = known_folds(self.cv, X, data.y, data.groups, groups)
        if self.confidence is not None and not data.groups.is_vacuous:
            refuse_folds_of_rows(self.cv, groups, "confidence= draws halves of the rows at random")
            self.__dict__.update(certified_interval(self, data, X, metadata, 0))
            return self
        promise = self._promise(data.y, data.groups, data.sample_weight)
        if self._sensitive.columns is not None and not self._sensitive.keep:
            sensitive_features = take_columns(X, self._sensitive.columns)
        row_params = self._row_params(data.sample_weight, sensitive_features)
        inner = self._inner()
        self.estimator_ = fitted(inner, data.X, data.y, row_params)
        if self.cv is None or isinstance(inner, FrozenEstimator):
            scores = self._scores(data.X)
        else:
            scores = cross_fitted_scores(
                inner,
                data.X,
                data.y,
                row_params,
                cv=folds,
                n_jobs=self.n_jobs,
                response_method=self.response_method,
                pos_label=self.classes_[1],
            )
        self._settle(promise, scores, is_repaired=True)
        if self.confidence is not None:  # a single group has nothing to certify
            self.status_ = "converged"
        return self

    def _check_rule(self) -> None:
        names = [name for name in PARTIAL_RULES if PARTIAL_RULES[name].is_repairable]
        if self.constraint not in names:
            raise InvalidParameterError(
                f"The 'constraint' parameter of PartialParityCalibrator must be one that maps "
                f"can keep: {', '.join(map(repr, names))}. Got {self.constraint!r} instead."
                + did_you_mean(self.constraint, names)
            )

    def _fit_lazily(
        self, X: Any, y: Any, sample_weight: Any, sensitive_features: Any
    ) -> PartialParityCalibrator:
        """Fit on Dask collections: the maps are learned on scores in bins.

        A pass reads groups and classes, one the scores, which are computed where the rows are.
        """
        inner = self._inner()
        if not isinstance(inner, FrozenEstimator):
            _check_fits_lazily(inner, self.cv)
        X, sensitive_features = self._read_lazy(X, sensitive_features)
        metadata: dict[str, Any] = {
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
            "intersectional": self._sensitive.crossed,
            "needs_groups": False,
        }
        rows = align(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        is_in_memory = not is_lazy(y, sensitive_features, sample_weight)
        kinds = LazyRows({"y": _as_one_block(y) if is_in_memory else y}, **metadata).kinds()
        self._read_targets(np.asarray(kinds.columns["y"]), kinds.groups)
        self.groups_ = np.array(kinds.groups.names, dtype=object)
        self._group_levels = kinds.groups.levels
        kinds.groups.warn_small()
        row_params = self._row_params(sample_weight, sensitive_features)
        self.estimator_ = fitted(inner, X, y, row_params)
        scores = rows.to_array(
            _scores_of_block, without_rows(self), dtype=np.float64, sizes=known_sizes(X)
        )
        few = LazyRows({"y": y}, {"scores": scores}, **metadata).binned("scores", [0.0])
        assert few.bins is not None
        promise = self._promise(np.asarray(few.columns["y"]), few.groups, few.weights, few)
        # Thresholds lie between bins, and maps rise: no row passes the largest score of its bin.
        self._settle(promise, few.bins.high[few.bins.number], is_repaired=True)
        return self

    def _read_lazy(self, X: MatrixLike, sensitive_features: ColumnsLike) -> tuple[Any, Any]:
        """Check the columns of a Dask collection; return those of the estimator, and the groups."""
        self._read_lazy_columns(X, sensitive_features)
        if self._sensitive.columns is not None:
            sensitive_features = _columns_of(
                X, column_positions(meta_of(X), self._sensitive.columns)
            )
            X = _columns_of(X, np.asarray(self._model_positions).tolist())
        return X, sensitive_features

    def _read_targets(self, y: NDArray[Any], groups: GroupEncoding) -> None:
        """Read the classes; raise if groups overlap."""
        if groups.n_attributes > 1:
            raise ValueError(
                "Maps belong to groups that do not overlap, but Sensitive(crossed=False) keeps "
                f"{groups.n_attributes} attributes apart. Use crossed=True."
            )
        self._read_classes(y, groups)
        self.is_group_aware_ = True

    def _inner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _row_params(self, sample_weight: Any, sensitive_features: Any) -> dict[str, Any]:
        """Return what the fit of the estimator takes besides X and y."""
        metadata = {"sample_weight": sample_weight, "sensitive_features": sensitive_features}
        taken = {
            name: values
            for name, values in metadata.items()
            if values is not None and has_fit_parameter(self._inner(), name)
        }
        if sample_weight is not None and "sample_weight" not in taken:
            warn_user(
                f"{type(self._inner()).__name__} takes no sample_weight: weights count in the "
                "ranks only."
            )
        return taken

    def _scores(self, X: MatrixLike) -> FloatArray:
        return scores_of(self.estimator_, X, self.response_method, self.classes_[1])

    def _raw_scores(self, X: MatrixLike, codes: IntArray | None) -> FloatArray:
        return self._scores(self._read_features(as_rows(X), skip_check_array=True))

    @available_if(_has_probabilities)
    @by_block(n_columns=lambda self: 2)
    def predict_proba(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Return probabilities of both classes: the mapped scores, read as log-odds.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if X does not hold them.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack([1 - positive, positive])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _check_fits_lazily(inner: Any, cv: Any) -> None:
    """Raise if the estimator would be fitted on folds, or on rows that it gathers."""
    name = type(inner).__name__
    if cv is not None:
        raise ValueError(
            f"cv={cv!r} would fit {name} on folds, which Dask collections are not cut "
            "into. Fit it on a sample of the rows, or with an estimator that reads Dask "
            "collections, and pass it as sklearn.frozen.FrozenEstimator(estimator)."
        )
    if type(inner).__module__.startswith("sklearn."):
        raise ValueError(
            f"{name} does not read Dask collections: it would gather all rows. Fit it on a "
            "sample of them and pass it as sklearn.frozen.FrozenEstimator(estimator)."
        )


def _columns_of(X: Any, positions: list[int]) -> Any:
    """Return columns of a Dask collection."""
    return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions]


def _as_one_block(y: ColumnLike) -> Any:
    import dask.array as da

    return da.from_array(np.asarray(y), chunks=-1)


def _scores_of_block(block: dict[str, Any], calibrator: PartialParityCalibrator) -> FloatArray:
    if not block["X"].shape[0]:
        return np.empty(0)
    return calibrator._scores(as_rows(block["X"]))
