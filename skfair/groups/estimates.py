"""One estimate of how far apart the rates of groups are: its interval, tests and bounds.

An :class:`Estimate` is the largest disparity of a population over pairs of groups and rates: the
largest difference, or 1 minus the smallest ratio. All that it says follows from two p-values of
each pair (:class:`~skfair.groups.compared_rates.Pairs`), so interval, test and bound never
contradict each other. With the signed disparity D of a pair they are the p-values of "D is t or
more" and of "D is t or less".

- *Upper end*: the largest disparity reaches a limit only if that of some pair does. Each pair must
  reject (an intersection-union test), so the largest p-value counts, and levels are not divided.
  The upper end of the interval is the largest upper end of a pair.
- *Lower end*: the largest disparity is at most a limit only if that of every pair is. One pair
  suffices to reject, so its p-value is corrected for the number of pairs: by the range of k normal
  numbers for all pairs of k groups (Tukey and Kramer), summed over rates, attributes and strata.
  The lower end is the largest lower end of a pair at the level that this correction leaves.

``interval(c)`` has the error (1 - c) / 2 on each side, and ``upper_bound(c)`` has 1 - c. Neither
simulates, so there is no seed. Only ``draws`` does. Reports and tests (``metrics/reports.py``,
``metrics/evidence.py``) make estimates, and users get them of ``skfair.Cohort``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import special
from scipy.optimize import brentq

from skfair._typing import FloatArray, Seed
from skfair.groups.compared_groups import ComparedGroups, Reference, is_group, ratios
from skfair.groups.compared_rates import Pairs, pairs_of
from skfair.groups.declared_rates import rate_named, spoken_rate
from skfair.groups.rates import CellMeans
from skfair.groups.table import GroupTable
from skfair.groups.two_rates import check_method, smallest_limit

if TYPE_CHECKING:
    import pandas as pd

# Extreme ends are searched for among this many pairs, those with the largest rough ends.
_N_SEARCHED = 1000
# The nodes of the integral over the smallest of k normal numbers, and its range.
_N_NODES, _WIDEST = 200, 9.0
# With p-values of a pair below this, the range of k normal numbers is the sum over pairs.
_RARE = 1e-9
# A pair is more extreme than an end if its p-value there differs from alpha by more than this.
_PRECISE = 1e-7


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """How far apart the rates of groups are in the population.

    :meth:`skfair.Cohort.difference` and :meth:`skfair.Cohort.ratio` make it. Printing it shows the
    worst pair of groups, its interval, and the p-value of the hypothesis that no groups differ.

    Attributes
    ----------
    value : float
        The disparity of the sample: the largest difference, or the smallest ratio. It is NaN if a
        rate is undefined. With a reference group and a single pair, differences are signed.
    pairs : Pairs
        The comparisons, which :meth:`frame` lists.

    See Also
    --------
    skfair.Cohort : Makes estimates.
    skfair.metrics.disparity_test : Tests a limit on a disparity.

    Examples
    --------
    >>> import skfair
    >>> sex, invited = ["f", "m"] * 500, [1, 1, 1, 0] * 250
    >>> gap = skfair.Cohort(y_pred=invited, sensitive_features=sex).difference("selection_rate")
    >>> gap
    selection rate: 100.0% (f) against 50.0% (m): a difference of 50.0 points [45.3, 54.5], p < .001
    >>> gap.p_value(0.6) < 0.05 < gap.p_value(0.53)  # is it below a limit?
    True
    """

    means: tuple[CellMeans, ...]  # each is a share of every cell
    rates: tuple[str, ...]  # the names of the shares
    groups: ComparedGroups
    kind: Literal["difference", "ratio"]
    reference: Reference = "pairwise"
    method: str = "melded"  # the test of two rates, see groups/two_rates.py
    # Whether pairs with an undefined share are left out. If not, nothing is known of the largest
    # disparity if there is one
    only_known: bool = False
    table: GroupTable | None = None  # the outcomes from which the shares are, for ``draws``

    @classmethod
    def of(
        cls,
        table: GroupTable,
        kind: Literal["difference", "ratio"],
        rates: tuple[str, ...],
        reference: Reference = "pairwise",
        method: str = "melded",
    ) -> Estimate:
        """Estimate from a table of outcomes; raise for what has no test."""
        check_method(method)
        if kind == "ratio" and not is_group(reference) and reference == "overall":
            raise ValueError(
                "Ratios to the overall rate have no test here. Use reference='pairwise', or a "
                "difference."
            )
        means = tuple(table.means(rate) for rate in rates)
        return cls(means, rates, table.groups, kind, reference, method, table=table)

    @property
    def is_ratio(self) -> bool:
        """Whether the value is a ratio, so that 1 is parity and smaller values are worse."""
        return self.kind == "ratio"

    @cached_property
    def pairs(self) -> Pairs:
        """The comparisons of all rates."""
        named = zip(self.means, self.rates, strict=True)
        parts = [pairs_of(own, self.groups, rate, self.reference) for own, rate in named]
        pairs = _joined(parts)
        if not self.only_known:
            return pairs
        return pairs.some(np.flatnonzero((pairs.n1 > 0) & (pairs.n0 > 0)))

    @cached_property
    def is_signed(self) -> bool:
        """Whether the value is the signed difference of a single pair."""
        return is_group(self.reference) and not self.is_ratio and self.pairs.share.size == 1

    @cached_property
    def value(self) -> float:
        """The disparity of the sample; NaN if a rate is undefined, or nothing is compared."""
        pairs = self.pairs
        if not (pairs.share.size and (pairs.n1 > 0).all() and (pairs.n0 > 0).all()):
            return np.nan
        if self.is_ratio:
            return float(ratios(*pairs.rates()).min())  # NaN if nobody is selected in two groups
        signed = pairs.signed(is_ratio=False)
        worst = float(signed[np.abs(signed).argmax()])
        return worst if is_group(self.reference) else abs(worst)

    def p_value(self, limit: float, shows: Literal["below", "above"] = "below") -> float:
        """Return the p-value of the hypothesis that the data are to reject.

        Parameters
        ----------
        limit : float
            The limit on the difference, or on the ratio.
        shows : {"below", "above"}, default="below"
            With "below" the hypothesis is "the disparity reaches the limit", so a small p-value
            shows that the limit is kept. With "above" it is "the disparity is at most the limit".

        Returns
        -------
        p : float
            The p-value.
        """
        pairs, how = self.pairs, (self.method, self.is_ratio)
        if not pairs.share.size:
            return 1.0
        apart = 1 - limit if self.is_ratio else limit
        if self.is_signed:
            way = pairs if shows == "below" else pairs.reversed()
            return float(way.at_least(*how, apart if shows == "below" else -apart)[0])
        if shows == "below":
            return float(pairs.p_values(*how, apart).max())
        if not 0 <= apart < 1:  # no disparity is below 0, and each is at most 1
            return float(apart >= 1)
        p = min(float(way.at_least(*how, -apart).min()) for way in (pairs, pairs.reversed()))
        return _of_all_pairs(self._families, p)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of the value, with the error (1 - confidence) / 2 on each side.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the interval.

        Returns
        -------
        low, high : float
            The ends, which are NaN if nothing is compared.
        """
        return intervals([self], confidence)[0]

    def _searches(self, alpha: float) -> tuple[_Search, _Search]:
        """Return the searches for both ends of the interval, as disparities: upper, lower."""
        pairs = self.pairs
        if self.is_signed:
            return _Search(pairs, alpha, 1), _Search(pairs.reversed(), alpha, 1)
        level = min(_level_of_pair(self._families, alpha), 0.5)
        return self._search(alpha, 1), self._search(level, -1)

    def _search(self, alpha: float, sign: int) -> _Search:
        """Return the search among the pairs in both directions with the most extreme rough ends."""
        both = _joined([self.pairs, self.pairs.reversed()])
        rough = sign * both.rough_ends(self.is_ratio, alpha)[0]
        return _Search(both.some(np.argsort(-rough, kind="stable")[:_N_SEARCHED]), alpha, sign)

    def _interval_of(self, upper: float, lower: float) -> tuple[float, float]:
        """Return the interval in the unit of the value, from the ends that were searched."""
        if self.is_signed:
            return -lower, upper
        smallest, largest = max(-lower, 0.0), min(upper, 1.0)
        if self.is_ratio:
            return 1 - largest, 1 - smallest
        return (-largest, -smallest) if self.value < 0 else (smallest, largest)

    def upper_bound(self, confidence: float = 0.95) -> float:
        """Return the smallest limit on the disparity (1 minus a ratio) that the data show.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence of the bound.

        Returns
        -------
        bound : float
            The bound, as of :func:`~skfair.metrics.disparity_upper_bound`.
        """
        return smallest_limit(
            lambda apart: self.p_value(1 - apart if self.is_ratio else apart), 1 - confidence
        )

    def frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return a row for each pair, with its own interval and the one of all pairs together.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        pairs : DataFrame
            The rates of both groups, their difference or disparity, and both intervals. All
            simultaneous ones together hold with the given confidence.
        """
        import pandas as pd

        alpha, how = 0.5 - confidence / 2, (self.method, self.is_ratio)
        columns = self.pairs.columns() | {self.kind: self.pairs.signed(self.is_ratio)}
        columns["low"], columns["high"] = self.pairs.ends(*how, alpha)
        together = self.pairs.ends(*how, _level_of_pair(self._families, alpha))
        columns["low_simultaneous"], columns["high_simultaneous"] = together
        return pd.DataFrame(columns)

    def draws(self, n_draws: int = 1000, random_state: Seed = 0) -> FloatArray:
        """Draw the value of samples like this one, by the bootstrap.

        Parameters
        ----------
        n_draws : int, default=1000
            Number of resamples of the rows, or of the units.
        random_state : int, RandomState instance or None, default=0
            Seed of the resamples.

        Returns
        -------
        values : ndarray of shape (n_draws,)
            The value of each resample, NaN if it is undefined. A resample adds its own noise, so
            the largest of several gaps is usually too large. Intervals are not made of them.
        """
        if self.table is None:
            raise TypeError("draws needs a table of outcomes, and this estimate has none.")
        drawn = self.table.resampled(n_draws, random_state).swapaxes(0, 1)
        tables = (replace(self.table, sums={"weights": own}) for own in drawn)
        how: Any = self.kind, self.rates, self.reference, "worst", np.nan
        return np.array([table.compare(*how) for table in tables])

    def __repr__(self) -> str:
        pairs = self.pairs
        if not pairs.share.size:
            return "nothing to compare"
        if np.isnan(self.value):
            return f"{spoken_rate(self.rates[0])}: undefined in a group, so no value is known"
        at = int(pairs.disparities(self.is_ratio).argmax())
        rate, is_percent = str(pairs.rate[at]), rate_named(str(pairs.rate[at])).is_mean
        names_of = pairs.first, pairs.second
        ends = [(float(r[at]), names[at]) for r, names in zip(pairs.rates(), names_of, strict=True)]
        if not is_group(self.reference) and self.reference == "overall":  # tested against the rest
            ends[1] = ends[0][0] - float(pairs.signed(is_ratio=False)[at]), "overall"
        first, second = (
            f"{f'{100 * r:.1f}%' if is_percent else f'{r:.3f}'} ({name})" for r, name in ends
        )
        is_points = is_percent and not self.is_ratio
        value, low, high = (
            f"{100 * x:.1f}" if is_points else f"{x:.3f}" for x in (self.value, *self.interval())
        )
        shown = f"{value}{' points' * is_points} [{low}, {high}]"
        return (
            f"{spoken_rate(rate)}: {first} against {second}: a {self.kind} of {shown}, "
            f"{_p_text(self._p_of_none())}"
        )

    def _p_of_none(self) -> float:
        """Return the p-value of "no groups differ". Below .05 the interval excludes parity."""
        parity = float(self.is_ratio)
        p = self.p_value(parity, "above")
        return min(2 * (min(p, self.p_value(parity)) if self.is_signed else p), 1.0)

    @property
    def _families(self) -> tuple[tuple[int, int], ...]:
        """The number of pairs in each attribute, stratum and rate, and of groups they compare.

        The number of groups is 0 if groups are not compared pair by pair.
        """
        if is_group(self.reference) or self.reference == "overall":
            return ((self.pairs.share.size, 0),)
        present = self.groups.is_present
        sizes = [int(present[a:b].sum()) for a, b in pairwise(self.groups.starts.tolist())]
        return tuple((k * (k - 1) // 2, k) for k in sizes if k > 1) * len(self.rates)


def intervals(estimates: Sequence[Estimate], confidence: float) -> list[tuple[float, float]]:
    """Return the interval of each estimate; together they take a fraction of the time."""
    alpha, found = 0.5 - confidence / 2, [(np.nan, np.nan)] * len(estimates)
    kinds = {(own.method, own.is_ratio) for own in estimates}
    for method, is_ratio in kinds:
        places = [
            i
            for i, own in enumerate(estimates)
            if (own.method, own.is_ratio) == (method, is_ratio) and own.pairs.share.size
        ]
        searches = [search for i in places for search in estimates[i]._searches(alpha)]
        ends = _extreme_ends(searches, method, is_ratio)
        for i, upper, lower in zip(places, ends[::2], ends[1::2], strict=True):
            found[i] = estimates[i]._interval_of(upper, lower)
    return found


class _Search(NamedTuple):
    """A search for the largest upper end of some pairs, or for the smallest if the sign is -1."""

    pairs: Pairs  # the most extreme ones first, by a formula
    alpha: float
    sign: int


def _extreme_ends(searches: list[_Search], method: str, is_ratio: bool) -> list[float]:
    """Return the end of each search.

    The end of the first pair is computed first. If another pair is more extreme there, the end of
    that pair is computed next, until none is. All searches take their steps together.
    """
    ends, best = [np.nan] * len(searches), [0] * len(searches)
    going = list(range(len(searches)))
    while going:
        parts = [searches[i].pairs.some(np.array([best[i]])) for i in going]
        alphas = np.array([searches[i].alpha for i in going])
        found = _joined(parts).upper_ends(method, is_ratio, alphas).tolist()
        sizes = [searches[i].pairs.share.size for i in going]
        limits = np.repeat(found, sizes)
        p_values = _joined([searches[i].pairs for i in going]).at_least(method, is_ratio, limits)
        still = []
        of_searches = np.split(p_values, np.cumsum(sizes)[:-1])
        for i, end, own in zip(going, found, of_searches, strict=True):
            ends[i] = end
            excess = searches[i].sign * (own - searches[i].alpha)
            excess[best[i]] = 0.0
            best[i] = int(excess.argmax())
            if excess[best[i]] > _PRECISE:
                still.append(i)
        going = still
    return ends


def _p_text(p_value: float) -> str:
    return "p < .001" if p_value < 0.001 else f"p = {p_value:.3f}".replace("0.", ".")


def _joined(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def _of_all_pairs(families: tuple[tuple[int, int], ...], p_value: float) -> float:
    """Return the p-value of the most extreme of all pairs from its own one, in either direction."""
    if sum(n_pairs for n_pairs, _ in families) == 1:
        return p_value  # with two directions, half of the error is on the other side
    if not 0 < p_value < 0.5:
        return min(2 * p_value, 1.0)
    return min(_chance(families, -special.ndtri(p_value)), 1.0)


def _chance(families: tuple[tuple[int, int], ...], z: float) -> float:
    """Return the chance that a pair is ``z`` standard errors apart in one of its two directions.

    Half of it is the error of a side if there is one pair. For k groups that are compared pair by
    pair it is the distribution of the range of k normal numbers (Tukey and Kramer).
    """
    single, total = float(special.ndtr(-z)), 0.0
    for n_pairs, n_groups in families:
        of_pairs = n_pairs * single
        if n_groups > 2 and of_pairs > _RARE:
            x, weights = _nodes()
            inside = special.ndtr(x) - special.ndtr(x - np.sqrt(2.0) * z)
            density = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)
            is_within = n_groups * float(weights @ (density * inside ** (n_groups - 1)))
            of_pairs = min(of_pairs, 0.5 * (1 - is_within))
        total += of_pairs
    return total


@cache
def _level_of_pair(families: tuple[tuple[int, int], ...], level: float) -> float:
    """Return the level of each pair at which all pairs together have ``level``."""
    if sum(n_pairs for n_pairs, _ in families) <= 1:
        return level
    z = brentq(lambda z: _chance(families, z) - level, 0.0, 40.0, xtol=1e-12)
    return float(special.ndtr(-z))


@cache
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of the integral over the smallest of k normal numbers."""
    nodes, weights = np.polynomial.legendre.leggauss(_N_NODES)
    return _WIDEST * nodes, _WIDEST * weights
