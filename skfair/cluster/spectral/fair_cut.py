"""Labels within the limits at a small normalised cut, a method of skfair.

A fair embedding does not guarantee fair labels. If the data have clusters that follow the groups,
k-means on the embedding finds them. So ``rounding.py`` makes starts and calls
:func:`round_to_constraints`.
From each start it descends in two stages. The normalised cut of K clusters is

    K - sum over k of  within_k / volume_k,

with within_k the weights between rows inside cluster k, and volume_k the sum of their degrees d_i.
Linearised at the current labels, it gives each row i a cost for each cluster,

    -2 links_ik / volume_k + d_i within_k / volume_k^2,

with links_ik the weight between row i and the rows of cluster k. The first stage
(:func:`_linearise_and_assign`) finds the cheapest assignment under the constraints at these costs
(``assignment/by_prices.py``), and repeats that a few times while it helps. In the second
(:func:`improve_by_moves`) rows move and change places one by one, within the constraints, as long
as the cut itself falls.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.by_prices import TEMPERATURES, assign, place
from skfair.cluster.assignment.cost_table import CostProblem
from skfair.cluster.spectral.weights import Weights
from skfair.utils.rounding import SUM_ROUNDING

# The largest number of steps on the dual of an assignment, if further rounds or moves follow.
STEPS = 20
# The largest numbers of rounds in the first stage, and of passes over all rows in the second.
_ROUNDS, _PASSES = 3, 20
# The best labels descend again at most this many times.
_FURTHER_DESCENTS = 3
# With more rows, or more multiplications per product with W, the best labels do not descend again,
# and there should be few starts.
_MANY_ROWS, _MANY_ENTRIES = 20_000, 10**8
# Passes end when the cut falls by less than this share of it.
_PROGRESS = 1e-3


class Cut:
    """The normalised cut of given labels, and the sums from which it is computed."""

    violation = np.inf  # violation of the constraints; infinite until it is computed
    # Multipliers of the constraints; None if the labels do not come from prices
    multipliers: FloatArray | None = None

    def __init__(
        self,
        weights: Weights,
        labels: IntArray,
        n_clusters: int,
        near: Cut | None = None,  # cut of similar labels; its links are updated, which is faster
    ) -> None:
        self.labels = labels.astype(np.int64)  # a copy: labels may be moved
        n = labels.size
        self.links: FloatArray  # (n_samples, n_clusters)
        if near is not None and np.array_equal(labels, near.labels):
            self.links = near.links.copy()
        else:
            known = None if near is None else (near.labels, near.links)
            self.links = weights.links(self.labels, n_clusters, known)
        self.degrees = weights.degrees
        self.volume = np.bincount(labels, weights=self.degrees, minlength=n_clusters)
        own = self.links[np.arange(n), labels]
        within = np.bincount(labels, weights=own, minlength=n_clusters)
        self.within = within.astype(np.float64)

    @property
    def value(self) -> float:
        """The cut: 0 if nothing is cut, at most the number of clusters."""
        has_volume = self.volume > 0
        inside = self.within[has_volume] / self.volume[has_volume]
        return max(0.0, float(np.count_nonzero(has_volume) - inside.sum()))

    @property
    def terms(self) -> tuple[FloatArray, FloatArray]:
        """The arrays ``within`` and ``volume`` of the clusters, for ``linearised_cut``."""
        # Costs divide by the volume, so a cluster gets at least the mean degree of a row.
        return self.within, np.maximum(self.volume, self.degrees.mean() or 1.0)

    def linearised(self) -> FloatArray:
        """Return what each row adds to the cut in each cluster, to first order."""
        return linearised_cut(self.links, self.degrees, *self.terms)


def linearised_cut(
    links: FloatArray, degrees: FloatArray, within: FloatArray, volume: FloatArray
) -> FloatArray:
    """Return what rows with these links and degrees add to the cut in each cluster."""
    return degrees[:, None] * (within / volume**2) - 2 * links / volume


def is_costly(weights: Weights) -> bool:
    """Return whether products with the weights take long, so that starts should be few."""
    return weights.n_samples > _MANY_ROWS or weights.n_entries > _MANY_ENTRIES


def round_to_constraints(
    weights: Weights,
    problem: CostProblem,
    starts: Sequence[IntArray],
    rng: np.random.RandomState,
) -> Cut:
    """Find labels that satisfy the constraints at a small cut, from labels that need not do so.

    Each start descends to a local optimum. The best one descends again as long as the cut falls,
    unless products are costly. A round of a descent costs a product of the weights with K columns,
    and 12 to 24 passes over n K costs.
    """
    cuts: list[Cut] = []
    for start in starts:
        # It takes a second to find out that whole people cannot satisfy the constraints exactly. If
        # the first start did not succeed, the others do not try.
        is_possible = not cuts or cuts[0].violation <= SUM_ROUNDING
        cut = Cut(weights, start, problem.n_clusters, cuts[-1] if cuts else None)
        cuts.append(_descend(weights, problem, cut, is_possible, rng))
    best = min(cuts, key=lambda candidate: _standing(problem, candidate))
    for _ in range(0 if is_costly(weights) else _FURTHER_DESCENTS):
        again = _descend(weights, problem, best, False, rng)
        if _standing(problem, again) >= _standing(problem, best):
            break
        best = again
    return best


def _descend(
    weights: Weights,
    problem: CostProblem,
    start: Cut,
    seeks_exact: bool,
    rng: np.random.RandomState,
) -> Cut:
    """Return the labels after both stages from one start, which is not changed.

    If ``seeks_exact``, labels are searched that satisfy the constraints exactly.
    """
    assigned = _linearise_and_assign(weights, problem, start, seeks_exact)
    if weights.entries() is None:  # moves of single rows need their weights
        return assigned
    return improve_by_moves(weights, problem, assigned, rng)


def _standing(problem: CostProblem, candidate: Cut) -> tuple[float, bool, int, float]:
    """Return the key by which labels are compared, the lowest first.

    It is the violation by whole people, whether constraints are violated at all, the number of
    empty clusters, and the cut.
    """
    missed = problem.constraints.violation_beyond(
        problem.counts(candidate.labels), problem.largest_weight
    )
    n_empty = int(np.count_nonzero(candidate.volume <= 0))
    return missed, candidate.violation > SUM_ROUNDING, n_empty, candidate.value


def _linearise_and_assign(
    weights: Weights, problem: CostProblem, start: Cut, seeks_exact: bool
) -> Cut:
    """Linearise the cut and assign the rows, in turn, as long as this helps (first stage)."""
    best = Cut(weights, start.labels, problem.n_clusters, start)
    best.violation = problem.violation(problem.counts(start.labels))
    best.multipliers = start.multipliers
    standing = _standing(problem, best)
    for _ in range(_ROUNDS):
        target, is_missed = best.linearised(), standing[0] > 0
        if best.multipliers is None:
            placed = assign(problem, target, max_iter=STEPS, search_counts=is_missed or seeks_exact)
        else:
            placed = place(problem, target, best.multipliers, TEMPERATURES[-1:], STEPS, is_missed)
        rounded = Cut(weights, placed.labels, problem.n_clusters, best)
        rounded.violation, rounded.multipliers = placed.violation, placed.multipliers
        now = _standing(problem, rounded)
        if now >= standing:
            break
        best, standing = rounded, now
    return best


def improve_by_moves(
    weights: Weights, problem: CostProblem, cut: Cut, rng: np.random.RandomState
) -> Cut:
    """Move rows, and exchange rows of a cell, as long as the cut falls (second stage).

    ``cut`` is changed and returned. Rows of a cell are interchangeable for the constraints.
    """
    from skfair.cluster.spectral._kernels.cuts import improve_cut

    constraints = problem.constraints
    cell_rows = np.argsort(problem.cells, kind="stable")
    cell_starts = np.searchsorted(problem.cells[cell_rows], np.arange(problem.n_cells + 1))
    entries = weights.entries()
    if entries is None:
        raise TypeError(
            f"{type(weights).__name__} does not list the weights of single pairs of rows. This "
            "step reads them: pass the affinity as an array or a sparse matrix."
        )
    rows = cut.degrees, weights.diagonal(), problem.cells
    by_cluster = np.ascontiguousarray(cut.links.T)
    cut.links = by_cluster.T
    state = cut.labels, by_cluster, cut.within, cut.volume
    for _ in range(_PASSES):
        values = problem.counts(cut.labels) @ constraints.matrix.T + constraints.slack
        order, members = rng.permutation(cut.labels.size), (cell_starts, cell_rows)
        gain = improve_cut(entries, rows, members, constraints.matrix, values, order, state)
        if gain < _PROGRESS * cut.value:
            break
    cut.violation = problem.violation(problem.counts(cut.labels))
    return cut
