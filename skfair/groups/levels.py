"""The groups that were seen at fit: their names, and how new rows are encoded in them.

A fitted estimator keeps the :class:`GroupLevels` of its sensitive features, and ``skfair/read.py``
encodes new rows with them at prediction. The codes of the training rows are dropped after ``fit``.
Files that intersect attributes call :func:`number_tuples` and :func:`sums_by`, which number and sum
combinations of codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfair._typing import ColumnsLike, FloatArray, IntArray
from skfair.groups.attributes import ROLES, SENSITIVE, Columns, Role, check_missing, read_columns
from skfair.utils.factorize import Factorized, factorize, first_rows
from skfair.utils.text import listed, plural


@dataclass(frozen=True, eq=False)
class GroupLevels:
    """The groups that were seen at fit: their names and levels."""

    attributes: tuple[str, ...]  # names of the sensitive attributes as given (columns of the input)
    levels: tuple[list[Any], ...]  # the sorted levels of each attribute
    # (n_groups, n_attributes): the number of the level of each attribute in each group, if groups
    # are intersections; None otherwise
    combinations: IntArray | None
    names: tuple[str, ...]  # one readable name per group
    # First group number of each attribute, then the number of groups. An intersection counts
    # as one attribute
    offsets: IntArray
    argument: str = SENSITIVE.argument  # the argument in which users pass the attributes

    @property
    def role(self) -> Role:
        """The names of the attributes in errors."""
        return ROLES[self.argument]

    @property
    def n_groups(self) -> int:
        """Number of groups over all attributes."""
        return len(self.names)

    def keys(self) -> list[Any]:
        """Return the key by which users name each group: a level, or a tuple of levels.

        Groups of separate attributes are ``(attribute, level)`` pairs.
        """
        if self.combinations is not None:
            return [
                tuple(column[i] for column, i in zip(self.levels, row, strict=True))
                for row in self.combinations
            ]
        if len(self.levels) == 1:
            return list(self.levels[0])
        return [
            (attribute, level)
            for attribute, column in zip(self.attributes, self.levels, strict=True)
            for level in column
        ]

    def members(self) -> IntArray:
        """Return the numbers of the groups of members, for metrics with ``members_only=True``.

        Each attribute is an indicator of membership in one group, with the levels 0 and 1, or False
        and True; other levels raise a ``ValueError``.
        """
        if self.combinations is not None:
            raise ValueError(
                "members_only=True needs one column for each group, but intersectional=True "
                f"crosses {listed(self.attributes)}. Pass intersectional=False."
            )
        for attribute, column in zip(self.attributes, self.levels, strict=True):
            if any(level not in (0, 1) for level in column):
                raise ValueError(
                    "members_only=True needs columns that say who is a member (0 and 1, or False "
                    f"and True), but {attribute!r} has the levels {listed(column)}. Pass one "
                    "indicator column for each group."
                )
        return np.flatnonzero([level == 1 for column in self.levels for level in column])

    def number(self, key: Any) -> int:
        """Return the number of a group, given its key (see ``keys``) or its name, or raise.

        A key or name of the same type is searched first, because 1 and "1" may both be levels.
        """
        for candidates in (self.keys(), list(self.names)):
            for number, candidate in enumerate(candidates):
                if type(candidate) is type(key) and candidate == key:
                    return number
        for number, candidate in enumerate(self.keys()):  # 1 == 1.0 == numpy.int64(1)
            if np.isscalar(key) and candidate == key:
                return number
        raise ValueError(f"There is no group {key!r}. The groups are {listed(self.names)}.")

    def encode(
        self,
        sensitive_features: ColumnsLike,
        n_samples: int | None = None,
        allow_unseen: bool = False,
        allow_missing: bool = False,
        remedy: str = "",  # the end of errors, which says how to allow such rows
    ) -> IntArray:
        """Return the group numbers of new rows, shape (n_attributes, n_samples).

        A level, or an intersection, that did not occur at fit raises a ``ValueError``, or gets the
        number -1 with ``allow_unseen``. A missing value raises, too, or gets -1 with
        ``allow_missing``.
        """
        role, columns = self.role, self.columns(sensitive_features, n_samples)
        codes = np.empty((len(columns), len(columns[0][1])), np.int64)
        for a, (name, values) in enumerate(columns):
            factorized = factorize(values)
            if not allow_missing:
                attribute = self.attributes[a] if name is None else name
                check_missing(factorized, attribute, role, remedy)
            known = self._known_levels(factorized, a, allow_unseen, remedy)
            codes[a] = known[factorized.codes] if known.size else -1
            if allow_missing:
                codes[a][factorized.codes < 0] = -1
        if self.combinations is None:
            return np.where(codes < 0, -1, codes + self.offsets[:-1, None])
        is_known = codes.min(axis=0, initial=0) >= 0
        numbers = np.full((1, codes.shape[1]), -1)
        numbers[:, is_known] = self._known_combinations(codes[:, is_known], allow_unseen, remedy)
        return numbers

    def columns(self, sensitive_features: ColumnsLike, n_samples: int | None = None) -> Columns:
        """Return the columns of new rows in the order of the attributes, or raise."""
        columns = read_columns(sensitive_features, self.role, n_samples)
        if len(columns) != len(self.levels):
            raise ValueError(
                f"{self.role.argument} has {len(columns)} columns but the groups were learned from "
                f"{len(self.levels)} ({listed(self.attributes)}). Pass the same attributes."
            )
        if self._named({name for name, _ in columns}):
            columns = self._in_order(columns)
        return columns

    def _named(self, names: set[str | None]) -> bool:
        """Whether new columns are matched by name and not by position.

        They are if all have a name, unless the columns of fit had no names and got numbered ones.
        """
        number = self.role.argument.removesuffix("s")
        were_numbered = all(name == f"{number}_{i}" for i, name in enumerate(self.attributes))
        return None not in names and (not were_numbered or names == set(self.attributes))

    def _in_order(self, columns: Columns) -> Columns:
        """Return named columns in the order of fit; a single column may have another name."""
        by_name = dict(columns)
        if len(self.attributes) == 1:
            return columns
        missing = [name for name in self.attributes if name not in by_name]
        if missing:
            raise ValueError(
                f"{self.role.argument} has no column {missing[0]!r}. The groups were learned from "
                f"{listed(self.attributes)}."
            )
        return [(name, by_name[name]) for name in self.attributes]

    def _known_levels(
        self, factorized: Factorized, attribute: int, allow_unseen: bool = False, remedy: str = ""
    ) -> IntArray:
        """Return the number at fit of each level of new rows; -1 for a level not seen at fit."""
        position = {level: i for i, level in enumerate(self.levels[attribute])}
        unseen = [level for level in factorized.levels if level not in position]
        if unseen and not allow_unseen:
            raise ValueError(
                f"{self.role.attribute} {self.attributes[attribute]!r} has "
                f"{plural(len(unseen), 'level')} that did not occur at fit: {listed(unseen)}. "
                f"Known levels: {listed(self.levels[attribute])}. Fit on data that contain "
                f"every group, or map new levels to a known one.{remedy}"
            )
        return np.array([position.get(level, -1) for level in factorized.levels], dtype=np.int64)

    def _known_combinations(
        self, codes: IntArray, allow_unseen: bool = False, remedy: str = ""
    ) -> IntArray:
        """Return the group of each row, given its level codes; -1 for one not seen at fit.

        ``codes`` has shape (n_attributes, n_rows), without missing values.
        """
        assert self.combinations is not None
        shape = np.array([len(column) for column in self.levels])
        # Old and new tuples are numbered together. Then the groups of the old ones are looked up.
        both = [np.concatenate(pair) for pair in zip(self.combinations.T, codes, strict=True)]
        joint, _ = number_tuples(both, shape)
        table = np.full(int(joint.max()) + 1, -1)
        table[joint[: self.n_groups]] = np.arange(self.n_groups)
        position = table[joint[self.n_groups :]]
        unknown = np.flatnonzero(position < 0)
        if unknown.size and not allow_unseen:
            levels = [
                column[c] for column, c in zip(self.levels, codes[:, unknown[0]], strict=True)
            ]
            raise ValueError(
                f"{plural(unknown.size, 'row')} in an intersection that did not occur "
                f"at fit, for example {intersection_name(self.attributes, levels)!r}. Fit on data "
                "that contain every intersection, or do not cross the attributes "
                f"(intersectional=False).{remedy}"
            )
        return position[None, :]


def number_tuples(parts: list[IntArray], shape: IntArray) -> tuple[IntArray, IntArray]:
    """Number the tuples of codes that occur, in lexicographic order, and list them.

    Row i has the tuple ``(parts[0][i], parts[1][i], ...)``, and column j has codes in
    ``range(shape[j])``. Returns the number of the tuple of each row, and the tuples, shape
    (n_tuples, n_columns).
    """
    # A tuple becomes one integer, ((a * size_b) + b) * size_c + c ... Before the integers could
    # exceed 64 bits, they are replaced by their numbers in order, which are small.
    joint, n_joint, is_merged = parts[0], int(shape[0]), False
    for part, size in zip(parts[1:], shape[1:].tolist(), strict=True):
        if n_joint * size >= 2**62:
            joint, levels = factorize(joint)
            n_joint, is_merged = len(levels), True
        if size > 1:
            joint, n_joint = joint * size + part, n_joint * size
    codes, levels = factorize(joint)
    if not is_merged:  # the tuples follow from the integers, without a pass over the rows
        return codes, np.stack(np.unravel_index(np.array(levels, np.int64), shape), axis=1)
    first = first_rows(codes)
    return codes, np.stack([part[first] for part in parts], axis=1)


def sums_by(
    joint: IntArray, n_values: int, columns: Sequence[FloatArray | None]
) -> tuple[IntArray, list[FloatArray]]:
    """List the values of ``joint`` that occur, and add up columns over the rows of each value.

    ``joint`` has an integer in ``range(n_values)`` for each row. If a column is None, the rows are
    counted.
    """
    levels = None
    # Values are numbered, because a table with a place for each would be far longer than the rows.
    if n_values > 4 * joint.size + 10**6:
        levels, joint = np.unique(joint, return_inverse=True)
        n_values = levels.size
    occurs = np.flatnonzero(np.bincount(joint, minlength=n_values))
    sums = [np.bincount(joint, own, n_values)[occurs].astype(np.float64) for own in columns]
    return occurs if levels is None else levels[occurs], sums


def intersection_name(attributes: tuple[str, ...], levels: Sequence[Any]) -> str:
    return ", ".join(f"{a}={level}" for a, level in zip(attributes, levels, strict=True))
