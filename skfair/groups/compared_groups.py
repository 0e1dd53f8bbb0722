"""Groups of the sensitive features that a metric compares, within strata if asked.

*Control features* are attributes that may explain a difference, such as a department. Parity is
then asked within each of their levels, the *strata*. A *cell* is a group within one stratum, and a
metric is a function of cells. The cells of one attribute and stratum are compared with each other
(they are *peers*) and have successive numbers. Without control features a cell is a group, and its
peers are the other groups of its sensitive attribute.

:class:`ComparedGroups` is made by ``cohort.py`` from rows and by ``table.py`` from sums over cells.
Its methods say which cells are compared. :func:`ratios` compares two values, and :func:`aggregate`
reduces all comparisons to one number. The *reference* says with what each cell is compared: with
each other peer ("pairwise"), all peers together ("overall"), or one group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray, IntervalLike
from skfair.groups.encoding import GroupEncoding, GroupLevels
from skfair.groups.intervals import Intervals
from skfair.groups.probabilities import whole_numbers
from skfair.groups.reference import reference_groups
from skfair.groups.strata import Strata
from skfair.utils.factorize import factorize
from skfair.utils.validation import is_strict

Agg = Literal["worst", "mean"]
# "pairwise", "overall", a group, or a dict of the level of each attribute.
Reference: TypeAlias = Any
ZeroDivision = Literal["raise"] | float


@dataclass(frozen=True, eq=False)
class ComparedGroups:
    """The cells of the rows, and which of them are compared with each other."""

    # The cell of each row for each sensitive attribute, in an encoding whose "groups" are the
    # cells. They are sorted by attribute, then stratum, then group
    cells: GroupEncoding
    groups: GroupLevels  # the groups as the user knows them
    # (n_cells,): the group and the stratum of each cell
    group_of: IntArray
    stratum_of: IntArray
    strata: tuple[str, ...] | None  # one name per stratum; None without control features
    is_present: BoolArray  # (n_cells,): false for a cell of a stratum whose rows have no weight

    @classmethod
    def of(
        cls,
        groups: GroupEncoding,
        strata: Strata | None = None,
        weights: FloatArray | None = None,
        row_counts: IntArray | None = None,  # number of rows that each row stands for; None for 1
    ) -> ComparedGroups:
        """Compare groups of rows, within strata if there are any."""
        if strata is not None:
            return cls._within(strata, groups, weights, row_counts)
        every = np.arange(groups.counts.size)
        stratum, is_present = np.zeros(every.size, np.int64), np.ones(every.size, bool)
        return cls(groups, groups.levels, every, stratum, None, is_present)

    @classmethod
    def _within(
        cls,
        strata: Strata,
        groups: GroupEncoding,
        weights: FloatArray | None,
        row_counts: IntArray | None,
    ) -> ComparedGroups:
        """Split groups into cells, one for each stratum in which a group has rows."""
        # Groups are numbered over all attributes, so stratum * n_groups + group identifies a pair.
        numbers = strata.codes * groups.n_groups
        factorized = [factorize(numbers + codes) for codes in groups.codes]
        offsets = np.cumsum([0, *(len(attribute.levels) for attribute in factorized)])
        stratum, group = np.divmod(
            np.concatenate([attribute.levels for attribute in factorized]), groups.n_groups
        )
        names = tuple(
            f"{groups.names[g]} (stratum {strata.names[s]})"
            for s, g in zip(stratum.tolist(), group.tolist(), strict=True)
        )
        pairs = zip(factorized, offsets[:-1], strict=True)
        codes = np.stack([attribute.codes + start for attribute, start in pairs])
        people = groups.people if row_counts is None else row_counts
        counts = sum(np.bincount(of_rows, people, group.size) for of_rows in codes)
        # If groups are known by probability, counts of people are fractions. There is one attribute
        # then, and they are rounded so that each stratum has a whole number of people.
        if groups.people is not None:
            parts = np.split(counts, np.flatnonzero(np.diff(stratum)) + 1)
            counts = np.concatenate([whole_numbers(part) for part in parts])
        levels = GroupLevels((), (), None, names, offsets)
        cells = GroupEncoding(codes, levels, np.asarray(counts, dtype=np.int64), groups.people)
        is_present = cells.sums(weights) > 0
        return cls(cells, groups.levels, group, stratum, strata.names, is_present)

    @cached_property
    def starts(self) -> IntArray:
        """First cell of each attribute and stratum, then the number of cells."""
        attribute = self.cells.attribute_of_group
        is_new = (np.diff(attribute) != 0) | (np.diff(self.stratum_of) != 0)
        return np.concatenate(([0], np.flatnonzero(is_new) + 1, [attribute.size]))

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The first and the second cell of every pair of peers that have weight."""
        first, second = [], []
        for start, stop in pairwise(self.starts.tolist()):
            members = start + np.flatnonzero(self.is_present[start:stop])
            i, j = np.triu_indices(members.size, k=1)
            first.append(members[i])
            second.append(members[j])
        pairs = np.concatenate(first), np.concatenate(second)
        if self.strata is not None and not pairs[0].size:
            raise ValueError(
                "No stratum of control_features has rows of two groups, so there is nothing to "
                "compare. Use coarser control features, or merge strata."
            )
        return pairs

    def only_pairs(self, is_compared: BoolArray) -> ComparedGroups:
        """Return the same groups, of which only some of the ``pairs`` are compared."""
        if is_compared.all():
            return self
        restricted = replace(self)
        vars(restricted)["pairs"] = tuple(side[is_compared] for side in self.pairs)
        return restricted

    @property
    def present(self) -> IntArray:
        """The cells that have weight."""
        return np.flatnonzero(self.is_present)

    @cached_property
    def compared(self) -> IntArray:
        """The cells that are compared, which are those with a peer that has weight."""
        return np.unique(np.concatenate(self.pairs))

    def rows_of_cells(self) -> list[IntArray]:
        """Return the rows in each cell."""
        codes = self.cells.codes
        return [np.flatnonzero((codes == cell).any(axis=0)) for cell in range(self.group_of.size)]

    def sides(
        self, values: FloatArray, overall: FloatArray, reference: Reference
    ) -> tuple[FloatArray, FloatArray]:
        """Return the values of both sides of every comparison.

        ``values`` has an entry per cell, and ``overall`` has for each cell the value of all of its
        peers together, which is the second side if the reference is "overall" and unused otherwise.
        """
        if not is_group(reference) and reference == "overall":
            return values[self.compared], overall[self.compared]
        first, second = self.pairs_with(reference)
        return values[first], values[second]

    def differences(
        self, values: FloatArray, overall: FloatArray, *, reference: Reference = "pairwise"
    ) -> FloatArray:
        """Return the first side of every comparison minus the second; see ``sides``.

        The differences have a sign only if the reference is a group.
        """
        first, second = self.sides(values, overall, reference)
        return first - second if is_group(reference) else np.abs(first - second)

    def pairs_with(self, reference: Reference) -> tuple[IntArray, IntArray]:
        """Return the pairs of cells to compare: all, or (other, reference) if it is a group."""
        if not is_group(reference):
            return self.pairs
        is_reference = reference_groups(reference, self.groups)[self.group_of] & self.is_present
        cells, places = [], []
        for start, stop in pairwise(self.starts.tolist()):
            present = start + np.flatnonzero(self.is_present[start:stop])
            place = present[is_reference[present]]
            others = present[~is_reference[present]] if place.size else present[:0]
            cells.append(others)
            places.append(np.repeat(place, others.size))
        if self.strata is not None and not sum(of_stratum.size for of_stratum in cells):
            raise ValueError(
                f"No stratum of control_features has rows of reference={reference!r} and of "
                "another group, so there is nothing to compare. Use coarser control features."
            )
        return np.concatenate(cells), np.concatenate(places)

    def compared_by(self, reference: Reference) -> IntArray:
        """Return the cells that take part in comparisons; raise if there is no such reference."""
        if not is_group(reference):
            return self.compared
        return np.unique(np.concatenate(self.pairs_with(reference)))

    def peer_sums(self, table: FloatArray) -> FloatArray:
        """Add up a table with one entry per cell over all peers of each cell."""
        sums = np.add.reduceat(table, self.starts[:-1], axis=0)
        return np.repeat(sums, np.diff(self.starts), axis=0)

    def attributes(self) -> Iterator[tuple[IntArray, int, int, IntArray, IntArray]]:
        """Yield (codes, start, stop, first, second) for each attribute.

        Its cells are ``start`` to ``stop - 1``. The codes of the rows and both sides of the pairs
        count cells from ``start``.
        """
        first, second = self.pairs
        for codes, (start, stop) in zip(
            self.cells.codes, pairwise(self.cells.offsets.tolist()), strict=True
        ):
            own = (first >= start) & (first < stop)
            yield codes - start, start, stop, first[own] - start, second[own] - start

    def intervals(self, interval: IntervalLike) -> Intervals:
        """Return the percentile interval of each cell, given one for all or one per group."""
        return Intervals(interval, self.groups).take(self.group_of)

    def undefined(
        self, values: FloatArray, of_cells: IntArray, zero_division: ZeroDivision
    ) -> str | None:
        """Return the name of the first of these cells whose value is NaN, or None if there is none.

        It is also None for ``zero_division=nan``, because NaN is no error then.
        """
        is_error = is_strict(zero_division)
        missing = of_cells[np.isnan(values[of_cells])]
        return self.cells.names[missing[0]] if is_error and missing.size else None

    def check_class(
        self, values: FloatArray, of_cells: IntArray, is_positive: bool, zero_division: ZeroDivision
    ) -> None:
        """Raise for a cell without rows of a class, whose value is NaN, unless NaN is wanted."""
        name = self.undefined(values, of_cells, zero_division)
        if name is not None:
            raise ValueError(
                f"Group {name!r} has no row of the {'positive' if is_positive else 'negative'} "
                "class, so its rate is undefined. Merge small groups or add data, or pass "
                "zero_division=numpy.nan to get NaN."
            )


def aggregate(
    values: FloatArray,
    agg: Agg,
    zero_division: ZeroDivision | None = None,  # None for metrics without this argument
    *,
    worst_is_smallest: bool = False,
    is_one_sided: bool = False,
) -> float:
    """Reduce differences or ratios to the worst or the mean one; the result is NaN if any is NaN.

    The worst difference is the one furthest from 0, the worst ratio (``worst_is_smallest``) is the
    smallest one, and the worst of one-sided values is the largest. Without any values, an error is
    raised, or NaN is returned if ``zero_division`` is NaN.
    """
    check_agg(agg)
    if not values.size:
        if zero_division is not None and not is_strict(zero_division):
            return float("nan")
        remedy = ", or pass zero_division=numpy.nan to get NaN" * (zero_division is not None)
        raise nothing_to_compare(remedy)
    if agg == "mean":
        return float(values.mean())
    if is_one_sided or worst_is_smallest:
        return float(values.max() if is_one_sided else values.min())
    return float(values[np.abs(values).argmax()])


def nothing_to_compare(remedy: str = "") -> ValueError:
    """Return the error that there are no two groups; ``remedy`` continues its last sentence."""
    return ValueError(
        "There is nothing to compare: sensitive_features has no two groups with rows, or with "
        f"control_features none in the same stratum. Check how the rows were filtered{remedy}."
    )


def is_group(reference: Reference) -> bool:
    """Whether the reference is a group, so that differences have a sign."""
    return not (isinstance(reference, str) and reference in ("pairwise", "overall"))


def names_group(reference: Reference) -> bool:
    """Whether a report or a monitor compares with one group; raise for "overall"."""
    if isinstance(reference, str) and reference == "overall":
        raise ValueError(
            "reference='overall' is for metrics. Name a group here, or leave it at 'pairwise'."
        )
    return is_group(reference)


def refuse_signed(reference: Reference = "pairwise", **_: Any) -> None:
    """Raise if the options of a scorer have a group as reference: its value would have a sign."""
    if is_group(reference):
        raise ValueError(
            f"reference={reference!r} makes a signed value, which a search cannot make larger or "
            "smaller without end. Leave it out, or pass 'overall'."
        )


def ratios(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the smaller of two numbers divided by the larger one, or NaN if both are 0.

    A reference group changes nothing. If ratios could exceed 1, the worst of 0.76 and 1.4 would be
    1.4, which would hide that the other one is below four fifths.
    """
    largest = np.maximum(first, second)
    return np.asarray(np.minimum(first, second) / np.where(largest == 0, np.nan, largest))


def check_agg(agg: Agg) -> None:
    """Raise unless ``agg`` is a known way to reduce comparisons."""
    if agg not in ("worst", "mean"):
        raise ValueError(f"agg must be 'worst' or 'mean', got {agg!r}.")
