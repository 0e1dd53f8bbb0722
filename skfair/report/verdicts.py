"""The first screen of an audit: a verdict on each attribute in a sentence, at most five lines.

A verdict says who is lower, by how much, against whom, whether chance explains it, and, of
selections, the impact ratio. It speaks of the largest difference that is beyond chance, or of the
largest one if none is. What does not fit is among the details.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair.metrics.labels import LABEL_METRICS
from skfair.report.result import AuditTables
from skfair.report.rules import RULES
from skfair.report.sentences import change_sentences, levelled_down, number, p_text
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import listed_in, plural

MOST_LINES = 5
# The difference that a verdict speaks of, the first that was measured.
HEADLINES = ("demographic_parity_difference", "mean_residual_difference")
FOUR_FIFTHS = 0.8
# What is said of a group by a measure; of the group that it is compared with, only the last words.
_CLAUSES = {
    "selection_rate": "are selected in {} of cases",
    "scoring_rate": "score above the median in {} of cases",
    "true_positive_rate": "are selected in {} of truly positive cases",
    "false_positive_rate": "are selected in {} of truly negative cases",
    "false_negative_rate": "are not selected in {} of truly positive cases",
    "positive_predictive_value": "are truly positive in {} of the selected cases",
    "false_omission_rate": "are truly positive in {} of the cases that are not selected",
    "accuracy": "are predicted rightly in {} of cases",
    "share_predicted": "are predicted to be {label} in {} of cases",
    "recall": "are predicted to be {label} in {} of the cases that are",
    "mean_score": "have a mean score of {}",
    "mean_prediction": "have a mean prediction of {}",
    "mean_absolute_error": "have a mean absolute error of {}",
    "mean_residual": "have a mean residual (truth minus prediction) of {}",
}
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


class Pair(NamedTuple):
    """Two groups that are compared."""

    group: str
    other: str
    is_beyond_chance: bool
    p_value: float


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


def _differences(tables: AuditTables, view: str | None = None) -> pd.DataFrame:
    """Return the differences of one measure each of the present model."""
    gaps = tables.gaps
    if not len(gaps):
        return gaps
    is_kept = (gaps["model"] == "now") & ~gaps["is_conditional"] & ~gaps["is_ratio"]
    is_kept &= gaps["metric"].map(lambda name: measure_of(name, tables.task) != "")
    return gaps[is_kept if view is None else is_kept & (gaps["view"] == view)]


def _of_attribute(tables: AuditTables, view: str) -> Verdict:
    """Return the verdict on an attribute."""
    rows = _differences(tables, view)
    named = [name for name in HEADLINES if len(rows) and (rows["metric"] == name).any()]
    if named:
        rows = rows[rows["metric"] == named[0]]
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
    pair = _pair(tables, gap, measure)
    if of_all and not pair.is_beyond_chance:
        pair = Pair(gap.clear_first, gap.clear_second, gap.is_beyond_chance, gap.p_value)
    rates = _compared_rates(tables, gap)
    first, second = float(rates[pair.group]), float(rates[pair.other])
    is_share = not measure.startswith("mean_")
    texts = _shares(first, second) if is_share else _numbers(first, second)
    is_scoring = "measure" in tables.impact and "scoring_rate" in set(tables.impact["measure"])
    plain, _, label = measure.partition("[")
    clause = _CLAUSES["scoring_rate" if is_scoring and plain == "selection_rate" else plain]
    head, tail = clause.replace("{label}", label[:-1]).split("{}")
    before = head.split()[-1]  # "in" or "of"
    who, whom = (group_words(gap.view, name) for name in (pair.group, pair.other))
    of_many = f" (of {len(rates)} groups)" if len(rates) > 2 else ""
    text = f"{gap.view}: {who} {head}{texts[0]}{tail}, {whom} {before} {texts[1]}{of_many}: "
    negation = "" if pair.is_beyond_chance else "not "
    p = p_text(pair.p_value, tables.n_simulations)
    text += f"{texts[2]}, {negation}more than chance explains (p {p})"
    if measure == "selection_rate":
        text += _ratio(tables, gap.view, rates, {pair.group, pair.other})
    return Verdict(gap.view, gap.metric, f"{text}.", pair.p_value, pair.is_beyond_chance)


def _pair(tables: AuditTables, gap: Any, measure: str) -> Pair:
    """Return the groups to speak of: with a reference group it and the one furthest from it."""
    signed = tables.signed
    if len(signed):
        signed = signed[(signed["view"] == gap.view) & (signed["measure"] == measure)]
        signed = signed[signed["difference"].notna()]
    if not len(signed):
        return Pair(gap.clear_first, gap.clear_second, gap.is_beyond_chance, gap.p_value)
    is_beyond = signed["p_value"] <= 1 - tables.confidence + ROUNDING
    kept = signed[is_beyond] if is_beyond.any() else signed
    row: Any = next(kept.loc[[kept["difference"].abs().idxmax()]].itertuples())
    return Pair(row.group, row.reference, bool(is_beyond.any()), row.p_value)


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
    texts = number(first, digits), number(second, digits), number(apart, digits)
    return texts[0], texts[1], f"{texts[2]} {way}"


def _ratio(tables: AuditTables, view: str, rates: pd.Series, named: set[str]) -> str:
    """Return the lowest impact ratio, of the rates or of the table of a preset."""
    low, high = str(rates.idxmin()), str(rates.idxmax())
    ratio = float(rates[low] / rates[high]) if rates[high] > 0 else np.nan
    has_threshold = True
    if tables.preset:
        rows = tables.impact[tables.impact["view"] == view]
        rows = rows[rows["status"] == "compared"]
        if not len(rows) or not rows["impact_ratio"].notna().any():
            return ""
        row: Any = next(rows.loc[[rows["impact_ratio"].idxmin()]].itertuples())
        low, high, ratio = row.group, row.compared_with, float(row.impact_ratio)
        has_threshold = "is_below_four_fifths" in RULES[tables.preset].columns
    if not np.isfinite(ratio):
        return ""
    who = "" if {low, high} == named else f" ({low} against {high})"
    name = "impact ratio" if not who else "lowest impact ratio"
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
    rows = _differences(tables)
    if not len(rows):
        return
    # Scores may have another unit than shares.
    rows = rows[rows["is_beyond_chance"] & ~rows["metric"].str.startswith("mean_score")]
    sizes = [_size(tables, gap) for gap in rows.itertuples()]
    if not sizes:
        return
    gap = list(rows.itertuples())[int(np.argmax(sizes))]
    in_sentences = {
        (verdict.view, verdict.metric) for verdict in verdicts if verdict.is_beyond_chance
    }
    if (gap.view, gap.metric) not in in_sentences:
        yield f"Largest difference beyond chance: {_sentence(tables, gap, of_all=True).text}"


def _size(tables: AuditTables, gap: Any) -> float:
    """Return how far the clearest pair of a difference is apart."""
    rates = _compared_rates(tables, gap)
    return abs(float(rates[gap.clear_first] - rates[gap.clear_second]))


def _compared_rates(tables: AuditTables, gap: Any) -> pd.Series:
    """Return the measure of a difference of each group that is compared."""
    own, measure = tables.rates, measure_of(gap.metric, tables.task)
    own = own[(own["view"] == gap.view) & (own["measure"] == measure) & (own["apart"] == "")]
    rates: pd.Series = own.set_index("group")["value"]
    return rates


def _changes(tables: AuditTables) -> Iterator[str]:
    """Say in one line what the change of the model cost, who moved, and who lost by it."""
    sentences = change_sentences(tables)
    levelled = levelled_down(tables)
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
