"""Group metrics of predicted labels: differences and ratios of rates between groups.

Every metric compares rates of one small table (:mod:`skfair.metrics.label_rates`), or takes the
largest of them. The criteria are listed in ``_CRITERIA``, each with a difference and a ratio:
adding one is adding an entry there and two names below.

Definitions follow common usage (and equal fairlearn's where it has them). Independence, separation
and sufficiency gaps are the sums of section 2 of fairness_constrained_benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray
from skfair.blocks.weighted_rows import accepts_dask
from skfair.metrics.compared_groups import (
    Agg,
    Reference,
    ZeroDivision,
    aggregate,
    check_agg,
    differences,
    is_group,
    ratios,
)
from skfair.metrics.docs import AGG_OF_COMPARISONS, PARAGRAPHS
from skfair.metrics.label_rates import LabelTable, label_table, rates_of
from skfair.utils.docs import documenter
from skfair.utils.validation import is_strict

Kind = Literal["difference", "ratio", "total", "largest"]


class LabelMetric(Protocol):
    """The signature of every metric that compares rates of labels."""

    __name__: str

    def __call__(
        self,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        pos_label: ClassLabel = None,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Compute the metric."""


class LargestRate(Protocol):
    """The signature of every metric that is the largest rate of a group."""

    __name__: str

    def __call__(
        self,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        pos_label: ClassLabel = None,
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Compute the metric."""


_Metric = TypeVar("_Metric", bound=Callable[..., float])


class LabelSpec(NamedTuple):
    """How a metric of labels compares which rates."""

    kind: Kind
    rates: tuple[str, ...]
    what: str  # of what it is the difference or ratio
    detail: str
    example: str  # what the example prints

    @property
    def uses_y_true(self) -> bool:
        """Whether a rate depends on the true labels."""
        return self.rates != ("selection_rate",)

    @property
    def greater_is_better(self) -> bool:
        """Whether parity is the largest value instead of the smallest."""
        return self.kind == "ratio"


_ODDS = ("true_positive_rate", "false_positive_rate")

# Of each: the rates, what they are, how they are counted, and what the examples print.
_CRITERIA = {
    "demographic_parity": (
        ("selection_rate",),
        "selection rates",
        "The selection rate of a group is the share of its rows that are predicted positive. The "
        '"80 percent rule"\n    asks for a ratio of at least 0.8. ``y_true`` is not used and may '
        "be None.",
        ("0.25", "0.667"),
    ),
    "equal_opportunity": (
        ("true_positive_rate",),
        "true positive rates",
        "The true positive rate of a group is the share of its positive rows that are predicted "
        "positive.",
        ("0.5", "0.5"),
    ),
    "false_positive_parity": (
        ("false_positive_rate",),
        "false positive rates",
        "The false positive rate of a group is the share of its negative rows that are predicted "
        "positive.",
        ("0.0", "1.0"),
    ),
    "false_negative_parity": (
        ("false_negative_rate",),
        "false negative rates",
        "The false negative rate of a group is the share of its positive rows that are predicted "
        "negative.\n    Its differences are those of true positive rates, its ratios are not.",
        ("0.5", "0.0"),
    ),
    "equalized_odds": (
        _ODDS,
        "true and false positive rates",
        'The worse of the two comparisons; with ``agg="mean"`` the mean over both rates and all '
        "pairs.",
        ("0.5", "0.5"),
    ),
    "predictive_parity": (
        ("positive_predictive_value",),
        "positive predictive values",
        "The positive predictive value of a group is the share of its rows predicted positive that "
        "are positive.",
        ("0.167", "0.75"),
    ),
    "treatment_equality": (
        ("error_ratio",),
        "numbers of false negatives per false positive",
        "The two kinds of errors are set against each other. A group without a false positive has "
        "no such number,\n    which is an error or NaN (``zero_division``), never infinity.",
        ("1.0", "0.0"),
    ),
    "accuracy_parity": (
        ("accuracy",),
        "accuracies",
        "Any number of classes; ``pos_label`` is not used.",
        ("0.25", "0.667"),
    ),
}

_SIBLINGS: tuple[Kind, Kind] = ("difference", "ratio")
LABEL_METRICS = {
    **{
        f"{name}_{kind}": LabelSpec(kind, rates, what, detail, example)
        for name, (rates, what, detail, examples) in _CRITERIA.items()
        for kind, example in zip(_SIBLINGS, examples, strict=True)
    },
    "independence_gap": LabelSpec(
        "total",
        ("selection_rate",),
        "independence: predictions against groups",
        "The difference of selection rates. ``y_true`` is not used and may be None.",
        "0.25",
    ),
    "separation_gap": LabelSpec(
        "total",
        _ODDS,
        "separation: predictions against groups, given the true class",
        "The sum of the differences of true and false positive rates of a pair of groups, so at "
        "most 2.",
        "0.5",
    ),
    "sufficiency_gap": LabelSpec(
        "total",
        ("positive_predictive_value", "false_omission_rate"),
        "sufficiency: true classes against groups, given the prediction",
        "The sum, over both predicted classes, of the differences of the share of positive rows, "
        "so at most 2.",
        "0.667",
    ),
}

LARGEST_RATES = {
    f"largest_{rate}": LabelSpec(
        "largest",
        (rate,),
        what,
        "What caps on the rates of groups limit. With control features the groups of "
        "all strata\n    count, also where a stratum has a single one.",
        example,
    )
    for rate, what, example in (
        ("selection_rate", "selection rate", "0.75"),
        ("false_positive_rate", "false positive rate", "0.5"),
        ("false_negative_rate", "false negative rate", "0.5"),
    )
}


_ALONE = "With a single group there is nothing to compare and the value is"
# Of each kind of metric: its summary, and what it returns.
_KINDS = {
    "difference": (
        "Difference of {} between groups; 0 is parity.",
        "difference : float\n        At least 0, smaller is fairer; signed with a reference group. "
        f"{_ALONE} 0.",
    ),
    "ratio": (
        "Ratio of {} between groups, smaller over larger; 1 is parity.",
        "ratio : float\n        Between 0 and 1, larger is fairer; of any size with "
        f"a reference group. {_ALONE} 1.",
    ),
    "total": (
        "Gap of {}; 0 is parity.",
        f"gap : float\n        At least 0, smaller is fairer. {_ALONE} 0.",
    ),
    "largest": (
        "Largest {} of a group.",
        "rate : float\n        Between 0 and 1.",
    ),
}
_documented = documenter(
    PARAGRAPHS
    | {
        "agg": AGG_OF_COMPARISONS,
        "zero_division": """zero_division : {"raise"} or numpy.nan, default="raise"
    What to do when a rate is undefined because a group has no row to compute it from (or a ratio
    because both rates are 0): raise a ``ValueError`` that names the group, or return NaN.""",
    }
)
_DOC = """{summary}

    {detail}

    Returns
    -------
    {returns}

    Notes
    -----
    One pass over the rows, O(n). Dask collections are accepted.

    The value is that of the sample; see :func:`skfair.metrics.fairness_report` for standard errors.

    Examples
    --------
    >>> from skfair.metrics import {name}
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_pred = [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round({name}(y_true, y_pred, sensitive_features=sex), 3)
    {example}
    """


def compare(
    table: LabelTable,
    name: str,
    *,
    agg: Agg = "worst",
    reference: Reference = "pairwise",
    zero_division: ZeroDivision = "raise",
) -> float:
    """Compute a metric of ``LABEL_METRICS`` from a table of counts."""
    check_agg(agg)
    spec = LABEL_METRICS[name]
    cells = table.groups.compared_by(reference)
    values = []
    for rate in spec.rates:
        overall = rates_of(table.groups.block_sums(table.counts), rate)
        defined = table.rate(rate, zero_division, cells)
        first, second = table.groups.sides(defined, overall, reference)
        values.append(
            _ratios(first, second, rate, reference, zero_division)
            if spec.greater_is_better
            else differences(first, second, reference)
        )
    if spec.greater_is_better:
        return aggregate(np.concatenate(values), agg, empty=1.0, worst_is_smallest=True)
    combined = np.sum(np.abs(values), axis=0) if spec.kind == "total" else np.concatenate(values)
    return aggregate(combined, agg)


def _ratios(
    first: FloatArray,
    second: FloatArray,
    rate: str,
    reference: Reference,
    zero_division: ZeroDivision,
) -> FloatArray:
    """Divide rates; what is divided by 0 is undefined."""
    is_zero = second == 0 if is_group(reference) else np.maximum(first, second) == 0
    if is_strict(zero_division) and np.any(is_zero):
        where = "the reference group" if is_group(reference) else "both groups of a pair"
        raise ValueError(
            f"The {rate.replace('_', ' ')} is 0 in {where}, so their ratio is "
            "undefined. Use the difference, or pass zero_division=numpy.nan to get NaN."
        )
    return ratios(first, second, reference)


def _label_metric(name: str) -> LabelMetric:
    """Build the public function of one entry of ``LABEL_METRICS``."""
    spec = LABEL_METRICS[name]

    def metric(
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        pos_label: ClassLabel = None,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float:
        groups = (sensitive_features, control_features, sample_weight, intersectional)
        table = label_table(
            y_true, y_pred, *groups, pos_label=pos_label, rates=spec.rates, name=name
        )
        return compare(table, name, reference=reference, agg=agg, zero_division=zero_division)

    return _published(metric, name, spec)


def _largest_rate(name: str) -> LargestRate:
    """Build the public function of one entry of ``LARGEST_RATES``."""
    spec = LARGEST_RATES[name]

    def metric(
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        pos_label: ClassLabel = None,
        zero_division: ZeroDivision = "raise",
    ) -> float:
        groups = (sensitive_features, control_features, sample_weight, intersectional)
        table = label_table(
            y_true, y_pred, *groups, pos_label=pos_label, rates=spec.rates, name=name
        )
        cells = table.groups.present
        return float(table.rate(spec.rates[0], zero_division, cells)[cells].max())

    return _published(metric, name, spec)


def _published(function: _Metric, name: str, spec: LabelSpec) -> _Metric:
    """Give a metric its name and its docstring, and let it read Dask collections."""
    function.__name__ = function.__qualname__ = name
    summary, returns = _KINDS[spec.kind]
    function.__doc__ = _DOC.format(
        name=name,
        summary=summary.format(spec.what),
        detail=spec.detail,
        returns=returns,
        example=spec.example,
    )
    used = ("y_true", "y_pred") if spec.uses_y_true else ("y_pred",)
    return accepts_dask(*used)(_documented(function))


demographic_parity_difference = _label_metric("demographic_parity_difference")
demographic_parity_ratio = _label_metric("demographic_parity_ratio")
equal_opportunity_difference = _label_metric("equal_opportunity_difference")
equal_opportunity_ratio = _label_metric("equal_opportunity_ratio")
false_positive_parity_difference = _label_metric("false_positive_parity_difference")
false_positive_parity_ratio = _label_metric("false_positive_parity_ratio")
false_negative_parity_difference = _label_metric("false_negative_parity_difference")
false_negative_parity_ratio = _label_metric("false_negative_parity_ratio")
equalized_odds_difference = _label_metric("equalized_odds_difference")
equalized_odds_ratio = _label_metric("equalized_odds_ratio")
predictive_parity_difference = _label_metric("predictive_parity_difference")
predictive_parity_ratio = _label_metric("predictive_parity_ratio")
treatment_equality_difference = _label_metric("treatment_equality_difference")
treatment_equality_ratio = _label_metric("treatment_equality_ratio")
accuracy_parity_difference = _label_metric("accuracy_parity_difference")
accuracy_parity_ratio = _label_metric("accuracy_parity_ratio")
independence_gap = _label_metric("independence_gap")
separation_gap = _label_metric("separation_gap")
sufficiency_gap = _label_metric("sufficiency_gap")
largest_selection_rate = _largest_rate("largest_selection_rate")
largest_false_positive_rate = _largest_rate("largest_false_positive_rate")
largest_false_negative_rate = _largest_rate("largest_false_negative_rate")
