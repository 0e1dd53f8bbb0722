"""Reading a batch of new rows, for the method ``assign`` of FairKMeans and FairAssignment.

The rows of a batch join the clusters of a fit within limits on the batch.
"""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import _num_samples

from skfair._typing import ColumnLike, ColumnsLike, MatrixLike
from skfair.base import SensitiveFeaturesMixin
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import encode_groups
from skfair.groups.named_columns import take_columns
from skfair.groups.training_data import TrainingData
from skfair.read import read_features
from skfair.utils.dask_collections import is_lazy
from skfair.utils.validation import check_weights


def read_batch(
    estimator: SensitiveFeaturesMixin,  # fitted
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,  # if None, they are read from columns of X
    sample_weight: ColumnLike | None,
    **check_params: Any,  # options of ``read_features``
) -> TrainingData:
    """Return a batch, checked. Its groups are encoded anew, so groups of the fit may be absent."""
    if is_lazy(X, sensitive_features, sample_weight):
        raise TypeError(
            "assign decides on a whole batch in memory, got a Dask collection. Pass batches "
            "that were computed, or use predict with sensitive_features."
        )
    check_aligned(X=X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    asked = estimator._sensitive
    if sensitive_features is None and asked.columns is not None:
        sensitive_features = take_columns(X, asked.columns)
    if sensitive_features is None:
        raise ValueError("assign needs sensitive_features, got None.")
    rows = read_features(estimator, X, **check_params)
    n = _num_samples(rows)
    groups = encode_groups(
        sensitive_features, n_samples=n, intersectional=asked.intersectional, like=X
    )
    return TrainingData(rows, None, check_weights(sample_weight, n), groups)
