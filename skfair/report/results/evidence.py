"""From a rule of law to evidence: what it asks, which number answers it, and what no number can.

``law.toml`` says for each question of a law which kinds of numbers answer it. :func:`evidence_of`
fills in the numbers of an audit, for its page and for the command ``audit``, and :data:`NUMBERS`
has the words for each kind, which the documentation shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from skfair.report.results.result import AuditTables, where
from skfair.report.results.sentences import number, within_strata
from skfair.report.words import laws_of


class Evidence(NamedTuple):
    """A question of a law, and what answers it."""

    law: str  # the name of the law
    asks: str
    here: str  # the numbers of the audit that answer it, or what else does
    no_number: str  # what no number can answer


class Number(NamedTuple):
    """A kind of numbers of audits."""

    words: str
    texts: Callable[[AuditTables], Iterator[str]]
    absent: str  # what is said if the audit has none


def evidence_of(tables: AuditTables) -> list[Evidence]:
    """Return a row for each question of the laws of the preset; there are none without a preset."""
    return [
        Evidence(law["name"], row["asks"], _here(tables, row), row["no_number"])
        for law in laws_of(tables.preset)
        for row in law.get("evidence", [])
    ]


def _here(tables: AuditTables, row: dict[str, Any]) -> str:
    """Return the numbers that a row names, each kind in a sentence."""
    texts = []
    for name in row["numbers"]:
        found = "; ".join(NUMBERS[name].texts(tables))
        texts.append(f"{found}." if found else NUMBERS[name].absent)
    return " ".join([*texts, *filter(None, [row.get("elsewhere")])]) or "None."


def _gaps(tables: AuditTables, metric: str, words: str) -> Iterator[str]:
    """Yield the gap of a metric between the groups of each attribute, over all rows."""
    now = where(tables.gaps, model="now", is_conditional=False, metric=metric)
    for view in tables.attributes if len(now) else ():
        own: list[Any] = [*where(now, view=view).itertuples(index=False)]
        for gap in own:
            if gap.value != gap.value:
                yield f"{view}: {words} undefined"
                continue
            interval = f"{number(gap.value_low)} to {number(gap.value_high)}"
            verdict = "significant" if gap.is_beyond_chance else "not significant"
            pair = f"{gap.first_group} and {gap.second_group}"
            yield f"{view}: {words} {number(gap.value)} ({interval}) for {pair}, {verdict}"


def _rates(tables: AuditTables) -> Iterator[str]:
    yield from _gaps(tables, "demographic_parity_difference", "difference of selection rates")


def _outcomes(tables: AuditTables) -> Iterator[str]:
    for metric, rate in (
        ("equal_opportunity_difference", "true"),
        ("false_positive_parity_difference", "false"),
    ):
        yield from _gaps(tables, metric, f"difference of {rate} positive rates")


def _extremes(tables: AuditTables, column: str) -> Iterator[tuple[str, Any]]:
    """Yield each attribute with the row of its table that has the smallest value of a column."""
    for view in tables.attributes if column in tables.impact else ():
        rows = where(tables.impact, view=view, status="compared")
        if rows[column].notna().any():
            yield view, rows.iloc[int(np.nanargmin(rows[column]))]


def _ratios(tables: AuditTables) -> Iterator[str]:
    for view, row in _extremes(tables, "impact_ratio"):
        pair = f"{row['group']} against {row['compared_with']}"
        yield f"{view}: impact ratio {row['impact_ratio']:.3g} ({pair})"


def _deviations(tables: AuditTables) -> Iterator[str]:
    for view, row in _extremes(tables, "z"):
        z, p = f"{row['z']:.3g} standard deviations", f"Fisher's exact p {row['fisher_p']:.2g}"
        yield f"{view}: {z}, {p} ({row['group']} against {row['compared_with']})"


def _levels(tables: AuditTables) -> Iterator[str]:
    for view in tables.attributes if tables.control_features else ():
        said = within_strata(tables, view, "selection_rate")
        if said is not None:
            yield said.sentence.rstrip(".")


def _people(tables: AuditTables) -> Iterator[str]:
    yield tables.size
    apart = tables.impact[~tables.impact["status"].isin(["compared", "reference"])]
    own: list[Any] = [*apart.itertuples(index=False)]
    for row in own:
        if row.view in tables.attributes:
            why = "of unknown category" if row.status == "unknown" else "too few to be compared"
            yield f"{row.view}: {row.n:,} {why} ({row.group})"


def _head(tables: AuditTables) -> Iterator[str]:
    yield f"made on {tables.made_on}"
    for fact in ("source", "period", "prepared by"):
        yield f"{fact}: {tables.about.get(fact) or 'not stated'}"


NUMBERS = {
    "rates": Number(
        "the difference of selection rates, with its interval",
        _rates,
        "No selection rates: there are no decisions.",
    ),
    "ratios": Number(
        "the lowest impact ratio", _ratios, "No impact ratio: no two groups are compared."
    ),
    "deviations": Number(
        "standard deviations and Fisher's exact test",
        _deviations,
        "No test: no two groups are compared.",
    ),
    "outcomes": Number(
        "the differences of true and false positive rates, if outcomes are known",
        _outcomes,
        "No rates by outcome: the audit has no outcomes (y_true, --target).",
    ),
    "levels": Number(
        "the comparison within levels, such as jobs",
        _levels,
        "No comparison within levels: none were named (control_features, --control).",
    ),
    "people": Number("numbers of people, also of those who are not compared", _people, ""),
    "head": Number("the date, and what the head of the page states", _head, ""),
}
