"""PLADA: figures 1 to 6 of its paper.

PLADA, IPP-ConEx, IPP-SSG and SSG, each with the library's defaults and with the settings of the
papers, run on the same smooth problems from the same start (figures 1 and 2), PLADA for several
alpha and beta (figures 4 and 5); its prices (figure 6) are those of the runs of figure 1. Figure 3
trains a network, and linear scores, under a constraint on hundreds of groups. Figure 7 is in
``benchmarks/ranking.py``.

All solvers but ``al_newton`` make the same number of steps, each of about one evaluation and one
pull-back. They draw nothing, so every course is run once; only its seconds are subject to chance.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import numpy as np

from benchmarks._drawing import name_ends
from benchmarks._erm_data import encoded, make_problem
from benchmarks.harness import Table, measure_parts
from benchmarks.papers._plada_groups import intersectional, lines
from benchmarks.papers._plada_runs import (
    EACH,
    MEAN,
    MEASURED,
    NEAR,
    SEEDS,
    Run,
    course,
    prices,
    watched,
)
from skfair.solvers.base import SOLVERS

BOUND = 0.02  # the paper prints none
RULES = {"parity": "demographic_parity", "odds": "equalized_odds"}
FIGURES = {"parity": "figure 1, demographic parity", "odds": "figure 2, equalized odds"}
RIVALS = {"PLADA": "plada", "IPP-ConEx": "ipp_conex", "IPP-SSG": "ipp_ssg", "SSG": "ssg"}
# The paper's figures 4 and 5 vary one of them around table 2: alpha = 10, beta = 0.1.
VARIED = {"alpha": (2.0, 5.0, 10.0, 20.0, 50.0), "beta": (0.05, 0.1, 0.2, 0.5, 0.9)}
TABLE_2 = {"alpha": 10.0, "beta": 0.1}
SETTINGS = ("library", "paper")
MEASURES = {
    "loss": "loss - optimum, absolute",
    "violation": "violation",
    "stationarity": "stationarity",
}
FLOOR = 1e-8  # of logarithmic axes


def solver_of(name: str, settings: str) -> Any:
    solver = SOLVERS[RIVALS[name]]
    return solver() if settings == "library" else solver.paper()


def reference(problem: Any) -> tuple[Run, float, list[float]]:
    """Return a run of ``al_newton``, and objective and multipliers at its end.

    The first of two runs loads what has been compiled and is thrown away.
    """
    watched(problem, SOLVERS["al_newton"](), 200)
    run = watched(problem, SOLVERS["al_newton"](), 200)
    return run, problem.evaluate(run.result.theta).objective, run.result.multipliers


def courses(data: str, rule: str, n_steps: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run every solver on one problem; return their courses and the prices of PLADA."""
    problem = make_problem(encoded(data), rule, BOUND)
    newton, optimum, multipliers = reference(problem)
    runs = {
        (name, settings): watched(problem, solver_of(name, settings), n_steps)
        for name in RIVALS
        for settings in SETTINGS
    }
    found = {f"{name}, {how}": course(problem, run, optimum) for (name, how), run in runs.items()}
    found["al_newton"] = course(problem, newton, optimum)
    paid = {how: prices(problem, solver_of("PLADA", how), runs["PLADA", how]) for how in SETTINGS}
    return found, {**paid, "optimum": float(np.abs(multipliers).max())}


def sensitivity(data: str, n_steps: int) -> dict[str, Any]:
    """Run PLADA for several alpha and beta, with adaptive steps and with the printed ones."""
    problem = make_problem(encoded(data), RULES["parity"], BOUND)
    _, optimum, _ = reference(problem)
    out: dict[str, Any] = {}
    for settings in SETTINGS:
        base = replace(solver_of("PLADA", settings), **TABLE_2)
        for varied, values in VARIED.items():
            for value in values:
                run = watched(problem, replace(base, **{varied: value}), n_steps)
                name = f"{varied} = {value:g}, {settings}"
                out[name] = course(problem, run, optimum)
                if settings == "paper":
                    del out[name]["curves"]  # they lie on each other
    return out


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    names = ("compas",) if quick else ("adult", "bank", "compas")
    n_steps = 30 if quick else 800
    found = measure_parts(
        {
            "figure 1": partial(on_each, names, RULES["parity"], n_steps),
            "figure 2": partial(on_each, names, RULES["odds"], n_steps),
            "figures 4 and 5": lambda: sensitivity(
                "compas" if quick else "adult", 10 if quick else 400
            ),
            "figure 3": lambda: splits(quick),
        },
        only,
    )
    parity, odds = found.get("figure 1", {}), found.get("figure 2", {})
    results = {
        "parity": {name: runs for name, (runs, _) in parity.items()},
        "odds": {name: runs for name, (runs, _) in odds.items()},
        "prices": {name: paid for name, (_, paid) in parity.items()},
        "sensitivity": found.get("figures 4 and 5"),
        **found.get("figure 3", {}),
    }
    results = {name: part for name, part in results.items() if part}
    return results | {"n_steps": n_steps} if results else {}


def canary() -> dict[str, Any]:
    """Return where the runs of figure 1 end on COMPAS."""
    found, _ = courses("compas", RULES["parity"], 800)
    return {
        name: [one["n_steps"], *(round(value, 6) for value in one["returned"])]
        for name, one in found.items()
    }


def on_each(names: Sequence[str], rule: str, n_steps: int) -> dict[str, Any]:
    """Return courses and prices on each of the data sets that are there."""
    return measure_parts({name: partial(courses, name, rule, n_steps) for name in names})


def splits(quick: bool) -> dict[str, Any]:
    """Figure 3: the network, and linear scores, under limits on hundreds of groups."""
    n_epochs = 5 if quick else 400
    seeds = SEEDS[: 1 if quick else None]
    groups = [intersectional(n_epochs, 8 if quick else 32, seed) for seed in seeds]
    for later in groups[1:]:  # curves are drawn of the first split
        for run in later["runs"].values():
            del run["curves"], run["epoch"]
    return {"groups": groups, "lines": [lines(n_epochs, seed) for seed in seeds]}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    out = {slug: course_table(results, slug) for slug in RULES if slug in results}
    if "sensitivity" in results:
        out["sensitivity"] = Table(
            "Figures 4 and 5: PLADA with other alpha and beta",
            [*COLUMNS[:1], *COLUMNS[2:]],
            [[name, *line(one)[1:]] for name, one in results["sensitivity"].items()],
        )
    if "prices" in results:
        out["prices"] = price_table(results["prices"])
    if "groups" in results:
        out["groups"] = group_table(results["groups"])
    if "lines" in results:
        out["lines"] = line_table(results["lines"])
    return out


def price_table(by_data: dict[str, Any]) -> Table:
    return Table(
        "Figure 6: multipliers of PLADA at the end of the runs of figure 1",
        ["data, settings", "|lambda - mu|: largest", "at the end", "lambda", "mu", OPTIMAL],
        [
            [f"{data}, {how}", max(paid[how]["gap"]), *ends(paid[how]), paid["optimum"]]
            for data, paid in by_data.items()
            for how in SETTINGS
        ],
    )


OPTIMAL = "optimal multiplier"
PARTS = ("train", "test")
COLUMNS = [
    "run",
    "CPU seconds",
    f"steps until it stays within {NEAR[0]:g}",
    *(f"/ {near:g}" for near in NEAR[1:]),
    "loss - optimum, returned",
    "violation",
    "stationarity",
]


def line(one: dict[str, Any]) -> list[Any]:
    """Return the cells of a run: time, steps until it was near, what it returned."""
    near = ["-" if reached is None else reached[0] for reached in one["near"]]
    return [one["seconds"], *near, *one["returned"]]


def course_table(results: dict[str, Any], slug: str) -> Table:
    seconds = f"seconds until it stays within {NEAR[-1]:g}"
    rows = []
    for data, runs in results[slug].items():
        for name, one in runs.items():
            spent, *others = line(one)
            reached = one["near"][-1]
            near = "-" if reached is None else reached[1]
            rows.append([f"{data}, {name}", spent, *others[:2], near, *others[2:]])
    title = f"{FIGURES[slug]}, limit {BOUND:g}, {results['n_steps']} steps each"
    return Table(title, [*COLUMNS[:4], seconds, *COLUMNS[4:]], rows)


def ends(paid: dict[str, Any]) -> list[float]:
    return [paid[name][-1] for name in ("gap", "lambda", "mu")]


def worded(name: str) -> str:
    """Return the name of a run of figure 3, in which a record says "rule"."""
    return name.replace("no rule", "no constraint")


def group_table(splits: list[dict[str, Any]]) -> Table:
    """Medians over the splits of what was measured after the last epoch."""
    measured = [(k, part) for k in range(len(MEASURED)) for part in PARTS]
    rows = []
    for name in splits[0]["runs"]:
        runs = [split["runs"][name] for split in splits if name in split["runs"]]
        ended = [[run["last"][part][k] for run in runs] for k, part in measured]
        cells = ["diverged" if None in values else median(values) for values in ended]
        rows.append([worded(name), *cells, median(run["seconds"] for run in runs)])
    title = (
        f"figure 3, network, {splits[0]['n_groups']} groups (first split); "
        f"limit {EACH:g} for every group, {MEAN:g} for the mean; last epoch"
    )
    headings = [f"{MEASURED[k]}, train" if part == "train" else "/ test" for k, part in measured]
    return Table(title, ["constraint: solver", *headings, "CPU seconds"], rows)


def line_table(splits: list[dict[str, Any]]) -> Table:
    """Medians over the splits; linear scores under a bound for every group."""
    rows = []
    for name in splits[0]["runs"]:
        runs = [one["runs"][name] for one in splits]
        near = [run["near"] for run in runs]
        reached = (
            ["-", "-"] if None in near else [median(values) for values in zip(*near, strict=True)]
        )
        rows.append(
            [
                name,
                *reached,
                median(run["seconds"] for run in runs),
                max(run["violation"] for run in runs),
                *(median(run[part][k] for run in runs) for k in (0, 2) for part in PARTS),
            ]
        )
    title = f"linear scores, {splits[0]['n_groups']} groups (first split), limit {EACH:g} for each"
    headings = [
        "epochs until near the limits",
        "CPU seconds until then",
        "/ in all",
        "violation",
    ]
    measured = [head for k in (0, 2) for head in (f"{MEASURED[k]}, train", "/ test")]
    return Table(title, ["run", *headings, *measured], rows)


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    out = {slug: course_picture(results[slug]) for slug in RULES if slug in results}
    if "sensitivity" in results:
        out["sensitivity"] = sensitivity_picture(results["sensitivity"])
    if "prices" in results:
        out["prices"] = price_picture(results["prices"])
    if "groups" in results:
        out["groups"] = group_picture(results["groups"][0]["runs"])
    return out


def grid(n_rows: int, n_columns: int, **options: Any) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    size = (4.0 * n_columns, 2.7 * n_rows)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=size, squeeze=False, layout="constrained", **options
    )
    plt.close(figure)
    return figure, axes


def draw(column: Any, curves: dict[str, Any], **style: Any) -> None:
    """Draw the three measures of a run, one below the other, against CPU seconds."""
    seconds = np.maximum(curves["seconds"], 1e-4)
    for axes, (measure, label) in zip(column, MEASURES.items(), strict=True):
        values = np.abs(curves[measure])
        axes.loglog(seconds, np.maximum(values, FLOOR), **style)
        axes.set_ylabel(label)
        if measure == "violation":  # often 0
            axes.set_yscale("symlog", linthresh=1e-4)
    column[-1].set_xlabel("CPU seconds")


def course_picture(by_data: dict[str, Any]) -> Any:
    """Distance from the optimum, with the settings of the library (top) and of the papers."""
    figure, axes = grid(len(SETTINGS), len(by_data), sharey=True)
    ends = []
    for (row, settings), (k, (data, runs)) in product(
        enumerate(SETTINGS), enumerate(by_data.items())
    ):
        panel, drawn = axes[row, k], {}
        for number, name in enumerate([*RIVALS, "al_newton"]):
            is_rival = name in RIVALS
            curves = runs[f"{name}, {settings}" if is_rival else name]["curves"]
            color = f"C{number}" if is_rival else "black"
            (drawn[name],) = panel.loglog(*from_here_on(curves), color=color, lw=1.5)
        panel.set_title(f"{data}, settings of the {settings}", fontsize="medium")
        if k == len(by_data) - 1:
            ends.append((panel, drawn))
        panel.set_xlabel("CPU seconds" if row else "")
        panel.set_ylabel("" if k else "Distance from\nthe optimum")
    for panel, drawn in ends:
        name_ends(panel, drawn)
    return figure


def from_here_on(curves: dict[str, Any]) -> tuple[Any, Any]:
    """Return seconds, and the larger of error and violation from each point to the end."""
    worse = np.maximum(np.abs(curves["loss"]), np.abs(curves["violation"]))
    worst = np.maximum.accumulate(worse[::-1])[::-1]
    return np.maximum(curves["seconds"], 1e-4), np.maximum(worst, FLOOR)


def sensitivity_picture(runs: dict[str, Any]) -> Any:
    """With the adaptive steps of the library: alpha on the left, beta on the right."""
    figure, axes = grid(len(MEASURES), len(VARIED))
    for column, (varied, values) in zip(axes.T, VARIED.items(), strict=True):
        other = next(name for name in VARIED if name != varied)
        column[0].set_title(f"{varied} ({other} = {TABLE_2[other]:g})")
        for k, value in enumerate(values):
            name = f"{varied} = {value:g}"
            draw(column, runs[f"{name}, library"]["curves"], color=f"C{k}", label=name)
        column[0].legend(fontsize="small")
    return figure


def price_picture(by_data: dict[str, Any]) -> Any:
    figure, axes = grid(3, len(by_data))
    labels = {"gap": "|lambda - mu|", "lambda": "lambda", "mu": "mu"}
    for column, (data, paid) in zip(axes.T, by_data.items(), strict=True):
        column[0].set_title(data)
        for panel, (name, label) in zip(column, labels.items(), strict=True):
            for settings, dash in zip(SETTINGS, ("-", "--"), strict=True):
                iteration = np.array(paid[settings]["iteration"]) + 1
                values = np.array(paid[settings][name])
                panel.semilogx(iteration[1:], values[1:], ls=dash, label=settings)
            panel.set_ylabel(label)
            if name == "gap":
                panel.set_yscale("log")
            else:
                panel.axhline(paid["optimum"], color="black", lw=0.8, label=OPTIMAL)
        column[-1].set_xlabel("iteration")
    axes[1, 0].legend(fontsize="small")
    return figure


def group_picture(runs: dict[str, Any]) -> Any:
    """Test error and excess losses against epochs, one column for each form of the constraint."""
    rules = {"every group": EACH, "mean": MEAN}
    figure, axes = grid(len(MEASURED), len(rules))
    for column, (rule, bound) in zip(axes.T, rules.items(), strict=True):
        column[0].set_title(f"limit on the excess loss: {rule}")
        for name, run in runs.items():
            if not name.startswith((rule, "no rule")):
                continue
            for panel, measure in zip(column, MEASURED, strict=True):
                values = [np.nan if value is None else value for value in run["curves"][measure]]
                panel.semilogx(np.array(run["epoch"]) + 1, values, label=worded(name))
        for panel, measure in zip(column, MEASURED, strict=True):
            panel.set_ylabel(f"test {measure}")
        bounded = "mean excess" if rule == "mean" else "largest excess"
        panel = column[MEASURED.index(bounded)]
        panel.axhline(bound, color="black", lw=0.8, ls=":")
        column[-1].set_xlabel("epoch")
        column[0].legend(fontsize="x-small")
    return figure
