"""Linear scores with weights of groups: the design matrix that is never built, and pooling."""

import numpy as np
import pytest
from scipy import sparse

from skfair.partial_parity.grouped_scores import POOLING, GroupedLinearScore, group_scores
from tests.naive import partial as naive
from tests.seeds import generator

OWN = [
    [True, True, True],
    [True, False, True],
    [False, False, True],
    [False, False, False],
]
each_own = pytest.mark.parametrize("own", OWN, ids=str)
each_storage = pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array, sparse.csr_matrix])
each_dtype = pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 5e-5), (np.float64, 1e-11)])


def table(n=90, seed=0):
    """Columns of different means and scales, half of them zero; group sizes differ."""
    rng = generator(seed)
    X = rng.normal([0, 3, -1, 5], [1, 0.5, 4, 2], (n, 4)) * (rng.random((n, 4)) < 0.5)
    return X, rng.permutation(np.resize([0, 0, 0, 1, 1, 2], n))


def close(found, expected, tol):
    assert found.shape == expected.shape
    return np.abs(found - expected).max() <= tol * max(np.abs(expected).max(), 1e-300)


def random_theta(model, seed=1):
    return generator(seed).normal(size=model.n_parameters)


# The design matrix


@each_own
@each_storage
@each_dtype
@pytest.mark.parametrize("is_weighted", [False, True])
def test_everything_linear_is_that_of_the_design_matrix(own, storage, dtype, tol, is_weighted):
    X, codes = table()
    rng = generator(2)
    weights = rng.uniform(0.1, 3, 90) if is_weighted else None
    model = GroupedLinearScore(storage(X.astype(dtype)), codes, own, sample_weight=weights)
    design = naive.grouped_design(X, codes, own, weights)
    assert model.n_parameters == design.shape[1] == 4 + 1 + 3 + 4 * sum(own)
    theta = random_theta(model)
    scores, tape = model.forward(theta)
    assert scores.dtype == np.float64
    assert close(scores, design @ theta, tol)
    slopes = rng.normal(size=90)
    assert close(model.pullback(tape, slopes), design.T @ slopes, 10 * tol)
    for signed in (slopes, np.abs(slopes)):
        assert close(model.gram(signed), design.T @ (signed[:, None] * design), 20 * tol)


@pytest.mark.parametrize("own", [True, False])
def test_a_group_without_rows_has_no_slopes(own):
    X, codes = table()
    codes = np.where(codes == 1, 0, codes)
    model = GroupedLinearScore(X, codes, [True, own, False])
    design = naive.grouped_design(X, codes, [True, own, False])
    theta, slopes = random_theta(model), generator(3).normal(size=90)
    assert close(model.forward(theta)[0], design @ theta, 1e-12)
    gradient, gram = model.pullback(None, slopes), model.gram(slopes)
    assert close(gradient, design.T @ slopes, 1e-11)
    assert close(gram, design.T @ (slopes[:, None] * design), 1e-11)
    assert (gradient == 0).sum() == 1 + 4 * own
    assert np.count_nonzero(~gram.any(axis=1)) == 1 + 4 * own


# Weights as they are


@each_own
@each_storage
def test_raw_weights_give_the_scores(own, storage):
    X, codes = table()
    model = GroupedLinearScore(storage(X), codes, own)
    theta = random_theta(model)
    coef, intercept = model.raw(theta)
    by_rows = (X * coef[codes]).sum(axis=1) + intercept[codes]
    assert close(model.forward(theta)[0], by_rows, 1e-12)
    new = generator(4).normal(size=(7, 4))
    groups = np.array([2, 0, 0, 2, 1, 0, 1])
    expected = (new * coef[groups]).sum(axis=1) + intercept[groups]
    assert close(group_scores(coef, intercept, storage(new), groups), expected, 1e-12)
    alone = group_scores(coef[:1], intercept[:1], storage(new), None)
    assert close(alone, new @ coef[0] + intercept[0], 1e-12)
    shared = np.flatnonzero(~np.array(own))
    assert (coef[shared] == coef[shared[:1]]).all()


@each_own
def test_standardised_is_the_inverse_of_raw(own):
    """Shared weights and deviations are not unique; what they add up to is."""
    X, codes = table()
    model = GroupedLinearScore(X, codes, own)
    theta = random_theta(model)
    coef, intercept = model.raw(theta)
    again = model.standardised(coef, intercept)
    assert close(model.raw(again)[0], coef, 1e-12)
    assert close(model.raw(again)[1], intercept, 1e-12)
    assert close(model.standardised(*model.raw(again)), again, 1e-12)
    assert again[5:8].sum() == pytest.approx(0, abs=1e-12)


@each_own
@each_storage
def test_units_of_another_model(own, storage):
    """With the same units the same parameters are the same raw weights."""
    X, codes = table()
    other = GroupedLinearScore(X[:50] * 3 + 1, codes[:50], own)
    model = GroupedLinearScore(storage(X), codes, own)
    model.use_units(other.units)
    theta, slopes = random_theta(model), generator(5).normal(size=90)
    for mine, theirs in zip(model.raw(theta), other.raw(theta), strict=True):
        assert np.array_equal(mine, theirs)
    design = naive.grouped_columns((X - other.mean) / other.scale, codes, own)
    assert close(model.forward(theta)[0], design @ theta, 1e-12)
    assert close(model.pullback(None, slopes), design.T @ slopes, 1e-11)
    assert close(model.gram(slopes), design.T @ (slopes[:, None] * design), 1e-11)


@each_storage
@each_dtype
def test_rounding_covers_what_is_between_two_ways_to_add(storage, dtype, tol):
    X, codes = table(600)
    X = X.astype(dtype)
    model = GroupedLinearScore(storage(X), codes, OWN[1])
    theta = random_theta(model)
    coef, intercept = model.raw(theta)
    exact = (X.astype(float) * coef[codes]).sum(axis=1) + intercept[codes]
    apart = np.abs(model.forward(theta)[0] - exact).max()
    eps = np.finfo(float).eps
    assert apart <= model.rounding(theta) <= 1000 * eps * np.abs(theta).sum()
    for only in (0, 4):  # a weight, the intercept
        theta = np.where(np.arange(theta.size) == only, 1e6, 0.0)
        assert model.rounding(theta) > 1e6 * eps


@each_own
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_some_rows_are_rows_of_all(own, form):
    """Also rows that repeat."""
    X, codes = table()
    model = GroupedLinearScore(form(X), codes, own)
    theta, rng = random_theta(model), generator(3)
    rows = rng.integers(0, codes.size, 40)
    scores, tape = model.forward(theta, rows)
    assert scores == pytest.approx(model.forward(theta)[0][rows])
    slopes = rng.normal(size=40)
    in_place = np.zeros(codes.size)
    for row, slope in zip(rows, slopes, strict=True):
        in_place[row] += slope
    assert model.pullback(tape, slopes) == pytest.approx(model.pullback(None, in_place))


# Pooling


@each_own
def test_the_penalty_is_that_of_true_weights_and_deviations(own):
    X, codes = table()
    model = GroupedLinearScore(X, codes, own)
    theta = random_theta(model)
    half_norm, gradient = model.penalty_parts(theta)
    shared, own_intercepts = theta[:4] / model.scale, theta[5:8]
    own_weights = theta[8:].reshape(-1, 4) / model.scale
    weights = POOLING * (own_weights**2).sum()
    expected = (shared @ shared + own_intercepts @ own_intercepts + weights) / 2
    assert half_norm == pytest.approx(expected)
    curvature = model.penalty_curvature()
    assert gradient == pytest.approx(curvature * theta)
    assert theta @ (curvature * theta) == pytest.approx(2 * half_norm)
