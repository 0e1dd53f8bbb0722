"""Metrics of scores under the weights of many resamples: rows are sorted once, read once for each.

What a resample is worth is the same as what the metrics of :mod:`skfair.metrics.scores` say of it,
which sort the rows of every group for every metric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.compared_groups import Agg, aggregate
from skfair.metrics.resampling import resampled_counts
from skfair.metrics.scores import (
    ScoredRows,
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
    statistical_parity_gap,
    wasserstein_gap,
)
from skfair.utils.threads import BLOCK, allowed_threads, over_blocks

# Whether each metric of scores needs the true labels; in the order of ``SortedRows.gaps``.
SCORE_METRICS: dict[Callable[..., float], bool] = {
    statistical_parity_gap: False,
    wasserstein_gap: False,
    group_auc_gap: False,
    inter_group_pairwise_gap: True,
    intra_group_pairwise_gap: True,
}


class _Attribute(NamedTuple):
    """The groups of sorted rows by one attribute, and who is compared with whom."""

    codes: IntArray
    n_groups: int
    first: IntArray
    second: IntArray
    # Partners of each group from ``starts``, number of the pair, whether the group is its second
    starts: IntArray
    partner: IntArray
    pair: IntArray
    is_second: BoolArray

    @classmethod
    def of(cls, codes: IntArray, n_groups: int, first: IntArray, second: IntArray) -> _Attribute:
        """List the pairs by group."""
        groups, n_pairs = np.concatenate([first, second]), first.size
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], np.arange(n_groups + 1))
        partner = np.concatenate([second, first])[order]
        pair, is_second = order % max(n_pairs, 1), order >= n_pairs
        return cls(codes, n_groups, first, second, starts, partner, pair, is_second)


class SortedRows:
    """Rows in the order of their scores, and their metrics under one set of weights or another."""

    def __init__(self, rows: ScoredRows, positive: IntArray | None) -> None:
        self._order = np.argsort(-rows.scores, kind="stable")
        self._scores = rows.scores[self._order]
        self._has_classes = positive is not None
        labels = np.zeros(self._order.size, bool) if positive is None else positive > 0
        self._positive = labels[self._order]
        self._compared = rows.groups.compared
        self._attributes = [
            _Attribute.of(codes[self._order], stop - start, first, second)
            for codes, start, stop, first, second in rows.groups.attributes()
        ]

    def gaps(self, weights: FloatArray, agg: Agg) -> list[float]:
        """Return all metrics, O(n G) for G groups; NaN where a group has no rows with a weight."""
        own = weights[self._order]
        of_attributes, totals = zip(
            *(self._of(attribute, own) for attribute in self._attributes), strict=True
        )
        n_metrics = of_attributes[0].shape[0]
        # Groups of a further attribute may be in none of the rows of a resample.
        if not np.concatenate(totals)[self._compared].all():
            return [np.nan] * n_metrics
        return [aggregate(values, agg) for values in np.concatenate(of_attributes, axis=1)]

    def _of(self, attribute: _Attribute, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the metrics of each pair, (n_metrics, n_pairs), and the weight of each group."""
        from skfair._kernels.score_gaps import score_gaps

        n, n_pairs = attribute.n_groups, attribute.first.size
        by_class = np.bincount(2 * attribute.codes + self._positive, weights, 2 * n).reshape(n, 2)
        totals = np.column_stack([by_class.sum(axis=1), by_class[:, 1], by_class[:, 0]])
        mass = 1 / np.where(totals > 0, totals, np.inf)
        above, tied, last = np.zeros((n, 3)), np.zeros((n, 3)), np.full(n_pairs, self._scores[0])
        gaps, wins = np.zeros((n_pairs, 2)), np.zeros((n_pairs + n, 3))
        rows = self._scores, attribute.codes, self._positive, weights, mass
        partners = attribute.starts, attribute.partner, attribute.pair, attribute.is_second
        score_gaps(*rows, *partners, above, tied, last, gaps, wins)
        wins[n_pairs:][(totals == 0).any(axis=1)] = np.nan
        within, wins = wins[n_pairs:, 1], wins[:n_pairs]
        metrics = [*gaps.T, np.abs(wins[:, 0] - 0.5)]
        if self._has_classes:
            intra = np.abs(within[attribute.first] - within[attribute.second])
            metrics += [np.where(np.isnan(intra), np.nan, np.abs(wins[:, 1] - wins[:, 2])), intra]
        return np.array(metrics), totals[:, 0]


def resampled_gaps(
    rows: ScoredRows,
    positive: IntArray | None,
    agg: Agg,
    n_bootstrap: int,
    rng: np.random.RandomState,
    counts: IntArray | None,  # how many rows each one stands for
) -> FloatArray:
    """Return the metrics of resamples, (n_bootstrap, n_metrics); threads share them."""
    own_rows, draws = SortedRows(rows, positive), _resampled_weights(rows, n_bootstrap, rng, counts)
    n_threads = allowed_threads() if rows.scores.size >= BLOCK else 1
    of_draws: list[list[float]] = []
    while some := list(islice(draws, n_threads)):  # not all are held at once

        def measured(i: int, _: int, some: list[FloatArray] = some) -> list[float]:
            return own_rows.gaps(some[i], agg)

        of_draws += over_blocks(measured, len(some), 1)
    n_metrics = sum(positive is not None or not needs for needs in SCORE_METRICS.values())
    return np.array(of_draws).reshape(n_bootstrap, n_metrics)


def _resampled_weights(
    rows: ScoredRows, n_bootstrap: int, rng: np.random.RandomState, counts: IntArray | None
) -> Iterator[FloatArray]:
    """Yield weights of the rows in resamples of those that have any."""
    base = np.ones(rows.scores.size) if rows.weights is None else rows.weights
    counted = np.flatnonzero(base > 0)
    codes = rows.groups.cells.codes[0][counted]
    members = [np.flatnonzero(codes == g) for g in range(int(codes.max()) + 1)]
    behind = None if counts is None else counts[counted]
    for _ in range(n_bootstrap):
        weights = np.zeros(base.size)
        weights[counted] = base[counted] * resampled_counts(members, rng, behind)
        yield weights
