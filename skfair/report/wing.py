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

Exit code 0: audited, and no --fail-if condition holds. 1: a condition holds. 3: the interval of the
disparity has values on both sides of the limit, so that more rows are needed (--inconclusive), or a
group cannot be compared (--allow-undefined), or there are no two groups, which no option lets pass.
2: the audit could not be made.
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
    "": {"file": ("CSV (also compressed) or parquet file; people with several rows: --units", {})}
}
_AUDIT_OPTIONS: Options = {
    "": {
        "file": (
            "CSV (also compressed) or parquet file, folder of parquet files or their name with *, "
            "or database (DuckDB, SQLite, postgres://); people with several rows: --units",
            {},
        ),
    },
    "columns": {
        "--target": ("true labels or numbers", {}),
        "--prediction": ("predicted labels or numbers", {}),
        "--score": ("scores, larger for the positive class", {}),
        "--sensitive": ("sensitive attributes: sex,age", {"required": True}),
        "--before": ("predictions of an earlier model", {}),
        "--control": ("what may explain a difference, such as a department", {}),
        "--weight": ("weights of the rows", {}),
        "--units": ("which rows belong together; without it each is another person", {}),
    },
    "reading": {
        "--table": ("table of the database, if it has several", {}),
        "--query": (
            "rows of the database, or of the files under the name data: "
            '"select * from data where year = 2026"',
            {},
        ),
        "--pos-label": ("the positive class; not needed for 0 and 1, -1 and 1", _LABEL),
        "--pos-label-true": ("that of --target, if it has labels of its own", _LABEL),
        "--threshold": ("scores above it are positive decisions", _NUMBER),
        "--bins": (
            "make groups of a number: age=25,45,65; may be repeated",
            {"action": "append", "default": [], "metavar": "COLUMN=EDGE,EDGE"},
        ),
        "--date-format": ("of dates in bins that are not like 2026-12-31: %%d.%%m.%%Y", {}),
        "--drop-missing": (
            "drop rows without a value of it, and count them in the head; may be repeated",
            {"action": "append", "default": [], "choices": _ROLES},
        ),
        "--missing": ("name of the group of rows without an attribute", {}),
        "--unknown": ("levels that mean not known, not compared, as that of --missing", {}),
        "--task": ("what is predicted", {"default": "auto", "choices": _TASKS}),
        "--block-rows": ("rows read at a time", {"type": int, "default": 500_000}),
        "--encoding": ("of a CSV file, such as cp1252", {"default": "utf-8"}),
        "--decimal": (
            "mark before decimals, for numbers such as 1.234,5 or 55,5 %%: --decimal ,",
            {"choices": [",", "."]},
        ),
    },
    "result": {
        "--out": ("file to write: .html, .md or .json; default: none", {}),
        "--title": ("title of the report", {}),
        "--model": ("name and version of the model, for the head of the report", _TEXT),
        "--model-file": ("file of the model, whose SHA-256 is noted", {}),
        "--source": ("where the rows come from", _TEXT),
        "--period": ("when they were decided, such as 2026-01 to 2026-06", _TEXT),
        "--prepared-by": ("who answers for the report", _TEXT),
        "--metrics": ("names of metrics to report, separated by commas", {}),
        "--lead": (
            "metric with which the verdicts begin; default: by outcome, if there is one",
            {},
        ),
        "--depth": ("attributes that a subgroup may fix", _WHOLE),
        "--min-group-size": ("smaller groups are not compared; default 30", _WHOLE),
        "--suppress-below": ("smaller groups are not shown; default 10", _WHOLE),
        "--confidence": ("coverage of intervals", _NUMBER),
        "--random-state": ("of the simulations; default 0", {"type": int, "default": 0}),
        "--fail-if": (
            'exit with 1 if the interval shows it: "sex: equal_opportunity_difference > 0.05", or '
            'of any attribute "demographic_parity_difference > 0.1"; or in the worst level of '
            '--control department, "within department: demographic_parity_ratio < 0.8"; or exceeds '
            "the limit in the memo of a committee, decision.json; may be repeated",
            {"action": "append", "default": [], "metavar": "CONDITION"},
        ),
        "--min-ratio": ("limit on the impact ratio, 0.8 for the four-fifths rule", _NUMBER),
        "--max-disparity": ("limit on the difference of selection rates, such as 5%%", _NUMBER),
        "--inconclusive": (
            "what an interval with values on both sides of a limit counts as; default: exit code 3",
            {"choices": ["pass", "fail"]},
        ),
        "--allow-undefined": (
            "leave out groups that cannot be compared; default: with them no check passes (code 3)",
            {"action": "store_true"},
        ),
        "--record": (
            "file for a record that others can verify, .json; a .key beside it is for those who "
            "may have the rows",
            {},
        ),
        "--after": (
            "file before the record, as a memo or an earlier record; may be repeated",
            {"action": "append", "default": [], "metavar": "FILE"},
        ),
        "--force": ("replace files that exist already", {"action": "store_true"}),
        "--annotate": ("print conditions as annotations of GitHub, too", {"action": "store_true"}),
    },
    "tables of rules of law (no advice)": {
        "--preset": (
            "ll144: impact ratios, New York City Local Law 144; ugesp: adverse impact by the "
            "four-fifths rule, two standard deviations and Fisher's exact test; ecoa: lending; uk: "
            "Equality Act; each with what the rule asks, and what no number can answer",
            {"choices": ["ll144", "ugesp", "ecoa", "uk"]},
        ),
        "--units-rule": (
            "a person with several --units is selected for --preset if any row is, or the last",
            {"choices": ["any", "last"], "default": "any"},
        ),
        "--reference": ('reference group: male; of several "sex=male,race=White"', {}),
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
_COLUMNS: tuple[str, dict[str, Any]] = ("columns that are read; default: all others", {})
_AUDIT_DATA_OPTIONS: Options = {
    **_FILE,
    "columns": {
        "--target": ("labels or numbers that a model will learn", {}),
        "--columns": _COLUMNS,
        **_same("--sensitive", "--units"),
    },
    "comparing": {
        "--reference-shares": ("population: CSV with attribute, group, share; or JSON", {}),
        "--earlier": ("earlier data with the same columns", {}),
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
        "--target": ("labels that the models learn, such as repaid", {"required": True}),
        "--columns": _COLUMNS,
        "--score": (
            "scores of your own model, which decide; --columns beside it tell the group",
            {},
        ),
        "--before": ("decisions of today; default: those with the largest limit", {}),
        **_same("--sensitive", "--units"),
    },
    "limits": {
        "--limits": (
            "limits to choose from; default: 100%%,20%%,10%%,5%%,2%%; 100%% limits nothing, and is "
            "always there without --before",
            {"type": _decimals, "default": "100%,20%,10%,5%,2%", "metavar": "NUMBER,NUMBER"},
        ),
        "--constraint": ("what is limited", {"default": "demographic_parity"}),
        "--group-aware": (
            "let decisions use the group, which may be disparate treatment under the law",
            {"action": "store_true"},
        ),
        "--one-model": (
            "let one model of all rows decide, not the mean of five models (ensemble=False)",
            {"action": "store_true"},
        ),
    },
    "reading": _READING | _same("--pos-label-true"),
    "result": {
        "--out": ("page to write, .html", {"required": True}),
        "--decided": ("what a positive decision is, such as granted", {"metavar": "WORD"}),
        **_same("--title", "--suppress-below", "--confidence", "--random-state", "--force"),
    },
}
_DECIDE_OPTIONS: Options = {
    **_FILE,
    "model": {
        "--memo": ("memo of the decision, as the page of choose writes it", {"required": True}),
        "--fitted-on": ("the file that the page was made of, unchanged", {"required": True}),
    },
    "reading": {
        "--decimal": ("of the new rows, if it is not that of --fitted-on", {"choices": [",", "."]}),
        "--encoding": ("of the new rows, if it is not that of --fitted-on", {}),
        **_same("--block-rows"),
    },
    "result": {
        "--out": ("the new rows with their decisions, .csv", {"required": True}),
        **_same("--force"),
    },
}
_ROWS_OPTIONS: Options = {
    **_FILE,
    "columns": {
        "--prediction": ("the decisions, as labels", {}),
        "--target": ("true labels, if the constraint is about errors", {}),
        **_same("--sensitive", "--units"),
    },
    "reading": _READING,
}
_LIMIT: dict[str, Any] = {"type": _limit, "metavar": "NUMBER"}
_LIMITS: dict[str, tuple[str, dict[str, Any]]] = {
    "--constraint": ("what is limited; default: demographic_parity", {}),
    "--max-disparity": (
        "limit on the difference of rates within each attribute: 5%%, or sex=5%%,age=8%%",
        _LIMIT,
    ),
    "--min-ratio": ("limit on the ratio of rates instead: 0.8 for the four-fifths rule", _LIMIT),
    "--memo": ("memo of a committee, which has the limit instead", {}),
}
_MONITOR_OPTIONS: Options = {
    **_ROWS_OPTIONS,
    "columns": _ROWS_OPTIONS["columns"]
    | {
        "--sensitive": ("sensitive attributes: sex,age; not needed for labels that come later", {}),
        "--ids": (
            "identifiers of decisions whose labels come later: first with --prediction, and months "
            "later with --target, in another file",
            {},
        ),
    },
    "limit": _LIMITS
    | {
        "--confidence": (
            "a false alarm has at most the probability of 1 minus this; default 0.95",
            _NUMBER,
        ),
        "--reference": _same("--reference")["--reference"],
        "--levels": ("groups that are expected: f,m; of several sex=f,sex=m,age=old", {}),
        "--min-group-size": (
            "rows of each group that are collected before groups are compared; default 50",
            _WHOLE,
        ),
        "--reference-batches": (
            "limit the change against this number of batches before it, not the disparity",
            _WHOLE,
        ),
        "--horizon": ("number of batches that are expected; default 1000", _WHOLE),
    },
    "result": {
        "--state": (
            "file of the monitor, .json or .json.gz; it is made if it is not there",
            {"required": True},
        ),
        "--out": (
            "file for the new state, so that the old one stays; default: that of --state",
            {},
        ),
        "--batch": (
            "number or day of the file, which must be later than all before: 7, 2026-06-30 or "
            "2026-06; default: they are counted",
            {},
        ),
        "--record": ("new file for a record of what the monitor has found, .json", {}),
        "--inconclusive": (
            "what it counts as if neither is shown; default: exit code 3",
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
        "--confidence": ("of the statement about the year; default 0.95", _NUMBER),
        "--reference": _same("--reference")["--reference"],
    },
    "result": {
        "--state": (
            "file of the looks so far, .json; it is made if it is not there",
            {"required": True},
        ),
        "--batch": ("name of the look, such as 2026-06", {"required": True}),
    },
}
_BY_GROUP: dict[str, Any] = {"type": _numbers_by_name, "metavar": "NUMBER,NUMBER"}
_SIZE_OPTIONS: Options = {
    "limit": {
        "--max-disparity": ("limit on the difference of rates, such as 5%%", _NUMBER),
        "--min-ratio": ("limit on the ratio of rates instead, such as 0.8", _NUMBER),
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
        "--rows-per-unit": ("rows of a person, if people have several", _NUMBER | {"default": 1.0}),
        "--correlation": (
            "of the decisions on the rows of a person, from 0 to 1; default 1",
            _NUMBER | {"default": 1.0},
        ),
        "--pair-correlation": (
            "of the decisions on a person's rows in two groups, such as a CV under two names",
            _NUMBER | {"default": 0.0},
        ),
    },
    "test": {
        "--power": (
            "probability that the limit is shown, if the rates are as expected; default 0.8",
            _NUMBER | {"default": 0.8},
        ),
        "--confidence": ("of the test; default 0.95", _NUMBER | {"default": 0.95}),
        "--looks": (
            "looks of the command year, which all show the limit with the probability of --power",
            {"type": int, "default": 1},
        ),
        "--refits": (
            "fits after the first one, among which the error is divided, as in the command year",
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
