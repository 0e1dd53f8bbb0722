"""The prose of audits, in ``words.toml``, and the laws that pages name, in ``law.toml``.

The first file has the name of each measure and metric, what it says and does not say, and the rules
of the presets (:func:`measure_words`, :func:`metric_words`, :func:`rule_of`). Rates of decisions
and their criteria have these words where they are declared (``groups/declared_rates.py`` and
``metrics/labels.py``). The second file has the state of each law on the day on which it was last
looked up, and what it asks for, of which ``results/evidence.py`` makes a table. A page that names a
law calls :func:`law_of`, and passes the result to :func:`footer` and :func:`law_warning`.

All rooms of the report use this file, so it imports none of them.
"""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from skfair.groups.declared_rates import RATES, is_f_score, rate_named, spoken_rate
from skfair.metrics.labels import CRITERIA

PRESETS = ("ll144", "ugesp", "ecoa", "uk")
# An entry on a law that was checked longer ago is old: rules changed several times in 2026.
SIX_MONTHS = timedelta(days=183)


class Words(NamedTuple):
    """The name of a number for readers, what it says, and what it does not say."""

    name: str
    says: str
    does_not_say: str
    # The words before the values of two groups in the sentence of a verdict, such as "selection
    # rate" in "sex: selection rate 37.4% (female) against 55.6% (male): ..."
    phrase: str = ""


class Rule(NamedTuple):
    """The rule of a preset in our words, and what a table made by it is not."""

    title: str
    says: str
    is_not: str
    columns: list[str]  # the columns of the table ``impact`` that are shown
    least_share: float  # groups with a smaller share of the people are not compared
    least: dict[str, int]  # defaults of the options for small groups, if the rule has its own


@cache
def prose(name: str = "words.toml") -> dict[str, Any]:
    """Read one of the two files."""
    return tomllib.loads((files("skfair.report") / name).read_text(encoding="utf-8"))


def laws() -> dict[str, dict[str, Any]]:
    """Return every law by its key. The law of a preset has the name of the preset as its key."""
    return prose("law.toml")


def dated(law: dict[str, Any]) -> str:
    """Name a law, with the day from which its present text applies and that of the last check."""
    name = "{name} ({jurisdiction})".format(**law)
    since = "" if law["applies_from"] == "not known" else f", applies from {law['applies_from']}"
    return f"State of the law as of {law['checked']}: {name}{since}."


def today() -> date:
    """Return the present day, which tests replace."""
    return date.today()


def law_of(preset: str) -> dict[str, Any] | None:
    """Return the law of the preset, which a page names; None without a preset."""
    return laws()[preset] if preset else None


def laws_of(preset: str) -> list[dict[str, Any]]:
    """Return the law of the preset, and others whose questions its page answers, too."""
    if not preset:
        return []
    return [laws()[preset], *(law for law in laws().values() if law.get("preset") == preset)]


def footer(law: dict[str, Any] | None) -> str:
    """Return what a page says about its law below the numbers; the text is empty without one."""
    return f"{dated(law)} This page is not legal advice." if law else ""


def law_warning(law: dict[str, Any] | None) -> str:
    """Return a warning if the law may change soon, or was checked long ago; else it is empty."""
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


def _entry(kind: str, name: str) -> dict[str, str]:
    """Return the words of a measure or metric; a metric of one's own has its name only."""
    spoken = name.replace("_", " ")
    if kind == "measures" and (name in RATES or is_f_score(name)):
        rate, spoken = rate_named(name), spoken_rate(name)
        words = {"says": rate.says, "does_not_say": rate.does_not_say}
    elif kind == "metrics" and name in CRITERIA:
        words = CRITERIA[name]._asdict()
    else:
        known: dict[str, dict[str, str]] = prose()[kind]
        words = known.get(name) or prose()["own"]
    return {"name": spoken[:1].upper() + spoken[1:], "phrase": spoken} | words


def measure_words(name: str) -> Words:
    """Return the words for a measure such as ``accuracy``, ``before:accuracy``, ``recall[cat]``."""
    plain, _, label = name.removeprefix("before:").partition("[")
    words = Words(**_entry("measures", plain))
    return words._replace(name=f"{words.name} of {label[:-1]}") if label else words


def metric_words(name: str) -> Words:
    """Return the words for a metric such as ``demographic_parity_difference[cat]``."""
    plain, _, label = name.partition("[")
    criterion, kind = plain.rsplit("_", 1)
    words = Words(**_entry("metrics", criterion))
    of_class = f" of {label[:-1]}" if label else ""
    return words._replace(name=f"{words.name}{of_class} ({kind})")
