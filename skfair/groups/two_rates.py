"""Tests of two rates: whether data show that they differ by less than a limit.

The tests return p-values of "the first rate exceeds the second by the limit or more", for arrays of
pairs at once. A small p-value shows that the difference is below the limit. If ``ratio`` is true,
the limit is on 1 minus the second rate over the first, so 0.2 is the 80% rule. The first side has
``k1`` hits among ``n1`` rows, and the second side ``k0`` among ``n0``.

- :func:`melded`: confidence distributions of both rates put together (Fay, Proschan and Brittain,
  2015): ``p = P(U - L >= limit)``, ``U ~ Beta(k1 + 1, n1 - k1)``, ``L ~ Beta(k0, n0 - k0 + 1)``.
- :func:`score`: the statistic of Farrington and Manning (1990), taken as normal; the fastest.
- :func:`exact`: the same statistic, its distribution counted for the least favourable rates.

``both_ways`` runs one of them in both orders, for a limit on the absolute difference.
``largest_rate`` tests a single rate, ``rest_of_peers`` makes the second side if a group is compared
with all others, and ``smallest_limit`` inverts any of these tests to a confidence bound. They are
called by :mod:`skfair.groups.compared_rates`, :mod:`skfair.metrics.evidence`, sample sizes, and
estimators that certify limits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeAlias, cast

import numpy as np
from scipy import special, stats
from scipy.optimize import brentq

from skfair._typing import BoolArray, FloatArray
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING, TINY

Numbers: TypeAlias = FloatArray | float

# Nodes of the integral of the melded test, and the probability that is cut off at each of its ends.
# The second value of each is for ``quick``. Errors of p-values are below 1e-9 with many nodes, and
# below 1e-6 with few (of 80,000 pairs of 5 to 20,000 rows, 99% below 3e-8).
MANY_NODES, _FEW_NODES = 96, 40
_TAIL, _ROUGH_TAIL = 1e-12, 1e-8
# The exact test counts at most this many tables. It looks for the least favourable rates on a grid
# of this many steps, along the pairs of rates that differ by the limit exactly.
MOST_TABLES, _N_EDGE = 250_000, 400


@cache
def legendre(n: int) -> tuple[FloatArray, FloatArray]:
    """Return n nodes from 0 to 1 and their weights for Gauss-Legendre integrals."""
    at, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (at + 1), 0.5 * weights


def _flat(*values: Numbers) -> tuple[FloatArray, ...]:
    """Return numbers and arrays as arrays of one common length."""
    arrays = np.broadcast_arrays(
        *(np.atleast_1d(np.asarray(value, np.float64)) for value in values)
    )
    return cast("tuple[FloatArray, ...]", tuple(arrays))


def _of_pairs(test: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
    """Decorate a test of flat arrays so that it takes any numbers.

    The p-value of a pair in which a group has no rows is 1.
    """

    @wraps(test)
    def of_pairs(
        k1: Numbers,
        n1: Numbers,
        k0: Numbers,
        n0: Numbers,
        limit: Numbers,
        ratio: bool,
        **options: Any,
    ) -> FloatArray:
        pairs = np.stack(_flat(k1, n1, k0, n0, limit))
        is_known = (pairs[1] > 0) & (pairs[3] > 0)
        p = np.ones(is_known.size)
        p[is_known] = test(*pairs[:, is_known], ratio, **options)
        return p

    return of_pairs


@_of_pairs
def melded(
    k1: FloatArray,
    n1: FloatArray,
    k0: FloatArray,
    n0: FloatArray,
    limits: FloatArray,
    ratio: bool,
    *,
    quick: bool = False,
) -> FloatArray:
    """Return the p-values P(U - L >= limit) of the melded test, see the module docstring.

    Counts may be fractional (effective sizes). With ``quick`` the p-values take about half of the
    time and have six correct decimals.

    If the first rate is 1 then U is 1, and if the second rate is 0 then L is 0: the p-value is a
    tail of the other distribution. Otherwise it is an integral over U or over L.
    """
    # Weighted rates are 1 and 0 only up to rounding.
    u_is_1, l_is_0 = k1 >= n1 * (1 - SUM_ROUNDING), k0 <= n0 * SUM_ROUNDING
    # A parameter below 1 (from a fractional count) makes a density too steep to integrate over, so
    # the integral runs over the other distribution. If both are steep, L is taken as 0, which makes
    # the p-value a little larger.
    u_is_steep, l_is_steep = n1 - k1 < 1, k0 < 1
    l_is_0 |= u_is_steep & l_is_steep & ~u_is_1
    upper, lower = (k1 + 1, n1 - k1), (k0, n0 - k0 + 1)  # the Beta parameters of U and of L
    if_u_is_1 = special.betainc(*lower, _below(1.0, limits, ratio))
    if_l_is_0 = special.betaincc(*upper, _above(0.0, limits, ratio))
    p = np.where(l_is_0, np.where(u_is_1, 1.0, if_l_is_0), if_u_is_1)
    # The integral runs over the narrower distribution, along which the tail of the other is smooth.
    # For a ratio L is compared with factor * U.
    factor = 1 - limits if ratio else 1.0
    u_is_narrower = factor**2 * _variance(*upper) < _variance(*lower)
    over_u = np.where(u_is_steep | l_is_steep, l_is_steep, u_is_narrower)
    for is_over_u in (True, False):
        at = ~u_is_1 & ~l_is_0 & (over_u == is_over_u)
        if at.any():
            of_u, of_l = ((a[at, None], b[at, None]) for a, b in (upper, lower))
            p[at] = _integral(of_u, of_l, limits[at, None], ratio, is_over_u, quick)
    return np.clip(p, 0.0, 1.0)


def _variance(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the variance of Beta(a, b)."""
    return np.asarray(a * b / ((a + b) ** 2 * (a + b + 1)))


def beta_density(a: FloatArray, b: FloatArray, x: FloatArray) -> FloatArray:
    """Return densities of Beta distributions."""
    x = np.clip(x, TINY, 1 - 1e-16)
    return np.asarray(np.exp((a - 1) * np.log(x) + (b - 1) * np.log(1 - x) - special.betaln(a, b)))


def _integral(
    upper: tuple[FloatArray, FloatArray],  # the Beta parameters of U, each (n_pairs, 1)
    lower: tuple[FloatArray, FloatArray],  # the Beta parameters of L, each (n_pairs, 1)
    limits: FloatArray,
    ratio: bool,
    over_u: bool,  # whether the integral runs over U, or else over L
    quick: bool,
) -> FloatArray:
    """Return P(U - L >= limit), the integral of a density times a tail of the other distribution.

    Over U it is that of f(x) P(L <= x - limit), and over L that of f(x) P(U >= x + limit), where f
    is the density of U or of L. The substitution x = low + (high - low) u^2 (3 - 2 u) bunches the
    nodes at both ends.
    """
    tail = _ROUGH_TAIL if quick else _TAIL
    own = upper if over_u else lower
    low, high = special.betaincinv(*own, tail), special.betaincinv(*own, 1 - tail)
    # The integrand is 0 for U below the limit and for L above 1 - limit, and may jump there.
    if over_u:
        low = low if ratio else np.clip(limits, low, high)
    else:
        high = np.clip(1 - limits, low, high)
    u, factors = legendre(_FEW_NODES if quick else MANY_NODES)
    x = low + (high - low) * u**2 * (3 - 2 * u)
    if over_u:
        other = special.betainc(*lower, _below(x, limits, ratio))
    else:
        # The upper tail of Beta(a, b) is the lower one of Beta(b, a). betaincc is slower.
        other = special.betainc(*upper[::-1], 1 - _above(x, limits, ratio))
    heights = beta_density(*own, x) * other
    return np.asarray((heights @ (6 * u * (1 - u) * factors)) * (high - low)[:, 0])


def _below(upper: FloatArray | float, limit: FloatArray, ratio: bool) -> FloatArray:
    """Return the largest second rate that is the limit or more below the first."""
    return np.clip(upper * (1 - limit) if ratio else upper - limit, 0.0, 1.0)


def _above(lower: FloatArray | float, limit: FloatArray, ratio: bool) -> FloatArray:
    """Return the smallest first rate that is the limit or more above the second."""
    if ratio:
        return np.clip(lower / np.maximum(1 - limit, TINY), 0.0, 1.0)
    return np.clip(lower + limit, 0.0, 1.0)


@_of_pairs
def score(
    k1: FloatArray, n1: FloatArray, k0: FloatArray, n0: FloatArray, limits: FloatArray, ratio: bool
) -> FloatArray:
    """Return the p-values of the score test."""
    z = score_statistic(k1, n1, k0, n0, limits, ratio)
    return np.asarray(special.ndtr(z))


def score_statistic(
    k1: FloatArray, n1: Numbers, k0: FloatArray, n0: Numbers, limits: Numbers, ratio: bool
) -> FloatArray:
    """Return the score statistics: the excess over the limit in standard errors.

    The excess is r1 - r0 - limit, or (1 - limit) r1 - r0 for a ratio, and its variance is that of
    the likeliest rates that differ by the limit. The smaller the statistic, the more the data speak
    for a difference below the limit. It is infinite if the variance is 0.
    """
    first, second = edge_rates(k1, n1, k0, n0, limits, ratio)
    factor = 1 - limits if ratio else 1.0
    excess = factor * k1 / n1 - k0 / n0 - (0.0 if ratio else limits)
    variance = factor**2 * first * (1 - first) / n1 + second * (1 - second) / n0
    with np.errstate(invalid="ignore", divide="ignore"):
        z = excess / np.sqrt(variance)
    return np.where(variance > 1e-15, z, np.where(excess < -ROUNDING, -np.inf, np.inf))


def edge_rates(
    k1: FloatArray, n1: Numbers, k0: FloatArray, n0: Numbers, limits: Numbers, ratio: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the rates of both sides that are the likeliest of those that differ by the limit.

    For a ratio, setting the derivative of the log-likelihood to 0 gives a quadratic equation in the
    first rate. For a difference it gives the cubic of Farrington and Manning in the second rate.
    """
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
    # total x^3 + c2 x^2 + c1 x + c0 = 0 has three real roots. Cosines give the one in [0, 1].
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


@_of_pairs
def exact(
    k1: FloatArray, n1: FloatArray, k0: FloatArray, n0: FloatArray, limits: FloatArray, ratio: bool
) -> FloatArray:
    """Return the p-values of the exact test, for whole numbers of few rows.

    A p-value is the probability of all tables whose statistic is at most the observed one, at the
    rates on the edge of the hypothesis where this probability is largest.
    """
    p = np.ones(k1.size)
    counts = np.stack([k1, n1, k0, n0]).round().astype(np.int64).T.tolist()
    for i, (own_k1, own_n1, own_k0, own_n0) in enumerate(counts):
        if (own_n1 + 1) * (own_n0 + 1) > MOST_TABLES:
            raise ValueError(
                f"method='exact' counts every table of two groups, but {own_n1} and {own_n0} rows "
                "have more than it can count. Use method='melded'."
            )
        if limits[i] < 0:  # the second rate exceeds the first by ``limit`` or less
            limit = -limits[i] / (1 - limits[i]) if ratio else -limits[i]
            statistic = exact_statistic(own_n0, own_n1, limit, ratio)
            as_far = statistic >= statistic[own_k0, own_k1] - SUM_ROUNDING
            p[i] = rejection_rate(as_far, own_n0, own_n1, limit, ratio).max()
            continue
        statistic = exact_statistic(own_n1, own_n0, limits[i], ratio)
        as_far = statistic <= statistic[own_k1, own_k0] + SUM_ROUNDING
        p[i] = rejection_rate(as_far, own_n1, own_n0, limits[i], ratio).max()
    return p


def exact_statistic(n1: int, n0: int, limit: float, ratio: bool) -> FloatArray:
    """Return the score statistic of every table, shape (n1 + 1, n0 + 1)."""
    k1, k0 = np.meshgrid(np.arange(n1 + 1.0), np.arange(n0 + 1.0), indexing="ij")
    return score_statistic(k1, n1, k0, n0, limit, ratio)


def rejection_rate(rejected: BoolArray, n1: int, n0: int, limit: float, ratio: bool) -> FloatArray:
    """Return the probability of a set of tables at each of the rates that differ by the limit.

    ``rejected`` marks the tables, (n1 + 1, n0 + 1) by hits.
    """
    first = np.linspace(0.0 if ratio else limit, 1.0, _N_EDGE + 1)
    second = first * (1 - limit) if ratio else np.clip(first - limit, 0.0, 1.0)
    of_first = stats.binom.pmf(np.arange(n1 + 1), n1, first[:, None])
    of_second = stats.binom.pmf(np.arange(n0 + 1), n0, second[:, None])
    return np.asarray(((of_first @ rejected.astype(np.float64)) * of_second).sum(axis=1))


_TESTS: dict[str, Callable[..., FloatArray]] = {"melded": melded, "exact": exact, "score": score}


def check_method(method: object) -> None:
    """Raise unless there is a test of this name."""
    if method not in ("melded", "exact", "score"):
        raise ValueError(f"method must be 'melded', 'exact' or 'score', got {method!r}.")


def both_ways(
    method: str,
    k1: Numbers,
    n1: Numbers,
    k0: Numbers,
    n0: Numbers,
    *question: Any,  # limit, ratio and shared, as for ``p_values_above``
) -> FloatArray:
    """Return the p-values of "the rates differ by the limit or more, whichever is larger"."""
    one_way = p_values_above(method, k1, n1, k0, n0, *question)
    return np.maximum(one_way, p_values_above(method, k0, n0, k1, n1, *question))


def p_values_above(
    method: str,
    k1: Numbers,
    n1: Numbers,
    k0: Numbers,
    n0: Numbers,
    limit: Numbers,
    ratio: bool,
    # The correlation of the two rates, and the overlap of the two sides (``SharedUnits``), if units
    # have rows in both
    shared: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Return the p-values of "the first rate exceeds the second by the limit or more".

    The limit may be below 0: with -d, the p-values are those of "the second rate exceeds the first
    by d or less". For a ratio -d / (1 - d) is the limit on the first rate that is d on the second.
    """
    by: Numbers = 1.0
    if shared is not None:
        apart = np.asarray(limit)
        reverse = -apart / (1 - apart) if ratio else -apart
        by = np.where(
            apart >= 0,
            worth_of_pairs(k1, n1, k0, n0, np.maximum(apart, 0.0), ratio, *shared),
            worth_of_pairs(k0, n0, k1, n1, np.maximum(reverse, 0.0), ratio, *shared),
        )
    return _TESTS[method](k1 * by, n1 * by, k0 * by, n0 * by, limit, ratio)


def worth_of_pairs(
    k1: Numbers,
    n1: Numbers,
    k0: Numbers,
    n0: Numbers,
    limit: Numbers,
    ratio: bool,
    correlation: FloatArray,
    overlap: FloatArray,
) -> FloatArray:
    """Return how many independent rows each row is worth, if units have rows on both sides.

    As many independent rows have the variance that the difference of the correlated rates has. If
    the correlation is positive, this variance is larger where rates differ by the limit than in a
    sample where they differ less, because more units must then differ. So it is the variance of the
    sample, plus what is added if units with two hits lose the second one until the limit is
    reached. Then n pairs that all agree show a limit of about 3 / n, and not every limit.
    """
    k1, n1, k0, n0, limits = _flat(k1, n1, k0, n0, limit)
    r1, r0 = k1 / np.maximum(n1, TINY), k0 / np.maximum(n0, TINY)
    factor = 1 - limits if ratio else np.ones(limits.size)
    of_first = factor**2 * r1 * (1 - r1) / np.maximum(n1, TINY)
    of_second = r0 * (1 - r0) / np.maximum(n0, TINY)
    apart = of_first + of_second
    if ratio:
        missing = np.maximum(r0 - factor * r1, 0.0)
        more = missing * (1 - 2 * limits + missing)
    else:
        excess = np.maximum(r1 - r0, 0.0)
        more = limits * (1 - limits) - excess * (1 - excess)
    joint = correlation * np.sqrt(of_first * of_second)
    more = np.where(joint > 0, overlap * np.maximum(more, 0.0), 0.0)
    together = np.maximum(apart - 2 * joint, 0.0)
    together = np.minimum(together + more, np.maximum(apart, together))
    return np.where(together > 0, apart / np.where(together > 0, together, 1.0), 1.0)


def largest_rate(k: Numbers, n: Numbers, limit: Numbers) -> FloatArray:
    """Return the p-values of "the rate is the limit or more" (Clopper and Pearson)."""
    k, n, limits = _flat(k, n, limit)
    inside = (k < n) & (n > 0)
    p = special.betaincc(np.where(inside, k + 1, 1.0), np.where(inside, n - k, 1.0), limits)
    return np.where(inside, p, 1.0)


def rest_of_peers(
    rate: FloatArray,  # (n_groups,), the rate of each group
    size: FloatArray,  # (n_groups,), the effective number of rows of each group
    weight: FloatArray,  # (n_groups,), the weight of each group
    total: Callable[[FloatArray], FloatArray],  # adds up over the stratum of each group
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, for each group, three numbers of all other groups of its stratum (its peers).

    They are the rate of the peers, their effective number of rows, and their share of the weight.
    The rate of a group minus the overall rate is its difference from the peers times their share.
    As for rows (``groups.rates.effective_size``), the effective number is the smaller one of Kish's
    and of the number that gives the variance of the rate of the peers.
    """

    def of_others(values: FloatArray) -> FloatArray:
        return np.maximum(total(values) - values, 0.0)

    others, everybody = of_others(weight), total(weight)
    safe = np.where(others > 0, others, 1.0)
    # ``chances`` is the rate of the peers, sum_g w_g r_g / W over the peers g, where W is their
    # weight. Rate r_g has the variance r_g (1 - r_g) / n_g with n_g effective rows. So the variance
    # of ``chances`` is the sum of ``parts`` r_g (1 - r_g) over W^2, with parts = w_g^2 / n_g.
    chances = np.minimum(of_others(weight * rate) / safe, 1.0)
    parts = weight**2 / np.where(size > 0, size, 1.0)
    squares = of_others(parts)
    # ``kish`` rows have this variance if all peers have the same rate, and ``linear`` rows have it
    # with the rates that they do have.
    kish = np.where(squares > 0, others**2 / np.where(squares > 0, squares, 1.0), 0.0)
    spread, variance = chances * (1 - chances), of_others(parts * rate * (1 - rate)) / safe**2
    is_spread = (spread > ROUNDING) & (variance > 0)
    linear = np.where(is_spread, spread / np.where(is_spread, variance, 1.0), np.inf)
    # Without weights ``kish`` is a whole number. It is kept if ``linear`` is smaller by rounding
    # only.
    sizes = np.where(linear < kish * (1 - SUM_ROUNDING), linear, kish)
    return chances, sizes, others / np.where(everybody > 0, everybody, 1.0)


def smallest_limit(p_value: Callable[[float], float], alpha: float, most: float = 1.0) -> float:
    """Return the smallest limit whose p-value is at most ``alpha``, or ``most`` if none is.

    The normal quantile of a p-value is nearly a straight line in the limit, for which Brent's
    method is fast. If p-values jump, it halves the interval instead.
    """

    def height(limit: float) -> float:
        """Return a number that is above 0 if the limit is not shown, cut off at 6 either way."""
        p = min(p_value(limit), 1.0)  # sums of probabilities may exceed 1 by rounding
        return float(np.clip(special.ndtri(p) - special.ndtri(alpha), -6.0, 6.0))

    at_most, tol = height(most), 5e-8 * most
    if at_most > 0:
        return most
    ends = {0.0: 6.0, most: at_most}  # the p-value of the limit 0 is 1
    root = brentq(lambda limit: ends.get(limit) or height(limit), 0.0, most, xtol=tol)
    return min(float(root) + tol, most)  # the root may lie on the other side, by at most tol
