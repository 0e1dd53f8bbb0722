"""The solve and report steps of FairDecisionClassifier, given the fitted models of the classes.

``FairDecisionClassifier.fit`` calls :func:`search` unless limits are to be certified. It searches
offsets of the decisions on the training rows by a :class:`DecisionSearch`, and :func:`report`
makes the fitted attributes. If the limits bind and decisions may not use the group, models of the
groups are fitted first, and the rows are replaced by distinct rows in a canonical order.

:meth:`DecisionSearch.within_limits` chooses what is searched:

- With ``Objective(at_least=...)``, the decisions of the smallest disparity (``smallest``).
- Otherwise, the best decisions within the limits (``best``).
- If a budget makes the limits impossible, the decisions that miss the budget least
  (``nearest_rate``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.levels import best_of_levels, best_ratio, shares_of
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.offsets import MOST_EXACT, OffsetSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.search import (
    Solution,
    contradiction,
    gains,
    no_worse_than_simple,
    search_decisions,
)
from skfair.enforcement.decisions.shares import Shares, margins, with_ties_broken
from skfair.enforcement.strict_evaluation import StrictEvaluation, Verdict
from skfair.estimators.decisions.bind import Before, DecisionProblem, clash
from skfair.estimators.decisions.distinct_rows import DistinctRows
from skfair.estimators.decisions.fits import ClassFits
from skfair.estimators.decisions.prediction import decider_attributes
from skfair.estimators.group_probabilities import GroupFits
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
from skfair.estimators.probability_corrections import ProbabilityCorrections, fit_corrections
from skfair.estimators.wrapped_estimator import read_parts
from skfair.groups.training_data import TrainingData
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.rounding import ROUNDING
from skfair.utils.warn import warn_user

# smallest_limit() tries at most this many limits, each twice the previous one.
_MOST_LIMITS = 5
# The smallest disparity is found to this precision.
_CLOSE = 5e-4
# With mixtures of thresholds, a hash of the row selects the threshold. A warning is given if the
# decision depends on the hash for more than this share of the rows.
MUCH_MIXED = 0.05
# Groups are estimated, although they are known, if the limits cost more than this many standard
# errors of accuracy, and the estimates are only used if they gain as many.
_BEYOND_CHANCE = 2.0
# They are not estimated if the limits cost less than this. Estimates take two thirds of the time of
# such a fit, and the fits that gained by them had lost four points or more.
_MUCH_LOST = 0.02


def search(
    problem: DecisionProblem,
    data: TrainingData,
    fits: ClassFits,
    draws: Callable[[Any], FloatArray],  # hashes each row of X to a number between 0 and 1
) -> dict[str, Any]:
    """Search decisions that satisfy the limits on the rows; return the fitted attributes."""
    rows, goal, group_aware = problem.rows, problem.goal, problem.spec.group_aware
    drawn = cache(lambda: read_parts(draws, data.X)) if group_aware == "mixed" else None
    # ``free`` searches among the rows as passed, and ``limited`` finds the decisions within the
    # limits. They differ if groups are estimated.
    way = _Way.of(problem, fits, drawn)
    free = way.search()
    if not (group_aware or rows.groups.is_vacuous or free.is_satisfied(free.before.predicted)):
        way = way.with_estimates()
    limited = way.search()
    strict, solution = limited.within_limits()
    may_estimate = group_aware is True and not isinstance(data.X, PartitionedRows)
    if may_estimate and goal.at_least is None and limited.loses(strict, solution):
        # No thresholds for known groups do well here. Decisions that do not use the group are more
        # flexible, because each estimated group and class has an offset of its own.
        blind = replace(problem, spec=replace(problem.spec, group_aware=False))
        other_way = _Way.of(blind, fits, None).with_estimates()
        other = other_way.search()
        other_strict, found = other.within_limits()
        if gains(strict, other.as_passed(found), solution, _BEYOND_CHANCE):
            way, limited, strict, solution = other_way, other, other_strict, found
    passed = limited.as_passed(solution)
    without_limits = passed.predicted if passed.method == "none" else free.without_limits()
    value = goal.of(rows.codes, rows.weights, without_limits)
    attributes = report(limited.problem, strict, solution, value)
    other_offsets = way.offsets_of_another_deal(strict, passed)
    close_call_rate = 0.0 if passed.method == "none" else np.nan
    if other_offsets is not None:
        others = way.predicted(passed, other_offsets)
        close_call_rate = float(rows.weights @ (others != passed.predicted))
    changes = rows.changes(fits.own, without_limits, passed.predicted, first_rows=data.first_rows)
    if attributes["status_"] == "converged" and len(strict.rates.bounds) == problem.n_fair:
        warn_of_changes(
            changes,
            rows.codes,
            rows.sample_weight,
            objective=goal.name,
            is_capped=any(bound.comparison.is_cap for bound in strict.rates.bounds),
            one_person=below_one_person(strict.rates.bounds),
            smallest_limit=lambda: limited.smallest_limit(strict),
        )
    return {
        **attributes,
        "changes_": changes,
        **decider_attributes(
            rows,
            fits.models,
            None if way.of_groups is None else way.of_groups.models,
            passed.utility,
            passed.offsets,
            draws,
            tie_weight=passed.tie_weight,
            corrections=way.corrections,
            mixture=passed.mixture,
            other_offsets=other_offsets,
        ),
        "close_call_rate_": close_call_rate,
        "train_predictions_": rows.classes[passed.predicted[data.first_rows]],
    }


@dataclass(frozen=True, eq=False)
class _Way:
    """What decisions are made of: corrected probabilities, and known or estimated groups."""

    problem: DecisionProblem
    fits: ClassFits
    drawn: Callable[[], FloatArray] | None  # see DecisionSearch
    # Corrections of the probabilities of the model; None if they need none
    corrections: ProbabilityCorrections | None
    codes: IntArray | None  # groups of the rows, if corrections are made within each group
    chances: FloatArray  # (n_samples, n_classes): corrected out-of-fold probabilities
    of_groups: GroupFits | None = None  # None if groups are known, or not needed

    @classmethod
    def of(
        cls, problem: DecisionProblem, fits: ClassFits, drawn: Callable[[], FloatArray] | None
    ) -> _Way:
        """Return the way with known groups, and fit the corrections of probabilities.

        They are fitted within each group if decisions may use the group, otherwise to all rows.
        Decisions without limits use them, too, so that the loss by the limits does not contain the
        effect of the corrections.
        """
        rows, codes, n_groups = problem.rows, None, 1
        if problem.spec.group_aware and rows.groups.n_attributes == 1:
            codes, n_groups = rows.groups.codes[0], rows.groups.n_groups
        rng = check_random_state(problem.spec.random_state)
        of_rows = fits.chances, rows.codes, codes, n_groups, rows.weights
        way = cls(problem, fits, drawn, fit_corrections(*of_rows, rng), codes, fits.chances)
        return replace(way, chances=way.corrected(fits.chances))

    def corrected(self, chances: FloatArray) -> FloatArray:
        """Return corrected probabilities."""
        return chances if self.corrections is None else self.corrections(chances, self.codes)

    def with_estimates(self) -> _Way:
        """Return the way with estimated groups, whose models are fitted."""
        return replace(self, of_groups=self.fits.fit_groups(self.chances))

    def search(self) -> DecisionSearch:
        """Return the search of decisions."""
        joint = None if self.of_groups is None else self.of_groups.joint
        return self._search(self.chances, joint)

    def _search(self, chances: FloatArray, joint: FloatArray | None) -> DecisionSearch:
        own = DecisionSearch(self.problem, self.fits.own, chances, self.drawn)
        return own if joint is None else own.on_distinct_rows(joint)

    def offsets_of_another_deal(
        self, strict: StrictEvaluation, found: Solution
    ) -> FloatArray | None:
        """Return the offsets that another deal of the folds might give, (n_features, n_classes).

        ``strict`` has the limits of the decisions that were found. The result is None if they have
        no offsets, if a hash draws some of them, or if there are few folds. With many rows
        decisions hold still, and another search would take much time, so it is None as well.
        """
        n_rows, n_classes = self.chances.shape
        if found.method == "none" or self.drawn is not None or n_rows > MOST_EXACT:
            return None
        if (chances := self.fits.other_chances()) is None:
            return None
        chances = self.corrected(chances)
        joint = None if self.of_groups is None else self.of_groups.other_joint(chances)
        other = self._search(chances, joint)
        return other.as_passed(other.under(strict, found.utility)).offsets.reshape(-1, n_classes)

    def predicted(self, found: Solution, offsets: FloatArray) -> IntArray:
        """Return the decisions about the rows with other offsets than those that were found."""
        joint = None if self.of_groups is None else self.of_groups.joint
        values = with_ties_broken(self.chances @ found.utility, found.tie_weight)
        shares = self.problem.rows.shares(self.chances, joint)
        return decided(margins(values, shares, offsets))


@dataclass(frozen=True, eq=False)
class DecisionSearch:
    """Searches decisions about fixed rows with fixed probabilities, under changing limits."""

    problem: DecisionProblem
    own: IntArray  # (n_samples,): the decisions of the model itself
    chances: FloatArray  # (n_samples, n_classes): probabilities of the classes
    # Returns a number between 0 and 1 for each row, for mixtures of thresholds; None unless
    # group_aware is "mixed"
    drawn: Callable[[], FloatArray] | None
    # The distinct rows if groups are estimated. ``problem`` then has these rows
    distinct: DistinctRows | None = None

    def on_distinct_rows(self, joint: FloatArray) -> DecisionSearch:
        """Return the search for decisions that do not use groups, given P(group and class | row).

        The result does not depend on the order in which the rows were passed.
        """
        distinct = DistinctRows.of(self.problem.rows, self.own, self.chances, joint)
        problem = replace(self.problem, rows=distinct.rows)
        return DecisionSearch(problem, distinct.own, distinct.chances, self.drawn, distinct)

    def as_passed(self, solution: Solution) -> Solution:
        """Return a solution in the order in which rows and groups were passed."""
        if self.distinct is None:
            return solution
        offsets, predicted = self.distinct.as_passed(solution.offsets, solution.predicted)
        return solution._replace(offsets=offsets, predicted=predicted)

    @cached_property
    def before(self) -> Before:
        """The decisions before limits."""
        return self.problem.before(self.own, self.chances)

    @cached_property
    def strict(self) -> StrictEvaluation:
        """The evaluation of decisions under all limits of the user."""
        return self.problem.evaluation(self.before)

    @cached_property
    def features(self) -> Features:
        """The features that have offsets, with the groups in an order that ignores their names."""
        rows, groups = self.problem.rows, self.problem.rows.groups
        order = np.argsort(groups.places(self.chances[:, -1], rows.sample_weight))
        everyone = np.arange(groups.offsets[0], groups.offsets[1])
        return Features(groups.n_groups, rows.n_strata, rows.classes.size, everyone, order)

    @cached_property
    def shares(self) -> Shares:
        """The shares of the rows in the features, from which expected rates are computed."""
        joint = None if self.distinct is None else self.distinct.joint
        return self.problem.rows.shares(self.chances, joint)

    def loses(self, strict: StrictEvaluation, solution: Solution) -> bool:
        """Whether decisions within limits on several rates of a group lose more than by chance.

        For one rate of each group, one threshold for each group is best. No thresholds may close
        the gaps of several rates, as for equalized odds, at a reasonable loss.
        """
        groups = [b.rate_groups for b in strict.rates.bounds[: self.problem.n_fair]]
        counts = np.unique(np.concatenate(groups), return_counts=True)[1] if groups else np.ones(1)
        if strict.n_classes > 2 or counts.max() < 2 or solution.method == "none":
            return False
        lost = strict.utility_of(self.before.predicted) - strict.utility_of(solution.predicted)
        error = 0.5 * float(np.linalg.norm(strict.weights))
        return lost > max(_BEYOND_CHANCE * error, _MUCH_LOST)

    def is_satisfied(self, predicted: IntArray) -> bool:
        """Whether decisions satisfy all limits of the user."""
        return self.strict(predicted).is_feasible

    def without_limits(self) -> IntArray:
        """Return the best decisions if nothing is limited."""
        return self.best(self.problem.evaluation_without_limits(self.before)).predicted

    def within_limits(self) -> tuple[StrictEvaluation, Solution]:
        """Return (evaluation under the limits, decisions), chosen as the module explains."""
        if self.problem.goal.at_least is not None:
            return self.smallest()
        solution = self.best(self.strict)
        wanted = self.problem.spec.selection_rate
        if wanted is not None and not self.is_satisfied(solution.predicted):
            solution = self.nearest_rate(self.strict, solution)
        return self.strict, solution

    def under(self, strict: StrictEvaluation, utility: FloatArray) -> Solution:
        """Return the best decisions for a utility under the limits of an evaluation of these rows.

        The rows of the evaluation may be in another order.
        """
        problem = self.problem
        if problem.goal.at_least is not None:  # the smallest limit that allows this value
            problem = replace(problem, limit=strict.rates.bounds[0].max_disparity)
        own = problem.evaluation(self.before)
        return self._best_for(own, self._expecting(own), utility)

    def best(self, strict: StrictEvaluation) -> Solution:
        """Return the best decisions within the limits of an evaluation.

        An objective that is linear in the shares of the rows takes one search. Where groups are
        estimated and the decisions without limits satisfy the limits, so does any other objective.
        A ratio takes a search for each guess of its value, and any other function a search for each
        of several levels.
        """
        goal, is_aware = self.problem.goal, bool(self.problem.spec.group_aware)
        expecting = self._expecting(strict)
        search = partial(self._best_for, strict, expecting)
        if goal.utility is not None:
            return search(goal.utility)
        if not is_aware and strict(self.before.predicted).is_feasible:
            return search(self.before.utility)
        if goal.ratio is not None:
            ratio = self._value(expecting, self.before.predicted)
            return best_ratio(search, goal.ratio.utility, ratio if np.isfinite(ratio) else 0.5)
        free = self.before.utility
        return best_of_levels(search, utility_at, free[0, 0] / free.sum())

    def _expecting(self, strict: StrictEvaluation) -> StrictEvaluation:
        """Return the evaluation by which decisions are compared, under the same limits.

        With known groups, the objective is partly computed from expected classes instead of true
        ones, which overfits less. A value that must be reached is computed from true ones alone.
        """
        is_expected = self.problem.spec.group_aware and self.problem.goal.at_least is None
        return replace(strict, chances=self.chances if is_expected else None)

    def _best_for(
        self, strict: StrictEvaluation, expecting: StrictEvaluation, utility: FloatArray
    ) -> Solution:
        """Return the best decisions for a utility, with their value in the objective as merit.

        ``strict`` and ``expecting`` have the same limits, but ``expecting`` may hold probabilities.
        Decisions are compared by its values. In the value of ``strict``, the result is at least as
        good as simple decisions, such as the same one for all rows.
        """
        rows, groups, spec = self.problem.rows, self.problem.rows.groups, self.problem.spec
        is_partition = bool(spec.group_aware) and groups.n_attributes == 1 and rows.n_strata == 1
        codes = groups.codes[0] if is_partition else None
        values, rng = self.chances @ utility, check_random_state(spec.random_state)
        own = replace(expecting, utility=utility)
        offsets = OffsetSearch(own, self.features, rows.kinds, values, self.shares, rng)
        if not spec.group_aware:  # decisions by thresholds of known groups hold still anyway
            offsets = offsets.near_soft()
        solution = search_decisions(offsets, codes, self.drawn)
        offsets = replace(offsets, strict=replace(own, chances=None), start=None)
        solution = no_worse_than_simple(offsets, solution, partial(self._value, strict))
        merit, excess = self._value(expecting, solution.predicted), solution.verdict.excess
        return solution._replace(verdict=Verdict(merit, excess))

    def _value(self, evaluation: StrictEvaluation, predicted: IntArray) -> float:
        """Return the value of decisions in the objective.

        It is computed from the true classes of rows, and partly from expected classes if the
        evaluation has probabilities.
        """
        shares = shares_of(evaluation.class_shares, evaluation.weights, predicted)
        return self.problem.goal.rank(shares)

    def nearest_rate(self, strict: StrictEvaluation, solution: Solution) -> Solution:
        """Return decisions that satisfy the other limits and miss the selection rate least.

        ``solution`` are the decisions under all limits. They are returned if no decisions satisfy
        the other limits.
        """
        rates = strict.rates
        return nearest_rate(
            solution,
            lambda room: self.best(self.problem.evaluation(self.before, room)),
            lambda tried: rate_missed(rates.bounds, rates.disparities(tried.predicted)),
        )

    def smallest_limit(self, strict: StrictEvaluation) -> float | None:
        """Return a limit at which decisions are not nearly constant, or None if none is found.

        The first limit that is tried is the change of a rate by one person. Each further limit is
        twice the previous one.
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
        """Return (evaluation, decisions) with the smallest disparity that allows the objective.

        The objective must be at least ``goal.at_least``. Bisection between ``low`` (too small) and
        ``high`` (large enough) finds the smallest limit at which this is possible. The evaluation
        is under this limit. If no limit is large enough, the decisions are the best ones for the
        objective.
        """

        def evaluation_under(limit: float) -> StrictEvaluation:
            return replace(self.problem, limit=limit).evaluation(self.before)

        def disparity(strict: StrictEvaluation, predicted: IntArray) -> float:
            return max(strict.rates.disparities(predicted)[: self.problem.n_fair], default=0.0)

        strictest = evaluation_under(0.0)
        low, high = 0.0, disparity(strictest, self.before.predicted)
        strict = evaluation_under(high)
        solution = self.best(strict)
        # A search under a tighter limit may find better decisions by chance, so half is tried.
        if not self._reaches(strict, solution):
            high, within = 0.5 * high, evaluation_under(0.5 * high)
            tried = self.best(within)
            if not self._reaches(within, tried):
                return strict, solution
            strict, solution = within, tried
        limit = 0.0  # the first limit, because the value may be possible without any disparity
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
        """Whether decisions satisfy the limits and reach ``goal.at_least``."""
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
    """Return attributes about limits and objective; warn if a limit or the value is missed."""
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
