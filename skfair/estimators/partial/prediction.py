"""Predictions, certificates and bounds of the estimators for partial fairness."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, IntervalLike, MatrixLike
from skfair.constraints.base import Constraint
from skfair.constraints.partial import read_constraint
from skfair.enforcement.partial.promise import (
    Promise,
    checked,
    simulated_floor,
    upper_bound,
    warn_below_noise,
    warn_not_kept,
)
from skfair.enforcement.partial.repair import GroupMaps, repair_scores
from skfair.estimators.certified.certificate import Certified
from skfair.estimators.classes import accuracy_in_blocks, read_classes, warn_of_choice
from skfair.estimators.inner_scores import groups_of_new_rows
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import GroupEncoding, GroupLevels
from skfair.groups.kinds import WeightedRows
from skfair.groups.limits import Limit
from skfair.read import read_part_groups
from skfair.utils.availability import available_if
from skfair.utils.dask_collections import by_block, is_lazy
from skfair.utils.docs import documented
from skfair.utils.rounding import ROUNDING
from skfair.utils.validation import check_labels, check_probability, check_weights

# Groups and classes of at most this many rows are never made smaller to guess the noise.
_FEW_ROWS = 50


def _type_of_classes(estimator: Any) -> Any:
    check_is_fitted(estimator)
    return estimator.classes_.dtype


@documented
class PartialPrediction(Certified, ClassifierMixin):
    """From raw scores to decisions, with the maps of the groups in between.

    Subclasses have ``_raw_scores(X, codes)`` and ``_check_probabilities()``, which raises if scores
    are no log-odds; at fit they call :meth:`_settle`.
    """

    __metadata_request__predict = {"sensitive_features": True}
    __metadata_request__predict_proba = {"sensitive_features": True}
    __metadata_request__predict_log_proba = {"sensitive_features": True}
    __metadata_request__decision_function = {"sensitive_features": True}
    __metadata_request__score = {"sensitive_features": True}

    enforce = "strict"  # a parameter of PartialParityClassifier
    interval: IntervalLike
    constraint: str | Constraint
    scale: str
    max_disparity: Limit
    is_group_aware_: bool
    calibration_: GroupMaps | None
    thresholds_: FloatArray
    effective_disparity_: Limit
    classes_: NDArray[Any]
    _group_levels: GroupLevels

    @property
    def _limit(self) -> Limit:
        """Limit of the constraint, or else of the estimator."""
        own = read_constraint(self.constraint).own_limit
        return self.max_disparity if own is None else own

    def _settle(
        self, promise: Promise, scores: FloatArray, *, is_repaired: bool, min_gap: float = 0.0
    ) -> None:
        """Choose thresholds and maps, measure what is kept, and say so if it is not enough."""
        self.effective_disparity_, bound = promise.limit, promise.bound
        kept, error = promise.kept_by_bins()
        if is_repaired:
            self.calibration_, reached = repair_scores(kept, scores, min_gap=min_gap)
            self.thresholds_ = self.calibration_.thresholds
            self.effective_disparity_ = bound = max(promise.bound, reached + error)
        final = self._finished(scores, promise.groups.codes[0])
        self.train_disparity_ = kept.measure(final) + error
        self.certified_ = bool(kept.load(final) + error <= bound + ROUNDING)
        positive = (final > 0) * (1.0 if promise.weights is None else promise.weights)
        self.rates_ = promise.groups.sums(positive) / promise.groups.sums(promise.weights)
        self.__dict__.pop("noise_floor_", None)
        classes = (promise.targets > 0).astype(np.int64)
        counts = None if promise.behind is None else promise.behind.counts
        self._counts = promise.groups.cross_counts(classes, 2, counts)
        if not self.certified_ and self.enforce == "strict":
            warn_not_kept(promise, self.train_disparity_, is_repaired)
        # Alike groups differ where each has an interval of its own, and not by chance.
        is_same_for_all = not isinstance(promise.interval, Mapping)
        if promise.constraint.metric and is_same_for_all and not promise.is_vacuous:
            warn_below_noise(promise, self._alike)

    def _finished(self, scores: FloatArray, codes: IntArray | None) -> FloatArray:
        """Apply maps: 0 decides."""
        if self.calibration_ is None:
            return scores
        assert codes is not None
        return self.calibration_(scores, codes)

    def _prediction_codes(
        self, X: MatrixLike, sensitive_features: ColumnsLike | None
    ) -> IntArray | None:
        """Return the groups of new rows, None if they are not used; raise if they are missing."""
        are_used = self._group_levels.n_groups > 1
        codes = groups_of_new_rows(self, X, sensitive_features, are_used=are_used)
        if codes is None:  # of a single group nobody has to name it
            return np.zeros(_num_samples(X), np.int64) if self.is_group_aware_ else None
        return np.asarray(codes[0])

    @by_block()
    def decision_function(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> FloatArray:
        """Return the scores of rows; a positive score predicts the positive class.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if the model is group-aware and X does not hold them.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            The scores.
        """
        check_is_fitted(self)
        codes = self._prediction_codes(X, sensitive_features)
        return self._finished(self._raw_scores(X, codes), codes)

    @available_if(lambda self: self._check_probabilities())
    @by_block(n_columns=lambda self: 2)
    def predict_proba(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Return probabilities of both classes: the scores, read as log-odds.

        They include thresholds and maps, so that 1/2 separates the predicted classes; that makes
        them less calibrated.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if the model is group-aware and X does not hold them.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack([1 - positive, positive])

    @available_if(lambda self: self._check_probabilities())
    @by_block(n_columns=lambda self: 2)
    def predict_log_proba(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Return logarithms of the probabilities of both classes.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if the model is group-aware and X does not hold them.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        return np.column_stack([log_expit(-scores), log_expit(scores)])

    @by_block(dtype=_type_of_classes)
    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[Any]:
        """Predict the class of rows.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if the model is group-aware and X does not hold them.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted classes.
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
            The rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if the model is group-aware and X does not hold them.

        Returns
        -------
        accuracy : float
            Share of right predictions.
        """
        groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        if is_lazy(X, y, sample_weight, sensitive_features):
            return accuracy_in_blocks(self, X, y, sample_weight, **groups)
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        predicted = self.predict(X, **groups)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))

    @cached_property
    def noise_floor_(self) -> float:
        """Mean disparity in a new sample of the training sizes if groups are alike in truth.

        Simulated when first asked for, with the rows of the training data counted equally and
        scores without ties, half of them above 0. In a larger sample, or with other shares above
        0 for constraints on decisions, it is another. ``fit`` warns of limits below it.
        """
        check_is_fitted(self, "_counts")
        if not read_constraint(self.constraint).metric:
            raise AttributeError(f"constraint={self.constraint!r} has no noise floor.")
        return simulated_floor(self._alike()[0])

    def _alike(self, most: float = np.inf) -> tuple[Promise, float]:
        """Return the promise on as many alike rows of each group and class, or on fewer.

        Of more rows than ``most`` a share is left; small groups keep theirs, as the noise is that
        of these. Noise goes with the root of the number of rows, so all of them have at most the
        returned share of that of the rows left.
        """
        rng = np.random.RandomState(0)
        offsets = self._group_levels.offsets
        kept = min(1.0, most * (offsets.size - 1) / self._counts.sum())
        table = np.maximum(np.ceil(kept * self._counts), np.minimum(self._counts, _FEW_ROWS))
        share = np.sqrt((table / np.maximum(self._counts, 1)).max())
        table, parts = table.astype(np.int64), []
        for first, stop in pairwise(offsets.tolist()):
            by_class = [np.repeat(np.arange(first, stop), table[first:stop, c]) for c in (0, 1)]
            parts.append([rng.permutation(rows_of_class) for rows_of_class in by_class])
        # Attributes differ in how many groups they have, so in how many rows are left of all.
        sizes = [min(part[c].size for part in parts) for c in (0, 1)]
        codes = np.stack([np.append(zeros[: sizes[0]], ones[: sizes[1]]) for zeros, ones in parts])
        counts = np.bincount(codes.ravel(), minlength=len(table))
        groups = GroupEncoding(codes, self._group_levels, counts)
        return self._promise_on(groups, np.repeat([-1.0, 1.0], sizes), None), float(share)

    def disparity_upper_bound(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        confidence: float = 0.95,
    ) -> float:
        """Bound the disparity among all people, by rows that the model was not fitted on.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows drawn like those that the model will meet, held out from fit.
        y : array-like of shape (n_samples,), default=None
            Their classes; needed by constraints that look at them.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, unless X holds them.
        confidence : float, default=0.95
            Probability with which the bound holds.

        Returns
        -------
        bound : float
            The disparity of these rows plus the margin of Dvoretzky, Kiefer and Wolfowitz.
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
            raise ValueError(f"constraint={self.constraint!r} looks at no interval of ranks.")
        groups = read_part_groups(self, X, sensitive_features)
        if y is None and within.classes:
            raise ValueError(f"constraint={self.constraint!r} looks at classes: pass y.")
        positive = np.ones(groups.n_samples)
        if y is not None:
            codes, levels = check_labels(y, "y", groups.n_samples)
            positive = np.array([level == self.classes_[1] for level in levels])[codes]
        weights = check_weights(sample_weight, groups.n_samples)
        promise = self._promise_on(groups, np.where(positive, 1.0, -1.0), weights)
        promise.check_nonempty(self.classes_.tolist())
        groups_of_rows = sensitive_features if self.is_group_aware_ else None
        scores = self.decision_function(X, sensitive_features=groups_of_rows)
        return upper_bound(promise, scores, confidence)

    def _read_classes(self, y: NDArray[Any], groups: GroupEncoding, loss: object = None) -> None:
        """Read the classes; warn if it is by chance which of them is ranked first."""
        self.classes_ = read_classes(y)
        within = read_constraint(self.constraint)
        ends = np.ravel(np.asarray(self.interval, dtype=object)).tolist()
        ranks_all = not within.metric or ends == [0, 1]  # from the top or from the bottom
        reasons = []
        if not groups.is_vacuous and (not ranks_all or len(within.classes) == 1):
            reasons.append(f"constraint={self.constraint!r}")
        if loss == "partial_auc":
            reasons.append(f"loss={loss!r}")
        warn_of_choice(self.classes_, reasons, "y == {!r}")

    def _promise(
        self, y: ColumnLike, groups: GroupEncoding, weights: Any, behind: WeightedRows | None = None
    ) -> Promise:
        """Return the promise of a fit, from its rows or from those they stand ``behind``."""
        targets = np.where(y == self.classes_[1], 1.0, -1.0)
        promise = self._promise_on(groups, targets, weights, behind, self._limit)
        return checked(promise, self.classes_.tolist())

    def _promise_on(
        self,
        groups: GroupEncoding,
        targets: FloatArray,
        weights: FloatArray | None,
        behind: WeightedRows | None = None,
        limit: Limit | None = None,  # None for that of the fit
    ) -> Promise:
        """Return the promise of the fit on other rows."""
        limit = self.effective_disparity_ if limit is None else limit
        terms = self.constraint, self.interval, self.scale, limit
        return Promise.of(*terms, groups, targets, weights, behind)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
