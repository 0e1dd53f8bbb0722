"""Constrained ERM over very many dense rows: one pass for values and gradients, curvature of a few.

A pass reads every row once: its score, its parts of loss and rates, and its share in the gradients
of the loss and of each cell. Nothing is kept of a row but its score. Second derivatives are those
of a sample of the rows, which changes the way to a solution, not the solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.losses import Loss
from skfair.models.linear import LinearScore
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.problems.erm.problem import Matrix, Measured, RuledProblem
from skfair.problems.protocol import Batch, Offer
from skfair.utils.history import count_passes
from skfair.utils.threads import over_blocks

# The least number of rows in a sample: in all, for every parameter, and in every cell. It is used
# where there are so many times as many rows.
FEW_ROWS, FEW_ROWS_PER_PARAMETER, FEW_ROWS_PER_CELL = 30_000, 200, 1000
TIMES = 4
# Rows that are read at a time, and parts of the rows whose sums are kept apart.
_BLOCK_ROWS, _PARTS = 1 << 13, 24


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
    cell_gradients: list[FloatArray]  # of each rule, (n_cells, n_parameters)
    sample: LinearConstrainedERM
    w: FloatArray  # the point

    def gradient(self, objective: float, pulls: list[FloatArray] | None) -> FloatArray:
        """Return the gradient of objective * mean loss + sum of pulls * means."""
        total = objective * self.loss_gradient
        for pull, gradients in zip(pulls or [], self.cell_gradients, strict=False):
            total += pull @ gradients
        return np.asarray(total)

    def jacobian(self, k: int, matrix: Matrix) -> FloatArray:
        """Return the gradients of a matrix times the means of rule k, one per row."""
        return np.asarray(matrix @ self.cell_gradients[k])

    def hessian(self, pulls: list[FloatArray]) -> FloatArray:
        """Return the second derivative that the sample has."""
        return self.sample.measured(self.w).hessian(pulls)


class SummedERM(LinearConstrainedERM):
    """The problem on all rows, with the second derivatives of a sample."""

    offers: ClassVar[frozenset[Offer]] = frozenset({"hessian"})

    def __init__(self, whole: LinearConstrainedERM, sample: LinearConstrainedERM) -> None:
        super().__init__(
            whole.model,
            whole.loss,
            whole.targets,
            whole.rules,
            sample_weight=whole.everything.loss_weights,
            alpha=whole.alpha,
        )
        self.lower, self.upper, self.temperature = whole.lower, whole.upper, whole.temperature
        self._whole, self._sample = whole, sample

    def relaxed(self) -> SummedERM:
        """Return the problem without its rules."""
        return SummedERM(self._whole.relaxed(), self._sample.relaxed())

    def sampled(self) -> None:
        """Return nothing: who has this problem has begun with a sample."""

    def with_loss(self, loss: Loss) -> Self:
        """Return the problem with another loss; bounds and temperature are its own."""
        other = super().with_loss(loss)
        other._sample = self._sample.with_loss(loss)
        return other

    def _measure(self, w: FloatArray, batch: Batch | None) -> Measured:  # type: ignore[override]
        if batch is not None:
            return super()._measure(w, batch)
        count_passes(1.0)
        coef, intercept = self.model.raw(w)
        scores = np.empty(self.n_rows)

        def of_part(start: int, stop: int) -> list[_Sums]:
            sums = self._no_sums()
            for first in range(start, stop, _BLOCK_ROWS):
                part = slice(first, min(first + _BLOCK_ROWS, stop))
                self._add_block(part, coef, intercept, scores[part], sums)
            return sums

        parts = over_blocks(of_part, self.n_rows, max(_BLOCK_ROWS, -(-self.n_rows // _PARTS)))
        sums = self._no_sums()
        for own in parts:
            for total, one in zip(sums, own, strict=True):
                for whole, of_part_ in zip(total, one, strict=True):
                    whole += of_part_
        of_model = cast(LinearScore, self.model)
        gradients = [of_model.standardised_sums(one.rows, one.slopes) for one in sums]
        return MeasuredSums(
            mean_loss=float(sums[0].values[0]),
            means=[one.values for one in sums[1:]],
            scores=scores,
            loss_gradient=gradients[0][0],
            cell_gradients=gradients[1:],
            sample=self._sample.bounded(temperature=self.temperature),
            w=w,
        )

    def _no_sums(self) -> list[_Sums]:
        """Return zeros: first those of the loss, whose rows are one cell, then those of rules."""
        d = cast(LinearScore, self.model).n_features
        sizes = (1, *(rule.n_cells for rule in self.rules))
        return [_Sums(np.zeros(n), np.zeros(n), np.zeros((n, d))) for n in sizes]

    def _add_block(
        self, part: slice, coef: FloatArray, intercept: float, z: FloatArray, sums: list[_Sums]
    ) -> None:
        """Write the scores of a block of rows to ``z`` and add what the rows say to sums."""
        from skfair._kernels.linear import dense_cell_sums, dense_row_scores, dense_two_sums

        X, weights = self.model.X[part], self.everything.loss_weights[part]
        dense_row_scores(X, coef, z)
        z += intercept
        loss, of_loss = self.loss.parts(z, self.targets[part]), sums[0]
        slope = np.multiply(loss.slope, weights)
        of_loss.values[0] += weights @ loss.value
        of_loss.slopes[0] += slope.sum()
        if not self.rules:
            of_loss.rows[0] += slope @ X
        for k, (rule, total) in enumerate(zip(self.rules, sums[1:], strict=True)):
            cells, of_rows = rule.cells[part], rule.row_weights[part]
            value, slopes, _ = rule.moment.parts(z, self.temperature, part)
            slopes = np.multiply(slopes, of_rows, out=slopes)
            total.values[:] += np.bincount(cells, of_rows * value, rule.n_cells)
            total.slopes[:] += np.bincount(cells, slopes, rule.n_cells)
            if k:
                dense_cell_sums(X, cells, slopes, total.rows)
            else:
                dense_two_sums(X, slope, cells, slopes, of_loss.rows[0], total.rows)


def few_rows(problem: RuledProblem) -> LinearConstrainedERM | None:
    """Return a problem of rates on a few dense rows, copied; None if they say too little.

    The rows are the same each time: what begins with them does not depend on a seed.
    """
    if not isinstance(problem, LinearConstrainedERM):
        return None
    n, model = problem.n_rows, cast(LinearScore, problem.model)
    is_of_rates = all(rule.moment.is_rate for rule in problem.rules)
    if not problem.rules or not is_of_rates or model.is_sparse or model.is_wide:
        return None
    rarest = 1.0
    for rule in problem.rules:
        counts = np.bincount(rule.cells[rule.row_weights > 0], minlength=rule.n_cells)
        rarest = min(rarest, counts.min(initial=n) / n)
    least = max(FEW_ROWS, FEW_ROWS_PER_PARAMETER * problem.n_parameters)
    wanted = max(least, int(FEW_ROWS_PER_CELL / max(rarest, 1 / n)))
    if TIMES * wanted > n:
        return None
    rows = np.sort(np.random.RandomState(0).randint(0, n, wanted))
    if np.count_nonzero(problem.everything.loss_weights[rows]) < least // 2:
        return None
    return problem.on_rows(rows)
