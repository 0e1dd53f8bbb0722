"""The table that every metric of predicted labels is a function of, and the rates in it.

The table holds the weighted number of rows by cell, true class and predicted class; it costs one
pass over the rows. A rate is a quotient of two sums over it (``RATES``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.metrics.compared_groups import ComparedGroups, ZeroDivision, checked_rows
from skfair.utils.validation import check_common, check_labels, positive_codes

# The entries by true class, then by predicted class: negatives and positives, true and false.
_TABLE = (("tn", "fp"), ("fn", "tp"))


def entries(names: str) -> IntArray:
    """Return how often the entries of the table, [true class][predicted class], are named."""
    return np.array([[names.split().count(name) for name in row] for row in _TABLE])


class Rate(NamedTuple):
    """Which entries of the table a rate divides by which."""

    numerator: IntArray
    denominator: IntArray
    lacking: str  # what a group has none of when the denominator is empty

    @classmethod
    def of(cls, numerator: str, denominator: str, lacking: str) -> Rate:
        """Make a rate of the names of entries."""
        return cls(entries(numerator), entries(denominator), lacking)


RATES: dict[str, Rate] = {
    "base_rate": Rate.of("fn tp", "tn fp fn tp", "row"),
    "selection_rate": Rate.of("fp tp", "tn fp fn tp", "row"),
    "true_positive_rate": Rate.of("tp", "fn tp", "row of the positive class"),
    "false_positive_rate": Rate.of("fp", "tn fp", "row of the negative class"),
    "false_negative_rate": Rate.of("fn", "fn tp", "row of the positive class"),
    "positive_predictive_value": Rate.of("tp", "fp tp", "row predicted positive"),
    "false_omission_rate": Rate.of("fn", "tn fn", "row predicted negative"),
    "error_ratio": Rate.of("fn", "fp", "row that is a false positive"),
    "accuracy": Rate.of("tn tp", "tn fp fn tp", "row"),
}


class LabelTable(NamedTuple):
    """Weighted number of rows by cell, true class and predicted class."""

    counts: FloatArray  # (n_cells, 2, 2)
    groups: ComparedGroups

    def rate(self, name: str, zero_division: ZeroDivision, of_cells: IntArray) -> FloatArray:
        """Compute a rate of each cell; if it is undefined for one of some cells, raise."""
        values = rates_of(self.counts, name)
        cell = self.groups.undefined(values, of_cells, zero_division)
        if cell is not None:
            raise ValueError(
                f"Group {cell!r} has no {RATES[name].lacking}, so its {name.replace('_', ' ')} is "
                "undefined. Merge small groups or add data, or pass zero_division=numpy.nan to "
                "get NaN."
            )
        return values


def label_table(
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    *,
    pos_label: ClassLabel = None,
    rates: tuple[str, ...] | None = None,  # all that is wanted of the table
    name: str = "The metric",  # what wants it
) -> LabelTable:
    """Count the rows by cell, true class and predicted class in one pass: O(n)."""
    options = (sensitive_features, control_features, sample_weight, intersectional)
    if rates == ("accuracy",):
        return correct_table(y_true, y_pred, *options)
    like = y_true if hasattr(y_true, "index") else y_pred
    if rates == ("selection_rate",):
        y_true = None
    elif rates is not None and y_true is None:
        raise ValueError(f"{name} needs y_true, got None.")
    predicted = check_labels(y_pred, "y_pred")
    if y_true is None:
        joint = positive_codes(predicted, "y_pred", pos_label)
    else:
        true = check_labels(y_true, "y_true", predicted.codes.size)
        joint = 2 * positive_codes(true, "y_true", pos_label, predicted.levels)
        joint += positive_codes(predicted, "y_pred", pos_label, true.levels)
    groups, weights = checked_rows(*options, n_samples=joint.size, like=like, predictions=y_pred)
    counts = groups.cells.cross_counts(joint, 4, weights)
    return LabelTable(counts.reshape(-1, 2, 2), groups)


def correct_table(
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    *,
    are_numbers: bool = False,  # which may all differ
) -> LabelTable:
    """Count right and wrong predictions by cell, for any number of classes.

    A right prediction is stored as a true positive, a wrong one as a false negative, so that the
    accuracy of the table is the accuracy of the predictions.
    """
    true = check_labels(y_true, "y_true")
    predicted = check_labels(y_pred, "y_pred", true.codes.size)
    if not are_numbers:
        check_common("y_pred", predicted.levels, true.levels)
    number = {level: i for i, level in enumerate(true.levels)}
    same_code = np.array([number.get(level, -1) for level in predicted.levels], dtype=np.int64)
    joint = 2 + (true.codes == same_code[predicted.codes])
    like = y_true if hasattr(y_true, "index") else y_pred
    options = (sensitive_features, control_features, sample_weight, intersectional)
    groups, weights = checked_rows(*options, n_samples=joint.size, like=like, predictions=y_pred)
    counts = groups.cells.cross_counts(joint, 4, weights)
    return LabelTable(counts.reshape(-1, 2, 2), groups)


def rates_of(counts: FloatArray, rate: str) -> FloatArray:
    """Compute one rate of tables of shape (..., 2, 2); NaN where the denominator is empty."""
    above, below = ((counts * part).sum(axis=(-2, -1)) for part in RATES[rate][:2])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))
