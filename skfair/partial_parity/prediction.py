"""The common parts of PartialParityClassifier and PartialParityCalibrator, in fit and prediction.

- ``fit`` calls :func:`classes_of` for the two classes, :func:`settled` for the maps of the groups
  and the attributes about limits, and :func:`store` at the end.
- :class:`PartialPrediction` is the base class of both. A prediction scores new rows
  (:func:`model_scores` or :func:`mean_scores`), and applies the map of each group to the scores.
- ``noise_floor_``, ``disparity_upper_bound`` and certificates measure the limit of a fitted model
  on other rows by :func:`promise_on`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, IntervalLike, MatrixLike
from skfair.constraints.base import Constraint
from skfair.enforcement.group_maps import GroupMaps
from skfair.estimators.certificate import Certified
from skfair.estimators.classes import (
    accuracy_in_blocks,
    has_probabilities,
    read_classes,
    warn_of_choice,
)
from skfair.estimators.limits import warn_of_changes
from skfair.estimators.wrapped_scores import as_rows, groups_of_new_rows, mean_over, scores_of
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import GroupEncoding, GroupLevels
from skfair.groups.limits import Limit, change_of
from skfair.models.plug_in import plugged_scores
from skfair.partial_parity.grouped_scores import group_scores
from skfair.partial_parity.interval_constraint import read_constraint
from skfair.partial_parity.noise import alike_rows, simulated_floor, warn_below_noise
from skfair.partial_parity.promise import Promise, upper_bound, warn_not_kept
from skfair.partial_parity.repair import repair_scores
from skfair.read import ROW_CHECKS, read_features, read_part_groups
from skfair.utils.availability import available_if
from skfair.utils.dask_collections import by_block, is_lazy
from skfair.utils.docs import documented
from skfair.utils.rounding import ROUNDING
from skfair.utils.validation import check_labels, check_probability, check_weights

Fitted = TypeVar("Fitted", bound="PartialPrediction")


def classes_of(
    y: NDArray[Any],
    groups: GroupEncoding,
    constraint: str | Constraint,
    interval: IntervalLike,
    loss: object = None,
) -> NDArray[Any]:
    """Return the two sorted classes; warn if the result depends on which one is positive.

    It does if the constraint depends on one class, if the interval is not the whole ranking, or if
    the loss is a partial AUC. There is no warning for labels such as 0 and 1.
    """
    classes, within = read_classes(y), read_constraint(constraint)
    ends = np.ravel(np.asarray(interval, dtype=object)).tolist()
    # If all ranks count, it does not matter whether they are counted from the top or the bottom.
    ranks_all = not within.metric or ends == [0, 1]
    reasons = []
    if not groups.is_vacuous and (not ranks_all or len(within.classes) == 1):
        reasons.append(f"constraint={constraint!r}")
    if loss == "partial_auc":
        reasons.append(f"loss={loss!r}")
    warn_of_choice(classes, reasons, "y == {!r}")
    return classes


def promise_on(
    model: PartialPrediction,
    groups: GroupEncoding,
    targets: FloatArray,
    weights: FloatArray | None = None,
) -> Promise:
    """Return the limit of a fitted model as a promise on other rows."""
    within, is_ccdf = read_constraint(model.constraint), model.scale == "ccdf"
    limit = model.effective_disparity_
    return Promise(within, model.interval, is_ccdf, limit, groups, targets, weights)


def settled(
    promise: Promise,
    scores: FloatArray,  # (n_samples,): scores before maps
    # (n_samples,): scores by the model without the limit. If None, ``changes_`` is empty
    free: FloatArray | None,
    *,
    is_strict: bool,  # whether to warn if the limit is exceeded, or decisions change by much
    is_repaired: bool,  # whether maps of the groups are chosen
    min_gap: float = 0.0,  # scores that are closer count as tied
) -> dict[str, Any]:
    """Choose maps of the groups, measure the limit after them, and return both as attributes.

    Without repair scores are unchanged, and ``calibration_`` is None. If ties make the limit
    impossible, repair raises it to ``effective_disparity_``.
    """
    groups, weights = promise.groups, promise.weights
    limit, bound, maps = promise.limit, promise.bound, None
    if is_repaired:
        maps, reached = repair_scores(promise, scores, min_gap=min_gap)
        limit = bound = max(bound, reached)
    final = scores if maps is None else maps(scores, groups.codes[0])
    disparity = promise.measure(final)
    is_within = bool(promise.load(final) <= bound + ROUNDING)
    positive = (final > 0) * (1.0 if weights is None else weights)
    counts = groups.cross_counts((promise.targets > 0).astype(np.int64), 2, groups.has_group)
    changes = {}
    if free is not None:
        changes["selection rate"] = change_of(groups, weights, (free > 0, final > 0))
    if is_strict and not is_within:
        warn_not_kept(promise, disparity, is_repaired)
    elif is_strict and changes and promise.constraint.ranked.limits_decisions:
        warn_of_changes(changes, promise.targets > 0, weights, remedy=lambda: "Raise")
    # If groups have different intervals, even identical groups differ, and not by chance. Then
    # there is no noise floor.
    is_same_for_all = not isinstance(promise.interval, Mapping)
    if promise.constraint.metric and is_same_for_all and not promise.is_vacuous:
        warn_below_noise(promise, limit, counts)
    return {
        "calibration_": maps,
        "thresholds_": np.zeros(groups.n_groups) if maps is None else maps.thresholds,
        "rates_": groups.sums(positive) / groups.sums(weights),
        "train_disparity_": disparity,
        "effective_disparity_": limit,
        "changes_": changes,
        "_limits": replace(promise, limit=limit).in_force(final),
        "is_within_limit_": is_within,
        "_counts": counts,
    }


def store(estimator: Fitted, attributes: Mapping[str, Any]) -> Fitted:
    """Store the attributes of a fit, delete those of an earlier one; return the estimator."""
    estimator._forget("coef_", "intercept_", "model_", "parameters_", "noise_floor_")
    estimator._store(attributes)
    return estimator


def model_scores(state: Mapping[str, Any], X: Any, codes: IntArray | None) -> FloatArray:
    """Return the scores of rows before maps, (n_samples,).

    ``state`` are the attributes of a fitted classifier. ``codes`` are the groups of the rows, which
    are read only if each group has its own weights.
    """
    if "parameters_" in state:
        return plugged_scores(state["model_"], state["parameters_"], X)
    return group_scores(state["coef_"], state["intercept_"], X, codes)


def mean_scores(
    models: Sequence[Any], X: Any, response_method: str, classes: NDArray[Any]
) -> FloatArray:
    """Return the mean of the scores by several classifiers, (n_samples,)."""
    read = partial(scores_of, X=X, response_method=response_method, pos_label=classes[1])
    return mean_over(models, read)


def averaged(
    of_groups: Callable[[Any], FloatArray], codes: IntArray | None, counts: FloatArray
) -> FloatArray:
    """Return the scores of rows by their groups.

    Rows of unknown groups (-1) get the mean of the scores that they would have in each group.
    ``counts`` are the numbers of training rows by group and class.
    """
    if codes is None or codes.min(initial=0) >= 0:
        return of_groups(codes)
    shares = counts.sum(axis=1) / counts.sum()
    mean = sum(share * of_groups(np.full_like(codes, g)) for g, share in enumerate(shares))
    return np.where(codes < 0, mean, of_groups(np.maximum(codes, 0)))


@documented
class PartialPrediction(Certified, ClassifierMixin):
    """Base of the estimators of partial parity: predictions, and bounds on new rows."""

    _learns_without_group = True

    __metadata_request__predict = {"sensitive_features": True}
    __metadata_request__predict_proba = {"sensitive_features": True}
    __metadata_request__predict_log_proba = {"sensitive_features": True}
    __metadata_request__decision_function = {"sensitive_features": True}
    __metadata_request__score = {"sensitive_features": True}

    interval: IntervalLike
    constraint: str | Constraint
    scale: str
    is_group_aware_: bool
    calibration_: GroupMaps | None
    effective_disparity_: Limit
    classes_: NDArray[Any]
    estimators_: list[Any]
    response_method: str
    _group_levels: GroupLevels
    _counts: FloatArray  # (n_groups, 2): training rows of each group and class

    @by_block()
    def decision_function(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> FloatArray:
        """Return the score of each sample, after the maps of the groups.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores. A positive score means that the positive class is predicted.
        """
        check_is_fitted(self)
        state = vars(self)
        codes: Any = groups_of_new_rows(self, X, sensitive_features)
        if codes is not None:  # (n_attributes, n_samples), with one attribute
            codes = codes[0]
        elif self.is_group_aware_:  # with a single group, groups need not be passed
            codes = np.zeros(_num_samples(X), np.int64)
        if "estimators_" in state:
            rows = read_features(self, as_rows(X), skip_check_array=True)
            known = mean_scores(self.estimators_, rows, self.response_method, self.classes_)
        else:
            rows, known = read_features(self, X, **ROW_CHECKS), None

        def of_groups(codes: Any) -> FloatArray:
            scores = model_scores(state, rows, codes) if known is None else known
            return scores if self.calibration_ is None else self.calibration_(scores, codes)

        return averaged(of_groups, codes, self._counts)

    @available_if(has_probabilities)
    @by_block(n_columns=lambda self: 2)
    def predict_proba(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Return the probabilities of both classes, which are computed from the scores as log-odds.

        They include the thresholds and maps of the groups, so the predicted class is always the one
        with a probability above 1/2. The thresholds and maps make the probabilities less
        calibrated.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Probability of each class, with the columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack([1 - positive, positive])

    @available_if(has_probabilities)
    @by_block(n_columns=lambda self: 2)
    def predict_log_proba(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Return the logarithms of the probabilities of both classes.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, 2)
            Logarithm of the probability of each class, with the columns in the order of
            ``classes_``.
        """
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    @by_block(dtype=lambda model: model.classes_.dtype)
    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Predict the class of each sample.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted class labels.
        """
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        return np.asarray(self.classes_[(scores > 0).astype(np.intp)])

    def score(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> float:
        """Return the accuracy of the predicted classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The test samples.
        y : array-like of shape (n_samples,)
            The true class labels.

        Returns
        -------
        accuracy : float
            Weighted fraction of correct predictions.
        """
        groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        if is_lazy(X, y, sample_weight, sensitive_features):
            return accuracy_in_blocks(self, X, y, sample_weight, **groups)
        check_aligned(X=X, sample_weight=sample_weight, **groups)
        predicted = self.predict(X, **groups)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @cached_property
    def noise_floor_(self) -> float:
        """Mean disparity that is expected by chance if the groups do not differ in the population.

        It is simulated on first access for samples with the group sizes of the training data, with
        equal weights and with scores without ties, of which half are above 0. The noise floor
        depends on these conditions, and it is smaller for larger samples. ``fit`` warns if the
        limit is below it.
        """
        check_is_fitted(self, "_counts")
        if not read_constraint(self.constraint).metric:
            raise AttributeError(f"constraint={self.constraint!r} has no noise floor.")
        groups, targets, _ = alike_rows(self._group_levels, self._counts)
        return simulated_floor(promise_on(self, groups, targets))

    def disparity_upper_bound(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        confidence: float = 0.95,
    ) -> float:
        """Return an upper confidence bound on the disparity in the population.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples from the population that were not used in ``fit``.
        y : array-like of shape (n_samples,), default=None
            True class labels. They are required if the constraint depends on the true class.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Sensitive attributes of the samples. They are needed if X does not contain them.
        confidence : float, default=0.95
            Confidence level of the bound.

        Returns
        -------
        bound : float
            The disparity of these samples plus the margin of the Dvoretzky-Kiefer-Wolfowitz
            inequality.
        """
        check_is_fitted(self)
        check_probability(confidence, "confidence")
        if is_lazy(X, y, sensitive_features, sample_weight):
            raise TypeError(
                "disparity_upper_bound does not read Dask collections. Pass a random sample of the "
                "rows, compute()d: it bounds the disparity among all people just as well."
            )
        within = read_constraint(self.constraint)
        if not within.metric:
            raise ValueError(
                f"disparity_upper_bound needs a constraint on an interval of ranks, got "
                f"constraint={self.constraint!r}. Pass the decisions and this constraint to "
                "skfair.metrics.disparity_upper_bound."
            )
        groups = read_part_groups(self, X, sensitive_features)
        if y is None and within.classes:
            raise ValueError(f"constraint={self.constraint!r} looks at classes: pass y.")
        positive = np.ones(groups.n_samples)
        if y is not None:
            codes, levels = check_labels(y, "y", groups.n_samples)
            positive = np.array([level == self.classes_[1] for level in levels])[codes]
        weights = groups.rate_weight(check_weights(sample_weight, groups.n_samples))
        promise = promise_on(self, groups, np.where(positive, 1.0, -1.0), weights)
        promise.check_nonempty(self.classes_.tolist())
        groups_of_rows = sensitive_features if self.is_group_aware_ else None
        scores = self.decision_function(X, sensitive_features=groups_of_rows)
        return upper_bound(promise, scores, confidence)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
