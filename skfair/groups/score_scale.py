"""The scale on which scores in an engine are put into bins.

An engine has no sketches of quantiles, but it computes formulas. So :class:`EngineTable`
(``engine_tables.py``) asks for the rows in bins on a first scale, and makes a better one of what
came back: about the share of the rows below each score. On a good scale all bins are of equal
width, and have about as many rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray

# About how many pieces a scale has
PIECES = 64


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
            slope = (high - low) / (end - start) if end > start else 0.0
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
