"""Of several starts, the one that ends best by what a solver weighs."""

import numpy as np
import pytest

from skfair.metrics import balance_score, kmeans_cost
from skfair.papers import Smooth, Variational
from skfair.solvers.clustering.base import RunSettings
from tests.clustering_problems import free_problem


@pytest.mark.parametrize("solver", [Variational(1.0), Smooth(5, 5, batch_size=None)])
def test_the_best_of_several_starts_has_the_least_objective(solver):
    """The start at the two groups is the cheaper one, and its clusters are not balanced."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 60)
    X = np.column_stack((6.0 * codes - 3, rng.normal(size=120)))
    problem = free_problem(X, codes, 2, 2)
    apart, mixed = (
        problem.units.inwards(np.array(c)) for c in ([[-3.0, 0], [3, 0]], [[0, -1.0], [0, 1]])
    )

    def clustered(*starts):
        return solver.cluster(problem, starts, RunSettings(1, np.random.RandomState(0), tol=0.0))

    def objective(clustering):
        """What the solver weighs; of smooth, in plain numpy at labels that are not soft."""
        if isinstance(solver, Variational):
            return clustering.history["objective"][-1]
        balance = balance_score(clustering.labels, sensitive_features=codes, n_clusters=2)
        cost = kmeans_cost(X, clustering.labels) / ((X - X.mean(axis=0)) ** 2).sum()
        with np.errstate(divide="ignore"):
            return (cost - np.log(balance)) / 2

    cheap, fair = clustered(apart), clustered(mixed)
    assert cheap.cost < fair.cost
    assert objective(fair) < objective(cheap)
    for starts in ((apart, mixed), (mixed, apart)):
        best = clustered(*starts)
        assert np.array_equal(best.labels, fair.labels)
        assert objective(best) == pytest.approx(best.objective)
