"""Units: rows that belong together, as the visits of a patient or the people of a household.

Rows of the same *unit* are not independent, so they say less of a population than as many rows of
different ones. How much less is measured: what a unit adds to the numerator and the denominator of
a rate is one draw, and the squares of these sums have the cluster-robust variance of the rate
(:func:`skfair.groups.rates.effective_size`). A unit may lie in several cells, such as a person who
grows into another age band; each cell then counts its own rows of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.groups.levels import number_tuples
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import Factorized, factorize
from skfair.utils.row_hash import row_draws
from skfair.utils.validation import one_dimensional


@dataclass(frozen=True, eq=False)
class RowUnits:
    """The unit of each row."""

    codes: IntArray  # (n_samples,)
    n_units: int

    def squares(
        self,
        cells: IntArray,  # (n_samples,): the cell of each row
        n_cells: int,
        columns: FloatArray,  # (n_columns, n_samples): what the row adds to several sums
        are_merged: bool = False,  # whether cells will be added up
    ) -> FloatArray:
        """Add up over units the products of their sums in a cell, (n_columns, n_columns, n_cells).

        The square of a sum of m numbers is at most m times the sum of their squares. So where cells
        will be added up, a unit of m cells counts m times in each.
        """
        parts, pairs = number_tuples([cells, self.codes], np.array([n_cells, self.n_units]))
        sums = np.array([np.bincount(parts, column, len(pairs)) for column in columns])
        cell, unit = pairs.T
        n_times = np.bincount(unit, minlength=self.n_units)[unit] if are_merged else 1
        k = len(columns)
        products = np.empty((k, k, n_cells))
        for i in range(k):
            for j in range(i, k):
                of_pairs = sums[i] * sums[j] * n_times
                products[i, j] = products[j, i] = np.bincount(cell, of_pairs, n_cells)
        return products

    def typical_rows(self, kinds: IntArray, *keys: NDArray[Any]) -> IntArray:
        """Return one row of each unit, of the kind that most of its rows have.

        Of several it is the first one when they are sorted by the keys, of which the last counts
        most.
        """
        parts, pairs = number_tuples([self.codes, kinds], np.array([self.n_units, kinds.max() + 1]))
        n_alike = np.bincount(parts, minlength=len(pairs))[parts]
        order = np.lexsort((*keys, -n_alike, self.codes))
        return np.sort(order[np.flatnonzero(np.diff(self.codes[order], prepend=-1))])

    def of_whole(self, values: NDArray[Any], typical: IntArray) -> NDArray[Any]:
        """Return for all rows of each unit the value of its typical row."""
        of_units = np.zeros(self.n_units, values.dtype)
        of_units[self.codes[typical]] = values
        return of_units[self.codes]

    def taken(self, rows: IntArray | slice) -> RowUnits:
        return RowUnits(self.codes[rows], self.n_units)


def n_people(n_rows: int, units: RowUnits | None) -> int:
    """Return how many people rows are of: each of its own, if nothing else is known."""
    return n_rows if units is None else np.unique(units.codes).size


def said_people(n_rows: int, units: RowUnits | None) -> str:
    """Return the number of people for a message, and that of their rows if there are more."""
    if units is None:
        return f"{n_rows} people"
    return f"{n_people(n_rows, units):,} people ({n_rows:,} rows)"


def read_units(units: Any, n_samples: int, name: str = "units") -> RowUnits | None:
    """Return which rows belong together; None if no two of them do.

    Examples
    --------
    >>> from skfair.groups.row_units import read_units
    >>> read_units(["ann", "bob", "ann"], 3).codes.tolist(), read_units([3, 1, 2], 3)
    ([0, 1, 0], None)
    """
    codes, levels = unit_codes(units, n_samples, name)
    return None if len(levels) == n_samples else RowUnits(codes, len(levels))


def unit_numbers(levels: list[Any]) -> list[float]:
    """Return a number in [0, 1) for each unit, by its text, that is the same in every process.

    Two of a million units have the same one with a probability of 1e-4.
    """
    whole = [int(u) if isinstance(u, float) and u.is_integer() else u for u in levels]
    numbers: list[float] = row_draws(list(map(str, whole)), None, 0).tolist()
    return numbers


def unit_codes(units: Any, n_samples: int, name: str = "units") -> Factorized:
    """Return the units, and the number of that of each row; raise unless every row has one."""
    if is_lazy(units):
        raise TypeError(
            f"{name}= says which rows belong together, and is read in memory, got a Dask "
            "collection. compute() it, and the rows."
        )
    if isinstance(units, str):
        raise TypeError(f"{name}={units!r} is a name. Pass the column itself, data[{units!r}].")
    factorized = factorize(one_dimensional(units, name, n_samples))
    n_missing = int((factorized.codes < 0).sum())
    if n_missing:
        raise ValueError(
            f"{name} has {n_missing} missing values: of these rows it is not known to "
            "whom they belong. Drop them, or give each a value of its own."
        )
    return factorized
