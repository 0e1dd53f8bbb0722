"""The page on which a committee chooses a limit, with the effects of each model of a path.

Each number is measured on the decisions of the models by the tables of audits, so small groups are
hidden as they are there. The page shows the numbers and computes none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from hashlib import sha256
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import ColumnsLike, FloatArray, MatrixLike
from skfair._version import __version__
from skfair.groups.attributes import check_aligned, read_columns
from skfair.groups.decision_memo import KIND, VERSION
from skfair.report.options import Options, read_options
from skfair.report.pages import render_template, rows_of
from skfair.report.pictures import Axis
from skfair.report.reading import RawRows, check_raw_rows, find_task, survey_rows
from skfair.report.result import written
from skfair.report.small_groups import HIDDEN, Shown
from skfair.report.table import read_table
from skfair.report.tasks import BEFORE, gaps_of
from skfair.report.views import View, find_gaps, whole_view
from skfair.report.words import metric_words, prose
from skfair.utils.rounding import ROUNDING
from skfair.utils.row_hash import row_draws
from skfair.utils.text import check_text

# The shares of a group by true class and decision, in the order of matrices of costs.
_CELLS = ("rightly_not", "wrongly_selected", "wrongly_not", "rightly_selected")
# The words of a memo about the chosen model, in addition to its numbers.
_FACTS = ("label", "holds_overall_rate", "group_aware", "status", "confidence")


class Candidate(NamedTuple):
    """A model of a path: its decisions, and what its fit says of itself."""

    label: str  # on the slider
    decisions: Any
    limits: dict[str, float] | None = None  # by attribute, "" for all of them; None without one
    holds_overall_rate: bool = False
    group_aware: bool = False
    status: str = "no limit"
    confidence: float | None = None
    certified: float | None = None  # the smallest limit that the fit could certify
    costs: FloatArray | None = None  # by true class and decision, the positive class last


class Judged(NamedTuple):
    """The rows that models are judged on, and what is measured there."""

    X: MatrixLike
    raw: RawRows  # without decisions
    groups: ColumnsLike
    positive: Any
    metrics: list[str]
    limited: Sequence[str]  # attributes of the fit, if these have names
    is_crossed: bool  # whether the limit is that of their crossed groups
    options: dict[str, Any]  # of an audit

    def step(self, candidate: Candidate, before: Any) -> tuple[dict[str, Any], Shown]:
        """Return what the page says of a model as plain data, and which groups may be shown."""
        raw = self.raw._replace(y_pred=candidate.decisions, before=before)
        task = find_task(survey_rows(raw.labels(), "binary"), "binary", self.positive)
        table = read_table(raw, task, self.groups, like=check_aligned(**raw.named()))
        options = read_options(random_state=0, **self.options)
        shown = Shown(table, options)
        limited = [name for name in table.attributes if name in self.limited] or table.attributes
        is_crossed = self.is_crossed and len(limited) == len(table.attributes) > 1
        views = shown.views[: None if is_crossed else len(table.attributes)]
        limits = candidate.limits or {}
        if limits and not limits.keys() & {"", *limited}:  # the fit got groups without names
            limits = {"": max(limits.values())}
        limited = [views[-1].name] if is_crossed else limited
        whole = whole_view(shown.sample)
        (everybody,) = _groups(whole, whole, options).values()
        attributes: dict[str, dict[str, Any]] = {
            view.name: {"disparities": {}, "groups": _groups(view, whole, options)}
            for view in views
        }
        gaps = gaps_of(task, self.metrics, set(shown.sample.measures))
        for gap in rows_of(find_gaps(shown.sample, views, gaps, options, [])[0]):
            if gap.model == "now":
                limit = limits.get(gap.view, limits.get("")) if gap.view in limited else None
                attributes[gap.view]["disparities"][gap.metric] = _disparity(gap, limit)
        cells = [everybody[name] for name in _CELLS]
        cost = None
        if candidate.costs is not None and None not in cells:
            cost = float(np.dot(cells, np.ravel(candidate.costs)))
        everybody |= {"cost": cost, "certified": candidate.certified, "attributes": attributes}
        facts = {name: getattr(candidate, name) for name in _FACTS}
        return {**facts, "limits": limits or None, "numbers": everybody}, shown

    def fingerprint(self, candidates: Sequence[Candidate]) -> str:
        """Return the SHA-256 of the rows with outcomes and groups, and of all decisions."""
        groups = (values for _, values in read_columns(self.groups))
        known = self.raw.named().values()
        decisions = (candidate.decisions for candidate in candidates)
        digest = sha256()
        for part in (self.X, *groups, *known, *decisions):
            digest.update(row_draws(part, None, 0).tobytes())
        return digest.hexdigest()


def _groups(view: View, whole: View, options: Options) -> dict[str, dict[str, Any]]:
    """Return the numbers of the groups of a view that may be shown."""
    measures = view.measures

    def with_ends(name: str) -> list[list[float | None]]:
        values = measures[name]
        every = np.stack([values.means, *values.interval(options.confidence)], axis=1)
        return [_plain(own) for own in every]

    base, hits, errors = (
        measures[name].means for name in ("base_rate", "true_positive_rate", "false_positive_rate")
    )
    columns = {
        "rate": with_ends("selection_rate"),
        "rate_before": with_ends(f"{BEFORE}selection_rate"),
        "accuracy": with_ends("accuracy"),
        "newly": _plain(measures["moved_up"].means),
        "no_longer": _plain(measures["moved_down"].means),
        "share": _plain(measures["moved_up"].weight / whole.measures["moved_up"].weight),
    }
    of_cells = (1 - base) * (1 - errors), (1 - base) * errors, base * (1 - hits), base * hits
    columns |= {name: _plain(own) for name, own in zip(_CELLS, of_cells, strict=True)}
    columns["n"] = view.n_rows.astype(int).tolist()
    columns["apart"] = np.broadcast_to(view.apart, len(view.names)).tolist()
    rows = (dict(zip(columns, own, strict=True)) for own in zip(*columns.values(), strict=True))
    named = zip(view.names, rows, strict=True)
    return {name: row for name, row in named if row["apart"] != HIDDEN}


def _plain(values: Any) -> list[float | None]:
    """Return numbers for JSON: undefined ones are None."""
    return [round(x, 6) if np.isfinite(x) else None for x in np.asarray(values, float).tolist()]


def _disparity(gap: Any, limit: float | None) -> dict[str, Any]:
    """Return a gap in the unit of the limit, which of ratios is their distance from 1."""
    ends = np.array([gap.value, gap.value_low, gap.value_high])
    value, low, high = _plain((1 - ends)[[0, 2, 1]] if gap.is_ratio else ends)
    between = {"lower": gap.first_group, "higher": gap.second_group}
    is_kept = None if limit is None or value is None else value <= limit + ROUNDING
    return {"value": value, "low": low, "high": high, "limit": limit, "is_kept": is_kept} | between


def choice_page(
    paths: list[list[Candidate]],  # of the same limits; the first candidate of each is the same
    judged: Judged,
    words: dict[str, str],  # "title", "decided", and "reference": the first candidate
    file: str | PathLike[str] | None = None,
) -> str:
    """Render the page, and write it to a file if one is named."""
    check_text(words.values(), "The words of the page")
    for name in ("title", "decided"):
        if not words[name].strip():
            raise ValueError(
                f"{name}={words[name]!r} is empty. Pass words for people to read, such as "
                "decided='granted a loan', or leave it out."
            )
    candidates = [candidate for path in paths for candidate in path]
    before = candidates[0].decisions
    check_raw_rows(judged.raw._replace(y_pred=before), judged.groups, None)
    steps = []
    for candidate in candidates:
        step, shown = judged.step(candidate, before)
        steps.append(step)
    views = steps[0]["numbers"]["attributes"]
    memo = {
        "kind": KIND,
        "version": VERSION,
        "skfair": __version__,
        "constraint": ", ".join(name.rpartition("_")[0] for name in judged.metrics),
        "metric": ", ".join(judged.metrics),
        "fingerprint": judged.fingerprint(candidates),
    }
    text = render_template(
        "choice.html.j2",
        **words,
        memo=memo,
        steps=steps,
        n_limits=len(paths[0]),
        Axis=Axis,
        everybody=steps[0]["numbers"],
        hidden=[f"{row.group} ({row.view})" for row in rows_of(shown.hidden) if row.view in views],
        metric_sentences=[metric_words(name).says for name in judged.metrics],
        options=read_options(random_state=0, **judged.options),
        noun="people" if judged.raw.units is None else "decisions",
        is_weighted=judged.raw.sample_weight is not None,
        made_on=date.today().isoformat(),
        limits=prose()["limits"],
    )
    return written(text, file)
