"""A number between 0 and 1 for each row that depends on its values only.

It is the same in any batch, process and order of columns, and for values that compare equal, of
whatever type: 1, 1.0 and True; 0.0 and -0.0; a category and its text; NaN, None and other missing
values. Numbers count in single precision, so a table that was stored in it gives the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skfair._typing import FloatArray

# Multipliers and shifts of the finaliser of SplitMix64, which turns each bit into all others.
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = np.uint64(31)
_WORDS = NDArray[np.uint64]


def row_draws(rows: Any, names: Sequence[Any], key: int) -> FloatArray:
    """Return a number in [0, 1) for each row.

    Parameters
    ----------
    rows : DataFrame, array, sparse matrix or sequence of texts or dicts
        The rows.
    names : sequence
        Names of the columns of rows that have none themselves.
    key : int
        Other keys give other numbers.

    Returns
    -------
    draws : ndarray of shape (n_samples,)
        About as if drawn at random.
    """
    total = np.zeros(_n_rows(rows), np.uint64)
    for name, which, words in _columns(rows, names):
        total[which] += _mixed(words ^ _word_of_text(f"{key} {name}"))
    return np.asarray((_mixed(total ^ np.uint64(key)) >> np.uint64(11)) * 2.0**-53)


def _n_rows(rows: Any) -> int:
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _columns(rows: Any, names: Sequence[Any]) -> Iterator[tuple[Any, Any, _WORDS]]:
    """Yield the name of each column, the rows where it is not 0, and the words of these."""
    if sparse.issparse(rows):
        matrix: Any = rows
        by_column = matrix.tocsc(copy=True)
        by_column.sum_duplicates()
        for j, name in enumerate(names):
            part = slice(by_column.indptr[j], by_column.indptr[j + 1])
            yield name, *_not_zero(by_column.data[part], by_column.indices[part])
    elif hasattr(rows, "columns"):
        for j, name in enumerate(rows.columns):
            yield name, *_not_zero(rows.iloc[:, j])
    elif getattr(rows, "ndim", 1) == 1:
        rows = list(rows)
        if not isinstance(next(iter(rows), ""), Mapping):
            yield "", *_not_zero(rows)
            return
        for name in {name for row in rows for name in row}:
            which = np.flatnonzero([name in row for row in rows])
            yield name, *_not_zero([rows[i][name] for i in which], which)
    elif rows.ndim > 2:
        for name, column in enumerate(rows.reshape(len(rows), -1).T):
            yield name, *_not_zero(column)
    else:
        for name, column in zip(names, rows.T, strict=True):
            yield name, *_not_zero(column)


def _not_zero(column: Any, rows: Any = None) -> tuple[Any, _WORDS]:
    """Return the rows that are not 0, as absent entries of sparse rows are, and their words."""
    words = _words(column)
    which = np.flatnonzero(words)
    return (which if rows is None else rows[which]), words[which]


def _words(column: Any) -> _WORDS:
    """Return a word for each value; 0 for the number 0."""
    import pandas as pd

    values = pd.Series(column)
    is_number = pd.api.types.is_numeric_dtype(values.dtype)  # truth values as well
    if is_number and not pd.api.types.is_complex_dtype(values.dtype):
        return _word_of_numbers(values.to_numpy(np.float64, na_value=np.nan))
    codes, uniques = pd.factorize(values.astype(object))
    words = [_word_of_value(value) for value in uniques]
    missing = _word_of_numbers(np.array([np.nan]))[0]
    return np.array([*words, missing], dtype=np.uint64)[codes]


def _word_of_value(value: Any) -> np.uint64:
    if isinstance(value, Real):
        return np.uint64(_word_of_numbers(np.array([value], dtype=np.float64))[0])
    return _word_of_text(str(value))


def _word_of_numbers(values: FloatArray) -> _WORDS:
    """Return a word for each number, by its single precision."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    single[single == 0] = 0.0  # -0.0 as well
    single[np.isnan(single)] = np.nan  # of all the bits that mean it, the usual ones
    return np.asarray(single.view(np.uint32), dtype=np.uint64)


def _word_of_text(text: str) -> np.uint64:
    from hashlib import blake2b

    return np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little"))


def _mixed(words: _WORDS) -> _WORDS:
    """Return words of which each bit depends on all bits of the given ones."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _STEPS:
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(words ^ (words >> _LAST_SHIFT))
