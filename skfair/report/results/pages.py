"""An audit as a page, as Markdown, and as the output of a notebook cell.

:func:`render` fills the template of an audit, and is ``Audit._rendered``. Other pages (of data
sets, alternatives, and the choice of a limit) collect their own values and call
:func:`render_template`. The texts are Jinja2 templates in the folder ``templates``. The private
functions prepare what a template shows of one part of an audit.

Names of groups, columns and labels come from data that anybody may have written, so whatever is
filled in is escaped: by Jinja2 in HTML, and by :func:`as_markdown`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pandas as pd

from skfair._version import __version__
from skfair.groups.declared_rates import RATES
from skfair.report.results.evidence import evidence_of
from skfair.report.results.pictures import calibration_picture, density_picture, whiskers
from skfair.report.results.result import AuditTables, parts, where
from skfair.report.results.sentences import (
    VERDICTS,
    measure_of,
    number,
    p_text,
    verdicts_of,
    within_strata,
)
from skfair.report.tables.tasks import BEFORE
from skfair.report.words import (
    dated,
    footer,
    law_of,
    law_warning,
    laws_of,
    measure_words,
    metric_words,
    prose,
    rule_of,
)
from skfair.utils.rounding import ROUNDING
from skfair.utils.text import plural, visible

# The measures that have a picture, if the task has them.
PICTURED = (
    *(name for name, rate in RATES.items() if rate.is_pictured),
    *("mean_residual", "mean_absolute_error", "mean_prediction"),
)
# If there are more groups than this, calibration and densities are not drawn as lines.
MOST_LINES = 8
# The first picture has at most this many groups, so that it fits on a screen.
MOST_DOTS = 12
# Characters that begin or end an element of CommonMark or of GitHub's tables and links.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]")
# Text that GitHub turns into a link: https://..., mailto:..., www. ...
_LINK = re.compile(r"(?<=\w)(:)(?=\S)|(?<=www)(\.)", re.IGNORECASE)
# Text that turns a line into an item of a list.
_ITEM = re.compile(r"^(\d*)([-+.)])(?=\s)")


def render(tables: AuditTables, template: str) -> str:
    """Fill a template of an audit (``AuditTables._templates``) with its numbers."""
    verdicts = verdicts_of(tables)
    law = law_of(tables.preset)
    return render_template(
        template,
        audit=tables,
        verdicts=verdicts,
        footer=footer(law),
        law_warning=law_warning(law),
        picture=_first_picture(tables),
        whole=_whole(where(tables.rates, view="")),
        views=[_view(tables, name, rates) for name, rates in parts(tables.rates, "view") if name],
        subgroups=[(measure, rows_of(own)) for measure, own in parts(tables.subgroups, "measure")],
        impact=[_impact(tables, view, rows) for view, rows in parts(tables.impact, "view")],
        rule=rule_of(tables.preset) if tables.preset else None,
        evidence=evidence_of(tables),
        others=[
            " ".join(filter(None, [dated(law), law["state"], law.get("pending")]))
            for law in laws_of(tables.preset)[1:]
        ],
        words=_glossary(tables),
        limits=prose()["limits"],
    )


def render_template(template: str, **names: Any) -> str:
    """Fill a template with values by the names that it uses; a missing one is an error."""
    environment = _environment(template.endswith(".md.j2"))
    return str(environment.get_template(template).render(version=__version__, **names))


@cache
def _environment(is_markdown: bool) -> Any:
    """Return the environment of Jinja2, which has our filters and compiles a template once."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
    except ImportError as error:
        raise ImportError(
            "Pages of an audit need Jinja2, which is not installed. Install it with "
            'pip install jinja2, or pip install "skfair-suite[report]". to_dict and to_json work '
            "without."
        ) from error
    environment = Environment(
        loader=PackageLoader("skfair.report.results"),
        autoescape=select_autoescape(["html.j2"]),
        finalize=as_markdown if is_markdown else None,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "p_text": lambda *numbers: p_text(*numbers).removeprefix("= "),
        "p_value": lambda p: "-" if p != p else "below 0.001" if p < 0.001 else f"{p:.2g}",
        "verdict": lambda is_beyond: "significant" if is_beyond else "not significant",
        "rows": lambda table, **values: rows_of(where(table, **values)),
        "counted": plural,
        "title_of": lambda name: measure_words(name).name,
        "metric_title": lambda name: metric_words(name).name,
    }
    return environment


def as_markdown(value: Any) -> Any:
    r"""Return text so that Markdown shows each of its characters, in one line.

    Examples
    --------
    >>> from skfair.report.results.pages import as_markdown
    >>> print(as_markdown("<b>women|men</b>"))
    \<b\>women\|men\</b\>
    """
    if not isinstance(value, str):
        return value
    text = _SPECIAL.sub(r"\\\g<0>", visible(" ".join(value.split())))
    return _ITEM.sub(r"\1\\\2", _LINK.sub(r"\\\g<0>", text))


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Return the rows of a table, each with its columns as attributes."""
    return list(table.itertuples(index=False))


def _whole(rates: pd.DataFrame) -> dict[str, Any]:
    """Return the values over the whole sample, and the values of the earlier model by measure.

    ``rates`` is the part of the table ``rates`` that is about the whole sample.
    """
    is_before = rates["measure"].str.startswith(BEFORE)
    before = {row.measure.removeprefix(BEFORE): row for row in rows_of(rates[is_before])}
    return {"rows": rows_of(rates[~is_before]), "before": before}


def _view(tables: AuditTables, name: str, rates: pd.DataFrame) -> dict[str, Any]:
    """Return what a page shows of one attribute or crossing.

    ``rates`` is the part of the table ``rates`` that is about this attribute or crossing.
    """
    every = list(dict.fromkeys(rates["measure"]))
    measures = [measure for measure in every if not measure.startswith(BEFORE)]
    overall = where(tables.rates, view="").set_index("measure")["value"]
    return {
        "name": name,
        "measures": measures,
        "groups": {
            group: {row.measure: row for row in rows_of(own)}
            for group, own in parts(rates, "group")
        },
        "pictures": [
            whiskers(rates, measure, overall[measure], BEFORE + measure in every)
            for measure in PICTURED
            if measure in measures
        ],
        "gaps": _gap_rows(where(tables.gaps, view=name), tables.task),
        "strata": _strata(tables, name),
        "scores": _score_pictures(tables, name),
        "signed": rows_of(where(tables.signed, view=name)),
        "hidden": [row.group for row in rows_of(where(tables.hidden, view=name))],
    }


def _strata(tables: AuditTables, name: str) -> dict[str, Any] | None:
    """Return the measures of an attribute's groups in each stratum; None if none is shown."""
    rates = where(tables.strata, view=name)
    if not len(rates):
        return None
    within = where(tables.within, view=name)
    n_strata = 0 if not len(within) else within[["n_strata", "n_not_compared"]].iloc[0].sum()
    return {
        "measures": list(dict.fromkeys(rates["measure"])),
        "rows": [
            (*key, {row.measure: row for row in rows_of(own)})
            for key, own in rates.groupby(["stratum", "group"], sort=False)
        ],
        "n_more": max(int(n_strata) - rates["stratum"].nunique(), 0),
    }


def _first_picture(tables: AuditTables) -> dict[str, Any] | None:
    """Return the picture of the first screen: one measure for the groups of all attributes.

    It is None if the audit has no measure that can be pictured.
    """
    rates = tables.rates[tables.rates["view"].isin(tables.attributes)]
    measures = set(rates["measure"])
    named = [measure_of(name, tables.task) for name in (*tables.lead, *VERDICTS)]
    measure = next((name for name in (*named, *PICTURED) if name in measures), None)
    if measure is None:
        return None
    if len(tables.attributes) > 1:
        rates = rates.assign(group=rates["view"] + ": " + rates["group"].astype(str))
    overall = where(tables.rates, view="", measure=measure)["value"].item()
    picture = whiskers(rates, measure, overall, BEFORE + measure in measures)
    rows = picture["rows"]
    return picture | {"rows": rows[:MOST_DOTS], "n_more": len(rows[MOST_DOTS:])}


def _impact(tables: AuditTables, view: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the table of a preset for one view, with heads and cells as text.

    With control features, it also has the rates within strata, and the sentences about them.
    """
    columns, names = rule_of(tables.preset).columns, ", ".join(tables.control_features)
    known = [name for name in columns if name in rows and rows[name].notna().any()]
    heads = {name: prose()["heads"][name] for name in known}
    cells = [
        (
            row.group + prose()["status"][row.status] * (row.group != row.status),
            row.n,
            [_impact_cell(row, name, names) for name in heads],
        )
        for row in rows_of(rows)
    ]
    strata = rows_of(where(tables.strata, view=view, measure="selection_rate"))
    within = within_strata(tables, view, "selection_rate") if strata else None
    said = [] if within is None else [text for text in within[:2] if text]
    named = {"name": view, "heads": list(heads.values()), "rows": cells}
    return {**named, "strata": strata, "said": said}


def _impact_cell(row: Any, name: str, strata: str) -> str:
    """Write the value in the column ``name`` of the table of a preset.

    ``strata`` are the names of the control features.
    """
    value = getattr(row, name)
    if name == "is_below_four_fifths":
        if row.status != "compared":
            return "-"
        notes = ["one person turns it"] if row.is_fragile else []
        if value and getattr(row, "strata_odds_ratio", 0.0) > 1:
            notes.append(f"over all rows; higher odds within {strata}")
        flag = "below" if value else "not below"
        return f"{flag} ({'; '.join(notes)})" if notes else flag
    if pd.isna(value):
        return "-"
    if name == "selected" or name.startswith("shortfall"):
        return f"{value:,.0f}"
    return f"{100 * value:.1f}%" if name == "rate" else number(value)


def _gap_rows(gaps: pd.DataFrame, task: str) -> list[Any]:
    """List the gaps of the present model, first over all rows and then within strata.

    Each gap has the value ``before`` of the earlier model (NaN without such a model). ``apart``
    names the pair of groups with the largest gap, as in "women lower than men". ``clear`` names the
    clear pair, which is the worst pair whose difference has a small p-value (see
    ``tables/gaps.py``).
    """
    if not len(gaps):
        return []
    keys = ["metric", "is_conditional"]
    before = where(gaps, model="before")[[*keys, "value"]].rename(columns={"value": "before"})
    now = where(gaps, model="now").merge(before, "left", keys)
    words = [_word_between(gap, task) for gap in rows_of(now)]
    for name, first, second in (
        ("apart", "first_group", "second_group"),
        ("clear", "clear_first", "clear_second"),
    ):
        pairs = zip(now[first], words, now[second], strict=True)
        now[name] = [f"{group} {word} {other}" if group else "" for group, word, other in pairs]
    return rows_of(now.sort_values("is_conditional", kind="stable"))


def _word_between(gap: Any, task: str) -> str:
    """Return the words between the two groups of a gap, of which the first has the smaller rate.

    They are "and" if the rates are equal, or if the gap compares several rates.
    """
    is_of_one_rate = measure_of(gap.metric.replace("_ratio", "_difference"), task) != ""
    is_apart = abs(gap.value - gap.is_ratio) > ROUNDING  # parity is 1 for a ratio, else 0
    return "lower than" if is_of_one_rate and is_apart else "and"


def _score_pictures(tables: AuditTables, name: str) -> dict[str, Any] | None:
    """Return pictures of calibration and densities; None without scores or with many groups."""
    calibration = where(tables.calibration, view=name)
    if not len(calibration) or calibration["group"].nunique() > MOST_LINES:
        return None
    return {
        "calibration": calibration_picture(calibration),
        "densities": density_picture(calibration),
        "rows": rows_of(calibration),
    }


def _glossary(tables: AuditTables) -> list[Any]:
    """Return the explanation of every measure and metric of an audit, each once."""
    measures = [measure_words(name.partition("[")[0]) for name in tables.rates["measure"].unique()]
    metrics = []
    for name, _ in parts(tables.gaps, "metric"):
        words = metric_words(name.partition("[")[0])
        metrics.append(words._replace(name=words.name.rpartition(" (")[0] + ", gap"))
    return list(dict.fromkeys([*measures, *metrics]))
