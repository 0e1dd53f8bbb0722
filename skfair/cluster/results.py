"""Fitted attributes about the labels of clusterers: counts by group, limits, and violations.

FairKMeans, FairAssignment and FairSpectralClustering call :func:`count_attributes` at the end of
``fit``. One attribute, ``_limits``, is for reports and monitors (:func:`limits_in_force`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.cluster.assignment.counts import Constraints, GroupedRows
from skfair.cluster.limits import attribute_balances
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import InForce, in_force
from skfair.utils.warn import warn_user


class FairClusterMixin(ClusterMixin):
    """Mixin of the clusterers whose labels satisfy limits."""

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


def missed_by(problem: GroupedRows, labels: NDArray[Any]) -> float:
    """Return the sum of the violations of a whole row or more, see ``violation_beyond``."""
    counts = problem.counts(labels)
    return problem.constraints.violation_beyond(counts, problem.largest_weight)


def warn_of_missed(limits: str, missed: float, details: str = "") -> None:
    """Warn that limits are missed, and say what to change."""
    warn_user(
        f"{limits} are missed by {missed:.4g} in all{details}. Ask for a smaller min_balance, for "
        "wider share_bounds or size_bounds, or for fewer clusters.",
        ConvergenceWarning,
    )


def count_attributes(
    counts: FloatArray, groups: GroupEncoding, constraints: Constraints
) -> dict[str, Any]:
    """Return the fitted attributes that follow from the counts, (n_clusters, n_groups)."""
    balances = attribute_balances(counts, groups).min(axis=1)
    return {
        "cluster_sizes_": counts[:, groups.attribute_of_group == 0].sum(axis=1),
        "group_counts_": counts,
        "cluster_balances_": balances,
        "balance_": float(balances.min()),
        "_limits": limits_in_force(counts, groups, constraints),
    }


def limits_in_force(counts: FloatArray, groups: GroupEncoding, constraints: Constraints) -> InForce:
    """Return each limit by name, with the value that the counts (n_clusters, n_groups) reach.

    If the balance is limited, both absolute balances and balances relative to the data are listed.
    Without any limit on groups, only the balance is listed.
    """
    if constraints.sizes is not None:
        sizes = counts[:, groups.attribute_of_group == 0].sum(axis=1)
        others = limits_in_force(counts, groups, constraints._replace(sizes=None))
        return others | sizes_in_force(sizes, *constraints.sizes)
    if not groups.levels.attributes:  # no groups were given
        return {}
    if constraints.shares is not None:
        counts = counts[counts.any(axis=1)]  # an empty cluster has no shares
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
    """Return the extreme sizes of clusters with their bounds, or each size if bounds differ."""
    if (low == low[0]).all() and (high == high[0]).all():
        names = "smallest size of a cluster", "largest size of a cluster"
        reached = dict(zip(names, (float(sizes.min()), float(sizes.max())), strict=True))
        return in_force(reached, (float(low[0]), float(high[0])))
    every = zip(sizes.tolist(), low.tolist(), high.tolist(), strict=True)
    return {
        f"cluster {k} of size": {"": size, "at least": least, "at most": most}
        for k, (size, least, most) in enumerate(every)
    }
