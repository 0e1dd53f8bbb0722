"""The command line, run as a user runs it."""

import bz2
import csv
import gzip
import hashlib
import html
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

import skfair
from skfair import metrics
from skfair.__main__ import main
from skfair.report import Audit, DataAudit, audit, audit_data
from tests.seeds import generator


@pytest.fixture(scope="module")
def frame():
    rng, n = generator(1), 1200
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.integers(18, 80, n)})
    score = 1 / (1 + np.exp(-rng.normal(size=n) - 0.6 * (frame["sex"] == "m")))
    frame["score"] = score.round(4)
    frame["job"] = rng.integers(3, size=n)
    frame["paid"] = np.where(rng.random(n) < score, "yes", "no")
    frame["approved"] = np.where(score > 0.5, "yes", "no")
    frame["old"] = np.where(score > 0.4, "yes", "no")
    frame["weight"] = rng.integers(1, 4, n)
    return frame


@pytest.fixture
def file(frame, tmp_path):
    path = tmp_path / "decisions.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def odd_file(frame, tmp_path_factory):
    """A file with a missing value, names to quote, dates, and numbers and labels as text."""
    path = tmp_path_factory.mktemp("odd") / "rows.csv"
    odd = {"holes": frame["sex"].where(frame.index != 2), "half": frame["score"]}
    odd |= {"a, b": frame["sex"], "Alter heute": frame["age"]}
    odd["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(frame.index % 365, "D")
    odd["income"] = [f"1.{i % 900 + 100},50" for i in frame.index]
    odd["Titled"] = frame["approved"].str.title()
    frame.assign(**odd).to_csv(path, index=False)
    return path


USUAL = ["--target", "paid", "--prediction", "approved", "--pos-label", "yes"]


def reported(path, *arguments, usual=True):
    """The report of an audit of a file."""
    out = path.with_name("report.json")
    given = [*(USUAL if usual else []), *arguments, "--out", str(out), "--force"]
    assert main(["audit", str(path), *given]) == 0
    return json.loads(out.read_text(encoding="utf-8"))


def refused(capsys, path, *arguments, usual=True, command="audit"):
    """What is said, in one line, of a file that cannot be audited."""
    capsys.readouterr()
    assert main([command, str(path), *(USUAL if usual else []), *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"skfair {command}: ")
    assert told.count("\n") == 1
    return told


def selected(report, group="f"):
    """The selection rate of a group."""
    rates = pd.DataFrame(report["rates"]).set_index(["group", "measure"])["value"]
    return float(rates[group, "selection_rate"])


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "skfair", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
    )


def test_from_a_shell(file, tmp_path):
    out = tmp_path / "report.html"
    condition = "sex: demographic_parity_difference > 0.05"
    result = run(
        "audit", file, *USUAL, "--sensitive", "sex,age", "--bins", "age=25,45,65",
        "--out", out, "--fail-if", condition,
    )  # fmt: skip
    assert result.returncode == 1, result.stderr
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "sex: true positive rate " in result.stdout
    assert result.stderr.count("\n") == 1
    assert condition in result.stderr


@pytest.mark.parametrize(
    ("option", "values"), [("--sensitive", ["sex", "age"]), ("--control", ["home", "age"])]
)
def test_an_option_is_given_once(file, capsys, option, values):
    given = [word for value in values for word in (option, value)]
    command = ["audit", str(file), *USUAL, "--bins", "age=25,45,65"]
    given += ["--sensitive", "sex"] * (option != "--sensitive")
    with pytest.raises(SystemExit) as stopped:
        main([*command, *given])
    assert stopped.value.code == 2
    assert f"{option} was given twice. Give several values to one" in capsys.readouterr().err
    for _ in range(2):  # a command that ran does not count for the next one
        assert main([*command, "--sensitive", "sex,age"]) == 0


@pytest.fixture(scope="module")
def in_memory(frame):
    """The audit of the rows of ``frame``, as a dictionary."""
    names = ["under 25", "25 to under 45", "45 to under 65", "65 and over"]
    ages = pd.cut(frame["age"], [-np.inf, 25, 45, 65, np.inf], right=False, labels=names)
    return audit(
        frame["paid"], frame["approved"], y_score=frame["score"], before=frame["old"],
        sensitive_features=pd.DataFrame({"sex": frame["sex"], "age": ages}),
        control_features=frame["job"].astype(str), sample_weight=frame["weight"],
        pos_label="yes", title="T",
    ).to_dict()  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("block_rows", [100, 5000])
def test_a_file_in_blocks_is_the_rows_in_memory(frame, in_memory, tmp_path, kind, block_rows):
    path = tmp_path / f"rows.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    found = reported(
        path, "--score", "score", "--sensitive", "sex,age", "--before", "old", "--bins",
        "age=25,45,65", "--control", "job", "--weight", "weight", "--title", "T",
        "--block-rows", str(block_rows),
    )  # fmt: skip
    wanted = in_memory
    assert set(found) == set(wanted)
    for name in ("rates", "calibration", "gaps", "subgroups"):
        own, other = (
            pd.DataFrame(one[name]).drop(columns="left_out", errors="ignore")
            for one in (found, wanted)
        )  # ends of intervals are drawn, and sums of blocks are rounded otherwise
        pd.testing.assert_frame_equal(own, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_that_are_numbers_in_one_place_and_text_in_another_are_text(tmp_path, kind):
    """In another block of a CSV file, or in another column of a Parquet file."""
    rng = generator(0)
    y, p = rng.integers(0, 3, (2, 300))
    frame = pd.DataFrame({"y": y, "p": p.astype(str), "sex": rng.choice(["f", "m"], 300)})
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        frame["y"] = ["0", "1", *["none"] * 3, *y.astype(str)[5:]]
        frame = frame.sort_values("y", ignore_index=True)
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    asked = ["--target", "y", "--prediction", "p", "--sensitive", "sex", "--block-rows", "50"]
    found = pd.DataFrame(reported(path, *asked, usual=False)["rates"])
    expected = audit(
        frame["y"].astype(str), frame["p"], sensitive_features=frame[["sex"]], n_simulations=50
    )
    np.testing.assert_allclose(found["value"].to_numpy(float), expected.rates["value"], 1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--sensitive", "sx"], "has no column 'sx'. Its columns are 'sex', 'age'"),
        (["--sensitive", "age"], "--bins age="),
        (["--sensitive", "a, b"], "Quote a name with a comma"),
        (["--sensitive", "Alter heute"], "--bins 'Alter heute="),
        (["--sensitive", "sex", "--bins", "age=1,2"], "--bins names 'age'"),
        (["--sensitive", "age", "--bins", "age=9,2"], "rising numbers"),
        (["--sensitive", "age", "--bins", "age=nan"], "rising numbers"),
        (["--sensitive", "age", "--bins", "age=1,inf"], "rising numbers"),
        (["--sensitive", "sex", "--pos-label", "Yess"], "--pos-label 'Yess' is not one"),
        (["--sensitive", "sex", "--out", "report.doc"], ".html, .md or .json"),
        (["--sensitive", "sex", "--fail-if", "parity"], "must look like"),
        (["--sensitive", "sex", "--fail-if", "nonsense > 1"], "this audit knows"),
        (["--sensitive", "sex", "--fail-if", "accuracy_parity_difference > 5"], "0.05 for 5%"),
        (
            ["--sensitive", "sex", "--fail-if", "job: accuracy_parity_difference > 1"],
            "no view 'job'",
        ),
        (["--sensitive", "sex", "--min-ratio", "80"], "--min-ratio"),
        (["--sensitive", "holes"], "Column 'holes' has 1 missing value, the first in data row 3"),
        (["--sensitive", "sex", "--units", "holes"], "--units has 1 missing value"),
        (["--sensitive", "sex", "--score", "paid"], "must be numeric"),
        (["--sensitive", "sex", "--target", "half"], "Pass scores as --score"),
        (["--sensitive", "sex", "--target", "half", "--prediction", "score"], "--task numbers"),
        (["--sensitive", "sex", "--confidence", "2"], "--confidence"),
        (["--sensitive", "sex", "--prediction", "paid"], "both 'paid', so every decision would be"),
        (["--sensitive", "sex", "--drop-missing", "score"], "--score, which is not named"),
        (["--sensitive", "sex", "--encoding", "punycode"], "is not PUNYCODE. Save it as CSV UTF-8"),
        (["--sensitive", "sex", "--encoding", "klingon"], "'klingon' is no encoding of text"),
        (["--sensitive", "sex", "--encoding", "zlib"], "'zlib' is no encoding of text"),
        (["--sensitive", "day"], "different dates, so it is no group. Add a column with the year"),
        (["--sensitive", "income"], "different numbers, so it is no group. Make bins"),
        (["--sensitive", "sex", "--reference", "men"], 'such as --reference "sex=f".'),
        (["--sensitive", "sex", "--reference", "sex=men"], 'such as --reference "sex=f".'),
        (["--sensitive", "sex", "--prediction", "Titled"], "Titled has the labels"),
        (["--sensitive", "sex", "--prediction", "Titled"], ": none in common"),
        (
            ["--sensitive", "sex", "--preset", "ecoa"],
            "--reference 'White', or --reference \"sex=male,race=White\".",
        ),
        (["--sensitive", "sex", "--suppress-below", "2000"], "Pass --suppress-below 1 for"),
        (
            ["--sensitive", "sex", "--metrics", "error"],
            "--metrics has 'error', but this audit knows",
        ),
        (["--sensitive", "sex", "--min-group-size", "0"], "--min-group-size"),
        (["--sensitive", "sex\nage"], "Quote names with line breaks"),
        (["--sensitive", "sex", "--metrics", "a\rb"], "Quote names with line breaks"),
        (
            ["--sensitive", "sex", "--block-rows", "9" * 30],
            "--block-rows must be a number from 1 to",
        ),
        (["--sensitive", "sex", "--record", "r.txt"], "--record must end in .json, got"),
        (["--sensitive", "sex", "--out", "nowhere/p.html"], "no folder 'nowhere' for --out."),
        (["--sensitive", "sex", "--record", "a.json", "--out", "a.json"], "Name two files."),
    ],
)
def test_errors_are_one_line_that_says_what_to_do(odd_file, monkeypatch, capsys, change, message):
    monkeypatch.chdir(odd_file.parent)
    extra = ["--task", "binary"] if "half" in change else []
    error = refused(capsys, odd_file, *change, *extra)
    assert message in error
    assert not re.search(r"\{|[a-z]_[a-z]+=|\w\(.*=", error), "that is Python"


def test_a_folder_that_is_not_there_is_said_before_the_file_is_read(tmp_path, capsys):
    out = tmp_path / "nowhere" / "r.html"
    told = refused(capsys, "no file", "--sensitive", "c", "--out", str(out))
    assert f"There is no folder {str(out.parent)!r}" in told


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.csv", None, "no file"),
        ("empty.csv", b"", "no CSV file"),
        ("rows.csv", b"sex;paid;approved\n", "rows.csv has no rows"),
        *(
            (f"rows.{suffix}", b"PK\x03\x04" + bytes(range(256)), "as .xlsx or CSV UTF-8")
            for suffix in ("xls", "csv", "ods")
        ),
    ],
)
def test_files_that_are_no_table(tmp_path, capsys, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert message in refused(capsys, tmp_path / name, "--sensitive", "sex")


@pytest.mark.parametrize(("sep", "header"), [(",", " "), (";", ""), ("\t", "")])
def test_odd_names_and_other_separators(frame, tmp_path, sep, header):
    """Names hold commas, spaces and signs; a space after a comma belongs to no value."""
    names = {"sex": "sex, at birth", "age": "Größe in cm?", "paid": "y=1", "approved": "1"}
    path = tmp_path / "my rows.csv"
    text = frame[list(names)].rename(columns=names).to_csv(index=False, sep=sep)
    path.write_text(re.sub(f"{sep}(?! )", sep + header, text), encoding="utf-8-sig")
    found = reported(
        path, "--target", "y=1", "--prediction", "1", "--pos-label", "yes", "--sensitive",
        '"sex, at birth",Größe in cm?', "--bins", "Größe in cm?=40,60", usual=False,
    )  # fmt: skip
    assert {row["view"] for row in found["rates"]} >= {"sex, at birth", "Größe in cm?"}
    is_selected = frame.loc[frame.sex == "f", "approved"] == "yes"
    assert selected(found) == pytest.approx(is_selected.mean())


@pytest.mark.parametrize("task", ["binary", "numbers"])
def test_numbers_with_decimal_commas(tmp_path, task):
    """Spreadsheets write them between semicolons where people write them so."""
    rng, path = generator(0), tmp_path / "rows.csv"
    table = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 200),
            "age": rng.uniform(18, 80, 200).round(1),
            "paid": rng.normal(size=200).round(2) if task == "numbers" else rng.integers(0, 2, 200),
            "score": rng.normal(size=200).round(3),
            "weight": rng.uniform(1, 2, 200).round(2),
        }
    )
    given = ["--score", "score"] if task == "binary" else ["--prediction", "score"]
    given += ["--target", "paid", "--weight", "weight", "--task", task, "--sensitive", "sex,age"]
    reports = []
    for options in ({}, {"sep": ";", "decimal": ","}):
        table.to_csv(path, index=False, **options)
        for edges in ("30.5,50", "30,5;50"):
            found = reported(path, *given, "--bins", f"age={edges}", usual=False)
            reports.append(found | {"about": {}})
    assert reports.count(reports[0]) == 4


@pytest.fixture(scope="module")
def aged(frame):
    """Rows with fractions of years."""
    return frame.assign(age=frame["age"] + 0.25)


KINDS = ["--score", "score", "--sensitive", "sex,job,age", "--bins", "age=30.5,50", "--title", "T"]


@pytest.fixture(scope="module")
def of_plain_file(aged, tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "plain.csv"
    aged.to_csv(path, index=False)
    return reported(path, *KINDS)


def spaced(frame, path):
    """Write groups with spaces around them, which mean nothing."""
    spaces = generator(0).choice(["", " ", "  "], len(frame))
    frame.assign(sex=frame["sex"] + spaces).to_csv(path, index=False)


def stated(frame, path, first, sep):
    """Write a first line that names the separator, as spreadsheets do and expect it."""
    text = f"{first}\n{frame.to_csv(index=False, sep=sep, decimal=',')}"
    path.write_text(text, encoding="utf-8-sig")


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("rows.csv", spaced),
        *(
            ("rows.csv", partial(stated, first=first, sep=sep))
            for first, sep in (("sep=;", ";"), ('"sep=;"', ";"), ("sep=\t", "\t"), ("sep=|", "|"))
        ),
        ("rows.parquet", lambda frame, path: frame.to_parquet(path)),
        ("rows.parquet", lambda frame, path: frame.set_index("sex").to_parquet(path)),
        ("rows.parquet", lambda frame, path: frame.set_index(["sex", "job"]).to_parquet(path)),
        ("rows.xlsx", lambda frame, path: frame.to_excel(path, index=False)),
    ],
)
def test_the_same_rows_in_another_kind_of_file(aged, of_plain_file, tmp_path, name, write):
    pytest.importorskip({"parquet": "pyarrow", "xlsx": "openpyxl"}.get(name[5:], "csv"))
    write(aged, tmp_path / name)
    other = reported(tmp_path / name, *KINDS)
    assert other | {"about": {}} == of_plain_file | {"about": {}}


@pytest.mark.parametrize("block_rows", ["7", "500000"])
def test_scores_passed_as_predictions_of_labels_are_refused(frame, tmp_path, capsys, block_rows):
    path = tmp_path / "rows.csv"
    frame.assign(paid=(frame["paid"] == "yes").astype(int)).to_csv(path, index=False)
    asked = ["--target", "paid", "--prediction", "score", "--sensitive", "sex"]
    asked += ["--block-rows", block_rows]
    assert "score has fractions" in refused(capsys, path, *asked, usual=False)
    found = reported(path, *asked, "--task", "numbers", usual=False)
    assert capsys.readouterr().out.endswith(f"The report is in {tmp_path / 'report.json'}.\n")
    rates = pd.DataFrame(found["rates"]).set_index(["group", "measure"])
    women = frame.loc[frame["sex"] == "f", "score"].mean()
    assert rates.loc[("f", "mean_prediction"), "value"] == pytest.approx(women)


def test_a_file_in_another_encoding(frame, tmp_path, capsys):
    path, groups = tmp_path / "rows.csv", ["--sensitive", "sex"]
    german = frame.assign(sex=frame["sex"].replace("f", "weiß"))
    german.to_csv(path, index=False, encoding="latin-1")
    assert "is not UTF-8. Save it as CSV UTF-8, or name its" in refused(capsys, path, *groups)
    found = reported(path, *groups, "--encoding", "latin-1")
    assert {row["group"] for row in found["rates"]} == {"all", "m", "weiß"}


def test_scores_without_outcomes(frame, file, capsys):
    """A threshold makes decisions of scores; its decimal mark may be a comma."""
    asked = ["--score", "score", "--sensitive", "sex"]
    found = [reported(file, *asked, "--threshold", one, usual=False) for one in ("0.6", "0,6")]
    assert found[0] == found[1]
    women = frame.loc[frame["sex"] == "f", "score"]
    assert selected(found[0]) == pytest.approx((women > 0.6).mean())
    assert "threshold" in refused(capsys, file, *asked, usual=False)


def test_the_seed_is_that_of_the_simulations(file):
    first, again, other = (
        reported(file, "--sensitive", "job", "--random-state", one) for one in "001"
    )
    assert first == again
    assert first["rates"] == other["rates"]
    assert first["gaps"] != other["gaps"]


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    shown = capsys.readouterr().out
    assert shown == f"skfair {skfair.__version__} ({os.path.dirname(skfair.__file__)})\n"


@pytest.mark.filterwarnings("always")  # as on a command line, where they are printed
@pytest.mark.parametrize("block_rows", [600, 10**6])
def test_groups_that_differ_in_case_are_named(frame, tmp_path, capsys, block_rows):
    """Also where no block has both spellings."""
    path = tmp_path / "a.csv"
    frame.assign(sex=np.r_[frame["sex"][:600].str.upper(), frame["sex"][600:]]).to_csv(path)
    main(["audit", str(path), *USUAL, "--sensitive", "sex", f"--block-rows={block_rows}"])
    told = capsys.readouterr().err
    assert told.startswith("skfair audit: Sensitive attribute 'sex' has levels that differ only in")
    assert "'F', 'f' and 'M', 'm'" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("middle", [0.0, 1e7, -1e9])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_numbers_far_from_0_keep_their_digits_in_blocks_too(tmp_path, middle, is_weighted):
    rng, path = generator(0), tmp_path / "n.csv"
    frame = pd.DataFrame({"p": rng.normal(size=900).round(2), "w": rng.uniform(0.5, 2, 900)})
    frame["g"] = np.repeat(["a", "b", "c"], 300)
    frame.assign(p=middle + frame["p"]).to_csv(path, index=False)
    asked = ["--prediction", "p", "--sensitive", "g", "--task", "numbers", "--block-rows", "200"]
    asked += ["--weight", "w"] if is_weighted else []
    asked += ["--fail-if", "mean_score_difference > 100"]  # which is not the case
    found = pd.DataFrame(reported(path, *asked, usual=False)["rates"]).set_index("group")
    weights = frame["w"] if is_weighted else None
    options = {"sensitive_features": frame["g"], "task": "numbers", "sample_weight": weights}
    expected = audit(None, frame["p"], **options).rates.set_index("group")
    for name in ("value", "value_low", "value_high"):
        own = found[name].astype(float) - middle
        np.testing.assert_allclose(own, expected[name], rtol=1e-5, atol=1e-7)


def test_missing_numbers_do_not_change_the_names_of_groups(frame, tmp_path):
    """Whole numbers with missing ones are read as fractions, and only in some blocks."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    codes = [None if i == 5 else one for i, one in enumerate(frame["job"].tolist())]
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    pq.write_table(table.append_column("code", pa.array(codes, pa.int64())), path)
    for rows, bins in (("100", []), ("5000", []), ("100", ["--bins", "code=1,2"])):
        asked = ["--sensitive", "code", "--missing", "unknown", *bins, "--block-rows", rows]
        asked += ["--suppress-below", "1"]
        groups = {row["group"] for row in reported(path, *asked)["rates"]}
        names = {"under 1", "1 to under 2", "2 and over"} if bins else {"0", "1", "2"}
        assert groups == {"all", "unknown", *names}


def test_rows_that_end_with_separators(frame, tmp_path, capsys):
    """Values must not be read under the name to their left; names of rows, as R's, may be there."""
    head, *rows = frame[["sex", "paid", "approved", "old"]].to_csv(index=False).splitlines()
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([head, *(f"{i},{row}" for i, row in enumerate(rows))]))
    is_selected = frame.loc[frame.sex == "f", "approved"] == "yes"
    assert selected(reported(path, "--sensitive", "sex")) == pytest.approx(is_selected.mean())
    for end in (",", ",,"):
        path.write_text("\n".join([head, *(row + end for row in rows)]))
        told = refused(capsys, path, "--sensitive", "sex")
        assert "Remove the separators at the ends" in told
    path.write_text(head)
    assert "has no rows" in refused(capsys, path, "--sensitive", "sex")


@pytest.mark.parametrize("has_fractions", [False, True])
def test_numbers_without_fractions_are_spread_over_their_range(tmp_path, has_fractions):
    """The range of predictions is known after all blocks, also where some have no fraction."""
    rng, path = generator(0), tmp_path / "n.csv"
    y = rng.integers(50, size=400)
    frame = pd.DataFrame({"y": y, "p": y + rng.integers(-5, 6, 400)})
    frame["g"] = rng.choice(["a", "b"], 400)
    lines = frame.astype(str)
    if has_fractions:  # in the last block alone, where predictions are small
        frame["p"] = np.where(frame.index < 300, frame["p"], 0.5)
        lines["p"] = np.where(frame.index < 300, lines["p"], "0.5")
    lines.to_csv(path, index=False)
    asked = ["--target", "y", "--prediction", "p", "--sensitive", "g", "--task", "numbers"]
    found = reported(path, *asked, "--block-rows", "100", usual=False)
    expected = audit(frame["y"], frame["p"], sensitive_features=frame[["g"]], task="numbers")
    tables = (pd.DataFrame(one["calibration"]) for one in (found, expected.to_dict()))
    pd.testing.assert_frame_equal(*tables, rtol=1e-9)


def test_blocks_without_weight_are_read_over(frame, tmp_path, capsys):
    frame = frame.assign(weight=np.where(np.arange(len(frame)) < 400, 0, frame["weight"]))
    frame.loc[0, "score"] = 7.0  # of a row without weight: the others are probabilities
    path = tmp_path / "file.csv"
    frame.to_csv(path, index=False)
    asked = ["--score", "score", "--sensitive", "sex", "--weight", "weight"]
    found = reported(path, *asked, "--block-rows", "100")
    kept = frame[frame["weight"] > 0]
    expected = audit(
        kept["paid"], kept["approved"], y_score=kept["score"], sensitive_features=kept[["sex"]],
        sample_weight=kept["weight"], pos_label="yes",
    ).to_dict()  # fmt: skip
    rates, wanted = (
        pd.DataFrame(one["rates"]).drop(columns="n").astype(object) for one in (found, expected)
    )
    assert "calibration_error" in set(rates["measure"])
    pd.testing.assert_frame_equal(rates, wanted, check_exact=False)
    frame.assign(weight=0).to_csv(path, index=False)
    assert "weight' is 0 in every row" in refused(capsys, path, *asked)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zip", "tar.gz", "parquet"])
@pytest.mark.parametrize("damage", ["cut", "turned", "none"])
def test_a_damaged_file_is_bad_input(frame, tmp_path, capsys, kind, damage):
    """Exit code 1 would say that a limit is exceeded."""
    path = tmp_path / (f"rows.{kind}" if kind == "parquet" else f"rows.csv.{kind}")
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    content, half = path.read_bytes(), path.stat().st_size // 2
    place = 8 if kind == "parquet" else half
    turned = content[:place] + bytes(255 - one for one in content[place : place + 40])
    turned += content[place + 40 :]
    path.write_bytes({"cut": content[:half], "turned": turned, "none": b"no"}[damage])
    refused(capsys, path, "--sensitive", "sex")


def _unpacked(content):
    try:
        return bz2.decompress(content)
    except (OSError, ValueError):
        return None


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "tar.gz", "tar.xz"])
def test_a_bit_that_is_turned_is_found(frame, tmp_path, capsys, kind):
    """Of archives pandas does not read the end, where the check sum is. Heads have names."""
    path = tmp_path / f"rows.csv.{kind}"
    frame.to_csv(path, index=False)
    content = path.read_bytes()
    assert main(["audit", str(path), *USUAL, "--sensitive", "sex"]) == 0
    for place in generator(0).integers(64, len(content) - 16, 12).tolist():
        turned = bytearray(content)
        turned[place] ^= 1 << place % 8
        if kind == "bz2" and _unpacked(turned) == _unpacked(content):
            continue  # a bit of a code that no character has
        path.write_bytes(turned)
        refused(capsys, path, "--sensitive", "sex")


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_a_line_without_an_end_is_refused_before_it_is_read(tmp_path, capsys, name):
    """It took 4,000 times the bytes of the compressed file."""
    path, opened = tmp_path / name, gzip.open if name.endswith("gz") else open
    with opened(path, "wb") as file:
        file.write(b"sex,paid,approved\nf,yes,")
        for _ in range(17):
            file.write(b"1" * 1_000_000)
    assert "a line of more than 16,000,000 bytes" in refused(capsys, path, "--sensitive", "sex")


def test_what_cannot_be_read_twice_is_named(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / "pipe"
    assert "a folder, a pipe or a device" in refused(capsys, path, "--sensitive", "sex")


def test_what_nobody_foresaw_is_bad_input_too(file, capsys, monkeypatch):
    """Python itself ends with 1, which would say that a limit is exceeded."""

    def fail(given):
        raise RuntimeError("no\nidea")

    monkeypatch.setattr("skfair.report.commands.audit.run_audit", fail)
    assert main(["audit", str(file), *USUAL, "--sensitive", "sex"]) == 2
    assert capsys.readouterr().err == "skfair audit: RuntimeError: no idea\n"


@pytest.mark.parametrize(
    ("wrong", "shown"), [(["--truth", "repaid"], "--truth repaid"), (["x\u202ey"], "x\\u202ey")]
)
def test_unknown_arguments_are_named_with_the_usage_of_the_command(file, capsys, wrong, shown):
    """A newcomer who guesses "--truth" finds "--target" among the options of the audit."""
    with pytest.raises(SystemExit) as ended:
        main(["audit", str(file), *USUAL, "--sensitive", "sex", *wrong])
    assert ended.value.code == 2
    written = capsys.readouterr().err
    assert "--target TARGET" in written
    assert f"unrecognized arguments: {shown}" in written


def test_nowhere_to_print_to_is_said(file, capsys, monkeypatch):
    """As other commands do it after ">&-"."""
    monkeypatch.setattr(sys, "stdout", None)
    command = ["audit", str(file), *USUAL, "--sensitive", "sex"]
    assert main(command) == 2
    assert "Standard output is closed" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert main(command) == 2


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_names_and_rows_over_several_lines(frame, tmp_path, encoding, end):
    path = tmp_path / "rows.csv"
    odd = frame.rename(columns={"job": "kind of\nwork", "sex": 'the "sex", as said'})
    odd = odd[["kind of\nwork", *(name for name in odd if name != "kind of\nwork")]]
    odd["note"] = "two\n\nparagraphs, quoted"
    text = odd.to_csv(index=False, quoting=csv.QUOTE_ALL, lineterminator=end)
    path.write_bytes(text.encode(encoding))
    groups = '"kind of\nwork","the ""sex"", as said"'
    assert main(["audit", str(path), *USUAL, "--sensitive", groups]) == 0


def test_a_column_that_is_there_twice_is_refused(frame, tmp_path, capsys):
    path = tmp_path / "rows.csv"
    pd.concat([frame, frame[["sex"]]], axis=1).to_csv(path, index=False)
    assert "has the column 'sex' more than once" in refused(capsys, path, "--sensitive", "sex")
    assert main(["audit", str(path), *USUAL, "--sensitive", "job"]) == 0


def test_a_wrong_column_of_very_many_is_said_in_short(tmp_path, capsys):
    path, names = tmp_path / "rows.csv", [f"column{k}" for k in range(20_000)]
    path.write_text("\n".join([",".join(names), ",".join(["1"] * len(names))]))
    told = refused(capsys, path, "--prediction", "column77", "--sensitive", "colum5", usual=False)
    assert "'column5'" in told
    assert "and 19,960 more" in told
    assert len(told) < 2000


@pytest.mark.parametrize("out", ["rows.md", "link.md"])
def test_a_report_does_not_take_the_place_of_its_file(frame, tmp_path, capsys, out):
    path = tmp_path / "rows.md"
    frame.to_csv(path, index=False)
    (tmp_path / "link.md").symlink_to(path)
    before, given = path.read_bytes(), ["--sensitive", "sex", "--out", str(tmp_path / out)]
    assert "is the file that is audited" in refused(capsys, path, *given)
    assert path.read_bytes() == before


def test_a_report_is_written_as_a_whole_or_not_at_all(file, tmp_path):
    """A full disk leaves the report that was there."""
    resource = pytest.importorskip("resource")
    outs = [tmp_path / f"report.{suffix}" for suffix in ("html", "md", "json")]
    for out in outs:
        out.write_text("the last report")
    code = (
        "import resource, sys; from skfair.__main__ import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (2000, {resource.RLIM_INFINITY})); "
        "sys.exit({main([*sys.argv[4:], '--force', '--out', out]) for out in sys.argv[1:4]} != {2})"
    )
    arguments = [*outs, "audit", file, *USUAL, "--sensitive", "sex"]
    command = [sys.executable, "-c", code, *map(str, arguments)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0
    assert told.stderr.count("\n") == 3
    assert {out.read_text() for out in outs} == {"the last report"}
    assert set(tmp_path.iterdir()) == {file, *outs}


def test_names_that_the_encoding_of_a_pipe_lacks_are_escaped(frame, tmp_path):
    path = tmp_path / "towns.csv"
    frame.assign(sex=frame["sex"].map({"f": "\u0141\u00f3d\u017a", "m": "Br\u00fcnn"})).to_csv(path)
    command = [sys.executable, "-m", "skfair", "audit", str(path), *USUAL, "--sensitive", "sex"]
    own = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    told = subprocess.run(command, capture_output=True, encoding="cp1252", check=False, env=own)
    assert told.returncode == 0
    assert re.search(
        r"selection rate .* \(\\u0141\u00f3d\\u017a\) against .* \(Br\u00fcnn\)", told.stdout
    )


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="no pipes")
def test_a_closed_pipe_ends_the_command_without_a_word(file):
    command = [sys.executable, "-m", "skfair", "audit", str(file), *USUAL, "--sensitive", "sex"]
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert found.returncode == -signal.SIGPIPE
    assert found.stderr == ""


def test_the_target_may_have_words_of_its_own(frame, tmp_path, capsys):
    path = tmp_path / "akten.csv"
    zero_one = frame[["paid", "approved"]] == "yes"
    words = {"zurueckgezahlt": ("nein", "ja"), "entscheid": ("abgelehnt", "genehmigt")}
    for column, (name, pair) in zip(zero_one, words.items(), strict=True):
        frame = frame.assign(**{name: np.where(zero_one[column], *pair[::-1])})
    frame.assign(**zero_one.astype(int)).to_csv(path, index=False)
    found = []
    for columns in (
        ["--target", "paid", "--prediction", "approved"],
        ["--target", "zurueckgezahlt", "--prediction", "entscheid", "--pos-label", "genehmigt"],
        ["--target", "zurueckgezahlt", "--prediction", "approved"],
    ):
        if columns[1] != "paid":
            columns += ["--pos-label-true", "ja"]
        given = [*columns, "--sensitive", "sex", "--block-rows", "500"]
        found.append(reported(path, *given, usual=False)["rates"])
    assert found[0] == found[1] == found[2]
    for extra, message in (
        (["--pos-label", "genehmigt"], "Name both positive classes: --pos-label, --pos-label-true"),
        (["--pos-label", "genehmigt", "--pos-label-true", "Ja"], "--pos-label-true 'Ja' is not"),
        (["--pos-label", "Genehmigt", "--pos-label-true", "ja"], "Did you mean 'genehmigt'?"),
        (["--pos-label-true", "ja"], "Pass one of them as --pos-label."),
    ):
        given = ["--target", "zurueckgezahlt", "--prediction", "entscheid", "--sensitive", "sex"]
        assert message in refused(capsys, path, *given, *extra, usual=False)


def test_a_condition_is_decided_by_the_interval(file, frame, capsys):
    """0: passed, 1: failed, 3: open, unless the user says what that counts as."""
    metric = "demographic_parity_difference"
    gap = audit(
        frame["paid"], frame["approved"], sensitive_features=frame[["sex"]], pos_label="yes"
    ).gaps.iloc[0]
    given = ["audit", str(file), *USUAL, "--sensitive", "sex"]
    inside, below, above = gap["value"] + 0.001, gap["value_low"] - 0.01, gap["value_high"] + 0.01
    for limit, options, code, word in (
        (below, [], 1, "fail"),
        (above, [], 0, "pass"),
        (inside, [], 3, "inconclusive"),
        (inside, ["--inconclusive", "pass"], 0, "inconclusive"),
        (inside, ["--inconclusive", "fail"], 1, "inconclusive"),
    ):
        assert main([*given, "--fail-if", f"{metric} > {limit}", *options]) == code
        assert f": {word} (sex: " in capsys.readouterr().err
    both = ["--fail-if", f"{metric} > {inside}", "--fail-if", f"{metric} > {below}"]
    assert main([*given, *both, "--annotate"]) == 1
    lines = capsys.readouterr().out.split("\n")
    assert sum(line.startswith("::warning title=skfair audit::") for line in lines) == 1
    assert sum(line.startswith("::error title=skfair audit::") for line in lines) == 1


def test_an_undefined_rate_does_not_pass_unless_it_is_allowed(frame, tmp_path, capsys):
    """Women without a row of the positive class: nothing is known of their true positive rate."""
    path = tmp_path / "rows.csv"
    groups = np.where(frame["paid"] == "no", frame["sex"], np.where(frame.index % 2, "m", "x"))
    frame.assign(sex=groups).to_csv(path, index=False)
    given = ["audit", str(path), *USUAL, "--sensitive", "sex", "--annotate", "--fail-if"]
    given += ["equal_opportunity_difference > 90%"]
    said = "Not compared: f (sex: too few people count in the rate, or"
    for options, code, kind in (
        ([], 3, "warning"),
        (["--inconclusive", "pass"], 3, "warning"),  # more rows would not decide it
        (["--inconclusive", "fail"], 1, "warning"),
        (["--allow-undefined"], 0, "notice"),
    ):
        assert main([*given, *options]) == code
        told = capsys.readouterr()
        assert said in told.err
        assert re.search(f"^::{kind} .*{re.escape(said)}", told.out, re.MULTILINE)


@pytest.mark.parametrize("mark", [",", "."])
def test_numbers_with_a_comma_are_read_with_decimal(frame, tmp_path, capsys, mark):
    """Scores in percent, ages with thousands, and labels that are whole numbers."""
    percent = (100 * generator(0).random(len(frame))).round(2)
    other = "." if mark == "," else ","
    plain = frame[["sex"]].assign(score=percent / 100, age=np.arange(len(frame)) + 500)
    plain["y"] = (plain["score"] > 0.4).astype(int)
    written = plain.assign(
        score=[f"{value:.2f} %".replace(".", mark) for value in percent],
        age=[f"{value:,}".replace(",", other) for value in plain["age"]],
    )
    given = ["--target", "y", "--score", "score", "--threshold", "0.5", "--sensitive", "sex,age"]
    given += ["--bins", "age=1200", "--out", str(tmp_path / "a.json"), "--force"]
    found = []
    for rows, options in ((plain, []), (written, ["--decimal", mark])):
        path = tmp_path / "rows.csv"
        rows.to_csv(path, index=False)
        assert main(["audit", str(path), *given, *options]) == 0
        found.append(json.loads((tmp_path / "a.json").read_text())["rates"])
    assert found[0] == found[1]
    if mark == ",":
        assert main(["audit", str(path), *given]) == 2
        assert "read with --decimal ," in capsys.readouterr().err


def test_limits_have_options_of_their_own(file, frame, capsys):
    """The four-fifths rule as people say it; all are conditions like others."""
    rates = frame.groupby("sex")["approved"].apply(lambda one: (one == "yes").mean())
    ratio, gap = rates.min() / rates.max(), rates.max() - rates.min()
    other = "false_negative_parity_difference"
    groups = {"sensitive_features": frame["sex"], "pos_label": "yes"}
    value = getattr(metrics, other)(frame["paid"], frame["approved"], **groups)
    given = ["audit", str(file), *USUAL, "--sensitive", "sex"]
    for options, code in (
        (["--min-ratio", f"{ratio + 0.2:.6f}"], 1),
        (["--min-ratio", f"{ratio:.6f}".replace(".", ",")], 3),
        (["--min-ratio", f"{ratio - 0.3:.6f}"], 0),
        (["--max-disparity", "0.01"], 1),
        (["--max-disparity", "1%"], 1),
        (["--max-disparity", f"{100 * gap + 20:.4f} %".replace(".", ",")], 0),
        (["--max-disparity", f"{gap + 0.2:.6f}", "--min-ratio", f"{ratio + 0.2:.6f}"], 1),
        (["--fail-if", f"{other} >= 0"], 1),
        (["--fail-if", f"{other} > {value + 0.2}"], 0),
    ):
        assert main([*given, *options]) == code, options
    with pytest.raises(SystemExit):
        main([*given, "--max-disparity", "small"])
    assert "'small' is no number. Write it as 0.05 or 5%." in capsys.readouterr().err


def test_the_words_of_newcomers_are_in_the_help(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["audit", "--help"])
    shown = capsys.readouterr().out
    assert '--fail-if "demographic_parity_difference > 0.1"' in shown
    text = " ".join(shown.split())
    words = ("four-fifths", "adverse impact", "impact ratio", "Local Law 144", "Fisher")
    assert all(said in text for said in (*words, "reference group"))


def test_data(tmp_path, capsys):
    out = tmp_path / "loans.csv"
    assert main(["data", "loans", "--out", str(out)]) == 0
    assert "5000 rows" in capsys.readouterr().out
    assert {"sex", "ethnicity", "target"} <= set(pd.read_csv(out))
    assert main(["data", "loans", "--out", "loans.xls"]) == 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "getuid"), reason="other permissions")
def test_warm_makes_folders_that_others_read_and_do_not_write(tmp_path):
    """Also of folders that everybody could write to before; by a task that compiles two kernels."""
    folders = [tmp_path / "open", tmp_path / "open" / "_kernels_0", tmp_path / "new" / "er"]
    for folder in folders[:2]:
        folder.mkdir()
        folder.chmod(0o777)
    for umask, folder in ((0o000, folders[0]), (0o077, folders[2])):
        code = (
            "import os, sys; from skfair import metrics; from skfair import warm; "
            "gap = lambda X, sex: metrics.wasserstein_gap(None, X[:, 0], sensitive_features=sex); "
            "of = lambda X, sex: [gap(X, sex)][:0]; "
            f"warm.TASKS = [of]; os.umask({umask}); warm.run_warm(); print(os.umask(0))"
        )
        told = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        ).stdout
        assert told.startswith("2 kernels are compiled and stored")
        assert "Compiled when first used: " in told
        assert told.endswith(f"\n{umask}\n")
        stored = list(folder.rglob("*"))
        kernels = {path.name.split("-")[0] for path in stored if path.suffix == ".nbc"}
        assert kernels == {"sorted_pairs.counting_sort", "sorted_pairs.areas_between"}
        for path in (folder, *stored):
            assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid(), reason="files are given away")
def test_warm_refuses_a_folder_of_somebody_else(tmp_path, capsys, monkeypatch):
    os.chown(tmp_path, 1234, 1234)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # which is set in this process
    assert main(["warm", str(tmp_path)]) == 2
    assert "belongs to another user" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_warm_compiles_every_kernel():
    """Done in this place, so that what is stored already is loaded."""
    code = (
        "from skfair import warm; "
        "done = [warm.compiled_by(task) for task in warm.TASKS]; "
        "print(sorted(warm.entry_kernels().difference(*done)), len(warm.entry_kernels()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.startswith("[] "), result.stdout + result.stderr
    assert int(result.stdout.split()[-1]) > 40


def test_names_of_bins_say_their_edges(tmp_path):
    """Edges of seven digits were cut to six, so that names were wrong, or the same twice."""
    path, asked = (
        tmp_path / "a.csv",
        ["--target", "y", "--prediction", "p", "--sensitive", "income"],
    )
    incomes = [1234566.0, 1234567.5, 1234568.5, 1234570.0] * 20
    pd.DataFrame({"y": [0, 1] * 40, "p": [1, 1, 0, 0] * 20, "income": incomes}).to_csv(path)
    edges = ["1234567", "1234568.25", "1234569"]
    found = reported(path, *asked, "--bins", f"income={','.join(edges)}", usual=False)
    names = {f"under {edges[0]}", f"{edges[-1]} and over"}
    names |= {f"{low} to under {high}" for low, high in itertools.pairwise(edges)}
    assert {row["group"] for row in found["rates"]} == names | {"all"}


def test_the_head_says_what_is_audited_and_from_which_file(frame, tmp_path):
    """What a lawyer asked for: the decision in the words of the data, the file, the period."""
    path = tmp_path / "decisions.csv"
    frame.replace({"paid": {"yes": "ja", "no": "nein"}}).to_csv(path, index=False)
    asked = ["--pos-label-true", "ja", "--sensitive", "sex", "--title", "Loans 2026"]
    facts = {"model": "Card 3", "period": "June", "prepared by": "Risk <b>", "source": "Core"}
    for name, text in facts.items():
        asked += [f"--{name.replace(' ', '-')}", text]
    found = reported(path, *asked)
    decision = "Selected means: column approved = 'yes'. Truly positive means: column paid = 'ja'."
    check_sum = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found["decision"] == decision
    assert found["about"] == {**facts, "file": "decisions.csv", "SHA-256": check_sum}
    assert found["columns"] == {"y_true": "paid", "y_pred": "approved"}
    shown = Audit.from_dict(found)
    page, card = html.unescape(shown.to_html()), shown.to_markdown().replace("\\", "")
    for text in (*found["about"].values(), decision, found["made_on"], "1,200 rows", "Loans 2026"):
        assert text in page
        assert text in card
    asked = ["--score", "score", "--threshold", "0.25", "--sensitive", "sex"]
    scores = reported(path, *asked, usual=False)
    assert scores["decision"] == "Selected means: column score above 0.25."


def test_dates_may_be_put_in_bins(frame, tmp_path, capsys):
    day = pd.Timestamp("2025-01-01") + pd.to_timedelta(frame.index % 700, "D")
    path, bins = tmp_path / "rows.csv", "hired=2025-07-01,2026-07-01"
    frame.assign(hired=day.strftime("%Y-%m-%d")).to_csv(path, index=False)
    found = pd.DataFrame(reported(path, "--sensitive", "hired", "--bins", bins)["rates"])
    edges = pd.to_datetime(["2025-01-01", "2025-07-01", "2026-07-01", "2030-01-01"])
    names = ["before 2025-07-01", "2025-07-01 to before 2026-07-01", "2026-07-01 or later"]
    rows = found[found["view"] == "hired"].drop_duplicates("group").set_index("group")
    expected = pd.cut(day, edges, right=False, labels=names).value_counts()
    assert rows["n"].to_dict() == expected.to_dict()
    frame.assign(hired=day.strftime("%d.%m.%Y")).to_csv(path, index=False)
    told = refused(capsys, path, "--sensitive", "hired", "--bins", bins)
    assert "'01.01.2025', which is no date such as 2026-12-31. Name the form" in told
    asked = ["--sensitive", "hired", "--bins", bins, "--date-format", "%d.%m.%Y"]
    pd.testing.assert_frame_equal(pd.DataFrame(reported(path, *asked)["rates"]), found)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["audit", "audit-data"])
def test_rows_without_an_outcome_may_be_dropped_and_are_counted(
    frame, tmp_path, capsys, kind, command
):
    """Only loans that were granted have an outcome, which is no reason to edit the file."""
    path, plain, out = (tmp_path / f"{name}.{kind}" for name in ("rows", "plain", "report"))
    paid = (frame["paid"] == "yes").astype("Int64") if command == "audit" else frame["paid"]
    paid = paid.where(frame["score"] > 0.3)
    rows = frame.assign(paid=paid, approved=(frame["score"] > 0.6).astype(int))
    rows["sex"] = rows["sex"].where(rows.index % 50 > 0)
    kept = rows[rows["paid"].notna() & rows["sex"].notna()]
    kept = kept.astype({"paid": int}) if command == "audit" else kept
    for one, where in ((rows, path), (kept, plain)):
        one.to_csv(where, index=False) if kind == "csv" else one.to_parquet(where, index=False)
    given = ["--target", "paid", "--sensitive", "sex", "--out", str(out.with_suffix(".json"))]
    given += ["--block-rows", "100", "--title", "T", "--force"]
    given += ["--prediction", "approved"] if command == "audit" else []
    told = refused(capsys, path, *given, usual=False, command=command)
    assert "--drop-missing" in told
    reports, dropping = [], ["--drop-missing", "target", "--drop-missing", "sensitive"]
    for where, asked in ((path, dropping), (plain, [])):
        assert main([command, str(where), *given, *asked]) == 0
        reports.append(json.loads(out.with_suffix(".json").read_text()))
    n_lost = len(rows) - len(kept)
    said = f"{n_lost} rows without a value of 'paid', 'sex'"
    assert reports[0].pop("about")["dropped"] == said
    reports[1].pop("about")
    assert reports[0] == reports[1]


def test_a_file_of_those_who_were_selected_says_so(frame, tmp_path, capsys):
    path = tmp_path / "granted.csv"
    for label, kind in (("yes", "positive"), ("no", "negative")):
        frame[frame["approved"] == label].to_csv(path, index=False)
        reported(path, "--sensitive", "sex")
        told = capsys.readouterr().out
        assert f"Every decision is {kind}, so groups cannot differ, and rates by outcome" in told
        assert ("known of the accepted only" in told) == (kind == "positive")
        assert "lowest impact ratio" not in told


def test_a_data_set_in_a_file_is_that_in_memory(frame, tmp_path, capsys):
    path, out = tmp_path / "people.csv", tmp_path / "data.json"
    frame.assign(age=frame["age"].where(frame["age"] > 20)).to_csv(path, index=False)
    shares, earlier = tmp_path / "shares.csv", tmp_path / "earlier.csv"
    shares.write_text("attribute,group,share\nsex,f,60\nsex,m,40\n")
    frame[::2].to_csv(earlier, index=False)
    given = ["--sensitive", "sex", "--target", "paid", "--reference", shares]
    given += ["--earlier", earlier]
    given += ["--columns", "score,job,age", "--prepared-by", "me", "--out", out]
    assert main(["audit-data", str(path), *map(str, given)]) == 0
    told = capsys.readouterr().out
    assert "sex, shares: " in told
    assert f"The report is in {out}" in told
    report = DataAudit.from_dict(json.loads(out.read_text()))
    assert report.about["prepared by"] == "me"
    assert report.about["SHA-256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    read = pd.read_csv(path)
    columns = ["score", "job", "age"]
    found = audit_data(
        read[columns], read["paid"], sensitive_features=read[["sex"]],
        reference_shares={"sex": {"f": 0.6, "m": 0.4}},
        earlier={"X": frame[::2][columns], "sensitive_features": frame[::2][["sex"]],
                 "y": frame["paid"][::2]},
    )  # fmt: skip
    for name in ("shares", "rates", "gaps", "proxies", "drift"):
        pd.testing.assert_frame_equal(
            getattr(report, name), getattr(found, name), check_dtype=False
        )
    plain = tmp_path / "shares.json"
    plain.write_text('{"sex": {"f": 0.6, "m": 0.4}}')
    less = ["--sensitive", "sex", "--columns", "job", "--reference", str(plain)]
    assert main(["audit-data", str(path), *less]) == 0
    assert "% (f) against 60.0% in the population" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--reference-shares", "nowhere.csv"], "--reference-shares 'nowhere.csv' was not"),
        (["--columns", "sex"], "has no columns besides groups and target"),
        (
            ["--sensitive", "age"],
            "more than 50 different numbers, so it is no group. Make bins of it",
        ),
        (["--reference-shares", "deep.json"], "shares 'deep.json' was not read (maximum recursion"),
        (["--columns", "wage"], "has no column 'wage'. Its columns are"),
        (["--pos-label", "maybe"], "maybe' is no label of y"),
        (["--earlier", "nowhere.csv"], "There is no file 'nowhere.csv'"),
        (["--out", "page.txt"], "--out must end in .html, .md or .json"),
    ],
)
def test_errors_of_an_audit_of_data_are_one_line(file, capsys, monkeypatch, change, message):
    monkeypatch.chdir(file.parent)
    file.with_name("deep.json").write_text("[" * 100_000)
    asked = ["--target", "paid", *["--sensitive", "sex"] * ("--sensitive" not in change), *change]
    assert message in refused(capsys, file, *asked, usual=False, command="audit-data")
