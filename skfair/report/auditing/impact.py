"""The table of a preset: selection rates as a rule of law compares them.

``audit_table`` calls :func:`impact_table` for the table ``impact`` and :func:`rule_text` for the
rule. What each preset shows of the table is in ``words.toml`` (``rule_of``).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from skfair._typing import FloatArray, IntArray
from skfair.groups.rates import wilson
from skfair.groups.table import GroupTable
from skfair.metrics.selection import Counts, compare_counts, mantel_haenszel, ratios_to
from skfair.report.tables.options import Options
from skfair.report.tables.views import View
from skfair.report.words import dated, laws, rule_of

# Values of the column ``status``. Its other values are those of ``View.apart``, such as "small".
COMPARED, REFERENCE = "compared", "reference"
_FLAGS = ("is_below_four_fifths", "is_fragile")


def rule_text(options: Options) -> str:
    """Return the rule in one paragraph, with the median if scores were compared with it.

    The text is empty without a preset.
    """
    if options.preset is None:
        return ""
    rule, law = rule_of(options.preset), laws()[options.preset]
    state = " ".join(filter(None, [law["state"], law.get("pending")]))
    text = f"{rule.says} {dated(law)} {state} Source: {law['source']} {rule.is_not}"
    if options.median is None:
        return text
    return f"{text} Here the rate is the share of scores above the median, {options.median:.4g}."


def impact_table(
    sample: GroupTable, views: list[View], options: Options, reading: str
) -> pd.DataFrame:
    """Return the table ``impact``: rates, ratios and tests of each group of each view.

    It is empty without a preset. Preset "ecoa" also accepts predicted numbers, such as prices. They
    have no selection rates. ``reading`` says how labels were read.
    """
    if options.preset is None:
        return pd.DataFrame()
    has_prices = options.preset == "ecoa" and "mean_prediction" in sample.measures
    if "selection_rate" not in sample.measures and not has_prices:
        raise ValueError(
            f"preset={options.preset!r} compares selection rates, but the labels are {reading}. "
            "Pass the label that means selected as pos_label=, or y_score with threshold."
        )
    of_all = sample.measures.get("selection_rate", next(iter(sample.measures.values())))
    if sample.units is not None or not (of_all.sums[:, 0] == sample.counts).all():
        raise ValueError(
            f"preset={options.preset!r} counts people, each once. Leave out sample_weight. If "
            "people have several rows, pass units=, the person of each row."
        )
    table = pd.concat([_of_view(sample, view, options) for view in views], ignore_index=True)
    for name in set(_FLAGS) & set(table.columns):
        table[name] = table[name].eq(True)
    return table


def _of_view(sample: GroupTable, view: View, options: Options) -> pd.DataFrame:
    """Return the rows of the table for one view, which is an attribute or a crossing."""
    status, n_rows = np.where(view.apart == "", COMPARED, view.apart), view.n_rows.astype(np.int64)
    table = pd.DataFrame({"view": view.name, "group": view.names, "n": n_rows, "status": status})
    if "selection_rate" in sample.measures:
        table = _with_rates(table, sample, view, options)
    elif view.reference is not None:
        table.loc[view.reference, "status"] = REFERENCE
    if options.preset == "ecoa":
        _add_means(table, view)
    return table


def _with_rates(
    table: pd.DataFrame, sample: GroupTable, view: View, options: Options
) -> pd.DataFrame:
    """Add selection rates, impact ratios and tests.

    Groups are compared with the group that has the highest rate, or for preset "ecoa" with the
    reference group that the user named. ``against`` is its index, or None if there is none.
    """
    n_rows, is_kept, stated = table["n"].to_numpy(), view.apart == "", view.reference
    selected = view.measures["selection_rate"].sums[0, 1].round().astype(np.int64)
    rates = selected / n_rows
    low, high = wilson(rates, n_rows.astype(np.float64), options.confidence)
    # If scores were compared with their median, the rate is called scoring rate, as in the law.
    measure = "selection_rate" if options.median is None else "scoring_rate"
    table = table.assign(
        measure=measure, selected=selected, rate=rates, rate_low=low, rate_high=high
    )
    if stated is not None:
        every = ratios_to(selected, n_rows, selected[stated], n_rows[stated])
        table["ratio_to_reference"] = np.where(is_kept, every, np.nan)
    best = int(np.argmax(np.where(is_kept, rates, -1.0))) if is_kept.any() else None
    against = stated if options.preset == "ecoa" else best
    table["compared_with"] = "" if against is None else table["group"].iloc[against]
    if against is None:
        return table
    table.loc[against, "status"] = REFERENCE
    places = np.flatnonzero(is_kept & (np.arange(len(table)) != against))
    sides = selected[places], n_rows[places], selected[against], n_rows[against]
    counts = Counts(*np.broadcast_arrays(*sides))
    tests = compare_counts(counts)
    if sample.within:
        tests = tests.assign(**_within_strata(sample, view, places, against))
    table = table.join(tests.set_index(places))
    table.loc[against, "impact_ratio"] = 1.0 if selected[against] else np.nan
    return table


def _within_strata(
    sample: GroupTable, view: View, places: IntArray, against: int
) -> dict[str, FloatArray]:
    """Compare each group with one group, within the strata of the control features.

    Returns the common odds ratio and the p-value of Mantel and Haenszel. ``places`` are the indices
    of the groups, and ``against`` is the index of the group that they are compared with.
    """
    table = sample.compared(view.attributes, sample.within)
    at = table.groups.stratum_of, table.groups.group_of
    selected, n_rows = np.zeros((2, at[0].max() + 1, len(view.names)))
    selected[at], n_rows[at] = table.measures["selection_rate"].sums[0, 1], table.counts
    tables = [
        mantel_haenszel(
            Counts(selected[:, place], n_rows[:, place], selected[:, against], n_rows[:, against])
        )
        for place in places
    ]
    columns = np.array(tables).reshape(-1, 2).T
    return dict(zip(("strata_odds_ratio", "strata_p_value"), columns, strict=True))


def _add_means(table: pd.DataFrame, view: View) -> None:
    """Add mean scores or prices in place, and their differences from the reference group.

    The differences are in standard deviations of all rows.
    """
    of_groups = view.measures.get("mean_score", view.measures.get("mean_prediction"))
    if of_groups is None:
        return
    spread, means = float(np.sqrt(of_groups.whole().variances[0])), of_groups.means
    table["mean"] = means
    if view.reference is not None and spread > 0:
        apart = (means - means[view.reference]) / spread
        table["standardized_difference"] = np.where(view.apart == "unknown", np.nan, apart)
