"""Constrained ERM over very many dense rows: one pass for values and gradients, and a sample.

A pass reads every row once: its score, its parts of loss and rates, and its share in the gradients
of the loss and of each cell. Nothing is kept of a row but its score. What else a solver needs is
that of a sample of the rows which, at one point, is made to have the values and gradients of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.moments import Rate
from skfair.losses import LogLoss, Loss
from skfair.models.linear import LinearScore
from skfair.problems.erm.in_memory import LinearConstrainedERM, MeasuredRows
from skfair.problems.erm.problem import Last, Matrix, Measured, RiskEvaluation, RuledProblem
from skfair.problems.protocol import Batch, Offer
from skfair.utils.history import count_passes
from skfair.utils.threads import added, over_blocks

# The least number of rows in a sample: in all, for every parameter, and in every cell. It is used
# where there are so many times as many rows.
FEW_ROWS, FEW_ROWS_PER_PARAMETER, FEW_ROWS_PER_CELL = 30_000, 200, 1000
TIMES = 4
# Rows that are read at a time, and their bytes: they are read twice, from the second cache.
_BLOCK_ROWS, _BLOCK_BYTES = 1 << 13, 1 << 21
_PARTS = 24  # of the rows, whose sums are kept apart
# Neighbouring rows whose second derivatives are seen.
_SPAN = 1 << 11


class _Sums(NamedTuple):
    """Sums over the rows of each cell."""

    values: FloatArray  # (n_cells,)
    slopes: FloatArray  # (n_cells,)
    rows: FloatArray  # (n_cells, n_features): slopes times rows


@dataclass(eq=False)
class MeasuredSums(Measured):
    """What all rows say about a point: sums, and the score of each row."""

    mean_loss: float
    means: list[FloatArray]
    scores: FloatArray  # (n_rows,)
    loss_gradient: FloatArray  # (n_parameters,)
    cell_gradients: list[FloatArray]  # of each constraint, (n_cells, n_parameters)

    def gradient(self, objective: float, pulls: list[FloatArray] | None) -> FloatArray:
        """Return the gradient of objective * mean loss + sum of pulls * means."""
        return _pulled(objective * self.loss_gradient, pulls, self.cell_gradients)

    def jacobian(self, k: int, matrix: Matrix) -> FloatArray:
        """Return the gradients of a matrix times the means of constraint k, one per row."""
        return np.asarray(matrix @ self.cell_gradients[k])

    def hessian(self, pulls: list[FloatArray]) -> FloatArray:
        """Refuse: the rows are not kept."""
        raise NotImplementedError("Sums keep no rows; second derivatives come from the sample.")


@dataclass(eq=False)
class MeasuredCorrected(Measured):
    """What a sample says about a point, with linear functions of the parameters added."""

    mean_loss: float
    means: list[FloatArray]
    own: MeasuredRows
    loss_slope: FloatArray  # (n_parameters,): what is added to the gradient of the loss
    curvature: FloatArray  # (n_parameters, n_parameters): and to its second derivative
    cell_slopes: list[FloatArray]  # and to those of the means, (n_cells, n_parameters)

    @property
    def scores(self) -> FloatArray:
        """The scores of the sample."""
        return self.own.scores

    def gradient(self, objective: float, pulls: list[FloatArray] | None) -> FloatArray:
        """Return the gradient of objective * mean loss + sum of pulls * means."""
        total = self.own.gradient(objective, pulls) + objective * self.loss_slope
        return _pulled(total, pulls, self.cell_slopes)

    def jacobian(self, k: int, matrix: Matrix) -> FloatArray:
        """Return the gradients of a matrix times the means of constraint k, one per row."""
        return np.asarray(self.own.jacobian(k, matrix) + matrix @ self.cell_slopes[k])

    def hessian(self, pulls: list[FloatArray]) -> FloatArray:
        """Return the second derivative of mean loss + sum of pulls * means."""
        return self.own.hessian(pulls) + self.curvature


class CorrectedSample(LinearConstrainedERM):
    """The problem on a sample, with the values and gradients of all rows at one point."""

    def __init__(
        self,
        sample: LinearConstrainedERM,
        w: FloatArray,
        of_all: MeasuredSums,
        curvature: FloatArray,  # added to the second derivative of the loss
    ) -> None:
        vars(self).update(vars(sample))
        self._last = Last()
        self._w, self._curvature = w, curvature
        self._own = own = cast(MeasuredRows, sample.measured(w))
        self._loss = (
            of_all.mean_loss - own.mean_loss,
            of_all.loss_gradient - own.gradient(1.0, None),
        )
        self._cells = []
        for k, (means, gradients) in enumerate(
            zip(of_all.means, of_all.cell_gradients, strict=True)
        ):
            slopes = gradients - own.jacobian(k, np.eye(means.size))
            self._cells.append((means - own.means[k], slopes))

    def sampled(self) -> None:
        """Return nothing: it is small, and only asked about near a solution."""

    def _measure(self, w: FloatArray, batch: Batch | None) -> Measured:  # type: ignore[override]
        step = w - self._w
        own = super()._measure(w, batch) if batch is not None or step.any() else self._own
        means = zip(own.means, self._cells, strict=True)
        pull = self._curvature @ step
        return MeasuredCorrected(
            mean_loss=own.mean_loss + self._loss[0] + float((self._loss[1] + 0.5 * pull) @ step),
            means=[mean + value + slopes @ step for mean, (value, slopes) in means],
            own=own,
            loss_slope=self._loss[1] + pull,
            curvature=self._curvature,
            cell_slopes=[slopes for _, slopes in self._cells],
        )


class SummedERM(LinearConstrainedERM):
    """The problem on all rows, and a sample of them."""

    offers: ClassVar[frozenset[Offer]] = frozenset()

    def __init__(self, whole: LinearConstrainedERM, sample: LinearConstrainedERM) -> None:
        vars(self).update(vars(whole))  # the same arrays, and bounds
        self._last = Last()
        self._whole, self._sample = whole, sample

    def relaxed(self) -> SummedERM:
        """Return the problem without its constraints."""
        return SummedERM(self._whole.relaxed(), self._sample.relaxed())

    def sampled(self) -> None:
        """Return nothing: who has this problem has begun with a sample."""

    def with_loss(self, loss: Loss) -> Self:
        """Return the problem with another loss; bounds and temperature are its own."""
        other = super().with_loss(loss)
        other._sample = self._sample.with_loss(loss)
        return other

    def curvature(self, at: RiskEvaluation, multipliers: FloatArray) -> FloatArray:
        """Return what the second derivative of the sample lacks, by ``TIMES`` as many rows.

        They are read where they lie, in spans that are spread evenly: a copy of random rows takes
        longer. With it each sample leads about twice as close to the solution of all rows.
        """
        pulls = self.constraint_rows.pulls(multipliers)
        scores, model = cast(MeasuredSums, at.measured).scores, cast(LinearScore, self.model)
        step = max(1, self.n_rows // (TIMES * self._sample.n_rows))
        n_parts, p = -(-self.n_rows // (step * _SPAN)), model.n_parameters

        def of_part(start: int, stop: int) -> tuple[FloatArray, float]:
            part = slice(start * step * _SPAN, min((start * step + 1) * _SPAN, self.n_rows))
            weights = self.everything.loss_weights[part]
            curved = weights * self.loss.parts(scores[part], self.targets[part]).curvature
            for rule, pull in zip(self.rules, pulls, strict=True):
                _, _, bent = rule.moment.parts(scores[part], self.temperature, part)
                curved += bent * rule.row_weights[part] * pull[rule.cells[part]]
            return model.rough_gram(part, curved), float(weights.sum())

        total, share = np.zeros((p, p)), 0.0
        for gram, weight in over_blocks(of_part, n_parts, 1):
            total += gram
            share += weight
        sample = self._sample.bounded(temperature=self.temperature)
        own = sample.measured(self.model_part(at.theta)).hessian(pulls)
        return np.asarray(total / share - own) if share > 0 else 0.0 * total

    def corrected_sample(
        self, at: RiskEvaluation, curvature: FloatArray | None = None
    ) -> CorrectedSample:
        """Return the sample with the values and gradients that all rows have at a point."""
        sample = self._sample.bounded(temperature=self.temperature)
        of_all, w = cast(MeasuredSums, at.measured), self.model_part(at.theta)
        missing = np.zeros((w.size, w.size)) if curvature is None else curvature
        corrected = CorrectedSample(sample, w, of_all, missing)
        corrected.lower, corrected.upper = self.lower, self.upper
        return corrected

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return the scores of all rows: alone they take a third of a pass."""
        w = self.model_part(theta)
        if np.array_equal(self._last.theta, w):
            return super().scores(theta)
        return self.model.forward(w)[0]

    def _measure(self, w: FloatArray, batch: Batch | None) -> Measured:  # type: ignore[override]
        if batch is not None:
            return super()._measure(w, batch)
        count_passes(1.0)
        coef, intercept = self.model.raw(w)
        scores = np.empty(self.n_rows)
        row_bytes = cast(LinearScore, self.model).X[:1].nbytes
        n_block = min(_BLOCK_ROWS, max(256, 1 << (_BLOCK_BYTES // row_bytes).bit_length() - 1))

        def of_part(start: int, stop: int) -> list[_Sums]:
            sums = self._no_sums()
            for first in range(start, stop, n_block):
                part = slice(first, min(first + n_block, stop))
                self._add_block(part, coef, intercept, scores[part], sums)
            return sums

        parts = over_blocks(of_part, self.n_rows, max(_BLOCK_ROWS, -(-self.n_rows // _PARTS)))
        sums = self._no_sums()
        for own in parts:
            for total, of_block in zip(sums, own, strict=True):
                for whole, of_part_ in zip(total, of_block, strict=True):
                    whole += of_part_
        of_model = cast(LinearScore, self.model)
        gradients = [of_model.standardised_sums(of_mean.rows, of_mean.slopes) for of_mean in sums]
        return MeasuredSums(
            mean_loss=float(sums[0].values[0]),
            means=[of_mean.values for of_mean in sums[1:]],
            scores=scores,
            loss_gradient=gradients[0][0],
            cell_gradients=gradients[1:],
        )

    def _no_sums(self) -> list[_Sums]:
        """Return zeros: those of the loss, whose rows are one cell, then those of constraints."""
        d = cast(LinearScore, self.model).n_features
        sizes = (1, *(rule.n_cells for rule in self.rules))
        return [_Sums(np.zeros(n), np.zeros(n), np.zeros((n, d))) for n in sizes]

    def _add_block(
        self, part: slice, coef: FloatArray, intercept: float, z: FloatArray, sums: list[_Sums]
    ) -> None:
        """Write the scores of a block of rows to ``z`` and add what the rows say to sums."""
        from skfair._kernels.linear import dense_cell_sums, dense_row_scores, dense_two_sums

        X, of_loss = self.model.X[part], sums[0]
        dense_row_scores(X, coef, z)
        z += intercept
        if not self.rules:
            of_loss.rows[0] += self._loss_slopes(part, z, of_loss) @ X
            return
        first, *others = zip(self.rules, sums[1:], strict=True)
        rule, total = first
        if type(self.loss) is LogLoss and type(rule.moment) is Rate:
            slope, slopes = self._logistic_slopes(part, z, of_loss, total)
        else:
            slope = self._loss_slopes(part, z, of_loss)
            slopes = self._rule_slopes(rule, part, z, total)
        order, ends = np.empty(z.size, np.int64), np.empty(rule.n_cells, np.int64)
        lines = of_loss.rows[0], total.rows
        dense_two_sums(X, slope, rule.cells[part], slopes, order, ends, *lines)
        for rule, total in others:
            slopes = self._rule_slopes(rule, part, z, total)
            dense_cell_sums(X, rule.cells[part], slopes, total.rows)

    def _loss_slopes(self, part: slice, z: FloatArray, total: _Sums) -> FloatArray:
        """Return the weighted slopes of the loss of some rows; add it and them to sums."""
        weights, loss = self.everything.loss_weights[part], self.loss.parts(z, self.targets[part])
        slope = np.multiply(loss.slope, weights)
        total.values[0] += weights @ loss.value
        total.slopes[0] += slope.sum()
        return slope

    def _rule_slopes(
        self, rule: BoundConstraint, part: slice, z: FloatArray, total: _Sums
    ) -> FloatArray:
        """Return the weighted slopes of the moments of some rows; add them and these to sums."""
        cells, weights = rule.cells[part], rule.row_weights[part]
        value, slopes, _ = rule.moment.parts(z, self.temperature, part)
        slopes = np.multiply(slopes, weights, out=slopes)
        total.values[:] += np.bincount(cells, weights * value, rule.n_cells)
        total.slopes[:] += np.bincount(cells, slopes, rule.n_cells)
        return slopes

    def _logistic_slopes(
        self, part: slice, z: FloatArray, of_loss: _Sums, of_rule: _Sums
    ) -> tuple[FloatArray, FloatArray]:
        """Do both for log loss and the first constraint, on rates: they share exponentials."""
        from skfair._kernels.linear import logistic_rows

        rule, slopes = self.rules[0], np.empty((2, z.size))
        signs = cast(Rate, rule.moment).signs
        size = np.negative(np.abs(z))
        small = steep = np.exp(size)
        if self.temperature != 1:
            size *= self.temperature
            steep = np.exp(size)
        of_rows = small, np.log1p(small), self.targets[part], self.everything.loss_weights[part]
        of_rates = steep, self.temperature, np.empty(0) if signs is None else signs[part]
        of_cells = rule.cells[part], rule.row_weights[part], of_rule.values, of_rule.slopes
        value, slope = logistic_rows(z, *of_rows, *of_rates, *of_cells, *slopes)
        of_loss.values[0] += value
        of_loss.slopes[0] += slope
        return slopes[0], slopes[1]


def _pulled(
    total: FloatArray, pulls: list[FloatArray] | None, gradients: list[FloatArray]
) -> FloatArray:
    """Add the gradients of cells, each as often as it is pulled."""
    for pull, of_cells in zip(pulls or [], gradients, strict=False):
        total += pull @ of_cells
    return total


def few_rows(problem: RuledProblem) -> LinearConstrainedERM | None:
    """Return a problem of rates on a few dense rows, copied; None if they say too little.

    The rows are the same each time: what begins with them does not depend on a seed.
    """
    if not isinstance(problem, LinearConstrainedERM):
        return None
    n, model = problem.n_rows, cast(LinearScore, problem.model)
    least = max(FEW_ROWS, FEW_ROWS_PER_PARAMETER * problem.n_parameters)
    if TIMES * least > n:
        return None
    is_of_rates = all(rule.moment.is_rate for rule in problem.rules)
    if not problem.rules or not is_of_rates or model.is_sparse or model.is_wide:
        return None
    rarest = 1.0
    for rule in problem.rules:
        rarest = min(rarest, _counted(rule).min(initial=n) / n)
    wanted = max(least, int(FEW_ROWS_PER_CELL / max(rarest, 1 / n)))
    if TIMES * wanted > n:
        return None
    rows = np.sort(np.random.RandomState(0).randint(0, n, wanted))
    if np.count_nonzero(problem.everything.loss_weights[rows]) < least // 2:
        return None
    return problem.on_rows(rows)


def _counted(rule: BoundConstraint) -> IntArray:
    """Return the number of rows with a weight in each cell."""

    def of_block(i: int, j: int) -> IntArray:
        return np.bincount(rule.cells[i:j][rule.row_weights[i:j] > 0], minlength=rule.n_cells)

    return added(of_block, rule.cells.size, np.zeros(rule.n_cells, np.int64))
