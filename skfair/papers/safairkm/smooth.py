r"""Smooth fair k-means: alternating gradient steps on cost and balance over centres and offsets.

Section 5 of the paper on stochastic alternating balance k-means (safairkm) proves what alternating
gradient steps (Algorithm 4) do for two smooth objectives. It remarks that the objectives of fair
k-means become smooth if their minima are smoothed, but not how. This file smooths them as functions
of the centres C and of offsets :math:`w_{kj}`. An offset is added to the squared distance of the
members of group j from the centre of cluster k:

.. math:: s_{ik} &\propto \exp(-(\|x_i - c_k\|^2 + w_{k j_i}) / \tau), \qquad
    n_{kj} = \sum_{i \in j} m_i s_{ik} \\
    f_1 &= \sum_i m_i \sum_k s_{ik} \|x_i - c_k\|^2 \\
    f_2 &= -\frac{1}{\gamma} \log \sum_k \sum_{j \ne h}
        \exp(-\gamma (\log n_{kj} - \log n_{kh}))

f_1, to be made small, tends to the k-means cost, and f_2, to be made large, to the logarithm of the
smallest balance. An iteration makes ``n_kmeans_steps`` steps on f_1 and ``n_swap_steps`` on -f_2,
so their shares are the weights of the two in the sum that is minimised.

Choices that the paper leaves open. (1) All squared distances are shares of the total variance. (2)
Assignments and counts are kept as logarithms. On well separated data a soft assignment is 0 or 1 in
floating point and its derivative is 0, so nothing would move. The logarithm of a count still has a
slope, by the group's nearest member. (3) The temperature :math:`\tau` falls from a large value. If
it were low from the start, those slopes would be so steep that the offsets overshoot and empty a
cluster (measured on ``make_grouped_blobs("equal")`` at temperature 0.003). (4) Batches are drawn
group by group, in proportion, so that no count is empty. (5) Offsets are measured in a unit of
their own, a fixed preconditioner of both objectives. (6) The gradient of f_2 by the centres is cut
to a maximal length, because at low temperature it is so steep that centres leave the data (measured
on Bank, K=10). The gradient of f_1 is cut only if centres lie far from all data. The theorem
assumes bounded second moments, too, but its limit, the minimiser of the weighted sum, holds only if
nothing is cut.

Glossary: tau -> ``temperature``, gamma -> ``sharpness``, m -> shares of the rows in all weight,
n_a -> ``n_kmeans_steps``, n_b -> ``n_swap_steps``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.points import RepresentationProblem, squared_distances
from skfair.cluster.kmeans.solver import (
    Clustering,
    ClusteringSolver,
    RunSettings,
    of_labels,
    register,
)
from skfair.papers.safairkm.alternating import alternating_gradient
from skfair.papers.safairkm.soft_objectives import SoftRows, soft_balance, soft_cost
from skfair.utils.pieces import NUMBERS

# The first temperature is _HOTTEST total variances. The last one is _COLDEST times the mean squared
# distance to the nearest centre, but at least _LEAST total variances.
_HOTTEST, _COLDEST, _LEAST = 0.3, 0.05, 1e-3
# After this share of the iterations the temperature stays at its last value.
_ANNEALED = 0.7
# The unit in which the optimiser sees offsets, in total variances: the root of 0.1 (0.03, 0.1, 0.3
# and 1 were tried).
_OFFSET_UNIT = 0.1**0.5
# The gradient of f_2 by the centres is cut to this length, per standard deviation.
_LONGEST = 0.3
# Whether a run has converged is judged by the movement in this last share of the iterations.
_TAIL = 0.1


@register
@dataclass
class Smooth(ClusteringSolver):
    r"""Gradient steps on a soft k-means cost and on a soft balance in turn.

    The method minimises a weighted sum of the cost of soft assignments and of their smallest
    balance, by gradient steps on each of the two in turn,

    .. math:: \min_{C, W} \frac{n_a}{n_a + n_b} f_1(C, W) - \frac{n_b}{n_a + n_b} f_2(C, W)

    with :math:`f_1` the cost of soft assignments, in units of the total variance, and :math:`f_2`
    the logarithm of their smallest balance, see the module's documentation. The best of several
    runs has the least value of this at its labels.

    Parameters
    ----------
    n_kmeans_steps : int, default=20
        Number of steps per iteration on the cost.
    n_swap_steps : int, default=4
        Number of steps per iteration on the balance. With more of these steps, the clusters are
        more balanced, and the cost is larger. The two numbers of steps must not both be 0.
    batch_size : int or None, default=1024
        Number of rows per gradient. They are drawn from the groups in proportion to their weights.
        If None, all rows are used.
    temperature : "auto", float or (float, float), default="auto"
        Softness of the assignments, in units of the total variance. A pair sets the first and the
        last value. If "auto", it decreases from 0.3 to a twentieth of the mean distance to the
        nearest initial centre. With smaller values, the soft assignments are closer to a true
        clustering. If the first value is small, however, clusters of well separated data may end up
        empty.
    sharpness : float, default=10.0
        Sharpness of the soft minimum. With larger values it is closer to the worst balance, and
        with smaller values it averages over the clusters.

    See Also
    --------
    skfair.cluster.FairKMeans : Clustering that accepts this method as ``solver``.

    Notes
    -----
    The temperature decreases during the first 70% of the iterations, so a run makes all of them. It
    counts as converged if the centres together moved by at most the root of ``tol`` per iteration
    of the last tenth, in standard deviations of the data.

    A gradient costs O(batch_size K d). The gradient of f_1 from a batch is unbiased, but the
    gradient of f_2 is biased. It contains logarithms of counts, whose expectation is below the
    logarithm of the expected count by a term of order 1 / (rows of the group in the batch and
    cluster). Groups with few rows in a batch therefore look worse than they are, and larger batches
    reduce this bias. Neither objective is convex, so the theorem of the paper does not apply, and
    there is no lower bound on the balance.

    References
    ----------
    Liu, S. and Vicente, L. N. "A stochastic alternating balance k-means algorithm for fair
    clustering", section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.cluster import FairKMeans
    >>> from skfair.papers import Smooth
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> groups = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    >>> balances = []
    >>> for n_swap_steps in (0, 5):
    ...     solver = Smooth(n_kmeans_steps=5, n_swap_steps=n_swap_steps)
    ...     model = FairKMeans(2, min_balance=None, solver=solver, random_state=0)
    ...     balances.append(model.fit(X, sensitive_features=groups).balance_)
    >>> balances[1] > balances[0]
    True
    """

    n_kmeans_steps: Annotated[int, Interval(Integral, 0, None, closed="left")] = 20
    n_swap_steps: Annotated[int, Interval(Integral, 0, None, closed="left")] = 4
    batch_size: Annotated[int | None, Interval(Integral, 1, None, closed="left"), None] = 1024
    temperature: Annotated[
        str | float | tuple[float, float],
        StrOptions({"auto"}),
        Interval(Real, 0, np.inf, closed="neither"),
        tuple,
    ] = "auto"
    sharpness: Annotated[float, Interval(Real, 0, np.inf, closed="neither")] = 10.0

    name = "smooth"
    trades_by = "n_kmeans_steps and n_swap_steps"

    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        max_iter = settings.max_iter
        groups = _Groups(problem)
        temperatures = self._temperatures(problem, start, max_iter)
        relaxed = _Relaxed(problem, groups, self.batch_size, self.sharpness, temperatures)
        n_last = _TAIL * max_iter
        before_last = [start]

        def after_iteration(x: FloatArray) -> bool:
            relaxed.n_iter += 1
            now = relaxed.split(x)[0]
            if relaxed.n_iter <= max_iter - n_last:
                before_last[0] = now
            return settings.callback(now)

        steps = alternating_gradient(
            relaxed.cost_gradient,
            relaxed.unfairness_gradient,
            np.hstack((start, np.zeros((problem.n_clusters, groups.n_present)))),
            n_a=int(self.n_kmeans_steps),
            n_b=int(self.n_swap_steps),
            # With fixed assignments, the curvature of the cost f_1 in centre k is 2 n_k, where n_k,
            # the share of the rows in cluster k, is about 1 / K. Soft assignments add curvature, so
            # twice this value is taken as the Lipschitz constant of the gradient.
            strong_convexity=2 / problem.n_clusters,
            lipschitz=4 / problem.n_clusters,
            max_iter=max_iter,
            random_state=settings.random_state,
            callback=after_iteration,
        )
        centers, of_present = relaxed.split(steps.theta)
        offsets = np.zeros((problem.n_clusters, problem.n_groups))
        offsets[:, groups.levels] = of_present
        status = steps.status
        moved = float(np.linalg.norm(centers - before_last[0]))
        if status == "max_iter" and moved <= np.sqrt(settings.tol) * n_last:
            status = "converged"
        clustering = of_labels(
            problem,
            _labels(problem, offsets, centers),
            n_iter=steps.n_iter,
            status=status,
            history={"temperature": temperatures[: steps.n_iter], **steps.history},
            prices=offsets,
        )
        return clustering._replace(objective=self._objective(problem, clustering))

    def _objective(self, problem: RepresentationProblem, clustering: Clustering) -> float:
        """Return the weighted sum of the two objectives for the hard labels of a clustering."""
        counts = problem.counts(clustering.labels) @ problem.membership.T
        counts = counts[:, counts.sum(axis=0) > 0]
        lowest, highest = counts.min(axis=1), counts.max(axis=1)
        balance = float((lowest / np.where(highest > 0, highest, 1.0)).min())
        unfairness = -np.log(balance) if balance > 0 else np.inf
        weighted = self.n_swap_steps * unfairness if self.n_swap_steps else 0.0
        n_steps = self.n_kmeans_steps + self.n_swap_steps
        return float((self.n_kmeans_steps * clustering.cost + weighted) / n_steps)

    def _temperatures(
        self, problem: RepresentationProblem, centers: FloatArray, max_iter: int
    ) -> FloatArray:
        """Return the temperature of each iteration: a geometric fall, then a constant."""
        if isinstance(self.temperature, str):
            nearest, masses = 0.0, problem.masses
            for rows in _chunks(problem):
                distances = squared_distances(problem.in_full_precision(rows), centers)
                nearest += float(masses[rows] @ distances.min(axis=1))
            hot, cold = _HOTTEST, min(_HOTTEST, max(_LEAST, _COLDEST * nearest))
        else:
            hot, cold = _checked_temperatures(self.temperature)
        progress = np.minimum(1.0, np.arange(max_iter) / max(1.0, _ANNEALED * max_iter))
        return np.asarray(hot ** (1 - progress) * cold**progress)


class _Relaxed:
    """The two objectives as functions of one array x, for ``alternating_gradient``.

    x (n_clusters, n_features + n_present) holds the centres and then the offsets of the groups that
    have rows, in ``_OFFSET_UNIT``. ``n_iter`` is the iteration, which determines the temperature.
    """

    def __init__(
        self,
        problem: RepresentationProblem,
        groups: _Groups,
        batch_size: int | None,
        sharpness: float,
        temperatures: FloatArray,
    ) -> None:
        self.problem, self.groups, self.batch_size = problem, groups, batch_size
        self.sharpness, self.temperatures = sharpness, temperatures
        self.n_iter = 0

    def split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the centres, and the offsets in units of the total variance."""
        n_features = x.shape[1] - self.groups.n_present
        return x[:, :n_features], _OFFSET_UNIT * x[:, n_features:]

    def cost_gradient(self, x: FloatArray, rng: np.random.RandomState) -> FloatArray:
        """Return the gradient of f_1 on a batch."""
        _, by_centers, by_offsets = soft_cost(self._drawn(x, rng))
        # At fixed assignments the gradient has about this length at most. It is cut there, because
        # centres far from the data would overshoot.
        farthest = float(np.linalg.norm(self.split(x)[0], axis=1).max())
        return _join(by_centers, by_offsets, 2 * (1 + farthest))

    def unfairness_gradient(self, x: FloatArray, rng: np.random.RandomState) -> FloatArray:
        _, by_centers, by_offsets = soft_balance(self._drawn(x, rng), self.sharpness)
        return _join(-by_centers, -by_offsets, _LONGEST)

    def _drawn(self, x: FloatArray, rng: np.random.RandomState) -> SoftRows:
        """Return a batch at the centres and offsets of x."""
        places, codes, masses = self.groups.draw(self.batch_size, rng)
        temperature = float(self.temperatures[self.n_iter])
        rows = self.problem.in_full_precision(places)
        return SoftRows(rows, codes, masses, *self.split(x), temperature)


def _join(by_centers: FloatArray, by_offsets: FloatArray, longest: float) -> FloatArray:
    """Return the gradient by x, whose part for the centres has at most the length ``longest``."""
    length = float(np.linalg.norm(by_centers))
    return np.hstack((by_centers * (longest / max(length, longest)), _OFFSET_UNIT * by_offsets))


class _Groups:
    """Draws rows group by group.

    Groups are numbered in the order of their first rows, so results do not depend on names.
    """

    def __init__(self, problem: RepresentationProblem) -> None:
        codes, masses = problem.codes, problem.masses
        counted = np.flatnonzero(masses)
        levels, first = np.unique(codes[counted], return_index=True)
        self.levels = levels[np.argsort(first)]  # codes of the groups with rows, by first row
        self.n_present = self.levels.size
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
            places.append(rows[np.minimum(drawn, rows.size - 1)])  # u * total can round up to total
        codes = np.repeat(np.arange(self.n_present), sizes)
        return np.concatenate(places), codes, (self.shares / sizes)[codes]


def _labels(problem: RepresentationProblem, offsets: FloatArray, centers: FloatArray) -> IntArray:
    """Return for each row the cluster where squared distance plus offset is smallest."""
    codes = problem.codes
    labels = np.empty(codes.size, dtype=np.int64)
    for rows in _chunks(problem):
        prices = squared_distances(problem.in_full_precision(rows), centers)
        prices += offsets.T[codes[rows]]
        labels[rows] = prices.argmin(axis=1)
    return labels


def _chunks(problem: RepresentationProblem) -> Iterator[slice]:
    """Yield slices of rows whose distances stay in the cache."""
    yield from gen_batches(problem.n_samples, max(1, NUMBERS // problem.n_clusters))


def _checked_temperatures(temperature: float | tuple[float, ...]) -> tuple[float, float]:
    """Return the first and the last temperature; raise if the parameter is not valid."""
    values = np.asarray(temperature, dtype=np.float64)
    if values.shape not in ((), (2,)) or not ((values > 0) & (values < np.inf)).all():
        raise ValueError(
            f"temperature must be 'auto', a number above 0 or a pair of them, got {temperature!r}."
        )
    hot, cold = np.broadcast_to(values, 2).tolist()
    return hot, cold
