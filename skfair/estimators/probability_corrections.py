"""Calibration of probabilities of classes, for all rows together or within each group.

The search of :mod:`skfair.estimators.decisions.solve` calls :func:`fit_corrections` on out-of-fold
probabilities, and the decider applies them to new rows. They are needed for two reasons:

- The probabilities of models with class weights, and of overconfident models, differ from the
  shares of the classes. An objective such as balanced accuracy would then weigh the classes a
  second time.
- A classifier that does not know the group gives the average over the groups. If decisions may use
  the group, and there are more than two classes, offsets need the probabilities within the group.
  (With two classes and one threshold for each group that does not matter.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from skfair._typing import FloatArray, IntArray

# Smaller probabilities are raised to this before their logarithm is taken.
LEAST = 1e-4
# A correction is fitted to at most this many rows of a group.
_MOST_ROWS = 3_000
# Standard deviation of the normal prior of the coefficients. Its mean is the identity, which
# changes nothing.
_SPREAD = 1.0


@dataclass(frozen=True, eq=False)
class ProbabilityCorrections:
    """Corrections of probabilities p to softmax(log(p) @ slopes + offsets), by group.

    Only groups that need a correction have one.
    """

    groups: IntArray  # numbers of the corrected groups; [0] if all rows have the same correction
    is_by_group: bool  # False if all rows have the same correction
    # (n_corrected, n_classes, n_classes): coefficient of each log probability (second axis) for
    # each class (last axis)
    slopes: FloatArray
    offsets: FloatArray  # (n_corrected, n_classes): intercept for each class

    def __call__(self, chances: FloatArray, groups: IntArray | None) -> FloatArray:
        """Return corrected probabilities of rows; groups without a correction are unchanged.

        ``groups`` is only read if corrections are by group, and may be None otherwise.
        """
        corrected = chances.copy()
        known = groups if self.is_by_group else np.zeros(chances.shape[0], dtype=np.int64)
        for group, slope, offset in zip(self.groups, self.slopes, self.offsets, strict=True):
            rows = np.flatnonzero(known == group)
            corrected[rows] = softmax(_logs(chances[rows]) @ slope + offset, axis=1)
        return corrected

    @property
    def is_rising(self) -> bool:
        """Whether, of two classes, each correction rises with the probability of the second."""
        rising = self.slopes[:, :, 1] - self.slopes[:, :, 0]
        is_own = (rising[:, 0] <= 0) & (rising[:, 1] >= 0) & rising.any(axis=1)
        return bool(is_own.all())


def fit_corrections(
    # (n_samples, n_classes): out-of-fold probabilities
    chances: FloatArray,
    # (n_samples,): numbers of the true classes, and of the groups if they may be used
    classes: IntArray,
    groups: IntArray | None,  # None for one correction of all rows; ``n_groups`` is then 1
    n_groups: int,
    weights: FloatArray,
    rng: np.random.RandomState,  # draws the rows of large groups
) -> ProbabilityCorrections | None:
    """Fit the corrections by penalised likelihood; return None if they are not needed.

    They are needed if the log likelihood of one group rises by more than half the number of
    coefficients times the log of its number of rows (as in the Bayesian information criterion).
    Then every group is corrected whose log likelihood rises by more than 1 per coefficient.
    """
    n_classes = chances.shape[1]
    size = n_classes * (n_classes + 1)
    of_groups, numbers, is_needed = [], [], False
    for group in range(n_groups):
        rows = np.flatnonzero(((groups is None) | (groups == group)) & (weights > 0))
        if rows.size > _MOST_ROWS:
            rows = rng.choice(rows, _MOST_ROWS, replace=False)
        if rows.size > size:
            own = weights[rows] / weights[rows].mean()
            start = np.vstack([np.eye(n_classes), np.zeros(n_classes)]).ravel()
            best, gain = _fitted(_logs(chances[rows]), classes[rows], own, start)
            is_needed |= bool(gain > 0.5 * size * np.log(rows.size))
            if gain > size:
                of_groups.append(best.reshape(n_classes + 1, n_classes))
                numbers.append(group)
    if not is_needed:
        return None
    tables = np.array(of_groups).reshape(-1, n_classes + 1, n_classes)
    numbers_of_groups = np.array(numbers, dtype=np.int64)
    return ProbabilityCorrections(
        numbers_of_groups, groups is not None, tables[:, :-1], tables[:, -1]
    )


def _fitted(
    logs: FloatArray, classes: IntArray, weights: FloatArray, start: FloatArray
) -> tuple[FloatArray, float]:
    """Return the coefficients of one correction, and by how much they raise the log likelihood.

    ``start`` are the coefficients that change nothing: a unit matrix above a row of zeros (the
    offsets). The penalty is on the distance from ``start``.
    """
    n, n_classes = logs.shape
    columns = np.vstack([logs.T, np.ones(n)])
    places = classes, np.arange(n)

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        scores = point.reshape(-1, n_classes).T @ columns
        scores -= scores.max(axis=0)
        shares = np.exp(scores)
        total = shares.sum(axis=0)
        away = (point - start) / _SPREAD
        value = -float(weights @ (scores[places] - np.log(total))) + 0.5 * float(away @ away)
        shares *= weights / total
        shares[places] -= weights
        return value, (columns @ shares.T).ravel() + away / _SPREAD

    minimum = minimize(
        evaluate, start, jac=True, method="L-BFGS-B", options={"maxiter": 50, "ftol": 1e-5}
    )
    return np.asarray(minimum.x), float(evaluate(start)[0] - minimum.fun)


def _logs(chances: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(chances, LEAST)))
