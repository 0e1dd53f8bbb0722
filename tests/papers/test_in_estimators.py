"""Tests of the estimators, made again with the solvers that papers bring."""

import numpy as np
import pytest

from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.regression import ConstrainedERMRegressor
from tests import test_examples as examples
from tests import test_first_steps as first_steps
from tests.classification import test_constrained_erm as constrained
from tests.models import test_plug_in as plug_in
from tests.seeds import generator
from tests.utils import test_threads as threads

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")


@pytest.mark.parametrize(("solver", "is_there"), [("ghost", True), ("plada", False)])
def test_partial_fit_is_there_if_it_works(solver, is_there):
    first_steps.test_partial_fit_is_there_if_it_works({"solver": solver}, is_there)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["ssl_alm", "plada"])
@pytest.mark.parametrize("constraint", ["demographic_parity", "loss_parity"])
def test_linear_scores_of_a_user_are_our_own(solver, constraint):
    plug_in.test_linear_scores_of_a_user_are_our_own(solver, constraint)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
@pytest.mark.parametrize("model", [FairKMeans(max_iter=3), ParetoFairKMeans(max_iter=2)])
def test_swaps_are_the_same_bits_with_any_number_of_threads(model, dtype, monkeypatch):
    model.set_params(n_clusters=3, solver="swap", random_state=0)
    threads.test_results_are_the_same_bits_with_any_number_of_threads(
        "swap", model, dtype, monkeypatch
    )


@pytest.mark.parametrize("stops", [{"solver": "plada", "max_iter": 3}, {"solver": "ssg"}])
def test_a_solver_that_stops_early_is_warned_of_under_strict_limits_too(stops):
    constrained.test_a_solver_that_stops_early_is_warned_of_under_strict_limits_too(stops)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of plada
def test_equal_losses_cost_no_more_than_with_plada():
    """Bounds on differences of losses have several local optima; the first two data sets show."""
    shapes = [(2, 200, 5, 2), (9, 300, 3, 3), *((seed, 200, 5, 2) for seed in (0, 1, 3, 4, 5, 6))]
    costs = [_cost_of_equal_losses(*shape) for shape in shapes]
    # In one of 120 data sets a worse optimum than PLADA's is found.
    assert sum(cost > 1.1 for cost in costs) <= 2


def _cost_of_equal_losses(seed, n, d, n_groups):
    """Return the loss within a limit, as a multiple of the loss with PLADA, if that keeps it."""
    rng = generator(seed)
    group = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, d))
    X[:, 0] += group
    y = X @ rng.normal(size=d) * 2 + group * rng.normal() * 2
    y = y + rng.normal(size=n) * (0.5 + 4 * group)

    def fitted(limit, solver="auto"):
        model = ConstrainedERMRegressor("loss_parity", limit, solver=solver)
        errors = (y - model.fit(X, y, sensitive_features=group).predict(X)) ** 2
        if solver == "auto":
            assert model.n_solves_ <= 5  # without limits, then from two starts
        of_groups = [errors[group == k].mean() for k in range(n_groups)]
        return errors.mean(), max(of_groups) - min(of_groups)

    limit = 0.01 * fitted(1e6)[1]
    (loss, gap), (of_plada, gap_of_plada) = fitted(limit), fitted(limit, "plada")
    if gap_of_plada > limit:  # of three groups some samples have no model that keeps it
        return 0.0
    assert gap <= limit * (1 + 1e-6)
    return loss / of_plada


@pytest.mark.slow
def test_the_example_of_solvers_runs(tmp_path, monkeypatch):
    examples.test_a_job_runs_without_a_warning_and_draws("solvers", tmp_path, monkeypatch)
