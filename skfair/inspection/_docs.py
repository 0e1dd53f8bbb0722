"""Paragraphs that the docstrings of several displays share."""

from __future__ import annotations

from skfair.utils.text import filler

_ROWS = "array-like of shape (n_samples,)"

fill_doc = filler(
    {
        "y_unused": """y : array-like of shape (n_samples,), default=None
    Not used; accepted so that all displays are called alike.""",
        "y_true_unused": """y_true : array-like of shape (n_samples,) or None
    Not used; accepted so that all displays are called alike.""",
        "groups": f"""sensitive_features : {_ROWS} or (n_samples, n_attributes)
    The group of each row; several columns are several attributes.""",
        "columns": """sensitive_columns : str, int or list of them, default=None
    Instead: names or positions of the columns of X that hold the groups. Without either the
    ``sensitive_columns`` of the estimator are used.""",
        "weights": """sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows.""",
        "interval": """interval : (float, float), list of such pairs, or dict, default=None
    Percentile interval counted from the top: ``(0.05, 0.3)`` are the ranks from the best 5 % to the
    best 30 % *of each group*. A list is a union of disjoint intervals; a dict maps each group to
    its own.""",
        "response": """\
response_method : str or sequence of str, default=("decision_function", "predict_proba")
    The method that gives scores, or several in order of preference.
pos_label : label, default=None
    The class whose scores are drawn; None is the second one.""",
        "name": """name : str, default=None
    Name of the model, put in front of the names in the legend.""",
        "ax": """ax : matplotlib Axes, default=None
    Axes to draw on; None makes a new figure.""",
        "resampling": """interval : {"wilson", "bootstrap"} or None, default="wilson"
    How the intervals are found.
confidence : float, default=0.95
    Coverage of the intervals.
n_bootstrap : int, default=500
    Number of resampled tables.
random_state : int, RandomState instance or None, default=None
    Seed of the bootstrap.""",
    }
)
