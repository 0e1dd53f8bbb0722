"""The most accurate threshold that keeps strict rates within their bounds: exact, O(n log n).

A shift of all scores changes who is predicted positive only where it passes a score, so the rates
of all groups at every threshold follow from one sorted pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint

# Rates are sums of many floating-point numbers: a bound counts as kept only with this to spare.
ROUNDING = 1e-10


class Threshold(NamedTuple):
    """A shift of the scores and what it gives.

    Attributes
    ----------
    shift : float
        What is added to every score.
    accuracy : float
        Weighted share of right predictions.
    is_feasible : bool
        Whether all rules are kept.
    is_constant : bool
        Whether all rows get the same prediction.
    excess : float
        Largest disparity minus its bound.
    """

    shift: float
    accuracy: float
    is_feasible: bool
    is_constant: bool
    excess: float


class SortedRows(NamedTuple):
    """Rows, or what stands for several of them, for a scan from the highest score down.

    Attributes
    ----------
    order : ndarray of shape (n,)
        Entries by falling score.
    can_cut : ndarray of shape (n - 1,)
        Whether a threshold may lie below the first, the second... entry of the order.
    gains : ndarray of shape (n,)
        Change of the accuracy when an entry turns positive.
    cells : ndarray of shape (n_rules, n)
        Its cell in each rule.
    steps : ndarray of shape (n_rules, n)
        Change of the mean of that cell.
    """

    order: IntArray
    can_cut: NDArray[np.bool_]
    gains: FloatArray
    cells: IntArray
    steps: FloatArray


class Cut(NamedTuple):
    """The best place found: entries above it, and what it gives."""

    n_above: int
    accuracy: float
    is_feasible: bool
    excess: float


class RateTable:
    """Rules on rates as the kernel reads them.

    Parameters
    ----------
    rules : sequence of BoundConstraint
        Rules on rates only.
    """

    def __init__(self, rules: Sequence[BoundConstraint]) -> None:
        self.which = [k for k, rule in enumerate(rules) if rule.blocks.size]
        self.rules = [rules[k] for k in self.which]
        self.bounds = np.array(
            [
                rule.max_disparity + (ROUNDING if rule.max_disparity < 1e-9 else -ROUNDING)
                for rule in self.rules
            ]
        )
        self.matrices = [
            rule.rates if rule.comparison == "pairwise" else rule.rates - rule.overall
            for rule in self.rules
        ]
        n_cells = max((rule.n_cells for rule in self.rules), default=0)
        self._indptr = np.zeros((len(self.rules), n_cells + 1), np.int64)
        owners, shares, starts, first, first_starts = [], [], [0], [], [0]
        used = 0
        for k, (rule, matrix) in enumerate(zip(self.rules, self.matrices, strict=True)):
            columns = sparse.csc_array(matrix)
            self._indptr[k, : columns.indptr.size] = columns.indptr + used
            used += columns.indices.size
            owners.append(columns.indices)
            shares.append(columns.data)
            starts.append(starts[-1] + matrix.shape[0])
            blocks = np.flatnonzero(np.diff(rule.blocks, prepend=-1, append=-1))
            first.append(blocks)
            first_starts.append(first_starts[-1] + blocks.size)
        empty = [np.empty(0, np.int64)]
        self._owners = np.concatenate(owners + empty).astype(np.int64)
        self._shares = np.concatenate([*shares, np.empty(0)])
        self._starts = np.array(starts)
        self._first = np.concatenate(first + empty).astype(np.int64)
        self._first_starts = np.array(first_starts)
        self._comparisons = np.array(
            [0 if rule.comparison == "pairwise" else 1 for rule in self.rules], dtype=np.int64
        )

    def scan(self, rows: SortedRows, start_means: Sequence[FloatArray], accuracy: float) -> Cut:
        """Find the best cut; cell means and accuracy are those with nobody predicted positive."""
        from skfair._kernels.thresholds import scan_thresholds

        rates = [matrix @ start for matrix, start in zip(self.matrices, start_means, strict=True)]
        out = np.empty(5)
        scan_thresholds(
            rows.order,
            rows.can_cut,
            rows.gains,
            rows.cells,
            rows.steps,
            self._indptr,
            self._owners,
            self._shares,
            self._starts,
            self._first,
            self._first_starts,
            self._comparisons,
            self.bounds,
            np.concatenate([*rates, np.empty(0)]),
            accuracy,
            out,
        )
        if out[0] >= 0:
            return Cut(int(out[0]), float(out[1]), True, float(out[2]))
        return Cut(int(out[3]), float("nan"), False, float(out[4]))


class ThresholdScan:
    """Scans thresholds for given rules and targets; prepared once, used for many scores.

    Parameters
    ----------
    rules : sequence of BoundConstraint
        Rules on rates only.
    targets : ndarray of shape (n_samples,)
        -1 and 1.
    weights : ndarray of shape (n_samples,)
        Weights of the rows in the accuracy; they add up to 1.
    """

    def __init__(
        self, rules: Sequence[BoundConstraint], targets: FloatArray, weights: FloatArray
    ) -> None:
        self._table = RateTable(rules)
        self._gains = weights * targets
        self._accuracy_without = float(weights @ (targets < 0))
        n, rules = targets.size, self._table.rules
        self._cells = np.zeros((len(rules), n), np.int64)
        self._steps = np.zeros((len(rules), n))
        self._start_means = []
        for k, rule in enumerate(rules):
            self._cells[k] = rule.cells
            refused, chosen = (rule.moment.strict(np.full(n, s)) for s in (-1.0, 1.0))
            self._steps[k] = rule.row_weights * (chosen - refused)
            self._start_means.append(rule.means(refused))

    def __call__(self, scores: FloatArray, min_gap: float) -> Threshold:
        """Return the most accurate shift that keeps the rules, else the one that misses least.

        Only thresholds with a gap of more than ``min_gap`` around them are used, so that rounding
        elsewhere cannot move a row across.
        """
        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        can_cut = ordered[:-1] - ordered[1:] > min_gap
        rows = SortedRows(order, can_cut, self._gains, self._cells, self._steps)
        cut = self._table.scan(rows, self._start_means, self._accuracy_without)
        return threshold_at(cut, ordered, ordered, min_gap)


def threshold_at(cut: Cut, highest: FloatArray, lowest: FloatArray, min_gap: float) -> Threshold:
    """Return the shift of a cut, given the highest and lowest score of each sorted entry."""
    n_above = cut.n_above
    above = lowest[n_above - 1] if n_above else np.inf
    below = highest[n_above] if n_above < highest.size else -np.inf
    return Threshold(
        shift=_shift_between(float(above), float(below), min_gap),
        accuracy=cut.accuracy,
        is_feasible=cut.is_feasible,
        is_constant=n_above in (0, highest.size),
        excess=cut.excess,
    )


def _shift_between(above: float, below: float, gap: float) -> float:
    """Return a shift that puts 0 between two neighbouring scores.

    The middle of the gap, but no shift at all where 0 already lies well inside it.
    """
    if above > 0.5 * gap and below < -0.5 * gap:
        return 0.0
    if np.isinf(above):
        return -below - 1.0
    if np.isinf(below):
        return -above + 1.0
    return -0.5 * (above + below)
