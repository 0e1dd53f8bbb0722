"""A constraint within percentile intervals: its name, and the options that users may set.

:func:`read_constraint` turns the argument ``constraint=`` into an :class:`IntervalConstraint`, so
that fits, predictions and certificates read one form only.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, Literal, get_args

from skfair.constraints.base import Constraint, make_constraints
from skfair.constraints.cells import AllRows, OfClasses, Subset, make_subset
from skfair.constraints.comparisons import Comparison, Pairwise
from skfair.constraints.rates import SelectionParity
from skfair.partial_parity.ranked_moment import IntervalRows, RankedMoment, WithinIntervals
from skfair.partial_parity.rate_moment import RateMoment
from skfair.partial_parity.surrogates import Kind, Surrogate
from skfair.utils.text import listed
from skfair.utils.validation import check_number

RankWithin = Literal["group", "class"]


class IntervalConstraint(Constraint):
    """Constraint within percentile intervals, with options that its name alone does not set.

    Parameters
    ----------
    constraint : str or Constraint, default="statistical_parity"
        The constraint, as in :class:`skfair.classification.PartialParityClassifier`.
    rank_within : {"class", "group"}, default="class"
        The rows among which ranks are taken, for constraints on the positive class or on each
        class. "class" takes ranks among the rows of the group and class, as in (50) and (56).
        "group" takes ranks among all rows of a group (Definitions A.2 and A.3), which is the
        default of :mod:`skfair.metrics`. "group" is supported by the solvers "repair" and
        "al_lbfgs", but not by the algorithms of the paper.
    surrogate : {"smoothstep", "ramp", "sigmoid"} or Surrogate, default="smoothstep"
        Smooth step that approximates "above the threshold" in the solvers. "ramp" is the one of the
        paper.
    n_percentiles : int, default=10
        Number of percentiles at which smooth statistical parity is imposed. More percentiles
        approximate the constraint more closely and cost more.

    See Also
    --------
    skfair.classification.PartialParityClassifier : Takes it as ``constraint``.
    skfair.metrics.suggest_interval : Percentile intervals around a decision.

    Examples
    --------
    >>> from skfair.classification import PartialParityClassifier
    >>> from skfair.constraints.partial import IntervalConstraint
    >>> constraint = IntervalConstraint("equal_opportunity", rank_within="group")
    >>> PartialParityClassifier((0.0, 0.2), constraint).constraint
    IntervalConstraint(constraint='equal_opportunity', rank_within='group')
    """

    tasks, taken_by = WithinIntervals.tasks, WithinIntervals.taken_by

    def __init__(
        self,
        constraint: str | Constraint = "statistical_parity",
        rank_within: RankWithin = "class",
        surrogate: Kind | Surrogate = "smoothstep",
        n_percentiles: int = 10,
    ) -> None:
        self.constraint = constraint
        self.rank_within: RankWithin = rank_within
        self.surrogate: Kind | Surrogate = surrogate
        self.n_percentiles = n_percentiles

    @property
    def inner(self) -> Constraint:
        """The constraint without its interval."""
        inner, *others = make_constraints(self.constraint, "intervals")
        if others or isinstance(inner, IntervalConstraint):
            raise ValueError(f"IntervalConstraint takes one constraint, got {self.constraint!r}.")
        return inner

    @property
    def subset(self) -> str | Subset:  # type: ignore[override]
        """Rows that enter the rates, which are the same as for the constraint."""
        return self.inner.subset

    @property
    def ranked(self) -> type[RankedMoment]:
        """Moment of the constraint over ranked rows."""
        inner = self.inner
        ranked: type[RankedMoment] | None = getattr(inner, "ranked", None)
        if ranked is None and isinstance(inner, SelectionParity):
            return RateMoment
        if ranked is None:
            raise ValueError(
                f"constraint={inner!r} has no moment over ranked rows. Set ``ranked`` in its "
                "class, a subclass of skfair.constraints.partial.RankedMoment."
            )
        return ranked

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes within which rates are taken, or an empty tuple for rates over all rows."""
        subset = make_subset(self.subset)
        if not isinstance(subset, AllRows | OfClasses):
            raise ValueError(
                f"constraint={self.inner!r} counts rows by a subset of its own, without ranks. "
                "Use 'all', 'positive', 'negative' or 'class'."
            )
        return subset.classes if isinstance(subset, OfClasses) else ()

    @property
    def ranks_whole_groups(self) -> bool:
        """Whether ranks are taken among all rows of a group although classes are compared."""
        tells_classes = self.ranked.limits_decisions and bool(self.classes)
        return tells_classes and self.rank_within == "group"

    @property
    def metric(self) -> str | None:
        """Name of the function of skfair.metrics that measures the constraint; None without one."""
        return self.ranked.metrics[len(self.classes)] if self.ranked.metrics else None

    @property
    def own_limit(self) -> Any:
        """Limit of the constraint, which overrides the limit of the estimator, or None."""
        return self.inner.own_limit

    def compared(self) -> Comparison:
        """Return the comparison of groups."""
        return self.inner.compared()

    def moments(
        self, rows: IntervalRows, surrogate: Surrogate, *, printed: bool = False
    ) -> list[RankedMoment]:
        """Return the moment on rows, in all of its forms or in the form of the paper."""
        whole = self.ranks_whole_groups
        return list(self.ranked.forms(rows, surrogate, self.classes, whole, printed))


def read_constraint(constraint: str | Constraint) -> IntervalConstraint:
    """Return the argument ``constraint=`` as an object; raise if it cannot be used in intervals."""
    within = constraint
    if not isinstance(within, IntervalConstraint):
        within = IntervalConstraint(constraint)
    is_own = isinstance(within.surrogate, Surrogate)
    for field, known in (("rank_within", RankWithin), ("surrogate", Kind)):
        value, named = getattr(within, field), get_args(known)
        if value not in named and not (is_own and field == "surrogate"):
            raise ValueError(f"{field} must be one of {listed(named)}, got {value!r}.")
    if not isinstance(within.n_percentiles, Integral) or within.n_percentiles < 1:
        raise ValueError(f"n_percentiles must be an integer >= 1, got {within.n_percentiles!r}.")
    inner = within.inner
    if inner.compared() != Pairwise():
        raise ValueError(
            f"constraint={inner!r} does not compare pairs of groups by differences, which is all "
            "that is limited within intervals. Leave out reference, comparison and min_ratio."
        )
    if inner.own_limit is not None and not isinstance(inner.own_limit, Mapping):
        check_number(inner.own_limit, "max_disparity", 0)
    return within
