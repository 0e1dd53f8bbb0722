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
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.random import sample_without_replacement

from skfair._typing import FloatArray
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.cost_table import Costs, CostTable, Distances, are_many
from skfair.problems.clustering.spread import Spread, squared_norms
from skfair.utils.factorize import IntArray, first_rows

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
    first : ndarray of shape (n_samples,), default=None
        Where rows stand for several: the first of those that each stands for.

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
        first: IntArray | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = np.ones(groups.n_samples) if weights is None else weights
        cells = groups.cells(sample_weight=weights)
        # Cells and rules are put into an order that does not depend on the names of the groups, so
        # that neither does the result. Sums that differ by rounding only are equal.
        codes = cells.codes if first is None else cells.codes[np.argsort(first)]
        shares = np.round(cells.weights / cells.weights.sum(), 12)
        order = np.lexsort((first_rows(codes), shares))
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

    @property
    def has_whole_people(self) -> bool:
        """Whether every row is one person: counts are whole numbers."""
        return bool(np.all(self.weights == 1))

    @abstractmethod
    def distances(self, target: NDArray[Any]) -> CostTable:
        """Return what each row pays in each cluster."""

    def target_of(self, rows: IntArray, target: NDArray[Any]) -> NDArray[Any]:
        """Return what ``distances`` of the problem on some of the rows takes."""
        return target

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

    def subset(self, rows: IntArray) -> GroupedRows:
        """Return the problem on some of the rows, with the same cells and rules."""
        part = copy.copy(self)
        part.weights, part.cells = self.weights[rows], self.cells[rows]
        part._share_slack(self)
        return part

    def sample_rows(self, n_rows: int, random_state: Any) -> IntArray:
        """Draw rows at random, in rising order; all of them if there are no more."""
        if self.n_samples <= n_rows:
            return np.arange(self.n_samples)
        rows = sample_without_replacement(self.n_samples, n_rows, random_state=random_state)
        return np.sort(rows)

    def _share_slack(self, whole: GroupedRows) -> None:
        """Take the share of the slack of a larger problem."""
        self.total_weight = float(self.weights.sum())
        # Rounding by one person of the sample stands for many people of the whole.
        share = self.total_weight / whole.total_weight
        self.rules = Rules(whole.rules.matrix, whole.rules.slack * share)

    def counts(self, labels: Any) -> FloatArray:
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
    groups, rules, n_clusters, weights, before, first
        See :class:`GroupedRows`.
    units : (ndarray, float), default=None
        Origin and unit of the scaled coordinates; by default mean and spread of the points.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,), float
        Origin and unit of the scaled coordinates.
    is_large : bool
        Whether there are so many numbers that distances are computed in single precision.
    buffers : dict or None
        Arrays that the pieces of a block share.
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
        first: IntArray | None = None,
    ) -> None:
        super().__init__(groups, rules, n_clusters, weights, before, first)
        self.X = X
        self.buffers: dict[str, NDArray[Any]] | None = None
        self.is_large = are_many(self.n_samples * max(n_clusters, X.shape[1]))
        self.mean, self.scale = self._measure() if units is None else units
        dtype = np.float32 if self.is_large else np.float64
        self.norms: NDArray[Any] | None = np.empty(X.shape[0], dtype)
        for rows in self.row_slices():
            self.norms[rows] = squared_norms(self.scaled(rows))

    def _measure(self) -> tuple[FloatArray, float]:
        """Find the mean and the spread of the data without copying them."""
        return Spread.merged(
            [Spread.of(self.X[rows], self.weights[rows]) for rows in self.row_slices()]
        ).units()

    def row_slices(self) -> Iterator[slice]:
        """Yield slices of rows whose numbers stay in the cache."""
        step = max(1, _BLOCK // max(self.n_clusters, self.X.shape[1]))
        for start in range(0, self.X.shape[0], step):
            yield slice(start, min(start + step, self.X.shape[0]))

    def scaled(self, rows: Any) -> NDArray[Any]:
        """Return rows of X relative to the mean and in units of the spread."""
        dtype = np.float32 if self.is_large or self.X.dtype == np.float32 else np.float64
        given = self.X[rows]
        part = self.room("scaled", given.shape, self.X.dtype, is_new=not isinstance(rows, slice))
        np.subtract(given, self.mean.astype(part.dtype), out=part)
        part /= part.dtype.type(self.scale)
        return part.astype(dtype, copy=False)

    def room(self, name: str, shape: tuple[int, ...], dtype: Any, is_new: bool) -> NDArray[Any]:
        """Return an array to write to: that of the last piece of a block, if this is one.

        Large arrays come from the system page by page, which for every piece would take as long as
        to compute it.
        """
        if is_new or self.buffers is None:
            return np.empty(shape, dtype)
        if name not in self.buffers or self.buffers[name].shape[0] < shape[0]:
            self.buffers[name] = np.empty(shape, dtype)
        return self.buffers[name][: shape[0]]

    def norms_of(self, rows: slice, scaled: NDArray[Any]) -> NDArray[Any]:
        """Return the squared lengths of scaled rows, which are kept for a problem in memory."""
        return squared_norms(scaled) if self.norms is None else self.norms[rows]

    def unscaled(self, centers: NDArray[Any]) -> FloatArray:
        """Return centres in the units of X."""
        return np.asarray(centers, dtype=np.float64) * self.scale + self.mean

    def with_rules(self, rules: Rules) -> RepresentationProblem:
        """Return the same points under other rules (in terms of groups)."""
        other = copy.copy(self)
        other._set_rules(rules)
        return other

    def with_rows(self, X: NDArray[Any], cells: IntArray, weights: FloatArray) -> Self:
        """Return the same problem for other points, as part of the same whole."""
        other = copy.copy(self)
        other.X, other.cells, other.weights, other.norms = X, cells, weights, None
        return other

    def subset(self, rows: IntArray) -> RepresentationProblem:
        """Return the problem on some of the points, with the same cells, units and rules."""
        part = self.with_rows(self.X[rows], self.cells[rows], self.weights[rows])
        part.norms = None if self.norms is None else self.norms[rows]
        part._share_slack(self)
        return part

    def sample(self, n_rows: int, random_state: Any) -> RepresentationProblem:
        """Return the problem on a random sample, or on all points if there are no more."""
        if self.X.shape[0] == self.n_samples <= n_rows:
            return self
        return self.subset(self.sample_rows(n_rows, random_state))

    def label_rows(self, labels: Any) -> Any:
        """Return labels as one integer per row."""
        return labels.astype(np.int32)

    def distances(self, target: NDArray[Any]) -> Distances:
        """Return the squared distances to centres (in scaled units)."""
        return Distances(self, target)

    def sums(self, labels: Any) -> tuple[FloatArray, FloatArray, float]:
        """Return sum (scaled) and weight of each cluster, and the sum of squared norms."""
        from skfair._kernels.prices import cluster_sums

        sums = np.zeros((self.n_clusters, self.X.shape[1]))
        mass = np.zeros(self.n_clusters)
        squares = 0.0
        for rows in self.row_slices():
            scaled = self.scaled(rows)
            cluster_sums(scaled, labels[rows], self.weights[rows], sums, mass)
            squares += float(np.dot(self.weights[rows], self.norms_of(rows, scaled)))
        return sums, mass, squares

    def means(self, labels: Any) -> tuple[FloatArray, FloatArray]:
        """Return the mean (scaled) and the weight of each cluster; an empty one has mean 0."""
        sums, mass, _ = self.sums(labels)
        return sums / np.where(mass > 0, mass, 1.0)[:, None], mass

    def cost(self, labels: Any) -> float:
        """Return the mean squared distance (scaled) of the points to their clusters' means."""
        sums, mass, squares = self.sums(labels)
        means = sums / np.where(mass > 0, mass, 1.0)[:, None]
        inner = float(mass @ np.einsum("ij,ij->i", means, means))
        return (squares - inner) / self.total_weight


class CostProblem(GroupedRows):
    """Rows that pay a given cost to join a cluster, under the same rules."""

    def distances(self, target: NDArray[Any]) -> Costs:
        """Return costs, (n_samples, n_clusters), in the form in which solvers read distances."""
        return Costs(self, target)

    def target_of(self, rows: IntArray, target: NDArray[Any]) -> NDArray[Any]:
        """Return the costs of some of the rows."""
        return np.asarray(target[rows])
