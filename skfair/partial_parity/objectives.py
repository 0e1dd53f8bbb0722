"""Objectives of partial parity, as one function of all scores.

:func:`skfair.partial_parity.fitting.make_objective` makes a :class:`BoundObjective` of ``loss=``: a
:class:`MeanLoss` over rows, a loss of pairs (:mod:`skfair.partial_parity.pair_losses`), or the
user's :class:`Objective` bound to the rows (:class:`Prepared`). The problem evaluates it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.losses import Loss
from skfair.utils.docs import documented
from skfair.utils.pieces import ROWS
from skfair.utils.threads import over_blocks


class BoundObjective(ABC):
    """A function of all scores of given rows, which is minimised."""

    targets: FloatArray  # (n_samples,): -1 and 1
    weights: FloatArray  # (n_samples,)
    # Whether descent converges to a gradient of zero. If not, there is no warning that it stopped
    # early
    is_smooth: ClassVar[bool] = False
    # Whether only rows in an interval of ranks count. These rows change with the ranking, so the
    # function has kinks, and descent may end at any of them. Fits then start from a solution by log
    # loss
    uses_interval: bool = False
    is_mean: ClassVar[bool] = False  # whether it is a mean over rows and thus has :meth:`on_rows`

    def on_rows(self, rows: IntArray, factors: FloatArray) -> BoundObjective:
        """Return the objective on some rows, each of which stands for ``factors`` rows."""
        raise NotImplementedError

    @abstractmethod
    def evaluate(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores."""

    @abstractmethod
    def share_right(self, scores: FloatArray) -> float:
        """Return the quality by which models are chosen, from 0 to 1, such as accuracy or AUC.

        Decisions have their threshold at 0.
        """


class MeanLoss(BoundObjective):
    """The weighted mean of a convex loss."""

    is_smooth = is_mean = True

    def __init__(self, loss: Loss, targets: FloatArray, weights: FloatArray) -> None:
        self.loss, self.targets, self.weights = loss, targets, weights

    def on_rows(self, rows: IntArray, factors: FloatArray) -> MeanLoss:
        """Return the mean over some rows, each of which stands for ``factors`` rows."""
        return MeanLoss(self.loss, self.targets[rows], self.weights[rows] * factors)

    def evaluate(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores."""
        slopes = np.empty(scores.size)

        def of_block(i: int, j: int) -> float:
            loss = self.loss.parts(scores[i:j], self.targets[i:j])
            np.multiply(loss.slope, self.weights[i:j], out=slopes[i:j])
            return float(self.weights[i:j] @ loss.value)

        return sum(over_blocks(of_block, scores.size, ROWS)), slopes

    def share_right(self, scores: FloatArray) -> float:
        return float(self.weights @ ((scores > 0) == (self.targets > 0)))


@documented
class Objective(ABC):
    """Base class of objectives that are a function of all scores.

    Subclass it and pass an instance as ``PartialParityClassifier(loss=...)`` if the objective is
    not a mean of losses of single rows. Most solvers expect a function that is convex in the
    scores. Solvers for differences of convex functions also accept other functions, for which
    :meth:`minus` returns the convex function to add.

    Examples
    --------
    This objective is a hinge loss with a small margin.

    >>> import numpy as np
    >>> from skfair.classification import PartialParityClassifier
    >>> from skfair.partial_parity.objectives import Objective
    >>> class Perceptron(Objective):
    ...     def evaluate(self, scores, targets, weights):
    ...         wrong = np.maximum(0.1 - targets * scores, 0.0)
    ...         return float(weights @ wrong), -weights * targets * (wrong > 0)
    >>> rng = np.random.default_rng(0)
    >>> X, sex = rng.normal(size=(200, 2)), rng.choice(["f", "m"], 200)
    >>> y = X[:, 0] > 0
    >>> model = PartialParityClassifier((0.1, 0.5), max_disparity=0.3, loss=Perceptron())
    >>> bool(model.fit(X, y, sensitive_features=sex).score(X, y) > 0.9)
    True
    """

    @abstractmethod
    def evaluate(
        self, scores: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return the value of the objective and its derivatives with respect to the scores.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            The scores.
        targets : ndarray of shape (n_samples,)
            The true classes, as -1 and 1.
        weights : ndarray of shape (n_samples,)
            The weights of the rows, with a sum of 1.

        Returns
        -------
        value : float
            Value of the objective.
        slopes : ndarray of shape (n_samples,)
            Derivative with respect to each score.
        """

    def minus(
        self, scores: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> tuple[float, FloatArray]:
        """Return a convex function that makes the objective convex when it is added.

        Returns
        -------
        value : float
            Value of the function, which is 0 unless a subclass overrides the method.
        slopes : ndarray of shape (n_samples,)
            Derivative with respect to each score.
        """
        return 0.0, np.zeros(scores.size)

    def share_right(self, scores: FloatArray, targets: FloatArray, weights: FloatArray) -> float:
        """Return the quality of scores, by which models are chosen. The default is the accuracy.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            The scores, with the decision threshold at 0.

        Returns
        -------
        share : float
            Fraction of correct decisions. It lies between 0 and 1, and larger is better.
        """
        return float(weights @ ((scores > 0) == (targets > 0)))

    def prepare(self, targets: FloatArray, weights: FloatArray) -> BoundObjective:
        """Bind the objective to the targets and weights of the rows.

        Returns
        -------
        bound : BoundObjective
            The objective as a function of the scores only.
        """
        return Prepared(self, targets, weights)


class Prepared(BoundObjective):
    """A user's objective on given rows."""

    def __init__(self, of_user: Objective, targets: FloatArray, weights: FloatArray) -> None:
        self.of_user, self.targets, self.weights = of_user, targets, weights

    def evaluate(self, scores: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores."""
        value, slopes = self.of_user.evaluate(scores, self.targets, self.weights)
        if np.shape(slopes) != scores.shape:
            raise ValueError(
                f"{type(self.of_user).__name__}.evaluate must return the value and one slope for "
                f"each of {scores.size} rows, got slopes of shape {np.shape(slopes)}."
            )
        return float(value), np.asarray(slopes, dtype=np.float64)

    def share_right(self, scores: FloatArray) -> float:
        return float(self.of_user.share_right(scores, self.targets, self.weights))
