"""The arguments of ``fit``, validated: what :func:`skfair.read.read_rows` returns.

If groups are known by probability, each row is repeated once for each group that it may belong to.
:class:`TrainingData` has the repeated rows, and :class:`PassedRows` those that the user passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from skfair._typing import FloatArray, IntArray
from skfair.groups.encoding import GroupEncoding
from skfair.groups.probabilities import GroupProbabilities
from skfair.groups.row_units import RowUnits
from skfair.groups.strata import Strata
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.row_hash import deal_draws
from skfair.utils.validation import weight_range


class PassedRows(NamedTuple):
    """The rows as the user passed them, if the fit repeats rows, see the module."""

    X: Any
    y: Any
    sample_weight: FloatArray | None
    owners: IntArray  # number of the passed row for each repeated row, ascending
    units: RowUnits | None

    @property
    def first(self) -> IntArray:
        """The first of the repeated rows of each passed row."""
        return np.flatnonzero(np.diff(self.owners, prepend=-1))

    def spread(self, splits: Iterable[tuple[IntArray, IntArray]]) -> list[Any]:
        """Turn folds of the passed rows into folds of the repeated ones.

        All repeats of a row are on the same side of a split.
        """
        return [
            tuple(np.flatnonzero(np.isin(self.owners, part)) for part in split) for split in splits
        ]


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Validated input of ``fit``. Only X may be in partitions elsewhere."""

    # (n_samples, n_features): the rows, without the sensitive columns that are dropped; a matrix,
    # or PartitionedRows if they lie elsewhere
    X: Any
    y: Any  # targets
    sample_weight: FloatArray | None  # weights of the rows
    groups: GroupEncoding  # groups
    strata: Strata | None = None  # levels of the control features
    units: RowUnits | None = None  # the unit of each row; None if no two rows share one
    passed: PassedRows | None = None  # the rows as they were passed, if groups have probabilities
    # Attributes of the fitted estimator with which it reads new rows
    reading: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        sample_weight: FloatArray | None,
        groups: GroupEncoding | GroupProbabilities,
        strata: Strata | None,
        units: RowUnits | None = None,
    ) -> TrainingData:
        """Return the rows, repeated for each possible group if groups are probabilities."""
        if isinstance(groups, GroupEncoding):
            return cls(X, y, sample_weight, groups, strata, units)
        owners, weights, encoding = groups.spread(sample_weight)
        if owners.size == len(groups):  # nothing is repeated, because all probabilities are 0 or 1
            return cls(X, y, sample_weight, encoding, strata, units)
        passed = PassedRows(X, y, sample_weight, owners, units)
        y = None if y is None else _safe_indexing(y, owners)
        X = X.subset(owners) if isinstance(X, PartitionedRows) else _safe_indexing(X, owners)
        strata = None if strata is None else strata._replace(codes=strata.codes[owners])
        units = None if units is None else units.taken(owners)
        return cls(X, y, weights, encoding, strata, units, passed)

    @property
    def first_rows(self) -> IntArray | slice:
        """The first of the repeated rows of each passed row; all rows if none are repeated."""
        return slice(None) if self.passed is None else self.passed.first

    @property
    def n_samples(self) -> int:
        return self.groups.n_samples

    @property
    def weight_range(self) -> tuple[float, float]:
        """Smallest positive and largest weight of a row."""
        return weight_range(self.sample_weight)

    @property
    def has_weights(self) -> bool:
        """Whether some rows have a weight other than 1."""
        if self.sample_weight is None:
            return False
        return self.weight_range[1] != 1 or float(self.sample_weight.sum()) != self.n_samples

    def counted(self) -> TrainingData:
        """Return the rows with a positive weight, because others could only cause rounding.

        All rows are returned if there are strata. If all remaining rows have the weight 1, the
        result has no weights.
        """
        weights = self.sample_weight
        if weights is None or weights.all() or self.strata is not None:
            return self
        taken = self.taken(np.flatnonzero(weights))
        return replace(taken, sample_weight=None) if (weights[weights > 0] == 1).all() else taken

    def taken(self, rows: IntArray) -> TrainingData:
        """Return some rows in memory, without strata, in this order."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        groups = GroupEncoding.of(self.groups.codes_if_known[:, rows], self.groups.levels)
        units = None if self.units is None else self.units.taken(rows)
        taken: dict[str, Any] = {"sample_weight": weights, "groups": groups, "units": units}
        return replace(self, X=self.X[rows], y=self.y[rows], **taken)

    def in_canonical_order(self) -> TrainingData:
        """Return the rows sorted by their values, so that sums do not depend on their order.

        The order of the columns makes no difference to that of the rows.
        """
        draws = deal_draws(self.X, 0)
        weights = () if self.sample_weight is None else (self.sample_weight,)
        return self.taken(np.lexsort((*weights, *self.groups.codes, self.y, draws)))
