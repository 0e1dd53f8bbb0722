"""Probabilities of classes, corrected for all rows or within each group.

Class weights and models that are too sure of themselves give other numbers than the shares of the
classes, and an objective such as balanced accuracy would weigh the classes a second time. Where
decisions may use the group, a classifier that does not know it gives the average over groups. With
two classes and one threshold for each group that does not matter. With more, offsets need what a
row of its group is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import bisect, minimize
from scipy.special import softmax

from skfair._typing import FloatArray, IntArray

# Smaller probabilities count as this one.
_LEAST = 1e-4
# Rows of a group that are fitted, and the size of coefficients that is worth one of them.
_MOST_ROWS, _SPREAD = 3_000, 1.0


@dataclass(frozen=True, eq=False)
class GroupCorrections:
    """A softmax of linear functions of the log probabilities, for each group that needs it."""

    groups: IntArray  # their numbers; 0 if all rows have the same correction
    is_by_group: bool
    # (n_corrected, n_classes, n_classes): of each log probability (first axis), for each class
    slopes: FloatArray
    offsets: FloatArray  # (n_corrected, n_classes): what is added for each class

    def __call__(self, chances: FloatArray, groups: IntArray | None) -> FloatArray:
        """Return the probabilities of rows, given their groups; other groups keep their own."""
        corrected = chances.copy()
        known = groups if self.is_by_group else np.zeros(chances.shape[0], dtype=np.int64)
        for group, slope, offset in zip(self.groups, self.slopes, self.offsets, strict=True):
            rows = np.flatnonzero(known == group)
            corrected[rows] = softmax(_logs(chances[rows]) @ slope + offset, axis=1)
        return corrected

    def uncorrected(self, threshold: float, group: int) -> float:
        """Return a threshold on probabilities of the second of two classes before correction."""
        which = np.flatnonzero(self.groups == (group if self.is_by_group else 0))
        if not which.size or not 0 < threshold < 1:
            return threshold
        rising = self.slopes[which[0], :, 1] - self.slopes[which[0], :, 0]
        if not (rising[0] <= 0 <= rising[1] and rising.any()):
            raise ValueError(
                "Probabilities of a group are corrected by a formula that does not rise with them, "
                "so decisions are no thresholds on them. Use predict."
            )

        def excess(probability: float) -> float:
            chances = np.array([[1 - probability, probability]])
            return float(self(chances, np.array([group]))[0, 1] - threshold)

        if excess(0.0) >= 0:
            return -np.inf
        return np.inf if excess(1.0) <= 0 else float(bisect(excess, 0.0, 1.0, xtol=1e-15))


def fit_corrections(
    # (n_samples, n_classes): out-of-fold probabilities
    chances: FloatArray,
    # (n_samples,): numbers of the true classes, and of the groups if they may be used
    classes: IntArray,
    groups: IntArray | None,
    n_groups: int,
    weights: FloatArray,
    rng: np.random.RandomState,  # draws the rows of large groups
) -> GroupCorrections | None:
    """Fit the corrections by penalised likelihood; return None if they are not needed.

    One group must clearly need it: its log likelihood gains more than half the number of
    coefficients times the log of its rows. Then the others are, too, that gain more than one for
    each coefficient.
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
    return GroupCorrections(numbers_of_groups, groups is not None, tables[:, :-1], tables[:, -1])


def _fitted(
    logs: FloatArray, classes: IntArray, weights: FloatArray, start: FloatArray
) -> tuple[FloatArray, float]:
    """Return coefficients near the ones that change nothing, and the gain of log likelihood."""
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
    return np.asarray(np.log(np.maximum(chances, _LEAST)))
