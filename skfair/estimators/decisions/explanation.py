"""Why a person got a decision: the probability, the threshold, and what the limits change of it.

``FairDecisionClassifier.explain_decision`` calls :func:`explained`. With two classes each row has a
threshold of its own: the probability of the positive class at which its margin is 0, while its
groups, known or estimated, stay as they are. Without offsets it is the threshold that the objective
alone would set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.lines import decided
from skfair.enforcement.decisions.shares import with_ties_broken
from skfair.estimators.decisions.prediction import Decider

# So many times the interval from 0 to 1 can be halved before it is narrower than a float.
_HALVINGS = 60


def explained(
    decider: Decider,
    rows: Any,
    chances: FloatArray,  # (n_samples, 2): probabilities of both classes, the positive one last
    groups: IntArray | None,
    strata: IntArray | None,
    classes: NDArray[Any],  # both classes, the positive one last
    names: NDArray[Any],  # names of the groups of all attributes
) -> Any:
    """Return a table with a line for each row: its decision, numbers, and a sentence."""
    import pandas as pd

    if decider.mixture is not None:
        raise ValueError(
            "A group has several thresholds here, and a number made of the columns of a row says "
            "which one it gets. Fit with group_aware=True for decisions that can be explained."
        )
    free = replace(decider, offsets=np.zeros_like(decider.offsets), group_models=None)
    labels, free_labels = (
        decided(own.margins(rows, chances, groups, strata)) for own in (decider, free)
    )
    threshold, is_above = _thresholds(decider, rows, len(chances), groups, strata)
    free_threshold, _ = _thresholds(free, rows, len(chances), groups, strata)
    table = {
        "decision": classes[labels],
        "probability": chances[:, 1],
        "threshold": threshold,
        "selected": np.where(is_above, "above", "below"),
        "decision_without_limits": classes[free_labels],
        "threshold_without_limits": free_threshold,
    }
    sentences = list(starmap(_sentence, zip(*table.values(), strict=True)))
    if decider.group_models is not None:
        of_groups = decider.group_models.joint(rows, chances).sum(axis=2)
        table |= {f"estimated {name}": own for name, own in zip(names, of_groups.T, strict=True)}
    return pd.DataFrame({**table, "sentence": sentences})


def _thresholds(
    decider: Decider, rows: Any, n: int, groups: IntArray | None, strata: IntArray | None
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the threshold of each row, and whether rows above it are selected.

    It is infinite if the decision is the same whatever the probability.
    """
    plain = replace(decider, corrections=None, tie_weight=0.0)
    # What a row pays for the second decision if it is certainly of the first or of the second class
    paid = [
        decider.utility[k] - plain.margins(rows, np.tile(np.eye(2)[k], (n, 1)), groups, strata)
        for k in range(2)
    ]
    own_groups = None if groups is None else groups[0]

    def gain(p: FloatArray) -> FloatArray:
        """Return the margin of the second decision over the first at some probabilities."""
        chances = np.column_stack([1 - p, p])
        if decider.corrections is not None:
            chances = decider.corrections(chances, own_groups)
        values = with_ties_broken(chances @ decider.utility, decider.tie_weight)
        values = values - chances[:, :1] * paid[0] - chances[:, 1:] * paid[1]
        return np.asarray(values[:, 1] - values[:, 0])

    return _crossings(gain, n)


def _crossings(
    gain: Callable[[FloatArray], FloatArray], n: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return where each of n functions on [0, 1] changes its sign, and whether it is higher at 1.

    If a function is positive at both ends, or at none, the place is infinite, beyond the other end.
    """
    low, high = np.zeros(n), np.ones(n)
    first, last = gain(low), gain(high)
    is_rising = last >= first
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_beyond = (gain(middle) > 0) == is_rising
        low, high = np.where(is_beyond, low, middle), np.where(is_beyond, middle, high)
    is_constant = (first > 0) == (last > 0)
    beyond = np.where((first > 0) == is_rising, -np.inf, np.inf)
    return np.where(is_constant, beyond, (low + high) / 2), is_rising


def _sentence(
    decision: Any, p: float, threshold: float, side: str, free: Any, free_threshold: float
) -> str:
    """Say a decision in words that the person may be told."""
    digits = 2
    while digits < 6 and round(p, digits) in (
        round(threshold, digits),
        round(free_threshold, digits),
    ):
        digits += 1
    same = "the same" if decision == free else f"{free}"
    bar = f"the threshold is {threshold:.{digits}f}"
    bar += "" if side == "above" else " (those below it are selected)"
    if np.isinf(threshold):
        bar = "it is the same whatever the probability"
    without = f"the threshold would be {free_threshold:.{digits}f} and the decision {same}"
    if np.isinf(free_threshold):
        without = f"it would be {same}"
    return (
        f"Decision {decision} at the probability {p:.{digits}f}: {bar}. "
        f"Without the limits {without}."
    )
