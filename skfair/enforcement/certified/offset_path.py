"""A path of offsets for two classes, from decisions that are certainly fair to unlimited ones.

:func:`skfair.estimators.certified.paths.certify` calls :func:`offset_path` with the training rows.
It returns the offsets of each step and feature. The same rows test the steps afterwards
(``walk.py``), and the test allows for that. A path for each fold, found without the rows of the
fold, would change nothing: what it leaves in its own fold cancels over the folds. A decision is
*free* if it is made without offsets. The *slack* of a point says by how many standard errors its
gaps are below their limits.

A path has two phases, with a transition from one to the other:

- The *shrink phase* begins with the same decision for nearly everybody. The other decision is made
  more and more often, with offsets that leave no gap between group rates. Its steps are easy to
  certify, because rates near 0 or 1 have small errors. It is left out if it is not needed.
- The *relax phase* makes both decisions in their full numbers. Gaps grow up to the limits and a
  little beyond. Either its steps select as many rows as free decisions do, or any number of rows.
  This choice is made before anything is tested.

Steps are found at a few *nodes* by :class:`~skfair.enforcement.certified.gap_solver.GapSolver`, and
others lie on straight lines between the nodes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import special

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.certified.gap_solver import GapSolver, PathRows
from skfair.enforcement.certified.walk import RowRates, likely_p_values
from skfair.utils.rounding import ROUNDING

# Decisions are soft while offsets are searched. At the last temperature nearly all are hard.
TEMPERATURES = (0.1, 0.03, 0.01)
_LAST = TEMPERATURES[-1:]
# A point of the shrink phase is searched again, at the temperatures _THOROUGH in turn, if it misses
# what is wanted by more than _COARSE (GapSolver.misses).
_COARSE, _THOROUGH = 0.25, (*TEMPERATURES, 0.003, 0.001)
# Number of nodes of a phase. Half as many lose 0.002 of accuracy (+- 0.001, 160 fits). Twice as
# many gain nothing and take a fifth more time.
N_NODES = 12
# Nodes of the shrink phase: number of the rarer decisions, as a share of the full number.
SHARES = np.geomspace(0.03, 0.84, N_NODES)
# Nodes of the relax phase if groups have one rate each: gaps in units of their limits.
GAPS = np.linspace(0.0, 1.1, N_NODES)
# Smallest and largest slack of the nodes of the relax phase if groups have several rates. All
# numbers of standard errors in this file are for a confidence of 0.95. At a larger confidence
# ``PathRows.surer`` is added to them, because the test itself asks for more (5 at 0.999999).
SLACKS = (-0.5, 5.0)
# The way from one node to the next is divided into N_PARTS parts, and the transition into
# N_TRANSITION parts. The transition needs more of them. If the other columns say little about the
# groups, offsets are large in the shrink phase and small in the relax phase, so accuracy rises
# steeply between the two. In a transition of three parts, it rose by 0.087 in a single step.
N_PARTS, N_TRANSITION = 3, 8
N_LAST = (N_NODES - 1) * N_PARTS + 1  # number of steps of the relax phase
# With limits on several rates of each group, the shrink phase is left out if the relax phase begins
# this many standard errors below them. Its first step is then certified anyway, while a step of the
# shrink phase might fail. For equalized odds at 0.05 this gains 1.0 +- 0.5 points of accuracy (24
# fits of 12,000 rows), at most 8, and none of 42 fits loses its certificate. With one rate per
# group it would gain nothing, and 4 of 105 certificates would be lost.
_FAR = 2.4
# There is a transition if gaps come nearer to their limits by this many standard errors.
_NEARER = 1.0
# Number of standard errors by which steps of the shrink phase should be below limits on several
# rates. Steps that are nearer are tried again.
_SAFE = 8.0
# Rows with the same groups and stratum are treated as equal if their probabilities are in the same
# interval of this width.
_WIDTH = 2e-3


def near_rows(cells: IntArray, chances: FloatArray) -> IntArray:
    """Return a number for each row, for ``PathRows.alike``.

    It is the same for rows with similar probabilities ``chances`` in the same cell. ``cells`` are
    numbers for the combinations of groups and strata.
    """
    n_steps = int(1 / _WIDTH) + 1
    return cells * n_steps + (chances / _WIDTH).astype(np.int64)


def offset_path(rows: PathRows) -> FloatArray:
    """Return the offsets of the second decision, shape (n_steps, n_features).

    The last step has no offsets if the free decisions have gaps below the limits. The relax phase
    always has N_LAST steps.
    """
    solver = GapSolver(rows)
    relaxed = _by_slack if solver.has_several else _by_gaps
    start, second = relaxed(solver, solver.selection_rate(solver.nothing))
    # If steps may select different shares, a relax phase with any number of selected rows may be
    # worth more than one with the number of the free decisions, or have smaller gaps.
    if rows.from_few is not None:
        other_start, others = relaxed(solver, None)
        slack, most = solver.slack(start), solver.slack(other_start)
        is_nearer = most - slack > _NEARER or slack < _FAR + rows.surer <= most
        # The utilities of both ways are compared in the middle of the relax phase.
        if is_nearer or _is_worth_more(rows, others[N_LAST // 2], second[N_LAST // 2]):
            start, second = other_start, others
    first: list[FloatArray] = []
    is_far = solver.has_several and solver.slack(start) >= _FAR + rows.surer
    if rows.from_few is not None and _can_shrink(rows.rates) and not is_far:
        first, end = _shrunk(solver, solver.selection_rate(start))
        if solver.has_several:  # limits on several rates need smaller steps in the later half
            half = len(first) // 2
            first = [*first[:half], *_between(first[half:])]
        first += _transition(solver, end, start)
    return np.stack([*first, *second])


def _is_worth_more(rows: PathRows, offsets: FloatArray, others: FloatArray) -> bool:
    """Whether ``offsets`` have more expected utility than ``others``, by over a standard error.

    Both are (n_features,).
    """
    weights = rows.rates.weights / rows.rates.weights.sum()
    taken, left = (rows.gains > np.asarray(rows.shares @ own) for own in (offsets, others))
    error = np.linalg.norm(weights * np.sqrt(rows.squares) * (taken != left))
    return bool(weights @ (rows.gains * taken - rows.gains * left) > error)


def _by_gaps(solver: GapSolver, share: float | None) -> tuple[FloatArray, list[FloatArray]]:
    """Return the point where the relax phase begins, and the offsets of its steps.

    Gaps grow up to their limits. Each step selects ``share`` of the rows, or any number if it is
    None.
    """
    nodes: list[FloatArray] = []
    point = solver.nothing
    for gap in GAPS[::-1]:  # small offsets come first, so that points stay near free ones
        window = solver.targets(gap)
        point = solver.solve(point, window, share, TEMPERATURES if not nodes else _LAST)
        is_free = solver.is_free(window)  # gaps are below the limits without offsets
        nodes.append(solver.offsets(solver.nothing if is_free else point))
    return point, _between(nodes[::-1])


def _by_slack(solver: GapSolver, share: float | None) -> tuple[FloatArray, list[FloatArray]]:
    """Return the point where the relax phase begins, and the offsets of its steps.

    The steps lie on straight lines between nodes. This function is for groups with several rates:
    one threshold per group cannot close all their gaps, and closing one may widen another. So each
    node comes from a search for a point at which every gap is a given number of standard errors
    below its limit. A node is kept only if its slack is larger than that of all earlier ones.
    ``share`` is as in :func:`_by_gaps`.
    """
    point, most = solver.nothing, -np.inf
    nodes: list[FloatArray] = []
    slacks = np.linspace(SLACKS[0], SLACKS[-1] + solver.rows.surer, N_NODES)
    for slack in slacks:  # small offsets come first, so that points stay near free ones
        window = solver.window(point, slack)
        warmth = TEMPERATURES if slack == slacks[0] else _LAST
        is_free = solver.is_free(window)
        trial = solver.nothing if is_free else solver.solve(point, window, share, warmth)
        reached = solver.slack(trial)
        if reached > most:
            point, most = trial, reached
            nodes.append(solver.offsets(point))
    return point, [*_evenly(nodes[::-1], N_LAST)]


def _shrunk(solver: GapSolver, full: float) -> tuple[list[FloatArray], FloatArray]:
    """Return the offsets of the steps of the shrink phase, and the point of the last step.

    ``full`` is the share of selected rows at which the relax phase begins.
    """
    rows, point = solver.rows, solver.nothing.copy()
    first: list[FloatArray] = []
    no_gap = solver.targets(0.0)
    for share in SHARES:
        wanted = float(share * full if rows.from_few else 1 - share * (1 - full))
        if not first:  # the first point starts from a common threshold
            point[-1] = np.quantile(rows.gains, 1 - wanted)
        window = solver.window(point, _SAFE + rows.surer) if solver.has_several else no_gap
        point = solver.solve(point, window, wanted, _LAST)
        # A point may need higher temperatures, if the threshold is far from all rows of a group and
        # soft decisions have no slope there. It may need lower ones, if many scores are nearly
        # equal. The first point is always searched again, because later ones start from it.
        missed = solver.misses(point, window, wanted)
        if missed > (_COARSE if first else 0.0):
            other = solver.solve(point, window, wanted, _THOROUGH)
            if solver.misses(other, window, wanted) < missed:
                point = other
        if solver.has_several:
            point = _with_slack(solver, point, wanted)
        first.append(solver.offsets(point))
    return first, point


def _transition(solver: GapSolver, low: FloatArray, high: FloatArray) -> list[FloatArray]:
    """Return the offsets of the steps between two points, without those of the points.

    If gaps do not come nearer to their limits, all steps are those of the first point, because
    between two points gaps may be larger than at both.
    """
    comes_nearer = solver.slack(low) - solver.slack(high) >= _NEARER
    end = high if comes_nearer else low
    return _between([solver.offsets(low), solver.offsets(end)], N_TRANSITION)[1:-1]


def _with_slack(solver: GapSolver, point: FloatArray, share: float) -> FloatArray:
    """Return a point with a slack that is larger by 1, if such a point is found.

    A point that is far enough below its limits is returned as it is.
    """
    slack = solver.slack(point)
    if slack >= _SAFE + solver.rows.surer:
        return point
    other = solver.solve(point, solver.window(point, slack + 1.0), share, _LAST)
    return other if solver.slack(other) > slack else point


def starts_with_few(
    rates: RowRates,
    # (n_samples,): expected utility of the second decision minus that of the first one
    gains: FloatArray,
    is_rare: bool,  # whether the second class is the rarer one
    confidence: float,
) -> bool:
    """Return whether the shrink phase begins with few selected people, not with few refused ones.

    Rates near 0 and 1 have the smallest standard errors, and those near one half the largest. So a
    walk may get through from one end and fail from the other. The better end is the one with the
    larger expected utility of the last certified step. If both are equal, the path begins with few
    of the rarer decision.

    The choice does not prefer steps that look fair. It uses the numbers of
    rows, expected utility and the pooled rates of groups under a common threshold. If groups have
    equal rates, a pooled rate is uncorrelated with each difference of rates: the covariance of
    (n_1 r_1 + n_2 r_2) / n with r_1 - r_2 is r (1 - r) / n - r (1 - r) / n. If their rates differ
    by the limit, a little correlation is left.
    """
    if not _can_shrink(rates):
        return is_rare
    full = min(float(rates.weights @ (gains > 0)), 1.0)  # rounded, the sum may be larger
    shares = np.array([0.0, *SHARES, 1.0])
    wanted = np.concatenate([shares * full, 1 - shares * (1 - full)])
    selected = gains[:, None] > np.quantile(gains, 1 - wanted)
    # If p is the likely p-value of a step, its normal quantile varies by about 1 between samples.
    # So the step passes with the probability ndtr(ndtri(1 - confidence) - ndtri(p)).
    likely = special.ndtri(1 - confidence) - special.ndtri(likely_p_values(rates, selected))
    # The utility of the better one of the two constant decisions.
    constant = max(0.0, float(rates.weights @ gains))
    weighted, utility = rates.weights * gains, list[float]()
    gain = np.array([weighted @ of_step for of_step in selected.T])
    # The expected utility is computed from both ends. If a step passes, and all steps before it,
    # the step adds the gain that it has over the step before.
    for chance, gained in zip(
        special.ndtr(likely).reshape(2, -1), gain.reshape(2, -1), strict=True
    ):
        reached = np.minimum.accumulate(chance[1:])
        before = np.append(constant, gained[1:-1])
        utility.append(constant + float(reached @ (gained[1:] - before)))
    few, many = utility
    return bool(few > many - ROUNDING if is_rare else few > many + ROUNDING)


def full_step(n_steps: int) -> int:
    """Return the number of the first step of the relax phase, given the number of all steps."""
    return n_steps - N_LAST


def _can_shrink(rates: RowRates) -> bool:
    """Whether decisions become fairer, and easier to certify, if nearly nobody is selected.

    This is not so for limits on ratios, or if rates differ although nobody is selected.
    """
    if any(peers.is_ratio for peers in rates.compared):
        return False
    share, _ = rates.shares_and_sizes(np.zeros((rates.weights.size, 1), dtype=bool))
    return all(np.ptp(share[peers.rates]) < ROUNDING for peers in rates.compared)


def _between(nodes: list[FloatArray], n: int = N_PARTS) -> list[FloatArray]:
    """Return the nodes, with the way from each to the next divided into n parts."""
    steps = [
        left + (right - left) * part / n for left, right in pairwise(nodes) for part in range(n)
    ]
    return [*steps, nodes[-1]]


def _evenly(nodes: list[FloatArray], n: int) -> FloatArray:
    """Return n steps at equal distances on the straight lines from node to node.

    Used because paths have different numbers of nodes, but need equally many steps.
    """
    at = np.linspace(0, len(nodes) - 1, n)
    left = np.minimum(at.astype(np.int64), max(len(nodes) - 2, 0))
    part, ends = (at - left)[:, None], np.array(nodes)
    return np.asarray((1 - part) * ends[left] + part * ends[np.minimum(left + 1, len(nodes) - 1)])
