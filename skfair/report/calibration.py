"""Scores by group: how they are spread, how well they rank, and whether they mean what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from skfair._typing import FloatArray
from skfair.metrics.intervals import wilson
from skfair.report.tally import N_BINS, ScoreBins
from skfair.utils.rounding import TINY

# Calibration is shown in this many bins that hold about as many rows each.
N_CALIBRATION_BINS = 10
# Densities are shown in this many bins of equal width.
N_DENSITY_BINS = 40


class ScoreTables:
    """Tables of the scores of some groups."""

    def __init__(
        self,
        bins: ScoreBins,  # sums by group and bin
        is_share: bool,  # whether targets are 0 or 1, so that scores may be probabilities
        # (n_groups,): effective number of rows per unit of weight; 1 without weights
        per_weight: FloatArray,
    ) -> None:
        self.per_weight = per_weight[:, None]
        self.edges = bins.edges
        self.weight, self.target, self.score = (np.asarray(sums.toarray()) for sums in bins[1:])
        self.is_share = is_share

    def calibration(self, names: list[str], confidence: float) -> pd.DataFrame:
        """Return the mean score and the mean target of each group in each bin."""
        total = np.cumsum(self.weight.sum(axis=0))
        share = (total - self.weight.sum(axis=0) / 2) / total[-1]
        bin_of = np.minimum((share * N_CALIBRATION_BINS).astype(int), N_CALIBRATION_BINS - 1)
        _, bin_of = np.unique(bin_of, return_inverse=True)
        weight, target, score = (
            _merged(sums, bin_of) for sums in (self.weight, self.target, self.score)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            mean_target, mean_score = target / weight, score / weight
        low, high = np.full((2, *weight.shape), np.nan)
        if self.is_share:
            n_rows = np.where(weight > 0, weight * self.per_weight, np.nan)
            low, high = wilson(mean_target, n_rows, confidence)
        group, bins = np.nonzero(weight > 0)
        columns = {
            "n": weight,
            "mean_score": mean_score,
            "mean_target": mean_target,
            "mean_target_low": low,
            "mean_target_high": high,
        }
        table = {"group": [names[g] for g in group], "bin": bins}
        return pd.DataFrame(table | {name: own[group, bins] for name, own in columns.items()})

    def densities(self, names: list[str]) -> pd.DataFrame:
        """Return the share of each group's rows in bins of equal width."""
        bin_of = np.arange(N_BINS) * N_DENSITY_BINS // N_BINS
        weight = _merged(self.weight, bin_of)
        edges = self.edges[:: N_BINS // N_DENSITY_BINS].tolist()
        shares = weight / np.maximum(weight.sum(axis=1, keepdims=True), TINY)
        columns = {"group": names, "edges": [edges] * len(names), "shares": shares.tolist()}
        return pd.DataFrame(columns)

    def aucs(self, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the area under the ROC curve of each group with the interval of Hanley & McNeil.

        Scores of the same bin count as tied, which shifts the area by less than a hundredth where
        they are spread over the bins.
        """
        positive = self.target * self.per_weight
        negative = self.weight * self.per_weight - positive
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
        """Return the mean distance of score and outcome of each group, over the fine bins.

        The weight of a bin is that of the group's rows in it.
        """
        bin_of = np.arange(N_BINS) * 20 // N_BINS
        weight, apart = _merged(self.weight, bin_of), _merged(self.target - self.score, bin_of)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.abs(apart).sum(axis=1) / weight.sum(axis=1))


def _merged(table: FloatArray, bin_of: Any) -> FloatArray:
    """Add up columns into wider bins."""
    out = np.zeros((table.shape[0], int(bin_of.max()) + 1))
    np.add.at(out.T, bin_of, table.T)
    return out
