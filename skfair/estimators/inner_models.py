"""The classifiers inside an estimator that decides: what is fitted, and what their fits take."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter

from skfair._typing import ColumnLike
from skfair.estimators.chances import with_probabilities
from skfair.utils.routing import fit_arguments, router_to
from skfair.utils.text import listed
from skfair.utils.warn import warn_user


class InnerModels:
    """Gives the classifier that is wrapped, that of groups, and what their fits take."""

    estimator: Any
    group_estimator: Any
    cv: Any

    def _inner(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    @property
    def _is_prefit(self) -> bool:
        is_said = isinstance(self.cv, str) and self.cv == "prefit"
        return is_said or isinstance(self._inner(), FrozenEstimator)

    def _group_estimator(self) -> Any:
        """Return what estimates groups: a clone of the classifier, unless one was given."""
        if self.group_estimator is not None:
            return self.group_estimator
        estimator = _to_be_fitted(self._inner())
        tags = get_tags(estimator).classifier_tags
        if tags is not None and not tags.multi_class:
            raise ValueError(
                f"{type(estimator).__name__} takes two classes only, but without the group a clone "
                "of it would estimate pairs of group and class. Pass group_estimator=, such as "
                "LogisticRegression(), or decide by the group: group_aware=True."
            )
        return with_probabilities(estimator)

    def _group_row_params(self, sample_weight: ColumnLike | None) -> dict[str, Any]:
        """Return what the fit of the estimator of groups takes besides X and y."""
        return fit_arguments(self, self._group_estimator(), sample_weight, {})

    def _row_params(
        self, sample_weight: ColumnLike | None, metadata: dict[str, Any], others: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the fit of the estimator inside takes besides X and y; a fitted one nothing.

        ``metadata`` is for it alone, and of ``others`` it gets what it has requested.
        """
        inner = self._inner()
        if self._is_prefit:
            if metadata:
                raise ValueError(
                    f"A fitted {type(inner).__name__} takes no {listed(list(metadata))}: it is not "
                    "fitted."
                )
            return {}
        fit_params = fit_arguments(self, inner, sample_weight, metadata, others)
        if sample_weight is not None and not any("sample_weight" in name for name in fit_params):
            warn_user(
                f"{type(inner).__name__} takes no sample_weight: weights count in the limits only."
            )
        return fit_params

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what is requested here and by the classifier inside.

        Returns
        -------
        router : MetadataRouter
            As :func:`sklearn.utils.metadata_routing.process_routing` reads it.
        """
        return router_to(self, self._inner(), "estimator")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self._inner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if inner.classifier_tags is not None:  # else fit says that it is no classifier
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


def _to_be_fitted(classifier: Any) -> Any:
    """Return a clone in which no classifier is frozen, neither it nor one inside it.

    A frozen one would go on to predict classes when it is fitted to groups.
    """
    if isinstance(classifier, FrozenEstimator):
        return _to_be_fitted(classifier.estimator)
    classifier = clone(classifier)
    for name, value in classifier.get_params().items():
        if isinstance(value, FrozenEstimator) and is_classifier(value):
            classifier.set_params(**{name: _to_be_fitted(value)})
    return classifier
