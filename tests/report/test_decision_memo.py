"""Decision memos: audits, gates and monitors take the limit that a committee chose."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.records.decision_memo import checksum
from skfair.report import audit
from tests.seeds import generator

DisparityMonitor = pytest.importorskip("skfair.monitoring").DisparityMonitor

METRIC = "demographic_parity_difference"


def memo_of(limits, **changes):
    """Return the memo of a committee that chose limits."""
    memo = {
        "kind": "skfair decision",
        "version": 1,
        "skfair": "0.1.0",
        "date": "2026-11-28",
        "constraint": "demographic_parity",
        "metric": METRIC,
        "limits": limits,
        "holds_overall_rate": False,
        "group_aware": False,
        "status": "converged",
        "confidence": None,
        "reasons": "The lowest limit at which nobody is refused who is approved today.",
        "names": "A. Chair, B. Member",
        "numbers": {},
        "fingerprint": "0" * 64,
    } | changes
    return memo | {"checksum": checksum(memo)}


def in_file(tmp_path, memo):
    path = tmp_path / "decision.json"
    path.write_text(json.dumps(memo), encoding="utf-8")
    return path


def monitor_of(memo):
    return DisparityMonitor(max_disparity=memo)


def people(gap, n=24_000):
    """Decisions on two attributes: sexes differ by the gap exactly, ages do not differ."""
    sex, age = np.repeat(["f", "m"], n), np.tile(["old", "young"], n)
    place = np.tile(np.arange(n) // 2, 2)  # within sex and age
    rate = np.where(sex == "m", 0.3 + gap, 0.3)
    return (place < (rate * n / 2).round()).astype(int), {"sex": sex, "age": age}


@pytest.fixture(scope="module")
def found():
    decisions, groups = people(0.08)
    return audit(None, decisions, sensitive_features=groups, depth=1, n_simulations=100)


@pytest.mark.parametrize("kind", ["dict", "path", "text"])
def test_a_memo_passes_and_fails_as_the_condition_of_its_limit(found, tmp_path, kind):
    outcomes = {}
    for limit in (0.05, 0.08, 0.1):
        memo = memo_of({"": limit})
        path = in_file(tmp_path, memo)
        check = found.check({"dict": memo, "path": path, "text": str(path)}[kind])
        assert check == found.check(f"{METRIC} > {limit}")
        outcomes[limit] = check.outcome
    assert outcomes == {0.05: "fail", 0.08: "inconclusive", 0.1: "pass"}


def test_each_attribute_is_held_to_the_limit_of_its_own(found):
    """The sexes differ by .08, the ages do not; the check is about the one that decides."""
    strict, loose = 0.05, 0.2
    check = found.check(memo_of({"age": strict, "sex": loose}))
    assert (check.outcome, check.view, check.limit) == ("pass", "age", strict)
    check = found.check(memo_of({"age": loose, "sex": strict}))
    assert (check.outcome, check.condition) == ("fail", f"sex: {METRIC} > {strict}")
    assert found.check(memo_of({"age": strict, "sex": None})).outcome == "pass"
    assert found.check(memo_of({"age": None, "sex": strict})).outcome == "fail"


def test_a_limit_on_a_ratio_is_its_distance_from_one(found):
    """The rates are .3 and .38, so their ratio is .79."""
    ratio = {"metric": "demographic_parity_ratio"}
    for limit, outcome in ((0.1, "fail"), (0.4, "pass")):
        check = found.check(memo_of({"sex": limit}, **ratio))
        assert check.outcome == outcome
        assert check == found.check(f"sex: demographic_parity_ratio < {1 - limit}")
    with pytest.raises(ValueError, match="limits demographic_parity_ratio.*min_ratio="):
        DisparityMonitor(max_disparity=memo_of({"sex": 0.1}, **ratio))


def test_every_one_of_several_constraints_must_be_within_the_limit():
    decisions, groups = people(0.08)
    y = np.ones_like(decisions)
    y[::2] = decisions[::2]  # of every second person the decision is right
    options = {"sensitive_features": {"sex": groups["sex"]}, "depth": 1, "n_simulations": 100}
    found = audit(y, decisions, **options, metrics=[METRIC, "accuracy_parity_difference"])
    gaps = {name: found.value(name) for name in (METRIC, "accuracy_parity_difference")}
    larger = max(gaps, key=gaps.get)
    middle = sum(gaps.values()) / 2
    check = found.check(memo_of({"sex": middle}, metric=", ".join(gaps)))
    assert (check.outcome, check.condition) == ("fail", f"sex: {larger} > {middle}")
    memo = memo_of({"sex": 0.05}, metric=f"equal_opportunity_difference, {METRIC}")
    assert DisparityMonitor(max_disparity=memo).max_disparity == {"sex": 0.05}


def test_of_several_limits_a_fail_accounts_for_their_number(found):
    """A limit just below one interval is below the widened one only if it is watched alone."""
    low = found.check(memo_of({"sex": 0.01})).low
    alone, with_age = {"sex": low - 0.001}, {"sex": low - 0.001, "age": 0.5}
    assert found.check(memo_of(alone)).outcome == "fail"
    assert found.check(memo_of(with_age)).outcome == "inconclusive"


@pytest.mark.parametrize("attributes", [[""], ["sex", "age"]])
def test_a_monitor_with_a_memo_is_that_with_its_limit(tmp_path, attributes):
    path = in_file(tmp_path, memo_of(dict.fromkeys(attributes, 0.05)))
    limit = 0.05 if attributes == [""] else dict.fromkeys(attributes, 0.05)
    watching = [DisparityMonitor(max_disparity=given) for given in (limit, path, str(path))]
    strict, loose = (DisparityMonitor(max_disparity=memo_of({"": x})) for x in (0.05, 0.3))
    rng = generator(0)
    for _ in range(30):
        decisions, groups = people(0.12, 200)
        drawn = rng.integers(0, decisions.size, decisions.size)
        rows = decisions[drawn], {name: own[drawn] for name, own in groups.items()}
        for monitor in watching:
            monitor.update(
                None, rows[0], sensitive_features=rows[1] if limit != 0.05 else rows[1]["sex"]
            )
        for monitor in (strict, loose):
            monitor.update(None, rows[0], sensitive_features=rows[1]["sex"])
    states = {monitor.to_json() for monitor in watching}
    assert len(states) == 1
    assert watching[1].alarm_ is not None
    assert DisparityMonitor.from_json(states.pop()).max_disparity == limit
    assert (strict.status_, loose.status_) == ("fail", "pass")


def test_the_gate_of_the_command_line_takes_a_memo(tmp_path, capsys):
    decisions, groups = people(0.08)
    file = tmp_path / "decisions.csv"
    rows = zip(groups["sex"], groups["age"], decisions, strict=True)
    file.write_text("sex,age,hired\n" + "".join(f"{s},{a},{d}\n" for s, a, d in rows))
    given = ["audit", str(file), "--prediction", "hired", "--sensitive", "sex,age", "--fail-if"]
    for limits, code in (({"": 0.05}, 1), ({"": 0.1}, 0), ({"sex": 0.08, "age": 0.05}, 3)):
        assert main([*given, str(in_file(tmp_path, memo_of(limits)))]) == code
        assert f"{METRIC} > " in capsys.readouterr().err
    in_file(tmp_path, memo_of({"": 0.05}) | {"limits": {"": 0.5}})
    edited = (tmp_path / "decision.json").rename(tmp_path / "edited.json")
    of_race = in_file(tmp_path, memo_of({"race": 0.05}))
    for path, said in (
        (of_race, "--sensitive"),
        (tmp_path / "none.json", "was not read as a decision memo"),
        (edited, "changed after the page wrote it"),
    ):
        assert main([*given, str(path)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("by_attribute", [False, True])
def test_groups_of_the_memo_that_are_gone_are_named(tmp_path, capsys, by_attribute):
    """A month without a group that the committee compared does not pass, and its record agrees."""
    decisions, groups = people(0.02, 600)
    rows = pd.DataFrame({"hired": decisions, **groups})
    compared = {"n": 600, "apart": ""}
    groups_of = {"sex": ["f", "m", "x"], "age": ["old", "young"], "county": ["north"]}
    attributes = {
        name: {"groups": dict.fromkeys(own, compared), "disparities": {}}
        for name, own in groups_of.items()
    }
    attributes["sex"]["groups"]["nobody knows"] = compared | {"apart": "unknown"}
    limits = {"sex": 0.3, "age": 0.3} if by_attribute else {"": 0.3}
    memo = in_file(tmp_path, memo_of(limits, numbers={"attributes": attributes}))
    found = audit(None, rows["hired"], sensitive_features=rows[[*groups]], n_simulations=20)
    check = found.check(memo)
    assert check.outcome == "inconclusive"
    assert check.undefined == "x (sex: in the memo, but without rows now)"
    assert found.check(memo, allow_undefined=True).outcome == "pass"
    file, record = tmp_path / "rows.csv", tmp_path / "record.json"
    rows.to_csv(file, index=False)
    command = ["audit", str(file), "--prediction", "hired", "--sensitive", "sex,age"]
    command += ["--fail-if", str(memo), "--inconclusive", "pass"]
    assert main([*command, "--record", str(record)]) == 3
    assert "x (sex: in the memo, but without rows now)" in capsys.readouterr().err
    assert main(["verify", str(record), "--data", str(file)]) == 0
    rows.assign(sex=np.where(np.arange(len(rows)) % 3 == 0, "x", rows["sex"])).to_csv(file)
    assert main(command) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {"sex": 0.5}},
        {"limits": {"sex": 0.05, "age": 0.05}},
        {"metric": "accuracy_parity_difference"},
        {"status": "certified"},
        {"fingerprint": "1" * 64},
        {"numbers": {"n": 1}},
        {"checksum": "0" * 64},
        {"version": True},
    ],
)
def test_an_edit_by_hand_is_refused(found, tmp_path, change):
    memo = memo_of({"sex": 0.05})
    said = {"date": "2027-01-01", "names": "C. Clerk", "reasons": "Agreed."}
    assert found.check(memo | said).outcome == "fail"  # what the committee writes is its own
    path = in_file(tmp_path, memo | change)
    for take in (found.check, monitor_of):
        with pytest.raises(ValueError, match=r"changed after the page wrote it.*page again"):
            take(path)


def test_numbers_may_be_written_as_javascript_writes_them(found):
    numbers = {"n": 900, "share": 1.0, "less": -0.0, "value": 0.1, "small": 1e-7, "none": None}
    memo = memo_of({"sex": 1.0}, numbers=numbers, skfair="9")
    text = json.dumps(memo).replace("1.0", "1").replace("-0.0", "0").replace("1e-07", "1e-7")
    assert '"sex": 1}' in text
    assert found.check(json.loads(text)).limit == 1


WRONG = [
    (memo_of({"": 0.05}, kind="a letter"), "kind 'a letter'.*page of FairnessPath.to_html"),
    (memo_of({"": 0.05}, version=2), "it has .*version 2,.*page of FairnessPath.to_html"),
    (memo_of(None), "no limit.*Choose a limit on the page"),
    (memo_of({"sex": None}), "no limit.*Choose a limit on the page"),
    (memo_of({"": "strict"}), "must be a number from 0.*'strict'"),
    (memo_of({"": -0.1}), "must be a number from 0.*-0.1"),
    (memo_of([0.05]), r"limits \[0.05\].*page of FairnessPath.to_html"),
    (memo_of({"": 0.05}, metric=None), "metric None.*page of FairnessPath.to_html"),
    ([0.05], "kind None.*page of FairnessPath.to_html"),
    (memo_of({"": 5}), "limits nothing.*Pass a share"),
    ({k: v for k, v in memo_of({"": 0.1}).items() if k != "checksum"}, "its checksum is missing"),
]
NO_MEMO = r"decision\.json.*FairnessPath.to_html"
TWICE = r"has the key '(limits|sex)' more than once"
TEXT = json.dumps(memo_of({"sex": 0.9}))
TEXTS = [
    *((json.dumps(memo), message) for memo, message in WRONG),
    *((text, NO_MEMO) for text in ("", "{", "[" * 100_000, "\ufeff{}")),
    # Python takes the last of two values, and people read the first.
    ('{"limits": {"sex": 0.1}, ' + TEXT[1:], TWICE),
    (TEXT.replace('{"sex":', '{"sex": 1, "sex":'), TWICE),
]


@pytest.mark.parametrize(("text", "message"), [(None, NO_MEMO), *TEXTS], ids=range(len(TEXTS) + 1))
def test_files_that_cannot_be_used_say_what_to_do(found, tmp_path, text, message):
    path = tmp_path / "decision.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    for take in (found.check, monitor_of):
        with pytest.raises(ValueError, match=message):
            take(path)


@pytest.mark.parametrize(("memo", "message"), WRONG[:6])
def test_memos_that_cannot_be_used_say_what_to_do(found, memo, message):
    for take in (found.check, monitor_of):
        with pytest.raises(ValueError, match=message):
            take(memo)


def test_a_mark_of_the_encoding_is_read(found, tmp_path):
    path, memo = tmp_path / "decision.json", memo_of({"sex": 0.05}, names="Änne, Øystein")
    path.write_text(json.dumps(memo, ensure_ascii=False), encoding="utf-8-sig")
    assert found.check(path) == found.check(memo)


@pytest.mark.parametrize("status", ["infeasible", "no_solution"])
def test_a_fit_that_did_not_reach_the_limit_is_said(found, tmp_path, capsys, status):
    memo, said = memo_of({"sex": 0.05}, status=status), f"model whose fit has the status '{status}'"
    for take in (found.check, monitor_of):
        with pytest.warns(UserWarning, match=rf"{said}\. .*larger limit"):
            take(memo)
    file = tmp_path / "decisions.csv"
    file.write_text("sex,hired\n" + "f,1\nm,0\n" * 50)
    given = ["audit", str(file), "--prediction", "hired", "--sensitive", "sex"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert main([*given, "--fail-if", str(in_file(tmp_path, memo))]) == 1
    assert said in capsys.readouterr().err


def test_a_memo_about_something_else_says_what_to_do(found):
    other = {"constraint": "equal_opportunity", "metric": "equal_opportunity_difference"}
    memo = memo_of({"": 0.05}, **other)
    with pytest.raises(ValueError, match="watches demographic_parity_diff.*Make it with"):
        DisparityMonitor(max_disparity=memo)
    assert DisparityMonitor("equal_opportunity", memo).max_disparity == 0.05
    with pytest.raises(ValueError, match=r"no metric 'equal_opp.*metrics="):
        found.check(memo)
    with pytest.raises(ValueError, match="no view 'race'.*a column of sensitive_features"):
        found.check(memo_of({"sex": 0.1, "race": 0.05}))
    monitor = DisparityMonitor(max_disparity=memo_of({"sex": 0.1, "race": 0.05}))
    decided, groups = people(0.1, 100)
    with pytest.raises(ValueError, match="limit for each of the attributes 'sex', 'age'"):
        monitor.update(None, decided, sensitive_features=groups)
