"""Comparisons of two rates: which groups are compared, and what each comparison shows.

:func:`pairs_of` makes the :class:`Pairs` of one rate from the sums of its cells: every two groups
of an attribute and stratum, or each group with a reference group or with all others. A pair answers
two questions by the tests of :mod:`skfair.groups.two_rates`: the p-value of "its signed disparity
is the limit or more" (:meth:`Pairs.at_least`), and the limit at which this p-value is small
(:meth:`Pairs.upper_ends`). With the sides exchanged (:meth:`Pairs.reversed`) the same answers are
about "the limit or less". The signed disparity of a pair is the first minus the second rate, or 1
minus their ratio with the sign of this difference.

Called by :mod:`skfair.groups.estimates`, tests (``metrics/evidence.py``) and reports.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skfair._typing import FloatArray, IntArray
from skfair.groups.compared_groups import ComparedGroups, Reference, is_group, ratios
from skfair.groups.rates import CellMeans
from skfair.groups.shared_units import SharedUnits
from skfair.groups.two_rates import both_ways, p_values_above, rest_of_peers
from skfair.utils.rounding import ROUNDING, TINY

# Ends of intervals are computed to this precision, in at most _MOST_STEPS steps. They mostly take
# seven, and with the bisections among them 60 are enough for any p-values.
_PRECISION, _MOST_STEPS = 1e-9, 60
# The second step of the search goes further than the formula says, by this many standard errors.
_BEYOND = 0.05
# P-values beyond this many standard errors are as good as 0 and 1 in the search for ends.
_FAR = 6.0


class Pairs(NamedTuple):
    """Comparisons of two rates; each array has one entry per comparison."""

    rate: NDArray[Any]  # the name of the rate
    first: NDArray[Any]  # the name of the group on the first side, and on the second
    second: NDArray[Any]
    k1: FloatArray  # hits and rows of the first side
    n1: FloatArray
    k0: FloatArray  # hits and rows of the second side
    n0: FloatArray
    # Factor of the difference: 1, or for reference="overall" the share of the others, see pairs_of
    share: FloatArray
    # Correlation of the two rates, and overlap of the two sides, see groups/shared_units.py. Both
    # are 0 unless units have rows on both sides
    correlation: FloatArray
    overlap: FloatArray

    def rates(self) -> tuple[FloatArray, FloatArray]:
        """Return the rate of each side; 0 for a side without rows."""
        return self.k1 / np.maximum(self.n1, TINY), self.k0 / np.maximum(self.n0, TINY)

    def disparities(self, is_ratio: bool) -> FloatArray:
        """Return the absolute difference of each comparison, or 1 minus its ratio."""
        first, second = self.rates()
        if is_ratio:
            return np.nan_to_num(1 - ratios(first, second))
        return self.share * np.abs(first - second)

    def signed(self, is_ratio: bool) -> FloatArray:
        """Return the disparity of each comparison with the sign of the difference."""
        first, second = self.rates()
        return np.sign(first - second) * self.disparities(is_ratio)

    def reversed(self) -> Pairs:
        """Return the comparisons with their sides exchanged."""
        return self._replace(
            first=self.second, second=self.first, k1=self.k0, n1=self.n0, k0=self.k1, n0=self.n1
        )

    def some(self, kept: IntArray) -> Pairs:
        """Return some of the comparisons."""
        return Pairs(*(own[kept] for own in self))

    def p_values(self, method: str, is_ratio: bool, limit: float) -> FloatArray:
        """Return the p-values of "the disparity is the limit or more", in either direction."""
        if limit <= 0:  # no data show that a difference is below 0
            return np.ones(self.share.size)
        # A disparity is at most ``share``, so larger limits hold for certain.
        p, at = np.zeros(self.share.size), self.share > limit
        k1, n1, k0, n0, share, *shared = (own[at] for own in self[3:])
        pairs = (shared[0], shared[1]) if self.overlap.any() else None
        p[at] = both_ways(method, k1, n1, k0, n0, limit / share, is_ratio, pairs)
        return p

    def at_least(self, method: str, is_ratio: bool, limits: FloatArray | float) -> FloatArray:
        """Return the p-values of "the signed disparity is the limit or more"."""
        t = np.broadcast_to(np.asarray(limits, np.float64), self.share.shape) / self.share
        p, inside = (t <= -1).astype(np.float64), np.abs(t) < 1
        t = t[inside]
        if is_ratio:  # the tests take limits on the first rate, in units of the second
            t = np.where(t < 0, t / (1 + np.minimum(t, 0.0)), t)
        k1, n1, k0, n0, _, *shared = (own[inside] for own in self[3:])
        pairs = (shared[0], shared[1]) if self.overlap.any() else None
        p[inside] = p_values_above(method, k1, n1, k0, n0, t, is_ratio, pairs)
        return p

    def upper_ends(self, method: str, is_ratio: bool, alpha: FloatArray | float) -> FloatArray:
        """Return the smallest limit of each comparison with a p-value of at most ``alpha``."""
        goal, size = special.ndtri(alpha), self.share.size

        def excess(limits: FloatArray) -> FloatArray:
            p = self.at_least(method, is_ratio, limits)
            return np.clip(special.ndtri(np.clip(p, 0.0, 1.0)) - goal, -_FAR, _FAR)

        # The normal quantile of a p-value is nearly a straight line in the limit. So the search
        # begins at the ends of a formula and one step along its line from there. False positions
        # follow. If the same end moves twice, the weight of the other one is halved (the Illinois
        # rule), and every fourth step is a bisection.
        low, high = -self.share, self.share.copy()
        at_low, at_high = np.full(size, _FAR), np.full(size, -_FAR)
        middle, errors = self.rough_ends(is_ratio, alpha)
        moved, value = np.zeros(size), np.zeros(size)
        for step in range(_MOST_STEPS):
            is_open = high - low > _PRECISION
            if not is_open.any():
                break
            if step == 1:  # a little too far, so that the end lies between both
                middle = middle + errors * (value + np.copysign(_BEYOND, value))
            elif step > 1:
                middle = high - at_high * (high - low) / np.minimum(at_high - at_low, -TINY)
            is_outside = (middle <= low) | (middle >= high)
            middle = np.where(is_outside | (step % 4 == 3), 0.5 * (low + high), middle)
            value = excess(middle)
            rises, falls = is_open & (value > 0), is_open & (value <= 0)
            at_high = np.where(rises & (moved == 1), 0.5 * at_high, at_high)
            at_low = np.where(falls & (moved == -1), 0.5 * at_low, at_low)
            low, at_low = np.where(rises, middle, low), np.where(rises, value, at_low)
            high, at_high = np.where(falls, middle, high), np.where(falls, value, at_high)
            moved = np.where(value > 0, 1, -1)
        return high

    def ends(self, method: str, is_ratio: bool, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of intervals of the signed disparities, with an error alpha each."""
        upper = self.upper_ends(method, is_ratio, alpha)
        return -self.reversed().upper_ends(method, is_ratio, alpha), upper

    def rough_ends(
        self, is_ratio: bool, alpha: FloatArray | float
    ) -> tuple[FloatArray, FloatArray]:
        """Return upper ends by a formula, from which exact ones are searched, and their errors."""
        first, second = self.rates()
        n1, n0 = np.maximum(self.n1, 1), np.maximum(self.n0, 1)
        variance = (first * (1 - first) + 0.25 / n1) / n1 + (second * (1 - second) + 0.25 / n0) / n0
        variance *= 1 - np.clip(self.correlation, 0.0, 0.9)
        unit = np.maximum(np.maximum(first, second), 0.05) if is_ratio else 1 / self.share
        errors = np.sqrt(variance) / unit
        return (first - second) / unit - special.ndtri(alpha) * errors, errors

    def columns(self) -> dict[str, Any]:
        """Return the columns of the table of comparisons."""
        rate_first, rate_second = self.rates()
        return {
            "rate": self.rate,
            "first": self.first,
            "second": self.second,
            "n_first": self.n1,
            "n_second": self.n0,
            "rate_first": rate_first,
            "rate_second": rate_second,
        }


def pairs_of(means: CellMeans, groups: ComparedGroups, rate: str, reference: Reference) -> Pairs:
    """Return the comparisons of the groups in one share: of pairs, or of a group and the rest.

    With ``reference="overall"`` a group of weight v is compared with all W of its stratum, itself
    included. Its rate r and the rate q of the other groups make the overall rate
    (v r + (W - v) q) / W, so r minus the overall rate is (1 - v / W) (r - q). The test is about
    r - q, of independent rows, and ``share`` is the factor 1 - v / W.
    """
    names, shared = np.array(groups.cells.names, dtype=object), means.shared
    if is_group(reference) or reference != "overall":
        return pairs_between(means, names, rate, *groups.pairs_with(reference))
    hits, sizes = hits_and_sizes(means)
    rates, weights = np.nan_to_num(means.means), means.weight
    rest_rate, rest_size, shares = rest_of_peers(rates, sizes, weights, groups.peer_sums)
    correlation = overlap = np.zeros(sizes.size)
    if shared is not None:
        correlation, overlap, rest_size = _with_rest(shared, means, groups, rest_size)
    first = groups.compared[rest_size[groups.compared] > 0]
    return Pairs(
        rate=np.full(first.size, rate),
        first=names[first],
        second=np.full(first.size, "rest", dtype=object),
        k1=hits[first],
        n1=sizes[first],
        k0=(rest_rate * rest_size)[first],
        n0=rest_size[first],
        share=shares[first],
        correlation=correlation[first],
        overlap=overlap[first],
    )


def pairs_between(
    means: CellMeans, names: NDArray[Any], rate: str, first: IntArray, second: IntArray
) -> Pairs:
    """Return the comparisons of pairs of cells in one share."""
    (hits, sizes), shared = hits_and_sizes(means), means.shared
    correlation = overlap = np.zeros(first.size)
    if shared is not None:
        correlation, overlap = shared.correlations(first, second), shared.overlap(first, second)
    return Pairs(
        rate=np.full(first.size, rate),
        first=names[first],
        second=names[second],
        k1=hits[first],
        n1=sizes[first],
        k0=hits[second],
        n0=sizes[second],
        share=np.ones(first.size),
        correlation=correlation,
        overlap=overlap,
    )


def _with_rest(
    shared: SharedUnits, means: CellMeans, groups: ComparedGroups, rest_size: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, by cell, the correlation and the overlap with its peers, and the size of the peers.

    ``rest_size`` is the size of the peers if no unit is in two of them, see ``rest_of_peers``.
    """
    every = np.arange(rest_size.size)
    first, second = np.meshgrid(every, every, indexing="ij")
    stratum = np.repeat(np.arange(groups.starts.size - 1), np.diff(groups.starts))
    are_peers = (stratum[first] == stratum[second]) & (first != second)
    # (n_cells, n_cells): weight, then share, of peer j (column) among all peers of cell i (row).
    parts = np.where(are_peers, means.weight, 0.0)
    parts /= np.maximum(parts.sum(axis=1, keepdims=True), TINY)
    rates, sizes = np.nan_to_num(means.means), np.maximum(means.n_effective, TINY)
    variances = rates * (1 - rates) / sizes
    joint = shared.correlations(first, second) * np.sqrt(np.outer(variances, variances))
    of_rest = ((parts @ joint) * parts).sum(axis=1)
    alone = parts**2 @ variances  # the same without what peers have in common
    both = np.sqrt(variances * of_rest)
    correlation = (parts * joint).sum(axis=1) / np.where(both > 0, both, 1.0)
    overlap = (parts * shared.overlap(first, second)).sum(axis=1)
    is_spread = of_rest > ROUNDING * alone
    size = rest_size * np.where(is_spread, alone / np.where(is_spread, of_rest, 1.0), 1.0)
    return np.clip(correlation, -1.0, 1.0), overlap, size


def hits_and_sizes(means: CellMeans) -> tuple[FloatArray, FloatArray]:
    """Return the effective numbers of hits and of rows of a rate in each cell."""
    return np.nan_to_num(means.means) * means.n_effective, means.n_effective
