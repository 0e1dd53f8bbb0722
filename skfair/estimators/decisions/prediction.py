"""Decisions of new rows: probabilities minus offsets, with known or estimated groups."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _num_samples, check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.mixtures import Mixture
from skfair.enforcement.decisions.shares import (
    Shares,
    estimated_shares,
    known_shares,
    margins,
    parted,
)
from skfair.estimators.classes import PositiveClass
from skfair.estimators.group_chances import GroupModels
from skfair.estimators.group_corrections import GroupCorrections
from skfair.estimators.inner_scores import as_rows, groups_of_new_rows, mean_chances
from skfair.groups.attributes import CONTROL, check_aligned, check_alignment
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import take_columns
from skfair.read import read_features
from skfair.utils.docs import documented
from skfair.utils.row_hash import row_draws
from skfair.utils.validation import check_weights
from skfair.utils.warn import warn_user

# Where probabilities are asked for to decide by, and what is asked.
_DECIDERS = {
    "sklearn.model_selection._classification_threshold": "A classifier with a threshold",
    "sklego.meta.thresholder": "A classifier with a threshold",
    "sklearn.ensemble._voting": "Soft voting",
    "sklearn.ensemble._bagging": "Bagging",
}
# Code that hands the question of somebody else on.
_BETWEEN = (
    "skfair.",
    "functools",
    "contextlib",
    "sklearn.base",
    "sklearn.frozen",
    "sklearn.metrics.",
    "sklearn.model_selection._search",
    "sklearn.pipeline",
    "sklearn.utils.",
)


def warn_of_decider(estimator: object) -> None:
    """Warn if a meta-estimator asks for probabilities to decide by, and discards the decisions."""
    frame = sys._getframe(1)
    while (name := str(frame.f_globals.get("__name__"))).startswith(_BETWEEN) and frame.f_back:
        frame = frame.f_back
    if name in _DECIDERS:
        own = type(estimator).__name__
        warn_user(
            f"{_DECIDERS[name]} decides by the probabilities of {own}, which are those without "
            "limits: the limits of its decisions do not hold for the decisions made from them. "
            f"Use the predictions of {own} itself (its selection_rate limits how many are "
            "selected), or hard voting, and measure the disparity of the whole model."
        )


@documented
class DecisionPrediction(PositiveClass, ClassifierMixin, SensitiveFeaturesMixin):
    """From probabilities and offsets to decisions; subclasses have found the offsets at fit."""

    __metadata_request__predict = {"sensitive_features": True, "control_features": True}
    __metadata_request__decision_function = {"sensitive_features": True, "control_features": True}
    __metadata_request__score = {"sensitive_features": True, "control_features": True}

    unseen: str
    classes_: NDArray[Any]
    offsets_: FloatArray
    tie_weight_: float
    estimators_: list[Any]
    model_features_: NDArray[Any]
    is_group_aware_: bool
    _group_models: GroupModels | None
    _corrections: GroupCorrections | None
    _mixture: Mixture | None
    _draw_key: int
    _strata_levels: GroupLevels | None
    _marginals: FloatArray
    _worth: FloatArray

    @property
    def _order(self) -> IntArray:
        """Place of each class among the ordered ones, of which two have the positive one last."""
        order = np.arange(self.classes_.size)
        return order if self._sign > 0 else order[::-1]

    @property
    def _ordered_offsets(self) -> FloatArray:
        """The offsets of the ordered classes."""
        return self.offsets_[..., self._order, :][..., self._order]

    def _store_offsets(self, offsets: FloatArray, worth: FloatArray) -> None:
        """Store offsets and worth of decisions, of the ordered classes."""
        n_groups, n_classes = self._group_levels.n_groups, self._order.size
        offsets = offsets.reshape(n_groups, self._n_strata, n_classes, n_classes)
        self.offsets_, self._worth = offsets[..., self._order, :][..., self._order], worth

    @property
    def _n_strata(self) -> int:
        return 1 if self._strata_levels is None else self._strata_levels.n_groups

    def _shares(
        self,
        chances: FloatArray,
        groups: IntArray | None,
        joint: FloatArray | None,
        strata: IntArray | None,
    ) -> Shares:
        """Return the shares of rows of estimated or known groups; unseen ones are average rows."""
        if joint is not None:
            return estimated_shares(joint, strata, self._n_strata)
        n_groups, n_strata = self._group_levels.n_groups, self._n_strata
        if groups is None:  # no offset depends on the group
            groups = np.repeat(self._group_levels.offsets[:-1, None], chances.shape[0], axis=1)
        known = known_shares(groups, n_groups, strata, n_strata, chances)
        if groups.min(initial=0) < 0:
            average = self._marginals[None, :, None] * chances[:, None, :]
            other = estimated_shares(average, strata, n_strata)
            is_unseen = np.asarray((groups < 0).any(axis=0), dtype=np.float64)
            return sparse.csr_array(
                sparse.diags_array(1 - is_unseen) @ known
                + sparse.diags_array(is_unseen) @ sparse.csr_array(other)
            )
        return known

    # --- prediction ----------------------------------------------------------------------------

    def _margins(
        self,
        X: MatrixLike,
        sensitive_features: ColumnsLike | None,
        control_features: ColumnsLike | None,
    ) -> FloatArray:
        """Return the expected worth of each decision minus its offset, of the ordered classes."""
        check_is_fitted(self)
        groups = self._prediction_groups(X, sensitive_features)
        strata = self._prediction_strata(X, control_features)
        rows = read_features(self, as_rows(X), skip_check_array=True)
        chances = mean_chances(self.estimators_, rows, self._ordered_classes)
        if self._corrections is not None:
            chances = self._corrections(chances, None if groups is None else groups[0])
        values = parted(np.asarray(chances @ self._worth), self.tie_weight_)
        if self._mixture is not None:
            assert groups is not None
            values = self._mixture.values(values, groups[0], self._draws(rows))
        if not self.offsets_.any():
            return values
        models = self._group_models
        joint = None if models is None else models.joint(rows, chances)
        shares = self._shares(chances, groups, joint, strata)
        return margins(values, shares, self._ordered_offsets.reshape(-1, self.classes_.size))

    def _draws(self, rows: Any) -> FloatArray:
        """Return a number for each row that decides between thresholds."""
        return row_draws(rows, self.model_features_.tolist(), self._draw_key)

    def _prediction_groups(
        self, X: MatrixLike, sensitive_features: ColumnsLike | None
    ) -> IntArray | None:
        """Return the groups of new rows, None if they are not used; raise if they are missing."""
        parts = self._corrections, self._mixture
        are_used = self.offsets_.any() or any(part is not None for part in parts)
        are_used = are_used and self._group_levels.n_groups > 1
        return groups_of_new_rows(self, X, sensitive_features, are_used=are_used)

    def _prediction_strata(
        self, X: MatrixLike, control_features: ColumnsLike | None
    ) -> IntArray | None:
        if control_features is not None:
            check_alignment(control_features, X, CONTROL)
        if self._strata_levels is None:
            return None
        if control_features is None and self._sensitive.within is not None:
            control_features = take_columns(X, self._sensitive.within, "within")
        if control_features is None:
            raise ValueError(
                "The limits hold within strata: pass predict(X, control_features=...), or name the "
                "columns of X in Sensitive(within=...)."
            )
        codes = self._strata_levels.encode(control_features, n_samples=_num_samples(X))
        return np.asarray(codes[0])

    def decision_function(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> FloatArray:
        """Return probability minus offset of each class, or their difference if there are two.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if groups are used and X does not hold them.
        control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Allowed attributes, if constraints hold within their levels and X does not hold them.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes a positive score decides for the second one.
        """
        values = self._margins(X, sensitive_features, control_features)
        return self._sign * (values[:, 1] - values[:, 0]) if values.shape[1] == 2 else values

    def predict(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> NDArray[Any]:
        """Return the decisions.

        Parameters
        ----------
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if groups are used and X does not hold them.
        control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Allowed attributes, if constraints hold within their levels and X does not hold them.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The class that each row is decided for.
        """
        check_is_fitted(self)
        values = self._margins(X, sensitive_features, control_features)
        return np.asarray(self._ordered_classes[decided(values)])

    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities of the classifier, as they are without limits.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``: the mean over the models of the folds.
        """
        check_is_fitted(self)
        if self.offsets_.any() or self._corrections is not None:
            warn_of_decider(self)
        rows = read_features(self, as_rows(X), skip_check_array=True)
        return mean_chances(self.estimators_, rows, self.classes_)

    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Return logarithms of the probabilities of the classifier, as they are without limits.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``; minus infinity for a probability of 0.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
    ) -> float:
        """Return the accuracy of the decisions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their true classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row, if groups are used and X does not hold them.
        control_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Allowed attributes, if constraints hold within their levels and X does not hold them.

        Returns
        -------
        score : float
            Weighted share of the rows whose class is decided for.
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        predicted = self.predict(
            X, sensitive_features=sensitive_features, control_features=control_features
        )
        weights = check_weights(sample_weight, predicted.size)
        return float(accuracy_score(y, predicted, sample_weight=weights))

    def to_thresholds(self) -> Any:
        """Return the thresholds on the probability of the positive class, by group.

        Returns
        -------
        thresholds : DataFrame
            By group: ``threshold``, and whether rows ``above`` or ``below`` it are selected.
        """
        check_is_fitted(self)
        if (
            not self.is_group_aware_
            or self.classes_.size > 2
            or self._group_levels.offsets.size > 2
        ):
            raise ValueError(
                "Decisions are thresholds only for two classes and one known attribute "
                "(group_aware=True)."
            )
        if self._mixture is not None:
            raise ValueError(
                "A group has several thresholds here, and a number made of the columns of a row "
                "says which one it gets. Fit with group_aware='thresholds' for one of each group."
            )
        table = thresholds_of(self._ordered_offsets, self._worth, self.groups_, self._strata_levels)
        if self._corrections is not None:
            groups = np.repeat(np.arange(len(self.groups_)), self._n_strata).tolist()
            pairs = zip(table["threshold"], groups, strict=True)
            table["threshold"] = [self._corrections.uncorrected(t, g) for t, g in pairs]
        return table

    def to_linear(self) -> Any:
        """Return the decisions as one linear formula of the columns for each group.

        For a logistic regression that was passed fitted (``cv="prefit"``): means over the models of
        several folds are not linear.

        Returns
        -------
        formulas : DataFrame
            By group: the coefficient of each column and the ``intercept``. A row is decided for the
            second class if its columns times the coefficients, plus the intercept, are above 0.
        """
        table = self.to_thresholds()
        model = self.estimators_[0]
        model = model.estimator if isinstance(model, FrozenEstimator) else model
        if len(self.estimators_) > 1 or not isinstance(model, LogisticRegression):
            raise ValueError(
                "Decisions are linear only for one fitted LogisticRegression: pass it with "
                f"cv='prefit'. These are {len(self.estimators_)} models of the type "
                f"{type(model).__name__}."
            )
        return linear_of(table, model, self.model_features_, self._sign)


def linear_of(
    thresholds: Any, model: LogisticRegression, names: NDArray[Any], direction: float
) -> Any:
    """Return what a logistic regression and thresholds by group amount to.

    ``direction`` is -1 if thresholds are on the probability of the first class.
    """
    import pandas as pd

    limit = direction * logit(np.clip(thresholds["threshold"].to_numpy(), 0.0, 1.0))
    sign = np.where(thresholds["selected"] == "above", 1.0, -1.0)
    columns: Any = pd.Index([*names, "intercept"])
    values = np.column_stack(
        [np.outer(sign, model.coef_[0]), sign * (float(model.intercept_[0]) - limit)]
    )
    return pd.DataFrame(values, index=thresholds.index, columns=columns)


def thresholds_of(
    offsets: FloatArray, worth: FloatArray, groups: NDArray[Any], strata: GroupLevels | None
) -> Any:
    """Return the thresholds of two classes: where the margin, linear in the probability, is 0."""
    import pandas as pd

    at_end = worth[None, None] - offsets  # margins if the true class were certain
    gain = at_end[..., 1] - at_end[..., 0]  # (n_groups, n_strata, true class)
    low, high = gain[..., 0].ravel(), gain[..., 1].ravel()
    slope = high - low
    threshold = np.where(slope != 0, -low / np.where(slope != 0, slope, 1.0), np.inf)
    threshold = np.where((slope == 0) & (low > 0), -np.inf, threshold)
    index: Any = pd.Index(groups, name="group")
    if strata is not None:
        index = pd.MultiIndex.from_product([groups, strata.names], names=["group", "stratum"])
    side = np.where(slope >= 0, "above", "below")
    return pd.DataFrame({"threshold": threshold, "selected": side}, index=index)
