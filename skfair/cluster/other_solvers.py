"""How :class:`FairKMeans` calls the solvers that do not work by prices.

They speak of labels, or of centres and offsets, in the units of X and for one attribute; here their
results become the :class:`PriceClustering` that the estimator stores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.representation import RepresentationProblem
from skfair.solvers.base import Status
from skfair.solvers.clustering.prices import Callback, PriceClustering
from skfair.utils.factorize import IntArray


def check_solver(name: str, groups: GroupEncoding, min_balance: Any, share_bounds: Any) -> None:
    """Raise if a solver cannot keep the limits that it was given."""
    if name == "prices":
        return
    if groups.n_attributes > 1:
        raise ValueError(
            f"solver={name!r} needs a single attribute, got {groups.n_attributes} that overlap. "
            "Cross them with intersectional=True, or use solver='prices'."
        )
    if share_bounds is not None:
        raise ValueError(f"solver={name!r} knows no share_bounds. Use solver='prices'.")
    if name != "swap" and min_balance is not None:
        raise ValueError(
            f"solver={name!r} trades cost against balance by "
            f"{'fairness_weight' if name == 'variational' else 'n_kmeans_steps and n_swap_steps'} "
            f"and cannot keep min_balance={min_balance}. Pass min_balance=None."
        )


def run_swap(
    estimator: Any,
    problem: RepresentationProblem,
    groups: GroupEncoding,
    beta: float | None,
    start: FloatArray,
    rng: np.random.RandomState,
    callback: Callback | None,
) -> PriceClustering:
    """Algorithm 2 of safairkm from the clusters nearest to the starting centres."""
    from skfair.solvers.clustering.swap import swap_descent

    if np.any(problem.weights != 1):
        raise ValueError(
            "solver='swap' exchanges single rows and knows no sample_weight. Use solver='prices'."
        )
    found = swap_descent(
        problem.X,
        groups.codes[0],
        problem.n_clusters,
        groups.n_groups,
        labels=nearest(problem, start),
        n_kmeans_steps=estimator.n_kmeans_steps,
        n_swap_steps=estimator.n_swap_steps,
        swap_target=estimator.swap_target,
        swap_candidates=estimator.swap_candidates,
        min_balance=beta,
        max_iter=estimator.max_iter,
        tol=estimator.tol,
        random_state=rng,
        callback=_on_labels(problem, callback),
    )
    labels = found.theta.astype(np.int64)
    return as_clustering(problem, labels, None, found.n_iter, found.status, found.history)


def run_variational(
    estimator: Any,
    problem: RepresentationProblem,
    groups: GroupEncoding,
    beta: float | None,
    start: FloatArray,
    rng: np.random.RandomState,
    callback: Callback | None,
) -> PriceClustering:
    """The method of Ziko et al. that penalises the Kullback-Leibler fairness error."""
    from skfair.solvers.clustering.variational import variational_fair_kmeans

    found = variational_fair_kmeans(
        problem.X,
        groups.codes[0],
        problem.n_clusters,
        groups.n_groups,
        centers=problem.unscaled(start),
        fairness_weight=estimator.fairness_weight,
        max_iter=estimator.max_iter,
        weights=problem.weights,
        callback=_on_centers(problem, callback),
    )
    return as_clustering(
        problem,
        found.labels.astype(np.int64),
        found.offsets,
        found.n_iter,
        found.status,
        found.history,
    )


def run_smooth(
    estimator: Any,
    problem: RepresentationProblem,
    groups: GroupEncoding,
    beta: float | None,
    start: FloatArray,
    rng: np.random.RandomState,
    callback: Callback | None,
) -> PriceClustering:
    """Algorithm 4 of safairkm on a smooth relaxation."""
    from skfair.solvers.clustering.smooth import smooth_fair_kmeans

    found = smooth_fair_kmeans(
        problem.X,
        groups.codes[0],
        problem.n_clusters,
        groups.n_groups,
        centers=problem.unscaled(start),
        n_kmeans_steps=estimator.n_kmeans_steps,
        n_swap_steps=estimator.n_swap_steps,
        max_iter=estimator.max_iter,
        batch_size=estimator.batch_size,
        random_state=rng,
        weights=problem.weights,
        callback=_on_centers(problem, callback),
    )
    return as_clustering(
        problem,
        found.labels.astype(np.int64),
        found.offsets,
        found.n_iter,
        found.status,
        found.history,
    )


OTHER_SOLVERS: dict[str, Callable[..., PriceClustering]] = {
    "swap": run_swap,
    "variational": run_variational,
    "smooth": run_smooth,
}


def nearest(problem: RepresentationProblem, centers: FloatArray) -> IntArray:
    """Return the nearest (scaled) centre of each point."""
    blocks = problem.distances(centers).blocks()
    return np.concatenate([block.argmin(axis=1) for _, block in blocks])


def as_clustering(
    problem: RepresentationProblem,
    labels: IntArray,
    offsets: FloatArray | None,
    n_iter: int,
    status: Status,
    history: dict[str, NDArray[Any]],
) -> PriceClustering:
    """Complete labels to a clustering; without a dual its only bound on the cost is 0."""
    means, _ = problem.means(labels)
    cost = problem.cost(labels)
    prices = np.zeros((problem.n_clusters, problem.membership.shape[0]))
    if offsets is not None:
        prices = offsets / problem.scale / problem.scale
    violation = float(problem.rules.violation(problem.counts(labels)).sum())
    return PriceClustering(
        labels,
        means,
        np.zeros((problem.n_clusters, problem.rules.slack.shape[1])),
        cost,
        cost,
        0.0,
        violation,
        n_iter,
        status,
        history,
        prices,
    )


def _on_labels(problem: RepresentationProblem, callback: Callback | None) -> Callback | None:
    if callback is None:
        return None
    return lambda labels: callback(problem.means(np.asarray(labels, dtype=np.int64))[0])


def _on_centers(problem: RepresentationProblem, callback: Callback | None) -> Callback | None:
    if callback is None:
        return None
    return lambda state: callback((state[0] - problem.mean) / problem.scale)
