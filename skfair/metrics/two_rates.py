"""Tests of two rates: whether data show that they differ by less than a limit.

Every function returns the p-value of "the first rate exceeds the second by the limit or more", for
arrays of pairs at once. A small one shows that the difference is smaller. As a ratio the limit is
1 minus the second rate over the first, so 0.2 is the 80% rule.

- :func:`melded`: confidence distributions of both rates put together (Fay, Proschan and Brittain,
  2015): ``p = P(U - L >= limit)``, ``U ~ Beta(k1 + 1, n1 - k1)``, ``L ~ Beta(k0, n0 - k0 + 1)``.
- :func:`score`: the statistic of Farrington and Manning (1990), taken as normal; the fastest.
- :func:`exact`: the same statistic, its distribution counted for the least favourable rates.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from scipy import special, stats
from scipy.optimize import brentq

from skfair._typing import BoolArray, FloatArray
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING, TINY

Numbers: TypeAlias = FloatArray | float
PairTest: TypeAlias = Callable[[Numbers, Numbers, Numbers, Numbers, Numbers], FloatArray]


@cache
def legendre(n: int) -> tuple[FloatArray, FloatArray]:
    """Return n nodes from 0 to 1 and their factors, for integrals; made when they are needed."""
    at, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (at + 1), 0.5 * weights


@cache
def _bunched(n: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes from 0 to 1, bunched at both ends by u^2 (3 - 2 u), and their factors."""
    u, factors = legendre(n)
    return u**2 * (3 - 2 * u), 6 * u * (1 - u) * factors


# Nodes of the integral, and what is cut off at its ends. Errors of p-values are below 1e-9 with
# many nodes, and below 1e-6 with few (of 80,000 pairs of 5 to 20,000 rows; 99% below 3e-8).
_MANY_NODES, _FEW_NODES = 96, 40
_TAIL, _ROUGH_TAIL = 1e-12, 1e-8
# From one node to the next a distribution function grows by the integral of its density: of three
# places between the two.
_PLACES = 3
# The exact test counts this many tables at most, at so many rates on the edge of the hypothesis.
MOST_TABLES, _N_EDGE = 250_000, 400


def melded(
    k1: Numbers,
    n1: Numbers,
    k0: Numbers,
    n0: Numbers,
    limit: Numbers,
    ratio: bool,
    *,
    quick: bool = False,
) -> FloatArray:
    """Return the p-values of the melded test; counts may be fractional (effective sizes).

    The ``quick`` ones take about a third of the time and have six correct decimals.
    """
    n_nodes, tail = (_FEW_NODES, _ROUGH_TAIL) if quick else (_MANY_NODES, _TAIL)
    k1, n1, k0, n0, limits = _flat(k1, n1, k0, n0, limit)
    p = np.ones(k1.size)
    is_known = (n1 > 0) & (n0 > 0)
    # Weighted rates are 0 and 1 up to rounding.
    top, bottom = k1 >= n1 * (1 - SUM_ROUNDING), k0 <= n0 * SUM_ROUNDING
    # The density of a fractional count below 1 is too steep for the integral, so it runs over the
    # other one. Where both are, 0 stands for the second rate: it makes p larger, by a little.
    is_steep, is_steep_too = n1 - k1 < 1, k0 < 1
    bottom |= is_steep & is_steep_too & ~top
    only_low = is_known & top & ~bottom  # U is 1
    p[only_low] = special.betainc(
        k0[only_low], (n0 - k0)[only_low] + 1, _below(1.0, limits[only_low], ratio)
    )
    only_high = is_known & bottom & ~top  # L is 0
    p[only_high] = special.betaincc(
        k1[only_high] + 1, (n1 - k1)[only_high], _above(0.0, limits[only_high], ratio)
    )
    rest = np.flatnonzero(is_known & ~top & ~bottom)
    upper = k1[rest] + 1, (n1 - k1)[rest]
    lower = k0[rest], (n0 - k0)[rest] + 1
    # Else it runs over the narrower of the two, along which the other one is smooth. For a ratio
    # the second rate is compared with so much of the first.
    is_steep, is_steep_too = is_steep[rest], is_steep_too[rest]
    is_smooth = ~(is_steep | is_steep_too)
    factor = 1 - limits[rest] if ratio else 1.0
    is_narrower = factor**2 * _variance(*upper) < _variance(*lower)
    over_first = np.where(is_smooth, is_narrower, is_steep_too)
    if not ratio:  # 1 minus the rates, the other way round, differ by as much
        (a1, b1), (a0, b0) = upper, lower
        upper = np.where(over_first, a1, b0), np.where(over_first, b1, a0)
        lower = np.where(over_first, a0, b1), np.where(over_first, b0, a1)
        over_first = np.ones_like(over_first)
    adds_up = is_smooth if quick else np.zeros_like(is_smooth)
    for is_first, is_sum in itertools.product((True, False), repeat=2):
        is_chosen = (over_first == is_first) & (adds_up == is_sum)
        if is_chosen.any():
            at = rest[is_chosen]
            first, second = [tuple(part[is_chosen] for part in pair) for pair in (upper, lower)]
            parts = first, second, limits[at][:, None]
            p[at] = _integral(*parts, ratio, is_first, is_sum, tail, *_bunched(n_nodes))
    return np.clip(p, 0.0, 1.0)


def _variance(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.asarray(a * b / ((a + b) ** 2 * (a + b + 1)))


def _density(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    x = np.clip(x, TINY, 1 - 1e-16)
    return np.asarray(np.exp((a - 1) * np.log(x) + (b - 1) * np.log(1 - x) - special.betaln(a, b)))


def _along(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """Return Beta distribution functions at points in order: the first, and what each adds."""
    step = np.diff(x, axis=1)
    places, factors = legendre(_PLACES)
    between = x[:, :-1, None] + step[:, :, None] * places
    heights = np.empty_like(x)
    heights[:, :1] = special.betainc(a, b, x[:, :1])
    grown = (_density(a[:, :, None], b[:, :, None], between) @ factors) * step
    heights[:, 1:] = heights[:, :1] + np.cumsum(grown, axis=1)
    return heights


def _integral(
    upper: tuple[FloatArray, ...],
    lower: tuple[FloatArray, ...],
    limits: FloatArray,
    ratio: bool,
    over_upper: bool,
    adds_up: bool,
    tail: float,
    nodes: FloatArray,
    factors: FloatArray,
) -> FloatArray:
    a, b = upper if over_upper else lower
    low, high = special.betaincinv(a, b, tail), special.betaincinv(a, b, 1 - tail)
    # Where the other one has no more room the integrand is 0, and may begin with a jump.
    if over_upper:
        low = low if ratio else np.clip(limits[:, 0], low, high)
    else:
        high = np.clip(1 - limits[:, 0], low, high)
    x = low[:, None] + (high - low)[:, None] * nodes
    distribution = _along if adds_up else special.betainc
    if over_upper:
        a0, b0 = (q[:, None] for q in lower)
        other = distribution(a0, b0, _below(x, limits, ratio))
    else:
        a1, b1 = (q[:, None] for q in upper)
        other = distribution(b1, a1, 1 - _above(x, limits, ratio))
    density = _density(a[:, None], b[:, None], x)
    return np.asarray((density * other) @ factors * (high - low))


def _below(upper: FloatArray | float, limit: FloatArray, ratio: bool) -> FloatArray:
    """Return the largest second rate that is the limit or more below the first."""
    return np.clip(upper * (1 - limit) if ratio else upper - limit, 0.0, 1.0)


def _above(lower: FloatArray | float, limit: FloatArray, ratio: bool) -> FloatArray:
    """Return the smallest first rate that is the limit or more above the second."""
    if ratio:
        return np.clip(lower / np.maximum(1 - limit, TINY), 0.0, 1.0)
    return np.clip(lower + limit, 0.0, 1.0)


def score(
    k1: Numbers, n1: Numbers, k0: Numbers, n0: Numbers, limit: Numbers, ratio: bool
) -> FloatArray:
    """Return the p-values of the score test."""
    k1, n1, k0, n0, limits = _flat(k1, n1, k0, n0, limit)
    is_known = (n1 > 0) & (n0 > 0)
    z = score_statistic(
        k1, np.where(is_known, n1, 1.0), k0, np.where(is_known, n0, 1.0), limits, ratio
    )
    return np.where(is_known, stats.norm.cdf(z), 1.0)


def score_statistic(
    k1: FloatArray, n1: FloatArray, k0: FloatArray, n0: FloatArray, limits: FloatArray, ratio: bool
) -> FloatArray:
    """Return the score statistics; the smaller, the more the data speak for less than the limit."""
    first, second = edge_rates(k1, n1, k0, n0, limits, ratio)
    factor = 1 - limits if ratio else np.ones_like(limits)
    missed = factor * k1 / n1 - k0 / n0 - (0.0 if ratio else limits)
    variance = factor**2 * first * (1 - first) / n1 + second * (1 - second) / n0
    with np.errstate(invalid="ignore", divide="ignore"):
        z = missed / np.sqrt(variance)
    return np.where(variance > 1e-15, z, np.where(missed < -ROUNDING, -np.inf, np.inf))


def edge_rates(
    k1: FloatArray, n1: FloatArray, k0: FloatArray, n0: FloatArray, limits: FloatArray, ratio: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the likeliest rates that differ by the limit exactly."""
    total, successes = n1 + n0, k1 + k0
    if ratio:
        factor = 1 - limits
        half = -(n0 * factor + k0 + n1 + k1 * factor)
        root = np.sqrt(np.maximum(half**2 - 4 * total * factor * successes, 0.0))
        first = np.where(
            factor > ROUNDING, (-half - root) / np.maximum(2 * total * factor, TINY), k1 / n1
        )
        first = np.clip(first, 0.0, 1.0)
        return first, factor * first
    # The cubic of Farrington and Manning, solved by angles.
    c2 = (n1 + 2 * n0) * limits - total - successes
    c1 = (n0 * limits - total - 2 * k0) * limits + successes
    c0 = k0 * limits * (1 - limits)
    third = c2 / (3 * total)
    q = third**3 - c1 * c2 / (6 * total**2) + c0 / (2 * total)
    size = np.sqrt(np.maximum(third**2 - c1 / (3 * total), 0.0)) * np.where(q >= 0, 1.0, -1.0)
    cosine = q / np.where(size != 0, size**3, 1.0)
    angle = (np.pi + np.arccos(np.clip(cosine, -1.0, 1.0))) / 3
    second = np.clip(2 * size * np.cos(angle) - third, 0.0, np.maximum(1 - limits, 0.0))
    return np.minimum(second + limits, 1.0), second


def exact(
    k1: Numbers, n1: Numbers, k0: Numbers, n0: Numbers, limit: Numbers, ratio: bool
) -> FloatArray:
    """Return the p-values that count every table, at the least favourable rates."""
    k1, n1, k0, n0, limits = _flat(k1, n1, k0, n0, limit)
    p = np.ones(k1.size)
    for i in np.flatnonzero((n1 > 0) & (n0 > 0)).tolist():
        hits, sizes = (round(k1[i]), round(k0[i])), (round(n1[i]), round(n0[i]))
        if (sizes[0] + 1) * (sizes[1] + 1) > MOST_TABLES:
            raise ValueError(
                f"method='exact' counts every table of two groups, but {sizes[0]} and {sizes[1]} "
                "rows have more than it can count. Use method='melded'."
            )
        statistic = exact_statistic(*sizes, limits[i], ratio)
        as_far = statistic <= statistic[hits] + SUM_ROUNDING
        p[i] = rejection_rate(as_far, *sizes, limits[i], ratio).max()
    return p


def exact_statistic(n1: int, n0: int, limit: float, ratio: bool) -> FloatArray:
    """Return the score statistic of every table, shape (n1 + 1, n0 + 1)."""
    first, second = np.meshgrid(np.arange(n1 + 1.0), np.arange(n0 + 1.0), indexing="ij")
    k1, size1, k0, size0, limits = _flat(first.ravel(), n1, second.ravel(), n0, limit)
    flat = score_statistic(k1, size1, k0, size0, limits, ratio)
    return flat.reshape(n1 + 1, n0 + 1)


def rejection_rate(
    rejected: BoolArray, n1: int, n0: int, limit: float, ratio: bool, n_edge: int = _N_EDGE
) -> FloatArray:
    """Return the chance of a set of tables, at rates that differ by the limit exactly."""
    first = np.linspace(0.0 if ratio else limit, 1.0, n_edge + 1)
    second = first * (1 - limit) if ratio else np.clip(first - limit, 0.0, 1.0)
    of_first = stats.binom.pmf(np.arange(n1 + 1), n1, first[:, None])
    of_second = stats.binom.pmf(np.arange(n0 + 1), n0, second[:, None])
    return np.asarray(((of_first @ rejected.astype(np.float64)) * of_second).sum(axis=1))


_TESTS = {"melded": melded, "exact": exact, "score": score}


def pair_test(method: str, comparison: str) -> PairTest:
    """Return a test by name, for differences or ratios."""
    ratio, test = comparison == "ratio", _TESTS[method]
    return lambda k1, n1, k0, n0, limit: test(k1, n1, k0, n0, limit, ratio)


def both_ways(
    test: PairTest, k1: Numbers, n1: Numbers, k0: Numbers, n0: Numbers, limit: Numbers
) -> FloatArray:
    """Return the p-values of "the rates differ by the limit or more, whichever is larger"."""
    return np.maximum(test(k1, n1, k0, n0, limit), test(k0, n0, k1, n1, limit))


def largest_rate(k: Numbers, n: Numbers, limit: Numbers) -> FloatArray:
    """Return the p-values of "the rate is the limit or more" (Clopper and Pearson)."""
    k, n, limits = _flat(k, n, limit)
    inside = (k < n) & (n > 0)
    p = special.betaincc(np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0), limits)
    return np.where(inside, p, 1.0)


class Rest(NamedTuple):
    """The other groups of a block, as one group."""

    rate: FloatArray
    size: FloatArray  # the number of rows that they are worth
    share: FloatArray  # their share of the weight of the block


def rest_of_block(
    # Rate, effective number of rows and weight of each group
    rate: FloatArray,
    size: FloatArray,
    weight: FloatArray,
    total: Callable[[FloatArray], FloatArray],  # adds up over the block of each group
) -> Rest:
    """Return for each group what the others of its block amount to.

    Groups count by their weights, so the rate of a group minus that of all is the difference to the
    others times their share. They are worth as many rows as their rate is precise: as for rows, the
    smaller one of what the weights say, and of what the rates of the groups say besides.
    """

    def of_others(values: FloatArray) -> FloatArray:
        return np.maximum(total(values) - values, 0.0)

    others, everybody = of_others(weight), total(weight)
    safe = np.where(others > 0, others, 1.0)
    chances = np.minimum(of_others(weight * rate) / safe, 1.0)
    parts = weight**2 / np.where(size > 0, size, 1.0)
    squares = of_others(parts)
    kish = np.where(squares > 0, others**2 / np.where(squares > 0, squares, 1.0), 0.0)
    spread, variance = chances * (1 - chances), of_others(parts * rate * (1 - rate)) / safe**2
    is_spread = (spread > ROUNDING) & (variance > 0)
    linear = np.where(is_spread, spread / np.where(is_spread, variance, 1.0), np.inf)
    sizes = np.where(linear < kish * (1 - SUM_ROUNDING), linear, kish)  # whole numbers stay whole
    return Rest(chances, sizes, others / np.where(everybody > 0, everybody, 1.0))


def smallest_limit(p_value: Callable[[float], float], alpha: float, most: float = 1.0) -> float:
    """Return the smallest limit that is shown at a level; ``most`` if none is.

    The normal quantile of a p-value is nearly a straight line in the limit, which is what Brent's
    method is fast at; where p-values jump it halves.
    """

    def height(limit: float) -> float:
        p = min(p_value(limit), 1.0)  # sums of chances are 1 up to rounding
        return float(np.clip(special.ndtri(p) - special.ndtri(alpha), -6.0, 6.0))

    at_most, tol = height(most), 5e-8 * most
    if at_most > 0:
        return most
    ends = {0.0: 6.0, most: at_most}
    root = brentq(lambda limit: ends.get(limit) or height(limit), 0.0, most, xtol=tol)
    return min(float(root) + tol, most)  # on the side that is shown


def _flat(*values: Numbers) -> tuple[FloatArray, ...]:
    """Return arrays of floats of one shape."""
    arrays = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value, np.float64)) for value in values)
    )
    return cast("tuple[FloatArray, ...]", tuple(arrays))
