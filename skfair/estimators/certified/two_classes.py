"""Decisions between two classes, certified for unseen data: scores of folds, paths, one walk.

Each fold has a path of its own, found on the other folds. Step j of all paths together is judged on
the decisions of every row, by the model and the path of its fold. So no row is judged by a model
that was fitted on it, or by a path that was found on it; all paths know at which end to begin. The
other folds are scored by models that have seen this one. A model for each pair of folds would avoid
that for three times as many fits; failures stay within 5% without.

The test speaks of each model with its path; what predicts is their mean. These may differ: of
boosted trees each is certain of other people, and where few are selected the mean selects fewer
(Adult, n=5000: .4% of the people in place of .9%, and a gap of .06 in place of .01); elsewhere
its gaps are larger by half a standard error. So the last certified step is taken at which the rates
of the folds satisfy the limits with what the mean changes. That is measured on the training rows,
of which each was seen by all models but one; but what the models disagree on there is nearly what
they disagree on elsewhere (measured and true changes have a correlation of .9: 40 samples,
n=20,000). Equalized odds .05 was exceeded in 20 of 196 fits without this, and in 3 of 114 with it
(trees, half positive, n=20,000).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.gap_solver import PathRows
from skfair.enforcement.certified.price_path import (
    full_step,
    near_rows,
    price_paths,
    starts_with_few,
)
from skfair.enforcement.certified.walk import (
    Walked,
    last_kept,
    people_needed,
    walk,
)
from skfair.estimators.certified.fold_models import MOST_ROWS, sampled
from skfair.estimators.certified.task import Task
from skfair.utils.threads import one_blas_thread
from skfair.utils.warn import warn_user


def check_no_floors(min_rate: Any, selection_rate: Any) -> None:
    """Raise for limits that hold on the training rows only."""
    if min_rate is not None or selection_rate is not None:
        raise ValueError(
            "confidence= does not go together with min_rate or selection_rate: these hold on the "
            "training rows only. Set them to None."
        )


def certify_two_classes(
    task: Task, confidence: float, rng: np.random.RandomState
) -> tuple[dict[str, Any], IntArray]:
    """Certify decisions, and return fitted attributes and the decisions of the rows.

    These are by models and paths that have not seen them.
    """
    folds, judge, _ = task
    paths, selected = paths_and_decisions(task, confidence, rng)
    walked = walk(task.rates, selected, confidence)
    passed = slice(walked.step + 1)
    changes = _changes_by_mean(task, paths[:, passed])
    last = last_kept(task.rates, selected[:, passed], changes, confidence)
    attributes, step = _reported(task, selected, confidence, walked, last)
    decided = selected[:, step].astype(np.int64)
    shape = (folds.rows.groups.n_groups, folds.n_strata, 2, 2)
    prices = np.stack([np.zeros(paths.shape[2]), paths[:, step].mean(axis=0)], axis=1)
    disparities = judge.disparities(decided)
    by_rule = {bound.name: values for bound, values in zip(judge.bounds, disparities, strict=True)}
    free = folds.crossed.chances @ judge.worth
    attributes |= {
        **folds.attributes(),
        "prices_": prices.reshape(shape),
        "train_disparities_": by_rule,
        "train_disparity_": max(by_rule.values(), default=0.0),
        "price_of_fairness_": judge.worth_of((free[:, 1] > free[:, 0]).astype(np.int64))
        - judge.worth_of(decided),
    }
    return attributes, decided


@one_blas_thread
def paths_and_decisions(
    task: Task, confidence: float, rng: np.random.RandomState
) -> tuple[FloatArray, BoolArray]:
    """Find the paths of the folds; return them, and the decisions of each row by its fold.

    They have the shapes (n_folds, n_steps, n_features) and (n_samples, n_steps).
    """
    models, rates = task.folds, task.rates
    codes, of_rows, chances = models.rows.codes, models.rows.groups, models.crossed.chances
    n, gains, shares, alike = codes.size, _gains(task, chances), models.shares(), None
    if models.groups is None:
        cells = of_rows.cells(models.strata, models.n_strata).codes
        alike = near_rows(cells, chances[:, 1])
    folds = np.zeros(n, np.int64)
    for k, (_, test) in enumerate(models.splits):
        folds[test] = k
    some: IntArray | slice = slice(None)
    if n > MOST_ROWS:
        some = np.sort(rng.choice(n, MOST_ROWS, replace=False))
        rates = rates.part(some)
    n_kinds = models.n_strata * models.rows.classes.size
    is_rare = float(task.rates.weights @ (codes == 1)) <= 0.5
    rows = PathRows(
        rates,
        gains[some],
        shares[some],
        models.kinds[some],
        n_kinds,
        np.arange(of_rows.offsets[1] * n_kinds),
        starts_with_few(task.rates, gains, is_rare, confidence),
        folds[some],
        None if alike is None else alike[some],
    )
    paths = price_paths(rows)
    selected = np.zeros((n, paths.shape[1]), dtype=bool)
    for (_, test), path in zip(models.splits, paths, strict=True):
        selected[test] = gains[test, None] - np.asarray(shares[test] @ path.T) > 0
    return paths, selected


def _gains(task: Task, chances: FloatArray) -> FloatArray:
    """Return the expected worth of the second decision minus that of the first one."""
    values = chances @ task.worth
    return np.asarray(values[:, 1] - values[:, 0])


@one_blas_thread
def _changes_by_mean(task: Task, paths: FloatArray) -> FloatArray:
    """Return by how much rates are larger if the mean decides, not the folds, (n_rates, n_steps).

    The mean of the models with the mean of the paths is compared with each fold's model and path.
    """
    rows, rates = sampled(task.folds.rows.codes.size), task.rates
    if rows is not None:
        rates = rates.part(rows)
    selected = [
        _gains(task, chances)[:, None] - np.asarray(shares @ path.T) > 0
        for (chances, shares), path in zip(
            task.folds.by_all(rows), [*paths, paths.mean(axis=0)], strict=True
        )
    ]
    return rates.changes(selected[-1] - np.mean(selected[:-1], axis=0))


def _reported(
    task: Task,
    selected: BoolArray,
    confidence: float,
    walked: Walked,
    chosen: int,  # the last step that passes where the mean of the models is within limits; -1
) -> tuple[dict[str, Any], int]:
    """Return what is reported and the step that is taken.

    All steps up to the last one that passes are certified together, so any of them may be taken.
    """
    weights, codes = task.rates.weights, task.folds.rows.codes
    refused, gained = task.worth[codes, 0], task.worth[codes, 1] - task.worth[codes, 0]
    rates, gains = np.stack([weights, weights * gained]) @ selected
    worth = float(weights @ refused) + gains
    constant = max(float(weights @ task.worth[codes, label]) for label in (0, 1))
    is_certified = chosen >= 0 and not _is_constant(selected[:, chosen], worth, chosen, constant)
    step = chosen if is_certified else full_step(selected.shape[1])
    decided = selected[:, step]
    if not is_certified:
        _warn(task, decided, confidence, walked, chosen)
    attributes = {
        "status_": "certified" if is_certified else "no_solution",
        **walked.reported(step),
        "path_": {
            "accuracy": worth,
            "selection_rate": rates,
            "disparity": walked.disparities,
            "bound": walked.bounds,
            "p_value": walked.p_values,
            "is_certified": np.arange(selected.shape[1]) <= chosen,
        },
    }
    return attributes, step


def _is_constant(decided: BoolArray, worth: FloatArray, step: int, constant: float) -> bool:
    """Whether decisions are the same for all, or worth no more than that where more is possible."""
    is_one_sided = bool(decided.all() or not decided.any())
    return is_one_sided or bool(worth[step] <= constant < worth.max())


def _warn(task: Task, decided: BoolArray, confidence: float, walked: Walked, chosen: int) -> None:
    """Say why nothing was certified, and how many more people it would take."""
    n = decided.size
    if walked.step > chosen:
        warn_user(
            f"With {n} people decisions were found that keep max_disparity at a confidence of "
            f"{confidence:g}, but the models of the folds disagree on whom these select, and their "
            "mean, which predicts, would not keep it. More people, or a smoother model, may help. "
            "predict() uses the fairest decisions, and status_ is 'no_solution'.",
            ConvergenceWarning,
        )
        return
    if chosen >= 0:
        warn_user(
            f"With {n} people all decisions of which it can be shown, at a confidence of "
            f"{confidence:g}, that they keep max_disparity are worth no more than the same "
            "decision for everybody. More people, a larger max_disparity, or columns that say "
            "more, may help. predict() uses the fairest decisions, and status_ is 'no_solution'.",
            ConvergenceWarning,
        )
        return
    asked = {float(task.rates.after_shift(block.limit)) for block in task.rates.blocks}
    limits = " and ".join(f"{limit:g}" for limit in sorted(asked))
    bound = float(walked.bounds[full_step(walked.bounds.size)])
    needed = people_needed(task.rates, decided, confidence)
    if needed > 1.1 * n:
        advice = f"About {needed - n} more people (with groups in the same shares) are needed."
    else:
        advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
    warn_user(
        f"With {n} people no decisions were found of which it can be shown, at a confidence of "
        f"{confidence:g}, that they keep max_disparity={limits} for unseen data: what can be "
        f"shown of the fairest ones is {bound:.3g}. {advice} predict() uses these, and "
        "status_ is 'no_solution'.",
        ConvergenceWarning,
    )
