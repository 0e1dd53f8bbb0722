"""The gate: accuracy at equal disparity on unseen rows of real and simulated data.

``python -m benchmarks.frontier`` fits every case through the public API, and compares the results
with the record, ``records/frontier.json``. A row is one fit: its worth on test rows, its disparity
there, whether a limit that was reported as satisfied is satisfied by the training rows (counted
here), and CPU seconds. Rows of a *cell* differ in their limits and seeds; worths are interpolated
at equal test disparity. A change of how limits are enforced passes if

- no cell loses more than two standard errors and ``LOSS``,
- the mean over all cells is not below ``-ROUNDING``,
- no promise is broken that was kept.

CPU is judged only with ``--cpu``, for two runs on one quiet machine. ``--keep`` writes a new
record, ``--family`` and ``--seeds`` run a part, ``--against FILE`` compares with another run.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks import canaries
from benchmarks._drawing import name_ends, small
from benchmarks.harness import (
    OUTPUT,
    RECORDS,
    Table,
    check_threads,
    data_folder,
    quiet,
    timed,
    write,
)
from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.datasets import make_ranking_queries
from skfair.metrics import ndcg, pair_error_gap, partial_statistical_parity_gap
from skfair.ranking import FairRanker

LIMITS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12)
MODES = {False: "blind", True: "aware", "mixed": "mixed"}  # of decisions, by ``group_aware``
RULES = ("demographic_parity", "equal_opportunity", "equalized_odds")
# A cell loses only if it loses more than this; means of all cells vary by less with the seeds.
LOSS, ROUNDING = 2e-3, 2e-4
# Two runs of one tree on a quiet machine differ by less in CPU.
CPU_NOISE = 1.05
# Rows of a table that are used, three fifths of them for training.
MOST_ROWS = {"many": 30_000, "large": 200_000}
N_SEEDS = 3
Row = dict[str, Any]


class Data(NamedTuple):
    """A table of people."""

    X: Any
    y: Any
    groups: Any  # (n,), or (n, 2): two attributes
    strata: Any = None
    weights: Any = None

    def at(self, rows: Any) -> "Data":
        """Return some of the rows."""
        return Data(*(None if part is None else part[rows] for part in self))


def encoded(frame: pd.DataFrame) -> Any:
    """Return standardised columns, one for each level of a category."""
    X = pd.get_dummies(frame).astype(float)
    X = X.loc[:, X.std() > 0]
    return ((X - X.mean()) / X.std()).to_numpy()


def compas(variant: str) -> Data:
    d = pd.read_parquet(f"{data_folder()}/compas.parquet")
    columns = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
    race = np.where(d.race.isin(["African-American", "Caucasian", "Hispanic"]), d.race, "other")
    groups = {
        "compas": np.where(race == "African-American", "aa", "other"),
        "compas4": race,
        "compas_two": np.column_stack([race, d.sex.astype(str)]),
    }[variant]
    charge = d.c_charge_degree.astype(str).to_numpy()
    weights = np.random.RandomState(11).gamma(2.0, 0.5, len(d))
    X = encoded(d[[*columns, "c_charge_degree"]])
    return Data(X, d.two_year_recid.to_numpy().astype(int), groups, charge, weights)


def adult() -> Data:
    d = pd.read_parquet(f"{data_folder()}/adult.parquet").dropna()
    columns = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    columns += ["workclass", "marital-status", "occupation"]
    is_married = d["marital-status"].astype(str).str.startswith("Married").to_numpy()
    y, sex = (d.income == ">50K").to_numpy().astype(int), d.sex.astype(str).to_numpy()
    return Data(encoded(d[columns]), y, sex, np.where(is_married, "m", "s"))


def bank() -> Data:
    d = pd.read_parquet(f"{data_folder()}/bank.parquet")
    columns = ["campaign", "previous", "emp.var.rate", "cons.price.idx", "euribor3m", "job"]
    columns += ["education", "contact", "poutcome", "housing"]
    ages = np.where((d.age >= 25) & (d.age < 60), "mid", "edge")
    return Data(encoded(d[columns]), (d.y == "yes").to_numpy().astype(int), ages)


def terciles() -> Data:
    """Return three classes: communities by their crime."""
    d = pd.read_parquet(f"{data_folder()}/communities_crime.parquet")
    crime = d.ViolentCrimesPerPop
    y = np.searchsorted(np.quantile(crime, [1 / 3, 2 / 3]), crime)
    X = d.drop(columns="ViolentCrimesPerPop").select_dtypes("number").fillna(0)
    return Data(encoded(X), y, np.where(d.racepctblack >= 0.06, "b", "w"))


def crossed(n: int, levels: int) -> Data:
    """Return people of ``levels`` x ``levels`` simulated groups that differ in two columns."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, levels, n), rng.integers(0, levels, n)
    X = rng.normal(size=(n, 10))
    X[:, 0] += 0.25 * a * 6 / levels
    X[:, 1] += 0.25 * b * 6 / levels
    y = (X[:, :4].sum(1) + rng.logistic(size=n) > 1.5).astype(int)
    return Data(X, y, a * levels + b)


def twelve() -> Data:
    """Return people of twelve simulated groups."""
    data = crossed(30_000, 6)
    return data._replace(groups=data.groups % 6 * 2 + data.groups // 6 % 2)


MAKERS: dict[str, Callable[[], Data]] = {
    "adult": adult,
    "bank": bank,
    "terciles": terciles,
    "many": lambda: crossed(30_000, 6),
    "twelve": twelve,
    "large": lambda: crossed(200_000, 2),
}


@cache
def table(name: str) -> Data:
    return compas(name) if name.startswith("compas") else MAKERS[name]()


def split(name: str, seed: int) -> tuple[Data, Data]:
    """Return training and test rows."""
    data = table(name)
    rows = np.random.RandomState(seed).permutation(len(data.y))[: MOST_ROWS.get(name, 8000)]
    n_train = int(0.6 * len(rows))
    return data.at(rows[:n_train]), data.at(rows[n_train:])


class Rates(NamedTuple):
    """The disparity of a case, counted: of rates of groups, with weights."""

    rule: str
    ratio: bool = False  # 1 - the smallest ratio, in place of the largest difference
    within: bool = False  # the largest of all strata
    weighted: bool = False

    def of(self, data: Data, predicted: Any) -> float:
        """Return the largest disparity of all attributes, strata, and classes against the rest."""
        strata = data.strata if self.within else np.zeros(len(data.y))
        weights = data.weights if self.weighted else np.ones(len(data.y))
        classes = np.unique(data.y)
        seen = [
            self._of_attribute(data.y[s] == k, predicted[s] == k, groups[s], weights[s])
            for stratum in np.unique(strata)
            for s in [strata == stratum]
            for groups in (data.groups.T if data.groups.ndim == 2 else [data.groups])
            for k in (classes[1:] if len(classes) == 2 else classes)
        ]
        return max(seen)

    def _of_attribute(self, y: Any, p: Any, groups: Any, weights: Any) -> float:
        parts = {
            "demographic_parity": [np.ones(len(y), bool)],
            "equal_opportunity": [y],
            "equalized_odds": [y, ~y],
        }[self.rule]
        worst = 0.0
        for part in parts:
            cells = [part & (groups == g) for g in np.unique(groups[part])]
            rates = [np.average(p[cell], weights=weights[cell]) for cell in cells]
            low, high = min(rates), max(rates)
            worst = max(worst, 1 - low / max(high, 1e-12) if self.ratio else high - low)
        return float(worst)


def fit_erm(
    train: Data, limit: float, see: Rates, **params: Any
) -> tuple[ConstrainedERMClassifier, Any]:
    """Fit a constrained classifier; return it and its decisions on the training rows."""
    constraint: Any = see.rule
    if see.ratio:
        constraint = DemographicParity(comparison="ratio")
    if see.within:
        constraint = ConditionalOn(see.rule)
    model = ConstrainedERMClassifier(
        constraint,
        limit,
        random_state=0,
        sensitive=Sensitive(intersectional=train.groups.ndim == 1),
        **params,
    )
    model.fit(
        train.X,
        train.y,
        train.weights if see.weighted else None,
        sensitive_features=train.groups,
        control_features=train.strata if see.within else None,
    )
    return model, model.predict(train.X)


def fit_decisions(
    base: Any, train: Data, limit: float, see: Rates, aware: bool | str
) -> tuple[FairDecisionClassifier, Any]:
    """Fit decisions of a classifier; return them and those on the training rows."""
    constraint: Any = DemographicParity(comparison="ratio") if see.ratio else see.rule
    model = FairDecisionClassifier(
        base,
        constraint,
        limit,
        group_aware=aware,
        sensitive=Sensitive(intersectional=train.groups.ndim == 1),
        cv=3,
        random_state=0,
    )
    model.fit(
        train.X,
        train.y,
        train.weights if see.weighted else None,
        sensitive_features=train.groups,
    )
    return model, model.train_predictions_


def is_broken(model: Any, gap: float, limit: float) -> bool:
    """Whether a limit is exceeded that the model does not say it misses."""
    return bool(model.status_ != "infeasible" and gap > limit + 1e-9)


def erm(seeds: Sequence[int]) -> Iterator[Row]:
    """Linear classifiers, networks."""
    plain: list[tuple[str, str, Rates, dict[str, Any]]] = [
        (name, rule, Rates(rule), {})
        for name in ("compas", "compas4", "adult", "bank", "many", "twelve", "large")
        for rule in RULES
    ]
    dp = "demographic_parity"
    others: list[tuple[str, str, Rates, dict[str, Any]]] = [
        ("compas_two", "attributes", Rates(dp), {}),
        ("compas", "ratio", Rates(dp, ratio=True), {}),
        ("adult", "strata", Rates(dp, within=True), {}),
        ("compas", "weights", Rates("equalized_odds", weighted=True), {}),
        ("compas", "network", Rates(dp), {"model": (16,), "max_iter": 200}),
        (
            "adult",
            "network",
            Rates("equalized_odds"),
            {"model": (16,), "max_iter": 200},
        ),
    ]
    for seed in seeds:
        for name, how, see, params in plain + others:
            train, test = split(name, seed)
            few = name in ("many", "twelve", "large") or how == "network"
            for limit in LIMITS[3:] if few else LIMITS:
                limit = 2.5 * limit if see.ratio else limit
                cpu, (model, own) = timed(
                    lambda t=train, limit=limit, s=see, p=params: fit_erm(t, limit, s, **p)
                )
                predicted = model.predict(test.X)
                yield {
                    "cell": f"erm {name} {how}",
                    "seed": seed,
                    "limit": limit,
                    "worth": float((predicted == test.y).mean()),
                    "gap": see.of(test, predicted),
                    "broken": is_broken(model, see.of(train, own), limit),
                    "cpu": cpu,
                }


def decide(seeds: Sequence[int]) -> Iterator[Row]:
    """Decisions of other classifiers, without the group of a row and with it."""
    logistic = LogisticRegression(max_iter=500)
    trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    dp, odds = Rates("demographic_parity"), Rates("equalized_odds")
    cases = [
        (name, base, see.rule, see)
        for name, base in (
            ("compas", logistic),
            ("compas", trees),
            ("adult", trees),
            ("bank", trees),
            ("terciles", logistic),
        )
        for see in (dp, odds)
    ]
    cases += [
        ("compas_two", logistic, "attributes", dp),
        ("compas4", logistic, "equalized_odds", odds),
        ("adult", trees, "ratio", Rates(dp.rule, ratio=True)),
        ("compas", logistic, "weights", Rates(odds.rule, weighted=True)),
        ("many", logistic, "demographic_parity", dp),
        ("twelve", logistic, "equalized_odds", odds),
        ("large", logistic, "equalized_odds", odds),
    ]
    for seed in seeds:
        for name, base, how, see in cases:
            train, test = split(name, seed)
            for aware in (False, True, *(("mixed",) if see.rule == "equalized_odds" else ())):
                few = name in ("many", "twelve", "large", "terciles")
                for limit in LIMITS[1::2] if few else LIMITS:
                    limit = 2.5 * limit if see.ratio else limit
                    cpu, (model, own) = timed(
                        lambda b=base, t=train, limit=limit, s=see, a=aware: fit_decisions(
                            b, t, limit, s, a
                        )
                    )
                    groups = {"sensitive_features": test.groups} if aware else {}
                    predicted = model.predict(test.X, **groups)
                    kind = f"{type(base).__name__[:5]} {how} {MODES[aware]}"
                    yield {
                        "cell": f"decide {name} {kind}",
                        "seed": seed,
                        "limit": limit,
                        "worth": float((predicted == test.y).mean()),
                        "gap": see.of(test, predicted),
                        "broken": is_broken(model, see.of(train, own), limit),
                        "cpu": cpu,
                    }


def partial(seeds: Sequence[int]) -> Iterator[Row]:
    """Scores with a limit within an interval of ranks; worth is the area under the ROC curve."""
    interval = (0.1, 0.5)

    def gap(scores: Any, groups: Any) -> float:
        return float(
            partial_statistical_parity_gap(
                None, scores, sensitive_features=groups, interval=interval
            )
        )

    for seed in seeds:
        for name in ("compas", "adult", "bank"):
            train, test = split(name, seed)
            for aware in (False, True):
                for limit in (0.1, 0.15, 0.2, 0.3, 0.4):
                    model = PartialParityClassifier(
                        interval, max_disparity=limit, group_aware=aware, random_state=0
                    )
                    cpu, _ = timed(
                        lambda m=model, t=train: m.fit(t.X, t.y, sensitive_features=t.groups)
                    )
                    scores, own = (
                        model.decision_function(
                            part.X, **({"sensitive_features": part.groups} if aware else {})
                        )
                        for part in (test, train)
                    )
                    yield {
                        "cell": f"partial {name} {'aware' if aware else 'blind'}",
                        "seed": seed,
                        "limit": limit,
                        "worth": float(roc_auc_score(test.y, scores)),
                        "gap": gap(scores, test.groups),
                        "broken": bool(
                            model.is_within_limit_ and gap(own, train.groups) > limit + 1e-9
                        ),
                        "cpu": cpu,
                    }


def cluster(seeds: Sequence[int]) -> Iterator[Row]:
    """Fair k-means: worth is 1 - cost / cost of k-means, disparity the balance asked for."""

    def cost(X: Any, labels: Any) -> float:
        parts = [X[labels == k] for k in np.unique(labels)]
        return float(sum(((part - part.mean(0)) ** 2).sum() for part in parts))

    for seed in seeds:
        for name in ("safairkm_adult", "safairkm_bank"):
            d = pd.read_parquet(f"{data_folder()}/{name}.parquet")
            X, groups = d.drop(columns="demograph").to_numpy(float), d.demograph.to_numpy()
            rows = np.random.RandomState(seed).permutation(len(groups))[:5000]
            X, groups = ((X - X.mean(0)) / X.std(0))[rows], groups[rows]
            n = np.unique(groups, return_counts=True)[1]
            for k in (5, 10):
                free = cost(X, KMeans(k, n_init=3, random_state=0).fit(X).labels_)
                for balance in (0.8, 0.9, 0.95, 0.99):
                    model = FairKMeans(k, min_balance=balance, random_state=seed)
                    cpu, _ = timed(lambda m=model, X=X, g=groups: m.fit(X, sensitive_features=g))
                    counts = pd.crosstab(model.labels_, groups).to_numpy()
                    kept = (counts.min(1) / counts.max(1)).min() / (n.min() / n.max())
                    yield {
                        "cell": f"cluster {name} {k}",
                        "seed": seed,
                        "limit": 1 - balance,
                        "worth": 1 - cost(X, model.labels_) / free,
                        "gap": 1 - balance,
                        "broken": bool(kept < balance - 1e-9),
                        "cpu": cpu,
                    }


def rank(seeds: Sequence[int]) -> Iterator[Row]:
    """Rankings of documents; worth is the normalised discounted cumulative gain."""
    for seed in seeds:
        (X, y, q, g), (Xn, yn, qn, gn) = (
            make_ranking_queries(random_state=s) for s in (seed, 100 + seed)
        )
        for limit in (0.02, 0.05, 0.1):
            model = FairRanker(max_disparity=limit, random_state=0)
            cpu, _ = timed(
                lambda m=model, X=X, y=y, q=q, g=g: m.fit(X, y, query_id=q, sensitive_features=g)
            )
            scores = model.predict(Xn)
            yield {
                "cell": "rank",
                "seed": seed,
                "limit": limit,
                "worth": float(ndcg(yn, scores, query_id=qn)),
                "gap": float(pair_error_gap(yn, scores, query_id=qn, sensitive_features=gn)),
                "broken": False,
                "cpu": cpu,
            }


FAMILIES: dict[str, Callable[[Sequence[int]], Iterator[Row]]] = {
    "erm": erm,
    "decide": decide,
    "partial": partial,
    "cluster": cluster,
    "rank": rank,
}


def main(
    *, quick: bool, families: Sequence[str] = tuple(FAMILIES), seeds: int = N_SEEDS
) -> list[Row]:
    """Fit all cases."""
    if data_folder() is None:
        return []
    rows: list[Row] = []
    for family in families:
        start = time.perf_counter()
        found = list(FAMILIES[family](range(1 if quick else seeds)))
        rows += found
        print(f"   {family}: {len(found)} fits, {time.perf_counter() - start:.0f} s", flush=True)
    return rows


def canary() -> list[Row]:
    """Return the first rows of some families; in the others, rounding decides where fits end."""
    return [row for family in (erm, decide, cluster) for row in islice(family([0]), 2)]


def at_equal_gap(before: Sequence[Row], after: Sequence[Row]) -> float:
    """Return the mean difference of worths at equal disparities, of one cell and seed."""
    ordered = [sorted((row["gap"], row["worth"]) for row in rows) for rows in (before, after)]
    low = max(points[0][0] for points in ordered)
    high = min(points[-1][0] for points in ordered)
    at = np.linspace(low, high, 9) if high > low else np.array([low])
    worths = [np.interp(at, *np.transpose(points)) for points in ordered]
    return float(np.mean(worths[1] - worths[0]))


class Comparison(NamedTuple):
    """What a cell gained and lost."""

    cell: str
    gain: float
    error: float  # standard error over the seeds
    worths: tuple[float, float]  # means before and after
    gaps: tuple[float, float]
    broken: tuple[int, int]
    cpu: float  # ratio

    @property
    def loses(self) -> bool:
        """Whether the loss is more than noise, and enough to matter."""
        return self.gain < -LOSS and self.gain < -2 * self.error


def compared(before: Sequence[Row], after: Sequence[Row]) -> list[Comparison]:
    """Compare the cells and seeds that both runs have."""
    both: dict[str, dict[int, tuple[list[Row], list[Row]]]] = {}
    for side, rows in enumerate((before, after)):
        for row in rows:
            both.setdefault(row["cell"], {}).setdefault(row["seed"], ([], []))[side].append(row)
    found = []
    for cell, seeds in sorted(both.items()):
        pairs = [pair for _, pair in sorted(seeds.items()) if all(pair)]
        if not pairs:
            continue
        gains = [at_equal_gap(*pair) for pair in pairs]
        error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
        x, z = (pd.DataFrame([row for pair in pairs for row in pair[side]]) for side in (0, 1))
        found.append(
            Comparison(
                cell,
                float(np.mean(gains)),
                float(error),
                (float(x.worth.mean()), float(z.worth.mean())),
                (float(x.gap.mean()), float(z.gap.mean())),
                (int(x.broken.sum()), int(z.broken.sum())),
                float(z.cpu.sum() / max(x.cpu.sum(), 1e-9)),
            )
        )
    return found


def report(found: Sequence[Comparison]) -> Table:
    """Return the comparison of every cell as a table."""
    columns = ["cell", "gain at equal disparity", "standard error", "worth before", "after"]
    columns += ["disparity before", "after", "broken before", "after", "CPU ratio"]
    rows = [(c.cell, c.gain, c.error, *c.worths, *c.gaps, *c.broken, c.cpu) for c in found]
    return Table("accuracy at equal disparity of test rows", columns, rows)


def failures(found: Sequence[Comparison], *, judge_cpu: bool = False) -> list[str]:
    """Return why a change does not pass; empty if it does."""
    said = [
        f"{c.cell} loses {-c.gain:.4f} (standard error {c.error:.4f})" for c in found if c.loses
    ]
    said += [f"{c.cell} breaks a limit" for c in found if c.broken[1] > c.broken[0]]
    mean = float(np.mean([c.gain for c in found]))
    if mean < -ROUNDING:
        said.append(f"the mean of {len(found)} cells loses {-mean:.4f}")
    if judge_cpu:
        said += [f"{c.cell} takes {c.cpu:.2f} times the CPU" for c in found if c.cpu > CPU_NOISE]
    return said


def tables(results: Sequence[Row]) -> dict[str, Table]:
    """Return what each cell is worth, for the record."""
    d = pd.DataFrame(list(results))
    columns = ["cell", "number of limits", "quality", "disparity"]
    columns += ["violations not reported", "CPU seconds of a fit"]
    rows = [
        (
            cell.replace("_", " "),
            part.limit.nunique(),
            float(part.worth.mean()),
            float(part.gap.mean()),
            int(part.broken.sum()),
            cpu,
        )
        for cell, part in d.groupby("cell")
        for cpu in [float(part.cpu.mean())]
    ]
    return {"cells": Table("Means of each cell on test rows", columns, rows)} if len(d) else {}


def pictures(results: Sequence[Row]) -> dict[str, Any]:
    """Draw accuracy against disparity, both of unseen rows, for demographic parity."""
    names = {
        "erm {} demographic_parity": "linear model, blind",
        "decide {} HistG demographic_parity blind": "trees, blind",
        "decide {} HistG demographic_parity aware": "trees, aware",
    }
    d = pd.DataFrame(list(results))
    figure, axes = small(3, height=2.5, width=8.5)
    for panel, data in zip(axes, ("adult", "bank", "compas"), strict=True):
        drawn = {}
        for number, (cell, name) in enumerate(names.items()):
            part = d[d.cell == cell.format(data)].groupby("limit")[["gap", "worth"]].mean()
            style = {"marker": "os^"[number], "ms": 4, "color": f"C{number}"}
            (drawn[name],) = panel.plot(part.gap, part.worth, **style)
        panel.set(title=data, xlabel="Disparity of unseen rows")
        panel.set_xlim(left=0)
    axes[0].set_ylabel("Accuracy on unseen rows")
    name_ends(axes[2], drawn, gap=0.12)
    return {"picture": figure} if len(d) else {}


def judged(rows: Sequence[Row], before: Sequence[Row], *, judge_cpu: bool = False) -> list[str]:
    """Print the comparison with another run; return why the change does not pass."""
    found = compared(before, rows)
    print(report(found))
    said = failures(found, judge_cpu=judge_cpu)
    gain, cpu = (float(np.mean([getattr(c, name) for c in found])) for name in ("gain", "cpu"))
    print(f"   {len(found)} cells: mean gain {gain:+.4f}, CPU {cpu:.2f}")
    for why in said:
        print(f"   FALLS SHORT: {why}")
    return said


def command() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontier", description=__doc__)
    parser.add_argument("--family", default=",".join(FAMILIES), help="some of: %(default)s")
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--against", type=Path, default=RECORDS / "frontier.json")
    parser.add_argument("--cpu", action="store_true", help="judge CPU seconds, too")
    parser.add_argument("--keep", action="store_true", help="write a new record")
    parser.add_argument("--out", default="frontier", help="name of the file in output/")
    arguments = parser.parse_args()
    check_threads()
    with quiet():
        rows = main(quick=False, families=arguments.family.split(","), seeds=arguments.seeds)
    if not rows:
        return
    write(arguments.out, rows, RECORDS if arguments.keep else OUTPUT)
    if arguments.keep:
        canaries.store("frontier", canaries.run("frontier"))
    else:
        before = json.loads(arguments.against.read_text())["results"]
        sys.exit(1 if judged(rows, before, judge_cpu=arguments.cpu) else 0)


if __name__ == "__main__":
    command()
