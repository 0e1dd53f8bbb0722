"""Tables that others have published, and packages of others on the same rows.

*LinearPost* (Xian and Zhao, arXiv 2405.04025): decisions of classifiers on Adult and COMPAS, limits
on demographic parity, equal opportunity and equalized odds; 35% of the rows train the classifier,
35% set the decisions, 30% test them. *Scalable fair clustering* (Mantuano, Kammermann and Baumann,
arXiv 2605.13759): fair k-means on Adult. Their printed results are read from the folder
``published`` of the data; their seconds were measured on their machine, and the seconds of skfair
on this one. The packages are in ``_external_peers``. *Fair-SMW* (arXiv 2510.20220) prints pictures
only: its baseline s-FSC is read from the record ``fair_spectral_dc``, which has the same networks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator

from benchmarks import _external_peers as peers
from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks._external_data import METRICS, classifier, people, splits
from benchmarks._verdicts import Tally, tally_of_signs
from benchmarks.harness import Table, data_folder, kept, read, timed
from skfair.classification import FairDecisionClassifier
from skfair.cluster import FairKMeans

STARTS = {1: 6, 10: 6, 100: 1}  # and how many seeds of each are run
POINTS = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
EVERY = {True: 1, False: 3}  # of their limits, with and without the group; the others lie between
BLIND_TOO_LONG = ("adult", "boosting")  # a fit without the group takes several seconds
OTHERS = {
    "linearpost_known": "LinearPost, group known",
    "linearpost_known_compas_logistic": "of these, COMPAS with logistic regression",
    "linearpost_unknown": "LinearPost, group not known",
    "linearpost_unknown_compas_boosting": "of these, COMPAS with boosted trees",
    "parity_cells": "error-parity",
    "one_threshold": "error-parity, skfair with one threshold",
    "equipy": "equipy",
    "forests_adult": "fair-trees on Adult",
    "forests_compas": "fair-trees on COMPAS",
    "kmeans": "Mantuano, Kammermann and Baumann",
}
Row = dict[str, Any]


def printed() -> pd.DataFrame:
    """Return what LinearPost prints: of scores as they are, and calibrated."""
    d = pd.read_csv(f"{data_folder()}/published/linearpost.csv")
    d = d[d["data"].isin(["adult", "compas"])]
    aware = d["variant"].str.startswith("attribute aware")
    return d.assign(aware=aware, calibrated=~d["variant"].str.contains("not calibrated"))


def decisions(name: str, model: str, quick: bool) -> Iterator[Row]:
    """Fit decisions with the limits that LinearPost prints, with the group and without it."""
    published = printed()
    cells = published[(published["data"] == name) & (published["model"] == model)]
    if (name, model) == BLIND_TOO_LONG:
        cells = cells[cells["aware"]]
    for aware, part in cells.groupby("aware"):
        data = people(name) if aware else people(name).without("sex")
        for seed, train, own, new in splits(data.y.size, quick):
            first, second, third = (data.at(rows) for rows in (train, own, new))
            if seed == 33:
                base = classifier(model).fit(first.X, first.y)
                pairs = None if aware else classifier(model).fit(first.X, first.cells())
            for criterion, limits in part.groupby("criterion")["alpha"]:
                rule, metric = METRICS[criterion]
                for limit in [np.inf, *sorted(set(limits))[:-1][:: EVERY[aware]]]:
                    predicted = base.predict(third.X)
                    if np.isfinite(limit):
                        decided = FairDecisionClassifier(
                            base,
                            rule,
                            min(limit, 1.0),
                            group_aware=aware,
                            group_estimator=None if aware else FrozenEstimator(pairs),
                            cv="prefit",
                            random_state=0,
                        ).fit(second.X, second.y, sensitive_features=second.groups)
                        known = {"sensitive_features": third.groups} if aware else {}
                        predicted = decided.predict(third.X, **known)
                    disparity = metric(third.y, predicted, sensitive_features=third.groups)
                    yield {
                        "table": "linearpost",
                        "aware": aware,
                        "cell": f"{name}, {model}, {rule}",
                        "limit": limit,
                        "seed": seed,
                        "accuracy": float((predicted == third.y).mean()),
                        "disparity": float(disparity),
                    }
    for row in cells.itertuples():
        yield {
            "table": "linearpost printed",
            "aware": bool(row.aware),
            "calibrated": bool(row.calibrated),
            "cell": f"{row.data}, {row.model}, {METRICS[row.criterion][0]}",
            "limit": row.alpha,
            "accuracy": row.accuracy,
            "error": row.accuracy_std,
            "disparity": row.disparity,
        }


def clusterings(n_init: int, quick: bool) -> Iterator[Row]:
    """Fit fair k-means at the balances that the authors print."""
    d = pd.read_parquet(f"{data_folder()}/adult.parquet")
    X = d[POINTS].to_numpy(float)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    groups = d["sex"].astype(str).to_numpy()
    for row in pd.read_csv(f"{data_folder()}/published/mantuano2026.csv").itertuples():
        for seed in range(1 if quick else STARTS[n_init]):
            model = FairKMeans(
                row.k,
                min_balance=row.target_balance,
                relative_balance=False,
                n_init=n_init if n_init > 1 else "auto",
                random_state=seed,
            )
            cpu, _ = timed(lambda m=model: m.fit(X, sensitive_features=groups))
            counts = pd.crosstab(model.labels_, groups).to_numpy()
            yield {
                "table": "mantuano",
                "cell": f"k = {row.k}, balance {row.target_balance}",
                "starts": n_init,
                "seed": seed,
                "cost": float(model.inertia_),
                "balance": float((counts.min(axis=1) / counts.max(axis=1)).min()),
                "target": row.target_balance,
                "printed": float(min(row.cost_mpfc_gurobi, row.cost_ms_flow)),
                "printed seconds": row.seconds_flow,
                "cpu": cpu,
            }


def networks() -> list[tuple[Any, ...]]:
    """Return s-FSC and ours on the networks of Fair-SMW, from the record of another benchmark."""
    record = read("fair_spectral_dc")["results"]
    network = record["tables 2 and 3"]["LastFM"]
    rows_of = {f"LastFM, k = {network['k']}": network["rows"]}
    rows_of |= {f"FacebookNet, k = {k}": rows for k, rows in record["table 9"].items()}
    lines: list[tuple[Any, ...]] = []
    for case, rows in rows_of.items():
        exact, ours = rows["s-FSC"], rows["ours"]
        ratios = [round(exact[key] / ours[key], 3) for key in ("seconds", "ncut")]
        lines.append((case, *ratios, exact["mean"], ours["mean"]))
    return lines


def main(*, quick: bool) -> list[Row]:
    """Run all tables; pieces that were measured before are read from their files."""
    folder = data_folder()
    if folder is None or not (Path(folder) / "published").exists():
        print("   skipped: the folder of the data has no published tables")
        return []
    pieces = {
        f"external-decisions-{name}-{model}": lambda n=name, m=model: decisions(n, m, quick)
        for name in ("compas", "adult")
        for model in ("logistic", "boosting")
    }
    pieces |= {f"external-clusters-{n}": lambda n=n: clusterings(n, quick) for n in STARTS}
    present = [peer for peer in peers.PEERS if peer.is_there()]
    pieces |= {f"external-{p.module}": lambda p=p: p.measure(quick) for p in present}
    results = []
    for name, run in pieces.items():
        results += kept(name, lambda run=run: list(run()), quick=quick)
        print(f"   {name}: done", flush=True)
    return results


def canary() -> list[Row]:
    """Return decisions that may use the group; without it some depend on rounding."""
    rows = [row for row in decisions("compas", "logistic", quick=True) if row["aware"]]
    return [row for row in rows if row["table"] == "linearpost" and np.isfinite(row["limit"])]


def compared(results: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Compare with the printed results of each cell at their disparity.

    Ours are interpolated between the means of the limits; where theirs are smaller than any of ours
    the smallest of ours counts.
    """
    lines = []
    for (aware, cell), (free, gains, rows) in leads(results).items():
        means = [gains[rows["calibrated"] == kind].mean() for kind in (False, True)]
        counted = beyond(gains, rows["error"])
        lines.append(
            (
                cell.replace("_", " "),
                "known" if aware else "not known",
                *(f"{value:+.4f}" for value in (free, *means, gains.min())),
                *counted[:2],
                len(rows) - counted.ahead - counted.behind,
            )
        )
    return lines


def beyond(gains: Any, errors: Any) -> Tally:
    """Count leads and losses that are larger than the printed standard deviations."""
    return tally_of_signs(list(np.sign(gains) * (abs(gains) > errors)), unit="results")


def leads(results: Sequence[Row]) -> dict[tuple[bool, str], tuple[float, Any, pd.DataFrame]]:
    """Return by how much ours are more accurate: without a limit, and for each printed result."""
    d = pd.DataFrame(list(results))
    ours, theirs = d[d["table"] == "linearpost"], d[d["table"] == "linearpost printed"]
    by_cell = {}
    for (aware, cell), part in sorted(ours.groupby(["aware", "cell"]), reverse=True):
        means = part.groupby("limit")[["accuracy", "disparity"]].mean().sort_values("disparity")
        rows = theirs[(theirs["cell"] == cell) & (theirs["aware"] == aware)]
        free = means.loc[np.inf, "accuracy"] - rows[~np.isfinite(rows["limit"])]["accuracy"].mean()
        rows = rows[np.isfinite(rows["limit"])]
        here = np.interp(rows["disparity"], means["disparity"], means["accuracy"])
        by_cell[bool(aware), str(cell)] = float(free), here - rows["accuracy"], rows
    return by_cell


def clusters(results: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Compare the costs of fair k-means with the best printed ones."""
    d = pd.DataFrame(list(results))
    lines = []
    for cell, part in d[d["table"] == "mantuano"].groupby("cell", sort=False):
        by_starts = dict(list(part.groupby("starts")))
        lines.append(
            (
                cell,
                float(part["printed"].iloc[0]),
                *(round(float(by_starts[n]["cost"].max()), 1) for n in STARTS),
                float((part["balance"] - part["target"]).min()),
                float(part["printed seconds"].iloc[0]),
                *(round(float(by_starts[n]["cpu"].mean()), 2) for n in STARTS),
            )
        )
    return lines


def tables(results: Sequence[Row]) -> dict[str, Table]:
    """Return all comparisons."""
    columns = ["data, classifier, constraint", "group", "mean difference without a limit"]
    columns += ["with limits, LinearPost not calibrated", "with limits, LinearPost calibrated"]
    columns += ["smallest difference", "skfair ahead", "/ behind", "/ neither"]
    names = ["clusters, smallest balance", "lowest cost printed"]
    names += ["cost of skfair, default starts", "/ ten starts", "/ a hundred starts"]
    names += ["smallest balance minus target", "seconds printed"]
    names += ["CPU seconds of skfair, default starts", "/ ten starts", "/ a hundred starts"]
    pairs = ["network", "CPU time, s-FSC / skfair", "normalised cut, s-FSC / skfair"]
    pairs += ["average balance of s-FSC", "average balance of skfair"]
    return {
        "verdict": verdict(results),
        "decisions": Table("skfair minus LinearPost, accuracy", columns, compared(results)),
        "clusters": Table("fair k-means on Adult", names, clusters(results)),
        "networks": Table("s-FSC, the baseline of Fair-SMW", pairs, networks()),
        **{peer.module: peer.table(results) for peer in peers.PEERS},
        "parity": peers.at_equal_parity(results),
    }


def against_papers(results: Sequence[Row]) -> dict[str, Tally]:
    """Return leads and losses against the printed results."""
    printed: dict[str, list[tuple[Any, Any]]] = {}
    for (aware, cell), (_, gains, rows) in leads(results).items():
        data, model = cell.split(", ")[:2]
        known = f"linearpost_{'known' if aware else 'unknown'}"
        for name in (known, f"{known}_{data}_{model}"):
            printed.setdefault(name, []).append((gains, rows["error"]))
    counts = {
        name: beyond(*map(pd.concat, zip(*parts, strict=True))) for name, parts in printed.items()
    }
    return counts | {
        "kmeans": tally_of_signs([row[1] - round(row[3]) for row in clusters(results)])
    }


def verdict(results: Sequence[Row]) -> Table:
    """Count leads and losses against each paper and package, with how long skfair takes."""
    found = against_papers(results) | peers.numbers(results)
    lines: list[list[Any]] = []
    for name, other in OTHERS.items():
        count = found[name]
        seconds = [found.get(f"{name.split('_')[0]}_{end}", np.nan) for end in ("least", "most")]
        times = "-" if np.isnan(seconds[0]) else f"{seconds[0]:.1f} to {seconds[1]:.1f}"
        level = count.n_cells - count.ahead - count.behind
        lines.append([other, count.n_cells, count.ahead, count.behind, level, times])
    columns = ["compared with", "results or cells", "skfair ahead", "/ behind", "/ neither"]
    return Table("leads and losses", [*columns, "CPU time, skfair / other"], lines)


def numbers(results: Sequence[Row]) -> dict[str, Any]:
    """Return the leads and losses that pages quote, and what one threshold costs."""
    papers, packages = against_papers(results), peers.numbers(results)
    rows = tables(results)["error_parity"].rows  # accuracies of theirs, ours and one threshold
    cost = {limit: max(max(r[2:4]) - r[4] for r in rows if r[1] == limit) for limit in peers.LIMITS}
    quoted = ["parity", "parity_cells", "equipy", "equipy_furthest"]
    quoted += ["equipy_least", "equipy_most"]
    return {
        "linearpost_known": papers["linearpost_known"],
        "linearpost_unknown": papers["linearpost_unknown"],
        "threshold_costs": 100 * cost[0.01],
        "threshold_costs_most": 100 * cost[0.001],
        "threshold_costs_least": 100 * cost[0.05],
        **{name: packages[name] for name in quoted},
    }


def pictures(results: Sequence[Row]) -> dict[str, Any]:
    """Draw a dot for each printed result, and the difference of the classifiers without a limit."""
    by_cell = leads(results)
    figure, (axes,) = small(height=0.9 + 0.26 * len(by_cell))
    rows = {
        f"{cell.replace('_', ' ')}{'' if aware else ', group not known'}": 100 * gains.to_numpy()
        for (aware, cell), (_, gains, _) in by_cell.items()
    }
    rows_of_dots(axes, rows)
    for k, (free, _, _) in enumerate(by_cell.values()):
        axes.plot(100 * free, k, "|", color="black", ms=12, mew=2)
    mark(axes, 0, "as accurate as printed")
    label = "Points by which skfair is more accurate (bars: both without a limit)"
    axes.set_xlabel(label, loc="right")
    return {"picture": figure} if by_cell else {}
