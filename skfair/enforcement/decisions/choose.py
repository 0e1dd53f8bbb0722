"""The best decisions that the methods find: windows where they are exact, prices elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.judge import ROUNDING, Judge, Verdict
from skfair.enforcement.decisions.lines import Candidate
from skfair.enforcement.decisions.mending import mended, moved
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.windows import is_described, window_prices
from skfair.utils.threads import one_blas_thread

# Weights of v log v for expected worth v that are tried; the first one last, if many are tied.
_TIE_WEIGHTS, _MOST_TIED = (0.0, 0.1, 0.2), 0.1
# Prices are sought again if they lose so much of what soft decisions are worth.
_LOST = 0.005


class Chosen(NamedTuple):
    """Prices, the decisions that they make of the rows, and the verdicts with and without them."""

    prices: FloatArray
    predicted: IntArray
    verdict: Verdict
    free: Verdict
    method: str
    leads: FloatArray  # (n_samples,): by how much a decision is worth more than the next best
    tie_weight: float = 0.0  # of v log v for expected worth v, which parts tied rows

    def closeness(self, width: float) -> FloatArray:
        """Return 1 for rows whose decision is a toss-up, and less the larger its lead is."""
        return np.asarray(np.exp(-((self.leads / width) ** 2)))


@one_blas_thread
def choose(search: PriceSearch, groups: IntArray | None, method: str) -> Chosen:
    """Return the best decisions.

    Parameters
    ----------
    search : PriceSearch
        Rows and rules.
    groups : ndarray of shape (n_samples,) or None
        The groups of the rows if decisions may use them and they do not overlap.
    method : {"auto", "prices", "windows"}
        What is tried.

    Returns
    -------
    chosen : Chosen
        The decisions.
    """
    free = search.free()
    if free.verdict.is_feasible:
        return _chosen(free, free, "none")
    found: list[tuple[str, Candidate]] = []
    is_exact, tie_weight = False, 0.0
    if method != "prices" and groups is not None and search.judge.n_classes == 2:
        prices = window_prices(search.judge, search.features, groups, search.values)
        if prices is not None:
            one = search.candidate(prices)
            # All rules are windows: prices could only find such thresholds, too.
            is_exact = one.verdict.is_feasible and all(map(is_described, search.judge.bounds))
            found.append(("windows", one if one.verdict.is_feasible else search.polished(one)))
    if method == "windows" and not found:
        raise ValueError(
            "method='windows' needs two classes, groups that are known at prediction and do not "
            "overlap, and one or two differences of rates. Use method='prices'."
        )
    if method != "windows" and not is_exact:
        one, tie_weight = _priced(search, groups is not None and search.judge.n_classes > 2)
        found.append(("prices", one))
    name, best = found[0]
    for other, one in found[1:]:
        if one.verdict.is_better_than(best.verdict):
            name, best = other, one
    if method == "auto" and groups is None and search.judge.n_classes == 2:
        best = moved(search, best)
    return _chosen(best, free, name)._replace(tie_weight=tie_weight)


def _priced(search: PriceSearch, can_part: bool) -> tuple[Candidate, float]:
    """Return the best prices, and the weight of v log v that was added to expected worth v.

    If the best decisions are random ones, rows with different scores are tied, and prices alone
    give all of them to one side. Searches end when less than two standard errors are lost.
    """
    if not can_part:
        return _searched(search), 0.0
    goal, tied = search.outlook()
    goal -= 2 / np.sqrt(search.kinds.size)
    found: list[tuple[Candidate, float]] = []
    for weight in _TIE_WEIGHTS if tied < _MOST_TIED else (*_TIE_WEIGHTS[1:], 0.0):
        parted = search.parted(weight) if weight else search
        one = _searched(parted)
        if not found or one.verdict.is_better_than(found[0][0].verdict):
            found = [(one, weight)]
        if (
            not _loses_much(parted, one)
            and found[0][0].verdict.is_feasible
            and found[0][0].verdict.worth > goal
        ):
            break
    return found[0]


def _searched(search: PriceSearch) -> Candidate:
    """Return the best prices of rounds, mended where these lose much.

    Where limits are tighter than what chance does to the rows, rounds may end where hardly anybody
    is selected. Decisions that miss the limits by little are near: soft ones, or those without
    constraints.
    """
    best = search.run()
    for start in (search.soft, search.free):
        if not _loses_much(search, best):
            break
        best = mended(search, start(), best)
    return best


def _loses_much(search: PriceSearch, best: Candidate) -> bool:
    """Whether decisions are worth much less than soft ones, by more than chance does."""
    allowed = max(_LOST, 1 / np.sqrt(search.kinds.size))
    return not best.verdict.is_feasible or search.lost(best) >= allowed


def _chosen(best: Candidate, free: Candidate, method: str) -> Chosen:
    return Chosen(best.prices, best.predicted, best.verdict, free.verdict, method, best.leads())


def contradiction(judge: Judge, predicted: IntArray, names: Sequence[str]) -> str:
    """Say which limits are missed, by how much, and what stands in the way of a single one."""
    over = np.array(judge.disparities(predicted)) - [b.max_disparity for b in judge.bounds]
    order = np.argsort(-over, kind="stable")
    missed = [k for k in order if over[k] > ROUNDING] or [order[0]]
    text = "; ".join(f"{names[k]} is missed by {over[k]:.3g}" for k in missed)
    if len(missed) == 1 < order.size:
        other = order[1]
        text += (
            f"; the limit closest to contradicting it is {names[other]}, with {-over[other]:.3g}"
        )
        text += " to spare"
    return text
