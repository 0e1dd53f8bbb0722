"""Decisions between two classes, certified for unseen data: scores of folds, paths, one walk.

Each fold has a path of its own, found on the other folds. Step j of all paths together is judged on
the decisions of every row, by the model and the path of its fold. So no row is judged by a model
that was fitted on it, or by a path that was found on it; all paths know at which end to begin. The
other folds are scored by models that have seen this one. A model for each pair of folds would avoid
that for three times as many fits; failures stay within 5% without.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.gap_solver import PathRows
from skfair.enforcement.certified.price_path import (
    full_step,
    near_rows,
    price_paths,
    starts_with_few,
)
from skfair.enforcement.decisions.shares import Shares
from skfair.estimators.certified.fold_models import MOST_ROWS
from skfair.estimators.certified.task import Task, judge_paths
from skfair.utils.threads import one_blas_thread


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
    """Certify decisions, and return fitted attributes and the decisions of the rows."""
    folds = task.folds
    paths, selected = paths_and_decisions(task, confidence, rng)

    def decide(chances: FloatArray, shares: Shares, path: FloatArray) -> BoolArray:
        return np.asarray(_gains(task, chances)[:, None] - np.asarray(shares @ path.T) > 0)

    fairest = full_step(paths.shape[1])
    attributes, decided = judge_paths(task, paths, selected, fairest, decide, confidence)
    second = attributes["prices_"]
    prices = np.stack([np.zeros(second.size), second], axis=1)
    attributes["prices_"] = prices.reshape(folds.rows.groups.n_groups, folds.n_strata, 2, 2)
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
