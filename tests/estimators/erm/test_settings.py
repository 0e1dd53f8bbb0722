"""The parameters of the constrained estimators, as a fit reads them."""

from dataclasses import FrozenInstanceError, fields

import pytest

from skfair.classification import ConstrainedERMClassifier
from skfair.estimators.erm.settings import Settings
from skfair.losses import LogLoss
from skfair.regression import ConstrainedERMRegressor

# Who is in which group and which class is positive is read with the rows.
OF_ROWS = {"sensitive", "pos_label"}


@pytest.mark.parametrize("kind", [ConstrainedERMClassifier, ConstrainedERMRegressor])
def test_every_parameter_but_those_of_rows_is_in_the_settings(kind):
    model = kind(max_disparity=0.3, tol=1e-3, model=(4, 2))
    settings, names = model._settings(), set(model.get_params()) - OF_ROWS
    assert names <= {field.name for field in fields(Settings)}
    assert all(getattr(settings, name) == getattr(model, name) for name in names - {"model"})
    assert settings.model.layers == (4, 2)
    assert settings.is_classifier == (kind is ConstrainedERMClassifier)
    with pytest.raises(FrozenInstanceError):
        settings.tol = 1.0


def test_settings_of_a_subclass_with_fewer_parameters():
    class Own(ConstrainedERMClassifier):
        def __init__(self, alpha=0.5):
            super().__init__("equalized_odds", 0.2, alpha=alpha)

    settings = Own()._settings()
    assert (settings.constraint, settings.max_disparity, settings.alpha) == (
        *("equalized_odds", 0.2),
        0.5,
    )


@pytest.mark.parametrize(
    ("changed", "is_one"),
    [
        ({}, True),
        ({"alpha": 0.0, "fit_intercept": False}, True),
        ({"loss": LogLoss()}, False),
        ({"solver": "al_lbfgs"}, False),
        ({"enforce": "strict_loss"}, False),
        ({"class_weight": {0: 1, 1: 2}}, False),
        ({"model": (3,)}, False),
    ],
)
def test_what_is_a_logistic_regression_without_limits(changed, is_one):
    settings = ConstrainedERMClassifier(**changed)._settings()
    assert settings.is_logistic_regression is is_one
