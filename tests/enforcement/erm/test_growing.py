"""Strict enforcement over very many rows: as good as the walk on all of them, and the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skfair.classification import ConstrainedERMClassifier
from skfair.enforcement.erm import growing, strict
from skfair.enforcement.thresholds import bins as threshold_bins
from skfair.metrics import demographic_parity_difference, equalized_odds_difference
from skfair.problems.erm import summed
from skfair.utils import threads

MEASURES = {
    "demographic_parity": demographic_parity_difference,
    "equalized_odds": equalized_odds_difference,
}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(summed, "FEW_ROWS", 4000)
    monkeypatch.setattr(threshold_bins, "_MANY", 1000)


def crowd(seed, n=40_000):
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(3, size=n), rng.normal(size=(n, 5))
    X[:, :3] += 0.5 * (groups[:, None] == np.arange(3))
    y = (X @ [0.8, 0.1, -0.6, 0.5, 0.5] + rng.logistic(size=n) > 0).astype(int)
    return X, y, groups


@pytest.mark.parametrize(
    ("rule", "limit"),
    [("demographic_parity", 0.03), ("equalized_odds", 0.03), ("demographic_parity", 0.15)],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_few_rows_first_is_as_good_and_keeps_the_limit(rule, seed, limit, monkeypatch):
    X, y, groups = crowd(seed)
    closed = []
    close = strict.close_on_all_rows
    monkeypatch.setattr(
        strict, "close_on_all_rows", lambda *given: closed.append(close(*given)) or closed[-1]
    )
    model = ConstrainedERMClassifier(rule, limit).fit(X, y, sensitive_features=groups)
    assert closed
    assert MEASURES[rule](y, model.predict(X), sensitive_features=groups) <= limit
    assert model.kkt_residual_ <= model.tol
    assert model.status_ == "converged"
    monkeypatch.setattr(strict, "few_rows", lambda problem: None)
    whole = ConstrainedERMClassifier(rule, limit).fit(X, y, sensitive_features=groups)
    assert model.score(X, y) >= whole.score(X, y) - 0.001
    if limit == 0.15:  # it costs little accuracy; else errors take the place of the loss
        assert model.temperature_ == whole.temperature_ == 1
        assert model.objective_ <= whole.objective_ + 2e-4


def costly(seed, is_linear, n=60_000):
    """Return people whose groups say much about their classes: a small limit costs accuracy."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(3, size=n), rng.normal(size=(n, 10))
    X[:, :3] += 0.8 * (groups[:, None] == np.arange(3))
    scores = X @ [1.2, 0.1, -1.0, 0.3, 0.6, -0.4, 0.2, 0.0, 0.5, 0.1]
    if not is_linear:
        scores = 1.2 * X[:, 0] * (X[:, 1] > 0) - X[:, 2] + np.sign(X[:, 5]) + (groups == 0)
    return X, (scores + rng.logistic(size=n) > 0.3).astype(int), groups


@pytest.mark.parametrize("rule", MEASURES)
@pytest.mark.parametrize("is_linear", [True, False])
def test_costly_rules_do_not_walk_the_path_on_all_rows(rule, is_linear, monkeypatch):
    """Steep rates and errors of a few rows fit their noise; errors of all rows may gain a lot."""
    X, y, groups = costly(0, is_linear)
    sizes, walk = [], strict._walk

    def counted(path, *given, **options):
        sizes.append(path.judge.problem.targets.size)
        return walk(path, *given, **options)

    monkeypatch.setattr(strict, "_walk", counted)
    model = ConstrainedERMClassifier(rule, 0.02).fit(X, y, sensitive_features=groups)
    assert MEASURES[rule](y, model.predict(X), sensitive_features=groups) <= 0.02
    assert len(sizes) == 1
    assert sizes[0] < 60_000
    monkeypatch.setattr(strict, "few_rows", lambda problem: None)
    whole = ConstrainedERMClassifier(rule, 0.02).fit(X, y, sensitive_features=groups)
    assert sizes[1:] == [60_000]
    assert model.score(X, y) >= whole.score(X, y) - 0.001


@pytest.mark.parametrize("is_linear", [True, False])
def test_errors_are_fitted_to_all_rows_where_they_promise_to_gain(is_linear, monkeypatch):
    X, y, groups = costly(1, is_linear)
    found, refined = [], strict.refined
    monkeypatch.setattr(
        strict, "refined", lambda path, start: found.append(start) or refined(path, start)
    )
    model = ConstrainedERMClassifier("demographic_parity", 0.02)
    model.fit(X, y, sensitive_features=groups)
    assert len(found) == (0 if is_linear else 1)
    monkeypatch.setattr(strict, "promised_gain", lambda *given: 1.0 if is_linear else 0.0)
    other = ConstrainedERMClassifier("demographic_parity", 0.02)
    other.fit(X, y, sensitive_features=groups)
    assert len(found) == 1
    least_gain = -0.001 if is_linear else 0.002
    assert model.score(X, y) >= other.score(X, y) + least_gain


def test_errors_of_all_rows_begin_where_those_of_few_end(monkeypatch):
    """No column tells the groups apart, so that few decisions treat both classes alike."""
    rng, n = np.random.default_rng(4), 20_000
    monkeypatch.setattr(summed, "FEW_ROWS_PER_CELL", 100)
    groups, X = rng.integers(2, size=n), rng.normal(size=(n, 6))
    scores = X @ rng.normal(size=6) + 1.5 * groups
    y = (scores + rng.logistic(size=n) > 0.8).astype(int)
    sizes, walk = [], strict._walk

    def counted(path, *given, **options):
        sizes.append(path.judge.problem.targets.size)
        return walk(path, *given, **options)

    monkeypatch.setattr(strict, "_walk", counted)
    monkeypatch.setattr(strict, "close_on_all_rows", lambda *given: None)
    model = ConstrainedERMClassifier("equalized_odds", 0.03).fit(X, y, sensitive_features=groups)
    assert equalized_odds_difference(y, model.predict(X), sensitive_features=groups) <= 0.03
    assert len(sizes) == 2
    assert max(sizes) < n
    monkeypatch.setattr(strict, "few_rows", lambda problem: None)
    whole = ConstrainedERMClassifier("equalized_odds", 0.03).fit(X, y, sensitive_features=groups)
    assert sizes[2:] == [n]
    gained, gained_by_all = (m.score(X, y) - max(y.mean(), 1 - y.mean()) for m in (model, whole))
    assert gained > 0.7 * gained_by_all > 0.02  # both end in local optima


def test_rules_that_do_not_bind_and_limits_that_cannot_be_kept_take_the_whole_path():
    X, y, groups = crowd(2)
    loose = ConstrainedERMClassifier(max_disparity=0.9).fit(X, y, sensitive_features=groups)
    free = ConstrainedERMClassifier(max_disparity=1.0).fit(X, y, sensitive_features=groups)
    assert loose.objective_ == pytest.approx(free.objective_, abs=1e-9)
    assert loose.multipliers_ == pytest.approx(0)


def test_what_is_not_settled_on_all_rows_is_walked_again(monkeypatch):
    X, y, groups = crowd(3)
    monkeypatch.setattr(growing, "CLOSE", -1.0)
    model = ConstrainedERMClassifier(max_disparity=0.03).fit(X, y, sensitive_features=groups)
    assert demographic_parity_difference(y, model.predict(X), sensitive_features=groups) <= 0.03


def test_the_same_bits_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(summed, "_BLOCK_ROWS", 1024)
    X, y, groups = crowd(4)
    fitted = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr(threads, "allowed_threads", lambda n=n_threads: n)
        model = ConstrainedERMClassifier(max_disparity=0.03)
        fitted.append(model.fit(X, y, sensitive_features=groups))
    for other in fitted[1:]:
        assert_array_equal(other.coef_, fitted[0].coef_)
        assert_array_equal(other.multipliers_, fitted[0].multipliers_)
        assert other.intercept_ == fitted[0].intercept_
