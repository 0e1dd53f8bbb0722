"""The prose of audits, in ``words.toml``, and the laws that pages name, in ``law.toml``.

The first file says what each number says and does not say. The second one has the state of each law
on the day on which it was last looked up.
"""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

PRESETS = ("ll144", "ugesp", "ecoa")
# An entry on a law that was checked longer ago is old: rules changed several times in 2026.
SIX_MONTHS = timedelta(days=183)


class Words(NamedTuple):
    """The name of a number for readers, what it says, and what it does not say."""

    name: str
    says: str
    does_not_say: str
    phrase: str = ""  # which a verdict puts before the values of two groups


class Rule(NamedTuple):
    """A rule in own words, and what a table made by it is not."""

    title: str
    says: str
    is_not: str
    columns: list[str]  # of the table, which are shown
    least_share: float  # categories with a smaller share of the people are set apart
    least: dict[str, int]  # options of an audit for small groups, where the rule has its own


@cache
def prose(name: str = "words.toml") -> dict[str, Any]:
    """Read a file."""
    return tomllib.loads((files("skfair.report") / name).read_text(encoding="utf-8"))


def laws() -> dict[str, dict[str, Any]]:
    """Return every law by its key, which is that of a preset if one goes with it."""
    return prose("law.toml")


def dated(law: dict[str, Any]) -> str:
    """Name a law, with the day from which its present text applies and that of the last check."""
    name = "{name} ({jurisdiction}), applies from {applies_from}".format(**law)
    return f"State of the law as of {law['checked']}: {name}."


def today() -> date:
    """Return the day on which something is printed."""
    return date.today()


def law_of(preset: str, sentences: list[str]) -> dict[str, Any] | None:
    """Return the law that a page names: that of its preset, or of the four-fifths rule."""
    key = preset or "ugesp" * any("four fifths" in sentence for sentence in sentences)
    return laws()[key] if key else None


def footer(law: dict[str, Any] | None) -> str:
    """Return what a page says below its numbers of the law that it names; empty without one."""
    return f"{dated(law)} This page is not legal advice." if law else ""


def law_warning(law: dict[str, Any] | None) -> str:
    """Warn if the law that a page names may change soon, or was checked long ago; else empty."""
    reasons = []
    if law and "pending" in law:
        reasons.append(f"it may change soon. {law['pending']}")
    if law and today() - law["checked"] > SIX_MONTHS:
        reasons.append(f"it was last looked up on {law['checked']}, more than six months ago.")
    if not law or not reasons:
        return ""
    return f"Warning about the law ({law['name']}): {' Also, '.join(reasons)}"


def rule_of(preset: str) -> Rule:
    """Return the rule behind a preset."""
    return Rule(**prose()["rules"][preset])


def measure_words(name: str) -> Words:
    """Return the words for a measure such as ``accuracy``, ``before:accuracy``, ``recall[cat]``."""
    plain, _, label = name.removeprefix("before:").partition("[")
    words = Words(**prose()["measures"][plain])
    return words._replace(name=f"{words.name} of {label[:-1]}") if label else words


def metric_words(name: str) -> Words:
    """Return the words for a metric such as ``demographic_parity_difference[cat]``."""
    plain, _, label = name.partition("[")
    criterion, kind = plain.rsplit("_", 1)
    words = Words(**prose()["metrics"][criterion])
    of_class = f" of {label[:-1]}" if label else ""
    return words._replace(name=f"{words.name}{of_class} ({kind})")
