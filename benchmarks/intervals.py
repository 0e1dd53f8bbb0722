"""How often the interval of the largest disparity contains that of the population.

Samples are drawn from groups whose rates are known. The same interval is behind
``fairness_report``, ``group_report``, audits, ``disparity_test`` and ``disparity_upper_bound``, so
it is measured once, for the largest difference or ratio of two to ten groups. "Too high" and "too
low" are samples whose whole interval lies above, or below, the true value. The bound is wrong if it
lies below it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks.harness import Table, kept
from skfair import Cohort

FIRST_SEED, N_SAMPLES = 770_000, 400


class Setting(NamedTuple):
    """Rates of groups, and how many rows each has."""

    name: str
    rates: tuple[float, ...]
    n: int | tuple[int, ...]
    kind: Any = "difference"
    how: str = "rows"  # or "weights", "units", "shared units", "strata", "odds"


SETTINGS = (
    *(
        Setting(f"{len(rates)} groups, {min(rates):.0%} to {max(rates):.0%}, {n:,} each", rates, n)
        for rates in (
            (0.02, 0.02),
            (0.02, 0.07),
            (0.3, 0.3),
            (0.3, 0.4),
            (0.5, 0.5),
            (0.3, 0.3, 0.4),
            (0.05,) * 6,
            (0.3,) * 6,
            (0.3,) * 5 + (0.4,),
            (0.3,) * 10,
        )
        for n in (20, 300, 3000)
    ),
    Setting("6 groups of 20 to 3,000, equal", (0.3,) * 6, (20, 50, 150, 400, 1000, 3000)),
    Setting("2 groups, ratio", (0.2, 0.3), 300, "ratio"),
    Setting("4 groups, ratio", (0.2, 0.3, 0.3, 0.3), 300, "ratio"),
    Setting("2 groups, weights", (0.3, 0.4), 300, how="weights"),
    Setting("4 groups, weights", (0.3,) * 4, 300, how="weights"),
    Setting("2 groups, five rows a person", (0.3, 0.4), 300, how="units"),
    Setting("6 groups, five rows a person", (0.3,) * 6, 300, how="units"),
    Setting("2 groups, each person in both", (0.3, 0.4), 300, how="shared units"),
    Setting("2 groups in three strata", (0.3, 0.3), 300, how="strata"),
    Setting("2 groups, equalized odds", (0.3, 0.4), 300, how="odds"),
    Setting("6 groups, equalized odds", (0.3,) * 6, 300, how="odds"),
)


def drawn(setting: Setting, rng: np.random.Generator) -> tuple[Any, ...]:
    """Draw a sample: true and predicted labels, groups, and options of the reading."""
    rates, options = np.asarray(setting.rates), {}
    sizes = np.broadcast_to(np.asarray(setting.n), rates.shape)
    groups = np.repeat(np.arange(rates.size), sizes)
    if setting.how == "units":  # the chance of a person varies, so rows have a correlation of .5
        groups = np.repeat(groups, 5)
        person = np.repeat(np.arange(groups.size // 5), 5)
        of_rows = rates[groups[::5]]
        chances = np.repeat(rng.beta(of_rows, 1 - of_rows), 5)
        options["units"] = person
    elif setting.how == "shared units":  # the same people under two names
        options["units"] = np.tile(np.arange(sizes[0]), rates.size)
        luck = rng.random(sizes[0])
        chances = (np.tile(luck, rates.size) < rates[groups]).astype(float)
    else:
        chances = rates[groups]
    predicted = (rng.random(groups.size) < chances).astype(int)
    if setting.how == "weights":
        options["sample_weight"] = rng.exponential(size=groups.size) + 0.2
    if setting.how == "strata":
        options["control_features"] = rng.integers(0, 3, groups.size)
    return rng.integers(0, 2, groups.size), predicted, groups, options


def measured(setting: Setting, n_samples: int) -> dict[str, Any]:
    """Count the intervals that miss the disparity of the population, and those of the bound."""
    rates, ends, wrong = np.asarray(setting.rates), [], 0
    is_ratio = setting.kind == "ratio"
    true = float(rates.min() / rates.max() if is_ratio else np.ptp(rates))
    names = ("selection_rate",)
    if setting.how == "odds":
        names = ("true_positive_rate", "false_positive_rate")
    for seed in range(FIRST_SEED, FIRST_SEED + n_samples):
        y, predicted, groups, options = drawn(setting, np.random.default_rng(seed))
        people = Cohort(y, predicted, sensitive_features=groups, **options)
        gap = (people.ratio if is_ratio else people.difference)(*names)
        ends.append(gap.interval() if np.isfinite(gap.value) else (0.0, 1.0))
        limit = true + 1e-9 if is_ratio else true - 1e-9
        wrong += gap.p_value(limit) <= 0.05
    low, high = np.transpose(ends)
    return {
        "name": setting.name,
        "samples": n_samples,
        "too_high": int((low > true + 1e-9).sum()),
        "too_low": int((high < true - 1e-9).sum()),
        "bound_wrong": int(wrong),
        "width": float((high - low).mean()),
    }


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measure all settings."""
    n_samples = 10 if quick else N_SAMPLES
    settings = SETTINGS[::8] if quick else SETTINGS
    rows = [
        kept(f"intervals-{one.name}", lambda: measured(one, n_samples), quick=quick)  # noqa: B023
        for one in settings
    ]
    return {"settings": rows}


def canary() -> list[dict[str, Any]]:
    """Return the results of a small cell."""
    chosen = (SETTINGS[4], *(one for one in SETTINGS if one.name == "2 groups, weights"))
    return [measured(setting, N_SAMPLES) for setting in chosen]


def numbers(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return how often intervals contain the truth over all settings, and in the worst one."""
    rows = results["settings"]
    covered = [1 - (row["too_high"] + row["too_low"]) / row["samples"] for row in rows]
    return {
        "n_settings": len(rows),
        "n_samples": rows[0]["samples"],
        "covered": float(np.mean(covered)),
        "least_covered": min(covered),
        "bound_wrong": max(row["bound_wrong"] / row["samples"] for row in rows),
    }


def tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Show coverage and width in each setting."""
    shown = [
        [
            row["name"],
            f"{1 - (row['too_high'] + row['too_low']) / row['samples']:.1%}",
            f"{row['too_high'] / row['samples']:.1%}",
            f"{row['too_low'] / row['samples']:.1%}",
            f"{row['width']:.3f}",
            f"{row['bound_wrong'] / row['samples']:.1%}",
        ]
        for row in results["settings"]
    ]
    columns = ["setting", "contains the true value", "too high", "too low", "mean width"]
    columns.append("upper bound too low")
    return {"settings": Table("Intervals of the largest disparity", columns, shown)}


def pictures(results: Mapping[str, Any]) -> dict[str, Any]:
    """Draw the coverage of each setting."""
    covered = {
        row["name"]: [100 * (1 - (row["too_high"] + row["too_low"]) / row["samples"])]
        for row in results["settings"]
    }
    figure, (axes,) = small(height=9.0)
    rows_of_dots(axes, covered)
    mark(axes, 95, "nominal 95%")
    axes.set_xlabel("Intervals that contain the disparity of the population, %", loc="right")
    axes.set_xlim(right=100.5)
    return {"picture": figure}


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
