"""Decisions that are certified for unseen data: a path of multipliers for each fold, one walk.

The path of a fold is found on the other folds. Step j of all paths together is judged on the
decisions of every row, by the model and the path of its fold. So no row is judged by a model that
was fitted on it, or by a path that was found on it. The other folds are scored by models that have
seen this one. A model for each pair of folds would avoid that for three times as many fits;
failures stay within 5% without.

Of two classes the paths are those of :mod:`skfair.enforcement.certified.price_path`. Of several,
each class against the rest, a step satisfies a share of the limits on the rows that it was found
on; the shares rise. (With two classes that loses 1.5 points: 120 fits, n=3,000.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.gap_solver import PathRows
from skfair.enforcement.certified.price_path import (
    full_step,
    near_rows,
    price_paths,
    starts_with_few,
)
from skfair.enforcement.decisions.judge import Judge
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, margins
from skfair.estimators.certified.certificate import SHARES
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


def certify(
    task: Task, confidence: float, rng: np.random.RandomState
) -> tuple[dict[str, Any], IntArray]:
    """Certify decisions, and return fitted attributes and the decisions of the rows."""
    folds, n_classes = task.folds, task.folds.rows.classes.size
    shares, chances = folds.shares(), folds.crossed.chances
    paths = (_of_two if n_classes == 2 else _of_several)(task, shares, confidence, rng)

    def decide(chances: FloatArray, shares: Shares, path: FloatArray) -> IntArray | BoolArray:
        values = chances @ task.worth
        if n_classes == 2:  # one product for all steps
            gains = values[:, 1] - values[:, 0]
            return np.asarray(gains[:, None] > np.asarray(shares @ path[..., 1].T))
        labels = np.empty((len(values), len(path)), np.int64)
        for step, prices in enumerate(path):
            labels[:, step] = decided(margins(values, shares, prices))
        return labels

    dtype: type = bool if n_classes == 2 else np.int64
    decisions = np.empty((len(chances), paths.shape[1]), dtype)
    for path, (_, test) in zip(paths, folds.splits, strict=True):
        decisions[test] = decide(chances[test], shares[test], path)
    fairest = full_step(paths.shape[1]) if n_classes == 2 else 0
    attributes, by_rows = judge_paths(task, paths, decisions, fairest, decide, confidence)
    prices = attributes["prices_"].reshape(-1, folds.n_strata, n_classes, n_classes)
    return attributes | {"prices_": prices}, by_rows


@one_blas_thread
def _of_two(
    task: Task, shares: Shares, confidence: float, rng: np.random.RandomState
) -> FloatArray:
    """Return the prices of two classes, (n_folds, n_steps, n_features, 2); the first has none."""
    models, rates, worth = task.folds, task.rates, task.folds.crossed.chances @ task.worth
    codes, of_rows, alike = models.rows.codes, models.rows.groups, None
    n, gains = codes.size, worth[:, 1] - worth[:, 0]
    if models.groups is None:
        cells = of_rows.cells(models.strata, models.n_strata).codes
        alike = near_rows(cells, models.crossed.chances[:, 1])
    folds = np.zeros(n, np.int64)
    for k, (_, test) in enumerate(models.splits):
        folds[test] = k
    some: IntArray | slice = slice(None)
    if n > MOST_ROWS:
        some = np.sort(rng.choice(n, MOST_ROWS, replace=False))
        rates = rates.part(some)
    n_kinds = 2 * models.n_strata
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
    second = price_paths(rows)
    return np.stack([np.zeros_like(second), second], axis=-1)


@one_blas_thread
def _of_several(
    task: Task, shares: Shares, confidence: float, rng: np.random.RandomState
) -> FloatArray:
    """Return the prices of the folds, (n_folds, n_steps, n_features, n_classes).

    The last step is without prices: it passes if decisions satisfy the limits as they are.
    """
    folds, judge, rows = task.folds, task.judge, task.folds.rows
    n_classes, offsets = rows.classes.size, rows.groups.offsets
    features = Features(rows.groups.n_groups, folds.n_strata, n_classes, np.arange(offsets[1]))
    values = folds.crossed.chances @ judge.worth
    paths = np.zeros((len(folds.splits), len(SHARES) + 1, features.size, n_classes))
    seed = rng.randint(np.iinfo(np.int32).max)
    for path, (_, test) in zip(paths, folds.splits, strict=True):
        others = np.ones(rows.codes.size, bool)
        others[test] = False
        fitted_on, of_fold = np.flatnonzero(others), check_random_state(seed)
        if fitted_on.size > MOST_ROWS:
            fitted_on = np.sort(of_fold.choice(fitted_on, MOST_ROWS, replace=False))
        bound = [
            rule._replace(bound=rule.bound.refitted(fitted_on, rows.counts)) for rule in judge.rules
        ]
        whole = Judge(bound, rows.codes[fitted_on], rows.counts[fitted_on], judge.worth)
        search = PriceSearch(
            whole,
            features,
            folds.kinds[fitted_on],
            values[fitted_on],
            shares[fitted_on],
            check_random_state(seed),
        )
        # From small prices to large ones: nearest to the free decisions.
        for step, share in reversed(list(enumerate(SHARES))):
            search = search.under(whole.tightened(share))
            path[step] = search.run().prices
    return paths
