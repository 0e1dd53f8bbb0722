"""Fair ranking: FairRanker against the solvers of plada's figure 7, on queries of MSLR's shape.

The paper's data (MSLR-WEB10K) are not here, so queries of the same shape are drawn: 136 features,
100 documents each. Every other solver gets the same pairs and bounds and several budgets; an epoch
is one pass over the pairs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Table, timed
from skfair.datasets import make_ranking_queries
from skfair.papers import MultiplierModel, PladaStochastic
from skfair.ranking import FairRanker
from skfair.ranking.metrics import pair_error_gaps, pair_error_rates, ranked_rows

LIMIT = 0.15
FULL = (200, 100, 136)  # queries, documents of each, and features
KEYS = ["epochs", "cpu", "share within", "mean", "90 %", "max", "new gap", "new error", "new nDCG"]
COLUMNS = ["method", "epochs", "CPU s", "within", "disparity: mean", "/ 90%", "/ largest"]
COLUMNS += ["disparity, new queries", "error, new queries", "/ nDCG"]


def methods(descriptions: Any, n_epoch: int, *, quick: bool) -> list[tuple[str, str, int | None]]:
    """Return (name, solver, steps) of every run; None for the default and its own budget."""
    epochs = (1, 4) if quick else (1, 4, 16)
    passes = (50, 200) if quick else (100, 400, 1600)
    stochastic = {
        "multiplier model, told the query": MultiplierModel(descriptions=descriptions),
        "multiplier model, one-hot": MultiplierModel(),
        "multiplier model, printed values": MultiplierModel.paper(),
        "plada_stochastic": PladaStochastic(),
        "plada_stochastic, one batch": PladaStochastic(batches="one"),
    }
    return [
        ("without limit", "free", None),
        ("FairRanker", "auto", None),
        *(("plada", "plada", steps) for steps in passes),
        *((name, solver, n_epoch * k) for name, solver in stochastic.items() for k in epochs),
    ]


def figures(model: Any, train: tuple[Any, ...], new: tuple[Any, ...]) -> dict[str, float]:
    """Return what is measured of a fitted ranker, on training queries and on new ones."""
    gaps = model.disparity_by_query_
    X, y, query_id, groups = new
    scores = model.predict(X)
    errors = pair_error_rates(ranked_rows(y, scores, query_id, None))[:, 0, 0]
    return {
        "share within": float(np.mean(gaps <= LIMIT + 1e-9)),
        "mean": float(gaps.mean()),
        "90 %": float(np.quantile(gaps, 0.9)),
        "max": float(gaps.max()),
        "new gap": float(np.nanmean(pair_error_gaps(ranked_rows(y, scores, query_id, groups)))),
        "new error": float(np.nanmean(errors)),
        "new nDCG": model.score(X, y, query_id),
        "train nDCG": model.score(train[0], train[1], train[2]),
    }


def fitting(solver: Any, steps: int | None, seed: int, train: tuple[Any, ...]) -> Callable[[], Any]:
    """Return a function that fits a ranker with one of the solvers."""
    options: dict[str, Any] = {"random_state": seed}
    limit = 1.0 if isinstance(solver, str) and solver == "free" else LIMIT
    if steps is not None:
        options |= {"solver": solver, "query_share": None, "max_iter": steps}
    X, y, query_id, groups = train
    return lambda: FairRanker(limit, **options).fit(X, y, query_id, sensitive_features=groups)


def main(*, quick: bool = False) -> dict[str, Any]:
    n, n_documents, n_features = (40, 50, 30) if quick else FULL
    results: dict[str, list[dict[str, float]]] = {}
    for seed in (0,) if quick else (0, 1, 2):
        train, new = queries(seed, n, n_documents, n_features)
        descriptions = np.array([train[0][train[2] == query].mean(axis=0) for query in range(n)])
        n_pairs = fitting("free", None, seed, train)().n_pairs_
        n_epoch = -(-n_pairs // MultiplierModel().n_loss)
        for name, solver, steps in methods(descriptions, n_epoch, quick=quick):
            cpu, model = timed(fitting(solver, steps, seed, train))
            epochs = model.n_iter_ if steps is None or name == "plada" else steps / n_epoch
            row = {"epochs": float(epochs), "cpu": cpu, **figures(model, train, new)}
            budget = "its own" if steps is None else f"{epochs:g} epochs"
            results.setdefault(f"{name} @ {budget}", []).append(row)
        print(f"   seed {seed} done", flush=True)
    return {"limit": LIMIT, "runs": results}


def canary() -> dict[str, float]:
    """Return the results of a small cell."""
    train, new = queries(0, *FULL)
    return figures(fitting("auto", None, 0, train)(), train, new)


def queries(
    seed: int, n: int, n_documents: int, n_features: int
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return n queries to fit, and as many new ones."""
    drawn = make_ranking_queries(
        2 * n * n_documents, n_documents=n_documents, n_features=n_features, random_state=seed
    )
    train, new = (tuple(part[rows] for part in drawn) for rows in masks(drawn[2], n))
    return train, new


def masks(query_id: Any, n: int) -> tuple[Any, Any]:
    """Return the rows of the first n queries, and the others."""
    return query_id < n, query_id >= n


def medians(results: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the medians over seeds of every run, by method and budget."""
    return {
        name: {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
        for name, runs in results["runs"].items()
    }


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show the medians over seeds, and FairRanker beside what it is measured by."""
    found = medians(results)
    rows = [[worded(name), *(row[key] for key in KEYS)] for name, row in found.items()]
    title = f"Disparity of queries (limit {results['limit']:g}) and errors, medians over seeds"
    return {"runs": Table(title, COLUMNS, rows), "targets": targets(results["runs"])}


def worded(name: str) -> str:
    """Return the method of a run, in whose name a record also has the budget."""
    return name.partition(" @ ")[0].replace("told the query", "query descriptions")


def targets(runs: dict[str, list[dict[str, float]]]) -> Table:
    """Compare FairRanker with the ranker without limit and the multiplier model, by seed."""
    lines = []
    for seed, (free, ours) in enumerate(
        zip(runs["without limit @ its own"], runs["FairRanker @ its own"], strict=True)
    ):
        rivals = [row[seed] for name, row in runs.items() if name.startswith("multiplier model")]
        level = [one["cpu"] for one in rivals if one["share within"] >= ours["share within"]]
        reached = f"{min(level):.3g}" if level else f"not in {max(r['cpu'] for r in rivals):.3g}"
        lines.append(
            [
                seed,
                ours["share within"],
                ours["new gap"] / free["new gap"],
                1 - ours["new nDCG"] / free["new nDCG"],
                ours["cpu"],
                reached,
            ]
        )
    columns = ["seed", "share of training queries within"]
    columns += ["disparity of new queries, FairRanker / without limit", "loss of nDCG"]
    columns += ["CPU seconds", "CPU seconds of a multiplier model as often within"]
    return Table("FairRanker, by seed", columns, lines)


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return figure 7 of plada: error and violation against epochs, medians over seeds."""
    from matplotlib.figure import Figure

    found = medians(results)
    methods = list(dict.fromkeys(name.partition(" @ ")[0] for name in found))
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    shown = {
        "mean": "Mean disparity, training queries",
        "new gap": "Mean disparity, new queries",
        "new error": "Error on pairs, new queries",
    }
    for ax, (key, label) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        for k, method in enumerate(methods):
            rows = [row for name, row in found.items() if name.partition(" @ ")[0] == method]
            points = sorted((row["epochs"], row[key]) for row in rows)
            ax.plot(
                *zip(*points, strict=True), marker="os^Dv<>P"[k % 8], ms=5, label=worded(method)
            )
        if key != "new error":
            ax.axhline(results["limit"], color="0.6", lw=0.8)
        ax.set(xscale="log", xlabel="Epochs", ylabel=label)
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8
    )
    return {"figure7": figure}
