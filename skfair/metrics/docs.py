"""Paragraphs that the docstrings of several metrics share."""

from __future__ import annotations

from skfair.utils.text import filler

_PARAGRAPHS = {
    "y_true_unused": """y_true : array-like of shape (n_samples,) or None
    Not used; accepted so that all metrics of scores are called alike.""",
    "y_true": """y_true : array-like of shape (n_samples,)
    True labels.""",
    "y_pred": """y_pred : array-like of shape (n_samples,)
    Predicted labels.""",
    "y_score": """y_score : array-like of shape (n_samples,)
    Scores, probabilities of the positive class or values of a decision function; larger means
    more positive. Of Dask collections up to 65536 different scores are told apart; more are put
    into so many bins, and rates are exact up to the largest share of a group in a bin.""",
    "groups": """sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
    The group of each row; several columns are several attributes.
control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
    What may explain a difference, such as a department; several columns are crossed. Groups are
    then compared only within each of its levels (strata), and all comparisons are pooled. A
    stratum with rows of a single group compares nothing.""",
    "options": """sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows; 2 counts like the same row twice.
intersectional : bool, default=True
    Whether several attributes are crossed, or each is compared for itself and all comparisons
    are pooled.""",
    "reference": """reference : {"pairwise", "overall"}, default="pairwise"
    Compare every pair of groups, or each group with all rows (of the stratum).""",
    "agg_of_comparisons": """agg : {"worst", "mean"}, default="worst"
    Report the worst comparison or the mean of all of them.""",
    "agg": """agg : {"worst", "mean"}, default="worst"
    Report the worst pair of groups or the mean over all pairs.""",
    "interval": """interval : (float, float), list of such pairs, or dict
    Percentile interval of the scores counted from the top: ``(0.05, 0.3)`` are the ranks from
    the best 5 % to the best 30 % *of each group*. A list is a union of disjoint intervals; a
    dict maps each group to its own.""",
    "normalize": """normalize : bool, default=True
    Divide by the length of the interval, so that the value is a difference of conditional
    probabilities in [0, 1] (Definition 4.2). False leaves shares of the whole group.""",
    "threshold": """threshold : float, default=0.0
    Scores above it are decided positively; 0 suits a decision function, 0.5 a probability.""",
    "rows_of_losses": """y_true : array-like of shape (n_samples,)
    True labels; numbers for regression.
y_score : array-like of shape (n_samples,)
    Values of a decision function (positive where the positive class is predicted), not
    probabilities; predictions for regression.""",
    "loss": """loss : str, callable or object with the method ``exact``, default="log_loss"
    With t the target, -1 or 1 for classification: ``"log_loss"`` is log(1 + exp(-t z)),
    ``"hinge"`` max(0, 1 - t z), ``"squared_hinge"`` its square, ``"squared_error"``
    (z - t)^2 / 2, ``"absolute_error"`` the distance of z and t. The first four are for
    classification, the last two for regression. A function is called with targets (-1 and 1 for
    classification) and scores, ``loss(y_true, y_score)``, an object as ``loss.exact(scores,
    targets)``; both return the loss of each row.
task : {"classification", "regression"}, default="classification"
    Whether ``y_true`` holds classes or numbers.""",
    "given": """given : {"all", "positive", "class"}, default="all"
    Which rows the mean losses are taken over: all, those of the positive class, or each class by
    itself. The last two are for classification.""",
    "pos_label": """pos_label : label, default=1
    The class that counts as positive; needed for strings and for more than two classes.""",
    "zero_division": """zero_division : {"raise"} or numpy.nan, default="raise"
    What to do when a group has no row to compute its rate from: raise a ``ValueError`` that
    names it, or return NaN.""",
    "zero_division_of_labels": """zero_division : {"raise"} or numpy.nan, default="raise"
    What to do when a rate is undefined because a group has no row to compute it from (or a ratio
    because both rates are 0): raise a ``ValueError`` that names the group, or return NaN.""",
    "rank_within": """rank_within : {"group", "class"}, default="group"
    Whether the rank of a row is taken among its group (Definitions A.2 and A.3) or among the
    rows of its group and class (constraints (50) and (56)). These are different metrics.""",
    "ties": """ties : {"half", "geq"}, default="half"
    A tie counts half, or as a win (the paper's ">=", which is not symmetric in the groups).""",
    "labels": """labels : array-like of shape (n_samples,)
    Cluster of each row; any labels.""",
    "groups_of_clusters": """\
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
    Group of each row, or one column per sensitive attribute.""",
    "weights": """sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows, at least 0.""",
    "gap": """gap : float
    0 is parity. With a single group there is nothing to compare and the value is 0.""",
    "ranking_score": """y_score : array-like of shape (n_samples,)
    Scores; a larger one puts a document further up.""",
    "query_id": """query_id : array-like of shape (n_samples,)
    The query of each row; its rows need not be together.""",
    "ranked_groups": """sensitive_features : array-like, (n_samples,) or (n_samples, n_attributes)
    The group of each document; several columns are several attributes.
intersectional : bool, default=True
    Whether several attributes are crossed, or each is compared for itself and all comparisons
    are pooled.""",
    "k": """k : int, default=None
    Only the first k places count; None for all of them.""",
    "aggregate": """aggregate : {"mean", "median", "max"} or float, default="mean"
    How the values of queries become one number; a float from 0 to 1 is a quantile.""",
    "undefined_queries": """zero_division : {"raise"} or numpy.nan, default="raise"
    What to do when no query has the documents that are compared: raise a ``ValueError``, or
    return NaN. Single queries without them are left out.""",
}


fill_doc = filler(_PARAGRAPHS)
