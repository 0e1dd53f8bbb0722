r"""Evidence that a difference of rates exceeds a limit, which may be looked at after every batch.

:class:`skfair.monitoring.comparison.Comparison` holds one ``Windows`` for all pairs of groups. For
each batch it calls ``start``, then ``add`` with the counts of the pairs, and asks for ``log_total``
(an alarm), ``log_kept`` (whether the limit is shown to hold) and ``estimate`` (how large the
difference is). ``with_pairs``, ``aligned`` and ``merged`` are for new groups and for merging
monitors.

**What is summed.** Rows of a pair of groups are collected until both groups have
``min_group_size`` of them. They then are a block, with a difference D of the two rates. The weight
w of a block is 1 over the variance of D that earlier blocks lead to expect, and v is the variance
of D judged with this block as well. Over the blocks since some start (a *start* is the beginning of
a batch), ``sums`` holds :math:`A = \sum w D`, :math:`W = \sum w` and :math:`I = \sum w^2 v`.

**Evidence.** With :math:`S = A - limit \cdot W`, the number

.. math:: \exp\Big(\theta S - \frac{\theta^2 I}{2}\Big)

has a mean of at most 1 for every excess theta, as long as the difference is within the limit. It is
what was won by a bet of 1 on this excess, and it grows if the difference is above the limit. Nine
tenths are bet on an excess as large as the limit, which is the best bet if the difference is twice
the limit. The rest is bet on all excesses, half-normal with twice the limit (Robbins' mixture). The
bet is divided among both directions of the difference, and the direction that the difference had
before the start gets more. The mean of such numbers over many starts, by ``start_weights``, exceeds
1 / alpha with a probability of at most alpha, however often the user looks. With a start at every
batch, a change is found soon after it happened.

**Variances.** The weight of a block must not depend on the block: one of few rows without a hit
would seem both extreme and precise. A third of v is the spread within the block, and two thirds are
what all blocks lead to expect. The skewness of rare hits then cancels (as in Delyon, 2009,
Exponential inequalities for sums of weakly dependent variables).

**Limits on a change** (``reference_batches``). The mean difference A / W is compared with A' / W'
of the blocks before the start. Let 1 / J be the variance of that change. Then J takes the place of
W and of I, and :math:`J (A / W - A' / W')` the place of A. The evidence is the likelihood of all
differences from the reference, so it may also be looked at after every batch.

**Limits on a ratio** (``is_ratio``). Pairs are ordered, and D is :math:`(r p - q) / p` for the
limit r and the rates p and q. It is above 0 if q is less than r times p. The p in the denominator
comes from earlier blocks. The limit of D is 0. Most is bet on D = r - r^2, the value of D if the
ratio q / p is r^2.

The opposite bets, that D is below the limit, show that a limit holds (``log_kept``).
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

# How the weight 1 is divided among starts: the first start, later ones within the horizon, and the
# rest for all starts beyond it.
_FIRST, _WITHIN = 0.03, 0.95
# ``_ON_LIMIT`` is the share that is bet on an excess as large as the limit. The rest is bet on a
# half-normal mixture, whose scale is ``_SPREAD`` times the limit.
_ON_LIMIT, _SPREAD = 0.9, 2.0
# The share that is bet on one direction lies between 1 - _LEANING and _LEANING.
_LEANING = 0.8
# With each new block, the counts of earlier blocks (``known``) are multiplied by this factor, so
# that recent blocks weigh most in what is expected of the next one.
_DECAY = 0.9
# Share of the block itself in the variance v of its difference (see "Variances" above).
_OWN = 1 / 3
# Attributes of ``Windows``: the arrays with an entry for each start and pair, and the arrays with
# an entry for each pair only.
_OF_STARTS, _OF_PAIRS = ("sums", "before", "leaning", "watched"), ("waiting", "known")
# Stored numbers may lie outside their range by this relative rounding error.
_ROUNDING = 1e-6


def start_weights(starts: IntArray, horizon: int) -> FloatArray:
    """Return the weights of starts, which are numbered by the batch that they come before.

    The weights of all numbers from 0 to infinity add up to 1.
    """
    # The sum of horizon / (k (k - 1)) over all k > horizon is 1.
    later = np.maximum(starts, horizon + 1).astype(np.float64)
    beyond = (1 - _FIRST - _WITHIN) * horizon / (later * (later - 1))
    return np.where(starts == 0, _FIRST, np.where(starts <= horizon, _WITHIN / horizon, beyond))


def log_evidence(
    sums: FloatArray, information: FloatArray, limit: float | FloatArray
) -> FloatArray:
    """Return the log of the evidence of one direction, given S (``sums``) and I.

    Most is bet on an excess of ``limit``, which must be above 0, and ``sharp`` is the log of what
    this bet has become. ``wide`` is the same for the rest, which is bet on all excesses.
    """
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
        Number of batches among which most of the weight is shared. The first start
        and this many later ones are kept.
    reference_batches : int, default=None
        Number of batches before a start that the batches after it are compared with. If None, the
        limit is on the difference itself.
    is_ratio : bool, default=False
        Whether pairs are ordered and the limits are on the ratio of the second rate to the first.

    Attributes
    ----------
    starts : ndarray of shape (n_starts,)
        Number of the batch that each start came before.
    sums, before : ndarray of shape (n_starts, 3, n_pairs)
        A, W and I of the blocks since each start, and of the reference blocks before it. The latter
        are 0 without ``reference_batches``.
    leaning : ndarray of shape (n_starts, n_pairs)
        Share that is bet on the first group of a pair to have the higher rate. It is not used for
        ratios.
    watched : ndarray of bool of shape (n_starts, n_pairs)
        Whether a pair was known at a start. If it came later, nothing is bet on it from this start.
    waiting, known : ndarray of shape (n_pairs, 2, 2)
        For each group of a pair, the numbers of hits and of rows. Those in ``waiting`` are not yet
        in a block. Those in ``known`` are of earlier blocks, the older the less they count.
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
        """Add a start before batch ``number``.

        The first start is always kept. If more than ``horizon`` others follow, the oldest of these
        is forgotten.
        """
        earlier = nothing = np.zeros((1, 3, self.n_pairs))
        # ``likely`` is roughly the probability that the first group of a pair has the higher rate,
        # judged by all blocks since the first start.
        likely = np.full((1, self.n_pairs), 0.5)
        if self.reference_batches is not None:
            # No batch has come after the reference batches yet, so the sums since the start before
            # them are the sums of the reference batches alone.
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
            # Entry 0 is the first start, so entry 1 is the oldest that can be forgotten.
            is_full = array.shape[0] > self.horizon + 1
            setattr(self, name, np.delete(array, 1, axis=0) if is_full else array)

    def add(
        self, counts: FloatArray, min_group_size: int, limits: float | FloatArray = 1.0
    ) -> None:
        """Add the hits and rows of both groups of each pair in a batch, (n_pairs, 2, 2).

        Pairs that have enough rows now close a block. ``limits`` are used for ratios only.
        """
        self.waiting += counts
        full = np.flatnonzero(self.waiting[:, :, 1].min(axis=1) >= min_group_size)
        if not full.size:
            return
        block, earlier = self.waiting[full], self.known[full]
        hits, rows = block[:, :, 0], block[:, :, 1]
        # D is factors[:, 0] times the first rate minus factors[:, 1] times the second rate.
        factors = np.ones((full.size, 2))
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
        """Return A, W and I since each start, or what takes their place for limits on a change.

        Each is (n_starts, n_pairs).
        """
        weighted, weight, information = self.sums.transpose(1, 0, 2)
        if self.reference_batches is None:
            return weighted, weight, information
        old, old_weight, old_information = self.before.transpose(1, 0, 2)
        variance = _quotient(information, weight**2) + _quotient(old_information, old_weight**2)
        # ``precision`` is the J of the module docstring, which takes the place of W and of I.
        precision = np.where(weight * old_weight > 0, _quotient(np.ones(1), variance), 0.0)
        change = _quotient(weighted, weight) - _quotient(old, old_weight)
        return precision * change, precision, precision

    def log_bets(self, limits: float | FloatArray, pairs: IntArray) -> FloatArray:
        """Return the log evidence of each direction, start and pair: (2, n_starts, n_pairs).

        It includes the weight of the start and the share of the direction, but treats each pair as
        if it were the only one (``log_total`` divides the bet among the pairs). ``limits`` is one
        number, or the limit of each pair.
        """
        limit, size = (values[pairs] for values in self._limits_and_sizes(limits))
        weighted, weight, information = (sums[:, pairs] for sums in self.compared())
        share, leaning = start_weights(self.starts, self.horizon)[:, None], self.leaning[:, pairs]
        # For ratios, both orders of two groups are pairs of their own. So all is bet on the first
        # direction of each pair, and nothing on the second.
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
        """Return the log evidence, since the first start, that each pair is within its limit.

        A difference must be within the limit in both directions, so the weaker evidence counts.
        """
        limit, size = self._limits_and_sizes(limits)
        weighted, weight, information = (sums[0] for sums in self.compared())
        log_bets = [
            log_evidence(limit * weight - sign * weighted, information, size)
            for sign in ((1.0,) if self.is_ratio else (1.0, -1.0))
        ]
        return np.asarray(np.min(log_bets, axis=0))

    def _limits_and_sizes(self, limits: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the limit of D of each pair, and the excess that most is bet on.

        For a limit r on a ratio they are 0 and r - r^2. Otherwise both are the limit itself.
        """
        of_pairs = np.broadcast_to(np.asarray(limits, np.float64), self.n_pairs)
        return (
            (np.zeros_like(of_pairs), of_pairs * (1 - of_pairs))
            if self.is_ratio
            else (of_pairs, of_pairs)
        )

    def log_total(self, limits: float | FloatArray) -> tuple[float, int, int, float]:
        """Return the log evidence of all starts and pairs, and where most of it is.

        The last three numbers are the place of that start in ``starts``, the pair, and the
        direction: 1 if the first group has the higher rate, and -1 if the second has.
        """
        both = self.log_bets(limits, np.arange(self.n_pairs))
        # The bet of a start is shared equally by the pairs that were known then.
        n_watched = self.watched.sum(axis=1, keepdims=True)
        both = np.where(self.watched, both - np.log(np.maximum(n_watched, 1)), -np.inf)
        direction, start, pair = map(int, np.unravel_index(int(both.argmax()), both.shape))
        most = both[direction, start, pair]
        return float(most + np.log(np.exp(both - most).sum())), start, pair, 1.0 - 2.0 * direction

    def estimate(self, start: int, pair: int) -> tuple[float, float]:
        """Return the mean of D since a start (its place in ``starts``), and the standard error.

        For limits on a change it is the change of D. Both are NaN before the first block.
        """
        weighted, weight, information = (float(sums[start, pair]) for sums in self.compared())
        if weight <= 0:
            return np.nan, np.nan
        return weighted / weight, np.sqrt(information) / weight

    def with_pairs(self, places: IntArray) -> Windows:
        """Return a copy for other pairs: ``places`` are their numbers here, or -1 if a pair is new.

        New pairs have no rows, were watched at no start, and lean to neither direction.
        """
        arrays = {}
        # Each array is padded with one pair that has the values of a new pair. It comes last, so
        # the place -1 selects it.
        for name in (*_OF_STARTS, *_OF_PAIRS):
            old = getattr(self, name)
            axis = 0 if name in _OF_PAIRS else old.ndim - 1
            widths = [(0, int(k == axis)) for k in range(old.ndim)]
            new = np.pad(old, widths, constant_values=0.5 if name == "leaning" else 0)
            arrays[name] = new.take(places, axis)
        return self._with(n_pairs=places.size, **arrays)

    def merged(self, other: Windows) -> Windows:
        """Return the sums over the rows of both, which saw different rows of the same batches."""
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
        """Return the sums since other starts, for ``aligned``.

        ``numbers`` are the new starts. ``places`` has for each of them the place in ``self.starts``
        of the first start that is not earlier, or ``len(self.starts)`` if all are earlier. These
        windows have no rows between a new start and that one, so the sums since both are equal.
        """
        # A start after all batches is added for new starts that are later than all starts here. Its
        # sums are 0. The longer horizon keeps ``start`` from forgetting another start.
        more = self._with(horizon=self.horizon + 1)
        more.start(int(self.starts.max(initial=-1)) + 1)
        sums, before = more.sums[places], more.before[places]
        if self.reference_batches is not None:
            # The sums over the batches between two starts are the sums since the earlier start
            # minus the sums since the later one.
            earlier = np.searchsorted(numbers, numbers - self.reference_batches)
            paired = np.flatnonzero(numbers[earlier] == numbers - self.reference_batches)
            before[paired] = sums[earlier[paired]] - sums[paired]
        leaning, watched = more.leaning[places], more.watched[places]
        return self._with(
            starts=numbers, sums=sums, before=before, leaning=leaning, watched=watched
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the arrays as lists, which can be stored as JSON."""
        return {name: getattr(self, name).tolist() for name in ("starts", *_OF_STARTS, *_OF_PAIRS)}

    def restored(self, state: dict[str, Any], n_rows: int, n_batches: int) -> Windows:
        """Return a copy with the arrays that ``to_dict`` stored.

        Numbers that no monitor of this many rows and batches can have raise a ``ValueError``.
        """
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
        # For ratios, |D| is at most 1 / p. The p are smoothed, and at least 0.5 / (n_rows + 1).
        largest = 2 * (n_rows + 1) if made.is_ratio else 1
        if (np.abs(made.sums[:, 0]) > (1 + _ROUNDING) * largest * made.sums[:, 1]).any():
            raise ValueError(f"sums have a difference of rates beyond {largest}.")
        return made


def checked_numbers(
    values: Any, name: str, shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf
) -> FloatArray:
    """Return stored numbers as an array; raise unless they have this shape and lie in a range."""
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
    """Return the range of the numbers in each array of a monitor with this many rows."""
    # For smoothed rates of n rows, p (1 - p) is at least 1 / (4 (n + 1)). So W <= 4 n (n + 1), and
    # I <= W^2.
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
    """Return p (1 - p) of each group, never 0; ``counts`` are hits and rows, (n_pairs, 2, 2)."""
    rates = _smoothed(counts)
    return rates * (1 - rates)


def _smoothed(counts: FloatArray) -> FloatArray:
    """Return the rates of hits among rows, with half a hit and half a miss added."""
    return (counts[..., 0] + 0.5) / (counts[..., 1] + 1)


def _quotient(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return ``above / below``, or 0 where ``below`` is 0."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def aligned(
    *watched: tuple[Windows, Mapping[int, Any]],
) -> tuple[dict[int, Any], list[Windows]]:
    """Give the windows of two monitors the same starts, so that they can be merged.

    Each ``Windows`` comes with a dictionary. Its keys are the numbers of the batches after starts,
    and its values their ids, which are the numbers or times that the user gave. The starts of both
    are sorted by id and numbered anew. A batch that one monitor has not seen adds nothing to its
    sums. Returned are the ids by the new numbers, and the windows with the new starts.
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
        # If the second start is not that of batch 1, starts after the first one may have been
        # forgotten. A start of the other monitor that lies there is left out, because the sums
        # since it are not known here.
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
