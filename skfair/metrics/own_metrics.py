"""Any metric of scikit-learn by group, with percentile intervals: columns of ``group_report``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from inspect import signature
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state

from skfair._typing import ClassLabel, ColumnLike, FloatArray, IntArray, Seed
from skfair.utils.validation import check_positive
from skfair.utils.warn import hidden

OwnMetrics: TypeAlias = Mapping[str, Callable[..., float]]
# Resamples have at most so many rows: a metric of a million takes minutes to compute 200 times.
_MOST_ROWS = 20_000
# A metric whose second argument has one of these names is given the scores.
_SCORE_NAMES = {"y_score", "y_proba", "y_prob"}


class OwnRows(NamedTuple):
    """What metrics of one's own are computed from; scores and weights may be missing."""

    y_true: FloatArray
    y_pred: FloatArray
    y_score: FloatArray | None
    weights: FloatArray | None

    @classmethod
    def read(
        cls,
        y_true: ColumnLike,
        y_pred: ColumnLike,
        y_score: ColumnLike | None,
        weights: FloatArray | None,
    ) -> OwnRows:
        """Make arrays of what the user passed."""
        scores = None if y_score is None else np.asarray(y_score)
        return cls(np.asarray(y_true), np.asarray(y_pred), scores, weights)


class OwnIntervals(NamedTuple):
    """How the intervals are found: by how many resamples; none without."""

    n_resamples: int
    confidence: float
    random_state: Seed


def check_own(metrics: OwnMetrics, *, taken: Collection[str], is_lazy: bool) -> None:
    """Raise if these are no functions, have names of other columns, or the rows are elsewhere."""
    if not isinstance(metrics, Mapping) or not all(map(callable, metrics.values())):
        raise TypeError(
            f"metrics must be a dict of functions metric(y_true, y_pred), got {metrics!r}."
        )
    if is_lazy:
        raise TypeError(
            "metrics= reads single rows, and these are in Dask collections. compute() them."
        )
    for name in metrics:
        if name in taken:
            raise ValueError(f"metrics names {name!r}, a column of the report. Choose another.")


def measure_own(
    metrics: OwnMetrics, rows: OwnRows, cells: list[IntArray], intervals: OwnIntervals
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return each metric for the given cells of rows, and the ends of its intervals."""
    values, limits = {}, {}
    rng = check_random_state(intervals.random_state)
    for name, metric in metrics.items():
        of_scores = takes_scores(metric)
        if of_scores and rows.y_score is None:
            raise ValueError(f"The metric {name!r} is computed from scores. Pass y_score.")
        predicted = rows.y_score if of_scores else rows.y_pred
        of_cells = [value_of(metric, rows, predicted, cell) for cell in cells]
        is_number = all(isinstance(value, float) for value in of_cells)
        values[name] = np.empty(len(cells), np.float64 if is_number else object)
        values[name][:] = of_cells
        if intervals.n_resamples and is_number:
            draws = [
                [
                    value_of(metric, rows, predicted, picked)
                    for picked in _resampled(cell, rng, intervals)
                ]
                for cell in cells
            ]
            tail = 50 * (1 - intervals.confidence)
            with hidden("All-NaN", RuntimeWarning):
                ends = np.nanpercentile(draws, [tail, 100 - tail], axis=1)
            # Errors fall with the root of the number of rows: those of fewer are scaled down.
            shares = np.sqrt([min(_MOST_ROWS / max(cell.size, 1), 1.0) for cell in cells])
            ends = np.where(shares < 1, values[name] + shares * (ends - values[name]), ends)
            limits[f"{name}_low"], limits[f"{name}_high"] = ends
    return values, limits


def takes_scores(metric: Callable[..., float]) -> bool:
    """Whether the second argument of a metric is a score, by its name."""
    try:
        names = list(signature(metric).parameters)
    except (TypeError, ValueError):  # written in C
        return False
    return len(names) > 1 and names[1] in _SCORE_NAMES


def takes_pos_label(metric: Callable[..., float], **bound: object) -> bool:
    """Whether a metric, some of whose options are bound, is to be told the positive class."""
    try:
        parameters = signature(metric).parameters
    except (TypeError, ValueError):  # written in C
        return False
    bound |= getattr(metric, "keywords", {})
    is_of_two = bound.get("average", "binary") == "binary"
    return is_of_two and "pos_label" in parameters and "pos_label" not in bound


def with_positive(
    metric: Callable[..., float], pos_label: ClassLabel, y_true: ColumnLike
) -> Callable[..., float]:
    """Return a metric that knows the positive class, if it is of one; labels may say it as well."""
    if not takes_pos_label(metric):
        return metric
    if pos_label is None:
        check_positive(y_true, "y_true", None)
        return metric
    return partial(metric, pos_label=pos_label)


def _resampled(
    cell: IntArray, rng: np.random.RandomState, intervals: OwnIntervals
) -> Iterator[IntArray]:
    """Yield rows that are drawn from a cell with replacement."""
    n_drawn = min(cell.size, _MOST_ROWS)
    for _ in range(intervals.n_resamples):
        yield cell[rng.randint(cell.size, size=n_drawn)] if cell.size else cell


def value_of(
    metric: Callable[..., float], rows: OwnRows, predicted: FloatArray | None, cell: IntArray
) -> Any:
    """Return the metric of some rows as a float, or as the object that it is.

    NaN where it is undefined.
    """
    if predicted is None or not cell.size:
        return np.nan
    weights = {} if rows.weights is None else {"sample_weight": rows.weights[cell]}
    if weights and not weights["sample_weight"].any():  # which scikit-learn refuses
        return np.nan
    with hidden(".*", UndefinedMetricWarning):
        value = metric(rows.y_true[cell], predicted[cell], **weights)
    return value if np.ndim(value) or isinstance(value, Mapping) else float(value)
