"""Audits of numbers in an engine: it adds up what ``read_table`` adds up of rows in memory.

Predicted numbers hardly repeat, so no few rows stand for all of them. :func:`read_numbers` lets the
engine compute the measures of :class:`~skfair.report.tasks.Numbers` and add up their moments, in
two passes. The first one finds origins near the values, because the variance of numbers around ten
million would lose its digits in a difference of squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skfair.groups.attributes import CONTROL, SENSITIVE
from skfair.groups.engine_tables import PREFIX, Kinds
from skfair.groups.labels import TaskName, extent_of, warn_of_ranges
from skfair.groups.levels import number_tuples
from skfair.groups.rates import CellMeans
from skfair.groups.score_bins import bincount
from skfair.groups.table import GroupTable
from skfair.report.options import MISSING, Options
from skfair.report.scores import N_BINS, score_table
from skfair.report.table import read_cells
from skfair.report.tasks import Numbers, Rows, values_of
from skfair.utils.text import listed


def read_numbers(
    kinds: Kinds,
    groups: tuple[Any, Any],
    task: TaskName,
    options: Options,
    given: Mapping[str, Any],  # options that are about classes, by name
) -> tuple[GroupTable, Numbers]:
    """Return the table of an audit of numbers in an engine, and its task."""
    import narwhals as nw

    if task not in ("auto", "numbers"):
        raise ValueError(
            f"{listed([*kinds.table.labels.values()])} are numbers that hardly repeat, so "
            f"task={task!r} cannot be audited. Pass task='numbers', or a threshold in the query."
        )
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} is about classes, but {listed([*kinds.table.labels.values()])} "
                f"are numbers that hardly repeat. Leave {name}= out, or name decisions."
            )
    table, found = kinds.table, Numbers()
    true, predicted, before = (table.number(own) for own in ("y_true", "y_pred", "before"))
    if predicted is None:
        raise ValueError("Predicted numbers are audited as y_pred=; y_score= is for classes.")
    rows: Any = Rows(true, predicted, before, None, None)  # expressions of narwhals
    measured: Any = values_of(found, rows)
    values = {name: own.cast(nw.Float64) for name, own, _ in measured}
    are_shares = {name: name in ("moved_up", "moved_down") for name in values}
    ends = {"low": predicted, "high": predicted}
    ends |= {} if true is None else {"lowest": true, "highest": true}
    asked = values | ends
    of_all = table.overview(asked, {name: "max" if "high" in name else "min" for name in ends})
    found = Numbers(extent_of(of_all["low"], of_all["high"]))
    if true is not None:
        true_ends = np.resize([of_all["lowest"], of_all["highest"]], 10**3)
        warn_of_ranges(true_ends, np.resize([of_all["low"], of_all["high"]], 10**3))
    origins = {name: 0.0 if are_shares[name] else of_all[name] for name in values}
    weight, sums = table.weight, {"w 0": table.weight, "w2 0": table.weight * table.weight}
    for name, value in values.items():
        x = value - origins[name]
        for power, by in (("w", weight), ("w2", weight * weight)):
            sums |= {f"{power} {name}": by * x, f"{power} {name} squared": by * x * x}
    low, high = of_all["low"], of_all["high"]
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    high = high if high > low else low + 1.0
    keys = {}
    if true is not None:
        sums |= {"targets": weight * true, "scores": weight * predicted}
        place = (predicted - low) * (N_BINS / (high - low))
        nearest = place.round(0)
        keys["bin"] = (nearest - (nearest > place).cast(nw.Float64)).cast(nw.Int64)
    added = table.sums(sums, keys, kinds)
    roles = [(groups[0], SENSITIVE, MISSING if MISSING in options.unknown else None)]
    roles += [] if groups[1] is None else [(groups[1], CONTROL, None)]
    levels, cells, combinations, control = read_cells(
        roles, len(kinds.counts), None, options.unknown
    )
    n_cells = len(combinations)
    place, own = f"{PREFIX}cell", [own for own in groups if own is not None]
    of_kinds = pd.concat(own, axis=1).assign(**{place: cells})
    of_rows = added[table.cells].merge(of_kinds, on=table.cells, how="left")[place].to_numpy()

    def total(name: str) -> Any:
        return np.bincount(of_rows, added[f"{PREFIX}{name}"].to_numpy(np.float64), n_cells)

    measures = {}
    for name in values:
        parts = []
        for power in ("w", "w2"):
            first = total(f"{power} {name}")
            second = first if are_shares[name] else total(f"{power} {name} squared")
            parts.append([total(f"{power} 0"), first, second])
        measures[name] = CellMeans(np.array(parts), are_shares[name], origins[name])
    rows = np.bincount(cells, kinds.counts, n_cells).astype(np.float64)
    sample = GroupTable(levels, combinations, {"rows": rows}, measures, within=control)
    if true is None:
        return sample, found
    bins = added[f"{PREFIX}bin"].to_numpy(np.int64).clip(0, N_BINS - 1)
    places, pairs = number_tuples([of_rows, bins], np.array([n_cells, N_BINS]))
    of_scores = {
        name: bincount(places, added[f"{PREFIX}{own}"].to_numpy(np.float64), len(pairs))
        for name, own in (("weights", "w 0"), ("targets", "targets"), ("scores", "scores"))
    }
    scores = score_table(sample, pairs[:, 0], pairs[:, 1], of_scores, (low, high))
    return GroupTable(levels, combinations, {"rows": rows}, measures, scores, control), found
