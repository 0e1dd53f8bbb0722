"""The history of a solver: one row per iteration, kept as columns of numbers.

A solver makes a :class:`History` and calls ``record`` after each iteration. Two counters of the
thread are added to its rows: problems call :func:`count_passes` when they evaluate rows, and
``partitions.py`` calls :func:`count_bytes`. The counters are never reset, so a history subtracts
their values at its start.
"""

from __future__ import annotations

import time  # noqa: TID251 - seconds are only shown
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

_exchanged: ContextVar[float] = ContextVar("exchanged", default=0.0)
# The number of whole passes, and the part of the next one. A single number would lose its last bits
# after millions of passes.
_passes: ContextVar[tuple[int, float]] = ContextVar("passes", default=(0, 0.0))


def count_bytes(n_bytes: float) -> None:
    """Count bytes that this thread has sent to partitions, or got from them."""
    _exchanged.set(_exchanged.get() + n_bytes)


def bytes_exchanged() -> float:
    """Return the number of bytes that this thread has exchanged with partitions so far."""
    return _exchanged.get()


def count_passes(share: float) -> None:
    """Add a share of a pass: this thread has evaluated this share of all rows."""
    whole, part = _passes.get()
    more, part = divmod(part + share, 1.0)
    _passes.set((whole + int(more), part))


def go_on(state: object) -> bool:
    """The callback that does nothing and never stops the solver."""
    return False


class History:
    """Records named numbers per iteration together with the CPU seconds so far.

    A value that is not recorded in an iteration is NaN. Two columns are there only if something was
    counted: ``passes``, how often all rows were evaluated so far (2.5 is two and a half times), and
    ``bytes``, what was exchanged with partitions of rows since the iteration before.

    Examples
    --------
    >>> from skfair.utils.history import History
    >>> history = History()
    >>> history.record(objective=2.0, max_violation=0.5)
    >>> history.record(objective=1.5)
    >>> history.as_dict()["objective"].tolist(), len(history)
    ([2.0, 1.5], 2)
    """

    def __init__(self) -> None:
        self._start = time.process_time()
        self._bytes = bytes_exchanged()
        self._first_pass = _passes.get()
        self._columns: dict[str, list[float]] = {}
        self._n_rows = 0

    def record(self, **values: float) -> None:
        """Append one row; ``seconds`` (and ``passes`` and ``bytes``, if any) are added."""
        values["seconds"] = time.process_time() - self._start
        # The difference is rounded, because its last bits depend on the count of earlier fits.
        (first, first_part), (whole, part) = self._first_pass, _passes.get()
        if passes := round(whole - first + part - first_part, 9):
            values["passes"] = passes
        before, self._bytes = self._bytes, bytes_exchanged()
        if self._bytes > before:
            values["bytes"] = self._bytes - before
        for name, value in values.items():
            column = self._columns.setdefault(name, [])
            column.extend([np.nan] * (self._n_rows - len(column)))
            column.append(float(value))
        self._n_rows += 1

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns as arrays of equal length: the ``history_`` of an estimator."""
        padding = {name: self._n_rows - len(column) for name, column in self._columns.items()}
        return {
            name: np.array(column + [np.nan] * padding[name])
            for name, column in self._columns.items()
        }

    def __len__(self) -> int:
        return self._n_rows
