r"""Empirical risk minimisation under fairness constraints, as a problem for solvers.

.. math:: \min_\theta F(\theta) = \frac{1}{W} \sum_i w_i \ell(z_i, y_i) + \frac{\alpha}{2} |w|^2
   \quad \text{subject to} \quad l \le c(\theta) \le u

with scores z = h_theta(X) and constraints c = B m(theta) - centre (see
:mod:`skfair.constraints.base`; B has a line for each inequality, and m are the means of *cells* of
rows). Estimators make a :class:`ConstrainedERM`, or a :class:`LinearConstrainedERM` for linear
scores, and pass it to a solver. :meth:`ConstrainedERM.evaluate` returns the problem at a point, a
:class:`RiskEvaluation`, from which solvers get values and derivatives.

Everything is a function of the scores. So an evaluation is one pass through the model, and a
gradient is one *pull-back*: the model turns derivatives by scores into derivatives by parameters,
for any multipliers and any number of constraints. A solver sees this problem and never groups,
rows or models. Only the model knows where the columns of the rows are, here or in partitions
elsewhere.

``theta`` holds the parameters of the model and then the centres of the constraints that have them:
free numbers from which rates are measured. Multipliers are signed: positive if the upper bound is
active, negative if the lower one is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint, sums_by_cell
from skfair.losses import Loss
from skfair.models.base import ScoreModel
from skfair.models.linear import LinearScore
from skfair.problems.base import TwoSidedProblem
from skfair.problems.erm.batches import BatchSampler
from skfair.problems.protocol import Batch, Offer, Product
from skfair.utils.history import count_passes
from skfair.utils.threads import over_blocks

# A sample of the rows (:meth:`LinearConstrainedERM.sampled`) must have at least SAMPLE_ROWS rows,
# SAMPLE_ROWS_PER_PARAMETER rows for every parameter, and SAMPLE_ROWS_PER_CELL rows in every cell.
SAMPLE_ROWS = 2000
SAMPLE_ROWS_PER_PARAMETER = 20
SAMPLE_ROWS_PER_CELL = 50
# The largest number of rows in a sample. With it ten million rows take 13 s instead of 25, at the
# same accuracy to 1e-6, and 14 s with twice as many. With equalized odds the time is the same.
MOST_SAMPLE_ROWS = 100_000
# Rows per block of an evaluation, whose intermediate results fit into the second-level cache.
BLOCK_ROWS = 1 << 15
# Rows per block if a row takes so little time that with smaller blocks, threads would mostly wait
# for each other.
FAST_ROWS = 1 << 16
# With at least this many constraints, the gradients of all cells cost less than one pull-back for
# each constraint.
MANY_CONSTRAINTS = 4

Matrix = FloatArray | sparse.csr_array


class Decisions(NamedTuple):
    """The true values of scores, without smoothing."""

    means: list[FloatArray]  # mean of the strict moment of each constraint in every cell
    right: float  # weighted share of the rows whose score has the sign of the target
    positive: float  # weighted share of the rows with a positive score


class ConstraintRows:
    """The inequalities of several constraints, one below the other, as lines of one system."""

    def __init__(self, constraints: list[BoundConstraint]) -> None:
        self.constraints = constraints
        # B of each constraint, (n_lines, n_cells)
        self.matrices = [_dense_if_small(constraint.matrix) for constraint in self.constraints]
        # First line of each constraint, and the number of all lines
        self.starts = np.cumsum([0, *(constraint.upper.size for constraint in self.constraints)])
        self.n = int(self.starts[-1])
        before = np.cumsum([0, *(constraint.n_centers for constraint in self.constraints)])
        self.n_centers = int(before[-1])
        centers = [
            np.where(constraint.centers < 0, -1, constraint.centers + first)
            for constraint, first in zip(self.constraints, before, strict=False)
        ]
        # (n,): number of the centre that a line is measured from; -1 for none
        self.centers = np.concatenate([np.empty(0, np.int64), *centers])
        self._has_center = self.centers >= 0

    def joined(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Return the values of the lines of all constraints as one array."""
        return np.concatenate([np.empty(0), *parts])

    def values(self, means: Sequence[FloatArray], centers: FloatArray) -> FloatArray:
        """Return c = B m - centre, given the cell means of each constraint."""
        values = self.joined([B @ m for B, m in zip(self.matrices, means, strict=True)])
        return values - self._at_rows(centers) if self.n_centers else values

    def pulls(self, multipliers: FloatArray) -> list[FloatArray]:
        """Return B' times the multipliers for each constraint: the weights of its cells."""
        ends = pairwise(self.starts)
        return [
            np.asarray(matrix.T @ multipliers[first:stop])
            for matrix, (first, stop) in zip(self.matrices, ends, strict=True)
        ]

    def cells(self, row: int) -> list[IntArray]:
        """Return the cells that one line depends on, for each constraint.

        Only the constraint that the line belongs to has any.
        """
        none: IntArray = np.empty(0, np.int64)
        k = int(np.searchsorted(self.starts, row, side="right")) - 1
        matrix = self.constraints[k].matrix[[row - self.starts[k]]]
        own = np.asarray(matrix.nonzero()[1], dtype=np.int64)
        return [own if i == k else none for i in range(len(self.constraints))]

    def center_gradient(self, multipliers: FloatArray | None) -> FloatArray:
        """Return the derivative of multipliers' c by the centres, (n_centers,)."""
        if multipliers is None or not self.n_centers:
            return np.zeros(self.n_centers)
        has = self._has_center
        sums = np.bincount(self.centers[has], multipliers[has], self.n_centers)
        return np.asarray(-1.0 * sums)

    def center_jacobian(self, which: IntArray) -> FloatArray:
        """Return the derivative of some lines by the centres, (n_which, n_centers)."""
        belongs = self.centers[which, None] == np.arange(self.n_centers)
        return np.asarray(belongs * -1.0)

    def middles(self, values: FloatArray) -> FloatArray:
        """Return the middle between the largest and the smallest value of each centre's lines."""
        has = self._has_center
        highest = np.full(self.n_centers, -np.inf)
        lowest = np.full(self.n_centers, np.inf)
        np.maximum.at(highest, self.centers[has], values[has])
        np.minimum.at(lowest, self.centers[has], values[has])
        return np.asarray(0.5 * (highest + lowest))

    def from_middles(self, values: FloatArray) -> FloatArray:
        """Return the values of the lines, minus the middle of the lines with the same centre."""
        return values - self._at_rows(self.middles(values)) if self.n_centers else values

    def _at_rows(self, centers: FloatArray) -> FloatArray:
        """Return the centre of each line, or 0 if it has none."""
        return np.where(self._has_center, centers[self.centers], 0.0)


@dataclass(eq=False)
class MeasuredRows:
    """The loss and the moments of each row at a point, for all rows or a batch of n_batch rows."""

    mean_loss: float
    means: list[FloatArray]  # cell means of each constraint
    scores: FloatArray  # (n_batch,)
    model: ScoreModel
    tape: Any  # intermediate results that the model needs for a pull-back
    rows: IntArray | None  # (n_batch,): the rows of a batch; None for all rows
    cells: list[IntArray]  # (n_batch,) for each constraint: cell of each row
    # (n_constraints + 1, n_batch): first derivatives by the score of the row, times the weight of
    # the row. Line k is for the moment of constraint k, and the last line is for the loss
    slopes: FloatArray
    curvatures: FloatArray  # second derivatives in the same form

    def gradient(self, objective: float, pulls: list[FloatArray] | None) -> FloatArray:
        """Return the gradient of objective * mean loss + sum of pulls * means: one pull-back.

        ``pulls`` are weights of the cells of each constraint (:meth:`ConstraintRows.pulls`).
        """
        return self.model.pullback(self.tape, self._pulled(objective, self.slopes, pulls or []))

    def jacobian(self, k: int, matrix: Matrix) -> FloatArray:
        """Return the gradients of ``matrix`` @ (means of constraint k), one for each line of it."""
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

        over_blocks(of_block, slopes.size, FAST_ROWS)
        return self.model.pullbacks(self.tape, pulled)

    def hessian(self, pulls: list[FloatArray]) -> FloatArray:
        """Return the second derivative of mean loss + sum of pulls * means.

        Only linear scores have it: it is X' D X, where D are the curvatures by scores.
        """
        return self.model.gram(self._pulled(1.0, self.curvatures, pulls))

    def hessian_product(self, pulls: list[FloatArray]) -> tuple[Product, float]:
        """Return the product of :meth:`hessian` with a vector as a function, and the sum of |D|."""
        weights = self._pulled(1.0, self.curvatures, pulls)

        def product(vector: FloatArray) -> FloatArray:
            scores, tape = self.model.forward(vector)
            return self.model.pullback(tape, weights * scores)

        return product, float(np.abs(weights).sum())

    def _pulled(
        self, objective: float, derivatives: FloatArray, pulls: list[FloatArray]
    ) -> FloatArray:
        """Return the derivative of the Lagrangian by the score of each row, (n_batch,).

        It is ``objective`` times the derivative of the loss, plus those of all moments, each times
        the pull of the row's cell. ``derivatives`` are ``slopes`` or ``curvatures``.
        """
        of_loss: FloatArray = derivatives[-1]
        out = np.empty_like(of_loss)

        def of_block(start: int, stop: int) -> None:
            part = slice(start, stop)
            np.multiply(objective, of_loss[part], out=out[part])
            for of_constraint, pull, cells in zip(derivatives, pulls, self.cells, strict=False):
                if pull.any():
                    out[part] += of_constraint[part] * pull[cells[part]]

        over_blocks(of_block, out.size, FAST_ROWS)
        return out


@dataclass(eq=False)
class RiskEvaluation:
    """The problem at a point: what :meth:`ConstrainedERM.evaluate` returns to solvers."""

    theta: FloatArray
    objective: float  # F
    constraints: FloatArray  # (n_constraints,): c
    measured: MeasuredRows
    penalty_gradient: FloatArray  # (n_model_parameters,)
    rows: ConstraintRows
    model: ScoreModel
    alpha: float

    def gradient(
        self, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c: one pull-back."""
        pulls = None if multipliers is None else self.rows.pulls(multipliers)
        gradient = self.measured.gradient(objective, pulls)
        if objective:
            gradient = gradient + objective * self.penalty_gradient
        if not self.rows.n_centers:
            return gradient
        return np.concatenate([gradient, self.rows.center_gradient(multipliers)])

    def jacobian(self, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of some constraints (all if None), (n_which, n_parameters)."""
        rows = self.rows
        which = np.arange(rows.n) if which is None else which
        p = self.penalty_gradient.size
        out = np.zeros((which.size, p + rows.n_centers))
        for k, matrix in enumerate(rows.matrices):
            chosen = np.flatnonzero((which >= rows.starts[k]) & (which < rows.starts[k + 1]))
            if chosen.size:
                part = matrix[which[chosen] - rows.starts[k]]
                out[chosen, :p] = self.measured.jacobian(k, part)
        if rows.n_centers:
            out[:, p:] = rows.center_jacobian(which)
        return out

    def hessian(self, multipliers: FloatArray) -> FloatArray:
        """Return the second derivative of the Lagrangian: one weighted Gram matrix."""
        p = self.penalty_gradient.size
        out = np.zeros((self.theta.size, self.theta.size))
        out[:p, :p] = self.measured.hessian(self.rows.pulls(multipliers))
        if self.alpha:
            out[np.arange(p), np.arange(p)] += self.alpha * self.model.penalty_curvature()
        return out

    def hessian_product(self, multipliers: FloatArray) -> tuple[Product, FloatArray]:
        """Return the second derivative of the Lagrangian as a function, and a similar diagonal.

        The diagonal is positive. It would be exact for standardised columns if the curvature of all
        rows were the same.
        """
        p = self.penalty_gradient.size
        of_rows, curvature = self.measured.hessian_product(self.rows.pulls(multipliers))
        penalty = self.alpha * self.model.penalty_curvature()

        def product(vector: FloatArray) -> FloatArray:
            out = np.zeros(vector.size)
            out[:p] = of_rows(vector[:p]) + penalty * vector[:p]
            return out

        diagonal = np.full(self.theta.size, curvature)
        diagonal[:p] += penalty
        return product, diagonal


@dataclass(eq=False)
class Last:
    """A cache of the last pass over all rows, which the views of a problem share."""

    temperature: float = np.nan
    # Parameters of the model, without centres
    theta: FloatArray = field(default_factory=lambda: np.empty(0))
    measured: MeasuredRows | None = None  # None before the first pass
    at: RiskEvaluation | None = None


class ConstrainedERM(TwoSidedProblem):
    """The problem of one fit: a loss, constraints and a model."""

    offers: ClassVar[frozenset[Offer]] = frozenset({"draw"})

    def __init__(
        self,
        model: ScoreModel,  # turns parameters into scores
        loss: Loss,  # what is averaged in the objective
        targets: FloatArray,  # (n_samples,): -1 and 1, or real numbers
        constraints: Sequence[BoundConstraint],
        *,
        # (n_samples,): weights of the rows in the objective; constraints have their own
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
        # Samples of the problem that were made, by the number of the draw; None if too small
        self._samples: dict[int, Self | None] = {}

    def _set_constraints(self, constraints: Sequence[BoundConstraint]) -> None:
        self.constraints = list(constraints)
        self.constraint_rows = ConstraintRows(self.constraints)
        self.temperature = 1.0  # steepness of the smooth rates
        self.n_constraints = self.constraint_rows.n
        self.n_centers = self.constraint_rows.n_centers  # they are the last parameters
        self.n_parameters = self.model.n_parameters + self.n_centers
        self.lower = np.concatenate(
            [np.empty(0), *(constraint.lower for constraint in constraints)]
        )
        self.upper = np.concatenate(
            [np.empty(0), *(constraint.upper for constraint in constraints)]
        )
        self._last = Last()

    def bounded(
        self,
        lower: FloatArray | None = None,
        upper: FloatArray | None = None,
        temperature: float | None = None,
    ) -> Self:
        """Return a view with other bounds or steepness, which shares the data and the last pass."""
        view = super().bounded(lower, upper)
        view.temperature = self.temperature if temperature is None else temperature
        return view

    def with_loss(self, loss: Loss) -> Self:
        """Return the problem with another loss, and the same bounds and temperature."""
        other = copy.copy(self)
        if loss is not self.loss:  # else what was measured last still holds
            other.loss, other._last = loss, Last()
        return other

    def evaluate(self, theta: FloatArray, batch: Batch | None = None) -> RiskEvaluation:
        """Return objective and constraints at a point, by one pass through the model.

        The last pass over all rows is kept, because solvers and their callers ask for the same
        point again. ``batch`` has the rows to evaluate; if it is None, these are all rows.
        """
        theta = np.array(theta, dtype=np.float64)
        p = self.model.n_parameters
        w, centers = theta[:p], theta[p:]
        measured = self._measure(w, batch) if batch is not None else self._measured(w)
        last = self._last.at
        if last and last.measured is measured and np.array_equal(last.theta[p:], centers):
            return last
        half_norm, penalty_gradient = 0.0, np.zeros(w.size)
        if self.alpha:
            half_norm, penalty_gradient = self.model.penalty_parts(w)
        at = RiskEvaluation(
            theta=theta,
            objective=measured.mean_loss + self.alpha * half_norm,
            constraints=self.constraint_rows.values(measured.means, centers),
            measured=measured,
            penalty_gradient=self.alpha * penalty_gradient,
            rows=self.constraint_rows,
            model=self.model,
            alpha=self.alpha,
        )
        if batch is None:
            self._last.at = at
        return at

    def _measured(self, w: FloatArray, *, at_any_temperature: bool = False) -> MeasuredRows:
        """Return the values of all rows, without a pass over them if the last one was at ``w``.

        Values also depend on the temperature, but scores do not. ``at_any_temperature`` says that
        the caller needs the scores only.
        """
        last = self._last
        is_known = at_any_temperature or last.temperature == self.temperature
        is_known = is_known and np.array_equal(last.theta, w)
        if last.measured is None or not is_known:
            last.measured = self._measure(w, None)
            last.temperature, last.theta = self.temperature, w.copy()
        return last.measured

    def sampled(self, draw: int = 0) -> Self | None:
        """Return None: only :class:`LinearConstrainedERM` has samples of its rows."""
        return None

    def start(self, rng: np.random.RandomState) -> FloatArray:
        return self.centered(self.model.start(rng))

    def centered(self, theta: FloatArray) -> FloatArray:
        """Return model parameters with every centre in the middle of the rates around it."""
        theta = np.concatenate([self.model_part(theta), np.zeros(self.n_centers)])
        if self.n_centers:
            middles = self.constraint_rows.middles(self.evaluate(theta).constraints)
            theta[self.model.n_parameters :] = middles
        return theta

    def model_part(self, theta: FloatArray) -> FloatArray:
        """Return the parameters of the model, without centres."""
        return theta[: self.model.n_parameters]

    def constrained(self, constraints: Sequence[BoundConstraint]) -> Self:
        """Return the problem under the same constraints with other limits."""
        other = copy.copy(self)
        other._set_constraints(constraints)
        other._sampler, other._samples = None, {}
        return other

    def relaxed(self) -> Self:
        """Return the problem without constraints."""
        free = copy.copy(self)
        free._set_constraints([])
        free.everything, free._sampler = Batch(None, self.everything.loss_weights, []), None
        known = self._samples.items()
        free._samples = {draw: sample.relaxed() for draw, sample in known if sample is not None}
        return free

    def _measure(self, w: FloatArray, batch: Batch | None) -> MeasuredRows:
        """Make a pass through the model, for a batch or all rows, and return all values."""
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
                own_cells, own_weights = cells[k][part], weights[part]
                sums.append(sums_by_cell(own_cells, own_weights, value, constraint.n_cells))
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
        measured = self._measured(self.model_part(theta), at_any_temperature=True)
        return measured.scores

    def decide(self, scores: FloatArray) -> Decisions:
        """Return the values that scores reach without smoothing, which are reported and limited.

        A row gets the positive decision if its score is above 0.
        """
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
        for of_constraints, *of_rows in over_blocks(of_block, scores.size, FAST_ROWS):
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

        If ``constraint``, the number of an inequality, is given, rows are drawn only for the cells
        that it depends on. An evaluation then has no meaningful values of other inequalities.
        """
        if self._sampler is None:
            self._sampler = BatchSampler(self.constraints, self.everything.loss_weights)
        cells = None if constraint is None else self.constraint_rows.cells(constraint)
        return self._sampler(rng, n_loss, n_per_cell, cells)


class LinearConstrainedERM(ConstrainedERM):
    """The problem for linear scores, which adds second derivatives and samples of itself."""

    @property
    def offers(self) -> frozenset[Offer]:  # type: ignore[override]
        """Batches and second derivatives, and products with these if the model has many columns."""
        always: frozenset[Offer] = frozenset({"draw", "hessian"})
        return always | {"products"} if self.model.is_wide else always

    @property
    def n_rows(self) -> int:
        """Number of the rows that an evaluation sees."""
        return int(self.everything.loss_weights.size)

    def sampled(self, draw: int = 0) -> Self | None:
        """Return the problem on a copy of at most a tenth of its rows; None if these are too few.

        ``draw`` is the seed of the sample. A draw has the same rows each time, so the result of a
        fit does not depend on the ``random_state`` of the user. All views of the problem share the
        copies.
        """
        if draw not in self._samples:
            self._samples[draw] = self._sample(draw)
        sample = self._samples[draw]
        if sample is None:
            return None
        return sample.with_loss(self.loss).bounded(self.lower, self.upper, self.temperature)

    def _sample(self, draw: int) -> Self | None:
        """Make the sample of :meth:`sampled`."""
        n, model = self.n_rows, self.model
        least = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_PARAMETER * self.n_parameters)
        if n // 10 < least or not isinstance(model, LinearScore):
            return None
        n_few = min(n // 10, MOST_SAMPLE_ROWS)
        rows = np.sort(np.random.RandomState(draw).randint(0, n, n_few))
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
        return type(self)(few, self.loss, targets, own, sample_weight=weights, alpha=self.alpha)


def _dense_if_small(matrix: sparse.csr_array) -> Matrix:
    """Return a small matrix, or one that is far from sparse, as an array.

    Setting up a sparse product costs tens of microseconds, and an entry several times a dense one.
    """
    size = float(np.prod(matrix.shape))
    is_dense = size <= 1e4 or (matrix.nnz > 0.2 * size and size <= 1e7)
    return np.asarray(matrix.toarray()) if is_dense else matrix
