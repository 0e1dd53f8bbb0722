r"""Stochastic alternating gradient descent for two smooth objectives (SA2GD).

Algorithm 4 and Theorem 5.1 of the paper on stochastic alternating balance k-means (safairkm): each
iteration makes ``n_a`` stochastic gradient steps on the first objective and then ``n_b`` on the
second, all of one length. With the step length of the theorem the iterates approach the minimiser
of the weighted sum whose weights are the shares of the steps. So the two integers select a point of
the trade-off, and no objective is multiplied by a weight.

Changed against the paper: the step may be capped, because the first steps of the theorem, up to
``2 / (c (n_a + n_b))``, diverge if the objectives are much more curved in some directions than in
others. The step may also be constant or a function of the iteration. The run may end early at a
tolerance, and the weighted average of the iterates may be returned instead of the last one.

Glossary: c -> ``strong_convexity``, L -> ``lipschitz``, T -> ``max_iter``, g^a and g^b ->
``grad_a`` and ``grad_b``, xi -> the generator that the gradients receive.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import FloatArray, Seed
from skfair.solvers.base import SolverResult
from skfair.utils.endings import Status
from skfair.utils.history import History
from skfair.utils.validation import check_number, check_numbers

Gradient = Callable[[FloatArray, np.random.RandomState], FloatArray]
Step = Literal["harmonic"] | float | Callable[[int], float]


def alternating_gradient(
    grad_a: Gradient,
    grad_b: Gradient,
    x0: Any,
    *,
    n_a: int,
    n_b: int,
    step: Step = "harmonic",
    strong_convexity: float | None = None,
    lipschitz: float | None = None,
    max_iter: int = 1000,
    tol: float | None = None,
    average: bool = False,
    random_state: Seed = None,
    callback: Callable[[FloatArray], bool] | None = None,
) -> SolverResult:
    r"""Minimise a weighted sum of two smooth functions by gradient steps on each in turn.

    The objective is the weighted sum

    .. math:: \min_x \frac{n_a}{n_a + n_b} f^a(x) + \frac{n_b}{n_a + n_b} f^b(x)

    Iteration t makes :math:`n_a` steps :math:`x \leftarrow x - \alpha_t g^a(x)` and then
    :math:`n_b` steps :math:`x \leftarrow x - \alpha_t g^b(x)`. The gradients may be estimates from
    random samples. All pairs :math:`(n_a, n_b)` with one sum trace out the trade-off between the
    two functions.

    Parameters
    ----------
    grad_a : callable
        Gradient of the first function, which is called as ``grad_a(x, rng)`` and returns an array
        of the shape of ``x``. It may be an unbiased estimate that is drawn with ``rng``, a
        :class:`numpy.random.RandomState`. It must not change ``x``.
    grad_b : callable
        Gradient of the second function, with the same arguments.
    x0 : array-like
        Starting point, which is an array of any shape.
    n_a : int
        Number of gradient steps on the first function per iteration.
    n_b : int
        Number of gradient steps on the second function per iteration. The two numbers of steps must
        not both be 0.
    step : "harmonic", float or callable, default="harmonic"
        Length :math:`\alpha_t` of the steps. If "harmonic", it is the length of the theorem,
        :math:`2 / (c (t + 1) (n_a + n_b))`, which requires ``strong_convexity``. A number is a
        constant length. A function is called with the number of the iteration, from 0.
    strong_convexity : float, default=None
        A number c > 0 for which both functions are c-strongly convex. With smaller values, the
        steps are longer.
    lipschitz : float, default=None
        A Lipschitz constant L of both gradients. If given, the length of a step is at most
        :math:`1 / (L (n_a + n_b))`, regardless of ``step``. It is recommended if L is much larger
        than c.
    max_iter : int, default=1000
        Number of iterations, each of which needs ``n_a + n_b`` gradients.
    tol : float, default=None
        Tolerance of the stopping test. The run ends if the norm of the mean gradient of an
        iteration is at most this number, which hardly ever happens with noisy gradients. If None,
        all iterations are made.
    average : bool, default=False
        If True, the mean of the iterates is returned, where the iterate of iteration t has weight
        t. It is less noisy than the last iterate. For convex functions, its value is at most the
        weighted mean of the values of the iterates. If False, the last iterate is returned.
    random_state : int, RandomState instance or None, default=None
        Seed of the random number generator that both gradients receive. Pass an int for
        reproducible results.
    callback : callable, default=None
        Function that is called with x after each iteration. The run ends if it returns True.

    Returns
    -------
    result : SolverResult
        The result, in which ``theta`` is the final point in the shape of ``x0``, and
        ``multipliers`` is empty. The columns of ``history`` are ``step``, ``gradient_norm`` (the
        norm of the mean gradient of the iteration) and ``seconds``. ``status`` is "converged" only
        if ``tol`` was reached.

    See Also
    --------
    Smooth : Alternating gradient steps for clusterings.

    Notes
    -----
    An iteration costs ``n_a + n_b`` gradients. For strongly convex functions with Lipschitz
    gradients, unbiased estimates of bounded variance and harmonic steps, the expected value of the
    weighted sum approaches its minimum like 1/T (Theorem 5.1, stated for the best iterate). The
    limit is the minimiser of the weighted sum only because the length of the steps tends to 0. With
    constant steps, the method ends in a neighbourhood of the minimiser whose size is proportional
    to the length of the steps. There is no guarantee for other smooth functions.

    The first steps have length 2 / (c (n_a + n_b)) and multiply errors by up to 2 L / c. Without
    ``lipschitz``, the iterates of a badly conditioned problem first move far away.

    References
    ----------
    Liu, S. and Vicente, L. N. "A stochastic alternating balance k-means algorithm for fair
    clustering", section 5 and Appendix E.

    Examples
    --------
    Three of four steps pull towards 0 and one towards 1: the weighted sum is least at 1/4.

    >>> from skfair.papers import alternating_gradient
    >>> def to_zero(x, rng):
    ...     return x + 0.1 * rng.normal(size=x.shape)
    >>> def to_one(x, rng):
    ...     return x - 1 + 0.1 * rng.normal(size=x.shape)
    >>> found = alternating_gradient(
    ...     to_zero, to_one, [5.0], n_a=3, n_b=1, strong_convexity=1.0, random_state=0
    ... )
    >>> found.theta.round(2)
    array([0.25])
    """
    check_number(n_a, "n_a", low=0, kind=Integral)
    check_number(n_b, "n_b", low=0, kind=Integral)
    check_number(max_iter, "max_iter", low=1, kind=Integral)
    if n_a + n_b == 0:
        raise ValueError(
            "n_a and n_b must not both be 0. Pass the number of gradient steps on each function, "
            "for example n_a=3 and n_b=1."
        )
    if tol is not None:
        check_number(tol, "tol", low=0)
    length = _step_lengths(step, n_a + n_b, strong_convexity, lipschitz)
    rng = check_random_state(random_state)
    x = check_numbers(x0, "x0").copy()
    mean = x.copy()
    history = History()
    status: Status = "max_iter"
    n_iter = 0
    for t in range(max_iter):
        alpha = length(t)
        total = np.zeros_like(x)
        for gradient, n_steps in ((grad_a, n_a), (grad_b, n_b)):
            for _ in range(n_steps):
                g = np.asarray(gradient(x, rng), dtype=np.float64)
                x = x - alpha * g  # a new array, because a callback may have kept the old one
                total += g
        n_iter = t + 1
        mean += 2 / (t + 2) * (x - mean)  # weight of iterate t: proportional to t + 1
        norm = float(np.linalg.norm(total)) / (n_a + n_b)
        history.record(step=alpha, gradient_norm=norm)
        if callback is not None and callback(x):
            status = "stopped"
            break
        if tol is not None and norm <= tol:
            status = "converged"
            break
    theta = mean if average else x
    return SolverResult(theta, np.empty(0), n_iter, status, history.as_dict())


def _step_lengths(
    step: Step, n_total: int, strong_convexity: float | None, lipschitz: float | None
) -> Callable[[int], float]:
    """Return the function t -> length of the steps of iteration t."""
    for name, value in {"strong_convexity": strong_convexity, "lipschitz": lipschitz}.items():
        if value is not None and not (isinstance(value, Real) and float(value) > 0):
            raise ValueError(f"{name} must be a number above 0, got {value!r}.")
    longest = np.inf if lipschitz is None else 1 / (lipschitz * n_total)
    if step == "harmonic":
        if strong_convexity is None:
            raise ValueError(
                "step='harmonic' needs strong_convexity, the c in 2 / (c (t + 1) (n_a + n_b)). "
                "Pass strong_convexity=, or a number or a function as step."
            )
        first = 2 / (strong_convexity * n_total)
        return lambda t: min(first / (t + 1), longest)
    if callable(step):
        return lambda t: min(float(step(t)), longest)
    if not isinstance(step, Real) or not float(step) > 0:
        raise ValueError(
            "step must be 'harmonic', a number above 0 or a function of the iteration, got "
            f"{step!r}."
        )
    return lambda t: min(float(step), longest)
