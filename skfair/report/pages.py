"""An audit as a page, as Markdown, and as the output of a notebook cell.

The texts are Jinja2 templates in the folder ``templates``; here is only what they are told.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from skfair._version import __version__
from skfair.report.escaping import as_markdown
from skfair.report.pictures import calibration_picture, density_picture
from skfair.report.result import AuditTables
from skfair.report.rules import RULES
from skfair.report.sentences import findings_of, number, p_text
from skfair.report.tasks import BEFORE
from skfair.report.verdicts import HEADLINES, measure_of, verdicts_of
from skfair.report.words import LIMITS, measure_words, metric_words
from skfair.utils.files import replacing
from skfair.utils.text import plural

if TYPE_CHECKING:
    from jinja2 import Environment

# The measures of which a picture is drawn, if the task has them.
PICTURED = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "mean_residual",
    "mean_absolute_error",
    "mean_prediction",
    "accuracy",
)
# More groups than this are listed, but not drawn as lines.
MOST_LINES = 8
# As many groups are in the first picture: what a screen shows at once.
MOST_DOTS = 12


def render(tables: AuditTables, template: str) -> str:
    """Fill a template with the numbers of an audit."""
    return render_template(
        template,
        audit=tables,
        verdicts=verdicts_of(tables),
        picture=_first_picture(tables),
        findings=findings_of(tables),
        whole=_whole(tables.rates[tables.rates["view"] == ""]),
        views=[_view(tables, name) for name in dict.fromkeys(tables.rates["view"]) if name],
        subgroups=_subgroups(tables),
        steps=_steps(tables.path),
        impact=_impact(tables),
        impact_title=RULES[tables.preset].title if tables.preset else "",
        words=_glossary(tables),
        limits=LIMITS,
    )


def render_template(template: str, **names: Any) -> str:
    """Fill a template."""
    return _environment(template).get_template(template).render(version=__version__, **names)


def written(text: str, path: str | PathLike[str] | None) -> str:
    """Write a text to a file, if one was named."""
    if path is not None:
        with replacing(path) as beside:
            beside.write_text(text, encoding="utf-8")
    return text


def _environment(template: str) -> Environment:
    """Return the templates and the filters that they use; what is filled in is escaped."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
    except ImportError as error:
        raise ImportError(
            "Pages of an audit need Jinja2, which is not installed. Install it with "
            'pip install jinja2, or pip install "skfair-suite[report]". to_dict and to_json work '
            "without."
        ) from error
    environment = Environment(
        loader=PackageLoader("skfair.report"),
        autoescape=select_autoescape(["html.j2"]),
        finalize=as_markdown if template.endswith(".md.j2") else None,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["p_text"] = lambda *parts: p_text(*parts).removeprefix("= ")
    environment.filters["counted"] = plural
    environment.filters["title_of"] = lambda name: measure_words(name).name
    environment.filters["metric_title"] = lambda name: metric_words(name).name
    return environment


def _rows(table: pd.DataFrame, is_kept: pd.Series | None = None) -> list[Any]:
    """Return rows of a table, each with its columns as attributes."""
    return list((table if is_kept is None else table[is_kept]).itertuples(index=False))


def _whole(rates: pd.DataFrame) -> dict[str, Any]:
    """Return the measures of all rows, and those of the model before by name."""
    is_before = rates["measure"].str.startswith(BEFORE)
    before = {row.measure.removeprefix(BEFORE): row for row in _rows(rates, is_before)}
    return {"rows": _rows(rates, ~is_before), "before": before}


def _view(tables: AuditTables, name: str) -> dict[str, Any]:
    """Return what is shown of one attribute or crossing."""
    rates = tables.rates[tables.rates["view"] == name]
    measures = [m for m in dict.fromkeys(rates["measure"]) if not m.startswith(BEFORE)]
    before = {m.removeprefix(BEFORE) for m in rates["measure"] if m.startswith(BEFORE)}
    table = {
        group: {row.measure: row for row in _rows(rates, rates["group"] == group)}
        for group in dict.fromkeys(rates["group"])
    }
    gaps = tables.gaps[tables.gaps["view"] == name] if len(tables.gaps) else tables.gaps
    overall = tables.rates[tables.rates["view"] == ""].set_index("measure")["value"]
    return {
        "name": name,
        "measures": measures,
        "groups": table,
        "pictures": [_whiskers(rates, m, overall, m in before) for m in PICTURED if m in measures],
        "gaps": _gap_rows(gaps),
        "scores": _score_pictures(tables, name),
        "signed": _rows(tables.signed, tables.signed["view"] == name) if len(tables.signed) else [],
    }


def _first_picture(tables: AuditTables) -> dict[str, Any] | None:
    """Return the picture of the first screen: groups of all attributes by one measure."""
    rates = tables.rates[tables.rates["view"].isin(tables.attributes)]
    measures = set(rates["measure"])
    named = [measure_of(name, tables.task) for name in HEADLINES]
    measure = next((name for name in (*named, *PICTURED) if name in measures), None)
    if measure is None:
        return None
    if len(tables.attributes) > 1:
        rates = rates.assign(group=rates["view"] + ": " + rates["group"].astype(str))
    overall = tables.rates[tables.rates["view"] == ""].set_index("measure")["value"]
    picture = _whiskers(rates, measure, overall, BEFORE + measure in measures)
    return picture | {
        "rows": picture["rows"][:MOST_DOTS],
        "n_more": len(picture["rows"][MOST_DOTS:]),
    }


_STATUS = {
    "compared": "",
    "reference": " (compared with)",
    "small": " (few)",
    "unknown": " (unknown)",
}


def _impact(tables: AuditTables) -> list[dict[str, Any]]:
    """Return the tables of a preset, by view: their heads and their cells as text."""
    blocks: list[dict[str, Any]] = []
    for view in dict.fromkeys(tables.impact["view"]) if len(tables.impact) else ():
        rows = tables.impact[tables.impact["view"] == view]
        columns = {
            name: head
            for name, head in RULES[tables.preset].columns.items()
            if name in rows and rows[name].notna().any()
        }
        cells = [
            (row.group + _STATUS[row.status], row.n, [_impact_cell(row, name) for name in columns])
            for row in rows.itertuples()
        ]
        blocks.append({"name": view, "heads": list(columns.values()), "rows": cells})
    return blocks


def _impact_cell(row: Any, name: str) -> str:
    """Write one value of the table of a preset."""
    value = getattr(row, name)
    if name == "is_below_four_fifths":
        if row.status != "compared":
            return "-"
        flag = "below" if value else "not below"
        return f"{flag} (one person turns it)" if row.is_fragile else flag
    if pd.isna(value):
        return "-"
    if name == "selected" or name.startswith("shortfall"):
        return f"{value:,.0f}"
    return f"{100 * value:.1f}%" if name == "rate" else number(value)


def _gap_rows(gaps: pd.DataFrame) -> list[Any]:
    """List the gaps of the present model beside those of the model before, then within strata."""
    if not len(gaps):
        return []
    before = gaps[gaps["model"] == "before"].set_index(["metric", "is_conditional"])["value"]
    now = gaps[gaps["model"] == "now"].copy()
    keys = list(zip(now["metric"], now["is_conditional"], strict=True))
    now["before"] = [float(before.get(key, np.nan)) for key in keys]
    return _rows(now.sort_values("is_conditional", kind="stable"))


def _whiskers(
    rates: pd.DataFrame, measure: str, overall: pd.Series, has_before: bool
) -> dict[str, Any]:
    """Return a picture of one measure: a dot with its interval for each group, on one scale."""
    rows = rates[rates["measure"] == measure]
    ends = rows[["value", "value_low", "value_high"]].to_numpy(float)
    then = rates[rates["measure"] == BEFORE + measure].set_index("group")["value"]
    every = np.concatenate([ends.ravel(), then.to_numpy(float), [overall[measure]]])
    every = every[np.isfinite(every)]
    is_share = measure not in ("mean_residual", "mean_absolute_error", "mean_prediction")
    low, high = (0.0, 1.0) if is_share or not every.size else (every.min(), every.max())
    low, high = min(low, 0.0), high if high > low else low + 1.0

    def place(value: float) -> float | None:
        return float(round(300 * (value - low) / (high - low), 2)) if np.isfinite(value) else None

    return {
        "measure": measure,
        "low": low,
        "high": high,
        "overall": place(overall[measure]),
        "has_before": has_before,
        "n_more": 0,
        "rows": [
            {
                "row": row,
                "at": place(row.value),
                "from": place(row.value_low),
                "to": place(row.value_high),
                "before": place(then[row.group]) if has_before else None,
            }
            for row in _rows(rows)
        ],
    }


def _score_pictures(tables: AuditTables, name: str) -> dict[str, Any] | None:
    """Return pictures of calibration and densities; None without scores or with many groups."""
    if not len(tables.calibration):
        return None
    calibration = tables.calibration[tables.calibration["view"] == name]
    densities = tables.densities[tables.densities["view"] == name]
    if not 0 < len(densities) <= MOST_LINES:
        return None
    return {
        "calibration": calibration_picture(calibration),
        "densities": density_picture(densities),
        "rows": _rows(calibration),
    }


def _subgroups(tables: AuditTables) -> list[tuple[str, list[Any]]]:
    """Return the worst subgroups by measure."""
    if not len(tables.subgroups):
        return []
    return [
        (measure, _rows(tables.subgroups, tables.subgroups["measure"] == measure))
        for measure in dict.fromkeys(tables.subgroups["measure"])
    ]


def _steps(path: pd.DataFrame) -> dict[str, Any] | None:
    """Return the table behind the slider: one row per limit and group."""
    if not len(path):
        return None
    measures = list(dict.fromkeys(path["measure"]))
    groups: dict[tuple[Any, ...], dict[str, float]] = {}
    named = path["limits"] if "limits" in path else path["limit"].map(number)
    for row in _rows(path.assign(name=named)):
        groups.setdefault((row.limit, row.name, row.view, row.group), {})[row.measure] = row.value
    rows = [
        {
            "limit": limit,
            "name": name,
            "view": view,
            "group": group,
            "values": [values.get(m, np.nan) for m in measures],
        }
        for (limit, name, view, group), values in groups.items()
    ]
    limits = list(dict.fromkeys(named))
    is_front = "relative_cost" in measures
    return {"measures": measures, "rows": rows, "limits": limits, "is_front": is_front}


def _glossary(tables: AuditTables) -> list[Any]:
    """Return the words for every measure and metric of an audit, each once."""
    measures = [measure_words(name.partition("[")[0]) for name in tables.rates["measure"]]
    gaps = tables.gaps["metric"].tolist() if len(tables.gaps) else []
    metrics = [metric_words(name.partition("[")[0]) for name in gaps]
    metrics = [
        metric._replace(name=metric.name.rpartition(" (")[0] + ", gap") for metric in metrics
    ]
    return list(dict.fromkeys([*measures, *metrics]))
