"""The command line ``python -m skfair``: its commands, and errors in one line with exit code 2.

:func:`main` parses the command line and runs a command, and :func:`commands` lists them: three are
here, and wings add others (:mod:`skfair.utils.wings`). Messages of the library name arguments of
Python, so ``_with_options`` puts the names of options in their place. The file imports nothing
heavy: what a command does is imported when it runs.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from skfair._version import __version__
from skfair.utils.command_line import Command
from skfair.utils.text import visible
from skfair.utils.wings import functions_of_wings

_DATA_EXAMPLES = """\
  python -m skfair data loans --out loans.csv
"""
_VERIFY_EXAMPLES = """\
  python -m skfair verify record.json --data decisions.csv
  python -m skfair verify record.json --data decisions.parquet --after memos/decision.json
  python -m skfair verify monitor_record.json --data monitor.json

Exit code 0: all that can be computed again is the same. 1: something differs, is missing from the
record, or was named here and is not in it. 2: it could not be computed, because the file does not
hold what the record says, or the key is that of another record. 3: the numbers are the same, but
the record has an earlier form with other words.

Changes of the record and of the rows are found, even if the checksum was computed anew. Somebody
who has the key, or who replaces the record and its key together, can write a record of other rows:
only a signature shows that. Nobody can compute the date, names, or whether a check was left out.
"""
_WARM_EXAMPLES = """\
  python -m skfair warm /opt/skfair-cache        at image build
  NUMBA_CACHE_DIR=/opt/skfair-cache python app.py
"""


# Messages of the library name Python arguments, and a command shows options instead. _PHRASES
# replaces whole texts, _NAMES names of arguments whose option has another name. Any other argument
# becomes the option of the same name, if the command has one.
_PHRASES = {
    "pos_label=, or compare them yourself: y == label": "--pos-label",
    " For several classes see worst_class=True of make_fairness_scorer, which scores each "
    "against the rest, and rates=False of group_report.": "",
    "metrics has": "--metrics has",
    "lead has": "--lead has",
    "task='numbers'": "--task numbers",
    "task='classes'": "--task classes",
    "task='binary'": "--task binary",
    "units has": "--units has",
    "must be numeric, got": "must be numeric (1.234,5 and 55,5 % are read with --decimal ,), got",
    "Drop them": "Drop them, for example with --drop-missing target",
    "The rows with an outcome": "The rows with an outcome (--drop-missing target)",
    "NaN or infinite.": "NaN or infinite. Drop rows without a score with --drop-missing score.",
    "Give both the same labels": "Name both positive classes: --pos-label, --pos-label-true",
    "{'sex': 'male', 'race': 'White'}": '"sex=male,race=White"',
    "use add_predictions and add_labels": "name their identifiers, --ids",
    "DisparityMonitor(levels=": "--levels (in Python levels=",
    " A function of your own needs single rows: group_report(metrics=...) has them.": "",
}
_NAMES = {"y_true": "target", "y_pred": "prediction", "y_score": "score"} | {
    "sample_weight": "weight",
    "control_features": "control",
    "sensitive_features": "sensitive",
}
# A word is taken for the name of an argument if it has a "_" or is in this list, and is not in
# quotation marks. A "=" may follow it.
_ARGUMENT = re.compile(r"(?<!['\"\w-])([a-z]+(?:_[a-z]+)+|depth|preset|reference|task)(=|\b)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What stands behind ``python -m skfair``. If None, the command line is read.
    """
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:  # argparse would show the usage of the main parser; this shows the command's
        options.parser.error(f"unrecognized arguments: {visible(' '.join(unknown))}")
    try:
        if sys.stdout is None:  # the shell closed it, for example with ">&-"
            raise OSError("Standard output is closed. Send it to a file, or to /dev/null.")
        with warnings.catch_warnings(record=True) as caught:
            code: int = options.run(options)
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            _say(options.command, text)
        return code
    # Python itself would exit with code 1. Here that code says that a check of ``audit`` failed
    # (EXIT_CODES in skfair/report/commands/audit.py), or that ``verify`` found a difference.
    except Exception as error:
        is_ours = isinstance(error, (ValueError, TypeError, OSError, ImportError))
        text = str(error) if is_ours else f"{type(error).__name__}: {error}"
        _say(options.command, text)
        return 2


def _say(command: str, text: str) -> None:
    """Print an error or a warning in one line."""
    text = _with_options(text, command)
    if sys.stderr is not None:
        sys.stderr.write(f"skfair {command}: {visible(' '.join(text.split()))}\n")


def _with_options(text: str, command: str) -> str:
    """Return a message of the library with the options of a command instead of arguments.

    A word becomes ``--word`` only if the command has this option. A word without "_", such as
    ``task``, also needs a "=" after it, because it may be plain English.
    """
    for phrase, said in _PHRASES.items():
        text = text.replace(phrase, said)
    options = {name.lstrip("-") for own in commands()[command].options.values() for name in own}

    def named(match: re.Match[str]) -> str:
        option = _NAMES.get(match[1], match[1].replace("_", "-"))
        is_meant = option in options and (match[2] or "_" in match[1])
        return f"--{option}{match[2] and ' '}" if is_meant else match[0]

    return _ARGUMENT.sub(named, text)


def audit_main() -> int:
    """Run ``skfair-audit``, the same as ``python -m skfair audit``."""
    prepare_pipe()
    return main(["audit", *sys.argv[1:]])


def prepare_pipe() -> None:
    """Prepare this process to print into a pipe.

    It ends without a word when nobody reads what it prints, as after ``| head``. Characters that
    the encoding of the pipe lacks, such as names of groups in cp1252 of Windows, become escapes.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def commands() -> dict[str, Command]:
    """Return the commands by name, those of wings first and then those of this file."""
    own = {
        "data": Command(
            "write simulated loan applications to a file",
            _DATA_EXAMPLES,
            _write_loans,
            {
                "": {
                    "name": ("the data set to write", {"choices": ["loans"]}),
                    "--out": ("CSV file to write", {"required": True}),
                    "--force": ("replace the file if it exists", {"action": "store_true"}),
                }
            },
        ),
        "verify": Command(
            "compute a record again, and say what differs",
            _VERIFY_EXAMPLES,
            _verify,
            {
                "": {"record": ("the record of an audit or a monitor, .json", {})},
                "reading": {
                    "--data": (
                        "file or database of the rows, or the saved monitor",
                        {"required": True},
                    ),
                    "--table": ("table of the database, if it is another one", {}),
                    "--query": ("query of the rows, if it is another one", {}),
                    "--key": ("key of the digests; default: beside the record", {}),
                    "--after": (
                        "file that came before the record and is not beside it; may be repeated",
                        {"action": "append", "default": [], "metavar": "FILE"},
                    ),
                    "--model-file": ("file of the model, which the record must name", {}),
                    "--encoding": ("of the rows, if it is another one", {}),
                    "--decimal": ("mark before decimals, if it is another one", {}),
                },
            },
        ),
        "warm": Command(
            "compile kernels ahead of the first fit",
            _WARM_EXAMPLES,
            _warm,
            {"": {"folder": ("where to; default: NUMBA_CACHE_DIR or the package", {"nargs": "?"})}},
        ),
    }
    of_wings = [add() for add in functions_of_wings("commands")]
    return {name: command for some in (*of_wings, own) for name, command in some.items()}


def _verify(options: argparse.Namespace) -> int:
    """Run the command ``verify``."""
    from skfair.records.record import run_verify

    return run_verify(options)


def _warm(options: argparse.Namespace) -> int:
    """Run the command ``warm``. The folder must be set before numba is imported."""
    if options.folder is not None:
        os.environ["NUMBA_CACHE_DIR"] = os.path.abspath(options.folder)
    from skfair.warm import run_warm

    return run_warm()


def _write_loans(options: argparse.Namespace) -> int:
    """Run the command ``data loans``: write 5,000 simulated loan applications to a CSV file."""
    from skfair.datasets import make_loans
    from skfair.utils.files import check_outputs, replacing

    out = options.out
    check_outputs([("--out", out, [".csv"])], [], force=options.force)
    loans = make_loans(5000, random_state=0)
    frame = loans.data.assign(**dict(loans.sensitive_features), target=loans.target)
    with replacing(out) as beside:
        frame.to_csv(beside, index=False)
    sys.stdout.write(f"{out}: {len(frame)} rows with the columns {', '.join(frame)}\n")
    return 0


class _Once(argparse.Action):
    """Store the columns of an option; argparse would silently take the last of two options."""

    is_given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if self.is_given:
            parser.error(
                f"{option_string} was given twice. Give several values to one, such as "
                "--sensitive sex,age."
            )
        self.is_given = True
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with the first example of its epilog."""

    def format_help(self) -> str:
        """Return the help, with an example above the usage."""
        first = re.match(r"examples:\n((?:.*\\\n)*.*\n)", self.epilog or "")
        return (f"{first[1]}\n" if first else "") + super().format_help()


def _parser() -> argparse.ArgumentParser:
    """Return the parser, with a subparser for each command."""
    plain: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    description = "Fairness audits and more."
    parser = _Parser("python -m skfair", description=description, **plain)
    folder = os.path.dirname(os.path.abspath(__file__))
    version = f"skfair {__version__} ({folder})"
    parser.add_argument("--version", action="version", version=version)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in commands().items():
        of_command = subparsers.add_parser(
            name,
            help=command.text,
            description=command.text.capitalize() + ".",
            epilog=f"examples:\n{command.examples}",
            **plain,
        )
        of_command.set_defaults(parser=of_command, run=command.run)
        for title, options in command.options.items():
            group = of_command.add_argument_group(title) if title else of_command
            for option, (text, how) in options.items():
                once: Any = {"action": _Once} if option in ("--sensitive", "--control") else {}
                group.add_argument(option, help=text, **once, **how)
    return parser


if __name__ == "__main__":
    prepare_pipe()
    sys.exit(main())
