"""The subgroups that fare worst, out of all intersections of the attributes.

Whoever looks at thousands of subgroups finds some that look bad by chance. So a subgroup is
compared with what the *most extreme* of all searched subgroups shows when nobody is treated
differently: the same people are simulated again, with the outcome of each drawn at the overall
rate. The p-value is the share of simulations in which anything that the audit compares, a subgroup
or a pair of groups, is at least as extreme, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.levels import intersection_name, number_tuples
from skfair.report.gaps import Simulated
from skfair.report.moments import Moments
from skfair.report.options import Options
from skfair.report.tally import Tally
from skfair.utils.rounding import ROUNDING

# More subgroups than this are not searched at once; a smaller depth is asked for.
MOST_SUBGROUPS = 200_000
# As many subgroups of each measure are shown: a page of a table.
_N_SHOWN = 15


class Column(NamedTuple):
    """A column as levels."""

    name: str
    levels: list[Any]
    codes: IntArray  # (n_cells,): the level of each cell, or of each row


class Table(NamedTuple):
    """The subgroups of one set of columns that are large enough."""

    depth: int  # number of columns
    codes: IntArray  # (n_cells,): number of the combination of each cell
    n_groups: int  # combinations that occur
    kept: IntArray  # those with enough rows
    n_rows: FloatArray | IntArray  # of the kept ones
    names: list[str]


def list_tables(
    columns: list[Column], n_rows: FloatArray | None, depth: int, min_size: float
) -> Iterator[Table]:
    """List all intersections of up to ``depth`` columns with enough rows on both sides.

    ``n_rows`` are the rows of each cell; None if each cell is a row.
    """
    total = columns[0].codes.size if n_rows is None else n_rows.sum()
    n_subgroups = 0
    for size in range(1, min(depth, len(columns)) + 1):
        for chosen in combinations(columns, size):
            shape = np.array([len(column.levels) for column in chosen])
            codes, groups = number_tuples([column.codes for column in chosen], shape)
            counts: Any = np.bincount(codes, n_rows, len(groups))
            kept = np.flatnonzero((counts >= min_size) & (total - counts >= min_size))
            n_subgroups += kept.size
            if n_subgroups > MOST_SUBGROUPS:
                raise ValueError(
                    f"There are more than {MOST_SUBGROUPS:,} subgroups of up to {size} columns. "
                    f"Pass depth={size - 1 or 1}, fewer columns, or a larger min_size."
                )
            attributes = tuple(column.name for column in chosen)
            names = [
                intersection_name(
                    attributes, [c.levels[i] for c, i in zip(chosen, row, strict=True)]
                )
                for row in groups[kept].tolist()
            ]
            yield Table(size, codes, len(groups), kept, counts[kept], names)


def members_of(tables: list[Table], cells: IntArray) -> sparse.csr_array:
    """Return which of some cells are in which subgroup: shape (n_subgroups, n_cells)."""
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
    tables: list[Table], measure: str, whole: Moments, inside: Moments, min_size: float
) -> tuple[pd.DataFrame, BoolArray, FloatArray]:
    """Measure each subgroup and everybody else, and how extreme the difference is.

    Returns the table, which subgroups have enough rows of the measure on both sides, and the
    standard errors of the differences, in standard deviations of the values.
    """
    outside = whole._replace(sums=whole.sums - inside.sums)
    is_kept = (inside.n_effective >= min_size) & (outside.n_effective >= min_size)
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
    tally: Tally, measures: list[str], options: Options
) -> tuple[list[pd.DataFrame], list[Simulated], int]:
    """Compare every subgroup with everybody else, by each measure.

    Returns a table without p-values and simulations for each measure, and how many subgroups were
    searched, also those with too few rows of a measure.
    """
    columns = [
        Column(name, tally.levels[name], tally.codes[:, place])
        for place, name in enumerate(tally.sensitive)
    ]
    tables = list(list_tables(columns, tally.n_rows, options.depth, options.min_size))
    cells = members_of(tables, np.arange(tally.n_rows.size))
    unjudged, simulated = [], []
    for measure in measures:
        moments = tally.moments[measure]
        inside = moments._replace(sums=(cells @ moments.sums.T).T)
        table, is_kept, scale = compare_with_rest(
            tables, measure, moments.whole(), inside, options.min_size
        )
        kept = np.flatnonzero(is_kept)
        largest = _largest_by_chance(cells[kept], scale[kept], moments, options)
        unjudged.append(table[is_kept])
        extreme = unjudged[-1]["standard_errors"].to_numpy()
        simulated.append(Simulated.scaled(extreme, largest))
    return unjudged, simulated, cells.shape[0] if measures else 0


def judge_subgroups(
    unjudged: list[pd.DataFrame], simulated: list[Simulated], rarest: FloatArray, options: Options
) -> tuple[pd.DataFrame, int]:
    """Say which subgroups, and how many, are beyond what chance shows anywhere in the audit.

    Those beyond chance come first, the largest difference on top.
    """
    tables = []
    for table, of_table in zip(unjudged, simulated, strict=True):
        p_values, _, _ = of_table.by_chance(rarest, 1 - options.confidence)
        tables.append(worst_first(table.assign(p_value=p_values), 1, options.confidence))
    n_beyond = sum(int(table["is_beyond_chance"].sum()) for table in tables)
    shown = [table.iloc[:_N_SHOWN] for table in tables]
    return pd.concat(shown, ignore_index=True) if tables else pd.DataFrame(), n_beyond


def worst_first(table: pd.DataFrame, n_measures: int, confidence: float) -> pd.DataFrame:
    """Say which subgroups of a measure are beyond chance, of so many searches, and sort them.

    Those beyond chance come first by the size of the difference, others by how extreme they are.
    """
    table["p_value"] = np.minimum(1.0, table["p_value"] * n_measures)
    is_beyond = (table["p_value"] <= 1 - confidence + ROUNDING).to_numpy()
    table["is_beyond_chance"] = is_beyond
    size = np.where(is_beyond, table["difference"].abs(), table["standard_errors"])
    return table.iloc[np.lexsort((-size, ~is_beyond))]


def _largest_by_chance(
    cells: sparse.csr_array, scale: FloatArray, moments: Moments, options: Options
) -> FloatArray:
    """Simulate equal treatment, and return the most extreme subgroup of each simulation."""
    n_simulations, whole = options.n_simulations, moments.whole()
    if not scale.size:
        return np.zeros(n_simulations)
    every = np.ones(moments.weight.size)
    weight = (cells @ moments.weight)[:, None]
    at_once = max(1, min(n_simulations, 4_000_000 // scale.size))
    largest: list[FloatArray] = []
    for start in range(0, n_simulations, at_once):
        n_draws = min(at_once, n_simulations - start)
        means = moments.drawn(
            options.rng, n_draws, every * whole.means[0], every * whole.variances[0]
        )
        totals = np.nan_to_num(means) * moments.weight
        overall = totals.sum(axis=1)
        rates = overall / whole.weight[0]
        variances = (
            rates * (1 - rates) if moments.is_share else np.full(n_draws, whole.variances[0])
        )
        inside = cells @ totals.T  # (n_subgroups, n_draws)
        apart = np.abs(inside / weight - (overall - inside) / (whole.weight[0] - weight))
        with np.errstate(invalid="ignore", divide="ignore"):
            largest.append(np.nan_to_num((apart / scale[:, None]).max(axis=0) / np.sqrt(variances)))
    return np.concatenate(largest)
