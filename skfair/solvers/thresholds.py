"""The most accurate threshold that keeps strict rates within their bounds: exact, O(n log n).

A shift of all scores changes who is predicted positive only where it passes a score, so the rates
of all groups at every threshold follow from one sorted pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skfair.constraints.bound import BoundConstraint

FloatArray = NDArray[np.float64]

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
        self._rules = [rule for rule in rules if rule.blocks.size]
        self._gains = weights * targets
        self._accuracy_without = float(weights @ (targets < 0))
        self._bounds = np.array(
            [
                rule.max_disparity + (ROUNDING if rule.max_disparity < 1e-9 else -ROUNDING)
                for rule in self._rules
            ]
        )
        n = targets.size
        n_cells = max((rule.n_cells for rule in self._rules), default=0)
        self._cells = np.zeros((len(self._rules), n), np.int64)
        self._steps = np.zeros((len(self._rules), n))
        self._indptr = np.zeros((len(self._rules), n_cells + 1), np.int64)
        owners, shares, starts, first, first_starts = [], [], [0], [], [0]
        start_rates: list[FloatArray] = []
        used = 0
        for k, rule in enumerate(self._rules):
            matrix = rule.rates if rule.comparison == "pairwise" else rule.rates - rule.overall
            columns = sparse.csc_array(matrix)
            self._cells[k] = rule.cells
            refused, chosen = (rule.moment.strict(np.full(n, s)) for s in (-1.0, 1.0))
            self._steps[k] = rule.row_weights * (chosen - refused)
            self._indptr[k, : columns.indptr.size] = columns.indptr + used
            used += columns.indices.size
            owners.append(columns.indices)
            shares.append(columns.data)
            starts.append(starts[-1] + matrix.shape[0])
            blocks = np.flatnonzero(np.diff(rule.blocks, prepend=-1, append=-1))
            first.append(blocks)
            first_starts.append(first_starts[-1] + blocks.size)
            start_rates.append(matrix @ rule.means(refused))  # nobody is predicted positive
        empty = [np.empty(0, np.int64)]
        self._owners = np.concatenate(owners + empty).astype(np.int64)
        self._shares = np.concatenate([*shares, np.empty(0)])
        self._starts = np.array(starts)
        self._first = np.concatenate(first + empty).astype(np.int64)
        self._first_starts = np.array(first_starts)
        self._comparisons = np.array(
            [0 if rule.comparison == "pairwise" else 1 for rule in self._rules], dtype=np.int64
        )
        self._start_rates = np.concatenate([*start_rates, np.empty(0)])

    def __call__(self, scores: FloatArray, min_gap: float) -> Threshold:
        """Return the most accurate shift that keeps the rules, else the one that misses least.

        Only thresholds with a gap of more than ``min_gap`` around them are used, so that rounding
        elsewhere cannot move a row across.
        """
        from skfair._kernels.thresholds import scan_thresholds

        order = np.argsort(-scores, kind="stable")
        out = np.empty(5)
        scan_thresholds(
            order,
            scores,
            self._gains,
            self._cells,
            self._steps,
            self._indptr,
            self._owners,
            self._shares,
            self._starts,
            self._first,
            self._first_starts,
            self._comparisons,
            self._bounds,
            self._start_rates.copy(),
            min_gap,
            self._accuracy_without,
            out,
        )
        is_feasible = out[0] >= 0
        n_positive = int(out[0] if is_feasible else out[3])
        return Threshold(
            shift=_shift_between(scores, order, n_positive, min_gap),
            accuracy=float(out[1]) if is_feasible else float("nan"),
            is_feasible=bool(is_feasible),
            is_constant=n_positive in (0, scores.size),
            excess=float(out[2] if is_feasible else out[4]),
        )


def _shift_between(scores: FloatArray, order: NDArray[Any], n_positive: int, gap: float) -> float:
    """Return a shift under which exactly the ``n_positive`` highest scores are positive.

    The middle of the gap, but no shift at all where 0 already lies well inside it.
    """
    above = scores[order[n_positive - 1]] if n_positive else np.inf
    below = scores[order[n_positive]] if n_positive < scores.size else -np.inf
    if above > 0.5 * gap and below < -0.5 * gap:
        return 0.0
    if np.isinf(above):
        return -float(below) - 1.0
    if np.isinf(below):
        return -float(above) + 1.0
    return -0.5 * float(above + below)
