"""What judges of refitted models have in common: rows split for fit and test, and one limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.utils import indexable

from skfair._typing import IntArray, Seed
from skfair.estimators.certificate import Certified
from skfair.estimators.certified.refits import HeldOut, in_parts, refits
from skfair.estimators.wrapped_scores import as_rows
from skfair.groups.training_data import TrainingData


def split_and_fits(
    estimator: Certified, X: Any, data: TrainingData, kinds: IntArray, metadata: Any, seed: Seed
) -> tuple[HeldOut, Iterator[list[Any]]]:
    """Return the rows, split for fit and test, and models fitted under rising limits."""
    rows, y = indexable(as_rows(X), data.y)
    fitted, judging = in_parts(kinds, seed, estimator._certificate().share, data.units)
    held_out = HeldOut(rows, y, [(fitted, data.groups.known(judging))], data.units)
    return held_out, refits(estimator, held_out, metadata)


def one_limit(limit: Any) -> float:
    """Return a limit; raise if there is one for each attribute."""
    if isinstance(limit, Mapping):
        raise ValueError(
            "certificate= needs one max_disparity for all attributes here, got "
            f"{limit!r}. Use the smallest one."
        )
    return float(limit)
