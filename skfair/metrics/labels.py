"""Group metrics of predicted labels: differences and ratios of rates between groups.

Each metric compares rates of one small table (:mod:`skfair.groups.table`), or takes the largest of
them. The functions below consist of a name and a docstring only. The decorator ``_comparison``
names the rates, and puts the metric that compares them in place of the function, with the signature
of ``LabelMetric``: ``..._difference``, ``..._ratio``, or ``..._gap`` for a sum of differences.

To add a metric, add its functions. Tests, reports, monitors and audits look metrics up in
``LABEL_METRICS`` and ``LARGEST_RATES``.

Definitions follow common usage (and equal fairlearn's where it has them). Independence, separation
and sufficiency gaps are the sums of section 2 of fairness_constrained_benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike
from skfair.groups.cohort import Cohort
from skfair.groups.compared_groups import Agg, Reference, ZeroDivision
from skfair.groups.outcomes import Counted
from skfair.groups.rates import RATES
from skfair.metrics.docs import COMPARISONS
from skfair.utils.docs import described, documenter
from skfair.utils.keywords import groups_by_name
from skfair.utils.text import listed
from skfair.utils.warn import warn_user

Kind = Literal["difference", "ratio", "total", "largest"]


class LabelSpec(NamedTuple):
    """The rates that a metric of labels compares, and the kind of comparison.

    A "difference" or "ratio" is the worst over all rates and pairs of groups. A "total" is the sum
    of the differences of its rates. "largest" takes the largest rate of a group.
    """

    kind: Kind
    rates: tuple[str, ...]

    @property
    def uses_y_true(self) -> bool:
        """Whether a rate depends on the true labels."""
        return self.rates != ("selection_rate",)

    @property
    def counted(self) -> Counted:
        """How rows are counted: by predictions alone, as right or wrong, or by both classes.

        ``Cohort.of_labels`` takes it as the argument ``counted``. It is the smallest table from
        which the rates can be computed.
        """
        if not self.uses_y_true:
            return "predictions"
        return "correct" if self.rates == ("accuracy",) else "classes"

    @property
    def greater_is_better(self) -> bool:
        """Whether the value at parity is the largest one (1 for ratios), not the smallest (0)."""
        return self.kind == "ratio"

    @property
    def most(self) -> float:
        """The largest value that the metric can have."""
        if self.kind == "difference" and "error_ratio" in self.rates:
            return float("inf")
        return float(len(self.rates)) if self.kind == "total" else 1.0


# Name of the metric -> what it compares, in the order of the functions below.
LABEL_METRICS: dict[str, LabelSpec] = {}
LARGEST_RATES = {
    f"largest_{rate}": LabelSpec("largest", (rate,))
    for rate in ("selection_rate", "false_positive_rate", "false_negative_rate")
}


def _parameters() -> None:
    """Parameters of metrics of labels, and their return values by kind.

    Parameters
    ----------
    zero_division : {"raise"} or numpy.nan, default="raise"
        Behaviour if a rate is undefined because a group has no row to compute it from, a ratio
        because both rates are 0, or a comparison because there is a single group. "raise" raises a
        ``ValueError`` that says which, and ``numpy.nan`` returns NaN.

    Returns
    -------
    difference : float
        The difference, which is at least 0 (smaller is fairer). It is signed if ``reference`` is a
        group. The value describes this sample, and :func:`skfair.metrics.fairness_report` gives its
        standard error. The computation takes one pass over the rows, O(n), also for Dask
        collections.
    ratio : float
        The smaller of two rates over the larger one, whichever group has it. It lies between 0 and
        1, and larger is fairer. The value describes this sample, and
        :func:`skfair.metrics.fairness_report` gives its standard error. The computation takes one
        pass over the rows, O(n), also for Dask collections.
    total : float
        The sum of differences, which is at least 0 (smaller is fairer). The value describes this
        sample, and :func:`skfair.metrics.fairness_report` gives its standard error. The computation
        takes one pass over the rows, O(n), also for Dask collections.
    largest : float
        The largest rate of a group, between 0 and 1. The value describes this sample, and
        :func:`skfair.metrics.fairness_report` gives its standard error. The computation takes one
        pass over the rows, O(n), also for Dask collections.
    """


_PARAGRAPHS = COMPARISONS | described(_parameters)
_RETURNS = described(_parameters, "Returns")  # empty if Python strips docstrings (-OO)
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


# The last word of a metric's name -> how it compares.
_KINDS: dict[str, Kind] = {"difference": "difference", "ratio": "ratio", "gap": "total"}


def _comparison(*rates: str) -> Callable[[Callable[[], None]], LabelMetric]:
    """Return a decorator that replaces a function by a metric of these rates with its docstring.

    The end of the function's name says how the rates are compared. The metric is added to
    ``LABEL_METRICS``.
    """

    def replaced(about: Callable[[], None]) -> LabelMetric:
        name, known = about.__name__, _KINDS.get(about.__name__.rpartition("_")[2])
        if known is None:
            raise ValueError(
                f"The metric {name} compares rates, so its name must end in _difference, _ratio or "
                "_gap (a sum of differences). Rename it."
            )
        if unknown := sorted({*rates} - RATES.keys()):
            raise ValueError(
                f"The metric {name} compares {listed(unknown)}, but RATES of "
                f"skfair/groups/rates.py has only {listed(RATES)}. Add the rate there first."
            )
        spec = LABEL_METRICS[name] = LabelSpec(known, rates)
        return _metric_of(spec, about)

    return replaced


def _metric_of(spec: LabelSpec, about: Callable[[], None]) -> LabelMetric:
    """Return the metric that compares some rates, with the name and the docstring of a function."""
    kind, rates = spec
    counted = spec.counted

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
        who = sensitive_features, control_features, sample_weight, intersectional
        rows = Cohort.of_labels(y_true, y_pred, *who, counted=counted, pos_label=pos_label)
        table = rows.table(squares=False)
        value = table.compare(kind, rates, reference, agg, zero_division)
        if reason := table.undefined_by_decision(rates):
            warn_user(f"The value says nothing about groups: {reason}.")
        return value

    for name in ("__name__", "__qualname__", "__doc__"):
        setattr(metric, name, getattr(about, name))
    return groups_by_name(_DOCUMENTED[kind](metric))


@_comparison("selection_rate")
def demographic_parity_difference() -> None:
    """Compute the difference of selection rates between groups (0 is parity).

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


@_comparison("selection_rate")
def demographic_parity_ratio() -> None:
    """Compute the ratio of selection rates between groups (1 is parity).

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


@_comparison("true_positive_rate")
def equal_opportunity_difference() -> None:
    """Compute the difference of true positive rates between groups (0 is parity).

    The true positive rate of a group is the share of its positive rows that are predicted positive.

    Examples
    --------
    >>> from skfair.metrics import equal_opportunity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equal_opportunity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("true_positive_rate")
def equal_opportunity_ratio() -> None:
    """Compute the ratio of true positive rates between groups (1 is parity).

    The true positive rate of a group is the share of its positive rows that are predicted positive.

    Examples
    --------
    >>> from skfair.metrics import equal_opportunity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equal_opportunity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("false_positive_rate")
def false_positive_parity_difference() -> None:
    """Compute the difference of false positive rates between groups (0 is parity).

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


@_comparison("false_positive_rate")
def false_positive_parity_ratio() -> None:
    """Compute the ratio of false positive rates between groups (1 is parity).

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


@_comparison("false_negative_rate")
def false_negative_parity_difference() -> None:
    """Compute the difference of false negative rates between groups (0 is parity).

    The false negative rate of a group is the share of its positive rows that are predicted
    negative. It is 1 minus the true positive rate, so the differences of both rates are equal, but
    their ratios are not.

    Examples
    --------
    >>> from skfair.metrics import false_negative_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_negative_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("false_negative_rate")
def false_negative_parity_ratio() -> None:
    """Compute the ratio of false negative rates between groups (1 is parity).

    The false negative rate of a group is the share of its positive rows that are predicted
    negative. It is 1 minus the true positive rate, so the differences of both rates are equal, but
    their ratios are not.

    Examples
    --------
    >>> from skfair.metrics import false_negative_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_negative_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison("true_positive_rate", "false_positive_rate")
def equalized_odds_difference() -> None:
    """Compute the difference of true and false positive rates between groups (0 is parity).

    True and false positive rates are compared separately, and the worse of the two comparisons is
    returned. With ``agg="mean"``, the mean over both rates and all pairs is returned.

    Examples
    --------
    >>> from skfair.metrics import equalized_odds_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equalized_odds_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("true_positive_rate", "false_positive_rate")
def equalized_odds_ratio() -> None:
    """Compute the ratio of true and false positive rates between groups (1 is parity).

    True and false positive rates are compared separately, and the worse of the two comparisons is
    returned. With ``agg="mean"``, the mean over both rates and all pairs is returned.

    Examples
    --------
    >>> from skfair.metrics import equalized_odds_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(equalized_odds_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("positive_predictive_value")
def predictive_parity_difference() -> None:
    """Compute the difference of positive predictive values between groups (0 is parity).

    The positive predictive value of a group, also called precision, is the share of true positives
    among its rows that are predicted positive.

    Examples
    --------
    >>> from skfair.metrics import predictive_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(predictive_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.167
    """


@_comparison("positive_predictive_value")
def predictive_parity_ratio() -> None:
    """Compute the ratio of positive predictive values between groups (1 is parity).

    The positive predictive value of a group, also called precision, is the share of true positives
    among its rows that are predicted positive.

    Examples
    --------
    >>> from skfair.metrics import predictive_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(predictive_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.75
    """


@_comparison("false_omission_rate")
def false_omission_parity_difference() -> None:
    """Compute the difference of false omission rates between groups (0 is parity).

    The false omission rate of a group is the share of positive rows among its rows that are
    predicted negative: how often a refusal is wrong. It is 1 minus the negative predictive value,
    so the differences of both are equal, but their ratios are not.


    Examples
    --------
    >>> from skfair.metrics import false_omission_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_omission_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("false_omission_rate")
def false_omission_parity_ratio() -> None:
    """Compute the ratio of false omission rates between groups (1 is parity).

    The false omission rate of a group is the share of positive rows among its rows that are
    predicted negative: how often a refusal is wrong. It is 1 minus the negative predictive value,
    so the differences of both are equal, but their ratios are not.


    Examples
    --------
    >>> from skfair.metrics import false_omission_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(false_omission_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison("error_ratio")
def treatment_equality_difference() -> None:
    """Compute the difference of false negatives per false positive between groups (0 is parity).

    Each group is described by its number of false negatives divided by its number of false
    positives. This number is undefined for a group without false positives: depending on
    ``zero_division``, an error is raised or NaN is returned, never infinity.

    Examples
    --------
    >>> from skfair.metrics import treatment_equality_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(treatment_equality_difference(y_true, y_pred, sensitive_features=sex), 3)
    1.0
    """


@_comparison("error_ratio")
def treatment_equality_ratio() -> None:
    """Compute the ratio of false negatives per false positive between groups (1 is parity).

    Each group is described by its number of false negatives divided by its number of false
    positives. This number is undefined for a group without false positives: depending on
    ``zero_division``, an error is raised or NaN is returned, never infinity.

    Examples
    --------
    >>> from skfair.metrics import treatment_equality_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(treatment_equality_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.0
    """


@_comparison("accuracy")
def accuracy_parity_difference() -> None:
    """Compute the difference of accuracies between groups (0 is parity).

    The accuracy of a group is the share of its rows that are predicted correctly. The labels may
    have any number of classes. With ``pos_label``, this class is compared with the rest.

    Examples
    --------
    >>> from skfair.metrics import accuracy_parity_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(accuracy_parity_difference(y_true, y_pred, sensitive_features=sex), 3)
    0.25
    """


@_comparison("accuracy")
def accuracy_parity_ratio() -> None:
    """Compute the ratio of accuracies between groups (1 is parity).

    The accuracy of a group is the share of its rows that are predicted correctly. The labels may
    have any number of classes. With ``pos_label``, this class is compared with the rest.

    Examples
    --------
    >>> from skfair.metrics import accuracy_parity_ratio
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(accuracy_parity_ratio(y_true, y_pred, sensitive_features=sex), 3)
    0.667
    """


@_comparison("selection_rate")
def independence_gap() -> None:
    """Compute the independence gap of predictions and groups (0 is parity).

    The gap is the difference of selection rates, so it equals
    :func:`demographic_parity_difference`. ``y_true`` is not used and may be None.

    Examples
    --------
    >>> from skfair.metrics import independence_gap
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(independence_gap(y_true, y_pred, sensitive_features=sex), 3)
    0.25
    """


@_comparison("true_positive_rate", "false_positive_rate")
def separation_gap() -> None:
    """Compute the separation gap of predictions and groups within true classes (0 is parity).

    The gap of two groups is the difference of their true positive rates plus the difference of
    their false positive rates, so it is at most 2.

    Examples
    --------
    >>> from skfair.metrics import separation_gap
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(separation_gap(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """


@_comparison("positive_predictive_value", "false_omission_rate")
def sufficiency_gap() -> None:
    """Compute the sufficiency gap of true classes and groups within predicted ones (0 is parity).

    Within each predicted class, the share of positive rows is compared between two groups. The gap
    is the sum of both differences, so it is at most 2.

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
    """Compute the largest selection rate of a group.

    This is the quantity that a cap on the rates of groups limits, as in ``BoundedSelectionRate``.
    With control features, the groups of all strata count, including strata that have a single
    group.

    Examples
    --------
    >>> from skfair.metrics import largest_selection_rate
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(largest_selection_rate(y_true, y_pred, sensitive_features=sex), 3)
    0.75
    """
    who = sensitive_features, control_features, sample_weight, intersectional
    rows = Cohort.of_labels(y_true, y_pred, *who, counted="predictions", pos_label=pos_label)
    return rows.table(squares=False).largest("selection_rate", zero_division)


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
    """Compute the largest false positive rate of a group.

    This is the quantity that a cap on the rates of groups limits, as in ``BoundedSelectionRate``.
    With control features, the groups of all strata count, including strata that have a single
    group.

    Examples
    --------
    >>> from skfair.metrics import largest_false_positive_rate
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(largest_false_positive_rate(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """
    who = sensitive_features, control_features, sample_weight, intersectional
    rows = Cohort.of_labels(y_true, y_pred, *who, pos_label=pos_label)
    return rows.table(squares=False).largest("false_positive_rate", zero_division)


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
    """Compute the largest false negative rate of a group.

    This is the quantity that a cap on the rates of groups limits, as in ``BoundedSelectionRate``.
    With control features, the groups of all strata count, including strata that have a single
    group.

    Examples
    --------
    >>> from skfair.metrics import largest_false_negative_rate
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> round(largest_false_negative_rate(y_true, y_pred, sensitive_features=sex), 3)
    0.5
    """
    who = sensitive_features, control_features, sample_weight, intersectional
    rows = Cohort.of_labels(y_true, y_pred, *who, pos_label=pos_label)
    return rows.table(squares=False).largest("false_negative_rate", zero_division)
