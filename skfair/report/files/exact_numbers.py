"""Numbers of another type with the same values, or an error if digits would be lost.

A record says of which type the numbers of an audit were. :func:`exactly` turns the numbers of a
file into this type: a CSV file has no types, and other files may hold integers instead of floats.
It raises for 256 as int8, 0.9 as an integer, and 2 as a truth value, which numpy and pandas turn
into other values without a word.

Single precision needs care. Its number 0.1 is 0.100000001490116 in double precision, but files have
the text 0.1. So both count as the same number of single precision. In the other direction, the text
is the number, if it is so short that no digit can be missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skfair.utils.text import plural

_WHOLE = 2**53  # floats hold every integer below it
# Numbers in double precision that differ by this relative error are the same: readers of text
# differ in the last digit, which is 2e-16, and spreadsheets write 15 digits.
_LAST_DIGITS = 5e-15
# A decimal of this many digits is the same one after it was stored in a type (FLT_DIG in C).
DIGITS = {"float16": 3, "float32": 6}


def exactly(values: pd.Series, kind: str) -> pd.Series:
    """Return numbers or truth values as another type; raise ValueError if a value would change."""
    is_float = pd.api.types.is_float_dtype(kind)
    narrow = str(values.dtype).lower()
    if is_float and narrow in DIGITS and narrow != kind.lower():
        values = _of_texts(values, narrow)
    if is_float and kind.lower() in DIGITS:
        other = _cast(values, kind)
        same = _same_when_narrow(values, other)
    else:
        other = _converted(values, kind)
        same = (values == other).fillna(False).to_numpy(bool)
        if pd.api.types.is_integer_dtype(kind) and pd.api.types.is_float_dtype(values.dtype):
            same = same & (values.abs() < _WHOLE).fillna(False).to_numpy(bool)
    same = same | (values.isna().to_numpy() & other.isna().to_numpy())
    if not same.all():
        raise ValueError(f"it has {values[~same].tolist()[0]!r}, which is no {kind}")
    return other


def _converted(values: pd.Series, kind: str) -> pd.Series:
    """Return numbers as another type, whatever happens to their values."""
    if values.isna().any() and not pd.api.types.is_float_dtype(kind) and kind[0].islower():
        n_missing = plural(int(values.isna().sum()), "missing value")
        raise ValueError(f"it has {n_missing}, and a column of {kind} has none")
    return _cast(values, kind)


def _cast(values: pd.Series, kind: Any) -> pd.Series:
    """Return values as another type without a warning."""
    with np.errstate(invalid="ignore", over="ignore"):
        return pd.Series(values.astype(kind))


def _of_texts(values: pd.Series, narrow: str) -> pd.Series:
    """Return numbers in single or half precision as those of their texts, in double precision."""
    codes, uniques = pd.factorize(values.to_numpy(narrow, na_value=np.nan))
    known = uniques.astype(str).astype(float)
    digits = DIGITS[narrow]
    short = np.array([float(f"{number:.{digits}g}") for number in known], float)
    if (short != known).any():
        odd = float(known[short != known][0])
        raise ValueError(
            f"it holds {narrow}, in which digits of {odd!r} may be missing. Pass the file with all "
            "digits"
        )
    return pd.Series(np.append(known, np.nan)[codes], values.index, name=values.name)


def _same_when_narrow(values: pd.Series, other: pd.Series) -> Any:
    """Whether numbers are those of single or half precision, or the texts of these."""
    wide = values.to_numpy(float, na_value=np.nan)
    narrow = other.to_numpy(str(other.dtype).lower(), na_value=np.nan)
    same = np.isclose(wide, narrow.astype(float), rtol=_LAST_DIGITS, atol=0)
    rest = np.flatnonzero(~same & ~np.isnan(wide))
    texts = narrow[rest].astype(str).astype(float)
    same[rest] = np.isclose(wide[rest], texts, rtol=_LAST_DIGITS, atol=0)
    return same
