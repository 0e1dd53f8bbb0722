r"""Fair k-means by alternating k-means steps and group swaps.

Follows "A stochastic alternating balance k-means algorithm for fair clustering" (safairkm):
:class:`Swap` is Algorithm 2. The front (Algorithm 3) is in ``swap_front.py``. The two objectives of
(2) are the mean squared distance to the centres, and the balance, the smallest ratio of two groups'
counts in one cluster.

The idea: counts per cluster and group, sums of the rows of each cluster and the sum of all squares
give both objectives, so a move of one row changes them in O(d) and an iteration costs the same for
a thousand rows and for a million. The steps are in :mod:`skfair.papers._kernels.swaps`.

Changed against the paper:

- Centres are the exact means of the clusters, not running averages with ever smaller steps, and a
  cluster keeps its last row in a k-means step. An empty cluster takes the row of the batch that is
  farthest from all centres.
- The rows of a k-means step are all assigned to the centres that held before it. In the paper the
  centre moves after each row. ``updates="row"`` does so too.
- A descent visits every row once per pass, in random order. The paper draws each batch from all
  rows, as ``updates="row"`` and fronts do.
- The paper says that each swap raises the balance, which fails when the target cluster is not
  better off than the bottleneck. Here a target must stay strictly above the bottleneck's balance,
  so that a swap never lowers the balance. If there is no such target for the two extreme groups of
  the bottleneck (J > 2), other pairs of groups are tried. If there is none, no swap is made.
- The global target (4) maximises only the ratio of the group which the bottleneck needs to the
  group it has in excess. With both ratios (4) may name the bottleneck itself.
- A bottleneck may be as balanced as its size allows (an empty cluster, or counts 3 and 2). It then
  receives one row of its smallest group without exchange. All other swaps keep the cluster sizes.
- Candidates are compared by the exact difference of their squared distances to the two centres.
- A descent starts with the labels of the closest starting centres, not with random labels.

``Swap.paper()`` undoes what can be undone of this; ``swap_front.py`` says what else changes there.

=================  ================================================================
Symbol             Here
=================  ================================================================
n_a, n_b           ``n_kmeans_steps`` (rows per k-means step), ``n_swap_steps``
K, J, N            ``n_clusters``, ``n_groups``, number of rows
C_l, C_h           bottleneck and target cluster
f_1, f_2           cost and balance
=================  ================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from skfair._typing import Callback, FloatArray, IntArray, Seed
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import (
    Clustering,
    ClusteringSolver,
    ConstraintsOf,
    Front,
    FrontPoint,
    RunSettings,
    Starts,
    for_each,
    of_labels,
    register,
)
from skfair.papers.safairkm.swap_front import SwapArchive, SwapFront, start_labels
from skfair.papers.safairkm.swap_sample import (
    MAX_CANDIDATES,
    TARGETS,
    BestLabels,
    SwapSample,
    check_pairs,
    checked_labels,
    new_log,
)
from skfair.solvers.base import SolverResult
from skfair.utils.endings import Status
from skfair.utils.history import History, go_on
from skfair.utils.pieces import NUMBERS

# The four pairs (n_a, n_b) of the paper's experiments on real data.
PAIRS = ((25, 0), (20, 4), (15, 3), (5, 2))
# On a front, the number of candidates for each row of a swap grows by one in this many iterations.
_ITERATIONS_PER_CANDIDATE = 16
# Number of candidates for each row of a swap in a repair, which swaps until the limit is satisfied.
_REPAIR_CANDIDATES = 32
# A repair draws random numbers for this many swaps at a time, which takes 20 microseconds.
_PLANNED_SWAPS = 2048


@register
@dataclass
class Swap(ClusteringSolver):
    r"""Alternating k-means steps and swaps between clusters (Algorithms 2 and 3 of safairkm).

    The method alternates between steps that reduce the k-means cost :math:`f_1` and swaps of rows
    that increase the smallest balance :math:`f_2` of a cluster,

    .. math::

        f_1 = \frac{1}{n} \sum_k \sum_{i \in C_k} \|x_i - c_k\|^2, \qquad
        f_2 = \min_k \min_{j \ne j'} \frac{|C_k \cap V_j|}{|C_k \cap V_{j'}|}.

    With ``min_balance``, swaps are only made while the balance is below it, and each pass ends with
    as many swaps as are needed. Without it, the trade-off only depends on the two numbers of steps.

    Parameters
    ----------
    n_kmeans_steps : int, default=20
        Number of rows per k-means step, n_a. Larger values give more weight to the cost.
    n_swap_steps : int, default=4
        Number of swaps after each k-means step, n_b. Larger values give more weight to the balance.
    swap_target : {"local", "global"}, default="local"
        The cluster that exchanges rows with the least balanced cluster. If "local", it is the
        closest suitable cluster, as in (5). If "global", it is the suitable cluster with the
        largest ratio of the two groups, as in (4). The local target leads to smaller distances and
        takes slightly more time.
    swap_candidates : "auto" or int, default="auto"
        Number of rows of a group and cluster of which the cheapest one is swapped. If "auto", it is
        2 in the first pass and doubles with each pass, up to 64. On a front, it is 1 and increases
        by one every 16 iterations. More candidates lead to smaller distances and take more time.
    pairs : sequence of (int, int), default=((25, 0), (20, 4), (15, 3), (5, 2))
        Numbers of rows and of swaps on a front, which replace the two numbers above. There is one
        child per pair. The default is the same as in the experiments of the paper on real data.
    n_starts : int, default=30
        Number of initial labellings of a front.
    max_points : int, default=200
        Maximum number of points of a front. It must be at least 2.
    updates : {"batch", "row"}, default="batch"
        Time at which the centres are updated. If "batch", they are updated after each k-means step.
        If "row", they are updated after each row, as in the paper, and rows are drawn with
        replacement. "row" takes more time for the same number of rows.
    starts : {"mixed", "random"} or array-like of shape (n_starts, n_samples), default="mixed"
        Initial labellings of a front. If "mixed", one half comes from k-means++ seeds and the other
        half is random. If "random", all are random, as in the paper. An array holds labellings that
        replace ``n_starts``, with clusters from 0 to ``n_clusters - 1`` in the order of the rows.

    See Also
    --------
    skfair.cluster.FairKMeans : Clustering that accepts this method as ``solver``.

    Notes
    -----
    An iteration takes O(n_a K d + n_b (m d + K (J + d))) for m candidates, regardless of n, and a
    pass adds O(n d). Memory is O(n) integers. Swaps never reduce the balance, so with
    ``min_balance`` every pass ends with a feasible labelling, or no swap helps any more. With two
    groups, the latter only happens if no labelling with these cluster sizes reaches
    ``min_balance``. With more groups, the method is a local search. The cost may increase from pass
    to pass, because swaps increase it.

    References
    ----------
    S. Liu, L. N. Vicente, "A stochastic alternating balance k-means algorithm for fair clustering".

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.cluster import FairKMeans
    >>> from skfair.papers import Swap
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) + 4 * np.repeat([[0], [1]], 100, axis=0)
    >>> sex = X[:, 1] + rng.normal(size=200) > 2
    >>> model = FairKMeans(2, solver=Swap(n_swap_steps=8), tol=0.01, random_state=0)
    >>> bool(model.fit(X, sensitive_features=sex).balance_ >= 0.7)
    True
    """

    n_kmeans_steps: Annotated[int, Interval(Integral, 0, None, closed="left")] = 20
    n_swap_steps: Annotated[int, Interval(Integral, 0, None, closed="left")] = 4
    swap_target: Annotated[str, StrOptions({"global", "local"})] = "local"
    swap_candidates: Annotated[
        str | int, StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")
    ] = "auto"
    pairs: Annotated[tuple[tuple[int, int], ...], "array-like"] = PAIRS
    n_starts: Annotated[int, Interval(Integral, 1, None, closed="left")] = 30
    max_points: Annotated[int, Interval(Integral, 2, None, closed="left")] = 200
    updates: Annotated[str, StrOptions({"batch", "row"})] = "batch"
    starts: Annotated[Any, StrOptions({"mixed", "random"}), "array-like"] = "mixed"

    name = "swap"
    takes_weights = False
    has_front = True
    keeps_balance = True

    @classmethod
    def paper(cls) -> Swap:
        """Return the solver with the updates, starts and parameters of the paper.

        These are updates row by row, 30 random labellings, the four pairs of the experiments on
        real data and local targets. The paper stops at 1500 points. Here a front continues with the
        1500 points of largest hypervolume. The other changes that the module lists remain, such as
        exact means and swaps that never reduce the balance.

        Returns
        -------
        solver : Swap
            A solver with these parameters.
        """
        return cls(updates="row", starts="random", n_starts=30, max_points=1500)

    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        balances = problem.constraints.min_balances
        best = self.descend(
            *_rows_and_sizes(problem),
            labels=problem.distances(start).nearest(),
            min_balance=None if balances is None else float(balances[0]),
            max_iter=settings.max_iter,
            tol=settings.tol,
            random_state=settings.random_state,
            callback=lambda labels: settings.callback(problem.means(labels.astype(np.int64))[0]),
        )
        return of_labels(
            problem, best.theta, n_iter=best.n_iter, status=best.status, history=best.history
        )

    def front(
        self,
        problem: RepresentationProblem,
        constraints_of: ConstraintsOf,
        targets: FloatArray,
        starts: Starts,
        settings: RunSettings,
    ) -> Front:
        # Algorithm 3 has starts of its own, and asks for no targets.
        no_constraints = constraints_of(0.0)
        free = problem.with_constraints(no_constraints)
        front = self.search(
            *_rows_and_sizes(problem),
            max_iter=settings.max_iter,
            random_state=settings.random_state,
            callback=settings.callback,
        )

        def point(labels: NDArray[Any]) -> FrontPoint:
            return FrontPoint(0.0, no_constraints, of_labels(free, labels))

        course = {**front.history, "cost": front.history["cost"] * problem.n_samples}
        return Front(for_each(point, list(front.labels), go_on), course)

    def search(
        self,
        X: NDArray[Any],
        codes: IntArray,
        n_clusters: int,
        n_groups: int,
        *,
        max_iter: int = 500,
        random_state: Seed = None,
        callback: Callback | None = None,
    ) -> SwapFront:
        """Approximate the whole front by a list of labellings (Algorithm 3).

        In each iteration every labelling of the list has one child per pair (n_a, n_b): one
        iteration of Algorithm 2 with these numbers of rows and swaps. Parents and children that no
        other one dominates form the next list. Above ``max_points``, the point that contributes
        least to the hypervolume is dropped, again and again; the two ends stay.

        A child takes O(n_a K d + n_b (m d + K (J + d))) for m candidates; only children that enter
        the list are copied, O(n). Memory is ``max_points`` times n small integers (1 byte up to 127
        clusters). A member of a group and cluster is found by walking from a random row of the
        group, whose rows are in random order, so a swap with a cluster that is nearly empty takes
        longer.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The data, as float32 or float64. One copy is made in the same precision.
        codes : ndarray of int64 of shape (n_samples,)
            Group of each row, from 0 to ``n_groups - 1``. Every group must occur.
        n_clusters : int
            Number of clusters.
        n_groups : int
            Number of groups.
        max_iter : int, default=500
            Number of iterations. The paper uses 400 to 8000.
        random_state : int, RandomState instance or None, default=None
            Seed of the initial labellings, batches and candidates. Pass an int for reproducible
            results.
        callback : callable, default=None
            Function that is called as ``callback(archive)`` after each iteration, where
            ``archive.front()`` returns the current front. The search stops if it returns True.

        Returns
        -------
        front : SwapFront
            The costs, balances and labels of the front, and the history of the search.
        """
        check_pairs(self.pairs)
        seeds = check_random_state(random_state)
        rng = np.random.default_rng(seeds.randint(2**31 - 1))
        # Rows in random order, one group after the other: any walk meets random members.
        shuffled = rng.permutation(X.shape[0])
        rows = shuffled[np.argsort(codes[shuffled], kind="stable")]
        sample = SwapSample(X[rows], codes[rows], n_clusters, n_groups)
        if isinstance(self.starts, str):
            n_seeded = (self.n_starts + 1) // 2 if self.starts == "mixed" else 0
            labels = start_labels(sample, self.n_starts, n_seeded, seeds, rng)
        else:
            own = checked_labels(self.starts, X.shape[0], n_clusters)
            if own.ndim != 2:
                raise ValueError(
                    "Swap(starts=...) needs labellings of shape (n_starts, n_samples), got shape "
                    f"{own.shape}. Pass a list of labellings."
                )
            labels = np.ascontiguousarray(own[:, rows])
        is_by_row = self.updates == "row"
        archive = SwapArchive(sample, rows, labels, self.max_points, is_by_row=is_by_row)
        table, target = np.array(self.pairs, np.int64), TARGETS[self.swap_target]
        for t in range(max_iter):
            n_candidates = min(1 + t // _ITERATIONS_PER_CANDIDATE, MAX_CANDIDATES)
            if not isinstance(self.swap_candidates, str):
                n_candidates = self.swap_candidates
            archive.breed(table, target, n_candidates, rng)
            if callback is not None and callback(archive):
                break
        return archive.front()

    def descend(
        self,
        X: NDArray[Any],
        codes: IntArray,
        n_clusters: int,
        n_groups: int,
        *,
        labels: NDArray[Any],
        min_balance: float | None = None,
        max_iter: int = 20,
        tol: float = 1e-4,
        random_state: Seed = None,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Improve a labelling by alternating k-means steps and swaps (Algorithm 2).

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The data, as float32 or float64. They are not copied.
        codes : ndarray of int64 of shape (n_samples,)
            Group of each row, from 0 to ``n_groups - 1``. Every group must occur.
        n_clusters : int
            Number of clusters.
        n_groups : int
            Number of groups. With one group, there are no swaps unless a cluster is empty.
        labels : ndarray of int of shape (n_samples,)
            Initial cluster of each row. The array is not changed. Clusters may be empty.
        min_balance : float, default=None
            Minimum balance of the result, in [0, 1]. If None, there is no minimum.
        max_iter : int, default=20
            Number of passes. A pass visits every row once, or the same number of random rows. It
            has n / n_kmeans_steps iterations of Algorithm 2, or n / (2 n_swap_steps) without
            k-means steps.
        tol : float, default=1e-4
            Tolerance of the stopping test. The descent ends if a pass changes the cost by at most
            this fraction, and the balance by at most this number.
        random_state : int, RandomState instance or None, default=None
            Seed of the order of the rows and of the candidates. Pass an int for reproducible
            results.
        callback : callable, default=None
            Function that is called as ``callback(labels)`` after each pass, and must not change the
            labels. The descent stops if it returns True.

        Returns
        -------
        result : SolverResult
            The result, in which ``theta`` holds the labels (int32) after the last pass. With
            ``min_balance``, it holds the labels with the lowest cost among all that reach it. If
            none do, it holds the most balanced labels, and the status is "infeasible". The initial
            labels are also considered. The history has ``objective`` (the mean squared distance),
            ``balance``, ``max_violation`` (the amount by which ``min_balance`` is missed) and
            ``n_swaps`` (the number of swaps at the end of the pass to reach it).
        """
        check_pairs([(self.n_kmeans_steps, self.n_swap_steps)])
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        sample = SwapSample(X, codes, n_clusters, n_groups)
        descent = _Descent(self, sample, labels, min_balance, rng)
        best = BestLabels(min_balance)
        cost, balance = descent.measured()
        best.offer(cost, balance, descent.labels)
        history = History()
        status: Status = "max_iter"
        before = (math.inf, math.inf)
        n_iter = 0
        while n_iter < max_iter and status == "max_iter":
            n_iter += 1
            descent.visit_rows(n_iter)
            n_swaps = 0 if min_balance is None else descent.repair()
            descent.count()  # so that rounding errors do not build up
            cost, balance = descent.measured()
            best.offer(cost, balance, descent.labels)
            history.record(
                objective=cost,
                max_violation=max(0.0, descent.enough - balance) if min_balance else 0.0,
                balance=balance,
                n_swaps=n_swaps,
            )
            if callback is not None and callback(descent.labels):
                status = "stopped"
            elif abs(cost - before[0]) <= tol * before[0] and abs(balance - before[1]) <= tol:
                status = "converged"
            before = (cost, balance)
        if not best.is_feasible:
            status = "infeasible"
        return SolverResult(
            best.labels.astype(np.int32), np.empty(0), n_iter, status, history.as_dict()
        )


class _Descent:
    """A labelling that ``Swap.descend`` improves in place, with the arrays of the kernels.

    ``enough`` is the balance from which on no swaps are made: 1 if there is no limit. The tuples
    ``_state``, ``_cells``, ``_work`` and ``_log`` are defined in ``papers/_kernels/swaps.py``.
    """

    def __init__(
        self,
        solver: Swap,
        sample: SwapSample,
        labels: NDArray[Any],
        min_balance: float | None,
        rng: np.random.Generator,
    ) -> None:
        from skfair.papers._kernels import swap_rows

        self._solver, self._sample, self._rng = solver, sample, rng
        self.enough = 1.0 if min_balance is None else float(min_balance)
        n_clusters, n_groups, _ = sample.shape
        n = self._n_samples = sample.data[0].shape[0]
        self._state = sample.state(checked_labels(labels, n, n_clusters))
        starts = np.empty((n_groups, n_clusters + 1), np.int64)
        self._cells = np.empty(n, np.int32), np.empty(n, np.int32), starts
        self._work = sample.scratch(solver.n_kmeans_steps)
        self._log = new_log((solver.n_kmeans_steps + 2 * solver.n_swap_steps + 2,))
        self.count()
        swap_rows.sort_cells(sample.data, self._state, self._cells, rng.permutation(n))

    @property
    def labels(self) -> NDArray[Any]:
        return np.asarray(self._state[0])

    def count(self) -> None:
        """Compute counts and sums from the labels."""
        from skfair.papers._kernels import swap_rows

        swap_rows.count_and_sum(self._sample.data, self._state)

    def measured(self) -> tuple[float, float]:
        """Return cost and balance."""
        from skfair.papers._kernels import swaps

        balance = swaps.overall_balance(self._state[1], self._work[-1])
        return self._sample.cost(self._state), balance

    def visit_rows(self, n_pass: int) -> None:
        """Make one pass of k-means steps and swaps.

        Each row is in one k-means step. With ``updates="row"`` the same number of rows is drawn
        with replacement instead.
        """
        from skfair.papers._kernels import swaps

        n = self._n_samples
        n_rows, n_swaps = int(self._solver.n_kmeans_steps), int(self._solver.n_swap_steps)
        rows, n_left = np.empty(0, np.int32), math.ceil(n / (n_rows or 2 * n_swaps))
        is_by_row = self._solver.updates == "row"
        if n_rows and is_by_row:
            rows = self._rng.integers(n, size=n_rows * n_left, dtype=np.int32)
        elif n_rows:
            rows = self._rng.permutation(n).astype(np.int32)
        step = max(1, NUMBERS // (2 * max(n_swaps, 1)))
        for first in range(0, n_left, step):
            swaps.descend(
                self._sample.data,
                self._state,
                self._cells,
                rows[first * n_rows :],
                (n_rows, 1 if is_by_row else max(n_rows, 1)),
                self._rng.random((min(step, n_left - first), n_swaps, 2)),
                _n_candidates(self._solver.swap_candidates, n_pass),
                TARGETS[self._solver.swap_target],
                self.enough,
                self._work,
                self._log,
            )

    def repair(self) -> int:
        """Swap until the balance is enough or no swap helps; return the number of swaps."""
        from skfair.papers._kernels import swaps

        n_swaps = 0
        while True:
            n_made, is_stuck = swaps.raise_balance(
                self._sample.data,
                self._state,
                self._cells,
                self._rng.random((_PLANNED_SWAPS, 2)),
                _REPAIR_CANDIDATES,
                TARGETS[self._solver.swap_target],
                self.enough,
                self._work,
                self._log,
            )
            n_swaps += int(n_made)
            # The loop ends, because every swap raises the smallest balance or leaves fewer clusters
            # with it.
            if is_stuck or n_made < _PLANNED_SWAPS:
                return n_swaps


def _rows_and_sizes(problem: RepresentationProblem) -> tuple[NDArray[Any], IntArray, int, int]:
    """Return X, codes, n_clusters and n_groups, the arguments of ``descend`` and ``search``."""
    return problem.X, problem.codes, problem.n_clusters, problem.n_groups


def _n_candidates(n_candidates: str | int, n_pass: int) -> int:
    """Return the number of candidates in pass ``n_pass`` (counted from 1) of a descent.

    If "auto", it doubles with each pass.
    """
    return min(2**n_pass, MAX_CANDIDATES) if isinstance(n_candidates, str) else n_candidates
