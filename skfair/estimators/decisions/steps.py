"""The steps of fair decisions over plain values: constraints, floors, budgets, reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import FloatArray, IntArray
from skfair.constraints.base import Constraint, TrainingRows
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.rates import BoundedFalseNegativeRate
from skfair.enforcement.decisions.choose import Chosen, contradiction
from skfair.enforcement.truth import ClassConstraint, Truth
from skfair.estimators.limits import (
    budget,
    floor_constraint,
    floors,
    of_everybody,
    prepare_constraint,
    rates_before,
    unique_names,
    warn_if_one_answer,
)
from skfair.estimators.objective import Goal
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Limit
from skfair.groups.strata import Strata
from skfair.losses import LogLoss
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed
from skfair.utils.validation import check_number
from skfair.utils.warn import warn_user

# Probabilities are searched with this many digits. Those of rows in another order differ by up to
# 2e-13, and a search from there by 5 points of accuracy (800 rows, four groups).
_DIGITS = 9
# A warning names the share of rows between several thresholds of their group if it is larger.
MUCH_MIXED = 0.05


class LabelledRows(NamedTuple):
    """Rows of several classes."""

    groups: GroupEncoding
    codes: IntArray  # (n_samples,): number of the class of each row
    classes: NDArray[Any]
    sample_weight: FloatArray | None
    strata: Strata | None  # levels of the control features

    @property
    def counts(self) -> FloatArray:
        """Weights as they were passed; 1 if there are none."""
        return np.ones(self.codes.size) if self.sample_weight is None else self.sample_weight

    @property
    def weights(self) -> FloatArray:
        """Weights that add up to 1."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def kinds(self) -> IntArray:
        """Stratum and true class of each row, as one number."""
        strata = self.strata
        return self.codes if strata is None else strata.codes * self.classes.size + self.codes

    def merged(self, first: IntArray, kind: IntArray, places: IntArray) -> LabelledRows:
        """Return one row for each kind, with the weights of all; groups are at other places."""
        groups, strata, people = self.groups, self.strata, self.groups.people
        by_place = np.argsort(places)
        names = tuple(groups.names[group] for group in by_place)
        groups = replace(
            groups,
            codes=np.ascontiguousarray(places[groups.codes][:, first]),
            counts=groups.counts[by_place],
            levels=replace(groups.levels, names=names),
            people=None if people is None else np.bincount(kind, people).astype(np.float64),
        )
        is_weighted = self.sample_weight is not None or first.size < kind.size
        weights = np.bincount(kind, self.counts, first.size).astype(np.float64)
        return self._replace(
            groups=groups,
            codes=self.codes[first],
            sample_weight=weights if is_weighted else None,
            strata=None if strata is None else strata._replace(codes=strata.codes[first]),
        )

    def against_rest(self, label: int | None) -> TrainingRows:
        """Return the rows of a constraint: a class against the rest, or all as positive."""
        names = self.classes.tolist()
        targets = np.ones(self.codes.size)
        pair = ("wrong", "right")
        if label is not None:
            targets = np.where(self.codes == label, 1.0, -1.0)
            pair = (names[0] if len(names) == 2 else f"not {names[label]}", names[label])
        return TrainingRows(self.groups, targets, self.sample_weight, LogLoss(), pair, self.strata)

    def named(self, bound: BoundConstraint, label: int | None) -> BoundConstraint:
        """Return a constraint with the class in its name, if there are several."""
        if label is None or self.classes.size == 2:
            return bound
        return replace(bound, name=f"{bound.name} (y={self.classes.tolist()[label]})")


def in_order(
    rows: LabelledRows, chances: FloatArray, joint: FloatArray
) -> tuple[LabelledRows, FloatArray, FloatArray, IntArray, IntArray]:
    """Return the distinct rows, in an order that names and the order of rows say nothing of.

    Searches for decisions are chaotic: rounding errors alone change what is found. Copies of a row
    become one with their weight. Returned besides are the place of each row, and of each group.
    """
    chances, joint = np.round(chances, _DIGITS), np.round(joint, _DIGITS)
    places = rows.groups.places(chances[:, -1], rows.sample_weight)
    joint = joint[:, np.argsort(places)]
    keys = [chances.T, joint.reshape(rows.codes.size, -1).T, rows.codes, places[rows.groups.codes]]
    keys += [] if rows.strata is None else [rows.strata.codes]
    table = np.vstack(keys)
    order = np.lexsort(table)
    is_new = np.ones(order.size, bool)
    is_new[1:] = (np.diff(table[:, order]) != 0).any(axis=0)
    first, kind = order[is_new], np.empty_like(order)
    kind[order] = np.cumsum(is_new) - 1
    return rows.merged(first, kind, places), chances[first], joint[first], kind, places


def class_constraints(
    constraints: Sequence[Constraint], rows: LabelledRows, limit: Limit
) -> list[ClassConstraint]:
    """Bind constraints to the rows: with two classes as usual, with more for each class."""
    of_classes = []
    for constraint in constraints:
        labels: list[int | None] = list(range(rows.classes.size))
        if rows.classes.size == 2:
            labels = [1]
        elif constraint.counts_right:
            labels = [None]
        for label in labels:
            for bound in prepare_constraint(constraint, rows.against_rest(label), limit):
                if not bound.moment.is_rate:
                    raise ValueError(
                        f"constraint={constraint!r} is not on rates of decisions. Choose a "
                        "constraint on rates, such as 'demographic_parity' or 'equalized_odds'."
                    )
                of_classes.append(ClassConstraint(rows.named(bound, label), label))
    if len(of_classes) == 1:
        return of_classes
    named = unique_names([limited.bound for limited in of_classes])
    return [replace(limited, bound=bound) for limited, bound in zip(of_classes, named, strict=True)]


def class_limits(
    constraints: Sequence[Constraint],
    rows: LabelledRows,
    min_rate: Any,
    selection_rate: Any,
    before: IntArray,  # the decisions without any constraint
    pos_label: Any = None,  # the class of values that are not for each class; None: there is none
    recall: float | None = None,  # the smallest one of all positive rows, of two classes
) -> list[ClassConstraint]:
    """Return floors and budgets as constraints."""
    limits = []
    for label, floor in _by_class(min_rate, "min_rate", rows.classes, pos_label):
        constraint, against = floor_constraint(constraints), rows.against_rest(label)
        if not isinstance(floor, str):
            check_number(floor, "min_rate", 0, 1)
        elif floor != "as before":
            raise ValueError(f"min_rate must be a number or 'as before', got {floor!r}.")
        else:
            floor = rates_before(constraint, against, before == label)
        limits += [(bound, label) for bound in floors(constraint, against, floor)]
    for label, wanted in _by_class(selection_rate, "selection_rate", rows.classes, pos_label):
        limits += [(bound, label) for bound in budget(rows.against_rest(label), wanted)]
    if recall is not None:
        constraint = BoundedFalseNegativeRate()
        limits.append((of_everybody(constraint, rows.against_rest(1), 1.0 - recall, "recall"), 1))
    return [ClassConstraint(rows.named(bound, label), label) for bound, label in limits]


def _by_class(
    limits: Any, name: str, classes: NDArray[Any], pos_label: Any
) -> list[tuple[int, Any]]:
    """Return (class number, value) pairs: of the positive class, or from a dict of classes."""
    if limits is None:
        return []
    labels = classes.tolist()
    if not isinstance(limits, dict):
        if pos_label is None:
            raise ValueError(
                f"With {len(labels)} classes {name} must be a dict from classes to values, such as "
                f"{{{labels[0]!r}: ...}}, or pos_label must say which class it is for; got "
                f"{name}={limits!r}."
            )
        return [(labels.index(pos_label), limits)]
    unknown = [key for key in limits if key not in labels]
    if unknown:
        raise ValueError(f"{name} names {listed(unknown)}, but the classes are {listed(labels)}.")
    return [(labels.index(key), value) for key, value in limits.items()]


def clash(constraints: Sequence[Constraint], min_rate: Any, selection_rate: Any) -> str:
    """Say by how much a floor and a budget contradict each other, whatever the rows are."""
    if not isinstance(min_rate, Real) or isinstance(
        floor_constraint(constraints), BoundedFalseNegativeRate
    ):
        return ""
    if selection_rate is None or isinstance(selection_rate, dict):
        return ""
    high = selection_rate if isinstance(selection_rate, Real) else selection_rate[1]
    excess = float(min_rate) - float(high)
    return f" min_rate and selection_rate contradict each other by {excess:.3g}." * (excess > 0)


def report(truth: Truth, chosen: Chosen, n_fair: int, hint: str) -> dict[str, object]:
    """Return the attributes that say what was kept; warn if a limit was not, or much was drawn.

    The first ``n_fair`` constraints are fairness constraints, the others floors and
    budgets.
    """
    disparities = truth.disparities(chosen.predicted)
    names = [bound.name for bound in truth.bounds]
    by_constraint = dict(zip(names[:n_fair], disparities[:n_fair], strict=True))
    limits = [bound.max_disparity for bound in truth.bounds]
    is_kept = truth(chosen.predicted).is_feasible
    if not is_kept:
        warn_user(
            "No decisions were found that satisfy all limits on the training rows: "
            f"{contradiction(truth, chosen.predicted, names)}. Relax one of these.{hint}",
            ConvergenceWarning,
        )
    elif chosen.method != "none" and len(names) == n_fair:  # a budget may ask for few
        predicted, actual = (
            np.bincount(codes, truth.weights, truth.n_classes).astype(np.float64)
            for codes in (chosen.predicted, truth.classes)
        )
        warn_if_one_answer(predicted, actual, max(limits))
    if chosen.mixed_share > MUCH_MIXED:
        warn_user(
            f"The decision of {chosen.mixed_share:.1%} of the training rows follows from a number "
            "that is made of their columns, not from their scores alone: two similar people may "
            "be decided differently. Pass group_aware='thresholds' to forbid that."
        )
    return {
        "tie_weight_": chosen.tie_weight,
        "_mixture": chosen.mixture,
        "mixed_share_": chosen.mixed_share,
        "train_disparities_": by_constraint,
        "train_disparity_": max(by_constraint.values(), default=0.0),
        "status_": "converged" if is_kept else "infeasible",
        "method_": chosen.method,
    }


def report_objective(
    goal: Goal, rows: LabelledRows, chosen: Chosen, before: IntArray
) -> dict[str, object]:
    """Return the attributes that say what decisions are worth; warn if that is less than asked.

    ``before`` are the decisions without any constraint.
    """
    value, free = (
        goal.of(rows.codes, rows.weights, predicted) for predicted in (chosen.predicted, before)
    )
    attributes: dict[str, object] = {"train_objective_": value, "price_of_fairness_": free - value}
    if goal.at_least is not None and not value >= goal.at_least - ROUNDING:
        warn_user(
            f"No decisions were found with an objective of at_least={goal.at_least}: the best ones "
            f"have {value:.4g} on the training rows. They are kept. Ask for less.",
            ConvergenceWarning,
        )
        attributes["status_"] = "infeasible"
    return attributes
