"""What a rule within percentile intervals is: values in score space, bounds, convex parts.

Such a rule keeps functions of the scores (and of a few auxiliary parameters, thresholds above all)
between bounds,

    lower <= c(scores, aux) <= upper

and hands out each function as a difference of two convex ones, c = plus - minus (section D of
partial_fairness_idca), which is what the DC algorithm needs. It sees the groups of one attribute;
overlapping attributes make one rule each.

What a rule keeps small is smooth. The disparity that is promised and reported is measured by
:mod:`skfair.metrics`, never here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.partial.surrogates import Part, Surrogate
from skfair.groups.intervals import Intervals
from skfair.utils.registry import Registry

PARTIAL_RULES: Registry[type[PartialRule]] = Registry("constraint", "skfair.constraints.partial")


class PartialRows(NamedTuple):
    """What a rule may know of the training data.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        The group of each row.
    group_names : tuple of str
        Names of the groups.
    targets : ndarray of shape (n_samples,)
        -1 and 1.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights of the rows.
    intervals : Intervals
        The percentile intervals of each group.
    percentiles : ndarray of shape (n_percentiles,)
        Where the rule is imposed, as shares of the intervals.
    threshold : float
        The decision threshold, for rules on decisions.
    """

    codes: IntArray
    group_names: tuple[str, ...]
    targets: FloatArray
    sample_weight: FloatArray | None
    intervals: Intervals
    percentiles: FloatArray
    threshold: float

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.group_names)

    def shares(self, cells: IntArray, n_cells: int) -> FloatArray:
        """Return the weight of each row in the mean of its cell; cells add up to 1."""
        weights = np.ones(cells.size) if self.sample_weight is None else self.sample_weight
        totals = np.bincount(cells, weights, n_cells)
        return np.asarray(weights / totals[cells])


class Values(NamedTuple):
    """Functions of a rule at a point.

    Attributes
    ----------
    values : ndarray of shape (n_constraints,)
        Their values.
    tape : tuple
        What :meth:`BoundPartialRule.pull` needs.
    """

    values: FloatArray
    tape: Any


class BoundPartialRule(ABC):
    """A rule on given rows.

    Attributes
    ----------
    row_names : tuple of str
        What each constraint row limits.
    n_aux : int
        Number of auxiliary parameters.
    surrogate : Surrogate
        The step that stands for "above the threshold"; may be replaced between solves.
    """

    row_names: tuple[str, ...]
    n_aux: int = 0
    surrogate: Surrogate

    @property
    def n_constraints(self) -> int:
        """Number of constraint rows."""
        return len(self.row_names)

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
    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return the functions of the rule, or their convex parts."""

    @abstractmethod
    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes of sum(multipliers * values) by the scores and by the auxiliaries."""


class PartialRule(ABC):
    """A rule within percentile intervals, before it has seen data.

    Attributes
    ----------
    uses_interval : bool
        Whether the rule looks at the interval at all.
    by_class : bool
        Whether it needs rows of both classes in each group.
    """

    uses_interval = True
    by_class = False

    @abstractmethod
    def prepare(self, rows: PartialRows, surrogate: Surrogate) -> list[BoundPartialRule]:
        """Bind the rule to rows; several forms of it, each sufficient, are tried one by one."""
