"""Rows that belong together in a monitor: what they are worth, and units that come back."""

import json

import numpy as np
import pandas as pd
import pytest

from skfair.monitoring import DisparityMonitor
from tests.monitoring.streams import feed, most_alarms, persons_side_by_side
from tests.seeds import generator

OF_UNITS = {"units", "repeated"}


def visits(rng, first, n_persons=150, most=6, gap=0.1):
    """A batch of rows of persons, numbered from ``first`` on: labels, decisions, sex and person."""
    persons = np.repeat(np.arange(n_persons), rng.integers(1, most + 1, n_persons))
    sex = rng.choice(["f", "m"], n_persons)[persons]
    y_pred = rng.random(n_persons)[persons] < 0.4 + gap * (sex == "m")
    y_pred ^= rng.random(persons.size) < 0.1
    return rng.integers(0, 2, persons.size), y_pred.astype(int), sex, first + persons


def watched(batches, rule="equalized_odds", **options):
    monitor = DisparityMonitor(rule, horizon=50, levels=["f", "m"], **options)
    for y, y_pred, sex, units in batches:
        monitor.update(y, y_pred, sensitive_features=sex, units=units)
    return monitor


def several(n_batches=6, seed=0, **options):
    rng = generator(seed)
    return [visits(rng, 1000 * k, **options) for k in range(n_batches)]


def state(monitor, without=OF_UNITS):
    return {k: v for k, v in json.loads(monitor.to_json())["state"].items() if k not in without}


def test_where_nobody_repeats_units_change_nothing():
    batches = several(most=1)
    plain = watched([(*rows, None) for *rows, _ in batches])
    found = watched(batches)
    assert state(found) == state(plain, {"last_rows"})  # of batches without units
    assert not OF_UNITS & state(plain, ()).keys()
    assert found.evidence_ == plain.evidence_
    assert not any(np.any(own) for own in state(found, ())["repeated"].values())


@pytest.mark.parametrize("rule", ["demographic_parity", "equalized_odds"])
@pytest.mark.parametrize("times", [2, 7])
def test_copies_of_rows_are_no_evidence(rule, times):
    batches = several(most=1, gap=0.4)  # far off, so that copies taken for persons would say more
    once = watched(batches, rule)
    batches_of_copies = [[np.repeat(c, times) for c in columns] for columns in batches]
    copies = watched(batches_of_copies, rule)
    assert copies.evidence_ == pytest.approx(once.evidence_, rel=1e-9)
    np.testing.assert_allclose(
        [point[1:4] for point in copies.history_], [point[1:4] for point in once.history_]
    )
    assert copies.n_rows_ == times * once.n_rows_
    assert copies.rates_ == once.rates_
    as_persons = watched([(*rows, None) for *rows, _ in batches_of_copies], rule)
    assert as_persons.evidence_ > once.evidence_ + 5


@pytest.mark.parametrize("name_of", [str, float, lambda unit: f"person {unit}", np.int32])
def test_order_and_names_mean_nothing(name_of):
    batches, rng = several(), generator(1)
    plain = watched(batches)
    shuffled = []
    for columns in batches:
        order = rng.permutation(len(columns[0]))
        *rows, units = (column[order] for column in columns)
        shuffled.append((*rows, [name_of(unit) for unit in units.tolist()]))
    found = watched(shuffled)
    assert state(found, {"units"}) == state(plain, {"units"})
    if name_of in (str, float, np.int32):  # persons are known again if their numbers become text
        assert state(found, ()) == state(plain, ())


def test_only_the_first_batch_of_a_unit_is_evidence():
    """Those who come back count in the rates, whether all or some of a batch."""
    first, second, third = several(3)
    back = [column[: len(column) // 2] for column in first]
    mixed = [np.concatenate(pair) for pair in zip(back, second, strict=True)]
    alone, both = watched([first, second, third]), watched([first, mixed, third])
    assert both.evidence_ == pytest.approx(alone.evidence_, rel=1e-12)
    assert both.n_rows_ == alone.n_rows_ + len(back[0])
    every = watched([(*rows, None) for *rows, _ in (first, mixed, third)])
    assert both.rates_ == every.rates_
    assert both.impact_ratios_ == every.impact_ratios_
    seen = watched([first])
    evidence = state(seen)["windows"]["sums"][0]
    feed(seen, *first[:3], units=first[3])
    assert state(seen)["windows"]["sums"][0] == evidence
    assert seen.n_batches_ == 2


def test_a_restored_monitor_knows_its_units():
    batches = several()
    plain, stored = (DisparityMonitor("equalized_odds", levels=["f", "m"]) for _ in range(2))
    for k, (*rows, units) in enumerate(batches):
        feed(plain, *rows, units=units - 900 * (k % 2))  # every second batch has known persons
        feed(stored, *rows, units=units - 900 * (k % 2))
        stored = DisparityMonitor.from_json(stored.to_json())
    assert stored.to_json() == plain.to_json()


def test_a_refused_batch_leaves_no_units():
    first, second = several(2)
    monitor = watched([first])
    before = monitor.to_json()
    for odd, said in ((second[3][:-1], "units has"), ([None] * len(second[3]), "missing")):
        with pytest.raises(ValueError, match=said):
            feed(monitor, *second[:3], units=odd)
    with pytest.raises(ValueError, match="y_true has"):
        feed(monitor, second[0][:-1], *second[1:3], units=second[3])
    y_pred = pd.Series(second[1], index=range(5, 5 + len(second[1])))
    units = pd.Series(second[3], index=range(6, 6 + len(second[1])))
    with pytest.raises(ValueError, match="index|order"):
        monitor.update(second[0], y_pred, sensitive_features=second[2], units=units)
    assert monitor.to_json() == before


def test_units_of_two_monitors_are_merged():
    first, second, third = several(3)
    one, other = watched([first, second]), watched([third])
    merged = one.merge(other)
    again = DisparityMonitor.from_json(merged.to_json())
    assert again.evidence_ == merged.evidence_ == other.merge(one).evidence_
    before = state(merged, ())
    assert len(before["units"]) == 450
    feed(again, *third[:3], units=third[3])  # rows that waited for others may count now
    first_time = state(again)["windows"]["sums"][0]
    feed(again, *third[:3], units=third[3])  # all are known
    assert state(again)["windows"]["sums"][0] == first_time
    with pytest.warns(UserWarning, match="150 units of both monitors.*evidence twice"):
        one.merge(watched([second]))


def test_labels_of_units_may_come_later():
    now, later = (DisparityMonitor("equal_opportunity", levels=["f", "m"]) for _ in range(2))
    for k, (y, y_pred, sex, units) in enumerate(several(4)):
        now.update(y, y_pred, sensitive_features=sex, units=units)
        ids = 10_000 * k + np.arange(y.size)
        later.add_predictions(ids, y_pred, sensitive_features=sex, units=units)
        later = DisparityMonitor.from_json(later.to_json())
        later.add_labels(ids, y)
    assert state(later, ()) == state(now, ())
    later.add_predictions([1, 2], [0, 1], sensitive_features=["f", "m"], units=["a", "b"])
    later.add_predictions([3], [1], sensitive_features=["f"])
    with pytest.raises(ValueError, match="units has 1 missing"):
        later.add_labels([1, 2, 3], [1, 1, 1])


@pytest.mark.parametrize(
    ("rates", "n_persons", "rows", "likeness"),
    [
        *(
            pytest.param(*stream, marks=pytest.mark.slow)
            for stream in [
                ((0.3, 0.35), (100, 100), [10], 0.999),
                ((0.3, 0.35), (100, 100), [1, 2, 5, 10], 0.5),
                ((0.35, 0.3), (20, 100), [1, 2, 5, 10], 0.2),
            ]
        ),
        # If the batch itself said what its rows are worth, 83% of these would be false alarms
        ((0.1, 0.15), (10, 200), [1, 30], 0.2),
        ((0.3, 0.35), (5, 5), [10], 0.5),
    ],
)
def test_at_the_limit_alarms_are_rare(rates, n_persons, rows, likeness):
    found = persons_side_by_side(rates, n_persons, rows, likeness, 0.05, 100)
    assert (found >= 0).mean() <= most_alarms(0.05, found.size)


def test_a_change_of_new_persons_is_seen():
    rates = lambda number: (0.3, 0.3 + 0.15 * (number >= 20))  # noqa: E731
    found = persons_side_by_side(rates, (100, 100), [10], 0.5, 0.05, 60, n_streams=50)
    assert found.min() >= 20
    assert found.mean() < 30


def alarm_of_panel(has_units):
    """Months of the same persons, of whom some leave; decisions of a person stay.

    Among the first 1200 the gap is 0.1, nearly two standard errors (of 0.027) above the limit, and
    among those who come it is 0.05, the limit.
    """
    person, monitor = np.arange(1200), DisparityMonitor(levels=["f", "m"], horizon=50)
    sex, rank = person % 2, person // 2
    chosen = (rank < 600 * (0.3 + 0.1 * sex)).astype(int)
    for month in range(36):
        if monitor.update(
            None,
            chosen,
            sensitive_features=np.array(["f", "m"])[sex],
            units=person if has_units else None,
        ):
            break
        leaves = np.flatnonzero(rank % 30 == month % 30)  # 20 of each sex
        person[leaves] = 1200 * (month + 1) + leaves
        chosen[leaves] = rank[leaves] // 30 < 6 + sex[leaves]
    return monitor.alarm_


def test_persons_who_come_back_are_no_new_evidence():
    assert alarm_of_panel(True) is None
    assert alarm_of_panel(False) is not None


@pytest.mark.parametrize("times", [1, 3])
def test_units_are_counted_within_each_attribute(times):
    """Some are new, with limits for each attribute: as if those who are known had not come."""
    rng, limits = generator(0), {"sex": 0.05, "age": 0.1}
    alone, both = (DisparityMonitor(max_disparity=limits) for _ in range(2))
    for k in range(4):
        sex, age = rng.choice(["f", "m"], 300), rng.choice(["o", "y"], 300)
        columns = {"sex": sex, "age": age, "y": (rng.random(300) < 0.4 + 0.2 * (sex == "m"))}
        rows = pd.DataFrame(columns).loc[np.repeat(np.arange(300), times)].reset_index(drop=True)
        units = pd.Series(np.repeat(np.arange(300) + 200 * k, times), name="person")
        is_new = units >= (200 * k + 100 if k else 0)
        for monitor, own in ((alone, is_new), (both, units == units)):
            monitor.update(
                None, rows["y"][own], sensitive_features=rows[["sex", "age"]][own], units=units[own]
            )
    assert both.evidence_ == pytest.approx(alone.evidence_, rel=1e-12)
    assert both.n_rows_ == 4 * 300 * times > alone.n_rows_
