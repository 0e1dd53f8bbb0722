"""Random batches of rows for problems whose functions are means over cells of rows."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray, IntArray


class RowSampler:
    """Draws equally many rows of every stratum, with replacement.

    Weighted by the factors, sums over a batch are unbiased estimates of sums over all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.problems.partial.batches import RowSampler
    >>> draw = RowSampler(np.array([0, 0, 0, 0, 0, 0, 1, 1]))
    >>> rows, factors = draw(np.random.RandomState(0), 4)
    >>> rows.shape, factors
    ((4,), array([3., 3., 1., 1.]))
    """

    def __init__(self, strata: IntArray) -> None:  # (n_samples,): the stratum of each row, from 0
        self._order = np.argsort(strata, kind="stable")
        self._sizes = np.bincount(strata)
        self._first = np.cumsum(self._sizes) - self._sizes

    def __call__(self, rng: np.random.RandomState, n_rows: int) -> tuple[IntArray, FloatArray]:
        """Return about ``n_rows`` rows, at least one of each stratum, and what each stands for."""
        n_each = max(1, n_rows // self._sizes.size)
        marks = rng.random_sample((self._sizes.size, n_each))
        places = self._first[:, None] + (marks * self._sizes[:, None]).astype(np.int64)
        return self._order[places.ravel()], np.repeat(self._sizes / n_each, n_each)
