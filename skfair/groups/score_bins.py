"""Many scores in few bins: quantiles from sketches of blocks, and sums over the bins.

A *sketch* of a block is its distinct scores, or quantiles of them if they are many. Sketches of
several blocks are put together and thinned again. Its scores are the ends of the bins: a bin holds
the scores above the end before it, up to its own end.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray

# Scores are told apart up to this number of different ones; beyond it there are this many bins.
N_BINS = 1 << 16
# What a block with more scores tells of them: at least this many quantiles.
N_QUANTILES = 1 << 12


class Bins(NamedTuple):
    """Which scores the weighted rows stand for."""

    number: IntArray  # (n_rows,): bin of each weighted row
    # (n_bins,): smallest and largest score of each bin; bins do not overlap and rise
    low: FloatArray
    high: FloatArray


# Scores, rising, and the weight that lies at each and below it, up to the one before.
Sketch: TypeAlias = tuple[FloatArray, FloatArray]


def sketch_of(scores: FloatArray, weights: FloatArray, n_bins: int, n_quantiles: int) -> Sketch:
    """Return the distinct scores of a block, or quantiles of them if they are more than bins."""
    values, place = np.unique(scores, return_inverse=True)
    sketch = values, bincount(place, weights, values.size)
    return _thinned(*sketch, n_quantiles) if values.size > n_bins else sketch


def joined_sketches(parts: list[Sketch], limit: int) -> Sketch:
    """Put sketches together; a limit of scores is kept."""
    values, weights = (np.concatenate(own) for own in zip(*parts, strict=True))
    return sketch_of(values, weights, limit, limit)


def _thinned(values: FloatArray, weights: FloatArray, n_quantiles: int) -> Sketch:
    """Keep scores between which lies about the same weight."""
    below = np.cumsum(weights)
    share = below[-1] / n_quantiles
    kept = np.searchsorted(below, share * np.arange(1, n_quantiles)).clip(0, values.size - 1)
    # A score that many rows have is a bin of its own: another one ends just below it.
    heavy = np.flatnonzero(weights > share)
    kept = np.unique(np.concatenate([kept, heavy, np.maximum(heavy - 1, 0), [values.size - 1]]))
    return values[kept], np.diff(below[kept], prepend=0.0)


class Cells(NamedTuple):
    """Rows of the same kind in the same bin, and the scores of the bins."""

    keys: IntArray  # (n_cells,): ``kind * n_bins + bin``, rising
    # (1 or 3, n_cells): numbers of rows; with weights also their sums, and the sums of their
    # squares
    sums: FloatArray
    # (n_bins,): smallest and largest score of each bin, and weighted sum of the scores
    low: FloatArray
    high: FloatArray
    moments: FloatArray


def cells_of(block: Any, name: str, ends: FloatArray) -> Cells:
    """Count the rows of a block by kind and bin of the scores of this name."""
    scores, kinds, weights = block.numbers[name], block.kind.astype(np.int64), block.weights
    number = np.searchsorted(ends, scores)  # ends[number - 1] < score <= ends[number]
    keys, place = np.unique(kinds * ends.size + number, return_inverse=True)
    values = [None] if weights is None else [None, weights, weights**2]
    low, high = np.full(ends.size, np.inf), np.full(ends.size, -np.inf)
    np.minimum.at(low, number, scores)
    np.maximum.at(high, number, scores)
    return Cells(
        keys.astype(np.int64),
        np.array([bincount(place, sums, keys.size) for sums in values]),
        low,
        high,
        bincount(number, scores if weights is None else scores * weights, ends.size),
    )


def joined_cells(parts: list[Cells]) -> Cells:
    """Add up the cells of several blocks."""
    keys, place = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    sums = np.concatenate([part.sums for part in parts], axis=1)
    return Cells(
        keys,
        np.array([bincount(place, row, keys.size) for row in sums]),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
        np.sum([part.moments for part in parts], axis=0),
    )


def bincount(codes: NDArray[Any], values: Any, size: int) -> FloatArray:
    """Add up values (1 for each if None) by code, as float64."""
    return np.bincount(codes, values, size).astype(np.float64)
