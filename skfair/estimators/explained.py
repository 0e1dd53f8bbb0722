"""What limits do to predicted numbers: changes of means, errors and R2, and a warning if R2 falls.

R2 is the part of the variance of y that predictions explain. The fits of both regressors call

- :func:`changes_of_numbers` for the attribute ``changes_``,
- :func:`larger_errors` if a limit is on differences of errors, because such a limit may be
  satisfied by worse predictions for a group,
- :func:`warn_if_less_explained` at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.exceptions import ExplainedVarianceWarning
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Change, Stages, change_of
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.text import rounded_up
from skfair.utils.warn import warn_user

# A warning is given if limits take away more than this part of R2. In 224 fits with limits of 1% to
# 60% of the difference of means without limits, 40% lost a third, 61% a sixth, and 5% two thirds.
MUCH_LOST = 1 / 3
# No warning is given if R2 without limits is at most this, because such models may explain nothing:
# R2 of pure noise exceeds 0.1 in 1.6% of the fits to 100 rows with 3 columns, 0.05 in 18%, and 0.2
# in none of 4,000.
LITTLE_EXPLAINED = 0.1
# But if R2 then falls below this, the warning is given, because the squared error is twice that of
# the mean of y or more. Under equal losses, 1% of the models of pure noise end below -1, 5% below
# -0.5, and none of 300 below -3.
HARMFUL = -1.0
# An error that grows by a smaller share than this is not named, because the printed numbers hardly
# differ.
NOTICED = 0.01
MEAN, SQUARES, R2 = "mean prediction", "mean squared error", "R2"


def changes_of_numbers(
    groups: GroupEncoding,
    weights: FloatArray | None,
    targets: FloatArray,
    ends: Sequence[FloatArray],  # predictions without limits, and within them
    first_rows: IntArray | slice = slice(None),
    *,
    error: str = SQUARES,  # name of the mean error
    errors: Any = None,  # (2, n_samples): the errors of ``ends``; if None, squared errors
) -> dict[str, Change]:
    """Return the changes of the mean prediction, of the mean error, and of R2."""
    # Squares of huge targets would overflow, so numbers of size 1 are squared.
    size = float(np.ptp(targets)) or 1.0
    squares = ((np.asarray(ends) - targets) / size) ** 2
    around = np.stack(2 * [(targets - targets[0]) / size])
    errors = size * size * squares if errors is None else errors
    means, mean_errors, lost, first, second = (
        change_of(groups, weights, stages, first_rows)
        for stages in (ends, errors, squares, around, around**2)
    )
    return {MEAN: means, error: mean_errors, R2: _explained(lost, first, second)}


def _explained(lost: Change, first: Change, second: Change) -> Change:
    """Return R2, given the mean squared errors and both moments of the targets.

    It is undefined (NaN) if all targets are equal, over all rows or in a group.
    """

    def stages(errors: Stages, mean: float, square: float) -> Stages:
        variance = square - mean**2
        if variance <= SUM_ROUNDING * square:
            return Stages(nan, nan, nan)
        return Stages(*(1 - one / variance for one in errors))

    by_group = {
        name: stages(errors, first.by_group[name].after, second.by_group[name].after)
        for name, errors in lost.by_group.items()
    }
    errors = Stages(lost.before, lost.without_limits, lost.after)
    return Change(*stages(errors, first.after, second.after), by_group)


class LargerErrors(NamedTuple):
    """The group whose errors a limit makes larger, and what can be limited instead."""

    group: str
    change: str  # such as "mean squared error 1.2 -> 3.4"
    largest: float  # the largest mean error of a group without limits

    def __str__(self) -> str:
        return f"limit kept by larger errors of group {self.group!r} ({self.change})"


def larger_errors(changes: Mapping[str, Change]) -> LargerErrors | None:
    """Return whose errors grow under a limit on differences of errors; None if errors shrink.

    Such a limit can be satisfied if large errors shrink, or if small ones grow. The second is
    returned if the error of some group grows by more than the error of any group shrinks.
    """
    ((name, change),) = ((k, change) for k, change in changes.items() if k not in (MEAN, R2))
    if not change.by_group:
        return None
    _, before, after = np.array(list(change.by_group.values())).T
    grown = after - before
    k = int(np.argmax(grown))
    if grown[k] <= max(-grown.min(), NOTICED * before[k]):
        return None
    text = f"{name} {before[k]:.4g} -> {after[k]:.4g}"
    return LargerErrors(list(change.by_group)[k], text, float(before.max()))


def is_less_explained(changes: Mapping[str, Change]) -> bool:
    """Whether limits take away much of R2, or make predictions far worse than the mean of y.

    It is False if the model itself is worse than the mean, or if all y are equal.
    """
    before, after = changes[R2].without_limits, changes[R2].after
    if before > LITTLE_EXPLAINED:
        return before - after > MUCH_LOST * before
    return before >= 0 and after < HARMFUL


def warn_if_less_explained(
    changes: Mapping[str, Change],
    larger: LargerErrors | None = None,
    *,
    others: Sequence[str] = (),  # what else can be done than raising the limit
    # How to limit the largest error of a group instead, with {} in place of the limit
    of_largest: str = "constraint='bounded_group_loss' and max_disparity={}",
) -> None:
    """Warn if the limits take away much of R2, with what can be done."""
    if not is_less_explained(changes):
        return
    before, after = changes[R2].without_limits, changes[R2].after
    text = f"The limits lower R2 on the training rows from {before:.2f} to {after:.2f}"
    text += ": the mean of y would predict them better." if after < 0 else "."
    advice = ["Raise max_disparity", *others]
    if larger is not None:
        text += (
            f" The limit is kept by making the errors of group {larger.group!r} larger "
            f"({larger.change})."
        )
        limit = rounded_up(larger.largest)
        advice.append(
            f"limit the largest error of a group instead, by {of_largest.format(limit)} (its value "
            "without limits; smaller values lower it as far as the columns allow)"
        )
    advice[1:] = [", ".join(["", *advice[1:-1], f"or {advice[-1]}"])] if advice[1:] else []
    warn_user(f"{text} {''.join(advice)}.", ExplainedVarianceWarning)
