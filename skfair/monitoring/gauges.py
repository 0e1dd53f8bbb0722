"""What a monitor shows: rates, impact ratios and status, as attributes and as gauges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups.limits import Limit
from skfair.groups.table import RATES
from skfair.metrics.labels import LabelSpec
from skfair.monitoring.batches import reference_keys
from skfair.monitoring.windows import Windows

Status = Literal["pass", "fail", "inconclusive"]


class Gauges(ABC):
    """What can be read off a monitor."""

    constraint: str
    max_disparity: Limit | None
    min_ratio: Limit | None
    confidence: float
    reference: Any
    alarm_: Any
    evidence_: float
    n_rows_: int
    n_batches_: int
    history_: list[tuple[Any, float, float, float, str]]
    new_groups_: list[Any]
    _spec: LabelSpec
    _names: list[str]
    _attributes: list[str]
    _counts: FloatArray
    _pairs: IntArray
    _limits: FloatArray
    _windows: Windows
    _pending: dict[Any, tuple[Any, dict[str, str]]]

    @abstractmethod
    def __init__(self, *args: Any, groups: Any = None, **kwargs: Any) -> None:
        """Take the settings that were stored."""

    @property
    def status_(self) -> Status:
        """Whether the limit is kept: "pass", "fail" or "inconclusive"."""
        if self.alarm_ is not None:
            return "fail"
        is_open = not self._names or not len(self._pairs) or not self._windows.starts.size
        if is_open or self._windows.reference_batches is not None:
            return "inconclusive"
        kept = self._windows.log_kept(self._limits)
        return "pass" if kept.min() >= -np.log(1 - self.confidence) else "inconclusive"

    @property
    def rates_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group, over all rows."""
        rates = {}
        for rate in self._spec.rates:
            hits, rows = self._sums(self._counts, rate) if self._names else (np.empty(0),) * 2
            values = np.where(rows > 0, hits / np.where(rows > 0, rows, 1), np.nan).tolist()
            rates[rate] = dict(zip(self._names, values, strict=True))
        return rates

    @property
    def impact_ratios_(self) -> dict[str, dict[str, float]]:
        """Each rate of each group over that of the reference group, or else the highest one."""
        wanted = self._reference_names
        ratios: dict[str, dict[str, float]] = {rate: {} for rate in self._spec.rates}
        for rate, values in self.rates_.items():
            for attribute in dict.fromkeys(self._attributes):
                own = {
                    name: values[name]
                    for a, name in zip(self._attributes, self._names, strict=True)
                    if a == attribute
                }
                highest = np.nanmax([*own.values(), -np.inf])
                base = own.get(wanted.get(attribute, ""), highest)
                ratios[rate] |= {
                    name: value / base if base > 0 else np.nan for name, value in own.items()
                }
        return ratios

    @property
    def _limit(self) -> Limit:
        """What is limited, in the way that users gave it."""
        limit = self.max_disparity if self.min_ratio is None else self.min_ratio
        assert limit is not None
        return limit

    @property
    def _limits_by_attribute(self) -> dict[str, float]:
        """The limit of each attribute that has one; that of the empty name if there is one."""
        if not isinstance(self._limit, Mapping):
            return {"": self._limit}
        return {a: limit for a, limit in self._limit.items() if limit is not None}

    @property
    def _reference_names(self) -> dict[str, str]:
        """The name of the reference group of each attribute that has one."""
        return reference_keys(self.reference, self._limit)

    def _sums(self, counts: FloatArray, rate: str) -> tuple[FloatArray, FloatArray]:
        above, below = RATES[rate][:2]
        return (counts * above).sum(axis=(1, 2)), (counts * below).sum(axis=(1, 2))

    def _recent(self, attribute: str) -> tuple[float, float]:
        """Return the disparity of about the last ten blocks, and its standard error."""
        if not self._names:
            return np.nan, np.nan
        wanted = self._reference_names.get(attribute)
        firsts = self._pairs[:, 1]
        own = np.array(self._attributes)[firsts] == attribute
        if self.min_ratio is not None and wanted is not None:  # of others to the reference group
            own &= np.array(self._names)[firsts] == wanted
        known = self._windows.known[own]
        rows = np.where(known[:, :, 1] > 0, known[:, :, 1], np.nan)
        rates = known[:, :, 0] / rows
        (first, second), (of_first, of_second) = rates.T, (rates * (1 - rates) / rows).T
        if self.min_ratio is None:
            sizes, errors = first - second, np.sqrt(of_first + of_second)
            distances, sizes = np.abs(sizes), np.abs(sizes) if wanted is None else sizes
        else:
            base = np.where(first > 0, first, np.nan)
            sizes = second / base
            errors = np.sqrt(of_second + sizes**2 * of_first) / base
            distances = -sizes if wanted is None else -np.minimum(sizes, 1 / np.maximum(sizes, 1.0))
        if np.isnan(distances).all():
            return np.nan, np.nan
        worst = int(np.nanargmax(distances))
        return float(sizes[worst]), float(errors[worst])

    def to_prometheus(self) -> str:
        """Return the state as text for Prometheus.

        Returns
        -------
        text : str
            One gauge in a line. With a limit for each attribute, ``skfair_disparity`` and
            ``skfair_max_disparity`` have the label ``attribute``; with ``min_ratio`` they are
            called ``skfair_ratio`` and ``skfair_min_ratio``.
        """
        return "\n".join(self._gauges()) + "\n"

    def _gauges(self) -> Iterator[str]:
        labels = {"constraint": self.constraint}
        yield _gauge("rows_total", self.n_rows_, **labels)
        yield _gauge("batches_total", self.n_batches_, **labels)
        yield _gauge("waiting_predictions", len(self._pending), **labels)
        yield _gauge("new_groups_total", len(self.new_groups_), **labels)
        yield _gauge("evidence", self.evidence_, **labels)
        yield _gauge("alarm", int(self.alarm_ is not None), **labels)
        status = self.status_
        for name in ("pass", "fail", "inconclusive"):
            yield _gauge("status", int(name == status), **labels, status=name)
        kind, limit_name = ("disparity", "max_disparity")
        if self.min_ratio is not None:
            kind, limit_name = ("ratio", "min_ratio")
        limits = self._limits_by_attribute
        of_each = {a: labels | ({"attribute": a} if a else {}) for a in limits}
        for a, limit in limits.items():
            yield _gauge(limit_name, limit, **of_each[a])
        for _, disparity, _, _, a in self.history_[-len(limits) :]:
            yield _gauge(kind, disparity, **of_each[a])
        for name, table in {"rate": self.rates_, "impact_ratio": self.impact_ratios_}.items():
            for rate, values in table.items():
                for group, value in values.items():
                    yield _gauge(name, value, **labels, rate=rate, group=group)


def _gauge(name: str, value: float, **labels: str) -> str:
    """Return a line of Prometheus."""
    inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
    return f"skfair_{name}{{{inside}}} {value}"


def _escaped(name: str) -> str:
    """Return a name as a label of Prometheus."""
    return str(name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
