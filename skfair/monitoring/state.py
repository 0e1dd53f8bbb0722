"""What a monitor knows, and how it is stored: rates of groups, sums since each start, alarms."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.groups.limits import Limit
from skfair.metrics.label_rates import RATES
from skfair.metrics.labels import LabelSpec
from skfair.monitoring.batches import check_keys, checked_batch, kind_of
from skfair.monitoring.windows import Windows, checked_numbers
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
        The difference since then; with ``reference`` how much larger it is than before.
    """

    batch: Any
    since: Any
    rate: str
    higher: str
    lower: str
    disparity: float
    standard_error: float


class StoredMonitor(ABC):
    """The state of a monitor, which can be written down and read again."""

    constraint: str
    max_disparity: Limit
    confidence: float
    horizon: int
    min_rows: int
    reference: int | None
    pos_label: Any
    alarm_: Alarm | None
    evidence_: float
    n_rows_: int
    n_batches_: int
    history_: list[tuple[Any, float, float, float, str]]
    _spec: LabelSpec
    _stride: int
    _names: list[str]
    _attributes: list[str]
    _first: dict[int, Any]
    _last_id: Any
    _pending: dict[Any, tuple[Any, dict[str, str]]]

    @abstractmethod
    def __init__(self, *args: Any, groups: Any = None, **kwargs: Any) -> None:
        """Take the settings that were stored."""

    def _begin(self, keys: list[tuple[str, str]]) -> None:
        """Start with groups: (attribute, name), the attribute is empty if there is one limit."""
        check_keys(keys)
        self._attributes, self._names = [a for a, _ in keys], [name for _, name in keys]
        limits = np.array([self._limits_by_attribute.get(a, np.nan) for a in self._attributes])
        # Pairs are in the order of the names, so that those of two monitors are alike.
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
        i, j = (order[one] for one in np.triu_indices(order.size, 1))
        attributes = np.array(self._attributes)
        is_compared = (attributes[i] == attributes[j]) & np.isfinite(limits[i])
        i, j = i[is_compared], j[is_compared]
        n_rates = len(self._spec.rates)
        # (n_pairs, 3): number of the rate, and of both groups
        self._pairs: IntArray = np.stack(
            [np.repeat(np.arange(n_rates), i.size), np.tile(i, n_rates), np.tile(j, n_rates)],
            axis=1,
        )
        self._limits = limits[self._pairs[:, 1]]
        self._counts: FloatArray = np.zeros((len(keys), 2, 2))
        self._windows = Windows(len(self._pairs), self.horizon, self.reference)

    @property
    def _keys(self) -> list[tuple[str, str]]:
        return list(zip(self._attributes, self._names, strict=True))

    @property
    def _limits_by_attribute(self) -> dict[str, float]:
        """The limit of each attribute that has one; that of the empty name if there is one."""
        if not isinstance(self.max_disparity, Mapping):
            return {"": self.max_disparity}
        return {a: limit for a, limit in self.max_disparity.items() if limit is not None}

    @property
    def rates_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group, over all rows."""
        found = {}
        for rate in self._spec.rates:
            hits, rows = self._sums(self._counts, rate) if self._names else (np.empty(0),) * 2
            values = np.where(rows > 0, hits / np.where(rows > 0, rows, 1), np.nan).tolist()
            found[rate] = dict(zip(self._names, values, strict=True))
        return found

    def _sums(self, counts: FloatArray, rate: str) -> tuple[FloatArray, FloatArray]:
        above, below = (np.array(entries) for entries in RATES[rate][:2])
        return (counts * above).sum(axis=(1, 2)), (counts * below).sum(axis=(1, 2))

    def to_json(self) -> str:
        """Return the state as JSON.

        Returns
        -------
        text : str
            What :meth:`from_json` reads: everything, also predictions that wait for their labels.
        """
        if any(isinstance(one, tuple) for one in self._pending):
            raise ValueError("ids that are tuples cannot be stored as JSON. Use text or numbers.")
        state = {
            "settings": self._settings(),
            "groups": self._keys if self._names else [],
            "n": [self.n_rows_, self.n_batches_, self._stride],
            "alarm": self.alarm_,
            "history": [[None if x != x else x for x in point] for point in self.history_],
            "first": list(self._first.items()),
            "last_id": self._last_id,
            "pending": [[one, *noted] for one, noted in self._pending.items()],
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
        for one, label, groups in state["pending"]:
            self._restore_pending(one, label, groups)

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

    def _restore_pending(self, one: Any, label: Any, groups: Any) -> None:
        """Take over a prediction that waits for its label."""
        for value in (one, label):
            kind_of(value, "A prediction that waits")
        _texts([*groups, *groups.values()], 2 * len(groups))
        limit = self.max_disparity
        is_known = groups.keys() == limit.keys() if isinstance(limit, Mapping) else bool(groups)
        if one in self._pending or not is_known:
            raise ValueError(f"The prediction of id {one!r} is twice, or has other attributes.")
        self._pending[one] = (label, dict(groups))

    def _weigh(self) -> tuple[int, int, float]:
        """Set the evidence; return where most of it is: start, pair and direction."""
        if not self._names or not self._windows.watched.any():
            return 0, 0, 1.0
        self.evidence_, start, pair, sign = self._windows.log_total(self._limits)
        return start, pair, sign

    def to_prometheus(self) -> str:
        """Return the state as text for Prometheus.

        Returns
        -------
        text : str
            One gauge in a line. With a limit for each attribute, ``skfair_disparity`` and
            ``skfair_max_disparity`` have the label ``attribute``.
        """
        rule = f'constraint="{self.constraint}"'
        lines = [
            f"skfair_rows_total{{{rule}}} {self.n_rows_}",
            f"skfair_batches_total{{{rule}}} {self.n_batches_}",
            f"skfair_evidence{{{rule}}} {self.evidence_}",
            f"skfair_alarm{{{rule}}} {int(self.alarm_ is not None)}",
        ]
        limits = self._limits_by_attribute
        of_each = {a: f'{rule},attribute="{_escaped(a)}"' if a else rule for a in limits}
        for a, limit in limits.items():
            lines.append(f"skfair_max_disparity{{{of_each[a]}}} {limit}")
        for _, disparity, _, _, a in self.history_[-len(limits) :]:
            lines.append(f"skfair_disparity{{{of_each[a]}}} {disparity}")
        for rate, values in self.rates_.items():
            for name, value in values.items():
                lines.append(
                    f'skfair_rate{{{rule},rate="{rate}",group="{_escaped(name)}"}} {value}'
                )
        return "\n".join(lines) + "\n"

    def _settings(self) -> dict[str, Any]:
        return {
            "constraint": self.constraint,
            "max_disparity": self.max_disparity,
            "confidence": self.confidence,
            "horizon": self.horizon,
            "min_rows": self.min_rows,
            "reference": self.reference,
            "pos_label": self.pos_label,
        }


def _escaped(name: str) -> str:
    """Return a name as a label of Prometheus."""
    return str(name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _read(text: str) -> Any:
    """Return the state in a text; raise unless it is as ``to_json`` wrote it."""
    try:
        plain = json.loads(text, parse_int=float)
        is_whole = plain["check_sum"] == _check_sum(plain["state"])
        found = json.loads(text, object_hook=_with_times)
        version, state = found["version"], found["state"]
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
    given = [0.0 if one is None else one for one in (disparity, error)]
    checked_numbers([*given, evidence], "history", (3,))
    numbers = [np.nan if one is None else float(one) for one in (disparity, error)]
    _texts([attribute], 1)
    return batch, numbers[0], numbers[1], float(evidence), attribute


def _texts(given: list[Any], n: int) -> tuple[Any, ...]:
    """Return so many texts; raise for anything else."""
    if len(given) != n or not all(isinstance(one, str) for one in given):
        raise ValueError(f"Expected {n} texts, got {given!r:.100}.")
    check_text(given, "The name")
    return tuple(given)


def _with_times(found: dict[str, Any]) -> Any:
    """Return an object of JSON, or the time that is written as one."""
    for name, kind in _TIMES.items():
        if found.keys() == {name}:
            return kind.fromisoformat(found[name])
    return found


def _plain(value: Any) -> Any:
    """Return numpy numbers as numbers, and times as text that says so."""
    for name, kind in _TIMES.items():
        if isinstance(value, kind):
            return {name: value.isoformat()}
    if isinstance(value, np.generic | np.ndarray):
        numbers: NDArray[Any] = np.asarray(value)
        return numbers.tolist()
    raise TypeError(f"{value!r} is a {type(value).__name__}.")
