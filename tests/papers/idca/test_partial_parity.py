"""PartialParityClassifier with the algorithms and the quadratic constraints of the paper."""

import warnings
from itertools import permutations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skfair.constraints.partial import IntervalConstraint
from skfair.papers import IDCA, SSG
from tests.papers.idca.test_quadratic import BASELINES
from tests.partial_parity import test_classifier_input as given
from tests.partial_parity import test_losses as losses
from tests.partial_parity.test_classifier import check_promise, fit, people, scores_of


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("constraint", BASELINES)
def test_baselines_bound_their_quadratic(constraint, aware):
    X, y, group = people(n=300, n_groups=3)
    model = fit((0.0, 0.3), constraint, 0.1, group_aware=aware, data=(X, y, group))
    scores = scores_of(model, X, group)

    def excess(above, below):
        return np.mean((1 + np.subtract.outer(scores[above], scores[below])) ** 2 / 2) - 0.5

    sums = []
    for k, other in permutations("abc", 2):
        cell = {(g, c): (group == g) & (y == c) for g in (k, other) for c in (0, 1)}
        compared = {
            "group_auc_quadratic": [(group == k, group == other)],  # (102)
            "inter_group_pairwise": [  # (105)
                (cell[k, 1], cell[other, 0]),
                (cell[k, 0], cell[other, 1]),
            ],
            "intra_group_pairwise": [  # (107)
                (cell[k, 1], cell[k, 0]),
                (cell[other, 0], cell[other, 1]),
            ],
        }
        sums.append(sum(excess(*pair) for pair in compared[constraint]))
    assert model.train_disparity_ == pytest.approx(max(sums), abs=1e-9)
    assert model.is_within_limit_
    assert max(sums) <= 0.1 + 1e-9


@pytest.mark.parametrize("aware", [True, False])
@pytest.mark.parametrize("solver", ["idca", "dc_ssg", "dc_penalty"])
def test_algorithms_of_the_paper(solver, aware):
    n_steps = 2 if solver == "idca" else 30
    model = fit((0.1, 0.6), max_disparity=0.1, solver=solver, max_iter=n_steps, group_aware=aware)
    check_promise(model, *people())
    assert model.is_within_limit_ or not aware
    assert np.isfinite(model.coef_).all()
    columns = {"iteration", "passes", "objective", "max_violation", "seconds"}
    assert set(model.history_) == columns
    assert all(len(column) == n_steps + 1 for column in model.history_.values())
    assert (model.n_iter_, model.n_solves_) == (n_steps, 1)


@pytest.mark.parametrize("scale", ["conditional", "ccdf"])
def test_the_penalty_pays_for_any_disparity_whatever_the_limit(scale):
    given = {"solver": "dc_penalty", "enforce": "surrogate", "max_iter": 20, "scale": scale}
    one, other = (fit((0.1, 0.6), max_disparity=limit, **given) for limit in (0.02, 0.3))
    assert np.array_equal(one.percentiles_, other.percentiles_)
    assert np.array_equal(one.coef_, other.coef_)


def test_idca_is_given_rates_as_the_paper_prints_them():
    """All pairs of groups in ranks, (21); the reformulation with a centre is asked for by name."""
    X, _, group = people()
    given = {"solver": IDCA(eps=5e-3), "max_iter": 5, "enforce": "surrogate"}
    constraint = IntervalConstraint("demographic_parity", surrogate="ramp")
    low, high, kappa = 0.1, 0.6, 0.02
    model = fit((low, high), constraint, kappa, **given, group_aware=False)
    scores = model.decision_function(X)
    rates = [np.clip(scores[group == g] + 0.5, 0, 1).mean() for g in np.unique(group)]
    covered = np.clip(rates, low, high)
    assert len(model.constraint_names_) == len(rates) * (len(rates) - 1) // 2
    assert model.percentile_thresholds_.size == 0
    assert np.ptp(covered) <= kappa * (high - low) + 5e-3 + 1e-12
    given["solver"] = IDCA(eps=5e-3, form="centers")
    other = fit((low, high), constraint, kappa, **given, group_aware=False)
    assert len(other.constraint_names_) == len(rates)
    assert other.percentile_thresholds_.size == 1


@pytest.mark.parametrize("solver", ["plada", SSG()])
def test_first_order_solvers_keep_the_promise(solver):
    """Every solver that can go on from a solution gets the rounds of the strict loop."""
    data = people(n=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # SSG may end without an answer
        model = fit((0.1, 0.6), max_disparity=0.05, solver=solver, data=data)
    assert model.is_within_limit_ == (check_promise(model, *data) <= 0.05 + 1e-9)
    assert model.is_within_limit_ or solver != "plada"
    assert model.n_solves_ > 1


def test_algorithms_of_the_paper_take_losses_of_pairs():
    for loss in ("auc_hinge", "auc_logistic", losses.LogLoss()):
        model = losses.fit(
            loss,
            0.3,
            solver="idca",
            max_iter=3,
            enforce="surrogate",
            constraint=IntervalConstraint(surrogate="ramp"),
        )
        assert np.isfinite(model.coef_).all()


def test_small_units_and_steps_of_constant_length():
    given.fit(X=1e-6 * given.X, solver="dc_penalty", max_iter=100, max_disparity=0.5)
