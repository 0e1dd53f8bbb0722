"""Comparisons of groups: rows for a solver, and the number that a limit bounds.

The rates of an attribute, within a class or a stratum, are a *compared set*. A comparison says
which linear rows keep the disparity of a set within a limit (:meth:`Comparison.rows`), and how
large the disparity is, even if each rate is only known to lie in an interval
(:meth:`Comparison.least`). The threshold scan compiles the same formulas, by ``code``.

- :class:`Pairwise`, :class:`Overall`: differences between groups, or from the rate of all rows.
- :class:`Ratio`, :class:`OverallRatio`: 1 minus the smaller rate over the larger one. A ratio of at
  least ``r`` is ``r * larger - smaller <= 0``, which is linear.
- :class:`Bounded`: the largest rate itself, without a comparison.
- :class:`Excess`, :class:`MeanExcess`: the largest or the mean excess of the rates over the rate of
  all rows. Rates below it are not limited.
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
    """Rows of a constraint: what is kept between bounds, as combinations of rates."""

    # (n_rows, n_rates): factors of the rates, and of the overall rate that each of them is
    # compared with
    of_rates: sparse.csr_array
    of_overall: sparse.csr_array
    centers: IntArray  # (n_rows,): the centre that a row is measured from; -1 for none
    # (n_rows,): bounds
    lower: FloatArray
    upper: FloatArray
    row_names: tuple[str, ...]  # what each row compares


class Comparison(ABC):
    """How rates become one number, the disparity."""

    code: ClassVar[int] = 0  # for the threshold scan: difference, ratio, largest rate
    # Whether each rate is compared with the overall one instead of with the others
    against_overall: ClassVar[bool] = False
    # Whether a limit says that all rates of a compared set lie in a window of this length, wherever
    # it is, or that none is above it
    is_window: ClassVar[bool] = False
    is_cap: ClassVar[bool] = False
    # Whether a rate that is the only one of its set makes a row of its own, unless it is left out
    counts_lone: ClassVar[bool] = False
    # Ending of the names of metrics that compare so; None if they are named otherwise
    suffix: ClassVar[str | None] = "_difference"

    @abstractmethod
    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return rows that are within their bounds exactly if the disparity is within the limit.

        ``sets`` holds the compared set of each rate, in rising order, and ``names`` its name.
        """

    @abstractmethod
    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the disparity of two rates, the smaller first; 0 if it is the larger one."""

    def least(
        self,
        rates: tuple[FloatArray, FloatArray],
        overall: tuple[FloatArray, FloatArray],
        sets: IntArray,
    ) -> FloatArray:
        """Return the least disparity of rates that lie between bounds (which may be equal).

        ``rates`` and ``overall`` are lower and upper bounds, of shape (n_rates, ...).
        """
        (low, high), (low_overall, high_overall) = rates, overall
        first = first_of(sets)
        if not first.size:
            return np.zeros(low.shape[1:])
        smallest = np.minimum.reduceat(high, first)
        largest = np.maximum.reduceat(low, first)
        if self.against_overall:
            below = self.gap(smallest, low_overall[first])
            above = self.gap(high_overall[first], largest)
            return np.asarray(np.maximum(below, above).max(axis=0))
        return np.asarray(self.gap(smallest, largest).max(axis=0))

    def by_group(self, rates: FloatArray, overall: FloatArray) -> FloatArray:
        """Return what is reported of each group: its rate minus the overall one."""
        return rates - overall

    def disparity_of_metric(self, value: float) -> float:
        """Return the disparity, given the value of the metric that measures the constraint."""
        return value


@dataclass(frozen=True)
class Pairwise(Comparison):
    """The largest minus the smallest rate of a compared set.

    More than two rates of a set are measured from a *centre*, a parameter of the problem: all
    lie within half the limit of it. So J groups cost J rows instead of J (J - 1) / 2.
    """

    is_window = True

    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return the difference."""
        return np.maximum(high - low, 0.0)

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return the difference of two rates, or the distances of more from their centre."""
        sizes = np.bincount(sets)
        first = first_of(sets)
        pairs = first[sizes == 2]
        members = np.flatnonzero(sizes[sets] > 2)
        position = np.cumsum(sizes > 2) - 1
        n_rows = pairs.size + members.size
        signs = np.repeat([-1.0, 1.0], [pairs.size, n_rows])
        at = np.append(np.arange(pairs.size), np.arange(n_rows)), [*pairs, *(pairs + 1), *members]
        of_rates = sparse.csr_array((signs, at), shape=(n_rows, len(names)))
        upper = np.repeat([limit, 0.5 * limit], [pairs.size, members.size])
        centers = np.concatenate([np.full(pairs.size, -1), position[sets[members]]])
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

    Each ordered pair of rates is a row. Rates of 0 and 0 are equal.
    """

    code = 1
    suffix = "_ratio"

    def gap(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return 1 minus the ratio."""
        divisor = np.where(high > ROUNDING, high, 1.0)
        missing = 1.0 - np.clip(low, 0.0, None) / divisor
        return np.where(high > ROUNDING, np.maximum(missing, 0.0), 0.0)

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return (1 - limit) times a rate minus another one of its set, at most 0."""
        members = np.split(np.arange(sets.size), first_of(sets)[1:])
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
        """Return (1 - limit) times one minus the other, of each rate and the overall one."""
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
    """The mean over the rates of their excess over the overall one, (18) of plada: one row."""

    is_mean = True

    def rows(self, sets: IntArray, names: Sequence[str], limit: float) -> Rows:
        """Return the mean of the rates minus that of the overall ones."""
        n = len(names)
        own = sparse.csr_array(np.full((min(n, 1), n), 1 / max(n, 1)))
        return _at_most(limit, own, -own, ("mean of groups - overall",) if n else ())


# The words of users -> the comparison, and the rate that a group is compared with.
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
    return sparse.csr_array(sparse.eye_array(len(names), format="csr"))


def _at_most(
    limit: float, of_rates: sparse.csr_array, of_overall: sparse.csr_array, names: tuple[str, ...]
) -> Rows:
    """Return rows that have an upper bound only, and no centre."""
    n = len(names)
    below, above = np.full(n, -np.inf), np.full(n, limit)
    return Rows(of_rates, of_overall, np.full(n, -1), below, above, names)
