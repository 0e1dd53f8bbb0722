"""The rates of decisions, each declared once.

A :class:`Rate` says which rows are counted, and among which, and how it is called. Metrics, tests,
reports, audits, pages and monitors read everything else from this declaration: its variance follows
from the entries (``GroupTable.means``), and so does whether it is known from one class alone. A new
rate is a line of ``RATES``. Metrics that compare it are declared in ``metrics/labels.py``.

``rate_named`` also knows F scores with any weight of recall, which have no line of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray, IntArray

# The entries by true class, then by predicted class.
_ENTRIES = (("tn", "fp"), ("fn", "tp"))


def entries(names: str) -> IntArray:
    """Return a table [true class][predicted class] with the number of times a text names an entry.

    ``entries("fn tp")`` is ``[[0, 0], [1, 1]]``: the rows of the positive class.
    """
    return np.array([[names.split().count(name) for name in row] for row in _ENTRIES])


@dataclass(frozen=True, eq=False)
class Rate:
    """A quotient of two weighted counts of rows by true and predicted class.

    Examples
    --------
    >>> from skfair.groups.declared_rates import RATES
    >>> recall = RATES["true_positive_rate"]
    >>> recall.above.tolist(), recall.below.tolist(), recall.given
    ([[0, 0], [0, 1]], [[0, 0], [1, 1]], 'y_true')
    """

    # A row of an entry adds this to the numerator and to the denominator, at most 1
    above: Any
    below: Any
    lacking: str  # for errors if the denominator is 0: the kind of row that a group has none of
    says: str  # what the rate is, for readers of a page
    does_not_say: str
    spoken: str = ""  # how readers call it, if not by its name
    functions: tuple[str, ...] = ()  # its names in scikit-learn
    is_listed: bool = True  # in reports of groups; not if it is 1 minus another rate
    is_pictured: bool = True  # on pages of audits

    @property
    def is_mean(self) -> bool:
        """Whether it is a share of rows: each row counts whole or not at all."""
        return bool(np.isin(self.below, (0, 1)).all() and (self.above <= self.below).all())

    @property
    def is_share(self) -> bool:
        """Whether it is a share of what rows count for, so between 0 and 1."""
        return bool((self.above <= self.below).all())

    @property
    def given(self) -> Literal["y_true", "y_pred", ""]:
        """The column of which one class makes up the denominator; "" if there is none."""
        if self.below.any(axis=1).sum() == 1 and self.below.any(axis=0).all():
            return "y_true"
        return (
            "y_pred" if self.below.any(axis=0).sum() == 1 and self.below.any(axis=1).all() else ""
        )

    @property
    def needs_both_decisions(self) -> bool:
        """Whether it says nothing about groups if all rows have the same decision.

        Rates over one true class are then 0 or 1 in every group, and so is their quotient.
        """
        return self.given == "y_true" or not self.is_share


_ALL = entries("tn fp fn tp")
_OF_NEGATIVES = "What happens to those who are truly negative."

# The rates by name, in the order in which tables list them.
RATES = {
    "base_rate": Rate(
        entries("fn tp"),
        _ALL,
        "row",
        says="The share of the group that is truly positive.",
        does_not_say="Whether the labels are correct and were recorded in the same way in all "
        "groups.",
        is_pictured=False,
    ),
    "selection_rate": Rate(
        entries("fp tp"),
        _ALL,
        "row",
        says="The share of the group that is selected.",
        does_not_say="Whether the right people were selected.",
    ),
    "true_positive_rate": Rate(
        entries("tp"),
        entries("fn tp"),
        "row of the positive class",
        says="The share of truly positive people who are selected.",
        does_not_say=_OF_NEGATIVES,
        functions=("recall_score",),
    ),
    "false_positive_rate": Rate(
        entries("fp"),
        entries("tn fp"),
        "row of the negative class",
        says="The share of truly negative people who are selected.",
        does_not_say="What happens to those who are truly positive.",
    ),
    "false_negative_rate": Rate(
        entries("fn"),
        entries("fn tp"),
        "row of the positive class",
        says="The share of truly positive people who are not selected.",
        does_not_say=_OF_NEGATIVES,
        is_listed=False,
        is_pictured=False,
    ),
    "positive_predictive_value": Rate(
        entries("tp"),
        entries("fp tp"),
        "row predicted positive",
        says="The share of selected people who are truly positive.",
        does_not_say="How many truly positive people were missed.",
        spoken="precision",
        functions=("precision_score",),
    ),
    "negative_predictive_value": Rate(
        entries("tn"),
        entries("tn fn"),
        "row predicted negative",
        says="The share of people not selected who are truly negative.",
        does_not_say="How many truly negative people are selected.",
        is_pictured=False,
    ),
    "false_omission_rate": Rate(
        entries("fn"),
        entries("tn fn"),
        "row predicted negative",
        says="The share of people not selected who are truly positive.",
        does_not_say="How many people are selected.",
        is_listed=False,
        is_pictured=False,
    ),
    "error_ratio": Rate(
        entries("fn"),
        entries("fp"),
        "row that is a false positive",
        says="The number of people wrongly refused for each one wrongly selected.",
        does_not_say="How many errors are made.",
        is_listed=False,
        is_pictured=False,
    ),
    "accuracy": Rate(
        entries("tn tp"),
        _ALL,
        "row",
        says="The share of predictions that are correct.",
        does_not_say="Which of the two kinds of errors was made. Groups of equal accuracy may be "
        "harmed in opposite ways.",
    ),
}


@cache
def rate_named(name: str) -> Rate:
    """Return the rate of a name: one of ``RATES``, or an F score such as "f1_score"."""
    return _f_score(float(name[1:-6])) if is_f_score(name) else RATES[name]


def is_f_score(name: object) -> bool:
    """Whether a name is that of an F score, such as "f1_score" or "f0.5_score"."""
    return isinstance(name, str) and bool(re.fullmatch(r"f\d+(\.\d+)?_score", name))


def _f_score(beta: float) -> Rate:
    """Return the F score, in which recall counts ``beta`` times as much as precision.

    It is a share: a hit counts as a row, and an error as a part of one.
    """
    missed = beta**2 / (1 + beta**2)
    return Rate(
        entries("tp"),
        entries("tp") + missed * entries("fn") + (1 - missed) * entries("fp"),
        "positive row, true or predicted",
        says="The harmonic mean of precision and true positive rate"
        + ("." if beta == 1 else f", in which the latter counts {beta:g} times as much."),
        does_not_say="Which of the two is low, and how many truly negative people are selected.",
        spoken=f"F{beta:g} score",
    )


def spoken_rate(name: str) -> str:
    """Return how readers call a rate, within a sentence."""
    return rate_named(name).spoken or name.replace("_", " ")


def hits_and_rows(weights: FloatArray, rate: str) -> tuple[FloatArray, FloatArray]:
    """Return the numerator and the denominator of a rate for tables of shape (..., 2, 2)."""
    own = rate_named(rate)
    above, below = ((weights * part).sum(axis=(-2, -1)) for part in (own.above, own.below))
    return above, below


def rates_of(weights: FloatArray, rate: str) -> FloatArray:
    """Compute a rate of tables of shape (..., 2, 2); NaN if the denominator is 0."""
    above, below = hits_and_rows(weights, rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))
