"""The tables of an audit, from sums over cells: by attribute, and for all attributes crossed.

A :class:`View` is what one part of a report is about: the groups of one attribute, or of all
attributes crossed. ``audit_table`` calls the functions of this file in the order in which they
stand:

1. :func:`views_of` lists the views (called by ``Shown``, which hides small groups),
2. :func:`rates_table` makes the table ``rates``,
3. :func:`find_gaps` makes ``gaps`` and ``within``, and the p-values that the others need,
4. :func:`signed_table` makes ``signed``, the differences from a reference group,
5. :func:`score_report` makes ``calibration``, and the rates of scores.

Audits of data sets and the page of a committee use some of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.compared_rates import pairs_between
from skfair.groups.declared_rates import RATES
from skfair.groups.levels import number_tuples
from skfair.groups.rates import CellMeans
from skfair.groups.reference import read_reference
from skfair.groups.table import GroupTable
from skfair.metrics.intervals import difference_interval
from skfair.report.tables.gaps import Compared, Gap, Simulated, compare_gaps
from skfair.report.tables.options import Options
from skfair.report.tables.scores import ScoreTables, sums_of_groups
from skfair.report.tables.tasks import BEFORE, Task
from skfair.report.words import rule_of
from skfair.utils.rounding import ROUNDING
from skfair.utils.warn import warn_user

# A crossing with more groups than this is not listed. The search of subgroups covers it.
MOST_CROSSED = 100
# By view, measure and pair of groups: the p-value of the difference, and the difference above which
# it is significant
Chances = Mapping[tuple[str, str, frozenset[str]], tuple[float, float]]
# Among fewer rejected people nobody may have a positive outcome by chance
_MANY_REJECTED = 100
# Measures whose names begin like this count all rows, and do not join decisions with outcomes.
_PLAIN = "base_", "selection_", "share_", "mean_", "moved_", "changed", "error_", "missing["


def is_joint(measure: str) -> bool:
    """Whether a measure joins decisions and outcomes, such as the true positive rate.

    If a group has few people of a class, such a measure says something about single people, and is
    hidden.
    """
    return measure == "mean_label" or not measure.removeprefix(BEFORE).startswith(_PLAIN)


def masked(measures: Mapping[str, CellMeans], is_closed: Any) -> dict[str, CellMeans]:
    """Return the measures, of which joint ones are undefined in closed cells.

    ``is_closed`` is True or False for all cells, or has a value for each.
    """
    return {
        name: own._replace(sums=own.sums * np.logical_not(is_closed), own=None)
        if is_joint(name)
        else own
        for name, own in measures.items()
    }


def without_outcomes(sample: GroupTable) -> GroupTable:
    """Return the sample, of which rates by outcome are undefined if there is one decision only."""
    fixed = {name for name in fixed_measures(sample) if is_joint(name)}
    return replace(sample, measures=_undefined(sample.measures, fixed))


def _undefined(measures: dict[str, CellMeans], names: Collection[str]) -> dict[str, CellMeans]:
    """Return the measures, of which some are undefined in all cells."""
    return {
        name: own._replace(sums=0.0 * own.sums, unit_sums=None) if name in names else own
        for name, own in measures.items()
    }


def fixed_measures(sample: GroupTable) -> set[str]:
    """Return the measures that are 0 or 1 in every group because all decisions are the same.

    These are shares of decisions, and rates by outcome, of the model now and of the earlier one.
    """
    fixed: set[str] = set()
    shares = "selection_rate", "share_predicted["
    by_outcome = *(name for name, own in RATES.items() if own.needs_both_decisions), "recall["
    for prefix in ("", BEFORE):
        own = [name for name in sample.measures if name.startswith(prefix)]
        own = [name for name in own if prefix or not name.startswith(BEFORE)]
        plain = {name: name.removeprefix(prefix) for name in own}
        decisions = [name for name in own if plain[name].startswith(shares)]
        if {float(sample.measures[name].whole().means[0]) for name in decisions} <= {0.0, 1.0}:
            fixed.update(name for name in own if plain[name].startswith((*shares, *by_outcome)))
    return fixed


def warn_of_filled(sample: GroupTable) -> None:
    """Warn if nobody who was not selected has a positive outcome, but some who were have none.

    A model that misses nobody and selects too many is rare. Outcomes of the rejected that were not
    known and filled in are more frequent.
    """
    missed, hits = map(sample.measures.get, ("false_omission_rate", "positive_predictive_value"))
    if missed is None or hits is None:
        return
    others = missed.whole()
    rejected = int(np.nan_to_num(others.n_effective[0]))
    if rejected >= _MANY_REJECTED and others.means[0] == 0 and hits.whole().means[0] < 1:
        warn_user(
            f"None of the {rejected:,} rows that were not selected has a positive outcome. If "
            "their outcomes are not known and were filled in, true positive rates are 1 whatever "
            "was decided. Leave such outcomes missing: the audit then says what can be said "
            "(selective labels)."
        )


class View(NamedTuple):
    """Groups by one attribute, or by several crossed."""

    name: str  # the attribute, "sex x age" for a crossing, or "" for all rows as one group
    attributes: list[str]
    names: list[str]  # (n_groups,)
    codes: IntArray  # (n_cells,): the group of each cell of the sample
    n_rows: FloatArray  # (n_groups,)
    # (n_groups,): "" if a group is compared, else the reason: "unknown", "small" or "hidden"
    apart: Any
    reference: int | None  # index of the reference group; None without one
    measures: dict[str, CellMeans]  # measures of the groups by name
    closed: frozenset[str] = frozenset()  # names of groups whose joint measures are hidden
    # (n_groups,): number of units, if there are units. A unit may be in several groups.
    n_units: Any = None
    too_few: tuple[str, ...] = ()  # names of groups with too few people to be compared or shown

    def masked(self, is_closed: BoolArray) -> View:
        """Return the view without the joint measures of some groups, see :func:`is_joint`."""
        closed = frozenset(compress(self.names, is_closed))
        return self._replace(measures=masked(self.measures, is_closed), closed=closed)

    def rates(self, measure: str, value: Any, low: Any, high: Any) -> pd.DataFrame:
        """Return the rows of the table ``rates`` for one measure, with the ends of its interval."""
        columns = {"view": self.name, "group": self.names, "n": self.n_rows, "measure": measure}
        ends = {"value": value, "value_low": low, "value_high": high, "apart": self.apart}
        of_units = {} if self.n_units is None else {"n_units": self.n_units}
        return pd.DataFrame({**columns, **ends, **of_units})


def views_of(sample: GroupTable, options: Options) -> list[View]:
    """Return a view for each attribute, and then their crossing unless it has too many groups.

    This says which groups are unknown or too small to be compared. ``Shown`` marks the hidden ones.
    """
    reference = read_reference(
        options.reference, {name: sample.levels[name] for name in sample.attributes}
    )
    share = 0.0 if options.preset is None else rule_of(options.preset).least_share
    parts = [sample.codes[:, place] for place in range(len(sample.attributes))]
    sizes = np.array([len(sample.levels[name]) for name in sample.attributes])
    # Most of the time, the first cells show that there are too many groups.
    is_long = any(
        len(number_tuples([part[:first] for part in parts], sizes)[1]) > MOST_CROSSED
        for first in (10 * MOST_CROSSED, None)
    )
    crossed = [sample.attributes] if len(parts) > 1 and not is_long else []
    views = []
    for attributes in [*([name] for name in sample.attributes), *crossed]:
        table = sample.compared(attributes)
        cells, n_rows = table.groups.cells, table.counts
        codes, is_unknown = cells.codes[0], np.zeros(n_rows.size, bool)
        for name in attributes:
            is_unknown[codes[_has_level(sample, name, options.unknown)]] = True
        n_units = None if table.units is None else table.units.n_lying(n_rows.size)
        people = n_rows if n_units is None else n_units
        is_small = people < max(options.min_group_size, share * people[~is_unknown].sum())
        apart = np.where(is_unknown, "unknown", np.where(is_small, "small", "")).astype(object)
        place = None
        if set(attributes) <= set(reference):
            own = [_has_level(sample, name, {reference[name]}) for name in attributes]
            place = next(iter(codes[np.all(own, axis=0)].tolist()), None)
        name, names = " x ".join(attributes), list(cells.names)
        of_groups = codes, n_rows, apart, place, table.measures
        views.append(View(name, attributes, names, *of_groups, n_units=n_units))
    return views


def _has_level(sample: GroupTable, name: str, levels: Collection[str]) -> BoolArray:
    """Return which cells have one of some levels of an attribute."""
    has_level = np.array([str(level) in levels for level in sample.levels[name]], bool)
    return has_level[sample.codes[:, list(sample.levels).index(name)]]


def whole_view(sample: GroupTable) -> View:
    """Return all rows as one group, named "all", in the view with the empty name."""
    codes, n_rows = np.zeros_like(sample.counts, np.int64), sample.counts.sum(keepdims=True)
    whole, units = sample.merged(codes, 1)
    if units is None:
        whole = {measure: cells.whole() for measure, cells in sample.measures.items()}
    n_units = None if units is None else units.n_lying(1)[0]
    return View("", [], ["all"], codes, n_rows, "", None, whole, n_units=n_units)


def rates_table(sample: GroupTable, views: list[View], confidence: float) -> pd.DataFrame:
    """Return the table ``rates``: every measure of all rows and of every group."""
    tables = [
        view.rates(measure, of_groups.means, *of_groups.interval(confidence))
        for view in (whole_view(sample), *views)
        for measure, of_groups in view.measures.items()
    ]
    return pd.concat(tables, ignore_index=True)


def find_gaps(
    sample: GroupTable,
    views: list[View],
    gaps: list[Gap],
    options: Options,
    others: list[Simulated],  # the subgroups, with which p-values are corrected together
) -> tuple[pd.DataFrame, pd.DataFrame, FloatArray, Chances]:
    """Measure, simulate and judge every gap of every view, of both models, and within strata.

    Returns four things:

    - the table ``gaps``,
    - the table ``within``: the average difference of each pair of groups within strata,
    - the rarity of the most extreme comparison of each simulation in the audit, in increasing
      order, by which subgroups are judged,
    - the chances of each pair of groups.
    """
    compared = list(_compared(sample, views, gaps, options))
    simulated = [of_gap.simulated for _, of_gap in compared]
    simulated += [own.averaged.simulated for _, own in compared if own.averaged is not None]
    rarest = _rarest([*simulated, *others])
    # With one attribute, the subgroups are the groups once more, so the gaps do not count them.
    own = rarest if len(sample.attributes) > 1 else _rarest(simulated)
    records: list[dict[str, Any]] = []
    chances: dict[tuple[str, str, frozenset[str]], tuple[float, float]] = {}
    for where, of_gap in compared:
        gap = of_gap.gap
        record, of_pairs = of_gap.judge(own, 1 - options.confidence)
        records.append({**where, "metric": gap.name, "is_ratio": gap.is_ratio, **record})
        is_plain = where["model"] == "now" and not where["is_conditional"]
        if is_plain and gap.kind == "difference" and len(gap.measures) == 1:
            name = gap.measures[0]
            chances |= {(where["view"], name, pair): own_p for pair, own_p in of_pairs.items()}
    n_strata = len(sample.strata(sample.within).names) if sample.within else 0
    within = [
        _within_strata(where["view"], of_gap, n_strata, chances, own, 1 - options.confidence)
        for where, of_gap in compared
        if of_gap.averaged is not None and where["model"] == "now"
    ]
    table = pd.concat(within, ignore_index=True) if within else pd.DataFrame()
    return pd.DataFrame(records), table, rarest, chances


def _within_strata(
    view: str, of_gap: Compared, n_strata: int, chances: Chances, rarest: FloatArray, level: float
) -> pd.DataFrame:
    """Return the rows of the table ``within`` for one view and measure, one for each pair.

    ``of_gap`` is the gap within strata. The p-value over all rows comes from ``chances``, and is
    NaN if the groups are not compared over all rows.
    """
    averaged, (measure,) = of_gap.averaged, of_gap.gap.measures
    assert averaged is not None
    p_values, *_ = averaged.simulated.by_chance(rarest, level)
    is_clear = of_gap.simulated.by_chance(rarest, level)[0] <= level + ROUNDING
    sides = {"higher": averaged.within > ROUNDING, "lower": averaged.within < -ROUNDING}

    def counted(is_inside: BoolArray) -> IntArray:
        return np.bincount(averaged.of_pair, is_inside, len(p_values)).astype(np.int64)

    n_levels = counted(np.isfinite(averaged.within))
    first, second = (np.array(of_gap.groups, object)[side] for side in averaged.groups)
    pairs = map(frozenset, zip(first, second, strict=True))
    overall = [chances.get((view, measure, pair), (np.nan, np.nan))[0] for pair in pairs]
    columns = {
        "view": view,
        "measure": measure,
        "group": second,
        "other": first,
        "difference": averaged.values,
        "p_value": p_values,
        "is_beyond_chance": p_values <= level + ROUNDING,
        "overall_p_value": overall,
        "n_strata": n_levels,
        "n_not_compared": n_strata - n_levels,
        **{f"n_{name}": counted(is_inside) for name, is_inside in sides.items()},
        **{f"n_clear_{name}": counted(is_inside & is_clear) for name, is_inside in sides.items()},
    }
    return pd.DataFrame(columns)[n_levels > 0]


def _rarest(simulated: list[Simulated]) -> FloatArray:
    """Return the rarity of the most extreme comparison of each simulation, in increasing order.

    A rarity puts deviations of different gaps on one scale, and is small for an extreme deviation
    (see ``gaps.Simulated``).
    """
    return (
        np.sort(np.min([own.rarities for own in simulated], axis=0)) if simulated else np.empty(0)
    )


def _compared(
    sample: GroupTable, views: list[View], gaps: list[Gap], options: Options
) -> Iterable[tuple[dict[str, Any], Compared]]:
    """Yield every gap, and the columns of ``gaps`` that say where it is.

    These are the view, the model ("now" or "before"), whether the gap is within strata, and the
    groups with too few people for it. A view without two groups to compare has no gaps.
    """
    fixed = fixed_measures(sample)
    for view in views:
        is_kept = view.apart == ""
        if is_kept.sum() < 2:
            continue
        cells = sample.only(is_kept[view.codes])
        for is_conditional in [False, True] if sample.within else [False]:
            table = cells.compared(view.attributes, sample.within if is_conditional else ())
            names = np.array(table.groups.groups.names, object)[table.groups.group_of]
            is_closed = np.isin(names, [*view.closed])
            measures = _undefined(masked(table.measures, is_closed), fixed)
            table = replace(table, measures=measures)
            too_few = [*view.too_few]
            if is_conditional:
                table = _of_large(table, options)
                groups = table.groups
                if not groups.is_present.any():
                    continue
                levels = np.array(groups.strata, object)[groups.stratum_of[~groups.is_present]]
                too_few += [f"level {level}" for level in dict.fromkeys(levels)]
            for model, prefix in (("now", ""), ("before", BEFORE)):
                measures = {
                    name.removeprefix(prefix): of_groups
                    for name, of_groups in table.measures.items()
                    if name.startswith(prefix)
                }
                known = [gap for gap in gaps if set(gap.measures) <= set(measures)]
                where = {"view": view.name, "model": model, "is_conditional": is_conditional}
                where["too_few"] = ", ".join(too_few)
                is_asked = _is_with_reference(view, names, table.groups.pairs, options)
                for compared in compare_gaps(known, measures, table.groups, options, is_asked):
                    yield where, compared


def _is_with_reference(
    view: View,
    names: Any,  # (n_cells,): the name of the group of each cell
    pairs: tuple[IntArray, IntArray],
    options: Options,
) -> BoolArray:
    """Return which pairs have the reference group; all if there is none to compare with.

    Rules of law but "ecoa" compare with the most selected group, whatever the reference.
    """
    every = np.ones(pairs[0].size, bool)
    if view.reference is None or options.preset not in (None, "ecoa"):
        return every
    is_reference = names == view.names[view.reference]
    found = is_reference[pairs[0]] | is_reference[pairs[1]]
    return np.asarray(found if found.any() else every)


def _of_large(table: GroupTable, options: Options) -> GroupTable:
    """Leave out cells (groups in a stratum) that are too small, and cells that are alone then.

    A measure of a cell also needs ``suppress_below`` rows that count for it, such as people of the
    positive class for the true positive rate.
    """
    groups, least = table.groups, options.suppress_below
    is_large = table.counts >= max(options.min_group_size, least)
    is_large &= (np.bincount(groups.stratum_of, is_large) >= 2)[groups.stratum_of]
    measures = {
        name: own._replace(sums=own.sums * (is_large & (own.n_effective >= least)))
        for name, own in table.measures.items()
    }
    return replace(table, measures=measures, peers=replace(groups, is_present=is_large))


def signed_table(views: list[View], options: Options, chances: Chances) -> pd.DataFrame:
    """Return the table ``signed``: each group minus the reference group, by each measure.

    It is empty without a reference group. An interval is that of a single difference. P-values are
    corrected for all pairs of the audit, so that no verdict contradicts the verdict of a gap.
    """
    tables = []
    for view in views:
        place = view.reference
        if place is None or view.apart[place]:
            continue
        is_other = (view.apart == "") & (np.arange(len(view.names)) != place)
        for measure, of_groups in view.measures.items():
            if measure.startswith(BEFORE):
                continue
            values, groups = of_groups.means, np.arange(of_groups.weight.size)
            sides = groups, np.full_like(groups, place)
            if of_groups.is_share and of_groups.own is None:
                pairs = pairs_between(of_groups, np.array(view.names, object), measure, *sides)
                low, high = pairs.ends("melded", False, 0.5 - options.confidence / 2)
            else:
                ends, correlation = of_groups.interval(options.confidence), of_groups.correlations
                low, high = difference_interval(values, *ends, place, correlation(*sides))
            is_known = np.isfinite(values) & np.isfinite(values[place])
            columns = {
                "view": view.name,
                "group": view.names,
                "reference": view.names[place],
                "value": values,
                "reference_value": values[place],
                "difference": values - values[place],
                "difference_low": np.where(is_known, low, np.nan),
                "difference_high": np.where(is_known, high, np.nan),
                "measure": measure,
            }
            tables.append(pd.DataFrame(columns)[is_other])
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True)
    both = map(frozenset, zip(table["group"], table["reference"], strict=True))
    keys = zip(table["view"], table["measure"], both, strict=True)
    by_chance = [chances.get(key, (np.nan, np.nan)) for key in keys]
    own: pd.DataFrame = table.assign(p_value=np.reshape(by_chance, (-1, 2))[:, 0])
    return own


def score_report(
    sample: GroupTable, views: list[View], task: Task, options: Options
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the table ``calibration``, and the rates of scores, such as areas under the curve.

    Both are empty without scores or true labels. For predicted numbers, there is no area.
    """
    if sample.scores is None:
        return pd.DataFrame(), []
    calibration, rates = [], []
    is_share, edges = bool(task.classes), np.array([*sample.scores.levels.values()][-1])
    measure = "mean_score" if "mean_score" in sample.measures else "mean_prediction"
    for view in views:
        weight, squares = view.measures[measure].sums[:2, 0]
        # The effective number of rows per unit of weight: by Kish's formula, weight^2 / squares,
        # over the weight.
        per_weight = weight / np.where(squares > 0, squares, 1.0)
        if view.n_units is not None:
            per_weight = view.measures[measure].n_effective / np.where(weight > 0, weight, 1.0)
        sums = sums_of_groups(sample.scores, view.attributes)
        tables = ScoreTables(edges, sums, is_share, per_weight)
        bins = tables.calibration(view.names, options.confidence, options.suppress_below)
        calibration.append(bins.assign(view=view.name))
        if is_share:
            is_closed = np.isin(view.names, [*view.closed])
            aucs = (np.where(is_closed, np.nan, own) for own in tables.aucs(options.confidence))
            rates.append(view.rates("auc", *aucs))
        if not is_share or (edges[0], edges[-1]) == (0.0, 1.0):
            errors = tables.calibration_errors()
            rates.append(view.rates("calibration_error", errors, np.nan, np.nan))
    return pd.concat(calibration, ignore_index=True), rates
