"""Halves of the rows, limits that rise, and the order in which models are judged."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skfair.constraints import ConditionalOn, DemographicParity
from skfair.estimators.certified.split import (
    SHARES,
    Halves,
    Verdict,
    fit_under_rising_limits,
    scaled_limits,
)


class Limited(BaseEstimator):
    """Remembers what it was fitted with."""

    def __init__(self, max_disparity=0.1, confidence=0.95):
        self.max_disparity = max_disparity
        self.confidence = confidence

    def fit(self, X, y, sample_weight=None):
        self.rows_, self.weights_ = X[:, 0].astype(int), sample_weight
        return self


X, Y = np.arange(40.0)[:, None], np.arange(40) % 2


def halves(kinds=Y, seed=0, **given):
    return Halves.of(X, Y, given, kinds, seed)


def judged(p_values, n_constant=()):
    """Models judged by given p-values; also the limits that were fitted."""
    limits = []

    def judge(model):
        limits.append(model.max_disparity)
        step = len(limits) - 1
        return Verdict(p_values[step], 0.01, p_values[step], 0.9, 0.5, step in n_constant)

    found = fit_under_rising_limits(Limited(), halves(), judge, {"max_disparity": 0.1}, 0.1, 0.95)
    return found, limits


def test_halves_share_no_row_and_have_all_kinds_alike():
    one = halves(sample_weight=X[:, 0], other=None)
    assert sorted([*one.fitted, *one.judging]) == list(range(40))
    assert np.mean(Y[one.fitted]) == np.mean(Y[one.judging]) == 0.5
    model = next(one.path(Limited(), {}))
    assert model.confidence is None
    assert sorted(model.rows_) == sorted(one.fitted)
    assert np.array_equal(model.weights_, X[one.fitted, 0])
    assert one.part(None) is None


def test_a_kind_of_one_row_is_no_obstacle():
    assert halves(np.r_[9, np.zeros(39, int)]).fitted.size == 20


@pytest.mark.parametrize("size", [0.2, 0.5, 0.8])
def test_a_share_of_each_kind_judges(size):
    kinds = np.repeat([0, 1, 2], [20, 50, 330])
    rows = np.arange(400.0)[:, None]
    one = Halves.of(rows, kinds, {}, kinds, 0, size)
    counts = np.bincount(kinds[one.judging])
    assert np.abs(counts - size * np.array([20, 50, 330])).max() <= 1
    assert one.judging.size == 400 * size
    assert sorted([*one.fitted, *one.judging]) == list(range(400))


@pytest.mark.parametrize("size", [0.05, 0.95])
def test_a_size_that_leaves_a_cell_empty_is_named(size):
    kinds = np.repeat([0, 1], [8, 32])
    with pytest.raises(ValueError, match="cell of group and class with 8 rows"):
        Halves.of(X, Y, {}, kinds, 0, size)
    assert Halves.of(X, Y, {}, kinds, 0, 1 / 8).judging.size == 5


def test_the_seed_decides_who_judges():
    assert np.array_equal(halves(seed=1).judging, halves(seed=1).judging)
    assert not np.array_equal(halves(seed=1).judging, halves(seed=2).judging)


def test_limits_rise_and_the_walk_ends_at_the_first_failure():
    found, limits = judged([0.0, 0.01, 0.2])
    assert limits == pytest.approx([0.1 * share for share in SHARES[:3]])
    assert found["path_"]["is_certified"].tolist() == [True, True, False]
    assert found["p_value_"] == 0.01
    assert found["status_"] == "certified"
    assert set(found["rows_"]) == set(halves().fitted)
    assert "max_disparity" not in found


def test_all_steps_may_be_shown():
    found, limits = judged([0.01] * len(SHARES))
    assert limits[-1] == pytest.approx(0.1)
    assert found["path_"]["is_certified"].all()


@pytest.mark.parametrize(
    ("p_values", "constant", "said"), [([0.5], (), "more people"), ([0.01, 0.5], (0,), "alike")]
)
def test_nothing_shown_or_all_treated_alike_is_no_solution(p_values, constant, said):
    with pytest.warns(ConvergenceWarning, match=said):
        found, _ = judged(p_values, constant)
    assert found["status_"] == "no_solution"


def test_limits_are_scaled_wherever_they_are():
    rules = ["equal_opportunity", DemographicParity(0.2), DemographicParity()]
    name, own, none = scaled_limits(rules, 0.5)
    assert (name, own.max_disparity, none.max_disparity) == ("equal_opportunity", 0.1, None)
    assert rules[1].max_disparity == 0.2
    inside = scaled_limits(ConditionalOn(DemographicParity(0.2)), 0.5)
    assert inside.constraint.max_disparity == 0.1
    assert scaled_limits({"sex": 0.1, "age": None}, 0.5) == {"sex": 0.05, "age": None}
