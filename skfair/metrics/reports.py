"""Reports for an auditor: rates per group with intervals, and gaps with standard errors.

``group_report`` has a row for each group and a column for each rate. ``fairness_report`` has a row
for each difference, ratio or gap of labels and of whole distributions of scores. Both return a
``Report``, a pandas DataFrame that prints compactly (``0.31 [0.28, 0.34]``) while its columns hold
the plain numbers, for sorting, saving and plotting.

The rows of a group report are *cells* (a group within a stratum) and, below the cells of each
stratum, the whole stratum. ``ListedCells`` brings numbers of cells into this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, Seed
from skfair.groups.cohort import Cohort, cohort_of
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import outcome_rows, score_rows
from skfair.groups.compared_groups import (
    Agg,
    ComparedGroups,
    Reference,
    is_group,
    names_group,
    nothing_to_compare,
)
from skfair.groups.compared_rates import Pairs, pairs_of
from skfair.groups.declared_rates import RATES, rates_of
from skfair.groups.distinct_rows import WeightedRows
from skfair.groups.estimates import Estimate, intervals
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.outcomes import Counted
from skfair.groups.rates import CellMeans
from skfair.groups.table import GroupTable
from skfair.groups.weighted_rows import LazyRows
from skfair.metrics.intervals import difference_interval, quantiles, spread
from skfair.metrics.labels import LABEL_METRICS
from skfair.metrics.own_draws import measure_own
from skfair.metrics.own_metrics import (
    OwnMetrics,
    OwnRows,
    check_own,
    check_predictions,
)
from skfair.metrics.pooled import pooled_rates
from skfair.metrics.resampled_scores import SCORE_METRICS, resampled_gaps
from skfair.utils.other_names import MissingAttribute
from skfair.utils.validation import (
    check_number,
    check_probability,
    check_scores,
)
from skfair.utils.warn import warn_user

_REPORT_RATES = tuple(name for name, rate in RATES.items() if rate.is_listed)
_COUNTS = ("n", "n_units")  # columns that are whole numbers, and have no differences


@takes_cohort
def group_report(
    y_true: ColumnLike | None,
    y_pred: ColumnLike | None = None,
    *,
    y_score: ColumnLike | None = None,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    reference: Reference = "pairwise",
    method: Literal["wilson", "bootstrap"] | None = "wilson",
    confidence: float = 0.95,
    metrics: OwnMetrics | None = None,
    n_bootstrap: int = 500,
    rates: bool = True,
    estimate: Literal["raw", "pooled"] = "raw",
    random_state: Seed = 0,
) -> Report:
    r"""Build a table of the rates of each group, with confidence intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels, or numbers if ``rates=False``. If None, the rates that need true labels are
        left out, and the report has the columns ``n`` and ``selection_rate``.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels, or numbers if ``rates=False``. They are needed beside scores as well: pass
        ``y_score > 0.5`` if there is nothing but scores.
    y_score : array-like of shape (n_samples,), default=None
        Scores. If given, the report has the column ``mean_score``.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        An attribute that may legitimately explain a difference, such as the department. Several
        columns are crossed. The groups are then listed within each of its levels (strata).
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. Intervals then use the effective number of rows of each rate. This is
        the smaller of Kish's number, :math:`(\sum w)^2 / \sum w^2`, and the number of Korn and
        Graubard, which accounts for weights that depend on the outcome.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. The report
        then has the column ``n_units``, the number of different units of each group, and intervals
        account for the correlation between the rows of a unit. A unit may lie in several groups,
        such as age bands, or one CV under two names. Intervals of differences between these groups
        account for what they have in common. Without ``units``, every row is treated as a different
        person, and intervals are too short if people occur more than once.
    intersectional : bool, default=True
        If True, groups are the intersections of all attributes. If False, the groups of each
        attribute are listed one after the other.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.
    reference : {"pairwise"}, group or dict, default="pairwise"
        The group with which other groups are compared, such as ``"male"``, or one level of each
        attribute, such as ``{"sex": "male", "race": "White"}``. If given, a column
        ``..._difference`` is added for each rate and metric. It is the value of the group minus the
        value of the reference group in the same stratum.
    method : {"wilson", "bootstrap"} or None, default="wilson"
        How intervals are computed: by Wilson's formula for a proportion or from percentiles of
        resampled tables. If None, the report has no intervals.
    confidence : float, default=0.95
        Confidence level of the intervals.
    metrics : dict of str to callable, default=None
        Further metrics, which are added as columns under their names. Each one is a function of
        scikit-learn or of your own. It is called as ``metric(y_true, y_pred)`` for each group, and
        with ``sample_weight`` if weights are given. A metric whose second argument is named
        ``y_score`` or ``y_proba``, such as ``roc_auc_score``, receives the scores. F scores,
        precision and recall of two classes have the intervals of rates, by ``method``. Other
        intervals are percentiles of ``n_bootstrap`` resamples of all rows, or of all units. With
        two labels, half a row of each prediction is added to each true class of a group, so that
        ten rows without an error do not look certain. Rows of metrics that have no
        ``sample_weight``, or that are computed from scores or numbers, are thinned to about 20000
        for each group, and the interval is scaled to its size. F1, precision and recall are NaN for
        a group that does not define them. A result that is not a number, such as a
        ``confusion_matrix``, is kept in its cell without an interval. The rows must be in memory.
    n_bootstrap : int, default=500
        Number of resampled tables.
    rates : bool, default=True
        Whether the report has rates, which need a positive class. Set it to False for several
        classes and for predicted numbers. The report then has ``n`` and the ``metrics``.
    estimate : {"raw", "pooled"}, default="raw"
        How the rates of crossed groups are estimated. "raw" uses only the rows of each group.
        "pooled" fits a model to all groups, so the estimate for a small group, such as women over
        60, is close to the value that its sex and age predict, unless its own rows show otherwise.
        Pooled estimates are printed as ``~0.31``, together with their own intervals. About 95% of
        all these intervals contain the rate. The proportion is lower for a small group that differs
        from the prediction, so use "raw" if you are looking for such a group.
    random_state : int, RandomState instance or None, default=0
        Seed of the bootstrap.

    Returns
    -------
    report : Report
        A DataFrame with one row per group and a last row ``overall``. With control features, these
        rows are repeated for each stratum, which is the first level of the index. The columns are
        ``n`` (the number of rows), ``n_units`` if units are given, ``base_rate``,
        ``selection_rate``, ``true_positive_rate``, ``false_positive_rate``,
        ``positive_predictive_value``, ``negative_predictive_value`` (1 minus the false omission
        rate), ``accuracy``, ``mean_score``, and the ends ``..._low`` and ``..._high`` of the
        interval of each rate and of each of the ``metrics``. A value without rows to compute it
        from is NaN, which is printed as ``-``. Intervals of differences of rates are those of
        :func:`disparity_test`. For other values, for pooled estimates and with
        ``method="bootstrap"`` they are computed from the intervals of both values (Newcombe's
        method). Use
        :meth:`skfair.inspection.GroupRatesDisplay.from_report` to draw the report.

    See Also
    --------
    fairness_report : Disparities between groups with standard errors.
    skfair.report.audit : A report of all groups with verdicts.

    Examples
    --------
    >>> from skfair.metrics import group_report
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> report = group_report(y_true, y_pred, sensitive_features=sex, method=None)
    >>> print(report[["n", "selection_rate", "accuracy"]])
             n selection_rate accuracy
    f        4          0.750    0.750
    m        4          0.500    0.500
    overall  8          0.625    0.625
    """
    people = cohort_of(**locals())
    check_probability(confidence, "confidence")
    check_number(n_bootstrap, "n_bootstrap", low=0, kind=Integral)
    _check_columns(people.y_true is None, bool(metrics), rates, method, estimate)
    if not metrics or isinstance(metrics, Mapping):  # check_own says what is wrong with others
        check_predictions(metrics, people.y_pred, people.y_score)
    options: dict[str, Any] = {"is_counted": not metrics}
    # Without rates no class is positive: rows are only counted by whether their labels are equal.
    if not rates:
        options["counted"] = "equal"
    rows = _read(people, intersectional, **options)
    tables = table, _ = _counted(rows)
    listed, cells = ListedCells(table.groups), table.groups.cells
    # The values by column, and the ends of their intervals (``..._low`` and ``..._high``)
    columns, limits = {"n": listed.with_overall(cells.counts.astype(float))}, {}
    counts, draws = listed.with_overall(table.weights), None
    if rows.units is not None:
        columns["n_units"] = np.array([rows.units.n_among(own) for own in listed.rows()])
    if method == "bootstrap":
        draws = _resampled(tables, listed, n_bootstrap, random_state)
    names = _REPORT_RATES if people.y_true is not None else ("selection_rate",)
    for rate in names if rates else ():
        columns[rate] = rates_of(counts, rate)
        if method is not None:
            ends = _ends_of(rate, tables, listed, draws, confidence)
            limits[f"{rate}_low"], limits[f"{rate}_high"] = ends
        if estimate == "pooled":
            _pool(rate, table, listed, columns, limits, confidence)
    if people.y_score is not None:
        columns["mean_score"] = _mean_scores(rows, listed)
    if metrics and people.y_true is not None:
        check_own(metrics, taken=columns, is_lazy=rows.counts is not None)
        of_cells = OwnRows.of(rows, people.pos_label), listed.rows(), rows.units
        how: Any = method, n_bootstrap, confidence, random_state
        own, ends_of_own = measure_own(metrics, *of_cells, *how)
        columns, limits = columns | own, limits | ends_of_own
    is_pooled, pairs, places = estimate == "pooled", {}, []
    if names_group(reference):
        places = np.unique(listed.compared_with(reference)[1]).tolist()
        if rates and method == "wilson" and not is_pooled:
            means = {rate: table.means(rate) for rate in names}
            pairs = {r: pairs_of(own, table.groups, r, reference) for r, own in means.items()}
    differences = with_differences(columns, limits, listed, reference, pairs, confidence)
    report = Report(differences, index=listed.names())
    level = confidence if method else None
    report.attrs = {"confidence": level, "reference_rows": places, "is_pooled": is_pooled}
    return report


def _mean_scores(rows: MeasuredRows, listed: ListedCells) -> FloatArray:
    """Return the mean score of each row of the report; NaN without weight."""
    cells, weights = rows.groups.cells, rows.weights
    values = check_scores(rows.columns["y_score"], "y_score", cells.n_samples)
    total = listed.with_overall(cells.sums(values if weights is None else values * weights))
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / listed.with_overall(cells.sums(weights))


# The table of the cells, and that of the whole strata. The second is None unless there are units:
# strata are sums of their cells, but a unit may lie in several cells.
_Tables: TypeAlias = tuple[GroupTable, GroupTable | None]


def _counted(rows: MeasuredRows) -> _Tables:
    """Count the rows of each cell and, if there are units, of each stratum."""
    return rows.table(), None if rows.units is None else rows.in_one().table()


def _resampled(tables: _Tables, listed: ListedCells, n_bootstrap: int, seed: Seed) -> FloatArray:
    """Draw tables for each row of the report: (n_rows, n_bootstrap, 2, 2)."""
    table, strata = tables
    if strata is None:
        whole = replace(
            table, sums={name: listed.with_overall(own) for name, own in table.sums.items()}
        )
        return whole.resampled(n_bootstrap, seed)
    rng = check_random_state(seed)
    return listed.with_overall(*(part.resampled(n_bootstrap, rng) for part in (table, strata)))


def _ends_of(
    rate: str, tables: _Tables, listed: ListedCells, draws: FloatArray | None, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the intervals of a rate, for each row of the report.

    They are percentiles of the resampled tables ``draws``, or Wilson's if ``draws`` is None.
    """
    table, strata = tables
    overall = None if strata is None else strata.means(rate).sums.T
    sums = listed.with_overall(table.means(rate).sums.T, overall).T
    means = CellMeans(sums, is_share=True)
    if draws is None:
        return means.interval(confidence)
    drawn = np.where(np.isnan(means.means), np.nan, rates_of(draws, rate).T)
    return quantiles(drawn, (1 - confidence) / 2)


def _check_columns(
    is_unlabelled: bool, has_metrics: bool, rates: bool, method: str | None, estimate: str
) -> None:
    """Raise if columns are asked for that a report cannot have."""
    if is_unlabelled and (has_metrics or not rates):
        raise ValueError(
            "group_report needs y_true for metrics= and rates=False, got None. For predicted "
            "numbers without outcomes, use skfair.report.audit(None, y_pred, "
            "sensitive_features=...), or skfair.metrics.mean_score_difference."
        )
    if method not in ("wilson", "bootstrap", None):
        raise ValueError(f"method must be 'wilson', 'bootstrap' or None, got {method!r}.")
    if not rates and not has_metrics:
        raise ValueError("rates=False leaves out the rates. Pass metrics= to have others.")
    if estimate not in ("raw", "pooled"):
        raise ValueError(f"estimate must be 'raw' or 'pooled', got {estimate!r}.")
    if estimate == "pooled" and (method == "bootstrap" or not rates):
        raise ValueError(
            "estimate='pooled' has intervals of its own, and is for rates. Pass method='wilson' "
            "or None, and rates=True."
        )


def _pool(
    rate: str,
    table: GroupTable,
    listed: ListedCells,
    columns: dict[str, FloatArray],
    limits: dict[str, FloatArray],
    confidence: float,
) -> None:
    """Replace a rate of each cell in ``columns`` by its pooled estimate.

    The ends of its interval in ``limits`` are replaced as well, unless the report has no intervals.
    The rows of whole strata stay as they are.
    """
    combinations = table.groups.groups.combinations
    if combinations is None:
        raise ValueError(
            "estimate='pooled' is for crossed groups: pass two attributes or more, such as "
            "sensitive_features=people[['sex', 'age']], with intersectional=True."
        )
    levels = np.column_stack([combinations[table.groups.group_of], table.groups.stratum_of])
    columns[rate][listed.places], *ends = pooled_rates(table.means(rate), levels, confidence)
    for name, end in zip(("low", "high"), ends, strict=True):
        if f"{rate}_{name}" in limits:
            limits[f"{rate}_{name}"][listed.places] = end


@takes_cohort
def fairness_report(
    y_true: ColumnLike | None,
    y_pred: ColumnLike | None,
    *,
    y_score: ColumnLike | None = None,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
    confidence: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Seed = 0,
) -> Report:
    """Build a table of differences, ratios and gaps, with standard errors.

    It has all metrics that compare the rates of groups, and with ``y_score`` those that compare
    whole distributions or orders of scores. Capped rates, calibration, losses, mean scores and
    percentile intervals have metrics of their own, which are not in the table.

    Intervals of differences and ratios of rates agree with :func:`disparity_test` and with audits:
    a limit above ``value_high`` is one that the test shows. Standard errors are computed by
    resampling rows within each group. The worst gap of several groups is biased upwards in small
    samples, because even identical groups differ by chance (see :func:`noise_floor`). For Dask
    collections, the numbers of rows with each label and score are resampled.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels. If None, metrics that need them are left out.
    y_pred : array-like of shape (n_samples,) or None
        Predicted labels. If None, metrics of labels are left out.
    y_score : array-like of shape (n_samples,), default=None
        Scores. If given, metrics of scores are added to the report.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
        An attribute that may legitimately explain a difference, such as the department. Several
        columns are crossed. Groups are then compared, and resampled, only within each of its levels
        (strata).
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit. Intervals of
        differences and ratios account for what groups have in common if a unit has rows in several.
        Standard errors do not: units are resampled within each group, with all of their rows in
        this group. Without ``units``, every row is treated as a different person, and intervals and
        standard errors are too small if people occur more than once.
    intersectional : bool, default=True
        If True, groups are the intersections of all attributes. If False, groups are compared
        within each attribute.
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.
    reference : {"pairwise", "overall"}, group or dict, default="pairwise"
        The comparisons that metrics of labels make, as in :func:`demographic_parity_difference`. If
        it is a group, differences are signed: they are the rate of the group minus the rate of the
        reference.
    agg : {"worst", "mean"}, default="worst"
        Whether to report the value of the worst pair of groups or the mean over all pairs.
    confidence : float, default=0.95
        Confidence level of the intervals from ``value_low`` to ``value_high`` (see Notes).
    n_bootstrap : int, default=200
        Number of resamples. If 0, standard errors and intervals are left out. Metrics of labels
        resample a small table, whereas metrics of scores need a pass over the rows for each
        resample.
    random_state : int, RandomState instance or None, default=0
        Seed of the resampling.

    Returns
    -------
    report : Report
        A DataFrame with one row per metric and the columns ``value``, ``standard_error``,
        ``value_low`` and ``value_high``. An undefined metric is NaN, which is printed as ``-``.

    See Also
    --------
    skfair.report.audit : Report with p-values that are corrected for all groups and metrics.

    Notes
    -----
    The interval of a difference or ratio of rates is for the worst pair of the population, also if
    the groups differ only by chance. Its upper end is the largest upper end of a pair. Its lower
    end is corrected for the number of pairs and rates. Both have half of the error probability
    1 - ``confidence``.

    Other metrics have percentiles of the resamples: sums of differences such as
    ``separation_gap``, quotients of counts (treatment equality), ratios to the overall rate, means
    over pairs (``agg="mean"``) and metrics of scores. A resample adds its own noise to the noise of
    the sample, so its worst gap is usually larger. If such gaps are about as large as
    :func:`noise_floor`, both ends are therefore too high, and with many groups they may even lie
    above ``value``. Rates are resampled after half a row of each prediction has been added to each
    class, because a rate of 0 among few people does not imply a rate of 0 in the population.

    Examples
    --------
    >>> from skfair.metrics import fairness_report
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> report = fairness_report(y_true, y_pred, sensitive_features=sex, random_state=0)
    >>> float(report.loc["demographic_parity_difference", "value"])
    0.25
    """
    people = cohort_of(**locals())
    check_probability(confidence, "confidence")
    check_number(n_bootstrap, "n_bootstrap", low=0, kind=Integral)
    if people.y_pred is None and people.y_score is None:
        raise ValueError("fairness_report needs y_pred, y_score or both; got neither.")
    rng = check_random_state(random_state)
    rows = _read(people, intersectional, is_binned=True)
    if not rows.groups.pairs[0].size:
        raise nothing_to_compare()
    measured: dict[str, tuple[float, FloatArray]] = {}
    estimated: dict[str, tuple[float, float]] = {}
    if people.y_pred is not None:
        measured |= _measure_labels(rows, reference, agg, n_bootstrap, rng)
        if n_bootstrap and agg == "worst":
            estimated = _estimated_ends(rows.table(), measured, reference, confidence)
    if people.y_score is not None:
        measured |= _measure_scores(rows, people.pos_label, agg, n_bootstrap, rng)
    report = pd.DataFrame({"value": {name: value for name, (value, _) in measured.items()}})
    if n_bootstrap:
        tail = (1 - confidence) / 2
        ends = [
            estimated[name] if name in estimated else quantiles(draws, tail)
            for name, (_, draws) in measured.items()
        ]
        report["standard_error"] = [spread(draws) for _, draws in measured.values()]
        report["value_low"] = [float(low) for low, _ in ends]
        report["value_high"] = [float(high) for _, high in ends]
    return Report(report)


def _estimated_ends(
    table: GroupTable, measured: Mapping[str, Any], reference: Reference, confidence: float
) -> dict[str, tuple[float, float]]:
    """Return the interval of each defined metric that is the largest disparity of shares.

    Sums of differences, quotients of counts and ratios to the overall rate are resampled instead.
    """
    is_overall = not is_group(reference) and reference == "overall"
    specs = {
        name: LABEL_METRICS[name]
        for name, (value, _) in measured.items()
        if name in LABEL_METRICS and not np.isnan(value)
    }
    means = {
        rate: table.means(rate)
        for rate in {rate for spec in specs.values() for rate in spec.rates}
        if rate != "error_ratio"
    }
    gaps = {
        name: Estimate(
            tuple(means[rate] for rate in spec.rates),
            spec.rates,
            table.groups,
            spec.kind,
            reference,
        )
        for name, spec in specs.items()
        if (spec.kind == "difference" or (spec.kind == "ratio" and not is_overall))
        and set(spec.rates) <= means.keys()
    }
    return dict(zip(gaps, intervals(list(gaps.values()), confidence), strict=True))


def _measure_labels(
    rows: MeasuredRows, reference: Reference, agg: Agg, n_bootstrap: int, rng: np.random.RandomState
) -> dict[str, tuple[float, FloatArray]]:
    """Return the value of each metric of labels, and its values for ``n_bootstrap`` resamples.

    Resamples are drawn of the table of the cells, not of the rows.
    """
    has_true, table = rows.columns["y_true"] is not None, rows.table()
    draws = table.resampled(n_bootstrap, rng)
    drawn_tables = (replace(table, sums={"weights": own}) for own in draws.swapaxes(0, 1))
    tables = [table, *drawn_tables]
    measured = {}
    for name, spec in LABEL_METRICS.items():
        if has_true or not spec.uses_y_true:
            how = spec.kind, spec.rates, reference, agg, np.nan
            value, *drawn = (part.compare(*how) for part in tables)
            value = np.nan if table.undefined_by_decision(spec.rates) else value
            measured[name] = value, np.where(np.isnan(value), np.nan, drawn)
    if has_true and (reason := table.undefined_by_decision(["true_positive_rate"])):
        warn_user(f"Some metrics are undefined: {reason}.")
    return measured


def _measure_scores(
    rows: MeasuredRows,
    pos_label: ClassLabel,
    agg: Agg,
    n_bootstrap: int,
    rng: np.random.RandomState,
) -> dict[str, tuple[float, FloatArray]]:
    """Return the value of each metric of scores, and its values for ``n_bootstrap`` resamples.

    Each resample takes a pass over the rows. Without true labels, the metrics that need them are
    left out.
    """
    rows = rows.with_scores(rows.columns["y_score"])
    positive = None if rows.columns["y_true"] is None else rows.positive(pos_label)
    arguments = {"sensitive_features": rows.groups, "sample_weight": rows.weights, "agg": agg}
    values = {
        metric.__name__: metric(
            positive, rows.values, **arguments, **({"zero_division": np.nan} if needs_true else {})
        )
        for metric, needs_true in SCORE_METRICS.items()
        if positive is not None or not needs_true
    }
    draws = resampled_gaps(rows, positive, agg, n_bootstrap, rng)
    return dict(zip(values, zip(values.values(), draws.T, strict=True), strict=True))


def _read(
    people: Cohort,
    intersectional: bool,
    *,
    is_binned: bool = False,  # Dask collections: whether scores are binned, or only averaged
    **options: Any,
) -> MeasuredRows:
    """Read labels and scores for both reports.

    The values of the rows are the scores if there are no predictions, and outcomes otherwise: by
    true and predicted class, or by predicted class alone without true labels.
    """

    def summary(rows: LazyRows) -> WeightedRows:
        return rows.binned("y_score") if is_binned else rows.means("y_score")

    options["units"] = people.units
    if people.y_score is not None:
        options |= {"numbers": ("y_score",), "summary": summary}
    if people.y_pred is None:
        return score_rows(people, intersectional, labels=("y_true",), **options)
    counted: Counted = "classes" if people.y_true is not None else "predictions"
    options = {"counted": counted, **options}
    return outcome_rows(people, intersectional=intersectional, y_score=people.y_score, **options)


class Report(pd.DataFrame):
    """DataFrame that prints each value and its confidence interval as one column.

    The columns ``name``, ``name_low`` and ``name_high`` hold plain numbers, and are printed
    together as ``0.31 [0.28, 0.34]``.

    Examples
    --------
    >>> from skfair.metrics import group_report
    >>> report = group_report([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=["f", "f", "m", "m"])
    >>> isinstance(report, Report), float(report.loc["f", "selection_rate"])
    (True, 0.5)
    """

    @property
    def _constructor(self) -> type[Report]:
        # pandas asks for this class: copies and selections of columns print as reports, too.
        return Report

    def __getattr__(self, name: str) -> Any:  # type: ignore[misc]
        # pandas calls this for columns and for its own private names as well.
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            raise MissingAttribute(*error.args, name=name, obj=self) from None

    def compact(self, digits: int = 3) -> pd.DataFrame:
        """Return the report as it is printed, with each value and its interval as text.

        Parameters
        ----------
        digits : int, default=3
            Number of digits after the decimal point.

        Returns
        -------
        text : DataFrame of str
            The report as text, with one column per value.
        """
        text, names = {}, list(self.columns)
        intervals = [name for name in names if _has_interval(name, names)]
        ends = {f"{name}_{end}" for name in intervals for end in ("low", "high")}
        kept = [(place, name) for place, name in enumerate(names) if name not in ends]
        for place, name in kept:
            values = self.iloc[:, place]
            if name in intervals:
                columns = [values, self[f"{name}_low"], self[f"{name}_high"]]
                text[place] = [_interval_text(row, digits) for row in zip(*columns, strict=True)]
            elif values.dtype.kind != "f":
                text[place] = [" ".join(str(value).split()) for value in values]
            else:
                text[place] = [_number_text(v, 0 if name in _COUNTS else digits) for v in values]
            rate = str(name).removesuffix("_difference")
            if self.attrs.get("is_pooled") and rate in _REPORT_RATES:
                is_whole = self.index.get_level_values(-1) == "overall"
                marked = zip(text[place], is_whole | values.isna(), strict=True)
                text[place] = [own if is_exact else f"~{own}" for own, is_exact in marked]
        return pd.DataFrame(text, index=self.index).set_axis([name for _, name in kept], axis=1)

    def __repr__(self) -> str:
        return str(self.compact().to_string())

    def _repr_html_(self) -> str:
        return str(self.to_html())

    def to_html(self, *args: Any, **kwargs: Any) -> Any:
        """Render the compact form as an HTML table, with the arguments of pandas."""
        return self.compact().to_html(*args, **kwargs)


def _has_interval(name: object, names: list[Any]) -> bool:
    """Whether both ends of the interval of a column are there, and each name occurs only once."""
    columns = [name, f"{name}_low", f"{name}_high"]
    return isinstance(name, str) and all(names.count(column) == 1 for column in columns)


def _number_text(value: float, digits: int) -> str:
    return "-" if pd.isna(value) else f"{value:.{digits}f}"


def _interval_text(row: tuple[float, ...], digits: int) -> str:
    value, low, high = (_number_text(number, digits) for number in row)
    return value if "-" in (value, low) else f"{value} [{low}, {high}]"


class ListedCells:
    """The rows of a report: cells by stratum, and below the cells of each stratum all of it.

    Internally the entries are numbered with all cells first, and then the strata.
    """

    def __init__(self, groups: ComparedGroups) -> None:
        self._groups = groups
        # The stratum of each entry, the entry of each row of the report, and the row of each entry
        self._stratum = np.append(groups.stratum_of, np.arange(groups.stratum_of.max() + 1))
        self._order = np.argsort(self._stratum, kind="stable")
        self._place = np.argsort(self._order)
        self.places = self._place[: groups.stratum_of.size]  # the row of each cell

    def with_overall(self, of_cells: FloatArray, overall: FloatArray | None = None) -> FloatArray:
        """Return numbers of the cells and of the strata, in the order of the report.

        If ``overall``, the numbers of the strata, is None, they are the sums over their cells.
        """
        if overall is None:
            own = slice(self._groups.cells.offsets[1])  # the first attribute holds each row once
            overall = np.zeros((self._stratum.max() + 1, *of_cells.shape[1:]))
            np.add.at(overall, self._groups.stratum_of[own], of_cells[own])
        return np.concatenate([of_cells, overall])[self._order]

    def rows(self) -> list[IntArray]:
        """Return the numbers of the sample's rows behind each row of the report."""
        strata = self._groups.stratum_of[self._groups.cells.codes[0]]
        rows = self._groups.rows_of_cells()
        rows += [np.flatnonzero(strata == stratum) for stratum in range(strata.max() + 1)]
        return [rows[i] for i in self._order]

    def compared_with(self, reference: Any) -> tuple[IntArray, IntArray]:
        """Return the rows of the report that are compared, and for each its reference row."""
        first, second = self._groups.pairs_with(reference)
        return self._place[first], self._place[second]

    def names(self) -> pd.Index:
        """Return the names of the rows of the report."""
        strata = self._groups.strata
        of_cells = [self._groups.groups.names[g] for g in self._groups.group_of]
        names = of_cells + ["overall"] * (self._stratum.size - len(of_cells))
        ordered = [names[i] for i in self._order]
        index: pd.Index = pd.Index(ordered)
        if strata is not None:
            keys = [strata[s] for s in self._stratum[self._order]]
            index = pd.MultiIndex.from_arrays([keys, ordered], names=["stratum", "group"])
        return index


def with_differences(
    columns: dict[str, FloatArray],
    limits: dict[str, FloatArray],
    listed: ListedCells,
    reference: Any,
    pairs: Mapping[str, Pairs],  # the comparisons of the columns that are rates
    confidence: float,
) -> dict[str, FloatArray]:
    """Return all columns of a report: values, ends of intervals, and differences.

    Columns ``..._difference`` are added for every value if ``reference`` names a group. They are
    NaN for the reference group and for whole strata. Intervals of differences are those of
    ``pairs``, or are computed from the intervals of both values.
    """
    if not names_group(reference):
        return {**columns, **limits}
    rows, places = listed.compared_with(reference)
    columns, limits = columns.copy(), limits.copy()
    for name in [n for n, of in columns.items() if n not in _COUNTS and of.dtype != object]:
        values, added = columns[name], f"{name}_difference"
        against, is_compared = np.arange(values.size), np.zeros(values.size, bool)
        against[rows], is_compared[rows] = places, True
        columns[added] = np.where(is_compared, values - values[against], np.nan)
        if f"{name}_low" in limits:
            ends = limits[f"{name}_low"], limits[f"{name}_high"]
            low, high = difference_interval(values, *ends, against)
            if name in pairs:
                low[rows], high[rows] = pairs[name].ends("melded", False, 0.5 - confidence / 2)
            is_known = is_compared & np.isfinite(columns[added])
            limits[f"{added}_low"] = np.where(is_known, low, np.nan)
            limits[f"{added}_high"] = np.where(is_known, high, np.nan)
    return {**columns, **limits}
