"""Group metrics of the decisions at one threshold within percentile intervals.

Intervals and ranks are those of :mod:`skfair.metrics.partial`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, IntervalLike
from skfair.groups.compared_groups import Agg, ZeroDivision, aggregate
from skfair.groups.intervals import Intervals
from skfair.groups.weighted_rows import accepts_dask
from skfair.metrics.docs import documented_gap, documented_gap_of_scores
from skfair.metrics.partial import levels_at
from skfair.metrics.scores import ScoredRows, ranked_rows
from skfair.metrics.sorted_scores import SortedScores
from skfair.utils.validation import check_number, check_positive

RankWithin = Literal["group", "class"]


@accepts_dask(binned="y_score")
@documented_gap_of_scores
def partial_demographic_parity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    threshold: float = 0.0,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    normalize: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Difference of positive rates at one threshold inside a percentile interval; 0 is parity.

    .. math:: |P(s > \hat\theta \mid k, \text{rank} \in I)
              - P(s > \hat\theta \mid k', \text{rank} \in I)|

    Definition 4.3 of partial_fairness_idca.

    Notes
    -----
    Needs no sorting: O(n).

    Examples
    --------
    >>> from skfair.metrics import partial_demographic_parity_gap
    >>> y_score = [3, 2, 1, -1, 3, -1, -2, -3]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_demographic_parity_gap(None, y_score, sensitive_features=sex, interval=(0, 0.5))
    0.5
    """
    check_number(threshold, "threshold")
    rows = ranked_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    intervals = rows.groups.intervals(interval)
    is_above = rows.scores > threshold
    values = is_above.astype(float) if rows.weights is None else is_above * rows.weights
    cells = rows.groups.cells
    with np.errstate(invalid="ignore"):  # of strata, cells without weight are left out
        rates = cells.sums(values) / cells.sums(rows.weights)
    return aggregate(_rate_gaps(rows, _interval_rates(rates, intervals, normalize)), agg)


@accepts_dask("y_true", binned="y_score")
@documented_gap
def partial_equal_opportunity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    threshold: float = 0.0,
    rank_within: RankWithin = "group",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Difference of true positive rates inside a percentile interval; 0 is parity.

    .. math:: |P(s > \hat\theta \mid k, y = 1, \text{rank} \in I)
              - P(s > \hat\theta \mid k', y = 1, \text{rank} \in I)|

    Definition A.2 of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.metrics import partial_equal_opportunity_gap
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_score = [3, 2, 1, -1, 3, -1, -2, -3]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_equal_opportunity_gap(
    ...     y_true, y_score, sensitive_features=sex, interval=(0, 0.5)
    ... )
    0.5
    """
    rows = ranked_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    rates = _class_rates(rows, positive, interval, threshold, rank_within)
    rows.groups.check_class(rates[:, 1], rows.groups.compared, True, zero_division)
    return aggregate(_rate_gaps(rows, rates[:, 1]), agg)


@accepts_dask("y_true", binned="y_score")
@documented_gap
def partial_equalized_odds_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    threshold: float = 0.0,
    rank_within: RankWithin = "group",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Larger of the gaps of true and false positive rates inside a percentile interval.

    .. math:: \max_c |P(s > \hat\theta \mid k, y = c, \text{rank} \in I)
              - P(s > \hat\theta \mid k', y = c, \text{rank} \in I)|

    Definition A.3 of partial_fairness_idca; 0 is parity.

    Examples
    --------
    >>> from skfair.metrics import partial_equalized_odds_gap
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_score = [3, 2, 1, -1, 3, -1, -2, -3]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_equalized_odds_gap(y_true, y_score, sensitive_features=sex, interval=(0, 1))
    0.5
    """
    rows = ranked_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    rates = _class_rates(rows, positive, interval, threshold, rank_within)
    for c in (0, 1):
        rows.groups.check_class(rates[:, c], rows.groups.compared, bool(c), zero_division)
    return aggregate(_rate_gaps(rows, rates).max(axis=1), agg)


def _class_rates(
    rows: ScoredRows,
    positive: IntArray,
    interval: IntervalLike,
    threshold: float,
    rank_within: RankWithin,
) -> FloatArray:
    """Rates above the threshold inside the interval by group and class, shape (n_groups, 2)."""
    intervals = rows.groups.intervals(interval)
    check_number(threshold, "threshold")
    cells, weights = rows.groups.cells, rows.weights
    if rank_within == "class":
        total = cells.cross_counts(positive, 2, weights)
        is_above = rows.scores > threshold
        hits = cells.cross_counts(positive, 2, is_above if weights is None else is_above * weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = np.where(total > 0, hits / total, np.nan)
        return np.stack([_interval_rates(rates[:, c], intervals, True) for c in (0, 1)], axis=1)
    if rank_within != "group":
        raise ValueError(f"rank_within must be 'group' or 'class', got {rank_within!r}.")
    rates = np.full((cells.n_groups, 2), np.nan)
    for codes, start, stop, _, _ in rows.groups.attributes():
        n_cells = stop - start
        s = SortedScores(rows.scores, codes, n_cells, weights, keep_order=True)
        cell = s.cell_of_position()
        mass = s.shared_mass(levels_at(intervals, s, start, normalize=True), cell)
        joint = 2 * cell + positive[s.order]
        inside = np.bincount(joint, weights=mass, minlength=2 * n_cells)
        above = np.bincount(joint, weights=mass * (s.scores > threshold), minlength=2 * n_cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            rates[start:stop] = np.where(inside > 0, above / inside, np.nan).reshape(-1, 2)
    return rates


def _interval_rates(rates: FloatArray, intervals: Intervals, normalize: bool) -> FloatArray:
    """Turn the rate of each group at a threshold into its overlap with the interval, (62)."""
    overlap = np.array([intervals.overlap(rate, g) for g, rate in enumerate(rates)])
    return overlap / intervals.lengths if normalize else overlap


def _rate_gaps(rows: ScoredRows, rates: FloatArray) -> FloatArray:
    """Compare the rates of every pair of cells."""
    first, second = rows.groups.pairs
    return np.abs(rates[first] - rates[second])
