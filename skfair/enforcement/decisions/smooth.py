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
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from skfair._typing import FloatArray
from skfair.enforcement.decisions.shares import Shares
from skfair.enforcement.strict_evaluation import StrictEvaluation

# Temperatures of the smooth decisions, and the cost c at each. With a cost of 1e2 at first, the
# limits were missed at a low temperature, where the cost has no slope (loans, a selection rate that
# is kept, boosted trees: accuracy 0.731, not 0.740, and other decisions with each seed). A first
# temperature of 0.03 changes 8.3% of the decisions in another deal, 0.05 changes 7.5%.
STAGES = (0.05, 1e3), (0.02, 3e3), (0.01, 1e4)
# Offsets move by at most this much at each stage, which is much as utility is between 0 and 1.
# Without it, the first step of L-BFGS may lead to offsets of 1,000, where the cost has no slope.
_REACH = 1.0
# Parts by which limits are made tighter, one after the other. The first one at which the decisions
# satisfy the limits ends the search, so smaller steps only take more time.
MARGINS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
# Iterations of L-BFGS at each stage. The next stage starts where this one ends, so none has to
# reach an optimum.
_MAX_ITER = 60


@dataclass(frozen=True, eq=False)
class SmoothRows:
    """The rows of a search with two classes, whose counted limits are smooth in the offsets.

    The constraints of ``strict`` must count the second class, and have no quotients.
    """

    strict: StrictEvaluation
    values: FloatArray  # (n_samples, 2): expected utility of each decision
    shares: Shares  # (n_samples, n_features)

    @cached_property
    def leads(self) -> FloatArray:
        """Expected utility of the second decision minus that of the first one, (n_samples,)."""
        return self.values[:, 1] - self.values[:, 0]

    @cached_property
    def gains(self) -> FloatArray:
        """What the second decision about each row adds to the utility, (n_samples,)."""
        return self.strict.weights * (self.strict.values[:, 1] - self.strict.values[:, 0])

    @property
    def n_centers(self) -> int:
        """Number of centres from which lines of constraints are measured."""
        return sum(bound.n_centers for bound in self.strict.rates.bounds)

    def cost(
        self, point: FloatArray, temperature: float, steepness: float, margin: float
    ) -> tuple[float, FloatArray]:
        """Return the cost of offsets and centres, and its gradient.

        Limits are tighter by the part ``margin``.
        """
        offsets, centers = np.split(point, [self.shares.shape[1]])
        chosen = expit((self.leads - self.shares @ offsets) / temperature)
        loss, slope, of_centers = -float(self.gains @ chosen), -self.gains, []
        rates = self.strict.rates
        for bound, start, cells, steps in zip(
            rates.bounds, rates.starts, rates.cells, rates.steps, strict=True
        ):
            own, centers = np.split(centers, [bound.n_centers])
            means = start + np.bincount(cells, steps * chosen, start.size)
            is_centred = bound.centers >= 0
            values = bound.row_values(means)
            values[is_centred] -= own[bound.centers[is_centred]]
            # Limits of caps are near 1, and made tighter by a part of their distance from it. Those
            # on all rows, such as a selection rate, are met by the offset that all rows share.
            part = margin if bound.is_fairness else 0.0
            room = part * min(bound.max_disparity, abs(1 - bound.max_disparity))
            over = np.maximum(values - bound.upper + room, 0.0)
            over -= np.maximum(bound.lower + room - values, 0.0)
            loss += 0.5 * steepness * float(over @ over)
            slope = slope + steepness * (bound.matrix.T @ over)[cells] * steps
            missed = np.bincount(bound.centers[is_centred], over[is_centred], bound.n_centers)
            of_centers.append(-steepness * missed)
        slope = slope * chosen * (1 - chosen) / temperature
        return loss, np.concatenate([-(self.shares.T @ slope), *of_centers])

    def moved(
        self, point: FloatArray, temperature: float, steepness: float, margin: float
    ) -> FloatArray:
        """Return a point of least cost near the given one."""
        offsets = point[: self.shares.shape[1]].tolist()
        bounds = [(own - _REACH, own + _REACH) for own in offsets] + [(0.0, 1.0)] * self.n_centers
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
