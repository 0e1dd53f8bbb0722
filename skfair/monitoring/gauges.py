"""The state of a monitor as gauges for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def gauges(
    monitor: Any,  # DisparityMonitor
    limits: Mapping[str, float],  # by attribute; the key "" is the common limit
    n_waiting: int,
) -> Iterator[str]:
    """Yield one gauge in a line."""
    for name, value, labels in _numbers(monitor, limits, n_waiting):
        pairs = {"constraint": monitor.constraint, **labels}.items()
        inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in pairs)
        yield f"skfair_{name}{{{inside}}} {value}"


def _numbers(
    monitor: Any, limits: Mapping[str, float], n_waiting: int
) -> Iterator[tuple[str, float, dict[str, str]]]:
    """Yield the name, the value and the labels of each gauge."""
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
    for a, limit in limits.items():
        yield ("min_ratio" if is_ratio else "max_disparity"), limit, {"attribute": a} if a else {}
    for _, disparity, _, _, a in monitor.history_[-len(limits) :]:
        yield ("ratio" if is_ratio else "disparity"), disparity, {"attribute": a} if a else {}
    for name, table in {"rate": monitor.rates_, "impact_ratio": monitor.impact_ratios_}.items():
        for rate, values in table.items():
            for group, value in values.items():
                yield name, value, {"rate": rate, "group": group}


def _escaped(name: str) -> str:
    """Return a name as a label of Prometheus."""
    return str(name).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
