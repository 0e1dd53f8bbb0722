"""The argument ``reference=``: the group that others are compared with.

Metrics and tests know the groups of the rows and call :func:`reference_groups`. Audits know the
levels of the attributes and call :func:`read_reference`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skfair._typing import BoolArray
from skfair.groups.levels import GroupLevels
from skfair.utils.text import listed


def reference_groups(reference: Any, groups: GroupLevels) -> BoolArray:
    """Return for each group whether it is the reference, shape (n_groups,).

    ``reference`` is a group (an intersection by its name or the tuple of its levels), or a dict of
    the level of each attribute.
    """
    is_reference = np.zeros(groups.n_groups, bool)
    is_crossed = groups.combinations is not None
    if is_crossed and not isinstance(reference, Mapping):
        is_reference[groups.number(reference)] = True
        return is_reference
    levels = dict(zip(groups.attributes, groups.levels, strict=True))
    chosen = read_reference(reference, levels)
    if groups.combinations is None:
        for start, name in zip(groups.offsets[:-1].tolist(), levels, strict=True):
            if name in chosen:
                is_reference[start + list(map(str, levels[name])).index(chosen[name])] = True
        return is_reference
    if set(chosen) != set(levels):
        raise ValueError(
            f"reference={reference!r} must have a level of each of {listed(list(levels))}, because "
            "their intersections are compared. Or pass intersectional=False."
        )
    wanted = [list(map(str, own_levels)).index(chosen[name]) for name, own_levels in levels.items()]
    is_reference[:] = (groups.combinations == wanted).all(axis=1)
    if not is_reference.any():
        raise ValueError(f"reference={reference!r} is an intersection without rows.")
    return is_reference


def read_reference(reference: Any, levels: Mapping[str, list[Any]]) -> dict[str, str]:
    """Return the reference level of each attribute that has one; raise if there is no such level.

    ``levels`` has the levels of each sensitive attribute. For "pairwise", which is no group, the
    result is empty. A single level must occur in one attribute only.
    """
    if isinstance(reference, str) and reference == "pairwise":
        return {}
    known = {name: list(map(str, own_levels)) for name, own_levels in levels.items()}
    if isinstance(reference, Mapping):
        chosen = {str(name): str(level) for name, level in reference.items()}
        for name, level in chosen.items():
            if level not in known.get(name, ()):
                raise ValueError(
                    f"reference has {name!r}: {level!r}, but the attributes and their groups are "
                    f"{_described(known)}."
                )
        return chosen
    having = [name for name, own_levels in known.items() if str(reference) in own_levels]
    if len(having) != 1:
        what = "several attributes have" if having else "no attribute has"
        raise ValueError(
            f"reference={reference!r} is a group that {what}. The attributes and their groups are "
            f"{_described(known)}; pass one group, or a dict such as "
            f"{{{next(iter(known))!r}: {next(iter(known.values()))[0]!r}}}."
        )
    return {having[0]: str(reference)}


def _described(known: Mapping[str, list[str]]) -> str:
    """List the attributes and their groups for an error."""
    return "; ".join(f"{name}: {listed(own_levels)}" for name, own_levels in known.items())
