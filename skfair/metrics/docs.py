"""Paragraphs that the docstrings of several metrics share, written as docstrings.

The functions below are never called. ``described`` takes the paragraphs out of their docstrings,
and the decorators at the end (``documented_gap``, ``documented_gap_of_scores``) add those that the
docstring of a metric lacks. Metrics with paragraphs of their own make a ``documenter`` of
``PARAGRAPHS`` or ``COMPARISONS``.
"""

from __future__ import annotations

from skfair.utils.docs import described, documenter


def _parameters() -> None:
    """Parameters of several metrics.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    y_score : array-like of shape (n_samples,)
        Scores, such as probabilities of the positive class or values of a decision function. A
        larger score means more positive. With Dask collections, up to 65536 different scores are
        kept apart. If there are more, they are binned into this many bins, and rates are exact up
        to the largest share of a group in one bin.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        An attribute that may legitimately explain a difference, such as the department. Several
        columns are crossed. Groups are then compared only within each of its levels (strata), and
        the comparisons of all strata are pooled. A stratum that has rows of only one group has no
        comparisons and is left out, except by metrics of the largest rate or loss of a group.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. A row of weight 2 is counted like two identical rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. The rows of
        one unit may lie in several groups, as those of one CV under two names. Without ``units``,
        every row is treated as a different person, which overstates the confidence if people occur
        more than once, and understates it for such pairs.
    intersectional : bool, default=True
        If True, groups are the intersections of all attributes. If False, groups are compared
        within each attribute, and the comparisons of all attributes are pooled.
    reference : {"pairwise", "overall"}, group or dict, default="pairwise"
        The comparisons that are made. "pairwise" compares every pair of groups, and "overall"
        compares each group with all rows (of its stratum). A group, such as ``"male"`` or ``{"sex":
        "male", "race": "White"}``, is compared with each other group. Differences from a reference
        group are signed: they are the rate of the group minus the rate of the reference, and the
        worst one is furthest from 0. Ratios and sums of differences have no sign. A ratio divides
        the smaller of the two rates by the larger one, so a group far above the reference cannot
        hide a group below it.
    agg : {"worst", "mean"}, default="worst"
        Whether to return the value of the worst pair of groups or the mean over all pairs.
    interval : (float, float), list of such pairs, or dict
        Percentile interval of the scores counted from the top: ``(0.05, 0.3)`` covers the ranks
        from the best 5% to the best 30% *of each group*. A list gives a union of disjoint
        intervals, and a dict gives each group its own interval.
    normalize : bool, default=True
        If True, divide by the length of the interval, so that the value is a difference of
        conditional probabilities in [0, 1] (Definition 4.2). If False, the value is a difference of
        shares of the whole groups.
    threshold : float, default=0.0
        Rows with a score above the threshold are predicted positive. Use 0 for a decision function
        and 0.5 for probabilities.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.
    zero_division : {"raise"} or numpy.nan, default="raise"
        Behaviour if a group has no row to compute its rate from, or if there is a single group and
        nothing to compare. "raise" raises a ``ValueError`` that says which, and ``numpy.nan``
        returns NaN.
    rank_within : {"group", "class"}, default="group"
        The rows among which the rank of a row is taken: all rows of its group (Definitions A.2 and
        A.3), or the rows of its group and class (constraints (50) and (56)). The two choices are
        different metrics.
    ties : {"half", "geq"}, default="half"
        How ties count. With "half", a tie counts as half a win. With "geq", it counts as a win, as
        in the paper, whose ">=" is not symmetric in the groups.
    """


def _of_comparisons() -> None:
    """Parameters of metrics that can compare groups with a reference.

    Parameters
    ----------
    agg : {"worst", "mean"}, default="worst"
        Whether to return the value of the worst comparison or the mean over all comparisons.
    """


def _of_scores() -> None:
    """Parameters of metrics of scores that need no labels.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Not used. It is accepted so that all metrics of scores have the same signature.
    """


def _returns() -> None:
    """Return value of gaps.

    Returns
    -------
    gap : float
        The gap, where 0 is parity. With a single group there is nothing to compare, so the gap is
        undefined.
    """


PARAGRAPHS = described(_parameters)
COMPARISONS = PARAGRAPHS | described(_of_comparisons)
_GAP = PARAGRAPHS | {"Returns": described(_returns, "Returns").get("gap", "")}
documented_gap = documenter(_GAP)
documented_gap_of_scores = documenter(_GAP | described(_of_scores))
