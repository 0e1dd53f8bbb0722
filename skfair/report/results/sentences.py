"""The verdicts of an audit, in sentences.

:func:`verdicts_of` makes the first screen: a verdict on each attribute, and lines about the whole,
in at most five lines. Pages and ``repr`` of an audit call it.

A verdict names two groups with their rates, the gap between them, whether it is statistically
significant, and for selection rates the impact ratio. It begins with the metrics of ``lead``
(:func:`lead_of`): true and false positive rates, if there are outcomes and no rule of law. Without
these, it is about the largest significant
difference, or the largest one if none is significant. If groups are also compared within strata, a
verdict begins with these: which group is higher, by how much on average, and in how many strata.
Then it says the same about all rows, and names a reversal (Simpson's paradox).

The file also has small functions for other texts of a report: facts that the user states
(:func:`read_about`), what a positive decision is (:func:`decision_of`), groups that are not
compared (:func:`apart_sentences`), numbers and p-values.

Rows of the tables of an audit (``gaps``, ``within``) are passed as ``gap`` and ``pair``. Their
attributes are the columns, which :class:`skfair.report.Audit` documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair.groups.declared_rates import RATES
from skfair.metrics.labels import LABEL_METRICS
from skfair.records.record import digest_of
from skfair.report.results.result import AuditTables, one_decision_of, where
from skfair.report.tables.gaps import Gap
from skfair.report.tables.options import Options
from skfair.report.tables.tasks import Binary, Task
from skfair.report.words import measure_words, prose, rule_of
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import check_text, listed, listed_in, plural

MOST_LINES = 5
SIGNIFICANT = "statistically significant"
# A verdict is about the first of these differences that was measured, or else about any.
VERDICTS = ("demographic_parity_difference", "mean_residual_difference")
# With outcomes and without a rule of law, it is about these: of true and of false positives.
OUTCOMES = ("equal_opportunity_difference", "false_positive_parity_difference")
FOUR_FIFTHS = 0.8
# Facts about an audit that name a file, and the fact that has its SHA-256
FILES = {"file": "SHA-256", "model file": "SHA-256 of the model file"}
# With several classes, the measure that a metric compares. All other metrics compare accuracies.
_CLASS_MEASURES = {
    "demographic_parity_difference": "share_predicted",
    "equal_opportunity_difference": "recall",
}


class Verdict(NamedTuple):
    """The verdict on one attribute or crossing."""

    view: str
    beyond: frozenset[str]  # the metrics of which it states a significant difference
    text: str
    p_value: float
    is_beyond_chance: bool
    is_reversed: bool = False  # whether strata have another direction than all rows


class Within(NamedTuple):
    """What is said of one attribute within strata."""

    sentence: str
    reversal: str  # "" if there is none
    p_value: float
    is_beyond_chance: bool


def verdicts_of(tables: AuditTables) -> list[str]:
    """Return the lines of the first screen, at most five.

    The verdicts on attributes get the room that the other lines leave.
    """
    verdicts = [_of_attribute(tables, name) for name in tables.attributes]
    determined = list(_determined(tables))  # such an attribute has the largest difference
    more = [*_constant(tables), *(risk := [*_misjudged(tables, verdicts)])]
    rest = [*_changes(tables), *apart_sentences(tables.rates, tables)]
    if not risk or len(more) + len(rest) + 1 < MOST_LINES:
        more += determined or _elsewhere(tables, verdicts)
    more += rest
    return [*_fitted(verdicts, MOST_LINES - len(more)), *more]


def read_about(about: Mapping[str, str] | None) -> dict[str, str]:
    """Return the facts that the user states, with the SHA-256 of the files that are named."""
    if not isinstance(about, Mapping | None):
        raise ValueError(f"about must map names of facts to texts, got {about!r}.")
    facts = {str(name): str(text) for name, text in (about or {}).items()}
    check_text([*facts, *facts.values()], "about")
    for name, digest in FILES.items():
        if name in facts:
            facts[digest] = digest_of(facts[name])
            facts[name] = Path(facts[name]).name
    return facts


def decision_of(task: Task, columns: dict[str, str], threshold: float | None) -> str:
    """Say what counts as a positive decision, in the words of the data."""
    true, predicted = columns.get("y_true"), columns.get("y_pred")
    if not isinstance(task, Binary):
        what, sides = "class" if task.classes else "number", (predicted, true)
        words = zip(("Predicted", "True"), sides, strict=True)
        return " ".join(f"{side} {what}: column {name}." for side, name in words if name)
    of_true = task.of_true[1] if task.of_true else task.positive
    decided = f"{predicted} = {listed([task.positive])}"
    if predicted is None and threshold is not None:
        decided = f"{columns['y_score']} above {threshold:.6g}"
    is_decided = predicted is not None or threshold is not None
    texts = [f"Selected means: column {decided}."] if is_decided else []
    return " ".join(
        [*texts, *([f"Truly positive means: column {true} = {listed([of_true])}."] if true else [])]
    )


def reading_of(task: Task, columns: dict[str, str], threshold: float | None) -> str:
    """Say how the labels were read, or the scores if a threshold makes decisions of them."""
    if "y_pred" not in columns and threshold is not None:
        of_true = task.reading if "y_true" in columns else ""
        return f"scores above {threshold:.6g} are positive{of_true and f'; outcomes {of_true}'}"
    return task.reading


def measure_of(metric: str, task: str) -> str:
    """Return the measure that a difference compares, or "" if it compares several.

    ``task`` is the kind of the task, such as "binary".
    """
    plain, bracket, label = metric.partition("[")
    if task == "classes" and (plain in _CLASS_MEASURES or plain.startswith("accuracy_parity")):
        return f"{_CLASS_MEASURES.get(plain, 'accuracy')}{bracket}{label}"
    if plain in LABEL_METRICS:
        spec = LABEL_METRICS[plain]
        return spec.rates[0] if spec.kind == "difference" and len(spec.rates) == 1 else ""
    measure = plain.removesuffix("_difference")
    return "mean_prediction" if (task, measure) == ("numbers", "mean_score") else measure


def _differences(tables: AuditTables) -> pd.DataFrame:
    """Return the gaps of the present model that are the difference of one measure."""
    gaps = where(tables.gaps, model="now", is_conditional=False, is_ratio=False)
    is_single = [measure_of(name, tables.task) != "" for name in gaps.get("metric", ())]
    return gaps[is_single] if len(gaps) else gaps


def _of_attribute(tables: AuditTables, view: str) -> Verdict:
    """Return the verdict on one attribute."""
    rows = where(_differences(tables), view=view)
    only = one_decision_of(tables)
    if only and len(rows):
        rows = rows[rows["value"].notna()]
    leading = [] if only else [where(rows, metric=name) for name in tables.lead]
    gaps: list[Any] = [own for table in leading for own in table.itertuples() if own.first_group]
    if gaps:
        return _together([_of_gap(tables, own, i == 0) for i, own in enumerate(gaps)])
    # Residuals of probabilities have a line of their own, see _misjudged.
    verdicts = [*VERDICTS[: 1 if tables.task == "binary" else None]]
    verdicts += ["predictive_parity_difference"] if only else []
    named = [name for name in verdicts if len(where(rows, metric=name))]
    if named:
        rows = where(rows, metric=named[0])
    elif len(rows) and rows["is_beyond_chance"].any():
        rows = rows[rows["is_beyond_chance"]].sort_values("value", ascending=False, kind="stable")
    gap: Any = next(rows.itertuples(), None)
    if gap is None or not gap.first_group:
        reason = only or "fewer than two of them have enough rows"
        text = f"{view}: groups are not compared, because {reason}."
        return Verdict(view, frozenset(), text, np.nan, False)
    return _of_gap(tables, gap)


def _of_gap(tables: AuditTables, gap: Any, is_first: bool = True) -> Verdict:
    """Return the verdict on one gap, within strata if there are any.

    Without strata, a sentence that is not the first one of an attribute does not name it.
    """
    within = within_strata(tables, gap.view, measure_of(gap.metric, tables.task))
    if within is None:
        return _sentence(tables, gap, None if is_first else "")
    overall = _sentence(tables, gap, "Over all rows")
    texts = [within.sentence, within.reversal, overall.text]
    return Verdict(
        gap.view,
        overall.beyond | (frozenset({gap.metric}) if within.is_beyond_chance else frozenset()),
        " ".join(filter(None, texts)),
        float(np.fmin(within.p_value, overall.p_value)),
        within.is_beyond_chance or overall.is_beyond_chance,
        bool(within.reversal),
    )


def _together(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict on an attribute by several gaps."""
    first, *others = verdicts
    text = first.text
    for own in others:  # sentences within strata begin with the attribute
        text = f"{text} {own.text}" if own.text.startswith(own.view) else f"{text[:-1]}; {own.text}"
    return Verdict(
        first.view,
        frozenset[str]().union(*(own.beyond for own in verdicts)),
        text,
        float(np.fmin.reduce([own.p_value for own in verdicts])),
        any(own.is_beyond_chance for own in verdicts),
        any(own.is_reversed for own in verdicts),
    )


def lead_of(task: Task, options: Options, asked: list[Gap]) -> list[str]:
    """Return the metrics with which the verdicts begin, or none for their usual order.

    With outcomes, and without a rule of law, decisions are judged by the people of each outcome.
    """
    if options.lead is not None:
        (gap,) = (own for own in asked if own.name == options.lead)
        if not measure_of(gap.name, task.kind) or gap.kind != "difference":
            raise ValueError(
                f"lead={gap.name!r} compares no single rate by its difference, so a sentence "
                "cannot name it. Pass for example 'equal_opportunity_difference'."
            )
        return [gap.name]
    if options.preset or not isinstance(task, Binary):
        return []
    return [own.name for own in asked if own.name in OUTCOMES]


def within_strata(tables: AuditTables, view: str, measure: str) -> Within | None:
    """Say how groups differ within strata; return None without control features.

    The sentence is about a pair of groups whose direction is reversed, or else about the pair with
    the largest significant difference, or else with the largest one. If there is a reference group,
    it is one of the pair.
    """
    if not tables.control_features:
        return None
    names = ", ".join(tables.control_features)
    rows = where(tables.within, view=view, measure=measure)
    own: Any = where(tables.signed, view=view)
    if len(own) and len(rows):
        has_reference = rows[["group", "other"]].eq(own["reference"].iloc[0]).any(axis=1)
        rows = rows[has_reference] if has_reference.any() else rows
    overall = _rates_of_all(tables, view, measure)
    pairs = [row for row in list[Any](rows.itertuples()) if np.isfinite(row.difference)]
    if not pairs:
        text = f"{view}, within {names}: groups are not compared, because no level has enough rows"
        return Within(f"{text} of two groups.", "", np.nan, False)
    are_reversed = [_is_reversed(row, overall, tables.confidence) for row in pairs]
    order = zip(are_reversed, (row.is_beyond_chance for row in pairs), pairs, strict=True)
    is_reversed, _, pair = max(order, key=lambda own: (*own[:2], abs(own[2].difference)))
    n_groups = len({name for row in pairs for name in (row.group, row.other)})
    head = f"{view}{f' ({n_groups} groups)' if n_groups > 2 else ''}, within {names}"
    sentence = f"{head}: {_direction(tables, pair)}{_levels(tables, pair)}."
    if pair.n_not_compared:
        are = "is" if pair.n_not_compared == 1 else "are"
        sentence += (
            f" {plural(pair.n_not_compared, 'more level')} {are} not compared, because one of the "
            "two groups has too few rows there."
        )
    reversal = _reversal(pair, overall, names) if is_reversed else ""
    if (n_more := sum(are_reversed) - 1) > 0:
        reversal += f" The direction is also reversed for {plural(n_more, 'more pair')} of groups."
    return Within(sentence, reversal, pair.p_value, bool(pair.is_beyond_chance))


def _is_reversed(pair: Any, overall: Any, confidence: float) -> bool:
    """Whether the difference over all rows has another direction than the one within strata.

    Both must be significant, or chance would reverse small differences. The second one may be the
    average over strata, or the difference in one of them.
    """
    apart = float(overall[pair.group] - overall[pair.other])
    is_clear = pair.overall_p_value <= 1 - confidence + ROUNDING and abs(apart) > ROUNDING
    n_opposite = pair.n_clear_lower if apart > 0 else pair.n_clear_higher
    is_opposite = pair.is_beyond_chance and apart * pair.difference < 0
    return bool(is_clear and (is_opposite or n_opposite > 0))


def _reversal(pair: Any, overall: Any, names: str) -> str:
    """Name a reversal, from the view of the group that is lower over all rows."""
    is_lower = overall[pair.group] < overall[pair.other]
    who = group_words(pair.view, pair.group if is_lower else pair.other)
    n_ahead = pair.n_higher if is_lower else pair.n_lower
    lower, higher = ("behind", "ahead") if pair.measure == "selection_rate" else ("lower", "higher")
    levels = plural(pair.n_strata, "level")
    return f"Reversal: {who} is {lower} overall, {higher} in {n_ahead} of {levels} of {names}."


def _direction(tables: AuditTables, pair: Any) -> str:
    """Say which of two groups is higher within strata, in how many, and by how much on average."""
    sides = [(pair.group, pair.n_higher), (pair.other, pair.n_lower)]
    (first, n_higher), (second, _) = sides if pair.difference >= 0 else sides[::-1]
    who, whom = (group_words(pair.view, name) for name in (first, second))
    phrase, size = _phrase(tables, pair.measure), abs(float(pair.difference))
    negation = "" if pair.is_beyond_chance else "not "
    text = f"{phrase} higher for {who} than for {whom} in {n_higher} of "
    text += f"{plural(pair.n_strata, 'level')}, by {_size(size, pair.measure)} on average, "
    return f"{text}{negation}{SIGNIFICANT} (p {p_text(pair.p_value, tables.n_simulations)})"


def _levels(tables: AuditTables, pair: Any) -> str:
    """List the rates of two groups in each stratum that shows both; "" if none does."""
    rows = where(tables.strata, view=pair.view, measure=pair.measure)
    if not len(rows):
        return ""
    values = rows.pivot(index="stratum", columns="group", values="value")
    values = values.reindex(index=rows["stratum"].unique(), columns=[pair.group, pair.other])
    order = [pair.group, pair.other] if pair.difference >= 0 else [pair.other, pair.group]
    who, whom = (f" ({group_words(pair.view, name)})" for name in order)
    items = []
    for level, first, second in values[order].dropna().itertuples():
        texts = (_shares if _is_in_percent(pair.measure) else _numbers)(first, second)
        name = group_words(tables.control_features[0], level) if "=" not in level else level
        items.append(f"{name} {texts[0]}{who} against {texts[1]}{whom}")
        who = whom = ""
    return f": {listed_in(items)}" if items else ""


def _size(size: float, measure: str) -> str:
    """Write an average difference with as many digits as it needs; shares are in points."""
    if not _is_in_percent(measure):
        return number(size)
    points = next((p for digits in (1, 2, 3) if (p := round(100 * size, digits))), 0.0)
    return f"{points:g} {'point' if points == 1 else 'points'}"


def _is_in_percent(measure: str) -> bool:
    """Whether a measure is a share: not a mean of numbers, and no metric of the user."""
    plain = measure.partition("[")[0]
    return plain in RATES or (plain in prose()["measures"] and not plain.startswith("mean_"))


def _phrase(tables: AuditTables, measure: str) -> str:
    """Return what a verdict calls a measure."""
    is_scoring = measure == "selection_rate" and len(where(tables.impact, measure="scoring_rate"))
    phrase = measure_words("scoring_rate" if is_scoring else measure).phrase
    return phrase.replace("{label}", measure.partition("[")[2][:-1])


def _sentence(
    tables: AuditTables, gap: Any, head: str | None = None, *, of_all: bool = False
) -> Verdict:
    """Put one gap into a sentence, which begins with ``head``, or with the view if it is None.

    It is about the clear pair of the gap. If there is a reference group, it is about this group and
    the one that differs most from it. With ``of_all``, it is about the clear pair if no group
    differs significantly from the reference group.
    """
    measure = measure_of(gap.metric, tables.task)
    group, other, p_value, is_beyond = _against_reference(tables, gap, measure)
    if group is None or (of_all and not is_beyond):
        group, other = gap.clear_first, gap.clear_second
        p_value, is_beyond = gap.p_value, gap.is_beyond_chance
    rates = _compared_rates(tables, gap)
    texts = (_shares if _is_in_percent(measure) else _numbers)(
        float(rates[group]), float(rates[other])
    )
    phrase = _phrase(tables, measure)
    who, whom = (group_words(gap.view, name) for name in (group, other))
    of_many = f" ({len(rates)} groups)" if len(rates) > 2 else ""
    head = f"{gap.view}{of_many}" if head is None else head
    text = f"{head}{': ' if head else ''}{phrase} {texts[0]} ({who}) against {texts[1]} ({whom}): "
    negation, p = "" if is_beyond else "not ", p_text(p_value, tables.n_simulations)
    text += f"{texts[2]}, {negation}{SIGNIFICANT} (p {p})"
    if measure == "selection_rate":
        text += _ratio(tables, gap.view, rates, {group, other})
    if measure == "mean_residual" and tables.task == "binary" and is_beyond:
        far = max((group, other), key=lambda name: abs(float(rates[name])))
        side = "lower" if rates[far] > 0 else "higher"
        text += f"; scores of {group_words(gap.view, far)} are {side} than outcomes"
    beyond = frozenset({gap.metric} if is_beyond else ())
    return Verdict(gap.view, beyond, f"{text}.", p_value, is_beyond)


def _against_reference(
    tables: AuditTables, gap: Any, measure: str
) -> tuple[str | None, str, float, bool]:
    """Return the group furthest from the reference group, and the reference group.

    The p-value and whether it is significant follow. The first result is None without a reference
    group.
    """
    signed = where(tables.signed, view=gap.view, measure=measure)
    signed = signed[signed["difference"].notna()] if len(signed) else signed
    if not len(signed):
        return None, "", np.nan, False
    is_beyond = signed["p_value"] <= 1 - tables.confidence + ROUNDING
    kept = signed[is_beyond] if is_beyond.any() else signed
    row: Any = kept.iloc[int(np.argmax(kept["difference"].abs()))]
    return row["group"], row["reference"], row["p_value"], bool(is_beyond.any())


def group_words(view: str, name: str) -> str:
    """Return the name of a group, after the attribute if it says nothing alone, as in "age 25"."""
    is_bare = name.lower() in ("true", "false", "yes", "no") or not any(c.isalpha() for c in name)
    return f"{view} {name}" if is_bare and " x " not in view else name


def _shares(first: float, second: float) -> tuple[str, str, str]:
    """Write two shares in percent, and the gap between them.

    They have one digit after the point, or up to three if the shares would look equal.
    """
    for digits in (1, 2, 3):
        a, b = round(100 * first, digits), round(100 * second, digits)
        if a != b or abs(first - second) <= ROUNDING:
            break
    if a == b:
        return f"{a:g}%", f"{b:g}%", "no difference"
    apart = f"{round(abs(a - b), digits):g}"
    points = "point" if apart == "1" else "points"
    return f"{a:g}%", f"{b:g}%", f"a gap of {apart} {points}"


def _numbers(first: float, second: float) -> tuple[str, str, str]:
    """Write two numbers, and the gap between them."""
    if abs(first - second) <= ROUNDING * max(abs(first), abs(second), 1.0):
        return number(first), number(second), "no difference"
    apart = abs(first - second)
    digits = max(3, 1 - int(np.floor(np.log10(apart))))  # two digits of the difference are shown
    if max(abs(first), abs(second)) < 100:  # the gap is what a reader gets from the rounded numbers
        apart = abs(round(first, digits) - round(second, digits))
    return number(first, digits), number(second, digits), f"a gap of {number(apart, digits)}"


def _ratio(tables: AuditTables, view: str, rates: pd.Series, named: set[str]) -> str:
    """Write the lowest impact ratio, and if a rule of law asks, on which side of four fifths it is.

    It is the lowest rate over the highest, or the lowest ratio of a rate and that of the reference
    group, as in ``gaps``, or with a preset, the lowest ratio in its table.
    ``rates`` are the selection rates of a view, by group, and ``named`` are the two groups that the
    sentence has named: other groups are named here. The text is empty without a ratio.
    """
    low, high = str(rates.idxmin()), str(rates.idxmax())
    signed = where(tables.signed, view=view)
    if len(signed) and (reference := signed["reference"].iloc[0]) in rates.index:
        apart = rates.drop(reference) / rates[reference]
        other = np.fmin(apart, 1 / apart).idxmin() if rates[reference] > 0 else rates.idxmax()
        low, high = sorted((str(other), str(reference)), key=lambda group: float(rates[group]))
    ratio = float(rates[low] / rates[high]) if rates[high] > 0 else np.nan
    has_threshold = False
    if tables.preset:
        rows = where(tables.impact, view=view, status="compared")
        if not len(rows) or not rows["impact_ratio"].notna().any():
            return ""
        row: Any = rows.iloc[int(np.nanargmin(rows["impact_ratio"]))]
        low, high, ratio = row["group"], row["compared_with"], float(row["impact_ratio"])
        has_threshold = "is_below_four_fifths" in rule_of(tables.preset).columns
    if not np.isfinite(ratio):
        return ""
    who = "" if {low, high} in (named, {low}) else f" ({low} against {high})"
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


def _constant(tables: AuditTables) -> Iterator[str]:
    """Warn if all decisions are the same, as in a file of people who were granted a loan."""
    if only := one_decision_of(tables):
        yield (
            f"{only[0].upper()}{only[1:]}. Check whether the rows of people with the other "
            "decision are missing."
        )


def _determined(tables: AuditTables) -> Iterator[str]:
    """Warn of attributes that may be the outcome, or the decision, under another name.

    All rows of a group then have the same label, and not those of all groups. With several classes
    the true label of a group is the only one that has a recall there.
    """
    found = []
    for view in tables.attributes:
        rates = where(tables.rates, view=view, apart="")
        for argument, *names in (
            ("y_true", "base_rate", "recall["),
            ("y_pred", "selection_rate", "share_predicted["),
        ):
            is_own = [name.startswith(tuple(names)) for name in rates["measure"]]
            own = rates[np.array(is_own, bool)]
            table = own.pivot(index="group", columns="measure", values="value")
            if len(table.columns) and "base_rate" not in table and argument == "y_true":
                table = table.notna().astype(float)  # all 0 if rates by class are hidden
                table = table.where(table.sum(axis=1) == 1)
            is_same = len(table.columns) > 0 and table.isin([0.0, 1.0]).to_numpy().all()
            if is_same and len(table.drop_duplicates()) > 1:
                column = tables.columns.get(argument) or tables.columns.get("y_score", argument)
                found.append(f"{view} ({column})")
    if found:
        yield (
            "Every group has one label only, so the attribute may be that label under another "
            f"name: {listed_in(found)}. If so, leave it out of the audit."
        )


def _fitted(verdicts: list[Verdict], room: int) -> list[str]:
    """Return as many verdicts as there is room for; the last line names the others.

    Reversals are kept first, then the smallest p-values.
    """
    if len(verdicts) <= room:
        return [verdict.text for verdict in verdicts]
    order = sorted(
        verdicts,
        key=lambda own: (
            not own.is_reversed,
            not own.is_beyond_chance,
            np.nan_to_num(own.p_value, nan=2.0),
        ),
    )
    shown, rest = order[: room - 1], order[room - 1 :]
    names = listed_in([verdict.view for verdict in rest])
    n_beyond = sum(verdict.is_beyond_chance for verdict in rest)
    text = f"Also compared: {names}. Significant differences among them: {n_beyond or 'none'}."
    return [verdict.text for verdict in verdicts if verdict in shown] + [text]


def _misjudged(tables: AuditTables, verdicts: list[Verdict]) -> Iterator[str]:
    """Name the largest significant difference of probabilities from outcomes, beside decisions."""
    rows = where(_differences(tables), metric="mean_residual_difference", is_beyond_chance=True)
    is_said = any("mean_residual_difference" in own.beyond for own in verdicts)
    if tables.task != "binary" or is_said:
        return
    rows = rows[rows["view"].isin(tables.attributes)] if len(rows) else rows
    if len(rows):
        yield _sentence(tables, next(rows.nlargest(1, "value").itertuples()), of_all=True).text


def _elsewhere(tables: AuditTables, verdicts: list[Verdict]) -> Iterator[str]:
    """Say the largest significant difference, if no verdict is about it."""
    every: list[Any] = list(where(_differences(tables), is_beyond_chance=True).itertuples())
    # Mean scores may have another unit than shares, and residuals of probabilities have a line.
    apart = ("mean_score", "mean_residual") if tables.task == "binary" else ()
    gaps = [gap for gap in every if not gap.metric.startswith(apart)]
    if not gaps:
        return
    rates = [_compared_rates(tables, gap)[[gap.clear_first, gap.clear_second]] for gap in gaps]
    gap = gaps[int(np.argmax([np.ptp(pair) for pair in rates]))]
    if not any(own.view == gap.view and gap.metric in own.beyond for own in verdicts):
        rows = " over all rows" if tables.control_features else ""
        yield f"Largest significant difference{rows}: {_sentence(tables, gap, of_all=True).text}"


def _compared_rates(tables: AuditTables, gap: Any) -> pd.Series:
    """Return the rates that a gap compares, by group."""
    return _rates_of_all(tables, gap.view, measure_of(gap.metric, tables.task))


def _rates_of_all(tables: AuditTables, view: str, measure: str) -> pd.Series:
    """Return a measure over all rows, by group, for the groups that are compared."""
    rates = where(tables.rates, view=view, measure=measure, apart="")
    return pd.Series(rates["value"].to_numpy(), index=rates["group"])


def _changes(tables: AuditTables) -> Iterator[str]:
    """Compare with the earlier model, in one line: its accuracy, its rates, and who moved."""
    whole = where(tables.rates, view="").set_index("measure")
    costs = {"accuracy_change": "accuracy", "error_change": "mean absolute error"}
    sentences = []
    for measure, what in costs.items():
        if measure in whole.index:
            columns = ("value", "value_low", "value_high")
            change, low, high = (number(whole[column][measure]) for column in columns)
            change = f"{what} changed by {change} ({low} to {high})"
            sentences.append(f"Compared with the earlier model, {change}.")
    for measure in ("selection_rate", "mean_prediction"):
        if {measure, f"before:{measure}"} <= set(whole.index):
            ends = (float(whole["value"][f"{of}{measure}"]) for of in ("before:", ""))
            texts = (_shares if measure == "selection_rate" else _numbers)(*ends)
            name = measure.replace("_", " ")
            sentences.append(f"The {name} changed from {texts[0]} to {texts[1]}.")
    if "moved_up" in whole.index:
        up, down = (number(100 * whole["value"][name], 1) for name in ("moved_up", "moved_down"))
        sentences.append(f"{up}% of the rows moved up and {down}% moved down.")
    levelled = []  # attributes whose groups came closer while no selection rate rose
    for view in tables.attributes:
        own = where(tables.rates, view=view, apart="")
        now, then = (
            where(own, measure=name).set_index("group")["value"]
            for name in ("selection_rate", "before:selection_rate")
        )
        if len(now) and len(then) and (now <= then).all() and np.ptp(now) < np.ptp(then):
            levelled.append(view)
    if levelled:
        sentences.append(
            f"The groups of {listed_in(levelled)} came closer by levelling down: no group has a "
            "higher selection rate than before."
        )
    if sentences:
        yield " ".join(sentences)


def apart_sentences(groups: pd.DataFrame, tables: Any) -> Iterator[str]:
    """Name the groups of attributes that are not compared or not shown."""
    own = groups[groups["view"].isin(tables.attributes)].drop_duplicates(["view", "group"])
    words, rows = {"small": "too few", "unknown": "not known"}, list[Any](own.itertuples())
    named = [
        f"{row.group} ({row.view}, {plural(int(getattr(row, 'n_units', row.n)), tables.noun)}, "
        f"{words[row.apart]})"
        for row in rows
        if row.apart in words
    ]
    if named:
        yield f"Not compared: {listed_in(named)}."
    hidden = [row for row in list[Any](tables.hidden.itertuples()) if row.view in tables.attributes]
    if hidden:
        named = [f"{row.group} ({row.view})" for row in hidden]
        least = f"{tables.suppress_below:g} {tables.noun}s"
        yield f"Not shown because they have fewer than {least}: {listed_in(named)}."


def number(value: float, digits: int = 3) -> str:
    """Write a number with this many digits after the point, or with fewer or more by its size.

    An undefined number is a dash. Numbers from 100 on have no digits after the point, and numbers
    that would be rounded to 0 have two significant digits.
    """
    if value is None or not np.isfinite(value):
        return "-"
    if abs(value) < ROUNDING:
        value = 0.0
    size = abs(value)
    text = f"{value:.{digits}f}" if size < 100 else f"{value:,.0f}"
    return f"{value:.2g}" if 0 < size < 0.5 * 10**-digits else text


def p_text(p_value: float, n_simulations: int) -> str:
    """Write a p-value. The smallest one that simulations can show is a bound, rounded up."""
    # The smallest one is 1 / (n_simulations + 1), and the next one is twice that. NaN is written.
    if not p_value < 1.5 / (n_simulations + 1):
        return f"= {p_value:.2g}"
    unit = 10.0 ** (np.floor(np.log10(p_value)) - 1)
    return f"at most {np.ceil(p_value / unit - ROUNDING) * unit:.2g}"
