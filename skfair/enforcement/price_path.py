"""A path of prices for two classes, from certainly fair to free.

Leg 1 decides more and more people for the rarer class, with prices at which no gap is left. Leg 2
decides all of them, and lets the gaps grow up to the limits and a little beyond. How good the path
is decides how much accuracy a certificate costs, not whether it holds: other rows judge it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.certify import Block, RowRates
from skfair.enforcement.decisions.shares import Shares

# Decisions are soft while prices are searched; the last temperature decides nearly all rows.
TEMPERATURES = (0.1, 0.03, 0.01)
# Quantiles of the margins of the rarer decision, and gaps in units of their limits.
QUANTILES = (0.97, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
GAPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
# Steps between two neighbours of leg 1 and of leg 2.
_BETWEEN = (2, 5)
_N_NEWTON = 8


class PathRows(NamedTuple):
    """Rows that a path is found on.

    Attributes
    ----------
    rates : RowRates
        Rates of the rules.
    gains : ndarray of shape (n_samples,)
        Expected worth of the second decision minus that of the first one.
    shares : Shares
        What rows are expected to add to rates, by feature.
    kinds : ndarray of shape (n_samples,)
        Stratum and true class of each row, as one number.
    n_kinds : int
        How many there are.
    everyone : ndarray
        Features of the groups of one attribute: the offsets of all rows.
    """

    rates: RowRates
    gains: FloatArray
    shares: Shares
    kinds: IntArray
    n_kinds: int
    everyone: IntArray

    def directions(self) -> FloatArray:
        """Return what selecting a row with a feature adds to a rate, (n_rates, n_features)."""
        rates, n_features = self.rates, self.shares.shape[1]
        found = np.zeros((len(rates.names), n_features))
        total, step = rates.totals(), rates.counted[1]
        for r, group in enumerate(rates.groups.tolist()):
            rows = rates.members.indices[rates.members.indptr[r] : rates.members.indptr[r + 1]]
            w = rates.weights[rows]
            mass = np.bincount(self.kinds[rows], w, self.n_kinds)
            effect = step[[r]].toarray().ravel()[rows]
            change = np.bincount(self.kinds[rows], w * effect, self.n_kinds)
            columns = group * self.n_kinds + np.arange(self.n_kinds)
            mean = change / np.where(mass > 0, mass, 1.0)
            found[r, columns] = mean / (total[r] if total[r] > 0 else 1.0)
        return found


def price_path(rows: PathRows) -> FloatArray:
    """Return the prices of the second decision at each step, shape (n_steps, n_features).

    The last step is free if the decisions without prices have gaps below the limits.
    """
    solver = _GapSolver(rows)
    nodes = []
    free = rows.rates.of(rows.gains > 0)
    start = solver.solve(np.zeros(solver.n_gaps), 0.0, solver.wanted(free, 0.0), TEMPERATURES)
    if _can_shrink(rows.rates):
        margins = rows.gains - solver.directions @ start
        is_rare = margins > 0 if np.mean(margins > 0) <= 0.5 else margins < 0
        sign = 1.0 if np.mean(margins > 0) <= 0.5 else -1.0
        if is_rare.any():
            at = np.quantile(np.abs(margins[is_rare]), QUANTILES)
            found, target = start, solver.wanted(free, 0.0)
            for threshold in at[::-1].tolist():  # from the known solution outwards
                found = solver.solve(found, sign * threshold, target, TEMPERATURES[-1:])
                nodes.append(solver.prices(found, sign * threshold))
            nodes = _between(nodes[::-1], _BETWEEN[0])
    leg = [solver.prices(start, 0.0)]
    found = start
    for gap in GAPS[1:]:
        target = solver.wanted(free, gap)
        if np.abs(target - solver.wanted(free, np.inf)).max(initial=0.0) < 1e-12:
            leg.append(np.zeros(rows.shares.shape[1]))  # gaps are below the limits without prices
            break
        found = solver.solve(found, 0.0, target, TEMPERATURES[-1:])
        leg.append(solver.prices(found, 0.0))
    # All paths have the same number of steps: a shorter one ends with free decisions.
    leg += [leg[-1]] * (len(GAPS) - len(leg))
    return np.array([*nodes, *_between(leg, _BETWEEN[1])])


def full_step(rates: RowRates) -> int:
    """Return the number of the first step of leg 2: everybody is decided, at no gap."""
    return (len(QUANTILES) - 1) * _BETWEEN[0] + 1 if _can_shrink(rates) else 0


def _can_shrink(rates: RowRates) -> bool:
    """Whether decisions get fairer, and can be shown to be, if nearly nobody is selected."""
    if any(block.is_ratio for block in rates.blocks):
        return False
    share = rates.of(np.zeros(rates.weights.size, dtype=bool))
    return all(np.ptp(share[block.rates]) < 1e-12 for block in rates.blocks)


def _between(nodes: list[FloatArray], n: int) -> list[FloatArray]:
    """Return the nodes with steps between them on straight lines."""
    steps = [
        left + (right - left) * part / n
        for left, right in pairwise(nodes)
        for part in range(n)
    ]
    return [*steps, nodes[-1]]


class _GapSolver:
    """Finds the prices at which the gaps between rates are what is wanted.

    The gaps of a block are those of its rates to its largest group.
    """

    def __init__(self, rows: PathRows) -> None:
        self.rows = rows
        total = rows.rates.totals()
        contrasts = []
        for block in rows.rates.blocks:
            first = block.rates[np.argmax(total[block.rates])]
            for rate in block.rates[block.rates != first].tolist():
                one = np.zeros(total.size)
                one[rate], one[first] = 1.0, -1.0
                contrasts.append(one)
        self.contrasts = np.array(contrasts).reshape(-1, total.size)
        self.effects = (self.contrasts @ rows.rates.effects()).T  # (n_samples, n_gaps)
        nobody = rows.rates.of(np.zeros(rows.gains.size, dtype=bool))
        self.fixed = self.contrasts @ nobody
        features = self.contrasts @ rows.directions()
        scale = np.abs(features).max(axis=1, initial=1e-12)
        self.features = features / np.maximum(scale, 1e-12)[:, None]  # (n_gaps, n_features)
        self.directions = np.asarray(rows.shares @ self.features.T)  # (n_samples, n_gaps)

    @property
    def n_gaps(self) -> int:
        return int(self.contrasts.shape[0])

    def wanted(self, free: FloatArray, gap: float) -> FloatArray:
        """Return the gaps if the rates of each block are moved into a window, as little as can be.

        The window's length is ``gap`` times the limit.
        """
        rates, total = free.copy(), self.rows.rates.totals()
        for block in self.rows.rates.blocks:
            rates[block.rates] = _squeezed(block, free[block.rates], total[block.rates], gap)
        return np.asarray(self.contrasts @ rates)

    def prices(self, multipliers: FloatArray, threshold: float) -> FloatArray:
        """Return the prices of the features."""
        found = multipliers @ self.features
        found[self.rows.everyone] += threshold
        return np.asarray(found)

    def solve(
        self,
        start: FloatArray,
        threshold: float,
        target: FloatArray,
        temperatures: tuple[float, ...],
    ) -> FloatArray:
        """Return the multipliers: Newton's method on soft decisions, with halved steps."""
        found = start.copy()
        for temperature in temperatures:
            soft, missed = self._missed(found, threshold, target, temperature)
            for _ in range(_N_NEWTON):
                size = float(np.abs(missed).max(initial=0.0))
                if size < 1e-4:
                    break
                slope = soft * (1 - soft) / temperature
                jacobian = self.effects.T @ (slope[:, None] * self.directions)
                ridge = 1e-3 * np.abs(np.diag(jacobian)).max() + 1e-9
                step = np.linalg.lstsq(
                    np.vstack([jacobian, ridge * np.eye(self.n_gaps)]),
                    np.concatenate([missed, np.zeros(self.n_gaps)]),
                    rcond=None,
                )[0]
                step *= min(1.0, 0.5 / max(float(np.abs(step).max(initial=0.0)), 1e-12))
                for length in (1.0, 0.5, 0.25, 0.1):
                    moved = found + length * step
                    trial, rest = self._missed(moved, threshold, target, temperature)
                    if np.abs(rest).max() < size:
                        break
                else:
                    break
                found, soft, missed = moved, trial, rest
        return found

    def _missed(
        self, multipliers: FloatArray, threshold: float, target: FloatArray, temperature: float
    ) -> tuple[FloatArray, FloatArray]:
        margins = self.rows.gains - threshold - self.directions @ multipliers
        soft = np.asarray(expit(margins / temperature))
        return soft, np.asarray(self.fixed + self.effects.T @ soft - target)


def _squeezed(block: Block, rates: FloatArray, total: FloatArray, gap: float) -> FloatArray:
    """Return rates moved into the window that is nearest to them."""
    length = gap * block.limit
    if block.is_ratio:
        length *= float(np.average(rates, weights=total))
    if length >= np.ptp(rates):
        return rates
    lows = np.concatenate([rates, rates - length, [np.average(rates, weights=total) - length / 2]])
    moved = np.clip(rates[None], lows[:, None], lows[:, None] + length)
    return np.asarray(moved[np.argmin(((moved - rates) ** 2) @ total)])
