"""Scores by group: their spread, how well they rank, and their calibration.

While rows are added up, ``add_up`` calls :func:`binned_scores`, which adds up the rows by cell (a
combination of levels of all attributes) and by bin of the score. So scores can be added up over
blocks, and no row is kept. For each view, ``score_report`` then adds up the bins of each group
(:func:`sums_of_groups`), from which :class:`ScoreTables` computes its tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from skfair._typing import FloatArray, IntArray
from skfair.groups.levels import sums_by
from skfair.groups.rates import wilson
from skfair.groups.table import GroupTable
from skfair.metrics.scores import N_CALIBRATION_BINS
from skfair.utils.rounding import SUM_ROUNDING

# Scores are added up in this many bins of equal width (see ``ScoreTables.aucs`` for the error).
N_BINS = 200


def binned_scores(
    score: FloatArray,
    targets: FloatArray,
    weights: FloatArray | None,
    cells: IntArray,
    table: GroupTable,
    score_range: tuple[float, float],
    # With units, 1 over the number of rows of the unit of each row. None without units
    people: FloatArray | None = None,
) -> GroupTable:
    """Add up weights, weight times target, and weight times score by cell and bin of the score.

    The result is a table whose attributes are those of ``table``, and the bin as the last one. The
    "levels" of the bin are the edges of all bins, so there is one more than there are bins.
    """
    low, high = score_range
    inside = np.clip(score, low, high)  # scores of rows of weight 0 may be outside
    bins = ((inside - low) * (N_BINS / (high - low))).astype(np.int64).clip(0, N_BINS - 1)
    weigh = 1.0 if weights is None else weights
    # sums_by counts rows for a column that is None.
    columns = {"weights": weights, "targets": weigh * targets, "scores": weigh * score}
    columns |= {} if people is None else {"people": people}
    places, sums = sums_by(cells * N_BINS + bins, len(table.codes) * N_BINS, [*columns.values()])
    added = dict(zip(columns, sums, strict=True))
    return score_table(table, *np.divmod(places, N_BINS), added, (low, high))


def score_table(
    table: GroupTable,
    cells: IntArray,
    bins: IntArray,
    sums: dict[str, FloatArray],
    ends: tuple[float, float],
) -> GroupTable:
    """Return sums by cell of a table and bin of the score as a table, see ``binned_scores``."""
    name = " ".join([*table.levels, "score"])  # longer than the name of any attribute, so different
    levels = {**table.levels, name: np.linspace(*ends, N_BINS + 1).tolist()}
    return GroupTable(levels, np.column_stack([table.codes[cells], bins]), sums)


def sums_of_groups(scores: GroupTable, attributes: list[str]) -> dict[str, FloatArray]:
    """Return each sum of :func:`binned_scores` by group and bin, (n_groups, N_BINS)."""
    groups = scores.encoded(attributes)
    joint, shape = groups.codes[0] * N_BINS + scores.codes[:, -1], (groups.n_groups, N_BINS)
    joint_size = groups.n_groups * N_BINS
    totals = {}
    for name, own in scores.sums.items():
        total = np.bincount(joint, own, joint_size).astype(np.float64, copy=False)
        totals[name] = total.reshape(shape)
    return totals


def range_of_scores(score: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    """Return the range of the bins: from 0 to 1 if all scores are in it, else the range of scores.

    Rows of weight 0 do not count. The range is never empty.
    """
    score = score if weights is None else score[weights > 0]
    if not len(score):
        return 0.0, 1.0
    low, high = float(np.min(score)), float(np.max(score))
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high if high > low else low + 1.0)


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """Tables of the scores of the groups of one view."""

    edges: FloatArray  # (N_BINS + 1,)
    sums: dict[str, FloatArray]  # sums by group and bin, from sums_of_groups
    is_share: bool  # whether targets are 0 or 1, so that scores may be probabilities
    per_weight: FloatArray  # (n_groups,): effective number of rows per unit of weight

    def calibration(self, names: list[str], confidence: float, least: float) -> pd.DataFrame:
        """Return the table ``calibration``: mean score and mean target of each group, by bin.

        Each group has bins of its own, made of neighbouring bins of :func:`binned_scores`. Each bin
        has at least a tenth of the people (rows, or units) of the group, and at least ``least``.
        """
        tables = []
        for place, (name, per_weight) in enumerate(zip(names, self.per_weight, strict=True)):
            own = {what: sums[place] for what, sums in self.sums.items()}
            n_rows = own.get("people", own["weights"] * per_weight)
            bin_of = _bins(n_rows, max(least, n_rows.sum() / 10))
            sums = np.stack([own[what] for what in ("weights", "targets", "scores")])
            weight, target, score = _wider(sums, bin_of)
            # ``last`` has the last bin of each wide bin, where the wide bin ends.
            last = np.flatnonzero(np.diff(bin_of, append=bin_of[-1] + 1))
            low, high = np.full((2, weight.size), np.nan)
            if self.is_share:
                low, high = wilson(target / weight, weight * per_weight, confidence)
            columns = {
                "group": name,
                "bin": np.arange(weight.size),
                "score_low": self.edges[np.append(0, last[:-1] + 1)],
                "score_high": self.edges[last + 1],
                "n": weight,
                "mean_score": score / weight,
                "mean_target": target / weight,
                "mean_target_low": low,
                "mean_target_high": high,
            }
            tables.append(pd.DataFrame(columns))
        return pd.concat(tables, ignore_index=True)

    def aucs(self, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the area under the ROC curve of each group, and the ends of its interval.

        With P positive and N negative rows, it is the sum over bins of positives in the bin times
        (negatives in lower bins + half of the negatives in the bin), over P N. So scores of the
        same bin count as tied, which shifts the area by less than 0.01 if they are spread over the
        bins. The interval is the one of Hanley & McNeil.
        """
        positive = self.sums["targets"] * self.per_weight[:, None]
        negative = self.sums["weights"] * self.per_weight[:, None] - positive
        n_positive, n_negative = positive.sum(axis=1), negative.sum(axis=1)
        below = np.cumsum(negative, axis=1) - negative / 2
        with np.errstate(invalid="ignore", divide="ignore"):
            auc = (positive * below).sum(axis=1) / (n_positive * n_negative)
            q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
            variance = auc * (1 - auc) + (n_positive - 1) * (q1 - auc**2)
            variance += (n_negative - 1) * (q2 - auc**2)
            half = np.sqrt(np.maximum(variance, 0.0) / (n_positive * n_negative))
        half = half * stats.norm.ppf(0.5 + confidence / 2)
        return auc, np.maximum(auc - half, 0.0), np.minimum(auc + half, 1.0)

    def calibration_errors(self) -> FloatArray:
        """Return the expected calibration error of each group.

        It is the distance between mean score and mean target, averaged over ``N_CALIBRATION_BINS``
        bins of equal width, which are weighted by the rows of the group in them.
        """
        bin_of = np.arange(N_BINS) * N_CALIBRATION_BINS // N_BINS
        apart = _wider(self.sums["targets"] - self.sums["scores"], bin_of)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.abs(apart).sum(axis=1) / self.sums["weights"].sum(axis=1))


def _wider(sums: FloatArray, bin_of: IntArray) -> FloatArray:
    """Add up bins, the last axis, into wider ones: bin j becomes part of ``bin_of[j]``."""
    return np.asarray(sums @ np.eye(int(bin_of.max()) + 1)[bin_of])


def _bins(n_rows: FloatArray, least: float) -> IntArray:
    """Join neighbouring bins until each wide bin has ``least`` rows.

    Returns the number of the wide bin that each bin becomes part of.
    """
    bin_of, number, total = [], 0, 0.0
    for n in n_rows.tolist():
        bin_of.append(number)
        total += n
        if total >= least - SUM_ROUNDING:
            number, total = number + 1, 0.0
    return np.minimum(bin_of, max(number - 1, 0))  # bins left over become part of the last one
