"""Group metrics of scores over their whole range: distributions and rankings.

Every metric sorts the scores within each group once, O(n log n), and compares pairs of groups by
merging, O(n G) for all pairs of G groups. The restriction to a percentile interval is in
:mod:`skfair.metrics.partial`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.groups.compared_groups import (
    Agg,
    ComparedGroups,
    ZeroDivision,
    aggregate,
    checked_rows,
)
from skfair.groups.weighted_rows import accepts_dask
from skfair.metrics.docs import documented_gap, documented_gap_of_scores
from skfair.metrics.sorted_scores import SortedScores
from skfair.utils.validation import check_positive, check_scores, one_dimensional

Ties = Literal["half", "geq"]

_TIE_VALUES = {"half": 0.5, "geq": 1.0}


class ScoredRows(NamedTuple):
    """Checked scores with their groups and weights."""

    scores: FloatArray
    groups: ComparedGroups
    weights: FloatArray | None

    def gap(
        self,
        values_of_pairs: Callable[[SortedScores, IntArray, IntArray, int], FloatArray],
        agg: Agg,
    ) -> float:
        """Sort each attribute's cells, evaluate the pairs, and reduce all values to one number.

        ``values_of_pairs(sorted_scores, first, second, start)`` gets pairs numbered within the
        attribute, whose first cell has the number ``start``.
        """
        values = []
        for codes, start, stop, first, second in self.groups.attributes():
            rows = SortedScores(self.scores, codes, stop - start, self.weights)
            values.append(values_of_pairs(rows, first, second, start))
        return aggregate(np.concatenate(values), agg)


def scored_rows(
    y_score: ColumnLike,
    sensitive_features: ColumnsLike | ComparedGroups | None,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    *,
    like: object = None,
    name: str = "y_score",
) -> ScoredRows:
    """Check scores, groups, strata and weights together; errors speak of scores by ``name``."""
    scores = check_scores(y_score, name)
    arguments = (sensitive_features, control_features, sample_weight, intersectional)
    like = like if hasattr(like, "index") else y_score
    groups, weights = checked_rows(
        *arguments, n_samples=scores.size, like=like, predictions=y_score
    )
    if weights is not None and groups.strata is None:
        groups.cells.check_nonempty(sample_weight=weights)
    return ScoredRows(scores, groups, weights)


def ranked_rows(
    y_score: ColumnLike, *groups: Any, like: object, name: str = "y_score"
) -> ScoredRows:
    """Check scores that are compared by ranks, which labels do not have."""
    rows = scored_rows(y_score, *groups, like=like, name=name)
    low, high = rows.scores.min(), rows.scores.max()
    kind = getattr(getattr(one_dimensional(y_score, name), "dtype", None), "kind", "O")
    is_pair = rows.scores.size > 2 and low < high
    if is_pair and kind in "biu" and np.all((rows.scores == low) | (rows.scores == high)):
        raise ValueError(
            f"{name} has the two values {low:g} and {high:g}, which look like decisions; ranks are "
            "those of scores. Pass those of decision_function or predict_proba, or compare "
            "decisions by demographic_parity_difference."
        )
    return rows


@accepts_dask(binned="y_score")
@documented_gap_of_scores
def wasserstein_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Wasserstein-1 distance between the score distributions of groups; 0 is parity.

    .. math:: W_{k,k'} = \int |\bar F_k(\theta) - \bar F_{k'}(\theta)| \, d\theta

    in the units of the score: the mean distance by which scores have to be moved.

    Examples
    --------
    >>> from skfair.metrics import wasserstein_gap
    >>> wasserstein_gap(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.2
    """
    rows = scored_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    return rows.gap(lambda s, first, second, _: s.areas_between(s.rank, first, second), agg)


@accepts_dask(binned="y_score")
@documented_gap_of_scores
def statistical_parity_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Largest difference of selection rates over all thresholds; 0 is parity.

    .. math:: \max_\theta |\bar F_k(\theta) - \bar F_{k'}(\theta)|, \quad
              \bar F_k(\theta) = P(\text{score} > \theta \mid k)

    the Kolmogorov-Smirnov distance of the score distributions (distributional parity).

    See Also
    --------
    partial_statistical_parity_gap : The same within a percentile interval.

    Examples
    --------
    >>> from skfair.metrics import statistical_parity_gap
    >>> statistical_parity_gap(None, [0.1, 0.3, 0.2, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    rows = scored_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    return rows.gap(lambda s, first, second, _: s.largest_gaps(s.rank, first, second), agg)


@accepts_dask(binned="y_score")
@documented_gap_of_scores
def group_auc_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    agg: Agg = "worst",
) -> float:
    r"""How far the probability that one group outranks another is from one half; 0 is parity.

    .. math:: |P(s \ge s' \mid k, k') - 1/2|

    for a random row of each group, equation (36) of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.metrics import group_auc_gap
    >>> group_auc_gap(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    rows = scored_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    return rows.gap(lambda s, i, j, _: auc_gaps(s, s.mass, i, j, ties), agg)


def auc_gaps(
    rows: SortedScores, mass: FloatArray, first: IntArray, second: IntArray, ties: Ties
) -> FloatArray:
    """Distance from one half of the probability that one group outranks the other, per pair."""
    tie_value = _tie_value(ties)
    gaps = np.abs(rows.win_rates(mass, first, second, tie_value) - 0.5)
    if ties == "half":
        return gaps
    return np.maximum(gaps, np.abs(rows.win_rates(mass, second, first, tie_value) - 0.5))


@accepts_dask("y_true", binned="y_score")
@documented_gap
def inter_group_pairwise_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    pos_label: ClassLabel = None,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Unfairness of ranking errors across groups (cross-group AUC); 0 is parity.

    .. math:: |P(s^+_k \ge s^-_{k'}) - P(s^+_{k'} \ge s^-_k)|

    where :math:`s^+_k` is the score of a random positive row of group k and :math:`s^-_k` of a
    negative one, equation (104) of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.metrics import inter_group_pairwise_gap
    >>> y_true, y_score = [0, 1, 0, 1], [0.1, 0.3, 0.2, 0.4]
    >>> inter_group_pairwise_gap(y_true, y_score, sensitive_features=["f", "f", "m", "m"])
    0.0
    """
    rows = scored_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    return _pairwise_gap(rows, positive, ties, agg, zero_division, across=True)


@accepts_dask("y_true", binned="y_score")
@documented_gap
def intra_group_pairwise_gap(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    ties: Ties = "half",
    pos_label: ClassLabel = None,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Difference of the areas under the ROC curve within groups; 0 is parity.

    .. math:: |P(s^+_k \ge s^-_k) - P(s^+_{k'} \ge s^-_{k'})|

    equation (106) of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.metrics import intra_group_pairwise_gap
    >>> y_true, y_score = [0, 1, 1, 0], [0.1, 0.3, 0.2, 0.4]
    >>> intra_group_pairwise_gap(y_true, y_score, sensitive_features=["f", "f", "m", "m"])
    1.0
    """
    rows = scored_rows(
        y_score, sensitive_features, control_features, sample_weight, intersectional, like=y_true
    )
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    return _pairwise_gap(rows, positive, ties, agg, zero_division, across=False)


def _pairwise_gap(
    rows: ScoredRows,
    positive: IntArray,
    ties: Ties,
    agg: Agg,
    zero_division: ZeroDivision,
    *,
    across: bool,
) -> float:
    """Compare the win rates of positives over negatives, across groups or within each."""
    tie_value = _tie_value(ties)
    totals = rows.groups.cells.cross_counts(positive, 2, rows.weights)
    totals[totals == 0] = np.nan
    for label in (0, 1):
        groups = rows.groups
        groups.check_class(totals[:, label], groups.compared, bool(label), zero_division)
    gaps = []
    for codes, start, stop, i, j in rows.groups.attributes():
        parts = 2 * codes + positive  # positives of cell c are part 2 c + 1
        by_class = SortedScores(rows.scores, parts, 2 * (stop - start), rows.weights)
        every = np.arange(stop - start)

        def wins(of: IntArray, over: IntArray, by_class: SortedScores = by_class) -> FloatArray:
            return by_class.win_rates(by_class.mass, 2 * of + 1, 2 * over, tie_value)

        within = None if across else wins(every, every)
        wins_of_first, other = (
            (wins(i, j), wins(j, i)) if within is None else (within[i], within[j])
        )
        is_empty = np.any(np.isnan(totals[start:stop]), axis=1)
        gaps.append(np.where(is_empty[i] | is_empty[j], np.nan, np.abs(wins_of_first - other)))
    return aggregate(np.concatenate(gaps), agg)


def _tie_value(ties: Ties) -> float:
    if not isinstance(ties, str) or ties not in _TIE_VALUES:
        raise ValueError(f"ties must be 'half' or 'geq', got {ties!r}.")
    return _TIE_VALUES[ties]
