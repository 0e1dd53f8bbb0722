"""Weights of the rows of each cell by true and predicted class: what the metrics of labels compare.

A rate is a quotient of two sums of a :class:`ConfusionTable` (``RATES``), and so are the number of
rows that a weighted rate is worth, comparisons of groups, and resamples. The sums of the squared
weights are added up where they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import ClassLabel, ColumnLike, FloatArray, IntArray, Seed
from skfair.groups.compared_groups import (
    Agg,
    ComparedGroups,
    Reference,
    ZeroDivision,
    aggregate,
    check_agg,
    checked_rows,
    is_group,
    ratios,
)
from skfair.groups.means import CellMeans
from skfair.groups.probabilities import GroupArguments
from skfair.groups.weighted_rows import MetricRows, read_rows
from skfair.utils.validation import check_common, check_labels, is_strict, positive_codes

# The entries by true class, then by predicted class: negatives and positives, true and false.
_ENTRIES = (("tn", "fp"), ("fn", "tp"))


def entries(names: str) -> IntArray:
    """Return how often the entries of the table, [true class][predicted class], are named."""
    return np.array([[names.split().count(name) for name in row] for row in _ENTRIES])


class Rate(NamedTuple):
    """Which entries of the table a rate divides by which."""

    numerator: IntArray
    denominator: IntArray
    lacking: str  # what a group has none of when the denominator is empty


RATES = {
    name: Rate(entries(numerator), entries(denominator), lacking)
    for name, numerator, denominator, lacking in (
        ("base_rate", "fn tp", "tn fp fn tp", "row"),
        ("selection_rate", "fp tp", "tn fp fn tp", "row"),
        ("true_positive_rate", "tp", "fn tp", "row of the positive class"),
        ("false_positive_rate", "fp", "tn fp", "row of the negative class"),
        ("false_negative_rate", "fn", "fn tp", "row of the positive class"),
        ("positive_predictive_value", "tp", "fp tp", "row predicted positive"),
        ("false_omission_rate", "fn", "tn fn", "row predicted negative"),
        ("error_ratio", "fn", "fp", "row that is a false positive"),
        ("accuracy", "tn tp", "tn fp fn tp", "row"),
    )
}


def outcomes_of(y_true: Any, y_pred: Any, pos_label: Any) -> IntArray:
    """Return twice the true class plus the predicted class of each row; None is the class 0."""
    predicted = check_labels(y_pred, "y_pred")
    if y_true is None:
        return positive_codes(predicted, "y_pred", pos_label)
    true = check_labels(y_true, "y_true", predicted.codes.size)
    outcomes = 2 * positive_codes(true, "y_true", pos_label, predicted.levels)
    outcomes += positive_codes(predicted, "y_pred", pos_label, true.levels)
    return outcomes


@dataclass(frozen=True, eq=False)
class ConfusionTable:
    """Sums over the rows of each cell, true class and predicted class."""

    groups: ComparedGroups
    weights: FloatArray  # (n_cells, 2, 2)
    # Adds up the squared weights; None if each row counts once. No metric needs them.
    add_squares: Callable[[], FloatArray] | None = None

    @cached_property
    def squares(self) -> FloatArray:
        """Sums of the squared weights, shape (n_cells, 2, 2)."""
        return self.weights if self.add_squares is None else self.add_squares()

    @classmethod
    def of_labels(
        cls,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        groups: GroupArguments | MetricRows,  # or rows that have been read
        pos_label: ClassLabel = None,
        *,
        ignores_true: bool = False,
        # Twice the true plus the predicted class of each row
        outcomes_by: Callable[[Any, Any, ClassLabel], IntArray] = outcomes_of,
    ) -> ConfusionTable:
        """Count rows in memory, in partitions of Dask, or with probabilities of groups.

        If true labels are ignored, all rows count as those of the negative class.
        """
        if y_true is None and not ignores_true:
            raise ValueError("The metric needs y_true, got None. Pass one value per row.")
        true_labels = {"y_true": y_true}
        labels = {"y_pred": y_pred} if ignores_true else {**true_labels, "y_pred": y_pred}
        rows = groups
        if not isinstance(rows, MetricRows):
            rows = read_rows(labels, {}, rows, beside=true_labels)
        y_true, y_pred = rows.columns.get("y_true"), rows.columns["y_pred"]
        outcomes = outcomes_by(None if ignores_true else y_true, y_pred, pos_label)
        like = y_true if hasattr(y_true, "index") else y_pred
        options: Any = {"like": like, "predictions": y_pred, "row_counts": rows.counts}
        compared, weights = checked_rows(*rows.groups, n_samples=outcomes.size, **options)
        cells, people = compared.cells, compared.cells.people
        if weights is None:
            return cls(compared, cells.cross_counts(outcomes, 4, people).reshape(-1, 2, 2))

        def add_squares() -> FloatArray:
            squares = weights**2 if rows.squares is None else rows.squares
            # Who is in a group with probability p counts as p people, not as p^2.
            squares = squares if people is None else squares / people
            return cells.cross_counts(outcomes, 4, squares).reshape(-1, 2, 2)

        sums = cells.cross_counts(outcomes, 4, weights)
        return cls(compared, sums.reshape(-1, 2, 2), add_squares)

    @classmethod
    def of_correct(
        cls,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        groups: GroupArguments,
        *,
        are_numbers: bool = False,  # which may all differ
    ) -> ConfusionTable:
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

        return cls.of_labels(y_true, y_pred, groups, outcomes_by=right_or_wrong)

    def checked_rate(
        self, name: str, of_cells: IntArray, zero_division: ZeroDivision = "raise"
    ) -> FloatArray:
        """Return a rate of each cell; if it is undefined for one of some cells, raise."""
        values = rates_of(self.weights, name)
        cell = self.groups.undefined(values, of_cells, zero_division)
        if cell is not None:
            raise ValueError(
                f"Group {cell!r} has no {RATES[name].lacking}, so its {name.replace('_', ' ')} is "
                "undefined. Merge small groups or add data, or pass zero_division=numpy.nan to "
                "get NaN."
            )
        return values

    def effective(self) -> FloatArray:
        """Return the weights, scaled so that those of a cell add up to the rows it is worth.

        By Kish's formula: the squared sum of the weights over the sum of their squares.
        """
        if self.add_squares is None:
            return self.weights
        totals, squares = (part.sum(axis=(1, 2)) for part in (self.weights, self.squares))
        scale: FloatArray = totals / np.where(squares > 0, squares, 1.0)
        return self.weights * scale[:, None, None]

    def means(self, rate: str) -> CellMeans:
        """Return a rate of each cell as the mean of 0 and 1 over the rows that it divides by."""
        parts = [self.weights] if self.add_squares is None else [self.weights, self.squares]
        sums = [(rows, hits, hits) for hits, rows in (hits_and_rows(own, rate) for own in parts)]
        return CellMeans(np.array([sums[0], sums[-1]]), is_share=True)

    def compare(
        self,
        kind: str,  # "difference", "ratio" or "total"
        rates: tuple[str, ...],
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Return the worst comparison of rates between groups, or the mean one.

        The total of a comparison is the sum of the differences of all rates.
        """
        check_agg(agg)
        values = []
        for rate in rates:
            of_cells = self.checked_rate(rate, self.groups.compared_by(reference), zero_division)
            overall = rates_of(self.groups.peer_sums(self.weights), rate)
            if kind != "ratio":
                values.append(self.groups.differences(of_cells, overall, reference=reference))
                continue
            first, second = self.groups.sides(of_cells, overall, reference)
            is_zero = second == 0 if is_group(reference) else np.maximum(first, second) == 0
            if is_strict(zero_division) and np.any(is_zero):
                where = "the reference group" if is_group(reference) else "both groups of a pair"
                raise ValueError(
                    f"The {rate.replace('_', ' ')} is 0 in {where}, so their ratio is undefined. "
                    "Use the difference, or pass zero_division=numpy.nan to get NaN."
                )
            values.append(ratios(first, second, reference))
        if kind == "total":
            return aggregate(np.sum(np.abs(values), axis=0), agg)
        every, is_ratio = np.concatenate(values), kind == "ratio"
        return aggregate(every, agg, empty=float(is_ratio), worst_is_smallest=is_ratio)

    def largest(self, rate: str, zero_division: ZeroDivision = "raise") -> float:
        """Return the largest rate of a group."""
        cells = self.groups.present
        return float(self.checked_rate(rate, cells, zero_division)[cells].max())


def hits_and_rows(weights: FloatArray, rate: str) -> tuple[FloatArray, FloatArray]:
    """Return what a rate of tables of shape (..., 2, 2) divides by what."""
    above, below = ((weights * part).sum(axis=(-2, -1)) for part in RATES[rate][:2])
    return above, below


def rates_of(weights: FloatArray, rate: str) -> FloatArray:
    """Compute one rate of tables of shape (..., 2, 2); NaN where the denominator is empty."""
    above, below = hits_and_rows(weights, rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))


def resampled(weights: FloatArray, n_bootstrap: int, random_state: Seed) -> FloatArray:
    """Draw tables as if the rows of each cell had been resampled: (n_bootstrap, n_cells, 2, 2).

    Each true class that a cell has counts half a row more of both predictions: what was not seen
    among few rows may happen, while resamples of the rows alone would never show it.
    """
    rng = check_random_state(random_state)
    draws = np.zeros((n_bootstrap, *weights.shape))
    seen = weights + 0.5 * (weights.sum(axis=-1, keepdims=True) > 0)
    for cell, (shares, size) in enumerate(
        zip(seen.reshape(-1, 4), weights.sum(axis=(1, 2)), strict=True)
    ):
        if size > 0:
            drawn = rng.multinomial(max(1, round(size)), shares / shares.sum(), size=n_bootstrap)
            draws[:, cell] = drawn.reshape(n_bootstrap, 2, 2)
    return draws
