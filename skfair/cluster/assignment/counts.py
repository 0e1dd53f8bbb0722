"""Constraints on the counts of the groups in each cluster, and the rows that are counted.

Rows that belong to the same groups are interchangeable for every constraint. These speak of *cells*
(atoms of the group algebra), which also covers overlapping attributes. With ``counts[k]`` the
number (or weight) of the rows of each cell in cluster k, every cluster has to satisfy

    matrix @ counts[k] >= -slack

Three families are built here. A balance: of any two groups of an attribute each is at least
``beta`` times as large as the other, ``n_g - beta n_g' >= 0``. Shares: each group's share lies
within its limits, up to one row, ``n_g - lower n > -1`` and ``upper n - n_g > -1``. Sizes, beside
one of these: the weight of each cluster lies within its bounds, ``low <= n <= high``.
"""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray, Seed
from skfair.groups.encoding import GroupEncoding
from skfair.utils.factorize import first_rows
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.threads import added
from skfair.utils.validation import weight_range

# More constraints than this per cluster cannot be priced one by one.
_MAX_CONSTRAINTS = 100_000
# Rows are whole: a share may be missed by less than one of them.
_ALMOST_ONE = 1 - 1e-8
# Rows that weigh this many times as much as a row of a sample stands for are in every sample.
_HEAVY = 10.0


class Constraints(NamedTuple):
    """Linear constraints on the counts of each cluster: ``matrix @ counts >= -slack``."""

    matrix: FloatArray  # (n_constraints, n_groups): coefficients of the counts
    # (n_constraints,) or, by cluster, (n_clusters, n_constraints): what each may be missed by
    slack: FloatArray
    # (n_attributes,): the smallest balance asked for, per attribute; None if the constraints are no
    # balance
    min_balances: FloatArray | None = None
    # (2, n_groups): smallest and largest share of each group; None if shares are not limited
    shares: FloatArray | None = None
    # (2, n_clusters): smallest and largest weight of each cluster, which the last two constraints
    # are on; None if sizes are not limited
    sizes: FloatArray | None = None

    @property
    def n_proportions(self) -> int:
        """The number of constraints that compare groups; those on sizes come after them."""
        return len(self.matrix) - (0 if self.sizes is None else 2)

    @classmethod
    def none(cls, n_groups: int, min_balances: FloatArray | None = None) -> Constraints:
        return cls(np.zeros((0, n_groups)), np.zeros(0), min_balances)

    def violation(self, counts: FloatArray) -> FloatArray:
        """Sum what each cluster falls short of its constraints; ``counts`` is (n_clusters, n)."""
        values = counts @ self.matrix.T + self.slack
        return np.asarray(np.maximum(0.0, -values).sum(axis=1))

    def violation_beyond(self, counts: FloatArray, largest_weight: float) -> float:
        """Sum what the constraints are missed by where they are missed by a whole row or more.

        Where no row can break a constraint it asks for a row, of the least weight of one. The slack
        of shares is nearly a row already. Bounds on sizes may not be missed at all.
        """
        missed = -(counts @ self.matrix.T + self.slack)
        if self.sizes is not None:
            of_sizes = missed[:, -2:]
            total = float(of_sizes[of_sizes > SUM_ROUNDING * largest_weight].sum())
            others = self._replace(matrix=self.matrix[:-2], slack=self.slack[:, :-2], sizes=None)
            return total + others.violation_beyond(counts, largest_weight)
        if self.min_balances is None:
            slack = _ALMOST_ONE * largest_weight
            is_row = missed > (1 - _ALMOST_ONE) / 2 * largest_weight
            return float((missed[is_row] + slack).sum())
        asks_for_row = (self.slack < 0) & (self.matrix >= 0).all(axis=1)
        row = np.where(asks_for_row, np.minimum(-self.slack, largest_weight), largest_weight)
        return float(missed[missed >= row * _ALMOST_ONE].sum())

    def with_sizes(self, sizes: FloatArray | None, groups: GroupEncoding) -> Constraints:
        """Add bounds on the weight of each cluster, (2, n_clusters), unless they are None."""
        if sizes is None:
            return self
        size = 1.0 * (np.arange(groups.n_groups) < groups.offsets[1])  # groups of one attribute
        slack = np.tile(self.slack, (sizes.shape[1], 1))
        return self._replace(
            matrix=np.append(self.matrix, [size, -size], axis=0),
            slack=np.column_stack([slack, -sizes[0], sizes[1]]),
            sizes=sizes,
        )

    def prices(self, multipliers: FloatArray) -> FloatArray:
        """Return what a member of each cell pays in each cluster, shape (n_cells, n_clusters)."""
        return np.ascontiguousarray(-(multipliers @ self.matrix).T)


def balance_constraints(
    groups: GroupEncoding, betas: FloatArray, smallest_weight: float = 1.0
) -> Constraints:
    """Constraints of a minimal balance ``betas[a]`` for each attribute a.

    A positive balance also needs a row of every group in every cluster, for an empty cluster would
    meet all ratios. Asking for more than the smallest positive weight of a row would forbid
    clusters that keep the limits.
    """
    sizes = np.diff(groups.offsets)
    n_constraints = int((sizes * (sizes - 1)).sum())
    if n_constraints > _MAX_CONSTRAINTS:
        raise ValueError(
            f"A balance of {sizes.max()} groups needs {n_constraints} constraints per cluster. "
            "Use share_bounds, which need two per group."
        )
    rows = []
    for start, stop, beta in zip(groups.offsets[:-1], groups.offsets[1:], betas, strict=True):
        for g in range(start, stop):
            for other in range(start, stop):
                if g != other:
                    row = np.zeros(groups.n_groups)
                    row[g], row[other] = 1.0, -beta
                    rows.append(row)
    matrix = np.array([*rows, *np.eye(groups.n_groups)])
    presence = np.where(np.repeat(betas > 0, sizes), -smallest_weight, 0.0)
    return Constraints(matrix, np.append(np.zeros(len(rows)), presence), betas)


def share_constraints(
    groups: GroupEncoding, lower: FloatArray, upper: FloatArray, largest_weight: float = 1.0
) -> Constraints:
    """Constraints that keep each group's share of every cluster within its limits, up to a row."""
    rows = []
    same = groups.attribute_of_group[:, None] == groups.attribute_of_group
    for g in range(groups.n_groups):
        size = same[g].astype(np.float64)  # sums the groups of the attribute: the cluster's size
        unit = np.eye(groups.n_groups)[g]
        if lower[g] > 0:
            rows.append(unit - lower[g] * size)
        if upper[g] < 1:
            rows.append(upper[g] * size - unit)
    matrix = np.array(rows).reshape(-1, groups.n_groups)
    slack = np.full(len(rows), _ALMOST_ONE * largest_weight)
    return Constraints(matrix, slack, shares=np.stack([lower, upper]))


class GroupedRows:
    """Rows, their cells, and the constraints that the counts of each cluster have to satisfy.

    ``constraints`` are in terms of cells, with one slack per cluster and constraint,
    ``group_constraints`` the same
    in terms of groups; ``constraint_order`` says which of the constraints given each of them is.
    """

    def __init__(
        self,
        groups: GroupEncoding,  # the groups of the rows
        constraints: Constraints,  # constraints in terms of groups
        n_clusters: int,  # number of clusters
        weights: FloatArray | None = None,  # (n_samples,): sample weights
        # (n_clusters, n_groups): weights that the clusters hold already (of a stream):
        # the constraints apply to the sum
        before: FloatArray | None = None,
    ) -> None:
        self.n_clusters, self.n_attributes = int(n_clusters), groups.n_attributes
        self.weights = np.ones(groups.n_samples) if weights is None else weights
        cells = groups.cells(sample_weight=weights)
        # Cells and constraints are put into an order that does not depend on names of groups, so
        # that neither does the result. Sums that differ by rounding only are equal.
        shares = np.round(cells.weights / cells.weights.sum(), 12)
        order = np.lexsort((first_rows(cells.codes), shares))
        if before is not None:  # a stream keeps the order of its first part
            order = np.arange(order.size)
        self.cells: NDArray[Any] = np.argsort(order).astype(np.int32)[cells.codes]
        self.membership = cells.membership.toarray()[:, order]  # (n_groups, n_cells)
        self._set_constraints(constraints, before)
        self.total_weight = float(self.weights.sum())
        self.largest_weight = float(self.weights.max())  # constraints are met up to it

    @cached_property
    def constraint_entries(self) -> tuple[NDArray[Any], ...]:
        by_cell = sparse.csc_array(self.constraints.matrix)
        return self.constraints.matrix, by_cell.indptr, by_cell.indices

    @property
    def n_samples(self) -> int:
        return int(self.cells.size)

    @property
    def n_cells(self) -> int:
        return int(self.membership.shape[1])

    @property
    def n_groups(self) -> int:
        return int(self.membership.shape[0])

    @property
    def codes(self) -> IntArray:
        return np.asarray(self.membership.argmax(axis=0)[self.cells], dtype=np.int64)

    @property
    def mean_weight(self) -> float:
        """The unit in which sums of weights are compared."""
        return self.total_weight / self.n_samples

    @property
    def rounding(self) -> float:
        """The largest error of sums of weights through rounding."""
        return SUM_ROUNDING * self.mean_weight

    @property
    def row_weight(self) -> float:
        """The weight of all rows that have one, whose counts are whole; 0 if weights differ."""
        lightest, heaviest = weight_range(self.weights)
        return heaviest if lightest == heaviest else 0.0

    def no_counts(self) -> FloatArray:
        """Return zeros, by cluster and cell."""
        return np.zeros((self.n_clusters, self.n_cells))

    def counts(self, labels: Any) -> FloatArray:
        """Return the weight of the rows by cluster and cell."""
        n_counts = self.n_clusters * self.n_cells

        def of_block(i: int, j: int) -> FloatArray:
            place = labels[i:j] * np.int64(self.n_cells) + self.cells[i:j]
            counts = np.bincount(place, self.weights[i:j], n_counts)
            return np.asarray(counts.reshape(self.n_clusters, -1), np.float64)

        return added(of_block, self.cells.size, self.no_counts())

    def violation(self, counts: FloatArray) -> float:
        """Return what the constraints are missed by, summed over clusters; rounding is no miss."""
        missed = -(counts @ self.constraints.matrix.T + self.constraints.slack)
        total = float(missed[missed > self.rounding].sum())
        return float(f"{total:.9g}")  # labels are told apart by it

    def group_prices(self, multipliers: FloatArray) -> FloatArray:
        """Return what a member of each group pays in each cluster, (n_clusters, n_groups)."""
        return np.asarray(-(multipliers @ self.group_constraints))

    def size_prices(self, multipliers: FloatArray) -> FloatArray:
        """Return what any row pays in each cluster for its size, (n_clusters, 1)."""
        n = self.constraints.n_proportions
        return np.asarray(-(multipliers[:, n:] @ self.constraints.matrix[n:, :1]))

    def no_multipliers(self) -> FloatArray:
        return np.zeros((self.n_clusters, self.constraints.matrix.shape[0]))

    def with_constraints(self, constraints: Constraints) -> Self:
        """Return the same rows under other constraints (in terms of groups)."""
        other = copy.copy(self)
        other._set_constraints(constraints)
        return other

    def with_sizes_only(self) -> Self:
        """Return the same rows with no constraints but the bounds on sizes."""
        other = copy.copy(self)
        other.__dict__.pop("constraint_entries", None)
        known, n = self.constraints, self.constraints.n_proportions
        other.constraints = known._replace(matrix=known.matrix[n:], slack=known.slack[:, n:])
        return other

    def subset(self, rows: IntArray) -> Self:
        """Return some of the rows, with the same cells and constraints."""
        part = copy.copy(self)
        part.weights, part.cells = self.weights[rows], self.cells[rows]
        part._share_slack(self)
        return part

    def sample_rows(self, n_rows: int, random_state: Seed) -> IntArray:
        """Draw rows at random, in rising order; all of them if there are no more."""
        if self.n_samples <= n_rows:
            return np.arange(self.n_samples)
        # scikit-learn's takes a step for each row which is there, this one for each that is drawn.
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return np.sort(rng.choice(self.n_samples, n_rows, replace=False, shuffle=False))

    def sampled(self, n_rows: int, random_state: Seed) -> tuple[IntArray, Self]:
        """Draw rows at random; return their numbers and the same constraints for them.

        Cells keep their shares: a sample with too little of a group could not satisfy them. Rows
        that weigh as much as many are in every sample, and stand for no others.
        """
        rows, limit = self.sample_rows(n_rows, random_state), _HEAVY * self.total_weight / n_rows
        heavy = np.flatnonzero(self.weights > limit)
        rows = np.union1d(rows, heavy) if heavy.size else rows
        part = self.subset(rows)
        mine, drawn = self._light(limit), part._light(limit)
        share = part.total_weight / self.total_weight
        factor = (mine / np.where(drawn > 0, drawn, 1.0))[part.cells]
        part.weights = part.weights * np.where(part.weights <= limit, factor, 1.0) * share
        return rows, part

    def _light(self, limit: float) -> FloatArray:
        """Return the weight of each cell in rows up to a limit."""

        def of_block(i: int, j: int) -> FloatArray:
            weights = np.where(self.weights[i:j] <= limit, self.weights[i:j], 0.0)
            return np.asarray(np.bincount(self.cells[i:j], weights, self.n_cells), np.float64)

        return added(of_block, self.n_samples, np.zeros(self.n_cells))

    def _set_constraints(self, constraints: Constraints, before: FloatArray | None = None) -> None:
        """Express constraints on groups as constraints on cells, with one slack per cluster."""
        expanded = constraints.matrix @ self.membership
        order, n_proportions = np.arange(len(expanded)), constraints.n_proportions
        if before is None and n_proportions:
            order[:n_proportions] = np.lexsort(expanded[:n_proportions].T)
        self.constraint_order = order
        self.__dict__.pop("constraint_entries", None)  # of other constraints
        self.group_constraints = constraints.matrix[order]
        slack = np.broadcast_to(constraints.slack, (self.n_clusters, order.size))[:, order]
        if before is not None:
            slack += before @ self.group_constraints.T
        self.constraints = Constraints(
            np.ascontiguousarray(expanded[order]), slack, *constraints[2:]
        )

    def _share_slack(self, whole: GroupedRows) -> None:
        """Take the share of the slack of a larger problem."""
        self.total_weight = float(self.weights.sum())
        # Rounding by one row of the sample stands for many rows of the whole.
        share = self.total_weight / whole.total_weight
        self.constraints = whole.constraints._replace(slack=whole.constraints.slack * share)
