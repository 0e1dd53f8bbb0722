"""Scores in an engine: counted one by one, or in bins on a scale.

An engine has no sketches of quantiles as Dask collections do (``weighted_rows.py``), but it
computes formulas. So :func:`read_scores` asks for the rows in bins on a first :class:`Scale`, and
makes a better one of what came back: about the share of the rows below each score. On a good scale
all bins are of equal width, and have about as many rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups import engine_tables
from skfair.groups.engine_tables import (
    BIN,
    HIGH,
    LOW,
    MISSING,
    MOMENT,
    SCORE,
    SQUARES,
    WEIGHT,
    EngineTable,
    Fetched,
    Kinds,
    N,
    check_unchanged,
    collected,
)
from skfair.groups.score_bins import N_BINS, Bins

if TYPE_CHECKING:
    import pandas as pd

# About how many pieces a scale has, and in how many passes at most it is found. It is good enough
# if no bin of several scores has more than _MOST_SHARES times its share.
PIECES, _PASSES, _MOST_SHARES = 64, 4, 8


class Scale(NamedTuple):
    """A growing function of the scores with values from 0 to 1, made of straight pieces."""

    scores: FloatArray  # ascending
    places: FloatArray  # the value at each of these

    def expression(self, score: Any, first: int = 0, last: int | None = None) -> Any:
        """Return the function as an expression of narwhals."""
        import narwhals as nw

        last = len(self.scores) - 1 if last is None else last
        if last - first < 2:
            start, end = self.scores[[first, last]].tolist()
            low, high = self.places[[first, last]].tolist()
            # Scores may differ by less than 1e-300, so that the slope would be infinite.
            slope = (high - low) / (end - start) if end - start > 1e-300 else 0.0
            return (score - start) * slope + low
        middle = (first + last) // 2
        below, above = self.expression(score, first, middle), self.expression(score, middle, last)
        is_below = score <= float(self.scores[middle])
        return nw.when(is_below).then(below).otherwise(above)

    @classmethod
    def of_shares(cls, low: FloatArray, high: FloatArray, shares: FloatArray) -> Scale:
        """Return the scale of bins, which are ascending and disjoint; shares add up to 1.

        Neighbouring bins become one piece until it has the share 1 / PIECES. A bin with more is a
        piece of its own, however narrow it is. Places between the pieces are left free, so that a
        score of many rows at the end of a piece is in another bin than the next score.
        """
        pieces, share = [[low[0], high[0]]], shares[0]
        places = [0.0]
        for start, end, own in zip(low[1:], high[1:], shares[1:], strict=True):
            if share + own > 1 / PIECES:
                places.append(places[-1] + share)
                pieces.append([start, end])
                share = 0.0
            pieces[-1][1], share = end, share + own
        places.append(1.0)
        scores, values = [], []
        for (start, end), at, until in zip(pieces, places, places[1:], strict=False):
            free = (until - at) / 10
            scores += [start, end] if end > start else [start]
            values += [at + free, until - free] if end > start else [(at + until) / 2]
        return cls(np.array(scores), np.array(values))


def read_scores(
    table: EngineTable, kinds: pd.DataFrame, counts: IntArray, ends: Sequence[float]
) -> Fetched:
    """Fetch rows by kind and score, or by kind and bin of the score."""
    import narwhals as nw

    assert table.y_score is not None
    score = nw.col(table.y_score).cast(nw.Float64)
    frame = table.weighed().with_columns(score.alias(SCORE))
    bad = (~nw.col(SCORE).is_finite()).cast(nw.Int64).alias(BIN)
    missing = nw.col(SCORE).is_null().cast(nw.Int64).alias(MISSING)
    checked = frame.select(SCORE).with_columns(bad, missing)
    ends_of = nw.col(SCORE).min().alias(LOW), nw.col(SCORE).max().alias(HIGH)
    of_all = collected(checked.select(nw.col(BIN).sum(), nw.col(MISSING).sum(), *ends_of))
    for own, what in ((MISSING, "missing"), (BIN, "NaN or infinite")):
        if n_bad := int(of_all[own].fillna(0).iloc[0]):
            raise ValueError(
                f"y_score={table.y_score!r} is {what} in {n_bad:,} of {counts.sum():,} rows. "
                "Leave these rows out of the table (where=)."
            )
    sums = [nw.len().alias(N)]
    if table.sample_weight is not None:
        sums += [nw.col(own).sum() for own in (WEIGHT, SQUARES)]
    probed = (
        frame.select(SCORE).head(engine_tables.PROBED).unique().head(engine_tables.MOST_KINDS + 1)
    )
    first = collected(probed)[SCORE].to_numpy(np.float64)
    if first.size <= engine_tables.MOST_KINDS:
        by_score = frame.group_by(*table.names, SCORE).agg(*sums)
        found = collected(by_score.head(engine_tables.MOST_ROWS + 1))
        if (
            len(found) <= engine_tables.MOST_ROWS
            and found[SCORE].nunique() <= engine_tables.MOST_KINDS
        ):
            return _few(table, found, counts.sum(), found[SCORE].to_numpy(np.float64))
    n_bins = max(min(N_BINS, engine_tables.MOST_ROWS // len(kinds)), 2)
    scale = _scale(table, frame, of_all, first, len(kinds), counts.sum())
    place = (scale.expression(nw.col(SCORE)) * n_bins - 0.5).round(0)
    for end in ends:  # rows above the end are in bins of their own
        place = place * 2 + (nw.col(SCORE) > float(end)).cast(nw.Int64)
    binned = frame.with_columns(place.cast(nw.Int64).alias(BIN))
    weight = nw.lit(1.0) if table.sample_weight is None else nw.col(WEIGHT)
    binned = binned.with_columns(
        (weight * nw.col(SCORE)).alias(MOMENT),
        nw.col(SCORE).alias(LOW),
        nw.col(SCORE).alias(HIGH),
    )
    sums += [nw.col(MOMENT).sum(), nw.col(LOW).min(), nw.col(HIGH).max()]
    found = collected(binned.group_by(*table.names, BIN).agg(*sums))
    _, number = np.unique(found[BIN].to_numpy(), return_inverse=True)
    low, high = np.full(number.max() + 1, np.inf), np.full(number.max() + 1, -np.inf)
    lowest, highest = (found[own].to_numpy(np.float64) for own in (LOW, HIGH))
    np.minimum.at(low, number, lowest)
    np.maximum.at(high, number, highest)
    mass = found[N if table.sample_weight is None else WEIGHT].to_numpy(np.float64)
    moments = found[MOMENT].to_numpy(np.float64)
    scores = np.where(mass > 0, moments / np.where(mass > 0, mass, 1.0), lowest)
    scores = np.clip(scores, lowest, highest)  # by rounding it may be outside
    return _few(table, found, counts.sum(), scores, Bins(number, low, high))


def _few(
    table: EngineTable,
    found: pd.DataFrame,
    n_before: int,
    scores: FloatArray,
    bins: Bins | None = None,
) -> Fetched:
    """Return fetched rows with scores, in an order that does not depend on the engine."""
    kind = found.groupby(table.names, dropna=False).ngroup().to_numpy()
    order = np.lexsort((scores, kind))
    found, scores = found.iloc[order].reset_index(drop=True), scores[order]
    counts, weights, squares = table.sums_of(found)
    check_unchanged(n_before, counts.sum())
    if n_bad := counts[~np.isfinite(scores)].sum():  # see open_table in report/files/databases.py
        raise ValueError(
            f"y_score={table.y_score!r} is NaN or infinite in {n_bad:,} of {n_before:,} rows. "
            "Leave these rows out of the table (where=)."
        )
    of_rows = bins and bins._replace(number=bins.number[order])
    return Fetched(found[table.names], Kinds(counts, squares, table, of_rows), weights, scores)


def _scale(
    table: EngineTable,
    frame: Any,
    of_all: pd.DataFrame,
    first: FloatArray,
    n_kinds: int,
    n_rows: int,
) -> Scale:
    """Find a scale on which all kinds together are spread evenly, each with the same weight.

    It begins with quantiles of the ``first`` scores, which need not be like the others.
    """
    import narwhals as nw

    ends = of_all[[LOW, HIGH]].to_numpy(np.float64)[0]
    knots = np.unique([*ends, *np.quantile(first, np.linspace(0, 1, PIECES + 1))])
    scale = Scale(knots, np.linspace(0, 1, knots.size))
    n_coarse = int(
        np.clip(engine_tables.MOST_ROWS // 4 // n_kinds, 2 * PIECES, min(N_BINS, 1 << 12))
    )
    for _ in range(_PASSES):
        place = (scale.expression(nw.col(SCORE)) * n_coarse - 0.5).round(0)
        coarse = frame.with_columns(
            place.cast(nw.Int64).alias(BIN),
            nw.col(SCORE).alias(LOW),
            nw.col(SCORE).alias(HIGH),
        )
        sums = [nw.len().alias(N), nw.col(LOW).min(), nw.col(HIGH).max()]
        found = collected(coarse.group_by(*table.names, BIN).agg(*sums))
        check_unchanged(n_rows, found[N].sum())
        kind = found.groupby(table.names, dropna=False, sort=False).ngroup().to_numpy()
        n = found[N].to_numpy(np.float64)
        found = found.assign(**{WEIGHT: n / np.bincount(kind, n)[kind] / n_kinds})
        by_bin = found.groupby(BIN).agg({LOW: "min", HIGH: "max", WEIGHT: "sum"})
        low, high, shares = by_bin[[LOW, HIGH, WEIGHT]].to_numpy(np.float64).T
        scale = Scale.of_shares(low, high, shares)
        if not np.any((low < high) & (shares > _MOST_SHARES / n_coarse)):
            break
    return scale
