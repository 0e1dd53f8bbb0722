"""Groups of new rows in ONNX graphs: the numbers that a fit has given them.

:func:`group_codes` does in a graph what ``GroupLevels.encode`` does at prediction. It returns -1
for a missing value and -2 for a group that the fit did not know, because predictions may allow the
one and not the other.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair.utils.onnx_ops import INTEGER

MISSING, UNSEEN = -1, -2
# The texts by which missing values reach a graph, as ``str`` and ONNX Runtime write them
_MISSING_TEXTS = ("nan", "None", "<NA>", "NaT")


def group_codes(levels: Any, columns: list[Any], ops: Any) -> Any:
    """Return the numbers of the groups of rows, (n_samples, n_attributes).

    ``levels`` are the ``GroupLevels`` of a fit. ``columns`` has an expression or a variable of
    shape (n_samples, 1) for each attribute, and says if it is a text.
    """
    codes = [
        _level_codes(own, known, is_text, ops)
        for (own, is_text), known in zip(columns, levels.levels, strict=True)
    ]
    if levels.combinations is None:
        own = [
            ops("Where", _is_known(code, ops), ops("Add", code, _integers([start])), code)
            for code, start in zip(codes, levels.offsets[:-1], strict=True)
        ]
        return ops("Concat", *own, axis=1) if len(own) > 1 else own[0]
    # An intersection becomes one number, whose digits are the levels of its attributes.
    shape = [len(own) for own in levels.levels]
    places = np.append(np.cumprod(shape[:0:-1])[::-1], 1)
    digits = [
        ops("Mul", code, _integers([place])) for code, place in zip(codes, places, strict=True)
    ]
    code = _place(reduce(lambda a, b: ops("Add", a, b), digits), levels.combinations @ places, ops)
    worst = reduce(lambda a, b: ops("Min", a, b), codes)
    return ops("Where", _is_known(worst, ops), code, worst)


def _level_codes(values: Any, levels: list[Any], is_text: bool, ops: Any) -> Any:
    """Return the number of the level of each row, (n_samples, 1)."""
    if is_text:
        numbers = dict.fromkeys(_MISSING_TEXTS, MISSING)
        numbers |= {level: number for number, level in enumerate(levels) if isinstance(level, str)}
        return ops(
            "LabelEncoder_2",
            values,
            keys_strings=list(numbers),
            values_int64s=list(numbers.values()),
            default_int64=UNSEEN,
        )
    values = ops.number(values)
    code = _place(values, np.array(levels, dtype=np.float64), ops)
    return ops("Where", ops("IsNaN", values), _integers([MISSING]), code)


def _place(values: Any, known: NDArray[Any], ops: Any) -> Any:
    """Return the place of each value (n_samples, 1) among the known ones, UNSEEN if it is none."""
    is_equal = ops.number(ops("Equal", values, known[None]))
    place = ops("MatMul", is_equal, np.arange(known.size)[:, None] - float(UNSEEN))
    return ops("Cast", ops("Add", place, np.array([float(UNSEEN)])), to=INTEGER)


def _is_known(code: Any, ops: Any) -> Any:
    return ops("Greater", code, _integers([MISSING]))


def _integers(values: Any) -> NDArray[np.int64]:
    return np.asarray(values, dtype=np.int64)
