"""Group metrics of predicted labels: differences and ratios of rates between groups.

Every metric is a function of one small table, the weighted number of rows by group, true class and
predicted class; a rate is a quotient of two sums over that table (``RATES``). The table costs one
pass over the rows, whatever the metric. The metrics themselves are listed in ``LABEL_METRICS``:
adding one is adding a line there and a name below.

Definitions follow common usage (and equal fairlearn's where it has them). Independence, separation
and sufficiency gaps are the sums of section 2 of fairness_constrained_benchmark.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.blocks.weighted_rows import accepts_dask
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.metrics.pairs import Agg, aggregate, group_pairs
from skfair.utils.validation import check_labels, check_weights, is_strict, positive_codes

Reference = Literal["pairwise", "overall"]
ZeroDivision = Literal["raise"] | float

_ALL = ((1, 1), (1, 1))
_POSITIVE, _NEGATIVE = ((0, 0), (1, 1)), ((1, 1), (0, 0))  # by true class
_SELECTED, _REJECTED = ((0, 1), (0, 1)), ((1, 0), (1, 0))  # by predicted class

# Each rate: which cells [true class][predicted class] form the numerator and the denominator, and
# what a group lacks when the denominator is empty.
RATES: dict[str, tuple[Any, Any, str]] = {
    "base_rate": (_POSITIVE, _ALL, "row"),
    "selection_rate": (_SELECTED, _ALL, "row"),
    "true_positive_rate": (((0, 0), (0, 1)), _POSITIVE, "row of the positive class"),
    "false_positive_rate": (((0, 1), (0, 0)), _NEGATIVE, "row of the negative class"),
    "positive_predictive_value": (((0, 0), (0, 1)), _SELECTED, "row predicted positive"),
    "false_omission_rate": (((0, 0), (1, 0)), _REJECTED, "row predicted negative"),
    "accuracy": (((1, 0), (0, 1)), _ALL, "row"),
}


class LabelTable(NamedTuple):
    """Weighted number of rows by group, true class and predicted class."""

    counts: FloatArray  # (n_groups, 2, 2)
    overall: FloatArray  # (2, 2)
    groups: GroupEncoding


def label_table(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
) -> LabelTable:
    """Count the rows by group, true class and predicted class in one pass: O(n)."""
    predicted = check_labels(y_pred, "y_pred")
    if y_true is None:
        joint = positive_codes(predicted, "y_pred", pos_label)
    else:
        true = check_labels(y_true, "y_true", predicted.codes.size)
        joint = 2 * positive_codes(true, "y_true", pos_label, predicted.levels)
        joint += positive_codes(predicted, "y_pred", pos_label, true.levels)
    return _count(joint, y_true, y_pred, sensitive_features, sample_weight, intersectional)


def correct_table(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    *,
    sample_weight: Any = None,
    intersectional: bool = True,
) -> LabelTable:
    """Count right and wrong predictions by group, for any number of classes.

    A right prediction is stored as a true positive, a wrong one as a false negative, so that the
    accuracy of the table is the accuracy of the predictions.
    """
    true = check_labels(y_true, "y_true")
    predicted = check_labels(y_pred, "y_pred", true.codes.size)
    number = {level: i for i, level in enumerate(true.levels)}
    same_code = np.array([number.get(level, -1) for level in predicted.levels], dtype=np.int64)
    joint = 2 + (true.codes == same_code[predicted.codes])
    return _count(joint, y_true, y_pred, sensitive_features, sample_weight, intersectional)


def _count(
    joint: NDArray[np.int64],
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    intersectional: bool,
) -> LabelTable:
    groups = encode_groups(
        sensitive_features,
        n_samples=joint.size,
        intersectional=intersectional,
        like=y_true if hasattr(y_true, "index") else y_pred,
    )
    weights = check_weights(sample_weight, joint.size)
    counts = groups.cross_counts(joint, 4, weights).reshape(-1, 2, 2)
    return LabelTable(counts, counts[: groups.offsets[1]].sum(axis=0), groups)


def rates_of(counts: FloatArray, rate: str) -> FloatArray:
    """Compute one rate of tables of shape (..., 2, 2); NaN where the denominator is empty."""
    numerator, denominator, _ = RATES[rate]
    above = (counts * np.array(numerator)).sum(axis=(-2, -1))
    below = (counts * np.array(denominator)).sum(axis=(-2, -1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))


def _defined_rates(table: LabelTable, rate: str, zero_division: ZeroDivision) -> FloatArray:
    """Compute the rate of each group; an undefined one raises or stays NaN."""
    values = rates_of(table.counts, rate)
    undefined = np.flatnonzero(np.isnan(values))
    if is_strict(zero_division) and undefined.size:
        name = table.groups.names[undefined[0]]
        raise ValueError(
            f"Group {name!r} has no {RATES[rate][2]}, so its {rate.replace('_', ' ')} is "
            "undefined. Merge small groups or add data, or pass zero_division=numpy.nan to get "
            "NaN."
        )
    return values


def difference(
    table: LabelTable,
    rates: tuple[str, ...],
    *,
    agg: Agg = "worst",
    reference: Reference = "pairwise",
    zero_division: ZeroDivision = "raise",
    total: bool = False,
) -> float:
    """Compare groups by absolute differences; ``total`` adds up the rates of each pair."""
    gaps = []
    for rate in rates:
        values = _defined_rates(table, rate, zero_division)
        first, second = _sides(values, table, rate, reference)
        gaps.append(np.abs(first - second))
    combined = np.sum(gaps, axis=0) if total else np.concatenate(gaps)
    return aggregate(combined, agg, empty=0.0)


def ratio(
    table: LabelTable,
    rates: tuple[str, ...],
    *,
    agg: Agg = "worst",
    reference: Reference = "pairwise",
    zero_division: ZeroDivision = "raise",
) -> float:
    """Compare groups by the smaller rate over the larger one."""
    quotients = []
    for rate in rates:
        values = _defined_rates(table, rate, zero_division)
        first, second = _sides(values, table, rate, reference)
        larger = np.maximum(first, second)
        if is_strict(zero_division) and np.any(larger == 0):
            raise ValueError(
                f"The {rate.replace('_', ' ')} is 0 in both groups of a pair, so their ratio is "
                "undefined. Use the difference, or pass zero_division=numpy.nan to get NaN."
            )
        with np.errstate(invalid="ignore"):
            quotients.append(np.minimum(first, second) / np.where(larger == 0, np.nan, larger))
    return aggregate(np.concatenate(quotients), agg, empty=1.0, worst_is_smallest=True)


def _sides(
    values: FloatArray, table: LabelTable, rate: str, reference: Reference
) -> tuple[FloatArray, FloatArray]:
    """Return the two sides of every comparison: the pairs of groups, or group and overall."""
    if reference == "overall":
        return values, np.full(values.shape, rates_of(table.overall, rate))
    first, second = group_pairs(table.groups)
    return values[first], values[second]


class LabelMetric(Protocol):
    """The signature that every label metric has."""

    __name__: str

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        intersectional: bool = True,
        pos_label: Any = 1,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Compute the metric."""


class _Spec(NamedTuple):
    """How a label metric compares which rates."""

    kind: Literal["difference", "ratio", "total"]
    rates: tuple[str, ...]
    summary: str
    detail: str
    example: str


_ODDS = ("true_positive_rate", "false_positive_rate")
_PREDICTIVE = ("positive_predictive_value", "false_omission_rate")

LABEL_METRICS: dict[str, _Spec] = {
    "demographic_parity_difference": _Spec(
        "difference",
        ("selection_rate",),
        "Difference of selection rates between groups; 0 is parity.",
        "The selection rate of a group is the share of its rows that are predicted positive. "
        "``y_true`` is not used and may be None.",
        "0.25",
    ),
    "demographic_parity_ratio": _Spec(
        "ratio",
        ("selection_rate",),
        "Smaller selection rate over the larger one; 1 is parity.",
        'The "80 percent rule" asks for at least 0.8. ``y_true`` is not used and may be None.',
        "0.667",
    ),
    "equal_opportunity_difference": _Spec(
        "difference",
        ("true_positive_rate",),
        "Difference of true positive rates between groups; 0 is parity.",
        "The true positive rate of a group is the share of its positive rows that are predicted "
        "positive.",
        "0.5",
    ),
    "equal_opportunity_ratio": _Spec(
        "ratio",
        ("true_positive_rate",),
        "Smaller true positive rate over the larger one; 1 is parity.",
        "The true positive rate of a group is the share of its positive rows that are predicted "
        "positive.",
        "0.5",
    ),
    "false_positive_parity_difference": _Spec(
        "difference",
        ("false_positive_rate",),
        "Difference of false positive rates between groups; 0 is parity.",
        "The false positive rate of a group is the share of its negative rows that are predicted "
        "positive.",
        "0.0",
    ),
    "false_positive_parity_ratio": _Spec(
        "ratio",
        ("false_positive_rate",),
        "Smaller false positive rate over the larger one; 1 is parity.",
        "The false positive rate of a group is the share of its negative rows that are predicted "
        "positive.",
        "1.0",
    ),
    "equalized_odds_difference": _Spec(
        "difference",
        _ODDS,
        "Larger of the differences of true and false positive rates; 0 is parity.",
        'With ``agg="mean"`` the mean over both rates and all pairs.',
        "0.5",
    ),
    "equalized_odds_ratio": _Spec(
        "ratio",
        _ODDS,
        "Smaller of the ratios of true and false positive rates; 1 is parity.",
        'With ``agg="mean"`` the mean over both rates and all pairs.',
        "0.5",
    ),
    "predictive_parity_difference": _Spec(
        "difference",
        ("positive_predictive_value",),
        "Difference of positive predictive values between groups; 0 is parity.",
        "The positive predictive value of a group is the share of its rows predicted positive that "
        "are positive.",
        "0.167",
    ),
    "predictive_parity_ratio": _Spec(
        "ratio",
        ("positive_predictive_value",),
        "Smaller positive predictive value over the larger one; 1 is parity.",
        "The positive predictive value of a group is the share of its rows predicted positive that "
        "are positive.",
        "0.75",
    ),
    "accuracy_parity_difference": _Spec(
        "difference",
        ("accuracy",),
        "Difference of accuracies between groups; 0 is parity.",
        "Any number of classes; ``pos_label`` is not used.",
        "0.25",
    ),
    "accuracy_parity_ratio": _Spec(
        "ratio",
        ("accuracy",),
        "Smaller accuracy over the larger one; 1 is parity.",
        "Any number of classes; ``pos_label`` is not used.",
        "0.667",
    ),
    "independence_gap": _Spec(
        "total",
        ("selection_rate",),
        "Gap of independence: predictions against groups; 0 is parity.",
        "The difference of selection rates. ``y_true`` is not used and may be None.",
        "0.25",
    ),
    "separation_gap": _Spec(
        "total",
        _ODDS,
        "Gap of separation: predictions against groups, given the true class; 0 is parity.",
        "The sum of the differences of true and false positive rates of a pair of groups, so at "
        "most 2.",
        "0.5",
    ),
    "sufficiency_gap": _Spec(
        "total",
        _PREDICTIVE,
        "Gap of sufficiency: true classes against groups, given the prediction; 0 is parity.",
        "The sum, over both predicted classes, of the differences of the share of positive rows, "
        "so at most 2.",
        "0.667",
    ),
}

_DOC = """{summary}

    {detail}

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row; several columns are several attributes.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; 2 counts like the same row twice.
    intersectional : bool, default=True
        Whether several attributes are crossed (every combination that occurs is a group), or each
        attribute is compared for itself and all comparisons are pooled.
    pos_label : label, default=1
        The class that counts as positive; needed for strings and for more than two classes.
    reference : {{"pairwise", "overall"}}, default="pairwise"
        Compare every pair of groups, or each group with the rate of all rows.
    agg : {{"worst", "mean"}}, default="worst"
        Report the worst comparison or the mean of all of them.
    zero_division : {{"raise"}} or numpy.nan, default="raise"
        What to do when a rate is undefined because a group has no row to compute it from (or a
        ratio because both rates are 0): raise a ``ValueError`` that names the group, or return NaN.

    Returns
    -------
    {kind} : float
        {range} With a single group there is nothing to compare and the value is {alone}.

    Notes
    -----
    One pass over the rows, O(n). Dask collections are accepted.

    The value is that of the sample; see :func:`skfair.metrics.fairness_report` for its standard
    error.

    Examples
    --------
    >>> from skfair.metrics import {name}
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_pred = [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round({name}(y_true, y_pred, sensitive_features=sex), 3)
    {example}
    """

_RANGES = {
    "difference": "Between 0 and 1, smaller is fairer.",
    "ratio": "Between 0 and 1, larger is fairer.",
    "total": "At least 0, smaller is fairer.",
}


def compare(table: LabelTable, name: str, **options: Any) -> float:
    """Compute a metric of ``LABEL_METRICS`` from a table of counts."""
    spec = LABEL_METRICS[name]
    if options.get("agg", "worst") not in ("worst", "mean"):
        raise ValueError(f"agg must be 'worst' or 'mean', got {options['agg']!r}.")
    if options.get("reference", "pairwise") not in ("pairwise", "overall"):
        raise ValueError(
            f"reference must be 'pairwise' or 'overall', got {options['reference']!r}."
        )
    if spec.kind == "ratio":
        return ratio(table, spec.rates, **options)
    return difference(table, spec.rates, total=spec.kind == "total", **options)


def _label_metric(name: str) -> LabelMetric:
    """Build the public function of one line of ``LABEL_METRICS``."""
    spec = LABEL_METRICS[name]

    def metric(
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        intersectional: bool = True,
        pos_label: Any = 1,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float:
        shared = {"sample_weight": sample_weight, "intersectional": intersectional}
        if spec.rates == ("accuracy",):
            table = correct_table(y_true, y_pred, sensitive_features, **shared)
        else:
            if spec.rates == ("selection_rate",):
                y_true = None
            elif y_true is None:
                raise ValueError(f"{name} needs y_true, got None.")
            table = label_table(y_true, y_pred, sensitive_features, pos_label=pos_label, **shared)
        return compare(table, name, reference=reference, agg=agg, zero_division=zero_division)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = _DOC.format(
        name=name,
        summary=spec.summary,
        detail=spec.detail,
        kind="gap" if spec.kind == "total" else spec.kind,
        range=_RANGES[spec.kind],
        alone="1" if spec.kind == "ratio" else "0",
        example=spec.example,
    )
    used = ("y_pred",) if spec.rates == ("selection_rate",) else ("y_true", "y_pred")
    return accepts_dask(*used)(metric)


demographic_parity_difference = _label_metric("demographic_parity_difference")
demographic_parity_ratio = _label_metric("demographic_parity_ratio")
equal_opportunity_difference = _label_metric("equal_opportunity_difference")
equal_opportunity_ratio = _label_metric("equal_opportunity_ratio")
false_positive_parity_difference = _label_metric("false_positive_parity_difference")
false_positive_parity_ratio = _label_metric("false_positive_parity_ratio")
equalized_odds_difference = _label_metric("equalized_odds_difference")
equalized_odds_ratio = _label_metric("equalized_odds_ratio")
predictive_parity_difference = _label_metric("predictive_parity_difference")
predictive_parity_ratio = _label_metric("predictive_parity_ratio")
accuracy_parity_difference = _label_metric("accuracy_parity_difference")
accuracy_parity_ratio = _label_metric("accuracy_parity_ratio")
independence_gap = _label_metric("independence_gap")
separation_gap = _label_metric("separation_gap")
sufficiency_gap = _label_metric("sufficiency_gap")
