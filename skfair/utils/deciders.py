"""Meta-estimators of others that make decisions of their own from probabilities.

There is no way to refuse them: they call ``predict_proba`` as anybody may. So the stack of calls
says who asks.
"""

from __future__ import annotations

import sys

from skfair.utils.warn import warn_user

# Where probabilities are asked for to decide by, and what is asked.
_DECIDERS = {
    "sklearn.model_selection._classification_threshold": "A classifier with a threshold",
    "sklego.meta.thresholder": "A classifier with a threshold",
    "sklearn.ensemble._voting": "Soft voting",
    "sklearn.ensemble._bagging": "Bagging",
}
# Code that hands the question of somebody else on.
_BETWEEN = (
    "skfair.",
    "functools",
    "contextlib",
    "sklearn.base",
    "sklearn.frozen",
    "sklearn.metrics.",
    "sklearn.model_selection._search",
    "sklearn.pipeline",
    "sklearn.utils.",
)


def warn_of_decider(estimator: object) -> None:
    """Warn if a meta-estimator asks for probabilities to decide by, and discards the decisions."""
    frame = sys._getframe(1)
    while (name := str(frame.f_globals.get("__name__"))).startswith(_BETWEEN) and frame.f_back:
        frame = frame.f_back
    if name in _DECIDERS:
        own = type(estimator).__name__
        warn_user(
            f"{_DECIDERS[name]} decides by the probabilities of {own}, which are those without "
            "limits: the limits of its decisions do not hold for the decisions made from them. "
            f"Use the predictions of {own} itself (its selection_rate limits how many are "
            "selected), or hard voting, and measure the disparity of the whole model."
        )
