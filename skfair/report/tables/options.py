"""The options of an audit, checked.

Everything that makes an audit (``audit``, ``audit_data``, ``find_subgroups``, the page of a
committee and the commands) passes its arguments to :func:`read_options` once, and hands on the
:class:`Options`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from skfair._typing import Seed
from skfair.report.words import PRESETS, rule_of
from skfair.utils.text import listed
from skfair.utils.validation import check_names, check_number, check_probability

# The level of rows without a value, if the user names a missing value (None, NaN) as unknown
MISSING = "missing"


class Options(NamedTuple):
    """How an audit computes what it reports. The arguments of ``audit`` have the same names."""

    rng: np.random.RandomState  # source of all simulations, which draw from it in turn
    metrics: list[str] | None = None  # None for the usual metrics of the task
    lead: str | None = None  # the metric with which verdicts begin; None for the usual one
    confidence: float = 0.95
    depth: int = 3  # subgroups are intersections of up to this many attributes
    # Smaller subgroups are not searched. It is ``min_group_size`` if the user passed that, but not
    # if it comes from the rule of a preset.
    min_searched: float = 30
    n_simulations: int = 500
    preset: str | None = None
    reference: Any = "pairwise"  # a level, or a level by attribute
    unknown: frozenset[str] = frozenset()  # levels that stand for "not known"
    min_group_size: float = 30  # smaller groups are not compared
    suppress_below: float = 10  # smaller groups are not shown
    own_gaps: tuple[Any, ...] = ()  # the gaps by metrics of one's own among ``metrics``
    median: float | None = None  # of the scores, if preset "ll144" compares them with it


def read_options(
    *, random_state: Seed, metrics: Any = None, unknown: Any = None, **others: Any
) -> Options:
    """Check the options that a user passed. An option that is None gets its default.

    The default of an option is that of the rule of the preset, or else the one in :class:`Options`.
    """
    preset = others.get("preset")
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"preset must be {listed(PRESETS)} or None, got {preset!r}.")
    least = {} if preset is None else rule_of(preset).least
    if (asked := others.get("min_group_size")) is not None:  # a rule's own size is not for a search
        least = least | {"min_searched": asked}
    others = least | {name: value for name, value in others.items() if value is not None}
    names = None if metrics is None else check_names(metrics, "metrics")
    rng, levels = check_random_state(random_state), frozenset(unknown_levels(unknown))
    options = Options(rng, names, unknown=levels, **others)
    check_probability(options.confidence, "confidence")
    check_number(options.depth, "depth", low=1, kind=Integral)
    check_number(options.n_simulations, "n_simulations", low=1, kind=Integral)
    check_number(options.min_group_size, "min_group_size", low=1)
    check_number(options.suppress_below, "suppress_below", low=1)
    if options.preset == "ecoa" and options.reference in ("pairwise", {}):
        raise ValueError(
            "preset='ecoa' compares each group with a control group. Name it, for example "
            "reference='White', or reference={'sex': 'male', 'race': 'White'}."
        )
    return options


def unknown_levels(unknown: Any) -> list[str]:
    """Return one level, or several, as text. A missing value becomes ``MISSING``."""
    if unknown is None:
        return []
    is_single = isinstance(unknown, str) or not hasattr(unknown, "__iter__")
    levels = [unknown] if is_single else unknown
    return [MISSING if pd.isna(level) else str(level) for level in levels]
