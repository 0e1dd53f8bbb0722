"""Losses in score space: value, slope and curvature of each row.

A loss sees scores and targets only, never parameters or groups. Targets of classifiers are -1 and
1. A margin is target times score. Every loss here is differentiable, because losses with a kink
(hinge, absolute error) are smoothed over a stated width. Solvers minimise the ``value`` that
:meth:`Loss.parts` returns. Limits and metrics read :meth:`Loss.exact`, without smoothing.

Estimators get a loss by :func:`make_loss`, which checks a user's loss at a few points.
:func:`check_loss` is the thorough check that users run themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.utils.registry import Registry

__all__ = [
    "Loss",
    "LogLoss",
    "Hinge",
    "SquaredHinge",
    "SquaredError",
    "AbsoluteError",
    "check_loss",
]

LOSSES: Registry[type[Loss]] = Registry("loss", "skfair.losses")

# Derivatives are compared with (f(s + _STEP) - f(s - _STEP)) / (2 _STEP), and may differ from this
# by _CLOSE. For smooth losses and scores around 1 the difference is 1e-9, and for a wrong factor it
# is about 1.
_STEP, _CLOSE = 1e-5, 1e-4
# check_loss tries this many points. At _AT_KINKS of them the derivative may be wrong, because a
# kink of the loss may lie within _STEP.
_POINTS, _AT_KINKS = 60, 2

# From this many rows on, kernels compute sigmoids and sums by cell. Compiling one takes 0.1 s once
# per machine, and both save 0.1 of the 0.15 ms that a block of 16,384 rows takes.
MANY_SCORES = 1 << 13


class RowParts(NamedTuple):
    """A function of the score, row by row: its value and its first two derivatives."""

    value: FloatArray
    slope: FloatArray
    curvature: FloatArray


def sigmoid_parts(scores: FloatArray) -> RowParts:
    """Return sigmoid(score) and its first two derivatives as new arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.losses import sigmoid_parts
    >>> sigmoid_parts(np.array([0.0])).slope.tolist()
    [0.25]
    """
    if scores.size >= MANY_SCORES:
        return _sigmoids_of_many(scores, np.exp(-np.abs(scores)))
    odds = np.exp(np.minimum(-scores, 700.0))  # exp(700) is 1e304, so nothing overflows
    odds += 1
    value = np.divide(1, odds, out=odds)
    slope = value * (1 - value)
    return RowParts(value, slope, slope * (1 - 2 * value))


def _sigmoids_of_many(scores: FloatArray, small: FloatArray) -> RowParts:
    """Return :func:`sigmoid_parts` by a kernel, given exp(-abs(scores))."""
    from skfair._kernels import row_parts

    parts = RowParts(*np.empty((3, scores.size)))
    row_parts.sigmoid_parts(scores, small, *parts)
    return parts


class Loss(ABC):
    """A loss of one row."""

    tasks: ClassVar[frozenset[str]] = frozenset({"classification"})  # tasks for which it is meant
    # If targets are measured in a unit, the loss is in this power of it: 2 for squared errors, 0 if
    # the loss has no unit
    degree: ClassVar[int] = 0
    # Whether scores are log-odds of the positive class: if a share p of rows is positive, their
    # mean loss is smallest at the score log(p / (1 - p))
    gives_probabilities: ClassVar[bool] = False
    is_convex: ClassVar[bool] = True  # whether the loss is convex in the score
    # Limits and metrics multiply the value by this number. It is 2 for squared errors, because half
    # of them is minimised, as in Ridge
    reported: ClassVar[float] = 1.0
    # An upper bound on the curvature. Tests and check_loss check it, and no solver reads it
    max_curvature: float

    @abstractmethod
    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row, as arrays that the caller may change."""

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the value of each row as it is reported. Losses that smooth a kink override it."""
        return self.reported * self.parts(scores, targets).value


@LOSSES.register("log_loss")
class LogLoss(Loss):
    """log(1 + exp(-margin)): the loss of logistic regression; gives probabilities."""

    gives_probabilities = True
    max_curvature = 0.25

    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row."""
        margins = targets * scores
        small = np.exp(-np.abs(margins))  # values in (0, 1], so nothing overflows
        value = np.log1p(small)
        value -= np.minimum(margins, 0)
        if margins.size >= MANY_SCORES:
            wrong = _sigmoids_of_many(-margins, small)
            return RowParts(value, -targets * wrong.value, wrong.slope)
        miss = np.maximum(small, margins < 0)  # exp(-max(margin, 0)), without a second exp
        miss /= 1 + small  # probability of the wrong class
        return RowParts(value, -targets * miss, miss * (1 - miss))


@LOSSES.register("hinge")
class Hinge(Loss):
    """max(0, 1 - margin), with a parabola of width ``smoothing`` in place of the kink."""

    def __init__(self, smoothing: float = 0.2) -> None:
        self.smoothing = _checked_width(smoothing)
        self.max_curvature = 1 / smoothing

    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row."""
        shortfall = 1 - targets * scores
        rise = np.clip(shortfall / self.smoothing, 0.0, 1.0)
        value = rise * (shortfall - 0.5 * self.smoothing * rise)
        is_curved = (shortfall > 0) & (shortfall < self.smoothing)
        return RowParts(value, -targets * rise, np.where(is_curved, 1 / self.smoothing, 0.0))

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the value of each row without smoothing."""
        return np.maximum(1 - targets * scores, 0)


@LOSSES.register("squared_hinge")
class SquaredHinge(Loss):
    """max(0, 1 - margin) squared."""

    max_curvature = 2.0

    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row."""
        shortfall = np.maximum(1 - targets * scores, 0)
        return RowParts(shortfall**2, -2 * targets * shortfall, np.where(shortfall > 0, 2.0, 0.0))


@LOSSES.register("squared_error")
class SquaredError(Loss):
    """The squared difference of score and target; half of it is minimised."""

    tasks = frozenset({"classification", "regression"})
    degree = 2
    reported = 2.0
    max_curvature = 1.0

    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row."""
        residual = scores - targets
        return RowParts(0.5 * residual**2, residual, np.ones_like(residual))


@LOSSES.register("absolute_error")
class AbsoluteError(Loss):
    """|score - target|, with a parabola within ``smoothing`` of zero."""

    tasks = frozenset({"regression"})
    degree = 1

    def __init__(self, smoothing: float = 0.05) -> None:
        self.smoothing = _checked_width(smoothing)
        self.max_curvature = 1 / smoothing

    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row."""
        residual = scores - targets
        slope = np.clip(residual / self.smoothing, -1.0, 1.0)
        value = slope * (residual - 0.5 * self.smoothing * slope)
        return RowParts(
            value, slope, np.where(np.abs(residual) < self.smoothing, 1 / self.smoothing, 0.0)
        )

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the value of each row without smoothing."""
        return np.abs(scores - targets)


class SmoothErrors(Loss):
    """Wrong decisions, counted by a steep sigmoid of the margin: nearly 1 - accuracy.

    The value is sigmoid(-steepness margin / unit) + anchor (score / unit)^2 / 2. The loss is not
    convex. The sigmoid alone would fall without end as scores grow, so the parabola keeps scores
    near the size ``unit``. ``enforcement/erm`` refines models with it. It has no name in the
    registry.
    """

    is_convex = False

    def __init__(
        self,
        steepness: float,  # steepness of the sigmoid, for scores in units of ``unit``
        unit: float,  # a usual size of scores
        anchor: float = 0.01,  # weight of the parabola
    ) -> None:
        self._slope, self._pull = steepness / unit, anchor / unit**2
        # The second derivative of a sigmoid is at most 1 / (6 sqrt(3)) = 0.096.
        self.max_curvature = self._slope**2 * 0.1 + self._pull

    def parts(self, scores: FloatArray, targets: FloatArray) -> RowParts:
        """Return value, slope and curvature of each row."""
        factor = -self._slope * targets
        wrong = sigmoid_parts(factor * scores)
        return RowParts(
            wrong.value + 0.5 * self._pull * scores**2,
            self._pull * scores + factor * wrong.slope,
            self._pull + self._slope**2 * wrong.curvature,
        )

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return 1 for each wrong decision and 0 for the others."""
        return np.asarray((scores > 0) != (targets > 0), dtype=np.float64)


def _checked_width(smoothing: float) -> float:
    """Return the width over which a kink is smoothed; raise unless it is positive."""
    if not smoothing > 0:
        raise ValueError(f"smoothing must be > 0, got {smoothing!r}.")
    return smoothing


def make_loss(loss: Any, task: str) -> Loss:
    """Return the loss of that name, or the given loss object, for "classification" or "regression".

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.losses import make_loss
    >>> loss = make_loss("log_loss", "classification")
    >>> loss.parts(np.array([0.0]), np.array([1.0])).value.round(4).item()  # log 2
    0.6931
    """
    made = LOSSES[loss]() if isinstance(loss, str) else loss
    if not isinstance(made, Loss):
        raise ValueError(f"loss must be a name or a skfair.losses.Loss, got {loss!r}.")
    if task not in made.tasks:
        fitting = [name for name in LOSSES if task in LOSSES[name].tasks]
        raise ValueError(f"loss={loss!r} is not for {task}. Choose one of {', '.join(fitting)}.")
    # A loss that a user has written is checked. For regression its values need not be finite,
    # because it may not be defined for the targets of the check.
    if not type(made).__module__.startswith("skfair."):
        _check_parts(made, is_finite=task == "classification")
    return made


def _check_parts(loss: Loss, *, is_finite: bool) -> None:
    """Raise if a loss does not return what solvers read, before they fail with an error of numpy.

    ``is_finite`` says that all numbers must be finite.
    """
    # The scores have many digits, because a loss hardly has a kink at such numbers.
    scores = np.array([-0.7134, 0.4271, 2.1937, -2.6413, 0.7718, -0.4629, 2.3174, -2.7351])
    targets = np.array([-1.0, -1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0])
    name = type(loss).__name__
    with np.errstate(all="ignore"):
        parts = loss.parts(scores, targets)
        if not isinstance(parts, RowParts):
            raise TypeError(
                f"{name}.parts must return skfair.losses.RowParts(value, slope, curvature), got "
                f"{type(parts).__name__}."
            )
        exact = loss.exact(scores, targets)
    for part, values in (*parts._asdict().items(), ("exact", exact)):
        if np.shape(values) != scores.shape:
            raise ValueError(
                f"{name} returns a {part} of shape {np.shape(values)} for scores of shape "
                f"{scores.shape}. Return one number for each score."
            )
        if is_finite and not np.isfinite(values).all():
            raise ValueError(
                f"{name} returns a {part} that is not finite: {np.asarray(values).tolist()} for "
                f"scores {scores.tolist()} and targets {targets.tolist()}."
            )
    wrong = _wrong_derivative(loss, "value", "slope", scores, targets, n_allowed=0)
    if wrong:
        raise ValueError(f"{name}: {wrong} Try skfair.losses.check_loss({name}()).")


def _wrong_derivative(
    loss: Loss,
    name: str,
    derivative: str,
    scores: FloatArray,
    targets: FloatArray,
    n_allowed: int = _AT_KINKS,  # number of points at which the derivative may be wrong
) -> str:
    """Return a sentence that says how a derivative is wrong; "" if it is right.

    ``name`` is the part of :class:`RowParts` that is differentiated, and ``derivative`` is the part
    that should be its derivative.
    """
    with np.errstate(all="ignore"):
        ahead, behind = (
            getattr(loss.parts(scores + sign * _STEP, targets), name) for sign in (1, -1)
        )
        differences = (np.asarray(ahead) - behind) / (2 * _STEP)
        claimed = np.asarray(getattr(loss.parts(scores.copy(), targets.copy()), derivative))
        is_far = abs(differences - claimed) > _CLOSE * np.maximum(1, abs(differences))
    # Infinite values make differences that are NaN. A comparison with NaN is false, so they pass.
    places = np.flatnonzero(is_far)
    if places.size <= n_allowed:
        return ""
    i = places[0]
    return (
        f"the {derivative} is {claimed[i]:.6g} at the score {scores[i]:.3g} of the target "
        f"{targets[i]:.3g}, but differences of the {name} give {differences[i]:.6g}. It must be "
        f"the derivative of the {name} with respect to the score."
    )


def check_loss(loss: Loss, *, random_state: int = 0) -> None:
    """Check whether a loss can be used as ``loss=`` of estimators.

    An ``AssertionError`` is raised for the first requirement that the loss does not meet. The
    checks cover shapes and finite numbers. The loss of a row may depend only on this row, and
    ``parts`` may not change its arguments. The slope must agree with finite differences of the
    value, and the curvature with finite differences of the slope. A loss may have a few kinks,
    where it has no slope. No curvature may be larger than ``max_curvature``. If the loss claims to
    be convex, no curvature may be negative. If it claims to give probabilities, the mean loss must
    be least at the log-odds.

    Parameters
    ----------
    loss : Loss
        The loss.
    random_state : int, default=0
        Seed of the scores and targets on which the loss is checked.

    See Also
    --------
    skfair.models.check_score_model : The same for score models.

    Notes
    -----
    Estimators themselves compare the slope of a user's loss at a few points before they use it, and
    raise a ``ValueError`` if it is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.losses import Loss, RowParts, check_loss
    >>> class Exponential(Loss):
    ...     is_convex, max_curvature = True, np.inf
    ...
    ...     def parts(self, scores, targets):
    ...         value = np.exp(-targets * scores)
    ...         return RowParts(value, targets * value, value)  # a sign is missing
    >>> check_loss(Exponential())
    Traceback (most recent call last):
    ...
    AssertionError: the slope is ... but differences of the value give ...
    """
    assert isinstance(loss, Loss), f"a loss must inherit from skfair.losses.Loss, got {loss!r}"
    rng = np.random.RandomState(random_state)
    for task in sorted(loss.tasks):
        scores, numbers = 2 * rng.standard_normal(_POINTS), rng.standard_normal(_POINTS)
        targets = np.sign(numbers) if task == "classification" else numbers
        _check_rows(loss, scores, targets, must_be_finite=task == "classification")


def _check_rows(
    loss: Loss, scores: FloatArray, targets: FloatArray, *, must_be_finite: bool
) -> None:
    """Do the checks of :func:`check_loss` on some rows."""
    arguments = scores.copy(), targets.copy()
    with np.errstate(all="ignore"):
        parts = loss.parts(*arguments)
        assert isinstance(parts, RowParts), (
            f"parts must return skfair.losses.RowParts, got {type(parts).__name__}"
        )
        assert np.array_equal(arguments, (scores, targets)), (
            "parts changes the scores or the targets"
        )
        is_new = not any(np.shares_memory(part, array) for part in parts for array in arguments)
        assert is_new, "parts returns the scores or the targets themselves, not new arrays"
        for name, values in (*parts._asdict().items(), ("exact", loss.exact(scores, targets))):
            shape = np.shape(values)
            assert shape == scores.shape, f"{name} has the shape {shape} for {scores.size} rows"
            is_finite = np.isfinite(values).all()
            assert is_finite or not must_be_finite, f"{name} has numbers that are not finite"
        for name, values in loss.parts(scores[:7], targets[:7])._asdict().items():
            whole = getattr(parts, name)[:7]
            is_same = np.allclose(values, whole, rtol=1e-9, atol=1e-12, equal_nan=True)
            assert is_same, f"the {name} of a row changes with the rows beside it"
        for name, derivative in (("value", "slope"), ("slope", "curvature")):
            wrong = _wrong_derivative(loss, name, derivative, scores, targets)
            assert not wrong, wrong
        least, most = np.nanmin(parts.curvature), np.nanmax(parts.curvature)
    assert least >= 0 or not loss.is_convex, (
        f"is_convex is True, but there is a curvature of {least:.6g}"
    )
    if loss.gives_probabilities:
        share, log_odds = np.array([0.1, 0.5, 0.8]), np.log([1 / 9, 1.0, 4.0])
        right, wrong_way = (loss.parts(log_odds, np.full(3, t)).slope for t in (1.0, -1.0))
        assert np.allclose(share * right + (1 - share) * wrong_way, 0, atol=1e-6), (
            "gives_probabilities is True, but the mean loss is not least at the log-odds"
        )
    bound = loss.max_curvature
    assert most <= bound * (1 + 1e-9), (
        f"max_curvature is {bound:.6g}, but a curvature is {most:.6g}"
    )


def gives_probabilities(loss: object) -> bool:
    """Whether a loss, given by its name or as an object, makes scores that are log-odds.

    Examples
    --------
    >>> from skfair.losses import gives_probabilities
    >>> gives_probabilities("log_loss"), gives_probabilities("hinge")
    (True, False)
    """
    if isinstance(loss, str):
        return loss in LOSSES and LOSSES[loss].gives_probabilities
    return isinstance(loss, Loss) and loss.gives_probabilities
