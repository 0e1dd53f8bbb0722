"""Clustering a stream: each part is assigned within the limits on everything seen so far."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.base import fit_method
from skfair.cluster.limits import members_known, problem_type, representation_constraints
from skfair.cluster.prediction import PricePredictionMixin
from skfair.cluster.results import (
    center_attributes,
    count_attributes,
    price_attributes,
    total_cost,
)
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.placement import Placement
from skfair.problems.clustering.points import RepresentationProblem
from skfair.read import ROW_CHECKS, read_features, read_part_groups
from skfair.solvers.clustering.assignment import place
from skfair.utils.dask_collections import is_lazy
from skfair.utils.docs import documented
from skfair.utils.validation import check_weights, weight_range

# The latest thirty parts or so decide the prices: early ones belong to centres that have moved on.
_LEAST_STEP = 0.03


@documented
class StreamMixin(PricePredictionMixin):
    """Adds ``partial_fit`` to an estimator with centres, prices and counts."""

    group_counts_: FloatArray
    n_iter_: int
    _multipliers: FloatArray

    @fit_method
    def partial_fit(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
    ) -> Self:
        """Go on with the next part of a stream.

        The first part is clustered as by ``fit`` and must contain every group. Each further part is
        assigned so that the limits hold for everything seen so far; then the centres move to the
        running means and the prices are averaged. ``labels_`` are those of the last part,
        ``group_counts_``, ``cluster_balances_`` and ``balance_`` count all parts.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next rows.

        Returns
        -------
        self : object
            The estimator.
        """
        if is_lazy(X, sensitive_features, sample_weight):
            raise TypeError(
                "partial_fit takes one part of a stream in memory, got a Dask collection. Pass "
                "its partitions one by one, computed, or the whole collection to fit."
            )
        if not hasattr(self, "cluster_centers_"):
            first: Self = self.fit(  # type: ignore[attr-defined]
                X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
            )
            return first
        groups = read_part_groups(self, X, sensitive_features)
        rows = read_features(self, X, **ROW_CHECKS)
        weights = check_weights(sample_weight, rows.shape[0])
        held = self.group_counts_
        seen = held.sum(axis=0) + groups.sums(weights)
        constraints = representation_constraints(
            replace(groups, counts=members_known(held, groups, seen)),
            self.n_clusters,
            seen,
            (self.min_balance, self.relative_balance, self.share_bounds),
            weight_range(weights),
        )
        problem = problem_type(rows)(
            rows, groups, constraints, self.n_clusters, weights, before=held, units=self._units
        )
        multipliers = self._multipliers
        if multipliers.shape != problem.no_multipliers().shape:  # the solver of fit kept no limits
            multipliers = problem.no_multipliers()
        placed = place(problem, self._scaled_centers, multipliers)
        attributes = self._joined(problem, groups, placed, multipliers)
        self.__dict__.update(attributes, n_iter_=self.n_iter_ + 1)
        return self

    def _joined(
        self,
        problem: RepresentationProblem,
        groups: GroupEncoding,
        placed: Placement,
        multipliers: FloatArray,
    ) -> dict[str, Any]:
        """Return the attributes after an assigned part of a stream has joined those before it."""
        first = slice(0, int(groups.offsets[1]))  # one attribute counts every row once
        before = self.group_counts_[:, first].sum(axis=1)
        means, mass = problem.means(placed.labels)
        share = mass / np.where(before + mass > 0, before + mass, 1.0)
        centers = self._scaled_centers + share[:, None] * (means - self._scaled_centers)
        step = max(_LEAST_STEP, problem.total_weight / (before.sum() + problem.total_weight))
        multipliers = multipliers + step * (placed.multipliers - multipliers)
        bound = placed.lower_bound
        counts = self.group_counts_ + problem.counts(placed.labels) @ problem.membership.T
        return {
            **center_attributes(problem, centers),
            **price_attributes(problem, problem.group_prices(multipliers)),
            **count_attributes(counts, groups),
            "_multipliers": multipliers,
            "labels_": problem.label_rows(placed.labels),
            "inertia_": total_cost(problem, placed.cost),
            "lower_bound_": total_cost(problem, bound),
            "assignment_gap_": (placed.cost - bound) / bound if bound > 0 else 0.0,
        }
