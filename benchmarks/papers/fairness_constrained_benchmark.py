"""Figures 1 to 5 and table 3 of the paper that compares stochastic solvers for fair networks.

A network with hidden layers of 64 and 32 units is trained under a limit on the difference of the
mean losses of two groups, by Stochastic Ghost, SSL-ALM, ALM and SSw with the printed values
(``paper()``), and by two baselines: SGD without a constraint, and SGD with a penalty in the way of
the library Fairret, here on the difference of accuracies. Loss and constraint are followed on
training and test rows, and the predictions at the end are compared between groups.

The paper's ACS Income of Oklahoma has to be downloaded from the census, so Adult is taken in its
place, as like it as can be: 17,917 rows, the nine columns that both have, words as numbers, groups
white or not, 80% of the rows to learn from. The limit and the batch sizes are not printed in the
paper, and neither are the values of the baselines: they are chosen here.

Networks are those of this package; with PyTorch installed the same runs are made with a module of
PyTorch as well, from the starts that PyTorch draws.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness import Table, lacks, measure_parts
from benchmarks.papers._network_pictures import (
    METRICS,
    draw_curves,
    draw_predictions,
    draw_spiders,
    worded,
)
from benchmarks.papers._network_rules import by_constraint, table_1
from benchmarks.papers._network_runs import (
    BOUND,
    CURVES,
    N_ROWS,
    SEEDS,
    Setting,
    income,
    named,
    own_network,
    own_network_as_torch,
    parts,
    run,
    torch_network,
    trained,
)
from skfair.solvers.base import SOLVERS

N_TORCH = 5  # runs with PyTorch
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
        "SGD-Fairret": Setting(fairret, 2000, named("accuracy_parity"), 0.0),
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


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    """Run every algorithm on the same splits from the same starts."""
    try:
        everything = income(3000 if quick else N_ROWS)
    except FileNotFoundError as error:
        print(f"   skipped: {error}", flush=True)
        return {}
    splits = {seed: parts(everything, seed) for seed in SEEDS[: 1 if quick else None]}
    run(of_the_paper()["SGD"], *splits[SEEDS[0]], SEEDS[0], 1, 2)  # compiles
    few = dict([*splits.items()][:N_TORCH])

    def figures() -> dict[str, Any]:
        five = dict([*splits.items()][:5])
        ours = trained(of_the_paper(), splits, own_network, quick)
        return {"runs": ours | trained(others(), five, own_network, quick)}

    def pytorch() -> dict[str, Any]:
        starts = {"starts": trained(of_the_paper(), few, own_network_as_torch, quick)}
        if lacks("torch"):
            return starts
        return starts | {"torch": trained(of_the_paper(), few, torch_network, quick)}

    found = measure_parts(
        {
            "figures 1 to 5, table 3": figures,
            "table 1": lambda: {"table 1": by_constraint(few, quick)},
            "networks of PyTorch": pytorch,
        },
        only,
    )
    positive = {
        name: round(float(everything.y[group].mean()), 5)
        for name, group in (("white", everything.is_white), ("non-white", ~everything.is_white))
    }
    results = {"bound": BOUND, "rows": everything.y.size, "positive": positive}
    for one in found.values():
        results |= one
    return results


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    train, test = parts(income(3000), SEEDS[0])
    runs = {
        name: run(setting, train, test, SEEDS[0], setting.n_steps // 40, 3)
        for name, setting in of_the_paper().items()
    }
    return {name: {part: one[part] for part in ("train", "test")} for name, one in runs.items()}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return where the runs end, table 3, and table 3 relative to SGD beside the printed one."""
    shown = run_tables(results) if "runs" in results else {}
    if "table 1" in results:
        shown["table1"] = table_1(results["table 1"])
    if "runs" in results and "torch" in results:
        shown |= torch_tables(results)
    return shown


def run_tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return where the runs end, and table 3."""
    found = results["runs"]
    ends = []
    for name, one in found.items():
        last = [one[curve]["median"][-1] for curve in CURVES]
        spread = [one[c]["high"][-1] - one[c]["low"][-1] for c in CURVES[:2]]
        within = f"{round(one['within'] * one['n'])} of {one['n']}"
        on_train = [value for pair in zip(last, spread, strict=False) for value in pair]
        ends.append([name, one["steps"], one["seconds"][-1], *on_train, within, *last[2:]])
    columns = ["algorithm", "steps", "/ CPU seconds", "train loss", "/ spread"]
    columns += ["train difference", "/ spread", f"within {results['bound']}"]
    shown = {
        "ends": Table(
            "Figures 1, 2 and 5: medians at the end of the runs",
            [*columns, *map(worded, CURVES[2:])],
            ends,
        )
    }
    for part in ("train", "test"):
        rows = [[name, *map(deviation, one[part].values())] for name, one in found.items()]
        heads = ["algorithm", *METRICS, "Wd, squares"]
        shown[f"table3-{part}"] = Table(f"table 3: {part}, means and deviations", heads, rows)
        heads = [head for name in METRICS for head in (name, "/ paper")]
        relative = [[name, *ratios(found, part, name)] for name in PRINTED[part]]
        shown[f"relative-{part}"] = Table(
            f"table 3: {part}, relative to SGD", ["algorithm", *heads], relative
        )
    return shown


def torch_tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return how far the networks of PyTorch are from our own."""
    shown, torch = {}, results["torch"]
    kinds = {"as skfair": results["runs"], "as PyTorch": results["starts"]}
    for part in ("train", "test"):
        rows = [
            [name, kind, *(distance(one[part][m], own[name][part][m]) for m in METRICS)]
            for name, one in torch.items()
            for kind, own in kinds.items()
        ]
        title = f"PyTorch minus networks of this package: {part}, two standard errors"
        shown[f"torch-distance-{part}"] = Table(
            title, ["algorithm", "initial weights", *METRICS], rows
        )
    return shown


def distance(one: Sequence[float], other: Sequence[float]) -> str:
    """Return the difference of two means, and twice its standard error, as text."""
    (mean, spread, n), (other_mean, other_spread, m) = one, other
    if min(n, m) < 2:
        return "undefined"
    error = np.hypot(spread / (n - 1) ** 0.5, other_spread / (m - 1) ** 0.5)
    return f"{mean - other_mean:+.3f} ± {2 * error:.3f}"


def deviation(moments: Sequence[float]) -> str:
    """Return mean and standard deviation as text."""
    mean, deviation, n = moments
    return f"{mean:.3f} ± {deviation:.3f}" if n else "undefined"


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
    if "runs" not in results:
        return {}
    found = results["runs"]
    names = list(PRINTED["test"])
    return {
        "figure1": draw_curves(found, names, CURVES[:2], results["bound"]),
        "figure2": draw_curves(found, names, CURVES[2:], results["bound"]),
        "figure3": draw_predictions(found, names),
        "figure4": draw_spiders(found, names),
        "figure5": draw_curves(found, ["SSw", "SSw, appendix B"], CURVES, results["bound"]),
    }
