"""The interface between constraints within percentile intervals and the problem that is solved.

Such a constraint names a subclass of :class:`RankedMoment` (its attribute ``ranked``), for example
in :mod:`skfair.partial_parity.statistical_parity`. Other moments are means of a function of single
scores. A ranked moment is not, because the ranks of all scores determine which rows count. It has
functions c of all scores and of a few auxiliary parameters, such as thresholds. The constraint is

    lower <= c(scores, aux) <= upper

:meth:`~RankedMoment.forms` binds it to rows when a fit states its problem. The
:class:`~skfair.partial_parity.problem.PartialParityProblem` then calls ``bounds`` for a tolerance,
``start`` once, and ``evaluate`` and ``pull`` in every evaluation.

A moment sees the groups of one attribute. With several overlapping attributes there is a moment for
each. Its functions are smooth approximations for solvers. The disparity that is limited and
reported is measured by :mod:`skfair.metrics` instead.
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

    groups: GroupEncoding  # the groups of one attribute
    targets: FloatArray  # (n_samples,): -1 and 1
    sample_weight: FloatArray | None  # (n_samples,): weights of the rows
    intervals: Intervals  # the percentile intervals of each group
    # (n_percentiles,): the shares of the intervals at which statistical parity is imposed
    percentiles: FloatArray

    @property
    def classes(self) -> IntArray:
        """1 for rows of the positive class, 0 for the others."""
        return (self.targets > 0).astype(np.int64)


class Values(NamedTuple):
    """The functions of a moment at a point."""

    values: FloatArray  # (n_constraints,): their values
    tape: Any  # state of the evaluation, from which :meth:`RankedMoment.pull` computes slopes


class RankedMoment(ABC):
    """Base of the functions of all scores that a constraint within intervals bounds.

    A cell is a set of rows over which a mean is taken: a group, or a class within a group.
    """

    # Names of the functions of :mod:`skfair.metrics` that measure it. The name at place k is for a
    # constraint on k classes (0: all rows). If there is no name, the largest of the moment's own
    # values, with a ramp, is limited and reported, and maps of the groups cannot satisfy it
    metrics: ClassVar[tuple[str, ...]] = ()
    # The metric for ``scale="ccdf"`` if this scale compares groups at the same thresholds. None if
    # it only multiplies the disparity by the length of the interval
    ccdf_metric: ClassVar[str | None] = None
    is_share: ClassVar[bool] = False  # whether the disparity is a share of the interval
    # Whether only decisions count: which rows are above the threshold, not their order
    limits_decisions: ClassVar[bool] = False
    # Whether its values are means over rows, so that a few rows estimate them without bias. Such
    # moments have :meth:`on_rows`
    is_mean: ClassVar[bool] = False

    row_names: tuple[str, ...]  # what each constraint row limits
    n_aux: int = 0  # number of auxiliary parameters
    # (n_percentiles,): the shares of the intervals at which it is imposed; empty if it is not
    # imposed at single percentiles
    percentiles: FloatArray = np.empty(0)

    def __init__(self, rows: IntervalRows, surrogate: Surrogate) -> None:
        self.intervals = rows.intervals
        self.surrogate = surrogate  # the smooth step that replaces "above the threshold"
        self.codes, self.group_names = rows.groups.codes[0], rows.groups.names
        self.n_groups = rows.groups.n_groups
        n_rows, weights = self.codes.size, rows.sample_weight
        self.weights = np.ones(n_rows) if weights is None else weights

    @classmethod
    def forms(
        cls,
        rows: IntervalRows,
        surrogate: Surrogate,
        classes: tuple[int, ...] = (),  # the classes on which it depends; () for all rows
        ranks_whole_groups: bool = False,  # whether ranks are among all rows of a group
        printed: bool = False,  # whether only the form that the paper prints is returned
    ) -> list[Self]:
        """Bind it to rows, in one or several forms.

        Each form is a set of constraints that is sufficient for the limit. A fit solves the problem
        with each, and keeps the best solution.
        """
        return [cls(rows, surrogate, classes) if classes else cls(rows, surrogate)]  # type: ignore[call-arg]

    @property
    def n_constraints(self) -> int:
        """Number of constraint rows."""
        return len(self.row_names)

    def with_surrogate(self, surrogate: Surrogate) -> Self:
        """Return a copy with another smooth step, which shares the arrays of the rows."""
        other = copy(self)
        other.surrogate = surrogate
        return other

    def shares(self, cells: IntArray, n_cells: int) -> FloatArray:
        """Return the weight of each row in the mean of its cell; weights of a cell sum to 1."""
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
        """Return slopes of sum(multipliers * values) by scores and by auxiliary parameters."""

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Self:
        """Return the moment on some rows, each of which stands for ``factors`` rows."""
        raise NotImplementedError


class WithinIntervals(OneLimit):
    """Base of constraints that can only be used within intervals."""

    tasks = frozenset({"intervals"})
    taken_by = "PartialParityClassifier"
