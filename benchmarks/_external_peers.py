"""Packages of others on the rows of the benchmark ``external``: error-parity, equipy, fair-trees.

error-parity asks for older releases of numpy and cvxpy than it needs, so that no extra can name it.
A folder that is no part of the environment takes all three, and ``PYTHONPATH`` names it::

    pip install --no-deps --target FOLDER error-parity equipy fair-trees \
        cvxpy clarabel ecos osqp qdldl scs statsmodels patsy seaborn tqdm

A package that cannot be imported is left out with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LinearRegression

from benchmarks._decision_scores import Stored
from benchmarks._equal_disparity import Cell, Run, accuracy_at, in_points, lead
from benchmarks._external_data import METRICS, classifier, crimes, people, splits
from benchmarks._verdicts import tally, tally_of_signs
from benchmarks.harness import Lead, Table, timed
from skfair.classification import FairDecisionClassifier
from skfair.metrics import wasserstein_gap
from skfair.regression import FairDecisionRegressor

LIMITS = (0.1, 0.05, 0.02, 0.01, 0.001)
DISPARITIES = (0.1, 0.05, 0.03)  # on test rows, those of the benchmark decisions
RULE = "its own constraint"  # a cell has one only, and curves have to name it
RETAINED = (0.75, 0.5, 0.25, 0.0)  # equipy's epsilon: the share of a prediction that is left
THETAS = (0.0, 0.2, 0.4, 0.6, 0.8)
FOREST_LIMITS = (0.2, 0.15, 0.1, 0.05, 0.02)
FOREST = {"n_estimators": 100, "max_depth": 10, "random_state": 0}
N_FOREST_SEEDS = 1  # a fit of ours takes fifteen seconds on Adult
Row = dict[str, Any]


class Peer(NamedTuple):
    """A package: what is measured of it, and how that is shown."""

    module: str
    measure: Callable[[bool], Iterator[Row]]
    table: Callable[[Sequence[Row]], Table]

    def is_there(self) -> bool:
        """Whether it can be imported; say why not."""
        try:
            import_module(self.module)
        except Exception as error:  # whatever another library raises when it is imported
            print(f"     skipped: {self.module} cannot be imported: {error}")
            return False
        return True


def warm(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds of a second fit, which compiles and loads nothing, and its result."""
    fit()
    return timed(fit)


def numbered(groups: Any) -> Any:
    return np.unique(groups, return_inverse=True)[1]


def error_parity(quick: bool) -> Iterator[Row]:
    """Equalized odds with the group: mixtures of thresholds, drawn at random, and ours.

    Ours choose between thresholds by a hash, or have one threshold for each group. All get the same
    probabilities, so that seconds are those of setting decisions alone.
    """
    from error_parity import RelaxedThresholdOptimizer

    rule, metric = METRICS["eo"]
    for name in ("adult", "compas"):
        for model in ("logistic", "boosting"):
            data = people(name)
            for seed, train, own, new in splits(data.y.size, quick):
                base = classifier(model).fit(data.X.iloc[train], data.y[train])
                chances = [base.predict_proba(data.X.iloc[rows]) for rows in (own, new)]
                parts = [data.at(own), data.at(new)]
                for limit in (1.0, *LIMITS):
                    theirs = RelaxedThresholdOptimizer(
                        predictor=lambda scores: scores[:, 1],
                        constraint=rule,
                        tolerance=limit,
                        seed=seed,
                    )
                    ours = {
                        kind: FairDecisionClassifier(
                            Stored().fit(None, parts[0].y),
                            rule,
                            limit,
                            group_aware=how,
                            cv="prefit",
                            random_state=0,
                        )
                        for kind, how in {"ours": "mixed", "one threshold": True}.items()
                    }
                    scores, y, groups = chances[0], parts[0].y, parts[0].groups
                    codes = numbered(groups)
                    fits = {
                        "theirs": lambda m=theirs, s=scores, y=y, g=codes: m.fit(s, y, group=g),
                        **{
                            kind: lambda m=model, s=scores, y=y, g=groups: m.fit(
                                s, y, sensitive_features=g
                            )
                            for kind, model in ours.items()
                        },
                    }
                    for kind, fit in fits.items():
                        cpu, decided = warm(fit)
                        predicted = [
                            decided.predict(s, group=numbered(part.groups))
                            if kind == "theirs"
                            else decided.predict(s, sensitive_features=part.groups)
                            for s, part in zip(chances, parts, strict=True)
                        ]
                        disparities = [
                            float(metric(part.y, p, sensitive_features=part.groups))
                            for p, part in zip(predicted, parts, strict=True)
                        ]
                        yield {
                            "table": "error_parity",
                            "cell": f"{name}, {model}",
                            "limit": limit,
                            "seed": seed,
                            "of": kind,
                            "score": float((predicted[1] == parts[1].y).mean()),
                            "own": disparities[0],
                            "new": disparities[1],
                            "cpu": cpu,
                        }


def equipy(quick: bool) -> Iterator[Row]:
    """Crimes of communities: the distance of the groups' distributions, with the group.

    Ours gets the distance that theirs leaves on the rows that set the maps as its limit.
    """
    from equipy.fairness import FairWasserstein

    data = crimes()
    models = {
        "linear": LinearRegression(),
        "boosting": HistGradientBoostingRegressor(random_state=0),
    }
    for name, model in models.items():
        for seed, train, own, new in splits(data.y.size, quick):
            base = model.fit(data.X.iloc[train], data.y[train])
            parts = [data.at(own), data.at(new)]
            before = [base.predict(part.X) for part in parts]
            for share in RETAINED:
                theirs = FairWasserstein()
                cpu, _ = warm(lambda m=theirs: m.fit(before[0], parts[0].groups))  # noqa: B023
                moved = [
                    theirs.transform(values, part.groups, epsilon=share)
                    for values, part in zip(before, parts, strict=True)
                ]
                row = figures("theirs", parts, moved, cpu)
                ours = FairDecisionRegressor(
                    base, "wasserstein", row["own"], group_aware=True, cv="prefit"
                )
                cpu, _ = warm(
                    lambda m=ours, p=parts[0]: m.fit(p.X, p.y, sensitive_features=p.groups)
                )
                moved = [ours.predict(part.X, sensitive_features=part.groups) for part in parts]
                for found in (row, figures("ours", parts, moved, cpu)):
                    cell = {"table": "equipy", "cell": name, "limit": share, "seed": seed}
                    yield cell | found


def figures(kind: str, parts: Any, moved: Any, cpu: float) -> Row:
    """Return the mean squared error on test rows and the distances of the groups."""
    gaps = [
        float(wasserstein_gap(part.y, values, sensitive_features=part.groups))
        for part, values in zip(parts, moved, strict=True)
    ]
    error = float(np.mean((moved[1] - parts[1].y) ** 2))
    return {"of": kind, "score": error, "own": gaps[0], "new": gaps[1], "cpu": cpu}


def fair_trees(quick: bool) -> Iterator[Row]:
    """Forests that know no group at prediction: fair splits, and decisions of a usual forest."""
    from fair_trees import FairRandomForestClassifier

    rule, metric = METRICS["sp"]
    for name in ("adult", "compas"):
        data = people(name).without("sex") if name == "adult" else people(name)
        for seed, train, own, new in list(splits(data.y.size, quick))[:N_FOREST_SEEDS]:
            encoder = classifier("logistic")[:-1]
            first, last = data.at(np.concatenate([train, own])), data.at(new)
            X, y = np.asarray(encoder.fit_transform(first.X)), first.y
            usual = RandomForestClassifier(**FOREST)
            codes, groups = {"Z": numbered(first.groups)}, {"sensitive_features": first.groups}
            fits: list[tuple[str, float, Any, Row]] = [
                ("theirs", theta, FairRandomForestClassifier(**FOREST, theta=theta), codes)
                for theta in THETAS
            ]
            fits += [("ours", 1.0, usual, {})]
            fits += [
                ("ours", limit, FairDecisionClassifier(usual, rule, limit, random_state=0), groups)
                for limit in FOREST_LIMITS
            ]
            for kind, limit, unfitted, known in fits:
                cpu, model = timed(lambda m=unfitted, X=X, y=y, k=known: m.fit(X, y, **k))
                predicted = model.predict(np.asarray(encoder.transform(last.X)))
                yield {
                    "table": "fair_trees",
                    "cell": name,
                    "limit": limit,
                    "seed": seed,
                    "of": kind,
                    "score": float((predicted == last.y).mean()),
                    "new": float(metric(last.y, predicted, sensitive_features=last.groups)),
                    "cpu": cpu,
                }


def means_of(
    results: Sequence[Row], name: str, kind: str = "ours"
) -> Iterator[tuple[str, Any, Any]]:
    """Yield cells with the means of theirs and of one kind of ours over the seeds, by limit."""
    d = pd.DataFrame([row for row in results if row["table"] == name])
    for cell, part in d.groupby("cell", sort=False) if len(d) else ():
        numbers = part.drop(columns=["table", "cell", "seed"]).groupby(["of", "limit"]).mean()
        yield cell, numbers.loc["theirs"].sort_index(ascending=False), numbers.loc[kind]


def curves(results: Sequence[Row], name: str, sign: int = 1) -> dict[str, Run]:
    """Return the points of each way on each split by cell, with a score of which more is better."""
    runs: dict[str, Run] = {}
    for row in results:
        if row["table"] == name:
            run = runs.setdefault(row["cell"], {})
            point = (sign * row["score"], row["new"], row["cpu"])
            run.setdefault(f"{row['of']} | {RULE} | {row['limit']}", []).append(point)
    return runs


def parity_leads(results: Sequence[Row], kind: str = "ours") -> dict[Cell, Lead]:
    """Return the lead over error-parity at each disparity on test rows that both reach."""
    runs = curves(results, "error_parity")
    cells = [(name, RULE, disparity) for name in runs for disparity in DISPARITIES]
    found = {cell: lead(runs, kind, "theirs", [cell]) for cell in cells}
    return {cell: one for cell, one in found.items() if np.isfinite(one.mean)}


def at_equal_parity(results: Sequence[Row]) -> Table:
    """Show accuracies at equal disparity on test rows, and a dash if it is not reached."""
    runs, kinds = curves(results, "error_parity"), ("theirs", "ours", "one threshold")
    ahead, alone = (parity_leads(results, kind) for kind in kinds[1:])
    lines: list[list[Any]] = []
    for cell in dict.fromkeys([*ahead, *alone]):
        name, rule, disparity = cell
        accuracies = [accuracy_at(runs[name], kind, rule, disparity) for kind in kinds]
        texts = ["-" if np.isnan(value) else f"{value:.3f}" for value in accuracies]
        leads = [in_points(of[cell]) if cell in of else "-" for of in (ahead, alone)]
        lines.append([name, disparity, *texts, *leads])
    columns = ["data, classifier", "test disparity"]
    columns += ["accuracy of error-parity", "/ skfair", "/ one threshold"]
    columns += ["lead of skfair, points (standard error)", "lead of one threshold"]
    return Table("error-parity at equal disparity on test rows", columns, lines)


def equipy_leads(results: Sequence[Row]) -> list[tuple[Lead, float]]:
    """Return by how much the error of skfair is smaller at equipy's distances, and equipy's."""
    runs = curves(results, "equipy", sign=-1)
    cells = [
        (name, RULE, float(np.mean([point[1] for point in points])))
        for name, run in runs.items()
        for key, points in run.items()
        if key.startswith("theirs")
    ]
    found = [
        (lead(runs, "ours", "theirs", [cell]), -accuracy_at(runs[cell[0]], "theirs", *cell[1:]))
        for cell in cells
    ]
    return [(one, error) for one, error in found if np.isfinite(one.mean)]


def seconds(results: Sequence[Row], name: str) -> list[float]:
    """Return the CPU seconds of skfair over those of a package, of each cell and limit."""
    return [
        float(ours.loc[limit]["cpu"] / row["cpu"])
        for _, theirs, ours in means_of(results, name)
        for limit, row in theirs.iterrows()
        if limit in (*LIMITS, *RETAINED)
    ]


def numbers(results: Sequence[Row]) -> dict[str, Any]:
    """Return leads, losses and seconds beside each package."""
    ahead = parity_leads(results)
    mean = lead(curves(results, "error_parity"), "ours", "theirs", [*ahead])
    times = {name: seconds(results, name) for name in ("error_parity", "equipy")}
    trees = forests(results).rows  # accuracies of theirs and ours, and their CPU seconds
    gains = {  # a disparity that no limit of skfair reaches is a loss
        name: [-1.0 if r[3] == "-" else r[3] - r[2] for r in trees if r[0] == name]
        for name in ("adult", "compas")
    }
    beside_equipy = equipy_leads(results)
    return {
        "parity": mean,
        "parity_cells": tally([*ahead.values()]),
        "one_threshold": tally([*parity_leads(results, "one threshold").values()]),
        "parity_least": min(times["error_parity"]),
        "parity_most": max(times["error_parity"]),
        "equipy": tally([one for one, _ in beside_equipy]),
        "equipy_furthest": max(-one.mean / error for one, error in beside_equipy),
        "equipy_least": min(times["equipy"]),
        "equipy_most": max(times["equipy"]),
        **{f"forests_{name}": tally_of_signs(own) for name, own in gains.items()},
        "forests_least": min(row[-1] / row[-2] for row in trees),
        "forests_most": max(row[-1] / row[-2] for row in trees),
    }


def side_by_side(
    name: str, title: str, model: str, setting: str, score: str, *more: str
) -> Callable[[Sequence[Row]], Table]:
    """Return the table of a peer whose settings each have one of ours, and of ``more`` of ours."""
    kinds = ["ours", *more]
    columns, peer = [model, setting], title.partition(",")[0]
    for heading in (score, "fitted disparity", "test disparity"):
        columns += [f"{heading}, {peer}", "/ skfair", *(f"/ {kind}" for kind in more)]
    columns.append(f"CPU time, {peer} / skfair")

    def table(results: Sequence[Row]) -> Table:
        lines = []
        of_kinds = [means_of(results, name, kind) for kind in kinds]
        for every in zip(*of_kinds, strict=True):
            cell, theirs, ours = every[0]
            for limit, row in theirs.iterrows():
                side = [row, *(own.loc[limit] for _, _, own in every)]
                figures = [float(v[key]) for key in ("score", "own", "new") for v in side]
                lines.append((cell, limit, *figures, float(row["cpu"] / ours.loc[limit]["cpu"])))
        return Table(title, columns, lines)

    return table


def forests(results: Sequence[Row]) -> Table:
    """Compare forests at equal disparity on test rows."""
    columns = ["data", "theta", "accuracy of fair-trees", "/ skfair at equal disparity"]
    columns += ["test disparity of fair-trees", "/ smallest of skfair"]
    columns += ["CPU seconds of fair-trees", "/ skfair"]
    lines = []
    runs = curves(results, "fair_trees")
    for cell, theirs, ours in means_of(results, "fair_trees"):
        least, cpu = float(ours["new"].min()), float(ours["cpu"].drop(1.0).mean())
        for theta, row in theirs.sort_index().iterrows():
            same = accuracy_at(runs[cell], "ours", RULE, float(row["new"]))
            accuracy = "-" if np.isnan(same) else same
            figures = (float(row["score"]), accuracy, float(row["new"]), least)
            lines.append((cell, theta, *figures, float(row["cpu"]), cpu))
    return Table("forests, group not known", columns, lines)


PEERS = (
    Peer(
        "error_parity",
        error_parity,
        side_by_side(
            "error_parity",
            "error-parity, equalized odds",
            "data, classifier",
            "limit",
            "accuracy",
            "one threshold",
        ),
    ),
    Peer(
        "equipy",
        equipy,
        side_by_side(
            "equipy", "equipy, crimes of communities", "regressor", "epsilon", "squared error"
        ),
    ),
    Peer("fair_trees", fair_trees, forests),
)
