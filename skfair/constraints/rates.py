"""Constraints on rates: shares of rows that are, or are not, predicted positive.

Parity constraints, subclasses of :class:`RateParity`, limit differences or ratios of rates between
groups. Bounded rates, subclasses of ``_BoundedRate``, limit the rate of every group and compare no
groups. A new rate is a subclass that sets ``subset`` (the rows that count) or ``moment`` (what is
counted about them), and ``parity`` or ``metric`` (the metric that measures it).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair.constraints.base import CONSTRAINTS, Constraint, OneLimit, TrainingRows
from skfair.constraints.comparisons import Comparison, make_comparison
from skfair.constraints.documenting import documented
from skfair.constraints.moments import Moment, Rate
from skfair.losses import Loss
from skfair.utils.validation import check_number


class _OnRates(Constraint):
    """The base of constraints on rates, which count positive predictions by default."""

    def moment(self, rows: TrainingRows) -> Moment:
        return Rate()

    def metric_options(self, loss: str | Loss, pos_label: object = None) -> dict[str, Any]:
        # An accuracy counts right decisions of all classes, so it has no positive one.
        options = super().metric_options(loss)
        return options if self.counts_right else {**options, "pos_label": pos_label}


class RateParity(_OnRates):
    """Base class of constraints that compare rates of groups.

    The rate of a group is the share of positive predictions among the rows of ``subset``.

    Parameters
    ----------
    max_disparity : float, default=None
        Limit of this constraint. If None, ``max_disparity`` of the estimator is the limit.
    reference : {"pairwise", "overall"}, default="pairwise"
        Whether each group is compared with every other group of its attribute, or with all rows.
    comparison : {"difference", "ratio"}, default="difference"
        Whether the limit applies to the difference of two rates, or to 1 minus the smaller rate
        over the larger one.
    min_ratio : float, default=None
        The smallest ratio of two rates that is allowed, such as 0.8 for the four-fifths rule. It
        replaces ``comparison`` and ``max_disparity``.

    Attributes
    ----------
    parity : str or None
        Beginning of the name of the metric, which ends in ``_difference`` or ``_ratio``.

    Examples
    --------
    >>> from skfair.constraints.rates import RateParity
    >>> class SpecificityParity(RateParity):
    ...     subset = "negative"
    >>> SpecificityParity(min_ratio=0.8)
    SpecificityParity(min_ratio=0.8)
    """

    parity: str | None = None

    def __init__(
        self,
        max_disparity: float | None = None,
        reference: Literal["pairwise", "overall"] = "pairwise",
        comparison: Literal["difference", "ratio"] = "difference",
        min_ratio: float | None = None,
    ) -> None:
        self.max_disparity = max_disparity
        self.reference = reference
        self.comparison = comparison
        self.min_ratio = min_ratio

    @property
    def own_limit(self) -> Any:
        """Limit of the constraint, or None if it has the limit of the estimator."""
        if self.min_ratio is None:
            return self.max_disparity
        check_number(self.min_ratio, "min_ratio", 0, 1)
        if self.max_disparity is not None:
            raise ValueError(
                f"{type(self).__name__} got min_ratio={self.min_ratio!r} and max_disparity="
                f"{self.max_disparity!r}, which say the same. Pass one of them."
            )
        return 1.0 - float(self.min_ratio)

    def compared(self) -> Comparison:
        """Return the comparison that turns the rates of groups into a disparity.

        Returns
        -------
        comparison : Comparison
            The comparison of groups.
        """
        kind = self.comparison if self.min_ratio is None else "ratio"
        return make_comparison(kind, self.reference)

    @property
    def metric(self) -> str | None:
        """Name of the function of skfair.metrics that measures the constraint, or None."""
        suffix = self.compared().suffix
        return None if self.parity is None or suffix is None else self.parity + suffix


class SelectionParity(RateParity):
    """Base class of parity of selection rates, among all rows or within classes."""

    tasks = frozenset({"classification", "intervals"})


@CONSTRAINTS.register("demographic_parity")
@documented(before="0.30", after="0.05")
class DemographicParity(SelectionParity):
    """Bound the difference of selection rates between groups.

    The selection rate of a group is the share of its rows that are predicted positive.
    """

    parity = "demographic_parity"


@CONSTRAINTS.register("equal_opportunity")
@documented(before="0.36", after="0.04")
class EqualOpportunity(SelectionParity):
    """Bound the difference of true positive rates between groups.

    The true positive rate of a group is the share of its positive rows that are predicted
    positive.
    """

    parity = "equal_opportunity"
    subset = "positive"


@CONSTRAINTS.register("false_positive_parity")
@documented(before="0.12", after="0.01")
class FalsePositiveParity(SelectionParity):
    """Bound the difference of false positive rates between groups.

    The false positive rate of a group is the share of its negative rows that are predicted
    positive.
    """

    parity = "false_positive_parity"
    subset = "negative"


@CONSTRAINTS.register("false_negative_parity")
@documented(before="0.36", after="0.04")
class FalseNegativeParity(RateParity):
    """Bound the difference of false negative rates between groups.

    The false negative rate of a group is the share of its positive rows that are predicted
    negative. Its differences equal the differences of true positive rates, so this constraint on
    differences is the same as equal opportunity. Ratios are not the same: false negative rates of
    1% and 2% have a ratio of 0.5, but true positive rates of 99% and 98% have a ratio of 0.99.
    """

    parity = "false_negative_parity"
    subset = "positive"

    def moment(self, rows: TrainingRows) -> Moment:  # noqa: D102 (inherited)
        return Rate(np.full(rows.targets.size, -1.0))  # counts negative predictions


@CONSTRAINTS.register("equalized_odds")
@documented(before="0.36", after="0.04")
class EqualizedOdds(SelectionParity):
    """Bound the differences of true positive rates and of false positive rates between groups.

    Both differences are limited, so the larger of the two counts. This is equation (17) of plada.
    """

    parity = "equalized_odds"
    subset = "class"


@CONSTRAINTS.register("accuracy_parity")
@documented(before="0.10", after="0.05")
class AccuracyParity(RateParity):
    """Bound the difference of accuracies between groups.

    The accuracy of a group is the share of its rows that are predicted correctly.
    """

    parity = "accuracy_parity"
    counts_right = True

    def moment(self, rows: TrainingRows) -> Moment:  # noqa: D102 (inherited)
        return Rate(np.sign(rows.targets))  # counts the prediction that is the true class


@CONSTRAINTS.register("predictive_parity")
@documented(before="0.12", after="0.02")
class PredictiveParity(RateParity):
    r"""Bound the difference of precisions between groups.

    The precision of a group, also called positive predictive value, is the share of positive rows
    among its rows that are predicted positive. It counts as 0 if no row of the group is predicted
    positive.

    Precision is a quotient, :math:`r_g = p_g / s_g`, where :math:`p_g` is the share of true
    positives in group g, and :math:`s_g` is its selection rate. The limit applies to this quotient.
    Solvers use a linear approximation, :math:`(p_g - c \, s_g) / b_g`. It is the slope at a point
    at which as many rows are selected as are positive (:math:`b_g`), and at which the precision c
    is halfway between chance and 1. With ``enforce="strict"``, the limits of the approximation are
    adjusted until the quotients satisfy their limits. With ``enforce="surrogate"``, only the
    approximation is limited, and the quotients may differ by more.
    """

    parity = "predictive_parity"
    among_counted = True


class _BoundedRate(_OnRates, OneLimit):
    """The base of caps on rates, which bound the rate of every group and compare no groups."""

    comparison = "bounded"


@CONSTRAINTS.register("bounded_selection_rate")
@documented(before="0.60", after="0.05")
class BoundedSelectionRate(_BoundedRate):
    """Bound the selection rate of every group.

    ``max_disparity`` is the largest selection rate that is allowed. Groups are not compared with
    each other.
    """

    metric = "largest_selection_rate"


@CONSTRAINTS.register("bounded_false_positive_rate")
@documented(before="0.29", after="0.04")
class BoundedFalsePositiveRate(_BoundedRate):
    """Bound the false positive rate of every group.

    ``max_disparity`` is the largest false positive rate that is allowed. Groups are not compared
    with each other.
    """

    metric = "largest_false_positive_rate"
    subset = "negative"


@CONSTRAINTS.register("bounded_false_negative_rate")
@documented(before="0.51", after="0.04")
class BoundedFalseNegativeRate(_BoundedRate):
    """Bound the false negative rate of every group.

    ``max_disparity`` is the largest false negative rate that is allowed. Groups are not compared
    with each other.
    """

    metric = "largest_false_negative_rate"
    subset = "positive"
    moment = FalseNegativeParity.moment
