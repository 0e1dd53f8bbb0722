"""Limits on disparities, and the lines about them in ``summary_`` of an estimator.

:func:`limits_of_attributes` and :func:`loosest` read ``max_disparity``, which may be one limit for
all attributes or a dict of a limit for each. At the end of a fit, an estimator stores the limits
that it enforced (:func:`in_force`) as ``_limits``, and their effects (:func:`change_of`) as
``changes_``. Its ``summary_`` joins :func:`limits_line` and :func:`changes_line`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import IntArray
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import TINY
from skfair.utils.text import listed
from skfair.utils.validation import check_number

Limit = float | Mapping[str, float | None]
DEFAULT_LIMIT = 0.05  # the limit if ``max_disparity`` of an estimator is None
# The enforced limits by name. Each has a dict of numbers, and the summary prints the key before the
# number: "" for the value on the training rows, "limit", and "asked" if the user asked for another
# limit than the one enforced.
InForce = dict[str, dict[str, float]]
# The name of a limit on 1 minus a ratio contains this. The summary prints such numbers as ratios.
ONE_MINUS_RATIO = " (1 - ratio)"


def limits_of_attributes(limit: Limit, groups: GroupEncoding) -> list[float | None]:
    """Return the limit of each attribute of the groups; None for an attribute without one."""
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
    """Return the largest of the limits; infinity if all attributes have None."""
    if not isinstance(limit, Mapping):
        return float(limit)
    return max((float(value) for value in limit.values() if value is not None), default=inf)


def in_force(reached: Mapping[str, float], limits: Iterable[float]) -> InForce:
    """Return the enforced limits by name: ``reached`` has the values on the training rows."""
    pairs = zip(reached.items(), limits, strict=True)
    return {name: {"": value, "limit": limit} for (name, value), limit in pairs}


def limits_line(limits: InForce, certified: Mapping[str, float]) -> str:
    """Return one line of the enforced limits, with limits on ratios as ratios.

    ``certified`` holds the values that are certified for the population, by the name of the limit.
    """
    parts = []
    for name, known in limits.items():
        known = known | ({"certified": certified[name]} if name in certified else {})
        is_ratio = ONE_MINUS_RATIO in name
        texts = [f"{word} {1 - x if is_ratio else x:.4g}".strip() for word, x in known.items()]
        parts.append(_with_remarks(name.replace(ONE_MINUS_RATIO, " ratio"), *texts))
    return ", ".join(parts)


def _with_remarks(name: str, text: str, *remarks: str) -> str:
    """Return "name text (remark, remark)"."""
    return f"{name} {text}" + (f" ({', '.join(remarks)})" if remarks else "")


class Stages(NamedTuple):
    """A rate or mean over some training rows at the three stages of a fit."""

    before: float  # value for the predictions of the model itself
    without_limits: float  # value for the best predictions for the objective, without limits
    after: float  # value for the predictions within the limits


@dataclass(frozen=True)
class Change:
    """A rate, mean or score over the training rows at the three stages of a fit.

    A trained model has two stages only: the model without limits is the model itself.
    """

    before: float
    without_limits: float
    after: float
    by_group: dict[str, Stages]
    # Number of rows that are newly selected, or whose prediction (or error) is higher than that of
    # the model itself, and of rows for which the opposite holds. None if it is not known
    rows_up: int | None = None
    rows_down: int | None = None


def change_of(
    groups: GroupEncoding, weights: Any, ends: Any, first_rows: IntArray | slice = slice(None)
) -> Change:
    """Return the change over all rows, and over the rows of each group.

    ``ends`` has a line for each of the three stages, or for the first and the last one if the
    second equals the first. A line has the prediction of each row, or whether it is selected.
    People whose group is known by probability have several rows. Only their first ones,
    ``first_rows``, count in ``rows_up`` and ``rows_down``. Rows without a group are left out.
    """
    ends = np.asarray(ends, dtype=np.float64)
    weights = np.ones(groups.n_samples) if weights is None else weights
    if groups.has_group is not None:
        weights, first_rows = weights * groups.has_group, np.flatnonzero(groups.has_group)
    total = np.maximum(groups.sums(weights), TINY)
    rates = (ends @ weights / weights.sum()).tolist()
    of_groups = [(groups.sums(weights * values) / total).tolist() for values in ends]
    if len(ends) < len(Stages._fields):
        rates, of_groups = [rates[0], *rates], [of_groups[0], *of_groups]
    stages = Stages(*rates)
    named = () if groups.is_vacuous else zip(groups.names, *of_groups, strict=True)
    by_group = {name: Stages(*of_group) for name, *of_group in named}
    moved = (ends[-1] - ends[0])[first_rows]
    return Change(*stages, by_group, int((moved > 0).sum()), int((moved < 0).sum()))


def changes_line(changes: Mapping[str, Change], *, of_groups: bool = True) -> str:
    """Return one line of changes, which are given by the name of the rate or mean.

    The stage ``without_limits`` is shown if it differs from ``before``, because then the objective
    alone changes the decisions of the model. R2 is shown for all rows only, because the errors of
    the groups say the same, and not at all if it is undefined (NaN).
    """
    parts = []
    for name, own in changes.items():
        digits = ".4g" if name.startswith("mean") else ".2f" if name == "R2" else ".1%"
        every = {"": Stages(own.before, own.without_limits, own.after), **own.by_group}
        if isnan(own.after):
            continue
        is_pair = all(of.before == of.without_limits for of in every.values())
        texts = []
        for group, of in every.items() if of_groups and name != "R2" else [("", every[""])]:
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
