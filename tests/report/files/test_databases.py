"""Audits of tables in databases by the shell: as of the same rows in a file, and with records."""

import hashlib
import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from skfair import Cohort
from skfair.__main__ import main
from skfair.records.record import canonical
from skfair.report import audit
from tests.seeds import generator

N = 2000
NAMES = "--target repaid --prediction approved --sensitive sex,age --bins age=30,50"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the same rows as CSV, parquet by year, and a table of a DuckDB file."""
    monkeypatch.chdir(tmp_path)
    rng = generator()
    rows = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], N),
            "age": rng.integers(18, 80, N),
            "region": rng.choice(["north", "south"], N),
            "repaid": rng.integers(0, 2, N),
            "approved": rng.integers(0, 2, N),
            "score": rng.random(N).round(2),
            "owner": rng.integers(0, N // 2, N),
            "year": rng.choice([2025, 2026], N),
        }
    )
    rows.to_csv("rows.csv", index=False)
    for year, own in rows.groupby("year"):
        part = tmp_path / "lake" / f"year={year}"
        part.mkdir(parents=True)
        own.drop(columns="year").to_parquet(part / "rows.parquet")
    with duckdb.connect("rows.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("create table decisions as select * from given")
        connection.execute("create table other as select 1 as number")
    return rows


def shell(capsys, command):
    """Run a command, and return its code and what it prints."""
    words = [
        part
        for i, text in enumerate(command.split('"'))
        for part in ([text] if i % 2 else text.split())
    ]
    code = main(words)
    return code, capsys.readouterr()


SOURCES = [
    "rows.duckdb --table decisions",
    'rows.duckdb --query "select * from decisions"',
    "lake",
    "lake/*/*.parquet",
    'rows.csv --query "select * from data"',
]
OPTIONS = [
    "",
    "--control region",
    "--units owner",
    "--preset ugesp",
    '--reference "sex=m"',
    '--fail-if "predictive_parity_ratio < 0.1" --min-ratio 0.5',
    "--missing unknown --min-group-size 50 --confidence 0.9",
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.usefixtures("folder")
def test_audits_are_those_of_the_file(source, options, capsys):
    found = []
    for own in (source, "rows.csv"):
        code, printed = shell(capsys, f"audit {own} {NAMES} {options} --out page.json --force")
        page = json.loads(Path("page.json").read_text())
        verdicts = printed.out.splitlines()[1:]
        numbers = {name: pd.DataFrame(page[name]) for name in ("rates", "gaps", "subgroups")}
        found.append((code, verdicts, numbers, page.get("n_units")))
    assert found[0][:2] == found[1][:2], printed.err
    assert found[0][3] == found[1][3]
    for name, table in found[0][2].items():
        pd.testing.assert_frame_equal(table, found[1][2][name], rtol=1e-9)


@pytest.mark.usefixtures("folder")
def test_scores_thresholds_and_conditions_about_rows(folder, capsys):
    names = "--target repaid --score score --threshold 0.5 --sensitive sex"
    code, printed = shell(capsys, f'audit "lake/year=2026/*.parquet" {names}')
    assert code == 0
    assert f"{(folder['year'] == 2026).sum():,} rows" in printed.out
    query = '"select * from decisions where year = 2026"'
    code, other = shell(capsys, f"audit rows.duckdb --query {query} {names}")
    assert printed.out.splitlines()[1:] == other.out.splitlines()[1:]


@pytest.mark.usefixtures("folder")
def test_rows_without_a_value(folder, capsys):
    """They are dropped and counted, or are a group of their own."""
    with duckdb.connect("rows.duckdb") as connection:
        connection.execute("update decisions set repaid = null where rowid % 50 = 0")
        connection.execute("update decisions set sex = null where rowid % 40 = 1")
    options = "--drop-missing target --missing nowhere --out page.json --force"
    code, _ = shell(capsys, f"audit rows.duckdb --table decisions {NAMES} {options}")
    page = json.loads(Path("page.json").read_text())
    assert code == 0
    assert page["about"]["dropped"] == f"{N // 50} rows without a value of 'repaid'"
    assert page["n_rows"] == N - N // 50
    of_sex = [row for row in page["rates"] if row["view"] == "sex"]
    assert {row["group"] for row in of_sex} == {"f", "m", "nowhere"}
    assert {row["apart"] for row in of_sex if row["group"] == "nowhere"} == {"unknown"}


def test_what_is_no_number_is_missing(folder, capsys):
    """NaN is a missing value, and not the largest number, as in files."""
    ages = folder["age"].astype(float).where(np.arange(N) % 20 > 0)
    Path("ages").mkdir()
    folder.assign(age=ages).pipe(pl.from_pandas, nan_to_null=False).write_parquet("ages/a.parquet")
    folder.assign(age=ages).to_csv("ages.csv", index=False)
    for options in ("--missing nowhere", "--drop-missing sensitive"):
        found = []
        for source in ("ages", "ages.csv"):
            code, _ = shell(capsys, f"audit {source} {NAMES} {options} --out page.json --force")
            page = json.loads(Path("page.json").read_text())
            found.append((code, page["n_rows"], {row["group"] for row in page["rates"]}))
        assert found[0] == found[1]
        assert found[0][0] == 0


WRONG = {
    "rows.duckdb --table decisions --sensitive owner": "different numbers, so it is no group",
    "rows.duckdb --table decisions --bins agee=1,2": "--bins names 'agee'",
    "rows.duckdb --table decisions --sensitive region --bins region=1,2": "--bins makes no groups",
    'rows.duckdb --query ""': "returns no rows",
    "rows.duckdb": r"has the tables 'decisions', 'other'. Name one: --table decisions",
    "rows.duckdb --table decision": "no table 'decision'. Did you mean 'decisions'",
    "nowhere.duckdb --table decisions": "no file 'nowhere.duckdb'",
    'rows.duckdb --query "select nothing"': "DuckDB does not read rows.duckdb",
    'rows.duckdb --table decisions --query "select 1"': "--table and --query",
    "rows.duckdb --table decisions --decimal ,": "'--decimal' says how texts in a file are read",
    "rows.duckdb --table decisions --prediction approvd": "no column 'approvd'",
}


@pytest.mark.parametrize("source", WRONG)
@pytest.mark.usefixtures("folder")
def test_what_is_wrong_is_said(source, capsys):
    names = NAMES if "approvd" not in source else "--sensitive sex"
    names = "--prediction approved" if "--sensitive" in source else names
    names = names if "--bins" not in source else names.replace("--bins age=30,50", "")
    code, printed = shell(capsys, f"audit {source} {names}")
    assert code == 2
    assert WRONG[source] in printed.err


@pytest.mark.usefixtures("folder")
def test_a_record_asks_the_engine_again(folder, capsys):
    command = f"audit rows.duckdb --table decisions {NAMES} --record record.json"
    assert shell(capsys, command)[0] == 0
    assert shell(capsys, "verify record.json --data rows.duckdb")[0] == 0
    moved = "select * from decisions order by hash(rowid)"
    assert shell(capsys, f'verify record.json --data rows.duckdb --query "{moved}"')[0] == 0
    Path("copy.duckdb").write_bytes(Path("rows.duckdb").read_bytes())
    assert shell(capsys, "verify record.json --data copy.duckdb")[0] == 0
    with duckdb.connect("rows.duckdb") as connection:
        connection.execute("update decisions set approved = 1 - approved where rowid = 3")
    code, printed = shell(capsys, "verify record.json --data rows.duckdb")
    assert code == 1
    assert "data, y_pred approved: other values" in printed.out


@pytest.mark.parametrize("options", [{}, {"units": "owner"}, {"control_features": "region"}])
@pytest.mark.usefixtures("folder")
def test_audits_of_tables_in_python_have_records(options, folder, capsys):
    names = {"y_true": "repaid", "y_pred": "approved", "sensitive_features": "sex", **options}
    with duckdb.connect("rows.duckdb", read_only=True) as connection:
        people = Cohort.from_table(connection.table("decisions"), **names, where={"year": 2026})
        audit(people, n_simulations=20).record(
            "record.json", fail_if="demographic_parity_ratio < .1"
        )
    assert shell(capsys, "verify record.json --data rows.duckdb")[0] == 0
    people = Cohort.from_table(pl.from_pandas(folder).lazy(), **names)
    audit(people, n_simulations=20).record("polars.json")
    assert shell(capsys, "verify polars.json --data rows.duckdb --table decisions")[0] == 0
    other = '"select * from decisions where year = 2025"'
    assert shell(capsys, f"verify polars.json --data rows.duckdb --query {other}")[0] == 1


def test_rows_that_change_before_the_record_are_noticed(folder, tmp_path):
    connection = duckdb.connect("rows.duckdb")
    people = Cohort.from_table(
        connection.table("decisions"), y_pred="approved", sensitive_features="sex"
    )
    found = audit(people, n_simulations=20)
    assert np.isfinite(found.value("demographic_parity_difference"))
    connection.execute("insert into decisions select * from decisions limit 1")
    with pytest.raises(RuntimeError, match="rows arrive while it is read"):
        found.record(tmp_path / "record.json")
    connection.close()


def test_sqlite_is_read_where_duckdb_has_its_extension(folder, capsys):
    import sqlite3

    try:
        duckdb.connect().execute("install sqlite; load sqlite")
    except duckdb.Error:
        pytest.skip("DuckDB downloads its extension for SQLite, and cannot here")
    with sqlite3.connect("rows.sqlite") as connection:
        folder.to_sql("decisions", connection, index=False)
    code, printed = shell(capsys, f"audit rows.sqlite {NAMES}")
    assert code == 0, printed.err


@pytest.mark.parametrize("source", ["rows.duckdb", "lake", "lake/*/*.parquet", "rows.csv"])
def test_the_query_of_a_record_reads_and_writes_nothing_else(source, folder, capsys):
    Path("secret.csv").write_text("sex,approved\n" + "f,1\nm,0\n" * 50)
    table = "decisions" if source == "rows.duckdb" else "data"
    command = f'audit {source} --query "select * from {table}" --prediction approved'
    assert shell(capsys, f"{command} --sensitive sex --record record.json")[0] == 0
    assert shell(capsys, f"verify record.json --data {source}")[0] == 0
    record = json.loads(Path("record.json").read_text())
    del record["checksum"]
    for query in (
        "select * from 'secret.csv'",
        f"copy (select * from {table}) to 'copied.csv'",
        f"select * from {table} union all select * from read_csv('secret.csv')",
    ):
        record["asked"]["options"]["query"] = query
        check = hashlib.sha256(canonical(record)).hexdigest()
        Path("record.json").write_bytes(canonical(record | {"checksum": check}))
        code, printed = shell(capsys, f"verify record.json --data {source}")
        assert code == 2
        assert "Permission" in printed.err
    assert not Path("copied.csv").exists()
