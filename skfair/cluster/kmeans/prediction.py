"""Labels, distances and costs of new rows for ``FairKMeans``.

- :func:`labels_at_prices` for ``predict``, :func:`center_distances` for ``transform``,
  :func:`cost_of_rows` and :func:`score_block` (rows in Dask collections) for ``score``. All pass
  over the rows by :func:`over_distances`.

Centres and prices are in the scaled units of the fit, ``units``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.metrics.pairwise import euclidean_distances

from skfair._typing import FloatArray, IntArray, Rows
from skfair.cluster.assignment.points import Units, squared_norms
from skfair.utils.pieces import ROWS, piece_rows
from skfair.utils.threads import over_blocks

R = TypeVar("R")

# The distance of a row to a centre differs between two batches by rounding, at most by this many
# units in the last place of the squared norms from which it is computed. Closer distances count as
# tied, and the row joins the first of these clusters, so that labels do not depend on the batch.
_ROUNDING = 64.0


def labels_at_prices(
    rows: Rows, codes: IntArray | None, centers: FloatArray, prices: FloatArray, units: Units
) -> NDArray[np.int32]:
    """Return the cluster with the smallest squared distance plus prices for each row.

    ``codes`` (n_attributes, n_samples) are the groups of the rows, each of which pays its column of
    ``prices`` (n_clusters, n_groups). If ``codes`` is None, no prices are paid.
    """
    labels = np.empty(rows.shape[0], np.int32)
    # ``unit`` is the size of the numbers that are added up. Sparse rows are not centred.
    unit = float(squared_norms(centers + units.mean / units.scale * issparse(rows)).max())
    codes = np.empty((0, labels.size), np.int32) if codes is None else codes
    unit += len(codes) * float(np.abs(prices).max(initial=0.0))
    of_groups = np.ascontiguousarray(prices.T)

    def of_part(part: slice, distances: NDArray[Any]) -> None:
        from skfair.cluster.assignment._kernels.prices import nearest

        rounding = _ROUNDING * np.finfo(distances.dtype).eps
        nearest(distances, of_groups, codes[:, part], unit, rounding, labels[part])

    over_distances(rows, centers, units, of_part)
    return labels


def center_distances(rows: Rows, centers: FloatArray, units: Units) -> NDArray[Any]:
    """Return the distances of rows to the centres (n_samples, n_clusters), in units of the data."""
    out = np.empty((rows.shape[0], len(centers)), rows.dtype)

    def of_part(part: slice, distances: NDArray[Any]) -> None:
        out[part] = np.sqrt(distances) * units.scale

    over_distances(rows, centers, units, of_part)
    return out


def cost_of_rows(
    rows: Rows, weights: FloatArray | None, centers: FloatArray, units: Units
) -> float:
    """Return the sum of squared distances to the nearest centres, in units of the data."""

    def of_part(part: slice, distances: NDArray[Any]) -> float:
        nearest = distances.min(axis=1).astype(np.float64)
        return float(nearest.sum() if weights is None else weights[part] @ nearest)

    return sum(over_distances(rows, centers, units, of_part)) * units.squared


def over_distances(
    X: Rows, centers: FloatArray, units: Units, function: Callable[[slice, NDArray[Any]], R]
) -> list[R]:
    """Return ``function(rows, distances)`` for each block of rows, a slice.

    The distances to the centres are squared and in scaled units. The function may change them.
    """
    from skfair.cluster.assignment._kernels.prices import complete_distances, scaled_rows

    origin, scale = units.mean, units.scale
    is_sparse = issparse(X)  # sparse rows must keep their zeros, so the centres are shifted instead
    moved = (centers + origin / scale).astype(X.dtype)
    inverse = np.float64(1 / max(scale, float(np.finfo(np.float64).tiny)))
    minus_two, norms = np.ascontiguousarray(-2 * centers.T), squared_norms(centers)

    def of_block(start: int, stop: int) -> R:
        part = slice(start, stop)
        if is_sparse:
            own = euclidean_distances(X[part] / X.dtype.type(scale), moved, squared=True)
        else:
            scaled = np.empty((stop - start, X.shape[1]))
            scaled_rows(X[part], origin, inverse, scaled)
            own = scaled @ minus_two
            complete_distances(own, norms, squared_norms(scaled))
        return function(part, own)

    # A block of rows and its distances fit into the fastest part of the cache.
    step = ROWS if is_sparse else piece_rows(X.shape[0], 4 * sum(centers.shape))
    return over_blocks(of_block, X.shape[0], step)


def score_block(block: dict[str, Any], estimator: Any) -> float:
    """Return ``estimator.score`` of a block, or 0 if it has no rows or no weight."""
    weights = block.get("sample_weight")
    if not block["X"].shape[0] or (weights is not None and not np.any(weights)):
        return 0.0
    return float(estimator.score(block["X"], sample_weight=weights))
