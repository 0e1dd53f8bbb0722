"""Constrained ERM with linear scores over rows that lie elsewhere: what travels are sums.

The twin of :class:`skfair.problems.erm.in_memory.LinearConstrainedERM`, so the same solvers run on
it. What rows say about a point is one pass over the blocks, which returns the loss, the means of
the cells, and their gradients: gradients and Jacobians for any multipliers follow from these
without another pass. A second derivative is one more pass, which returns a Gram matrix.

A block is visited in pieces that fit into the cache of a core, so that beside X, which stays in its
own dtype, next to nothing is held.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.constraints.base import Constraint, TrainingRows
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.moments import Moment
from skfair.groups.encoding import GroupEncoding
from skfair.groups.kinds import RowBlock, Training
from skfair.losses import Loss
from skfair.models.linear import LinearScore
from skfair.models.units import Units, column_origin, column_sums, product
from skfair.problems.erm.problem import ConstrainedProblem, Decisions, Matrix, Measured
from skfair.problems.protocol import Batch, Offer
from skfair.utils.history import count_passes
from skfair.utils.partition_tasks import add
from skfair.utils.partitions import Partitions

# Rows of a block that are looked at together: arrays of them stay below the size from which on
# workers give memory back to the system at once, and ask for it again.
PIECE_ROWS = 1 << 13


class LinearScores(NamedTuple):
    """Scores of all rows, as the weights that they are made of."""

    coef: FloatArray
    intercept: float


class Task(NamedTuple):
    """What all blocks have to know: of the problem, and of rows by their kind."""

    loss: Loss
    constraints: list[Constraint]
    n_cells: list[int]
    class_names: tuple[Any, Any]
    groups: GroupEncoding  # of the kinds
    model: LinearScore  # without rows
    targets: FloatArray  # (n_kinds,): -1 and 1
    loss_factors: FloatArray  # (n_kinds,): share of the mean loss that a row of weight 1 has
    cells: IntArray  # (n_constraints, n_kinds): cell in each constraint
    # (n_constraints, n_kinds): share of the mean of its cell that a row of weight 1 has
    cell_factors: FloatArray


@dataclass(eq=False)
class MeasuredBlocks(Measured):
    """What rows in blocks say about a point."""

    mean_loss: float
    loss_gradient: FloatArray  # (n_model_parameters,)
    means: list[FloatArray]
    cell_gradients: list[FloatArray]  # of each constraint, (n_cells, n_model_parameters)
    rows: Partitions
    task: Task
    theta: FloatArray  # of the model
    temperature: float

    def gradient(self, objective: float, pulls: list[FloatArray] | None) -> FloatArray:
        """Return the gradient of objective * mean loss + sum of pulls * means, without a pass."""
        gradient = objective * self.loss_gradient
        for pull, of_cells in zip(pulls or [], self.cell_gradients, strict=False):
            gradient = gradient + pull @ of_cells
        return gradient

    def jacobian(self, k: int, matrix: Matrix) -> FloatArray:
        """Return the gradients of a matrix times the means of constraint k, without a pass."""
        return np.asarray(matrix @ self.cell_gradients[k])

    def hessian(self, pulls: list[FloatArray]) -> FloatArray:
        """Return the second derivative of mean loss + sum of pulls * means: one pass."""
        gram = self.rows.total(_gram, self.task, self.theta, self.temperature, pulls)
        return np.asarray(gram)


class PartitionedERM(ConstrainedProblem):
    """The problem of one fit whose rows lie in blocks."""

    model: LinearScore
    offers: ClassVar[frozenset[Offer]] = frozenset({"hessian"})

    def __init__(
        self,
        training: Training,  # blocks of rows, and the table of their kinds
        targets: FloatArray,  # (n_kinds,): -1 and 1 for each kind
        loss_weights: FloatArray,  # (n_kinds,): weight of each kind in the objective
        constraints: Sequence[Constraint],  # the constraints
        bound: Sequence[BoundConstraint],  # the same constraints, prepared on the table of kinds
        loss: Loss,  # what is averaged in the objective
        class_names: tuple[Any, Any],  # names of the negative and the positive class
        *,
        fit_intercept: bool = True,  # whether the last parameter is an intercept
        alpha: float = 0.0,  # weight of the penalty
    ) -> None:
        self.rows, self.alpha, self.loss = training.rows, alpha, loss
        self.n_samples = self.n_rows = training.n_samples
        shares = loss_weights / loss_weights.sum()
        shape, n_cells = (len(bound), targets.size), [constraint.n_cells for constraint in bound]
        cells = np.array([constraint.cells for constraint in bound], dtype=np.int64).reshape(shape)
        of_rows = [_per_weight(constraint.row_weights, training.weights) for constraint in bound]
        factors = np.array(of_rows, dtype=np.float64).reshape(shape)
        of_loss = _per_weight(shares, training.weights)
        self.model = model = self._empty_model(training, of_loss, fit_intercept)
        self._set_constraints(bound)
        groups, constraints = training.groups, list(constraints)
        self._task = Task(
            loss, constraints, n_cells, class_names, groups, model, targets, of_loss, cells, factors
        )
        self._decided: list[tuple[LinearScores, Decisions]] = []

    def _empty_model(
        self, training: Training, loss_factors: FloatArray, fit_intercept: bool
    ) -> LinearScore:
        """Return the model without rows, in units of all rows."""
        origin = next(of_block for of_block in self.rows.collect(_origin) if of_block is not None)
        first, second = self.rows.total(_moments, origin, loss_factors)
        units = Units.of_sums(origin, first, second, centered=fit_intercept)
        nothing = np.empty((0, training.n_features), training.dtype)
        return LinearScore(nothing, fit_intercept=fit_intercept, units=units)

    def relaxed(self) -> PartitionedERM:
        """Return the problem without its constraints."""
        free = copy.copy(self)
        free._set_constraints([])
        task = self._task
        cells, factors = task.cells[:0], task.cell_factors[:0]
        free._task = task._replace(constraints=[], n_cells=[], cells=cells, cell_factors=factors)
        free._decided = []
        return free

    def with_loss(self, loss: Loss) -> Self:
        """Return the problem with another loss; bounds and temperature are its own."""
        other = super().with_loss(loss)
        other._task = self._task._replace(loss=loss)
        return other

    def _measure(self, w: FloatArray, batch: Batch | None) -> MeasuredBlocks:
        count_passes(1.0)
        loss, gradient, means, of_cells = self.rows.total(
            _evaluate, self._task, w, self.temperature
        )
        asked = self.rows, self._task, w, self.temperature
        return MeasuredBlocks(loss, gradient, means, of_cells, *asked)

    def scores(self, theta: FloatArray) -> LinearScores:
        """Return the weights that the scores are made of."""
        return LinearScores(*self.model.raw(self.model_part(theta)))

    def decide(self, scores: LinearScores) -> Decisions:
        """Read scores strictly: one pass; the last few answers are kept."""
        for known, decisions in self._decided:
            if known.intercept == scores.intercept and np.array_equal(known.coef, scores.coef):
                return decisions
        means, right, positive = self.rows.total(_decide, self._task, scores)
        self._decided = [(scores, Decisions(means, right, positive)), *self._decided[:3]]
        return self._decided[0][1]

    def pass_over(self, function: Any, scores: LinearScores, *shared: Any, combine: Any) -> Any:
        """Combine what ``function(block, task, scores, *shared)`` returns of the blocks."""
        return self.rows.total(function, self._task, scores, *shared, combine=combine)


class Piece:
    """Some rows of a block; what they are to the problem is worked out when it is asked for."""

    def __init__(
        self,
        block: RowBlock,  # the block
        rows: Any,  # which rows of it
        task: Task,  # the problem
    ) -> None:
        self._block, self._rows, self._task = block, rows, task

    @cached_property
    def model(self) -> LinearScore:
        """The model of the rows."""
        whole = self._task.model
        return LinearScore(
            self._block.X[self._rows], fit_intercept=whole.fit_intercept, units=whole.units
        )

    @cached_property
    def _kind(self) -> NDArray[Any]:
        return np.asarray(self._block.kind[self._rows])

    def _weighted(self, factors: FloatArray) -> FloatArray:
        """Return factors of the kinds times the weights of the rows."""
        weights = self._block.weights
        values = np.asarray(factors[self._kind])
        return values if weights is None else np.asarray(values * weights[self._rows])

    @cached_property
    def targets(self) -> FloatArray:
        """-1 and 1."""
        return np.asarray(self._task.targets[self._kind])

    @cached_property
    def loss_weights(self) -> FloatArray:
        """Shares of the rows in the mean loss."""
        return self._weighted(self._task.loss_factors)

    @cached_property
    def constraints(self) -> list[tuple[Moment, IntArray, FloatArray]]:
        """The moment of each constraint on the rows, their cells, and their weights in these."""
        task = self._task
        weights = self._weighted(np.ones(task.targets.size))
        groups = replace(task.groups, codes=task.groups.codes[:, self._kind])
        known = TrainingRows(groups, self.targets, weights, task.loss, task.class_names)
        every = zip(task.constraints, task.cells, task.cell_factors, strict=True)
        return [
            (constraint.moment(known), cells[self._kind], self._weighted(factors))
            for constraint, cells, factors in every
        ]

    def scores(self, scores: LinearScores, step: int = 1) -> FloatArray:
        """Return the scores of the rows (every ``step``-th), as prediction computes them."""
        return product(self.model.X[::step], scores.coef) + scores.intercept


def pieces_of(block: RowBlock, task: Task) -> Iterator[Piece]:
    """Yield the rows of a block piece by piece."""
    for start in range(0, block.n_rows, PIECE_ROWS):
        yield Piece(block, slice(start, start + PIECE_ROWS), task)


def _per_weight(of_kinds: FloatArray, weights: FloatArray) -> FloatArray:
    """Divide by the weight of each kind; rows of kinds without weight count nowhere."""
    return np.where(weights > 0, of_kinds / np.where(weights > 0, weights, 1.0), 0.0)


def _origin(block: RowBlock) -> FloatArray | None:
    return column_origin(block.X) if block.n_rows else None


def _moments(
    block: RowBlock, origin: FloatArray, loss_factors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    weights = block.row_weights() * loss_factors[block.kind]
    return column_sums(block.X, weights, origin)


def _evaluate(block: RowBlock, task: Task, theta: FloatArray, temperature: float) -> Any:
    """Return the loss, its gradient, cell means and their gradients, as sums over the block."""
    p = task.model.n_parameters
    sums: Any = (
        0.0,
        np.zeros(p),
        [np.zeros(n) for n in task.n_cells],
        [np.zeros((n, p)) for n in task.n_cells],
    )
    for piece in pieces_of(block, task):
        scores, tape = piece.model.forward(theta)
        loss, slope, _ = task.loss.parts(scores, piece.targets)
        mean_loss = float(piece.loss_weights @ loss)
        gradient = piece.model.pullback(tape, slope * piece.loss_weights)
        means, gradients = [], []
        for (moment, cells, weights), n_cells in zip(piece.constraints, task.n_cells, strict=True):
            value, slope, _ = moment.parts(scores, temperature)
            means.append(np.bincount(cells, weights * value, n_cells))
            gradients.append(piece.model.pullback_cells(cells, slope * weights, n_cells))
        sums = add([sums, (mean_loss, gradient, means, gradients)])
    return sums


def _gram(
    block: RowBlock, task: Task, theta: FloatArray, temperature: float, pulls: list[FloatArray]
) -> FloatArray:
    """Return the weighted Gram matrix of the second derivative, summed over the block."""
    curvatures, end = np.empty(block.n_rows), 0
    for piece in pieces_of(block, task):
        scores, _ = piece.model.forward(theta)
        weights = task.loss.parts(scores, piece.targets).curvature * piece.loss_weights
        for (moment, cells, of_cells), pull in zip(piece.constraints, pulls, strict=True):
            if pull.any():
                _, _, curvature = moment.parts(scores, temperature)
                weights += curvature * of_cells * pull[cells]
        curvatures[end : end + weights.size] = weights
        end += weights.size
    model = task.model
    whole = LinearScore(block.X, fit_intercept=model.fit_intercept, units=model.units)
    return whole.gram(curvatures)


def _decide(block: RowBlock, task: Task, scores: LinearScores) -> Any:
    """Return strict cell means and the weights of right and of positive rows."""
    sums: Any = ([np.zeros(n) for n in task.n_cells], 0.0, 0.0)
    for piece in pieces_of(block, task):
        values = piece.scores(scores)
        is_positive = values > 0
        means = [
            np.bincount(cells, weights * moment.strict(values), n_cells)
            for (moment, cells, weights), n_cells in zip(
                piece.constraints, task.n_cells, strict=True
            )
        ]
        right = float(piece.loss_weights @ (is_positive == (piece.targets > 0)))
        sums = add([sums, (means, right, float(piece.loss_weights @ is_positive))])
    return sums
