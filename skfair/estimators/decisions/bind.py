"""The bind step of FairDecisionClassifier: limits and objective, bound to the rows of the fit.

``FairDecisionClassifier.fit`` puts its parameters into a :class:`DecisionSpec` and calls
:func:`bind`. It returns a :class:`DecisionProblem`: the rows with their classes
(:class:`LabelledRows`), the constraints, and the objective as a :class:`Goal`. Floors and budgets
are bound later, by :meth:`DecisionProblem.evaluation`, because "as before" refers to decisions of
the fitted model (:class:`Before`). The search of ``solve.py`` and the certificates of
``certified/paths.py`` read the problem.

Classes are numbers in the order of ``LabelledRows.classes``. With two classes, 1 is the positive
one. With more, each class is limited against the rest, and a constraint has the number of its
class. The number ``TRUE_CLASS`` belongs to constraints on right decisions, for whatever class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import ClassLabel, FloatArray, IntArray, Seed
from skfair.constraints.base import Constraint, TrainingRows, limit_for
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.rates import BoundedFalseNegativeRate
from skfair.enforcement.decisions.levels import best_level
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.shares import Shares, estimated_shares, known_shares
from skfair.enforcement.strict_evaluation import TRUE_CLASS, ClassConstraint, StrictEvaluation
from skfair.estimators.certificate import Certificate, check_no_floors
from skfair.estimators.classes import encode_classes, positive_class, read_positive
from skfair.estimators.erm.bind import active_constraints
from skfair.estimators.limits import (
    budget,
    floor_constraint,
    floors,
    of_everybody,
    prepare_constraint,
    unique_names,
    widened,
)
from skfair.estimators.objective import Goal, Measure, Objective, check_swap, goal_of, utility_at
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Change, Limit, change_of
from skfair.groups.strata import Strata
from skfair.groups.training_data import TrainingData
from skfair.losses import LogLoss
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.text import listed

# Weights count as numbers of copies only if the lightest row has fewer copies than this. So five or
# more random whole numbers are hardly ever mistaken for copies (in 0.3% of 2,000 draws from 20 to
# 200).
_MOST_COPIES = 10


@dataclass(frozen=True, eq=False)
class DecisionSpec:
    """The parameters of FairDecisionClassifier, as passed, except those about its models."""

    constraint: Any
    max_disparity: Any
    objective: Measure | Objective
    min_rate: Any
    selection_rate: Any
    pos_label: ClassLabel
    certificate: Certificate | None  # None for limits on the training rows only
    group_aware: bool | str
    random_state: Seed


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of two or more classes."""

    groups: GroupEncoding
    codes: IntArray  # (n_samples,): number of the class of each row
    classes: NDArray[Any]  # the labels by number; with two classes, the positive one is the last
    sample_weight: FloatArray | None
    strata: Strata | None  # levels of the control features
    # The class for which floors and budgets hold unless they are a dict; None if the user chose
    # none of several classes
    pos_label: Any = None
    # The share of the heaviest row, as passed, in the total weight. ``DistinctRows`` merge rows,
    # and keep this value
    heaviest: float = 1.0

    @property
    def counts(self) -> FloatArray:
        """The weights as they were passed, or ones."""
        return np.ones(self.codes.size) if self.sample_weight is None else self.sample_weight

    @property
    def weights(self) -> FloatArray:
        """Weights with a sum of 1."""
        return np.asarray(self.counts / self.counts.sum())

    @property
    def kinds(self) -> IntArray:
        """Stratum and true class of each row, as one number."""
        strata = self.strata
        return self.codes if strata is None else strata.codes * self.classes.size + self.codes

    @property
    def n_strata(self) -> int:
        return 1 if self.strata is None else len(self.strata.names)

    def shares(
        self,
        chances: FloatArray,
        joint: FloatArray | None = None,
        part: IntArray | slice = slice(None),
    ) -> Shares:
        """Return the shares of some rows in the features, from which expected rates are computed.

        A feature is a combination of group, stratum and true class. If ``joint`` is None, the
        groups of the rows are used with ``chances``, their probabilities of the classes. Otherwise
        ``joint`` holds P(group and class | row), and ``chances`` are not read.
        """
        strata = None if self.strata is None else self.strata.codes[part]
        if joint is not None:
            return estimated_shares(joint, strata, self.n_strata)
        groups = self.groups
        return known_shares(groups.codes[:, part], groups.n_groups, strata, self.n_strata, chances)

    def changes(self, *stages: IntArray, first_rows: IntArray | slice) -> dict[str, Change]:
        """Return ``changes_``, about the selection rate or the share of each of several classes.

        The stages are three sets of decisions (n_samples,): those of the model itself, the best
        ones without limits, and the best ones within the limits.
        """
        named = {"selection rate": 1}
        if self.classes.size > 2:
            named = {f"share of {label!r}": k for k, label in enumerate(self.classes.tolist())}
        rows, labels = (self.groups, self.sample_weight), np.stack(stages)
        return {name: change_of(*rows, labels == k, first_rows) for name, k in named.items()}

    def against_rest(self, label: int) -> TrainingRows:
        """Return the rows for a constraint on class ``label``, whose rows are the positive ones.

        For ``TRUE_CLASS`` all rows are positive, and a row is "selected" if its decision is right.
        """
        names = self.classes.tolist()
        targets = np.ones(self.codes.size)
        pair = ("wrong", "right")
        if label != TRUE_CLASS:
            targets = np.where(self.codes == label, 1.0, -1.0)
            pair = (names[0] if len(names) == 2 else f"not {names[label]}", names[label])
        return TrainingRows(self.groups, targets, self.sample_weight, LogLoss(), pair, self.strata)

    def named(self, bound: BoundConstraint, label: int) -> BoundConstraint:
        """Return a constraint with the class in its name, if there are several."""
        if label == TRUE_CLASS or self.classes.size == 2:
            return bound
        return replace(bound, name=f"{bound.name} (y={self.classes.tolist()[label]})")


@dataclass(frozen=True, eq=False)
class Before:
    """The decisions before limits: of the model itself, and the best ones for the objective."""

    # The out-of-fold decisions by ``predict`` of the models. "as before" in floors and budgets
    # refers to these
    own: IntArray
    predicted: IntArray  # the decisions of largest expected utility
    # (n_classes, n_classes): utility of decisions (column) by true class (row). If the objective is
    # not linear in the shares of the rows, its best decisions are the best ones for this utility
    utility: FloatArray


@dataclass(frozen=True, eq=False)
class DecisionProblem:
    """Rows, the limits on decisions about them, and the objective of the decisions."""

    rows: LabelledRows
    spec: DecisionSpec
    constraints: Sequence[Constraint]
    # The limit of constraints without their own. If the smallest disparity is searched, it is 0
    # here, and the search tries others
    limit: Any
    goal: Goal

    @cached_property
    def fair(self) -> list[ClassConstraint]:
        """The constraints, bound to the rows."""
        return class_constraints(self.constraints, self.rows, self.limit)

    @property
    def n_fair(self) -> int:
        """The number of constraints for which there are rates to compare in these rows.

        They come first in evaluations, before floors and budgets.
        """
        return sum(bool(limited.bound.compared_sets.size) for limited in self.fair)

    @property
    def is_certified(self) -> bool:
        """Whether a certificate is asked for, and the constraints limit something."""
        is_limited = any(limited.limits_something for limited in self.fair)
        return is_limited and self.spec.certificate is not None

    def before(self, own: IntArray, chances: FloatArray) -> Before:
        """Return the decisions before limits, given probabilities of the classes."""
        rows, goal, utility = self.rows, self.goal, self.goal.utility
        if utility is None:  # two classes: a threshold on the probability is best
            positives = np.asarray(rows.codes == 1, dtype=np.float64)
            level = best_level(goal.rank, chances[:, 1], positives, rows.weights, goal.recall)
            utility = utility_at(level)
        return Before(own, decided(chances @ utility), utility)

    def evaluation(self, before: Before, room: float = 0.0) -> StrictEvaluation:
        """Return the strict evaluation of decisions under the constraints, floors and budgets.

        "as before" refers to ``before``. The selection rate may be missed by ``room``, a share of
        the rows.
        """
        rows, limits = self.rows, []
        for label, floor in _by_class(self.spec.min_rate, "min_rate", rows):
            columns = rows.against_rest(label), floor, before.own == label
            limits += [(bound, label) for bound in floors(self.constraints, *columns)]
        for label, wanted in _by_class(self.spec.selection_rate, "selection_rate", rows):
            columns = rows.against_rest(label), wanted, before.own == label
            both = budget(*columns, rows.heaviest)
            limits += [(widened(bound, room), label) for bound in both]
        bound = [ClassConstraint(rows.named(bound, label), label) for bound, label in limits]
        return self._evaluation([*self.fair, *bound], before)

    def evaluation_without_limits(self, before: Before) -> StrictEvaluation:
        """Return the strict evaluation of decisions under the recall of the objective alone."""
        return self._evaluation([], before)

    def _evaluation(self, limits: list[ClassConstraint], before: Before) -> StrictEvaluation:
        """Return the evaluation under some limits, and under the recall of the objective."""
        rows = self.rows
        if self.goal.recall is not None:
            missed, against = BoundedFalseNegativeRate(), rows.against_rest(1)
            bound = of_everybody(missed, against, 1.0 - self.goal.recall, "recall")
            limits = [*limits, ClassConstraint(rows.named(bound, 1), 1)]
        return StrictEvaluation.of(limits, rows.codes, rows.counts, before.utility)


def bind(data: TrainingData, spec: DecisionSpec) -> DecisionProblem:
    """Return limits and objective, bound to the rows.

    Raises if a certificate is asked for and the other parameters allow none. Warns if the result
    depends on the positive class and that class is a guess.
    """
    min_rate, selection_rate, max_disparity = spec.min_rate, spec.selection_rate, spec.max_disparity
    constraints = active_constraints(spec.constraint, "classification", data, max_disparity)
    objective = spec.objective
    best = objective if isinstance(objective, Objective) else Objective(objective)
    classes, codes = encode_classes(data.y)
    if classes.size == 2:
        others = () if best.is_symmetric else ("objective",)
        positive = positive_class(
            spec.pos_label, classes, constraints, min_rate, selection_rate, others
        )
        if positive == classes.tolist()[0]:
            classes, codes = classes[::-1], 1 - codes
    else:
        positive = _positive_of_several(spec.pos_label, classes, min_rate, selection_rate)
    # Strata that no constraint reads are left out, so that offsets do not depend on them.
    strata = data.strata if any(constraint.within_strata for constraint in constraints) else None
    codes, weights = codes.astype(np.int64), data.groups.rate_weight(data.sample_weight)
    weights = None if weights is None else _without_unit(weights)
    heaviest = 1 / codes.size if weights is None else float(weights.max() / weights.sum())
    rows = LabelledRows(data.groups, codes, classes, weights, strata, positive, heaviest)
    check_swap(best, max_disparity, any(c.own_limit is None for c in constraints))
    goal = goal_of(best, classes, np.bincount(codes, rows.weights, classes.size))
    limit = 0.0 if goal.at_least is not None else limit_for(spec.constraint, max_disparity)
    problem = DecisionProblem(rows, spec, constraints, limit, goal)
    if problem.is_certified:
        check_no_floors(min_rate, selection_rate, classes.size == 2)
        if goal.utility is None or goal.at_least is not None:
            raise ValueError(
                "certificate= certifies limits where the best accuracy, balanced accuracy or costs "
                f"are sought, not objective={objective!r}. Set certificate=None, or use one of "
                "these."
            )
    return problem


def _without_unit(weights: FloatArray) -> FloatArray:
    """Return weights in a unit that does not depend on the unit of the given ones.

    If small whole numbers have the same ratios, the smallest such numbers are returned, as numbers
    of copies of the rows. Otherwise the weights are scaled to a mean of 1.
    """
    ratios = weights / weights[weights > 0].min()
    for least in range(1, _MOST_COPIES):
        copies = np.rint(least * ratios)
        if np.all(np.abs(least * ratios - copies) <= SUM_ROUNDING * copies):
            return np.asarray(copies)
    return np.asarray(weights / weights.mean())


def _positive_of_several(
    pos_label: ClassLabel, classes: NDArray[Any], min_rate: Any, selection_rate: Any
) -> Any:
    """Return the class (of more than two) for which floors and budgets hold, or None.

    Constraints limit each class against the rest, so ``pos_label`` is only used for floors and
    budgets that are not a dict. Raises if it is given and there are none.
    """
    if pos_label is None:
        return None
    positive = read_positive(pos_label, classes.tolist())
    if all(limit is None or isinstance(limit, dict) for limit in (min_rate, selection_rate)):
        raise ValueError(
            f"pos_label={pos_label!r} has no effect: of the {classes.size} classes of y each is "
            "limited against the rest. Use None, or pass min_rate or selection_rate as a number, "
            "which then holds for this class."
        )
    return positive


def class_constraints(
    constraints: Sequence[Constraint], rows: LabelledRows, limit: Limit
) -> list[ClassConstraint]:
    """Bind each constraint to the rows, for the positive one of two classes or for every class.

    Constraints on right decisions (``counts_right``) are bound once, to ``TRUE_CLASS``. Names that
    occur twice get numbers. :mod:`skfair.classification.certifying` calls this, too.
    """
    of_classes = []
    for constraint in constraints:
        labels = list(range(rows.classes.size))
        if rows.classes.size == 2:
            labels = [1]
        elif constraint.counts_right:
            labels = [TRUE_CLASS]
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


def _by_class(limits: Any, name: str, rows: LabelledRows) -> list[tuple[int, Any]]:
    """Return floors or budgets as (class number, value) pairs.

    A dict has a value for each class that it names. Any other value is for the positive class.
    """
    if limits is None:
        return []
    labels = rows.classes.tolist()
    if not isinstance(limits, dict):
        if rows.pos_label is None:
            raise ValueError(
                f"With {len(labels)} classes {name} must be a dict from classes to values, such as "
                f"{{{labels[0]!r}: ...}}, or pos_label must say which class it is for; got "
                f"{name}={limits!r}."
            )
        return [(labels.index(rows.pos_label), limits)]
    unknown = [key for key in limits if key not in labels]
    if unknown:
        raise ValueError(f"{name} names {listed(unknown)}, but the classes are {listed(labels)}.")
    return [(labels.index(key), value) for key, value in limits.items()]


def clash(problem: DecisionProblem) -> str:
    """Return a sentence for warnings if a floor exceeds the largest selection rate, else "".

    Floors on true positive rates do not contradict a budget in this way.
    """
    min_rate, selection_rate = problem.spec.min_rate, problem.spec.selection_rate
    if not isinstance(min_rate, Real) or isinstance(
        floor_constraint(problem.constraints), BoundedFalseNegativeRate
    ):
        return ""
    if selection_rate is None or isinstance(selection_rate, dict | str):
        return ""
    high = selection_rate if isinstance(selection_rate, Real) else selection_rate[1]
    excess = float(min_rate) - float(high)
    return f" min_rate and selection_rate contradict each other by {excess:.3g}." * (excess > 0)
