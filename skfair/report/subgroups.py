"""The subgroups that fare worst, out of all intersections of the attributes.

Whoever looks at thousands of subgroups finds some that look bad by chance. So a subgroup is
compared with what the *most extreme* of all searched subgroups shows when nobody is treated
differently: the same people are simulated again, with the outcome of each drawn at the overall
rate. The p-value is the share of simulations in which anything that the audit compares, a subgroup
or a pair of groups, is at least as extreme, however many there are.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from skfair._typing import FloatArray
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


class Candidates(NamedTuple):
    """Subgroups: their names, how many attributes each fixes, and the cells that each holds."""

    names: list[str]
    depths: list[int]
    cells: sparse.csr_array  # (n_subgroups, n_cells)


class Part(NamedTuple):
    """What a search found by one measure."""

    table: pd.DataFrame  # all subgroups, without p-values
    simulated: Simulated
    n_subgroups: int  # that were searched, also those with too few rows of the measure


class Search(NamedTuple):
    """What a search found."""

    # The worst subgroups: those beyond chance first, the largest difference on top
    table: pd.DataFrame
    n_subgroups: int  # how many subgroups were compared with the rest
    n_beyond: int  # how many of all comparisons are beyond chance


def list_candidates(tally: Tally, depth: int, min_size: float) -> Candidates:
    """List all intersections of up to ``depth`` attributes with enough rows on both sides."""
    names: list[str] = []
    depths: list[int] = []
    parts = []
    total = tally.n_rows.sum()
    for size in range(1, min(depth, len(tally.sensitive)) + 1):
        for attributes in combinations(range(len(tally.sensitive)), size):
            levels = [tally.levels[tally.sensitive[a]] for a in attributes]
            own = [tally.codes[:, a] for a in attributes]
            codes, rows = number_tuples(own, np.array([len(names) for names in levels]))
            n_rows = np.bincount(codes, tally.n_rows, len(rows))
            kept = np.flatnonzero((n_rows >= min_size) & (total - n_rows >= min_size))
            named = tuple(tally.sensitive[a] for a in attributes)
            for row in rows[kept]:
                of_row = [names[i] for names, i in zip(levels, row, strict=True)]
                names.append(intersection_name(named, of_row))
            depths += [size] * kept.size
            ones = np.ones(codes.size)
            shape = (len(rows), codes.size)
            owners = sparse.csr_array((ones, (codes, np.arange(codes.size))), shape)
            parts.append(owners[kept])
        if len(names) > MOST_SUBGROUPS:
            raise ValueError(
                f"There are {len(names)} subgroups of up to {size} attributes. Pass depth="
                f"{size - 1}, fewer attributes, or a larger min_size."
            )
    return Candidates(names, depths, sparse.vstack(parts, "csr"))


def search_subgroups(tally: Tally, measures: list[str], options: Options) -> list[Part]:
    """Compare every subgroup with everybody else, by each measure."""
    candidates = list_candidates(tally, options.depth, options.min_size)
    n_rows = np.asarray(candidates.cells @ tally.n_rows)
    parts = []
    for measure in measures:
        table, largest = _searched(candidates, n_rows, tally.moments[measure], options)
        table.insert(0, "measure", measure)
        extreme = table["standard_errors"].to_numpy()
        parts.append(Part(table, Simulated.scaled(extreme, largest), len(n_rows)))
    return parts


def judge_subgroups(parts: list[Part], rarest: FloatArray, options: Options) -> Search:
    """Say which subgroups are beyond what chance shows anywhere in the audit."""
    tables = []
    for table, simulated, _ in parts:
        chance = simulated.chance(rarest, 1 - options.confidence)
        tables.append(worst_first(table.assign(p_value=chance.p_values), 1, options.confidence))
    n_beyond = sum(int(table["is_beyond_chance"].sum()) for table in tables)
    shown = [table.iloc[:_N_SHOWN] for table in tables]
    frame = pd.concat(shown, ignore_index=True) if tables else pd.DataFrame()
    return Search(frame, parts[0].n_subgroups if parts else 0, n_beyond)


def worst_first(table: pd.DataFrame, n_measures: int, confidence: float) -> pd.DataFrame:
    """Say which subgroups of a measure are beyond chance, of so many searches, and sort them.

    Those beyond chance come first by the size of the difference, others by how extreme they are.
    """
    table["p_value"] = np.minimum(1.0, table["p_value"] * n_measures)
    is_beyond = (table["p_value"] <= 1 - confidence + ROUNDING).to_numpy()
    table["is_beyond_chance"] = is_beyond
    size = np.where(is_beyond, table["difference"].abs(), table["standard_errors"])
    return table.iloc[np.lexsort((-size, ~is_beyond))]


def _searched(
    candidates: Candidates,
    n_rows: FloatArray,
    moments: Moments,
    options: Options,
) -> tuple[pd.DataFrame, FloatArray]:
    """Measure each subgroup and everybody else, and simulate the most extreme difference."""
    whole = moments.merged(np.zeros(moments.weight.size, np.int64), 1)
    inside = moments.with_sums(candidates.cells @ sums for sums in moments[:4])
    outside = moments.with_sums(
        every - inside_sums for every, inside_sums in zip(whole[:4], inside[:4], strict=True)
    )
    min_size, n_simulations = options.min_size, options.n_simulations
    kept = np.flatnonzero((inside.n_effective >= min_size) & (outside.n_effective >= min_size))
    with np.errstate(invalid="ignore", divide="ignore"):
        # The standard error of the difference, in standard deviations of the values.
        scale = np.sqrt(1 / inside.n_effective[kept] + 1 / outside.n_effective[kept])
    difference = (inside.means - outside.means)[kept]
    extreme = np.abs(difference) / scale
    largest = _largest_by_chance(candidates.cells[kept], scale, moments, n_simulations, options.rng)
    spread = float(np.sqrt(whole.variances[0]))  # 0 if everybody has the same value
    extreme = extreme / spread if spread > 0 else np.zeros_like(extreme)
    table = pd.DataFrame(
        {
            "subgroup": [candidates.names[i] for i in kept],
            "depth": [candidates.depths[i] for i in kept],
            "n": n_rows[kept],
            "value": inside.means[kept],
            "rest": outside.means[kept],
            "difference": difference,
            "standard_errors": extreme,
        }
    )
    return table, largest


def _largest_by_chance(
    cells: sparse.csr_array,
    scale: FloatArray,
    moments: Moments,
    n_simulations: int,
    rng: np.random.RandomState,
) -> FloatArray:
    """Simulate equal treatment, and return the most extreme subgroup of each simulation."""
    if not scale.size:
        return np.zeros(n_simulations)
    whole = moments.merged(np.zeros(moments.weight.size, np.int64), 1)
    every = np.ones(moments.weight.size)
    weight = (cells @ moments.weight)[:, None]
    at_once = max(1, min(n_simulations, 4_000_000 // scale.size))
    largest: list[FloatArray] = []
    for start in range(0, n_simulations, at_once):
        n_draws = min(at_once, n_simulations - start)
        means = moments.drawn(rng, n_draws, every * whole.means[0], every * whole.variances[0])
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
