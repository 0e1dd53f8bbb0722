"""Helpers shared by the data sets: exact group sizes, and the objects that are returned.

``split_counts`` turns shares into whole numbers of rows, so that a share of 30% is exact and not a
random number near 30%. Every ``make_*`` returns a named tuple, which can be unpacked.
``pack_dataset`` builds the ``Bunch`` (or the triple) that the fetchers and the local loader return.
Its fields have the names of the fields of the named tuples.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch
from sklearn.utils._param_validation import validate_params

if TYPE_CHECKING:
    import pandas as pd


class Sample(NamedTuple):
    """Rows (of a table, or of the matrix of a graph), their labels and their groups."""

    data: Any
    target: Any
    sensitive_features: Any


class ScoredSample(NamedTuple):
    """Labels, scores and groups."""

    target: Any
    scores: Any
    sensitive_features: Any


_Function = TypeVar("_Function", bound=Callable[..., object])


def checks(constraints: dict[str, list[Any]]) -> Callable[[_Function], _Function]:
    """Decorate a function: its parameters are checked as scikit-learn checks its own."""
    decorator = validate_params(constraints, prefer_skip_nested_validation=True)
    return cast(Callable[[_Function], _Function], decorator)


def split_counts(n_samples: int, shares: Sequence[float]) -> npt.NDArray[np.int64]:
    """Split ``n_samples`` rows by ``shares`` (summing to 1), each off by less than one row.

    This is the method of the largest remainder: every part is rounded down, and the remaining rows
    go to the parts that lost most by rounding. If losses are equal, the earlier part gets the row.
    """
    exact = n_samples * np.asarray(shares, dtype=np.float64)
    # 1000 * 0.29 is 289.99999999999994, which must not be rounded down to 289.
    counts = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n_samples - counts.sum()]] += 1
    return counts


def pack_dataset(
    *,
    data: "pd.DataFrame",
    target: "pd.Series | None",
    sensitive: "pd.DataFrame",
    return_X_y: bool,
    **extra: Any,
) -> Any:
    """Return ``(X, y, sensitive_features)``, or a ``Bunch`` with the ``extra`` fields as well."""
    if return_X_y:
        return data, target, sensitive
    return Bunch(
        data=data,
        target=target,
        sensitive_features=sensitive,
        feature_names=list(data.columns),
        sensitive_names=list(sensitive.columns),
        **extra,
    )
