"""A number between 0 and 1 for each row that depends on its values only: :func:`row_draws`.

It replaces random draws if rows must get the same draw at every prediction. It is also used to sort
rows independently of their order, and to find equal rows. :func:`deal_draws` is for rows that are
dealt to folds, where neither the order of the columns nor their units should matter.

The number does not depend on the batch, the process and the order of columns. It is the same for
values that compare equal: 1, 1.0 and True; 0.0 and -0.0; a category and its text; NaN, None and
other missing values. Numbers are rounded to single precision, so a table that was stored in single
precision gives the same result.

Each value becomes a 64-bit *word*: the bits of a number, or a hash of a text. The word of the
number 0 is 0. The hash of a row is the sum over its columns of the mixed (value word XOR name
word), and zeros are left out, so that sparse rows need only their entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from skfair._typing import FloatArray

# Shifts and multipliers of the finaliser of SplitMix64, after which each bit depends on all others.
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = np.uint64(31)
_WORDS = NDArray[np.uint64]


def row_draws(rows: Any, names: Sequence[Any] | None, key: int) -> FloatArray:
    """Return a number in [0, 1) for each row.

    Parameters
    ----------
    rows : DataFrame, array, sparse matrix or sequence of texts or dicts
        The rows.
    names : sequence or None
        Names of the columns of rows that have none themselves. If None, columns are numbered, also
        those of frames, so that a frame and its array give the same.
    key : int
        Other keys give other numbers.

    Returns
    -------
    draws : ndarray of shape (n_samples,)
        The numbers, which look like independent uniform draws. Equal rows have equal numbers.
    """
    total = np.zeros(_num_samples(rows), np.uint64)
    for name, which, words in _columns(rows, names):
        total[which] += _mixed(words ^ _word_of_text(f"{key} {name}"))
    return _uniform(total, key)


def deal_draws(rows: Any, key: int) -> FloatArray:
    """Return a number in [0, 1) for each training row, by which rows are dealt to folds.

    It depends neither on the order and the names of columns, nor on the units of numeric ones, as
    long as they are positive: a number counts by its place among the numbers of its column. A
    column is known by its values and by the rows that have them.
    """
    columns = [(which, words) for _, which, words in _columns(rows, None, by_place=True)]
    total = np.zeros(_num_samples(rows), np.uint64)
    for which, words in columns:
        total[which] += _mixed(words)
    # The name of a column is the sum of its words, each mixed with those of its row. Two columns
    # of different numbers have the same places, so their words alone would not tell them apart.
    of_rows = _mixed(total)
    total[:] = 0
    for which, words in columns:
        name = np.add.reduce(_mixed(words ^ of_rows[which]), dtype=np.uint64)
        total[which] += _mixed(words ^ _word_of_text(f"{key} {int(name)}"))
    return _uniform(total, key)


def _uniform(total: _WORDS, key: int) -> FloatArray:
    """Return the hashes of rows as numbers in [0, 1)."""
    return np.asarray((_mixed(total ^ np.uint64(key)) >> np.uint64(11)) * 2.0**-53)


def _places(values: FloatArray) -> FloatArray:
    """Return the place of each number among those of its sign and smaller size, with this sign.

    The place of the smallest size is 1, equal numbers have the same place, and 0 stays 0.
    """
    size = np.abs(values)
    order = np.argsort(size)
    in_order = size[order]
    is_new = np.diff(in_order, prepend=0.0) != 0
    place = np.empty(values.size)
    place[order] = np.maximum.accumulate(np.where(is_new, np.arange(1, values.size + 1), 0))
    n_zeros = int(np.searchsorted(in_order, 0.0, side="right"))
    return np.asarray(np.sign(values) * (place - n_zeros))


def _columns(
    rows: Any, names: Sequence[Any] | None, by_place: bool = False
) -> Iterator[tuple[Any, Any, _WORDS]]:
    """Yield for each column its name, the rows that are not 0, and their words.

    Columns of texts are a single column, and dicts have a column for each key. An array of more
    than two dimensions is flattened to two. With ``by_place`` numbers are replaced by their places.
    """
    if sparse.issparse(rows):
        matrix: Any = rows
        entries = matrix.tocsc(copy=True)
        entries.sum_duplicates()
        for j in np.flatnonzero(np.diff(entries.indptr)).tolist():
            own = slice(*entries.indptr[j : j + 2])
            name = j if names is None else names[j]
            yield name, *_not_zero(entries.data[own], entries.indices[own], by_place=by_place)
    elif hasattr(rows, "columns"):
        for j, name in enumerate(rows.columns):
            column = _safe_indexing(rows, j, axis=1)
            yield j if names is None else name, *_not_zero(column, by_place=by_place)
    elif getattr(rows, "ndim", 1) == 1:
        rows = list(rows)
        if not isinstance(next(iter(rows), ""), Mapping):
            yield 0 if names is None else "", *_not_zero(rows)
            return
        rows_with = defaultdict(list)
        for i, row in enumerate(rows):
            for name in row:
                rows_with[name].append(i)
        for name, which in rows_with.items():
            values = [rows[i][name] for i in which]
            yield name, *_not_zero(values, np.array(which), by_place=by_place)
    elif rows.ndim > 2:
        for name, column in enumerate(rows.reshape(len(rows), -1).T):
            yield name, *_not_zero(column, by_place=by_place)
    else:
        names = range(rows.shape[1]) if names is None else names
        for name, column in zip(names, rows.T, strict=True):
            yield name, *_not_zero(column, by_place=by_place)


def _not_zero(column: Any, rows: Any = None, *, by_place: bool = False) -> tuple[Any, _WORDS]:
    """Return the rows with a word that is not 0, and the words.

    ``rows`` are the rows of the values in the column; if None, it has a value for every row.
    """
    words = _words(column, by_place)
    if rows is None and words.all():
        return slice(None), words
    which = np.flatnonzero(words)
    return (which if rows is None else rows[which]), words[which]


def _words(column: Any, by_place: bool) -> _WORDS:
    """Return a word for each value; 0 for the number 0."""
    import pandas as pd

    def of_numbers(numbers: FloatArray) -> _WORDS:
        return _word_of_numbers(_places(numbers) if by_place else numbers)

    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return of_numbers(column.astype(np.float64, copy=False))  # faster than by a Series
    values = pd.Series(column)
    is_number = pd.api.types.is_numeric_dtype(values.dtype)  # True for booleans, too
    if is_number and not pd.api.types.is_complex_dtype(values.dtype):
        return of_numbers(values.to_numpy(np.float64, na_value=np.nan))
    values = values.astype(object)
    try:
        codes, uniques = pd.factorize(values)
    except TypeError:  # lists and other values cannot be hashed
        codes, uniques = pd.factorize(values.map(str))
    words = [_word_of_value(value) for value in uniques]
    missing = _word_of_numbers(np.array([np.nan]))[0]
    return np.array([*words, missing], dtype=np.uint64)[codes]


def _word_of_value(value: Any) -> np.uint64:
    """Return the word of a single value of any type."""
    if isinstance(value, Real):
        return np.uint64(_word_of_numbers(np.array([value], dtype=np.float64))[0])
    return _word_of_text(str(value))


def _word_of_numbers(values: FloatArray) -> _WORDS:
    """Return a word for each number, by its single precision."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    single += 0.0  # -0.0 becomes 0.0
    single[np.isnan(single)] = np.nan  # NaN has many bit patterns, of which one is used
    return np.asarray(single.view(np.uint32), dtype=np.uint64)


def _word_of_text(text: str) -> np.uint64:
    """Return 64 bits of a hash of a text that is the same in every process."""
    from hashlib import blake2b

    return np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little"))


def _mixed(words: _WORDS) -> _WORDS:
    """Return mixed words, in which each bit depends on all bits of the given word."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in _STEPS:
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> _LAST_SHIFT
    return words
