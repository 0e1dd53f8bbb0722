"""One limit for all attributes, or one for each: what users may pass as a limit on disparities."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from skfair.groups.encoding import GroupEncoding
from skfair.utils.text import listed
from skfair.utils.validation import check_number

Limit = float | Mapping[str, float | None]


def limits_of_attributes(limit: Limit, groups: GroupEncoding) -> list[float | None]:
    """Return the limit of each attribute, None where there is none."""
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
