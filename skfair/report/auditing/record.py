"""Records of audits: their parts, and how an audit is made again from a record and a file.

An audit knows the rows that it was made of as a :class:`Source`, which says what was asked, has
digests of the rows, and makes the audit again. It is made :func:`in_memory` by ``audit``, or by
``python -m skfair audit`` (``in_file`` in :mod:`skfair.report.commands.audit`). :func:`parts_of`
makes the parts of a record of an audit, which ``Audit.record`` writes. ``python -m skfair verify``
(:mod:`skfair.report.commands.verify`) makes the audit again from a record and a file, and then the
parts.

How columns are read back, and what their digests are, is in
:mod:`skfair.report.auditing.recorded_columns`. A digest of a few people could be guessed by trying
all possibilities, so digests are made with a random key. It lies in a file beside the record, for
those who have the rows. The record has a hash of the key, so that another key is noticed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from inspect import signature
from numbers import Integral
from pathlib import Path
from secrets import token_hex
from typing import Any

import pandas as pd

from skfair.groups.attributes import ROLES, read_columns
from skfair.groups.cohort import COLUMNS, Cohort, cohort_of, given_columns, kinds_of
from skfair.records.decision_memo import Memo
from skfair.records.record import Paths, check_new, differences, plain, write_record
from skfair.report.auditing.own_measures import own_of
from skfair.report.auditing.recorded_columns import Digests, kind_of_column, restored
from skfair.report.files.table_file import TableFile
from skfair.report.results.checks import read_condition, read_conditions
from skfair.report.results.result import AuditTables, Source
from skfair.report.results.sentences import FILES, verdicts_of
from skfair.report.tables.options import unknown_levels
from skfair.report.tables.reading import names_of
from skfair.report.words import law_of
from skfair.utils.files import replacing
from skfair.utils.validation import one_dimensional
from skfair.utils.warn import unwanted

KIND = "skfair record of an audit"
# An audit with more simulations has no record, because the record could keep a verifier busy for
# hours. The default is 500. This number takes 30 CPU seconds for three attributes of four levels
# (1.4 ms each), and up to 100 for ten attributes that are all crossed, so twice as many take twice
# as long. Half as many would not allow p-values below 1e-4.
MOST_SIMULATIONS = 20_000
# The parts of a check that the user gives. All others are computed.
ASKED = ("conditions", "of_intersections", "groups", "allow_undefined")
# Facts in the head of an audit of a database, which say where its rows are.
OF_ROWS = ("database", "table", "query")
# A block of a table in an engine has this entry: how many rows each of its rows stands for.
_COUNTS = "n of rows"


def in_memory(audit: Callable[..., AuditTables], arguments: dict[str, Any]) -> Source:
    """Return the source of an audit that was made by the function ``audit``."""
    return Source(
        partial(_asked, arguments),
        lambda found, key: digests_of(arguments, found, key),
        partial(audit, **arguments),
    )


def in_engine(
    audit: Callable[..., AuditTables], people: Cohort, arguments: dict[str, Any]
) -> Source:
    """Return the source of an audit of a table that was counted in an engine."""
    names = signature(audit).parameters
    apart = {*COLUMNS, "pos_label"}  # they are facts of the cohort
    options = {name: own for name, own in arguments.items() if name in names and name not in apart}
    kinds = kinds_of(people)
    assert kinds is not None
    table = kinds.table

    def asked(found: AuditTables) -> dict[str, Any]:
        columns = {name: list(own) for name, own in table.columns.items()}
        beside = {name: own for name in table.beside if (own := getattr(table, name)) is not None}
        how = {**columns, **beside, "pos_label": people.pos_label}
        return {"by": "table", "options": _options(options), "columns": how, "query": table.query}

    def again() -> AuditTables:
        return audit(people._read_again(), **options)

    def digests(found: AuditTables, key: str) -> dict[str, str]:
        return digests_of(counted_columns(people._read_again()), found, key)

    return Source(asked, digests, again)


def counted_columns(people: Cohort) -> dict[str, Any]:
    """Return the columns of a cohort of a table in an engine, with their counts, for digests.

    Weights are sums of weights there, and units have no values, so neither is among them.
    """
    columns = {name: getattr(people, name) for name in COLUMNS}
    columns |= {"units": None, "sample_weight": None}
    kinds = kinds_of(people)
    assert kinds is not None
    if kinds.are_numbers:  # the rows of the groups have no labels
        columns |= dict.fromkeys(kinds.table.labels)
    return {**columns, _COUNTS: kinds.counts}


def _asked(arguments: dict[str, Any], found: AuditTables) -> dict[str, Any]:
    """Return the options, and how each column is read from a file."""
    options = _options(arguments)
    columns: dict[str, dict[str, Any]] = {}  # how to read columns, by their unique names in a file
    for argument, name, values in _columns(arguments, found.attributes, found.control_features):
        column = name if name not in columns else argument
        columns[column] = {"argument": argument, "name": name, **kind_of_column(values)}
    named = [{"column": column, **how} for column, how in columns.items()]
    return {"by": "audit", "options": options, "columns": named}


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``audit`` that are no columns, as a record can hold them."""
    options = {name: own for name, own in arguments.items() if name not in COLUMNS}
    if not isinstance(options["random_state"], Integral):
        raise ValueError(
            f"An audit with random_state={options['random_state']!r} cannot be computed again, so "
            "it has no record. Pass a number."
        )
    if own := own_of(options["metrics"]):
        raise ValueError(
            f"An audit with {own[0]!r} has no record, because a record holds no functions. Leave "
            "the metric out, and report it by group_report(metrics=)."
        )
    check_simulations(options["n_simulations"])
    options["about"] = _without_files(options["about"])
    options["unknown"] = unknown_levels(options["unknown"])  # NaN would become None
    return options


def check_simulations(number: Any) -> None:
    """Raise if an audit has more simulations than others would wait for."""
    if isinstance(number, Integral) and int(number) > MOST_SIMULATIONS:
        raise ValueError(
            f"n_simulations is {number:,}. Records hold audits with at most {MOST_SIMULATIONS:,}, "
            "so that others can compute them again in minutes. Audit with fewer simulations."
        )


def arguments_of(
    asked: dict[str, Any], files: dict[str, str], options: argparse.Namespace
) -> dict[str, Any]:
    """Return the arguments of ``audit`` that a record names, with the columns of a file.

    ``files`` are facts about the audit.
    """
    names = [how["column"] for how in asked["columns"]]
    table = TableFile.of_columns(options.data, names, options.encoding or "utf-8")
    table.check()
    frame, rows = table.as_written(), dict[str, Any]()
    for how in asked["columns"]:
        column, argument, name = (how[part] for part in ("column", "argument", "name"))
        try:
            values = restored(frame[column], how, options.decimal).rename(name)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {column!r} of {table.path.name} does not hold {how['kind']}, as it did "
                f"when the record was made ({error})."
            ) from error
        if argument in ROLES:
            rows[argument] = rows.get(argument, pd.DataFrame()).assign(**{name: values})
        else:
            rows[argument] = values
    about = _without_files(asked["options"]["about"]) | files
    return {**dict.fromkeys(COLUMNS), **asked["options"], **rows, "about": about}


def write_audit(
    found: AuditTables, path: Path, checks: list[dict[str, Any]], after: Paths, force: bool
) -> None:
    """Write the record of an audit, and the key of its digests beside it."""
    source = found._source
    assert source is not None
    place = path.with_suffix(".key")
    check_new(path, place, force=force)
    key = token_hex(32)
    parts = parts_of(found, checks, key)
    if not source.is_read_once:
        with unwanted(UserWarning):  # the audit itself has warned
            again = source.again()
        was, now = plain(found.to_dict()), plain(again.to_dict() | {"made_on": found.made_on})
        if differences(was, now):
            raise ValueError(
                "The rows were changed after the audit was made, so its record would not be that "
                "of these rows. Make the audit again, and record it at once."
            )
    write_record(path, KIND, parts, after, force=force)
    with replacing(place, anew=True) as beside:
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # for the owner only
        beside.write_text(f"{key}\n", encoding="ascii")


def hash_of_key(key: str) -> str:
    """Return what a record says of its key."""
    return sha256(bytes.fromhex(key)).hexdigest()


def parts_of(found: AuditTables, checks: list[dict[str, Any]], key: str) -> dict[str, Any]:
    """Return the parts of the record of an audit."""
    source = found._source
    assert source is not None
    tables = found.to_dict()
    del tables["made_on"], tables["version"]  # the record has its own
    about = tables["about"] = dict(tables["about"])
    of_files = {
        fact: {"name": about.pop(fact), "sha256": about.pop(digest)}
        for fact, digest in FILES.items()
        if fact in about
    }
    sentences = verdicts_of(found)
    asked = source.asked(found)
    if asked["by"] == "command":  # verify may name another copy, or say the rows otherwise
        asked["rows"] = {fact: about.pop(fact) for fact in OF_ROWS if fact in about}
    return {
        "asked": asked,
        "files": of_files,
        "key_sha256": hash_of_key(key),
        "digests": source.digests(found, key),
        "found": tables,
        "sentences": sentences,
        "law": law_of(found.preset) or {},
        "checks": [own | _outcome(found, own) for own in checks],
    }


def asked_checks(conditions: Iterable[Memo], allow_undefined: bool) -> list[dict[str, Any]]:
    """Return as plain data what is asked by conditions that must not hold, or by memos."""
    checks = []
    for own in map(read_conditions, conditions):
        texts, inside = [one.text for one in own], all(one.of_intersections for one in own)
        groups = [[*pair] for pair in own[0].groups]  # those of the memo, for each of its limits
        checks.append(dict(zip(ASKED, (texts, inside, groups, allow_undefined), strict=True)))
    return checks


def _outcome(found: AuditTables, asked: dict[str, Any]) -> dict[str, Any]:
    """Check the conditions of a record, and return the numbers and the sentence."""
    texts, inside, groups, allowed = (asked[name] for name in ASKED)
    memo = {"of_intersections": inside, "groups": tuple(map(tuple, groups))}
    conditions = [read_condition(text)._replace(**memo) for text in texts]
    check = found._check(conditions, allow_undefined=allowed)
    return {**check._asdict(), "sentence": check.sentence}


def _without_files(about: Mapping[str, str] | None) -> dict[str, str]:
    """Return facts without paths of files, which tell something about the machine."""
    return {name: text for name, text in (about or {}).items() if name not in FILES}


def _columns(
    rows: Mapping[str, Any], attributes: Iterable[str], within: Iterable[str]
) -> Iterator[tuple[str, str, Any]]:
    """Yield the argument, the name and the values of each column of a block, attributes first."""
    names = iter([*attributes, *within])
    for argument, role in ROLES.items():
        if rows.get(argument) is not None:
            columns = read_columns(rows[argument], role)
            yield from ((argument, next(names), values) for _, values in columns)
    for argument, name in names_of(given_columns(cohort_of(**rows))).items():
        yield argument, name, one_dimensional(rows[argument], argument)


def digests_of(rows: Mapping[str, Any], found: AuditTables, key: str) -> dict[str, str]:
    """Return the digests of columns by argument of ``audit``."""
    digests, columns = Digests(), named_columns(rows, found.attributes, found.control_features)
    texts = {name for name, own in columns.items() if kind_of_column(own)["kind"] == "text"}
    digests.add(columns, rows.get(_COUNTS), texts)
    return digests.of(key)


def named_columns(
    rows: Mapping[str, Any], attributes: Iterable[str], within: Iterable[str]
) -> dict[str, Any]:
    """Return columns by argument and name, as digests name them."""
    return {f"{argument} {name}": own for argument, name, own in _columns(rows, attributes, within)}
