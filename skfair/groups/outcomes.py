"""Outcomes of rows with labels: true and predicted class, or a right or wrong prediction.

An *outcome* is twice the true class plus the predicted class: 0 true negative, 1 false positive, 2
false negative, 3 true positive. A table of rows by outcome gives every rate.
``MeasuredRows.of_labels`` calls :func:`outcomes_of`, or :func:`right_or_wrong` for metrics of
accuracy.

Labels are *selective* if the decision decides whether the outcome becomes known: nobody knows
whether a loan that was refused would have been repaid. Missing outcomes are then no rows to drop.
:func:`explaining_missing` says so in the error about missing values, for whatever reads labels, and
:func:`one_decision` is the text for rows of which only those of one decision are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from skfair._typing import IntArray
from skfair.groups.labels import check_common, check_no_numbers, positive_codes, warn_of_spelling
from skfair.utils.factorize import factorize
from skfair.utils.text import listed, plural
from skfair.utils.validation import check_labels, one_dimensional

# Which outcome a metric counts, the argument ``counted`` of ``MeasuredRows.of_labels``:
# "classes": the true and the predicted class of a row.
# "predictions": the predicted class. True labels are not read, and may be missing.
# "correct": whether the predicted class is the true one, for any number of classes.
# "equal": whether the predicted number is the true one. Numbers may all differ.
Counted = Literal["classes", "predictions", "correct", "equal"]

# Outcomes count as missing because of a decision if at most this share of them is known. Twice as
# many rejected people are hardly ever accepted on trial, and with half as many, a bank that accepts
# one in ten would be told to drop the others.
FEW_KNOWN = 0.1
# The text of ``one_decision`` begins with these words, by which checks recognise it.
ONE_DECISION = "every decision is"


def outcomes_of(y_true: Any, y_pred: Any, pos_label: Any) -> IntArray:
    """Return the outcome of each row; if ``y_true`` is None, all true classes are 0."""
    predicted = check_labels(y_pred, "y_pred")
    if y_true is None:
        outcomes = positive_codes(predicted, "y_pred", pos_label)
        warn_of_spelling(predicted.levels)
        return outcomes
    with explaining_missing(("y_true", y_true), {"y_pred": y_pred}):
        true = check_labels(y_true, "y_true", predicted.codes.size)
    outcomes = 2 * positive_codes(true, "y_true", pos_label, predicted.levels)
    outcomes += positive_codes(predicted, "y_pred", pos_label, true.levels)
    warn_of_spelling(true.levels, predicted.levels)
    return outcomes


def right_or_wrong(
    y_true: Any, y_pred: Any, pos_label: Any = None, *, are_numbers: bool = False
) -> IntArray:
    """Return the outcome 3 for a right prediction and 2 for a wrong one.

    All true classes count as positive, so the accuracy of the table is the accuracy of the
    predictions. With ``pos_label``, a prediction is right if it says rightly whether the true class
    is this one. With ``are_numbers``, true and predicted values need not have any value in common.
    """
    if pos_label is not None:
        of_rows = outcomes_of(y_true, y_pred, pos_label)
        return np.asarray(2 + ((of_rows == 0) | (of_rows == 3)))
    with explaining_missing(("y_true", y_true), {"y_pred": y_pred}):
        true = check_labels(y_true, "y_true")
    predicted = check_labels(y_pred, "y_pred", true.codes.size)
    if not are_numbers:
        for name, own, other in (("y_true", true, predicted), ("y_pred", predicted, true)):
            check_no_numbers(name, own.levels, other.levels)
        check_common("y_pred", predicted.levels, true.levels)
    number = {level: i for i, level in enumerate(true.levels)}
    # The code of each predicted level among the true levels, or -1 if it is none of these.
    same_code = np.array([number.get(level, -1) for level in predicted.levels], np.int64)
    return np.asarray(2 + (true.codes == same_code[predicted.codes]))


@contextmanager
def explaining_missing(
    outcomes: tuple[str, Any],  # the name and the values of the column of true labels
    decisions: Mapping[str, Any],  # the columns of decisions by name; None for absent ones
    counts: IntArray | None = None,  # how many rows each value stands for; None for one
) -> Iterator[None]:
    """Let an error about labels say if outcomes are missing because of a decision."""
    try:
        yield
    except ValueError:
        name, values = outcomes
        for decision, own in decisions.items():
            is_given = values is not None and own is not None
            text = _selective(name, values, decision, own, counts) if is_given else ""
            if text:
                raise ValueError(text) from None
        raise


def _selective(name: str, y_true: Any, decision: str, y_pred: Any, counts: IntArray | None) -> str:
    """Return the error for outcomes that are missing because of a decision, or "".

    They are if all known outcomes are of rows with the same decision, or if most of its outcomes
    are known and few of the others.
    """
    true, predicted = (factorize(one_dimensional(own, "labels")) for own in (y_true, y_pred))
    if true.codes.size != predicted.codes.size or predicted.codes.min(initial=0) < 0:
        return ""
    each = np.ones(true.codes.size) if counts is None else counts
    n_missing = each * (true.codes < 0)
    sizes = np.bincount(predicted.codes, each)
    n_known = np.bincount(predicted.codes, each - n_missing)
    is_known = n_known > FEW_KNOWN * sizes if (n_known > 0).sum() > 1 else n_known > 0
    if is_known.sum() != 1 or is_known.all():
        return ""
    if n_known[~is_known].any() and 2 * n_known[is_known].sum() < sizes[is_known].sum():
        return ""
    lacking = listed([level for i, level in enumerate(predicted.levels) if not is_known[i]])
    known = predicted.levels[int(is_known.argmax())]
    n_lacking = int((sizes - n_known)[~is_known].sum())
    share = n_lacking / sizes[~is_known].sum()
    of_rows = "all rows" if share == 1 else f"{100 * share:.0f}% of the rows"
    only = "only" if share == 1 else "and few others"
    return (
        f"{name} has {plural(int(n_missing.sum()), 'missing value')} in {each.sum():,.0f} rows, "
        f"among them {of_rows} with {decision} = {lacking}: outcomes are known of the "
        f"{_people(known)} {only} ({decision} = {known!r}; selective labels). Do not just drop "
        "these rows, because true and false positive rates need the outcomes of both decisions. "
        f"Leave out {name} to compare the selection rates of all rows. The rows with an outcome "
        "show the precision of the decision (predictive parity). skfair.metrics.outcome_bounds "
        "bounds every rate over all outcomes that are possible."
    )


def _people(decision: Any) -> str:
    """Return what people are called who got a decision; negative ones are 0, -1 and False."""
    return "rejected" if decision in (0, -1) else "accepted"


def one_decision(decision: str, *, has_outcomes: bool) -> str:
    """Say what cannot be compared if all rows have one decision, "positive" or "negative"."""
    text = f"{ONE_DECISION} {decision}, so groups cannot differ"
    if not has_outcomes:
        return text
    people = "rejected" if decision == "negative" else "accepted"
    return (
        f"{text}, and rates by outcome, such as the true positive rate, are undefined; perhaps "
        f"outcomes are known of the {people} only (selective labels)"
    )
