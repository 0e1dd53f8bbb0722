"""Select the best candidate of a search among those that satisfy fairness limits.

Accuracy and fairness are two scores, and their sum hides the trade-off. ``best_within`` returns a
rule for ``GridSearchCV(refit=...)``: the best score among the candidates within the limits.
scikit-learn calls the rule with ``cv_results_``. ``FairnessPath.select`` calls it with the
same two columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair.exceptions import LooseLimitWarning, NoFeasibleModelWarning
from skfair.metrics.labels import LABEL_METRICS
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed
from skfair.utils.validation import check_limit, check_number
from skfair.utils.warn import warn_user

Limit = float | tuple[float | None, float | None]


@dataclass(frozen=True)
class BestWithin:
    """Rule for ``refit`` of a search, as made by :func:`best_within`. It can be pickled.

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
            Index of the candidate in ``cv_results``.
        """
        scores = _mean_scores(cv_results, self.score)
        excess = np.zeros(scores.size)
        for name, limit in self.limit.items():
            values = np.abs(_mean_scores(cv_results, name))  # scorers may have negated them
            low, high = limit if isinstance(limit, tuple) else (None, limit)
            low, high = -np.inf if low is None else low, np.inf if high is None else high
            _ask_of_percent(name, high, values)
            over = np.maximum(0.0, np.maximum(values - high, low - values))
            # A candidate whose disparity is NaN is not within any limit.
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


def best_within(score: str, limit: Mapping[str, Limit], *, slack: float = 0.0) -> BestWithin:
    """Select the candidate of a search with the best score within fairness limits.

    Pass the result as ``GridSearchCV(refit=...)`` of a search with several scores. The candidate
    with the best ``score`` among all candidates within the limits is then refitted.

    Parameters
    ----------
    score : str
        The score to maximise, which is one of the keys of ``scoring``.
    limit : dict
        The limit for each fairness score. The keys are keys of ``scoring``, where the name of a
        metric also stands for ``neg_`` and this name. The values are the largest values that are
        allowed, such as ``{"demographic_parity_difference": 0.05}``. A pair
        ``(low, high)`` sets a lower and an upper limit, each of which may be None. For example,
        ``{"demographic_parity_ratio": (0.8, None)}`` is the four-fifths rule. The sign of negated
        scorers is ignored. To limit each attribute separately, use one scorer per attribute, made
        with ``sensitive=``.
    slack : float, default=0.0
        Amount by which a limit may be exceeded, such as one standard error of the metric.

    Returns
    -------
    rule : BestWithin
        A callable that returns the index of the selected candidate. If no candidate is within the
        limits, it raises a ``NoFeasibleModelWarning`` and selects the closest one.

    See Also
    --------
    fairness_path : Fits a model under several limits.
    skfair.metrics.get_scorer : Scorers of fairness metrics.

    Notes
    -----
    The limits apply to the means over the folds. On new data they are therefore exceeded in about
    half of the cases, because of sampling noise. Use a stricter limit to avoid this.

    Examples
    --------
    The first candidate has the best accuracy, but it exceeds the limit, so the second is selected.

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
        if len(ends) != 2 or not all(end is None or _is_number(end) for end in ends):
            raise ValueError(
                f"limit[{name!r}] must be a number or a pair (low, high), got {bound!r}."
            )
        low, high = ends
        if high is not None and (high < 0 or (low is not None and low > high)):
            raise ValueError(
                f"limit[{name!r}]={bound!r} can be met by no candidate: scores are compared "
                "without their sign, which negated scorers change. Pass the largest value that is "
                "allowed, such as 0.05, or a pair (low, high) with low <= high."
            )
        metric = LABEL_METRICS.get(name.removeprefix("neg_"))
        if metric and metric.greater_is_better and not isinstance(bound, tuple):
            raise ValueError(
                f"limit[{name!r}]={bound!r} is the largest value, but the fairest ratio is 1. Pass "
                f"the smallest one that is allowed: ({bound!r}, None)."
            )
        if metric:
            plain = name.removeprefix("neg_").removesuffix("_difference")
            for end in filter(None, ends):
                is_difference = metric.kind == "difference"
                ratio = f"limit={{'{plain}_ratio': ({end!r}, None)}}" if is_difference else None
                check_limit(abs(end), f"limit[{name!r}]={bound!r}", metric.most, ratio=ratio)
    return BestWithin(score, dict(limit), slack)


def _ask_of_percent(name: str, high: float, values: NDArray[np.float64]) -> None:
    """Warn of a limit above 1 on scores that look like shares, such as 5 for 5%.

    The name is the user's own, so this is known only when there are scores. An error would lose the
    search.
    """
    largest = float(np.nanmax(values, initial=0.0))
    if 1 < high < np.inf and largest <= 1:
        warn_user(
            f"limit[{name!r}]={high:g} limits nothing: no candidate has a {name!r} above "
            f"{largest:.3g}. If {high:g}% was meant, pass {high / 100:g}.",
            LooseLimitWarning,
        )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def _mean_scores(cv_results: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    """Return the mean score of each candidate over the folds.

    A metric may also be given by the name of its scorer, which begins with "neg_".
    """
    key = f"mean_test_{name}"
    if key not in cv_results:
        key = f"mean_test_neg_{name}"
    if key not in cv_results:
        known = [k.removeprefix("mean_test_") for k in cv_results if k.startswith("mean_test_")]
        raise ValueError(
            f"The search has no score {name!r}. Its scores are {listed(known)}; name them with "
            "scoring={...}, a dict of scorers."
        )
    return np.asarray(cv_results[key], dtype=np.float64)
