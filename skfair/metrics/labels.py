"""Group metrics of predicted labels: differences and ratios of rates between groups.

Each metric compares rates of one small table (:mod:`skfair.groups.table`), or takes the
largest of them. ``CRITERIA`` says which rates; adding a criterion is adding an entry there and its
functions below.

Definitions follow common usage (and equal fairlearn's where it has them). Independence, separation
and sufficiency gaps are the sums of section 2 of fairness_constrained_benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike
from skfair.groups.compared_groups import Agg, Reference, ZeroDivision
from skfair.groups.labels import count_correct, count_labels
from skfair.metrics.docs import COMPARISONS
from skfair.utils.docs import described, documenter

Kind = Literal["difference", "ratio", "total", "largest"]


class LabelSpec(NamedTuple):
    """The rates that a metric of labels compares, and the kind of comparison."""

    kind: Kind
    rates: tuple[str, ...]

    @property
    def uses_y_true(self) -> bool:
        """Whether a rate depends on the true labels."""
        return self.rates != ("selection_rate",)

    @property
    def greater_is_better(self) -> bool:
        """Whether parity is the largest value instead of the smallest."""
        return self.kind == "ratio"

    @property
    def most(self) -> float:
        """The largest value that the metric can have."""
        if self.kind == "difference" and "error_ratio" in self.rates:
            return float("inf")
        return float(len(self.rates)) if self.kind == "total" else 1.0


CRITERIA: dict[str, tuple[str, ...]] = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "false_positive_parity": ("false_positive_rate",),
    "false_negative_parity": ("false_negative_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
    "predictive_parity": ("positive_predictive_value",),
    "negative_predictive_parity": ("negative_predictive_value",),
    "false_omission_parity": ("false_omission_rate",),
    "treatment_equality": ("error_ratio",),
    "accuracy_parity": ("accuracy",),
    "independence": ("selection_rate",),
    "separation": ("true_positive_rate", "false_positive_rate"),
    "sufficiency": ("positive_predictive_value", "false_omission_rate"),
}
_TOTALS = ("independence", "separation", "sufficiency")
LABEL_METRICS = {
    **{
        f"{name}_{kind}": LabelSpec(kind, rates)
        for name, rates in CRITERIA.items()
        if name not in _TOTALS
        for kind in ("difference", "ratio")
    },
    **{f"{name}_gap": LabelSpec("total", CRITERIA[name]) for name in _TOTALS},
}
LARGEST_RATES = {
    f"largest_{rate}": LabelSpec("largest", (rate,))
    for rate in ("selection_rate", "false_positive_rate", "false_negative_rate")
}


def _parameters() -> None:
    """Parameters of metrics of labels, and their return values by kind.

    Parameters
    ----------
    zero_division : {"raise"} or numpy.nan, default="raise"
        What to do when a rate is undefined because a group has no row to compute it from (or a
        ratio because both rates are 0): raise a ``ValueError`` that names the group, or return NaN.

    Returns
    -------
    difference : float
        At least 0, smaller is fairer; signed with a reference group. With a single group there is
        nothing to compare and the value is 0.
        The value is that of the sample; see :func:`skfair.metrics.fairness_report` for its standard
        error. One pass over the rows, O(n), also of Dask collections.
    ratio : float
        Between 0 and 1, larger is fairer: the smaller of two rates over the larger one, whichever
        group has it. With a single group there is nothing to compare and the value is 1.
        The value is that of the sample; see :func:`skfair.metrics.fairness_report` for its standard
        error. One pass over the rows, O(n), also of Dask collections.
    total : float
        At least 0, smaller is fairer. With a single group there is nothing to compare and the value
        is 0.
        The value is that of the sample; see :func:`skfair.metrics.fairness_report` for its standard
        error. One pass over the rows, O(n), also of Dask collections.
    largest : float
        Between 0 and 1.
        The value is that of the sample; see :func:`skfair.metrics.fairness_report` for its standard
        error. One pass over the rows, O(n), also of Dask collections.
    """


_PARAGRAPHS = COMPARISONS | described(_parameters)
_RETURNS = described(_parameters, "Returns")  # nothing, where Python strips docstrings
_DOCUMENTED = {
    kind: documenter(_PARAGRAPHS | {"Returns": _RETURNS.get(kind, "")})
    for kind in ("difference", "ratio", "total", "largest")
}


class LabelMetric(Protocol):
    """How a metric that compares rates of groups is called."""

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
        """Compare the groups."""


def _comparison(about: Callable[[], None]) -> LabelMetric:
    """Make the metric of ``LABEL_METRICS`` that has the name and the docstring of a function."""
    kind, rates = spec = LABEL_METRICS[about.__name__]
    how: Any = {"ignores_true": not spec.uses_y_true, "squares": False}

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
        groups = sensitive_features, control_features, sample_weight, intersectional
        if rates == ("accuracy",):
            table = count_correct(y_true, y_pred, groups, squares=False)
        else:
            table = count_labels(y_true, y_pred, groups, pos_label, **how)
        return table.compare(kind, rates, reference, agg, zero_division)

    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(metric, name, getattr(about, name))
    return _DOCUMENTED[kind](metric)


@_comparison
def demographic_parity_difference() -> None:
    """Difference of selection rates between groups; 0 is parity.

    The selection rate of a group is the share of its rows that are predicted positive. The "80
    percent rule" asks for a ratio of at least 0.8. ``y_true`` is not used and may be None.

    Examples
    --------
    >>> from skfair.metrics import demographic_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(demographic_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.25
    """


@_comparison
def demographic_parity_ratio() -> None:
    """Ratio of selection rates between groups, smaller over larger; 1 is parity.

    The selection rate of a group is the share of its rows that are predicted positive. The "80
    percent rule" asks for a ratio of at least 0.8. ``y_true`` is not used and may be None.

    Examples
    --------
    >>> from skfair.metrics import demographic_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(demographic_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.667
    """


@_comparison
def equal_opportunity_difference() -> None:
    """Difference of true positive rates between groups; 0 is parity.

    The true positive rate of a group is the share of its positive rows that are predicted positive.

    Examples
    --------
    >>> from skfair.metrics import equal_opportunity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equal_opportunity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def equal_opportunity_ratio() -> None:
    """Ratio of true positive rates between groups, smaller over larger; 1 is parity.

    The true positive rate of a group is the share of its positive rows that are predicted positive.

    Examples
    --------
    >>> from skfair.metrics import equal_opportunity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equal_opportunity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def false_positive_parity_difference() -> None:
    """Difference of false positive rates between groups; 0 is parity.

    The false positive rate of a group is the share of its negative rows that are predicted
    positive.

    Examples
    --------
    >>> from skfair.metrics import false_positive_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_positive_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison
def false_positive_parity_ratio() -> None:
    """Ratio of false positive rates between groups, smaller over larger; 1 is parity.

    The false positive rate of a group is the share of its negative rows that are predicted
    positive.

    Examples
    --------
    >>> from skfair.metrics import false_positive_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_positive_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    1.0
    """


@_comparison
def false_negative_parity_difference() -> None:
    """Difference of false negative rates between groups; 0 is parity.

    The false negative rate of a group is the share of its positive rows that are predicted
    negative. Its differences are those of true positive rates, its ratios are not.

    Examples
    --------
    >>> from skfair.metrics import false_negative_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_negative_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def false_negative_parity_ratio() -> None:
    """Ratio of false negative rates between groups, smaller over larger; 1 is parity.

    The false negative rate of a group is the share of its positive rows that are predicted
    negative. Its differences are those of true positive rates, its ratios are not.

    Examples
    --------
    >>> from skfair.metrics import false_negative_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_negative_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison
def equalized_odds_difference() -> None:
    """Difference of true and false positive rates between groups; 0 is parity.

    The worse of the two comparisons; with ``agg="mean"`` the mean over both rates and all pairs.

    Examples
    --------
    >>> from skfair.metrics import equalized_odds_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equalized_odds_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def equalized_odds_ratio() -> None:
    """Ratio of true and false positive rates between groups, smaller over larger; 1 is parity.

    The worse of the two comparisons; with ``agg="mean"`` the mean over both rates and all pairs.

    Examples
    --------
    >>> from skfair.metrics import equalized_odds_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equalized_odds_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def predictive_parity_difference() -> None:
    """Difference of positive predictive values between groups; 0 is parity.

    The positive predictive value of a group is the share of its rows predicted positive that are
    positive.

    Examples
    --------
    >>> from skfair.metrics import predictive_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(predictive_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.167
    """


@_comparison
def predictive_parity_ratio() -> None:
    """Ratio of positive predictive values between groups, smaller over larger; 1 is parity.

    The positive predictive value of a group is the share of its rows predicted positive that are
    positive.

    Examples
    --------
    >>> from skfair.metrics import predictive_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(predictive_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.75
    """


@_comparison
def negative_predictive_parity_difference() -> None:
    """Difference of negative predictive values between groups; 0 is parity.

    The negative predictive value of a group is the share of its rows predicted negative that are
    negative: how often a refusal is right. Its differences are those
    of false omission rates, its ratios are not.


    Examples
    --------
    >>> from skfair.metrics import negative_predictive_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(negative_predictive_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def negative_predictive_parity_ratio() -> None:
    """Ratio of negative predictive values between groups, smaller over larger; 1 is parity.

    The negative predictive value of a group is the share of its rows predicted negative that are
    negative: how often a refusal is right. Its differences are those
    of false omission rates, its ratios are not.


    Examples
    --------
    >>> from skfair.metrics import negative_predictive_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(negative_predictive_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def false_omission_parity_difference() -> None:
    """Difference of false omission rates between groups; 0 is parity.

    The false omission rate of a group is the share of its rows predicted negative that are
    positive: how often a refusal is wrong. Its differences are those of
    negative predictive values, its ratios are not.


    Examples
    --------
    >>> from skfair.metrics import false_omission_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_omission_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def false_omission_parity_ratio() -> None:
    """Ratio of false omission rates between groups, smaller over larger; 1 is parity.

    The false omission rate of a group is the share of its rows predicted negative that are
    positive: how often a refusal is wrong. Its differences are those of
    negative predictive values, its ratios are not.


    Examples
    --------
    >>> from skfair.metrics import false_omission_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_omission_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison
def treatment_equality_difference() -> None:
    """Difference of false negatives per false positive between groups; 0 is parity.

    The two kinds of errors are set against each other. A group without a false positive has no such
    number, which is an error or NaN (``zero_division``), never infinity.

    Examples
    --------
    >>> from skfair.metrics import treatment_equality_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(treatment_equality_difference(y_true, y_pred, sensitive_features=sex), 3)
    1.0
    """


@_comparison
def treatment_equality_ratio() -> None:
    """Ratio of false negatives per false positive between groups; 1 is parity.

    The two kinds of errors are set against each other. A group without a false positive has no such
    number, which is an error or NaN (``zero_division``), never infinity.

    Examples
    --------
    >>> from skfair.metrics import treatment_equality_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(treatment_equality_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison
def accuracy_parity_difference() -> None:
    """Difference of accuracies between groups; 0 is parity.

    Any number of classes; ``pos_label`` is not used.

    Examples
    --------
    >>> from skfair.metrics import accuracy_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(accuracy_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.25
    """


@_comparison
def accuracy_parity_ratio() -> None:
    """Ratio of accuracies between groups, smaller over larger; 1 is parity.

    Any number of classes; ``pos_label`` is not used.

    Examples
    --------
    >>> from skfair.metrics import accuracy_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(accuracy_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.667
    """


@_comparison
def independence_gap() -> None:
    """Gap of independence: predictions against groups; 0 is parity.

    The difference of selection rates. ``y_true`` is not used and may be None.

    Examples
    --------
    >>> from skfair.metrics import independence_gap
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(independence_gap(y_true, y_pred, sensitive_features=sex), 3)
    0.25
    """


@_comparison
def separation_gap() -> None:
    """Gap of separation: predictions against groups, given the true class; 0 is parity.

    The sum of the differences of true and false positive rates of a pair of groups, so at most 2.

    Examples
    --------
    >>> from skfair.metrics import separation_gap
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(separation_gap(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison
def sufficiency_gap() -> None:
    """Gap of sufficiency: true classes against groups, given the prediction; 0 is parity.

    The sum, over both predicted classes, of the differences of the share of positive rows, so at
    most 2.

    Examples
    --------
    >>> from skfair.metrics import sufficiency_gap
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(sufficiency_gap(y_true, y_pred, sensitive_features=sex), 3)
    0.667
    """


@_DOCUMENTED["largest"]
def largest_selection_rate(
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
    """Largest selection rate of a group.

    What caps on the rates of groups limit. With control features the groups of all strata count,
    also where a stratum has a single one.

    Examples
    --------
    >>> from skfair.metrics import largest_selection_rate
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(largest_selection_rate(y_true, y_pred, sensitive_features=sex), 3)
    0.75
    """
    groups = sensitive_features, control_features, sample_weight, intersectional
    table = count_labels(y_true, y_pred, groups, pos_label, ignores_true=True, squares=False)
    return table.largest("selection_rate", zero_division)


@_DOCUMENTED["largest"]
def largest_false_positive_rate(
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
    """Largest false positive rate of a group.

    What caps on the rates of groups limit. With control features the groups of all strata count,
    also where a stratum has a single one.

    Examples
    --------
    >>> from skfair.metrics import largest_false_positive_rate
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(largest_false_positive_rate(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """
    groups = sensitive_features, control_features, sample_weight, intersectional
    table = count_labels(y_true, y_pred, groups, pos_label, squares=False)
    return table.largest("false_positive_rate", zero_division)


@_DOCUMENTED["largest"]
def largest_false_negative_rate(
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
    """Largest false negative rate of a group.

    What caps on the rates of groups limit. With control features the groups of all strata count,
    also where a stratum has a single one.

    Examples
    --------
    >>> from skfair.metrics import largest_false_negative_rate
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(largest_false_negative_rate(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """
    groups = sensitive_features, control_features, sample_weight, intersectional
    table = count_labels(y_true, y_pred, groups, pos_label, squares=False)
    return table.largest("false_negative_rate", zero_division)
