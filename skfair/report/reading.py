"""The arguments of an audit, checked: its task, and the rows in plain arrays.

Every audit reads its rows in four steps:

1. :class:`RawRows` holds the columns as the user passed them, and :func:`check_raw_rows` checks
   which there are.
2. :func:`survey_rows` collects what must be known of all rows before a row is counted: the labels
   and the range of the scores. Rows may come in blocks, and the surveys of blocks add up.
3. :func:`find_task` decides from the survey what is predicted: two classes, several, or numbers.
4. :func:`read_rows` turns the columns, or those of one block, into codes and numbers. The table of
   sums is made of these in :mod:`skfair.report.table`.

``audit`` and ``find_subgroups`` take these steps in memory, ``read_blocks`` for Dask collections,
and :mod:`skfair.report.command_audit` for files, with error messages of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from skfair._typing import ClassLabel, ColumnsLike
from skfair.groups.row_units import RowUnits, read_units
from skfair.report.tasks import Binary, Classes, Numbers, Rows, Task, look_like_scores
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import Factorized, in_order
from skfair.utils.text import listed
from skfair.utils.validation import (
    check_common,
    check_labels,
    check_number,
    check_scores,
    check_weights,
    one_dimensional,
    positive_codes,
)

TaskName = Literal["auto", "binary", "classes", "numbers"]

# Labels with more different values than this are not read as classes.
MOST_CLASSES = 30


class RawRows(NamedTuple):
    """The columns of an audit as the user passed them, or their names in a file; None if absent."""

    y_true: Any
    y_pred: Any
    y_score: Any
    before: Any
    sample_weight: Any
    units: Any = None

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
        return read_units(self.units, n_rows)


@dataclass(frozen=True)
class Survey:
    """Facts about all rows that must be known before a row is counted.

    ``Survey()`` is the survey of no rows.
    """

    # By column of labels, the levels that occur, or None if the column has numbers with fractions
    labels: dict[str, list[Any] | None] = field(default_factory=dict)
    ends: tuple[float, float] = (np.inf, -np.inf)  # smallest and largest score of rows with weight
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
        (low, high), (own_low, own_high) = self.ends, other.ends
        return Survey(
            labels,
            (min(low, own_low), max(high, own_high)),
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
    for column, values in labels.items():
        has_fractions = name == "numbers" or look_like_scores(values)
        levels[column] = None if has_fractions else check_labels(values, column).levels
        if has_fractions:
            check_scores(values, column)
    survey = Survey(levels, n_rows=n_rows, n_counted=int(counted.sum()))
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
    survey: Survey, name: TaskName, pos_label: ClassLabel, pos_label_true: ClassLabel = None
) -> Task:
    """Return the task that was named, or the one that the labels show.

    If the first column of labels, y_true if it was given, has fractions, numbers are predicted.
    """
    if name not in ("auto", "binary", "classes", "numbers"):
        raise ValueError(f"task must be 'auto', 'binary', 'classes' or 'numbers', got {name!r}.")
    if pos_label_true is not None and "y_true" not in survey.labels:
        raise ValueError(f"pos_label_true={pos_label_true!r} is a class of y_true, got None.")
    first = next(iter(survey.labels), None)
    if name == "numbers" or (name == "auto" and first in survey.fractions):
        if "y_pred" not in survey.labels:
            raise ValueError("Predicted numbers are audited as y_pred=; y_score= is for classes.")
        return Numbers()
    if survey.fractions:
        raise ValueError(
            f"{survey.fractions[0]} has fractions, which look like scores, but y_true has labels. "
            "Pass scores as y_score= and decisions as y_pred=, for example y_pred = score > 0.5; "
            "if numbers are predicted, pass task='numbers'."
        )
    return task_of(survey, name, pos_label, pos_label_true)


def task_of(
    survey: Survey,
    name: TaskName,
    pos_label: ClassLabel,
    # If given, the first column, y_true, has labels of its own, of which this one is positive.
    pos_label_true: ClassLabel = None,
) -> Task:
    """Return the task for labels that are classes: two of them, or several.

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
        of_true = _two_classes({argument: factorized[argument]}, pos_label_true, "pos_label_true")
        factorized = {other: factorized[other] for other in others}
        name = "binary" if name == "auto" else name
        if name != "binary":
            raise ValueError(f"pos_label_true= is for task='binary', got task={name!r}.")
    levels = {level: None for column in factorized.values() for level in column.levels}
    for argument, column in factorized.items():
        check_common(argument, column.levels, next(iter(factorized.values())).levels)
    is_two = len(levels) <= 2 or name == "binary"
    if name == "classes" or (name == "auto" and not is_two):
        if len(levels) > MOST_CLASSES:
            raise ValueError(
                f"y_true and y_pred have {len(levels)} different labels (at most {MOST_CLASSES} "
                "are read as classes). If they are numbers, pass task='numbers'; else merge rare "
                "classes."
            )
        return Classes(tuple(in_order(list(levels))))
    return Binary(*_two_classes(factorized, pos_label), of_true)


def _two_classes(
    factorized: dict[str, Factorized], pos_label: ClassLabel, option: str = "pos_label"
) -> tuple[tuple[Any, ...], Any]:
    """Return the two classes of some columns, and the positive one.

    ``option`` is the name of the argument for messages. If only one class occurs, the positive one
    is added.
    """
    levels = {level: None for column in factorized.values() for level in column.levels}
    if len(levels) > 2:
        raise ValueError(
            f"task='binary' needs two labels, got {listed(levels)}. Compare them yourself: "
            "y == label."
        )
    for argument, column in factorized.items():
        try:
            positive_codes(column, argument, pos_label, list(levels))
        except ValueError as error:
            raise ValueError(str(error).replace("pos_label=", f"{option}=")) from error
    positive = 1 if pos_label is None else pos_label
    return tuple(in_order([*levels, *([] if positive in levels else [positive])])), positive


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
    n_rows = next(len(values) for values in (true, predicted, score) if values is not None)
    if score is not None and true is not None and task.kind == "classes":
        raise ValueError(
            f"y_score is read for two classes or for numbers, but y_true has the classes "
            f"{listed(task.classes)}. Leave y_score out, or audit one class: y_true == label."
        )
    if score is None and predicted is not None and not task.classes:
        score = predicted.astype(np.float64)  # numbers are checked for calibration like scores
    weights = check_weights(sample_weight, n_rows, are_all=are_all)
    earlier = None if before is None else task.codes(before, "before")
    return Rows(true, predicted, earlier, score, weights)
