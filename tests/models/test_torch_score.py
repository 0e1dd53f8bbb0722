"""Modules of PyTorch as score models; skipped where PyTorch is not installed."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from sklearn.datasets import load_digits  # noqa: E402

from skfair.classification import ConstrainedERMClassifier  # noqa: E402
from skfair.constraints.base import TrainingRows, make_constraints  # noqa: E402
from skfair.groups.encoding import encode_groups  # noqa: E402
from skfair.losses import make_loss  # noqa: E402
from skfair.metrics import (  # noqa: E402
    demographic_parity_difference,
)
from skfair.models import MLPScore, TorchScore, check_score_model  # noqa: E402
from skfair.models.plug_in import PlugInScore  # noqa: E402
from skfair.problems.erm.problem import ConstrainedERM  # noqa: E402
from skfair.regression import ConstrainedERMRegressor  # noqa: E402
from skfair.solvers import ALM  # noqa: E402
from tests.models.test_plug_in import people  # noqa: E402

nn = torch.nn


def network(n_features=3):
    return nn.Sequential(nn.Linear(n_features, 8), nn.ReLU(), nn.Linear(8, 1))


def convolutions():
    """A small net for the digits of scikit-learn, 64 columns each."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 6, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * 16, 1),
    )


@pytest.mark.parametrize("module", [network(), network().double(), nn.Linear(3, 1)])
def test_the_contract(module):
    check_score_model(TorchScore(module), people(30)[0])


def test_the_contract_of_convolutions():
    check_score_model(TorchScore(convolutions().double()), load_digits().data[:20] / 16)


@pytest.mark.parametrize("solver", [ALM(averaging=None)], ids=repr)
def test_the_same_steps_as_networks_of_this_package(solver):
    X, y, sex = people()
    own = MLPScore(X, (6, 4))
    own.use_units(own.units._replace(mean=np.zeros(3), scale=np.ones(3)))
    module = nn.Sequential(
        nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 1)
    ).double()
    theta = own.start(np.random.RandomState(0))
    coefs, intercepts = own.raw(theta)
    with torch.no_grad():
        for layer, coef, intercept in zip(module[::2], coefs, intercepts, strict=True):
            layer.weight.copy_(torch.from_numpy(coef.T))
            layer.bias.copy_(torch.from_numpy(intercept))
    score = TorchScore(module, start="module")
    loss, targets = make_loss("log_loss", "classification"), np.where(y, 1.0, -1.0)
    rows = TrainingRows(encode_groups(sex), targets, None, loss, (0, 1))
    ends = []
    for model, start in ((own, theta), (PlugInScore(score, X), score.start(None))):
        constraints = [
            one.prepare(rows, 0.02) for one in make_constraints("loss_parity", "classification")
        ]
        problem = ConstrainedERM(model, loss, targets, constraints)
        rng, state = np.random.RandomState(1), solver.begin(problem, start)
        solver.advance(problem, state, 60, rng)
        assert not np.allclose(state.theta, start, atol=0.05)
        ends.append(problem.scores(state.theta))
    assert_allclose(ends[0], ends[1], atol=1e-9)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds", "loss_parity"])
def test_constraints_are_kept_strictly(constraint):
    X, y, sex = people()
    model = ConstrainedERMClassifier(
        constraint, 0.06, model=TorchScore(network()), max_iter=300, random_state=0
    ).fit(X, y, sensitive_features=sex)
    assert model.train_disparity_ <= 0.06 + 1e-9
    if constraint == "demographic_parity":
        gap = demographic_parity_difference(y, model.predict(X), sensitive_features=sex)
        assert gap <= 0.06 + 1e-9
        assert np.mean(model.predict(X) == y) > 0.6


def test_regression():
    X, _, sex = people()
    target = 10 * X[:, 0] + 5 * X[:, 1]
    model = ConstrainedERMRegressor(
        "mean_score_parity", 1.0, model=TorchScore(network()), max_iter=300, random_state=0
    ).fit(X, target, sensitive_features=sex)
    predicted = model.predict(X)
    assert abs(predicted[sex == "f"].mean() - predicted[sex == "m"].mean()) <= 1.0 + 1e-6


def test_seeds_and_the_generator_of_torch():
    X, y, sex = people()
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    fits = [
        ConstrainedERMClassifier(model=TorchScore(network()), max_iter=30, random_state=seed).fit(
            X, y, sensitive_features=sex
        )
        for seed in (0, 0, 1)
    ]
    state_after_modules = torch.random.get_rng_state()
    assert_array_equal(fits[0].parameters_, fits[1].parameters_)
    assert not np.array_equal(fits[0].parameters_, fits[2].parameters_)
    torch.set_rng_state(before)
    for _ in range(3):
        network()  # only these have drawn from it
    assert torch.equal(torch.random.get_rng_state(), state_after_modules)


def test_states_go_in_and_out():
    X, y, sex = people()
    module = network()
    given = deepcopy(module.state_dict())
    score = TorchScore(module)
    model = ConstrainedERMClassifier(model=score, max_iter=50, random_state=0)
    model.fit(X, y, sensitive_features=sex)
    for name, value in module.state_dict().items():  # the user's module is as it was
        assert torch.equal(value, given[name])
    module.load_state_dict(score.state_dict(model.parameters_))
    with torch.no_grad():
        theirs = module(torch.from_numpy(X).float()).numpy()[:, 0]
    ours = (model.decision_function(X) - model.score_shift_) / model.score_scale_
    assert_allclose(ours, theirs, atol=1e-5)
    copied = score.module_with(model.parameters_)
    with torch.no_grad():
        assert_allclose(copied(torch.from_numpy(X).float()).numpy()[:, 0], theirs, atol=1e-6)
    other = TorchScore(network())
    other.load_state_dict(module.state_dict())
    assert_allclose(other.start(np.random.RandomState(0)), model.parameters_, rtol=1e-6)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_frozen_parameters_stay():
    X, y, sex = people()
    module = network()
    module[0].requires_grad_(False)
    score = TorchScore(module)
    assert score.n_parameters == 9
    model = ConstrainedERMClassifier(model=score, max_iter=20, random_state=0)
    model.fit(X, y, sensitive_features=sex)
    state = score.state_dict(model.parameters_)
    assert torch.equal(state["0.weight"], module[0].weight)


def test_batches_of_a_data_loader():
    X, y, sex = people()
    codes = torch.from_numpy((sex == "m").astype(np.int64))
    data = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y), codes)
    generator = torch.Generator().manual_seed(0)
    loader = torch.utils.data.DataLoader(data, batch_size=100, shuffle=True, generator=generator)
    model = ConstrainedERMClassifier(model=TorchScore(network()), random_state=0)
    for _ in range(3):
        for rows, labels, groups in loader:
            model.partial_fit(
                rows.numpy(),
                labels.numpy(),
                classes=[False, True],
                sensitive_features=groups.numpy(),
            )
    assert model.score(X, y) > 0.6


def test_mistakes():
    X, y, sex = people()
    from scipy import sparse

    model = ConstrainedERMClassifier(model=TorchScore(network()), max_iter=5)
    with pytest.raises(TypeError, match="needs dense rows"):
        model.fit(sparse.csr_array(X), y, sensitive_features=sex)
    with pytest.raises(ValueError, match="scores of shape"):
        ConstrainedERMClassifier(model=TorchScore(nn.Linear(3, 2))).fit(
            X, y, sensitive_features=sex
        )
    with pytest.raises(ValueError, match="start must be"):
        TorchScore(network(), start="zero")
    with pytest.raises(ValueError, match="no parameters"):
        TorchScore(nn.ReLU())
