r"""IPP-SSG: an inexact proximal point method, by switching subgradient steps.

F and G are not convex, but become so with a quadratic around a centre. Around the centre
:math:`\bar\theta` the method of Huang and Lin (2023) and its forerunners approximately solves

.. math:: \min_\theta F(\theta) + \frac{\gamma}{2} |\theta - \bar\theta|^2 \quad \text{subject to}
   \quad G(\theta) + \frac{\gamma}{2} |\theta - \bar\theta|^2 \le 0

by ``n_inner`` steps of ``ssg.py``, moves the centre to the last iterate, and repeats.
At a fixed point the quadratics vanish and the KKT conditions of the problem remain.

The differences from the paper in ``ssg.py`` apply here, too. Steps and tolerances fall over the
whole run, not within each problem. gamma is small, because the functions here are mildly non-convex
and a large gamma makes the centre crawl. The start may violate the constraints.

gamma -> weight of the quadratics, center -> theta bar, otherwise as in ``ssg.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from skfair.papers.plada.ssg import SSG
from skfair.solvers.base import SOLVERS
from skfair.solvers.parameters import Count, NonNegative
from skfair.utils.docs import documented


@documented
@SOLVERS.register("ipp_ssg")
@dataclass
class IPPSSG(SSG):
    r"""Inexact proximal points by switching subgradients.

    It looks for a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    eta : float, default=None
        First step size for the objective. If None, it is 1 / (L_F + gamma).
    schedule : {"geometric", "root"}, default="geometric"
        Decrease of the step sizes and tolerances. If "geometric", they decrease over the whole run
        from the first to the last value. If "root", they decrease like 1 / sqrt(k + 1) for each
        centre.
    output : {"best", "average"}, default="best"
        Iterates that are used as centres and as the result. If "best", the centre moves to the last
        iterate, and the result is chosen as in :class:`SSG`. If "average", both are averages of the
        iterates with an objective step, weighted with eta.
    proximal : float, default=0.01
        Weight gamma of the proximal term, in units of L_F. Larger values make each problem easier
        and require more centres.
    n_inner : int, default=50
        Number of steps for each centre.

    See Also
    --------
    SSG : The same method without centres.
    IPPConEx : Primal-dual method with centres, which has multipliers.

    Notes
    -----
    Cost, multipliers, status and accuracy are the same as for :class:`SSG`.

    Examples
    --------
    >>> from skfair.solvers.base import SOLVERS
    >>> SOLVERS["ipp_ssg"](n_inner=100).n_inner
    100
    """

    proximal: NonNegative = 0.01  # type: ignore[misc]
    n_inner: Count = 50  # type: ignore[misc]

    @classmethod
    def paper(cls) -> IPPSSG:
        """Return the solver as in the paper, with averages and steps like 1 / sqrt(k + 1).

        The papers state no numbers. Here gamma is 1 in units of L_F, which is above all constants
        of weak convexity. These parameters are known to fail. The centre moves about as slowly as
        with gradient steps, at ``n_inner`` times their cost.

        Returns
        -------
        solver : IPPSSG
            A solver with these parameters.
        """
        return cls(schedule="root", constraint_step="equal", output="average", proximal=1.0)
