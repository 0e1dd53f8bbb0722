"""What is certified for unseen data: models of folds, and the rates that limits are on.

Paths of prices are judged by one walk. The test speaks of each model with its path; what predicts
is their mean. These may differ: of boosted trees each is certain of other people, and where few are
selected the mean selects fewer (Adult, n=5000: .4% of the people in place of .9%, and a gap of .06
in place of .01); elsewhere its gaps are larger by half a standard error. So the last certified step
is taken at which the rates of the folds satisfy the limits with what the mean changes. That is
measured on the training rows, of which each was seen by all models but one; but what the models
disagree on there is nearly what they disagree on elsewhere (measured and true changes have a
correlation of .9: 40 samples, n=20,000). Equalized odds .05 was exceeded in 20 of 196 fits without
this, and in 3 of 114 with it (trees, half positive, n=20,000).

Decisions that are nearly the same for everybody are no solution, whether the models of the folds
make them, of rows that they have not seen, or their mean does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.walk import (
    RowRates,
    Walked,
    last_kept,
    people_needed,
    row_rates,
    stacked,
    walk,
)
from skfair.enforcement.decisions.judge import ClassRule, Judge
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.shares import Shares
from skfair.estimators.certified.fold_models import FoldModels, Models, fold_models, sampled
from skfair.estimators.decisions.steps import LabelledRows
from skfair.estimators.limits import is_nearly_constant
from skfair.utils.threads import one_blas_thread
from skfair.utils.warn import warn_user

# Chances and shares of rows, and a path: its decisions on them, (n_rows, n_steps).
Decide = Callable[[FloatArray, Shares, FloatArray], IntArray | BoolArray]


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

    def selected(self, predicted: IntArray | BoolArray, codes: IntArray) -> BoolArray:
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


def judge_paths(
    task: Task,
    paths: FloatArray,  # (n_folds, n_steps, ...): the prices of the folds
    # (n_samples, n_steps): the decisions on each row by the path of its fold, which has not seen it
    decisions: IntArray | BoolArray,
    fairest: int,  # the step that predicts if no step is certified
    decide: Decide,
    confidence: float,
) -> tuple[dict[str, Any], IntArray]:
    """Choose the certified step; return fitted attributes and the decisions of the rows.

    These are by models and paths that have not seen them. All steps up to the last one that passes
    are certified together, so any of them may be taken.
    """
    folds, judge, asked = task
    rates, codes, weights = asked.rates, folds.rows.codes, folds.rows.weights
    selected = asked.selected(decisions, codes)
    walked = walk(rates, selected, confidence)
    n_passed = walked.step + 1
    changes, by_mean = _by_mean(task, paths[:, :n_passed], decide)
    chosen = last_kept(rates, selected[:, :n_passed], changes, confidence)
    worth = np.array([judge.worth_of(labels.astype(np.int64)) for labels in decisions.T])
    constant = float((weights @ judge.values).max())
    actual = np.bincount(codes, weights, judge.n_classes).astype(np.float64)
    by_folds = np.bincount(decisions[:, chosen].astype(np.int64), weights, actual.size)
    is_certified = chosen >= 0 and not (
        worth[chosen] <= constant < worth.max()
        or is_nearly_constant(by_folds.astype(np.float64), actual)
        or is_nearly_constant(by_mean[:, chosen], actual)
    )
    step = chosen if is_certified else fairest
    if not is_certified:
        _warn(task, selected[:, step], step, confidence, walked, is_within=chosen >= 0)
    labels = decisions[:, step].astype(np.int64)
    disparities = judge.disparities(labels)
    by_rule = {bound.name: values for bound, values in zip(judge.bounds, disparities, strict=True)}
    free = judge.worth_of(decided(folds.crossed.chances @ judge.worth))
    is_pair = judge.n_classes == 2
    return {
        "status_": "certified" if is_certified else "no_solution",
        **walked.reported(step),
        "path_": {
            "accuracy": worth,
            "selection_rate": weights @ decisions if is_pair else np.full(worth.size, np.nan),
            "disparity": walked.disparities,
            "bound": walked.bounds,
            "p_value": walked.p_values,
            "is_certified": np.arange(worth.size) <= chosen,
        },
        **folds.attributes(),
        "prices_": paths[:, step].mean(axis=0),
        "train_disparities_": by_rule,
        "train_disparity_": max(by_rule.values(), default=0.0),
        "price_of_fairness_": free - worth[step],
    }, labels


@one_blas_thread
def _by_mean(task: Task, paths: FloatArray, decide: Decide) -> tuple[FloatArray, FloatArray]:
    """Compare the decisions of the mean of models and paths with those of each fold.

    Returned are by how much rates are larger by the mean, (n_rates, n_steps), and the shares of the
    rows that the mean decides for each class, (n_classes, n_steps).
    """
    folds, _, (rates, of_times) = task
    n, rows, codes = folds.rows.codes.size, sampled(folds.rows.codes.size), folds.rows.codes
    weights = folds.rows.weights
    if rows is not None:
        codes, weights = codes[rows], weights[rows] / weights[rows].sum()
        rates = rates.part(np.concatenate([rows + k * n for k in range(len(of_times))]))
    labels = [
        decide(chances, shares, path)
        for (chances, shares), path in zip(
            folds.by_all(rows), [*paths, paths.mean(axis=0)], strict=True
        )
    ]
    *by_folds, of_mean = (task.asked.selected(of_path, codes) for of_path in labels)
    return (
        rates.changes(of_mean - np.mean(by_folds, axis=0)),
        np.stack([weights @ (labels[-1] == k) for k in range(folds.rows.classes.size)]),
    )


def _warn(
    task: Task,
    selected: BoolArray,
    step: int,
    confidence: float,
    walked: Walked,
    *,
    is_within: bool,
) -> None:
    """Say why nothing was certified, and how many more people it would take."""
    n, advice = task.folds.rows.codes.size, "More people, or a smoother model, may help."
    limits = sorted({float(task.rates.after_shift(block.limit)) for block in task.rates.blocks})
    if is_within:
        reason = "those that do are nearly the same decision for everybody, or worth no more"
        advice = "More people, a larger max_disparity, or columns that say more, may help."
    elif walked.step >= 0:
        reason = (
            "those that do, of the folds, disagree on whom they select, and their mean, which "
            "predicts, does not"
        )
    else:
        bound = float(walked.bounds[step])
        reason = f"what can be shown of the fairest ones is {bound:.3g}"
        needed = people_needed(task.rates, selected, confidence) // len(task.asked.labels)
        advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
        if needed > 1.1 * n:
            advice = f"About {needed - n} more people (with groups in the same shares) are needed."
    warn_user(
        f"With {n} people no decisions were found of which it can be shown, at a confidence of "
        f"{confidence:g}, that they satisfy max_disparity="
        f"{' and '.join(f'{limit:g}' for limit in limits)} in the population: {reason}. {advice} "
        "predict() uses the fairest ones, and status_ is 'no_solution'.",
        ConvergenceWarning,
    )
