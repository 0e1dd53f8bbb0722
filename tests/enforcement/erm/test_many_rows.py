"""Strict enforcement over very many rows: as good as the walk on all of them, and the same bits."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skfair.classification import ConstrainedERMClassifier
from skfair.enforcement.erm import path, strict
from skfair.metrics import demographic_parity_difference, equalized_odds_difference
from skfair.problems.erm.problem import LinearConstrainedERM
from skfair.utils import threads

MEASURES = {
    "demographic_parity": demographic_parity_difference,
    "equalized_odds": equalized_odds_difference,
}
N = strict.MANY_ROWS


def crowd(seed, size=0.5):
    """Return people whose groups say more about their classes, the larger ``size`` is."""
    rng = np.random.default_rng(seed)
    groups, X = rng.integers(3, size=N), rng.normal(size=(N, 8))
    X[:, :3] += size * (groups[:, None] == np.arange(3))
    scores = X @ [1.2, 0.1, -1.0, 0.3, 0.6, -0.4, 0.2, 0.0]
    return X, (scores + rng.logistic(size=N) > 0).astype(int), groups


@pytest.mark.parametrize(
    ("constraint", "size", "limit"),
    [
        ("equalized_odds", 0.5, 0.03),
        ("demographic_parity", 0.5, 0.15),
        ("demographic_parity", 1.5, 0.02),  # costs so much that errors are fitted
    ],
)
def test_a_sample_first_is_as_good_and_keeps_the_limit(constraint, size, limit, monkeypatch):
    X, y, groups = crowd(0, size)
    n_rows, measure = [], LinearConstrainedERM._measure
    monkeypatch.setattr(
        LinearConstrainedERM,
        "_measure",
        lambda self, *given: n_rows.append(self.n_rows) or measure(self, *given),
    )
    model = ConstrainedERMClassifier(constraint, limit).fit(X, y, sensitive_features=groups)
    of_sample = n_rows.count(N)
    assert MEASURES[constraint](y, model.predict(X), sensitive_features=groups) <= limit
    assert model.kkt_residual_ <= model.tol
    assert model.status_ == "converged"
    monkeypatch.setattr(strict, "MANY_ROWS", N + 1)
    n_rows.clear()
    whole = ConstrainedERMClassifier(constraint, limit).fit(X, y, sensitive_features=groups)
    assert model.score(X, y) >= whole.score(X, y) - 0.001
    assert of_sample < n_rows.count(N)
    # What the limit changed is not hidden by the walk on the sample: it was said to be nothing.
    free = ConstrainedERMClassifier(constraint, 1.0).fit(X, y, sensitive_features=groups)
    selected, before = model.predict(X), free.predict(X)
    change = model.changes_["selection rate"]
    assert change.before == pytest.approx(before.mean(), abs=1e-3)
    assert change.rows_up == pytest.approx(np.sum(selected > before), abs=1e-3 * N)
    assert change.rows_up + change.rows_down > 0


def test_what_a_sample_does_not_lead_to_is_walked_on_all_rows(monkeypatch):
    X, y, groups = crowd(3)
    monkeypatch.setattr(path, "moved_bounds", lambda lower, upper, *moves: (lower, upper))
    model = ConstrainedERMClassifier(max_disparity=0.03).fit(X, y, sensitive_features=groups)
    assert demographic_parity_difference(y, model.predict(X), sensitive_features=groups) <= 0.03


def test_the_same_bits_with_any_number_of_threads(monkeypatch):
    X, y, groups = crowd(4)
    fitted = []
    for n_threads in (1, 3):
        monkeypatch.setattr(threads, "allowed_threads", lambda n=n_threads: n)
        model = ConstrainedERMClassifier(max_disparity=0.03)
        fitted.append(model.fit(X, y, sensitive_features=groups))
    for other in fitted[1:]:
        assert_array_equal(other.coef_, fitted[0].coef_)
        assert_array_equal(other.multipliers_, fitted[0].multipliers_)
        assert other.intercept_ == fitted[0].intercept_
