"""What a single model costs and saves: accuracy, disparity, fits, size, and the time of one row.

Two parts:

- *costs*: fits with ``ensemble=True`` and ``ensemble=False`` on Adult, Bank and COMPAS. Half of the
  people (at most 8,000) are fitted, the others are new. Each pair of fits sees the same people.
- *row*: the time of the decision about one person, of both, beside the model itself, scikit-learn's
  ``TunedThresholdClassifierCV``, and fairlearn's and OxonFair's decisions around the same model.
  Each turn calls all of them, so that a busy machine slows all of them.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from statistics import mean, median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks._fairlearn import thresholds
from benchmarks._stability_data import Rows, adult, compas, four_groups
from benchmarks.harness import Table, data_folder, lacks, measure_parts, quiet, timed
from skfair.classification import FairDecisionClassifier
from skfair.datasets import load_local
from skfair.metrics import demographic_parity_difference

FIRST_SEED = 8_300
MOST_FITTED = 8_000
LIMIT = 0.05
CALLS = 2_000
MODELS: dict[str, Any] = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosted trees": HistGradientBoostingClassifier(random_state=0),
    "forest": RandomForestClassifier(100, min_samples_leaf=5, random_state=0),
}
WAYS = {"blind": False, "aware": True}


def bank() -> Rows:
    """Return the customers of Bank, in two groups of age."""
    frame = load_local("bank").frame
    y = (frame["y"].astype(str) == "yes").to_numpy().astype(int)
    X = pd.get_dummies(frame.drop(columns=["y", "age"])).to_numpy(float)
    return Rows(X, y, np.where(frame["age"].between(25, 59), "25 to 59", "other"))


def costs(*, quick: bool = False) -> list[dict[str, Any]]:
    """Return a row for each data set, model, way and seed: both fits, on new people."""
    data: dict[str, Callable[[], Rows]] = {"simulated": lambda: four_groups(4_000, FIRST_SEED)}
    if not quick and data_folder() is not None:
        data |= {"Adult": adult, "Bank": bank, "COMPAS": compas}
    found = []
    for name, read in data.items():
        people = read()
        for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else 6)):
            old, new = train_test_split(np.arange(people.y.size), test_size=0.5, random_state=seed)
            fitted, unseen = people.at(old[:MOST_FITTED]), people.at(new)
            for model, way in ((m, w) for m in list(MODELS)[: 1 if quick else 3] for w in WAYS):
                pair = {"data": name, "model": model, "way": way, "seed": seed}
                found.append(pair | _both(MODELS[model], WAYS[way], fitted, unseen))
        print(f"     {name} done", flush=True)
    return found


def _both(model: Any, is_aware: bool, fitted: Rows, new: Rows) -> dict[str, Any]:
    """Return accuracy, disparity, CPU seconds and bytes with five models and with one."""
    result = {}
    for key, ensemble in (("five", True), ("one", False)):
        fair = FairDecisionClassifier(
            clone(model), max_disparity=LIMIT, group_aware=is_aware, ensemble=ensemble
        )
        seconds, _ = timed(
            lambda f=fair: f.fit(fitted.X, fitted.y, sensitive_features=fitted.groups)
        )
        groups = {"sensitive_features": new.groups} if is_aware else {}
        decided = fair.predict(new.X, **groups)
        gap = demographic_parity_difference(new.y, decided, sensitive_features=new.groups)
        right = float(np.mean(decided == new.y))
        del fair.train_predictions_  # a file for a server needs no training rows
        result[key] = [right, float(gap), seconds, len(pickle.dumps(fair))]
    return result


def row(*, quick: bool = False) -> dict[str, dict[str, list[float]]]:
    """Return the median and the 99th percentile of seconds for one row, by model and way."""
    people = four_groups(4_000, FIRST_SEED)
    people = people._replace(groups=np.where(people.groups == "a", "a", "b"))
    found = {}
    for name in ("linear", "boosted trees"):
        model = LogisticRegression() if name == "linear" else MODELS[name]
        calls = dict(_calls(model, people))
        seconds: dict[str, list[float]] = {way: [] for way in calls}
        rng = np.random.default_rng(FIRST_SEED)
        for turn in range(100 if quick else CALLS):
            x, group = people.X[turn : turn + 1], people.groups[turn : turn + 1]
            # Code that ran just before is still in the cache, so each turn has another order.
            for way in rng.permutation([*calls]).tolist():
                start = time.perf_counter()
                calls[way](x, group)
                seconds[way].append(time.perf_counter() - start)
        found[name] = {
            way: [median(own), float(np.quantile(own, 0.99))] for way, own in seconds.items()
        }
    return found


def _calls(model: Any, people: Rows) -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """Yield the ways to decide about one person, each a function of the row and its group."""
    X, y, groups = people.X, people.y, people.groups
    plain = clone(model).fit(X, y)
    yield "the model itself", lambda x, _: plain.predict(x)
    tuned = TunedThresholdClassifierCV(clone(model)).fit(X, y)
    yield "TunedThresholdClassifierCV", lambda x, _: tuned.predict(x)
    half = np.arange(y.size) % 2 == 0
    frozen = FrozenEstimator(clone(model).fit(X[half], y[half]))
    fitted = FairDecisionClassifier(frozen, group_aware=True)
    fitted.fit(X[~half], y[~half], sensitive_features=groups[~half])
    yield "skfair, fitted model", lambda x, g: fitted.predict(x, sensitive_features=g)
    for ensemble in (False, True):
        many = "five models" if ensemble else "one model"
        aware = FairDecisionClassifier(clone(model), group_aware=True, ensemble=ensemble)
        aware.fit(X, y, sensitive_features=groups)
        yield f"skfair, {many}, aware", lambda x, g, m=aware: m.predict(x, sensitive_features=g)
        blind = FairDecisionClassifier(clone(model), ensemble=ensemble)
        blind.fit(X, y, sensitive_features=groups)
        yield f"skfair, {many}, blind", lambda x, _, m=blind: m.predict(x)
    if not lacks("fairlearn"):
        optimizer = thresholds(plain, "demographic_parity", LIMIT, prefit=True)
        optimizer.fit(X, y, sensitive_features=groups)
        yield (
            "fairlearn, ThresholdOptimizer",
            lambda x, g: optimizer.predict(x, sensitive_features=g, random_state=0),
        )
    if not lacks("oxonfair"):
        import oxonfair

        def rows_of(x: Any, g: Any, target: Any = None) -> Any:
            return {"data": np.asarray(x), "groups": np.asarray(g), "target": target}

        numbers = (groups == "b").astype(int)
        fair = oxonfair.FairPredictor(plain, rows_of(X, numbers, y), inferred_groups=False)
        fair.fit(oxonfair.group_metrics.accuracy, oxonfair.group_metrics.demographic_parity, LIMIT)
        yield "OxonFair", lambda x, g: fair.predict(rows_of(x, (g == "b").astype(int)))


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    with quiet():
        return measure_parts(
            {"costs": lambda: costs(quick=quick), "row": lambda: row(quick=quick)}, only
        )


def canary() -> list[dict[str, Any]]:
    """Return accuracies and disparities; the rest are CPU seconds and bytes."""
    return [pair | {key: pair[key][:2] for key in ("five", "one")} for pair in costs(quick=True)]


def _ways(results: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the pairs of fits by model and way."""
    by_way: dict[str, list[dict[str, Any]]] = {}
    for pair in results.get("costs", []):
        by_way.setdefault(f"{pair['model']}, {pair['way']}", []).append(pair)
    return by_way


def tables(results: Any) -> dict[str, Table]:
    """Return what one model costs in the mean over data sets, and the times of one row."""
    lines = []
    for way, pairs in _ways(results).items():
        one, five = (np.array([pair[key] for pair in pairs], float) for key in ("one", "five"))
        gained, (right, gap) = (one - five).mean(axis=0), five.mean(axis=0)[:2]
        seconds, size = np.median(one[:, 2:] / five[:, 2:], axis=0)
        points = [f"{100 * own:+.2f}" for own in gained[:2]]
        changes = f"{right:.3f}", points[0], f"{gap:.3f}", points[1]
        lines.append([way, *changes, f"{seconds:.2f}", f"{size:.2f}"])
    names = ["model", "accuracy of five", "change by one, points"]
    names += ["disparity of five", "change by one, points"]
    names += ["CPU time of the fit, one / five", "size, one / five"]
    times = [
        [
            model,
            way,
            f"{1e3 * p50:.3g}",
            f"{1e3 * p99:.3g}",
            f"{p50 / own['the model itself'][0]:.1f}",
        ]
        for model, own in results.get("row", {}).items()
        for way, (p50, p99) in own.items()
    ]
    columns = ["model", "who decides", "median, ms", "99th percentile, ms"]
    columns.append("median / median of the model itself")
    return {
        "costs": Table("One model beside the mean of five, on new people", names, lines),
        "row": Table("Time of the decision about one person", columns, times),
    }


def numbers(results: Any) -> dict[str, float]:
    """Return the mean changes over all pairs, and multiples of the model for one row."""
    pairs = results.get("costs", [])
    found = {
        "accuracy": mean(pair["one"][0] - pair["five"][0] for pair in pairs),
        "disparity": mean(pair["one"][1] - pair["five"][1] for pair in pairs),
        "pairs": float(len(pairs)),
        "fit": median(pair["one"][2] / pair["five"][2] for pair in pairs),
        "size": median(pair["one"][3] / pair["five"][3] for pair in pairs),
    }
    short = {"linear": "linear", "boosted trees": "trees"}
    names = {
        "skfair, fitted model": "prefit",
        "skfair, one model, aware": "aware",
        "skfair, one model, blind": "blind",
        "skfair, five models, aware": "five_aware",
        "skfair, five models, blind": "five_blind",
        "fairlearn, ThresholdOptimizer": "fairlearn",
    }
    for model, own in results.get("row", {}).items():
        for way, name in names.items():
            if way in own:
                multiple = own[way][0] / own["the model itself"][0]
                found[f"{short[model]}_{name}"] = multiple
    return found


def pictures(results: Any) -> dict[str, Any]:
    """Draw the difference in accuracy of each pair of fits."""
    figure, (axes,) = small(height=2.6)
    differences = {
        way: [pair["one"][0] - pair["five"][0] for pair in pairs]
        for way, pairs in _ways(results).items()
    }
    rows_of_dots(axes, differences)
    mark(axes, 0, "as accurate as five")
    axes.set_xlabel("accuracy of one model minus that of five, on new people")
    return {"picture": figure}
