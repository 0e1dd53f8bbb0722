"""Other ways to a limit for new people: candidates of one half of the rows, tested on the other.

The candidates are the package's own, under limits that rise up to the one asked for, and are tested
in that order. So what differs is the use of the rows, and the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from skfair.metrics import disparity_test

SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_DELTA = 0.05


def student(hits: np.ndarray, sizes: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Student's bounds of rates, as Seldonian toolkits take them."""
    rates = hits / sizes
    spread = np.sqrt(rates * (1 - rates) / np.maximum(sizes - 1, 1))
    width = spread * stats.t.ppf(1 - delta, np.maximum(sizes - 1, 1))
    return rates - width, rates + width


def clopper_pearson(
    hits: np.ndarray, sizes: np.ndarray, delta: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return exact bounds of rates."""
    low = np.where(hits > 0, stats.beta.ppf(delta, hits, sizes - hits + 1), 0.0)
    return low, np.where(
        hits < sizes, stats.beta.ppf(1 - delta, hits + 1, np.maximum(sizes - hits, 1e-9)), 1.0
    )


BOUNDS = {"Student": student, "Clopper-Pearson": clopper_pearson}
RIVALS = ("split", *BOUNDS)
_ROWS = {
    "demographic_parity": (None,),
    "equal_opportunity": (1,),
    "equalized_odds": (1, 0),
}


def is_shown(way: str, rule: str, limit: float, y: Any, predicted: Any, groups: Any) -> bool:
    """Whether the test of a way shows the limit; several bounds share the error."""
    if way == "split":
        found = disparity_test(
            rule, y, predicted, sensitive_features=groups, max_disparity=limit, method="melded"
        )
        return bool(found.is_within)
    names = np.unique(groups)
    delta = _DELTA / (2 * names.size * len(_ROWS[rule]))
    for label in _ROWS[rule]:
        counted = np.ones(y.size, bool) if label is None else y == label
        parts = [predicted[counted & (groups == name)] for name in names]
        hits, sizes = (np.array([f(part) for part in parts], float) for f in (np.sum, np.size))
        low, high = BOUNDS[way](hits, sizes, delta)
        if (high[:, None] - low).max(where=~np.eye(names.size, dtype=bool), initial=0.0) > limit:
            return False
    return True


def fits_on_half(
    ways: Sequence[str],
    make: Callable[[float], Any],
    rule: str,
    limit: float,
    rows: tuple[Any, Any, Any],
    is_aware: bool,
    seed: int,
) -> dict[str, Any]:
    """Return for each way the last candidate before the first that is not shown, or None."""
    X, y, groups = rows
    order = np.random.default_rng(seed + 1).permutation(y.size)
    one, other = order[: y.size // 2], order[y.size // 2 :]
    given = {"sensitive_features": groups[other]} if is_aware else {}
    kept, left = dict.fromkeys(ways), list(ways)
    for share in SHARES:
        model = make(limit * share).fit(X[one], y[one], sensitive_features=groups[one])
        predicted = model.predict(X[other], **given)
        left = [
            way for way in left if is_shown(way, rule, limit, y[other], predicted, groups[other])
        ]
        kept.update(dict.fromkeys(left, model))
        if not left:
            break
    return kept
