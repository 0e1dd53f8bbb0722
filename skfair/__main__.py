"""The command line ``python -m skfair``: its commands, and errors in one line with exit code 2.

It imports nothing heavy. The commands themselves are in :mod:`skfair.report.command_audit` and
:mod:`skfair.warm`, which are imported when they run.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

from skfair._version import __version__
from skfair.utils.text import visible

_AUDIT_EXAMPLES = """\
  python -m skfair audit decisions.csv --target repaid --prediction approved --sensitive sex,age \\
      --bins age=25,45,65 --out report.html
  python -m skfair audit scores.parquet --target repaid --score score --threshold 0.5 \\
      --sensitive sex
  python -m skfair audit decisions.csv --target repaid --prediction approved --before old_model \\
      --sensitive sex --out report.json --fail-if "demographic_parity_difference > 0.1"
  python -m skfair audit applicants.csv --prediction hired --sensitive sex,race --preset ugesp \\
      --reference "sex=male,race=White" --min-ratio 0.8

Exit code 0: audited, and no --fail-if condition holds. 1: a condition holds. 3: the interval of the
disparity has values on both sides of the limit, so that more rows are needed (--inconclusive), or a
group cannot be compared (--allow-undefined). 2: the audit could not be made.
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
_DATA_EXAMPLES = """\
  python -m skfair data loans --out loans.csv
"""
_WARM_EXAMPLES = """\
  python -m skfair warm /opt/skfair-cache        at image build
  NUMBA_CACHE_DIR=/opt/skfair-cache python app.py
"""
_COMMANDS = {
    "audit": ("audit predictions in a CSV or parquet file", _AUDIT_EXAMPLES),
    "audit-data": (
        "audit a data set: shares of groups, labels, missing values, columns that tell the group",
        _AUDIT_DATA_EXAMPLES,
    ),
    "choose": ("make the page on which a committee chooses a limit", _CHOOSE_EXAMPLES),
    "decide": ("decide about new rows by the model that a committee chose", _DECIDE_EXAMPLES),
    "data": ("write simulated loan applications to a file", _DATA_EXAMPLES),
    "warm": ("compile kernels ahead of the first fit", _WARM_EXAMPLES),
}
_TASKS = ["auto", "binary", "classes", "numbers"]
_ROLES = ["target", "prediction", "score", "before", "weight", "units", "sensitive", "control"]
_LABEL, _TEXT = {"metavar": "LABEL"}, {"metavar": "TEXT", "default": ""}


# Messages name arguments of Python. A command shows these words in their place.
_PHRASES = {
    "pos_label=, or compare them yourself: y == label": "--pos-label",
    " For several classes see worst_class=True of make_fairness_scorer, which scores each "
    "against the rest, and rates=False of group_report.": "",
    "metrics has": "--metrics has",
    "units has": "--units has",
    "must be numeric, got": "must be numeric (1.234,5 and 55,5 % are read with --decimal ,), got",
    "Drop them": "Drop them, for example with --drop-missing target",
    "NaN or infinite.": "NaN or infinite. Drop rows without a score with --drop-missing score.",
    "Give both the same labels": "Name both positive classes: --pos-label, --pos-label-true",
    "{'sex': 'male', 'race': 'White'}": '"sex=male,race=White"',
    " A function of your own needs single rows: group_report(metrics=...) has them.": "",
}
_NAMES = {"y_true": "target", "y_pred": "prediction", "y_score": "score"} | {
    "sample_weight": "weight",
    "control_features": "control",
    "sensitive_features": "sensitive",
}
_ARGUMENT = re.compile(r"(?<!['\"\w-])([a-z]+(?:_[a-z]+)+|depth|preset|reference|task)(=|\b)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What stands behind ``python -m skfair``. If None, the command line is read.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:  # with the usage of the command, which argparse itself does not show
        options.parser.error(f"unrecognized arguments: {visible(' '.join(unknown))}")
    try:
        if sys.stdout is None:  # as after ">&-" in a shell
            raise OSError("Standard output is closed. Send it to a file, or to /dev/null.")
        with warnings.catch_warnings(record=True) as caught:
            code = _run(options)
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            _say(options.command, text)
        return code
    except Exception as error:  # 1, with which Python ends, says that a condition holds
        is_ours = isinstance(error, (ValueError, TypeError, OSError, ImportError))
        text = str(error) if is_ours else f"{type(error).__name__}: {error}"
        _say(options.command, text)
        return 2


def _say(command: str, text: str) -> None:
    """Print an error or a warning in one line."""
    if command in _OPTIONS:
        text = _with_options(text, command)
    if sys.stderr is not None:
        sys.stderr.write(f"skfair {command}: {visible(' '.join(text.split()))}\n")


def _with_options(text: str, command: str) -> str:
    """Name options where a message names arguments of Python."""
    for phrase, said in _PHRASES.items():
        text = text.replace(phrase, said)
    options = {name.lstrip("-") for own in _OPTIONS[command].values() for name in own}

    def named(match: re.Match[str]) -> str:
        option = _NAMES.get(match[1], match[1].replace("_", "-"))
        is_meant = option in options and (match[2] or "_" in match[1])
        return f"--{option}{match[2] and ' '}" if is_meant else match[0]

    return _ARGUMENT.sub(named, text)


def audit_main() -> int:
    """Run ``skfair-audit``, the same as ``python -m skfair audit``."""
    end_with_the_pipe()
    return main(["audit", *sys.argv[1:]])


def end_with_the_pipe() -> None:
    """Let this process end without a word when nobody reads what it prints, as after ``| head``."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _decimal(text: str) -> float:
    """Read a number such as 0.05, 0,05 or 5%."""
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


_WHOLE = {"type": int}
_NUMBER = {"type": _decimal, "metavar": "NUMBER"}
# The options of an audit by the title above them in the help: what the help says of each, and how
# argparse reads it. Numbers without a default have that of skfair.report.audit.
_Options: TypeAlias = dict[str, dict[str, tuple[str, dict[str, Any]]]]
_AUDIT_OPTIONS: _Options = {
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
        "--profile": ("file for a row for each group and measure: .csv or .json", {}),
        "--title": ("title of the report", {}),
        "--model": ("name and version of the model, for the head of the report", _TEXT),
        "--source": ("where the rows come from", _TEXT),
        "--period": ("when they were decided, such as 2026-01 to 2026-06", _TEXT),
        "--prepared-by": ("who answers for the report", _TEXT),
        "--metrics": ("names of metrics to report, separated by commas", {}),
        "--depth": ("attributes that a subgroup may fix", _WHOLE),
        "--min-group-size": ("smaller groups are not compared; default 30", _WHOLE),
        "--suppress-below": ("smaller groups are not shown; default 10", _WHOLE),
        "--confidence": ("coverage of intervals", _NUMBER),
        "--random-state": ("of the simulations; default 0", {"type": int, "default": 0}),
        "--fail-if": (
            'exit with 1 if the interval shows it: "sex: equal_opportunity_difference > 0.05", or '
            'of any attribute "demographic_parity_difference > 0.1"; or exceeds the limit in the '
            "memo of a committee, decision.json; may be repeated",
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
        "--annotate": ("print conditions as annotations of GitHub, too", {"action": "store_true"}),
    },
    "tables of rules of law (no advice)": {
        "--preset": (
            "ll144: impact ratios, New York City Local Law 144; ugesp: adverse impact by the "
            "four-fifths rule, two standard deviations and Fisher's exact test; ecoa: lending",
            {"choices": ["ll144", "ugesp", "ecoa"]},
        ),
        "--reference": ('reference group: male; of several "sex=male,race=White"', {}),
    },
}
# Options of other commands; those without a text mean what they do in an audit.
_SAME: tuple[str, dict[str, Any]] = ("", {})
_READING = dict.fromkeys(
    (
        *("--pos-label", "--bins", "--date-format", "--drop-missing", "--missing", "--block-rows"),
        *("--encoding", "--decimal"),
    ),
    _SAME,
)
_COLUMNS: tuple[str, dict[str, Any]] = ("columns that are read; default: all others", {})
_AUDIT_DATA_OPTIONS: _Options = {
    "columns": {
        "--target": ("labels or numbers that a model will learn", {}),
        "--columns": _COLUMNS,
        **dict.fromkeys(("--sensitive", "--units"), _SAME),
    },
    "comparing": {
        "--reference-shares": ("population: CSV with attribute, group, share; or JSON", {}),
        "--earlier": ("earlier data with the same columns", {}),
    },
    "reading": _READING | {"--unknown": _SAME},
    "result": dict.fromkeys(
        (
            *("--out", "--title", "--source", "--period", "--prepared-by", "--min-group-size"),
            *("--suppress-below", "--confidence", "--random-state"),
        ),
        _SAME,
    ),
}
_CHOOSE_OPTIONS: _Options = {
    "columns": {
        "--target": ("labels that the models learn, such as repaid", {"required": True}),
        "--columns": _COLUMNS,
        "--score": (
            "scores of your own model, which decide; --columns beside it tell the group",
            {},
        ),
        "--before": ("decisions of today; default: those with the largest limit", {}),
        **dict.fromkeys(("--sensitive", "--units"), _SAME),
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
    },
    "reading": _READING | {"--pos-label-true": _SAME},
    "result": {
        "--out": ("page to write, .html", {"required": True}),
        "--decided": ("what a positive decision is, such as granted", {"metavar": "WORD"}),
        **dict.fromkeys(("--title", "--suppress-below", "--confidence", "--random-state"), _SAME),
    },
}
_DECIDE_OPTIONS: _Options = {
    "model": {
        "--memo": ("memo of the decision, as the page of choose writes it", {"required": True}),
        "--fitted-on": ("the file that the page was made of, unchanged", {"required": True}),
    },
    "reading": {
        "--decimal": ("of the new rows, if it is not that of --fitted-on", {"choices": [",", "."]}),
        "--encoding": ("of the new rows, if it is not that of --fitted-on", {}),
        "--block-rows": _SAME,
    },
    "result": {"--out": ("the new rows with their decisions, .csv", {"required": True})},
}
_OPTIONS = {
    "audit": _AUDIT_OPTIONS,
    "audit-data": _AUDIT_DATA_OPTIONS,
    "choose": _CHOOSE_OPTIONS,
    "decide": _DECIDE_OPTIONS,
}


def _run(options: argparse.Namespace) -> int:
    """Run a command, which imports what it needs only then.

    The folder of the cache must be named before numba is imported.
    """
    if options.command == "audit":
        from skfair.report.command_audit import run_audit

        return run_audit(options)
    if options.command == "audit-data":
        from skfair.report.command_audit import run_audit_data

        return run_audit_data(options)
    if options.command == "choose":
        from skfair.choose import run_choose

        return run_choose(options)
    if options.command == "decide":
        from skfair.choose import run_decide

        return run_decide(options)
    if options.command == "data":
        return _write_loans(options.out)
    if options.folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = os.path.abspath(options.folder)
    from skfair.warm import run_warm

    return run_warm()


def _write_loans(out: str) -> int:
    """Write 5,000 simulated loan applications to a CSV file."""
    from skfair.datasets import make_loans
    from skfair.utils.files import replacing

    if not out.endswith(".csv"):
        raise ValueError(f"--out must end in .csv, got {out!r}.")
    loans = make_loans(5000, random_state=0)
    frame = loans.data.assign(**dict(loans.sensitive_features), target=loans.target)
    with replacing(out) as beside:
        frame.to_csv(beside, index=False)
    sys.stdout.write(f"{out}: {len(frame)} rows with the columns {', '.join(frame)}\n")
    return 0


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with the first of the examples that stand at its end."""

    def format_help(self) -> str:
        """Return the help, with an example above the usage."""
        first = re.match(r"examples:\n((?:.*\\\n)*.*\n)", self.epilog or "")
        return (f"{first[1]}\n" if first else "") + super().format_help()


def _parser() -> argparse.ArgumentParser:
    plain: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    description = "Fairness audits and more."
    parser = _Parser("python -m skfair", description=description, **plain)
    folder = os.path.dirname(os.path.abspath(__file__))
    version = f"skfair {__version__} ({folder})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    parsers = {}
    for name, (text, examples) in _COMMANDS.items():
        parsers[name] = commands.add_parser(
            name,
            help=text,
            description=text.capitalize() + ".",
            epilog=f"examples:\n{examples}",
            **plain,
        )
        parsers[name].set_defaults(parser=parsers[name])
    known = {name: own for of_title in _AUDIT_OPTIONS.values() for name, own in of_title.items()}
    for command, options in _OPTIONS.items():
        parsers[command].add_argument(
            "file", help="CSV (also compressed) or parquet file; people with several rows: --units"
        )
        for title, of_title in options.items():
            group = parsers[command].add_argument_group(title)
            for name, own in of_title.items():
                text, how = own if own[0] else known[name]
                group.add_argument(name, help=text, **how)
    data, warm = parsers["data"], parsers["warm"]
    data.add_argument("name", choices=["loans"], help="the data set to write")
    data.add_argument("--out", required=True, help="CSV file to write")
    warm.add_argument("folder", nargs="?", help="where to; default: NUMBA_CACHE_DIR or the package")
    return parser


if __name__ == "__main__":
    end_with_the_pipe()
    sys.exit(main())
