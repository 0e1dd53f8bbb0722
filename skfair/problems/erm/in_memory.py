r"""Empirical risk minimisation under fairness rules: what a solver may ask.

.. math:: \min_\theta F(\theta) = \frac{1}{W} \sum_i w_i \ell(z_i, y_i) + \frac{\alpha}{2} |w|^2
   \quad \text{subject to} \quad l \le c(\theta) \le u

with scores z = h_theta(X) and constraints c = B m(theta) - centre (see
:mod:`skfair.constraints.base`). Everything is a function of the scores, so an evaluation is one
pass through the model and a gradient, for any multipliers and any number of constraints, one
pull-back. A solver sees this class and never groups, rows or models.

Stochastic solvers pass a :class:`Batch`, which says which rows stand for the loss and which for
each cell; without one, all rows do.

``theta`` holds the parameters of the model and then the centres of the rules that have them.
Multipliers are signed: positive where the upper bound presses, negative where the lower one does.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.losses import Loss
from skfair.models.base import ScoreModel
from skfair.models.linear import MANY_COLUMNS, LinearScore
from skfair.problems.erm.problem import Decisions, RuledProblem

# The least number of rows in a sample: in all, for every parameter, and in every cell.
SAMPLE_ROWS = 2000
SAMPLE_ROWS_PER_PARAMETER = 20
SAMPLE_ROWS_PER_CELL = 50


class Batch(NamedTuple):
    """Some rows and what they stand for.

    Attributes
    ----------
    rows : ndarray of shape (n_batch,) or None
        Row numbers; None for all rows.
    loss_weights : ndarray of shape (n_batch,)
        Weights of the rows in the mean loss; they add up to 1, or are all 0.
    cell_weights : list of ndarray of shape (n_batch,)
        For each rule, weights of the rows in the mean of their cell.
    """

    rows: IntArray | None
    loss_weights: FloatArray
    cell_weights: list[FloatArray]


@dataclass(eq=False)
class Evaluation:
    """The problem at a point: values, and what gradients are made of."""

    theta: FloatArray
    objective: float
    constraints: FloatArray  # (n_constraints,)
    batch: Batch
    tape: Any
    loss_slope: FloatArray  # (n_batch,) weighted
    loss_curvature: FloatArray  # (n_batch,) weighted
    moment_slopes: list[FloatArray]  # of each rule, weighted
    moment_curvatures: list[FloatArray]
    penalty_gradient: FloatArray
    scores: FloatArray  # (n_batch,)


class ConstrainedERM(RuledProblem):
    """The problem of one fit.

    Parameters
    ----------
    model : ScoreModel
        Turns parameters into scores.
    loss : Loss
        What is averaged in the objective.
    targets : ndarray of shape (n_samples,)
        -1 and 1, or real numbers.
    constraints : sequence of BoundConstraint
        The rules.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows in the objective; those of the rules are in the rules.
    alpha : float, default=0.0
        Weight of the penalty.

    """

    def __init__(
        self,
        model: ScoreModel,
        loss: Loss,
        targets: FloatArray,
        constraints: Sequence[BoundConstraint],
        *,
        sample_weight: FloatArray | None = None,
        alpha: float = 0.0,
    ) -> None:
        self.model = model
        self.loss = loss
        self.targets = targets
        self.alpha = alpha
        self._last: tuple[float, Evaluation] | None = None
        n = targets.size
        weights = (
            np.full(n, 1 / n) if sample_weight is None else sample_weight / sample_weight.sum()
        )
        self._set_rules(constraints)
        self.everything = Batch(None, weights, [rule.row_weights for rule in self.rules])
        self._samplers: list[_Sampler] | None = None  # made when rows are first drawn

    def relaxed(self) -> ConstrainedERM:
        """Return the problem without its rules."""
        return type(self)(
            self.model,
            self.loss,
            self.targets,
            [],
            sample_weight=self.everything.loss_weights,
            alpha=self.alpha,
        )

    def with_loss(self, loss: Loss) -> Self:
        """Return the problem with another loss; bounds and temperature are its own."""
        other = copy.copy(self)
        if loss is not self.loss:  # else the last evaluation still holds
            other.loss, other._last = loss, None
        return other

    def evaluate(self, theta: FloatArray, batch: Batch | None = None) -> Evaluation:
        """Evaluate objective and constraints: one pass through the model.

        The last evaluation on all rows is kept: solvers and those who call them ask again.
        """
        if batch is not None:
            return self._evaluated(theta, batch)
        last = self._last
        if last is None or last[0] != self.temperature or not np.array_equal(last[1].theta, theta):
            at = self._evaluated(np.array(theta, dtype=np.float64), self.everything)
            self._last = last = (self.temperature, at)
        return last[1]

    def _evaluated(self, theta: FloatArray, batch: Batch) -> Evaluation:
        rows = batch.rows
        scores, tape = self.model.forward(self.model_part(theta), rows)
        targets = self.targets if rows is None else self.targets[rows]
        # Parts are new arrays, so they are weighted in place: memory counts with a million rows.
        loss, loss_slope, loss_curvature = self.loss.parts(scores, targets)
        mean_loss = float(batch.loss_weights @ loss)
        loss_slope *= batch.loss_weights
        loss_curvature *= batch.loss_weights
        del loss
        half_norm, penalty_gradient = 0.0, np.zeros(self.model.n_parameters)
        if self.alpha:
            half_norm, penalty_gradient = self.model.penalty_parts(self.model_part(theta))
        values: list[FloatArray] = [np.empty(0)]
        slopes: list[FloatArray] = []
        curvatures: list[FloatArray] = []
        for rule, matrix, weights in zip(
            self.rules, self._matrices, batch.cell_weights, strict=True
        ):
            value, slope, curvature = rule.moment.parts(scores, self.temperature, rows)
            cells = rule.cells if rows is None else rule.cells[rows]
            slope *= weights
            curvature *= weights
            means = np.bincount(cells, weights=weights * value, minlength=rule.n_cells)
            values.append(matrix @ means)
            slopes.append(slope)
            curvatures.append(curvature)
        return Evaluation(
            theta=theta,
            objective=mean_loss + self.alpha * half_norm,
            constraints=np.concatenate(values) - self._center_values(theta),
            batch=batch,
            tape=tape,
            loss_slope=loss_slope,
            loss_curvature=loss_curvature,
            moment_slopes=slopes,
            moment_curvatures=curvatures,
            penalty_gradient=self.alpha * penalty_gradient,
            scores=scores,
        )

    def gradient(
        self, at: Evaluation, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c: one pull-back."""
        slopes = objective * at.loss_slope
        if multipliers is not None:
            for k, rule in enumerate(self.rules):
                pull = self._pull(k, multipliers)
                cells = rule.cells if at.batch.rows is None else rule.cells[at.batch.rows]
                slopes = slopes + at.moment_slopes[k] * pull[cells]
        gradient = self.model.pullback(at.tape, slopes)
        if objective:
            gradient = gradient + objective * at.penalty_gradient
        if not self.n_centers:
            return gradient
        return np.concatenate([gradient, self._center_gradient(multipliers)])

    def jacobian(self, at: Evaluation, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of some constraints (all if None), (n_which, n_parameters)."""
        which = np.arange(self.n_constraints) if which is None else which
        out = np.zeros((which.size, self.n_parameters))
        of_model = out[:, : self.model.n_parameters]
        for k, rule in enumerate(self.rules):
            chosen = np.flatnonzero((which >= self._starts[k]) & (which < self._starts[k + 1]))
            if chosen.size:
                matrix = self._matrices[k][which[chosen] - self._starts[k]]
                of_model[chosen] = self._rule_jacobian(at, k, rule, matrix)
        has = np.flatnonzero(self._centers[which] >= 0)
        out[has, self.model.n_parameters + self._centers[which][has]] = -1.0
        return out

    def _rule_jacobian(
        self, at: Evaluation, k: int, rule: BoundConstraint, matrix: Any
    ) -> FloatArray:
        """Return the gradients of some rows of one rule."""
        rows = at.batch.rows
        cells = rule.cells if rows is None else rule.cells[rows]
        if matrix.shape[0] >= MANY_COLUMNS and rows is None and isinstance(self.model, LinearScore):
            of_cells = self.model.pullback_cells(cells, at.moment_slopes[k], rule.n_cells)
            return np.asarray(matrix @ of_cells)
        slopes = at.moment_slopes[k]
        rows_of_matrix = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        return np.stack(
            [self.model.pullback(at.tape, slopes * row[cells]) for row in rows_of_matrix]
        )

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return the scores of all rows."""
        return self.evaluate(theta).scores

    def decide(self, scores: FloatArray) -> Decisions:
        """Read scores strictly: what is reported, and what ``max_disparity`` bounds."""
        weights, is_positive = self.everything.loss_weights, scores > 0
        return Decisions(
            [rule.means(rule.moment.strict(scores)) for rule in self.rules],
            float(weights @ (is_positive == (self.targets > 0))),
            float(weights @ is_positive),
        )

    @property
    def positive_share(self) -> float:
        """Weighted share of the rows with a positive target."""
        return float(self.everything.loss_weights @ (self.targets > 0))

    def draw(self, rng: np.random.RandomState, n_loss: int, n_per_cell: int) -> Batch:
        """Draw rows for the loss, and equally many rows for every cell of every rule.

        Rows are drawn with replacement in proportion to their weights, so a batch is an unbiased
        sample of the mean loss and of every cell mean. Where the rows of the cells of a rule are
        already as good a (stratified) sample of the loss as ``n_loss`` rows, no others are drawn.
        """
        if self._samplers is None:
            weights = self.everything.loss_weights
            self._all_rows = _Sampler(np.zeros(weights.size, np.int64), weights, 1)
            self._samplers = [_Sampler(r.cells, r.row_weights, r.n_cells) for r in self.rules]
            self._masses: list[Any] = [_masses(rule, weights) for rule in self.rules]
        stand_in = self._stand_in(n_loss, n_per_cell)
        n_own = n_loss if stand_in is None else 0
        parts = [self._all_rows(rng, n_own)] + [draw(rng, n_per_cell) for draw in self._samplers]
        rows = np.concatenate(parts)
        loss_weights, cell_weights = np.zeros(rows.size), []
        loss_weights[:n_own] = 1 / max(n_own, 1)
        for k, (start, stop) in enumerate(pairwise(np.cumsum([part.size for part in parts]))):
            weights = np.zeros(rows.size)
            weights[start:stop] = 1 / max(n_per_cell, 1)
            cell_weights.append(weights)
            if k == stand_in:
                loss_weights[start:stop] = np.repeat(self._masses[k] / n_per_cell, n_per_cell)
        return Batch(rows, loss_weights, cell_weights)

    def _stand_in(self, n_loss: int, n_per_cell: int) -> int | None:
        """Return a rule whose rows say at least as much of the loss as ``n_loss`` rows would."""
        for k, masses in enumerate(self._masses):
            if masses is not None and n_loss and n_per_cell / (masses @ masses) >= n_loss:
                return k
        return None


class LinearConstrainedERM(ConstrainedERM):
    """The problem for linear scores, which adds second derivatives and samples of itself."""

    model: LinearScore

    def hessian(self, at: Evaluation, multipliers: FloatArray) -> FloatArray:
        """Return the second derivative of the Lagrangian: one weighted Gram matrix."""
        weights, rows = at.loss_curvature, at.batch.rows
        for k, rule in enumerate(self.rules):
            pull = self._pull(k, multipliers)
            if pull.any():
                cells = rule.cells if rows is None else rule.cells[rows]
                weights = weights + at.moment_curvatures[k] * pull[cells]
        p = self.model.n_parameters
        out = np.zeros((self.n_parameters, self.n_parameters))
        out[:p, :p] = self.model.gram(weights, at.tape)
        out[np.arange(p), np.arange(p)] += self.alpha * self.model.penalty_curvature()
        return out

    @property
    def n_rows(self) -> int:
        """Number of the rows that an evaluation sees."""
        return int(self.everything.loss_weights.size)

    def sampled(self) -> LinearConstrainedERM | None:
        """Return the problem on about a tenth of its rows; None if they would say too little.

        The rows are the same each time: what begins with them does not depend on a seed.
        """
        whole, n = self.everything, self.n_rows
        least = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER * self.n_parameters)
        if n // 10 < least or not isinstance(self.model, LinearScore):
            return None  # models of groups take as long for a few rows as for all
        chosen = np.sort(np.random.RandomState(0).randint(0, n, n // 10))
        rows = chosen if whole.rows is None else whole.rows[chosen]
        loss_weights = whole.loss_weights[chosen]
        if np.count_nonzero(loss_weights) < SAMPLE_ROWS:
            return None
        cell_weights = []
        for rule, weights in zip(self.rules, whole.cell_weights, strict=True):
            cells, weights = rule.cells[rows], weights[chosen]
            counts = np.bincount(cells[weights > 0], minlength=rule.n_cells)
            if counts.min(initial=n) < SAMPLE_ROWS_PER_CELL:
                return None
            cell_weights.append(weights / np.bincount(cells, weights, rule.n_cells)[cells])
        sample = type(self)(self.model, self.loss, self.targets, self.rules, alpha=self.alpha)
        sample.lower, sample.upper = self.lower, self.upper
        sample.temperature = self.temperature
        sample.everything = Batch(rows, loss_weights / loss_weights.sum(), cell_weights)
        return sample


def _masses(rule: BoundConstraint, loss_weights: FloatArray) -> FloatArray | None:
    """Return the share of the loss that each cell has, if the rule weighs rows as the loss does."""
    masses = np.bincount(rule.cells, loss_weights, rule.n_cells).astype(np.float64)
    by_rule = masses[rule.cells] * rule.row_weights
    return masses if np.allclose(by_rule, loss_weights, rtol=1e-9, atol=0.0) else None


class _Sampler:
    """Draws rows of every cell in proportion to their weights, with replacement."""

    def __init__(self, cells: IntArray, weights: FloatArray, n_cells: int) -> None:
        counted = np.flatnonzero(weights > 0)
        self._order = counted[np.argsort(cells[counted], kind="stable")]
        self._sizes = np.bincount(cells[counted], minlength=n_cells)
        self._first = np.concatenate([[0], np.cumsum(self._sizes)[:-1]])
        ordered = weights[self._order]
        is_even = np.array_equal(ordered, np.repeat(ordered[self._first], self._sizes))
        self._running = None if is_even else np.cumsum(ordered)

    def __call__(self, rng: np.random.RandomState, per_cell: int) -> IntArray:
        marks = rng.random_sample((self._sizes.size, per_cell))
        if self._running is None:
            places = self._first[:, None] + (marks * self._sizes[:, None]).astype(np.int64)
            return np.asarray(self._order[places.ravel()])
        last = self._first + self._sizes - 1
        below = np.where(self._first > 0, self._running[self._first - 1], 0.0)
        marks = below[:, None] + marks * (self._running[last] - below)[:, None]
        found = np.searchsorted(self._running, marks.ravel(), side="right")
        found = np.clip(found, np.repeat(self._first, per_cell), np.repeat(last, per_cell))
        return np.asarray(self._order[found])
