"""The subgroups that fare worst, out of all intersections of attributes or of other columns.

Whoever looks at thousands of subgroups finds some that look bad by chance. So each subgroup is
compared with the *most extreme* one of all searched subgroups in simulations in which nobody is
treated differently. The p-value is the share of simulations whose most extreme subgroup is at least
as extreme, so it is corrected for the size of the search.

There are two searches:

- An audit searches intersections of sensitive attributes. ``audit_table`` calls
  :func:`tables_of`, :func:`search_subgroups` (before the gaps are known, because p-values cover
  gaps and subgroups together), and :func:`judge_subgroups` (after it). In a simulation, the outcome
  of each person is drawn at the overall rate, cell by cell.
- :func:`find_subgroups` is public, and searches intersections of any columns, with numbers in bins.
  With twelve columns, nearly every row is a combination of its own. So rows are counted anew for
  every set of columns, and in a simulation the values are dealt out to the rows at random.

If there are many rows or cells, both searches use a sample of rows. The difference of a subgroup is
then nearly a normal variable, and the most extreme one of many depends only on how the subgroups
overlap, which the sample shows. Shares of few rows are not normal, so
:func:`_normal_deviations` replaces them by the normal deviation that is as improbable.

Differences are measured in *standard errors*: with n rows inside and m outside a subgroup, and
s the standard deviation of the values of all rows, |mean inside - mean outside| / (s scale), where
scale = sqrt(1/n + 1/m).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse, stats

from skfair._typing import BoolArray, ClassLabel, ColumnLike, FloatArray, IntArray, Seed
from skfair.groups.cohort import cohort_of, given_columns
from skfair.groups.labels import TaskName
from skfair.groups.levels import intersection_name, number_tuples
from skfair.groups.rates import CellMeans, added
from skfair.groups.table import GroupTable
from skfair.report.tables.gaps import MOST_JOINT, Simulated, drawn_means
from skfair.report.tables.options import Options, read_options
from skfair.report.tables.reading import check_columns, find_task, read_labels, survey_rows
from skfair.report.tables.sums import distinct_labels, measured
from skfair.report.tables.tasks import Rows, Task, Value, searched_of, values_of
from skfair.utils.factorize import Factorized
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING, TINY
from skfair.utils.validation import check_number, one_dimensional

# If there are more subgroups than this, an error asks for a smaller depth.
MOST_SUBGROUPS = 200_000
# The number of subgroups of each measure that an audit shows: a page of a table.
_N_SHOWN = 15
# A column has at most this many levels. If it has more, the rarest ones become one level, "others".
# Two columns of 20 levels have 400 subgroups.
MOST_LEVELS = 20
# The size of the sample of rows that shows how subgroups overlap. Its correlations have a standard
# error of 0.014, and 12 columns of 4 levels to depth 2 take half a second per measure. Twice as
# many rows take twice as long.
MOST_SAMPLED = 5_000
# A subgroup with fewer rows in the sample is simulated as independent of all others.
_FEWEST_SAMPLED = 5


class Table(NamedTuple):
    """The subgroups of one set of columns that are large enough."""

    depth: int  # number of columns
    # (n_cells,): the combination of levels of each cell. In find_subgroups, each row is a cell.
    codes: IntArray
    n_groups: int  # number of combinations that occur
    kept: IntArray  # the combinations with enough people inside and outside: the subgroups
    n_rows: FloatArray | IntArray  # number of rows of each subgroup
    names: list[str]  # names of the subgroups


def tables_of(sample: GroupTable, depth: int, min_group_size: float) -> list[Table]:
    """Return the subgroups of an audit: of each set of up to ``depth`` sensitive attributes."""
    columns = {
        name: Factorized(sample.codes[:, place], sample.levels[name])
        for place, name in enumerate(sample.attributes)
    }
    return [  # with a million cells, their codes take most of the memory
        own._replace(codes=own.codes.astype(np.min_scalar_type(own.n_groups)))
        for own in list_tables(columns, sample.counts, depth, min_group_size, sample.people)
    ]


def list_tables(
    columns: dict[str, Factorized],
    n_rows: FloatArray | None,  # number of rows of each cell, or None if each cell is one row
    depth: int,
    min_group_size: float,
    people: FloatArray | None = None,  # number of people of each cell, or None if it is n_rows
) -> Iterator[Table]:
    """Yield the intersections of each set of up to ``depth`` columns, from one column on.

    Only intersections with at least ``min_group_size`` people inside and outside are kept.
    """
    people = n_rows if people is None else people
    total = len(next(iter(columns.values())).codes) if people is None else people.sum()
    n_subgroups = 0
    for size in range(1, min(depth, len(columns)) + 1):
        for attributes in combinations(columns, size):
            parts, levels = zip(*(columns[name] for name in attributes), strict=True)
            shape = np.array([len(own) for own in levels])
            codes, groups = number_tuples(list(parts), shape)
            counts: Any = np.bincount(codes, people, len(groups)).round(9)
            kept = np.flatnonzero((counts >= min_group_size) & (total - counts >= min_group_size))
            if people is not n_rows:
                counts = np.bincount(codes, n_rows, len(groups))
            n_subgroups += kept.size
            if n_subgroups > MOST_SUBGROUPS:
                raise ValueError(
                    f"There are more than {MOST_SUBGROUPS:,} subgroups of up to {size} columns. "
                    f"Pass depth={size - 1 or 1}, fewer columns, or a larger min_group_size."
                )
            names = [
                intersection_name(attributes, [own[i] for own, i in zip(levels, row, strict=True)])
                for row in groups[kept].tolist()
            ]
            yield Table(size, codes, len(groups), kept, counts[kept], names)


def members_of(tables: list[Table], cells: IntArray) -> sparse.csr_array:
    """Return which of the given cells each subgroup has: 0 or 1, of shape (n_subgroups, n_cells).

    A cell may be given several times, as in a sample of rows.
    """
    subgroups, members, start = [], [], 0
    for table in tables:
        place = np.full(table.n_groups, -1)
        place[table.kept] = start + np.arange(table.kept.size)
        own = place[table.codes[cells]]
        members.append(np.flatnonzero(own >= 0))
        subgroups.append(own[own >= 0])
        start += table.kept.size
    places = np.concatenate(subgroups), np.concatenate(members)
    return sparse.csr_array((np.ones(places[0].size), places), (start, cells.size))


def compare_with_rest(
    tables: list[Table], measure: str, whole: CellMeans, inside: CellMeans, min_group_size: float
) -> tuple[pd.DataFrame, BoolArray, FloatArray]:
    """Compare the mean of each subgroup (``inside``) with the mean of all other rows.

    ``whole`` has the sums over all rows. Returns a table of all subgroups, which of them have
    enough rows of the measure on both sides (``is_kept``), and the ``scale`` of each. The column
    ``standard_errors`` is 0 for subgroups that are not kept.
    """
    outside = whole._replace(sums=whole.sums - inside.sums)
    is_kept = (inside.n_effective >= min_group_size) & (outside.n_effective >= min_group_size)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(1 / inside.n_effective + 1 / outside.n_effective)
    difference = inside.means - outside.means
    spread = float(np.sqrt(whole.variances[0]))  # 0 if everybody has the same value
    extreme = np.zeros(scale.size)
    if spread > 0:
        extreme[is_kept] = np.abs(difference[is_kept]) / scale[is_kept] / spread
    columns = {
        "measure": measure,
        "subgroup": [name for table in tables for name in table.names],
        "depth": [table.depth for table in tables for _ in table.names],
        "n": np.concatenate([table.n_rows for table in tables]),
        "value": inside.means,
        "rest": outside.means,
        "difference": difference,
        "standard_errors": extreme,
    }
    return pd.DataFrame(columns), is_kept, scale


def search_subgroups(
    sample: GroupTable, tables: list[Table], measures: list[str], options: Options
) -> tuple[list[pd.DataFrame], list[Simulated], int]:
    """Compare every subgroup of an audit with everybody else, by each measure.

    Returns three things: a table for each measure, without p-values; the simulations for each
    measure, which ``find_gaps`` puts together with those of the gaps; and the number of subgroups,
    including the ones with too few rows of a measure.
    """
    unjudged, simulated = [], []
    n_cells, exact = sample.counts.size, sample.measures
    if sample.has_shared_units and n_cells <= MOST_JOINT:
        # A unit counts once in each of its cells, and the cells vary together.
        exact, _ = sample.merged(np.arange(n_cells), n_cells)
    for measure in measures:
        of_cells = sample.measures[measure]
        inside = _inside(tables, [of_cells.merged(own.codes, own.n_groups) for own in tables])
        table, is_kept, scale = compare_with_rest(
            tables, measure, of_cells.whole(), inside, options.min_searched
        )
        kept, extreme = np.flatnonzero(is_kept), table["standard_errors"].to_numpy(copy=True)
        if sample.counts.size <= MOST_SAMPLED or not kept.size:
            cells = members_of(tables, np.arange(sample.counts.size))[kept]
            largest, unit = _largest_by_chance(cells, scale[kept], exact[measure], options)
            extreme[kept] /= unit
        else:
            shares = of_cells.weight / of_cells.weight.sum()
            rows = options.rng.choice(shares.size, MOST_SAMPLED, p=shares)
            largest = _largest_of_normal(members_of(tables, rows)[kept], options)
            if of_cells.is_share:
                extreme = np.fmin(extreme, _normal_deviations(inside, of_cells.whole()))
        unjudged.append(table.assign(standard_errors=extreme)[is_kept])
        simulated.append(Simulated.scaled(extreme[kept], largest))
    return unjudged, simulated, sum(own.kept.size for own in tables) if measures else 0


def _inside(tables: list[Table], sums: list[CellMeans]) -> CellMeans:
    """Return the sums of all subgroups, given the sums of all combinations of each table."""
    pairs = zip(sums, tables, strict=True)
    return added([own._replace(sums=own.sums[..., table.kept]) for own, table in pairs])


def judge_subgroups(
    unjudged: list[pd.DataFrame], simulated: list[Simulated], rarest: FloatArray, options: Options
) -> tuple[pd.DataFrame, int]:
    """Add p-values to the tables of :func:`search_subgroups`.

    ``rarest`` comes from ``find_gaps``: for each simulation, the rarity of its most extreme
    comparison anywhere in the audit, in increasing order. Returns one table with the first
    subgroups of each measure, in the order of :func:`worst_first`, and the number of all
    significant subgroups.
    """
    tables = []
    for table, of_table in zip(unjudged, simulated, strict=True):
        p_values, _, _ = of_table.by_chance(rarest, 1 - options.confidence)
        tables.append(worst_first(table.assign(p_value=p_values), 1, options.confidence))
    n_beyond = sum(int(table["is_beyond_chance"].sum()) for table in tables)
    shown = [table.iloc[:_N_SHOWN] for table in tables]
    return pd.concat(shown, ignore_index=True) if tables else pd.DataFrame(), n_beyond


def worst_first(table: pd.DataFrame, n_measures: int, confidence: float) -> pd.DataFrame:
    """Correct the p-values for the number of measures, mark significant subgroups, and sort them.

    Significant subgroups come first, sorted by the size of the difference. The others follow,
    sorted by their standard errors. Equal ones, such as two groups that make up all rows, stay in
    their order, however their numbers were rounded.
    """
    table["p_value"] = np.minimum(1.0, table["p_value"] * n_measures)
    is_beyond = (table["p_value"] <= 1 - confidence + ROUNDING).to_numpy()
    table["is_beyond_chance"] = is_beyond
    size = np.where(is_beyond, table["difference"].abs(), table["standard_errors"])
    return table.iloc[np.lexsort((-np.round(size / SUM_ROUNDING), ~is_beyond))]


def _largest_by_chance(
    cells: sparse.csr_array, scale: FloatArray, measure: CellMeans, options: Options
) -> tuple[FloatArray, FloatArray]:
    """Draw the mean of each cell around the overall mean; return the largest standard error each.

    The result has one number for each simulation, over the subgroups in ``cells``, a matrix of
    :func:`members_of`. ``scale`` has one entry for each, see :func:`compare_with_rest`. If units
    have rows in several cells, a difference varies more or less than ``scale`` says. The second
    result is by how much, in the simulations, and the first one is divided by it.
    """
    n_simulations, whole, unit = options.n_simulations, measure.whole(), np.ones(scale.size)
    if not scale.size:
        return np.zeros(n_simulations), unit
    every = np.ones(measure.weight.size)
    weight = (cells @ measure.weight)[:, None]
    at_once = max(1, min(n_simulations, 4_000_000 // scale.size))  # 32 MB for each array
    largest: list[FloatArray] = []
    for start in range(0, n_simulations, at_once):
        n_draws = min(at_once, n_simulations - start)
        population = every * whole.means[0], every * whole.variances[0]
        means = drawn_means(measure, options.rng, n_draws, *population)
        totals = np.nan_to_num(means) * measure.weight
        overall = totals.sum(axis=1)
        rates = overall / whole.weight[0]
        variances = (
            rates * (1 - rates) if measure.is_share else np.full(n_draws, whole.variances[0])
        )
        inside = cells @ totals.T  # (n_subgroups, n_draws)
        apart = np.abs(inside / weight - (overall - inside) / (whole.weight[0] - weight))
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = np.nan_to_num(apart / scale[:, None] / np.sqrt(variances))
        if measure.unit_sums is not None and every.size <= MOST_JOINT:
            if not start:
                unit = np.sqrt((errors**2).mean(axis=1))
                unit = np.where(unit > 0, unit, 1.0)
            errors /= unit[:, None]
        largest.append(errors.max(axis=0))
    return np.concatenate(largest), unit


def find_subgroups(
    y_true: ColumnLike | None,
    y_pred: ColumnLike | None = None,
    *,
    y_score: ColumnLike | None = None,
    columns: Any,
    depth: int = 2,
    n_bins: int = 4,
    sample_weight: ColumnLike | None = None,
    units: ColumnLike | None = None,
    pos_label: ClassLabel = None,
    task: TaskName = "auto",
    threshold: float | None = None,
    confidence: float = 0.95,
    n_simulations: int = 500,
    min_group_size: int = 30,
    random_state: Seed = 0,
) -> pd.DataFrame:
    """Find the subgroups for which a model has the most extreme rates and errors.

    All intersections of up to ``depth`` columns are compared with the remaining rows. P-values are
    corrected for the whole search.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True labels or numbers. If None, measures that need them are left out.
    y_pred : array-like of shape (n_samples,), default=None
        Predicted labels or numbers.
    y_score : array-like of shape (n_samples,), default=None
        Scores, which are larger for the positive class. If true labels are given, the mean residual
        (outcome minus score) is also searched. It is positive if scores are too low.
    columns : DataFrame or dict of array-like of shape (n_samples,)
        Columns that define the subgroups, such as features. They need not be sensitive. Numbers
        with more than ``n_bins`` values are binned. Missing values form a separate level.
    depth : int, default=2
        Largest number of columns that define a subgroup.
    n_bins : int, default=4
        Number of bins of a column. Each bin has about the same number of rows.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows.
    units : array-like of shape (n_samples,), default=None
        Labels of rows that belong together, for example the person behind each visit (see
        :func:`audit`).
    pos_label : label, default=None
        The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1, or
        booleans. It is required for other labels, such as 1 and 2 or strings.
    task : {"auto", "binary", "classes", "numbers"}, default="auto"
        Kind of predictions, as in :func:`audit`.
    threshold : float, default=None
        Threshold of scores, if no predictions are given. Rows with larger scores are predicted
        positive.
    confidence : float, default=0.95
        Confidence level of ``is_beyond_chance``.
    n_simulations : int, default=500
        Number of simulations from which p-values are computed.
    min_group_size : int, default=30
        Smallest number of rows of a subgroup, and of the remaining rows. With units, persons are
        counted, and each row of a person with n rows counts as 1/n.
    random_state : int, RandomState instance or None, default=0
        Seed of the simulations.

    Returns
    -------
    found : DataFrame
        Table with one row per measure and subgroup. The columns are ``measure``, ``subgroup``,
        ``depth``, ``n``, ``value``, ``rest`` (the value of all other rows), ``difference``,
        ``standard_errors``, ``p_value``, which is corrected for the whole search over all subgroups
        and measures, and ``is_beyond_chance``, which is True for significant differences. For each
        measure, significant subgroups come first, sorted by decreasing difference.

    See Also
    --------
    audit : Search intersections of sensitive attributes as part of an audit.

    Notes
    -----
    Each set of columns costs O(n) for n rows.

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
    options = read_options(
        random_state=random_state,
        confidence=confidence,
        depth=depth,
        min_group_size=min_group_size,
        n_simulations=n_simulations,
    )
    check_number(n_bins, "n_bins", low=2, kind=Integral)
    named = {"y_score": y_score, "sample_weight": sample_weight, "units": units}
    people = cohort_of(y_true, y_pred, **named)
    given = given_columns(people)
    n_rows = check_columns(given, threshold)
    if n_rows is None:
        raise TypeError("find_subgroups reads single rows. compute() the Dask collections.")
    read_task = find_task(survey_rows(people, task), task, pos_label, given=given)
    rows = read_labels(people, read_task, threshold)
    shares = None if rows.units is None else rows.units.shares
    read = _read_columns(columns, n_rows, n_bins)
    tables = list(list_tables(read, None, depth, min_group_size, shares))
    parts = [_judged(tables, *own, options) for own in _measures(rows, read_task, tables)]
    sorted_parts = [worst_first(part, len(parts), confidence) for part in parts]
    return pd.concat(sorted_parts, ignore_index=True)


def _measures(
    rows: Rows, task: Task, tables: list[Table]
) -> Iterator[tuple[Value, list[CellMeans]]]:
    """Yield each measure that :func:`find_subgroups` searches, with its sums for each table.

    The sums are over the combinations of the table. If there are scores and true labels, the last
    measure is the mean residual.
    """
    score, rows = rows.score, rows._replace(score=None)
    every = {name: (values, counted) for name, values, counted in values_of(task, rows)}
    names = [name for name in searched_of(task, set(every)) if name in every]
    labels = distinct_labels(rows) if task.classes and names else None
    cells = [(own.codes, own.n_groups) for own in tables]
    units = [None if rows.units is None else rows.units.parts(*own) for own in cells]
    of_tables = [
        dict(measured(rows, task, labels, *own, names=names, parts=parts))
        for own, parts in zip(cells, units, strict=True)
    ]
    yield from (((name, *every[name]), [own[name] for own in of_tables]) for name in names)
    if task.kind == "binary" and score is not None and rows.true is not None:
        residual = rows.true - score
        sums = [
            CellMeans.of_rows(residual, None, *own, weights=rows.weights, units=parts)
            for own, parts in zip(cells, units, strict=True)
        ]
        yield ("mean_residual", residual, None), sums


def _read_columns(columns: Any, n_rows: int, n_bins: int) -> dict[str, Factorized]:
    """Check the columns that define subgroups, and return each as levels."""
    try:
        frame = pd.DataFrame(columns)
    except ValueError as error:
        raise ValueError(f"columns must be a table of columns: {error}") from error
    one_dimensional(frame.index, "columns", n_rows)
    if not frame.shape[1]:
        raise ValueError("columns is empty. Pass the columns whose intersections are searched.")
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise ValueError(f"columns must have different names, got {', '.join(names)}.")
    return {name: read_column(frame.iloc[:, j], n_bins) for j, name in enumerate(names)}


def read_column(values: pd.Series, n_bins: int, most_levels: int = MOST_LEVELS) -> Factorized:
    """Return a column as levels: numbers in bins, or the most frequent values and "others".

    Numbers with at most ``n_bins`` values are not binned. Missing values are the last level,
    "missing". ``audit_data`` also calls this.
    """
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
    else:  # missing values have the code -1 until they get their own level below
        codes, uniques = pd.factorize(values, sort=False)
        levels = [str(level) for level in uniques]
        if len(levels) > most_levels:
            counts = np.bincount(codes[codes >= 0], minlength=len(levels))
            rank = np.empty(len(levels), np.int64)  # 0 for the most frequent level
            rank[np.argsort(-counts, kind="stable")] = np.arange(len(levels))
            levels = [levels[i] for i in np.argsort(rank)[: most_levels - 1]] + ["others"]
            codes = np.where(codes >= 0, np.minimum(rank[codes], most_levels - 1), -1)
    if is_missing.any():
        codes = np.where(is_missing, len(levels), codes)
        levels = [*levels, "missing"]
    return Factorized(np.asarray(codes, np.int64), levels)


def _judged(
    tables: list[Table], measure: Value, sums: list[CellMeans], options: Options
) -> pd.DataFrame:
    """Return the table of one measure of :func:`find_subgroups`, with p-values.

    The p-values are corrected for all subgroups of this measure, but not for the other measures.
    """
    whole = sums[0].whole()
    inside = _inside(tables, sums).counted_from(whole.origin)
    has_units = len(whole.sums) > 2  # then CellMeans has a third entry, the sums over units
    if has_units and inside.weight.size:
        # The sums over units depend on how the cells of a table cut the units, so each subgroup is
        # compared with the sums over all rows of its own table.
        pairs = zip(sums, tables, strict=True)
        every = [np.repeat(own.whole().sums, len(table.kept), axis=-1) for own, table in pairs]
        whole = whole._replace(sums=np.concatenate(every, axis=-1))
    table, is_kept, _ = compare_with_rest(tables, measure[0], whole, inside, options.min_searched)
    largest, is_sampled = _largest_by_dealing(tables, measure, is_kept, options, has_units)
    extreme = table["standard_errors"].to_numpy()
    if is_sampled and whole.is_share:
        extreme = np.fmin(extreme, _normal_deviations(inside, whole))
    n_beyond = largest.size - np.searchsorted(largest, extreme - SUM_ROUNDING)
    return table.assign(p_value=(1 + n_beyond) / (1 + largest.size))[is_kept]


def _normal_deviations(inside: CellMeans, whole: CellMeans) -> FloatArray:
    """Return how many standard deviations of a normal variable are as improbable as each share.

    The smaller side (the subgroup or all other rows) has n of N rows, k of which have the value 1.
    With P the smaller tail of Binomial(n, overall share) at k, the deviation is

        z(P) / sqrt(1 - n / N),    z(P): the normal variable exceeds it with probability P.

    The root is there because the values are dealt out without replacement, so k varies less than
    the binomial count by this factor.
    """
    outside, share = whole._replace(sums=whole.sums - inside.sums), float(whole.means[0])
    is_smaller = inside.n_effective <= outside.n_effective
    size = np.where(is_smaller, inside.n_effective, outside.n_effective)
    of_all = size / (inside.n_effective + outside.n_effective)
    n_rows = np.round(size)
    count = np.round(np.where(is_smaller, inside.means, outside.means) * n_rows)
    low, high = stats.binom.cdf(count, n_rows, share), stats.binom.sf(count - 1, n_rows, share)
    extreme = stats.norm.isf(np.minimum(np.minimum(low, high), 0.5))
    return np.asarray(extreme / np.sqrt(1 - of_all))


def _largest_by_dealing(
    tables: list[Table], measure: Value, is_kept: BoolArray, options: Options, has_units: bool
) -> tuple[FloatArray, bool]:
    """Deal the values out to the rows at random, and return the most extreme subgroups, sorted.

    The first result has one number of standard errors for each simulation. The second one is True
    if the rows got normal values instead of their own, because there are more than ``MOST_SAMPLED``
    of them (a sample is used then) or because they belong to units.
    """
    rng, n_simulations = options.rng, options.n_simulations
    _, values, counted = measure
    rows = np.arange(len(tables[0].codes)) if counted is None else np.flatnonzero(counted)
    is_sampled = rows.size > MOST_SAMPLED or has_units
    if rows.size > MOST_SAMPLED:
        rows = np.sort(rng.choice(rows, MOST_SAMPLED, replace=False))
    if not is_kept.any() or rows.size < 2:
        return np.zeros(n_simulations), is_sampled
    members = members_of(tables, rows)[is_kept]
    if is_sampled:
        return np.sort(_largest_of_normal(members, options)), True
    own = np.asarray(values, np.float64)[rows]
    own = own - own.mean()
    draws = np.stack([rng.permutation(own) for _ in range(n_simulations)], axis=1)
    return np.sort(_apart(members, draws).max(axis=0)), False


def _largest_of_normal(members: sparse.csr_array, options: Options) -> FloatArray:
    """Give the sampled rows normal values; return the most extreme subgroup of each simulation."""
    apart = _apart(members, options.rng.standard_normal((members.shape[1], options.n_simulations)))
    n_inside = np.asarray(members.sum(axis=1)).ravel()
    few = np.minimum(n_inside, members.shape[1] - n_inside) < _FEWEST_SAMPLED
    apart[few] = np.abs(options.rng.standard_normal((int(few.sum()), options.n_simulations)))
    return np.asarray(apart.max(axis=0))


def _apart(members: sparse.csr_array, draws: FloatArray) -> FloatArray:
    """Return how far each subgroup is from the rest in each draw, in standard errors.

    ``draws`` (n_rows, n_draws) is standardised in place. Then the sum over all rows is 0, so with
    S the sum over the n rows of a subgroup, the other m rows add up to -S, and the difference of
    the means is S (1/n + 1/m) = S scale^2. Divided by scale, it is S scale.
    """
    draws -= draws.mean(axis=0)
    draws /= np.maximum(np.sqrt((draws**2).mean(axis=0)), TINY)
    n_inside = np.asarray(members.sum(axis=1)).ravel()
    sums = np.asarray(members @ draws)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.sqrt(1 / n_inside + 1 / (members.shape[1] - n_inside))[:, None]
        return np.asarray(np.nan_to_num(np.abs(sums) * scale, posinf=0.0))
