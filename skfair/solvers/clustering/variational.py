r"""Fair k-means by a Kullback-Leibler penalty on soft assignments (Ziko et al.).

Problem (7) in Appendix C of the paper on stochastic alternating balance k-means (safairkm), which
compares with this method: the k-means cost plus a penalty for clusters whose shares of the groups
P_k differ from the target U. The appendix gives the problem only; everything below is derived here.

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

and the right-hand side is least at :math:`s'_{ik} \propto s_{ik} \exp(-(\|x_i - c_k\|^2 / V +
\mu / n_k - \mu u_j / n_{kj}) / (\mu L_j))`. These are the bound updates; the centres are then the
weighted means.

What differs from the usual description. (1) It takes one constant L for all groups and times,
although the logarithm has none: where :math:`n_{kj}` is small the bound then fails, which may be
the numerical instability that the safairkm paper reports for large weights. Here L_j is computed in
every update and the bound is checked, group by group, through the counts alone: it holds if
:math:`\sum_k u_j (t_k - 1 - \log t_k) \le L_j \sum_{i \in j} m_i \mathrm{KL}(s'_i \| s_i)` with
:math:`t_k = n'_{kj} / n_{kj}`. If not, L_j is doubled (by the log-sum inequality the factor 2.1
suffices while no count falls below a tenth of itself); if so, it shrinks for the next update.
Hence E never increases. (2) Only the penalty needs the entropy, so the cost is not divided by a
constant of its own; with weight 0, or a single group, the updates are those of Lloyd's algorithm.
(3) The cost is measured in units of the total variance V, so that a weight means the same in all
units and for all numbers of rows; these are the units of the problem. (4) Assignments are kept as
logarithms: none becomes exactly 0, so no count does, and a cluster that is left by everybody can
fill again.

Glossary: mu -> ``fairness_weight``, U -> ``target_shares``, S -> ``assignment``, L -> ``lipschitz``
times the constant above, V -> total variance, t -> ratio of a count to the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import rel_entr
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval

from skfair._typing import Callback, FloatArray, IntArray
from skfair.problems.clustering.points import RepresentationProblem, squared_distances
from skfair.solvers.base import Status
from skfair.solvers.clustering.base import Clustering, ClusteringSolver, of_labels, register
from skfair.utils.history import History

# Numbers of rows times clusters handled at a time: 0.5 MB, which stays in the cache of one core.
_CHUNK = 1 << 16
# Logarithm of the smallest assignment; a cluster comes back from it in at most 100 updates.
_FLOOR = -100.0
# Rounding errors of the counts, in units of 1: the check of the bound allows for them.
_ROUNDING = 1e-13
# Counts below this are raised to it, so that groups without rows and tiny weights divide safely.
_SMALLEST = 1e-150
# What the multiples of the constants L_j shrink by after an update whose bound held. Without it
# Adult (K=10, weight 0.5) needs 1050 updates instead of 230, and ends in a worse minimum.
_RELAX = 0.8
# A cluster of less mass is empty: its centre stays where it is.
_EMPTY = 1e-30
# The least softness of a step: rows then go to their cheapest clusters alone.
_HARDEST = 1e-300
# Weights beyond it leave nothing of the cost, and would overflow.
_LARGEST_WEIGHT = 1e50


# Objectives settle before centres do: the share of ``tol`` that an iteration has to gain.
_SHARE_OF_TOL = 0.1


class SoftClustering(NamedTuple):
    """What the variational method finds, in the units of the problem."""

    labels: IntArray  # (n_samples,): the cluster of the largest assignment of each row
    # (n_clusters, n_features): the means of the rows weighted by their soft assignments
    centers: FloatArray
    # (n_clusters, n_groups): what a member of a group pays for a cluster besides the squared
    # distance: the derivative of the penalty. New rows of known group belong to the cluster
    # where the sum is least
    offsets: FloatArray
    assignment: FloatArray  # (n_samples, n_clusters): the soft assignments; each row sums to 1
    n_iter: int  # number of iterations (updates of the centres)
    status: Status  # why the method ended
    # ``objective`` E, its parts ``cost`` (in units of the total variance) and
    # ``fairness_error`` (the sum of the Kullback-Leibler divergences), ``n_updates`` and
    # ``seconds``, one row per iteration
    history: dict[str, NDArray[Any]]


@register
@dataclass
class Variational(ClusteringSolver):
    r"""k-means with a penalty on the divergence between the groups' shares and a target.

    .. math:: \min_{S, C} \frac1V \sum_i m_i \sum_k s_{ik} \|x_i - c_k\|^2
        + \mu \sum_k \mathrm{KL}(U \| P_k)

    over soft assignments S, whose rows are distributions, and centres C, with :math:`P_k` the
    shares of the groups in cluster k. The best of several runs has the least value of this.

    Parameters
    ----------
    fairness_weight : float, default=1.0
        The weight of the penalty, relative to a cost of the total variance of X. A larger one
        brings the shares of the groups closer to the target. 0 is k-means.
    target_shares : array-like of shape (n_groups,), default=None
        The wanted share of each group; they are divided by their sum. None: those of the data.
    n_updates : int, default=10
        Largest number of updates of the assignments between two updates of the centres.
    lipschitz : float, default=1.0
        Multiple of the constant of the bound with which the updates start. Larger ones make smaller
        steps; it is adapted in every update.

    See Also
    --------
    skfair.cluster.FairKMeans : Takes it as ``solver``.

    Notes
    -----
    A run ends when an iteration lowers the objective by at most a tenth of ``tol``, as a share of
    it. An iteration costs O(n K d) for the distances and O(n K) per update; three n x K matrices of
    float64 are kept. The objective never increases. It is not convex: the limit depends on the
    starting centres. Labels are the largest soft assignments; their shares differ a little from
    those that were penalised, and nothing bounds them: a weight is no guarantee.

    A row of weight 0, and a group that has no others, get labels but change nothing.

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
    >>> from skfair.solvers import Variational
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

    name = "variational"
    trades_by = "fairness_weight"

    def run(
        self,
        problem: RepresentationProblem,
        start: FloatArray,
        *,
        max_iter: int,
        tol: float,
        random_state: np.random.RandomState,
        callback: Callback,
    ) -> Clustering:
        soft = self.soft_clustering(
            problem,
            start,
            max_iter=max_iter,
            tol=_SHARE_OF_TOL * tol,
            callback=lambda state: callback(state[0]),
        )
        return of_labels(
            problem,
            soft.labels,
            n_iter=soft.n_iter,
            status=soft.status,
            history=soft.history,
            prices=soft.offsets,
            objective=float(soft.history["objective"][-1]),
        )

    def soft_clustering(
        self,
        problem: RepresentationProblem,
        centers: FloatArray,
        *,
        max_iter: int,
        tol: float,
        callback: Callable[[tuple[FloatArray, FloatArray]], bool],
    ) -> SoftClustering:
        """Minimise the penalised cost.

        Parameters
        ----------
        problem : RepresentationProblem
            The points; rules are not used.
        centers : ndarray of shape (n_clusters, n_features)
            Scaled starting centres.
        max_iter : int
            Largest number of iterations.
        tol : float
            Ends when an iteration lowers the objective by at most this share of it.
        callback : callable
            ``callback((centers, offsets)) -> stop``, called after each iteration.

        Returns
        -------
        clustering : SoftClustering
            Soft assignments, centres and offsets.
        """
        soft = _SoftAssignment(problem, self)
        soft.measure(centers)
        soft.start()
        history = History()
        status: Status = "max_iter"
        n_iter, objective = 0, np.inf
        while n_iter < max_iter and status == "max_iter":
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
            if callback((centers, soft.slopes().T)):
                status = "stopped"
            elif before - objective <= tol * abs(objective):
                status = "converged"
        return SoftClustering(
            labels=soft.logs.argmax(axis=1),
            centers=centers,
            offsets=soft.slopes().T,
            assignment=np.exp(soft.logs, out=soft.logs),
            n_iter=n_iter,
            status=status,
            history=history.as_dict(),
        )


def _target(target_shares: Any, shares: FloatArray) -> FloatArray:
    """Return the wanted shares; raise where they are not shares or ask for an absent group."""
    if target_shares is None:
        return shares
    target = np.asarray(target_shares, dtype=np.float64)
    if target.shape != shares.shape or not (target >= 0).all() or not target.sum() > 0:
        raise ValueError(
            f"target_shares must be {shares.size} numbers, at least 0 and not all 0, one per "
            f"group; got {target_shares!r}."
        )
    absent = np.flatnonzero((target > 0) & (shares == 0))
    if absent.size:
        raise ValueError(
            f"target_shares asks for a share of group {absent[0]}, which has no rows. Set it to 0."
        )
    return np.asarray(target / target.sum())


class _SoftAssignment:
    """The soft assignments with everything that depends on them: counts, bound, means, values.

    ``counts`` and ``slopes`` have one row per group, as rows of X look them up by their group.
    """

    def __init__(self, problem: RepresentationProblem, solver: Variational) -> None:
        n, n_clusters, n_groups = problem.n_samples, problem.n_clusters, problem.n_groups
        self.problem, self.codes, self.masses = problem, problem.codes, problem.masses
        shares = np.bincount(self.codes, weights=self.masses, minlength=n_groups)
        target = _target(solver.target_shares, shares.astype(np.float64))
        is_one_group = np.count_nonzero(shares) == 1  # the divergence is 0 whatever the clusters
        self.weight = 0.0 if is_one_group else min(float(solver.fairness_weight), _LARGEST_WEIGHT)
        self.target = target[:, None]
        self.logs = np.zeros((n, n_clusters))  # logarithms of the assignments
        self.next_logs = np.empty((n, n_clusters))
        self.distances = np.empty((n, n_clusters))
        self.factors = np.full(target.size, float(solver.lipschitz))  # of the constants L_j
        self.chunks = [
            (rows, _members(self.codes[rows], self.masses[rows], target.size))
            for rows in gen_batches(n, max(1, _CHUNK // n_clusters))
        ]

    def measure(self, centers: FloatArray) -> None:
        """Compute the distances to the centres and the cost that they make."""
        self.cost = 0.0
        for rows, _ in self.chunks:
            self.distances[rows] = squared_distances(self.problem.in_full_precision(rows), centers)
            self.cost += self._chunk_cost(rows, np.exp(self.logs[rows]))

    def start(self) -> None:
        """Spread each row over the centres as a Gibbs distribution of its distances."""
        unit = float(self.masses @ self.distances.min(axis=1)) if self.weight else 0.0
        self._step(np.zeros((self.target.size, 1)), unit)
        self._accept()

    def update(self, n_updates: int, tol: float) -> int:
        """Make updates of the bound until they gain little; return how many."""
        if not self.weight:
            self._step(np.zeros((self.target.size, 1)), 0.0)
            self._accept()
            return 1
        n_done = 0
        gain = np.inf
        while n_done < n_updates and gain > tol * abs(self.objective()):
            n_done += 1
            slopes, constants = self.slopes(), self._pull().max(axis=1)
            while True:
                self._step(slopes, self.weight * self.factors * constants)
                ratios = self.next_counts / self.counts
                growth = (self.target * (ratios - 1 - np.log(ratios))).sum(axis=1)
                is_low = growth > self.factors * constants * self.divergences + _ROUNDING
                if not is_low.any():
                    break
                self.factors[is_low] *= 2
            before = self.objective()
            self._accept()
            self.factors *= _RELAX
            gain = before - self.objective()
        return n_done

    def slopes(self) -> FloatArray:
        """Return the derivative of the penalty by the count of each group in each cluster."""
        return np.asarray(self.weight * (1 / self.counts.sum(axis=0) - self._pull()))

    def objective(self) -> float:
        """Return the value that is minimised."""
        return self.cost + self.weight * self.fairness_error()

    def fairness_error(self) -> float:
        """Return the sum of the divergences of the clusters' shares from the target."""
        shares = self.counts / self.counts.sum(axis=0)
        return max(0.0, float(rel_entr(self.target, shares).sum()))

    def means(self, centers: FloatArray) -> FloatArray:
        """Return the weighted means of the rows; a cluster without rows keeps its centre."""
        sums = np.zeros_like(centers)
        for rows, _ in self.chunks:
            sums += (
                np.exp(self.logs[rows]) * self.masses[rows, None]
            ).T @ self.problem.in_full_precision(rows)
        sizes = self.counts.sum(axis=0)[:, None]
        return np.where(sizes > _EMPTY, sums / sizes, centers)

    def _pull(self) -> FloatArray:
        """Return u_j / n_kj, the slope of the convex part of the penalty."""
        return np.asarray(self.target / self.counts)

    def _step(self, slopes: FloatArray, softness: Any) -> None:
        """Write the minimiser of the bound, its counts, cost and divergences from the current one.

        Where the softness is 0 the bound is linear and a row goes to its cheapest clusters.
        """
        n_groups, n_clusters = self.target.size, self.logs.shape[1]
        self.next_counts = np.zeros((n_groups, n_clusters))
        self.divergences = np.zeros(n_groups)
        self.next_cost = 0.0
        softness = np.maximum(np.broadcast_to(softness, n_groups), _HARDEST)[:, None]
        for rows, members in self.chunks:
            codes = self.codes[rows]
            z = self.distances[rows] + slopes[codes]
            z -= z.min(axis=1, keepdims=True)
            with np.errstate(over="ignore"):
                z /= softness[codes]
            np.subtract(self.logs[rows], z, out=z)
            z -= z.max(axis=1, keepdims=True)
            np.maximum(z, _FLOOR, out=z)
            assigned = np.exp(z)
            sums = assigned.sum(axis=1, keepdims=True)
            assigned /= sums
            z -= np.log(sums)
            self.next_logs[rows] = z
            z -= self.logs[rows]
            self.next_counts += members @ assigned
            self.divergences += members @ np.einsum("ik,ik->i", assigned, z)
            self.next_cost += self._chunk_cost(rows, assigned)
        np.maximum(self.next_counts, _SMALLEST, out=self.next_counts)
        # Rounding makes divergences of tiny steps negative; no constant, however large, would then
        # satisfy the bound.
        np.maximum(self.divergences, 0.0, out=self.divergences)

    def _accept(self) -> None:
        """Make the step the current assignment."""
        self.logs, self.next_logs = self.next_logs, self.logs
        self.counts, self.cost = self.next_counts, self.next_cost

    def _chunk_cost(self, rows: slice, assigned: FloatArray) -> float:
        return float(self.masses[rows] @ np.einsum("ik,ik->i", assigned, self.distances[rows]))


def _members(codes: IntArray, masses: FloatArray, n_groups: int) -> Any:
    """Return the matrix (groups x rows) that sums rows by group."""
    return sparse.csc_array((masses, codes, np.arange(codes.size + 1)), (n_groups, codes.size))
