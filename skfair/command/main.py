"""What can be asked from a shell, and how errors reach it: in one line, with exit code 2."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Sequence

from skfair._version import __version__
from skfair.utils.text import visible

_AUDIT_EXAMPLES = """examples:
  python -m skfair audit decisions.csv --target repaid --prediction approved --groups sex,age \\
      --bins age=25,45,65 --out report.html
  python -m skfair audit scores.parquet --target repaid --score score --threshold 0.5 --groups sex
  python -m skfair audit decisions.csv --target repaid --prediction approved --before old_model \\
      --groups sex --out report.json --fail-if "demographic_parity_difference > 0.1"
  python -m skfair audit applicants.csv --prediction hired --groups sex,race --preset ugesp \\
      --reference "sex=male,race=White" --min-ratio 0.8

Exit code 0: audited, and no --fail-if condition holds. 1: a condition holds. 3: the interval of the
disparity has values on both sides of the limit, so that more rows are needed (--inconclusive).
2: the audit could not be made.
"""
_DATA_EXAMPLES = """examples:
  python -m skfair data                          list the data sets
  python -m skfair data loans --out loans.csv    write one to a file
"""
_WARM_EXAMPLES = """examples:
  python -m skfair warm /opt/skfair-cache        at image build
  NUMBA_CACHE_DIR=/opt/skfair-cache python app.py
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What stands behind ``python -m skfair``; None reads the command line.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:  # with the usage of the command, which argparse itself does not show
        options.parser.error(f"unrecognized arguments: {visible(' '.join(unknown))}")
    try:
        if sys.stdout is None:  # as after ">&-" in a shell
            raise OSError("Standard output is closed. Send it to a file, or to /dev/null.")
        with warnings.catch_warnings(record=True) as caught:
            code = int(options.run(options))
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
    if sys.stderr is not None:
        sys.stderr.write(f"skfair {command}: {visible(' '.join(text.split()))}\n")


def audit_main() -> int:
    """Run ``skfair-audit``, the same as ``python -m skfair audit``."""
    end_with_the_pipe()
    return main(["audit", *sys.argv[1:]])


def end_with_the_pipe() -> None:
    """Let this process end without a word when nobody reads what it prints, as after ``| head``."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


# Each command imports what it needs only when it runs: "warm" must name the folder of the cache
# before numba is imported.
def _audit(options: argparse.Namespace) -> int:
    from skfair.command.audit import run_audit

    return run_audit(options)


def _data(options: argparse.Namespace) -> int:
    from skfair.command.data import run_data

    return run_data(options.name, options.out)


def _warm(options: argparse.Namespace) -> int:
    if options.folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = os.path.abspath(options.folder)
    from skfair.command.warm import run_warm

    return run_warm()


def _parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        "python -m skfair",
        description="Fairness audits and more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    version = f"skfair {__version__} ({folder})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    audit = _command(
        commands, "audit", "audit predictions in a CSV or parquet file", _AUDIT_EXAMPLES
    )
    _add_input(audit)
    _add_result(audit)
    audit.set_defaults(run=_audit)
    data = _command(commands, "data", "list the data sets, or write one to a file", _DATA_EXAMPLES)
    data.add_argument("name", nargs="?", help="the data set to write")
    data.add_argument("--out", help="CSV or parquet file to write")
    data.set_defaults(run=_data)
    warm = _command(commands, "warm", "compile kernels ahead of the first fit", _WARM_EXAMPLES)
    warm.add_argument("folder", nargs="?", help="where to; default: NUMBA_CACHE_DIR or the package")
    warm.set_defaults(run=_warm)
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    text: str,
    examples: str,
) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=text,
        description=text.capitalize() + ".",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(parser=command)
    return command


def _decimal(text: str) -> float:
    """Read a number such as 0.05, 0,05 or 5%."""
    number = text.strip().removesuffix("%")
    try:
        return float(number.replace(",", ".")) / (1 if number == text.strip() else 100)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number. Write it as 0.05 or 5%."
        ) from error


def _add_input(audit: argparse.ArgumentParser) -> None:
    """Declare which columns are read, and how."""
    audit.add_argument("file", help="CSV (also compressed) or parquet file with one row per person")
    columns = audit.add_argument_group("columns")
    columns.add_argument("--target", help="true labels or numbers")
    columns.add_argument("--prediction", help="predicted labels or numbers")
    columns.add_argument("--score", help="scores, larger for the positive class")
    columns.add_argument("--groups", required=True, help="sensitive attributes: sex,age")
    columns.add_argument("--before", help="predictions of an earlier model")
    columns.add_argument("--within", help="what may explain a difference, such as a department")
    columns.add_argument("--weight", help="weights of the rows")
    reading = audit.add_argument_group("reading")
    reading.add_argument(
        "--positive", metavar="LABEL", help="the positive class; not needed for 0 and 1, -1 and 1"
    )
    reading.add_argument(
        "--positive-target", metavar="LABEL", help="that of --target, if it has labels of its own"
    )
    reading.add_argument(
        "--threshold", type=_decimal, help="scores above it are positive decisions"
    )
    reading.add_argument(
        "--bins",
        action="append",
        default=[],
        metavar="COLUMN=EDGE,EDGE",
        help="make groups of a number: age=25,45,65; may be repeated",
    )
    reading.add_argument("--missing", help="name of the group of rows without an attribute")
    reading.add_argument(
        "--unknown",
        help="levels that mean not known, which are listed and not compared, as that of --missing",
    )
    reading.add_argument("--task", default="auto", choices=["auto", "binary", "classes", "numbers"])
    reading.add_argument("--block-rows", type=int, default=500_000, help="rows read at a time")
    reading.add_argument("--encoding", default="utf-8", help="of a CSV file, such as cp1252")


def _add_result(audit: argparse.ArgumentParser) -> None:
    """Declare what is computed and written."""
    result = audit.add_argument_group("result")
    result.add_argument("--out", help="file to write: .html, .md or .json; default: none")
    result.add_argument("--title", help="title of the report")
    result.add_argument("--metrics", help="names of metrics to report, separated by commas")
    result.add_argument("--depth", type=int, default=3, help="attributes that a subgroup may fix")
    result.add_argument("--min-size", type=int, default=30, help="smallest subgroup searched")
    result.add_argument(
        "--min-group-size",
        type=int,
        default=1,
        help="smaller groups are listed, and not compared, nor by --fail-if; default 1",
    )
    result.add_argument("--confidence", type=_decimal, default=0.95, help="coverage of intervals")
    result.add_argument("--seed", type=int, default=0, help="of the simulations; default 0")
    legal = audit.add_argument_group("tables of rules of law (no advice)")
    legal.add_argument(
        "--preset",
        choices=["ll144", "ugesp", "ecoa"],
        help="ll144: impact ratios, New York City Local Law 144; ugesp: adverse impact by the "
        "four-fifths rule, two standard deviations and Fisher's exact test; ecoa: lending",
    )
    legal.add_argument(
        "--reference", help='reference group: male; of several attributes "sex=male,race=White"'
    )
    result.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit with 1 if the interval shows it: "demographic_parity_difference > 0.1", for one '
        'attribute "sex: equal_opportunity_difference > 0.05"; may be repeated',
    )
    result.add_argument(
        "--min-ratio",
        type=_decimal,
        metavar="RATIO",
        help="limit on the impact ratio: 0.8 for the four-fifths rule. Short for --fail-if "
        '"demographic_parity_ratio < RATIO"',
    )
    result.add_argument(
        "--max-disparity",
        type=_decimal,
        metavar="LIMIT",
        help="limit on the difference of selection rates. Short for --fail-if "
        '"demographic_parity_difference > LIMIT"',
    )
    result.add_argument(
        "--inconclusive",
        choices=["pass", "fail"],
        help="count an interval with values on both sides of the limit as passed (exit code 0) or "
        "failed (1); default: exit code 3",
    )
    result.add_argument(
        "--annotate", action="store_true", help="print conditions as annotations of GitHub, too"
    )
