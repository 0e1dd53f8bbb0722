"""Paragraphs that the docstrings of several metrics share, written as docstrings."""

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
        Scores, probabilities of the positive class or values of a decision function; larger means
        more positive. Of Dask collections up to 65536 different scores are told apart; more are put
        into this many bins, and rates are exact up to the largest share of a group in a bin.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row; several columns are several attributes.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        What may explain a difference, such as a department; several columns are crossed. Groups are
        then compared only within each of its levels (strata), and all comparisons are pooled. A
        stratum with rows of a single group compares nothing.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; 2 counts like the same row twice.
    units : array-like of shape (n_samples,), default=None
        Which rows belong together, such as the person of each visit. They may lie in several
        groups. Without units every row is taken for another person, and the answer is too sure
        where people repeat.
    intersectional : bool, default=True
        Whether several attributes are crossed, or each is compared for itself and all comparisons
        are pooled.
    reference : {"pairwise", "overall"}, group or dict, default="pairwise"
        Compare every pair of groups, each group with all rows (of the stratum), or each other group
        with this one, such as ``"male"`` or ``{"sex": "male", "race": "White"}``. Differences from
        a reference group are signed: the rate of the group minus that of the reference; the worst
        is the one furthest from 0. Ratios and sums of differences have no sign: a ratio is the
        smaller of the two rates over the larger one, so a group far above the reference cannot
        hide another one below it.
    agg : {"worst", "mean"}, default="worst"
        Report the worst pair of groups or the mean over all pairs.
    interval : (float, float), list of such pairs, or dict
        Percentile interval of the scores counted from the top: ``(0.05, 0.3)`` are the ranks from
        the best 5% to the best 30% *of each group*. A list is a union of disjoint intervals; a
        dict maps each group to its own.
    normalize : bool, default=True
        Divide by the length of the interval, so that the value is a difference of conditional
        probabilities in [0, 1] (Definition 4.2). False leaves shares of the whole group.
    threshold : float, default=0.0
        Scores above it are decided positively; 0 suits a decision function, 0.5 a probability.
    pos_label : label, default=None
        The class that counts as positive. None is for labels that say it themselves: 0 and 1, -1
        and 1, and booleans. Others, such as 1 and 2 or text, need it.
    zero_division : {"raise"} or numpy.nan, default="raise"
        What to do when a group has no row to compute its rate from: raise a ``ValueError`` that
        names it, or return NaN.
    rank_within : {"group", "class"}, default="group"
        Whether the rank of a row is taken among its group (Definitions A.2 and A.3) or among the
        rows of its group and class (constraints (50) and (56)). These are different metrics.
    ties : {"half", "geq"}, default="half"
        A tie counts half, or as a win (the paper's ">=", which is not symmetric in the groups).
    """


def _of_comparisons() -> None:
    """Parameters of metrics that can compare groups with a reference.

    Parameters
    ----------
    agg : {"worst", "mean"}, default="worst"
        Report the worst comparison or the mean of all of them.
    """


def _of_scores() -> None:
    """Parameters of metrics of scores that need no labels.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Not used; accepted so that all metrics of scores are called alike.
    """


def _returns() -> None:
    """Return value of gaps.

    Returns
    -------
    gap : float
        0 is parity. With a single group there is nothing to compare and the value is 0.
    """


PARAGRAPHS = described(_parameters)
COMPARISONS = PARAGRAPHS | described(_of_comparisons)
_GAP = PARAGRAPHS | {"Returns": described(_returns, "Returns").get("gap", "")}
documented_gap = documenter(_GAP)
documented_gap_of_scores = documenter(_GAP | described(_of_scores))
