"""The exact best thresholds, one per group, for two classes and known groups without overlaps.

:func:`skfair.enforcement.decisions.search.search_decisions` calls :func:`window_offsets` with the
rows, their groups and the expected utility of each decision. It returns offsets, as the other
searches of this folder do. Here every row of a group pays the same offset for the second decision,
so this offset is the threshold of the group. This file describes the constraints by windows of
rates, and :func:`skfair.enforcement.cuts.best_cuts` finds the thresholds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.cuts import GroupCuts, Rate, best_cuts
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.strict_evaluation import StrictEvaluation, cuts_of, shift_at
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import for_groups


def window_offsets(
    strict: StrictEvaluation, features: Features, groups: IntArray, values: FloatArray
) -> FloatArray | None:
    """Return the offsets (n_features, 2) of the best thresholds, or None.

    There are none if no constraint can be described by a window, more than two windows would be
    needed, rates are quotients, a rate neither rises nor falls from cut to cut, or no thresholds
    satisfy the limits. If windows describe only some of the constraints, the others are ignored,
    and the caller judges the decisions under all of them.
    """
    scores = values[:, 1] - values[:, 0]
    described = [k for k, bound in enumerate(strict.rates.bounds) if is_described(bound)]
    bounds = [strict.rates.bounds[k] for k in described]
    n_sets = sum(int(b.compared_sets.max()) + 1 for b in bounds if b.comparison.is_window)
    if not described or n_sets > 2 or any(bound.quotients is not None for bound in bounds):
        return None
    of_groups = for_groups(
        lambda g: _group(strict, described, g, np.flatnonzero(groups == g), scores),
        range(features.n_groups),
        scores.size,
    )
    known = [of_group for of_group in of_groups if of_group is not None]
    cuts = best_cuts([own for _, _, own in known]) if len(known) == len(of_groups) else None
    if cuts is None:
        return None
    offsets = np.zeros((features.size, 2))
    for g, ((ordered, n_above, _), cut) in enumerate(zip(known, cuts, strict=True)):
        shift = shift_at(int(n_above[cut]), ordered, ordered, 0.0)
        offsets[g * features.n_kinds : (g + 1) * features.n_kinds, 1] = -shift
    return offsets


def is_described(bound: BoundConstraint) -> bool:
    """Whether windows describe a constraint: a limit on differences, or a cap on group rates."""
    is_cap = bound.comparison.is_cap and bool((bound.rate_groups >= 0).all())
    return bound.comparison.is_window or is_cap


def _group(
    strict: StrictEvaluation,
    described: Sequence[int],
    group: int,
    rows: IntArray,
    scores: FloatArray,
) -> tuple[FloatArray, IntArray, GroupCuts] | None:
    """Return the falling scores of a group, the number of rows above each cut, and its cuts.

    None is returned if one of the group's rates neither rises nor falls from cut to cut.
    """
    rows, n_above, utility = cuts_of(strict, rows, scores)
    rates, n_windows = [], 0
    for k in described:
        bound = strict.rates.bounds[k]
        is_window = bound.comparison.is_window
        for r in np.flatnonzero(bound.rate_groups == group):
            (effects,) = strict.rates.added(k, bound.rates[[r]], rows)
            if effects.min(initial=0.0) < 0 < effects.max(initial=0.0):
                return None
            is_falling = bool(effects.min(initial=0.0) < 0)
            (start,) = bound.rates[[r]] @ strict.rates.starts[k]
            curve = (start + np.concatenate([[0.0], np.cumsum(effects)]))[n_above]
            window = n_windows + int(bound.compared_sets[r]) if is_window else -1
            length = bound.max_disparity + ROUNDING
            rates.append(Rate(window, -curve if is_falling else curve, length, is_falling))
        n_windows += int(bound.compared_sets.max()) + 1 if is_window else 0
    return scores[rows], n_above, GroupCuts(utility, tuple(rates))
