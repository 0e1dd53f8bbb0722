"""The largest value of a range, for very many ranges of the same values."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray, IntArray


class RangeMaxima:
    """Finds the largest of ``values[first:last]``, in a sparse table.

    A range is the union of two whose lengths are a power of two, and the largest values of all of
    these are known.
    """

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        # By power of two: the place of the largest of so many values from each one on.
        self._tables = [np.arange(values.size)]
        while 2 ** len(self._tables) <= values.size:
            half = 2 ** (len(self._tables) - 1)
            self._tables.append(self._larger(self._tables[-1][:-half], self._tables[-1][half:]))

    def __call__(self, first: IntArray, last: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the first place of the largest value of each range, and the value.

        For empty ranges these are 0 and minus infinity.
        """
        is_empty = last <= first
        power = np.frexp(np.where(is_empty, 0, last - first).astype(np.float64))[1] - 1
        place = np.zeros_like(first)
        for k in np.unique(power[~is_empty]).tolist():
            here = (power == k) & ~is_empty
            table = self._tables[k]
            place[here] = self._larger(table[first[here]], table[last[here] - 2**k])
        return place, np.where(is_empty, -np.inf, self.values[place])

    def _larger(self, one: IntArray, other: IntArray) -> IntArray:
        return np.where(self.values[one] >= self.values[other], one, other)
