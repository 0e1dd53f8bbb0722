"""Stochastic PLADA and the multiplier model: their algorithms step by step, and what they reach."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import t

from skfair.papers import MultiplierModel, PladaStochastic
from skfair.papers.plada.multiplier_model import MultiplierNetwork
from tests.naive import game
from tests.small_problems import build, people

BOUND, ALPHA = 0.02, 0.1
WHO = people(n=200)


@pytest.fixture
def problem():
    return build(WHO, "equalized_odds", BOUND, alpha=ALPHA)


def means_of(problem):
    """The same problem in plain numpy, in the coordinates of the solver."""
    model = problem.model
    rows = np.column_stack([(WHO.X - model.mean) / model.scale, np.ones(WHO.X.shape[0])])
    penalty = np.append(ALPHA / model.scale**2, 0.0)
    return game.BatchMeans(rows, WHO.signs, WHO.columns[0] == "b", BOUND, penalty)


def split(batch):
    """Rows and weights of the loss, and the rows that stand for cells."""
    in_loss, in_cells = batch.loss_weights > 0, batch.cell_weights[0] > 0
    return batch.rows[in_loss], batch.loss_weights[in_loss], batch.rows[in_cells]


@pytest.mark.parametrize("batches", ["one", "two"])
def test_plada_equals_the_algorithm(problem, batches):
    values = {"alpha": 3.0, "beta": 0.4, "gamma0": 0.6, "kappa": 5.0, "u_max": 0.5}
    tau = 0.2 if batches == "one" else None  # None for 1 / (3 rho), with rho = 3 / 2.2
    solver = PladaStochastic(
        n_loss=9,
        n_per_cell=3,
        averaging=None,
        optimizer="sgd",
        learning_rate=0.05,
        decay_steps=np.inf,
        batches=batches,
        tau=tau,
        **values,
    )
    start = np.random.RandomState(1).normal(size=problem.n_parameters)
    state = solver.begin(problem, start)
    solver.advance(problem, state, 40, np.random.RandomState(0))
    rng, draws = np.random.RandomState(0), []
    for _ in range(40):
        of_loss, weights, of_cells = split(problem.draw(rng, 9, 3))
        other = of_cells if batches == "one" else split(problem.draw(rng, 0, 3))[2]
        draws.append((of_loss, weights, of_cells, other))
    means = means_of(problem)
    first, _ = means.constraints(start, range(200))
    theta, lam = game.plada(
        means, start, draws, eta=0.05, tau=tau or 2.2 / 9, first_values=first, **values
    )
    assert state.theta == pytest.approx(theta, abs=1e-10)
    assert state.multipliers == pytest.approx(lam[:2] - lam[2:], abs=1e-10)


@pytest.mark.parametrize("describes", [False, True])
def test_multiplier_model_equals_the_game(problem, describes):
    told = np.random.RandomState(7).normal(size=(2, 3)) if describes else np.eye(2)
    solver = MultiplierModel(
        n_loss=9,
        n_per_cell=3,
        averaging=None,
        learning_rate=0.2,
        dual_scale=0.7,
        hidden_layer_sizes=(5, 4),
        descriptions=told if describes else None,
    )
    start = np.random.RandomState(1).normal(size=problem.n_parameters)
    state = solver.begin(problem, start)
    solver.advance(problem, state, 40, np.random.RandomState(0))

    rng, layers, draws = np.random.RandomState(0), [], []
    sizes = [told.shape[1] + 1, 5, 4, 1]
    for fan_in, fan_out in pairwise(sizes):
        size = np.sqrt(6 / (fan_in + fan_out))
        layers.append((rng.uniform(-size, size, (fan_in, fan_out)), np.zeros(fan_out)))
    layers[-1] = (layers[-1][0], np.ones(1))
    for _ in range(40):
        row = rng.randint(4)
        draws.append((row, *split(problem.draw(rng, 9, 3, row % 2))))
    descriptions = [np.append(told[row % 2], 1 if row < 2 else -1) for row in range(4)]
    theta, layers = game.multiplier_game(
        means_of(problem), start, layers, draws, descriptions, rate=0.2, dual_scale=0.7
    )
    assert state.theta == pytest.approx(theta, abs=1e-10)
    flat = np.concatenate([np.append(w.ravel(), b) for w, b in layers])
    assert state.rival.network.psi == pytest.approx(flat, abs=1e-10)


def test_gradient_of_the_network_equals_finite_differences():
    signs = set()
    for seed in range(5):
        network = MultiplierNetwork(3, (6, 5), np.random.RandomState(seed))
        network.psi += 0.3 * np.random.RandomState(seed).normal(size=network.psi.size)
        network.psi[-1] -= seed % 2 * 3  # the output is negative, and its size is the multiplier
        told = np.random.RandomState(9).normal(size=3)
        value, gradient = network.with_gradient(told)
        assert value > 0
        signs.add(gradient[-1])
        for k in range(0, gradient.size, 7):
            moved = []
            for h in (1e-6, -1e-6):
                network.psi[k] += h
                moved.append(network.with_gradient(told)[0])
                network.psi[k] -= h
            assert gradient[k] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-6)
    assert signs == {-1.0, 1.0}


def test_a_batch_for_one_constraint_has_rows_of_its_cells_only():
    problem = build(people(n=200, n_levels=(3, 2)), ["equalized_odds", "demographic_parity"], 0.1)
    theta = np.random.RandomState(0).normal(size=problem.n_parameters)
    jacobian = problem.evaluate(theta).jacobian()[:, : problem.model.n_parameters]
    full = problem.evaluate(theta).constraints
    for row in range(problem.n_constraints):
        rng, drawn, slopes = np.random.RandomState(row), [], []
        for _ in range(60):
            batch = problem.draw(rng, 0, 50, row)
            at = problem.evaluate(theta, batch)
            drawn.append(at.constraints[row])
            unit = np.eye(problem.n_constraints)[row]
            slopes.append(at.gradient(unit, objective=0.0)[: problem.model.n_parameters])
        assert batch.rows.size < problem.draw(rng, 0, 50).rows.size
        assert sum((weights > 0).any() for weights in batch.cell_weights) == 1
        for found, expected in ((drawn, full[row]), (slopes, jacobian[row])):
            error = np.std(found, axis=0) / np.sqrt(60)
            bound = t.isf(1e-9, 59) * error + 1e-12
            assert (np.abs(np.mean(found, axis=0) - expected) <= bound).all()
