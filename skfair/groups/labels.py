"""Rows with labels become a table of their groups by true and predicted class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, FloatArray, IntArray
from skfair.groups.compared_groups import checked_rows
from skfair.groups.probabilities import GroupArguments
from skfair.groups.row_units import read_units
from skfair.groups.table import GroupTable
from skfair.groups.weighted_rows import MetricRows, read_rows
from skfair.utils.validation import check_common, check_labels, positive_codes


def outcomes_of(y_true: Any, y_pred: Any, pos_label: Any) -> IntArray:
    """Return twice the true class plus the predicted class of each row; None is the class 0."""
    predicted = check_labels(y_pred, "y_pred")
    if y_true is None:
        return positive_codes(predicted, "y_pred", pos_label)
    true = check_labels(y_true, "y_true", predicted.codes.size)
    outcomes = 2 * positive_codes(true, "y_true", pos_label, predicted.levels)
    outcomes += positive_codes(predicted, "y_pred", pos_label, true.levels)
    return outcomes


def count_labels(
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    groups: GroupArguments | MetricRows,  # or rows that have been read
    pos_label: ClassLabel = None,
    *,
    ignores_true: bool = False,
    squares: bool = True,  # whether squared weights are added up, too: no metric needs them
    units: ColumnLike | None = None,  # which rows belong together
    # Twice the true plus the predicted class of each row
    outcomes_by: Callable[[Any, Any, ClassLabel], IntArray] = outcomes_of,
) -> GroupTable:
    """Count rows in memory, in partitions of Dask, or with probabilities of groups.

    If true labels are ignored, all rows count as those of the negative class.
    """
    if y_true is None and not ignores_true:
        raise ValueError("The metric needs y_true, got None. Pass one value per row.")
    true_labels = {"y_true": y_true}
    labels = {"y_pred": y_pred} if ignores_true else {**true_labels, "y_pred": y_pred}
    rows = groups
    if not isinstance(rows, MetricRows):
        rows = read_rows(labels, {}, rows, beside={**true_labels, "units": units})
    y_true, y_pred = rows.columns.get("y_true"), rows.columns["y_pred"]
    outcomes = outcomes_by(None if ignores_true else y_true, y_pred, pos_label)
    owners = rows.columns.get("units")
    together = None if owners is None else read_units(owners, outcomes.size)
    options: Any = {"like": y_true, "predictions": y_pred, "row_counts": rows.counts}
    compared, weights = checked_rows(*rows.groups, n_samples=outcomes.size, **options)
    people = compared.cells.people
    by_class = {"weights": people if weights is None else weights}
    if weights is not None and squares:
        squared = weights**2 if rows.squares is None else rows.squares
        # Who is in a group with probability p counts as p people, not as p^2.
        by_class["squares"] = squared if people is None else squared / people
    sums: dict[str, FloatArray] = {
        name: compared.cells.cross_counts(outcomes, 4, own).reshape(-1, 2, 2)
        for name, own in by_class.items()
    }
    parts = unit_sums = None
    if together is not None:
        each = np.ones(outcomes.size) if weights is None else weights
        by_outcome = np.where(outcomes == np.arange(4)[:, None], each, 0.0)
        n_cells = compared.cells.n_groups
        parts = together.parts(compared.cells.codes, n_cells)
        unit_sums = weighed = parts.sums(by_outcome)
        if people is not None:
            weighed = parts.sums(by_outcome / np.sqrt(people))
        products = np.moveaxis(parts.squares(weighed, n_cells), -1, 0)
        sums["products"] = products.reshape(-1, 4, 2, 2)
    return replace(GroupTable.of_groups(compared, sums, units=parts), unit_sums=unit_sums)


def count_correct(
    y_true: ColumnLike | None,
    y_pred: ColumnLike,
    groups: GroupArguments | MetricRows,
    *,
    squares: bool = True,  # as of count_labels
    are_numbers: bool = False,  # which may all differ
    units: ColumnLike | None = None,  # which rows belong together
) -> GroupTable:
    """Count right and wrong predictions, for any number of classes.

    A right prediction counts as a true positive, a wrong one as a false negative, so that the
    accuracy of the table is the accuracy of the predictions.
    """

    def right_or_wrong(y_true: Any, y_pred: Any, _: Any) -> IntArray:
        true = check_labels(y_true, "y_true")
        predicted = check_labels(y_pred, "y_pred", true.codes.size)
        if not are_numbers:
            check_common("y_pred", predicted.levels, true.levels)
        number = {level: i for i, level in enumerate(true.levels)}
        same_code = np.array([number.get(level, -1) for level in predicted.levels], np.int64)
        return np.asarray(2 + (true.codes == same_code[predicted.codes]))

    how: dict[str, Any] = {"squares": squares, "units": units, "outcomes_by": right_or_wrong}
    return count_labels(y_true, y_pred, groups, **how)
