"""Exact line searches: an offset moves, and every cutoff at which decisions change is evaluated."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, along, by_column, margins
from skfair.enforcement.strict_evaluation import Decisions, StrictEvaluation, Verdict, shift_at
from skfair.utils.rounding import ROUNDING

# Rows that a line search sorts, the nearest ones: once the limits are satisfied, and before.
NEAR, MOST_SORTED = 4_000, 40_000
# The cost of visiting a row of a line, in units of sorting and evaluating one.
_VISITED = 0.1


class Candidate:
    """Offsets, the decisions that they make, and the verdict on these.

    Parameters
    ----------
    strict : StrictEvaluation
        Utility and limits, counted on the rows.
    values : ndarray of shape (n_samples, n_classes)
        Expected utility of each decision.
    shares : Shares
        What rows are expected to add to rates.
    offsets : ndarray of shape (n_features, n_classes)
        The offsets.
    columns : Shares, default=None
        The shares by column, if they are known.
    """

    def __init__(
        self,
        strict: StrictEvaluation,
        values: FloatArray,
        shares: Shares,
        offsets: FloatArray,
        columns: FloatArray | sparse.csc_array | None = None,
    ) -> None:
        self.strict, self.values, self.shares, self.offsets = strict, values, shares, offsets.copy()
        self.columns = by_column(shares) if columns is None else columns
        self.margins = margins(values, shares, offsets)
        predicted = decided(self.margins)
        means = strict.rates.means(predicted)
        verdict = strict.verdict(means, strict.utility_of(predicted))
        self.decisions = Decisions(predicted, means, verdict)

    @property
    def predicted(self) -> IntArray:
        return self.decisions.predicted

    @property
    def verdict(self) -> Verdict:
        return self.decisions.verdict

    def at(self, offsets: FloatArray, strict: StrictEvaluation | None = None) -> Candidate:
        """Return other offsets for the same rows, perhaps under other limits or penalties."""
        return Candidate(strict or self.strict, self.values, self.shares, offsets, self.columns)

    def verdict_of(self, strict: StrictEvaluation) -> Verdict:
        """Return the verdict on the decisions under other limits or penalties."""
        return strict.verdict(self.decisions.means, self.verdict.merit)

    def exchange(self, label: int, which: IntArray, n_near: int = MOST_SORTED) -> float:
        """Exchange decisions for a class with others by its best offset at some features.

        Parameters
        ----------
        label : int
            The class.
        which : ndarray
            The features.
        n_near : int
            Only cutoffs among the nearest rows, this many of them, are tried.

        Returns
        -------
        cost : float
            Rows that were evaluated.
        """
        rows, direction = along(self.columns, which)
        others, points = passing_points(self.margins, rows, direction, label)
        mine, ends = rows, (np.inf, -np.inf)
        if rows.size > n_near:
            distance = np.abs(points)
            width = float(np.partition(distance, n_near)[n_near])
            inside = np.flatnonzero(distance < width)
            mine, others, near, ends = rows[inside], others[inside], points[inside], (width, -width)
        else:
            near = points
        cost = _VISITED * rows.size + mine.size
        best_cut = self.strict.scan(mine, label, others, near, self.decisions)
        ordered = np.concatenate([ends[:1], near[best_cut.entries.order], ends[1:]])
        n_above = best_cut.n_above
        if ordered[n_above] - ordered[n_above + 1] <= ROUNDING:
            return cost  # the nearest row that was left out is tied with the last one
        shift = shift_at(n_above + 1, ordered, ordered, 0.0)
        if shift != 0.0 and best_cut.verdict.is_better_than(self.verdict):
            self.offsets[which, label] -= shift
            self.margins[rows, label] += shift * direction
            predicted = self.decisions.predicted
            others[best_cut.above] = label
            predicted[mine] = others
            self.decisions = Decisions(predicted, best_cut.means_there(), best_cut.verdict)
        return cost


def passing_points(
    margins: FloatArray, rows: IntArray, direction: FloatArray, label: int
) -> tuple[IntArray, FloatArray]:
    """Return the best other class of some rows, and how far the offset of a class may rise.

    That is the lead of the class over the other one, per unit of offset.
    """
    classes = [c for c in range(margins.shape[1]) if c != label]
    others, best = np.full(rows.size, classes[0]), margins[:, classes[0]][rows]
    for c in classes[1:]:
        margin = margins[:, c][rows]
        others[margin > best] = c
        best = np.maximum(best, margin)
    return others, (margins[:, label][rows] - best) / direction


def decided(margins: FloatArray) -> IntArray:
    """Return the class of the largest margin, the first one of equals."""
    if margins.shape[1] == 2:
        return (margins[:, 1] > margins[:, 0]).astype(np.int64)
    return np.asarray(margins.argmax(axis=1))


def offset_classes(strict: StrictEvaluation) -> range:
    """Return the classes whose offsets are searched: with two classes only the second."""
    return range(1, 2) if strict.n_classes == 2 else range(strict.n_classes)


def offsets(strict: StrictEvaluation, features: Features) -> Iterator[tuple[int, IntArray]]:
    """Yield the lines along which all rows pay the same for a class."""
    everybody = features.of(features.everyone)
    for label in offset_classes(strict):
        yield label, everybody


def lines(strict: StrictEvaluation, features: Features) -> Iterator[tuple[int, IntArray]]:
    """Yield lines: all rows, then each group, then each group, stratum and true class."""
    yield from offsets(strict, features)
    for label in offset_classes(strict):
        for group in features.groups:
            yield label, features.of(np.array([group]))
    for label in offset_classes(strict):
        for feature in features.of(features.groups):
            yield label, np.array([feature])


def exchange(start: Candidate, features: Features, *, n_sweeps: int, max_rows: float) -> Candidate:
    """Search along every line in turn, until no line gains or ``max_rows`` were evaluated.

    While limits are violated, four times as many are.
    """
    best = start.at(start.offsets)
    every = list(lines(best.strict, features))
    used, n_idle = 0.0, 0
    for label, which in every * n_sweeps:
        is_kept, before = best.verdict.is_feasible, best.verdict
        if n_idle == len(every) or used > (max_rows if is_kept else 4 * max_rows):
            break
        used += best.exchange(label, which, NEAR if is_kept else MOST_SORTED)
        n_idle = n_idle + 1 if best.verdict is before else 0
    return start.at(best.offsets)
