"""The part of ``python -m skfair verify`` that computes the record of an audit again.

``run_verify`` in :mod:`skfair.records.record` reads the record, calls :func:`verify_audit`, and
compares what it returns with the record.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from secrets import token_hex
from typing import Any

from skfair.groups.cohort import Cohort
from skfair.records.record import NOTE, Finding, unused
from skfair.report.auditing.audit import Audit, audit
from skfair.report.auditing.record import (
    ASKED,
    OF_ROWS,
    arguments_of,
    check_simulations,
    hash_of_key,
    parts_of,
)
from skfair.report.commands.audit import audit_file, options_of_record
from skfair.report.files.databases import open_table

_DIGEST = re.compile("[0-9a-f]{64}")


def verify_audit(
    record: dict[str, Any], options: argparse.Namespace
) -> tuple[dict[str, Any], list[Finding]]:
    """Compute the parts of a record again. The record loses what is compared here."""
    key = _key(record.pop("key_sha256"), options)
    files, digests, asked = record.pop("files"), record.pop("digests"), record["asked"]
    check_simulations(asked["options"].get("n_simulations"))
    if options.model_file is not None and not Path(options.model_file).is_file():
        raise ValueError(f"There is no file {options.model_file!r} for --model-file.")
    given = {"file": options.data, "model file": options.model_file}
    named = {fact: given[fact] for fact in files if given[fact] is not None}
    again = _audited(asked, named, options)
    checks = [{name: own[name] for name in ASKED} for own in record["checks"]]
    parts = parts_of(again, checks, key or token_hex(32))
    del parts["key_sha256"]
    found = list(_unused(record, files, options))
    if key is None:
        name = Path(options.record).with_suffix(".key").name
        found.append(Finding(f"There is no {name}: digests were not compared.", NOTE))
    found += _of_digests(digests, parts.pop("digests"), is_compared=key is not None)
    found += _of_files(files, parts.pop("files"), asked["by"])
    if parts["asked"]["by"] == "command":  # verify may read another copy, by another encoding
        for name in ("encoding", "decimal", "table", "query"):
            parts["asked"]["options"][name] = asked["options"].get(name)
        if parts["asked"]["rows"]:  # of a database, which may have another name
            known = asked["rows"].items()
            parts["asked"]["rows"] = {fact: own for fact, own in known if fact in OF_ROWS}
    elif parts["asked"]["by"] == "table":
        parts["asked"]["query"] = asked["query"]
    return parts, found


def _key(recorded: str, options: argparse.Namespace) -> str | None:
    """Return the key of the digests, or None if there is no file of it; raise for another key."""
    place = Path(options.key or Path(options.record).with_suffix(".key"))
    if not _DIGEST.fullmatch(recorded):
        raise ValueError(f"The record has {recorded!r:.80} as key_sha256, which is no SHA-256.")
    if not place.is_file() and options.key is None:
        return None
    if not place.is_file():
        raise ValueError(f"There is no file {options.key!r} for --key. Check the path.")
    key = place.read_text(encoding="ascii").strip()
    if not _DIGEST.fullmatch(key):
        raise ValueError(
            f"{place.name} is no key of a record, which is a line of 64 hexadecimal digits. Name "
            "the file that was written beside the record: --key."
        )
    if hash_of_key(key) != recorded:
        raise ValueError(
            f"{place.name} is not the key of {Path(options.record).name}, so digests cannot be "
            "compared. Name the key that was written beside the record: --key. If it is lost, move "
            f"{place.name} away, and only numbers and texts are compared."
        )
    return key


def _audited(asked: dict[str, Any], files: dict[str, str], options: argparse.Namespace) -> Audit:
    """Make the audit that a record names, of the rows of another file or table."""
    is_named = options.table is not None or options.query is not None
    if asked["by"] == "table":
        query = options.query if is_named else asked["query"] or None
        relation = open_table(options.data, options.table, query, is_of_record=not is_named)
        return audit(Cohort.from_table(relation, **asked["columns"]), **asked["options"])
    if asked["by"] != "command":
        return audit(**arguments_of(asked, files, options))
    own = options_of_record(asked["options"], options.data, asked["precision"])
    own.model_file = files.get("model file")
    own.is_of_record = not is_named
    if is_named:
        own.table, own.query = options.table, options.query
    own.encoding, own.decimal = options.encoding or own.encoding, options.decimal or own.decimal
    return audit_file(own, asked["metrics"])


def _unused(
    record: dict[str, Any], files: dict[str, Any], options: argparse.Namespace
) -> Iterator[Finding]:
    """Say what the verifier has named and the record does not have."""
    if "model file" not in files:
        yield from unused(options, {"model_file": "the record names no file of a model"})
    if record["asked"]["by"] == "audit":
        lacks = "the rows of the record were in memory, not in a database"
        yield from unused(options, {"table": lacks, "query": lacks})


def _of_digests(
    recorded: dict[str, str], computed: dict[str, str], *, is_compared: bool
) -> Iterator[Finding]:
    """Compare digests, or only their names if there is no key."""
    for name in dict.fromkeys([*recorded, *computed]):
        if name not in recorded or name not in computed:
            verb = "adds" if name in recorded else "lacks"
            yield Finding(f"digests: the record {verb} {name!r}")
        elif not _DIGEST.fullmatch(recorded[name]):
            yield Finding(f"digests, {name}: {recorded[name]!r:.80} is no SHA-256")
        elif is_compared and recorded[name] != computed[name]:
            yield Finding(f"data, {name}: other values than when the record was made")


def _of_files(recorded: dict[str, Any], computed: dict[str, Any], by: str) -> Iterator[Finding]:
    """Compare the files of the rows and of the model with what the record says of them."""
    if by == "command" and "file" in computed and "file" not in recorded:
        yield Finding("files: the record lacks 'file'")
    for fact, was in recorded.items():
        if set(was) != {"name", "sha256"}:
            yield Finding(f"files, {fact}: the record has the keys {sorted(was)}")
        if fact not in computed:
            text = f"The {fact} {was['name']} was not compared: --model-file."
            yield Finding(text, NOTE)
            continue
        same = computed[fact]["sha256"] == was["sha256"]
        text = f"The {fact} is {'' if same else 'not '}{was['name']}, byte for byte."
        yield Finding(text, NOTE) if same or fact == "file" else Finding(text)
