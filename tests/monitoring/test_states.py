"""Stored states of monitors: whole, or refused with one error; names; groups one by one."""

import json
import re
from contextlib import nullcontext
from copy import deepcopy
from datetime import date

import numpy as np
import pytest

from skfair.monitoring import DisparityMonitor
from skfair.monitoring.state import VERSION, check_sum
from tests.seeds import generator

# What takes the place of a part of a state.
ODD = [
    *(None, True, -1, 0, 1, 0.5, 2, 1e-300, 1e308, -1e308, 10**400),
    *(float("nan"), float("inf"), -float("inf"), "", "f", "a\ud800", [], {}, [[]], {"sex": 1}),
    *([1, 2], {"ISO 8601 date": "2026-01-01"}, {"ISO 8601 date": "x"}),
]
REFUSED = "text of (a|the) monitor|state of a monitor|stored in version"


def people(rng, n=200):
    return {"sex": rng.choice(["f", "m"], n), "age": rng.choice(["o", "y", "z"], n)}


def states():
    """Monitors of every kind: waiting rows, attributes, a reference, times, an alarm, nothing."""
    rng, made = generator(0), []
    for rule, options in (
        ("demographic_parity", {"horizon": 4}),
        ("equalized_odds", {"max_disparity": {"sex": 0.05, "age": 0.2}}),
        ("equal_opportunity", {"reference_batches": 2}),
        ("demographic_parity", {"levels": ["f", "m"]}),
        ("equalized_odds", {"horizon": 8}),  # with units
    ):
        monitor = DisparityMonitor(rule, min_group_size=20, **options)
        for k in range(0 if "levels" in options else 6):
            groups = people(rng) if "max_disparity" in options else people(rng)["sex"]
            y_pred = rng.integers(0, 2, 200)
            if "horizon" in options and rule == "demographic_parity":
                y_pred = (groups == "m").astype(int)
            day = date(2026, 1, 1 + k) if "reference_batches" in options else k
            units = rng.integers(40 * k, 40 * k + 60, 200) if len(made) == 4 else None
            monitor.update(
                rng.integers(0, 2, 200), y_pred, sensitive_features=groups, batch=day, units=units
            )
        groups = {"sex": ["f", "m"], "age": ["o", "y"]}
        waiting = groups if "max_disparity" in options else ["f", "m"]
        of_waiting = ["ann", "bob"] if len(made) == 4 else None
        made.append(
            monitor.add_predictions(
                ["a", "b"], [0, 1], sensitive_features=waiting, units=of_waiting
            )
        )
    return made


def places(state, path=()):
    """All places in lists and dicts, the inner ones too."""
    if isinstance(state, list | dict):
        for key in range(len(state)) if isinstance(state, list) else state:
            yield (*path, key)
            yield from places(state[key], (*path, key))


def damage(state, rng):
    """Change one place of a state, any depth being equally likely."""
    found = list(places(state))
    depth = rng.choice(sorted({len(path) for path in found}))
    at = [path for path in found if len(path) == depth]
    *path, key = at[rng.integers(len(at))]
    part = state
    for one in path:
        part = part[one]
    kind = rng.integers(4)
    if kind == 0:
        del part[key]
    elif kind == 1 and isinstance(part, list):
        part.append(deepcopy(part[key]))
    elif kind == 2 and isinstance(part[key], int | float):
        part[key] *= rng.choice([-1, 1.5, 1e9, 1e200])
    else:
        part[key] = ODD[rng.integers(len(ODD))]


def signed(state):
    check = check_sum(json.loads(json.dumps(state), parse_int=float))
    return json.dumps({"version": VERSION, "check_sum": check, "state": state})


def read(text):
    """The monitor in a text, or None if it is refused with the one error for that."""
    try:
        return DisparityMonitor.from_json(text)
    except ValueError as error:
        if re.search(REFUSED, str(error)):
            return None
        raise


def goes_on(monitor, rng):
    """Read batches and late labels, write and read again."""
    groups = people(rng)
    if not isinstance(monitor.max_disparity, dict):
        groups = groups["sex"]
    last = monitor._seen.last
    for k in range(3):
        y, y_pred = rng.integers(0, 2, (2, 200))
        day = date(2026, 2, 1 + k) if isinstance(last, date) else (last or 0) + 1 + k
        monitor.update(y, y_pred, sensitive_features=groups, batch=day)
        assert np.isfinite(monitor.evidence_)
    assert monitor.to_prometheus().encode()
    text = monitor.to_json()
    assert "NaN" not in text
    again = DisparityMonitor.from_json(text)
    assert again.evidence_ == monitor.evidence_
    assert again.to_json() == text


@pytest.mark.filterwarnings("ignore:Batch")
@pytest.mark.parametrize("which", range(5))
def test_a_damaged_state_is_refused_or_goes_on(which):
    """Whoever signs a state anew cannot make it fail later, or lose its evidence."""
    whole = states()[which].to_json()
    n_accepted = 0
    for seed in range(60):
        rng, state = generator([which, seed]), json.loads(whole)["state"]
        damage(state, rng)
        monitor = read(signed(state))
        n_accepted += monitor is not None
        if monitor is not None and monitor.pos_label in (0, 1):  # those of the batches
            goes_on(monitor, rng)
    assert n_accepted > 0
    goes_on(DisparityMonitor.from_json(whole), generator(0))


@pytest.mark.parametrize("which", range(5))
def test_a_text_that_was_changed_is_refused(which):
    whole = states()[which].to_json()
    rng = generator(which)
    for _ in range(40):
        at, digit = int(rng.integers(len(whole))), str(rng.integers(10))
        start, end = whole[:at], whole[at + 1 :]
        for text in (start, start + digit + end, start + end):
            again = read(text)  # not refused: a digit that was there, or a space
            assert again is None or again.to_json() == whole


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "3", "[]", "{}", '"a"', "[" * 100_000, '{"a":' * 100_000, None, 3, b"\xff"),
        '{"version": 2, "check_sum": "", "state": NaN}',
        signed(None),
        signed([]),
        signed({"settings": []}),
        signed({"settings": {}}),
    ],
)
def test_what_is_no_state_is_refused(text):
    with pytest.raises(ValueError, match=REFUSED):
        DisparityMonitor.from_json(text)


def test_a_state_says_its_version():
    found = json.loads(states()[0].to_json())
    assert found["version"] == VERSION
    found["version"] = 1
    with pytest.raises(ValueError, match="stored in version 1, but this release reads version 2"):
        DisparityMonitor.from_json(json.dumps(found))
    del found["version"]
    with pytest.raises(ValueError, match="text of a monitor"):
        DisparityMonitor.from_json(json.dumps(found))


def test_a_store_may_order_keys_and_write_integers_as_it_likes():
    for monitor in states():
        text = json.dumps(json.loads(monitor.to_json()), sort_keys=True, indent=1)
        assert json.loads(DisparityMonitor.from_json(text).to_json()) == json.loads(text)


def test_no_nan_is_written():
    """Before there are blocks the disparity is not known."""
    monitor = DisparityMonitor(max_disparity={"sex": 0.1, "age": 0.1})
    monitor.update(
        None, [0, 1, 0], sensitive_features={"sex": ["f", "f", "m"], "age": ["o", "y", "y"]}
    )
    assert np.isnan(monitor.history_[0][1])
    text = monitor.to_json()
    json.loads(text, parse_constant=pytest.fail)
    again = DisparityMonitor.from_json(text)
    assert np.isnan(again.history_[0][1])
    assert np.isfinite(again.evidence_)


@pytest.mark.parametrize("label", [np.True_, np.int64(1), np.str_("a")])
def test_a_positive_class_is_stored(label):
    DisparityMonitor.from_json(DisparityMonitor(pos_label=label).to_json())


def test_a_day_with_one_group_does_not_end_the_job():
    rng, late, now = generator(0), DisparityMonitor(), DisparityMonitor()
    with pytest.warns(UserWarning, match="rows of 'f' only. Nothing is compared"):
        late.update(None, [0, 1], sensitive_features=["f", "f"])
    assert (late.evidence_, late.alarm_, late.n_rows_) == (0.0, None, 2)
    late = DisparityMonitor.from_json(late.to_json())
    for k in range(20):
        sex = rng.choice(["f", "m"], 500)
        now.update(None, (sex == "m").astype(int), sensitive_features=sex)
        with pytest.warns(UserWarning, match="of 'm', which") if k == 0 else nullcontext():
            late.update(None, (sex == "m").astype(int), sensitive_features=sex)
    assert late.alarm_[2:5] == now.alarm_[2:5]
    assert late.n_rows_ == now.n_rows_ + 2


@pytest.mark.filterwarnings("ignore:Batch")
def test_monitors_of_one_group_each_have_no_evidence_together():
    one, other = DisparityMonitor(), DisparityMonitor()
    one.update(None, [0, 1], sensitive_features=["f", "f"])
    other.update(None, [0, 1], sensitive_features=["m", "m"])
    merged = one.merge(other)
    assert (merged.evidence_, merged.alarm_, merged.n_rows_) == (0.0, None, 4)
    DisparityMonitor.from_json(merged.to_json()).update(None, [0, 1], sensitive_features=["f", "m"])


@pytest.mark.filterwarnings("error")
def test_a_refused_batch_leaves_no_groups_behind():
    monitor = DisparityMonitor()
    before = monitor.to_json()
    with pytest.raises(UserWarning, match="rows of 'f' only"):
        monitor.update(None, [0, 1], sensitive_features=["f", "f"])
    assert monitor.to_json() == before


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_compared_as_one_by_one(seed):
    """The numbers of all pairs at once are those of loops over rates and groups."""
    rng = generator(seed)
    names = np.array([f"g{k}" for k in rng.permutation(6)])
    monitor = DisparityMonitor("equalized_odds", 0.1, min_group_size=2)
    y, y_pred = rng.integers(0, 2, (2, 300))
    groups = names[rng.permutation(np.arange(300) % 6)]
    monitor.update(y, y_pred, sensitive_features=groups)
    seen = {}
    for rate, label in (("true_positive_rate", 1), ("false_positive_rate", 0)):
        for name in names:
            seen[rate, name] = y_pred[(y == label) & (groups == name)].mean()
            assert monitor.rates_[rate][name] == pytest.approx(seen[rate, name])
    gaps = [
        abs(seen[rate, one] - seen[rate, other])
        for rate in monitor.rates_
        for one in names
        for other in names
    ]
    assert monitor.history_[-1][1] == pytest.approx(max(gaps))
    rate, i, j = monitor._seen.pairs.T
    rates = list(monitor.rates_)
    found = monitor._seen.windows.sums[0, 0] / monitor._seen.windows.sums[0, 1]
    for pair, difference in enumerate(found):
        one, other = monitor._seen.names[i[pair]], monitor._seen.names[j[pair]]
        own = rates[rate[pair]]
        assert difference == pytest.approx(seen[own, one] - seen[own, other])
    assert len(found) == 2 * 15


@pytest.mark.parametrize(
    "make",
    [
        lambda odd: DisparityMonitor(levels=[odd, "b"]),
        lambda odd: DisparityMonitor(max_disparity={odd: 0.1}),
        lambda odd: DisparityMonitor().update(None, [0, 1], sensitive_features=[odd, "b"]),
        lambda odd: DisparityMonitor().update(
            None, [0, 1], sensitive_features=["a", "b"], batch=odd
        ),
        lambda odd: DisparityMonitor().update(None, [0, 1], sensitive_features={odd: ["a", "b"]}),
        lambda odd: DisparityMonitor().add_predictions(
            [1, 2], [0, 1], sensitive_features=[odd, "b"]
        ),
        lambda odd: DisparityMonitor().add_predictions(
            [odd, "b"], [0, 1], sensitive_features=["f", "m"]
        ),
    ],
)
def test_half_a_character_is_one_clear_error(make):
    with pytest.raises(ValueError, match=r"'a\\ud800'.* is no valid text.*half of a character"):
        make("a\ud800")


def test_odd_names_are_escaped():
    odd = 'a"}\n\\ 1 \x1b é'
    monitor = DisparityMonitor(max_disparity={odd: 0.1})
    monitor.update(None, [0, 1], sensitive_features={odd: [odd, "b"]})
    lines = monitor.to_prometheus().strip("\n").split("\n")
    for line in lines:
        assert re.fullmatch(r'\w+\{(\w+="([^"\\\n]|\\["\\n])*",?)+\} \S+', line)
    assert sum('attribute="a\\"}\\n\\\\ 1 \x1b é"' in line for line in lines) == 2
    again = DisparityMonitor.from_json(monitor.to_json())
    assert again.rates_ == monitor.rates_
