"""Scores of a multilayer perceptron: values, derivatives, blocks and precision."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.neural_network import MLPClassifier

from skfair._kernels import mlp as kernels
from skfair.models import LinearScore, MLPScore, mlp_scores
from skfair.models import mlp as module
from tests.models.test_linear import each_storage, stored
from tests.models.test_linear import table as table_of
from tests.naive import mlp as naive
from tests.python_kernels import as_python
from tests.seeds import generator

SIZES = [(), (4,), (6, 3), (5, 4, 3)]
each_size = pytest.mark.parametrize("sizes", SIZES, ids=str)
each_dtype = pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-5), (np.float64, 1e-12)])
with_and_without = pytest.mark.parametrize("fit_intercept", [True, False])
SOME_ROWS = np.array([3, 3, 0, 29, 17, 3, 11])
table = partial(table_of, 30)


def random_theta(model, seed=1):
    return generator(seed).normal(size=model.n_parameters)


def gradient_of(model, theta, slopes, rows=None):
    return model.pullback(model.forward(theta, rows)[1], slopes)


def central(function, x, h=1e-6):
    """Central differences of a number."""
    return np.array([(function(x + s) - function(x - s)) / (2 * h) for s in h * np.eye(x.size)])


def close(found, expected, tol):
    """Equal up to ``tol`` times the largest entry."""
    assert found.dtype == np.float64
    assert found.shape == expected.shape
    return np.abs(found - expected).max() <= tol * np.abs(expected).max()


# Scores


@each_size
@each_storage
@each_dtype
@with_and_without
def test_scores(sizes, storage, dtype, tol, fit_intercept):
    X = table()
    weights = generator(2).uniform(0.1, 3, 30)
    model = MLPScore(
        stored(X, storage, dtype), sizes, fit_intercept=fit_intercept, sample_weight=weights
    )
    theta = random_theta(model)
    coefs, intercepts = model.raw(theta)
    assert [coef.shape for coef in coefs] == list(zip((5, *sizes), (*sizes, 1), strict=True))
    assert model.n_parameters == sum(c.size for c in coefs) + fit_intercept * (sum(sizes) + 1)
    expected = np.array([naive.score(x, coefs, intercepts) for x in X])
    scores, _ = model.forward(theta)
    assert close(scores, expected, tol)
    assert close(model.forward(theta, SOME_ROWS)[0], expected[SOME_ROWS], tol)
    assert np.array_equal(mlp_scores(coefs, intercepts, model.X), scores)
    if not fit_intercept:
        assert not np.concatenate(intercepts).any()


def test_the_start_is_that_of_scikit_learn():
    X = table()
    model = MLPScore(X, (6, 3))
    theta = model.start(np.random.RandomState(3))
    assert np.array_equal(theta, model.start(np.random.RandomState(3)))
    assert not np.array_equal(theta, model.start(np.random.RandomState(4)))
    theirs = MLPClassifier((6, 3), solver="sgd", learning_rate_init=1e-30, random_state=3)
    theirs.partial_fit(X, np.arange(30) % 2, classes=[0, 1])
    network = model._layers(theta)
    for ours, other in zip(
        network.coefs + network.intercepts, theirs.coefs_ + theirs.intercepts_, strict=True
    ):
        assert np.allclose(ours, other, rtol=0, atol=1e-20)


# Columns


@each_storage
@each_dtype
def test_units_of_the_columns(storage, dtype, tol):
    X = table_of(400)
    X[:, 0] = np.where(X[:, 0] > 0, 7, 5)
    X[:, 2] = X[:, 2] > 5  # rare
    model = MLPScore(stored(X, storage, dtype), (3,))
    assert model.scale == pytest.approx([2, X[:, 1].std(), 1, *X[:, 3:].std(axis=0)], rel=10 * tol)
    assert model.mean == pytest.approx(X.mean(axis=0), rel=10 * tol)
    bare = MLPScore(stored(X, storage, dtype), (3,), fit_intercept=False)
    lengths = np.sqrt((X**2).mean(axis=0))
    assert bare.scale == pytest.approx([7, lengths[1], 1, *lengths[3:]], rel=10 * tol)
    assert not bare.mean.any()


@each_storage
@each_dtype
def test_constant_columns_have_no_effect(storage, dtype, tol):
    X = table_of(3001)
    X[:, 1], X[:, 2], X[:, 4] = 0.1, 0.0, -12345.678
    model = MLPScore(stored(X, storage, dtype), (6,))
    theta = model.start(np.random.RandomState(0))
    assert not model.raw(theta)[0][0][[1, 2, 4]].any()
    gradient = gradient_of(model, theta, np.ones(3001))[:30].reshape(5, 6)
    assert not gradient[[1, 2, 4]].any()
    assert gradient[[0, 3]].any()
    moved = theta.copy()  # as after a part of a stream in which they were not constant
    moved[:30].reshape(5, 6)[[1, 2, 4]] = [[5], [-5], [-3]]
    assert close(model.forward(moved)[0], model.forward(theta)[0], 12345 * tol)


def test_a_constant_column_replaces_a_missing_intercept():
    X = table()
    X[:, 1] = -20
    model = MLPScore(X, (6,), fit_intercept=False)
    theta = model.start(np.random.RandomState(0))
    assert model.scale[1] == 20
    expected = central(lambda at: model.forward(at)[0].sum(), theta)
    assert close(gradient_of(model, theta, np.ones(30)), expected, 1e-7)
    assert expected[6:12].any()


@each_size
@with_and_without
@pytest.mark.parametrize("constant_in", ["first", "second"])
def test_parameters_go_from_one_table_to_another(sizes, fit_intercept, constant_in):
    """The network stays the same, be it written in other units or used with the units of others."""
    tables = {"first": table(), "second": table(seed=7)}
    tables[constant_in][:, 3] = 0  # a code that is not in every part of a stream
    first, second = (MLPScore(X, sizes, fit_intercept=fit_intercept) for X in tables.values())
    theta = random_theta(first)
    network = first.raw(theta)
    assert close(first.standardised(*network), theta, 1e-13)
    expected = mlp_scores(*network, second.X)
    assert close(second.forward(second.standardised(*network))[0], expected, 1e-12)
    second.use_units(first.units)
    assert close(second.forward(theta)[0], expected, 1e-12)
    slopes = generator(3).normal(size=30)
    derivative = central(lambda at: slopes @ second.forward(at)[0], theta)
    assert close(gradient_of(second, theta, slopes), derivative, 1e-7)


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_squares_may_overflow(size):
    far = table().astype(np.float32) * np.float32([1, size, 1, 1, 1])
    model = MLPScore(far, (4,))
    assert model.scale[1] == pytest.approx(far[:, 1].std(dtype=float))
    assert np.isfinite(model.forward(random_theta(model))[0]).all()


# Derivatives


@each_size
@each_storage
@with_and_without
@pytest.mark.parametrize("rows", [None, SOME_ROWS], ids=["all", "some"])
def test_pullback_is_the_derivative(sizes, storage, fit_intercept, rows, monkeypatch):
    model = MLPScore(stored(table(), storage), sizes, fit_intercept=fit_intercept)
    theta = random_theta(model)
    slopes = generator(3).normal(size=30 if rows is None else rows.size)
    expected = central(lambda at: slopes @ model.forward(at, rows)[0], theta)
    scores, tape = model.forward(theta, rows)
    gradient = model.pullback(tape, slopes)
    assert close(gradient, expected, 1e-7)
    monkeypatch.setattr(module, "BLOCK_ROWS", 4)  # the last block is smaller
    in_blocks, tape = model.forward(theta, rows)
    assert close(in_blocks, scores, 1e-13)
    assert close(model.pullback(tape, slopes), gradient, 1e-12)


@each_storage
def test_single_precision(storage):
    X = table_of(500).astype(np.float32)
    single = MLPScore(stored(X, storage, np.float32), (6, 3))
    double = MLPScore(stored(X, storage), (6, 3))
    theta, slopes = random_theta(single), generator(3).normal(size=500)
    assert close(single.forward(theta)[0], double.forward(theta)[0], 1e-5)
    assert close(gradient_of(single, theta, slopes), gradient_of(double, theta, slopes), 1e-5)
    assert all(part.dtype == np.float64 for parts in single.raw(theta) for part in parts)


@pytest.mark.parametrize("rows_per_block", [8, 1000])
def test_a_tape_can_be_used_again(rows_per_block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", rows_per_block)
    model = MLPScore(table(), (6, 3))
    theta = random_theta(model)
    one, other = generator(3).normal(size=(2, 30))
    _, tape = model.forward(theta)
    both = model.pullback(tape, one + other)
    theta[:] = 0  # solvers may move on in place
    assert close(model.pullback(tape, one) + model.pullback(tape, other), both, 1e-12)


@each_size
@with_and_without
def test_penalty(sizes, fit_intercept):
    X = table()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = MLPScore(X, sizes, fit_intercept=fit_intercept)
    theta = random_theta(model)
    half_norm, gradient = model.penalty_parts(theta)
    assert half_norm == pytest.approx(0.5 * sum((c**2).sum() for c in model.raw(theta)[0]))
    expected = central(lambda at: model.penalty_parts(at)[0], theta)
    assert close(gradient, expected, 1e-7)
    assert (gradient == 0).sum() == fit_intercept * (sum(sizes) + 1)


# Memory and precision


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_memory_does_not_grow_with_the_rows(storage):
    X = stored(table_of(40_000), storage)
    before = X.copy()
    model = MLPScore(X, (64, 32))
    theta, slopes = random_theta(model), np.ones(40_000)
    gradient_of(model, theta, slopes[:3], np.arange(3))  # loads the kernels
    tracemalloc.start()
    gradient_of(model, theta, slopes)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6  # activations of all rows: 30e6
    assert model.X is X
    assert abs(X - before).max() == 0


@each_dtype
def test_rounding_covers_other_orders_of_summation(dtype, tol, monkeypatch):
    X = stored(table_of(500), "dense", dtype)
    X[:, 1] += 100
    model = MLPScore(X, (64, 32))
    theta = model.start(np.random.RandomState(0))
    network = model.raw(theta)
    several = [mlp_scores(*network, X), mlp_scores(*network, sparse.csr_array(X))]
    several.append(mlp_scores(*network, X.astype(np.float64)))
    monkeypatch.setattr(module, "BLOCK_ROWS", 1)
    several.append(mlp_scores(*network, X))
    apart = np.ptp(several, axis=0).max()
    assert 0 < apart <= model.rounding(theta) <= 1000 * apart


# Kernels


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("storage", ["csr", "untidy csr"])
@each_dtype
def test_kernels(is_compiled, storage, dtype, tol):
    rng = generator(0)
    X = table()
    thin = stored(X, storage, dtype)
    weights = rng.normal(size=(5, 3)).astype(dtype)
    slopes = rng.normal(size=(SOME_ROWS.size, 3)).astype(dtype)
    arrays = thin.data, thin.indices, thin.indptr, SOME_ROWS
    product, sums = np.full((SOME_ROWS.size, 3), np.nan, dtype), np.ones((5, 3), dtype)
    for name, factor, out in (
        ("rows_times", weights, product),
        ("add_transposed_rows_times", slopes, sums),
    ):
        kernel = getattr(kernels, name)
        (kernel if is_compiled else as_python(kernel))(*arrays, factor, out)
    assert np.allclose(product, naive.rows_times(X, SOME_ROWS, weights), atol=10 * tol)
    assert np.allclose(sums, 1 + naive.transposed_rows_times(X, SOME_ROWS, slopes), atol=10 * tol)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("make", [LinearScore, lambda X, **more: MLPScore(X, (4,), **more)])
def test_rows_without_weight_do_not_change_the_units(make, storage):
    X = np.column_stack([table(), np.arange(30) % 2, np.full(30, 7.0)])
    odd = [1e9, 0.0, -1e3, 5.0, 0.0, 5.0, -7.0]  # a third value, a constant that varies
    weights = np.linspace(1, 2, 30)
    alone = make(stored(X, storage), sample_weight=weights).units
    both = stored(np.vstack([odd, X]), storage)
    beside = make(both, sample_weight=np.append(0.0, weights)).units
    for one, other in zip(alone, beside, strict=True):
        np.testing.assert_array_equal(one, other)
