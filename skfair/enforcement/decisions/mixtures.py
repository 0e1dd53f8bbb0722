"""Mixtures of thresholds: a group uses several thresholds, each for a share of its people.

:func:`skfair.enforcement.decisions.search.search_decisions` calls :meth:`Mixtures.best` if there
are two classes, groups are known, and decisions may be drawn. It gets the :class:`Mixture` of
largest expected utility within the limits. Equalized odds limit two rates of each group. With one
threshold per group, both rates of two groups are equal only where their ROC curves cross. With
several thresholds, a group also reaches all points between the points of its curve. The best
mixture is the solution of a linear programme whose unknowns are the shares of all thresholds.

A row does not get its threshold by a new random draw, but by a number in [0, 1) that belongs to it
(:mod:`skfair.utils.row_hash`). :meth:`Mixture.values` then makes new scores, in which a mixture is
one threshold again. Rows above all thresholds of their group come first, in the order of their
scores. Rows between two thresholds follow, in an order set by their numbers. Rows below all
thresholds are last. So the exact searches for one threshold per group apply to mixtures as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linprog

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.strict_evaluation import StrictEvaluation, cuts_of
from skfair.utils.rounding import SUM_ROUNDING

# Largest number of thresholds of a group that may be mixed. With 300, 64 fits lost 0.0026 of
# accuracy.
_MOST_CUTS = 1_000
# Thresholds that get a smaller share of a group are left out.
_NOTHING = 1e-9
# With more rows times constraints, mixtures are not tried, because they would need 400 MB.
_MOST_EFFECTS = 50_000_000


@dataclass(frozen=True, eq=False)
class Mixture:
    """Thresholds on scores, and which share of a group uses each.

    The score of a row is the utility of the second decision minus that of the first.
    """

    thresholds: tuple[FloatArray, ...]  # thresholds of each group, in falling order
    shares: tuple[FloatArray, ...]  # share of each threshold in its group; they add up to 1
    usual: float  # mean threshold of all people, which rows of unknown groups get

    @property
    def is_needed(self) -> bool:
        """Whether a group uses several thresholds."""
        return any(shares.size > 1 for shares in self.shares)

    def values(self, values: FloatArray, groups: IntArray, draws: FloatArray) -> FloatArray:
        """Return the new scores of the rows, as utility of the two decisions, (n_samples, 2).

        Let p_k be the share of a group's people that use one of its k highest thresholds. A row
        that is below exactly these k thresholds, with draw u, gets the new score u - p_k. That is
        positive for a share 1 - p_k of such rows. It is within [-1, 1), so rows above all
        thresholds get 2 + score, and rows below all of them -2 + score.
        """
        scores = values[:, 1] - values[:, 0]
        gains = scores - self.usual
        for group, (thresholds, shares) in enumerate(
            zip(self.thresholds, self.shares, strict=True)
        ):
            rows = np.flatnonzero(groups == group)
            n_higher, highest_shares = self._not_passed(scores[rows], thresholds, shares)
            gains[rows] = draws[rows] - highest_shares[n_higher]
            is_above = n_higher == 0
            gains[rows[is_above]] = 2.0 + scores[rows[is_above]]
            is_below = n_higher == thresholds.size
            gains[rows[is_below]] = -2.0 + scores[rows[is_below]]
        return np.column_stack([np.zeros_like(gains), gains])

    def decides(self, values: FloatArray, groups: IntArray, cuts: FloatArray) -> BoolArray:
        """Whether the draw of each row decides about it, if the new scores of a group are cut.

        ``cuts`` (n_groups,) has the cut of each group. A draw decides if some draws would put the
        new score of the row above the cut, and others below.
        """
        scores = values[:, 1] - values[:, 0]
        is_drawn = np.zeros(scores.size, dtype=bool)
        for group, cut in enumerate(cuts):
            rows = np.flatnonzero(groups == group)
            thresholds, shares = self.thresholds[group], self.shares[group]
            n_higher, highest_shares = self._not_passed(scores[rows], thresholds, shares)
            lowest = -highest_shares[n_higher]
            is_between = (n_higher > 0) & (n_higher < thresholds.size)
            is_drawn[rows] = is_between & (lowest < cut) & (cut < lowest + 1.0)
        return is_drawn

    @staticmethod
    def _not_passed(
        scores: FloatArray, thresholds: FloatArray, shares: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return how many thresholds each score does not exceed, and p_k for every number k."""
        n_higher = thresholds.size - np.searchsorted(thresholds[::-1], scores)
        return n_higher, np.append(0.0, np.cumsum(shares))


class _Group(NamedTuple):
    """The cuts of a group, and what changes if the rows above a cut get the second decision."""

    cuts: IntArray  # (n_cuts,): number of rows above each cut
    thresholds: FloatArray  # (n_cuts,): score in the middle of each cut
    utility: FloatArray  # (n_cuts,): change of the utility
    effects: FloatArray  # (n_constraints, n_cuts): change of the value of each constraint


class Mixed(NamedTuple):
    """A mixture, and its expected values over the draws."""

    mixture: Mixture
    utility: float
    # (n_constraints,): change of the value of each constraint, from the first decision for all
    effects: FloatArray


class Mixtures:
    """Finds the best mixture of thresholds for some rows.

    Parameters
    ----------
    strict : StrictEvaluation
        Limits, and the utility of decisions.
    groups : ndarray of shape (n_samples,)
        The group of each row.
    values : ndarray of shape (n_samples, 2)
        Expected utility of each decision. Thresholds are on the difference of the two.
    """

    def __init__(self, strict: StrictEvaluation, groups: IntArray, values: FloatArray) -> None:
        scores = values[:, 1] - values[:, 0]
        self._limits = _limits(strict)
        self._start = strict.utility_of(np.zeros(scores.size, dtype=np.int64))
        self._groups = [
            _cut_group(strict, np.flatnonzero(groups == g), scores) for g in range(groups.max() + 1)
        ]
        self._sizes = np.bincount(groups, strict.weights, len(self._groups))

    @staticmethod
    def suit(strict: StrictEvaluation, groups: IntArray) -> bool:
        """Whether a mixture can gain something, and its linear programme fits into memory.

        A single rate of a group takes any value with one threshold, so mixtures gain only if some
        group has two limited rates. The programme needs rates that are linear in the decisions.
        """
        is_linear = all(bound.quotients is None for bound in strict.rates.bounds)
        n_constraints = sum(bound.upper.size for bound in strict.rates.bounds)
        if not is_linear or strict.rates.classes.size * n_constraints > _MOST_EFFECTS:
            return False
        return any(_n_rates(strict, groups, group) > 1 for group in range(groups.max() + 1))

    def best(self, missed: FloatArray | None = None) -> Mixed | None:
        """Return the mixture of largest expected utility within the limits, or None.

        Limits hold for the counted values, which differ from the expected ones because of the
        draws. ``missed`` (n_constraints,) is the counted minus the expected value of each
        constraint at the last mixture. The limits of the programme are moved by it.
        """
        (matrix, centers, most), parts = self._limits, self._groups
        programme = _programme(
            parts, matrix, centers, most if missed is None else most - matrix @ missed
        )
        if programme.status != 0:
            return None
        sizes = [part.cuts.size for part in parts]
        used = np.split(programme.x[: sum(sizes)], np.cumsum(sizes)[:-1])
        kept = [np.flatnonzero(shares > _NOTHING) for shares in used]
        shares = tuple(own[cuts] / own[cuts].sum() for own, cuts in zip(used, kept, strict=True))
        thresholds = tuple(part.thresholds[cuts] for part, cuts in zip(parts, kept, strict=True))
        usual = [float(t @ s) for t, s in zip(thresholds, shares, strict=True)]
        every = list(zip(parts, kept, shares, strict=True))
        return Mixed(
            Mixture(thresholds, shares, float(self._sizes @ usual)),
            self._start + sum(float(w @ part.utility[cuts]) for part, cuts, w in every),
            np.sum([part.effects[:, cuts] @ w for part, cuts, w in every], axis=0),
        )


def _n_rates(strict: StrictEvaluation, groups: IntArray, group: int) -> int:
    """Return how many different rates of a group are limited.

    A rate that several constraints limit counts once. So the result is the rank of the matrix that
    says what selecting each row adds to each rate.
    """
    rates = strict.rates
    own = [bound.rates[bound.rate_groups == group] for bound in rates.bounds]
    n_rates = sum(int(of_group.shape[0]) for of_group in own)
    if n_rates < 2:
        return n_rates
    rows = np.flatnonzero(groups == group)
    effects = np.vstack([rates.added(k, of_group, rows) for k, of_group in enumerate(own)])
    lengths = np.linalg.norm(effects, axis=1, keepdims=True)
    directions = effects / np.where(lengths > 0, lengths, 1.0)
    return int(np.linalg.matrix_rank(directions @ directions.T, tol=SUM_ROUNDING, hermitian=True))


def _cut_group(strict: StrictEvaluation, rows: IntArray, scores: FloatArray) -> _Group:
    """Return the cuts of the group with these rows, evenly chosen ones if there are too many."""
    rows, cuts, utility = cuts_of(strict, rows, scores)
    some = np.unique(np.linspace(0, cuts.size - 1, _MOST_CUTS).astype(np.int64))
    cuts, utility = cuts[some], utility[some]
    # Scores are between -1 and 1. The outermost thresholds lie beyond, so no new row passes them.
    ends = np.concatenate([[3.0], scores[rows], [-3.0]])
    bounds = strict.rates.bounds
    effects = [strict.rates.added(k, bound.matrix, rows) for k, bound in enumerate(bounds)]
    above = np.cumsum(np.vstack(effects), axis=1)
    above = np.hstack([np.zeros((len(above), 1)), above])[:, cuts]
    return _Group(cuts, 0.5 * (ends[cuts] + ends[cuts + 1]), utility, above)


def _limits(strict: StrictEvaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the limits as ``matrix @ effects + centers @ free <= most``.

    ``effects`` are the changes of the values of the constraints, and ``free`` are the centres of
    windows, which the programme chooses.
    """
    n_centers = [bound.n_centers for bound in strict.rates.bounds]
    n = sum(bound.upper.size for bound in strict.rates.bounds)
    centers, low, high, first, used = np.zeros((n, sum(n_centers))), [], [], 0, 0
    for bound, start, size in zip(strict.rates.bounds, strict.rates.starts, n_centers, strict=True):
        has_center = np.flatnonzero(bound.centers >= 0)
        centers[first + has_center, used + bound.centers[has_center]] = -1.0
        fixed = bound.row_values(start)
        low.append(bound.lower - fixed)
        high.append(bound.upper - fixed)
        first, used = first + fixed.size, used + size
    signs = np.vstack([np.eye(n), -np.eye(n)])
    most = np.concatenate([*high, *(-of_group for of_group in low)])
    is_finite = np.isfinite(most)
    return signs[is_finite], (signs @ centers)[is_finite], most[is_finite]


def _programme(
    parts: Sequence[_Group], matrix: FloatArray, centers: FloatArray, most: FloatArray
) -> Any:
    """Return the result of ``linprog``: its unknowns are the shares of all cuts, then centres.

    The utility is maximised within the limits, and the shares of each group add up to 1.
    """
    utility = np.concatenate([part.utility for part in parts])
    effects = np.hstack([part.effects for part in parts])
    n_free = centers.shape[1]
    owners = np.repeat(np.arange(len(parts)), [part.cuts.size for part in parts])
    is_owner = np.arange(len(parts))[:, None] == owners
    sums = np.hstack([is_owner, np.zeros((len(parts), n_free))]).astype(np.float64)
    ends: Any = [(0, None)] * utility.size + [(None, None)] * n_free
    costs, limited = np.append(-utility, np.zeros(n_free)), np.hstack([matrix @ effects, centers])
    return linprog(costs, limited, most, sums, np.ones(len(parts)), ends)
