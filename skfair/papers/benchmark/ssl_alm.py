r"""Stochastic smoothed and linearised augmented Lagrangian (SSL-ALM).

Algorithm 2 of the paper that compares stochastic solvers: the augmented Lagrangian of
``alm.py`` plus a smoothing term :math:`\frac{\mu}{2} |x - z|^2` whose anchor z
follows the iterates x. As in ``alm.py``, x also holds the slack variables, if there are any.
The default differs from the paper in the same way as :class:`~skfair.solvers.ALM`.
``SSLALM.paper()`` has the printed steps and values. Its batches differ from the printed ones, as
``ALM.paper`` explains.

point -> x = (theta, slack variables), anchor -> z, mu -> weight of the term, beta -> step of z.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from skfair._typing import FloatArray
from skfair.problems.protocol import StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.alm import ALM, ALMState
from skfair.solvers.parameters import NonNegative, Share
from skfair.utils.docs import documented


@dataclass(kw_only=True)
class SSLALMState(ALMState):
    """State of an augmented Lagrangian with a smoothing term."""

    anchor: FloatArray  # the point that the term pulls to


@documented
@SOLVERS.register("ssl_alm")
@dataclass
class SSLALM(ALM):
    r"""Stochastic augmented Lagrangian with a smoothing term.

    Parameters
    ----------
    mu : float, default=2.0
        Weight of the smoothing term.
    beta : float, default=0.5
        Fraction of the distance to the iterate by which the anchor moves in each step, in (0, 1].
        Smaller values make the smoothing stronger.

    See Also
    --------
    skfair.solvers.ALM : The same method without the smoothing term.

    Notes
    -----
    Cost and accuracy are the same as for :class:`~skfair.solvers.ALM`. With ``mu`` and ``beta`` of
    the paper, the anchor is two steps behind the iterate, so the term has little effect.

    References
    ----------
    Kliachkin, A., Lepsova, J., Bareilles, G. and Marecek, J. "Benchmarking stochastic approximation
    algorithms for fairness-constrained training of deep neural networks", Algorithm 2.

    Examples
    --------
    >>> from skfair.papers.benchmark.ssl_alm import SSLALM
    >>> solver = SSLALM.paper()
    >>> solver.mu, solver.beta, solver.rho
    (2.0, 0.5, 1.0)
    """

    mu: NonNegative = 2.0
    beta: Share = 0.5

    @classmethod
    def paper(cls) -> Self:
        """Return the solver with the parameters of section 4 of the paper.

        The batches differ from the paper, which does not state their sizes. The algorithm draws the
        rows of the loss, xi, separately from the rows of the constraints, zeta. :meth:`ALM.paper`
        explains when the two are the same rows here.

        Returns
        -------
        solver : SSLALM
            A solver with these parameters.
        """
        # The defaults are the same numbers. They are repeated here, so that this method still
        # returns the values of the paper if a default changes.
        return replace(super().paper(), mu=2.0, beta=0.5)

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> SSLALMState:
        state = super().begin(problem, theta0, multipliers0)
        return SSLALMState(**vars(state), anchor=state.point.copy())

    def _descend(self, state: Any, gradient: FloatArray) -> None:
        """Make a step along the gradient plus ``mu (x - z)``, the gradient of the smoothing term.

        Before x moves, the anchor z moves towards it (line 10). ``ALM`` calls this method in each
        step of training.
        """
        away = state.point - state.anchor
        state.anchor += self.beta * away
        super()._descend(state, gradient + self.mu * away)
