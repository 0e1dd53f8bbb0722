"""The commands ``monitor``, ``year`` and ``sample-size``: the answers of Python, from files."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.metrics import disparity_test, sample_size
from skfair.records.decision_memo import checksum
from tests.seeds import generator

MonitorKind = pytest.importorskip("skfair.monitoring").DisparityMonitor
USUAL = ["--prediction", "approved", "--pos-label", "yes"]
MONTHS = range(4)


@pytest.fixture(scope="module")
def months():
    """The decisions of four months, in the last two of which men are ahead by 40 points."""
    rng, frames = generator(5), []
    for month in MONTHS:
        n = 800
        sex, age = rng.choice(["f", "m"], n), rng.choice(["old", "young"], n)
        is_ahead = (sex == "m") & (month >= 2)
        approved = rng.random(n) < 0.3 + 0.4 * is_ahead
        paid = rng.random(n) < 0.5
        columns = {"number": [f"{month}{k:04}" for k in range(n)], "sex": sex, "age": age}
        columns |= {"person": rng.integers(300, size=n) + 1000 * month}
        columns |= {"approved": np.where(approved, "yes", "no")}
        frames.append(pd.DataFrame(columns | {"paid": np.where(paid, "yes", "no")}))
    return frames


@pytest.fixture
def files(months, tmp_path):
    places = [tmp_path / f"month{k}.csv" for k in MONTHS]
    for frame, place in zip(months, places, strict=True):
        frame.to_csv(place, index=False)
    return places


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state.json"


def monitored(file, state, *options, sensitive="sex", usual=USUAL):
    groups = [] if sensitive is None else ["--sensitive", sensitive]
    given = ["monitor", str(file), "--state", str(state), *usual, *groups]
    return main([*given, *map(str, options)])


def looked(file, state, batch, *options, sensitive="sex"):
    given = ["year", str(file), "--state", str(state), *USUAL, "--sensitive", sensitive]
    return main([*given, "--batch", batch, *map(str, options)])


def refused(capsys, code, words):
    told = capsys.readouterr().err
    assert code == 2
    assert re.search(words, told), told
    assert told.count("\n") == 1


CALLS = {
    "one limit": (["--max-disparity", "20%"], {"max_disparity": 0.2}, ["sex"]),
    "the usual limit": ([], {"max_disparity": {"sex": 0.05, "age": 0.05}}, ["sex", "age"]),
    "a limit for each": (
        ["--max-disparity", "sex=20%,age=0.3"],
        {"max_disparity": {"sex": 0.2, "age": 0.3}},
        ["sex", "age"],
    ),
    "a ratio, with a reference": (
        ["--min-ratio", "0,8", "--reference", "sex=m,age=old", "--confidence", "0.9"],
        {"min_ratio": {"sex": 0.8, "age": 0.8}, "reference": {"sex": "m", "age": "old"}}
        | {"confidence": 0.9},
        ["sex", "age"],
    ),
    "people, with expected groups": (
        ["--max-disparity", "0.2", "--units", "person", "--levels", "f,m", "--reference", "m"],
        {"max_disparity": 0.2, "reference": "m", "levels": ["f", "m"]},
        ["sex"],
    ),
    "errors": (
        ["--constraint", "equal_opportunity", "--target", "paid", "--min-group-size", "20"],
        {"constraint": "equal_opportunity", "min_group_size": 20},
        ["sex"],
    ),
    "a change": (
        ["--max-disparity", "0.1", "--reference-batches", "2", "--horizon", "50"],
        {"max_disparity": 0.1, "reference_batches": 2, "horizon": 50},
        ["sex"],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_monitor_in_a_shell_is_the_monitor_in_python(files, months, state, name):
    options, settings, sensitive = CALLS[name]
    monitor = MonitorKind(**settings, pos_label="yes")
    codes = {"pass": 0, "fail": 1, "inconclusive": 3}
    for k, (file, frame) in enumerate(zip(files, months, strict=True)):
        rows = {"sensitive_features": frame[sensitive], "batch": f"2026-{k + 1:02}-28"}
        rows |= {"units": frame["person"]} if "--units" in options else {}
        monitor.update(frame["paid"] if "--target" in options else None, frame["approved"], **rows)
        given = [*options, "--batch", rows["batch"]]
        assert (
            monitored(file, state, *given, sensitive=",".join(sensitive))
            == (codes[monitor.status_])
        )
        assert MonitorKind.load(state).to_json() == monitor.to_json()
    if name == "one limit":
        assert monitor.status_ == "fail"


def test_labels_that_come_later(files, months, state, capsys):
    monitor = MonitorKind("equal_opportunity", 0.05, pos_label="yes")
    for file, frame in zip(files[:2], months, strict=False):
        monitor.add_predictions(
            frame["number"], frame["approved"], sensitive_features=frame[["sex"]]
        )
        monitor = MonitorKind.from_json(monitor.to_json())  # this sorts the rows that wait
        noted = ["--constraint", "equal_opportunity", "--ids", "number"]
        assert monitored(file, state, *noted) == 3
    for k in (1, 0):  # in another order, and not of all
        frame = months[k][:600]
        frame.to_csv(files[k], index=False)
        monitor.add_labels(frame["number"], frame["paid"])
        monitor = MonitorKind.from_json(monitor.to_json())
        late = ["--target", "paid", "--ids", "number"]
        monitored(files[k], state, *late, sensitive=None, usual=[])
    assert MonitorKind.load(state).to_json() == monitor.to_json()
    before = state.read_bytes()
    code = monitored(files[0], state, *late, sensitive=None, usual=[])
    refused(capsys, code, "No predictions of ids .* wait for labels")
    assert state.read_bytes() == before


@pytest.mark.filterwarnings("default:Batch 0 has rows of 'f' only")
def test_a_gate_passes_nothing_that_was_not_compared(files, months, state, tmp_path):
    alone = tmp_path / "alone.csv"
    months[0].query("sex == 'f'").to_csv(alone, index=False)
    assert monitored(alone, state, "--inconclusive", "pass") == 3
    assert monitored(alone, tmp_path / "other.json", "--inconclusive", "fail") == 1
    assert monitored(files[0], tmp_path / "third.json", "--inconclusive", "pass") == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-disparity", "0.3"], "was made with --max-disparity 0.2, and now it is 0.3"),
        (
            ["--min-ratio", "0.8"],
            "was made with --min-ratio None|was made with --max-disparity 0.2",
        ),
        (["--pos-label", "no"], "was made with --pos-label 'yes'"),
        (["--confidence", "0.9"], "was made with --confidence 0.95, and now it is 0.9"),
        (["--max-disparity", "0.2", "--batch", "0"], "batch=0 has been read already"),
        (["--record", "there.json", "--after", "nowhere.json"], "nowhere.json"),
        (["--prediction", "absent"], "has no column 'absent'"),
        (["--constraint", "equal_opportunity"], "was made with --constraint 'demo"),
        (["--ids", "number"], "uses no labels, so none come later"),
        (["--max-disparity", "sex=0.2,age=0.3"], "limits are of sex, age, and --sensitive names"),
        (["--max-disparity", "0.2", "--min-ratio", "0.8"], "Pass one of them"),
        (["--sensitive", "number"], "so it is no group"),
    ],
)
def test_a_failed_update_leaves_the_state(files, state, options, words, capsys, monkeypatch):
    monkeypatch.chdir(state.parent)
    assert monitored(files[0], state, "--max-disparity", "0.2") in (0, 3)
    before, names = state.read_bytes(), sorted(state.parent.iterdir())
    capsys.readouterr()
    given = ["monitor", str(files[1]), "--state", str(state), *USUAL]
    given += [] if "--sensitive" in options else ["--sensitive", "sex"]
    refused(capsys, main([*given, *options]), words)
    assert state.read_bytes() == before
    assert sorted(state.parent.iterdir()) == names  # no file beside it, and no record


def test_a_damaged_state_is_refused(files, state, capsys):
    monitored(files[0], state)
    text = state.read_text().replace('"stride": 1', '"stride": 2')
    state.write_text(text)
    refused(capsys, monitored(files[1], state), "state.json' was not read: .*check sum")
    assert state.read_text() == text


def test_records_of_months_are_a_chain(files, state, tmp_path, capsys):
    records = [tmp_path / f"record{k}.json" for k in MONTHS]
    later = state
    for k, (file, record) in enumerate(zip(files[:2], records, strict=False)):
        out = tmp_path / f"state{k}.json"
        after = ["--after", records[k - 1]] if k else []
        monitored(file, later, "--out", out, "--record", record, *after)
        later = out
    assert not state.exists()  # only the named files were written
    for k in (0, 1):
        given = ["verify", records[k], "--data", tmp_path / f"state{k}.json"]
        assert main([*map(str, given)]) == 0
    assert "record1.json comes after record0.json, which is unchanged" in capsys.readouterr().out
    swapped = ["verify", records[0], "--data", tmp_path / "state1.json"]
    assert main([*map(str, swapped)]) == 1
    before = records[1].read_bytes()
    capsys.readouterr()
    refused(
        capsys,
        monitored(files[2], later, "--record", records[1]),
        "--record would replace the file",
    )
    other = tmp_path / "state0.json"
    refused(capsys, monitored(files[2], later, "--out", other), "--out would replace the file")
    refused(capsys, monitored(files[2], later, "--record", later), "is the state. Name another")
    refused(capsys, monitored(files[2], files[0]), "--state must end in .json")
    assert records[1].read_bytes() == before
    monitored(files[2], later, "--record", records[1], "--force")
    assert records[1].read_bytes() != before


def memo_of(folder, limits, metric="demographic_parity_difference"):
    memo = {"kind": "skfair decision", "version": 1, "metric": metric, "limits": limits}
    path = folder / "decision.json"
    path.write_text(json.dumps(memo | {"checksum": checksum(memo)}))
    return path


def test_the_limit_of_a_committee(files, months, state, tmp_path, capsys):
    memo, record = memo_of(tmp_path, {"sex": 0.2, "age": None}), tmp_path / "record.json"
    monitored(files[0], state, "--memo", memo, "--record", record, sensitive="sex,age")
    monitor = MonitorKind(max_disparity=str(memo), pos_label="yes")
    monitor.update(None, months[0]["approved"], sensitive_features=months[0][["sex", "age"]])
    assert MonitorKind.load(state).to_json() == monitor.to_json()
    assert [link["name"] for link in json.loads(record.read_text())["after"]] == ["decision.json"]
    monitored(files[1], state, "--memo", memo, sensitive="sex,age")  # it may be repeated
    year = tmp_path / "year.json"
    assert looked(files[0], year, "1", "--memo", memo, sensitive="sex,age") == 0
    (test,) = json.loads(year.read_text())["looks"][0]["tests"]
    assert (test["attribute"], test["limit"]) == ("sex", 0.2)
    memo_of(tmp_path, {"sex": 0.3, "age": None})
    capsys.readouterr()
    code = looked(files[1], year, "2", "--memo", memo, sensitive="sex,age")
    refused(capsys, code, "The year in .* was begun with")


@pytest.mark.parametrize(
    ("options", "asked", "sensitive"),
    [
        (["--max-disparity", "15%"], {"max_disparity": 0.15}, ["sex", "age"]),
        (["--min-ratio", "0.5", "--units", "person"], {"min_ratio": 0.5}, ["sex"]),
        (["--max-disparity", "0.2", "--reference", "m"], {"max_disparity": 0.2}, ["sex"]),
        (
            ["--constraint", "equal_opportunity", "--target", "paid", "--max-disparity", "0.2"],
            {"max_disparity": 0.2},
            ["sex"],
        ),
    ],
)
def test_a_year_is_the_procedure_in_python(files, months, state, options, asked, sensitive, capsys):
    """As in ``doc/how_to/a_year.rst``: the error is divided among the fits, not the looks."""
    refits, n_alarms = 1, 0
    metric = "equal_opportunity" if "--target" in options else "demographic_parity"
    for k, (file, frame) in enumerate(zip(files, months, strict=True)):
        given = [*options, "--refits", refits, "--confidence", "0.9"]
        code = looked(file, state, f"month {k}", *given, sensitive=",".join(sensitive))
        tests = [
            disparity_test(
                metric,
                frame["paid"],
                frame["approved"],
                sensitive_features=frame[name],
                units=frame["person"] if "--units" in options else None,
                reference="m" if "--reference" in options else "pairwise",
                pos_label="yes",
                confidence=1 - 0.1 / (1 + refits),
                **asked,
            )
            for name in sensitive
        ]
        look = json.loads(state.read_text())["looks"][-1]
        assert code == (0 if all(tests) else 1)
        assert [own["p_value"] for own in look["tests"]] == [own.p_value for own in tests]
        assert [own["disparity"] for own in look["tests"]] == [own.statistic for own in tests]
        assert [own["attribute"] for own in look["tests"]] == sensitive
        n_alarms += not all(tests)
        told = capsys.readouterr().out
        assert ("no alarm" if all(tests) else f"alarm {n_alarms}") in told
        assert "is at most 0.1" in told
        if n_alarms > refits:
            before = state.read_bytes()
            refused(capsys, looked(file, state, "more", sensitive=",".join(sensitive)), "ended")
            assert state.read_bytes() == before
            break


def test_the_looks_of_a_year_are_sealed(files, state, capsys, tmp_path):
    assert looked(files[0], state, "2026-01", "--max-disparity", "0.2") == 0
    whole = state.read_text()
    for options, words in (
        (["2026-01"], "There was a look '2026-01' already"),
        (["2026-02", "--max-disparity", "0.3"], "The statement is about one setting"),
        (["2026-02", "--refits", "5"], "was begun with --refits 3, and now it is 5"),
        (["2026-02", "--constraint", "accuracy_parity"], "was begun with --constraint"),
    ):
        refused(capsys, looked(files[1], state, *options), words)
    refused(capsys, looked(files[0], state, "2026-02"), "was at the same file")
    refused(capsys, looked(tmp_path / "no.csv", state, "2026-02"), "There is no file")
    refused(capsys, looked(files[1], state, "2", sensitive="sex,age"), "was begun with")
    assert state.read_text() == whole
    for edited in (whole.replace('"refits": 3', '"refits": 9'), whole + " ", "[]", "{}", "x"):
        state.write_text(edited)
        refused(capsys, looked(files[1], state, "2026-02"), "--state")
        assert state.read_text() == edited


def test_a_look_without_two_groups_is_no_look(months, state, tmp_path, capsys):
    alone = tmp_path / "alone.csv"
    months[0].query("sex == 'f'").to_csv(alone, index=False)
    refused(capsys, looked(alone, state, "1"), "nothing to compare")
    months[0][:0].to_csv(alone, index=False)
    refused(capsys, looked(alone, state, "1"), "has no rows")
    assert not state.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-disparity", "0"], "--max-disparity must be"),
        (["--refits", "-1"], "refits must be"),
        (["--confidence", "1.5"], "confidence must be"),
        (["--max-disparity", "0.1", "--memo", "decision.json"], "Pass one of them"),
        (["--constraint", "nonsense"], "There is no test"),
    ],
)
def test_settings_that_make_no_year(files, state, options, words, capsys):
    refused(capsys, looked(files[0], state, "1", *options), words)
    assert not state.exists()


def test_a_database_is_refused(state, tmp_path, capsys):
    place = tmp_path / "rows.sqlite"
    place.write_bytes(b"SQLite format 3\0" + bytes(100))
    for code in (monitored(place, state), looked(place, state, "1")):
        assert code == 2
    told = capsys.readouterr().err
    assert told.count("is a database or several files") == 2
    assert not state.exists()


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("--max-disparity 5%", {"max_disparity": 0.05}),
        (
            "--max-disparity 0.1 --rates 0.3,35% --power 0.9 --looks 12 --refits 3",
            {"max_disparity": 0.1, "rates": [0.3, 0.35], "power": 0.9 ** (1 / 12)}
            | {"confidence": 1 - 0.05 / 4},
        ),
        (
            "--min-ratio 0.8 --rates m=0.5,f=0.45 --shares f=30%,m=70%",
            {"min_ratio": 0.8, "rates": {"m": 0.5, "f": 0.45}, "shares": {"f": 0.3, "m": 0.7}},
        ),
        (
            "--max-disparity 0.05 --rows-per-unit 3 --correlation 0.2 --pair-correlation 0.1 "
            "--confidence 0.9",
            {"max_disparity": 0.05, "rows_per_unit": 3, "correlation": 0.2}
            | {"pair_correlation": 0.1, "confidence": 0.9},
        ),
    ],
)
def test_sizes_are_those_of_python(options, asked, capsys):
    assert main(["sample-size", *options.split()]) == 0
    *lines, whole = capsys.readouterr().out.splitlines()
    sizes = [int(line.rpartition(": ")[2].replace(",", "")) for line in lines]
    assert sizes == sample_size(**asked).tolist()
    assert f"{sum(sizes):,} people" in whole
    if "shares" in asked:
        assert [line.partition(":")[0] for line in lines] == list(asked["shares"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "There is no limit: pass --max-disparity or --min-ratio"),
        (["--max-disparity", "5"], "Did you mean 0.05"),
        (["--max-disparity", "0.1", "--looks", "0"], "looks must be"),
        (["--max-disparity", "0.1", "--rates", "0.1,0.2,0.3"], "one of each of 2 groups"),
    ],
)
def test_sizes_that_cannot_be_computed(options, words, capsys):
    refused(capsys, main(["sample-size", *options]), words)
