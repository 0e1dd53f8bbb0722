"""The limits of the user as constraints that are bound to rows: disparities, floors, budgets.

A *floor* is ``min_rate=``, a smallest rate of every group. A *budget* is ``selection_rate=``, the
share of all rows that are selected. Both become constraints (with ``is_fairness=False``), so every
solver that satisfies constraints satisfies floors and budgets, too. The bind steps of the
classifiers and regressors (``bind.py`` of ``estimators/decisions`` and ``estimators/erm``) call
these functions, in this order:

- :func:`tightest`, :func:`prepare_constraint`, :func:`unique_names` for the disparities,
- :func:`floors` and :func:`budget`, with :func:`kept_rate`, :func:`selection_range` and
  :func:`of_everybody` as their parts.

The solve steps call :func:`nearest_rate`, which allows a budget to be missed if it contradicts the
other limits. The reports call the rest: :func:`is_nearly_constant`, :func:`below_one_person`,
:func:`warn_of_changes` and :func:`disparity_attributes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from numbers import Real
from typing import Any, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skfair._typing import BoolArray, FloatArray
from skfair.constraints.base import Constraint, TrainingRows
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.moments import Moment, Rate
from skfair.constraints.rates import BoundedFalseNegativeRate, BoundedSelectionRate
from skfair.exceptions import SelectionRateWarning
from skfair.groups.encoding import one_group
from skfair.groups.limits import Change, Limit, in_force, limits_of_attributes, loosest
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import rounded_up
from skfair.utils.validation import check_number
from skfair.utils.warn import warn_user

# Let k be the most frequent decision. Decisions are nearly constant if the share of other decisions
# is less than this part of the share of rows whose true class is not k.
NEARLY_CONSTANT = 0.05
# A warning is given if the limits, or the default objective, change a selection rate by more than
# MUCH_MOVED.
MUCH_MOVED, DEFAULT_OBJECTIVE = 0.1, "accuracy"
# Constraints that differ only in these parameters are of one kind. Limits may differ, and the
# comparison is read from ``compared()`` instead.
_OF_LIMIT = ("max_disparity", "min_ratio", "comparison")


class SelectionFloor(Constraint):
    """Bound the rejection rate of every group by 1 minus the floor on its selection rate."""

    comparison = "bounded"

    def __init__(self, max_disparity: float | None = None) -> None:
        super().__init__(max_disparity)

    def moment(self, rows: TrainingRows) -> Moment:
        return Rate(np.full(rows.targets.size, -1.0))


def tightest(constraints: Sequence[Constraint], limit: Limit) -> list[Constraint]:
    """Return the constraints that no tighter constraint of the same kind makes redundant.

    ``limit`` is the limit of constraints without their own. Limits that are dicts cannot be
    ordered, so only equal ones make each other redundant.
    """
    kept: dict[str, tuple[Limit, Constraint]] = {}
    for constraint in constraints:
        own: Any = limit if constraint.own_limit is None else constraint.own_limit
        rest = {k: v for k, v in constraint.get_params().items() if k not in _OF_LIMIT}
        is_number = isinstance(own, Real)
        key = joblib.hash(
            (type(constraint), constraint.compared(), rest, None if is_number else own)
        )
        if key not in kept or (is_number and own < kept[key][0]):
            kept[key] = own, constraint
    return [constraint for _, constraint in kept.values()]


def prepare_constraint(
    constraint: Constraint,  # if it has its own limit, ``limit`` is not used
    rows: TrainingRows,
    limit: Limit,  # one limit, or one for each attribute by its name; an attribute may have None
) -> list[BoundConstraint]:
    """Bind a constraint to rows: once, or if the limit is a dict, once for each attribute.

    Attributes whose limit is None are left out.
    """
    own: Any = constraint.own_limit
    wanted = limit if own is None else own
    if not isinstance(wanted, Mapping):
        return [constraint.prepare(rows, wanted)]
    limits = limits_of_attributes(wanted, rows.groups)
    if all(value is None for value in limits):
        return []
    largest = loosest(wanted)
    bound = (
        constraint if own is None else clone(constraint).set_params(max_disparity=largest)
    ).prepare(rows, largest)
    attribute = rows.groups.attribute_of_group[bound.rate_groups]
    return [
        bound.restricted(np.flatnonzero(attribute == a), value, f"{bound.name} of {name}")
        for a, (name, value) in enumerate(zip(rows.groups.levels.attributes, limits, strict=True))
        if value is not None
    ]


def unique_names(constraints: Sequence[BoundConstraint]) -> list[BoundConstraint]:
    """Return the constraints, with numbers behind names that occur more than once."""
    names = [constraint.name for constraint in constraints]
    return [
        constraint
        if names.count(constraint.name) == 1
        else replace(
            constraint, name=f"{constraint.name} ({names[: k + 1].count(constraint.name)})"
        )
        for k, constraint in enumerate(constraints)
    ]


def floor_constraint(constraints: Sequence[Constraint]) -> Constraint:
    """Return the constraint behind ``min_rate``, whose limit is 1 minus the floor.

    The floor is on true positive rates if a constraint is on the positives, else on selection
    rates.
    """
    on_positives = any(constraint.subset in ("positive", "class") for constraint in constraints)
    return BoundedFalseNegativeRate() if on_positives else SelectionFloor()


def floors(
    constraints: Sequence[Constraint],
    rows: TrainingRows,
    min_rate: Any,  # a number, or "as before" for the rate that each group has in ``selected``
    selected: BoolArray,  # (n_samples,): who is selected without limits; read for "as before" only
) -> list[BoundConstraint]:
    """Return constraints that keep the rate of each group at or above ``min_rate``."""
    constraint = floor_constraint(constraints)
    if not isinstance(min_rate, str):
        check_number(min_rate, "min_rate", 0, 1)
        bound = constraint.prepare(rows, 1.0 - float(min_rate))
        return [replace(bound, name="min_rate", is_fairness=False)]
    if min_rate != "as before":
        raise ValueError(f"min_rate must be a number or 'as before', got {min_rate!r}.")
    bound = replace(constraint.prepare(rows, 1.0), is_fairness=False)
    # bound.rates are rejection rates or false negative rates, so 1 minus these is kept.
    means = bound.means(bound.moment.strict(np.where(selected, 1.0, -1.0)))
    smallest = np.maximum(1.0 - bound.rates @ means, 0.0).tolist()
    return [
        bound.restricted(np.array([r]), 1.0 - rate, f"min_rate of {bound.rate_names[r]}")
        for r, rate in enumerate(smallest)
    ]


def budget(
    rows: TrainingRows,
    selection_rate: Any,  # a number, two, or "as before" for the rate of ``selected``
    selected: BoolArray,  # (n_samples,): who is selected without limits; read for "as before" only
    heaviest: float,  # share of the heaviest row in the total weight, see ``selection_range``
) -> list[BoundConstraint]:
    """Return the constraints on the selection rate of all rows: at most two, none from 0 to 1."""
    wanted = kept_rate(selection_rate, selected, rows.sample_weight)
    low, high = selection_range(wanted, heaviest)
    bound = []
    if high < 1:
        bound.append(of_everybody(BoundedSelectionRate(), rows, high, "largest selection_rate"))
    if low > 0:
        bound.append(of_everybody(SelectionFloor(), rows, 1.0 - low, "smallest selection_rate"))
    return bound


# nearest_rate() allows a selection rate to be missed by these shares of the rows, from 1 downwards.
_ROOMS = tuple(0.5**k for k in range(10))
_BUDGET = "selection_rate"  # the names of the constraints of budget() contain this
Answer = TypeVar("Answer")


def is_budget(bound: BoundConstraint) -> bool:
    """Whether a constraint was made by :func:`budget`."""
    return not bound.is_fairness and _BUDGET in bound.name


def widened(bound: BoundConstraint, room: float) -> BoundConstraint:
    """Return a constraint unchanged, or a budget with its limit raised by ``room``."""
    if not is_budget(bound):
        return bound
    return replace(bound, max_disparity=bound.max_disparity + room)


def rate_missed(bounds: Sequence[BoundConstraint], disparities: Sequence[float]) -> float:
    """Return by how much the selection rate is missed; infinity if another limit is exceeded."""
    over = [value - bound.max_disparity for bound, value in zip(bounds, disparities, strict=True)]
    pairs = list(zip(bounds, over, strict=True))
    if any(excess > ROUNDING for bound, excess in pairs if not is_budget(bound)):
        return inf
    return max((excess for bound, excess in pairs if is_budget(bound)), default=0.0)


def said_if_rate_missed(bounds: Sequence[BoundConstraint], disparities: Sequence[float]) -> str:
    """Return a sentence if the selection rate is missed and all other limits hold, else ""."""
    missed = rate_missed(bounds, disparities)
    if not ROUNDING < missed < inf:
        return ""
    return f" The limits between groups are kept, and the selection rate is missed by {missed:.2%}."


def nearest_rate(
    first: Answer, search: Callable[[float], Answer], missed: Callable[[Answer], float]
) -> Answer:
    """Return the answer that satisfies all other limits and misses the selection rate least.

    ``first`` is the answer under all limits, which was not feasible. It is returned if no answer
    satisfies the other limits. ``search(room)`` returns the best answer if the rate may be missed
    by ``room``, a share of the rows. ``missed`` is :func:`rate_missed` of an answer, which is
    infinite if another limit is exceeded. Bisection over ``_ROOMS`` finds the smallest share up to
    a factor of 2. It skips rooms that are not smaller than what an answer already misses.
    """
    answers = [first, search(_ROOMS[0])]
    wide, narrow = 0, len(_ROOMS)
    while min(map(missed, answers)) < inf and narrow - wide > 1:
        middle = (wide + narrow) // 2
        if min(map(missed, answers)) > _ROOMS[middle]:
            answers.append(search(_ROOMS[middle]))
            if missed(answers[-1]) == inf:
                narrow = middle
                continue
        wide = middle
    return min(answers, key=missed)


def kept_rate(
    selection_rate: Any, selected: NDArray[np.bool_], weights: NDArray[Any] | None
) -> Any:
    """Return ``selection_rate``, or for "as before" the rate of the rows in ``selected``."""
    if isinstance(selection_rate, str) and selection_rate == "as before":
        return float(np.average(selected, weights=weights))
    return selection_rate


def selection_range(selection_rate: Any, largest: float) -> tuple[float, float]:
    """Return the smallest and the largest share that may be selected.

    Rows are whole, so a selection rate can be off by half a row. The range around a number extends
    by half of ``largest``, the share of the heaviest row, on both sides, and a little more for
    rounding.
    """
    pair = selection_rate
    if isinstance(selection_rate, Real):
        check_number(selection_rate, "selection_rate", 0, 1)
        room = 0.5 * largest * (1 + 1e-6) + 1e-9
        wanted = float(selection_rate)
        pair = (max(wanted - room, 0.0), min(wanted + room, 1.0))
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise ValueError(
            "selection_rate must be a number, a pair (low, high) or 'as before', got "
            f"{selection_rate!r}."
        ) from None
    if not 0 <= low <= high <= 1:
        raise ValueError(
            f"selection_rate must be a number or a pair 0 <= low <= high <= 1, got "
            f"{selection_rate!r}."
        )
    return low, high


def of_everybody(
    constraint: Constraint, rows: TrainingRows, limit: float, name: str
) -> BoundConstraint:
    """Bind a constraint to all rows as one group; its ``rate_groups`` are -1, for no group."""
    everybody = rows._replace(groups=one_group(rows.targets.size), strata=None)
    bound = constraint.prepare(everybody, limit)
    return replace(bound, name=name, rate_groups=np.array([-1]), is_fairness=False)


def is_nearly_constant(predicted: FloatArray, actual: FloatArray) -> BoolArray:
    """Whether nearly all rows get the same class, see ``NEARLY_CONSTANT``.

    ``predicted`` (n_classes, ...) holds the shares of the classes in decisions, one set of
    decisions in each column, and ``actual`` (n_classes,) their true shares.
    """
    usual = predicted.argmax(axis=0)
    return np.asarray(1 - predicted.max(axis=0) < NEARLY_CONSTANT * (1 - actual[usual]))


def below_one_person(bounds: Sequence[BoundConstraint]) -> float:
    """Return the smallest change of a rate by one person, if the smallest limit is below it.

    Otherwise it returns 0. The change is smallest for the person of the largest group (or class
    within a group).
    """
    steps = [
        float(bound.row_weights[bound.row_weights > 0].min(initial=inf))
        for bound in bounds
        if bound.is_fairness and not bound.comparison.is_cap and bound.moment.is_rate
    ]
    step = min(steps, default=0.0)
    limit = min((b.max_disparity for b in bounds if b.is_fairness), default=inf)
    return step if limit < step else 0.0


def loosened(bound: BoundConstraint, limit: float) -> BoundConstraint:
    """Return a constraint on groups with its limit raised to ``limit``; others unchanged."""
    if not bound.is_fairness or bound.comparison.is_cap:
        return bound
    return replace(bound, max_disparity=max(bound.max_disparity, limit))


# The usual advice if a selection rate moves, see ``remedy`` below.
KEEP_RATE = "Pass selection_rate='as before' to keep the share of all rows, or raise"


def warn_of_changes(
    changes: Mapping[str, Change],  # changes for one class, or for all classes in their order
    classes: NDArray[Any],  # (n_samples,): the true class of each row, as a number
    weights: FloatArray | None,
    *,
    objective: str = "",  # name of the objective, if it changes decisions before the limits do
    is_capped: bool = False,  # whether rates themselves are limited, so that they have to change
    # Returns the beginning of the advice, which ends with "max_disparity." It may take time, so it
    # is only called if there is a warning
    remedy: Callable[[], str] = lambda: KEEP_RATE,
    one_person: float = 0.0,  # see below_one_person
    # Returns the smallest limit found at which decisions are not nearly constant, or None. It takes
    # time, so it is only called if the warning needs it
    smallest_limit: Callable[[], float | None] = lambda: None,
) -> None:
    """Warn if the selection rate changes by much, or if nearly all rows get the same decision.

    There are two stages: the change by the objective without limits, and the change by the limits.
    Intended changes give no warning, unless decisions become constant: those by an objective other
    than the default one, and those by constraints that cap rates.
    """
    # (n_classes, 3): by the model itself, without limits, within the limits
    shares = np.array([(own.before, own.without_limits, own.after) for own in changes.values()])
    of_classes = np.vstack([1 - shares, shares]) if len(shares) == 1 else shares
    actual = np.bincount(classes, weights, len(of_classes)).astype(np.float64)
    is_constant = is_nearly_constant(of_classes, actual / actual.sum()).tolist()

    def warned(stage: int, cause: str, advice: Callable[[], str], *, is_meant: bool) -> list[str]:
        """Return the sentences about stage 0 or 1; an empty list if there is no warning."""
        steps = np.diff(shares)[:, stage]
        k = int(np.argmax(np.abs(steps)))
        becomes_constant = is_constant[stage + 1] and not is_constant[stage]
        if not becomes_constant and (is_meant or abs(steps[k]) <= MUCH_MOVED):
            return []
        before, after = shares[k, stage : stage + 2].tolist()
        rates = f"the {list(changes)[k]} of the training rows from {before:.1%} to {after:.1%}"
        alike = ["Nearly all of them get the same decision."] if becomes_constant else []
        return [cause.format(rates), *alike, advice()]

    is_default = objective == DEFAULT_OBJECTIVE
    other = "objective='balanced_accuracy', or " if is_default else ""
    text = warned(
        0,
        f"The objective {objective!r} changes {{}} before any limit: thresholds are chosen anew, "
        "so class weights and a threshold of the model do not count.",
        lambda: (
            f"Pass {other}selection_rate='as before' to keep the share of rows that the model "
            "itself selects."
        ),
        is_meant=not is_default,
    )

    def advice() -> str:
        if not one_person or not is_constant[2] or is_constant[1]:
            return f"{remedy()} max_disparity."
        few = (
            f"The limit is smaller than what one person changes in a rate "
            f"({rounded_up(one_person)}), so hardly any other decisions satisfy it."
        )
        if (limit := smallest_limit()) is not None:
            few += f" Other decisions exist at a limit of {rounded_up(limit)}."
        return f"{few} {remedy()} max_disparity."

    text += warned(1, "The limits change {}.", advice, is_meant=is_capped)
    if text:
        warn_user(" ".join(text), SelectionRateWarning)


def disparity_attributes(
    bounds: Sequence[BoundConstraint],
    disparities: Sequence[float],
    units: Sequence[float] | None = None,  # units in which the user set the limits; 1 by default
) -> dict[str, Any]:
    """Return the fitted attributes about the disparities of constraints and their limits."""
    units = [1.0] * len(bounds) if units is None else units
    every = list(zip(bounds, disparities, units, strict=True))
    by_constraint = {bound.name: unit * disparity for bound, disparity, unit in every}
    return {
        "train_disparities_": by_constraint,
        "train_disparity_": max(by_constraint.values(), default=0.0),
        "_limits": in_force(by_constraint, [unit * b.max_disparity for b, _, unit in every]),
    }
