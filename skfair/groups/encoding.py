"""The only reader of sensitive features: all other code receives a :class:`GroupEncoding`.

``read.py`` calls :func:`encode_groups` for fits, ``cohort.py`` for metrics, and ``strata.py`` for
control features. If there are no groups, :func:`one_group` is called instead.

A *sensitive attribute* is one column (sex, race). A *group* is one of its levels. Several columns
are read either as their intersections (``sex=F, race=Black`` is one group) or separately, in which
case groups of different attributes overlap. Groups are numbered across attributes: attribute ``a``
owns the numbers ``offsets[a]`` to ``offsets[a + 1]``, so one matrix of codes, one vector of counts
and one list of names describe every case.

A constraint needs parts of the rows that do not overlap. For this :meth:`GroupEncoding.cells`
returns *cells*, the rows that are in the same groups of all attributes (and of the same class if
wanted), and a matrix that says which group contains which cell.

A fitted estimator keeps only the names and levels, :class:`skfair.groups.levels.GroupLevels`. The
codes of the rows are dropped after ``fit``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skfair._typing import BoolArray, ColumnsLike, FloatArray, IntArray
from skfair.exceptions import SmallGroupWarning
from skfair.groups.attributes import SENSITIVE, Role, check_alignment, check_levels, read_columns
from skfair.groups.levels import GroupLevels, intersection_name, number_tuples
from skfair.utils.factorize import Factorized, factorize
from skfair.utils.text import listed, plural
from skfair.utils.threads import added
from skfair.utils.warn import warn_user

__all__ = ["Cells", "GroupEncoding", "GroupLevels", "encode_groups", "one_group"]

# Rates of groups below this size are mostly noise, because one person is more than three points.
MIN_GROUP_SIZE = 30


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the rows into cells. A group contains all rows of a cell or none."""

    codes: IntArray  # (n_samples,): the cell of each row
    weights: FloatArray  # (n_cells,): number (or total weight) of the rows of each cell
    membership: sparse.csr_array  # (n_groups, n_cells): 1 where the group contains the cell
    classes: IntArray  # (n_cells,): the class code of each cell; zeros if no class was given


@dataclass(frozen=True, eq=False)
class GroupEncoding:
    """Rows and their groups. Built by :func:`encode_groups`."""

    # (n_attributes, n_samples): group number of each row in each attribute, C-contiguous
    # int64. After intersection (or for one attribute) there is a single row, ``codes[0]``
    codes: IntArray
    levels: GroupLevels  # names and levels, kept by fitted estimators
    counts: IntArray  # (n_groups,): number of rows of each group
    # (n_samples,): the probability with which each row belongs to its group, so it counts as this
    # many people; None if groups are certain. See GroupProbabilities
    people: FloatArray | None = None
    # (n_samples,): whether each row has a group; None if all have one. A row without a group has
    # the code of the first group of each attribute, so callers must give it weight 0 in rates, see
    # rate_weight
    has_group: BoolArray | None = None

    names: tuple[str, ...] = field(init=False)  # one readable name per group
    # First group number of each attribute, then the number of groups
    offsets: IntArray = field(init=False)
    n_groups: int = field(init=False)  # number of groups of all attributes
    # Number of attributes. Each row is in one group of each of them. After intersection it is 1
    n_attributes: int = field(init=False)
    n_samples: int = field(init=False)
    # Whether each attribute has one group, so that there is nothing to compare
    is_vacuous: bool = field(init=False)

    def __post_init__(self) -> None:
        n_groups, (n_attributes, n_samples) = int(self.counts.size), self.codes.shape
        vars(self).update(
            names=self.levels.names,
            offsets=self.levels.offsets,
            n_groups=n_groups,
            n_attributes=n_attributes,
            n_samples=n_samples,
            is_vacuous=n_groups == n_attributes,
        )

    @classmethod
    def of(cls, codes: IntArray, levels: GroupLevels) -> GroupEncoding:
        """Return rows with these codes, where -1 says that a row has no group."""
        has_group = np.all(codes >= 0, axis=0)
        counts = np.bincount(codes[:, has_group].ravel(), minlength=levels.n_groups)
        if has_group.all():
            return cls(np.ascontiguousarray(codes), levels, counts)
        codes = np.where(has_group, codes, levels.offsets[:-1, None])
        return cls(codes, levels, counts, has_group=has_group)

    @property
    def codes_if_known(self) -> IntArray:
        """The codes, and -1 for rows without a group."""
        return self.codes if self.has_group is None else np.where(self.has_group, self.codes, -1)

    @cached_property
    def attribute_of_group(self) -> IntArray:
        """The attribute that each group belongs to, shape (n_groups,)."""
        return np.repeat(np.arange(self.n_attributes), np.diff(self.offsets))

    def of_attribute(self, attribute: int) -> GroupEncoding:
        """Return the same rows with the groups of one attribute only, numbered from 0."""
        first, stop = self.offsets[attribute], self.offsets[attribute + 1]
        levels, only = self.levels, slice(attribute, attribute + 1)
        if self.n_attributes > 1:
            own = levels.attributes[only], levels.levels[only], None, levels.names[first:stop]
            levels = GroupLevels(*own, np.array([0, stop - first]))
        codes = self.codes[only] - first
        return replace(self, codes=codes, levels=levels, counts=self.counts[first:stop])

    def known(self, rows: IntArray) -> IntArray:
        """Return the rows among the given ones that have a group."""
        return rows if self.has_group is None else rows[self.has_group[rows]]

    def rate_weight(self, sample_weight: FloatArray | None) -> FloatArray | None:
        """Return the weights of the rows in rates: 0 for those without a group."""
        if self.has_group is None:
            return sample_weight
        return np.where(self.has_group, 1.0 if sample_weight is None else sample_weight, 0.0)

    def sums(self, values: NDArray[Any] | None = None) -> FloatArray:
        """Sum ``values`` (1 for each row if None) over the rows of each group."""
        if values is None:
            return self.counts.astype(np.float64)
        total = np.zeros(self.n_groups)
        for codes in self.codes:
            total += np.bincount(codes, weights=values, minlength=self.n_groups)
        return total

    def places(self, values: NDArray[Any], sample_weight: NDArray[Any] | None) -> IntArray:
        """Return the place in an order of the groups that does not depend on their names.

        The groups are ordered by attribute, then by their weight, then by the weighted sum of the
        values over their rows, then by their first row. Solvers of decisions visit groups in this
        order, so renamed groups give the same result.
        """
        first = np.full(self.n_groups, self.n_samples)
        for codes in self.codes:
            different, rows = np.unique(codes, return_index=True)
            first[different] = rows
        weighted = values if sample_weight is None else values * sample_weight
        # Sums are rounded, because in another order of the rows their last digits differ.
        sums = (np.round(self.sums(of), 6) for of in (weighted, sample_weight))
        places = np.empty(self.n_groups, np.int64)
        places[np.lexsort((first, *sums, self.attribute_of_group))] = np.arange(self.n_groups)
        return places

    def cross_counts(
        self, other: IntArray, n_levels: int, sample_weight: NDArray[Any] | None = None
    ) -> FloatArray:
        """Count rows by group and by a second code, shape (n_groups, n_levels).

        ``other`` is a class, a cluster or any code in ``range(n_levels)``. One pass per attribute.
        """
        table = np.zeros((self.n_groups, n_levels))
        for codes in self.codes:
            joint = codes * n_levels
            joint += other
            table += np.bincount(joint, sample_weight, table.size).reshape(table.shape)
        return table

    def cells(
        self,
        classes: IntArray | None = None,
        n_classes: int = 1,
        sample_weight: NDArray[Any] | None = None,
    ) -> Cells:
        """Split the rows into the intersections of the groups of all attributes and the classes.

        ``classes`` holds the class code of each row, in ``range(n_classes)``; None for no classes.
        With one attribute and no classes the cells are the groups. Only cells with a row are
        listed.
        """
        sizes = np.append(np.diff(self.offsets), n_classes)
        starts = self.offsets[:-1].tolist()
        parts = [codes - k if k else codes for codes, k in zip(self.codes, starts, strict=True)]
        parts.append(np.zeros(self.n_samples, np.int64) if classes is None else classes)
        codes, present = number_tuples(parts, sizes)
        n_cells = present.shape[0]
        owners = present[:, :-1] + self.offsets[:-1]  # (n_cells, n_attributes)
        owned = owners.ravel(), np.repeat(np.arange(n_cells), self.n_attributes)
        shape = self.n_groups, n_cells
        membership = sparse.csr_array((np.ones(owners.size), owned), shape=shape)

        def of_block(i: int, j: int) -> FloatArray:
            own = None if sample_weight is None else sample_weight[i:j]
            return np.bincount(codes[i:j], own, n_cells).astype(np.float64)

        weights = added(of_block, codes.size, np.zeros(n_cells))
        return Cells(codes, weights, membership, present[:, -1])

    def check_nonempty(
        self,
        classes: IntArray | None = None,
        class_names: Sequence[Any] = (),
        sample_weight: NDArray[Any] | None = None,
        needed: Sequence[int] | None = None,
    ) -> None:
        """Raise a ``ValueError`` that names every group, or group-class cell, without weight.

        The rate of an empty cell is undefined, so a limit on it would be meaningless. ``needed``
        lists the class codes whose cells matter; None for all. Without ``classes``, there is a cell
        per group.
        """
        if classes is None:
            table = self.sums(sample_weight)[:, None]
        else:
            table = self.cross_counts(classes, len(class_names), sample_weight)
        if needed is not None:
            table[:, np.setdiff1d(np.arange(table.shape[1]), needed)] = 1  # passes the check
        group, label = np.nonzero(table <= 0)
        if not group.size:
            return
        cells = [
            f"group {self.names[g]!r}" + ("" if classes is None else f" with y={class_names[c]!r}")
            for g, c in zip(group.tolist(), label.tolist(), strict=True)
        ]
        raise ValueError(
            f"No row (or no sample weight) in {plural(len(cells), 'cell')}: {listed(cells)}. "
            "The rate of an empty cell is undefined. Merge small groups, add data, or choose a "
            "constraint that does not need this cell."
        )

    def warn_single(self) -> None:
        """Warn if there is nothing to compare, unless no groups were given (``one_group``)."""
        if self.is_vacuous and self.levels.attributes:
            warn_user(
                f"sensitive_features has a single group, {listed(self.names)}, so there is nothing "
                "to compare, and no limit between groups is active. Pass the rows of all groups."
            )

    def warn_small(self) -> None:
        """Warn once, naming all groups with fewer than ``MIN_GROUP_SIZE`` rows."""
        small = np.flatnonzero(self.counts < MIN_GROUP_SIZE)
        if small.size and self.levels.attributes:  # false if no groups were given
            named = [f"{self.names[g]!r} ({self.counts[g]})" for g in small]
            warn_user(
                f"{plural(small.size, 'group')} of fewer than {MIN_GROUP_SIZE} rows: "
                f"{listed(named)}. Their rates are mostly noise; consider merging them.",
                SmallGroupWarning,
            )


def encode_groups(
    # (n_samples,): a list, array, frame or dict of columns without missing values. An encoding is
    # returned unchanged, and None raises
    sensitive_features: ColumnsLike | GroupEncoding | None,
    *,
    n_samples: int | None = None,  # the number of rows expected
    # Whether several attributes become one by their intersections, or stay separate (and overlap)
    intersectional: bool = True,
    # The X or y that the rows belong to. The same pandas index in another order is an error
    like: object = None,
    role: Role = SENSITIVE,  # the words for the attributes in errors
    missing: str | None = None,  # the level of missing values, which are an error otherwise
    unknown: Collection[str] = (),  # levels that are said to stand for "not known"
) -> GroupEncoding:
    """Read sensitive features of any accepted kind.

    Examples
    --------
    >>> from skfair.groups.encoding import encode_groups
    >>> encoding = encode_groups(["f", "m", "m"])
    >>> encoding.names, encoding.counts.tolist()
    (('f', 'm'), [1, 2])
    """
    if isinstance(sensitive_features, GroupEncoding):
        return sensitive_features
    columns = read_columns(sensitive_features, role, n_samples)
    if like is not None:
        check_alignment(sensitive_features, like, role)
    # Columns without a name are called "sensitive_feature", or "sensitive_feature_0" and so on.
    noun = role.argument.removesuffix("s")
    unnamed = [noun] if len(columns) == 1 else [f"{noun}_{i}" for i in range(len(columns))]
    names = tuple(
        number if name is None else name for number, (name, _) in zip(unnamed, columns, strict=True)
    )
    factorized = [factorize(values) for _, values in columns]
    if missing is not None:
        factorized = [_named_missing(attribute, missing) for attribute in factorized]
    for name, (_, values), attribute in zip(names, columns, factorized, strict=True):
        check_levels(attribute, name, values, role, unknown)
    if len(factorized) > 1 and intersectional:
        return _encode_intersections(names, factorized, role)
    _warn_of_indicators(names, factorized, role)
    sizes = [len(attribute.levels) for attribute in factorized]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    levels = tuple(attribute.levels for attribute in factorized)
    if len(factorized) > 1:
        pairs = zip(factorized, offsets[:-1], strict=True)
        codes = np.stack([attribute.codes + start for attribute, start in pairs])
        group_names = tuple(
            f"{attribute}={level}"
            for attribute, column in zip(names, levels, strict=True)
            for level in column
        )
    else:
        codes = np.ascontiguousarray(factorized[0].codes[None, :])
        group_names = tuple(map(str, levels[0]))
        # 1 and "1" may both occur in an object column. Their names are then made by repr.
        if len(set(group_names)) < len(group_names):
            group_names = tuple(map(repr, levels[0]))
    counts = np.concatenate(
        [np.bincount(attribute.codes, minlength=len(attribute.levels)) for attribute in factorized]
    ).astype(np.int64)
    known = GroupLevels(names, levels, None, group_names, offsets, role.argument)
    return GroupEncoding(codes, known, counts)


def _warn_of_indicators(names: tuple[str, ...], factorized: list[Factorized], role: Role) -> None:
    """Warn of columns of 0 and 1 of which each row has a single 1: one attribute in many columns.

    Groups are then compared with everybody else, column by column, and never with each other.
    """
    n_rows = factorized[0].codes.size
    if len(factorized) < 3 or n_rows < 2 * len(factorized):
        return
    total = np.zeros(n_rows, np.int64)
    for attribute in factorized:
        if set(attribute.levels) != {0, 1}:  # also True and False
            return
        is_one = np.array([level == 1 for level in attribute.levels], np.int64)
        total += is_one[attribute.codes]
    if (total == 1).all():
        warn_user(
            f"{role.argument} has {len(names)} columns of 0 and 1 ({listed(names)}), and each row "
            "has a single 1: this is one attribute in several columns. Groups are compared with "
            "everybody else in each of them, and not with each other. Pass one column with the "
            "name of the group of each row, such as table.idxmax(axis=1)."
        )


def _named_missing(attribute: Factorized, level: str) -> Factorized:
    """Return an attribute whose missing values have this level, the last one if it is new."""
    is_missing = attribute.codes < 0
    if not is_missing.any():
        return attribute
    levels = list(dict.fromkeys([*attribute.levels, level]))
    return Factorized(np.where(is_missing, levels.index(level), attribute.codes), levels)


def one_group(n_samples: int) -> GroupEncoding:
    """Return the encoding of a sample without sensitive features: a single group."""
    levels = GroupLevels((), (), None, ("all",), np.array([0, 1]))
    return GroupEncoding(np.zeros((1, n_samples), np.int64), levels, np.array([n_samples]))


def _encode_intersections(
    names: tuple[str, ...], factorized: list[Factorized], role: Role
) -> GroupEncoding:
    """Return the encoding by intersections of the attributes; only those that occur are groups."""
    levels = tuple(attribute.levels for attribute in factorized)
    codes, combinations = number_tuples(
        [attribute.codes for attribute in factorized], np.array([len(column) for column in levels])
    )
    group_names = tuple(
        intersection_name(names, [column[i] for column, i in zip(levels, row, strict=True)])
        for row in combinations
    )
    counts = np.bincount(codes, minlength=len(group_names)).astype(np.int64)
    offsets = np.array([0, len(group_names)])
    known = GroupLevels(names, levels, combinations, group_names, offsets, role.argument)
    return GroupEncoding(codes[None, :], known, counts)
