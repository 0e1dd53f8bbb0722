"""Certified decisions between several classes: prices at rising limits, and one walk.

As with two classes (:mod:`skfair.estimators.certified.two_classes`), each fold has a path of prices
of its own, found on the other folds, and each step of all paths together is judged on the decisions
of every row, by the model and the path of its fold. A step keeps a share of the limits on the rows
that it was found on; the shares rise. A constraint on several classes limits the rates of each
class against the rest, and all of them must pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.judge import Judge
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, margins
from skfair.estimators.certified.certificate import SHARES
from skfair.estimators.certified.fold_models import MOST_ROWS, FoldModels
from skfair.estimators.certified.task import Task, judge_paths
from skfair.utils.threads import one_blas_thread


def certify_classes(
    task: Task, confidence: float, rng: np.random.RandomState
) -> tuple[dict[str, Any], IntArray]:
    """Certify decisions, and return fitted attributes and the decisions of the rows."""
    folds, judge = task.folds, task.judge
    paths, predicted = _paths_and_decisions(folds, judge, rng)

    def decide(chances: FloatArray, shares: Shares, path: FloatArray) -> IntArray:
        return _decisions(chances @ judge.worth, shares, path)

    attributes, decided = judge_paths(task, paths, predicted, 0, decide, confidence)
    n_classes = folds.rows.classes.size
    prices = attributes["prices_"].reshape(-1, folds.n_strata, n_classes, n_classes)
    return attributes | {"prices_": prices}, decided


@one_blas_thread
def _paths_and_decisions(
    folds: FoldModels, judge: Judge, rng: np.random.RandomState
) -> tuple[FloatArray, IntArray]:
    """Find the paths of the folds; return them, and the decisions of each row by its fold.

    They have the shapes (n_folds, n_steps, n_features, n_classes) and (n_samples, n_steps).
    """
    rows = folds.rows
    values, shares = folds.crossed.chances @ judge.worth, folds.shares()
    features = Features(
        rows.groups.n_groups,
        folds.n_strata,
        rows.classes.size,
        np.arange(rows.groups.offsets[1]),
    )
    # The last step is without prices: it passes if decisions satisfy the limits as they are.
    predicted = np.empty((rows.codes.size, len(SHARES) + 1), np.int64)
    paths = np.zeros((len(folds.splits), len(SHARES) + 1, features.size, rows.classes.size))
    seed = rng.randint(np.iinfo(np.int32).max)
    for path, (_, test) in zip(paths, folds.splits, strict=True):
        others = np.ones(rows.codes.size, bool)
        others[test] = False
        fitted_on = np.flatnonzero(others)
        if fitted_on.size > MOST_ROWS:
            fitted_on = np.sort(
                check_random_state(seed).choice(fitted_on, MOST_ROWS, replace=False)
            )
        search = PriceSearch(
            judge.part(fitted_on),
            features,
            folds.kinds[fitted_on],
            values[fitted_on],
            shares[fitted_on],
            check_random_state(seed),
        )
        path[: len(SHARES)] = _prices(search)
        predicted[test] = _decisions(values[test], shares[test], path)
    return paths, predicted


def _prices(search: PriceSearch) -> FloatArray:
    """Return prices that keep each share of the limits, (n_steps, n_features, n_classes)."""
    paths, judge = [], search.judge
    for share in SHARES[::-1]:  # from small prices to large ones: nearest to the free decisions
        search = search.under(judge.tightened(share))
        paths.append(search.run().prices)
    return np.array(paths[::-1])


def _decisions(values: FloatArray, shares: Shares, path: FloatArray) -> IntArray:
    """Return the decisions of each step, (n_samples, n_steps)."""
    labels = np.empty((len(values), len(path)), np.int64)
    for step, prices in enumerate(path):
        labels[:, step] = decided(margins(values, shares, prices))
    return labels
