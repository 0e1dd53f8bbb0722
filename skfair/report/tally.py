"""A sample as a small table: one line for each combination of attributes that occurs.

Everything that an audit says about groups, crossings and subgroups is a function of this table, so
the rows are visited once. Tables of blocks of rows add up, so a file need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, ClassLabel, ColumnsLike, FloatArray, IntArray
from skfair.blocks.partitions import align
from skfair.groups.attributes import CONTROL, SENSITIVE, Role
from skfair.groups.encoding import encode_groups
from skfair.groups.levels import number_tuples, sums_by
from skfair.groups.means import CellMeans, added
from skfair.report.options import MISSING, Options
from skfair.report.reading import RawRows, Survey, TaskName, find_task, read_rows, survey_rows
from skfair.report.scores import N_BINS, Scores, range_of_scores
from skfair.report.tasks import Rows, Task, in_order, values_of


class Tally(NamedTuple):
    """What is known of a sample."""

    # Names of the attributes that groups are made of, and of those that strata are made of
    sensitive: list[str]
    control: list[str]
    levels: dict[str, list[Any]]  # the levels of each attribute, in order
    # (n_cells, n_attributes): the level of each cell in each attribute, sensitive ones first
    codes: IntArray
    n_rows: FloatArray
    measures: dict[str, CellMeans]  # by name, over the cells
    scores: Scores | None

    def columns(self, names: Sequence[str]) -> dict[str, pd.Series]:
        """Return the level of each cell in some attributes; they keep their order."""
        columns = {}
        for name, codes in zip(self.levels, self.codes.T, strict=True):
            levels = pd.Index(self.levels[name], dtype=object)
            columns[name] = pd.Series(pd.Categorical.from_codes(codes, levels))
        return {name: columns[name] for name in names}

    def only(self, is_kept: BoolArray) -> Tally:
        """Return the sums of some of the cells; without scores."""
        measures = {
            name: of_cells._replace(sums=of_cells.sums[..., is_kept])
            for name, of_cells in self.measures.items()
        }
        codes, n_rows = self.codes[is_kept], self.n_rows[is_kept]
        return self._replace(codes=codes, n_rows=n_rows, measures=measures, scores=None)


def tally_rows(
    raw: RawRows,
    task: Task,
    sensitive_features: ColumnsLike | None,
    conditional_on: ColumnsLike | None = None,
    *,
    threshold: float | None = None,
    score_range: tuple[float, float] | None = None,  # None: that of these rows, which are all
    like: object = None,
    missing: str | None = None,
) -> Tally:
    """Visit rows once and sum up what their groups need."""
    rows = read_rows(raw, task, threshold, are_all=score_range is None)
    n_samples = next(len(values) for values in rows if values is not None)
    roles: list[tuple[ColumnsLike | None, Role, str | None]]
    roles = [(sensitive_features, SENSITIVE, missing), (conditional_on, CONTROL, None)]
    encoded = [
        encode_groups(
            features, n_samples=n_samples, intersectional=False, like=like, role=role, missing=own
        )
        for features, role, own in (roles if conditional_on is not None else roles[:1])
    ]
    sensitive, *control = (list(groups.levels.attributes) for groups in encoded)
    every = [*sensitive, *chain.from_iterable(control)]
    levels = [list(own) for groups in encoded for own in groups.levels.levels]
    codes = [own for groups in encoded for own in groups.codes - groups.offsets[:-1, None]]
    if len(set(every)) < len(every):
        raise ValueError(
            f"The attributes {', '.join(every)} must have different names. Rename one."
        )
    cells, combinations = number_tuples(codes, np.array([len(own) for own in levels]))
    n_cells = len(combinations)
    kinds = Kinds.of(rows) if task.classes else None
    measures = dict(measured(rows, task, kinds, cells, n_cells))
    scores = None
    if rows.score is not None and rows.true is not None:
        targets = rows.true.astype(np.float64)
        ends = score_range or range_of_scores(rows.score, rows.weights)
        scores = Scores.of_rows(rows.score, targets, rows.weights, cells, ends)
    n_rows = np.bincount(cells, minlength=n_cells).astype(np.float64)
    by_name, of_control = dict(zip(every, levels, strict=True)), every[len(sensitive) :]
    return Tally(sensitive, of_control, by_name, combinations, n_rows, measures, scores)


def tally_blocks(
    raw: RawRows,
    groups: tuple[Any, Any],  # sensitive features, and what gaps are conditional on
    options: Options,
    task_name: TaskName,
    pos_labels: tuple[ClassLabel, ClassLabel],
    threshold: float | None,
) -> tuple[Tally, Task, Options]:
    """Sum up Dask collections in two passes over their blocks; see :func:`tally_rows`."""
    rows = align(**raw.named(), sensitive_features=groups[0], conditional_on=groups[1])
    survey = rows.total(_survey, task_name, combine=lambda parts: sum(parts, Survey()))
    if not survey.n_counted:
        has_rows = survey.n_rows > 0
        raise ValueError(
            "sample_weight is zero for every row." if has_rows else "There are no rows."
        )
    if options.preset == "ll144" and raw.y_pred is None and threshold is None:
        threshold = float(np.median(np.concatenate(rows.collect(itemgetter("y_score")))))
        options = options._replace(median=threshold)
    task = find_task(survey, task_name, *pos_labels)
    missing = MISSING if MISSING in options.unknown else None
    ends = range_of_scores(np.array(survey.ends))
    tallies = rows.collect(_tally, task, threshold, ends, missing)
    return merge_tallies([own for own in tallies if own is not None], {}, missing), task, options


def _survey(block: dict[str, Any], task_name: TaskName) -> Survey:
    raw = RawRows._make(map(block.get, RawRows._fields))
    scores = raw.y_pred if raw.y_score is None else raw.y_score
    is_score = np.asarray(scores[:0]).dtype.kind in "iuf"
    score = ("y_pred" if raw.y_score is None else "y_score", scores) if is_score else None
    return survey_rows(raw.labels(), task_name, score, raw.sample_weight)


def _tally(
    block: dict[str, Any],
    task: Task,
    threshold: float | None,
    score_range: tuple[float, float],
    missing: str | None,
) -> Tally | None:
    """Sum up the rows of a block; None if it has none."""
    raw = RawRows._make(map(block.get, RawRows._fields))
    if not any(len(values) for values in raw.named().values()):
        return None
    groups = block["sensitive_features"], block.get("conditional_on")
    how: dict[str, Any] = {"threshold": threshold, "score_range": score_range}
    return tally_rows(raw, task, *groups, **how, missing=missing)


def merge_tallies(
    tallies: Sequence[Tally], order: dict[str, list[Any]], missing: str | None = None
) -> Tally:
    """Add up the tables of blocks of rows.

    Levels are in the given order, else sorted, if blocks have sorted them; ``missing`` is the last.
    """
    first, levels, codes = tallies[0], {}, []
    for j, name in enumerate(first.levels):
        lists = [[x for x in tally.levels[name] if x != missing] for tally in tallies]
        seen = list(dict.fromkeys(chain.from_iterable(lists)))
        if all(levels_of_block == in_order(levels_of_block) for levels_of_block in lists):
            seen = in_order(seen)
        own = [level for level in order.get(name, seen) if level in seen]
        own += [missing] if any(missing in tally.levels[name] for tally in tallies) else []
        place = {level: i for i, level in enumerate(own)}
        columns = [np.array([place[x] for x in t.levels[name]])[t.codes[:, j]] for t in tallies]
        levels[name] = own
        codes.append(np.concatenate(columns))
    cells, combinations = number_tuples(codes, np.array([len(own) for own in levels.values()]))
    n_cells = len(combinations)
    measures = {
        name: added([tally.measures[name] for tally in tallies]).merged(cells, n_cells)
        for name in first.measures
    }
    scores = first.scores
    if scores is not None:
        every = [tally.scores for tally in tallies if tally.scores is not None]
        starts = np.cumsum([0, *(tally.n_rows.size for tally in tallies[:-1])])
        own_cells, bins = np.divmod(np.concatenate([own.places for own in every]), N_BINS)
        own_cells += np.repeat(starts, [own.places.size for own in every])
        sums = np.concatenate([own.sums for own in every], axis=1)
        scores = Scores(scores.edges, cells[own_cells] * N_BINS + bins, sums)
    of_blocks = np.concatenate([tally.n_rows for tally in tallies])
    n_rows = np.bincount(cells, of_blocks, n_cells).astype(np.float64)
    return Tally(first.sensitive, first.control, levels, combinations, n_rows, measures, scores)


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
) -> Iterator[tuple[str, CellMeans]]:
    """Sum up measures (None: all) by cell; rows of the same labels (``kinds``) count once."""
    few, of_few, squares = rows, cells, None
    if kinds is not None:
        few, of_few, squares = kinds.counted(rows.weights, cells, n_cells)
    for name, values, counted in values_of(task, few._replace(score=rows.score)):
        if names is not None and name not in names:
            continue
        if values is rows.score:
            yield name, CellMeans.of_rows(values, counted, cells, n_cells, rows.weights)
        else:
            yield name, CellMeans.of_rows(values, counted, of_few, n_cells, few.weights, squares)
