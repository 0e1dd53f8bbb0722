"""The model of groups where the user has passed none: it knows nothing of the user's model.

Settings of a classifier may name its two classes, or make sense for two only, so it is never
fitted to groups itself. Its rows are read as it reads them, through the transformers that the same
fold has fitted, and then by a neutral model: logistic regression where the user's is linear, else a
small booster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OrdinalEncoder, StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params, check_is_fitted

from skfair._typing import IntArray, MatrixLike

# Against a clone of the user's booster +.0005 of accuracy in the mean of 8 cells (Adult, Bank,
# COMPAS) in half the time; 40 iterations +.0010 in twice that of these, 20 of rate .2 lose a cell.
BOOSTER: dict[str, Any] = {"max_iter": 12, "learning_rate": 0.3, "max_leaf_nodes": 15}
# Where a wrapper of scikit-learn keeps the model that it has fitted
_INSIDE = "best_estimator_", "estimator_", "regressor_", "calibrated_classifiers_"
# Numbers of categories that are missing, or were not there in the fit
_MISSING, _UNKNOWN = -2, -1


def fit_neutral(
    inner: Any,  # the user's model, as the fold has fitted it
    X: MatrixLike,
    target: IntArray,
    row_params: dict[str, Any],  # weights of the rows, if there are any
    rows: IntArray,
) -> Any:
    """Return a neutral classifier fitted on some rows, behind the transformers of a model."""
    weights = _check_method_params(X, row_params, rows)
    X, target = _safe_indexing(X, rows), target[rows]
    steps, last = _parts(inner)
    for step in steps:
        X = step.transform(X)
    if not (hasattr(X, "columns") or sparse.issparse(X) or np.ndim(np.asarray(X)) == 2):
        raise ValueError(
            f"The rows that {type(last).__name__} reads are no table of columns, so groups cannot "
            "be estimated from them. Pass group_estimator=, a classifier that reads such rows, or "
            "decide by the group: group_aware=True."
        )
    texts = [] if sparse.issparse(X) else _texts(X)
    if texts:
        codes = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=_UNKNOWN,
            encoded_missing_value=_MISSING,
        )
        steps.append(ColumnTransformer([("codes", codes, texts)], remainder=StandardScaler()))
        X = steps[-1].fit_transform(X)
    model: Any = HistGradientBoostingClassifier(**BOOSTER, early_stopping=False, random_state=0)
    if np.unique(target).size == 1:
        model = DummyClassifier()
    elif hasattr(last, "coef_") or sparse.issparse(X):
        model = LogisticRegression(max_iter=1000)
        scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
        X = scaler.fit(X, **({} if sparse.issparse(X) else weights)).transform(X)
        steps.append(scaler)
    return make_pipeline(*steps, model.fit(X, target, **weights))


def _parts(estimator: Any) -> tuple[list[Any], Any]:
    """Return the transformers before the last step of a fitted model, and this step."""
    if isinstance(estimator, Pipeline):
        steps, last = _parts(estimator.steps[-1][1])
        # Samplers are steps, too, but they only change what is fitted.
        return [s for _, s in estimator.steps[:-1] if hasattr(s, "transform")] + steps, last
    names = [name for name in _INSIDE if hasattr(estimator, name)]
    inside = getattr(estimator, names[0] if names else "estimator", None)
    inside = inside[0].estimator if isinstance(inside, list) else inside
    try:
        check_is_fitted(inside)
    except (TypeError, NotFittedError):  # forests and others keep what their parts are copied from
        return [], estimator
    return _parts(inside)


def _texts(X: Any) -> list[int]:
    """Return the places of the columns that are no numbers, of a frame or an array."""
    if getattr(getattr(X, "dtype", None), "kind", "O") in "biuf":
        return []
    return [k for k in range(X.shape[1]) if not _is_number(_safe_indexing(X, k, axis=1))]


def _is_number(column: Any) -> bool:
    if not isinstance(column, np.ndarray):
        kind = getattr(column.dtype, "kind", None) or column.to_numpy().dtype.kind
        return kind in "biuf"
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
