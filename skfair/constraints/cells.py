"""Cells of rows: which rows count, within which parts groups are compared, and rates from cells.

A *part* holds rows within which groups are compared: all rows, the rows of one class, each class
separately, or each of these within a stratum. The ``subset`` of a constraint says which. A *cell*
holds the rows of one part that belong to the same groups, so no row is in two cells. The rates of
the groups in a part are averages of cell means, or quotients of such averages (the share of
positives among the selected).

:func:`skfair.constraints.base.bind` calls :func:`make_subset`, which reads ``subset``, then
:func:`split_into_cells`. A new way to choose rows is a new :class:`Subset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.encoding import GroupEncoding, one_group
from skfair.groups.strata import Strata
from skfair.losses import Loss
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed
from skfair.utils.threads import looked_up

# True if the rates of both classes are added before groups are compared, "absolute" if the absolute
# differences in both classes are added.
AddsClasses = bool | Literal["absolute"]


class TrainingRows(NamedTuple):
    """The parts of the training data that a constraint may know."""

    groups: GroupEncoding
    targets: FloatArray  # (n_samples,): -1 and 1 for classification, real numbers for regression
    sample_weight: FloatArray | None  # (n_samples,): weights of the rows
    loss: Loss  # the loss that is minimised (an object with ``parts`` and ``exact``)
    # Names of the negative and the positive class; None for regression
    class_names: tuple[Any, Any] | None
    # Levels of an allowed attribute, for constraints that hold within each of them
    strata: Strata | None = None

    @property
    def classes(self) -> IntArray:
        """1 for rows of the positive class, 0 for the others."""
        return (self.targets > 0).astype(np.int64)


class Parts(NamedTuple):
    """Parts of the rows, within each of which groups are compared."""

    # (n_samples,): the part of each row, numbered from 0; rows that do not count have the number of
    # parts, ``len(names)``
    codes: IntArray
    names: tuple[str, ...]  # suffix of the names of groups in each part, such as ", y=1"
    # The suffixes if both classes are added up (``adds_classes``): one for each pair of parts
    without_class: tuple[str, ...] = ("",)


class Subset(Protocol):
    """Says which rows count, and splits them into parts.

    Parts may depend only on what ``rows`` holds, because the rows may be those of ``fit`` in
    another order.
    """

    def parts(self, rows: TrainingRows) -> Parts:
        """Return the parts; raise if a group that must have a rate has no rows of positive weight.

        If the constraint adds up both classes, the parts of the first class come first.
        """


class AllRows:
    """All rows are one part."""

    def parts(self, rows: TrainingRows) -> Parts:
        """Return one part."""
        rows.groups.check_nonempty(sample_weight=rows.sample_weight)
        return Parts(np.zeros(rows.targets.size, np.int64), ("",))


@dataclass(frozen=True)
class OfClasses:
    """Some true classes, each by itself; 0 is the negative class, 1 the positive one."""

    classes: tuple[int, ...]

    def parts(self, rows: TrainingRows) -> Parts:
        """Return one part per class."""
        if rows.class_names is None:  # regression: there are no classes to name in an error
            rows.groups.check_nonempty(sample_weight=rows.sample_weight)
        else:
            named = (rows.classes, rows.class_names, rows.sample_weight, self.classes)
            rows.groups.check_nonempty(*named)
        part_of_class = np.full(2, len(self.classes))  # this number says that rows do not count
        part_of_class[list(self.classes)] = np.arange(len(self.classes))
        names = rows.class_names
        suffixes = tuple("" if names is None else f", y={names[label]}" for label in self.classes)
        return Parts(part_of_class[rows.classes], suffixes)


@dataclass(frozen=True)
class WithinStrata:
    """The parts of another partition, each within the strata of an allowed attribute.

    A group without rows in a stratum is not compared there, and a stratum with a single group
    compares nothing.
    """

    subset: Subset

    def parts(self, rows: TrainingRows) -> Parts:
        """Return a part for each part and stratum."""
        strata = rows.strata
        if strata is None:
            raise ValueError(
                "A constraint within strata needs control_features in fit: the attribute within "
                "whose levels groups are compared. None were given."
            )
        rows.groups.check_nonempty(sample_weight=rows.sample_weight)
        # All rows are passed as one group, because the other subset raises if a group lacks a
        # class. Here such a group is only not compared.
        within = self.subset.parts(rows._replace(groups=one_group(rows.targets.size)))
        n_strata = len(strata.names)
        is_counted = within.codes < len(within.names)
        codes = np.where(is_counted, within.codes * n_strata + strata.codes, 0)
        codes[~is_counted] = len(within.names) * n_strata
        names = tuple(f"{part}, {name}" for part in within.names for name in strata.names)
        return Parts(codes, names, tuple(f", {name}" for name in strata.names))


# The values of ``subset``, by name.
SUBSETS: dict[str, Subset] = {
    "all": AllRows(),
    "positive": OfClasses((1,)),
    "negative": OfClasses((0,)),
    "class": OfClasses((0, 1)),
}


def make_subset(name: str | Subset) -> Subset:
    """Return the subset with a name, or the given object; raise for an unknown name."""
    if not isinstance(name, str):
        return name
    if name not in SUBSETS:
        raise ValueError(f"subset must be one of {listed(SUBSETS)}, got {name!r}.")
    return SUBSETS[name]


class Quotients(NamedTuple):
    """Rates that are quotients: ``(sums @ means) / (totals @ means)``, given cell means.

    If the rate is a precision, the totals count the selected rows of a group, and the sums count
    the positive ones among these rows.
    """

    sums: sparse.csr_array  # (n_rates, n_cells)
    totals: sparse.csr_array  # (n_rates, n_cells)

    def between(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the rates, given bounds of the cell means.

        A quotient 0/0 is 0. If the total may be 0 but need not be, the upper bound is 1.
        """
        least, most = self.sums @ low, self.totals @ high
        smallest = np.where(most > ROUNDING, least / np.where(most > ROUNDING, most, 1.0), 0.0)
        most, least = self.sums @ high, self.totals @ low
        largest = most / np.where(least > ROUNDING, least, 1.0)
        unknown = np.where(most > ROUNDING, 1.0, 0.0)
        return smallest, np.where(least > ROUNDING, np.minimum(largest, 1.0), unknown)

    def linear(self, expected: FloatArray, precision: FloatArray) -> sparse.csr_array:
        """Return a linear approximation of the rates, up to a constant.

        Near a point with the totals ``expected`` and the rates ``precision``, the quotient changes
        by (sums - precision * totals) / expected.
        """
        slope = self.sums - sparse.diags_array(precision) @ self.totals
        return sparse.csr_array(sparse.diags_array(1 / expected) @ slope)


def split_into_cells(
    rows: TrainingRows, subset: Subset, *, among_counted: bool, adds_classes: AddsClasses = False
) -> dict[str, Any]:
    """Split the rows into cells, whose means become rates.

    Returned are fields of :class:`~skfair.constraints.bound.BoundConstraint`, by name.

    With ``among_counted`` a rate is the share of the positive class among the rows that the moment
    counts, so cells are also split by class. Otherwise it is the share of rows that are counted.

    With ``adds_classes`` the first half of the parts is one class and the second half the other,
    and each rate is the sum of both. "absolute" limits |a| + |b|, if groups differ by a in one
    class and by b in the other. That is the larger of |a + b| and |a - b|, so there are also rates
    that are differences of the classes.
    """
    groups, weights = rows.groups, rows.sample_weight
    parts = subset.parts(rows)
    n_parts, n_classes = len(parts.names), 2 if among_counted else 1
    codes = parts.codes * 2 + rows.classes if among_counted else parts.codes
    split = groups.cells(codes, (n_parts + 1) * n_classes, weights)
    is_counted = (split.classes < n_parts * n_classes) & (split.weights > 0)
    number = np.cumsum(is_counted) - 1  # new number of each cell that counts
    # The weight of a row in the mean of its cell is its own weight over that of the cell.
    inverse = np.where(is_counted, 1 / np.where(is_counted, split.weights, 1.0), 0.0)
    row_weights = looked_up(inverse, split.codes)
    if weights is not None:
        row_weights *= weights

    cell_weights = split.weights[is_counted]
    part_of_cell, class_of_cell = np.divmod(split.classes[is_counted], n_classes)
    membership = sparse.csr_array(
        sparse.csr_array(split.membership[:, is_counted]) * cell_weights[None, :]
    )
    suffixes = parts.names
    of_parts = [
        _rates_in_part(membership, cell_weights, part_of_cell == part) for part in range(n_parts)
    ]
    if adds_classes:
        is_absolute = adds_classes == "absolute"
        of_parts, suffixes = _sums_of_classes(of_parts, parts.without_class, is_absolute)
    rates, overall, names, owners, sets = [], [], [], [], []
    for part, (suffix, of_part) in enumerate(zip(suffixes, of_parts, strict=True)):
        if not of_part.groups.size:  # a stratum without rows
            continue
        rates.append(of_part.rates)
        overall.append(sparse.vstack([of_part.overall] * of_part.groups.size))
        names += [groups.names[g] + suffix for g in of_part.groups]
        owners.append(of_part.groups)
        sets.append(groups.attribute_of_group[of_part.groups] + part * groups.n_attributes)
    averages = sparse.csr_array(sparse.vstack(rates)), sparse.csr_array(sparse.vstack(overall))
    quotients = None
    if among_counted:
        quotients, averages = _quotients(averages, class_of_cell.astype(float))
    return {
        "cells": split.codes if is_counted.all() else np.where(is_counted, number, 0)[split.codes],
        "row_weights": row_weights,
        "rates": averages[0],
        "overall": averages[1],
        "quotients": quotients,
        "rate_names": tuple(names),
        "rate_groups": np.concatenate(owners),
        "compared_sets": np.unique(np.concatenate(sets), return_inverse=True)[1],
    }


class _PartRates(NamedTuple):
    """The matrices that turn cell means into the rates of the groups of one part."""

    groups: IntArray  # numbers of the groups that have rows in the part
    rates: sparse.csr_array  # (n_groups, n_cells)
    overall: sparse.csr_array  # (1, n_cells)


def _rates_in_part(
    membership: sparse.csr_array, cell_weights: FloatArray, is_in_part: BoolArray
) -> _PartRates:
    """Average the cells of one part; ``membership`` holds the weight of each cell in each group."""
    in_part = is_in_part.astype(float)
    members = sparse.csr_array(membership * in_part[None, :])
    totals = np.asarray(members.sum(axis=1)).ravel()
    present = np.flatnonzero(totals > 0)
    if not present.size:
        nothing = sparse.csr_array((0, in_part.size))
        return _PartRates(present, nothing, nothing)
    return _PartRates(
        present.astype(np.int64),
        sparse.csr_array(sparse.diags_array(1 / totals[present]) @ members[present]),
        sparse.csr_array((cell_weights * in_part / (cell_weights @ in_part))[None, :]),
    )


def _sums_of_classes(
    # The parts of the first class (one, or one for each stratum), then those of the second class
    of_parts: list[_PartRates],
    wholes: tuple[str, ...],  # suffix of names for all rows, or for each stratum
    is_absolute: bool,  # whether there are also differences of both classes
) -> tuple[list[_PartRates], tuple[str, ...]]:
    """Return the rates of both classes added up, and the suffixes of their names."""
    half = len(of_parts) // 2
    classes = list(zip(of_parts[:half], of_parts[half:], strict=True))
    sums = [_added(*both) for both in classes]
    if not is_absolute:
        return sums, wholes
    differences = [_added(*both, sign=-1.0) for both in classes]
    named = ("sum of classes", "difference of classes")
    return sums + differences, tuple(f"{whole}, {name}" for name in named for whole in wholes)


def _added(first_rates: _PartRates, other: _PartRates, *, sign: float = 1.0) -> _PartRates:
    """Return rates in one part plus ``sign`` times those in another, for groups in both parts."""
    both, first, second = np.intersect1d(first_rates.groups, other.groups, return_indices=True)
    if not both.size:
        return first_rates._replace(groups=both)
    rates = first_rates.rates[first] + sign * other.rates[second]
    return _PartRates(both, rates, first_rates.overall + sign * other.overall)


def _quotients(
    totals: tuple[sparse.csr_array, sparse.csr_array], is_positive: FloatArray
) -> tuple[tuple[Quotients, Quotients], tuple[sparse.csr_array, sparse.csr_array]]:
    """Return rates that are shares of the positive class among counted rows.

    ``totals`` are the matrices of the shares of counted rows, for groups and overall. Returned are
    the exact quotients for both, then their linear approximations. The approximations are taken at
    a model that selects as many rows of each group as are positive, and whose precision is halfway
    between chance (the share of positives) and 1.
    """
    rates, overall = (Quotients(sparse.csr_array(m * is_positive[None, :]), m) for m in totals)
    share = float((overall.sums.sum(axis=1)).mean())
    precision = 0.5 * (1 + share)
    linear = []
    for quotients in (rates, overall):
        positive = np.asarray(quotients.sums.sum(axis=1)).ravel()
        # A group without positive rows gets the mean share, because ``linear`` divides by it.
        expected = np.where(positive > 0, positive, share or 1.0)
        linear.append(quotients.linear(expected, np.full(expected.size, precision)))
    return (rates, overall), (linear[0], linear[1])
