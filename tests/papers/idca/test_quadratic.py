"""Pairwise constraints with a quadratic for the step, against loops over all pairs."""

import numpy as np
import pytest

from skfair.papers.idca.parts import part_of_moment
from tests.naive import row_pairs
from tests.partial_parity.test_pairwise_constraints import (
    bind,
    check_no_rows,
    check_slopes,
    slopes,
    some_rows,
    values,
)
from tests.seeds import generator

BASELINES = ("group_auc_quadratic", "inter_group_pairwise", "intra_group_pairwise")


def baseline_by_pairs(name, rows, scores):
    def mean(above, below):
        return row_pairs.quadratic_mean(scores, rows.sample_weight, above, below)

    found = []
    for k in range(3):
        for other in range(3):
            if k == other:
                continue
            one, two, positive = rows.codes == k, rows.codes == other, rows.targets > 0
            if name == "group_auc_quadratic":
                found.append(mean(one, two) - 0.5)
            elif name == "inter_group_pairwise":
                first = mean(one & positive, two & ~positive)
                found.append(first + mean(one & ~positive, two & positive) - 1)
            else:
                first = mean(one & positive, one & ~positive)
                found.append(first + mean(two & ~positive, two & positive) - 1)
    return found


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_are_means_over_all_pairs(name):
    for seed, shift in ((0, 0.0), (1, 0.0), (2, 1e6)):
        rows, scores = some_rows(seed)
        scores = scores + shift
        constraint = bind(rows, name)
        expected = baseline_by_pairs(name, rows, scores)
        np.testing.assert_allclose(
            values(constraint, scores), expected, atol=1e-8 if shift else 1e-12
        )
        assert constraint.n_constraints == 6


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_are_convex_with_exact_slopes(name):
    rows, scores = some_rows(14)
    constraint = bind(rows, name)
    check_slopes(constraint, scores)
    plus, minus = (part_of_moment(constraint, part) for part in ("plus", "minus"))
    assert plus is constraint
    assert not values(minus, scores).any()
    assert not slopes(minus, scores, np.ones(6)).any()
    rng = generator(0)
    for _ in range(20):
        other = rng.normal(size=scores.size)
        chord = (values(constraint, scores) + values(constraint, other)) / 2
        assert np.all(values(constraint, (scores + other) / 2) <= chord + 1e-12)
    lower, upper = constraint.bounds(0.2)
    assert np.all(lower == -np.inf)
    assert np.all(upper == 0.2)


@pytest.mark.parametrize("name", BASELINES)
def test_one_group_has_no_rows(name):
    rows, scores = some_rows(12, n_groups=1)
    check_no_rows(bind(rows, name), scores)
