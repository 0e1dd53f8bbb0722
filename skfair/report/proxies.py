"""Proxies: how well columns predict the group of a row, one by one and all together.

A column in levels (bins of numbers) predicts a group by its share of the rows of each level. Shares
come from the other folds, so that rows are judged by rows that they are not in, and the area under
the curve (AUC) is 0.5 for columns that say nothing. The count of rows by fold, level and group is
all that this needs. A permutation of the groups within the folds is a random table with the same
margins, so that p-values of a million rows take as long as p-values of a thousand rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from skfair._typing import FloatArray, IntArray
from skfair.utils.rounding import ROUNDING

N_FOLDS = 5


def deal_folds(codes: IntArray, rng: np.random.RandomState) -> IntArray:
    """Return a random fold of each row; every group is spread over all folds."""
    order = rng.permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(codes.size, np.int64)
    folds[order] = np.arange(codes.size) % N_FOLDS
    return folds


def count_rows(column: IntArray, codes: IntArray, folds: IntArray) -> IntArray:
    """Count rows by fold, level and group; the levels are those that occur."""
    present, levels = np.unique(column, return_inverse=True)
    shape = N_FOLDS, present.size, int(codes.max()) + 1
    cells = np.ravel_multi_index((folds, levels.ravel(), codes), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def held_out_auc(counts: IntArray) -> FloatArray:
    """Return the AUC of each group against all others, averaged over folds and groups.

    ``counts`` has the shape (..., n_folds, n_levels, n_groups). A level is scored by the share of
    the group in the other folds, as if one more of its rows were like all rows together.
    """
    others = counts.sum(axis=-3, keepdims=True) - counts
    of_all = others.sum(axis=-2, keepdims=True)
    of_all = of_all / of_all.sum(axis=-1, keepdims=True)
    scores = (others + of_all) / (others.sum(axis=-1, keepdims=True) + 1)
    n_rows = counts.sum(axis=-1)
    first = 1 if counts.shape[-1] == 2 else 0  # of two groups, both have the same area
    areas = [
        _area(scores[..., g], counts[..., g], n_rows - counts[..., g])
        for g in range(first, counts.shape[-1])
    ]
    return np.asarray(np.mean(areas, axis=(0, -1)))


def _area(scores: FloatArray, inside: Any, outside: Any) -> FloatArray:
    """Return how often rows inside have the larger score, ties half, by counts of levels."""
    order = np.argsort(scores, axis=-1)
    scores = np.take_along_axis(scores, order, axis=-1)
    inside, outside = (np.take_along_axis(own, order, axis=-1) for own in (inside, outside))
    through = outside.cumsum(axis=-1)
    begins = np.diff(scores, axis=-1, prepend=-1.0) > 0
    ends = np.concatenate([begins[..., 1:], np.ones_like(begins[..., :1])], axis=-1)
    below = np.maximum.accumulate(np.where(begins, through - outside, 0), axis=-1)
    up_to = np.where(ends, through, through[..., -1:])[..., ::-1]
    up_to = np.minimum.accumulate(up_to, axis=-1)[..., ::-1]
    pairs = inside.sum(axis=-1) * outside.sum(axis=-1)
    return np.asarray((inside * (below + up_to)).sum(axis=-1) / (2 * pairs))


def judge(
    counts: IntArray,
    most: int,
    rng: np.random.RandomState,
    enough: int = 20,  # permutations that are as extreme end it: p-values are within a third then
) -> tuple[float, float]:
    """Return the AUC, and how often permuted groups are predicted as well; of at most this many.

    The test is sequential (Besag & Clifford 1991): a column that says nothing needs few.
    """
    value, n_drawn, n_extreme = float(held_out_auc(counts)), 0, 0
    if counts.shape[1] == 1:  # of which scipy draws no tables
        return value, 1.0
    step = max(4_000_000 // counts.size, 1)  # 32 MB for each array
    while n_drawn < most:
        size = min(step, max(n_drawn, 10 * enough), most - n_drawn)
        drawn = [_random_tables(fold, size, rng) for fold in counts]
        is_extreme = held_out_auc(np.stack(drawn, axis=1)) >= value - ROUNDING
        so_far = n_extreme + np.cumsum(is_extreme)
        if so_far[-1] >= enough:
            return value, float(enough / (n_drawn + 1 + np.argmax(so_far >= enough)))
        n_drawn, n_extreme = n_drawn + size, int(so_far[-1])
    return value, (n_extreme + 1) / (n_drawn + 1)


def _random_tables(counts: IntArray, size: int, rng: np.random.RandomState) -> IntArray:
    """Draw tables with the same margins; those of scipy are wrong if the first level is empty."""
    order = np.argsort(-counts.sum(axis=1))
    margins = counts[order].sum(axis=1), counts.sum(axis=0)
    drawn = stats.random_table(*margins).rvs(size, random_state=rng)
    return np.asarray(drawn[:, np.argsort(order)])


def shift_index(counts: IntArray) -> float:
    """Return the population stability index of two groups; empty levels count half a row."""
    of_levels = counts.sum(axis=0) + 0.5
    first, second = (of_levels / of_levels.sum(axis=0)).T
    return float(np.sum((second - first) * np.log(second / first)))


class Together:
    """How well several columns together predict the group: boosted trees on few rows.

    Trees are shallow, and the same for all data. Codes of levels are what they read.
    """

    def __init__(
        self,
        columns: dict[str, IntArray],
        codes: IntArray,
        rng: np.random.RandomState,
        most_rows: int = 20_000,  # areas are known up to 0.005 then
    ) -> None:
        rows = rng.permutation(codes.size)[:most_rows]
        self._codes = codes[rows]
        self._folds = deal_folds(self._codes, rng)
        self._columns = {name: column[rows] for name, column in columns.items()}
        self._known: dict[frozenset[str], tuple[float, float]] = {}

    def judge(self, names: list[str]) -> tuple[float, float]:
        """Return the AUC on held-out rows, and its p-value.

        Areas of folds depend on each other, since they learn from each other's rows. Twice the
        median of their p-values holds whatever the dependence (Meinshausen et al. 2009).
        """
        key = frozenset(names)
        if key not in self._known:
            areas, p_values = zip(*map(self._fold, range(N_FOLDS), [names] * N_FOLDS), strict=True)
            p_value = min(2 * float(np.median(p_values)), 1.0)
            self._known[key] = float(np.mean(areas)), p_value
        return self._known[key]

    def _fold(self, fold: int, names: list[str]) -> tuple[float, float]:
        """Judge the rows of one fold by all others."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        X = np.column_stack([self._columns[name] for name in names])
        is_held_out = self._folds == fold
        model: Any = HistGradientBoostingClassifier(
            max_iter=30, max_depth=3, learning_rate=0.2, early_stopping=False, random_state=0
        )
        with threadpool_limits(1):  # threads wait for each other longer than they work
            model.fit(X[~is_held_out], self._codes[~is_held_out])
        shares, codes = model.predict_proba(X[is_held_out]), self._codes[is_held_out]
        groups = list(enumerate(model.classes_))[1 if len(model.classes_) == 2 else 0 :]
        areas, p_values = [], []
        for place, group in groups:
            inside, outside = (shares[codes == group, place], shares[codes != group, place])
            tested = stats.mannwhitneyu(inside, outside, alternative="greater", method="asymptotic")
            areas.append(tested.statistic / (inside.size * outside.size))
            p_values.append(tested.pvalue)
        return float(np.mean(areas)), min(len(groups) * float(np.min(p_values)), 1.0)

    def smallest(self, ranked: list[str], share: float = 0.95) -> list[str]:
        """Return few columns that keep this share of what the ranked ones explain."""
        least = 0.5 + share * (self.judge(ranked)[0] - 0.5)
        size = 1
        while size < len(ranked) and self.judge(ranked[:size])[0] < least:
            size *= 2
        kept = ranked[:size]
        for name in kept[::-1]:  # the first one as well: columns may tell the group only together
            rest = [other for other in kept if other != name]
            if rest and self.judge(rest)[0] >= least:
                kept = rest
        return kept
