"""The arguments of an audit, checked: its task, and the rows in plain arrays.

Every audit reads its rows in four steps:

1. :class:`RawRows` holds the columns as the user passed them, and :func:`check_raw_rows` checks
   which there are.
2. :func:`survey_rows` collects what must be known of all rows before a row is counted: the labels
   and the range of the scores. Rows may come in blocks, and the surveys of blocks add up.
3. :func:`find_task` makes the task: one class against the rest, several classes, or numbers.
   :func:`skfair.groups.labels.kind_of` decides from the survey which of these it is.
4. :func:`read_rows` turns the columns, or those of one block, into codes and numbers. The table of
   sums is made of these in :mod:`skfair.report.tables.sums`.

``audit`` and ``find_subgroups`` take these steps in memory, ``read_blocks`` for Dask collections,
and :mod:`skfair.report.commands.audit` for files, with error messages of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from skfair._typing import ClassLabel, ColumnsLike
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


class RawRows(NamedTuple):
    """The columns of an audit as the user passed them, or their names in a file; None if absent."""

    y_true: Any
    y_pred: Any
    y_score: Any
    before: Any
    sample_weight: Any
    units: Any = None

    def explaining_missing(self, threshold: float | None = None) -> AbstractContextManager[None]:
        """Let errors say if y_true is missing because of a decision, now or before."""
        decisions = {"y_pred": self.y_pred, "before": self.before}
        names = self.names()
        of_names = {names.get(name, name): own for name, own in decisions.items()}
        kind = getattr(getattr(self.y_score, "dtype", None), "kind", "")
        if isinstance(threshold, Real) and kind in tuple("iuf"):
            of_names[f"{names['y_score']} above {threshold:g}"] = self.y_score > threshold
        return explaining_missing((names.get("y_true", "y_true"), self.y_true), of_names)

    def named(self) -> dict[str, Any]:
        """Return the columns that were given."""
        return {name: values for name, values in self._asdict().items() if values is not None}

    def names(self) -> dict[str, str]:
        """Return the names in the data of the columns that were given, by argument."""
        columns = self.named().items()
        return {name: str(getattr(values, "name", None) or name) for name, values in columns}

    def labels(self) -> dict[str, Any]:
        """Return the columns of labels that were given, true ones first."""
        columns = {"y_true": self.y_true, "y_pred": self.y_pred, "before": self.before}
        return {name: values for name, values in columns.items() if values is not None}

    def together(self, n_rows: int) -> RowUnits | None:
        """Return which rows belong to the same unit, or None if no two rows do."""
        units = read_units(self.units, n_rows)
        warn_of_few(units, n_rows)
        return units


_NOWHERE = np.inf, -np.inf  # the ends of no numbers


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
    labels: Mapping[str, Any],
    name: TaskName,
    score: tuple[str, Any] | None = None,  # name and values, if their range is needed
    weights: Any = None,
) -> Survey:
    """Look through all rows, or one block of them.

    ``name`` is the task that the user named. If it is "numbers", labels are not listed. ``score``
    has the scores, or predictions that may turn out to be numbers.
    """
    levels: dict[str, list[Any] | None] = {}
    n_rows = len(next(iter(labels.values()), () if score is None else score[1]))
    counted = np.ones(n_rows, bool)
    if weights is not None:
        counted = np.asarray(check_weights(weights, n_rows, are_all=False)) > 0
    ranges: dict[str, tuple[float, float]] = {}
    for column, values in labels.items():
        are_numbers, levels[column] = name == "numbers" or have_fractions(values), None
        if not are_numbers:
            found = check_labels(values, column).levels
            if are_whole(found) and found:
                ranges[column] = float(min(found)), float(max(found))
            levels[column] = None if are_fractions(found) else found
        if levels[column] is None:
            numbers = check_scores(values, column)
            ranges[column] = float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
    survey = Survey(levels, ranges=ranges, n_rows=n_rows, n_counted=int(counted.sum()))
    if score is None:
        return survey
    scores = check_scores(score[1], score[0])[counted]
    ends = float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))
    return replace(survey, ends=ends)


def check_raw_rows(
    raw: RawRows,
    sensitive_features: ColumnsLike | None,
    control_features: ColumnsLike | None,
    threshold: float | None = None,
) -> int | None:
    """Raise unless there is something to audit, and return the number of rows.

    The number is None for Dask collections, which are read later.
    """
    check_judged(raw, threshold)
    if is_lazy(*raw, sensitive_features, control_features):
        if raw.units is not None:
            raise TypeError(
                "Rows of the same unit may lie in several blocks of a Dask collection, so units= "
                "are counted in memory. compute() the columns that the audit reads."
            )
        return None
    n_rows: int | None = None
    for name, values in raw.named().items():
        if isinstance(values, RowUnits):  # those of an engine
            continue
        if sparse.issparse(values) or isinstance(values, str) or not hasattr(values, "__len__"):
            raise TypeError(f"{name} must be array-like with one value per row, got {values!r}.")
        one_dimensional(values, name, n_rows)
        n_rows = len(values)
    return n_rows


def check_judged(raw: RawRows, threshold: float | None) -> None:
    """Raise unless there are decisions, or scores that can be judged."""
    if raw.y_pred is None and raw.y_score is None:
        raise ValueError("audit needs y_pred, y_score or both; got neither.")
    if raw.y_true is None and raw.y_pred is None and threshold is None:
        raise ValueError(
            "audit needs y_true to judge y_score. Pass y_true, or a threshold above which scores "
            "are positive decisions."
        )


def find_task(
    survey: Survey,
    name: TaskName,
    pos_label: ClassLabel,
    pos_label_true: ClassLabel = None,
    *,
    raw: RawRows,
) -> Task:
    """Return the task that was named, or the one that the labels show.

    ``raw`` says which columns there are.
    """
    has_true = raw.y_true is not None
    if pos_label_true is not None and not has_true:
        raise ValueError(f"pos_label_true={pos_label_true!r} is a class of y_true, got None.")
    if pos_label_true is not None and name not in ("auto", "binary"):
        raise ValueError(f"pos_label_true= is for task='binary', got task={name!r}.")
    one = pos_label if pos_label_true is None else pos_label_true
    kind = kind_of(survey.labels, name, one, has_true=has_true)
    if kind == "numbers":
        if raw.y_pred is None:
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


def read_rows(raw: RawRows, task: Task, threshold: float | None, *, are_all: bool = True) -> Rows:
    """Return the columns as codes and numbers.

    ``are_all`` is False if the rows are one block of several, whose weights may all be 0.
    """
    y_true, y_pred, y_score, before, sample_weight, _ = raw
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
    n_rows = next(len(values) for values in (true, predicted, score) if values is not None)
    if score is not None and true is not None and task.kind == "classes":
        raise ValueError(
            f"y_score is read for two classes or for numbers, but y_true has the classes "
            f"{listed(task.classes)}. Leave y_score out, or audit one class: y_true == label."
        )
    if are_all and task.kind == "numbers" and true is not None and predicted is not None:
        warn_of_ranges(np.asarray(true, np.float64), np.asarray(predicted, np.float64))
    if score is None and predicted is not None and not task.classes:
        score = predicted.astype(np.float64)  # numbers are checked for calibration like scores
    weights = check_weights(sample_weight, n_rows, are_all=are_all)
    earlier = None if before is None else task.codes(before, "before")
    return Rows(true, predicted, earlier, score, weights)
