"""The fit of FairDecisionClassifier: its steps in their order.

The models of classes are cross-fitted, then those of groups if these are not to be used, then
prices are searched on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from skfair._typing import ColumnLike, FloatArray, IntArray, MatrixLike, Seed
from skfair.constraints.base import Constraint
from skfair.enforcement.certified.walk import row_rates
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.truth import ClassConstraint, Truth
from skfair.estimators.certified.certificate import Certified
from skfair.estimators.certified.paths import Folds, certify, check_folds, check_no_floors
from skfair.estimators.chances import (
    FOLDS,
    Split,
    chances_of,
    check_prefit,
    cross_fit,
    folds_of_certificate,
    make_splits,
)
from skfair.estimators.classes import (
    check_one_type,
    check_several,
    read_positive,
)
from skfair.estimators.decisions.prediction import DecisionPrediction
from skfair.estimators.decisions.search import Before, DecisionSearch
from skfair.estimators.decisions.steps import LabelledRows, class_limits
from skfair.estimators.group_chances import GroupModels
from skfair.estimators.group_corrections import fit_corrections
from skfair.estimators.inner_models import InnerModels
from skfair.estimators.inner_scores import known_folds
from skfair.estimators.limits import selection_range
from skfair.estimators.objective import Goal, check_swap, goal_of, is_linear, read_objective
from skfair.groups.attributes import CONTROL
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import take_columns
from skfair.groups.training_data import TrainingData


class DecisionFitting(Certified, InnerModels, DecisionPrediction):
    """Fits the models, and finds the prices of decisions."""

    _reads_probabilities = True
    group_aware: bool | str
    max_disparity: Any
    objective: Any
    min_rate: Any
    selection_rate: Any
    n_jobs: int | None
    random_state: Seed

    def _labelled(self, data: TrainingData, rules: Sequence[Constraint]) -> LabelledRows:
        """Read classes, groups and strata; nothing is left of an earlier fit."""
        self._forget()
        self._corrections, self.tie_weight_ = None, 0.0
        self.group_estimators_: list[list[Any]] = []
        self._group_models: GroupModels | None = None
        self._mixture, self.mixed_share_ = None, 0.0
        self._draw_key = int(check_random_state(self.random_state).randint(2**31))
        self._strata_levels: GroupLevels | None = None
        check_one_type(data.y)
        check_classification_targets(data.y)
        self.classes_, codes = np.unique(data.y, return_inverse=True)
        check_several(self.classes_)
        if self.classes_.size == 2:
            self._take_positive(rules)
        else:
            self._take_positive_of_several()
        order = self._order
        self.is_group_aware_ = bool(self.group_aware)
        offsets = self._group_levels.offsets
        self._marginals = data.groups.sums(data.sample_weight)
        self._marginals /= self._marginals[offsets[0] : offsets[1]].sum()
        has_strata = any(rule.within_strata for rule in rules)
        return LabelledRows(
            data.groups,
            order[codes].astype(np.int64),
            self.classes_[order],
            data.sample_weight,
            data.strata if has_strata else None,
        )

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

    def _depending_on_positive(self, rules: Sequence[Constraint]) -> list[object]:
        """Return the constraints, and what else is asked for, that need a positive class."""
        reasons, objective = super()._depending_on_positive(rules), read_objective(self.objective)
        is_symmetric = is_linear(objective) or objective.measure == "mcc"
        return reasons if is_symmetric else [*reasons, "objective"]

    def _goal(self, rules: Sequence[Constraint], rows: LabelledRows) -> Goal:
        """Read the objective; raise if nothing says how far limits are to go."""
        objective = read_objective(self.objective)
        if self.max_disparity is None or objective.at_least is not None:
            is_open = any(rule.own_limit is None for rule in rules)
            check_swap(objective, self.max_disparity, is_open)
        shares = np.bincount(rows.codes, rows.weights, rows.classes.size).astype(np.float64)
        return goal_of(objective, rows.classes, self._order, shares)

    def _truth_of(
        self, rules: Sequence[Constraint], rows: LabelledRows, goal: Goal, chances: FloatArray
    ) -> tuple[Callable[[Sequence[ClassConstraint]], Truth], Before]:
        """Return the truth under bound constraints, and the decisions without any.

        Floors, budgets and the recall of the objective are constraints besides.
        """
        before = Before.of(goal, chances, rows.codes, rows.weights)
        values = self.min_rate, self.selection_rate, before.predicted
        limits = class_limits(rules, rows, *values, self.pos_label_, goal.recall)

        def truth_of(fair: Sequence[ClassConstraint]) -> Truth:
            return Truth([*fair, *limits], rows.codes, rows.counts, before.worth)

        return truth_of, before

    def _keep_strata(self, X: Any, control_features: Any) -> None:
        """Keep the levels of the control features for prediction."""
        if self._sensitive.within is not None:
            control_features = take_columns(X, self._sensitive.within, "within")
        self._strata_levels = encode_groups(control_features, role=CONTROL).levels

    def _folds(self, X: Any, y: Any, rows: LabelledRows, groups: ColumnLike | None) -> Any:
        """Return the folds that are asked for, or how many there are to be.

        A fitted model needs none, but the paths of a certificate do.
        """
        if isinstance(self.cv, str) and groups is None:
            return FOLDS if self.confidence is None else folds_of_certificate(rows.codes)
        return known_folds(self.cv, X, y, rows.groups, groups)

    def _classifier(self) -> Any:
        """Return the classifier; a fitted one must have probabilities."""
        return check_prefit(self._inner()) if self._is_prefit else self._inner()

    def _cross_fit(
        self, data: TrainingData, rows: LabelledRows, params: dict[str, Any], folds: Any
    ) -> tuple[FloatArray, Callable[[], list[Split]]]:
        """Fit the models; return the probabilities of the training rows, and the folds of these."""
        inner, people = self._classifier(), data.people
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
        rules: Sequence[ClassConstraint],
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
        truth = Truth(rules, rows.codes, rows.weights, goal.worth)
        rates = row_rates(truth.constraints, rows.codes, rows.weights).against(certificate.shift)
        kinds = rows.groups.cells(rows.codes, self.classes_.size).codes
        splits = make_splits(cv, data.X, data.y, kinds)
        check_folds(splits, rows.codes.size, cv)
        # The paths vary with the rows, too: each has seen all folds but one, so a row of n counts
        # as (K - 1) / K. Without that 8 of 100 fits failed on Adult (n = 5000, groups not used).
        rates = replace(rates, precision=(len(splits) - 1) / len(splits))
        chances, _ = self._cross_fit(data, rows, params, splits)
        groups = None if self.is_group_aware_ else self._fit_groups(data, rows, splits)
        folds = Folds(data.X, rows, splits, self.estimators_, chances, groups, truth, rates)
        wanted = None
        if self.selection_rate is not None:
            wanted = selection_range(self.selection_rate, float(rows.weights.max()))
        attributes, predicted = certify(folds, certificate.confidence, rng, wanted)
        self.__dict__.update(attributes)
        self._store_prices(attributes["prices_"], goal.worth)
        self.train_objective_ = goal.of(rows.codes, rows.weights, predicted)
        self.price_of_fairness_ *= goal.unit
        self.train_predictions_ = self._ordered_classes[predicted]
        return self

    def _fit_groups(
        self, data: TrainingData, rows: LabelledRows, splits: list[Split]
    ) -> GroupModels:
        """Fit models of groups on the folds; without the training rows these are stored."""
        fits = self._group_fits(data, self.estimators_, splits)
        group_models = fits(data.X, rows.groups, rows.codes)
        self.group_estimators_ = group_models.models
        self._group_models = group_models.without_rows()
        return group_models

    def _joint_chances(
        self,
        data: TrainingData,
        rows: LabelledRows,
        chances: FloatArray,
        truth: Truth,
        before: IntArray,
        splits: Callable[[], list[Split]],
    ) -> FloatArray | None:
        """Fit models of groups if a limit binds and groups are not to be used.

        Returned are the probabilities of group and class of the training rows, None without models.
        """
        if self.is_group_aware_ or rows.groups.is_vacuous or truth(before).is_feasible:
            return None
        return self._fit_groups(data, rows, splits()).joint_of_rows(chances)

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
        if self.is_group_aware_:
            chances = self._corrected(rows, groups, chances)
        offsets, n_strata, n_classes = groups.offsets, self._n_strata, self.classes_.size
        order = np.argsort(groups.places(chances[:, -1], rows.sample_weight))
        everyone = np.arange(offsets[0], offsets[1])
        features = Features(groups.n_groups, n_strata, n_classes, everyone, order)
        strata = None if rows.strata is None else rows.strata.codes
        kinds = rows.codes if strata is None else strata * n_classes + rows.codes
        shares = self._shares(chances, groups.codes, joint, strata)

        def search(truth: Truth, values: FloatArray) -> PriceSearch:
            rng = check_random_state(self.random_state)
            return PriceSearch(truth, features, kinds, values, shares, rng)

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

    def _corrected(
        self, rows: LabelledRows, groups: GroupEncoding, chances: FloatArray
    ) -> FloatArray:
        """Return probabilities given the group, where they clearly differ."""
        self._corrections = None
        if groups.n_attributes > 1:
            return chances
        codes, rng = groups.codes[0], check_random_state(self.random_state)
        corrections = fit_corrections(
            chances, rows.codes, codes, groups.n_groups, rows.weights, rng
        )
        if not corrections.groups.size:
            return chances
        self._corrections = corrections
        return corrections(chances, codes)
