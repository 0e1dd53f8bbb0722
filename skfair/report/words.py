"""The prose of audits, in ``words.toml``, and the laws that pages name, in ``law.toml``.

The first file says what each number says and does not say. The second one has the state of each law
on the day on which it was last looked up.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

PRESETS = ("ll144", "ugesp", "ecoa")


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


def footer(preset: str, sentences: list[str]) -> str:
    """Return what a page says below its numbers of the law that it names; empty without one."""
    key = preset or "ugesp" * any("four fifths" in sentence for sentence in sentences)
    return f"{dated(laws()[key])} This page is not legal advice." if key else ""


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
