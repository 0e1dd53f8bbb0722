"""Scan every threshold on sorted scores for the most accurate one that satisfies all constraints.

``RateTable`` of :mod:`skfair.enforcement.strict_evaluation` makes the arrays. It calls
:func:`scan_thresholds`, or :func:`scan_with_penalty` if violations are weighed against accuracy.
``skfair/enforcement/erm/thresholds.py`` calls :func:`sum_by_band`.

Each constraint divides the rows into *cells*: rows in the same groups and, if the constraint looks
at the class, of the same class. As the threshold falls, one row after another is predicted
positive. Each flip changes the mean of the row's cell, and with it the *sums* that depend on the
cell: the rates of groups and overall, or for quotients their numerators and divisors. The
constraints are checked wherever a threshold may lie.
"""

from typing import NamedTuple

import numpy as np

from skfair._kernels.declaring import njit

# Sums of shares that differ by less are the same number, added up in another order.
ROUNDING = 1e-12
# Codes of the ways to compare rates (``Comparison.code``). The code of a difference is 0.
RATIO, LARGEST = 1, 2
# Bounds on how far a disparity moves are enlarged by this factor, because sums of many changes are
# rounded.
_SLACK = 1.0 + 1e-9


class SortedRows(NamedTuple):
    """Entries of a scan from the highest score down: rows, or sums over several rows."""

    order: np.ndarray  # (n,): entries by falling score
    # (n - 1,): whether a threshold may lie just below entry 0, 1, ... of the order
    can_cut: np.ndarray
    gains: np.ndarray  # (n,): change of the accuracy when an entry turns positive
    cells: np.ndarray  # (n_constraints, n): the cell of each entry in each constraint
    # (n_constraints, n): change of the mean of that cell when the entry turns positive
    steps: np.ndarray


class ConstraintArrays(NamedTuple):
    """Constraints on rates as arrays.

    The sums of all constraints are one array, in which those of constraint k are the entries
    ``starts[k]:starts[k + 1]``. A *block* is the sums of rates that are compared with each other.
    If they are compared with the overall rate, that is the last one of the block. The blocks of a
    constraint follow each other. If its rates are quotients, equally many divisors follow after all
    its blocks, in the same order.
    """

    # (n_constraints, n_cells + 1): cell c of constraint k has the entries
    # ``indptr[k, c]:indptr[k, c + 1]`` of ``owners`` and ``shares``
    indptr: np.ndarray
    owners: np.ndarray  # numbers of the sums that depend on a cell, counted from ``starts[k]``
    shares: np.ndarray  # factors of the mean of the cell in these sums
    starts: np.ndarray  # (n_constraints + 1,): first sum of each constraint
    # For each constraint, the first sum of each block (counted from ``starts[k]``), then the end of
    # the last block
    first: np.ndarray
    first_starts: np.ndarray  # (n_constraints + 1,): first entry of each constraint in ``first``
    codes: np.ndarray  # (n_constraints,): 0 for differences, 1 for ratios, 2 for the largest rate
    # (n_constraints,): whether rates are compared with the overall rate, not with each other
    against_overall: np.ndarray
    are_quotients: np.ndarray  # (n_constraints,): whether rates are quotients
    bounds: np.ndarray  # (n_constraints,): the largest disparity allowed


class BestThreshold(NamedTuple):
    """The best threshold that satisfies the constraints, and the one that violates them least.

    The *excess* at a threshold is the largest disparity minus its bound.
    """

    # Number of entries predicted positive at the best threshold; -1 if none satisfies the
    # constraints
    n_above: int
    accuracy: float  # the accuracy at the best threshold
    excess: float  # the excess at the best threshold
    n_nearest: int  # number of entries predicted positive where the excess is least
    least_excess: float  # the least excess


@njit(cache=True)
def _largest_disparity(sums, starts, first, first_starts, codes, against_overall, are_quotients, k):
    """Return the disparity of constraint k, the largest of its blocks; a rate of 0/0 is 0.

    The formulas are those of ``Comparison.gap`` in :mod:`skfair.constraints.comparisons`.
    Conditions in place of ``min`` and ``max`` make scans a quarter faster, and are compiled sooner.
    """
    worst, stop, code = 0.0, first_starts[k + 1] - 1, codes[k]
    n_rates = first[stop]
    for b in range(first_starts[k], stop):
        low, high, overall = np.inf, -np.inf, 0.0
        for r in range(first[b], first[b + 1]):
            rate = sums[starts[k] + r]
            if are_quotients[k]:
                divisor = sums[starts[k] + n_rates + r]
                rate = rate / divisor if divisor > ROUNDING and rate > 0.0 else 0.0
                rate = rate if rate < 1.0 else 1.0
            low = rate if rate < low else low
            high = rate if rate > high else high
            overall = rate  # after the loop: the last one of the block
        # If rates are compared with each other, the smallest is compared with the largest. If they
        # are compared with the overall rate, there are two comparisons: side 0 takes the overall
        # rate as the lower and the largest as the upper one, and side 1 the smallest as the lower
        # and the overall rate as the upper one.
        for side in range(2 if against_overall[k] else 1):
            lower = overall if against_overall[k] and side == 0 else low
            upper = overall if side == 1 else high
            gap = upper - lower
            if code == LARGEST:
                gap = upper
            elif code == RATIO:
                lower = lower if lower > 0.0 else 0.0
                gap = 1.0 - lower / upper if upper > ROUNDING else 0.0
            worst = gap if gap > worst else worst
    return worst


@njit(cache=True)
def _largest_moves(constraints):
    """Return how far a change of 1 in the mean of a cell moves the disparity of a constraint.

    The result has n_cells upper bounds for each constraint, one after the other. A difference of
    rates and a largest rate move by at most the sum of the moves of the rates. The bound is
    infinite for ratios and quotients, because a small divisor makes them move without a limit.

    Each scan calls this anew. An array that the caller computes once would make scans with a
    penalty 2.4 times as slow.
    """
    indptr, shares = constraints[0], constraints[2]
    codes, are_quotients = constraints[6], constraints[8]
    n_cells = indptr.shape[1] - 1
    moves = np.empty(codes.size * n_cells)
    for k in range(codes.size):
        for c in range(n_cells):
            most = 0.0
            for a in range(indptr[k, c], indptr[k, c + 1]):
                most += _SLACK * abs(shares[a])
            moves[k * n_cells + c] = np.inf if codes[k] == RATIO or are_quotients[k] else most
    return moves


@njit(cache=True)
def scan_thresholds(rows, constraints, sums, accuracy):
    """Find the best threshold; return the fields of a :class:`BestThreshold`.

    ``rows`` are :class:`SortedRows` and ``constraints`` are :class:`ConstraintArrays`. ``sums`` and
    ``accuracy`` are for no entry predicted positive, and ``sums`` is changed here. If the accuracy
    or excess of several thresholds differs by rounding only, the highest one is taken.

    Most of the time goes to disparities, so as few as possible are computed:

    - None is computed if a threshold within the bounds is known and the accuracy is not better.
    - None is computed if the excess must be positive and larger than the least excess known.
      ``remaining`` is a lower bound of the excess at the present threshold: the excess that was
      computed last, minus the most that all steps since can have taken off.
    - At a threshold, the others are left out once one of them exceeds its bound by at least the
      least excess known. ``worst`` is the constraint for which this happened last. It is tried
      first.
    """
    order, can_cut, gains, cells, steps = rows
    indptr, owners, shares, starts, first, first_starts = constraints[:6]
    codes, against_overall, are_quotients, bounds = constraints[6:]
    n, n_constraints = order.size, starts.size - 1
    best, best_accuracy, best_excess = -1, -1.0, np.inf
    nearest, least_excess, worst = -1, np.inf, 0
    moves, n_cells, remaining = _largest_moves(constraints), indptr.shape[1] - 1, -np.inf
    for p in range(n + 1):
        if p > 0:
            i = order[p - 1]
            accuracy += gains[i]
            for k in range(n_constraints):
                step = steps[k, i]
                if step != 0.0:
                    c = cells[k, i]
                    remaining -= abs(step) * moves[k * n_cells + c]
                    for a in range(indptr[k, c], indptr[k, c + 1]):
                        sums[starts[k] + owners[a]] += step * shares[a]
        if 0 < p < n and not can_cut[p - 1]:
            continue
        if accuracy <= best_accuracy + ROUNDING and least_excess <= 0.0:
            continue  # cannot improve on what was found
        if remaining > 0.0 and remaining > least_excess:
            continue
        excess = -np.inf
        for j in range(n_constraints):
            k = (worst + j) % n_constraints
            disparity = _largest_disparity(
                sums, starts, first, first_starts, codes, against_overall, are_quotients, k
            )
            beyond = disparity - bounds[k]
            excess = beyond if beyond > excess else excess
            if excess > 0.0 and excess >= least_excess:
                worst = k
                break
        remaining = excess - ROUNDING
        if excess < least_excess - ROUNDING:
            nearest, least_excess = p, excess
        if excess <= 0.0 and accuracy > best_accuracy + ROUNDING:
            best, best_accuracy, best_excess = p, accuracy, excess
    return best, best_accuracy, best_excess, nearest, least_excess


@njit(cache=True)
def sum_by_band(rows, top, per_unit, bands, ends, gained, moved):
    """Write the band of each row to ``bands``, and add up gains and steps by band.

    Bands are intervals of scores of the same length, numbered from the score ``top`` down. There
    are ``per_unit`` of them per unit of score. Higher scores belong to the first band, and scores
    below all bands to the last. By these sums the caller rules out most bands before it scans
    single rows. ``rows`` are scores, gains, cells and steps, as in SortedRows.

    ``ends[0]`` becomes the lowest score of each band, and ``ends[1]`` minus the highest one.
    Negative gains are added to ``gained[0]`` and positive ones to ``gained[1]``, each (n_bands,).
    For constraint k, negative steps are added to ``moved[k, 0]`` and positive ones to
    ``moved[k, 1]``, each (n_cells, n_bands).
    """
    scores, gains, cells, steps = rows
    last = ends.shape[1] - 1
    for i in range(scores.size):
        score, place = scores[i], (top - scores[i]) * per_unit
        b = 0 if place <= 0.0 else int(place) if place < last else last
        bands[i] = b
        ends[0, b] = score if score < ends[0, b] else ends[0, b]
        ends[1, b] = -score if -score < ends[1, b] else ends[1, b]
        gained[1 if gains[i] > 0 else 0, b] += gains[i]
        for k in range(steps.shape[0]):
            moved[k, 1 if steps[k, i] > 0 else 0, cells[k, i], b] += steps[k, i]


@njit(cache=True)
def scan_with_penalty(rows, constraints, sums, accuracy, penalty):
    """Find the threshold of the largest accuracy minus ``penalty`` times the violation.

    Arguments are those of :func:`scan_thresholds`. The *violation* (``missed``) is the sum over
    constraints of the part of each disparity that is beyond its bound. Returns the number of
    entries above the threshold, the violation there, and the largest disparity minus its bound.

    ``excess`` holds the disparity of each constraint minus its bound. It is computed again only if
    a step has changed the sums of the constraint since (``is_old``), and only at thresholds that
    may be the best. ``remaining`` is a lower bound of the violation at the present threshold: the
    violation that was computed last, minus the most that all steps since can have taken off.

    The loop that updates sums is written out in both scans: a function for it, even an inlined one,
    makes scans of 200,000 rows 5 to 18% slower.
    """
    order, can_cut, gains, cells, steps = rows
    indptr, owners, shares, starts, first, first_starts = constraints[:6]
    codes, against_overall, are_quotients, bounds = constraints[6:]
    n, n_constraints = order.size, starts.size - 1
    excess, is_old = np.zeros(n_constraints), np.ones(n_constraints, np.bool_)
    best, best_value, best_missed, best_excess = -1, -np.inf, 0.0, 0.0
    moves, n_cells, remaining = _largest_moves(constraints), indptr.shape[1] - 1, 0.0
    for p in range(n + 1):
        if p > 0:
            i = order[p - 1]
            accuracy += gains[i]
            for k in range(n_constraints):
                step = steps[k, i]
                if step != 0.0:
                    is_old[k] = True
                    c = cells[k, i]
                    remaining -= abs(step) * moves[k * n_cells + c]
                    for a in range(indptr[k, c], indptr[k, c + 1]):
                        sums[starts[k] + owners[a]] += step * shares[a]
        if 0 < p < n and not can_cut[p - 1]:
            continue
        if accuracy - penalty * max(remaining, 0.0) <= best_value + ROUNDING:
            continue
        missed = 0.0
        for k in range(n_constraints):
            if is_old[k]:
                disparity = _largest_disparity(
                    sums, starts, first, first_starts, codes, against_overall, are_quotients, k
                )
                excess[k], is_old[k] = disparity - bounds[k], False
            missed += max(excess[k], 0.0)
        remaining = missed - ROUNDING
        value = accuracy - penalty * missed
        if value > best_value + ROUNDING:
            best, best_value, best_missed, best_excess = p, value, missed, excess.max()
    return best, best_missed, best_excess
