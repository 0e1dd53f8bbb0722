"""Why a person got a decision: the probability, the threshold, and what the limits change of it.

``FairDecisionClassifier.explain_decision`` calls :func:`explained`. With two classes each row has a
threshold of its own (:meth:`Decider.row_thresholds`). Without offsets it is the threshold that the
objective alone would set.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.lines import decided
from skfair.estimators.decisions.prediction import Decider


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

    n, free = len(chances), replace(decider, offsets=0 * decider.offsets, group_models=None)
    threshold, is_above = decider.row_thresholds(rows, n, groups, strata)
    free_threshold, _ = free.row_thresholds(rows, n, groups, strata)
    labels, free_labels = (
        decided(own.margins(rows, chances, groups, strata)) for own in (decider, free)
    )
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
