"""Tables in engines, whose rows are counted where they are: only counts travel.

``Cohort.from_table`` makes an :class:`EngineTable` of a lazy table of any library that narwhals
knows (DuckDB, polars, Spark, Ibis). Few rows are fetched that stand for all of its rows, by
:func:`skfair.groups.engine_reading.read_table`: :class:`Fetched` has their columns, and
:class:`Kinds` what they stand for. A *kind* is a combination of labels, groups and strata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups.attributes import SENSITIVE, Role, check_missing, read_columns
from skfair.groups.levels import number_tuples
from skfair.groups.outcomes import explaining_missing
from skfair.groups.row_units import RowUnits
from skfair.groups.score_bins import Bins
from skfair.utils.factorize import factorize
from skfair.utils.text import did_you_mean, listed, plural

if TYPE_CHECKING:
    import pandas as pd

# The arguments that name a column of labels.
LABELS = ("y_true", "y_pred", "before")
# A table of more kinds than this raises before they travel.
MOST_KINDS = 1 << 16
# No more rows than this travel: kinds by score, and parts of units.
MOST_ROWS = 1 << 22
# Rows that are looked at to see whether columns have more than MOST_KINDS values
PROBED = 2 * MOST_KINDS
# The columns that are added to a table begin with this, as no column of a user does.
PREFIX = "__skfair_"
N, MISSING = f"{PREFIX}n", f"{PREFIX}missing"
WEIGHT, SQUARES, LEAST = f"{PREFIX}weight", f"{PREFIX}squares", f"{PREFIX}least"
SCORE, BIN, MOMENT = f"{PREFIX}score", f"{PREFIX}bin", f"{PREFIX}moment"
LOW, HIGH = f"{PREFIX}low", f"{PREFIX}high"


class Kinds(NamedTuple):
    """What few rows stand for that were counted in an engine."""

    counts: IntArray  # (n_rows,): how many rows of the table each stands for
    squares: FloatArray  # (n_rows,): the sum of their squared weights
    table: EngineTable
    bins: Bins | None = None  # the bins of the scores, if they were put into bins
    are_numbers: bool = False  # whether labels are numbers, which the few rows do not have

    def taken(self, rows: IntArray) -> Kinds:
        """Return some of the rows."""
        bins = self.bins and self.bins._replace(number=self.bins.number[rows])
        return self._replace(counts=self.counts[rows], squares=self.squares[rows], bins=bins)

    def only_where(self, levels: Mapping[str, Any]) -> Kinds:
        """Let later passes over the table read only rows with these levels."""
        frame = only_where(self.table.frame, levels)
        return self._replace(table=replace(self.table, frame=frame))

    def check_groups(self, table: Any, role: Role = SENSITIVE) -> None:
        """Raise if rows of the table lack a group or a stratum, and say how many do."""
        for name, values in read_columns(table, role):
            check_missing(factorize(values), name or role.argument, role, counts=self.counts)

    def cuts(self, threshold: float) -> bool:
        """Whether a bin has scores on both sides of a threshold."""
        if self.bins is None:
            return False
        return bool(np.any((self.bins.low <= threshold) & (threshold < self.bins.high)))

    def resolution(self, groups: IntArray) -> float:
        """Return the largest share of a group in a bin with several scores."""
        if self.bins is None:
            return 0.0
        number, n_bins = self.bins.number, self.bins.low.size
        shape = np.array([groups.max(initial=0) + 1, n_bins])
        codes, cells = number_tuples([groups, number], shape)
        sizes, of_cells = np.bincount(groups, self.counts), np.bincount(codes, self.counts)
        has_several = (self.bins.low < self.bins.high)[cells[:, 1]]
        return float((has_several * of_cells / sizes[cells[:, 0]]).max(initial=0.0))


class Fetched(NamedTuple):
    """Few rows that stand for all rows of a table."""

    columns: pd.DataFrame  # labels, groups and strata
    kinds: Kinds
    weights: FloatArray
    scores: FloatArray | None = None
    units: RowUnits | None = None


@dataclass(frozen=True, eq=False)
class EngineTable:
    """A table in an engine, and the names of the columns that are read."""

    frame: Any  # a LazyFrame of narwhals
    columns: Mapping[str, list[str]]  # by argument: labels, groups and strata
    y_score: str | None = None
    sample_weight: str | None = None
    units: str | None = None
    beside: ClassVar = ("y_score", "sample_weight", "units")

    @classmethod
    def of(
        cls,
        frame: Any,
        columns: Mapping[str, list[str]],
        beside: Mapping[str, str | None],  # names of the other columns
    ) -> EngineTable:
        """Return a table; raise unless it has the columns, and numbers where they are needed."""
        schema = frame.collect_schema()
        given = {argument: [name] for argument, name in beside.items() if name is not None}
        check_names(dict(columns) | given, schema.names())
        for argument in ("y_score", "sample_weight"):
            name = beside.get(argument)
            if name is not None and not schema[name].is_numeric():
                raise TypeError(
                    f"{argument}={name!r} must be a column of numbers, but it has the type "
                    f"{schema[name]}."
                )
        return cls(frame, columns, **beside)

    @property
    def names(self) -> list[str]:
        """The columns of labels, groups and strata, each once."""
        return list(dict.fromkeys(name for own in self.columns.values() for name in own))

    @property
    def labels(self) -> dict[str, str]:
        """The names of the columns of labels, by argument."""
        return {argument: own[0] for argument, own in self.columns.items() if argument in LABELS}

    @property
    def cells(self) -> list[str]:
        """The columns of groups and strata."""
        apart = (own for argument, own in self.columns.items() if argument not in LABELS)
        return list(dict.fromkeys(name for own in apart for name in own))

    def sums(
        self, expressions: Mapping[str, Any], by: Mapping[str, Any], kinds: Kinds
    ) -> pd.DataFrame:
        """Fetch sums of expressions by the columns of groups and strata, and by more expressions.

        The columns of the result have PREFIX before the names of the expressions.
        """
        import narwhals as nw

        every = {**expressions, **by}
        frame = self.frame.with_columns(**{f"{PREFIX}{name}": own for name, own in every.items()})
        keys = [*self.cells, *(f"{PREFIX}{name}" for name in by)]
        sums = [nw.col(f"{PREFIX}{name}").sum() for name in expressions]
        found = collected(frame.group_by(*keys).agg(nw.len().alias(N), *sums))
        check_unchanged(kinds.counts.sum(), found[N].sum())
        return found

    def overview(self, expressions: Mapping[str, Any], ends: Mapping[str, str]) -> dict[str, float]:
        """Fetch the weighted means of expressions over rows with weight; for ``ends`` min or max.

        Raises if one is missing or infinite in some row.
        """
        import narwhals as nw

        frame = self.frame.with_columns(
            **{f"{PREFIX}{name}": own.cast(nw.Float64) for name, own in expressions.items()}
        )
        columns = {name: nw.col(f"{PREFIX}{name}") for name in expressions}
        bad = {
            name: (own.is_null() | ~own.is_finite()).cast(nw.Int64).sum().alias(name)
            for name, own in columns.items()
        }
        n_bad = collected(frame.select(*bad.values())).iloc[0].fillna(0)
        if n_bad.any():
            raise ValueError(
                f"{listed([*self.labels.values()])} are missing, NaN or infinite in some rows, up "
                f"to {int(n_bad.max()):,} of them. Leave these rows out of the table (where=)."
            )
        frame = frame.with_columns(self.weight.cast(nw.Float64).alias(WEIGHT))
        frame = frame.filter(nw.col(WEIGHT) > 0)
        asked = [
            getattr(own, ends[name])().alias(name)
            if name in ends
            else (own * nw.col(WEIGHT)).sum().alias(name)
            for name, own in columns.items()
        ]
        found = collected(frame.select(*asked, nw.col(WEIGHT).sum())).iloc[0]
        if not np.isfinite(found[[*columns]].astype(np.float64)).all() and found[WEIGHT] > 0:
            # An engine may take is_nan for false, by statistics that leave NaN out.
            raise ValueError(
                f"{listed([*self.labels.values()])} are NaN or infinite in some rows. Leave these "
                "rows out of the table (where=)."
            )
        if not found[WEIGHT] > 0:
            raise ValueError("sample_weight is zero for every row.")
        return {
            name: float(found[name]) / (1.0 if name in ends else float(found[WEIGHT]))
            for name in columns
        }

    @property
    def query(self) -> str:
        """The query of the rows, if the engine is DuckDB, and otherwise ""."""
        native = self.frame.to_native()
        return str(native.sql_query()) if hasattr(native, "sql_query") else ""

    @property
    def weight(self) -> Any:
        """The weights as an expression of narwhals."""
        import narwhals as nw

        if self.sample_weight is None:
            return nw.lit(1.0)
        return nw.col(self.sample_weight).cast(nw.Float64)

    def number(self, argument: str) -> Any:
        """Return a column of numbers as an expression of narwhals; None if it was not named."""
        import narwhals as nw

        return nw.col(self.labels[argument]).cast(nw.Float64) if argument in self.labels else None

    def have_numbers(self) -> bool:
        """Whether the labels have more different numbers than kinds may have.

        Other columns with that many values raise, before all of their rows are grouped.
        """
        first = self.frame.select(*self.names).head(PROBED)
        if _n_distinct(first) <= MOST_KINDS:
            return False
        sizes = {name: _n_distinct(first.select(name)) for name in self.names}
        largest = max(sizes, key=lambda name: sizes[name])
        if largest not in self.labels.values() or not self.are_numeric():
            raise ValueError(self._too_many(self.names, f"{largest!r}"))
        return True

    def are_numeric(self) -> bool:
        """Whether the labels have the type of numbers."""
        schema = self.frame.collect_schema()
        return all(schema[name].is_numeric() for name in self.labels.values())

    def _too_many(self, names: list[str], which: str = "one of them") -> str:
        return (
            f"The columns {listed(names)} have more than {MOST_KINDS:,} combinations of values, so "
            f"{which} looks like a number or an identifier. Bin it, or leave it out."
        )

    def weighed(self) -> Any:
        """Return the frame with the columns that are added up."""
        import narwhals as nw

        if self.sample_weight is None:
            return self.frame
        weight = nw.col(self.sample_weight).cast(nw.Float64)
        return self.frame.with_columns(
            weight.alias(WEIGHT),
            (weight * weight).alias(SQUARES),
            weight.alias(LEAST),
            weight.is_null().cast(nw.Int64).alias(MISSING),
        )

    def fetched(self, keys: Sequence[str]) -> pd.DataFrame:
        """Count the rows, and add up their weights, by some columns."""
        import narwhals as nw

        frame, sums = self.weighed(), [nw.len().alias(N)]
        if self.sample_weight is not None:
            sums += [nw.col(own).sum() for own in (WEIGHT, SQUARES, MISSING)]
            sums += [nw.col(LEAST).min()]
        counted = frame.group_by(*keys).agg(*sums).sort(*keys, nulls_last=True)
        return collected(counted.head(MOST_KINDS + 1))

    def few_kinds(self, found: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
        """Return kinds; raise if there are too many or none."""
        if len(found) > MOST_KINDS:
            raise ValueError(self._too_many([*keys]))
        if not len(found):
            raise ValueError("The table has no rows.")
        return found

    def sums_of(self, found: pd.DataFrame) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the number of rows, the sum of the weights, and of their squares, of each kind."""
        counts = found[N].to_numpy(np.int64)
        if self.sample_weight is None:
            return counts, counts.astype(np.float64), counts.astype(np.float64)
        weights, squares = (found[own].to_numpy(np.float64) for own in (WEIGHT, SQUARES))
        problem, missing = "", int(found[MISSING].sum()) if MISSING in found else 0
        if missing:
            problem = f"has {plural(missing, 'missing value')}"
        elif not np.isfinite(weights).all():
            problem = "has values that are NaN or infinite"
        elif LEAST in found and found[LEAST].min() < 0:
            problem = "has negative numbers"
        if problem:
            raise ValueError(
                f"sample_weight={self.sample_weight!r} {problem}. Weights are 0 or larger."
            )
        return counts, weights, squares

    def check_labels(self, found: pd.DataFrame, counts: IntArray) -> None:
        """Raise if labels are missing, and say so if a decision is the reason."""
        true = self.labels.get("y_true", "")
        decisions = {name: found[name] for name in self.labels.values() if name != true}
        with explaining_missing((true, found.get(true)), decisions, counts):
            for name in dict.fromkeys(self.labels.values()):
                if n_missing := int(counts[found[name].isna()].sum()):
                    raise ValueError(
                        f"{name} has {plural(n_missing, 'missing value')} in {counts.sum():,} "
                        "rows. Leave these rows out of the table, or the column out of the call."
                    )


def check_names(columns: Mapping[str, Sequence[str]], known: Sequence[str]) -> None:
    """Raise unless a table has the columns that arguments name, and groups are named."""
    if not columns.get("sensitive_features"):
        raise ValueError("sensitive_features is empty. Name the columns of the groups.")
    for argument, own in columns.items():
        for name in own:
            if name not in known:
                raise ValueError(
                    f"{argument}={name!r} is no column of the table.{did_you_mean(name, known)} "
                    f"It has {listed(known)}."
                )


def frame_of(table: Any) -> Any:
    """Return a table as a frame of narwhals; raise if narwhals does not know it."""
    import narwhals as nw

    try:
        return nw.from_native(table)
    except TypeError as error:
        raise TypeError(
            "A table is a frame that narwhals knows, such as a DuckDB relation, a polars frame or "
            f"a pandas DataFrame, got {type(table).__name__}. Read a file first: "
            "pandas.read_csv(path), or duckdb.read_parquet(path)."
        ) from error


def only_where(frame: Any, where: Any) -> Any:
    """Return the rows of a frame with some levels, or for which an expression of narwhals holds."""
    import narwhals as nw

    if not isinstance(where, Mapping):
        if not isinstance(where, nw.Expr):
            raise TypeError(
                "where= is a dict of columns and levels, such as {'year': 2026}, or an expression "
                f"such as narwhals.col('year') >= 2025, got {type(where).__name__}."
            )
        return frame.filter(where)
    schema = frame.collect_schema()
    for name, wanted in where.items():
        if name not in schema:
            raise ValueError(
                f"where= names {name!r}, which is no column of the table."
                f"{did_you_mean(name, schema)} It has {listed(schema.names())}."
            )
        own, is_float = nw.col(name), schema[name].is_float()
        levels = [_typed(level, schema[name]) for level in levels_of(wanted)]
        known = [level for level in levels if level is not None]
        kept = own.is_in(known) if known else nw.lit(False)
        if len(known) < len(levels):
            kept = kept | (own.is_null() | own.is_nan() if is_float else own.is_null())
        frame = frame.filter(kept)
    return frame


def levels_of(wanted: Any) -> list[Any]:
    """Return the levels that ``where`` asks for: one, or those of a list or an array."""
    is_one = isinstance(wanted, str | bytes) or not hasattr(wanted, "__iter__")
    return [wanted] if is_one else [*wanted]


def _typed(level: Any, dtype: Any) -> Any:
    """Return a level as the type of its column; missing ones are None."""
    level = level.item() if isinstance(level, np.generic) else level
    if level is None or level != level:
        return None
    is_number = isinstance(level, int | float)  # bool is one
    if dtype.is_float() and is_number:
        return float(level)
    if dtype.is_integer() and is_number and level == int(level):
        return int(level)
    return level


def _n_distinct(frame: Any) -> int:
    """Count the different rows of a frame."""
    import narwhals as nw

    return int(collected(frame.unique().select(nw.len().alias(N)))[N].iloc[0])


def collected(frame: Any) -> pd.DataFrame:
    """Let the engine compute a frame, and fetch it."""
    try:
        found: pd.DataFrame = frame.collect().to_pandas()
    except Exception as error:
        raise RuntimeError(f"The engine did not count the rows of the table: {error}") from error
    return found


def check_unchanged(before: Any, now: Any) -> None:
    """Raise if two passes over a table have counted different numbers of rows."""
    if int(before) != int(now):
        raise RuntimeError(
            f"The table had {int(before):,} rows in one pass and {int(now):,} in the next: rows "
            "arrive while it is read. Pass rows that stay, such as those before a date (where=)."
        )
