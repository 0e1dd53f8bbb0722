"""The subgroups that fare worst, out of the intersections of any columns: slices of the data.

An audit searches intersections of sensitive attributes (:mod:`skfair.report.subgroups`); here every
column may be part of one, numbers in bins. With twelve columns nearly every row is a combination of
its own, so rows are counted anew for every set of columns. The p-value is the same: a subgroup is
compared with the most extreme one of all if values were dealt out to the rows at random. Of many
rows a sample says how subgroups overlap, which is all that matters for the most extreme of many
normal variables; shares of few rows, which are not normal, are put on their scale by their exact
probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn.utils import check_random_state

from skfair._typing import BoolArray, ClassLabel, ColumnLike, FloatArray, IntArray, Seed
from skfair.groups.attributes import check_aligned
from skfair.groups.levels import intersection_name
from skfair.report.moments import Moments
from skfair.report.reading import RawRows, TaskName, check_raw_rows, find_task, read_rows
from skfair.report.subgroups import MOST_SUBGROUPS, worst_first
from skfair.report.tasks import Rows, Task
from skfair.utils.rounding import SUM_ROUNDING, TINY
from skfair.utils.validation import check_number, check_probability, check_rows

# A column has at most so many levels; the rarest of more are put together. 20 are 400 subgroups of
# two columns.
MOST_LEVELS = 20
# As many rows say how subgroups overlap: correlations are known up to 0.014, and 12 columns of 4
# levels to depth 2 take half a second per measure; twice as many take twice as long.
MOST_SAMPLED = 5_000
# Subgroups with fewer rows in the sample are taken to be independent of all others.
_FEWEST_SAMPLED = 5


class _Column(NamedTuple):
    """A column as levels."""

    name: str
    levels: list[str]
    codes: IntArray


class _Table(NamedTuple):
    """The subgroups of one set of columns that are large enough."""

    columns: list[_Column]
    codes: IntArray  # (n_rows,): number of the combination of each row
    kept: IntArray  # combinations with enough rows

    @property
    def n_cells(self) -> int:
        """How many combinations of levels there are."""
        return int(np.prod([len(column.levels) for column in self.columns]))

    @property
    def names(self) -> list[str]:
        """The names of the subgroups."""
        places = np.unravel_index(self.kept, [len(column.levels) for column in self.columns])
        names = tuple(column.name for column in self.columns)
        return [
            intersection_name(names, [c.levels[i] for c, i in zip(self.columns, row, strict=True)])
            for row in zip(*(levels.tolist() for levels in places), strict=True)
        ]


class _Measure(NamedTuple):
    """Values of the rows that count for a measure."""

    name: str
    values: FloatArray | BoolArray
    counted: BoolArray | None


class _Kinds:
    """Sums of all measures in all subgroups.

    Rows of one kind count alike for each share, so that one count of the kinds in a table of
    subgroups serves all shares: at 1e6 rows that takes a third of the time.
    """

    def __init__(
        self, measures: list[_Measure], weights: FloatArray | None, tables: list[_Table]
    ) -> None:
        self.tables, self.weights = tables, weights
        flags = []
        for measure in measures:
            if measure.values.dtype == np.bool_:
                counted = (
                    np.ones(measure.values.size, bool)
                    if measure.counted is None
                    else measure.counted
                )
                flags += [np.asarray(measure.values, bool) & counted, counted]
        self.place = {
            measure.name: 2 * i
            for i, measure in enumerate(m for m in measures if m.values.dtype == np.bool_)
        }
        n_rows = tables[0].codes.size
        bits = sum(
            (flag.astype(np.int64) << i for i, flag in enumerate(flags)), np.zeros(n_rows, int)
        )
        self.bits, self.kind = np.unique(bits, return_inverse=True)
        self.counts = [self._counted(table) for table in tables] if flags else []
        self.whole = self._summed(self.kind, self.bits.size)

    def _summed(self, codes: IntArray, n_cells: int) -> FloatArray:
        """Return sums of the weights, and of their squares."""
        weight = np.bincount(codes, self.weights, n_cells).astype(np.float64)
        if self.weights is None:
            return np.stack([weight, weight])
        return np.stack([weight, np.bincount(codes, self.weights**2, n_cells)])

    def _counted(self, table: _Table) -> FloatArray:
        """Count the kinds in each subgroup of a table, an array (2, n_subgroups, n_kinds)."""
        n_kinds = self.bits.size
        counts = self._summed(table.codes * n_kinds + self.kind, table.n_cells * n_kinds)
        return counts.reshape(2, table.n_cells, n_kinds)[:, table.kept]

    def moments(self, measure: _Measure) -> tuple[Moments, Moments]:
        """Return the sums of all rows, and of each subgroup."""
        place = self.place.get(measure.name)
        if place is not None:
            is_hit, is_counted = (((self.bits >> i) & 1).astype(float) for i in (place, place + 1))

            def of(counts: FloatArray) -> list[FloatArray]:
                hits = counts[0] @ is_hit
                return [hits, hits, counts[0] @ is_counted, counts[1] @ is_counted]

            total, second, weight, squares = map(np.atleast_1d, of(self.whole))
            whole = Moments(total, second, weight, squares, is_share=True)
            parts = [of(counts) for counts in self.counts]
        else:
            columns = measure.values, measure.counted
            whole = Moments.of_rows(*columns, np.zeros_like(self.kind), 1, self.weights)
            cells = (
                (Moments.of_rows(*columns, table.codes, table.n_cells, self.weights), table.kept)
                for table in self.tables
            )
            parts = [
                [sums[kept] for sums in moments.counted_from(whole.origin)[:4]]
                for moments, kept in cells
            ]
        return whole, whole.with_sums(np.concatenate([part[i] for part in parts]) for i in range(4))


def find_subgroups(
    y_true: ColumnLike | None,
    y_pred: ColumnLike | None = None,
    y_score: ColumnLike | None = None,
    *,
    columns: Any,
    depth: int = 2,
    min_size: int = 30,
    n_bins: int = 4,
    sample_weight: ColumnLike | None = None,
    pos_label: ClassLabel = None,
    task: TaskName = "auto",
    threshold: float | None = None,
    confidence: float = 0.95,
    n_simulations: int = 500,
    random_state: Seed = 0,
) -> pd.DataFrame:
    """Search all intersections of columns for the subgroups that a model serves worst.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels or numbers; None leaves out what needs them.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels or numbers.
    y_score : array-like of shape (n_samples,), default=None
        Scores, larger for the positive class. With true labels the mean residual (outcome minus
        score) is searched as well: above 0, scores are too low.
    columns : DataFrame or dict of array-like of shape (n_samples,)
        Any columns, such as features; they need not be sensitive. Numbers with more than ``n_bins``
        values are put in bins. Missing values are a level of their own.
    depth : int, default=2
        How many columns a subgroup may fix.
    min_size : int, default=30
        Smallest number of rows of a subgroup, and of the rest.
    n_bins : int, default=4
        Number of bins of about equally many rows.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    pos_label : label, default=None
        The class that counts as positive. None is for labels that say it themselves: 0 and 1, -1
        and 1, and booleans. Others, such as 1 and 2 or text, need it.
    task : {"auto", "binary", "classes", "numbers"}, default="auto"
        What is predicted.
    threshold : float, default=None
        With scores and no predictions: rows with larger scores are decided positively.
    confidence : float, default=0.95
        Confidence level of ``is_beyond_chance``.
    n_simulations : int, default=500
        Number of simulations behind p-values.
    random_state : int, RandomState instance or None, default=0
        Seed of the simulations.

    Returns
    -------
    found : DataFrame
        One row per measure and subgroup: ``measure``, ``subgroup``, ``depth``, ``n``, ``value``,
        ``rest`` (of all other rows), ``difference``, ``standard_errors``, ``p_value``, which covers
        the whole search over all subgroups and measures, and ``is_beyond_chance``. Of each measure
        those beyond chance come first, the largest difference on top.

    See Also
    --------
    audit : Searches intersections of sensitive attributes.

    Notes
    -----
    O(n) for each set of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.report import find_subgroups
    >>> rng = np.random.default_rng(0)
    >>> columns = {"age": rng.normal(40, 10, 4000), "region": rng.choice(["n", "s"], 4000)}
    >>> y = rng.integers(0, 2, 4000)
    >>> is_hard = (columns["age"] > 47) & (columns["region"] == "s")
    >>> predicted = np.where(is_hard & (rng.random(4000) < 0.4), 1 - y, y)
    >>> found = find_subgroups(y, predicted, columns=columns)
    >>> found[found["measure"] == "accuracy"]["subgroup"].iloc[0]
    'age=46.6 and over, region=s'
    """
    check_probability(confidence, "confidence")
    check_number(depth, "depth", low=1, kind=Integral)
    check_number(min_size, "min_size", low=1)
    check_number(n_bins, "n_bins", low=2, kind=Integral)
    check_number(n_simulations, "n_simulations", low=1, kind=Integral)
    raw = RawRows(y_true, y_pred, y_score, None, sample_weight)
    n_rows = check_raw_rows(raw, None, None, threshold)
    check_aligned(**raw.named())
    read_task = find_task(raw, task, pos_label)
    rows = read_rows(raw, read_task, threshold)
    tables = list(_tables(_read_columns(columns, n_rows, n_bins), depth, min_size, n_rows))
    measures = list(_measures(rows, read_task))
    rng = check_random_state(random_state)
    kinds = _Kinds(measures, rows.weights, tables)
    parts = [
        _searched(tables, measure, kinds, min_size, n_simulations, rng) for measure in measures
    ]
    sorted_parts = [worst_first(part, len(measures), confidence) for part in parts]
    return pd.concat(sorted_parts, ignore_index=True)


def _measures(rows: Rows, task: Task) -> Iterator[_Measure]:
    """Yield what is searched: errors and selections, and of scores the mean residual."""
    every = {name: _Measure(name, values, counted) for name, values, counted in task.values(rows)}
    yield from (every[name] for name in task.searched(set(every)) if name in every)
    if task.kind == "binary" and rows.score is not None and rows.true is not None:
        yield _Measure("mean_residual", task.targets(rows.true) - rows.score, None)


def _read_columns(columns: Any, n_rows: int, n_bins: int) -> list[_Column]:
    """Return columns as levels."""
    frame = pd.DataFrame(columns)
    check_rows(len(frame), "columns", n_rows)
    if not frame.shape[1]:
        raise ValueError("columns is empty. Pass the columns whose intersections are searched.")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise ValueError(f"columns must have different names, got {', '.join(names)}.")
    return [_read_column(name, frame.iloc[:, place], n_bins) for place, name in enumerate(names)]


def _read_column(name: str, values: pd.Series, n_bins: int) -> _Column:
    """Return a column as levels: bins of numbers, the most frequent levels of others."""
    is_missing = values.isna().to_numpy()
    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if is_number and values.nunique() > n_bins:
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        shares = np.arange(1, n_bins) / n_bins
        edges = np.unique(np.quantile(numbers[~is_missing], shares))
        codes = np.searchsorted(edges, numbers, side="right")
        texts = [f"{edge:.3g}" for edge in edges]
        if len(set(texts)) < len(texts):
            texts = [f"{edge:.15g}" for edge in edges]
        between = [f"{low} to under {high}" for low, high in pairwise(texts)]
        levels = [f"under {texts[0]}", *between, f"{texts[-1]} and over"]
    else:
        codes, uniques = pd.factorize(values, sort=False)
        levels = [str(level) for level in uniques]
        if len(levels) > MOST_LEVELS:
            counts = np.bincount(codes[codes >= 0], minlength=len(levels))
            rank = np.empty(len(levels), np.int64)
            rank[np.argsort(-counts, kind="stable")] = np.arange(len(levels))
            levels = [levels[i] for i in np.argsort(rank)[: MOST_LEVELS - 1]] + ["others"]
            codes = np.where(codes >= 0, np.minimum(rank[codes], MOST_LEVELS - 1), -1)
    if is_missing.any():
        codes = np.where(is_missing, len(levels), codes)
        levels = [*levels, "missing"]
    return _Column(name, levels, np.asarray(codes, np.int64))


def _tables(columns: list[_Column], depth: int, min_size: float, n_rows: int) -> Iterator[_Table]:
    """Yield the subgroups of each set of columns."""
    n_subgroups = 0
    for size in range(1, min(depth, len(columns)) + 1):
        for chosen in combinations(columns, size):
            shape = [len(column.levels) for column in chosen]
            n_subgroups += int(np.prod(shape))
            if n_subgroups > MOST_SUBGROUPS:
                raise ValueError(
                    f"There are more than {MOST_SUBGROUPS:,} subgroups of up to {size} columns. "
                    f"Pass depth={size - 1 or 1}, fewer columns, or fewer bins."
                )
            codes = chosen[0].codes
            for column in chosen[1:]:  # numpy's ravel_multi_index takes four times as long
                codes = codes * len(column.levels) + column.codes
            counts = np.bincount(codes, minlength=int(np.prod(shape)))
            is_large = (counts >= min_size) & (n_rows - counts >= min_size)
            yield _Table(list(chosen), codes, np.flatnonzero(is_large))


def _searched(
    tables: list[_Table],
    measure: _Measure,
    kinds: _Kinds,
    min_size: float,
    n_simulations: int,
    rng: np.random.RandomState,
) -> pd.DataFrame:
    """Measure each subgroup and all other rows, and how extreme the difference is."""
    whole, inside = kinds.moments(measure)
    outside = whole.with_sums(every - own for every, own in zip(whole[:4], inside[:4], strict=True))
    is_kept = (inside.n_effective >= min_size) & (outside.n_effective >= min_size)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(1 / inside.n_effective + 1 / outside.n_effective)
    difference = inside.means - outside.means
    spread = float(np.sqrt(whole.variances[0]))
    extreme = np.zeros(len(scale))
    if spread > 0:
        extreme[is_kept] = np.abs(difference[is_kept]) / (scale[is_kept] * spread)
    largest, is_sampled = _largest_by_chance(tables, measure, whole, is_kept, n_simulations, rng)
    judged = extreme
    if is_sampled and whole.is_share:
        judged = np.fmin(extreme, _exact_scale(inside, outside, float(whole.means[0])))
    n_beaten = n_simulations - np.searchsorted(largest, judged - SUM_ROUNDING)
    n_rows = np.concatenate([np.bincount(table.codes)[table.kept] for table in tables])
    subgroups = pd.DataFrame(
        {
            "measure": measure.name,
            "subgroup": [name for table in tables for name in table.names],
            "depth": [len(table.columns) for table in tables for _ in table.kept],
            "n": n_rows,
            "value": inside.means,
            "rest": outside.means,
            "difference": difference,
            "standard_errors": extreme,
            "p_value": (1 + n_beaten) / (1 + n_simulations),
        }
    )
    return subgroups[is_kept]


def _exact_scale(inside: Moments, outside: Moments, share: float) -> FloatArray:
    """Return the standard deviations of a normal variable that is as improbable as each count.

    Counts of the smaller side are binomial; that the values of a sample are dealt out without
    replacement makes their deviations smaller by the share of the rows that are on that side.
    """
    is_smaller = inside.n_effective <= outside.n_effective
    size = np.where(is_smaller, inside.n_effective, outside.n_effective)
    of_all = size / (inside.n_effective + outside.n_effective)
    n_rows = np.round(size)
    count = np.round(np.where(is_smaller, inside.means, outside.means) * n_rows)
    low, high = stats.binom.cdf(count, n_rows, share), stats.binom.sf(count - 1, n_rows, share)
    extreme = stats.norm.isf(np.minimum(np.minimum(low, high), 0.5))
    return np.asarray(extreme / np.sqrt(1 - of_all))


def _largest_by_chance(
    tables: list[_Table],
    measure: _Measure,
    whole: Moments,
    is_kept: BoolArray,
    n_simulations: int,
    rng: np.random.RandomState,
) -> tuple[FloatArray, bool]:
    """Deal values out at random; return the most extreme subgroup of each time, in order.

    Of many rows a sample gets normal values; then the second result is true.
    """
    rows = np.arange(len(tables[0].codes))
    if measure.counted is not None:
        rows = rows[measure.counted]
    is_sampled = rows.size > MOST_SAMPLED
    if is_sampled:
        rows = np.sort(rng.choice(rows, MOST_SAMPLED, replace=False))
    if not is_kept.any() or rows.size < 2:
        return np.zeros(n_simulations), is_sampled
    members = _members(tables, rows)[is_kept]
    own = np.asarray(measure.values, np.float64)[rows]
    own = own - own.mean()
    if is_sampled:
        draws = rng.standard_normal((rows.size, n_simulations))
    else:
        draws = np.stack([rng.permutation(own) for _ in range(n_simulations)], axis=1)
    draws -= draws.mean(axis=0)
    draws /= np.maximum(np.sqrt((draws**2).mean(axis=0)), TINY)
    n_inside = np.asarray(members.sum(axis=1)).ravel()
    n_outside = rows.size - n_inside
    sums = np.asarray(members @ draws)  # of all rows it is 0, so that of the rest is minus this
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.abs(sums) * np.sqrt(1 / n_inside + 1 / n_outside)[:, None]
    few = np.minimum(n_inside, n_outside) < _FEWEST_SAMPLED
    if is_sampled and few.any():
        scaled[few] = np.abs(rng.standard_normal((int(few.sum()), n_simulations)))
    return np.sort(np.nan_to_num(scaled, posinf=0.0).max(axis=0)), is_sampled


def _members(tables: list[_Table], rows: IntArray) -> sparse.csr_array:
    """Return which of some rows are in which subgroup, an array of shape (n_subgroups, n_rows)."""
    subgroups, members, start = [], [], 0
    for table in tables:
        place = np.full(table.n_cells, -1)
        place[table.kept] = start + np.arange(table.kept.size)
        own = place[table.codes[rows]]
        members.append(np.flatnonzero(own >= 0))
        subgroups.append(own[own >= 0])
        start += table.kept.size
    places = np.concatenate(subgroups), np.concatenate(members)
    return sparse.csr_array((np.ones(places[0].size), places), (start, rows.size))
