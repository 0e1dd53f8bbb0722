"""Comparisons of groups: rows for a solver, and the number that a limit bounds.

The rates of the groups of one attribute, within a class or a stratum, are a *compared set*.
:class:`~skfair.constraints.bound.BoundConstraint` asks a comparison two things:

- :meth:`Comparison.rows`: which linear combinations of rates a solver has to keep between bounds,
  so that the disparity of each set is within the limit. "Rows" are these combinations, never rows
  of data.
- :meth:`Comparison.least`: how large the disparity is, or at least is if each rate is only known to
  lie in an interval. It is computed by :meth:`Comparison.gap` from two rates.

The kernel in ``skfair/_kernels/thresholds.py`` has the formulas of :meth:`Comparison.gap` once more
and chooses one by ``code``. Change both together. The comparisons:

- :class:`Pairwise` limits the differences between groups, and :class:`Overall` their differences
  from the rate of all rows, the *overall rate*.
- :class:`Ratio` limits 1 minus the smaller rate over the larger one, for each two groups.
  :class:`OverallRatio` does so for each group and the overall rate. A ratio of at least ``r`` is
  ``r * larger - smaller <= 0``, which is linear.
- :class:`Bounded` limits the largest rate itself, without a comparison.
- :class:`Excess` limits the largest excess of a rate over the overall rate, and :class:`MeanExcess`
  the mean excess. Rates below the overall rate are not limited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed


class Rows(NamedTuple):
    """Combinations of rates that a solver keeps between bounds.

    With one overall rate for each rate (the rate of all rows of its part), the combinations are
    ``of_rates @ rates + of_overall @ overall``, minus the centre of a row if it has one.
    """

    of_rates: sparse.csr_array  # (n_rows, n_rates)
    of_overall: sparse.csr_array  # (n_rows, n_rates)
    # (n_rows,): number of the centre, a parameter that the problem adds (see Pairwise); -1 if the
    # row has none
    centers: IntArray
    # (n_rows,): bounds; ``lower`` is -inf if there is only an upper one
    lower: FloatArray
    upper: FloatArray
    row_names: tuple[str, ...]  # what each row compares


class Comparison(ABC):
    """How rates become one number, the disparity."""

    # The formula of the disparity, for the kernel of thresholds: 0 for a difference of rates, 1 for
    # 1 minus a ratio, 2 for the largest rate
    code: ClassVar[int] = 0
    # Whether each rate is compared with the overall one instead of with the others
    against_overall: ClassVar[bool] = False
    # Whether the limit is satisfied exactly if all rates of a compared set lie in some interval
    # that is as long as the limit
    is_window: ClassVar[bool] = False
    # Whether the limit is satisfied exactly if no rate is above it
    is_cap: ClassVar[bool] = False
    # Whether :meth:`rows` and :meth:`least` count a rate that is the only one of its set. It has
    # nothing to be compared with, so the caller has to leave it out
    counts_lone: ClassVar[bool] = False
    # Ending of the names of the metrics that compare in this way; None if they have no such ending
    suffix: ClassVar[str | None] = "_difference"

    @property
    def is_difference(self) -> bool:
        """Whether the disparity is a difference of rates, not a ratio or a rate by itself."""
        return self.code == 0

    @abstractmethod
    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return rows that are within their bounds exactly if the disparity is within the limit.

        ``sets`` holds the compared set of each rate, numbered from 0 in rising order, and ``names``
        the name of each rate.
        """

    @abstractmethod
    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the disparity of two rates, the smaller one first.

        Arguments in the other order have the disparity 0. A cap looks at the larger rate only.
        """

    def least(
        self,
        rates: tuple[FloatArray, FloatArray],
        overall: tuple[FloatArray, FloatArray],
        sets: IntArray,
    ) -> FloatArray:
        """Return the least disparity of rates that lie between bounds (which may be equal).

        ``rates`` and ``overall`` are pairs of lower and upper bounds, each of shape (n_rates, ...).
        The result is the largest over the sets. If bounds are equal, it is the disparity itself.
        """
        (low, high), (low_overall, high_overall) = rates, overall
        first = first_of(sets)
        if not first.size:
            return np.zeros(low.shape[1:])
        # Wherever the rates are between their bounds, the smallest rate of a set is at most
        # ``smallest``, and the largest rate is at least ``largest``. The overall rate is the same
        # for all rates of a set.
        smallest = np.minimum.reduceat(high, first)
        largest = np.maximum.reduceat(low, first)
        if self.against_overall:
            below = self.gap(smallest, low_overall[first])
            above = self.gap(high_overall[first], largest)
            return np.asarray(np.maximum(below, above).max(axis=0))
        return np.asarray(self.gap(smallest, largest).max(axis=0))

    def by_group(self, rates: FloatArray, overall: FloatArray) -> FloatArray:
        """Return the number that is reported for each group: its rate minus the overall one."""
        return rates - overall

    def disparity_of_metric(self, value: float) -> float:
        """Return the disparity, given the value of the metric that measures the constraint."""
        return value


@dataclass(frozen=True)
class Pairwise(Comparison):
    """The largest minus the smallest rate of a compared set.

    The two rates of a set of two make one row, their difference. If a set has J > 2 rates, the
    problem gets one more parameter, the *centre* of the set, and each rate must lie within half the
    limit of the centre. That costs J rows instead of J (J - 1) / 2.
    """

    is_window = True

    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the difference."""
        return np.maximum(high - low, 0.0)

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return the difference of the rates of each pair, or the distances from a centre."""
        sizes = np.bincount(sets)
        first = first_of(sets)
        pairs = first[sizes == 2]  # the first rate of each set of two
        members = np.flatnonzero(sizes[sets] > 2)  # the rates of larger sets
        center_of_set = np.cumsum(sizes > 2) - 1
        n_rows = pairs.size + members.size
        # Entries of the matrix: -1 for the first rate of each pair, then 1 for the second one of
        # each pair and for each rate of a larger set.
        signs = np.repeat([-1.0, 1.0], [pairs.size, n_rows])
        at = np.append(np.arange(pairs.size), np.arange(n_rows)), [*pairs, *(pairs + 1), *members]
        of_rates = sparse.csr_array((signs, at), shape=(n_rows, len(names)))
        upper = np.repeat([limit, 0.5 * limit], [pairs.size, members.size])
        centers = np.concatenate([np.full(pairs.size, -1), center_of_set[sets[members]]])
        row_names = (
            *(f"{names[p + 1]} - {names[p]}" for p in pairs.tolist()),
            *(f"{names[m]} - middle" for m in members.tolist()),
        )
        nothing = sparse.csr_array(of_rates.shape)
        return Rows(of_rates, nothing, centers, -upper, upper, row_names)


@dataclass(frozen=True)
class Overall(Pairwise):
    """The largest distance of a rate from the overall one."""

    against_overall = True
    is_window = False

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return each rate minus the overall one."""
        kept = not_alone(sets)
        own = _each(names)[kept]
        upper = np.full(kept.size, limit)
        row_names = tuple(f"{names[r]} - overall" for r in kept)
        return Rows(own, -own, np.full(kept.size, -1), -upper, upper, row_names)


@dataclass(frozen=True)
class Ratio(Comparison):
    """1 minus the smallest rate of a compared set over the largest: 0.2 is the 80% rule.

    Each ordered pair of rates is a row. Rates of 0 and 0 are equal: their disparity is 0.
    """

    code = 1
    suffix = "_ratio"

    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return 1 minus the ratio."""
        divisor = np.where(high > ROUNDING, high, 1.0)
        missing = 1.0 - np.clip(low, 0.0, None) / divisor
        return np.where(high > ROUNDING, np.maximum(missing, 0.0), 0.0)

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return (1 - limit) r - q, at most 0, for each two rates r and q of a set."""
        members = np.split(np.arange(sets.size), first_of(sets)[1:])  # the rates of each set
        pairs = [pair for own in members for pair in permutations(own.tolist(), 2)]
        larger, smaller = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        of_rates = (1.0 - limit) * _each(names)[larger] - _each(names)[smaller]
        row_names = tuple(f"{1 - limit:g} * {names[h]} - {names[g]}" for h, g in pairs)
        return _at_most(0.0, of_rates, sparse.csr_array(of_rates.shape), row_names)

    def disparity_of_metric(self, value: float) -> float:
        """Return 1 minus the smallest ratio."""
        return 1.0 - value


@dataclass(frozen=True)
class OverallRatio(Ratio):
    """1 minus the ratio of a rate to the overall one, the smaller of both over the larger."""

    against_overall = True

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return two rows for each rate r, both at most 0.

        With the overall rate o they are (1 - limit) o - r and (1 - limit) r - o.
        """
        kept = not_alone(sets)
        own = _each(names)[kept]
        share = 1.0 - limit
        row_names = (
            *(f"{share:g} * overall - {names[r]}" for r in kept),
            *(f"{share:g} * {names[r]} - overall" for r in kept),
        )
        of_rates = sparse.csr_array(sparse.vstack([-own, share * own]))
        of_overall = sparse.csr_array(sparse.vstack([share * own, -own]))
        return _at_most(0.0, of_rates, of_overall, row_names)


@dataclass(frozen=True)
class Bounded(Comparison):
    """The largest rate: every group is limited by itself."""

    code = 2
    suffix = None
    is_cap = True

    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the larger rate."""
        return high

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return the rates, with upper bounds only."""
        of_rates = _each(names)
        return _at_most(limit, of_rates, sparse.csr_array(of_rates.shape), tuple(names))

    def by_group(self, rates: FloatArray, overall: FloatArray) -> FloatArray:
        """Return the rates."""
        return rates


@dataclass(frozen=True)
class Excess(Overall):
    """The largest excess of a rate over the overall one: rates below it are not limited."""

    suffix = None
    counts_lone = True
    is_mean: ClassVar[bool] = False  # whether the mean is limited, not the largest

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return each rate minus the overall one, with upper bounds only."""
        own = _each(names)
        return _at_most(limit, own, -own, tuple(f"{name} - overall" for name in names))

    def least(
        self,
        rates: tuple[FloatArray, FloatArray],
        overall: tuple[FloatArray, FloatArray],
        sets: IntArray,
    ) -> FloatArray:
        """Return the least disparity of rates that lie between bounds (which may be equal)."""
        excess = rates[0] - overall[1]
        if not len(excess):
            return np.zeros(excess.shape[1:])
        return np.asarray(excess.mean(axis=0) if self.is_mean else excess.max(axis=0))


@dataclass(frozen=True)
class MeanExcess(Excess):
    """The mean excess of the rates over the overall rate: one row, equation (18) of plada."""

    is_mean = True

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return one row, the mean of rate minus overall rate; no row if there are no rates."""
        n = len(names)
        own = sparse.csr_array(np.full((min(n, 1), n), 1 / max(n, 1)))
        return _at_most(limit, own, -own, ("mean of groups - overall",) if n else ())


# ``comparison`` of a constraint -> its ``reference`` -> the comparison. A cap has no reference.
COMPARISONS: dict[str, dict[str, Comparison]] = {
    "difference": {"pairwise": Pairwise(), "overall": Overall()},
    "ratio": {"pairwise": Ratio(), "overall": OverallRatio()},
    "bounded": {"pairwise": Bounded(), "overall": Bounded()},
}


def make_comparison(comparison: str | Comparison, reference: str) -> Comparison:
    """Return the comparison that is meant; raise and list the options if there is none.

    Examples
    --------
    >>> from skfair.constraints.comparisons import make_comparison
    >>> make_comparison("ratio", "pairwise")
    Ratio()
    """
    if isinstance(comparison, Comparison):
        return comparison
    if not isinstance(comparison, str) or comparison not in COMPARISONS:
        raise ValueError(f"comparison must be one of {listed(COMPARISONS)}, got {comparison!r}.")
    if not isinstance(reference, str) or reference not in COMPARISONS[comparison]:
        raise ValueError(f"reference must be 'pairwise' or 'overall', got {reference!r}.")
    return COMPARISONS[comparison][reference]


def first_of(sets: IntArray) -> IntArray:
    """Return the number of the first rate of each compared set."""
    return np.flatnonzero(np.diff(sets, prepend=-1))


def not_alone(sets: IntArray) -> IntArray:
    """Return the rates that are not the only one of their set."""
    return np.flatnonzero(np.bincount(sets)[sets] > 1) if sets.size else sets


def _each(names: Sequence[str]) -> sparse.csr_array:
    """Return the identity: one row for each rate, which is the rate itself."""
    return sparse.csr_array(sparse.eye_array(len(names), format="csr"))


def _at_most(
    limit: float, of_rates: sparse.csr_array, of_overall: sparse.csr_array, names: tuple[str, ...]
) -> Rows:
    """Return rows that have an upper bound only, and no centre."""
    n = len(names)
    below, above = np.full(n, -np.inf), np.full(n, limit)
    return Rows(of_rates, of_overall, np.full(n, -1), below, above, names)
