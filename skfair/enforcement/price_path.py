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
# Leg 1: how many of the rarer decisions are made. Leg 2: gaps in units of their limits.
SHARES = (
    0.03,
    0.05,
    0.07,
    0.1,
    0.13,
    0.17,
    0.21,
    0.26,
    0.32,
    0.4,
    0.48,
    0.56,
    0.64,
    0.73,
    0.82,
    0.91,
)
GAPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
# Steps between two neighbours of leg 2.
_BETWEEN = 5
_N_NEWTON = 12
# Multipliers are in units of worth: a price of 1 decides against certainty.
_PRIOR = 2.0


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
    is_rare : bool
        Whether the second decision is the rarer one, on the path of every fold alike.
    """

    rates: RowRates
    gains: FloatArray
    shares: Shares
    kinds: IntArray
    n_kinds: int
    everyone: IntArray
    is_rare: bool

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
    start = solver.solve(solver.nothing, solver.wanted(free, 0.0), None, TEMPERATURES)
    if _can_shrink(rows.rates):
        full, found = solver.selection_rate(start), start
        for share in SHARES[::-1]:  # from the known solution outwards
            wanted = share * full if rows.is_rare else 1 - share * (1 - full)
            found = solver.solve(found, solver.wanted(free, 0.0), wanted, TEMPERATURES[-1:])
            nodes.append(solver.prices(found))
    leg = [solver.prices(start)]
    found = start
    for gap in GAPS[1:]:
        target = solver.wanted(free, gap)
        if np.abs(target - solver.wanted(free, np.inf)).max(initial=0.0) < 1e-12:
            leg.append(np.zeros(rows.shares.shape[1]))  # gaps are below the limits without prices
            break
        found = solver.solve(found, target, None, TEMPERATURES[-1:])
        leg.append(solver.prices(found))
    # All paths have the same number of steps: a shorter one ends with free decisions.
    leg += [leg[-1]] * (len(GAPS) - len(leg))
    return np.array([*nodes[::-1], *_between(leg, _BETWEEN)])


def full_step(rates: RowRates) -> int:
    """Return the number of the first step of leg 2: everybody is decided, at no gap."""
    return len(SHARES) if _can_shrink(rates) else 0


def _can_shrink(rates: RowRates) -> bool:
    """Whether decisions get fairer, and can be shown to be, if nearly nobody is selected."""
    if any(block.is_ratio for block in rates.blocks):
        return False
    share = rates.of(np.zeros(rates.weights.size, dtype=bool))
    return all(np.ptp(share[block.rates]) < 1e-12 for block in rates.blocks)


def _between(nodes: list[FloatArray], n: int) -> list[FloatArray]:
    """Return the nodes with steps between them on straight lines."""
    steps = [
        left + (right - left) * part / n for left, right in pairwise(nodes) for part in range(n)
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
        n_rows = total * rows.gains.size / max(float(rows.rates.weights.sum()), 1e-300)
        variance = 0.25 / np.maximum(n_rows, 1.0)
        self.errors = np.sqrt(np.abs(self.contrasts) @ variance)  # (n_gaps,)
        self.effects = (self.contrasts @ rows.rates.effects()).T  # (n_samples, n_gaps)
        nobody = rows.rates.of(np.zeros(rows.gains.size, dtype=bool))
        self.fixed = self.contrasts @ nobody
        features = self.contrasts @ rows.directions()
        scale = np.abs(features).max(axis=1, initial=1e-12)
        self.features = features / np.maximum(scale, 1e-12)[:, None]  # (n_gaps, n_features)
        self.directions = np.asarray(rows.shares @ self.features.T)  # (n_samples, n_gaps)

    def wanted(self, free: FloatArray, gap: float) -> FloatArray:
        """Return the gaps if the rates of each block are moved into a window, as little as can be.

        The window's length is ``gap`` times the limit.
        """
        rates, total = free.copy(), self.rows.rates.totals()
        for block in self.rows.rates.blocks:
            rates[block.rates] = _squeezed(block, free[block.rates], total[block.rates], gap)
        return np.asarray(self.contrasts @ rates)

    def prices(self, point: FloatArray) -> FloatArray:
        """Return the prices of the features."""
        found = point[:-1] @ self.features
        found[self.rows.everyone] += point[-1]
        return np.asarray(found)

    @property
    def nothing(self) -> FloatArray:
        """The point of no prices: multipliers, then what all rows pay."""
        return np.zeros(self.contrasts.shape[0] + 1)

    def selection_rate(self, point: FloatArray) -> float:
        """Return the share of the rows that are selected."""
        weights = self.rows.rates.weights
        return float(weights @ (self._margins(point) > 0) / weights.sum())

    def solve(
        self,
        start: FloatArray,
        gaps: FloatArray,
        selected: float | None,
        temperatures: tuple[float, ...],
    ) -> FloatArray:
        """Return the point with these gaps, as far as they are worth it: Gauss-Newton, soft.

        Minimised are the missed gaps in units of their standard errors, and the multipliers in
        units of ``_PRIOR``: what is noise, or takes huge prices, is not chased. If no share of
        selected rows is asked for, what all rows pay stays as it is.
        """
        weights = self.rows.rates.weights / self.rows.rates.weights.sum()
        effects, directions = self.effects, self.directions
        target, scale = gaps - self.fixed, self.errors
        if selected is not None:
            effects = np.hstack([effects, weights[:, None]])
            directions = np.hstack([directions, np.ones((weights.size, 1))])
            target, scale = np.append(target, selected), np.append(scale, 1e-3)
        n, n_gaps, found = target.size, gaps.size, start.copy()
        prior = np.append(np.eye(n_gaps) / _PRIOR, np.zeros((n_gaps, n - n_gaps)), axis=1)
        for temperature in temperatures:

            def missed_at(
                point: FloatArray, temperature: float = temperature
            ) -> tuple[FloatArray, FloatArray, float]:
                soft = expit(self._margins(point) / temperature)
                missed, prices = (effects.T @ soft - target) / scale, point[:-1] / _PRIOR
                return soft, missed, float(missed @ missed + prices @ prices)

            soft, missed, cost = missed_at(found)
            for _ in range(_N_NEWTON):
                slope = soft * (1 - soft) / temperature
                jacobian = effects.T @ (slope[:, None] * directions) / scale[:, None]
                curvature = jacobian.T @ jacobian + prior.T @ prior + 1e-6 * np.eye(n)
                wanted = jacobian.T @ missed - prior.T @ found[:n_gaps] / _PRIOR
                step = np.linalg.solve(curvature, wanted)
                longest = float(np.abs(step).max(initial=0.0))
                step *= min(1.0, 0.3 / max(longest, 1e-12))
                length = 1.0
                while length > 0.1:
                    moved = found.copy()
                    moved[:n] += length * step
                    after = missed_at(moved)
                    if after[2] < cost:
                        break
                    length *= 0.4
                else:
                    break
                found, (soft, missed, cost) = moved, after
                if longest * length < 1e-4:
                    break
        if selected is not None:  # exactly so many, whatever became of the gaps
            found[-1] += np.quantile(self._margins(found), 1 - selected)
        return found

    def _margins(self, point: FloatArray) -> FloatArray:
        return np.asarray(self.rows.gains - point[-1] - self.directions @ point[:-1])


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
