"""Pre-processing: weights of the training rows before a model is fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from skfair.utils.routing import fit_arguments

__all__ = ["Reweighing"]


def _inside_has(method: str) -> Callable[[Reweighing], bool]:
    """Return a check that raises if the classifier inside lacks a method."""

    def check(model: Reweighing) -> bool:
        getattr(getattr(model, "estimator_", None) or model._inner(), method)
        return True

    return check


@documented
class Reweighing(
    WrapsEstimator, ClassifierMixin, MetaEstimatorMixin, SensitiveFeaturesMixin, BaseEstimator
):
    r"""Any classifier, fitted with weights that make group and class independent.

    A row of the group g and the class c gets the weight of Kamiran and Calders [1]_:

    .. math:: \frac{P(g) \, P(c)}{P(g, c)}

    times its own. Weights are computed inside ``fit`` from the rows that it got, so a search or a
    cross-validation never looks at the rows that it scores on. Several attributes are crossed.

    Weights promise nothing: for a limit that decisions satisfy, use
    :class:`~skfair.classification.FairDecisionClassifier`.

    Parameters
    ----------
    estimator : classifier, default=None
        A classifier whose ``fit`` takes ``sample_weight``; None for ``LogisticRegression()``. With
        preprocessing, let this be the last step of the pipeline.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    train_weights_ : ndarray of shape (n_samples,)
        The weights that it was fitted with. They add up to those given.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : Satisfies a limit with any classifier.

    References
    ----------
    .. [1] F. Kamiran, T. Calders, "Data preprocessing techniques for classification without
       discrimination", Knowledge and Information Systems 33, 2012.

    Examples
    --------
    >>> from skfair.preprocessing import Reweighing
    >>> X, y, sex = [[0], [1], [2], [3]] * 30, [0, 0, 1, 1] * 30, ["f", "f", "f", "m"] * 30
    >>> model = Reweighing().fit(X, y, sensitive_features=sex)
    >>> model.train_weights_[:3].round(2).tolist()  # no man is of class 0
    [0.75, 0.75, 1.5]
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
            The rows, in whatever form the classifier takes.
        y : array-like of shape (n_samples,)
            The classes.
        **fit_params : dict
            What ``estimator.fit`` takes besides. With metadata routing, what it has requested.
        """
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
        """Return the weight of each row times that which makes group and class independent."""
        self.classes_, classes = encode_classes(data.y)
        weights = np.ones(classes.size) if data.sample_weight is None else data.sample_weight
        groups = data.groups.cells().codes
        table = np.zeros((groups.max() + 1, self.classes_.size))
        np.add.at(table, (groups, classes), weights)
        product = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        # A cell without weight has rows without weight only.
        factors = np.divide(product, table, out=np.ones(table.shape), where=table > 0)
        return np.asarray(weights * factors[groups, classes])

    def _rows(self, X: MatrixLike) -> Any:
        check_is_fitted(self)
        return read_features(self, as_rows(X), skip_check_array=True)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Predict the classes of rows, without their groups.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The predicted classes.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict(rows))

    @available_if(_inside_has("predict_proba"))
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Return the probabilities of the classifier.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    @available_if(_inside_has("predict_log_proba"))
    def predict_log_proba(self, X: MatrixLike) -> FloatArray:
        """Return logarithms of the probabilities of the classifier.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.predict_log_proba(rows))

    @available_if(_inside_has("decision_function"))
    def decision_function(self, X: MatrixLike) -> FloatArray:
        """Return the scores of the classifier.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes a positive score predicts the second one.
        """
        rows = self._rows(X)
        return np.asarray(self.estimator_.decision_function(rows))

    def score(self, X: MatrixLike, y: ColumnLike, sample_weight: ColumnLike | None = None) -> float:
        """Return the score of the classifier: its accuracy, unless it has another one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their true classes.

        Returns
        -------
        score : float
            What ``estimator.score`` says of these rows.
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        fit_params = {} if sample_weight is None else {"sample_weight": sample_weight}
        rows = self._rows(X)
        return float(self.estimator_.score(rows, y, **fit_params))
