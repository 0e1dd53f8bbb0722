"""The judge of decisions: their worth and their disparities, counted on the rows.

With several classes a constraint on selection is kept for each class against the rest. A constraint
on right predictions (accuracy parity) is one constraint for all classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.thresholds.scan import Cut, RateTable
from skfair.utils.rounding import ROUNDING

if TYPE_CHECKING:  # kernels are imported when something is fitted
    from skfair._kernels.decisions import Counted
    from skfair._kernels.thresholds import SortedRows

# With so many rows expected worth is trusted as much as counted worth.
BELIEVED = 6_000


class ClassRule(NamedTuple):
    """A constraint and the decision that it counts as selection: a class; None: the true one."""

    bound: BoundConstraint
    counted: int | None

    @property
    def limits_something(self) -> bool:
        """Whether there are two rates or more to compare, or a cap, which a single rate has."""
        n_rates = np.bincount(self.bound.blocks).max(initial=0)
        return bool(n_rates > 1 or (n_rates and self.bound.comparison.is_cap))


class Verdict(NamedTuple):
    """What decisions are worth on the rows, and by how much they exceed the limits at most."""

    worth: float
    excess: float
    fines: float | None = None  # for missed limits, where these are weighed against worth

    @property
    def is_feasible(self) -> bool:
        """Whether all limits are satisfied."""
        return self.excess <= ROUNDING

    def is_better_than(self, other: Verdict) -> bool:
        """Whether these decisions are to be preferred: kept limits first, then worth.

        Where missed limits are fined, what is worth more after fines is preferred.
        """
        if self.fines is not None and other.fines is not None:
            return self.worth - self.fines > other.worth - other.fines + ROUNDING
        if self.is_feasible and other.is_feasible:
            return self.worth > other.worth + ROUNDING
        return self.excess < other.excess - ROUNDING and not other.is_feasible


class Decisions(NamedTuple):
    """The decision of each row, the cell means of each constraint, and the verdict."""

    predicted: IntArray
    means: Sequence[FloatArray]
    verdict: Verdict


class Scanned(NamedTuple):
    """The best cutoff of a line.

    Attributes
    ----------
    cut : Cut
        Where it is.
    entries : SortedRows
        The rows that it may pass, and what changes if it does.
    means, worth : list of ndarray, float
        Cell means and worth if it passes none.
    fine : float or None
        What a missed limit costs.
    """

    cut: Cut
    entries: SortedRows
    means: list[FloatArray]
    worth: float
    fine: float | None

    @property
    def above(self) -> IntArray:
        """The entries above the cutoff."""
        return self.entries.order[: self.cut.n_above]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the decisions at the cutoff."""
        worth = self.worth + float(self.entries.gains[self.above].sum())
        fines = None if self.fine is None else self.fine * self.cut.missed
        return Verdict(worth, self.cut.excess, fines)

    def means_there(self) -> list[FloatArray]:
        """Return the cell means at the cutoff."""
        above = self.above
        return [
            mean + np.bincount(cells[above], steps[above], mean.size)
            for mean, cells, steps in zip(
                self.means, self.entries.cells, self.entries.steps, strict=True
            )
        ]


class Judge:
    """Counts what decisions do.

    Parameters
    ----------
    rules : sequence of ClassRule
        The constraints.
    classes : ndarray of shape (n_samples,)
        Number of the true class of each row.
    weights : ndarray of shape (n_samples,)
        Weights of the rows. Whole numbers count as so many rows each.
    worth : ndarray of shape (n_classes, n_classes)
        What it is worth to decide for a class (column), given the true one (row): from 0 to 1.

    Attributes
    ----------
    fine : float or None
        What it costs to miss a limit by 1, instead of that limits come before worth.
    """

    fine: float | None = None

    def __init__(
        self,
        rules: Sequence[ClassRule],
        classes: IntArray,
        weights: FloatArray,
        worth: FloatArray,
    ) -> None:
        self.rules = [rule for rule in rules if rule.bound.blocks.size]
        self.classes, self.weights, self.worth = classes, weights / weights.sum(), worth
        is_whole = not np.any(weights % 1)
        self.n_rows = float(weights.sum() if is_whole else np.count_nonzero(weights))
        self.values = worth[classes]  # what each decision counts for, (n_samples, n_classes)
        self.bounds = [rule.bound for rule in self.rules]
        self._table = RateTable(self.bounds)
        self.cells, self.steps, self.starts = self._table.steps_of_rows(classes.size)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.worth.shape[0])

    def means(self, predicted: IntArray) -> list[FloatArray]:
        """Return the cell means of each constraint."""
        chosen = [self.classes if rule.counted is None else rule.counted for rule in self.rules]
        return [
            start + np.bincount(cells, steps * (predicted == label), start.size)
            for label, start, cells, steps in zip(
                chosen, self.starts, self.cells, self.steps, strict=True
            )
        ]

    def disparities(self, predicted: IntArray) -> list[float]:
        """Return the disparity of each constraint."""
        means = self.means(predicted)
        return [bound.disparity_of_means(m) for bound, m in zip(self.bounds, means, strict=True)]

    def expecting(self, chances: FloatArray) -> Judge:
        """Return a judge that goes by expected worth, too, given the probabilities of the classes.

        Rates, and so the limits, are counted as before.
        """
        other = copy(self)
        other.values = self.values + self._belief * (chances @ self.worth - self.values)
        return other

    def believed(self, chances: FloatArray) -> FloatArray:
        """Return how much each row counts for each class where expected worth counts, too."""
        counted = np.eye(self.n_classes)[self.classes]
        return counted + self._belief * (chances - counted)

    @property
    def _belief(self) -> float:
        """How much probabilities count, as much as the classes of ``BELIEVED`` rows.

        The decisions that are best for the true classes of few rows are in part best for the noise
        in them.
        """
        return BELIEVED / (BELIEVED + self.n_rows)

    def valuing(self, worth: FloatArray) -> Judge:
        """Return a judge to whom decisions are worth something else."""
        other = copy(self)
        other.worth, other.values = worth, worth[self.classes]
        return other

    def fining(self, fine: float) -> Judge:
        """Return a judge that weighs missed limits against worth."""
        other = copy(self)
        other.fine = fine
        return other

    def tightened(self, share: float) -> Judge:
        """Return a judge by a share of the limits."""
        other = copy(self)
        other.rules = [
            rule._replace(bound=replace(rule.bound, max_disparity=share * rule.bound.max_disparity))
            for rule in self.rules
        ]
        other.bounds = [rule.bound for rule in other.rules]
        other._table = RateTable(other.bounds)
        return other

    def worth_of(self, predicted: IntArray) -> float:
        """Return what decisions are worth."""
        return float(self.weights @ self.values[np.arange(predicted.size), predicted])

    def __call__(self, predicted: IntArray) -> Verdict:
        """Judge the decision of every row."""
        return self.verdict(self.means(predicted), self.worth_of(predicted))

    def verdict(self, means: Sequence[FloatArray], worth: float) -> Verdict:
        """Judge cell means and worth."""
        disparities = [
            bound.disparity_of_means(m) for bound, m in zip(self.bounds, means, strict=True)
        ]
        over = np.array(disparities) - self._table.bounds
        fines = None if self.fine is None else self.fine * float(np.maximum(over, 0.0).sum())
        return Verdict(worth, float(over.max(initial=-np.inf)), fines)

    def scan(
        self,
        rows: IntArray,
        label: int,
        others: IntArray,
        points: FloatArray,
        now: Decisions,
    ) -> Scanned:
        """Find the best cutoff above which rows are decided for a class.

        Parameters
        ----------
        rows : ndarray
            Rows whose decision depends on the cutoff.
        label : int
            The class.
        others : ndarray
            What these rows are decided for otherwise.
        points : ndarray
            A row is decided for the class if its value here is above the cutoff.
        now : Decisions
            The decisions of all rows before.

        Returns
        -------
        scanned : Scanned
            The best cutoff.
        """
        from skfair._kernels.decisions import exchanged
        from skfair._kernels.thresholds import SortedRows

        order = np.argsort(-points)
        ordered = points[order]
        can_cut = ordered[:-1] - ordered[1:] > ROUNDING * (1.0 + np.abs(ordered[1:]))
        n_rules = len(self.rules)
        gains, steps = np.empty(rows.size), np.empty((n_rules, rows.size))
        cells = np.empty((n_rules, rows.size), np.int64)
        added = np.zeros((n_rules, max((start.size for start in self.starts), default=0)))
        worth = now.verdict.worth + exchanged(
            self._counted, rows, label, others, now.predicted[rows], gains, cells, steps, added
        )
        means = [
            mean + effects[: mean.size] for mean, effects in zip(now.means, added, strict=True)
        ]
        entries = SortedRows(order, can_cut, gains, cells, steps)
        cut = self._table.scan(entries, means, worth, self.fine)
        return Scanned(cut, entries, means, worth, self.fine)

    @property
    def _counted(self) -> Counted:
        from skfair._kernels.decisions import Counted

        selecting = [-1 if rule.counted is None else rule.counted for rule in self.rules]
        rows = self.weights, self.values, self.classes, self.cells, self.steps
        return Counted(*rows, np.array(selecting, dtype=np.int64))


def cuts_of(
    judge: Judge, rows: IntArray, scores: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows by falling score, how many are above each cut between them, and its worth.

    The worth is what the second of two classes adds to that of the first for the rows above.
    """
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    ordered = scores[rows]
    is_cut = np.ones(rows.size + 1, dtype=bool)
    is_cut[1:-1] = ordered[:-1] - ordered[1:] > ROUNDING
    n_above = np.flatnonzero(is_cut)
    gains = judge.weights[rows] * (judge.values[rows, 1] - judge.values[rows, 0])
    return rows, n_above, np.concatenate([[0.0], np.cumsum(gains)])[n_above]
