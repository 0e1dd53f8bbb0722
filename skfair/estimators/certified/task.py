"""What is certified for unseen data: models of folds, and the rates that limits are on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.walk import RowRates, row_rates, stacked
from skfair.enforcement.decisions.judge import ClassRule, Judge
from skfair.estimators.certified.fold_models import FoldModels, Models, fold_models
from skfair.estimators.decisions.steps import LabelledRows


class ClassRates(NamedTuple):
    """Rates on several classes: each row is there once for each class that is selected."""

    rates: RowRates
    labels: tuple[int | None, ...]  # the class of each time; None for the true one

    @classmethod
    def of(cls, rules: Sequence[ClassRule], weights: FloatArray) -> ClassRates:
        """Return the rates of constraints that are bound to the rows."""
        labels = tuple(dict.fromkeys(rule.counted for rule in rules))
        by_label = [[rule.bound for rule in rules if rule.counted == label] for label in labels]
        return cls(stacked([row_rates(bounds, weights) for bounds in by_label]), labels)

    def selected(self, predicted: IntArray, codes: IntArray) -> BoolArray:
        """Return what decisions (n_samples, n_steps) select, (n_times * n_samples, n_steps)."""
        wanted = [codes[:, None] if label is None else label for label in self.labels]
        return np.concatenate([predicted == label for label in wanted])


class Task(NamedTuple):
    """What is certified."""

    folds: FoldModels
    judge: Judge  # the constraints, and what decisions are worth
    asked: ClassRates  # the rates of the rules

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        rows: LabelledRows,
        judge: Judge,
        models: Models,
        shift: float,  # share of the people in each rate that may be replaced by others
    ) -> Task:
        """Fit the models of the folds; raise before that if a constraint has no test."""
        asked = ClassRates.of(judge.rules, rows.weights)
        rates = asked.rates.against(shift)
        folds = fold_models(X, y, rows, models)
        # The paths vary with the rows, too: each has seen all folds but one, so a row of n counts
        # as (K - 1) / K. Without that 8 of 100 fits failed on Adult (n = 5000, groups not used).
        n_folds = len(folds.splits)
        rates = replace(rates, precision=(n_folds - 1) / n_folds)
        return cls(folds, judge, asked._replace(rates=rates))

    @property
    def rates(self) -> RowRates:
        """The rates of the constraints."""
        return self.asked.rates

    @property
    def worth(self) -> FloatArray:
        """Worth of each decision (column), given the true class (row)."""
        return self.judge.worth
