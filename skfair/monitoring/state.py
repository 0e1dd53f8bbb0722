"""What a monitor knows, and how it is stored: rates of groups, sums since each start, alarms."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.groups.limits import Limit
from skfair.metrics.label_rates import RATES
from skfair.metrics.labels import LabelSpec
from skfair.monitoring.windows import Windows
from skfair.utils.text import listed

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
    history_: list[tuple[Any, float, float, float]]
    _spec: LabelSpec
    _stride: int
    _names: list[str]
    _attributes: list[str]
    _first: dict[int, Any]
    _last_id: Any

    @abstractmethod
    def __init__(self, *args: Any, groups: Any = None, **kwargs: Any) -> None:
        """Take the settings that were stored."""

    def _begin(self, names: list[str], attributes: Sequence[str] = ()) -> None:
        """Start with groups, and the attribute of each if each attribute has its limit."""
        of_names = list(attributes) or [""] * len(names)
        limits = [
            self.max_disparity.get(a)
            if isinstance(self.max_disparity, Mapping)
            else self.max_disparity
            for a in of_names
        ]
        compared = [
            (i, j)
            for i, j in combinations(range(len(names)), 2)
            if names[i] != names[j] and of_names[i] == of_names[j] and limits[i] is not None
        ]
        if not compared:
            raise ValueError(f"A monitor compares two groups or more, got {listed(names)}.")
        self._names, self._attributes = names, of_names
        self._counts: FloatArray = np.zeros((len(names), 2, 2))
        self._pairs = [(rate, i, j) for rate in self._spec.rates for i, j in compared]
        self._limits = np.array([limits[i] for _, i, _ in self._pairs], np.float64)
        self._windows = Windows(len(self._pairs), self.horizon, self.reference)

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
            What :meth:`from_json` reads; predictions without labels are not in it.
        """
        state = {
            "settings": self._settings(),
            "names": self._names,
            "attributes": self._attributes,
            "n": [self.n_rows_, self.n_batches_, self._stride],
            "evidence": self.evidence_,
            "alarm": self.alarm_,
            "history": self.history_,
            "first": list(self._first.items()),
            "last_id": self._last_id,
        }
        if self._names:
            state |= {"counts": self._counts.tolist(), "windows": self._windows.to_dict()}
        return json.dumps(state, default=_plain)

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
        try:
            state = json.loads(text, object_hook=_with_times)
            made = cls(**state["settings"])
            if state["names"]:
                made._begin(state["names"], state.get("attributes", ()))
            made.n_rows_, made.n_batches_, made._stride = state["n"]
            made.evidence_, made._last_id = state["evidence"], state["last_id"]
            made.alarm_ = None if state["alarm"] is None else Alarm(*state["alarm"])
            made.history_ = [tuple(point) for point in state["history"]]
            made._first = dict(state["first"])
            if state["names"]:
                made._counts = np.asarray(state["counts"], np.float64)
                n_pairs = len(made._pairs)
                made._windows = Windows.from_dict(
                    state["windows"], n_pairs, made.horizon, made.reference
                )
        except (TypeError, KeyError, json.JSONDecodeError) as error:
            raise ValueError("This is not the text of a monitor: use what to_json returned.") from (
                error
            )
        return made

    def to_prometheus(self) -> str:
        """Return the state as text for Prometheus.

        Returns
        -------
        text : str
            One gauge in a line.
        """
        rule = f'constraint="{self.constraint}"'
        limits = self.max_disparity
        if isinstance(limits, Mapping):
            bounds = [
                f'skfair_max_disparity{{{rule},attribute="{_escaped(a)}"}} {limit}'
                for a, limit in limits.items()
                if limit is not None
            ]
        else:
            bounds = [f"skfair_max_disparity{{{rule}}} {limits}"]
        lines = [
            f"skfair_rows_total{{{rule}}} {self.n_rows_}",
            f"skfair_batches_total{{{rule}}} {self.n_batches_}",
            *bounds,
            f"skfair_evidence{{{rule}}} {self.evidence_}",
            f"skfair_alarm{{{rule}}} {int(self.alarm_ is not None)}",
        ]
        if self.history_:
            lines.append(f"skfair_disparity{{{rule}}} {self.history_[-1][1]}")
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
    return str(value)
