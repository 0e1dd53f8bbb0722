"""The fit of FairDecisionClassifier: its steps in their order.

The models of classes are cross-fitted, then those of groups if these are not to be used, then
offsets are searched on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import ColumnLike, FloatArray, IntArray, MatrixLike, Seed
from skfair.constraints.base import Constraint
from skfair.enforcement.certified.walk import row_rates
from skfair.enforcement.decisions.choose import choose
from skfair.enforcement.decisions.levels import (
    Weighed,
    best_level,
    best_of_levels,
    best_ratio,
    shares_of,
)
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.offsets import OffsetSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.truth import ClassConstraint, Truth
from skfair.estimators.certified.certificate import Certified
from skfair.estimators.certified.paths import Folds, certify, check_folds, check_no_floors
from skfair.estimators.classes import encode_classes, read_positive
from skfair.estimators.decisions.prediction import DecisionPrediction
from skfair.estimators.decisions.steps import (
    LabelledRows,
    clash,
    class_constraints,
    class_limits,
    in_order,
    report,
    report_objective,
)
from skfair.estimators.group_corrections import fit_corrections
from skfair.estimators.inner_models import InnerModels
from skfair.estimators.inner_scores import (
    FOLDS,
    Split,
    chances_of,
    check_prefit,
    cross_fit,
    folds_of_certificate,
    known_folds,
    make_splits,
)
from skfair.estimators.limits import selection_range
from skfair.estimators.objective import (
    Goal,
    check_swap,
    goal_of,
    is_linear,
    read_objective,
    worth_at,
)
from skfair.groups.attributes import CONTROL
from skfair.groups.encoding import encode_groups
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import take_columns
from skfair.groups.training_data import TrainingData
from skfair.utils.rounding import ROUNDING

# Limits are bisected until they are so close to each other.
_CLOSE = 5e-4


class Before(NamedTuple):
    """The best decisions without constraints, and the worth of decisions that makes them."""

    predicted: IntArray
    worth: FloatArray


@dataclass
class DecisionSearch:
    """Searches decisions of some rows under changing limits; models stay as they are.

    Attributes
    ----------
    goal : Goal
        What decisions are to be best in.
    before : Before
        The best decisions without constraints.
    chances : ndarray of shape (n_samples, n_classes)
        Probabilities of the classes.
    search : callable
        Makes the search of a truth and expected worth.
    is_aware : bool
        Whether decisions use the groups.
    groups : ndarray of shape (n_samples,) or None
        These, if there is one attribute.
    draws : callable or None
        Returns a number between 0 and 1 for each row, if thresholds may be mixed.
    """

    goal: Goal
    before: Before
    chances: FloatArray
    search: Callable[[Truth, FloatArray], OffsetSearch]
    is_aware: bool
    groups: IntArray | None
    draws: Callable[[], FloatArray] | None

    def best(self, truth: Truth) -> Weighed:
        """Return the best decisions within the limits of a truth.

        With known groups decisions are compared by expected shares, too, which overfits less; but
        not where a value must be reached, which is counted.
        """
        goal = self.goal
        counted = np.eye(truth.n_classes)[truth.classes]
        is_expected = self.is_aware and goal.at_least is None
        believed = truth.believed(self.chances) if is_expected else counted

        def weigh(worth: FloatArray) -> Weighed:
            valuing = truth.valuing(worth)
            valuing = valuing.expecting(self.chances) if is_expected else valuing
            chosen = choose(self.search(valuing, self.chances @ worth), self.groups, self.draws)
            rank = goal.rank(shares_of(believed, truth.weights, chosen.predicted))
            return Weighed(chosen, worth, rank)

        if goal.worth is not None:
            return weigh(goal.worth)
        if not self.is_aware and truth(self.before.predicted).is_feasible:
            return weigh(self.before.worth)
        if goal.ratio is not None:
            rank = goal.rank(shares_of(believed, truth.weights, self.before.predicted))
            return best_ratio(weigh, goal.ratio.worth, rank if np.isfinite(rank) else 0.5)
        return best_of_levels(weigh, worth_at, self.before.worth[0, 0] / self.before.worth.sum())

    def smallest(self, truth_of: Callable[[float], Truth], n_fair: int) -> tuple[Truth, Weighed]:
        """Return the decisions with the smallest disparity at an objective of at least a value.

        Parameters
        ----------
        truth_of : callable
            Returns the truth about decisions under a limit.
        n_fair : int
            This many constraints, the first ones, have this limit or one of their own.

        Returns
        -------
        truth, found : Truth, Weighed
            The truth under the smallest limit and its decisions; if nothing reaches the value,
            the decisions that are best in the objective.
        """

        def disparity(truth: Truth, predicted: IntArray) -> float:
            return max(truth.disparities(predicted)[:n_fair], default=0.0)

        strictest = truth_of(0.0)
        low, high = 0.0, disparity(strictest, self.before.predicted)
        truth = truth_of(high)
        weighed = self.best(truth)
        if not self._reaches(truth, weighed):  # decisions within a limit may count for more
            high, within = 0.5 * high, truth_of(0.5 * high)
            tried = self.best(within)
            if not self._reaches(within, tried):
                return truth, weighed
            truth, weighed = within, tried
        limit = 0.0  # first of all: perhaps there is nothing to give up
        while high - low > _CLOSE:
            other = truth_of(limit)
            tried = self.best(other)
            if self._reaches(other, tried):
                truth, weighed = other, tried
                high = min(limit, disparity(other, tried.chosen.predicted))
            else:
                low = limit
            limit = 0.5 * (low + high)
        return truth, weighed

    def _reaches(self, truth: Truth, weighed: Weighed) -> bool:
        wanted = self.goal.at_least
        assert wanted is not None
        value = self.goal.of(truth.classes, truth.weights, weighed.chosen.predicted)
        return weighed.chosen.verdict.is_feasible and value >= wanted - ROUNDING


class DecisionFitting(Certified, InnerModels, DecisionPrediction):
    """Fits the models, and finds the offsets of decisions."""

    _reads_probabilities = True
    group_aware: bool | str
    random_state: Seed

    def _labelled(
        self, data: TrainingData, constraints: Sequence[Constraint], X: Any, control_features: Any
    ) -> LabelledRows:
        """Read classes, groups and strata; nothing is left of an earlier fit."""
        self._forget()
        self._corrections = self._mixture = self._group_models = None
        self.tie_weight_, self.mixed_share_, self.group_estimators_ = 0.0, 0.0, []
        self._draw_key = int(check_random_state(self.random_state).randint(2**31))
        self._strata_levels: GroupLevels | None = None
        self.classes_, codes = encode_classes(data.y)
        if self.classes_.size == 2:
            self._take_positive(constraints)
        else:
            self._take_positive_of_several()
        order = self._order
        self.is_group_aware_ = bool(self.group_aware)
        offsets = self._group_levels.offsets
        self._marginals = data.groups.sums(data.sample_weight)
        self._marginals /= self._marginals[offsets[0] : offsets[1]].sum()
        is_within = any(constraint.within_strata for constraint in constraints)
        strata = data.strata if is_within else None
        if strata is not None:  # new rows have levels of their own
            if self._sensitive.within is not None:
                control_features = take_columns(X, self._sensitive.within, "within")
            self._strata_levels = encode_groups(control_features, role=CONTROL).levels
        codes = order[codes].astype(np.int64)
        return LabelledRows(data.groups, codes, self.classes_[order], data.sample_weight, strata)

    def _take_positive_of_several(self) -> None:
        """Read which class is positive: of several classes floors and budgets alone have one."""
        self.pos_label_ = self.pos_label
        if self.pos_label is None:
            return
        self.pos_label_ = read_positive(self.pos_label, self.classes_.tolist())
        limits = self.min_rate, self.selection_rate
        if all(limit is None or isinstance(limit, dict) for limit in limits):
            raise ValueError(
                f"pos_label={self.pos_label!r} has no effect: of the {self.classes_.size} classes "
                "of y each is limited against the rest. Use None, or pass min_rate or "
                "selection_rate as a number, which then holds for this class."
            )

    def _depending_on_positive(self, constraints: Sequence[Constraint]) -> list[object]:
        reasons = super()._depending_on_positive(constraints)
        objective = read_objective(self.objective)
        is_symmetric = is_linear(objective) or objective.measure == "mcc"
        return reasons if is_symmetric else [*reasons, "objective"]

    def _goal(self, constraints: Sequence[Constraint], rows: LabelledRows) -> Goal:
        """Read the objective; raise if nothing says how far limits are to go."""
        objective = read_objective(self.objective)
        is_open = any(constraint.own_limit is None for constraint in constraints)
        check_swap(objective, self.max_disparity, is_open)
        shares = np.bincount(rows.codes, rows.weights, rows.classes.size).astype(np.float64)
        return goal_of(objective, rows.classes, self._order, shares)

    def _solve(
        self,
        data: TrainingData,
        rows: LabelledRows,
        constraints: Sequence[Constraint],
        limit: Any,  # of constraints without a limit of their own
        fair: Sequence[ClassConstraint],  # the constraints, bound to the rows
        goal: Goal,
        chances: FloatArray,
        splits: Callable[[], list[Split]],
    ) -> Self:
        """Search decisions of the rows, and store them and what they keep."""
        truth_of, before = self._truth_of(constraints, rows, goal, chances)
        truth, joint = truth_of(fair), None
        needs_none = self.is_group_aware_ or rows.groups.is_vacuous
        if not (needs_none or truth(before.predicted).is_feasible):
            joint = self._fit_groups(data, rows.codes, splits()).joint_of_rows(chances)
        order, places = np.arange(rows.codes.size), np.arange(rows.groups.n_groups)
        if joint is not None:
            rows, chances, joint, order, places = in_order(rows, chances, joint)
            truth_of, before = self._truth_of(constraints, rows, goal, chances)
            fair = class_constraints(constraints, rows, limit)
            truth = truth_of(fair)
        n_fair = sum(bool(constraint.bound.compared_sets.size) for constraint in fair)
        search = self._searching(rows, data.X, chances, joint, goal, before)
        if goal.at_least is None:
            candidate = search.best(truth)
        else:
            truth, candidate = search.smallest(
                lambda limit: truth_of(class_constraints(constraints, rows, limit)), n_fair
            )
        chosen = candidate.chosen
        self._store_offsets(chosen.offsets.reshape(places.size, -1)[places], candidate.worth)
        hint = clash(constraints, self.min_rate, self.selection_rate)
        reported = report(truth, chosen, n_fair, hint)
        self.__dict__.update(reported | report_objective(goal, rows, chosen, before.predicted))
        self.train_predictions_ = self._ordered_classes[chosen.predicted[order][data.first_rows]]
        return self

    def _truth_of(
        self, constraints: Sequence[Constraint], rows: LabelledRows, goal: Goal, chances: FloatArray
    ) -> tuple[Callable[[Sequence[ClassConstraint]], Truth], Before]:
        """Return the truth under bound constraints, and the decisions without any.

        Floors, budgets and the recall of the objective are constraints besides.
        """
        worth = goal.worth
        if worth is None:
            positives = np.asarray(rows.codes == 1, dtype=np.float64)
            level = best_level(goal.rank, chances[:, 1], positives, rows.weights, goal.recall)
            worth = worth_at(level)
        before = Before(decided(chances @ worth), worth)
        values = self.min_rate, self.selection_rate, before.predicted
        limits = class_limits(constraints, rows, *values, self.pos_label_, goal.recall)

        def truth_of(fair: Sequence[ClassConstraint]) -> Truth:
            return Truth([*fair, *limits], rows.codes, rows.counts, before.worth)

        return truth_of, before

    def _folds(
        self, X: Any, data: TrainingData, rows: LabelledRows, groups: ColumnLike | None
    ) -> Any:
        """Return the folds that are asked for, or how many there are to be.

        A fitted model needs none, but the paths of a certificate do.
        """
        if isinstance(self.cv, str) and groups is None:
            return FOLDS if self.confidence is None else folds_of_certificate(rows.codes)
        return known_folds(self.cv, X, (data.people or data).y, rows.groups, groups)

    def _cross_fit(
        self, data: TrainingData, rows: LabelledRows, params: dict[str, Any], folds: Any
    ) -> tuple[FloatArray, Callable[[], list[Split]]]:
        """Fit the models; return the probabilities of the training rows, and the folds of these."""
        inner, people = self._inner(), data.people
        inner = check_prefit(inner) if self._is_prefit else inner
        X, y = (people or data).X, (people or data).y
        kinds = rows.groups.cells(rows.codes, self.classes_.size).codes
        kinds = kinds if people is None else rows.codes[people.first]
        splits = cache(partial(make_splits, folds, X, y, kinds))
        if self._is_prefit:
            self.estimators_, chances = [inner], chances_of(inner, X, rows.classes)
        else:
            crossed = cross_fit(inner, X, y, params, splits(), rows.classes, self.n_jobs)
            self.estimators_, chances = crossed
        if people is None:
            return chances, splits
        return chances[people.owners], lambda: people.spread(splits())

    def _certify(
        self,
        data: TrainingData,
        rows: LabelledRows,
        constraints: Sequence[ClassConstraint],
        goal: Goal,
        params: dict[str, Any],
        cv: Any,
    ) -> Self:
        """Store decisions that can be shown to satisfy the limits for unseen data, if there are."""
        check_no_floors(self.min_rate, self.selection_rate, rows.classes.size == 2)
        if goal.worth is None or goal.at_least is not None:
            raise ValueError(
                "confidence= certifies limits where the best accuracy, balanced accuracy or costs "
                f"are sought, not objective={self.objective!r}. Set confidence=None, or use one of "
                "these."
            )
        certificate, rng = self._certificate, check_random_state(self.random_state)
        assert certificate is not None
        truth = Truth(constraints, rows.codes, rows.weights, goal.worth)
        rates = row_rates(truth.constraints, rows.codes, rows.weights).against(certificate.shift)
        kinds = rows.groups.cells(rows.codes, self.classes_.size).codes
        splits = make_splits(cv, data.X, data.y, kinds)
        check_folds(splits, rows.codes.size, cv)
        # The paths vary with the rows, too: each has seen all folds but one, so a row of n counts
        # as (K - 1) / K. Without that 8 of 100 fits failed on Adult (n = 5000, groups not used).
        rates = replace(rates, precision=(len(splits) - 1) / len(splits))
        chances, _ = self._cross_fit(data, rows, params, splits)
        groups = None if self.is_group_aware_ else self._fit_groups(data, rows.codes, splits)
        folds = Folds(data.X, rows, splits, self.estimators_, chances, groups, truth, rates)
        share = self.selection_rate
        wanted = None if share is None else selection_range(share, float(rows.weights.max()))
        attributes, predicted = certify(folds, certificate.confidence, rng, wanted)
        self.__dict__.update(attributes)
        self._store_offsets(attributes["offsets_"], goal.worth)
        self.train_objective_ = goal.of(rows.codes, rows.weights, predicted)
        self.price_of_fairness_ *= goal.unit
        self.train_predictions_ = self._ordered_classes[predicted]
        return self

    def _searching(
        self,
        rows: LabelledRows,
        X: MatrixLike,
        chances: FloatArray,
        joint: FloatArray | None,
        goal: Goal,
        before: Before,
    ) -> DecisionSearch:
        """Return the search of decisions: of known or of estimated groups."""
        groups = rows.groups
        if self.is_group_aware_ and groups.n_attributes == 1:  # probabilities given the group
            codes, rng = groups.codes[0], check_random_state(self.random_state)
            corrections = fit_corrections(
                chances, rows.codes, codes, groups.n_groups, rows.weights, rng
            )
            if corrections.groups.size:  # they clearly differ
                self._corrections, chances = corrections, corrections(chances, codes)
        offsets, n_strata, n_classes = groups.offsets, self._n_strata, self.classes_.size
        order = np.argsort(groups.places(chances[:, -1], rows.sample_weight))
        everyone = np.arange(offsets[0], offsets[1])
        features = Features(groups.n_groups, n_strata, n_classes, everyone, order)
        strata = None if rows.strata is None else rows.strata.codes
        shares = self._shares(chances, groups.codes, joint, strata)

        def search(truth: Truth, values: FloatArray) -> OffsetSearch:
            rng = check_random_state(self.random_state)
            return OffsetSearch(truth, features, rows.kinds, values, shares, rng)

        is_partition = self.is_group_aware_ and groups.n_attributes == 1 and n_strata == 1
        may_draw = self.is_group_aware_ and self.group_aware != "thresholds"
        return DecisionSearch(
            goal,
            before,
            chances,
            search,
            self.is_group_aware_,
            groups.codes[0] if is_partition else None,
            cache(lambda: self._draws(X)) if may_draw else None,
        )
