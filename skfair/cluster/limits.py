"""Constraints on clusters, made from the parameters of a clusterer and its data.

FairKMeans, FairAssignment and FairSpectralClustering call :func:`representation_constraints`, which
reads ``share_bounds`` or ``min_balance`` (:func:`proportion_constraints`) and ``size_bounds``
(``sizes.py``), and raises if no clustering can satisfy them. ``assignment/counts.py`` builds the
constraints. ParetoFairKMeans needs constraints for many balances, so it calls the parts itself.

A *balance* is the size of the smallest group divided by the size of the largest group of an
attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from operator import attrgetter
from typing import Any

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.counts import Constraints, balance_constraints, share_constraints
from skfair.cluster.sizes import size_limits
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING, TINY
from skfair.utils.text import listed
from skfair.utils.validation import weight_range
from skfair.utils.warn import warn_user

# The parameters of a clusterer that say what its clusters have to satisfy, in this order.
Limits = tuple[float | None, bool, Any, Any]
limits_of: Callable[[Any], Limits] = attrgetter(
    "min_balance", "relative_balance", "share_bounds", "size_bounds"
)

# The default of min_balance: the "80 percent constraint".
MIN_BALANCE = 0.8


def compare_groups(limits: Limits) -> bool:
    """Return whether a fit with these limits needs groups.

    It does not if only sizes are limited. With ``size_bounds``, the default of ``min_balance`` does
    not count as a limit that the user asked for.
    """
    min_balance, _, share_bounds, size_bounds = limits
    is_asked = share_bounds is not None or min_balance not in (None, 0, MIN_BALANCE)
    return is_asked or size_bounds is None


def data_balances(groups: GroupEncoding, sums: FloatArray) -> FloatArray:
    """Return the balance of the whole sample for each attribute; ``sums`` are weights of groups.

    A group without any weight is an error, because the balance of the sample would be 0, and limits
    relative to it would have no effect.
    """
    absent = np.flatnonzero(sums <= 0)
    if absent.size:
        named = listed([f"'{groups.names[g]}'" for g in absent])
        raise ValueError(
            f"All rows of some groups have weight 0, so no balance can be asked for: {named}. "
            "Remove these rows, or give them weight."
        )
    parts = np.split(sums, groups.offsets[1:-1])
    return np.array([part.min() / part.max() for part in parts])


def attribute_balances(counts: FloatArray, groups: GroupEncoding) -> FloatArray:
    """Return the balance of each cluster for each attribute; 0 for an empty cluster.

    ``counts`` has the shape (n_clusters, n_groups). A group without any weight in all clusters is
    left out, as in :mod:`skfair.metrics`.
    """
    balances = np.zeros((counts.shape[0], groups.n_attributes))
    for a, (start, stop) in enumerate(zip(groups.offsets[:-1], groups.offsets[1:], strict=True)):
        part = counts[:, start:stop]
        part = part[:, part.any(axis=0)]
        largest = part.max(axis=1)
        balances[:, a] = part.min(axis=1) / np.where(largest > 0, largest, 1.0)
    return balances


def warn_of_crossing(
    counts: FloatArray, groups: GroupEncoding, min_balance: float, relative_balance: bool
) -> None:
    """Warn if intersections of groups satisfy ``min_balance`` and a single attribute does not.

    ``counts`` (n_clusters, n_groups) are for the intersections, such as (female, old).
    """
    levels = groups.levels
    if levels.combinations is None:
        return
    below = []
    for name, codes in zip(levels.attributes, levels.combinations.T, strict=True):
        by_level = counts @ np.eye(codes.max() + 1)[codes]
        sizes = np.append(by_level, by_level.sum(axis=0)[None], axis=0)  # last row: the whole data
        smallest = sizes.min(axis=1) / np.maximum(sizes.max(axis=1), TINY)
        reached = smallest[:-1].min() / (smallest[-1] if relative_balance else 1.0)
        if reached < min_balance - SUM_ROUNDING:
            below.append(f"{name!r} alone {reached:.2f}")
    if below:
        warn_user(
            f"The crossed groups keep min_balance={min_balance:g}, but of the balance of single "
            f"attributes less is left: {listed(below)}. With Sensitive(intersectional=False) each "
            "attribute is limited by itself."
        )


def representation_constraints(
    groups: GroupEncoding,
    n_clusters: int,
    limits: Limits,
    weights: FloatArray | None = None,  # (n_samples,): sample weights
    # (n_clusters, n_groups): weight that the clusters hold already; limits apply to the sum
    held: FloatArray | None = None,
) -> Constraints:
    """Check the limits against the data and return them as constraints.

    Limits that no clustering can satisfy are errors that name limits which can be satisfied.
    """
    constraints = proportion_constraints(groups, n_clusters, limits, weights, held)
    sizes = size_limits(limits[-1], n_clusters, groups, constraints, weights, held)
    return constraints.with_sizes(sizes, groups)


def proportion_constraints(
    groups: GroupEncoding,
    n_clusters: int,
    limits: Limits,
    weights: FloatArray | None,
    held: FloatArray | None,
) -> Constraints:
    """Return the limits on balances or shares as constraints.

    The result has no constraints if there are no limits, but keeps a ``min_balance`` for reports.
    """
    sums, members = groups.sums(weights), groups.counts
    if held is not None:
        sums = held.sum(axis=0) + sums
        members = members_known(held, groups, sums)
    smallest_weight, largest_weight = weight_range(weights)
    min_balance, relative_balance, share_bounds, _ = limits
    if share_bounds is not None:
        if min_balance is not None:
            raise ValueError(
                f"share_bounds cannot be used with min_balance={min_balance}, which is 0.8 by "
                "default. Pass min_balance=None together with share_bounds."
            )
        lower, upper = _read_share_bounds(share_bounds, groups, sums)
        return share_constraints(groups, lower, upper, largest_weight)
    if min_balance is None:
        return Constraints.none(groups.n_groups)
    if not min_balance or groups.is_vacuous:
        return Constraints.none(groups.n_groups, np.full(groups.n_attributes, float(min_balance)))
    attained = data_balances(groups, sums)
    if relative_balance:
        betas = min_balance * attained
    else:
        betas = np.full(groups.n_attributes, float(min_balance))
        short = int(np.argmin(attained))
        if min_balance > attained[short]:
            raise ValueError(
                f"min_balance={min_balance} cannot be met: the balance of the whole sample is "
                f"{attained[short]:.6g}, and some cluster is never above it. Lower min_balance, or "
                "set relative_balance=True to ask for a share of what the data allow."
            )
    check_group_sizes(groups, n_clusters, members)
    return balance_constraints(groups, betas, smallest_weight)


def check_group_sizes(groups: GroupEncoding, n_clusters: int, members: IntArray) -> None:
    """Raise if a group has fewer members than there are clusters.

    A positive balance needs a member of every group in every cluster.
    """
    small = np.flatnonzero(members < n_clusters)
    if small.size:
        named = listed([f"'{groups.names[g]}' ({members[g]} rows)" for g in small])
        raise ValueError(
            f"A positive balance needs a member of each group in each of {n_clusters} clusters, "
            f"but some groups are smaller: {named}. Ask for fewer clusters, merge these groups, or "
            "set min_balance=0."
        )


def members_known(held: FloatArray, groups: GroupEncoding, sums: FloatArray) -> IntArray:
    """Return the smallest possible number of members of each group, in clusters or new.

    The number of rows that clusters hold is not known, only their weight ``held``. The number is
    taken to be the weight, as for rows of weight 1, but at least one for each cluster that holds
    any weight.
    """
    surely = (held > 0).sum(axis=0) + groups.counts
    return np.asarray(np.maximum(np.rint(sums).astype(np.int64), surely))


def _read_share_bounds(
    share_bounds: Any, groups: GroupEncoding, sums: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper share of each group, from a factor or a dict, and check them.

    ``sums`` are the weights of the groups.
    """
    totals = np.array([part.sum() for part in np.split(sums, groups.offsets[1:-1])])
    shares = sums / totals[groups.attribute_of_group]
    if isinstance(share_bounds, Mapping):
        lower, upper = np.zeros(groups.n_groups), np.ones(groups.n_groups)
        for key, bounds in share_bounds.items():
            g = groups.levels.number(key)
            try:
                lower[g], upper[g] = bounds
            except (TypeError, ValueError):
                raise ValueError(
                    f"share_bounds[{key!r}] must be a pair (lower, upper), got {bounds!r}."
                ) from None
    elif isinstance(share_bounds, Real) and 0 < float(share_bounds) <= 1:
        lower = float(share_bounds) * shares
        upper = np.minimum(1.0, shares / float(share_bounds))
    else:
        raise ValueError(
            "share_bounds must be a dict of group -> (lower, upper), or a factor f in (0, 1] that "
            f"keeps every share r within [f r, r / f]; got {share_bounds!r}."
        )
    bad = np.flatnonzero(~((lower >= 0) & (lower <= upper) & (upper <= 1)))
    if bad.size:
        g = int(bad[0])
        raise ValueError(
            f"The share bounds of group {groups.names[g]!r} must satisfy 0 <= lower <= upper <= 1, "
            f"got ({lower[g]}, {upper[g]})."
        )
    # The share in the sample is a mean of the shares in the clusters, so it must be allowed.
    outside = np.flatnonzero((shares < lower - ROUNDING) | (shares > upper + ROUNDING))
    if outside.size:
        g = int(outside[0])
        raise ValueError(
            f"The share bounds ({lower[g]:.6g}, {upper[g]:.6g}) of group {groups.names[g]!r} "
            f"cannot be met by every cluster: its share of the whole sample is {shares[g]:.6g}. "
            "Bounds must include the share of the sample."
        )
    return lower, upper


def check_enough(n_samples: int, n_clusters: int) -> None:
    """Raise if there are fewer rows than clusters."""
    if n_samples < n_clusters:
        raise ValueError(f"{n_samples=} should be >= {n_clusters=}.")
