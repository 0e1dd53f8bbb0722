"""The command ``monitor`` of ``python -m skfair``: a file of decisions updates a monitor.

:func:`run_monitor` loads the :class:`~skfair.monitoring.DisparityMonitor` from the file of its
state, or makes one, reads the rows, and stores the new state. The monitor comes from another wing
(``monitors`` in its ``wing.py``). :func:`read_batch` and :func:`by_attribute` also serve the
command ``year`` (:mod:`skfair.report.commands.year`).

The state is replaced after everything else has succeeded, so that a failed update changes nothing
and can be repeated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from skfair.groups.declared_rates import spoken_rate
from skfair.report.commands.audit import EXIT_CODES, label_of, read_names, table_of
from skfair.report.files.databases import is_database
from skfair.report.files.table_file import check_levels
from skfair.utils.factorize import factorize
from skfair.utils.files import check_outputs, replacing
from skfair.utils.text import plural, visible
from skfair.utils.wings import functions_of_wings

_SUFFIXES = (".json", ".json.gz")
# The options that are parameters of a monitor. A later update may repeat them, but not change them.
_SETTINGS = ("constraint", "confidence", "horizon", "reference_batches", "min_group_size")
_DEFAULT_LIMIT = 0.05  # as in Python
_OF_LIMIT = {"constraint", "max_disparity", "min_ratio"}


def run_monitor(options: argparse.Namespace) -> int:
    """Run ``monitor``: read a batch, say what is known now, and return the exit code."""
    state, out = Path(options.state), Path(options.out or options.state)
    _check_files(options, state, out)
    kind = _monitors()
    rows = read_batch(options)
    is_new = not state.exists()
    if is_new:
        monitor = kind(**_settings(options, rows, None))
    else:
        monitor = _loaded(kind, state)
        _refuse_changes(kind, monitor, options, rows)
    said = [f"A new monitor, because there was no {state}."] if is_new else []
    said.append(_update(monitor, options, rows))
    with replacing(out) as beside:
        monitor.save(beside)
        if options.record is not None:  # if this fails, the state stays as it was
            memo = [] if options.memo is None else [options.memo]
            after = [*memo, *options.after]
            monitor.record(options.record, after=after, force=options.force)
    lines = [*said, *_found(monitor), f"The state is in {out}."]
    sys.stdout.writelines(f"{visible(line)}\n" for line in lines)
    outcome = monitor.status_
    if outcome == "inconclusive" and options.inconclusive is not None:
        is_open = options.inconclusive == "pass" and not _is_compared(monitor)
        outcome = "inconclusive" if is_open else options.inconclusive
    return EXIT_CODES[outcome]


def read_batch(options: argparse.Namespace) -> dict[str, Any]:
    """Read the rows of a file by the arguments of ``DisparityMonitor.update``.

    With ``--ids`` the identifiers are there too. They are read as text, as attributes are, so that
    007 is the same in every file.
    """
    ids = getattr(options, "ids", None)
    if is_database(options.file, None, None):
        raise ValueError(
            f"{options.file!r} is a database or several files, and this command reads one file. "
            "Write the rows of the period to a file, such as parquet."
        )
    if options.sensitive is None:
        if ids is None or options.prediction is not None:
            raise ValueError(
                "--sensitive is missing. Name the columns that hold the sensitive attributes."
            )
        quoted = '"{}"'.format(ids.replace('"', '""'))
        table = table_of(argparse.Namespace(**vars(options) | {"sensitive": quoted}), options.file)
    else:
        table = table_of(options, options.file)
        table = table if ids is None else table._replace(within=[ids])
    table.check()
    blocks = [block for block in table.blocks() if len(block)]
    if not blocks:
        raise ValueError(f"{table.path.name} has no rows, so nothing was read.")
    frame = pd.concat(blocks, ignore_index=True)
    rows = table.by_argument(frame)
    rows.pop("control_features", None)
    if ids is not None:
        rows["ids"] = frame[ids]
    if options.sensitive is None:
        del rows["sensitive_features"]
    for name in rows.get("sensitive_features", ()):
        check_levels(name, set(frame[name]))
    return rows


def names_limit(options: argparse.Namespace) -> bool:
    """Whether one of the options for limits is named; raise if there are several."""
    limits = [options.memo, options.max_disparity, options.min_ratio]
    n_limits = sum(limit is not None for limit in limits)
    if n_limits > 1:
        raise ValueError("--memo, --max-disparity and --min-ratio are limits. Pass one of them.")
    return n_limits == 1


def by_attribute(limit: Any, options: argparse.Namespace) -> Any:
    """Return a limit, as one for each attribute if there are several, as in ``audit``."""
    names = read_names(options.sensitive or "")
    if isinstance(limit, Mapping) and set(limit) != set(names):
        raise ValueError(
            f"The limits are of {', '.join(limit)}, and --sensitive names {', '.join(names)}. "
            "Name one limit for each attribute."
        )
    return limit if isinstance(limit, Mapping) or len(names) == 1 else dict.fromkeys(names, limit)


def label_in(rows: Mapping[str, Any], text: str | None) -> Any:
    """Return the positive label as it stands in the rows; None if no label was named."""
    columns = [rows[name] for name in ("y_pred", "y_true") if name in rows]
    levels = [level for column in columns for level in factorize(column).levels]
    return label_of(text, levels)


def levels_by_attribute(text: str | None, options: argparse.Namespace) -> Any:
    """Read levels: ``f,m``, or with attributes ``sex=f,sex=m,age=old``.

    With a single attribute, or if none is named, the result is a list. Else it is a dict of lists.
    """
    names = read_names(options.sensitive or "")
    parts = [part.partition("=") for part in read_names(text or "")]
    if not parts or not all(has_level and name.strip() in names for name, has_level, _ in parts):
        return [name + sign + level for name, sign, level in parts] or None
    levels: dict[str, list[str]] = {}
    for name, _, level in parts:
        levels.setdefault(name.strip(), []).append(level.strip())
    return levels[names[0]] if len(names) == 1 else levels


def reference_of(options: argparse.Namespace) -> Any:
    """Return the reference group that was named: a level, or a level by attribute."""
    levels = levels_by_attribute(options.reference, options)
    if isinstance(levels, dict):
        return {name: own[-1] for name, own in levels.items()}
    return ",".join(levels) if levels else None


def batch_of(text: str | None) -> Any:
    """Return the number that a text stands for, or the text, such as 2026-06-30; None if None."""
    with suppress(ValueError):
        return None if text is None else int(text)
    return text


def _check_files(options: argparse.Namespace, state: Path, out: Path) -> None:
    """Raise unless the state and the record can be written without a loss."""
    read = [("the file of the decisions", options.file)]
    check_outputs([("--state", str(state), _SUFFIXES)], read, force=True)
    outputs: list[Any] = [("--record", options.record, [".json"])]
    if out != state:
        outputs.append(("--out", str(out), _SUFFIXES))
    check_outputs(outputs, [*read, ("the state", str(state))], force=options.force)


def _monitors() -> Callable[..., Any]:
    """Return the class of monitors, which another wing has."""
    (monitors,) = functions_of_wings("monitors")
    kind: Callable[..., Any] = monitors()
    return kind


def _loaded(kind: Any, state: Path) -> Any:
    """Load a monitor; an error names the file."""
    try:
        return kind.load(state)
    except (OSError, ValueError) as error:
        raise ValueError(f"--state {str(state)!r} was not read: {error}") from error


def _settings(options: argparse.Namespace, rows: Mapping[str, Any], known: Any) -> dict[str, Any]:
    """Return the parameters of a monitor that the options name.

    ``known`` is the stored monitor, or None. Its positive label need not occur in the rows.
    """
    if options.sensitive is None:
        raise ValueError(
            f"There is no monitor in {options.state!r} yet, so no decisions wait for labels. Pass "
            "the decisions first, with --ids, --prediction and --sensitive."
        )
    has_limit = names_limit(options)
    named = {name: getattr(options, name) for name in _SETTINGS}
    named["max_disparity"] = options.memo
    for name in ("max_disparity", "min_ratio"):
        limit = getattr(options, name)
        named[name] = named.get(name) if limit is None else by_attribute(limit, options)
    if known is None and not has_limit:
        named["max_disparity"] = by_attribute(_DEFAULT_LIMIT, options)
    named["reference"] = reference_of(options)
    named["pos_label"] = label_in(rows, options.pos_label)
    if known is None:
        named["levels"] = levels_by_attribute(options.levels, options)
    elif options.pos_label is not None:
        named["pos_label"] = label_of(options.pos_label, [known.pos_label])
    return {name: value for name, value in named.items() if value is not None}


def _refuse_changes(
    kind: Any, monitor: Any, options: argparse.Namespace, rows: Mapping[str, Any]
) -> None:
    """Raise if an option names another setting than the stored monitor has."""
    if options.sensitive is None:
        return
    named = _settings(options, rows, monitor)
    others = {"constraint"} if {"max_disparity", "min_ratio"} & set(named) else _OF_LIMIT
    asked = kind(**{name: getattr(monitor, name) for name in others} | named)
    for name in named:
        was, own = getattr(monitor, name), getattr(asked, name)
        if was != own:
            raise ValueError(
                f"The monitor in {options.state} was made with --{name.replace('_', '-')} {was!r}, "
                f"and now it is {own!r}. Leave the option out, or begin a monitor in another file."
            )


def _update(monitor: Any, options: argparse.Namespace, rows: dict[str, Any]) -> str:
    """Read the rows: as a batch, as decisions that wait for labels, or as their labels."""
    batch, n_rows = batch_of(options.batch), plural(len(next(iter(rows.values()))), "row")
    ids, target = rows.pop("ids", None), rows.pop("y_true", None)
    prediction = rows.pop("y_pred", None)
    if prediction is None and (ids is None or target is None):
        raise ValueError(
            "Pass --prediction, the column of the decisions. Labels that come later need --ids and "
            "--target, and no --prediction."
        )
    if prediction is None:
        monitor.add_labels(ids, target, batch=batch)
        return f"Labels of {n_rows} were read."
    if ids is None:
        monitor.update(target, prediction, batch=batch, **rows)
        return f"{n_rows} were read."
    if target is not None:
        raise ValueError(
            "--ids is for decisions whose labels come later, and --target names the labels. Leave "
            "out one of them."
        )
    if options.batch is not None:
        raise ValueError("--batch is the number of the labels, and these decisions have none yet.")
    if {*monitor.rates_} == {"selection_rate"}:
        raise ValueError(f"{monitor.constraint} uses no labels, so none come later: no --ids.")
    monitor.add_predictions(ids, prediction, **rows)
    return f"{n_rows} wait for their labels."


def _is_compared(monitor: Any) -> bool:
    """Whether groups of every attribute were compared in some batch."""
    known = {attribute: False for *_, attribute in monitor.history_}
    for _, disparity, *_, attribute in monitor.history_:
        known[attribute] |= disparity == disparity  # NaN if nothing was compared
    return bool(known) and all(known.values())


def _found(monitor: Any) -> Iterator[str]:
    """Say what the monitor knows, a fact in each line."""
    n_batches = monitor.n_batches_
    batches = f"{n_batches:,} batch{'' if n_batches == 1 else 'es'}"
    yield f"So far: {plural(monitor.n_rows_, 'row')} in {batches}."
    for rate, of_groups in monitor.rates_.items():
        values = (f"{name} {value:.1%}" for name, value in of_groups.items() if value == value)
        if text := ", ".join(values):
            yield f"{spoken_rate(rate).capitalize()}: {text}."
    is_ratio = monitor.min_ratio is not None
    limit = monitor.min_ratio if is_ratio else monitor.max_disparity
    of_each = limit if isinstance(limit, Mapping) else {"": limit}
    texts = [f"{name} {own:g}".strip() for name, own in of_each.items() if own is not None]
    limit = f"limit on the {'ratio' if is_ratio else 'difference'}: {', '.join(texts)}"
    alarm = monitor.alarm_
    if alarm is not None:
        yield (
            f"fail: an alarm in batch {alarm.batch}. The {spoken_rate(alarm.rate)} of "
            f"{alarm.higher} is higher than that of {alarm.lower} ({alarm.disparity:.3g}, standard "
            f"error {alarm.standard_error:.2g}) since about batch {alarm.since} ({limit}). The "
            "alarm stays. After a change of the model, begin a monitor in another file."
        )
    elif monitor.status_ == "pass":
        yield f"pass: the mean disparity since the first batch is within the limit ({limit})."
    elif not _is_compared(monitor):
        yield "inconclusive: no two groups of each attribute have been compared yet."
    else:
        yield f"inconclusive: neither an excess nor that the limit is kept is shown ({limit})."
