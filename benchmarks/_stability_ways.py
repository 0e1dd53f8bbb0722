"""Estimators of skfair and of others, as the benchmark ``stability`` refits them.

Each way is a function of training rows, a seed, a seed of folds and a limit. It returns a function
of new people and of a seed of ``predict``, which only those methods use that draw decisions at
random. A model without a limit takes none, and what has no seed or folds ignores them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import _decision_peers, _fairlearn
from benchmarks._decision_scores import Part
from benchmarks._stability_data import Rows
from benchmarks.harness import lacks
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.ranking import FairRanker
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor

DP, EO = "demographic_parity", "equalized_odds"
LIMIT, CERTIFIED_LIMIT, RANKS_LIMIT = 0.05, 0.15, 0.2
PEER_LIMITS = (0.02, 0.035, 0.05, 0.075, 0.1)
INTERVAL, RANKS = (0.0, 0.3), "top 30%"
N_CLUSTERS = 6
FOLDS = 5


class Fitted(NamedTuple):
    """Decisions (numbers, clusters, scores) for new people, and whether they are certified."""

    predict: Callable[[Rows, int], np.ndarray]
    scores: Callable[[Rows], np.ndarray] | None = None  # where disparities are those of scores
    is_certified: bool | None = None


class Way(NamedTuple):
    """An estimator with a model and a constraint."""

    name: str
    kind: str  # "group-aware", "group-blind" or "" for what has no limit
    model: str
    rule: str
    fit: Callable[[Rows, int, int | None, float], Fitted]
    varied: tuple[str, ...] = ()  # of "seed", "predict" and "folds"
    limits: tuple[float, ...] = (LIMIT,)  # of several, the one with the disparity of skfair

    @property
    def title(self) -> str:
        """Return the name of the row of a table."""
        rule = {DP: "DP", EO: "EO"}.get(self.rule, self.rule)
        return ", ".join(part for part in (self.name, self.kind, self.model, rule) if part)


def _classifiers() -> dict[str, Any]:
    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    }


def _splitter(folds: int | None, default: Any) -> Any:
    if folds is None:
        return default
    return StratifiedKFold(FOLDS, shuffle=True, random_state=folds)


class Scale(NamedTuple):
    """Means and standard deviations of columns, to the last bit the same in any order of rows."""

    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Scale:
        """Measure the columns; a scaler that adds rows up as they come would round otherwise."""
        ordered = np.sort(X, axis=0)
        spread = ordered.std(axis=0)  # 0 if a sample has nobody of a rare category
        return cls(ordered.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean) / self.spread


def _given(rows: Rows, is_aware: bool) -> dict[str, Any]:
    return {"sensitive_features": rows.groups} if is_aware else {}


def fair_decisions(model: str, rule: str, is_aware: bool, certificate: float | None) -> Way:
    """Return ``FairDecisionClassifier``."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        fair = FairDecisionClassifier(
            _classifiers()[model],
            rule,
            limit,
            group_aware=is_aware,
            certificate=certificate,
            cv=_splitter(folds, "auto"),
            random_state=seed,
        ).fit(rows.X, rows.y, sensitive_features=rows.groups)
        is_certified = None if certificate is None else fair.status_ == "certified"
        return Fitted(
            lambda new, _: fair.predict(new.X, **_given(new, is_aware)), is_certified=is_certified
        )

    name = "FairDecisionClassifier" if certificate is None else "FairDecisionClassifier, certified"
    kind = "group-aware" if is_aware else "group-blind"
    limits = (LIMIT if certificate is None else CERTIFIED_LIMIT,)
    return Way(name, kind, model, rule, fit, ("seed", "folds"), limits)


def trained(rule: str, certificate: float | None) -> Way:
    """Return ``ConstrainedERMClassifier``."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        scaled = Scale.of(rows.X)
        fair = ConstrainedERMClassifier(rule, limit, certificate=certificate, random_state=seed)
        fair.fit(scaled(rows.X), rows.y, sensitive_features=rows.groups)
        is_certified = None if certificate is None else fair.status_ == "certified"
        return Fitted(lambda new, _: fair.predict(scaled(new.X)), is_certified=is_certified)

    name = "ConstrainedERMClassifier" + ("" if certificate is None else ", certified")
    limits = (LIMIT if certificate is None else CERTIFIED_LIMIT,)
    return Way(name, "group-blind", "linear", rule, fit, ("seed",), limits)


def partial_parity(is_aware: bool) -> Way:
    """Return ``PartialParityClassifier``, whose limit is on scores of the first ranks."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        scaled = Scale.of(rows.X)
        fair = PartialParityClassifier(
            INTERVAL, max_disparity=limit, group_aware=is_aware, random_state=seed
        ).fit(scaled(rows.X), rows.y, sensitive_features=rows.groups)

        def answer(method: str) -> Callable[[Rows], np.ndarray]:
            return lambda new: np.asarray(
                getattr(fair, method)(scaled(new.X), **_given(new, is_aware))
            )

        return Fitted(lambda new, _: answer("predict")(new), answer("decision_function"))

    kind = "group-aware" if is_aware else "group-blind"
    return Way("PartialParityClassifier", kind, "linear", RANKS, fit, ("seed",), (RANKS_LIMIT,))


def calibrated() -> Way:
    """Return ``PartialParityCalibrator``, which has folds and no seed."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        fair = PartialParityCalibrator(
            _classifiers()["logistic"], INTERVAL, max_disparity=limit, cv=_splitter(folds, FOLDS)
        ).fit(rows.X, rows.y, sensitive_features=rows.groups)
        return Fitted(
            lambda new, _: fair.predict(new.X, sensitive_features=new.groups),
            lambda new: fair.decision_function(new.X, sensitive_features=new.groups),
        )

    name, limits = "PartialParityCalibrator", (RANKS_LIMIT,)
    return Way(name, "group-aware", "logistic", RANKS, fit, ("folds",), limits)


def unlimited(model: str) -> Way:
    """Return the model itself."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        own = _classifiers()[model].fit(rows.X, rows.y)
        return Fitted(lambda new, _: own.predict(new.X))

    return Way("without a limit", "", model, "", fit)


def thresholds(model: str, rule: str) -> Way:
    """Return fairlearn's ``ThresholdOptimizer``: of equalized odds it has exact parity only."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        fair = _fairlearn.thresholds(_classifiers()[model], rule, limit)
        fair.fit(rows.X, rows.y, sensitive_features=rows.groups)
        return Fitted(
            lambda new, s: fair.predict(new.X, sensitive_features=new.groups, random_state=s)
        )

    limits = PEER_LIMITS if rule == DP else (0.0,)
    return Way("ThresholdOptimizer", "group-aware", model, rule, fit, ("predict",), limits)


def reduction(rule: str) -> Way:
    """Return fairlearn's ``ExponentiatedGradient``."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        scaled = Scale.of(rows.X)  # its weights do not reach a step of a pipeline
        fair = _fairlearn.reduction(LogisticRegression(), rule, limit)
        fair.fit(scaled(rows.X), rows.y, sensitive_features=rows.groups)
        return Fitted(lambda new, s: fair.predict(scaled(new.X), random_state=s))

    name, kind = "ExponentiatedGradient", "group-blind"
    return Way(name, kind, "logistic", rule, fit, ("predict",), PEER_LIMITS)


class Scored(NamedTuple):
    """Training rows with out-of-fold probabilities, and the scores of new people."""

    own: Part
    of: Callable[[Rows], Part]


def _scored(rows: Rows, model: str, is_aware: bool, folds: int | None) -> Scored:
    """Score classes, and pairs of group and class too if the group is estimated."""
    names, codes = np.unique(rows.groups, return_inverse=True)
    splits = StratifiedKFold(FOLDS, shuffle=True, random_state=folds or 0)
    classes = _classifiers()[model]
    pairs, pair_of = clone(classes), 2 * codes + rows.y

    def joint(chances: np.ndarray, groups: np.ndarray, of_pairs: np.ndarray | None) -> np.ndarray:
        if of_pairs is not None:
            return of_pairs.reshape(-1, names.size, 2)
        return (groups[:, None, None] == names[:, None]) * chances[:, None, :]

    def out_of_fold(labels: np.ndarray, fresh: Any) -> np.ndarray:
        cut = splits.split(rows.X, pair_of)
        found = cross_val_predict(fresh, rows.X, labels, cv=cut, method="predict_proba")
        return np.asarray(found)

    own = out_of_fold(rows.y, classes)
    own_pairs = None if is_aware else out_of_fold(pair_of, pairs)
    classes.fit(rows.X, rows.y)
    if not is_aware:
        pairs.fit(rows.X, pair_of)

    def of(new: Rows) -> Part:
        chances = classes.predict_proba(new.X)
        new_pairs = None if is_aware else pairs.predict_proba(new.X)
        return Part(chances, joint(chances, new.groups, new_pairs), new.y, new.groups)

    return Scored(Part(own, joint(own, rows.groups, own_pairs), rows.y, rows.groups), of)


def on_scores(name: str, method: Callable[[bool], Any], model: str, rule: str, aware: bool) -> Way:
    """Return a method of ``_decision_peers`` that sets decisions on out-of-fold probabilities."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        scored = _scored(rows, model, aware, folds)
        decide = method(aware)(scored.own, rule, limit)
        return Fitted(lambda new, _: np.asarray(decide(scored.of(new))).astype(int))

    kind = "group-aware" if aware else "group-blind"
    return Way(name, kind, model, rule, fit, ("folds",), PEER_LIMITS)


def error_parity(model: str, rule: str) -> Way:
    """Return the optimiser of error-parity, which draws decisions by the seed of its fit."""

    def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
        from error_parity import RelaxedThresholdOptimizer

        scored = _scored(rows, model, True, folds)
        fair = RelaxedThresholdOptimizer(
            predictor=lambda scores: scores[:, 1], constraint=rule, tolerance=limit, seed=seed
        )
        names, codes = np.unique(rows.groups, return_inverse=True)
        fair.fit(scored.own.chances, rows.y, group=codes)
        return Fitted(
            lambda new, _: np.asarray(
                fair.predict(scored.of(new).chances, group=np.searchsorted(names, new.groups))
            ).astype(int)
        )

    varied = ("seed", "folds")
    return Way("error-parity", "group-aware", model, rule, fit, varied, PEER_LIMITS)


def decision_ways() -> tuple[list[Way], list[str]]:
    """Return the ways to decide between two classes, and the packages that are not installed.

    Those of skfair come first: the others get the limit at which they have its disparity.
    """
    both = ("logistic", "boosting")
    own = [
        fair_decisions(model, rule, is_aware, certificate)
        for certificate in (None, 0.95)
        for is_aware in (False, True)
        for model in both
        for rule in (DP, EO)
        if certificate is None or (model, rule) != ("boosting", EO)  # the slowest fits
    ]
    own += [trained(rule, certificate) for certificate in (None, 0.95) for rule in (DP, EO)]
    own += [partial_parity(False), partial_parity(True), calibrated()]
    others, absent = [unlimited(model) for model in both], []
    if lacks("fairlearn"):
        absent.append("fairlearn")
    else:
        others += [thresholds(model, rule) for model in both for rule in (DP, EO)]
        others += [reduction(rule) for rule in (DP, EO)]
    programme = _decision_peers.linear_programme
    others += [
        on_scores("linear programme", programme, model, rule, is_aware)
        for is_aware in (True, False)
        for model in (both if is_aware else both[:1])
        for rule in (DP, EO)
    ]
    if lacks("oxonfair"):
        absent.append("oxonfair")
    else:  # without the group, its search takes a minute for four groups
        others.append(on_scores("OxonFair", _decision_peers.oxonfair, "logistic", DP, True))
    if lacks("error_parity"):
        absent.append("error-parity")
    else:
        others += [error_parity(model, EO) for model in both]
    return own + others, absent


def number_ways() -> list[Way]:
    """Return the ways to predict numbers."""
    models = {
        "linear": make_pipeline(StandardScaler(), LinearRegression()),
        "boosting": HistGradientBoostingRegressor(max_iter=30, random_state=0),
    }

    def decided(model: str, is_aware: bool) -> Way:
        def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
            cv = FOLDS if folds is None else KFold(FOLDS, shuffle=True, random_state=folds)
            fair = FairDecisionRegressor(
                models[model], "wasserstein", limit, group_aware=is_aware, cv=cv
            ).fit(rows.X, rows.y, sensitive_features=rows.groups)
            return Fitted(lambda new, _: fair.predict(new.X, **_given(new, is_aware)))

        kind = "group-aware" if is_aware else "group-blind"
        return Way("FairDecisionRegressor", kind, model, "", fit, ("folds",), (0.1,))

    def free(model: str) -> Way:
        def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
            own = clone(models[model]).fit(rows.X, rows.y)
            return Fitted(lambda new, _: own.predict(new.X))

        return Way("without a limit", "", model, "", fit)

    def constrained(certificate: float | None) -> Way:
        def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
            scaled = Scale.of(rows.X)
            fair = ConstrainedERMRegressor(
                max_disparity=limit, certificate=certificate, random_state=seed
            ).fit(scaled(rows.X), rows.y, sensitive_features=rows.groups)
            is_certified = None if certificate is None else fair.status_ == "certified"
            return Fitted(lambda new, _: fair.predict(scaled(new.X)), is_certified=is_certified)

        name = "ConstrainedERMRegressor" + ("" if certificate is None else ", certified")
        limits = (0.1 if certificate is None else 2 * CERTIFIED_LIMIT,)
        return Way(name, "group-blind", "linear", "", fit, ("seed",), limits)

    fair = [decided(model, is_aware) for is_aware in (False, True) for model in models]
    return [*fair, constrained(None), constrained(0.95), *map(free, models)]


def cluster_ways() -> list[Way]:
    """Return the ways to cluster."""

    def way(name: str, make: Callable[[int], Any], *, is_fair: bool = True) -> Way:
        def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
            scaled = Scale.of(rows.X)
            model = make(seed).fit(scaled(rows.X), **_given(rows, is_fair))
            if isinstance(model, ParetoFairKMeans):
                model = model.select(min_balance=0.8)
            return Fitted(lambda new, _: model.predict(scaled(new.X), **_given(new, is_fair)))

        return Way(name, "", "", "", fit, ("seed",))

    k = N_CLUSTERS
    makers: Mapping[str, Callable[[int], Any]] = {
        "FairKMeans": lambda seed: FairKMeans(k, random_state=seed),
        "FairKMeans, 10 starts": lambda seed: FairKMeans(k, n_init=10, random_state=seed),
        "ParetoFairKMeans": lambda seed: ParetoFairKMeans(k, random_state=seed),
        "FairSpectralClustering": lambda seed: FairSpectralClustering(k, random_state=seed),
    }
    free: Mapping[str, Callable[[int], Any]] = {
        "KMeans of scikit-learn": lambda seed: KMeans(k, random_state=seed),
        "KMeans, 10 starts": lambda seed: KMeans(k, n_init=10, random_state=seed),
    }
    found = [way(name, make) for name, make in makers.items()]
    return found + [way(name, make, is_fair=False) for name, make in free.items()]


def query_ways() -> Sequence[Way]:
    """Return the ways to rank, within a limit and without."""

    def way(name: str, limit: float) -> Way:
        def fit(rows: Rows, seed: int, folds: int | None, limit: float) -> Fitted:
            scaled = Scale.of(rows.X)
            fair = FairRanker(limit, random_state=seed)
            fair.fit(scaled(rows.X), rows.y, rows.query, sensitive_features=rows.groups)
            return Fitted(lambda new, _: fair.predict(scaled(new.X)))

        return Way(name, "", "", "", fit, ("seed",), (limit,))

    return [way("FairRanker", 0.15), way("without a limit", 1.0)]
