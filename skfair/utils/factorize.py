"""Turn any one-dimensional array of labels into integer codes, fast and exactly.

:func:`factorize` reads labels, groups and units for the whole package. It calls
``pandas.factorize``, which hashes every value, for objects, floats and extension arrays. Two common
kinds are read faster:

- integers of a small range, by a look-up table (``_factorize_integers``),
- fixed-width numpy strings. If there are few different strings and one or two characters identify
  them, these characters are looked up in a table (``_look_up_texts``). Otherwise each string is
  read as a few 64-bit words, which are hashed as integers (``_factorize_fixed_width``).

Strings and integers of a few rows, as a service passes them, are read in Python
(``_factorize_few``), which takes 5 us for one row, not 40.

The levels are sorted, so the codes do not depend on the order of the rows.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import IntArray
from skfair.utils.text import check_text
from skfair.utils.threads import BLOCK, looked_up, over_blocks

# Arrays and Series of at most this many values are read in Python.
_MOST_IN_PYTHON = 16
# Integers whose range is below this are read with a look-up table instead of a hash table.
_MAX_TABLE = 1 << 16
# Fixed-width strings up to this many 8-byte words are compared word by word. Wider ones become
# Python objects. 16 words are 32 unicode characters.
_MAX_WORDS = 16
# Rows in a block of _look_up_texts. The strings of this many rows fit into the cache of the
# processor (with blocks of four times the size, 100,000 rows take twice the time). About as many
# rows are read first to find the strings that occur.
_FEW = 1 << 14
# A table of _look_up_texts has at most 2 to this power places, which is enough for 63 strings.
_MOST_BITS = 12
# Odd numbers that spread one or two characters over the places of the table.
_FACTORS = np.array([2654435761, 2246822519], np.uint32)
_WHAT = "The group or label"  # the subject of the error about invalid text


class Factorized(NamedTuple):
    """Integer codes and the levels that they number; a missing value has the code -1."""

    codes: IntArray  # (n,)
    levels: list[Any]  # sorted, Python scalars


def factorize(values: Any) -> Factorized:
    """Encode a 1-d array, Series or extension array as codes of its sorted levels.

    Cost: O(n) for integers of a small range, booleans and categoricals; one hash per row
    otherwise. Missing values (None, NaN, NaT, pandas.NA) get code -1 and are no level.
    """
    import pandas as pd

    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        return _factorize_categorical(values)
    if isinstance(values, pd.arrays.NumpyExtensionArray):  # pandas 2 would warn about this array
        values = values.to_numpy()
    elif not isinstance(
        values, np.ndarray | pd.Series | pd.Index | pd.api.extensions.ExtensionArray
    ):
        # A list, or a Series of another library, which pandas does not take.
        values = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if 0 < len(values) <= _MOST_IN_PYTHON and (few := _factorize_few(values.tolist())) is not None:
        return few
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biu" and values.size:
            factorized = _factorize_integers(values)
            if factorized is not None:
                return factorized
            codes, uniques = pd.factorize(values)
            order = np.argsort(uniques)
            return Factorized(np.argsort(order)[codes], uniques[order].tolist())
        if values.dtype.kind in "US":
            return _factorize_fixed_width(values)
    try:
        codes, uniques = pd.factorize(values, use_na_sentinel=True)
    except TypeError as error:  # a value may be a list
        raise TypeError(f"A group or label must be a number or a string; {error}.") from error
    except UnicodeEncodeError as error:  # pandas hashes texts as UTF-8, which cannot hold this one
        check_text([error.object], _WHAT)
        raise
    return _sorted_levels(codes, list(uniques))


def factorized_or_none(values: Any) -> Factorized | None:
    """Do the same as :func:`factorize`, but return None for a column of lists or other objects.

    For checks of all columns of X, which may hold what is neither a number nor a text.
    """
    try:
        return factorize(values)
    except (TypeError, ValueError):  # a value has no hash, or is text that cannot be encoded
        return None


def _factorize_few(values: list[Any]) -> Factorized | None:
    """Encode a few strings or integers; None if there is anything else among them."""
    if len(kinds := set(map(type, values))) > 1 or kinds.isdisjoint({str, int}):
        return None
    levels = sorted(set(values))
    check_text(levels, _WHAT)
    return Factorized(np.array([levels.index(value) for value in values]), levels)


def _factorize_integers(array: NDArray[Any]) -> Factorized | None:
    """Encode integers by a table of the values that occur; None if their range is not small."""
    values = array.view(np.uint8) if array.dtype.kind == "b" else array
    ends = over_blocks(lambda i, j: (values[i:j].min(), values[i:j].max()), values.size)
    lowest, highest = int(min(low for low, _ in ends)), int(max(high for _, high in ends))
    width = highest - lowest + 1
    if width > _MAX_TABLE:
        return None
    codes, least = np.empty(values.size, np.int64), values.dtype.type(lowest)
    # Differences are computed as int64, because 127 - (-128) does not fit into int8.
    kept: Any = {"dtype": np.int64, "casting": "unsafe"}
    over_blocks(lambda i, j: np.subtract(values[i:j], least, out=codes[i:j], **kept), values.size)
    occurs = np.zeros(width, bool)
    occurs[[0, -1]] = True  # the lowest and the highest value
    for start in range(0, values.size, BLOCK):
        if occurs.all():  # mostly all values occur in the first rows
            break
        occurs |= np.bincount(codes[start : start + BLOCK], minlength=width) > 0
    present = np.flatnonzero(occurs)
    if present.size < occurs.size:
        codes = looked_up(np.cumsum(occurs) - 1, codes)
    levels = [int(level) + lowest for level in present]
    return Factorized(codes, list(map(bool, levels)) if array.dtype.kind == "b" else levels)


def _factorize_fixed_width(values: NDArray[Any]) -> Factorized:
    """Encode fixed-width strings by comparing them as a row of 64-bit words.

    Each word is hashed as an integer and merged with the codes so far, which is exact (no
    collisions can be mistaken for equality) and needs no Python string per row.
    """
    import pandas as pd

    width = values.dtype.itemsize
    n_words = -(-width // 8)
    if not values.size or not width or n_words > _MAX_WORDS:
        codes, uniques = pd.factorize(values.astype(object))
        return _sorted_levels(codes, list(uniques))
    if values.size > 4 * _FEW and (looked := _look_up_texts(values)) is not None:
        return looked
    # A character is an integer of 4 bytes, which is reduced to one byte if that is enough for all.
    characters = np.ascontiguousarray(values).view(
        np.uint32 if values.dtype.kind == "U" else np.uint8
    )
    characters = characters.reshape(values.size, -1)
    kind = np.uint8 if characters.max() < 256 else np.uint32
    n_per_word = 8 // np.dtype(kind).itemsize
    padded = np.zeros((values.size, -(-characters.shape[1] // n_per_word) * n_per_word), kind)
    padded[:, : characters.shape[1]] = characters
    words = padded.view(np.uint64)
    codes = np.zeros(values.size, np.int64)
    for j in range(words.shape[1]):
        word = np.ascontiguousarray(words[:, j])
        if word[0] == word[-1] and not np.any(word != word[0]):
            continue  # this word is the same in all rows, mostly the padding of short strings
        word_codes, word_levels = pd.factorize(word)
        # All codes are 0 before the first word that differs. Its own codes are then enough.
        if codes.any():
            word_codes, _ = pd.factorize(codes * len(word_levels) + word_codes)
        codes = word_codes
    return _sorted_levels(codes, values[first_rows(codes)].tolist())


def _look_up_texts(values: NDArray[Any]) -> Factorized | None:
    """Encode long arrays of few different fixed-width strings; None if this fails.

    It is assumed that all strings occur in evenly spaced rows (``known``). A hash of one or two
    characters (``place``) gives each string a place in a table. Every row is then compared with the
    string at its place. The function fails if there are too many strings, if no one or two
    characters give them different places, or if a row has another string. A million rows take half
    as long as with ``_factorize_fixed_width``.
    """
    values = np.ascontiguousarray(values)
    levels = _factorize_fixed_width(values[:: values.size // _FEW + 1]).levels
    known, kind = (
        np.array(levels, values.dtype),
        np.uint32 if values.dtype.kind == "U" else np.uint8,
    )
    # The table has about as many places as the square of the number of strings, so few collide.
    n_bits = 2 * known.size.bit_length()
    if n_bits > _MOST_BITS:
        return None

    def place(strings: NDArray[Any], chosen: tuple[int, ...]) -> NDArray[np.uint32]:
        """Return a hash: the top bits of the sum of the chosen characters times their factors."""
        characters = strings.view(kind).reshape(strings.size, -1)
        terms = (characters[:, j] * factor for j, factor in zip(chosen, _FACTORS, strict=False))
        return np.asarray(sum(terms, np.uint32(0)) >> np.uint32(32 - n_bits))

    numbers = range(values.dtype.itemsize // np.dtype(kind).itemsize)
    ways = [(j,) for j in numbers] + list(combinations(numbers, 2))
    chosen = next((way for way in ways if np.unique(place(known, way)).size == known.size), None)
    if chosen is None:
        return None
    code_of_place = np.zeros(1 << n_bits, np.int64)
    code_of_place[place(known, chosen)] = np.arange(known.size)
    string_of_place, codes = known[code_of_place], np.empty(values.size, np.int64)

    def of_block(start: int, stop: int) -> bool:
        own, places = values[start:stop], place(values[start:stop], chosen)
        np.take(code_of_place, places, out=codes[start:stop], mode="clip")
        # Places without a string have the code 0, so their rows are compared with the first string.
        return np.array_equal(string_of_place.take(places).view(kind), own.view(kind))

    return Factorized(codes, levels) if all(over_blocks(of_block, values.size, _FEW)) else None


def first_rows(codes: IntArray) -> IntArray:
    """Return the first row of each code; every code from 0 to the largest must occur."""
    first = np.full(int(codes.max()) + 1, -1)
    step = max(BLOCK, 4 * first.size)
    for start in range(0, codes.size, step):  # mostly all codes occur in the first block
        own = codes[start : start + step]
        in_block = np.full(first.size, -1)
        in_block[own[::-1]] = np.arange(start, start + own.size)[::-1]  # the last assignment wins
        first = np.where(first < 0, in_block, first)
        if first.min() >= 0:
            break
    return first


def _factorize_categorical(values: Any) -> Factorized:
    """Encode a categorical by its own codes, in the order of its categories."""
    categorical = getattr(values, "array", values)
    codes = np.asarray(categorical.codes, dtype=np.int64)
    categories = list(categorical.categories)
    occurs = np.zeros(len(categories), bool)
    occurs[codes[codes >= 0]] = True
    levels = [level for level, is_level in zip(categories, occurs, strict=True) if is_level]
    check_text(levels, _WHAT)
    if occurs.all():
        return Factorized(codes, levels)
    # Categories without a row are common after a split. They are not groups of this sample.
    table = np.append(np.cumsum(occurs) - 1, -1)
    return Factorized(table[codes], levels)


def _sorted_levels(codes: NDArray[Any], levels: list[Any]) -> Factorized:
    """Renumber the codes so that the levels are in sorted order."""
    check_text(levels, _WHAT)
    codes = np.asarray(codes, dtype=np.int64)
    levels = [level.item() if isinstance(level, np.generic) else level for level in levels]
    try:
        ordered = sorted(levels)
    except TypeError:  # mixed types have no natural order, so types are sorted by name first
        ordered = sorted(levels, key=lambda level: (str(type(level)), str(level)))
    if ordered == levels:
        return Factorized(codes, levels)
    place = {level: i for i, level in enumerate(ordered)}
    table = np.array([*map(place.__getitem__, levels), -1])
    return Factorized(table[codes], ordered)


def in_order(levels: list[Any]) -> list[Any]:
    """Sort levels in the same way as :func:`factorize`, for tables that merge levels."""
    return _sorted_levels(np.arange(len(levels)), levels).levels
