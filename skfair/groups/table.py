"""Sums over the rows of each cell, of which those of parts of a sample add up.

A *cell* is a combination of levels of attributes that occurs. What is said about groups, crossings
and subgroups is a function of sums over cells, so the rows are visited once. A :class:`GroupTable`
holds no rows, and those of parts of a sample add up: blocks of a file, partitions of Dask, batches
of a monitor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.levels import number_tuples
from skfair.groups.means import CellMeans, added
from skfair.utils.factorize import in_order

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Sums over the rows of each cell."""

    levels: dict[str, list[Any]]  # the levels of each attribute, in order
    codes: IntArray  # (n_cells, n_attributes): the level of each cell in each attribute
    counts: FloatArray  # (n_cells, ...): rows; of a monitor by true and predicted class
    measures: dict[str, CellMeans] = field(default_factory=dict)  # by name, over the cells
    scores: GroupTable | None = None  # sums by attributes and bin of the score
    within: Sequence[str] = ()  # attributes that strata are made of, the last ones

    @classmethod
    def of_keys(
        cls, names: Sequence[str], keys: Sequence[Sequence[Any]], counts: FloatArray
    ) -> GroupTable:
        """Return a table of cells that are given by their levels."""
        columns = [[key[j] for key in keys] for j in range(len(names))]
        levels = [list(dict.fromkeys(column)) for column in columns]
        places = [{level: i for i, level in enumerate(own)} for own in levels]
        codes = [[of[x] for x in column] for of, column in zip(places, columns, strict=True)]
        levels_by_name = dict(zip(names, levels, strict=True))
        return cls(levels_by_name, np.array(codes, np.int64).T, counts)

    def cells(self) -> list[tuple[Any, ...]]:
        """Return the levels of each cell."""
        columns = zip(self.levels.values(), self.codes.T.tolist(), strict=True)
        return list(zip(*([own[i] for i in column] for own, column in columns), strict=True))

    @property
    def attributes(self) -> list[str]:
        """The attributes that groups are made of."""
        return [name for name in self.levels if name not in self.within]

    def columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Return the level of each cell in some attributes; they keep their order."""
        import pandas as pd

        columns = {}
        for name in names:
            codes, levels = self.codes[:, list(self.levels).index(name)], self.levels[name]
            of_cells = pd.Categorical.from_codes(codes, pd.Index(levels, dtype=object))
            columns[name] = pd.Series(of_cells)
        return columns

    def only(self, is_kept: BoolArray) -> GroupTable:
        """Return some of the cells; without scores."""
        if is_kept.all():
            return replace(self, scores=None)
        measures = {
            name: of_cells._replace(sums=of_cells.sums[..., is_kept])
            for name, of_cells in self.measures.items()
        }
        codes, counts = self.codes[is_kept], self.counts[is_kept]
        return replace(self, codes=codes, counts=counts, measures=measures, scores=None)

    def emptied(self) -> GroupTable:
        """Return the cells without their rows."""
        return GroupTable(self.levels, self.codes, np.zeros_like(self.counts))

    def __add__(self, other: GroupTable) -> GroupTable:
        return total([self, other])[0]


def total(
    tables: Sequence[GroupTable],
    order: Mapping[str, list[Any]] = MappingProxyType({}),
    last: str | None = None,
) -> tuple[GroupTable, IntArray]:
    """Add up tables of the same attributes; return also which cell those of the tables became.

    Levels are in the given order, else sorted if all tables have sorted them; ``last`` ends them.
    """
    first, levels, codes = tables[0], {}, []
    for j, name in enumerate(first.levels):
        of_tables = [list(table.levels.values())[j] for table in tables]
        lists = [[level for level in own if level != last] for own in of_tables]
        seen = dict.fromkeys(chain.from_iterable(lists))
        if name not in order and all(own == in_order(own) for own in lists):
            seen = dict.fromkeys(in_order(list(seen)))
        own = [level for level in order.get(name, seen) if level in seen]
        own += [last] if any(last in own_of_table for own_of_table in of_tables) else []
        place = {level: i for i, level in enumerate(own)}
        places = [np.array([place[level] for level in of_table], int) for of_table in of_tables]
        columns = [of[t.codes[:, j]] for of, t in zip(places, tables, strict=True)]
        codes.append(np.concatenate(columns))
        levels[name] = own
    cells, combinations = number_tuples(codes, np.array([len(own) for own in levels.values()]))
    counts = np.zeros((len(combinations), *first.counts.shape[1:]))
    np.add.at(counts, cells, np.concatenate([table.counts for table in tables]))
    measures = {
        name: added([table.measures[name] for table in tables]).merged(cells, len(combinations))
        for name in first.measures
    }
    scores = [table.scores for table in tables if table.scores is not None]
    of_scores = total(scores, order, last)[0] if scores else None
    whole = GroupTable(levels, combinations, counts, measures, of_scores, first.within)
    return whole, cells
