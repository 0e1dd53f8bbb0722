"""The columns of a record: how each is read back from a file, and its digest.

:func:`kind_of_column` says what a column of an audit in Python holds, and :func:`restored` makes
that column again of what stands in a file. Either every value is the same as it was, or an error
says which one is not. Otherwise a record could say the opposite of the file: pandas reads words
that it does not know as missing, and a missing truth value as True.

:class:`Digests` gets the columns of an audit block by block, and returns a keyed hash of each
column and of the rows. They do not depend on the order of the rows, nor on the kind of file.

1. A value is 16 bytes, its *mark*. A number is its double, rounded to single precision unless it is
   whole, and 8 zero bytes. A text is the first half of its SHA-256. Truth values are 1 and 0, the
   text of a whole number is that number, and times are texts as in ISO 8601.
2. The digest of a column is the HMAC-SHA-256 of its distinct marks in ascending order, each with
   its count.
3. Each value of a row is then the rank of its mark in its column. The digest of the rows is the
   HMAC-SHA-256 of the distinct rows of ranks in ascending order, each with its count.

All numbers are 8 bytes, little-endian, and unsigned.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.report.files.exact_numbers import exactly
from skfair.report.files.table_file import numbers_of
from skfair.utils.text import listed

# Marks are two numbers of 8 bytes in each row.
_Marks = NDArray[np.uint64]

_EXACT = 2**53  # floats hold every integer below it
_WHOLE = re.compile("0|-?[1-9][0-9]{0,15}")
_TRUTH = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
_NO_VALUE = np.full((1, 2), 2**64 - 1, np.uint64)
# Rows that are hashed at a time. More need more memory, fewer are not faster.
_HASHED_ROWS = 2**16


def kind_of_column(values: Any) -> dict[str, Any]:
    """Return how a column is made again of what stands in a file."""
    column, levels = pd.Series(values), None
    how: dict[str, Any] = {"has_missing": bool(column.isna().any())}
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.categories.tolist()
        column = column.cat.categories.to_series()
    column = column.infer_objects()
    kind = "text"
    if pd.api.types.is_numeric_dtype(column.dtype):  # numbers or truth values
        kind = str(column.dtype)
        # Levels may be integers although values are missing. numpy has no column of such values.
        if how["has_missing"] and kind.startswith("int"):
            kind = "float64"
    elif pd.api.types.is_datetime64_any_dtype(column.dtype):
        kind = "times"
    elif column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "date":
        kind = "dates"
    if levels is not None:  # bands of pandas.cut are read back as texts
        how["levels"] = [str(level) for level in levels] if kind == "text" else levels
    return {"kind": kind, **how}


def restored(values: pd.Series, how: Mapping[str, Any], decimal: str | None) -> pd.Series:
    """Return a column of a file as it was when the audit was made; raise if a value differs."""
    kind = how["kind"]
    is_text = pd.api.types.infer_dtype(values, skipna=True) == "string"
    if is_text and (kind != "text" or (how["has_missing"] and not values.isna().any())):
        values = values.mask(values == "")
    if values.isna().any() and not how["has_missing"]:
        raise ValueError(f"it has {int(values.isna().sum()):,} missing values, and had none")
    column = _of_kind(values, kind, is_text, decimal)
    if "levels" in how:
        levels = _of_kind(pd.Series(how["levels"]), kind, kind in ("times", "dates"), None)
        others = column[~column.isin(levels) & column.notna()]
        if len(others):
            raise ValueError(
                f"it has {others.tolist()[0]!r}, and its levels were {listed(levels.astype(str))}"
            )
        column = column.astype(pd.CategoricalDtype(levels))
    return column


def _of_kind(values: pd.Series, kind: str, is_text: bool, decimal: str | None) -> pd.Series:
    """Return a column as values of a kind, which :func:`kind_of_column` names."""
    if kind == "text":
        return values.astype(object).where(values.isna(), values.map(_as_text))
    if kind == "times":
        return pd.to_datetime(_times(values, is_text), format="ISO8601")
    if kind == "dates":
        return _dates(_times(values, is_text), is_text)
    if not pd.api.types.is_numeric_dtype(kind):
        raise ValueError(f"a record has no columns of the kind {kind!r}")
    if is_text and kind.lower().startswith("bool"):
        words = values.str.lower()
        others = words[~words.isin(list(_TRUTH)) & words.notna()]
        if len(others):
            raise ValueError(f"it has {values[others.index[0]]!r}, which is no truth value")
        values = words.map(_TRUTH)
        return exactly(values if values.isna().any() else values.astype(bool), kind)
    if is_text and decimal is not None:
        values = numbers_of(values, decimal)
    return exactly(pd.to_numeric(values), kind)


def _as_text(value: Any) -> str:
    """Return the text of a value; a whole number has no point, as files do not tell them apart."""
    is_whole = isinstance(value, Real) and not isinstance(value, Integral | np.bool_)
    return str(int(value)) if is_whole and float(value).is_integer() else str(value)


def _times(values: pd.Series, is_text: bool) -> pd.Series:
    """Return texts or times; raise for numbers, which pandas takes for nanoseconds."""
    kinds = pd.api.types.infer_dtype(values, skipna=True)
    if not is_text and kinds not in ("date", "datetime", "datetime64", "empty"):
        raise ValueError(f"it has {values.dropna().tolist()[0]!r}, which is no time")
    return values


def _dates(values: pd.Series, is_text: bool) -> pd.Series:
    """Return dates without a time of the day; raise if there is such a time."""
    if is_text:
        return values.astype(object).where(values.isna(), values.map(date.fromisoformat, "ignore"))
    times = pd.to_datetime(values)
    late = times[times.ne(times.dt.normalize()) & times.notna()]
    if len(late):
        raise ValueError(f"it has {str(late.iloc[0])!r}, which is no day")
    return times.dt.date.astype(object)


class _Block(NamedTuple):
    """A column of a block: its distinct marks, and the place of each row among them."""

    marks: _Marks
    places: NDArray[np.int32]


class Digests:
    """The columns of an audit, from which digests are computed. See the top of the file."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[_Block]] = {}
        self._counts: list[Any] = []

    def add(
        self, columns: Mapping[str, Any], counts: Any = None, texts: Collection[str] = ()
    ) -> None:
        """Add a block of columns by name. Each row stands for one, or for as many as ``counts``.

        The columns ``texts`` count by the text of each value.
        """
        for name in sorted(columns):
            block = _marked(columns[name], name in texts)
            self._blocks.setdefault(name, []).append(block)
        self._counts.append(
            np.ones(len(block.places), np.int64) if counts is None else np.asarray(counts, np.int64)
        )

    def of(self, key: str) -> dict[str, str]:
        """Return the digest of each column, and of the rows."""
        digests = {}
        counts: IntArray = np.concatenate(self._counts)
        rows, n_rows = np.zeros(len(counts), np.int64), 1  # the number of each row, ascending
        columns = []
        for name, blocks in self._blocks.items():
            ranks, marks = _ranked(np.concatenate([block.marks for block in blocks]))
            ends = np.cumsum([0, *(len(block.marks) for block in blocks)])
            places = [ranks[k:][block.places] for k, block in zip(ends, blocks, strict=False)]
            column = np.concatenate(places)
            per_value = np.bincount(column, counts, len(marks)).astype(np.uint64)
            digests[name] = _hash(key, [*marks.T, per_value])
            if n_rows * len(marks) >= 2**62:
                rows = np.unique(rows, return_inverse=True)[1]
                n_rows = int(rows.max()) + 1
            rows, n_rows = rows * len(marks) + column, n_rows * len(marks)
            columns.append(column)
        order = np.argsort(rows)
        rows = rows[order]
        starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
        firsts = order[starts]
        sums = np.add.reduceat(counts[order], starts)
        digests["rows"] = _hash(key, [*(column[firsts] for column in columns), sums])
        return digests


def _hash(key: str, columns: list[Any]) -> str:
    """Return the HMAC-SHA-256 of a table of numbers, row by row."""
    code = hmac.new(bytes.fromhex(key), digestmod="sha256")
    for start in range(0, len(columns[0]), _HASHED_ROWS):
        part = [column[start : start + _HASHED_ROWS].astype("<u8") for column in columns]
        code.update(np.column_stack(part).tobytes())
    return code.hexdigest()


def _ranked(marks: _Marks) -> tuple[NDArray[np.int32], _Marks]:
    """Return the rank of each mark among the distinct ones, and these in ascending order."""
    first, second = marks.T
    order = np.lexsort((second, first)) if second.any() else np.argsort(first)
    ordered = marks[order]
    is_new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks, ordered[is_new]


def _marked(values: Any, as_texts: bool) -> _Block:
    """Return the marks of a column."""
    codes, uniques = pd.factorize(pd.Series(values))
    places: NDArray[np.int32] = codes.astype(np.int32)
    is_number = pd.api.types.is_numeric_dtype(uniques.dtype) and not as_texts
    if is_number and (pd.api.types.is_float_dtype(uniques.dtype) or _are_small(uniques)):
        marks = _of_numbers(np.asarray(uniques, float))
    else:
        known = [_mark(_as_text(value) if as_texts else value) for value in uniques]
        marks = np.frombuffer(b"".join(known), "<u8").reshape(-1, 2).astype(np.uint64)
    is_missing = places < 0
    if is_missing.any():
        places[is_missing] = len(marks)
        marks = np.concatenate([marks, _NO_VALUE])
    return _Block(marks, places)


def _are_small(numbers: Any) -> bool:
    """Whether floats hold all of these integers."""
    whole = np.asarray(numbers)
    return bool((whole < _EXACT).all() and (whole > -_EXACT).all())


def _of_numbers(numbers: FloatArray) -> _Marks:
    """Return the marks of floats. Those that are not whole are rounded to single precision.

    Readers of files differ in the last digit.
    """
    with np.errstate(over="ignore"):
        single = numbers.astype(np.float32).astype(np.float64)
    is_exact = (numbers == np.trunc(numbers)) & (np.abs(numbers) < _EXACT)
    rounded = np.where(is_exact, numbers, single) + 0.0  # -0.0 becomes 0.0
    marks = np.zeros((len(numbers), 2), np.uint64)
    marks[:, 0] = rounded.view(np.uint64)
    return marks


def _mark(value: Any) -> bytes:
    """Return the mark of one value as bytes."""
    if isinstance(value, Integral | np.bool_):
        text = str(int(value))
    elif isinstance(value, Real | Decimal):
        return _of_numbers(np.array([value], float)).astype("<u8").tobytes()
    else:
        is_time = isinstance(value, date | np.datetime64)
        text = pd.Timestamp(value).isoformat() if is_time else str(value)
    if _WHOLE.fullmatch(text) and abs(int(text)) < _EXACT:
        return _of_numbers(np.array([int(text)], float)).astype("<u8").tobytes()
    return sha256(text.encode()).digest()[:16]
