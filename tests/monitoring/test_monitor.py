"""The monitor: false alarms, changes, state, merging, bad input."""

import warnings
from datetime import UTC, date, datetime
from itertools import product
from time import process_time

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from skfair.exceptions import LooseLimitWarning, RepeatedRowsWarning
from skfair.monitoring import DisparityMonitor
from skfair.monitoring.windows import Windows, log_evidence, start_weights
from tests.monitoring.streams import batch, feed, most_alarms, side_by_side, stream, watched
from tests.seeds import generator


@pytest.mark.parametrize(("sums", "information"), [(3.0, 40.0), (-5.0, 200.0), (60.0, 900.0)])
def test_evidence_is_a_mixture_of_bets(sums, information):
    """Nine tenths on an excess as large as the limit, the rest half-normal (Robbins)."""
    limit = 0.05

    def bet(delta):
        return np.exp(delta * sums - delta**2 * information / 2)

    def weighed(delta):
        return bet(delta) * 2 * stats.norm.pdf(delta, 0, 2 * limit)

    mixed = 0.9 * bet(limit) + 0.1 * integrate.quad(weighed, 0, np.inf)[0]
    found = log_evidence(np.array([sums]), np.array([information]), limit)[0]
    assert found == pytest.approx(np.log(mixed), abs=1e-6)


def test_more_is_bet_on_the_direction_that_was_there():
    """The shares of a start are fixed by what came before it, and add up to one."""
    rng, windows = generator(0), Windows(2, 100)
    for number in range(30):
        windows.start(number)
        sizes = np.full((2, 2), 500.0)
        hits = rng.binomial(500, [[0.34, 0.3], [0.3, 0.34]])
        windows.add(np.stack([hits, sizes], axis=2), 50)
    assert windows.leaning[0].tolist() == [0.5, 0.5]
    assert windows.leaning[-1] == pytest.approx([0.8, 0.2], abs=0.01)
    before = windows.leaning.copy()
    windows.add(np.full((2, 2, 2), 500.0), 50)
    assert np.array_equal(windows.leaning, before)
    again = Windows(2, 100).restored(windows.to_dict(), 30_000, 30)
    assert again.leaning == pytest.approx(before)


def test_the_weights_of_starts_add_up_to_one():
    numbers = np.arange(200_000)
    assert start_weights(numbers, 100).sum() == pytest.approx(1, abs=1e-3)
    assert (start_weights(numbers, 100) > 0).all()


@pytest.mark.parametrize(
    ("rates", "sizes", "limit", "n_batches", "min_group_size"),
    [
        ((0.35, 0.3), (300, 700), 0.05, 200, 50),
        ((0.3, 0.35), (300, 700), 0.05, 200, 50),
        pytest.param((0.005, 0.015), (55, 945), 0.01, 1000, 50, marks=pytest.mark.slow),
        pytest.param((0.015, 0.005), (55, 945), 0.01, 600, 50, marks=pytest.mark.slow),
        ((0.99, 0.94), (55, 945), 0.05, 600, 50),
        pytest.param((0.05, 0.1), (10, 90), 0.05, 600, 10, marks=pytest.mark.slow),
        ((0.9, 0.7), (10, 90), 0.2, 400, 2),
        # A limit on the ratio
        ((0.5, 0.4), (300, 700), 0.8, 200, 50),
        ((0.05, 0.04), (300, 700), 0.8, 200, 50),
        ((0.95, 0.76), (300, 700), 0.8, 200, 50),
    ],
)
def test_at_the_limit_both_outcomes_are_rare(rates, sizes, limit, n_batches, min_group_size):
    """Neither an alarm nor a pass in more than 5% of streams; and the mean of S is 0 there."""
    ratio = limit == 0.8
    alarms, passes, windows = side_by_side(
        rates, sizes, limit, n_batches, min_group_size, ratio=ratio
    )
    assert max(alarms, passes) <= most_alarms(0.05, 200)
    weighted, weight, information = windows.sums[0]
    excess = weighted if ratio else np.sign(rates[0] - rates[1]) * weighted - limit * weight
    z = excess / np.sqrt(information)
    assert abs(z.mean()) < 6 / np.sqrt(z.size)
    assert z.var() < stats.chi2.isf(1e-7, z.size - 1) / (z.size - 1)


def test_away_from_the_limit_outcomes_are_certain():
    sizes = (300, 700)
    assert side_by_side((0.3, 0.3), sizes, 0.05, 40)[:2] == (0.0, 1.0)
    assert side_by_side((0.3, 0.42), sizes, 0.05, 40)[:2] == (1.0, 0.0)
    assert side_by_side((0.3, 0.29), sizes, 0.8, 40, ratio=True)[:2] == (0.0, 1.0)
    assert side_by_side((0.3, 0.18), sizes, 0.8, 40, ratio=True)[:2] == (1.0, 0.0)


def test_false_alarms_against_a_reference_are_rare():
    """A change of exactly the limit, after a reference of 30 batches."""
    rates = lambda number: (0.35 if number >= 50 else 0.3, 0.3)  # noqa: E731
    alarms, _, _ = side_by_side(rates, (500, 500), 0.05, 100, lag=30)
    assert alarms <= most_alarms(0.05, 200)


def test_the_estimate_is_the_mean_difference():
    weighted, weight, information = side_by_side((0.3, 0.2), (200, 300), 0.05, 100)[2].sums[0]
    difference, error = weighted / weight, np.sqrt(information) / weight
    assert difference.mean() == pytest.approx(0.1, abs=6 * error.mean() / np.sqrt(error.size))
    assert error.mean() == pytest.approx(np.sqrt((0.21 / 200 + 0.16 / 300) / 100), rel=0.02)


def test_a_change_is_seen_and_dated():
    monitor = watched([0.0] * 30 + [0.15] * 30, n=2000)
    alarm = monitor.alarm_
    assert 30 <= alarm.batch <= 38
    assert abs(alarm.since - 30) <= 3
    assert (alarm.higher, alarm.lower, alarm.rate) == ("m", "f", "selection_rate")
    assert alarm.disparity == pytest.approx(0.15, abs=5 * alarm.standard_error)
    assert watched([0.0] * 60).alarm_ is None


def test_a_limit_and_a_confidence_change_when_it_is_seen():
    gaps = [0.0] * 10 + [0.12] * 50

    def alarm_after(**options):
        alarm = watched(gaps, **options).alarm_
        return np.inf if alarm is None else alarm.batch

    first = alarm_after()
    assert alarm_after(max_disparity=0.12) > first
    assert alarm_after(confidence=1 - 1e-12) > first
    assert alarm_after(min_group_size=3000) > first


@pytest.mark.parametrize(
    ("rule", "affected"),
    [
        ("equal_opportunity", 1),
        ("false_positive_parity", 0),
        ("false_negative_parity", 1),
        ("equalized_odds", 0),
    ],
)
def test_constraints_that_need_labels_look_at_their_rows(rule, affected):
    rng = generator(0)
    alarms = []
    for label in (affected, 1 - affected):
        monitor = DisparityMonitor(rule, 0.05)
        for _ in range(30):
            y = rng.integers(0, 2, 1000)
            sex = rng.choice(["f", "m"], 1000)
            chance = 0.3 + 0.25 * ((sex == "m") & (y == label))
            monitor.update(y, (rng.random(1000) < chance).astype(int), sensitive_features=sex)
        alarms.append(monitor.alarm_)
    assert alarms[0] is not None
    assert (alarms[1] is None) == (rule != "equalized_odds")


def test_memory_does_not_depend_on_the_length_of_the_stream():
    rng, monitor = generator(0), DisparityMonitor(horizon=20)
    sizes = []
    for number in range(600):
        y_pred, sex = batch(rng, 0.02, n=40)
        monitor.update(None, y_pred, sensitive_features=sex)
        if number in (299, 599):
            sizes.append((monitor._seen.windows.starts.size, len(monitor._seen.first)))
    assert sizes[0] == sizes[1]
    assert monitor._seen.windows.starts[0] == 0
    assert len(monitor.history_) <= 513


@pytest.mark.parametrize(
    "times",
    [
        [date(2026, 1, day) for day in (1, 2, 3)],
        [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 2, 3)],
        list(pd.date_range("2026-01-01", periods=3, tz="Europe/Berlin")),
        list(pd.date_range("2026-01-01", periods=3).to_numpy()),
    ],
)
def test_times_stay_times_in_json(times):
    rng = generator(0)
    one = DisparityMonitor("demographic_parity", 0.05, min_group_size=10)
    for day in times[:2]:
        feed(one, None, *batch(rng, 0.9), batch=day)
    other = DisparityMonitor.from_json(one.to_json())
    assert other.alarm_ is not None
    assert other.alarm_ == one.alarm_
    read = [pd.Timestamp(point[0]) for point in other.history_]
    assert read == [pd.Timestamp(time) for time in times[:2]]
    assert other.merge(one).n_batches_ == 2
    with pytest.raises(ValueError, match="comes before"):
        feed(other, None, *batch(rng, 0.9), batch=times[0])
    feed(other, None, *batch(rng, 0.9), batch=times[2])
    assert pd.Timestamp(other.history_[-1][0]) == pd.Timestamp(times[2])


def test_a_reference_limits_the_change_of_the_disparity():
    steady, change = [0.15] * 60, [0.15] * 30 + [0.25] * 30
    given = {"reference_batches": 20, "n": 8000}
    assert watched(steady).alarm_ is not None
    assert watched(steady, **given).alarm_ is None
    alarm = watched(change, **given).alarm_
    assert alarm.higher == "m"
    assert abs(alarm.since - 30) <= 2
    assert alarm.disparity == pytest.approx(0.1, abs=5 * alarm.standard_error)
    fall = watched([0.15] * 30 + [0.05] * 30, **given).alarm_
    assert fall.higher == "f"


def test_a_longer_reference_finds_a_change_sooner():
    """It is known better what was normal; before there is a reference nothing is found."""
    change, seen = [0.02] * 40 + [0.12] * 40, {3: [], 40: []}
    for seed, m in product(range(5), seen):
        alarm = watched(change, reference_batches=m, seed=seed).alarm_
        seen[m].append(alarm.batch if alarm else len(change))
    assert min(seen[40]) >= 40
    assert np.mean(seen[40]) < np.mean(seen[3])
    assert watched([0.02] * 10 + [0.3] * 20, reference_batches=30).alarm_ is None


def merged_alarms(gaps, n_streams, seed=0):
    """Three workers, merged after every tenth batch, in each of some streams: share of alarms."""
    rng, options, n_alarms = generator(seed), {"levels": ["f", "m"]}, 0
    for _ in range(n_streams):
        workers = [DisparityMonitor(confidence=0.8, horizon=40, **options) for _ in range(3)]
        is_alarm = False
        for number, gap in enumerate(gaps):
            for worker in workers:
                y_pred, sex = batch(rng, gap, n=300)
                worker.update(None, y_pred, sensitive_features=sex)
            if number % 10 == 9:
                merged = workers[0].merge(workers[1]).merge(workers[2])
                is_alarm |= merged.alarm_ is not None
        n_alarms += is_alarm
    return n_alarms / n_streams


@pytest.mark.slow
def test_a_merged_monitor_keeps_its_share_of_false_alarms():
    assert merged_alarms([0.05] * 40, 40) <= most_alarms(0.2, 40)
    assert merged_alarms([0.15] * 20, 3) == 1.0


def test_alarms_of_parts_are_not_taken_over():
    """One worker saw a difference in one direction, the other one the same in the other."""
    rng, groups = generator(0), ["f", "m"]
    one, other = DisparityMonitor(levels=groups), DisparityMonitor(levels=groups)
    for _ in range(30):
        for monitor, gap in ((one, 0.15), (other, -0.15)):
            y_pred, sex = batch(rng, gap)
            monitor.update(None, y_pred, sensitive_features=sex)
    assert one.alarm_ is not None
    assert other.alarm_ is not None
    assert one.merge(other).alarm_ is None


def test_groups_may_be_missing_in_a_batch():
    monitor = DisparityMonitor(levels=["f", "m", "x"])
    monitor.update(None, [0, 1, 1], sensitive_features=["f", "m", "m"])
    monitor.update(None, [0, 1], sensitive_features=["f", "x"])
    with pytest.raises(ValueError, match="y_pred has labels|labels"):
        monitor.update(None, ["a", "b"], sensitive_features=["f", "x"])
    assert monitor.n_batches_ == 2  # the failed batch left nothing behind


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"constraint": "loss_parity"}, "constraint must be one of"),
        ({"max_disparity": 0}, "max_disparity"),
        ({"confidence": 1}, "confidence"),
        ({"confidence": 0}, "confidence"),
        ({"horizon": 0}, "horizon"),
        ({"min_group_size": 1}, "min_group_size"),
        ({"levels": ["f"]}, "two groups or more"),
        ({"levels": 3}, "must name all groups"),
        ({"reference_batches": 0}, "reference_batches"),
        ({"reference_batches": 11, "horizon": 10}, "reference_batches"),
        ({"pos_label": [1]}, "pos_label must be a number, text"),
        ({"pos_label": np.nan}, "pos_label=nan has no place"),
        ({"max_disparity": {}}, "has no limit"),
        ({"max_disparity": {"sex": None}}, "has no limit"),
        ({"max_disparity": 5}, r"max_disparity=5 limits nothing.*0\.05 for 5%"),
        ({"max_disparity": {"sex": 2.0}}, r"max_disparity\['sex'\]=2\.0 limits nothing"),
        ({"max_disparity": {"sex": 0.1}, "levels": ["f", "m"]}, "dict of the levels of each"),
        ({"max_disparity": 0.1, "levels": {"sex": ["f", "m"]}}, "a limit for each, too"),
        ({"min_ratio": 0.8, "max_disparity": 0.1}, "min_ratio is a limit of its own"),
        ({"min_ratio": 0.8, "reference_batches": 3}, "min_ratio is a limit of its own"),
        *(({"min_ratio": odd}, "min_ratio") for odd in (0, 1, "a", {"sex": 1.0}, {"sex": None})),
        ({"reference": {}}, "reference={} names no group"),
        ({"max_disparity": {"sex": 0.1}, "reference": "m"}, "reference must be a dict"),
        ({"levels": ["f", "m"], "reference": "male"}, "not among the groups 'f', 'm'"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        DisparityMonitor(**options)


@pytest.mark.parametrize(
    ("last", "odd", "said"),
    [
        (3, 3, "read already"),
        (3, 2, "comes before"),
        (3, "a", "cannot be compared"),
        (3, (2026, 1), "must be a number, text, a date"),
        *((3, odd, f"batch={odd!r} has no place") for odd in (np.inf, -np.inf, np.nan)),
        (datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 2), "cannot be compared"),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2), "cannot be compared"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-02", "cannot be compared"),
    ],
)
def test_batches_that_have_no_place_are_named(last, odd, said):
    monitor = DisparityMonitor()
    monitor.update(None, [0, 1], sensitive_features=["f", "m"], batch=last)
    with pytest.raises((ValueError, TypeError), match=said):
        monitor.update(None, [0, 1], sensitive_features=["f", "m"], batch=odd)
    assert monitor.n_batches_ == 1


def two_attributes(rng, sex_gap, age_gap, n=1000):
    sex, age = rng.choice(["f", "m"], n), rng.choice(["old", "young"], n)
    chance = 0.3 + sex_gap * (sex == "m") + age_gap * (age == "old")
    return (rng.random(n) < chance).astype(int), {"sex": sex, "age": age}


def watched_attributes(limit, gaps, **options):
    rng, monitor = generator(0), DisparityMonitor(max_disparity=limit, **options)
    for _ in range(40):
        feed(monitor, None, *two_attributes(rng, *gaps))
    return monitor


def test_each_attribute_has_its_limit():
    gaps = (0.02, 0.15)  # of sex, of age
    alarm = watched_attributes({"sex": 0.05, "age": 0.08}, gaps).alarm_
    assert (alarm.higher, alarm.lower) == ("age=old", "age=young")
    assert watched_attributes({"sex": 0.05, "age": 0.2}, gaps).alarm_ is None
    assert watched_attributes({"sex": 0.05, "age": None}, gaps).alarm_ is None
    alarm = watched_attributes({"sex": 0.05, "age": 0.2}, (0.12, 0.15)).alarm_
    assert (alarm.higher, alarm.lower) == ("sex=m", "sex=f")


def test_limits_of_attributes_are_those_of_monitors_of_one():
    """With no limit on age, the evidence is that of a monitor that only sees sex."""
    rng, alone = generator(0), DisparityMonitor(max_disparity=0.05)
    both = DisparityMonitor(max_disparity={"sex": 0.05, "age": None})
    for _ in range(40):
        y_pred, groups = two_attributes(rng, 0.1, 0.1)
        both.update(None, y_pred, sensitive_features=groups)
        alone.update(None, y_pred, sensitive_features=groups["sex"])
    assert both.evidence_ == pytest.approx(alone.evidence_)
    assert both.history_[-1][:4] == pytest.approx(alone.history_[-1][:4])
    assert (both.history_[-1][4], alone.history_[-1][4]) == ("sex", "")
    assert both.n_rows_ == alone.n_rows_


def test_attributes_of_a_batch_are_those_with_limits():
    y_pred, groups = two_attributes(generator(0), 0, 0)
    with pytest.raises(ValueError, match="for each of the attributes"):
        DisparityMonitor(max_disparity={"sex": 0.1}).update(None, y_pred, sensitive_features=groups)
    monitor = DisparityMonitor(max_disparity={"sex": 0.1, "age": 0.1})
    with pytest.raises(ValueError, match="for each of the attributes"):
        monitor.add_predictions([0], [1], sensitive_features=["f"])
    assert not monitor._pending


def test_labels_of_the_same_row_count_once():
    monitor = DisparityMonitor("equal_opportunity", levels=["f", "m"])
    monitor.add_predictions([1, 2, 3, 4], [1, 0, 1, 0], sensitive_features=["f", "m", "f", "m"])
    with pytest.raises(ValueError, match=r"ids has 1 twice"):
        monitor.add_labels([1, 1, 2], [1, 1, 0])
    assert monitor.n_batches_ == monitor.n_rows_ == 0  # nothing was read
    monitor.add_labels([1, 2], [1, 0])
    assert monitor.n_rows_ == 2
    with pytest.raises(ValueError, match=r"already or twice: 3, 5\."):
        monitor.add_predictions([3, 5, 6, 5], [1, 0, 1, 0], sensitive_features=["f", "m", "f", "m"])


@pytest.mark.parametrize(
    ("ids", "y_pred", "groups", "said"),
    [
        ([1, 2, 3], [1, 0, 1], ["f", None, "m"], "'sensitive_feature' has 1 missing value"),
        ([1, 2, 3], [1, 0, 1], [0.0, np.nan, 1.0], "'sensitive_feature' has 1 missing value"),
        ([1, 2, 3], [1, None, 1], ["f", "f", "m"], "y_pred has 1 missing value"),
        ([1, 2, 3], [1, 0], ["f", "f", "m"], "y_pred has 2 rows"),
    ],
)
def test_incomplete_predictions_are_refused(ids, y_pred, groups, said):
    monitor = DisparityMonitor("equal_opportunity")
    with pytest.raises(ValueError, match=said):
        monitor.add_predictions(ids, y_pred, sensitive_features=groups)
    assert not monitor._pending


@pytest.mark.parametrize(
    ("first", "second"),
    [(np.int64(0), 1), (0, np.int64(1)), (0, 0.5), (np.float32(0), 1), (np.str_("a"), "b")],
)
def test_batches_are_numbers_of_any_type(first, second):
    monitor = DisparityMonitor()
    monitor.update(None, [0, 1], sensitive_features=["f", "m"], batch=first)
    stored = DisparityMonitor.from_json(monitor.to_json())
    for one in (monitor, stored):
        one.update(None, [0, 1], sensitive_features=["f", "m"], batch=second)
        assert one.n_batches_ == 2


@pytest.mark.parametrize("groups", [None, ["f", "m"]])
def test_monitors_without_batches_are_merged(groups):
    merged = DisparityMonitor(levels=groups).merge(DisparityMonitor(levels=groups))
    assert (merged.n_rows_, merged.n_batches_, merged.history_) == (0, 0, [])
    assert merged.update(None, [0, 1], sensitive_features=["f", "m"]) is None
    assert merged.n_rows_ == 2


def test_rows_that_wait_in_both_monitors_are_not_lost():
    one, other = (DisparityMonitor("equal_opportunity", levels=["f", "m"]) for _ in range(2))
    one.add_predictions([1, 2], [1, 0], sensitive_features=["f", "m"])
    other.add_predictions([2, 3], [1, 1], sensitive_features=["f", "m"])
    with pytest.raises(ValueError, match="wait for labels of ids 2"):
        one.merge(other)


@pytest.mark.filterwarnings("ignore:The batch begins with")
def test_a_printed_monitor_says_what_it_has_read():
    monitor = DisparityMonitor(max_disparity=0.05)
    assert (
        repr(monitor) == "DisparityMonitor('demographic_parity', 0.05): 0 rows, 0 batches, no alarm"
    )
    sex = np.repeat(["f", "m"], 1000)
    for day in ("Monday", "Tuesday"):
        alarm = monitor.update(None, (sex == "m").astype(int), sensitive_features=sex, batch=day)
    assert repr(monitor).endswith(f": 4,000 rows, 2 batches, alarm at batch {alarm.batch}")
    assert "np." not in repr(alarm)


def test_each_attribute_has_its_gauge_and_its_history():
    """Numbers of people: .1 of 1000 rows more of one sex, .02 of one age."""
    sex, age = np.repeat(["f", "m"], 500), np.tile(["old", "young"], 500)
    groups = {"sex": "fm", "age": ["old", "young"], "race": ["old", "young"]}
    limits = {"sex": 0.05, "age": 0.5, "race": None}
    monitor = DisparityMonitor(max_disparity=limits, levels=groups)
    y_pred = np.zeros(1000, int)
    y_pred[np.flatnonzero(sex == "m")[:200]] = 1  # 100 old, 100 young
    y_pred[np.flatnonzero((sex == "f") & (age == "old"))[:50]] = 1
    monitor.update(None, y_pred, sensitive_features={"sex": sex, "age": age, "race": age}, batch=7)
    assert {point[4]: point[1] for point in monitor.history_} == pytest.approx(
        {"sex": 0.4 - 0.1, "age": 0.3 - 0.2}
    )
    assert {point[0] for point in monitor.history_} == {7}
    rule = 'constraint="demographic_parity"'
    gauges = dict(line.rsplit(" ", 1) for line in monitor.to_prometheus().splitlines())
    for attribute, disparity, limit in (("sex", 0.3, 0.05), ("age", 0.1, 0.5)):
        labels = f'{{{rule},attribute="{attribute}"}}'
        assert float(gauges[f"skfair_disparity{labels}"]) == pytest.approx(disparity)
        assert float(gauges[f"skfair_max_disparity{labels}"]) == limit
    assert f"skfair_disparity{{{rule}}}" not in gauges
    assert not any('"race"' in name for name in gauges if "disparity" in name)


def test_the_history_of_attributes_is_thinned_by_batch():
    monitor = DisparityMonitor(max_disparity={"sex": 0.5, "age": 0.5}, horizon=5)
    for _ in range(700):
        monitor.update(
            None,
            [0, 1, 0, 1],
            sensitive_features={"sex": ["f", "m"] * 2, "age": ["o", "o", "y", "y"]},
        )
    batches = [point[0] for point in monitor.history_]
    assert batches[::2] == batches[1::2] == list(range(0, 700, 2))
    assert {point[4] for point in monitor.history_[::2]} == {"sex"}


@pytest.mark.parametrize("id_of", [int, str, float, lambda k: date(2020, 1, 1 + k)])
@pytest.mark.parametrize("label_of", [int, bool])
def test_ids_and_labels_keep_their_kind_in_json(id_of, label_of):
    monitor = DisparityMonitor("equal_opportunity")
    ids = [id_of(k) for k in range(4)]
    y = np.array([label_of(k % 2) for k in range(4)])
    monitor.add_predictions(ids, y, sensitive_features=["f", "f", "m", "m"])
    again = DisparityMonitor.from_json(monitor.to_json())
    assert again._pending == monitor._pending
    again.add_labels(ids, y)
    assert again.n_rows_ == 4


def test_ids_that_json_cannot_hold_are_refused_when_stored():
    for odd in (1j, b"a", (1, 2)):
        monitor, ids = DisparityMonitor("equal_opportunity"), np.empty(2, object)
        ids[:] = [odd, "b"]
        monitor.add_predictions(ids, [0, 1], sensitive_features=["f", "m"])
        with pytest.raises(ValueError, match="ids"):
            monitor.to_json()


@pytest.mark.parametrize("options", [{}, {"levels": ["f", "m"]}, {"reference_batches": 5}])
def test_a_batch_without_rows_is_counted(options):
    """A day without decisions is a batch, also before the first row."""
    rng, empty = generator(0), np.empty(0)
    monitor, n_rows = DisparityMonitor(**options), 0
    for number in range(40):
        if number in (0, 1, 5, 20):
            monitor.update(None, empty, sensitive_features=empty)
        else:
            feed(monitor, None, *batch(rng, 0.2 * (number > 20), n=2000))
            n_rows += 2000
        monitor = DisparityMonitor.from_json(monitor.to_json())
    assert (monitor.n_batches_, monitor.n_rows_) == (40, n_rows)
    assert [point[0] for point in monitor.history_] == list(range(40))
    assert monitor._seen.windows.starts.tolist() == list(range(40))
    assert abs(monitor.alarm_.since - 20) <= 2
    monitor.merge(DisparityMonitor(**options))


@pytest.mark.parametrize("empty", [[], np.empty(0), pd.Series([], dtype=float), {"sex": []}])
def test_what_has_no_rows_is_empty_in_any_form(empty):
    monitor = DisparityMonitor("equal_opportunity")
    monitor.add_predictions([], [], sensitive_features=empty)
    assert monitor.add_labels([], []) is None
    assert monitor.update([], [], sensitive_features=empty) is None
    assert monitor.n_batches_ == 2
    for y_true, y_pred, groups in (([], [], ["f"]), ([1], [], []), ([], None, []), (3, 3, 3)):
        with pytest.raises((ValueError, TypeError)):
            monitor.update(y_true, y_pred, sensitive_features=groups)
    assert monitor.n_batches_ == 2


def test_a_new_group_is_compared_from_its_first_batch_on():
    rng, monitor = generator(0), DisparityMonitor()
    for number in range(60):
        y_pred, sex = batch(rng, 0.0)
        if number >= 20:
            sex = np.where(rng.random(sex.size) < 0.3, "x", sex)
            y_pred = np.where(sex == "x", rng.random(sex.size) < 0.45, y_pred).astype(int)
        if number == 20:
            with pytest.warns(UserWarning, match=r"Batch 20 has rows of 'x'.*levels=\[...\]"):
                monitor.update(None, y_pred, sensitive_features=sex)
        else:
            monitor.update(None, y_pred, sensitive_features=sex)
        monitor = DisparityMonitor.from_json(monitor.to_json())
    assert [tuple(event) for event in monitor.new_groups_] == [(20, "", "x")]
    assert monitor.merge(monitor).new_groups_ == monitor.new_groups_
    assert 'skfair_new_groups_total{constraint="demographic_parity"} 1' in monitor.to_prometheus()
    assert monitor.alarm_.higher == "x"
    assert 20 <= monitor.alarm_.since <= monitor.alarm_.batch <= 26
    assert not monitor._seen.windows.watched[:20, 1:].any()  # nothing is bet on it before


def test_the_hint_for_limits_of_attributes_is_a_dict():
    monitor = DisparityMonitor(max_disparity={"sex": 0.05, "age": 0.1})
    monitor.update(None, [0, 1], sensitive_features={"sex": ["f", "m"], "age": ["o", "y"]})
    with pytest.warns(UserWarning, match=r"'age=new'.*levels=\{'age': \[...\], ...\}"):
        monitor.update(None, [0, 1], sensitive_features={"sex": ["f", "m"], "age": ["o", "new"]})
    assert "age=new" in monitor.rates_["selection_rate"]


@pytest.mark.filterwarnings("ignore:Batch")
def test_new_groups_bring_nothing_to_bet():
    """What all pairs bet from a start on is its weight, however many come later."""
    rng, monitor = generator(0), DisparityMonitor(horizon=50)
    for number in range(30):
        names = np.array(["f", "m", *(f"x{k}" for k in range(number))])
        monitor.update(
            None,
            rng.integers(0, 2, 300),
            sensitive_features=names[rng.integers(0, len(names), 300)],
        )
    windows = monitor._seen.windows
    empty = windows.with_pairs(np.full(windows.n_pairs, -1))
    empty.watched, empty.leaning = windows.watched, windows.leaning
    total = empty.log_total(monitor._seen.limits_of_pairs)[0]
    assert total == pytest.approx(np.log(start_weights(windows.starts, 50).sum()))


@pytest.mark.filterwarnings("ignore:Batch")
def test_false_alarms_are_rare_with_new_groups():
    """A new group every fifth batch, all rates alike up to the limit: 40 streams."""
    rng, n_alarms = generator(0), 0
    for _ in range(40):
        monitor = DisparityMonitor(confidence=0.8, horizon=40)
        for number in range(40):
            names = np.array([f"g{k}" for k in range(2 + number // 5)])
            group = names[rng.integers(0, names.size, 400)]
            y_pred = rng.random(400) < 0.3 + 0.05 * np.isin(group, names[::2])
            monitor.update(None, y_pred.astype(int), sensitive_features=group)
        n_alarms += monitor.alarm_ is not None
    assert n_alarms / 40 <= most_alarms(0.2, 40)


@pytest.mark.filterwarnings("ignore:Batch")
def test_monitors_of_other_groups_are_merged():
    """Each worker met a group of its own, which is compared with the rows of that worker."""
    rng = generator(0)
    left, right, both = (DisparityMonitor() for _ in range(3))
    for number in range(30):
        parts = []
        for monitor, name in ((left, "a"), (right, "z")):
            y_pred, sex = batch(rng, 0.0)
            sex = np.where((number >= 10) & (np.arange(1000) % 4 == 0), name, sex)
            y_pred[(sex == "z") & (rng.random(1000) < 0.2)] = 1
            monitor.update(None, y_pred, sensitive_features=sex)
            parts.append((y_pred, sex))
        feed(both, None, *map(np.concatenate, zip(*parts, strict=True)))
    for merged in (left.merge(right), right.merge(left)):
        assert merged.rates_["selection_rate"] == pytest.approx(both.rates_["selection_rate"])
        assert right.evidence_ < merged.evidence_ + 1 < both.evidence_
        assert merged.alarm_.higher == "z"
        assert merged.n_rows_ == both.n_rows_


@pytest.mark.filterwarnings("ignore:Batch")
def test_endless_new_groups_are_an_identifier():
    monitor = DisparityMonitor(levels=[f"g{k}" for k in range(999)], horizon=1)
    monitor.update(None, [0, 1], sensitive_features=["f", "g1"])
    with pytest.raises(ValueError, match="1001 groups"):
        monitor.update(None, [0, 1], sensitive_features=["h", "g1"])
    assert monitor.n_batches_ == 1


def test_time_is_not_quadratic_in_groups():
    """A thousand groups took 16 seconds a batch."""
    monitor, groups = DisparityMonitor(), np.tile(np.arange(1000).astype(str), 20)
    start = process_time()
    monitor.update(None, np.arange(20_000) % 2, sensitive_features=groups)
    assert process_time() - start < 3
    assert monitor._seen.windows.n_pairs == 1000 * 999 // 2


@pytest.mark.parametrize("limit", [0.1, {"sex": 0.05, "age": 0.1}])
def test_labels_may_come_later(limit):
    """Labels that come after a restart find their predictions, and nothing else changes."""
    rng = generator(0)
    now, later = (DisparityMonitor("equal_opportunity", limit) for _ in range(2))
    for number in range(3):
        y_pred, groups = two_attributes(rng, 0.2, 0.0)
        groups = groups if isinstance(limit, dict) else groups["sex"]
        y, ids = rng.integers(0, 2, 1000), np.arange(1000) + 1000 * number
        later.add_predictions(ids, y_pred, sensitive_features=groups).add_predictions(
            [-number - 1], [1], sensitive_features=groups_of_one(groups)
        )
        later = DisparityMonitor.from_json(later.to_json())
        order = rng.permutation(1000)
        later.add_labels(ids[order], y[order])
        now.update(y, y_pred, sensitive_features=groups)
    assert later.rates_ == now.rates_
    assert later.evidence_ == now.evidence_
    assert len(later._pending) == 3
    with pytest.raises(ValueError, match="ids 3 wait for labels.*read already.*Leave"):
        later.add_labels([3], [1])
    with pytest.raises(ValueError, match="add_predictions"):
        later.update(None, y_pred, sensitive_features=groups)


def groups_of_one(groups):
    if isinstance(groups, dict):
        return {name: column[:1] for name, column in groups.items()}
    return groups[:1]


def test_rows_of_other_attributes_are_other_batches():
    crossed = DisparityMonitor("equal_opportunity")
    crossed.add_predictions(
        [1, 2], [0, 1], sensitive_features={"sex": ["f", "m"], "age": ["o", "y"]}
    )
    crossed.add_predictions([3], [1], sensitive_features=["f"])
    with pytest.raises(ValueError, match="noted with other attributes"):
        crossed.add_labels([1, 2, 3], [1, 1, 1])
    crossed.add_labels([1, 2], [1, 1])
    assert set(crossed.rates_["true_positive_rate"]) == {"sex=f, age=o", "sex=m, age=y"}


def test_a_change_of_all_rates_is_no_alarm():
    base = lambda k: 0.05 if k < 40 else 0.5  # noqa: E731
    assert stream(lambda k: {"f": base(k), "m": base(k) + 0.03}, 80).alarm_ is None


def test_a_batch_need_not_have_every_declared_group():
    groups = pd.Series(pd.Categorical(list("ab") * 20, categories=["a", "b", "z"]))
    chosen, monitor = np.tile([0, 1, 1, 0], 10), DisparityMonitor()  # warnings are errors
    monitor.update(None, chosen, sensitive_features=groups)
    late = DisparityMonitor("equal_opportunity").add_predictions(
        range(40), chosen, sensitive_features=groups
    )
    late.add_labels(range(40), np.tile([1, 1, 0, 0], 10))
    assert (monitor.n_batches_, late.n_batches_) == (1, 1)


def test_a_limit_that_is_rather_a_ratio_is_warned_of():
    for limit in (0.8, {"sex": 0.8, "age": 0.05}):
        with pytest.warns(LooseLimitWarning, match="80 percentage points.*min_ratio=0.8"):
            DisparityMonitor(max_disparity=limit)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DisparityMonitor(min_ratio=0.8)


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_the_same_batch_twice_is_noticed(constraint):
    """Also by a monitor that was stored in between; not if units say who comes again."""
    rng = generator()
    y, p, sex = rng.integers(0, 2, 60), rng.integers(0, 2, 60), rng.choice(["f", "m"], 60)
    batch, given = (y, p), {"sensitive_features": sex}
    monitor = DisparityMonitor(constraint, max_disparity=0.5)
    monitor.update(*batch, **given)
    again = DisparityMonitor.from_json(monitor.to_json())
    for one in (monitor, again):
        with pytest.warns(RepeatedRowsWarning, match="begins with the rows of the batch before"):
            one.update(*batch, **given)
    assert monitor.to_json() == again.to_json()
    longer = [np.append(own, own[:30]) for own in batch]
    more = np.append(sex, sex[:30])
    with pytest.warns(RepeatedRowsWarning, match="begins with"):  # a file that grows
        monitor.update(*longer, sensitive_features=more)
    other = rng.permutation(60)
    again.update(y[other], p[other], sensitive_features=sex[other])  # a warning would be an error
    again.update(y[:5], p[:5], sensitive_features=sex[:5])
    again.update(y[:5], p[:5], sensitive_features=sex[:5])
    known = DisparityMonitor(constraint, max_disparity=0.5)
    for _ in range(2):
        known.update(*batch, **given, units=np.arange(60))
    assert known.n_rows_ == 120
