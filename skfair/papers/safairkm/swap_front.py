"""The front of cost against balance by a list of labellings (Algorithm 3 of safairkm).

``Swap.search`` in ``swap.py`` makes a :class:`SwapArchive`, the list, and calls ``breed`` for each
iteration. Every labelling of the list has a child per pair (n_a, n_b), made by one iteration of
Algorithm 2. The list keeps the labellings that no other one dominates.

Changed against the paper:

- One half of the first labellings comes from k-means++ seeds instead of random labels, unless
  ``starts`` says otherwise.
- A point is dominated if another one is at least as good in both objectives and better in one.
  Equal points count once.
- If the list grows too long, the points of least hypervolume are dropped. The paper stops there.
- A child is always one iteration (q = 1, as in the experiments of the paper).
- The rows of a batch are assigned to the centres held before the batch, unless
  ``updates="row"``.
- The children of a labelling draw candidates for their swaps from the same places. Fronts are as
  good, and at 100,000 rows a child takes a seventh less time. They do not share the rows of their
  k-means steps, because the fairest end would then need more iterations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus

from skfair._typing import FloatArray, IntArray
from skfair.papers.safairkm.swap_sample import CANCELLATION, SwapSample, new_log
from skfair.utils.history import History
from skfair.utils.threads import over_blocks

# k-means++ chooses the seeds of a first labelling among this many random rows per cluster.
_SEED_ROWS = 100
# The closest seeds are found for this many rows at a time.
_BLOCK = 256
# A thread makes the children of this many labellings at a time.
_PARENTS = 4


class SwapFront(NamedTuple):
    """The result of ``Swap.search``."""

    # (n_points,): mean squared distance to the centres of each labelling, ascending
    costs: FloatArray
    # (n_points,): balance of each labelling, ascending too: no point dominates another one
    balances: FloatArray
    # (n_points, n_samples): the labellings, in the smallest signed integers that hold the
    # clusters
    labels: NDArray[Any]
    # Per iteration ``n_points``, ``n_children``, ``n_new`` (children that entered the list),
    # ``cost`` (the lowest), ``balance`` (the highest), ``hypervolume`` (share of the box of
    # total variance and balance of the data that the front dominates) and ``seconds``
    history: dict[str, NDArray[Any]]


class SwapArchive:
    """The list of Algorithm 3: labellings of which none dominates another, cheapest first.

    Labels, counts and sums of the labellings lie in three large arrays. The place of a labelling in
    them is its slot. A child is made in the slot of its parent, its moves are logged, and then they
    are undone. If the child enters the list, its moves are repeated in a slot of its own.
    """

    def __init__(
        self,
        sample: SwapSample,  # the data, one group after the other
        rows: IntArray,  # (n_samples,): place of each row of the sample in the data of the user
        labels: NDArray[Any],  # (n_starts, n_samples): the first labellings
        max_points: int,  # largest number of labellings after the first iteration
        *,
        is_by_row: bool = False,  # whether centres move after each row of a k-means step
    ) -> None:
        from skfair.papers._kernels import swap_rows, swaps

        self._sample, self._rows, self._max_points = sample, rows, max_points
        self._is_by_row = is_by_row
        n_clusters, n_groups, n_features = sample.shape
        n_starts, n_slots = len(labels), max(len(labels), max_points)
        self._labels = np.empty((n_slots, rows.size), labels.dtype)
        self._labels[:n_starts] = labels
        self._counts = np.empty((n_slots, n_clusters, n_groups), np.int64)
        self._sums = np.empty((n_slots, n_clusters, n_features))
        bounds = np.concatenate(([0], np.cumsum(sample.sizes)))
        empty = np.empty(0, np.int32)
        self._cells = (empty, empty, np.column_stack((bounds[:-1], bounds[1:])))
        self._history = History()
        costs, balances = np.empty(n_starts), np.empty(n_starts)
        balance_of_clusters = np.empty(n_clusters)
        for s in range(n_starts):
            swap_rows.count_and_sum(sample.data, self._state(s))
            costs[s] = swaps.mean_cost(self._state(s), sample.total)
            balances[s] = swaps.overall_balance(self._counts[s], balance_of_clusters)
        keep = self._select(costs, balances)
        self._slots, self._costs, self._balances = keep, costs[keep], balances[keep]

    def breed(
        self, pairs: IntArray, rule: int, n_candidates: int, rng: np.random.Generator
    ) -> None:
        """Run one iteration: make all children, drop dominated labellings, and assign slots."""
        from skfair.papers._kernels import swaps

        n_parents, n_pairs = self._slots.size, len(pairs)
        n_rows, n_draws = pairs[:, 0].sum(), pairs[:, 1].max()
        batches = rng.integers(self._rows.size, size=(n_parents, n_rows), dtype=np.int32)
        draws = rng.random((n_parents, n_draws, 2))
        shape = (n_parents, n_pairs)
        costs, balances, lengths = np.empty(shape), np.empty(shape), np.empty(shape, np.int64)
        log = new_log((*shape, int((pairs @ [1, 2]).max())))
        n_clusters, n_groups, n_features = self._sample.shape
        at_once = 1 if self._is_by_row else max(int(pairs[:, 0].max()), 1)

        def of_parents(start: int, stop: int) -> None:
            part = slice(start, stop)
            swaps.breed(
                self._sample.data,
                self._cells,
                (self._labels, self._counts, self._sums),
                self._slots[part],
                self._sample.total,
                pairs,
                (batches[part], at_once, draws[part]),
                n_candidates,
                rule,
                self._sample.scratch(int(pairs[:, 0].max())),
                (np.empty((n_clusters, n_groups), np.int64), np.empty((n_clusters, n_features))),
                tuple(moves[part] for moves in log),
                (costs[part], balances[part], lengths[part]),
            )

        over_blocks(of_parents, n_parents, _PARENTS)
        costs = np.concatenate((self._costs, costs.ravel()))
        balances = np.concatenate((self._balances, balances.ravel()))
        keep = self._select(costs, balances)
        self._settle(keep, n_parents, n_pairs, log, lengths)
        self._costs, self._balances = costs[keep], balances[keep]
        self._history.record(
            n_points=keep.size,
            n_children=n_parents * n_pairs,
            n_new=int((keep >= n_parents).sum()),
            cost=self._sample.unscaled(self._costs[0]),
            balance=self._balances[-1],
            hypervolume=self._hypervolume(),
        )

    def front(self) -> SwapFront:
        """Return the list as a front with labels in the order of the user's rows."""
        costs = self._sample.unscaled(self._costs)
        balances, slots = self._balances, self._slots
        if self._costs[0] * self._rows.size < CANCELLATION * self._sample.total:
            costs = np.array([self._sample.cost(self._state(s)) for s in slots])
            keep = _front_order(costs, balances)
            costs, balances, slots = costs[keep], balances[keep], slots[keep]
        labels = np.empty((slots.size, self._rows.size), self._labels.dtype)
        places = np.argsort(self._rows)
        for out, s in zip(labels, slots, strict=True):
            np.take(self._labels[s], places, out=out, mode="clip")
        return SwapFront(costs.copy(), balances.copy(), labels, self._history.as_dict())

    def _state(self, slot: int) -> Any:
        """Return labels, counts and sums of one labelling."""
        return self._labels[slot], self._counts[slot], self._sums[slot]

    def _select(self, costs: FloatArray, balances: FloatArray) -> IntArray:
        """Return the points that stay, cheapest first: nondominated, at most ``max_points``."""
        from skfair.papers._kernels import swaps

        keep = _front_order(costs, balances)
        if keep.size > self._max_points:
            stays = np.ones(keep.size, np.bool_)
            swaps.thin(costs[keep], balances[keep], self._max_points, stays)
            keep = keep[stays]
        return keep

    def _settle(
        self, keep: IntArray, n_parents: int, n_pairs: int, log: Any, lengths: IntArray
    ) -> None:
        """Give a slot to each labelling that stays.

        ``keep`` numbers the parents first, then their children. Parents keep their slot. The last
        child of a dropped parent takes the slot of the parent, other children get free slots.
        """
        from skfair.papers._kernels import swaps

        new = keep >= n_parents
        parents = np.column_stack(np.divmod(keep[new] - n_parents, n_pairs))
        is_dead = np.ones(n_parents, np.bool_)
        is_dead[keep[~new]] = False
        # A child in the slot of its dropped parent overwrites it, so it is written after the
        # parent's other children.
        heirs, last = np.unique(parents[::-1, 0], return_index=True)
        last = last[is_dead[heirs]]
        inherits = np.zeros(len(parents), np.bool_)
        inherits[len(parents) - 1 - last] = True
        has_heir = np.zeros(n_parents, np.bool_)
        has_heir[parents[inherits, 0]] = True
        is_free = np.ones(len(self._labels), np.bool_)
        is_free[self._slots[~is_dead | has_heir]] = False
        slots = np.empty(len(parents), np.int64)
        slots[inherits] = self._slots[parents[inherits, 0]]
        slots[~inherits] = np.flatnonzero(is_free)[: int((~inherits).sum())]
        order = np.argsort(inherits, kind="stable")
        swaps.settle(
            self._sample.data,
            self._cells,
            (self._labels, self._counts, self._sums),
            parents[order],
            slots[order],
            log,
            lengths,
            self._slots,
        )
        survivors = np.empty(keep.size, np.int64)
        survivors[~new] = self._slots[keep[~new]]
        survivors[new] = slots
        self._slots = survivors

    def _hypervolume(self) -> float:
        """Return the share of a box that the list dominates.

        The box is 0 to the total variance in cost, and 0 to the balance of the data in balance.
        """
        sizes = self._sample.sizes
        worst = self._sample.total / self._rows.size
        best = sizes.min() / sizes.max()
        widths = np.diff(self._costs, append=worst)
        box = worst * best
        return float(widths @ self._balances) / box if box > 0 else 0.0


def start_labels(
    sample: SwapSample,
    n_starts: int,
    n_seeded: int,
    seeds: np.random.RandomState,
    rng: np.random.Generator,
) -> NDArray[Any]:
    """Return first labellings: ``n_seeded`` by k-means++ seeds, and the others at random.

    A random labelling draws labels with unequal probabilities, so its clusters differ in size.
    """
    from skfair.papers._kernels import swap_rows

    X = sample.data[0]
    n_samples, n_clusters = X.shape[0], sample.shape[0]
    labels = np.empty((n_starts, n_samples), np.min_scalar_type(-n_clusters))
    block, scores, lowest = sample.scratch(_BLOCK)[:3]
    for s in range(n_seeded):
        n_rows = min(n_samples, _SEED_ROWS * n_clusters)
        rows = rng.choice(n_samples, n_rows, replace=False, shuffle=False)
        _, chosen = kmeans_plusplus(X[rows], n_clusters, random_state=seeds)
        swap_rows.nearest_rows(sample.data, rows[chosen], block, scores, lowest, labels[s])
    for s in range(n_seeded, n_starts):
        odds = np.exp(rng.normal(size=n_clusters))
        bounds = np.cumsum(odds[:-1]) / odds.sum()
        labels[s] = np.searchsorted(bounds, rng.random(n_samples), side="right")
    return labels


def _front_order(costs: FloatArray, balances: FloatArray) -> IntArray:
    """Return the nondominated points in ascending order of cost, equal points only once."""
    order = np.lexsort((-balances, costs))
    ranked = balances[order]
    is_better = np.ones(order.size, np.bool_)
    is_better[1:] = ranked[1:] > np.maximum.accumulate(ranked)[:-1]
    return order[is_better]
