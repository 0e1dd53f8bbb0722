"""The base of fairness constraints, and how an estimator gets from ``constraint=`` to limits.

Every constraint of the package has the form

    lower <= B m <= upper,   m_c = mean over the rows of cell c of phi(score)

A *cell* is a set of rows that are in the same groups and, if the constraint looks at the class, of
the same class. No row is in two cells, so the gradient of any combination of constraints takes one
pass over the rows. The matrix B turns the cell means m into rates of groups and compares them.
``phi`` is the *moment*: a sigmoid of the score for rates (its *temperature* T makes it as steep as
needed), the loss, or the score itself.

A subclass of :class:`Constraint` says what is averaged (:meth:`Constraint.moment`), over which rows
(``subset``) and how groups are compared (``comparison``). Estimators then take these steps:

1. :func:`make_constraints` reads what the user passed: names, objects, or a list of them.
2. :func:`refuse_second_limit` raises if the estimator and the constraints both set a limit.
3. :meth:`Constraint.prepare` chooses the limit and calls :func:`bind`, which splits the rows into
   cells. The result, a :class:`~skfair.constraints.bound.BoundConstraint`, is all that problems and
   solvers see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from skfair.constraints.bound import BoundConstraint
from skfair.constraints.cells import (
    AddsClasses,
    Subset,
    TrainingRows,
    WithinStrata,
    make_subset,
    split_into_cells,
)
from skfair.constraints.comparisons import Comparison, make_comparison, not_alone
from skfair.constraints.moments import Moment, check_moment
from skfair.groups.limits import DEFAULT_LIMIT, ONE_MINUS_RATIO
from skfair.losses import Loss
from skfair.utils.keywords import NamedArguments
from skfair.utils.other_names import name_in_skfair
from skfair.utils.registry import PAPERS, Registry, without_papers
from skfair.utils.text import did_you_mean
from skfair.utils.validation import check_limit, check_number

__all__ = ["CONSTRAINTS", "Constraint", "TrainingRows", "bind", "make_constraints"]

CONSTRAINTS: Registry[type[Constraint]] = Registry(
    "constraint", "skfair.constraints", "skfair.constraints.partial", PAPERS
)


class Constraint(BaseEstimator, NamedArguments):
    """A fairness constraint, before it has seen data.

    Parameters
    ----------
    max_disparity : float, default=None
        Limit of this constraint. If None, ``max_disparity`` of the estimator is the limit.
    reference : {"pairwise", "overall"}, default="pairwise"
        Whether each group is compared with every other group of its attribute, or with all rows.

    Attributes
    ----------
    subset : {"all", "positive", "negative", "class"}
        Rows that enter the rates: all rows, the rows of one true class, or the rows of each class
        separately.
    comparison : {"difference", "ratio", "bounded"}
        How the rates of groups are compared. "difference" limits their difference, "ratio" limits 1
        minus the smaller rate over the larger one, and "bounded" limits the largest rate without
        any comparison.
    among_counted : bool
        If True, the rate of a group is the share of the positive class among the rows that the
        moment counts. If False, it is the share of the rows that the moment counts.
    adds_classes : bool or "absolute"
        If True, the means of both classes are added before groups are compared. If "absolute", the
        absolute differences of both classes are added. Both require ``subset`` to be "class".
    tasks : frozenset of {"classification", "regression", "predictions", "intervals"}
        Tasks for which the constraint can be used. "predictions" means post-processing of
        predictions, and "intervals" means percentile intervals of scores.
    taken_by : str or None
        Name of the estimator that takes the constraint, if it is the only one.
    metric : str or None
        Name of the function of :mod:`skfair.metrics` that measures the constraint.
    within_strata : bool
        Whether groups are compared within the levels of an allowed attribute. Estimators read it
        to know that they need ``control_features``. It splits no rows: :meth:`prepare` must do
        that, as in :class:`~skfair.constraints.ConditionalOn`.
    counts_right : bool
        Whether the constraint counts correct predictions. With several classes, there is then one
        constraint for all classes instead of one for each class.
    depends_on_pos_label : bool
        Whether the disparity changes if the other of two classes is the positive class.

    See Also
    --------
    DemographicParity : A constraint on selection rates.
    ConditionalOn : A constraint within levels of further columns.

    Examples
    --------
    A constraint of your own can require that each group has the same share of rejections among its
    negatives:

    >>> from skfair.constraints import Constraint
    >>> from skfair.constraints.moments import Rate
    >>> class RejectionParity(Constraint):
    ...     subset = "negative"
    ...
    ...     def moment(self, rows):
    ...         return Rate(signs=rows.targets)  # counts negative predictions of negatives
    >>> RejectionParity(reference="overall")
    RejectionParity(reference='overall')
    """

    subset: str | Subset = "all"
    comparison: str | Comparison = "difference"
    among_counted: bool = False
    adds_classes: AddsClasses = False
    tasks: frozenset[str] = frozenset({"classification"})
    within_strata: bool = False
    counts_right: bool = False
    taken_by: ClassVar[str | None] = None

    def __init__(
        self,
        max_disparity: float | None = None,
        reference: Literal["pairwise", "overall"] = "pairwise",
    ) -> None:
        self.max_disparity = max_disparity
        self.reference = reference

    @property
    def depends_on_pos_label(self) -> bool:
        """Whether the disparity changes if the other of two classes is the positive class."""
        if self.subset not in ("all", "class") or self.among_counted:
            return True
        # If the classes change places, each rate r becomes 1 - r: differences of rates stay the
        # same, ratios and caps do not. The share of correct predictions does not change at all.
        return not self.counts_right and not self.compared().is_difference

    def moment(self, rows: TrainingRows) -> Moment:
        """Return the moment, which is averaged over the rows of a cell.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets, weights and loss of the training rows.

        Returns
        -------
        moment : Moment
            A function of the scores.
        """
        raise TypeError(
            f"{self!r} has no moment, so no model can be trained under it. Define moment(rows) in "
            f"{type(self).__name__}."
        )

    @property
    def metric(self) -> str | None:
        """Name of the function of skfair.metrics that measures the constraint, or None."""
        return None

    def metric_options(self, loss: str | Loss, pos_label: object = None) -> dict[str, Any]:
        """Return the arguments with which the metric measures this constraint.

        Parameters
        ----------
        loss : str or Loss
            The loss that the estimator minimises.
        pos_label : label, default=None
            The positive class. It is None for regression.

        Returns
        -------
        options : dict
            Keyword arguments of the metric.
        """
        return {"reference": self.reference} if "reference" in self.get_params() else {}

    @property
    def own_limit(self) -> Any:
        """Limit of the constraint, or None if it has the limit of the estimator."""
        return self.max_disparity

    def compared(self) -> Comparison:
        """Return the comparison that turns the rates of groups into a disparity.

        Returns
        -------
        comparison : Comparison
            The comparison of groups.
        """
        return make_comparison(self.comparison, self.reference)

    def prepare(self, rows: TrainingRows, max_disparity: float) -> BoundConstraint:
        """Bind the constraint to training rows.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets and weights of the training rows.
        max_disparity : float
            The limit, which is used if the constraint has none of its own.

        Returns
        -------
        bound : BoundConstraint
            The constraint on these rows, with its cells, moments and bounds.
        """
        limit = max_disparity if self.own_limit is None else self.own_limit
        return bind(self, rows, limit)


class OneLimit(Constraint):
    """Base of constraints that have no parameter but their limit."""

    def __init__(self, max_disparity: float | None = None) -> None:
        super().__init__(max_disparity)


def bind(
    constraint: Constraint,
    rows: TrainingRows,
    limit: float,
    *,
    # Whether groups are compared within each stratum of ``rows.strata``. This is no attribute of
    # the constraint: ConditionalOn passes True with the constraint that it wraps.
    within_strata: bool = False,
) -> BoundConstraint:
    """Bind a constraint to training rows; :meth:`Constraint.prepare` calls this.

    The checks are made here because they need the rows or the comparison. The limit must be a
    number that is not negative. A moment from outside the package must return one number per row.
    If groups are compared within strata, at least one stratum must have rows of two groups.
    """
    comparison, subset = constraint.compared(), make_subset(constraint.subset)
    name = type(constraint).__name__
    if comparison.suffix == "_ratio":
        name += ONE_MINUS_RATIO
    if within_strata:
        subset, name = WithinStrata(subset), f"{name} within strata"
    check_number(limit, "max_disparity", 0)
    table = split_into_cells(
        rows, subset, among_counted=constraint.among_counted, adds_classes=constraint.adds_classes
    )
    moment = constraint.moment(rows)
    if not type(moment).__module__.startswith("skfair."):  # a user has written it
        check_moment(moment, rows.targets.size)
    bound = BoundConstraint(
        name=name, moment=moment, comparison=comparison, max_disparity=float(limit), **table
    )
    # If a compared set has one group only, the rate of this group equals the overall one, so the
    # group is left out.
    if comparison.counts_lone:
        bound = bound.restricted(not_alone(bound.compared_sets), float(limit), name)
    if bound.moment.is_rate and limit < np.inf:
        as_ratio = _limit_as_ratio(constraint, limit)
        check_limit(limit, f"max_disparity={limit:g}", ratio=as_ratio)
    # There are more groups than attributes if at least one attribute has two groups. Otherwise it
    # is not the strata that leave nothing to compare.
    if not bound.upper.size and rows.groups.n_groups > rows.groups.n_attributes:
        raise ValueError(
            "No stratum has rows of two groups, so there is nothing to compare. Pass "
            "control_features with fewer levels, or a constraint without strata."
        )
    return bound


def _limit_as_ratio(constraint: Constraint, limit: float) -> str | None:
    """Return how a limit would be written as ``min_ratio``, for a hint in a warning.

    A limit of 0.8 on a difference limits next to nothing. Users who set it probably mean the
    four-fifths rule, so the warning of ``check_limit`` shows how that is written. Returns None if
    the limit is not on a difference, and "" if the constraint has no ``min_ratio``.
    """
    if constraint.compared().suffix != "_difference":
        return None
    has_min_ratio = "min_ratio" in constraint.get_params()
    return f"{type(constraint).__name__}(min_ratio={limit:g})" if has_min_ratio else ""


def make_constraints(
    constraint: str | Constraint | Sequence[str | Constraint], task: str
) -> list[Constraint]:
    """Return the constraints that a user means by a name, a constraint, or a list of them.

    ``task`` is one of those in :attr:`Constraint.tasks`. A constraint that cannot be used for it is
    refused.

    Examples
    --------
    >>> from skfair.constraints.base import make_constraints
    >>> make_constraints(["demographic_parity", "equal_opportunity"], "classification")
    [DemographicParity(), EqualOpportunity()]
    """
    members = constraint if isinstance(constraint, list | tuple) else [constraint]
    if not members:
        raise ValueError(
            "constraint is an empty list, so nothing would be limited. Name one, or use a model "
            "of scikit-learn."
        )
    limited: list[Constraint] = []
    for member in members:
        try:
            made = CONSTRAINTS[member]() if isinstance(member, str) else member
        except ValueError:  # the registry would list the constraints of all tasks
            fitting = _names_for(task)
            hint = name_in_skfair(str(member)) or did_you_mean(str(member), fitting)
            raise ValueError(
                f"There is no constraint {member!r}.{hint} Those for {task} are "
                f"{', '.join(map(repr, fitting))}.{without_papers()}"
            ) from None
        if not isinstance(made, Constraint):
            raise ValueError(
                f"constraint must be a name, a skfair.constraints.Constraint or a list of them, "
                f"got {made!r}. A constraint with a bound of its own is written "
                "DemographicParity(max_disparity=0.05)."
            )
        if task not in made.tasks:
            hint = f" {made.taken_by} takes it." if made.taken_by else ""
            hint += name_in_skfair(member) if isinstance(member, str) else ""
            raise ValueError(
                f"constraint={made!r} is not for {task}.{hint} Choose from "
                f"{', '.join(_names_for(task))}."
            )
        limited.append(made)
    return limited


def have_own_limits(constraint: str | Constraint | Sequence[str | Constraint]) -> bool:
    """Whether each constraint has a limit of its own, so that the estimator's one is not used."""
    members = constraint if isinstance(constraint, list | tuple) else [constraint]
    return all(getattr(member, "own_limit", None) is not None for member in members)


def limit_for(constraint: str | Constraint | Sequence[str | Constraint], max_disparity: Any) -> Any:
    """Return the limit of constraints without one of their own, from the estimator's parameter.

    If ``max_disparity`` is None, this is the default. Raises if it was set although each constraint
    has a limit of its own.
    """
    if max_disparity is None:
        return DEFAULT_LIMIT
    if have_own_limits(constraint):
        raise ValueError(
            f"max_disparity={max_disparity!r} would change nothing, because {constraint!r} has a "
            "limit of its own. Set the limit in one place: leave max_disparity out, or pass the "
            "constraint without a limit. A search can vary constraint__max_disparity."
        )
    return max_disparity


def _names_for(task: str) -> list[str]:
    """Return the names of the registered constraints that can be used for a task."""
    return [name for name in CONSTRAINTS if task in CONSTRAINTS[name]().tasks]
