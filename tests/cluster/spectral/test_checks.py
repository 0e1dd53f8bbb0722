"""Checks of matrices between rows, against the same in plain numpy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral._kernels.products import read_rows
from skfair.cluster.spectral.affinities import checks
from skfair.cluster.spectral.affinities.checks import check_dense, check_sparse
from tests.seeds import generator


@pytest.mark.parametrize("n", [2, 31, 63, 64, 65, 200, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_one_pass_finds_what_numpy_finds(n, dtype, given):
    half = generator(n).random(size=(n, n)).astype(given)
    W = half + half.T
    read, sums = check_dense(W, dtype)
    assert_array_equal(read, W.astype(dtype))
    assert sums.dtype == np.float64
    # Python adds single numbers up in single precision, numba in double precision.
    is_compiled = hasattr(read_rows, "py_func")
    rtol = 1e-12 if is_compiled or given == np.float64 else 1e-5
    assert_allclose(sums, W.astype(np.float64).sum(axis=1), rtol=rtol)


@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_equal_sums_of_rows_and_columns_are_not_enough(given):
    """A circle in one direction has the same sums by row and by column, however they are scaled."""
    W = np.ones((300, 300), given) + np.roll(np.eye(300, dtype=given), 1, axis=1)
    assert_array_equal(W.sum(axis=0), W.sum(axis=1))
    with pytest.raises(ValueError, match="not symmetric"):
        check_dense(W, np.float32)


@pytest.mark.parametrize("apart", [3e-6, 3e-5])
@pytest.mark.parametrize("n", [3, 300])
def test_rounding_is_no_asymmetry(apart, n):
    W = np.ones((n, n))
    W[0, 1] += apart
    if apart < 1e-5:
        check_dense(W, np.float32)
    else:
        with pytest.raises(ValueError, match="differ by 3"):
            check_dense(W, np.float32)


def test_a_matrix_that_cannot_be_written_is_read():
    half = generator(0).random((50, 50))
    W = half + half.T
    W.flags.writeable = False
    for given in (W, np.asfortranarray(W), np.tile(W, (2, 2))[::2, ::2]):
        read, sums = check_dense(given, np.float32)
        assert_array_equal(read, given.astype(np.float32))
        assert_allclose(sums, given.sum(axis=1), rtol=1e-14)


def test_the_same_precision_is_not_copied():
    W = np.eye(40)
    assert check_dense(W, np.float64)[0] is W
    narrow, _ = check_dense(W, np.float32)
    assert narrow.dtype == np.float32
    assert_array_equal(narrow, W)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN or inf"), (np.inf, "NaN or inf"), (-1, "smallest: -1"), (2, "not symmetric")],
)
@pytest.mark.parametrize("place", [(99, 0), (0, 99), (20, 83), (99, 300), (399, 260)])
def test_what_is_wrong_is_found_in_every_tile(value, message, place):
    W = np.ones((400, 400))
    W[place] = value
    with pytest.raises(ValueError, match=message):
        check_dense(W, np.float32)


@pytest.mark.parametrize("scale", [1e300, 1e39, 1e-39, 1e-300])
def test_weights_beyond_a_precision_are_refused(scale):
    W = np.ones((40, 40)) * scale
    for given in (W, 2 * W - W * np.eye(40)):
        with pytest.raises(ValueError, match="does not fit into float32: its largest weight is"):
            check_dense(given, np.float32)
        with pytest.raises(ValueError, match="does not fit into float32: its largest weight is"):
            check_sparse(sparse.csr_array(given), np.float32)
        check_dense(given, np.float64)
        check_sparse(sparse.csr_array(given), np.float64)


def test_sums_may_be_larger_than_any_weight():
    W = np.full((40, 40), 1e38)
    read, sums = check_dense(W, np.float32)
    assert np.isfinite(read).all()
    assert sums.max() > np.finfo(np.float32).max


ROWS = generator(0).normal(size=(240, 3))
SEX = np.arange(240) % 2


def test_a_matrix_that_does_not_fit_is_not_allocated(monkeypatch):
    monkeypatch.setattr(checks, "_memory_limit", lambda: 1000)
    with pytest.raises(MemoryError, match=r"240 x 240 needs 2\.3e\+05 bytes.*'landmark'"):
        FairSpectralClustering(3).fit(ROWS, sensitive_features=SEX)
    FairSpectralClustering(3, affinity="landmark").fit(ROWS, sensitive_features=SEX)
    monkeypatch.undo()
    assert checks._memory_limit() > 1e8


def test_a_limit_of_the_process_is_known_before_weights_are_made(monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda _: (1000, 1000))
    with pytest.raises(MemoryError, match="this machine has 1e\\+03.*'nearest_neighbors'"):
        FairSpectralClustering(3).fit(ROWS, sensitive_features=SEX)
