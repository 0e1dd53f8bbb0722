"""How uncertain the numbers of a report are: resampled rows, Wilson's formula, percentiles."""

from __future__ import annotations

import numpy as np
from scipy import stats

from skfair._typing import FloatArray, IntArray


def resampled_counts(
    members: list[IntArray],  # the rows of each group
    rng: np.random.RandomState,
    counts: IntArray | None = None,
) -> FloatArray:
    """Draw how often each row is picked when every group is resampled with replacement.

    A row that stands for several (``counts``) gets the mean of how often they are.
    """
    picks = np.zeros(sum(rows.size for rows in members))
    for rows in members:
        if counts is not None and rows.size:
            behind = counts[rows]
            total = int(behind.sum())
            picks[rows] = rng.multinomial(total, behind / total) / behind
        elif rows.size:
            picks[rows] = np.bincount(rng.randint(rows.size, size=rows.size), minlength=rows.size)
    return picks


def difference_interval(
    values: FloatArray, low: FloatArray, high: FloatArray, place: IntArray | int
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of numbers minus those at ``place``, of which each has an interval.

    The distances from both numbers to the ends of their own intervals are added as squares; of
    shares this is Newcombe's interval (1998, method 10), of means about that of Welch.
    """
    below, above = values - low, high - values
    difference = values - values[place]
    return (
        difference - np.sqrt(below**2 + above[place] ** 2),
        difference + np.sqrt(above**2 + below[place] ** 2),
    )


def wilson(rates: FloatArray, rows: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval of a proportion; NaN without rows."""
    z = stats.norm.ppf(0.5 + confidence / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1 + z**2 / rows
        centre = (rates + z**2 / (2 * rows)) / scale
        half = z / scale * np.sqrt(rates * (1 - rates) / rows + (z / (2 * rows)) ** 2)
    # 0 and 1 come out as 1e-17 and 1 - 1e-16.
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


def quantiles(draws: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
    """Percentiles along the first axis, ignoring undefined resamples."""
    if not np.isfinite(draws).any():
        missing = np.full(draws.shape[1:], np.nan)
        return missing, missing
    undefined = ~np.isfinite(draws).any(axis=0)
    filled = np.where(undefined, 0.0, draws)
    low, high = np.nanquantile(filled, [tail, 1 - tail], axis=0)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def spread(draws: FloatArray) -> float:
    """Standard deviation of the resamples that are defined."""
    finite = draws[np.isfinite(draws)]
    return float(finite.std(ddof=1)) if finite.size > 1 else np.nan
