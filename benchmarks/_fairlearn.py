"""Calls of fairlearn's estimators with the options that every page gives them.

A limit of a page is a largest difference of the rates of groups. Both estimators draw labels at
random; their expected labels are what is measured.
"""

from typing import Any


def reduction(base: Any, rule: str, limit: float) -> Any:
    """Return ``ExponentiatedGradient``, whose limit is on the distance to the overall rate."""
    from fairlearn import reductions

    moment = {
        "demographic_parity": reductions.DemographicParity,
        "equal_opportunity": reductions.TruePositiveRateParity,
        "equalized_odds": reductions.EqualizedOdds,
    }[rule]
    # The rates of two groups at this distance from the overall rate differ by at most the limit.
    return reductions.ExponentiatedGradient(base, moment(difference_bound=limit / 2))


def thresholds(base: Any, rule: str, limit: float, *, prefit: bool = False) -> Any:
    """Return ``ThresholdOptimizer``, whose equalized odds are exact: they take no ``tol``."""
    from fairlearn.postprocessing import ThresholdOptimizer

    return ThresholdOptimizer(
        estimator=base,
        constraints="true_positive_rate_parity" if rule == "equal_opportunity" else rule,
        prefit=prefit,
        predict_method="predict_proba",
        tol=None if rule == "equalized_odds" else limit,
    )
