r"""Shares: the probability of each row to be in a group, in a stratum and of a true class.

All searches of this folder describe decisions by these shares. A *feature* f = (g, s, y) stands for
group g, stratum s and true class y, and the share Phi_if of row i is the probability that the row
has this feature. Groups may be known (:func:`known_shares`) or estimated from the other columns
(:func:`estimated_shares`). An *offset* L_fc is what a row with feature f pays for class c, so row i
gets the class c with the largest *margin*

.. math:: V_{ic} - \sum_f \Phi_{if} L_{fc}

where V are the expected utilities of the decisions (:func:`margins`). The functions at the end read
the shares by columns, because line searches move the offsets of a few features at a time.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from skfair._typing import FloatArray, IntArray
from skfair.utils.rounding import ROUNDING

Shares: TypeAlias = FloatArray | sparse.csr_array | sparse.csc_array


def known_shares(
    groups: IntArray, n_groups: int, strata: IntArray | None, n_strata: int, chances: FloatArray
) -> Shares:
    """Return the shares of rows whose groups are known.

    Parameters
    ----------
    groups : ndarray of shape (n_attributes, n_samples)
        Group numbers; -1 for a group that is not known.
    n_groups : int
        Number of groups of all attributes.
    strata : ndarray of shape (n_samples,) or None
        Stratum numbers.
    n_strata : int
        Number of strata, 1 if there are none.
    chances : ndarray of shape (n_samples, n_classes)
        Probability of each true class.

    Returns
    -------
    shares : sparse array of shape (n_samples, n_groups * n_strata * n_classes)
        The shares.
    """
    first = groups.T * n_strata + (0 if strata is None else strata[:, None])  # (n, n_attributes)
    values = np.where(groups.T[:, :, None] >= 0, chances[:, None, :], 0.0)
    return _in_columns(values, first, n_groups * n_strata)


def estimated_shares(joint: FloatArray, strata: IntArray | None, n_strata: int) -> Shares:
    """Return the shares of rows whose groups are estimated.

    ``joint`` (n, n_groups, n_classes) is P(group and class | row). Its sum over the classes and the
    groups of one attribute is 1.
    """
    n, n_groups, _ = joint.shape
    if strata is None or n_strata == 1:
        return joint.reshape(n, -1)
    first = np.arange(n_groups) * n_strata + strata[:, None]
    return _in_columns(joint, first, n_groups * n_strata)


def _in_columns(values: FloatArray, first: IntArray, n_columns: int) -> sparse.csr_array:
    """Return the sparse shares, given the values of each row and the columns where they belong.

    ``values`` has the shape (n, n_own, n_classes). Pair ``first[i, j]`` of a group and a stratum
    has ``n_classes`` neighbouring columns. A pair of an unknown group is negative: its values,
    which are 0, are put into column 0.
    """
    n, n_own, n_classes = values.shape
    columns = np.maximum(first[:, :, None] * n_classes + np.arange(n_classes), 0)
    starts, shape = np.arange(n + 1) * n_own * n_classes, (n, n_columns * n_classes)
    return sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=shape)


def margins(values: FloatArray, shares: Shares, offsets: FloatArray) -> FloatArray:
    """Return the expected utility of each decision minus its offset, shape (n, n_classes)."""
    return np.asarray(values - shares @ offsets)


def with_ties_broken(values: FloatArray, weight: float) -> FloatArray:
    """Return v + weight * v log v for expected utility v.

    Rows with different v may have the same margin at some offsets, so no offset can tell them
    apart. The term v log v is not linear in v and separates them.
    """
    return np.asarray(values + weight * xlogy(values, values)) if weight else values


def by_column(shares: Shares) -> FloatArray | sparse.csc_array:
    """Return the shares in memory order of columns, as :func:`along` reads them."""
    is_dense = isinstance(shares, np.ndarray)
    return np.asfortranarray(shares) if is_dense else sparse.csc_array(shares)


def along(shares: FloatArray | sparse.csc_array, features: IntArray) -> tuple[IntArray, FloatArray]:
    """Return the rows that have any of some features, and the sums of their shares in these.

    ``features`` are neighbouring columns: a single one, or all of a group or of an attribute.
    """
    first, end = int(features[0]), int(features[-1]) + 1
    if isinstance(shares, np.ndarray):
        total = shares[:, first:end].sum(axis=1)
        if total.min() > ROUNDING:
            return np.arange(total.size), total
    else:
        inside = slice(shares.indptr[first], shares.indptr[end])
        rows, parts = shares.indices[inside].astype(np.int64), shares.data[inside]
        if features.size == 1:
            return rows[parts > ROUNDING], np.asarray(parts[parts > ROUNDING])
        total = np.bincount(rows, parts, shares.shape[0]).astype(np.float64)
    of_some = np.flatnonzero(total > ROUNDING)
    return of_some, total[of_some]
