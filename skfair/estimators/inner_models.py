"""The classifiers inside an estimator that decides: what is fitted, and what their fits take."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from skfair.estimators.chances import with_probabilities
from skfair.utils.warn import warn_user


class InnerModels:
    """Gives the classifier that is wrapped, and that of groups."""

    estimator: Any
    group_estimator: Any

    def _inner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _group_estimator(self) -> Any:
        """Return what estimates groups: a clone of the classifier, unless one was given."""
        if self.group_estimator is not None:
            return self.group_estimator
        inner = self._inner()
        inner = inner.estimator if isinstance(inner, FrozenEstimator) else inner
        return with_probabilities(clone(inner))

    def _row_params(self, sample_weight: Any, estimator: Any = None) -> dict[str, Any]:
        """Return what the fit of an estimator takes besides X and y."""
        if sample_weight is None:
            return {}
        if has_fit_parameter(self._inner() if estimator is None else estimator, "sample_weight"):
            return {"sample_weight": sample_weight}
        if estimator is None:
            warn_user(
                f"{type(self._inner()).__name__} takes no sample_weight: weights count in the "
                "limits only."
            )
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self._inner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags
