"""Units: rows that belong together, such as the visits of a patient or the people of a household.

Rows of the same *unit* are not independent, so they contain less information about a population
than the same number of rows of different units. The loss is estimated: the sums of a unit in the
numerator and the denominator of a rate count as one draw, and their squares give the cluster-robust
variance of the rate (:func:`skfair.groups.rates.effective_size`). A unit may lie in several cells,
for example a person whose age band changes. Each cell then counts its own rows of the unit.

:func:`read_units` reads the argument ``units=`` of fits and metrics. :class:`RowUnits` has the unit
of each row, and :class:`UnitParts` says how cells cut the units into parts, for sums by cell. The
functions ``said_people`` and ``said_rows`` return texts for messages and summaries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.levels import number_tuples
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import Factorized, factorize
from skfair.utils.row_hash import row_draws
from skfair.utils.text import plural
from skfair.utils.validation import one_dimensional
from skfair.utils.warn import warn_user

# Units with few different values in many rows are probably no people
_FEWEST, _MANY = 5, 200


@dataclass(frozen=True, eq=False)
class RowUnits:
    """The unit of each row."""

    codes: IntArray  # (n_samples,)
    n_units: int
    # (n_units,): how many units with equal rows each stands for; None if for one. The rows of
    # a unit are those of all of them
    times: FloatArray | None = None

    @property
    def n_people(self) -> int:
        """The number of units, also if one stands for several."""
        return self.n_units if self.times is None else int(self.times.sum().round())

    def n_among(self, rows: IntArray) -> float:
        """Return the number of units that have some of the rows."""
        units = np.unique(self.codes[rows])
        return float(units.size if self.times is None else self.times[units].sum())

    @property
    def shares(self) -> FloatArray:
        """For each row 1 / (number of rows of its unit)."""
        return np.asarray(1 / np.bincount(self.codes)[self.codes])

    def one_row(self, draws: FloatArray) -> BoolArray:
        """Draw one row of each unit at random; return which rows are drawn.

        ``draws`` has a hash of each row, by which the rows are sorted first. So the drawn rows do
        not depend on the order of the rows.
        """
        order = np.lexsort((self.codes, draws))
        order = order[np.random.RandomState(0).permutation(len(order))]
        is_drawn = np.zeros(len(order), bool)
        is_drawn[order[np.unique(self.codes[order], return_index=True)[1]]] = True
        return is_drawn

    def parts(self, cells: IntArray, n_cells: int) -> UnitParts:
        """Number the parts: a part is the rows of one unit that are in one cell.

        ``cells`` has the cell of each row, or a line of cells for each attribute. Then ``codes`` of
        the result has the rows of each line, one line after the other.
        """
        of_rows = [cells.ravel(), np.resize(self.codes, cells.size)]
        codes, pairs = number_tuples(of_rows, np.array([n_cells, self.n_units]))
        return UnitParts(codes, pairs[:, 0], pairs[:, 1], self.times)

    def typical_rows(self, kinds: IntArray, *keys: NDArray[Any]) -> IntArray:
        """Return one row of each unit, of the kind that most of its rows have.

        If several rows qualify, it is the first of them when they are sorted by the keys, of which
        the last is the most important, as in ``numpy.lexsort``.
        """
        parts, pairs = number_tuples([self.codes, kinds], np.array([self.n_units, kinds.max() + 1]))
        n_equal = np.bincount(parts, minlength=len(pairs))[parts]
        order = np.lexsort((*keys, -n_equal, self.codes))
        return np.sort(order[np.flatnonzero(np.diff(self.codes[order], prepend=-1))])

    def of_whole(self, values: NDArray[Any], typical: IntArray) -> NDArray[Any]:
        """Return for each row the value of the typical row of its unit.

        ``typical`` is the result of ``typical_rows``, and ``values`` has an entry for each of
        these.
        """
        of_units = np.zeros(self.n_units, values.dtype)
        of_units[self.codes[typical]] = values
        return of_units[self.codes]

    def taken(self, rows: IntArray | slice) -> RowUnits:
        """Return some of the rows; units keep their numbers, and may have no row left."""
        return replace(self, codes=self.codes[rows])

    def resamples(self, rng: np.random.RandomState) -> Iterator[IntArray]:
        """Yield bootstrap samples without end: units drawn with replacement, with all their rows.

        If units have several rows, fewer units are drawn than there are (``share_of_few``), because
        few units do not show well how much units vary.
        """
        codes, levels = factorize(self.codes)
        order, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
        ends, kish = np.cumsum(sizes), codes.size**2 / (sizes**2).sum()
        few = 1.0 if len(levels) == codes.size else float(share_of_few(kish, kish))
        n_drawn = max(1, round(len(levels) * few))
        while True:
            drawn = rng.randint(len(levels), size=n_drawn)
            last = np.cumsum(sizes[drawn])
            yield order[np.repeat(ends[drawn] - last, sizes[drawn]) + np.arange(last[-1])]


@dataclass(frozen=True, eq=False)
class UnitParts:
    """Units that are cut into parts by cells. A part is the rows of a unit in a cell.

    A table of sums has no rows any more. There ``codes`` is from the last merge of cells, and has
    for each former part the part to which it belongs now. After :meth:`only` it is empty.
    """

    codes: IntArray  # (n_samples,), times the number of attributes: the part of each row
    # (n_parts,): the cell and the unit of each part
    cells: IntArray
    units: IntArray
    times: FloatArray | None = None  # (n_units,): as in RowUnits

    @property
    def n_equal(self) -> Any:
        """How many units the unit of each part stands for: sums over parts are those of all."""
        return 1.0 if self.times is None else self.times[self.units]

    @property
    def n_cells_of(self) -> IntArray:
        """The number of cells in which the unit of each part lies."""
        return np.asarray(np.bincount(self.units)[self.units])

    @property
    def are_split(self) -> bool:
        """Whether a unit lies in several cells."""
        return bool(np.bincount(self.units).max(initial=0) > 1)

    def n_lying(self, n_cells: int) -> IntArray:
        """Count units by cell; a unit in several cells counts as one in each."""
        n_equal = np.broadcast_to(self.n_equal, self.cells.shape)
        return np.bincount(self.cells, n_equal, n_cells).astype(np.int64)

    def n_split(self) -> int:
        """Return the number of units that lie in several cells."""
        n_cells = np.bincount(self.units)
        times = np.ones(n_cells.size) if self.times is None else self.times[: n_cells.size]
        return int(times[n_cells > 1].sum().round())

    def n_units(self, n_cells: int) -> FloatArray:
        """Count units by cell; a unit in m cells counts 1/m in each, so that counts add up.

        The sum over some of the cells is at most the number of the units that lie there.
        """
        shares = self.n_equal / self.n_cells_of
        return np.asarray(np.bincount(self.cells, shares, n_cells).round(9))

    def merged(self, codes: IntArray, n_cells: int) -> UnitParts:
        """Merge cells: cell ``i`` becomes part of ``codes[i]``.

        The ``codes`` of the result have the new part of each former part. So its methods ``sums``
        and ``squares`` take columns with an entry per former part.
        """
        codes = np.asarray(codes[self.cells], np.int64)
        if not self.are_split:
            return replace(self, codes=np.arange(len(codes)), cells=codes)
        n_units = int(self.units.max(initial=0)) + 1
        return RowUnits(self.units, n_units, self.times).parts(codes, n_cells)

    def only(self, is_kept: BoolArray) -> UnitParts:
        """Return the parts in the kept cells, which are renumbered, with empty ``codes``."""
        kept = is_kept[self.cells]
        cells = (np.cumsum(is_kept) - 1)[self.cells[kept]]
        return UnitParts(self.codes[:0], cells, self.units[kept], self.times)

    def sums(self, columns: FloatArray) -> FloatArray:
        """Sum columns (n_columns, n_samples) over the rows of each part: (n_columns, n_parts)."""
        # ``codes`` has the rows once for each attribute, so the columns are repeated.
        columns = np.tile(columns, self.codes.size // max(columns.shape[1], 1))
        return np.array([np.bincount(self.codes, own, len(self.cells)) for own in columns])

    def squares(self, sums: FloatArray, n_cells: int, are_merged: bool = False) -> FloatArray:
        """Add up by cell the products of any two sums of a part: (n_columns, n_columns, n_cells).

        ``sums`` is (n_columns, n_parts). Pass ``are_merged`` if the cells will be added up later. A
        unit in m cells then counts m times in each, because the square of a sum of m numbers is at
        most m times the sum of their squares.
        """
        own = (sums * self.n_cells_of if are_merged else sums) / self.n_equal
        return np.array([[np.bincount(self.cells, a * b, n_cells) for b in sums] for a in own])


def n_people(n_rows: int, units: RowUnits | None) -> int:
    """Return the number of people to whom the rows belong; without units, it is ``n_rows``."""
    return n_rows if units is None else np.unique(units.codes).size


def said_people(n_rows: int, units: RowUnits | None) -> str:
    """Return the number of people for a message, with units also the number of their rows."""
    if units is None:
        return f"{n_rows} people"
    return f"{n_people(n_rows, units):,} people ({n_rows:,} rows)"


def share_of_few(units: Any, informative: Any) -> FloatArray:
    """Return the share of the units that, with a known variance, is as informative as all units.

    It is ((n - 1) / n) (z / t)^2. The first factor corrects the variance among n units, which is
    too small if squares are divided by n. In the second factor z is the 97.5% quantile of the
    normal distribution, and t the one of Student with ``informative`` - 1 degrees of freedom,
    because the variance among few units is not well known. The share is near 1 for many units, and
    0 for a single one.
    """
    freedom = np.maximum(informative - 1, 0.5)
    shrunk = (special.ndtri(0.975) / special.stdtrit(freedom, 0.975)) ** 2
    return np.where(units > 1, shrunk * (units - 1) / np.where(units > 1, units, 1.0), 0.0)


def said_rows(n_rows: int, n_people: int | None, n_without_group: int) -> str:
    """Return the numbers of rows as a text for a summary; ``n_people`` is None without units."""
    people = "" if n_people is None else f" of {n_people} people"
    without = f" ({n_without_group} without a group)" if n_without_group else ""
    return f"rows {n_rows}{people}{without}"


def read_units(units: Any, n_samples: int, name: str = "units") -> RowUnits | None:
    """Return which rows belong together; None if ``units`` is None or no two rows share one.

    Examples
    --------
    >>> from skfair.groups.row_units import read_units
    >>> read_units(["ann", "bob", "ann"], 3).codes.tolist(), read_units([3, 1, 2], 3)
    ([0, 1, 0], None)
    """
    if units is None or isinstance(units, RowUnits):
        return units
    codes, levels = unit_codes(units, n_samples, name)
    return None if len(levels) == n_samples else RowUnits(codes, len(levels))


def warn_of_few(units: RowUnits | None, n_rows: int) -> None:
    """Warn if many rows have so few units that these are probably no people."""
    if units is not None and n_rows >= _MANY and units.n_people <= _FEWEST:
        warn_user(
            f"units has {plural(units.n_people, 'value')} in {n_rows:,} rows, so these rows count "
            "as those of so few people. Is it a group or a site? units= is who each row is of."
        )


def unit_numbers(levels: list[Any]) -> list[float]:
    """Return a number in [0, 1) for each unit, by its text, that is the same in every process.

    A monitor stores these numbers instead of the units. The probability that any two of a million
    units have the same number is 1e-4.
    """
    whole = [int(u) if isinstance(u, float) and u.is_integer() else u for u in levels]
    numbers: list[float] = row_draws(list(map(str, whole)), None, 0).tolist()
    return numbers


def unit_codes(units: Any, n_samples: int, name: str = "units") -> Factorized:
    """Encode the unit of each row; raise if a row has none."""
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
