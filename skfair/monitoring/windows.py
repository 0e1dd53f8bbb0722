r"""Evidence that a difference of rates exceeds a limit, which may be looked at after every batch.

Rows of a pair of groups are collected into small blocks. The difference D of the rates of a block
is nearly normal with a variance v that is known from earlier blocks. With :math:`A = \sum D / v`
and :math:`I = \sum 1 / v` over the blocks since some start, and :math:`S = A - limit \cdot I`,

.. math:: E = \frac{2}{\sqrt{1 + \rho^2 I}} \exp\Big(\frac{\rho^2 S^2}{2 (1 + \rho^2 I)}\Big)
          \Phi\Big(\frac{\rho S}{\sqrt{1 + \rho^2 I}}\Big)

has mean 1 at most as long as the difference is within the limit (Robbins' half-normal mixture), so
a weighted mean of such numbers over many starts exceeds 1 / alpha with probability alpha at most,
however often it is looked at. Starts at every batch find a change soon after it happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import special

from skfair._typing import FloatArray, IntArray

# Shares of the weight: of the first start, and of later ones within the horizon; the rest is for
# those beyond it.
_FIRST, _WITHIN = 0.1, 0.85
# Earlier blocks count this much less with each new one, in the variance.
_DECAY = 0.9


def start_weights(starts: IntArray, horizon: int) -> FloatArray:
    """Return the weights of starts, numbered by batch; those of all numbers add up to 1."""
    later = np.maximum(starts, horizon + 1).astype(np.float64)
    beyond = (1 - _FIRST - _WITHIN) * horizon / (later * (later - 1))
    return np.where(starts == 0, _FIRST, np.where(starts <= horizon, _WITHIN / horizon, beyond))


def log_evidence(sums: FloatArray, information: FloatArray, rho: float | FloatArray) -> FloatArray:
    """Return log E, given S and I."""
    scale = np.sqrt(1 + rho**2 * information)
    z = rho * sums / scale
    return np.asarray(np.log(2 / scale) + 0.5 * z**2 + special.log_ndtr(z))


@dataclass(eq=False)
class Windows:
    """Sums over blocks since each start, for every pair of groups and rate.

    Attributes
    ----------
    n_pairs : int
        Number of pairs, over all rates.
    horizon : int
        Number of batches among which most of the weight is shared, and of the starts that are kept.
    starts : ndarray of shape (n_starts,)
        Number of the batch that each start came before.
    weighted, information : ndarray of shape (n_starts, n_pairs)
        A and I.
    waiting : ndarray of shape (n_pairs, 2, 2)
        Successes and rows of both groups that are not yet in a block.
    known : ndarray of shape (n_pairs, 2, 2)
        The same of earlier blocks, fading.
    """

    n_pairs: int
    horizon: int
    starts: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    weighted: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    information: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    waiting: FloatArray = field(default_factory=lambda: np.empty((0, 2, 2)))
    known: FloatArray = field(default_factory=lambda: np.empty((0, 2, 2)))

    def __post_init__(self) -> None:
        if not self.waiting.size:
            self.weighted = np.empty((0, self.n_pairs))
            self.information = np.empty((0, self.n_pairs))
            self.waiting = np.zeros((self.n_pairs, 2, 2))
            self.known = np.zeros((self.n_pairs, 2, 2))

    def start(self, number: int) -> None:
        """Add a start before batch ``number``; the oldest but the first is forgotten."""
        nothing = np.zeros((1, self.n_pairs))
        self.starts = np.append(self.starts, number)
        self.weighted = np.concatenate([self.weighted, nothing])
        self.information = np.concatenate([self.information, nothing])
        if self.starts.size > self.horizon + 1:
            kept = np.delete(np.arange(self.starts.size), 1)
            self.starts = self.starts[kept]
            self.weighted, self.information = self.weighted[kept], self.information[kept]

    def add(self, counts: FloatArray, min_rows: int) -> None:
        """Add successes and rows of both groups of each pair, shape (n_pairs, 2, 2)."""
        self.waiting += counts
        full = np.flatnonzero(self.waiting[:, :, 1].min(axis=1) >= min_rows)
        if not full.size:
            return
        block = self.waiting[full]
        rates = block[:, :, 0] / block[:, :, 1]
        # Rates that the variance is made of: of this block and of earlier ones, whichever vary
        # more, so that a change of all rates is not taken for one of their difference.
        near = (block[:, :, 0] + 0.5) / (block[:, :, 1] + 1)
        pooled = (self.known[full, :, 0] + block[:, :, 0] + 0.5) / (
            self.known[full, :, 1] + block[:, :, 1] + 1
        )
        spread = np.maximum(pooled * (1 - pooled), 0.9 * near * (1 - near))
        variance = (spread / block[:, :, 1]).sum(axis=1)
        difference = rates[:, 0] - rates[:, 1]
        self.weighted[:, full] += difference / variance
        self.information[:, full] += 1 / variance
        self.known[full] = _DECAY * self.known[full] + block
        self.waiting[full] = 0.0

    def log_total(
        self, limit: float | FloatArray, rho: float | FloatArray
    ) -> tuple[float, int, int, float]:
        """Return the log of the mean evidence, and where it is largest: start, pair, direction.

        Limit and rho may be numbers of each pair.
        """
        share = start_weights(self.starts, self.horizon)[:, None] / (2 * self.n_pairs)
        found = []
        for sign in (1.0, -1.0):
            sums = sign * self.weighted - limit * self.information
            found.append(np.log(share) + log_evidence(sums, self.information, rho))
        both = np.stack(found)
        place = [int(one) for one in np.unravel_index(int(both.argmax()), both.shape)]
        return float(special.logsumexp(both)), place[1], place[2], 1.0 - 2.0 * place[0]

    def estimate(self, start: int, pair: int) -> tuple[float, float]:
        """Return the difference since a start, and its standard error."""
        information = self.information[start, pair]
        if information <= 0:
            return np.nan, np.nan
        return float(self.weighted[start, pair] / information), float(information**-0.5)

    def merged(self, other: Windows) -> Windows:
        """Return the sums over the rows of both, which were watched side by side."""
        starts = np.union1d(self.starts, other.starts)
        made = Windows(self.n_pairs, self.horizon)
        made.starts = starts
        made.weighted, made.information = np.zeros((2, starts.size, self.n_pairs))
        for one in (self, other):
            at = np.searchsorted(starts, one.starts)
            made.weighted[at] += one.weighted
            made.information[at] += one.information
        made.waiting, made.known = self.waiting + other.waiting, self.known + other.known
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        names = ("starts", "weighted", "information", "waiting", "known")
        return {name: getattr(self, name).tolist() for name in names}

    @classmethod
    def from_dict(cls, given: dict[str, Any], n_pairs: int, horizon: int) -> Windows:
        """Return what was stored."""
        shape = (-1, n_pairs)
        return cls(
            n_pairs,
            horizon,
            np.asarray(given["starts"], np.int64),
            np.asarray(given["weighted"], np.float64).reshape(shape),
            np.asarray(given["information"], np.float64).reshape(shape),
            np.asarray(given["waiting"], np.float64).reshape(-1, 2, 2),
            np.asarray(given["known"], np.float64).reshape(-1, 2, 2),
        )
