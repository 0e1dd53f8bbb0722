"""Search for the decisions of largest utility within the limits, as counted on the rows.

``DecisionSearch`` in ``skfair/estimators/decisions/solve.py`` calls :func:`search_decisions` with
an :class:`~skfair.enforcement.decisions.offsets.OffsetSearch`, which holds rows and limits. It gets
a :class:`Solution`, and passes it on to :func:`no_worse_than_simple`, which compares it with
decisions that need no search. :func:`search_decisions` tries the methods in this order:

1. No offsets, if the decisions without constraints satisfy the limits.
2. One threshold per group, if groups are known, do not overlap, and there are two classes
   (``windows.py``). If windows describe all constraints, such thresholds are exact, and step 3 is
   left out.
3. Offsets of groups, strata and classes, found by soft decisions (``offsets.py``) and repaired if
   they lose much utility (``repair.py``). If groups are estimated and much is still lost,
   thresholds of the likeliest groups are tried. With few rows, tighter limits are tried as well.
4. Mixtures of thresholds, in the case of step 2, if decisions may be drawn (``mixtures.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.lines import Candidate
from skfair.enforcement.decisions.mixtures import Mixture, Mixtures
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.repair import repair, repair_at_random
from skfair.enforcement.decisions.windows import is_described, window_offsets
from skfair.enforcement.strict_evaluation import StrictEvaluation, Verdict
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import one_blas_thread

_TIE_WEIGHT = 0.1  # weight of the term v log v that breaks ties of rows with expected utility v
# Offsets are repaired if their decisions lose at least this much utility against soft decisions.
_LOST = 0.005
# With at most _FEW rows, a search may by chance find better decisions under a tighter limit. So
# limits between groups are also searched with all tighter limits of _TIGHTER, at the cost of one
# search each. With more rows, only 3 of 640 limits ended worse than a tighter one, by at most
# 0.002. Caps are not made tighter: this took 2.6 times as long and gained 0.0001. Without it, 5 of
# 313 caps end worse than a tighter one, by at most 0.006.
_FEW, _TIGHTER = 1_000, (0.01, 0.02, 0.05, 0.1, 0.2)
# At most _MIXTURES mixtures of thresholds are tried. The next one is only tried if it is expected
# to gain a utility of _LEAST_GAIN. Without this condition 200,000 rows take twice the time and gain
# 0.0002.
_MIXTURES, _LEAST_GAIN = 6, 1e-4


class Solution(NamedTuple):
    """Offsets, the decisions that they give the rows, and the verdict on these."""

    offsets: FloatArray  # (n_features, n_classes)
    predicted: IntArray  # (n_samples,): number of the class that each row gets
    verdict: Verdict
    method: str  # "none", "windows", "offsets", "mixtures" or "threshold"
    # (n_classes, n_classes): utility that was maximised, by true class and decision
    utility: FloatArray
    tie_weight: float = 0.0  # weight of v log v, which is added to expected utility v
    mixture: Mixture | None = None  # if given, offsets are thresholds on its new scores
    mixed_share: float = 0.0  # share of the rows whose decision depends on their draw


@one_blas_thread
def search_decisions(
    search: OffsetSearch, groups: IntArray | None, draws: Callable[[], FloatArray] | None = None
) -> Solution:
    """Return the best decisions.

    Parameters
    ----------
    search : OffsetSearch
        Rows and constraints.
    groups : ndarray of shape (n_samples,) or None
        The groups of the rows, if decisions may use them, they do not overlap, and there are no
        strata. Otherwise None.
    draws : callable, default=None
        Function that returns a number in [0, 1) for each row. If None, thresholds are not mixed.

    Returns
    -------
    solution : Solution
        The decisions.
    """
    strict, free = search.strict, search.free
    if free.verdict.is_feasible:
        return _solution(search, free, "none")
    is_exact, tie_weight, method = False, 0.0, "windows"
    best = _search_thresholds(search, groups)
    if best is not None:
        # If windows describe all constraints, other offsets could not be better.
        is_exact = best.verdict.is_feasible and all(map(is_described, strict.rates.bounds))
        best = best if best.verdict.is_feasible else search.exchange(best)
    if not is_exact:
        other, tie_weight = _search_offsets(search, groups is not None and strict.n_classes > 2)
        if best is None or other.verdict.is_better_than(best.verdict):
            best, method = other, "offsets"
    assert best is not None
    is_near = search.is_near_soft(best)  # then further moves gain little, and would not hold still
    if groups is None and strict.n_classes == 2:
        best = _as_if_known(search, best if is_near else repair_at_random(search, best))
    if not (is_exact or is_near):
        best = _search_tighter(search, best, groups)
    solution = _solution(search, best, method)._replace(tie_weight=tie_weight)
    if groups is not None and strict.n_classes == 2 and draws:
        return _mix(search, groups, draws, solution)
    return solution


def _solution(search: OffsetSearch, best: Candidate, method: str) -> Solution:
    return Solution(best.offsets, best.predicted, best.verdict, method, search.strict.utility)


def no_worse_than_simple(
    search: OffsetSearch, solution: Solution, rank: Callable[[IntArray], float]
) -> Solution:
    """Return the solution, or simple decisions within the limits that rank higher on the rows.

    A search promises no optimum, and it may maximise expected utility, while ``rank`` values
    decisions by their true classes. If the same decision for everybody, or the decisions without
    constraints, rank higher than the solution, then the best of these and of one threshold for all
    rows is returned instead.
    """

    def ranked(predicted: IntArray, verdict: Verdict) -> float:
        return rank(predicted) if verdict.is_feasible else -np.inf

    simple = search.simple()
    least = ranked(solution.predicted, solution.verdict) + ROUNDING
    if all(ranked(c.predicted, c.verdict) <= least for c in simple):
        return solution
    every = [*simple, search.one_threshold()]
    best = max(every, key=lambda c: ranked(c.predicted, c.verdict))
    return _solution(search, best, "threshold")


def _search_tighter(search: OffsetSearch, best: Candidate, groups: IntArray | None) -> Candidate:
    """Return the given decisions, or better ones that were found under tighter limits.

    Only few rows and two classes are searched again. The search under the next tighter limit calls
    this function in turn, down to the tightest limit. What it finds is evaluated under the limits
    of the caller.
    """
    between_groups = [b for b in search.strict.rates.bounds if not b.comparison.is_cap]
    limit = max((bound.max_disparity for bound in between_groups), default=0.0)
    tighter = max((step for step in _TIGHTER if step < 0.99 * limit), default=0.0)
    if not tighter or search.strict.n_rows > _FEW or search.strict.n_classes > 2:
        return best
    rates = search.strict.rates.scaled(tighter / limit, keep_caps=True)
    inner = replace(search, strict=replace(search.strict, rates=rates))
    inner_best = _search_and_repair(inner)
    if groups is None:
        inner_best = repair_at_random(inner, inner_best)
    other = search.candidate(_search_tighter(inner, inner_best, groups).offsets)
    return other if other.verdict.is_better_than(best.verdict) else best


def _search_thresholds(search: OffsetSearch, groups: IntArray | None) -> Candidate | None:
    """Return the decisions by the best threshold of each group.

    Returns None if groups are not known, if there are not two classes, or if ``window_offsets``
    finds no thresholds.
    """
    if groups is None or search.strict.n_classes != 2:
        return None
    offsets = window_offsets(search.strict, search.features, groups, search.values)
    return None if offsets is None else search.candidate(offsets)


def _as_if_known(search: OffsetSearch, best: Candidate) -> Candidate:
    """Return better thresholds of the likeliest groups, or the given decisions.

    They are only searched if the decisions lose much utility. If the columns tell the groups and
    limits are tighter than chance, one of 84 searches for equalized odds had ended where nearly
    everybody is selected, at a cost of 20 points of accuracy.
    """
    features, shares = search.features, search.shares
    is_partition = features.everyone.size == features.n_groups and features.n_strata == 1
    if not (is_partition and isinstance(shares, np.ndarray) and _loses_much(search, best)):
        return best
    of_groups = shares.reshape(len(shares), features.n_groups, -1).sum(axis=2)
    found = _search_thresholds(search, of_groups.argmax(axis=1))
    if found is None:
        return best
    found = search.exchange(found)
    return found if found.verdict.is_better_than(best.verdict) else best


def _mix(
    search: OffsetSearch, groups: IntArray, draws: Callable[[], FloatArray], pure: Solution
) -> Solution:
    """Return decisions by a mixture of thresholds, or ``pure`` if a mixture gains too little.

    The draws of the rows are known, so the best thresholds on the new scores of a mixture are
    searched exactly, and satisfy the limits as counted. The limits of the next mixture are then
    moved by the difference between counted and expected values.
    """
    strict, values = search.strict, search.values
    if not Mixtures.suit(strict, groups):
        return pure
    mixtures, best, missed = Mixtures(strict, groups, values), pure, None
    drawn = np.empty(0)
    for _ in range(_MIXTURES):
        mixed = mixtures.best(missed)
        least = best.verdict.merit + _LEAST_GAIN if best.verdict.is_feasible else -np.inf
        if mixed is None or not mixed.mixture.is_needed or mixed.utility <= least:
            break
        drawn = drawn if drawn.size else draws()
        other = replace(search, values=mixed.mixture.values(values, groups, drawn))
        trial = other.candidate(np.zeros_like(pure.offsets))
        candidate = _search_thresholds(other, groups) or trial
        if not candidate.verdict.is_feasible:
            candidate = other.exchange(candidate)
        if candidate.verdict.is_better_than(best.verdict):
            cuts = candidate.offsets[:: search.features.n_kinds, 1]
            share = float(strict.weights @ mixed.mixture.decides(values, groups, cuts))
            best = _solution(search, candidate, "mixtures")
            best = best._replace(mixture=mixed.mixture, mixed_share=share)
        # Changes of the constraints from the first decision for all to the mixture itself
        # (``trial``), as counted minus as expected.
        every = zip(strict.rates.bounds, trial.decisions.means, strict.rates.starts, strict=True)
        counted = [b.row_values(means) - b.row_values(start) for b, means, start in every]
        missed = np.concatenate(counted) - mixed.effects
    return best if gains(strict, best, pure) else pure


def gains(strict: StrictEvaluation, best: Solution, pure: Solution, n_errors: float = 1.0) -> bool:
    """Whether decisions gain more utility over ``pure`` ones than some standard errors of the gain.

    If not both satisfy the limits, the verdicts are compared instead.
    """
    if not (best.verdict.is_feasible and pure.verdict.is_feasible):
        return best.verdict.is_better_than(pure.verdict)
    rows = np.arange(pure.predicted.size)
    of_rows = strict.values[rows, best.predicted] - strict.values[rows, pure.predicted]
    gain = float(strict.weights @ of_rows)
    return gain > n_errors * float(np.linalg.norm(strict.weights * (of_rows - gain)))


def _search_offsets(search: OffsetSearch, may_break_ties: bool) -> tuple[Candidate, float]:
    """Return the best offsets, and the weight of v log v that was added to expected utility v.

    Soft decisions may give tied rows to both sides, in parts. Offsets give all tied rows to one
    side. If that loses two standard errors of utility or more, ties are broken by v log v.
    """
    best = _search_and_repair(search)
    if not may_break_ties:
        return best, 0.0
    goal = search.outlook() - 2 / np.sqrt(search.kinds.size)
    if not _loses_much(search, best) and best.verdict.is_feasible and best.verdict.merit > goal:
        return best, 0.0
    other = _search_and_repair(search.with_ties_broken(_TIE_WEIGHT))
    return (other, _TIE_WEIGHT) if other.verdict.is_better_than(best.verdict) else (best, 0.0)


def _search_and_repair(search: OffsetSearch) -> Candidate:
    """Return the best offsets of the search, repaired if they lose much utility.

    If limits are tighter than the random variation of rates between few rows, a search may end
    where hardly anybody is selected. Soft decisions and those without constraints violate such
    limits only slightly, so the repair starts from each of them.
    """
    best = search.search()
    if search.is_near_soft(best):
        return best
    for start in (search.soft, lambda: search.free):
        if not _loses_much(search, best):
            break
        best = repair(search, start(), best)
    return best


def _loses_much(search: OffsetSearch, best: Candidate) -> bool:
    """Whether the limits are violated, or much utility is lost against soft decisions.

    A loss that is smaller than one standard error is not much.
    """
    allowed = max(_LOST, 1 / np.sqrt(search.kinds.size))
    return not best.verdict.is_feasible or search.lost(best) >= allowed


def contradiction(strict: StrictEvaluation, predicted: IntArray) -> str:
    """Return text for a warning: which limits are missed, by how much, and for which reason.

    If a single limit is missed, the limit with the least to spare is named as the likely reason.
    """
    names, limits = zip(*((b.name, b.max_disparity) for b in strict.rates.bounds), strict=True)
    over = np.array(strict.rates.disparities(predicted)) - limits
    order = np.argsort(-over, kind="stable")
    missed = [k for k in order if over[k] > ROUNDING] or [order[0]]
    text = "; ".join(f"{names[k]} is missed by {over[k]:.3g}" for k in missed)
    if len(missed) == 1 < order.size:
        other = order[1]
        text += f"; the limit closest to contradicting it is {names[other]}, "
        text += f"with {-over[other]:.3g} to spare"
    return text
