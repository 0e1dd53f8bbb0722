"""A sample as a small table: one line for each combination of attributes that occurs.

Everything that an audit says about groups, crossings and subgroups is a function of this table, so
the rows are visited once. Tables of blocks of rows add up, so a file need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from skfair._typing import BoolArray, ColumnsLike, FloatArray, IntArray
from skfair.groups.attributes import CONTROL, SENSITIVE, Role
from skfair.groups.encoding import encode_groups
from skfair.groups.levels import number_tuples
from skfair.report.moments import Moments, added
from skfair.report.tasks import Rows, Task, in_order

# Scores are counted in this many bins of equal width.
N_BINS = 200


class ScoreBins(NamedTuple):
    """Sums by cell and bin of the score, each a sparse array of shape (n_cells, N_BINS)."""

    edges: FloatArray
    weight: sparse.csr_array
    target: sparse.csr_array  # sums of weight times target
    score: sparse.csr_array  # sums of weight times score

    def merged(self, codes: IntArray, n_cells: int) -> ScoreBins:
        """Add up cells into larger ones."""
        ones = np.ones(codes.size)
        owners = sparse.csr_array((ones, (codes, np.arange(codes.size))), (n_cells, codes.size))
        return ScoreBins(self.edges, *(owners @ sums for sums in self[1:]))


class Tally(NamedTuple):
    """What is known of a sample."""

    # Names of the attributes that groups are made of, and of those that strata are made of
    sensitive: list[str]
    control: list[str]
    levels: dict[str, list[Any]]  # the levels of each attribute, in order
    # (n_cells, n_attributes): the level of each cell in each attribute, sensitive ones first
    codes: IntArray
    n_rows: FloatArray
    moments: dict[str, Moments]  # sums of each measure by cell
    scores: ScoreBins | None  # counts of scores; None without scores

    def columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Return the level of each cell in some attributes; they keep their order."""
        place = {name: i for i, name in enumerate(self.levels)}
        return {
            name: pd.Series(
                pd.Categorical.from_codes(
                    self.codes[:, place[name]], pd.Index(self.levels[name], dtype=object)
                )
            )
            for name in names
        }

    def only(self, is_kept: BoolArray) -> Tally:
        """Return the sums of some of the cells; without scores."""
        moments = {
            name: of_cells._replace(sums=of_cells.sums[:, is_kept])
            for name, of_cells in self.moments.items()
        }
        codes, n_rows = self.codes[is_kept], self.n_rows[is_kept]
        return self._replace(codes=codes, n_rows=n_rows, moments=moments, scores=None)


def tally_rows(
    rows: Rows,
    task: Task,
    sensitive_features: ColumnsLike | None,
    conditional_on: ColumnsLike | None,
    score_range: tuple[float, float],
    *,
    like: object = None,
    missing: str | None = None,
) -> Tally:
    """Visit rows once and sum up what their groups need."""
    n_samples = next(len(values) for values in rows if values is not None)
    sensitive, levels, codes = _attributes(sensitive_features, n_samples, like, missing=missing)
    control: list[str] = []
    if conditional_on is not None:
        control, own_levels, own_codes = _attributes(conditional_on, n_samples, like, CONTROL)
        levels, codes = levels + own_levels, codes + own_codes
    names = [*sensitive, *control]
    if len(set(names)) < len(names):
        raise ValueError(
            f"The attributes {', '.join(names)} must have different names. Rename one."
        )
    shape = np.array([len(names) for names in levels])
    cells, combinations = number_tuples(codes, shape)
    n_cells = len(combinations)
    kinds = Kinds.of(rows) if task.classes else None
    moments = dict(measured(rows, task, kinds, cells, n_cells))
    scores = None
    if rows.score is not None and rows.true is not None:
        targets = task.targets(rows.true)
        scores = _bin_scores(rows.score, targets, rows.weights, cells, n_cells, score_range)
    n_rows = np.bincount(cells, minlength=n_cells).astype(np.float64)
    by_name = dict(zip(names, levels, strict=True))
    return Tally(sensitive, control, by_name, combinations, n_rows, moments, scores)


def _attributes(
    features: ColumnsLike | None,
    n_samples: int,
    like: object,
    role: Role = SENSITIVE,
    missing: str | None = None,
) -> tuple[list[str], list[list[Any]], list[IntArray]]:
    """Return the names of attributes, the levels of each, and the level of each row in each."""
    groups = encode_groups(
        features,
        n_samples=n_samples,
        intersectional=False,
        like=like,
        role=role,
        missing=missing,
    )
    codes = list(groups.codes - groups.offsets[:-1, None])
    return list(groups.levels.attributes), list(groups.levels.levels), codes


def merge_tallies(tallies: Sequence[Tally], order: dict[str, list[Any]] | None = None) -> Tally:
    """Add up the tables of blocks of rows; ``order`` lists levels that are not to be sorted."""
    first = tallies[0]
    levels = {name: _union(name, tallies, order or {}) for name in first.levels}
    recoded = []
    for tally in tallies:
        columns = []
        for j, (name, own) in enumerate(tally.levels.items()):
            place = {level: i for i, level in enumerate(levels[name])}
            columns.append(np.array([place[level] for level in own])[tally.codes[:, j]])
        recoded.append(np.stack(columns, axis=1))
    every = np.concatenate(recoded)
    shape = np.array([len(names) for names in levels.values()])
    cells, combinations = number_tuples(list(every.T), shape)
    n_cells = len(combinations)
    moments = {
        name: added([tally.moments[name] for tally in tallies]).merged(cells, n_cells)
        for name in first.moments
    }
    scores = None
    if first.scores is not None:
        bins = zip(
            *(tally.scores[1:] for tally in tallies if tally.scores is not None), strict=True
        )
        stacked = (sparse.csr_array(sparse.vstack(of_blocks)) for of_blocks in bins)
        scores = ScoreBins(first.scores.edges, *stacked).merged(cells, n_cells)
    of_blocks = np.concatenate([tally.n_rows for tally in tallies])
    n_rows = np.bincount(cells, of_blocks, n_cells).astype(np.float64)
    return Tally(first.sensitive, first.control, levels, combinations, n_rows, moments, scores)


def _union(name: str, tallies: Sequence[Tally], order: dict[str, list[Any]]) -> list[Any]:
    """Return the levels of an attribute in all tables."""
    seen = {level: None for tally in tallies for level in tally.levels[name]}
    if name in order:
        return [level for level in order[name] if level in seen]
    return in_order(list(seen))


def _bin_scores(
    score: FloatArray,
    targets: FloatArray,
    weights: FloatArray | None,
    cells: IntArray,
    n_cells: int,
    score_range: tuple[float, float],
) -> ScoreBins:
    """Count scores by cell and bin."""
    low, high = score_range
    high = high if high > low else low + 1.0
    inside = np.clip(score, low, high)  # rows of weight 0 may be elsewhere
    bins = ((inside - low) * (N_BINS / (high - low))).astype(np.int64).clip(0, N_BINS - 1)
    weigh = 1.0 if weights is None else weights
    columns = [weights, weigh * targets, weigh * score]
    kept, sums = sums_by(cells * N_BINS + bins, n_cells * N_BINS, columns)
    place, shape = np.divmod(kept, N_BINS), (n_cells, N_BINS)
    edges = np.linspace(low, high, N_BINS + 1)
    return ScoreBins(edges, *(sparse.csr_array((own, place), shape) for own in sums))


class Kinds(NamedTuple):
    """The combinations of labels that occur, and that of each row."""

    codes: IntArray
    labels: IntArray  # (n_kinds, n_columns)
    places: list[int]  # which columns of the rows these are

    @classmethod
    def of(cls, rows: Rows) -> Kinds:
        """Number the combinations of labels."""
        places = [i for i, column in enumerate(rows[:3]) if column is not None]
        columns = [np.asarray(rows[i], np.int64) for i in places]
        shape = np.array([column.max(initial=0) + 1 for column in columns])
        return cls(*number_tuples(columns, shape), places)

    def counted(
        self, weights: FloatArray | None, cells: IntArray, n_cells: int
    ) -> tuple[Rows, IntArray, FloatArray]:
        """Return rows that stand for all of the same cell and labels, their cells and squares."""
        n_kinds = len(self.labels)
        columns = [None] if weights is None else [weights, weights**2]
        kept, sums = sums_by(cells * n_kinds + self.codes, n_cells * n_kinds, columns)
        of_few, kinds = np.divmod(kept, n_kinds)
        labels: list[Any] = [None, None, None]
        for place, column in zip(self.places, self.labels[kinds].T, strict=True):
            labels[place] = column
        return Rows._make([*labels, None, sums[0]]), of_few, sums[-1]


def measured(
    rows: Rows,
    task: Task,
    kinds: Kinds | None,
    cells: IntArray,
    n_cells: int,
    names: Collection[str] | None = None,
) -> Iterator[tuple[str, Moments]]:
    """Sum up measures (None: all) by cell; rows of the same labels (``kinds``) count once."""
    few, of_few, squares = rows, cells, None
    if kinds is not None:
        few, of_few, squares = kinds.counted(rows.weights, cells, n_cells)
    for name, values, counted in task.values(few._replace(score=rows.score)):
        if names is not None and name not in names:
            continue
        if values is rows.score:
            yield name, Moments.of_rows(values, counted, cells, n_cells, rows.weights)
        else:
            yield name, Moments.of_rows(values, counted, of_few, n_cells, few.weights, squares)


def sums_by(
    joint: IntArray, n_values: int, columns: Sequence[FloatArray | None]
) -> tuple[IntArray, list[FloatArray]]:
    """List the values that occur, and add up columns over the rows of each; None counts rows."""
    levels = None
    if n_values > 4 * joint.size + 10**6:
        levels, joint = np.unique(joint, return_inverse=True)
        n_values = levels.size
    occurs = np.flatnonzero(np.bincount(joint, minlength=n_values))
    sums = [np.bincount(joint, own, n_values)[occurs].astype(np.float64) for own in columns]
    return occurs if levels is None else levels[occurs], sums
