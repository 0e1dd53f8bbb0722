r"""Offsets near the soft ones at which the limits hold as counted: a smooth search.

The decisions of ``dual.py`` hold still: another seed of the folds hardly changes them. But they
satisfy the limits only in expectation. The best decisions within the limits *as counted* do not
hold still, because very different decisions have nearly the same utility. So for two classes,
:meth:`~skfair.enforcement.decisions.offsets.OffsetSearch.search` goes from the soft decisions to
near ones that satisfy the limits as counted, with the help of :class:`SmoothRows`, and prefers
decisions that agree with the soft ones (``StrictEvaluation.favoured``).

The share of the second decision about a row is a logistic function of its margin, divided by a
temperature. So counted rates, too, are smooth functions of the offsets x, and L-BFGS minimises

.. math:: -\text{utility}(x) + \frac{c}{2} \sum_k \text{excess}_k(x)^2 .

The temperature falls and the cost c rises, and then limits are made tighter until the decisions
themselves satisfy them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from skfair._typing import FloatArray
from skfair.enforcement.decisions.shares import Shares
from skfair.enforcement.strict_evaluation import StrictEvaluation

# Temperatures of the smooth decisions, and the cost c at each.
STAGES = (0.03, 1e2), (0.02, 1e3), (0.01, 1e4)
# Parts by which limits are made tighter, one after the other.
MARGINS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
_MAX_ITER = 60  # iterations of L-BFGS at each stage


@dataclass(frozen=True, eq=False)
class SmoothRows:
    """The rows of a search with two classes, whose counted limits are smooth in the offsets."""

    strict: StrictEvaluation
    leads: FloatArray  # (n_samples,): value of the second decision minus that of the first one
    shares: Shares  # (n_samples, n_features)
    gains: FloatArray  # (n_samples,): utility of the second decision minus that of the first one
    effects: FloatArray  # (n_lines, n_samples): what the second decision adds to the limited lines
    fixed: FloatArray  # (n_lines,): the lines if nobody gets the second decision
    lower: FloatArray  # (n_lines,)
    upper: FloatArray
    # (n_lines,): the limit of each line, or its distance from 1 if that is smaller, as for caps
    room: FloatArray
    centers: FloatArray  # (n_lines, n_centers): 1 if a line is measured from a centre

    @classmethod
    def of(cls, strict: StrictEvaluation, values: FloatArray, shares: Shares) -> SmoothRows:
        """Read the constraints of an evaluation; none may have quotients."""
        rates = strict.rates
        effects, every = [], np.arange(rates.classes.size)
        for k, bound in enumerate(rates.bounds):
            of_rates = np.asarray(bound.of_rates.dot(rates.added(k, bound.rates, every)))
            of_overall = bound.of_overall.dot(rates.added(k, bound.overall, every))
            effects.append(of_rates + of_overall)
        fixed = [b.row_values(start) for b, start in zip(rates.bounds, rates.starts, strict=True)]
        n_centers = [bound.n_centers for bound in rates.bounds]
        centers = np.zeros((sum(map(len, fixed)), sum(n_centers)))
        line = column = 0
        for bound, n in zip(rates.bounds, n_centers, strict=True):
            which = np.flatnonzero(bound.centers >= 0)
            centers[line + which, column + bound.centers[which]] = 1.0
            line, column = line + bound.centers.size, column + n
        return cls(
            strict,
            values[:, 1] - values[:, 0],
            shares,
            strict.weights * (strict.values[:, 1] - strict.values[:, 0]),
            np.vstack(effects),
            np.concatenate(fixed),
            np.concatenate([bound.lower for bound in rates.bounds]),
            np.concatenate([bound.upper for bound in rates.bounds]),
            np.concatenate(
                [
                    np.full(b.upper.size, min(b.max_disparity, abs(1 - b.max_disparity)))
                    for b in rates.bounds
                ]
            ),
            centers,
        )

    def cost(
        self, point: FloatArray, temperature: float, steepness: float, margin: float
    ) -> tuple[float, FloatArray]:
        """Return the cost of offsets and centres, and its gradient.

        Limits are tighter by the part ``margin``.
        """
        n_features = self.shares.shape[1]
        offsets, middle = point[:n_features], point[n_features:]
        chosen = expit((self.leads - self.shares @ offsets) / temperature)
        values = self.fixed + self.effects @ chosen - self.centers @ middle
        above = np.maximum(values - self.upper + margin * self.room, 0.0)
        below = np.maximum(self.lower + margin * self.room - values, 0.0)
        over = above - below
        loss = 0.5 * steepness * float(over @ over) - float(self.gains @ chosen)
        slope = steepness * (over @ self.effects) - self.gains
        slope *= chosen * (1 - chosen) / temperature
        gradient = [-(self.shares.T @ slope), -steepness * (self.centers.T @ over)]
        return loss, np.concatenate(gradient)

    def moved(
        self, point: FloatArray, temperature: float, steepness: float, margin: float
    ) -> FloatArray:
        """Return a point of least cost near the given one."""
        n_features = self.shares.shape[1]
        bounds = [(None, None)] * n_features + [(0.0, 1.0)] * (point.size - n_features)
        found = minimize(
            self.cost,
            point,
            (temperature, steepness, margin),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": _MAX_ITER},
        )
        return np.asarray(found.x)
