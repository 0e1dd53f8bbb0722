"""Group metrics of scores within percentile intervals (partial fairness).

Fairness may matter only where the decision is contested, for instance among the best 5% to 30% of
each group. Definitions follow sections 4 and A of partial_fairness_idca. The discrete case, which
the paper leaves open, is resolved by *overlap mass*: row ``i`` owns the ranks between the share of
its group above it and the share at or above it, and counts as much as this stretch overlaps the
interval. Then Lemma 5.2 holds exactly on samples, with ties and weights:

    P(score > theta | group k, rank in I) = |[0, F_k(theta)] intersected with I| / |I|

and a metric needs one sort per group, O(n log n), plus a merge per pair of groups, O(n G).

The metrics are public functions ``partial_..._gap``. ``suggest_interval`` lists intervals to
choose from.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, IntervalLike
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import score_rows
from skfair.groups.compared_groups import Agg, ZeroDivision, aggregate
from skfair.groups.declared_rates import rates_of
from skfair.groups.intervals import Intervals
from skfair.groups.measured_rows import MeasuredRows
from skfair.metrics.docs import documented_gap, documented_gap_of_scores
from skfair.metrics.scores import SortedScores, Ties, auc_gaps, gap_of_pairs, rankable_rows
from skfair.utils.rounding import ROUNDING
from skfair.utils.validation import check_number

if TYPE_CHECKING:
    import pandas as pd


def levels_at(intervals: Intervals, rows: SortedScores, start: int, normalize: bool) -> FloatArray:
    """Return how much of its group's interval lies below the rank of each sorted row, its *level*.

    ``rows`` are the rows of one attribute, whose first cell has the number ``start`` in
    ``intervals``. With ``normalize`` the level is a share of the interval, from 0 to 1. Without it,
    the level is a length in ranks.
    """
    level = np.empty(rows.rank.size)
    for g in range(rows.starts.size - 1):
        block = slice(rows.starts[g], rows.starts[g + 1])
        level[block] = intervals.overlap(rows.rank[block], start + g)
        if normalize:
            level[block] /= intervals.lengths[start + g]
    return level


class StatisticalParityGap:
    """The partial statistical parity gap of fixed rows, for their scores or for other ones.

    ``partial_statistical_parity_gap`` calls it once. Partial-parity fits call it for many scores of
    the same rows, so the groups, weights and intervals are read only once.
    """

    def __init__(self, rows: MeasuredRows, interval: IntervalLike, normalize: bool = True) -> None:
        intervals, self._has_weights = rows.groups.intervals(interval), rows.weights is not None
        self._level = partial(levels_at, intervals, normalize=normalize)
        self._attributes = []
        for codes, start, stop, first, second in rows.groups.attributes():
            ordered = SortedScores(rows.values, codes, stop - start, rows.weights)
            self._attributes.append((ordered, self._level(ordered, start), start, first, second))

    def __call__(self, scores: FloatArray | None = None, agg: Agg = "worst") -> float:
        """Return the gap; ``scores``, (n_samples,) without NaN, replace those of the rows."""
        values = []
        for rows, level, start, first, second in self._attributes:
            if scores is not None:
                rows.sort(scores)
                # Without weights all rows of a group count the same, so the level of a position
                # does not depend on the scores.
                level = self._level(rows, start) if self._has_weights else level
            values.append(rows.largest_gaps(level, first, second))
        return aggregate(np.concatenate(values), agg)


@takes_cohort
@documented_gap_of_scores
def partial_statistical_parity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    normalize: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Compute the statistical parity gap inside a percentile interval (0 is parity).

    The gap is the largest difference of positive rates over all thresholds, among the rows of each
    group whose ranks lie in the interval.

    .. math:: \max_\theta |P(s > \theta \mid k, \text{rank} \in I)
              - P(s > \theta \mid k', \text{rank} \in I)|

    This is Definition 4.2 of partial_fairness_idca. The gap is 0 if the scores inside the interval
    have the same distribution in all groups.

    See Also
    --------
    statistical_parity_gap : The same gap over the whole range of scores.
    partial_ccdf_gap : Another definition of the gap, which agrees with the tables of the paper.
    noise_floor : The value that identical groups of these sizes would show.

    Examples
    --------
    >>> from skfair.metrics import partial_statistical_parity_gap
    >>> y_score = [4, 3, 2, 1, 4, 3, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> for interval in [(0, 0.5), (0.5, 1)]:
    ...     partial_statistical_parity_gap(None, y_score, sensitive_features=sex, interval=interval)
    0.0
    0.5
    """
    people = cohort_of(**locals())
    rows = rankable_rows(people, intersectional)
    return StatisticalParityGap(rows, interval, normalize)(agg=agg)


@takes_cohort
@documented_gap_of_scores
def partial_ccdf_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Compute the largest difference of selection rates over thresholds within an interval.

    The thresholds are those at which the selection rate of either group lies in the interval.

    .. math:: \max \{|\bar F_k(\theta) - \bar F_{k'}(\theta)| :
              \bar F_k(\theta) \in I \text{ or } \bar F_{k'}(\theta) \in I\}

    with :math:`I = [low, high)`. The value is a difference of shares of the whole groups, which is
    not divided by the length of the interval. The tables of partial_fairness_idca agree with this
    definition.

    See Also
    --------
    statistical_parity_gap : The difference over all thresholds.
    suggest_interval : Percentile intervals around a decision.

    Examples
    --------
    >>> from skfair.metrics import partial_ccdf_gap
    >>> y_score = [4, 3, 2, 1, 4, 3, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_ccdf_gap(None, y_score, sensitive_features=sex, interval=(0.5, 1))
    0.25
    """
    from skfair._kernels.sorted_pairs import largest_gaps_inside

    people = cohort_of(**locals())
    rows = rankable_rows(people, intersectional)
    intervals = rows.groups.intervals(interval)

    def gaps(s: SortedScores, first: IntArray, second: IntArray, start: int) -> FloatArray:
        """Return the gap of each pair, as ``gap_of_pairs`` asks for."""
        # ``inside`` says for each row whether the rank of a threshold just below its score lies in
        # the interval. ``top`` says the same for the rank 0, of a threshold above all rows. If no
        # threshold has a rank in the interval, the group cannot be compared.
        inside = np.empty(s.rank.size, bool)
        n_cells = s.starts.size - 1
        for g in range(n_cells):
            block = slice(s.starts[g], s.starts[g + 1])
            inside[block] = intervals.contains(s.rank[block], start + g)
        top = np.array([intervals.contains(np.zeros(1), start + g)[0] for g in range(n_cells)])
        cell = s.cell_of_position()
        n_inside = np.bincount(cell, inside & s.ends_block(cell), minlength=n_cells)
        attains = top | (n_inside > 0)
        never = start + np.flatnonzero(~attains)
        never = never[np.isin(never, rows.groups.compared)]
        if never.size:
            cells = rows.groups.cells
            raise ValueError(
                f"No threshold gives group {cells.names[never[0]]!r}, with "
                f"{cells.counts[never[0]]} rows, a rank inside the interval {interval!r}. Use a "
                "longer interval or more rows."
            )
        out = np.empty(first.size)
        largest_gaps_inside(s.scores, s.rank, inside, top, s.starts, first, second, out)
        return out

    return gap_of_pairs(rows, gaps, agg)


@takes_cohort
@documented_gap_of_scores
def partial_group_auc_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    agg: Agg = "worst",
) -> float:
    r"""Compute how far group AUCs inside a percentile interval are from 1/2 (0 is parity).

    The group AUC is the probability that a random row of one group scores higher than a random row
    of another group.

    .. math:: |P(s \ge s' \mid k, k', \text{rank} \in I, \text{rank}' \in I) - 1/2|

    This is Definition A.1 of partial_fairness_idca.

    See Also
    --------
    group_auc_gap : The gap over all rows.
    suggest_interval : Percentile intervals around a decision.

    Examples
    --------
    >>> from skfair.metrics import partial_group_auc_gap
    >>> y_score = [4, 3, 2, 1, 4, 3, 0, -1]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_group_auc_gap(None, y_score, sensitive_features=sex, interval=(0.5, 1))
    0.5
    """
    people = cohort_of(**locals())
    rows = rankable_rows(people, intersectional)
    intervals = rows.groups.intervals(interval)

    def gaps(s: SortedScores, first: IntArray, second: IntArray, start: int) -> FloatArray:
        level = levels_at(intervals, s, start, normalize=True)
        mass = s.shared_mass(level, s.cell_of_position())
        return auc_gaps(s, mass, first, second, ties)

    return gap_of_pairs(rows, gaps, agg)


RankWithin = Literal["group", "class"]


@takes_cohort
@documented_gap_of_scores
def partial_demographic_parity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    threshold: float = 0.0,
    normalize: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Compute the difference of positive rates inside a percentile interval (0 is parity).

    The positive rate of a group is the share of its rows inside the interval whose scores are above
    the threshold.

    .. math:: |P(s > \hat\theta \mid k, \text{rank} \in I)
              - P(s > \hat\theta \mid k', \text{rank} \in I)|

    This is Definition 4.3 of partial_fairness_idca.

    See Also
    --------
    demographic_parity_difference : The difference over all rows.
    suggest_interval : Percentile intervals around a decision.

    Notes
    -----
    The scores need not be sorted, so the computation takes O(n).

    Examples
    --------
    >>> from skfair.metrics import partial_demographic_parity_gap
    >>> y_score = [3, 2, 1, -1, 3, -1, -2, -3]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_demographic_parity_gap(None, y_score, sensitive_features=sex, interval=(0, 0.5))
    0.5
    """
    check_number(threshold, "threshold")
    people = cohort_of(**locals())
    rows = rankable_rows(people, intersectional, threshold=threshold)
    intervals = rows.groups.intervals(interval)
    is_above, cells = rows.values > threshold, rows.groups.cells
    values = is_above if rows.weights is None else is_above * rows.weights
    with np.errstate(invalid="ignore"):  # cells without weight are not compared
        rates = cells.sums(values) / cells.sums(rows.weights)
    overlaps = _overlaps(rates[:, None], intervals, normalize)[:, 0]
    return aggregate(rows.groups.differences(overlaps, overlaps), agg)


@takes_cohort
@documented_gap
def partial_equal_opportunity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    rank_within: RankWithin = "group",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    threshold: float = 0.0,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Compute the difference of true positive rates inside a percentile interval (0 is parity).

    The true positive rate of a group is the share of positive rows inside the interval whose scores
    are above the threshold.

    .. math:: |P(s > \hat\theta \mid k, y = 1, \text{rank} \in I)
              - P(s > \hat\theta \mid k', y = 1, \text{rank} \in I)|

    This is Definition A.2 of partial_fairness_idca.

    See Also
    --------
    equal_opportunity_difference : The difference over all rows.
    suggest_interval : Percentile intervals around a decision.

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
    people = cohort_of(**locals())
    rows = rankable_rows(people, intersectional, labels=("y_true",), threshold=threshold)
    positive = rows.positive(people.pos_label)
    rates = _class_rates(rows, positive, interval, threshold, rank_within)
    rows.groups.check_class(rates[:, 1], rows.groups.compared, True, zero_division)
    return aggregate(rows.groups.differences(rates[:, 1], rates[:, 1]), agg, zero_division)


@takes_cohort
@documented_gap
def partial_equalized_odds_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike,
    rank_within: RankWithin = "group",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    threshold: float = 0.0,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Compute the equalized odds gap inside a percentile interval (0 is parity).

    The gap is the larger of the differences of true positive rates and of false positive rates.

    .. math:: \max_c |P(s > \hat\theta \mid k, y = c, \text{rank} \in I)
              - P(s > \hat\theta \mid k', y = c, \text{rank} \in I)|

    This is Definition A.3 of partial_fairness_idca.

    See Also
    --------
    equalized_odds_difference : The difference over all rows.
    suggest_interval : Percentile intervals around a decision.

    Examples
    --------
    >>> from skfair.metrics import partial_equalized_odds_gap
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_score = [3, 2, 1, -1, 3, -1, -2, -3]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_equalized_odds_gap(y_true, y_score, sensitive_features=sex, interval=(0, 1))
    0.5
    """
    people = cohort_of(**locals())
    rows = rankable_rows(people, intersectional, labels=("y_true",), threshold=threshold)
    positive = rows.positive(people.pos_label)
    rates = _class_rates(rows, positive, interval, threshold, rank_within)
    for c in (0, 1):
        rows.groups.check_class(rates[:, c], rows.groups.compared, bool(c), zero_division)
    differences = rows.groups.differences(rates, rates).max(axis=1)
    return aggregate(differences, agg, zero_division)


@takes_cohort
def suggest_interval(
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    rate: float | None = None,
    sample_weight: ColumnLike | None = None,
    threshold: float = 0.0,
    step: float = 0.05,
    min_width: float = 0.1,
) -> pd.DataFrame:
    """List percentile intervals around a decision, starting with the most unfair ones.

    Appendix B of partial_fairness_idca proposes the interval that covers the rate of positive
    decisions and on which an unconstrained model is most unfair. Often many intervals come close to
    the largest gap, so this function returns a table to choose from. The intervals whose gap is
    within 5% of the largest gap come first, sorted from the widest to the narrowest.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores of an unconstrained model.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Several attributes are crossed.
    rate : float, default=None
        Share of positive decisions, for example the historical admission rate. If None, the share
        of scores above ``threshold`` is used.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    threshold : float, default=0.0
        Threshold of positive decisions. Only used if ``rate`` is None.
    step : float, default=0.05
        Distance between the interval ends that are tried. It must be at least 0.01.
    min_width : float, default=0.1
        Shortest interval that is tried.

    Returns
    -------
    table : DataFrame
        Table with the columns ``low``, ``high``, ``width`` and ``gap`` (the partial statistical
        parity gap).

    See Also
    --------
    partial_statistical_parity_gap : The gap within such an interval.
    skfair.classification.PartialParityClassifier : Limits it.

    Notes
    -----
    The scores are sorted once, and each candidate interval costs O(n G) for G groups.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.metrics import suggest_interval
    >>> scores = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 0.8, 100)])
    >>> sex = np.repeat(["f", "m"], 100)
    >>> table = suggest_interval(scores, sensitive_features=sex, rate=0.2)
    >>> list(table.columns), bool((table["low"] <= 0.2).all())
    (['low', 'high', 'width', 'gap'], True)
    """
    import pandas as pd

    check_number(step, "step", 0.01, 0.5)
    check_number(min_width, "min_width", 0, 1)
    check_number(threshold, "threshold")
    people = cohort_of(**locals())
    rows = score_rows(people, threshold=threshold)
    if rate is None:
        rate = float(np.average(rows.values > threshold, weights=rows.weights))
    check_number(rate, "rate", 0, 1)
    groups = rows.groups.cells
    first, second = np.triu_indices(groups.n_groups, k=1)
    if not first.size:
        raise ValueError("suggest_interval compares groups, but there is only one group.")
    s = SortedScores(rows.values, groups.codes[0], groups.n_groups, rows.weights)
    ends = np.unique(np.append(np.arange(0, 1, step), 1.0).round(12))
    table = []
    for low in ends[ends <= rate]:
        for high in ends[(ends >= rate) & (ends - low >= min_width - 1e-12)]:
            level = levels_at(Intervals((low, high), groups.levels), s, 0, normalize=True)
            gap = float(s.largest_gaps(level, first, second).max())
            table.append((low, high, high - low, gap))
    low, high, width, gaps = np.array(table).T
    # The last digits of a gap depend on the order of the rows, which must not decide how intervals
    # with equal gaps are sorted. So gaps that differ by rounding have the same rank.
    by_gap, rank = np.argsort(gaps), np.empty(gaps.size)
    rank[by_gap] = np.cumsum(np.diff(gaps[by_gap], prepend=0.0) > ROUNDING)
    near_worst = gaps >= 0.95 * gaps.max() - ROUNDING
    order = np.lexsort((-rank, -width.round(12) * near_worst, ~near_worst))
    frame = pd.DataFrame({"low": low, "high": high, "width": width, "gap": gaps}).round(12)
    return frame.iloc[order].reset_index(drop=True)


def _class_rates(
    rows: MeasuredRows,
    positive: IntArray,
    interval: IntervalLike,
    threshold: float,
    rank_within: RankWithin,
) -> FloatArray:
    """Return the share above the threshold inside the interval by cell and class, (n_cells, 2).

    Class 0 is negative. If ``rank_within`` is "class", rows are ranked within their class, so the
    share is the overlap of the rate of this class with the interval. If it is "group", rows are
    ranked within the whole group, and each row counts by its mass inside the interval.
    """
    intervals = rows.groups.intervals(interval)
    check_number(threshold, "threshold")
    if rank_within == "class":
        outcomes = 2 * positive + (rows.values > threshold)
        rates = _rates(rows.groups.cells.cross_counts(outcomes, 4, rows.weights))
        return _overlaps(rates, intervals, normalize=True)
    if rank_within != "group":
        raise ValueError(f"rank_within must be 'group' or 'class', got {rank_within!r}.")
    counts = []
    for codes, start, stop, _, _ in rows.groups.attributes():
        s = SortedScores(rows.values, codes, stop - start, rows.weights, keep_order=True)
        cell = s.cell_of_position()
        mass = s.shared_mass(levels_at(intervals, s, start, normalize=True), cell)
        outcomes = 4 * cell + 2 * positive[s.order] + (s.scores > threshold)
        counts.append(np.bincount(outcomes, mass, 4 * (stop - start)).reshape(-1, 4))
    return _rates(np.concatenate(counts))


def _rates(counts: FloatArray) -> FloatArray:
    """Return the rates above the threshold by cell and class, (n_cells, 2).

    ``counts`` is (n_cells, 4): negatives below and above the threshold, then positives.
    """
    tables = counts.reshape(-1, 2, 2)
    return np.stack([rates_of(tables, f"{c}_positive_rate") for c in ("false", "true")], axis=1)


def _overlaps(rates: FloatArray, intervals: Intervals, normalize: bool) -> FloatArray:
    """Return the overlap of each cell's rates with its interval, equation (62).

    ``rates`` is (n_cells, n_rates). With ``normalize`` the overlap is a share of the interval.
    """
    overlap = np.array([intervals.overlap(rate, cell) for cell, rate in enumerate(rates)])
    return overlap / intervals.lengths[:, None] if normalize else overlap
