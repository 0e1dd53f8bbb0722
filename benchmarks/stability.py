"""How many new people get another decision if a model is fitted again with other random numbers.

Each method is fitted again with other seeds, other folds, samples of 80% of the rows, a column in
another unit, the columns in reverse order and the rows in another order. Nothing that is known of
a person changes, so a changed decision has no reason that the person could be given. Counted are
the new people whose decisions differ between two fits: for all pairs of seeds, of deals of folds
and of samples, and against the first fit for units and orders. Methods that draw decisions at
random also change with the seed of ``predict`` alone. Other methods get the limit at which the
disparity of their decisions for the new people is nearest to the one of skfair.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import r2_score

from benchmarks._drawing import rows_of_dots, small
from benchmarks._stability_data import (
    N_DOCUMENTS,
    Problem,
    Rows,
    cluster_problems,
    decision_problems,
    number_problems,
    query_problems,
)
from benchmarks._stability_ways import (
    DP,
    EO,
    INTERVAL,
    Fitted,
    Way,
    cluster_ways,
    decision_ways,
    fair_decisions,
    number_ways,
    query_ways,
)
from benchmarks.harness import Table, kept, timed
from skfair.metrics import (
    balance_score,
    demographic_parity_difference,
    equalized_odds_difference,
    kmeans_cost,
    pair_error_gap,
    partial_statistical_parity_gap,
    wasserstein_gap,
)

UNIT = 2.54  # centimetres of an inch
Outputs = np.ndarray
Row = dict[str, Any]


class Plan(NamedTuple):
    """The number of fits of each kind."""

    seeds: int
    folds: int
    samples: int


FULL, QUICK = Plan(5, 4, 4), Plan(2, 0, 2)


class Task(NamedTuple):
    """The change between two outputs, and how good and how unequal an output is."""

    changed: Callable[[Outputs, Outputs], Sequence[float]]
    judged: Callable[[Way, Fitted, Rows, Outputs], tuple[float, float]]


# What changes between two outputs for the same people.


def other_decisions(a: Outputs, b: Outputs) -> list[float]:
    """Return the share of people with another decision."""
    return [float(np.mean(a != b))]


def other_numbers(a: Outputs, b: Outputs) -> list[float]:
    """Return the mean change in standard deviations, and the share that crosses the median."""
    crosses = (a > np.median(a)) != (b > np.median(a))
    return [float(np.mean(np.abs(a - b)) / np.std(a)), float(np.mean(crosses))]


def other_clusters(a: Outputs, b: Outputs) -> list[float]:
    """Return the share of people in another cluster, with the names that agree best."""
    together = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    np.add.at(together, (a, b), 1)
    return [float(1 - together[linear_sum_assignment(-together)].sum() / a.size)]


def other_order(a: Outputs, b: Outputs) -> list[float]:
    """Return the share of pairs of documents of a query that stand in another order."""
    i, j = np.triu_indices(N_DOCUMENTS, k=1)
    first, second = (scores.reshape(-1, N_DOCUMENTS) for scores in (a, b))
    return [float(np.mean((first[:, i] > first[:, j]) != (second[:, i] > second[:, j])))]


# How good outputs are, and how much groups differ.


def of_decisions(way: Way, fitted: Fitted, new: Rows, decided: Outputs) -> tuple[float, float]:
    """Return the accuracy and the disparity that the way limits."""
    groups = {"sensitive_features": new.groups}
    if fitted.scores is not None:
        disparity = partial_statistical_parity_gap(
            None, fitted.scores(new), interval=INTERVAL, **groups
        )
    elif way.rule == EO:
        disparity = equalized_odds_difference(new.y, decided, **groups)
    else:
        disparity = demographic_parity_difference(None, decided, **groups)
    return float(np.mean(decided == new.y)), float(disparity)


def of_numbers(way: Way, fitted: Fitted, new: Rows, found: Outputs) -> tuple[float, float]:
    """Return R2 and the distance between the groups' distributions of predictions."""
    gap = wasserstein_gap(None, found, sensitive_features=new.groups)
    return float(r2_score(new.y, found)), float(gap)


def of_clusters(way: Way, fitted: Fitted, new: Rows, labels: Outputs) -> tuple[float, float]:
    """Return the share of the variance within clusters, and what the balance lacks."""
    within = kmeans_cost(new.X, labels, mean=True) / new.X.var(axis=0).sum()
    balance = balance_score(labels, sensitive_features=new.groups, relative=True)
    return float(within), float(1 - balance)


def of_rankings(way: Way, fitted: Fitted, new: Rows, scores: Outputs) -> tuple[float, float]:
    """Return the share of pairs in the right order, and the mean gap of the queries."""
    i, j = np.triu_indices(N_DOCUMENTS, k=1)
    grades, found = (v.reshape(-1, N_DOCUMENTS) for v in (new.y, scores))
    differ = grades[:, i] != grades[:, j]
    right = (grades[:, i] > grades[:, j]) == (found[:, i] > found[:, j])
    gap = pair_error_gap(new.y, scores, query_id=new.query, sensitive_features=new.groups)
    return float(right[differ].mean()), float(gap)


TASKS = {
    "decisions": Task(other_decisions, of_decisions),
    "numbers": Task(other_numbers, of_numbers),
    "clusters": Task(other_clusters, of_clusters),
    "rankings": Task(other_order, of_rankings),
}


def samples(rows: Rows, n: int) -> list[np.ndarray]:
    """Return n samples of 80% of the rows, or of the queries."""
    units = np.arange(rows.y.size) if rows.query is None else rows.query
    names, found = np.unique(units), []
    for seed in range(n):
        rng = np.random.default_rng([seed, names.size])
        drawn = rng.choice(names, int(0.8 * names.size), replace=False)
        found.append(np.flatnonzero(np.isin(units, drawn)))
    return found


def in_another_unit(X: np.ndarray) -> np.ndarray:
    """Return the columns with the first one in another unit."""
    return X * np.where(np.arange(X.shape[1]) == 0, UNIT, 1.0)


def reversed_columns(X: np.ndarray) -> np.ndarray:
    """Return the columns in reverse order."""
    return X[:, ::-1]


def measured(
    kind: str, problem: Problem, way: Way, plan: Plan, target: float | None = None
) -> dict[str, Any]:
    """Fit a way again and again, and count what changes for the new people."""
    task, (_, train, new), seconds = TASKS[kind], problem, []
    judged: list[tuple[float, float]] = []
    certified: list[bool] = []

    def fitted(rows: Rows, limit: float, seed: int = 0, folds: int | None = None) -> Fitted:
        cpu, found = timed(lambda: way.fit(rows, seed, folds, limit))
        seconds.append(cpu)
        return found

    def output(found: Fitted, people: Rows, seed: int = 0) -> Outputs:
        made = np.asarray(found.predict(people, seed))
        judged.append(task.judged(way, found, people, made))
        if found.is_certified is not None:
            certified.append(found.is_certified)
        return made

    limit = way.limits[0]
    if len(way.limits) > 1 and target is not None:
        reached = {}
        for one in way.limits:
            found = fitted(train, one)
            reached[one] = task.judged(way, found, new, np.asarray(found.predict(new, 0)))[1]
        limit = min(reached, key=lambda one: abs(reached[one] - target))
        seconds.clear()

    first = fitted(train, limit)
    base = output(first, new)
    if "seed" in way.varied:
        seeds = [base, *(output(fitted(train, limit, k), new) for k in range(1, plan.seeds))]
    elif "predict" in way.varied:
        seeds = [base, *(output(first, new, k) for k in range(1, plan.seeds))]
    else:
        seeds = []
    several = {
        "seed": seeds,
        "folds": [
            output(fitted(train, limit, folds=folds), new)
            for folds in range(plan.folds)
            if "folds" in way.varied
        ],
        "samples": [
            output(fitted(train.at(rows), limit), new) for rows in samples(train, plan.samples)
        ],
    }
    changes = {
        name: [task.changed(a, b) for a, b in combinations(found, 2)]
        for name, found in several.items()
        if found
    }
    for name, turned in (("unit", in_another_unit), ("columns", reversed_columns)):
        found = fitted(train.with_columns(turned(train.X)), limit)
        changes[name] = [task.changed(base, output(found, new.with_columns(turned(new.X))))]
    order = np.random.default_rng(train.y.size).permutation(train.y.size)
    changes["rows"] = [task.changed(base, output(fitted(train.at(order), limit), new))]
    score, disparity = np.mean(judged, axis=0).tolist()
    return {
        "problem": problem.name,
        **{"name": way.name, "kind": way.kind, "model": way.model, "rule": way.rule},
        "limit": limit,
        "changes": {
            name: {
                "mean": np.mean(pairs, axis=0).tolist(),
                "largest": np.max(pairs, axis=0).tolist(),
            }
            for name, pairs in changes.items()
        },
        **{"score": score, "disparity": disparity, "cpu": median(seconds)},
        "certified": float(np.mean(certified)) if certified else None,
    }


def main(*, quick: bool = False) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # of limits that few rows cannot show
    plan = QUICK if quick else FULL
    ways, absent = decision_ways()
    if quick:
        ways = [
            way
            for way in ways
            if (way.model != "boosting" and (way.rule, way.kind) != (EO, "group-blind"))
            or way.name == "without a limit"
        ]
    parts = {
        "decisions": (decision_problems, ways),
        "numbers": (number_problems, number_ways()),
        "clusters": (cluster_problems, cluster_ways()),
        "rankings": (query_problems, query_ways()),
    }
    results: dict[str, Any] = {"plan": plan._asdict(), "absent": absent}
    for kind, (problems, some) in parts.items():
        results[kind] = []
        for problem in problems(quick):
            reached: dict[tuple[str, str, str], float] = {}
            for way in some:
                cell = way.kind, way.model, way.rule
                row = kept(
                    f"stability-{kind}-{problem.name}-{way.title}",
                    lambda: measured(kind, problem, way, plan, reached.get(cell)),  # noqa: B023
                    quick=quick,
                )
                reached.setdefault(cell, row["disparity"])
                results[kind].append(row)
            print(f"   {kind}, {problem.name}: done", flush=True)
    return results


def canary() -> list[Row]:
    """Return the results of a small cell."""
    parts = {
        "decisions": (decision_problems(False)[0], fair_decisions("logistic", DP, True, None)),
        "numbers": (number_problems(False)[0], number_ways()[0]),
        "clusters": (cluster_problems(False)[0], cluster_ways()[0]),
    }
    return [measured(kind, *pair, FULL) for kind, pair in parts.items()]


def mean_of(rows: Sequence[Row], variation: str, *, what: str = "mean", part: int = 0) -> float:
    """Return the mean change of some rows, or the largest one."""
    found = [row["changes"][variation][what][part] for row in rows if variation in row["changes"]]
    if not found:
        return float("nan")
    return float(np.mean(found) if what == "mean" else np.max(found))


def chosen(results: Mapping[str, Any], name: str, **wanted: str) -> list[Row]:
    """Return the rows of a method with two classes."""
    return [
        row
        for row in results["decisions"]
        if row["name"] == name and all(row[key] == value for key, value in wanted.items())
    ]


FAIR = "FairDecisionClassifier"


def numbers(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many new people get another decision, means over models and problems."""
    blind, aware = (chosen(results, FAIR, kind=f"group-{how}") for how in ("blind", "aware"))
    free = chosen(results, "without a limit")
    trained = chosen(results, "ConstrainedERMClassifier")
    drawn = {
        "thresholds": chosen(results, "ThresholdOptimizer"),
        "reduction": chosen(results, "ExponentiatedGradient"),
    }
    clusters = {row["name"]: [] for row in results["clusters"]}
    for row in results["clusters"]:
        clusters[row["name"]].append(row)
    return {
        "blind_seed": mean_of(blind, "seed"),
        "blind_largest": mean_of(blind, "seed", what="largest"),
        "blind_columns": mean_of(blind, "columns"),
        "blind_samples": mean_of(blind, "samples"),
        "aware_seed": mean_of(aware, "seed"),
        "aware_columns": mean_of(aware, "columns"),
        "aware_samples": mean_of(aware, "samples"),
        "trained_seed": mean_of(trained, "seed"),
        "trained_samples": mean_of(trained, "samples"),
        "free_samples": mean_of(free, "samples"),
        **{f"{name}_predict": mean_of(rows, "seed") for name, rows in drawn.items()},
        **{f"{name}_samples": mean_of(rows, "samples") for name, rows in drawn.items()},
        "clusters_seed": mean_of(clusters["FairKMeans"], "seed"),
        "k_means_seed": mean_of(clusters["KMeans of scikit-learn"], "seed"),
    }


def percent(share: float) -> str:
    """Return a share in percent with at most three digits."""
    return "-" if np.isnan(share) else f"{share:.1%}" if share < 0.9995 else "100%"


CHANGES = [
    *("seed: mean", "/ largest", "folds: mean", "80% samples: mean", "/ largest"),
    *("unit", "/ columns", "/ rows"),
]


def cells_of(rows: Sequence[Row]) -> list[str]:
    """Return the cells of a table under ``CHANGES``."""
    return [
        percent(mean_of(rows, "seed")),
        percent(mean_of(rows, "seed", what="largest")),
        percent(mean_of(rows, "folds")),
        percent(mean_of(rows, "samples")),
        percent(mean_of(rows, "samples", what="largest")),
        *(percent(mean_of(rows, name)) for name in ("unit", "columns", "rows")),
    ]


def ends_of(rows: Sequence[Row]) -> list[float]:
    """Return the means of score, disparity and CPU seconds."""
    return [float(np.mean([row[key] for row in rows])) for key in ("score", "disparity", "cpu")]


def grouped(rows: Sequence[Row], *keys: str) -> dict[tuple[str, ...], list[Row]]:
    """Return the rows by some of their words, in order of appearance."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found


def named(rows: Sequence[Row]) -> str:
    """Return the name of a method, with the share of its fits that are certified."""
    shares = [row["certified"] for row in rows if row["certified"] is not None]
    return rows[0]["name"] + (f" ({np.mean(shares):.0%} of the fits)" if shares else "")


SHORT = {"demographic_parity": "DP", "equalized_odds": "EO"}


def decision_table(results: Mapping[str, Any], kind: str) -> Table:
    """Show the methods that use the group, or do not, with the models themselves."""
    rows = [row for row in results["decisions"] if row["kind"] in (kind, "")]
    by_way = grouped(rows, "rule", "model", "name")
    shown = [
        [
            ", ".join(part for part in (SHORT.get(rule, rule), model) if part),
            named(some),
            *cells_of(some),
            *ends_of(some),
        ]
        for (rule, model, _), some in sorted(by_way.items(), key=lambda item: item[0][:2])
    ]
    columns = ["constraint, model", "/ method", *CHANGES, "accuracy", "/ disparity", "CPU seconds"]
    return Table(f"Share of people with another decision, {kind}", columns, shown)


def problem_table(results: Mapping[str, Any]) -> Table:
    """Show the main methods by problem, means over models and constraints."""
    names = (FAIR, "ThresholdOptimizer", "ExponentiatedGradient", "without a limit")
    rows = [row for row in results["decisions"] if row["name"] in names]
    by_problem = grouped(rows, "problem", "name", "kind")
    shown = [
        [problem, ", ".join(part for part in (name, kind) if part), *cells_of(some), *ends_of(some)]
        for (problem, name, kind), some in by_problem.items()
    ]
    columns = ["data", "/ method", *CHANGES, "accuracy", "/ disparity", "CPU seconds"]
    return Table("Share of people with another decision, by data", columns, shown)


def number_table(results: Mapping[str, Any]) -> Table:
    """Show how far predicted numbers move, and how many people cross the median."""
    shown = []
    for (_, kind, model), some in grouped(results["numbers"], "name", "kind", "model").items():
        cells = [
            percent(mean_of(some, variation, part=part))
            for variation in ("seed", "folds", "samples")
            for part in (0, 1)
        ]
        orders = [percent(mean_of(some, name)) for name in ("unit", "columns", "rows")]
        words = ", ".join(part for part in (named(some), kind, model) if part)
        shown.append([words, *cells, *orders, *ends_of(some)])
    columns = ["method"]
    for variation in ("seed", "folds", "80% samples"):
        columns += [f"{variation}: change", "/ cross the median"]
    columns += ["unit", "/ columns", "/ rows", "R2", "/ disparity", "CPU seconds"]
    return Table(
        "Mean change of predicted numbers, in % of their standard deviation", columns, shown
    )


def plain_table(results: Mapping[str, Any], part: str, title: str, score: str) -> Table:
    """Show clusterings or rankings."""
    shown = [
        [name, *cells_of(some), *ends_of(some)]
        for (name,), some in grouped(results[part], "name").items()
    ]
    columns = ["method", *CHANGES, score, "/ disparity", "CPU seconds"]
    return Table(title, columns, shown)


def tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Show how many people are concerned, beside accuracy and disparity for new people."""
    return {
        "blind": decision_table(results, "group-blind"),
        "aware": decision_table(results, "group-aware"),
        "problems": problem_table(results),
        "numbers": number_table(results),
        "clusters": plain_table(
            results, "clusters", "Share of points in another cluster", "variance within clusters"
        ),
        "rankings": plain_table(
            results,
            "rankings",
            "Share of pairs of documents in another order",
            "share in the right order",
        ),
    }


def pictures(results: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the share of people with another decision, a dot for each model, constraint and data."""
    ways = {
        "skfair, group-blind": chosen(results, FAIR, kind="group-blind"),
        "skfair, trained": chosen(results, "ConstrainedERMClassifier"),
        "ExponentiatedGradient": chosen(results, "ExponentiatedGradient"),
        "skfair, group-aware": chosen(results, FAIR, kind="group-aware"),
        "ThresholdOptimizer": chosen(results, "ThresholdOptimizer"),
        "linear programme": chosen(results, "linear programme", kind="group-aware"),
        "without a limit": chosen(results, "without a limit"),
    }
    figure, axes = small(2, height=2.4, width=8.0, sharey=True)
    for axis, variation in zip(axes, ("seed", "samples"), strict=True):
        rows_of_dots(
            axis,
            {
                name: [
                    100 * row["changes"][variation]["mean"][0]
                    for row in rows
                    if variation in row["changes"]
                ]
                for name, rows in ways.items()
            },
        )
        axis.set_xlim(left=-0.5)
        axis.set_xlabel("new people with another decision, %")
    axes[0].set_title("another seed", fontsize="medium")
    axes[1].set_title("another 80% of the rows", fontsize="medium")
    return {"picture": figure}
