"""An audit in sentences: verdicts on the first screen, and the findings in detail.

The first screen has a verdict on each attribute, at most five lines. A verdict says who is lower,
by how much, against whom, whether chance explains it, and, of selections, the impact ratio. It
speaks of the largest difference that is beyond chance, or of the largest one if none is. What does
not fit is among the details.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair.metrics.labels import LABEL_METRICS
from skfair.report.result import AuditTables, parts, where
from skfair.report.words import measure_words, metric_words, rule_of
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed_in, plural

MOST_LINES = 5
# The difference that a verdict speaks of, the first that was measured.
VERDICTS = ("demographic_parity_difference", "mean_residual_difference")
# The gaps that the details speak about, in this order; of those that were measured, so many.
DETAILED = (
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "false_positive_parity_difference",
    "mean_residual_difference",
    "mean_absolute_error_difference",
    "accuracy_parity_difference",
)
N_DETAILED = 3
# The first of them that there is compares groups with the reference group in the details.
SIGNED = ("selection_rate", "mean_residual", "mean_prediction", "accuracy")
FOUR_FIFTHS = 0.8
_CLASS_MEASURES = {
    "demographic_parity_difference": "share_predicted",
    "equal_opportunity_difference": "recall",
}


class Verdict(NamedTuple):
    """What is said about one attribute or crossing."""

    view: str
    metric: str  # "" if nothing could be compared
    text: str
    p_value: float
    is_beyond_chance: bool


def verdicts_of(tables: AuditTables) -> list[str]:
    """Return the lines of the first screen; five at most."""
    verdicts = [_of_attribute(tables, name) for name in tables.attributes]
    more = [*_elsewhere(tables, verdicts), *_changes(tables), *_apart(tables)]
    return [*_fitted(verdicts, MOST_LINES - len(more)), *more]


def measure_of(metric: str, task: str) -> str:
    """Return the measure that a difference compares; "" if it compares several."""
    plain, bracket, label = metric.partition("[")
    if task == "classes":
        return f"{_CLASS_MEASURES.get(plain, 'accuracy')}{bracket}{label}"
    if plain in LABEL_METRICS:
        spec = LABEL_METRICS[plain]
        return spec.rates[0] if spec.kind == "difference" and len(spec.rates) == 1 else ""
    return plain.removesuffix("_difference")


def _differences(tables: AuditTables) -> pd.DataFrame:
    """Return the differences of one measure each of the present model."""
    gaps = where(tables.gaps, model="now", is_conditional=False, is_ratio=False)
    return (
        gaps[[measure_of(name, tables.task) != "" for name in gaps["metric"]]]
        if len(gaps)
        else gaps
    )


def _of_attribute(tables: AuditTables, view: str) -> Verdict:
    """Return the verdict on an attribute."""
    rows = where(_differences(tables), view=view)
    named = [name for name in VERDICTS if len(where(rows, metric=name))]
    if named:
        rows = where(rows, metric=named[0])
    elif len(rows) and rows["is_beyond_chance"].any():
        rows = rows[rows["is_beyond_chance"]].sort_values("value", ascending=False, kind="stable")
    gap = next(rows.itertuples(), None)
    if gap is None or not gap.first_group:
        text = f"{view}: nothing is compared, because fewer than two groups have what it takes."
        return Verdict(view, "", text, np.nan, False)
    return _sentence(tables, gap)


def _sentence(tables: AuditTables, gap: Any, *, of_all: bool = False) -> Verdict:
    """Put the clearest pair of a difference into a sentence, with a reference group one with it.

    With ``of_all`` it is one of all pairs, if none with the reference group is beyond chance.
    """
    measure = measure_of(gap.metric, tables.task)
    group, other, p_value, is_beyond = _against_reference(tables, gap, measure)
    if group is None or (of_all and not is_beyond):
        group, other = gap.clear_first, gap.clear_second
        p_value, is_beyond = gap.p_value, gap.is_beyond_chance
    rates = _compared_rates(tables, gap)
    is_share = not measure.startswith("mean_")
    texts = (_shares if is_share else _numbers)(float(rates[group]), float(rates[other]))
    is_scoring = measure == "selection_rate" and len(where(tables.impact, measure="scoring_rate"))
    clause = measure_words("scoring_rate" if is_scoring else measure).clause
    head, tail = clause.replace("{label}", measure.partition("[")[2][:-1]).split("{}")
    before = head.split()[-1]  # "in" or "of"
    who, whom = (group_words(gap.view, name) for name in (group, other))
    of_many = f" (of {len(rates)} groups)" if len(rates) > 2 else ""
    text = f"{gap.view}: {who} {head}{texts[0]}{tail}, {whom} {before} {texts[1]}{of_many}: "
    negation, p = "" if is_beyond else "not ", p_text(p_value, tables.n_simulations)
    text += f"{texts[2]}, {negation}more than chance explains (p {p})"
    if measure == "selection_rate":
        text += _ratio(tables, gap.view, rates, {group, other})
    return Verdict(gap.view, gap.metric, f"{text}.", p_value, is_beyond)


def _against_reference(
    tables: AuditTables, gap: Any, measure: str
) -> tuple[str | None, str, float, bool]:
    """Return the group furthest from the reference group, that one, and how certain it is."""
    signed = where(tables.signed, view=gap.view, measure=measure)
    signed = signed[signed["difference"].notna()] if len(signed) else signed
    if not len(signed):
        return None, "", np.nan, False
    is_beyond = signed["p_value"] <= 1 - tables.confidence + ROUNDING
    kept = signed[is_beyond] if is_beyond.any() else signed
    row: Any = kept.iloc[int(np.argmax(kept["difference"].abs()))]
    return row["group"], row["reference"], row["p_value"], bool(is_beyond.any())


def group_words(view: str, name: str) -> str:
    """Return the name of a group; of a number with the attribute."""
    is_bare = name.lower() in ("true", "false", "yes", "no") or not any(c.isalpha() for c in name)
    return f"those of {view} {name}" if is_bare and " x " not in view else name


def _shares(first: float, second: float) -> tuple[str, str, str]:
    """Return two shares in percent and their difference, with as many digits as they need."""
    for digits in (1, 2, 3):
        a, b = round(100 * first, digits), round(100 * second, digits)
        if a != b or abs(first - second) <= ROUNDING:
            break
    if a == b:
        return f"{a:g}%", f"{b:g}%", "no difference"
    apart = f"{round(abs(a - b), digits):g}"
    points = "percentage point" if apart == "1" else "percentage points"
    return f"{a:g}%", f"{b:g}%", f"{apart} {points} {'less' if a < b else 'more'}"


def _numbers(first: float, second: float) -> tuple[str, str, str]:
    """Return two numbers and their difference."""
    if abs(first - second) <= ROUNDING * max(abs(first), abs(second), 1.0):
        return number(first), number(second), "no difference"
    apart = abs(first - second)
    digits = max(3, 1 - int(np.floor(np.log10(apart))))  # two of the difference
    if max(abs(first), abs(second)) < 100:  # what a reader subtracts
        apart = abs(round(first, digits) - round(second, digits))
    way = "lower" if first < second else "higher"
    return number(first, digits), number(second, digits), f"{number(apart, digits)} {way}"


def _ratio(tables: AuditTables, view: str, rates: pd.Series, named: set[str]) -> str:
    """Return the lowest impact ratio, of the rates or of the table of a preset."""
    low, high = str(rates.idxmin()), str(rates.idxmax())
    ratio = float(rates[low] / rates[high]) if rates[high] > 0 else np.nan
    has_threshold = True
    if tables.preset:
        rows = where(tables.impact, view=view, status="compared")
        if not len(rows) or not rows["impact_ratio"].notna().any():
            return ""
        row: Any = rows.iloc[int(np.nanargmin(rows["impact_ratio"]))]
        low, high, ratio = row["group"], row["compared_with"], float(row["impact_ratio"])
        has_threshold = "is_below_four_fifths" in rule_of(tables.preset).columns
    if not np.isfinite(ratio):
        return ""
    who = "" if {low, high} == named else f" ({low} against {high})"
    name = "lowest impact ratio" if who else "impact ratio"
    text = f"{ratio:.2f}"
    if text == "0.80" and abs(ratio - FOUR_FIFTHS) > ROUNDING:
        text = f"{ratio:.4f}"
    if not has_threshold:
        return f"; {name} {text}{who}"
    side = "below" if ratio < FOUR_FIFTHS - ROUNDING else "not below"
    if ratio > FOUR_FIFTHS + ROUNDING:
        side = "above"
    return f"; {name} {text}{who}, {side} four fifths"


def _fitted(verdicts: list[Verdict], room: int) -> list[str]:
    """Return as many verdicts as there is room for, the clearest ones, and name the others."""
    if len(verdicts) <= room:
        return [verdict.text for verdict in verdicts]
    order = sorted(
        verdicts,
        key=lambda verdict: (not verdict.is_beyond_chance, np.nan_to_num(verdict.p_value, nan=2.0)),
    )
    shown, rest = order[: room - 1], order[room - 1 :]
    names = listed_in([verdict.view for verdict in rest])
    n_beyond = sum(verdict.is_beyond_chance for verdict in rest)
    text = f"Also compared: {names}; {n_beyond or 'none'} of them with a difference beyond chance."
    return [verdict.text for verdict in verdicts if verdict in shown] + [text]


def _elsewhere(tables: AuditTables, verdicts: list[Verdict]) -> Iterator[str]:
    """Say the largest difference beyond chance, if no verdict is about it."""
    every: list[Any] = list(where(_differences(tables), is_beyond_chance=True).itertuples())
    gaps = [
        gap
        for gap in every
        if not gap.metric.startswith("mean_score")  # may have another unit than shares
    ]
    if not gaps:
        return
    sizes = []
    for gap in gaps:
        rates = _compared_rates(tables, gap)
        sizes.append(abs(float(rates[gap.clear_first] - rates[gap.clear_second])))
    gap = gaps[int(np.argmax(sizes))]
    if (gap.view, gap.metric) not in {(v.view, v.metric) for v in verdicts if v.is_beyond_chance}:
        yield f"Largest difference beyond chance: {_sentence(tables, gap, of_all=True).text}"


def _compared_rates(tables: AuditTables, gap: Any) -> pd.Series:
    """Return the measure of a difference of each group that is compared."""
    measure = measure_of(gap.metric, tables.task)
    rates = where(tables.rates, view=gap.view, measure=measure, apart="")
    return pd.Series(rates["value"].to_numpy(), index=rates["group"])


def _changes(tables: AuditTables) -> Iterator[str]:
    """Say in one line what the change of the model cost, who moved, and who lost by it."""
    whole = where(tables.rates, view="").set_index("measure")
    prices = {"accuracy_change": "accuracy", "error_change": "mean absolute error"}
    sentences = []
    for measure, what in prices.items():
        if measure in whole.index:
            ends = (
                f"{number(whole['value_low'][measure])} to {number(whole['value_high'][measure])}"
            )
            change = number(whole["value"][measure])
            sentences.append(f"Against the model before, {what} changed by {change} ({ends}).")
    if "moved_up" in whole.index:
        up, down = (number(100 * whole["value"][name], 1) for name in ("moved_up", "moved_down"))
        sentences.append(f"{up}% of the rows moved up, {down}% down.")
    levelled = []  # attributes whose groups came closer while none is selected more often
    for view in tables.attributes:
        own = where(tables.rates, view=view, apart="")
        now, then = (
            where(own, measure=name).set_index("group")["value"]
            for name in ("selection_rate", "before:selection_rate")
        )
        if len(now) and len(then) and (now <= then).all() and np.ptp(now) < np.ptp(then):
            levelled.append(view)
    if levelled:
        sentences.append(f"Groups of {listed_in(levelled)} came closer by levelling down.")
    if sentences:
        yield " ".join(sentences)


def _apart(tables: AuditTables) -> Iterator[str]:
    """Name the groups of attributes that are not compared, with their numbers of rows."""
    own = tables.rates[tables.rates["view"].isin(tables.attributes)]
    own = own[own["apart"] != ""].drop_duplicates(["view", "group"])
    words, rows = {"small": "few", "unknown": "not known"}, list[Any](own.itertuples())
    if rows:
        named = [
            f"{row.group} ({row.view}, {plural(int(row.n), 'row')}, {words[row.apart]})"
            for row in rows
        ]
        yield f"Not compared: {listed_in(named)}."


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


def findings_of(tables: AuditTables) -> list[str]:
    """Return what an audit found in detail, one sentence each."""
    sentences = [*_impact_sentences(tables), *_signed_sentences(tables)]
    now = where(tables.gaps, model="now", is_conditional=False)
    known = [name for name in DETAILED if len(where(now, metric=name))]
    known = (known or (list(dict.fromkeys(now["metric"])) if len(now) else []))[:N_DETAILED]
    for _, of_view in parts(now, "view"):
        is_named = of_view["metric"].isin(known)
        beyond = of_view["value"].where(of_view["is_beyond_chance"] & ~of_view["is_ratio"])
        if beyond.notna().any():  # the largest difference beyond chance, whichever it is
            is_named |= of_view.index == beyond.idxmax()
        rows = of_view[is_named]
        sentences += [gap_sentence(gap, tables.confidence) for gap in rows.itertuples()]
    sentences += _apart_sentences(tables.rates)
    if tables.n_subgroups:
        n_beyond, n_searched = tables.n_beyond_chance, tables.n_subgroups
        sentences.append(
            f"{plural(n_searched, 'subgroup')} {'was' if n_searched == 1 else 'were'} compared "
            f"with the rest by each measure; {plural(n_beyond, 'comparison')} "
            f"{'is' if n_beyond == 1 else 'are'} beyond what chance shows anywhere in the audit."
        )
    return sentences


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


def _signed_sentences(tables: AuditTables) -> Iterator[str]:
    """Say of each attribute which group is furthest from the reference group, and by how much."""
    for view, rows in parts(tables.signed, "view"):
        rows = rows[rows["difference"].notna()]
        first = next(
            (name for name in (*SIGNED, *rows["measure"]) if name in set(rows["measure"])), None
        )
        own = where(rows, measure=first)
        if not len(own):
            continue
        row: Any = own.iloc[int(np.argmax(own["difference"].abs()))]
        way = "lower than" if row["difference"] < 0 else "higher than"
        apart = f"{number(abs(row['difference']))} {way}" if row["difference"] else "equal to"
        ends = f"{number(row['difference_low'])} to {number(row['difference_high'])}"
        yield (
            f"{view}: the {measure_words(str(first)).name.lower()} of {row['group']} is "
            f"{number(row['value'])}, {apart} the {number(row['reference_value'])} of "
            f"{row['reference']} ({100 * tables.confidence:g}% interval of the difference {ends})."
        )


def _apart_sentences(rates: pd.DataFrame) -> Iterator[str]:
    """Name the groups that are not compared, with their numbers of rows, and say why."""
    for view, rows in parts(rates, "view"):
        own = rows.drop_duplicates("group")
        for apart, why in (("small", "have few rows"), ("unknown", "are unknown")):
            if (own["apart"] == apart).any():
                named = _named(where(own, apart=apart))
                yield f"{view}: not compared, because they {why}: {named}."
        if own["apart"].ne("").any() and own["apart"].eq("").sum() < 2:
            yield f"{view}: fewer than two groups are left, so nothing is compared."


def _named(rows: pd.DataFrame) -> str:
    """List groups with their numbers of rows."""
    return ", ".join(f"{row.group} ({row.n:,.0f})" for row in rows.itertuples())


def _impact_sentences(tables: AuditTables) -> Iterator[str]:
    """Name the lowest ratio of each view by the rule of a preset, and who has none."""
    for view, rows in parts(tables.impact, "view"):
        compared = where(rows, status="compared")
        if "impact_ratio" in rows and compared["impact_ratio"].any():
            row: Any = compared.iloc[int(np.nanargmin(compared["impact_ratio"]))]
            rate = where(rows, group=row["compared_with"])["rate"].item()
            text = (
                f"{view}: the lowest impact ratio is {number(row['impact_ratio'])}: the "
                f"{row['measure'].replace('_', ' ')} of {row['group']} is "
                f"{100 * row['rate']:.1f}%, that of {row['compared_with']} {100 * rate:.1f}%"
            )
            if "is_below_four_fifths" in rule_of(tables.preset).columns:
                flag = (
                    "below four fifths" if row["is_below_four_fifths"] else "not below four fifths"
                )
                turns = ", which one person would turn" if row["is_fragile"] else ""
                text += (
                    f"; {flag}{turns}; {abs(row['z']):.2f} standard deviations, Fisher's p = "
                    f"{number(row['fisher_p'])}"
                )
            yield f"{text}."
        small = where(rows, status="small")
        if len(small):
            yield f"{view}: no impact ratio for few people: {_named(small)}."
