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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from skfair._typing import FloatArray, IntArray

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
    if sparse.issparse(rows):
        entries = _Entries.of(rows, by_place=False)
        columns = [j if names is None else names[j] for j in entries.used]
        entries.add(total, entries.words ^ _named(columns, key)[entries.columns])
    else:
        for name, which, words in _columns(rows, names):
            total[which] += _mixed(words ^ _word_of_text(f"{key} {name}"))
    return _uniform(total, key)


def deal_draws(rows: Any, key: int) -> FloatArray:
    """Return a number in [0, 1) for each training row, by which rows are dealt to folds.

    It depends neither on the order and the names of columns, nor on the units of numeric ones, as
    long as they are positive, nor on how often rows are repeated: a number counts by its place
    among the numbers of its column. A column is known by its values and by the rows that have them.
    """
    # The name of a column is the largest of its words, each mixed with those of its row. Two
    # columns of different numbers have the same places, so words alone would not tell them apart.
    of_rows, total = np.zeros((2, _num_samples(rows)), np.uint64)
    if sparse.issparse(rows):
        entries = _Entries.of(rows, by_place=True)
        entries.add(of_rows, entries.words)
        known = _mixed(entries.words ^ _mixed(of_rows)[entries.rows])
        names = np.zeros(len(entries.used), np.uint64)
        np.maximum.at(names, entries.columns, known)
        entries.add(total, entries.words ^ _named(names.tolist(), key)[entries.columns])
        return _uniform(total, key)
    columns = [(which, words) for _, which, words in _columns(rows, None, by_place=True)]
    for which, words in columns:
        of_rows[which] += _mixed(words)
    of_rows = _mixed(of_rows)
    for which, words in columns:
        name = int(_mixed(words ^ of_rows[which]).max(initial=0))
        total[which] += _mixed(words ^ _word_of_text(f"{key} {name}"))
    return _uniform(total, key)


def _named(names: Sequence[Any], key: int) -> _WORDS:
    """Return the word of each name of a column, under a key."""
    return np.array([_word_of_text(f"{key} {name}") for name in names], np.uint64)


class _Entries(NamedTuple):
    """The entries of a sparse matrix with a word that is not 0, column by column."""

    rows: IntArray  # the row of each entry
    columns: IntArray  # the place of its column in ``used``
    words: _WORDS
    used: list[int]  # the columns that have entries

    @classmethod
    def of(cls, rows: Any, *, by_place: bool) -> _Entries:
        matrix = rows.tocsc(copy=True)
        matrix.sum_duplicates()
        columns = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
        numbers = matrix.data.astype(np.float64, copy=False)
        words = _word_of_numbers(_places(numbers, columns) if by_place else numbers)
        kept = np.flatnonzero(words)
        used, columns = np.unique(columns[kept], return_inverse=True)
        return cls(matrix.indices[kept], columns, words[kept], used.tolist())

    def add(self, total: _WORDS, words: _WORDS) -> None:
        """Add the mixed words of the entries to the sums of their rows."""
        np.add.at(total, self.rows, _mixed(words))


def _uniform(total: _WORDS, key: int) -> FloatArray:
    """Return the hashes of rows as numbers in [0, 1)."""
    return np.asarray((_mixed(total ^ np.uint64(key)) >> np.uint64(11)) * 2.0**-53)


def _places(values: FloatArray, columns: IntArray | None = None) -> FloatArray:
    """Return the place of the size of each number among the sizes in its column, with its sign.

    The smallest size that is not 0 has the place 1, the next one 2, and 0 stays 0. Equal sizes have
    the same place, so that repeated rows change no place.
    ``columns`` are the numbers of the columns, in rising order; None if there is only one.
    """
    size = np.abs(values)
    order = np.argsort(size) if columns is None else np.lexsort((size, columns))
    in_order = size[order]
    is_new = in_order != 0
    changes = in_order[1:] != in_order[:-1]
    if columns is not None:  # sorting by size has left the columns in their order
        changes |= columns[1:] != columns[:-1]
    is_new[1:] &= changes
    reached = np.cumsum(is_new)  # sizes so far, over all columns
    if columns is not None:
        before = np.concatenate([[0], reached])
        reached = reached - before[np.searchsorted(columns, columns)]
    place = np.empty(values.size)
    place[order] = reached
    return np.asarray(np.sign(values) * place)


def _columns(
    rows: Any, names: Sequence[Any] | None, by_place: bool = False
) -> Iterator[tuple[Any, Any, _WORDS]]:
    """Yield for each column of dense rows its name, the rows that are not 0, and their words.

    Columns of texts are a single column, and dicts have a column for each key. An array of more
    than two dimensions is flattened to two. With ``by_place`` numbers are replaced by their places.
    """
    if hasattr(rows, "columns"):
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
