"""Limits that are tighter than chance: what searches of offsets without the group make of them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skfair.classification import FairDecisionClassifier
from skfair.constraints import DemographicParity, EqualizedOdds
from skfair.enforcement.decisions.mending import moved
from skfair.enforcement.decisions.offsets import OffsetSearch
from tests.enforcement.decisions.test_decisions import small


def search_of(constraint, limit, n=900, n_classes=2, names=("a", "b")):
    """A search whose groups are known by halves."""
    truth, features, groups, chances, _ = small(constraint, limit, n, n_classes, names=names)
    of_group = np.where(groups[:, None] == names, 0.8, 0.2 / (len(names) - 1))
    joint = of_group[:, :, None] * chances[:, None, :]
    rng = np.random.RandomState(0)
    return OffsetSearch(truth, features, truth.classes, chances, joint.reshape(n, -1), rng)


@pytest.mark.parametrize(
    ("n", "names", "is_moved"), [(900, "abc", True), (900, "ab", False), (10_050, "abc", False)]
)
def test_offsets_of_many_rows_or_two_groups_are_not_moved_at_random(n, names, is_moved):
    search = search_of(DemographicParity(), 0.05, n, names=tuple(names))
    nobody = np.zeros((search.features.size, 2))
    nobody[:, 1] = 10.0
    poor = search.candidate(nobody)
    found = moved(search, poor)
    assert found.verdict.is_feasible
    assert (found.verdict.merit > poor.verdict.merit) == is_moved


def test_limits_below_chance_cost_little_where_groups_are_alike():
    """Groups drawn by lot differ by chance only, but more than a quarter of the rows were lost."""
    lost = [lost_where_groups_are_alike(seed) for seed in range(8)]
    assert np.mean(np.array(lost) < 0.1) >= 0.75


def lost_where_groups_are_alike(seed):
    """The accuracy that a limit costs, which must be satisfied."""
    rng = np.random.default_rng(seed)
    n, group = 1500, rng.integers(0, 3, 1500)
    X = rng.normal(size=(n, 6))
    y = (X.sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    model = FairDecisionClassifier(None, EqualizedOdds(), 0.01, group_aware=False, random_state=0)
    decided = model.fit(X, y, sensitive_features=group).train_predictions_
    rates = [[decided[(group == g) & (y == c)].mean() for g in range(3)] for c in range(2)]
    assert np.ptp(rates, axis=1).max() <= 0.01
    free = cross_val_predict(LogisticRegression(), X, y)
    return np.mean(free == y) - np.mean(decided == y)
