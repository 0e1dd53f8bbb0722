"""Pictures of certificates show the numbers that they are made of."""

import numpy as np
import pytest

from skfair import Certificate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import DemographicParity, EqualOpportunity
from skfair.inspection import CertificateDisplay
from skfair.regression import ConstrainedERMRegressor
from tests.families import rows_of_families
from tests.seeds import generator


@pytest.mark.parametrize(
    "model",
    [
        ConstrainedERMClassifier(max_disparity=0.3, certificate=0.9),
        ConstrainedERMClassifier(max_disparity=0.3, certificate=Certificate(0.9, by="split")),
        *rows_of_families("CERTIFIED"),
        ConstrainedERMRegressor(max_disparity=0.5, certificate=0.9),
        FairDecisionClassifier(None, max_disparity=0.3, certificate=0.9, cv=3, group_aware=True),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_certificates_of_all_estimators_are_drawn(model):
    rng = generator(0)
    X, sex = rng.normal(size=(900, 2)), rng.choice(["f", "m"], 900)
    target = X[:, 0] + 0.3 * (sex == "m")
    is_regressor = isinstance(model, ConstrainedERMRegressor)
    model.fit(X, target if is_regressor else target > 0, sensitive_features=sex)
    display = CertificateDisplay.from_estimator(model)
    quality = "r2" if is_regressor else "accuracy"
    for line, column in zip(display.lines_, ("disparity", "bound"), strict=True):
        assert np.array_equal(line.get_xdata(), model.path_[column])
        assert np.array_equal(line.get_ydata(), model.path_[quality])
    assert display.n_certified == model.path_["is_certified"].sum()
    if display.used_ is not None:
        used = [model.path_[column][display.n_certified - 1] for column in ("disparity", "bound")]
        assert np.array_equal(display.used_.get_xdata(), used)
    assert display.ax_.get_xlim()[0] == 0
    assert display.ax_.get_ylabel().lower().startswith(quality)
    assert (display.used_ is None) == (display.n_certified == 0)


@pytest.mark.parametrize(
    ("constraint", "limit"),
    [
        ("demographic_parity", 0.35),
        (DemographicParity(max_disparity=0.3), 0.3),
        (["demographic_parity", DemographicParity(max_disparity=0.35)], 0.35),
        ([DemographicParity(max_disparity=0.3), EqualOpportunity(max_disparity=0.4)], None),
    ],
)
def test_the_limit_that_is_drawn_is_that_of_the_constraints(constraint, limit):
    """Beside constraints with limits of their own the default of the estimator was drawn."""
    rng = generator(0)
    X, sex = rng.normal(size=(900, 2)), rng.choice(["f", "m"], 900)
    model = ConstrainedERMClassifier(constraint, certificate=0.8)
    if "demographic_parity" in constraint if not isinstance(constraint, DemographicParity) else ():
        model.set_params(max_disparity=0.35)
    model.fit(X, X[:, 0] + 0.3 * (sex == "m") > 0, sensitive_features=sex)
    display = CertificateDisplay.from_estimator(model)
    assert display.max_disparity == limit
    lines = [line for line in display.ax_.lines if line.get_label() == "limit"]
    assert [line.get_xdata()[0] for line in lines] == ([] if limit is None else [limit])
