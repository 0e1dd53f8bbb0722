"""Models of users and networks of PyTorch, whose scores are limited within an interval."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from skfair.classification import PartialParityClassifier
from skfair.metrics import partial_statistical_parity_gap
from skfair.models import TorchScore
from tests.models import test_plug_in as plug_in


@pytest.mark.parametrize("group_aware", [False, True])
def test_a_model_of_the_user(group_aware):
    X, y, sex = plug_in.people()
    model = PartialParityClassifier(
        (0.1, 0.6),
        max_disparity=0.2,
        model=plug_in.Affine(3),
        group_aware=group_aware,
        alpha=1e-3,
        random_state=0,
    ).fit(X, y, sensitive_features=sex)
    given = {"sensitive_features": sex} if group_aware else {}
    scores = model.decision_function(X, **given)
    gap = partial_statistical_parity_gap(y, scores, sensitive_features=sex, interval=(0.1, 0.6))
    assert gap == pytest.approx(model.train_disparity_, abs=1e-9)
    assert gap <= 0.2 + 1e-9
    assert not hasattr(model, "coef_")
    assert hasattr(model.set_params(model="linear").fit(X, y, sensitive_features=sex), "coef_")
    assert not hasattr(model, "parameters_")


@pytest.fixture(scope="module")
def nets():
    pytest.importorskip("torch")
    from tests.models import test_torch_score

    return test_torch_score


def test_a_network(nets):
    X, y, sex = nets.people()
    model = PartialParityClassifier(
        (0.1, 0.6),
        max_disparity=0.2,
        model=TorchScore(nets.network().double()),
        group_aware=True,
        random_state=0,
    ).fit(X, y, sensitive_features=sex)
    scores = model.decision_function(X, sensitive_features=sex)
    gap = partial_statistical_parity_gap(y, scores, sensitive_features=sex, interval=(0.1, 0.6))
    assert gap <= 0.2 + 1e-9


@pytest.mark.parametrize("interval", [(0.2, 0.4), (0.0, 1.0)])
def test_convolutions_on_digits(interval, nets):
    """The form of figure 12 of partial_fairness_idca: a net under statistical parity in ranks."""
    digits = load_digits()
    X, y = digits.data[:600] / 16, digits.target[:600] >= 5
    group = np.where(X.mean(axis=1) > np.median(X.mean(axis=1)), "thick", "thin")
    model = PartialParityClassifier(
        interval,
        max_disparity=0.1,
        model=TorchScore(nets.convolutions().double()),
        group_aware=True,
        max_iter=60,
        random_state=0,
    )
    model.fit(X, y, sensitive_features=group)
    scores = model.decision_function(X, sensitive_features=group)
    gap = partial_statistical_parity_gap(y, scores, sensitive_features=group, interval=interval)
    assert gap <= 0.1 + 1e-9
    assert model.score(X, y, sensitive_features=group) > 0.75
