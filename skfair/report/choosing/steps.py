"""What a committee is told about a model: its *step*, measured on rows that the model has not seen.

Each model of a path becomes a :class:`Candidate`. :class:`Judged` has the rows that measure them,
and :meth:`Judged.step` returns the step of one, as plain data: limits, numbers by group,
disparities. Rates and differences are shares, between 0 and 1. Numbers are measured by the tables
of audits, so small groups are hidden as they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from math import nan
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, MatrixLike
from skfair.groups.attributes import ROLES, check_aligned, read_columns
from skfair.groups.cohort import Cohort, given_columns, with_columns
from skfair.groups.outcomes import one_decision
from skfair.report.results.checks import is_settled, left_out_of
from skfair.report.results.pages import rows_of
from skfair.report.tables.options import Options, read_options
from skfair.report.tables.reading import find_task, read_rows, survey_rows
from skfair.report.tables.small_groups import HIDDEN, Shown
from skfair.report.tables.sums import add_up
from skfair.report.tables.tasks import BEFORE, gaps_of
from skfair.report.tables.views import MOST_CROSSED, View, find_gaps, whole_view
from skfair.utils.rounding import ROUNDING
from skfair.utils.row_hash import row_draws
from skfair.utils.text import listed

# The shares of a group by true class and decision, in the order of matrices of costs.
_CELLS = ("rightly_not", "wrongly_selected", "wrongly_not", "rightly_selected")
# The entries of a memo that describe the chosen model, in addition to its numbers.
_FACTS = (
    "label",
    "holds_overall_rate",
    "held_rate",
    "training_rates",
    "group_aware",
    "status",
    "confidence",
)
TODAY = "no limit"  # the status of today's decisions, which no model of the path has made
# The name that an attribute gets if the groups are an array, which has no names.
_NAMELESS = "sensitive_feature"


class Candidate(NamedTuple):
    """A model of a path: its decisions, and what its fit says of itself."""

    label: str  # the name of the model on the slider
    decisions: Any  # predicted labels of the rows of Judged
    # The limit of each attribute. The key "" limits all attributes. If None, there is no limit.
    limits: dict[str, float] | None = None
    holds_overall_rate: bool = False
    held_rate: float | None = None  # the selection rate that is held, if it is one number
    # Selection rates on the training rows: of the model itself, of the best decisions without
    # limits, and of the best decisions with limits
    training_rates: tuple[float, float, float] | None = None
    group_aware: bool = False
    status: str = TODAY  # the status that the fit reports
    confidence: float | None = None  # confidence of the certificate, if the fit was asked for one
    certified: float | None = None  # the smallest limit that the fit could certify
    costs: FloatArray | None = None  # (2, 2): by true class and decision, the positive class last


class Judged(NamedTuple):
    """The rows that models are judged on, and what is measured there."""

    X: MatrixLike
    people: Cohort  # the columns of these rows, without decisions
    metrics: list[str]
    limited: Sequence[str]  # attributes of the fit; empty if they are not known
    is_crossed: bool  # whether the limit is for the crossed groups of these attributes
    options: dict[str, Any]  # options of an audit, such as the confidence level

    def step(self, candidate: Candidate, before: Any) -> tuple[dict[str, Any], Shown]:
        """Return the step of a candidate, and which groups may be shown.

        ``before`` are the decisions of the first candidate, with which all are compared.
        """
        people = with_columns(self.people, y_pred=candidate.decisions, before=before)
        columns, survey = given_columns(people), survey_rows(people, "binary")
        check_aligned(**columns)
        task = find_task(survey, "binary", people.pos_label, given=columns)
        table = add_up(read_rows(people, task), task)
        options = read_options(random_state=0, **self.options)
        shown = Shown(table, options)
        limits = candidate.limits or {}
        limited = self._limited_views(table.attributes, limits, shown.views)
        if _NAMELESS in (*limits, *limited) and limits:  # the only attribute has no name
            limits = {"": max(limits.values())}
        is_crossed = limited[-1] not in table.attributes
        views = shown.views[: None if is_crossed else len(table.attributes)]
        whole = whole_view(shown.sample)
        (everybody,) = _groups(whole, whole, options).values()
        attributes: dict[str, dict[str, Any]] = {
            view.name: {"disparities": {}, "groups": _groups(view, whole, options)}
            for view in views
        }
        gaps = gaps_of(task, self.metrics, set(shown.sample.measures))
        gap_of = {
            (gap.view, gap.metric): gap
            for gap in rows_of(find_gaps(shown.sample, views, gaps, options, [])[0])
            if gap.model == "now"
        }
        (rate, *_), only = everybody["rate"], ""
        if rate in (0, 1):
            only = one_decision("positive" if rate else "negative", has_outcomes=True)
        for view in views:
            limit = limits.get(view.name, limits.get("")) if view.name in limited else None
            for name in self.metrics:
                gap = _disparity(gap_of.get((view.name, name)), view, limit, only)
                attributes[view.name]["disparities"][name] = gap
        cells = [everybody[name] for name in _CELLS]
        cost = None
        if candidate.costs is not None and None not in cells:
            cost = float(np.dot(cells, np.ravel(candidate.costs)))
        everybody |= {"cost": cost, "certified": candidate.certified, "attributes": attributes}
        facts = {name: getattr(candidate, name) for name in _FACTS}
        return {**facts, "limits": limits or None, "numbers": everybody}, shown

    def _limited_views(
        self, attributes: list[str], limits: dict[str, float], views: list[View]
    ) -> list[str]:
        """Return the names of the views that the models limit.

        These are attributes, or one crossing. This raises if the attributes of the fit are not
        among the attributes of the page.
        """
        limited = [*self.limited] or [name for name in limits if name] or attributes
        is_crossed = self.is_crossed and len(limited) > 1
        if len(limited) == len(attributes) == 1 and _NAMELESS in (*limited, *attributes):
            return attributes
        if not set(limited) <= set(attributes):
            raise ValueError(
                f"The models limit {listed(limited)}, but sensitive_features has "
                f"{listed(attributes)}. Limits are matched by name, so pass a DataFrame or a dict "
                "with the columns that the models were fitted with."
            )
        if not is_crossed:
            return limited
        crossed = " x ".join(attributes)
        if len(limited) < len(attributes) or crossed not in [view.name for view in views]:
            raise ValueError(
                f"The models limit the intersections of {listed(limited)}, and the page compares "
                f"at most {MOST_CROSSED} intersections of the attributes in sensitive_features: "
                f"{listed(attributes)}. Pass only the columns that the models were fitted with, or "
                "merge groups."
            )
        return [crossed]

    def fingerprints(self, candidates: Sequence[Candidate]) -> list[str]:
        """Return a SHA-256 hash for each model, of the rows, labels, groups and its decisions.

        ``decide`` fits the chosen model again, and compares the hash to make sure that it is the
        same model.
        """
        groups = (values for _, values in read_columns(self.people.sensitive_features))
        columns = given_columns(self.people).items()
        beside = (values for name, values in columns if name not in ROLES)
        of_rows = sha256()
        for part in (self.X, *groups, *beside):
            of_rows.update(row_draws(part, None, 0).tobytes())
        fingerprints = []
        for candidate in candidates:
            digest = of_rows.copy()
            digest.update(row_draws(candidate.decisions, None, 0).tobytes())
            fingerprints.append(digest.hexdigest())
        return fingerprints


def _groups(view: View, whole: View, options: Options) -> dict[str, dict[str, Any]]:
    """Return the numbers of each group of a view that may be shown, as plain data."""
    measures = view.measures

    def with_ends(name: str) -> list[list[float | None]]:
        """Return the value of a measure and the ends of its interval, for each group."""
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
    # These are the shares of _CELLS: ``base`` is the share of the positive class, ``hits`` is the
    # true positive rate, and ``errors`` the false positive rate.
    of_cells = (1 - base) * (1 - errors), (1 - base) * errors, base * (1 - hits), base * hits
    columns |= {name: _plain(own) for name, own in zip(_CELLS, of_cells, strict=True)}
    columns["n"] = view.n_rows.astype(int).tolist()
    columns["apart"] = np.broadcast_to(view.apart, len(view.names)).tolist()
    rows = (dict(zip(columns, own, strict=True)) for own in zip(*columns.values(), strict=True))
    named = zip(view.names, rows, strict=True)
    return {name: row for name, row in named if row["apart"] != HIDDEN}


def _plain(values: Any) -> list[float | None]:
    """Return rounded numbers for JSON, with None for undefined ones."""
    return [round(x, 6) if np.isfinite(x) else None for x in np.asarray(values, float).tolist()]


def _disparity(gap: Any, view: View, limit: float | None, only: str) -> dict[str, Any]:
    """Return a gap as plain data, in the unit of the limit: for a ratio, its distance from 1.

    If the view has no two groups to compare, ``gap`` and the numbers of the result are None.
    ``limit`` is None if the model does not limit this view, and ``only`` says what is not compared
    because every decision is the same.
    """
    if gap is None:
        numbers = dict.fromkeys(("value", "low", "high"))
        left_out = left_out_of(nan, "", ", ".join(view.too_few), only)
        between = dict.fromkeys(("lower", "higher"), "")
    else:
        ends = np.array([gap.value, gap.value_low, gap.value_high])
        every = _plain((1 - ends)[[0, 2, 1]] if gap.is_ratio else ends)
        numbers = dict(zip(("value", "low", "high"), every, strict=True))
        left_out = left_out_of(gap.value, gap.left_out, gap.too_few, only)
        between = {"lower": gap.first_group, "higher": gap.second_group}
    value = numbers["value"]
    is_within = None if limit is None or value is None else value <= limit + ROUNDING
    return {
        **numbers,
        "limit": limit,
        "is_kept": is_settled(is_within, bool(left_out)),
        "not_compared": ", ".join(f"{names} ({reason})" for names, reason in left_out),
        **between,
    }
