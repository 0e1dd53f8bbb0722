"""The solve and the report of FairDecisionClassifier.

The models of the classes are cross-fitted first. If decisions may not use the group, the models of
the groups follow. Then offsets are searched on the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skfair._typing import ColumnLike, FloatArray, IntArray, MatrixLike, Seed
from skfair.enforcement.decisions.levels import best_of_levels, best_ratio, shares_of
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.search import (
    Solution,
    contradiction,
    no_worse_than_simple,
    search_decisions,
)
from skfair.enforcement.decisions.shares import Shares
from skfair.enforcement.strict_evaluation import StrictEvaluation, Verdict
from skfair.estimators.decisions.bind import Before, DecisionProblem, LabelledRows, clash, in_order
from skfair.estimators.decisions.prediction import decider_attributes
from skfair.estimators.group_corrections import fit_corrections
from skfair.estimators.group_probabilities import GroupModels
from skfair.estimators.limits import (
    below_one_person,
    disparity_attributes,
    is_nearly_constant,
    loosened,
    nearest_rate,
    rate_missed,
    said_if_rate_missed,
    warn_of_changes,
)
from skfair.estimators.objective import utility_at
from skfair.estimators.wrapped_estimator import WrapsEstimator, read_parts, values_unseen
from skfair.estimators.wrapped_scores import (
    FEW_ROWS,
    FOLDS,
    FOLDS_OF_FEW,
    Split,
    check_prefit,
    fewest_to_fit,
    known_folds,
    make_splits,
    own_and_chances_of,
    with_probabilities,
)
from skfair.groups.row_units import n_people
from skfair.groups.training_data import PassedRows, TrainingData
from skfair.utils.rounding import ROUNDING
from skfair.utils.warn import warn_user

# Limits that are tried where those of the user leave the same decision for nearly everybody.
_MOST_LIMITS = 5
# Limits are bisected until they are so close to each other.
_CLOSE = 5e-4
# A warning names the share of rows between several thresholds of their group if it is larger.
MUCH_MIXED = 0.05


@dataclass(frozen=True, eq=False)
class ClassFits:
    """Models of the classes, what they say of rows that they have not seen, and the folds."""

    models: list[Any]
    own: IntArray  # (n_samples,): the classes that they predict themselves, by number
    chances: FloatArray  # (n_samples, n_classes)
    splits: Callable[[], list[Split]]  # of these rows


def read_folds(
    cv: Any,
    X: MatrixLike,  # as it was passed
    data: TrainingData,
    units: ColumnLike | None,
    problem: DecisionProblem,
    key: int,  # of the hash that deals rows to folds
) -> Any:
    """Return the folds that are asked for, or how many there are to be.

    A fitted model needs none, but a certificate does; raise if folds cannot judge each other.
    """
    rows, is_said = problem.rows, not isinstance(cv, str)
    if not is_said:
        cv = FOLDS
        if problem.certificate is not None and n_people(rows.codes.size, data.units) < FEW_ROWS:
            cv = int(np.clip(np.bincount(rows.codes).min(), FOLDS, FOLDS_OF_FEW))
    if is_said:
        cv = known_folds(cv, X, (data.passed or data).y, rows.groups, units)
    if not problem.is_certified:
        return cv
    kinds = rows.groups.cells(rows.codes, rows.classes.size).codes
    splits = make_splits(cv, data, kinds, key=key)
    if sum(test.size for _, test in splits) > rows.codes.size:
        raise ValueError(
            "With certificate= each row must be in one test part of cv, not in several."
        )
    if len(splits) < 3:
        raise ValueError(
            f"certificate= needs 3 folds or more, got cv={cv!r}: with two, the rows that a "
            "path is found on are scored by a model of just those that judge it."
        )
    return splits


def fit_classes(
    estimator: WrapsEstimator,
    data: TrainingData,
    rows: LabelledRows,
    params: dict[str, Any],  # of the fit of the estimator inside, by row
    folds: Any,
    key: int,  # of the hash that deals rows to folds
) -> ClassFits:
    """Fit the models of the classes on folds, or take the fitted one."""
    passed, inner = data.passed, estimator._inner()
    once: TrainingData | PassedRows = passed or data  # each row once
    kinds = rows.groups.cells(rows.codes, rows.classes.size).codes
    kinds = kinds if passed is None else rows.codes[passed.first]
    splits = cache(partial(make_splits, folds, once, kinds, key=key))
    if estimator._is_prefit:
        inner = check_prefit(inner)
    else:
        needed = 1 if hasattr(inner, "predict_proba") else 2  # calibration has folds of its own
        inner = with_probabilities(inner, fewest_to_fit(once.y, splits(), needed))
    is_calibrated = not hasattr(estimator._inner(), "predict_proba")
    read = partial(own_and_chances_of, classes=rows.classes, is_calibrated=is_calibrated)
    models, answers = values_unseen(estimator, inner, read, once.X, once.y, params, splits)
    own, chances = answers[:, 0].astype(np.int64), np.ascontiguousarray(answers[:, 1:])
    if passed is None:
        return ClassFits(models, own, chances, splits)
    of_rows = own[passed.owners], chances[passed.owners]
    return ClassFits(models, *of_rows, lambda: passed.spread(splits()))


def search(
    problem: DecisionProblem,
    data: TrainingData,
    fits: ClassFits,
    # Fits models of groups on the folds; called if limits bind and decisions may not use groups
    fit_groups: Callable[..., tuple[GroupModels, FloatArray]],
    group_aware: bool | str,
    draws: Callable[[Any], FloatArray],  # of a number between 0 and 1 for each row
    random_state: Seed,
) -> dict[str, Any]:
    """Search decisions that satisfy the limits on the rows; return the fitted attributes."""
    rows, chances, models = problem.rows, fits.chances, None
    is_by_group = bool(group_aware) and rows.groups.n_attributes == 1
    codes, n_groups = (rows.groups.codes[0], rows.groups.n_groups) if is_by_group else (None, 1)
    rng = check_random_state(random_state)
    corrections = fit_corrections(chances, rows.codes, codes, n_groups, rows.weights, rng)
    # What is known of the rows, or of each group, counts without limits too.
    chances = chances if corrections is None else corrections(chances, codes)
    before = problem.before(fits.own, chances)
    strict = problem.evaluation(before)
    drawn = cache(lambda: read_parts(draws, data.X)) if group_aware == "mixed" else None
    decisions = whole = DecisionSearch(
        problem, before, chances, bool(group_aware), drawn, random_state
    )
    order, places = np.arange(rows.codes.size), np.arange(rows.groups.n_groups)
    if not (group_aware or rows.groups.is_vacuous or strict(before.predicted).is_feasible):
        models, joint = fit_groups(fits.models, data, rows.codes, chances, fits.splits())
        distinct, own, chances, joint, order, places = in_order(rows, fits.own, chances, joint)
        problem = replace(problem, rows=distinct)
        before = problem.before(own, chances)
        strict = problem.evaluation(before)
        decisions = replace(whole, problem=problem, before=before, chances=chances, joint=joint)
    if problem.goal.at_least is None:
        solution = decisions.best(strict)
        if problem.selection_rate is not None and not strict(solution.predicted).is_feasible:
            solution = decisions.nearest_rate(strict, solution)
    else:
        strict, solution = decisions.smallest()
    offsets = solution.offsets.reshape(places.size, -1)[places]
    predicted = solution.predicted[order]
    without_limits = predicted if solution.method == "none" else whole.without_limits()
    free = problem.goal.of(rows.codes, rows.weights, without_limits)
    attributes = report(problem, strict, solution, free)
    changes = rows.changes(fits.own, without_limits, predicted, first_rows=data.first_rows)
    if attributes["status_"] == "converged" and len(strict.rates.bounds) == problem.n_fair:
        warn_of_changes(
            changes,
            rows.codes,
            rows.sample_weight,
            objective=problem.goal.name,
            is_capped=any(bound.comparison.is_cap for bound in strict.rates.bounds),
            one_person=below_one_person(strict.rates.bounds),
            smallest_limit=lambda: decisions.smallest_limit(strict),
        )
    return {
        **attributes,
        "changes_": changes,
        **decider_attributes(
            rows,
            fits.models,
            models,
            solution.utility,
            offsets,
            draws,
            tie_weight=solution.tie_weight,
            corrections=corrections,
            mixture=solution.mixture,
        ),
        "train_predictions_": rows.classes[predicted[data.first_rows]],
    }


@dataclass(frozen=True, eq=False)
class DecisionSearch:
    """Searches decisions of some rows under changing limits; models stay as they are."""

    problem: DecisionProblem
    before: Before
    chances: FloatArray  # (n_samples, n_classes)
    is_aware: bool  # whether decisions use the groups
    # Returns a number between 0 and 1 for each row, if thresholds may be mixed
    drawn: Callable[[], FloatArray] | None
    random_state: Seed
    # P(group and class | row), (n_samples, n_groups, n_classes), if groups are estimated
    joint: FloatArray | None = None

    def best(self, strict: StrictEvaluation) -> Solution:
        """Return the best decisions within the limits of an evaluation.

        With known groups decisions are compared by expected shares, too, which overfits less; but
        not where a value must be reached, which is counted.
        """
        goal, rows, groups = self.problem.goal, self.problem.rows, self.problem.rows.groups
        order = np.argsort(groups.places(self.chances[:, -1], rows.sample_weight))
        everyone = np.arange(groups.offsets[0], groups.offsets[1])
        features = Features(groups.n_groups, rows.n_strata, strict.n_classes, everyone, order)
        is_partition = self.is_aware and groups.n_attributes == 1 and rows.n_strata == 1
        codes = groups.codes[0] if is_partition else None
        chances = self.chances if self.is_aware and goal.at_least is None else None
        expecting = replace(strict, chances=chances)

        def value(evaluation: StrictEvaluation, predicted: IntArray) -> float:
            return goal.rank(shares_of(evaluation.class_shares, strict.weights, predicted))

        def search(utility: FloatArray) -> Solution:
            values, rng = self.chances @ utility, check_random_state(self.random_state)
            own = replace(expecting, utility=utility)
            offsets = OffsetSearch(own, features, rows.kinds, values, self.shares, rng)
            solution = search_decisions(offsets, codes, self.drawn)
            offsets = replace(offsets, strict=replace(own, chances=None))
            solution = no_worse_than_simple(offsets, solution, partial(value, strict))
            excess = solution.verdict.excess
            return solution._replace(verdict=Verdict(value(expecting, solution.predicted), excess))

        if goal.utility is not None:
            return search(goal.utility)
        if not self.is_aware and strict(self.before.predicted).is_feasible:
            return search(self.before.utility)
        if goal.ratio is not None:
            ratio = value(expecting, self.before.predicted)
            return best_ratio(search, goal.ratio.utility, ratio if np.isfinite(ratio) else 0.5)
        free = self.before.utility
        return best_of_levels(search, utility_at, free[0, 0] / free.sum())

    @cached_property
    def shares(self) -> Shares:
        """What rows are expected to add to rates."""
        return self.problem.rows.shares(self.chances, self.joint)

    def without_limits(self) -> IntArray:
        """Return the best decisions if nothing is limited."""
        return self.best(self.problem.evaluation_without_limits(self.before)).predicted

    def nearest_rate(self, strict: StrictEvaluation, solution: Solution) -> Solution:
        """Return decisions that keep the limits and miss the selection rate least, if there are."""
        rates = strict.rates
        return nearest_rate(
            solution,
            lambda room: self.best(self.problem.evaluation(self.before, room)),
            lambda tried: rate_missed(rates.bounds, rates.disparities(tried.predicted)),
        )

    def smallest_limit(self, strict: StrictEvaluation) -> float | None:
        """Return a limit at which not nearly all rows get the same decision, None if not found.

        It is tried from what one person changes in a rate, in steps of a factor of 2.
        """
        weights, classes = strict.weights, strict.rates.classes
        actual = np.bincount(classes, weights, strict.n_classes).astype(np.float64)
        least = below_one_person(strict.rates.bounds)
        for limit in least * 2.0 ** np.arange(_MOST_LIMITS):
            looser = [
                replace(own, bound=loosened(own.bound, limit)) for own in strict.rates.constraints
            ]
            of_rows = classes, self.problem.rows.counts, strict.utility
            solution = self.best(StrictEvaluation.of(looser, *of_rows))
            shares = np.bincount(solution.predicted, weights, strict.n_classes).astype(np.float64)
            if not is_nearly_constant(shares, actual):
                return float(limit)
        return None

    def smallest(self) -> tuple[StrictEvaluation, Solution]:
        """Return the decisions with the smallest disparity at an objective of at least a value.

        They come after the evaluation under the smallest limit. If nothing reaches the value, they
        are the decisions that are best in the objective.
        """

        def evaluation_under(limit: float) -> StrictEvaluation:
            return replace(self.problem, limit=limit).evaluation(self.before)

        def disparity(strict: StrictEvaluation, predicted: IntArray) -> float:
            return max(strict.rates.disparities(predicted)[: self.problem.n_fair], default=0.0)

        strictest = evaluation_under(0.0)
        low, high = 0.0, disparity(strictest, self.before.predicted)
        strict = evaluation_under(high)
        solution = self.best(strict)
        if not self._reaches(strict, solution):  # decisions within a limit may count for more
            high, within = 0.5 * high, evaluation_under(0.5 * high)
            tried = self.best(within)
            if not self._reaches(within, tried):
                return strict, solution
            strict, solution = within, tried
        limit = 0.0  # first of all: perhaps there is nothing to give up
        while high - low > _CLOSE:
            other = evaluation_under(limit)
            tried = self.best(other)
            if self._reaches(other, tried):
                strict, solution = other, tried
                high = min(limit, disparity(other, tried.predicted))
            else:
                low = limit
            limit = 0.5 * (low + high)
        return strict, solution

    def _reaches(self, strict: StrictEvaluation, solution: Solution) -> bool:
        goal = self.problem.goal
        assert goal.at_least is not None
        value = goal.of(strict.rates.classes, strict.weights, solution.predicted)
        return solution.verdict.is_feasible and value >= goal.at_least - ROUNDING


def report(
    problem: DecisionProblem,
    strict: StrictEvaluation,
    solution: Solution,
    free: float,  # the objective without limits
) -> dict[str, Any]:
    """Return attributes about limits and objective; warn if either is not what was asked for."""
    is_satisfied = strict(solution.predicted).is_feasible
    if not is_satisfied:
        reached = strict.rates.disparities(solution.predicted)
        warn_user(
            "No decisions were found that satisfy all limits on the training rows: "
            f"{contradiction(strict, solution.predicted)}."
            f"{said_if_rate_missed(strict.rates.bounds, reached)} Relax one of these."
            f"{clash(problem)}",
            ConvergenceWarning,
        )
    if solution.mixed_share > MUCH_MIXED:
        warn_user(
            f"A hash of the row chooses between two thresholds for {solution.mixed_share:.1%} of "
            "the training rows, as group_aware='mixed' asks for. Two similar people may get "
            "different decisions, with no reason that could be explained to them. Pass "
            "group_aware=True for one threshold in each group."
        )
    goal, rows, n = problem.goal, problem.rows, problem.n_fair
    disparities = strict.rates.disparities(solution.predicted)
    value = goal.of(rows.codes, rows.weights, solution.predicted)
    if goal.at_least is not None and not value >= goal.at_least - ROUNDING:
        is_satisfied = False
        warn_user(
            f"No decisions were found with an objective of at_least={goal.at_least}: the best ones "
            f"have {value:.4g} on the training rows. They are kept. Ask for less.",
            ConvergenceWarning,
        )
    return {
        **disparity_attributes(strict.rates.bounds[:n], disparities[:n]),
        "mixed_share_": solution.mixed_share,
        "train_objective_": value,
        "price_of_fairness_": free - value,
        "status_": "converged" if is_satisfied else "infeasible",
        "method_": solution.method,
    }
