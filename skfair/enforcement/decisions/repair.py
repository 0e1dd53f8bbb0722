"""Repair of decisions that violate the limits slightly, by random steps of their offsets.

:func:`skfair.enforcement.decisions.search.search_decisions` calls both functions after its own
search, with the search and the best :class:`Candidate` so far, and gets a better one or the same.

- :func:`repair` is for decisions that lose much utility. If many rates are limited, and limits are
  tighter than the random variation of the rates of few rows, the search comes near the limits
  without reaching them, and what it returns is nearly constant. The repair starts from decisions
  that violate the limits slightly. Each step moves the offsets at random, searches along every line
  exactly, and is kept if utility minus a penalty for violations rises.
- :func:`repair_at_random` is for two classes, if no exact thresholds of groups exist: groups are
  estimated, or there are several attributes or strata. It makes random moves, each followed by the
  search of the offset that all rows have in common.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skfair.enforcement.decisions.lines import Candidate, common_lines, lines
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.rounds import LONGEST, random_moves

# The repair makes at most _MOST_STEPS steps. It also ends if all line searches together have
# evaluated more than _EVALUATED_ROWS rows.
_EVALUATED_ROWS, _MOST_STEPS = 6e6, 100
# The length of a step is the violation times a random number in the range _MULTIPLES, but at most
# _LONGEST_STEP.
_LONGEST_STEP, _MULTIPLES = 0.05, (0.3, 10.0)

# Random moves are made if there are at most _FEW rows. There are at most _MOST_MOVES of them, and
# they scan at most _MOVED_ROWS rows in all.
_FEW, _MOVED_ROWS, _MOST_MOVES = 10_000, 500_000, 150
# Penalty of exceeding a limit by 1 during random moves, in units of the range of the utility.
_STEEP = 5.0


def repair(search: OffsetSearch, start: Candidate, best: Candidate) -> Candidate:
    """Return better decisions within the limits, or the best ones known.

    Parameters
    ----------
    search : OffsetSearch
        Rows and constraints.
    start : Candidate
        Decisions with more utility than ``best`` that violate the limits slightly.
    best : Candidate
        The best decisions known.

    Returns
    -------
    found : Candidate
        The better decisions.

    Notes
    -----
    A step takes O(n log n) for each line that is searched.
    """
    rng, strict = np.random.RandomState(0), search.strict
    every = list(lines(strict, search.features))
    if search.kinds.size * strict.n_classes * (2 + strict.n_classes) > _EVALUATED_ROWS / 4:
        return best  # one search of all lines costs so much that too few steps would be left
    known = best.verdict.merit if best.verdict.is_feasible else 0.0
    current, used = start, 0.0
    for k in range(_MOST_STEPS):
        if current.verdict.is_feasible or used > _EVALUATED_ROWS:
            break
        missed = current.verdict_of(replace(strict, penalty=1.0)).penalty or 0.0
        # The penalty of a violation of 1 is half of the utility that the best feasible decisions
        # lose against the current ones, per unit of the current violation, and at least 1.
        lost = 0.5 * max(current.verdict.merit - known, 0.0)
        penalised = replace(strict, penalty=max(lost / missed, 1.0))
        step = np.zeros_like(current.offsets)
        if k > 0:  # the first step makes line searches alone
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
    """Return better decisions by random moves, or the given ones, for two classes.

    If limits are tighter than the random variation of rates of few rows, soft offsets become too
    large. So moves start from the decisions without constraints, which violate such limits only
    slightly, and from the best decisions found. With four groups they gain 0.004 to 0.006 of
    accuracy on new rows (COMPAS, demographic parity and equalized odds, 6 splits, standard error
    0.002).

    The best of many decisions is in part best by chance, so a gain counts only if it is larger than
    half a standard error of accuracy. Offsets of two groups that satisfy the limits are moved only
    if decisions near the soft ones were wanted and not found. Otherwise the disparities on new rows
    grew by more than was gained (COMPAS, demographic parity, 40 splits: 0.002 less accurate at
    equal disparities).
    """
    chance = 1 / np.sqrt(search.kinds.size)
    lost = search.free.verdict.merit - best.verdict.merit
    is_pair = search.features.n_groups == 2 == search.features.everyone.size
    may_stay = lost <= chance or (is_pair and search.strict.favoured is None)
    if search.kinds.size > _FEW or (best.verdict.is_feasible and may_stay):
        return best
    half_an_error = chance / 4  # the standard error of an accuracy is at most chance / 2
    for k in range(2):
        start = best if k else search.candidate(search.free.offsets)
        best = _better(_random_moves(search, start, np.random.RandomState(k)), best, half_an_error)
    return best


def _better(candidate: Candidate, other: Candidate, least: float) -> Candidate:
    """Return the candidate if it is better than the other one, and otherwise the other one.

    If both satisfy the limits, it must also gain more than ``least``.
    """
    is_gain = not other.verdict.is_feasible or candidate.verdict.merit > other.verdict.merit + least
    return candidate if is_gain and candidate.verdict.is_better_than(other.verdict) else other


def _random_moves(search: OffsetSearch, start: Candidate, rng: np.random.RandomState) -> Candidate:
    """Move the offsets of the second class at random, and keep each move that loses nothing.

    After each move the offset that all rows have in common is searched exactly.
    """
    steep, goal = _STEEP * float(np.ptp(search.strict.utility)), search.free.verdict.merit

    def missed(candidate: Candidate) -> float:
        lost = goal - candidate.verdict.merit
        # The added 1 is more than any utility, so decisions within the limits are always preferred.
        beyond = 0.0 if candidate.verdict.is_feasible else 1.0 + candidate.verdict.excess
        return lost + steep * beyond

    def move(candidate: Candidate, length: float) -> Candidate:
        step = np.zeros_like(candidate.offsets)
        step[search.features.of(search.features.groups), 1] = rng.standard_normal(step.shape[0])
        change = float(np.std(search.shares @ step[:, 1])) or 1.0
        spread = float(np.std(candidate.margins[:, 1] - candidate.margins[:, 0]))
        trial = search.candidate(candidate.offsets + length * spread / change * step)
        for label, which in common_lines(search.strict, search.features):
            trial.exchange(label, which, search.kinds.size)
        return trial

    most = min(_MOST_MOVES, _MOVED_ROWS // search.kinds.size)
    trial = random_moves(start, missed, move, most=most, longest=LONGEST)
    return search.exchange(trial)
