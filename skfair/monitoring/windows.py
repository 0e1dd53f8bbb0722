r"""Evidence that a difference of rates exceeds a limit, which may be looked at after every batch.

Rows of a pair of groups are collected into small blocks, each with a difference D of the rates. Its
weight w is 1 over the variance that earlier blocks lead to expect; v is the variance of D judged
with this block as well. With :math:`A = \sum w D`, :math:`W = \sum w` and :math:`I = \sum w^2 v`
over the blocks since some start, and :math:`S = A - limit \cdot W`,

.. math:: \exp\Big(\theta S - \frac{\theta^2 I}{2}\Big)

has mean 1 at most as long as the difference is within the limit, for every excess theta: a bet on
it. Nine tenths are bet on an excess as large as the limit, which is what a monitor is for; the rest
on all excesses, half-normal with twice the limit (Robbins' mixture). More is bet on the direction
that the difference had before the start. A weighted mean of such numbers over many starts exceeds 1
/ alpha with probability alpha at most, however often it is looked at. Starts at every batch find a
change soon after it happened.

A weight must not know its block: one of few rows without a hit would seem both extreme and sure. A
third of v is the spread within the block, and two thirds are what all blocks lead to expect: then
the skewness of rare hits cancels (as in Delyon, 2009, Exponential inequalities for sums of weakly
dependent variables).

If the limit is on the change against a reference, D is compared with A' / W' of the blocks before
the start. Then J stands for W and I, and :math:`J (A / W - A' / W')` for A, where 1 / J is the
variance of that change. That is the likelihood of all differences from the reference, so it may
also be looked at after every batch.

If the limit is on a ratio r, D is :math:`(r p - q) / p` of an ordered pair of rates p and q, above
0 if q is less than r times p. The p in the denominator comes from earlier blocks. The limit of D is
0, and an excess of r - r^2, a ratio of r^2, is what most is bet on.

The opposite bets, that D is below the limit, tell whether a limit is kept.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from skfair._typing import FloatArray, IntArray
from skfair.utils.rounding import TINY

# Shares of the weight: of the first start, and of later ones within the horizon; the rest is for
# those beyond it.
_FIRST, _WITHIN = 0.03, 0.95
# Share that is bet on an excess as large as the limit, and the spread of the others, in limits.
_ON_LIMIT, _SPREAD = 0.9, 2.0
# At most this share is bet on one direction.
_LEANING = 0.8
# Earlier blocks count this much less with each new one, in the variance.
_DECAY = 0.9
# Share of the block itself in the variance of its difference.
_OWN = 1 / 3
# Arrays with an entry for each start, and those of pairs alone.
_OF_STARTS, _OF_PAIRS = ("sums", "before", "leaning", "watched"), ("waiting", "known")
# Sums of floating point numbers are as exact as this.
_ROUNDING = 1e-6


def start_weights(starts: IntArray, horizon: int) -> FloatArray:
    """Return the weights of starts, numbered by batch; those of all numbers add up to 1."""
    later = np.maximum(starts, horizon + 1).astype(np.float64)
    beyond = (1 - _FIRST - _WITHIN) * horizon / (later * (later - 1))
    return np.where(starts == 0, _FIRST, np.where(starts <= horizon, _WITHIN / horizon, beyond))


def log_evidence(
    sums: FloatArray, information: FloatArray, limit: float | FloatArray
) -> FloatArray:
    """Return the log of the evidence, given S and I."""
    rho = _SPREAD * limit
    scale = np.sqrt(1 + rho**2 * information)
    z = rho * sums / scale
    wide = np.log(2 * (1 - _ON_LIMIT) / scale) + 0.5 * z**2 + special.log_ndtr(z)
    sharp = np.log(_ON_LIMIT) + limit * sums - 0.5 * limit**2 * information
    return np.asarray(np.logaddexp(wide, sharp))


class Windows:
    """Sums over blocks since each start, for every pair of groups and rate.

    Parameters
    ----------
    n_pairs : int
        Number of pairs of groups, of all rates.
    horizon : int
        Number of batches among which most of the weight is shared, and of the starts that are kept.
    reference_batches : int, default=None
        Number of batches before a start that it is compared with; None for the limit alone.
    is_ratio : bool, default=False
        Whether pairs are ordered, and limits are those of ratios: of the second rate to the first.

    Attributes
    ----------
    starts : ndarray of shape (n_starts,)
        Number of the batch that each start came before.
    sums, before : ndarray of shape (n_starts, 3, n_pairs)
        A, W and I, and those of the reference: the blocks before each start.
    leaning : ndarray of shape (n_starts, n_pairs)
        Share that is bet on the first group of a pair to have the higher rate.
    watched : ndarray of bool of shape (n_starts, n_pairs)
        Whether a pair was known before a start; one that came later bets nothing.
    waiting, known : ndarray of shape (n_pairs, 2, 2)
        Successes and rows of both groups: not yet in a block, and of earlier blocks, fading.
    """

    def __init__(
        self,
        n_pairs: int,
        horizon: int,
        reference_batches: int | None = None,
        is_ratio: bool = False,
    ) -> None:
        self.n_pairs, self.horizon = n_pairs, horizon
        self.reference_batches, self.is_ratio = reference_batches, is_ratio
        self.starts = np.empty(0, np.int64)
        self.sums, self.before = np.empty((2, 0, 3, n_pairs))
        self.leaning = np.empty((0, n_pairs))
        self.watched = np.empty((0, n_pairs), bool)
        self.waiting, self.known = np.zeros((2, n_pairs, 2, 2))

    def _with(self, **changed: Any) -> Windows:
        """Return a copy with other arrays or settings."""
        made = copy(self)
        vars(made).update(changed)
        return made

    def start(self, number: int) -> None:
        """Add a start before batch ``number``; the oldest but the first is forgotten."""
        earlier = nothing = np.zeros((1, 3, self.n_pairs))
        likely = np.full((1, self.n_pairs), 0.5)
        if self.reference_batches is not None:
            at = self.starts == number - self.reference_batches
            earlier = self.sums[at] if at.any() else nothing
        elif self.starts.size:
            z = self.sums[0, 0] / np.sqrt(np.maximum(self.sums[0, 2], TINY))
            likely[0] = special.ndtr(z)
        new = {
            "starts": [number],
            "sums": nothing,
            "before": earlier,
            "leaning": 1 - _LEANING + (2 * _LEANING - 1) * likely,
            "watched": np.ones((1, self.n_pairs), bool),
        }
        for name, values in new.items():
            array = np.concatenate([getattr(self, name), values])
            is_full = array.shape[0] > self.horizon + 1
            setattr(self, name, np.delete(array, 1, axis=0) if is_full else array)

    def add(
        self, counts: FloatArray, min_group_size: int, limits: float | FloatArray = 1.0
    ) -> None:
        """Add successes and rows of both groups of each pair, shape (n_pairs, 2, 2).

        The limits of the pairs matter if they are those of ratios.
        """
        self.waiting += counts
        full = np.flatnonzero(self.waiting[:, :, 1].min(axis=1) >= min_group_size)
        if not full.size:
            return
        block, earlier = self.waiting[full], self.known[full]
        hits, rows = block[:, :, 0], block[:, :, 1]
        factors = np.ones((full.size, 2))  # of both rates in D
        if self.is_ratio:
            factors[:, 0] = np.broadcast_to(limits, self.n_pairs)[full]
            factors /= _smoothed(earlier)[:, :1]
        weight = 1 / (factors**2 * _spread(earlier) / rows).sum(axis=1)
        spread = (1 - _OWN) * _spread(earlier + block) + _OWN * _spread(block)
        rates = factors * hits / rows
        self.sums[:, 0, full] += weight * (rates[:, 0] - rates[:, 1])
        self.sums[:, 1, full] += weight
        self.sums[:, 2, full] += weight**2 * (factors**2 * spread / rows).sum(axis=1)
        self.known[full] = _DECAY * earlier + block
        self.waiting[full] = 0.0

    def compared(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return A, W and I of what is limited: the difference, or its change."""
        weighted, weight, information = self.sums.transpose(1, 0, 2)
        if self.reference_batches is None:
            return weighted, weight, information
        old, old_weight, old_information = self.before.transpose(1, 0, 2)
        variance = _quotient(information, weight**2) + _quotient(old_information, old_weight**2)
        precision = np.where(weight * old_weight > 0, _quotient(np.ones(1), variance), 0.0)
        change = _quotient(weighted, weight) - _quotient(old, old_weight)
        return precision * change, precision, precision

    def log_bets(self, limits: float | FloatArray, pairs: IntArray) -> FloatArray:
        """Return the log of what was won for each direction, start and pair, if it is the only one.

        The shape is (2, n_starts, n_pairs). Each pair may have its limit.
        """
        limit, size = (values[pairs] for values in self._limits_and_sizes(limits))
        weighted, weight, information = (sums[:, pairs] for sums in self.compared())
        share, leaning = start_weights(self.starts, self.horizon)[:, None], self.leaning[:, pairs]
        if self.is_ratio:
            leaning = np.ones_like(leaning)
        with np.errstate(divide="ignore"):
            return np.stack(
                [
                    np.log(share * part)
                    + log_evidence(sign * weighted - limit * weight, information, size)
                    for sign, part in ((1.0, leaning), (-1.0, 1 - leaning))
                ]
            )

    def log_kept(self, limits: float | FloatArray) -> FloatArray:
        """Return the log of the evidence that each pair keeps its limit, since its first rows."""
        limit, size = self._limits_and_sizes(limits)
        weighted, weight, information = (sums[0] for sums in self.compared())
        log_bets = [
            log_evidence(limit * weight - sign * weighted, information, size)
            for sign in ((1.0,) if self.is_ratio else (1.0, -1.0))
        ]
        return np.asarray(np.min(log_bets, axis=0))

    def _limits_and_sizes(self, limits: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the limit of D of each pair, and what excess most is bet on."""
        of_pairs = np.broadcast_to(np.asarray(limits, np.float64), self.n_pairs)
        return (
            (np.zeros_like(of_pairs), of_pairs * (1 - of_pairs))
            if self.is_ratio
            else (of_pairs, of_pairs)
        )

    def log_total(self, limits: float | FloatArray) -> tuple[float, int, int, float]:
        """Return the log of the mean evidence, and where it is largest: start, pair, direction."""
        both = self.log_bets(limits, np.arange(self.n_pairs))
        # What a start has to bet is shared by the pairs of its time: later ones add nothing to it.
        n_watched = self.watched.sum(axis=1, keepdims=True)
        both = np.where(self.watched, both - np.log(np.maximum(n_watched, 1)), -np.inf)
        direction, start, pair = map(int, np.unravel_index(int(both.argmax()), both.shape))
        most = both[direction, start, pair]
        return float(most + np.log(np.exp(both - most).sum())), start, pair, 1.0 - 2.0 * direction

    def estimate(self, start: int, pair: int) -> tuple[float, float]:
        """Return the difference since a start, or its change, and its standard error."""
        weighted, weight, information = (float(sums[start, pair]) for sums in self.compared())
        if weight <= 0:
            return np.nan, np.nan
        return weighted / weight, np.sqrt(information) / weight

    def with_pairs(self, places: IntArray) -> Windows:
        """Return the sums of other pairs: the number that each has here, -1 for a new one."""
        arrays = {}
        for name in (*_OF_STARTS, *_OF_PAIRS):
            old = getattr(self, name)
            axis = 0 if name in _OF_PAIRS else old.ndim - 1
            widths = [(0, int(k == axis)) for k in range(old.ndim)]
            new = np.pad(old, widths, constant_values=0.5 if name == "leaning" else 0)
            arrays[name] = new.take(places, axis)
        return self._with(n_pairs=places.size, **arrays)

    def merged(self, other: Windows) -> Windows:
        """Return the sums over the rows of both, which were watched side by side."""
        starts = np.union1d(self.starts, other.starts)
        arrays = {"waiting": self.waiting + other.waiting, "known": self.known + other.known}
        for name in _OF_STARTS:
            old = getattr(self, name)
            arrays[name] = np.zeros((starts.size, *old.shape[1:]), old.dtype)
            for windows in (self, other):
                arrays[name][np.searchsorted(starts, windows.starts)] += getattr(windows, name)
        n_of_each = np.isin(starts, self.starts).astype(int) + np.isin(starts, other.starts)
        arrays["leaning"] /= n_of_each[:, None]
        return self._with(starts=starts, **arrays)

    def since(self, numbers: IntArray, places: IntArray) -> Windows:
        """Return the sums since other starts: each in the place of one, or behind the last one."""
        more = self._with(horizon=self.horizon + 1)  # so that no start is forgotten
        more.start(int(self.starts.max(initial=-1)) + 1)
        sums, before = more.sums[places], more.before[places]
        if self.reference_batches is not None:
            # What came between two starts is what came since one but not since the other.
            earlier = np.searchsorted(numbers, numbers - self.reference_batches)
            paired = np.flatnonzero(numbers[earlier] == numbers - self.reference_batches)
            before[paired] = sums[earlier[paired]] - sums[paired]
        leaning, watched = more.leaning[places], more.watched[places]
        return self._with(
            starts=numbers, sums=sums, before=before, leaning=leaning, watched=watched
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {name: getattr(self, name).tolist() for name in ("starts", *_OF_STARTS, *_OF_PAIRS)}

    def restored(self, state: dict[str, Any], n_rows: int, n_batches: int) -> Windows:
        """Return what was stored of this many rows; raise for what no monitor can have seen."""
        made, n_starts = copy(self), len(state["starts"])
        for name, (low, high) in _ranges(n_rows, n_batches).items():
            old = getattr(made, name)
            shape = old.shape if name in _OF_PAIRS else (n_starts, *old.shape[1:])
            numbers = checked_numbers(state[name], name, shape, low, high)
            if old.dtype.kind in "bi" and (numbers % 1).any():
                raise ValueError(f"{name} must be integers.")
            setattr(made, name, numbers.astype(old.dtype))
        if (np.diff(made.starts) < 1).any() or n_starts > made.horizon + 1:
            raise ValueError("starts are not the numbers of batches, in order.")
        for name in _OF_PAIRS:
            counts = getattr(made, name)
            if (counts[:, :, 0] > counts[:, :, 1]).any():
                raise ValueError(f"{name} has more successes than rows.")
        if min(made.sums[:, 1:].min(initial=0), made.before[:, 1:].min(initial=0)) < 0:
            raise ValueError("sums have negative weights.")
        largest = 2 * (n_rows + 1) if made.is_ratio else 1  # 1 / p, of rates that were never 0
        if (np.abs(made.sums[:, 0]) > (1 + _ROUNDING) * largest * made.sums[:, 1]).any():
            raise ValueError(f"sums have a difference of rates beyond {largest}.")
        return made


def checked_numbers(
    values: Any, name: str, shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf
) -> FloatArray:
    """Return lists of numbers as an array; raise for another shape and for odd numbers."""
    array: NDArray[Any] = np.asarray(values)
    if not array.size and 0 in shape:
        array = np.empty(shape)
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers of shape {shape}, got {array.dtype} of shape {array.shape}."
        )
    if not np.isfinite(array).all() or (array < low).any() or (array > high).any():
        raise ValueError(f"{name} has numbers that are not finite, or not in [{low}, {high}].")
    return array.astype(np.float64)


def _ranges(n_rows: int, n_batches: int) -> dict[str, tuple[float, float]]:
    """Return the smallest and the largest number of each array that this many rows can lead to."""
    # The variance of a rate is judged as 1 / (4 (n + 1)) or more, so W <= 4 n (n + 1), I <= W^2.
    largest = 16.0 * n_rows**2 * (n_rows + 1.0) ** 2
    return {
        "starts": (0, n_batches - 1),
        "sums": (-largest, largest),
        "before": (-largest, largest),
        "leaning": (1 - _LEANING - _ROUNDING, _LEANING + _ROUNDING),
        "watched": (0, 1),
        "waiting": (0, n_rows),
        "known": (0, n_rows),
    }


def _spread(counts: FloatArray) -> FloatArray:
    """Return p (1 - p) of successes and rows, shape (n, 2, 2): of each group, never 0."""
    rates = _smoothed(counts)
    return rates * (1 - rates)


def _smoothed(counts: FloatArray) -> FloatArray:
    """Return rates of successes and rows that are neither 0 nor 1."""
    return (counts[..., 0] + 0.5) / (counts[..., 1] + 1)


def _quotient(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def aligned(
    *watched: tuple[Windows, Mapping[int, Any]],
) -> tuple[dict[int, Any], list[Windows]]:
    """Number the starts of several windows together, by the ids of the batches after them.

    Each window comes with these ids. Batches that one of them has not seen have nothing in it.
    Returned are the ids by number, and the windows.
    """
    known = [[first[start] for start in windows.starts.tolist()] for windows, first in watched]
    together: dict[int, Any] = {}
    for _, first in watched:
        together = {**first, **together}
    together = dict(sorted(together.items()))
    is_same = all(together[k] == name for _, first in watched for k, name in first.items())
    try:
        names = sorted({name for own in known for name in own})
    except TypeError as error:
        raise ValueError(
            "The numbers of the batches of the two monitors cannot be compared: "
            f"{known[0][-1]!r} and {known[1][-1]!r}. Use numbers, or times of one kind."
        ) from error
    most = watched[0][0].horizon + 1
    if is_same and names == list(together.values()) and len(names) <= most:
        return together, [windows for windows, _ in watched]
    every, n_batches = set(names), 0
    for (windows, _), own in zip(watched, known, strict=True):
        if not own:
            continue
        # What came since a start between the first and the next that is kept is not known.
        is_gap = len(own) > 1 and windows.starts[1] > 1
        gap = {name for name in every if is_gap and own[0] < name < own[1]}
        names = [name for name in names if name not in gap]
        n_batches = max(n_batches, int(windows.starts[-1]) + 1 + len(every - gap - set(own)))
    names = names[:1] + names[1:][-watched[0][0].horizon :]
    numbers = np.arange(n_batches - len(names), n_batches)
    numbers[0] = 0
    parts = [
        windows.since(numbers, np.array([bisect_left(own, name) for name in names], np.int64))
        for (windows, _), own in zip(watched, known, strict=True)
    ]
    return dict(zip(numbers.tolist(), names, strict=True)), parts
