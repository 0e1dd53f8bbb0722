"""Groups that are known by probability only: a table with a column for each group.

A row that belongs to a group with probability p counts there with the weight p. So each row of a
table is repeated for each group that it may belong to, with weights that add up to its weight. Any
code for weighted rows can read these repeated rows. Tables of 0 and 1 are plain groups.

Users make a :class:`GroupProbabilities`. For a fit, :func:`read_probabilities` reads it, and
``TrainingData.of`` repeats the rows by :meth:`GroupProbabilities.spread`. For metrics,
``MeasuredRows.read`` does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import ColumnsLike, FloatArray, IntArray
from skfair.groups.attributes import SENSITIVE, read_columns
from skfair.groups.encoding import GroupEncoding
from skfair.groups.levels import GroupLevels
from skfair.groups.sensitive import Sensitive
from skfair.utils.text import listed, plural
from skfair.utils.warn import warn_user

# The sum of the probabilities of a row may differ from 1 by this, because float32 has an error of
# 1e-7 per group.
ROUNDING = 1e-5


class GroupProbabilities:
    """Probabilities of the groups of each person, for groups that are not known exactly.

    Pass it as ``sensitive_features`` to metrics, reports and estimators. Each person then counts in
    each group with the probability as weight. If X contains the probabilities, estimators read them
    with ``sensitive=Sensitive(columns, probabilities=True)``.

    Parameters
    ----------
    table : DataFrame, dict of columns or array-like of shape (n_samples, n_groups)
        Probability of each group (column) for each sample (row), for example from a model of names
        and places. The sum of each row must be 1. If all values are 0 or 1, results are the same as
        with plain group labels.
    names : list of str, default=None
        Names of the groups. If None, the names of the columns are used, or their numbers if the
        columns have no names.

    See Also
    --------
    skfair.metrics.disparity_bounds : Bounds on the true disparity.

    Notes
    -----
    Weighted rates are biased if decisions depend on the group in ways that the probabilities do not
    reflect. The user guide on groups explains when this happens.

    Examples
    --------
    The first person counts as a woman with weight 0.9, and as a man with weight 0.1.

    >>> from skfair import GroupProbabilities
    >>> from skfair.metrics import demographic_parity_difference
    >>> sex = GroupProbabilities({"f": [0.9, 0.8, 0.1], "m": [0.1, 0.2, 0.9]})
    >>> value = demographic_parity_difference(None, [0, 1, 1], sensitive_features=sex)
    >>> round(value, 3)
    0.417
    """

    def __init__(self, table: ColumnsLike, names: Sequence[str] | None = None) -> None:
        columns = read_columns(table)
        numbers = [str(j) if name is None else name for j, (name, _) in enumerate(columns)]
        self.names = tuple(numbers if names is None else map(str, names))
        if len(self.names) != len(columns) or len(set(self.names)) < len(self.names):
            raise ValueError(
                f"names must be one name for each of the {len(columns)} columns, all different, "
                f"got {names!r}."
            )
        self.values = _checked([values for _, values in columns], self.names)
        self.index = getattr(table, "index", None)
        if len(self.values) > 1 and (self.values == self.values[0]).all():
            warn_user(
                f"The probabilities of {listed(self.names)} are the same in every row. They say "
                "nothing about who is in which group, so that all weighted differences are 0."
            )

    @property
    def shape(self) -> tuple[int, int]:
        rows, groups = self.values.shape
        return rows, groups

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, *args: Any, **kwargs: Any) -> NDArray[Any]:
        """Return a copy of the probabilities, shape (n_samples, n_groups)."""
        return np.array(self.values, *args, **kwargs)

    def __repr__(self) -> str:
        return f"GroupProbabilities({len(self)} rows, groups {listed(self.names)})"

    def __getitem__(self, rows: Any) -> GroupProbabilities:
        """Return some rows, as indexing of arrays does."""
        if isinstance(rows, tuple):  # scikit-learn indexes by (rows, ...)
            rows = rows[0] if len(rows) == 2 and rows[1] is Ellipsis else rows
        taken = GroupProbabilities.__new__(GroupProbabilities)
        taken.names, taken.values = self.names, self.values[rows]
        if taken.values.ndim != 2 or taken.values.shape[1] != len(self.names):
            raise IndexError(f"GroupProbabilities are indexed by rows, got {rows!r}.")
        taken.index = None if self.index is None or callable(self.index) else self.index[rows]
        return taken

    def spread(
        self, sample_weight: FloatArray | None = None
    ) -> tuple[IntArray, FloatArray, GroupEncoding]:
        """Repeat each row for every group that it may belong to.

        Groups with probability 0 in all rows are left out.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,), default=None
            Weights of the rows. If None, all rows have weight 1.

        Returns
        -------
        owners : ndarray
            Index of the original row of each repeated row, in ascending order.
        weights : ndarray
            Weight of each repeated row, which is the weight of the original row times the
            probability of the group.
        groups : GroupEncoding
            Group of each repeated row.
        """
        possible = np.flatnonzero(self.values.any(axis=0))
        owners, codes = np.nonzero(self.values[:, possible])
        shares = self.values[owners, possible[codes]]
        names = tuple(self.names[j] for j in possible)
        attribute = SENSITIVE.argument.removesuffix("s")
        levels = GroupLevels((attribute,), (list(names),), None, names, np.array([0, len(names)]))
        counts = whole_numbers(self.values[:, possible].sum(axis=0))
        weights = shares if sample_weight is None else shares * sample_weight[owners]
        return owners, weights, GroupEncoding(codes[None], levels, counts, shares)


def _checked(columns: list[Any], names: tuple[str, ...]) -> FloatArray:
    """Return the probabilities as an array whose rows sum to 1; raise for anything else."""
    if len(columns) < 2:
        raise ValueError(
            f"GroupProbabilities needs a column for each of two groups or more, got {names[0]!r} "
            "alone. Of two groups pass p and 1 - p."
        )
    try:
        values = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Probabilities of groups must be numbers, but the columns {listed(names)} have "
            "others. Pass plain labels as they are, without GroupProbabilities."
        ) from error
    is_missing = ~np.isfinite(values).all(axis=1)
    if is_missing.any():
        raise ValueError(
            f"Probabilities of groups are missing or infinite in {_rows(is_missing)}. Drop these "
            "rows, give them the shares of the groups among all people, or add a group 'unknown' "
            "that has probability 1 there."
        )
    totals = values.sum(axis=1)
    is_wrong = (values < 0).any(axis=1) | (np.abs(totals - 1) > ROUNDING)
    if is_wrong.any():
        first = int(is_wrong.argmax())
        hint = "of 1 for each row" if abs(totals[first] - 100) > 1 else "of 1, not 100%"
        raise ValueError(
            f"Probabilities of groups must be at least 0 with a sum {hint}, but "
            f"{_rows(is_wrong)} have others, for example {values[first].tolist()}. Divide by the "
            "sum, or add a column for the groups that are missing."
        )
    return np.asarray(values / totals[:, None])


def _rows(is_wrong: Any) -> str:
    """Return how many rows are wrong, for an error."""
    return f"{plural(int(is_wrong.sum()), 'row')} of {is_wrong.size}"


def check_length(table: GroupProbabilities, n_rows: int) -> None:
    """Raise unless other data have as many rows."""
    if n_rows != len(table):
        raise ValueError(
            f"sensitive_features has {len(table)} rows but the other data have {n_rows}. Pass one "
            "row of probabilities for each."
        )


def read_probabilities(
    estimator: object,  # the estimator that is fitted
    sensitive: Sensitive,  # the parameter ``sensitive`` of the estimator, read
    sensitive_features: Any,
    n_samples: int,
) -> GroupProbabilities | None:
    """Return the probabilities of groups that a fit was given; None if it has plain groups.

    An estimator that cannot use probabilities, or whose parameters need the group of each row,
    raises.
    """
    table = sensitive_features
    if sensitive.probabilities and not isinstance(table, GroupProbabilities):
        table = GroupProbabilities(table)
    if not isinstance(table, GroupProbabilities):
        return None
    name = type(estimator).__name__
    if not getattr(estimator, "_reads_probabilities", False):
        raise TypeError(
            f"{name} needs the group of each row, not probabilities. Constrained models and "
            "FairDecisionClassifier read these."
        )
    for parameter in ("group_aware", "certificate"):
        value = getattr(estimator, parameter, None)
        if value not in (None, False):
            raise ValueError(
                f"{parameter}={value!r} of {name} needs the group of each person, but "
                "sensitive_features are probabilities. Leave it at its default."
            )
    check_length(table, n_samples)
    return table


def whole_numbers(sizes: FloatArray) -> IntArray:
    """Round sizes of groups up or down so that their sum is the rounded sum of the sizes.

    The sizes that lose most by rounding down are rounded up.
    """
    rounded = np.floor(sizes + 1e-9).astype(np.int64)  # 2.9999999999 counts as 3
    left = round(float(sizes.sum())) - int(rounded.sum())
    rounded[np.argsort(rounded - sizes, kind="stable")[:left]] += 1
    return rounded
