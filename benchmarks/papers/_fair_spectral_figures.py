"""Figures 2, 3 and 5 to 9 of fair_spectral_dc: points in the plane, and time and balance by k.

Figures 6 and 7 show Thyroid and 4area, which are not public in the form of the paper: simulated
points of their shape are in their place.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.fair_spectral import cut_problem
from benchmarks.harness import Table
from benchmarks.papers._fair_spectral_data import (
    ADMM,
    EXACT,
    OURS,
    SEED,
    SHOWN_AS,
    compare,
    digits,
    embed,
    label_figures,
)
from benchmarks.papers._fair_spectral_points import make_elliptical, make_three_groups
from skfair.cluster.spectral.rounding import labels_by_kmeans

METHODS = ("o-FSC", EXACT, ADMM, OURS)
KS = (2, 5, 10, 15, 20, 25, 30, 40, 50)
FEW_KS = (2, 10, 25, 50)  # of simulated points
# The points, and the gamma of their kernel: 1 / d, as the paper has it for tables.
PLANES = {
    "Elliptical": (make_elliptical, 0.5),
    "three groups (for DS-577)": (make_three_groups, 0.5),
}
MARKERS = "o^s"


def planes(quick: bool) -> dict[str, Any]:
    """Figures 2 and 9: labels of points in the plane by each method."""
    results = {}
    for name, (make, gamma) in PLANES.items():
        X, truth, groups = make(90 if quick else 577, random_state=SEED)
        W, k = rbf_kernel(X, gamma=gamma), int(truth.max()) + 1
        double = cut_problem(W, groups, "float64")
        found: dict[str, Any] = {}
        for method in METHODS:
            H, _, _ = embed(method, W, double, cut_problem(W, groups, "float32"), k, seed=SEED)
            points = H * double.scale[:, None]
            rng = np.random.RandomState(SEED)
            labels = labels_by_kmeans(points / np.abs(points).max(), k, 10, rng)
            figures = label_figures(W, labels, groups, truth)
            figures["violation"] = double.residuals(H)[0]
            found[method] = {key: digits(value) for key, value in figures.items()}
            found[method]["labels"] = labels.tolist()
        results[name] = {
            "X": X.round(2).tolist(),
            "groups": groups.tolist(),
            "truth": {
                key: digits(value) for key, value in label_figures(W, truth, groups, truth).items()
            },
            "methods": found,
        }
    return results


def by_k(
    data: Mapping[str, tuple[Any, Any, float | None]], ks: Sequence[int] = KS
) -> dict[str, Any]:
    """Figures 3 and 5 to 8: time and average balance by the number of clusters."""
    results: dict[str, Any] = {}
    for name, (W, groups, shift) in data.items():
        results[f"{name}, n = {W.shape[0]}"] = of_data = {}
        for k in ks:
            rows = compare(W, groups, k, names=(EXACT, ADMM, OURS), shift=shift)
            kept = ("seconds", "mean", "ncut", "violation")
            of_data[str(k)] = {
                method: {key: row[key] for key in kept} for method, row in rows.items()
            }
    return results


def planes_table(results: Mapping[str, Any]) -> Table:
    """Show what the labels of each method are like."""
    lines: list[list[Any]] = []
    for name, one in results.items():
        truth = one["truth"]
        lines.append([f"{name}, clusters as drawn", truth["ncut"], truth["mean"], 1.0, "-", "-"])
        exact = one["methods"]["o-FSC"]["labels"]
        for method, row in one["methods"].items():
            same = digits(adjusted_rand_score(exact, row["labels"]))
            cells = [row["ncut"], row["mean"], row["ari"], same, row["violation"]]
            lines.append([f"{name}, {method}", *cells])
    columns = [
        "points, method",
        "normalised cut",
        "average balance",
        "ARI with the clusters as drawn",
    ]
    return Table(
        "Figures 2 and 9: labels in the plane", [*columns, "ARI with o-FSC", "|Q'H|"], lines
    )


def by_k_table(results: Mapping[str, Any]) -> Table:
    """Show time and balance by k."""
    lines = []
    for name, rows in results.items():
        for k, one in rows.items():
            seconds = [one[method]["seconds"] for method in (EXACT, ADMM, OURS)]
            balances = [one[method]["mean"] for method in (EXACT, ADMM, OURS)]
            ratio = digits(seconds[0] / seconds[1])
            lines.append([f"{name}, k = {k}", *seconds, ratio, *balances])
    columns = [
        "data, number of clusters",
        "seconds: s-FSC",
        f"/ {ADMM}",
        f"/ {OURS}",
        "s-FSC / DC-ADMM",
    ]
    columns += ["balance: s-FSC", f"/ {ADMM}", f"/ {OURS}"]
    return Table("Figures 3 and 5 to 8: time and average balance by k", columns, lines)


def draw_planes(results: Mapping[str, Any]) -> Any:
    """Figures 2 and 9: a row of panels per data set, colours are clusters, markers groups."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.6 * len(METHODS), 5.2), layout="constrained")
    axes = figure.subplots(len(results), len(METHODS), squeeze=False)
    for row, (name, one) in enumerate(results.items()):
        X, groups = np.array(one["X"]), np.array(one["groups"])
        for ax, method in zip(axes[row], METHODS, strict=True):
            labels = np.array(one["methods"][method]["labels"])
            for group in np.unique(groups):
                here = groups == group
                ax.scatter(
                    *X[here].T,
                    c=[f"C{label}" for label in labels[here]],
                    marker=MARKERS[group],
                    s=9,
                    linewidths=0,
                )
            ax.set(xticks=[], yticks=[], title=method.replace(OURS, SHOWN_AS))
        axes[row, 0].set_ylabel(name)
    return figure


def draw_by_k(results: Mapping[str, Any]) -> Any:
    """Figures 3 and 5 to 8."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.9 * len(results)), layout="constrained")
    axes = figure.subplots(len(results), 2, squeeze=False)
    for (left, right), (name, rows) in zip(axes, results.items(), strict=True):
        for method, marker in zip((EXACT, ADMM, OURS), "osD", strict=True):
            for ax, key in ((left, "seconds"), (right, "mean")):
                values = [one[method][key] for one in rows.values()]
                label = method.replace(OURS, SHOWN_AS)
                ax.plot([int(k) for k in rows], values, marker=marker, ms=4, label=label)
        left.set(title=name, ylabel="CPU seconds", yscale="log", xlabel="k")
        right.set(title=name, ylabel="average balance", xlabel="k")
        right.set_ylim(bottom=0)
    axes[0, 0].legend()
    return figure
