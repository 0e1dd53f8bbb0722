"""Pictures of monitors show the numbers that they are made of."""

import numpy as np
import pytest

from skfair.inspection import MonitorDisplay
from tests.messages import messages
from tests.seeds import generator

DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor
stream = pytest.importorskip("tests.monitoring.streams").stream


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


@pytest.mark.filterwarnings("ignore:The batch begins with")
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


@pytest.mark.filterwarnings("ignore:The batch begins with")
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


def test_signed_disparities_and_ratios_are_drawn():
    signed = stream({"f": 0.3, "m": 0.4}, 20, reference="m", max_disparity=0.2)
    display = MonitorDisplay.from_monitor(signed)
    assert display.ax_.get_ylabel() == "Difference from m (0 is parity)"
    assert display.line_.get_ydata()[-1] < 0
    lines = [line.get_ydata()[0] for line in display.ax_.lines if line is not display.line_]
    assert lines == [0.2, -0.2]
    ratio = MonitorDisplay.from_monitor(stream({"f": 0.38, "m": 0.4}, 20, min_ratio=0.8))
    assert ratio.ax_.get_ylabel() == "Ratio to highest rate (1 is parity)"
    assert ratio.ax_.lines[1].get_ydata()[0] == 0.8


def monitor_of_two():
    monitor = DisparityMonitor(max_disparity={"sex": 0.05, "age": 0.1})
    monitor.update(
        None, np.arange(400) % 2, sensitive_features={"sex": [*"fm"] * 200, "age": [*"on"] * 200}
    )
    return monitor


of_monitor = MonitorDisplay.from_monitor
test_what_cannot_be_drawn_is_said = messages(
    (ValueError, "not read a batch", lambda: of_monitor(DisparityMonitor())),
    (ValueError, "with a limit, 'sex', 'age'", lambda: of_monitor(monitor_of_two())),
)
