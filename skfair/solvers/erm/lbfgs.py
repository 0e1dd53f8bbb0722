"""L-BFGS that keeps its memory between runs, for a function that changes slightly in between.

``al_lbfgs.py`` makes an :class:`LBFGS` and calls :meth:`LBFGS.minimize` after every renewal of the
multipliers. L-BFGS estimates the curvature from pairs of steps and changes of the gradient. The
augmented Lagrangian has nearly the same curvature each time, so the pairs are kept. scipy's L-BFGS
forgets them after every run, and needs two to five times the evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from skfair._typing import FloatArray
from skfair.utils.rounding import LAST_DIGITS

# Wolfe's conditions: a step must bring at least the share _DESCENT of the descent that the slope at
# its start promises, and the slope at its end must be at most the share _SLOPE of that slope.
_DESCENT, _SLOPE = 1e-4, 0.9
_TRIALS = 20  # evaluations per step, at most
_PATIENCE = 30  # a run ends after this many steps in which neither function nor gradient fell


M = TypeVar("M")


class Point(NamedTuple, Generic[M]):
    """A point, and the function and its gradient there."""

    x: FloatArray
    value: float
    gradient: FloatArray
    more: M  # whatever the caller wants to keep of the evaluation

    @property
    def steepness(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


Function = Callable[[FloatArray], Point[M]]


class LBFGS(Generic[M]):
    """Minimiser that keeps its pairs of steps and gradient changes between runs.

    Parameters
    ----------
    memory : int
        Largest number of pairs.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.forget()

    def forget(self) -> None:
        """Remove all pairs."""
        # Pair i is row i of ``_steps`` and of ``_changes``, and entry i of ``_products`` is their
        # inner product. The next pair goes to row ``_n_seen % _memory``.
        self._steps = self._changes = np.empty((0, 0))
        self._products = np.empty(0)
        self._n_seen = 0

    def _remember(self, step: FloatArray, change: FloatArray, product: float) -> None:
        """Store a pair in the place of the oldest, or in new rows as long as there is memory."""
        if self._n_seen == len(self._products) < self._memory:
            n_new = min(max(8, self._n_seen), self._memory - self._n_seen)
            rows = np.empty((n_new, step.size))
            self._steps = np.append(self._steps.reshape(-1, step.size), rows, axis=0)
            self._changes = np.append(self._changes.reshape(-1, step.size), rows, axis=0)
            self._products = np.append(self._products, rows[:, 0])
        row = self._n_seen % self._memory
        self._steps[row], self._changes[row], self._products[row] = step, change, product
        self._n_seen += 1

    def minimize(
        self, function: Function[M], start: Point[M], tol: float, max_iter: int
    ) -> tuple[Point[M], int]:
        """Descend until no entry of the gradient is above ``tol``, or steps bring no progress.

        Parameters
        ----------
        function : callable
            ``function(x) -> Point``.
        start : Point
            Where to start.
        tol : float
            Largest entry of the gradient at which a run ends.
        max_iter : int
            Largest number of steps.

        Returns
        -------
        at : Point
            The last point.
        n_iter : int
            Number of steps.
        """
        at, flattest, lowest, since = start, start.steepness, start.value, 0
        steepness = flattest
        for n_iter in range(max_iter):
            if steepness <= tol or n_iter - since > _PATIENCE:
                return at, n_iter
            new = self._step(function, at)
            if new is None and self._n_seen:
                self.forget()  # the curvature of earlier runs may be wrong by now
                new = self._step(function, at)
            if new is None:
                return at, n_iter
            step, change = new.x - at.x, new.gradient - at.gradient
            product = float(step @ change)
            # Only pairs with positive curvature keep the estimate positive definite.
            if product > np.finfo(float).eps * (change @ change) > 0:
                self._remember(step, change, product)
            steepness = new.steepness
            if steepness < 0.9 * flattest or new.value < lowest:
                flattest, lowest = min(flattest, steepness), min(lowest, new.value)
                since = n_iter
            at = new
        return at, max_iter

    def _direction(self, gradient: FloatArray) -> FloatArray:
        """Return minus the inverse curvature times the gradient, by the two-loop recursion.

        As long as there are no pairs, it is minus the gradient, shortened so that the absolute
        values of its entries add up to at most 1.
        """
        if not self._n_seen:
            return -gradient / max(1.0, float(np.abs(gradient).sum()))
        from skfair._kernels.descent import bend

        d = -gradient
        newest, shares = self._n_seen - 1, np.empty(min(self._n_seen, self._memory))
        bend(self._steps, self._changes, self._products, newest % self._memory, shares, d)
        return d

    def _step(self, function: Function[M], at: Point[M]) -> Point[M] | None:
        """Return a point along the direction that satisfies Wolfe's conditions, or None.

        The step is doubled or shortened until the point satisfies them. If the direction leads
        uphill, or no step is found in ``_TRIALS`` evaluations, the result is None.
        """
        d = self._direction(at.gradient)
        slope = float(at.gradient @ d)
        if not slope < 0:
            return None
        rounding = LAST_DIGITS * max(1.0, abs(at.value))
        step, shortest, longest = 1.0, 0.0, np.inf
        for _ in range(_TRIALS):
            new = function(at.x + step * d)
            new_slope = float(new.gradient @ d)
            is_low = new.value <= at.value + _DESCENT * step * slope
            # If the descent is smaller than rounding, the value cannot show it. A step with a
            # smaller slope then counts as a descent.
            is_low |= new.value <= at.value + rounding and abs(new_slope) <= _SLOPE * abs(slope)
            if not is_low:
                longest = step
            elif new_slope < _SLOPE * slope:
                shortest = step
            else:
                return new
            if longest == np.inf:
                step *= 2.0
            elif shortest == 0.0 and np.isfinite(new.value):
                # The minimum of the parabola with both values and the slope at the start.
                fitted = -0.5 * slope * step**2 / (new.value - at.value - slope * step)
                step = float(np.clip(fitted, 0.1 * step, 0.5 * step))
            else:
                step = 0.5 * (shortest + longest)
        return None
