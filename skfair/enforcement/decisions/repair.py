"""Repair of decisions that violate limits by little: random steps, then exact line searches.

With several classes many rates are limited at once. Where the limits are tighter than what chance
does to few rows, rounds of soft offsets come near the limits and do not arrive, and the decisions
found first that satisfy all limits are next to constant. So repair weighs violated limits against
utility: it takes a random step of the offsets, searches along every line exactly, and drops what is
worse after penalties. The same is done where decisions without the group lose much utility. The
offsets of few rows in three or more groups are also moved at random (:func:`repair_at_random`).
:mod:`skfair.enforcement.decisions.search` calls both, after its own search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skfair.enforcement.decisions.lines import Candidate, lines, offsets
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.rounds import LONGEST, random_moves

# Rows that line searches may scan, and steps.
_EVALUATED_ROWS, _MOST_STEPS = 6e6, 100
# Longest step, and the lengths of steps as multiples of what is missed.
_LONGEST_STEP, _MULTIPLES = 0.05, (0.3, 10.0)

# Rows for which random moves are made, rows that those from one start may scan, and moves.
_FEW, _MOVED_ROWS, _MOST_MOVES = 10_000, 500_000, 150
# The cost of a rate beyond its limit on the way to the limits, in units of utility.
_STEEP = 5.0


def repair(search: OffsetSearch, start: Candidate, best: Candidate) -> Candidate:
    """Return decisions within the limits of more utility than the best ones, or the latter.

    Parameters
    ----------
    search : OffsetSearch
        Rows and constraints.
    start : Candidate
        Decisions of more utility than the best ones that violate the limits by little.
    best : Candidate
        The best ones known.

    Returns
    -------
    found : Candidate
        The better ones.

    Notes
    -----
    A step takes O(n log n) for each line that is searched.
    """
    rng, strict = np.random.RandomState(0), search.strict
    every = list(lines(strict, search.features))
    if search.kinds.size * strict.n_classes * (2 + strict.n_classes) > _EVALUATED_ROWS / 4:
        return best  # lines of everybody, of each group and of each true class: too few steps
    known = best.verdict.merit if best.verdict.is_feasible else 0.0
    current, used = start, 0.0
    for k in range(_MOST_STEPS):
        if current.verdict.is_feasible or used > _EVALUATED_ROWS:
            break
        missed = current.verdict_of(replace(strict, penalty=1.0)).penalty or 0.0
        # The penalty of a unit that is missed is half of what the best feasible decisions lose for
        # each unit that the current ones miss, and at least 1.
        lost = 0.5 * max(current.verdict.merit - known, 0.0)
        penalised = replace(strict, penalty=max(lost / missed, 1.0))
        step = np.zeros_like(current.offsets)
        if k > 0:  # first line searches alone
            # Steps aimed by a linear programme gained nothing (120 fits of 3 and 4 classes).
            multiple = float(np.exp(rng.uniform(*np.log(_MULTIPLES))))
            length = min(multiple * current.verdict.excess, _LONGEST_STEP)
            step[search.features.of(search.features.groups)] = length * rng.randn(*step.shape)
        trial = current.at(current.offsets + step, penalised)
        for j in rng.permutation(len(every)):
            used += trial.exchange(*every[j])
        if not current.verdict_of(penalised).is_better_than(trial.verdict):
            current = trial
    candidate = search.exchange(search.candidate(current.offsets))
    return candidate if candidate.verdict.is_better_than(best.verdict) else best


def repair_at_random(search: OffsetSearch, best: Candidate) -> Candidate:
    """Return better decisions by random moves, or the given ones.

    It is for two classes, of which the offsets of the second one move, and for groups that are
    estimated, of several attributes or within strata: one known attribute is searched exactly.
    Where limits are tighter than what chance does to few rows, soft offsets rise and rise. Moves go
    on from the decisions without constraints, which miss little, and from the best ones found. With
    four groups they gain .004 to .006 of accuracy on new rows (COMPAS, demographic parity and
    equalized odds, 6 splits; standard error .002). The best of many is in part best by chance, so a
    gain counts only if it is larger than half a standard error of accuracy. Two groups are not
    moved if their limits are satisfied: on new rows the disparities grew by more than was gained
    (COMPAS, demographic parity, 40 splits: .002 less accurate at equal disparities).
    """
    chance = 1 / np.sqrt(search.kinds.size)
    lost = search.free.verdict.merit - best.verdict.merit
    # Two groups of one attribute.
    is_pair = search.features.n_groups == 2 == search.features.everyone.size
    if search.kinds.size > _FEW or (best.verdict.is_feasible and (is_pair or lost <= chance)):
        return best
    half_an_error = chance / 4  # the standard error of an accuracy is at most chance / 2
    for k in range(2):
        start = best if k else search.candidate(search.free.offsets)
        best = _better(_random_moves(search, start, np.random.RandomState(k)), best, half_an_error)
    return best


def _better(candidate: Candidate, other: Candidate, least: float) -> Candidate:
    """Return the first of two if it is better, and gains so much if both satisfy the limits."""
    is_gain = not other.verdict.is_feasible or candidate.verdict.merit > other.verdict.merit + least
    return candidate if is_gain and candidate.verdict.is_better_than(other.verdict) else other


def _random_moves(search: OffsetSearch, start: Candidate, rng: np.random.RandomState) -> Candidate:
    """Move the offsets of groups at random as long as that loses nothing.

    After each move the offset that all rows have in common is searched anew.
    """
    steep, goal = _STEEP * float(np.ptp(search.strict.utility)), search.free.verdict.merit

    def missed(candidate: Candidate) -> float:
        lost = goal - candidate.verdict.merit
        # What is beyond a limit is made up for by no gain.
        beyond = 0.0 if candidate.verdict.is_feasible else 1.0 + candidate.verdict.excess
        return lost + steep * beyond

    def move(candidate: Candidate, length: float) -> Candidate:
        step = np.zeros_like(candidate.offsets)
        step[search.features.of(search.features.groups), 1] = rng.standard_normal(step.shape[0])
        change = float(np.std(search.shares @ step[:, 1])) or 1.0
        spread = float(np.std(candidate.margins[:, 1] - candidate.margins[:, 0]))
        trial = search.candidate(candidate.offsets + length * spread / change * step)
        for label, which in offsets(search.strict, search.features):
            trial.exchange(label, which, search.kinds.size)
        return trial

    most = min(_MOST_MOVES, _MOVED_ROWS // search.kinds.size)
    trial = random_moves(start, missed, move, most=most, longest=LONGEST)
    return search.exchange(trial)
