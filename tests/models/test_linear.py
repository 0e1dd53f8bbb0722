"""Linear scores: standardised coordinates, their derivatives and Gram matrices."""

import numpy as np
import pytest
from scipy import sparse

from skfair._kernels import linear as kernels
from skfair.models import LinearScore
from skfair.models.linear import BLOCK_ROWS
from skfair.models.units import Units, column_sums
from tests.python_kernels import compiled_and_python
from tests.seeds import generator

each_storage = pytest.mark.parametrize("storage", ["dense", "csr", "untidy csr"])
each_dtype = pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 2e-5), (np.float64, 1e-12)])
with_and_without = pytest.mark.parametrize("fit_intercept", [True, False])
weighted_or_not = pytest.mark.parametrize("is_weighted", [False, True])
SOME_ROWS = np.array([3, 3, 0, 58, 17, 3])


def table(n=60, seed=0):
    """Columns of different means and scales, half of the entries zero, not mostly zero."""
    rng = generator(seed)
    X = rng.normal([0, 3, -1, 5, 0.5], [1, 0.5, 4, 2, 0.1], (n, 5))
    return X * (rng.random(X.shape) < 0.5)


def stored(X, storage, dtype=np.float64):
    """The same table dense, as CSR, or as CSR with shuffled columns and explicit zeros."""
    X = X.astype(dtype)
    if storage == "dense":
        return X
    if storage == "csr":
        return sparse.csr_array(X)
    rng = generator(5)
    columns = [rng.permutation(X.shape[1]) for _ in X]
    columns = [
        order[(row[order] != 0) | (order == 2)] for order, row in zip(columns, X, strict=True)
    ]
    data = np.concatenate([row[order] for order, row in zip(columns, X, strict=True)])
    starts = np.cumsum([0, *map(len, columns)])
    untidy = sparse.csr_array((data, np.concatenate(columns), starts), shape=X.shape)
    assert (untidy.data == 0).any()
    assert not untidy.has_sorted_indices
    return untidy


def weights_of(n, is_weighted):
    return generator(9).uniform(0.1, 3, n) if is_weighted else None


def standardised_rows(X, fit_intercept=True, weights=None):
    """The rows that the parameters belong to, from the definition; the last column is 1."""
    X = np.asarray(X, dtype=np.longdouble)
    mean = np.average(X, axis=0, weights=weights) if fit_intercept else 0 * X[0]
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    Z = (X - mean) / np.where(scale > 0, scale, 1)
    return np.column_stack([Z, np.ones(len(Z))]) if fit_intercept else Z


def random_theta(model, seed=1):
    return generator(seed).normal(size=model.n_parameters)


def close(found, expected, tol):
    """Equal up to ``tol`` times the largest entry."""
    expected = np.asarray(expected, dtype=np.float64)
    assert found.dtype == np.float64
    assert found.shape == expected.shape
    return np.abs(found - expected).max() <= tol * max(np.abs(expected).max(), 1e-300)


# Scores


@each_storage
@each_dtype
@with_and_without
@weighted_or_not
def test_scores(storage, dtype, tol, fit_intercept, is_weighted):
    X, weights = table(), weights_of(60, is_weighted)
    model = LinearScore(
        stored(X, storage, dtype), fit_intercept=fit_intercept, sample_weight=weights
    )
    assert model.n_parameters == 5 + fit_intercept
    theta = random_theta(model)
    coef, intercept = model.raw(theta)
    scores, _ = model.forward(theta)
    assert close(scores, X @ coef + intercept, tol)
    assert close(scores, standardised_rows(X, fit_intercept, weights) @ theta, tol)
    assert close(model.forward(theta, SOME_ROWS)[0], scores[SOME_ROWS], tol)
    assert close(model.standardised(coef, intercept), theta, 1e-13)
    if not fit_intercept:
        assert intercept == 0


def test_a_dense_table_is_not_copied():
    X = table()
    before = X.copy()
    model = LinearScore(X)
    model.gram(np.ones(60))
    assert model.X is X
    assert np.array_equal(X, before)


@weighted_or_not
def test_dense_tables_of_zeros_are_kept_sparse(is_weighted):
    X = np.eye(10)[np.arange(60) % 7]  # three columns are empty
    X[:, 0] *= np.arange(60)
    weights = weights_of(60, is_weighted)
    model = LinearScore(X, sample_weight=weights)
    assert model.is_sparse
    Z, theta = standardised_rows(X, True, weights), random_theta(model)
    scores, tape = model.forward(theta)
    assert close(scores, Z @ theta, 1e-12)
    assert close(model.pullback(tape, scores), Z.T @ scores, 1e-11)
    assert not LinearScore(table()).is_sparse


@each_storage
@each_dtype
def test_rounding_covers_what_is_between_two_ways_to_add(storage, dtype, tol):
    X = stored(table(2000), storage, dtype)
    model, exact = LinearScore(X), LinearScore(X.astype(np.float64))
    theta = random_theta(model)
    coef, intercept = model.raw(theta)
    apart = np.abs(model.forward(theta)[0] - (exact.X @ coef + intercept)).max()
    assert apart <= model.rounding(theta) <= 1000 * np.finfo(float).eps * np.abs(theta).sum()
    theta[-1] = 1e6
    assert model.rounding(theta) > 1e6 * np.finfo(float).eps


# Derivatives


@each_storage
@each_dtype
@with_and_without
@weighted_or_not
@pytest.mark.parametrize("rows", [None, SOME_ROWS], ids=["all", "some"])
def test_pullback_is_the_derivative(storage, dtype, tol, fit_intercept, is_weighted, rows):
    X, weights = stored(table(), storage, dtype), weights_of(60, is_weighted)
    model = LinearScore(X, fit_intercept=fit_intercept, sample_weight=weights)
    theta = random_theta(model)
    scores, tape = model.forward(theta, rows)
    slopes = generator(2).normal(size=scores.size)
    # Scores are linear: differences over a long step are exact.
    steps = np.eye(theta.size)
    differences = [
        model.forward(theta + s, rows)[0] - model.forward(theta - s, rows)[0] for s in steps
    ]
    expected = np.stack(differences) / 2 @ slopes
    assert close(model.pullback(tape, slopes), expected, 10 * tol)


@each_storage
@each_dtype
@with_and_without
def test_pullback_by_cell(storage, dtype, tol, fit_intercept):
    X = table()
    model = LinearScore(stored(X, storage, dtype), fit_intercept=fit_intercept)
    rng = generator(3)
    cells, slopes = rng.choice([0, 1, 3], 60), rng.normal(size=60)  # nobody is in cell 2
    slopes[:5] = 0
    expected = np.zeros((4, model.n_parameters))
    for row, cell, slope in zip(standardised_rows(X, fit_intercept), cells, slopes, strict=True):
        expected[cell] += slope * row.astype(float)
    assert close(model.pullback_cells(cells, slopes, 4), expected, 10 * tol)


@with_and_without
@weighted_or_not
def test_penalty_is_that_of_the_true_weights(fit_intercept, is_weighted):
    model = LinearScore(
        table(), fit_intercept=fit_intercept, sample_weight=weights_of(60, is_weighted)
    )
    theta = random_theta(model)
    half_norm, gradient = model.penalty_parts(theta)
    coef, _ = model.raw(theta)
    assert half_norm == pytest.approx(0.5 * coef @ coef)
    steps = np.eye(theta.size)
    of = [[model.penalty_parts(theta + sign * s)[0] for s in steps] for sign in (1, 0, -1)]
    above, here, below = np.array(of)
    assert close(gradient, (above - below) / 2, 1e-12)
    assert close(model.penalty_curvature(), above + below - 2 * here, 1e-9)


# Gram matrices


@each_storage
@each_dtype
@with_and_without
@pytest.mark.parametrize("sign", ["positive", "both", "negative"])
def test_gram(storage, dtype, tol, fit_intercept, sign):
    X = table()
    model = LinearScore(stored(X, storage, dtype), fit_intercept=fit_intercept)
    weights = generator(4).normal(size=60)
    weights[:9] = 0
    weights = {"positive": np.abs(weights), "both": weights, "negative": -np.abs(weights)}[sign]
    Z = standardised_rows(X, fit_intercept)
    expected = sum(w * np.outer(row, row) for w, row in zip(weights, Z, strict=True))
    assert close(model.gram(weights), expected, 20 * tol)


@each_dtype
def test_gram_of_several_blocks(dtype, tol):
    X = table(2 * BLOCK_ROWS + 3)
    weights = generator(4).normal(size=len(X))
    weights[:BLOCK_ROWS] = np.abs(weights[:BLOCK_ROWS])
    Z = standardised_rows(X).astype(float)
    found = LinearScore(X.astype(dtype)).gram(weights)
    assert close(found, Z.T @ (weights[:, None] * Z), 20 * tol)


# Awkward columns


@each_storage
@each_dtype
@weighted_or_not
@pytest.mark.parametrize("n", [61, 3001])
def test_constant_columns_have_nothing_to_say(storage, dtype, tol, is_weighted, n):
    """Where the intercept already stands for them, their derivatives are 0 up to rounding."""
    X = table(n)
    X[:, 1], X[:, 2], X[:, 4] = 0.1, 0.0, -12345.678
    weights = weights_of(n, is_weighted)
    model = LinearScore(stored(X, storage, dtype), sample_weight=weights)
    theta = random_theta(model)
    scores, tape = model.forward(theta)
    assert np.isfinite(scores).all()
    constant = np.array([1, 2, 4])
    varying = np.array([0, 3, 5])
    slopes = generator(0).normal(size=n)
    gradient, gram = model.pullback(tape, slopes), model.gram(np.abs(slopes))
    Z = standardised_rows(X, True, weights)[:, varying].astype(float)
    size = 100 * 12345.678 * tol
    assert np.abs(gradient[constant]).max() <= size * np.abs(slopes).sum()
    assert np.abs(gram[constant]).max() <= size * np.abs(slopes).sum()
    assert close(gradient[varying], Z.T @ slopes, 1000 * tol)
    assert close(gram[np.ix_(varying, varying)], Z.T @ (np.abs(slopes)[:, None] * Z), 1000 * tol)


@pytest.mark.parametrize("mean", [0.0, 1e6])
def test_columns_far_from_zero(mean):
    """Rows are centred before they are squared; only the column's own digits limit the mean."""
    scales = np.array([1e-6, 1e-3, 1.0, 1e3, 1e6])
    scales = scales[scales * 1e10 > mean]  # else there are no digits left that differ
    X = mean + scales * generator(0).normal(size=(400, scales.size))
    weights = generator(1).normal(size=400)
    model = LinearScore(X)
    Z = np.column_stack([(X - model.mean) / model.scale, np.ones(400)]).astype(np.longdouble)
    gram = model.gram(weights)
    assert close(gram, Z.T @ (weights[:, None] * Z), 1e-12)

    exact = standardised_rows(X)
    lost = 1e-13 * (1 + np.append(mean / scales, 0))
    error = np.abs(gram - exact.T @ (weights[:, None] * exact)) / np.abs(weights).sum()
    assert (error <= np.maximum(lost, lost[:, None])).all()
    sums = model.pullback(model.forward(random_theta(model))[1], weights)
    assert (np.abs(sums - exact.T @ weights) / np.abs(weights).sum() <= lost).all()


@pytest.mark.parametrize(
    ("mean", "unit", "loses_little"),
    [(0, 1, True), (1e4, 1, False), (-1e4, 1, False), (0, 1e-20, False)],
)
def test_some_rows_are_in_single_precision_where_that_loses_little(mean, unit, loses_little):
    X = unit * table() + mean
    model = LinearScore(X)
    rough, theta = model.on_rows(SOME_ROWS), random_theta(model)
    assert rough.X.dtype == (np.float32 if loses_little else np.float64)
    assert rough.gram(np.ones(6)).dtype == np.float64
    assert np.allclose(rough.forward(theta)[0], model.forward(theta)[0][SOME_ROWS], atol=1e-5)


def test_columns_whose_scale_has_no_inverse_in_single_precision():
    X = (table() * [1, 1, 1, 1, 1e-38]).astype(np.float32)
    found, exact = (LinearScore(X.astype(dtype)).gram(np.ones(60)) for dtype in (X.dtype, float))
    assert close(found, exact, 1e-5)


def test_sparse_columns_far_from_zero():
    """Sparse rows are not centred: the square of mean / scale is lost."""
    scales = np.array([1e4, 1e5, 1e6])
    X = 1e6 + scales * generator(0).normal(size=(400, 3))
    weights = generator(1).normal(size=400)
    model, exact = LinearScore(sparse.csr_array(X)), standardised_rows(X)
    lost = 1e-13 * (1 + np.append(1e6 / scales, 0)) ** 2
    error = np.abs(model.gram(weights) - exact.T @ (weights[:, None] * exact))
    assert (error <= np.abs(weights).sum() * np.maximum(lost, lost[:, None])).all()


@pytest.mark.parametrize("n", [97, 1000, 1003, 140_003])
@pytest.mark.parametrize("far", [1e3, -1e3, 7e5])
def test_constant_columns_are_found_from_an_origin_far_off(n, far):
    """As where the origin is a row of another block, or zero: rounding leaves a variance."""
    X, weights = np.full((n, 3), [0.1, -12345.678, 1.0]), np.full(n, 1 / n)
    origin = X[0] + far
    units = Units.of_sums(origin, *column_sums(X, weights, origin))
    assert units.scale.tolist() == [1, 1, 1]
    assert units.is_empty.all()


def test_long_columns_of_single_precision():
    n, far = 300_000, np.array([3, 1e4])
    X = (generator(0).normal(size=(n, 2)) + far).astype(np.float32)
    model = LinearScore(X)
    assert model.mean == pytest.approx(X.mean(axis=0, dtype=float), abs=1e-5)
    assert model.scale == pytest.approx(X.std(axis=0, dtype=float), rel=1e-5)


LAYOUTS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
}


@pytest.mark.parametrize("rows", [None, SOME_ROWS], ids=["all", "some"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_with_single_precision_are_of_double_precision(layout, rows):
    """A gradient has to vanish to 1e-9, among others: to less than single precision can tell."""
    n, far = 30_000, np.array([3, 100, 0])
    X = (generator(0).normal(size=(n, 3)) + far).astype(np.float32)
    model = LinearScore(LAYOUTS[layout](X))
    some = X if rows is None else X[rows]
    Z = np.hstack([(some - model.mean) / model.scale, np.ones((len(some), 1))])
    slopes = generator(1).normal(size=len(some)) / n + 1 / n
    theta = random_theta(model)
    scores, tape = model.forward(theta, rows)
    assert np.abs(scores - Z @ theta).max() <= 1e-12
    # CSR rows are not centred: 30,000 terms around 100 / n are summed, each rounded to 1e-14.
    assert np.abs(model.pullback(tape, slopes) - Z.T @ slopes).max() <= 1e-11


# Kernels


kernel = compiled_and_python(kernels)


@each_storage
@each_dtype
def test_kernels(kernel, storage, dtype, tol):
    rng = generator(0)
    X, weights, cells = (
        stored(table(20), storage, dtype),
        rng.normal(size=20),
        rng.integers(3, size=20),
    )
    weights[3] = 0
    dense = table(20)
    sums = np.ones((3, 5))
    expected = sums + [(weights * (cells == c)) @ dense for c in range(3)]
    if storage == "dense":
        kernel("dense_cell_sums")(X, cells, weights, sums)
        origin, moments = np.linspace(0, 1, 5), np.ones((2, 5))
        kernel("dense_column_sums")(X, weights, origin, *moments)
        for power, found in enumerate(moments, 1):
            assert close(found, 1 + weights @ (X.astype(float) - origin) ** power, 1e-13)
        coef, scores, some = np.linspace(-1, 1, 5), np.empty(20), np.empty(7)
        kernel("dense_row_scores")(X, coef, scores)
        assert close(scores, X.astype(float) @ coef, 1e-14)
        kernel("dense_row_scores")(X[13:], coef, some)
        assert np.array_equal(some, scores[13:])
        for n in range(20):  # four rows at a time, and a rest
            row_sums = np.ones(5)
            kernel("dense_row_sums")(X[:n], weights[:n], row_sums)
            assert close(row_sums, 1 + weights[:n] @ X[:n].astype(float), 1e-13)
        mean, inverse = np.arange(5).astype(dtype), (2.0 + np.arange(5)).astype(dtype)
        out = np.zeros((20, 6), dtype)
        front, back = kernel("signed_rows")(X, mean, inverse, weights, out)
        design = np.hstack([(X - mean) * inverse, np.ones((20, 1))])
        design *= np.sqrt(np.abs(weights))[:, None]
        assert close(out[:front].astype(float), design[weights > 0], 20 * tol)
        assert close(out[back:].astype(float), design[weights < 0][::-1], 20 * tol)
        assert back - front == 1  # the row without weight
        assert not out[front:back].any()
    else:
        X.sort_indices()  # the Gram matrix needs that
        out = np.ones((5, 5))
        kernel("sparse_gram")(X.data, X.indices, X.indptr, weights, out)
        assert close(np.triu(out), np.triu(1 + dense.T @ (weights[:, None] * dense)), tol)
        coef, scores = np.linspace(-1, 1, 5), np.empty(20)
        kernel("sparse_scores")(X.data, X.indices, X.indptr, coef, scores)
        assert close(scores, X.toarray().astype(float) @ coef, 1e-14)
        kernel("sparse_cell_sums")(X.data, X.indices, X.indptr, cells, weights, sums)
    assert close(sums, expected, tol)
