"""Arguments of a monitor: groups and limits, rows, numbers and times of batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from skfair._typing import ColumnLike, ColumnsLike, FloatArray
from skfair.exceptions import SmallGroupWarning
from skfair.groups.attributes import MAX_LEVELS, check_aligned
from skfair.groups.cohort import Cohort
from skfair.groups.compared_groups import names_group
from skfair.groups.decision_memo import read_memo
from skfair.groups.limits import Limit, limits_of_attributes
from skfair.groups.row_units import unit_codes, unit_numbers
from skfair.groups.table import GroupTable
from skfair.utils.text import check_text, did_you_mean, listed
from skfair.utils.validation import check_limit, check_number, check_probability, one_dimensional
from skfair.utils.warn import unwanted, warn_user

# Largest horizon and number of rows of a block.
_MOST = 1_000_000_000
_CONSTRAINTS = (
    "demographic_parity",
    "equal_opportunity",
    "false_positive_parity",
    "false_negative_parity",
    "equalized_odds",
)
# Number or time of a batch. If None, batches are counted from 0.
Batch: TypeAlias = int | str | date | np.datetime64 | None


def named_groups(levels: Sequence[Any] | Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    """Return the attribute and the name of each group, each once."""
    if isinstance(levels, Mapping):
        pairs = [(a, name) for a, names in levels.items() for name in names]
        keys = [(a, f"{a}={name}" if len(levels) > 1 else str(name)) for a, name in pairs]
    else:
        keys = [("", str(name)) for name in levels]
    return list(dict.fromkeys(keys))


def check_keys(keys: Sequence[tuple[str, str]]) -> None:
    """Raise unless attributes and names are those of groups, each once and not too many."""
    check_text((text for key in keys for text in key), "The name")
    if len(set(keys)) < len(keys):
        raise ValueError(f"A group is named twice: {listed([name for _, name in keys])}.")
    if len(keys) > MAX_LEVELS:
        raise ValueError(
            f"The monitor would have {len(keys)} groups (at most {MAX_LEVELS}), which looks "
            "like an identifier. Merge levels into groups."
        )


def warn_of_groups(newcomers: Sequence[tuple[str, str]], n_known: int, number: Any) -> None:
    """Warn of groups that were not expected, and of a first batch that has one group only."""
    names, attribute = listed([name for _, name in newcomers]), newcomers[0][0]
    hint = f"{{{attribute!r}: [...], ...}}" if attribute else "[...]"
    if n_known:
        kinds = f"{names}, which the monitor did not know. They are compared from this batch on."
    elif len(newcomers) == 1:
        kinds = f"{names} only. Nothing is compared until another group comes."
    else:
        return
    warn_user(
        f"Batch {number!r} has rows of {kinds} Groups that are expected can be named when the "
        f"monitor is made: DisparityMonitor(levels={hint})."
    )


def count_batch(
    labels: tuple[ColumnLike | None, ColumnLike],  # true ones and predictions
    sensitive_features: ColumnsLike,
    limit: Limit,
    options: Mapping[str, Any],
    units: ColumnLike | None,
    met: Set[float],  # the numbers of the units of earlier batches
) -> tuple[GroupTable, GroupTable, set[float]]:
    """Return the rows of a batch, those of units that were not met, and the units' numbers."""
    codes, numbers, is_new = None, [], np.ones(1, bool)
    if units is not None:
        check_aligned(predictions=labels[1], units=units)
        codes, owners = unit_codes(units, len(one_dimensional(labels[1], "y_pred")))
        numbers = unit_numbers(owners)
        is_new = np.array([number not in met for number in numbers])[codes]

    def counted(weights: FloatArray | None) -> GroupTable:
        is_crossed = not isinstance(limit, Mapping)
        who: tuple[Any, ...] = sensitive_features, None, weights, is_crossed
        with unwanted(SmallGroupWarning):  # a batch need not have every declared group
            return Cohort.of_labels(*labels, *who, units=codes, **options).table()

    rows = evidence = counted(None)
    if not is_new.all():
        evidence = counted(is_new.astype(float)) if is_new.any() else rows.emptied()
    attributes = [""]
    if isinstance(limit, Mapping):
        cells = rows.groups.cells
        limits_of_attributes(limit, cells)  # they are those of the batch
        attributes = list(cells.levels.attributes)
    levels = {**rows.levels, "attribute": attributes}
    rows = replace(rows, levels=levels, sums={"weights": rows.weights})
    return rows, replace(evidence, levels=levels), set(numbers)


def is_empty(*arguments: Any) -> bool:
    """Whether no argument has a row."""
    columns: list[Any] = []
    for values in arguments:
        columns += values.values() if isinstance(values, Mapping) else [values]
    is_sized = all(hasattr(c, "__len__") and getattr(c, "shape", None) != () for c in columns)
    return is_sized and not any(isinstance(c, str) or len(c) for c in columns)


def chosen_limit(limit: Any, constraint: str) -> Any:
    """Return the limit, or the one in a decision memo; raise if that limits something else."""
    kind = limit.get("kind") if isinstance(limit, Mapping) else None  # or an attribute's limit
    if not isinstance(limit, str | PathLike) and not isinstance(kind, str):
        return limit
    metrics, limits = read_memo(limit)
    if f"{constraint}_difference" not in metrics.split(", "):
        raise ValueError(
            f"The decision memo limits {metrics}, but the monitor watches {constraint}_difference. "
            "Make it with the constraint of the memo. A limit on a ratio is a number, min_ratio=."
        )
    return limits.get("") or limits


def check_settings(settings: Mapping[str, Any], levels: Any) -> None:
    """Raise unless the settings of a monitor and its levels fit each other."""
    constraint, reference = settings["constraint"], settings["reference"]
    if constraint not in _CONSTRAINTS:
        raise ValueError(
            f"constraint must be one of {listed(_CONSTRAINTS)}, got {constraint!r}."
            f"{did_you_mean(constraint, _CONSTRAINTS)}"
        )
    difference, ratio = settings["max_disparity"], settings["min_ratio"]
    lag, horizon = settings["reference_batches"], settings["horizon"]
    if ratio is not None and (difference is not None or lag is not None):
        raise ValueError(
            "min_ratio is a limit of its own. Leave out max_disparity and reference_batches, "
            f"got {difference!r} and {lag!r}."
        )
    limit, argument = (difference, "max_disparity") if ratio is None else (ratio, "min_ratio")
    check_limits(limit, levels, argument)
    check_reference(reference, limit)
    check_probability(settings["confidence"], "confidence")
    if settings["pos_label"] is not None:
        kind_of(settings["pos_label"], "pos_label")
    check_number(horizon, "horizon", 1, _MOST, kind=Integral)
    check_number(settings["min_group_size"], "min_group_size", 2, _MOST, kind=Integral)
    if lag is not None:
        check_number(lag, "reference_batches", 1, horizon, kind=Integral)


def reference_keys(reference: Any, limit: Limit) -> dict[str, str]:
    """Return the name of the reference group of each attribute that has one.

    The attribute is empty if there is one limit; a dict is then one group, an intersection.
    """
    if not names_group(reference):
        return {}
    if not isinstance(reference, Mapping):
        return {"": str(reference)}
    several = len(limit if isinstance(limit, Mapping) else reference) > 1
    names = {a: f"{a}={level}" if several else str(level) for a, level in reference.items()}
    return names if isinstance(limit, Mapping) else {"": ", ".join(names.values())}


def check_reference(reference: Any, limit: Limit) -> None:
    """Raise unless a reference group is given in the same way as the limits."""
    if not names_group(reference):
        return
    is_dict = isinstance(reference, Mapping)
    for level in reference.values() if is_dict else [reference]:
        kind_of(level, "reference")
    if isinstance(limit, Mapping) and not (is_dict and reference and set(reference) <= set(limit)):
        raise ValueError(
            "With a limit for each attribute, reference must be a dict of the reference group of "
            f"some of {listed(list(limit))}; got {reference!r}."
        )
    if is_dict and not reference:
        raise ValueError("reference={} names no group. Pass one, or 'pairwise'.")


def check_limits(limit: Any, levels: Any, argument: str) -> None:
    """Raise unless limits are numbers that can be watched, and levels are given in the same way."""
    if levels is not None and not isinstance(levels, Iterable):
        raise TypeError(f"levels must name all groups, as a list or a dict; got {levels!r}.")
    is_dict = isinstance(limit, Mapping)
    names = {f"{argument}[{a!r}]": v for a, v in limit.items()} if is_dict else {argument: limit}
    if is_dict and all(value is None for value in names.values()):
        raise ValueError(f"{argument}={limit!r} has no limit: give one attribute a number.")
    check_text(limit if is_dict else [], "The attribute")
    for name, value in names.items():
        if value is not None:
            check_number(value, name, 1e-6, np.inf if argument == "max_disparity" else 1 - 1e-6)
            ratio = f"min_ratio={value!r}" if argument == "max_disparity" else None
            check_limit(value, f"{name}={value!r}", ratio=ratio)
    if not is_dict and isinstance(levels, Mapping):
        raise ValueError(
            f"levels is a dict by attribute, so {argument} must have a limit for each, too."
        )
    is_fitting = isinstance(levels, Mapping) and is_dict and set(levels) == set(limit)
    if is_dict and levels is not None and not is_fitting:
        raise ValueError(
            "With a limit for each attribute, levels must be None or a dict of the levels of each "
            f"of {listed(list(limit))}; got {levels!r}."
        )


def checked_batch(batch: Any, last: Any) -> Any:
    """Return the number of a batch; raise if it has been read, or comes too late."""
    if batch != batch:  # NaT, before it becomes None
        raise ValueError(f"batch={batch!r} has no place among the others. Use a number.")
    if isinstance(batch, np.datetime64):
        batch = batch.astype("datetime64[us]")  # those of nanoseconds become numbers
    if isinstance(batch, np.generic):
        batch = batch.item()
    kind: type | None = kind_of(batch, "batch")
    if last is None:
        return batch
    try:
        is_late = batch < last
    except TypeError:  # such as times with and without a time zone
        kind = None
    if kind is not kind_of(last, "batch"):
        raise TypeError(
            f"batch={batch!r} cannot be compared with the last one, {last!r}. Use "
            "numbers, or times of one kind."
        )
    if batch == last:
        raise ValueError(f"batch={batch!r} has been read already.")
    if is_late:
        raise ValueError(
            f"batch={batch!r} comes before the last one, {last!r}. Update in order, "
            "or merge() a monitor of its own."
        )
    return batch


def kind_of(value: Any, what: str) -> type:
    """Return what a number, text or time is compared with; raise for anything else."""
    value = value.item() if isinstance(value, np.generic) else value
    for kind in (Real, str, datetime, date):  # a datetime is a date as well
        if isinstance(value, kind):
            if value != value or value in (np.inf, -np.inf):
                raise ValueError(f"{what}={value!r} has no place among the others. Use a number.")
            check_text([value], what)
            return kind
    raise TypeError(f"{what} must be a number, text, a date or a datetime, got {value!r}.")
