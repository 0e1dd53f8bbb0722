"""Paragraphs that the docstrings of several displays share."""

from __future__ import annotations

from skfair.utils.docs import documenter

_ROWS = "array-like of shape (n_samples,)"

PARAGRAPHS = {
    "y": """y : array-like of shape (n_samples,), default=None
    Not used; accepted so that all displays are called alike.""",
    "y_true": """y_true : array-like of shape (n_samples,) or None
    Not used; accepted so that all displays are called alike.""",
    "sensitive_features": f"""sensitive_features : {_ROWS} or (n_samples, n_attributes)
    The group of each row; several columns are several attributes.""",
    "sensitive": """sensitive : str, int or list of them, default=None
    Instead: names or positions of the columns of X that hold the groups. Without either,
    the columns of the estimator's ``sensitive`` are used.""",
    "sample_weight": """sample_weight : array-like of shape (n_samples,), default=None
    Weights of the rows.""",
    "response_method": """\
response_method : str or sequence of str, default=("decision_function", "predict_proba")
    The method that gives scores, or several in order of preference.""",
    "pos_label": """pos_label : label, default=None
    The class whose scores are drawn; None is the second one.""",
    "name": """name : str, default=None
    Name of what is drawn, such as the model, put in front of the names in the legend.""",
    "ax": """ax : matplotlib Axes, default=None
    Axes to draw on; None makes a new figure.""",
    "Attributes": """ax_ : matplotlib Axes
    The axes drawn on.
figure_ : matplotlib Figure
    Their figure.""",
    "Returns": """display : {owner}
    The numbers and the artists.""",
    "plot.Returns": """display : {owner}
    The display itself.""",
}

documented = documenter(PARAGRAPHS)
