"""Checks of matrices of weights between rows.

:func:`check_memory` comes before a dense matrix is allocated (``kernels.py``), :func:`is_symmetric`
recognises a matrix that was passed as rows with features (``base.py``). :func:`check_square`,
:func:`check_dense` and :func:`check_sparse` are for matrices that users or their affinities give.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from skfair._typing import Rows
from skfair.utils.pieces import MATRIX_ROWS
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import over_blocks

# Weights and their mirror images may differ by this, relative to the largest weight.
_ASYMMETRY = 1e-5


def check_memory(n: int, bytes_per_weight: int) -> None:
    """Raise before an n x n array is allocated that this machine cannot hold."""
    limit, n_bytes = _memory_limit(), n * n * bytes_per_weight
    if limit is not None and n_bytes > limit:
        raise MemoryError(
            f"A dense affinity of {n} x {n} needs {n_bytes:.3g} bytes, and this machine has "
            f"{limit:.3g}. Use affinity='landmark' or 'nystroem', which never form it, or "
            "'nearest_neighbors', which is sparse."
        )


def _memory_limit() -> int | None:
    """Return the smallest limit on memory, in bytes: of machine, container or process.

    The limit of the process is ``ulimit -v``. The result is None if no limit can be read.
    """
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with suppress(ImportError):  # Windows has no module resource
        import resource

        if (most := resource.getrlimit(resource.RLIMIT_AS)[0]) != resource.RLIM_INFINITY:
            limits.append(most)
    return min(limits, default=None)


def is_symmetric(X: Rows) -> bool:
    """Return whether X is a symmetric matrix; a few rows are compared first, to save time."""
    if X.shape[0] != X.shape[1]:
        return False
    if sparse.issparse(X):
        difference = abs(X - X.T)
        return float(difference.max()) <= _ASYMMETRY * float(abs(X).max())
    few = min(8, X.shape[0])
    return all(np.allclose(X[:i], X[:, :i].T, rtol=_ASYMMETRY, atol=0) for i in (few, X.shape[0]))


def check_square(X: Rows, affinity: str) -> None:
    """Raise if X is no matrix between rows."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"affinity={affinity!r} needs a square matrix of the weights between rows, got shape "
            f"{X.shape}. Pass such a matrix, or another affinity for data of rows and columns."
        )


def check_dense(
    weights: NDArray[Any], dtype: DTypeLike
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Check a dense matrix; return it in the precision ``dtype``, and its row sums in float64.

    It is not copied if it has this precision already. The matrix is read from memory once. If A f
    and A'f are equal for a random vector f, the matrix A is symmetric. Otherwise entries are
    compared one by one.
    """
    from skfair.cluster.spectral._kernels.products import read_rows

    n = weights.shape[0]
    read = weights if weights.dtype == dtype else np.empty(weights.shape, dtype)
    random = 1 + np.random.RandomState(0).random_sample(n)
    sums, forward = np.empty(n), np.empty(n)

    def of_rows(start: int, stop: int) -> tuple[bool, NDArray[np.float64]]:
        rows, backward = np.ascontiguousarray(weights[start:stop]), np.zeros(n)
        place = np.empty_like(rows) if read is weights else read[start:stop]
        results = sums[start:stop], forward[start:stop], backward
        return read_rows(rows, start, random, place, *results), backward

    with np.errstate(over="ignore", invalid="ignore"):
        of_blocks = over_blocks(of_rows, n, MATRIX_ROWS)
        if not np.isfinite(sums).all() and not np.isfinite(weights).all():
            which = "NaN" if np.isnan(weights).any() else "infinity"
            raise ValueError(
                f"The affinity has entries that are NaN or infinite: it contains {which}."
            )
        if any(is_negative for is_negative, _ in of_blocks):
            raise _negative(float(weights.min()))
        # The largest weight lies between the largest sum divided by n and the largest sum. It is
        # computed only if these bounds do not settle the check.
        least, most = _range(read.dtype)
        if not least * len(sums) <= sums.max() <= most:
            _check_range(float(weights.max()), read.dtype)
        apart = np.abs(forward - sum(backward for _, backward in of_blocks)).max()
        if not apart <= ROUNDING * sums.max():
            largest = max(over_blocks(partial(_asymmetry, read), n, MATRIX_ROWS))
            _check_symmetry(largest, float(weights.max()))
    return read, sums


def _asymmetry(matrix: NDArray[Any], begin: int, end: int) -> float:
    """Return the largest difference of rows ``begin`` to ``end`` from the columns they mirror.

    Only entries right of the diagonal are compared.
    """
    worst = 0.0
    for start in range(begin, matrix.shape[0], MATRIX_ROWS):
        stop = start + MATRIX_ROWS
        rows, columns = matrix[begin:end, start:stop], matrix[start:stop, begin:end].T
        if np.array_equal(rows, columns):
            continue
        apart = rows - columns
        worst = max(worst, float(apart.max()), -float(apart.min()))
    return worst


def check_sparse(weights: sparse.csr_array, dtype: DTypeLike) -> None:
    """Raise if weights are negative, not symmetric, or beyond the range of a precision."""
    if not weights.nnz:
        return
    if weights.data.min() < 0:
        raise _negative(float(weights.data.min()))
    _check_range(float(weights.data.max()), dtype)
    difference = abs(weights - weights.T)
    _check_symmetry(float(difference.max()) if difference.nnz else 0.0, float(weights.data.max()))


def _negative(lowest: float) -> ValueError:
    return ValueError(
        f"The affinity has negative weights (smallest: {lowest:g}). Weights are similarities, at "
        "least 0; distances d turn into similarities with exp(-gamma * d ** 2), for example."
    )


def _check_range(largest: float, dtype: DTypeLike) -> None:
    """Raise if the largest weight overflows in a precision, or is too small for it."""
    least, most = _range(dtype)
    if largest > most or 0 < largest < least:
        raise ValueError(
            f"The affinity does not fit into {np.dtype(dtype)}: its largest weight is {largest:g}. "
            "Divide it by its largest weight."
        )


def _range(dtype: DTypeLike) -> tuple[float, float]:
    """Return the smallest and the largest number of a precision."""
    known = np.finfo(np.dtype(dtype))
    return float(known.tiny), float(known.max)


def _check_symmetry(asymmetry: float, largest: float) -> None:
    if asymmetry > _ASYMMETRY * largest:
        raise ValueError(
            f"The affinity is not symmetric: an entry and its mirror image differ by {asymmetry:g}."
            " Pass (W + W.T) / 2."
        )
