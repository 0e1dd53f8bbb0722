"""Constraints on the counts of the groups in each cluster, and the rows that are counted.

A *cell* is the set of rows that belong to the same groups of all attributes (an atom of the group
algebra). Constraints do not tell the rows of a cell apart. With ``counts[k]`` the number (or
weight) of the rows of each cell in cluster k, every cluster has to satisfy

    matrix @ counts[k] >= -slack[k]

so ``slack`` is the amount by which ``matrix @ counts[k]`` may be negative. There are three
families. n is the weight of the rows of a cluster, and n_g the weight of its members of group g:

- balance: each group is at least ``beta`` times as large as any other of the same attribute,
  ``n_g - beta n_g' >= 0`` (:func:`balance_constraints`),
- shares: the share of each group lies within its limits, up to one row, ``n_g - lower n > -1`` and
  ``upper n - n_g > -1`` (:func:`share_constraints`),
- sizes, added to one of these: ``low <= n <= high`` (:meth:`Constraints.with_sizes`).

``cluster/limits.py`` calls these functions with the limits of the user. Their constraints are in
terms of groups. A :class:`GroupedRows` holds rows, and translates constraints to its cells. It is
the base of the problems that solvers see (``cost_table.py``, ``points.py``).
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

# A balance with more constraints per cluster than this is refused.
_MAX_CONSTRAINTS = 100_000
# Rows are whole, so a limit on a share may be missed by less than one row, at most by this part of
# a row.
_ALMOST_ONE = 1 - 1e-8
# A row of a sample of m rows stands for a weight of total / m. Rows that weigh this many times as
# much are in every sample.
_HEAVY = 10.0


class Constraints(NamedTuple):
    """Linear constraints on the counts of each cluster: ``matrix @ counts >= -slack``.

    The last three fields are the limits from which the constraints were made, for reports and
    solvers.
    """

    # (n_constraints, n_groups): coefficients of the counts; (n_constraints, n_cells) in
    # ``GroupedRows.constraints``
    matrix: FloatArray
    # (n_constraints,) or, by cluster, (n_clusters, n_constraints): see above
    slack: FloatArray
    # (n_attributes,): the smallest balance for each attribute; None if there is no limit on it
    min_balances: FloatArray | None = None
    # (2, n_groups): smallest and largest share of each group; None if shares are not limited
    shares: FloatArray | None = None
    # (2, n_clusters): smallest and largest weight of each cluster; None if sizes are not limited.
    # If they are, the last two constraints are the bounds on sizes, and ``slack`` is by cluster
    sizes: FloatArray | None = None

    @property
    def n_proportions(self) -> int:
        """Number of constraints on groups, which come before the two on sizes."""
        return len(self.matrix) - (0 if self.sizes is None else 2)

    @classmethod
    def none(cls, n_groups: int, min_balances: FloatArray | None = None) -> Constraints:
        """Return no constraints. ``min_balances`` (all 0) may be given for reports."""
        return cls(np.zeros((0, n_groups)), np.zeros(0), min_balances)

    def violation(self, counts: FloatArray) -> FloatArray:
        """Return the sum of the violations of all constraints in each cluster, (n_clusters,).

        ``counts`` has a row for each cluster and the columns of ``matrix``.
        """
        values = counts @ self.matrix.T + self.slack
        return np.asarray(np.maximum(0.0, -values).sum(axis=1))

    def violation_beyond(self, counts: FloatArray, largest_weight: float) -> float:
        """Return the sum of those violations that amount to a whole row or more.

        Estimators call it to report whether the limits are satisfied, because whole rows may be
        unable to satisfy them exactly. The allowance depends on the constraint:

        - Bounds on sizes may not be missed at all, except by rounding.
        - The slack of shares is nearly a row already, so any further violation counts.
        - A constraint on the balance may be missed by less than the largest weight of a row. If it
          asks for the presence of a group, it may be missed by less than what it asks for.
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
        """Return the price of each cluster for the rows of each cell, (n_cells, n_clusters).

        ``multipliers`` has the shape (n_clusters, n_constraints).
        """
        return np.ascontiguousarray(-(multipliers @ self.matrix).T)


def balance_constraints(
    groups: GroupEncoding, betas: FloatArray, smallest_weight: float = 1.0
) -> Constraints:
    """Return the constraints of a minimal balance ``betas[a]`` for each attribute a.

    An empty cluster would satisfy all ratios, so a positive balance also requires members of every
    group in every cluster: ``n_g >= smallest_weight``, the smallest positive weight of a row. A
    larger bound would forbid clusters that satisfy the limits.
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
    """Return the constraints that each group's share lies within its limits, up to a row.

    ``lower`` and ``upper`` have the shape (n_groups,). Limits of 0 and 1 need no constraint.
    """
    rows = []
    same = groups.attribute_of_group[:, None] == groups.attribute_of_group
    for g in range(groups.n_groups):
        # The groups of one attribute make up the cluster, so size @ counts is its weight.
        size = same[g].astype(np.float64)
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

    Attributes
    ----------
    cells : ndarray of shape (n_samples,)
        Cell of each row.
    membership : ndarray of shape (n_groups, n_cells)
        1 if the cell belongs to the group, and otherwise 0.
    constraints : Constraints
        The constraints in terms of cells, with one slack for each cluster and constraint.
    group_constraints : ndarray of shape (n_constraints, n_groups)
        The same coefficients in terms of groups, from which prices of groups are made.
    constraint_order : ndarray of shape (n_constraints,)
        Position of each of these constraints among the given ones.
    """

    def __init__(
        self,
        groups: GroupEncoding,  # the groups of the rows
        constraints: Constraints,  # constraints in terms of groups
        n_clusters: int,  # number of clusters
        weights: FloatArray | None = None,  # (n_samples,): sample weights
        # (n_clusters, n_groups): weights that the clusters hold already, if the rows are a part of
        # a stream or a batch. The constraints apply to the sum
        before: FloatArray | None = None,
    ) -> None:
        self.n_clusters, self.n_attributes = int(n_clusters), groups.n_attributes
        self.weights = np.ones(groups.n_samples) if weights is None else weights
        cells = groups.cells(sample_weight=weights)
        # Cells and constraints are sorted so that their order, and thus the result, does not depend
        # on the names of groups. Shares that differ by rounding only count as equal.
        shares = np.round(cells.weights / cells.weights.sum(), 12)
        order = np.lexsort((first_rows(cells.codes), shares))
        if before is not None:  # a stream keeps the order of its first part
            order = np.arange(order.size)
        self.cells: NDArray[Any] = np.argsort(order).astype(np.int32)[cells.codes]
        self.membership = cells.membership.toarray()[:, order]
        self._set_constraints(constraints, before)
        self.total_weight = float(self.weights.sum())
        self.largest_weight = float(self.weights.max())  # see ``violation_beyond``

    @cached_property
    def constraint_entries(self) -> tuple[NDArray[Any], ...]:
        """``(matrix, starts, which)`` for the kernel ``move_points``.

        ``which[starts[s] : starts[s + 1]]`` are the constraints with a coefficient for cell s. They
        are read from the matrix in CSC form.
        """
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
        """Group of each row, for solvers that take a single attribute (its first one)."""
        return np.asarray(self.membership.argmax(axis=0)[self.cells], dtype=np.int64)

    @property
    def mean_weight(self) -> float:
        """Mean weight of a row: the unit in which sums of weights are compared."""
        return self.total_weight / self.n_samples

    @property
    def rounding(self) -> float:
        """The largest error of sums of weights through rounding."""
        return SUM_ROUNDING * self.mean_weight

    @property
    def row_weight(self) -> float:
        """The weight that all rows have (apart from 0); 0 if weights differ.

        Counts divided by it are whole numbers.
        """
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
        """Return the sum of the violations in all clusters, without those by rounding."""
        missed = -(counts @ self.constraints.matrix.T + self.constraints.slack)
        total = float(missed[missed > self.rounding].sum())
        # Labels are compared by this number, and differences by rounding must not decide.
        return float(f"{total:.9g}")

    def group_prices(self, multipliers: FloatArray) -> FloatArray:
        """Return the price of each cluster for members of each group, (n_clusters, n_groups)."""
        return np.asarray(-(multipliers @ self.group_constraints))

    def size_prices(self, multipliers: FloatArray) -> FloatArray:
        """Return the price of each cluster for its size, which all rows pay, (n_clusters, 1)."""
        n = self.constraints.n_proportions
        return np.asarray(-(multipliers[:, n:] @ self.constraints.matrix[n:, :1]))

    def no_multipliers(self) -> FloatArray:
        """Return zeros, by cluster and constraint: prices of 0."""
        return np.zeros((self.n_clusters, self.constraints.matrix.shape[0]))

    def with_constraints(self, constraints: Constraints) -> Self:
        """Return the same rows under other constraints (in terms of groups)."""
        other = copy.copy(self)
        other._set_constraints(constraints)
        return other

    def with_sizes_only(self) -> Self:
        """Return the same rows with only the bounds on sizes as constraints."""
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
        """Draw ``n_rows`` row numbers at random, in rising order, or all if there are fewer."""
        if self.n_samples <= n_rows:
            return np.arange(self.n_samples)
        # The generator takes time in proportion to the rows that are drawn. scikit-learn's sampling
        # takes it in proportion to all rows.
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        return np.sort(rng.choice(self.n_samples, n_rows, replace=False, shuffle=False))

    def sampled(self, n_rows: int, random_state: Seed) -> tuple[IntArray, Self]:
        """Draw rows at random; return their numbers and the problem on them.

        The weights of the drawn rows are scaled cell by cell, so that cells keep their shares,
        because a sample with too few members of a group could not satisfy the constraints. Heavy
        rows (``_HEAVY``) are always in the sample, and keep their own weight.
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
        """Return the weight of each cell, without rows that weigh more than ``limit``."""

        def of_block(i: int, j: int) -> FloatArray:
            weights = np.where(self.weights[i:j] <= limit, self.weights[i:j], 0.0)
            return np.asarray(np.bincount(self.cells[i:j], weights, self.n_cells), np.float64)

        return added(of_block, self.n_samples, np.zeros(self.n_cells))

    def _set_constraints(self, constraints: Constraints, before: FloatArray | None = None) -> None:
        """Translate constraints on groups to cells, with one slack per cluster.

        What the clusters hold ``before`` is added to the slack.
        """
        expanded = constraints.matrix @ self.membership
        order, n_proportions = np.arange(len(expanded)), constraints.n_proportions
        if before is None and n_proportions:
            order[:n_proportions] = np.lexsort(expanded[:n_proportions].T)
        self.constraint_order = order
        self.__dict__.pop("constraint_entries", None)  # entries of other constraints
        self.group_constraints = constraints.matrix[order]
        slack = np.broadcast_to(constraints.slack, (self.n_clusters, order.size))[:, order]
        if before is not None:
            slack += before @ self.group_constraints.T
        self.constraints = Constraints(
            np.ascontiguousarray(expanded[order]), slack, *constraints[2:]
        )

    def _share_slack(self, whole: GroupedRows) -> None:
        """Take the constraints of the whole problem, with slack in proportion to the weight."""
        self.total_weight = float(self.weights.sum())
        # A row of the sample stands for many rows, so a slack of one whole row would be too much.
        share = self.total_weight / whole.total_weight
        self.constraints = whole.constraints._replace(slack=whole.constraints.slack * share)
