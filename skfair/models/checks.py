"""Checks that a user's score model behaves as solvers expect.

Users call :func:`check_score_model`, which runs the private checks in the order of this file. A
check raises an ``AssertionError`` if the model fails it.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, Rows
from skfair.models.plug_in import ScoreFunction

# The gradient is compared with finite differences in _DIRECTIONS random directions, and _ENOUGH of
# them must agree. A model with kinks, such as rectified linear units, may have a kink between the
# two points of a difference, so not all of them can be asked to.
_DIRECTIONS, _ENOUGH = 8, 6


def check_score_model(model: ScoreFunction, X: Rows, *, random_state: int = 0) -> None:
    """Check whether a score model can be used as ``model=`` of estimators.

    An ``AssertionError`` is raised for the first requirement that the model does not meet. The
    checks cover shapes, seeds, and copies. A score may depend only on its own row, gradients must
    agree with finite differences, and a tape must stay valid after later passes.

    Parameters
    ----------
    model : object
        The score model, which has ``n_parameters``, ``start``, ``forward`` and ``pullback`` as
        described in :class:`~skfair.models.ScoreFunction`.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Some rows to try the model on, at least 4.
    random_state : int, default=0
        Seed of the checks.

    See Also
    --------
    ScoreFunction : What a score model has.
    TorchScore : Makes one of a PyTorch module.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.models import check_score_model
    >>> class Linear:
    ...     n_parameters = 2
    ...
    ...     def start(self, rng):
    ...         return np.zeros(2)
    ...
    ...     def forward(self, theta, X):
    ...         return X @ theta, X
    ...
    ...     def pullback(self, tape, slopes):
    ...         return 2 * slopes @ tape  # twice the gradient
    >>> check_score_model(Linear(), np.eye(4, 2))
    Traceback (most recent call last):
    ...
    AssertionError: pullback is not the derivative of forward: ...
    """
    rng = np.random.RandomState(random_state)
    theta = _check_start(model, random_state)
    theta = theta + 0.1 * rng.standard_normal(theta.size)
    scores = _check_forward(model, theta, X, rng)
    single = scores.dtype == np.float32  # differences of float32 need longer steps
    _check_gradient(
        model, theta, X, rng, step=1e-2 if single else 1e-5, tol=3e-2 if single else 1e-4
    )
    _check_tapes(model, theta, X, rng)
    again = deepcopy(model).forward(theta, X)[0]
    assert np.array_equal(again, scores), "a copy (copy.deepcopy) has other scores"


def _check_start(model: ScoreFunction, seed: int) -> FloatArray:
    """Check ``n_parameters`` and ``start``; return the parameters to start from."""
    p = model.n_parameters
    assert isinstance(p, int | np.integer), f"n_parameters must be an integer, got {p!r}"
    assert p >= 1, f"n_parameters must be at least 1, got {p}"
    first, second = (model.start(np.random.RandomState(seed)) for _ in range(2))
    assert isinstance(first, np.ndarray), f"start must return an array, got {type(first).__name__}"
    assert first.shape == (p,), f"start has the shape {first.shape}, n_parameters says ({p},)"
    assert np.isfinite(first).all(), "start returns numbers that are not finite"
    assert np.array_equal(first, second), "start gives other parameters for the same seed"
    assert not np.shares_memory(first, second), "start returns the same array twice"
    return first.astype(np.float64)


def _check_forward(
    model: ScoreFunction, theta: FloatArray, X: Rows, rng: np.random.RandomState
) -> NDArray[Any]:
    """Check that scores depend on parameters and their own row only; return all of them."""
    n, copied = X.shape[0], theta.copy()
    scores = np.array(model.forward(theta, X)[0])
    assert scores.shape == (n,), f"forward has scores of shape {scores.shape} for {n} rows"
    assert np.isfinite(scores).all(), "forward returns scores that are not finite"
    assert np.array_equal(theta, copied), "forward changes the parameters"
    again = model.forward(theta, X)[0]
    assert np.array_equal(again, scores), "forward gives other scores when it is called again"
    rows = rng.permutation(n)[: max(1, n // 2)]
    part = model.forward(theta, X[rows])[0]
    close = np.allclose(part, scores[rows], rtol=1e-4, atol=1e-5 * max(1.0, np.abs(scores).max()))
    assert close, "the score of a row changes with the rows beside it"
    return scores


def _check_gradient(
    model: ScoreFunction,
    theta: FloatArray,
    X: Rows,
    rng: np.random.RandomState,
    *,
    step: float,
    tol: float,
) -> None:
    """Check that ``pullback`` is linear in the slopes, and the derivative of ``forward``."""
    scores, tape = model.forward(theta, X)
    slopes = rng.standard_normal(scores.size)
    gradient = np.asarray(model.pullback(tape, slopes), dtype=np.float64)
    assert gradient.shape == theta.shape, (
        f"pullback has the shape {gradient.shape}, the parameters have {theta.shape}"
    )
    doubled = np.asarray(model.pullback(tape, 2 * slopes), dtype=np.float64)
    assert np.allclose(doubled, 2 * gradient, rtol=1e-3, atol=1e-6), (
        "pullback of twice the slopes is not twice the gradient; it must be callable again"
    )
    n_right, last = 0, (0.0, 0.0)  # ``last``: the last pair of derivatives that differ
    for _ in range(_DIRECTIONS):
        direction = rng.standard_normal(theta.size)
        direction /= np.linalg.norm(direction)
        ahead, behind = (
            model.forward(theta + sign * step * direction, X)[0].astype(np.float64)
            for sign in (1, -1)
        )
        pair = float(slopes @ (ahead - behind)) / (2 * step), float(gradient @ direction)
        scale = max(1.0, float(np.linalg.norm(gradient)))
        if abs(pair[0] - pair[1]) <= tol * scale:
            n_right += 1
        else:
            last = pair
    assert n_right >= _ENOUGH, (
        f"pullback is not the derivative of forward: {last[1]:.6g} where differences of the scores "
        f"give {last[0]:.6g}"
    )


def _check_tapes(
    model: ScoreFunction, theta: FloatArray, X: Rows, rng: np.random.RandomState
) -> None:
    """Check that a tape is still valid after a pass with other parameters and rows."""
    n = X.shape[0]
    slopes: FloatArray = np.asarray(rng.standard_normal(n))
    expected = np.array(model.pullback(model.forward(theta, X)[1], slopes))
    tape = model.forward(theta.copy(), X)[1]
    model.forward(theta + 1.0, X[: max(1, n // 2)])
    gradient = model.pullback(tape, slopes)
    assert np.array_equal(gradient, expected), "a later pass changes what pullback makes of a tape"
