"""What a constraint within percentile intervals is: values in score space, bounds, convex parts.

Such a constraint keeps functions of the scores (and of a few auxiliary parameters, thresholds above
all) between bounds,

    lower <= c(scores, aux) <= upper

and hands out each function as a difference of two convex ones, c = plus - minus (section D of
partial_fairness_idca), which is what the DC algorithm needs. It sees the groups of one attribute;
overlapping attributes make one constraint each.

What a constraint keeps small is smooth. The disparity that is promised and reported is measured by
:mod:`skfair.metrics`, never here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.partial.surrogates import Kind, Part, Surrogate
from skfair.groups.intervals import Intervals
from skfair.utils.registry import Registry
from skfair.utils.text import settings_repr

RankWithin = Literal["group", "class"]

PARTIAL_RULES: Registry[type[PartialRule]] = Registry("constraint", "skfair.constraints.partial")


@dataclass(frozen=True, repr=False)
class IntervalConstraint:
    """A constraint within percentile intervals, with what its name alone does not say.

    Parameters
    ----------
    name : str, default="statistical_parity"
        As ``constraint`` of :class:`skfair.classification.PartialParityClassifier`.
    rank_within : {"class", "group"}, default="class"
        For constraints on positives or classes: whether ranks are taken within the rows that count,
        (50) and (56), or among all rows of a group (Definitions A.2 and A.3), as
        :mod:`skfair.metrics` does by default. The latter is kept by "repair" and "al_lbfgs", not by
        the algorithms of the paper.
    surrogate : {"smoothstep", "ramp", "sigmoid"} or Surrogate, default="smoothstep"
        Smooth step that stands for "above the threshold" in the solvers; "ramp" is the paper's.
    n_percentiles : int, default=10
        Percentiles at which smooth statistical parity is imposed. More leave less between them and
        cost more.

    Examples
    --------
    >>> from skfair.classification import PartialParityClassifier
    >>> from skfair.constraints.partial import IntervalConstraint
    >>> constraint = IntervalConstraint("equal_opportunity", rank_within="group")
    >>> PartialParityClassifier((0.0, 0.2), constraint).constraint
    IntervalConstraint('equal_opportunity', rank_within='group')
    """

    name: str = "statistical_parity"
    rank_within: RankWithin = "class"
    surrogate: Kind | Surrogate = "smoothstep"
    n_percentiles: int = 10

    def __post_init__(self) -> None:
        for field, value, known in (
            ("rank_within", self.rank_within, get_args(RankWithin)),
            ("surrogate", self.surrogate, get_args(Kind)),
        ):
            if value not in known and not isinstance(value, Surrogate):
                raise ValueError(
                    f"{field} must be one of {', '.join(map(repr, known))}, got {value!r}."
                )
        if not isinstance(self.n_percentiles, Integral) or self.n_percentiles < 1:
            raise ValueError(f"n_percentiles must be an integer >= 1, got {self.n_percentiles!r}.")

    def __repr__(self) -> str:
        return settings_repr(self)

    @property
    def rule(self) -> PartialRule:
        """The constraint by its name."""
        return PARTIAL_RULES[self.name]().ranked(self.rank_within)


def read_constraint(constraint: str | IntervalConstraint) -> IntervalConstraint:
    """Return what an estimator was given as an object."""
    if isinstance(constraint, IntervalConstraint):
        return constraint
    return IntervalConstraint(constraint)


class PartialRows(NamedTuple):
    """What a constraint may know of the training data."""

    codes: IntArray  # (n_samples,): the group of each row
    group_names: tuple[str, ...]  # names of the groups
    targets: FloatArray  # (n_samples,): -1 and 1
    sample_weight: FloatArray | None  # (n_samples,): weights of the rows
    intervals: Intervals  # the percentile intervals of each group
    # (n_percentiles,): where the constraint is imposed, as shares of the intervals
    percentiles: FloatArray
    threshold: float  # the decision threshold, for constraints on decisions

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
    """Functions of a constraint at a point."""

    values: FloatArray  # (n_constraints,): their values
    tape: Any  # what :meth:`BoundPartialRule.pull` needs


class BoundPartialRule(ABC):
    """A constraint on given rows."""

    row_names: tuple[str, ...]  # what each constraint row limits
    penalty_unit: float = 1.0  # what a penalty of weight 1 amounts to for the worst row
    n_aux: int = 0  # number of auxiliary parameters
    # (n_percentiles,): where it is imposed, as shares of the intervals; empty if it is not
    # imposed at some only
    percentiles: FloatArray = np.empty(0)
    surrogate: Surrogate  # the step that stands for "above the threshold"
    # Whether its values are means over cells of rows, which few rows estimate without bias: it then
    # has ``cells``, :meth:`on_rows` and :meth:`along`
    is_mean: ClassVar[bool] = False
    cells: IntArray  # (n_samples,): the cell of each row

    @property
    def n_constraints(self) -> int:
        """Number of constraint rows."""
        return len(self.row_names)

    def with_surrogate(self, surrogate: Surrogate) -> Self:
        """Return the constraint with another step; what it knows of the rows is shared."""
        other = copy(self)
        other.surrogate = surrogate
        return other

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
        """Return the functions of the constraint, or their convex parts."""

    @abstractmethod
    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes of sum(multipliers * values) by the scores and by the auxiliaries."""

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Self:
        """Return the constraint on some rows, each of which stands for ``factors`` rows."""
        raise NotImplementedError

    def along(self, at: Values, of_scores: FloatArray, of_aux: FloatArray) -> FloatArray:
        """Return the derivatives of the values along a change of scores and auxiliaries."""
        raise NotImplementedError


class PartialRule(ABC):
    """A constraint within percentile intervals, before it has seen data."""

    uses_interval: ClassVar[bool] = True  # whether the constraint looks at the interval at all
    by_class: ClassVar[bool] = False  # whether it needs rows of both classes in each group
    # The classes within which ranks are taken, one by one; empty for ranks of all rows
    classes: ClassVar[tuple[int, ...]] = ()
    # Whether ranks are taken among all rows of a group where classes are told apart
    ranks_whole_groups: bool = False
    # Name of the function of :mod:`skfair.metrics` that measures it. None: the largest of its
    # own values, with a ramp, is what is limited and reported
    metric: ClassVar[str | None] = None
    # The same for ``scale="ccdf"``, if that compares groups at thresholds; None if it only
    # multiplies by the length of the interval
    ccdf_metric: ClassVar[str | None] = None
    is_share: ClassVar[bool] = False  # whether the disparity is a share of the interval
    # Whether only decisions count: who is above the threshold, not in which order
    limits_decisions: ClassVar[bool] = False
    # Whether thresholds and monotone maps of the groups can keep it
    is_repairable: ClassVar[bool] = False

    def ranked(self, rank_within: RankWithin) -> Self:
        """Return it with ranks within classes or whole groups, if it tells classes apart."""
        other = copy(self)
        other.ranks_whole_groups = rank_within == "group" and bool(self.classes)
        return other

    @abstractmethod
    def prepare(self, rows: PartialRows, surrogate: Surrogate) -> list[BoundPartialRule]:
        """Bind it to rows; several forms, each of which is sufficient, are tried one by one."""

    def as_printed(self, rows: PartialRows, surrogate: Surrogate) -> BoundPartialRule:
        """Bind the constraint to rows in the form in which the paper prints it."""
        return self.prepare(rows, surrogate)[-1]
