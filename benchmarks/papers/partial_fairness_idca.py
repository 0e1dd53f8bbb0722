"""Figures 1-11 and tables 3, 4 of partial_fairness_idca: a9a, bank, simulated law school data.

The pictures come from one split and half of its training rows, the same for all methods; the tables
from all training rows of two splits, those of IDCA from that half. IDCA runs until it rests; the
penalty makes fewer and longer steps than in the paper; tolerances and step lengths are not tuned.
Problems (102), (105) and (107) are solved by an augmented Lagrangian in place of projected
gradients with ``fmincon``.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Table, measure_parts
from benchmarks.papers._partial_runs import (
    BASELINES,
    FULL,
    LAW,
    QUICK,
    RULES,
    SEEDS,
    SETTINGS,
    Setting,
    Size,
    curves,
    densities,
    fit,
    frontiers,
    intervals,
    of_idca,
    race,
    splits,
    thinned,
)

NAMES = {
    "none": "no constraint",
    "repair": "repair (skfair)",
    "alm": "(15)/(21) by augmented Lagrangian (skfair)",
    "idca": "(15)/(21) by IDCA (paper)",
    "penalty": "penalty (114)/(119)",
    **BASELINES,
}
# Methods of figure 1 that are told apart; the baselines are grey.
COLORS = {"repair": "C0", "alm": "C1", "idca": "C2", "penalty": "C3"}
# What a frontier of figure 1 is over: title, constraint of the models.
AXES = {
    "ccdf": ("pSP fairness, shares of groups", "statistical_parity"),
    "conditional": ("pSP fairness, Definition 4.2", "statistical_parity"),
    "pdp": ("pDP fairness, Definition 4.3", "demographic_parity"),
}
LEVELS = (0.8, 0.9, 0.95)
FIGURES = {
    "a9a": {"statistical_parity": "figure3", "demographic_parity": "figure6"},
    "bank": {"statistical_parity": "figure4", "demographic_parity": "figure7"},
    LAW: {"statistical_parity": "figure5", "demographic_parity": "figure8"},
}
RACES = {"statistical_parity": "figure10", "demographic_parity": "figure11"}


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    """Measure everything, or the figures or tables that are asked for, on each data set."""
    size = QUICK if quick else FULL
    return measure_parts(
        {name: partial(on, name, setting, size, only) for name, setting in SETTINGS.items()}
    )


def canary() -> list[dict[str, Any]]:
    """Return the results of a small cell."""
    setting = SETTINGS["bank"]
    train, test = setting.load(SEEDS[0])
    some = thinned(train, QUICK.share, SEEDS[0]), test
    ways = ("none", "repair", "alm", "idca")
    return [fit(some, setting.interval, way, 0.1, size=QUICK).row for way in ways]


def on(name: str, setting: Setting, size: Size, only: str | None) -> dict[str, Any]:
    """Measure on one data set; the models of figures 1 to 8 are needed by all parts."""
    train, test = setting.load(SEEDS[0])
    parts = thinned(train, size.share, SEEDS[0]), test
    models = frontiers(parts, setting, size)
    found = measure_parts(
        {
            "figures 1 to 8": lambda: {
                "figure1": [{"rule": rule, **one.row} for (rule, _, _), one in models.items()],
                "figure2": curves(name, models, test),
                "densities": densities(name, models, test),
            },
            "figure 9": lambda: {"figure9": intervals(parts, setting, models, size)},
            "figures 10 and 11": lambda: {
                "races": {rule: race(parts, setting, models, rule, size) for rule in setting.kappas}
            },
            "tables 3 and 4": lambda: {
                "tables": splits(setting, size) + of_idca(name, parts, models, size)
            },
        },
        only,
    )
    return {key: results for part in found.values() for key, results in part.items()}


def having(results: dict[str, Any], part: str) -> dict[str, Any]:
    """Return the results on the data sets for which a part was measured."""
    return {name: results[name] for name in SETTINGS if part in results.get(name, {})}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return what is shown."""
    shown = {}
    if data := having(results, "figure1"):
        shown["figure1"] = best_accuracies(data)
    if data := having(results, "figure9"):
        shown["figure9"] = Table(
            "Figure 9: methods at about the accuracy of (15), test rows",
            ("data, interval", "method", "accuracy", AXES["ccdf"][0], AXES["conditional"][0]),
            [
                [f"{name}, {row['interval']}", NAMES[row["method"]]]
                + [row[key] for key in ("accuracy", "ccdf", "conditional")]
                for name, result in data.items()
                for row in result["figure9"]
            ],
        )
    if data := having(results, "races"):
        shown["figures10-11"] = Table(
            "Figures 10 and 11: where the solvers end, on training rows",
            ("problem", "solver", "steps", "objective", "violation", "CPU seconds"),
            [
                [f"{RULES[rule]}, {name}, kappa {one['kappa']}", solver]
                + [run[key][-1] for key in ("steps", "objective", "max_violation", "seconds")]
                for rule in RACES
                for name, result in data.items()
                for one in [result["races"][rule]]
                for solver, run in one["paths"].items()
            ],
        )
    if data := having(results, "tables"):
        shown |= paper_tables(data)
    return shown


def paper_tables(data: dict[str, Any]) -> dict[str, Table]:
    """Return tables 3 and 4."""
    return {
        "table3": of_paper(
            data,
            "Table 3: all ranks",
            [("paper", 0), ("IDCA", "full idca"), ("alm", "full alm"), ("repair", "full repair")],
        ),
        "table3-interval": of_paper(
            data,
            "Table 3: the interval",
            [("paper", 2), ("IDCA", "10 idca"), ("alm", "10 alm"), ("repair", "repair")],
        ),
        "table4": of_paper(
            data,
            "Table 4: 20 against 10 percentiles",
            [
                ("20, paper", 1),
                ("20, IDCA", "20 idca"),
                ("20, alm", "20 alm"),
                ("10, paper", 2),
                ("10, IDCA", "10 idca"),
                ("10, alm", "10 alm"),
            ],
        ),
    }


def best_accuracies(data: dict[str, Any]) -> Table:
    """Return the best accuracy of each method where fairness reaches some levels."""
    rows: list[list[Any]] = []
    for name, result in data.items():
        for measure, (title, rule) in AXES.items():
            for method in NAMES:
                kind = [one for one in points(result, rule, method) if one["method"] == method]
                best: list[Any] = []
                for level in LEVELS:
                    fair = [one["accuracy"] for one in kind if one[measure] >= level]
                    best.append(max(fair) if fair else "not reached")
                seconds = float(np.median([one["seconds"] for one in kind]))
                rows.append([f"{name}, {title}", NAMES[method], *best, seconds])
    levels = [f"accuracy, fairness >= {level}" for level in LEVELS]
    title = "Figure 1: best accuracy at a level of fairness, test rows"
    return Table(title, ("data, fairness", "method", *levels, "CPU seconds of a fit"), rows)


def points(result: dict[str, Any], rule: str, method: str) -> list[dict[str, Any]]:
    """Return the frontier of a method; all start from the unconstrained model."""
    return [
        row
        for row in result["figure1"]
        if row["method"] in (method, "none") and row["rule"] in ("", rule)
    ]


def of_paper(data: dict[str, Any], title: str, columns: list[tuple[str, Any]]) -> Table:
    """Return fairness / accuracy next to those of the paper (numbers point into ``paper``)."""
    rows = []
    for name, result in data.items():
        ours = {(row["kind"], row["kappa"]): row for row in result["tables"]}
        for kappa, printed in SETTINGS[name].paper:
            if kappa < 1 and ("repair", kappa) not in ours:
                continue  # a quick run
            cells = []
            for _, kind in columns:
                if isinstance(kind, int):
                    cells.append(pair_text(*printed[kind]))
                else:
                    row = ours.get(("none" if kappa == 1 else kind, kappa))
                    cells.append(pair_text(row["ccdf"], row["accuracy"]) if row else "not run")
            rows.append([f"{name}, {kappa_text(kappa)}", *cells])
    return Table(
        f"{title}: pSP fairness / accuracy, test rows",
        ("data, kappa", *[c for c, _ in columns]),
        rows,
    )


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the figures."""
    shown: dict[str, Any] = {}
    if data := having(results, "figure1"):
        shown |= {"figure1": draw_frontiers(data), "figure2": draw_curves(data)}
        shown |= {
            slug: draw_densities(name, data[name], rule)
            for name, slugs in FIGURES.items()
            for rule, slug in slugs.items()
            if data.get(name, {}).get("densities")
        }
    if data := having(results, "figure9"):
        shown["figure9"] = draw_intervals(data)
    if data := having(results, "races"):
        shown |= {slug: draw_race(data, rule) for rule, slug in RACES.items()}
    return shown


def panels(n_rows: int, n_columns: int, size: tuple[float, float], **options: Any) -> Any:
    """Return a figure and its axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, **options)
    plt.close(figure)
    return figure, axes


def draw_frontiers(data: dict[str, Any]) -> Any:
    """Figure 1: the best accuracy where fairness reaches a level, and the rows of the paper."""
    shown = {measure: AXES[measure] for measure in ("ccdf", "pdp")}
    figure, axes = panels(len(shown), len(data), (4 * len(data), 6), layout="constrained")
    for column, (name, result) in enumerate(data.items()):
        for ax, (measure, (title, rule)) in zip(axes[:, column], shown.items(), strict=True):
            drawn = {}
            for method in list(NAMES)[:0:-1]:  # what is compared with lies below
                kind = sorted(points(result, rule, method), key=lambda one: -one[measure])
                best = np.maximum.accumulate([one["accuracy"] for one in kind])
                color = COLORS.get(method, "0.7")
                levels = [one[measure] for one in kind]
                lines = ax.step(levels, best, color=color, lw=1.8, where="post")
                drawn[NAMES[method] if method in COLORS else "pairwise baselines"] = lines[0]
            if measure == "ccdf":
                printed = [ten for _, (*_, ten) in SETTINGS[name].paper]
                ax.plot(*zip(*printed, strict=True), "k*", ms=8, label="paper, table 4")
            ax.set(xlabel=title, title=name, ylim={"a9a": (0.78, 0.855)}.get(name, (0.86, 0.905)))
    for ax in axes[:, 0]:
        ax.set_ylabel("Best accuracy on test rows")
    handles, labels = [*drawn.values()][::-1], [*drawn][::-1]
    stars, words = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles + stars, labels + words, loc="outside lower center", ncols=3)
    return figure


def draw_curves(data: dict[str, Any]) -> Any:
    """Figure 2."""
    from skfair.inspection import CCDFCurveDisplay

    figure, axes = panels(2, len(data), (5 * len(data), 9), layout="constrained")
    for column, (name, result) in enumerate(data.items()):
        setting = SETTINGS[name]
        for row, (method, lines) in enumerate(result["figure2"].items()):
            ax = axes[row, column]
            CCDFCurveDisplay(
                reference_rates=[reference for reference, _ in lines.values()],
                group_rates=[other for _, other in lines.values()],
                group_names=[kappa_text(kappa) for kappa in lines],
                reference_name=setting.group_names[1],
                reference_interval=[setting.interval],
                group_interval=[[setting.interval]] * len(lines),
            ).plot(ax=ax)
            ax.set_ylabel(f"Share of {setting.group_names[0]} selected")
            ax.set_title(f"{name}, {NAMES[method]}", fontsize=9)
            ax.legend(fontsize=8, loc="lower right")
    return figure


def draw_densities(name: str, result: dict[str, Any], rule: str) -> Any:
    """Figures 3 and 6, of bank 4 and 7, of law school 5 and 8."""
    from skfair.inspection import GroupScoreDisplay

    kinds, setting = result["densities"][rule], SETTINGS[name]
    n_columns = max(map(len, kinds.values()))
    figure, axes = panels(len(kinds), n_columns, (3.6 * n_columns, 6), layout="constrained")
    for row, (method, by_kappa) in enumerate(kinds.items()):
        for ax, (kappa, scores) in zip(axes[row], by_kappa.items(), strict=False):
            GroupScoreDisplay(
                scores=scores,
                group_names=setting.group_names,
                interval=[[setting.interval]] * 2,
            ).plot(ax=ax)
            ax.axvline(0, color="grey", lw=0.8)
            ax.set_title(f"{NAMES[method]},\n{kappa_text(kappa)}", fontsize=9)
            low, high = (f"{100 * end:.0f} %" for end in setting.interval)
            ax.set_xlabel(f"Score (shaded: ranks {low} to {high})")
    return figure


def draw_intervals(data: dict[str, Any]) -> Any:
    """Figure 9."""
    figure, axes = panels(2, len(data), (6 * len(data), 7), layout="constrained")
    for column, (name, result) in enumerate(data.items()):
        names = list(dict.fromkeys(row["interval"] for row in result["figure9"]))
        methods = list(dict.fromkeys(row["method"] for row in result["figure9"]))
        for ax, measure in zip(axes[:, column], ("ccdf", "accuracy"), strict=True):
            for k, method in enumerate(methods):
                heights = [one[measure] for one in result["figure9"] if one["method"] == method]
                places = np.arange(len(names)) + (k - len(methods) / 2 + 0.5) * 0.13
                ax.bar(places, heights, width=0.12, label=NAMES[method])
            ax.set_xticks(range(len(names)), names)
            ax.set_title(name)
        axes[0, column].set_ylabel(AXES["ccdf"][0])
        axes[1, column].set(ylabel="Accuracy on test rows", ylim=(0.75, 0.92))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def draw_race(data: dict[str, Any], rule: str) -> Any:
    """Figures 10 and 11, over CPU seconds."""
    figure, axes = panels(2, len(data), (5 * len(data), 7), layout="constrained", sharex="col")
    for column, (name, result) in enumerate(data.items()):
        one = result["races"][rule]
        for solver, run in one["paths"].items():
            axes[0, column].plot(run["seconds"], run["objective"], label=solver, lw=1.2)
            axes[1, column].plot(run["seconds"], run["max_violation"], label=solver, lw=1.2)
        axes[0, column].set(
            title=f"{name}, {RULES[rule]}, kappa {one['kappa']}",
            ylabel="Objective",
            ylim=(0.2, 0.8),
        )
        axes[1, column].set(xlabel="CPU seconds", ylabel="Violation")
        axes[1, column].set_yscale("symlog", linthresh=1e-3)
        axes[1, column].set_ylim(bottom=0)
    axes[0, 0].legend(fontsize=8)
    return figure


def kappa_text(kappa: str | float) -> str:
    """Name a model by its kappa, as written in the record."""
    return "no constraint" if float(kappa) == 1 else f"kappa {kappa}"


def pair_text(fairness: float, accuracy: float) -> str:
    """Write a cell of tables 3 and 4."""
    return f"{fairness:.3f} / {accuracy:.3f}"
