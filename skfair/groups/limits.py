"""Limits on disparities: one for all attributes or for each, the limits in force, their effects.

An estimator keeps the limits in force as ``_limits``, and what they change as ``changes_``. Its
``summary_`` is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from skfair._typing import IntArray
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import TINY
from skfair.utils.text import listed
from skfair.utils.validation import check_number

Limit = float | Mapping[str, float | None]
# By the name of a limit in force, in its own unit: what the training rows have, without a word, and
# by words the "limit", and what was "asked" for if that is another limit.
InForce = dict[str, dict[str, float]]
# Part of the name of a limit on 1 minus a ratio.
ONE_MINUS_RATIO = " (1 - ratio)"


def limits_of_attributes(limit: Limit, groups: GroupEncoding) -> list[float | None]:
    if not isinstance(limit, Mapping):
        return [limit] * groups.n_attributes
    names = groups.levels.attributes
    if len(names) > groups.n_attributes:
        raise ValueError(
            "max_disparity with a limit for each attribute needs attributes that are kept apart. "
            "Set sensitive=Sensitive(crossed=False)."
        )
    if set(limit) != set(names):
        raise ValueError(
            f"max_disparity must have a limit for each of the attributes {listed(names)}, None for "
            f"no limit; got limits for {listed(list(limit))}."
        )
    for name, value in limit.items():
        if value is not None:
            check_number(value, f"max_disparity[{name!r}]", 0)
    return [limit[name] for name in names]


def loosest(limit: Limit) -> float:
    """Return the largest of the limits, infinity if there is none."""
    if not isinstance(limit, Mapping):
        return float(limit)
    return max((float(value) for value in limit.values() if value is not None), default=inf)


def in_force(reached: Mapping[str, float], limits: Iterable[float]) -> InForce:
    """Return limits in force, by their names, with what the training rows have."""
    pairs = zip(reached.items(), limits, strict=True)
    return {name: {"": value, "limit": limit} for (name, value), limit in pairs}


def limits_line(limits: InForce, certified: Mapping[str, float]) -> str:
    """Return one line of limits in force, each in its own unit: a limit on a ratio is a ratio.

    ``certified`` holds what is certified for the population, by the names of limits.
    """
    parts = []
    for name, known in limits.items():
        known = known | ({"certified": certified[name]} if name in certified else {})
        is_ratio = ONE_MINUS_RATIO in name
        texts = [f"{word} {1 - x if is_ratio else x:.4g}".strip() for word, x in known.items()]
        parts.append(_with_remarks(name.replace(ONE_MINUS_RATIO, " ratio"), *texts))
    return ", ".join(parts)


def _with_remarks(name: str, text: str, *remarks: str) -> str:
    return f"{name} {text}" + (f" ({', '.join(remarks)})" if remarks else "")


@dataclass(frozen=True)
class Change:
    """A rate or mean over the training rows, without the limits and with them."""

    before: float  # by the same model without the limits
    after: float
    by_group: dict[str, tuple[float, float]]  # both of each group
    rows_up: int | None = None  # rows that are newly selected, or predicted higher; None: not known
    rows_down: int | None = None


def change_of(
    groups: GroupEncoding, weights: Any, ends: Any, first_rows: IntArray | slice = slice(None)
) -> Change:
    """Return what is changed for all rows, and for those of each group.

    ``ends`` are whether each row is selected, or its prediction, before and after. ``first_rows``
    are those of people that are there once for each group that they may belong to. Rows without a
    group are left out.
    """
    ends = np.asarray(ends, dtype=np.float64)
    weights = np.ones(groups.n_samples) if weights is None else weights
    if groups.has_group is not None:
        weights, first_rows = weights * groups.has_group, np.flatnonzero(groups.has_group)
    before, after = np.average(ends, axis=1, weights=weights).tolist()
    total = np.maximum(groups.sums(weights), TINY)
    of_groups = [(groups.sums(weights * values) / total).tolist() for values in ends]
    named = () if groups.is_vacuous else zip(groups.names, *of_groups, strict=True)
    by_group = {name: (x, y) for name, x, y in named}
    moved = (ends[1] - ends[0])[first_rows]
    return Change(before, after, by_group, int((moved > 0).sum()), int((moved < 0).sum()))


def changes_line(changes: Mapping[str, Change], *, of_groups: bool = True) -> str:
    """Return one line of changes, by the names of the rates or means."""
    parts = []
    for name, own in changes.items():
        digits = ".4g" if name.startswith("mean") else ".1%"
        pairs = {"": (own.before, own.after)} | (own.by_group if of_groups else {})
        texts = [f"{of} {x:{digits}} -> {y:{digits}}".strip() for of, (x, y) in pairs.items()]
        if own.rows_up is not None:
            texts.append(f"{own.rows_up} rows up, {own.rows_down} down")
        parts.append(_with_remarks(name, *texts))
    return ", ".join(parts)
