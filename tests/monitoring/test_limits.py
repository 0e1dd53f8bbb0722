"""Limits and outputs of monitors: ratios, a reference group, three outcomes, events, files."""

import json
import re

import numpy as np
import pytest

from skfair.monitoring import DisparityMonitor
from tests.monitoring.streams import stream
from tests.seeds import generator


def test_status_says_what_is_known():
    assert DisparityMonitor().status_ == "inconclusive"
    assert stream({"f": 0.3, "m": 0.3}, 1, n=100).status_ == "inconclusive"
    assert stream({"f": 0.3, "m": 0.31}).status_ == "pass"
    assert stream({"f": 0.3, "m": 0.35}, 5).status_ == "inconclusive"
    assert stream({"f": 0.3, "m": 0.5}).status_ == "fail"
    assert stream({"f": 0.3, "m": 0.31}, levels=["f", "m", "x"]).status_ == "inconclusive"
    assert stream({"f": 0.3, "m": 0.31}, reference_batches=5).status_ == "inconclusive"
    found = [stream({"f": 0.3, "m": 0.3}, 15, confidence=c).status_ for c in (0.9, 1 - 1e-12)]
    assert found == ["pass", "inconclusive"]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_smallest_ratio_is_a_limit_on_either_side(swapped):
    def rates(number):
        low = 0.3 if number < 15 else 0.18
        return {"f": 0.3, "m": low} if swapped else {"f": low, "m": 0.3}

    monitor = stream(rates, min_ratio=0.8, n=4000)
    alarm = monitor.alarm_
    assert (alarm.higher, alarm.lower) == (("f", "m") if swapped else ("m", "f"))
    assert 15 <= alarm.batch <= 20
    assert alarm.disparity == pytest.approx(0.6, abs=5 * alarm.standard_error)
    assert monitor.history_[-1][1] == pytest.approx(0.6, abs=0.05)
    assert all(point[1] <= 1 for point in monitor.history_)
    assert stream({"f": 0.3, "m": 0.28}, min_ratio=0.8).status_ == "pass"
    # The same difference is a small ratio only among low rates.
    assert stream({"f": 0.08, "m": 0.14}, min_ratio=0.8).status_ == "fail"
    assert stream({"f": 0.74, "m": 0.8}, min_ratio=0.8).status_ == "pass"
    lax = stream(rates, min_ratio=0.5)
    assert lax.alarm_ is None


def test_smallest_ratios_of_several_attributes():
    rng = generator(0)
    monitor = DisparityMonitor(min_ratio={"sex": 0.8, "age": 0.5})
    for _ in range(40):
        people = {"sex": rng.choice(["f", "m"], 1000), "age": rng.choice(["old", "young"], 1000)}
        chance = 0.2 + 0.1 * (people["age"] == "old")
        monitor.update(None, (rng.random(1000) < chance).astype(int), sensitive_features=people)
        monitor = DisparityMonitor.from_json(monitor.to_json())
    assert monitor.status_ == "pass"
    text = monitor.to_prometheus()
    assert 'skfair_min_ratio{constraint="demographic_parity",attribute="age"} 0.5' in text
    assert re.search(
        r'skfair_ratio\{constraint="demographic_parity",attribute="age"\} 0\.[67]', text
    )
    assert 'skfair_status{constraint="demographic_parity",status="pass"} 1' in text
    assert "max_disparity" not in text


def test_with_a_reference_group_only_its_pairs_count_and_have_a_sign():
    rates = {"f": 0.3, "m": 0.33, "x": 0.24}
    assert stream(rates, 100).alarm_ is not None
    against = stream(rates, 100, max_disparity=0.075, reference="f")
    assert against.alarm_ is None
    assert len(against._seen.pairs) == 2
    assert against.history_[-1][1] == pytest.approx(-0.06, abs=0.03)
    alarm = stream(rates, 200, reference="m").alarm_
    assert (alarm.higher, alarm.lower) == ("m", "x")
    ratios = against.impact_ratios_["selection_rate"]
    values = against.rates_["selection_rate"]
    assert ratios == {one: values[one] / values["f"] for one in values}
    highest = stream(rates, 5).impact_ratios_["selection_rate"]
    assert max(highest.values()) == 1.0
    ratio = stream(rates, 60, min_ratio=0.9, reference="m")
    assert ratio.history_[-1][1] == pytest.approx(24 / 33, abs=0.1)


def test_a_reference_group_is_stored_merged_and_checked():
    rates = {"f": 0.3, "m": 0.33}
    left, right = (stream(rates, 20, seed, reference="m", levels=["f", "m"]) for seed in (0, 1))
    left = DisparityMonitor.from_json(left.to_json())
    assert left.reference == "m"
    merged = left.merge(right)
    assert merged.history_[-1][1] < 0
    assert merged.n_rows_ == 40_000
    monitor = DisparityMonitor(reference="male")
    with pytest.raises(ValueError, match="not among the groups 'f', 'm'"):
        monitor.update(None, [0, 1], sensitive_features=["f", "m"])
    assert (monitor.n_batches_, monitor._seen.names) == (0, [])
    limits = {"sex": 0.1, "age": 0.1}
    several = DisparityMonitor(max_disparity=limits, reference={"sex": "m"})
    people = {"sex": ["f", "m", "x"] * 50, "age": ["a", "b", "c"] * 50}
    several.update(None, [0, 1, 1] * 50, sensitive_features=people)
    assert len(several._seen.pairs) == 2 + 3
    crossed = DisparityMonitor(reference={"sex": "m", "age": "b"})
    crossed.update(None, [0, 1, 1] * 50, sensitive_features=people)
    assert len(crossed._seen.pairs) == 2


@pytest.mark.parametrize("name", ["state.json", "state.json.gz"])
def test_a_file_outlives_the_process_and_is_small(tmp_path, name):
    """Many predictions of two attributes wait; each takes the room of its id."""
    rng, n = generator(0), 30_000
    limits = {"sex": 0.05, "age": 0.1}
    monitor = DisparityMonitor("equal_opportunity", limits)
    people = {"sex": rng.choice(["f", "m"], n), "age": rng.choice(["old", "young"], n)}
    ids, y_pred, y_true = np.arange(n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    monitor.add_predictions(ids, y_pred, sensitive_features=people)
    path = tmp_path / name
    monitor.save(path)
    assert path.stat().st_size < n * (4 if name.endswith("gz") else 8)
    assert len({id(kind) for kind in monitor._pending.values()}) == 8
    again = DisparityMonitor.load(path)
    again.save(path)
    again = DisparityMonitor.load(path)
    again.add_labels(ids[::-1], y_true[::-1])
    direct = DisparityMonitor("equal_opportunity", limits)
    direct.update(y_true, y_pred, sensitive_features=people)
    assert again.rates_ == direct.rates_
    assert json.loads(again.to_json())["state"]["pending"] == []
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="monitor"):
        DisparityMonitor.load(path)
    with pytest.raises(FileNotFoundError):
        DisparityMonitor.load(tmp_path / "none.json")


def test_a_misspelt_constraint_is_named():
    with pytest.raises(ValueError, match="Did you mean 'equalized_odds'"):
        DisparityMonitor("equalised_odds")


def test_rows_have_to_be_in_memory():
    da = pytest.importorskip("dask.array")
    scores = da.from_array(np.arange(30) / 30, chunks=10)
    groups = da.from_array(np.arange(30) % 2, chunks=10)
    with pytest.raises(TypeError, match="compute"):
        DisparityMonitor().update(None, scores, sensitive_features=groups)
