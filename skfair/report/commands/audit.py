"""The commands ``audit`` and ``audit-data`` of ``python -m skfair``, which audit a file.

``wing.py`` defines the options, and calls :func:`run_audit` or :func:`run_audit_data` with them.
Both check the options, read the file, and write the report. :mod:`skfair.report.commands.choose`
reads its files by :func:`read_data` and :func:`table_of` too.

An audit of predictions (:func:`audit_file`) takes two passes over the blocks of the file. The first
one finds the labels, the levels of the groups and the range of the scores. The second adds up the
tables of the blocks, so the file need not fit into memory. A data set is read as a whole, and so
are the columns in use of a file with several rows of a person. Tables in databases are counted
there (:mod:`skfair.report.files.databases`).
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skfair.groups.attributes import read_columns
from skfair.groups.cohort import Cohort, cohort_of, given_columns, with_columns
from skfair.groups.engine_tables import LABELS
from skfair.groups.labels import TaskName
from skfair.groups.reference import read_reference
from skfair.groups.table import total
from skfair.groups.telling_columns import warn_of_people
from skfair.report.auditing.audit import Audit, audit, audit_table
from skfair.report.auditing.people import check_units_rule, one_row_each
from skfair.report.auditing.record import counted_columns, digests_of, named_columns
from skfair.report.auditing.recorded_columns import Digests
from skfair.report.data_sets.data_audit import DataAudit, audit_data
from skfair.report.files.databases import (
    cohort_of_table,
    facts_of,
    is_database,
    open_table,
    refuse_texts,
)
from skfair.report.files.table_file import TableFile, check_levels, read_bins
from skfair.report.results.checks import Check, Condition, Outcome, is_memo, read_conditions
from skfair.report.results.evidence import evidence_of
from skfair.report.results.result import COUNTED, AuditTables, Source
from skfair.report.results.sentences import read_about
from skfair.report.tables.options import read_options
from skfair.report.tables.reading import Survey, check_judged, find_task, survey_rows
from skfair.report.tables.scores import range_of_scores
from skfair.report.tables.sums import sums_of_block, warn_table
from skfair.report.tables.tasks import Task, gaps_of
from skfair.report.wing import audit_defaults
from skfair.utils.factorize import factorize, in_order
from skfair.utils.files import check_outputs
from skfair.utils.text import listed, plural, visible
from skfair.utils.validation import check_number, check_probability, check_scores

_WRITERS = {".html": "to_html", ".md": "to_markdown", ".json": "to_json"}
# Options of the audit that are numbers. They are None if the user did not name them.
_NUMBERS = ("confidence", "depth", "min_group_size", "suppress_below")
# The arguments of ``audit`` by the option that names their column.
_ARGUMENTS = {
    "target": "y_true",
    "prediction": "y_pred",
    "score": "y_score",
    "before": "before",
    "weight": "sample_weight",
    "units": "units",
}
# If several conditions have outcomes, the first of these counts.
EXIT_CODES: dict[str, int] = {"fail": 1, "inconclusive": 3, "pass": 0}


# Options that do not say what is computed
_APART = {"command", "parser", "run", "file", "model_file", "out", "block_rows"}
_APART |= {"record", "after", "annotate", "fail_if", "min_ratio", "max_disparity", "inconclusive"}
_APART |= {"allow_undefined", "force", "precision", "is_of_record"}


def in_file(
    options: argparse.Namespace,
    metrics: list[str],
    table: TableFile,
    digests: Digests | None = None,
) -> Source:
    """Return the source of the audit of a file, for its record.

    ``digests`` has the rows that were audited, if a record was asked for. A database counts them
    again.
    """

    def asked(found: AuditTables) -> dict[str, Any]:
        own = {name: value for name, value in vars(options).items() if name not in _APART}
        own |= {"title": found.title}
        narrow = {} if _is_database(options) else table.narrow_columns()
        return {"by": "command", "options": own, "metrics": metrics, "precision": narrow}

    def of_rows(found: AuditTables, key: str) -> dict[str, str]:
        if digests is not None:
            return digests.of(key)
        return digests_of(counted_columns(_counted_table(options, table)[0]), found, key)

    again = partial(audit_file, options, metrics)
    return Source(asked, of_rows, again, is_read_once=digests is not None)


def options_of_record(
    asked: Mapping[str, Any], file: str, precision: Mapping[str, str]
) -> argparse.Namespace:
    """Return the options of an audit that a record names, about another file.

    Options that a record lacks have their defaults, and those that ``audit`` does not have are left
    out. So the comparison of options notices both.
    """
    own = {name: asked.get(name, default) for name, default in audit_defaults().items()}
    own |= {"file": file, "precision": precision, "record": "", "block_rows": 500_000}
    return argparse.Namespace(**own)


def run_audit(options: argparse.Namespace) -> int:
    """Run ``audit``: write the report, print the verdicts and checks, return the exit code."""
    conditions = _conditions(options)
    check_options(options)
    report = audit_file(options, [own.metric for several in conditions.values() for own in several])
    _write(report, options)
    allowed = {"allow_undefined": options.allow_undefined}
    if options.record is not None:
        how = {"after": options.after, "force": options.force, **allowed}
        report.record(options.record, fail_if=[*conditions], **how)
    checks = [report.check(text, **allowed) for text in conditions]
    for check in checks:
        sys.stderr.write(f"skfair audit: {visible(check.sentence)}\n")
        if options.annotate:
            sys.stdout.write(f"{check.annotation()}\n")
    outcomes = {_counted(check, options.inconclusive) for check in checks}
    return next((EXIT_CODES[outcome] for outcome in EXIT_CODES if outcome in outcomes), 0)


def _counted(check: Check, inconclusive: Outcome | None) -> Outcome:
    """Return the outcome of a check, in which the option ``inconclusive`` replaces that outcome.

    ``--inconclusive pass`` is about intervals, which more rows would decide. A check that is
    inconclusive because groups could not be compared does not pass by it, and without two groups to
    compare it does not pass by ``--allow-undefined`` either.
    """
    if check.outcome != "inconclusive" or inconclusive is None:
        return check.outcome
    is_left_out = bool(check.undefined) and not check.allow_undefined
    is_open = is_left_out or not check.is_defined
    return "inconclusive" if is_open and inconclusive == "pass" else inconclusive


def check_options(options: argparse.Namespace, suffixes: Sequence[str] = (*_WRITERS,)) -> None:
    """Raise unless the report can be written, and numbers make sense.

    ``audit-data`` and ``choose`` call this too. They lack some options, and the page of ``choose``
    is HTML.
    """
    record = getattr(options, "record", None)
    key = None if record is None else str(Path(record).with_suffix(".key"))
    outputs = [
        ("--out", options.out, suffixes),
        ("--record", record, [".json"]),
        ("The key of --record", key, [".key"]),
    ]
    check_outputs(outputs, _files_read(options), force=options.force)
    if options.target is not None and options.target == getattr(options, "prediction", None):
        raise ValueError(
            f"--target and --prediction are both {options.target!r}, so every decision would be "
            "right. Name the column of the decisions, or leave --target out."
        )
    check_number(options.random_state, "--random-state", 0, 2**32 - 1)
    for name in (*_NUMBERS, "block_rows"):
        value, option = getattr(options, name, None), "--" + name.replace("_", "-")
        if name == "confidence" and value is not None:
            check_probability(value, option)
        elif value is not None:
            check_number(value, option, 1, sys.maxsize)


def _files_read(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield the files that a command reads, with their names in errors."""
    yield "the file that is audited", options.file
    if getattr(options, "model_file", None) is not None:
        yield "the file of the model", options.model_file
    before = [*getattr(options, "after", ()), *filter(is_memo, getattr(options, "fail_if", ()))]
    yield from (("a file before the record", own) for own in before)
    for name in ("earlier", "reference_shares"):
        if getattr(options, name, None) is not None:
            yield f"the file of --{name.replace('_', '-')}", getattr(options, name)


def _write(report: Audit | DataAudit, options: argparse.Namespace) -> None:
    """Write the report to a file if one was named, and the verdicts to the screen."""
    if options.out is not None:
        getattr(report, _WRITERS[Path(options.out).suffix.lower()])(options.out)
    where = "" if options.out is None else f"The report is in {visible(options.out)}.\n"
    rows = evidence_of(report) if isinstance(report, Audit) else []
    lines = [
        f"{row.law}: {row.asks}\n  This audit: {row.here}\n  No number: {row.no_number}\n"
        for row in rows
    ]
    sys.stdout.write(f"{report!r}\n{''.join(lines)}{where}")


def _conditions(options: argparse.Namespace) -> dict[str, list[Condition]]:
    """Read the conditions that must not hold.

    The keys are the texts of ``--fail-if``, each of which is a condition or the file of a memo, and
    the conditions that ``--min-ratio`` and ``--max-disparity`` stand for.
    """
    texts = list(options.fail_if)
    for name, metric, sign in (
        ("min_ratio", "demographic_parity_ratio", "<"),
        ("max_disparity", "demographic_parity_difference", ">"),
    ):
        limit = getattr(options, name)
        if limit is not None:
            check_number(limit, "--" + name.replace("_", "-"), 0, 1)
            texts.append(f"{metric} {sign} {limit!r}")
    try:
        return {text: read_conditions(text) for text in texts}
    except ValueError as error:
        raise ValueError(f"--fail-if: {error}") from error


def audit_file(arguments: argparse.Namespace, metrics: list[str]) -> Audit:
    """Read a file twice and audit it, or audit a table in a database.

    ``metrics`` are the metrics of the conditions, which are reported in addition to the usual ones.
    """
    if _is_database(arguments):
        return _audit_database(arguments, metrics)
    table = table_of(arguments, arguments.file)
    table.check()
    groups, has_units = table.groups, "units" in table.named
    if not has_units:
        warn_of_people(table.people())
    _check_named(table)
    # With --pos-label-true, the target has labels of its own.
    apart = arguments.target if arguments.pos_label_true is not None else None
    survey = _survey(table, arguments.task, apart)
    # Labels that were read as numbers in one block or column and as text in another are all read as
    # text, in a second pass.
    if survey is None:
        table = table._replace(labels_are_text=True)
        survey = _survey(table, arguments.task, apart)
    assert survey is not None
    task = _task(survey, arguments, table.named)
    threshold, median = arguments.threshold, None
    if arguments.preset == "ll144" and "y_pred" not in table.named and threshold is None:
        threshold = median = _median_score(table)
    check_judged(table.named, threshold)
    how, ends = {"threshold": threshold}, range_of_scores(np.array(survey.ends))
    order = {name: list(table.levels(name)) for name in table.bins}
    if table.missing is not None:
        order = {name: [*levels, table.missing] for name, levels in order.items()}
    blocks = table.blocks()
    if has_units:  # a person may have rows in several blocks
        whole = pd.concat(blocks, ignore_index=True)
        for name, levels in order.items():
            whole[name] = pd.Categorical(whole[name], levels).remove_unused_categories()
        blocks = iter([whole])
    check_units_rule(arguments.units_rule, arguments.preset, table.named.get("units"))
    columns: Iterable[dict[str, Any]] = map(table.by_argument, blocks)
    digests = None
    if arguments.record is not None:
        digests = Digests()
        columns = _noted(columns, table, digests)
    counted = ""
    if has_units and arguments.preset is not None:
        (whole_file,) = columns
        people = cohort_of(**whole_file)
        people, counted = one_row_each(people, task, threshold, arguments.units_rule)
        columns = [given_columns(people)]
    sums = (sums_of_block(block, task, ends, how) for block in columns)
    tables = [own for own in sums if own is not None]
    sample = tables[0] if has_units else total(tables, order)[0]
    reference = _reference(arguments.reference, {name: sample.levels[name] for name in groups})
    asked = read_names(arguments.metrics) if arguments.metrics else None
    if metrics:
        usual = [gap.name for gap in gaps_of(task, asked, set(sample.measures))]
        asked = list(dict.fromkeys([*usual, *metrics]))
    missing = [] if table.missing is None else [table.missing]
    stated = {name: getattr(arguments, name) for name in (*_NUMBERS, "preset")}
    options = read_options(
        random_state=arguments.random_state,
        metrics=asked,
        lead=arguments.lead,
        reference=reference,
        median=median,
        unknown=[*read_names(arguments.unknown or ""), *missing],
        **stated,
    )
    warn_table(sample, options.unknown)
    title = arguments.title or f"Fairness audit of {table.path.name}"
    facts = _facts(arguments, table)
    about = read_about({**facts, COUNTED: counted} if counted else facts)
    report = audit_table(sample, task, options, title, about, dict(table.named), threshold)
    return report._made_of(in_file(arguments, metrics, table, digests))


def _noted(
    blocks: Iterable[dict[str, Any]], table: TableFile, digests: Digests
) -> Iterator[dict[str, Any]]:
    """Yield blocks of columns, after they were added to digests."""
    for block in blocks:
        if len(block["sensitive_features"]):
            digests.add(named_columns(block, table.groups, table.within))
        yield block


def _check_named(table: TableFile) -> None:
    """Raise unless decisions or scores were named."""
    if not table.named.keys() & {"y_pred", "y_score"}:
        raise ValueError("Pass --prediction, --score or both: there is nothing to audit.")


def _is_database(options: argparse.Namespace) -> bool:
    stated = (getattr(options, name, None) for name in ("table", "query"))
    return is_database(options.file, *stated)


def _counted_table(options: argparse.Namespace, table: TableFile) -> tuple[Cohort, int]:
    """Count a table in a database; return the cohort, and how many rows were dropped first."""
    is_of_record = getattr(options, "is_of_record", False)
    relation = open_table(options.file, options.table, options.query, is_of_record=is_of_record)
    return cohort_of_table(table, relation)


def _audit_database(arguments: argparse.Namespace, metrics: list[str]) -> Audit:
    """Audit a table that is counted in its database."""
    refuse_texts(arguments)
    table = table_of(arguments, arguments.file)
    _check_named(table)
    people, n_dropped = _counted_table(arguments, table)
    labels = {name: getattr(people, name) for name in LABELS}
    every = [level for own in labels.values() if own is not None for level in factorize(own).levels]
    positive, pos_label_true = (
        label_of(text, every) for text in (arguments.pos_label, arguments.pos_label_true)
    )
    people = with_columns(people, pos_label=positive)
    columns = read_columns(people.sensitive_features)
    groups = {str(name): factorize(own).levels for name, own in columns}
    missing = [] if table.missing is None else [table.missing]
    stated = {name: getattr(arguments, name) for name in (*_NUMBERS, "preset", "threshold")}
    options = {name: own for name, own in stated.items() if own is not None}
    options |= {"unknown": [*read_names(arguments.unknown or ""), *missing], "task": arguments.task}
    if arguments.reference is not None:
        options["reference"] = _reference(arguments.reference, groups)
    facts = _facts(arguments, table, n_dropped) | facts_of(arguments)
    made = partial(
        audit,
        people,
        pos_label_true=pos_label_true,
        units_rule=arguments.units_rule,
        lead=arguments.lead,
        random_state=arguments.random_state,
        title=arguments.title or f"Fairness audit of {facts.get('table') or facts['database']}",
        about={name: own for name, own in facts.items() if name != "file"},
        **options,
    )
    asked = read_names(arguments.metrics) if arguments.metrics else None
    report = made(metrics=asked)
    # Metrics of conditions that the audit lacks are added in a second audit of the same counts.
    usual = [*dict.fromkeys(report.gaps["metric"])] if asked is None else asked
    if {*metrics} - {*usual}:
        report = made(metrics=[*dict.fromkeys([*usual, *metrics])])
    return report._made_of(in_file(arguments, metrics, table))


def _facts(
    arguments: argparse.Namespace, table: TableFile, n_dropped: int | None = None
) -> dict[str, str]:
    """Return the facts in the head of a report.

    The blocks of the table must have been read before, because ``table.blocks()`` counts the rows
    that it drops, and their number is one of the facts.
    """
    names = ("model", "source", "period", "prepared_by")
    stated = {name.replace("_", " "): getattr(arguments, name, "") for name in names}
    if table.needed:
        n_rows = plural(sum(table.n_dropped) if n_dropped is None else n_dropped, "row")
        stated["dropped"] = f"{n_rows} without a value of {listed(table.needed)}"
    stated |= {"model file": getattr(arguments, "model_file", None), "file": arguments.file}
    return {name: text for name, text in stated.items() if text}


def run_audit_data(options: argparse.Namespace) -> int:
    """Run ``audit-data``: write the report, print the verdicts, return the exit code 0."""
    check_options(options)
    names = {"min_group_size", "suppress_below", "confidence"}
    table, sample = read_data(options, options.file)
    missing = [] if options.missing is None else [options.missing]
    report = audit_data(
        **sample,
        reference_shares=None
        if options.reference_shares is None
        else _read_shares(options.reference_shares),
        earlier=None if options.earlier is None else read_data(options, options.earlier)[1],
        pos_label=label_of(
            options.pos_label, factorize(sample["y"]).levels if "y" in sample else []
        ),
        unknown=[*read_names(options.unknown or ""), *missing],
        title=options.title or f"Audit of {Path(options.file).name}",
        about=_facts(options, table),
        random_state=options.random_state,
        **{name: value for name in names if (value := getattr(options, name)) is not None},
    )
    _write(report, options)
    return 0


def read_data(options: argparse.Namespace, path: str) -> tuple[TableFile, dict[str, Any]]:
    """Read a data set as a whole, for ``audit-data`` and ``choose``.

    Returns the file, and the arguments of ``audit_data``: "X", "sensitive_features", and, if they
    were named, "y", "units" and "before". X has the columns that were named, or all columns without
    another role. With ``--score``, X begins with the scores, and other columns must be named.
    """
    table = table_of(options, path)
    table.check()
    groups, named = table.groups, table.named
    names = read_names(options.columns or "") or table.names()
    apart = {*groups, *named.values()}
    others = [name for name in dict.fromkeys(names) if name not in apart]
    if "y_score" in named:  # the scores come first, and further ones if they are named
        others = [named["y_score"], *others] if options.columns else [named["y_score"]]
    table = table._replace(others=tuple(others))
    table.check()
    frame = pd.concat(list(table.blocks()), ignore_index=True)
    for name in groups:
        check_levels(name, set(frame[name]))
    if not others:
        raise ValueError(f"{table.path.name} has no columns besides groups and target.")
    sample = {"X": frame[others], "sensitive_features": frame[groups]}
    of_rows = {"y": "y_true", "units": "units", "before": "before"}
    return table, sample | {
        name: frame[named[own]] for name, own in of_rows.items() if own in named
    }


def label_of(text: str | None, levels: list[Any]) -> Any:
    """Return the label in the data that was written as ``text`` on the command line.

    If there is none, the text is returned, and a later check names the labels that there are. If no
    label was named, the result is None.
    """
    if text is not None:
        for level in levels:
            with suppress(ValueError):
                if str(level) == text or level == float(text):
                    return level
    return text


def _read_shares(path: str) -> dict[str, dict[str, float]]:
    """Read shares of groups: JSON by attribute, or CSV with the columns attribute, group, share."""
    try:
        if path.lower().endswith(".json"):
            read: dict[str, dict[str, float]] = json.loads(Path(path).read_text(encoding="utf-8"))
            return read
        frame = pd.read_csv(path, dtype={"attribute": str, "group": str}, keep_default_na=False)
        return {
            str(name): dict(zip(own["group"], own["share"], strict=True))
            for name, own in frame.groupby("attribute", sort=False)
        }
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise ValueError(
            f"--reference-shares {path!r} was not read ({error}). It is a CSV file with the "
            'columns attribute, group and share, or JSON: {"sex": {"female": 0.51, "male": 0.49}}.'
        ) from error


def _median_score(table: TableFile) -> float:
    """Return the median of all scores, which are held in memory."""
    name = table.named["y_score"]
    scores = [check_scores(block[name], name) for block in table.blocks()]
    return float(np.median(np.concatenate(scores)))


def _reference(text: str | None, levels: dict[str, list[Any]]) -> dict[str, str]:
    """Read the reference groups: ``male``, or ``sex=male,race=White``."""
    parts = [part.partition("=") for part in read_names(text or "")]
    are_named = all(has_level and name.strip() in levels for name, has_level, _ in parts)
    chosen = {name.strip(): level.strip() for name, _, level in parts}
    try:
        return read_reference(chosen if are_named else text, levels)
    except ValueError as error:
        name, own_levels = next(iter(levels.items()))
        what, _, _ = str(error).partition("; pass")
        raise ValueError(
            f"--{what.removesuffix('.')}. Name one of them with its attribute, such as "
            f'--reference "{name}={own_levels[0]}".'
        ) from error


def table_of(options: argparse.Namespace, path: str) -> TableFile:
    """Return the file with the columns and the ways of reading that the options ask for.

    Nothing is read yet. Commands without an option, such as ``--control``, lack its attribute.
    """
    groups, within = (
        read_names(options.sensitive),
        read_names(getattr(options, "control", None) or ""),
    )
    if not groups:
        raise ValueError(
            "--sensitive is empty. Name the columns that hold the sensitive attributes."
        )
    columns = {role: getattr(options, role, None) for role in _ARGUMENTS}
    by_role: dict[str, list[Any]] = {"sensitive": groups, "control": within or [None]}
    by_role |= {role: [name] for role, name in columns.items()}
    needed = {name: role for role in options.drop_missing for name in by_role[role]}
    if None in needed:
        raise ValueError(
            f"--drop-missing {needed[None]} needs --{needed[None]}, which is not named."
        )
    return TableFile(
        Path(path),
        {_ARGUMENTS[role]: name for role, name in columns.items() if name is not None},
        groups,
        within,
        read_bins(options.bins),
        options.missing,
        options.block_rows,
        [],
        encoding=options.encoding,
        date_format=options.date_format,
        decimal=options.decimal,
        needed=[*needed],
        precision=getattr(options, "precision", None),
    )


def read_names(text: str) -> list[str]:
    """Read names such as ``sex,age``. A name with a comma in it is quoted, as in the file."""
    try:
        names = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise ValueError(
            f"{text!r} is no list of names with commas between them. Quote names with line breaks."
        ) from error
    return [name for name in names if name.strip()]


def _survey(table: TableFile, task_name: TaskName, apart: str | None) -> Survey | None:
    """Go through the file once, and return what must be known before rows are counted.

    The result is None if labels are numbers in one block or column and text in another. Then the
    file must be read again with labels as text. The column ``apart`` has labels of its own, which
    may be of another type.
    """
    survey = Survey()
    groups: dict[str, set[str]] = {name: set() for name in table.attributes}
    are_numbers: set[bool] = set()
    for block in filter(len, table.blocks()):
        together = (name for name in table.labels if name != apart)
        are_numbers.update(block[name].dtype.kind in "biuf" for name in together)
        people = cohort_of(**table.by_argument(block))
        survey += survey_rows(people, task_name, named=table.named)
        for attribute in table.attributes:
            groups[attribute].update(block[attribute].unique())
            check_levels(attribute, groups[attribute])
        if survey.fractions and False in are_numbers:
            raise ValueError(
                f"Of the columns {listed(table.labels)} some have fractions and some have text. "
                "Pass scores as --score."
            )
    if not survey.n_rows:
        raise ValueError(f"{table.path.name} has no rows.")
    if not survey.n_counted:
        raise ValueError(f"The weight {table.named['sample_weight']!r} is 0 in every row.")
    if len(are_numbers) > 1:
        return None
    return survey


def _task(survey: Survey, arguments: argparse.Namespace, named: Mapping[str, str]) -> Task:
    """Return the task that was named, or the one that the labels show."""
    if arguments.pos_label_true is not None and arguments.target is None:
        raise ValueError(
            "--pos-label-true names a label of the outcome, but there is no --target. Name the "
            "column of the outcome by --target, or leave --pos-label-true out."
        )
    every = [level for levels in survey.labels.values() for level in in_order(levels or [])]
    positives = (label_of(text, every) for text in (arguments.pos_label, arguments.pos_label_true))
    return find_task(survey, arguments.task, *positives, given=named)
