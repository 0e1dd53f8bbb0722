r"""Losses of pairs of a positive and a negative row: the AUC and the partial AUC as objectives.

.. math:: f(z) = \sum_{i \in +} \sum_{j \in -} u_i v_j \, \ell(z_i - z_j)

These are (81) and (83) of partial_fairness_idca. u are the weights of the positives. v are the
masses of the negatives inside a union of percentile intervals of their ranks from the top. Both
have a sum of 1. (Rows at the ends of an interval count in part, and tied rows share.) The masses v
depend on the ranking, but slopes take them as constant.

Users pass :class:`PairLoss` or a name of ``PAIR_LOSSES``. A fit binds it to its rows as a
:class:`PairwiseLoss`. Losses are splines, so that sums over pairs take O(n log n)
(:mod:`skfair.partial_parity.row_pairs`). A spline is 0 on one side, so the quadratic loss, which
rises again beyond 1, is summed in two halves. The logistic loss is replaced by a cubic spline that
differs by at most 2e-6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.groups.intervals import check_interval
from skfair.partial_parity.objectives import BoundObjective, Objective
from skfair.partial_parity.row_pairs import PairTerm, RankedRows, Spline
from skfair.utils.docs import documented

Kind = Literal["squared_hinge", "quadratic", "hinge", "logistic"]


def _softplus() -> Spline:
    """Return log(1 + exp(x)) as a cubic spline that has its values and slopes at the knots."""
    half = np.concatenate([np.arange(0, 4, 0.2), np.arange(4, 8, 0.4), np.arange(8, 17, 1.0)])
    knots = np.concatenate([-half[:0:-1], half])
    value, slope = np.logaddexp(0, knots), 1 / (1 + np.exp(-knots))
    value[0] = slope[0] = 0.0  # instead of 1e-7, so that the ends are straight lines
    value[-1], slope[-1] = knots[-1], 1.0
    width = np.diff(knots)
    rise = np.diff(value) / width
    coefs = np.zeros((knots.size, 4))
    coefs[:, 0], coefs[:, 1] = value, slope
    coefs[:-1, 2] = (3 * rise - 2 * slope[:-1] - slope[1:]) / width
    coefs[:-1, 3] = (slope[:-1] + slope[1:] - 2 * rise) / width**2
    return Spline(knots, coefs)


# The falling half of each loss as a function of z_j - z_i (so that it is 0 on the left, as splines
# are), and its rising half as a function of z_i - z_j.
_FALLING = {
    "squared_hinge": Spline.of({-1: (0, 0, 1)}),
    "quadratic": Spline.of({-1: (0, 0, 0.5)}),
    "hinge": Spline.of({-1: (0, 1)}),
    "logistic": _softplus(),
}
_RISING = {"quadratic": Spline.of({1: (0, 0, 0.5)})}


class PairwiseLoss(BoundObjective):
    r"""The mean loss over pairs of a positive and a negative row, (81), or of some of them, (83).

    Notes
    -----
    O(n log n) per evaluation. The hinge has corners, where a slope of it is a subgradient.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.partial_parity.pair_losses import PairwiseLoss
    >>> objective = PairwiseLoss(np.array([1.0, 1.0, -1.0]), np.ones(3))
    >>> value, slopes = objective.evaluate(np.array([2.0, 0.5, 0.0]))
    >>> value, slopes
    (0.125, array([ 0. , -0.5,  0.5]))
    """

    def __init__(
        self,
        targets: FloatArray,  # (n_samples,): -1 and 1
        weights: FloatArray,  # (n_samples,): weights of the rows; a pair weighs their product
        # (n_intervals, 2): intervals of the false positive rate, which is the rank among negatives
        # from the top. Only negatives inside count, (83). If None, all count
        interval: FloatArray | None = None,
        *,
        # The loss: :math:`\max(1 - x, 0)^2`, :math:`(1 - x)^2 / 2`, :math:`\max(1 - x, 0)` or
        # :math:`\log(1 + e^{-x})`
        kind: Kind = "squared_hinge",
    ) -> None:
        if kind not in _FALLING:
            raise ValueError(f"kind must be one of {', '.join(map(repr, _FALLING))}, got {kind!r}.")
        self._classes = {"positive": np.flatnonzero(targets > 0)}
        self._classes["negative"] = np.flatnonzero(targets <= 0)
        for name, rows in self._classes.items():
            if not weights[rows].sum() > 0:
                raise ValueError(f"The AUC compares rows of both classes; there is no {name} row.")
        self.uses_interval = interval is not None
        self.intervals = check_interval((0.0, 1.0) if interval is None else interval)
        self._kind = kind
        self.targets, self.weights = targets, weights

    def ranked(self, scores: FloatArray) -> list[RankedRows]:
        """Return the positives and the negatives, sorted by their scores."""
        return [RankedRows(rows, scores, self.weights[rows]) for rows in self._classes.values()]

    def evaluate(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores, O(n log n)."""
        positives, negatives = self.ranked(scores)
        low, high, _ = negatives.masses(self.intervals)
        return self.total(positives, negatives, high - low, high - low)

    def total(
        self,
        positives: RankedRows,
        negatives: RankedRows,
        falling: FloatArray,  # (n_negatives,): masses v for the falling half of the loss
        rising: FloatArray,  # (n_negatives,): masses v for its rising half
    ) -> tuple[float, FloatArray]:
        """Return the sum over pairs and its slopes by the scores.

        For the loss itself both halves have the same masses. Algorithms of papers that split it
        into convex parts pass different ones.
        """
        terms = [PairTerm(negatives, falling, positives, positives.shares, _FALLING[self._kind])]
        if self._kind in _RISING:
            spline = _RISING[self._kind]
            terms.append(PairTerm(positives, positives.shares, negatives, rising, spline))
        slopes = np.zeros(self.targets.size)
        for term in terms:
            term.add_slopes(1.0, slopes)
        return sum(term.value() for term in terms), slopes

    def share_right(self, scores: FloatArray) -> float:
        """Return the (partial) AUC: the share of pairs in the right order, ties counting half."""
        positives, negatives = self.ranked(scores)
        low, high, _ = negatives.masses(self.intervals)
        below = np.concatenate([[0.0], np.cumsum(high - low)])
        ends = [
            below[np.searchsorted(negatives.scores, positives.scores, side=side)]
            for side in ("left", "right")
        ]
        return float(positives.shares @ np.mean(ends, axis=0))


@documented
@dataclass(frozen=True)
class PairLoss(Objective):
    r"""Mean loss over pairs of a positive and a negative row, which approximates 1 - AUC.

    Pass it as ``PartialParityClassifier(loss=...)`` to train a model that ranks positive rows above
    negative ones. The difference of the two scores of each pair enters a loss :math:`\ell`, and the
    objective is the weighted mean over all pairs,

    .. math:: f(z) = \sum_{i \in +} \sum_{j \in -} u_i v_j \, \ell(z_i - z_j)

    where the weights u of the positive rows and the weights v of the negative rows in the interval
    each have a sum of 1. These are equations (81) and (83) of the paper on partial fairness.

    Parameters
    ----------
    kind : {"squared_hinge", "quadratic", "hinge", "logistic"}, default="squared_hinge"
        Loss of a pair whose scores differ by x. "squared_hinge" is :math:`\max(1 - x, 0)^2`,
        "quadratic" is :math:`(1 - x)^2 / 2`, "hinge" is :math:`\max(1 - x, 0)`, and "logistic" is
        :math:`\log(1 + e^{-x})` with an error of at most 2e-6.
    interval : pair or list of pairs, default=None
        Interval of the false positive rate for a partial AUC. It consists of fractions of the
        negative rows, counted from the one with the highest score. If None, all negative rows are
        used.

    See Also
    --------
    PartialParityClassifier : Takes it as ``loss``.

    Notes
    -----
    One evaluation costs O(n log n).

    Examples
    --------
    A model that is trained with this loss ranks about 89% of the pairs correctly.

    >>> import numpy as np
    >>> from sklearn.metrics import roc_auc_score
    >>> from skfair.classification import PairLoss, PartialParityClassifier
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 600)
    >>> X = rng.normal(size=(600, 3))
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5
    >>> loss = PairLoss("hinge", interval=(0.0, 0.2))
    >>> model = PartialParityClassifier(max_disparity=0.2, loss=loss)
    >>> scores = model.fit(X, y, sensitive_features=sex).decision_function(X)
    >>> print(f"AUC {roc_auc_score(y, scores):.2f}")
    AUC 0.89
    """

    kind: Kind = "squared_hinge"
    interval: Any = None

    def evaluate(
        self, scores: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the mean loss and its derivatives with respect to the scores.

        Returns
        -------
        value : float
            Mean loss of the pairs.
        slopes : ndarray of shape (n_samples,)
            Derivative with respect to each score.
        """
        return self.prepare(targets, weights).evaluate(scores)

    def prepare(self, targets: FloatArray, weights: FloatArray) -> PairwiseLoss:
        """Bind the objective to the targets and weights of the rows.

        Returns
        -------
        bound : BoundObjective
            The objective as a function of the scores only.
        """
        return PairwiseLoss(targets, weights, self.interval, kind=self.kind)


# Losses of pairs by the names that users write. "partial_auc" gets the interval of the constraint
# (see skfair.partial_parity.fitting.make_objective).
PAIR_LOSSES: dict[str, PairLoss] = {
    "auc": PairLoss(),
    "auc_hinge": PairLoss("hinge"),
    "auc_quadratic": PairLoss("quadratic"),
    "auc_logistic": PairLoss("logistic"),
    "partial_auc": PairLoss(),
}
