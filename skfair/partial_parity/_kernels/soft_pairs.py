"""Sums over pairs of rows of two groups, weighted by a function of the difference of their scores.

``row_pairs.py`` calls ``pair_sums``. For each score q of one group (a *query*), it computes the sum
over the rows j of another group of mass times a piecewise polynomial f of q - score:

    out(q) = sum_j mass_j f(q - scores_j)

f is 0 left of the first knot. From knot p to the next one it is f(x) = sum_d coefs[p, d] (x -
knots[p])^d, up to degree 3. The last piece extends to infinity and has at most degree 2.

The rows whose differences lie in piece p are neighbours in the sorted scores. Their sum is read
from cumulated sums of powers. The sorted scores are cut into *blocks*, none longer than the
distance of the first knot from the last one, and sums of mass_j t_j^d are cumulated within each
block, where t_j is the distance of scores_j from the start of its block. Blocks keep t_j small, so
that little cancels.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def _fill_blocks(scores, mass, span, first, moments):
    """Cut ascending scores into blocks no longer than span, and cumulate powers in each block.

    Writes into first[j] the row at which the block of row j starts, and into moments[j, d], d < 4,
    the sum of mass_i t_i^d over the rows i of the block up to j, where t_i is scores_i minus the
    score at which the block starts.
    """
    start = 0
    for j in range(scores.size):
        if scores[j] - scores[start] > span:
            start = j
        first[j] = start
        t = scores[j] - scores[start]
        power = mass[j]
        for d in range(4):
            moments[j, d] = power + (moments[j - 1, d] if j > start else 0.0)
            power *= t


@njit(cache=True)
def _piece_sum(query, scores, first, moments, start, stop, knot, coefs):
    """Return sum_j mass_j sum_d coefs[d] (query - scores_j - knot)^d over rows start <= j < stop.

    The sum is made block by block, from the last one. With y = query - (start of the block) - knot
    each term is a power of y - t_j, which is expanded into the moments s_d = sum_j mass_j t_j^d.
    """
    total = 0.0
    a0, a1, a2, a3 = coefs[0], coefs[1], coefs[2], coefs[3]
    while stop > start:
        block = first[stop - 1]
        lower = max(block, start)
        s0, s1, s2, s3 = moments[stop - 1]
        if lower > block:
            s0 -= moments[lower - 1, 0]
            s1 -= moments[lower - 1, 1]
            s2 -= moments[lower - 1, 2]
            s3 -= moments[lower - 1, 3]
        y = query - scores[block] - knot
        total += a0 * s0 + a1 * (y * s0 - s1) + a2 * (y * (y * s0 - 2.0 * s1) + s2)
        total += a3 * (y * (y * (y * s0 - 3.0 * s1) + 3.0 * s2) - s3)
        stop = lower
    return total


@njit(cache=True)
def pair_sums(queries, scores, mass, knots, coefs, out):
    """Write for each query q the sum over rows j of mass[j] f(q - scores[j]) into out.

    Queries and scores ascend, so the rows of each piece only move forward. This costs O(n_queries +
    n_rows).
    """
    n, last = scores.size, knots.size - 1
    first, moments = np.empty(n, np.int64), np.empty((n, 4))
    if last > 0:
        _fill_blocks(scores, mass, knots[last] - knots[0], first, moments)
    # passed[p] is the number of rows with q - scores >= knots[p]. Rows passed[p + 1] to passed[p]
    # are in piece p.
    passed = np.zeros(knots.size, np.int64)
    # The last piece extends to infinity, so it has no blocks. s0, s1, s2 are the sums over its rows
    # of mass times the powers of q - scores - knots[last], and are updated from query to query.
    # Only positive numbers are added, so that nothing cancels.
    s0 = s1 = s2 = 0.0
    for i in range(queries.size):
        q = queries[i]
        if i > 0:
            step = q - queries[i - 1]
            s2 += step * (2.0 * s1 + step * s0)
            s1 += step * s0
        for p in range(last + 1):
            while passed[p] < n and q - scores[passed[p]] >= knots[p]:
                if p == last:
                    j = passed[p]
                    beyond = (q - scores[j]) - knots[p]
                    s0 += mass[j]
                    s1 += mass[j] * beyond
                    s2 += mass[j] * beyond * beyond
                passed[p] += 1
        total = coefs[last, 0] * s0 + coefs[last, 1] * s1 + coefs[last, 2] * s2
        for p in range(last):
            total += _piece_sum(
                q, scores, first, moments, passed[p + 1], passed[p], knots[p], coefs[p]
            )
        out[i] = total
