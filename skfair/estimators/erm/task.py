"""The learning task of the constrained estimators: targets of rows, their loss and their scale.

``fit`` makes a :class:`Task` by :func:`regression_task`, or for classifiers by
:func:`classification_task`. ``bind.py``, ``solve.py`` and ``report.py`` read it. Solvers see
standardised targets. Numbers in this unit are called "inside", and :class:`TargetScale` converts
them into the units of y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.constraints.bound import BoundConstraint
from skfair.estimators.erm.settings import Settings
from skfair.groups.training_data import TrainingData
from skfair.losses import Loss, make_loss
from skfair.utils.older import weights_of_classes
from skfair.utils.threads import over_blocks
from skfair.utils.validation import check_numbers


@dataclass(frozen=True)
class TargetScale:
    """Origin and scale of the targets: units of limits, losses and predictions.

    Inside, a target is (y - middle) / spread. For classes the middle is 0, and the spread is 1, or
    -1 if the first one of the sorted classes is the positive one.
    """

    middle: float = 0.0
    spread: float = 1.0
    # The loss in units of y is spread**degree times the loss inside. The degree is 2 for squares, 1
    # for absolute errors, and 0 for losses that do not scale, such as the losses of classes
    degree: int = 0

    @property
    def of_loss(self) -> float:
        """The factor from a loss inside to a loss in units of y."""
        return self.spread**self.degree

    @property
    def of_penalty(self) -> float:
        """The factor on ``alpha``, with which the penalty is on weights in units of y."""
        return self.spread ** (2 - self.degree) if self.degree else 1.0

    def of_constraint(self, constraint: BoundConstraint) -> float:
        """The factor from a disparity inside, of scores or of losses, to units of y."""
        return abs(self.spread) if constraint.moment.unit == "score" else self.of_loss

    def inside(self, scores: FloatArray) -> FloatArray:
        """Return numbers in units of y as numbers inside."""
        return (scores - self.middle) / self.spread


@dataclass(frozen=True, eq=False)
class Task:
    """The learning task: the target of each row, and how it is learned."""

    targets: FloatArray  # -1 and 1, or standardised numbers
    loss: Loss  # what is minimised
    loss_weights: FloatArray | None  # weights in the mean loss
    # Names of the negative and the positive class; None for regression
    class_names: tuple[Any, Any] | None
    scale: TargetScale  # converts targets and scores into units of y
    settings: Settings  # the parameters of the fit

    @property
    def total_weight(self) -> float:
        """Sum of the weights in the mean loss; the number of rows if there are none."""
        weights = self.loss_weights
        return float(self.targets.size if weights is None else weights.sum())


def regression_task(y: FloatArray, weights: FloatArray | None, settings: Settings) -> Task:
    """Return the task of a regressor: targets are standardised as far as the loss allows it."""
    loss, y = make_loss(settings.loss, "regression"), check_numbers(y, "y")
    middle = float(np.average(y, weights=weights)) if settings.fit_intercept else 0.0
    middle = middle if _is_of_residuals(loss, y, middle) else 0.0
    size = float(np.abs(y - middle).max()) or 1.0  # squares of huge targets would overflow
    spread = size * float(np.sqrt(np.average(((y - middle) / size) ** 2, weights=weights)))
    spread = spread if spread > 0 and loss.degree else 1.0
    if not 1e-150 < spread < 1e150:
        raise ValueError(
            f"y has a spread of {spread:.3g}, whose square is no floating-point number. Divide "
            "y by a power of ten."
        )
    scale = TargetScale(middle, spread, loss.degree)
    return Task(scale.inside(y), loss, weights, None, scale, settings)


def _is_of_residuals(loss: Loss, y: FloatArray, middle: float) -> bool:
    """Whether a loss stays the same if ``middle`` is subtracted from scores and targets.

    If not, as for Poisson's loss, the targets are not centred. The loss is compared for five
    quantiles of y as targets, with the same quantiles in another order as scores.
    """
    targets = np.quantile(y, np.linspace(0.0, 1.0, 5))
    scores = np.roll(targets, 2)
    with np.errstate(all="ignore"):
        unmoved, moved = (loss.parts(scores - by, targets - by).value for by in (0.0, middle))
        size = np.abs(unmoved).max(initial=0.0)
        return bool(np.allclose(unmoved, moved, rtol=1e-3, atol=1e-6 * size))


def classification_task(
    data: TrainingData,
    classes: NDArray[Any],  # two
    positive: Any,  # the one whose targets are 1
    settings: Settings,
) -> Task:
    """Return the task: targets are -1 and 1, and the loss weighs classes and samples."""
    weights, class_weight = data.sample_weight, settings.class_weight
    sign = 1.0 if classes.tolist()[1] == positive else -1.0  # the sign of scores, see TargetScale
    classes = classes[:: int(sign)]  # the positive one last
    if class_weight is not None:
        is_positive = data.y == classes[1]
        if isinstance(class_weight, str):
            _check_has_both(classes, is_positive, weights)
        of_class = weights_of_classes(class_weight, classes, data.y, weights)
        if not (np.isfinite(of_class).all() and of_class.min() >= 0 and of_class.any()):
            raise ValueError(
                f"class_weight={class_weight!r} must give weights >= 0, not all of them 0."
            )
        of_rows = of_class[is_positive.astype(np.intp)]
        weights = of_rows if weights is None else of_rows * weights
        if not weights.any():
            raise ValueError(
                f"class_weight={class_weight!r} gives these rows no weight at all. Pass rows of a "
                "class with a positive weight."
            )
    targets, loss = _signs(data.y, classes[1]), make_loss(settings.loss, "classification")
    names, scale = tuple(classes.tolist()), TargetScale(spread=sign)
    return Task(targets, loss, weights, names, scale, settings)


def _signs(y: NDArray[Any], positive: object) -> FloatArray:
    """Return 1 where a row is of the positive class, else -1."""
    signs = np.empty(y.size)

    def of_block(start: int, stop: int) -> None:
        own = signs[start:stop]
        np.multiply(y[start:stop] == positive, 2.0, out=own)
        own -= 1.0

    over_blocks(of_block, y.size)
    return signs


def _check_has_both(
    classes: NDArray[Any], is_positive: NDArray[np.bool_], weights: NDArray[Any] | None
) -> None:
    """Raise if a class has no row of positive weight, as may happen in a part of a stream."""
    counted = is_positive if weights is None else is_positive[weights > 0]
    if not counted.size or counted.all() or not counted.any():
        only = classes.tolist()[int(counted.any())]
        raise ValueError(
            "class_weight='balanced' needs rows (of positive weight) of both classes; all of these "
            f"are of class {only!r}. Pass a dict of weights, or parts that have both."
        )


def penalty_of(task: Task, earlier: float = 0.0) -> float:
    """Return the weight of the penalty for standardised targets.

    ``earlier`` is the weight of the earlier rows of a stream, which count in the default.
    """
    alpha = task.settings.alpha
    if alpha is None:  # the penalty is on weights inside, so predictions do not depend on the unit
        return 1 / (task.total_weight + earlier)
    return float(alpha) * task.scale.of_penalty
