"""The parameter ``size_bounds``: bounds of the user become weights that each cluster may hold.

``limits.py`` and ``ParetoFairKMeans`` call :func:`size_limits` after they have made the constraints
on groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skfair._typing import FloatArray
from skfair.cluster.assignment.counts import Constraints
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.validation import weight_range


def size_limits(
    size_bounds: Any,
    n_clusters: int,
    groups: GroupEncoding,
    constraints: Constraints,  # the constraints on groups, for contradictions with them
    weights: FloatArray | None,  # (n_samples,): sample weights
    # (n_clusters, n_groups): weight that the clusters hold already
    held: FloatArray | None = None,
) -> FloatArray | None:
    """Return the smallest and the largest weight of each cluster, (2, n_clusters), or None.

    Without sample weights, bounds are rounded inwards to whole rows. Bounds that no clustering can
    satisfy are errors that name the contradiction.
    """
    if size_bounds is None:
        return None
    smallest_weight, row = weight_range(weights)  # ``row`` is the largest weight of a row
    total = float(groups.n_samples if weights is None else weights.sum())
    if held is not None:
        total += float(held[:, groups.attribute_of_group == 0].sum())
    low, high = _as_weights(size_bounds, n_clusters, total)
    # If rows join others (``held``), a bound as a share of all lies between whole rows, so it is
    # rounded outwards. Otherwise it is rounded inwards, if all rows have the same weight.
    if held is not None:
        low, high = row * np.floor(low / row), row * np.ceil(high / row)
    elif smallest_weight == row:
        low, high = row * np.ceil(np.round(low / row, 6)), row * np.floor(np.round(high / row, 6))
    # Bounds can contradict each other in the cluster with the smallest upper bound, in the limited
    # attribute of most groups, and in the cluster k whose own bounds cross most.
    betas, tightest = constraints.min_balances, int(high.argmin())
    n_groups = 0 if betas is None else int(np.diff(groups.offsets)[betas > 0].max(initial=0))
    k, rounding, most = int((low - high).argmax()), SUM_ROUNDING * total, high[tightest]
    for is_wrong, contradiction, remedy in (
        (
            low[k] > high[k],
            f"allow cluster {k} no size: at least {low[k]:g} and at most {high[k]:g} in whole rows",
            "Lower the first bound, or raise the second",
        ),
        (
            low.sum() > total + rounding,
            f"ask for {low.sum():g} at least, which is more than the weight of all rows",
            "Lower the first bound, or ask for fewer clusters",
        ),
        (
            high.sum() < total - rounding,
            f"allow {high.sum():g} at most, which is less than the weight of all rows",
            "Raise the second bound, or ask for more clusters",
        ),
        (
            row > high.max(),
            f"allow a cluster {high.max():g} at most, but one row weighs {row:g}",
            "Raise the second bound, or split this row",
        ),
        (
            held is None and n_groups * smallest_weight > most,
            f"and min_balance contradict each other: a positive balance needs a row of each of "
            f"{n_groups} groups in every cluster, but cluster {tightest} holds {most:g} at most",
            "Raise the second bound, merge groups, or set min_balance=0",
        ),
    ):
        if is_wrong:
            raise ValueError(
                f"size_bounds {contradiction}; got {size_bounds!r} for {n_clusters} clusters and a "
                f"total weight of {total:g}. {remedy}."
            )
    return np.stack([low, high])


def _as_weights(size_bounds: Any, n_clusters: int, total: float) -> list[FloatArray]:
    """Return both bounds of each cluster as weights. Integers are weights, floats are shares."""
    try:
        low, high = (np.asarray(end) for end in size_bounds)
    except (TypeError, ValueError):
        low = high = np.asarray("")
    for end in (low, high):
        fits = end.dtype.kind in "iuf" and end.shape in ((), (n_clusters,))
        if not fits or not (end >= 0).all() or (end.dtype.kind == "f" and (end > 1).any()):
            raise ValueError(
                "size_bounds must be a pair (low, high). Each of both is a share of the total "
                "weight (a float in [0, 1]) or a weight (an integer, at least 0), or an array with "
                f"one of these for each of {n_clusters} clusters; got {size_bounds!r}."
            )
    unit = [total if end.dtype.kind == "f" else 1.0 for end in (low, high)]
    return [
        np.broadcast_to(end * of, n_clusters) for end, of in zip((low, high), unit, strict=True)
    ]
