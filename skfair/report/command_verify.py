"""The part of ``python -m skfair verify`` that computes the record of an audit again.

``run_verify`` in :mod:`skfair.groups.record` reads the record, calls :func:`verify_audit`, and
compares what it returns with the record.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from skfair.groups.cohort import Cohort
from skfair.groups.record import NOTE, Finding
from skfair.report.audit import audit
from skfair.report.command_audit import in_file
from skfair.report.databases import open_table
from skfair.report.record import ASKED, Source, arguments_of, in_engine, in_memory, parts_of


def verify_audit(
    record: dict[str, Any], options: argparse.Namespace
) -> tuple[dict[str, Any], list[Finding]]:
    """Compute the parts of a record again. The record loses what is compared here."""
    place = Path(options.key or Path(options.record).with_suffix(".key"))
    key = place.read_text(encoding="ascii").strip() if options.key or place.is_file() else None
    files, digests, asked = (record.pop(name) for name in ("files", "digests", "asked"))
    given = {"file": options.data, "model file": options.model_file}
    named = {fact: given[fact] for fact in files if given[fact] is not None}
    source = _source(asked, named, options)
    checks = [{name: own[name] for name in ASKED} for own in record["checks"]]
    parts = parts_of(source.again(), source, checks, key)
    del parts["asked"]  # it was read from the record
    own_files, own_digests = parts.pop("files"), parts.pop("digests")
    found = [] if key else [Finding(f"There is no {place.name}: digests were not compared.", NOTE)]
    for name in dict.fromkeys([*digests, *own_digests]) if key else ():
        if digests.get(name) != own_digests.get(name):
            found.append(Finding(f"data, {name}: other values than when the record was made"))
    for fact, was in files.items():
        same = fact in own_files and own_files[fact]["sha256"] == was["sha256"]
        text = f"The {fact} is {'' if same else 'not '}{was['name']}, byte for byte."
        if fact not in own_files:
            text = f"The {fact} {was['name']} was not compared: --model-file."
        is_other_model = fact in own_files and not same and fact != "file"
        found.append(Finding(text) if is_other_model else Finding(text, NOTE))
    return parts, found


def _source(asked: dict[str, Any], files: dict[str, str], options: argparse.Namespace) -> Source:
    """Return the source that a record names, with the rows of another file or table."""
    is_named = options.table is not None or options.query is not None
    if asked["by"] == "table":
        query = options.query if is_named else asked["query"] or None
        relation = open_table(options.data, options.table, query)
        people = Cohort.from_table(relation, **asked["columns"])
        return in_engine(audit, people, asked["options"])
    if asked["by"] != "command":
        return in_memory(audit, arguments_of(asked, files, options))
    own = argparse.Namespace(**asked["options"], file=options.data, block_rows=500_000)
    own.model_file = files.get("model file")
    named = vars(options) if is_named else asked["options"]
    own.table, own.query = named.get("table"), named.get("query")
    own.encoding, own.decimal = options.encoding or own.encoding, options.decimal or own.decimal
    return in_file(own, asked["metrics"])
