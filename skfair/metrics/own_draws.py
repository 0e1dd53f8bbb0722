"""Resamples of metrics of one's own: for intervals in reports, and for tests of limits.

``resampled`` is the one place where such a metric is resampled. A resample draws the units of the
whole sample with replacement, each with all of its rows (without units, each row is its own unit).
Every cell is then measured with the rows that the resample gives it. So a unit that lies in several
cells is drawn for all of them, and differences between cells have the right variance.

- If the labels are few and the metric takes ``sample_weight``, a resample is a table of weights by
  true and predicted label (``_tables``), and no row is visited.
- Other metrics are called with the rows of each resample (``_of_rows``).

``measure_own`` turns the resamples into intervals, and ``evidence_of_own`` into the p-values of
``disparity_test``. Metrics of two classes that are declared rates, such as the F1 score, are not
resampled: they have the intervals and tests of rates. Rare labels among few rows need care: a group
of ten rows without an error has an accuracy of 1 in each resample of its rows. If there are two
labels, half a row of each prediction is therefore added to each true class that a cell has, as
``GroupTable.resampled`` does for rates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from skfair._typing import BoolArray, ClassLabel, FloatArray, IntArray, Seed
from skfair.groups.compared_groups import Reference, ratios
from skfair.groups.declared_rates import rate_named
from skfair.groups.levels import number_tuples
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.outcomes import outcomes_of
from skfair.groups.rates import CellMeans
from skfair.groups.row_units import RowUnits, share_of_few
from skfair.metrics.evidence import Evidence
from skfair.metrics.own_metrics import (
    GroupMetric,
    OwnMetrics,
    OwnRows,
    parameters_of,
    positive_of,
    rate_of_metric,
    takes_scores,
    value_of,
    with_positive,
)
from skfair.utils.factorize import factorize
from skfair.utils.warn import hidden, warn_user

# Rows of a cell in a resample are thinned to about this many, because a metric of a million rows
# takes minutes to compute 200 times. The resampled values are then scaled to the size of the cell.
_MOST_ROWS = 20_000
# With more labels, the tables of true and predicted labels are larger than most samples.
_MOST_LABELS = 10
# Tables of several resamples are drawn at once, as long as they have about this many numbers.
_BLOCK = 10**6
# So many resamples are expected beyond the bound of a test. With half as many, the error
# probability of a test at 5% varies by 1 point between seeds, and with these by 0.7 points.
_BEYOND = 50
# Values of a metric that differ by this share of their size are equal: sums of a million numbers of
# double precision have smaller errors, and no metric of fewer than 10**9 rows has smaller steps.
_ROUNDING = 1e-9


def resampled(
    metric: Callable[..., float],
    rows: OwnRows,
    predicted: FloatArray,  # the second argument of the metric, for all rows
    cells: list[IntArray],  # the row numbers of each cell
    values: FloatArray,  # (n_cells,): the metric of each cell
    units: RowUnits | None,
    n_resamples: int,
    rng: np.random.RandomState,
) -> FloatArray:
    """Return the metric of each cell in each resample, (n_resamples, n_cells); NaN if undefined."""
    owners, n_units = np.arange(rows.y_true.size), rows.y_true.size
    if units is not None:
        owners, n_units = units.codes, units.n_units
    # Few units show little of how they vary, so fewer are drawn than a cell has (share_of_few).
    kept = np.ones(len(cells))
    for i, cell in enumerate(cells):
        sizes = np.bincount(owners[cell])
        if units is not None and sizes.max(initial=0) > 1:
            kish = cell.size**2 / (sizes**2).sum()
            kept[i] = float(share_of_few(kish, kish))
    takes_weights = "sample_weight" in parameters_of(metric)
    labels = None if takes_scores(metric) or not takes_weights else _labels(rows.y_true, predicted)
    if labels is not None:
        (true, guess), levels = labels
        kinds = true * len(levels) + guess
        tables = _tables(kinds, len(levels), rows, cells, owners, n_units, kept, n_resamples, rng)
        return _of_tables(metric, levels, tables.reshape(-1, tables.shape[-1])).reshape(
            tables.shape[:2]
        )
    shares = np.array([min(_MOST_ROWS / max(cell.size, 1), 1.0) for cell in cells])
    draws = np.full((n_resamples, len(cells)), np.nan)
    for draw in draws:
        picks = np.bincount(rng.randint(n_units, size=n_units), minlength=n_units)
        for i, cell in enumerate(cells):
            part = kept[i] * shares[i]
            own = picks if part == 1 else rng.binomial(picks, part)
            draw[i] = value_or_nan(metric, rows, predicted, np.repeat(cell, own[owners[cell]]))
    # A resample of fewer rows than the cell has varies too much, by the root of the share of its
    # rows, so it is shrunk by that factor towards the value.
    return np.where(shares < 1, values + np.sqrt(shares) * (draws - values), draws)


def _labels(
    true: FloatArray, predicted: FloatArray
) -> tuple[tuple[IntArray, IntArray], list[Any]] | None:
    """Return the codes of both columns of labels, and the labels; None if these are many."""
    # A frame of one column is a column.
    true, predicted = (y[:, 0] if y.shape[1:] == (1,) else y for y in (true, predicted))
    if true.ndim > 1 or predicted.ndim > 1:
        return None
    columns = factorize(true), factorize(predicted)
    levels = list(dict.fromkeys([level for column in columns for level in column.levels]))
    if len(levels) > _MOST_LABELS:
        return None
    places = {level: i for i, level in enumerate(levels)}
    true_codes, codes = (
        np.array([places[level] for level in column.levels], np.int64)[column.codes]
        for column in columns
    )
    return (true_codes, codes), levels


def _tables(
    kinds: IntArray,  # (n_rows,): true and predicted label of each row, as one number
    n_labels: int,
    rows: OwnRows,
    cells: list[IntArray],
    owners: IntArray,  # (n_rows,): the unit of each row
    n_units: int,
    kept: FloatArray,  # (n_cells,): the share of the drawn units that are kept
    n_resamples: int,
    rng: np.random.RandomState,
) -> FloatArray:
    """Draw the weights of each cell by kind of row: (n_resamples, n_cells, n_labels**2)."""
    n_kinds, n_rows = n_labels**2, kinds.size
    every, sizes = np.concatenate(cells), np.array([cell.size for cell in cells])
    columns = np.repeat(np.arange(len(cells)), sizes) * n_kinds + kinds[every]
    each = np.ones(every.size) if rows.weights is None else rows.weights[every]
    shape = n_rows, len(cells) * n_kinds
    of_rows: Any = sparse.csr_array((each, (every, columns)), shape=shape)
    n_of_row, chances = np.diff(of_rows.indptr), None
    if n_units == n_rows and rows.weights is None and (n_of_row == n_of_row[0]).all():
        # Rows of the same kind and cells are drawn together.
        places = of_rows.indices.reshape(n_rows, -1).T.astype(np.int64)
        alike, kinds_of_rows = number_tuples(list(places), np.full(len(places), shape[1]))
        at = np.repeat(np.arange(len(kinds_of_rows)), kinds_of_rows.shape[1])
        added: Any = sparse.csr_array((np.ones(at.size), (at, kinds_of_rows.ravel())))
        added.resize((len(kinds_of_rows), shape[1]))
        chances = np.bincount(alike) / n_rows
    else:
        added = sparse.csr_array((np.ones(n_rows), (owners, np.arange(n_rows)))) @ of_rows
    tables = np.empty((n_resamples, len(cells), n_kinds))
    by_cell = []  # the units of each cell, and what they add to its table
    for i in range(len(cells)):
        of_units = added[:, i * n_kinds : (i + 1) * n_kinds].tocsr()
        members = np.flatnonzero(np.diff(of_units.indptr))
        by_cell.append((members, of_units[members].T))
    for part in np.array_split(tables, max(1, n_resamples * added.shape[0] // _BLOCK)):
        if chances is not None:
            picks = rng.multinomial(n_rows, chances, size=len(part))
        else:
            drawn = (rng.randint(n_units, size=n_units) for _ in range(len(part)))
            picks = np.array([np.bincount(own, minlength=added.shape[0]) for own in drawn])
        for i, (members, of_cell) in enumerate(by_cell):
            own = picks[:, members]
            own = own if kept[i] == 1 else rng.binomial(own, kept[i])
            part[:, i] = (of_cell @ own.T).T
    if n_labels == 2:  # half a row, or a unit of usual weight, of each prediction, see the top
        total = np.asarray(of_rows.sum(axis=0)).reshape(len(cells), 2, 2)
        n_owners = [max(np.unique(owners[cell]).size, 1) for cell in cells]
        unit = (total.sum(axis=(1, 2)) / n_owners)[:, None, None] * np.ones((1, 2, 2))
        unit *= total.sum(axis=2, keepdims=True) > 0
        tables += (rng.poisson(0.5, (n_resamples, *unit.shape)) * unit).reshape(tables.shape)
    return tables


def _of_tables(metric: Callable[..., float], levels: list[Any], tables: FloatArray) -> FloatArray:
    """Return the metric of tables of weights by true and predicted label, (n_tables, n_kinds)."""
    array = np.array(levels)
    true, predicted = np.repeat(array, len(array)), np.tile(array, len(array))
    few, places = np.unique(tables, axis=0, return_inverse=True)
    numbers = [
        value_or_nan(
            metric, OwnRows(true, predicted, None, table), predicted, np.flatnonzero(table)
        )
        for table in few
    ]
    return np.array(numbers)[places.ravel()]


def has_spread(draws: FloatArray) -> BoolArray:
    """Return whether the resamples of each cell differ by more than rounding.

    An area under the curve of 1 is 1 in all resamples, some of which are rounded to less.
    """
    with hidden("All-NaN", RuntimeWarning):
        low, high = np.nanmin(draws, axis=0), np.nanmax(draws, axis=0)
    spread: BoolArray = high - low > _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    return spread


def value_or_nan(
    metric: Callable[..., float], rows: OwnRows, predicted: FloatArray, own: IntArray
) -> float:
    """Return the metric of a resample; NaN if it cannot be computed, such as of a single class."""
    try:
        return float(value_of(metric, rows, predicted, own))
    except ValueError:
        return np.nan


def measure_own(
    metrics: OwnMetrics,
    rows: OwnRows,
    cells: list[IntArray],  # the row numbers of each cell
    units: RowUnits | None,
    method: Literal["wilson", "bootstrap"] | None,  # of the intervals; None for none
    n_resamples: int,
    confidence: float,
    random_state: Seed,
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the value of each metric in each cell, and the ends of its intervals.

    The ends are named ``..._low`` and ``..._high``. Metrics that are declared rates have Wilson's
    intervals with ``method="wilson"``. All others are percentiles of resamples. A metric that does
    not return a number has no interval.
    """
    values, limits = {}, {}
    rng = check_random_state(random_state)
    for name, metric in metrics.items():
        predicted = np.asarray(rows.y_score) if takes_scores(metric) else rows.y_pred
        labels = None if takes_scores(metric) else predicted
        rate, positive = rate_of_metric(metric), positive_of(metric, rows.pos_label)
        metric = with_positive(metric, rows.pos_label, rows.y_true, labels)
        of_cells = [value_of(metric, rows, predicted, cell) for cell in cells]
        is_number = all(isinstance(value, float) for value in of_cells)
        values[name] = np.empty(len(cells), np.float64 if is_number else object)
        values[name][:] = of_cells
        if method == "wilson" and rate:
            sums = _means_of_rate(rate, rows, positive, cells, units)
            limits[f"{name}_low"], limits[f"{name}_high"] = sums.interval(confidence)
        elif method and n_resamples and is_number:
            given = metric, rows, predicted, cells, values[name], units, n_resamples, rng
            draws = np.where(np.isnan(values[name]), np.nan, resampled(*given))
            tail = 50 * (1 - confidence)
            with hidden("All-NaN", RuntimeWarning):
                ends = np.nanpercentile(draws, [tail, 100 - tail], axis=0)
            limits[f"{name}_low"], limits[f"{name}_high"] = ends
    return values, limits


def _means_of_rate(
    rate: str,
    rows: OwnRows,
    pos_label: ClassLabel,
    cells: list[IntArray],  # a row may lie in several
    units: RowUnits | None,
) -> CellMeans:
    """Return a declared rate of each cell, like ``GroupTable.means``."""
    every = np.concatenate(cells)
    codes = np.repeat(np.arange(len(cells)), [cell.size for cell in cells])
    outcomes = outcomes_of(rows.y_true, rows.y_pred, pos_label)[every]
    weights = None if rows.weights is None else rows.weights[every]
    of_rows = None if units is None else units.taken(every)
    return CellMeans.of_outcomes(
        rate_named(rate), outcomes, codes, len(cells), weights, of_rows, are_merged=False
    )


def evidence_of_own(
    metric: GroupMetric,
    rows: MeasuredRows,
    reference: Reference,
    pos_label: ClassLabel,
    confidence: float,
) -> Evidence:
    """Return the comparisons of groups by a metric of one's own, with p-values by the bootstrap.

    The p-value of a limit is the share of the resamples in which the disparity reaches it. So the
    bound of a test with the confidence c is the percentile c of the resamples. A resample in which
    a group has no value counts as one that reaches the limit.
    """
    if metric.compare == "smallest":
        raise ValueError(
            f"{metric!r} has no test: a limit of a test is an upper one. Test compare='largest' of "
            "an error, such as 1 minus the metric, or compare='difference'."
        )
    own, own_rows, cells, values = metric.measured(rows, pos_label, reference)
    n_resamples = max(500, round(_BEYOND / (1 - confidence)))
    rng, groups = check_random_state(0), rows.groups
    n_cells, names = groups.group_of.size, np.array(groups.cells.names, dtype=object)
    draws = resampled(own, own_rows, own_rows.y_pred, cells, values, rows.units, n_resamples, rng)
    first, second = metric.compared(groups, reference)
    is_known = has_spread(draws)
    unknown = [names[i] for i in np.unique(first) if not is_known[i]]
    if unknown:
        warn_user(
            f"No interval is known of {metric!r} in group {unknown[0]!r}: all resamples have the "
            "same value, or none. Its comparisons count as not shown. Add data of this group."
        )
    of_pairs = np.vstack([values, draws])
    a, b = of_pairs[:, first], of_pairs[:, second]
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric.compare == "largest":
            sides, measured = [a[1:]], a[0]
        elif metric.compare == "ratio":
            sides = [(1 - a / b)[1:], (1 - b / a)[1:]]  # NaN if both are 0
            measured = np.nan_to_num(1 - ratios(a[0], b[0]))
        else:
            sides, measured = [(a - b)[1:], (b - a)[1:]], np.abs(a - b)[0]

    def p_values(limit: float) -> FloatArray:
        if limit <= 0 and metric.compare != "largest":
            return np.ones(first.size)
        beyond = np.max([(~(side < limit)).sum(axis=0) for side in sides], axis=0)
        known = is_known[first] & is_known[second]
        return np.where(known, (1 + beyond) / (1 + n_resamples), 1.0)

    of_second: Any = "limit" if metric.is_extreme else "overall"
    if not metric.is_extreme and n_cells == len(cells):
        of_second = names[second]
    columns: dict[str, Any] = {"rate": metric.measure, "first": names[first], "second": of_second}
    columns |= {"rate_first": a[0]} | ({} if metric.is_extreme else {"rate_second": b[0]})
    return Evidence(columns, measured, p_values, "bootstrap")
