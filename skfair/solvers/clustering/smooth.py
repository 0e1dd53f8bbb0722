r"""Smooth fair k-means: alternating gradient steps on cost and balance over centres and offsets.

Section 5 of the paper on stochastic alternating balance k-means (safairkm) proves what alternating
gradient steps (Algorithm 4) do for two smooth objectives and remarks that fair k-means becomes one
if its minima are smoothed; it does not say how. This file does, over the centres C and an offset
:math:`w_{kj}` that a member of group j pays for cluster k:

.. math:: s_{ik} &\propto \exp(-(\|x_i - c_k\|^2 + w_{k j_i}) / \tau), \qquad
    n_{kj} = \sum_{i \in j} m_i s_{ik} \\
    f_1 &= \sum_i m_i \sum_k s_{ik} \|x_i - c_k\|^2 \\
    f_2 &= -\frac{1}{\gamma} \log \sum_k \sum_{j \ne h}
        \exp(-\gamma (\log n_{kj} - \log n_{kh}))

f_1, to be made small, tends to the k-means cost, and f_2, to be made large, to the logarithm of the
smallest balance. An iteration makes ``n_kmeans_steps`` steps on f_1 and ``n_swap_steps`` on -f_2,
so their shares are the weights of the two in the sum that is minimised.

Choices that the paper leaves open. (1) All units are those of the data's total variance. (2)
Assignments and counts are kept as logarithms. On well separated data a soft assignment is 0 or 1 in
floating point and its derivative is 0, so nothing would move; the logarithm of a count still has a
slope, that of the group's nearest member. (3) The temperature :math:`\tau` falls from a large
value: from a cold start those slopes are so steep that the offsets overshoot and empty a cluster
(measured on ``make_grouped_blobs("equal")`` at temperature 0.003). (4) Batches
are drawn group by group, in proportion, so that no count is empty. (5) Offsets are measured in a
unit of their own, a fixed preconditioner of both objectives. (6) The gradient of f_2 by the
centres is cut to a length: at low temperature it is so steep that clusters are thrown out of the
data (measured on Bank, K=10). That of f_1 is cut only where centres lie far from all data. The
theorem asks for bounded second moments, too, but its limit, the minimiser of the weighted sum,
holds only where nothing is cut.

Glossary: tau -> ``temperature``, gamma -> ``sharpness``, m -> shares of the rows in all weight,
n_a -> ``n_kmeans_steps``, n_b -> ``n_swap_steps``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from skfair._typing import FloatArray
from skfair.problems.clustering.scaled_rows import ScaledRows, row_masses, squared_distances
from skfair.solvers.base import Status
from skfair.solvers.clustering.alternating import alternating_gradient
from skfair.utils.factorize import IntArray

# Numbers of rows times clusters handled at a time when all rows get their labels.
_CHUNK = 1 << 16
# Temperatures: the first in total variances, the last in mean distances to the nearest centre, and
# the least one, which is sharp enough for every purpose, in total variances.
_HOTTEST, _COLDEST, _LEAST = 0.3, 0.05, 1e-3
# After this share of the iterations the temperature stays at its last value.
_ANNEALED = 0.7
# The unit of the offsets, in total variances: the root of 0.1 (0.03, 0.1, 0.3 and 1 were tried).
_OFFSET_UNIT = 0.1**0.5
# The longest gradient of f_2 by the centres that is not cut, per standard deviation.
_LONGEST = 0.3
# Movement is measured over this last share of the iterations.
_TAIL = 0.1


class SmoothResult(NamedTuple):
    """What the smooth method found.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        The cluster where squared distance plus offset is least, for each row.
    centers : ndarray of shape (n_clusters, n_features)
        The centres, in units of X. They are not the means of the labels.
    offsets : ndarray of shape (n_clusters, n_groups)
        What a member of a group pays for a cluster besides the squared distance, in squared units
        of X; 0 for a group without rows. Values beyond the range of floats are cut off.
    n_iter : int
        Number of iterations.
    status : {"converged", "max_iter", "stopped"}
        "converged" if the centres moved by at most ``tol`` in the last tenth of the iterations.
    history : dict of ndarray
        ``temperature`` (in total variances), ``step``, ``gradient_norm`` and ``seconds``, one row
        per iteration.
    """

    labels: IntArray
    centers: FloatArray
    offsets: FloatArray
    n_iter: int
    status: Status
    history: dict[str, NDArray[Any]]


def smooth_fair_kmeans(
    X: NDArray[Any],
    codes: IntArray,
    n_clusters: int,
    n_groups: int,
    *,
    centers: NDArray[Any],
    n_kmeans_steps: int,
    n_swap_steps: int,
    max_iter: int = 150,
    batch_size: int | None = 1024,
    temperature: Literal["auto"] | float | tuple[float, float] = "auto",
    sharpness: float = 10.0,
    tol: float = 0.1,
    random_state: Any = None,
    weights: FloatArray | None = None,
    callback: Callable[[tuple[FloatArray, FloatArray]], bool] | None = None,
) -> SmoothResult:
    r"""Cluster by gradient steps on a soft k-means cost and a soft balance in turn.

    .. math:: \min_{C, W} \frac{n_a}{n_a + n_b} f_1(C, W) - \frac{n_b}{n_a + n_b} f_2(C, W)

    with :math:`f_1` the cost of soft assignments, in units of the total variance, and :math:`f_2`
    the logarithm of their smallest balance, see the module's documentation.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data, float32 or float64; read in batches, never copied as a whole.
    codes : ndarray of shape (n_samples,)
        Group number of each row, from 0.
    n_clusters, n_groups : int
        Number of clusters and of groups.
    centers : ndarray of shape (n_clusters, n_features)
        Where the centres start.
    n_kmeans_steps, n_swap_steps : int
        Steps per iteration on the cost and on the balance, at least 0 and not both 0. A larger
        share of steps on the balance makes clusters more balanced and dearer.
    max_iter : int, default=150
        Number of iterations; the temperature falls during the first 70 % of them.
    batch_size : int or None, default=1024
        Rows per gradient, spread over the groups in proportion to their weight. None: all rows,
        without chance.
    temperature : "auto", float or (float, float), default="auto"
        Softness of the assignments in units of the total variance; a pair is that of the start and
        that of the end, one number is kept throughout. "auto" goes from 0.3 to a twentieth of the
        mean distance to the nearest starting centre. Smaller ones follow the true clustering more
        closely; with a small one at the start, clusters of well separated data end up empty.
    sharpness : float, default=10.0
        How closely the soft minimum follows the worst balance. A smaller one averages over the
        clusters.
    tol : float, default=0.1
        How far the centres together may move in the last tenth of the iterations to be called
        converged, in standard deviations of the data.
    random_state : int, RandomState instance or None, default=None
        Seed of the batches.
    weights : ndarray of shape (n_samples,), default=None
        Weights of the rows, at least 0. Rows are drawn in proportion to them.
    callback : callable, default=None
        Called with ``(centers, offsets)``, as in the result, after each iteration; a true return
        value ends the run.

    Returns
    -------
    result : SmoothResult
        Labels, centres, offsets and the course of the run.

    Notes
    -----
    A gradient costs O(batch_size K d). The gradient of f_1 from a batch is unbiased, that of f_2 is
    not: it contains logarithms of counts, whose expectation is below the logarithm of the expected
    count by a term of order 1 / (rows of the group in the batch and cluster). Groups with few rows
    in a batch therefore look worse than they are; larger batches reduce it. Neither objective is
    convex, so of the theorem only the meaning of the two numbers of steps remains. Nothing bounds
    the balance from below.

    References
    ----------
    Liu, S. and Vicente, L. N. "A stochastic alternating balance k-means algorithm for fair
    clustering", section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.solvers.clustering.smooth import smooth_fair_kmeans
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> groups = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    >>> centers = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> for n_swap_steps in (0, 5):
    ...     found = smooth_fair_kmeans(
    ...         X,
    ...         groups,
    ...         2,
    ...         2,
    ...         centers=centers,
    ...         n_kmeans_steps=5,
    ...         n_swap_steps=n_swap_steps,
    ...         random_state=0,
    ...     )
    ...     print([round(float(groups[found.labels == k].mean()), 1) for k in (0, 1)])
    [0.2, 0.8]
    [0.4, 0.6]
    """
    _check_parameters(temperature, sharpness, batch_size)
    masses = row_masses(weights, len(X))
    data = ScaledRows(X, masses)
    groups = _Groups(codes, masses, n_groups)
    first = data.inwards(centers)
    temperatures = _temperatures(temperature, data, masses, first, max_iter)
    relaxed = _Relaxed(data, groups, batch_size, sharpness, temperatures)
    seen = [first]  # the centres at the start of the last tenth

    def after_iteration(x: FloatArray) -> bool:
        relaxed.n_iter += 1
        if relaxed.n_iter <= (1 - _TAIL) * max_iter:
            seen[0] = relaxed.split(x)[0]
        return callback is not None and callback(relaxed.outwards(x))

    result = alternating_gradient(
        relaxed.cost_gradient,
        relaxed.unfairness_gradient,
        np.hstack((first, np.zeros((n_clusters, groups.n_present)))),
        n_a=n_kmeans_steps,
        n_b=n_swap_steps,
        # f_1 is 2 n_k-strongly convex in centre k if assignments stay, and n_k is about 1 / K; the
        # soft assignments bend it further, hence twice that as the Lipschitz constant.
        strong_convexity=2 / n_clusters,
        lipschitz=4 / n_clusters,
        max_iter=max_iter,
        random_state=random_state,
        callback=after_iteration,
    )
    own_centers, own_offsets = relaxed.split(result.theta)
    outer_centers, offsets = relaxed.outwards(result.theta)
    status = result.status
    if status == "max_iter" and np.linalg.norm(own_centers - seen[0]) <= tol:
        status = "converged"
    return SmoothResult(
        labels=_labels(data, groups.expand(own_offsets), codes, own_centers),
        centers=outer_centers,
        offsets=offsets,
        n_iter=result.n_iter,
        status=status,
        history={"temperature": temperatures[: result.n_iter], **result.history},
    )


def soft_cost(
    rows: FloatArray,
    codes: IntArray,
    masses: FloatArray,
    centers: FloatArray,
    offsets: FloatArray,
    temperature: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Return f_1 and its gradients by the centres and by the offsets."""
    distances, logs = _soft_assign(rows, codes, centers, offsets, temperature)
    assigned = masses[:, None] * np.exp(logs)
    means = np.einsum("ik,ik->i", np.exp(logs), distances)
    by_logits = assigned * (distances - means[:, None])
    by_distances = assigned - by_logits / temperature
    return (
        float(masses @ means),
        _pull_back(by_distances, rows, centers),
        _by_group(-by_logits / temperature, codes, offsets),
    )


def soft_balance(
    rows: FloatArray,
    codes: IntArray,
    masses: FloatArray,
    centers: FloatArray,
    offsets: FloatArray,
    temperature: float,
    sharpness: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Return f_2 and its gradients by the centres and by the offsets; every group needs a row.

    With a single group there are no pairs: the value is 0.
    """
    n_groups = offsets.shape[1]
    if n_groups < 2:
        return 0.0, np.zeros_like(centers), np.zeros_like(offsets)
    _, logs = _soft_assign(rows, codes, centers, offsets, temperature)
    parts = logs + np.log(masses)[:, None]  # logarithms of what each row adds to its count
    log_counts = np.array([logsumexp(parts[codes == j], axis=0) for j in range(n_groups)])
    exponents = -sharpness * (log_counts[:, None] - log_counts[None])  # j, h, k
    exponents[np.arange(n_groups), np.arange(n_groups)] = -np.inf
    total = float(logsumexp(exponents))
    worst = np.exp(exponents - total)  # weight of each pair in the soft minimum
    by_log_counts = worst.sum(axis=1) - worst.sum(axis=0)
    # d log n_kj / d log s_ik is the share of row i in the count.
    by_logs = np.exp(parts - log_counts[codes]) * by_log_counts[codes]
    by_logits = by_logs - np.exp(logs) * by_logs.sum(axis=1, keepdims=True)
    return (
        -total / sharpness,
        _pull_back(-by_logits / temperature, rows, centers),
        _by_group(-by_logits / temperature, codes, offsets),
    )


def _soft_assign(
    rows: FloatArray,
    codes: IntArray,
    centers: FloatArray,
    offsets: FloatArray,
    temperature: float,
) -> tuple[FloatArray, FloatArray]:
    """Return squared distances and the logarithms of the soft assignments."""
    distances = squared_distances(rows, centers)
    logs = -(distances + offsets.T[codes]) / temperature
    logs -= logs.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return distances, logs


def _pull_back(by_distances: FloatArray, rows: FloatArray, centers: FloatArray) -> FloatArray:
    """Turn derivatives by the squared distances into those by the centres."""
    return np.asarray(2 * (by_distances.sum(axis=0)[:, None] * centers - by_distances.T @ rows))


def _by_group(by_prices: FloatArray, codes: IntArray, offsets: FloatArray) -> FloatArray:
    """Add up the derivatives by the offset that each row pays, shape (n_clusters, n_groups)."""
    return np.stack([by_prices[codes == j].sum(axis=0) for j in range(offsets.shape[1])], axis=1)


class _Relaxed:
    """The two objectives as functions of one array: centres, then offsets in their own unit."""

    def __init__(
        self,
        data: ScaledRows,
        groups: _Groups,
        batch_size: int | None,
        sharpness: float,
        temperatures: FloatArray,
    ) -> None:
        self.data, self.groups, self.batch_size = data, groups, batch_size
        self.sharpness, self.temperatures = sharpness, temperatures
        self.n_iter = 0

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centres and offsets in total variances."""
        n_features = x.shape[1] - self.groups.n_present
        return x[:, :n_features], _OFFSET_UNIT * x[:, n_features:]

    def outwards(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return centres and offsets in units of X."""
        centers, offsets = self.split(x)
        offsets = self.data.squared_outwards(self.groups.expand(offsets))
        return self.data.outwards(centers), offsets

    def cost_gradient(self, x: FloatArray, rng: np.random.RandomState) -> FloatArray:
        """Return the gradient of f_1 on a batch."""
        _, by_centers, by_offsets = soft_cost(*self._arguments(x, rng))
        # At fixed assignments it is about this long at most; centres far off would overshoot.
        farthest = float(np.linalg.norm(self.split(x)[0], axis=1).max())
        return _join(by_centers, by_offsets, 2 * (1 + farthest))

    def unfairness_gradient(self, x: FloatArray, rng: np.random.RandomState) -> FloatArray:
        """Return the gradient of -f_2 on a batch."""
        _, by_centers, by_offsets = soft_balance(*self._arguments(x, rng), self.sharpness)
        return _join(-by_centers, -by_offsets, _LONGEST)

    def _arguments(
        self, x: FloatArray, rng: np.random.RandomState
    ) -> tuple[FloatArray, IntArray, FloatArray, FloatArray, FloatArray, float]:
        places, codes, masses = self.groups.draw(self.batch_size, rng)
        temperature = float(self.temperatures[self.n_iter])
        return self.data.block(places), codes, masses, *self.split(x), temperature


def _join(by_centers: FloatArray, by_offsets: FloatArray, longest: float) -> FloatArray:
    """Return one gradient; the part of the centres is cut to a length."""
    length = float(np.linalg.norm(by_centers))
    return np.hstack((by_centers * (longest / max(length, longest)), _OFFSET_UNIT * by_offsets))


class _Groups:
    """Draws rows group by group. Groups are numbered by their first row, so names do not matter."""

    def __init__(self, codes: IntArray, masses: FloatArray, n_groups: int) -> None:
        counted = np.flatnonzero(masses)
        levels, first = np.unique(codes[counted], return_index=True)
        self.levels = levels[np.argsort(first)]  # of the groups with rows, in order
        self.n_present, self.n_groups = self.levels.size, n_groups
        self.rows = [counted[codes[counted] == level] for level in self.levels]
        self.totals = [np.cumsum(masses[rows]) for rows in self.rows]
        self.shares = np.array([totals[-1] for totals in self.totals])
        places = np.concatenate(self.rows)
        own_codes = np.repeat(np.arange(self.n_present), [rows.size for rows in self.rows])
        self.everyone = places, own_codes, masses[places]

    def draw(
        self, batch_size: int | None, rng: np.random.RandomState
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return rows, their own group numbers and their shares in the total weight."""
        if batch_size is None:
            return self.everyone
        sizes = np.maximum(1, np.rint(batch_size * self.shares)).astype(np.int64)
        places = []
        for rows, totals, size in zip(self.rows, self.totals, sizes, strict=True):
            drawn = np.searchsorted(totals, totals[-1] * rng.uniform(size=size), side="right")
            places.append(rows[np.minimum(drawn, rows.size - 1)])  # u * total can round up
        codes = np.repeat(np.arange(self.n_present), sizes)
        return np.concatenate(places), codes, (self.shares / sizes)[codes]

    def expand(self, offsets: FloatArray) -> FloatArray:
        """Return offsets for all groups, 0 for those without rows."""
        every = np.zeros((len(offsets), self.n_groups))
        every[:, self.levels] = offsets
        return every


def _labels(
    data: ScaledRows, offsets: FloatArray, codes: IntArray, centers: FloatArray
) -> IntArray:
    """Return the cluster where squared distance plus offset is least."""
    labels = np.empty(codes.size, dtype=np.int64)
    for rows in gen_batches(codes.size, max(1, _CHUNK // len(centers))):
        prices = squared_distances(data.block(rows), centers) + offsets.T[codes[rows]]
        labels[rows] = prices.argmin(axis=1)
    return labels


def _temperatures(
    temperature: Literal["auto"] | float | tuple[float, float],
    data: ScaledRows,
    masses: FloatArray,
    centers: FloatArray,
    max_iter: int,
) -> FloatArray:
    """Return the temperature of each iteration: a geometric fall, then a constant."""
    if isinstance(temperature, str):
        nearest = 0.0
        for rows in gen_batches(masses.size, max(1, _CHUNK // len(centers))):
            distances = squared_distances(data.block(rows), centers)
            nearest += float(masses[rows] @ distances.min(axis=1))
        hot, cold = _HOTTEST, min(_HOTTEST, max(_LEAST, _COLDEST * nearest))
    else:
        hot, cold = np.broadcast_to(temperature, 2)
    progress = np.minimum(1.0, np.arange(max_iter) / max(1.0, _ANNEALED * max_iter))
    return np.asarray(hot ** (1 - progress) * cold**progress)


def _check_parameters(temperature: Any, sharpness: float, batch_size: int | None) -> None:
    """Raise for what cannot be run; the numbers of steps are checked where they are made."""
    is_fine = temperature == "auto" if isinstance(temperature, str) else False
    if not isinstance(temperature, str):
        values = np.asarray(temperature, dtype=np.float64)
        is_fine = values.shape in ((), (2,)) and bool((values > 0).all() & (values < np.inf).all())
    if not is_fine:
        raise ValueError(
            f"temperature must be 'auto', a number above 0 or a pair of them, got {temperature!r}."
        )
    if not 0 < sharpness < np.inf:
        raise ValueError(f"sharpness must be above 0 and finite, got {sharpness}.")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size must be at least 1 or None, got {batch_size}.")
