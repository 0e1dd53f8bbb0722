"""Limits of a pipeline: a check passes, fails, or is inconclusive, as the interval decides.

A disparity that is measured on few rows may lie on the wrong side of a limit by chance. So a
condition such as ``demographic_parity_difference > 0.1`` is checked by the interval of the
disparity. It names what must *not* hold: the check fails if it holds in the whole interval, passes
if it holds nowhere in it, and is inconclusive otherwise. It is also inconclusive, and does not
pass, if a group cannot be compared, because nothing is known about that group.

:meth:`Audit.check <skfair.report.Audit.check>` and ``python -m skfair audit --fail-if`` call
:func:`read_conditions` on the text, and then :func:`check_conditions` with the rows of the table
``gaps``. The page of a committee, in :mod:`skfair.report.choosing.steps`, uses :func:`left_out_of`
and :func:`is_settled`, so that both follow the same rule.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
from scipy import stats

from skfair.groups.outcomes import ONE_DECISION
from skfair.metrics.labels import LABEL_METRICS
from skfair.records.decision_memo import Memo, chosen_limits, compared_groups, open_memo
from skfair.utils.text import visible
from skfair.utils.validation import check_limit

Outcome = Literal["pass", "fail", "inconclusive"]
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
# "view: metric sign limit". The view may be missing, and the metric may end in a class, "[cat]".
_CONDITION = re.compile(
    r"\s*(?:(?P<view>.+?)\s*:)?\s*(?P<metric>[a-z_][a-z0-9_ ]*?(?:\[.*\])?)"
    r"\s*(?P<sign>[<>]=?)\s*(?P<limit>[^\s-]\S*)\s*"
)
# The view of a condition within levels: "within department" or "sex, within department"
_WITHIN = re.compile(r"(?:(?P<view>.+?)\s*,\s*)?within\s+(?P<within>.+)")
# If a condition would fail fair models, the message proposes the opposite sign.
_OPPOSITES = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
# A percentage below this, as the limit on a ratio, was probably meant as a number: 0.8% for 0.8.
_SMALL_RATIO = 0.05
# The level of an annotation of GitHub for each outcome.
_LEVELS = {"pass": "notice", "fail": "error", "inconclusive": "warning"}
# Why a gap does not compare a group: a rate, and a metric of the user's own, which is resampled
_LEFT_OUT = "too few people count in the rate, or it is hidden with such a group"
_LEFT_OUT_OF_OWN = (
    "too few people count in the metric, it is hidden with such a group, or it has the same value "
    "in all resamples, so no interval is known"
)


class Condition(NamedTuple):
    """A condition that must not hold."""

    text: str
    view: str | None  # None for all views
    metric: str
    holds: Callable[[float, float], bool]  # the sign, as a function of value and limit
    limit: float
    # Whether intersections of attributes with too few people keep the check from passing
    of_intersections: bool
    # The (view, group) of each group that was compared when a committee chose the limit. If one of
    # them has no rows now, the check does not pass.
    groups: tuple[tuple[str, str], ...] = ()
    within: str = ""  # the control features within whose levels groups are compared, if any


class Check(NamedTuple):
    """Result of the check of a limit, as returned by :meth:`skfair.report.Audit.check`.

    Parameters
    ----------
    condition : str
        The condition, which must not hold.
    outcome : {"pass", "fail", "inconclusive"}
        The outcome. It is "fail" if the condition holds in the whole confidence interval, "pass" if
        it holds nowhere in the interval and all groups could be compared, and "inconclusive"
        otherwise.
    value : float
        The disparity.
    low : float
        Lower end of the interval that determined the outcome. If the outcome is "fail" and there
        are several views, the interval is corrected for their number.
    high : float
        Upper end of this interval.
    limit : float
        The limit of the condition.
    view : str
        The attribute or crossing that determined the outcome.
    undefined : str
        The groups that could not be compared, with the reason. If there are any, the outcome is not
        "pass", unless ``allow_undefined`` was set.
    allow_undefined : bool
        Whether groups that could not be compared were left out.
    n_rows : int
        Number of rows of the audit.
    n_rows_needed : int or None
        Approximate number of rows with which an inconclusive check would be decided, if the
        disparity and the shares of the groups stay the same. It is None if the check is decided, if
        the disparity is too close to the limit, or if a group could not be compared.
    scope : str
        With ``control_features``, whether groups were compared over all rows or within levels. It
        is empty otherwise.

    Examples
    --------
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.report import audit
    >>> y, scores, groups = make_group_scores(2000, random_state=0)
    >>> found = audit(y, scores > 0, sensitive_features={"group": groups})
    >>> found.check("demographic_parity_difference > 0.5").outcome
    'pass'
    """

    condition: str
    outcome: Outcome
    value: float
    low: float
    high: float
    limit: float
    view: str
    undefined: str
    allow_undefined: bool
    n_rows: int
    n_rows_needed: int | None
    scope: str = ""

    @property
    def sentence(self) -> str:
        """The check in a sentence."""
        ends = f"{self.value:.4g}, interval {self.low:.4g} to {self.high:.4g}"
        if not self.is_defined:
            ends = "undefined"
        where = f"{self.view}, {self.scope}" if self.scope else self.view
        text = f"{self.condition}: {self.outcome} ({where}: {ends})"
        is_open = bool(self.undefined) and not self.allow_undefined
        if self.undefined:
            text += f". Not compared: {self.undefined}"
        if not self.is_defined:
            text += ", so it is not known whether the limit is kept."
            if ONE_DECISION in self.undefined:
                return text
            return f"{text} Check rows that have two groups or more."
        if is_open and self.outcome != "fail":
            text += (
                ", so it is not known whether the limit is kept. allow_undefined leaves them out"
            )
        if self.outcome != "inconclusive" or is_open:
            return f"{text}."
        if self.n_rows_needed is None:
            return f"{text}; the value is so close to the limit that no number of rows decides it."
        times = self.n_rows_needed / self.n_rows
        return f"{text}; about {self.n_rows_needed:,} rows ({times:.2g} times as many) decide it."

    def __bool__(self) -> bool:
        """Whether the check passes, so that ``assert audit.check(...)`` says what it seems to."""
        return self.outcome == "pass"

    @property
    def is_defined(self) -> bool:
        """Whether there are two groups to compare. If not, no option makes the check pass."""
        return bool(np.isfinite([self.low, self.high]).all())

    def annotation(self) -> str:
        """Return a line that GitHub and similar services show next to a change.

        Returns
        -------
        line : str
            The line, which consists of ``::error``, ``::warning`` or ``::notice``, a title and the
            sentence.
        """
        text = visible(self.sentence).replace("%", "%25")
        return f"::{_LEVELS[self.outcome]} title=skfair audit::{text}"


def is_memo(limit: Memo) -> bool:
    """Return whether this is the memo of a committee, or the file of one, and no condition."""
    return isinstance(limit, Mapping | os.PathLike) or str(limit).endswith(".json")


def read_conditions(limit: Memo) -> list[Condition]:
    """Read one condition, or a condition for each limit and metric of a decision memo."""
    if not is_memo(limit):
        return [read_condition(cast(str, limit))]
    name, parts = open_memo(limit)
    metric, limits, groups = parts["metric"], chosen_limits(name, parts), compared_groups(parts)
    chosen = {attribute: most for attribute, most in limits.items() if most is not None}
    conditions = []
    for name, attribute in product(metric.split(", "), chosen):
        most = chosen[attribute]  # for a ratio, it is the largest distance from 1
        condition = f"{name} < {1 - most!r}" if name.endswith("_ratio") else f"{name} > {most!r}"
        read = read_condition(f"{attribute}: {condition}".removeprefix(": "))
        conditions.append(read._replace(of_intersections=True, groups=groups))
    return conditions


def read_condition(text: str) -> Condition:
    """Read ``sex: demographic_parity_difference > 0.1``; the limit may be 0,1 or 10%."""
    match = _CONDITION.fullmatch(text) if isinstance(text, str) else None
    try:
        number = (match["limit"] if match else "nan").replace(",", ".")
        limit = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        limit = np.nan
    if match is None or not np.isfinite(limit):
        raise ValueError(
            "A condition must look like 'demographic_parity_difference > 0.1', or be the .json "
            f"file of a decision memo, got {text!r}."
        )
    _check_sense(match, limit)
    sign, inside = _SIGNS[match["sign"]], _WITHIN.fullmatch(match["view"] or "")
    view, within = (inside["view"], inside["within"]) if inside else (match["view"], "")
    own = text.strip(), view, _metric_of(match), sign, limit, view is not None
    return Condition(*own, within=within)


def _metric_of(match: re.Match[str]) -> str:
    """Return the metric of a condition; "f1 score difference" is "f1_score_difference"."""
    name, bracket, label = match["metric"].partition("[")
    return "_".join(name.split()) + bracket + label


def left_out_of(
    value: float | None,
    left_out: str,
    too_few: str,
    one_decision: str = "",
    is_own: bool = False,  # whether the metric is one of the user's own
) -> list[tuple[str, str]]:
    """Return the names of the groups that a gap does not compare, with the reason.

    The first arguments are columns of :attr:`Audit.gaps <skfair.report.Audit>`, of which two are
    names separated by commas, or empty. If no two groups can be compared, ``value`` is None or NaN,
    and ``one_decision`` is the reason if it is not empty.
    """
    is_defined = value is not None and bool(np.isfinite(value))
    if one_decision and not is_defined:
        return [("all groups", one_decision)]
    of_reasons = {_LEFT_OUT_OF_OWN if is_own else _LEFT_OUT: left_out, "too few people": too_few}
    named = [(names, reason) for reason, names in of_reasons.items() if names]
    if not named and not is_defined:
        return [("all groups", "no two of them have people to compare")]
    return named


def is_settled(is_within: bool | None, are_left_out: bool) -> bool | None:
    """Return whether a limit is kept: True, False, or None if that is open.

    ``is_within`` says it for the groups that could be compared, and ``are_left_out`` whether there
    are others. If there are, a limit that seems to be kept is open, because it is about them too. A
    limit that is exceeded stays exceeded.
    """
    return None if is_within and are_left_out else is_within


def _check_sense(match: re.Match[str], limit: float) -> None:
    """Raise for a condition that holds for all models, for none, or for the fair ones."""
    text, metric = match.string.strip(), _metric_of(match).partition("[")[0]
    if metric.endswith("_ratio") and limit > 1:
        start = match.start("sign")
        raise ValueError(
            f"{text!r} limits nothing: ratios divide the smaller rate by the larger one, so they "
            f"are at most 1. Write '{match.string[:start].strip()} < {1 / limit:.6g}', "
            f"which holds as well if a rate is more than {limit:g} times another."
        )
    if metric.endswith("_ratio") and match["limit"].endswith("%") and 0 < limit < _SMALL_RATIO:
        raise ValueError(
            f"{text!r} asks for a smallest ratio of {limit:g}, which hardly any model breaks. The "
            f"four-fifths rule is '{match.string[: match.start('sign')].strip()} < 0.8'."
        )
    spec = LABEL_METRICS.get(metric)
    if spec is not None and limit > spec.most:  # with the opposite sign it would limit nothing, too
        check_limit(limit, repr(text), spec.most)
    # For a metric of the user it is not known whether large values are bad. A name that does not
    # exist raises an error when the condition is checked.
    is_known = metric.endswith(("_difference", "_gap", "_ratio")) or metric in LABEL_METRICS
    if is_known and metric.endswith("_ratio") == match["sign"].startswith(">"):
        start, end = match.span("sign")
        other = match.string[:start] + _OPPOSITES[match["sign"]] + match.string[end:]
        raise ValueError(
            f"{text!r} fails the models that are fair. Write {other.strip()!r}: a condition names "
            "what must not hold."
        )
    if spec is not None:
        ratio = None
        if spec.kind == "difference":
            ratio = f"'{_metric_of(match).replace('_difference', '_ratio')} < {limit:g}'"
        check_limit(limit, repr(text), spec.most, ratio=ratio)


def check_conditions(
    gaps: Sequence[tuple[Condition, pd.DataFrame]],
    attributes: Sequence[str],
    n_rows: int,
    confidence: float,
    allow_undefined: bool = False,
    absent: Sequence[tuple[str, str]] = (),  # view and name of groups of a memo without rows now
    one_decision: str = "",  # what cannot be compared because every decision is the same
    scope: str = "",  # with control features, whether groups are compared within their levels
) -> Check:
    """Check conditions, and return the check of the worst view.

    Each condition comes with the rows of the table ``gaps`` of its metric, one for each view. A
    pass needs all views to pass, so each interval is used as it is. For a fail, one view is enough,
    so one of many would fail by chance: the intervals are widened to hold together (Bonferroni).
    """
    rows = pd.concat([own.assign(number=k) for k, (_, own) in enumerate(gaps)])
    level = 1 - confidence
    wider = float(stats.norm.isf(level / (2 * len(rows))) / stats.norm.isf(level / 2))
    is_defined = rows["value"].notna()
    compared: Iterable[Any] = (rows[is_defined] if is_defined.any() else rows).itertuples()
    decided = [_decided(row, gaps[row.number][0], n_rows, wider) for row in compared]
    order = {"fail": 0, "inconclusive": 1, "pass": 2}
    sign = 1 if rows["is_ratio"].all() else -1
    worst = min(decided, key=lambda row: (order[row.outcome], sign * (row.value - row.limit)))
    every: Iterable[Any] = rows.itertuples()
    parts = {
        f"{names} ({row.view}: {reason})": None
        for row in every
        for names, reason in left_out_of(
            row.value,
            row.left_out,
            row.too_few if row.view in attributes or gaps[row.number][0].of_intersections else "",
            "" if row.metric.startswith("mean_") else one_decision,
            not row.metric.startswith("mean_")
            and row.metric.partition("[")[0] not in LABEL_METRICS,
        )
    }
    parts |= {f"{name} ({view}: in the memo, but without rows now)": None for view, name in absent}
    # An inconclusive outcome is None here, and stays inconclusive.
    is_within = {"pass": True, "fail": False, "inconclusive": None}[worst.outcome]
    if parts and not allow_undefined and is_settled(is_within, True) is None:
        worst = worst._replace(outcome="inconclusive", n_rows_needed=None)
    undefined = ", ".join(parts)
    return worst._replace(undefined=undefined, allow_undefined=allow_undefined, scope=scope)


def _decided(row: Any, condition: Condition, n_rows: int, wider: float) -> Check:
    """Check a condition on one view, a row of the table ``gaps``.

    If the value is beyond the limit, the check may fail, and its interval is widened by the factor
    ``wider``.
    """
    value, limit = row.value, condition.limit
    times = wider if condition.holds(value, limit) else 1.0
    low, high = (value + times * (end - value) for end in (row.value_low, row.value_high))
    low, high = max(low, 0.0), min(high, 1.0) if row.is_ratio else high
    held = [condition.holds(end, limit) for end in (low, high)]
    is_known = bool(np.isfinite([low, high]).all())
    outcome: Outcome = "inconclusive"
    if is_known and all(held) == any(held):
        outcome = "fail" if all(held) else "pass"
    needed = None
    if is_known and outcome == "inconclusive":
        needed = _rows_needed(row, limit, n_rows, times)
    ends = value, low, high, limit
    return Check(condition.text, outcome, *ends, row.view, "", False, n_rows, needed)


def _rows_needed(row: Any, limit: float, n_rows: int, wider: float) -> int | None:
    """Return the number of rows with which the limit would lie at the end of the interval.

    The length of an interval is proportional to 1 / sqrt(n). If its end on the side of the limit is
    at a distance d from the value, and the limit is at a distance D, then (d / D)^2 times as many
    rows are needed. For ratios, distances are those of logarithms. The result is None if no number
    of rows decides it, or more than 1,000 times as many.
    """
    numbers = np.array([row.value, row.value_low, row.value_high, limit], np.float64)
    if row.is_ratio:
        if (numbers <= 0).any():
            return None
        numbers = np.log(numbers)
    value, low, high, at = numbers.tolist()
    end = low if value > at else high
    if value == at or end == value:
        return None
    times = (wider * (end - value) / (at - value)) ** 2
    # If it takes more than 1,000 times as many rows, the value is as good as at the limit.
    return int(np.ceil(times * n_rows)) if times <= 1000 else None
