"""The best threshold of many scores, without sorting them all.

:class:`skfair.enforcement.erm.true_limits.OnRates` calls :func:`best_threshold` with the scores of
each solution, and gets the shift of largest accuracy within the limits. Rows are put into bands by
their score. Sums over each band give an upper bound on the accuracy of the thresholds inside it,
and lower bounds on the disparities, which follow from *cell means*, such as the mean decision about
the positives of a group. Only the rows between the first and the last band that may hold the best
threshold are sorted and scanned one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.strict_evaluation import StrictEvaluation, StrictRates, Threshold, shift_at
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import BLOCK, looked_up, over_blocks

# There are at most MOST_BANDS bands, and so few that a band has on average at least ROWS_PER_SUM
# rows for each of its sums. With half or twice as many bands 500,000 rows take as long, because
# most of the time goes to the pass over the rows.
MOST_BANDS, ROWS_PER_SUM = 1024, 16
# Share of the rows in the first band, and in the last one. Scores may have long tails, which would
# make bands of equal width between the extremes too wide.
ENDS = 0.002


class Bands(NamedTuple):
    """Sums over the rows of each band. Bands are numbered from the highest scores down."""

    of_rows: IntArray  # (n_samples,): band of each row
    lowest: FloatArray  # (n_bands,): lowest score; inf if the band is empty
    highest: FloatArray  # (n_bands,): highest score; -inf if the band is empty
    # (2, n_bands): changes of the accuracy if the rows of the band are selected. Line 0 is the sum
    # of the negative changes, and line 1 the sum of the positive ones
    gains: FloatArray
    steps: FloatArray  # (n_constraints, 2, n_cells, n_bands): the same sums for the cell means


def best_threshold(strict: StrictEvaluation, scores: FloatArray, min_gap: float) -> Threshold:
    """Return the same as ``strict.threshold(scores, min_gap)``, faster if there are many rows."""
    from skfair._kernels.thresholds import SortedRows

    rates, utility = strict.rates, strict.utility
    n_cells = max((start.size for start in rates.starts), default=0)
    n_sums = max(len(rates.starts) * n_cells, 1)
    n_bands = min(MOST_BANDS, scores.size // (ROWS_PER_SUM * n_sums))
    if n_bands < 2:
        return strict.threshold(scores, min_gap)
    gains = strict.weights * looked_up(utility[:, 1] - utility[:, 0], rates.classes)
    accuracy = float(strict.weights @ looked_up(utility[:, 0], rates.classes))  # nobody selected
    bands = _banded(rates, scores, gains, (len(rates.starts), 2, n_cells, n_bands))
    first, stop = _span_of_best(rates, bands, accuracy, min_gap)
    rows = np.flatnonzero((first <= bands.of_rows) & (bands.of_rows < stop))
    rows = rows[np.argsort(-scores[rows])]
    ordered = scores[rows]
    entries = SortedRows(
        np.arange(rows.size),
        ordered[:-1] - ordered[1:] > min_gap,
        *(gains[rows], rates.cells[:, rows], rates.steps[:, rows]),
    )
    above = bands.steps[..., :first].sum(axis=(1, 3))
    means = [start + moved[: start.size] for start, moved in zip(rates.starts, above, strict=True)]
    accuracy += float(bands.gains[:, :first].sum())
    n_above, verdict = rates.table.scan(entries, means, accuracy, None)
    neighbours = bands.lowest[:first].min(initial=np.inf), bands.highest[stop:].max(initial=-np.inf)
    ordered = np.concatenate([neighbours[:1], ordered, neighbours[1:]])
    is_constant = bool(np.isinf(ordered[n_above : n_above + 2]).any())
    return Threshold(shift_at(n_above + 1, ordered, ordered, min_gap), verdict, is_constant)


def _banded(
    rates: StrictRates, scores: FloatArray, gains: FloatArray, shape: tuple[int, ...]
) -> Bands:
    """Put rows into bands, and add up gains and steps; ``shape`` is the shape of ``Bands.steps``.

    Bands have equal widths, except for the first and the last one, which take the tails.
    """
    from skfair._kernels.thresholds import sum_by_band

    few, n_bands = scores[:: -(-scores.size // (8 * MOST_BANDS))], shape[-1]
    low, high = np.quantile(few, (ENDS, 1 - ENDS))
    per_unit = n_bands / (high - low) if high > low else 0.0
    of_rows = np.empty(scores.size, np.int64)

    def of_block(start: int, stop: int) -> tuple[FloatArray, ...]:
        part, ends = slice(start, stop), np.full((2, n_bands), np.inf)
        gained, moved = np.zeros((2, n_bands)), np.zeros(shape)
        rows = scores[part], gains[part], rates.cells[:, part], rates.steps[:, part]
        sum_by_band(rows, high, per_unit, of_rows[part], ends, gained, moved)
        return ends, gained, moved

    ends, *sums = zip(*over_blocks(of_block, scores.size, BLOCK), strict=True)
    lowest, highest = np.minimum.reduce(ends)
    return Bands(of_rows, lowest, -highest, *(np.sum(parts, axis=0) for parts in sums))


def _span_of_best(
    rates: StrictRates, bands: Bands, accuracy: float, min_gap: float
) -> tuple[int, int]:
    """Return the first band that may hold the best threshold, and the one after the last.

    ``accuracy`` is the accuracy if nobody is selected. Let A_b be the accuracy, and m_b the cell
    means, if the rows of all bands before b are selected. A threshold inside band b has an accuracy
    of at most A_b + (positive gains of b), and cell means between m_b + (negative steps of b) and
    m_b + (positive steps of b). The best threshold is inside a band whose upper bound is at least
    the best A_b within the limits, and whose means in this range can satisfy the limits. If no
    threshold between bands is within the limits, all bands are returned.
    """
    n_bands = bands.lowest.size
    reached = accuracy + np.append(0.0, np.cumsum(bands.gains.sum(axis=0)))  # A_b for each b
    above, below = np.minimum.accumulate(bands.lowest), np.maximum.accumulate(bands.highest[::-1])
    can_cut, may_keep = np.ones(n_bands + 1, dtype=bool), np.ones(n_bands, dtype=bool)
    can_cut[1:-1] = above[:-1] - below[::-1][1:] > min_gap
    is_feasible = can_cut.copy()
    for bound, start, (less, more) in zip(rates.bounds, rates.starts, bands.steps, strict=True):
        less, more, limit = less[: start.size], more[: start.size], bound.max_disparity + ROUNDING
        means = start[:, None] + np.cumsum(np.pad(less + more, ((0, 0), (1, 0))), axis=1)
        is_feasible &= bound.least_disparity(means, means) <= limit
        before = means[:, :-1]
        may_keep &= bound.least_disparity(before + less, before + more) <= limit + ROUNDING
    if not is_feasible.any():
        return 0, n_bands
    best = reached[is_feasible].max() - ROUNDING
    may_hold = np.flatnonzero(may_keep & (reached[:-1] + bands.gains[1] >= best))
    # The span grows until its ends are places where a threshold may lie.
    first = np.flatnonzero(can_cut[: may_hold[0] + 1])[-1]
    return int(first), int(may_hold[-1] + 1 + np.argmax(can_cut[may_hold[-1] + 1 :]))
