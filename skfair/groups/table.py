"""Sums over the rows of each cell, which metrics, reports, audits and monitors compare.

A *cell* is a combination of levels of attributes that occurs. Every statement about groups,
intersections and subgroups is a function of sums over cells, so the rows are visited once. A
:class:`GroupTable` holds no rows, and the tables of parts of a sample (blocks of a file, partitions
of Dask, batches of a monitor) add up (:func:`total`).

There are two kinds of tables. ``MeasuredRows.table`` (by ``of_groups``) makes one whose cells are
the groups that a metric compares, and whose ``peers`` say which are compared. Audits and monitors
read rows into tables of finer cells, without ``peers``, and call :meth:`GroupTable.compared` to
merge the cells into groups. ``compare``, ``largest``, ``checked_rate`` and ``groups`` need a table
of the first kind. *Units* are rows that belong together, see :mod:`skfair.groups.row_units`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import BoolArray, FloatArray, IntArray, Seed
from skfair.groups.compared_groups import (
    Agg,
    ComparedGroups,
    Reference,
    ZeroDivision,
    aggregate,
    check_agg,
    ratios,
)
from skfair.groups.declared_rates import hits_and_rows, rate_named, rates_of
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.groups.levels import number_tuples
from skfair.groups.outcomes import one_decision
from skfair.groups.rates import CellMeans, Moments, added
from skfair.groups.row_units import UnitParts, share_of_few
from skfair.groups.shared_units import UnitSums
from skfair.groups.strata import Strata, read_strata
from skfair.utils.factorize import in_order
from skfair.utils.validation import is_strict
from skfair.utils.warn import unwanted

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Sums over the rows of each cell."""

    levels: dict[str, list[Any]]  # the levels of each attribute, in order
    codes: IntArray  # (n_cells, n_attributes): the level of each cell in each attribute
    # Sums over the rows of each cell by name. Each is optional:
    # - "rows": (n_cells,), the number of rows
    # - "weights": (n_cells, 2, 2), the sum of the weights by true and predicted class
    # - "squares": the same of the squared weights, missing if each row counts once
    # - "products": (n_cells, 4, 2, 2), only if rows have units. Each unit adds a vector of four
    #   numbers, its weights by true and predicted class; these are the sums over the units of
    #   the products of any two of the four
    sums: dict[str, FloatArray]
    measures: dict[str, CellMeans] = field(default_factory=dict)  # measures by name
    scores: GroupTable | None = None  # sums by attributes and bin of the score
    within: Sequence[str] = ()  # attributes whose levels are the strata
    peers: ComparedGroups | None = None  # cells that are compared; None in tables of finer cells
    units: UnitParts | None = None  # the cells of each unit, if rows belong together
    # (4, n_parts): the vector that each unit adds to each of its cells; the parts are as in units
    unit_sums: FloatArray | None = None

    @classmethod
    def of_groups(
        cls,
        groups: ComparedGroups,
        sums: dict[str, FloatArray],
        measures: Mapping[str, CellMeans] = MappingProxyType({}),
        units: UnitParts | None = None,
    ) -> GroupTable:
        """Return a table of groups that are compared with each other, within their strata.

        Its attributes are "attribute" (the sensitive attribute, "" if there is only one), "group"
        and, with strata, "stratum".
        """
        names = groups.groups.attributes if groups.cells.n_attributes > 1 else ("",)
        levels = {"attribute": list(names), "group": list(groups.groups.names)}
        codes = [groups.cells.attribute_of_group, groups.group_of]
        if groups.strata is not None:
            levels["stratum"] = list(groups.strata)
            codes.append(groups.stratum_of)
        within = [name for name in levels if name != "group"]
        cells = np.stack(codes, axis=1)
        return cls(levels, cells, sums, dict(measures), None, within, groups, units)

    @classmethod
    def of_keys(
        cls, names: Sequence[str], keys: Sequence[Sequence[Any]], sums: dict[str, FloatArray]
    ) -> GroupTable:
        """Return a table whose cells are given by their levels: a key has a level per name."""
        columns = [[key[j] for key in keys] for j in range(len(names))]
        levels = [list(dict.fromkeys(column)) for column in columns]
        places = [{level: i for i, level in enumerate(own)} for own in levels]
        codes = [[of[x] for x in column] for of, column in zip(places, columns, strict=True)]
        levels_by_name = dict(zip(names, levels, strict=True))
        return cls(levels_by_name, np.array(codes, np.int64).T, sums)

    def cells(self) -> list[tuple[Any, ...]]:
        """Return the levels of each cell, in the order of the attributes."""
        columns = zip(self.levels.values(), self.codes.T.tolist(), strict=True)
        return list(zip(*([own[i] for i in column] for own, column in columns), strict=True))

    @property
    def attributes(self) -> list[str]:
        """The attributes that make groups, not strata."""
        return [name for name in self.levels if name not in self.within]

    def columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Return the level of each cell in some attributes, as ordered categorical columns."""
        import pandas as pd

        columns = {}
        for name in names:
            codes, levels = self.codes[:, list(self.levels).index(name)], self.levels[name]
            of_cells = pd.Categorical.from_codes(codes, pd.Index(levels, dtype=object))
            columns[name] = pd.Series(of_cells.remove_unused_categories())
        return columns

    def encoded(self, attributes: Sequence[str]) -> GroupEncoding:
        """Return the group of each cell, the intersections of some attributes."""
        with unwanted(UserWarning):  # warnings were given when the rows were read
            return encode_groups(self.columns(attributes))

    def strata(self, within: Sequence[str]) -> Strata:
        """Return the stratum of each cell by some attributes."""
        with unwanted(UserWarning):
            return read_strata(self.columns(within))

    def only(self, is_kept: BoolArray) -> GroupTable:
        """Return the cells that are kept, without ``scores`` and ``unit_sums``."""
        if is_kept.all():
            return replace(self, scores=None)
        units = self.units if self.units is None else self.units.only(is_kept)
        measures = {}
        for name, own in self.measures.items():
            unit_sums = None if own.unit_sums is None else own.unit_sums.only(is_kept)
            rows = None if own.own is None else own.own.only(is_kept)
            sums_of_kept = own.sums[..., is_kept]
            measures[name] = own._replace(sums=sums_of_kept, unit_sums=unit_sums, own=rows)
        codes, sums = self.codes[is_kept], {name: own[is_kept] for name, own in self.sums.items()}
        return GroupTable(self.levels, codes, sums, measures, None, self.within, None, units)

    def emptied(self) -> GroupTable:
        """Return the cells with all sums 0, for a monitor to add rows to."""
        nothing = {name: np.zeros_like(own) for name, own in self.sums.items()}
        return GroupTable(self.levels, self.codes, nothing)

    def __add__(self, other: GroupTable) -> GroupTable:
        return total([self, other])[0]

    def compared(self, attributes: Sequence[str], within: Sequence[str] = ()) -> GroupTable:
        """Return the sums of groups by some attributes, which are compared within strata of others.

        With several attributes, groups are their intersections.
        """
        n_rows = np.ceil(self.counts).astype(np.int64)
        strata = self.strata(within) if within else None
        groups = ComparedGroups.of(self.encoded(attributes), strata, None, n_rows)
        codes, n_groups = groups.cells.codes[0], groups.cells.n_groups
        sums = _gathered([self], codes, n_groups)
        return GroupTable.of_groups(groups, sums, *self.merged(codes, n_groups))

    def merged(
        self, codes: IntArray, n_cells: int
    ) -> tuple[dict[str, CellMeans], UnitParts | None]:
        """Return measures and units of larger cells, see :meth:`CellMeans.merged`."""
        units = self.units if self.units is None else self.units.merged(codes, n_cells)
        return {name: x.merged(codes, n_cells, units) for name, x in self.measures.items()}, units

    @property
    def counts(self) -> FloatArray:
        """The number of rows of each cell, or their weight if the number is not stored."""
        return self.sums["rows"] if "rows" in self.sums else self.weights.sum(axis=(1, 2))

    @property
    def people(self) -> FloatArray:
        """The number of people with rows in each cell, see :meth:`UnitParts.n_units`."""
        return self.counts if self.units is None else self.units.n_units(len(self.codes))

    @property
    def groups(self) -> ComparedGroups:
        if self.peers is None:
            raise TypeError("A table of cells says by compared() of which groups they are part.")
        return self.peers

    @property
    def weights(self) -> FloatArray:
        """The weights of the rows of each cell by true and predicted class, (n_cells, 2, 2)."""
        return self.sums["weights"]

    @property
    def has_units(self) -> bool:
        """Whether rows belong together."""
        return "products" in self.sums

    @property
    def counts_each_once(self) -> bool:
        """Whether each row has the weight 1 and is independent of the others."""
        return not self.has_units and np.array_equal(self.squares, self.weights)

    @property
    def has_shared_units(self) -> bool:
        """Whether a unit has rows in several cells, and not by the probability of its group."""
        are_known = self.peers is None or self.peers.cells.people is None
        return self.units is not None and are_known and self.units.are_split

    @property
    def squares(self) -> FloatArray:
        """Sums of the squared weights, of the shape of the weights."""
        return self.sums.get("squares", self.weights)

    def undefined_by_decision(self, rates: Sequence[str]) -> str:
        """Say why rates are undefined if every decision is the same; "" if they are not."""
        decided = self.weights.sum(axis=(0, 1)) > 0
        if decided.all() or not any(rate_named(rate).needs_both_decisions for rate in rates):
            return ""
        return one_decision("positive" if decided[1] else "negative", has_outcomes=True)

    def means(self, rate: str) -> CellMeans:
        """Return a rate of each cell as the mean of 0 and 1 over the rows in its denominator."""
        own = rate_named(rate)
        sums = []
        for weights, power in ((self.weights, 1), (self.squares, 2)):
            entries = (own.above**power, own.below**power)  # a row that counts by part of a row
            hits, rows = ((weights * part).sum(axis=(-2, -1)) for part in entries)
            sums.append(Moments(rows, hits, hits))  # a hit is its own square
        if self.has_units:
            # A unit adds H to the numerator and W to the denominator. Both are sums of some of its
            # four numbers, so the sums over units of H H, H W and W W are sums of entries of
            # products. The first call adds up one factor, and the other calls the other factor.
            with_hits, with_rows = hits_and_rows(self.sums["products"], rate)
            squared_hits, hits_by_rows = hits_and_rows(with_hits.reshape(-1, 2, 2), rate)
            _, squared_rows = hits_and_rows(with_rows.reshape(-1, 2, 2), rate)
            sums.append(Moments(squared_rows, hits_by_rows, squared_hits))
        kept = None
        if self.units is not None and self.unit_sums is not None and self.has_shared_units:
            hits, rows = hits_and_rows(self.unit_sums.T.reshape(-1, 2, 2), rate)
            kept = UnitSums(self.units, np.stack([rows, hits]), len(self.codes))
        by_parts = not own.is_mean
        return CellMeans(np.array(sums), is_share=True, unit_sums=kept, by_parts=by_parts)

    def resampled(self, n_bootstrap: int, random_state: Seed) -> FloatArray:
        """Draw tables as if the rows of each cell had been resampled: (n_cells, n_bootstrap, 2, 2).

        The number of rows in a draw follows from Kish's formula, the squared sum of the weights
        divided by the sum of their squares. Half a row is added to both predictions of each true
        class that a cell has, because a prediction that was not seen among few rows is possible in
        the population, and resamples of the rows alone would never contain it. If rows belong
        together, their units are resampled (see ``_unit_kinds``). The added half row is then half
        of the number of rows that have the information of one row of another unit.
        """
        rng = check_random_state(random_state)
        draws = np.zeros((len(self.weights), n_bootstrap, 2, 2))
        totals, squares = (part.sum(axis=(1, 2)) for part in (self.weights, self.squares))
        scale = totals / np.where(squares > 0, squares, 1.0)
        rows = self.weights * scale[:, None, None]
        halves = 0.5 * np.repeat(rows.sum(axis=-1) > 0, 2, axis=-1)
        chances, sizes, kinds = rows.reshape(-1, 4) + halves, rows.sum(axis=(1, 2)), np.eye(4)
        of_units = None if self.unit_sums is None else self._unit_kinds(self.unit_sums)
        for cell in np.flatnonzero(sizes > 0):
            own, size = chances[cell], sizes[cell]
            if of_units is not None:
                kinds, counts, size = next(of_units)
                own = np.append(counts, halves[cell])
            # If rows have weights, every unit may be a different kind. Draws are made in parts, so
            # that at most about 10 million numbers are in memory at once.
            for part in np.array_split(draws[cell], 1 + n_bootstrap * own.size // 10**7):
                drawn = rng.multinomial(max(1, round(size)), own / own.sum(), size=len(part))
                part[:] = (drawn @ kinds).reshape(-1, 2, 2)
        return draws

    def _unit_kinds(self, sums: FloatArray) -> Iterator[Any]:
        """Yield (kinds, counts, n_drawn) of each cell with weight, from which units are drawn.

        A *kind* is a vector that units add, four weights by true and predicted class. Its count is
        the number of units that add it. Four more kinds without a count come last, each with one
        entry. Their weight is the weight of the rows that have the information of one row of
        another unit. ``resampled`` gives them the count 1/2. Fewer units are drawn than there are
        if few units do not show well how much units vary (``share_of_few``), or if groups are known
        by probability. All kinds are then larger by the same factor, so that the expected sum is
        the same.
        """
        assert self.units is not None
        has_weight, cells = sums.any(axis=0), self.units.cells
        names = "false_positive_rate", "true_positive_rate"
        sizes = np.stack([self.means(name).n_effective for name in names], axis=1)
        of_rows = np.repeat(self.weights.sum(axis=-1) / np.maximum(sizes, 1.0), 2, axis=-1)
        ends = np.flatnonzero(np.diff(cells[has_weight])) + 1
        for own in np.split(np.flatnonzero(has_weight), ends):
            n_equal = np.resize(self.units.n_equal, has_weight.size)[own]
            cell, added_by = cells[own[0]], (sums[:, own] / n_equal).T
            most, squares = added_by.max(), self.sums["products"][cell].sum()
            # Vectors are rounded, so that the order of the rows does not matter.
            kinds, place = np.unique(np.round(added_by / most, 9), axis=0, return_inverse=True)
            counts = np.bincount(place.ravel(), n_equal)
            kinds = np.vstack([kinds * most, np.diag(of_rows[cell])])
            kish = sums[:, own].sum() ** 2 / squares
            # The first factor is 1 unless groups are known by probability, see MeasuredRows.table.
            information = (n_equal * added_by.sum(axis=1) ** 2).sum() / squares
            share = information * float(share_of_few(kish, kish))
            yield kinds / share, counts, share * n_equal.sum()

    def checked_rate(
        self, name: str, of_cells: IntArray, zero_division: ZeroDivision = "raise"
    ) -> FloatArray:
        """Return a rate of each cell; raise if it is undefined for a cell in ``of_cells``.

        With ``zero_division=nan`` nothing is raised, and undefined rates are NaN.
        """
        values = rates_of(self.weights, name)
        cell = self.groups.undefined(values, of_cells, zero_division)
        if cell is not None:
            lacking = rate_named(name).lacking
            raise ValueError(
                f"Group {cell!r} has no {lacking}, so its {name.replace('_', ' ')} is "
                "undefined. Merge small groups or add data, or pass zero_division=numpy.nan to "
                "get NaN."
            )
        return values

    def compare(
        self,
        kind: str,  # "difference", "ratio" or "total"
        rates: tuple[str, ...],
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Return the worst comparison of rates between groups, or the mean one.

        The total of a comparison is the sum of the differences of all rates.
        """
        check_agg(agg)
        values = []
        for rate in rates:
            of_cells = self.checked_rate(rate, self.groups.compared_by(reference), zero_division)
            overall = rates_of(self.groups.peer_sums(self.weights), rate)
            if kind != "ratio":
                values.append(self.groups.differences(of_cells, overall, reference=reference))
                continue
            first, second = self.groups.sides(of_cells, overall, reference)
            if is_strict(zero_division) and np.any(np.maximum(first, second) == 0):
                raise ValueError(
                    f"The {rate.replace('_', ' ')} is 0 in both groups of a pair, so their ratio "
                    "is undefined. Use the difference, or pass zero_division=numpy.nan to get NaN."
                )
            values.append(ratios(first, second))
        if kind == "total":
            return aggregate(np.sum(np.abs(values), axis=0), agg, zero_division)
        is_ratio = kind == "ratio"
        return aggregate(np.concatenate(values), agg, zero_division, worst_is_smallest=is_ratio)

    def largest(self, rate: str, zero_division: ZeroDivision = "raise") -> float:
        """Return the largest rate of a cell that has weight."""
        cells = self.groups.present
        return float(self.checked_rate(rate, cells, zero_division)[cells].max())


def total(
    tables: Sequence[GroupTable],
    order: Mapping[str, list[Any]] = MappingProxyType({}),
    last: str | None = None,
) -> tuple[GroupTable, IntArray]:
    """Add up tables of the same attributes.

    Returns the total, and the number in the total of each cell of the first table, then of the
    second, and so on. ``order`` gives the order of the levels of some attributes. The levels of
    other attributes are sorted if they are sorted in all tables, and otherwise in the order of
    their appearance. The level ``last`` always comes last. Units and ``peers`` are not kept.
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
    sums = _gathered(tables, cells, len(combinations))
    measures = {
        name: added([table.measures[name] for table in tables]).merged(cells, len(combinations))
        for name in first.measures
    }
    scores = [table.scores for table in tables if table.scores is not None]
    of_scores = total(scores, order, last)[0] if scores else None
    return GroupTable(levels, combinations, sums, measures, of_scores, first.within), cells


def _gathered(tables: Sequence[GroupTable], cells: IntArray, n_cells: int) -> dict[str, FloatArray]:
    """Add up the sums of several tables by new cells.

    ``cells`` has the new cell of each cell of the first table, then of the second, and so on.
    """
    gathered = {}
    for name in {name: None for table in tables for name in table.sums}:
        parts = [table.squares if name == "squares" else table.sums[name] for table in tables]
        gathered[name] = np.zeros((n_cells, *parts[0].shape[1:]))
        np.add.at(gathered[name], cells, np.concatenate(parts))
    return gathered
