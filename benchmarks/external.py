"""Tables that others have published, with the data, splits and seeds that they say.

*LinearPost* (Xian and Zhao, arXiv 2405.04025): decisions of classifiers on Adult and COMPAS, limits
on demographic parity, equal opportunity and equalized odds; 35% of the rows train the classifier,
35% set the decisions, 30% test them. *Scalable fair clustering* (Mantuano, Kammermann and Baumann,
arXiv 2605.13759): fair k-means on Adult. What they print is read from the folder ``published`` of
the data; their seconds were measured on their machine, ours on this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks.harness import Table, data_folder, timed
from skfair.classification import FairDecisionClassifier
from skfair.cluster import FairKMeans
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

METRICS: dict[str, tuple[str, Any]] = {
    "sp": ("demographic_parity", demographic_parity_difference),
    "eopp": ("equal_opportunity", equal_opportunity_difference),
    "eo": ("equalized_odds", equalized_odds_difference),
}
TRAIN_SEED, SEEDS = 33, (33, 34, 35, 36, 37)
SHARES = (0.35, 0.35, 0.3)
STARTS = (1, 10)
CLUSTER_SEEDS = range(6)
COMPAS = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
COMPAS += ["sex", "c_charge_degree"]
POINTS = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
Row = dict[str, Any]


class People(NamedTuple):
    """Rows, true classes and groups."""

    X: pd.DataFrame
    y: Any
    groups: Any

    def at(self, rows: Any) -> People:
        """Return some of them."""
        return People(self.X.iloc[rows], self.y[rows], self.groups[rows])


def people(name: str) -> People:
    """Return the rows of a table."""
    d = pd.read_parquet(f"{data_folder()}/{name}.parquet")
    if name == "compas":
        d = d[d["race"].isin(["African-American", "Caucasian"])]
        X, y, groups = d[COMPAS], d["two_year_recid"], d["race"]
    else:
        X = d.drop(columns=["income", "split", "fnlwgt"], errors="ignore")
        y, groups = d["income"] == ">50K", d["sex"]
    words = X.select_dtypes(["category", "object", "string"]).columns
    X = X.astype(dict.fromkeys(words, "str"))
    return People(X, y.to_numpy().astype(int), groups.astype(str).to_numpy())


def classifier(model: str) -> Any:
    """Return a classifier for tables with words."""
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder = make_column_transformer(
        (words, make_column_selector(dtype_exclude="number")), remainder=StandardScaler()
    )
    boosting = HistGradientBoostingClassifier(random_state=0)
    last = LogisticRegression(max_iter=1000) if model == "logistic" else boosting
    return make_pipeline(encoder, last)


def printed() -> pd.DataFrame:
    """Return what LinearPost prints for known groups: of scores as they are, and calibrated."""
    d = pd.read_csv(f"{data_folder()}/published/linearpost.csv")
    d = d[d["variant"].str.startswith("attribute aware") & d["data"].isin(["adult", "compas"])]
    return d


def decisions(quick: bool) -> Iterator[Row]:
    """Fit decisions with each of the limits that LinearPost prints."""
    published = printed()
    for (name, model), cells in published.groupby(["data", "model"]):
        data = people(name)
        order = np.random.RandomState(TRAIN_SEED).permutation(data.y.size)
        n_train = int(SHARES[0] * order.size)
        base = classifier(model).fit(data.X.iloc[order[:n_train]], data.y[order[:n_train]])
        for seed in SEEDS[: 1 if quick else None]:
            rest = np.random.RandomState(seed).permutation(order[n_train:])
            cut = int(rest.size * SHARES[1] / (SHARES[1] + SHARES[2]))
            own, new = data.at(rest[:cut]), data.at(rest[cut:])
            for criterion, limits in cells.groupby("criterion")["alpha"]:
                rule, metric = METRICS[criterion]
                for limit in sorted(set(limits), reverse=True):
                    decided = FairDecisionClassifier(
                        base, rule, min(limit, 1.0), group_aware=True, cv="prefit", random_state=0
                    )
                    decided.fit(own.X, own.y, sensitive_features=own.groups)
                    given = {"sensitive_features": new.groups}
                    is_free = not np.isfinite(limit)
                    predicted = base.predict(new.X) if is_free else decided.predict(new.X, **given)
                    yield {
                        "table": "linearpost",
                        "cell": f"{name}, {model}, {rule}",
                        "limit": limit,
                        "seed": seed,
                        "accuracy": float((predicted == new.y).mean()),
                        "disparity": float(metric(new.y, predicted, **given)),
                    }
    for row in published.itertuples():
        yield {
            "table": "linearpost printed",
            "cell": f"{row.data}, {row.model}, {METRICS[row.criterion][0]}",
            "variant": row.variant,
            "limit": row.alpha,
            "accuracy": row.accuracy,
            "error": row.accuracy_std,
            "disparity": row.disparity,
        }


def clusterings(quick: bool) -> Iterator[Row]:
    """Fit fair k-means at the balances that the authors print."""
    d = pd.read_parquet(f"{data_folder()}/adult.parquet")
    X = d[POINTS].to_numpy(float)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    groups = d["sex"].astype(str).to_numpy()
    for row in pd.read_csv(f"{data_folder()}/published/mantuano2026.csv").itertuples():
        for n_init in STARTS:
            for seed in CLUSTER_SEEDS[: 1 if quick else None]:
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


def main(*, quick: bool) -> list[Row]:
    """Run both tables."""
    folder = data_folder()
    if folder is None or not (Path(folder) / "published").exists():
        print("   skipped: the folder of the data has no published tables")
        return []
    return [*clusterings(quick), *decisions(quick)]


def compared(results: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Compare with the printed results of each cell at their disparity.

    Ours are interpolated between the means of the limits; where theirs are smaller than any of ours
    the smallest of ours counts.
    """
    lines = []
    for cell, (free, gains, errors) in leads(results).items():
        ahead = float(gains.mean()), float(gains.min())
        lines.append((cell, gains.size, free, *ahead, int((gains >= -errors).sum())))
    return lines


def leads(results: Sequence[Row]) -> dict[str, tuple[float, Any, Any]]:
    """Return by how much ours are more accurate: without a limit, and for each printed result."""
    d = pd.DataFrame(list(results))
    ours, theirs = d[d["table"] == "linearpost"], d[d["table"] == "linearpost printed"]
    found = {}
    for cell, part in ours.groupby("cell"):
        means = part.groupby("limit")[["accuracy", "disparity"]].mean()
        rows = theirs[theirs["cell"] == cell]
        free = [
            d.loc[np.inf, "accuracy"] for d in (means, rows.groupby("limit")[["accuracy"]].mean())
        ]
        rows, means = rows[np.isfinite(rows["limit"])], means.sort_values("disparity")
        here = np.interp(rows["disparity"], means["disparity"], means["accuracy"])
        gains = here - rows["accuracy"].to_numpy()
        found[str(cell)] = float(free[0] - free[1]), gains, rows["error"].to_numpy()
    return found


def tables(results: Sequence[Row]) -> dict[str, Table]:
    """Return both comparisons."""
    d = pd.DataFrame(list(results))
    if not len(d):
        return {}
    columns = ["cell", "printed results", "ours minus theirs without limit", "with limits", "least"]
    columns += ["not behind by more than their standard deviation"]
    lines = []
    own = d[d["table"] == "mantuano"]
    for cell, part in own.groupby("cell", sort=False):
        by_starts = dict(list(part.groupby("starts")))
        worst = [float(by_starts[n]["cost"].max()) for n in STARTS]
        lines.append(
            (
                cell,
                float(part["printed"].iloc[0]),
                *(round(cost, 1) for cost in worst),
                float((part["balance"] - part["target"]).min()),
                float(part["printed seconds"].iloc[0]),
                *(round(float(by_starts[n]["cpu"].mean()), 2) for n in STARTS),
            )
        )
    names = ["cell", "best cost printed", "worst of six seeds", "with ten starts"]
    names += ["balance minus target", "their seconds", "our CPU seconds", "with ten starts "]
    return {
        "decisions": Table("LinearPost, groups known", columns, compared(results)),
        "clusters": Table("fair k-means on Adult", names, lines),
    }


def pictures(results: Sequence[Row]) -> dict[str, Any]:
    """Draw a dot for each printed result, and the difference of the classifiers without a limit."""
    found = leads(results) if results else {}
    figure, (axes,) = small(height=0.9 + 0.26 * len(found))
    rows = {cell.replace("_", " "): 100 * gains for cell, (_, gains, _) in found.items()}
    rows_of_dots(axes, rows)
    for k, (free, _, _) in enumerate(found.values()):
        axes.plot(100 * free, k, "|", color="black", ms=12, mew=2)
    mark(axes, 0, "as accurate as printed")
    label = "Points by which skfair is more accurate (bars: both without a limit)"
    axes.set_xlabel(label, loc="right")
    return {"picture": figure} if found else {}
