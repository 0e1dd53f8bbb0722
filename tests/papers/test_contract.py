"""The solvers of risk minimisation that papers bring keep what all solvers promise."""

import pytest

from skfair.solvers.base import SOLVERS
from skfair.solvers.parameters import check_parameters
from tests.public import names_in
from tests.solvers.test_contract import each_case, each_check, risk_subject

# Solvers whose multipliers are none of the KKT conditions, and one that ignores the constraints.
NO_DUAL = {"ssg", "ipp_ssg", "multiplier_model", "penalty", "sgd"}
UNRULED = {"sgd"}
SUBJECTS = [
    pytest.param(
        risk_subject(name, SOLVERS[name], is_ruled=name not in UNRULED, claims=name not in NO_DUAL),
        id=name,
    )
    for name in names_in(SOLVERS, of_papers=True)
]


@each_check
@each_case
@pytest.mark.parametrize("subject", SUBJECTS)
def test_solvers_of_papers_keep_the_contract(subject, case, check):
    check(subject, subject.case(case))


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("ghost", {"beta": 0}, r"Ghost\(beta=0\): beta must be a number above 0"),
        ("plada", {"beta": 7}, r"Plada\(beta=7\): beta must be a number above 0 and below 1"),
        ("plada", {"alpha": 1}, r"Plada\(alpha=1\): alpha must be a number above 1"),
        ("plada", {"u_max": 0.0}, "u_max must be a number above 0"),
        ("plada", {"eta": -1.0}, r"eta must be a number above 0"),
        ("ssg", {"schedule": "none"}, r"SSG\(schedule='none'\): schedule must be one of"),
        ("ipp_ssg", {"n_inner": 2.5}, "n_inner must be an integer above 0"),
        ("ssl_alm", {"beta": 0}, "beta must be a number above 0 and at most 1"),
    ],
)
def test_ranges_are_those_of_the_documentation(name, values, message):
    """One name, two ranges: beta is a share of one solver and a length of another."""
    with pytest.raises(ValueError, match=message):
        check_parameters(SOLVERS[name](**values))
