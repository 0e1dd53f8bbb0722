"""The noise floor: the mean disparity by chance between groups that do not differ.

``fit`` calls :func:`warn_below_noise`, which warns if the limit is below the noise floor. The
attribute ``noise_floor_`` is :func:`simulated_floor` on :func:`alike_rows`. Both calls are in
:mod:`skfair.partial_parity.prediction`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from skfair._typing import FloatArray
from skfair.groups.encoding import GroupEncoding, GroupLevels
from skfair.groups.limits import Limit
from skfair.partial_parity.promise import Promise
from skfair.utils.warn import warn_user

_FLOOR_SAMPLES = 20  # number of random orders of the scores in the mean
# A first guess uses fewer samples and few rows. If all limits are above _CLEAR times the guess, the
# simulation on all rows is left out.
_GUESS_SAMPLES, _GUESS_ROWS, _CLEAR = 6, 2_000, 1.5
# For the guess large groups are made smaller, but each keeps at least this many rows of a class.
_FEW_ROWS = 50


def simulated_floor(promise: Promise, n_samples: int = _FLOOR_SAMPLES) -> float:
    """Return the mean disparity if scores are assigned to the rows of a promise at random."""
    rng = np.random.RandomState(0)
    scores = np.linspace(-1, 1, promise.targets.size)
    values = [promise.measure(rng.permutation(scores)) for _ in range(n_samples)]
    return float(np.mean(values))


def alike_rows(
    levels: GroupLevels,
    counts: FloatArray,  # (n_groups, 2): rows of each group and class
    most: float = np.inf,
) -> tuple[GroupEncoding, FloatArray, float]:
    """Return groups and targets of rows to simulate on, and a factor on their noise.

    The numbers of rows by group and class are ``counts``. If their sum is more than ``most``, large
    groups are made smaller, but not small ones, which cause most of the noise. Noise is
    proportional to 1 / root of the number of rows. So the noise of all rows is at most the factor
    times the noise of the returned rows. The factor is 1 if no row is left out.
    """
    rng = np.random.RandomState(0)
    kept = min(1.0, most * (levels.offsets.size - 1) / counts.sum())
    table = np.maximum(np.ceil(kept * counts), np.minimum(counts, _FEW_ROWS))
    share = np.sqrt((table / np.maximum(counts, 1)).max())
    table, parts = table.astype(np.int64), []
    for first, stop in pairwise(levels.offsets.tolist()):
        by_class = [np.repeat(np.arange(first, stop), table[first:stop, c]) for c in (0, 1)]
        parts.append([rng.permutation(rows_of_class) for rows_of_class in by_class])
    # By rounding, attributes have different numbers of rows, so all are cut to the smallest one.
    sizes = [min(part[c].size for part in parts) for c in (0, 1)]
    codes = np.stack([np.append(zeros[: sizes[0]], ones[: sizes[1]]) for zeros, ones in parts])
    return GroupEncoding.of(codes, levels), np.repeat([-1.0, 1.0], sizes), float(share)


def warn_below_noise(promise: Promise, limit: Limit, counts: FloatArray) -> None:
    """Warn if groups that do not differ would exceed the limit on average.

    ``limit`` is the limit in force, and ``counts`` (n_groups, 2) are the numbers of rows by group
    and class. A guess on few rows comes first. If all limits are clearly above it, there is no
    simulation on all rows.
    """

    def floors(most: float, n_samples: int) -> list[float]:
        """Return the noise floor of each attribute that is limited."""
        groups, targets, share = alike_rows(promise.groups.levels, counts, most)
        alike = replace(promise, limit=limit, groups=groups, targets=targets, weights=None)
        return [share * simulated_floor(part, n_samples) for part in alike.of_attributes()]

    limits = [part.bound for part in promise.of_attributes()]
    guesses = floors(_GUESS_ROWS, _GUESS_SAMPLES)
    if all(bound > _CLEAR * guess for bound, guess in zip(limits, guesses, strict=True)):
        return
    pairs = zip(limits, floors(np.inf, _FLOOR_SAMPLES), strict=True)
    above = [pair for pair in pairs if pair[0] < pair[1]]
    if not above:
        return
    bound, floor = max(above, key=lambda pair: pair[1] - pair[0])
    warn_user(
        f"max_disparity={bound:.3g} is below the noise floor: even identical groups of these "
        f"sizes show {floor:.3g} on average, so a new sample of this size will exceed the limit. "
        "Use a larger limit, a longer interval, more rows, or merge small groups."
    )
