"""The state of a monitor as text, for ``DisparityMonitor.to_json``, ``save`` and ``to_prometheus``.

- ``write_text`` and ``read_text`` turn a state into JSON with a check sum, and back.
- ``write_file`` and ``read_file`` store this text.
- ``checked_alarm``, ``checked_history`` and ``checked_events`` refuse parts of a state that no
  monitor can have. (``Comparison.restored`` and ``Windows.restored`` do it for the counts.)
- ``gauges`` writes the text for Prometheus.
- ``parts_of`` returns what a record says of a monitor.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair.monitoring.batches import kind_of
from skfair.monitoring.comparison import Alarm, Comparison, texts
from skfair.monitoring.windows import checked_numbers
from skfair.utils.files import replacing

# Version of the stored state, to be increased when its content changes.
VERSION = 2
KIND = "skfair record of a monitor"
# The errors that a damaged state may raise when it is read. The monitor raises one ValueError.
FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# How times are written in JSON: {"ISO 8601 date": "2024-05-01"}. datetime is first, since it is a
# date as well.
_TIMES: dict[str, type[date]] = {"ISO 8601 time": datetime, "ISO 8601 date": date}

# A point of the history: batch, disparity, standard error, evidence and attribute.
Point = tuple[Any, float, float, float, str]


class NewGroup(NamedTuple):
    """A group that a monitor did not expect.

    Attributes
    ----------
    batch : int, str, date or datetime
        The first batch with rows of it.
    attribute : str
        Its attribute if each has a limit, else "".
    group : str
        Its name.
    """

    batch: Any
    attribute: str
    group: str


def write_text(state: dict[str, Any]) -> str:
    """Return a state as JSON, with its check sum."""
    try:
        text = json.dumps(state, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "The monitor cannot be stored as JSON: ids, batches and labels must be text, "
            f"finite numbers, or dates. {error}"
        ) from error
    check = check_sum(json.loads(text, parse_int=float))
    return f'{{"version": {VERSION}, "check_sum": "{check}", "state": {text}}}'


def read_text(text: str) -> Any:
    """Return the state in a text; raise unless ``write_text`` wrote it and nothing was changed."""
    try:
        plain = json.loads(text, parse_int=float)
        is_whole = plain["check_sum"] == check_sum(plain["state"])
        document = json.loads(text, object_hook=_with_times)
        version, state = document["version"], document["state"]
    except FAILURES as error:
        raise ValueError(
            f"This is not the text of a monitor ({error!r:.60}). Pass what to_json returned."
        ) from error
    if version != VERSION:
        raise ValueError(
            f"The monitor was stored in version {version!r:.20}, but this release reads version "
            f"{VERSION}. Read it with the release that stored it."
        )
    if not is_whole:
        raise ValueError(
            "The text of the monitor was changed or damaged after it was stored: its check sum is "
            "another one. Pass what to_json returned."
        )
    return state


def check_sum(state: Any) -> str:
    """Return the SHA-256 of a state, with sorted keys, since some stores change their order.

    Numbers are read as floats first (``parse_int=float``), so that 1 and 1.0 are equal.
    """
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def write_file(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file as a whole or not at all; one that ends in ``.gz`` is compressed."""
    whole = text.encode()
    with replacing(path) as beside, beside.open("wb") as file:
        # mtime=0 leaves the time out, so that equal states make equal files.
        file.write(gzip.compress(whole, mtime=0) if Path(path).suffix == ".gz" else whole)
        file.flush()
        os.fsync(file.fileno())


def read_file(path: str | os.PathLike[str]) -> str:
    """Return the text in a file."""
    whole = Path(path).read_bytes()
    try:
        return (gzip.decompress(whole) if Path(path).suffix == ".gz" else whole).decode()
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise ValueError(
            f"{str(path)!r} is not the file of a monitor ({error!r:.100}). Pass what save wrote."
        ) from error


def checked_alarm(values: list[Any], seen: Comparison) -> Alarm:
    """Return a stored alarm; raise unless it is about groups and batches of the monitor."""
    alarm = Alarm(*values)
    checked_numbers(alarm[-2:], "alarm", (2,))
    kind_of(alarm.since, "The batch of an alarm")
    if not alarm.since <= alarm.batch <= seen.last:
        raise ValueError("The alarm is not about batches that were read.")
    if alarm.rate not in seen.rates or not {alarm.higher, alarm.lower} <= {*seen.names}:
        raise ValueError("The alarm is not about rates and groups of the monitor.")
    return alarm


def checked_history(points: Iterable[list[Any]], seen: Comparison) -> list[Point]:
    """Return a stored history, with NaN in place of None (JSON has no NaN).

    It must have one point for each attribute with a limit, and then those of the next batch.
    """
    history = []
    for batch, *numbers, attribute in points:
        kind_of(batch, "The batch of the history")
        texts([attribute], 1)
        known = [0.0 if x is None else x for x in numbers[:2]] + numbers[2:]
        checked_numbers(known, "history", (3,))
        size, error, evidence = (np.nan if x is None else float(x) for x in numbers)
        history.append((batch, size, error, evidence, attribute))
    for k in range(0, len(history), len(seen.limits)):
        if {point[4] for point in history[k : k + len(seen.limits)]} != set(seen.limits):
            raise ValueError(f"The history must have a point of each of {[*seen.limits]}.")
    if not all(point[0] <= seen.last for point in history):
        raise ValueError("The history is not that of batches that were read.")
    return history


def checked_events(events: Iterable[list[Any]], seen: Comparison) -> list[NewGroup]:
    """Return the stored events of new groups; raise unless they are groups of the monitor."""
    new_groups = [NewGroup(batch, *texts(key, 2)) for batch, *key in events]
    for event in new_groups:
        kind_of(event.batch, "The batch of a new group")
        if event[1:] not in seen.keys or not event.batch <= seen.last:
            raise ValueError("A new group is not a group of the monitor.")
    return new_groups


def parts_of(monitor: Any) -> dict[str, Any]:
    """Return the parts of the record of a DisparityMonitor."""
    names = ("n_rows_", "n_batches_", "status_", "evidence_", "rates_", "impact_ratios_")
    found = {name: getattr(monitor, name) for name in (*names, "new_groups_")}
    found["alarm_"] = monitor.alarm_ and monitor.alarm_._asdict()
    return {"asked": monitor._settings(), "found": found}


def gauges(monitor: Any, n_waiting: int) -> Iterator[str]:
    """Yield the state of a DisparityMonitor for Prometheus, one gauge in a line."""
    for name, value, labels in _gauges(monitor, n_waiting):
        pairs = {"constraint": monitor.constraint, **labels}.items()
        inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in pairs)
        yield f"skfair_{name}{{{inside}}} {value}\n"


def _with_times(document: dict[str, Any]) -> Any:
    """Return a dict read from JSON, or the time that it stands for (see ``_TIMES``)."""
    for name, kind in _TIMES.items():
        if document.keys() == {name}:
            return kind.fromisoformat(document[name])
    return document


def _plain(value: Any) -> Any:
    """Return what JSON can write: numpy numbers as numbers, times as dicts (see ``_TIMES``)."""
    for name, kind in _TIMES.items():
        if isinstance(value, kind):
            return {name: value.isoformat()}
    if isinstance(value, np.generic | np.ndarray):
        numbers: NDArray[Any] = np.asarray(value)
        return numbers.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}.")


def _gauges(monitor: Any, n_waiting: int) -> Iterator[tuple[str, float, dict[str, str]]]:
    """Yield the name, the value and the labels of each gauge for Prometheus."""
    yield "rows_total", monitor.n_rows_, {}
    yield "batches_total", monitor.n_batches_, {}
    yield "waiting_predictions", n_waiting, {}
    yield "new_groups_total", len(monitor.new_groups_), {}
    yield "evidence", monitor.evidence_, {}
    yield "alarm", int(monitor.alarm_ is not None), {}
    status = monitor.status_
    for name in ("pass", "fail", "inconclusive"):
        yield "status", int(name == status), {"status": name}
    is_ratio = monitor.min_ratio is not None
    limits = monitor._seen.limits  # the limit of each attribute; the key "" is the common limit
    for a, limit in limits.items():
        yield ("min_ratio" if is_ratio else "max_disparity"), limit, {"attribute": a} if a else {}
    for _, disparity, _, _, a in monitor.history_[-len(limits) :]:
        yield ("ratio" if is_ratio else "disparity"), disparity, {"attribute": a} if a else {}
    for name, table in {"rate": monitor.rates_, "impact_ratio": monitor.impact_ratios_}.items():
        for rate, values in table.items():
            for group, value in values.items():
                yield name, value, {"rate": rate, "group": group}


def _escaped(name: str) -> str:
    """Return a name as Prometheus wants labels within quotes."""
    return str(name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
