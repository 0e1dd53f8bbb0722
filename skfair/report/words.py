"""The prose of audits, in ``words.toml``: what numbers say and do not say, and rules of law."""

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
    # What is said of a group; of the group that it is compared with, only the last words.
    clause: str = ""


class Rule(NamedTuple):
    """A rule in own words, its source, and what a table made by it is not."""

    title: str
    says: str
    source: str
    is_not: str
    columns: list[str]  # of the table, which are shown
    least_share: float  # categories with a smaller share of the people are set apart
    least: dict[str, int]  # options of an audit for small groups, where the rule has its own

    @property
    def heads(self) -> dict[str, str]:
        """The head of each column."""
        return {name: prose()["heads"][name] for name in self.columns}


@cache
def prose() -> dict[str, Any]:
    """Read the file."""
    return tomllib.loads((files("skfair.report") / "words.toml").read_text(encoding="utf-8"))


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
