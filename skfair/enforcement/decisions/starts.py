"""Further starts for prices without the group, where the price search gives up much.

Whole decisions cannot always follow the best soft ones: with tight limits on two rates (equalized
odds) prices may end where hardly anybody is selected. Here one group pays more than the other, by
each of several amounts, and the exact offset is found for each. A sample shows which are promising.
"""

from __future__ import annotations

import numpy as np

from skfair.enforcement.decisions.lines import Candidate, offsets
from skfair.enforcement.decisions.prices import PriceSearch

# By how much one group pays more, in units of worth; rows of the sample; starts that are polished.
_LEVELS = np.linspace(-1, 1, 25)
_SAMPLE, _N_KEPT = 6_000, 3


def can_restart(search: PriceSearch) -> bool:
    """Whether two classes, two groups of one attribute, and several rates of each are limited."""
    features, bounds = search.features, search.judge.bounds
    is_pair = search.judge.n_classes == 2 == features.n_groups == features.everyone.size
    return is_pair and sum(int(bound.blocks.max()) + 1 for bound in bounds) > 1


def restarted(search: PriceSearch, best: Candidate) -> Candidate:
    """Return better decisions from other starts, or the given ones.

    The best of many starts is in part best by chance, so a gain counts only if it is larger than
    two standard errors of accuracy.
    """
    chance = 1 / np.sqrt(search.kinds.size)
    found = best
    if best.verdict.is_feasible and search.free().verdict.worth - best.verdict.worth <= chance:
        return best
    for start in _promising(search):
        one = search.polished(search.candidate(start.prices))
        if one.verdict.is_better_than(found.verdict):
            found = one
    is_gain = not best.verdict.is_feasible or found.verdict.worth > best.verdict.worth + chance
    return found if is_gain else best


def _promising(search: PriceSearch) -> list[Candidate]:
    """Return the best starts on a sample: those that keep the limits, then by worth."""
    n, n_kinds = search.kinds.size, search.features.n_kinds
    rows = np.arange(n)
    if n > _SAMPLE:
        rows = np.sort(search.rng.choice(n, _SAMPLE, replace=False))
    judge, values, shares = search.judge.part(rows), search.values[rows], search.shares[rows]
    found = []
    for level in _LEVELS:
        prices = np.zeros((search.features.size, 2))
        prices[:n_kinds, 1] = level
        one = Candidate(judge, values, shares, prices)
        for label, which in offsets(judge, search.features):
            one.improve(label, which)
        found.append(one)
    found.sort(key=lambda one: (max(one.verdict.excess, 0.0), -one.verdict.worth))
    return found[:_N_KEPT]
