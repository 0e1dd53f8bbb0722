"""Checks of labels, scores and weights that metrics and estimators share.

Checks of columns (``one_dimensional``, ``check_labels``, ``check_scores``, ``check_weights``)
return the values in a form that the rest computes with. Checks of options (``check_number``,
``check_limit`` and others) mostly return nothing. All raise an error that names the argument. How
labels are read is decided in :mod:`skfair.groups.labels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from skfair._typing import ColumnLike, FloatArray, IntArray
from skfair.exceptions import LooseLimitWarning
from skfair.utils.factorize import Factorized, factorize
from skfair.utils.text import listed, plural
from skfair.utils.warn import warn_user

# A limit on a difference of rates that is larger than this was probably meant as a ratio. The usual
# ratios are 0.8 and 0.9, and the usual limits on a difference are at most 0.2.
LOOSE = 0.5
# A limit below this share of the spread of y can hardly be meant. 0.05 for salaries of 50,000 is
# 3e-6 of it. Limits that were meant lie above 5e-4 in all examples and tests.
_TINY_SHARE = 1e-4
_PERCENTAGES = 0.001, 1.0  # limits from 0.1% to 100%, as people write them
# If all weights are smaller than the first, 1 / (their sum) may overflow, and if one is larger than
# the second, so may the sum of squared weights.
_SMALLEST, _LARGEST = 1e-290, 1e140


def one_dimensional(
    values: Any, name: str, n_samples: int | None = None, *, may_be_empty: bool = False
) -> Any:
    """Return ``values`` as a 1-d array (or pandas extension array); raise for other shapes.

    A table with one column is accepted. ``name`` is the name of the values in errors. With
    ``n_samples``, another number of rows raises.
    """
    if values is None:
        raise ValueError(f"{name} is None. Pass one value per row.")
    try:
        is_extended = not isinstance(getattr(values, "dtype", None), np.dtype)
        # A pandas Series of extension dtype needs no copy, and no array of objects.
        array = values.array if is_extended and hasattr(values, "array") else np.asarray(values)
    except ValueError as error:
        raise ValueError(f"The rows of {name} differ in length.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        hint = ""
        if array.ndim == 2 and array.shape[1] == 2:
            hint = " For probabilities, pass the column of the positive class: proba[:, 1]."
        elif array.ndim == 2 and name == "y_score":
            hint = (
                " For probabilities of several classes, pass the column of one of them, such as "
                "proba[:, 0], beside the true labels y == label."
            )
        raise ValueError(
            f"{name} must be 1-dimensional, got an array of shape {array.shape}.{hint}"
        )
    n_rows = len(array)
    if not n_rows and not may_be_empty:
        raise ValueError(f"{name} is empty.")
    if n_samples is not None and n_rows != n_samples:
        raise ValueError(
            f"{name} has {n_rows} rows but the other arguments have {n_samples}. Pass one value "
            "per row."
        )
    return array


def check_labels(values: Any, name: str, n_samples: int | None = None) -> Factorized:
    """Encode class or cluster labels; missing labels and wrong lengths raise.

    Returns the code of each row, and the sorted labels that the codes number.
    """
    array = one_dimensional(values, name, n_samples)
    factorized = factorize(array)
    if factorized.codes.min(initial=0) < 0:
        n_missing = int(np.count_nonzero(factorized.codes < 0))
        raise ValueError(
            f"{name} has {plural(n_missing, 'missing value')} in {len(array)} rows. Drop them."
        )
    return factorized


def check_clusters(
    labels: ColumnLike, n_clusters: int | None = None, n_samples: int | None = None
) -> tuple[IntArray, int]:
    """Return the cluster of each row as a code, and the number of clusters.

    If ``n_clusters`` is None, labels may be of any kind, and only clusters with rows count.
    Otherwise the labels must be integers in ``range(n_clusters)``. They are then the codes, and
    clusters may be empty.
    """
    codes, levels = check_labels(labels, "labels", n_samples)
    if n_clusters is None:
        return codes, len(levels)
    check_number(n_clusters, "n_clusters", 1, kind=Integral)
    unknown = [level for level in levels if level not in range(n_clusters)]
    if unknown:
        raise ValueError(
            f"With {n_clusters} clusters given, labels must be integers from 0 to "
            f"{n_clusters - 1}, got {listed(unknown)}. Renumber the labels, for example with "
            "numpy.unique(labels, return_inverse=True)[1]."
        )
    return np.array(levels, dtype=np.int64)[codes], n_clusters


def check_scores(values: Any, name: str = "y_score", n_samples: int | None = None) -> FloatArray:
    """Return scores as a contiguous float64 array; NaN and infinity raise."""
    array = one_dimensional(values, name, n_samples)
    try:
        scores = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got values like {array[0]!r}.") from error
    n_bad = int(scores.size - np.count_nonzero(np.isfinite(scores)))
    if n_bad:
        raise ValueError(f"{name} has {plural(n_bad, 'value')} that are NaN or infinite.")
    return scores


def check_weights(values: Any, n_samples: int, *, are_all: bool = True) -> FloatArray | None:
    """Return sample weights as float64, or None for None; negative or all-zero weights raise.

    If the caller has only some of the weights, such as the weights of a block, they may all be 0.
    It then passes ``are_all=False``.
    """
    if values is None:
        return None
    try:
        weights = check_scores(values, "sample_weight", n_samples)
    except ValueError as error:
        if "must be numeric" not in str(error):
            raise
        raise ValueError(f"{error} Groups are passed as sensitive_features=...") from error
    if weights.min() < 0:
        raise ValueError(
            f"sample_weight has negative values (smallest: {weights.min():g}). Pass weights >= 0."
        )
    largest = float(weights.max())
    if are_all and not largest:
        raise ValueError("sample_weight is zero for every row.")
    if 0 < largest < _SMALLEST:
        raise ValueError(
            f"sample_weight is at most {largest:g}, too small to be divided by. Multiply all of "
            "it by the same number."
        )
    if largest > _LARGEST:
        raise ValueError(
            f"sample_weight is up to {largest:g}, too large to be squared and added. Divide all of "
            "it by the same number."
        )
    return weights


def weight_range(weights: FloatArray | None) -> tuple[float, float]:
    """Return the smallest positive and the largest weight of a row; without weights 1."""
    if weights is None:
        return 1.0, 1.0
    return float(weights.min(initial=np.inf, where=weights > 0)), float(weights.max(initial=0.0))


def check_number(
    value: Any, name: str, low: float = -np.inf, high: float = np.inf, kind: type = Real
) -> None:
    """Raise unless an option is a number of the kind from ``low`` to ``high``."""
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if is_number and low <= value <= high:  # False for NaN
        return
    what = "an integer" if kind is Integral else "a number"
    extent = f" from {low:g} to {high:g}" if np.isfinite([low, high]).any() else ""
    is_share = is_number and high == 1
    raise ValueError(f"{name} must be {what}{extent}, got {value!r}.{as_share(value, is_share)}")


def as_share(value: Any, is_share: bool = True) -> str:
    """Ask whether a number from 2 to 100 was meant in percent."""
    is_percent = is_share and isinstance(value, Real) and 2 <= float(value) <= 100
    return f" Did you mean {float(value) / 100:g}, a share?" if is_percent else ""


def check_limit(
    limit: float,
    text: str,  # the limit as the user wrote it
    most: float = 1.0,  # the largest possible disparity
    *,
    # How to limit a ratio instead, or "" if that is not possible. None if the limit is not on a
    # difference of rates, so that there is no warning
    ratio: str | None = None,
) -> None:
    """Raise if a limit is above all disparities; warn if it is so large that a ratio may be meant.

    A limit of 1 is the usual way to set no limit, so there is no warning.
    """
    if limit > most:
        raise ValueError(
            f"{text} limits nothing: rates differ by at most {most:g}. Pass a share, 0.05 for 5%."
        )
    if ratio is not None and most <= 1 and LOOSE < limit < 1:
        meant = f" For a smallest ratio, as in the four-fifths rule, use {ratio}." if ratio else ""
        warn_user(
            f"{text} allows two groups to differ by {100 * limit:.3g} percentage points, so it "
            f"limits next to nothing. Set a smaller limit, such as 0.05, or 1 for no limit.{meant}",
            LooseLimitWarning,
        )


def ask_of_unit(limit: float, typical: float) -> None:
    """Warn if a limit in the unit of y looks like a percentage, because it is tiny in this unit.

    ``typical`` is the standard deviation of y, or its square if the limit is on squared errors.
    """
    low, high = _PERCENTAGES
    if low <= limit < min(high, _TINY_SHARE * typical):
        warn_user(
            f"max_disparity={limit:g} is in the unit of y (squared for squared errors), in which "
            f"the target typically deviates by {typical:.3g}, so groups may differ by next to "
            f"nothing. If {100 * limit:.3g}% was meant, pass {100 * limit:.3g}% of this size: "
            f"max_disparity={limit * typical:.3g}. Otherwise, ignore this warning."
        )


def check_probability(value: object, name: str) -> None:
    """Raise unless an option is a number strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}.{as_share(value)}")
    if name == "confidence" and float(value) < 0.5:
        warn_user(
            f"confidence={value:g} is a level of confidence, not the chance of an error. Did you "
            f"mean {1 - float(value):g}?"
        )


def is_strict(zero_division: object) -> bool:
    """Whether an undefined rate raises: true for "raise", false for NaN; raise for others."""
    if isinstance(zero_division, str) and zero_division == "raise":
        return True
    if isinstance(zero_division, Real) and np.isnan(float(zero_division)):
        return False
    raise ValueError(f"zero_division must be 'raise' or numpy.nan, got {zero_division!r}.")


def check_numbers(values: Any, name: str) -> FloatArray:
    """Return values of any shape as float64, or raise an error that names them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {values!r}.") from error


def check_names(values: Any, name: str) -> list[str]:
    """Return a list of names as text; functions are given by their ``__name__``."""
    if isinstance(values, str) or not hasattr(values, "__len__"):
        raise TypeError(f"{name} must be a list of names, got {values!r}.")
    return [str(getattr(value, "__name__", value)) for value in values]


def check_layers(sizes: Sequence[int], what: str) -> tuple[int, ...]:
    """Return the sizes of the hidden layers of a network as a tuple; it may be empty.

    ``what`` is their name in the error.
    """
    layers = np.atleast_1d(np.asarray(sizes))
    if layers.size and (layers.dtype.kind not in "iu" or layers.ndim > 1 or layers.min() < 1):
        raise ValueError(f"{what} must be positive integers, got {sizes!r}.")
    return tuple(layers.tolist())
