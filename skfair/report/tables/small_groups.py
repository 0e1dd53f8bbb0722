"""Suppression of numbers of groups so small that they tell something about single people.

There are three rules. A group is *small* if it has fewer people than ``suppress_below``.

1. If a group of one attribute is small, its rows are left out of all numbers
   (:func:`without_small`).
2. If a crossed group is small, it is hidden. Other groups are hidden too if the small one could be
   computed from them and from all sums that are shown. For example, if all men and all men over 30
   are shown, the men under 30 can be computed. :class:`Sums` decides which sums may be shown.
3. A group may be large and have few people of a class, such as three qualified men among 60. Then
   no measure of the group that joins decisions and outcomes is shown, because together with the
   selection rate it says how many of the three were selected. :class:`Sums` decides this too, with
   the number of people of each class in place of the number of people.

:class:`Shown` applies the rules to all tables of an audit. ``audit_table`` makes one, and so does
the page of a committee for each model. The audit of a data set, which has other tables, uses
:class:`Sums` directly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.levels import number_tuples
from skfair.groups.strata import Strata
from skfair.groups.table import GroupTable
from skfair.report.tables.gaps import Gap
from skfair.report.tables.options import Options
from skfair.report.tables.subgroups import Table, tables_of
from skfair.report.tables.views import View, is_joint, masked, views_of
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.text import plural

HIDDEN = "hidden"  # the value of ``View.apart`` of a group that may not be shown
# Rates are listed for at most this many strata, the largest ones, because a reader would not look
# through more.
MOST_STRATA = 20
# At most this many cells (groups in a stratum) are judged together. Each of them costs a projection
# of all secrets (see Sums). A projection takes 2 ms for 300 cells, and four times as long for 600.
MOST_CELLS = 300


def without_small(sample: GroupTable, least: float) -> tuple[GroupTable, list[tuple[str, str]]]:
    """Leave out the rows of groups of an attribute that have fewer than ``least`` people.

    Returns the rest of the sample, and the (attribute, level) of each group that is left out.
    Declared categories that no row has are listed, too. If rows are left out, groups of other
    attributes may become small, so the search is repeated until no group is.
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
    """Return the number of people of each class, true or predicted, in each cell of a sample.

    The shape is (n_classes, n_cells). These are the numbers that rates by class divide by, such as
    the people of the positive class for the true positive rate. If rows have weights, they are
    effective numbers.
    """
    named = [
        own.n_effective
        for name, own in sample.measures.items()
        if is_joint(name) and "accuracy" not in name
    ]
    return np.unique(np.reshape(named, (-1, sample.counts.size)), axis=0)


class _Known:
    """What is known of the sums of one kind of people, such as those of the positive class.

    Atoms without such people leave the vectors, because a reader knows that they add nothing. So a
    group and the part of it that has these people are one sum.
    """

    def __init__(self, counts: FloatArray, secret: FloatArray) -> None:
        self._has_people = counts > 0  # (n_atoms,)
        self.secret = np.unique(secret * self._has_people, axis=0)
        self.known = np.empty((0, counts.size))

    def extended(self, row: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return what is known and secret if a sum is shown; None if a secret could be computed."""
        row = row * self._has_people
        new = row - self.known.T @ (self.known @ row)
        new -= self.known.T @ (self.known @ new)  # once more, to remove the rounding of the first
        length = np.linalg.norm(new)
        if length < SUM_ROUNDING:  # the sum could be computed before
            return self.known, self.secret
        new /= length
        secret = self.secret - np.outer(self.secret @ new, new)
        if (np.linalg.norm(secret, axis=1) < SUM_ROUNDING).any():
            return None
        return np.vstack([self.known, new]), secret

    def learn(self, whole: _Known, cells: IntArray) -> None:
        """Let all be known that is known of larger atoms; ``cells`` has the one of each atom."""
        # Without secrets, ``shown`` does not record in ``known`` what is shown. So each sum over
        # whole atoms may have been shown.
        known = whole.known if len(whole.secret) else np.eye(whole.known.shape[1])
        rows = np.vstack([self.known, known[:, cells] * self._has_people])
        _, lengths, basis = np.linalg.svd(rows, False)
        self.known = basis[lengths > SUM_ROUNDING]
        for _ in range(2):  # the second pass removes the rounding of the first
            self.secret -= self.secret @ self.known.T @ self.known
        # Combinations that readers can compute already are no longer secret.
        self.secret = self.secret[np.linalg.norm(self.secret, axis=1) >= SUM_ROUNDING]


class Sums:
    """Decide which sums may be shown, so that no sum of few people can be computed from them.

    An *atom* is a group of ``view``, usually the crossing of all attributes. A group of fewer
    attributes is a sum of atoms, so it is a vector of ones and zeros with an entry for each atom. A
    reader who knows some sums can compute each linear combination of them. So, for each kind of
    people that is counted (:class:`_Known`):

    - ``known`` is an orthonormal basis of the sums that are shown so far,
    - ``secret`` has the sums of few people, minus their projections on ``known``. If one of these
      vectors became 0, the reader could compute this sum.

    The object has a state: :meth:`shown` and :meth:`hidden` show sums one after the other, and what
    was shown earlier limits what may be shown later. The sum of all atoms is shown first.
    """

    def __init__(
        self,
        sample: GroupTable,
        view: View,  # the view whose groups are the atoms
        counts: FloatArray,  # (n_counts, n_cells of the sample): numbers of people that may be few
        depth: int,  # sums of few people are sought among groups of up to this many attributes
        least: float,  # a sum of fewer people than this, but not of 0, has few people
        strata: IntArray | None = None,  # (n_cells of the sample,): if given, it splits the atoms
    ) -> None:
        self._made_of, codes = (sample, view, counts, depth, least), view.codes
        if strata is not None:
            codes = _crossed(codes, strata)
        self.n_atoms = int(codes.max()) + 1  # the length of the vectors
        self._codes, self._least, atoms = codes, least, np.eye(self.n_atoms)
        self._kinds = []
        for own in counts:
            of_atoms = np.bincount(codes, own, self.n_atoms).astype(np.float64)
            secret = atoms[:0]
            # If no atom has few people, no larger sum has, so there are no secrets.
            if self._are_few(of_atoms).any():
                larger = self._larger_sums(sample, view, own, depth, strata)
                rows = np.array([*atoms, *larger])
                secret = rows[self._are_few(rows @ of_atoms)]
            self._kinds.append(_Known(of_atoms, secret))
        self.is_whole_shown = self._admits(np.ones(self.n_atoms))

    def _larger_sums(
        self,
        sample: GroupTable,
        view: View,
        counts: FloatArray,  # (n_cells of the sample,)
        depth: int,
        strata: IntArray | None,
    ) -> Iterator[FloatArray]:
        """Yield the sums of atoms that may have few people, whether they do or not.

        They are all rows, the groups of up to ``depth`` attributes, and what is left of each of
        these if all groups of another view with enough people are taken away from it
        (:meth:`_rests`). With strata, they are also these groups in each stratum.
        """
        whole = np.zeros_like(view.codes)
        tables = [own.codes for own in tables_of(sample, depth, 0)]
        views = [whole, *tables[: len(sample.attributes)]]
        for codes in tables:
            yield from self._rests(codes, views, counts)
        parts = [whole, *tables]
        if strata is not None:
            parts.append(view.codes)
            split = [_crossed(own, strata) for own in parts]
            for own, joint in zip(parts, split, strict=True):
                yield from self._rests(joint, (own, strata), counts)
            parts += split
        yield from self._rests(self._codes, parts, counts)
        for codes in parts:
            for i in range(codes.max() + 1):
                yield self._row(codes == i)

    def _rests(
        self, joint: IntArray, sides: Sequence[IntArray], counts: FloatArray
    ) -> Iterator[FloatArray]:
        """Yield, for each group of each side, the sum of its small parts.

        If all larger parts and the whole group are shown, this sum can be computed. ``joint`` has
        the part of each cell of the sample, and ``sides`` have its group.
        """
        is_few = self._are_few(np.bincount(joint, counts).astype(np.float64))[joint]
        for codes in sides:
            for i in np.unique(codes[is_few]):
                yield self._row((codes == i) & is_few)

    def within(self, strata: IntArray) -> Sums:
        """Return the sums over atoms split by stratum, given what is shown of the whole atoms.

        ``strata`` has the stratum of each cell of the sample.
        """
        split = Sums(*self._made_of, strata=strata)
        cells = np.zeros(split.n_atoms, np.intp)
        cells[split._codes] = self._codes
        for own, whole in zip(split._kinds, self._kinds, strict=True):
            own.learn(whole, cells)
        return split

    def _are_few(self, n_people: FloatArray) -> BoolArray:
        """Return which counts are above 0 and below the smallest count that may be shown."""
        return np.asarray((n_people > 0) & (n_people < self._least))

    def _row(self, is_inside: BoolArray) -> FloatArray:
        """Return the vector of a sum, given which cells of the sample it includes."""
        return (np.bincount(self._codes, is_inside, self.n_atoms) > 0).astype(float)

    def _admits(self, row: FloatArray) -> bool:
        """Show a sum and return True, unless a sum of few people could then be computed."""
        after = []
        for own in self._kinds:
            both = own.extended(row)
            if both is None:
                return False
            after.append(both)
        for own, (known, secret) in zip(self._kinds, after, strict=True):
            own.known, own.secret = known, secret
        return True

    def shown(self, codes: IntArray, groups: IntArray) -> BoolArray:
        """Show groups one after the other, and return which of them may be shown.

        ``codes`` has the group of each cell of the sample. ``groups`` has the groups in the order
        in which they are tried. If two groups cannot both be shown, the later one is hidden.
        """
        if not any(len(own.secret) for own in self._kinds):
            return np.ones(len(groups), bool)
        return np.array([self._admits(self._row(codes == i)) for i in groups.tolist()], bool)

    def hidden(self, view: View) -> BoolArray:
        """Return which groups of a view may not be shown. Larger groups are shown first."""
        order = np.argsort(-view.n_rows, kind="stable")
        return ~self.shown(view.codes, order)[np.argsort(order)]


def _crossed(codes: IntArray, strata: IntArray) -> IntArray:
    """Number the combinations of a group and a stratum that occur."""
    sizes = np.array([codes.max() + 1, strata.max() + 1])
    return number_tuples([codes.astype(np.int64), strata], sizes)[0]


class Shown:
    """The parts of a sample that may be shown, so that they tell nothing about few people.

    ``sample`` is without the rows of small groups, ``views`` are the views with the hidden groups
    marked, and ``hidden`` is the table of these groups for the report. The methods remove from
    later tables what may not be shown. Two lists have an element for each view: ``_rows`` are the
    sums by the number of people, and ``_classes`` are the sums by the number of people of a class.
    """

    def __init__(self, sample: GroupTable, options: Options) -> None:
        sample, left_out = without_small(sample, options.suppress_below)
        views, self._least = views_of(sample, options), options.suppress_below
        self._least_compared = options.min_group_size
        # The atoms of the sums are the groups of the crossing, the last view, and all views share
        # one object. If there are too many crossed groups to list them, there is no such view, and
        # each attribute has sums of its own.
        self._is_listed = len(views) > len(sample.attributes) or len(views) == 1
        spaces, depth = (views[-1:], options.depth) if self._is_listed else (views, 0)
        self._counts = sample.people[None], class_counts(sample)
        self._rows, self._classes = (
            [Sums(sample, view, own, depth, self._least) for view in spaces]
            * (len(views) // len(spaces))
            for own in self._counts
        )
        if not all(own.is_whole_shown for own in self._classes):  # a class has few people in all
            sample = replace(sample, measures=masked(sample.measures, True))
        self.sample, self.views, crossed = sample, [], []
        for view, rows, classes in zip(views, self._rows, self._classes, strict=True):
            apart = np.where(rows.hidden(view), HIDDEN, view.apart)
            crossed += [(view.name, view.names[i]) for i in np.flatnonzero(apart == HIDDEN)]
            too_few = [group for name, group in left_out if name in view.attributes]
            small = [*compress(view.names, (apart == HIDDEN) | (apart == "small"))]
            if len(view.attributes) > 1 and small:  # names would be too many
                small = [plural(len(small), "intersection")]
            too_few += small
            view = view._replace(apart=apart, too_few=tuple(too_few))
            self.views.append(view.masked(classes.hidden(view)))
        self.hidden = pd.DataFrame([*left_out, *crossed], columns=["view", "group"])

    def without_hidden(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table of groups without the hidden groups."""
        if not len(table) or not len(self.hidden):
            return table
        groups = pd.MultiIndex.from_frame(table[["view", "group"]])
        return table[~groups.isin(pd.MultiIndex.from_frame(self.hidden))].reset_index(drop=True)

    def strata(self, gaps: list[Gap], confidence: float) -> pd.DataFrame:
        """Return the rates of the groups of each attribute in each of the largest strata.

        Cells (groups in a stratum) from which numbers of few people could be computed are left out.
        This must be called last, after all sums that are shown elsewhere have been shown.
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
            n_listed = min(MOST_STRATA, max(1, MOST_CELLS // both[0].n_atoms))
            is_listed = np.isin(np.arange(order.size), order[:n_listed])
            # All other strata count as one, because their sum can be computed from what is listed.
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

        Larger cells are shown first. The groups of a stratum are compared, and from the rate of one
        and its difference from another, the rate of the other follows. So if a cell that is
        compared may not be shown, no cell of its stratum is shown.
        """
        table, n_groups = self.sample.compared(view.attributes, self.sample.within), len(view.names)
        group, stratum = table.groups.group_of, table.groups.stratum_of
        n_units = None if table.units is None else table.units.n_lying(len(table.codes))
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
            asked = asked[is_open[asked]]  # rates by class are only shown of cells that are shown
        cells = view._replace(
            names=[view.names[g] for g in group],
            n_rows=table.counts,
            n_units=n_units,
            apart=np.where(is_shown[0], apart, HIDDEN),
            measures=masked(table.measures, ~is_shown[1]),
        )
        return cells, stratum

    def subgroups(self, tables: list[Table], table: pd.DataFrame) -> pd.DataFrame:
        """Return the rows of a table of subgroups that may be shown, given all groups shown before.

        ``tables`` are the tables of :func:`~skfair.report.tables.subgroups.tables_of`. If crossed
        groups are not listed, there are no sums of crossed groups to check. Then the subgroups of
        some attributes are shown only if no intersection of these attributes is small.
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
