"""Problem (21) of partial_fairness_idca by IDCA, as printed and as reformulated.

Printed are pairs of groups with the convex parts of Example D.5, and a tolerance in ranks, as in
the benchmark ``partial_fairness_idca``; the reformulation has a centre and a tolerance in shares of
the interval. The limit of both is kappa (beta - alpha) in ranks. The kappas are those of figures 6
to 8, the rows those of all figures.
"""

from functools import partial
from typing import Any, Literal

from benchmarks._drawing import small
from benchmarks.harness import Table, measure_parts
from benchmarks.papers._partial_runs import (
    DENSITIES,
    FULL,
    IDCA_EPS,
    QUICK,
    SEEDS,
    SETTINGS,
    Size,
    fit,
    thinned,
)
from skfair.papers import IDCA

RULE = "demographic_parity"
FORMS: dict[Literal["pairs", "centers"], str] = {"pairs": "as printed", "centers": "reformulated"}


def main(*, quick: bool = False, only: str | None = None) -> dict[str, Any]:
    """Measure both forms, on the data sets that are there or on the one that is asked for."""
    size = QUICK if quick else FULL
    return measure_parts({name: partial(forms, name, size) for name in SETTINGS}, only)


def canary() -> list[dict[str, Any]]:
    """Return the results of a small cell."""
    return forms("bank", QUICK)


def forms(name: str, size: Size) -> list[dict[str, Any]]:
    """Fit both forms to a data set, for each kappa."""
    setting, rows = SETTINGS[name], []
    train, test = setting.load(SEEDS[0])
    parts = thinned(train, size.share, SEEDS[0]), test
    for kappa in DENSITIES[name][RULE]:
        for form in FORMS:
            solver = IDCA(size.n_inner, IDCA_EPS, size.n_outer, form=form)
            given = {"rule": RULE, "size": size, "solver": solver}
            rows.append(row(form, fit(parts, setting.interval, "idca", kappa, **given)))
    return rows


def row(form: str, one: Any) -> dict[str, Any]:
    """Return what is kept of a fit."""
    found = {"objective": round(one.model.objective_, 5), "n_outer": int(one.model.n_iter_)}
    return {"kappa": one.row["value"], "form": form, **one.row, **found}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return what is shown."""
    keys = ("accuracy", "pdp", "objective", "n_outer", "seconds")
    rows = [
        [f"{name}, kappa {one['kappa']}", FORMS[one["form"]], *(one[key] for key in keys)]
        for name in SETTINGS
        for one in results.get(name, [])
    ]
    if not rows:
        return {}
    heads = ("accuracy", "pDP fairness", "objective", "outer steps", "CPU seconds")
    title = "Problem (21) by IDCA, as printed and reformulated, test rows"
    return {"forms": Table(title, ("data", "form", *heads), rows)}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw accuracy against fairness of both forms."""
    data = [name for name in SETTINGS if results.get(name)]
    figure, axes = small(len(data), height=2.7, width=8.5, sharex=True) if data else (None, [])
    for panel, name in zip(axes, data, strict=True):
        for number, (form, text) in enumerate(FORMS.items()):
            found = [one for one in results[name] if one["form"] == form]
            x, y = ([one[key] for one in found] for key in ("pdp", "accuracy"))
            panel.plot(x, y, marker="os"[number], label=text, ls=("-", "--")[number])
        panel.set(title=name, xlabel="pDP fairness")
    if data:
        axes[0].set_ylabel("Accuracy on test rows")
        axes[0].legend(fontsize="small")
    return {"picture": figure} if data else {}
