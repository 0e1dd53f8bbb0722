"""Records of audits: their parts, and how an audit is made again from a record and a file.

An audit knows the rows that it was made of as a :class:`Source`, which says what was asked, has
blocks of rows, and makes the audit again. It is made :func:`in_memory` by ``audit``, or by
``python -m skfair audit`` (``in_file`` in :mod:`skfair.report.command_audit`). :func:`parts_of`
makes the parts of a record of an audit and its source, which ``Audit.record`` writes. ``python -m
skfair verify`` (:mod:`skfair.report.command_verify`) reads a source from a record and a file, and
makes the parts again.

Digests of columns do not depend on the order of the rows. Rows have a digest of their own, which
notices columns that were combined otherwise. A digest of a few people could be guessed by trying
all possibilities, so digests are made with a random key. It lies in a file beside the record, for
those who have the rows.
"""

from __future__ import annotations

import argparse
import hmac
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from hashlib import sha256
from inspect import signature
from numbers import Integral, Real
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from skfair._typing import FloatArray
from skfair.groups.attributes import ROLES, read_columns
from skfair.groups.cohort import Cohort, kinds_of
from skfair.groups.decision_memo import Memo
from skfair.groups.record import Paths, differences, plain, write_record
from skfair.report.checks import read_condition, read_conditions
from skfair.report.files import TableFile, numbers_of
from skfair.report.options import unknown_levels
from skfair.report.own_measures import own_of
from skfair.report.reading import RawRows
from skfair.report.sentences import FILES, verdicts_of
from skfair.report.words import law_of
from skfair.utils.files import replacing
from skfair.utils.validation import one_dimensional
from skfair.utils.warn import unwanted

if TYPE_CHECKING:
    from skfair.report.audit import Audit

KIND = "skfair record of an audit"
_EXACT = 2**53  # floats hold every integer below it
_WHOLE = re.compile("0|-?[1-9][0-9]*")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
# The parts of a check that the user gives. All others are computed.
ASKED = ("conditions", "of_intersections", "groups", "allow_undefined")
_ROWS = (*RawRows._fields, *ROLES)  # the arguments of ``audit`` that are no options
# Facts in the head of an audit of a database, which say where its rows are.
_OF_ROWS = ("database", "table", "query")
# A block of a table in an engine has this entry: how many rows each of its rows stands for.
_COUNTS = "n of rows"


class Source(NamedTuple):
    """The rows of an audit, and what was asked."""

    asked: Callable[[Audit], dict[str, Any]]  # returns all that is needed to make it again
    blocks: Callable[[], Iterable[Mapping[str, Any]]]  # blocks of columns by argument of ``audit``
    again: Callable[[], Audit]  # makes the audit again


def in_memory(audit: Callable[..., Audit], arguments: dict[str, Any]) -> Source:
    """Return the source of an audit that was made by the function ``audit``."""
    return Source(partial(_asked, arguments), lambda: [arguments], partial(audit, **arguments))


def in_engine(audit: Callable[..., Audit], people: Cohort, arguments: dict[str, Any]) -> Source:
    """Return the source of an audit of a table that was counted in an engine."""
    names = signature(audit).parameters
    apart = {*_ROWS, "pos_label"}  # they are facts of the cohort
    options = {name: own for name, own in arguments.items() if name in names and name not in apart}
    kinds = kinds_of(people)
    assert kinds is not None
    table = kinds.table

    def asked(found: Audit) -> dict[str, Any]:
        columns = {name: list(own) for name, own in table.columns.items()}
        beside = {name: own for name in table.beside if (own := getattr(table, name)) is not None}
        how = {**columns, **beside, "pos_label": people.pos_label}
        return {"by": "table", "options": _options(options), "columns": how, "query": table.query}

    def again() -> Audit:
        return audit(people._read_again(), **options)

    return Source(asked, lambda: [counted_columns(people._read_again())], again)


def counted_columns(people: Cohort) -> dict[str, Any]:
    """Return the columns of a cohort of a table in an engine, with their counts, for digests.

    Weights are sums of weights there, and units have no values, so neither is among them.
    """
    columns = {name: getattr(people, name) for name in _ROWS}
    columns |= {"units": None, "sample_weight": None}
    kinds = kinds_of(people)
    assert kinds is not None
    if kinds.are_numbers:  # the rows of the groups have no labels
        columns |= dict.fromkeys(kinds.table.labels)
    return {**columns, _COUNTS: kinds.counts}


def _asked(arguments: dict[str, Any], found: Audit) -> dict[str, Any]:
    """Return the options, and how each column is read from a file."""
    options = _options(arguments)
    columns: dict[str, dict[str, Any]] = {}  # how to read columns, by their unique names in a file
    for argument, name, values in _columns(arguments, found):
        column = name if name not in columns else argument
        columns[column] = {"argument": argument, "name": name, **_kind(values)}
    named = [{"column": column, **how} for column, how in columns.items()]
    return {"by": "audit", "options": options, "columns": named}


def _options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``audit`` that are no columns, as a record can hold them."""
    options = {name: own for name, own in arguments.items() if name not in _ROWS}
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
    options["about"] = _without_files(options["about"])
    options["unknown"] = unknown_levels(options["unknown"])  # NaN would become None
    return options


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
            values = _restored(frame[column], how, options.decimal).rename(name)
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
    return {**dict.fromkeys(_ROWS), **asked["options"], **rows, "about": about}


def write_audit(
    found: Audit, source: Source, path: Path, checks: list[dict[str, Any]], after: Paths
) -> None:
    """Write the record of an audit, and the key of its digests beside it."""
    key = token_hex(32)
    parts = parts_of(found, source, checks, key)
    with unwanted(UserWarning):  # the audit itself has warned
        again = source.again()
    was, now = plain(found.to_dict()), plain(again.to_dict() | {"made_on": found.made_on})
    if differences(was, now):
        raise ValueError(
            "The rows were changed after the audit was made, so its record would not be that of "
            "these rows. Make the audit again, and record it at once."
        )
    write_record(path, KIND, parts, after)
    with replacing(path.with_suffix(".key")) as beside:
        beside.write_text(f"{key}\n", encoding="ascii")


def parts_of(
    found: Audit, source: Source, checks: list[dict[str, Any]], key: str | None
) -> dict[str, Any]:
    """Return the parts of the record of an audit. Without a key there are no digests."""
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
        asked["rows"] = {fact: about.pop(fact) for fact in _OF_ROWS if fact in about}
    return {
        "asked": asked,
        "files": of_files,
        "digests": _digests(source.blocks(), found, key) if key else {},
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


def _outcome(found: Audit, asked: dict[str, Any]) -> dict[str, Any]:
    """Check the conditions of a record, and return the numbers and the sentence."""
    texts, inside, groups, allowed = (asked[name] for name in ASKED)
    memo = {"of_intersections": inside, "groups": tuple(map(tuple, groups))}
    conditions = [read_condition(text)._replace(**memo) for text in texts]
    check = found._check(conditions, allow_undefined=allowed)
    return {**check._asdict(), "sentence": check.sentence}


def _without_files(about: Mapping[str, str] | None) -> dict[str, str]:
    """Return facts without paths of files, which tell something about the machine."""
    return {name: text for name, text in (about or {}).items() if name not in FILES}


def _columns(rows: Mapping[str, Any], found: Audit) -> Iterator[tuple[str, str, Any]]:
    """Yield the argument, the name and the values of each column of a block, attributes first."""
    names = iter([*found.attributes, *found.control_features])
    for argument, role in ROLES.items():
        if rows.get(argument) is not None:
            columns = read_columns(rows[argument], role)
            yield from ((argument, next(names), values) for _, values in columns)
    raw = RawRows._make(map(rows.get, RawRows._fields))
    for argument, name in raw.names().items():
        yield argument, name, one_dimensional(getattr(raw, argument), argument)


def _digests(blocks: Iterable[Mapping[str, Any]], found: Audit, key: str) -> dict[str, str]:
    """Return a digest of each column, and of the rows.

    The digest of a column is the HMAC-SHA-256 of lines with a value and the number of times that it
    occurs. Lines are sorted, and values are written as by :func:`_text`. For the rows, the value is
    the SHA-256 of the values of all columns in the order of their names, with commas between them.
    """
    counts: dict[str, Counter[str]] = {}
    for block in blocks:
        named = {f"{argument} {name}": own for argument, name, own in _columns(block, found)}
        columns = {name: _texts(named[name]) for name in sorted(named)}
        n_rows = block.get(_COUNTS)
        for name, texts in columns.items():
            counts.setdefault(name, Counter()).update(_counted(texts, n_rows))
        rows = _counted(map(",".join, zip(*columns.values(), strict=True)), n_rows)
        whole = {sha256(text.encode()).hexdigest(): n for text, n in rows.items()}
        counts.setdefault("rows", Counter()).update(whole)
    digests = {}
    for name, own in counts.items():
        lines = "".join(f"{text} {own[text]}\n" for text in sorted(own))
        digests[name] = hmac.new(bytes.fromhex(key), lines.encode(), "sha256").hexdigest()
    return digests


def _counted(texts: Iterable[str], n_rows: Any) -> Counter[str]:
    """Count texts, each once or as many times as it has rows."""
    if n_rows is None:
        return Counter(texts)
    counts: Counter[str] = Counter()
    for text, n in zip(texts, n_rows.tolist(), strict=True):
        counts[text] += n
    return counts


def _texts(values: Any) -> list[str]:
    """Return the text of each value of a column."""
    codes, uniques = pd.factorize(pd.Series(values))
    is_float = pd.api.types.is_float_dtype(uniques.dtype)
    known = _of_floats(np.asarray(uniques, float)) if is_float else [*map(_text, uniques)]
    texts = np.array([*known, "null"], object)  # -1 is the code of missing values
    return list(texts[codes])


def _text(value: Any) -> str:
    """Return a value as JSON, the same from whatever kind of file it was read.

    Truth values are 1 and 0, and times are written as in ISO 8601. The text of a whole number is
    that number, because files do not always tell them apart.
    """
    if isinstance(value, Integral | np.bool_):
        return str(int(value))
    if isinstance(value, Real | Decimal):
        return _of_floats(np.array([value], float))[0]
    is_time = isinstance(value, date | np.datetime64)
    text = pd.Timestamp(value).isoformat() if is_time else str(value)
    return text if _WHOLE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _of_floats(numbers: FloatArray) -> list[str]:
    """Return the texts of numbers: whole ones have no point, and others are rounded to single.

    Readers of files differ in the last digit.
    """
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32).astype(np.float64)
    is_exact = (numbers == np.trunc(numbers)) & (np.abs(numbers) < _EXACT)
    rounded = np.where(is_exact, numbers, single).tolist()
    return [str(int(x)) if x.is_integer() else repr(x) for x in rounded]


def _kind(values: Any) -> dict[str, Any]:
    """Return how a column is made again of what stands in a file."""
    column, kind = pd.Series(values), "text"
    how: dict[str, Any] = {"has_missing": bool(column.isna().any())}
    if isinstance(column.dtype, pd.CategoricalDtype):
        how["levels"] = column.cat.categories.tolist()
        column = column.cat.categories.to_series()
    column = column.infer_objects()
    if pd.api.types.is_numeric_dtype(column.dtype):  # numbers or truth values
        kind = str(column.dtype)
        # Levels may be integers although values are missing. numpy has no column of such values.
        if how["has_missing"] and kind.startswith("int"):
            kind = "float64"
    elif pd.api.types.is_datetime64_any_dtype(column.dtype):
        kind = "times"
    return {"kind": kind, **how}


def _restored(values: pd.Series, how: dict[str, Any], decimal: str | None) -> pd.Series:
    """Return a column of a file as it was when the audit was made."""
    kind, is_text = how["kind"], pd.api.types.is_string_dtype(values.dtype)
    if is_text and (how["has_missing"] or kind != "text"):
        values = values.mask(values == "")
    if kind == "text":
        values = values.astype(object).where(values.isna(), values.map(str))
    elif kind == "times":
        values = pd.to_datetime(values)
    elif is_text and kind.startswith("bool"):
        values = values.str.lower().map(_TRUTH).astype(kind)
    else:
        if is_text:
            values = pd.to_numeric(values) if decimal is None else numbers_of(values, decimal)
        values = values.astype(kind)
    return values if "levels" not in how else values.astype(pd.CategoricalDtype(how["levels"]))
