"""Predictions of a fitted clustering by centres and prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin
from skfair.cluster.limits import members_known, problem_type, representation_constraints
from skfair.groups.encoding import encode_groups
from skfair.groups.named_columns import take_columns
from skfair.problems.clustering.points import Units, squared_norms
from skfair.read import ROW_CHECKS, read_features, read_groups, read_part_groups
from skfair.solvers.clustering.assignment import assign
from skfair.utils.dask_collections import align, by_block, is_lazy, without_rows
from skfair.utils.docs import documented
from skfair.utils.pieces import ROWS, piece_rows
from skfair.utils.threads import over_blocks
from skfair.utils.validation import check_number, check_weights, weight_range
from skfair.utils.warn import warn_user

R = TypeVar("R")

# Distances of a row in two batches differ by this many units in the last place at most, times the
# squared norms that they are made of; below that they are tied, and the first cluster gets the row.
_ROUNDING = 64.0
# What an estimator keeps of how it read its training data.
_READING = (
    "n_features_in_",
    "feature_names_in_",
    "groups_",
    "model_features_",
    "_group_levels",
    "_n_rows",
    "_model_positions",
)


@documented
class PricePredictionMixin(SensitiveFeaturesMixin):
    """Prediction, transformation and exact assignment at fitted centres and prices.

    The estimator sets ``cluster_centers_``, ``_scaled_centers`` and ``_scaled_prices`` in the units
    ``_units``, and has the limits of :class:`FairKMeans` as parameters.
    """

    # Members of a group may be assigned by their prices, so prediction takes the groups.
    __metadata_request__predict = {"sensitive_features": True}

    n_clusters: int
    min_balance: float | None
    relative_balance: bool
    share_bounds: Any
    cluster_centers_: NDArray[Any]
    group_counts_: FloatArray
    labels_: NDArray[np.int32]
    _scaled_centers: FloatArray
    _scaled_prices: FloatArray
    _units: Units

    @by_block(dtype=np.int32)
    def predict(
        self, X: MatrixLike, *, sensitive_features: ColumnsLike | None = None
    ) -> NDArray[np.int32]:
        """Assign new rows to clusters.

        With their groups, rows go where distance plus price is least, which satisfies the limits
        about as well as new data are like the training data. Without groups they go to the nearest
        centre, and no limit is satisfied. See :meth:`assign` for a batch that must satisfy the
        limits exactly.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            New rows.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Their groups; optional. Read from the columns of X that ``sensitive`` names, if any.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        check_is_fitted(self)
        codes = read_groups(self, X, sensitive_features)
        rows = read_features(self, X, **ROW_CHECKS)
        labels = np.empty(rows.shape[0], np.int32)
        centers = self._scaled_centers + self._units.mean / self._units.scale * issparse(rows)
        unit = float(squared_norms(centers).max())
        if codes is not None:
            unit += len(codes) * float(np.abs(self._scaled_prices).max(initial=0.0))

        def of_part(part: slice, distances: NDArray[Any]) -> None:
            from skfair._kernels.prices import nearest

            if codes is not None:
                for attribute in codes:
                    distances += self._scaled_prices.T[attribute[part]]
            rounding = _ROUNDING * np.finfo(distances.dtype).eps
            nearest(distances, unit, rounding, labels[part])

        self._over_distances(rows, of_part)
        return labels

    @by_block(
        n_columns=lambda model: model.n_clusters, dtype=lambda model: model.cluster_centers_.dtype
    )
    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Return the distances of rows to the centres.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances, of the dtype of X.
        """
        check_is_fitted(self)
        rows = read_features(self, X, **ROW_CHECKS)
        out = np.empty((rows.shape[0], self.n_clusters), rows.dtype)

        def of_part(part: slice, distances: NDArray[Any]) -> None:
            out[part] = np.sqrt(distances) * self._units.scale

        self._over_distances(rows, of_part)
        return out

    def score(
        self, X: MatrixLike, y: ColumnLike | None = None, sample_weight: ColumnLike | None = None
    ) -> float:
        """Return minus the sum of squared distances to the nearest centres.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        score : float
            Larger is better, as for ``KMeans``.
        """
        check_is_fitted(self)
        if is_lazy(X, sample_weight):
            blocks = align(X=X, sample_weight=sample_weight)
            return float(blocks.total(_score_block, without_rows(self)))
        rows = read_features(self, X, **ROW_CHECKS)
        weights = check_weights(sample_weight, rows.shape[0])

        def of_part(part: slice, distances: NDArray[Any]) -> float:
            nearest = distances.min(axis=1).astype(np.float64)
            return float(nearest.sum() if weights is None else weights[part] @ nearest)

        return -sum(self._over_distances(rows, of_part)) * self._units.squared

    def assign(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        min_balance: float | None = None,
        share_bounds: Any = None,
        sample_weight: ColumnLike | None = None,
        before: MatrixLike | Literal["fit"] | None = None,
    ) -> NDArray[np.int32]:
        """Assign a whole batch to the fitted centres, at least cost, within limits on the batch.

        Small batches, up to a few hundred rows, are solved nearly to the optimum, within a second
        or so.
        A batch with fewer rows of a group than there are clusters cannot be balanced by itself:
        the limits then apply to the rows of ``fit`` and the batch together (``before="fit"``).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The batch.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Its groups. Read from the columns of X that ``sensitive`` names, if any.
        min_balance : float, default=None
            Smallest balance of a cluster of the batch; None takes that of the estimator.
        share_bounds : float or dict, default=None
            Bounds on shares in the batch instead; None takes those of the estimator.
        before : "fit" or array-like of shape (n_clusters, n_groups), default=None
            Number (or weight) of the rows of each of ``groups_`` that the clusters hold already:
            the limits apply to the sum. "fit" stands for ``group_counts_``; None for nothing.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row, within the limits.
        """
        check_is_fitted(self)
        if is_lazy(X, sensitive_features, sample_weight):
            raise TypeError(
                "assign decides on a whole batch in memory, got a Dask collection. Pass batches "
                "that were computed, or use predict with sensitive_features."
            )
        if sensitive_features is None:
            if self._sensitive.columns is None:
                raise ValueError("assign needs sensitive_features, got None.")
            sensitive_features = take_columns(X, self._sensitive.columns)
        rows = read_features(self, X, **ROW_CHECKS)
        if min_balance is not None:
            check_number(min_balance, "min_balance", 0, 1)
        elif share_bounds is None:
            min_balance, share_bounds = self.min_balance, self.share_bounds
        groups = encode_groups(
            sensitive_features,
            n_samples=rows.shape[0],
            intersectional=self._sensitive.crossed,
            like=X,
        )
        lacks_rows = groups.counts.min() < self.n_clusters or set(groups.names) < set(self.groups_)
        if before is None and min_balance and lacks_rows:
            before = "fit"
        weights = check_weights(sample_weight, rows.shape[0])
        held, sums, of_all = None, groups.sums(weights), groups
        if before is not None:
            groups = read_part_groups(self, X, sensitive_features)
            held = self._counts_before(before)
            sums = held.sum(axis=0) + groups.sums(weights)
            of_all = replace(groups, counts=members_known(held, groups, sums))
        limits = min_balance, self.relative_balance, share_bounds
        constraints = representation_constraints(
            of_all, self.n_clusters, sums, limits, weight_range(weights)
        )
        problem = problem_type(rows)(
            rows, groups, constraints, self.n_clusters, weights, before=held
        )
        centers = problem.units.inwards(self.cluster_centers_)
        labels = assign(problem, centers, exact=True).labels
        counts = problem.counts(labels)
        if (missed := problem.constraints.violation_beyond(counts, problem.largest_weight)) > 0:
            warn_user(
                f"The limits on the batch are missed by {missed:.4g} in all. Ask for wider ones.",
                ConvergenceWarning,
            )
        return np.asarray(labels, dtype=np.int32)

    def _counts_before(self, before: MatrixLike | str) -> FloatArray:
        """Return what the clusters hold already of each group of the fit."""
        if isinstance(before, str):
            if before != "fit":
                raise ValueError(f"before must be 'fit', counts or None, got {before!r}.")
            return self.group_counts_
        shape, counts = self.group_counts_.shape, check_array(before, input_name="before")
        if counts.shape != shape or counts.min() < 0:
            raise ValueError(
                f"before must hold counts, at least 0, of {shape[1]} groups in each of {shape[0]} "
                f"clusters; got the shape {counts.shape} and {counts.min():g} as the smallest."
            )
        return np.asarray(counts, dtype=np.float64)

    def fit_predict(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> NDArray[np.int32]:
        """Cluster X within the limits and return the labels.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows to cluster.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        fitted: PricePredictionMixin = self.fit(  # type: ignore[attr-defined]
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        return fitted.labels_

    def fit_transform(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> NDArray[Any]:
        """Cluster X within the limits and return the distances to the centres.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            The rows to cluster.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Euclidean distances.
        """
        fitted: PricePredictionMixin = self.fit(  # type: ignore[attr-defined]
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        return fitted.transform(X)

    def _read_like(self, reader: SensitiveFeaturesMixin) -> None:
        """Read new rows as another estimator of the same training data does."""
        known = vars(reader)
        vars(self).update({name: known[name] for name in _READING if name in known})

    def _over_distances(self, X: Any, function: Callable[[slice, NDArray[Any]], R]) -> list[R]:
        """Return a function of (rows, scaled squared distances to the centres) for each block."""
        from skfair._kernels.prices import complete_distances, scaled_rows

        origin, scale, centers = self._units.mean, self._units.scale, self._scaled_centers
        is_sparse = issparse(X)  # then zeros would fill up, so the centres move instead
        moved = (centers + origin / scale).astype(X.dtype)
        inverse = np.float64(1 / max(scale, float(np.finfo(np.float64).tiny)))
        minus_two, norms = np.ascontiguousarray(-2 * centers.T), squared_norms(centers)

        def of_block(start: int, stop: int) -> R:
            part = slice(start, stop)
            if is_sparse:
                own = euclidean_distances(X[part] / X.dtype.type(scale), moved, squared=True)
            else:
                scaled = np.empty((stop - start, X.shape[1]))
                scaled_rows(X[part], origin, inverse, scaled)
                own = scaled @ minus_two
                complete_distances(own, norms, squared_norms(scaled))
            return function(part, own)

        # Rows and their distances stay in the fastest part of the cache.
        step = ROWS if is_sparse else piece_rows(X.shape[0], 4 * sum(centers.shape))
        return over_blocks(of_block, X.shape[0], step)

    @property
    def _n_features_out(self) -> int:
        """Number of columns that ``transform`` returns."""
        return int(self.cluster_centers_.shape[0])


def _score_block(block: dict[str, Any], model: PricePredictionMixin) -> float:
    """Score the rows of a block; there may be none, or none with a weight."""
    weights = block.get("sample_weight")
    if not block["X"].shape[0] or (weights is not None and not np.any(weights)):
        return 0.0
    return model.score(block["X"], sample_weight=weights)
