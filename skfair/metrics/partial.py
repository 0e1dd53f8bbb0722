"""Group metrics of scores within percentile intervals (partial fairness).

Fairness may matter only where the decision is contested, for instance among the best 5 % to 30 % of
each group. Definitions follow sections 4 and A of partial_fairness_idca; the discrete case, which
the paper leaves open, is resolved by *overlap mass*: row ``i`` owns the ranks between the share of
its group above it and the share at or above it, and counts as much as this stretch overlaps the
interval. Then Lemma 5.2 holds exactly on samples, with ties and weights:

    P(score > theta | group k, rank in I) = |[0, F_k(theta)] intersected with I| / |I|

and a metric needs one sort per group, O(n log n), plus a merge per pair of groups, O(n G).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.blocks.weighted_rows import accepts_dask
from skfair.groups.intervals import Intervals
from skfair.metrics.docs import fill_doc
from skfair.metrics.pairs import Agg, aggregate, group_pairs
from skfair.metrics.scores import (
    ScoredRows,
    Ties,
    ZeroDivision,
    auc_gaps,
    raise_empty_class,
    scored_rows,
)
from skfair.metrics.sorted_scores import SortedScores
from skfair.utils.factorize import IntArray
from skfair.utils.validation import check_number, check_positive, is_strict

RankWithin = Literal["group", "class"]


def levels_at(intervals: Intervals, rows: SortedScores, start: int, normalize: bool) -> FloatArray:
    """Evaluate the overlap at every position of the sorted rows of one attribute."""
    level = np.empty(rows.rank.size)
    for g in range(rows.starts.size - 1):
        here = slice(rows.starts[g], rows.starts[g + 1])
        level[here] = intervals.overlap(rows.rank[here], start + g)
        if normalize:
            level[here] /= intervals.lengths[start + g]
    return level


@accepts_dask(binned="y_score")
@fill_doc
def partial_statistical_parity_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    interval: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    normalize: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Largest difference, over all thresholds, of positive rates inside a percentile interval.

    .. math:: \max_\theta |P(s > \theta \mid k, \text{rank} \in I)
              - P(s > \theta \mid k', \text{rank} \in I)|

    Definition 4.2 of partial_fairness_idca; 0 means that the scores inside the interval have the
    same distribution in all groups.

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(interval)s
    %(options)s
    %(normalize)s
    %(agg)s

    Returns
    -------
    %(gap)s

    See Also
    --------
    statistical_parity_gap : The same over the whole range.
    partial_ccdf_gap : Another reading, which the paper's tables agree with.
    noise_floor : The value that equal groups of these sizes would show.

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
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    intervals = Intervals(interval, rows.groups.levels)
    return rows.gap(
        lambda s, i, j, start: s.largest_gaps(levels_at(intervals, s, start, normalize), i, j), agg
    )


@accepts_dask(binned="y_score")
@fill_doc
def partial_ccdf_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    interval: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Largest difference of selection rates over the thresholds that the interval touches.

    .. math:: \max \{|\bar F_k(\theta) - \bar F_{k'}(\theta)| :
              \bar F_k(\theta) \in I \text{ or } \bar F_{k'}(\theta) \in I\}

    with :math:`I = [low, high)`; a difference of shares of the whole groups, not divided by the
    length of the interval. The figures in the tables of partial_fairness_idca agree with this
    reading.

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(interval)s
    %(options)s
    %(agg)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import partial_ccdf_gap
    >>> y_score = [4, 3, 2, 1, 4, 3, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_ccdf_gap(None, y_score, sensitive_features=sex, interval=(0.5, 1))
    0.25
    """
    from skfair._kernels.sorted_pairs import largest_gaps_inside

    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    intervals = Intervals(interval, rows.groups.levels)

    def gaps(s: SortedScores, first: IntArray, second: IntArray, start: int) -> FloatArray:
        inside = np.empty(s.rank.size, bool)
        n_groups = s.starts.size - 1
        for g in range(n_groups):
            here = slice(s.starts[g], s.starts[g + 1])
            inside[here] = intervals.contains(s.rank[here], start + g)
        top = np.array([intervals.contains(np.zeros(1), start + g)[0] for g in range(n_groups)])
        cells = s.cell_of_position()
        n_inside = np.bincount(cells, inside & s.ends_block(cells), minlength=n_groups)
        attains = top | (n_inside > 0)
        if not attains.all():
            g = int(np.argmin(attains))
            raise ValueError(
                f"No threshold gives group {rows.groups.names[start + g]!r}, with "
                f"{rows.groups.counts[start + g]} rows, a rank inside the interval {interval!r}. "
                "Use a longer interval or more rows."
            )
        out = np.empty(first.size)
        largest_gaps_inside(s.scores, s.rank, inside, top, s.starts, first, second, out)
        return out

    return rows.gap(gaps, agg)


@accepts_dask(binned="y_score")
@fill_doc
def partial_demographic_parity_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    interval: Any,
    threshold: float = 0.0,
    sample_weight: Any = None,
    intersectional: bool = True,
    normalize: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Difference of positive rates at one threshold inside a percentile interval; 0 is parity.

    .. math:: |P(s > \hat\theta \mid k, \text{rank} \in I)
              - P(s > \hat\theta \mid k', \text{rank} \in I)|

    Definition 4.3 of partial_fairness_idca.

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(interval)s
    %(threshold)s
    %(options)s
    %(normalize)s
    %(agg)s

    Returns
    -------
    %(gap)s

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
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    intervals = Intervals(interval, rows.groups.levels)
    is_above = rows.scores > threshold
    values = is_above.astype(float) if rows.weights is None else is_above * rows.weights
    rates = rows.groups.sums(values) / rows.groups.sums(rows.weights)
    return _rate_gap(rows, _interval_rates(rates, intervals, normalize), agg)


@accepts_dask(binned="y_score")
@fill_doc
def partial_group_auc_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    interval: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    ties: Ties = "half",
    agg: Agg = "worst",
) -> float:
    r"""How far the probability that one group outranks another inside the interval is from 1/2.

    .. math:: |P(s \ge s' \mid k, k', \text{rank} \in I, \text{rank}' \in I) - 1/2|

    Definition A.1 of partial_fairness_idca; 0 is parity.

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(interval)s
    %(options)s
    %(ties)s
    %(agg)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import partial_group_auc_gap
    >>> y_score = [4, 3, 2, 1, 4, 3, 0, -1]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_group_auc_gap(None, y_score, sensitive_features=sex, interval=(0.5, 1))
    0.5
    """
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    intervals = Intervals(interval, rows.groups.levels)

    def gaps(s: SortedScores, first: IntArray, second: IntArray, start: int) -> FloatArray:
        level = levels_at(intervals, s, start, normalize=True)
        mass = s.shared_mass(level, s.cell_of_position())
        return auc_gaps(s, mass, first, second, ties)

    return rows.gap(gaps, agg)


@accepts_dask("y_true", binned="y_score")
@fill_doc
def partial_equal_opportunity_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    interval: Any,
    threshold: float = 0.0,
    rank_within: RankWithin = "group",
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Difference of true positive rates inside a percentile interval; 0 is parity.

    .. math:: |P(s > \hat\theta \mid k, y = 1, \text{rank} \in I)
              - P(s > \hat\theta \mid k', y = 1, \text{rank} \in I)|

    Definition A.2 of partial_fairness_idca.

    Parameters
    ----------
    %(y_true)s
    %(y_score)s
    %(groups)s
    %(interval)s
    %(threshold)s
    %(rank_within)s
    %(options)s
    %(pos_label)s
    %(agg)s
    %(zero_division)s

    Returns
    -------
    %(gap)s

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
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional, like=y_true)
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    intervals = Intervals(interval, rows.groups.levels)
    rates = _class_rates(rows, positive, intervals, threshold, rank_within)
    return _rate_gap(rows, _defined(rates[:, 1], rows, True, zero_division), agg)


@accepts_dask("y_true", binned="y_score")
@fill_doc
def partial_equalized_odds_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    interval: Any,
    threshold: float = 0.0,
    rank_within: RankWithin = "group",
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Larger of the gaps of true and false positive rates inside a percentile interval.

    .. math:: \max_c |P(s > \hat\theta \mid k, y = c, \text{rank} \in I)
              - P(s > \hat\theta \mid k', y = c, \text{rank} \in I)|

    Definition A.3 of partial_fairness_idca; 0 is parity.

    Parameters
    ----------
    %(y_true)s
    %(y_score)s
    %(groups)s
    %(interval)s
    %(threshold)s
    %(rank_within)s
    %(options)s
    %(pos_label)s
    %(agg)s
    %(zero_division)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import partial_equalized_odds_gap
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_score = [3, 2, 1, -1, 3, -1, -2, -3]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> partial_equalized_odds_gap(y_true, y_score, sensitive_features=sex, interval=(0, 1))
    0.5
    """
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional, like=y_true)
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    intervals = Intervals(interval, rows.groups.levels)
    rates = _class_rates(rows, positive, intervals, threshold, rank_within)
    gaps = [_rate_gaps(rows, _defined(rates[:, c], rows, bool(c), zero_division)) for c in (0, 1)]
    return aggregate(np.maximum(*gaps), agg, empty=0.0)


def _class_rates(
    rows: ScoredRows,
    positive: IntArray,
    intervals: Intervals,
    threshold: float,
    rank_within: RankWithin,
) -> FloatArray:
    """Rates above the threshold inside the interval by group and class, shape (n_groups, 2)."""
    check_number(threshold, "threshold")
    groups, weights = rows.groups, rows.weights
    if rank_within == "class":
        total = groups.cross_counts(positive, 2, weights)
        is_above = rows.scores > threshold
        hits = groups.cross_counts(positive, 2, is_above if weights is None else is_above * weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = np.where(total > 0, hits / total, np.nan)
        return np.stack([_interval_rates(rates[:, c], intervals, True) for c in (0, 1)], axis=1)
    if rank_within != "group":
        raise ValueError(f"rank_within must be 'group' or 'class', got {rank_within!r}.")
    rates = np.full((groups.n_groups, 2), np.nan)
    offsets = groups.offsets.tolist()
    for codes, start, stop in zip(groups.codes, offsets[:-1], offsets[1:], strict=True):
        n_groups = stop - start
        s = SortedScores(rows.scores, codes - start, n_groups, weights, keep_order=True)
        cells = s.cell_of_position()
        mass = s.shared_mass(levels_at(intervals, s, start, normalize=True), cells)
        joint = 2 * cells + positive[s.order]
        inside = np.bincount(joint, weights=mass, minlength=2 * n_groups)
        above = np.bincount(joint, weights=mass * (s.scores > threshold), minlength=2 * n_groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            rates[start:stop] = np.where(inside > 0, above / inside, np.nan).reshape(-1, 2)
    return rates


def _interval_rates(rates: FloatArray, intervals: Intervals, normalize: bool) -> FloatArray:
    """Turn the rate of each group at a threshold into its overlap with the interval, (62)."""
    overlap = np.array([intervals.overlap(rate, g) for g, rate in enumerate(rates)])
    return overlap / intervals.lengths if normalize else overlap


def _defined(
    rates: FloatArray, rows: ScoredRows, positive: bool, zero_division: ZeroDivision
) -> FloatArray:
    """Raise for groups without rows of the class (in the interval), unless NaN is wanted."""
    undefined = np.flatnonzero(np.isnan(rates))
    if is_strict(zero_division) and undefined.size:
        raise_empty_class(f"{rows.groups.names[undefined[0]]}", positive)
    return rates


def _rate_gaps(rows: ScoredRows, rates: FloatArray) -> FloatArray:
    first, second = group_pairs(rows.groups)
    return np.abs(rates[first] - rates[second])


def _rate_gap(rows: ScoredRows, rates: FloatArray, agg: Agg) -> float:
    return aggregate(_rate_gaps(rows, rates), agg, empty=0.0)
