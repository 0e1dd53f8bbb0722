r"""IPP-SSG: an inexact proximal point method, by switching subgradient steps.

F and G are not convex, but become so with a quadratic around a centre. Around the centre
:math:`\bar\theta` the method of Huang and Lin (2023) and its forerunners approximately solves

.. math:: \min_\theta F(\theta) + \frac{\gamma}{2} |\theta - \bar\theta|^2 \quad \text{subject to}
   \quad G(\theta) + \frac{\gamma}{2} |\theta - \bar\theta|^2 \le 0

by ``n_inner`` steps of ``ssg.py``, puts the centre where they ended, and repeats.
At a fixed point the quadratics vanish and the KKT conditions of the problem remain.

Differences from the paper: those of ``ssg.py``; steps and tolerances fall over the
whole run, not within each problem; gamma is small, as what has to be made convex here is mildly
non-convex and a large gamma makes the centre crawl. The start need not keep the constraints.

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

    Looks for a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    eta : float, default=None
        First step for the objective; None for 1 / (L_F + gamma).
    schedule : {"geometric", "root"}, default="geometric"
        How steps and tolerances fall: over the whole run from first to last, or for each centre
        like 1 / sqrt(k + 1) from the first.
    output : {"best", "average"}, default="best"
        Whether the centre moves to the last iterate and the result is chosen as by :class:`SSG`, or
        centres and result are averages of the iterates with an objective step, weighted with eta.
    proximal : float, default=0.01
        gamma, in units of L_F. Larger ones make each problem easier and need more centres.
    n_inner : int, default=50
        Steps for each centre.

    See Also
    --------
    SSG : The same without centres.
    IPPConEx : The same with a primal-dual method, which has multipliers.

    Notes
    -----
    Cost, multipliers, status and accuracy are those of :class:`SSG`.

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
        """Return what the paper says: equal steps that fall like 1 / sqrt(k + 1), averaged.

        The papers print no numbers; gamma is 1 in units of L_F, above every constant of weak
        convexity. Known to fail: the centre then moves about as slowly as gradient steps would, at
        ``n_inner`` times their cost.

        Returns
        -------
        solver : IPPSSG
            The solver.
        """
        return cls(schedule="root", constraint_step="equal", output="average", proximal=1.0)
