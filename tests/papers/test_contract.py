"""The solvers of risk minimisation that papers bring keep what all solvers promise."""

import pytest

from skfair.solvers.base import SOLVERS
from tests.public import names_in
from tests.solvers.test_contract import PROBLEMS, each_check, risk_subject

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


# One kind of problem is for each day.
EACH_DAY = "upper_only"


@each_check
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case == EACH_DAY else pytest.mark.slow) for case in PROBLEMS],
)
@pytest.mark.parametrize("subject", SUBJECTS)
def test_solvers_of_papers_keep_the_contract(subject, case, check):
    check(subject, subject.case(case))
