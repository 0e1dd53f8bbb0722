"""The best decisions that the methods find: windows where they are exact, offsets elsewhere.

What any of them finds is compared with what needs no search (:func:`no_worse_than_simple`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.lines import Candidate
from skfair.enforcement.decisions.mending import mended, moved
from skfair.enforcement.decisions.mixtures import Mixture, Mixtures
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.windows import is_described, window_offsets
from skfair.enforcement.truth import Truth, Verdict
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import one_blas_thread

_TIE_WEIGHT = 0.1  # of v log v for expected worth v that is tried
# Offsets are sought again if they lose so much of what soft decisions are worth.
_LOST = 0.005
# Up to this many rows a search may find better decisions under a tighter limit, by chance. So all
# of these limits between groups that are tighter are searched, too, at the cost of one search each.
# With more rows 3 of 640 limits ended worse than a tighter one, by at most .002. Caps are left as
# they are: tighter ones took 2.6 times as long for .0001, where 5 of 313 end worse than a tighter
# one, by at most .006.
_FEW, _TIGHTER = 1_000, (0.01, 0.02, 0.05, 0.1, 0.2)
# Mixtures of thresholds that are tried, and worth that is not worth one more (without it, twice the
# time on 200,000 rows for .0002).
_MIXTURES, _LEAST_GAIN = 6, 1e-4


class Chosen(NamedTuple):
    """Offsets, the decisions that they make of the rows, and the verdict on these."""

    offsets: FloatArray
    predicted: IntArray
    verdict: Verdict
    method: str
    tie_weight: float = 0.0  # of v log v for expected worth v, which parts tied rows
    mixture: Mixture | None = None
    mixed_share: float = 0.0  # of the rows: whose decision is drawn


@one_blas_thread
def choose(
    search: OffsetSearch, groups: IntArray | None, draws: Callable[[], FloatArray] | None = None
) -> Chosen:
    """Return the best decisions.

    Parameters
    ----------
    search : OffsetSearch
        Rows and constraints.
    groups : ndarray of shape (n_samples,) or None
        The groups of the rows if decisions may use them and they do not overlap.
    draws : callable, default=None
        Returns a number between 0 and 1 for each row, if thresholds may be mixed.

    Returns
    -------
    chosen : Chosen
        The decisions.
    """
    free = search.free
    if free.verdict.is_feasible:
        return _chosen(free, "none")
    candidates: list[tuple[str, Candidate]] = []
    is_exact, tie_weight = False, 0.0
    candidate = _at_windows(search, groups)
    if candidate is not None:
        # All constraints are windows: offsets could only find such thresholds, too.
        is_exact = candidate.verdict.is_feasible and all(map(is_described, search.truth.bounds))
        candidates.append(
            ("windows", candidate if candidate.verdict.is_feasible else search.polished(candidate))
        )
    if not is_exact:
        candidate, tie_weight = _offset_search(
            search, groups is not None and search.truth.n_classes > 2
        )
        candidates.append(("offsets", candidate))
    name, best = candidates[0]
    for other, candidate in candidates[1:]:
        if candidate.verdict.is_better_than(best.verdict):
            name, best = other, candidate
    if groups is None and search.truth.n_classes == 2:
        best = moved(search, best)
    if not is_exact:
        best = _no_worse_than_tighter(search, best, groups)
    chosen = _chosen(best, name)._replace(tie_weight=tie_weight)
    if groups is not None and search.truth.n_classes == 2 and draws:
        return _mixed(search, groups, draws, chosen)
    return chosen


def no_worse_than_simple(
    search: OffsetSearch, chosen: Chosen, rank: Callable[[IntArray], float]
) -> Chosen:
    """Return the decisions, or simple ones within the limits that rank higher on the rows.

    A search may value expected worth, and it may end anywhere. What it finds is never worse than
    the same decision for everybody or the decisions without constraints. If it were, the best
    threshold for all is the answer, or one of these.
    """

    def ranked(predicted: IntArray, verdict: Verdict) -> float:
        return rank(predicted) if verdict.is_feasible else -np.inf

    simple = search.simple()
    least = ranked(chosen.predicted, chosen.verdict) + ROUNDING
    if all(ranked(c.predicted, c.verdict) <= least for c in simple):
        return chosen
    every = [*simple, search.one_threshold()]
    return _chosen(max(every, key=lambda c: ranked(c.predicted, c.verdict)), "threshold")


def _no_worse_than_tighter(
    search: OffsetSearch, best: Candidate, groups: IntArray | None
) -> Candidate:
    """Return the decisions, or better ones found under tighter limits if there are few rows."""
    between_groups = [b for b in search.truth.bounds if not b.comparison.is_cap]
    limit = max((bound.max_disparity for bound in between_groups), default=0.0)
    tighter = max((step for step in _TIGHTER if step < 0.99 * limit), default=0.0)
    if not tighter or search.truth.n_rows > _FEW or search.truth.n_classes > 2:
        return best
    inner = replace(search, truth=search.truth.tightened(tighter / limit, keep_caps=True))
    tightest = moved(inner, _searched(inner)) if groups is None else _searched(inner)
    other = search.candidate(_no_worse_than_tighter(inner, tightest, groups).offsets)
    return other if other.verdict.is_better_than(best.verdict) else best


def _at_windows(search: OffsetSearch, groups: IntArray | None) -> Candidate | None:
    """Return the best thresholds of two classes and known groups; None without an answer."""
    if groups is None or search.truth.n_classes != 2:
        return None
    offsets = window_offsets(search.truth, search.features, groups, search.values)
    return None if offsets is None else search.candidate(offsets)


def _mixed(
    search: OffsetSearch, groups: IntArray, draws: Callable[[], FloatArray], pure: Chosen
) -> Chosen:
    """Return decisions by mixtures of thresholds where these gain more than chance, or the others.

    On the rows the draws are known, so that limits are satisfied by what is counted.
    """
    truth, values = search.truth, search.values
    if not Mixtures.suit(truth, groups):
        return pure
    mixtures, best, missed = Mixtures(truth, groups, values), pure, None
    drawn = np.empty(0)
    for _ in range(_MIXTURES):
        mixed = mixtures.best(missed)
        least = best.verdict.merit + _LEAST_GAIN if best.verdict.is_feasible else -np.inf
        if mixed is None or not mixed.mixture.is_needed or mixed.worth <= least:
            break
        drawn = drawn if drawn.size else draws()
        other = replace(search, values=mixed.mixture.values(values, groups, drawn))
        trial = other.candidate(np.zeros_like(pure.offsets))
        at_offsets = _at_windows(other, groups) or trial
        if not at_offsets.verdict.is_feasible:
            at_offsets = other.polished(at_offsets)
        if at_offsets.verdict.is_better_than(best.verdict):
            cuts = at_offsets.offsets[:: search.features.n_kinds, 1]
            share = float(truth.weights @ mixed.mixture.decides(values, groups, cuts))
            best = _chosen(at_offsets, "mixtures")
            best = best._replace(mixture=mixed.mixture, mixed_share=share)
        every = zip(truth.bounds, trial.decisions.means, truth.starts, strict=True)
        counted = [b.row_values(means) - b.row_values(start) for b, means, start in every]
        missed = np.concatenate(counted) - mixed.effects
    return best if _gains(truth, best, pure) else pure


def _gains(truth: Truth, best: Chosen, pure: Chosen) -> bool:
    """Whether decisions are worth more than others by more than the standard error of that."""
    if not (best.verdict.is_feasible and pure.verdict.is_feasible):
        return best.verdict.is_better_than(pure.verdict)
    rows = np.arange(pure.predicted.size)
    gains = truth.values[rows, best.predicted] - truth.values[rows, pure.predicted]
    gain = float(truth.weights @ gains)
    return gain > float(np.linalg.norm(truth.weights * (gains - gain)))


def _offset_search(search: OffsetSearch, can_part: bool) -> tuple[Candidate, float]:
    """Return the best offsets, and the weight of v log v that was added to expected worth v.

    If the best decisions are random ones, rows with different scores are tied, and offsets alone
    give all of them to one side. Searches end when less than two standard errors are lost.
    """
    if not can_part:
        return _searched(search), 0.0
    goal = search.outlook() - 2 / np.sqrt(search.kinds.size)
    kept: list[tuple[Candidate, float]] = []
    for weight in (0.0, _TIE_WEIGHT):
        parted = search.parted(weight) if weight else search
        candidate = _searched(parted)
        if not kept or candidate.verdict.is_better_than(kept[0][0].verdict):
            kept = [(candidate, weight)]
        if (
            not _loses_much(parted, candidate)
            and kept[0][0].verdict.is_feasible
            and kept[0][0].verdict.merit > goal
        ):
            break
    return kept[0]


def _searched(search: OffsetSearch) -> Candidate:
    """Return the best offsets of rounds, mended where these lose much.

    Where limits are tighter than what chance does to the rows, rounds may end where hardly anybody
    is selected. Decisions that miss the limits by little are near: soft ones, or those without
    constraints.
    """
    best = search.run()
    for start in (search.soft, lambda: search.free):
        if not _loses_much(search, best):
            break
        best = mended(search, start(), best)
    return best


def _loses_much(search: OffsetSearch, best: Candidate) -> bool:
    """Whether decisions are worth much less than soft ones, by more than chance does."""
    allowed = max(_LOST, 1 / np.sqrt(search.kinds.size))
    return not best.verdict.is_feasible or search.lost(best) >= allowed


def _chosen(best: Candidate, method: str) -> Chosen:
    return Chosen(best.offsets, best.predicted, best.verdict, method)


def contradiction(truth: Truth, predicted: IntArray, names: Sequence[str]) -> str:
    """Say which limits are missed, by how much, and what stands in the way of a single one."""
    over = np.array(truth.disparities(predicted)) - [b.max_disparity for b in truth.bounds]
    order = np.argsort(-over, kind="stable")
    missed = [k for k in order if over[k] > ROUNDING] or [order[0]]
    text = "; ".join(f"{names[k]} is missed by {over[k]:.3g}" for k in missed)
    if len(missed) == 1 < order.size:
        other = order[1]
        text += f"; the limit closest to contradicting it is {names[other]}, "
        text += f"with {-over[other]:.3g} to spare"
    return text
