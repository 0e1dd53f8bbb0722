"""Classifiers of other libraries, linear and networks, for the benchmark ``peers``.

A predictor gives the chance of a positive label, since some peers draw their labels.
"""

from typing import Any
from unittest import mock

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks import _erm_peers, _fairlearn
from benchmarks._erm_data import Part, split
from benchmarks._erm_peers import BOUND, TorchNetwork, with_groups
from benchmarks._peer_tasks import LEAST, SEEDS, Peer, Predictor, Task, run
from skfair.classification import ConstrainedERMClassifier, PartialParityClassifier
from skfair.metrics import mean_score_difference


def measure_labels(part: Part, rule: str, predictor: Predictor) -> tuple[float, float]:
    chance = np.asarray(predictor(part), dtype=np.float64)
    counted = part.y == 1 if rule == "equal_opportunity" else slice(None)
    groups = part.groups[counted]
    disparity = mean_score_difference(None, chance[counted], sensitive_features=groups)
    return float(np.where(part.y == 1, chance, 1 - chance).mean()), float(disparity)


def our_labels(train: Part, rule: str, bound: float) -> Predictor:
    model = ConstrainedERMClassifier(rule, bound)
    model.fit(train.X, train.y, sensitive_features=train.groups)
    return lambda part: model.predict(part.X)


def our_aware_labels(train: Part, rule: str, bound: float) -> Predictor:
    model = PartialParityClassifier((0.0, 1.0), rule, bound, group_aware=True)
    model.fit(train.X, train.y, sensitive_features=train.groups)
    return lambda part: model.predict(part.X, sensitive_features=part.groups)


def logistic_regression() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def unfair(rule: str) -> Any:
    def fit(train: Part) -> Predictor:
        model = logistic_regression().fit(train.X, train.y)
        return lambda part: model.predict(part.X)

    return fit


def reduction(rule: str) -> Any:
    def fit(train: Part) -> Predictor:
        model = _fairlearn.reduction(logistic_regression(), rule, BOUND)
        model.fit(train.X, train.y, sensitive_features=train.groups)
        return lambda part: model._pmf_predict(part.X)[:, 1]

    return fit


def thresholds(rule: str) -> Any:
    def fit(train: Part) -> Predictor:
        model = _fairlearn.thresholds(logistic_regression(), rule, BOUND)
        model.fit(train.X, train.y, sensitive_features=train.groups)
        return lambda part: model._pmf_predict(part.X, sensitive_features=part.groups)[:, 1]

    return fit


def covariance(rule: str) -> Any:
    from sklego.linear_model import DemographicParityClassifier, EqualOpportunityClassifier

    def fit(train: Part) -> Predictor:
        X = with_groups(train)
        options = {"sensitive_cols": [X.shape[1] - 1], "max_iter": None}
        if rule == "equal_opportunity":
            model = EqualOpportunityClassifier(0.01, positive_target=1, **options)
        else:
            model = DemographicParityClassifier(0.01, **options)
        model.fit(X, train.y)
        return lambda part: model.predict(with_groups(part))

    return fit


def reweighed(rule: str) -> Any:
    import pandas as pd
    from aif360.sklearn.preprocessing import Reweighing, ReweighingMeta

    def fit(train: Part) -> Predictor:
        codes = np.unique(train.groups, return_inverse=True)[1]
        X = pd.DataFrame(train.X, index=pd.Index(codes, name="group"))
        model = ReweighingMeta(logistic_regression(), Reweighing("group"))
        model.fit(X, pd.Series(train.y, index=X.index))
        return lambda part: model.predict(pd.DataFrame(part.X))

    return fit


LABELS = Task(our_labels, measure_labels, BOUND)
AWARE = Task(our_aware_labels, measure_labels, LEAST)
LABEL_PEERS = (
    Peer("scikit-learn", "LogisticRegression", "sklearn", unfair, is_reference=True),
    Peer("fairlearn", "ExponentiatedGradient", "fairlearn.reductions", reduction),
    Peer("scikit-lego", "bound on a covariance", "sklego", covariance, only=("compas",)),
    Peer("aif360", "Reweighing", "aif360.sklearn.preprocessing", reweighed),
)
AWARE_PEERS = (Peer("fairlearn", "ThresholdOptimizer", "fairlearn.postprocessing", thresholds),)


def labels(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Compare linear classifiers that do without groups, and those that use them to predict."""
    tables: dict[str, list[dict[str, Any]]] = {"labels": [], "aware": []}
    for name, seeds in (("compas", SEEDS), ("adult", SEEDS[:1]), ("bank", SEEDS[:1])):
        if quick and name != "compas":
            continue
        draws = [dense_split(name, seed) for seed in seeds[: 1 if quick else None]]
        for kind, task, peers in (("labels", LABELS, LABEL_PEERS), ("aware", AWARE, AWARE_PEERS)):
            for rule in ("demographic_parity", "equal_opportunity")[: 1 if quick else None]:
                for peer in peers:
                    if peer.only and name not in peer.only:
                        continue
                    data = {"data": f"{name}, {rule.replace('_', ' ')}"}
                    tables[kind] += [data | row for row in run(task, peer, rule, draws, quick)]
        print(f"   labels, {name}: done", flush=True)
    return tables


def dense_split(name: str, seed: int) -> tuple[Part, Part]:
    train, test = (part._replace(X=part.dense()) for part in split(name, seed))
    return train, test


# Networks: both limit the difference of mean probabilities, and so that is what is measured.


def our_network(train: Part, rule: str, bound: float) -> Predictor:
    model = ConstrainedERMClassifier(
        rule,
        BOUND,
        model=(64, 32),
        enforce="surrogate",
        solver="alm",
        max_iter=_erm_peers.N_STEPS,
        random_state=0,
    ).fit(train.X, train.y, sensitive_features=train.groups)
    return lambda part: model.predict_proba(part.X)[:, 1]


def measure_network(part: Part, rule: str, predictor: Predictor) -> tuple[float, float]:
    chance = predictor(part)
    disparity = mean_score_difference(None, chance, sensitive_features=part.groups)
    return float(((chance > 0.5) == (part.y == 1)).mean()), float(disparity)


def torch_network(rule: str) -> Any:
    def fit(train: Part) -> Predictor:
        network = TorchNetwork(0)
        network.fit(train)
        return lambda part: network.predict_proba(part.X)

    return fit


def networks(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Compare the network of _erm_peers, in float32 and with the same steps."""
    name = "compas" if quick else "adult"
    draws = [
        tuple(part._replace(X=part.X.astype(np.float32)) for part in dense_split(name, seed))
        for seed in SEEDS[: 1 if quick else 2]
    ]
    peer = Peer(
        "humancompatible-train", "network (64, 32), alm", "humancompatible.train", torch_network
    )
    task = Task(our_network, measure_network, BOUND)
    with mock.patch.object(_erm_peers, "N_STEPS", 100 if quick else _erm_peers.N_STEPS):
        rows = run(task, peer, "demographic_parity", draws, quick)
    print("   networks: done", flush=True)
    return {"networks": [{"data": name} | row | {"ours": f"at most {BOUND:.2g}"} for row in rows]}
