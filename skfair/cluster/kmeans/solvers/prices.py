"""The default solver of k-means under constraints: prices of placing each group in each cluster.

A round assigns every row at prices that satisfy limits (``assignment.py``) and moves the centres to
the means (``lloyd.py``). Neighbouring balances share their prices (``price_front.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from skfair._typing import FloatArray
from skfair.cluster.assignment.by_prices import LARGE, SAMPLE
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solvers.base import (
    Clustering,
    ClusteringSolver,
    ConstraintsOf,
    Front,
    RunSettings,
    Starts,
    for_each,
    register,
)
from skfair.cluster.kmeans.solvers.lloyd import FINISHING_ROUNDS, fair_lloyd
from skfair.cluster.kmeans.solvers.price_front import on_all_points, sweep

# How many rounds may look at all rows of a large problem, before and after the repair.
_FULL_ROUNDS = 3
# Problems of more than three times as many rows make these rounds on a sample of this size. Then
# follow a few over all rows, whose steps on the dual look at the sample.
_MIDDLE, _MIDDLE_ROUNDS = 70_000, 6
_LAST_ROUNDS = 2


@register
@dataclass
class Prices(ClusteringSolver):
    """k-means under limits on groups, solved with dual prices of the cheapest assignment.

    Each pair of a group and a cluster has a price, and each row is assigned to the cluster with the
    smallest squared distance plus price. The prices are the dual variables of the limits. The
    solver enforces limits on the balance or on the shares of groups, also for several attributes
    and with sample weights. Rows may be in the partitions of a Dask collection.

    Notes
    -----
    A round costs a few passes over the rows, each of which is O(n K d). The steps on the prices
    only use the rows near a tie. For K clusters and J groups, a limit on the balance has
    K J (J - 1) multipliers, and limits on the shares have 2 K J.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.cluster import FairKMeans
    >>> from skfair.solvers import Prices
    >>> X, sex = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    >>> model = FairKMeans(3, solver=Prices(), random_state=0).fit(X, sensitive_features=sex)
    >>> bool(model.balance_ >= 0.8)
    True
    """

    name = "prices"
    takes_overlaps = True
    takes_sparse = True
    has_front = True
    keeps_balance = True
    keeps_shares = True

    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        return self.cluster(problem, [start], settings)

    def cluster(
        self, problem: RepresentationProblem, starts: Sequence[FloatArray], settings: RunSettings
    ) -> Clustering:
        # The starts of a large problem compete on a sample, where it only has to be seen which is
        # better; the winner goes on with a few rounds over all rows.
        is_large = problem.n_samples > LARGE
        part = problem.sample(SAMPLE, settings.random_state) if is_large else problem
        run = partial(
            fair_lloyd,
            part,
            max_iter=settings.max_iter,
            tol=settings.tol,
            finishing_rounds=1 if is_large else FINISHING_ROUNDS,
            search_counts=not is_large,
            callback=settings.callback,
        )
        best = min(for_each(run, starts, settings.callback), key=lambda run: run.standing)
        return _on_all_rows(problem, best, settings) if is_large else best

    def front(
        self,
        problem: RepresentationProblem,
        constraints_of: ConstraintsOf,
        targets: FloatArray,
        starts: Starts,
        settings: RunSettings,
    ) -> Front:
        # A large problem is swept on a sample.
        first, callback = starts(settings.random_state), settings.callback
        if problem.n_samples <= LARGE:
            return Front(sweep(problem, constraints_of, targets, first, callback), {})
        sample = problem.sample(SAMPLE, settings.random_state)
        points = sweep(sample, constraints_of, targets, first, callback)
        return Front(on_all_points(problem, points, callback), {})


def _on_all_rows(
    problem: RepresentationProblem,
    best: Clustering,  # of a sample
    settings: RunSettings,
) -> Clustering:
    """Carry a clustering from a sample to all rows, by way of a larger sample if they are many."""
    rounds, middle = _FULL_ROUNDS, None
    status = best.status
    if status != "stopped" and problem.n_samples > 3 * _MIDDLE:
        middle = problem.sample(_MIDDLE, settings.random_state)
        best = fair_lloyd(
            middle,
            best.centers,
            multipliers=best.multipliers,
            max_iter=min(settings.max_iter, _MIDDLE_ROUNDS),
            tol=settings.tol,
            finishing_rounds=0,
            callback=settings.callback,
        )
        rounds = _LAST_ROUNDS
    # A stop leaves whole rows to be placed, and no further rounds.
    if best.status == "stopped":
        status, rounds = best.status, 0
    result = fair_lloyd(
        problem,
        best.centers,
        multipliers=best.multipliers,
        max_iter=min(settings.max_iter, rounds),
        tol=settings.tol,
        finishing_rounds=max(rounds, 1),
        part=middle,
        callback=settings.callback,
    )
    return result._replace(status=status, n_iter=result.n_iter or best.n_iter)
