"""Sums over pairs of sorted rows of a piecewise polynomial of the difference of their scores.

The function is 0 left of the first knot. From knot p to the next one it is sum_d coefs[p, d] (x -
knots[p])^d, up to degree 3. The last piece never ends and has degree 2 at most.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def _fill_blocks(scores, mass, span, first, moments):
    """Cut ascending scores into blocks no longer than span; sum powers from each block's start.

    Writes the start of the block of each row into first, and into moments (n, 4) the sums over the
    rows of the block so far: no power is ever taken of a distance longer than span.
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
    """Return the sum of a polynomial of query - scores - knot over the rows start to stop."""
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

    Queries and scores ascend, so that all windows slide: O(n_queries + n_rows).
    """
    n, last = scores.size, knots.size - 1
    first, moments = np.empty(n, np.int64), np.empty((n, 4))
    if last > 0:
        _fill_blocks(scores, mass, knots[last] - knots[0], first, moments)
    passed = np.zeros(knots.size, np.int64)  # rows at or beyond each knot, seen from the query
    # Sums of mass times powers of the distance beyond the last knot. Only positive numbers are
    # added, so that nothing cancels.
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
