"""How columns of labels are read: as one class against the rest, as classes, or as numbers.

This is the only place that decides it. Audits call :func:`kind_of`, which chooses a kind from the
values of all columns together. Metrics, tests, bounds and monitors count one class against the
rest, which they read by :func:`positive_codes`. Both follow the same rules:

- A positive class that the user names (``pos_label``) is compared with the rest, however many other
  labels there are. It must be one of the labels.
- Numbers with fractions are numbers, and so are more than ``FEW`` whole numbers that are not
  compared with true labels, such as the scores from 1 to 10 of a judge.
- Other labels are classes. Two of them are a decision if it is clear which one is positive.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from numbers import Real
from typing import Any, Literal

import numpy as np

from skfair._typing import ClassLabel, FloatArray, IntArray
from skfair.utils.factorize import Factorized
from skfair.utils.text import did_you_mean, listed, spelled_alike
from skfair.utils.validation import check_labels, one_dimensional
from skfair.utils.warn import warn_user

Kind = Literal["binary", "classes", "numbers"]
TaskName = Literal["auto", "binary", "classes", "numbers"]
TASKS = "auto", "binary", "classes", "numbers"
# More whole numbers than this, without true labels beside them, are read as numbers: ratings from 1
# to 5 may be classes, and scores from 1 to 10 hardly are.
FEW = 5
# Labels with more different values than this are not read as classes.
MOST_CLASSES = 30
# If all labels are in one of these sets, 1 is the positive class (True equals 1). All metrics,
# estimators, audits and monitors follow this rule. Other labels, such as 1 and 2 or text, need a
# pos_label.
CLEAR_LABELS = ({0, 1}, {-1, 1})
# Among fewer rows scores and decisions may disagree by chance
_MANY = 50


def kind_of(
    # The levels that occur, by column, or None for numbers with fractions. True labels come first
    levels: Mapping[str, Sequence[Any] | None],
    task: TaskName = "auto",
    pos_label: ClassLabel = None,
    *,
    has_true: bool,  # whether the first column holds true labels
) -> Kind:
    """Return how the columns of labels are read.

    It raises if the columns contradict each other or the arguments, and warns if whole numbers may
    be classes or numbers.
    """
    if task not in TASKS:
        raise ValueError(f"task must be {listed(TASKS)}, got {task!r}.")
    fractions = [name for name, own in levels.items() if own is None]
    if pos_label is not None and task not in ("auto", "binary"):
        raise ValueError(
            f"pos_label={pos_label!r} compares one label with the rest, which is task='binary', "
            f"got task={task!r}. Leave out one of the two."
        )
    are_numbers = bool(fractions) and (not has_true or fractions[0] == next(iter(levels)))
    if task == "numbers" or (task == "auto" and are_numbers and pos_label is None):
        return "numbers"
    if fractions and pos_label is not None:
        raise ValueError(
            f"pos_label={pos_label!r} is a label, but {fractions[0]} has fractions, so it is read "
            "as numbers. Pass decisions, such as those with a score above 0.5, or leave pos_label "
            "out and pass task='numbers'."
        )
    if fractions:
        raise ValueError(
            f"{fractions[0]} has fractions, which look like scores, but the other columns have "
            "labels. Pass scores as y_score and decisions as y_pred, such as y_pred = score > 0.5. "
            "If numbers are predicted, pass task='numbers'."
        )
    if task != "auto" or pos_label is not None:
        return "classes" if task == "classes" else "binary"
    every = list(dict.fromkeys(level for own in levels.values() for level in own or ()))
    if len(every) <= 2:
        return "binary"
    if are_whole(every):
        if not has_true and len(every) > FEW:
            return "numbers"
        # A few whole numbers beside true labels are classes, and too many of them raise later.
        is_open = not has_true or FEW < len(every) <= MOST_CLASSES
        if is_open and len(levels) > has_true:
            warn_user(
                f"{', '.join(levels)} may be classes or numbers: the values {listed(every)} are "
                "read as classes. Pass task='numbers' to compare means, or task='classes' if they "
                "are classes."
            )
    return "classes"


def warn_of_spelling(*columns: Sequence[Any]) -> None:
    """Warn if labels, of one column or of several, differ only in case, spaces or type."""
    levels = list(dict.fromkeys(chain.from_iterable(columns)))
    if not any(isinstance(level, str) for level in levels):
        return
    doubtful = spelled_alike(levels)
    if doubtful:
        warn_user(
            "Labels differ only in case, spaces or type, "
            f"{' and '.join(map(listed, doubtful[:3]))}. Each counts as a label of its own. If "
            "they are the same, give them one spelling and type."
        )


def warn_of_opposite(predicted: IntArray, scores: FloatArray) -> None:
    """Warn if rows that are predicted positive (1, others 0) have much smaller scores."""
    n_positive = int(predicted.sum())
    if predicted.size < _MANY or not 0 < n_positive < predicted.size:
        return
    means = np.bincount(predicted, scores, 2) / (predicted.size - n_positive, n_positive)
    with np.errstate(over="ignore"):
        spread = np.std(scores)
    if means[1] - means[0] < -spread:
        warn_user(
            f"y_score is smaller for rows that are predicted positive (mean {means[1]:.3g}) than "
            f"for the others ({means[0]:.3g}). Is it the score of the other class? Pass the one of "
            "the positive class, such as predict_proba(X)[:, 1]."
        )


def warn_of_ranges(true: FloatArray, predicted: FloatArray) -> None:
    """Warn if true and predicted numbers have no value in common, as those of two units."""
    if min(true.size, predicted.size) < _MANY:
        return
    ends = [(float(own.min()), float(own.max())) for own in (true, predicted)]
    if ends[0][1] < ends[1][0] or ends[1][1] < ends[0][0]:
        warn_user(
            "True numbers lie between {:.4g} and {:.4g}, and predictions between {:.4g} and "
            "{:.4g}. Are they in the same unit?".format(*ends[0], *ends[1])
        )


def warn_of_threshold(scores: FloatArray, threshold: float) -> None:
    """Warn if all scores are on one side of a threshold, as those in another unit are."""
    if not scores.size:
        return
    low, high = float(scores.min()), float(scores.max())
    share = float(np.mean(scores > threshold))
    is_percent = 0 < threshold < 1 and low >= 0 and high > 10  # beside percent or points
    if is_percent and share > 0.95 and scores.size >= _MANY:
        warn_user(
            f"{100 * share:.3g}% of the scores are above threshold={threshold:g}: they lie between "
            f"{low:.4g} and {high:.4g}. Is the threshold in another unit than the scores?"
        )
    elif low < high and not low <= threshold < high:
        side = "above" if low > threshold else "at or below"
        warn_user(
            f"All scores are {side} threshold={threshold:g}: they lie between {low:.4g} and "
            f"{high:.4g}, so every row gets the same decision. Pass a threshold in the unit of the "
            "scores, such as 0.5 for probabilities and 0 for decision_function."
        )


def are_whole(levels: Sequence[Any]) -> bool:
    """Whether all levels are whole numbers, and no booleans."""
    return all(
        isinstance(level, Real | Decimal) and not isinstance(level, bool) and not level % 1
        for level in levels
    )


def are_fractions(levels: Sequence[Any]) -> bool:
    """Whether all levels are numbers, and some of them have fractions."""
    numbers = all(isinstance(own, Real | Decimal) for own in levels)
    return numbers and not are_whole([own for own in levels if not isinstance(own, bool)])


def have_fractions(values: Any) -> bool:
    """Whether an array of floats includes fractions; other arrays are read by their levels."""
    array = one_dimensional(values, "y_pred", may_be_empty=True)
    if getattr(array.dtype, "kind", "O") != "f":
        return False
    numbers = np.asarray(array)
    numbers = numbers[np.isfinite(numbers)]
    return bool((numbers != np.round(numbers)).any())


def extent_of(low: float, high: float) -> str:
    """Write the range of numbers, such as "from 1 to 10"; it is "" without numbers.

    The ends of a scale are shown as they are. Other ends may be the values of single people, so
    they are rounded outwards to the first digit of the range.
    """
    if not np.isfinite([low, high]).all():
        return ""
    width = high - low
    if not low % 1 and not high % 1 and width <= MOST_CLASSES:
        return f" from {low:g} to {high:g}"
    unit = 10.0 ** np.floor(np.log10(width or abs(low)))
    ends = np.floor(low / unit) * unit, np.ceil(high / unit) * unit
    return " from about {:g} to {:g}".format(*ends)


def check_positive(
    values: Any, name: str, pos_label: ClassLabel, n_samples: int | None = None
) -> IntArray:
    """Encode labels as 1 for the positive class and 0 for every other one."""
    return positive_codes(check_labels(values, name, n_samples), name, pos_label)


def positive_codes(
    factorized: Factorized, name: str, pos_label: ClassLabel, other_levels: Sequence[Any] = ()
) -> IntArray:
    """Turn encoded labels into 1 for the positive class and 0 for every other one.

    If ``pos_label`` is None, the labels must be in a set of ``CLEAR_LABELS``. Otherwise it must
    occur among these labels or ``other_levels``, the labels with which they are compared (the true
    labels if these are predicted, and vice versa). It may be missing if all rows have the same
    label.
    """
    codes, levels = factorized
    if not isinstance(pos_label, Hashable):
        raise TypeError(f"pos_label={pos_label!r} is no label. Pass one of {listed(levels)}.")
    known = set(levels) if pos_label is None else {*levels, *other_levels, pos_label}
    is_clear = known <= CLEAR_LABELS[0] or known <= CLEAR_LABELS[1]
    if not is_clear:
        _check_known(name, levels, pos_label, other_levels)
    pos_label = 1 if pos_label is None else pos_label
    is_positive = np.array([level == pos_label for level in levels], dtype=np.int64)
    if len(levels) == 2 and is_positive[1] and not is_positive[0]:  # the codes are the result
        return codes
    return is_positive[codes]


def _check_known(
    name: str, levels: Sequence[Any], pos_label: ClassLabel, other_levels: Sequence[Any]
) -> None:
    """Raise if labels do not show a positive class, or if ``pos_label`` is not among them.

    Only :func:`positive_codes` calls it, and only if the labels are not clear.
    """
    check_no_numbers(name, levels, other_levels, pos_label)
    if pos_label in levels:
        return
    check_common(name, levels, other_levels)
    if pos_label is None:
        several = (
            " For several classes see worst_class=True of make_fairness_scorer, which scores each "
            "against the rest, and rates=False of group_report."
        )
        raise ValueError(
            f"{name} has the labels {listed(levels)}, which do not show which class is positive, "
            "as 0 and 1, -1 and 1, and booleans do. Pass one of them as pos_label=, or compare "
            f"them yourself: y == label.{several * (len(levels) > 2)}"
        )
    known = {*levels, *other_levels}
    is_constant = len(known) == 1 and isinstance(pos_label, str) == isinstance(levels[0], str)
    if pos_label not in known and not is_constant:
        raise ValueError(
            f"pos_label={pos_label!r} is not one of the labels of {name}: {listed(levels)}. "
            f"Pass one of them.{did_you_mean(pos_label, levels)}"
        )


def check_no_numbers(
    name: str,
    levels: Sequence[Any],
    other_levels: Sequence[Any] = (),
    pos_label: ClassLabel = None,
) -> None:
    """Raise if labels are read as numbers, of which none is positive and none is right or wrong."""
    if are_fractions(levels):
        between = next(level for level in levels if level % 1)
        raise ValueError(
            f"{name} has numbers such as {between:.4g}, not labels. Compare scores with a "
            "threshold, y_score > 0.5. For predicted numbers, use skfair.report.audit, or beside "
            "outcomes group_report(..., rates=False, metrics=...)."
        )
    is_single = not other_levels and pos_label is None and len(levels) > FEW
    if is_single and are_whole(levels):
        low, high = min(levels), max(levels)
        raise ValueError(
            f"{name} is read as numbers{extent_of(low, high)}, not as labels. Compare their means "
            f"with mean_score_difference or audit, or decisions, such as {name} > "
            f"{(low + high) / 2:g}; if they are classes, pass the positive one as pos_label=."
        )


def check_common(name: str, levels: Sequence[Any], other_levels: Sequence[Any]) -> None:
    """Raise if true and predicted labels have no label in common.

    It does not raise if one of the two is constant and both are text, or both are not, because all
    predictions may be of a class that does not occur.
    """
    kinds = {isinstance(level, str) for level in (*levels, *other_levels)}
    is_constant = 1 in (len(levels), len(other_levels)) and len(kinds) == 1
    if levels and other_levels and set(levels).isdisjoint(other_levels) and not is_constant:
        raise ValueError(
            f"{name} has the labels {listed(levels)}, but the labels that it is compared with are "
            f"{listed(other_levels)}: none in common. Give both the same labels."
        )
