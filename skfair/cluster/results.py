"""Fitted attributes about the labels of clusterers, and the methods that they share.

FairKMeans, FairAssignment and FairSpectralClustering call :func:`count_attributes` at the end of
``fit``, for counts by group, and :func:`warn_of_large`. One attribute, ``_limits``, is for reports
and monitors (:func:`limits_in_force`). All have ``fit_predict`` and ``assign`` from
:class:`FairClusterMixin`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.cluster.assignment.by_prices import assign
from skfair.cluster.assignment.cost_table import CostedRows
from skfair.cluster.assignment.counts import Constraints, GroupedRows
from skfair.cluster.batches import Batch, Before, read_batch
from skfair.cluster.limits import attribute_balances
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import InForce, in_force
from skfair.read import ROW_CHECKS
from skfair.utils.warn import warn_user

# A clustering in which one cluster has more than this share of the rows hardly divides them. There
# is a warning then, unless sizes are limited.
_LARGE = 0.9


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

    def assign(
        self,
        X: MatrixLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        min_balance: float | None = None,
        share_bounds: Any = None,
        size_bounds: Any = None,
        before: Before = None,
        sample_weight: ColumnLike | None = None,
    ) -> NDArray[np.int32]:
        """Assign a batch of new rows to the fitted clusters, within limits on the batch.

        The assignment has nearly the lowest possible cost for batches of up to a few hundred rows,
        and takes about a second. A few late rows usually cannot be balanced separately, because
        each cluster would need rows of each group. With ``before="fit"``, the limits apply to the
        rows of ``fit`` and the batch together.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the batch.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each row. If the estimator has ``sensitive`` columns, the groups are read
            from X. If it was fitted without groups, they may be left out.
        min_balance : float, default=None
            Minimum balance of the clusters in the batch. If None, the value of the estimator is
            used.
        share_bounds : float or dict, default=None
            Limits on shares in the batch. If None, the limits of the estimator are used.
        size_bounds : pair (low, high), default=None
            Bounds on the sizes of the clusters in the batch. If None, the bounds of the estimator
            are used, where integers are numbers of rows of the batch. With ``before``, they are
            bounds on the rows before and the batch together.
        before : "fit" or array-like of shape (n_clusters, n_groups), default=None
            Number (or weight) of the rows of each of ``groups_`` that are already in the clusters.
            The limits then apply to these rows and the batch together. "fit" uses
            ``group_counts_``. If None, the clusters are empty. There are two exceptions for which
            "fit" is used. One is a limited balance and a batch with fewer rows of a group than
            there are clusters. The other is a batch with fewer rows than clusters, if the
            estimator has ``size_bounds`` and this method gets none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. If None, all rows have the same weight.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row, within the limits.
        """
        check_is_fitted(self)
        own_limits, checks = (min_balance, share_bounds, size_bounds), self._row_checks()
        batch = read_batch(self, X, sensitive_features, sample_weight, own_limits, before, **checks)
        problem, target = self._joining(batch)
        labels = assign(problem, target, exact=True).labels
        if (missed := missed_by(problem, labels)) > 0:
            warn_of_missed("The limits on the batch", missed)
        return np.asarray(labels, dtype=np.int32)

    def _row_checks(self) -> dict[str, Any]:
        """Return the options with which X is read."""
        return ROW_CHECKS

    def _joining(self, batch: Batch) -> tuple[CostedRows, FloatArray]:
        """Return the problem of a batch, and its target: scaled centres, or the costs."""
        raise NotImplementedError


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
    balances = attribute_balances(counts, groups)
    sizes = counts[:, groups.attribute_of_group == 0].sum(axis=1)
    return {
        "cluster_sizes_": sizes,
        "group_counts_": counts,
        "cluster_balances_": balances.min(axis=1),
        "balance_": float(balances.min()),
        "relative_balance_": float((balances / balances_of_data(counts, groups)).min()),
        "_limits": limits_in_force(counts, groups, constraints),
        # If sizes are limited, the limits name them.
        "_said_sizes": said_sizes(sizes) if constraints.sizes is None else "",
    }


def balances_of_data(counts: FloatArray, groups: GroupEncoding) -> FloatArray:
    """Return the balance of all clusters together, for each attribute."""
    return np.asarray(attribute_balances(counts.sum(axis=0, keepdims=True), groups)[0])


def said_sizes(sizes: FloatArray) -> str:
    """Return words for the summary: the smallest and the largest cluster."""
    return f"cluster sizes {sizes.min():,.10g} to {sizes.max():,.10g}"


def warn_of_large(
    sizes: FloatArray, largest_weight: float = 1.0, where: str = "", other: str = ""
) -> None:
    """Warn if one cluster has nearly all rows. Fits call it if sizes are not limited.

    The heaviest row does not count, because its cluster is large in any case. ``where`` begins the
    sentence, and ``other`` is a parameter that ``size_bounds`` need as well.
    """
    n_clusters, largest, total = len(sizes), float(sizes.max()), float(sizes.sum())
    if n_clusters > 1 and largest - largest_weight > _LARGE * (total - largest_weight):
        warn_user(
            f"{where}One of {n_clusters} clusters holds {largest / total:.1%} of the data, and the "
            f"smallest has the size {sizes.min():g}. Pass {other}size_bounds="
            f"({0.5 / n_clusters:.2g}, 1.0) if each cluster shall have at least half of an equal "
            "share."
        )


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
    of_data = balances_of_data(counts, groups)
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
