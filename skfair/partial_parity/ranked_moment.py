"""Moments over ranked rows, which constraints within percentile intervals keep between bounds.

The moment of such a constraint (:attr:`skfair.constraints.Constraint.ranked`) is no mean of a
function of single scores, for who counts depends on the ranks. It keeps functions of all scores
(and of a few auxiliary parameters, thresholds above all) between bounds,

    lower <= c(scores, aux) <= upper

It sees the groups of one attribute. Overlapping attributes make one moment each.

The function that a moment keeps small is smooth. The disparity that is promised and reported is
measured by :mod:`skfair.metrics`, never here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.base import OneLimit
from skfair.groups.encoding import GroupEncoding
from skfair.groups.intervals import Intervals
from skfair.partial_parity.row_pairs import RankedRows
from skfair.partial_parity.surrogates import Surrogate


class IntervalRows(NamedTuple):
    """The parts of the training data that a moment may know."""

    groups: GroupEncoding  # of one attribute
    targets: FloatArray  # (n_samples,): -1 and 1
    sample_weight: FloatArray | None  # (n_samples,): weights of the rows
    intervals: Intervals  # the percentile intervals of each group
    percentiles: FloatArray  # (n_percentiles,): shares of them at which a constraint is imposed

    @property
    def classes(self) -> IntArray:
        """1 for rows of the positive class, 0 for the others."""
        return (self.targets > 0).astype(np.int64)


class Values(NamedTuple):
    """Functions of a moment at a point."""

    values: FloatArray  # (n_constraints,): their values
    tape: Any  # what :meth:`RankedMoment.pull` needs


class RankedMoment(ABC):
    """Functions of all scores of given rows that a constraint within intervals keeps in bounds."""

    # Names of the functions of :mod:`skfair.metrics` that measure it, by the number of classes that
    # count. Without one, the largest of its own values, with a ramp, is limited and reported, and
    # maps of the groups cannot satisfy it
    metrics: ClassVar[tuple[str, ...]] = ()
    # The same for ``scale="ccdf"``, if that compares groups at thresholds; None if it only
    # multiplies by the length of the interval
    ccdf_metric: ClassVar[str | None] = None
    is_share: ClassVar[bool] = False  # whether the disparity is a share of the interval
    # Whether only decisions count: who is above the threshold, not in which order
    limits_decisions: ClassVar[bool] = False
    # Whether its values are means over rows, which few rows estimate without bias: it then has
    # :meth:`on_rows`
    is_mean: ClassVar[bool] = False

    row_names: tuple[str, ...]  # what each constraint row limits
    n_aux: int = 0  # number of auxiliary parameters
    # (n_percentiles,): where it is imposed, as shares of the intervals; empty if it is not
    # imposed at some only
    percentiles: FloatArray = np.empty(0)

    def __init__(self, rows: IntervalRows, surrogate: Surrogate) -> None:
        self.intervals = rows.intervals
        self.surrogate = surrogate  # the step that stands for "above the threshold"
        self.codes, self.group_names = rows.groups.codes[0], rows.groups.names
        self.n_groups = rows.groups.n_groups
        n_rows, weights = self.codes.size, rows.sample_weight
        self.weights = np.ones(n_rows) if weights is None else weights

    @classmethod
    def forms(
        cls,
        rows: IntervalRows,
        surrogate: Surrogate,
        classes: tuple[int, ...] = (),  # within which ranks are taken, one by one
        ranks_whole_groups: bool = False,  # whether ranks are those among all rows of a group
        printed: bool = False,  # whether the form is that in which the paper prints it
    ) -> list[Self]:
        """Bind it to rows: several forms, each of which is sufficient, are tried one by one."""
        return [cls(rows, surrogate, classes) if classes else cls(rows, surrogate)]  # type: ignore[call-arg]

    @property
    def n_constraints(self) -> int:
        """Number of constraint rows."""
        return len(self.row_names)

    def with_surrogate(self, surrogate: Surrogate) -> Self:
        """Return the moment with another step; what it knows of the rows is shared."""
        other = copy(self)
        other.surrogate = surrogate
        return other

    def shares(self, cells: IntArray, n_cells: int) -> FloatArray:
        """Return the weight of each row in the mean of its cell; cells add up to 1."""
        return np.asarray(self.weights / np.bincount(cells, self.weights, n_cells)[cells])

    def ranked_groups(self, scores: FloatArray) -> list[RankedRows]:
        """Return the rows of each group, sorted by their scores."""
        members = [np.flatnonzero(self.codes == g) for g in range(self.n_groups)]
        return [RankedRows(rows, scores, self.weights[rows]) for rows in members]

    @abstractmethod
    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds, infinite where nothing is limited.

        Parameters
        ----------
        tolerance : float
            The disparity allowed, as a share of the intervals.
        """

    def start(self, scores: FloatArray, tolerance: float) -> FloatArray:
        """Return auxiliary parameters that suit the scores, in the middle of the bounds."""
        return np.zeros(self.n_aux)

    @abstractmethod
    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        """Return the functions of the moment."""

    @abstractmethod
    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes of sum(multipliers * values) by the scores and by the auxiliaries."""

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Self:
        """Return the moment on some rows, each of which stands for ``factors`` rows."""
        raise NotImplementedError


class WithinIntervals(OneLimit):
    """Base of constraints that are used within intervals only."""

    tasks = frozenset({"intervals"})
    taken_by = "PartialParityClassifier"
