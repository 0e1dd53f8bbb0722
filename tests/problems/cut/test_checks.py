"""Checks of matrices between rows, against the same in plain numpy."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skfair._kernels.affinity import read_symmetric
from skfair.problems.cut.checks import check_dense


@pytest.mark.parametrize("n", [2, 31, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_pass_finds_what_numpy_finds(n, dtype):
    W = np.random.default_rng(n).normal(size=(n, n))
    out = np.zeros((n, n), dtype)
    expected = W.min(), W.max(), np.abs(W - W.T).max(), 0
    assert read_symmetric(W, 0, n, out) == expected
    assert_array_equal(out, W.astype(dtype))
    assert read_symmetric(W, 0, n, np.empty((0, 0))) == expected
    parts = [read_symmetric(W, i, min(i + 64, n), out) for i in range(0, n, 64)]
    found = [
        function(column)
        for function, column in zip((min, max, max, sum), zip(*parts, strict=True), strict=True)
    ]
    assert tuple(found) == expected
    W[n - 1, 0] = W[0, 1] = np.nan
    assert read_symmetric(W, 0, n, out)[3] == 2 if n == 2 else 4


def test_the_same_precision_is_not_copied():
    W = np.eye(40)
    assert check_dense(W, np.float64) is W
    narrow = check_dense(W, np.float32)
    assert narrow.dtype == np.float32
    assert_array_equal(narrow, W)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN or inf"), (np.inf, "NaN or inf"), (-1, "smallest: -1"), (2, "not symmetric")],
)
@pytest.mark.parametrize("place", [(99, 0), (0, 99), (20, 83)])
def test_what_is_wrong_is_found_in_every_tile(value, message, place):
    W = np.ones((100, 100))
    W[place] = value
    with pytest.raises(ValueError, match=message):
        check_dense(W, np.float32)
