"""Figures 1 to 5 and table 3 of the paper that compares stochastic solvers for fair networks.

A network with hidden layers of 64 and 32 units is trained under a bound on the difference of the
mean losses of two groups, by Stochastic Ghost, SSL-ALM, ALM and SSw with the printed values
(``paper()``), and by two baselines: SGD without a rule, and SGD with a penalty in the way of the
library Fairret, here on the difference of accuracies. Loss and constraint are followed on training
and test rows, and the predictions at the end are compared between groups.

The paper's ACS Income of Oklahoma has to be downloaded from the census, so Adult is taken in its
place, as like it as can be: 17,917 rows, the nine columns that both have, words as numbers, groups
white or not, 80 % of the rows to learn from. The bound and the batch sizes are not printed in the
paper, and neither are the values of the baselines: they are chosen here.

Networks are those of this package; with PyTorch installed the same runs are made with a module of
PyTorch as well, from the starts that PyTorch draws.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from benchmarks._erm_data import table
from benchmarks.harness import Table, data_folder, lacks
from benchmarks.papers._network_pictures import (
    BINS,
    METRICS,
    draw_curves,
    draw_predictions,
    draw_spiders,
)
from skfair.constraints.base import TrainingRows, make_constraints
from skfair.datasets import load_local
from skfair.groups.encoding import encode_groups
from skfair.losses import make_loss
from skfair.metrics import wasserstein_gap
from skfair.models import MLPScore, ScoreModel
from skfair.models.plug_in import PlugInScore
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.solvers import SOLVERS

SEEDS = tuple(range(3000, 3010))  # a split and a start each; the paper has 10 runs as well
BOUND = 0.005
LAYERS = (64, 32)
N_ROWS = 17_917
N_CHECKS = 25  # of a run, the start included
N_TORCH = 5  # runs with PyTorch
COLUMNS = [  # the counterparts of AGEP, COW, SCHL, MAR, OCCP, POBP, RELP, WKHP and SEX
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
# Table 3: means of 10 runs on ACS Income, Oklahoma; Ind, Sp, Ina, Sf, Wd.
PRINTED = {
    "train": {
        "StGh": (0.048, 0.049, 0.273, 0.200, 0.0022),
        "SSL-ALM": (0.066, 0.071, 0.233, 0.186, 0.0031),
        "ALM": (0.058, 0.061, 0.240, 0.197, 0.0026),
        "SSw": (0.077, 0.115, 0.224, 0.133, 0.0014),
        "SGD": (0.094, 0.132, 0.201, 0.115, 0.0075),
        "SGD-Fairret": (0.091, 0.121, 0.201, 0.106, 0.0050),
    },
    "test": {
        "StGh": (0.049, 0.096, 0.276, 0.211, 0.0028),
        "SSL-ALM": (0.066, 0.117, 0.240, 0.215, 0.0040),
        "ALM": (0.058, 0.114, 0.244, 0.221, 0.0033),
        "SSw": (0.080, 0.144, 0.229, 0.175, 0.0017),
        "SGD": (0.097, 0.176, 0.215, 0.171, 0.0084),
        "SGD-Fairret": (0.094, 0.174, 0.213, 0.180, 0.0058),
    },
}


class Setting(NamedTuple):
    """An algorithm, how long it runs, and the rule and bound that it is given."""

    solver: Any
    n_steps: int
    rule: str = "loss_parity"
    bound: float = BOUND


def of_the_paper() -> dict[str, Setting]:
    """Return the columns of figures 1 and 2."""
    iterates: dict[str, Any] = {"averaging": None, "output": "last"}
    # Two groups: the norm regulariser of Fairret is their difference over the overall accuracy.
    fairret = SOLVERS["penalty"](kind="absolute", weight=1.0, **iterates)
    return {
        "StGh": Setting(SOLVERS["ghost"].paper(), 1000),
        "SSL-ALM": Setting(SOLVERS["ssl_alm"].paper(), 4000),
        "ALM": Setting(SOLVERS["alm"].paper(), 4000),
        "SSw": Setting(SOLVERS["ssw"].paper(), 4000),
        "SGD": Setting(SOLVERS["sgd"](**iterates), 2000),
        "SGD-Fairret": Setting(fairret, 2000, "accuracy_parity", 0.0),
    }


def others() -> dict[str, Setting]:
    """Return the algorithms with other values: of appendix B, larger batches, our defaults."""
    printed = of_the_paper()
    equal = replace(printed["SSw"].solver, objective_rate=0.02, constraint_rate=0.02)
    units = replace(printed["StGh"].solver, n_loss=32, n_per_cell=32, max_level=4)
    return {
        "SSw, appendix B": Setting(equal, 4000),
        "StGh, 32 rows": Setting(units, 600),
        "StGh, defaults": Setting(SOLVERS["ghost"](), 600),
        "SSL-ALM, defaults": Setting(SOLVERS["ssl_alm"](), 1500),
        "ALM, defaults": Setting(SOLVERS["alm"](), 1500),
        "SSw, defaults": Setting(SOLVERS["ssw"](), 1500),
    }


def own_network(X: Any) -> ScoreModel:
    """Return a network of this package."""
    return MLPScore(X, LAYERS)


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
        self, rule: str, bound: float, make: Callable[[Any], ScoreModel], units: Any = None
    ) -> ConstrainedERM:
        """Return problem (4) of the paper on these rows."""
        loss, targets = make_loss("log_loss", "classification"), np.where(self.y > 0, 1.0, -1.0)
        groups = encode_groups(np.where(self.is_white, "white", "non-white"))
        rows = TrainingRows(groups, targets, None, loss, (0, 1))
        rules = [one.prepare(rows, bound) for one in make_constraints(rule, "classification")]
        model = make(self.X)
        if units is not None:
            model.use_units(units)
        return ConstrainedERM(model, loss, targets, rules)


def income(n_rows: int) -> Split:
    """Return the paper's rows of ACS Income if its file is there, else rows of Adult."""
    try:
        data = load_local("acs_income")
    except FileNotFoundError:
        print("   skipped: ACS Income, as SKFAIR_DATA has no psam_p40.csv; Adult is in its place")
        return adult(n_rows)
    is_white = data.sensitive_features["race_white"].to_numpy() == "white"
    rows = slice(n_rows)
    return Split(data.data.to_numpy(float)[rows], data.target.to_numpy()[rows], is_white[rows])


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
    seen = train.problem("loss_parity", BOUND, make)
    unseen = test.problem("loss_parity", BOUND, make, seen.model.units)
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
        "shares": [
            np.histogram(expit(scores[1][group]), BINS)[0]
            for group in (test.is_white, ~test.is_white)
        ],
    }


def main(*, quick: bool = False) -> dict[str, Any]:
    """Run every algorithm on the same splits from the same starts."""
    if data_folder() is None:
        return {"skipped": "no data: Adult"}
    everything = income(3000 if quick else N_ROWS)
    splits = {seed: parts(everything, seed) for seed in SEEDS[: 1 if quick else None]}
    run(of_the_paper()["SGD"], *splits[SEEDS[0]], SEEDS[0], 1, 2)  # compiles
    results = trained(of_the_paper(), splits, own_network, quick)
    results |= trained(others(), dict([*splits.items()][:5]), own_network, quick)
    positive = {
        name: round(float(everything.y[group].mean()), 5)
        for name, group in (("white", everything.is_white), ("non-white", ~everything.is_white))
    }
    found = {"bound": BOUND, "rows": everything.y.size, "positive": positive, "runs": results}
    if not lacks("torch"):
        few = dict([*splits.items()][:N_TORCH])
        found["torch"] = trained(of_the_paper(), few, torch_network, quick)
    return found


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


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return where the runs end, table 3, and table 3 relative to SGD beside the printed one."""
    if "skipped" in results:
        return {}
    found = results["runs"]
    ends = []
    for name, one in found.items():
        last = [one[curve]["median"][-1] for curve in CURVES]
        spread = [one[c]["high"][-1] - one[c]["low"][-1] for c in ("train loss", "train gap")]
        within = f"{round(one['within'] * one['n'])} of {one['n']}"
        ends.append([name, one["steps"], one["seconds"][-1], *last, *spread, within])
    columns = ["algorithm", "steps", "CPU s", *CURVES, "spread of train loss", "of train gap"]
    shown = {
        "ends": Table(
            "figures 1, 2, 5: the end of the runs, medians; distances of the quartiles",
            [*columns, f"train gap within {results['bound']}"],
            ends,
        )
    }
    for part in ("train", "test"):
        rows = [[name, *map(deviation, one[part].values())] for name, one in found.items()]
        heads = ["algorithm", *METRICS, "Wd, squares"]
        shown[f"table3-{part}"] = Table(f"table 3: {part}, means and deviations", heads, rows)
        heads = [f"{name}, {whose}" for name in METRICS for whose in ("here", "paper")]
        relative = [[name, *ratios(found, part, name)] for name in PRINTED[part]]
        shown[f"relative-{part}"] = Table(
            f"table 3: {part}, relative to SGD", ["algorithm", *heads], relative
        )
    if "torch" in results:
        shown |= torch_tables(found, results["torch"])
    return shown


def torch_tables(own: dict[str, Any], torch: dict[str, Any]) -> dict[str, Table]:
    """Return table 3 of the networks of PyTorch, and how far they are from our own.

    Distances are in standard errors of the difference of two means.
    """
    shown = {}
    for part in ("train", "test"):
        rows = []
        for name, one in torch.items():
            row: list[Any] = [name]
            for metric in METRICS:
                mean, spread, n = one[part][metric]
                other, spread_2, m = own[name][part][metric]
                error = np.hypot(spread / max(n - 1, 1) ** 0.5, spread_2 / max(m - 1, 1) ** 0.5)
                apart = (mean - other) / error if error else np.nan
                row += [deviation(one[part][metric]), round(float(apart), 1)]
            rows.append(row)
        heads = [head for metric in METRICS for head in (metric, "distance")]
        title = f"table 3 with PyTorch: {part}, and distances from our own networks"
        shown[f"torch-{part}"] = Table(title, ["algorithm", *heads], rows)
    return shown


def deviation(moments: Sequence[float]) -> str:
    """Return mean and standard deviation as text."""
    mean, deviation, n = moments
    return f"{mean:.4f} ± {deviation:.4f}" if n else "undefined"


def ratios(found: dict[str, Any], part: str, name: str) -> list[float]:
    """Return the metrics of an algorithm over those of SGD, here and in the paper in turn."""
    values: list[float] = []
    for k, metric in enumerate(METRICS):
        of_sgd = found["SGD"][part][metric][0]
        values.append(found[name][part][metric][0] / of_sgd if of_sgd else np.nan)
        values.append(PRINTED[part][name][k] / PRINTED[part]["SGD"][k])
    return [round(value, 2) for value in values]


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return figures 1, 2, 3, 4 and 5."""
    if "skipped" in results:
        return {}
    found = results["runs"]
    names = list(PRINTED["test"])
    shown = {
        "figure1": draw_curves(found, names, CURVES[:2], results["bound"]),
        "figure2": draw_curves(found, names, CURVES[2:], results["bound"]),
        "figure3": draw_predictions(found, names),
        "figure4": draw_spiders(found, names),
        "figure5": draw_curves(found, ["SSw", "SSw, appendix B"], CURVES, results["bound"]),
    }
    if "torch" in results:
        torch = results["torch"]
        shown |= {
            "torch-figures1-2": draw_curves(torch, names, CURVES, results["bound"]),
            "torch-figure3": draw_predictions(torch, names),
            "torch-figure4": draw_spiders(torch, names),
        }
    return shown
