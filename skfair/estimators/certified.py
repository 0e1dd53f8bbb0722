"""Decisions that are certified for new people: nested cross-fitting, paths of prices, one walk.

Each fold has a path of its own, found on the other folds with models that have not seen the rows
they score. Step j of all paths together is judged on the decisions of every row by the path of its
fold. So no row is judged by anything that has seen it; all paths know which class is the rarer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certify import RowRates, people_needed, row_rates, upper_bounds, walk
from skfair.enforcement.decisions.judge import Judge
from skfair.enforcement.decisions.shares import estimated_shares, known_shares
from skfair.enforcement.price_path import PathRows, full_step, price_path
from skfair.estimators.chances import HasChances, Split, chances_of, make_splits
from skfair.estimators.decisions import LabelledRows
from skfair.estimators.group_chances import MOST_PAIRS, GroupModels
from skfair.estimators.inner_scores import fitted
from skfair.utils.warn import warn_user

# Paths are found on at most so many rows.
MOST_ROWS = 20_000


class Task(NamedTuple):
    """What is certified.

    Attributes
    ----------
    X : array-like
        The rows.
    rows : LabelledRows
        Their groups and classes.
    rates : RowRates
        Rates of the rules.
    worth : ndarray of shape (2, 2)
        Worth of each decision (column), given the true class (row).
    n_strata : int
        Number of strata, 1 if there are none.
    splits : list of (train, test)
        The folds; each row is in one test part.
    """

    X: Any
    rows: LabelledRows
    rates: RowRates
    worth: FloatArray
    n_strata: int
    splits: Sequence[Split]


class NestedChances(NamedTuple):
    """Probabilities of labels by nested models.

    Attributes
    ----------
    models : list of classifiers
        One for each fold, fitted without it.
    outer : ndarray of shape (n_samples, n_labels)
        Probabilities of each row by the model of its fold.
    inner : list of ndarray
        For each fold those of the other folds' rows, by models that have seen neither these rows
        nor the fold; rows of the fold are 0.
    """

    models: list[Any]
    outer: FloatArray
    inner: list[FloatArray]


class Models(NamedTuple):
    """What is fitted: the model, one of groups (None if decisions may use these), and how."""

    estimator: Any
    group_estimator: Any
    row_params: dict[str, Any]
    group_row_params: dict[str, Any]
    cv: Any
    n_jobs: int | None


def check_certifiable(classes: Any, min_rate: Any, selection_rate: Any, method: str) -> None:
    """Raise for what cannot be certified."""
    if len(classes) > 2:
        raise ValueError(
            f"confidence= needs two classes, got {len(classes)}. Fit each class against the rest."
        )
    if min_rate is not None or selection_rate is not None:
        raise ValueError(
            "confidence= does not go together with min_rate or selection_rate: these hold on the "
            "training rows only. Set them to None."
        )
    if method != "auto":
        raise ValueError(f"confidence= walks a path of its own: use method='auto', not {method!r}.")


def certified_fit(
    X: Any,
    y: Any,
    rows: LabelledRows,
    judge: Judge,
    models: Models,
    confidence: float,
    rng: np.random.RandomState,
) -> tuple[dict[str, Any], IntArray]:
    """Fit nested models, certify decisions, and return fitted attributes and decisions.

    Parameters
    ----------
    X : array-like
        The rows.
    y : ndarray of shape (n_samples,)
        Their classes.
    rows : LabelledRows
        Groups, classes, weights and strata.
    judge : Judge
        The rules.
    models : Models
        What is fitted.
    confidence : float
        How sure the limits are to hold.
    rng : RandomState
        Draws the rows that paths are found on, if there are many.

    Returns
    -------
    attributes : dict
        Fitted attributes.
    decisions : ndarray of shape (n_samples,)
        Decisions of the rows, by models and paths that have not seen them.
    """
    kinds = rows.groups.cells(rows.codes, rows.classes.size).codes
    is_prefit = isinstance(models.cv, str) or isinstance(models.estimator, FrozenEstimator)
    splits = make_splits(5 if is_prefit else models.cv, X, y, kinds)
    if sum(test.size for _, test in splits) > rows.codes.size:
        raise ValueError(
            "With confidence= each row must be in one test part of cv, not in several."
        )
    if len(splits) < 3:
        raise ValueError(
            f"confidence= needs 3 folds or more, got cv={models.cv!r}: models are fitted without "
            "each pair of folds, too."
        )
    n_strata = 1 if rows.strata is None else len(rows.strata.names)
    # The paths vary with the rows, too: each has seen all folds but one, so a row of n counts as
    # (K - 1) / K. Without that 8 of 100 fits failed on Adult (n = 5000, groups not used).
    rates = replace(
        row_rates(judge.bounds, rows.weights), precision=(len(splits) - 1) / len(splits)
    )
    task = Task(X, rows, rates, judge.worth, n_strata, splits)
    if is_prefit:
        check_is_fitted(models.estimator)
        chances = prefit_chances(models.estimator, X, rows.classes, len(splits))
    else:
        args = (models.row_params, splits, models.n_jobs)
        chances = nested_chances(models.estimator, X, y, rows.classes, *args)
    groups = None
    if models.group_estimator is not None:
        groups = nested_group_models(models, task)
    path, selected = paths_and_decisions(task, chances, groups, rng)
    attributes, step = _walked(task, selected, confidence)
    decided = selected[:, step].astype(np.int64)
    shape = (rows.groups.n_groups, n_strata, 2, 2)
    prices = np.stack([np.zeros(path.shape[1]), path[step]], axis=1)
    disparities = judge.disparities(decided)
    by_rule = {bound.name: one for bound, one in zip(judge.bounds, disparities, strict=True)}
    free = chances.outer @ judge.worth
    attributes |= {
        "prices_": prices.reshape(shape),
        "estimators_": chances.models,
        "group_estimators_": [] if groups is None else groups.outer.models,
        "_group_models": None if groups is None else groups.outer,
        "method_": "path",
        "train_disparities_": by_rule,
        "train_disparity_": max(by_rule.values(), default=0.0),
        "price_of_fairness_": judge.worth_of((free[:, 1] > free[:, 0]).astype(np.int64))
        - judge.worth_of(decided),
    }
    return attributes, decided


def nested_chances(
    estimator: Any,
    X: Any,
    target: Any,
    labels: Any,
    row_params: dict[str, Any],
    splits: Sequence[Split],
    n_jobs: int | None,
) -> NestedChances:
    """Fit a model without each fold, and one without each pair of folds."""
    n, n_folds = len(target), len(splits)
    pairs = [(j, k) for k in range(n_folds) for j in range(k)]
    trains = [train for train, _ in splits]
    trains += [np.intersect1d(splits[j][0], splits[k][0]) for j, k in pairs]
    models = Parallel(n_jobs=n_jobs)(
        delayed(fitted)(estimator, X, target, row_params, train) for train in trains
    )
    parts = [_safe_indexing(X, test) for _, test in splits]
    outer = np.zeros((n, len(labels)))
    inner = [np.zeros((n, len(labels))) for _ in splits]
    for k, (_, test) in enumerate(splits):
        outer[test] = chances_of(models[k], parts[k], labels)
    for (j, k), model in zip(pairs, models[n_folds:], strict=True):
        inner[k][splits[j][1]] = chances_of(model, parts[j], labels)
        inner[j][splits[k][1]] = chances_of(model, parts[k], labels)
    return NestedChances(list(models[:n_folds]), outer, inner)


def prefit_chances(model: HasChances, X: Any, labels: Any, n_folds: int) -> NestedChances:
    """Return the probabilities of a model that has seen none of the rows."""
    found = chances_of(model, X, labels)
    return NestedChances([model], found, [found] * n_folds)


class NestedGroups(NamedTuple):
    """Nested models of the groups of each attribute: of all folds, and without each of them."""

    outer: GroupModels
    inner: list[GroupModels]


def nested_group_models(models: Models, task: Task) -> NestedGroups:
    """Fit models of group and class together, as for decisions that must not use groups."""
    groups, classes = task.rows.groups, task.rows.codes
    n_classes = task.rows.classes.size
    sizes = np.diff(groups.offsets)
    found, labels = [], []
    for codes, start, size in zip(groups.codes, groups.offsets, sizes, strict=False):
        own = codes - start
        target = own if size * n_classes > MOST_PAIRS else own * n_classes + classes
        labels.append(np.unique(target))
        found.append(
            nested_chances(
                models.group_estimator,
                task.X,
                target,
                labels[-1],
                models.group_row_params,
                task.splits,
                models.n_jobs,
            )
        )
    shape = (tuple(sizes.tolist()), n_classes)
    outer = GroupModels([one.models for one in found], labels, *shape, [one.outer for one in found])
    inner = [
        GroupModels([], labels, *shape, [one.inner[k] for one in found])
        for k in range(len(task.splits))
    ]
    return NestedGroups(outer, inner)


def paths_and_decisions(
    task: Task, chances: NestedChances, groups: NestedGroups | None, rng: np.random.RandomState
) -> tuple[FloatArray, BoolArray]:
    """Find the paths of the folds; return their mean, and the decisions of each row by its fold.

    They have the shapes (n_steps, n_features) and (n_samples, n_steps).
    """
    n = task.rows.codes.size
    paths, selected = [], None
    for k, (_, test) in enumerate(task.splits):
        rest = np.setdiff1d(np.arange(n), test)
        if rest.size > MOST_ROWS:
            rest = np.sort(rng.choice(rest, MOST_ROWS, replace=False))
        inner = None if groups is None else groups.inner[k]
        path = price_path(_path_rows(task, rest, chances.inner[k], inner))
        outer = None if groups is None else groups.outer
        shares, gains = _shares(task, test, chances.outer, outer)
        if selected is None:
            selected = np.zeros((n, path.shape[0]), dtype=bool)
        selected[test] = gains[:, None] - np.asarray(shares @ path.T) > 0
        paths.append(path)
    assert selected is not None
    return np.mean(paths, axis=0), selected


def _path_rows(
    task: Task, rows: IntArray, chances: FloatArray, groups: GroupModels | None
) -> PathRows:
    shares, gains = _shares(task, rows, chances, groups)
    n_classes = task.rows.classes.size
    kinds = task.rows.codes[rows]
    if task.rows.strata is not None:
        kinds = task.rows.strata.codes[rows] * n_classes + kinds
    n_kinds = task.n_strata * n_classes
    everyone = np.arange(task.rows.groups.offsets[1] * n_kinds)
    is_rare = float(task.rates.weights @ (task.rows.codes == 1)) <= 0.5
    return PathRows(task.rates.part(rows), gains, shares, kinds, n_kinds, everyone, is_rare)


def _shares(
    task: Task, rows: IntArray, chances: FloatArray, groups: GroupModels | None
) -> tuple[Any, FloatArray]:
    """Return the shares of some rows, and what the second decision gains."""
    strata = None if task.rows.strata is None else task.rows.strata.codes[rows]
    values = chances[rows] @ task.worth
    gains = values[:, 1] - values[:, 0]
    if groups is None:
        codes, n_groups = task.rows.groups.codes[:, rows], task.rows.groups.n_groups
        return known_shares(codes, n_groups, strata, task.n_strata, chances[rows]), gains
    part = GroupModels(
        [], groups.labels, groups.sizes, groups.n_classes, [one[rows] for one in groups.of_rows]
    )
    return estimated_shares(part.joint_of_rows(chances[rows]), strata, task.n_strata), gains


def _walked(task: Task, selected: BoolArray, confidence: float) -> tuple[dict[str, Any], int]:
    """Walk the path, and return what is reported and the step that is taken."""
    walked = walk(task.rates, selected, confidence)
    weights, codes = task.rates.weights, task.rows.codes
    worth = [float(weights @ task.worth[codes, decided.astype(np.int64)]) for decided in selected.T]
    chosen = walked.step
    constant = max(float(weights @ task.worth[codes, label]) for label in (0, 1))
    is_certified = chosen >= 0 and not _is_constant(selected[:, chosen], worth, chosen, constant)
    step = chosen if is_certified else full_step(task.rates)
    decided = selected[:, step]
    bounds = upper_bounds(task.rates, selected, confidence)
    if not is_certified:
        _warn(task, decided, confidence, float(bounds[step]))
    attributes = {
        "status_": "certified" if is_certified else "no_solution",
        "p_value_": float(walked.p_values[step]),
        "certified_disparity_": float(bounds[step]),
        "path_": {
            "accuracy": np.array(worth),
            "selection_rate": weights @ selected,
            "disparity": walked.disparities,
            "bound": bounds,
            "p_value": walked.p_values,
            "is_certified": np.arange(selected.shape[1]) <= chosen,
        },
    }
    return attributes, step


def _is_constant(decided: BoolArray, worth: Sequence[float], step: int, constant: float) -> bool:
    """Whether decisions are the same for all, or worth no more than that where more is possible."""
    is_one_sided = bool(decided.all() or not decided.any())
    return is_one_sided or (worth[step] <= constant < max(worth))


def _warn(task: Task, decided: BoolArray, confidence: float, bound: float) -> None:
    """Say that nothing was certified, and how many more people it would take."""
    n = decided.size
    limits = " and ".join(sorted({f"{block.limit:g}" for block in task.rates.blocks}))
    needed = people_needed(task.rates, decided, confidence)
    if needed > 1.1 * n:
        advice = f"About {needed - n} more people (with groups in the same shares) are needed."
    else:
        advice = "The rows at hand may do with a larger max_disparity or a lower confidence."
    warn_user(
        f"With {n} people no decisions were found of which it can be shown, at a confidence of "
        f"{confidence:g}, that they keep max_disparity={limits} for new people: what can be "
        f"shown of the fairest ones is {bound:.3g}. {advice} predict() uses these, and "
        "status_ is 'no_solution'.",
        ConvergenceWarning,
    )
