"""Fair clusters of graphs beside the result files of DFNMF (BigData 2025), at equal balance.

Its authors publish the modularity and the mean balance of clusters that other methods found, on six
graphs, by number of clusters. ``published/dfnmf.json`` of the folder of the data holds the means
over their runs. The graphs are those that they publish; the balance of a cluster is its smallest
group over its largest. The limit of skfair is varied, and its modularity is read off at the balance
of each published result, between the neighbouring limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks._verdicts import Tally, tally_of_signs
from benchmarks.harness import Table, data_folder, kept
from skfair.cluster import FairSpectralClustering
from skfair.datasets import load_local

DEFAULT = 0.8  # min_balance
LIMITS = (0.0, 0.05, 0.2, 0.35, 0.5, 0.65, DEFAULT, 0.95)
N_SEEDS = 3
ROUNDING = 0.0005  # three digits are shown: what is closer is equal
# The names of the published results, and what the graphs are called on the page.
GRAPHS = {
    "diaries": "Diaries",
    "friendship": "Friendship",
    "school_facebook": "Facebook",
    "drugnet": "DrugNET",
    "nba": "NBA",
    "lastfm": "LastFM",
}
STORED = {"school_facebook": "facebooknet", "lastfm": "lastfm"}  # the others are files of their own
METHODS = {  # in the order of the table; sc and DMoN know no groups
    "fsc": "fair SC",
    "sfsc": "scalable fair SC",
    "ifsc": "individual fair SC",
    "ifnmtf": "individual fair NMTF",
    "nmtf": "NMTF",
    "sc": "SC",
    "vanilla_sc": "SC",
    "DMoN": "DMoN",
}
Row = dict[str, Any]


class Itself(NamedTuple):
    """A result of DFNMF itself, and where it is from."""

    modularity: float | None  # None: no run reaches the balance of skfair
    balance: float | None  # None: at the balance of skfair
    source: str


# The stored files have no row of DFNMF itself. PORT is an earlier run of a port of its code to
# numpy, which is not kept here: 24 runs a graph (two sets of layers, six weights, two seeds).
PORT, PRINTED = "our port, best of 24 runs", "published, best of 65 settings"
DFNMF = {
    ("diaries", 5): Itself(0.625, None, PORT),
    ("diaries", 10): Itself(None, None, PORT),
    ("school_facebook", 5): Itself(0.367, None, PORT),
    ("school_facebook", 10): Itself(None, None, PORT),
    ("friendship", 5): Itself(0.629, None, PORT),
    ("friendship", 10): Itself(None, None, PORT),
    ("drugnet", 5): Itself(0.592, None, PORT),
    ("drugnet", 10): Itself(0.527, None, PORT),
    ("nba", 2): Itself(0.136, 0.371, PRINTED),
}


def main(*, quick: bool = False) -> list[Row]:
    """Return the published results, and clusters of skfair for each number of clusters."""
    folder = data_folder()
    path = folder / "published" / "dfnmf.json" if folder else None
    if path is None or not path.exists():
        print("   skipped: the folder of the data has no published/dfnmf.json")
        return []
    printed = list(published(path))
    results = [row for row in printed if not quick or row["graph"] == "diaries"]
    for graph in dict.fromkeys(row["graph"] for row in results):
        numbers_of_clusters = sorted({row["k"] for row in printed if row["graph"] == graph})
        for k in numbers_of_clusters[:2] if quick else numbers_of_clusters:
            for seed in range(1 if quick else N_SEEDS):
                measure = partial(clusterings, graph, k, seed)
                results += kept(f"against_dfnmf-{graph}-{k}-{seed}", measure, quick=quick)
        print(f"   {graph}: done", flush=True)
    return results


def published(path: Path) -> Iterator[Row]:
    """Yield the published results."""
    for graph, rows in json.loads(path.read_text())["results"].items():
        for row in rows:
            yield {"graph": graph, "of": "published", **row}


@cache
def network(name: str) -> tuple[Any, Any]:
    """Return the adjacency matrix of a graph and the group of each node."""
    if name in STORED:
        stored = load_local(STORED[name])
        return stored.adjacency, stored.sensitive_features.iloc[:, 0].to_numpy()
    nodes, edges = (
        pd.read_parquet(f"{data_folder()}/graph_{name}_{part}.parquet")
        for part in ("nodes", "edges")
    )
    place = pd.Series(range(len(nodes)), nodes["node"])
    ends = [place[edges[end]].to_numpy() for end in ("source", "target")]
    A = sparse.csr_array((np.ones(len(edges)), ends), shape=(len(nodes), len(nodes)))
    return A + A.T, nodes["group"].astype(str).to_numpy()


def clusterings(graph: str, k: int, seed: int) -> list[Row]:
    """Cluster a graph with each limit on the balance."""
    A, groups = network(graph)
    rows = []
    for limit in LIMITS:
        model = FairSpectralClustering(
            k, affinity="precomputed", min_balance=limit, random_state=seed
        )
        model.fit(A, sensitive_features=groups)
        found = {"modularity": modularity(A, model.labels_), "balance": model.average_balance_}
        about = {"graph": graph, "of": "skfair", "k": k, "seed": seed, "limit": limit}
        rows.append(about | {name: round(float(value), 6) for name, value in found.items()})
    return rows


def canary() -> list[Row]:
    """Return the clusterings of one small graph."""
    return clusterings("diaries", 5, 0)


def modularity(A: Any, labels: Any) -> float:
    """Return the edges within clusters minus those of a random graph of the same degrees."""
    members = sparse.csr_array((np.ones(labels.size), (labels, np.arange(labels.size))))
    between = (members @ A @ members.T).toarray() / A.sum()
    return float(np.trace(between) - (between.sum(axis=1) ** 2).sum())


class Comparison(NamedTuple):
    """A published result beside skfair: at its balance, and with the default limit."""

    graph: str
    method: str
    k: int
    lead: float  # of modularity at equal balance; NaN: no limit reaches it
    default: tuple[float, float]  # leads of modularity and balance


def compared(results: Sequence[Row]) -> list[Comparison]:
    """Compare each published result with the means of skfair over its seeds."""
    means, found = of_skfair(results), []
    for row in results:
        graph, k = row["graph"], row["k"]
        if row["of"] == "published" and (graph, k) in means.index.droplevel("limit"):
            own = means.loc[graph, k]
            same = at_balance(own, row["balance"])
            default = own.loc[DEFAULT]
            leads = [float(default[key] - row[key]) for key in ("modularity", "balance")]
            method = METHODS[row["method"]]
            found.append(Comparison(graph, method, k, same - row["modularity"], (*leads,)))
    return found


def of_skfair(results: Sequence[Row]) -> Any:
    """Return the means over the seeds by graph, number of clusters and limit."""
    d = pd.DataFrame([row for row in results if row["of"] == "skfair"])
    return d.groupby(["graph", "k", "limit"])[["modularity", "balance"]].mean()


def at_balance(own: Any, balance: float) -> float:
    """Return the modularity at a balance, between the limits; more balanced ones count as well."""
    own = own.sort_values("balance", ascending=False)
    best = own["modularity"].cummax()
    if balance > own["balance"].iloc[0] + ROUNDING:
        return float("nan")
    return float(np.interp(-balance, -own["balance"], best))


def tally(some: Sequence[Comparison]) -> Tally:
    """Count results at equal balance; what no limit of skfair reaches counts as behind."""
    reached = [-np.inf if np.isnan(one.lead) else one.lead for one in some]
    return tally_of_signs(reached, ROUNDING, "results")


def of_default(some: Sequence[Comparison]) -> Tally:
    """Count results that the default limit dominates: no less of both, and more of one."""
    signs = [[sign(lead) for lead in one.default] for one in some]
    dominated = [sum(both) if min(both) * max(both) >= 0 else 0 for both in signs]
    return tally_of_signs(dominated, unit="results")


def sign(lead: float) -> int:
    """Return whether a lead is one (1), or a loss (-1), also one that no limit reaches."""
    return (lead > ROUNDING) - (not lead >= -ROUNDING)


def by_method(results: Sequence[Row]) -> dict[tuple[str, str], list[Comparison]]:
    """Return the comparisons of each graph with each method, in the order of the page."""
    every = compared(results)
    return {
        (graph, method): own
        for graph in GRAPHS
        for method in dict.fromkeys(METHODS.values())
        if (own := [one for one in every if (one.graph, one.method) == (graph, method)])
    }


def tables(results: Sequence[Row]) -> dict[str, Table]:
    """Return leads and losses by graph and method, and the results of DFNMF itself."""
    lines: list[list[Any]] = []
    for (graph, method), own in by_method(results).items():
        leads = [one.lead for one in own]
        reached = [lead for lead in leads if np.isfinite(lead)]
        count, default = tally(own), of_default(own)
        lines.append(
            [
                f"{GRAPHS[graph]}, {method}",
                len(own),
                count.ahead,
                count.behind,
                f"{np.mean(reached):+.3f}" if reached else "-",
                f"{min(reached):+.3f}" if sign(min(reached, default=1.0)) < 0 else "-",
                *default[:2],
            ]
        )
    columns = ["graph, method", "published results", "skfair ahead at equal balance", "/ behind"]
    columns += ["mean lead in modularity", "furthest behind"]
    columns += ["default limit ahead in both", "/ behind in both"]
    itself = ["graph", "clusters", "balance", "modularity of skfair", "modularity of DFNMF"]
    itself.append("source of the result of DFNMF")
    return {
        "methods": Table("Modularity at equal balance", columns, lines),
        "itself": Table(
            "DFNMF itself",
            itself,
            [
                [GRAPHS[graph], k, *(shown(v) for v in values), DFNMF[graph, k].source]
                for (graph, k), values in beside_dfnmf(results).items()
            ],
        ),
    }


def beside_dfnmf(results: Sequence[Row]) -> dict[tuple[str, int], tuple[float, float, float]]:
    """Return the balance, and at it the modularity of skfair and of DFNMF itself.

    The balance is that of the default limit, or the one that is published.
    """
    means, found = of_skfair(results), {}
    for (graph, k), one in DFNMF.items():
        if (graph, k) in means.index.droplevel("limit"):
            own = means.loc[graph, k]
            balance, same = own.loc[DEFAULT][["balance", "modularity"]]
            if one.balance is not None:
                balance, same = one.balance, at_balance(own, one.balance)
            found[graph, k] = float(balance), float(same), one.modularity or np.nan
    return found


def numbers(results: Sequence[Row]) -> dict[str, Any]:
    """Return leads and losses, with the places of the losses."""
    every = compared(results)
    fair = [one for one in every if one.method not in ("SC", "DMoN", "NMTF")]
    behind = [one for one in every if sign(one.lead) < 0]
    default = of_default(every)
    itself = beside_dfnmf(results)
    # DFNMF is behind where no run of it reaches the balance, and skfair where no limit does.
    lost = [case for case, (_, own, its) in itself.items() if np.isfinite(its) and not own > its]
    named = [f"{GRAPHS[graph]} with {k} clusters" for graph, k in lost]
    return {
        "every": tally(every),
        "fair": tally(fair),
        "places": places([(one.graph, one.k) for one in behind]),
        "default": default,
        "itself": Tally(len(itself) - len(lost), len(lost), len(itself), "cases"),
        "lost_to_itself": f"losses: {' and '.join(named)}" if lost else "no losses",
    }


def shown(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3f}"


def places(lost: Sequence[tuple[str, int]]) -> str:
    """Name the graphs in which skfair is behind, with how often."""
    counts = {GRAPHS[name]: [graph for graph, _ in lost].count(name) for name in GRAPHS}
    named = ", ".join(f"{count} on {name}" for name, count in counts.items() if count)
    return f"losses: {named}" if named else "no losses"


def pictures(results: Sequence[Row]) -> dict[str, Any]:
    """Draw a dot for each published result whose balance is reached, and count the others."""
    rows: dict[str, list[float]] = {}
    for (graph, method), own in by_method(results).items():
        if method not in ("SC", "DMoN", "NMTF"):
            reached = [one.lead for one in own if np.isfinite(one.lead)]
            missed = f" ({len(own) - len(reached)} not reached)" * (len(reached) < len(own))
            rows[f"{GRAPHS[graph]}, {method}{missed}"] = reached
    figure, (axes,) = small(height=0.7 + 0.24 * len(rows), width=8.0)
    rows_of_dots(axes, rows)
    mark(axes, 0, "as published")
    axes.set_xlabel("Modularity of skfair minus the published one, at equal balance", loc="right")
    return {"picture": figure}
