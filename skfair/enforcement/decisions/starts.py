"""Further starts for prices without the group, where the price search gives up much.

Whole decisions cannot always follow the best soft ones. With tight limits on two rates (equalized
odds) prices may end where hardly anybody is selected. So one of two groups pays more, by each of
several amounts, and the exact offset is found for each. A sample shows which are promising.

Where limits are tighter than what chance does to few rows, soft prices rise and rise. There random
moves go on: from the decisions without rules, which miss little, and from the best ones found.
"""

from __future__ import annotations

import numpy as np

from skfair.enforcement.decisions.lines import Candidate, offsets
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.random_moves import random_moves

# Rows for which random moves are made, rows that those from one start may judge, and moves.
_FEW, _MOVED_ROWS, _MOST_MOVES = 10_000, 500_000, 150
# Lengths of moves, in spreads of what one decision is worth more than the other.
_LONGEST, _SHORTEST = 0.2, 2e-3
# What a rate beyond its limit costs on the way to the limits, in units of worth; and what it costs
# to keep them not at all, which no gain makes up for.
_STEEP, _BARRED = 5.0, 1e6
# By how much one group pays more, in units of worth; rows of the sample; starts that are polished.
_LEVELS = np.linspace(-1, 1, 25)
_SAMPLE, _N_KEPT = 6_000, 3


def restarted(search: PriceSearch, best: Candidate) -> Candidate:
    """Return better decisions from other starts, or the given ones.

    The best of many starts is in part best by chance, so a gain counts only if it is larger than
    two standard errors of accuracy. Moves stay near where they begin: half of one will do. Two
    groups are not moved, if their limits are kept: on new rows the gaps grew by more than was
    gained (COMPAS, demographic parity, 40 splits: .002 less accurate at equal gaps).
    """
    chance = 1 / np.sqrt(search.kinds.size)
    if best.verdict.is_feasible and search.free().verdict.worth - best.verdict.worth <= chance:
        return best
    is_pair = search.features.n_groups == 2 == search.features.everyone.size
    if is_pair and _has_levels(search):
        found = best
        for start in _promising(search):
            found = _better(search.polished(search.candidate(start.prices)), found, 0.0)
        best = _better(found, best, chance)
    if search.kinds.size <= _FEW and not (is_pair and best.verdict.is_feasible):
        for k in range(2):
            start = best if k else search.candidate(search.free().prices)
            best = _better(_moved(search, start, np.random.RandomState(k)), best, chance / 4)
    return best


def _better(one: Candidate, other: Candidate, least: float) -> Candidate:
    """Return the first of two if it is better, and gains so much if both keep the limits."""
    is_gain = not other.verdict.is_feasible or one.verdict.worth > other.verdict.worth + least
    return one if is_gain and one.verdict.is_better_than(other.verdict) else other


def _has_levels(search: PriceSearch) -> bool:
    """Whether several rates of each group are limited."""
    return sum(int(bound.blocks.max()) + 1 for bound in search.judge.bounds) > 1


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


def _moved(search: PriceSearch, start: Candidate, rng: np.random.RandomState) -> Candidate:
    """Move prices at random as long as that loses nothing; the offset follows each move."""
    steep, goal = _STEEP * float(np.ptp(search.judge.worth)), search.free().verdict.worth

    def missed(one: Candidate) -> float:
        lost = goal - one.verdict.worth
        return lost if one.verdict.is_feasible else _BARRED + lost + steep * one.verdict.excess

    def move(one: Candidate, length: float) -> Candidate:
        step = np.zeros_like(one.prices)
        step[:, 1] = rng.standard_normal(step.shape[0])
        change = float(np.std(search.shares @ step[:, 1])) or 1.0
        there = search.candidate(one.prices + length * one.spread() / change * step)
        for label, which in offsets(search.judge, search.features):
            there.improve(label, which, search.kinds.size)
        return there

    most = min(_MOST_MOVES, _MOVED_ROWS // search.kinds.size)
    there = random_moves(start, missed, move, most=most, longest=_LONGEST, shortest=_SHORTEST)
    return search.polished(there)
