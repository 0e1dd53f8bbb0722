"""Comparisons of two groups' sorted scores by merging, for every pair of groups in one call.

Called by ``scores.py`` and ``partial.py`` of ``skfair/metrics``. :mod:`skfair.enforcement.cuts`
also calls :func:`counting_sort`. The layout is the same for all kernels: the rows of group ``g``
are ``starts[g]:starts[g + 1]``, and their scores are in descending order. Pair p compares the
groups ``first[p]`` and ``second[p]``, and its result is written to ``out[p]``. A merge of two
groups walks down the distinct scores of both, all rows tied at a score at once, so comparing every
pair of G groups costs O(n G).

In the merges, i is the next row of the first group, and a the level of this group just below the
current threshold. j and b are the same for the second group.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def counting_sort(codes, starts, order):
    """Write into ``order`` the rows of group 0, then those of group 1, ..., each in row order."""
    place = starts[:-1].copy()
    for i in range(codes.size):
        g = codes[i]
        order[place[g]] = i
        place[g] += 1


@njit(cache=True)
def largest_gaps(scores, level, starts, first, second, out):
    """Write the largest difference of two step functions of the threshold, for each pair.

    Each group has a function. ``level[i]`` is its value just below the score of row ``i``, and
    above all rows it is 0. An example is the share of rows above the threshold.
    """
    for p in range(first.size):
        i, i_end = starts[first[p]], starts[first[p] + 1]
        j, j_end = starts[second[p]], starts[second[p] + 1]
        a = b = largest = 0.0
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and scores[i] >= scores[j]):
                threshold = scores[i]
            else:
                threshold = scores[j]
            while i < i_end and scores[i] == threshold:
                a = level[i]
                i += 1
            while j < j_end and scores[j] == threshold:
                b = level[j]
                j += 1
            largest = max(largest, abs(a - b))
        out[p] = largest


@njit(cache=True)
def largest_gaps_inside(scores, level, inside, top_inside, starts, first, second, out):
    """Write the largest difference where at least one of the two groups is inside its interval.

    ``inside[i]`` says whether the level of row ``i`` lies in the interval of its group,
    ``top_inside[g]`` whether the level 0, above all rows of group ``g``, does.
    """
    for p in range(first.size):
        i, i_end = starts[first[p]], starts[first[p] + 1]
        j, j_end = starts[second[p]], starts[second[p] + 1]
        a = b = largest = 0.0
        a_inside, b_inside = top_inside[first[p]], top_inside[second[p]]
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and scores[i] >= scores[j]):
                threshold = scores[i]
            else:
                threshold = scores[j]
            while i < i_end and scores[i] == threshold:
                a, a_inside = level[i], inside[i]
                i += 1
            while j < j_end and scores[j] == threshold:
                b, b_inside = level[j], inside[j]
                j += 1
            if a_inside or b_inside:
                largest = max(largest, abs(a - b))
        out[p] = largest


@njit(cache=True)
def areas_between(scores, level, starts, first, second, out):
    """Write the area between two step functions of the threshold, for each pair.

    The functions are those of :func:`largest_gaps`.
    """
    for p in range(first.size):
        i, i_end = starts[first[p]], starts[first[p] + 1]
        j, j_end = starts[second[p]], starts[second[p] + 1]
        a = b = area = 0.0
        above = np.inf
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and scores[i] >= scores[j]):
                threshold = scores[i]
            else:
                threshold = scores[j]
            if above < np.inf:
                area += abs(a - b) * (above - threshold)
            above = threshold
            while i < i_end and scores[i] == threshold:
                a = level[i]
                i += 1
            while j < j_end and scores[j] == threshold:
                b = level[j]
                j += 1
        out[p] = area


@njit(cache=True)
def win_rates(scores, mass, starts, first, second, tie_value, out):
    """Write the probability that a row of the first group scores above one of the second.

    It is the sum over the rows of the second group of their mass times the mass of the first group
    above them (``above``) or tied with them (``tied``). ``mass`` holds the probability of each row
    within its group; a tie counts ``tie_value``.
    """
    for p in range(first.size):
        i, i_end = starts[first[p]], starts[first[p] + 1]
        j, j_end = starts[second[p]], starts[second[p] + 1]
        above = won = 0.0  # ``above``: mass of the first group above the threshold
        while j < j_end:
            threshold = scores[j]
            while i < i_end and scores[i] > threshold:
                above += mass[i]
                i += 1
            tied = 0.0
            while i < i_end and scores[i] == threshold:
                tied += mass[i]
                i += 1
            beaten = 0.0
            while j < j_end and scores[j] == threshold:
                beaten += mass[j]
                j += 1
            won += beaten * (above + tie_value * tied)
            above += tied
        out[p] = won
