"""Audits as a wing: what ``skfair.report`` adds to other parts of the package.

``skfair/utils/wings.py`` runs this file without importing ``skfair.report``, and other parts ask it
for these names:

- ``NAMES``: the public names that this wing adds to other packages,
- :func:`commands`: the commands of ``python -m skfair`` (called by ``skfair/__main__.py``). Most of
  the file is the options of the commands,
- :func:`verifiers`: what computes the records of audits again, for ``verify``,
- :func:`choices`: the package that makes the page of ``FairnessPath.to_html``.

So the file imports only the standard library, until a function is called.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

    from skfair.records.record import Verifier
    from skfair.utils.command_line import Command, Options

# By package: the names that it gets, and the module of each, below this folder. The empty string
# stands for the folder itself: ``skfair.report`` is this package.
NAMES = {"skfair": {"report": ""}}

_AUDIT_EXAMPLES = """\
  python -m skfair audit decisions.csv --target repaid --prediction approved --sensitive sex,age \\
      --bins age=25,45,65 --out report.html
  python -m skfair audit scores.parquet --target repaid --score score --threshold 0.5 \\
      --sensitive sex
  python -m skfair audit warehouse.duckdb --table decisions --target repaid \\
      --prediction approved --sensitive sex,race --out report.html
  python -m skfair audit "decisions/year=2026/*.parquet" --prediction approved --sensitive sex
  python -m skfair audit decisions.csv --target repaid --prediction approved --before old_model \\
      --sensitive sex --out report.json --fail-if "demographic_parity_difference > 0.1"
  python -m skfair audit applicants.csv --prediction hired --sensitive sex,race --preset ugesp \\
      --reference "sex=male,race=White" --min-ratio 0.8

Exit code 0: the audit was made, and no --fail-if condition holds. 1: a condition holds. 3: the
interval of the disparity has values on both sides of the limit, so that more rows are needed
(--inconclusive), or a group cannot be compared (--allow-undefined), or there are no two groups,
which no option lets pass. 2: the audit could not be made.
"""
_AUDIT_DATA_EXAMPLES = """\
  python -m skfair audit-data applicants.csv --sensitive sex --target hired --out data.html
  python -m skfair audit-data applicants.csv --sensitive sex,age --bins age=25,45,65 \\
      --reference-shares population.csv --earlier applicants_2025.csv
"""
_CHOOSE_EXAMPLES = """\
  python -m skfair choose loans.csv --target repaid --sensitive sex --out choice.html
  python -m skfair choose loans.csv --target repaid --score score --before granted \\
      --sensitive sex,age --bins age=25,45,65 --limits 0.2,0.1,0.05 --decided granted \\
      --out choice.html
"""
_DECIDE_EXAMPLES = """\
  python -m skfair decide applicants.csv --memo decision.json --fitted-on loans.csv \\
      --out decided.csv
  python -m skfair audit decided.csv --prediction decision --sensitive sex --fail-if decision.json
"""
_MONITOR_EXAMPLES = """\
  python -m skfair monitor june.csv --state monitor.json --prediction approved --sensitive sex \\
      --max-disparity 5% --batch 2026-06-30
  python -m skfair monitor july.csv --state monitor.json --prediction approved --sensitive sex \\
      --max-disparity 5% --batch 2026-07-31 --inconclusive pass
  python -m skfair monitor june.csv --state errors.json --constraint equal_opportunity \\
      --prediction approved --sensitive sex --ids number
  python -m skfair monitor outcomes.csv --state errors.json --target repaid --ids number

The first call makes the monitor, and later ones read a further file into it. Settings may be
repeated, but they may not change. The state is replaced only after everything has succeeded.

Exit code 0: the data show that the mean disparity is within the limit. 1: there was an alarm. 3:
neither is shown (--inconclusive). 2: the file was not read, and the state is as it was.
"""
_YEAR_EXAMPLES = """\
  python -m skfair year june.csv --state year.json --prediction approved --sensitive sex \\
      --max-disparity 10% --batch 2026-06

Each call tests the limit by the people of one file. If the limit is not shown, this is an alarm,
and the model must be fitted again, at most --refits times. Then the probability that the limit was
exceeded in some file that raised no alarm is at most 5%.

Exit code 0: the limit is shown. 1: an alarm. 2: the file was not tested, and the state is as it
was.
"""
_SIZE_EXAMPLES = """\
  python -m skfair sample-size --max-disparity 5% --rates 30% --shares f=30%,m=70%
  python -m skfair sample-size --max-disparity 10% --rates 0.30,0.35 --power 0.9 --looks 12 \\
      --refits 3
"""
_TASKS = ["auto", "binary", "classes", "numbers"]  # choices of --task
# Names of modules in skfair/report/commands, if they are not those of the commands.
_MODULES = {"audit-data": "audit", "decide": "choose", "sample-size": "year"}
# Choices of --drop-missing: the options of columns, whose rows without a value are dropped
_ROLES = ["target", "prediction", "score", "before", "weight", "units", "sensitive", "control"]
# Arguments of argparse that several options have
_LABEL, _TEXT = {"metavar": "LABEL"}, {"metavar": "TEXT", "default": ""}


def _decimal(text: str) -> float:
    """Read a number such as 0.05, 0,05 or 5%."""
    import argparse

    number = text.strip().removesuffix("%")
    try:
        return float(number.replace(",", ".")) / (1 if number == text.strip() else 100)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number. Write it as 0.05 or 5%."
        ) from error


def _decimals(text: str) -> list[float]:
    """Read numbers such as 0.2,0.1 or 20%,10%."""
    return [_decimal(part) for part in text.split(",")]


def _numbers_by_name(text: str) -> float | list[float] | dict[str, float]:
    """Read a number, several such as 0.3,0.35, or one of each name such as f=30%,m=35%."""
    parts = [part.rpartition("=") for part in re.split(r",(?=[^,]*=)", text)]
    if all(sign for _, sign, _ in parts):
        return {name.strip(): _decimal(number) for name, _, number in parts}
    numbers = _decimals(text)
    return numbers[0] if len(numbers) == 1 else numbers


def _limit(text: str) -> float | dict[str, float]:
    """Read a limit such as 5%, or one of each attribute such as sex=5%,age=8%."""
    limit = _numbers_by_name(text) if "=" in text else _decimal(text)
    assert not isinstance(limit, list)
    return limit


_WHOLE = {"type": int}
_NUMBER = {"type": _decimal, "metavar": "NUMBER"}
# The options of the commands, in the form of skfair/utils/command_line.py: by title in the help and
# by name, the text of the help and the arguments of argparse. The empty title is the one of
# positional arguments. Numbers without a default have the default of skfair.report.audit. argparse
# reads % in a text as a format, so it is written %%.
_FILE: Options = {
    "": {
        "file": (
            "CSV file (it may be compressed) or parquet file; if people have several rows, pass "
            "--units",
            {},
        )
    }
}
_AUDIT_OPTIONS: Options = {
    "": {
        "file": (
            "CSV file (it may be compressed), parquet file, folder of parquet files, their names "
            "with a *, or database (DuckDB, SQLite, postgres://); if people have several rows, "
            "pass --units",
            {},
        ),
    },
    "columns": {
        "--target": ("name of the column with the outcomes, such as repaid", {}),
        "--prediction": ("name of the column with the decisions, or with predicted numbers", {}),
        "--score": ("name of the column with scores, which are larger for the positive class", {}),
        "--sensitive": (
            "names of the columns with the groups, separated by commas: sex,age",
            {"required": True},
        ),
        "--before": ("name of the column with the decisions of an earlier model", {}),
        "--control": (
            "names of the columns that may explain a difference, separated by commas, such as "
            "department; groups are then compared within each of their levels",
            {},
        ),
        "--weight": ("name of the column with the weights of the rows", {}),
        "--units": (
            "name of a column that tells people apart, such as customer; without it, each row "
            "counts as another person",
            {},
        ),
    },
    "reading": {
        "--table": ("name of the table to read, if the database has several", {}),
        "--query": (
            "SQL query that selects the rows of the database, or of files, which it calls data: "
            '"select * from data where year = 2026"',
            {},
        ),
        "--pos-label": (
            "label of the positive class, such as granted; 1 is known beside 0 or -1",
            _LABEL,
        ),
        "--pos-label-true": (
            "label of the positive class in the column --target, if it is another one than in the "
            "decisions",
            _LABEL,
        ),
        "--threshold": ("number above which a score counts as a positive decision", _NUMBER),
        "--bins": (
            "edges at which a column of numbers or dates is cut into groups: age=25,45,65; may be "
            "repeated",
            {"action": "append", "default": [], "metavar": "COLUMN=EDGE,EDGE"},
        ),
        "--date-format": (
            "how dates are written, if not like 2026-12-31: %%d.%%m.%%Y reads 31.12.2026",
            {},
        ),
        "--drop-missing": (
            "leave out the rows without a value in this column, and count them in the head of the "
            "report; may be repeated",
            {"action": "append", "default": [], "choices": _ROLES},
        ),
        "--missing": ("name for the group of people whose group is not in the file", {}),
        "--unknown": (
            "names of groups that mean not known, separated by commas; they are not compared",
            {},
        ),
        "--task": (
            "kind of the decisions: two labels, several classes or numbers; default: as they look",
            {"default": "auto", "choices": _TASKS},
        ),
        "--block-rows": (
            "number of rows that are read at a time",
            {"type": int, "default": 500_000},
        ),
        "--encoding": ("encoding of the text of a CSV file, such as cp1252", {"default": "utf-8"}),
        "--decimal": (
            "sign before the decimals; a comma reads numbers such as 1.234,5 or 55,5 %%",
            {"choices": [",", "."]},
        ),
    },
    "result": {
        "--out": ("file to write, which ends in .html, .md or .json; default: no file", {}),
        "--title": ("title of the report", {}),
        "--model": ("name and version of the model, for the head of the report", _TEXT),
        "--model-file": ("file of the model, whose SHA-256 is written into the head", {}),
        "--source": ("words on where the rows come from, for the head", _TEXT),
        "--period": (
            "time in which the decisions were made, such as 2026-01 to 2026-06, for the head",
            _TEXT,
        ),
        "--prepared-by": ("name of the person who answers for the report, for the head", _TEXT),
        "--metrics": ("names of metrics to report, separated by commas", {}),
        "--lead": (
            "metric with which the verdicts begin; default: rates of errors if there are "
            "outcomes, and selection rates otherwise",
            {},
        ),
        "--depth": (
            "largest number of columns that are crossed to a subgroup, such as 2 for sex x age",
            _WHOLE,
        ),
        "--min-group-size": (
            "number of rows below which a group is not compared; default 30",
            _WHOLE,
        ),
        "--suppress-below": ("number of rows below which a group is not shown; default 10", _WHOLE),
        "--confidence": ("confidence level of the intervals; default 0.95", _NUMBER),
        "--random-state": ("seed of the simulations; default 0", {"type": int, "default": 0}),
        "--fail-if": (
            "condition that must not hold; if the interval shows that it does, the exit code is "
            '1. Examples: "sex: equal_opportunity_difference > 0.05"; '
            '"demographic_parity_difference > 0.1" for every attribute; "within department: '
            'demographic_parity_ratio < 0.8" for the worst level of --control department; '
            "decision.json for the limit in the memo of a committee. May be repeated",
            {"action": "append", "default": [], "metavar": "CONDITION"},
        ),
        "--min-ratio": (
            "smallest impact ratio that is allowed, such as 0.8 for the four-fifths rule",
            _NUMBER,
        ),
        "--max-disparity": (
            "largest difference of selection rates that is allowed, such as 5%%",
            _NUMBER,
        ),
        "--inconclusive": (
            "how a check counts if its interval has values on both sides of the limit; default: "
            "exit code 3",
            {"choices": ["pass", "fail"]},
        ),
        "--allow-undefined": (
            "leave out groups that cannot be compared; without it, no check passes if there are "
            "any (exit code 3)",
            {"action": "store_true"},
        ),
        "--record": (
            "file for a record that others can verify, which ends in .json; the .key that is "
            "written beside it is for those who may have the rows",
            {},
        ),
        "--after": (
            "file that came before the record, such as a memo or an earlier record; may be "
            "repeated",
            {"action": "append", "default": [], "metavar": "FILE"},
        ),
        "--force": ("replace files that exist already", {"action": "store_true"}),
        "--annotate": (
            "print the conditions in the form of annotations of GitHub, too",
            {"action": "store_true"},
        ),
    },
    "tables of rules of law (no advice)": {
        "--preset": (
            "rule of law whose table is added, with what the rule asks and what no number can "
            "answer: ll144 for the impact ratios of New York City Local Law 144, ugesp for "
            "adverse impact by the four-fifths rule, two standard deviations and Fisher's exact "
            "test, ecoa for lending, uk for the Equality Act",
            {"choices": ["ll144", "ugesp", "ecoa", "uk"]},
        ),
        "--units-rule": (
            "how a person with several rows (--units) counts as selected in the table of "
            "--preset: if any row is selected, or if the last one is",
            {"choices": ["any", "last"], "default": "any"},
        ),
        "--reference": (
            "name of the reference group that the others are compared with: male; with several "
            'attributes "sex=male,race=White"',
            {},
        ),
    },
}


def _same(*names: str) -> dict[str, Any]:
    """Return options of ``audit`` that another command has too, with the same meaning."""
    known = {name: own for of_title in _AUDIT_OPTIONS.values() for name, own in of_title.items()}
    return {name: known[name] for name in names}


_READING = _same(
    "--pos-label",
    "--bins",
    "--date-format",
    "--drop-missing",
    "--missing",
    "--block-rows",
    "--encoding",
    "--decimal",
)
_COLUMNS: tuple[str, dict[str, Any]] = (
    "names of the columns that are read, separated by commas; default: all others",
    {},
)
_AUDIT_DATA_OPTIONS: Options = {
    **_FILE,
    "columns": {
        "--target": ("name of the column that a model will learn, with labels or numbers", {}),
        "--columns": _COLUMNS,
        **_same("--sensitive", "--units"),
    },
    "comparing": {
        "--reference-shares": (
            "file with the shares of the groups in the population: a CSV with the columns "
            "attribute, group and share, or JSON",
            {},
        ),
        "--earlier": ("file with earlier data that has the same columns", {}),
    },
    "reading": _READING | _same("--unknown"),
    "result": _same(
        "--out",
        "--title",
        "--source",
        "--period",
        "--prepared-by",
        "--min-group-size",
        "--suppress-below",
        "--confidence",
        "--random-state",
        "--force",
    ),
}
_CHOOSE_OPTIONS: Options = {
    **_FILE,
    "columns": {
        "--target": (
            "name of the column that the models learn, such as repaid",
            {"required": True},
        ),
        "--columns": _COLUMNS,
        "--score": (
            "name of the column with the scores of your own model, by which people are selected; "
            "--columns are then used to estimate the group only",
            {},
        ),
        "--before": (
            "name of the column with the decisions of today; default: the decisions with the "
            "largest limit",
            {},
        ),
        **_same("--sensitive", "--units"),
    },
    "limits": {
        "--limits": (
            "limits that the committee chooses from, separated by commas; default: "
            "100%%,20%%,10%%,5%%,2%%. 100%% limits nothing, and is always added without --before",
            {"type": _decimals, "default": "100%,20%,10%,5%,2%", "metavar": "NUMBER,NUMBER"},
        ),
        "--constraint": ("name of the constraint", {"default": "demographic_parity"}),
        "--group-aware": (
            "let decisions use the group, which may be disparate treatment under the law",
            {"action": "store_true"},
        ),
        "--one-model": (
            "decide by one model that is fitted to all rows, not by the mean of five models "
            "(ensemble=False)",
            {"action": "store_true"},
        ),
    },
    "reading": _READING | _same("--pos-label-true"),
    "result": {
        "--out": ("page to write, which ends in .html", {"required": True}),
        "--decided": ("word for a positive decision, such as granted", {"metavar": "WORD"}),
        **_same("--title", "--suppress-below", "--confidence", "--random-state", "--force"),
    },
}
_DECIDE_OPTIONS: Options = {
    **_FILE,
    "model": {
        "--memo": ("memo of the decision, which the page of choose writes", {"required": True}),
        "--fitted-on": (
            "file that the page of choose was made from, unchanged",
            {"required": True},
        ),
    },
    "reading": {
        "--decimal": (
            "sign before the decimals of the new rows, if --fitted-on has another",
            {"choices": [",", "."]},
        ),
        "--encoding": ("encoding of the new rows, if --fitted-on has another", {}),
        **_same("--block-rows"),
    },
    "result": {
        "--out": (
            "file to write, which ends in .csv: the new rows with their decisions",
            {"required": True},
        ),
        **_same("--force"),
    },
}
_ROWS_OPTIONS: Options = {
    **_FILE,
    "columns": {
        "--prediction": ("name of the column with the decisions", {}),
        "--target": ("name of the column with the outcomes, if the constraint is about errors", {}),
        **_same("--sensitive", "--units"),
    },
    "reading": _READING,
}
_LIMIT: dict[str, Any] = {"type": _limit, "metavar": "NUMBER"}
_LIMITS: dict[str, tuple[str, dict[str, Any]]] = {
    "--constraint": ("name of the constraint; default: demographic_parity", {}),
    "--max-disparity": (
        "largest difference of rates that is allowed: 5%% for each attribute, or sex=5%%,age=8%%",
        _LIMIT,
    ),
    "--min-ratio": (
        "smallest ratio of rates that is allowed, such as 0.8 for the four-fifths rule",
        _LIMIT,
    ),
    "--memo": ("memo of a committee that holds the limit, in place of the limits above", {}),
}
_MONITOR_OPTIONS: Options = {
    **_ROWS_OPTIONS,
    "columns": _ROWS_OPTIONS["columns"]
    | {
        "--sensitive": (
            "names of the columns with the groups, separated by commas: sex,age; not needed for "
            "labels that come later",
            {},
        ),
        "--ids": (
            "name of the column with the identifiers of the decisions, if outcomes come later; "
            "pass it with --prediction first, and later with --target and another file",
            {},
        ),
    },
    "limit": _LIMITS
    | {
        "--confidence": (
            "confidence level: a false alarm has at most a probability of 1 minus this; default "
            "0.95",
            _NUMBER,
        ),
        "--reference": _same("--reference")["--reference"],
        "--levels": (
            "names of the groups that are expected: f,m; with several attributes "
            "sex=f,sex=m,age=old",
            {},
        ),
        "--min-group-size": (
            "number of rows that each group needs before it is compared; default 50",
            _WHOLE,
        ),
        "--reference-batches": (
            "number of earlier batches that each batch is compared with; the limit is then one on "
            "the change",
            _WHOLE,
        ),
        "--horizon": ("number of batches that are expected; default 1000", _WHOLE),
    },
    "result": {
        "--state": (
            "file of the monitor, which ends in .json or .json.gz; the first call makes it",
            {"required": True},
        ),
        "--out": (
            "file for the new state, if the old one shall be kept; default: the file of --state",
            {},
        ),
        "--batch": (
            "number, day or month of the file, which must be later than those before: 7, "
            "2026-06-30 or 2026-06; default: the files are counted",
            {},
        ),
        "--record": (
            "new file for a record of what the monitor has found, which ends in .json",
            {},
        ),
        "--inconclusive": (
            "how it counts if neither is shown; default: exit code 3",
            {"choices": ["pass", "fail"]},
        ),
        **_same("--after", "--force"),
    },
}
_YEAR_OPTIONS: Options = {
    **_ROWS_OPTIONS,
    "limit": _LIMITS
    | {
        "--refits": ("number of times that the model may be fitted again; default 3", _WHOLE),
        "--confidence": ("confidence level of the statement about the year; default 0.95", _NUMBER),
        "--reference": _same("--reference")["--reference"],
    },
    "result": {
        "--state": (
            "file of the looks so far, which ends in .json; the first call makes it",
            {"required": True},
        ),
        "--batch": ("name of the look, such as 2026-06", {"required": True}),
    },
}
_BY_GROUP: dict[str, Any] = {"type": _numbers_by_name, "metavar": "NUMBER,NUMBER"}
_SIZE_OPTIONS: Options = {
    "limit": {
        "--max-disparity": ("largest difference of rates that is allowed, such as 5%%", _NUMBER),
        "--min-ratio": ("smallest ratio of rates that is allowed, such as 0.8", _NUMBER),
    },
    "people": {
        "--rates": (
            "rate that is expected in each group: 30%%, or 0.30,0.35, or f=30%%,m=35%%; default "
            "50%%",
            _BY_GROUP | {"default": 0.5},
        ),
        "--shares": (
            "share of each group among the people: 0.3,0.7 or f=30%%,m=70%%; default: two groups "
            "of the same size",
            _BY_GROUP | {"default": [0.5, 0.5]},
        ),
        "--rows-per-unit": (
            "number of rows that each person has; default 1",
            _NUMBER | {"default": 1.0},
        ),
        "--correlation": (
            "correlation of the decisions on the rows of a person, from 0 to 1; default 1",
            _NUMBER | {"default": 1.0},
        ),
        "--pair-correlation": (
            "correlation of the decisions on the rows of a person in two groups, such as a CV "
            "under two names; default 0",
            _NUMBER | {"default": 0.0},
        ),
    },
    "test": {
        "--power": (
            "probability that the limit is shown, if the rates are as expected; default 0.8",
            _NUMBER | {"default": 0.8},
        ),
        "--confidence": ("confidence level of the test; default 0.95", _NUMBER | {"default": 0.95}),
        "--looks": (
            "number of looks of the command year; all of them show the limit with the probability "
            "of --power; default 1",
            {"type": int, "default": 1},
        ),
        "--refits": (
            "number of fits after the first one, among which the error is divided, as in the "
            "command year; default 0",
            {"type": int, "default": 0},
        ),
    },
}


def audit_defaults() -> dict[str, Any]:
    """Return the defaults of the options of ``audit`` by name, for records."""
    named = [own for of_title in _AUDIT_OPTIONS.values() for own in of_title.items()]
    return {
        name.lstrip("-").replace("-", "_"): how.get("default", False if "action" in how else None)
        for name, (_, how) in named
    }


def commands() -> dict[str, Command]:
    """Return the commands by name."""
    from skfair.utils.command_line import Command
    from skfair.utils.wings import functions_of_wings

    def run(options: argparse.Namespace) -> int:
        """Import the module of a command, and call its function, such as run_audit_data."""
        file = _MODULES.get(options.command, options.command)
        module = import_module(f"skfair.report.commands.{file}")
        code: int = getattr(module, f"run_{options.command.replace('-', '_')}")(options)
        return code

    about_data = "audit a data set: shares of groups, labels, missing values, "
    about_data += "columns that tell the group"
    choose = "make the page on which a committee chooses a limit"
    decide = "decide about new rows by the model that a committee chose"
    audit = "audit predictions in a CSV or parquet file"
    monitor = "read a file of decisions into a monitor, which raises an alarm above a limit"
    year = "test a limit by the people of each month, so that it can be stated for a year"
    size = "say how many people it takes to show that a limit holds"
    made = {
        "audit": Command(audit, _AUDIT_EXAMPLES, run, _AUDIT_OPTIONS),
        "audit-data": Command(about_data, _AUDIT_DATA_EXAMPLES, run, _AUDIT_DATA_OPTIONS),
        "choose": Command(choose, _CHOOSE_EXAMPLES, run, _CHOOSE_OPTIONS),
        "decide": Command(decide, _DECIDE_EXAMPLES, run, _DECIDE_OPTIONS),
        "monitor": Command(monitor, _MONITOR_EXAMPLES, run, _MONITOR_OPTIONS),
        "year": Command(year, _YEAR_EXAMPLES, run, _YEAR_OPTIONS),
        "sample-size": Command(size, _SIZE_EXAMPLES, run, _SIZE_OPTIONS),
    }
    if not functions_of_wings("monitors"):  # the wing with monitors is not installed
        del made["monitor"]
    return made


def verifiers() -> dict[str, Verifier]:
    """Return what computes the records of audits again, by their kind."""

    def verify(*arguments: Any) -> Any:
        return import_module("skfair.report.commands.verify").verify_audit(*arguments)

    return {"skfair record of an audit": verify}


def choices() -> ModuleType:
    """Return the package that makes the page on which a committee chooses a limit.

    :mod:`skfair.model_selection.path` calls this through ``utils/wings.py``. It may not import the
    report, which must be deletable.
    """
    return import_module("skfair.report.choosing")
