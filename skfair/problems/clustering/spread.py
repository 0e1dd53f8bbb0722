"""Origin and unit of the coordinates of points, measured part by part and put together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray


class Spread(NamedTuple):
    """Mean and sum of squared deviations of points, in units of their largest magnitude.

    Squares of 1e200 overflow and those of 1e-200 vanish, hence the units.
    """

    unit: float
    weight: float
    mean: FloatArray
    squares: float

    @classmethod
    def of(cls, X: NDArray[Any], weights: FloatArray) -> Spread:
        """Measure some points."""
        unit = float(np.abs(X).max(initial=0.0)) or 1.0
        part = X.astype(np.float64) / unit
        weight = float(weights.sum())
        mean = weights @ part / (weight or 1.0)
        part -= mean
        return cls(unit, weight, mean, float(weights @ squared_norms(part)))

    @classmethod
    def merged(cls, parts: list[Spread]) -> Spread:
        """Put the measures of parts together (Chan's formula)."""
        unit = max(part.unit for part in parts)
        weights = np.array([part.weight for part in parts])
        means = np.array([part.mean * (part.unit / unit) for part in parts])
        weight = float(weights.sum())
        mean = weights @ means / (weight or 1.0)
        within = sum(part.squares * (part.unit / unit) ** 2 for part in parts)
        return cls(unit, weight, mean, within + float(weights @ squared_norms(means - mean)))

    def units(self) -> tuple[FloatArray, float]:
        """Return the mean, and the root of the mean squared deviation (1 if it is 0)."""
        spread = self.unit * np.sqrt(self.squares / self.weight)
        return self.mean * self.unit, float(spread) or 1.0


def squared_norms(points: NDArray[Any]) -> NDArray[Any]:
    """Return the squared length of each row."""
    return np.asarray(np.einsum("ij,ij->i", points, points))
