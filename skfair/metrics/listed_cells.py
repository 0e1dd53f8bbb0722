"""The cells in the order of a report, and their differences from a reference group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skfair._typing import FloatArray, IntArray
from skfair.groups.compared_groups import ComparedGroups
from skfair.groups.table import GroupTable
from skfair.metrics.resampling import difference_interval


class ListedCells:
    """The cells in the order of a report: by stratum, and below each the whole stratum."""

    def __init__(self, groups: ComparedGroups) -> None:
        self._groups = groups
        self._stratum = np.append(groups.stratum_of, np.arange(groups.stratum_of.max() + 1))
        self._order = np.argsort(self._stratum, kind="stable")

    def with_overall(self, of_cells: FloatArray) -> FloatArray:
        """List numbers of cells, and their sums over strata."""
        own = slice(self._groups.cells.offsets[1])  # cells of one attribute hold each row once
        overall = np.zeros((self._stratum.max() + 1, *of_cells.shape[1:]))
        np.add.at(overall, self._groups.stratum_of[own], of_cells[own])
        return np.concatenate([of_cells, overall])[self._order]

    def table(self, table: GroupTable) -> GroupTable:
        """Return the sums of the cells, and of each stratum."""
        squares = None if table.add_squares is None else self.with_overall(table.squares)
        add_squares = None if squares is None else lambda: squares
        return GroupTable(table.groups, self.with_overall(table.weights), add_squares)

    def sums(self, values: FloatArray | None) -> FloatArray:
        """List the sums of a value of the rows."""
        return self.with_overall(self._groups.cells.sums(values))

    def rows(self) -> list[IntArray]:
        """List the rows of each cell, and of each stratum."""
        strata = self._groups.stratum_of[self._groups.cells.codes[0]]
        rows = self._groups.rows_of_cells()
        rows += [np.flatnonzero(strata == stratum) for stratum in range(strata.max() + 1)]
        return [rows[i] for i in self._order]

    def compared_with(self, reference: Any) -> tuple[IntArray, IntArray]:
        """Return the rows that are compared, and the row of the reference group of each."""
        place = np.argsort(self._order)
        first, second = self._groups.pairs_with(reference)
        return place[first], place[second]

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
) -> dict[str, FloatArray]:
    """Return values and ends of intervals, with differences from the reference group if any."""
    if reference is None:
        return {**columns, **limits}
    rows, places = listed.compared_with(reference)
    columns, limits = columns.copy(), limits.copy()
    for name in [n for n, values in columns.items() if n != "n" and values.dtype != object]:
        values, added = columns[name], f"{name}_difference"
        parts = {added: values[rows] - values[places]}
        if f"{name}_low" in limits:
            ends = limits[f"{name}_low"], limits[f"{name}_high"]
            both = np.arange(values.size)
            both[rows] = places
            ends_of_difference = difference_interval(values, *ends, both)
            parts |= {
                f"{added}_low": ends_of_difference[0][rows],
                f"{added}_high": ends_of_difference[1][rows],
            }
        for key, own in parts.items():
            whole = np.full(values.size, np.nan)
            whole[rows] = own
            (columns if key == added else limits)[key] = whole
    return {**columns, **limits}
