"""Exact line searches over prices: one price moves, and every cutoff that it can pass is judged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.judge import Judge, Verdict
from skfair.enforcement.decisions.rows import Features
from skfair.enforcement.decisions.shares import Shares, margins
from skfair.enforcement.thresholds import threshold_at

# What judging decisions costs, in units of a line search.
_JUDGED = 0.1


class Candidate:
    """Prices, the decisions that they make, and the verdict on these.

    Parameters
    ----------
    judge : Judge
        Judges decisions.
    values : ndarray of shape (n_samples, n_classes)
        Expected worth of each decision.
    shares : Shares
        What rows are expected to add to rates.
    prices : ndarray of shape (n_features, n_classes)
        The prices.
    known : ndarray of shape (n_samples, n_classes), default=None
        The margins at these prices, if they are known.
    """

    def __init__(
        self,
        judge: Judge,
        values: FloatArray,
        shares: Shares,
        prices: FloatArray,
        known: FloatArray | None = None,
    ) -> None:
        self.judge, self.values, self.shares, self.prices = judge, values, shares, prices
        self.margins = margins(values, shares, prices) if known is None else known
        self.predicted = decided(self.margins)
        self.verdict: Verdict = judge(self.predicted)

    def along(self, label: int, which: IntArray) -> Candidate:
        """Return the best candidate whose prices differ by one number.

        It is added to the prices of a class at some features.
        """
        direction = np.asarray(self.shares[:, which].sum(axis=1)).ravel()
        rows = np.flatnonzero(direction > 1e-12)
        others = self.margins[rows]
        others[:, label] = -np.inf
        best_others = decided(others)
        gains = self.margins[rows, label] - others[np.arange(rows.size), best_others]
        without = self.predicted.copy()
        without[rows] = best_others
        cut, ordered = self.judge.scan(rows, label, best_others, gains / direction[rows], without)
        shift = threshold_at(cut, ordered, ordered, 0.0).shift
        if shift == 0.0:
            return self
        prices = self.prices.copy()
        prices[which, label] -= shift
        moved = self.margins.copy()
        moved[:, label] += shift * direction
        return Candidate(self.judge, self.values, self.shares, prices, moved)


def decided(margins: FloatArray) -> IntArray:
    """Return the class of the largest margin, the first one of equals."""
    if margins.shape[1] == 2:
        return (margins[:, 1] > margins[:, 0]).astype(np.int64)
    return np.asarray(margins.argmax(axis=1))


def priced_classes(judge: Judge) -> range:
    """Return the classes whose prices are searched: with two classes only the second."""
    return range(1, 2) if judge.n_classes == 2 else range(judge.n_classes)


def offsets(judge: Judge, features: Features) -> Iterator[tuple[int, IntArray]]:
    """Yield the lines along which all rows pay the same for a class."""
    everybody = _features_of(features, features.everyone)
    for label in priced_classes(judge):
        yield label, everybody


def lines(judge: Judge, features: Features) -> Iterator[tuple[int, IntArray]]:
    """Yield lines: all rows, then each group, then each group, stratum and true class."""
    yield from offsets(judge, features)
    for label in priced_classes(judge):
        for group in range(features.n_groups):
            yield label, _features_of(features, np.array([group]))
    for label in priced_classes(judge):
        for feature in range(features.size):
            yield label, np.array([feature])


def _features_of(features: Features, groups: IntArray) -> IntArray:
    return (groups[:, None] * features.n_kinds + np.arange(features.n_kinds)).ravel()


def polish(start: Candidate, features: Features, *, n_sweeps: int, max_rows: float) -> Candidate:
    """Search along every line in turn; stop after a sweep without gain, or ``max_rows`` rows."""
    used, n_samples = 0.0, start.values.shape[0]
    shares = start.shares
    # Where groups are known, a line passes only the rows of some.
    by_feature, n_members = shares, float(features.size)
    if not isinstance(shares, np.ndarray):
        by_feature, n_members = sparse.csc_array(shares), shares.nnz / n_samples
    # Columns are read one by one, so the sparse shares are kept by column meanwhile.
    best = Candidate(start.judge, start.values, by_feature, start.prices)
    for _ in range(n_sweeps):
        before = best.verdict
        for label, which in lines(best.judge, features):
            if used > max_rows:
                break
            found = best.along(label, which)
            used += n_samples * (_JUDGED + min(1.0, which.size / features.size * n_members))
            if found.verdict.is_better_than(best.verdict):
                best = found
        if not best.verdict.is_better_than(before):
            break
    return Candidate(start.judge, start.values, shares, best.prices)
