"""Units in an engine: those with equal rows are counted together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skfair._typing import IntArray
from skfair.groups import engine_tables
from skfair.groups.engine_tables import (
    PREFIX,
    SQUARES,
    WEIGHT,
    EngineTable,
    Fetched,
    Kinds,
    N,
    check_unchanged,
    collected,
)
from skfair.groups.row_units import RowUnits
from skfair.utils.factorize import factorize
from skfair.utils.text import plural

if TYPE_CHECKING:
    import pandas as pd


def read_units(table: EngineTable, found: pd.DataFrame, counts: IntArray) -> Fetched:
    """Fetch rows of units, once for all units with equal rows.

    Rows of two units are equal here if they are in one cell, a combination of groups and
    strata, and both have as many, with equal sums of weights, of each combination of labels.
    Units with rows in several cells are fetched one by one, at most MOST_ROWS of their parts.
    """
    import narwhals as nw
    import pandas as pd

    assert table.units is not None
    unit = nw.col(table.units)
    is_float = table.frame.collect_schema()[table.units].is_float()
    lacks = unit.is_null() | unit.is_nan() if is_float else unit.is_null()
    n_missing = int(collected(table.frame.select(lacks.cast(nw.Int64).sum().alias(N)))[N].iloc[0])
    if n_missing:
        raise ValueError(
            f"units={table.units!r} has {plural(n_missing, 'missing value')}: of these rows it "
            "is not known to whom they belong. Leave them out of the table."
        )
    labels = list(dict.fromkeys(table.labels.values()))
    combinations = found[labels].drop_duplicates().reset_index(drop=True)
    powers = [] if table.sample_weight is None else [WEIGHT, SQUARES]
    added = {}
    for i, row in enumerate(combinations.itertuples(index=False)):
        is_own = nw.lit(True)
        for name, value in zip(labels, row, strict=True):
            own = value.item() if isinstance(value, np.generic) else value
            is_own = is_own & (nw.col(name) == own)
        added[f"{N}_{i}"] = is_own.cast(nw.Int64)
        for power in powers:
            added[f"{power}_{i}"] = nw.when(is_own).then(nw.col(power)).otherwise(0.0)
    own_unit = f"{PREFIX}unit"  # the column may be one of the groups as well
    frame = table.weighed().with_columns(**added, **{own_unit: unit})
    sums = [nw.col(name).sum() for name in added]
    parts = frame.group_by(own_unit, *table.cells).agg(*sums)
    n_cells = f"{PREFIX}cells"  # in how many cells the unit of a part lies
    parts = parts.join(
        parts.group_by(own_unit).agg(nw.len().alias(n_cells)), on=own_unit, how="inner"
    )
    keys = [*table.cells, *added]
    inside = parts.filter(nw.col(n_cells) == 1).group_by(*keys).agg(nw.len().alias(N))
    across = parts.filter(nw.col(n_cells) > 1).select(own_unit, *keys)
    most = engine_tables.MOST_ROWS
    alone, split = (collected(own.head(most + 1)) for own in (inside, across))
    if max(len(alone), len(split)) > most:
        why = "with different rows" if len(alone) > most else "in several groups"
        raise ValueError(
            f"The table has more than {most:,} units {why}, which are counted one by one. Compare "
            "fewer groups at a time, or pass a sample of the units in memory."
        )
    alone, split = (part.sort_values(keys, ignore_index=True) for part in (alone, split))
    owners, levels = factorize(split[own_unit])
    owners = np.append(np.arange(len(alone)), len(alone) + np.asarray(owners))
    n_equal = np.append(alone[N], np.ones(len(split))).astype(np.float64)
    together = pd.concat([part[keys] for part in (alone, split) if len(part)], ignore_index=True)
    kept: list[Any] = []
    for i in range(len(combinations)):
        n = together[f"{N}_{i}"].to_numpy(np.float64) * n_equal
        rows = np.flatnonzero(n)
        columns = together[table.cells].iloc[rows].reset_index(drop=True)
        for name in labels:
            columns[name] = combinations[name].iloc[np.full(rows.size, i)].to_numpy()
        totals = [n, *(together[f"{own}_{i}"].to_numpy(np.float64) * n_equal for own in powers)]
        kept.append((columns, owners[rows], [total[rows] for total in totals]))
    columns = pd.concat([part[0] for part in kept], ignore_index=True)
    for name in labels:
        columns[name] = columns[name].astype(found[name].dtype)
    codes = np.concatenate([part[1] for part in kept])
    n, *others = (np.concatenate(own) for own in zip(*(part[2] for part in kept), strict=True))
    check_unchanged(counts.sum(), n.sum())
    weights, squares = others or (n, n)
    times = np.append(alone[N].to_numpy(np.float64), np.ones(len(levels)))
    # If no two rows share a unit, there are none, as in ``read_units``.
    units = None if times.sum() == n.sum() else RowUnits(codes, times.size, times)
    kinds = Kinds(n.astype(np.int64), squares, table)
    return Fetched(columns[table.names], kinds, weights, units=units)
