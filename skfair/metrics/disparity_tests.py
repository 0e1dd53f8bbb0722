"""Tests, upper bounds and sample sizes for disparities of the population.

A metric measures the disparity of a sample. The functions of this module say what the sample shows
of the population that it was drawn from, for the predictions of any model on rows that it was not
fitted or tuned on:

- ``disparity_test``: whether the disparity of the population is below a limit.
- ``disparity_upper_bound``: the smallest limit that this test can show.
- ``sample_size``: how many people the test needs.

The first two read their arguments here, and get the comparisons and p-values from
:mod:`skfair.metrics.evidence`. ``requested_metric`` is also called by ``disparity_bounds``, and
``needed_rows`` by estimators that certify limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy import stats

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, IntervalLike
from skfair.exceptions import LooseLimitWarning
from skfair.groups.attributes import read_columns
from skfair.groups.cohort import Cohort, cohort_of, with_columns
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import outcome_table, refuse_kinds, score_rows
from skfair.groups.compared_groups import Reference, is_group, nothing_to_compare
from skfair.groups.probabilities import GroupProbabilities
from skfair.groups.two_rates import check_method, edge_rates, worth_of_pairs
from skfair.metrics.docs import PARAGRAPHS
from skfair.metrics.evidence import (
    SCORE_METRICS,
    Evidence,
    evidence_of_labels,
    evidence_of_scores,
)
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES, LabelSpec
from skfair.metrics.own_draws import evidence_of_own
from skfair.metrics.own_metrics import GroupMetric, positive_of
from skfair.metrics.scores import rankable_rows
from skfair.utils.dask_collections import is_lazy
from skfair.utils.docs import described, documenter
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import did_you_mean, listed, plural
from skfair.utils.validation import LOOSE, check_limit, check_number, check_probability
from skfair.utils.warn import warn_user

if TYPE_CHECKING:
    import pandas as pd


@runtime_checkable
class MeasuredConstraint(Protocol):
    """A fairness constraint that knows the metric which measures it (see skfair.constraints)."""

    max_disparity: float | None
    metric: str | None


def requested_metric(metric: Any, comparison: str) -> tuple[str, LabelSpec | None, float | None]:
    """Return the full name of a metric, its ``LabelSpec`` and its limit; raise if it has no test.

    The ``LabelSpec`` is None for metrics of scores, and for metrics of one's own that are no rate
    of labels. The limit is None unless ``metric`` is a
    constraint that has one.
    """
    if comparison not in ("difference", "ratio"):
        raise ValueError(f"comparison must be 'difference' or 'ratio', got {comparison!r}.")
    limit = None
    if isinstance(metric, str):
        name = metric
    elif isinstance(metric, GroupMetric):
        if comparison not in ("difference", metric.compare):
            raise ValueError(
                f"comparison='ratio' is not what {metric!r} measures. Make it with compare='ratio'."
            )
        kind: Any = metric.compare
        has_table = metric.rate and kind != "smallest"
        return metric.__name__, LabelSpec(kind, (metric.rate,)) if has_table else None, None
    elif isinstance(metric, MeasuredConstraint):
        name, limit = str(metric.metric), getattr(metric, "own_limit", metric.max_disparity)
    else:
        name = getattr(metric, "__name__", "")  # a functools.partial has none, and no test
    if f"{name}_{comparison}" in LABEL_METRICS:
        name = f"{name}_{comparison}"
    spec = {**LABEL_METRICS, **LARGEST_RATES}.get(name)
    has_test = name in SCORE_METRICS
    if spec is not None:  # no test of quotients of counts, and of sums of two differences
        has_test = spec.rates != ("error_ratio",) and (spec.kind != "total" or len(spec.rates) == 1)
    if not has_test:
        pairs = [key.removesuffix("_difference") for key in LABEL_METRICS if "_diff" in key]
        pairs.remove("treatment_equality")
        known = [*pairs, *SCORE_METRICS, *LARGEST_RATES]
        hint = did_you_mean(metric, known)
        names = ", ".join(map(repr, known))
        raise ValueError(
            f"There is no test of metric={metric!r}.{hint} Choose from {names}, or pass "
            "make_group_metric(metric) of a metric of a single group, such as f1_score."
        )
    if comparison == "ratio" and (spec is None or spec.kind != "ratio"):
        raise ValueError(
            f"comparison='ratio' is not what metric={metric!r} measures. Pass the name of a "
            "constraint on rates such as 'demographic_parity', or a metric of ratios."
        )
    return name, spec, limit


class DisparityTest(NamedTuple):
    """Result of :func:`disparity_test`.

    Attributes
    ----------
    statistic : float
        The disparity of the sample, which is the largest of all comparisons.
    p_value : float
        p-value of the null hypothesis that the population's disparity is at least the limit.
    is_within : bool
        Whether the null hypothesis is rejected at the given confidence, which shows that the
        population's disparity is below the limit.
    max_disparity : float
        The limit that was tested.
    confidence : float
        The confidence of the test.
    method : str
        Name of the test.
    pairs : DataFrame
        Table with one row for each comparison. It holds the groups and the rate that are compared,
        their numbers of rows (effective numbers, if rows have weights), their rates, the disparity
        and the p-value.
    undefined : str
        The reason if the disparity is undefined, and empty otherwise. ``statistic`` is then NaN,
        and no limit is shown to hold.

    Examples
    --------
    >>> from skfair.metrics import disparity_test
    >>> sex, y_pred = ["f", "m"] * 500, [1, 1, 0, 0] * 250
    >>> found = disparity_test(
    ...     "demographic_parity", None, y_pred, sensitive_features=sex, max_disparity=0.1
    ... )
    >>> found.is_within, bool(found.p_value < 0.01)
    (True, True)
    """

    statistic: float
    p_value: float
    is_within: bool
    max_disparity: float
    confidence: float
    method: str
    pairs: pd.DataFrame
    undefined: str = ""

    def __bool__(self) -> bool:
        """Whether the limit is shown, so that ``assert disparity_test(...)`` says what it seems."""
        return bool(self.is_within)

    def __repr__(self) -> str:
        if self.undefined:
            return f"DisparityTest(undefined, so no limit is shown: {self.undefined})"
        verdict = "within" if self.is_within else "not shown to be within"
        compared = plural(len(self.pairs), "comparison")
        return (
            f"DisparityTest(disparity {self.statistic:.4f} {verdict} {self.max_disparity:g} at "
            f"{100 * self.confidence:g}%, p = {self.p_value:.4f}, {compared})"
        )


@takes_cohort
@documenter(PARAGRAPHS)
def disparity_test(
    metric: str | MeasuredConstraint | Callable[..., float],
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    max_disparity: float | None = None,
    min_ratio: float | None = None,
    comparison: str = "difference",
    reference: Reference = "pairwise",
    method: str = "melded",
    shift: float = 0.0,
    confidence: float = 0.95,
) -> DisparityTest:
    """Test whether the disparity of the population is below a limit.

    The null hypothesis is that the population's disparity is at least the limit. If it is rejected,
    the limit holds for new people from the same population, with an error probability of at most
    1 - ``confidence``.

    Parameters
    ----------
    metric : str, metric or Constraint
        The disparity to test. It may be the name of a constraint such as "demographic_parity", a
        metric of differences, ratios or largest rates of labels, an object of
        :mod:`skfair.constraints`, or one of the metrics of scores ``statistical_parity_gap``,
        ``partial_statistical_parity_gap``, ``partial_demographic_parity_gap`` (at the threshold 0),
        ``group_auc_gap``, ``inter_group_pairwise_gap``, ``intra_group_pairwise_gap`` and
        ``mean_score_difference``. Any other metric of a single group can be tested as
        ``make_group_metric(f1_score)``, see Notes.
    y_true : array-like of shape (n_samples,) or None
        True labels. They may be None for metrics that do not use them.
    y_pred : array-like of shape (n_samples,)
        Predicted labels, or scores if the metric is computed from scores. The rows must not have
        been used to fit or choose the model.
    interval : (float, float), default=None
        Percentile interval of the ranks that partial metrics look at.
    max_disparity : float, default=None
        The limit to test. For ratios, it is 1 minus the smallest ratio that is allowed. It may be
        None if ``metric`` is a constraint that has a limit.
    min_ratio : float, default=None
        The smallest ratio that is allowed, such as 0.8 for the four-fifths rule. It replaces
        ``comparison`` and ``max_disparity``.
    comparison : {"difference", "ratio"}, default="difference"
        How rates are compared if ``metric`` is a name such as "demographic_parity". "difference"
        limits their difference. "ratio" limits 1 minus the smaller rate over the larger one, so a
        limit of 0.2 is the 80% rule. Metrics and constraints determine the comparison themselves,
        and "ratio" raises an error for a metric of differences.
    method : {"melded", "exact", "score"}, default="melded"
        The test of two rates. "melded" is valid for groups of any size and slightly conservative.
        Intervals of :func:`fairness_report`, :func:`group_report` and audits are computed by it, so
        they agree with the test. "exact" counts every possible table. Its bounds are about 3%
        smaller for groups of at most 60 rows, but its p-value may rise as the limit grows. "score"
        is the fastest, but with few rows its error probability may reach 10% instead of 5%. Metrics
        of scores have a test of their own.
    shift : float, default=0.0
        Fraction of each rate's population that may change arbitrarily (distribution shift). The
        result holds for every population that differs by at most this fraction, and the upper bound
        grows by about the same amount. It is available only for differences.
    confidence : float, default=0.95
        Confidence level of the test. The error probability is at most 1 - ``confidence``.

    Returns
    -------
    found : DisparityTest
        The result, with ``statistic``, ``p_value``, ``is_within`` and the table ``pairs``.

    See Also
    --------
    disparity_upper_bound : The smallest limit that the data can show.
    sample_size : The number of people that it takes to show a limit.

    Notes
    -----
    Every pair of groups, and every rate, must be shown to be within the limit by itself. The
    p-value is therefore the largest one over all comparisons, and no correction for multiple tests
    is needed. Weighted rows count as an effective number of rows, which is an approximation: the
    smaller of Kish's number and the number of Korn and Graubard, and at most the number of rows.
    Rows that belong together (``units``) count as the number of independent rows that would give
    the same cluster-robust variance of the rate, with quantiles of Student's t distribution. If a
    unit has rows in several groups, such as one CV under two names, their rates are correlated, and
    a difference is tested with the variance of correlated rates or means, which is usually smaller.
    (Tests of areas and of distributions of scores treat groups as independent.) If the rates of
    both groups are 0, their ratio is undefined, and the p-value and the bound are 1. So are they
    for rates by true class, such as true positive rates, if every decision is the same, because
    outcomes may then be known of the accepted only (see :doc:`/user_guide/selective_labels`). Tests
    of means allow for skewed scores, but a group of ten rows may contain none of the rare large
    scores. With ``reference="overall"``, the population is assumed to have the (weighted) group
    shares of the sample. Dask collections are accepted by metrics of labels.

    A metric of :func:`make_group_metric` that is a rate of two classes is tested like other rates:
    F scores, in which an error counts as a part of a row, precision and recall. Any other one is
    tested by the bootstrap, with 1000 resamples or more if ``confidence`` is 0.95. Rows, or whole
    ``units``, of all groups are resampled together, always with the same seed. The p-value is the
    share of the resamples in which the disparity reaches the limit, and the upper bound is a
    percentile of them. With two labels, half a row of each prediction is added to each true class
    of a group. Metrics of scores and numbers have no such addition, so their groups should have 100
    rows or more.

    References
    ----------
    Fay, Proschan and Brittain (2015), Combining one-sample confidence procedures for inference in
    the two-sample case, Biometrics 71; Farrington and Manning (1990), Statistics in Medicine 9.

    Examples
    --------
    >>> from skfair.metrics import disparity_test
    >>> sex, y_pred = ["f", "m"] * 500, [1, 1, 0, 0] * 250
    >>> disparity_test(
    ...     "demographic_parity", None, y_pred, sensitive_features=sex, max_disparity=0.05
    ... )
    DisparityTest(disparity 0.0000 not shown to be within 0.05 at 95%, p = 0.0641, 1 comparison)
    """
    import pandas as pd

    people = _people(metric, locals())
    check_probability(confidence, "confidence")
    max_disparity, comparison = _read_limit(max_disparity, min_ratio, comparison)
    name, spec, own_limit = requested_metric(metric, comparison)
    if own_limit is not None and max_disparity is not None:
        raise ValueError(
            f"max_disparity={max_disparity!r} was passed, but {metric!r} has a limit of its own. "
            "Pass one of them."
        )
    limit = own_limit if max_disparity is None else max_disparity
    if limit is None:
        raise ValueError(
            "There is no limit: pass max_disparity=, min_ratio=, or a constraint that has its own."
        )
    check_number(limit, "max_disparity", 0)
    # A difference of means, or by one's own metric, has a unit, so its limit may exceed 1.
    own = metric if isinstance(metric, GroupMetric) and spec is None else None
    has_unit = own is not None and own.compare != "ratio"
    if name != "mean_score_difference" and not has_unit:
        is_difference = spec is not None and spec.kind == "difference"
        ratio = f"min_ratio={limit:g}" if is_difference else None
        check_limit(limit, f"max_disparity={limit:g}", ratio=ratio)
    is_ratio = spec is not None and spec.kind == "ratio"
    if is_ratio and min_ratio is None and own_limit is None and LOOSE < limit < 1:
        warn_user(
            f"max_disparity={limit:g} is 1 minus a ratio, so it allows one rate to be "
            f"{1 - limit:.3g} of another. For a smallest ratio of {limit:g}, as in the four-fifths "
            f"rule, pass min_ratio={limit:g} instead.",
            LooseLimitWarning,
        )
    judged = None if own is None else (own, confidence)
    how = intersectional, method, reference, interval, judged
    evidence = _evidence(name, spec, people, *how)
    p_values = evidence.p_values(_before_shift(name, spec, float(limit), shift))
    p_value = float(p_values.max(initial=0.0))
    table = {**evidence.columns, "disparity": evidence.measured, "p_value": p_values}
    result = evidence.largest, p_value, p_value <= 1 - confidence
    question = float(limit), float(confidence), evidence.method
    return DisparityTest(*result, *question, pd.DataFrame(table), evidence.undefined)


@takes_cohort
@documenter(described(disparity_test))
def disparity_upper_bound(
    metric: str | MeasuredConstraint | Callable[..., float],
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    interval: IntervalLike | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    comparison: str = "difference",
    reference: Reference = "pairwise",
    method: str = "melded",
    shift: float = 0.0,
    confidence: float = 0.95,
) -> float:
    """Return an upper confidence bound on the disparity of the population.

    The bound is the smallest limit that :func:`disparity_test` can show to hold for new people.

    Returns
    -------
    bound : float
        Upper bound on the population's disparity, which holds with a probability of at least
        ``confidence``. For ratios, it bounds 1 minus the smallest ratio.

    See Also
    --------
    disparity_test : Test whether the disparity is below a given limit.

    Examples
    --------
    >>> from skfair.metrics import disparity_upper_bound
    >>> sex, y_pred = ["f", "m"] * 500, [1, 1, 0, 0] * 250
    >>> bound = disparity_upper_bound("demographic_parity", None, y_pred, sensitive_features=sex)
    >>> round(bound, 2)
    0.05
    """
    people = _people(metric, locals())
    check_probability(confidence, "confidence")
    name, spec, _ = requested_metric(metric, comparison)
    own = metric if isinstance(metric, GroupMetric) and spec is None else None
    judged = None if own is None else (own, confidence)
    how = intersectional, method, reference, interval, judged
    evidence = _evidence(name, spec, people, *how)
    _before_shift(name, spec, 1.0, shift)  # this only checks shift
    if evidence.undefined:
        warn_user(f"The bound is 1, because {evidence.undefined}.")
        return 1.0
    spread = None
    if name == "mean_score_difference":  # this one has the unit of the scores
        spread = float(np.ptp(np.asarray(_scores_of(people), np.float64)))
    if own is not None and own.compare != "ratio":
        if evidence.p_value(np.inf) > 1 - confidence:
            return np.inf
        spread = evidence.largest
    bound = evidence.smallest_shown(confidence, spread)
    return shift + (1 - shift) * bound if shift else bound


def _read_limit(
    max_disparity: float | None, min_ratio: float | None, comparison: str
) -> tuple[float | None, str]:
    """Return the limit (None if there is none) and the comparison; ``min_ratio`` gives both."""
    if min_ratio is None:
        return max_disparity, comparison
    check_number(min_ratio, "min_ratio", 0, 1)
    if max_disparity is not None:
        raise ValueError(
            f"min_ratio={min_ratio!r} and max_disparity={max_disparity!r} are both a limit. Pass "
            "one of them."
        )
    return 1.0 - float(min_ratio), "ratio"


def _before_shift(name: str, spec: LabelSpec | None, limit: float, shift: float) -> float:
    """Return the limit that must hold before a shift, so that ``limit`` holds after it.

    A shift replaces each rate r by (1 - shift) r + shift q for some q from 0 to 1. A difference d
    then is at most (1 - shift) d + shift, which is the limit if d is (limit - shift) / (1 - shift).
    """
    check_number(shift, "shift", 0, 0.999)
    if shift and (spec is None or spec.kind in ("largest", "ratio")):
        raise ValueError(
            f"shift={shift!r} is available only for differences of rates of labels. Set it to 0 "
            f"for {name}."
        )
    return (limit - shift) / (1 - shift)


def _evidence(
    name: str,
    spec: LabelSpec | None,
    people: Cohort,
    intersectional: bool,
    method: str,
    reference: Reference,
    interval: IntervalLike | None,
    own: tuple[GroupMetric, float] | None,  # a metric of one's own, and the confidence
) -> Evidence:
    """Return the comparisons of a metric."""
    check_method(method)
    if spec is not None:
        if spec.uses_y_true and people.y_true is None:
            raise ValueError(f"{name} needs y_true, got None.")
        if isinstance(people.sensitive_features, GroupProbabilities):
            read_columns(people.sensitive_features)  # raises: such rows are not independent
        table = outcome_table(people, spec.counted, intersectional)
        evidence = evidence_of_labels(spec, table, method, reference)
    elif own is not None:
        rows = own[0].read(people, intersectional, each_row=True, units=people.units)
        evidence = evidence_of_own(own[0], rows, reference, people.pos_label, own[1])
    elif name.startswith("partial_") and interval is None:
        raise ValueError(f"{name} needs interval=, the ranks that count.")
    elif is_group(reference) or reference != "pairwise":
        raise ValueError(
            f"{name} compares every pair of groups, so reference={reference!r} has no test here. "
            "Leave it out, or test a metric of labels."
        )
    else:
        scores = _scores_of(people)
        if is_lazy(people.y_true, scores, people.sensitive_features, people.control_features):
            raise TypeError(
                f"The test of {name} reads single scores, and these are in Dask collections. "
                "compute() them, or test rates of labels, of which sums are enough."
            )
        refuse_kinds(people)
        if people.sample_weight is not None:
            raise ValueError(
                f"{name} has no test with sample_weight. Leave out the weights, or test rates of "
                "labels."
            )
        own_scores = with_columns(people, y_score=scores)
        # rankable_rows also refuses decisions, which have no ranks for an interval.
        read = score_rows if interval is None else rankable_rows
        rows = read(own_scores, intersectional, name="y_pred", each_row=True, units=people.units)
        evidence = evidence_of_scores(name, rows, interval, people.pos_label)
    if not evidence.measured.size:
        raise nothing_to_compare()
    return evidence


def _people(metric: Any, arguments: Mapping[str, Any]) -> Cohort:
    """Return the cohort of the arguments; its positive class may be bound to the metric."""
    people = cohort_of(**arguments)
    positive = positive_of(metric, people.pos_label)
    if positive == people.pos_label:
        return people
    return with_columns(people, pos_label=positive)


def _scores_of(people: Cohort) -> Any:
    """Return the scores of a cohort, which the functions of this file take as ``y_pred``, too."""
    return people.y_pred if people.y_score is None else people.y_score


def sample_size(
    max_disparity: float | None = None,
    *,
    min_ratio: float | None = None,
    power: float = 0.8,
    comparison: str = "difference",
    rates: Any = 0.5,
    shares: Any = (0.5, 0.5),
    confidence: float = 0.95,
    rows_per_unit: float = 1.0,
    correlation: float = 1.0,
    pair_correlation: float = 0.0,
) -> IntArray:
    """Return the number of people of each group that it takes to show that a limit holds.

    Parameters
    ----------
    max_disparity : float, default=None
        The limit. For ratios, it is 1 minus the smallest ratio that is allowed.
    min_ratio : float, default=None
        The smallest ratio that is allowed. It replaces ``comparison`` and ``max_disparity``.
    power : float, default=0.8
        Probability that the test shows the limit to hold if the rates are as given.
    comparison : {"difference", "ratio"}, default="difference"
        Whether the limit applies to the difference of rates or to 1 minus their ratio.
    rates : float, sequence of float or dict, default=0.5
        The expected rate of each group in the population, or one number if all groups have the same
        rate. For equal opportunity, these are true positive rates.
    shares : sequence of float or dict, default=(0.5, 0.5)
        The share of each group among the people who enter the rates. For equal opportunity, these
        are the positives. If both ``rates`` and ``shares`` are dicts, they are matched by group.
    confidence : float, default=0.95
        Confidence level of the test.
    rows_per_unit : float, default=1.0
        Number of rows per person, such as visits. If it is above 1, pass the person as ``units=``
        to the test.
    correlation : float, default=1.0
        Intraclass correlation of the decisions on the rows of one person, from 0 to 1. If it is 1,
        further rows of a person add no information. If it is 0, they are worth as much as rows of
        other people. It has no effect if everybody has one row.
    pair_correlation : float, default=0.0
        Correlation of the decisions on two rows of one person that are in different groups, if
        everybody has ``rows_per_unit`` rows in each group. An example is one CV under two names.
        The more the decisions of a pair resemble each other, the fewer people are needed. If it is
        0, the groups are of different people.

    Returns
    -------
    sizes : ndarray of shape (n_groups,)
        Number of people of each group, in the order of ``shares``.

    See Also
    --------
    disparity_test : The test that it is for.
    noise_floor : What groups of these sizes show by chance.

    Notes
    -----
    The numbers come from a normal approximation of the score test, with a correction for whole
    numbers of people. They are conservative if rates are close to 0 or 1. With several pairs of
    groups, the probability that the test fails for any pair is bounded by the sum over the pairs.

    By the design effect, k rows of one person whose decisions have the correlation r are worth k /
    (1 + (k - 1) r) rows of different people. If the number of rows varies between people, more
    people are needed, by a factor of about the mean squared number of rows over the squared mean.

    Decisions on pairs with the rates p and q that differ in a share d of the pairs have the
    correlation (p + q - d - 2 p q) / (2 sqrt(p (1 - p) q (1 - q))). For rates of 0.5 it is 1 - 2 d.

    Examples
    --------
    >>> from skfair.metrics import sample_size
    >>> sample_size(0.05, rates=0.3, shares=(0.3, 0.7)).tolist()
    [1055, 2462]

    The same CVs under two names, if the decisions differ for one CV in twenty:

    >>> sample_size(0.05, rates=0.5, pair_correlation=0.9).tolist()
    [267, 267]
    """
    check_probability(power, "power")
    check_probability(confidence, "confidence")
    if comparison not in ("difference", "ratio"):
        raise ValueError(f"comparison must be 'difference' or 'ratio', got {comparison!r}.")
    max_disparity, comparison = _read_limit(max_disparity, min_ratio, comparison)
    if max_disparity is None:
        raise ValueError("There is no limit: pass max_disparity= or min_ratio=.")
    check_number(max_disparity, "max_disparity", 1e-9, 1)
    ratio = f"min_ratio={max_disparity:g}" if comparison == "difference" else None
    check_limit(max_disparity, f"max_disparity={max_disparity:g}", ratio=ratio)
    if isinstance(rates, Mapping) and isinstance(shares, Mapping):
        if set(rates) != set(shares):
            raise ValueError(
                f"rates and shares must name the same groups, got {listed(rates)} and "
                f"{listed(shares)}."
            )
        rates = {name: rates[name] for name in shares}
    parts = _numbers(shares, "shares")
    if parts.size < 2 or (parts <= 0).any():
        raise ValueError(f"shares must be positive numbers, one of each group, got {shares!r}.")
    listed_rates = np.full(parts.size, float(rates)) if isinstance(rates, Real) else rates
    chances = _numbers(listed_rates, "rates")
    if chances.size != parts.size or (chances < 0).any() or (chances > 1).any():
        raise ValueError(
            f"rates must be numbers from 0 to 1, one of each of {parts.size} groups, got {rates!r}."
        )
    check_number(rows_per_unit, "rows_per_unit", 1)
    check_number(correlation, "correlation", 0, 1)
    check_number(pair_correlation, "pair_correlation", 0, 1)
    worth = rows_per_unit / (1 + (rows_per_unit - 1) * correlation)
    if pair_correlation and not np.allclose(parts, parts[0]):
        raise ValueError(
            f"pair_correlation={pair_correlation:g} is for people with rows in every group, so the "
            f"groups are of the same size, got shares={shares!r}. Leave out one of them."
        )
    if pair_correlation * worth > 1 + ROUNDING:
        raise ValueError(
            f"pair_correlation={pair_correlation:g} is too large for {rows_per_unit:g} rows of a "
            f"person in each group with correlation={correlation:g}: it is at most {1 / worth:.3g}."
        )
    shown = max_disparity, confidence, power, comparison, pair_correlation, worth
    return np.ceil(needed_rows(chances, parts / parts.sum(), *shown) / worth).astype(np.int64)


def needed_rows(
    rates: FloatArray,
    shares: FloatArray,
    limit: float,
    confidence: float,
    power: float,
    comparison: str = "difference",
    pair_correlation: float = 0.0,
    worth: float = 1.0,  # independent rows per person and group, see sample_size
) -> IntArray:
    """Return the rows of each group, for checked arguments; raise if rates exceed the limit.

    Each ordered pair of groups is tested. With n rows in all, the score test shows the limit if
    the slack (how far the rates are below the limit) exceeds z standard errors. The number n is
    the smallest one at which the probabilities to miss this add up to 1 - ``power`` at most, over
    the pairs. It is found by doubling and halving.
    """
    first, second = np.nonzero(~np.eye(rates.size, dtype=bool))  # either rate may be the higher one
    ratio = comparison == "ratio"
    factor = 1 - limit if ratio else 1.0  # factor of the first rate, see two_rates.score_statistic
    slack = rates[second] - factor * rates[first] + (0.0 if ratio else limit)
    if (slack <= 1e-9).any():
        raise ValueError(
            f"The rates {np.round(rates, 4).tolist()} themselves differ by the limit {limit:g} or "
            "more, so no number of people shows that it holds."
        )
    rows = shares[first], shares[second]  # rows of both groups per row in all
    # The test divides by the standard error of the likeliest rates that differ by the limit, since
    # that of the rates themselves is 0 if nobody, or everybody, is selected.
    hits = rates[first] * rows[0], rates[second] * rows[1]
    limits = np.full(first.size, limit)
    edge = edge_rates(hits[0], rows[0], hits[1], rows[1], limits, ratio)

    def variance(rate: FloatArray, other: FloatArray) -> FloatArray:
        """Return n times the variance of the compared difference, at given rates."""
        return np.asarray(factor**2 * rate * (1 - rate) / rows[0] + other * (1 - other) / rows[1])

    own, on_edge = variance(rates[first], rates[second]), variance(*edge)
    # Counts are whole numbers, so a careful test loses about half a person of each group.
    lost, half = 0.5 * (factor / rows[0] + 1 / rows[1]), np.zeros(first.size)
    if pair_correlation:  # pairs have the variances of two_rates.worth_of_pairs
        pairs = hits[0], rows[0], hits[1], rows[1], limits, ratio
        rho = np.full(first.size, pair_correlation * worth)
        on_edge = own / worth_of_pairs(*pairs, rho, worth / rows[0])
        by = worth_of_pairs(*pairs, rho, np.zeros(first.size))
        own, lost = own / by, lost / by
        half = factor * worth**2 / rows[0] ** 2  # n times the covariance that the test takes off
    z = stats.norm.ppf(confidence)

    def failing(n: float) -> float:
        """Return a bound on the probability that n rows do not show the limit."""
        left = slack - z * np.sqrt((on_edge + half / n) / n) - lost / n
        return float(stats.norm.sf(left / np.sqrt(np.maximum(own, 1e-12) / n)).sum())

    low, high = 0.0, 10.0
    while failing(high) > 1 - power:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if failing(middle) <= 1 - power else (middle, high)
    return np.ceil(high * shares).astype(np.int64)


def _numbers(values: Sequence[float] | Mapping[Any, float] | Any, name: str) -> FloatArray:
    """Return the numbers of the groups, in order, from a sequence or a dict."""
    listed = list(values.values()) if isinstance(values, Mapping) else values
    try:
        numbers = np.atleast_1d(np.asarray(listed, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one of each group, got {values!r}.") from error
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be numbers, one of each group, got {values!r}.")
    return numbers
