"""Which few rows of a table in an engine are fetched, by the columns that were named.

- Labels only: for each kind the number of its rows, and the sums of their weights and of the
  squares. Rates, differences, tests and audits depend on nothing else.
- Scores: the same for each kind and score, or bin of it (``engine_scores.py``).
- Units: the same for units with equal rows (``engine_units.py``).
- Predictions or outcomes that are numbers which hardly repeat: the groups only. Audits ask for
  :meth:`EngineTable.sums` of what they measure (``skfair/report/auditing/engine_numbers.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skfair.groups import engine_tables
from skfair.groups.engine_scores import read_scores
from skfair.groups.engine_tables import EngineTable, Fetched, Kinds
from skfair.groups.engine_units import read_units
from skfair.utils.text import listed


def read_table(table: EngineTable, ends: Sequence[float] = ()) -> Fetched:
    """Fetch few rows that stand for all rows of a table.

    If scores are put into bins, a bin ends at each score in ``ends``.
    """
    if table.y_score is not None and table.units is not None:
        raise TypeError(
            "Units with scores are read in memory, because units hardly have the same scores. "
            "Pass the rows, as in Cohort(...), or decisions in place of scores."
        )
    # Labels of more kinds are numbers, also if the first rows do not show it.
    found = None if table.have_numbers() else table.fetched(table.names)
    if found is None or (len(found) > engine_tables.MOST_KINDS and table.are_numeric()):
        if table.y_score is not None or table.units is not None:
            raise TypeError(
                f"{listed([*table.labels.values()])} are numbers that hardly repeat, which are "
                "audited in an engine without scores and units. Leave them out, or pass the "
                "rows, as in Cohort(...)."
            )
        found = table.few_kinds(table.fetched(table.cells), table.cells)
        counts, weights, squares = table.sums_of(found)
        numbers = {name: np.full(len(found), np.nan) for name in table.labels.values()}
        kinds = Kinds(counts, squares, table, are_numbers=True)
        return Fetched(found.assign(**numbers), kinds, weights)
    found = table.few_kinds(found, table.names)
    counts, weights, squares = table.sums_of(found)
    table.check_labels(found, counts)
    if table.y_score is not None:
        return read_scores(table, found, counts, ends)
    if table.units is not None:
        return read_units(table, found, counts)
    return Fetched(found, Kinds(counts, squares, table), weights)
