"""The history of a solver: one row per iteration, kept as columns of numbers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray


class History:
    """Records named numbers per iteration together with the CPU seconds so far.

    Missing values are NaN, so columns that a solver reports only now and then line up.

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
        self._columns: dict[str, list[float]] = {}
        self._n_rows = 0

    def record(self, **values: float) -> None:
        """Append one row; ``seconds`` is added."""
        for name, value in {**values, "seconds": time.process_time() - self._start}.items():
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
