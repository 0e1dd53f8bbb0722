"""Types that the annotations of the package share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# Dense or CSR rows of data.
Rows = NDArray[Any] | sparse.csr_array
# A solver calls it with its parameters after each iteration, and stops if it returns True.
Callback = Callable[[Any], bool]
# The argument of scikit-learn's ``check_random_state``.
Seed = int | np.random.RandomState | None


class SupportsArray(Protocol):
    """Objects that numpy converts: Series and tables of pandas or polars, Dask collections."""

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        """Return the values as an array."""


class SupportsNumpy(Protocol):
    """Objects with a method that returns an array: extension arrays, columns of pyarrow."""

    def to_numpy(self) -> NDArray[Any]:
        """Return the values as an array."""


class SupportsCSR(Protocol):
    """A sparse matrix or array of scipy."""

    def tocsr(self, copy: bool = ...) -> Any:
        """Return the rows in compressed form."""


class Estimator(Protocol):
    """Objects with the methods of scikit-learn's estimators."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]:
        """Return the parameters."""

    def set_params(self, **params: Any) -> Any:
        """Set parameters."""

    @property
    def fit(self) -> Callable[..., Any]:
        """Learn from data."""


# The next types are for arguments of users. numpy's ArrayLike is not used, because it allows a
# single number or a string.
# One value per row: labels, scores, weights, queries, the groups of one attribute.
ColumnLike: TypeAlias = SupportsArray | SupportsNumpy | list[Any] | tuple[Any, ...] | range
# One value per row and attribute: sensitive features, control features.
ColumnsLike: TypeAlias = ColumnLike | Mapping[str, ColumnLike]
# One row of numbers per sample: X.
MatrixLike: TypeAlias = SupportsArray | SupportsCSR | list[Any] | tuple[Any, ...]
# Names or positions of columns of X.
ColumnNames: TypeAlias = str | int | Sequence[str | int] | NDArray[Any]
# A value of y, such as the positive class.
ClassLabel: TypeAlias = Hashable
# One percentile interval (low, high) or several, for all groups or by group.
Pairs: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | NDArray[Any]
IntervalLike: TypeAlias = Pairs | Mapping[Any, Pairs]
