"""Tables in databases and folders, which the commands audit where they are.

DuckDB opens a database of its own, one of SQLite or PostgreSQL, or files of parquet, and a cohort
counts the rows there (:meth:`skfair.Cohort.from_table`). ``audit_file`` in
:mod:`skfair.report.commands.audit` decides by :func:`is_database` which files these are. Groups are
texts, names of bins or the name of rows without a value, as in other files.
"""

from __future__ import annotations

import argparse
from datetime import datetime
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import pandas as pd

from skfair.groups.cohort import Cohort, with_columns
from skfair.report.files.table_file import TableFile, check_levels
from skfair.utils.text import did_you_mean, listed

_POSTGRES = ("postgres://", "postgresql://")
# The first bytes of files, and the place of those of DuckDB
_SQLITE, _DUCKDB, _PLACE = b"SQLite format 3", b"DUCK", 8
# A table made of files has this name in a query.
_OF_FILES = "data"


def is_database(path: str, table: str | None, query: str | None) -> bool:
    """Whether a table is read by DuckDB: one in a database or in several files, or a query."""
    several = "*" in path or Path(path).is_dir()
    is_named = table is not None or query is not None
    return is_named or path.startswith(_POSTGRES) or several or bool(_kind(path))


def open_table(
    path: str, table: str | None, query: str | None, *, is_of_record: bool = False
) -> Any:
    """Return a table or a query as a relation of DuckDB; nothing is read yet.

    The query of a record may come from a stranger, so it reads no other file, and writes none.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ImportError(
            f"{path} is read by DuckDB, which is not installed: pip install duckdb."
        ) from error
    if table is not None and query is not None:
        raise ValueError("--table and --query are two ways to say which rows. Pass one.")
    kind = "postgres" if path.startswith(_POSTGRES) else _kind(path)
    if not kind and not _exists(path):
        raise ValueError(f"There is no file {path!r}. Check the path.")
    try:
        connection = duckdb.connect(path, read_only=True) if kind == "duckdb" else duckdb.connect()
        connection.execute("set enable_progress_bar = false")
        # DuckDB takes isnan() for false by the statistics of parquet files, which leave out NaN.
        connection.execute("set disabled_optimizers = 'statistics_propagation'")
        if kind in ("sqlite", "postgres"):
            connection.execute(f"install {kind}; load {kind}")
            connection.execute(f"attach {_quoted(path)} as source (type {kind}, read_only)")
            connection.execute("use source")
        elif not kind:
            connection.execute(f"create view {_OF_FILES} as select * from {_reader(path)}")
        if query is not None and is_of_record:
            _lock(connection, path, kind)
        if query is not None:
            found = connection.sql(query)
            if found is None:
                raise ValueError(f"--query {query!r} returns no rows. Write it as select ... from.")
            return found
        return connection.table(_named(connection, table))
    except duckdb.Error as error:
        shown = "the database" if kind == "postgres" else path  # a URL may have a password
        said = str(error).replace(path, shown)
        raise ValueError(f"DuckDB does not read {shown}: {said}") from (
            None if kind == "postgres" else error
        )


def _lock(connection: Any, path: str, kind: str) -> None:
    """Let a connection read the files of its path, and nothing else."""
    if kind in ("sqlite", "postgres"):
        raise ValueError(
            "The record asks for rows by a query. It is not run in SQLite and PostgreSQL, because "
            "it could do more than read. See asked, query in the record, and pass it: --query."
        )
    if not kind:
        files = [path, *map(str, _matching(path))] if "*" in path else [path]
        places = [_quoted(own) for file in files for own in (file, str(Path(file).resolve()))]
        what = "directories" if Path(path).is_dir() else "paths"
        connection.execute(f"set allowed_{what} = [{', '.join(places)}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def cohort_of_table(table: TableFile, relation: Any, pos_label: Any = None) -> tuple[Cohort, int]:
    """Count a relation by the columns of a file, and return how many rows were dropped first."""
    import narwhals as nw

    frame: Any = nw.from_native(relation)
    columns: dict[str, Any] = {**table.named, "sensitive_features": table.groups}
    columns |= {"control_features": table.within} if table.within else {}
    known = frame.collect_schema().names()
    unknown = [name for name in table.used if name not in known]
    if unknown:
        raise ValueError(
            f"The table has no column {listed(unknown)}. Its columns are {listed(known)}."
            f"{did_you_mean(unknown[0], known)}"
        )
    table.check_bins()
    schema = frame.collect_schema()
    n_dropped = 0
    if table.needed:
        lacks = reduce(or_, (_is_missing(name, schema) for name in table.needed))
        lacking = frame.select(lacks.cast(nw.Int64).sum().alias("n")).collect().to_pandas()
        n_dropped = int(lacking["n"].fillna(0).iloc[0])
        frame = frame.filter(~lacks)
    for name in table.bins:
        if not (schema[name].is_numeric() or schema[name].is_temporal()):
            raise ValueError(
                f"Column {name!r} has the type {schema[name]}, so --bins makes no groups of it. "
                "Cast it in the query: --query."
            )
    frame = frame.with_columns(**{name: _groups(table, name, schema) for name in table.attributes})
    people = Cohort.from_table(frame, **columns, pos_label=pos_label)
    for argument in ("sensitive_features", "control_features"):
        own = getattr(people, argument)
        for name in () if own is None else set(own.columns) - set(table.bins):
            check_levels(name, set(own[name].dropna().astype(str)))
    order = {name: list(table.levels(name)) for name in table.bins}
    changed: dict[str, Any] = {}
    for argument in ("sensitive_features", "control_features"):
        own = getattr(people, argument)
        for name in () if own is None else set(own.columns) & set(order):
            levels = order[name] + ([] if table.missing is None else [table.missing])
            binned = pd.Categorical(own[name], levels).remove_unused_categories()
            own = own.assign(**{name: binned})
        changed[argument] = own
    return with_columns(people, **changed), n_dropped


def _is_missing(name: str, schema: Any) -> Any:
    """Whether a column has no value, as an expression of narwhals; NaN is none."""
    import narwhals as nw

    column = nw.col(name)
    return column.is_null() | column.is_nan() if schema[name].is_float() else column.is_null()


def _groups(table: TableFile, name: str, schema: Any) -> Any:
    """Return the group of each row by one attribute, as an expression of narwhals."""
    import narwhals as nw

    column, group = nw.col(name), nw.col(name).cast(nw.String).str.strip_chars()
    if name in table.bins:
        first, *others = table.levels(name)
        group = nw.lit(first)
        for edge, level in zip(table.bins[name], others, strict=True):
            kind: Any = nw.Datetime if isinstance(edge, datetime) else nw.Float64
            group = nw.when(column.cast(kind) >= edge).then(nw.lit(level)).otherwise(group)
    elif schema[name] == nw.Boolean:  # as in files
        group = nw.when(column).then(nw.lit("True")).otherwise(nw.lit("False"))
    missing = nw.lit(table.missing, dtype=nw.String)
    return nw.when(_is_missing(name, schema)).then(missing).otherwise(group)


def refuse_texts(arguments: argparse.Namespace) -> None:
    """Raise for options about how texts in files are read."""
    given = [
        option
        for option, is_given in (
            ("--decimal", arguments.decimal is not None),
            ("--encoding", arguments.encoding != "utf-8"),
            ("--date-format", arguments.date_format is not None),
        )
        if is_given
    ]
    if given:
        raise ValueError(
            f"{listed(given)} says how texts in a file are read, but a database has types. Write "
            'it in the query: --query "select cast(age as int) as age, ... from decisions".'
        )


def facts_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return what is said about the rows in the head of a report."""
    name = "database" if arguments.file.startswith(_POSTGRES) else Path(arguments.file).name
    facts = {"database": name, "table": arguments.table or "", "query": arguments.query or ""}
    return {fact: text for fact, text in facts.items() if text}


def _kind(path: str) -> str:
    """Return "duckdb" or "sqlite" if a file is one of these, by its first bytes; else ""."""
    if not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        start = file.read(_PLACE + 8)
    if start[_PLACE:].startswith(_DUCKDB):
        return "duckdb"
    return "sqlite" if start.startswith(_SQLITE) else ""


def _exists(path: str) -> bool:
    return Path(path).exists() or ("*" in path and any(_matching(path)))


def _matching(path: str) -> Any:
    """Yield the files that a path with * in it names."""
    whole = Path(path)
    parts = whole.parts
    fixed = next(i for i, part in enumerate(parts) if "*" in part)
    return Path(*parts[:fixed] or ["."]).glob(str(Path(*parts[fixed:])))


def _reader(path: str) -> str:
    """Return what DuckDB reads files with: all files of a folder, or those that are named."""
    if Path(path).is_dir():
        path = f"{path}/**/*.parquet"
    reader = "read_csv" if path.lower().endswith((".csv", ".csv.gz", ".tsv")) else "read_parquet"
    options = "" if reader == "read_csv" else ", hive_partitioning = true"
    return f"{reader}({_quoted(path)}, union_by_name = true{options})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(connection: Any, table: str | None) -> str:
    """Return the name of the table; without one there must be only one table."""
    known = [row[0] for row in connection.execute("show tables").fetchall()]
    if table is not None:
        if table not in known and "." not in table:
            raise ValueError(
                f"There is no table {table!r}.{did_you_mean(table, known)} There are "
                f"{listed(known)}."
            )
        return table
    if len(known) != 1:
        raise ValueError(
            f"The database has the tables {listed(known)}. Name one: --table {known[0]}."
            if known
            else "The database has no tables."
        )
    return str(known[0])
