"""The interface between constraints within percentile intervals and the problem that is solved.

Such a constraint names a subclass of :class:`RankedMoment` (its attribute ``ranked``), for example
in :mod:`skfair.partial_parity.statistical_parity`. Unlike other moments it is no mean of a function
of single scores, because the ranks of all scores say which rows count. Instead it has functions c
of all scores, and of a few auxiliary parameters such as thresholds, which are kept between bounds:

    lower <= c(scores, aux) <= upper

How it is used: :meth:`~RankedMoment.forms` binds it to rows when a fit states its problem. The
:class:`~skfair.partial_parity.problem.PartialParityProblem` then calls ``bounds`` for a tolerance,
``start`` once, and ``evaluate`` and ``pull`` in every evaluation.

A moment sees the groups of one attribute. Overlapping attributes make one moment each. Its
functions are smooth approximations for solvers. The disparity that is promised and reported is
measured by :mod:`skfair.metrics` instead.
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
    # (n_percentiles,): at which shares of the intervals statistical parity is imposed
    percentiles: FloatArray

    @property
    def classes(self) -> IntArray:
        """1 for rows of the positive class, 0 for the others."""
        return (self.targets > 0).astype(np.int64)


class Values(NamedTuple):
    """Functions of a moment at a point."""

    values: FloatArray  # (n_constraints,): their values
    tape: Any  # the state of the evaluation from which :meth:`RankedMoment.pull` makes slopes


class RankedMoment(ABC):
    """Functions of all scores of given rows that a constraint within intervals keeps in bounds."""

    # Names of the functions of :mod:`skfair.metrics` that measure it. The name at place k is for a
    # constraint that looks at k classes (0: all rows). If there is none, the largest of its own
    # values, with a ramp, is limited and reported, and maps of the groups cannot satisfy it
    metrics: ClassVar[tuple[str, ...]] = ()
    # The metric for ``scale="ccdf"``, if groups are then compared at the same thresholds. None if
    # that scale only multiplies the disparity by the length of the interval
    ccdf_metric: ClassVar[str | None] = None
    is_share: ClassVar[bool] = False  # whether the disparity is a share of the interval
    # Whether only decisions count: which rows are above the threshold, not their order
    limits_decisions: ClassVar[bool] = False
    # Whether its values are means over rows, so that a few rows estimate them without bias. Such
    # moments have :meth:`on_rows`
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
        classes: tuple[int, ...] = (),  # the classes that are looked at; () for all rows
        ranks_whole_groups: bool = False,  # whether ranks are among all rows of a group, whatever y
        printed: bool = False,  # whether only the form that the paper prints is wanted
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
        """Return slopes of sum(multipliers * values) by scores and by auxiliary parameters."""

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Self:
        """Return the moment on some rows, each of which stands for ``factors`` rows."""
        raise NotImplementedError


class WithinIntervals(OneLimit):
    """Base of constraints that are used within intervals only."""

    tasks = frozenset({"intervals"})
    taken_by = "PartialParityClassifier"
