"""The three tasks of audits: decisions (two classes), several classes, and numbers.

A *measure* is a mean over rows, such as the selection rate. A task turns checked rows into the
values of each measure, and says which gaps between groups may be reported. Everything after that is
the same for all tasks, see :mod:`skfair.groups.rates`.

:func:`~skfair.report.tables.reading.find_task` makes the task of an audit. The classes
:class:`Binary`, :class:`Classes` and :class:`Numbers` have the same methods, and other files call
these through the functions below them:

- ``codes`` turns a column of labels into codes of classes, or numbers,
- ``rates`` yields the measures of one model, and ``others`` the measures of scores and of changes
  from the earlier model. :func:`values_of` calls both,
- ``known_gaps`` yields the gaps that a user may ask for. :func:`gaps_of` calls it,
- ``searched`` is a list of tuples of measures. :func:`searched_of` takes the first tuple that has a
  known measure, and subgroups are searched by its known measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skfair._typing import BoolArray, ColumnLike, FloatArray, IntArray
from skfair.groups.declared_rates import RATES
from skfair.groups.row_units import RowUnits
from skfair.metrics.labels import LABEL_METRICS
from skfair.report.tables.gaps import Gap
from skfair.utils.text import did_you_mean, listed, listed_in
from skfair.utils.validation import check_labels, check_scores

# The names of measures of the earlier model begin with this.
BEFORE = "before:"
# The gaps of decisions that are reported if none are asked for. Other tasks report all.
_DEFAULTS = (
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "false_positive_parity_difference",
    "equalized_odds_difference",
    "predictive_parity_difference",
    "accuracy_parity_difference",
    "mean_score_difference",
    "mean_residual_difference",
)


Labels = IntArray | FloatArray  # codes of classes, or numbers


class Rows(NamedTuple):
    """Checked columns, each (n_samples,), or None if the column was not given.

    ``before`` are the predictions of the earlier model.
    """

    true: Labels | None
    predicted: Labels | None
    before: Labels | None
    score: FloatArray | None = None
    weights: FloatArray | None = None
    units: RowUnits | None = None  # None also if no two rows share one

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return next(len(own) for own in self[:4] if own is not None)


# The name of a measure, its value for each row, and which rows count for it (None for all)
Value = tuple[str, FloatArray | BoolArray, BoolArray | None]


@dataclass(frozen=True)
class Binary:
    """Decisions: one class counts as positive, and all others are the rest."""

    classes: tuple[Any, ...]
    positive: Any
    of_true: tuple[tuple[Any, ...], Any] | None = None  # classes of y_true, if it has other ones
    kind: ClassVar[str] = "binary"

    @property
    def reading(self) -> str:
        """How labels were read, in words."""
        text = f"{plural_classes(self.classes)}; positive: {against(self.classes, self.positive)}"
        return f"{text}; truly positive: {against(*self.of_true)}" if self.of_true else text

    searched = (("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy"),)

    def codes(self, labels: ColumnLike, name: str) -> IntArray:
        """Return 1 for the positive class and 0 for the rest."""
        own = self.of_true if name == "y_true" else None
        classes, positive = own or (self.classes, self.positive)
        is_positive = class_codes(labels, name, classes) == classes.index(positive)
        return np.asarray(is_positive, dtype=np.int64)

    def rates(self, true: Labels | None, predicted: Labels) -> Iterator[Value]:
        """Yield the rates of decisions, each with the rows that it divides by."""
        if true is None:
            yield "selection_rate", predicted == 1, None
            return
        outcomes = 2 * true + predicted  # 0 to 3: tn, fp, fn, tp, as in the entries of RATES
        for name, rate in RATES.items():
            if name != "base_rate" and rate.is_mean:
                hits, counted = (part.astype(bool).ravel() for part in (rate.above, rate.below))
                yield name, hits[outcomes], None if counted.all() else counted[outcomes]

    def others(self, rows: Rows) -> Iterator[Value]:
        """Yield the mean score, and which decisions the earlier model made differently."""
        if rows.score is not None:
            yield "mean_score", rows.score, None
        if rows.before is not None and rows.predicted is not None:
            yield "moved_up", (rows.predicted == 1) & (rows.before == 0), None
            yield "moved_down", (rows.predicted == 0) & (rows.before == 1), None
        yield from _change_of_accuracy(rows)

    def known_gaps(self) -> Iterator[Gap]:
        """Yield the metrics of labels whose rates are means over rows, and those of mean scores.

        The error ratio, false negatives over false positives, is not a mean. Residuals are those of
        probabilities: the outcome minus the probability.
        """
        for name, spec in LABEL_METRICS.items():
            if all(RATES[rate].is_mean for rate in spec.rates):
                yield Gap(name, spec.kind, spec.rates)
        for rate in ("mean_score", "mean_residual"):
            yield Gap(f"{rate}_difference", "difference", (rate,))


@dataclass(frozen=True)
class Classes:
    """Predictions of one of several classes."""

    classes: tuple[Any, ...]
    kind: ClassVar[str] = "classes"

    @property
    def reading(self) -> str:
        """How labels were read, in words."""
        return f"{plural_classes(self.classes)}: {listed_in([*map(label_text, self.classes)])}"

    def codes(self, labels: ColumnLike, name: str) -> IntArray:
        """Return the number of the class of each row."""
        return class_codes(labels, name, self.classes)

    def rates(self, true: Labels | None, predicted: Labels) -> Iterator[Value]:
        """Yield how often each class is predicted, its recall, and the accuracy."""
        for code, label in enumerate(self.classes):
            yield f"share_predicted[{label}]", predicted == code, None
            if true is not None:
                yield f"recall[{label}]", predicted == code, true == code
        if true is not None:
            yield "accuracy", predicted == true, None

    def others(self, rows: Rows) -> Iterator[Value]:
        """Yield whether the earlier model predicted another class."""
        if rows.before is not None and rows.predicted is not None:
            yield "changed", rows.before != rows.predicted, None
        yield from _change_of_accuracy(rows)

    def known_gaps(self) -> Iterator[Gap]:
        """Yield gaps of the accuracy, and of the share and recall of each class."""
        yield Gap("accuracy_parity_difference", "difference", ("accuracy",))
        yield Gap("accuracy_parity_ratio", "ratio", ("accuracy",))
        for label in self.classes:
            share, recall = f"share_predicted[{label}]", f"recall[{label}]"
            yield Gap(f"demographic_parity_difference[{label}]", "difference", (share,))
            yield Gap(f"equal_opportunity_difference[{label}]", "difference", (recall,))

    @property
    def searched(self) -> tuple[tuple[str, ...], ...]:
        """The accuracy, or without true labels the shares."""
        return ("accuracy",), tuple(f"share_predicted[{label}]" for label in self.classes)


@dataclass(frozen=True)
class Numbers:
    """Predictions of a number."""

    extent: str = ""  # the range of the predictions, see ``extent_of``
    classes: ClassVar[tuple[Any, ...]] = ()
    kind: ClassVar[str] = "numbers"
    searched = (("mean_residual", "mean_absolute_error"), ("mean_prediction",))

    @property
    def reading(self) -> str:
        """How predictions were read, in words."""
        return f"read as numbers{self.extent}"

    def codes(self, labels: ColumnLike, name: str) -> FloatArray:
        """Return the numbers."""
        return check_scores(labels, name)

    def rates(self, true: Labels | None, predicted: Labels) -> Iterator[Value]:
        """Yield means of predictions, residuals and errors."""
        yield "mean_prediction", _as_floats(predicted), None
        if true is not None:
            residual = true - predicted
            yield "mean_residual", _as_floats(residual), None
            yield "mean_absolute_error", _sizes(residual), None

    def others(self, rows: Rows) -> Iterator[Value]:
        """Yield which predictions rose or fell, and by how much the absolute errors changed."""
        if rows.before is not None and rows.predicted is not None:
            yield "moved_up", rows.predicted > rows.before, None
            yield "moved_down", rows.predicted < rows.before, None
            if rows.true is not None:
                now, then = rows.true - rows.predicted, rows.true - rows.before
                yield "error_change", _sizes(now) - _sizes(then), None

    def known_gaps(self) -> Iterator[Gap]:
        """Yield gaps of mean predictions, residuals and errors."""
        yield Gap("mean_score_difference", "difference", ("mean_prediction",))
        for rate in ("mean_residual", "mean_absolute_error"):
            yield Gap(f"{rate}_difference", "difference", (rate,))


Task = Binary | Classes | Numbers


def values_of(task: Task, rows: Rows) -> Iterator[Value]:
    """Yield each measure of a task with its values, for both models."""
    if rows.true is not None and task.kind == "binary":
        yield "base_rate", rows.true == 1, None
    elif rows.true is not None and task.kind == "numbers":
        yield "mean_target", _as_floats(rows.true), None
    for prefix, predicted in (("", rows.predicted), (BEFORE, rows.before)):
        if predicted is not None:
            for name, values, counted in task.rates(rows.true, predicted):
                yield prefix + name, values, counted
    yield from task.others(rows)


def gaps_of(
    task: Task,
    metrics: list[str] | None,
    measures: set[str],
    own: Sequence[Gap] = (),
    argument: str = "metrics",  # where they were named, for messages
) -> list[Gap]:
    """Return the gaps to report, given the names of the measures that are known.

    ``metrics`` are the gaps that the user asked for, which must exist and be computable. If it is
    None, the usual gaps are returned, as far as they are computable. ``own`` are gaps by metrics of
    one's own.
    """
    known = {gap.name: gap for gap in [*task.known_gaps(), *own]}
    names = metrics
    if names is None:
        names = list(_DEFAULTS if task.kind == "binary" else known)
    unknown = [name for name in names if name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise ValueError(
            f"{argument} has {listed(unknown)}, but this audit knows {', '.join(known)}.{hint} Its "
            f"labels are {task.reading}. A metric of a single group, such as f1_score, is "
            "passed as make_group_metric(f1_score)."
        )
    lacking = [name for name in names if not set(known[name].measures) <= measures]
    if lacking and metrics is not None:
        raise ValueError(
            f"{argument} has {listed(lacking)}, which need {listed(known[lacking[0]].measures)}. "
            "Pass the labels or scores that they are computed from."
        )
    return [known[name] for name in names if name not in lacking]


def searched_of(task: Task, measures: set[str]) -> list[str]:
    """Return the measures by which subgroups are searched, out of the known ones."""
    known = ([name for name in names if name in measures] for names in task.searched)
    return next(filter(None, known), [])


def class_codes(labels: ColumnLike, name: str, classes: tuple[Any, ...]) -> IntArray:
    """Return the index of the class of each row; raise for labels that are no class."""
    factorized = check_labels(labels, name)
    numbers = {label: i for i, label in enumerate(classes)}
    unknown = [level for level in factorized.levels if level not in numbers]
    if unknown:
        raise ValueError(
            f"{name} has labels that are no class: {listed(unknown)}. The classes are "
            f"{listed(classes)}."
        )
    return np.array([numbers[level] for level in factorized.levels], np.int64)[factorized.codes]


def plural_classes(classes: tuple[Any, ...]) -> str:
    """Begin to say how labels were read."""
    return f"read as {len(classes)} class{'es' * (len(classes) != 1)}"


def against(classes: tuple[Any, ...], positive: Any) -> str:
    """Name the positive class, and the rest that it is compared with."""
    # True equals 1, and is written so: which of the two came first must not change the sentence.
    plain = [int(own) if isinstance(own, bool | np.bool_) else own for own in (*classes, positive)]
    rest = [label_text(own) for own in plain[:-1] if own != positive]
    return label_text(plain[-1]) + (f", against {listed_in(rest)}" if rest else "")


def label_text(label: Any) -> str:
    """Write a label; a whole number is written without a point, whatever holds it."""
    return f"{label:.0f}" if isinstance(label, float) and label.is_integer() else str(label)


def _as_floats(numbers: Any) -> Any:
    """Return numbers as float64; an expression of an engine is returned unchanged."""
    return numbers.astype(np.float64) if isinstance(numbers, np.ndarray) else numbers


def _sizes(numbers: Any) -> Any:
    """Return absolute values, also of an expression of an engine."""
    return np.abs(numbers) if isinstance(numbers, np.ndarray) else numbers.abs()


def _change_of_accuracy(rows: Rows) -> Iterator[Value]:
    """Yield 1 where the new model is right and the old one was not, -1 the other way round."""
    if rows.true is not None and rows.before is not None and rows.predicted is not None:
        now, then = rows.predicted == rows.true, rows.before == rows.true
        yield "accuracy_change", np.asarray(now, float) - np.asarray(then, float), None
