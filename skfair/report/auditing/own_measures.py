"""Metrics of one's own in an audit: ``audit(metrics=[make_group_metric(f1_score)])``.

All measures of an audit are means over rows, whose sums are merged when cells become larger groups.
F scores, precision and recall of two classes are declared rates, which are such means. The area
under the curve of a group is none. So an :class:`OwnMeasure` keeps the rows beside the sums,
and when cells are merged it is measured anew and resampled for the groups. The result looks like a
mean of independent rows: :class:`~skfair.groups.rates.CellMeans` gets the value of the metric, and
as many rows as give it the standard error of the bootstrap. From there on, intervals, p-values,
strata and small groups are treated as those of all other measures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skfair._typing import BoolArray, IntArray
from skfair.groups.cohort import Cohort, kinds_of
from skfair.groups.cohort_rows import refuse_kinds
from skfair.groups.declared_rates import rate_named
from skfair.groups.rates import CellMeans
from skfair.groups.row_units import RowUnits
from skfair.groups.table import GroupTable
from skfair.metrics.own_draws import has_spread, resampled, value_or_nan
from skfair.metrics.own_metrics import (
    GroupMetric,
    OwnRows,
    takes_scores,
    with_positive,
)
from skfair.report.tables.gaps import Gap
from skfair.report.tables.options import Options
from skfair.report.tables.reading import PlacedRows
from skfair.report.tables.tasks import BEFORE, Task
from skfair.report.tables.views import is_joint
from skfair.utils.warn import hidden, warn_user

# Resamples of each group at most. The standard error then has an error of 5%. Twice as many take a
# minute for the areas under the curves of 3,000 rows in five views.
_MOST_RESAMPLES = 200
# A group has an interval if at most this share of its resamples has no value.
_MOST_UNDEFINED = 0.05


@dataclass(frozen=True, eq=False)
class OwnMeasure:
    """A metric of a single group, and the rows that it is measured from."""

    metric: Callable[..., float]
    rows: OwnRows
    cells: IntArray  # (n_rows,): the cell of each row
    units: RowUnits | None
    n_resamples: int
    known: dict[bytes, CellMeans] = field(default_factory=dict)  # what was measured before

    def only(self, is_kept: BoolArray) -> OwnMeasure:
        """Leave out the rows of cells that are not kept, and renumber the others."""
        own = np.flatnonzero(is_kept[self.cells])
        weights = None if self.rows.weights is None else self.rows.weights[own]
        columns = self.rows.y_true[own], self.rows.y_pred[own]
        return replace(
            self,
            rows=OwnRows(*columns, None, weights),
            cells=(np.cumsum(is_kept) - 1)[self.cells[own]],
            units=None if self.units is None else self.units.taken(own),
            known={},
        )

    def merged(self, codes: IntArray, n_cells: int) -> CellMeans:
        """Measure larger cells: cell ``i`` becomes part of ``codes[i]``."""
        key = codes.tobytes()
        if key not in self.known:
            self.known[key] = self._measured(codes[self.cells], n_cells)
        return self.known[key]

    def _measured(self, of_rows: IntArray, n_cells: int) -> CellMeans:
        """Measure groups, of which ``of_rows`` has the one of each row.

        A group without a value or an interval gets no rows, so that it counts as undefined.
        """
        groups = [np.flatnonzero(of_rows == group) for group in range(n_cells)]
        given = self.metric, self.rows, self.rows.y_pred
        values = np.array([value_or_nan(*given, own) for own in groups])
        rng = np.random.RandomState(0)
        draws = resampled(*given, groups, values, self.units, self.n_resamples, rng)
        with hidden(".*", RuntimeWarning):
            variances = np.nanvar(draws, axis=0)
        is_known = np.isfinite(values) & (np.isnan(draws).mean(axis=0) <= _MOST_UNDEFINED)
        is_known &= has_spread(draws)
        values = np.where(is_known, values, 0.0)
        inverse = np.where(is_known, 1 / np.where(is_known, variances, 1.0), 0.0)
        # The values of single rows have one variance in all groups, and there are as many rows in
        # all as there are people.
        people = self.cells.size if self.units is None else self.units.n_units
        n_rows = inverse * people / max(inverse.sum(), 1e-300)
        origin = float(np.average(values, weights=inverse)) if is_known.any() else 0.0
        spread = n_rows / np.where(is_known, inverse, 1.0) * (1 - 1 / np.maximum(n_rows, 1.5))
        x = np.where(is_known, values - origin, 0.0)
        moments = n_rows, n_rows * x, n_rows * (spread + x**2)  # of rows of weight 1
        return CellMeans(np.array([moments, moments]), False, origin)


def own_of(metrics: Any) -> list[GroupMetric]:
    """Return the metrics of one's own among those that an audit was asked for."""
    own = [] if isinstance(metrics, str) or not hasattr(metrics, "__iter__") else metrics
    return [metric for metric in own if isinstance(metric, GroupMetric)]


def with_own(
    table: GroupTable,
    metrics: list[GroupMetric],
    people: Cohort,
    placed: PlacedRows | None,  # the rows of the table; None if they were not read in memory
    task: Task,
    options: Options,
) -> tuple[GroupTable, Options]:
    """Add metrics of one's own to the table of an audit, and their gaps to its options."""
    if placed is None:
        refuse_kinds(people)
        raise TypeError(
            f"{metrics[0]!r} reads single rows, and these are in Dask collections. compute() them."
        )
    rows, _, cells = placed
    measures, counts, kinds = dict(table.measures), table.people, kinds_of(people)
    n_resamples = min(options.n_simulations, _MOST_RESAMPLES)
    for metric in metrics:
        _check(metric, table.measures, task)
        if any(own.measure == metric.measure and own.metric != metric.metric for own in metrics):
            raise ValueError(
                f"Two metrics are called {metric.measure!r}. Define one of them with def, under a "
                "name of its own."
            )
        of_scores = takes_scores(metric.metric)
        columns: dict[str, Any] = {"": rows.score if of_scores else rows.predicted}
        columns |= {} if of_scores or rows.before is None else {BEFORE: rows.before}
        if rows.true is None or columns[""] is None:
            raise ValueError(
                f"{metric!r} needs y_true and {'y_score' if of_scores else 'y_pred'}. Pass both, "
                "or leave the metric out."
            )
        # Codes have 1 for the positive class. Labels are those of the user if there are several
        # classes, or if the metric names one.
        names_class = "pos_label" in getattr(metric.metric, "keywords", {})
        is_coded = task.kind != "classes" and not names_class
        true = np.asarray(rows.true if is_coded else people.y_true)
        beside = None if of_scores else rows.predicted if is_coded else people.y_pred
        positive = 1 if task.kind == "binary" else None
        called = with_positive(metric.metric, positive, true, beside)
        for prefix, predicted in columns.items():
            labels = people.before if prefix else people.y_pred
            is_own = is_coded or of_scores or labels is None
            other = predicted if is_own else labels
            own_rows = OwnRows(true, np.asarray(other), None, rows.weights)
            if metric.rate and task.kind == "binary" and is_coded:
                outcomes = 2 * rows.true + predicted
                of_rows: Any = cells, counts.size, rows.weights, rows.units
                rate = rate_named(metric.rate)
                squares = None if kinds is None else kinds.squares
                own_means = CellMeans.of_outcomes(rate, outcomes, *of_rows, squares=squares)
                measures[prefix + metric.measure] = own_means
                continue
            if kinds is not None:
                raise TypeError(
                    f"{metric!r} reads single rows, and the table was counted in its engine. Pass "
                    "the rows, as in Cohort(...)."
                )
            own = OwnMeasure(called, own_rows, cells, rows.units, n_resamples)
            sums = np.array([counts, 0 * counts, 0 * counts])
            measures[prefix + metric.measure] = CellMeans(np.array([sums, sums]), False, own=own)
    gaps = [Gap(own.__name__, own.compare, (own.measure,)) for own in metrics]
    return replace(table, measures=measures), options._replace(own_gaps=tuple(gaps))


def warn_of_unknown(gaps: Any, metrics: list[GroupMetric]) -> None:
    """Warn of metrics of one's own that have groups without an interval."""
    for metric in metrics:
        own = gaps[(gaps["metric"] == metric.__name__) & (gaps["left_out"] != "")]
        if len(own):
            first = own.iloc[0]
            warn_user(
                f"No interval is known of {metric!r} for {first['left_out']} ({first['view']}): it "
                "has no value there, or the same one in all resamples. A check of it does not pass."
            )


def _check(metric: GroupMetric, measures: dict[str, CellMeans], task: Task) -> None:
    """Raise unless a metric can have a place in the tables of an audit."""
    name = metric.measure
    if metric.is_extreme:
        raise ValueError(
            f"{metric!r} compares no groups, as the gaps of an audit do. Pass compare='difference' "
            "or 'ratio'; the table rates then has the value of each group."
        )
    if name in measures or any(gap.name == metric.__name__ for gap in task.known_gaps()):
        raise ValueError(
            f"This audit has a measure {name!r} already. Pass its name, or rename your function."
        )
    if task.classes and not is_joint(name):  # would be shown of a group with few of a class
        raise ValueError(
            f"{name!r} begins like a measure that joins no decisions and outcomes. Rename the "
            "function."
        )
    if not name.isidentifier() or name.lower() != name:
        raise ValueError(
            f"The function of {metric!r} needs a name of small letters, digits and underscores, by "
            "which the report can call it. Define it with def."
        )
