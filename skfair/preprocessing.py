"""Pre-processing: ``Reweighing``, which fits any classifier with weights of the training rows.

``fit`` reads the rows, computes the weights (``_weights``) and fits a clone of the classifier.
Everything else is passed to the fitted classifier, which needs no groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, Estimator, FloatArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin, fit_method
from skfair.estimators.classes import encode_classes
from skfair.estimators.wrapped_estimator import WrapsEstimator, read_for_wrapped
from skfair.estimators.wrapped_scores import as_rows
from skfair.groups.attributes import check_aligned
from skfair.groups.sensitive import SensitiveLike
from skfair.groups.training_data import TrainingData
from skfair.read import read_features
from skfair.utils.availability import available_if
from skfair.utils.docs import documented
from skfair.utils.other_names import other_names
from skfair.utils.routing import fit_arguments, refuse_misspelt

__all__ = ["Reweighing"]

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)


def _inside_has(method: str) -> Callable[[Reweighing], bool]:
    """Return a check for ``available_if``: it raises unless the classifier inside has a method.

    Before ``fit`` it is the unfitted classifier.
    """

    def check(model: Reweighing) -> bool:
        getattr(getattr(model, "estimator_", None) or model._inner(), method)
        return True

    return check


@documented
class Reweighing(
    WrapsEstimator, ClassifierMixin, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    r"""Fit any classifier with sample weights that make group and class independent.

    In many training sets one group has more rows of the positive class than another. This
    meta-estimator gives greater weights to rows whose combination of group and class is rare, so
    that the weighted share of each class is the same in every group. Following Kamiran and Calders
    [1]_, a row of group g and class c has the weight

    .. math:: \frac{P(g) \, P(c)}{P(g, c)}

    which is multiplied by its sample weight, if there is one. The weights are computed inside
    ``fit`` from the training rows only, so nothing leaks from the test folds of a
    cross-validation. With several attributes, the groups are their intersections.

    The weights usually reduce the disparity of the predictions, but they enforce no limit. Use
    :class:`~skfair.classification.FairDecisionClassifier` for decisions that satisfy a limit.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier, whose ``fit`` must accept ``sample_weight``. If None, a
        ``LogisticRegression()`` is used. If the data need preprocessing, use ``Reweighing`` as the
        last step of the pipeline.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    train_weights_ : ndarray of shape (n_samples,)
        Weights with which the classifier was fitted. Their sum equals the sum of the sample
        weights.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : Post-processing of any classifier so that its
        decisions satisfy a limit.

    References
    ----------
    .. [1] F. Kamiran, T. Calders, "Data preprocessing techniques for classification without
       discrimination", Knowledge and Information Systems 33, 2012.

    Examples
    --------
    Men are more often in the positive class here. With the weights, the selection rates of the
    two groups become much more similar.

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfair.metrics import demographic_parity_difference
    >>> from skfair.preprocessing import Reweighing
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 1000)
    >>> X = np.column_stack([sex == "m", rng.normal(size=1000)])
    >>> y = X.sum(axis=1) + rng.normal(size=1000) > 0.5
    >>> before = LogisticRegression().fit(X, y)
    >>> after = Reweighing().fit(X, y, sensitive_features=sex)
    >>> for model in (before, after):
    ...     gap = demographic_parity_difference(y, model.predict(X), sensitive_features=sex)
    ...     print(f"{gap:.2f}")
    0.44
    0.14
    """

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        **SensitiveFeaturesMixin._group_constraints,
    }

    def __init__(
        self, estimator: Estimator | None = None, *, sensitive: SensitiveLike = None
    ) -> None:
        self.estimator = estimator
        self.sensitive = sensitive

    @fit_method
    def fit(
        self,
        X: MatrixLike,
        y: ColumnLike,
        sample_weight: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        **fit_params: Any,
    ) -> Reweighing:
        """Compute the weights of the rows, and fit the classifier with them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training samples, in any form that the classifier accepts.
        y : array-like of shape (n_samples,)
            The class labels.
        **fit_params : dict
            Further arguments of ``estimator.fit``. With metadata routing enabled, these are the
            ones that ``estimator`` has requested.
        """
        refuse_misspelt(self, self._inner(), fit_params)
        others: dict[str, Any] = {"sensitive_features": sensitive_features}
        _, data = read_for_wrapped(self, X, y, sample_weight=sample_weight, **others)
        self._keep(data.reading)
        self.train_weights_ = self._weights(data)
        inner = clone(self._inner())
        params = fit_arguments(self, inner, self.train_weights_, fit_params, others)
        if "sample_weight" not in params:
            raise ValueError(
                f"The fit of {type(inner).__name__} takes no sample_weight, so weights would "
                "change nothing. Pass a classifier that takes them; of a pipeline wrap the last "
                "step: make_pipeline(..., Reweighing(classifier))."
            )
        self.estimator_ = inner.fit(data.X, data.y, **params)
        return self

    def _weights(self, data: TrainingData) -> FloatArray:
        """Return the sample weight of each row times P(g) P(c) / P(g, c); set ``classes_``."""
        self.classes_, classes = encode_classes(data.y)
        weights = np.ones(classes.size) if data.sample_weight is None else data.sample_weight
        groups = data.groups.cells().codes
        table = np.zeros((groups.max() + 1, self.classes_.size))  # weight by group and class
        np.add.at(table, (groups, classes), weights)
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        # A group and class without weight has only rows of weight 0, so its factor does not matter.
        factors = np.divide(product, table, out=np.ones(table.shape), where=table > 0)
        return np.asarray(weights * factors[groups, classes])

    def _rows(self, X: MatrixLike) -> Any:
        """Return X for the classifier inside; raise unless it has the columns of ``fit``."""
        check_is_fitted(self)
        return read_features(self, as_rows(X), skip_check_array=True)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the class of each sample. The groups are not needed.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted class labels.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict(rows))

    @available_if(_inside_has("predict_proba"))
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the class probabilities of the fitted classifier.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probability of each class, with the columns in the order of ``classes_``.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    @available_if(_inside_has("predict_log_proba"))
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Return the logarithms of the class probabilities of the fitted classifier.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Logarithm of the probability of each class, with the columns in the order of
            ``classes_``.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict_log_proba(rows))

    @available_if(_inside_has("decision_function"))
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the scores of the fitted classifier.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Score of each sample. With two classes, a positive score means that the second class is
            predicted.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.decision_function(rows))

    def score(self, X: MatrixLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> float:
        """Return the score of the fitted classifier, which is usually the accuracy.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The test samples.
        y : array-like of shape (n_samples,)
            The true class labels.

        Returns
        -------
        score : float
            Result of ``estimator_.score`` on these samples.
        """
        check_aligned(X=X, sample_weight=sample_weight)
        fit_params = {} if sample_weight is None else {"sample_weight": sample_weight}
        rows = self._rows(X)
        return float(self.estimator_.score(rows, y, **fit_params))
