"""Constrained ERM over rows in memory: what they say about a point, whole or in random batches."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.losses import Loss
from skfair.models.base import ScoreModel
from skfair.models.linear import LinearScore
from skfair.problems.erm.batches import BatchSampler
from skfair.problems.erm.problem import ConstrainedProblem, Decisions, Matrix, Measured
from skfair.problems.protocol import Batch, Offer, Product
from skfair.utils.history import count_passes
from skfair.utils.threads import over_blocks

# The least number of rows in a sample: in all, for every parameter, and in every cell.
SAMPLE_ROWS = 2000
SAMPLE_ROWS_PER_PARAMETER = 20
SAMPLE_ROWS_PER_CELL = 50
# Rows per block: what is computed of them stays in the second cache.
BLOCK_ROWS = 1 << 14
DECIDED_ROWS = 1 << 16  # where little is computed, threads wait for each other between blocks
# From this many constraints on, gradients of all cells are cheaper than one pull-back for each.
MANY_CONSTRAINTS = 4


@dataclass(eq=False)
class MeasuredRows(Measured):
    """What rows in memory say about a point: the parts of loss and moments of each row."""

    mean_loss: float
    means: list[FloatArray]
    scores: FloatArray  # (n_batch,)
    model: ScoreModel
    tape: Any  # what the model needs for a pull-back
    rows: IntArray | None  # those of a batch; None for all
    cells: list[IntArray]  # of each constraint, (n_batch,)
    # (n_constraints + 1, n_batch): of the moment of each constraint, and of the loss; weighted
    slopes: FloatArray
    curvatures: FloatArray

    def gradient(self, objective: float, pulls: list[FloatArray] | None) -> FloatArray:
        """Return the gradient of objective * mean loss + sum of pulls * means: one pull-back."""
        return self.model.pullback(self.tape, self._pulled(objective, self.slopes, pulls or []))

    def jacobian(self, k: int, matrix: Matrix) -> FloatArray:
        """Return the gradients of a matrix times the means of constraint k, one per row."""
        cells, slopes = self.cells[k], self.slopes[k]
        n_rows, n_cells = matrix.shape
        if n_rows >= MANY_CONSTRAINTS and self.rows is None and self.model.pulls_back_cells:
            return np.asarray(matrix @ self.model.pullback_cells(cells, slopes, n_cells))
        rows = matrix if isinstance(matrix, np.ndarray) else matrix.toarray()
        pulled = np.empty((n_rows, slopes.size))

        def of_block(start: int, stop: int) -> None:
            part = slice(start, stop)
            for row, out in zip(rows, pulled, strict=True):
                np.multiply(slopes[part], row[cells[part]], out=out[part])

        over_blocks(of_block, slopes.size, BLOCK_ROWS)
        return self.model.pullbacks(self.tape, pulled)

    def hessian(self, pulls: list[FloatArray]) -> FloatArray:
        """Return the second derivative of mean loss + sum of pulls * means, of all rows."""
        return self.model.gram(self._pulled(1.0, self.curvatures, pulls))

    def hessian_product(self, pulls: list[FloatArray]) -> tuple[Product, float]:
        """Return the same as a function, and the mean size of the curvatures."""
        weights = self._pulled(1.0, self.curvatures, pulls)

        def product(vector: FloatArray) -> FloatArray:
            scores, tape = self.model.forward(vector)
            return self.model.pullback(tape, weights * scores)

        return product, float(np.abs(weights).sum())

    def _pulled(
        self, objective: float, derivatives: FloatArray, pulls: list[FloatArray]
    ) -> FloatArray:
        """Return objective * the derivative of the loss + sum of pulls * those of the moments."""
        of_loss: FloatArray = derivatives[-1]
        out = np.empty_like(of_loss)

        def of_block(start: int, stop: int) -> None:
            part = slice(start, stop)
            np.multiply(objective, of_loss[part], out=out[part])
            for of_constraint, pull, cells in zip(derivatives, pulls, self.cells, strict=False):
                if pull.any():
                    out[part] += of_constraint[part] * pull[cells[part]]

        over_blocks(of_block, out.size, BLOCK_ROWS)
        return out


class ConstrainedERM(ConstrainedProblem):
    """The problem of one fit."""

    offers: ClassVar[frozenset[Offer]] = frozenset({"draw"})

    def __init__(
        self,
        model: ScoreModel,  # turns parameters into scores
        loss: Loss,  # what is averaged in the objective
        targets: FloatArray,  # (n_samples,): -1 and 1, or real numbers
        constraints: Sequence[BoundConstraint],  # the constraints
        *,
        # (n_samples,): weights of the rows in the objective; those of the constraints are in
        # the constraints
        sample_weight: FloatArray | None = None,
        alpha: float = 0.0,  # weight of the penalty
    ) -> None:
        self.model, self.loss, self.targets, self.alpha = model, loss, targets, alpha
        n = targets.size
        weights = (
            np.full(n, 1 / n) if sample_weight is None else sample_weight / sample_weight.sum()
        )
        self._set_constraints(constraints)
        self.everything = Batch(
            None, weights, [constraint.row_weights for constraint in self.constraints]
        )
        self._sampler: BatchSampler | None = None  # made when rows are first drawn

    def relaxed(self) -> Self:
        """Return the problem without its constraints."""
        free = copy.copy(self)
        free._set_constraints([])
        free.everything, free._sampler = Batch(None, self.everything.loss_weights, []), None
        return free

    def _measure(self, w: FloatArray, batch: Batch | None) -> MeasuredRows:
        rows, loss_weights, cell_weights = self.everything if batch is None else batch
        count_passes(1.0 if rows is None else rows.size / self.targets.size)
        scores, tape = self.model.forward(w, rows)
        cells = [
            constraint.cells if rows is None else constraint.cells[rows]
            for constraint in self.constraints
        ]
        # One line per constraint, and the last one for the loss.
        slopes, curvatures = np.empty((2, len(self.constraints) + 1, scores.size))

        def of_block(start: int, stop: int) -> tuple[float, list[FloatArray]]:
            part = slice(start, stop)
            own = part if rows is None else rows[part]
            loss = self.loss.parts(scores[part], self.targets[own])
            np.multiply(loss.slope, loss_weights[part], out=slopes[-1, part])
            np.multiply(loss.curvature, loss_weights[part], out=curvatures[-1, part])
            sums = []
            for k, (constraint, weights) in enumerate(
                zip(self.constraints, cell_weights, strict=True)
            ):
                value, slope, curvature = constraint.moment.parts(
                    scores[part], self.temperature, own
                )
                np.multiply(slope, weights[part], out=slopes[k, part])
                np.multiply(curvature, weights[part], out=curvatures[k, part])
                of_cells = np.bincount(cells[k][part], weights[part] * value, constraint.n_cells)
                sums.append(np.asarray(of_cells, dtype=np.float64))
            return float(loss_weights[part] @ loss.value), sums

        mean_loss, means = 0.0, [np.zeros(constraint.n_cells) for constraint in self.constraints]
        for of_loss, of_constraints in over_blocks(of_block, scores.size, BLOCK_ROWS):
            mean_loss += of_loss
            for total, of_constraint in zip(means, of_constraints, strict=True):
                total += of_constraint
        return MeasuredRows(
            mean_loss=mean_loss,
            means=means,
            scores=scores,
            model=self.model,
            tape=tape,
            rows=rows,
            cells=cells,
            slopes=slopes,
            curvatures=curvatures,
        )

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return the scores of all rows."""
        measured = self._measured(self.model_part(theta), at_any_temperature=True)
        return cast(MeasuredRows, measured).scores

    def decide(self, scores: FloatArray) -> Decisions:
        """Read scores strictly: what is reported, and what ``max_disparity`` limits."""
        weights = self.everything.loss_weights

        def of_block(start: int, stop: int) -> tuple[list[FloatArray], float, float]:
            part = slice(start, stop)
            own, is_positive = weights[part], scores[part] > 0
            means = [constraint.strict_sums(scores[part], part) for constraint in self.constraints]
            right = own @ (is_positive == (self.targets[part] > 0))
            return means, float(right), float(own @ is_positive)

        means, shares = (
            [np.zeros(constraint.n_cells) for constraint in self.constraints],
            np.zeros(2),
        )
        for of_constraints, *of_rows in over_blocks(of_block, scores.size, DECIDED_ROWS):
            shares += of_rows
            for total, of_constraint in zip(means, of_constraints, strict=True):
                total += of_constraint
        return Decisions(means, *shares.tolist())

    @property
    def n_cells(self) -> int:
        """Number of cells of all constraints."""
        return sum(constraint.n_cells for constraint in self.constraints)

    def draw(
        self,
        rng: np.random.RandomState,
        n_loss: int,
        n_per_cell: int,
        constraint: int | None = None,
    ) -> Batch:
        """Draw rows for the loss, and equally many rows for every cell of every constraint.

        With a ``constraint`` rows are drawn for its cells only: no other value means anything.
        """
        if self._sampler is None:
            self._sampler = BatchSampler(self.constraints, self.everything.loss_weights)
        cells = None if constraint is None else self.constraint_rows.cells(constraint)
        return self._sampler(rng, n_loss, n_per_cell, cells)


class LinearConstrainedERM(ConstrainedERM):
    """The problem for linear scores, which adds second derivatives and samples of itself."""

    @property
    def offers(self) -> frozenset[Offer]:  # type: ignore[override]
        """Second derivatives, as products where the matrix would take longer."""
        always: frozenset[Offer] = frozenset({"draw", "hessian"})
        return always | {"products"} if self.model.is_wide else always

    @property
    def n_rows(self) -> int:
        """Number of the rows that an evaluation sees."""
        return int(self.everything.loss_weights.size)

    def sampled(self) -> Self | None:
        """Return the problem on a copy of a tenth of its rows; None if they would say too little.

        The rows are the same each time: what begins with them does not depend on a seed.
        """
        n, model = self.n_rows, self.model
        least = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER * self.n_parameters)
        if n // 10 < least or not isinstance(model, LinearScore):
            return None
        rows = np.sort(np.random.RandomState(0).randint(0, n, n // 10))
        weights = self.everything.loss_weights[rows]
        if np.count_nonzero(weights) < SAMPLE_ROWS:
            return None
        for constraint in self.constraints:
            has_weight = constraint.row_weights[rows] > 0
            counts = np.bincount(constraint.cells[rows][has_weight], minlength=constraint.n_cells)
            if counts.min(initial=n) < SAMPLE_ROWS_PER_CELL:
                return None
        few, targets = model.on_rows(rows), self.targets[rows]
        own = [constraint.on_rows(rows) for constraint in self.constraints]
        sample = type(self)(few, self.loss, targets, own, sample_weight=weights, alpha=self.alpha)
        sample.lower, sample.upper = self.lower, self.upper
        sample.temperature = self.temperature
        return sample
