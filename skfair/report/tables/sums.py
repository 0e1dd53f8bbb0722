"""Rows of an audit, in memory or in blocks, become a table of sums by cell.

A *level* is a value of a sensitive or control attribute, and a *cell* is a combination of levels of
all attributes that occurs. A *measure* is a rate or a mean, such as the selection rate. A *block*
is a partition of a Dask collection, or some lines of a file. A *unit* is a set of rows that are not
independent, such as the visits of a patient, and a *part* is the rows of a unit in one cell
(:mod:`skfair.groups.row_units`). The result is a :class:`~skfair.groups.table.GroupTable`, from
which ``audit_table`` computes all tables.

- :func:`add_up` adds up rows in memory, which :mod:`skfair.report.tables.reading` has read.
- :func:`read_blocks` adds up Dask collections: it surveys all blocks, calls :func:`sums_of_block`
  for each, and adds up their tables. Files are read in the same way by
  :mod:`skfair.report.commands.audit`.
- :func:`measured` adds up the measures, also for ``find_subgroups``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from skfair._typing import ClassLabel, IntArray
from skfair.groups.attributes import CONTROL, SENSITIVE, warn_levels
from skfair.groups.cohort import Cohort, cohort_of, given_columns
from skfair.groups.engine_tables import Kinds
from skfair.groups.labels import TaskName
from skfair.groups.levels import number_tuples, sums_by
from skfair.groups.rates import CellMeans
from skfair.groups.row_units import UnitParts
from skfair.groups.table import GroupTable, total
from skfair.report.tables.options import MISSING, Options
from skfair.report.tables.reading import PlacedRows, Survey, find_task, read_rows, survey_rows
from skfair.report.tables.scores import binned_scores, range_of_scores
from skfair.report.tables.tasks import Rows, Task, values_of
from skfair.utils.dask_collections import align
from skfair.utils.warn import unwanted


def add_up(
    placed: PlacedRows,
    task: Task,
    kinds: Kinds | None = None,  # given if the rows are kinds of a table in an engine
    # The range of all scores, if the rows are one block of several; None if these are all rows
    score_range: tuple[float, float] | None = None,
) -> GroupTable:
    """Visit rows once, and add up by cell what the tables of an audit need.

    The result has the measures, and if there are scores and true labels, sums by bin of the score.
    """
    rows, table, cells = placed
    n_cells = len(table.codes)
    labels = distinct_labels(rows) if task.classes else None
    parts = None if rows.units is None else rows.units.parts(cells, n_cells)
    table = replace(
        table,
        measures=dict(measured(rows, task, labels, cells, n_cells, None, parts, kinds)),
        # The table has no rows, so it keeps the cell and the unit of each part, but not the parts
        # of the rows (``codes``).
        units=parts and replace(parts, codes=parts.codes[:0]),
    )
    if rows.score is None or rows.true is None:
        return table
    targets = rows.true.astype(np.float64)
    ends = score_range or range_of_scores(rows.score, rows.weights)
    # Each row counts as this share of a person, so that all rows of a unit count as one person.
    people = None if rows.units is None else rows.units.shares
    if task.kind == "binary" and ends == (0.0, 1.0):  # the scores are probabilities
        by_row: Any = cells, n_cells, rows.weights, kinds and kinds.squares, parts
        residuals = CellMeans.of_rows(targets - rows.score, None, *by_row)
        table = replace(table, measures=table.measures | {"mean_residual": residuals})
    scores = binned_scores(rows.score, targets, rows.weights, cells, table, ends, people)
    return replace(table, scores=scores)


def read_blocks(
    people: Cohort,
    options: Options,
    task_name: TaskName,
    pos_label_true: ClassLabel,
    threshold: float | None,
) -> tuple[GroupTable, Task, Options]:
    """Add up Dask collections in two passes over their blocks, a survey and the sums.

    Returns the table, the task, and the options. If preset "ll144" compares scores with their
    median, the returned options hold this median.
    """
    columns = given_columns(people)
    rows = align(**columns)
    survey = rows.total(_survey, task_name, combine=lambda parts: sum(parts, Survey()))
    if not survey.n_counted:
        has_rows = survey.n_rows > 0
        raise ValueError(
            "sample_weight is zero for every row." if has_rows else "There are no rows."
        )
    if options.preset == "ll144" and people.y_pred is None and threshold is None:
        threshold = float(np.median(np.concatenate(rows.collect(itemgetter("y_score")))))
        options = options._replace(median=threshold)
    task = find_task(survey, task_name, people.pos_label, pos_label_true, given=columns)
    how = {"threshold": threshold, "unknown": options.unknown}
    ends = range_of_scores(np.array(survey.ends))
    tables = [own for own in rows.collect(sums_of_block, task, ends, how) if own is not None]
    whole = total(tables, last=MISSING if MISSING in options.unknown else None)[0]
    warn_table(whole, options.unknown)
    return whole, task, options


def _survey(block: dict[str, Any], task_name: TaskName) -> Survey:
    """Survey one block. The keys of ``block`` are the arguments of ``audit``."""
    return survey_rows(cohort_of(**block), task_name)


def sums_of_block(
    block: dict[str, Any], task: Task, ends: tuple[float, float], how: dict[str, Any]
) -> GroupTable | None:
    """Add up the rows of a block, or return None if it has no rows.

    The keys of ``block`` are the arguments of ``audit``. ``ends`` is the range of all scores, and
    ``how`` are further arguments of :func:`read_rows`. Warnings are left to :func:`warn_table`,
    which sees all blocks.
    """
    people = cohort_of(**block)
    if not len(people):
        return None
    with unwanted(UserWarning):
        return add_up(read_rows(people, task, **how, are_all=False), task, score_range=ends)


def warn_table(table: GroupTable, unknown: Collection[str] = ()) -> None:
    """Warn of suspicious levels in a table whose rows came in blocks."""
    for (name, declared), codes in zip(table.levels.items(), table.codes.T, strict=True):
        role = CONTROL if name in table.within else SENSITIVE
        warn_levels([declared[i] for i in np.unique(codes)], name, role, unknown, declared)


def distinct_labels(rows: Rows) -> tuple[IntArray, Rows]:
    """Number the combinations of labels (true, predicted, before) that occur.

    Returns the combination of each row, and the combinations as rows without scores and weights.
    """
    known = [i for i, column in enumerate(rows[:3]) if column is not None]
    columns = [np.asarray(rows[i], np.int64) for i in known]
    shape = np.array([column.max(initial=0) + 1 for column in columns])
    codes, combinations = number_tuples(columns, shape)
    labels = dict(zip(known, combinations.T, strict=True))
    return codes, Rows._make([*map(labels.get, range(3)), None, None, None])


def measured(
    rows: Rows,
    task: Task,
    labels: tuple[IntArray, Rows] | None,  # result of distinct_labels; None if labels are numbers
    cells: IntArray,
    n_cells: int,
    names: Collection[str] | None = None,  # the measures that are needed; None for all
    parts: UnitParts | None = None,  # the part of each row; None if no two rows share a unit
    stand_for: Kinds | None = None,  # given if the rows are kinds of a table in an engine
) -> Iterator[tuple[str, CellMeans]]:
    """Add up measures by cell.

    Rows of the same cell with the same labels have the same values of all measures but the mean
    score, so they are of one *kind*. If there are units, rows of one kind must also belong to the
    same unit. The rows are counted by kind first. Then measures are computed for one row of each
    kind (``few``), whose weight is the total weight of the rows of this kind.
    """
    # ``squares`` will be the sum of the squared weights of the rows of each kind.
    own_squares = None if stand_for is None else stand_for.squares
    few, of_few, squares, parts_of_few = rows, cells, own_squares, parts
    if labels is not None:
        kinds, labels_of_kinds = labels
        n_kinds = labels_of_kinds.n_rows
        columns: list[Any] = [None]
        if rows.weights is not None:
            columns = [rows.weights, rows.weights**2]
        if own_squares is not None:
            columns[1:] = [own_squares]
        codes, n_codes = (cells, n_cells) if parts is None else (parts.codes, len(parts.cells))
        kept, sums = sums_by(codes * n_kinds + kinds, n_codes * n_kinds, columns)
        of_few, own = np.divmod(kept, n_kinds)
        if parts is not None:
            parts_of_few, of_few = replace(parts, codes=of_few), parts.cells[of_few]
        of_kinds = (None if column is None else column[own] for column in labels_of_kinds[:3])
        few = Rows._make([*of_kinds, None, sums[0], None])
        squares = sums[-1]
    for name, values, counted in values_of(task, few._replace(score=rows.score)):
        if names is not None and name not in names:
            continue
        if values is rows.score:
            own_rows: Any = cells, n_cells, rows.weights, own_squares, parts
        else:
            own_rows = of_few, n_cells, few.weights, squares, parts_of_few
        yield name, CellMeans.of_rows(values, counted, *own_rows)
