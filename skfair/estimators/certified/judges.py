"""First steps of certificates of one refitted model: split the rows, fit the models, read a limit.

The certificates of each family call these before they judge the models:
:mod:`skfair.classification.certifying`, :mod:`skfair.regression.certifying` and
:mod:`skfair.partial_parity.certificate`.
"""

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
    estimator: Certified,
    X: Any,  # as it was passed: the models are clones of the estimator, and read it themselves
    data: TrainingData,
    kinds: IntArray,  # (n_samples,): group and class of each row, as one number; each is split
    metadata: Any,  # groups, strata and weights, as the user passed them
    seed: Seed,
) -> tuple[HeldOut, Iterator[list[Any]]]:
    """Return the rows, split for fit and test, and an iterator of models under rising limits.

    Each model is fitted when the iterator is asked for it.
    """
    rows, y = indexable(as_rows(X), data.y)
    fitted, judging = in_parts(kinds, seed, estimator._certificate().share, data.units)
    held_out = HeldOut(rows, y, [(fitted, data.groups.known(judging))], data.units)
    return held_out, refits(estimator, held_out, metadata)


def one_limit(limit: Any) -> float:
    """Return ``max_disparity`` as a number; raise if it is a dict of limits of attributes."""
    if isinstance(limit, Mapping):
        raise ValueError(
            "certificate= needs one max_disparity for all attributes here, got "
            f"{limit!r}. Use the smallest one."
        )
    return float(limit)
