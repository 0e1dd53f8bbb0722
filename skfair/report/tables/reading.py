"""The rows of an audit: a :class:`~skfair.groups.cohort.Cohort` becomes codes and numbers.

Every audit reads its cohort in four steps:

1. :func:`check_columns` checks which columns there are, and that they are of the same rows.
2. :func:`survey_rows` collects what must be known of all rows before a row is counted: the labels
   and the range of the scores. Rows may come in blocks, and the surveys of blocks add up.
3. :func:`find_task` makes the task: one class against the rest, several classes, or numbers.
   :func:`skfair.groups.labels.kind_of` decides from the survey which of these it is.
4. :func:`read_rows` turns the columns, or those of one block, into codes and numbers, and says in
   which cell each row is counted. :mod:`skfair.report.tables.sums` adds them up.

``audit`` takes these steps in memory, ``read_blocks`` for Dask collections, and
:mod:`skfair.report.commands.audit` for files, whose columns are those of a cohort for each block.
``find_subgroups`` has no groups, so it calls :func:`read_labels` in the last step.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skfair._typing import ClassLabel, FloatArray, IntArray
from skfair.groups.attributes import ROLES, check_aligned
from skfair.groups.cohort import Cohort
from skfair.groups.cohort_rows import cell_table
from skfair.groups.engine_tables import LABELS
from skfair.groups.labels import (
    MOST_CLASSES,
    Kind,
    TaskName,
    are_fractions,
    are_whole,
    check_common,
    extent_of,
    have_fractions,
    kind_of,
    positive_codes,
    warn_of_opposite,
    warn_of_ranges,
    warn_of_spelling,
    warn_of_threshold,
)
from skfair.groups.outcomes import explaining_missing
from skfair.groups.row_units import RowUnits, read_units, warn_of_few
from skfair.groups.table import GroupTable
from skfair.report.tables.options import MISSING
from skfair.report.tables.tasks import Binary, Classes, Numbers, Rows, Task
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import Factorized, in_order
from skfair.utils.text import listed
from skfair.utils.validation import (
    check_labels,
    check_number,
    check_scores,
    check_weights,
    one_dimensional,
)

_NOWHERE = np.inf, -np.inf  # the ends of no numbers


def names_of(columns: Mapping[str, Any]) -> dict[str, str]:
    """Return the names in the data of the columns beside the groups, by argument."""
    return {
        argument: str(getattr(values, "name", None) or argument)
        for argument, values in columns.items()
        if argument not in ROLES
    }


def check_columns(columns: Mapping[str, Any], threshold: float | None = None) -> int | None:
    """Raise unless there is something to audit, and return the number of rows.

    ``columns`` are those of a cohort. The number is None for Dask collections, which are read
    later.
    """
    check_judged(columns, threshold)
    if is_lazy(*columns.values()):
        if "units" in columns:
            raise TypeError(
                "Rows of the same unit may lie in several blocks of a Dask collection, so units= "
                "are counted in memory. compute() the columns that the audit reads."
            )
        return None
    n_rows: int | None = None
    for name, values in columns.items():
        if name in ROLES or isinstance(values, RowUnits):  # those of an engine
            continue
        if sparse.issparse(values) or isinstance(values, str) or not hasattr(values, "__len__"):
            raise TypeError(f"{name} must be array-like with one value per row, got {values!r}.")
        one_dimensional(values, name, n_rows)
        n_rows = len(values)
    check_aligned(**columns)
    return n_rows


def check_judged(given: Collection[str], threshold: float | None) -> None:
    """Raise unless there are decisions, or scores that can be judged."""
    if "y_pred" not in given and "y_score" not in given:
        raise ValueError("audit needs y_pred, y_score or both; got neither.")
    if "y_true" not in given and "y_pred" not in given and threshold is None:
        raise ValueError(
            "audit needs y_true to judge y_score. Pass y_true, or a threshold above which scores "
            "are positive decisions."
        )


def _joined(own: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of two ranges together."""
    return min(own[0], other[0]), max(own[1], other[1])


@dataclass(frozen=True)
class Survey:
    """Facts about all rows that must be known before a row is counted.

    ``Survey()`` is the survey of no rows.
    """

    # By column of labels, the levels that occur, or None if the column has numbers with fractions
    labels: dict[str, list[Any] | None] = field(default_factory=dict)
    ends: tuple[float, float] = _NOWHERE  # smallest and largest score of rows with weight
    # By column of numbers, the smallest and the largest one
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    n_rows: int = 0
    n_counted: int = 0  # number of rows whose weight is not 0

    @property
    def fractions(self) -> list[str]:
        """The columns of labels that have numbers with fractions."""
        return [name for name, levels in self.labels.items() if levels is None]

    def __add__(self, other: Survey) -> Survey:
        labels: dict[str, list[Any] | None] = {}
        for name in {**self.labels, **other.labels}:
            both = self.labels.get(name, []), other.labels.get(name, [])
            known = [level for levels in both for level in levels or ()]
            labels[name] = None if None in both else list(dict.fromkeys(known))
        ranges = {
            name: _joined(self.ranges.get(name, _NOWHERE), other.ranges.get(name, _NOWHERE))
            for name in {**self.ranges, **other.ranges}
        }
        return Survey(
            labels,
            _joined(self.ends, other.ends),
            ranges,
            self.n_rows + other.n_rows,
            self.n_counted + other.n_counted,
        )


def survey_rows(
    people: Cohort,
    task: TaskName,  # as the user named it; if it is "numbers", labels are not listed
    threshold: float | None = None,
    named: Mapping[str, str] = MappingProxyType({}),  # what errors call a column, by argument
) -> Survey:
    """Look through all rows, or one block of them."""
    columns = {own: getattr(people, own) for own in (*LABELS, "y_score")}
    with _explaining(columns, threshold):
        return _surveyed(columns, people.sample_weight, task, named)


def _explaining(
    columns: Mapping[str, Any], threshold: float | None
) -> AbstractContextManager[None]:
    """Let errors say if y_true is missing because of a decision, now or before."""
    names, scores = names_of(columns), columns["y_score"]
    decisions = {names[own]: columns[own] for own in ("y_pred", "before")}
    if isinstance(threshold, Real) and _kind(scores) in tuple("iuf"):
        decisions[f"{names['y_score']} above {threshold:g}"] = scores > threshold
    return explaining_missing((names["y_true"], columns["y_true"]), decisions)


def _kind(values: Any) -> str:
    """Return the kind of the dtype of a column, "O" if it has none."""
    return getattr(getattr(values, "dtype", None), "kind", "O")


def _surveyed(
    columns: Mapping[str, Any],  # labels and scores; None for absent ones
    sample_weight: Any,
    task: TaskName,
    named: Mapping[str, str],
) -> Survey:
    levels: dict[str, list[Any] | None] = {}
    ranges: dict[str, tuple[float, float]] = {}
    for argument in LABELS:
        name, values = named.get(argument, argument), columns[argument]
        if values is None:
            continue
        are_numbers, levels[name] = task == "numbers" or have_fractions(values), None
        if not are_numbers:
            found = check_labels(values, name).levels
            if are_whole(found) and found:
                ranges[name] = float(min(found)), float(max(found))
            levels[name] = None if are_fractions(found) else found
        if levels[name] is None:
            ranges[name] = _ends(check_scores(values, name))
    scored = "y_pred" if columns["y_score"] is None else "y_score"
    scores, ends = columns[scored], _NOWHERE
    n_rows = len(scores)
    weights = check_weights(sample_weight, n_rows, are_all=False)
    is_counted = np.ones(n_rows, bool) if weights is None else weights > 0
    # Predictions that are numbers count as scores, because a later block may have fractions.
    if scored == "y_score" or _kind(scores) in tuple("iuf"):
        ends = _ends(check_scores(scores, named.get(scored, scored))[is_counted])
    return Survey(levels, ends, ranges, n_rows, int(is_counted.sum()))


def _ends(numbers: FloatArray) -> tuple[float, float]:
    """Return the smallest and the largest number."""
    return float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))


def find_task(
    survey: Survey,
    name: TaskName,
    pos_label: ClassLabel,
    pos_label_true: ClassLabel = None,
    *,
    given: Collection[str],  # the arguments that there are columns of
) -> Task:
    """Return the task that was named, or the one that the labels show."""
    has_true = "y_true" in given
    if pos_label_true is not None and not has_true:
        raise ValueError(f"pos_label_true={pos_label_true!r} is a class of y_true, got None.")
    if pos_label_true is not None and name not in ("auto", "binary"):
        raise ValueError(f"pos_label_true= is for task='binary', got task={name!r}.")
    one = pos_label if pos_label_true is None else pos_label_true
    kind = kind_of(survey.labels, name, one, has_true=has_true)
    if kind == "numbers":
        if "y_pred" not in given:
            raise ValueError("Predicted numbers are audited as y_pred=; y_score= is for classes.")
        predicted = list(survey.labels)[has_true]
        return Numbers(extent_of(*survey.ranges.get(predicted, _NOWHERE)))
    task = _task_of(survey, kind, name, pos_label, pos_label_true)
    warn_of_spelling(*(levels or [] for levels in survey.labels.values()))
    return task


def _task_of(
    survey: Survey,
    kind: Kind,
    name: TaskName,
    pos_label: ClassLabel,
    # If given, the first column, y_true, has labels of its own, of which this one is positive.
    pos_label_true: ClassLabel = None,
) -> Task:
    """Return the task for labels that are classes.

    Without labels, a threshold makes decisions of scores, which have the classes 0 and 1.
    """
    nothing = np.zeros(0, np.int64)
    factorized = {
        argument: Factorized(nothing, in_order(levels or []))
        for argument, levels in survey.labels.items()
    }
    if not factorized:
        if name not in ("auto", "binary"):
            message = "Scores and a threshold are decisions. Leave out task, or pass labels."
            raise ValueError(message)
        return Binary((0, 1), 1)
    of_true = None
    if pos_label_true is not None:
        argument, *others = factorized
        own = {argument: factorized[argument]}
        of_true = _against_rest(own, pos_label_true, "pos_label_true")
        factorized = {other: factorized[other] for other in others}
    levels = list(dict.fromkeys(own for column in factorized.values() for own in column.levels))
    for argument, column in factorized.items():
        check_common(argument, column.levels, next(iter(factorized.values())).levels)
    if kind == "binary":
        return Binary(*_against_rest(factorized, pos_label), of_true)
    if len(levels) > MOST_CLASSES:
        raise ValueError(
            f"y_true and y_pred have {len(levels)} different labels (at most {MOST_CLASSES} are "
            "read as classes). If they are numbers, pass task='numbers'; else merge rare classes."
        )
    return Classes(tuple(in_order(levels)))


def _against_rest(
    factorized: dict[str, Factorized], pos_label: ClassLabel, option: str = "pos_label"
) -> tuple[tuple[Any, ...], Any]:
    """Return the classes of some columns, and the positive one.

    ``option`` is the name of the argument for messages. If the positive class does not occur, it is
    added.
    """
    levels = list(dict.fromkeys(own for column in factorized.values() for own in column.levels))
    for argument, column in factorized.items():
        try:
            positive_codes(column, argument, pos_label, levels)
        except ValueError as error:
            raise ValueError(str(error).replace("pos_label=", f"{option}=")) from error
    positive = 1 if pos_label is None else pos_label
    return tuple(in_order(list(dict.fromkeys([*levels, positive])))), positive


class PlacedRows(NamedTuple):
    """Rows, and the cell in which each is counted."""

    rows: Rows
    table: GroupTable  # the cells, with the number of their rows
    cells: IntArray  # (n_rows,)


def read_rows(
    people: Cohort,
    task: Task,
    threshold: float | None = None,
    unknown: Collection[str] = (),  # levels of groups that stand for "not known"
    *,
    are_all: bool = True,  # False for one block of several, whose weights may all be 0
) -> PlacedRows:
    """Return the rows of a cohort as codes and numbers, and in which cell each is."""
    rows = read_labels(people, task, threshold, are_all=are_all)
    missing = MISSING if MISSING in unknown else None
    return PlacedRows(rows, *cell_table(people, rows.n_rows, missing, unknown))


def read_labels(
    people: Cohort, task: Task, threshold: float | None, *, are_all: bool = True
) -> Rows:
    """Return all columns but those of groups, see :func:`read_rows`."""
    y_true, y_pred, y_score = people.y_true, people.y_pred, people.y_score
    score = None if y_score is None else check_scores(y_score)
    true = None if y_true is None else task.codes(y_true, "y_true")
    predicted = None if y_pred is None else task.codes(y_pred, "y_pred")
    if threshold is not None:
        if isinstance(threshold, Mapping):
            raise ValueError(
                f"threshold must be one number for all rows, got {threshold!r}. If groups have "
                "thresholds of their own, pass the decisions by these as y_pred, without threshold."
            )
        check_number(threshold, "threshold")
        if score is None or predicted is not None:
            raise ValueError("threshold turns y_score into decisions; pass y_score and no y_pred.")
        predicted = (score > threshold).astype(np.int64)
        if are_all:
            warn_of_threshold(score, threshold)
    elif are_all and task.kind == "binary" and score is not None and predicted is not None:
        warn_of_opposite(np.asarray(predicted, np.int64), score)
    if score is not None and true is not None and task.kind == "classes":
        raise ValueError(
            f"y_score is read for two classes or for numbers, but y_true has the classes "
            f"{listed(task.classes)}. Leave y_score out, or audit one class: y_true == label."
        )
    if are_all and task.kind == "numbers" and true is not None and predicted is not None:
        warn_of_ranges(np.asarray(true, np.float64), np.asarray(predicted, np.float64))
    if score is None and predicted is not None and not task.classes:
        score = predicted.astype(np.float64)  # numbers are checked for calibration like scores
    earlier = None if people.before is None else task.codes(people.before, "before")
    rows = Rows(true, predicted, earlier, score)
    weights = check_weights(people.sample_weight, rows.n_rows, are_all=are_all)
    units = read_units(people.units, rows.n_rows)
    warn_of_few(units, rows.n_rows)
    return rows._replace(weights=weights, units=units)
