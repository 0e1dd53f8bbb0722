"""Gaps of scores under resampled weights, for the standard errors of ``fairness_report``.

A resample of rows is a weight for each row: how often it was drawn, times its own weight. The
metrics of :mod:`skfair.metrics.scores` would sort the rows of each group anew for each metric and
each resample. Here the rows are sorted once, and one pass over them (``_kernels.score_gaps``) gives
all metrics of a resample. The results equal those of ``skfair.metrics.scores``.

:mod:`skfair.metrics.reports` calls ``resampled_gaps``, which draws the resamples and measures each
by :meth:`SortedRows.gaps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.compared_groups import Agg, aggregate
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.row_units import RowUnits
from skfair.metrics.scores import (
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
    statistical_parity_gap,
    wasserstein_gap,
)
from skfair.utils.threads import BLOCK, allowed_threads, over_blocks

# The metrics in the order in which ``SortedRows.gaps`` returns them. The value is True if the
# metric needs true labels. (``evidence.SCORE_METRICS`` is another list: the metrics that have a
# test.)
SCORE_METRICS: dict[Callable[..., float], bool] = {
    statistical_parity_gap: False,
    wasserstein_gap: False,
    group_auc_gap: False,
    inter_group_pairwise_gap: True,
    intra_group_pairwise_gap: True,
}


class SortedRows:
    """Rows in the order of their scores, whose metrics are computed for any weights of the rows.

    ``positive`` is the true class of each row, 1 or 0. If it is None, the metrics that need true
    labels are left out.
    """

    def __init__(self, rows: MeasuredRows, positive: IntArray | None) -> None:
        self._order = np.argsort(-rows.values, kind="stable")
        self._scores = rows.values[self._order]
        self._has_classes = positive is not None
        labels = np.zeros(self._order.size, bool) if positive is None else positive > 0
        self._positive = labels[self._order]
        self._compared = rows.groups.compared
        attributes = (
            (codes[self._order], stop - start, first, second)
            for codes, start, stop, first, second in rows.groups.attributes()
        )
        self._attributes = [(*own, *_partners(*own[1:])) for own in attributes]

    def gaps(self, weights: FloatArray, agg: Agg) -> list[float]:
        """Return all metrics under these weights, which are in the order of the cohort's rows.

        All metrics are NaN if a compared group has no weight. The cost is O(n G) for G groups.
        """
        own = weights[self._order]
        of_attributes, totals = zip(
            *(self._of(own, *attribute) for attribute in self._attributes), strict=True
        )
        n_metrics = of_attributes[0].shape[0]
        # Rows are drawn within the groups of the first attribute, so a resample has all of these
        # groups. It may lose a group of another attribute, and then a comparison is undefined.
        if not np.concatenate(totals)[self._compared].all():
            return [np.nan] * n_metrics
        return [aggregate(values, agg, np.nan) for values in np.concatenate(of_attributes, axis=1)]

    def _of(
        self,
        weights: FloatArray,
        codes: IntArray,
        n: int,  # the number of groups
        first: IntArray,  # (n_pairs,): the groups of each pair
        second: IntArray,
        *partners: IntArray | BoolArray,  # what _partners returns
    ) -> tuple[FloatArray, FloatArray]:
        """Return the metrics of one attribute, (n_metrics, n_pairs), and the weight of each group.

        ``weights`` and ``codes`` (the group of each row) are in the order of the scores.
        """
        from skfair._kernels.score_gaps import score_gaps

        n_pairs = first.size
        by_class = np.bincount(2 * codes + self._positive, weights, 2 * n).reshape(n, 2)
        # The weight of all rows, of the positives and of the negatives of each group: (n, 3)
        totals = np.column_stack([by_class.sum(axis=1), by_class[:, 1], by_class[:, 0]])
        mass = 1 / np.where(totals > 0, totals, np.inf)
        above, tied, last = np.zeros((n, 3)), np.zeros((n, 3)), np.full(n_pairs, self._scores[0])
        gaps, wins = np.zeros((n_pairs, 2)), np.zeros((n_pairs + n, 3))
        rows = self._scores, codes, self._positive, weights, mass
        score_gaps(*rows, *partners, above, tied, last, gaps, wins)
        # After the n_pairs rows for pairs, ``wins`` has a row for each group, with its own AUC.
        # This is undefined for a group that lacks positives or negatives.
        wins[n_pairs:][(totals == 0).any(axis=1)] = np.nan
        within, wins = wins[n_pairs:, 1], wins[:n_pairs]
        metrics = [*gaps.T, np.abs(wins[:, 0] - 0.5)]
        if self._has_classes:
            intra = np.abs(within[first] - within[second])
            metrics += [np.where(np.isnan(intra), np.nan, np.abs(wins[:, 1] - wins[:, 2])), intra]
        return np.array(metrics), totals[:, 0]


def _partners(
    n_groups: int, first: IntArray, second: IntArray
) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """List the pairs that each group belongs to, as the kernel ``score_gaps`` reads them.

    Returns ``starts`` and three arrays. Their entries ``starts[g]:starts[g + 1]`` describe the
    pairs of group g: the other group, the number of the pair, and whether g is its second group.
    """
    groups = np.concatenate([first, second])
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(n_groups + 1))
    partner = np.concatenate([second, first])[order]
    return starts, partner, order % max(first.size, 1), order >= first.size


def resampled_gaps(
    rows: MeasuredRows,
    positive: IntArray | None,
    agg: Agg,
    n_bootstrap: int,
    rng: np.random.RandomState,
) -> FloatArray:
    """Return the metrics of resamples, (n_bootstrap, n_metrics), in the order of SCORE_METRICS.

    Metrics that need true labels are left out if ``positive`` is None. Each thread measures one
    resample at a time.
    """
    own_rows = SortedRows(rows, positive)
    draws = islice(_resampled_weights(rows, rng), n_bootstrap)
    n_threads = allowed_threads() if rows.values.size >= BLOCK else 1
    of_draws: list[list[float]] = []
    while some := list(islice(draws, n_threads)):  # memory holds n_threads resamples at a time

        def measured(i: int, _: int, some: list[FloatArray] = some) -> list[float]:
            return own_rows.gaps(some[i], agg)

        of_draws += over_blocks(measured, len(some), 1)
    n_metrics = sum(positive is not None or not needs for needs in SCORE_METRICS.values())
    return np.array(of_draws).reshape(n_bootstrap, n_metrics)


def _resampled_weights(rows: MeasuredRows, rng: np.random.RandomState) -> Iterator[FloatArray]:
    """Yield the weights of the rows in one resample after the other, without end.

    A cell is a group, or a group within a stratum of control features. Rows are drawn with
    replacement within each cell of the first attribute, so every resample has all of these cells.
    If rows belong to units, the rows of a unit in a cell are drawn together.
    """
    base = np.ones(rows.values.size) if rows.weights is None else rows.weights
    counted = np.flatnonzero(base > 0)
    codes = rows.groups.cells.codes[0][counted]
    members = [counted[codes == g] for g in np.unique(codes)]
    counts, together = rows.counts, rows.units or RowUnits(np.arange(base.size), base.size)
    resamples = [together.taken(own).resamples(rng) for own in members]
    while True:
        weights = np.zeros(base.size)
        for own, drawn in zip(members, resamples, strict=True):
            if counts is None:
                picks = np.bincount(next(drawn), minlength=own.size)
            else:  # the row stands for ``counts`` rows, and gets the mean of their numbers of draws
                total = int(counts[own].sum())
                picks = rng.multinomial(total, counts[own] / total) / counts[own]
            weights[own] = base[own] * picks
        yield weights
