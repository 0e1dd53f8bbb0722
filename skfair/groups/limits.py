"""Limits on disparities: one for all attributes or for each, the limits in force, their effects.

An estimator keeps the limits in force as ``_limits``, and what they change as ``changes_``. Its
``summary_`` is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

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
            "Set sensitive=Sensitive(intersectional=False)."
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


class Stages(NamedTuple):
    """A rate or mean over some training rows at the three stages of a fit."""

    before: float  # by the model itself
    without_limits: float  # by what is best for the objective if there are no limits
    after: float  # within the limits


@dataclass(frozen=True)
class Change:
    """A rate or mean over the training rows at the three stages of a fit.

    A trained model has two stages only: the model without limits is the model itself.
    """

    before: float
    without_limits: float
    after: float
    by_group: dict[str, Stages]
    # Rows that are newly selected, or predicted higher, than by the model itself; None: not known
    rows_up: int | None = None
    rows_down: int | None = None


def change_of(
    groups: GroupEncoding, weights: Any, ends: Any, first_rows: IntArray | slice = slice(None)
) -> Change:
    """Return what is changed for all rows, and for those of each group.

    ``ends`` holds at each stage if a row is selected, or its prediction: by the model itself,
    without limits (if that is another stage), and within the limits. ``first_rows`` are those of
    people that are there once for each group that they may belong to. Rows without a group are left
    out.
    """
    ends = np.asarray(ends, dtype=np.float64)
    ends = ends if len(ends) == len(Stages._fields) else ends[[0, 0, 1]]
    weights = np.ones(groups.n_samples) if weights is None else weights
    if groups.has_group is not None:
        weights, first_rows = weights * groups.has_group, np.flatnonzero(groups.has_group)
    stages = Stages(*np.average(ends, axis=1, weights=weights).tolist())
    total = np.maximum(groups.sums(weights), TINY)
    of_groups = [(groups.sums(weights * values) / total).tolist() for values in ends]
    named = () if groups.is_vacuous else zip(groups.names, *of_groups, strict=True)
    by_group = {name: Stages(*of_group) for name, *of_group in named}
    moved = (ends[-1] - ends[0])[first_rows]
    return Change(*stages, by_group, int((moved > 0).sum()), int((moved < 0).sum()))


def changes_line(changes: Mapping[str, Change], *, of_groups: bool = True) -> str:
    """Return one line of changes, by the names of the rates or means.

    Without limits is a stage of its own if the objective alone changes the decisions of the model.
    """
    parts = []
    for name, own in changes.items():
        digits = ".4g" if name.startswith("mean") else ".1%"
        every = {"": Stages(own.before, own.without_limits, own.after), **own.by_group}
        is_pair = all(of.before == of.without_limits for of in every.values())
        texts = []
        for group, of in every.items() if of_groups else [("", every[""])]:
            before, without, after = (f"{rate:{digits}}" for rate in of)
            stages = f"{before} -> {after}" if is_pair else f"{before} -> {without} -> {after}"
            if not (group or is_pair):
                stages = f"{before} by the model itself, {without} by the objective without limits"
                stages += f", {after} within the limits"
            texts.append(f"{group} {stages}".strip())
        if own.rows_up is not None:
            texts.append(f"{own.rows_up} rows up, {own.rows_down} down")
        parts.append(_with_remarks(name, *texts))
    return ", ".join(parts)
