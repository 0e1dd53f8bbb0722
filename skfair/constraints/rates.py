"""Constraints on rates: shares of rows that are, or are not, predicted positive.

Parity constraints limit differences or ratios of rates between groups; bounded rates are caps that
every group keeps by itself.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair.constraints.base import CONSTRAINTS, Constraint, OneLimit, TrainingRows, documented
from skfair.constraints.comparisons import Comparison, make_comparison
from skfair.constraints.moments import Moment, Rate
from skfair.constraints.partial.rates import RateMoment
from skfair.losses import Loss
from skfair.utils.validation import check_number


class _OnRates(Constraint):
    """What constraints on rates share."""

    def moment(self, rows: TrainingRows) -> Moment:
        return Rate()

    def metric_options(self, loss: str | Loss, pos_label: object = None) -> dict[str, Any]:
        return {**super().metric_options(loss), "pos_label": pos_label}


class RateParity(_OnRates):
    """What parity of rates shares: the share of positive predictions among the rows that count.

    Parameters
    ----------
    max_disparity : float, default=None
        The limit of this constraint; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.
    comparison : {"difference", "ratio"}, default="difference"
        What the limit is on: the difference of two rates, or 1 minus the smaller over the larger.
    min_ratio : float, default=None
        The smallest ratio of two rates that is allowed: 0.8 is the four-fifths rule. It is the
        limit of this constraint, in place of ``comparison`` and ``max_disparity``.

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
        """Limit of the constraint, which goes before that of the estimator; None if it has none."""
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
        """Return how the rates of groups become one number.

        Returns
        -------
        comparison : Comparison
            An object that says so.
        """
        kind = self.comparison if self.min_ratio is None else "ratio"
        return make_comparison(kind, self.reference)

    @property
    def metric(self) -> str | None:
        """Name of the function of skfair.metrics that measures it; None if there is none."""
        suffix = self.compared().suffix
        return None if self.parity is None or suffix is None else self.parity + suffix


class _OfSelections(RateParity):
    """What parity of selection rates shares, among all rows or within classes: it has ranks."""

    tasks = frozenset({"classification", "intervals"})
    ranked = RateMoment


@CONSTRAINTS.register("demographic_parity")
@documented
class DemographicParity(_OfSelections):
    """Bound the difference of selection rates, the shares of positive predictions."""

    parity = "demographic_parity"


@CONSTRAINTS.register("equal_opportunity")
@documented
class EqualOpportunity(_OfSelections):
    """Bound the difference of true positive rates: selection among the positive class."""

    parity = "equal_opportunity"
    subset = "positive"


@CONSTRAINTS.register("false_positive_parity")
@documented
class FalsePositiveParity(_OfSelections):
    """Bound the difference of false positive rates: selection among the negative class."""

    parity = "false_positive_parity"
    subset = "negative"


@CONSTRAINTS.register("false_negative_parity")
@documented
class FalseNegativeParity(RateParity):
    """Bound the difference of false negative rates: rejection among the positive class.

    Differences are those of true positive rates, so equal opportunity is the same constraint;
    ratios are not, for 1% and 2% missed is a ratio of one half.
    """

    parity = "false_negative_parity"
    subset = "positive"

    def moment(self, rows: TrainingRows) -> Moment:  # noqa: D102 (inherited)
        return Rate(np.full(rows.targets.size, -1.0))


@CONSTRAINTS.register("equalized_odds")
@documented
class EqualizedOdds(_OfSelections):
    """Bound the differences of true and of false positive rates, (17) of plada: the larger one."""

    parity = "equalized_odds"
    subset = "class"


@CONSTRAINTS.register("accuracy_parity")
@documented
class AccuracyParity(RateParity):
    """Bound the difference of accuracies, the shares of right predictions."""

    parity = "accuracy_parity"
    counts_right = True

    def moment(self, rows: TrainingRows) -> Moment:  # noqa: D102 (inherited)
        return Rate(np.sign(rows.targets))


@CONSTRAINTS.register("predictive_parity")
@documented
class PredictiveParity(RateParity):
    r"""Bound the difference of precisions: the share of the positive class among the selected.

    The rate of a group of which nobody is selected counts as 0.

    This rate is a quotient, :math:`r_g = p_g / s_g`, of the shares of a group that are rightly
    selected and that are selected. What is reported and promised is that quotient. Solvers see a
    linear stand-in, :math:`(p_g - c \, s_g) / b_g`, its slope where as many rows are selected as
    are positive (:math:`b_g`) at a precision c half of the way from chance to 1. With
    ``enforce="strict"`` the limits of the stand-in are moved until the quotients keep theirs. With
    ``enforce="surrogate"`` the stand-in is limited and the quotients may differ by more.
    """

    parity = "predictive_parity"
    among_counted = True


class _BoundedRate(_OnRates, OneLimit):
    """What caps share: no group's rate is above ``max_disparity``; groups are not compared."""

    comparison = "bounded"


@CONSTRAINTS.register("bounded_selection_rate")
@documented
class BoundedSelectionRate(_BoundedRate):
    """Bound the selection rate of every group: at most this share is predicted positive."""

    metric = "largest_selection_rate"


@CONSTRAINTS.register("bounded_false_positive_rate")
@documented
class BoundedFalsePositiveRate(_BoundedRate):
    """Bound the false positive rate of every group: selection among the negative class."""

    metric = "largest_false_positive_rate"
    subset = "negative"


@CONSTRAINTS.register("bounded_false_negative_rate")
@documented
class BoundedFalseNegativeRate(_BoundedRate):
    """Bound the false negative rate of every group: rejection among the positive class."""

    metric = "largest_false_negative_rate"
    subset = "positive"
    moment = FalseNegativeParity.moment
