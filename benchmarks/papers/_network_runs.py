"""Rows, networks and runs of the benchmark ``fairness_constrained_benchmark``."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from benchmarks._erm_data import table
from benchmarks.papers._network_pictures import BINS
from skfair._typing import FloatArray
from skfair.constraints.base import Constraint, TrainingRows, make_constraints
from skfair.constraints.bound import BoundConstraint
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from skfair.metrics import wasserstein_gap
from skfair.models import MLPScore, ScoreModel
from skfair.models.plug_in import PlugInScore
from skfair.models.units import Units
from skfair.problems.erm.problem import ConstrainedERM

SEEDS = tuple(range(3000, 3010))  # a split and a start each; the paper has 10 runs as well
BOUND = 0.005
LAYERS = (64, 32)
N_ROWS = 17_917
N_CHECKS = 25  # of a run, the start included
ACS_COLUMNS = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX"]
COLUMNS = [  # their counterparts in Adult
    "age",
    "workclass",
    "education-num",
    "marital-status",
    "occupation",
    "native-country",
    "relationship",
    "hours-per-week",
    "sex",
]
CURVES = ("train loss", "train gap", "test loss", "test gap")

# Rows and a bound to the constraints of a problem.
Rule = Callable[[TrainingRows, float], list[BoundConstraint]]


def named(name: str | Constraint) -> Rule:
    """Return the constraint of a name, or one that is passed."""

    def prepared(rows: TrainingRows, bound: float) -> list[BoundConstraint]:
        return [one.prepare(rows, bound) for one in make_constraints(name, "classification")]

    return prepared


LOSS_PARITY = named("loss_parity")


class Setting(NamedTuple):
    """An algorithm, how long it runs, and the constraint and limit that it is given."""

    solver: Any
    n_steps: int
    rule: Rule = LOSS_PARITY
    bound: float = BOUND


def own_network(X: Any) -> ScoreModel:
    """Return a network of this package."""
    return MLPScore(X, LAYERS)


class _StartsAsTorch(MLPScore):
    """A network of this package with the starts of PyTorch's linear layers."""

    def start(self, rng: np.random.RandomState) -> FloatArray:
        theta = np.empty(self.n_parameters)
        for parts in zip(*self._layers(theta), strict=True):
            bound = parts[0].shape[0] ** -0.5
            for part in parts:
                part[:] = rng.uniform(-bound, bound, part.shape)
        return theta


def own_network_as_torch(X: Any) -> ScoreModel:
    """Return a network of this package that starts as PyTorch's do, and sees columns as given."""
    model, d = _StartsAsTorch(X, LAYERS), X.shape[1]
    model.use_units(Units(np.zeros(d), np.ones(d), np.zeros(d, np.bool_)))
    return model


def torch_network(X: Any) -> ScoreModel:
    """Return the same as a module of PyTorch."""
    from torch import nn

    from skfair.models import TorchScore

    sizes = (X.shape[1], *LAYERS)
    layers = [
        part for a, b in zip(sizes, LAYERS, strict=False) for part in (nn.Linear(a, b), nn.ReLU())
    ]
    return PlugInScore(TorchScore(nn.Sequential(*layers, nn.Linear(LAYERS[-1], 1))), X)


class Split(NamedTuple):
    """Standardised rows of one run."""

    X: Any
    y: Any
    is_white: Any

    def problem(
        self, rule: Rule, bound: float, make: Callable[[Any], ScoreModel], units: Any = None
    ) -> ConstrainedERM:
        """Return problem (4) of the paper on these rows."""
        loss, targets = make_loss("log_loss", "classification"), np.where(self.y > 0, 1.0, -1.0)
        groups = encode_groups(np.where(self.is_white, "white", "non-white"))
        rows = TrainingRows(groups, targets, None, loss, (0, 1))
        model = make(self.X)
        if units is not None:
            model.use_units(units)
        return ConstrainedERM(model, loss, targets, rule(rows, bound))


def income(n_rows: int) -> Split:
    """Return the paper's rows of ACS Income if its file is there, else rows of Adult.

    The file is the person file of Oklahoma, 2018, of the American Community Survey: adults who work
    (17,917 rows). Missing answers are -1.
    """
    file = Path(os.environ.get("SKFAIR_DATA", "")) / "psam_p40.csv"
    if not file.is_file():
        print("   skipped: ACS Income, as SKFAIR_DATA has no psam_p40.csv; Adult is in its place")
        return adult(n_rows)
    people = pd.read_csv(file, usecols=[*ACS_COLUMNS, "RAC1P", "PINCP", "PWGTP"])
    people = people.query("AGEP > 16 and PINCP > 100 and WKHP > 0 and PWGTP >= 1").fillna(-1)
    people = people.iloc[:n_rows]
    is_rich = (people["PINCP"] > 50_000).to_numpy(int)
    X = people[ACS_COLUMNS].to_numpy(float)
    return Split(X, is_rich, (people["RAC1P"] == 1).to_numpy())


def adult(n_rows: int) -> Split:
    """Return rows of Adult with the columns of ACS Income; words are codes, as there."""
    data = table("adult")
    features = data.frame[COLUMNS].iloc[:n_rows]
    words = features.select_dtypes(exclude="number").astype(object).fillna("?").astype(str)
    codes = OrdinalEncoder().fit_transform(words)
    X = np.column_stack([features.select_dtypes("number"), codes])
    return Split(X, data.y[:n_rows], (data.frame["race"].iloc[:n_rows] == "White").to_numpy())


def parts(everything: Split, seed: int) -> tuple[Split, Split]:
    """Return training and test rows, stratified by group."""
    at = train_test_split(
        np.arange(everything.y.size),
        test_size=0.2,
        stratify=everything.is_white,
        random_state=seed,
    )
    scaler = StandardScaler().fit(everything.X[at[0]])
    X = scaler.transform(everything.X).astype(np.float32)
    train, test = (Split(X[rows], everything.y[rows], everything.is_white[rows]) for rows in at)
    return train, test


def gap(values: Any, is_white: Any, among: Any = True) -> float:
    """Return how far the means of the two groups are apart; nan if one has no rows."""
    means = [values[among & is_white], values[among & ~is_white]]
    return abs(float(np.subtract(*map(np.mean, means)))) if all(map(np.size, means)) else np.nan


def compared(scores: Any, rows: Split) -> dict[str, float]:
    """Return the metrics of section 2 of the paper, and two distances of the probabilities."""
    predicted, actual, is_white = scores > 0, rows.y > 0, rows.is_white
    probabilities = expit(scores)
    levels = (np.arange(1000) + 0.5) / 1000
    quantiles = [np.quantile(probabilities[group], levels) for group in (is_white, ~is_white)]
    return {
        "Ind": gap(predicted, is_white),
        "Sp": sum(gap(predicted, is_white, actual == v) for v in (True, False)),
        "Ina": float(np.mean(predicted != actual)),
        "Sf": sum(gap(actual, is_white, predicted == v) for v in (True, False)),
        "Wd": wasserstein_gap(None, probabilities, sensitive_features=is_white),
        "Wd, squares": float(np.mean(np.subtract(*quantiles) ** 2)),
    }


def run(
    setting: Setting,
    train: Split,
    test: Split,
    seed: int,
    n_steps: int,
    n_checks: int,
    make: Callable[[Any], ScoreModel] = own_network,
) -> dict[str, Any]:
    """Train once; the checks on all rows are not timed."""
    problem = train.problem(setting.rule, setting.bound, make)
    seen = train.problem(LOSS_PARITY, BOUND, make)
    unseen = test.problem(LOSS_PARITY, BOUND, make, seen.model.units)
    rng = np.random.RandomState(seed)
    state = setting.solver.begin(problem, problem.start(rng))
    seconds, curves = 0.0, []
    for stop in np.linspace(0, n_steps, n_checks).astype(int):
        start = time.process_time()
        setting.solver.advance(problem, state, int(stop) - state.n_steps, rng)
        seconds += time.process_time() - start
        at = seen.evaluate(state.solution), unseen.evaluate(state.solution)
        values = [(part.objective, part.constraints[0]) for part in at]
        curves.append([seconds, *np.ravel(values)])
    scores = [problem.scores(state.solution) for problem in (seen, unseen)]
    pairs = list(zip(("train", "test"), scores, (train, test), strict=True))
    return {
        "curves": curves,
        **{name: compared(part, rows) for name, part, rows in pairs},
        "scores": scores,
        "shares": [
            np.histogram(expit(scores[1][group]), BINS)[0]
            for group in (test.is_white, ~test.is_white)
        ],
    }


def trained(
    settings: dict[str, Setting],
    splits: dict[int, tuple[Split, Split]],
    make: Callable[[Any], ScoreModel],
    quick: bool,
) -> dict[str, Any]:
    """Run algorithms on splits."""
    results = {}
    for name, setting in settings.items():
        n_steps = setting.n_steps // 40 if quick else setting.n_steps
        runs = [
            run(setting, *split, seed, n_steps, 3 if quick else N_CHECKS, make)
            for seed, split in splits.items()
        ]
        results[name] = {"steps": n_steps, **summary(runs)}
    print(f"   trained: {', '.join(settings)}", flush=True)
    return results


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means, medians, quartiles and standard deviations over runs."""

    def rounded(values: Any) -> Any:
        return np.round(np.asarray(values, dtype=float), 5).tolist()

    curves = np.array([one["curves"] for one in runs])  # (runs, checks, seconds and CURVES)
    result: dict[str, Any] = {
        "n": len(runs),
        "seconds": rounded(np.median(curves[:, :, 0], axis=0)),
        "within": float(np.mean(np.abs(curves[:, -1, 2]) <= BOUND)),
    }
    for k, name in enumerate(CURVES, start=1):
        values = curves[:, :, k]
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        lines = {"mean": values.mean(axis=0), "median": middle, "low": low, "high": high}
        result[name] = {line: rounded(value) for line, value in lines.items()}
    for part in ("train", "test"):
        result[part] = {}
        for name in runs[0][part]:
            values = np.array([one[part][name] for one in runs])
            values = values[np.isfinite(values)]  # a group without positive predictions has no Sf
            moments = (values.mean(), values.std()) if values.size else (0.0, 0.0)
            result[part][name] = rounded([*moments, values.size])
    counts = np.sum([one["shares"] for one in runs], axis=0)
    result["shares"] = rounded(counts / counts.sum(axis=1, keepdims=True))
    return result
