"""Who the rows of a metric are: groups, strata, weights and units, read once at each public call.

A :class:`MeasuredRows` has the value of each row that is measured (its outcome, or its score), and
its groups, stratum, weight and unit. Metrics, tests, reports and displays read their arguments only
here, so that all code with a cohort sees rows of one kind:

- Dask collections, and long arrays of few labels, become few rows with weights.
- Rows whose groups are known by probability are repeated for each group that they may belong to.
- Other rows in memory are unchanged.

Metrics of labels call :meth:`MeasuredRows.of_labels`, metrics of scores
:meth:`MeasuredRows.of_scores`, and others :meth:`MeasuredRows.read`, which the first two also call.
Metrics of labels then ask for :meth:`MeasuredRows.table`. The others read ``values``, ``weights``
and ``groups`` themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skfair._typing import ClassLabel, FloatArray, IntArray
from skfair.groups.attributes import CONTROL, check_aligned, check_alignment, take_rows
from skfair.groups.compared_groups import ComparedGroups
from skfair.groups.counted_arrays import counted_rows
from skfair.groups.distinct_rows import WeightedRows
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.engine_tables import Kinds
from skfair.groups.labels import check_positive, warn_of_opposite
from skfair.groups.outcomes import Counted, outcomes_of, right_or_wrong
from skfair.groups.probabilities import GroupProbabilities, check_length, whole_numbers
from skfair.groups.row_units import RowUnits, read_units, warn_of_few
from skfair.groups.strata import Strata, read_strata
from skfair.groups.table import GroupTable
from skfair.groups.weighted_rows import LazyRows
from skfair.utils.dask_collections import is_lazy
from skfair.utils.text import listed
from skfair.utils.validation import check_scores, check_weights

# Labels and scores by the name of the argument.
Columns: TypeAlias = Mapping[str, Any]
# The method of LazyRows that reduces Dask collections to few weighted rows.
Summary: TypeAlias = Callable[[LazyRows], WeightedRows]


# Functions that read single rows raise this for a cohort that was counted in an engine.
SINGLE_ROWS = (
    "Single rows are measured here, and the table was counted in its engine. Pass the rows, as in "
    "Cohort(...)."
)


class _Given(NamedTuple):
    """The arguments of a metric, for the rows as passed or for few rows that replace them."""

    columns: Columns
    who: tuple[Any, Any, Any]  # sensitive features, control features and weights
    units: Any
    # If few rows stand for many, the number of rows that each stands for, and the sum of their
    # squared weights; else None
    counts: IntArray | None = None
    squares: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """Rows, what is measured of each, and who each is.

    Examples
    --------
    >>> from skfair.groups.measured_rows import MeasuredRows
    >>> rows = MeasuredRows.of_labels([1, 1, 0, 1], [0, 1, 1, 1], ["f", "f", "m", "m"])
    >>> rows.table().compare("difference", ("selection_rate",))
    0.5
    >>> first, last = rows.take([0, 1]), rows.take([2, 3])
    >>> added = first.table().weights + last.table().weights
    >>> bool((added == rows.table().weights).all())
    True
    """

    values: NDArray[Any]  # (n_rows,): the outcome of each row, or its score
    groups: ComparedGroups  # the cell of each row, and which cells are compared
    weights: FloatArray | None = None  # (n_rows,); None if each row counts once
    units: RowUnits | None = None  # the unit of each row; None if no two rows share one
    # If few rows stand for many, the number of rows that each stands for, and the sum of their
    # squared weights; else None
    counts: IntArray | None = None
    squares: FloatArray | None = None
    columns: Columns = field(default_factory=dict)  # the labels and scores of these rows, as given

    @classmethod
    def read(
        cls,
        # Computes the checked values from the columns, after few rows may have replaced many. It is
        # called before the groups are read, which must then have as many rows
        values_of: Callable[[Columns], NDArray[Any]],
        columns: Columns,
        sensitive_features: Any,
        control_features: Any = None,
        sample_weight: Any = None,
        intersectional: bool = True,
        *,
        units: Any = None,
        # Names of the columns that are read from Dask collections, as labels or as numbers. Other
        # columns are None then; in memory, they are only checked to be of the same rows
        labels: Sequence[str] = (),
        numbers: Sequence[str] = (),
        summary: Summary = LazyRows.kinds,  # ignored for rows in memory
        # Whether rows are read unchanged. Then few rows never replace many, and probabilities of
        # groups raise
        each_row: bool = False,
        is_counted: bool = True,  # whether few rows may stand for long arrays of labels
        kinds: Kinds | None = None,  # given if the rows are kinds of a table in an engine
    ) -> Self:
        """Read rows of any kind, or the few weighted rows that replace them."""
        who = sensitive_features, control_features, sample_weight
        given = _Given(columns, who, units)
        if kinds is not None:
            if each_row:
                raise TypeError(SINGLE_ROWS)
            given = _of_kinds(given, kinds, intersectional)
        elif each_row:
            pass  # the rows are not changed
        elif isinstance(sensitive_features, GroupProbabilities):
            given = _spread(given)
        elif is_lazy(*(columns[name] for name in (*labels, *numbers)), *who):
            given = _summed(given, labels, numbers, summary, intersectional)
        elif is_counted and not numbers and units is None and who[1] is None and who[2] is None:
            given = _counted(given, labels)
        return cls._of(values_of(given.columns), given, intersectional)

    @classmethod
    def _of(cls, values: NDArray[Any], given: _Given, intersectional: bool = True) -> Self:
        """Read the groups, strata, weights and units of rows that ``read`` has prepared."""
        n_rows, (sensitive_features, control_features, sample_weight) = values.size, given.who
        beside = {name: own for name, own in given.columns.items() if name != "y_true"}
        for predictions in beside.values():
            check_aligned(
                y=given.columns.get("y_true"),
                predictions=predictions,
                sample_weight=sample_weight,
                sensitive_features=sensitive_features,
                control_features=control_features,
                units=given.units,
            )
        units = None if given.units is None else read_units(given.units, n_rows)
        warn_of_few(units, n_rows)
        weights = None if sample_weight is None else check_weights(sample_weight, n_rows)
        groups = sensitive_features
        if not isinstance(groups, ComparedGroups):  # some callers have read the groups already
            encoding = encode_groups(groups, n_samples=n_rows, intersectional=intersectional)
            strata = None
            if control_features is not None:
                strata = read_strata(control_features, n_samples=n_rows)
            groups = ComparedGroups.of(encoding, strata, weights, given.counts)
        return cls(values, groups, weights, units, given.counts, given.squares, given.columns)

    @classmethod
    def of_labels(
        cls,
        y_true: Any,
        y_pred: Any,
        sensitive_features: Any,
        control_features: Any = None,
        sample_weight: Any = None,
        intersectional: bool = True,
        *,
        counted: Counted = "classes",  # the labels that make the outcome, see outcomes.py
        pos_label: ClassLabel = None,
        y_score: Any = None,
        **options: Any,  # further arguments of ``read``
    ) -> Self:
        """Read labels; the values are outcomes 0 to 3, which ``table`` counts."""
        ignores_true = counted == "predictions"
        if y_true is None and not ignores_true:
            raise ValueError("The metric needs y_true, got None. Pass one value per row.")

        def values_of(own: Columns) -> IntArray:
            true, predicted = own["y_true"], own["y_pred"]
            if counted == "equal":
                return right_or_wrong(true, predicted, are_numbers=True)
            if counted == "correct":
                return right_or_wrong(true, predicted, pos_label)
            outcomes = outcomes_of(None if ignores_true else true, predicted, pos_label)
            if own.get("y_score") is not None:
                scores = check_scores(own["y_score"], "y_score", outcomes.size)
                warn_of_opposite(outcomes % 2, scores)
            return outcomes

        columns = {"y_true": y_true, "y_pred": y_pred}
        if y_score is not None:
            columns["y_score"] = y_score
        labels = ("y_pred",) if ignores_true else ("y_true", "y_pred")
        who = sensitive_features, control_features, sample_weight, intersectional
        return cls.read(values_of, columns, *who, labels=labels, **options)

    @classmethod
    def of_scores(
        cls,
        y_score: Any,
        y_true: Any,
        sensitive_features: Any,
        control_features: Any = None,
        sample_weight: Any = None,
        intersectional: bool = True,
        *,
        name: str = "y_score",  # the name of the scores in errors
        threshold: Any = None,  # if it is a number and scores are put into bins, a bin ends here
        **options: Any,  # further arguments of ``read``
    ) -> Self:
        """Read scores, which are the values; without strata, each group must have weight."""

        def values_of(own: Columns) -> FloatArray:
            return check_scores(own["y_score"], name)

        def binned(rows: LazyRows) -> WeightedRows:
            is_number = isinstance(threshold, Real) and not isinstance(threshold, bool)
            return rows.binned("y_score", [float(threshold)] if is_number else [])

        columns = {"y_true": y_true, "y_score": y_score}
        who = sensitive_features, control_features, sample_weight, intersectional
        options = {"numbers": ("y_score",), "summary": binned, **options}
        return cls.read(values_of, columns, *who, **options).with_weight_in_groups()

    def with_weight_in_groups(self) -> Self:
        """Return the cohort; raise for a group without weight, unless there are strata."""
        if self.weights is not None and self.groups.strata is None:
            self.groups.cells.check_nonempty(sample_weight=self.weights)
        return self

    def with_scores(self, scores: Any) -> Self:
        """Return the rows with these scores as their values."""
        scores = check_scores(scores, "y_score", self.values.size)
        return replace(self.with_weight_in_groups(), values=scores)

    def positive(self, pos_label: ClassLabel) -> IntArray:
        """Return which rows are of the positive class."""
        return check_positive(self.columns["y_true"], "y_true", pos_label, self.values.size)

    def in_one(self) -> Self:
        """Return the rows with all groups merged into one, within each stratum if there are any."""
        groups, strata = self.groups, None
        if groups.strata is not None:
            strata = Strata(groups.stratum_of[groups.cells.codes[0]], groups.strata)
        everybody = one_group(self.values.size)
        return replace(self, groups=ComparedGroups.of(everybody, strata, self.weights, self.counts))

    def take(self, rows: IntArray | Sequence[int]) -> Self:
        """Return some rows. Cells keep their numbers, so the tables of parts add up.

        A cell without any of these rows stays, with the count 0.
        """
        rows, cells = np.asarray(rows), self.groups.cells
        people = None if cells.people is None else cells.people[rows]
        counts = None if self.counts is None else self.counts[rows]
        left = GroupEncoding.of(cells.codes_if_known[:, rows], cells.levels)
        n_people = people if counts is None else counts  # people that a row stands for
        if n_people is not None:
            by_attribute = [np.bincount(own, n_people, cells.n_groups) for own in left.codes]
            sizes = np.sum(by_attribute, axis=0)
            left = replace(left, counts=whole_numbers(sizes), people=people)
        columns = {
            name: own if own is None else take_rows(own, rows) for name, own in self.columns.items()
        }
        return replace(
            self,
            values=self.values[rows],
            groups=replace(self.groups, cells=left),
            weights=None if self.weights is None else self.weights[rows],
            units=None if self.units is None else self.units.taken(rows),
            counts=counts,
            squares=None if self.squares is None else self.squares[rows],
            columns=columns,
        )

    def table(self, *, squares: bool = True) -> GroupTable:
        """Return the table of the outcomes of each cell; the values must be outcomes.

        If rows have weights, their squares are added up, too, unless ``squares`` is False: metrics
        do not need them, but intervals do. If rows have units, the table has "products", see
        :class:`~skfair.groups.table.GroupTable`.
        """
        cells, outcomes, weights = self.groups.cells, self.values, self.weights
        people = cells.people
        by_outcome = {"weights": people if weights is None else weights}
        if weights is not None and squares:
            squared = weights**2 if self.squares is None else self.squares
            # A row in a group with probability p has the weight w p. It counts there as p people of
            # weight w, whose squares add up to p w^2 = (w p)^2 / p.
            by_outcome["squares"] = squared if people is None else squared / people
        sums: dict[str, FloatArray] = {
            name: cells.cross_counts(outcomes, 4, own).reshape(-1, 2, 2)
            for name, own in by_outcome.items()
        }
        if self.units is None:
            return GroupTable.of_groups(self.groups, sums)
        each = np.ones(outcomes.size) if weights is None else weights
        added = np.where(outcomes == np.arange(4)[:, None], each, 0.0)  # (4, n_rows)
        parts = self.units.parts(cells.codes, cells.n_groups)
        unit_sums = weighed = parts.sums(added)
        if people is not None:  # squares are divided by p, as above
            weighed = parts.sums(added / np.sqrt(people))
        products = np.moveaxis(parts.squares(weighed, cells.n_groups), -1, 0)
        sums["products"] = products.reshape(-1, 4, 2, 2)
        return replace(GroupTable.of_groups(self.groups, sums, units=parts), unit_sums=unit_sums)


def _spread(given: _Given) -> _Given:
    """Return each row once for each group that it may belong to, if these are probabilities."""
    table, control_features, sample_weight = given.who
    every = *given.columns.values(), given.units, control_features, sample_weight
    if is_lazy(*every):
        raise TypeError(
            "GroupProbabilities are read with rows in memory. compute() the Dask collections."
        )
    for column in every:
        check_alignment(table, column)
        if hasattr(column, "__len__") and not isinstance(column, str | dict):
            check_length(table, len(column))
    owners, weights, encoding = table.spread(check_weights(sample_weight, len(table)))
    is_plain = sample_weight is None and owners.size == len(table)

    def taken(column: Any) -> Any:
        return None if column is None else take_rows(column, owners)

    columns = {name: taken(column) for name, column in given.columns.items()}
    who = encoding, taken(control_features), None if is_plain else weights
    return _Given(columns, who, taken(given.units))


def _summed(
    given: _Given,
    labels: Sequence[str],
    numbers: Sequence[str],
    summary: Summary,
    intersectional: bool,
) -> _Given:
    """Return the few weighted rows that replace those of Dask collections, see ``read``."""
    if given.units is not None:
        raise TypeError(
            "units= says which rows in memory belong together, and these rows are in Dask "
            "collections. compute() them."
        )
    of_labels = {name: given.columns[name] for name in labels}
    of_numbers = {name: given.columns[name] for name in numbers}
    few = summary(LazyRows(of_labels, of_numbers, *given.who, intersectional))
    columns = dict.fromkeys(given.columns) | few.columns
    who = few.groups, few.control_features, few.weights
    return _Given(columns, who, None, few.counts, few.squares)


def _of_kinds(given: _Given, kinds: Kinds, intersectional: bool) -> _Given:
    """Return rows that stand for those of a table, which were counted in an engine."""
    if kinds.are_numbers:
        raise TypeError(
            f"{listed([*kinds.table.labels.values()])} are numbers that hardly repeat. In an "
            "engine they are audited: audit(...). Name one as y_score= to compare its mean or its "
            "distribution, or pass the rows, as in Cohort(...)."
        )
    sensitive_features, control_features, weights = given.who
    kinds.check_groups(sensitive_features)
    if control_features is not None:
        kinds.check_groups(control_features, CONTROL)
    groups = encode_groups(sensitive_features, intersectional=intersectional)
    sizes = [np.bincount(own, kinds.counts, groups.n_groups) for own in groups.codes]
    groups = replace(groups, counts=whole_numbers(np.sum(sizes, axis=0)))
    who = groups, control_features, weights
    return _Given(given.columns, who, given.units, kinds.counts, kinds.squares)


def _counted(given: _Given, labels: Sequence[str]) -> _Given:
    """Return the distinct rows of long arrays of few labels; other rows unchanged."""
    present = {name: given.columns[name] for name in labels if given.columns[name] is not None}
    found = counted_rows(present, given.who[0])
    if found is None:
        return given
    few, groups, counts = found
    weights = counts.astype(np.float64)
    columns = dict.fromkeys(given.columns) | few
    return _Given(columns, (groups, None, weights), None, counts, weights)
