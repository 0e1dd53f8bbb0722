"""Many scores in few bins: quantiles from sketches of blocks, and sums over the bins.

A *sketch* of a block is its distinct scores, or quantiles of them if they are many. Sketches of
several blocks are joined and thinned again. The scores of the joined sketch are the ends of the
bins. A bin holds the scores above the previous end, up to and including its own end.

:meth:`skfair.groups.weighted_rows.LazyRows.binned` calls :func:`sketch_of` on each block and
:func:`joined_sketches` on the results to find the ends, then :func:`cells_of` and
:func:`joined_cells` to sum the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray

# Up to this number of different scores, each score is a bin. If there are more scores, there are
# about this many bins.
N_BINS = 1 << 16
# A block with more different scores than N_BINS returns at least this many quantiles of them.
N_QUANTILES = 1 << 12


class Bins(NamedTuple):
    """The bin of each weighted row, and the scores that the bins hold."""

    number: IntArray  # (n_rows,): bin of each weighted row
    # (n_bins,): smallest and largest score of each bin; the bins are ascending and disjoint
    low: FloatArray
    high: FloatArray


# Ascending scores, and for each the weight of the rows above the previous score and up to this one.
Sketch: TypeAlias = tuple[FloatArray, FloatArray]


def sketch_of(scores: FloatArray, weights: FloatArray, n_bins: int, n_quantiles: int) -> Sketch:
    """Return the distinct scores of a block; if there are more than ``n_bins``, quantiles."""
    values, place = np.unique(scores, return_inverse=True)
    sketch = values, bincount(place, weights, values.size)
    return _thinned(*sketch, n_quantiles) if values.size > n_bins else sketch


def joined_sketches(parts: list[Sketch], limit: int) -> Sketch:
    """Join sketches, and thin the result if it has more than ``limit`` scores."""
    values, weights = (np.concatenate(own) for own in zip(*parts, strict=True))
    return sketch_of(values, weights, limit, limit)


def _thinned(values: FloatArray, weights: FloatArray, n_quantiles: int) -> Sketch:
    """Keep about ``n_quantiles`` scores, with about the same weight between neighbours."""
    below = np.cumsum(weights)
    share = below[-1] / n_quantiles
    kept = np.searchsorted(below, share * np.arange(1, n_quantiles)).clip(0, values.size - 1)
    # A score with more weight than such a share gets a bin of its own. For this the next lower
    # score is kept, too.
    heavy = np.flatnonzero(weights > share)
    kept = np.unique(np.concatenate([kept, heavy, np.maximum(heavy - 1, 0), [values.size - 1]]))
    return values[kept], np.diff(below[kept], prepend=0.0)


class Cells(NamedTuple):
    """Sums over the rows of the same kind in the same bin (a cell), and over the bins."""

    keys: IntArray  # (n_cells,): ``kind * n_bins + bin``, ascending; only cells with rows
    # (1 or 3, n_cells): number of rows; if rows have weights also their sum, and that of their
    # squares
    sums: FloatArray
    # (n_bins,): smallest and largest score of each bin (inf and -inf in a bin without rows), and
    # weighted sum of its scores
    low: FloatArray
    high: FloatArray
    moments: FloatArray


def cells_of(block: Any, name: str, ends: FloatArray) -> Cells:
    """Sum the rows of a :class:`RowBlock` by kind and bin; ``name`` is the column of scores."""
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
