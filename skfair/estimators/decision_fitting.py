"""How FairDecisionClassifier finds its decisions: the steps of a fit, in their order.

The models of classes are cross-fitted, then those of groups if these are not to be used, then
prices are searched on the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from skfair._typing import FloatArray, IntArray, Seed
from skfair.blocks.training_data import TrainingData
from skfair.constraints.base import Constraint
from skfair.enforcement.decisions.choose import Chosen, choose
from skfair.enforcement.decisions.judge import ClassRule, Judge
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.rows import Features
from skfair.estimators.certified import certify_two_classes, check_certifiable
from skfair.estimators.certified_classes import certify_classes
from skfair.estimators.certified_split import Certified
from skfair.estimators.certified_task import Task
from skfair.estimators.chances import (
    FOLDS,
    chances_of,
    check_prefit,
    cross_fit,
    make_splits,
    usual_folds,
    with_probabilities,
)
from skfair.estimators.classes import (
    check_one_type,
    check_several,
    depending_on_positive,
    read_positive,
)
from skfair.estimators.decision_prediction import DecisionPrediction
from skfair.estimators.decisions import LabelledRows, free_decisions
from skfair.estimators.fold_models import Models
from skfair.estimators.group_chances import GroupModels, fit_group_models
from skfair.estimators.group_corrections import fit_corrections
from skfair.estimators.inner_models import InnerModels
from skfair.groups.attributes import CONTROL
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import take_columns
from skfair.utils.text import listed
from skfair.utils.warn import warn_user

# A second fit weighs rows by 1 + CLOSE_WEIGHT * exp(-(lead / CLOSENESS)^2), by the lead of the
# decision over the next best one.
CLOSE_WEIGHT, CLOSENESS = 3.0, 0.15


class DecisionFitting(Certified, InnerModels, DecisionPrediction):
    """Fits the models, and finds the prices of decisions."""

    cv: Any
    method: str
    group_aware: bool | str
    min_rate: Any
    selection_rate: Any
    n_jobs: int | None
    random_state: Seed
    refit_with_prices: bool

    def _labelled(self, data: TrainingData, rules: Sequence[Constraint]) -> LabelledRows:
        """Read classes and groups; nothing is left of the certificate of an earlier fit."""
        self._forget()
        self.is_refitted_, self._corrections, self.tie_weight_ = False, None, 0.0
        self._mixture, self.mixed_share_ = None, 0.0
        self._draw_key = int(check_random_state(self.random_state).randint(2**31))
        check_one_type(data.y)
        check_classification_targets(data.y)
        self.classes_, codes = np.unique(data.y, return_inverse=True)
        check_several(self.classes_)
        self._read_positive(rules)
        codes = self._order[codes]
        self.is_group_aware_ = bool(self.group_aware)
        offsets = self._group_levels.offsets
        self._marginals = data.groups.sums(data.sample_weight)
        self._marginals /= self._marginals[offsets[0] : offsets[1]].sum()
        return LabelledRows(
            data.groups,
            codes.astype(np.int64),
            self._ordered_classes,
            data.sample_weight,
            data.strata,
        )

    def _read_positive(self, rules: Sequence[Constraint]) -> None:
        """Read which class is positive; of several classes floors and budgets alone have one."""
        limits = {"min_rate": self.min_rate, "selection_rate": self.selection_rate}
        numbers = {name: None if isinstance(one, dict) else one for name, one in limits.items()}
        if self.classes_.size == 2:
            self._take_positive(depending_on_positive(rules, **numbers))
            return
        self.pos_label_ = self.pos_label
        if self.pos_label is None:
            return
        self.pos_label_ = read_positive(self.pos_label, self.classes_)
        if all(one is None for one in numbers.values()):
            raise ValueError(
                f"pos_label={self.pos_label!r} has no effect: of the {self.classes_.size} classes "
                "of y each is limited against the rest. Use None, or pass min_rate or "
                "selection_rate as a number, which then holds for this class."
            )

    def _within_strata(
        self, X: Any, control_features: Any, rows: LabelledRows, rules: Sequence[Constraint]
    ) -> LabelledRows:
        """Keep the levels of the control features for prediction, if a rule holds within them.

        Else the rows are returned without them.
        """
        self._strata_levels: GroupLevels | None = None
        if rows.strata is None or not any(rule.within_strata for rule in rules):
            return rows._replace(strata=None)
        if self._sensitive.within is not None:
            control_features = take_columns(X, self._sensitive.within, "within")
        self._strata_levels = encode_groups(control_features, role=CONTROL).levels
        return rows

    @property
    def _is_prefit(self) -> bool:
        is_said = isinstance(self.cv, str) and self.cv == "prefit"
        return is_said or isinstance(self._inner(), FrozenEstimator)

    def _folds(self, rows: LabelledRows) -> Any:
        """Return the folds that are asked for, or how many there are to be.

        A fitted model needs none, but the paths of a certificate do.
        """
        if isinstance(self.cv, str):
            return usual_folds(rows.codes, is_certified=self.confidence is not None)
        return self.cv

    def _classifier(self) -> Any:
        """Return the classifier, with probabilities; a fitted one as it is."""
        return (check_prefit if self._is_prefit else with_probabilities)(self._inner())

    def _inner_params(
        self, data: TrainingData, given: dict[str, Any], others: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the fits of the classifier take besides rows and classes."""
        if not self._is_prefit:
            return self._row_params(data.sample_weight, given, others)
        if given:
            raise ValueError(
                f"A fitted classifier takes no {listed(list(given))}: it is not fitted."
            )
        return {}

    def _cross_fit(
        self, data: TrainingData, rows: LabelledRows, params: dict[str, Any], folds: Any
    ) -> FloatArray:
        """Fit the models and return the probabilities of the training rows."""
        inner = self._classifier()
        if self._is_prefit:
            self.estimators_ = [inner]
            return chances_of(inner, data.X, rows.classes)
        cells = rows.groups.cells(rows.codes, self.classes_.size).codes
        splits = make_splits(folds, data.X, data.y, cells)
        found = cross_fit(inner, data.X, data.y, params, splits, rows.classes, self.n_jobs)
        self.estimators_ = found.models
        return found.chances

    def _certify(
        self,
        data: TrainingData,
        rows: LabelledRows,
        rules: Sequence[ClassRule],
        worth: FloatArray,
        params: dict[str, Any],
        folds: Any,
    ) -> tuple[dict[str, Any], IntArray]:
        """Return the attributes and decisions that can be shown to keep limits for new people."""
        check_certifiable(self.min_rate, self.selection_rate, self.method)
        groups = None if self.is_group_aware_ else self._group_estimator()
        of_groups = {} if groups is None else self._group_row_params(data.sample_weight)
        inner = self._classifier(), groups, params, of_groups
        models = Models(*inner, self._is_prefit, folds, self.n_jobs)
        rng = check_random_state(self.random_state)
        judge = Judge(rules, rows.codes, rows.weights, worth)
        certificate = self._certificate
        assert certificate is not None
        task = Task.of(data.X, data.y, rows, judge, models, certificate.shift)
        certify = certify_two_classes if rows.classes.size == 2 else certify_classes
        return certify(task, certificate.confidence, rng)

    def _fit_group_models(
        self, data: TrainingData, rows: LabelledRows, judge: Judge, before: IntArray
    ) -> GroupModels | None:
        """Fit models of groups if a limit binds and groups are not to be used."""
        self.group_estimators_: list[list[Any]] = []
        if self.is_group_aware_ or data.groups.is_vacuous or judge(before).is_feasible:
            return None
        estimator, folds = self._group_estimator(), self._folds(rows)
        found = fit_group_models(
            estimator,
            data.X,
            data.groups,
            rows.codes,
            self._group_row_params(data.sample_weight),
            folds if isinstance(folds, Integral) else FOLDS,
            self.n_jobs,
        )
        self.group_estimators_ = found.models
        return found

    def _choose(
        self, judge: Judge, rows: LabelledRows, data: TrainingData, chances: FloatArray
    ) -> Chosen:
        """Search the prices: of known or of estimated groups.

        With known groups decisions are compared by expected worth, which overfits less.
        """
        counted, free, groups = judge, free_decisions(chances @ judge.worth), data.groups
        if self.is_group_aware_:
            chances = self._corrected(rows, groups, chances)
            judge = judge.expecting(chances)
        offsets, n_strata, n_classes = groups.offsets, self._n_strata, self.classes_.size
        features = Features(groups.n_groups, n_strata, n_classes, np.arange(offsets[0], offsets[1]))
        strata = None if rows.strata is None else rows.strata.codes
        kinds = rows.codes if strata is None else strata * n_classes + rows.codes

        def search(joint: FloatArray | None) -> PriceSearch:
            return PriceSearch(
                judge,
                features,
                kinds,
                chances @ judge.worth,
                self._shares(chances, groups.codes, joint, strata),
                check_random_state(self.random_state),
            )

        if not self.is_group_aware_:
            known = self._group_models
            joint = None if known is None else known.joint_of_rows(chances)
            return choose(search(joint), None, self.method)
        is_partition = groups.n_attributes == 1 and n_strata == 1
        chosen = choose(
            search(None),
            groups.codes[0] if is_partition else None,
            self.method,
            None if self.group_aware == "thresholds" else lambda: self._draws(data.X),
        )
        return chosen._replace(verdict=counted(chosen.predicted), free=counted(free))

    def _corrected(
        self, rows: LabelledRows, groups: GroupEncoding, chances: FloatArray
    ) -> FloatArray:
        """Return probabilities given the group, where they clearly differ."""
        self._corrections = None
        if groups.n_attributes > 1:
            return chances
        codes, rng = groups.codes[0], check_random_state(self.random_state)
        found = fit_corrections(chances, rows.codes, codes, groups.n_groups, rows.weights, rng)
        if not found.groups.size:
            return chances
        self._corrections = found
        return found(chances, codes)

    def _is_refit_asked(self, chosen: Chosen) -> bool:
        """Whether to fit again: prices are not 0, and the fit takes weights; warn if it cannot."""
        if not self.refit_with_prices or not chosen.prices.any():
            return False
        is_possible = not self._is_prefit and has_fit_parameter(self._inner(), "sample_weight")
        if not is_possible:
            reason = "is fitted already" if self._is_prefit else "takes no sample_weight"
            warn_user(
                f"{type(self._inner()).__name__} {reason}, so refit_with_prices changes nothing."
            )
        return is_possible

    def _refit(
        self,
        judge: Judge,
        rows: LabelledRows,
        data: TrainingData,
        params: dict[str, Any],
        folds: Any,
        chosen: Chosen,
    ) -> Chosen:
        """Fit with weight on close decisions, search prices again, and return the better of both.

        Weights that depend on the columns alone leave the probabilities what they are.
        """
        first = self.estimators_, self._group_models, self.group_estimators_, self._corrections
        weights = rows.weights * rows.codes.size * (1 + CLOSE_WEIGHT * chosen.closeness(CLOSENESS))
        chances = self._cross_fit(data, rows, {**params, "sample_weight": weights}, folds)
        second = self._choose(judge, rows, data, chances)
        self.is_refitted_ = second.verdict.is_better_than(chosen.verdict)
        if self.is_refitted_:
            return second._replace(free=chosen.free)
        self.estimators_, self._group_models, self.group_estimators_, self._corrections = first
        return chosen
