"""Checks for meta-estimators that discard decisions or pass on only some columns to an estimator.

scikit-learn does not tell an estimator which meta-estimator calls it, so the call stack is read.
``predict_proba`` and ``decision_function`` of classifiers call :func:`warn_of_decider`, and cloning
an estimator calls :func:`refuse_positions`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from skfair.utils.text import listed
from skfair.utils.warn import warn_user

_THRESHOLD = "sklearn.model_selection._classification_threshold"
_BAGGING = "sklearn.ensemble._bagging"
_MULTICLASS = "sklearn.multiclass"
# Modules that make decisions by probabilities of the classifiers inside, with their names in
# warnings.
_DECIDERS = {
    _THRESHOLD: "A classifier with a threshold",
    "sklego.meta.thresholder": "A classifier with a threshold",
    "sklearn.ensemble._voting": "Soft voting",
    _BAGGING: "Bagging",
}
# Modules whose ``predict`` compares scores with each other or with a number other than 0. The
# limits of the classifier are then lost for any scores.
_RECUTTERS = {
    _THRESHOLD: "A classifier with a threshold",
    _MULTICLASS: "A classifier of several classes made of binary ones",
    "sklearn.calibration": "A calibrated classifier",
}
# Modules that only pass a call on. The caller of interest is further up the stack.
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
# Modules that fit clones on some of the columns, with their names in errors.
_DROPPERS = {
    "sklearn.feature_selection._rfe": "Recursive feature elimination",
    "sklearn.feature_selection._sequential": "Sequential feature selection",
    _BAGGING: "Bagging of columns (max_features, bootstrap_features)",
}


def warn_of_decider(estimator: object, scores: str) -> None:
    """Warn if a meta-estimator decides by scores of the estimator and discards its decisions.

    ``scores`` says what the meta-estimator calls for: "probabilities", which do not include the
    limits, or "scores", whose sign is the decision within the limits.
    """
    frame: Any = sys._getframe(1)
    while (name := _module(frame)).startswith(_BETWEEN) and frame.f_back:
        frame = frame.f_back
    who = _DECIDERS.get(name) if scores == "probabilities" else None
    if who is None and name in _RECUTTERS:
        while _module(frame) == name and frame.f_code.co_name != "predict":
            frame = frame.f_back
        owner = frame.f_locals.get("self") if _module(frame) == name else None
        # The limits are kept if the call is not from ``predict`` of the module, or if the sign of
        # the score decides: one-vs-rest with two classes, a threshold left at "auto".
        is_binary = name == _MULTICLASS and len(getattr(owner, "classes_", ())) == 2
        is_kept = owner is None or is_binary or getattr(owner, "threshold", None) == "auto"
        who = None if is_kept else _RECUTTERS[name]
    if who is not None:
        own = type(estimator).__name__
        warn_user(
            f"{who} decides by the {scores} of {own}: the limits of its decisions do not hold for "
            f"the decisions made from them. Use the predictions of {own} itself (its "
            "selection_rate limits how many are selected), hard voting, or FairDecisionClassifier "
            "for several classes, and measure the disparity of the whole model."
        )


def refuse_positions(owner: str, columns: Iterable[Any]) -> None:
    """Raise if columns are given by position, and a meta-estimator on the stack drops columns.

    The positions would then mean other columns. ``owner`` is the name of the estimator in the
    error.
    """
    flat = (column for some in columns for column in np.ravel(np.asarray(some, dtype=object)))
    positions = [column for column in flat if isinstance(column, Integral)]
    frame: Any = sys._getframe(1) if positions else None
    while frame is not None:
        name = _module(frame)
        bagging = frame.f_locals.get("ensemble") if name == _BAGGING else None
        drops = (
            name in _DROPPERS
            if name != _BAGGING
            else bagging is not None
            and (bagging.bootstrap_features or bagging._max_features < bagging.n_features_in_)
        )
        if drops:
            raise ValueError(
                f"{_DROPPERS[name]} passes on some columns of X only, where the positions "
                f"{listed(positions)}, given to {owner}, mean other columns. Enable metadata "
                "routing, sklearn.set_config(enable_metadata_routing=True), and pass "
                "sensitive_features= to fit instead."
            )
        frame = frame.f_back


def _module(frame: Any) -> str:
    return str(frame.f_globals.get("__name__"))
