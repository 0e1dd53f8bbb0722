"""Audits of numbers in an engine: it adds up what ``add_up`` adds up of rows in memory.

Predicted numbers hardly repeat, so no few rows stand for all of them. :func:`read_numbers` lets the
engine compute the measures of :class:`~skfair.report.tables.tasks.Numbers` and add up their
moments, in two passes. The first one finds origins near the values, because the variance of numbers
around ten million would lose its digits in a difference of squares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skfair._typing import FloatArray, IntArray
from skfair.groups.cohort import Cohort
from skfair.groups.cohort_rows import cell_table
from skfair.groups.engine_tables import PREFIX, Kinds
from skfair.groups.labels import TaskName, extent_of, warn_of_ranges
from skfair.groups.levels import number_tuples
from skfair.groups.rates import CellMeans
from skfair.groups.score_bins import bincount
from skfair.groups.table import GroupTable
from skfair.report.tables.options import MISSING, Options
from skfair.report.tables.scores import N_BINS, range_of_scores, score_table
from skfair.report.tables.tasks import Numbers, Rows, values_of
from skfair.utils.text import listed

# Measures that are 0 or 1 for each row
_SHARES = ("moved_up", "moved_down")


def read_numbers(
    people: Cohort,
    kinds: Kinds,
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
    table = kinds.table
    true, predicted, before = (table.number(own) for own in ("y_true", "y_pred", "before"))
    if predicted is None:
        raise ValueError("Predicted numbers are audited as y_pred=; y_score= is for classes.")
    expressions: Any = Rows(true, predicted, before)
    measured: Any = values_of(Numbers(), expressions)
    values = {name: own.cast(nw.Float64) for name, own, _ in measured}
    ends = {"low": predicted, "high": predicted}
    ends |= {} if true is None else {"lowest": true, "highest": true}
    extremes = {name: "max" if "high" in name else "min" for name in ends}
    whole = table.overview(values | ends, extremes)
    if true is not None:
        # The warning is about many rows, of which it only looks at the ends.
        both = ([whole[low], whole[high]] for low, high in (("lowest", "highest"), ("low", "high")))
        warn_of_ranges(*(np.resize(own, 1000) for own in both))
    origins = {name: 0.0 if name in _SHARES else whole[name] for name in values}
    sums, weight = {}, table.weight
    for power, by in (("w", weight), ("w2", weight * weight)):
        sums[power] = by
        for name, value in values.items():
            x = value - origins[name]
            sums |= {f"{power} {name}": by * x, f"{power} {name} squared": by * x * x}
    low, high = range_of_scores(np.array([whole["low"], whole["high"]]))
    keys = {}
    if true is not None:  # predictions are checked for calibration, as scores are
        sums |= {"targets": weight * true, "scores": weight * predicted}
        place = (predicted - low) * (N_BINS / (high - low))
        nearest = place.round(0)
        keys["bin"] = (nearest - (nearest > place).cast(nw.Float64)).cast(nw.Int64)
    added = table.sums(sums, keys, kinds)
    missing = MISSING if MISSING in options.unknown else None
    sample, of_kinds = cell_table(people, len(kinds.counts), missing, options.unknown)
    n_cells, cell = len(sample.codes), f"{PREFIX}cell"
    groups: Any = [people.sensitive_features, people.control_features]
    attributes = pd.concat([own for own in groups if own is not None], axis=1)
    numbered = attributes.assign(**{cell: of_kinds})
    cells = added[table.cells].merge(numbered, on=table.cells, how="left")[cell].to_numpy()

    def total(name: str, codes: IntArray = cells, size: int = n_cells) -> FloatArray:
        return bincount(codes, added[f"{PREFIX}{name}"].to_numpy(np.float64), size)

    measures = {}
    for name in values:
        is_share, parts = name in _SHARES, []
        for power in ("w", "w2"):
            first = total(f"{power} {name}")
            second = first if is_share else total(f"{power} {name} squared")
            parts.append([total(power), first, second])
        measures[name] = CellMeans(np.array(parts), is_share, origins[name])
    sample = replace(sample, measures=measures)
    if true is not None:
        bins = added[f"{PREFIX}bin"].to_numpy(np.int64).clip(0, N_BINS - 1)
        places, pairs = number_tuples([cells, bins], np.array([n_cells, N_BINS]))
        named = {"weights": "w", "targets": "targets", "scores": "scores"}
        of_scores = {name: total(own, places, len(pairs)) for name, own in named.items()}
        scores = score_table(sample, pairs[:, 0], pairs[:, 1], of_scores, (low, high))
        sample = replace(sample, scores=scores)
    return sample, Numbers(extent_of(whole["low"], whole["high"]))
