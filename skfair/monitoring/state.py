"""What a monitor knows, and how it is stored: rates of groups, sums since each start, alarms."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from abc import abstractmethod
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skfair.monitoring.batches import checked_batch, kind_of
from skfair.monitoring.pairs import ComparedPairs
from skfair.monitoring.windows import Windows, checked_numbers
from skfair.utils.files import replacing
from skfair.utils.text import check_text
from skfair.utils.validation import check_number

# Of the stored state; raised when what it holds changes.
_VERSION = 1
# What a float counts exactly.
_MOST = 2**53
# What a damaged state makes fail, when it is read.
_FAILURES = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
)
# How times are written in JSON; a datetime is a date as well.
_TIMES: dict[str, type[date]] = {"ISO 8601 time": datetime, "ISO 8601 date": date}


class Alarm(NamedTuple):
    """What a monitor found.

    Attributes
    ----------
    batch : int, str, date or datetime
        The batch after which the evidence was enough.
    since : int, str, date or datetime
        The batch with which the change probably began.
    rate : str
        The rate that differs.
    higher, lower : str
        The groups with the higher and the lower rate.
    disparity, standard_error : float
        The difference since then; with ``reference_batches`` how much larger it is than before,
        with ``min_ratio`` the ratio of the lower to the higher rate.
    """

    batch: Any
    since: Any
    rate: str
    higher: str
    lower: str
    disparity: float
    standard_error: float


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


class StoredMonitor(ComparedPairs):
    """The state of a monitor, which can be written down and read again."""

    min_rows: int
    pos_label: Any
    alarm_: Alarm | None
    _stride: int
    _first: dict[int, Any]
    _last_id: Any

    @abstractmethod
    def __init__(self, *args: Any, groups: Any = None, **kwargs: Any) -> None:
        """Take the settings that were stored."""

    def to_json(self) -> str:
        """Return the state as JSON.

        Returns
        -------
        text : str
            What :meth:`from_json` reads: everything, also predictions that wait for their labels.
        """
        if any(isinstance(row_id, tuple) for row_id in self._pending):
            raise ValueError("ids that are tuples cannot be stored as JSON. Use text or numbers.")
        state = {
            "settings": self._settings(),
            "groups": self._keys if self._names else [],
            "n": [self.n_rows_, self.n_batches_, self._stride],
            "alarm": self.alarm_,
            "history": [[None if x != x else x for x in point] for point in self.history_],
            "first": list(self._first.items()),
            "last_id": self._last_id,
            "new_groups": self.new_groups_,
            "pending": self._pending_by_kind(),
        }
        if self._names:
            state |= {"counts": self._counts.tolist(), "windows": self._windows.to_dict()}
        try:
            text = json.dumps(state, default=_plain, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "The monitor cannot be stored as JSON: ids, batches and labels must be text, "
                f"finite numbers, or dates. {error}"
            ) from error
        check = _check_sum(json.loads(text, parse_int=float))
        return f'{{"version": {_VERSION}, "check_sum": "{check}", "state": {text}}}'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which is replaced as a whole or not at all.

        Parameters
        ----------
        path : str or path-like
            The file that :meth:`load` reads; one that ends in ``.gz`` is compressed.
        """
        text = self.to_json().encode()
        with replacing(path) as beside, beside.open("wb") as file:
            # The time is left out, so that the same state is the same file.
            file.write(gzip.compress(text, mtime=0) if Path(path).suffix == ".gz" else text)
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return a monitor in the state that was saved to a file.

        Parameters
        ----------
        path : str or path-like
            What :meth:`save` wrote.

        Returns
        -------
        monitor : DisparityMonitor
            It goes on where the other one stopped.
        """
        whole = Path(path).read_bytes()
        try:
            text = (gzip.decompress(whole) if Path(path).suffix == ".gz" else whole).decode()
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise ValueError(
                f"{str(path)!r} is not the file of a monitor ({error!r:.100}). Pass what save "
                "wrote."
            ) from error
        return cls.from_json(text)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return a monitor in a stored state.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        monitor : DisparityMonitor
            It goes on where the other one stopped.
        """
        state = _read(text)
        try:
            made = cls(**state["settings"])
            made._restore(state)
        except _FAILURES as error:
            raise ValueError(
                f"The text is not the state of a monitor ({error!r:.200}). Pass what to_json "
                "returned."
            ) from error
        return made

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what was stored; raise for what no monitor can have seen."""
        if state["settings"].keys() != self._settings().keys():
            raise ValueError("The settings are not those of a monitor.")
        for value, low in zip(state["n"], (0, 0, 1), strict=True):
            check_number(value, "n", low, _MOST, kind=int)
        self.n_rows_, self.n_batches_, self._stride = state["n"]
        self._restore_batches(state["first"], state["last_id"])
        self._restore_sums(state)
        if state["alarm"] is not None:
            self._restore_alarm(Alarm(*state["alarm"]))
        self._restore_history(state["history"])
        for label, groups, ids in state["pending"]:
            self._restore_pending(label, groups, ids)
        self._restore_new_groups(state["new_groups"])

    def _restore_batches(self, first: list[Any], last: Any) -> None:
        """Take over the numbers or times of the batches that are kept, which are in order."""
        for number, name in first:
            low = max(self._first, default=-1) + 1
            check_number(number, "The number of a batch", low, self.n_batches_ - 1, kind=int)
            self._first[number] = self._last_id = checked_batch(name, self._last_id)
        if max(self._first, default=-1) != self.n_batches_ - 1 or last != self._last_id:
            raise ValueError(f"The state has read {self.n_batches_} batches, but not the last.")

    def _restore_sums(self, state: dict[str, Any]) -> None:
        """Take over what is known about groups, and weigh it."""
        if not state["groups"]:
            if self.n_rows_:
                raise ValueError(f"There are {self.n_rows_} rows, but no groups.")
            return
        self._begin([_texts(key, 2) for key in state["groups"]])
        self._counts = checked_numbers(state["counts"], "counts", self._counts.shape, 0)
        for attribute in set(self._attributes):
            own = np.array(self._attributes) == attribute
            if self._counts[own].sum() != self.n_rows_:
                raise ValueError(f"The counts are not those of {self.n_rows_} rows.")
        self._windows = Windows.from_dict(
            state["windows"], self._windows, self.n_rows_, self.n_batches_
        )
        if list(self._first) != self._windows.starts.tolist():
            raise ValueError("The batches of the state are not those of its sums.")
        with np.errstate(all="ignore"):
            self._weigh()
        if not np.isfinite(self.evidence_):
            raise ValueError(f"The evidence of the state is {self.evidence_}.")

    def _restore_alarm(self, alarm: Alarm) -> None:
        """Take over an alarm about known groups and batches."""
        checked_numbers(alarm[-2:], "alarm", (2,))
        kind_of(alarm.since, "The batch of an alarm")
        if not alarm.since <= alarm.batch <= self._last_id:
            raise ValueError("The alarm is not about batches that were read.")
        if alarm.rate not in self._spec.rates or not {alarm.higher, alarm.lower} <= {*self._names}:
            raise ValueError("The alarm is not about rates and groups of the monitor.")
        self.alarm_ = alarm

    def _restore_history(self, points: list[Any]) -> None:
        """Take over the history, which has a point of each attribute in turn."""
        self.history_ = [_point(*point) for point in points]
        limits = self._limits_by_attribute
        for k in range(0, len(points), len(limits)):
            if {point[4] for point in self.history_[k : k + len(limits)]} != set(limits):
                raise ValueError(f"The history must have a point of each of {[*limits]}.")
        if not all(point[0] <= self._last_id for point in self.history_):
            raise ValueError("The history is not that of batches that were read.")

    def _restore_pending(self, label: Any, groups: Any, ids: list[Any]) -> None:
        """Take over predictions that wait for their labels: those of one kind."""
        kind_of(label, "A prediction that waits")
        _texts([*groups, *groups.values()], 2 * len(groups))
        limit = self._limit
        is_known = groups.keys() == limit.keys() if isinstance(limit, Mapping) else bool(groups)
        kind = (label, dict(groups))
        for row_id in ids:
            kind_of(row_id, "The id of a prediction that waits")
            if row_id in self._pending or not is_known:
                raise ValueError(
                    f"The prediction of id {row_id!r} is twice, or has other attributes."
                )
            self._pending[row_id] = kind

    def _restore_new_groups(self, events: list[Any]) -> None:
        """Take over when groups came that were not expected."""
        self.new_groups_ = [NewGroup(batch, *_texts(key, 2)) for batch, *key in events]
        for event in self.new_groups_:
            kind_of(event.batch, "The batch of a new group")
            if event[1:] not in self._keys or not event.batch <= self._last_id:
                raise ValueError("A new group is not a group of the monitor.")

    def _pending_by_kind(self) -> list[list[Any]]:
        """Return the ids that wait by prediction and groups, which are written once for all."""
        kinds: dict[int, list[Any]] = {}
        for row_id, kind in self._pending.items():
            kinds.setdefault(id(kind), [*kind, []])[2].append(row_id)
        return list(kinds.values())

    def _settings(self) -> dict[str, Any]:
        return {
            "constraint": self.constraint,
            "max_disparity": self.max_disparity,
            "min_ratio": self.min_ratio,
            "confidence": self.confidence,
            "horizon": self.horizon,
            "min_rows": self.min_rows,
            "reference_batches": self.reference_batches,
            "reference": self.reference,
            "pos_label": self.pos_label,
        }


def _read(text: str) -> Any:
    """Return the state in a text; raise unless it is as ``to_json`` wrote it."""
    try:
        plain = json.loads(text, parse_int=float)
        is_whole = plain["check_sum"] == _check_sum(plain["state"])
        document = json.loads(text, object_hook=_with_times)
        version, state = document["version"], document["state"]
    except _FAILURES as error:
        raise ValueError(
            f"This is not the text of a monitor ({error!r:.60}). Pass what to_json returned."
        ) from error
    if version != _VERSION:
        raise ValueError(
            f"The monitor was stored in version {version!r:.20}, but this release reads version "
            f"{_VERSION}. Read it with the release that stored it."
        )
    if not is_whole:
        raise ValueError(
            "The text of the monitor was changed or damaged after it was stored: its check sum is "
            "another one. Pass what to_json returned."
        )
    return state


def _check_sum(state: Any) -> str:
    """Return what tells a state from every other one, in whatever order a store keeps its keys."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _point(
    batch: Any, disparity: Any, error: Any, evidence: Any, attribute: Any
) -> tuple[Any, float, float, float, str]:
    """Return a point of the history; None was NaN."""
    kind_of(batch, "The batch of the history")
    values = [0.0 if value is None else value for value in (disparity, error)]
    checked_numbers([*values, evidence], "history", (3,))
    numbers = [np.nan if value is None else float(value) for value in (disparity, error)]
    _texts([attribute], 1)
    return batch, numbers[0], numbers[1], float(evidence), attribute


def _texts(texts: list[Any], n: int) -> tuple[Any, ...]:
    """Return so many texts; raise for anything else."""
    if len(texts) != n or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"Expected {n} texts, got {texts!r:.100}.")
    check_text(texts, "The name")
    return tuple(texts)


def _with_times(document: dict[str, Any]) -> Any:
    """Return an object of JSON, or the time that is written as one."""
    for name, kind in _TIMES.items():
        if document.keys() == {name}:
            return kind.fromisoformat(document[name])
    return document


def _plain(value: Any) -> Any:
    """Return numpy numbers as numbers, and times as text that says so."""
    for name, kind in _TIMES.items():
        if isinstance(value, kind):
            return {name: value.isoformat()}
    if isinstance(value, np.generic | np.ndarray):
        numbers: NDArray[Any] = np.asarray(value)
        return numbers.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}.")
