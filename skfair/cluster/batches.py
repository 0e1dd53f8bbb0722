"""Reading a batch of new rows, and limits on it, for the method ``assign`` of clusterers.

The rows of a batch join the clusters of a fit within limits on the batch.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.limits import Limits, representation_constraints
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import encode_groups, one_group
from skfair.groups.named_columns import take_columns
from skfair.groups.training_data import TrainingData
from skfair.read import read_features, read_part_groups
from skfair.utils.dask_collections import is_lazy
from skfair.utils.validation import check_number, check_weights

Before = MatrixLike | Literal["fit"] | None


class Batch(NamedTuple):
    """New rows, the limits on them, and the weight of each group that clusters hold already."""

    data: TrainingData
    constraints: Constraints
    held: FloatArray | None  # (n_clusters, n_groups); None if the clusters are empty


def read_batch(
    model: Any,  # a fitted clusterer
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,  # if None, they are read from columns of X
    sample_weight: ColumnLike | None,
    own_limits: tuple[float | None, Any, Any],  # min_balance, share_bounds, size_bounds
    before: Before,
    **check_params: Any,  # options of ``read_features``
) -> Batch:
    """Return a batch, checked, with its limits.

    Its groups are encoded anew, so groups of the fit may be absent. A batch that has too few rows
    of a group to be balanced separately, or too few for the sizes of the fit, joins its rows.
    """
    data = _read_rows(model, X, sensitive_features, sample_weight, check_params)
    n_clusters, names = len(model.group_counts_), set(data.groups.names)
    limits = _limits_on_batch(model, *own_limits)
    lacks_groups = data.groups.counts.min() < n_clusters or names < set(model.groups_)
    lacks_rows = data.n_samples < n_clusters and own_limits[-1] is None
    if before is None and (
        (lacks_groups and limits[0] and model._group_levels.attributes)
        or (lacks_rows and limits[-1] is not None)
    ):
        before = "fit"
    held = None
    if before is not None:
        data = TrainingData(
            data.X, None, data.sample_weight, read_part_groups(model, X, sensitive_features)
        )
        held = counts_before(before, model.group_counts_)
    weights = data.sample_weight
    return Batch(
        data, representation_constraints(data.groups, n_clusters, limits, weights, held), held
    )


def _read_rows(
    model: Any,
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,
    sample_weight: ColumnLike | None,
    check_params: dict[str, Any],
) -> TrainingData:
    """Return the rows, groups and weights; a model that was fitted without groups needs none."""
    if is_lazy(X, sensitive_features, sample_weight):
        raise TypeError(
            "assign decides on a whole batch in memory, got a Dask collection. Pass batches "
            "that were computed, or use predict with sensitive_features."
        )
    check_aligned(X=X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    asked = model._sensitive
    if sensitive_features is None and asked.columns is not None:
        sensitive_features = take_columns(X, asked.columns)
    if sensitive_features is None and model._group_levels.attributes:
        raise ValueError(
            "assign needs sensitive_features, got None. Pass the group of each row, as in fit."
        )
    rows = read_features(model, X, **check_params)
    n = _num_samples(rows)
    groups = one_group(n)
    if sensitive_features is not None:
        groups = encode_groups(
            sensitive_features, n_samples=n, intersectional=asked.intersectional, like=X
        )
    return TrainingData(rows, None, check_weights(sample_weight, n), groups)


def _limits_on_batch(
    model: Any, min_balance: float | None, share_bounds: Any, size_bounds: Any
) -> Limits:
    """Return the limits on the batch, which are those of the estimator where none are passed."""
    if min_balance is not None:
        check_number(min_balance, "min_balance", 0, 1)
    elif share_bounds is None:
        min_balance, share_bounds = model.min_balance, model.share_bounds
    size_bounds = model.size_bounds if size_bounds is None else size_bounds
    return min_balance, model.relative_balance, share_bounds, size_bounds


def counts_before(before: MatrixLike | str, of_fit: FloatArray) -> FloatArray:
    """Return the counts that a parameter ``before`` (not None) of ``assign`` stands for.

    They are the weights of each group that the clusters hold already, (n_clusters, n_groups).
    ``of_fit`` are the counts of the fit.
    """
    if isinstance(before, str):
        if before != "fit":
            raise ValueError(f"before must be 'fit', counts or None, got {before!r}.")
        return of_fit
    shape, counts = of_fit.shape, check_array(before, input_name="before")
    if counts.shape != shape or counts.min() < 0:
        raise ValueError(
            f"before must hold counts, at least 0, of {shape[1]} groups in each of {shape[0]} "
            f"clusters; got the shape {counts.shape} and {counts.min():g} as the smallest."
        )
    return np.asarray(counts, dtype=np.float64)
