"""Proxies: how well columns predict the group of a row, one by one and all together.

``audit_data`` calls this for its tables ``proxies`` and ``drift`` (the group is then the data set
that a row is from). There are two mechanisms:

- One column (:func:`count_rows`, :func:`judge`). A column in levels, with numbers in bins, predicts
  a group by its share of the rows of each level. The shares come from the other folds, so the area
  under the curve (AUC) is 0.5 on average for a column that says nothing. All of this needs only the
  number of rows by fold, level and group. A permutation of the groups within the folds is a random
  table with the same margins, so p-values take as long for a million rows as for a thousand.
- Several columns (:class:`Together`). Boosted trees predict the group on a sample of the rows.
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
    """Return a random fold for each row, so that every group is spread evenly over the folds."""
    order = rng.permutation(codes.size)
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(codes.size, np.int64)
    folds[order] = np.arange(codes.size) % N_FOLDS
    return folds


def count_rows(column: IntArray, codes: IntArray, folds: IntArray) -> IntArray:
    """Count rows by fold, level and group. Only levels that occur are counted."""
    present, levels = np.unique(column, return_inverse=True)
    shape = N_FOLDS, present.size, int(codes.max()) + 1
    cells = np.ravel_multi_index((folds, levels.ravel(), codes), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def held_out_auc(counts: IntArray) -> FloatArray:
    """Return the AUC of each group against all others, averaged over folds and groups.

    ``counts`` has the shape (..., n_folds, n_levels, n_groups), where the first axes are
    permutations. The score of a level for group g is (n_g + p_g) / (n + 1): n rows of this level in
    the other folds, n_g of them of the group, and p_g the share of the group in these folds. So a
    rare level gets about the score of all rows.
    """
    others = counts.sum(axis=-3, keepdims=True) - counts
    of_all = others.sum(axis=-2, keepdims=True)
    of_all = of_all / of_all.sum(axis=-1, keepdims=True)
    scores = (others + of_all) / (others.sum(axis=-1, keepdims=True) + 1)
    n_rows = counts.sum(axis=-1)
    first = 1 if counts.shape[-1] == 2 else 0  # both of two groups have the same AUC
    areas = [
        _area(scores[..., g], counts[..., g], n_rows - counts[..., g])
        for g in range(first, counts.shape[-1])
    ]
    return np.asarray(np.mean(areas, axis=(0, -1)))


def _area(scores: FloatArray, inside: Any, outside: Any) -> FloatArray:
    """Return the AUC from the number of rows inside and outside a group at each level.

    With I and O rows in total, it is sum_l inside_l (below_l + up_to_l) / (2 I O): below_l is the
    number of rows outside with a lower score than level l, and up_to_l the number with at most its
    score, so ties count half. Levels are sorted by score along the last axis, and several levels
    may have the same score.
    """
    order = np.argsort(scores, axis=-1)
    scores = np.take_along_axis(scores, order, axis=-1)
    inside, outside = (np.take_along_axis(own, order, axis=-1) for own in (inside, outside))
    through = outside.cumsum(axis=-1)
    begins = np.diff(scores, axis=-1, prepend=-1.0) > 0  # True at the first level with each score
    ends = np.concatenate([begins[..., 1:], np.ones_like(begins[..., :1])], axis=-1)
    # At levels of the same score, below_l is read at the first of them, and up_to_l at the last.
    below = np.maximum.accumulate(np.where(begins, through - outside, 0), axis=-1)
    up_to = np.where(ends, through, through[..., -1:])[..., ::-1]
    up_to = np.minimum.accumulate(up_to, axis=-1)[..., ::-1]
    pairs = inside.sum(axis=-1) * outside.sum(axis=-1)
    return np.asarray((inside * (below + up_to)).sum(axis=-1) / (2 * pairs))


def judge(
    counts: IntArray,
    most: int,
    rng: np.random.RandomState,
    enough: int = 20,  # the test ends at this many extreme permutations (p-values within a third)
) -> tuple[float, float]:
    """Return the AUC of a column, and the p-value from at most ``most`` permutations.

    The p-value is the share of permutations of the groups with at least the AUC of the column. The
    test is sequential (Besag & Clifford 1991): it ends as soon as ``enough`` permutations have such
    an AUC. So few permutations suffice for a column that says nothing about the group.
    """
    value, n_drawn, n_extreme = float(held_out_auc(counts)), 0, 0
    if counts.shape[1] == 1:  # scipy draws no tables with a single level
        return value, 1.0
    step = max(4_000_000 // counts.size, 1)  # arrays take about 32 MB
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
    """Draw ``size`` tables (levels by groups) with the same margins as one fold.

    Levels are sorted by size first, because scipy draws wrong tables if the first level is empty.
    """
    order = np.argsort(-counts.sum(axis=1))
    margins = counts[order].sum(axis=1), counts.sum(axis=0)
    drawn = stats.random_table(*margins).rvs(size, random_state=rng)
    return np.asarray(drawn[:, np.argsort(order)])


def shift_index(counts: IntArray) -> float:
    """Return the population stability index of two groups, sum_l (q_l - p_l) log(q_l / p_l).

    p_l and q_l are the shares of level l in the first and the second group, with half a row added
    to each level.
    """
    of_levels = counts.sum(axis=0) + 0.5
    first, second = (of_levels / of_levels.sum(axis=0)).T
    return float(np.sum((second - first) * np.log(second / first)))


class Together:
    """How well several columns together predict the group: boosted trees on a sample of rows.

    The trees are shallow, have the same settings for all data, and read the codes of levels. What
    was computed for a set of columns is kept.
    """

    def __init__(
        self,
        columns: dict[str, IntArray],
        codes: IntArray,
        rng: np.random.RandomState,
        most_rows: int = 20_000,  # gives an AUC a standard error of about 0.005
    ) -> None:
        rows = rng.permutation(codes.size)[:most_rows]
        self._codes = codes[rows]
        self._folds = deal_folds(self._codes, rng)
        self._columns = {name: column[rows] for name, column in columns.items()}
        self._known: dict[frozenset[str], tuple[float, float]] = {}

    def judge(self, names: list[str]) -> tuple[float, float]:
        """Return the AUC of these columns on held-out rows, averaged over folds, and its p-value.

        The folds depend on each other, since they learn from each other's rows. Twice the median of
        their p-values is valid whatever the dependence (Meinshausen et al. 2009).
        """
        key = frozenset(names)
        if key not in self._known:
            areas, p_values = zip(*map(self._fold, range(N_FOLDS), [names] * N_FOLDS), strict=True)
            p_value = min(2 * float(np.median(p_values)), 1.0)
            self._known[key] = float(np.mean(areas)), p_value
        return self._known[key]

    def _fold(self, fold: int, names: list[str]) -> tuple[float, float]:
        """Fit the trees without one fold; return the AUC and the p-value on its rows.

        The AUC is the mean over the groups, and the p-value the smallest one, corrected for their
        number.
        """
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
        """Return few columns that keep a ``share`` of what all ``ranked`` columns explain.

        What columns explain is their AUC minus 0.5. ``ranked`` has the columns in the order of
        their own AUC. The first ones are doubled in number until they are enough, and then left out
        one after the other as long as the rest is enough.
        """
        least = 0.5 + share * (self.judge(ranked)[0] - 0.5)
        size = 1
        while size < len(ranked) and self.judge(ranked[:size])[0] < least:
            size *= 2
        kept = ranked[:size]
        # Even the first column may be left out, if others predict the group only together.
        for name in kept[::-1]:
            rest = [other for other in kept if other != name]
            if rest and self.judge(rest)[0] >= least:
                kept = rest
        return kept
