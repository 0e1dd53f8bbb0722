"""Records of audits: a forger is found, and harmless changes of the data are accepted."""

import copy
import csv
import datetime
import hashlib
import hmac
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from skfair.__main__ import main
from skfair.records.decision_memo import checksum as checksum_of_memo
from skfair.records.record import TOLERANCE, canonical, differences
from skfair.report import Audit, audit
from tests.seeds import generator

SECRET = "person-0815"  # begins the names of units, which are personal data


@pytest.fixture(scope="module")
def frame():
    rng, n = generator(), 600
    frame = pd.DataFrame({"sex": rng.choice(["féminin", "masculin"], n)})
    frame["age"] = rng.integers(18, 80, n)
    frame.loc[:4, "sex"] = "x"  # a group that is not shown
    score = 1 / (1 + np.exp(-rng.normal(size=n) - (frame["sex"] == "masculin")))
    frame["score"] = score
    frame["paid"] = np.where(rng.random(n) < score, "oui", "non")
    frame["approved"] = np.where(score > 0.5, "oui", "non")
    frame["visit"] = [f"{SECRET}-{i}" for i in rng.integers(450, size=n)]
    frame["note"] = rng.integers(5, size=n)  # not read by the audit
    return frame


def memo_in(folder):
    """Write a decision memo as the page of a committee does, and return its file."""
    memo = {"kind": "skfair decision", "version": 1, "metric": "demographic_parity_difference"}
    memo |= {"limits": {"sex": 0.05}, "status": "satisfied", "names": "Anna Amsel"}
    file = folder / "memo.json"
    file.write_text(json.dumps(memo | {"checksum": checksum_of_memo(memo)}), encoding="utf-8")
    return file


def shell_record(frame, folder):
    """Record the audit of a file."""
    frame.to_csv(folder / "rows.csv", index=False)
    arguments = ["audit", folder / "rows.csv", "--target", "paid", "--prediction", "approved"]
    arguments += ["--score", "score", "--pos-label", "oui", "--sensitive", "sex,age"]
    arguments += ["--bins", "age=50", "--units", "visit", "--prepared-by", "Risk"]
    arguments += ["--fail-if", memo_in(folder), "--max-disparity", "0.5"]
    assert main([*map(str, arguments), "--record", str(folder / "record.json")]) in (0, 1, 3)


def python_record(frame, folder):
    """Record an audit that was made in Python, and write its rows to a file."""
    is_old = pd.Series(np.where(frame["age"] < 50, "young", "old"), dtype="category")
    is_approved = (frame["approved"] == "oui").to_numpy()
    found = audit(
        frame["paid"],
        is_approved,
        y_score=frame["score"],
        sensitive_features=pd.DataFrame({"sex": frame["sex"], "old": is_old}),
        units=frame["visit"],
        pos_label=True,
        pos_label_true="oui",
        n_simulations=100,
        about={"prepared by": "Risk", "file": str(memo_in(folder))},
    )
    conditions = [folder / "memo.json", "demographic_parity_difference > 0.5"]
    found.record(folder / "record.json", fail_if=conditions)
    frame = frame.assign(old=is_old, y_pred=is_approved)
    frame.to_csv(folder / "rows.csv", index=False)


RECORDERS = {"shell": shell_record, "python": python_record}


# In Python, the tests that name it run with make test, and all others with make test-all.
@pytest.fixture(scope="module", params=["shell", pytest.param("python", marks=pytest.mark.slow)])
def recorded(request, frame, tmp_path_factory):
    """A folder with rows.csv, memo.json, record.json and record.key."""
    folder = tmp_path_factory.mktemp(request.param)
    RECORDERS[request.param](frame, folder)
    return folder


of_shell = pytest.mark.parametrize("recorded", ["shell"], indirect=True)
of_python = pytest.mark.parametrize("recorded", ["python"], indirect=True)


@pytest.fixture
def place(recorded, tmp_path):
    """A copy of this folder, to be changed."""
    return shutil.copytree(recorded, tmp_path / "copy")


def verify(folder, data="rows.csv", *arguments, record="record.json"):
    return main(["verify", str(folder / record), "--data", str(folder / data), *arguments])


def read(folder, name="record.json"):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def seal(record, folder, name="record.json"):
    """Write a record with a checksum that agrees, as a forger who knows the code would."""
    record = {key: own for key, own in record.items() if key != "checksum"}
    check = hashlib.sha256(canonical(record)).hexdigest()
    (folder / name).write_bytes(canonical(record | {"checksum": check}))


def rows_of(record, table, **values):
    return [
        row
        for row in record["found"][table]
        if all(row[name] == own for name, own in values.items())
    ]


# Edits of a record by somebody who computes its checksum anew.


def _set(*path):
    *keys, value = path

    def edit(record):
        for key in keys[:-1]:
            record = record[key]
        assert record[keys[-1]] != value
        record[keys[-1]] = value

    return edit


def _of_option(name, value):
    def edit(record):
        assert record["asked"]["options"][name] != value
        record["asked"]["options"][name] = value

    return edit


def _fairer(record):
    (row,) = rows_of(record, "gaps", view="sex", metric="demographic_parity_difference")
    row["value"] /= 2


def _slightly_fairer(record):
    (row,) = rows_of(record, "gaps", view="sex", metric="demographic_parity_difference")
    row["value"] *= 1 - 3 * TOLERANCE


def _by_chance(record):
    for row in record["found"]["gaps"]:
        row["p_value"], row["is_beyond_chance"] = 1.0, not row["is_beyond_chance"]


def _larger_group(record):
    rows_of(record, "rates", view="sex", group="féminin")[0]["n"] += 1


def _renamed_group(record):
    for row in rows_of(record, "rates", view="sex", group="féminin"):
        row["group"] = "femme"


def _swapped_groups(record):
    names = {"féminin": "masculin", "masculin": "féminin"}
    for row in record["found"]["rates"]:
        row["group"] = names.get(row["group"], row["group"])


def _softer(record):
    record["sentences"][0] = record["sentences"][0].replace("gap", "small gap")
    record["sentences"][0] += " This is fair."


def _other_digest(name):
    def edit(record):
        key = next(key for key in record["digests"] if key.endswith(name))
        record["digests"][key] = hashlib.sha256(b"").hexdigest()

    return edit


def _swapped_digests(record):
    (first, second), own = list(record["digests"])[:2], record["digests"]
    own[first], own[second] = own[second], own[first]


def _without_a_row(record):
    del record["found"]["gaps"][0]


def _without_an_attribute(record):
    record["found"]["rates"] = [row for row in record["found"]["rates"] if row["view"] != "sex"]


FORGED = {
    "a smaller difference": _fairer,
    "a difference that is smaller by 3e-9 of itself": _slightly_fairer,
    "no significance": _by_chance,
    "a larger group": _larger_group,
    "another name of a group": _renamed_group,
    "two groups swapped": _swapped_groups,
    "a softer sentence": _softer,
    "a sentence less": lambda record: record["sentences"].pop(),
    "a sentence more": lambda record: record["sentences"].append("No disparity was found."),
    "more rows": lambda record: record["found"].update(n_rows=record["found"]["n_rows"] + 1),
    "nobody left out": _set("found", "hidden", []),
    "a row of a table less": _without_a_row,
    "an attribute less": _without_an_attribute,
    "a table less": lambda record: record["found"].pop("subgroups"),
    "a claim more": lambda record: record["found"].update(certified=True),
    "a part more": lambda record: record.update(approved_by="the regulator"),
    "a check that passes": _set("checks", 0, "outcome", "passed"),
    "another limit": _set("checks", 0, "limit", 0.4),
    "another condition": _set("checks", 1, "conditions", ["demographic_parity_difference > 0.01"]),
    "a narrower interval": lambda record: record["checks"][0].update(high=0.06),
    "an undefined group": _set("checks", 0, "undefined", "nobody"),
    "another sentence of a check": _set("checks", 0, "sentence", "Passed."),
    "another law": lambda record: record["law"].update(state="Repealed."),
    "another day of the law": lambda record: record["law"].update(checked="2027-01-01"),
    "another seed": _of_option("random_state", 1),
    "another confidence": _of_option("confidence", 0.9),
    "small groups shown": _of_option("suppress_below", 1),
    "larger groups compared only": _of_option("min_group_size", 60),
    "another positive class": lambda record: record["asked"]["options"].update(
        {"pos_label": "non"} if record["asked"]["by"] == "command" else {"pos_label": False}
    ),
    "another title": lambda record: record["found"].update(title="Approved"),
    "another author": lambda record: record["found"]["about"].update({"prepared by": "Audit Ltd"}),
    "another digest of a column": _other_digest("paid"),
    "another digest of rows": _other_digest("rows"),
    "two digests swapped": _swapped_digests,
    "a digest less": lambda record: record["digests"].pop("rows"),
    "another file before": _set("after", 0, "sha256", hashlib.sha256(b"").hexdigest()),
    "another version of numbers": lambda record: record["found"].update(schema_version="3.0"),
}  # fmt: skip


@of_shell
@pytest.mark.parametrize("name", FORGED)
def test_a_forged_record_is_found(place, name, capsys):
    record = read(place)
    FORGED[name](record)
    assert record != read(place)
    seal(record, place)
    assert verify(place) == 1
    assert "record.json: differs" in capsys.readouterr().out


def test_thirty_records_are_forged():
    assert len(FORGED) >= 30


# Edits that cannot be computed again are found if the checksum is left as it was. A signature finds
# all of them.
UNSEALED = {
    "the day": _set("made_on", "2020-01-01"),
    "the version": _set("made_with", "numpy", "1.0"),
    "nothing before": _set("after", []),
    "no checks": _set("checks", []),
    "the file": lambda record: record["files"]["file"].update(sha256="0" * 64),
}


@of_shell
@pytest.mark.parametrize("name", UNSEALED)
def test_an_edit_without_the_checksum_is_found(place, name):
    record = read(place)
    UNSEALED[name](record)
    (place / "record.json").write_bytes(canonical(record))
    assert verify(place) == 1


def _at(old, new):
    return lambda text: text.replace(old, new, 1)


@of_shell
@pytest.mark.parametrize(
    "edit",
    [
        _at('"kind"', ' "kind"'),
        _at("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\n",
        _at('"version": 1', '"version": 1.0'),
        _at('{\n "after"', '{\n "n_rows": 1,\n "n_rows": 2,\n "after"'),
        _at('{\n "after"', '{\n "checks": [],\n "after"'),  # the second one counts for Python
        lambda text: json.dumps(json.loads(text)),
    ],
)
def test_a_changed_form_is_found(place, edit):
    file = place / "record.json"
    text = file.read_bytes().decode()
    assert edit(text) != text
    file.write_bytes(edit(text).encode())
    assert verify(place) in (1, 2)


# Edits of the rows.


def _swapped(first, second):
    return lambda frame: frame.rename(columns={first: second, second: first})


def _one_value(name, value):
    def edit(frame):
        place = frame.index[frame[name].ne(value)][-1]
        frame.loc[place, name] = value
        return frame

    return edit


def _exchanged(name):
    """Exchange two values of a column, so that the column has the same values."""

    def edit(frame):
        first = frame.index[-1]
        second = frame.index[frame[name].ne(frame[name].iloc[-1])][-1]
        frame.loc[[first, second], name] = frame.loc[[second, first], name].to_numpy()
        return frame

    return edit


OTHER_ROWS = {
    "a column renamed": lambda frame: frame.rename(columns={"paid": "repaid"}),
    "a label": _one_value("paid", "oui"),
    "a group": _one_value("sex", "masculin"),
    "a score": _one_value("score", 0.123456),
    "a unit": _one_value("visit", "somebody"),
    "labels of two rows": _exchanged("paid"),
    "scores of two rows": _exchanged("score"),
    "units of two rows": _exchanged("visit"),
    "a row less": lambda frame: frame.iloc[:-1],
    "a row twice": lambda frame: pd.concat([frame, frame.tail(1)]),
    "a hidden row less": lambda frame: frame.drop(index=0),
    "a hidden group renamed": lambda frame: frame.replace({"sex": {"x": "y"}}),
    "scores shifted": lambda frame: frame.assign(score=frame["score"] + 1e-6),
    "scores of other rows": lambda frame: frame.assign(score=np.roll(frame["score"], 1)),
    "units and scores swapped": _swapped("visit", "score"),
    "labels and groups swapped": _swapped("paid", "sex"),
}


@pytest.mark.parametrize("name", OTHER_ROWS)
def test_other_rows_are_found(place, name, capsys):
    frame = pd.read_csv(place / "rows.csv")
    OTHER_ROWS[name](frame).to_csv(place / "rows.csv", index=False)
    assert verify(place) in (1, 2)
    assert "the same" not in capsys.readouterr().out


# Changes that are no tampering. They return the name of a file, and options.


def _written(name, change=lambda frame: frame, *arguments, **options):
    def write(frame, folder):
        if name.endswith(".parquet"):
            change(frame).to_parquet(folder / name, **options)
        else:
            change(frame).to_csv(folder / name, **{"index": False, **options})
        return [name, *arguments]

    return write


def _with_row_names(frame, folder):
    (folder / "other.csv").write_text(frame.to_csv().removeprefix(","))
    return ["other.csv"]


def _shuffled(key):
    return lambda frame: frame.iloc[generator(key).permutation(len(frame))]


def _commas(frame):
    return frame.assign(score=[repr(score).replace(".", ",") for score in frame["score"]])


INNOCENT = {
    "the same file": _written("rows.csv"),
    **{f"rows in order {key}": _written("other.csv", _shuffled(key)) for key in range(5)},
    "rows reversed": _written("other.csv", lambda frame: frame.iloc[::-1]),
    "rows sorted by group": _written("other.csv", lambda frame: frame.sort_values("sex")),
    "rows sorted by score": _written("other.csv", lambda frame: frame.sort_values("score")),
    "columns reversed": _written("other.csv", lambda frame: frame[frame.columns[::-1]]),
    "columns sorted": _written("other.csv", lambda frame: frame[sorted(frame)]),
    "a column more": _written("other.csv", lambda frame: frame.assign(more=1)),
    "a column less": _written("other.csv", lambda frame: frame.drop(columns="note")),
    "a column that is not read": _written("other.csv", lambda frame: frame.assign(note=9)),
    "parquet": _written("other.parquet"),
    "parquet, shuffled": _written("other.parquet", _shuffled(9)),
    "parquet in small groups": _written("other.parquet", row_group_size=50),
    "parquet, packed": _written("other.parquet", compression="gzip"),
    "parquet with a numbered index": _written("other.parquet", _shuffled(8), index=True),
    "parquet with a column as index": _written(
        "other.parquet", lambda frame: frame.set_index("sex")
    ),
    "parquet with categories": _written(
        "other.parquet", lambda frame: frame.astype({"sex": "category", "paid": "category"})
    ),
    "parquet in single precision": _written(
        "other.parquet", lambda frame: frame.astype({"note": "float32"})
    ),
    "packed by gzip": _written("other.csv.gz"),
    "packed by bzip2": _written("other.csv.bz2"),
    "packed by xz": _written("other.csv.xz"),
    "semicolons": _written("other.csv", sep=";"),
    "tabs": _written("other.csv", sep="\t"),
    "decimal commas": _written("other.csv", _commas, "--decimal", ",", sep=";"),
    "everything in quotes": _written("other.csv", quoting=csv.QUOTE_ALL),
    "lines that end as on Windows": _written("other.csv", lineterminator="\r\n"),
    "a mark of the order of bytes": _written("other.csv", encoding="utf-8-sig"),
    "Latin-1": _written("other.csv", lambda f: f, "--encoding", "latin-1", encoding="latin-1"),
    "UTF-16": _written("other.csv", lambda f: f, "--encoding", "utf-16", encoding="utf-16"),
    "numbers with exponents": _written("other.csv", float_format="%.17e"),
    "names of rows of R": _with_row_names,
}


@pytest.mark.parametrize("name", INNOCENT)
def test_an_innocent_change_is_accepted(place, name, capsys):
    data, *arguments = INNOCENT[name](pd.read_csv(place / "rows.csv"), place)
    assert verify(place, data, *arguments) == 0, capsys.readouterr().out
    assert "record.json: the same" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "others"),
    [("int64", "int64"), ("int8", "int32"), ("float64", "int64"), ("bool", str)],
)
def test_numbers_are_those_of_their_texts(labels, others, tmp_path, capsys):
    """A CSV file has no types, and other files may have numbers or texts."""
    rng, n = generator(), 300
    rows = pd.DataFrame({"y": rng.integers(2, size=n), "p": rng.integers(2, size=n)})
    rows = rows.assign(who=rng.integers(100, size=n), g=rng.integers(1, 4, size=n))
    rows.to_csv(tmp_path / "rows.csv", index=False)
    command = ["audit", tmp_path / "rows.csv", "--target", "y", "--prediction", "p"]
    command += ["--sensitive", "g", "--units", "who", "--record", tmp_path / "record.json"]
    assert main([*map(str, command)]) == 0
    rows = rows.astype({"y": labels, "p": labels, "who": others, "g": others})
    rows.to_parquet(tmp_path / "rows.parquet")
    assert verify(tmp_path, "rows.parquet") == 0, capsys.readouterr().out


def test_thirty_changes_are_innocent():
    assert len(INNOCENT) >= 30


def test_the_place_of_the_file_and_of_the_key_does_not_matter(place, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    for name in ("rows.csv", "record.key"):
        (place / name).rename(other / f"other-{name}")
    key = str(other / "other-record.key")
    assert main(["verify", str(place / "record.json"), "--data", str(other / "other-rows.csv"),
                 "--key", key]) == 0  # fmt: skip


def test_without_the_key_numbers_are_compared(place, capsys):
    (place / "record.key").unlink()
    assert verify(place) == 0
    assert "There is no record.key: digests were not compared." in capsys.readouterr().out
    record = read(place)
    FORGED["a smaller difference"](record)
    seal(record, place)
    assert verify(place) == 1


def test_every_number_and_text_is_compared(recorded):
    record = read(recorded)
    leaves = 0

    def walk(part, path):
        nonlocal leaves
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in list(items):
            if isinstance(value, dict | list):
                walk(value, (*path, key))
                continue
            for other in ("other", True, None, -7 if value is None else 7.5):
                if type(other) is type(value) and other == value:
                    continue
                part[key] = other
                whole = {**part, key: value} if isinstance(part, dict) else (
                    [*part[:key], value, *part[key + 1 :]]
                )  # fmt: skip
                (found,) = differences({"part": part}, {"part": whole})
                assert repr(value)[:150] in found.text
            part[key] = value
            leaves += 1

    for name in ("found", "checks", "sentences", "law"):
        walk(record[name], (name,))
    assert leaves > 1000
    assert record == read(recorded)


@pytest.mark.parametrize("value", [0.3, 2.0, 123456.789])
def test_numbers_may_differ_in_the_last_digits(value):
    assert not differences({"n": value}, {"n": value * (1 + TOLERANCE / 3)})
    (found,) = differences({"n": value}, {"n": value * (1 + TOLERANCE * 3)})
    assert found.size == pytest.approx(value * TOLERANCE * 3, rel=1e-3)
    (found,) = differences({"n": 1}, {"n": True})
    assert "1 recorded, True computed" in found.text


def test_sums_that_are_zero_but_for_rounding_are_the_same(tmp_path, capsys):
    """Residuals of a regression on its own rows add up to 0, here of numbers about 100,000."""
    rng, n = generator(), 400
    group, x = rng.integers(2, size=n), rng.normal(size=n)
    y = 1e5 * (2 + x + group + rng.normal(size=n))
    X = np.column_stack([np.ones(n), x])
    rows = pd.DataFrame({"y": y, "p": X @ np.linalg.lstsq(X, y)[0], "g": group})
    found = audit(rows["y"], rows["p"], sensitive_features=rows[["g"]], n_simulations=20)
    found.record(tmp_path / "record.json")
    (whole,) = rows_of(read(tmp_path), "rates", view="", measure="mean_residual")
    assert abs(whole["value"]) < 1e-8
    for key in range(5):
        rows.iloc[generator(key).permutation(n)].to_parquet(tmp_path / "rows.parquet")
        assert verify(tmp_path, "rows.parquet") == 0, capsys.readouterr().out


# Other releases, and other machines.


def _by_another(record, **versions):
    record["made_with"] |= versions
    return record


@of_shell
@pytest.mark.parametrize("name", ["numpy", "scipy", "pandas", "scikit-learn", "python", "skfair"])
def test_records_of_other_versions_are_accepted(place, name, capsys):
    seal(_by_another(read(place), **{name: "0.0.1"}), place)
    assert verify(place) == 0
    assert f"Made with {name} 0.0.1 (" in capsys.readouterr().out


@pytest.mark.parametrize("novelty", ["a text", 1])
@pytest.mark.parametrize("version", [1, 2])
def test_only_texts_of_an_earlier_form_may_differ(place, version, novelty, capsys, monkeypatch):
    """The version of skfair is not asked, because a forger could write any."""
    seal(_by_another(read(place), skfair="0.0.1"), place)
    plain = Audit.to_dict
    monkeypatch.setattr("skfair.records.record.VERSION", version)
    monkeypatch.setattr(Audit, "to_dict", lambda self: plain(self) | {"novelty": novelty})
    told = "skfair.report.auditing.record.verdicts_of"
    monkeypatch.setattr(told, lambda tables: ["It is worded otherwise."])
    is_said = "skfair.report.results.checks.Check.sentence"
    monkeypatch.setattr(is_said, property(lambda check: "So is the check."))
    assert verify(place) == (3 if version == 2 and novelty == "a text" else 1)
    said = capsys.readouterr().out
    assert "found: the record lacks 'novelty'" in said
    assert "Verify it with skfair 0.0.1." in said


def test_numbers_of_another_release_are_compared(place):
    record = _by_another(read(place), skfair="0.0.1")
    FORGED["a smaller difference"](record)
    seal(record, place)
    assert verify(place) == 1


@pytest.mark.slow
@pytest.mark.parametrize("core", ["Prescott", "Haswell", "generic"])
def test_another_machine_computes_the_same(place, core):
    settings = {"OPENBLAS_CORETYPE": core, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"}
    command = [sys.executable, "-m", "skfair", "verify", str(place / "record.json")]
    result = subprocess.run(
        [*command, "--data", str(place / "rows.csv")], env={**os.environ, **settings},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert result.returncode in (0, -4), result.stdout  # -4: this processor cannot run the code


# What a record says of people.


def test_a_record_names_no_person_and_no_folder(recorded, frame):
    text = (recorded / "record.json").read_text(encoding="utf-8")
    assert SECRET not in text
    assert "Amsel" not in text  # whom the memo names
    assert str(recorded) not in text
    assert recorded.name not in text
    assert not any(repr(score) in text for score in frame["score"])


def test_digests_cannot_be_guessed_from_the_record(recorded, frame, tmp_path):
    """The number of people in a hidden group is one of few, so that a plain hash gives it away."""
    record = read(recorded)
    assert record["found"]["hidden"][0]["group"] == "x"
    assert record["found"]["n_left_out"] is None
    others = [_mark_of(sex) for sex in frame["sex"] if sex != "x"]
    guesses = {_digest_of_rows(others + n * [_mark_of("x")], b"") for n in range(20)}
    assert not guesses & {*record["digests"].values()}
    again = tmp_path / "again"
    again.mkdir()
    RECORDERS["python"](frame, again)
    assert not {*read(again)["digests"].values()} & {*record["digests"].values()}
    assert (recorded / "record.key").read_text().strip() not in json.dumps(record)


def _mark_of(text):
    """Return the two numbers of a value of a CSV file that the documentation says."""
    truth = {"True": 1.0, "False": 0.0}
    try:
        number = truth[text] if text in truth else float(text)
    except ValueError:
        return struct.unpack("<QQ", hashlib.sha256(text.encode()).digest()[:16])
    if not number.is_integer():
        number = struct.unpack("f", struct.pack("f", number))[0]
    return (*struct.unpack("<Q", struct.pack("<d", number)), 0)


def _digest_of_rows(rows, key):
    table = [[*row, n] for row, n in sorted(Counter(rows).items())]
    numbers = b"".join(struct.pack("<Q", number) for row in table for number in row)
    return hmac.new(key, numbers, "sha256").hexdigest()


def test_digests_are_those_of_the_documentation(frame, tmp_path):
    """Whoever has the rows and the key can compute them without this package."""
    python_record(frame, tmp_path)
    record = read(tmp_path)
    key = bytes.fromhex((tmp_path / "record.key").read_text().strip())
    assert record["key_sha256"] == hashlib.sha256(key).hexdigest()
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    columns = {
        f"{how['argument']} {how['name']}": [_mark_of(row[how["column"]]) for row in rows]
        for how in record["asked"]["columns"]
    }
    for name, marks in columns.items():
        assert record["digests"][name] == _digest_of_rows(marks, key)
    ranks = []
    for name in sorted(columns):
        known = {mark: rank for rank, mark in enumerate(sorted({*columns[name]}))}
        ranks.append([known[mark] for mark in columns[name]])
    assert record["digests"]["rows"] == _digest_of_rows([*zip(*ranks, strict=True)], key)


# Hostile and broken records.


def test_a_record_opens_no_other_file(place, tmp_path, monkeypatch):
    secret = tmp_path / "secret.txt"
    secret.write_text("nobody may read this")
    record = read(place)
    record["asked"]["options"] |= {"about": {"file": str(secret), "model file": str(secret)}}
    record["after"] = [{"name": f"../../{secret.name}", "kind": "file", "sha256": ""}]
    seal(record, place)
    opened = []
    sys_open = type(place).open

    def noting(self, *arguments, **options):
        opened.append(self.name)
        return sys_open(self, *arguments, **options)

    monkeypatch.setattr(type(place), "open", noting)
    verify(place)
    assert "record.json" in opened
    assert secret.name not in opened


@of_python
def test_records_with_missing_or_odd_parts_are_never_accepted(place, capsys):
    whole = read(place)
    for name in set(whole) - {"checksum"}:
        for odd in (None, {"a": 1}):
            if odd == whole[name]:
                continue
            record = copy.deepcopy(whole)
            record[name] = odd
            if (name, type(odd)) == ("made_with", dict):
                continue  # only a signature can tell
            seal(record, place)
            assert verify(place) in (1, 2), (name, odd)
        record = copy.deepcopy(whole)
        del record[name]
        seal(record, place)
        assert verify(place) in (1, 2), name
        assert capsys.readouterr().err.count("\n") <= 8
    for text in ("", "[]", "{}", "null", "[" * 100_000, '{"kind": NaN}', "\udcff"):
        (place / "record.json").write_bytes(text.encode(errors="surrogatepass"))
        assert verify(place) == 2


@of_shell
def test_a_record_of_another_kind_or_a_later_form_is_refused(place, capsys):
    for name, value in {"kind": "a poem", "version": 2}.items():
        record = read(place)
        record[name] = value
        seal(record, place)
        assert verify(place) == 2
        assert f"{value!r}" in capsys.readouterr().err


# The chain.


def chain(folder, frame):
    """Record an audit after that of the folder, and a monitor after both."""
    found = audit(None, frame["score"] > 0.5, sensitive_features=frame["sex"], n_simulations=20)
    found.record(folder / "second.json", after=str(folder / "record.json"))
    monitoring = pytest.importorskip("skfair.monitoring")
    monitor = monitoring.DisparityMonitor("demographic_parity", folder / "memo.json")
    for start in range(0, len(frame), 200):
        few = frame[start : start + 200]
        monitor.update(None, few["score"] > 0.5, sensitive_features=few[["sex"]])
    monitor.save(folder / "monitor.json")
    monitor.record(folder / "third.json", after=[folder / "second.json", folder / "memo.json"])
    return monitor


@pytest.fixture
def links(place, frame):
    chain(place, frame)
    return place


def test_a_chain_of_memo_audits_and_monitor(links, capsys):
    assert verify(links, "monitor.json", record="third.json") == 0
    said = capsys.readouterr().out
    for later, earlier in [("third", "second"), ("second", "record"), ("record", "memo")]:
        assert f"{later}.json comes after {earlier}.json, which is unchanged." in said
    assert read(links, "third.json")["after"][1]["kind"] == "skfair decision"


@of_shell
@pytest.mark.parametrize("name", ["memo.json", "record.json", "second.json"])
def test_an_edited_link_is_found(links, name, capsys):
    file = links / name
    file.write_bytes(file.read_bytes().replace(b"0.", b"1.", 1))
    assert verify(links, "monitor.json", record="third.json") == 1
    assert f"{name} is not the file that came before" in capsys.readouterr().out


def test_a_link_elsewhere_is_named(links, tmp_path, capsys):
    (links / "second.json").rename(tmp_path / "second.json")
    assert verify(links, "monitor.json", record="third.json") == 0
    assert "Name it: --after second.json" in capsys.readouterr().out
    arguments = ["--after", str(tmp_path / "second.json")]
    assert verify(links, "monitor.json", *arguments, record="third.json") == 0
    assert "comes after second.json, which is unchanged." in capsys.readouterr().out


@of_shell
@pytest.mark.parametrize(
    ("name", "value"), [("status_", "pass"), ("n_rows_", 7), ("evidence_", 0.125), ("alarm_", "no")]
)
def test_a_forged_record_of_a_monitor_is_found(links, name, value):
    record = read(links, "third.json")
    assert record["found"][name] != value
    record["found"][name] = value
    seal(record, links, "third.json")
    assert verify(links, "monitor.json", record="third.json") == 1


# Signatures.


def run(*command, **options):
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, timeout=60, **options
    )


@of_shell
@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_a_signature_by_ssh_keygen_finds_a_changed_byte(place):
    key, record = place / "key", place / "record.json"
    assert run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).returncode == 0
    assert run("ssh-keygen", "-Y", "sign", "-f", key, "-n", "file", record).returncode == 0
    public = (place / "key.pub").read_text()
    (place / "signers").write_text(f"audit@example.org {public}")
    check = ["ssh-keygen", "-Y", "verify", "-f", place / "signers", "-I", "audit@example.org"]
    check += ["-n", "file", "-s", place / "record.json.sig"]
    whole = record.read_bytes()
    assert run(*check, input=whole.decode()).returncode == 0
    for n in generator().integers(len(whole), size=5):
        edited = bytearray(whole)
        edited[n] = ord("x") if edited[n] != ord("x") else ord("y")
        text = edited.decode(errors="replace")
        assert run(*check, input=text).returncode != 0


@of_shell
@pytest.mark.skipif(not shutil.which("gpg"), reason="needs gpg")
def test_a_signature_by_gpg_finds_a_changed_byte(place):
    home = tempfile.mkdtemp()  # its path must be short
    record = place / "record.json"
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback"]
    try:
        made = run(*gpg, "--passphrase", "", "--quick-gen-key", "audit@example.org", "ed25519")
        assert made.returncode == 0, made.stderr
        assert run(*gpg, "--armor", "--detach-sign", record).returncode == 0
        assert run(*gpg, "--verify", f"{record}.asc", record).returncode == 0
        record.write_bytes(record.read_bytes().replace(b"0", b"1", 1))
        assert run(*gpg, "--verify", f"{record}.asc", record).returncode != 0
    finally:
        run("gpgconf", "--homedir", home, "--kill", "all")
        shutil.rmtree(home, ignore_errors=True)


# What cannot be recorded.


def test_audits_without_rows_have_no_record(frame, tmp_path):
    found = audit(None, frame["score"] > 0.5, sensitive_features=frame["sex"], n_simulations=20)
    others = [Audit.from_dict(found.to_dict()), copy.copy(found)]
    for other in (*others, pickle.loads(pickle.dumps(found))):
        with pytest.raises(ValueError, match="its rows are not known"):
            other.record(tmp_path / "record.json")
    found.record(tmp_path / "record.json")
    with pytest.raises(ValueError, match=r"ending in \.json"):
        found.record(tmp_path / "record.txt")


def test_rows_that_were_changed_have_no_record(frame, tmp_path):
    decisions = (frame["score"] > 0.5).to_numpy(copy=True)
    found = audit(None, decisions, sensitive_features=frame["sex"], n_simulations=20)
    decisions[:50] = ~decisions[:50]
    with pytest.raises(ValueError, match="rows were changed"):
        found.record(tmp_path / "record.json")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0)])
def test_random_audits_have_no_record(frame, tmp_path, seed):
    found = audit(
        None, frame["score"] > 0.5, sensitive_features=frame["sex"], n_simulations=20,
        random_state=seed,
    )  # fmt: skip
    with pytest.raises(ValueError, match="cannot be computed again"):
        found.record(tmp_path / "record.json")


def test_one_condition_needs_no_list(frame, tmp_path):
    found = audit(None, frame["score"] > 0.5, sensitive_features=frame["sex"], n_simulations=20)
    found.record(tmp_path / "record.json", fail_if="demographic_parity_difference > 0.5")
    (check,) = read(tmp_path)["checks"]
    assert check["conditions"] == ["demographic_parity_difference > 0.5"]
    assert check["sentence"] == found.check("demographic_parity_difference > 0.5").sentence


def test_two_results_are_two_files(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    both = str(tmp_path / "both.json")
    arguments = ["--prediction", "approved", "--sensitive", "sex", "--pos-label", "oui"]
    command = ["audit", str(tmp_path / "rows.csv"), *arguments, "--out", both, "--record", both]
    assert main(command) == 2
    assert "--out and --record are both" in capsys.readouterr().err


def test_a_model_file_is_compared(frame, tmp_path):
    model = tmp_path / "model.joblib"
    model.write_bytes(b"weights")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    arguments = ["audit", str(tmp_path / "rows.csv"), "--prediction", "approved", "--sensitive"]
    arguments += ["sex", "--pos-label", "oui", "--model-file", str(model)]
    assert main([*arguments, "--record", str(tmp_path / "record.json")]) == 0
    assert verify(tmp_path) == 0
    assert verify(tmp_path, "rows.csv", "--model-file", str(model)) == 0
    model.write_bytes(b"other weights")
    assert verify(tmp_path, "rows.csv", "--model-file", str(model)) == 1


KINDS = {
    "numbers of several types": lambda rng, n: {"a": rng.integers(3, size=n).astype("int8")},
    "truth values": lambda rng, n: {"a": rng.random(n) < 0.5},
    "texts that look like numbers": lambda rng, n: {"a": rng.choice(["01", "1"], n)},
    "texts that look like missing ones": lambda rng, n: {"a": rng.choice(["NA", "n/a", "-"], n)},
    "missing texts": lambda rng, n: {"a": rng.choice(["a", "b", None], n)},
    "missing numbers": lambda rng, n: {
        "a": pd.Series(rng.integers(3, size=n), dtype="Int64").mask(rng.random(n) < 0.2)
    },
    "ordered categories": lambda rng, n: {
        "a": pd.Categorical(rng.choice(["low", "high"], n), ["low", "mid", "high"])
    },
    "categories of numbers": lambda rng, n: {"a": pd.Categorical(rng.choice([3, 1], n), [3, 2, 1])},
    "days": lambda rng, n: {
        "a": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(3, size=n), "D")
    },
    "dates": lambda rng, n: {
        "a": [datetime.date(2026, 1, day + 1) for day in rng.integers(3, size=n)]
    },
    "dates that are categories": lambda rng, n: {
        "a": pd.Categorical([datetime.date(2026, 1, day + 1) for day in rng.integers(3, size=n)])
    },
    "bands of pandas.cut": lambda rng, n: {"a": pd.cut(rng.integers(18, 80, n), [0, 30, 50, 100])},
    "bands of numbers with names": lambda rng, n: {
        "a": pd.cut(rng.integers(18, 80, n), [0, 30, 100], labels=["young", "old"])
    },
    "months": lambda rng, n: {
        "a": pd.Series(pd.PeriodIndex.from_ordinals(rng.integers(670, 673, n), freq="M"))
    },
    "several types": lambda rng, n: {"a": rng.choice(np.array(["a", 1.5, 2], object), n)},
    "columns without a name": lambda rng, n: rng.choice(["a", "b"], n),
    "several columns without a name": lambda rng, n: rng.choice(["a", "b"], (n, 2)),
}


@pytest.mark.filterwarnings("ignore:.*levels that differ only in case, spaces or type, '01'")
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_of_all_kinds_are_read_again(name, suffix, tmp_path, capsys):
    rng, n = generator(name), 300
    groups, y, score = KINDS[name](rng, n), rng.integers(2, size=n), rng.random(n)
    score = score.astype("float32")
    found = audit(
        y, y_score=score, threshold=0.5, sensitive_features=groups, n_simulations=20,
        unknown=np.nan, sample_weight=(weights := rng.random(n) + 0.5 if suffix == "csv" else None),
    )  # fmt: skip
    found.record(tmp_path / "record.json")
    rows = pd.DataFrame({"y_true": y, "y_score": score})
    if weights is not None:
        rows["sample_weight"] = weights
    columns = groups
    if not isinstance(groups, dict):
        columns = dict(zip(found.attributes, np.atleast_2d(groups.T), strict=True))
    rows = rows.assign(**columns).iloc[rng.permutation(n)]
    if suffix == "parquet" and name in ("bands of pandas.cut", "several types"):
        rows["a"] = rows["a"].astype(str)  # parquet has no such columns
    file = tmp_path / f"rows.{suffix}"
    rows.to_csv(file, index=False) if suffix == "csv" else rows.to_parquet(file)
    assert verify(tmp_path, file.name) == 0, capsys.readouterr().out
