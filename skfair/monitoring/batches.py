"""What users pass to a monitor, checked and counted.

- ``check_settings`` (with ``check_limits`` and ``check_reference``) and ``chosen_limit`` read the
  parameters of ``DisparityMonitor``.
- ``named_groups``, ``reference_keys``, ``check_keys`` and ``warn_of_groups`` are about the *keys*
  of groups: pairs (attribute, name). The attribute is "" if there is one limit for all groups.
- ``count_batch`` turns the rows of a batch into a table, and ``checked_batch`` reads its number.

A ``limit`` is a number, or a dict of the limit of each attribute (None for no limit).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, datetime
from hashlib import blake2b
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from skfair._typing import FloatArray
from skfair.exceptions import RepeatedRowsWarning, SmallGroupWarning
from skfair.groups.attributes import MAX_LEVELS, check_aligned
from skfair.groups.cohort import Cohort, with_columns
from skfair.groups.cohort_rows import outcome_rows, refuse_kinds
from skfair.groups.compared_groups import names_group
from skfair.groups.declared_rates import is_f_score, rate_named
from skfair.groups.limits import Limit, limits_of_attributes
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.outcomes import Counted
from skfair.groups.row_units import unit_codes, unit_numbers
from skfair.groups.table import GroupTable
from skfair.metrics.labels import LABEL_METRICS, LabelSpec
from skfair.metrics.own_metrics import GroupMetric
from skfair.records.decision_memo import read_memo
from skfair.utils.text import check_text, did_you_mean, listed
from skfair.utils.validation import check_limit, check_number, check_probability, one_dimensional
from skfair.utils.warn import unwanted, warn_user

# Largest ``horizon`` and ``min_group_size``.
_MOST = 1_000_000_000
# The rates that a monitor compares, by its constraint: all shares of rows.
_CONSTRAINTS = {
    name.removesuffix("_difference"): spec
    for name, spec in LABEL_METRICS.items()
    if spec.kind == "difference" and all(rate_named(rate).is_mean for rate in spec.rates)
}
_RATES = {rate for spec in _CONSTRAINTS.values() for rate in spec.rates}
# Batches of fewer rows may be equal by chance
_FEW = 30
# Number or time of a batch, as users pass it. If None, batches are counted from 0.
Batch: TypeAlias = int | str | date | np.datetime64 | None


def named_groups(levels: Sequence[Any] | Mapping[str, Sequence[Any]]) -> list[tuple[str, str]]:
    """Return the keys of the groups in ``levels``, in order and each once.

    With several attributes the name includes its attribute, such as "sex=female", as in the names
    that ``GroupTable`` gives to the groups of a batch.
    """
    if isinstance(levels, Mapping):
        pairs = [(a, name) for a, names in levels.items() for name in names]
        keys = [(a, f"{a}={name}" if len(levels) > 1 else str(name)) for a, name in pairs]
    else:
        keys = [("", str(name)) for name in levels]
    return list(dict.fromkeys(keys))


def check_keys(keys: Sequence[tuple[str, str]]) -> None:
    """Raise unless the keys are texts, each once and not too many."""
    check_text((text for key in keys for text in key), "The name")
    if len(set(keys)) < len(keys):
        raise ValueError(f"A group is named twice: {listed([name for _, name in keys])}.")
    if len(keys) > MAX_LEVELS:
        raise ValueError(
            f"The monitor would have {len(keys)} groups (at most {MAX_LEVELS}), which looks "
            "like an identifier. Merge levels into groups."
        )


def warn_of_groups(newcomers: Sequence[tuple[str, str]], n_known: int, number: Any) -> None:
    """Warn of groups that were not expected, or of a first batch with a single group.

    ``n_known`` is the number of groups before the batch ``number``.
    """
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
    people: Cohort,
    limit: Limit,
    counted: Counted,
    met: Set[float],  # the numbers of the units of earlier batches
    before: str = "",  # the digest of the batch before
) -> tuple[GroupTable, GroupTable, set[float], str]:
    """Count the rows of a batch by group and by true and predicted class.

    Returned are a table of all rows, a table of the rows of units that no earlier batch had (the
    evidence), the numbers of the units of the batch, and a digest of its rows. Without ``units``
    both tables have all rows, and with units the digest is "". The first table has weights only,
    and the second one also sums over units.
    """
    codes, numbers, is_new, units = None, [], np.ones(1, bool), people.units
    if units is not None:
        refuse_kinds(people)  # the units are remembered
        check_aligned(predictions=people.y_pred, units=units)
        codes, owners = unit_codes(units, len(one_dimensional(people.y_pred, "y_pred")))
        numbers = unit_numbers(owners)
        is_new = np.array([number not in met for number in numbers])[codes]

    def read(weights: FloatArray | None) -> MeasuredRows:
        is_crossed = not isinstance(limit, Mapping)
        own = people if weights is None else with_columns(people, sample_weight=weights)
        with unwanted(SmallGroupWarning):  # a batch need not have every declared group
            return outcome_rows(own, counted, is_crossed, units=codes)

    of_batch = read(None)
    rows = evidence = of_batch.table()
    if not is_new.all():
        evidence = read(is_new.astype(float)).table() if is_new.any() else rows.emptied()
    attributes = [""]
    if isinstance(limit, Mapping):
        cells = rows.groups.cells
        limits_of_attributes(limit, cells)  # raises unless the batch has these attributes
        attributes = list(cells.levels.attributes)
    levels = {**rows.levels, "attribute": attributes}
    rows = replace(rows, levels=levels, sums={"weights": rows.weights})
    digest = _digest(of_batch) if units is None else ""
    if digest and (digest == before or _begins_like(of_batch, before)):
        warn_user(
            "The batch begins with the rows of the batch before, so each of these people would be "
            "evidence twice, and an alarm may be false. Pass new rows only: restore the monitor "
            "that was saved before if a file was read twice. Pass units= if people come again.",
            RepeatedRowsWarning,
        )
    return rows, replace(evidence, levels=levels), set(numbers), digest


def _digest(rows: MeasuredRows, n_rows: int | None = None) -> str:
    """Return the number of rows and a text that equal rows have in common; "" for few rows.

    With ``n_rows`` it is that of the first rows.
    """
    counts = np.ones(rows.values.size) if rows.weights is None else rows.weights
    if counts.sum() < _FEW:
        return ""
    made = blake2b(repr(rows.groups.cells.names).encode(), digest_size=12)
    for own in (rows.values, *rows.groups.cells.codes, counts):
        made.update(np.ascontiguousarray(own[:n_rows], np.float64).tobytes())
    return f"{counts[:n_rows].sum():.0f} {made.hexdigest()}"


def _begins_like(rows: MeasuredRows, digest: str) -> bool:
    """Whether the first rows of a batch are all rows of the one before, by its digest."""
    n_before = int(digest.partition(" ")[0] or 0)
    counts_rows = rows.weights is None and 0 < n_before <= rows.values.size
    return bool(counts_rows and _digest(rows, n_before) == digest)


def is_empty(*arguments: Any) -> bool:
    """Whether every argument is a column, or a dict of columns, without rows."""
    columns: list[Any] = []
    for values in arguments:
        columns += values.values() if isinstance(values, Mapping) else [values]
    is_sized = all(hasattr(c, "__len__") and getattr(c, "shape", None) != () for c in columns)
    return is_sized and not any(isinstance(c, str) or len(c) for c in columns)


def chosen_limit(limit: Any, constraint: str) -> Any:
    """Return the limit, or the limit in a decision memo; raise if the memo limits something else.

    A memo is the path of a JSON file, or the dict in it, which has a text as its "kind". In a dict
    of limits, "kind" could be the name of an attribute and then has a number.
    """
    kind = limit.get("kind") if isinstance(limit, Mapping) else None
    if not isinstance(limit, str | PathLike) and not isinstance(kind, str):
        return limit
    metrics, limits = read_memo(limit)
    if f"{constraint}_difference" not in metrics.split(", "):
        raise ValueError(
            f"The decision memo limits {metrics}, but the monitor watches {constraint}_difference. "
            "Make it with the constraint of the memo. A limit on a ratio is a number, min_ratio=."
        )
    return limits.get("") or limits  # a memo has the key "" if it has one limit for all


def compared_by(constraint: Any) -> LabelSpec:
    """Return what a constraint compares; a rate that is given as a metric has its own name."""
    name = constraint if isinstance(constraint, str) else ""
    if name in _CONSTRAINTS:
        return _CONSTRAINTS[name]
    if name in _RATES or is_f_score(name):
        return LabelSpec("difference", (name,))
    raise ValueError(
        f"constraint must be one of {listed(_CONSTRAINTS)} or make_group_metric(f1_score), got "
        f"{constraint!r}.{did_you_mean(constraint, _CONSTRAINTS)}"
    )


def constraint_name(constraint: Any, is_ratio: bool) -> Any:
    """Return the name of a constraint, also if it is a metric of ``make_group_metric``.

    Evidence that may be looked at after each batch is known of declared rates, such as F1.
    """
    if not isinstance(constraint, GroupMetric):
        return constraint
    if not constraint.rate:
        raise ValueError(
            f"No interval of {constraint!r} is known that holds after every batch. A monitor takes "
            "make_group_metric(f1_score) and rates. Audit each period instead: "
            "audit(metrics=[...]).check(...), with 1 - confidence divided by the number of periods."
        )
    wanted = "ratio" if is_ratio else "difference"
    if constraint.compare != wanted:
        raise ValueError(
            f"The limit is on a {wanted}, but {constraint!r} is not. Make it with "
            f"compare={wanted!r}."
        )
    return constraint.rate


def check_settings(settings: Mapping[str, Any], levels: Any) -> None:
    """Raise unless the settings of a monitor (``monitor._SETTINGS``) and its levels are valid."""
    constraint, reference = settings["constraint"], settings["reference"]
    compared_by(constraint)  # raises if it is none
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

    If there is one limit for all, the only key is "", and a dict names one crossed group.
    """
    if not names_group(reference):
        return {}
    if not isinstance(reference, Mapping):
        return {"": str(reference)}
    several = len(limit if isinstance(limit, Mapping) else reference) > 1
    names = {a: f"{a}={level}" if several else str(level) for a, level in reference.items()}
    return names if isinstance(limit, Mapping) else {"": ", ".join(names.values())}


def check_reference(reference: Any, limit: Limit) -> None:
    """Raise unless the reference is a group, or a dict by attribute if the limits are one."""
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
    """Raise unless the limits are valid numbers, and ``levels`` is a dict if the limits are one.

    ``argument`` is "max_disparity" or "min_ratio".
    """
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
    """Return the number or time of a batch as a Python object; raise unless it is after ``last``.

    ``last`` is that of the last batch, or None before the first one.
    """
    if batch != batch:  # NaN or NaT, which item() would turn into None
        raise ValueError(f"batch={batch!r} has no place among the others. Use a number.")
    if isinstance(batch, np.datetime64):
        batch = batch.astype("datetime64[us]")  # item() turns nanoseconds into a number
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
    """Return the kind of a number, text, datetime or date, which compares only with its kind.

    Anything else raises. ``what`` names the value in messages.
    """
    value = value.item() if isinstance(value, np.generic) else value
    for kind in (Real, str, datetime, date):  # datetime first, since it is a date as well
        if isinstance(value, kind):
            if value != value or value in (np.inf, -np.inf):
                raise ValueError(f"{what}={value!r} has no place among the others. Use a number.")
            check_text([value], what)
            return kind
    raise TypeError(f"{what} must be a number, text, a date or a datetime, got {value!r}.")
