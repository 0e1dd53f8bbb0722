"""Monitors of pairs: each unit has a row in both groups, such as a CV under two names."""

import json
from contextlib import nullcontext

import numpy as np
import pytest

from skfair.groups.measured_rows import MeasuredRows
from skfair.monitoring import DisparityMonitor
from skfair.monitoring.comparison import shared_units
from tests.groups.test_shared_units import pairs
from tests.monitoring.streams import feed, most_alarms
from tests.seeds import generator


def batch(rng, number, n=100, first=0.45, second=0.4, both=0.35):
    """Labels, decisions, names and CVs, whose numbers are new in each batch."""
    decisions, names, units = pairs(rng, n, first, second, both)
    return rng.integers(0, 2, 2 * n), decisions, names, 10_000 * number + units


def watched(batches, rule="demographic_parity", **options):
    monitor = DisparityMonitor(rule, levels=["a", "b"], horizon=50, **options)
    for y_true, decisions, names, units in batches:
        if feed(monitor, y_true, decisions, names, units=units):
            break
    return monitor


def several(n_batches=6, key=0, **options):
    rng = generator(key)
    return [batch(rng, number, **options) for number in range(n_batches)]


def test_sums_over_batches_are_those_of_all_rows():
    batches = several()
    watcher = watched(batches, "equalized_odds")._seen
    true, decisions, names, units = (np.concatenate(own) for own in zip(*batches, strict=True))
    table = MeasuredRows.of_labels(true, decisions, names, units=units).table()
    for rate in ("true_positive_rate", "false_positive_rate"):
        found = shared_units(watcher.shared, watcher.repeated.weights, rate)
        expected = table.means(rate).shared
        np.testing.assert_allclose(found.overlaps, expected.overlaps.toarray(), atol=1e-15)
        np.testing.assert_allclose(found.covariances, expected.covariances.toarray(), atol=1e-15)


@pytest.mark.parametrize("options", [{}, {"min_ratio": 0.8}, {"reference_batches": 3}])
def test_a_restored_monitor_goes_on_as_the_first_one(options):
    batches = several(8)
    whole, half = watched(batches, **options), watched(batches[:4], **options)
    restored = DisparityMonitor.from_json(half.to_json())
    for y_true, decisions, names, units in batches[4:]:
        feed(restored, y_true, decisions, names, units=units)
    assert json.loads(restored.to_json()) == json.loads(whole.to_json())
    assert "shared" in json.loads(whole.to_json())["state"]


def test_two_monitors_share_what_they_know():
    batches = several(8)
    parts = [watched(batches[k::2]) for k in (0, 1)]
    merged, whole = parts[0].merge(parts[1]), watched(batches)
    np.testing.assert_allclose(merged._seen.shared, whole._seen.shared)


def test_a_group_that_comes_later_shares_units_as_well():
    rng, monitor = generator(), DisparityMonitor(horizon=50)
    for number in range(4):
        y_true, decisions, names, units = batch(rng, number)
        if number >= 2:
            names = np.where(names == "b", "0", names)  # sorted before the others
        is_new = pytest.warns(UserWarning, match="did not know") if number == 2 else nullcontext()
        with is_new:
            feed(monitor, y_true, decisions, names, units=units)
    n_groups = len(monitor._seen.keys)
    assert monitor._seen.shared.shape == (n_groups, 4, n_groups, 4)
    place = [name for _, name in monitor._seen.keys].index
    shared = monitor._seen.shared.sum(axis=(1, 3))
    assert shared[place("a"), place("b")] == shared[place("a"), place("0")] == 200
    assert shared[place("0"), place("b")] == 0


def test_a_change_in_pairs_is_seen_early():
    """From batch 10 on, ten points instead of five, while one pair in 20 differs by chance."""
    rng = generator()
    batches = [
        batch(rng, number, 250, 0.45 + 0.05 * (number >= 10), 0.4, 0.37) for number in range(40)
    ]
    together = watched(batches, max_disparity=0.05)
    assert 10 <= together.alarm_.batch < 20
    apart = watched(((y, p, names, None) for y, p, names, _ in batches), max_disparity=0.05)
    assert apart.alarm_ is None or apart.alarm_.batch > together.alarm_.batch


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "first", "second", "both", "options"),
    [
        (30, 0.45, 0.4, 0.4, {"max_disparity": 0.05}),
        (100, 0.45, 0.4, 0.35, {"max_disparity": 0.05}),
        (100, 0.52, 0.5, 0.5, {"max_disparity": 0.02}),
        (100, 0.5, 0.4, 0.38, {"min_ratio": 0.8}),
    ],
)
def test_at_the_limit_alarms_are_rare(n, first, second, both, options):
    rng, n_streams = generator((n, both)), 60
    rates = {"first": first, "second": second, "both": both}
    found = [
        watched((batch(rng, number, n, **rates) for number in range(40)), **options)
        for _ in range(n_streams)
    ]
    alarms = np.mean([monitor.alarm_ is not None for monitor in found])
    assert alarms <= most_alarms(0.05, n_streams)
