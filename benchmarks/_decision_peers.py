"""Other methods of fair decisions on given scores, for the benchmark ``decisions``.

Each is a function of scored training rows, a constraint and a limit that returns a function of new
rows: the chance that a row is selected (0 or 1 where nothing is drawn).
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from benchmarks import _fairlearn
from benchmarks._decision_scores import CELLS, SEEDS, Part, Stored, stored
from skfair.classification import FairDecisionClassifier, PartialParityCalibrator

Predictor = Callable[[Part], Any]
OXONFAIR = {"equalized_odds": "equalized_odds_max"}  # the larger of the two differences


def ours(aware: bool | str) -> Any:
    def fit(train: Part, rule: str, limit: float) -> Predictor:
        classes, groups = stored(train)
        model = FairDecisionClassifier(
            classes, rule, limit, group_aware=aware, group_estimator=groups, random_state=0
        )
        model.fit(train.table(), train.y, sensitive_features=train.groups)

        def predict(part: Part) -> Any:
            given = {"sensitive_features": part.groups} if aware else {}
            return model.predict(part.table(), **given)

        return predict

    return fit


def threshold_optimizer(train: Part, rule: str, limit: float) -> Predictor:
    """Fairlearn's: randomised, with the group; of equalized odds it has exact parity only."""
    model = _fairlearn.thresholds(Stored().fit(None, train.y), rule, limit, prefit=True)
    model.fit(train.table(), train.y, sensitive_features=train.groups)
    return lambda part: model._pmf_predict(part.table(), sensitive_features=part.groups)[:, 1]


def calibrated(train: Part, rule: str, limit: float) -> Predictor:
    """Skfair's maps of scores over all ranks, with the group."""
    base = FrozenEstimator(Stored().fit(None, train.y))
    model = PartialParityCalibrator(base, (0, 1), rule, limit)
    model.fit(_clipped(train), train.y, sensitive_features=train.groups)
    return lambda part: model.predict(_clipped(part), sensitive_features=part.groups)


def _clipped(part: Part) -> Any:
    return np.clip(part.chances, 1e-9, 1 - 1e-9)


def oxonfair(aware: bool) -> Any:
    """OxonFair: a threshold for each group, or, unknown, one weighted by the chances of groups."""
    searched: dict[str, Any] = {}  # one front has the thresholds of every limit

    def rows(part: Part) -> dict[str, Any]:
        given = {"data": part.table(), "target": part.y}
        return {**given, "groups": part.groups} if aware else given

    def fit(train: Part, rule: str, limit: float) -> Predictor:
        from oxonfair import FairPredictor, group_metrics

        n_groups, n_classes = train.joint.shape[1:]
        is_known = searched.get("rule") == rule and searched["train"] is train
        if not is_known:
            model = FairPredictor(
                lambda table: table[:, :n_classes].copy(),  # it writes into what it gets
                {**rows(train), "groups": train.groups},
                inferred_groups=not aware
                and (lambda table: table[:, n_classes:].reshape(-1, n_groups, n_classes).sum(2)),
                use_fast=True if aware else "hybrid",
            )
            searched.update(rule=rule, train=train, model=model)
        model = searched["model"]
        metric = getattr(group_metrics, OXONFAIR.get(rule, rule))
        offset = model.fit(group_metrics.accuracy, metric, limit, recompute=not is_known).offset

        def predict(part: Part) -> Any:
            model.set_threshold(offset)
            return np.asarray(model.predict(rows(part)), dtype=float)

        return predict

    return fit


def linear_programme(aware: bool) -> Any:
    """LinearPost's way: rows are decided by the prices of a linear programme over plug-in rates."""

    def shares_of(part: Part, names: Any) -> Any:
        joint = part.joint
        if aware:
            known = np.searchsorted(names, part.groups)[:, None] == np.arange(names.size)
            joint = known[:, :, None] * part.chances[:, None, :]
        return joint

    def features(joint: Any, rule: str) -> Any:
        columns = [joint.sum(axis=2) if k is None else joint[:, :, k] for k in CELLS[rule]]
        return np.concatenate(columns, axis=1)

    def fit(train: Part, rule: str, limit: float) -> Predictor:
        names = np.unique(train.groups)
        few = np.random.default_rng(SEEDS[0]).choice(len(train.y), min(6000, len(train.y)), False)
        phi = features(shares_of(train, names), rule)[few]
        phi = phi / phi.sum(axis=0)  # a rate is phi' selected
        n, n_rates = phi.shape
        n_centers = len(CELLS[rule])
        center = np.repeat(np.eye(n_centers), names.size, axis=0)
        gain = 2 * train.chances[few, 1] - 1
        above = np.hstack([phi.T, -center])
        found = linprog(
            np.concatenate([-gain / n, np.zeros(n_centers)]),
            A_ub=sparse.csr_array(np.vstack([above, -above])),
            b_ub=np.full(2 * n_rates, limit / 2),
            bounds=(0, 1),
            method="highs-ipm",
        )
        multipliers = -found.ineqlin.marginals
        total = features(shares_of(train, names), rule)[few].sum(axis=0)
        prices = n * (multipliers[:n_rates] - multipliers[n_rates:]) / total
        return lambda part: (
            2 * part.chances[:, 1] - 1 > features(shares_of(part, names), rule) @ prices
        ).astype(float)

    return fit


def reweighted(X: Any, y: Any, groups: Any, strength: float, seed: int) -> Any:
    """MinDiff's aim by weights: groups and classes are made independent, more or less."""
    weights = np.ones(y.size)
    for g, k in product(np.unique(groups), np.unique(y)):
        cell = (groups == g) & (y == k)
        expected = (groups == g).mean() * (y == k).mean()
        weights[cell] = (expected / max(cell.mean(), 1e-9)) ** strength
    model = HistGradientBoostingClassifier(random_state=seed)
    return model.fit(X, y, sample_weight=weights)


def reduction(X: Any, y: Any, groups: Any, rule: str, limit: float, seed: int) -> Any:
    """Fairlearn's ExponentiatedGradient over the same booster."""
    booster = HistGradientBoostingClassifier(random_state=seed)
    model = _fairlearn.reduction(booster, rule, limit).fit(X, y, sensitive_features=groups)
    return lambda rows: model._pmf_predict(rows)[:, 1]
