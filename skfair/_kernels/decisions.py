"""Decisions at prices: soft ones for the dual, and where a line search passes each row."""

from typing import NamedTuple

import numpy as np

from skfair._kernels.declaring import njit

# exp(-_CERTAIN) is nothing beside 1.
_CERTAIN = 38.0
# Rows are softened so many at a time, in loops that the compiler vectorises: without them a row
# costs twice as much, as functions of the C library and branches stand in the way.
_BLOCK = 128
# Added to a number between -2^50 and 2^50 it leaves the nearest integer in the last bits.
_INTEGER = 6755399441055744.0  # 1.5 * 2^52
_PER_LOG_2 = 1.4426950408889634
# log 2 in two parts, the first so short that its products with small integers are exact.
_LOG_2, _LOG_2_REST = 0.693147180369123816490, 1.90821492927058770002e-10
# What the bits of a number from sqrt(2) on need to count as one power of 2 more.
_ROUND_UP = 0x95F6200000000
_MANTISSA, _BIAS = 52, 1023


@njit(cache=True)
def _to_powers(x, bits):
    """Write exp(x) to ``x`` for x <= 0, and 0 below ``-_CERTAIN``; ``bits`` is for own use.

    That is 2^k exp(r), where k log 2 is next to x, and |r| < 0.35: a polynomial of r does.
    """
    near, exponents = bits.view(np.float64), x.view(np.int64)
    for j in range(x.size):
        given = x[j]
        near[j] = given * _PER_LOG_2 + _INTEGER
        k = near[j] - _INTEGER
        r = (given - k * _LOG_2) - k * _LOG_2_REST
        power = 1 / 39916800.0 + r * (1 / 479001600.0)
        power = 1 / 362880.0 + r * (1 / 3628800.0 + r * power)
        power = 1 / 5040.0 + r * (1 / 40320.0 + r * power)
        power = 1 / 120.0 + r * (1 / 720.0 + r * power)
        power = 1 / 6.0 + r * (1 / 24.0 + r * power)
        power = 1.0 + r * (1.0 + r * (0.5 + r * power))
        is_some = given > -_CERTAIN
        x[j] = power if is_some else 0.0
        bits[j] = bits[j] << _MANTISSA if is_some else 0
    for j in range(x.size):
        exponents[j] += bits[j]


@njit(cache=True)
def _to_logs(x, bits):
    """Write log(x) to ``x`` for x >= 1; ``bits`` is for own use.

    That is k log 2 + log(f) with f between sqrt(1/2) and sqrt(2), and log(f) = 2 atanh(s) with s =
    (f - 1) / (f + 1), |s| < 0.18: a polynomial of s does.
    """
    own = x.view(np.int64)
    for j in range(x.size):
        bits[j] = ((own[j] + _ROUND_UP) >> _MANTISSA) - _BIAS
        own[j] -= bits[j] << _MANTISSA
    for j in range(x.size):
        s = (x[j] - 1.0) / (x[j] + 1.0)
        z = s * s
        rest = 1 / 15.0 + z * (1 / 17.0 + z * (1 / 19.0 + z * (1 / 21.0)))
        rest = 1 / 9.0 + z * (1 / 11.0 + z * (1 / 13.0 + z * rest))
        rest = z * (1 / 3.0 + z * (1 / 5.0 + z * (1 / 7.0 + z * rest)))
        k = float(bits[j])
        x[j] = k * _LOG_2 + (2.0 * s * (1.0 + rest) + k * _LOG_2_REST)


@njit(cache=True)
def _soften(leads, weights, temperature, largest, mass, bits):
    """Return the weighted sum of soft maxima of 0 and leads, which become weights of decisions.

    The soft maximum is T log sum exp(lead / T) for the temperature T. Leads have the shape
    (n_classes - 1, n); the last three arguments are room to work, and are written.
    """
    n_others, n = leads.shape
    largest[:] = 0.0
    for c in range(n_others):
        for j in range(n):
            largest[j] = leads[c, j] if leads[c, j] > largest[j] else largest[j]
    for j in range(n):
        mass[j] = -largest[j] / temperature
    _to_powers(mass, bits)
    for c in range(n_others):
        own = leads[c]
        for j in range(n):
            own[j] = (own[j] - largest[j]) / temperature
        _to_powers(own, bits)
        for j in range(n):
            mass[j] += own[j]
    for c in range(n_others):
        for j in range(n):
            leads[c, j] *= weights[j] / mass[j]
    _to_logs(mass, bits)
    total = 0.0
    for j in range(n):
        total += weights[j] * (largest[j] + temperature * mass[j])
    return total


@njit(cache=True)
def soft_table_dense(values, shares, prices, weights, temperature, table):
    """Return the sum of the soft maxima of 0 and of values minus priced shares.

    Values (n, n_classes - 1) and prices (n_classes - 1, n_features) are relative to class 0. Writes
    to ``table`` how much of each feature goes to each other class.
    """
    n_others, n_features = prices.shape
    table[:] = 0.0
    work, bits = np.empty((2, _BLOCK)), np.empty(_BLOCK, np.int64)
    total = 0.0
    for start in range(0, values.shape[0], _BLOCK):
        n = min(_BLOCK, values.shape[0] - start)
        leads = np.empty((n_others, n))
        for j in range(n):
            for c in range(n_others):
                cost = 0.0
                for f in range(n_features):
                    cost += shares[start + j, f] * prices[c, f]
                leads[c, j] = values[start + j, c] - cost
        own = weights[start : start + n]
        total += _soften(leads, own, temperature, work[0, :n], work[1, :n], bits[:n])
        for c in range(n_others):
            for j in range(n):
                part = leads[c, j]
                if part != 0.0:
                    for f in range(n_features):
                        table[c, f] += shares[start + j, f] * part
    return total


@njit(cache=True)
def soft_table_sparse(values, indptr, indices, shares, prices, weights, temperature, table):
    """Return the same for shares that are sparse by rows; writes to ``table``."""
    n_others = prices.shape[0]
    table[:] = 0.0
    work, bits = np.empty((2, _BLOCK)), np.empty(_BLOCK, np.int64)
    total = 0.0
    for start in range(0, values.shape[0], _BLOCK):
        n = min(_BLOCK, values.shape[0] - start)
        leads = np.empty((n_others, n))
        for j in range(n):
            for c in range(n_others):
                lead = values[start + j, c]
                for a in range(indptr[start + j], indptr[start + j + 1]):
                    lead -= shares[a] * prices[c, indices[a]]
                leads[c, j] = lead
        own = weights[start : start + n]
        total += _soften(leads, own, temperature, work[0, :n], work[1, :n], bits[:n])
        for j in range(n):
            for c in range(n_others):
                part = leads[c, j]
                if part != 0.0:
                    for a in range(indptr[start + j], indptr[start + j + 1]):
                        table[c, indices[a]] += shares[a] * part
    return total


class Counted(NamedTuple):
    """What a row counts for, in each rule."""

    weights: np.ndarray  # (n,)
    values: np.ndarray  # (n, n_classes): what each decision is worth
    classes: np.ndarray  # (n,): the true class
    cells: np.ndarray  # (n_rules, n): its cell in each rule
    steps: np.ndarray  # (n_rules, n): change of the mean of that cell if the row is selected
    # (n_rules,): the decision that selects a row; -1 if that is its true class
    selecting: np.ndarray


@njit(cache=True)
def exchanged(counted, rows, label, others, before, gains, cells, steps, base):
    """Find what changes if rows are decided for a class, or for another one.

    Writes gains (n,), cells and steps (n_rules, n) for the class in place of ``others``, and adds
    to ``base`` (n_rules, n_cells) the change of means if ``before`` makes way for ``others``.
    Returns the change of worth for that.
    """
    worth = 0.0
    for j in range(rows.size):
        i, other, now = rows[j], others[j], before[j]
        weight = counted.weights[i]
        gains[j] = weight * (counted.values[i, label] - counted.values[i, other])
        worth += weight * (counted.values[i, other] - counted.values[i, now])
        for k in range(counted.cells.shape[0]):
            chosen = counted.selecting[k] if counted.selecting[k] >= 0 else counted.classes[i]
            step, cell = counted.steps[k, i], counted.cells[k, i]
            cells[k, j] = cell
            steps[k, j] = step * ((label == chosen) - (other == chosen))
            base[k, cell] += step * ((other == chosen) - (now == chosen))
    return worth


@njit(cache=True)
def passing_points(margins, rows, direction, label, others, points):
    """Find how far the price of a class may rise before a row is no longer decided for it.

    Writes for each of ``rows`` the best other class, and the lead over it per unit of price.
    """
    n_classes = margins.shape[1]
    for j in range(rows.size):
        i = rows[j]
        best = 1 if label == 0 else 0
        lead = margins[i, best]
        for c in range(best + 1, n_classes):
            # Selections instead of branches, which the processor cannot foresee.
            is_more = (c != label) & (margins[i, c] > lead)
            best = c if is_more else best
            lead = margins[i, c] if is_more else lead
        others[j] = best
        points[j] = (margins[i, label] - lead) / direction[j]
