"""Suppression of numbers of groups so small that they tell something about single people.

Rows of an attribute's group that is too small are left out of all numbers. A crossed group that is
too small is hidden, and so are others from which, together with all sums that are shown, it could
be computed. A group may also be large and have few people of a class: of 60 men three are
qualified. Then no measure that joins decisions and outcomes is shown of it, because with the
selection rate each of them says how many of the three were selected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import compress

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.levels import number_tuples
from skfair.groups.strata import Strata
from skfair.groups.table import GroupTable
from skfair.report.gaps import Gap
from skfair.report.options import Options
from skfair.report.subgroups import Table, tables_of
from skfair.report.views import View, is_joint, masked, views_of
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.text import plural

HIDDEN = "hidden"
# Strata of which rates are listed at most, the largest ones: about what a reader looks through.
MOST_STRATA = 20
# Cells whose sums are judged together, at most: each of them costs a projection of all secrets,
# which takes 2 ms for 300 cells and four times as long for twice as many.
MOST_CELLS = 300


def without_small(sample: GroupTable, least: float) -> tuple[GroupTable, list[tuple[str, str]]]:
    """Leave out the rows of groups of an attribute that are too small to be shown; list these.

    Declared categories that no row has are listed, too.
    """
    left_out = [
        (name, str(level))
        for place, name in enumerate(sample.attributes)
        for i, level in enumerate(sample.levels[name])
        if i not in sample.codes[:, place]
    ]
    while True:
        is_small = {}
        for place, name in enumerate(sample.attributes):
            counts = np.bincount(sample.codes[:, place], sample.people, len(sample.levels[name]))
            is_small[name] = (counts > 0) & (counts < least)
            left_out += [
                (name, str(sample.levels[name][i])) for i in np.flatnonzero(is_small[name])
            ]
        if not any(own.any() for own in is_small.values()):
            return sample, left_out

        def kept(table: GroupTable, is_small: dict[str, BoolArray] = is_small) -> GroupTable:
            columns = zip(is_small.values(), table.codes.T, strict=False)
            return table.only(~np.any([own[codes] for own, codes in columns], axis=0))

        scores = None if sample.scores is None else kept(sample.scores)
        sample = replace(kept(sample), scores=scores)
        if not sample.counts.size:
            noun = "rows" if sample.units is None else "persons"
            raise ValueError(
                f"No group has {least:g} {noun}, and smaller ones are not shown. Pass "
                "suppress_below=1 for a report that nobody else sees."
            )


def class_counts(sample: GroupTable) -> FloatArray:
    """Return the people of each class, true or predicted, in each cell: (n_classes, n_cells).

    They are what rates by class divide by; those of weighted rows are effective numbers.
    """
    named = [
        own.n_effective
        for name, own in sample.measures.items()
        if is_joint(name) and "accuracy" not in name
    ]
    return np.array(named).reshape(-1, sample.counts.size)


class Sums:
    """Which sums over cells may be shown, so that none of few people can be computed from them.

    A sum over some of the cells is a row of ones and zeros. Rows that are shown span what can be
    computed; sums of few people must stay outside of it.
    """

    def __init__(
        self,
        sample: GroupTable,
        view: View,  # its groups are the cells
        counts: FloatArray,  # (n_counts, n_cells of the sample): people, of whom there may be few
        depth: int,  # of the groups that are sums of cells
        least: float,
        strata: IntArray | None = None,  # of the cells of the sample, by which the cells are split
    ) -> None:
        self._made_of, codes = (sample, view, counts, depth, least), view.codes
        if strata is not None:
            codes = _crossed(codes, strata)
        units = np.eye(int(codes.max()) + 1)
        self._codes, self._least, self._known = codes, least, units[:0]
        of_cells = [np.bincount(codes, own, len(units)) for own in counts]
        self._counts = np.reshape(of_cells, (-1, len(units)))
        is_few, rows = self._are_few(units), units[:0]
        if is_few.any():
            tables = [own.codes for own in tables_of(sample, depth, 0)]
            parts, rests = [np.zeros_like(view.codes), *tables], list[FloatArray]()
            if strata is not None:
                parts.append(view.codes)
                split = [_crossed(own, strata) for own in parts]
                for own, joint in zip(parts, split, strict=True):
                    rests += self._rests(joint, (own, strata), counts)
                parts += split
            groups = [self._row(codes == i) for codes in parts for i in range(codes.max() + 1)]
            rows = np.array([*units, *groups, *(row * is_few for row in groups), *rests])
        self._secret = rows[self._are_few(rows)]
        self.is_whole_shown = self._admits(np.ones(len(units)))

    def _rests(
        self, joint: IntArray, sides: tuple[IntArray, IntArray], counts: FloatArray
    ) -> Iterator[FloatArray]:
        """Yield the groups of few people within each group, and within each stratum, added up.

        They are what is left of a total if all larger groups are shown.
        """
        for own in counts:
            n_people = np.bincount(joint, own)[joint]
            is_few = (n_people > 0) & (n_people < self._least)
            for codes in sides:
                for i in np.unique(codes[is_few]):
                    yield self._row((codes == i) & is_few)

    def within(self, strata: IntArray) -> Sums:
        """Return the sums over cells split by stratum, beside those that are shown here."""
        split = Sums(*self._made_of, strata=strata)
        # If there are no secrets, any sum over these cells may be shown already.
        known = self._known if len(self._secret) else np.eye(self.n_cells)
        cells = np.zeros(split.n_cells, np.intp)
        cells[split._codes] = self._codes
        _, lengths, basis = np.linalg.svd(np.vstack([split._known, known[:, cells]]), False)
        split._known = basis[lengths > SUM_ROUNDING]
        for _ in range(2):  # the second pass removes the rounding of the first
            split._secret -= split._secret @ split._known.T @ split._known
        # What can be computed already is no secret any more.
        split._secret = split._secret[np.linalg.norm(split._secret, axis=1) >= SUM_ROUNDING]
        return split

    def _are_few(self, rows: FloatArray) -> BoolArray:
        n_people = rows @ self._counts.T
        return np.asarray(((n_people > 0) & (n_people < self._least)).any(axis=1))

    def _row(self, is_inside: BoolArray) -> FloatArray:
        """Return which cells those of the sample are part of."""
        return (np.bincount(self._codes, is_inside, self._counts.shape[1]) > 0).astype(float)

    @property
    def n_cells(self) -> int:
        """The number of cells, of which sums are sums."""
        return self._counts.shape[1]

    def _admits(self, row: FloatArray) -> bool:
        """Show a sum, unless one of few people could be computed then."""
        new = row - self._known.T @ (self._known @ row)
        new -= self._known.T @ (self._known @ new)
        length = np.linalg.norm(new)
        if length < SUM_ROUNDING:
            return True
        new /= length
        secret = self._secret - np.outer(self._secret @ new, new)
        if (np.linalg.norm(secret, axis=1) < SUM_ROUNDING).any():
            return False
        self._secret, self._known = secret, np.vstack([self._known, new])
        return True

    def shown(self, codes: IntArray, groups: IntArray) -> BoolArray:
        """Show groups of the cells of the sample one after the other; return which may be."""
        if not len(self._secret):
            return np.ones(len(groups), bool)
        return np.array([self._admits(self._row(codes == i)) for i in groups.tolist()], bool)

    def hidden(self, view: View) -> BoolArray:
        """Return which groups of a view may not be shown; larger ones are shown first."""
        order = np.argsort(-view.n_rows, kind="stable")
        return ~self.shown(view.codes, order)[np.argsort(order)]


def _crossed(codes: IntArray, strata: IntArray) -> IntArray:
    """Number the combinations of a group and a stratum that occur."""
    sizes = np.array([codes.max() + 1, strata.max() + 1])
    return number_tuples([codes.astype(np.int64), strata], sizes)[0]


class Shown:
    """The parts of a sample that may be shown, so that they tell nothing about few people."""

    def __init__(self, sample: GroupTable, options: Options) -> None:
        sample, left_out = without_small(sample, options.suppress_below)
        views, self._least = views_of(sample, options), options.suppress_below
        self._least_compared = options.min_group_size
        # If there are too many crossed groups to list them, each attribute stands by itself.
        self._is_listed = len(views) > len(sample.attributes) or len(views) == 1
        spaces, depth = (views[-1:], options.depth) if self._is_listed else (views, 0)
        self._counts = sample.people[None], class_counts(sample)
        self._rows, self._classes = (
            [Sums(sample, view, own, depth, self._least) for view in spaces]
            * (len(views) // len(spaces))
            for own in self._counts
        )
        if not all(own.is_whole_shown for own in self._classes):
            sample = replace(sample, measures=masked(sample.measures, True))
        self.sample, self.views, crossed = sample, [], []
        for view, rows, classes in zip(views, self._rows, self._classes, strict=True):
            apart = np.where(rows.hidden(view), HIDDEN, view.apart)
            crossed += [(view.name, view.names[i]) for i in np.flatnonzero(apart == HIDDEN)]
            too_few = [group for name, group in left_out if name in view.attributes]
            small = [*compress(view.names, (apart == HIDDEN) | (apart == "small"))]
            if len(view.attributes) > 1 and small:  # often many, which are in the list of hidden
                small = [plural(len(small), "intersection")]
            too_few += small
            view = view._replace(apart=apart, too_few=tuple(too_few))
            self.views.append(view.masked(classes.hidden(view)))
        self.hidden = pd.DataFrame([*left_out, *crossed], columns=["view", "group"])

    def without_hidden(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table of groups without those that are hidden."""
        if not len(table) or not len(self.hidden):
            return table
        groups = pd.MultiIndex.from_frame(table[["view", "group"]])
        return table[~groups.isin(pd.MultiIndex.from_frame(self.hidden))].reset_index(drop=True)

    def strata(self, gaps: list[Gap], confidence: float) -> pd.DataFrame:
        """Return the rates of the groups of each attribute in each of the largest strata.

        Cells from which numbers of few people could be computed are left out. They are judged last,
        so all sums that are shown elsewhere are known to the reader.
        """
        sample = self.sample
        if not sample.within:
            return pd.DataFrame()
        strata = sample.strata(sample.within)
        order = np.argsort(-np.bincount(strata.codes, sample.people), kind="stable")
        measures = {measure for gap in gaps for measure in gap.measures}
        tables, split = [], dict[int, Sums]()
        for view, *both in zip(self.views, self._rows, self._classes, strict=True):
            if len(view.attributes) > 1:
                continue
            n_listed = min(MOST_STRATA, max(1, MOST_CELLS // both[0].n_cells))
            is_listed = np.isin(np.arange(order.size), order[:n_listed])
            # The other strata are one rest, which can be computed from what is listed.
            of_cells = np.where(is_listed, np.arange(order.size), order.size)[strata.codes]
            for sums in both:
                if id(sums) not in split:
                    split[id(sums)] = sums.within(of_cells)
            rows, classes = (split[id(sums)] for sums in both)
            cells, stratum = self._cells_within(view, strata, is_listed, rows, classes)
            for name, of_cell in cells.measures.items():
                if name in measures:
                    rates = cells.rates(name, of_cell.means, *of_cell.interval(confidence))
                    rates.insert(1, "stratum", [strata.names[s] for s in stratum])
                    tables.append(rates[cells.apart != HIDDEN])
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def _cells_within(
        self, view: View, strata: Strata, is_listed: BoolArray, rows: Sums, classes: Sums
    ) -> tuple[View, IntArray]:
        """Return the groups of a view split by stratum, as a view, and the stratum of each.

        Larger ones are shown first. Groups of a stratum are compared, so the rate of one and its
        difference from another tell the rate of the other: if one that is compared may not be
        shown, none of its stratum is.
        """
        table, n_groups = self.sample.compared(view.attributes, self.sample.within), len(view.names)
        group, stratum = table.groups.group_of, table.groups.stratum_of
        n_units = None if table.units is None else np.bincount(table.units.cells)
        people, apart = table.counts if n_units is None else n_units, view.apart[group]
        is_asked = is_listed[stratum] & (people >= self._least) & (apart != HIDDEN)
        asked = np.flatnonzero(is_asked)
        asked = asked[np.argsort(-people[asked], kind="stable")]
        of_cells, numbers = strata.codes * n_groups + view.codes, stratum * n_groups + group
        is_shown = np.zeros((2, people.size), bool)
        is_compared = is_asked & (apart == "") & (people >= self._least_compared)
        for sums, is_open in zip((rows, classes), is_shown, strict=True):
            is_open[asked] = sums.shown(of_cells, numbers[asked])
            is_open &= ~np.isin(stratum, stratum[is_compared & ~is_open])
            asked = asked[is_open[asked]]  # rates by class are shown of cells that are shown
        cells = view._replace(
            names=[view.names[g] for g in group],
            n_rows=table.counts,
            n_units=n_units,
            apart=np.where(is_shown[0], apart, HIDDEN),
            measures=masked(table.measures, ~is_shown[1]),
        )
        return cells, stratum

    def subgroups(self, tables: list[Table], table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of subgroups that may be shown as well.

        If crossed groups are not listed, these are subgroups by attributes none of whose
        intersections is too small.
        """
        for counts, (sums, *_) in zip(self._counts, (self._rows, self._classes), strict=True):
            if not len(table):
                break
            is_asked = table["measure"].map(is_joint) | (sums is self._rows[0])
            asked = set(table["subgroup"][is_asked])
            is_open: dict[str, bool] = {}
            for own in tables:
                is_named = np.array([name in asked for name in own.names], bool)
                judged = sums.shown(own.codes, own.kept[is_named])
                if not self._is_listed:
                    of_groups = np.array([np.bincount(own.codes, n, own.n_groups) for n in counts])
                    judged[:] = not ((of_groups > 0) & (of_groups < self._least)).any()
                is_open |= dict(zip(compress(own.names, is_named), judged, strict=True))
            table = table[~is_asked | table["subgroup"].map(is_open).eq(True)]
        return table.reset_index(drop=True)
