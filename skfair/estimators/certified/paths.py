"""One walk along the paths of all folds, judged by the decisions of rows that had no part in them.

The test speaks of each model with its path; what predicts is their mean. These may differ: of
boosted trees each is certain of other people, and where few are selected the mean selects fewer
(Adult, n=5000: .4% of the people in place of .9%, and a gap of .06 in place of .01); elsewhere
its gaps are larger by half a standard error. So the last certified step is taken at which the rates
of the folds satisfy the limits with what the mean changes. That is measured on the training rows,
of which each was seen by all models but one; but what the models disagree on there is nearly what
they disagree on elsewhere (measured and true changes have a correlation of .9: 40 samples,
n=20,000). Equalized odds .05 was exceeded in 20 of 196 fits without this, and in 3 of 114 with it
(trees, half positive, n=20,000).

Decisions that are nearly the same for everybody are no solution, whether the models of the folds
make them, of rows that they have not seen, or their mean does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.walk import Walked, last_kept, people_needed, walk
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.shares import Shares
from skfair.estimators.certified.fold_models import sampled
from skfair.estimators.certified.task import Task
from skfair.estimators.limits import is_nearly_constant
from skfair.utils.threads import one_blas_thread
from skfair.utils.warn import warn_user


class Paths(NamedTuple):
    """The paths of the folds, and what they decide."""

    prices: FloatArray  # (n_folds, n_steps, ...)
    # (n_samples, n_steps): the decisions on each row by the path of its fold, which has not seen it
    labels: IntArray | BoolArray
    fairest: int  # the step that predicts if no step is certified
    # Chances and shares of rows, and a path: its decisions on them, (n_rows, n_steps)
    decide: Callable[[FloatArray, Shares, FloatArray], IntArray | BoolArray]


class ByMean(NamedTuple):
    """What the mean of models and paths decides on the training rows."""

    changes: FloatArray  # (n_rates, n_steps): by how much rates are larger than those of the folds
    shares: FloatArray  # (n_classes, n_steps): of the rows that are decided for each class


def judge_paths(task: Task, paths: Paths, confidence: float) -> tuple[dict[str, Any], IntArray]:
    """Choose the certified step; return fitted attributes and the decisions of the rows.

    These are by models and paths that have not seen them. All steps up to the last one that passes
    are certified together, so any of them may be taken.
    """
    folds, judge, asked = task
    rates, codes, weights = asked.rates, folds.rows.codes, folds.rows.weights
    selected = asked.selected(paths.labels, codes)
    walked = walk(rates, selected, confidence)
    n_passed = walked.step + 1
    by_mean = _by_mean(task, paths, n_passed)
    chosen = last_kept(rates, selected[:, :n_passed], by_mean.changes, confidence)
    worth = np.array([judge.worth_of(labels.astype(np.int64)) for labels in paths.labels.T])
    constant = float((weights @ judge.values).max())
    actual = np.bincount(codes, weights, judge.n_classes)
    by_folds = np.bincount(paths.labels[:, chosen].astype(np.int64), weights, judge.n_classes)
    is_certified = chosen >= 0 and not (
        worth[chosen] <= constant < worth.max()
        or is_nearly_constant(by_folds, actual)
        or is_nearly_constant(by_mean.shares[:, chosen], actual)
    )
    step = chosen if is_certified else paths.fairest
    if not is_certified:
        _warn(task, selected[:, step], step, confidence, walked, is_within=chosen >= 0)
    labels = paths.labels[:, step].astype(np.int64)
    disparities = judge.disparities(labels)
    by_rule = {bound.name: values for bound, values in zip(judge.bounds, disparities, strict=True)}
    free = judge.worth_of(decided(folds.crossed.chances @ judge.worth))
    is_pair = judge.n_classes == 2
    return {
        "status_": "certified" if is_certified else "no_solution",
        **walked.reported(step),
        "path_": {
            "accuracy": worth,
            "selection_rate": weights @ paths.labels if is_pair else np.full(worth.size, np.nan),
            "disparity": walked.disparities,
            "bound": walked.bounds,
            "p_value": walked.p_values,
            "is_certified": np.arange(worth.size) <= chosen,
        },
        **folds.attributes(),
        "prices_": paths.prices[:, step].mean(axis=0),
        "train_disparities_": by_rule,
        "train_disparity_": max(by_rule.values(), default=0.0),
        "price_of_fairness_": free - worth[step],
    }, labels


@one_blas_thread
def _by_mean(task: Task, paths: Paths, n_steps: int) -> ByMean:
    """Compare the decisions of the mean of models and paths with those of each fold."""
    folds, _, (rates, of_times) = task
    n, rows, codes = folds.rows.codes.size, sampled(folds.rows.codes.size), folds.rows.codes
    weights = folds.rows.weights
    if rows is not None:
        codes, weights = codes[rows], weights[rows] / weights[rows].sum()
        rates = rates.part(np.concatenate([rows + k * n for k in range(len(of_times))]))
    prices = paths.prices[:, :n_steps]
    labels = [
        paths.decide(chances, shares, path)
        for (chances, shares), path in zip(
            folds.by_all(rows), [*prices, prices.mean(axis=0)], strict=True
        )
    ]
    *by_folds, by_mean = (task.asked.selected(one, codes) for one in labels)
    return ByMean(
        rates.changes(by_mean - np.mean(by_folds, axis=0)),
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
