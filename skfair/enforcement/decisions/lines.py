"""Exact line searches: one offset moves, and every value at which a decision changes is evaluated.

A *line* is a class and some features (``shares.py``): the offset of the class moves by the same
amount at these features, and all other offsets stay. Along a line each row changes its decision
once, at the point where the margin of the class (its expected utility minus offset) passes the best
other margin. So the rows are sorted by these points, and :meth:`StrictEvaluation.scan` evaluates
all cutoffs between them.

The searches of ``offsets.py`` and ``repair.py`` hold a :class:`Candidate` (offsets with their
decisions and verdict), and call :meth:`Candidate.exchange` for one line, or :func:`exchange` for
all lines in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, along, by_column, margins
from skfair.enforcement.strict_evaluation import Decisions, StrictEvaluation, Verdict, shift_at
from skfair.utils.rounding import ROUNDING

# A line search sorts only the rows whose decisions change at the smallest shifts: at most NEAR rows
# if the limits are satisfied, and at most MOST_SORTED if they are not.
NEAR, MOST_SORTED = 4_000, 40_000
# Cost of computing the point of a row, if sorting and evaluating a row costs 1.
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
        The shares as :func:`by_column` returns them. If None, they are computed.
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
        """Return the candidate with other offsets, and with other limits or penalties if given."""
        return Candidate(strict or self.strict, self.values, self.shares, offsets, self.columns)

    def verdict_of(self, strict: StrictEvaluation) -> Verdict:
        """Return the verdict on the decisions under other limits or penalties."""
        return strict.verdict(self.decisions.means, self.verdict.merit)

    def exchange(self, label: int, which: IntArray, n_near: int = MOST_SORTED) -> float:
        """Move to the best offset along a line, in place, if the verdict becomes better.

        Parameters
        ----------
        label : int
            The class whose offset moves.
        which : ndarray
            The features at which it moves.
        n_near : int
            Only this many rows, those whose decisions change first, may change them.

        Returns
        -------
        cost : float
            Cost of the search, in units of sorting and evaluating one row.
        """
        rows, direction = along(self.columns, which)
        others, points = passing_points(self.margins, rows, direction, label)
        # The cutoff has to stay between ``ends``. They are the points of the nearest rows that are
        # not scanned, or infinite if all rows are scanned.
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
        # Entry 0 of ``ordered`` is an end, so entry n_above is the last row above the cut.
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
    """Return the best other class of some rows, and how far the offset of ``label`` may rise.

    If margins are M_ic and direction is a_i, this is (M_i,label - max of the other M_ic) / a_i: the
    row gets ``label`` as long as the offset rises by less.
    """
    classes = [c for c in range(margins.shape[1]) if c != label]
    others, best = np.full(rows.size, classes[0]), margins[:, classes[0]][rows]
    for c in classes[1:]:
        margin = margins[:, c][rows]
        others[margin > best] = c
        best = np.maximum(best, margin)
    return others, (margins[:, label][rows] - best) / direction


def decided(margins: FloatArray) -> IntArray:
    """Return the class with the largest margin of each row; of equal ones the first."""
    if margins.shape[1] == 2:
        return (margins[:, 1] > margins[:, 0]).astype(np.int64)
    return np.asarray(margins.argmax(axis=1))


def offset_classes(strict: StrictEvaluation) -> range:
    """Return the classes whose offsets are searched: with two classes only the second."""
    return range(1, 2) if strict.n_classes == 2 else range(strict.n_classes)


def common_lines(strict: StrictEvaluation, features: Features) -> Iterator[tuple[int, IntArray]]:
    """Yield the lines along which the offset of a class moves equally for all rows."""
    everybody = features.of(features.everyone)
    for label in offset_classes(strict):
        yield label, everybody


def lines(strict: StrictEvaluation, features: Features) -> Iterator[tuple[int, IntArray]]:
    """Yield all lines: first those of all rows, then those of each group and of each feature."""
    yield from common_lines(strict, features)
    for label in offset_classes(strict):
        for group in features.groups:
            yield label, features.of(np.array([group]))
    for label in offset_classes(strict):
        for feature in features.of(features.groups):
            yield label, np.array([feature])


def exchange(start: Candidate, features: Features, *, n_sweeps: int, max_rows: float) -> Candidate:
    """Return the candidate after a search along every line in turn, ``n_sweeps`` times.

    The search ends early if no line gains any more, or if its cost is above ``max_rows`` (four
    times as much as long as limits are violated).
    """
    best = start.at(start.offsets)  # a copy, because line searches move it in place
    every = list(lines(best.strict, features))
    used, n_idle = 0.0, 0
    for label, which in every * n_sweeps:
        is_feasible, before = best.verdict.is_feasible, best.verdict
        if n_idle == len(every) or used > (max_rows if is_feasible else 4 * max_rows):
            break
        used += best.exchange(label, which, NEAR if is_feasible else MOST_SORTED)
        n_idle = n_idle + 1 if best.verdict is before else 0
    return start.at(best.offsets)
