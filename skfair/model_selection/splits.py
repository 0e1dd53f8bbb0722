"""Cross-validation splits stratified by class and group.

A group's rates are estimated on its rows in the test part, so their number must not depend on
chance. The rows are sorted by cell (a class within a group), shuffled within the cells, and dealt
to the parts in turn, like cards. So every cell is spread as evenly as its size allows, also if it
has fewer rows than there are folds, and the sizes of the parts differ by at most one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _num_samples

from skfair._typing import (
    BoolArray,
    ColumnLike,
    ColumnNames,
    ColumnsLike,
    IntArray,
    MatrixLike,
    Seed,
)
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import encode_groups
from skfair.groups.named_columns import take_columns
from skfair.utils.docs import documented
from skfair.utils.validation import check_labels, check_number

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class _StratifiedSensitive(BaseCrossValidator):
    """Base of both splitters, which finds the groups and numbers the cells.

    Subclasses turn the cells into splits, in ``_deal``.
    """

    # With metadata routing, sensitive_features are passed to split without set_split_request. The
    # argument ``groups`` of scikit-learn (rows that must stay together) is not used here.
    __metadata_request__split = {"sensitive_features": True}

    n_splits: int
    sensitive: Any
    random_state: Seed

    def get_n_splits(
        self,
        X: MatrixLike | None = None,
        y: ColumnLike | None = None,
        groups: Any = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X : object
            Not used, present for API consistency by convention.
        y : object
            Not used, present for API consistency by convention.
        groups : object
            Not used, present for API consistency by convention.
        sensitive_features : object
            Not used, present for API consistency by convention.

        Returns
        -------
        n_splits : int
            Number of splits.
        """
        return self.n_splits

    def split(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        groups: Any = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> Iterator[Split]:
        """Generate the indices of the training rows and the test rows of each split.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples. Their values are only used if ``sensitive`` is set.
        y : array-like of shape (n_samples,), default=None
            Class labels for the stratification. If it is None or continuous, the splits are
            stratified by group only.
        groups : object
            Not used, present for API consistency by convention.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            Sensitive attributes, which define the group of each sample. With several attributes,
            the groups are their intersections.

        Yields
        ------
        train : ndarray
            Indices of the training rows.
        test : ndarray
            Indices of the test rows.
        """
        cells = self._cells(X, y, sensitive_features)
        yield from self._deal(cells)

    def _cells(
        self, X: MatrixLike, y: ColumnLike | None, sensitive_features: ColumnsLike | None
    ) -> IntArray:
        """Return the number of the cell (group and class) of each row.

        If ``y`` is None or its values are not classes, the cell is the group.
        """
        n_samples = _num_samples(X)
        if self.sensitive is not None:
            if sensitive_features is not None:
                raise ValueError(
                    f"{type(self).__name__} got sensitive_features although sensitive is "
                    "set. Use one of the two."
                )
            sensitive_features = take_columns(X, self.sensitive)
        if sensitive_features is None:
            raise ValueError(
                f"{type(self).__name__} got no sensitive_features. Pass them to split, or (in a "
                "search) enable metadata routing, or name the columns of X that hold "
                "the groups in sensitive."
            )
        check_aligned(X=X, sensitive_features=sensitive_features)
        encoding = encode_groups(sensitive_features, n_samples=n_samples)
        if y is None or type_of_target(y) not in ("binary", "multiclass"):
            return np.asarray(encoding.codes[0])
        classes = check_labels(y, "y", n_samples)
        return np.asarray(encoding.codes[0] * len(classes.levels) + classes.codes)

    def _deal(self, cells: IntArray) -> Iterator[Split]:
        """Yield the rows of the training and the test part of each split."""
        raise NotImplementedError


class StratifiedSensitiveKFold(_StratifiedSensitive):
    """K-fold cross-validation that is stratified by group and class.

    Each fold has the same share of every group within every class, so that the rates of small
    groups can be measured in all folds.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds. It must be at least 2.
    shuffle : bool, default=False
        If True, the rows of each group and class are shuffled before they are split.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling. Pass an int for reproducible results.
    sensitive : str, int or list of them, default=None
        Names or positions of the columns of X that hold the groups. If None, the groups are passed
        to ``split`` as ``sensitive_features``. Searches do this if metadata routing is enabled.

    See Also
    --------
    StratifiedSensitiveShuffleSplit : Random splits with a given number of test rows.

    Notes
    -----
    If m rows have the same group and class, each fold contains ``floor(m / n_splits)`` of them or
    one more, even if m is smaller than ``n_splits``. The splits cost O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.model_selection import StratifiedSensitiveKFold
    >>> X, y = np.zeros((12, 1)), np.tile([0, 1], 6)
    >>> sex = np.repeat(["f", "m"], [4, 8])
    >>> for train, test in StratifiedSensitiveKFold(2).split(X, y, sensitive_features=sex):
    ...     print(sorted(sex[test].tolist()))
    ['f', 'f', 'm', 'm', 'm', 'm']
    ['f', 'f', 'm', 'm', 'm', 'm']
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: Seed = None,
        sensitive: ColumnNames | None = None,
    ) -> None:
        if isinstance(n_splits, bool) or not isinstance(n_splits, int | np.integer) or n_splits < 2:
            raise ValueError(f"n_splits must be an integer of at least 2, got {n_splits!r}.")
        if random_state is not None and not shuffle:
            raise ValueError(
                "random_state has no effect without shuffle=True. Set it, or pass None."
            )
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        self.sensitive = sensitive

    def _deal(self, cells: IntArray) -> Iterator[Split]:
        if cells.size < self.n_splits:
            raise ValueError(
                f"Cannot split {cells.size} rows into {self.n_splits} folds. Use fewer folds."
            )
        # Rows in the order of their cells get the folds 0, 1, ..., k - 1, 0, 1, ... in turn.
        order = _by_cell(cells, check_random_state(self.random_state) if self.shuffle else None)
        fold = np.empty(cells.size, np.int64)
        fold[order] = np.arange(cells.size) % self.n_splits
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


@documented
class StratifiedSensitiveShuffleSplit(_StratifiedSensitive):
    """Random train and test splits that are stratified by group and class.

    The test part of each split has the same share of every group within every class as the data.

    Parameters
    ----------
    n_splits : int, default=10
        Number of splits.
    test_size : float or int, default=0.1
        Fraction of the rows in the test part, or their number.
    train_size : float or int, default=None
        Fraction of the rows in the training part, or their number. If None, it consists of all rows
        that are not in the test part.
    sensitive : str, int or list of them, default=None
        Names or positions of the columns of X that hold the groups. If None, the groups are passed
        to ``split`` as ``sensitive_features``. Searches do this if metadata routing is enabled.

    See Also
    --------
    StratifiedSensitiveKFold : Folds in which each row is tested once.

    Notes
    -----
    The number of test rows with the same group and class differs from the exact share by at most
    one, and the total number of test rows is exact. Each split costs O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.model_selection import StratifiedSensitiveShuffleSplit
    >>> X, y = np.zeros((20, 1)), np.tile([0, 1], 10)
    >>> sex = np.repeat(["f", "m"], 10)
    >>> splitter = StratifiedSensitiveShuffleSplit(1, test_size=0.4, random_state=0)
    >>> train, test = next(splitter.split(X, y, sensitive_features=sex))
    >>> np.unique(sex[test], return_counts=True)[1].tolist()
    [4, 4]
    """

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float = 0.1,
        train_size: float | None = None,
        random_state: Seed = None,
        sensitive: ColumnNames | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.test_size = test_size
        self.train_size = train_size
        self.random_state = random_state
        self.sensitive = sensitive

    def _deal(self, cells: IntArray) -> Iterator[Split]:
        n_samples = cells.size
        n_test = _n_rows(self.test_size, n_samples, "test_size")
        rest = n_samples - n_test
        n_train = rest
        if self.train_size is not None:
            n_train = _n_rows(self.train_size, n_samples, "train_size")
        if not 0 < n_train <= rest:
            raise ValueError(
                f"test_size={self.test_size} and train_size={self.train_size} leave {rest} of "
                f"{n_samples} rows for training, {n_train} are wanted. Make them smaller."
            )
        check_number(self.n_splits, "n_splits", low=1, kind=Integral)
        rng = check_random_state(self.random_state)
        for _ in range(self.n_splits):
            # Both parts take rows at equal distances in the order of the cells.
            order = _by_cell(cells, rng)
            is_test = _evenly(n_samples, n_test, rng)
            test, train = order[is_test], order[~is_test]
            if n_train < rest:
                train = train[_evenly(rest, n_train, rng)]
            yield rng.permutation(train), rng.permutation(test)


def _by_cell(cells: IntArray, rng: np.random.RandomState | None) -> NDArray[np.intp]:
    """Return the rows sorted by cell, shuffled within each cell if a generator is given."""
    if rng is None:
        return np.argsort(cells, kind="stable")
    shuffled = rng.permutation(cells.size)
    return np.asarray(shuffled[np.argsort(cells[shuffled], kind="stable")])


def _evenly(n: int, n_chosen: int, rng: np.random.RandomState) -> BoolArray:
    """Return a mask with ``n_chosen`` of ``n`` places at equal distances from a random start.

    Applied to rows in the order of their cells, it takes about the same share of each cell.
    """
    chosen = np.zeros(n, bool)
    chosen[((np.arange(n_chosen) + rng.uniform()) * n / n_chosen).astype(np.int64)] = True
    return chosen


def _n_rows(size: float, n_samples: int, name: str) -> int:
    """Return a number of rows, which is given as an int or as a share; raise for other values."""
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and 0 < size < n_samples:
        return int(size)
    if isinstance(size, float) and 0 < size < 1:
        return max(1, round(size * n_samples))
    raise ValueError(
        f"{name} must be a share in (0, 1) or a number of rows below {n_samples}, got {size!r}."
    )
