"""The fair k-means paper (safairkm): its fronts, the role of the pairs, and the time per solution.

Three methods look for the front of cost against balance: the paper's own (SAfairKM, Algorithm 3,
``ParetoFairKMeans(solver="swap")``), the variational method that it compares with, and prices, the
default of ``ParetoFairKMeans``. Costs are mean squared distances to the clusters' means (f_1 of
(2)), balances are absolute. Every hypervolume has the same reference point: the cost of a single
cluster (the total variance) at balance 0. It is divided by the box up to the ideal point: the cost
of k-means at the balance of the data.
"""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.harness import Table, measure_parts, timed
from benchmarks.papers._safairkm_data import (
    REAL,
    SETTINGS,
    SYNTHETIC,
    Setting,
    is_synthetic,
    points_of,
    prepared,
)
from benchmarks.swap import PlainSearch
from benchmarks.variational import WEIGHTS, variational_front
from skfair.cluster import ParetoFairKMeans
from skfair.metrics import balance_score, hypervolume, kmeans_cost, nondominated
from skfair.papers import Swap
from skfair.papers.safairkm.swap import PAIRS
from skfair.papers.safairkm.swap_front import SwapFront

SEEDS = (3100, 3101, 3102)
SAFAIRKM, VARIATIONAL, RAW, PRICES = "SAfairKM", "variational", "variational, raw", "prices"
# The published method prepares the synthetic points as it does real data; RAW leaves them alone.
METHODS = (SAFAIRKM, VARIATIONAL, RAW, PRICES)
COLOURS = dict(zip(METHODS, ("tab:blue", "tab:orange", "tab:red", "tab:green"), strict=True))
# What the published scripts use for the synthetic sets.
SYNTHETIC_PAIRS = ((1, 1), (5, 1), (2, 0))
# Far more k-means steps than swaps, something between, far more swaps; the paper names no numbers.
FIGURE_4_PAIRS = ((50, 1), (10, 1), (1, 10))
N_CURVE = 40


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    seeds, share = (SEEDS[:1], 0.05) if quick else (SEEDS, 1.0)
    n_rows = 1000 if quick else 5000
    real = {name: one for name, one in REAL.items() if not quick or name == "Bank (K=5)"}
    shown = {setting.figure: name for name, setting in (SYNTHETIC | real).items()}
    compare(SYNTHETIC["Syn_equal_ds1"], SEEDS[:1], 0.01)  # compiles
    found = measure_parts(
        {
            **{
                figure: partial(compare, SETTINGS[name], seeds, share, n_rows)
                for figure, name in shown.items()
            },
            "figure 4": partial(figure_4, seeds, share),
            "figure 7": partial(figure_7, SYNTHETIC["Syn_unequal_ds2"], share),
        },
        only,
    )
    fronts = {shown[figure]: found.pop(figure) for figure in [*found] if figure in shown}
    results = found | ({"fronts": fronts} if fronts else {})
    return results | {"seeds": list(seeds)} if results else {}


def canary() -> list[dict[str, Any]]:
    """Return the results of a small cell."""
    return figure_7(SYNTHETIC["Syn_unequal_ds2"], 1.0)


class Front(NamedTuple):
    """Points of which none dominates another, and what the search for them took."""

    costs: Any
    balances: Any
    cpu: float
    history: dict[str, Any]


def compare(
    setting: Setting, seeds: Sequence[int], share: float, n_rows: int = 5000
) -> dict[str, Any]:
    """Run all methods in turn, for ``share`` of the full lengths; figures are medians of seeds."""
    X, codes = points_of(setting, n_rows)
    n_clusters = setting.n_clusters
    single = float(X.var(axis=0).sum())
    sizes = np.bincount(codes)
    best = float(sizes.min() / sizes.max())
    runs = [fronts_of(setting, X, codes, seed, share) for seed in seeds]
    plain = KMeans(n_clusters, n_init=10, random_state=0).fit(X).inertia_ / len(X)
    # No method is cheaper than "k-means": the best of ten runs, or what a front has found.
    cheapest = min(plain, *(front.costs[0] for run in runs for front in run.values()))

    def area(front: Any, ideal_cost: float = cheapest) -> float:
        return hypervolume(
            front.costs, front.balances, ref_cost=single, ideal_cost=ideal_cost, ideal_balance=best
        )

    def price(front: Any, part: float) -> float | None:
        enough = front.costs[front.balances >= part * best * (1 - 1e-12)]
        return float(enough.min() / cheapest - 1) if enough.size else None

    methods = {}
    for method, first in runs[0].items():
        fronts = [run[method] for run in runs]
        shown = np.unique(np.linspace(0, len(first.costs) - 1, N_CURVE).astype(int))
        methods[method] = {
            "points": median(len(front.costs) for front in fronts),
            "hypervolume": rounded(median(map(area, fronts))),
            "lowest cost": rounded(median(front.costs[0] for front in fronts) / cheapest),
            "highest balance": rounded(median(front.balances[-1] for front in fronts) / best),
            "price of half": middle([price(front, 0.5) for front in fronts]),
            "price of 90 %": middle([price(front, 0.9) for front in fronts]),
            "cpu": rounded(median(front.cpu for front in fronts)),
            "cpu per point": rounded(median(front.cpu / len(front.costs) for front in fronts)),
            "costs": rounded(first.costs[shown]),
            "balances": rounded(first.balances[shown]),
        }
    # The history of SAfairKM counts the area from cost 0, so that of the rival is taken likewise.
    reached = []
    for run in runs:
        history = run[SAFAIRKM].history
        there = np.flatnonzero(history["hypervolume"] >= area(run[VARIATIONAL], 0.0))
        reached.append(float(history["seconds"][there[0]]) if there.size else None)
    return {
        "cost of k-means": rounded(cheapest),
        "reference cost": rounded(single),
        "balance of data": rounded(best),
        "methods": methods,
        "coverage": {f"{a} / {b}": rounded(median(covered(run, a, b) for run in runs))
                     for a in methods for b in methods if a != b},
        "cpu to reach the variational hypervolume": middle(reached),
    }  # fmt: skip


def fronts_of(setting: Setting, X: Any, codes: Any, seed: int, share: float) -> dict[str, Front]:
    """Return the front of each method for one seed."""
    n_clusters = setting.n_clusters

    def swap() -> tuple[Any, ...]:
        found = run_swap(setting, X, codes, seed, share)
        return found.costs, found.balances, found.history

    def variational(points: Any) -> tuple[Any, ...]:
        weights = (0.0, *WEIGHTS)
        if is_synthetic(setting):
            weights = (0.0, *np.geomspace(WEIGHTS[0], WEIGHTS[-1], 19))
        if share < 1:
            weights = weights[::4]
        found = variational_front(points, codes, n_clusters, weights=weights, seed=seed)
        labels = [point["labels"] for point in found]
        costs = np.array([kmeans_cost(X, row, mean=True) for row in labels])
        balances = np.array([balance_score(row, sensitive_features=codes) for row in labels])
        kept = np.flatnonzero(nondominated(costs, balances))
        kept = kept[np.argsort(costs[kept])]
        return costs[kept], balances[kept], {}

    def prices() -> tuple[Any, ...]:
        model = ParetoFairKMeans(
            n_clusters, balances=41 if share == 1 else 9, random_state=seed
        ).fit(X, sensitive_features=codes)
        return model.costs_ / len(X), model.balances_, {}

    competitors: dict[str, Callable[[], Any]] = {SAFAIRKM: swap}
    if is_synthetic(setting):
        competitors[VARIATIONAL] = lambda: variational(prepared(X))
        competitors[RAW] = lambda: variational(X)
    else:
        competitors[VARIATIONAL] = lambda: variational(X)
    competitors[PRICES] = prices
    fronts = {}
    for method, run in competitors.items():
        cpu, (costs, balances, history) = timed(run)
        fronts[method] = Front(costs, balances, cpu, history)
    return fronts


def run_swap(setting: Setting, X: Any, codes: Any, seed: int, share: float) -> SwapFront:
    """Run SAfairKM with the pairs of the paper's scripts and its number of starting labels."""
    solver = Swap(
        pairs=SYNTHETIC_PAIRS if is_synthetic(setting) else PAIRS,
        n_starts=10 if is_synthetic(setting) else 30,
    )
    n_iter = max(2, int(share * setting.max_iter))
    n_groups = int(codes.max()) + 1
    return solver.search(X, codes, setting.n_clusters, n_groups, max_iter=n_iter, random_state=seed)


def covered(run: dict[str, Front], a: str, b: str) -> float:
    """Return the share of the points of b that a point of a equals or dominates.

    The two sum squares in different orders, so equal labellings may differ in the last digits.
    """
    costs = run[a].costs * (1 - 1e-9), run[b].costs
    balances = run[a].balances * (1 + 1e-9), run[b].balances
    is_covered = (costs[0][:, None] <= costs[1]) & (balances[0][:, None] >= balances[1])
    return float(is_covered.any(axis=0).mean())


def figure_4(seeds: Sequence[int], share: float) -> dict[str, Any]:
    """Follow one labelling by each pair, for 3000 / (n_a + n_b) iterations from random labels.

    The steps are those of the library in plain numpy: its own descent reports whole passes only.
    """
    X, codes = points_of(SYNTHETIC["Syn_equal_ds1"])
    results = {}
    for n_a, n_b in FIGURE_4_PAIRS:
        n_iter = max(4, int(share * 3000 / (n_a + n_b)))
        courses = []
        for seed in seeds:
            search = PlainSearch(X, codes, 2, 2, seed)
            labels = search.rng.integers(2, size=len(X))
            course = []
            for _ in range(n_iter):
                labels, cost, balance = search.child(labels, n_a, n_b, 1)
                course.append((cost, balance))
            courses.append(np.array(course))
        shown = np.unique(np.linspace(0, n_iter - 1, N_CURVE).astype(int))
        last = [course[n_iter // 2 :].mean(axis=0) for course in courses]
        results[f"({n_a}, {n_b})"] = {
            "iterations": n_iter,
            "cost": rounded(median(row[0] for row in last)),
            "balance": rounded(median(row[1] for row in last)),
            "steps": ((shown + 1) * (n_a + n_b)).tolist(),
            "costs": rounded(courses[0][shown, 0]),
            "balances": rounded(courses[0][shown, 1]),
        }
    return results


def figure_7(setting: Setting, share: float) -> list[dict[str, Any]]:
    """Return the two ends of a front of SAfairKM, and its point nearest to balance 0.17."""
    X, codes = points_of(setting)
    found = run_swap(setting, X, codes, SEEDS[0], share)
    between = int(np.abs(found.balances - 0.17).argmin())
    return [
        {
            "cost": rounded(found.costs[i]),
            "balance": rounded(found.balances[i]),
            "labels": "".join(map(str, found.labels[i])),
        }
        for i in (0, between, len(found.costs) - 1)
    ]


def rounded(values: Any) -> Any:
    """Return numbers with five digits."""
    if np.ndim(values):
        return [rounded(value) for value in values]
    return float(f"{float(values):.5g}")


def middle(values: Sequence[float | None]) -> float | None:
    """Return the median, or None if most seeds have no value."""
    value = median(np.inf if value is None else value for value in values)
    return rounded(value) if np.isfinite(value) else None


def tables(results: dict[str, Any]) -> dict[str, Table]:
    fronts = results.get("fronts", {})

    def word(value: float | None, unit: float = 1.0) -> Any:
        return "none" if value is None else unit * value

    quality, dominance, seconds = [], [], []
    for name, result in fronts.items():
        for method, found in result["methods"].items():
            quality.append([
                f"{name}, {method}", found["points"], found["hypervolume"],
                found["lowest cost"], found["highest balance"],
                word(found["price of half"], 100), word(found["price of 90 %"], 100), found["cpu"],
            ])  # fmt: skip
        dominance.append([name] + [
            result["coverage"][f"{a} / {b}"]
            for a, b in ((SAFAIRKM, VARIATIONAL), (VARIATIONAL, SAFAIRKM), (PRICES, VARIATIONAL),
                         (VARIATIONAL, PRICES), (PRICES, SAFAIRKM), (SAFAIRKM, PRICES))
        ])  # fmt: skip
        per_point = [
            result["methods"][method]["cpu per point"] for method in (SAFAIRKM, VARIATIONAL, PRICES)
        ]
        paper = SETTINGS[name].paper_seconds
        seconds.append([
            name, *(1000 * value for value in per_point), per_point[1] / per_point[0],
            paper[1] / paper[0], per_point[1] / per_point[2],
            result["methods"][VARIATIONAL]["cpu"],
            word(result["cpu to reach the variational hypervolume"]),
        ])  # fmt: skip
    shown = {
        "fronts": Table(
            "Figures 1, 3, 5 to 8: fronts (medians of the seeds)",
            ("data, method", "points", "hypervolume", "lowest cost / k-means",
             "highest balance / data", "extra cost at 50% balance, %", "/ at 90%", "CPU seconds"),
            quality,
        ),
        "dominance": Table(
            "share of the points of the second front that the first covers",
            ("data", "SAfairKM / variational", "variational / SAfairKM", "prices / variational",
             "variational / prices", "prices / SAfairKM", "SAfairKM / prices"),
            dominance,
        ),
        "seconds": Table(
            "Table 1: CPU time per nondominated solution",
            ("data", "milliseconds: SAfairKM", "/ variational", "/ prices",
             "variational / SAfairKM", "/ paper", "variational / prices",
             "seconds of variational, whole front", "/ of SAfairKM, same hypervolume"),
            seconds,
        ),
        "pairs": Table(
            "Figure 4: cost and balance by pair (mean of the second half)",
            ("(n_a, n_b)", "iterations", "cost", "balance"),
            [[pair, run["iterations"], run["cost"], run["balance"]]
             for pair, run in results.get("figure 4", {}).items()],
        ),
    }  # fmt: skip
    return {slug: table for slug, table in shown.items() if table.rows}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    import matplotlib.pyplot as plt

    fronts = results.get("fronts", {})
    figures = {}
    for slug, names in (("synthetic", SYNTHETIC), ("real", REAL)):
        names = [name for name in names if name in fronts]
        if names:
            figure, axes = plt.subplots(2, 2, figsize=(10, 7.5), layout="constrained")
            for axis, name in zip(axes.flat, names, strict=False):
                draw_front(axis, name, fronts[name])
            for axis in axes.flat[len(names) :]:
                axis.set_axis_off()
            axes.flat[0].legend(frameon=False, fontsize="small")
            plt.close(figure)
            figures[slug] = figure
    if "figure 4" in results:
        figures["pairs"] = draw_pairs(results["figure 4"])
    if "figure 7" in results:
        figures["clusterings"] = draw_clusterings(results["figure 7"])
    return figures


def draw_front(axis: Any, name: str, result: dict[str, Any]) -> None:
    for method, found in result["methods"].items():
        alone = {"marker": "o", "ms": 11, "mfc": "none"} if len(found["costs"]) == 1 else {}
        style = {"marker": ".", "ms": 4, "lw": 0.8, "drawstyle": "steps-post"} | alone
        axis.plot(found["costs"], found["balances"], color=COLOURS[method], label=method, **style)
    axis.axhline(result["balance of data"], color="0.7", lw=0.8, ls=":")
    axis.set(title=f"{name}, {SETTINGS[name].figure}", xlabel="cost", ylabel="balance")


def draw_pairs(runs: dict[str, Any]) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for pair, run in runs.items():
        for axis, key in zip(axes, ("costs", "balances"), strict=True):
            axis.plot(run["steps"], run[key], label=pair)
    for axis, key in zip(axes, ("cost", "balance"), strict=True):
        axis.set(xlabel="k-means steps and swaps", ylabel=key)
    axes[0].legend(title="$(n_a, n_b)$", frameon=False)
    plt.close(figure)
    return figure


def draw_clusterings(points: list[dict[str, Any]]) -> Any:
    import matplotlib.pyplot as plt

    X, codes = points_of(SYNTHETIC["Syn_unequal_ds2"])
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
    for axis, point, letter in zip(axes, points, "bcd", strict=True):
        labels = np.array(list(map(int, point["labels"])))
        for group, marker in ((0, "o"), (1, "^")):
            for cluster, colour in ((0, "tab:blue"), (1, "tab:orange")):
                here = (codes == group) & (labels == cluster)
                axis.scatter(*X[here].T, marker=marker, color=colour, s=12, alpha=0.7)
        axis.set(title=f"({letter}) balance {point['balance']:.2f}, cost {point['cost']:.2f}")
    plt.close(figure)
    return figure
