"""Constraints within intervals, and their moments on given rows."""

import numpy as np

from skfair.constraints.partial import IntervalConstraint
from skfair.groups.encoding import encode_groups
from skfair.groups.intervals import Intervals
from skfair.partial_parity.ranked_moment import IntervalRows
from tests.registries import CONSTRAINT_KINDS


def ranked_constraints():
    """Names of the constraints that work within intervals of ranks."""
    return [name for name in CONSTRAINT_KINDS if "intervals" in CONSTRAINT_KINDS[name]().tasks]


def ranked_moments(
    name, groups, targets, weights, interval, surrogate, percentiles=(), printed=False, **options
):
    """All forms of the moment of a constraint within intervals, or the form of the paper."""
    found = encode_groups(groups)
    at = Intervals(interval, found.levels), np.array(percentiles)
    rows = IntervalRows(found, targets, weights, *at)
    return IntervalConstraint(name, **options).moments(rows, surrogate, printed=printed)
