"""What a user means by the metric of a test: a name, a function of skfair.metrics, a constraint."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from skfair.metrics.evidence_of_scores import SCORE_METRICS
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES, LabelSpec
from skfair.utils.text import did_you_mean


@runtime_checkable
class MeasuredRule(Protocol):
    """A fairness constraint that knows the metric which measures it (see skfair.constraints)."""

    max_disparity: float | None
    metric: str | None


class MetricRequest:
    """What a user means by a metric: its name, how it compares, and the limit of a rule."""

    def __init__(self, name: str, comparison: str, limit: float | None) -> None:
        self.name, self.comparison, self.limit = name, comparison, limit
        self.spec: LabelSpec | None = {**LABEL_METRICS, **LARGEST_RATES}.get(name)


def requested_metric(metric: Any, comparison: str) -> MetricRequest:
    """Return what is meant; raise for what has no test."""
    if comparison not in ("difference", "ratio"):
        raise ValueError(f"comparison must be 'difference' or 'ratio', got {comparison!r}.")
    limit = None
    if isinstance(metric, str):
        name: object = metric
    elif isinstance(metric, MeasuredRule):
        name, limit = metric.metric, getattr(metric, "own_limit", metric.max_disparity)
    else:
        name = getattr(metric, "__name__", None)  # a functools.partial has none
    if f"{name}_{comparison}" in LABEL_METRICS:
        name = f"{name}_{comparison}"
    request = MetricRequest(str(name), comparison, limit)
    if request.spec is not None:
        request.comparison = "ratio" if request.spec.greater_is_better else "difference"
    has_test = request.spec is not None and request.spec.rates != ("error_ratio",)
    if has_test and request.spec is not None and request.spec.kind == "total":
        has_test = len(request.spec.rates) == 1
    if not has_test and request.name not in SCORE_METRICS:
        rules = [
            metric.removesuffix("_difference") for metric in LABEL_METRICS if "_diff" in metric
        ]
        rules.remove("treatment_equality")
        known = [*rules, *SCORE_METRICS, *LARGEST_RATES]
        hint = did_you_mean(metric, known)
        names = ", ".join(map(repr, known))
        raise ValueError(f"There is no test of metric={metric!r}.{hint} Choose from {names}.")
    if comparison == "ratio" and (request.spec is None or request.comparison != "ratio"):
        raise ValueError(
            f"comparison='ratio' is not what metric={metric!r} measures. Pass the name of a "
            "constraint on rates such as 'demographic_parity', or a metric of ratios."
        )
    return request
