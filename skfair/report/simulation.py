"""Means drawn anew, as another sample of as many people would have shown them."""

from __future__ import annotations

import numpy as np
from scipy import special

from skfair._typing import FloatArray
from skfair.groups.means import CellMeans


def smoothed(measure: CellMeans) -> FloatArray:
    """Return the means of cells; shares as if one more row of each kind had been seen.

    A group of three rows without a success is not known to never have one.
    """
    if not measure.is_share:
        return measure.means
    n_rows = measure.n_effective
    return np.asarray((measure.means * n_rows + 1) / (n_rows + 2))


def drawn_means(
    measure: CellMeans,
    rng: np.random.RandomState,
    n_draws: int,
    # What the cells are in the population
    means: FloatArray,
    variances: FloatArray,
) -> FloatArray:
    """Draw the mean of each cell anew.

    Shares of rows without weights are binomial; all other means are taken for normal.
    Returns an array of shape (n_draws, n_cells) with NaN for cells without rows.
    """
    has_mean = (measure.weight > 0) & np.isfinite(means)
    draws = np.full((n_draws, measure.weight.size), np.nan)
    at, n_rows = means[has_mean], measure.n_effective[has_mean]
    if measure.is_share and np.array_equal(*measure.sums[:, 0]):
        draws[:, has_mean] = binomials(rng, n_draws, n_rows, np.clip(at, 0, 1)) / n_rows
        return draws
    errors = np.sqrt(np.nan_to_num(variances[has_mean]) / n_rows)
    normal = at + errors * rng.standard_normal((n_draws, at.size))
    draws[:, has_mean] = np.clip(normal, 0, 1) if measure.is_share else normal
    return draws


def binomials(
    rng: np.random.RandomState, n_draws: int, sizes: FloatArray, shares: FloatArray
) -> FloatArray:
    """Draw binomial counts, an array of shape (n_draws, n_cells); O(log n) for each draw.

    Many cells of a search have the same size and the same share. They are drawn by one table of
    the distribution, which takes a third of the time of drawing each by itself.
    """
    counts = np.empty((n_draws, sizes.size))
    if not sizes.size:
        return counts
    pairs, kinds = np.unique(np.stack([sizes, shares]), axis=1, return_inverse=True)
    order = np.argsort(kinds.ravel(), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(kinds.ravel()))[:-1])
    for (whole, share), cells in zip(pairs.T, parts, strict=True):
        size, shape = int(whole), (n_draws, cells.size)
        if size >= n_draws * cells.size:  # its table would be longer than what is drawn by it
            counts[:, cells] = rng.binomial(size, share, shape)
        else:
            below = special.bdtr(np.arange(size), size, share)  # P(count <= 0), ..., <= size - 1
            counts[:, cells] = np.searchsorted(below, rng.random_sample(shape), side="right")
    return counts
