"""Group metrics of scores over their whole range: distributions and rankings.

Every metric sorts the scores within each group once, O(n log n), and compares pairs of groups by
merging, O(n G) for all pairs of G groups. The restriction to a percentile interval is in
:mod:`skfair.metrics.partial`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.blocks.weighted_rows import accepts_dask
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.metrics.docs import fill_doc
from skfair.metrics.pairs import Agg, aggregate
from skfair.metrics.sorted_scores import SortedScores
from skfair.utils.factorize import IntArray
from skfair.utils.validation import check_positive, check_scores, check_weights, is_strict

Ties = Literal["half", "geq"]
ZeroDivision = Literal["raise"] | float

_TIE_VALUES = {"half": 0.5, "geq": 1.0}


class ScoredRows(NamedTuple):
    """Checked scores with their groups and weights."""

    scores: FloatArray
    groups: GroupEncoding
    weights: FloatArray | None

    def gap(
        self,
        values_of_pairs: Callable[[SortedScores, IntArray, IntArray, int], FloatArray],
        agg: Agg,
    ) -> float:
        """Sort each attribute's groups, evaluate its pairs, and reduce all values to one number.

        ``values_of_pairs(sorted_scores, first, second, start)`` gets pairs numbered within the
        attribute, whose first group has the number ``start``.
        """
        values = []
        offsets = self.groups.offsets.tolist()
        for codes, start, stop in zip(self.groups.codes, offsets[:-1], offsets[1:], strict=True):
            first, second = np.triu_indices(stop - start, k=1)
            rows = SortedScores(self.scores, codes - start, stop - start, self.weights)
            values.append(values_of_pairs(rows, first, second, start))
        return aggregate(np.concatenate(values), agg, empty=0.0)


def scored_rows(
    y_score: Any,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    like: Any = None,
) -> ScoredRows:
    """Check scores, groups and weights together."""
    scores = check_scores(y_score)
    groups = encode_groups(
        sensitive_features,
        n_samples=scores.size,
        intersectional=intersectional,
        like=like if hasattr(like, "index") else y_score,
    )
    weights = check_weights(sample_weight, scores.size)
    if weights is not None:
        groups.check_nonempty(sample_weight=weights)
    return ScoredRows(scores, groups, weights)


@accepts_dask(binned="y_score")
@fill_doc
def wasserstein_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Wasserstein-1 distance between the score distributions of groups; 0 is parity.

    .. math:: W_{k,k'} = \int |\bar F_k(\theta) - \bar F_{k'}(\theta)| \, d\theta

    in the units of the score: the mean distance by which scores have to be moved.

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(options)s
    %(agg)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import wasserstein_gap
    >>> wasserstein_gap(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.2
    """
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    return rows.gap(lambda s, first, second, _: s.areas_between(s.rank, first, second), agg)


@accepts_dask(binned="y_score")
@fill_doc
def statistical_parity_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    agg: Agg = "worst",
) -> float:
    r"""Largest difference of selection rates over all thresholds; 0 is parity.

    .. math:: \max_\theta |\bar F_k(\theta) - \bar F_{k'}(\theta)|, \quad
              \bar F_k(\theta) = P(\text{score} > \theta \mid k)

    the Kolmogorov-Smirnov distance of the score distributions (distributional parity).

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(options)s
    %(agg)s

    Returns
    -------
    %(gap)s

    See Also
    --------
    partial_statistical_parity_gap : The same within a percentile interval.

    Examples
    --------
    >>> from skfair.metrics import statistical_parity_gap
    >>> statistical_parity_gap(None, [0.1, 0.3, 0.2, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    return rows.gap(lambda s, first, second, _: s.largest_gaps(s.rank, first, second), agg)


@accepts_dask(binned="y_score")
@fill_doc
def group_auc_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    ties: Ties = "half",
    agg: Agg = "worst",
) -> float:
    r"""How far the probability that one group outranks another is from one half; 0 is parity.

    .. math:: |P(s \ge s' \mid k, k') - 1/2|

    for a random row of each group, equation (36) of partial_fairness_idca.

    Parameters
    ----------
    %(y_true_unused)s
    %(y_score)s
    %(groups)s
    %(options)s
    %(ties)s
    %(agg)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import group_auc_gap
    >>> group_auc_gap(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=["f", "f", "m", "m"])
    0.5
    """
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
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
@fill_doc
def inter_group_pairwise_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    ties: Ties = "half",
    pos_label: Any = 1,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Unfairness of ranking errors across groups (cross-group AUC); 0 is parity.

    .. math:: |P(s^+_k \ge s^-_{k'}) - P(s^+_{k'} \ge s^-_k)|

    where :math:`s^+_k` is the score of a random positive row of group k and :math:`s^-_k` of a
    negative one, equation (104) of partial_fairness_idca.

    Parameters
    ----------
    %(y_true)s
    %(y_score)s
    %(groups)s
    %(options)s
    %(ties)s
    %(pos_label)s
    %(agg)s
    %(zero_division)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import inter_group_pairwise_gap
    >>> y_true, y_score = [0, 1, 0, 1], [0.1, 0.3, 0.2, 0.4]
    >>> inter_group_pairwise_gap(y_true, y_score, sensitive_features=["f", "f", "m", "m"])
    0.0
    """
    return _pairwise_gap(
        y_true,
        y_score,
        sensitive_features,
        sample_weight,
        intersectional,
        ties,
        pos_label,
        agg,
        zero_division,
        across=True,
    )


@accepts_dask("y_true", binned="y_score")
@fill_doc
def intra_group_pairwise_gap(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    ties: Ties = "half",
    pos_label: Any = 1,
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Difference of the areas under the ROC curve within groups; 0 is parity.

    .. math:: |P(s^+_k \ge s^-_k) - P(s^+_{k'} \ge s^-_{k'})|

    equation (106) of partial_fairness_idca.

    Parameters
    ----------
    %(y_true)s
    %(y_score)s
    %(groups)s
    %(options)s
    %(ties)s
    %(pos_label)s
    %(agg)s
    %(zero_division)s

    Returns
    -------
    %(gap)s

    Examples
    --------
    >>> from skfair.metrics import intra_group_pairwise_gap
    >>> y_true, y_score = [0, 1, 1, 0], [0.1, 0.3, 0.2, 0.4]
    >>> intra_group_pairwise_gap(y_true, y_score, sensitive_features=["f", "f", "m", "m"])
    1.0
    """
    return _pairwise_gap(
        y_true,
        y_score,
        sensitive_features,
        sample_weight,
        intersectional,
        ties,
        pos_label,
        agg,
        zero_division,
        across=False,
    )


def _pairwise_gap(
    y_true: Any,
    y_score: Any,
    sensitive_features: Any,
    sample_weight: Any,
    intersectional: bool,
    ties: Ties,
    pos_label: Any,
    agg: Agg,
    zero_division: ZeroDivision,
    *,
    across: bool,
) -> float:
    """Compare the win rates of positives over negatives, across groups or within each."""
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional, like=y_true)
    positive = check_positive(y_true, "y_true", pos_label, rows.scores.size)
    tie_value = _tie_value(ties)
    gaps = []
    offsets = rows.groups.offsets.tolist()
    for codes, start, stop in zip(rows.groups.codes, offsets[:-1], offsets[1:], strict=True):
        n_groups = stop - start
        cells = 2 * (codes - start) + positive  # positives of group g are cell 2 g + 1
        by_class = SortedScores(rows.scores, cells, 2 * n_groups, rows.weights)
        empty = np.flatnonzero(by_class.totals == 0)
        if is_strict(zero_division) and empty.size:
            raise_empty_class(rows.groups.names[start + empty[0] // 2], bool(empty[0] % 2))
        i, j = np.triu_indices(n_groups, k=1)
        pairs = [(i, j), (j, i)] if across else [(i, i), (j, j)]
        one, other = (
            by_class.win_rates(by_class.mass, 2 * winner + 1, 2 * loser, tie_value)
            for winner, loser in pairs
        )
        gap = np.abs(one - other)
        lacking = by_class.totals.reshape(-1, 2).min(axis=1) == 0
        gap[lacking[i] | lacking[j]] = np.nan
        gaps.append(gap)
    return aggregate(np.concatenate(gaps), agg, empty=0.0)


def raise_empty_class(group: str, positive: bool) -> None:
    """Raise because a group has no row of a class."""
    raise ValueError(
        f"Group {group!r} has no row of the {'positive' if positive else 'negative'} class, so its "
        "rate is undefined. Merge small groups or add data, or pass zero_division=numpy.nan to get "
        "NaN."
    )


def _tie_value(ties: Ties) -> float:
    if not isinstance(ties, str) or ties not in _TIE_VALUES:
        raise ValueError(f"ties must be 'half' or 'geq', got {ties!r}.")
    return _TIE_VALUES[ties]
