"""fair_spectral_dc ("Accelerating spectral clustering under fairness constraints"): its tables.

Four ways to the embedding, timed in CPU seconds without k-means: o-FSC (the solver "dense"), s-FSC
("arpack") and the paper's DC-ADMM ("dc_admm") in double precision, and the default of this package
("lanczos": float32, tol 3e-3). scikit-learn's embedding, which knows no groups, is there for
comparison. What is compared with the paper are ratios of times on the same data.

``|Q'H|`` says how far an embedding is from the group constraint: 0 is kept, sqrt(number of
constraints) is the worst. DC-ADMM asks for F'MH = 0 in place of F'H = 0.
"""

import math
import re
from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.fair_spectral import cut_problem
from benchmarks.harness import Table, measure_parts
from benchmarks.papers._fair_spectral_data import (
    ADMM,
    CENSUS,
    EXACT,
    LASTFM,
    MSBM,
    OURS,
    PLAIN,
    QUALITY_9,
    SEED,
    SHAPES,
    SHOWN_AS,
    SOLVERS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_5,
    TABLE_6,
    TABLE_9,
    census,
    compare,
    digits,
    label_figures,
    simulated,
)  # fmt: skip
from benchmarks.papers._fair_spectral_figures import (
    FEW_KS,
    KS,
    by_k,
    by_k_table,
    draw_by_k,
    draw_planes,
    planes,
    planes_table,
)
from benchmarks.papers._fair_spectral_peers import table_4, table_4_runs
from benchmarks.papers._fair_spectral_points import make_random_laplacian
from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral.rounding import labels_by_kmeans
from skfair.datasets import load_local, make_fair_sbm
from skfair.metrics import balance_score
from skfair.papers import DCADMM
from skfair.solvers import DenseEigh

WITHOUT_O_FSC = (EXACT, ADMM, OURS)
# The paper does not give the stopping test of table 5; this is |R| of Algorithm 1 at its end.
STOP_5 = 1e-3


def msbm(quick: bool) -> dict[str, Any]:
    """Table 1: time and balance of m-SBM by n."""
    sizes, k = ((300,), 5) if quick else ((1250, 2500, 5000), 50)
    rows = {}
    for n in sizes:
        W, truth, groups = make_fair_sbm(
            n, n_clusters=k, n_groups=5, sparse_output=False, random_state=SEED
        )
        names = (*SOLVERS, PLAIN) if n < 5000 else tuple(SOLVERS)
        rows[str(n)] = compare(W, groups, k, names=names, truth=truth)
    return rows


def real(quick: bool) -> dict[str, Any]:
    """Tables 2 and 3: LastFM and Census; and what rounding to fair labels makes of LastFM."""
    k, n = sizes(quick)
    results = {}
    for name, (W, groups, shift) in real_data(n).items():
        names = (*SOLVERS, PLAIN) if name == LASTFM and not quick else (*WITHOUT_O_FSC, PLAIN)
        rounds = 1 if quick else 5 if name == LASTFM else 2
        rows = compare(W, groups, k, names=names, rounds=rounds, shift=shift)
        if name == LASTFM:  # the rarest group of Census has fewer people than there are clusters
            model = FairSpectralClustering(k, affinity="precomputed", random_state=SEED)
            model.fit(W, sensitive_features=groups)
            rows["ours, fair labels"] = label_figures(W, model.labels_, groups)
        sample = balance_score(np.zeros(W.shape[0], int), sensitive_features=groups)
        results[name] = {"n": W.shape[0], "k": k, "balance": digits(sample), "rows": rows}
    return results


def sizes(quick: bool) -> tuple[int, int]:
    """Return the number of clusters of the real data, and the rows of Census."""
    return (2, 500) if quick else (25, 5000)


def real_data(n_census: int) -> dict[str, tuple[Any, Any, float | None]]:
    """Return weights, groups and the shift of DC-ADMM of LastFM and of some rows of Census."""

    def lastfm() -> Any:
        graph = load_local("lastfm")
        return graph.adjacency, graph.sensitive_features, None

    return measure_parts({LASTFM: lastfm, CENSUS: lambda: (*census(n_census), 0.0)})


def peers(quick: bool) -> dict[str, Any]:
    """Table 4: FFSC and UFSC, which takes time in proportion to the pairs of Census."""
    k, n = sizes(quick)
    return table_4_runs(real_data(n // 2), k)


def sensitivity(quick: bool) -> list[dict[str, Any]]:
    """Table 5: DC-ADMM from four values of alpha, RandLaplace."""
    n, k, n_seeds = (200, 10, 1) if quick else (1000, 25, 5)
    runs: dict[float, list[dict[str, float]]] = {alpha: [] for alpha in TABLE_5}
    for seed in range(SEED, SEED + n_seeds):
        W, groups = make_random_laplacian(n, random_state=seed)
        problem = cut_problem(W, groups, "float64")
        best = DenseEigh().solve(problem, k, rng=np.random.RandomState(seed))
        # The paper's F of table 4: D^-1/2 (G - 1 z') without the last group, not orthonormal.
        F = problem.scale[:, None] * (groups[:, None] - groups.mean())
        for alpha, rows in runs.items():
            rng = np.random.RandomState(seed)
            found = DCADMM(alpha=alpha).solve(problem, k, rng=rng)
            H, primal = found.vectors, found.history["primal"]
            labels = labels_by_kmeans(H * problem.scale[:, None] * math.sqrt(n), k, 10, rng)
            rows.append(
                {
                    "iterations": int(np.argmax(primal <= STOP_5)) + 1 if min(primal) <= STOP_5
                    else len(primal) + 1,
                    "cost": k - found.values.sum(),
                    "exact": k - best.values.sum(),
                    "balance": label_figures(W, labels, groups)["mean"],
                    "fairness": np.linalg.norm(F.T @ H) ** 2,
                    "orthogonality": problem.residuals(H)[1] ** 2,
                }
            )  # fmt: skip
    return [
        {"alpha": alpha, "n": n, "k": k}
        | {key: digits(mean(float(row[key]) for row in rows)) for key in rows[0]}
        for alpha, rows in runs.items()
    ]


def rand_laplace(quick: bool) -> dict[str, Any]:
    """Table 6: RandLaplace by n and k; o-FSC, whose time hardly depends on k, for one k."""
    sizes, ks = ((250, 400), (10,)) if quick else ((1250, 2500, 5000), tuple(TABLE_6))
    results: dict[str, Any] = {str(k): {} for k in ks}
    for n in sizes:
        W, groups = make_random_laplacian(n, random_state=SEED)
        for k in ks:
            names = tuple(SOLVERS) if k == ks[len(ks) // 2] else WITHOUT_O_FSC
            results[str(k)][str(n)] = compare(W, groups, k, names=names, with_labels=False)
    return results


def facebook(quick: bool) -> dict[str, Any]:
    """Table 9: FacebookNet, 155 nodes, where o-FSC is what ``solver="auto"`` chooses."""
    graph = load_local("facebooknet")
    return {
        str(k): compare(
            graph.adjacency, graph.sensitive_features, k, rounds=1 if quick else 9
        )
        for k in ((2, 25) if quick else TABLE_9)
    }  # fmt: skip


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    W, groups = make_random_laplacian(300, random_state=SEED)
    compare(W, groups, 5, names=(EXACT, OURS))  # compiles, and loads what is loaded once
    ks, few, n = ((2, 4), (2, 4), 300) if quick else (KS, FEW_KS, 2000)
    return measure_parts(
        {
            "table 1": lambda: msbm(quick),
            "figures 2 and 9": lambda: planes(quick),
            "table 5": lambda: sensitivity(quick),
            "table 6": lambda: rand_laplace(quick),
            "tables 2 and 3": lambda: real(quick),
            "table 4": lambda: peers(quick),
            "figures 6-7": lambda: by_k({name: (*simulated(name, n), 0.0) for name in SHAPES}, few),
            "figures 3-8": lambda: by_k(real_data(sizes(quick)[1]), ks),
            "table 9": lambda: facebook(quick),
        },
        only,
    )


def canary() -> dict[str, Any]:
    """Measure a cell of table 6."""
    W, groups = make_random_laplacian(1250, random_state=SEED)
    found = compare(W, groups, 10, names=WITHOUT_O_FSC, with_labels=False)
    return {name: one | {"violation": round(one["violation"], 6)} for name, one in found.items()}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return what is shown of the parts that were measured."""
    shown = {}
    for part, of_part in SHOWN.items():
        if part in results:
            shown |= of_part(results[part])
    return {slug: worded(table) for slug, table in shown.items()}


def worded(table: Table) -> Table:
    """Return a table that names the solver of this package, which records call "ours"."""

    def named(cell: Any) -> Any:
        return re.sub(rf"\b{OURS}\b", SHOWN_AS, cell) if isinstance(cell, str) else cell

    rows = [[named(cell) for cell in row] for row in table.rows]
    return table._replace(columns=[named(name) for name in table.columns], rows=rows)


def of_table_1(by_n: dict[str, Any]) -> dict[str, Table]:
    return {
        "table-1-time": times(
            "Table 1: m-SBM, CPU seconds",
            [(f"n = {n}", rows, TABLE_1.get(int(n))) for n, rows in by_n.items()],
        ),
        "table-1-quality": Table(
            "Table 1: m-SBM, what was found (balance in the paper: 1.00 for all three)",
            ("size, method", "relaxed cost", "|Q'H|", "average balance", "ARI with the truth"),
            [
                (f"n = {n}, {name}", row["cost"], row["violation"], row["mean"], row["ari"])
                for n, rows in by_n.items()
                for name, row in rows.items()
            ],
        ),
    }


def of_table_6(by_k: dict[str, Any]) -> dict[str, Table]:
    timed = times(
        "Table 6: RandLaplace, CPU seconds",
        [
            (f"k = {k}, n = {n}", rows, TABLE_6[int(k)].get(int(n)))
            for k, by_n in by_k.items()
            for n, rows in by_n.items()
        ],
    )
    return {"table-6": timed, "table-6-growth": growth(by_k)}


def of_tables_2_and_3(by_data: dict[str, Any]) -> dict[str, Table]:
    timed = times(
        "Table 2: real data, CPU seconds",
        [
            (f"{name}, n = {data['n']}", data["rows"], TABLE_2[name])
            for name, data in by_data.items()
        ],
    )
    return {"table-2": timed, "table-3": table_3(by_data)}


def of_table_9(by_k: dict[str, Any]) -> dict[str, Table]:
    timed = times(
        "Table 9: FacebookNet, CPU seconds",
        [(f"k = {k}", rows, TABLE_9[int(k)]) for k, rows in by_k.items()],
    )
    return {"table-9-time": timed, "table-9-quality": table_9(by_k)}


# The tables of each part of the results.
SHOWN: dict[str, Callable[[Any], dict[str, Table]]] = {
    "table 1": of_table_1,
    "table 5": lambda rows: {"table-5": table_5(rows)},
    "table 6": of_table_6,
    "figures 2 and 9": lambda found: {"figures-2-9": planes_table(found)},
    "figures 6-7": lambda found: {"figures-6-7": by_k_table(found)},
    "tables 2 and 3": of_tables_2_and_3,
    "table 4": lambda found: {"table-4": table_4(found)},
    "figures 3-8": lambda found: {"figures-3-8": by_k_table(found)},
    "table 9": of_table_9,
}


def times(title: str, cases: Sequence[tuple[str, Any, Any]]) -> Table:
    """Show seconds, and ratios of seconds beside those of the paper."""
    columns = ["case", *SOLVERS, "s-FSC / DC-ADMM", "/ paper", "o-FSC / DC-ADMM", "/ paper"]
    lines = []
    for label, rows, paper in cases:
        seconds = [rows[name]["seconds"] if name in rows else None for name in SOLVERS]
        o_fsc, exact, admm, _ = seconds
        theirs = paper or (None, None, None)
        cells = [*seconds, ratio(exact, admm), ratio(theirs[1], theirs[2])]
        cells += [ratio(o_fsc, admm), ratio(theirs[0], theirs[2])]
        lines.append([label, *("-" if cell is None else cell for cell in cells)])
    return Table(title, columns, lines)


def ratio(above: float | None, below: float | None) -> float | None:
    """Divide, if both are known."""
    return None if above is None or below is None else float(f"{above / below:.3g}")


def table_3(data: dict[str, Any]) -> Table:
    """Show costs and balances of labels beside those of the paper."""
    lines = []
    for name, part in data.items():
        lines.append([f"{name}, the sample itself", *"--", part["balance"], *"------"])
        for method, row in part["rows"].items():
            paper = TABLE_3.get((name, method), "---")
            spread = f" +- {row['deviations']['ncut']:.2g}" if "deviations" in row else ""
            admm = part["rows"][ADMM]["seconds"]
            speed = ratio(row["seconds"], admm) if "seconds" in row else "-"
            theirs = ratio(TABLE_2[name][1], TABLE_2[name][2]) if method == EXACT else "-"
            cells = [f"{row['ncut']:.3g}{spread}", paper[0], row["mean"], paper[1], row["worst"]]
            cells += [paper[2], speed, theirs, row.get("violation", "-")]
            lines.append([f"{name}, {method}", *cells])
    columns = [
        "data, method",
        "normalised cut",
        "/ cost in the paper",
        "average balance",
        "/ paper",
    ]
    columns += ["minimum balance", "/ paper", "time / DC-ADMM", "/ paper", "|Q'H|"]
    return Table("Tables 3 and 8: labels of k-means on the embedding", columns, lines)


def table_5(rows: Sequence[dict[str, Any]]) -> Table:
    """Show DC-ADMM by the first alpha; an 11 says that ten iterations were not enough."""
    columns = ["first alpha", f"iterations to |R| <= {STOP_5:g}", "/ paper", "relaxed cost"]
    columns += ["/ exact", "/ cost in the paper", "average balance", "/ paper"]
    columns += ["|F'H|^2", "/ paper"]
    lines = []
    for row in rows:
        steps, cost, balance, fairness, orthogonality = TABLE_5[row["alpha"]]
        cells = [row["alpha"], row["iterations"], steps, row["cost"], row["exact"], cost]
        cells += [row["balance"], balance, row["fairness"], fairness]
        lines.append([*cells, row["orthogonality"], orthogonality])
    n, k = rows[0]["n"], rows[0]["k"]
    title = f"Table 5: DC-ADMM on RandLaplace, n={n}, k={k}, means over the seeds"
    return Table(title, [*columns, "|H'H - I|^2", "/ paper"], lines)


def growth(by_k: dict[str, Any]) -> Table:
    """Show the exponents of n between the smallest and the largest sample."""
    lines = []
    for k, by_n in by_k.items():
        first, last = min(by_n, key=int), max(by_n, key=int)
        line: list[Any] = [f"k = {k}"]
        for i, name in enumerate(SOLVERS):
            if name in by_n[last]:
                grown = by_n[last][name]["seconds"] / by_n[first][name]["seconds"]
                line.append(digits(math.log(grown) / math.log(int(last) / int(first))))
            else:
                line.append("-")
            if name != OURS:
                paper = TABLE_6[int(k)]
                line.append(digits(math.log2(paper[10000][i] / paper[5000][i])))
        lines.append(line)
    columns = ["clusters", "o-FSC", "/ paper", EXACT, "/ paper", ADMM, "/ paper", OURS]
    return Table("Table 6: time grows as n to the power of", columns, lines)


def table_9(by_k: dict[str, Any]) -> Table:
    """Show costs and balances on FacebookNet beside those of the paper."""
    lines = []
    for k, rows in by_k.items():
        balance, exact, admm = QUALITY_9[int(k)]
        for name, row in rows.items():
            paper = str({ADMM: admm, EXACT: exact, "o-FSC": exact}.get(name, "-"))
            theirs = "-" if name == OURS else balance
            printed = paper.partition(".")[2]
            off = "-" if paper == "-" else f"{row['cost'] - float(paper):.{len(printed)}f}"
            cells = [row["cost"], off, row["violation"], row.get("residual", "-")]
            lines.append([f"k = {k}, {name}", *cells, row["ncut"], row["mean"], theirs])
    columns = [
        "clusters, method",
        "relaxed cost",
        "/ minus that of the paper",
        "|Q'H|",
        "|Q'MH|",
        "normalised cut",
    ]
    return Table("Table 9: FacebookNet", [*columns, "average balance", "/ paper"], lines)


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the pictures of the parts that were measured."""
    shown = {}
    if found := cases(results):
        shown |= {"ratios": ratios(found), "constraint": constraint(found)}
    for slug, part, draw in (
        ("table-6", "table 6", figure_4),
        ("figures-2-9", "figures 2 and 9", draw_planes),
        ("figures-6-7", "figures 6-7", draw_by_k),
        ("figures-3-8", "figures 3-8", draw_by_k),
    ):
        if part in results:
            shown[slug] = draw(results[part])
    return shown


def cases(results: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
    """Return label, results and the paper's seconds of the largest cases of all tables."""
    found = []
    if by_n := results.get("table 1"):
        n, rows = max(by_n.items(), key=lambda item: int(item[0]))
        found.append((f"{MSBM}, n={n}", rows, TABLE_1.get(int(n))))
    for k, by_n in results.get("table 6", {}).items():
        n = max(by_n, key=int)
        found.append((f"RandLaplace, n={n}, k={k}", by_n[n], TABLE_6[int(k)].get(int(n))))
    for name, data in results.get("tables 2 and 3", {}).items():
        found.append((f"{name}, n={data['n']}", data["rows"], TABLE_2[name]))
    for k, rows in results.get("table 9", {}).items():
        found.append((f"FacebookNet, k={k}", rows, TABLE_9[int(k)]))
    return found


Cases = list[tuple[str, dict[str, Any], Any]]


def ratios(found: Cases) -> Any:
    """Draw how many times the seconds of s-FSC are those of DC-ADMM and of ours."""
    from matplotlib import pyplot as plt

    rows = found[::-1]
    kinds = {
        "DC-ADMM, measured": (
            "o",
            lambda found, _: found[EXACT]["seconds"] / found[ADMM]["seconds"],
        ),
        "DC-ADMM, in the paper": ("D", lambda _, paper: paper[1] / paper[2] if paper else math.nan),
        f"{SHOWN_AS}, measured": (
            "s",
            lambda found, _: found[EXACT]["seconds"] / found[OURS]["seconds"],
        ),
    }
    figure, axes = plt.subplots(figsize=(6.5, 0.35 * len(rows) + 0.9))
    for label, (marker, of) in kinds.items():
        points = [of(found, paper) for _, found, paper in rows]
        axes.plot(points, range(len(rows)), marker, label=label)
    axes.axvline(1, color="0.6", linewidth=0.8)
    axes.set(xscale="log", xlabel="seconds of s-FSC / seconds (right of 1: faster than s-FSC)")
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    plt.close(figure)
    return figure


def figure_4(by_k: dict[str, Any]) -> Any:
    """Draw seconds by n, one panel per k: measured with lines, in the paper with dashes."""
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(1, len(by_k), figsize=(3.4 * len(by_k), 3.2), squeeze=False)
    for axes, (k, by_n) in zip(panels[0], by_k.items(), strict=True):
        for i, name in enumerate(SOLVERS):
            sizes = [int(n) for n, rows in by_n.items() if name in rows]
            seconds = [rows[name]["seconds"] for rows in by_n.values() if name in rows]
            axes.plot(sizes, seconds, "o-", color=f"C{i}", label=name.replace(OURS, SHOWN_AS))
            if name != OURS:
                theirs = [row[i] for row in TABLE_6[int(k)].values()]
                axes.plot(list(TABLE_6[int(k)]), theirs, ".--", color=f"C{i}", alpha=0.6)
        axes.set(xscale="log", yscale="log", xlabel="n", title=f"RandLaplace, k = {k}")
        axes.set_xticks(ticks := [1250, 2500, 5000, 10000], [str(n) for n in ticks])
        axes.minorticks_off()
    panels[0, 0].set_ylabel("seconds (dashed: paper)")
    panels[0, len(by_k) // 2].legend(fontsize="small")
    figure.tight_layout()
    plt.close(figure)
    return figure


def constraint(found: Cases) -> Any:
    """Draw how far DC-ADMM is from the group constraint after each iteration."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 3.6))
    for label, rows, _ in found:
        path = rows[ADMM]["path"]
        axes.plot(range(1, len(path) + 1), path, ".-", label=label)
    axes.set(yscale="log", xlabel="iteration of DC-ADMM", ylabel="|Q'H| (exact solvers: 1e-15)")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    plt.close(figure)
    return figure
