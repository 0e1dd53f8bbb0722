"""Clustering in which every group keeps its place in every cluster: the data and the rules.

Points that belong to the same groups are interchangeable for every rule, so rules speak of *cells*
(atoms of the group algebra), which also covers overlapping attributes. With ``counts[k]`` the
number (or weight) of the points of each cell in cluster k, every cluster has to satisfy

    rules @ counts[k] >= -slack

Two families are built here. A balance: of any two groups of an attribute each is at least ``beta``
times as large as the other, ``n_g - beta n_g' >= 0``. Shares: each group's share lies between
bounds, up to one person, ``n_g - lower n > -1`` and ``upper n - n_g > -1``.

Distances are measured from the mean of the data and in units of their spread, so that neither far
offsets nor tiny or huge scales cost digits; the data themselves are never copied.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from skfair.utils.factorize import IntArray, first_rows
from skfair.utils.groups import GroupEncoding

FloatArray = NDArray[np.float64]
Block = tuple[slice, NDArray[Any]]

# Distances of more numbers than this are recomputed block by block instead of kept: 8 MB.
_MAX_KEPT = 1 << 20
# Numbers per block: what stays in the cache of one core.
_BLOCK = 1 << 17
# More rules than this per cluster cannot be priced one by one.
_MAX_RULES = 100_000
# Whole people: a share may be missed by less than one of them.
_ONE = 1 - 1e-9


class Rules(NamedTuple):
    """Linear rules on the counts of each cluster: ``matrix @ counts >= -slack``."""

    matrix: FloatArray  # (n_rules, n_groups) or, once expanded, (n_rules, n_cells)
    slack: FloatArray  # (n_rules,) or, in a problem, (n_clusters, n_rules)

    def violation(self, counts: FloatArray) -> FloatArray:
        """Sum what each cluster falls short of its rules; ``counts`` is (n_clusters, n)."""
        values = counts @ self.matrix.T + self.slack
        return np.asarray(np.maximum(0.0, -values).sum(axis=1))

    def violation_beyond(self, counts: FloatArray, person: float) -> float:
        """Sum what the rules are missed by where they are missed by a whole person or more."""
        missed = -(counts @ self.matrix.T + self.slack)
        return float(missed[missed >= person * _ONE].sum())


def balance_rules(groups: GroupEncoding, betas: FloatArray, person: float = 1.0) -> Rules:
    """Rules of a minimal balance ``betas[a]`` for each attribute a.

    A positive balance also needs a person of every group in every cluster, for an empty cluster
    would meet all ratios.
    """
    sizes = np.diff(groups.offsets)
    n_rules = int((sizes * (sizes - 1)).sum())
    if n_rules > _MAX_RULES:
        raise ValueError(
            f"A balance between {sizes.max()} groups needs {n_rules} rules per cluster. Use "
            "share_bounds, which need two per group."
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
    presence = np.where(np.repeat(betas > 0, sizes), -person, 0.0)
    return Rules(matrix, np.append(np.zeros(len(rows)), presence))


def share_rules(
    groups: GroupEncoding, lower: FloatArray, upper: FloatArray, person: float = 1.0
) -> Rules:
    """Rules that keep each group's share of every cluster between its bounds, up to a person."""
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
    return Rules(matrix, np.full(len(rows), _ONE * person))


class CostTable(Protocol):
    """What each row pays in each cluster, block by block."""

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, costs of these rows in all clusters)."""


class GroupedRows(ABC):
    """Rows, their cells, and the rules that each cluster has to satisfy.

    Parameters
    ----------
    groups : GroupEncoding
        The groups of the rows.
    rules : Rules
        Rules in terms of groups.
    n_clusters : int
        Number of clusters.
    weights : ndarray of shape (n_samples,) or None
        Sample weights.
    before : ndarray of shape (n_clusters, n_groups), default=None
        Weights that the clusters hold already (of a stream): the rules apply to the sum.

    Attributes
    ----------
    cells : ndarray of shape (n_samples,)
        Cell of each row.
    rules : Rules
        Rules in terms of cells, one slack per cluster and rule.
    group_rules : ndarray of shape (n_rules, n_groups)
        The same rules in terms of groups.
    rule_order : ndarray of shape (n_rules,)
        Which of the rules given each of them is.
    membership : ndarray of shape (n_groups, n_cells)
        1 where a group contains a cell.
    person : float
        The largest weight of a row: limits are met up to the weight of one.
    """

    def __init__(
        self,
        groups: GroupEncoding,
        rules: Rules,
        n_clusters: int,
        weights: FloatArray | None = None,
        before: FloatArray | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = np.ones(groups.n_samples) if weights is None else weights
        cells = groups.cells(sample_weight=weights)
        # Cells and rules are put into an order that does not depend on the names of the groups, so
        # that neither does the result.
        order = np.lexsort((first_rows(cells.codes), cells.weights))
        if before is not None:  # a stream keeps the order of its first part
            order = np.arange(order.size)
        self.cells = np.argsort(order)[cells.codes]
        self.membership = cells.membership.toarray()[:, order]
        self._set_rules(rules, before)
        self.total_weight = float(self.weights.sum())
        self.person = float(self.weights.max())

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.cells.size)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.membership.shape[1]

    @abstractmethod
    def distances(self, target: NDArray[Any]) -> CostTable:
        """Return what each row pays in each cluster."""

    def distances_of(self, rows: IntArray, target: NDArray[Any]) -> CostTable:
        """Return what some of the rows pay in each cluster."""
        return self.subset(rows).distances(target)

    def _set_rules(self, rules: Rules, before: FloatArray | None = None) -> None:
        """Express rules on groups as rules on cells, with one slack per cluster."""
        expanded = rules.matrix @ self.membership
        order = np.arange(rules.slack.size)
        if before is None and expanded.size:
            order = np.lexsort(expanded.T)
        self.rule_order = order
        self.group_rules = rules.matrix[order]
        slack = np.tile(rules.slack[order], (self.n_clusters, 1))
        if before is not None:
            slack += before @ self.group_rules.T
        self.rules = Rules(np.ascontiguousarray(expanded[order]), slack)

    def subset(self, rows: IntArray) -> Self:
        """Return the problem on some of the rows, with the same cells and rules."""
        part = copy.copy(self)
        part.weights, part.cells = self.weights[rows], self.cells[rows]
        part.total_weight = float(part.weights.sum())
        # Rounding by one person of the sample stands for many people of the whole.
        part.rules = Rules(
            self.rules.matrix, self.rules.slack * (part.total_weight / self.total_weight)
        )
        return part

    def counts(self, labels: IntArray) -> FloatArray:
        """Return the weight of the rows by cluster and cell."""
        joint = labels * self.n_cells + self.cells
        size = self.n_clusters * self.n_cells
        weights = np.bincount(joint, weights=self.weights, minlength=size).astype(np.float64)
        return weights.reshape(self.n_clusters, self.n_cells)


class RepresentationProblem(GroupedRows):
    """Points, their cells, and the rules that each cluster has to satisfy.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64, C-contiguous
        The points; kept by reference.
    groups, rules, n_clusters, weights, before
        See :class:`GroupedRows`.
    units : (ndarray, float), default=None
        Origin and unit of the scaled coordinates; by default mean and spread of the points.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,), float
        Origin and unit of the scaled coordinates.
    """

    def __init__(
        self,
        X: NDArray[Any],
        groups: GroupEncoding,
        rules: Rules,
        n_clusters: int,
        weights: FloatArray | None = None,
        before: FloatArray | None = None,
        units: tuple[FloatArray, float] | None = None,
    ) -> None:
        super().__init__(groups, rules, n_clusters, weights, before)
        self.X = X
        self.mean, self.scale = self._measure() if units is None else units
        self.norms: NDArray[Any] = np.empty(
            self.n_samples, np.float32 if self._is_large else np.float64
        )
        for part in self._rows():
            scaled = self.scaled(part)
            self.norms[part] = np.einsum("ij,ij->i", scaled, scaled)

    def _measure(self) -> tuple[FloatArray, float]:
        """Find the mean and the spread of the data without copying them."""
        # The largest magnitude first: squares of 1e200 overflow, those of 1e-200 vanish.
        largest = max(float(np.abs(self.X[rows]).max(initial=0.0)) for rows in self._rows())
        unit = largest if largest > 0 else 1.0
        mean = sum(
            (
                self.weights[rows] @ (self.X[rows].astype(np.float64) / unit)
                for rows in self._rows()
            ),
            start=np.zeros(self.X.shape[1]),
        )
        mean = mean / self.total_weight * unit
        spread = 0.0
        for rows in self._rows():
            part = (self.X[rows].astype(np.float64) - mean) / unit
            spread += float(self.weights[rows] @ np.einsum("ij,ij->i", part, part))
        return mean, float(unit * np.sqrt(spread / self.total_weight)) or 1.0

    @property
    def _is_large(self) -> bool:
        return self.n_samples * max(self.n_clusters, self.X.shape[1]) > _MAX_KEPT

    def _rows(self) -> Iterator[slice]:
        step = max(1, _BLOCK // max(self.n_clusters, self.X.shape[1]))
        for start in range(0, self.X.shape[0], step):
            yield slice(start, min(start + step, self.X.shape[0]))

    def scaled(self, rows: Any) -> NDArray[Any]:
        """Return rows of X relative to the mean and in units of the spread."""
        dtype = np.float32 if self._is_large or self.X.dtype == np.float32 else np.float64
        part = self.X[rows].astype(np.float64) if self.X.dtype == np.float64 else self.X[rows]
        return ((part - self.mean.astype(part.dtype)) / part.dtype.type(self.scale)).astype(
            dtype, copy=False
        )

    def unscaled(self, centers: NDArray[Any]) -> FloatArray:
        """Return centres in the units of X."""
        return np.asarray(centers, dtype=np.float64) * self.scale + self.mean

    def with_rules(self, rules: Rules) -> RepresentationProblem:
        """Return the same points under other rules (in terms of groups)."""
        other = copy.copy(self)
        other._set_rules(rules)
        return other

    def subset(self, rows: IntArray) -> Self:
        """Return the problem on some of the points, with the same cells, units and rules."""
        part = super().subset(rows)
        part.X, part.norms = self.X[rows], self.norms[rows]
        return part

    def distances(self, target: NDArray[Any]) -> Distances:
        """Return the squared distances to centres (in scaled units)."""
        return Distances(self, target)

    def means(self, labels: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean (scaled) and the weight of each cluster; an empty one has mean 0."""
        from skfair._kernels.prices import cluster_sums

        sums = np.zeros((self.n_clusters, self.X.shape[1]))
        mass = np.zeros(self.n_clusters)
        for rows in self._rows():
            cluster_sums(self.scaled(rows), labels[rows], self.weights[rows], sums, mass)
        return sums / np.where(mass > 0, mass, 1.0)[:, None], mass

    def cost(self, labels: IntArray) -> float:
        """Return the mean squared distance (scaled) of the points to their clusters' means."""
        means, mass = self.means(labels)
        inner = float(mass @ np.einsum("ij,ij->i", means, means))
        return (float(np.dot(self.weights, self.norms)) - inner) / self.total_weight


class Distances:
    """Squared distances of all points to given centres, kept or recomputed in blocks."""

    def __init__(self, problem: RepresentationProblem, centers: NDArray[Any]) -> None:
        self._problem = problem
        dtype = problem.norms.dtype
        self._minus_two = np.ascontiguousarray(-2 * centers.T, dtype=dtype)
        self._norms = np.einsum("ij,ij->i", centers, centers).astype(dtype)
        self._kept: list[Block] | None = None
        if problem.n_samples * problem.n_clusters <= _MAX_KEPT:
            self._kept = list(self._computed())

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, distances of these rows to all centres)."""
        yield from self._computed() if self._kept is None else self._kept

    def _computed(self) -> Iterator[Block]:
        problem = self._problem
        for rows in problem._rows():
            block = problem.scaled(rows).astype(self._minus_two.dtype, copy=False) @ self._minus_two
            block += self._norms
            block += problem.norms[rows, None]
            # Rounding may leave a point that sits on its centre at -1e-17.
            np.maximum(block, 0, out=block)
            yield rows, block


class CostProblem(GroupedRows):
    """Rows that pay a given cost to join a cluster, under the same rules."""

    def distances(self, target: NDArray[Any]) -> Costs:
        """Return costs, (n_samples, n_clusters), in the form in which solvers read distances."""
        return Costs(target)

    def distances_of(self, rows: IntArray, target: NDArray[Any]) -> Costs:
        """Return the costs of some of the rows."""
        return Costs(target[rows])


class Costs:
    """A table of costs that looks like :class:`Distances` to a solver.

    Rows are shifted so that the cheapest cluster of each costs the same positive amount, the mean
    of what the others cost more: solvers take the mean of the cheapest as their unit.
    """

    def __init__(self, costs: NDArray[Any]) -> None:
        above = np.ascontiguousarray(costs - costs.min(axis=1, keepdims=True))
        above += above.mean() or 1.0
        self._above = above

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, costs of these rows in all clusters)."""
        yield slice(0, self._above.shape[0]), self._above
