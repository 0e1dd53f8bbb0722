"""Outcomes of rows with labels: true and predicted class, or a right or wrong prediction.

An *outcome* is twice the true class plus the predicted class: 0 true negative, 1 false positive, 2
false negative, 3 true positive. A table of rows by outcome gives every rate.
``Cohort.of_labels`` calls :func:`outcomes_of`, or :func:`right_or_wrong` for metrics of accuracy.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair._typing import IntArray
from skfair.groups.labels import check_common, check_no_numbers, positive_codes
from skfair.utils.validation import check_labels

# Which outcome a metric counts, the argument ``counted`` of ``Cohort.of_labels``:
# "classes": the true and the predicted class of a row.
# "predictions": the predicted class. True labels are not read, and may be missing.
# "correct": whether the predicted class is the true one, for any number of classes.
# "equal": whether the predicted number is the true one. Numbers may all differ.
Counted = Literal["classes", "predictions", "correct", "equal"]


def outcomes_of(y_true: Any, y_pred: Any, pos_label: Any) -> IntArray:
    """Return the outcome of each row; if ``y_true`` is None, all true classes are 0."""
    predicted = check_labels(y_pred, "y_pred")
    if y_true is None:
        return positive_codes(predicted, "y_pred", pos_label)
    true = check_labels(y_true, "y_true", predicted.codes.size)
    outcomes = 2 * positive_codes(true, "y_true", pos_label, predicted.levels)
    outcomes += positive_codes(predicted, "y_pred", pos_label, true.levels)
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
