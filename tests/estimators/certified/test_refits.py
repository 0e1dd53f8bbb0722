"""Parts of the rows, limits that rise, and the order in which models are judged."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skfair import Certificate
from skfair.constraints import ConditionalOn, DemographicParity
from skfair.estimators.certificate import SHARES, Certified
from skfair.estimators.certified.refits import (
    HeldOut,
    Judgement,
    certified_refit,
    in_parts,
    refits,
    scaled_limits,
)


class Limited(Certified, BaseEstimator):
    """Remembers what it was fitted with."""

    def __init__(self, constraint="demographic_parity", max_disparity=0.1, certificate=0.95):
        self.constraint = constraint
        self.max_disparity = max_disparity
        self.certificate = certificate

    def fit(self, X, y, sample_weight=None):
        self.rows_, self.weights_ = X[:, 0].astype(int), sample_weight
        return self


X, Y = np.arange(40.0)[:, None], np.arange(40) % 2
FITTED, JUDGING = in_parts(Y, 0, 0.5)
HALVES = HeldOut(X, Y, [(FITTED, JUDGING)])


def judged(p_values, n_constant=()):
    """Models judged by given p-values; also the limits that were fitted."""
    limits = []

    def judge(models):
        limits.append(models[0].max_disparity)
        step = len(limits) - 1
        return Judgement(p_values[step], 0.01, p_values[step], 0.9, 0.5, step in n_constant)

    path = refits(Limited(), HALVES, {})
    return certified_refit(Limited(), HALVES, path, judge, {"": 0.1}), limits


def test_models_are_fitted_on_the_rows_that_do_not_judge():
    given = {"sample_weight": X[:, 0], "control_features": None}
    (model,) = next(refits(Limited(certificate=Certificate()), HALVES, given))
    assert model.certificate is None
    assert sorted(model.rows_) == sorted(FITTED)
    assert np.array_equal(model.weights_, X[FITTED, 0])


def test_a_kind_of_one_row_is_no_obstacle():
    for seed in range(5):
        assert in_parts(np.r_[9, np.zeros(39, int)], seed, 0.5)[0].size == 20


@pytest.mark.parametrize("size", [0.2, 0.5, 0.8])
def test_a_share_of_each_kind_judges(size):
    kinds = np.repeat([0, 1, 2], [20, 50, 330])
    fitted, judging = in_parts(kinds, 0, size)
    counts = np.bincount(kinds[judging])
    assert np.abs(counts - size * np.array([20, 50, 330])).max() <= 1
    assert judging.size == 400 * size
    assert sorted([*fitted, *judging]) == list(range(400))


@pytest.mark.parametrize("size", [0.05, 0.95])
def test_a_size_that_leaves_a_cell_empty_is_named(size):
    kinds = np.repeat([0, 1], [8, 32])
    with pytest.raises(ValueError, match="cell of group and class with 8 rows"):
        in_parts(kinds, 0, size)
    assert in_parts(kinds, 0, 1 / 8)[1].size == 5


def test_the_seed_decides_who_judges():
    assert np.array_equal(in_parts(Y, 1, 0.5)[1], in_parts(Y, 1, 0.5)[1])
    assert not np.array_equal(in_parts(Y, 1, 0.5)[1], in_parts(Y, 2, 0.5)[1])


def test_limits_rise_and_the_walk_ends_at_the_first_failure():
    found, limits = judged([0.0, 0.01, 0.2])
    assert limits == pytest.approx([0.1 * share for share in SHARES[:3]])
    assert found["path_"]["is_certified"].tolist() == [True, True, False]
    assert found["p_value_"] == 0.01
    assert found["status_"] == "certified"
    assert set(found["rows_"]) == set(FITTED)
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
    constraints = ["equal_opportunity", DemographicParity(0.2), DemographicParity()]
    name, own, none = scaled_limits(constraints, 0.5)
    assert (name, own.max_disparity, none.max_disparity) == ("equal_opportunity", 0.1, None)
    assert constraints[1].max_disparity == 0.2
    inside = scaled_limits(ConditionalOn(DemographicParity(0.2)), 0.5)
    assert inside.constraint.max_disparity == 0.1
    assert scaled_limits({"sex": 0.1, "age": None}, 0.5) == {"sex": 0.05, "age": None}
