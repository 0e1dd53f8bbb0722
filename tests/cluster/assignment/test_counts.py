"""The violation of constraints on the counts of clusters."""

import numpy as np
import pytest

from skfair.cluster.assignment.cost_table import CostProblem
from skfair.cluster.assignment.counts import balance_constraints, share_constraints
from skfair.groups.encoding import encode_groups


@pytest.mark.parametrize("unit", [1e-12, 0.1, 1.0, 1e9])
def test_rounding_is_no_miss_and_a_row_is_one(unit):
    """A clustering with 1e-15 beside one with 0 was the worse one, whatever it cost."""
    groups = encode_groups(np.repeat(["f", "m"], [120, 180]))
    n_rounded = 0
    for share in range(2, 100):
        beta = share / 100 * (120 / 180)
        constraints = balance_constraints(groups, np.array([beta]), unit)
        problem = CostProblem(groups, constraints, 1, np.full(300, unit))
        for others in (150, 300):  # share / 100 of them times two thirds is whole
            counts = unit * np.array([[share * others / 150, others]])
            counts = counts[:, problem.membership[0].argsort()[::-1]]
            n_rounded += problem.constraints.violation(counts).sum() > 0
            assert problem.violation(counts) == 0
            counts[0, counts[0].argmin()] -= unit
            assert problem.violation(counts) == pytest.approx(unit)
    assert n_rounded > 0  # of sums with rounding alone


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e9])
def test_shares_that_are_missed_by_a_row_are_missed(unit):
    """Their slack is nearly a row, so another row was not said, and one row beside shares."""
    groups = encode_groups(np.repeat(["f", "m"], 30))
    constraints = share_constraints(groups, np.full(2, 0.5), np.full(2, 0.5), unit)
    for counts, missed in (([2, 2], 0.0), ([2, 1], 0.0), ([3, 1], 1.0), ([5, 2], 1.5)):
        found = constraints.violation_beyond(unit * np.array([counts]), unit)
        assert found == pytest.approx(2 * missed * unit)  # one group too many, one too few
