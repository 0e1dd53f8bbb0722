"""How an audit computes what it reports, checked."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from skfair._typing import Seed
from skfair.report.rules import RULES
from skfair.utils.text import listed
from skfair.utils.validation import check_names, check_number, check_probability

MISSING = "missing"  # the level of rows without a value, if these count as unknown


class Options(NamedTuple):
    """How an audit computes what it reports."""

    metrics: list[str] | None
    confidence: float
    depth: int
    min_size: float
    n_simulations: int
    rng: np.random.RandomState
    preset: str | None = None
    reference: Any = None  # a level, or a level by attribute
    unknown: frozenset[str] = frozenset()  # levels that stand for "not known"
    min_group_size: float = 1  # smaller groups are not compared
    median: float | None = None  # scores above it count as selected

    def checked(self) -> Options:
        """Return the options; raise unless they make sense."""
        check_probability(self.confidence, "confidence")
        check_number(self.depth, "depth", low=1, kind=Integral)
        check_number(self.min_size, "min_size", low=1)
        check_number(self.n_simulations, "n_simulations", low=1, kind=Integral)
        check_number(self.min_group_size, "min_group_size", low=1)
        if self.preset is not None and self.preset not in RULES:
            raise ValueError(f"preset must be {listed(list(RULES))} or None, got {self.preset!r}.")
        if self.preset == "ecoa" and self.reference is None:
            raise ValueError(
                "preset='ecoa' compares each group with a control group. Name it, for example "
                "reference='White', or reference={'sex': 'male', 'race': 'White'}."
            )
        return self


def read_options(
    metrics: Any,
    confidence: float,
    depth: int,
    min_size: float,
    n_simulations: int,
    random_state: Seed,
    **others: Any,
) -> Options:
    """Return options as the user passed them, checked."""
    names = None if metrics is None else check_names(metrics, "metrics")
    unknown = others.pop("unknown", None)
    levels = frozenset(_levels(unknown))
    rng = check_random_state(random_state)
    options = Options(names, confidence, depth, min_size, n_simulations, rng, **others)
    return options._replace(unknown=levels).checked()


def _levels(unknown: Any) -> list[str]:
    """Return the names of one level, or of several."""
    if unknown is None:
        return []
    is_single = isinstance(unknown, str) or not hasattr(unknown, "__iter__")
    levels = [unknown] if is_single else unknown
    return [MISSING if pd.isna(level) else str(level) for level in levels]
