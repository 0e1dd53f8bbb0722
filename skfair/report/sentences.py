"""What an audit found in detail, in sentences; the first screen is in ``verdicts``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skfair.metrics.labels import LABEL_METRICS
from skfair.report.result import AuditTables
from skfair.report.rules import RULES
from skfair.report.words import measure_words, metric_words
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import plural

# The gaps that the summary speaks about, in this order; of those that were measured, so many.
HEADLINES = (
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "false_positive_parity_difference",
    "mean_residual_difference",
    "mean_absolute_error_difference",
    "accuracy_parity_difference",
)
N_HEADLINES = 3
# The first of them that there is compares groups with the reference group in the summary.
SIGNED = ("selection_rate", "mean_residual", "mean_prediction", "accuracy")
_PRICES = {"accuracy_change": "accuracy", "error_change": "mean absolute error"}


def number(value: float, digits: int = 3) -> str:
    """Write a number; an undefined one is a dash."""
    if value is None or not np.isfinite(value):
        return "-"
    if abs(value) < ROUNDING:
        value = 0.0
    size = abs(value)
    text = f"{value:.{digits}f}" if size < 100 else f"{value:,.0f}"
    return f"{value:.2g}" if 0 < size < 0.5 * 10**-digits else text


def p_text(p_value: float, n_simulations: int) -> str:
    """Write a p-value; the least that simulations can show is a bound, which is rounded up."""
    if not p_value < 1.5 / (n_simulations + 1):  # or undefined
        return f"= {p_value:.2g}"
    unit = 10.0 ** (np.floor(np.log10(p_value)) - 1)
    return f"<= {np.ceil(p_value / unit - ROUNDING) * unit:.2g}"


def gap_sentence(gap: Any, confidence: float) -> str:
    """Say what a gap is, between whom, how certain, and what chance alone would show."""
    words, (plain, _, label) = metric_words(gap.metric), gap.metric.partition("[")
    means = f"{words.name.split(' (')[0].lower()}s"
    if plain in LABEL_METRICS:
        of_class = f" ({label[:-1]})" if label else ""
        means = LABEL_METRICS[plain].what.lower() + of_class
    if not gap.first_group and not np.isfinite(gap.value_low):
        return f"{gap.view}: {means} are known for one group only, so nothing can be compared."
    if gap.is_ratio and not np.isfinite(gap.value):
        return f"{gap.view}: {means} are 0 in each group that has any, so they have no ratio."
    of_groups = f" of {gap.first_group} and {gap.second_group}" if gap.first_group else ""
    apart = (
        f"have the ratio {number(gap.value)}" if gap.is_ratio else f"are {number(gap.value)} apart"
    )
    ends = f"{number(gap.value_low)} to {number(gap.value_high)}"
    return (
        f"{gap.view}: {means}{of_groups} {apart} ({100 * confidence:g}% interval {ends}); "
        f"{_by_chance(gap)}."
    )


def _by_chance(gap: Any) -> str:
    """Say what chance shows; between whom, if not between the two that are furthest apart."""
    verdict = f"{'beyond' if gap.is_beyond_chance else 'within'} what chance shows"
    further = gap.noise_upper - gap.value if gap.is_ratio else gap.value - gap.noise_upper
    if (further > ROUNDING) == gap.is_beyond_chance:
        return f"{verdict} ({'down' if gap.is_ratio else 'up'} to {number(gap.noise_upper)})"
    is_same = (gap.first_group, gap.second_group) == (gap.clear_first, gap.clear_second)
    if gap.is_beyond_chance and not is_same:
        return f"{verdict} between {gap.clear_first} and {gap.clear_second}"
    return verdict


def findings_of(tables: AuditTables) -> list[str]:
    """Return what an audit found in detail, one sentence each."""
    gaps = tables.gaps
    sentences = [*impact_sentences(tables), *signed_sentences(tables)]
    if len(gaps):
        now = gaps[(gaps["model"] == "now") & ~gaps["is_conditional"]]
        known = [name for name in HEADLINES if (now["metric"] == name).any()][:N_HEADLINES]
        known = known or list(dict.fromkeys(now["metric"]))[:N_HEADLINES]
        for view in dict.fromkeys(now["view"]):
            of_view = now[now["view"] == view]
            is_named = of_view["metric"].isin(known)
            beyond = of_view["value"].where(of_view["is_beyond_chance"] & ~of_view["is_ratio"])
            if beyond.notna().any():  # the largest difference beyond chance, whichever it is
                is_named |= of_view.index == beyond.idxmax()
            rows = of_view[is_named]
            sentences += [gap_sentence(gap, tables.confidence) for gap in rows.itertuples()]
    sentences += apart_sentences(tables.rates)
    if tables.n_subgroups:
        n_beyond, n_searched = tables.n_beyond_chance, tables.n_subgroups
        sentences.append(
            f"{plural(n_searched, 'subgroup')} {'was' if n_searched == 1 else 'were'} compared "
            f"with the rest by each measure; {plural(n_beyond, 'comparison')} "
            f"{'is' if n_beyond == 1 else 'are'} beyond what chance shows anywhere in the audit."
        )
    return sentences


def signed_sentences(tables: AuditTables) -> list[str]:
    """Say of each attribute which group is furthest from the reference group, and by how much."""
    sentences = []
    for view in dict.fromkeys(tables.signed["view"]) if len(tables.signed) else ():
        rows = tables.signed[(tables.signed["view"] == view) & tables.signed["difference"].notna()]
        measures = dict.fromkeys(rows["measure"])
        first = next((name for name in (*SIGNED, *measures) if name in measures), None)
        own = rows.loc[rows["measure"] == first, "difference"].abs()
        furthest = rows.loc[own.index[own == own.max()][:1]]
        sentences += [_signed_sentence(row, tables.confidence) for row in furthest.itertuples()]
    return sentences


def _signed_sentence(row: Any, confidence: float) -> str:
    """Say who is lower, by how much, and against whom."""
    what = measure_words(row.measure).name.lower()
    way = "lower than" if row.difference < 0 else "higher than"
    apart = f"{number(abs(row.difference))} {way}" if row.difference else "equal to"
    ends = f"{number(row.difference_low)} to {number(row.difference_high)}"
    return (
        f"{row.view}: the {what} of {row.group} is {number(row.value)}, {apart} the "
        f"{number(row.reference_value)} of {row.reference} ({100 * confidence:g}% interval of the "
        f"difference {ends})."
    )


def apart_sentences(rates: pd.DataFrame) -> list[str]:
    """Name the groups that are not compared, with their numbers of rows, and say why."""
    sentences = []
    for view in dict.fromkeys(rates["view"]):
        own = rates[rates["view"] == view].drop_duplicates("group")
        for apart, why in (("small", "have few rows"), ("unknown", "are unknown")):
            rows = own[own["apart"] == apart]
            if len(rows):
                sentences.append(f"{view}: not compared, because they {why}: {_named(rows)}.")
        if own["apart"].ne("").any() and own["apart"].eq("").sum() < 2:
            sentences.append(f"{view}: fewer than two groups are left, so nothing is compared.")
    return sentences


def _named(rows: pd.DataFrame) -> str:
    """List groups with their numbers of rows."""
    return ", ".join(f"{row.group} ({row.n:,.0f})" for row in rows.itertuples())


def impact_sentences(tables: AuditTables) -> list[str]:
    """Name the lowest ratio of each view by the rule of a preset, and who has none."""
    sentences = []
    for view in dict.fromkeys(tables.impact["view"]) if len(tables.impact) else ():
        rows = tables.impact[tables.impact["view"] == view]
        if "impact_ratio" in rows and rows["impact_ratio"][rows["status"] == "compared"].any():
            ratios = rows["impact_ratio"].where(rows["status"] == "compared")
            lowest = next(rows.loc[[ratios.idxmin()]].itertuples())
            against = rows.set_index("group").loc[lowest.compared_with]
            sentences.append(_impact_sentence(lowest, float(against["rate"]), tables.preset))
        small = rows[rows["status"] == "small"]
        if len(small):
            sentences.append(f"{view}: no impact ratio for few people: {_named(small)}.")
    return sentences


def _impact_sentence(row: Any, rate: float, preset: str) -> str:
    """Say who has the lowest impact ratio, against whom, and what the rule makes of it."""
    text = (
        f"{row.view}: the lowest impact ratio is {number(row.impact_ratio)}: the "
        f"{row.measure.replace('_', ' ')} of {row.group} is {100 * row.rate:.1f}%, that of "
        f"{row.compared_with} {100 * rate:.1f}%"
    )
    if "is_below_four_fifths" not in RULES[preset].columns:
        return f"{text}."
    flag = "below four fifths" if row.is_below_four_fifths else "not below four fifths"
    turns = ", which one person would turn" if row.is_fragile else ""
    return (
        f"{text}; {flag}{turns}; {abs(row.z):.2f} standard deviations, Fisher's p = "
        f"{number(row.fisher_p)}."
    )


def change_sentences(tables: AuditTables) -> list[str]:
    """Say what the change of the model cost, and who moved."""
    whole = tables.rates[tables.rates["view"] == ""].set_index("measure")
    sentences = []
    for measure, what in _PRICES.items():
        if measure in whole.index:
            row = whole.loc[measure].to_dict()
            ends = f"{number(row['value_low'])} to {number(row['value_high'])}"
            change = number(row["value"])
            sentences.append(f"Against the model before, {what} changed by {change} ({ends}).")
    if "moved_up" in whole.index:
        up, down = (
            number(100 * value, 1) for value in whole["value"][["moved_up", "moved_down"]].tolist()
        )
        sentences.append(f"{up}% of the rows moved up, {down}% down.")
    return sentences


def levelled_down(tables: AuditTables) -> list[str]:
    """Name the attributes whose groups came closer while none is selected more often."""
    views = []
    for view in tables.attributes:
        own = tables.rates[(tables.rates["view"] == view) & (tables.rates["apart"] == "")].pivot(
            index="group", columns="measure", values="value"
        )
        if not {"selection_rate", "before:selection_rate"} <= set(own.columns):
            continue
        now, then = own["selection_rate"], own["before:selection_rate"]
        if (now <= then).all() and np.ptp(now) < np.ptp(then):
            views.append(view)
    return views
