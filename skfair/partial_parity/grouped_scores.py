r"""Linear scores with weights of their own for some groups, partially pooled.

.. math:: z_i = x_i (w + u_{k(i)}) + b + b_{k(i)}

The shared weights w are learned from all rows, and the deviations u_k and b_k of a group from its
rows. Both are penalised, deviations more strongly, so that a small group stays close to the shared
weights. Groups that are too small for deviations u_k still have their own intercept. For two groups
this is the model with cross terms of partial_fairness_idca. The matrix of cross terms is never
built. Instead rows are kept by group, and each group has a :class:`LinearScore`.

The vector of parameters is (w, b, b_1 ... b_G, u_a, u_b, ...) for G groups, where only groups with
deviations have a u. All are for columns standardised over all rows.

:func:`skfair.partial_parity.fitting.make_model` uses the model for ``group_aware=True``, and
predictions call :func:`group_scores` with the weights of each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray, Rows
from skfair.models.base import ScoreModel
from skfair.models.linear import LinearScore
from skfair.models.units import Units, compact_rows, product

# The penalty on a deviation is this many times the penalty on a shared weight. Factors from 10 to
# 100 gain a little accuracy on a9a and lose none on Bank. With 1, groups would hardly be pooled.
POOLING = 10.0


class GroupedLinearScore(ScoreModel):
    """Linear scores with partially pooled weights of groups."""

    has_curvature = True

    def __init__(
        self,
        X: Rows,  # (n_samples, n_features): the rows, float32 or float64
        codes: IntArray,  # (n_samples,): the group of each row
        # For each group, whether its weights deviate from the shared ones
        has_own_weights: Sequence[bool],
        *,
        # (n_samples,): weights of the rows in means and deviations of the columns
        sample_weight: FloatArray | None = None,
    ) -> None:
        X = compact_rows(X)
        self.n_samples, self.n_features = X.shape
        self.n_groups = len(has_own_weights)
        self.own = np.flatnonzero(has_own_weights)  # numbers of the groups with deviations u
        self._codes = codes
        whole = LinearScore(X, sample_weight=sample_weight)
        self.X, self.units = whole.X, whole.units
        # Pairs (rows, their LinearScore), for each group of ``own`` and finally for all other rows.
        parts = [np.flatnonzero(codes == g) for g in self.own]
        parts.append(np.flatnonzero(~np.isin(codes, self.own)))
        self._parts = [(rows, self._block(rows)) for rows in parts]
        d = self.n_features
        self._first_own = d + 1 + self.n_groups
        self.n_parameters = self._first_own + d * self.own.size

    def _block(self, rows: IntArray) -> LinearScore | None:
        """Return linear scores of some rows, standardised by all rows; None if there are none."""
        if not rows.size:
            return None
        block = LinearScore(self.X[rows])
        block.units = self.units
        return block

    def use_units(self, units: Units) -> None:
        """Standardise columns by the units of another model, so that parameters mean the same."""
        self.units = units
        for _, block in self._parts:
            if block is not None:
                block.units = units

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return zeros."""
        return np.zeros(self.n_parameters)

    def group_parameters(self, theta: FloatArray) -> FloatArray:
        """Return the parameters (w + u_k, b + b_k) of every group, (n_groups, n_features + 1)."""
        d = self.n_features
        out = np.tile(theta[: d + 1], (self.n_groups, 1))
        out[:, d] += theta[d + 1 : self._first_own]
        out[self.own, :d] += theta[self._first_own :].reshape(self.own.size, d)
        return out

    def raw(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return weights (n_groups, n_features) and intercepts for columns not standardised."""
        of_groups = self.group_parameters(theta)
        coef = of_groups[:, :-1] / self.scale
        return coef, of_groups[:, -1] - coef @ self.mean

    def standardised(self, coef: Any, intercept: Any) -> FloatArray:
        """Return the parameters of given weights (n_groups, n_features) and intercepts.

        The shared weights are the weights of a group without deviations, or the mean over groups if
        all have deviations.
        """
        coef = np.asarray(coef, dtype=np.float64) * self.scale
        intercept = np.asarray(intercept) + coef @ (self.mean / self.scale)
        theta = np.zeros(self.n_parameters)
        d = self.n_features
        # The groups without weights of their own all have the shared weights.
        others = np.setdiff1d(np.arange(self.n_groups), self.own)
        shared = coef[others[0]] if others.size else coef.mean(axis=0)
        theta[:d], theta[d] = shared, intercept.mean()
        theta[d + 1 : self._first_own] = intercept - intercept.mean()
        theta[self._first_own :] = (coef[self.own] - shared).ravel()
        return theta

    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the scores of all or some rows, and the row numbers for ``pullback``."""
        if rows is not None:
            coef, intercept = self.raw(theta)
            return group_scores(coef, intercept, self.X[rows], self._codes[rows]), rows
        of_groups = self.group_parameters(theta)
        scores = np.empty(self.n_samples)
        for k, (members, block) in enumerate(self._parts):
            if block is None:
                continue
            if k < self.own.size:
                scores[members] = block.forward(of_groups[self.own[k]])[0]
            else:
                shared = np.append(theta[: self.n_features], 0.0)
                scores[members] = block.forward(shared)[0] + of_groups[self._codes[members], -1]
        return scores, None

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``."""
        d = self.n_features
        slopes = self._of_all(tape, slopes)
        out = np.zeros(self.n_parameters)
        for k, (members, block) in enumerate(self._parts):
            if block is None:
                continue
            gradient = block.pullback(None, slopes[members])
            out[: d + 1] += gradient
            if k < self.own.size:
                out[self._own_slice(k)] = gradient[:d]
        of_groups = np.bincount(self._codes, weights=slopes, minlength=self.n_groups)
        out[d + 1 : self._first_own] = of_groups
        return out

    def _of_all(self, tape: IntArray | None, values: FloatArray) -> FloatArray:
        """Return a value for each row: the sum of ``values`` of its entries in ``tape``.

        ``tape`` are row numbers, which may repeat. Rows that are not in it get 0. If it is None,
        ``values`` are for all rows already.
        """
        if tape is None:
            return values
        return np.asarray(np.bincount(tape, weights=values, minlength=self.n_samples), float)

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return the weighted Gram matrix of the design with cross terms, (p, p), not built."""
        d, p = self.n_features, self.n_parameters
        out = np.zeros((p, p))
        for k, (members, block) in enumerate(self._parts):
            if block is None:
                continue
            gram = block.gram(weights[members])
            out[: d + 1, : d + 1] += gram
            if k < self.own.size:
                mine, intercept = self._own_slice(k), d + 1 + self.own[k]
                out[: d + 1, mine] = gram[:, :d]
                out[mine, : d + 1] = gram[:d]
                out[mine, mine] = gram[:d, :d]
                self._put_intercept(out, intercept, gram[:, d])
                out[intercept, mine] = out[mine, intercept] = gram[:d, d]
            else:
                for g in np.unique(self._codes[members]):
                    ones = np.where(self._codes[members] == g, weights[members], 0.0)
                    self._put_intercept(out, d + 1 + g, block.pullback(None, ones))
        return out

    def _put_intercept(self, out: FloatArray, where: int, sums: FloatArray) -> None:
        """Write the row and column of a group's intercept into a Gram matrix.

        ``where`` is its place. ``sums`` are the weighted sums of the columns and of 1.
        """
        d = self.n_features
        out[where, : d + 1] = out[: d + 1, where] = sums
        out[where, where] = sums[d]

    def _own_slice(self, k: int) -> slice:
        """Return the places of the deviation u of the k-th group of ``own`` in the parameters."""
        start = self._first_own + k * self.n_features
        return slice(start, start + self.n_features)

    def rounding(self, theta: FloatArray) -> float:
        """Return the largest difference by rounding of two computations of the same score."""
        coef, intercept = self.raw(theta)
        size = np.abs(coef) @ (np.abs(self.mean) + 4 * self.scale) + np.abs(intercept)
        return 32 * float(np.finfo(np.float64).eps * (1 + size.max()))

    def penalty_parts(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared norm of shared weights and deviations, and its gradient."""
        with np.errstate(over="ignore"):
            gradient = theta * self.penalty_curvature()
            return 0.5 * float(theta @ gradient), gradient

    def penalty_curvature(self) -> FloatArray:
        """Return the diagonal of the penalty's second derivative; b is not penalised."""
        per_weight = 1 / self.scale**2
        d = self.n_features
        free, own = np.zeros(1), np.tile(per_weight, self.own.size)
        return np.concatenate([per_weight[:d], free, np.ones(self.n_groups), POOLING * own])


def group_scores(
    coef: NDArray[Any], intercept: NDArray[Any], X: Rows, codes: IntArray | None
) -> FloatArray:
    """Return the scores of new rows by the weights of their group.

    If there is a single row of weights, it is for all rows, and ``codes`` are not read.
    """
    if coef.shape[0] == 1:
        return product(X, coef[0]) + float(intercept[0])
    scores = np.empty(X.shape[0])
    for g in np.unique(codes):  # type: ignore[arg-type]
        rows = np.flatnonzero(codes == g)
        scores[rows] = product(X[rows], coef[g]) + float(intercept[g])
    return scores
