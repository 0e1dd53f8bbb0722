"""How often limits are broken by new people, with and without ``confidence=``.

The population is a large real table; a sample is drawn from it with replacement, classifiers are
fitted on the sample in several ways, and their disparity is measured on the whole table. A
*failure* is a disparity above the limit of a fit that claims to keep it. All ways see the same
samples. Each fit is one line of ``output/guarantee.jsonl``, so that a stop loses nothing and a
second call goes on where the first one ended. With ``--more`` it goes on where the record ends.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import time
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks._guarantee_rivals import RIVALS, fits_on_half
from benchmarks.harness import OUTPUT, RECORDS, Table, data_folder, quiet, read, write
from skfair import Certificate
from skfair.classification import ConstrainedERMClassifier, FairDecisionClassifier
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

# Seeds below were looked at while the method was made, or measured earlier.
FIRST_SEED = 40_000_000
METRICS = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
}
# How many folds the package's own ways have; "plain" makes no promise.
FOLDS = {"plain": 5, "folds": 5, "10 folds": 10, "20 folds": 20}
WAYS = (*FOLDS, *RIVALS)
LINES = OUTPUT / "guarantee.jsonl"
_LARGE = 30_000  # a population, not a sample


class _Remembers:
    """A classifier not fitted twice on the same rows: constraints and ways share its fits."""

    known: ClassVar[dict[Any, Any]] = {}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        text = np.ascontiguousarray(X).tobytes() + np.asarray(y).tobytes()
        key = (type(self), hashlib.blake2b(text).digest(), sample_weight is None)
        if sample_weight is not None or key not in self.known:
            super().fit(X, y, sample_weight)  # type: ignore[misc]
            self.key = key
            self.known[key] = dict(vars(self))
        self.__dict__.update(self.known[key])
        return self

    def predict_proba(self, X: Any) -> Any:
        if len(X) < _LARGE:
            return super().predict_proba(X)  # type: ignore[misc]
        key = (self.key, len(X))
        if key not in self.known:
            self.known[key] = super().predict_proba(X)  # type: ignore[misc]
        return self.known[key]


class RememberedLinear(_Remembers, LogisticRegression):
    """A logistic regression that remembers."""


class RememberedTrees(_Remembers, HistGradientBoostingClassifier):
    """Boosted trees that remember."""


_LINEAR: dict[str, Any] = {"solver": "newton-cholesky", "C": 0.5}
_TREES: dict[str, Any] = {"max_iter": 30, "max_leaf_nodes": 15, "random_state": 0}
REMEMBERED = {"linear": RememberedLinear(**_LINEAR), "trees": RememberedTrees(**_TREES)}
MODELS = {
    "linear": LogisticRegression(**_LINEAR),
    "trees": HistGradientBoostingClassifier(**_TREES),
}


class Cell(NamedTuple):
    """One line of the table."""

    population: str
    groups: str
    rule: str
    limit: float
    n: int
    is_aware: bool
    confidence: float | None
    model: str = "linear"
    way: str = "folds"


class Population(NamedTuple):
    """The people that samples are drawn from."""

    X: np.ndarray
    y: np.ndarray
    groups: dict[str, np.ndarray]


def adult(half_positive: bool = False) -> Population:
    """Adult; with ``half_positive`` people with a high income are three times as many.

    The features are those with which limits on the training rows, without a promise, come nearest
    to the accuracies that the method was made with: .834 and .840 at 1000 and 5000 rows of Adult;
    half positive .770, .779 and .779 at 1000, 5000 and 20,000, which takes curves and steps.
    """
    folder = data_folder()
    if folder is None:
        raise SystemExit
    table = pd.read_parquet(folder / "adult.parquet")
    y = (table["income"].astype(str).str[0] == ">").to_numpy().astype(int)
    numbers = table[
        ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    ].astype(float)
    if half_positive:
        for name in ("age", "hours-per-week"):
            numbers[f"{name} squared"] = (numbers[name] - 40) ** 2
        numbers["large gain"] = numbers["capital-gain"] > 5000
        numbers["large loss"] = numbers["capital-loss"] > 1500
    names = ["marital-status", "relationship", "occupation", "workclass"]
    dummies = pd.get_dummies(table[names].astype(str))
    dummies = dummies.loc[:, dummies.mean() > 0.01]
    X = StandardScaler().fit_transform(np.hstack([numbers.astype(float), dummies.astype(float)]))
    sex = table["sex"].astype(str).to_numpy()
    is_white = table["race"].astype(str).to_numpy() == "White"
    race = np.where(is_white, "White", "other")
    four = np.char.add(np.char.add(sex.astype(str), " "), race.astype(str))
    rows = np.repeat(np.arange(y.size), np.where((y == 1) & half_positive, 3, 1))
    return Population(X[rows], y[rows], {"sex": sex[rows], "four": four[rows]})


POPULATIONS = {"adult": lambda: adult(), "half positive": lambda: adult(half_positive=True)}


class Sample(NamedTuple):
    """People who were drawn, and everybody."""

    rows: np.ndarray
    people: Population
    seed: int

    @classmethod
    def draw(cls, people: Population, n: int, seed: int) -> Sample:
        """Draw with replacement."""
        rows = np.random.default_rng(seed).integers(0, people.y.size, n)
        return cls(rows, people, seed)

    def of(self, groups: str) -> tuple[Any, Any, Any]:
        """Return rows, classes and groups."""
        X, y, known = self.people
        return X[self.rows], y[self.rows], known[groups][self.rows]


def make(cell: Cell, models: dict[str, Any], **options: Any) -> FairDecisionClassifier:
    """Return the decisions of a cell, not fitted."""
    return FairDecisionClassifier(
        models[cell.model],
        cell.rule,
        **{"max_disparity": cell.limit, "confidence": cell.confidence, **options},
        group_aware=cell.is_aware,
        random_state=0,
    )


def runs(cells: list[Cell], sample: Sample) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Fit the ways of one constraint to one sample, and yield what each does to everybody."""
    first, is_new = cells[0], {cell.way: cell for cell in cells}
    X, y, groups = sample.of(first.groups)
    fits = {}
    for way, n_folds in FOLDS.items():
        if way in is_new:
            model = make(is_new[way], REMEMBERED, cv=n_folds).fit(X, y, sensitive_features=groups)
            if way == "plain" or model.status_ in ("converged", "certified"):
                fits[way] = model
            else:
                yield is_new[way], _found(is_new[way], sample, model, is_solved=False)
    rivals = [way for way in RIVALS if way in is_new]
    if rivals:

        def with_limit(limit: float) -> FairDecisionClassifier:
            return make(first, REMEMBERED, max_disparity=limit, confidence=None)

        halves = fits_on_half(
            rivals, with_limit, first.rule, first.limit, (X, y, groups), first.is_aware, sample.seed
        )
        fits.update(halves)
    for way, model in fits.items():
        fallback = model or DummyClassifier().fit(X, y)  # all are treated like the larger class
        yield is_new[way], _found(is_new[way], sample, fallback, is_solved=model is not None)


def _found(cell: Cell, sample: Sample, model: Any, *, is_solved: bool) -> dict[str, Any]:
    X, y, known = sample.people
    groups = known[cell.groups]
    is_asked = cell.is_aware and not isinstance(model, DummyClassifier)
    given = {"sensitive_features": groups} if is_asked else {}
    predicted = model.predict(X, **given)
    gap = float(METRICS[cell.rule](y, predicted, sensitive_features=groups))
    return {
        "accuracy": float(np.mean(predicted == y)),
        "gap": gap,
        "failed": bool(is_solved and gap > cell.limit + 1e-12),
        "solved": is_solved,
        "selected": float(np.mean(predicted)),
        "constant": float(max(np.mean(y), 1 - np.mean(y))),
    }


def summary(cell: Cell, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return failure rate, its standard error, and accuracies.

    Without a solution all people are treated like the larger class; ``accuracy_predicted`` is
    that of what ``predict`` returns nevertheless.
    """
    failed = float(np.mean([one["failed"] for one in runs]))
    solved = [one["accuracy"] for one in runs if one["solved"]]
    accuracies = [one["accuracy" if one["solved"] else "constant"] for one in runs]
    return {
        **cell._asdict(),
        "repetitions": len(runs),
        "failures": failed,
        "standard_error": float(np.sqrt(failed * (1 - failed) / len(runs))),
        "solved": len(solved) / len(runs),
        "accuracy": float(np.mean(accuracies)),
        "accuracy_error": float(np.std(accuracies) / np.sqrt(len(runs))),
        "accuracy_solved": float(np.mean(solved)) if solved else None,
        "accuracy_predicted": float(np.mean([one["accuracy"] for one in runs])),
        "selected": float(np.mean([one["selected"] for one in runs])),
    }


SETTINGS = [
    ("linear", "sex", 1000),
    ("linear", "sex", 5000),
    ("linear", "four", 5000),
    ("linear", "four", 1000),
    ("linear", "sex", 20_000),
    ("linear", "four", 20_000),
    ("trees", "sex", 1000),
    ("trees", "sex", 5000),
    ("trees", "sex", 20_000),
    ("trees", "four", 5000),
    ("trees", "four", 20_000),
]


def settings(only: str) -> Iterator[tuple[str, list[list[Cell]]]]:
    """Yield populations, and the cells that are measured on the same sample, by constraint."""
    wanted = [word for word in only.split(",") if word]
    for model, groups, n in SETTINGS:
        for population in POPULATIONS:
            blocks = []
            # Of four groups in 1000 rows some have no positives at all.
            is_scarce = groups == "four" and n == 1000
            for rule in ["demographic_parity"] if is_scarce else METRICS:
                for limit in (0.05, 0.1):
                    for aware in (False, True):
                        args = (population, groups, rule, limit, n, aware)
                        block = [
                            Cell(*args, None if way == "plain" else 0.95, model, way)
                            for way in WAYS
                        ]
                        blocks.append([c for c in block if _has_words(c, wanted)])
            if any(blocks):
                yield population, [block for block in blocks if block]


def _has_words(cell: Cell, wanted: list[str]) -> bool:
    return {*wanted} <= {*map(str, cell)}


def as_a_whole(repetitions: int) -> list[dict[str, Any]]:
    """Measure ``Certificate(by="split")`` of models that are trained under their constraint."""
    results = []
    for population, read_people in POPULATIONS.items():
        people = read_people()
        cell = Cell(
            population, "sex", "demographic_parity", 0.1, 2000, False, 0.95, way="certify=split"
        )
        found = []
        for seed in range(FIRST_SEED, FIRST_SEED + repetitions):
            sample = Sample.draw(people, cell.n, seed)
            X, y, groups = sample.of("sex")
            model = ConstrainedERMClassifier(
                max_disparity=cell.limit,
                confidence=Certificate(0.95, by="split"),
                random_state=seed,
            )
            with quiet():
                model.fit(X, y, sensitive_features=groups)
            found.append(_found(cell, sample, model, is_solved=model.status_ == "certified"))
        results.append(summary(cell, found))
        OUTPUT.mkdir(exist_ok=True)
        write("guarantee-whole", results)
    return results


def joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return the summary of a cell from those of two parts of its samples."""
    n = np.array([first["repetitions"], second["repetitions"]])
    is_solved = n * [first["solved"], second["solved"]]

    def mean(name: str, weights: np.ndarray = n) -> float:
        return float(np.average([first[name] or 0.0, second[name] or 0.0], weights=weights))

    failed, accuracy = mean("failures"), mean("accuracy")
    squares = [
        one["repetitions"] * one["accuracy_error"] ** 2 + (one["accuracy"] - accuracy) ** 2
        for one in (first, second)
    ]
    return {
        **first,
        "repetitions": int(n.sum()),
        "failures": failed,
        "standard_error": float(np.sqrt(failed * (1 - failed) / n.sum())),
        "solved": mean("solved"),
        "accuracy": accuracy,
        "accuracy_error": float(np.sqrt(np.average(squares, weights=n) / n.sum())),
        "accuracy_solved": mean("accuracy_solved", is_solved) if is_solved.any() else None,
        "accuracy_predicted": mean("accuracy_predicted"),
        "selected": mean("selected"),
    }


def recorded() -> dict[Cell, dict[str, Any]]:
    """Return the summaries in the record, whose samples are those of the first seeds."""
    known = read("guarantee")["results"] if (RECORDS / "guarantee.json").exists() else []
    return {Cell(*(one.get(name) for name in Cell._fields)): one for one in known}


def known_runs() -> dict[Cell, dict[int, dict[str, Any]]]:
    """Return what has been measured, by cell and seed."""
    found: dict[Cell, dict[int, dict[str, Any]]] = {}
    for line in LINES.read_text().splitlines() if LINES.exists() else []:
        one = json.loads(line)
        cell = Cell(*(one.pop(name) for name in Cell._fields))
        found.setdefault(cell, {})[one.pop("seed")] = one
    return found


def main(
    *, quick: bool = False, repetitions: int | None = None, only: str = "", more: bool = False
) -> list[dict[str, Any]]:
    """Measure all cells, or ``only`` those whose description has these words.

    ``more``: samples of the record are not measured again, and count in what is returned.
    """
    n_runs, known, people = repetitions or (2 if quick else 500), known_runs(), {}
    before = recorded() if more else {}
    begin = {cell: FIRST_SEED + one["repetitions"] for cell, one in before.items()}
    for cell, found in known.items():
        known[cell] = {k: one for k, one in found.items() if k >= begin.get(cell, FIRST_SEED)}
    OUTPUT.mkdir(exist_ok=True)
    for population, blocks in settings(only):
        for seed in range(FIRST_SEED, FIRST_SEED + n_runs):
            _Remembers.known.clear()
            for block in blocks:
                todo = [
                    cell
                    for cell in block
                    if seed >= begin.get(cell, seed) and seed not in known.get(cell, {})
                ]
                if not todo:
                    continue
                if population not in people:
                    people[population] = POPULATIONS[population]()
                sample = Sample.draw(people[population], todo[0].n, seed)
                with quiet(), LINES.open("a") as file:
                    for cell, found in runs(todo, sample):
                        known.setdefault(cell, {})[seed] = found
                        file.write(json.dumps({**cell._asdict(), "seed": seed, **found}) + "\n")
    results = [summary(cell, [*found.values()]) for cell, found in known.items() if found]
    named = [(Cell(*(one[name] for name in Cell._fields)), one) for one in results]
    return [joined(before[cell], one) if cell in before else one for cell, one in named]


def show(results: list[dict[str, Any]]) -> None:
    """Print one line for each cell."""
    for one in results:
        name = " ".join(str(one[field]) for field in Cell._fields)
        print(
            f"{name:70s} {one['repetitions']:4d} fails {one['failures']:.3f} solved "
            f"{one['solved']:.2f} accuracy {one['accuracy']:.4f} +- {one['accuracy_error']:.4f} "
            f"selected {one['selected']:.3f}"
        )


def tables(results: list[dict[str, Any]]) -> dict[str, Table]:
    """Show failures, accuracy and solutions of ``confidence=``: the usual cells, others, folds."""
    cells = {Cell(*(one.get(name) for name in Cell._fields)): one for one in results}
    columns = [(name, aware) for name in POPULATIONS for aware in (False, True)]
    heads = [f"{name}, {'with' if aware else 'without'} the group" for name, aware in columns]

    def row_of(cell: Cell) -> list[dict[str, Any] | None]:
        return [
            cells.get(cell._replace(population=name, is_aware=aware)) for name, aware in columns
        ]

    def samples(row: list[dict[str, Any] | None]) -> int:
        return min(one["repetitions"] for one in row if one)

    def entries(row: list[dict[str, Any] | None]) -> list[str]:
        return ["-" if one is None else _entry(one) for one in row]

    def kinds(way: str) -> list[Cell]:
        found = {c._replace(population="", is_aware=False) for c in cells if c.way == way}
        return sorted(found, key=lambda c: (c.model, c.groups, c.n, c.rule, c.limit))

    usual, others, folds = [], [], []
    for cell in kinds("folds"):
        row = row_of(cell)
        if (cell.model, cell.groups) == ("linear", "sex"):
            usual.append([*_limited(cell), cell.n, *entries(row)])
        else:
            about = [_modelled(cell), ", ".join(_limited(cell)), cell.n]
            others.append([*about, samples(row), *entries(row)])
    for cell in kinds("10 folds"):
        about = [_modelled(cell), ", ".join(_limited(cell))]
        for way in ("folds", "10 folds"):
            row = row_of(cell._replace(way=way))
            folds.append([*about, cell.n, FOLDS[way], samples(row), *entries(row)])
    names = ["constraint", "limit", "n"]
    together = ["models", "constraint, limit", "n"]
    return {
        "methods": Table(
            "Methods to satisfy a limit", ["Method", "Samples", *_PER_TABLE], _by_method(cells)
        ),
        "lead": Table("Accuracy above the best other test", [*names, *heads], _leads(cells)),
        "linear": Table("Linear models, two groups", [*names, *heads], usual),
        "others": Table("Other models", [*together, "/ samples", *heads], others),
        "folds": Table("Five and ten", [*together, "/ folds", "/ samples", *heads], folds),
    }


def pictures(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw a dot for each cell: the share of samples whose limit is violated."""
    words = {"sex": "two groups", "four": "four groups"}
    rows: dict[str, list[float]] = {"limit on the training rows only": []}
    for one in results:
        if one["way"] in ("plain", "folds") and one["repetitions"] >= _ENOUGH:
            name = f"confidence=0.95, {one['model']}, {words[one['groups']]}"
            name = name if one["way"] == "folds" else next(iter(rows))
            rows.setdefault(name, []).append(100 * one["failures"])
    figure, (axes,) = small(height=0.7 + 0.26 * len(rows))
    rows_of_dots(axes, rows)
    mark(axes, 5, "nominal 5%")
    axes.set_xlabel("Samples whose limit is violated in the population, %", loc="right")
    axes.set_xlim(left=-0.5)
    return {"picture": figure}


_PER_TABLE = [f"{name}: {what}" for name in POPULATIONS for what in ("exceeded", "accuracy")]
TESTS = {
    "split": "half of the rows, tested on the other half",
    "Student": "as before, with Student's t bounds (Seldonian)",
    "Clopper-Pearson": "as before, with exact bounds (Clopper-Pearson)",
}


def _limited(cell: Cell) -> list[str]:
    return [cell.rule.replace("_", " "), f"{cell.limit:g}"]


def _modelled(cell: Cell) -> str:
    return f"{cell.model}, {'two' if cell.groups == 'sex' else 'four'} groups"


def _by_method(cells: dict[Cell, dict[str, Any]]) -> list[list[str]]:
    """Return a row for each way: demographic parity .05, 5000 rows, linear, without the group."""
    ways = {"plain": "limit on the training rows", **TESTS, "folds": "confidence=0.95"}
    rows = []
    for way, name in ways.items():
        about = ("sex", "demographic_parity", 0.05, 5000, False, None if way == "plain" else 0.95)
        found = [cells[Cell(table, *about, "linear", way)] for table in POPULATIONS]
        shown = [f"{one[part]:{form}}" for one in found for part, form in _FORMS.items()]
        rows.append([name, found[0]["repetitions"], *shown])
    return rows


_ENOUGH = 40  # samples of a dot; of fewer, one violation is more than 2.5 points
_FORMS = {"failures": ".1%", "accuracy": ".3f"}


def _leads(cells: dict[Cell, dict[str, Any]]) -> list[list[Any]]:
    """Return by how much ``confidence=`` is more accurate than the best of the other tests."""

    def lead(cell: Cell) -> str:
        others = [cells[cell._replace(way=way)]["accuracy"] for way in TESTS]
        return f"{cells[cell]['accuracy'] - max(others):+.3f}"

    rows = {}
    for cell in sorted(cells, key=lambda c: (c.n, c.rule, c.limit)):
        if (cell.way, cell.model, cell.groups) == ("folds", "linear", "sex") and cell.n < 20_000:
            rows.setdefault((cell.rule.replace("_", " "), cell.limit, cell.n), {})[
                (cell.population, cell.is_aware)
            ] = lead(cell)
    order = [(name, aware) for name in POPULATIONS for aware in (False, True)]
    return [[*about, *(row[key] for key in order)] for about, row in rows.items()]


def _entry(one: dict[str, Any]) -> str:
    text = f"{one['failures']:.1%}; {one['accuracy']:.3f}"
    return text if one["solved"] > 0.995 else f"{text}; {one['solved']:.0%}"


def cost(repetitions: int = 3) -> None:
    """Print the CPU of certified fits over that of cross-fitted ones without a promise, in turn.

    Where no limit binds without a promise, no model of groups is fitted, so nothing is compared.
    """
    # Limits on equalized odds bind where half of the people are positive.
    tables = {"demographic_parity": adult(), "equalized_odds": adult(half_positive=True)}
    sizes = (1000, 5000, 20_000)
    for model, n in itertools.product(MODELS, sizes):
        for rule, limit in (("demographic_parity", 0.05), ("equalized_odds", 0.1)):
            for aware in (True, False):
                cell = Cell("", "sex", rule, limit, n, aware, None, model)
                seconds, is_bound = [], True
                for rows in (1000, *[n] * repetitions):  # the first: kernels, caches
                    X, y, groups = Sample.draw(tables[rule], rows, 1).of("sex")
                    for confidence in (None, 0.95):
                        decisions = make(cell, MODELS, confidence=confidence)
                        start = time.process_time()
                        with quiet():
                            decisions.fit(X, y, sensitive_features=groups)
                        seconds.append(time.process_time() - start)
                        is_bound &= decisions.method_ != "none" or rows < n
                plain, certified = np.median(seconds[2::2]), np.median(seconds[3::2])
                name = f"{model} {n} {rule} {'with' if aware else 'without'} the group"
                ratio = f"{certified / plain:.2f}" if is_bound else "no limit binds without it"
                print(f"{name:60s} {plain:.3f} {certified:.3f} {ratio}", flush=True)


def keep(results: list[dict[str, Any]]) -> None:
    """Write cells to the record; those measured before stay, unless they are measured again."""
    measured = {Cell(*(one.get(name) for name in Cell._fields)): one for one in results}
    write("guarantee", [*(recorded() | measured).values()], RECORDS)


if (
    __name__ == "__main__"
):  # [REPETITIONS [WORD,WORD]] [--whole | --cost] [--more] [--keep]: cells with all words
    if "--cost" in sys.argv:
        sys.exit(cost())
    given = [one for one in sys.argv[1:] if not one.startswith("--")]
    n_runs = int(given[0]) if given else None
    if "--whole" in sys.argv:
        found = as_a_whole(n_runs or 200)
    else:
        words = given[1] if len(given) > 1 else ""
        found = main(repetitions=n_runs, only=words, more="--more" in sys.argv)
    show(found)
    if "--keep" in sys.argv:
        keep(found)
