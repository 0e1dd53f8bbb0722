"""Reports for an auditor: rates per group with intervals, and all gaps with standard errors.

Both are pandas DataFrames that print compactly (``0.31 [0.28, 0.34]``) while their columns hold the
plain numbers, for sorting, saving and plotting.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.utils import check_random_state

from skfair._typing import FloatArray
from skfair.blocks.partitions import is_lazy
from skfair.blocks.weighted_rows import LazyRows
from skfair.metrics.labels import (
    LABEL_METRICS,
    RATES,
    LabelTable,
    ZeroDivision,
    compare,
    label_table,
    rates_of,
)
from skfair.metrics.pairs import Agg
from skfair.metrics.scores import (
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
    scored_rows,
    statistical_parity_gap,
    wasserstein_gap,
)
from skfair.utils.validation import check_number, check_probability, check_scores, check_weights

_REPORT_RATES = (
    "base_rate",
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "accuracy",
)
_SCORE_METRICS = (
    statistical_parity_gap,
    wasserstein_gap,
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
)
_NEED_Y_TRUE = ("inter_group_pairwise_gap", "intra_group_pairwise_gap")


class Report(pd.DataFrame):
    """A DataFrame that prints ``name``, ``name_low`` and ``name_high`` as one column.

    Examples
    --------
    >>> from skfair.metrics import group_report
    >>> report = group_report([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=["f", "f", "m", "m"])
    >>> isinstance(report, Report), float(report.loc["f", "selection_rate"])
    (True, 0.5)
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        # Slices and computed frames are plain DataFrames: only the report prints as a report.
        return pd.DataFrame

    def compact(self, digits: int = 3) -> pd.DataFrame:
        """Return the report as text: each value with its interval, as it is printed.

        Parameters
        ----------
        digits : int, default=3
            Digits after the decimal point.

        Returns
        -------
        text : DataFrame of str
            One column per value.
        """
        text = {}
        for name in self.columns:
            if name.endswith(("_low", "_high")) and name.rsplit("_", 1)[0] in self.columns:
                continue
            if f"{name}_low" in self.columns:
                columns = [self[name], self[f"{name}_low"], self[f"{name}_high"]]
                text[name] = [_interval_text(row, digits) for row in zip(*columns, strict=True)]
            elif self[name].dtype.kind == "f" and name != "n":
                text[name] = [_number_text(value, digits) for value in self[name]]
            else:
                text[name] = [f"{value:g}" if name == "n" else str(value) for value in self[name]]
        return pd.DataFrame(text, index=self.index)

    def __repr__(self) -> str:
        return str(self.compact().to_string())

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self, *args: Any, **kwargs: Any) -> Any:
        """Render the compact form as an HTML table; arguments as in pandas."""
        return self.compact().to_html(*args, **kwargs)


def _number_text(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _interval_text(row: tuple[float, ...], digits: int) -> str:
    value, low, high = row
    if np.isnan(value) or np.isnan(low):
        return _number_text(value, digits)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def group_report(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    y_score: Any = None,
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
    interval: Literal["wilson", "bootstrap"] | None = "wilson",
    confidence: float = 0.95,
    n_bootstrap: int = 500,
    random_state: Any = None,
) -> Report:
    r"""Table of rates per group, with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row; several columns are several attributes.
    y_score : array-like of shape (n_samples,), default=None
        Scores; adds the column ``mean_score``.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. Intervals then use the effective number of rows,
        :math:`(\sum w)^2 / \sum w^2` per group.
    intersectional : bool, default=True
        Whether several attributes are crossed, or listed one after the other.
    pos_label : label, default=1
        The class that counts as positive.
    interval : {"wilson", "bootstrap"} or None, default="wilson"
        How the intervals are found: Wilson's formula for a proportion, percentiles of resampled
        tables, or not at all.
    confidence : float, default=0.95
        Coverage of the intervals.
    n_bootstrap : int, default=500
        Number of resampled tables.
    random_state : int, RandomState instance or None, default=None
        Seed of the bootstrap.

    Returns
    -------
    report : Report
        A DataFrame with one row per group and a last row ``overall``. Columns: ``n``,
        ``base_rate``, ``selection_rate``, ``true_positive_rate``, ``false_positive_rate``,
        ``positive_predictive_value``, ``accuracy``, ``mean_score``, and ``..._low``, ``..._high``
        for each rate. A rate without rows to compute it from is NaN, printed as ``-``.

    Examples
    --------
    >>> from skfair.metrics import group_report
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> report = group_report(y_true, y_pred, sensitive_features=sex, interval=None)
    >>> print(report[["n", "selection_rate", "accuracy"]])
               n  selection_rate  accuracy
    f        4.0           0.750     0.750
    m        4.0           0.500     0.500
    overall  8.0           0.625     0.625
    """
    check_probability(confidence, "confidence")
    check_number(n_bootstrap, "n_bootstrap", low=0, kind=Integral)
    if y_true is None:
        raise ValueError("group_report needs y_true, got None.")
    rows = _report_rows(
        y_true, y_pred, y_score, sensitive_features, sample_weight, intersectional, is_binned=False
    )
    table = label_table(
        rows.y_true,
        rows.y_pred,
        rows.groups,
        sample_weight=rows.weights,
        intersectional=intersectional,
        pos_label=pos_label,
    )
    counts = np.concatenate([table.counts, table.overall[None]])
    groups = table.groups
    weights = check_weights(rows.weights, groups.n_samples)
    names = [*groups.names, "overall"]
    n_rows = groups.counts[: groups.offsets[1]].sum()
    columns: dict[str, Any] = {"n": np.append(groups.counts, n_rows).astype(float)}
    effective = _effective(counts, groups, weights, rows.squares)
    draws = None
    if interval == "bootstrap":
        draws = _resampled(effective, n_bootstrap, random_state)
    elif interval not in ("wilson", None):
        raise ValueError(f"interval must be 'wilson', 'bootstrap' or None, got {interval!r}.")
    tail = (1 - confidence) / 2
    limits: dict[str, Any] = {}
    for rate in _REPORT_RATES:
        values = columns[rate] = rates_of(counts, rate)
        if interval == "wilson":
            sizes = (effective * np.array(RATES[rate][1])).sum(axis=(-2, -1))
            low, high = _wilson(values, sizes, confidence)
        elif draws is not None:
            low, high = _quantiles(rates_of(draws, rate), tail)
        else:
            continue
        limits[f"{rate}_low"], limits[f"{rate}_high"] = low, high
    if rows.y_score is not None:
        scores = check_scores(rows.y_score, "y_score", groups.n_samples)
        weighted = scores if weights is None else scores * weights
        total = groups.sums(weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(total > 0, groups.sums(weighted) / total, np.nan)
        columns["mean_score"] = np.append(means, np.average(scores, weights=weights))
    return Report({**columns, **limits}, index=pd.Index(names))


def fairness_report(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    y_score: Any = None,
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
    agg: Agg = "worst",
    confidence: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = None,
) -> Report:
    """Table of every gap and ratio, with standard errors.

    The standard error is that of resampling rows within each group. The worst gap of several groups
    is biased upwards in small samples: groups that are alike still differ by chance, see
    :func:`noise_floor`. Rows of Dask collections are resampled by how many have which labels and
    score.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels; None leaves out what needs them.
    y_pred : array-like of shape (n_samples,) or None
        Predicted labels; None leaves out the metrics of labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row; several columns are several attributes.
    y_score : array-like of shape (n_samples,), default=None
        Scores; adds the metrics of scores.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    intersectional : bool, default=True
        Whether several attributes are crossed, or compared one by one.
    pos_label : label, default=1
        The class that counts as positive.
    agg : {"worst", "mean"}, default="worst"
        Report the worst pair of groups or the mean over all pairs.
    confidence : float, default=0.95
        Coverage of the percentile intervals.
    n_bootstrap : int, default=200
        Number of resamples; 0 leaves out errors and intervals. Metrics of labels resample a small
        table; metrics of scores need a pass over the rows for each resample.
    random_state : int, RandomState instance or None, default=None
        Seed of the resampling.

    Returns
    -------
    report : Report
        A DataFrame with one row per metric and the columns ``value``, ``standard_error``,
        ``value_low`` and ``value_high``; NaN (printed ``-``) where the metric is undefined.

    Examples
    --------
    >>> from skfair.metrics import fairness_report
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> report = fairness_report(y_true, y_pred, sensitive_features=sex, random_state=0)
    >>> float(report.loc["demographic_parity_difference", "value"])
    0.25
    """
    check_probability(confidence, "confidence")
    check_number(n_bootstrap, "n_bootstrap", low=0, kind=Integral)
    if y_pred is None and y_score is None:
        raise ValueError("fairness_report needs y_pred, y_score or both; got neither.")
    rng = check_random_state(random_state)
    y_true, y_pred, y_score, groups, weights, squares, counts = _report_rows(
        y_true, y_pred, y_score, sensitive_features, sample_weight, intersectional, is_binned=True
    )
    shared = {"sensitive_features": groups, "intersectional": intersectional}
    values: dict[str, float] = {}
    draws: dict[str, FloatArray] = {}
    if y_pred is not None:
        table = label_table(y_true, y_pred, sample_weight=weights, pos_label=pos_label, **shared)
        checked = check_weights(weights, table.groups.n_samples)
        effective = _effective(table.counts, table.groups, checked, squares)
        resampled = _resampled(effective, n_bootstrap, rng)
        for name, spec in LABEL_METRICS.items():
            if y_true is None and spec.rates != ("selection_rate",):
                continue
            values[name] = compare(table, name, agg=agg, zero_division=np.nan)
            draws[name] = np.array(
                [_compare_counts(draw, table, name, agg, np.nan) for draw in resampled]
            )
    if y_score is not None:
        scored = scored_rows(y_score, groups, weights, intersectional, like=y_true)
        base = np.ones(scored.scores.size) if scored.weights is None else scored.weights
        codes = scored.groups.codes[0]
        picks = [base * _resample_counts(codes, rng, counts) for _ in range(n_bootstrap)]
        for metric in _SCORE_METRICS:
            name = metric.__name__
            if name in _NEED_Y_TRUE and y_true is None:
                continue
            extra: dict[str, Any] = {"agg": agg, **shared}
            if name in _NEED_Y_TRUE:
                extra |= {"pos_label": pos_label, "zero_division": np.nan}
            values[name] = metric(y_true, y_score, sample_weight=weights, **extra)
            draws[name] = np.array(
                [metric(y_true, y_score, sample_weight=pick, **extra) for pick in picks]
            )
    report = {"value": pd.Series(values)}
    if n_bootstrap:
        tail = (1 - confidence) / 2
        limits = {name: _quantiles(column, tail) for name, column in draws.items()}
        report["standard_error"] = pd.Series({n: _spread(d) for n, d in draws.items()})
        report["value_low"] = pd.Series({n: float(low) for n, (low, _) in limits.items()})
        report["value_high"] = pd.Series({n: float(high) for n, (_, high) in limits.items()})
    return Report(report)


class _ReportRows(NamedTuple):
    """Arguments of a report, and for weighted rows that stand for others what those add up to."""

    y_true: Any
    y_pred: Any
    y_score: Any
    groups: Any
    weights: Any
    squares: FloatArray | None = None  # sums of squared weights
    counts: NDArray[np.int64] | None = None


def _report_rows(
    y_true: Any,
    y_pred: Any,
    y_score: Any,
    sensitive_features: Any,
    sample_weight: Any,
    intersectional: bool,
    *,
    is_binned: bool,
) -> _ReportRows:
    """Return the rows as they are, or the few that stand for those of Dask collections."""
    if not is_lazy(y_true, y_pred, y_score, sensitive_features, sample_weight):
        return _ReportRows(y_true, y_pred, y_score, sensitive_features, sample_weight)
    lazy = LazyRows(
        {"y_true": y_true, "y_pred": y_pred},
        {} if y_score is None else {"y_score": y_score},
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        intersectional=intersectional,
    )
    if y_score is None:
        few = lazy.kinds()
    else:
        few = lazy.binned("y_score") if is_binned else lazy.means("y_score")
    true, predicted, scores = (few.columns.get(name) for name in ("y_true", "y_pred", "y_score"))
    return _ReportRows(true, predicted, scores, few.groups, few.weights, few.squares, few.counts)


def _compare_counts(
    counts: FloatArray, table: LabelTable, name: str, agg: Agg, zero_division: ZeroDivision
) -> float:
    overall = counts[: table.groups.offsets[1]].sum(axis=0)
    resampled = LabelTable(counts, overall, table.groups)
    return compare(resampled, name, agg=agg, zero_division=zero_division)


def _effective(
    counts: FloatArray,
    groups: Any,
    weights: FloatArray | None,
    squared: FloatArray | None = None,
) -> FloatArray:
    """Scale weighted counts so that each group adds up to its effective number of rows."""
    if weights is None:
        return counts
    squared = weights**2 if squared is None else squared
    total, squares = groups.sums(weights), groups.sums(squared)
    if counts.shape[0] > groups.n_groups:  # the last table is that of all rows
        total = np.append(total, weights.sum())
        squares = np.append(squares, squared.sum())
    return np.asarray(counts * (total / np.where(squares > 0, squares, 1.0))[:, None, None])


def _resampled(counts: FloatArray, n_bootstrap: int, random_state: Any) -> FloatArray:
    """Draw tables as if the rows of each group had been resampled: (n_bootstrap, ..., 2, 2)."""
    rng = check_random_state(random_state)
    draws = np.zeros((n_bootstrap, *counts.shape))
    for g, cells in enumerate(counts.reshape(-1, 4)):
        size = cells.sum()
        if size > 0:
            drawn = rng.multinomial(max(1, round(size)), cells / size, size=n_bootstrap)
            draws[:, g] = drawn.reshape(n_bootstrap, 2, 2)
    return draws


def _resample_counts(
    codes: NDArray[np.int64], rng: Any, counts: NDArray[np.int64] | None = None
) -> FloatArray:
    """Draw how often each row is picked when every group is resampled with replacement.

    A row that stands for several (``counts``) gets the mean of how often they are.
    """
    picks = np.zeros(codes.size)
    for g in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == g)
        if counts is not None and rows.size:
            behind = counts[rows]
            total = int(behind.sum())
            picks[rows] = rng.multinomial(total, behind / total) / behind
        elif rows.size:
            picks[rows] = np.bincount(rng.randint(rows.size, size=rows.size), minlength=rows.size)
    return picks


def _wilson(
    rates: FloatArray, rows: FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval of a proportion; NaN without rows."""
    z = stats.norm.ppf(0.5 + confidence / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1 + z**2 / rows
        centre = (rates + z**2 / (2 * rows)) / scale
        half = z / scale * np.sqrt(rates * (1 - rates) / rows + (z / (2 * rows)) ** 2)
    # 0 and 1 come out as 1e-17 and 1 - 1e-16.
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


def _quantiles(draws: FloatArray, tail: float) -> tuple[Any, Any]:
    """Percentiles along the first axis, ignoring undefined resamples."""
    if not np.isfinite(draws).any():
        missing = np.full(draws.shape[1:], np.nan)
        return missing, missing
    undefined = ~np.isfinite(draws).any(axis=0)
    filled = np.where(undefined, 0.0, draws)
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def _spread(draws: FloatArray) -> float:
    finite = draws[np.isfinite(draws)]
    return float(finite.std(ddof=1)) if finite.size > 1 else np.nan
