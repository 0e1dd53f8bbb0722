"""Pairs of groups and how their gaps become one number."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skfair.groups.encoding import GroupEncoding

Agg = Literal["worst", "mean"]


def group_pairs(groups: GroupEncoding) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List every pair of groups of the same attribute; attributes are never compared."""
    first, second = [], []
    for start, stop in zip(groups.offsets[:-1], groups.offsets[1:], strict=True):
        i, j = np.triu_indices(stop - start, k=1)
        first.append(i + start)
        second.append(j + start)
    return np.concatenate(first), np.concatenate(second)


def aggregate(
    values: NDArray[np.float64], agg: Agg, *, empty: float, worst_is_smallest: bool = False
) -> float:
    """Reduce the gaps of all pairs to the worst or the mean one; NaN in, NaN out.

    ``empty`` is the value when there is nothing to compare (a single group).
    """
    if agg not in ("worst", "mean"):
        raise ValueError(f"agg must be 'worst' or 'mean', got {agg!r}.")
    if not values.size:
        return empty
    if agg == "mean":
        return float(values.mean())
    return float(values.min() if worst_is_smallest else values.max())
