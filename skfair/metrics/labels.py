"""Group metrics of predicted labels: differences and ratios of rates between groups.

Each metric compares rates of one small table (:mod:`skfair.groups.table`), or takes the largest of
them. A *criterion* asks for some rates to be equal in all groups. It is declared once: by its name,
its rates (:mod:`skfair.groups.declared_rates`) and its words. ``_criterion`` makes the difference
and the ratio of such rates, ``_total`` the sum of their differences, and ``_largest`` the largest
rate. Scorers, tests, reports, monitors, audits and pages look metrics up in ``LABEL_METRICS`` and
``LARGEST_RATES``, and words in ``CRITERIA``.

Definitions follow common usage (and equal fairlearn's where it has them). Independence, separation
and sufficiency gaps are the sums of section 2 of fairness_constrained_benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import Any, Literal, NamedTuple, Protocol, cast, overload

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike
from skfair.groups.cohort import Cohort, cohort_of
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import outcome_table
from skfair.groups.compared_groups import Agg, Reference, ZeroDivision
from skfair.groups.declared_rates import RATES
from skfair.groups.outcomes import Counted
from skfair.metrics.docs import COMPARISONS
from skfair.utils.docs import described, documenter
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

        ``MeasuredRows.of_labels`` takes it as the argument ``counted``. It is the smallest table
        from which the rates can be computed.
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


class Criterion(NamedTuple):
    """What is asked of groups, in the words of pages."""

    says: str
    does_not_say: str


# The declarations below fill these, so their order is that of the declarations.
LABEL_METRICS: dict[str, LabelSpec] = {}
LARGEST_RATES: dict[str, LabelSpec] = {}
CRITERIA: dict[str, Criterion] = {}


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


# The constraint that limits a criterion, or a largest rate
_LIMITED_BY = {
    "demographic_parity": "DemographicParity",
    "equal_opportunity": "EqualOpportunity",
    "false_positive_parity": "FalsePositiveParity",
    "false_negative_parity": "FalseNegativeParity",
    "equalized_odds": "EqualizedOdds",
    "predictive_parity": "PredictiveParity",
    "accuracy_parity": "AccuracyParity",
    "largest_selection_rate": "BoundedSelectionRate",
    "largest_false_positive_rate": "BoundedFalsePositiveRate",
    "largest_false_negative_rate": "BoundedFalseNegativeRate",
}
# The rows of the examples in docstrings
_EXAMPLE = """
Examples
--------
>>> from skfair.metrics import {name}
>>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
>>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
>>> round({name}(y_true, y_pred, sensitive_features=sex), 3)
{value}
"""


class LabelMetric(Protocol):
    """How a metric that compares rates of groups is called."""

    __name__: str

    @overload
    def __call__(
        self,
        people: Cohort,
        /,
        *,
        intersectional: bool = True,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float: ...

    @overload
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
    ) -> float: ...

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Compare the groups."""


class LargestRate(Protocol):
    """How a metric of the largest rate of a group is called."""

    __name__: str

    @overload
    def __call__(
        self,
        people: Cohort,
        /,
        *,
        intersectional: bool = True,
        zero_division: ZeroDivision = "raise",
    ) -> float: ...

    @overload
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
    ) -> float: ...

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Return the largest rate."""


def _criterion(
    name: str,
    *rates: str,
    of: str,  # what is compared, in the plural
    about: str,  # what the rates are
    examples: tuple[float, float],  # the values of both metrics for the rows of ``_EXAMPLE``
    says: str,
    does_not_say: str,
) -> tuple[LabelMetric, LabelMetric]:
    """Declare a criterion, and return the metrics ``name_difference`` and ``name_ratio``."""
    CRITERIA[name] = Criterion(says, does_not_say)
    difference = (
        f"Compute the difference of {of} between groups (0 is parity).\n\n{cleandoc(about)}"
    )
    ratio = f"Compute the ratio of {of} between groups (1 is parity).\n\n{cleandoc(about)}"
    return (
        _metric(f"{name}_difference", LabelSpec("difference", rates), difference, examples[0]),
        _metric(f"{name}_ratio", LabelSpec("ratio", rates), ratio, examples[1]),
    )


def _total(
    name: str, *rates: str, about: str, example: float, says: str, does_not_say: str
) -> LabelMetric:
    """Declare a criterion that is measured by the sum of the differences of its rates."""
    CRITERIA[name] = Criterion(says, does_not_say)
    return _metric(f"{name}_gap", LabelSpec("total", rates), cleandoc(about), example)


def _metric(name: str, spec: LabelSpec, about: str, example: float) -> LabelMetric:
    """Return the metric that compares some rates, and add it to ``LABEL_METRICS``."""
    if unknown := sorted({*spec.rates} - RATES.keys()):
        raise ValueError(
            f"The metric {name} compares {listed(unknown)}, but RATES of "
            f"skfair/groups/declared_rates.py has only {listed(RATES)}. Add the rate there first."
        )
    LABEL_METRICS[name] = spec
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
        people = cohort_of(**locals())
        table = outcome_table(people, counted, intersectional, values_only=True)
        value = table.compare(kind, rates, reference, agg, zero_division)
        if reason := table.undefined_by_decision(rates):
            warn_user(f"The value says nothing about groups: {reason}.")
        return value

    return cast(LabelMetric, _named(metric, name, kind, about, example))


def _largest(rate: str, example: float) -> LargestRate:
    """Return the metric ``largest_{rate}``, and add it to ``LARGEST_RATES``."""
    spec = LARGEST_RATES[f"largest_{rate}"] = LabelSpec("largest", (rate,))
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
        zero_division: ZeroDivision = "raise",
    ) -> float:
        people = cohort_of(**locals())
        table = outcome_table(people, counted, intersectional, values_only=True)
        return table.largest(rate, zero_division)

    about = f"""
    Compute the largest {rate.replace("_", " ")} of a group.

    This is the quantity that a cap on the rates of groups limits, as in ``BoundedSelectionRate``.
    With control features, the groups of all strata count, including strata that have a single
    group.
    """
    named = _named(metric, f"largest_{rate}", "largest", cleandoc(about), example)
    return cast(LargestRate, named)


def _named(metric: Callable[..., float], name: str, kind: Kind, about: str, example: float) -> Any:
    """Give a metric its name and its docstring, and let it take a cohort."""
    metric.__name__ = metric.__qualname__ = name
    if _RETURNS:
        metric.__doc__ = f"{about}\n{_EXAMPLE.format(name=name, value=example)}"
    return takes_cohort(_DOCUMENTED[kind](metric))


demographic_parity_difference, demographic_parity_ratio = _criterion(
    "demographic_parity",
    "selection_rate",
    of="selection rates",
    about="""
    The selection rate of a group is the share of its rows that are predicted positive. The "80
    percent rule" asks for a ratio of at least 0.8. ``y_true`` is not used and may be None.
    """,
    examples=(0.25, 0.667),
    says="The difference of selection rates. The 80 percent rule flags a ratio below 0.8.",
    does_not_say="Whether the difference is justified by the truth.",
)

equal_opportunity_difference, equal_opportunity_ratio = _criterion(
    "equal_opportunity",
    "true_positive_rate",
    of="true positive rates",
    about="""
    The true positive rate of a group is the share of its positive rows that are predicted positive.
    """,
    examples=(0.5, 0.5),
    says="The difference of true positive rates: do truly positive people have the same chance?",
    does_not_say="Anything about those who are truly negative.",
)

false_positive_parity_difference, false_positive_parity_ratio = _criterion(
    "false_positive_parity",
    "false_positive_rate",
    of="false positive rates",
    about="""
    The false positive rate of a group is the share of its negative rows that are predicted
    positive.
    """,
    examples=(0.0, 1.0),
    says="The difference of false positive rates.",
    does_not_say="Anything about those who are truly positive.",
)

false_negative_parity_difference, false_negative_parity_ratio = _criterion(
    "false_negative_parity",
    "false_negative_rate",
    of="false negative rates",
    about="""
    The false negative rate of a group is the share of its positive rows that are predicted
    negative. It is 1 minus the true positive rate, so the differences of both rates are equal, but
    their ratios are not.
    """,
    examples=(0.5, 0.0),
    says="The difference of false negative rates.",
    does_not_say="Anything about those who are truly negative.",
)

equalized_odds_difference, equalized_odds_ratio = _criterion(
    "equalized_odds",
    "true_positive_rate",
    "false_positive_rate",
    of="true and false positive rates",
    about="""
    True and false positive rates are compared separately, and the worse of the two comparisons is
    returned. With ``agg="mean"``, the mean over both rates and all pairs is returned.
    """,
    examples=(0.5, 0.5),
    says="The larger of the differences of true and of false positive rates.",
    does_not_say="Which of the two differences is larger, which the rows above show.",
)

predictive_parity_difference, predictive_parity_ratio = _criterion(
    "predictive_parity",
    "positive_predictive_value",
    of="positive predictive values",
    about="""
    The positive predictive value of a group, also called precision, is the share of true positives
    among its rows that are predicted positive.
    """,
    examples=(0.167, 0.75),
    says="The difference of precisions: does a positive decision mean the same in each group?",
    does_not_say="Whether groups have equal selection rates. If base rates differ, it cannot hold "
    "together with equalized odds, unless predictions are perfect.",
)

false_omission_parity_difference, false_omission_parity_ratio = _criterion(
    "false_omission_parity",
    "false_omission_rate",
    of="false omission rates",
    about="""
    The false omission rate of a group is the share of positive rows among its rows that are
    predicted negative: how often a refusal is wrong. It is 1 minus the negative predictive value,
    so the differences of both are equal, but their ratios are not.
    """,
    examples=(0.5, 0.0),
    says="The difference of false omission rates: is a refusal wrong as often in each group?",
    does_not_say="Whether groups are refused equally often.",
)

treatment_equality_difference, treatment_equality_ratio = _criterion(
    "treatment_equality",
    "error_ratio",
    of="false negatives per false positive",
    about="""
    Each group is described by its number of false negatives divided by its number of false
    positives. This number is undefined for a group without false positives: depending on
    ``zero_division``, an error is raised or NaN is returned, never infinity.
    """,
    examples=(1.0, 0.0),
    says="The difference of numbers of false negatives for each false positive.",
    does_not_say="How many errors are made in all.",
)

accuracy_parity_difference, accuracy_parity_ratio = _criterion(
    "accuracy_parity",
    "accuracy",
    of="accuracies",
    about="""
    The accuracy of a group is the share of its rows that are predicted correctly. The labels may
    have any number of classes. With ``pos_label``, this class is compared with the rest.
    """,
    examples=(0.25, 0.667),
    says="The difference of accuracies.",
    does_not_say="Who is harmed, because both kinds of errors count equally.",
)

independence_gap = _total(
    "independence",
    "selection_rate",
    about="""
    Compute the independence gap of predictions and groups (0 is parity).

    The gap is the difference of selection rates, so it equals
    :func:`demographic_parity_difference`. ``y_true`` is not used and may be None.
    """,
    example=0.25,
    says="The difference of selection rates.",
    does_not_say="Whether the difference is justified by the truth.",
)

separation_gap = _total(
    "separation",
    "true_positive_rate",
    "false_positive_rate",
    about="""
    Compute the separation gap of predictions and groups within true classes (0 is parity).

    The gap of two groups is the difference of their true positive rates plus the difference of
    their false positive rates, so it is at most 2.
    """,
    example=0.5,
    says="The difference of true positive rates plus the difference of false positive rates.",
    does_not_say="Which of the two differences is larger.",
)

sufficiency_gap = _total(
    "sufficiency",
    "positive_predictive_value",
    "false_omission_rate",
    about="""
    Compute the sufficiency gap of true classes and groups within predicted ones (0 is parity).

    Within each predicted class, the share of positive rows is compared between two groups. The gap
    is the sum of both differences, so it is at most 2.
    """,
    example=0.667,
    says="The difference of the share of truly positive people among the selected, plus the same "
    "difference among people not selected.",
    does_not_say="Which of the two differences is larger.",
)
largest_selection_rate = _largest("selection_rate", example=0.75)
largest_false_positive_rate = _largest("false_positive_rate", example=0.5)
largest_false_negative_rate = _largest("false_negative_rate", example=0.5)


def _say_what_else() -> None:
    """Add the section "See Also" to the docstrings: metrics that share a rate, and limits."""
    specs, metrics = LABEL_METRICS | LARGEST_RATES, globals()
    sums = {"difference", "total"}
    about = {name: metrics[name].__doc__.splitlines()[0] for name in specs}
    for name, spec in specs.items():
        near = {
            other: about[other].removeprefix("Compute the ").partition(" (")[0].rstrip(".")
            for other, own in specs.items()
            if other != name
            and {*own.rates} & {*spec.rates}
            and (own.rates == spec.rates or own.kind == spec.kind or {own.kind, spec.kind} <= sums)
        }
        lines = [f"{other} : The {what}." for other, what in near.items()]
        if constraint := _LIMITED_BY.get(name.rpartition("_")[0], _LIMITED_BY.get(name)):
            lines.append(f"skfair.constraints.{constraint} : The limit on it.")
        lines.append("fairness_report : All such comparisons with standard errors.")
        see_also = "\n".join(["See Also", "--------", *lines])
        start, examples, end = metrics[name].__doc__.partition("Examples\n--------\n")
        metrics[name].__doc__ = f"{start}{see_also}\n\n{examples}{end}"


if _RETURNS:
    _say_what_else()
