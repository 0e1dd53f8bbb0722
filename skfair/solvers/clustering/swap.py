r"""Fair k-means by alternating k-means steps and group swaps.

Follows "A stochastic alternating balance k-means algorithm for fair clustering" (safairkm):
:func:`swap_descent` is Algorithm 2; the front (Algorithm 3) is in ``swap_front.py``.
The two objectives are those of (2): the mean squared distance to the centres, and the balance, the
smallest ratio of two groups' counts in one cluster.

The idea: counts per cluster and group, sums of the rows of each cluster and the sum of all squares
give both objectives, so a move of one row changes them in O(d) and an iteration costs the same for
a thousand rows and for a million. The steps are in :mod:`skfair._kernels.swaps`.

Changed against the paper:

- Centres are the exact means of the clusters, not running averages with ever smaller steps, and a
  cluster keeps its last row in a k-means step. An empty cluster takes the row of the batch that is
  farthest from all centres.
- The paper says that each swap raises the balance, which fails when the target cluster is not
  better off than the bottleneck. Here a target must stay strictly above the bottleneck's balance,
  so that a swap never lowers the balance. If there is no such target for the two extreme groups of
  the bottleneck (J > 2), other pairs of groups are tried; if there is none, no swap is made.
- The global target (4) maximises one ratio only, that of the group which the bottleneck needs to
  the one it has in excess; with both ratios (4) may name the bottleneck itself.
- A bottleneck that is as balanced as its size allows (an empty cluster, or counts 3 and 2) wins one
  row of a group it has least of, without exchange. All other swaps keep the sizes of the clusters.
- Candidates are compared by the exact difference of their squared distances to the two centres.

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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from skfair._typing import IntArray
from skfair.solvers.base import SolverResult, Status
from skfair.utils.history import History

Callback = Callable[[Any], bool]


# Random numbers made at a time, which bounds their memory.
_MAX_DRAWS = 1 << 17
# Candidates per row of a swap double with each pass of a descent up to a bound.
MAX_CANDIDATES = 64
# Candidates per row when a labelling is repaired.
_REPAIR_CANDIDATES = 32
# Below this share of the total variance, a difference of sums has lost digits of the cost.
CANCELLATION = 1e-6

_TARGETS = {"global": 0, "local": 1}


def swap_descent(
    X: NDArray[Any],
    codes: IntArray,
    n_clusters: int,
    n_groups: int,
    *,
    labels: NDArray[Any],
    n_kmeans_steps: int = 20,
    n_swap_steps: int = 4,
    swap_target: str = "local",
    swap_candidates: str | int = "auto",
    min_balance: float | None = None,
    max_iter: int = 20,
    tol: float = 1e-4,
    random_state: Any = None,
    callback: Callback | None = None,
) -> SolverResult:
    r"""Improve a labelling by alternating k-means steps and swaps (Algorithm 2).

    Minimises, in alternation, the first and maximises the second of

    .. math::

        f_1 = \frac{1}{n} \sum_k \sum_{i \in C_k} \|x_i - c_k\|^2, \qquad
        f_2 = \min_k \min_{j \ne j'} \frac{|C_k \cap V_j|}{|C_k \cap V_{j'}|}.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, float32 or float64; never copied.
    codes : ndarray of int64 of shape (n_samples,)
        Group of each row, 0 to ``n_groups - 1``; every group must occur.
    n_clusters : int
        Number of clusters.
    n_groups : int
        Number of groups. With one group nothing is swapped, unless a cluster is empty.
    labels : ndarray of int of shape (n_samples,)
        Cluster of each row at the start; not changed. Clusters may be empty.
    n_kmeans_steps : int, default=20
        Rows per k-means step, n_a. The larger, the more weight the cost has.
    n_swap_steps : int, default=4
        Swaps that follow each k-means step, n_b. The larger, the more weight the balance has.
    swap_target : {"local", "global"}, default="local"
        The cluster that the bottleneck exchanges rows with, among those that can afford it: the
        closest one (5), or the one with the largest ratio of the two groups (4). The local target
        costs less distance and a little more time.
    swap_candidates : "auto" or int, default="auto"
        Number of rows taken from a cell, of which the cheapest is swapped. "auto" is 2 in the first
        pass and doubles with each pass, up to 64. More candidates cost more time and less distance.
    min_balance : float, default=None
        Smallest balance of the result, in [0, 1]. Swaps are then made only while the balance is
        below it, and each pass ends with as many swaps as it takes. None lets ``n_kmeans_steps``
        and ``n_swap_steps`` alone decide.
    max_iter : int, default=20
        Number of passes. A pass visits every row once: it has n / n_kmeans_steps iterations of
        Algorithm 2 (n / (2 n_swap_steps) without k-means steps).
    tol : float, default=1e-4
        The descent ends when a pass changes the cost by at most this share of it, and the balance
        by at most this number.
    random_state : int, RandomState instance or None, default=None
        Order of the rows and choice of candidates.
    callback : callable, default=None
        ``callback(labels) -> stop``, called after each pass with the current labels, which it must
        not change.

    Returns
    -------
    result : SolverResult
        ``theta`` holds the labels (int32): those after the last pass; with ``min_balance`` the
        cheapest ones that reach it, or if none do, the most balanced ones (status
        "infeasible"); the labels at the start compete too. ``multipliers`` is empty. The history
        has ``objective`` (mean squared distance), ``balance``, ``max_violation`` (what is missing
        to ``min_balance``) and ``n_swaps`` (those made at the end of the pass to reach it).

    See Also
    --------
    swap_front : The whole trade-off by the same steps.

    Notes
    -----
    An iteration takes O(n_a K d + n_b (m d + K (J + d))) for m candidates, whatever n is; a pass
    adds O(n d). Memory is O(n) integers. Guaranteed: swaps never lower the balance, so with
    ``min_balance`` every pass ends feasible or where no swap helps. For two groups no swap helps
    only if no labelling with these cluster sizes reaches ``min_balance``; for more groups it is a
    local search. The cost need not fall from pass to pass, as swaps raise it.

    References
    ----------
    S. Liu, L. N. Vicente, "A stochastic alternating balance k-means algorithm for fair clustering".

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.solvers.clustering.swap import swap_descent
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) + 4 * np.repeat([[0], [1]], 100, axis=0)
    >>> codes = (X[:, 1] + rng.normal(size=200) > 2).astype(np.int64)
    >>> result = swap_descent(
    ...     X, codes, 2, 2, labels=np.arange(200) // 100, min_balance=0.5, random_state=0
    ... )
    >>> counts = np.histogram2d(result.theta, codes, bins=2)[0]
    >>> bool((counts.min(axis=1) / counts.max(axis=1)).min() >= 0.5)
    True
    """
    from skfair._kernels import swaps

    rule = check_options(swap_target, swap_candidates, [(n_kmeans_steps, n_swap_steps)])
    sample = SwapSample(X, codes, n_clusters, n_groups)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    n = X.shape[0]
    state = sample.state(_read_labels(labels, n, n_clusters))
    cells = (
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty((n_groups, n_clusters + 1), np.int64),
    )
    swaps.count_and_sum(sample.data, state)
    swaps.sort_cells(sample.data, state, cells, rng.permutation(n))
    work, log = sample.scratch(n_kmeans_steps), new_log((n_kmeans_steps + 2 * n_swap_steps + 2,))
    enough = 1.0 if min_balance is None else float(min_balance)

    history = History()
    status: Status = "max_iter"
    best = _Best(min_balance)
    best.offer(sample.cost(state), swaps.overall_balance(state[1], work[-1]), state[0])
    before = (math.inf, math.inf)
    n_iter = 0
    for n_iter in range(1, max_iter + 1):
        n_candidates = (
            min(2**n_iter, MAX_CANDIDATES) if swap_candidates == "auto" else int(swap_candidates)
        )
        # A pass: every row once in a k-means step, in random order.
        size = n_kmeans_steps or 2 * n_swap_steps
        rows = rng.permutation(n).astype(np.int32) if n_kmeans_steps else np.empty(0, np.int32)
        n_left = math.ceil(n / size)
        step = max(1, _MAX_DRAWS // (2 * max(n_swap_steps, 1)))
        for first in range(0, n_left, step):
            draws = rng.random((min(step, n_left - first), n_swap_steps, 2))
            part = rows[first * n_kmeans_steps :]
            swaps.descend(
                sample.data,
                state,
                cells,
                part,
                n_kmeans_steps,
                draws,
                n_candidates,
                rule,
                enough,
                work,
                log,
            )
        n_swaps = 0
        if min_balance is not None:
            n_swaps = _repair(sample, state, cells, rule, enough, work, log, rng)
        swaps.count_and_sum(sample.data, state)  # so that rounding errors do not build up
        cost, balance = sample.cost(state), swaps.overall_balance(state[1], work[-1])
        best.offer(cost, balance, state[0])
        history.record(
            objective=cost,
            max_violation=max(0.0, enough - balance) if min_balance else 0.0,
            balance=balance,
            n_swaps=n_swaps,
        )
        if callback is not None and callback(state[0]):
            status = "stopped"
            break
        if abs(cost - before[0]) <= tol * before[0] and abs(balance - before[1]) <= tol:
            status = "converged"
            break
        before = (cost, balance)
    if not best.is_feasible:
        status = "infeasible"
    return SolverResult(
        best.labels.astype(np.int32), np.empty(0), n_iter, status, history.as_dict()
    )


class SwapSample:
    """The data of a problem and what never changes: center, scale, sum of squares, group sizes."""

    def __init__(self, X: NDArray[Any], codes: IntArray, n_clusters: int, n_groups: int) -> None:
        from skfair._kernels import swaps

        n_samples, n_features = X.shape
        if n_samples < n_clusters:
            raise ValueError(
                f"X has {n_samples} rows but n_clusters={n_clusters}. Pass at least one row per "
                "cluster, or ask for fewer clusters."
            )
        if codes.size != n_samples:
            raise ValueError(
                f"codes has {codes.size} values but X has {n_samples} rows. Pass one group per row."
            )
        self.sizes = np.bincount(codes, minlength=n_groups)
        if self.sizes.size > n_groups or not self.sizes.all():
            raise ValueError(
                f"codes must take every value from 0 to {n_groups - 1}, got groups of sizes "
                f"{self.sizes.tolist()}. Number the groups that occur, without gaps."
            )
        self.shape = (n_clusters, n_groups, n_features)
        # Sums of squares are taken about the mean, or they would lose their digits far from 0.
        center = X.mean(axis=0, dtype=np.float64)
        spread = swaps.spread(X, center)
        # A power of 2 keeps squares of very large or small numbers finite and rounds nothing.
        self._exponent = max(-1000, min(1000, -math.frexp(spread)[1]))
        scale = math.ldexp(1.0, self._exponent)
        # Small integers are half of the memory traffic of a move.
        self.data = (X, center, scale, codes.astype(np.min_scalar_type(-n_groups)))
        self.total = swaps.sum_of_squares(X, center, scale)

    def state(self, labels: NDArray[Any]) -> Any:
        """Return labels with room for counts and sums."""
        n_clusters, n_groups, n_features = self.shape
        counts = np.empty((n_clusters, n_groups), np.int64)
        return labels, counts, np.empty((n_clusters, n_features))

    def scratch(self, batch_size: int) -> Any:
        """Return the scratch arrays of the kernels."""
        n_clusters, _, n_features = self.shape
        return (
            np.empty((n_features, batch_size)),
            np.empty(batch_size),
            np.empty(batch_size),
            np.empty(batch_size, np.int64),
            np.empty(n_features),
            np.empty(n_clusters),
        )

    def cost(self, state: Any) -> float:
        """Return the mean squared distance in the units of X, in full precision."""
        from skfair._kernels import swaps

        cost = swaps.mean_cost(state, self.total)
        if cost * state[0].size < CANCELLATION * self.total:
            cost = swaps.direct_cost(self.data, state)
        return float(self.unscaled(cost))

    def unscaled(self, cost: Any) -> Any:
        """Return costs in the units of X."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(cost, -2 * self._exponent)


class _Best:
    """The labels to return: the last ones, or the best ones under a bound on the balance."""

    labels: NDArray[Any]

    def __init__(self, min_balance: float | None) -> None:
        self._min_balance = min_balance
        self.is_feasible = min_balance is None
        self._key: tuple[float, float] | None = None

    def offer(self, cost: float, balance: float, labels: NDArray[Any]) -> None:
        """Take a copy of the labels if they are the best so far."""
        if self._min_balance is not None:
            # Below the bound, the balance decides; above it, only the cost.
            key = (min(balance, self._min_balance), -cost)
            if self._key is not None and key <= self._key:
                return
            self._key = key
            self.is_feasible = balance >= self._min_balance
        self.labels = labels.copy()


def _repair(
    sample: SwapSample,
    state: Any,
    cells: Any,
    rule: int,
    enough: float,
    work: Any,
    log: Any,
    rng: np.random.Generator,
) -> int:
    """Swap until the balance is enough or no swap helps; return the number of swaps."""
    from skfair._kernels import swaps

    n_swaps, n_planned = 0, 64
    while True:
        draws = rng.random((n_planned, 2))
        n_made, is_stuck = swaps.raise_balance(
            sample.data, state, cells, draws, _REPAIR_CANDIDATES, rule, enough, work, log
        )
        n_swaps += n_made
        # Every swap raises the smallest balance or has fewer clusters attain it: this ends.
        if is_stuck or n_made < n_planned:
            return n_swaps
        n_planned = 2048


def new_log(shape: tuple[int, ...]) -> Any:
    """Return room for the rows, old labels and new labels of moves."""
    return np.empty(shape, np.int32), np.empty(shape, np.int32), np.empty(shape, np.int32)


def _read_labels(labels: NDArray[Any], n_samples: int, n_clusters: int) -> NDArray[Any]:
    """Return a copy of the labels in the smallest integers that hold them."""
    if labels.shape != (n_samples,) or labels.min() < 0 or labels.max() >= n_clusters:
        raise ValueError(
            f"labels must be {n_samples} numbers from 0 to {n_clusters - 1}, one per row of X, got "
            f"shape {labels.shape} with values from {labels.min()} to {labels.max()}."
        )
    return labels.astype(np.min_scalar_type(-n_clusters))


def check_options(
    swap_target: str, swap_candidates: str | int, pairs: Sequence[tuple[int, int]]
) -> int:
    """Return the code of the target rule; raise for options that make no sense."""
    if swap_target not in _TARGETS:
        raise ValueError(f"swap_target={swap_target!r} is unknown. Choose 'global' or 'local'.")
    if swap_candidates != "auto" and (isinstance(swap_candidates, str) or swap_candidates < 1):
        raise ValueError(
            f"swap_candidates={swap_candidates!r} is neither 'auto' nor at least 1. Pass the "
            "number of rows to choose from in a swap."
        )
    if not len(pairs) or any(min(pair) < 0 or max(pair) == 0 for pair in pairs):
        raise ValueError(
            "The numbers of rows per k-means step and of swaps must be at least 0 and not both 0, "
            f"got {[tuple(pair) for pair in pairs]}."
        )
    return _TARGETS[swap_target]
