"""Pictures of certificates and monitors show the numbers that they are made of."""

import numpy as np
import pytest

from skfair import Certificate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import DemographicParity, EqualOpportunity
from skfair.inspection import CertificateDisplay, MonitorDisplay
from skfair.monitoring import DisparityMonitor
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


def test_a_monitor_is_drawn_over_time():
    monitor = DisparityMonitor()
    rng = generator(0)
    for _ in range(12):
        sex = rng.choice(["f", "m"], 1000)
        monitor.update(
            None, (rng.random(1000) < 0.2 + 0.3 * (sex == "m")).astype(int), sensitive_features=sex
        )
    display = MonitorDisplay.from_monitor(monitor)
    assert np.array_equal(display.line_.get_ydata(), [point[1] for point in monitor.history_])
    assert display.alarm_at == monitor.alarm_.batch
    both = DisparityMonitor(max_disparity={"sex": 0.05, "age": 0.1})
    both.update(
        None,
        [0, 1] * 200,
        sensitive_features={"sex": ["f", "m"] * 200, "age": ["old"] * 200 + ["new"] * 200},
    )
    sex = MonitorDisplay.from_monitor(both, attribute="sex")
    age = MonitorDisplay.from_monitor(both, attribute="age", ax=sex.ax_)
    assert (sex.max_disparity, age.max_disparity) == (0.05, 0.1)
    assert sex.line_.get_ydata() == pytest.approx([1.0])
    assert age.line_.get_ydata() == pytest.approx([0.0])
    assert {"sex: recent", "age: limit"} <= {line.get_label() for line in sex.ax_.lines}


@pytest.mark.parametrize("reference", [None, 3])
def test_a_limit_on_a_change_is_no_line_beside_the_disparity(reference):
    """A steady disparity of .3 has not changed, so nothing of it is above the limit of .05."""
    monitor = DisparityMonitor(reference_batches=reference)
    for _ in range(8):
        monitor.update(
            None, [1, 1, 1, 1, 0, 1] * 100, sensitive_features=["f", "m", "f", "m", "f", "m"] * 100
        )
    assert (monitor.alarm_ is None) == (reference is not None)
    display = MonitorDisplay.from_monitor(monitor)
    labels = [line.get_label() for line in display.ax_.lines]
    assert ("limit" in labels) == (reference is None)


@pytest.mark.parametrize("start", [0, 7000])
def test_a_long_stream_is_drawn_at_the_numbers_of_its_batches(start):
    """After 512 batches every second one is kept, and the alarm may be between two of them."""
    monitor = DisparityMonitor(horizon=20)
    for number in range(540):
        shift = 40 * (number >= 520)
        selected = [1] * (50 + shift) + [0] * (50 - shift) + [1, 0] * 50
        monitor.update(
            None, selected, sensitive_features=["f"] * 100 + ["m"] * 100, batch=start + number
        )
        if monitor.alarm_ is not None:
            break
    monitor.history_ = monitor.history_[:-1] if number % 2 == 0 else monitor.history_
    display = MonitorDisplay.from_monitor(monitor)
    numbers = [point[0] for point in monitor.history_]
    assert numbers[-1] < monitor.alarm_.batch
    assert np.diff(numbers).max() == 2
    assert np.array_equal(display.line_.get_xdata(), numbers)
    (alarm,) = [line for line in display.ax_.lines if line.get_label() == "alarm"]
    assert set(alarm.get_xdata()) == {numbers[-1]}
