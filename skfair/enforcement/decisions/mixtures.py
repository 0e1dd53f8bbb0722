"""Mixtures of thresholds: where one threshold for each group has to match several rates.

Two rates of a group, as equalized odds limits them, equal the two rates of another group at a
single threshold only where ROC curves cross. A group that uses several thresholds, each for a share
of its people, reaches every point between. The best mixture is a linear programme over the
thresholds of all groups.

Who gets which threshold is said by a number that goes with the row (:mod:`skfair.utils.row_hash`).
Scores are made so that one threshold for each group remains, which the exact searches then set on
the rows: above all thresholds a row keeps its score, below all as well, and between them it is
ordered by its number.
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

# Thresholds of each group that may be mixed. With 300, 64 fits lost .0026 of accuracy.
_MOST_CUTS = 1_000
# Shares that count as 0.
_NOTHING = 1e-9
# Rows times constraints that are worth the memory.
_MOST_EFFECTS = 50_000_000


@dataclass(frozen=True, eq=False)
class Mixture:
    """Thresholds on scores, and which share of a group uses each."""

    thresholds: tuple[FloatArray, ...]  # of each group, falling
    shares: tuple[FloatArray, ...]  # of each group; they add up to 1
    usual: float  # the mean threshold of everybody: what people of unknown groups get

    @property
    def is_needed(self) -> bool:
        """Whether a group uses several thresholds."""
        return any(shares.size > 1 for shares in self.shares)

    def values(self, values: FloatArray, groups: IntArray, draws: FloatArray) -> FloatArray:
        """Return the utility of decisions; the second more than the first where it is chosen."""
        scores = values[:, 1] - values[:, 0]
        gains = scores - self.usual
        for group, (thresholds, shares) in enumerate(
            zip(self.thresholds, self.shares, strict=True)
        ):
            rows = np.flatnonzero(groups == group)
            band, passed = self._bands(scores[rows], thresholds, shares)
            gains[rows] = draws[rows] - passed[band]
            gains[rows[band == 0]] = 2.0 + scores[rows[band == 0]]
            is_below = band == thresholds.size
            gains[rows[is_below]] = -2.0 + scores[rows[is_below]]
        return np.column_stack([np.zeros_like(gains), gains])

    def decides(self, values: FloatArray, groups: IntArray, cuts: FloatArray) -> BoolArray:
        """Whether a draw decides about rows, if the utility of each group is cut here."""
        scores = values[:, 1] - values[:, 0]
        is_chosen = np.zeros(scores.size, dtype=bool)
        for group, cut in enumerate(cuts):
            rows = np.flatnonzero(groups == group)
            band, passed = self._bands(scores[rows], self.thresholds[group], self.shares[group])
            lowest = -passed[band]
            is_between = (band > 0) & (band < self.thresholds[group].size)
            is_chosen[rows] = is_between & (lowest < cut) & (cut < lowest + 1.0)
        return is_chosen

    @staticmethod
    def _bands(
        scores: FloatArray, thresholds: FloatArray, shares: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return how many thresholds are above each score, and which share uses this many."""
        band = thresholds.size - np.searchsorted(thresholds[::-1], scores)
        return band, np.append(0.0, np.cumsum(shares))


class _Group(NamedTuple):
    """The rows of a group by descending score, and what each cut of them gives."""

    cuts: IntArray  # (n_cuts,): how many rows are above
    thresholds: FloatArray  # (n_cuts,)
    utility: FloatArray  # (n_cuts,)
    effects: FloatArray  # (n_constraints, n_cuts)


class Mixed(NamedTuple):
    """A mixture, and what is expected of it over the draws."""

    mixture: Mixture
    utility: float
    effects: FloatArray  # (n_constraints,): what it adds to the values of the constraints


class Mixtures:
    """The mixtures of thresholds of some rows.

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
        """Whether limits are on two linear rates of a group, and not on too many for the rows.

        A single rate of each group can be whatever it has to be with one threshold.
        """
        is_linear = all(bound.quotients is None for bound in strict.rates.bounds)
        n_constraints = sum(bound.upper.size for bound in strict.rates.bounds)
        if not is_linear or strict.rates.classes.size * n_constraints > _MOST_EFFECTS:
            return False
        return any(_n_rates(strict, groups, group) > 1 for group in range(groups.max() + 1))

    def best(self, missed: FloatArray | None = None) -> Mixed | None:
        """Return the mixture of most utility within the limits; None if there is none.

        Rows are whole, so what is counted is not quite what is expected: ``missed`` is the
        difference, of each constraint, that was seen at the last mixture.
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
    """Return how many rates of a group are limited; one that is limited twice is one."""
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
    rows, cuts, utility = cuts_of(strict, rows, scores)
    some = np.unique(np.linspace(0, cuts.size - 1, _MOST_CUTS).astype(np.int64))
    cuts, utility = cuts[some], utility[some]
    # Beyond all scores is as far as no probability is.
    ends = np.concatenate([[3.0], scores[rows], [-3.0]])
    bounds = strict.rates.bounds
    effects = [strict.rates.added(k, bound.matrix, rows) for k, bound in enumerate(bounds)]
    above = np.cumsum(np.vstack(effects), axis=1)
    above = np.hstack([np.zeros((len(above), 1)), above])[:, cuts]
    return _Group(cuts, 0.5 * (ends[cuts] + ends[cuts + 1]), utility, above)


def _limits(strict: StrictEvaluation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what all constraints limit: ``matrix @ effects + centers @ free <= most``."""
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
    """Solve the programme over the cuts of each group."""
    utility = np.concatenate([part.utility for part in parts])
    effects = np.hstack([part.effects for part in parts])
    n_free = centers.shape[1]
    owners = np.repeat(np.arange(len(parts)), [part.cuts.size for part in parts])
    is_owner = np.arange(len(parts))[:, None] == owners
    sums = np.hstack([is_owner, np.zeros((len(parts), n_free))]).astype(np.float64)
    ends: Any = [(0, None)] * utility.size + [(None, None)] * n_free
    costs, limited = np.append(-utility, np.zeros(n_free)), np.hstack([matrix @ effects, centers])
    return linprog(costs, limited, most, sums, np.ones(len(parts)), ends)
