"""Data and scores of the benchmarks of fair decisions: the same probabilities for all competitors.

A split is scored once: a booster for the classes and one for the pairs of group and class, fitted
on five folds of the training rows. Training rows have the probabilities of a model that has not
seen them, test rows the mean over the five models.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import OrdinalEncoder

from benchmarks._erm_data import COMPAS_COLUMNS
from benchmarks.harness import OUTPUT
from skfair.datasets import load_local, make_loans

# The numbers of the method were chosen on other splits.
SEEDS = tuple(range(3301, 3311))
N_FOLDS = 5
# Classes whose rates a constraint compares; None stands for all rows.
CELLS = {"demographic_parity": (None,), "equal_opportunity": (1,), "equalized_odds": (0, 1)}


class People(NamedTuple):
    """Rows: features as numbers, classes, and attributes with the groups."""

    X: Any
    y: Any
    groups: Any


class Part(NamedTuple):
    """Scored rows; ``joint`` (n, groups, classes) are the chances of group and class."""

    chances: Any
    joint: Any
    y: Any
    groups: Any

    def table(self) -> Any:
        """Return the scores side by side: what :class:`Stored` reads."""
        return np.column_stack([self.chances, self.joint.reshape(len(self.y), -1)])


class Stored(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are columns of X."""

    def __init__(self, first: int = 0, last: int = 2) -> None:
        self.first, self.last = first, last

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Stored":
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.asarray(X)[:, self.first : self.last]

    def predict(self, X: Any) -> Any:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def stored(part: Part) -> tuple[Stored, Stored]:
    """Return the models of classes and of pairs of group and class for ``part.table()``."""
    n_classes, n_pairs = part.chances.shape[1], part.joint[0].size
    return Stored(0, n_classes), Stored(n_classes, n_classes + n_pairs)


@cache
def people(name: str) -> People:
    """Return a data set; names after a dash choose other groups or classes."""
    if name == "loans":
        loans = make_loans(12_000, bias=2.0, random_state=SEEDS[0])
        return People(
            numbers(loans.data), loans.target.to_numpy(), loans.sensitive_features["sex"].to_numpy()
        )
    base, _, variant = name.partition("-")
    data = load_local(base)
    frame = data.frame.assign(target=np.asarray(data.target))
    if base == "adult":
        features = data.data[data.feature_names].drop(columns=["sex", "fnlwgt", "education"])
        groups, y = frame["sex"], frame["target"]
        if variant == "race":
            groups = frame["race"].astype(str).replace("Amer-Indian-Eskimo", "Other")  # 470 rows
            features = features.drop(columns="race")
        if variant == "hours":
            y = np.digitize(frame["hours-per-week"], [40, 45])
            features = features.drop(columns="hours-per-week")
    elif base == "bank":
        features, y = data.data[data.feature_names], frame["target"]
        groups = np.where(frame["age"].between(25, 60, inclusive="left"), "25-60", "other")
        if variant == "marital":
            groups = frame["marital"].replace("unknown", "single")  # 80 rows
            features = features.drop(columns="marital")
    else:
        features, y = frame[COMPAS_COLUMNS], frame["target"]
        groups = np.where(frame["race"] == "African-American", "African-American", "other")
        if variant == "bands":
            y = np.digitize(frame["decile_score"], [4.5, 7.5])
    return People(numbers(features), np.asarray(y).astype(int), np.asarray(groups).astype(str))


def numbers(frame: Any) -> Any:
    """Return all columns as numbers."""
    texts = list(frame.select_dtypes(exclude="number"))
    codes = OrdinalEncoder().fit_transform(frame[texts].astype(str))
    return np.column_stack([frame.drop(columns=texts).to_numpy(float), codes])


def split(name: str, seed: int, n_rows: int | None = None) -> tuple[Any, Any, Any]:
    """Return the numbers of training rows (70%) and of test rows, and the pairs of all rows."""
    _, y, groups = people(name)
    rows = np.arange(len(y))
    if n_rows is not None and n_rows < len(y):
        rows = np.random.default_rng(seed).choice(rows, n_rows, replace=False)
    kinds = pd.factorize(pd.Series(groups).str.cat(y.astype(str), sep="|"), sort=True)[0]
    train, test = train_test_split(rows, test_size=0.3, random_state=seed, stratify=kinds[rows])
    return train, test, kinds


def scored(
    name: str, seed: int, n_rows: int | None = None, n_trees: int = 100
) -> tuple[Part, Part]:
    """Return training rows and test rows with their probabilities.

    These take longer than all that is compared on them, so they are kept in a file.
    """
    X, y, groups = people(name)
    train, test, kinds = split(name, seed, n_rows)
    n_classes, pairs = len(np.unique(y)), kinds.max() + 1
    version = sklearn.__version__
    path = OUTPUT / "scores" / f"{name}-{seed}-{n_rows or 'all'}-{n_trees}-{version}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        found = cross_fitted(X, y, kinds, train, test, seed, n_trees)
        np.savez(
            path, own=np.hstack([own for own, _ in found]), new=np.hstack([n for _, n in found])
        )
    with np.load(path) as kept:
        both = kept["own"], kept["new"]
    classes = [part[:, :n_classes] for part in both]
    pair_of = [part[:, n_classes:] for part in both]
    first, second = (
        Part(chances, pair.reshape(-1, pairs // n_classes, n_classes), y[part], groups[part])
        for chances, pair, part in zip(classes, pair_of, (train, test), strict=True)
    )
    return first, second


def cross_fitted(X: Any, y: Any, kinds: Any, train: Any, test: Any, seed: int, n_trees: int) -> Any:
    """Return the chances of classes and of pairs, of training and of test rows each."""
    folds = list(StratifiedKFold(N_FOLDS).split(train, kinds[train]))
    found = []
    for target in (y, kinds):
        n_labels = int(target.max()) + 1
        own, new = np.zeros((train.size, n_labels)), np.zeros((test.size, n_labels))
        for k, (inside, outside) in enumerate(folds):
            model = HistGradientBoostingClassifier(max_iter=n_trees, random_state=seed + k)
            model.fit(X[train[inside]], target[train[inside]])
            own[np.ix_(outside, model.classes_)] = model.predict_proba(X[train[outside]])
            new[:, model.classes_] += model.predict_proba(X[test]) / N_FOLDS
        found.append((own, new))
    return found


def measured(rule: str, chance: Any, part: Part) -> tuple[float, float]:
    """Return the accuracy and the largest difference of rates, in expectation."""
    gaps = []
    for label in CELLS[rule]:
        inside = np.ones(part.y.size, bool) if label is None else part.y == label
        rates = [chance[inside & (part.groups == g)].mean() for g in np.unique(part.groups)]
        gaps.append(max(rates) - min(rates))
    return float(np.where(part.y == 1, chance, 1 - chance).mean()), float(max(gaps))
