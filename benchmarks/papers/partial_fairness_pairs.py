"""Problem (21) of partial_fairness_idca by IDCA, as printed and as reformulated.

Printed are pairs of groups with the convex parts of Example D.5, and a tolerance in ranks, as in
the benchmark ``partial_fairness_idca``; the reformulation has a centre and a tolerance in shares of
the interval. The limit of both is kappa (beta - alpha) in ranks. The kappas are those of figures 6
to 8, on two halves of the training rows of one split; the first is that of these figures.
"""

from statistics import mean
from typing import Any, Literal

from benchmarks._drawing import small
from benchmarks.harness import Table, data_folder
from benchmarks.papers._partial_runs import (
    DENSITIES,
    FULL,
    IDCA_EPS,
    QUICK,
    SEEDS,
    SETTINGS,
    fit,
    thinned,
)
from skfair.papers import IDCA

RULE = "demographic_parity"
HALVES = (SEEDS[0], 1)
FORMS: dict[Literal["pairs", "centers"], str] = {"pairs": "as printed", "centers": "reformulated"}
COLUMNS = ("accuracy", "pdp", "objective")


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measure everything."""
    if data_folder() is None:
        return {"skipped": "SKFAIR_DATA names no folder with a9a and bank"}
    size = QUICK if quick else FULL
    results: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        train, test = setting.load(SEEDS[0])
        halves = [thinned(train, size.share, seed) for seed in HALVES]
        results[name] = []
        for kappa in DENSITIES[name][RULE]:
            for form in FORMS:
                solver = IDCA(size.n_inner, IDCA_EPS, size.n_outer, form=form)
                runs = []
                for half in halves:
                    parts, given = (half, test), {"rule": RULE, "size": size, "solver": solver}
                    one = fit(parts, setting.interval, "idca", kappa, **given)
                    runs.append({**one.row, "objective": round(one.model.objective_, 5)})
                results[name].append({"kappa": kappa, "form": form, "runs": runs})
    return results


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return what is shown."""
    rows = [
        [f"{name}, kappa {row['kappa']}", FORMS[row["form"]]]
        + [text for key in COLUMNS for text in _first_and_range(row["runs"], key)]
        + [round(mean(one["seconds"] for one in row["runs"]), 1)]
        for name in SETTINGS
        for row in results.get(name, [])
    ]
    if not rows:
        return {}
    heads = ("accuracy", "pDP fairness", "objective")
    measured = [column for head in heads for column in (head, "two halves")]
    title = "Problem (21) by IDCA, as printed and reformulated, test rows"
    return {"forms": Table(title, ("data", "form", *measured, "CPU seconds"), rows)}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw accuracy against fairness of both forms, as means over the halves."""
    data = [name for name in SETTINGS if results.get(name)]
    figure, axes = small(len(data), height=2.7, width=8.5, sharex=True) if data else (None, [])
    for panel, name in zip(axes, data, strict=True):
        for number, (form, text) in enumerate(FORMS.items()):
            runs = [row["runs"] for row in results[name] if row["form"] == form]
            x, y = ([mean(one[k] for one in part) for part in runs] for k in ("pdp", "accuracy"))
            panel.plot(x, y, marker="os"[number], label=text, ls=("-", "--")[number])
        panel.set(title=name, xlabel="pDP fairness")
    if data:
        axes[0].set_ylabel("Accuracy on test rows")
        axes[0].legend(fontsize="small")
    return {"picture": figure} if data else {}


def _first_and_range(runs: list[dict[str, float]], key: str) -> tuple[str, str]:
    """Return the value of the first half, and the lowest and highest of all."""
    values = [one[key] for one in runs]
    return f"{values[0]:.3f}", f"{min(values):.3f} to {max(values):.3f}"
