"""Attributes of a fitted clusterer, made from a clustering in the problem's units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.cluster.limits import attribute_balances
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import InForce, in_force
from skfair.problems.clustering.counts import Constraints, GroupedRows
from skfair.problems.clustering.points import RepresentationProblem
from skfair.solvers.clustering.base import Clustering
from skfair.utils.warn import warn_user


class FairClusterMixin(ClusterMixin):
    """Clusterers that have labels within limits."""

    fit: Callable[..., Any]

    def fit_predict(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        **fit_params: Any,
    ) -> NDArray[np.int32]:
        """Cluster X within the limits and return the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to cluster, of any kind that ``fit`` takes.
        y : object
            Not used. It exists for compatibility.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row. If the estimator has ``sensitive`` columns, the groups are read
            from X.
        **fit_params : dict
            Further arguments of ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row.
        """
        fitted = self.fit(X, y, sensitive_features=sensitive_features, **fit_params)
        return np.asarray(fitted.labels_)


def center_attributes(problem: RepresentationProblem, centers: FloatArray) -> dict[str, Any]:
    """Return the attributes that prediction without groups needs, for monitors of a run too."""
    return {
        "cluster_centers_": problem.units.outwards(centers).astype(problem.X.dtype),
        "_scaled_prices": np.zeros((problem.n_clusters, problem.n_groups)),
        "_size_prices": np.zeros((problem.n_clusters, 1)),
        "_units": problem.units,
        "_scaled_centers": np.asarray(centers, dtype=np.float64),
    }


def clustering_attributes(
    problem: RepresentationProblem,
    groups: GroupEncoding,
    clustering: Clustering,
    held: FloatArray | float = 0.0,  # (n_clusters, n_groups): weight that the clusters held before
) -> dict[str, Any]:
    """Return all attributes of a fit."""
    prices, bound, units = clustering.prices, clustering.lower_bound, problem.units
    if prices is None:
        prices = problem.group_prices(clustering.multipliers)
    # In the order in which the constraints were made, which is that of a stream's later parts.
    multipliers = np.empty_like(clustering.multipliers)
    multipliers[:, problem.constraint_order] = clustering.multipliers
    is_missed = missed_by(problem, clustering.labels) > 0
    counts = held + problem.counts(clustering.labels) @ problem.membership.T
    # Means of squared distances as sums over the rows, in units of the data.
    sums = np.array([clustering.cost, bound]) * problem.total_weight
    cost, least = units.squared_outwards(sums).tolist()
    return {
        **center_attributes(problem, clustering.centers),
        **count_attributes(counts, groups, problem.constraints),
        "prices_": units.squared_outwards(prices),
        "_scaled_prices": prices,
        "_size_prices": problem.size_prices(clustering.multipliers),
        "_multipliers": multipliers,
        "labels_": clustering.labels.astype(np.int32, copy=False),
        "inertia_": cost,
        "lower_bound_": least,
        "assignment_gap_": (clustering.cost_at_bound - bound) / bound if bound > 0 else 0.0,
        "n_iter_": clustering.n_iter,
        "history_": clustering.history,
        "status_": "infeasible" if is_missed else clustering.status,
    }


def missed_by(problem: GroupedRows, labels: NDArray[Any]) -> float:
    """Return what the constraints are missed by where they are missed by a whole row or more."""
    counts = problem.counts(labels)
    return problem.constraints.violation_beyond(counts, problem.largest_weight)


def warn_of_missed(limits: str, missed: float, details: str = "") -> None:
    """Warn that limits are missed, and say what to change."""
    warn_user(
        f"{limits} are missed by {missed:.4g} in all{details}. Ask for a smaller min_balance, for "
        "wider share_bounds or size_bounds, or for fewer clusters.",
        ConvergenceWarning,
    )


def warn_of_result(
    problem: RepresentationProblem, clustering: Clustering, balance: float, max_iter: int
) -> None:
    """Warn if the limits are not met, or else if the centres still move."""
    if (missed := missed_by(problem, clustering.labels)) > 0:
        largest = f" (largest weight of a row: {problem.largest_weight:g})"
        warn_of_missed("The limits", missed, f"{largest}; the balance reached is {balance:.4g}")
    elif clustering.status == "infeasible":
        warn_user(
            "The limits are violated by less than a row. The smallest balance of a cluster is "
            f"{balance:.4g}. Ask for a smaller min_balance, fewer clusters, or another solver.",
            ConvergenceWarning,
        )
    elif clustering.status == "max_iter":
        warn_user(
            f"The centres still move after max_iter={max_iter} rounds. The limits are "
            "satisfied. Increase max_iter or tol to lower the cost.",
            ConvergenceWarning,
        )
    elif n_empty := int(np.sum(problem.counts(clustering.labels).sum(axis=1) <= 0)):
        warn_user(
            f"{n_empty} of {problem.n_clusters} clusters are empty. X may have fewer distinct rows "
            "than there are clusters. Ask for fewer clusters.",
            ConvergenceWarning,
        )


def count_attributes(
    counts: FloatArray, groups: GroupEncoding, constraints: Constraints
) -> dict[str, Any]:
    """Return what is said of the counts of the groups."""
    balances = attribute_balances(counts, groups).min(axis=1)
    return {
        "cluster_sizes_": counts[:, groups.attribute_of_group == 0].sum(axis=1),
        "group_counts_": counts,
        "cluster_balances_": balances,
        "balance_": float(balances.min()),
        "_limits": limits_in_force(counts, groups, constraints),
    }


def limits_in_force(counts: FloatArray, groups: GroupEncoding, constraints: Constraints) -> InForce:
    """Return the limits on clusters, and what their counts by group reach."""
    if constraints.sizes is not None:
        sizes = counts[:, groups.attribute_of_group == 0].sum(axis=1)
        others = limits_in_force(counts, groups, constraints._replace(sizes=None))
        return others | sizes_in_force(sizes, *constraints.sizes)
    if not groups.levels.attributes:  # no groups were given
        return {}
    if constraints.shares is not None:
        counts = counts[counts.any(axis=1)]
        of_groups = groups.attribute_of_group
        shares = counts / (counts @ (of_groups[:, None] == of_groups))
        ends = np.append(shares.min(axis=0), shares.max(axis=0)).tolist()
        named = [f"{end} share of {g}" for end in ("smallest", "largest") for g in groups.names]
        return in_force(dict(zip(named, ends, strict=True)), constraints.shares.ravel().tolist())
    balances, least = attribute_balances(counts, groups).min(axis=0), constraints.min_balances
    if least is None:
        return {"balance": {"": float(balances.min())}}
    of_data = attribute_balances(counts.sum(axis=0, keepdims=True), groups)[0]
    names = [f"balance of {name}" for name in groups.levels.attributes]
    names = names if len(names) > 1 and groups.n_attributes > 1 else ["balance"]
    pairs = [dict(zip(names, of.tolist(), strict=True)) for of in (balances, balances / of_data)]
    limits, relative = map(in_force, pairs, (least, least / of_data))
    return limits | {f"relative {name}": known for name, known in relative.items()}


def sizes_in_force(sizes: FloatArray, low: FloatArray, high: FloatArray) -> InForce:
    """Return the sizes of clusters, and their bounds: of each one, if these are not all equal."""
    if (low == low[0]).all() and (high == high[0]).all():
        names = "smallest size of a cluster", "largest size of a cluster"
        reached = dict(zip(names, (float(sizes.min()), float(sizes.max())), strict=True))
        return in_force(reached, (float(low[0]), float(high[0])))
    every = zip(sizes.tolist(), low.tolist(), high.tolist(), strict=True)
    return {
        f"cluster {k} of size": {"": size, "at least": least, "at most": most}
        for k, (size, least, most) in enumerate(every)
    }
