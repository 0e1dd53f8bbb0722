"""Tables in engines: rows are counted where they are, and only counts travel.

``Cohort.from_table`` makes an :class:`EngineTable` of a lazy table of any library that narwhals
knows (DuckDB, polars, Spark, Ibis), and :meth:`EngineTable.read` fetches few rows that stand for
all. A *kind* is a combination of labels, groups and strata. What is fetched depends on the columns:

- labels only: for each kind the number of its rows, and the sums of their weights and of the
  squares. Rates, differences, tests and audits depend on nothing else.
- scores: the same for each kind and score, if there are at most MOST_KINDS scores. Otherwise scores
  are put into bins as those of Dask collections are (``weighted_rows.py``), by a
  :class:`~skfair.groups.score_scale.Scale`.
- units: units with equal rows are counted together, see :meth:`EngineTable._by_unit`.
- predictions or outcomes that are numbers which hardly repeat: the groups only. Audits then ask for
  :meth:`EngineTable.sums` of what they measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups.levels import number_tuples
from skfair.groups.outcomes import explaining_missing
from skfair.groups.row_units import RowUnits
from skfair.groups.score_bins import N_BINS, Bins
from skfair.groups.score_scale import PIECES, Scale
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
_PROBED = 2 * MOST_KINDS
# A scale is found in _PASSES at most. It is good enough if no bin of several scores has more than
# _MOST_SHARES times its share.
_PASSES, _MOST_SHARES = 4, 8
# Names of the columns of sums, which no column of a user has
_N, _WEIGHT, _SQUARES, _LEAST, _MISSING, _SCORE, _BIN, _LOW, _HIGH, _CELLS = (
    f"__skfair_{name}"
    for name in (
        *("n", "weight", "squares", "least", "missing"),
        *("score", "bin", "low", "high", "cells"),
    )
)


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

    def read(self, ends: Sequence[float] = ()) -> tuple[pd.DataFrame, Any, Any, Any, Kinds]:
        """Fetch few rows that stand for all.

        Returns the columns of labels, groups and strata, the scores, the weights, the units, and
        what the rows stand for. If scores are put into bins, a bin ends at each score in ``ends``.
        """
        if self.y_score is not None and self.units is not None:
            raise TypeError(
                "Units with scores are read in memory, because units hardly have the same scores. "
                "Pass the rows, as in Cohort(...), or decisions in place of scores."
            )
        # Labels of more kinds are numbers, also if the first rows do not show it.
        found = None if self._have_numbers() else self._fetched(self.names)
        if found is None or (len(found) > MOST_KINDS and self._are_numeric()):
            if self.y_score is not None or self.units is not None:
                raise TypeError(
                    f"{listed([*self.labels.values()])} are numbers that hardly repeat, which are "
                    "audited in an engine without scores and units. Leave them out, or pass the "
                    "rows, as in Cohort(...)."
                )
            found = self._few_kinds(self._fetched(self.cells), self.cells)
            counts, weights, squares = self._sums(found)
            numbers = {name: np.full(len(found), np.nan) for name in self.labels.values()}
            kinds = Kinds(counts, squares, self, are_numbers=True)
            return found.assign(**numbers), None, weights, None, kinds
        found = self._few_kinds(found, self.names)
        counts, weights, squares = self._sums(found)
        self._check_labels(found, counts)
        if self.y_score is not None:
            return self._scored(found, counts, ends)
        if self.units is not None:
            return self._by_unit(found, counts)
        return found, None, weights, None, Kinds(counts, squares, self)

    def sums(
        self, expressions: Mapping[str, Any], by: Mapping[str, Any], kinds: Kinds
    ) -> pd.DataFrame:
        """Fetch sums of expressions by the columns of groups and strata, and by more expressions.

        The sums are called as the expressions, and the number of rows is in the column "n".
        """
        import narwhals as nw

        every = {**expressions, **by}
        frame = self.frame.with_columns(**{f"__skfair_{name}": own for name, own in every.items()})
        keys = [*self.cells, *(f"__skfair_{name}" for name in by)]
        sums = [nw.col(f"__skfair_{name}").sum() for name in expressions]
        found = _collected(frame.group_by(*keys).agg(nw.len().alias(_N), *sums))
        check_unchanged(kinds.counts.sum(), found[_N].sum())
        return found.rename(columns=lambda name: str(name).removeprefix("__skfair_"))

    def overview(self, expressions: Mapping[str, Any], ends: Mapping[str, str]) -> dict[str, float]:
        """Fetch the weighted means of expressions over rows with weight; for ``ends`` min or max.

        Raises if one is missing or infinite in some row.
        """
        import narwhals as nw

        frame = self.frame.with_columns(
            **{f"__skfair_{name}": own.cast(nw.Float64) for name, own in expressions.items()}
        )
        columns = {name: nw.col(f"__skfair_{name}") for name in expressions}
        bad = {
            name: (own.is_null() | ~own.is_finite()).cast(nw.Int64).sum().alias(name)
            for name, own in columns.items()
        }
        n_bad = _collected(frame.select(*bad.values())).iloc[0].fillna(0)
        if n_bad.any():
            raise ValueError(
                f"{listed([*self.labels.values()])} are missing, NaN or infinite in some rows, up "
                f"to {int(n_bad.max()):,} of them. Leave these rows out of the table (where=)."
            )
        frame = frame.with_columns(self.weight.cast(nw.Float64).alias(_WEIGHT))
        frame = frame.filter(nw.col(_WEIGHT) > 0)
        asked = [
            getattr(own, ends[name])().alias(name)
            if name in ends
            else (own * nw.col(_WEIGHT)).sum().alias(name)
            for name, own in columns.items()
        ]
        found = _collected(frame.select(*asked, nw.col(_WEIGHT).sum())).iloc[0]
        if not found[_WEIGHT] > 0:
            raise ValueError("sample_weight is zero for every row.")
        return {
            name: float(found[name]) / (1.0 if name in ends else float(found[_WEIGHT]))
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

    def _have_numbers(self) -> bool:
        """Whether the labels have more different numbers than kinds may have.

        Other columns with that many values raise, before all of their rows are grouped.
        """
        first = self.frame.select(*self.names).head(_PROBED)
        if int(_collected(first.unique().select(_length()))[_N].iloc[0]) <= MOST_KINDS:
            return False
        sizes = {
            name: int(_collected(first.select(name).unique().select(_length()))[_N].iloc[0])
            for name in self.names
        }
        largest = max(sizes, key=lambda name: sizes[name])
        if largest not in self.labels.values() or not self._are_numeric():
            raise ValueError(self._too_many(self.names, f"{largest!r}"))
        return True

    def _are_numeric(self) -> bool:
        """Whether the labels have the type of numbers."""
        schema = self.frame.collect_schema()
        return all(schema[name].is_numeric() for name in self.labels.values())

    def _too_many(self, names: list[str], which: str = "one of them") -> str:
        return (
            f"The columns {listed(names)} have more than {MOST_KINDS:,} combinations of values, so "
            f"{which} looks like a number or an identifier. Bin it, or leave it out."
        )

    def _weighed(self) -> Any:
        """Return the frame with the columns that are added up."""
        import narwhals as nw

        if self.sample_weight is None:
            return self.frame
        weight = nw.col(self.sample_weight).cast(nw.Float64)
        return self.frame.with_columns(
            weight.alias(_WEIGHT),
            (weight * weight).alias(_SQUARES),
            weight.alias(_LEAST),
            weight.is_null().cast(nw.Int64).alias(_MISSING),
        )

    def _fetched(self, keys: Sequence[str]) -> pd.DataFrame:
        """Count the rows, and add up their weights, by some columns."""
        import narwhals as nw

        frame, sums = self._weighed(), [nw.len().alias(_N)]
        if self.sample_weight is not None:
            sums += [nw.col(own).sum() for own in (_WEIGHT, _SQUARES, _MISSING)]
            sums += [nw.col(_LEAST).min()]
        counted = frame.group_by(*keys).agg(*sums).sort(*keys, nulls_last=True)
        return _collected(counted.head(MOST_KINDS + 1))

    def _few_kinds(self, found: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
        """Return kinds; raise if there are too many or none."""
        if len(found) > MOST_KINDS:
            raise ValueError(self._too_many([*keys]))
        if not len(found):
            raise ValueError("The table has no rows.")
        return found

    def _sums(self, found: pd.DataFrame) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the number of rows, the sum of the weights, and of their squares, of each kind."""
        counts = found[_N].to_numpy(np.int64)
        if self.sample_weight is None:
            return counts, counts.astype(np.float64), counts.astype(np.float64)
        weights, squares = (found[own].to_numpy(np.float64) for own in (_WEIGHT, _SQUARES))
        problem, missing = "", int(found[_MISSING].sum()) if _MISSING in found else 0
        if missing:
            problem = f"has {plural(missing, 'missing value')}"
        elif not np.isfinite(weights).all():
            problem = "has values that are NaN or infinite"
        elif _LEAST in found and found[_LEAST].min() < 0:
            problem = "has negative numbers"
        if problem:
            raise ValueError(
                f"sample_weight={self.sample_weight!r} {problem}. Weights are 0 or larger."
            )
        return counts, weights, squares

    def _check_labels(self, found: pd.DataFrame, counts: IntArray) -> None:
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

    def _scored(
        self, kinds: pd.DataFrame, counts: IntArray, ends: Sequence[float]
    ) -> tuple[pd.DataFrame, Any, Any, Any, Kinds]:
        """Fetch rows by kind and score, or by kind and bin of the score."""
        import narwhals as nw

        assert self.y_score is not None
        score = nw.col(self.y_score).cast(nw.Float64)
        frame = self._weighed().with_columns(score.alias(_SCORE))
        bad = (~nw.col(_SCORE).is_finite()).cast(nw.Int64).alias(_BIN)
        missing = nw.col(_SCORE).is_null().cast(nw.Int64).alias(_MISSING)
        checked = frame.select(_SCORE).with_columns(bad, missing)
        ends_of = nw.col(_SCORE).min().alias(_LOW), nw.col(_SCORE).max().alias(_HIGH)
        of_all = _collected(checked.select(nw.col(_BIN).sum(), nw.col(_MISSING).sum(), *ends_of))
        for own, what in ((_MISSING, "missing"), (_BIN, "NaN or infinite")):
            if n_bad := int(of_all[own].fillna(0).iloc[0]):
                raise ValueError(
                    f"y_score={self.y_score!r} is {what} in {n_bad:,} of {counts.sum():,} rows. "
                    "Leave these rows out of the table (where=)."
                )
        sums = [nw.len().alias(_N)]
        if self.sample_weight is not None:
            sums += [nw.col(own).sum() for own in (_WEIGHT, _SQUARES)]
        probed = frame.select(_SCORE).head(_PROBED).unique().head(MOST_KINDS + 1)
        first = _collected(probed)[_SCORE].to_numpy(np.float64)
        if first.size <= MOST_KINDS:
            by_score = frame.group_by(*self.names, _SCORE).agg(*sums)
            found = _collected(by_score.head(MOST_ROWS + 1))
            if len(found) <= MOST_ROWS and found[_SCORE].nunique() <= MOST_KINDS:
                return self._few(found, counts.sum(), found[_SCORE].to_numpy(np.float64))
        n_bins = max(min(N_BINS, MOST_ROWS // len(kinds)), 2)
        scale = self._scale(frame, of_all, first, len(kinds), counts.sum())
        place = (scale.expression(nw.col(_SCORE)) * n_bins - 0.5).round(0)
        for end in ends:  # rows above the end are in bins of their own
            place = place * 2 + (nw.col(_SCORE) > float(end)).cast(nw.Int64)
        binned = frame.with_columns(place.cast(nw.Int64).alias(_BIN))
        weight = nw.lit(1.0) if self.sample_weight is None else nw.col(_WEIGHT)
        binned = binned.with_columns(
            (weight * nw.col(_SCORE)).alias(_CELLS),
            nw.col(_SCORE).alias(_LOW),
            nw.col(_SCORE).alias(_HIGH),
        )
        sums += [nw.col(_CELLS).sum(), nw.col(_LOW).min(), nw.col(_HIGH).max()]
        found = _collected(binned.group_by(*self.names, _BIN).agg(*sums))
        _, number = np.unique(found[_BIN].to_numpy(), return_inverse=True)
        low, high = np.full(number.max() + 1, np.inf), np.full(number.max() + 1, -np.inf)
        lowest, highest = (found[own].to_numpy(np.float64) for own in (_LOW, _HIGH))
        np.minimum.at(low, number, lowest)
        np.maximum.at(high, number, highest)
        mass = found[_N if self.sample_weight is None else _WEIGHT].to_numpy(np.float64)
        moments = found[_CELLS].to_numpy(np.float64)
        scores = np.where(mass > 0, moments / np.where(mass > 0, mass, 1.0), lowest)
        scores = np.clip(scores, lowest, highest)  # by rounding it may be outside
        return self._few(found, counts.sum(), scores, Bins(number, low, high))

    def _few(
        self, found: pd.DataFrame, n_before: int, scores: FloatArray, bins: Bins | None = None
    ) -> tuple[pd.DataFrame, Any, Any, Any, Kinds]:
        """Return fetched rows with scores, in an order that does not depend on the engine."""
        kind = found.groupby(self.names, dropna=False).ngroup().to_numpy()
        order = np.lexsort((scores, kind))
        found, scores = found.iloc[order].reset_index(drop=True), scores[order]
        counts, weights, squares = self._sums(found)
        check_unchanged(n_before, counts.sum())
        of_rows = bins and bins._replace(number=bins.number[order])
        return found[self.names], scores, weights, None, Kinds(counts, squares, self, of_rows)

    def _scale(
        self, frame: Any, of_all: pd.DataFrame, first: FloatArray, n_kinds: int, n_rows: int
    ) -> Scale:
        """Find a scale on which all kinds together are spread evenly, each with the same weight.

        It begins with quantiles of the ``first`` scores, which need not be like the others.
        """
        import narwhals as nw

        ends = of_all[[_LOW, _HIGH]].to_numpy(np.float64)[0]
        knots = np.unique([*ends, *np.quantile(first, np.linspace(0, 1, PIECES + 1))])
        scale = Scale(knots, np.linspace(0, 1, knots.size))
        n_coarse = int(np.clip(MOST_ROWS // 4 // n_kinds, 2 * PIECES, min(N_BINS, 1 << 12)))
        for _ in range(_PASSES):
            place = (scale.expression(nw.col(_SCORE)) * n_coarse - 0.5).round(0)
            coarse = frame.with_columns(
                place.cast(nw.Int64).alias(_BIN),
                nw.col(_SCORE).alias(_LOW),
                nw.col(_SCORE).alias(_HIGH),
            )
            sums = [nw.len().alias(_N), nw.col(_LOW).min(), nw.col(_HIGH).max()]
            found = _collected(coarse.group_by(*self.names, _BIN).agg(*sums))
            check_unchanged(n_rows, found[_N].sum())
            kind = found.groupby(self.names, dropna=False, sort=False).ngroup().to_numpy()
            n = found[_N].to_numpy(np.float64)
            found = found.assign(**{_WEIGHT: n / np.bincount(kind, n)[kind] / n_kinds})
            by_bin = found.groupby(_BIN).agg({_LOW: "min", _HIGH: "max", _WEIGHT: "sum"})
            low, high, shares = by_bin[[_LOW, _HIGH, _WEIGHT]].to_numpy(np.float64).T
            scale = Scale.of_shares(low, high, shares)
            if not np.any((low < high) & (shares > _MOST_SHARES / n_coarse)):
                break
        return scale

    def _by_unit(
        self, found: pd.DataFrame, counts: IntArray
    ) -> tuple[pd.DataFrame, Any, Any, Any, Kinds]:
        """Fetch rows of units, once for all units with equal rows.

        Rows of two units are equal here if they are in one cell, a combination of groups and
        strata, and both have as many, with equal sums of weights, of each combination of labels.
        Units with rows in several cells are fetched one by one, at most MOST_ROWS of their parts.
        """
        import narwhals as nw

        assert self.units is not None
        missing = nw.col(self.units).is_null().cast(nw.Int64).alias(_MISSING)
        n_missing = int(_collected(self.frame.select(missing.sum()))[_MISSING].iloc[0])
        if n_missing:
            raise ValueError(
                f"units={self.units!r} has {plural(n_missing, 'missing value')}: of these rows it "
                "is not known to whom they belong. Leave them out of the table."
            )
        labels = list(dict.fromkeys(self.labels.values()))
        combinations = found[labels].drop_duplicates().reset_index(drop=True)
        powers = [] if self.sample_weight is None else [_WEIGHT, _SQUARES]
        added = {}
        for i, row in enumerate(combinations.itertuples(index=False)):
            is_own = nw.lit(True)
            for name, value in zip(labels, row, strict=True):
                own = value.item() if isinstance(value, np.generic) else value
                is_own = is_own & (nw.col(name) == own)
            added[f"{_N}_{i}"] = is_own.cast(nw.Int64)
            for power in powers:
                added[f"{power}_{i}"] = nw.when(is_own).then(nw.col(power)).otherwise(0.0)
        frame = self._weighed().with_columns(**added)
        sums = [nw.col(name).sum() for name in added]
        parts = frame.group_by(self.units, *self.cells).agg(*sums)
        n_cells = parts.group_by(self.units).agg(nw.len().alias(_CELLS))
        parts = parts.join(n_cells, on=self.units, how="inner")
        keys = [*self.cells, *added]
        inside = parts.filter(nw.col(_CELLS) == 1).group_by(*keys).agg(nw.len().alias(_N))
        across = parts.filter(nw.col(_CELLS) > 1).select(self.units, *keys)
        fetched = [_collected(own.head(MOST_ROWS + 1)) for own in (inside, across)]
        if max(map(len, fetched)) > MOST_ROWS:
            why = "with different rows" if len(fetched[0]) > MOST_ROWS else "in several groups"
            raise ValueError(
                f"The table has more than {MOST_ROWS:,} units {why}, which are counted one by one. "
                "Compare fewer groups at a time, or pass a sample of the units in memory."
            )
        own, parts_across = (part.sort_values(keys, ignore_index=True) for part in fetched)
        n_equal = np.append(own[_N], np.ones(len(parts_across))).astype(np.float64)
        owners, levels = factorize(parts_across[self.units])
        owners = np.append(np.arange(len(own)), len(own) + np.asarray(owners))
        together = _stacked([part[keys] for part in (own, parts_across) if len(part)])
        kept: list[Any] = []
        for i in range(len(combinations)):
            n = together[f"{_N}_{i}"].to_numpy(np.float64) * n_equal
            rows = np.flatnonzero(n)
            columns = together[self.cells].iloc[rows].reset_index(drop=True)
            for name in labels:
                columns[name] = combinations[name].iloc[np.full(rows.size, i)].to_numpy()
            totals = [n, *(together[f"{own}_{i}"].to_numpy(np.float64) * n_equal for own in powers)]
            kept.append((columns, owners[rows], [total[rows] for total in totals]))
        columns = _stacked([part[0] for part in kept])
        for name in labels:
            columns[name] = columns[name].astype(found[name].dtype)
        codes = np.concatenate([part[1] for part in kept])
        n, *others = (np.concatenate(own) for own in zip(*(part[2] for part in kept), strict=True))
        check_unchanged(counts.sum(), n.sum())
        weights, squares = others or (n, n)
        times = np.append(own[_N].to_numpy(np.float64), np.ones(len(levels)))
        units = RowUnits(codes, times.size, times)
        return columns[self.names], None, weights, units, Kinds(n.astype(np.int64), squares, self)


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
            "table must be a frame that narwhals knows, such as a DuckDB relation, a polars frame "
            f"or a pandas DataFrame, got {type(table).__name__}."
        ) from error


def only_where(frame: Any, where: Any) -> Any:
    """Return the rows of a frame with some levels, or for which an expression of narwhals holds."""
    import narwhals as nw

    if not isinstance(where, Mapping):
        return frame.filter(where)
    schema = frame.collect_schema()
    for name, wanted in where.items():
        if name not in schema:
            raise ValueError(
                f"where= names {name!r}, which is no column of the table."
                f"{did_you_mean(name, schema)} It has {listed(schema.names())}."
            )
        several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
        frame = frame.filter(nw.col(name).is_in([*several]))
    return frame


def _length() -> Any:
    import narwhals as nw

    return nw.len().alias(_N)


def _collected(frame: Any) -> pd.DataFrame:
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


def _stacked(parts: list[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(parts, ignore_index=True)
