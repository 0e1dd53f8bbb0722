"""The tables of an audit, computed from a tally: by attribute, and for all attributes crossed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair._typing import FloatArray
from skfair.groups.compared_groups import ComparedGroups, checked_rows
from skfair.report.calibration import ScoreTables
from skfair.report.gaps import Compared, Gap, Simulated, compare_gaps, judge_gap
from skfair.report.options import Options
from skfair.report.roles import View
from skfair.report.tally import Tally
from skfair.report.tasks import BEFORE, Task


def rates_table(tally: Tally, views: list[View], confidence: float) -> pd.DataFrame:
    """Return every measure of every group with its interval, and of all rows."""
    of_all = np.zeros(tally.n_rows.size, np.int64)
    whole = View("", [], ["all"], of_all, tally.n_rows.sum(keepdims=True), "", None)
    tables = []
    for view in (whole, *views):
        for measure, cells in tally.moments.items():
            moments = view.merged(cells)
            tables.append(view.rates(measure, moments.means, *moments.interval(confidence)))
    return pd.concat(tables, ignore_index=True)


class Gaps(NamedTuple):
    """What is said about differences."""

    rarest: FloatArray  # how rare the most extreme comparison of each simulation is, in order
    table: pd.DataFrame
    # The p-value, and above which difference it is beyond chance, by view, measure and pair
    chance: dict[tuple[str, str, frozenset[str]], tuple[float, float]]


def find_gaps(
    tally: Tally, views: list[View], task: Task, options: Options, others: list[Simulated]
) -> Gaps:
    """Return every gap of every view: of both models, and within strata as well.

    Their p-values cover each other, and other comparisons of the audit.
    """
    gaps = task.gaps(options.metrics, set(tally.moments))
    places: list[dict[str, Any]] = []
    compared: list[Compared] = []
    for view in views:
        is_kept = view.apart == ""
        if not is_kept.all() and is_kept.sum() < 2:
            continue
        cells = tally.only(is_kept[view.codes])
        for is_conditional in [False, True] if tally.control else [False]:
            groups = _groups_of(cells, view, is_conditional=is_conditional)
            for model, prefix in (("now", ""), ("before", BEFORE)):
                of_view = _gaps_of(cells, gaps, groups, prefix, options)
                where: dict[str, Any] = {
                    "view": view.name,
                    "model": model,
                    "is_conditional": is_conditional,
                }
                places += [where] * len(of_view)
                compared += of_view
    records: list[dict[str, Any]] = []
    chance: dict[tuple[str, str, frozenset[str]], tuple[float, float]] = {}
    rarest = _rarest([*(of_gap.simulated for of_gap in compared), *others])
    # The subgroups of one attribute are its groups once more.
    own = rarest if len(tally.sensitive) > 1 else _rarest([of_gap.simulated for of_gap in compared])
    for where, of_model in zip(places, compared, strict=True):
        gap = of_model.gap
        record, of_pairs = judge_gap(of_model, own, 1 - options.confidence)
        records.append({**where, "metric": gap.name, "is_ratio": gap.is_ratio, **record})
        if where["model"] == "now" and not where["is_conditional"] and gap.is_single:
            name = gap.measures[0]
            chance |= {(where["view"], name, pair): own_p for pair, own_p in of_pairs.items()}
    return Gaps(rarest, pd.DataFrame(records), chance)


def _rarest(simulated: list[Simulated]) -> FloatArray:
    """Return how rare the most extreme comparison of each simulation is, in order."""
    return (
        np.sort(np.min([each.rarities for each in simulated], axis=0)) if simulated else np.empty(0)
    )


def _groups_of(tally: Tally, view: View, *, is_conditional: bool) -> ComparedGroups:
    """Return the groups of a view; within strata if asked."""
    groups, _ = checked_rows(
        tally.columns(view.attributes),
        tally.columns(tally.control) if is_conditional else None,
        n_samples=tally.n_rows.size,
        row_counts=tally.n_rows.astype(np.int64),
    )
    return groups


def _gaps_of(
    tally: Tally, gaps: list[Gap], groups: ComparedGroups, prefix: str, options: Options
) -> list[Compared]:
    """Compare some groups by the gaps of one model."""
    computable = {name for gap in gaps for name in gap.measures if prefix + name in tally.moments}
    codes, n_cells = groups.cells.codes[0], groups.cells.n_groups
    moments = {
        name: tally.moments[prefix + name].merged(codes, n_cells) for name in sorted(computable)
    }
    return compare_gaps(
        [gap for gap in gaps if set(gap.measures) <= computable],
        moments,
        groups,
        list(groups.cells.names),
        confidence=options.confidence,
        n_draws=options.n_simulations,
        rng=options.rng,
    )


def score_report(
    tally: Tally, views: list[View], task: Task, confidence: float
) -> tuple[pd.DataFrame, pd.DataFrame, list[pd.DataFrame]]:
    """Return calibration, densities, and rates such as areas under the curve, of each view."""
    if tally.scores is None:
        return pd.DataFrame(), pd.DataFrame(), []
    calibration, densities, rates = [], [], []
    is_share = bool(task.classes)
    means = tally.moments["mean_score" if "mean_score" in tally.moments else "mean_prediction"]
    for view in views:
        weight, squares = view.merged(means).sums[2:]
        per_weight = weight / np.where(squares > 0, squares, 1.0)
        bins = tally.scores.merged(view.codes, len(view.names))
        tables = ScoreTables(bins, is_share, per_weight)
        calibration.append(tables.calibration(view.names, confidence).assign(view=view.name))
        densities.append(tables.densities(view.names).assign(view=view.name))
        if is_share:
            rates.append(view.rates("auc", *tables.aucs(confidence)))
        if not is_share or (bins.edges[0], bins.edges[-1]) == (0.0, 1.0):
            errors = tables.calibration_errors()
            rates.append(view.rates("calibration_error", errors, np.nan, np.nan))
    every = [pd.concat(tables, ignore_index=True) for tables in (calibration, densities)]
    return every[0], every[1], rates
