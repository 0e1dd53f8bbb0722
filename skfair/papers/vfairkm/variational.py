r"""Fair k-means by a Kullback-Leibler penalty on soft assignments (Ziko et al.).

Problem (7) in Appendix C of the paper on stochastic alternating balance k-means (safairkm), which
compares with this method: the k-means cost plus a penalty for clusters whose shares of the groups
P_k differ from the target U. The appendix gives the problem only. Everything below is derived here.

With :math:`m_i` the share of row i in the total weight, :math:`n_{kj} = \sum_{i \in j} m_i s_{ik}`
the mass of group j in cluster k and :math:`n_k = \sum_j n_{kj}`,

.. math:: E(S, C) = \frac1V \sum_i m_i \sum_k s_{ik} \|x_i - c_k\|^2
    + \mu \sum_k \Big( \mathrm{const} + \log n_k - \sum_j u_j \log n_{kj} \Big).

The first part is linear in S and :math:`\log n_k` is concave, so it lies below its tangent. The
last part is convex. Its second derivative in a direction v is
:math:`\sum_{kj} u_j (\sum_{i \in j} m_i v_{ik})^2 / n_{kj}^2`, and by Cauchy-Schwarz at most
:math:`\sum_{kj} (u_j / n_{kj}) \sum_{i \in j} m_i v_{ik}^2 / s_{ik}`: relative to the entropy of
the rows it is smooth, with the constant :math:`L_j = \max_k u_j / n_{kj}` for the rows of group j.
As long as that constant holds on the way from S to S',

.. math:: E(S') \le E(S) + \langle \nabla E(S), S' - S \rangle
    + \mu \sum_j L_j \sum_{i \in j} m_i \, \mathrm{KL}(s'_i \| s_i),

and the right-hand side is least at :math:`s'_{ik} \propto s_{ik} \exp(-(\|x_i - c_k\|^2 / V + \mu /
n_k - \mu u_j / n_{kj}) / (\mu L_j))`. These are the bound updates. The centres are then the
weighted means.

Differences from the usual description are these. (1) It uses one constant L for all groups and
iterations, although no constant holds for the logarithm. If :math:`n_{kj}` is small, the bound then
fails, which
may be the numerical instability that the safairkm paper reports for large weights. Here L_j is
computed in every update and the bound is checked, group by group, through the counts alone: it
holds if :math:`\sum_k u_j (t_k - 1 - \log t_k) \le L_j \sum_{i \in j} m_i \mathrm{KL}(s'_i \| s_i)`
with :math:`t_k = n'_{kj} / n_{kj}`. If not, L_j is doubled (by the log-sum inequality the factor
2.1 suffices while no count falls below a tenth of itself); if so, it shrinks for the next update.
Hence E never increases. (2) Only the penalty needs the entropy, so the cost is not divided by a
constant of its own. With weight 0, or a single group, the updates equal the updates of Lloyd's
algorithm. (3) The cost is measured in units of the total variance V, so that a weight means the
same in all units and for all numbers of rows. These are the units of the problem. (4) Assignments
are kept as logarithms. So no assignment and no count becomes exactly 0, and a cluster that all rows
have left can grow again.

Glossary: mu -> ``fairness_weight``, U -> ``target_shares``, S -> ``assignment``, L -> ``lipschitz``
times the constant above, V -> total variance, t -> ratio of a count to the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from skfair._typing import FloatArray
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import (
    Clustering,
    ClusteringSolver,
    ConstraintsOf,
    Front,
    FrontPoint,
    RunSettings,
    Starts,
    of_labels,
    register,
)
from skfair.papers.vfairkm.soft_assignment import SoftAssignment
from skfair.utils.endings import Status
from skfair.utils.history import History, go_on
from skfair.utils.validation import check_numbers

# A run has converged if an iteration lowers the objective by less than this share of ``tol``. It is
# less than 1 because objectives converge before centres do.
_SHARE_OF_TOL = 0.1
# The weights that the authors' script tries, and 0. They range from plain k-means to a penalty that
# is nearly the whole objective.
FRONT_WEIGHTS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)


@register
@dataclass
class Variational(ClusteringSolver):
    r"""k-means with a penalty on the divergence between the groups' shares and a target.

    The method minimises the sum of the k-means cost and of a penalty, which is the Kullback-Leibler
    divergence between the target shares U of the groups and their shares in each cluster,

    .. math:: \min_{S, C} \frac1V \sum_i m_i \sum_k s_{ik} \|x_i - c_k\|^2
        + \mu \sum_k \mathrm{KL}(U \| P_k)

    over soft assignments S, whose rows are distributions, and centres C, with :math:`P_k` the
    shares of the groups in cluster k. The best of several runs has the least value of this.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the penalty, relative to the total variance of X. With larger values, the shares
        of the groups are closer to the target. With 0, the method is k-means.
    target_shares : array-like of shape (n_groups,), default=None
        Target share of each group. The values are divided by their sum. If None, the shares of the
        data are used.
    n_updates : int, default=10
        Maximum number of updates of the assignments between two updates of the centres.
    lipschitz : float, default=1.0
        Initial constant of the bound, as a multiple of its theoretical value. With larger values,
        the steps are smaller. The constant is adapted in every update.
    front_weights : sequence of float, default=(0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.5, 1, 3, 10)
        Weights that are used on a front instead of ``fairness_weight``. All of them have the same
        initial centres.

    See Also
    --------
    skfair.cluster.FairKMeans : Clustering that accepts this method as ``solver``.
    skfair.cluster.ParetoFairKMeans : Front of clusterings that accepts this method as ``solver``.

    Notes
    -----
    A run ends when an iteration reduces the objective by at most a tenth of ``tol``, relative to
    its value. Rows may then still be on their way to a cheaper cluster, for the share of a cluster
    that a row has left grows slowly from nearly 0. An iteration costs O(n K d) for the distances
    and O(n K) per update, and three n x K matrices of float64 are stored. The objective never
    increases. It is not convex, so the result depends on the initial centres. The label of a row is
    its largest soft assignment. The shares of the groups in the labels differ slightly from the
    shares that were penalised, and there is no guarantee on them.

    Rows of weight 0 have labels, but no effect on the result.

    References
    ----------
    Ziko, I. M., Yuan, J., Granger, E. and Ben Ayed, I. "Variational fair clustering".

    Liu, S. and Vicente, L. N. "A stochastic alternating balance k-means algorithm for fair
    clustering", Appendix C.

    Examples
    --------
    The groups lie to the left and to the right, mixed in the middle.

    >>> import numpy as np
    >>> from skfair.cluster import FairKMeans
    >>> from skfair.papers import Variational
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> groups = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    >>> balances = []
    >>> for weight in (0, 1, 10):
    ...     model = FairKMeans(
    ...         2, min_balance=None, solver=Variational(fairness_weight=weight), random_state=0
    ...     )
    ...     balances.append(model.fit(X, sensitive_features=groups).balance_)
    >>> balances == sorted(balances)
    True
    """

    fairness_weight: Annotated[float, Interval(Real, 0, np.inf, closed="left")] = 1.0
    target_shares: Annotated[ArrayLike | None, "array-like", None] = None
    n_updates: Annotated[int, Interval(Integral, 1, None, closed="left")] = 10
    lipschitz: Annotated[float, Interval(Real, 0, np.inf, closed="neither")] = 1.0
    front_weights: Annotated[Sequence[float], "array-like"] = FRONT_WEIGHTS

    name = "variational"
    has_front = True
    trades_by = "fairness_weight"

    def front(
        self,
        problem: RepresentationProblem,
        constraints_of: ConstraintsOf,
        targets: FloatArray,
        starts: Starts,
        settings: RunSettings,
    ) -> Front:
        # The method cannot enforce a balance, so weights replace the targets.
        weights = check_numbers(self.front_weights, "front_weights")
        if not (weights.size and (weights >= 0).all()):
            raise ValueError(
                f"front_weights must be at least 0, got {self.front_weights!r}. Pass at least one."
            )
        no_constraints = constraints_of(0.0)
        free = problem.with_constraints(no_constraints)
        each_run, points = replace(settings, callback=go_on), list[FrontPoint]()
        for start in starts(settings.random_state):
            for weight in weights:
                weighted = replace(self, fairness_weight=float(weight))
                clustering = weighted.run(free, start, each_run)
                points.append(FrontPoint(0.0, no_constraints, clustering))
                if settings.callback(clustering.centers):
                    return Front(points, {})
        return Front(points, {})

    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        soft = SoftAssignment(
            problem,
            weight=self.fairness_weight,
            target_shares=self.target_shares,
            lipschitz=self.lipschitz,
        )
        soft.measure(start)
        soft.start()
        history, centers = History(), start
        status: Status = "max_iter"
        n_iter, objective, tol = 0, np.inf, _SHARE_OF_TOL * settings.tol
        while n_iter < settings.max_iter and status == "max_iter":
            n_iter += 1
            n_done = soft.update(self.n_updates, tol)
            centers = soft.means(centers)
            soft.measure(centers)
            before, objective = objective, soft.objective()
            history.record(
                objective=objective,
                cost=soft.cost,
                fairness_error=soft.fairness_error(),
                n_updates=n_done,
            )
            if settings.callback(centers):
                status = "stopped"
            elif before - objective <= tol * abs(objective):
                status = "converged"
        return of_labels(
            problem,
            soft.logs.argmax(axis=1),
            n_iter=n_iter,
            status=status,
            history=history.as_dict(),
            prices=soft.slopes().T,
            objective=objective,
        )
