"""Pick the best candidate of a search among those that meet fairness limits.

Accuracy and fairness are two scores; adding them up hides the trade. ``best_within`` states it as a
rule for ``GridSearchCV(refit=...)``: the best score among the candidates within the limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair.exceptions import NoFeasibleModelWarning
from skfair.metrics.labels import LABEL_METRICS
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed
from skfair.utils.validation import check_limit, check_number
from skfair.utils.warn import warn_user

Limit = float | tuple[float | None, float | None]


@dataclass(frozen=True)
class BestWithin:
    """The callable that :func:`best_within` makes; picklable, and shown by its arguments.

    Examples
    --------
    >>> from skfair.model_selection import best_within
    >>> best_within(score="accuracy", limit={"gap": 0.05})
    BestWithin(score='accuracy', limit={'gap': 0.05}, slack=0.0)
    """

    score: str
    limit: Mapping[str, Limit] = field(default_factory=dict)
    slack: float = 0.0

    def __call__(self, cv_results: Mapping[str, Any]) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        cv_results : dict
            The ``cv_results_`` of a search.

        Returns
        -------
        best_index : int
            Position of the candidate.
        """
        scores = _mean_scores(cv_results, self.score)
        excess = np.zeros(scores.size)
        for name, limit in self.limit.items():
            values = np.abs(_mean_scores(cv_results, name))
            low, high = limit if isinstance(limit, tuple) else (None, limit)
            low, high = -np.inf if low is None else low, np.inf if high is None else high
            over = np.maximum(0.0, np.maximum(values - high, low - values))
            # A candidate whose fairness is unknown is not within any limit.
            excess = np.maximum(excess, np.where(np.isnan(values), np.inf, over))
        excess[np.isnan(scores)] = np.inf
        if not np.isfinite(excess).any():
            raise ValueError(
                "Every candidate of the search has an undefined (NaN) score. The first error of "
                "the search, shown with GridSearchCV(error_score='raise'), says why."
            )
        feasible = excess <= self.slack + ROUNDING
        if feasible.any():
            return int(np.argmax(np.where(feasible, scores, -np.inf)))
        closest = int(np.argmin(excess))
        warn_user(
            f"None of {scores.size} candidates is within the limits {dict(self.limit)}. The one "
            f"closest to them is kept; it exceeds a limit by {excess[closest]:.4g}. Search over "
            "fairer models, or relax the limits.",
            NoFeasibleModelWarning,
        )
        return closest


def best_within(*, score: str, limit: Mapping[str, Limit], slack: float = 0.0) -> BestWithin:
    """Make a rule for ``GridSearchCV(refit=...)``: the best score within fairness limits.

    Parameters
    ----------
    score : str
        The score to maximise, one of the keys of ``scoring``.
    limit : dict
        For each fairness score (a key of ``scoring``) its largest value, in the units of the
        metric: ``{"demographic_parity_difference": 0.05}``. A pair ``(low, high)``, either of which
        may be None, bounds it from both sides: ``{"demographic_parity_ratio": (0.8, None)}``. The
        sign of negated scorers is ignored. For a limit of each attribute, make a scorer of each
        with ``sensitive=``.
    slack : float, default=0.0
        How far a limit may be exceeded, for instance one standard error of the metric.

    Returns
    -------
    rule : BestWithin
        A picklable callable. It warns (``NoFeasibleModelWarning``) when no candidate is within the
        limits and then returns the one closest to them.

    Notes
    -----
    The limits hold for the means over the folds, so on new data they are exceeded about every
    second time by some sampling noise; ask for a stricter limit if that matters.

    Examples
    --------
    >>> from skfair.model_selection import best_within
    >>> rule = best_within(score="accuracy", limit={"gap": 0.05})
    >>> rule({"mean_test_accuracy": [0.9, 0.8, 0.7], "mean_test_gap": [-0.2, -0.04, -0.01]})
    1
    """
    if not isinstance(limit, Mapping):
        raise TypeError(f"limit must be a dict of bounds by score, got {limit!r}.")
    check_number(slack, "slack", low=0)
    for name, bound in limit.items():
        if isinstance(bound, Mapping):
            raise ValueError(
                f"limit[{name!r}]={bound!r} has a limit for each attribute, but one score has one. "
                "Score each attribute: get_scorer(name, sensitive=attribute)."
            )
        ends = bound if isinstance(bound, tuple) else (None, bound)
        if len(ends) != 2 or not all(end is None or isinstance(end, Real) for end in ends):
            raise ValueError(
                f"limit[{name!r}] must be a number or a pair (low, high), got {bound!r}."
            )
        metric = LABEL_METRICS.get(name.removeprefix("neg_"))
        if metric and metric.greater_is_better and not isinstance(bound, tuple):
            raise ValueError(
                f"limit[{name!r}]={bound!r} is the largest value, but the fairest ratio is 1. Pass "
                f"the smallest one that is allowed: ({bound!r}, None)."
            )
        if metric:
            for end in filter(None, ends):
                check_limit(abs(end), f"limit[{name!r}]={bound!r}", metric.most)
    return BestWithin(score, dict(limit), slack)


def _mean_scores(cv_results: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    key = f"mean_test_{name}"
    if key not in cv_results:
        known = [k.removeprefix("mean_test_") for k in cv_results if k.startswith("mean_test_")]
        raise ValueError(
            f"The search has no score {name!r}. Its scores are {listed(known)}; name them with "
            "scoring={...}, a dict of scorers."
        )
    return np.asarray(cv_results[key], dtype=np.float64)
