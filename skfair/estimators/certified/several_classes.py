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
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.certified.walk import last_kept, people_needed, walk
from skfair.enforcement.decisions.judge import Judge
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.prices import PriceSearch
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, margins
from skfair.estimators.certified.certificate import SHARES
from skfair.estimators.certified.fold_models import MOST_ROWS, FoldModels, sampled
from skfair.estimators.certified.task import ClassRates, Task
from skfair.utils.threads import one_blas_thread
from skfair.utils.warn import warn_user


def certify_classes(
    task: Task, confidence: float, rng: np.random.RandomState
) -> tuple[dict[str, Any], IntArray]:
    """Certify decisions, and return fitted attributes and the decisions of the rows."""
    folds, judge, asked = task
    rates, codes, weights = asked.rates, folds.rows.codes, folds.rows.weights
    paths, predicted = _paths_and_decisions(folds, judge, rng)
    selected = asked.selected(predicted, codes)
    walked = walk(rates, selected, confidence)
    passed = slice(walked.step + 1)
    changes = _changes_by_mean(folds, judge, asked, paths[:, passed])
    chosen = last_kept(rates, selected[:, passed], changes, confidence)
    worth = np.array([judge.worth_of(labels) for labels in predicted.T])
    constant = float((weights @ judge.values).max())
    is_alike = bool(np.ptp(predicted[:, chosen]) == 0) or worth[chosen] <= constant < worth.max()
    is_certified = chosen >= 0 and not is_alike
    step = chosen if is_certified else 0
    if not is_certified:
        limit = float(rates.after_shift(min(block.limit for block in rates.blocks)))
        bound = float(walked.bounds[0])
        needed = people_needed(rates, selected[:, 0], confidence) // len(asked.labels)
        _warn(codes.size, needed, bound, limit, confidence, was_kept=chosen >= 0)
    disparities = judge.disparities(predicted[:, step])
    by_rule = {bound.name: values for bound, values in zip(judge.bounds, disparities, strict=True)}
    free = judge.worth_of(decided(folds.crossed.chances @ judge.worth))
    n_classes = folds.rows.classes.size
    return {
        "status_": "certified" if is_certified else "no_solution",
        **walked.reported(step),
        "path_": {
            "accuracy": worth,
            "selection_rate": np.full(worth.size, np.nan),
            "disparity": walked.disparities,
            "bound": walked.bounds,
            "p_value": walked.p_values,
            "is_certified": np.arange(worth.size) <= chosen,
        },
        **folds.attributes(),
        "prices_": paths[:, step].mean(axis=0).reshape(-1, folds.n_strata, n_classes, n_classes),
        "train_disparities_": by_rule,
        "train_disparity_": max(by_rule.values(), default=0.0),
        "price_of_fairness_": free - worth[step],
    }, predicted[:, step]


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


@one_blas_thread
def _changes_by_mean(
    folds: FoldModels, judge: Judge, asked: ClassRates, paths: FloatArray
) -> FloatArray:
    """Return by how much rates are larger if the mean decides, (n_rates, n_steps)."""
    n, rows = folds.rows.codes.size, sampled(folds.rows.codes.size)
    codes, rates = folds.rows.codes, asked.rates
    if rows is not None:
        codes = codes[rows]
        rates = rates.part(np.concatenate([rows + k * n for k in range(len(asked.labels))]))
    selected = [
        asked.selected(_decisions(chances @ judge.worth, shares, path), codes)
        for (chances, shares), path in zip(
            folds.by_all(rows), [*paths, paths.mean(axis=0)], strict=True
        )
    ]
    return rates.changes(selected[-1] - np.mean(selected[:-1], axis=0))


def _warn(
    n: int, needed: int, bound: float, limit: float, confidence: float, *, was_kept: bool
) -> None:
    """Say why nothing was certified, and how many more people it would take."""
    reason = f"what can be shown of the fairest ones is {bound:.3g}"
    if was_kept:
        reason = "those that do are worth no more than the same decision for everybody"
    advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
    if needed > 1.1 * n and not was_kept:
        advice = f"About {needed - n} more people (with groups in the same shares) are needed."
    warn_user(
        f"With {n} people no decisions were found of which it can be shown, at a confidence of "
        f"{confidence:g}, that they satisfy max_disparity={limit:g} in the population: {reason}. "
        f"{advice} predict() uses the fairest ones, and status_ is 'no_solution'.",
        ConvergenceWarning,
    )
