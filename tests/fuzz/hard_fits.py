"""Hard but valid fits of estimators, each with a count of what it promises.

A :class:`Fit` is an estimator, its data, and a function that counts: what the estimator reports
beside what plain loops count, and by how much the limits are missed. Nothing here asks the code
that enforced the limits; percentile intervals are measured by :mod:`skfair.metrics`. The files of
:mod:`tests.fuzz.families` draw them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests.families import by_families
from tests.fuzz.hard_rows import Rows

EXACT = 1e-9
LIMITS = [0.0, 0.02, 0.1, 0.1, 0.3, 0.8]


class Pair(NamedTuple):
    """A number that an estimator reports, the same counted, and how far rounding may part them."""

    name: str
    reported: float
    counted: float
    slack: float = EXACT


class Count(NamedTuple):
    """What is reported and counted, and what a limit is missed by (at most 0 if none is)."""

    pairs: list[Pair]
    missed: float


@dataclass
class Fit:
    """An estimator that is not fitted yet, its data, and how to count what it promises."""

    estimator: Any
    rows: Rows
    count: Callable[[Any], Count]
    y: np.ndarray | None = None
    given: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = {"sensitive_features": self.rows.sensitive_features} | self.given

    @property
    def title(self) -> str:
        named = ", ".join(name for name in self.given)
        kinds = [len(set(groups)) for groups in self.rows.attributes]
        said = " ".join(repr(self.estimator).split())
        return f"{said}.fit({named}) [{self.rows.pattern}, groups: {kinds}]"


def weighted(rows: Rows) -> dict[str, Any]:
    return {} if rows.weights is None else {"sample_weight": rows.weights}


def ones_or_weights(rows: Rows) -> np.ndarray:
    return np.ones(rows.n) if rows.weights is None else rows.weights


def fits() -> dict[str, Callable[[np.random.Generator], Fit]]:
    """Return the functions that draw fits, by estimator."""
    return by_families("FITS", "fuzz_cases")
